"""Integer programs for one block's households: Eq. 2 (exact tables) and Eq. 8 (noisy tables)."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.census.occupancy.household_law import UNIT, HouseholdLaw
from bayesrisk.census.occupancy.statistics import HUD_GROUP, OccupancyStatistics
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.exceptions import ArgumentError

#: Most units of squared errors of a block, a variable each.
MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The integer program of one block: kinds, subsidised classes by bedrooms, and errors.

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
        """Return the numbers of households of each kind, and of subsidised ones (3, classes)."""
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
    """Return the program of one block, given by its position.

    With ``error="none"`` tables are exact, as :func:`occupancy_statistics` reads them. With
    ``absolute`` or ``squared``, every row but the number of households may be missed. The cost is
    the distance to the interval of counts behind a published number. ``every_kind`` allows kinds
    outside the sample, and ``likelihood`` gives kinds their weights. ``most`` is the largest error
    of a row to consider, for squared errors.
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
    """Return the largest possible number of households of each kind in a block."""
    n = int(blocks.households[block])
    race = blocks.race[block]
    if exact and race.sum() == n:
        return np.asarray(race[law.race_ethnicity], dtype=np.int64)
    return np.full(len(law), n, dtype=np.int64)


def _classes(law: HouseholdLaw, kinds: IntArray) -> IntArray:
    """Return each kind's class by what HUD's statistics show: size, group, children or not."""
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
    """Return rows over kinds and subsidised classes, with their bounds; the first row is H3.

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
    """Return columns for errors of all rows but the first, with their costs and bounds.

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
