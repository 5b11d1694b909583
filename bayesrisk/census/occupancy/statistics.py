"""Statistics of blocks with subsidised properties: exact counts, or intervals of noisy ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import PublishedTables, assumed_true

SIZES, RACES, HUD_RACES, ROOMS = 7, 14, 6, 3
#: Group of HUD's table of householders for each race and ethnicity; -1 where HUD has none.
HUD_GROUP = np.array([0, 1, 2, 3, 3, -1, 4, *[5] * 7])
#: Published tables behind the statistics.
TABLES = {
    "households": "H3",
    "population": "P1",
    "sizes": "H13",
    "race": "P15",
    "children": "P16",
    "hud_households": "HUD-households",
    "hud_people": "HUD-people",
    "hud_race": "HUD-race",
    "hud_children": "HUD-children",
    "hud_bedrooms": "HUD-bedrooms",
}
_WIDTH = {"sizes": SIZES, "race": RACES, "hud_race": HUD_RACES, "hud_bedrooms": ROOMS}
#: Largest counts behind rounded percentages, and the least ones that they are without rounding.
_MOST = {"hud_race_most": "hud_race", "hud_bedrooms_most": "hud_bedrooms"}
#: Largest count of a block.
MAX_COUNT = 2**31 - 1
_READINGS = ("counts", "percentages")
#: Begin of the columns of largest counts in a file.
_LARGEST = "most_"


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyStatistics(Tabular):
    """Census and HUD statistics of blocks, one row for each block.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    households : ndarray of int64
        Occupied units (H3).
    population : ndarray of int64
        People (P1).
    sizes : ndarray of int64, shape (n, 7)
        Households of 1, ..., 6, and of 7 people or more (H13).
    race : ndarray of int64, shape (n, 14)
        Households by race and ethnicity of the householder (P15).
    children : ndarray of int64
        People under 18 (P16).
    hud_households : ndarray of int64
        Subsidised households.
    hud_people : ndarray of int64
        People in them.
    hud_race : ndarray of int64, shape (n, 6)
        Least number of them by group of the householder: White, Black, American Indian, Asian or
        Pacific, several races, each not Hispanic; Hispanic.
    hud_children : ndarray of int64, shape (n, 2)
        Least and largest number of them with people under 18.
    hud_bedrooms : ndarray of int64, shape (n, 3)
        Least number of them with at most 1, with 2, with 3 bedrooms or more.
    hud_race_most, hud_bedrooms_most : ndarray of int64, optional
        Largest numbers that HUD's rounded statistics allow; by default those of ``hud_race`` and
        ``hud_bedrooms``. Some households report nothing, so these limit no number. They only count
        in the error of noisy statistics.
    most : OccupancyStatistics, optional
        Largest counts that the published ones allow, if these are rounded or withheld; the other
        attributes are then the smallest.
    """

    geoids: TextArray
    households: IntArray
    population: IntArray
    sizes: IntArray
    race: IntArray
    children: IntArray
    hud_households: IntArray
    hud_people: IntArray
    hud_race: IntArray
    hud_children: IntArray
    hud_bedrooms: IntArray
    hud_race_most: IntArray | None = None
    hud_bedrooms_most: IntArray | None = None
    most: OccupancyStatistics | None = None

    def __post_init__(self) -> None:
        """Check shapes and signs."""
        n = check.text_array(self.geoids, "geoids").size
        for name in (*TABLES, *_MOST):
            value = getattr(self, name)
            if value is None and name in _MOST:
                value = getattr(self, _MOST[name])
            values = check.as_array(value, name)
            if n:
                values = check.count_array(values, name, lower=0, upper=MAX_COUNT)
            width = _WIDTH.get(_MOST.get(name, name), 2 if name == "hud_children" else 0)
            shape = (n, width) if width else (n,)
            if values.shape != shape:
                raise ShapeError(f"{name} must have shape {shape}, got {values.shape}")
            object.__setattr__(self, name, values)
        wrong = np.flatnonzero(self.hud_children[:, 0] > self.hud_children[:, 1])
        if wrong.size:
            raise ArgumentError(
                f"row {wrong[0] + 1}, column hud_children_1: must be at most hud_children_2, "
                f"got {self.hud_children[wrong[0]].tolist()}"
            )
        for name, least in _MOST.items():
            most, values = getattr(self, name), getattr(self, least)
            wrong = np.flatnonzero(np.any(most < values, axis=1))
            if wrong.size:
                raise ArgumentError(
                    f"row {wrong[0] + 1}, columns {name}: must be >= those of {least} "
                    f"{values[wrong[0]].tolist()}, got {most[wrong[0]].tolist()}"
                )
        if self.most is not None:
            largest = check.instance(self.most, OccupancyStatistics, "most")
            if not np.array_equal(largest.geoids, self.geoids):
                raise ArgumentError("most must be of the same blocks")
            for name in TABLES:
                if np.any(getattr(largest, name) < getattr(self, name)):
                    raise ArgumentError(f"most must be at least the smallest counts, {name} is not")

    def __len__(self) -> int:
        return int(self.geoids.size)

    def take(self, index: IntArray | BoolArray) -> OccupancyStatistics:
        """Return the statistics of some of the blocks."""
        most = None if self.most is None else self.most.take(index)
        fields: dict[str, Any] = {name: getattr(self, name)[index] for name in (*TABLES, *_MOST)}
        return OccupancyStatistics(self.geoids[index], **fields, most=most)

    def exact(self, reader: str) -> OccupancyStatistics:
        """Return the statistics if all counts are exact; raise otherwise, naming the ``reader``."""
        if self.most is not None:
            raise ArgumentError(
                "blocks",
                f"must have one number for each count for {reader}, whose programs weigh its "
                "errors",
                shown="smallest and largest ones: occupancy_statistics(taken_as_true=True) reads "
                "published numbers as they are",
            )
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each block."""
        columns = {"block": np.asarray(self.geoids, dtype=str)}
        for name, names in _columns().items():
            if name in _MOST and np.array_equal(getattr(self, name), getattr(self, _MOST[name])):
                continue
            values = getattr(self, name).reshape(len(self), -1)
            columns |= {column: values[:, i] for i, column in enumerate(names)}
        if self.most is not None:
            largest = self.most.to_frame().drop(columns="block").add_prefix(_LARGEST)
            columns |= {str(column): values.to_numpy() for column, values in largest.items()}
        return pd.DataFrame(columns).astype({"block": "str"})

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, source: str = "blocks") -> OccupancyStatistics:
        """Return the statistics in a frame made by :meth:`to_frame`.

        Columns of ``hud_race_most`` and ``hud_bedrooms_most`` are optional, as are the largest
        counts, whose columns begin with ``most_``. ``source`` is the frame's name in messages.
        """
        frame = check.frame(frame, source, ["block"])
        blocks = frame["block"]
        duplicates = blocks.duplicated() | blocks.isna()
        check.refuse_row(duplicates, blocks, source, "block", "be a different block")
        fields = {}
        for name, names in _columns().items():
            if name in _MOST and not any(column in frame for column in names):
                continue
            values = np.column_stack([_whole_column(frame, column, source) for column in names])
            fields[name] = values if len(names) > 1 else values[:, 0]
        largest = [str(column) for column in frame if str(column).startswith(_LARGEST)]
        most = None
        if largest:
            named = frame[["block", *largest]].set_axis(
                ["block", *(column.removeprefix(_LARGEST) for column in largest)], axis=1
            )
            most = cls.from_frame(named, source=f"{source}, columns {_LARGEST}...")
        try:
            return cls(blocks.to_numpy().astype(str), **fields, most=most)
        except ArgumentError as error:
            raise DataError(f"{source}: {error}") from error

    @property
    def largest_people(self) -> IntArray:
        """Largest number of people in the subsidised households, with 7 or more counted as 7."""
        left = np.minimum(self.hud_households, self.sizes.sum(axis=1))
        people = np.zeros(len(self), dtype=np.int64)
        for size in range(SIZES, 0, -1):
            homes = np.minimum(left, self.sizes[:, size - 1])
            people += size * homes
            left = left - homes
        return people


