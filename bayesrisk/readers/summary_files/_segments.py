"""Summary files of a state: a header of places, and segments of lines in step with it.

A record number says which place a line of a segment is of.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import named
from bayesrisk._files.text import MAX_COLUMNS
from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.readers.summary_files._header_2020 import read_header_2020
from bayesrisk.readers.summary_files._products import Product
from bayesrisk.readers.summary_files._sf1_geography import Header, read_header
from bayesrisk.readers.text.columns import Faults, Piece, csv_pieces, digit_matrix
from bayesrisk.readers.text.places import STATES
from bayesrisk.readers.text.source import Source, find_source, first_lines, list_sources
from bayesrisk.readers.text.table_pieces import check_total, piece_of_tables, place_texts
from bayesrisk.tables import PublishedTables, Table, Workload

#: Places in memory at a time, where the caller does not say.
CHUNK = 2**15
_KEYS = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
_LARGEST = 2**52
_NOT_THERE = "."  # in the files of 2020: not published at this level


def iter_segments(
    product: Product, path: str | Path, workload: Workload, chunk: int, on_error: str
) -> Iterator[PublishedTables]:
    """Read tables of a state's summary file, some places at a time."""
    rows = check.integer(chunk, "chunk", lower=1)
    faults = Faults(on_error)
    product.check_workload(workload)
    place = check.path(path, "path")
    with named(str(place)):
        if not place.exists():
            raise DataError(f"{path}: no such file")
    what = f"geographic header (<st>geo{product.year}.{product.ending})"
    source = find_source(path, lambda base: product.geography.fullmatch(base) is not None, what)
    state = source.base[:2]
    read = read_header if product.year == 2010 else read_header_2020
    header = read(source, workload.levels, STATES.get(state.upper()), product.summary_levels)
    segments = {n: _segment_source(path, state, n, product) for n in _segments(workload, product)}
    with ExitStack() as stack:
        cursors = {
            number: stack.enter_context(
                _Segment(product, segment, number, state, workload, header, rows, faults)
            )
            for number, segment in segments.items()
        }
        for start in range(0, header.record.size, rows):
            yield _piece(workload, header, slice(start, start + rows), cursors)
        for cursor in cursors.values():
            cursor.finish()
    faults.warn(str(path))


def _segments(workload: Workload, product: Product) -> list[int]:
    return sorted({product.codebook[t.name].segment for t in workload.tables.values()})


def _segment_source(path: str | Path, state: str, number: int, product: Product) -> Source:
    name = product.segment(state, number)
    for source in list_sources(path):
        if source.base == name:
            return source
    raise DataError(f"{path}: must hold {name}, which the tables asked for are in")


