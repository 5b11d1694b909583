"""Summary files of 2020 as the Census Bureau publishes them: the redistricting file and the DHC.

``<st>geo2020.pl`` and ``<st>geo2020.dhc`` tell the places, ``<st>000NN2020.pl`` and ``.dhc`` hold
the tables, all with ``|`` between fields and without a header line.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesrisk.readers.summary_files._products import DHC, PL94
from bayesrisk.readers.summary_files._segment_writer import write_segments
from bayesrisk.readers.summary_files._segments import CHUNK, iter_segments
from bayesrisk.readers.text.table_pieces import combined
from bayesrisk.tables import PublishedTables, Workload


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
