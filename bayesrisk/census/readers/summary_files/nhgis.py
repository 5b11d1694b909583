"""NHGIS extracts of the 2010 and 2020 Censuses: CSV files and their codebooks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import split_line
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.census.readers import text as forms
from bayesrisk.census.readers.summary_files.segments import (
    DHC,
    PL94,
    PRODUCTS,
    SF1,
    Product,
    usual_table,
)
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables import PublishedTables, Workload

# The codebook beside an NHGIS extract: which column is which published cell.


_FIELD = re.compile(r"\s*(Source code|NHGIS code|NHGIS ID|Years?):\s*(\S.*?)\s*$", re.IGNORECASE)
_SERIES_LINE = re.compile(r"\s*Time series", re.IGNORECASE)
_SERIES = "time series, which are not read; ask NHGIS for the source tables of one data set"
_BYTES = 2**24  # a codebook is text for people; a longer one is none

#: Name and number of a data set of each summary file, by the ending of its files.
DATASETS = MappingProxyType(
    {"sf1": ("2010_SF1a", "ds172"), "pl": ("2020_PL94171", "ds248"), "dhc": ("2020_DHCa", "ds258")}
)


class Codebook(NamedTuple):
    """An NHGIS codebook: tables' codes, the data set and the year, where stated.

    ``sources`` are all tables that it describes, by the agency's names, including unread ones.
    ``dataset`` has its names of the data set, such as ds172 and 2010_SF1a.
    """

    codes: Mapping[str, str]
    sources: Sequence[str]
    year: str | None
    dataset: Sequence[str | None]


def read_codebook(source: forms.Source) -> Codebook:
    """Return a codebook's table codes, with its data set and year."""
    codes: dict[str, str] = {}
    sources: list[str] = []
    table = year = number = name = None
    for line in source.read(_BYTES).decode("latin-1").splitlines():
        if _SERIES_LINE.match(line) and not codes:
            raise DataError(f"{source.name}: describes {_SERIES}")
        if (field := _FIELD.match(line)) is None:
            continue
        key, value = field[1].lower(), field[2]
        if key == "nhgis id":
            number = number or value
        elif key.startswith("year"):
            year = year or value
        elif key == "source code":
            sources.append(value)
            table = usual_table(value)
        elif re.match(r"\d{4}_", value):  # of the data set
            name = name or value
        elif table is not None:
            if codes.setdefault(table, value) != value:
                raise DataError(
                    f"{source.name}: table {table}: must have one NHGIS code, "
                    f"got {quote(codes[table])} and {quote(value)}"
                )
            table = None
    if not sources:
        raise DataError(
            f"{source.name}: must name tables (lines 'Source code:' and 'NHGIS code:'), got none"
        )
    return Codebook(codes, sources, year, (number, name))


# The files of an NHGIS extract: which are there, of what level and data set, with which tables.

_NAME = re.compile(
    r"(?:.*_)?(?P<dataset>ds\d+)_(?P<year>[^_]+(?:_\d{4})?)_(?P<level>[a-z_]+?)(?:_[EM]|_\d+)?\.csv"
)
_TIMES = re.compile(r"(?:^|_)ts_")
_LEVEL_NAMES = {"blck_grp": "block_group"}
_GISJOIN = re.compile(r"G[0-9]+")
_SUPPORTED = (
    "ask NHGIS for source tables of 2010_SF1a (Summary File 1), 2020_PL94171 (redistricting file) "
    "or 2020_DHCa (DHC), as comma-delimited files with their codebook"
)


class Candidate(NamedTuple):
    """A CSV file known only by its name so far."""

    source: forms.Source
    level: str | None = None
    dataset: str | None = None
    year: str | None = None


class Extract(NamedTuple):
    """A CSV file of an extract, with its header, codes and product.

    ``first`` is its first line below the header, which may describe the columns in words.
    """

    source: forms.Source
    header: list[str]
    first: dict[str, str]
    codes: Mapping[str, str]
    product: Product
    dataset: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return self.source.name