class _Segment:
    """The lines of a segment, taken in step with the records of the header."""

    def __init__(
        self,
        product: Product,
        source: Source,
        number: int,
        state: str,
        workload: Workload,
        header: Header,
        chunk: int,
        faults: Faults,
    ) -> None:
        self.source, self.number, self.state = source, number, state.upper()
        self.product, self.header, self.faults = product, header, faults
        self.tables = {
            key: t
            for key, t in workload.tables.items()
            if product.codebook[t.name].segment == number
        }
        self.columns = self._columns()
        self._pieces = self._read(chunk)
        self._piece: Piece | None = None
        self._numbers: IntArray = np.zeros(0, dtype=np.int64)
        self._last = 0

    def __enter__(self) -> "_Segment":
        return self

    def __exit__(self, *_: object) -> None:
        self._pieces.close()

    def _columns(self) -> list[str]:
        """Return the names of the wanted columns, which are their numbers from 1."""
        found = set()
        for table in self.tables.values():
            place = self.product.codebook[table.name]
            total = [1] if self.product.has_total(table) else []
            wanted = [*self.product.numbers(table).tolist(), *total]
            found |= {place.column + number - 1 for number in wanted}
        return [str(column) for column in sorted(found)]

    def _read(self, chunk: int) -> Any:
        _, line = first_lines(self.source, None)
        held = line.count(self.product.delimiter.encode()) + 1
        if not int(self.columns[-1]) <= held <= MAX_COLUMNS:
            raise DataError(
                f"{self.source.name}: must have {self.columns[-1]} to {MAX_COLUMNS} columns, got "
                f"{held}"
            )
        names = [*_KEYS, *(str(i) for i in range(6, held + 1))]
        keys = ["CIFSN", "LOGRECNO"]
        for piece in csv_pieces(
            self.source,
            names,
            wanted=["STUSAB", *keys, *self.columns],
            whole=keys if self.faults.kept else [*keys, *self.columns],
            chunk=chunk,
            header=False,
            delimiter=self.product.delimiter,
            nulls=(_NOT_THERE,) if self.product.year == 2020 else (),
        ):
            self._check(piece)
            yield piece

    def _check(self, piece: Piece) -> None:
        """Segment, state and record numbers are what they must be."""
        number = piece.whole("CIFSN", self.number, self.number)
        same = np.array(piece.table.column("STUSAB").to_pylist()) == self.state
        piece.check("STUSAB", same if number.size else np.ones(0, dtype=bool), self.state)
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        rising = np.diff(np.concatenate([[self._last], record])) > 0
        rule = "larger than in the row above; sort the lines of the segment by it"
        piece.check("LOGRECNO", rising, rule)
        every = self.header.record
        place = np.minimum(np.searchsorted(every, record), every.size - 1)
        piece.check("LOGRECNO", every[place] == record, "a record of the geographic header")
        if record.size:
            self._last = int(record[-1])

    def take(self, records: IntArray) -> tuple[Piece, IntArray]:
        """Return rows up to the last of some records, and which row is of which record (or -1)."""
        last = int(records[-1])
        held = [] if self._piece is None else [self._piece]
        while not held or not len(held[-1]) or self._end(held[-1]) < last:
            following = next(self._pieces, None)
            if following is None:
                break
            held.append(following)
        piece = _joined(held)
        numbers = piece.table.column("LOGRECNO").to_numpy()
        cut = int(np.searchsorted(numbers, last, side="right"))
        self._piece = Piece(piece.name, piece.start + cut, piece.table.slice(cut))
        taken = numbers[:cut]
        row = np.searchsorted(taken, records)
        found = np.zeros(records.size, dtype=bool)
        inside = row < cut
        found[inside] = taken[row[inside]] == records[inside]
        return Piece(piece.name, piece.start, piece.table.slice(0, cut)), np.where(found, row, -1)

    @staticmethod
    def _end(piece: Piece) -> int:
        return int(piece.table.column("LOGRECNO")[len(piece) - 1].as_py())

    def finish(self) -> None:
        """Read on to the end of the file: what follows is checked too."""
        for _ in self._pieces:
            continue


def _joined(pieces: list[Piece]) -> Piece:
    tables = [piece.table for piece in pieces]
    return Piece(pieces[0].name, pieces[0].start, pa.concat_tables(tables))


def _piece(
    workload: Workload, header: Header, part: slice, cursors: dict[int, _Segment]
) -> PublishedTables:
    """Return the tables of the records in one part of the header."""
    records, level, code = header.record[part], header.level[part], header.code[part]
    rows = {name: np.flatnonzero(level == i) for i, name in enumerate(header.levels)}
    width = workload.schema.geography.width
    geoids = {name: place_texts(digit_matrix(code[r], width(name))) for name, r in rows.items()}
    counts: dict[tuple[str, str], IntArray] = {}
    hidden: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for cursor in cursors.values():
        piece, row = cursor.take(records)
        for (name, title), table in cursor.tables.items():
            wanted = row[rows[name]]
            if (wanted < 0).any():
                missing = int(records[rows[name]][np.argmax(wanted < 0)])
                raise DataError(
                    f"{piece.name}: must have a row for record {missing} ({name}), got none; is "
                    "the file whole?"
                )
            counts[name, title], hidden[name, title] = _counts(
                piece.take(wanted), table, cursor.product, cursor.faults
            )
    return piece_of_tables(workload, geoids, counts, hidden)


def _counts(
    piece: Piece, table: Table, product: Product, faults: Faults
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the counts of a table and which are missing, compared with their total."""
    first = product.codebook[table.name].column
    columns = [str(first + number - 1) for number in product.numbers(table)]
    values = np.empty((len(piece), len(columns)), dtype=np.int64)
    missing = np.empty(values.shape, dtype=np.bool_)
    for place, column in enumerate(columns):
        values[:, place], missing[:, place] = _whole(piece, column, table, faults)
    if product.has_total(table):
        total = _whole(piece, str(first), table, faults)
        check_total(piece, str(first), total, (values, missing), table.name)
    return values, missing


def _whole(
    piece: Piece, column: str, table: Table, faults: Faults
) -> tuple[IntArray, NDArray[np.bool_]]:
    held = piece.table.column(column)
    if held.null_count:
        row = int(np.argmax(held.is_null().to_numpy()))
        rule = f"a count: '{_NOT_THERE}' says that {table.name} is not published at this level"
        raise piece.fail(column, row, rule)
    return faults.counts_of(piece, column, _LARGEST)
