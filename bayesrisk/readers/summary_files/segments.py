"""Summary files of a state: a header of places, and segments of lines in step with it.

A record number says which place a line of a segment is of.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.delimited import MAX_COLUMNS
from bayesrisk._files.text import named, shown
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.summary_files import sf1_cells as cells
from bayesrisk.readers.summary_files.sf1_cells import (
    PARTS,
    SUMMARY_LEVELS,
    Block,
    Header,
    numbered,
    read_header,
)
from bayesrisk.readers.text.source import Source, find_source, first_lines, list_sources
from bayesrisk.readers.text.tables import (
    STATES,
    Faults,
    Piece,
    characters,
    check_state,
    check_total,
    csv_pieces,
    digit_matrix,
    piece_of_tables,
    place_texts,
)
from bayesrisk.tables import PublishedTables, Table, Workload

# -----------------------------------------------------------------------------
# The geographic header of a state's summary files of 2020: which record is which place.
#
# Fields between ``|`` in the order of the Bureau's layout; those after BLOCK are not read.


_NAMES = (
    "FILEID STUSAB SUMLEV GEOVAR GEOCOMP CHARITER CIFSN LOGRECNO GEOID GEOCODE REGION DIVISION "
    "STATE STATENS COUNTY COUNTYCC COUNTYNS COUSUB COUSUBCC COUSUBNS SUBMCD SUBMCDCC SUBMCDNS "
    "ESTATE ESTATECC ESTATENS CONCIT CONCITCC CONCITNS PLACE PLACECC PLACENS TRACT BLKGRP BLOCK"
)
#: The first columns, in their order, of 97.
FIELDS = tuple(_NAMES.split())
COLUMNS = 97
_CHUNK = 2**15
_WIDTHS = {"STATE": 2, "COUNTY": 3, "TRACT": 6, "BLKGRP": 1, "BLOCK": 4}
_WHOLE = "00"  # geographic component and variant: the whole place, not a part of it


def read_header_2020(
    source: Source, levels: tuple[str, ...], state: str | None, summary: Mapping[str, str]
) -> Header:
    """Return the records of a geographic header; each number and each place once."""
    _, line = first_lines(source, None)
    held = line.count(b"|") + 1
    if not len(FIELDS) <= held <= MAX_COLUMNS:
        raise DataError(
            f"{source.name}: must have {len(FIELDS)} to {MAX_COLUMNS} fields between '|', got "
            f"{held}"
        )
    names = [*FIELDS, *(str(i) for i in range(len(FIELDS) + 1, held + 1))]
    wanted = ["SUMLEV", "GEOVAR", "GEOCOMP", "LOGRECNO", *_WIDTHS]
    records, found, codes = [], [], []
    for piece in csv_pieces(
        source, names, wanted=wanted, whole=["LOGRECNO"], chunk=_CHUNK, header=False,
        delimiter="|", quotes=False,
    ):  # fmt: skip
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        level = _level_of(piece, levels, summary)
        code = np.full(len(piece), -1, dtype=np.int64)
        for place, name in enumerate(levels):
            rows = np.flatnonzero(level == place)
            code[rows] = _codes(piece.take(rows), name, state)
        if record.size:
            records.append(record)
            found.append(level)
            codes.append(code)
    return numbered(source.name, levels, summary, records, found, codes, "row")


def _level_of(
    piece: Piece, levels: tuple[str, ...], summary: Mapping[str, str]
) -> NDArray[np.int8]:
    whole = pc.and_(
        pc.equal(piece.table.column("GEOVAR"), _WHOLE),
        pc.equal(piece.table.column("GEOCOMP"), _WHOLE),
    ).to_numpy()
    found = np.full(len(piece), -1, dtype=np.int8)
    for place, level in enumerate(levels):
        here = pc.equal(piece.table.column("SUMLEV"), summary[level]).to_numpy()
        found[here & whole] = place
    return found


def _codes(chosen: Piece, level: str, state: str | None) -> NDArray[np.int64]:
    """Return the codes of places of one level as numbers."""
    code = np.zeros(len(chosen), dtype=np.int64)
    fields: dict[str, NDArray[np.uint8]] = {}
    wanted = (*PARTS[level], "BLKGRP") if level == "block" else PARTS[level]
    for name in wanted:
        field = characters(chosen.digits(name, _WIDTHS[name]), _WIDTHS[name])
        if field is None:
            raise chosen.fail(name, 0, f"{_WIDTHS[name]} digits")
        fields[name] = field
    if "STATE" in fields:
        check_state(chosen, "STATE", fields["STATE"], state)
    for name in PARTS[level]:
        for place in range(fields[name].shape[1]):
            code = code * 10 + (fields[name][:, place] - np.uint8(48))
    if level == "block":
        same = fields["BLKGRP"][:, 0] == fields["BLOCK"][:, 0]
        chosen.check("BLKGRP", same, "the first digit of BLOCK")
    return code


# -----------------------------------------------------------------------------
# The summary files that are read: names of files, geographic header, and where each cell stands.
#
# Positions of 2010 are those of ``sf1_codebook.csv``.  Those of 2020 follow the technical
# documentation of the redistricting file (P.L. 94-171) and of the Demographic and Housing
# Characteristics File (DHC): fields between ``|``, five keys first, tables one after another.


_ITERATIONS = "ABCDEFGHIJKLMNO"


@dataclass(frozen=True)
class Product:
    """A summary file.

    Attributes
    ----------
    title : str
        What messages call it.
    year : int
        Of the census.
    ending : str
        Of the names of its files.
    file_id : str
        First field of its lines.
    delimiter : str
        Between the fields of a segment.
    block_level : str
        Summary level of blocks.
    leaves : mapping of str to int
        How many cells a table has that together are its first cell, the total.
    """

    title: str
    year: int
    ending: str
    file_id: str
    delimiter: str
    block_level: str
    leaves: Mapping[str, int]

    @cached_property
    def codebook(self) -> dict[str, Block]:
        """Return the place of every table."""
        if self.year == 2010:
            return cells.codebook()
        return _pl94_codebook() if self.ending == "pl" else _dhc_codebook()

    @property
    def geography(self) -> re.Pattern[str]:
        """The name of the geographic header, the state's abbreviation first."""
        return re.compile(rf"([a-z]{{2}})geo{self.year}\.{self.ending}")

    def segment(self, state: str, number: int) -> str:
        """Return the name of a segment."""
        return f"{state}{number:05d}{self.year}.{self.ending}"

    @property
    def summary_levels(self) -> dict[str, str]:
        """The code of each level of the census geography."""
        return {**SUMMARY_LEVELS, "block": self.block_level}

    def check_workload(self, workload: Workload) -> None:
        """Refuse a workload that the file does not hold."""
        check.instance(workload, Workload, "workload")
        if workload.schema.geography.name != "census":
            raise ArgumentError(
                "workload must be of the census geography, got "
                f"{shown(workload.schema.geography.name)}"
            )
        for table in workload.tables.values():
            self.numbers(table)

    def numbers(self, table: Table) -> NDArray[np.int64]:
        """Return the numbers of a table's cells, from 1, after checking that they are known."""
        found = []
        for cell in table.cells:
            name, number = cells.cell_number(cell, self.title)
            book = self.codebook
            if name not in book or name != table.name or number > book[name].cells:
                raise ArgumentError(
                    f"workload must have tables of counts of {self.title} "
                    f"({', '.join(book)}), got {shown(cell)} in {shown(table.name)}"
                )
            found.append(number)
        return np.array(found, dtype=np.int64)

    def has_total(self, table: Table) -> bool:
        """Return whether all cells of a table together are its first, which it does not hold.

        So it is where every leaf is held: the tables of race and of age by sex.
        """
        base = table.name.rstrip(_ITERATIONS)
        held = {cells.cell_number(cell, self.title)[1] for cell in table.cells}
        return base in self.leaves and 1 not in held and len(held) == self.leaves[base]