def csv_candidates(path: str | Path, codebook: str | Path | None) -> list[Candidate]:
    """Return the CSV files at a path: the only one, or those named as NHGIS names them."""
    sources = forms.list_sources(path)
    if len(sources) == 1 and sources[0].member is None and not Path(path).is_dir():
        tables = [source for source in sources if not source.base.endswith(".dat")]
    else:
        tables = [source for source in sources if source.base.endswith(".csv")]
    if not tables and any(source.base.endswith(".dat") for source in sources):
        raise DataError(
            f"{path}: holds a fixed-width extract, which is not read; ask NHGIS for "
            "comma-delimited files"
        )
    candidates = [_candidate(source) for source in tables]
    if len(tables) > 1:
        candidates = [c for c in candidates if c.level is not None]
    if not candidates:
        listing = ", ".join(source.base for source in sources[:10]) or "nothing"
        raise DataError(
            f"{path}: must hold a .csv file of NHGIS, such as nhgis0001_ds172_2010_block.csv, "
            f"holds {listing}"
        )
    if codebook is not None and len(candidates) > 1:
        raise DataError(
            f"{path}: must hold one .csv file where a codebook is named, holds {len(candidates)}"
        )
    return candidates


def _candidate(source: forms.Source) -> Candidate:
    if _TIMES.search(source.base):
        return Candidate(source, "time series")
    name = _NAME.fullmatch(source.base)
    if name is None:
        return Candidate(source)
    level = _LEVEL_NAMES.get(name["level"], name["level"])
    return Candidate(source, level, name["dataset"], name["year"])


def _extract(candidate: Candidate, codebook: str | Path | None) -> Extract:
    source = candidate.source
    if candidate.level == "time series":
        raise DataError(f"{source.name}: holds {_SERIES}")
    header = forms.header_names(source)
    if "GISJOIN" not in header:
        raise DataError(f"{source.name}: must have a column 'GISJOIN'; has {' '.join(header[:20])}")
    wanted = source.base.removesuffix(".csv") + "_codebook.txt"
    place = codebook or (source.path if source.member is not None else source.path.parent)
    books = forms.list_sources(place)
    file = next((b for b in books if codebook is not None or b.base == wanted), None)
    if file is None:
        raise DataError(
            f"{source.name}: has no codebook beside it (..._codebook.txt), without which its "
            "columns are not known"
        )
    book = read_codebook(file)
    dataset = tuple(dict.fromkeys(t for t in (*book.dataset, candidate.dataset) if t is not None))
    with source.open() as stream:
        lines = [stream.readline().decode("latin-1").rstrip("\n") for _ in range(3)][1:]
    first, second = (
        dict(zip(header, split_line(line, source.name), strict=False)) for line in lines
    )
    years = (row["YEAR"].strip() for row in (first, second) if _is_place(row) and "YEAR" in row)
    year = next(years, None) or candidate.year or book.year or "2010"
    product = _product(source, year, dataset, book.sources)
    return Extract(source, header, first, book.codes, product, dataset)


def _is_place(row: dict[str, str]) -> bool:
    return _GISJOIN.fullmatch(row.get("GISJOIN", "")) is not None


def _product(
    source: forms.Source, year: str, dataset: tuple[str, ...], tables: Sequence[str]
) -> Product:
    """Return the summary file that a data set belongs to; raise if it is unknown."""
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


def table_files(
    candidates: Sequence[Candidate],
    tables: Iterable[str],
    level: str,
    dataset: str | None,
    codebook: str | Path | None,
) -> list[Extract]:
    """Return the files that contain a level's tables, one file for each table."""
    place = candidates[0].source.path
    fitting = [c for c in candidates if len(candidates) == 1 or c.level == level]
    if not fitting:
        listing = ", ".join(f"{c.source.base} ({c.level})" for c in candidates)
        raise DataError(f"{place}: must hold a file of level {level!r}, holds {listing}")
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
                f"{place}: must hold a file of the dataset {quote(dataset)}, "
                f"holds {_listed(extracts)}"
            )
        extracts = chosen
    files: list[Extract] = []
    for name in tables:
        having = [extract for extract in extracts if name in extract.codes]
        if not having and faults:
            raise faults[0]
        if not having:
            codes = ", ".join(code for extract in extracts for code in extract.codes)
            raise DataError(
                f"{extracts[0].name}: must have table {name}, which the codebook does not name; "
                f"it names {codes}"
            )
        if len(having) > 1:
            raise DataError(
                f"{place}: must have table {name} in one file, it is in {_listed(having)}; choose "
                "a data set"
            )
        if having[0] not in files:
            files.append(having[0])
    return files


def _listed(extracts: Sequence[Extract]) -> str:
    return ", ".join(f"{e.source.base} ({', '.join(e.dataset)})" for e in extracts)


