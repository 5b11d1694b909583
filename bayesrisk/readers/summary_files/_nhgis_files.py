"""The files of an NHGIS extract: which are there, of what level and data set, with which tables."""

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesrisk._files.parse import shown
from bayesrisk._files.text import split_line
from bayesrisk.exceptions import CodebookWarning, DataError
from bayesrisk.readers.summary_files import _nhgis_codebook as books
from bayesrisk.readers.summary_files._products import DHC, PL94, SF1, Product
from bayesrisk.readers.summary_files._sf1_cells import usual_table
from bayesrisk.readers.text.columns import header_of
from bayesrisk.readers.text.source import Source, list_sources
from bayesrisk.tables import Workload

_NAME = re.compile(
    r"(?:.*_)?(?P<dataset>ds\d+)_(?P<year>[^_]+(?:_\d{4})?)_(?P<level>[a-z_]+?)(?:_[EM]|_\d+)?\.csv"
)
_TIMES = re.compile(r"(?:^|_)ts_")
_LEVELS = {"blck_grp": "block_group"}
_GISJOIN = re.compile(r"G[0-9]+")
_SUPPORTED = (
    "ask NHGIS for source tables of 2010_SF1a (Summary File 1), 2020_PL94171 (redistricting file) "
    "or 2020_DHCa (DHC), as comma-delimited files with their codebook"
)
_SERIES = "time series are not read; ask NHGIS for the source tables of one data set"


@dataclass(frozen=True)
class Extract:
    """A CSV file of an extract; ``dataset`` is what its codebook and its name call the data set."""

    source: Source
    header: list[str]
    codes: dict[str, str]
    product: Product
    dataset: tuple[str, ...]

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.source.name


@dataclass(frozen=True)
class Candidate:
    """A CSV file of which only the name has been looked at."""

    source: Source
    level: str | None
    dataset: str | None
    year: str | None


def candidates_of(path: str | Path, codebook: str | Path | None) -> list[Candidate]:
    """Return the CSV files at a place: the only one, or those that are called as NHGIS does."""
    found = list_sources(path)
    if len(found) == 1 and found[0].member is None and not Path(path).is_dir():
        tables = [source for source in found if not source.base.endswith(".dat")]
    else:
        tables = [source for source in found if source.base.endswith(".csv")]
    if not tables and any(source.base.endswith(".dat") for source in found):
        raise DataError(
            f"{path}: holds a fixed-width extract, which is not read; ask NHGIS for "
            "comma-delimited files"
        )
    candidates = [_candidate(source) for source in tables]
    if len(tables) > 1:
        candidates = [c for c in candidates if c.level is not None]
    if not candidates:
        held = ", ".join(source.base for source in found[:10]) or "nothing"
        raise DataError(
            f"{path}: must hold a .csv file of NHGIS, such as nhgis0001_ds172_2010_block.csv, "
            f"holds {held}"
        )
    if codebook is not None and len(candidates) > 1:
        raise DataError(
            f"{path}: must hold one .csv file where a codebook is named, holds {len(candidates)}"
        )
    return candidates


def _candidate(source: Source) -> Candidate:
    if _TIMES.search(source.base):
        return Candidate(source, "time series", None, None)
    name = _NAME.fullmatch(source.base)
    if name is None:
        return Candidate(source, None, None, None)
    level = _LEVELS.get(name["level"], name["level"])
    return Candidate(source, level, name["dataset"], name["year"])


def _extract(candidate: Candidate, codebook: str | Path | None) -> Extract:
    source = candidate.source
    if candidate.level == "time series":
        raise DataError(f"{source.name}: {_SERIES}")
    header = header_of(source)
    if "GISJOIN" not in header:
        raise DataError(f"{source.name}: must have a column 'GISJOIN'; has {' '.join(header[:20])}")
    book = books.codebook_of(source) if codebook is None else books.as_source(codebook)
    about = books.Codebook({}) if book is None else books.read_codebook(book)
    told = (about.dataset, about.name, candidate.dataset)
    dataset = tuple(dict.fromkeys(text for text in told if text is not None))
    year = _year(source, header) or candidate.year or about.year or "2010"
    product = _product(source, year, dataset, about.sources)
    codes = _built_in(source, product) if book is None else about.codes
    return Extract(source, header, codes, product, dataset)


