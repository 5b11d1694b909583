"""Writing published tables in the form of an NHGIS extract."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.summary_files import nhgis as books
from bayesrisk.readers.summary_files.files import write_segments
from bayesrisk.readers.summary_files.segments import PRODUCTS, SF1, Product
from bayesrisk.readers.text.source import new_file
from bayesrisk.tables import PublishedTables

_ROWS = 2**12
_STAMP = (2011, 1, 1, 0, 0, 0)
_CONTEXT = ("GISJOIN", "YEAR", "STATEA", "COUNTYA", "TRACTA", "BLKGRPA", "BLOCKA")
_WORDS = (
    "GIS Join Match Code",
    "Data File Year",
    "State Code",
    "County Code",
    "Census Tract Code",
    "Block Group Code",
    "Block Code",
)
_FREE = "ZZ"  # start of codes for tables whose NHGIS code is not known


def write_nhgis(
    tables: PublishedTables,
    path: str | Path,
    *,
    described: bool = False,
    dataset: str = "2010_SF1a",
) -> None:
    """Write published tables in the form of an NHGIS extract: a CSV file and its codebook.

    Parameters
    ----------
    tables : PublishedTables
        Exact counts of tables of the data set at one level; nothing suppressed.
    path : path-like
        ZIP archive to be made; it must not exist.
    described : bool, optional
        Whether a second line describes the columns in words, an option of NHGIS extracts.
    dataset : str, optional
        ``2010_SF1a``, ``2020_PL94171`` or ``2020_DHCa``.

    Raises
    ------
    OutputError
        If the file exists or cannot be written.

    Notes
    -----
    Columns of cells that the tables do not hold are left out, but for the total of a table all of
    whose leaves are held.  Tables whose code is not known get one that starts with ``ZZ``; the
    codebook says so.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_nhgis
    >>> try:
    ...     write_nhgis(None, "extract.csv")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .zip, got 'extract.csv'
    """
    target = check.path(path, "path")
    check.flag(described, "described")
    if target.suffix.lower() != ".zip":
        raise ArgumentError(f"path must end in .zip, got {shown(str(path))}")
    about = _product(dataset)
    work = check.instance(tables, PublishedTables, "tables").workload
    about.check_workload(work)
    if any(matrix.nnz for matrix in tables.suppressed.values()) or tables.signed:
        raise ArgumentError("tables must have no suppressed and no negative count")
    level = check.choice(
        work.levels[0] if len(work.levels) == 1 else "several levels",
        "level of tables",
        ("state", "county", "tract", "block_group", "block"),
    )
    known = books.built_in_columns() if about is SF1 else {}
    extra = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    codes = {n: known.get(n) or _FREE + next(extra) for n in work.at(level)}
    number = books.DATASETS[about.ending][1]
    place = "blck_grp" if level == "block_group" else level
    data = f"nhgis0001_{number}_{about.year}_{place}"
    sizes = {name: (code, about.codebook[name].cells) for name, code in codes.items()}
    with new_file(target) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, texts in (
            (f"{data}_codebook.txt", iter([books.describe(sizes, data, about)])),
            (f"{data}.csv", _lines(tables, level, codes, about, described=described)),
        ):
            info = zipfile.ZipInfo(f"nhgis0001_csv/{name}", date_time=_STAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                for text in texts:
                    member.write(text.encode("latin-1"))


def _product(dataset: str) -> Product:
    names = {books.DATASETS[about.ending][0]: about for about in PRODUCTS}
    return names[check.choice(dataset, "dataset", tuple(names))]


def _lines(
    tables: PublishedTables,
    level: str,
    codes: dict[str, str],
    about: Product,
    *,
    described: bool,
) -> Iterator[str]:
    names, words = list(_CONTEXT), list(_WORDS)
    for name, table in tables.workload.at(level).items():
        numbers = [*([1] if about.has_total(table) else []), *about.numbers(table).tolist()]
        names += [f"{codes[name]}{number:03d}" for number in numbers]
        words += [f"{name} cell {number}" for number in numbers]
    yield ",".join(names) + "\n"
    if described:
        yield ",".join(f'"{word}"' for word in words) + "\n"
    places = tables.geoids[level]
    for start in range(0, len(places), _ROWS):
        part = slice(start, start + _ROWS)
        columns = []
        for name, table in tables.workload.at(level).items():
            values = tables.counts[level, name][part].toarray()
            if about.has_total(table):
                values = np.hstack([values.sum(axis=1, keepdims=True), values])
            columns.append(values)
        for geoid, row in zip(places[part], np.hstack(columns).tolist(), strict=True):
            yield f"{_context(str(geoid), about.year)},{','.join(map(str, row))}\n"


def _context(geoid: str, year: int) -> str:
    """Return the first columns of a place."""
    state, county, rest = geoid[:2], geoid[2:5], geoid[5:]
    join = f"G{state}0" + (f"{county}0{rest}" if county else "")
    block = rest[6:] if len(geoid) == 15 else ""
    return ",".join([join, str(year), state, county, rest[:6], rest[6:7], block])


# -----------------------------------------------------------------------------
# Writing published tables in the form of the 2010 Summary File 1.


def write_sf1(tables: PublishedTables, path: str | Path) -> None:
    """Write published tables of one state in the form of the 2010 Summary File 1.

    Parameters
    ----------
    tables : PublishedTables
        Exact counts of tables of Summary File 1 at levels from state to block; nothing suppressed.
    path : path-like
        ZIP archive to be made, as the state's is published; it must not exist.

    Raises
    ------
    ArgumentError
        If a table is none of Summary File 1, the places are of several states, or a count is
        negative or suppressed.
    OutputError
        If the file exists or cannot be written.

    Notes
    -----
    Columns of cells that the tables do not hold are left empty, but for the total of a table all
    of whose leaves are held.  Names, areas and populations of places are blank.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_sf1
    >>> from bayesrisk.tables import PublishedTables, Workload
    >>> from scipy import sparse
    >>> nothing = Workload.named("sf1-block").select(tables=["P1"])
    >>> empty = PublishedTables(nothing, {"block": []}, {("block", "P1"): sparse.csr_array((0, 1))
    ...                         .astype(int)})
    >>> try:
    ...     write_sf1(empty, "vt2010.sf1.zip")
    ... except ArgumentError as error:
    ...     print(error)
    tables must have places of one state, got 0
    """
    write_segments(SF1, tables, path)
