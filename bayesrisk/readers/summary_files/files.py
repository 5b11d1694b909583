"""Summary files of 2020 as the Census Bureau publishes them: the redistricting file and the DHC.

``<st>geo2020.pl`` and ``<st>geo2020.dhc`` tell the places, ``<st>000NN2020.pl`` and ``.dhc`` hold
the tables, all with ``|`` between fields and without a header line.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.summary_files import segments as header_2020
from bayesrisk.readers.summary_files.segments import CHUNK, DHC, PL94, SF1, Product, iter_segments
from bayesrisk.readers.summary_files.sf1_cells import FIELDS, LINE
from bayesrisk.readers.text.source import new_file
from bayesrisk.readers.text.tables import STATES, combined
from bayesrisk.tables import PublishedTables, Workload

# -----------------------------------------------------------------------------
# The 2010 Summary File 1 as the Census Bureau publishes it: a header of places and 47 segments.
#
# ``<st>geo2010.sf1`` is fixed-width (latin-1); ``<st>000NN2010.sf1`` are comma-separated without
# header, and a record number says which place a line is of.  Positions of the technical
# documentation of the 2010 Census Summary File 1.


def iter_sf1(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2010 Summary File 1, some places at a time.

    Parameters
    ----------
    path : path-like
        The ZIP archive of a state as published, or a folder with its files: the geographic header
        and the segments that the tables are in.
    workload : Workload
        Which tables at which levels, such as ``Workload.named("sf1-block")``; all
        tables of counts are in ``sf1-tables`` and ``sf1-tract-tables``.
    on_error : str, optional
        What becomes of a count that cannot be: ``"refuse"`` raises for the first of them,
        ``"missing"`` counts it and leaves the cell suppressed.  A table with such a count is not
        compared with its total.
    chunk : int, optional
        Records of places in memory at a time.

    Yields
    ------
    PublishedTables
        Tables of different places; at least one piece.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is no count of Summary File 1, or another geography.
    DataError
        If a file is missing, a line broken, a place there twice, in another state or without its
        counts, a count negative and ``on_error`` is ``"refuse"``, or the cells of a table do not
        add up to its total.

    Warns
    -----
    DataWarning
        At the end, if counts are missing because they cannot be; its ``missing`` holds how many, by
        column and reason.

    Notes
    -----
    Memory grows with the number of records (17 bytes for each place of the state) and with
    ``chunk``.  Where a workload holds all leaves of a table, their sum must be the published total:
    columns that moved do not pass.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_sf1
    >>> from bayesrisk.tables import Workload
    >>> try:
    ...     list(iter_sf1("no-such-file.zip", workload=Workload.named("sf1-block")))
    ... except DataError as error:
    ...     print(error)
    no-such-file.zip: no such file
    """
    yield from iter_segments(SF1, path, workload, chunk, on_error)


