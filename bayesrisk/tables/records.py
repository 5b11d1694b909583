"""Records: checked columns of codes and places, backed by Arrow; in the schema of other tables."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk import parquet as _parquet
from bayesrisk._base.disk.record_file import RecordFile
from bayesrisk._base.disk.text import gather, named
from bayesrisk._base.display import Tabular, displayed, several
from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError, quote
from bayesrisk.tables.schema import MISSING, Attribute, Schema

# -----------------------------------------------------------------------------
# Reading record files piece by piece; what goes wrong is said with file, row and column.


_WHOLE = r"^[+-]?[0-9]{1,18}$"
_DECIMALS = r"^([+-]?[0-9]{1,18})\.0+$"  # whole numbers as they are written beside missing ones
_NUMBER = r"^[+-]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})$"
_MOST_LABELS = 20  # labels that a message lists


def _tables(file: RecordFile, schema: Schema, chunk: int) -> Iterator[pa.Table]:
    """Yield the rows of a CSV or Parquet file in tables of at most ``chunk`` rows."""
    if file.ending == ".parquet":
        coded = _refuse_other_coding(file, schema)
        for table in file.tables(chunk):
            yield table if coded else grouped(table, schema)
        return
    for table in _from_csv(file, schema):
        for start in range(0, max(table.num_rows, 1), chunk):
            yield table.slice(start, chunk)


def _refuse_other_coding(file: RecordFile, schema: Schema) -> bool:
    """Refuse persons whose codes are not the schema's; return whether a file says that it is ours.

    Numbers of other files are no codes where the schema puts numbers into groups.
    """
    name = file.metadata.get(_parquet.CODING, b"schema")
    if schema.name == "sf1-person" and name != b"schema":
        raise DataError(
            f"{file}: says that its codes are of the dialect {quote(name.decode('latin-1'))}, not "
            "those of the schema 'sf1-person': read it with census.read_record_form"
        )
    return SCHEMA_NAME in file.metadata


#: In the metadata of a Parquet file: the name of the schema whose codes it holds.
SCHEMA_NAME = b"bayesrisk.schema"


def grouped(table: pa.Table, schema: Schema, source: str = "records", start: int = 0) -> pa.Table:
    """Return a table with the codes of groups for the numbers of attributes that have cuts."""
    for a in schema.attributes:
        if a.cuts and table.column_names.count(a.name) == 1:
            codes = _codes_of_groups(table.column(a.name), a, f"{source}: row", start)
            table = table.set_column(table.column_names.index(a.name), a.name, codes)
    return table


def _codes_of_groups(column: pa.ChunkedArray, a: Attribute, source: str, start: int) -> pa.Array:
    """Return the codes of the groups of numbers; other text has the codes of labels."""
    column = _parquet.plain_column(column)
    codes = np.full(len(column), -1, dtype=np.int64)
    numbers = column
    if _parquet.is_text(column.type):
        label = pc.index_in(column, pa.array(a.labels, column.type)).fill_null(-1)
        codes = label.to_numpy().astype(np.int64)
        numbers = pc.if_else(pc.match_substring_regex(column, _NUMBER), column, None)
        empty = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    else:
        empty = pc.is_null(column, nan_is_null=True)
    values = numbers.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    finite = np.isfinite(values)
    codes[finite] = np.searchsorted(a.cuts, values[finite], side="right")
    if MISSING in a.labels:
        codes[empty.to_numpy()] = a.labels.index(MISSING)
    rule = f"column {a.name!r}: must be a number or one of {_listed(a.labels)}"
    refuse_first(pa.array(codes < 0), column, source, start, rule)
    return pa.array(codes + a.first)


def _from_csv(file: RecordFile, schema: Schema) -> Iterator[pa.Table]:
    """Read every column as text, so that nothing is guessed, then the codes as numbers."""
    with named(str(file), also=(pa.ArrowException,)):
        names, start = file.columns, 0
        for table in file.tables(CHUNK):
            for a in schema.attributes:
                if a.name in names:
                    table = _numbers(table, a, file, start)
            yield table
            start += table.num_rows
        if start == 0:
            kinds = [(n, pa.int64() if n in schema.names else pa.string()) for n in names]
            yield pa.schema(kinds).empty_table()


def _numbers(table: pa.Table, a: Attribute, file: RecordFile, start: int) -> pa.Table:
    """Return the table with a column of text as numbers, labels replaced by their codes."""
    if a.cuts:
        return grouped(table, Schema("one", (a,)), str(file), start)
    column = table.column(a.name)
    good = pc.match_substring_regex(column, _WHOLE)
    if a.labels:
        column = codes_of_labels(column, a, f"{file}: row", start, numbers=True)
    elif not pc.all(good).as_py():
        rule = f"column {a.name!r}: must be a whole number"
        refuse_first(pc.invert(good), column, f"{file}: row", start, rule)
    index = table.column_names.index(a.name)
    return table.set_column(index, a.name, column.cast(pa.int64()))


def codes_of_labels(
    column: pa.ChunkedArray, a: Attribute, source: str, first_row: int, *, numbers: bool = False
) -> pa.ChunkedArray:
    """Return a column of labels as codes; with ``numbers`` a whole number is a code, as in CSV.

    A column of another type is returned unchanged.
    """
    column = _parquet.plain_column(column)
    text = _parquet.is_text(column.type)
    if MISSING in a.labels:
        if text:
            column = pc.replace_substring_regex(column.fill_null(""), _DECIMALS, r"\1")
            column = pc.if_else(pc.equal(column, ""), MISSING, column)
        elif pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            absent = pc.is_null(column, nan_is_null=True)
            code = a.first + a.labels.index(MISSING)
            column = pc.if_else(absent, float(code), column.cast(pa.float64(), safe=False))
            refuse_first(
                pc.not_equal(column, pc.round(column)), column, source, first_row,
                f"column {a.name!r}: must be a whole number",
            )  # fmt: skip
            return column.cast(pa.int64())
    if not text or not a.labels:
        return column
    label = pc.index_in(column, pa.array(a.labels, column.type))
    number = pc.and_(pc.match_substring_regex(column, _WHOLE), numbers)
    bounds = f"a whole number in [{a.first}, {a.last}] or one of {_listed(a.labels)}"
    bad = pc.invert(pc.or_kleene(pc.is_valid(label), number).fill_null(False))
    refuse_first(bad, column, source, first_row, f"column {a.name!r}: must be {bounds}")
    codes = pc.if_else(number, column, "0").cast(pa.int64())
    return pc.if_else(number, codes, pc.add(label.cast(pa.int64()), a.first))


def _listed(labels: tuple[str, ...]) -> str:
    rest = len(labels) - _MOST_LABELS
    return ", ".join(map(repr, labels[:_MOST_LABELS])) + (f" and {rest} more" if rest > 0 else "")


def refuse_first(bad: pa.Array, column: pa.Array, source: str, first_row: int, rule: str) -> None:
    """Refuse the first bad value of a column, if there is one."""
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        raise DataError(f"{source} {first_row + row + 1}, {rule}, got {quote(column[row].as_py())}")


#: Records in memory at a time when a file is read in pieces: splitting them takes 160 bytes each.
CHUNK = 2**17


@displayed
class Records(Tabular):
    """Confidential records of a schema: one row each, with every code and place checked.

    Parameters
    ----------
    schema : Schema
        Meaning of the columns.
    table : pyarrow.Table
        A column for each attribute: whole numbers as codes, or text if the attribute has labels. A
        column named after the finest level of the geography has text of digits, or whole numbers,
        which get zeros on the left; with a single place it is optional. Other columns are kept
        unchanged.
    source : str, default "records"
        Name of the table in messages.
    first_row : int, default 0
        Number of rows before this table in its source, for messages.
    """

    def __init__(
        self, schema: Schema, table: pa.Table, *, source: str = "records", first_row: int = 0
    ) -> None:
        self.schema = check.instance(schema, Schema, "schema")
        self.table = _checked(schema, check.instance(table, pa.Table, "table"), source, first_row)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, schema: Schema | None = None, source: str = "frame of records"
    ) -> "Records":
        """Return the records of a data frame; its index is dropped.

        The default schema is that of :meth:`Schema.from_frame`.
        """
        frame = check.frame(frame, "frame")
        schema = Schema.from_frame(frame) if schema is None else schema
        check.instance(schema, Schema, "schema")
        check.text(source, "source")
        for place, name in enumerate(frame.columns):
            _refuse_nested(frame.iloc[:, place], f"{source}: column {name!r}")
        groups = {a.name: check.groups_as_text(frame[a.name]) for a in schema.attributes if a.labels
                  and list(frame.columns).count(a.name) == 1}  # fmt: skip
        try:
            table = pa.Table.from_pandas(frame.assign(**groups), preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{source}: cannot be read: {error}") from error
        table = grouped(table.replace_schema_metadata(None), schema, source)
        return cls(schema, table, source=source)

    @classmethod
    def read(cls, path: str | Path, *, schema: Schema) -> "Records":
        """Return the records of a CSV or Parquet file, all in memory.

        At most 4 GiB fit (19 bytes for the block of a person and 2 or 4 for each attribute). For
        larger files :func:`iter_records` yields pieces.
        """
        tables = gather(
            (records.table for records in iter_records(path, schema=schema)),
            lambda table: int(table.nbytes),
            str(path),
        )
        records = cls.__new__(cls)
        records.schema, records.table = schema, pa.concat_tables(tables).combine_chunks()
        return records

    def write(self, path: str | Path) -> None:
        """Write a Parquet file; an interrupted write leaves the old file intact."""
        table = self.table
        if any(a.cuts for a in self.schema.attributes):  # it holds codes, not numbers
            table = table.replace_schema_metadata({SCHEMA_NAME: self.schema.name})
        with disk.whole_file(path) as stream:
            pq.write_table(table, stream, **_parquet.STORAGE)

    def to_frame(self) -> pd.DataFrame:
        """Return all columns as a data frame, one row for each record.

        Values are codes, but labels for groups of numbers, whose codes could be mistaken for
        numbers.
        """
        frame: pd.DataFrame = self.table.to_pandas()
        for a in self.schema.attributes:
            if a.cuts:
                frame[a.name] = np.array(a.labels, dtype=object)[frame[a.name] - a.first]
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _answer(self) -> list[str]:
        places = len(pc.unique(self.table.column(self.schema.geography.finest)))
        return [
            f"{len(self):,} records of {self.schema.name} in {places:,} places; confidential.",
            f"Columns: {several(self.columns)}.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        first = self.__class__.__new__(self.__class__)
        first.schema, first.table = self.schema, self.table.slice(0, 8)
        return self.schema.labelled(first.to_frame())

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.table.column_names)

    @property
    def geoids(self) -> NDArray[np.str_]:
        """The place of every record, at the finest level."""
        places, index = self.places()
        return places[index]

    def places(self) -> tuple[NDArray[np.str_], IntArray]:
        """Return the distinct places, sorted, and each record's position among them."""
        column = self.table.column(self.schema.geography.finest)
        coded = pc.dictionary_encode(column).combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        width = self.schema.geography.widths[-1]
        codes = np.asarray(coded.dictionary.to_pylist(), dtype=f"<U{max(width, 1)}")
        order = np.argsort(codes)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return codes[order], rank[coded.indices.to_numpy()].astype(np.int64)

    def codes(self, name: str) -> IntArray:
        """Return the codes of an attribute, int64."""
        check.choice(name, "name", self.schema.names)
        codes: IntArray = self.table.column(name).to_numpy().astype(np.int64)
        return codes

    def cells(self) -> IntArray:
        """Return the flat cell number of every record, int64."""
        flat = np.zeros(len(self), dtype=np.int64)
        for a in self.schema.attributes:
            flat *= a.size
            flat += self.table.column(a.name).to_numpy()
            flat -= a.first
        return flat

    def take(self, index: ArrayLike) -> "Records":
        """Return the records at positions (or where a mask is true), in that order."""
        rule = check.as_array(index, "index")
        if rule.ndim != 1:
            raise ShapeError("index", "must have one axis", shown=f"shape {rule.shape}")
        if rule.dtype == bool:
            if rule.shape != (len(self),):
                raise ShapeError("index", f"must have shape ({len(self)},)", shown=rule.shape)
            rule = np.flatnonzero(rule)
        if rule.size:
            rule = check.count_array(rule, "index", lower=0, upper=len(self) - 1)
        records = Records.__new__(Records)
        records.schema = self.schema
        records.table = self.table.take(pa.array(rule.astype(np.int64)))
        return records

    def replace(self, **columns: object) -> "Records":
        """Return records with columns changed or added; new values are checked."""
        table = self.table
        for name, values in columns.items():
            array = _column(values, name)
            if len(array) != len(self):
                raise ShapeError(name, f"must have {len(self)} values", shown=len(array))
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, array)
            else:
                table = table.append_column(name, array)
        return Records(self.schema, table)


