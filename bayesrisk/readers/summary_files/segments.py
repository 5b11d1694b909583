"""Summary files of a state: a header of places, and segments of lines in step with it.

A record number says which place a line of a segment is of.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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
    read_header,
)
from bayesrisk.readers.text.source import Source, find_source, first_lines, list_sources
from bayesrisk.readers.text.tables import (
    STATES,
    Faults,
    Lines,
    Piece,
    TextForm,
    combined,
    csv_pieces,
    digit_matrix,
    line_pieces,
    piece_of_tables,
    place_texts,
    table_counts,
)
from bayesrisk.tables import PublishedTables, Table, Workload

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
#: Places in memory at a time, where the caller does not say.
CHUNK = 2**15
_BYTES = 2**24  # of a header of fixed width in memory at a time


def _header_pieces(source: Source, year: int) -> Iterable[Piece | Lines]:
    """Return the records of a geographic header: of fixed width in 2010, else between ``|``."""
    if year == 2010:
        return line_pieces(source, cells.FIELDS, _BYTES)
    _, line = first_lines(source, None)
    held = line.count(b"|") + 1
    if not len(FIELDS) <= held <= MAX_COLUMNS:
        raise DataError(
            f"{source.name}: must have {len(FIELDS)} to {MAX_COLUMNS} fields between '|', got "
            f"{held}"
        )
    return csv_pieces(
        source,
        [*FIELDS, *(str(i) for i in range(len(FIELDS) + 1, held + 1))],
        wanted=["SUMLEV", "GEOVAR", "GEOCOMP", "LOGRECNO", *PARTS["block"], "BLKGRP"],
        whole=["LOGRECNO"],
        chunk=CHUNK,
        form=TextForm("|", header=False, quotes=False),
    )


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


_KEYS = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
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
    header = read_header(
        source.name,
        _header_pieces(source, product.year),
        workload.levels,
        STATES.get(state.upper()),
        product.summary_levels,
        ("GEOCOMP",) if product.year == 2010 else ("GEOVAR", "GEOCOMP"),
    )
    segments = {n: _segment_source(path, state, n, product) for n in _segments(workload, product)}
    with ExitStack() as stack:
        cursors = {
            number: stack.enter_context(
                _Segment(product, segment, number, workload, header, rows, faults)
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
        workload: Workload,
        header: Header,
        chunk: int,
        faults: Faults,
    ) -> None:
        self.source, self.number, self.state = source, number, source.base[:2].upper()
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
            form=TextForm(
                self.product.delimiter,
                header=False,
                nulls=(_NOT_THERE,) if self.product.year == 2020 else (),
            ),
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

    def counts(self, piece: Piece, table: Table) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return the counts of a table in some rows, and which are missing."""
        first = self.product.codebook[table.name].column
        columns = [str(first + number - 1) for number in self.product.numbers(table)]
        total = str(first) if self.product.has_total(table) else None
        return table_counts(piece, columns, total, table.name, self.faults)

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
            counts[name, title], hidden[name, title] = cursor.counts(piece.take(wanted), table)
    return piece_of_tables(workload, geoids, counts, hidden)


# The public readers of summary files.


def iter_sf1(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2010 Summary File 1, some places at a time.

    Parameters
    ----------
    path : path-like
        The ZIP archive of a state as published, or a folder with its files: the geographic header
        (fixed width, latin-1) and the segments that the tables are in (comma-separated).
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
    r"""Read tables of a state's 2010 Summary File 1 into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_sf1`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Examples
    --------
    >>> from bayesrisk import readers, tables
    >>> file = "al2010.sf1.zip"
    >>> readers.read_sf1(file, workload=tables.Workload.named("sf1-block"))  # doctest: +SKIP
    """
    return combined(iter_sf1(path, workload=workload, on_error=on_error), workload, path)


def iter_pl94(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2020 redistricting file (P.L. 94-171), some places at a time.

    Parameters
    ----------
    path : path-like
        As for :func:`iter_sf1`; the archive is called such as ``vt2020.pl.zip``.
    workload : Workload
        Which tables at which levels: ``pl94-tables`` (P1 to P5) or ``pl94-unit-tables`` (H1), or
        some of them.
    on_error, chunk
        As for :func:`iter_sf1`.

    Yields
    ------
    PublishedTables
        As from :func:`iter_sf1`.

    Notes
    -----
    Summary levels 040, 050, 140, 150 and 750 (state, county, tract, block group, block), whole
    places only (geographic component and variant ``00``).  A count that the file does not publish
    at a level (``.``) is refused.

    Examples
    --------
    >>> from bayesrisk import readers, tables
    >>> work = tables.Workload.named("pl94-tables")
    >>> for piece in readers.iter_pl94("vt2020.pl.zip", workload=work):  # doctest: +SKIP
    ...     print(piece)
    """
    yield from iter_segments(PL94, path, workload, chunk, on_error)


def read_pl94(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    r"""Read tables of a state's 2020 redistricting file into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_pl94`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Examples
    --------
    >>> from bayesrisk import readers, tables
    >>> file = "vt2020.pl.zip"
    >>> readers.read_pl94(file, workload=tables.Workload.named("pl94-tables"))  # doctest: +SKIP
    """
    return combined(iter_pl94(path, workload=workload, on_error=on_error), workload, path)


def iter_dhc(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Read tables of a state's 2020 Demographic and Housing Characteristics File, some at a time.

    Parameters
    ----------
    path : path-like
        As for :func:`iter_sf1`; the archive is called such as ``vt2020.dhc.zip``.
    workload : Workload
        Which tables at which levels: ``dhc-block`` (P1, P3 to P12, P12A to P12I, P14) or
        ``dhc-tract`` (PCT12, PCT12A to PCT12O), or some of them.  Other tables are refused by name.
    on_error, chunk
        As for :func:`iter_sf1`.

    Yields
    ------
    PublishedTables
        As from :func:`iter_sf1`, of summary levels 040, 050, 140, 150 and 100 (blocks).

    Examples
    --------
    >>> from bayesrisk import readers, tables
    >>> work = tables.Workload.named("dhc-block")
    >>> for piece in readers.iter_dhc("vt2020.dhc.zip", workload=work):  # doctest: +SKIP
    ...     print(piece)
    """
    yield from iter_segments(DHC, path, workload, chunk, on_error)


def read_dhc(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    r"""Read tables of a state's 2020 Demographic and Housing Characteristics File into memory.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_dhc`.

    Returns
    -------
    PublishedTables
        Counts at every place of these levels.

    Examples
    --------
    >>> from bayesrisk import readers, tables
    >>> file = "vt2020.dhc.zip"
    >>> readers.read_dhc(file, workload=tables.Workload.named("dhc-block"))  # doctest: +SKIP
    """
    return combined(iter_dhc(path, workload=workload, on_error=on_error), workload, path)
