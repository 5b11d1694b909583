"""Writing published tables in the form of the 2010 Summary File 1."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.summary_files import _sf1_cells as cells
from bayesrisk.readers.summary_files._sf1_geography import FIELDS, LINE
from bayesrisk.readers.text.places import STATES
from bayesrisk.readers.text.write import new_file
from bayesrisk.tables import PublishedTables

__all__ = ["write_sf1"]

_ROWS = 2**12  # lines made at a time
_STAMP = (2011, 1, 1, 0, 0, 0)  # of every member, so that the same tables give the same bytes


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
    work = check.instance(tables, PublishedTables, "tables").workload
    cells.check_workload(work)
    if any(matrix.nnz for matrix in tables.suppressed.values()) or tables.signed:
        raise ArgumentError("tables must have no suppressed and no negative count")
    state = _state(tables)
    records = _records(tables)
    with (
        new_file(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        _member(archive, f"{state}geo2010.sf1", _header(state, records, tables))
        for number in sorted({cells.codebook()[t.name].segment for t in work.tables.values()}):
            rows = _segment(state, records, tables, number)
            _member(archive, f"{state}{number:05d}2010.sf1", rows)


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


def _header(state: str, records: list[tuple[str, int]], tables: PublishedTables) -> Iterator[str]:
    for number, (level, row) in enumerate(records, 1):
        geoid = str(tables.geoids[level][row])
        fields = {
            "STUSAB": state.upper(),
            "SUMLEV": cells.SUMMARY_LEVELS[level],
            "GEOCOMP": "00",
            "LOGRECNO": f"{number:07d}",
            "STATE": geoid[:2],
            "COUNTY": geoid[2:5],
            "TRACT": geoid[5:11],
            "BLKGRP": geoid[11:12],
            "BLOCK": geoid[11:15] if len(geoid) == 15 else "",
        }
        line = "SF1ST ".ljust(LINE)
        for name, text in fields.items():
            start, stop = FIELDS[name]
            line = line[:start] + text.ljust(stop - start) + line[stop:]
        yield line + "\n"


def _segment(
    state: str, records: list[tuple[str, int]], tables: PublishedTables, number: int
) -> Iterator[str]:
    """Yield the rows of a segment, of those levels that have a table in it."""
    book = cells.codebook()
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
            _fill(columns, here, tables, (level, name), rows)
        for (record, _, _), values in zip(part, columns[:, 5:].tolist(), strict=True):
            counts = ",".join("" if v < 0 else str(v) for v in values)
            yield f"SF1ST,{state.upper()},000,{number:02d},{record:07d},{counts}\n"


def _fill(
    columns: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    here: list[int],
    tables: PublishedTables,
    key: tuple[str, str],
    rows: list[int],
) -> None:
    table = tables.workload.tables[key]
    first = cells.codebook()[table.name].column - 1
    if not rows:
        return
    values = tables.counts[key][rows, :].toarray()
    columns[np.array(here)[:, None], first + cells.numbers(table) - 1] = values
    if cells.has_total(table):
        columns[here, first] = values.sum(axis=1)
