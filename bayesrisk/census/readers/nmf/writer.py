"""A small noisy measurement file in the form of the released ones, with its truth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from bayesrisk._base import disk, validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.accounting import census_2020_budget
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS, block_geocode
from bayesrisk.census.readers.nmf.reader import budget_chain
from bayesrisk.census.readers.nmf.rows import UNIVERSES, Universe, axis_answers, query_groups
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, quote

# Invented geography and people for a small noisy measurement file.


_LEVELS = tuple(SPINE_WIDTHS)
_NATION = "0"
# Rough shares, only to have one dominant cell and a long tail.
_TYPES = (0.972, 0.008, 0.001, 0.005, 0.001, 0.009, 0.001, 0.003)
_ADULTS = (0.97, 1.0, 0.0, 1.0, 0.8, 1.0, 1.0, 0.9)  # by type; the first is set apart below
_ADULTS_AT_HOME = 0.77
_HISPANIC = 0.18
_RACES = (0.66, 0.13, 0.02, 0.06, 0.004, 0.07)
_CONCENTRATION = 12.0  # of a block's shares around those: a few cells hold most of it
_EMPTY, _MEAN_PEOPLE, _MEAN_UNITS = 0.2, 25.0, 11.0
_OCCUPIED = 0.9
_MOST_UNITS_OF_A_KIND = 9


class SyntheticSpine(NamedTuple):
    """Sorted units of every level, coarse to fine, and each unit's parent."""

    levels: tuple[str, ...]
    geocodes: Mapping[str, NDArray[np.str_]]
    parent: Mapping[str, IntArray]

    def only_child(self, level: str) -> NDArray[np.bool_]:
        """Return whether each unit has no siblings."""
        parents = self.parent[level]
        alone: NDArray[np.bool_] = (np.bincount(parents) == 1)[parents]
        return alone

    def add_up(self, values: IntArray, level: str) -> IntArray:
        """Return the children's sums for each unit of the level above."""
        parents = self.parent[level]
        sums = np.zeros((int(parents.max()) + 1, values.shape[1]), dtype=np.int64)
        np.add.at(sums, parents, values)
        return sums

    def by_state(self, level: str) -> Iterator[tuple[str, IntArray]]:
        """Yield each state and its units; the nation's state is an empty text."""
        codes = self.geocodes[level]
        if level == _LEVELS[0]:
            yield "", np.arange(codes.size)
            return
        states = codes.astype("U3")
        for state in np.unique(states).tolist():
            yield state, np.flatnonzero(states == state)


def draw_spine(
    states: Sequence[str],
    counties: int,
    sizes: Mapping[str, tuple[int, int]],
    rng: np.random.Generator,
) -> SyntheticSpine:
    """Draw the number of children of every unit, and number the units."""
    check.integer(counties, "counties", lower=1, upper=99)
    for name, pair in sizes.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"{name} must be the least and the most, got {quote(pair)}")
        least = check.integer(pair[0], name, lower=1, upper=999)
        check.integer(pair[1], name, lower=least, upper=999)
    if sizes["block_groups"][1] > _MOST_UNITS_OF_A_KIND:
        raise ArgumentError(f"block_groups must be <= 9, got {sizes['block_groups'][1]}")
    distinct = sorted(set(check.texts(states, "states")))
    if not distinct or len(distinct) != len(states):
        raise ArgumentError(f"states must be different, at least one, got {quote(list(states))}")
    for state in distinct:
        if not re.fullmatch("[01][0-9]{2}", state):
            raise ArgumentError(f"states must be a tribal flag and two digits, got {quote(state)}")

    def draw_number(name: str) -> int:
        least, most = sizes[name]
        return int(rng.integers(least, most + 1))

    groups: list[str] = []
    numbers: list[str] = []
    for state in distinct:
        first = True
        for county in range(1, counties + 1):
            # Tribal parts have counties of their own numbers, so that no block is in both.
            public = f"{2 * county - 1 + 100 * int(state[0]):03d}"
            for tract in range(1, draw_number("tracts") + 1):
                for group in range(1, draw_number("block_groups") + 1):
                    n_blocks, first = 1 if first else draw_number("blocks"), False
                    groups += [f"{state}10{public}1{tract:04d}{group:02d}"] * n_blocks
                    place = f"{state[1:]}{public}{100 * tract:06d}{group}"
                    numbers += [f"{place}{block:03d}" for block in range(n_blocks)]
    blocks = np.sort(block_geocode(groups, numbers))
    geocodes = {name: np.unique(blocks.astype(f"U{SPINE_WIDTHS[name]}")) for name in _LEVELS[1:]}
    parent = {
        lower: np.searchsorted(geocodes[upper], geocodes[lower].astype(f"U{SPINE_WIDTHS[upper]}"))
        for upper, lower in pairwise(_LEVELS[1:])
    }
    parent["State"] = np.zeros(len(distinct), dtype=np.int64)
    return SyntheticSpine(_LEVELS, {"US": np.array([_NATION]), **geocodes}, parent)


