"""Statistics of the blocks of subsidised properties, as published tables give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError
from bayesrisk.tables.published import PublishedTables, assumed_true

if TYPE_CHECKING:
    import pandas as pd

SIZES, RACES, HUD_RACES, ROOMS = 7, 14, 6, 3
#: Group of HUD's table of householders for each race and ethnicity; -1 where HUD has none.
HUD_GROUP = np.array([0, 1, 2, 3, 3, -1, 4, *[5] * 7])
_TABLES = {
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


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyStatistics:
    """Statistics of blocks, census and HUD; one row for each block.

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
        At least so many of them by group of the householder: White, Black, American Indian, Asian
        or Pacific, several races, each not Hispanic; Hispanic.
    hud_children : ndarray of int64, shape (n, 2)
        Least and largest number of them with people under 18.
    hud_bedrooms : ndarray of int64, shape (n, 3)
        At least so many of them with at most 1, with 2, with 3 bedrooms or more.
    hud_race_most, hud_bedrooms_most : ndarray of int64, optional
        The largest numbers that what HUD publishes stands for, where that is rounded; by default
        those of ``hud_race`` and ``hud_bedrooms``.  Some households report nothing, so that no
        number is limited by them: they only count for the error of noisy statistics.
    """

    geoids: NDArray[np.str_]
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

    def __post_init__(self) -> None:
        """Check shapes and signs."""
        n = check.text_array(self.geoids, "geoids").size
        for name in (*_TABLES, *_MOST):
            given = getattr(self, name)
            values = check.as_array(getattr(self, _MOST[name]) if given is None else given, name)
            if n:
                values = check.count_array(values, name, lower=0, upper=MAX_COUNT)
            width = _WIDTH.get(_MOST.get(name, name), 2 if name == "hud_children" else 0)
            shape = (n, width) if width else (n,)
            if values.shape != shape:
                raise ShapeError(f"{name} must have shape {shape}, got {values.shape}")
            object.__setattr__(self, name, values)
        if np.any(self.hud_children[:, 0] > self.hud_children[:, 1]):
            row = int(np.argmax(self.hud_children[:, 0] > self.hud_children[:, 1]))
            raise ArgumentError(
                f"hud_children must be least and largest, got {self.hud_children[row].tolist()}"
            )
        for name, least in _MOST.items():
            below = np.any(getattr(self, name) < getattr(self, least), axis=1)
            if below.any():
                row = int(np.argmax(below))
                raise ArgumentError(
                    f"{name} must be >= {least} {getattr(self, least)[row].tolist()}, "
                    f"got {getattr(self, name)[row].tolist()}"
                )

    def __len__(self) -> int:
        return int(self.geoids.size)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> OccupancyStatistics:
        """Return the statistics of some of the blocks."""
        return OccupancyStatistics(
            self.geoids[index], *(getattr(self, name)[index] for name in (*_TABLES, *_MOST))
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each block."""
        import pandas as pd  # slow to import

        columns = {"block": np.asarray(self.geoids, dtype=str)}
        for name, names in _columns().items():
            if name in _MOST and np.array_equal(getattr(self, name), getattr(self, _MOST[name])):
                continue
            values = getattr(self, name).reshape(len(self), -1)
            columns |= {column: values[:, i] for i, column in enumerate(names)}
        return pd.DataFrame(columns).astype({"block": "str"})

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, source: str = "blocks") -> OccupancyStatistics:
        """Return the statistics of a frame as :meth:`to_frame` makes it.

        Parameters
        ----------
        frame : pandas.DataFrame
            One row for each block.  Columns of ``hud_race_most`` and ``hud_bedrooms_most`` may
            be missing.
        source : str, default "blocks"
            What messages call it.
        """
        if "block" not in frame:
            raise DataError(f"{source}: must have a column 'block', got {', '.join(frame.columns)}")
        blocks = frame["block"]
        twice = np.flatnonzero(blocks.duplicated() | blocks.isna())
        if twice.size:
            raise DataError(
                f"{source}: row {twice[0] + 1}, column block: must be a different block, got "
                f"{blocks.iloc[twice[0]]!r}"
            )
        fields = {}
        for name, names in _columns().items():
            if name in _MOST and not any(column in frame for column in names):
                continue
            values = np.column_stack([_whole_column(frame, column, source) for column in names])
            fields[name] = values if len(names) > 1 else values[:, 0]
        wrong = np.flatnonzero(fields["hud_children"][:, 0] > fields["hud_children"][:, 1])
        if wrong.size:
            raise DataError(
                f"{source}: row {wrong[0] + 1}, column hud_children_1: must be at most "
                f"hud_children_2, got {fields['hud_children'][wrong[0]].tolist()}"
            )
        for name, least in _MOST.items():
            wrong = np.flatnonzero(np.any(fields.get(name, fields[least]) < fields[least], axis=1))
            if wrong.size:
                raise DataError(
                    f"{source}: row {wrong[0] + 1}, columns {name}: must be >= those of {least} "
                    f"{fields[least][wrong[0]].tolist()}, got {fields[name][wrong[0]].tolist()}"
                )
        return cls(blocks.to_numpy().astype(str), **fields)

    @property
    def largest_people(self) -> IntArray:
        """People in the largest possible set of so many subsidised households, 7 or more as 7."""
        left = np.minimum(self.hud_households, self.sizes.sum(axis=1))
        people = np.zeros(len(self), dtype=np.int64)
        for size in range(SIZES, 0, -1):
            taken = np.minimum(left, self.sizes[:, size - 1])
            people += size * taken
            left = left - taken
        return people


