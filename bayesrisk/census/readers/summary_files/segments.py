"""A state's summary file: a geographic header, and segments of lines aligned with it.

Each line of a segment names its place by a record number.
"""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import MAX_COLUMNS
from bayesrisk._base.validation import IntArray
from bayesrisk.census.readers import text as forms
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables import PublishedTables, Table, Workload
from bayesrisk.tables.cells import positions

# Where the cells of the 2010 Summary File 1 stand: table, number, segment, column.
#
# ``sf1_codebook.csv`` has a line for each table of whole counts: its segment, the column of its
# first cell (1 is FILEID) and how many cells follow one another (positions of the technical
# documentation of the 2010 Census Summary File 1, as classified in the Census Bureau's
# ``recon_replication``). Tables of medians and averages (P13, P17, H12) are no counts and are left
# out.

_CELL = re.compile(r"(PCT|P|H)(\d{3})([A-Z]?)(\d{3,4})")
_TABLE = re.compile(r"(PCT|P|H)0*(\d+)([A-Z]?)")


class Block(NamedTuple):
    """The columns of a table in its segment, counted from 1."""

    segment: int
    column: int
    cells: int


@cache
def sf1_codebook() -> dict[str, Block]:
    """Return the segment and columns of every table of the 2010 Summary File 1."""
    text = (resources.files("bayesrisk.census.readers") / "sf1_codebook.csv").read_text(
        encoding="utf-8"
    )
    return {
        row["table"]: Block(int(row["segment"]), int(row["column"]), int(row["cells"]))
        for row in csv.DictReader(text.splitlines())
    }


def usual_table(text: str) -> str | None:
    """Return a table's name in the package's spelling: ``P012A`` becomes ``P12A``."""
    match = _TABLE.fullmatch(text.strip().upper())
    return None if match is None else f"{match[1]}{int(match[2])}{match[3]}"


def cell_number(cell: str, title: str = "Summary File 1") -> tuple[str, int]:
    """Return the table and number of a published cell, such as ``P012A003``."""
    if cell == "H00010001":  # alone in having a digit more
        return "H1", 1
    match = _CELL.fullmatch(cell)
    if match is None or len(match[3] + match[4]) != 4:
        raise ArgumentError("workload", f"must have cells of {title}", got=cell)
    return f"{match[1]}{int(match[2])}{match[3]}", int(match[4])


# The geographic header: which record is which place.
#
# In 2010 lines of fixed width; in 2020 fields between ``|`` in the order of the Bureau's layout, of
# which those after BLOCK are not read.

_NAMES = (
    "FILEID STUSAB SUMLEV GEOVAR GEOCOMP CHARITER CIFSN LOGRECNO GEOID GEOCODE REGION DIVISION "
    "STATE STATENS COUNTY COUNTYCC COUNTYNS COUSUB COUSUBCC COUSUBNS SUBMCD SUBMCDCC SUBMCDNS "
    "ESTATE ESTATECC ESTATENS CONCIT CONCITCC CONCITNS PLACE PLACECC PLACENS TRACT BLKGRP BLOCK"
)
#: The first columns of 2020, in their order, of 97.
FIELDS = tuple(_NAMES.split())
COLUMNS = 97
#: First character (from 0) and the one after the last of the columns of 2010 that are used.
WIDE_FIELDS = {
    "LOGRECNO": (18, 25),
    "STUSAB": (6, 8),
    "SUMLEV": (8, 11),
    "GEOCOMP": (11, 13),
    "STATE": (27, 29),
    "COUNTY": (29, 32),
    "TRACT": (54, 60),
    "BLKGRP": (60, 61),
    "BLOCK": (61, 65),
}
LINE = 500  # characters of a line of 2010
#: Summary level of each level of the census geography, of blocks in 2010.
SUMMARY_LEVELS = {
    "nation": "010",
    "state": "040",
    "county": "050",
    "tract": "140",
    "block_group": "150",
    "block": "101",
}
#: Columns of a level's code.
PARTS = {
    "nation": (),
    "state": ("STATE",),
    "county": ("STATE", "COUNTY"),
    "tract": ("STATE", "COUNTY", "TRACT"),
    "block_group": ("STATE", "COUNTY", "TRACT", "BLKGRP"),
    "block": ("STATE", "COUNTY", "TRACT", "BLOCK"),
}
_WIDTHS = {"STATE": 2, "COUNTY": 3, "TRACT": 6, "BLKGRP": 1, "BLOCK": 4}
_WHOLE = "00"  # geographic component and variant: the whole place, not a part of it
#: Places in memory at a time, where the caller does not say.
CHUNK = 2**15
_BYTES = 2**24  # of a header of fixed width in memory at a time