def _year(source: Source, header: list[str]) -> str:
    """Return the year that the first row of a file says, empty where it says none."""
    with source.open() as stream:
        stream.readline()
        for _ in range(2):  # the first may describe the columns in words
            line = stream.readline().decode("latin-1").rstrip("\n")
            row = dict(zip(header, split_line(line, source.name), strict=False))
            if _GISJOIN.fullmatch(row.get("GISJOIN", "")) and "YEAR" in row:
                return row["YEAR"].strip()
    return ""


def _product(
    source: Source, year: str, dataset: tuple[str, ...], tables: tuple[str, ...]
) -> Product:
    """Return the summary file that a data set is of, some of whose tables are known."""
    names = {text.upper() for text in dataset}
    ours = not tables or any(map(usual_table, tables))
    if year == "2010" and ours:
        return SF1
    if year == "2020" and ours:
        return PL94 if names & {"DS248", "2020_PL94171"} else DHC
    listed = f", with table {', '.join(tables[:10])}" if tables else ""
    more = f" and {len(tables) - 10} more" if len(tables) > 10 else ""
    raise DataError(
        f"{source.name}: is of {year[:20]}, data set {', '.join(dataset) or 'unknown'}{listed}"
        f"{more}, which is not read; {_SUPPORTED}"
    )


def _built_in(source: Source, product: Product) -> dict[str, str]:
    if product is not SF1:
        raise DataError(
            f"{source.name}: has no codebook beside it (..._codebook.txt), without which the "
            f"columns of {product.year} are not known"
        )
    warnings.warn(
        f"{source.name}: has no codebook beside it; the codes known for the 2010 block data set "
        "are used",
        CodebookWarning,
        stacklevel=5,
    )
    return books.built_in_columns()


def files_of(
    candidates: Sequence[Candidate],
    tables: Iterable[str],
    level: str,
    dataset: str | None,
    codebook: str | Path | None,
) -> list[Extract]:
    """Return the files that the tables of a level are in, each table in one of them."""
    place = candidates[0].source.path
    fitting = [c for c in candidates if len(candidates) == 1 or c.level == level]
    if not fitting:
        held = ", ".join(f"{c.source.base} ({c.level})" for c in candidates)
        raise DataError(f"{place}: must hold a file of level {level!r}, holds {held}")
    faults: list[DataError] = []
    extracts = []
    for candidate in fitting:
        try:
            extracts.append(_extract(candidate, codebook))
        except DataError as error:  # of a file that may not be needed
            faults.append(error)
    if dataset is not None:
        chosen = [e for e in extracts if dataset.lower() in (d.lower() for d in e.dataset)]
        if not chosen and not faults:
            raise DataError(
                f"{place}: must hold a file of the dataset {shown(dataset)}, "
                f"holds {_listed(extracts)}"
            )
        extracts = chosen
    found: list[Extract] = []
    for name in tables:
        having = [extract for extract in extracts if name in extract.codes]
        if not having and faults:
            raise faults[0]
        if not having:
            named = ", ".join(code for extract in extracts for code in extract.codes)
            raise DataError(
                f"{extracts[0].name}: must have table {name}, which the codebook does not name; "
                f"it names {named}"
            )
        if len(having) > 1:
            raise DataError(
                f"{place}: must have table {name} in one file, it is in {_listed(having)}; choose "
                "a data set"
            )
        if having[0] not in found:
            found.append(having[0])
    return found


def _listed(extracts: Sequence[Extract]) -> str:
    return ", ".join(f"{e.source.base} ({', '.join(e.dataset)})" for e in extracts)


def columns_of(
    extract: Extract, workload: Workload, level: str
) -> dict[tuple[str, str], list[str]]:
    """Return the columns of each table: its cells, then its total where it has one to compare."""
    found = {}
    for key, table in workload.tables.items():
        if key[0] != level or table.name not in extract.codes:
            continue
        about = extract.product
        numbers = [*about.numbers(table).tolist(), *([1] if about.has_total(table) else [])]
        names = [f"{extract.codes[table.name]}{number:03d}" for number in numbers]
        for name in names:
            if name not in extract.header:
                raise DataError(f"{extract.name}: must have a column {name!r} ({table.name})")
        found[key] = names
    return found


def described(extract: Extract, values: list[str]) -> int:
    """Return 1 if the second line describes the columns in words, else 0."""
    with extract.source.open() as stream:
        stream.readline()
        line = stream.readline().decode("latin-1").rstrip("\n")
    row = dict(zip(extract.header, split_line(line, extract.name), strict=False))
    words = not _GISJOIN.fullmatch(row.get("GISJOIN", "G0"))
    return int(words and not any(row.get(name, "0").strip("-").isdigit() for name in values))
