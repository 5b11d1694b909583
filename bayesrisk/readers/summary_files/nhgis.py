"""Block tables of the 2010 Census as NHGIS delivers them: one CSV file and its codebook."""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import split_line
from bayesrisk.exceptions import ArgumentError, CodebookWarning, DataError
from bayesrisk.readers.summary_files import _nhgis_codebook as books
from bayesrisk.readers.summary_files import _sf1_cells as cells
from bayesrisk.readers.text.columns import Piece, characters, csv_pieces, header_of, one_array
from bayesrisk.readers.text.places import check_state, state_code
from bayesrisk.readers.text.source import Source, one_source
from bayesrisk.readers.text.table_pieces import (
    check_distinct,
    combined,
    piece_of_tables,
    place_texts,
)
from bayesrisk.tables import PublishedTables, Workload

__all__ = ["iter_nhgis", "read_nhgis"]

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
_LARGEST = 2**52
_GISJOIN = re.compile(r"G[0-9]+")


def iter_nhgis(
    path: str | Path,
    *,
    workload: Workload,
    codebook: str | Path | None = None,
    state: str | None = None,
    chunk: int = CHUNK,
) -> Iterator[PublishedTables]:
    """Read tables of an NHGIS extract of the 2010 Census, some places at a time.

    Parameters
    ----------
    path : path-like
        The CSV file, or the ZIP archive that it was delivered in.
    workload : Workload
        Which tables of Summary File 1, at the level of the file.
    codebook : path-like, optional
        The codebook; by default the file beside it whose name ends in ``_codebook.txt``.  Without
        one, codes known for the 2010 block data set are used, with a ``CodebookWarning``.
    state : str, optional
        FIPS code or postal abbreviation of the state that every place must lie in.
    chunk : int, optional
        Places in memory at a time.

    Yields
    ------
    PublishedTables
        Tables of different places; at least one piece.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is no count of Summary File 1, several levels, or another
        geography.
    DataError
        If a table or column is missing, a place is of another level, is there twice or disagrees
        with its state, county, tract or block, a count is negative, or the cells of a table do not
        add up to its total.

    Warns
    -----
    CodebookWarning
        If there is no codebook.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_nhgis
    >>> from bayesrisk.tables import Workload
    >>> try:
    ...     list(iter_nhgis("no-such-file.csv", workload=Workload.named("sf1-block")))
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """
    rows = check.integer(chunk, "chunk", lower=1)
    place = state_code(state)
    cells.check_workload(workload)
    level = _level(workload)
    if codebook is not None:
        check.path(codebook, "codebook")
    source = one_source(path, ".csv")
    codes = _codes(source, codebook)
    header = header_of(source)
    columns = _columns(source, workload, codes, header)
    wanted = [n for n in ("GISJOIN", "YEAR", *_PARTS) if n in header]
    values = sorted({name for names in columns.values() for name in names})
    seen: list[NDArray[np.int64]] = []
    pieces = csv_pieces(
        source,
        header,
        wanted=[*wanted, *values],
        whole=values,
        chunk=rows,
        skip=_described(source, header, values),
    )
    for piece in pieces:
        geoids = _geoids(piece, level, place)
        seen.append(geoids.astype(np.int64))
        _check_once(seen[-1:], piece.start, source)
        counts = {key: _counts(piece, workload, key, names) for key, names in columns.items()}
        yield piece_of_tables(workload, {level: geoids}, counts)
    _check_once(seen, 0, source)


def read_nhgis(
    path: str | Path,
    *,
    workload: Workload,
    codebook: str | Path | None = None,
    state: str | None = None,
) -> PublishedTables:
    """Read tables of an NHGIS extract of the 2010 Census into memory.

    Parameters
    ----------
    path, workload, codebook, state
        As for :func:`iter_nhgis`.

    Returns
    -------
    PublishedTables
        Counts at every place of the file.

    Raises
    ------
    ArgumentError
        As for :func:`iter_nhgis`.
    DataError
        As for :func:`iter_nhgis`.

    Warns
    -----
    CodebookWarning
        If there is no codebook.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.readers import read_nhgis, write_nhgis
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"block": ["500010001001000"] * 2, "sex": [0, 1], "age": [30, 4],
    ...                        "race": [1, 3], "hisp": [0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> with TemporaryDirectory() as folder:
    ...     write_nhgis(tables, folder + "/nhgis0001_csv.zip")
    ...     read_nhgis(folder + "/nhgis0001_csv.zip", workload=tables.workload) == tables
    True
    """
    pieces = iter_nhgis(path, workload=workload, codebook=codebook, state=state)
    return combined(pieces, workload, path)


