"""Tables of the 2010 and 2020 Censuses as NHGIS delivers them: CSV files and their codebooks."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.summary_files import _nhgis_files as files
from bayesrisk.readers.summary_files._products import PRODUCTS
from bayesrisk.readers.text.columns import Faults, Piece, characters, csv_pieces, one_array
from bayesrisk.readers.text.places import check_state, state_code
from bayesrisk.readers.text.table_pieces import (
    check_distinct,
    check_total,
    combined,
    piece_of_tables,
    place_texts,
)
from bayesrisk.tables import PublishedTables, Workload

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
    """Read tables of an NHGIS extract of the 2010 or 2020 Census, some places at a time.

    Parameters
    ----------
    path : path-like
        A CSV file, or the ZIP archive or folder that the extract was delivered in, which may hold
        several: each level is read from the files of that level, each table from the only one of
        them that has it.
    workload : Workload
        Which tables at which levels: of Summary File 1 from extracts of 2010, of the redistricting
        file (``pl94-tables``) or the DHC (``dhc-block``) from extracts of 2020.
    codebook : path-like, optional
        The codebook of a single CSV file; by default the file beside it whose name ends in
        ``_codebook.txt``.  Without one, codes known for the 2010 block data set are used, with a
        ``CodebookWarning``; of 2020 a codebook is needed.
    dataset : str, optional
        Only the files of this data set, ``ds172`` or ``2010_SF1a``, where several hold a table.
    state : str, optional
        FIPS code or postal abbreviation of the state that every place must lie in.
    on_error : str, optional
        What becomes of a count that cannot be: ``"refuse"`` raises for the first of them,
        ``"missing"`` counts it and leaves the cell suppressed.  A table with such a count is not
        compared with its total.
    chunk : int, optional
        Places in memory at a time.

    Yields
    ------
    PublishedTables
        Tables of different places; at least one piece.

    Raises
    ------
    ArgumentError
        If the workload has a cell that is no count of the data set, a level that NHGIS does not
        deliver, or another geography.
    DataError
        If the extract is a time series, of fixed width, or of another year, a table or column is
        missing or there twice, a place is of another level, is there twice or disagrees
        with its state, county, tract or block, a count is no whole number from 0 and ``on_error``
        is ``"refuse"``, or the cells of a table do not add up to its total.

    Warns
    -----
    CodebookWarning
        If there is no codebook.
    DataWarning
        At the end, if counts are missing because they cannot be; its ``missing`` holds how many, by
        column and reason.

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
    faults = Faults(on_error)
    place = state_code(state)
    dataset = None if dataset is None else check.text(dataset, "dataset")
    _check_workload(workload)
    if codebook is not None:
        check.path(codebook, "codebook")
    candidates = files.candidates_of(path, codebook)
    for level in workload.levels:
        chosen = files.files_of(candidates, workload.at(level), level, dataset, codebook)
        yield from _level_pieces(chosen, workload, level, place, rows, faults)
    faults.warn(str(path))


def _level_pieces(
    chosen: Sequence[files.Extract],
    workload: Workload,
    level: str,
    state: str | None,
    chunk: int,
    faults: Faults,
) -> Iterator[PublishedTables]:
    """Yield the tables of one level, from files whose rows are the same places."""
    columns = [files.columns_of(extract, workload, level) for extract in chosen]
    readers = [
        _pieces(extract, names, chunk, faults)
        for extract, names in zip(chosen, columns, strict=True)
    ]
    first = chosen[0]
    seen: list[NDArray[np.int64]] = []
    for pieces in zip_longest(*readers):
        if pieces[0] is None:
            raise _other_places(chosen[1:], pieces[1:], first)
        geoids = _geoids(pieces[0], level, state, first.product.year)
        counts: dict[tuple[str, str], NDArray[np.int64]] = {}
        missing: dict[tuple[str, str], NDArray[np.bool_]] = {}
        for piece, extract, names in zip(pieces, chosen, columns, strict=True):
            if piece is None or len(piece) != len(geoids):
                raise DataError(
                    f"{extract.name}: must have the places of {first.name}, has another number of "
                    "rows"
                )
            if extract is not first:
                found = _geoids(piece, level, state, extract.product.year)
                piece.check("GISJOIN", geoids == found, f"the place of this row in {first.name}")
            for key, cells in names.items():
                counts[key], missing[key] = _counts(piece, workload, key, cells, faults)
        seen.append(geoids.astype(np.int64))
        _check_once(seen[-1:], pieces[0].start, first)
        yield _tables(workload, level, geoids, counts, missing)
    _check_once(seen, 0, first)


