"""Statistics of the blocks of subsidised properties, the law of households, and their programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.constraints.model import IntegerModel
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
    most : OccupancyStatistics, optional
        The largest counts that the published ones allow, where these are rounded or withheld; the
        other attributes are then the smallest.
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
        """Return the statistics, for a reader who understands no counts but exact ones."""
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
        """Return the statistics of a frame as :meth:`to_frame` makes it.

        Columns of ``hud_race_most`` and ``hud_bedrooms_most`` may be missing, and the largest
        counts, whose columns begin with ``most_``; ``source`` is what messages call the frame.
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
        """People in the largest possible set of so many subsidised households, 7 or more as 7."""
        left = np.minimum(self.hud_households, self.sizes.sum(axis=1))
        people = np.zeros(len(self), dtype=np.int64)
        for size in range(SIZES, 0, -1):
            homes = np.minimum(left, self.sizes[:, size - 1])
            people += size * homes
            left = left - homes
        return people


def _columns() -> dict[str, list[str]]:
    """Return the columns of a file for each attribute."""
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
        How HUD's tables are read.  HUD publishes whole percentages of the households with
        children, of each race and of each number of bedrooms; with ``percentages`` counts are
        known only as far as those tell: between the least and the largest number that rounds so.
    taken_as_true, known_rule
        As for :class:`ClaimOptions`: otherwise attribute ``most`` has the largest counts that
        published ones allow.  Noisy counts are also taken as true because
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
    """Return the smallest counts that tables allow, with the largest ones as ``most``."""
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
    """Return a table as an array, blocks by cells; 0 for cells that may be ``withheld``."""
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
    """Refuse a table for the first of its bad cells."""
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        cell = tables.workload.tables[level, table].cells[column]
        raise DataError(
            f"tables: {level} {tables.geoids[level][row]}, table {table}, cell "
            f"{cell}: must be {condition}, got {values[row, column]}"
        )