def record_pieces(records: "Records | Iterable[Records]") -> Iterator[Records]:
    """Yield records given at once or in pieces, each checked to be records."""
    try:
        pieces = iter([records] if isinstance(records, Records) else records)
    except TypeError as error:
        raise ArgumentTypeError(
            "records", "must be Records or pieces of them", got=records
        ) from error
    for piece in pieces:
        yield check.instance(piece, Records, "records")


def iter_records(path: str | Path, *, schema: Schema, chunk: int = CHUNK) -> Iterator[Records]:
    """Yield the records of a file in pieces, at least one, for files larger than memory.

    Parameters
    ----------
    path : path-like
        A ``.parquet`` or ``.csv`` file (UTF-8, with a header) with the columns of a
        :class:`Records`; in CSV files other columns are read as text.
    schema : Schema
        Meaning of the columns.
    chunk : int, default 2**17
        Largest number of records in a piece.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.tables import Schema
    >>> units = {"block": ["500010101001000"] * 2 + ["500010101001001"], "h1": [1, 0, 1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "units.csv"
    ...     pd.DataFrame(units).to_csv(file, index=False)
    ...     [len(piece) for piece in iter_records(file, schema=Schema.named("pl94-units"), chunk=2)]
    [2, 1]
    """
    check.instance(schema, Schema, "schema")
    file = RecordFile(check.path(path, "path"))
    check.integer(chunk, "chunk", lower=1)
    yield from file_pieces(file, schema, chunk)


