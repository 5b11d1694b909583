"""The 2010 Summary File 1 as the Census Bureau publishes it: a header of places and 47 segments.

``<st>geo2010.sf1`` is fixed-width (latin-1); ``<st>000NN2010.sf1`` are comma-separated without
header, and a record number says which place a line is of.  Positions of the technical documentation
of the 2010 Census Summary File 1.
"""

from collections.abc import Iterator
from pathlib import Path

from bayesrisk.readers.summary_files._products import SF1
from bayesrisk.readers.summary_files._segments import CHUNK, iter_segments
from bayesrisk.readers.text.table_pieces import combined
from bayesrisk.tables import PublishedTables, Workload


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