def _columns() -> dict[str, list[str]]:
    widths = {**dict.fromkeys(TABLES, 1), **_WIDTH, "hud_children": 2}
    widths |= {name: widths[least] for name, least in _MOST.items()}
    return {
        name: [name] if width == 1 else [f"{name}_{i}" for i in range(1, width + 1)]
        for name, width in widths.items()
    }


def _whole_column(frame: pd.DataFrame, column: str, source: str) -> IntArray:
    if column not in frame:
        raise DataError(
            f"{source}: must have a column {column!r}, got {', '.join(map(str, frame.columns))}"
        )
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    with np.errstate(invalid="ignore"):
        good = (values >= 0) & (values <= MAX_COUNT) & (values == np.rint(values))
    check.refuse_row(~good, frame[column], source, column, "be a whole number in [0, 2**31)")
    return values.astype(np.int64)


def occupancy_statistics(
    tables: PublishedTables,
    *,
    level: str = "block",
    hud: str = "counts",
    taken_as_true: bool = False,
    known_rule: bool = True,
) -> OccupancyStatistics:
    """Return the statistics of blocks that the occupancy attack uses.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), appendix E.

    Parameters
    ----------
    tables : PublishedTables
        Tables of the workload ``household-occupancy``.
    level : str, default "block"
        Level of the tables.
    hud : {"counts", "percentages"}, default "counts"
        Reading of HUD's tables. HUD publishes whole percentages of the households with children, of
        each race and of each number of bedrooms. With ``percentages``, counts are known only
        between the least and the largest number that rounds to them.
    taken_as_true, known_rule
        As for :class:`ClaimOptions`. Without ``taken_as_true``, attribute ``most`` has the largest
        counts that published ones allow. Noisy counts are also taken as true, because
        :func:`reconstruct_occupancy` is told of their error.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> import pandas as pd
    >>> homes = pd.DataFrame({"block": "500010101001000", "size": [1, 3], "race_ethnicity": 0,
    ...                       "children": [0, 1], "bedrooms": [0, 1], "subsidised": [0, 1]})
    >>> records = Records.from_frame(homes, schema=Schema.named("household-occupancy"))
    >>> found = occupancy_statistics(tabulate(records, Workload.named("household-occupancy")))
    >>> found.households, found.hud_people
    (array([2]), array([3]))
    """
    check.instance(tables, PublishedTables, "tables")
    check.choice(hud, "hud", _READINGS)
    keys = [(check.text(level, "level"), table) for table in TABLES.values()]
    assumed_true(tables.laws, keys, taken_as_true=taken_as_true)
    check.flag(known_rule, "known_rule")
    several = any(not tables.laws[key].exact for key in keys if key in tables.laws)
    several |= any(tables.suppressed[key].nnz for key in keys if key in tables.suppressed)
    if several and not taken_as_true:
        if hud != "counts":
            raise ArgumentError(
                "hud", "must be 'counts' where tables allow several counts of a cell", got=hud
            )
        return _smallest_and_largest(tables, level, known_rule=known_rule)
    counts: dict[str, Any] = {n: _counts(tables, level, table) for n, table in TABLES.items()}
    for name in TABLES:
        if name not in _WIDTH:
            counts[name] = counts[name][:, 0]
    whole = counts["hud_households"][:, None]
    if hud == "percentages":
        for most, least in _MOST.items():
            counts[least], counts[most] = _interval(counts[least], whole)
        low, high = _interval(counts["hud_children"][:, None], whole)
        counts["hud_children"] = np.hstack([low, high])
    else:
        counts["hud_children"] = np.repeat(counts["hud_children"][:, None], 2, axis=1)
    return OccupancyStatistics(np.asarray(tables.geoids[level]), **counts)