def file_pieces(file: RecordFile, schema: Schema, chunk: int = CHUNK) -> Iterator[Records]:
    """Yield the records of a file, a piece at a time."""
    if file.ending not in (".parquet", ".csv"):
        raise ArgumentError("path", "must end in .parquet or .csv", got=str(file))
    start = 0
    for table in _tables(file, schema, chunk):
        yield Records(schema, table, source=str(file), first_row=start)
        start += table.num_rows


def joined(pieces: Iterable[Records], path: str | Path) -> Records:
    """Return the pieces of a file, at least one, as one; refuse a file too long to hold."""
    source = str(check.path(path, "path"))
    parts = gather(pieces, lambda piece: int(piece.table.nbytes), source)
    if len(parts) == 1:
        return parts[0]
    return Records(parts[0].schema, pa.concat_tables([piece.table for piece in parts]))


@runtime_checkable
class RecordCodings(Protocol):
    """Other codings of records of a schema than its own: those that files of them are written in.

    ``describes`` says whether a file says that it is of one, or looks so; ``coding`` which one it
    is, by its ``name`` if there is one, and None for that of the schema; ``pieces`` reads it.
    """

    def describes(self, file: RecordFile) -> bool:
        """Return whether a file has such records."""

    def coding(self, file: RecordFile, name: str | None) -> str | None:
        """Return the coding of a file."""

    def pieces(self, file: RecordFile, coding: str) -> Iterator[Records]:
        """Yield the records of a file in the codes of the schema."""