class Header(NamedTuple):
    """A state's geographic records: all record numbers, and level and code of those requested.

    ``level`` is a position among the requested levels, -1 for other records. Codes are numbers, as
    the level gives their leading zeros.
    """

    levels: tuple[str, ...]
    record: IntArray
    level: NDArray[np.int8]
    code: IntArray


def _column_names(
    source: forms.Source, delimiter: str, first: tuple[str, ...], least: int
) -> list[str]:
    """Return column names for a file without header: the given ones, then numbers."""
    count = forms.first_lines(source, None)[1].count(delimiter.encode()) + 1
    if not least <= count <= MAX_COLUMNS:
        raise DataError(
            f"{source.name}: must have {least} to {MAX_COLUMNS} columns between {delimiter!r}, got "
            f"{count}"
        )
    return [*first, *(str(number) for number in range(len(first) + 1, count + 1))]


def _header_pieces(source: forms.Source, year: int) -> Iterable[forms.Piece]:
    """Return pieces of the geographic header: fixed width in 2010, else delimited by ``|``."""
    if year == 2010:
        return (lines.piece(WIDE_FIELDS) for lines in forms.line_pieces(source, _BYTES))
    return forms.csv_pieces(
        source,
        _column_names(source, "|", FIELDS, len(FIELDS)),
        wanted=["SUMLEV", "GEOVAR", "GEOCOMP", "LOGRECNO", *PARTS["block"], "BLKGRP"],
        whole=["LOGRECNO"],
        chunk=CHUNK,
        form=forms.TextForm("|", header=False, quotes=False),
    )


def read_header(product: "Product", source: forms.Source, levels: tuple[str, ...]) -> Header:
    """Return the records of a geographic header, with the codes of their levels."""
    unit, variants = "row", ["GEOVAR", "GEOCOMP"]
    if product.year == 2010:
        unit, variants = "line", ["GEOCOMP"]
    summary, state = product.summary_levels, forms.STATES.get(source.base[:2].upper())
    parts: list[tuple[IntArray, NDArray[np.int8], IntArray]] = []
    for piece in _header_pieces(source, product.year):
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        whole = np.logical_and.reduce([piece.equals(column, _WHOLE) for column in variants])
        level = np.full(len(piece), -1, dtype=np.int8)
        code = np.full(len(piece), -1, dtype=np.int64)
        for place, title in enumerate(levels):
            mask = piece.equals("SUMLEV", summary[title]) & whole
            level[mask] = place
            rows = np.flatnonzero(mask)
            code[rows] = _codes(piece.take(rows), title, state)
        if record.size:
            parts.append((record, level, code))
    if not parts:
        raise DataError(f"{source.name}: must have at least one {unit}, got none")
    record, level, code = (np.concatenate(part) for part in zip(*parts, strict=True))
    for place, title in enumerate(levels):
        rows = np.flatnonzero(level == place)
        if not rows.size:
            raise DataError(
                f"{source.name}: must have records of level {title!r} (summary level "
                f"{summary[title]}), got none"
            )
        column = PARTS[title][-1] if PARTS[title] else "SUMLEV"
        forms.check_distinct(code[rows], rows + 1, source.name, unit, column)
    if (np.diff(record) <= 0).any():
        # Segments are in the order of their record numbers, whatever that of the header is.
        forms.check_distinct(record, 1, source.name, unit, "LOGRECNO")
    order = np.argsort(record)
    return Header(levels, record[order], level[order], code[order])