def _interval(counts: IntArray, whole: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and largest counts with the same whole percentage."""
    doubled = 2 * whole
    percent = (200 * counts + whole) // np.maximum(doubled, 1)
    low = np.maximum(-((whole - 2 * percent * whole) // 200), 0)
    high = np.minimum((2 * percent * whole + whole) // 200, whole)
    return np.minimum(low, counts), np.maximum(high, counts)


# -----------------------------------------------------------------------------
# How likely each kind of household is, from a public sample of households.


#: Log-likelihoods are whole multiples of this part of a nat, so that optima are proved exactly.
UNIT = 10_000
COLUMNS = ("size", "race_ethnicity", "children")
_BOUNDS = {"size": (1, 7), "race_ethnicity": (0, 13), "children": (0, 6)}


@displayed
@dataclass(frozen=True, eq=False)
class HouseholdLaw:
    """Kinds of households and their log probabilities.

    Attributes
    ----------
    size, race_ethnicity, children : ndarray of int64
        Codes of the schema ``household-occupancy`` (7 is 7 or more people, 6 is 6 or more
        children), one entry for each kind.
    log_probability : ndarray of int64
        Natural logarithm of the probability, in units of 1e-4, rounded.
    in_sample : ndarray of bool
        Whether the kind was in the sample; the others are there for blocks that none of these fit.
    adults : int
        People of a household that are not children, at the least.
    """

    size: IntArray
    race_ethnicity: IntArray
    children: IntArray
    log_probability: IntArray
    in_sample: BoolArray
    adults: int

    def __len__(self) -> int:
        return int(self.size.size)

    @classmethod
    def from_sample(
        cls, sample: pd.DataFrame, *, smoothing: float, adults: int = 1
    ) -> HouseholdLaw:
        r"""Return the law of households from a sample, the kinds in the sample first.

        The probability of a kind that ``c`` of ``n`` households have is
        :math:`(c + s) / (n + s K)` with smoothing ``s`` and ``K`` possible kinds.  Kinds outside
        the sample are used only in blocks that the others cannot explain, and flagged there.
        Columns of the sample are ``size``, ``race_ethnicity`` and ``children`` in codes of
        ``household-occupancy``, and perhaps ``weight``, whole households that a row stands for;
        ``adults``, 0 or 1, are people of a household that are not children, at the least.

        Source: Steed, Qing and Wu (2024), Eq. 2.

        Examples
        --------
        >>> sample = pd.DataFrame({"size": [1, 1, 3], "race_ethnicity": 0, "children": [0, 0, 1]})
        >>> law = HouseholdLaw.from_sample(sample, smoothing=0.5)
        >>> len(law), int(law.in_sample.sum())
        (392, 2)
        """
        sample = check.frame(sample, "sample")
        added = check.scalar(smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        least = check.integer(adults, "adults", lower=0, upper=1)
        codes = {name: _codes(sample, name, *_BOUNDS[name]) for name in COLUMNS}
        weight = _codes(sample, "weight", 0, 2**40) if "weight" in sample else None
        size, race, children = (a.ravel() for a in np.indices((7, 14, 7)))
        size = size + 1
        counts = np.zeros((7, 14, 7), dtype=np.int64)
        index = (codes["size"] - 1, codes["race_ethnicity"], codes["children"])
        np.add.at(counts, index, 1 if weight is None else weight)
        possible = children <= np.maximum(size - least, 0)
        flat = counts.ravel()
        impossible = np.flatnonzero((flat > 0) & ~possible)
        if impossible.size:
            culprit = impossible[0]
            raise DataError(
                f"sample: children must be <= size - {least}, got {children[culprit]} in a "
                f"household of {size[culprit]}"
            )
        if not flat.any():
            raise DataError("sample: must hold households, got none")
        order = np.flatnonzero(possible)
        order = order[np.argsort(flat[order] == 0, kind="stable")]
        whole = flat.sum() + added * order.size
        log = np.log((flat[order] + added) / whole)
        return cls(
            size[order].astype(np.int64),
            race[order].astype(np.int64),
            children[order].astype(np.int64),
            np.rint(UNIT * log).astype(np.int64),
            flat[order] > 0,
            least,
        )


def _codes(sample: pd.DataFrame, name: str, low: int, high: int) -> IntArray:
    sample = check.frame(sample, "sample", (name,))
    try:
        return check.count_array(sample[name].to_numpy(), name, lower=low, upper=high)
    except ArgumentError as error:
        raise DataError(f"sample: {error}") from error


# -----------------------------------------------------------------------------
# Integer programs of the households of one block: Eq. 2 (exact tables) and Eq. 8 (noisy ones).
#
# Variables: households of each kind; of each class (size, group of the householder, children or
# not) the subsidised ones by bedrooms; and, for noisy tables, what each row misses its count by.


#: Most units of squared errors of a block, a variable each.
MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The program of one block: kinds, subsidised classes (bedrooms by class), errors.

    The objective is the log-likelihood in units of 1e-4 (minus error), maximised.  ``kinds`` are
    positions in the law; ``kind_class`` is the class of each kind, as a position among those of the
    program.
    """

    model: IntegerModel
    objective: IntArray
    kinds: IntArray
    kind_class: IntArray
    n_classes: int

    def split(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return households of each kind, and subsidised ones (3, classes)."""
        n = self.kinds.size
        return values[:n], values[n : n + 3 * self.n_classes].reshape(3, -1)


def block_program(
    blocks: OccupancyStatistics,
    block: int,
    law: HouseholdLaw,
    *,
    every_kind: bool,
    error: str,
    likelihood: bool = True,
    most: int | None = None,
) -> BlockProgram:
    """Return the program of the block at a position.

    With ``error="none"`` tables are right, as :func:`occupancy_statistics` reads them; with
    ``absolute`` or ``squared`` every row but the number of households may be missed, at that
    cost: the distance to the interval of counts that a published number stands for.
    ``every_kind`` allows kinds outside the sample, ``likelihood`` gives kinds their weights,
    ``most`` is the largest error of a row that needs to be looked at, for squared errors.
    """
    exact = error == "none"
    usable = np.ones(len(law), dtype=bool) if every_kind else law.in_sample
    limit = kind_limit(blocks, block, law, exact=exact)
    kinds = np.flatnonzero(usable & (limit > 0))
    code, kind_class = np.unique(_classes(law, kinds), return_inverse=True)
    rows, low, high = statistic_rows(blocks, block, law, kinds, code, exact=exact)
    n, m = kinds.size, code.size
    top = np.concatenate([limit[kinds], np.full(3 * m, blocks.hud_households[block])])
    if not exact:
        top[n:] = blocks.households[block]
    coupling = sp.hstack(
        [
            -sp.csr_array((np.ones(n, np.int64), (kind_class, np.arange(n))), shape=(m, n)),
            sp.hstack([sp.eye_array(m, dtype=np.int64)] * 3),
        ],
        format="csr",
    )
    weight = law.log_probability[kinds] if likelihood else np.zeros(n, np.int64)
    objective = np.concatenate([weight, np.zeros(3 * m, np.int64)])
    if not exact:
        soft, cost, soft_top = _errors(rows, low, high, top, squared=error == "squared", most=most)
        rows = sp.hstack([rows, soft], format="csr")
        coupling = sp.hstack(
            [coupling, sp.csr_array((m, soft.shape[1]), dtype=np.int64)], format="csr"
        )
        objective = np.concatenate([objective, -UNIT * cost])
        top = np.concatenate([top, soft_top])
    model = IntegerModel(
        np.zeros(top.size, np.int64),
        top.astype(np.int64),
        sp.csr_array(sp.vstack([rows, coupling], format="csr")),
        np.concatenate([low, np.full(m, -int(blocks.households[block]), np.int64)]),
        np.concatenate([high, np.zeros(m, np.int64)]),
    )
    return BlockProgram(model, objective, kinds, kind_class, m)


def kind_limit(
    blocks: OccupancyStatistics, block: int, law: HouseholdLaw, *, exact: bool
) -> IntArray:
    """Return the most households of each kind that a block can have."""
    n = int(blocks.households[block])
    race = blocks.race[block]
    if exact and race.sum() == n:
        return np.asarray(race[law.race_ethnicity], dtype=np.int64)
    return np.full(len(law), n, dtype=np.int64)


def _classes(law: HouseholdLaw, kinds: IntArray) -> IntArray:
    """Return a number for what HUD's statistics tell of kinds: size, group, children or not."""
    group = HUD_GROUP[law.race_ethnicity[kinds]] + 1
    code: IntArray = (law.size[kinds] * 7 + group) * 2 + (law.children[kinds] > 0)
    return code


def statistic_rows(
    blocks: OccupancyStatistics,
    block: int,
    law: HouseholdLaw,
    kinds: IntArray,
    code: IntArray | None = None,
    *,
    exact: bool,
) -> tuple[sp.csr_array, IntArray, IntArray]:
    """Return rows over kinds and subsidised classes with their bounds, the first that of H3.

    Classes are given by their codes; without, every kind is a class of its own.
    """
    size, race, children = law.size[kinds], law.race_ethnicity[kinds], law.children[kinds]
    code = _classes(law, kinds) if code is None else code
    c_size, c_group, c_child = code // 14, (code // 2) % 7 - 1, code % 2
    n, n_sub = int(blocks.households[block]), int(blocks.hud_households[block])
    homes = [np.ones_like(size), *(size == x for x in range(1, 8))]
    homes += [*(race == j for j in range(14)), size, children]
    subsidised = [np.ones_like(c_size), c_size, *(c_group == j for j in range(6)), c_child]
    every = np.tile(np.array(subsidised, dtype=np.int64), 3)
    rooms = np.kron(np.eye(3, dtype=np.int64), np.ones(code.size, dtype=np.int64))
    parts = np.array(homes, dtype=np.int64), np.vstack([every, rooms])
    matrix = sp.block_diag([sp.coo_array(part) for part in parts], format="csr")
    counts = blocks.sizes[block]
    people, minors = int(blocks.population[block]), int(blocks.children[block])
    hud_people = int(blocks.hud_people[block])
    large = n - int(counts[:6].sum())  # households that may be larger than any size published
    if exact:
        hud_people = min(hud_people, int(blocks.largest_people[block]))
    if exact and large > 0:
        sizes, size_counts = np.arange(1, 8), [*counts[:6].tolist(), large]
        people = min(people, int(size_counts @ sizes))
        minors = min(minors, int(size_counts @ np.minimum(sizes - law.adults, 6)))
        left = n_sub - np.cumsum([0, *size_counts[:0:-1]])  # the largest ones first
        largest = np.clip(left, 0, size_counts[::-1]) @ sizes[::-1]
        hud_people = min(hud_people, int(largest))
    low = [n, *counts, *blocks.race[block], people, minors, n_sub, hud_people]
    low += [*blocks.hud_race[block], int(blocks.hud_children[block, 0])]
    low += [*blocks.hud_bedrooms[block]]
    high = [n, *counts, *blocks.race[block], people, minors, n_sub, hud_people]
    high += [*np.asarray(blocks.hud_race_most)[block], int(blocks.hud_children[block, 1])]
    high += [*np.asarray(blocks.hud_bedrooms_most)[block]]
    if exact:
        # A household of unknown size may have 7 people, and 7 may be anything.
        low[7] = 0
        high = [n, *[n] * 7, *[n] * 14, 7 * n, 7 * n, n_sub, 7 * n, *[n] * 6]
        high += [int(blocks.hud_children[block, 1]), *[n] * 3]
    return sp.csr_array(matrix), np.array(low, np.int64), np.array(high, np.int64)


def _errors(
    rows: sp.csr_array,
    low: IntArray,
    high: IntArray,
    top: IntArray,
    *,
    squared: bool,
    most: int | None,
) -> tuple[sp.csr_array, IntArray, IntArray]:
    """Return columns of errors of all rows but the first, their costs and bounds.

    Squared errors are steps of one, at costs 1, 3, 5, ...: the k-th brings the sum to k squared.
    """
    missing, surplus = low, np.maximum(rows @ top - high, 0)
    # Missing and surplus units of each row but the first, in turn.
    row = np.repeat(np.arange(1, low.size), 2)
    side = np.tile([1, -1], low.size - 1)
    reach = np.stack([missing, surplus], axis=1)[1:].ravel().astype(np.int64)
    reach = reach if most is None else np.minimum(reach, most)
    if squared and reach.sum() > MAX_STEPS:
        raise ArgumentError(
            "error",
            f"'squared' must have at most {MAX_STEPS} units of error in a block",
            shown=f"{reach.sum()}: take 'absolute'",
        )
    steps = reach if squared else (reach > 0).astype(np.int64)
    place, sign = np.repeat(row, steps), np.repeat(side, steps)
    bound = np.ones(place.size, np.int64) if squared else reach[reach > 0]
    first = np.repeat(np.cumsum(steps) - steps, steps)
    cost = 2 * (np.arange(place.size) - first) + 1
    shape = (rows.shape[0], place.size)
    return sp.csr_array((sign, (place, np.arange(place.size))), shape=shape), cost, bound