def _check_once(codes: list[NDArray[np.int64]], start: int, source: Source) -> None:
    every = np.concatenate(codes)
    rows = np.arange(start + 1, start + every.size + 1)
    check_distinct(every, rows, source.name, "row", "GISJOIN")


def _level(workload: Workload) -> str:
    if len(workload.levels) != 1 or workload.levels[0] not in _LENGTHS:
        raise ArgumentError(
            f"workload must have one level of {', '.join(_LENGTHS)}, got "
            f"{', '.join(workload.levels)}"
        )
    return workload.levels[0]


def _codes(source: Source, codebook: str | Path | None) -> dict[str, str]:
    book = books.codebook_of(source) if codebook is None else books.as_source(codebook)
    if book is not None:
        return books.read_codebook(book)
    warnings.warn(
        f"{source.name}: has no codebook beside it; the codes known for the 2010 block data set "
        "are used",
        CodebookWarning,
        stacklevel=3,
    )
    return books.built_in_columns()


def _columns(
    source: Source, workload: Workload, codes: dict[str, str], header: list[str]
) -> dict[tuple[str, str], list[str]]:
    """Return the columns of each table: its cells, then its total where it has one to compare."""
    if "GISJOIN" not in header:
        raise DataError(f"{source.name}: must have a column 'GISJOIN'; has {' '.join(header[:20])}")
    found = {}
    for key, table in workload.tables.items():
        if table.name not in codes:
            raise DataError(
                f"{source.name}: must have table {table.name}, which the codebook does not name; "
                f"it names {', '.join(codes)}"
            )
        numbers = [*cells.numbers(table).tolist(), *([1] if cells.has_total(table) else [])]
        names = [f"{codes[table.name]}{number:03d}" for number in numbers]
        for name in names:
            if name not in header:
                raise DataError(f"{source.name}: must have a column {name!r} ({table.name})")
        found[key] = names
    return found


def _described(source: Source, header: list[str], values: list[str]) -> int:
    """Return 1 if the second line describes the columns in words, else 0."""
    with source.open() as stream:
        stream.readline()
        line = stream.readline().decode("latin-1").rstrip("\n")
    row = dict(zip(header, split_line(line, source.name), strict=False))
    words = not _GISJOIN.fullmatch(row.get("GISJOIN", "G0"))
    return int(words and not any(row.get(name, "0").strip("-").isdigit() for name in values))


def _geoids(piece: Piece, level: str, state: str | None) -> NDArray[np.str_]:
    """Return the published codes of places, compared with the columns of their parts."""
    values = one_array(piece.table.column("GISJOIN"))
    length = _LENGTHS[level]
    rule = f"G and the {length - 1} digits of a {level.replace('_', ' ')}"
    matrix = characters(values, length)
    if matrix is None:
        lengths = np.array([len(text) for text in values.to_pylist()])
        raise piece.fail("GISJOIN", int(np.argmax(lengths != length)), rule)
    good = (matrix[:, 0] == ord("G")) & ((matrix[:, 1:] - np.uint8(48)) <= 9).all(axis=1)
    good &= matrix[:, 3] == ord("0")
    if length > _LENGTHS["state"]:
        good &= matrix[:, 7] == ord("0")
    piece.check("GISJOIN", good, rule)
    cuts = _LEVELS[length][1]
    code = np.hstack([matrix[:, a:b] for a, b in zip(cuts[::2], cuts[1::2], strict=True)])
    width = code.shape[1]
    for name, (start, stop) in _PARTS.items():
        if name in piece.table.column_names and stop <= width:
            part = characters(piece.digits(name, stop - start), stop - start)
            same = (code[:, start:stop] == part).all(axis=1)
            piece.check(name, same, "the same as in GISJOIN")
    if "YEAR" in piece.table.column_names:
        piece.whole("YEAR", 2010, 2010)
    check_state(piece, "GISJOIN", code, state)
    return place_texts(code)


def _counts(
    piece: Piece, workload: Workload, key: tuple[str, str], names: list[str]
) -> NDArray[np.int64]:
    size = len(workload.tables[key].cells)
    values = np.empty((len(piece), size), dtype=np.int64)
    for place, name in enumerate(names[:size]):
        values[:, place] = piece.whole(name, 0, _LARGEST)
    for name in names[size:]:
        rule = f"the sum of the cells of {key[1]}"
        piece.check(name, piece.whole(name, 0, _LARGEST) == values.sum(axis=1), rule)
    return values