def _codes(chosen: forms.Piece, level: str, state: str | None) -> IntArray:
    code = np.zeros(len(chosen), dtype=np.int64)
    for name in PARTS[level]:
        field = chosen.matrix(name, _WIDTHS[name])
        if name == "STATE":
            forms.check_state(chosen, name, field, state)
        if name == "BLOCK":
            group = chosen.matrix("BLKGRP", 1)
            chosen.check("BLKGRP", group[:, 0] == field[:, 0], "the first digit of BLOCK")
        for place in range(field.shape[1]):
            code = code * 10 + (field[:, place] - np.uint8(48))
    return code


# The summary files that are read: names of files, geographic header, and where each cell stands.
#
# Positions of 2010 are those of ``sf1_codebook.csv``.  Those of 2020 follow the technical
# documentation of the redistricting file (P.L. 94-171) and of the Demographic and Housing
# Characteristics File (DHC): fields between ``|``, five keys first, tables one after another.

_ITERATIONS = "ABCDEFGHIJKLMNO"


@dataclass(frozen=True)
class Product:
    """A summary file product: its title, census year, file ending and layout.

    ``delimiter`` separates the fields of a segment, and ``block_level`` is the summary level of
    blocks. ``leaves`` is the number of a table's cells that add up to its first cell, the total.
    """

    title: str
    year: int
    ending: str
    delimiter: str
    block_level: str
    leaves: Mapping[str, int]

    @cached_property
    def codebook(self) -> dict[str, Block]:
        """Return the segment and columns of every table."""
        if self.year == 2010:
            return sf1_codebook()
        return _pl94_codebook() if self.ending == "pl" else _dhc_codebook()

    def segment(self, state: str, number: int) -> str:
        """Return a segment's file name."""
        return f"{state}{number:05d}{self.year}.{self.ending}"

    @property
    def summary_levels(self) -> dict[str, str]:
        """The code of each level of the census geography."""
        return {**SUMMARY_LEVELS, "block": self.block_level}

    def check_workload(self, workload: Workload) -> None:
        """Raise if the product does not contain the workload."""
        check.instance(workload, Workload, "workload")
        if workload.schema.geography.name != "census":
            raise ArgumentError(
                "workload", "must be of the census geography", got=workload.schema.geography.name
            )
        for table in workload.tables.values():
            self.numbers(table)

    def numbers(self, table: Table) -> IntArray:
        """Return the numbers of a table's cells, from 1; raise if one is unknown."""
        numbers, book = [], self.codebook
        for cell in table.cells:
            name, number = cell_number(cell, self.title)
            if name not in book or name != table.name or number > book[name].cells:
                raise ArgumentError(
                    "workload",
                    f"must have tables of counts of {self.title} ({', '.join(book)})",
                    got=cell,
                    advice=f" in {quote(table.name)}",
                )
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)

    def has_total(self, table: Table) -> bool:
        """Return whether a table's cells add up to its first cell, which it leaves out.

        This holds where every leaf cell is included: the tables of race, and of age by sex.
        """
        numbers = set(self.numbers(table).tolist())
        return self.leaves.get(table.name.rstrip(_ITERATIONS)) == len(numbers) and 1 not in numbers

    def with_total(self, table: Table) -> list[int]:
        """Return the numbers of a table's cells, then that of their total if there is one."""
        return [*self.numbers(table).tolist(), *([1] if self.has_total(table) else [])]


def _placed(segment: int, *tables: tuple[str, int], start: int = 6) -> dict[str, Block]:
    """Return the columns of tables that follow one another in a segment."""
    codebook = {}
    for name, size in tables:
        codebook[name] = Block(segment, start, size)
        start += size
    return codebook


def _pl94_codebook() -> dict[str, Block]:
    return {
        **_placed(1, ("P1", 71), ("P2", 73)),
        **_placed(2, ("P3", 71), ("P4", 73), ("H1", 3)),
        **_placed(3, ("P5", 10)),
    }


