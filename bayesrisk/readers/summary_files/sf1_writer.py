"""Writing published tables in the form of the 2010 Summary File 1."""

from pathlib import Path

from bayesrisk.readers.summary_files._products import SF1
from bayesrisk.readers.summary_files._segment_writer import write_segments
from bayesrisk.tables import PublishedTables


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