def _profile() -> FloatArray:
    """Return the shares of the 2,016 cells, in the histogram's order."""
    adults = np.array([_ADULTS_AT_HOME, *_ADULTS[1:]])
    # The voting age of nursing homes is fixed by a constraint: nobody there is a minor.
    adults[3] = 1.0
    races = np.array([*_RACES, *np.full(57, (1.0 - sum(_RACES)) / 57)])
    shares = np.einsum(
        "i,ij,k,l->ijkl",
        np.array(_TYPES),
        np.stack([1.0 - adults, adults], axis=1),
        np.array([1.0 - _HISPANIC, _HISPANIC]),
        races,
    ).ravel()
    result: FloatArray = shares / shares.sum()
    return result


def draw_counts(n_blocks: int, universe: Universe, rng: np.random.Generator) -> IntArray:
    """Draw blocks' histograms: some empty, others with most people in few cells."""
    mean = _MEAN_PEOPLE if universe.name == "pl94-person" else _MEAN_UNITS
    size = np.where(rng.random(n_blocks) < _EMPTY, 0, rng.geometric(1.0 / mean, n_blocks))
    if universe.name != "pl94-person":
        occupied = rng.binomial(size, _OCCUPIED)
        return np.stack([size - occupied, occupied], axis=1)
    shares = _profile()
    counts = np.empty((n_blocks, universe.size), dtype=np.int64)
    for i in range(n_blocks):
        weights = rng.standard_gamma(_CONCENTRATION * shares)
        counts[i] = rng.multinomial(size[i], weights / weights.sum())
    return counts


_ROW_GROUP = 4096
_FACILITY = 99_999  # upper bound of the people in one facility


@displayed
@dataclass(frozen=True)
class SyntheticMeasurements:
    """A written noisy measurement file, with the truth and budgets that only the writer knows.

    ``folder`` is for ``NoisyMeasurements.open``. ``geocodes`` are the units of each level, sorted,
    and ``counts`` the true histograms of each level, shape (units, cells). ``rho`` has, for a level
    and a query, the budget of each unit's answer, 0 without an answer.
    """

    folder: Path
    geocodes: Mapping[str, NDArray[np.str_]]
    counts: Mapping[str, IntArray]
    rho: Mapping[tuple[str, str], NDArray[np.object_]]


def answer_query(
    counts: IntArray, universe: Universe, query: str
) -> tuple[IntArray, tuple[int, ...]]:
    """Return a query's true answers, one row for each histogram, and their shape."""
    groups = query_groups(universe, query)
    answer = counts.reshape(-1, *universe.axes.values())
    for axis, members in enumerate(groups, start=1):
        parts = [answer.take(list(values), axis=axis).sum(axis=axis) for values in members]
        answer = np.stack(parts, axis=axis)
    return answer.reshape(counts.shape[0], -1), answer.shape[1:]


def _spent(
    spine: SyntheticSpine, budget: pd.DataFrame, level: str, query: str
) -> NDArray[np.object_]:
    """Return a query's budget for each unit of a level.

    From the top down, a unit without siblings hands its budget, and what its own only child
    handed to it, to its parent.
    """
    chain = budget_chain(budget, level, query)
    levels = spine.levels[spine.levels.index(level) :]
    total = np.full(spine.geocodes[levels[-1]].size, chain[-1], dtype=object)
    for upper, lower, rho in zip(levels[-2::-1], levels[:0:-1], chain[-2::-1], strict=True):
        only = spine.only_child(lower)
        handed = np.full(spine.geocodes[upper].size, Fraction(0), dtype=object)
        np.add.at(handed, spine.parent[lower][only], total[only])
        total = handed + rho
    if level != spine.levels[0]:
        total[spine.only_child(level)] = Fraction(0)
    return total