def _dhc_codebook() -> dict[str, Block]:
    """Return the columns of person tables by sex, age, race and Hispanic origin.

    P2 (urban and rural) and P13 (medians) stand between them and are not read. Nor are the tables
    of sex by age for other groups (P12J to P12AH), which share segments with those that are read.
    """
    race = (("P3", 8), ("P4", 3), ("P5", 17), ("P6", 7), ("P7", 15), ("P8", 71), ("P9", 73))
    codebook = {
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
        codebook |= _placed(22 + place, (f"PCT12{letter}", 209))
    return codebook


_RACES = {"P8": 63, "P9": 64, "P10": 63, "P11": 64, "P12": 46, "PCT12": 206}
SF1 = Product(
    "Summary File 1", 2010, "sf1", ",", "101",
    {"P6": 6, "P7": 12, **_RACES, "P15": 14, "H13": 7},
)  # fmt: skip
PL94 = Product(
    "the 2020 redistricting file", 2020, "pl", "|", "750",
    {"P1": 63, "P2": 64, "P3": 63, "P4": 64, "P5": 7, "H1": 2},
)  # fmt: skip
DHC = Product(
    "the 2020 DHC", 2020, "dhc", "|", "100",
    {"P3": 7, "P4": 2, "P5": 14, "P6": 6, "P7": 12, **_RACES},
)  # fmt: skip
PRODUCTS = (SF1, PL94, DHC)


_KEYS = ("FILEID", "STUSAB", "CHARITER", "CIFSN", "LOGRECNO")
_NOT_THERE = "."  # in the files of 2020: not published at this level


def _tables(
    product: Product, path: str | Path, workload: Workload, chunk: int, on_error: str
) -> Iterator[PublishedTables]:
    """Yield tables of a state's summary file, some places at a time."""
    rows = check.integer(chunk, "chunk", lower=1)
    faults = forms.Faults(on_error)
    product.check_workload(workload)
    ending = f"geo{product.year}.{product.ending}"
    name = re.compile(rf"[a-z]{{2}}{re.escape(ending)}")
    description = f"geographic header (<st>{ending})"
    source = forms.find_source(path, lambda base: name.fullmatch(base) is not None, description)
    header = read_header(product, source, workload.levels)
    numbers = sorted({product.codebook[t.name].segment for t in workload.tables.values()})
    names = [product.segment(source.base[:2], number) for number in numbers]
    segments = [
        forms.find_source(path, name.__eq__, f"{name}, which the tables asked for are in")
        for name in names
    ]
    with ExitStack() as stack:
        cursors = []
        for number, segment in zip(numbers, segments, strict=True):
            cursors.append(_Segment(product, segment, number, workload, header, rows, faults))
            stack.enter_context(closing(cursors[-1].pieces))
        for start in range(0, header.record.size, rows):
            yield _piece(workload, header, slice(start, start + rows), cursors)
        for cursor in cursors:
            for _ in cursor.pieces:  # what follows is checked, too
                continue
    faults.warn(str(path))


class _Segment:
    """The lines of a segment, read in step with the header's records."""

    def __init__(
        self,
        product: Product,
        source: forms.Source,
        number: int,
        workload: Workload,
        header: Header,
        chunk: int,
        faults: forms.Faults,
    ) -> None:
        self.source, self.number, self.state = source, number, source.base[:2].upper()
        self.product, self.header, self.faults = product, header, faults
        book = product.codebook
        self.tables = {k: t for k, t in workload.tables.items() if book[t.name].segment == number}
        # Columns have their numbers, from 1, for names.
        self.columns = {
            key: [str(book[table.name].column + n - 1) for n in product.with_total(table)]
            for key, table in self.tables.items()
        }
        self.pieces = self._read(chunk)
        self._piece: forms.Piece | None = None
        self._last = 0

    def _read(self, chunk: int) -> Generator[forms.Piece]:
        columns = sorted({name for names in self.columns.values() for name in names}, key=int)
        delimiter = self.product.delimiter
        keys = ["CIFSN", "LOGRECNO"]
        for piece in forms.csv_pieces(
            self.source,
            _column_names(self.source, delimiter, _KEYS, int(columns[-1])),
            wanted=["STUSAB", *keys, *columns],
            whole=keys if self.faults.lenient else [*keys, *columns],
            chunk=chunk,
            form=forms.TextForm(
                delimiter, header=False, nulls=(_NOT_THERE,) if self.product.year == 2020 else ()
            ),
        ):
            self._check(piece)
            yield piece

    def _check(self, piece: forms.Piece) -> None:
        """Raise if the segment, state or record numbers are wrong."""
        piece.whole("CIFSN", self.number, self.number)
        piece.check("STUSAB", piece.equals("STUSAB", self.state), self.state)
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        rising = np.diff(np.concatenate([[self._last], record])) > 0
        rule = "larger than in the row above; sort the lines of the segment by it"
        piece.check("LOGRECNO", rising, rule)
        place = positions(record, self.header.record)
        piece.check("LOGRECNO", place >= 0, "a record of the geographic header")
        if record.size:
            self._last = int(record[-1])

    def take(self, records: IntArray) -> tuple[forms.Piece, IntArray]:
        """Return the rows up to the last given record, and each record's row (or -1)."""
        last = int(records[-1])
        pieces = [] if self._piece is None else [self._piece]
        while not pieces or not len(pieces[-1]) or pieces[-1].table["LOGRECNO"][-1].as_py() < last:
            following = next(self.pieces, None)
            if following is None:
                break
            pieces.append(following)
        table = pa.concat_tables([piece.table for piece in pieces])
        piece = forms.Piece(pieces[0].name, pieces[0].start, table)
        numbers = piece.table.column("LOGRECNO").to_numpy()
        cut = int(np.searchsorted(numbers, last, side="right"))
        self._piece = forms.Piece(piece.name, piece.start + cut, piece.table.slice(cut))
        part = forms.Piece(piece.name, piece.start, piece.table.slice(0, cut))
        return part, positions(records, numbers[:cut])


def _piece(
    workload: Workload, header: Header, part: slice, cursors: list[_Segment]
) -> PublishedTables:
    records, level, code = header.record[part], header.level[part], header.code[part]
    rows = {name: np.flatnonzero(level == i) for i, name in enumerate(header.levels)}
    width = workload.schema.geography.width
    geoids = {
        name: forms.place_texts(forms.digit_matrix(code[r], width(name)))
        for name, r in rows.items()
    }
    counts: dict[tuple[str, str], IntArray] = {}
    hidden: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for cursor in cursors:
        piece, row = cursor.take(records)
        for key, table in cursor.tables.items():
            name = key[0]
            wanted = row[rows[name]]
            if (wanted < 0).any():
                missing = int(records[rows[name]][np.argmax(wanted < 0)])
                raise DataError(
                    f"{piece.name}: must have a row for record {missing} ({name}), got none; is "
                    "the file whole?"
                )
            counts[key], hidden[key] = forms.table_counts(
                piece.take(wanted), cursor.columns[key], table, cursor.faults
            )
    return forms.piece_of_tables(workload, geoids, counts, hidden)


# The public readers of summary files.


def iter_sf1(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Yield tables of a state's 2010 Summary File 1, some places at a time; at least one piece.

    Parameters
    ----------
    path : path-like
        The ZIP archive of a state as published, or a folder with its files: the geographic header
        (fixed width, latin-1) and the segments with the tables (comma-separated).
    workload : Workload
        The tables and levels, such as ``Workload.named("sf1-block")``; all tables of counts are in
        ``sf1-tables`` and ``sf1-tract-tables``.
    on_error : str, optional
        Treatment of an impossible count: ``"refuse"`` raises for the first one, ``"missing"``
        counts it and leaves the cell suppressed. A table with such a count is not compared with its
        total.
    chunk : int, optional
        Records of places in memory at a time.

    Warns
    -----
    DataWarning
        At the end, if impossible counts are missing; its ``missing`` holds their numbers by column
        and reason.

    Notes
    -----
    Memory grows with the number of records (17 bytes for each place of the state) and with
    ``chunk``. If a workload holds all leaves of a table, their sum must be the published total, so
    shifted columns are refused.
    """
    yield from _tables(SF1, path, workload, chunk, on_error)


def read_sf1(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    r"""Return tables of a state's 2010 Summary File 1, at every place of the workload's levels.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_sf1`.

    Examples
    --------
    Two people in an invented block.

    >>> import pathlib, tempfile
    >>> from bayesrisk.tables import Workload
    >>> place = "SF1ST VT10100".ljust(18) + "0000001".ljust(9) + "50001".ljust(27) + "00010011000"
    >>> work = Workload.named("sf1-block").select(tables=["P1"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "vtgeo2010.sf1").write_text(place + "\n")
    ...     _ = pathlib.Path(folder, "vt000012010.sf1").write_text("SF1ST,VT,000,01,0000001,2\n")
    ...     read_sf1(folder, workload=work).counts["block", "P1"].toarray().tolist()
    [[2]]
    """
    return forms.combined(iter_sf1(path, workload=workload, on_error=on_error), path)


def iter_pl94(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Yield tables of a state's 2020 redistricting file (P.L. 94-171), some places at a time.

    Parameters
    ----------
    path, workload, on_error, chunk
        As for :func:`iter_sf1`. The archive has a name like ``vt2020.pl.zip``, and the tables are
        some or all of ``pl94-tables`` (P1 to P5) or ``pl94-unit-tables`` (H1).

    Notes
    -----
    Summary levels are 040, 050, 140, 150 and 750 (state, county, tract, block group, block), whole
    places only (geographic component and variant ``00``). A count that the file does not publish at
    a level (``.``) is refused.
    """
    yield from _tables(PL94, path, workload, chunk, on_error)


def read_pl94(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    r"""Return tables of a state's 2020 redistricting file, at every place of the workload's levels.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_pl94`.

    Examples
    --------
    Three housing units of an invented state, two of them occupied.

    >>> import pathlib, tempfile
    >>> from bayesrisk.tables import Workload
    >>> place = "PLST|VT|040|00|00|||0000001|||||50" + 84 * "|"
    >>> counts = "PLST|VT|000|02|0000001|" + 144 * ".|" + "3|2|1"
    >>> work = Workload.named("pl94-unit-tables", levels=["state"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "vtgeo2020.pl").write_text(place + "\n")
    ...     _ = pathlib.Path(folder, "vt000022020.pl").write_text(counts + "\n")
    ...     read_pl94(folder, workload=work).counts["state", "H1"].toarray().tolist()
    [[2, 1]]
    """
    return forms.combined(iter_pl94(path, workload=workload, on_error=on_error), path)


def iter_dhc(
    path: str | Path, *, workload: Workload, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[PublishedTables]:
    """Yield tables of a state's 2020 Demographic and Housing Characteristics File, some at a time.

    Summary levels are 040, 050, 140, 150 and 100 (blocks).

    Parameters
    ----------
    path, workload, on_error, chunk
        As for :func:`iter_sf1`. The archive has a name like ``vt2020.dhc.zip``. The tables are some
        or all of ``dhc-block`` (P1, P3 to P12, P12A to P12I, P14) or ``dhc-tract`` (PCT12, PCT12A
        to PCT12O). Other tables are refused by name.
    """
    yield from _tables(DHC, path, workload, chunk, on_error)


def read_dhc(path: str | Path, *, workload: Workload, on_error: str = "refuse") -> PublishedTables:
    r"""Return tables of a state's 2020 Demographic and Housing Characteristics File at every place.

    Parameters
    ----------
    path, workload, on_error
        As for :func:`iter_dhc`.

    Examples
    --------
    Two people of an invented state.

    >>> import pathlib, tempfile
    >>> from bayesrisk.tables import Workload
    >>> place = "DHCST|VT|040|00|00|||0000001|||||50" + 84 * "|"
    >>> work = Workload.named("dhc-block", levels=["state"]).select(tables=["P1"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "vtgeo2020.dhc").write_text(place + "\n")
    ...     _ = pathlib.Path(folder, "vt000052020.dhc").write_text("DHCST|VT|000|05|0000001|2\n")
    ...     read_dhc(folder, workload=work).counts["state", "P1"].toarray().tolist()
    [[2]]
    """
    return forms.combined(iter_dhc(path, workload=workload, on_error=on_error), path)