def _other_places(
    others: Sequence[files.Extract], pieces: Sequence[Piece | None], first: files.Extract
) -> DataError:
    """Return the error for a file that goes on after the first has ended."""
    name = next(e.name for e, piece in zip(others, pieces, strict=True) if piece is not None)
    return DataError(f"{name}: must have the places of {first.name}, has another number of rows")


def _pieces(
    extract: files.Extract,
    columns: dict[tuple[str, str], list[str]],
    chunk: int,
    faults: Faults,
) -> Iterator[Piece]:
    wanted = [n for n in ("GISJOIN", "YEAR", *_PARTS) if n in extract.header]
    values = sorted({name for names in columns.values() for name in names})
    return csv_pieces(
        extract.source,
        extract.header,
        wanted=[*wanted, *values],
        whole=() if faults.kept else values,
        chunk=chunk,
        skip=files.described(extract, values),
    )


def _tables(
    workload: Workload,
    level: str,
    geoids: NDArray[np.str_],
    counts: dict[tuple[str, str], NDArray[np.int64]],
    missing: dict[tuple[str, str], NDArray[np.bool_]],
) -> PublishedTables:
    """Return places of one level; of other levels there are none."""
    places = {
        name: geoids if name == level else np.zeros(0, dtype="<U15") for name in workload.levels
    }
    for key, table in workload.tables.items():
        if key[0] != level:
            counts[key] = np.zeros((0, len(table.cells)), dtype=np.int64)
    return piece_of_tables(workload, places, counts, missing)


def read_nhgis(
    path: str | Path,
    *,
    workload: Workload,
    codebook: str | Path | None = None,
    dataset: str | None = None,
    state: str | None = None,
    on_error: str = "refuse",
) -> PublishedTables:
    """Read tables of an NHGIS extract of the 2010 or 2020 Census into memory.

    Parameters
    ----------
    path, workload, codebook, dataset, state, on_error
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
    CodebookWarning, DataWarning
        As for :func:`iter_nhgis`.

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
    pieces = iter_nhgis(
        path, workload=workload, codebook=codebook, dataset=dataset, state=state, on_error=on_error
    )
    return combined(pieces, workload, path)


def _check_once(codes: list[NDArray[np.int64]], start: int, extract: files.Extract) -> None:
    """Refuse a place that is there twice; the list is emptied, so that nothing is held twice."""
    every = np.concatenate(codes)
    codes.clear()
    check_distinct(every, start + 1, extract.name, "row", "GISJOIN")


def _check_workload(workload: Workload) -> None:
    """Refuse a workload that no data set holds."""
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
            raise ArgumentError(f"workload must have levels of {', '.join(_LENGTHS)}, got {level}")


def _geoids(piece: Piece, level: str, state: str | None, year: int) -> NDArray[np.str_]:
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
        piece.whole("YEAR", year, year, rule=f"{year}, the year of the data set")
    check_state(piece, "GISJOIN", code, state)
    return place_texts(code)


def _counts(
    piece: Piece, workload: Workload, key: tuple[str, str], names: list[str], faults: Faults
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the counts of a table, and which are missing, compared with their total."""
    size = len(workload.tables[key].cells)
    values = np.empty((len(piece), size), dtype=np.int64)
    missing = np.empty(values.shape, dtype=np.bool_)
    for place, name in enumerate(names[:size]):
        values[:, place], missing[:, place] = faults.counts_of(piece, name, _LARGEST)
    for name in names[size:]:
        total = faults.counts_of(piece, name, _LARGEST)
        check_total(piece, name, total, (values, missing), key[1])
    return values, missing