def _rows(
    universe: Universe,
    name: str,
    answers: Mapping[str, str],
    shape: Sequence[int],
    geocodes: Sequence[str],
    values: IntArray,
    **extra: Sequence[object],
) -> pa.Table:
    n = len(geocodes)
    columns: dict[str, Sequence[object]] = {
        "geocode": geocodes,
        "query_name": [name] * n,
        **{axis: [answers[axis]] * n for axis in universe.axes},
        "query_shape": [list(shape)] * n,
        "value": list(values),
        **extra,
    }
    kinds = {
        **dict.fromkeys(("query_shape", "value"), pa.list_(pa.int64())),
        "variance": pa.float32(),
        "plb": pa.float64(),
    }
    return pa.table({n: pa.array(c, kinds.get(n, pa.string())) for n, c in columns.items()})


def _write_folder(folder: Path, parts: Sequence[pa.Table], place: int) -> None:
    """Write the rows of several queries, by unit and then by query, as part files.

    Every other state has 32-bit integers, and every third state two files.
    """
    table = pa.concat_tables(parts)
    table = table.take(np.argsort(table["geocode"].to_numpy(), kind="stable")).combine_chunks()
    if place % 2:
        for name in ("query_shape", "value"):
            short = table[name].cast(pa.list_(pa.int32()))
            table = table.set_column(table.column_names.index(name), name, short)
    cuts = [0, table.num_rows // 2, table.num_rows] if place % 3 == 2 else [0, table.num_rows]
    disk.make_folder(folder)
    for part, (start, stop) in enumerate(pairwise(cuts)):
        with disk.whole_file(folder / f"part-{part:05d}.parquet", tidy=False) as stream:
            parquet.write_table(
                table.slice(start, stop - start),
                stream,
                compression="zstd",
                row_group_size=_ROW_GROUP,
            )


def _measure(
    spine: SyntheticSpine,
    universe: Universe,
    counts: IntArray,
    rho: Mapping[str, NDArray[np.object_]],
    units: IntArray,
    level: str,
    rng: np.random.Generator,
) -> list[pa.Table]:
    """Return noisy answers of some units, query by query."""
    tables = []
    for query, budgets in rho.items():
        mine = units[np.array([budgets[i] > 0 for i in units], dtype=bool)]
        if mine.size == 0:
            continue
        answers, shape = answer_query(counts[mine], universe, query)
        sigma2 = np.array([float(1 / budgets[i]) for i in mine])
        noise = DiscreteGaussian(sigma2[:, None]).rvs(answers.shape, rng)
        tables.append(
            _rows(
                universe,
                f"{query}_dpq",
                axis_answers(universe, query),
                shape,
                spine.geocodes[level][mine].tolist(),
                answers + noise,
                variance=np.asarray(DiscreteGaussian(sigma2).var()).tolist(),
                plb=[float(budgets[i]) for i in mine],
            )
        )
    return tables


def _constraints(
    universe: Universe, counts: IntArray, facilities: IntArray, geocodes: Sequence[str], level: str
) -> list[pa.Table]:
    """Return the constraints of some units, those that the 2020 system held fixed."""
    n, every, one = len(geocodes), dict.fromkeys(universe.axes, "*"), [1] * len(universe.axes)

    def stated(
        name: str, sign: str, answers: dict[str, str], shape: list[int], values: IntArray
    ) -> pa.Table:
        signs: dict[str, Any] = {"sign": [sign] * n, "variance": [0.0] * n}
        return _rows(universe, f"{name}_con", every | answers, shape, geocodes, values, **signs)

    total = stated("total", "=", {}, one, counts.sum(axis=1, keepdims=True))
    if universe.name != "pl94-person":
        return [total]
    nursing = {"hhgq": "gqNursingTotal", "votingage": "nonvoting"}
    by_type, shape = {"hhgq": "hhgq"}, [8, 1, 1, 1]
    return [
        *([total] if level in ("US", "State") else []),
        stated("nurse_nva_0", "=", nursing, one, np.zeros((n, 1), dtype=np.int64)),
        stated("hhgq_total_lb", ">=", by_type, shape, np.where(np.arange(8) > 0, facilities, 0)),
        stated("hhgq_total_ub", "<=", by_type, shape, _FACILITY * facilities),
    ]


def _facilities(blocks: IntArray, universe: Universe) -> IntArray:
    """Return numbers of housing units (for three people each), and of facilities by type."""
    if universe.name != "pl94-person":
        return np.zeros((blocks.shape[0], 8), dtype=np.int64)
    people = answer_query(blocks, universe, "hhgq")[0]
    homes = -(-people[:, :1] // 3)
    return np.concatenate([homes, (people[:, 1:] > 0).astype(np.int64)], axis=1)


def write_nmf(
    folder: str | Path,
    *,
    rng: Seed,
    universe: str = "person",
    budget: pd.DataFrame | None = None,
    states: Sequence[str] = ("057", "058", "157"),
    counties: int = 2,
    tracts: tuple[int, int] = (2, 3),
    block_groups: tuple[int, int] = (1, 3),
    blocks: tuple[int, int] = (1, 4),
) -> SyntheticMeasurements:
    """Return a small noisy measurement file, written in the form of the 2020 redistricting data.

    It has invented people in invented blocks (state codes 57 and 58 belong to no state). It has the
    queries of the budget at all six levels, with exact discrete Gaussian noise, and the
    constraints. As in the released files, there are hive folders, several part files, integers of
    32 or 64 bits, and variances (not scale parameters) in single precision. A unit without siblings
    has no noisy answer: its budget goes to its parent.

    Parameters
    ----------
    folder : path-like
        Folder to make, new or empty.
    rng : int, Generator or SeedSequence
        Source of randomness; the same seed gives the same bytes.
    universe : {"person", "unit"}, default "person"
        Persons (2,016 cells) or housing units (2 cells).
    budget : pandas.DataFrame, optional
        Columns ``level``, ``query``, ``rho`` (sigma2 = 1 / rho); by default the production
        budget, ``census_2020_budget("pl94", universe=universe)``.
    states : sequence of str
        States of the spine: a tribal flag and two digits.
    counties : int, default 2
        Counties in a state.
    tracts, block_groups, blocks : tuple of int
        Least and most tracts in a county, block groups in a tract, blocks in a group. The first
        group of a state always has one block.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     sample = write_nmf(parent + "/US_Person_PL_PROD", rng=1)
    >>> sample.counts["Block"].shape[1], sorted({str(r) for r in sample.rho["Block", "total"]})
    (2016, ['0', '80785100/643312550121'])
    """
    check.choice(universe, "universe", ("person", "unit"))
    histogram = UNIVERSES[f"pl94-{universe}"]
    table = census_2020_budget("pl94", universe=universe) if budget is None else budget
    table = check.frame(table, "budget", ("level", "query", "rho"))
    generator_ = generator(rng)
    sizes = {"tracts": tracts, "block_groups": block_groups, "blocks": blocks}
    spine = draw_spine(states, counties, sizes, generator_)
    if unknown := sorted(set(spine.levels) - set(table["level"])):
        raise ArgumentError(
            "budget", f"must have the level {unknown[0]!r}", shown="none of that name"
        )
    root = check.path(folder, "folder")
    with disk.explained(root):
        disk.new_folder(root)
    counts = {"Block": draw_counts(spine.geocodes["Block"].size, histogram, generator_)}
    facilities = {"Block": _facilities(counts["Block"], histogram)}
    for lower, upper in zip(spine.levels[:0:-1], spine.levels[-2::-1], strict=True):
        counts[upper] = spine.add_up(counts[lower], lower)
        facilities[upper] = spine.add_up(facilities[lower], lower)
    spent: dict[tuple[str, str], NDArray[np.object_]] = {}
    with disk.whole_folder(root, disk.new_folder) as staging:
        for level in spine.levels:
            queries = list(dict.fromkeys(table["query"]))
            rho = {query: _spent(spine, table, level, query) for query in queries}
            spent |= {(level, query): budgets for query, budgets in rho.items()}
            for place, (state, units) in enumerate(spine.by_state(level)):
                codes = spine.geocodes[level][units].tolist()
                noisy = _measure(spine, histogram, counts[level], rho, units, level, generator_)
                mine = (counts[level][units], facilities[level][units])
                exact = _constraints(histogram, *mine, codes, level)
                for kind, parts in (("DPQuery", noisy), ("Constraint", exact)):
                    target = staging / f"{level}.parquet" / kind
                    if parts:
                        target = target / f"State={state}" if state else target
                        _write_folder(target, parts, place)
    return SyntheticMeasurements(root, spine.geocodes, counts, spent)
