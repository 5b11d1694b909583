"""Integer programs of the households of one block: Eq. 2 (exact tables) and Eq. 8 (noisy ones).

Variables: households of each kind; of each class (size, group of the householder, children or
not) the subsidised ones by bedrooms; and, for noisy tables, what each row misses its count by.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.occupancy.law import UNIT, HouseholdLaw
from bayesrisk.reconstruction.occupancy.statistics import HUD_GROUP, OccupancyStatistics
from bayesrisk.reconstruction.solvers import IntegerModel

#: Most units of squared errors of a block, a variable each.
MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The program of one block.

    Attributes
    ----------
    model : IntegerModel
        Bounds and rows; variables: kinds, subsidised classes (bedrooms by class), errors.
    objective : ndarray of int64
        Log-likelihood in units of 1e-4 (minus error), maximised.
    kinds : ndarray of int64
        Positions, in the law, of the kinds of households.
    class_of : ndarray of int64
        Class of each kind, as a position among the classes of the program.
    n_classes : int
        Number of classes.
    """

    model: IntegerModel
    objective: IntArray
    kinds: IntArray
    class_of: IntArray
    n_classes: int

    def split(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return households of each kind, and subsidised ones (3, classes)."""
        n = self.kinds.size
        return values[:n], values[n : n + 3 * self.n_classes].reshape(3, -1)


def block_program(
    blocks: OccupancyStatistics,
    at: int,
    law: HouseholdLaw,
    *,
    every_kind: bool,
    error: str,
    likelihood: bool = True,
    most: int | None = None,
) -> BlockProgram:
    """Return the program of a block.

    Parameters
    ----------
    blocks, at
        Statistics, and which block.
    law : HouseholdLaw
        Kinds of households and their weights.
    every_kind : bool
        Whether kinds outside the sample may be used.
    error : str
        ``none``: tables are right, as :func:`occupancy_statistics` reads them; ``absolute`` or
        ``squared``: every row but the number of households may be missed, at that cost.  What is
        missed is the distance to the interval of counts that a published number stands for.
    likelihood : bool
        Whether kinds have weights; without, only errors count.
    most : int, optional
        Largest error of a row that needs to be looked at, for squared errors.
    """
    exact = error == "none"
    usable = np.ones(len(law), dtype=bool) if every_kind else law.in_sample
    limit = kind_limit(blocks, at, law, exact=exact)
    kinds = np.flatnonzero(usable & (limit > 0))
    code, class_of = _classes(law, kinds)
    rows, low, high = statistic_rows(blocks, at, law, kinds, code, exact=exact)
    n, m = kinds.size, code.size
    top = np.concatenate([limit[kinds], np.full(3 * m, blocks.hud_households[at])])
    if not exact:
        top[n:] = blocks.households[at]
    coupling = sp.hstack(
        [
            -sp.csr_array((np.ones(n, np.int64), (class_of, np.arange(n))), shape=(m, n)),
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
        np.concatenate([low, np.full(m, -int(blocks.households[at]), np.int64)]),
        np.concatenate([high, np.zeros(m, np.int64)]),
    )
    return BlockProgram(model, objective, kinds, class_of, m)


def kind_limit(blocks: OccupancyStatistics, at: int, law: HouseholdLaw, *, exact: bool) -> IntArray:
    """Return the most households of each kind that a block can have."""
    n = int(blocks.households[at])
    race = blocks.race[at]
    if exact and race.sum() == n:
        return np.asarray(race[law.race_ethnicity], dtype=np.int64)
    return np.full(len(law), n, dtype=np.int64)


def _classes(law: HouseholdLaw, kinds: IntArray) -> tuple[IntArray, IntArray]:
    """Return the codes of the classes that kinds fall into, and the class of each kind."""
    different, class_of = np.unique(_codes(law, kinds), return_inverse=True)
    return different.astype(np.int64), class_of.astype(np.int64)


def _codes(law: HouseholdLaw, kinds: IntArray) -> IntArray:
    """Return a number for what HUD's statistics tell of kinds: size, group, children or not."""
    group = HUD_GROUP[law.race_ethnicity[kinds]] + 1
    code: IntArray = (law.size[kinds] * 7 + group) * 2 + (law.children[kinds] > 0)
    return code


def statistic_rows(
    blocks: OccupancyStatistics,
    at: int,
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
    code = _codes(law, kinds) if code is None else code
    c_size, c_group, c_child = code // 14, (code // 2) % 7 - 1, code % 2
    n, n_sub = int(blocks.households[at]), int(blocks.hud_households[at])
    homes = [np.ones_like(size), *(size == x for x in range(1, 8))]
    homes += [*(race == j for j in range(14)), size, children]
    subsidised = [np.ones_like(c_size), c_size, *(c_group == j for j in range(6)), c_child]
    every = np.tile(np.array(subsidised, dtype=np.int64), 3)
    rooms = np.kron(np.eye(3, dtype=np.int64), np.ones(code.size, dtype=np.int64))
    parts = np.array(homes, dtype=np.int64), np.vstack([every, rooms])
    matrix = sp.block_diag([sp.coo_array(part) for part in parts], format="csr")
    counts = blocks.sizes[at]
    people, minors = int(blocks.population[at]), int(blocks.children[at])
    hud_people = int(blocks.hud_people[at])
    large = n - int(counts[:6].sum())  # households that may be larger than any size published
    if exact:
        hud_people = min(hud_people, int(blocks.largest_people[at]))
    if exact and large > 0:
        sizes, homes_of = np.arange(1, 8), [*counts[:6].tolist(), large]
        people = min(people, int(homes_of @ sizes))
        minors = min(minors, int(homes_of @ np.minimum(sizes - law.adults, 6)))
        left = n_sub - np.cumsum([0, *homes_of[:0:-1]])  # the largest ones first
        largest = np.clip(left, 0, homes_of[::-1]) @ sizes[::-1]
        hud_people = min(hud_people, int(largest))
    low = [n, *counts, *blocks.race[at], people, minors, n_sub, hud_people]
    low += [*blocks.hud_race[at], int(blocks.hud_children[at, 0]), *blocks.hud_bedrooms[at]]
    if not exact:
        high = [n, *counts, *blocks.race[at], people, minors, n_sub, hud_people]
        high += [*np.asarray(blocks.hud_race_most)[at], int(blocks.hud_children[at, 1])]
        high += [*np.asarray(blocks.hud_bedrooms_most)[at]]
        return sp.csr_array(matrix), np.array(low, np.int64), np.array(high, np.int64)
    low[7] = 0  # a household of unknown size may have 7 people, and 7 may be anything
    high = [n, *[n] * 7, *[n] * 14, 7 * n, 7 * n, n_sub, 7 * n, *[n] * 6]
    high += [int(blocks.hud_children[at, 1]), *[n] * 3]
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
    largest = rows @ top
    missing, surplus = low, np.maximum(largest - high, 0)
    if squared:
        every = np.concatenate([missing[1:], surplus[1:]])
        needed = int((every if most is None else np.minimum(every, most)).sum())
        if needed > MAX_STEPS:
            raise ArgumentError(
                f"error 'squared' must have at most {MAX_STEPS} units of error in a block, "
                f"got {needed}: take 'absolute'"
            )
    place, sign, cost, bound = [], [], [], []
    for row in range(1, rows.shape[0]):
        for direction, reach in ((1, int(missing[row])), (-1, int(surplus[row]))):
            reach = reach if most is None else min(reach, most)
            if not reach:
                continue
            steps = reach if squared else 1
            place += [row] * steps
            sign += [direction] * steps
            cost += list(range(1, 2 * steps, 2)) if squared else [1]
            bound += [1] * steps if squared else [reach]
    columns = sp.csr_array(
        (np.array(sign, np.int64), (np.array(place, np.int64), np.arange(len(place)))),
        shape=(rows.shape[0], len(place)),
    )
    return columns, np.array(cost, np.int64), np.array(bound, np.int64)