def _columns() -> dict[str, list[str]]:
    """Return the columns of a file for each attribute."""
    widths = {**dict.fromkeys(_TABLES, 1), **_WIDTH, "hud_children": 2}
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
    import pandas as pd  # slow to import

    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    with np.errstate(invalid="ignore"):
        good = (values >= 0) & (values <= MAX_COUNT) & (values == np.rint(values))
    bad = np.flatnonzero(~good)
    if bad.size:
        raise DataError(
            f"{source}: row {bad[0] + 1}, column {column}: must be a whole number in [0, 2**31), "
            f"got {shown(frame[column].iloc[bad[0]])}"
        )
    return values.astype(np.int64)


def occupancy_statistics(
    tables: PublishedTables,
    *,
    level: str = "block",
    hud: str = "counts",
    taken_as_true: bool = False,
) -> OccupancyStatistics:
    """Return the statistics of blocks that the occupancy attack uses.

    Parameters
    ----------
    tables : PublishedTables
        Tables of the workload ``household-occupancy``.
    level : str, default "block"
        Level of the tables.
    hud : {"counts", "percentages"}, default "counts"
        How HUD's tables are read.  HUD publishes whole percentages of the households with
        children, of each race and of each number of bedrooms; with ``percentages`` counts are
        known only as far as those tell: between the least and the largest number that rounds so.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true (``tables.laws``) are read as if they
        were, as somebody naive reads them, or because :func:`reconstruct_occupancy` is told of
        their error.  Without it they are refused.

    Returns
    -------
    OccupancyStatistics
        One row for each block.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), appendix E.

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
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    check.choice(hud, "hud", _READINGS)
    keys = [(check.text(level, "level"), table) for table in _TABLES.values()]
    assumed_true(tables.laws, keys, taken_as_true=taken_as_true)
    counts = {name: _counts(tables, level, table) for name, table in _TABLES.items()}
    for name in _TABLES:
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


def _counts(tables: PublishedTables, level: str, table: str) -> IntArray:
    """Return a table as an array, blocks by cells."""
    if (level, table) not in tables.counts:
        raise ArgumentError(f"tables must have table {table!r} of level {level!r}, got none")
    values: IntArray = tables.counts[level, table].toarray()
    width = _WIDTH.get(next(n for n, t in _TABLES.items() if t == table), 1)
    if values.shape[1] != width:
        raise ArgumentError(f"table {table!r} must have {width} cells, got {values.shape[1]}")
    hidden = tables.hidden(level, table)
    cells = tables.workload.tables[level, table].cells
    rules = (
        (hidden.toarray(), "published"),
        (values < 0, ">= 0"),
        (values > MAX_COUNT, "below 2**31"),
    )
    for bad, what in rules:
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise DataError(
                f"tables: {level} {tables.geoids[level][row]}, table {table}, cell "
                f"{cells[column]}: must be {what}, got {values[row, column]}"
            )
    return values


def _interval(counts: IntArray, whole: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and largest counts with the same whole percentage."""
    doubled = 2 * whole
    percent = (200 * counts + whole) // np.maximum(doubled, 1)
    low = np.maximum(-((whole - 2 * percent * whole) // 200), 0)
    high = np.minimum((2 * percent * whole + whole) // 200, whole)
    return np.minimum(low, counts), np.maximum(high, counts)