def _placed(segment: int, *tables: tuple[str, int], start: int = 6) -> dict[str, Block]:
    """Return tables that follow one another in a segment."""
    found = {}
    for name, size in tables:
        found[name] = Block(segment, start, size)
        start += size
    return found


def _pl94_codebook() -> dict[str, Block]:
    return {
        **_placed(1, ("P1", 71), ("P2", 73)),
        **_placed(2, ("P3", 71), ("P4", 73), ("H1", 3)),
        **_placed(3, ("P5", 10)),
    }


def _dhc_codebook() -> dict[str, Block]:
    """Return the tables of persons by sex, age, race and Hispanic origin.

    P2 (urban and rural) and P13 (medians) stand between them and are not read, nor are the tables
    of sex by age for other groups (P12J to P12AH), which share segments with those that are.
    """
    race = (("P3", 8), ("P4", 3), ("P5", 17), ("P6", 7), ("P7", 15), ("P8", 71), ("P9", 73))
    found = {
        **_placed(5, ("P1", 1)),
        **_placed(5, *race, start=11),
        **_placed(6, ("P10", 71), ("P11", 73), ("P12", 49), ("P12A", 49)),
        **_placed(8, ("P12B", 49), ("P12C", 49), start=153),
        **_placed(9, *((f"P12{letter}", 49) for letter in "DEFGH")),
        **_placed(10, ("P12I", 49)),
        **_placed(13, ("P14", 43), start=183),
        **_placed(21, ("PCT12", 209)),
    }
    for place, letter in enumerate(_ITERATIONS):
        found |= _placed(22 + place, (f"PCT12{letter}", 209))
    return found


_RACES = {"P8": 63, "P9": 64, "P10": 63, "P11": 64, "P12": 46, "PCT12": 206}
SF1 = Product(
    "Summary File 1", 2010, "sf1", "SF1ST", ",", "101",
    {"P6": 6, "P7": 12, **_RACES, "P15": 14, "H13": 7},
)  # fmt: skip
PL94 = Product(
    "the 2020 redistricting file", 2020, "pl", "PLST", "|", "750",
    {"P1": 63, "P2": 64, "P3": 63, "P4": 64, "P5": 7, "H1": 2},
)  # fmt: skip
DHC = Product(
    "the 2020 DHC", 2020, "dhc", "DHCST", "|", "100",
    {"P3": 7, "P4": 2, "P5": 14, "P6": 6, "P7": 12, **_RACES},
)  # fmt: skip
PRODUCTS = (SF1, PL94, DHC)


# -----------------------------------------------------------------------------


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