def table_columns(
    extract: Extract, workload: Workload, level: str
) -> dict[tuple[str, str], list[str]]:
    """Return the columns of each table: its cells, then its total if the file has one."""
    columns = {}
    for key, table in workload.tables.items():
        if key[0] != level or table.name not in extract.codes:
            continue
        numbers = extract.product.with_total(table)
        names = [f"{extract.codes[table.name]}{number:03d}" for number in numbers]
        for name in names:
            if name not in extract.header:
                raise DataError(f"{extract.name}: must have a column {name!r} ({table.name})")
        columns[key] = names
    return columns


CHUNK = 2**15  # places in memory at a time, where the caller does not say
#: Characters of the join code that make up the published code, by its length and level: a letter
#: and a zero after state and county pad it.
_LEVELS = {
    4: ("state", (1, 3)),
    8: ("county", (1, 3, 4, 7)),
    14: ("tract", (1, 3, 4, 7, 8, 14)),
    15: ("block_group", (1, 3, 4, 7, 8, 15)),
    18: ("block", (1, 3, 4, 7, 8, 18)),
}
_LENGTHS = {level: length for length, (level, _) in _LEVELS.items()}
#: Columns with a part of the code, and which characters of it they repeat.
_PARTS = {
    "STATEA": (0, 2),
    "COUNTYA": (2, 5),
    "TRACTA": (5, 11),
    "BLKGRPA": (11, 12),
    "BLOCKA": (11, 15),
}


def iter_nhgis(
    path: str | Path,
    *,
    workload: Workload,
    codebook: str | Path | None = None,
    dataset: str | None = None,
    state: str | None = None,
    on_error: str = "refuse",
    chunk: int = CHUNK,
) -> Iterator[PublishedTables]:
    """Yield tables of an NHGIS extract of the 2010 or 2020 Census, some places at a time.

    Parameters
    ----------
    path : path-like
        A CSV file, or the ZIP archive or folder of the delivered extract, which may hold several
        files. Each level is read from the files of that level, each table from the only one of them
        that has it.
    workload : Workload
        The tables and levels: of Summary File 1 from extracts of 2010, of the redistricting file
        (``pl94-tables``) or the DHC (``dhc-block``) from extracts of 2020.
    codebook : path-like, optional
        The codebook of a single CSV file; by default the file beside it with a name in
        ``_codebook.txt``.
    dataset : str, optional
        Only the files of this data set, ``ds172`` or ``2010_SF1a``, if several hold a table.
    state : str, optional
        FIPS code or postal abbreviation of the state of every place.
    on_error, chunk
        As for :func:`iter_sf1`, with the same warning.
    """
    rows = check.integer(chunk, "chunk", lower=1)
    faults = forms.Faults(on_error)
    place = forms.state_code(state)
    dataset = None if dataset is None else check.text(dataset, "dataset")
    _check_workload(workload)
    if codebook is not None:
        check.path(codebook, "codebook")
    candidates = csv_candidates(path, codebook)
    # Of other levels there are no places.
    nowhere = {name: np.zeros(0, dtype="<U15") for name in workload.levels}
    nothing = {k: np.zeros((0, len(t.cells)), np.int64) for k, t in workload.tables.items()}
    for level in workload.levels:
        # The rows of the files of a level are the same places.
        chosen = table_files(candidates, workload.at(level), level, dataset, codebook)
        columns = [table_columns(extract, workload, level) for extract in chosen]
        pairs = list(zip(chosen, columns, strict=True))
        readers = [_pieces(extract, names, rows, faults) for extract, names in pairs]
        first = chosen[0]
        places: list[IntArray] = []
        for pieces in zip_longest(*readers):
            sizes = [0 if piece is None else len(piece) for piece in pieces]
            for extract, size in zip(chosen, sizes, strict=True):
                if size != sizes[0]:
                    raise DataError(
                        f"{extract.name}: must have the places of {first.name}, has another "
                        "number of rows"
                    )
            parts = [piece for piece in pieces if piece is not None]
            geoids = _geoids(parts[0], level, place, first.product.year)
            counts: dict[tuple[str, str], IntArray] = {}
            missing: dict[tuple[str, str], BoolArray] = {}
            for piece, (extract, names) in zip(parts, pairs, strict=True):
                if extract is not first:
                    codes = _geoids(piece, level, place, extract.product.year)
                    rule = f"the place of this row in {first.name}"
                    piece.check("GISJOIN", geoids == codes, rule)
                for key, cells in names.items():
                    table = workload.tables[key]
                    counts[key], missing[key] = forms.table_counts(piece, cells, table, faults)
            places.append(geoids.astype(np.int64))
            forms.check_distinct(places[-1], parts[0].start + 1, first.name, "row", "GISJOIN")
            yield forms.piece_of_tables(
                workload, nowhere | {level: geoids}, nothing | counts, missing
            )
        forms.check_distinct(np.concatenate(places), 1, first.name, "row", "GISJOIN")
    faults.warn(str(path))