def read_sf1(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    """Read tables of a state's 2010 Summary File 1 into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_sf1`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is no count of Summary File 1, or another geography.
    DataError
        As for :func:`iter_sf1`.

    Warns
    -----
    DataWarning
        As for :func:`iter_sf1`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.readers import read_sf1, write_sf1
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010001001000"] * 2, "sex": [0, 1], "age": [30, 4],
    ...                        "race": [1, 3], "hisp": [0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> with TemporaryDirectory() as folder:
    ...     write_sf1(tables, folder + "/vt2010.sf1.zip")
    ...     read_sf1(folder + "/vt2010.sf1.zip", workload=Workload.named("sf1-block")) == tables
    True
    """
    return combined(iter_sf1(path, workload=workload, on_error=on_error), workload, path)


# -----------------------------------------------------------------------------


# -----------------------------------------------------------------------------
# Writing published tables in the form of a state's summary file, for small samples and tests.


_ROWS = 2**12
_STAMP = (2011, 1, 1, 0, 0, 0)


def write_segments(product: Product, tables: PublishedTables, path: str | Path) -> None:
    """Write published tables of one state: a geographic header and segments in a ZIP archive."""
    if check.path(path, "path").suffix.lower() != ".zip":
        raise ArgumentError(f"path must end in .zip, got {shown(str(path))}")
    work = check.instance(tables, PublishedTables, "tables").workload
    product.check_workload(work)
    if any(matrix.nnz for matrix in tables.suppressed.values()) or tables.signed:
        raise ArgumentError("tables must have no suppressed and no negative count")
    state = _state(tables)
    records = _records(tables)
    with (
        new_file(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        name = f"{state}geo{product.year}.{product.ending}"
        _member(archive, name, _header(product, state, records, tables))
        for number in sorted({product.codebook[t.name].segment for t in work.tables.values()}):
            rows = _segment(product, state, records, tables, number)
            _member(archive, product.segment(state, number), rows)


def _member(archive: zipfile.ZipFile, name: str, lines: Iterator[str]) -> None:
    info = zipfile.ZipInfo(name, date_time=_STAMP)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        for text in lines:
            member.write(text.encode("latin-1"))


def _state(tables: PublishedTables) -> str:
    """Return the abbreviation of the state that all places are in."""
    codes = {
        str(g)[:2] for level, places in tables.geoids.items() if level != "nation" for g in places
    }
    if len(codes) != 1:
        raise ArgumentError(f"tables must have places of one state, got {len(codes)}")
    names = {code: name.lower() for name, code in STATES.items()}
    code = codes.pop()
    if code not in names:
        raise ArgumentError(f"tables must have places of a state or Puerto Rico, got {shown(code)}")
    return names[code]


def _records(tables: PublishedTables) -> list[tuple[str, int]]:
    """Return level and position of each place, in the order of the file: areas before parts."""
    rank = tables.workload.schema.geography.rank
    found = [
        (str(geoid), rank(level), level, row)
        for level, places in tables.geoids.items()
        for row, geoid in enumerate(places)
    ]
    return [(level, row) for _, _, level, row in sorted(found)]


def _header(
    product: Product, state: str, records: list[tuple[str, int]], tables: PublishedTables
) -> Iterator[str]:
    line = _fixed if product.year == 2010 else _delimited
    for number, (level, row) in enumerate(records, 1):
        geoid = str(tables.geoids[level][row])
        fields = {
            "FILEID": product.file_id,
            "STUSAB": state.upper(),
            "SUMLEV": product.summary_levels[level],
            "GEOVAR": "00",
            "GEOCOMP": "00",
            "CHARITER": "000",
            "CIFSN": "00",
            "LOGRECNO": f"{number:07d}",
            "STATE": geoid[:2],
            "COUNTY": geoid[2:5],
            "TRACT": geoid[5:11],
            "BLKGRP": geoid[11:12],
            "BLOCK": geoid[11:15] if len(geoid) == 15 else "",
            "GEOCODE": geoid,
        }
        yield line(fields) + "\n"


def _fixed(fields: dict[str, str]) -> str:
    """Return a line of fixed width."""
    line = fields["FILEID"].ljust(6).ljust(LINE)
    for name, (start, stop) in FIELDS.items():
        if name in fields:
            line = line[:start] + fields[name].ljust(stop - start) + line[stop:]
    return line


def _delimited(fields: dict[str, str]) -> str:
    """Return a line of fields between ``|``."""
    known = [fields.get(name, "") for name in header_2020.FIELDS]
    return "|".join([*known, *[""] * (header_2020.COLUMNS - len(known))])


def _segment(
    product: Product,
    state: str,
    records: list[tuple[str, int]],
    tables: PublishedTables,
    number: int,
) -> Iterator[str]:
    """Yield the rows of a segment, of those levels that have a table in it."""
    book, cut = product.codebook, product.delimiter
    blank = "" if product.year == 2010 else "."
    width = max(b.column + b.cells - 1 for b in book.values() if b.segment == number)
    keys = [k for k, t in tables.workload.tables.items() if book[t.name].segment == number]
    levels = {level for level, _ in keys}
    lines = [(n, *record) for n, record in enumerate(records, 1) if record[0] in levels]
    for start in range(0, len(lines), _ROWS):
        part = lines[start : start + _ROWS]
        columns = np.full((len(part), width), -1, dtype=np.int64)
        for level, name in keys:
            here = [i for i, line in enumerate(part) if line[1] == level]
            rows = [part[i][2] for i in here]
            _fill(product, columns, here, tables, (level, name), rows)
        for (record, _, _), values in zip(part, columns[:, 5:].tolist(), strict=True):
            front = (product.file_id, state.upper(), "000", f"{number:02d}", f"{record:07d}")
            counts = (blank if v < 0 else str(v) for v in values)
            yield cut.join((*front, *counts)) + "\n"


def _fill(
    product: Product,
    columns: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    here: list[int],
    tables: PublishedTables,
    key: tuple[str, str],
    rows: list[int],
) -> None:
    table = tables.workload.tables[key]
    first = product.codebook[table.name].column - 1
    if not rows:
        return
    values = tables.counts[key][rows, :].toarray()
    columns[np.array(here)[:, None], first + product.numbers(table) - 1] = values
    if product.has_total(table):
        columns[here, first] = values.sum(axis=1)


# -----------------------------------------------------------------------------


def iter_pl94(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2020 redistricting file (P.L. 94-171), some places at a time.

    Parameters
    ----------
    path : path-like
        The ZIP archive of a state as published (``vt2020.pl.zip``), or a folder with its files: the
        geographic header and the segments that the tables are in.
    workload : Workload
        Which tables at which levels: ``pl94-tables`` (P1 to P5) or ``pl94-unit-tables`` (H1), or
        some of them.
    on_error : str, optional
        What becomes of a count that cannot be: ``"refuse"`` raises for the first of them,
        ``"missing"`` counts it and leaves the cell suppressed.  A table with such a count is not
        compared with its total.
    chunk : int, optional
        Records of places in memory at a time.

    Yields
    ------
    PublishedTables
        Tables of different places; at least one piece.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is not one of the file, or another geography.
    DataError
        If a file is missing, a line broken, a place there twice, in another state or without its
        counts, a count negative or not published at its level and ``on_error`` is ``"refuse"``, or
        the cells of a table do not add up to its total.

    Warns
    -----
    DataWarning
        At the end, if counts are missing because they cannot be; its ``missing`` holds how many, by
        column and reason.

    Notes
    -----
    Summary levels 040, 050, 140, 150 and 750 (state, county, tract, block group, block), whole
    places only (geographic component and variant ``00``).  Memory grows with the number of records
    (17 bytes for each place of the state) and with ``chunk``.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_pl94
    >>> from bayesrisk.tables import Workload
    >>> try:
    ...     list(iter_pl94("no-such-file.zip", workload=Workload.named("pl94-tables")))
    ... except DataError as error:
    ...     print(error)
    no-such-file.zip: no such file
    """
    yield from iter_segments(PL94, path, workload, chunk, on_error)


def read_pl94(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    """Read tables of a state's 2020 redistricting file into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_pl94`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Raises
    ------
    ArgumentError
        As for :func:`iter_pl94`.
    DataError
        As for :func:`iter_pl94`.

    Warns
    -----
    DataWarning
        As for :func:`iter_pl94`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.readers import read_pl94, write_pl94
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010001001000"] * 2, "hhgq": [0, 5],
    ...                        "votingage": [0, 1], "hispanic": [0, 1], "cenrace": [0, 6]})
    >>> records = Records.from_frame(people, schema=Schema.named("pl94"))
    >>> tables = tabulate(records, Workload.named("pl94-tables"))
    >>> with TemporaryDirectory() as folder:
    ...     write_pl94(tables, folder + "/vt2020.pl.zip")
    ...     read_pl94(folder + "/vt2020.pl.zip", workload=tables.workload) == tables
    True
    """
    return combined(iter_pl94(path, workload=workload, on_error=on_error), workload, path)


def write_pl94(tables: PublishedTables, path: str | Path) -> None:
    """Write published tables in the form of a state's 2020 redistricting file.

    Parameters
    ----------
    tables : PublishedTables
        Exact counts of tables of the file; nothing suppressed.
    path : path-like
        ZIP archive to be made; it must not exist.

    Raises
    ------
    ArgumentError
        If a table is none of the file, places are of several states, or a count is negative or
        suppressed.
    OutputError
        If the file exists or cannot be written.

    Notes
    -----
    Cells that the tables do not hold are ``.``, but for the total of a table all of whose leaves
    are held.  Names, areas and populations of places are blank.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_pl94
    >>> try:
    ...     write_pl94(None, "vt2020.pl")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .zip, got 'vt2020.pl'
    """
    write_segments(PL94, tables, path)


def iter_dhc(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2020 Demographic and Housing Characteristics File, some at a time.

    Parameters
    ----------
    path : path-like
        The ZIP archive of a state as published (``vt2020.dhc.zip``), or a folder with its files.
    workload : Workload
        Which tables at which levels: ``dhc-block`` (P1, P3 to P12, P12A to P12I, P14) or
        ``dhc-tract`` (PCT12, PCT12A to PCT12O), or some of them.  Other tables are refused by name.
    on_error : str, optional
        What becomes of a count that cannot be: ``"refuse"`` raises for the first of them,
        ``"missing"`` counts it and leaves the cell suppressed.  A table with such a count is not
        compared with its total.
    chunk : int, optional
        Records of places in memory at a time.

    Yields
    ------
    PublishedTables
        Tables of different places; at least one piece.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is not read, or another geography.
    DataError
        As for :func:`iter_pl94`.

    Warns
    -----
    DataWarning
        At the end, if counts are missing because they cannot be; its ``missing`` holds how many, by
        column and reason.

    Notes
    -----
    Summary levels 040, 050, 140, 150 and 100 (blocks).

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_dhc
    >>> from bayesrisk.tables import Workload
    >>> try:
    ...     list(iter_dhc("no-such-file.zip", workload=Workload.named("dhc-block")))
    ... except DataError as error:
    ...     print(error)
    no-such-file.zip: no such file
    """
    yield from iter_segments(DHC, path, workload, chunk, on_error)


def read_dhc(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    """Read tables of a state's 2020 Demographic and Housing Characteristics File into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_dhc`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Raises
    ------
    ArgumentError
        As for :func:`iter_dhc`.
    DataError
        As for :func:`iter_dhc`.

    Warns
    -----
    DataWarning
        As for :func:`iter_dhc`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.readers import read_dhc, write_dhc
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010001001000"] * 2, "sex": [0, 1], "age": [30, 4],
    ...                        "race": [1, 3], "hisp": [0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("dhc-block"))
    >>> with TemporaryDirectory() as folder:
    ...     write_dhc(tables, folder + "/vt2020.dhc.zip")
    ...     read_dhc(folder + "/vt2020.dhc.zip", workload=tables.workload) == tables
    True
    """
    return combined(iter_dhc(path, workload=workload, on_error=on_error), workload, path)


def write_dhc(tables: PublishedTables, path: str | Path) -> None:
    """Write published tables in the form of a state's Demographic and Housing Characteristics File.

    Parameters
    ----------
    tables, path
        As for :func:`write_pl94`.

    Raises
    ------
    ArgumentError
        As for :func:`write_pl94`.
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_dhc
    >>> try:
    ...     write_dhc(None, "vt2020.dhc")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .zip, got 'vt2020.dhc'
    """
    write_segments(DHC, tables, path)