#: Other codings of records, by the name of the schema.
CODINGS: Registry[RecordCodings] = Registry(
    "coding", builtin={}, protocol=RecordCodings, needs="describes(), coding() and pieces()"
)


def _column(values: object, name: str) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not isinstance(values, np.ndarray | pd.Series | pd.api.extensions.ExtensionArray):
        values = check.items(values, name)
    elif values.ndim != 1:
        raise ShapeError(name, "must have one axis", shown=f"shape {values.shape}")
    elif isinstance(values, np.ndarray):
        values = check.as_array(values, name)
    if isinstance(values, list) or values.dtype == object:
        _refuse_nested(pd.Series(values, dtype=object), name)
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(name, f"must be a column of values: {error}") from error


def _refuse_nested(column: pd.Series, name: str) -> None:
    """Refuse lists in a column: Arrow follows them, and ends the interpreter on one in itself."""
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "mixed":
        for value in column:
            if isinstance(value, (list, tuple, set, frozenset, Mapping, np.ndarray)):
                raise ArgumentTypeError(name, "must hold single values", got=value)


def _checked(schema: Schema, table: pa.Table, source: str, first_row: int) -> pa.Table:
    """Return the table with its own columns in their types, every value checked."""
    wanted = [schema.geography.finest, *schema.names]
    if schema.geography.widths[-1] == 0 and wanted[0] not in table.column_names:
        table = table.append_column(wanted[0], pa.repeat("", table.num_rows))
    names = table.column_names
    for name in wanted:
        if names.count(name) != 1:
            listing = "it twice" if name in names else f"{', '.join(names) or 'no column'}"
            like = check.did_you_mean(name, set(names).difference(wanted))
            raise DataError(f"{source}: must have one column {name!r}, got {listing}{like}")
    place = _places(schema, table.column(wanted[0]), f"{source}: row", first_row, wanted[0])
    table = table.set_column(names.index(wanted[0]), wanted[0], place)
    for a in schema.attributes:
        rule = f"column {a.name!r}: must be a whole number in [{a.first}, {a.last}]"
        column = codes_of_labels(table.column(a.name), a, f"{source}: row", first_row)
        if pa.types.is_null(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_floating(column.type):  # whole numbers, some of them missing, perhaps
            gaps = pc.is_null(column, nan_is_null=True)
            refuse_first(gaps, column, f"{source}: row", first_row, rule)
        if not pa.types.is_integer(column.type):
            raise DataError(f"{source}: {rule}, got values of type {column.type}")
        wide = column.type == pa.uint64()  # which Arrow does not compare with signed numbers
        numbers = column.cast(pa.float64(), safe=False) if wide else column
        outside = pc.or_(pc.less(numbers, a.first), pc.greater(numbers, a.last))
        bad = pc.or_kleene(pc.is_null(column), outside)
        refuse_first(bad, column, f"{source}: row", first_row, rule)
        small = pa.int16() if a.first >= -(2**15) and a.last < 2**15 else pa.int32()
        table = table.set_column(names.index(a.name), a.name, column.cast(small))
    return table


def _places(
    schema: Schema, column: pa.ChunkedArray, source: str, first_row: int, name: str
) -> pa.ChunkedArray:
    """Return places as text, after checking that they are digits of the right width."""
    width = schema.geography.widths[-1]
    rule = f"column {name!r}: must be a place of {width} digits"
    column = _parquet.plain_column(column)
    if pa.types.is_null(column.type):  # nothing is known: no rows, or a place is missing in each
        column = column.cast(pa.string())
    text = column
    if codes := schema.geography.codes:
        text = column.cast(pa.string())
        index = pc.index_in(text, pa.array([*codes], pa.string()))
        text = pc.coalesce(pc.take(pa.array([*codes.values()], pa.string()), index), text)
        rule = f"column {name!r}: must be one of {len(codes)} places, {_listed((*codes,))}"
    elif pa.types.is_integer(column.type):
        text = pc.utf8_lpad(column.cast(pa.string()), width, "0")
    elif not _parquet.is_text(column.type):
        head = source.removesuffix(": row")
        raise DataError(f"{head}: {rule}, got values of type {column.type}")
    text = text.cast(pa.string())
    fits = pc.and_(pc.equal(pc.binary_length(text), width), pc.string_is_ascii(text))
    digits = pc.utf8_is_digit(text) if width else pc.is_valid(text)
    good = pc.and_(fits, digits).fill_null(False)
    refuse_first(pc.invert(good), column, source, first_row, rule)
    return text


#: Masks of races in the order of the redistricting file: one race, then two, three, ...
CENRACE = np.array([sum(1 << i for i in c) for k in range(1, 7) for c in combinations(range(6), k)])
#: The position there of each bit mask.
CENRACE_OF_MASK = np.append(-1, np.argsort(CENRACE))
_ADULT = 18


def recoded(records: Records, target: Schema) -> Records:
    """Return records in another schema; columns that are not attributes are kept."""
    ways = {
        ("sf1-person", "pl94"): _redistricting,
        ("household-dhc", "household-occupancy"): _occupancy,
        ("household-dhc", "pl94-units"): _units,
    }
    source = records.schema
    if (source.name, target.name) not in ways or source.geography != target.geography:
        raise ArgumentError(
            f"records of {source.name!r} ({source.geography.name}) cannot be counted as "
            f"{target.name!r} ({target.geography.name})"
        )
    records, codes = ways[source.name, target.name](records)
    table = records.table.drop_columns(list(source.names))
    table = table.drop_columns([n for n in target.names if n in table.column_names])
    for name in target.names:
        table = table.append_column(name, pa.array(codes[name]))
    return Records(target, table)


def _redistricting(records: Records) -> tuple[Records, dict[str, IntArray]]:
    return records, {
        "hhgq": whole_column(records, "gq", 7),
        "votingage": (records.codes("age") >= _ADULT).astype(np.int64),
        "hispanic": records.codes("hisp"),
        "cenrace": CENRACE_OF_MASK[records.codes("race")],
    }


def _occupancy(records: Records) -> tuple[Records, dict[str, IntArray]]:
    occupied = records.take(records.codes("vacancy") == 0)
    return occupied, {
        "size": occupied.codes("size"),
        "race_ethnicity": occupied.codes("race") - 1 + 7 * (occupied.codes("hispanic") == 2),
        "children": np.minimum(whole_column(occupied, "children", None), 6),
        "bedrooms": whole_column(occupied, "bedrooms", 3),
        "subsidised": whole_column(occupied, "subsidised", 1),
    }


def _units(records: Records) -> tuple[Records, dict[str, IntArray]]:
    return records, {"h1": (records.codes("vacancy") == 0).astype(np.int64)}


def whole_column(records: Records, name: str, high: int | None) -> IntArray:
    """Return a column that is no attribute: whole numbers from 0, to ``high`` if there is one."""
    if name not in records.columns:
        raise DataError(f"records: must have a column {name!r}, got none")
    column = records.table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise DataError(f"records: column {name!r}: must be whole numbers, got {column.type}")
    values: IntArray = column.to_numpy().astype(np.int64)
    bad = (values < 0) | (False if high is None else values > high)
    bounds = "be >= 0" if high is None else f"be in [0, {high}]"
    check.refuse_row(bad, values, "records", name, bounds)
    return values