def _smallest_and_largest(
    tables: PublishedTables, level: str, *, known_rule: bool
) -> OccupancyStatistics:
    """Return the smallest counts that tables allow, and the largest as ``most``."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name, table in TABLES.items():
        values = _counts(tables, level, table, withheld=True)
        low[name], high[name] = tables.support(level, table, known_rule=known_rule)
        _refuse(tables, level, table, low[name] > high[name], "a number that is published", values)
        if name not in _WIDTH:
            low[name], high[name] = low[name][:, 0], high[name][:, 0]
        if name == "households":
            endless = (high[name] == UNBOUNDED)[:, None]
            _refuse(tables, level, table, endless, "of a count with a largest value", values)
        elif name not in ("population", "children", "hud_people"):
            # No number of households is larger than that of all.
            all_homes = high["households"].reshape([-1] + [1] * (high[name].ndim - 1))
            limit = np.maximum(all_homes, low[name])
            high[name] = np.where(high[name] == UNBOUNDED, limit, high[name])
        high[name] = np.minimum(high[name], MAX_COUNT)
    pair = np.column_stack([low["hud_children"], high["hud_children"]])
    low["hud_children"] = high["hud_children"] = pair
    geoids = np.asarray(tables.geoids[level])
    return OccupancyStatistics(geoids, **low, most=OccupancyStatistics(geoids, **high))


def _counts(tables: PublishedTables, level: str, table: str, *, withheld: bool = False) -> IntArray:
    """Return a table as an array (blocks, cells), with 0 for ``withheld`` cells if allowed."""
    if (level, table) not in tables.counts:
        raise ArgumentError("tables", f"must have table {table!r} of level {level!r}", shown="none")
    values: IntArray = tables.counts[level, table].toarray()
    width = _WIDTH.get(next(n for n, t in TABLES.items() if t == table), 1)
    if values.shape[1] != width:
        raise ArgumentError("table", f"{table!r} must have {width} cells", shown=values.shape[1])
    if not withheld:
        hidden = tables.hidden(level, table).toarray()
        _refuse(tables, level, table, hidden, "published", values)
    _refuse(tables, level, table, values < 0, ">= 0", values)
    _refuse(tables, level, table, values > MAX_COUNT, "below 2**31", values)
    return values


def _refuse(
    tables: PublishedTables,
    level: str,
    table: str,
    bad: BoolArray,
    condition: str,
    values: IntArray,
) -> None:
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        cell = tables.workload.tables[level, table].cells[column]
        raise DataError(
            f"tables: {level} {tables.geoids[level][row]}, table {table}, cell "
            f"{cell}: must be {condition}, got {values[row, column]}"
        )


def _interval(counts: IntArray, whole: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and largest counts that round to the same whole percentage."""
    doubled = 2 * whole
    percent = (200 * counts + whole) // np.maximum(doubled, 1)
    low = np.maximum(-((whole - 2 * percent * whole) // 200), 0)
    high = np.minimum((2 * percent * whole + whole) // 200, whole)
    return np.minimum(low, counts), np.maximum(high, counts)
