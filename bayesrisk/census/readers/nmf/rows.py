"""Checked rows of a noisy measurement file (``reader`` handles the folder)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bayesrisk._base import validation as check
from bayesrisk._base.disk.parquet import check_kinds, is_text, opened, plain_kind
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import MAX_COUNT, BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.census.readers.geocodes import first_fault
from bayesrisk.exceptions import ArgumentError, DataError, quote

# Histograms of the 2020 noisy measurement files: axes, recodes, and the shape of a query.
#
# A row of a file names, for each axis, how it is answered: ``*`` (summed out), ``detailed`` or the
# axis's own name (every value), or a recode: groups of values.  Axes and recodes are those of the
# public code of the 2020 Disclosure Avoidance System.


Groups = tuple[tuple[int, ...], ...]


def _ranges(*first: int, stop: int) -> Groups:
    """Return ranges that start at the given values, the last up to ``stop``."""
    return tuple(tuple(range(a, b)) for a, b in pairwise((*first, stop)))


_FROM_18 = (18, 20, *range(25, 60, 5), 60, 62, 65, 67, *range(70, 115, 5))
_RELATIVES = _ranges(*range(18), stop=18)  # members of households, by relationship


@dataclass(frozen=True)
class Universe:
    """The histogram of a product: axes with sizes, and recodes; ``other`` if it is not known.

    Its axes in order, each with its size (0 where it is not known), and for each axis the groups
    of values of each recode.
    """

    name: str
    axes: Mapping[str, int]
    recodes: Mapping[str, Mapping[str, Groups]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the number of histogram cells, or 0 if unknown."""
        return prod(self.axes.values())

    def groups(self, axis: str, answer: str) -> Groups | None:
        """Return the values at each position of an axis's answer, or None for an unknown recode."""
        extent = self.axes[axis]
        if extent and answer == "*":
            return (tuple(range(extent)),)
        if extent and answer in ("detailed", axis):
            return _ranges(*range(extent), stop=extent)
        return self.recodes.get(axis, {}).get(answer)