def _pieces(
    extract: Extract, columns: dict[tuple[str, str], list[str]], chunk: int, faults: forms.Faults
) -> Iterator[forms.Piece]:
    wanted = [n for n in ("GISJOIN", "YEAR", *_PARTS) if n in extract.header]
    values = sorted({name for names in columns.values() for name in names})
    # The line below the header may describe the columns in words.
    numbers = any(extract.first.get(name, "0").strip("-").isdigit() for name in values)
    words = "GISJOIN" in extract.first and not _is_place(extract.first) and not numbers
    return forms.csv_pieces(
        extract.source,
        extract.header,
        wanted=[*wanted, *values],
        whole=() if faults.lenient else values,
        chunk=chunk,
        form=forms.TextForm(skip=int(words)),
    )


def read_nhgis(
    path: str | Path,
    *,
    workload: Workload,
    codebook: str | Path | None = None,
    dataset: str | None = None,
    state: str | None = None,
    on_error: str = "refuse",
) -> PublishedTables:
    r"""Return the tables of an NHGIS extract of the 2010 or 2020 Census, at every place in it.

    Parameters
    ----------
    path, workload, codebook, dataset, state, on_error
        As for :func:`iter_nhgis`.

    Examples
    --------
    Two people in an invented block, and the codebook beside the file.

    >>> import pathlib, tempfile
    >>> from bayesrisk.tables import Workload
    >>> work = Workload.named("sf1-block").select(tables=["P1"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "nhgis0001_ds172_2010_block.csv")
    ...     _ = file.write_text("GISJOIN,H7V001\nG50000100001001000,2\n")
    ...     book = file.with_name(f"{file.stem}_codebook.txt")
    ...     _ = book.write_text("Source code: P1\nNHGIS code: H7V\n")
    ...     read_nhgis(file, workload=work).counts["block", "P1"].toarray().tolist()
    [[2]]
    """
    pieces = iter_nhgis(
        path, workload=workload, codebook=codebook, dataset=dataset, state=state, on_error=on_error
    )
    return forms.combined(pieces, path)


def _check_workload(workload: Workload) -> None:
    """Raise if no data set contains the workload."""
    check.instance(workload, Workload, "workload")
    faults = []
    for product in PRODUCTS:
        try:
            product.check_workload(workload)
        except ArgumentError as error:
            faults.append(error)
    if len(faults) == len(PRODUCTS):
        raise faults[0]
    for level in workload.levels:
        if level not in _LENGTHS:
            raise ArgumentError(
                "workload", f"must have levels of {', '.join(_LENGTHS)}", shown=level
            )


def _geoids(piece: forms.Piece, level: str, state: str | None, year: int) -> TextArray:
    """Return the published codes of places, checked against the columns of their parts."""
    length = _LENGTHS[level]
    rule = f"G and the {length - 1} digits of a {level.replace('_', ' ')}"
    matrix = piece.text("GISJOIN", length, rule)
    good = (matrix[:, 0] == ord("G")) & forms.all_digits(matrix[:, 1:])
    good &= matrix[:, 3] == ord("0")
    if length > _LENGTHS["state"]:
        good &= matrix[:, 7] == ord("0")
    piece.check("GISJOIN", good, rule)
    cuts = _LEVELS[length][1]
    code = np.hstack([matrix[:, a:b] for a, b in zip(cuts[::2], cuts[1::2], strict=True)])
    width = code.shape[1]
    for name, (start, stop) in _PARTS.items():
        if name in piece.table.column_names and stop <= width:
            equal = (code[:, start:stop] == piece.matrix(name, stop - start)).all(axis=1)
            piece.check(name, equal, "the same as in GISJOIN")
    if "YEAR" in piece.table.column_names:
        piece.whole("YEAR", year, year, rule=f"{year}, the year of the data set")
    forms.check_state(piece, "GISJOIN", code, state)
    return forms.place_texts(code)