UNIVERSES = MappingProxyType(
    {
        "pl94-person": Universe(
            "pl94-person",
            MappingProxyType({"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}),
            MappingProxyType(
                {
                    "hhgq": {"hhinstlevels": _ranges(0, 1, 5, stop=8), "gqNursingTotal": ((3,),)},
                    "votingage": {"nonvoting": ((0,),)},
                }
            ),
        ),
        "pl94-unit": Universe("pl94-unit", MappingProxyType({"h1": 2})),
        "dhc-person": Universe(
            "dhc-person",
            MappingProxyType({"relgq": 42, "sex": 2, "age": 116, "hispanic": 2, "cenrace": 63}),
            MappingProxyType(
                {
                    "relgq": {
                        "relgq_4_groups": _ranges(0, 2, 18, 33, stop=42),
                        "popSehsdTargetsRelship": (*_RELATIVES, tuple(range(18, 42))),
                        "relship_and_eight_level_GQ": (
                            *_RELATIVES,
                            *_ranges(18, 24, 27, 28, 33, 34, 36, stop=42),
                        ),
                        "gq_constr_groups": (
                            tuple(range(18)),
                            (32,),
                            tuple(range(18, 23)),
                            (33, 37, 38, 39, 40, 41),
                            (23, 31, 34, 35),
                            (24, 25, 26, 27, 28, 29, 30, 36),
                        ),
                    },
                    "age": {
                        "age_18_64_116": _ranges(0, 18, 65, stop=116),
                        "age_10_groups": _ranges(0, 3, 15, 16, 17, 18, 20, 25, 30, 35, stop=116),
                        "age_38_groups": _ranges(*range(16), *_FROM_18, stop=116),
                        "age_40_groups": _ranges(*range(18), *_FROM_18, stop=116),
                    },
                }
            ),
        ),
    }
)


def cell_labels(universe: Universe, answers: Sequence[str]) -> IntArray | None:
    """Return, for every histogram cell, the query's cell that counts it, or -1.

    ``answers`` describe the answer on each axis. None if an axis or a recode is unknown.
    """
    labels: IntArray = np.zeros(1, dtype=np.int64)
    for (axis, extent), answer in zip(universe.axes.items(), answers, strict=True):
        groups = universe.groups(axis, answer)
        if not extent or groups is None:
            return None
        place = np.full(extent, -1, dtype=np.int64)
        for number, values in enumerate(groups):
            place[list(values)] = number
        crossed = labels[:, None] * len(groups) + place
        crossed[(labels[:, None] < 0) | (place < 0)] = -1
        labels = crossed.reshape(-1)
    return labels


def matching_universe(axes: tuple[str, ...]) -> Universe:
    """Return the universe with these axes, or one of unknown sizes."""
    for universe in UNIVERSES.values():
        if tuple(universe.axes) == axes:
            return universe
    return Universe("other", MappingProxyType(dict.fromkeys(axes, 0)))


def axis_answers(universe: Universe, query: str) -> dict[str, str]:
    """Return a query's answer on each axis, given known recodes.

    ``votingage * cenrace`` is the cross of two answers; ``total`` sums everything out.
    """
    if query == "detailed":
        return dict.fromkeys(universe.axes, "detailed")
    owner = {
        name: axis for axis in universe.axes for name in (axis, *universe.recodes.get(axis, {}))
    }
    names = [] if query == "total" else query.split(" * ")
    return dict.fromkeys(universe.axes, "*") | {owner[name]: name for name in names}


def query_groups(universe: Universe, query: str) -> tuple[Groups, ...]:
    """Return, for each axis, the groups of values that a query with known recodes counts."""
    answers = axis_answers(universe, query)
    groups = (universe.groups(axis, answers[axis]) for axis in universe.axes)
    return tuple(group for group in groups if group is not None)


# What the reader of noisy measurement files hands out: rows of one query, as arrays.


@displayed
@dataclass(frozen=True)
class MeasurementBatch:
    """Noisy answers to one query in some units; ``geocodes`` has shape (n,).

    ``values``, shape (n, cells), are noisy counts, the cells in C order of ``shape``: the positions
    on each axis of the histogram. ``variance``, shape (n,), is that of the noise in the file, and
    ``sigma2`` its scale parameter. ``rows`` are row numbers in ``file``, from 0.
    """

    level: str
    query: str
    shape: tuple[int, ...]
    geocodes: TextArray
    values: IntArray
    variance: FloatArray
    sigma2: FloatArray
    file: Path
    rows: IntArray


#: Cells in a batch; the largest row may hold more.
BATCH_CELLS = 2**20
_ROW = "#row"  # a column of our own: no column of a file is called so
_TEXT = ("geocode", "query_name")
_LISTS = ("query_shape", "value")
MAX_VARIANCE = 1e30
# Columns that are no axes of the histogram.
_NOT_AXES = (*_TEXT, "sign", "query_shape", "value", "variance", "plb", "State", "County")


def _is_numbers(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in lists) and pa.types.is_integer(kind.value_type)


def histogram_axes(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns that are histogram axes."""
    return tuple(name for name in schema.names if name not in _NOT_AXES)


def check_columns(file: Path, axes: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise if a file's columns are missing or of another type."""
    with opened(file) as (source, _):
        schema = source.schema_arrow
    tests: dict[str, tuple[Any, str]] = {
        **dict.fromkeys((*_TEXT, "sign", *axes), (is_text, "strings")),
        **dict.fromkeys(_LISTS, (_is_numbers, "lists of integers")),
        "variance": (pa.types.is_floating, "floating-point numbers"),
    }
    for name in wanted:
        if name not in schema.names:
            raise DataError(
                f"{file}: has no column {name!r}; columns: {', '.join(schema.names) or 'none'}"
            )
        fits, text = tests[name]
        kind = schema.field(name).type
        if not fits(kind):
            raise DataError(f"{file}: column {name!r}: must hold {text}, got {plain_kind(kind)}")
    if histogram_axes(schema) != tuple(axes):
        raise DataError(
            f"{file}: must have the axes {', '.join(axes)} of the other files, "
            f"got {', '.join(histogram_axes(schema)) or 'none'}"
        )


def _groups(source: parquet.ParquetFile, span: tuple[str, str] | None) -> list[int]:
    """Return the row groups that may contain units of a range, by the footer's statistics."""
    footer = source.metadata
    everything = list(range(footer.num_row_groups))
    columns = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if span is None or "geocode" not in columns:
        return everything
    place, groups = columns.index("geocode"), []
    for group in everything:
        statistics = footer.row_group(group).column(place).statistics
        if statistics is not None and statistics.has_min_max:
            least, most = str(statistics.min), str(statistics.max)
            if most[: len(span[0])] < span[0][: len(most)] or least > span[1] + ":":
                continue
        groups.append(group)
    return groups


def batches(
    file: Path, columns: Sequence[str], rows: int, span: tuple[str, str] | None = None
) -> Iterator[Rows]:
    """Yield a file's rows in pieces of at most ``rows``.

    ``span`` has the beginnings of the first and the last wanted geocode: row groups without any are
    not read. The rows read may include others.
    """
    with opened(file) as (source, _):
        texts = {name: ("text",) for name in columns if name in _TEXT}
        check_kinds(source.schema_arrow, file, texts)
        sizes = [source.metadata.row_group(i).num_rows for i in range(source.num_row_groups)]
        for groups in _runs(_groups(source, span)):
            start = sum(sizes[: groups[0]])
            for batch in source.iter_batches(
                rows, row_groups=groups, columns=list(columns), use_threads=False
            ):
                for column in batch.columns:
                    # Damaged indices are not noticed on the way in, and would point anywhere.
                    column.validate(full=True)
                numbers = pa.array(np.arange(start, start + batch.num_rows))
                yield Rows(file, batch.append_column(_ROW, numbers))
                start += batch.num_rows


def _runs(numbers: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


class Rows:
    """Rows of one query in one file, read as checked NumPy arrays."""

    def __init__(self, file: Path, table: pa.RecordBatch) -> None:
        self.file = file
        self.table = table
        self.numbers: IntArray = table.column(_ROW).to_numpy()

    def __len__(self) -> int:
        return self.numbers.size

    def select(self, good: pa.Array) -> Rows:
        """Return some of the rows."""
        return Rows(self.file, self.table.filter(good))

    def refuse(self, place: int, column: str, message: str) -> DataError:
        """Return an error about one row."""
        row = int(self.numbers[place]) + 1
        return DataError(f"{self.file}: row {row}, column {column!r}: {message}")

    def check(
        self, column: str, good: BoolArray, rule: str, values: Sequence[object] | TextArray
    ) -> None:
        """Raise for the first row that is not good, quoting its value."""
        if not good.all():
            place = int(good.argmin())
            value = values[place]
            text = quote(str(value)) if isinstance(value, str) else quote(value)
            raise self.refuse(place, column, f"must {rule}, got {text}")

    def queries(self, suffix: str) -> tuple[pa.Array, list[str]]:
        """Return each row's query, and the distinct ones; raise for a name without the ending."""
        names = self.column("query_name").cast(pa.string())
        distinct = pc.unique(names).to_pylist()
        for name in distinct:
            if not name.endswith(suffix):
                place = int(pc.index(names, name).as_py())
                raise self.refuse(place, "query_name", f"must end in {suffix!r}, got {quote(name)}")
        return names, distinct

    def by_query(self, suffix: str) -> Iterator[tuple[str, Rows]]:
        """Yield each query's name without ending, and its rows."""
        names, distinct = self.queries(suffix)
        for name in distinct:
            yield name.removesuffix(suffix), self.select(pc.equal(names, name))

    def sigma2(self, scales: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return each row's noise scale; raise if the budget excludes its variance."""
        variance = self.variance()
        sigma2 = scales(variance)
        rule = f"be one that the budget gives, {getattr(scales, 'allowed', None)}"
        self.check("variance", ~np.isnan(sigma2), rule, variance.tolist())
        return sigma2

    def text(self, name: str) -> TextArray:
        """Return a column of strings."""
        return np.array(self.column(name).to_pylist(), dtype=np.str_)

    def column(self, name: str) -> pa.Array:
        """Return a column without nulls."""
        column = self.table.column(name)
        if column.null_count:
            place = int(pc.index(pc.is_null(column), True).as_py())
            raise self.refuse(place, name, "must not be null")
        return column

    def geocodes(self, level: str, width: int | None, state: str | None) -> TextArray:
        """Return the geocodes; raise unless they are of the level and in the folder's state."""
        codes = self.text("geocode")
        fault = first_fault(codes, level, width)
        if fault:
            place, rule = fault
            raise self.refuse(
                place, "geocode", f"a {level} must have {rule}, got {quote(str(codes[place]))}"
            )
        if state is not None:
            inside = codes.astype(f"U{len(state)}") == state
            self.check("geocode", inside, f"start with {state!r}, the folder's state", codes)
        return codes

    def _lists(self, name: str) -> tuple[IntArray, IntArray]:
        """Return a list column's numbers, concatenated, and the length of each list."""
        column = self.column(name)
        flat = column.flatten()
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
        if flat.null_count:
            first = int(pc.index(pc.is_null(flat), True).as_py())
            place = int(np.searchsorted(np.cumsum(lengths), first, side="right"))
            raise self.refuse(place, name, "must hold no nulls, got one")
        try:
            flat = flat.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise self.refuse(0, name, f"must fit in 64 bits: {error}") from error
        return flat.to_numpy(), lengths

    def shape(self, universe: Universe) -> tuple[int, ...]:
        """Return the rows' common shape; raise unless it fits the answers on each axis."""
        flat, lengths = self._lists("query_shape")
        axes = tuple(universe.axes)
        rule = f"have one entry for each of the {len(axes)} axes"
        self.check("query_shape", lengths == len(axes), rule, lengths.tolist())
        shapes = flat.reshape(-1, len(axes))
        listed = shapes.tolist()
        positive: BoolArray = np.logical_and.reduce(shapes >= 1, axis=1)
        self.check("query_shape", positive, "be >= 1", listed)
        equal: BoolArray = np.logical_and.reduce(shapes == shapes[0], axis=1)
        self.check("query_shape", equal, f"be {listed[0]} as in the query's other rows", listed)
        shape = tuple(int(extent) for extent in shapes[0])
        for axis, extent in zip(axes, shape, strict=True):
            self._check_axis(universe, axis, extent)
        return shape

    def answers(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Return the rows' common answer on each axis."""
        answers = []
        for axis in axes:
            column = self.column(axis).cast(pa.string())
            distinct = pc.unique(column).to_pylist()
            if len(distinct) > 1:
                place = int(pc.index(column, distinct[1]).as_py())
                raise self.refuse(
                    place,
                    axis,
                    f"must be {distinct[0]!r} as in the query's other rows, "
                    f"got {quote(distinct[1])}",
                )
            answers.append(str(distinct[0]))
        return tuple(answers)

    def _check_axis(self, universe: Universe, axis: str, extent: int) -> None:
        column = self.column(axis)
        for answer in pc.unique(column).to_pylist():
            groups = universe.groups(axis, answer)
            if groups is not None and len(groups) != extent:
                place = int(pc.index(column.cast(pa.string()), answer).as_py())
                raise self.refuse(
                    place,
                    "query_shape",
                    f"must be {len(groups)} for {axis} = {answer!r}, got {extent}",
                )

    def values(self, shape: tuple[int, ...]) -> IntArray:
        """Return the noisy answers, one row each, flattened in the shape's order."""
        flat, lengths = self._lists("value")
        cells = prod(shape)
        rule = f"hold {cells} numbers for query_shape {list(shape)}"
        self.check("value", lengths == cells, rule, lengths.tolist())
        values: IntArray = flat.reshape(-1, cells)
        if int(values.max()) > MAX_COUNT or int(values.min()) < -MAX_COUNT:
            place = int((np.abs(values) > MAX_COUNT).any(axis=1).argmax())
            raise self.refuse(place, "value", "must be between -2**52 and 2**52")
        return values

    def variance(self) -> FloatArray:
        """Return the variances; raise unless they are positive and plausible for noise."""
        column = self.table.column("variance")
        values: FloatArray = column.to_numpy(zero_copy_only=False).astype(np.float64)
        self.check("variance", values > 0.0, "be > 0", values.tolist())
        self.check("variance", values <= MAX_VARIANCE, f"be <= {MAX_VARIANCE:g}", values.tolist())
        return values


def rows_of_query(
    file: Path, columns: Sequence[str], query: str, *, cells: int, most: int
) -> Iterator[Rows]:
    """Yield the noisy answers to a query in batches of about ``cells`` cells.

    ``most`` is the number of cells of the largest row that a file can hold. It bounds the amount
    read at a time, half a batch, for any order of the rows.
    """
    tables: list[pa.RecordBatch] = []
    count = 0
    for rows in batches(file, columns, max(1, cells // (2 * most))):
        keep = pc.equal(rows.queries("_dpq")[0], f"{query}_dpq")
        if pc.sum(keep).as_py() != len(rows):
            rows = rows.select(keep)
        if len(rows):
            tables.append(rows.table)
            count += int(pc.sum(pc.list_value_length(rows.table.column("value"))).as_py() or 0)
        if count >= cells:
            yield Rows(file, _joined(tables))
            tables, count = [], 0
    if tables:
        yield Rows(file, _joined(tables))


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()[0]


_RACES = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")
_QUARTERS = (
    *("a household", "a correctional facility", "a juvenile facility", "a nursing facility"),
    *("another institution", "a college", "a military quarter", "another group quarter"),
)
#: What a value of an axis says of a person or of a unit, in the order of values.
_VALUES: Mapping[str, Sequence[str]] = {
    "hhgq": [f"in {one}" for one in _QUARTERS],
    "votingage": ("under 18", "18 or more"),
    "hispanic": ("not Hispanic", "Hispanic"),
    "cenrace": [
        f"{names[0]} alone" if len(names) == 1 else " and ".join(names)
        for size in range(1, 7)
        for names in combinations(_RACES, size)
    ],
    "sex": ("male", "female"),
    "h1": ("vacant", "occupied"),
}
#: Axes in the order in which a sentence has them.
_ORDER = ("votingage", "sex", "age", "hispanic", "cenrace", "relgq", "hhgq", "h1")


def query_cells(universe: Universe, query: str) -> list[str]:
    """Return the cells of a query in words, such as "18 or more, Black alone, in a household".

    Parameters
    ----------
    universe : Universe
        The histogram of a product.
    query : str
        Name of a query, such as ``"detailed"`` or ``"votingage * cenrace"``.

    Returns
    -------
    list of str
        One text for each cell, in the order of the noisy values.

    Examples
    --------
    >>> from bayesrisk.census.readers.nmf.rows import UNIVERSES
    >>> query_cells(UNIVERSES["pl94-person"], "votingage * hispanic")[2]
    '18 or more, not Hispanic'
    """
    check.instance(universe, Universe, "universe")
    check.text(query, "query")
    try:
        answers = axis_answers(universe, query)
    except KeyError as error:
        raise ArgumentError("query", "must be of known recodes", got=query) from error
    groups = {axis: universe.groups(axis, answer) for axis, answer in answers.items()}
    texts = {}
    for axis, parts in groups.items():
        words = _VALUES.get(axis)
        if parts is None:
            raise ArgumentError("query", "must be of known recodes", got=query)
        if len(parts) == 1 and len(parts[0]) == universe.axes[axis]:
            texts[axis] = [""]
        else:
            named = [[words[v] if words else f"{axis} {v}" for v in part] for part in parts]
            texts[axis] = [" or ".join(part) for part in named]
    order = sorted(texts, key=lambda axis: _ORDER.index(axis) if axis in _ORDER else 0)
    cells = (dict(zip(texts, cell, strict=True)) for cell in product(*texts.values()))
    return [", ".join(filter(None, (cell[axis] for axis in order))) or "all" for cell in cells]
