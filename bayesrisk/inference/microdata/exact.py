r"""Exact distributions of a place's records: by two sides, by one contraction, or on boxes.

Tables that share few attributes are summed side by side, which gives exact laws of very many kinds
of records. Every published sum belongs to a *side* A or a side B. For a group of unknowns, side A
depends only on its cell a: groups in one cell have equal weights in all sums of A. Side B depends
only on its cell b. A *separator* s is a function of a, and one of b, given which shares are
products:

.. math:: \theta_{ab} = \theta_a \theta_b / \theta_s.

Counts with weights :math:`\prod_{ab} \theta_{ab}^{x_{ab}} / x_{ab}!` have sums y over cells of A, z
over cells of B, and n over separators, with

.. math:: \sum_{x: y, z} \prod_{ab} \frac{\theta_{ab}^{x_{ab}}}{x_{ab}!} =
   \prod_a \frac{\theta_a^{y_a}}{y_a!} \prod_b \frac{\theta_b^{z_b}}{z_b!}
   \prod_s \frac{n_s!}{\theta_s^{n_s}}.

So the sides are independent given n; each is contracted alone, with n left open. Given y and z, the
records are paired at random within a separator: :math:`x_{ab}` is hypergeometric. Race by ethnicity
on one side and sex by age on the other need 126 + 76 unknowns instead of 9,576.

Cells of B with proportional shares of the cells of A form one separator, which makes the equation
true for any shares. If shares are not products, there are as many separators as cells, and nothing
is gained.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.model import by_columns, equal_rows, largest_alone
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.boxes import box_laws
from bayesrisk.inference.microdata.contraction import (
    Contraction,
    NoStateError,
    TooManyStatesError,
    WeighedModel,
    weighed_model,
)
from bayesrisk.inference.microdata.system import (
    GroupSystem,
    MicrodataSystem,
    log_prior,
    log_priors,
    log_size,
)
from bayesrisk.release import Likelihood, NoiseSpec
from bayesrisk.tables.cells import joint_kinds, renumbered

# The exact law of a small system: its rows as sums with a least and a largest value, contracted.
#
# Noise gives a weight to every sum, most of them next to none.  Sums whose log weight lies more
# than tau below the largest of their row are left out.  Their share of the whole is at most
#
#     K exp(-tau) A exp(sum of the largest log weights) / Z,
#
# K being the number of noisy rows, Z the weight of what is kept, and A the weight of all points
# under the prior.  It is computed, and tau raised until it is below 1e-13.


_REACH, _LEFT_OUT = 60.0, 30.0  # tau at first; -log of the share that may be left out
_LEAST = 1e-3  # mean weight of a removed record, of the largest, if its law is no other's
_FIRST_REACH = 20.0  # where a first look is cheap and says how far is far enough
_CONTRADICTION = "release contradicts itself or the prior: no counts agree with all of it"
_CLASSES, _NUMBERS = 2**12, 2**12  # of a place, and values of one of its sums, that are for boxes


@dataclass(frozen=True)
class ExactLaw:
    """Exact distributions of groups of unknowns, and of functions of them."""

    laws: tuple[FloatArray, ...]  # probability of the counts 0, 1, ... of every group
    functions: tuple[FloatArray, ...]  # probability of the values 0, 1, ... of every function
    pairs: int  # pairs of states that were joined
    # for groups of which a record is removed, the mean number of other records of every group
    reduced_means: Mapping[int, FloatArray] = field(default_factory=dict)


def weigh(
    system: GroupSystem,
    limit: int,
    functions: Sequence[IntArray] = (),
    removed: Sequence[int] = (),
    deadline: Deadline | None = None,
) -> ExactLaw:
    """Return exact distributions of the groups and of linear functions of them (coefficients).

    ``limit`` is the number of pairs of states that may be joined, until a deadline; ``removed`` are
    groups with Dirichlet parameters, one after the other less a record
    (:attr:`ExactLaw.reduced_means`).
    """
    deadline = deadline or Deadline()
    sides = split_sides(system)
    if sides is None:
        return _whole(system, limit, functions, removed, deadline=deadline)
    try:
        sums = SideSums(system, sides, limit, deadline)
        laws, function_laws = sums.laws(), []
        for function in functions:
            if sides.see(function):
                function_laws.append(sums.function_law(function))
            elif (law := sums.pair_law(function)) is not None:
                function_laws.append(law)
            elif (finer_sides := split_sides(system, [function])) is not None:
                finer = SideSums(system, finer_sides, limit, deadline)
                function_laws.append(finer.function_law(function))
            else:
                law_of_whole = _whole(system, limit, [function], deadline=deadline)
                function_laws += law_of_whole.functions
    except NoStateError:
        raise DataError(_CONTRADICTION) from None
    return ExactLaw(laws, tuple(function_laws), sums.pairs)


def _whole(
    system: GroupSystem,
    limit: int,
    functions: Sequence[IntArray],
    removed: Sequence[int] = (),
    *,
    deadline: Deadline,
) -> ExactLaw:
    n_groups, matrix = system.mass.size, system.model.rows
    blocks: Any = [[None, matrix.T], [matrix, None]]
    label = connected_components(sp.block_array(blocks), directed=False)[1][:n_groups]
    laws: list[FloatArray] = [np.ones(1)] * n_groups
    function_laws = [np.ones(1) for _ in functions]
    pairs, columns = 0, sp.csc_array(matrix)
    weighed: dict[int, tuple[IntArray, FloatArray]] = {}
    for number in np.unique(label):
        members = np.flatnonzero(label == number)
        rows = np.unique(columns[:, members].indices).astype(np.int64)
        contraction, reach = _contracted(system, rows, members, limit - pairs, deadline)
        pairs += contraction.pairs
        for group, law in zip(members, contraction.laws(), strict=True):
            laws[group] = law
        inside = [g for g in removed if label[g] == number]
        weighed |= _less_one(system, contraction, members, inside)
        for f, function in enumerate(functions):
            weights = function[members]
            if not weights.any():
                continue
            if np.count_nonzero(weights) == 1:  # a group's law, spread out
                law = np.zeros(int(weights.max()) * (laws[members[weights.argmax()]].size - 1) + 1)
                law[:: int(weights.max())] = laws[members[weights.argmax()]]
            else:
                part = system.part(rows, members, reach).with_sums(weights[None])
                joint = Contraction(part, limit - pairs, [rows.size], deadline)
                pairs += joint.pairs
                values, probability = joint.root_states()
                law = np.bincount(values[:, 0], probability).astype(np.float64)
            function_laws[f] = np.convolve(function_laws[f], law)
    mean = np.array([np.arange(law.size) @ law for law in laws])
    reduced_means: dict[int, FloatArray] = {}
    for removed_group, (members, means) in weighed.items():
        reduced_means[removed_group] = mean.copy()
        reduced_means[removed_group][members] = means
    return ExactLaw(tuple(laws), tuple(function_laws), pairs, reduced_means)


def _less_one(
    system: GroupSystem, contraction: Contraction, members: IntArray, removed: Sequence[int]
) -> dict[int, tuple[IntArray, FloatArray]]:
    """Return for each removed group the members and the mean numbers of the other records.

    Removing one of x records of a group of mass m multiplies the law of the others by x / (m + x -
    1).
    """
    factors = []
    for g in removed:
        x = np.arange(1, system.priors[g].size)
        weight = np.append(0.0, x / (system.mass[g] + x - 1.0))
        factors.append((int(np.searchsorted(members, g)), weight))
    sums, reduced_means = contraction.weighed_means(factors), {}
    for g, (position, weight), (whole, *means) in zip(removed, factors, sums, strict=True):
        if whole > _LEAST * weight.max():  # else what is left out would be a larger share
            reduced_means[g] = members, np.array(means) / whole
            reduced_means[g][1][position] -= 1.0
    return reduced_means


def _contracted(
    system: GroupSystem, rows: IntArray, members: IntArray, limit: int, deadline: Deadline
) -> tuple[Contraction, float]:
    """Return a component's contraction, and how far below the peak weights are kept."""
    noisy = rows[system.noisy[rows]]
    weights = system.row_weights
    most = sum(float(weights[r].max()) for r in noisy)
    reach, needed = _REACH, math.inf if noisy.size else 0.0
    while True:
        try:
            contraction = Contraction(system.part(rows, members, reach), limit, (), deadline)
        except NoStateError:
            if all(weights[r].min() >= weights[r].max() - reach for r in noisy):
                raise DataError(_CONTRADICTION) from None
            reach *= 4.0
            continue
        if noisy.size:
            prior = np.setdiff1d(rows[~system.hard[rows]], noisy)
            all_points = system.part(prior, members, math.inf)
            every = Contraction(all_points, limit, (), deadline).log_weight
            needed = math.log(noisy.size) + every + most + _LEFT_OUT - contraction.log_weight
        if needed <= reach:
            return contraction, reach
        reach = needed + 1.0


# Two sides, and the law by them.


_SEPARATORS = 8  # the most that are tried
_TABLES = 32  # tables that are put on one side or the other
_CELLS = 2**22  # pairs of a cell of either side that are looked at
_PAIRS = 2**20  # pairs of states of two sides
_FAINT = 1e-26  # share of numbers of records that are left out when counts are found
_EQUAL = 1e-12  # relative difference of shares that are equal but for rounding


@dataclass(frozen=True, eq=False)
class Sides:
    """Two sides of a system: each group's cell on either side, and its separator."""

    one: IntArray
    other: IntArray
    separator: IntArray

    @property
    def size(self) -> int:
        """Number of cells of both sides."""
        return int(self.one.max() + self.other.max()) + 2

    def see(self, function: IntArray) -> bool:
        """Return whether a function of the groups is constant on every cell of one side."""
        return _sees(self.one, function) or _sees(self.other, function)


def split_sides(system: GroupSystem, functions: Sequence[IntArray] = ()) -> Sides | None:
    """Return two sides with fewer cells than half the groups, or None if there are none.

    ``functions`` of the groups are seen by a side, too.
    """
    groups = system.mass.size
    if system.noisy.any() or not _multinomial(system):
        return None
    rows = sp.csr_array(sp.vstack([system.model.rows, *(sp.csr_array(f[None]) for f in functions)]))
    parts = list(_partitions(rows))
    cells = dict(enumerate(cell for cell in parts if cell.any()))
    if not 2 <= len(cells) <= _TABLES:
        return None
    shared = {ij: _shared(cells, ij, system.mass) for ij in combinations(cells, 2)}
    while len(cells) > 2:  # the two that share most are on one side
        i, j = max(shared, key=lambda ij: shared[ij])
        joined, new = joint_kinds([cells.pop(i), cells.pop(j)]), max(cells) + len(parts)
        shared = {ij: n for ij, n in shared.items() if not {i, j} & {*ij}}
        cells[new] = joined
        shared |= {(k, new): _shared(cells, (k, new), system.mass) for k in cells if k != new}
    best: Sides | None = None
    for one, other in (tuple(cells.values()), tuple(cells.values())[::-1]):
        separator = _separators(one, other, system.mass)
        if separator is not None:
            sides = Sides(joint_kinds([one, separator]), other, separator)
            if 2 * sides.size < min(groups + 1, 2 * best.size if best is not None else np.inf):
                best = sides
    return best


def _multinomial(system: GroupSystem) -> bool:
    """Return whether groups have prior weights m^x / x!, so far as x > 1 is possible."""
    several = [g for g, prior in enumerate(system.priors) if prior.size > 2]
    two = np.array([system.priors[g][2] for g in several])
    return bool(np.allclose(two, 2.0 * np.log(system.mass[several]) - np.log(2.0), 1e-12, 1e-12))


def _partitions(matrix: sp.csr_array) -> Iterator[IntArray]:
    """Yield the cells of every group for runs of rows that share no group."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    key = row * (int(matrix.data.max(initial=0)) + 1) + matrix.data
    cell = np.full(matrix.shape[1], -1, np.int64)
    for begin, end in pairwise(matrix.indptr):
        columns = matrix.indices[begin:end]
        if np.any(cell[columns] >= 0):
            yield renumbered(cell)
            cell = np.full(matrix.shape[1], -1, np.int64)
        cell[columns] = key[begin:end]
    yield renumbered(cell)


def _shared(cells: dict[int, IntArray], pair: tuple[int, int], mass: FloatArray) -> int:
    """Return the number of separators of two partitions, or ``_SEPARATORS + 1`` if too many."""
    one, other = (cells[k] for k in pair)
    separators = (_separators(one, other, mass), _separators(other, one, mass))
    return min(_SEPARATORS + 1 if s is None else int(s.max()) + 1 for s in separators)


def _separators(one: IntArray, other: IntArray, mass: FloatArray) -> IntArray | None:
    """Return each group's separator: cells of ``other`` with equal shares over ``one``.

    None if there are too many.
    """
    rows, columns = int(one.max()) + 1, int(other.max()) + 1
    if rows * columns > _CELLS:
        return None
    table = np.bincount(one * columns + other, mass, rows * columns).reshape(rows, columns)
    share = table / table.sum(axis=0)
    label = np.full(columns, -1, np.int64)
    for s in range(_SEPARATORS):
        left = np.flatnonzero(label < 0)
        if not left.size:
            break
        first = share[:, left[:1]]
        equal = np.all(np.abs(share[:, left] - first) <= _EQUAL * first, axis=0)
        label[left[equal]] = s
    return None if np.any(label < 0) else label[other]


def _sees(cell: IntArray, function: IntArray) -> bool:
    """Return whether a function is constant on each cell."""
    _, first, inverse = np.unique(cell, return_index=True, return_inverse=True)
    return bool(np.array_equal(function[first][inverse], function))


class SideSums:
    """Computes the laws of a system by its two sides; rounding errors are some 1e-12 a record."""

    def __init__(
        self, system: GroupSystem, sides: Sides, limit: int, deadline: Deadline | None = None
    ) -> None:
        self.pairs = 0  # of states that were joined
        self._deadline = deadline
        self._system, self._sides, self._limit = system, sides, limit
        dense = system.model.rows.toarray()
        cells = (sides.separator, sides.one, sides.other)
        self._first = [np.unique(cell, return_index=True)[1] for cell in cells]
        involved = [
            np.all(dense[:, first][:, cell] == dense, axis=1)
            for first, cell in zip(self._first, cells, strict=True)
        ]
        self._rows = [np.flatnonzero(np.argmax(involved, axis=0) == k) for k in range(3)]
        self._weights = [dense[:, first] for first in self._first]
        self._mass = np.bincount(sides.separator, system.mass)
        last = [int(np.flatnonzero(w > -np.inf)[-1]) for w in system.row_weights]
        self._bounds = system.model.row_low + np.array(last, np.int64)
        self._most = self._alone(0)
        self._tops = []
        for k, cell in ((1, sides.one), (2, sides.other)):
            top = np.bincount(cell, system.model.high).astype(np.int64)
            top = np.minimum(top, self._alone(k))
            room = np.bincount(sides.separator[self._first[k]], top).astype(np.int64)
            self._most = np.minimum(self._most, room)
            self._tops.append(top)

    def _alone(self, side: int) -> IntArray:
        """Return the largest count that single rows of a side allow each of its cells."""
        rows = self._rows[side]
        columns = by_columns(sp.csr_array(self._weights[side][rows]))
        return largest_alone(columns, np.zeros_like(rows), self._bounds[rows])[0]

    def _part(self, k: int, functions: Sequence[IntArray] = ()) -> Contraction:
        """Return the contraction of side ``k``, with separators and ``functions`` kept open."""
        system, first = self._system, self._first[k]
        separator = self._sides.separator[first]
        cell = self._sides.one if k == 1 else self._sides.other
        top = np.minimum(self._tops[k - 1], self._most[separator])
        priors = log_priors(np.bincount(cell, system.mass).astype(np.float64), top, dirichlet=False)
        side = weighed_model(self._weights[k], system.model.row_low, system.row_weights, priors)
        indicators = (separator == np.arange(self._most.size)[:, None]).astype(np.int64)
        more = np.vstack([indicators, *(f[first] for f in functions)])
        most, n = more @ top, self._rows[k].size
        most[: self._most.size] = np.minimum(most[: self._most.size], self._most)
        side = side.part(self._rows[k], np.arange(first.size), np.inf).with_sums(more, most)
        contraction = Contraction(
            side, self._limit - self.pairs, range(n, n + len(more)), self._deadline
        )
        self.pairs += contraction.pairs
        return contraction

    def _joined(self, parts: Sequence[Contraction]) -> tuple[IntArray, IntArray, FloatArray]:
        """Return values common to both sides, the states of each side, and the probabilities.

        The numbers (states, separators) are those of records, and then values of functions, of one
        side and of the other.
        """
        (one, p), (other, q) = (part.root_states() for part in parts)
        width = self._mass.size
        stacked = np.concatenate([one[:, :width], other[:, :width]])
        label = np.unique(stacked, axis=0, return_inverse=True)[1].ravel()
        left, right = label[: len(one)], label[len(one) :]
        order = np.argsort(right, kind="stable")
        first, end = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
        if (end - first).sum() > max(_PAIRS, len(one)):
            raise TooManyStatesError
        one_row = np.repeat(np.arange(len(one)), end - first)
        other_row = order[
            np.arange(one_row.size) - np.repeat(np.cumsum(end - first) - end, end - first)
        ]
        n = one[one_row, :width]
        with np.errstate(divide="ignore"):
            weight = np.log(p[one_row]) + np.log(q[other_row])
        weight += (gammaln(n + 1.0) - n * np.log(self._mass)).sum(axis=1)
        for r in self._rows[0]:
            row_weight = self._system.row_weights[r]
            total = n @ self._weights[0][r] - self._system.model.row_low[r]
            inside = (total >= 0) & (total < row_weight.size)
            weight += np.where(inside, row_weight[np.where(inside, total, 0)], -np.inf)
        if not weight.size or weight.max() == -np.inf:
            raise NoStateError
        probability = np.exp(weight - weight.max())
        values = np.concatenate([one[one_row], other[other_row, width:]], axis=1)
        return values, np.stack([one_row, other_row]), probability / probability.sum()

    def function_law(self, function: IntArray) -> FloatArray:
        """Return the probabilities of the values 0, 1, ... of a function that one side sees."""
        k = 1 if _sees(self._sides.one, function) else 2
        values, _, probability = self._joined([self._part(k, [function]), self._part(3 - k)])
        return np.bincount(values[:, -1], probability).astype(np.float64)

    def pair_law(self, function: IntArray) -> FloatArray | None:
        """Return the law of the number of records in some cells of both sides at once.

        None for another function, for several separators, and for too many states.
        """
        one, other = self._sides.one, self._sides.other
        one_function, other_function = (
            np.zeros(int(cell.max()) + 1, np.int64) for cell in (one, other)
        )
        np.maximum.at(one_function, one, function)
        np.maximum.at(other_function, other, function)
        factors = one_function[one], other_function[other]
        if self._mass.size > 1 or function.max() > 1 or np.any(function != factors[0] * factors[1]):
            return None
        try:
            values, _, probability = self._joined(
                [self._part(k + 1, [factors[k]]) for k in range(2)]
            )
        except TooManyStatesError:
            return None
        number_law = np.bincount(values[:, 0], probability)
        likely = (number_law > _FAINT * number_law.max())[values[:, 0]]
        n, y, z = values[likely].T
        total_law = np.empty(int(np.minimum(y, z).max()) + 1)
        for x in range(total_law.size):
            # P(x) = C(y, x) C(n - y, z - x) / C(n, z)
            law = _log_choose(y, x) + _log_choose(n - y, z - x) - _log_choose(n, z)
            total_law[x] = probability[likely] @ np.exp(law)
        return total_law

    def laws(self) -> tuple[FloatArray, ...]:
        """Return the probability of 0, 1, ... records of every group."""
        parts = [self._part(k) for k in (1, 2)]
        number, states, probability = self._joined(parts)
        likely = probability > _FAINT * probability.max()
        number, states, probability = number[likely], states[:, likely], probability[likely]
        one, other = (
            part.laws_by_state(column) for part, column in zip(parts, states, strict=True)
        )
        group_laws: list[FloatArray] = [np.ones(1)] * self._system.mass.size
        sides = self._sides
        for s, mass in enumerate(self._mass):
            members = np.flatnonzero(sides.separator == s)
            i, a = np.unique(sides.one[members], return_inverse=True)
            j, b = np.unique(sides.other[members], return_inverse=True)
            laws = _pair_laws([one[c] for c in i], [other[c] for c in j], number[:, s], probability)
            # Of a pair of cells a group is a share, so that its records are binomial.
            one_mass = np.bincount(a, self._system.mass[members])
            other_mass = np.bincount(b, self._system.mass[members])
            share = np.minimum(
                1.0, self._system.mass[members] * mass / (one_mass[a] * other_mass[b])
            )
            values, inverse = np.unique(np.round(share, 12), return_inverse=True)
            for v in range(values.size):
                pair = np.flatnonzero(inverse == v)
                thinned = laws[a[pair], b[pair]] @ _thinning(laws.shape[2], float(share[pair[0]]))
                for g, law in zip(members[pair], thinned, strict=True):
                    group_laws[g] = law
        return tuple(group_laws)


def _pair_laws(
    one: list[FloatArray], other: list[FloatArray], n: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the laws (cells, cells, values) of the number of records in each pair of cells.

    ``one`` and ``other`` are for each cell the laws (values, states) of its count; n people of both
    are paired, which has a ``probability`` in each state.
    """
    y, z = (_stacked(laws) for laws in (one, other))  # (values, cells, states)
    pair = np.zeros((min(len(y), len(z)), y.shape[1], z.shape[1]))
    log = gammaln(np.arange(int(n.max(initial=0)) + 2.0))
    log = np.append(log[1:], np.inf)  # log n!, and log of 1 / 0 for the factorial of -1
    rows = [np.flatnonzero(v.any(axis=1)) for v in y]
    columns = [np.flatnonzero(v.any(axis=1)) for v in z]
    for u, v in product(range(len(y)), range(len(z))):
        if not rows[u].size or not columns[v].size:
            continue
        fits = np.flatnonzero((n >= u) & (n >= v))
        m = n[fits]
        left = y[u][np.ix_(rows[u], fits)] * probability[fits]
        right = z[v][np.ix_(columns[v], fits)]
        # P(x) = C(u, x) C(n - u, v - x) / C(n, v), for all x of a state
        x = np.arange(max(0, u + v - int(m.max(initial=0))), min(u, v) + 1)[:, None]
        h = log[u] - log[x] - log[u - x] + log[v] - log[v - x] - log[m]
        h = h + log[m - u] + log[m - v] - log[np.maximum(m - u - v + x, -1)]
        products = (np.exp(h)[:, None] * left).reshape(-1, fits.size) @ right.T
        index = np.ix_(x.ravel(), rows[u], columns[v])
        pair[index] += products.reshape(x.size, rows[u].size, -1)
    return pair.transpose(1, 2, 0)


def _log_choose(n: IntArray, k: IntArray | int) -> FloatArray:
    inside, log = (k >= 0) & (k <= n), gammaln(np.arange(int(n.max(initial=0)) + 1.0) + 1.0)
    k = np.where(inside, k, 0)
    return np.where(inside, log[n] - log[k] - log[n - k], -np.inf)


def _stacked(laws: list[FloatArray]) -> FloatArray:
    """Return laws of different lengths as one array (values, laws, states)."""
    stack = np.zeros((max(map(len, laws)), len(laws), laws[0].shape[1]))
    for c, law in enumerate(laws):
        stack[: len(law), c] = law
    return stack


def _thinning(values: int, share: float) -> FloatArray:
    """Return binomial probabilities (x, k) that k of x records belong to a share of them."""
    if share > 1.0 - 1e-9:
        return np.eye(values)
    x, k = np.arange(values)[:, None], np.arange(values)
    log = gammaln(np.arange(values) + 1.0)
    log_law = k * np.log(share) + (x - k) * np.log1p(-share)
    log_law = log_law + log[x] - log[k] - log[np.maximum(x - k, 0)]
    return np.where(k <= x, np.exp(log_law), 0.0)


# The exact law of one place without more knowledge, where its sums have few values: on boxes.  What
# depends on the tables or the noise alone is made once.


class PlaceLaw(NamedTuple):
    """Groups of a place's unknowns, and each group's mean number of records."""

    group: IntArray  # group of every unknown, -1 where there is nobody, and its share of the group
    weight: FloatArray
    mass: FloatArray  # share, or Dirichlet parameter, of every group
    mean: FloatArray


def place_law(system: MicrodataSystem, limit: int) -> PlaceLaw | None:
    """Return a place's exact law by boxes, or None where boxes do not apply or are too large.

    ``limit`` is the largest number of pairs of weights for one law.
    """
    prior, knowledge = system.prior, system.knowledge
    if len(system.places) > 1 or prior.size is None or knowledge.groups or knowledge.exact_groups:
        return None
    if knowledge.settled.nnz or system.classes.size > _CLASSES or prior.size.size > _NUMBERS:
        return None
    mass = system.mass
    readings = [layer.read(0) for layer in system.layers]
    full = np.concatenate(
        [
            layer.weights.toarray()[t]
            for layer, (t, _, _) in zip(system.layers, readings, strict=True)
        ]
    )
    group, matrix = _merged(full.tobytes(), (mass > 0.0).tobytes())
    total = np.bincount(group[group >= 0], mass[group >= 0], matrix.shape[1]).astype(np.float64)
    weight = np.where(group >= 0, mass / total[group], 0.0)
    cells = [
        (law, int(count), int(layer.removals[0, c]))
        for layer, part in zip(system.layers, readings, strict=True)
        for c, law, count in zip(*part, strict=True)
    ]
    most = (prior.size.size - 1) * int(full.max(initial=1))
    # Cells of a table have one law, of which the errors are looked up once.
    noises = {id(law): law for law, _, _ in cells if isinstance(law, NoiseSpec)}
    number_weight = log_size(np.arange(prior.size.size), prior)
    reach, needed = _FIRST_REACH if noises else _REACH, 0.0
    while True:
        errors = {key: _noise(law, reach) for key, law in noises.items()}
        sums = [_sum_weights(*cell, errors.get(id(cell[0])), most) for cell in cells]
        if not all(part.size for _, part in sums):
            return None  # too many, or none
        low = np.array([*(least for least, _ in sums), 0], np.int64)
        rows = [*(part for _, part in sums), number_weight]
        high = low + np.array([part.size - 1 for part in rows], np.int64)
        top = int(
            np.max(np.min(np.where(matrix > 0, high[:, None] // matrix.clip(1), high[-1]), 0))
        )
        priors = log_prior(total, top, dirichlet=prior.concentration is not None)
        box = box_laws(matrix, low, rows, priors, limit)
        if box is None:
            if reach >= _REACH:
                return None
            reach = _REACH
            continue
        if noises:
            # All points have at most weight 1 under the prior.
            peak = {key: part.max() for key, part in errors.items()}
            peaks = [peak[id(law)] for law, _, _ in cells if id(law) in peak]
            needed = math.log(len(peaks)) + float(sum(peaks)) + _LEFT_OUT - box[0]
        if needed <= reach:
            return PlaceLaw(group, weight, total, box[1] @ np.arange(top + 1))
        reach = 5.0 * math.ceil(needed / 5.0 + 0.2)  # few different ones: noise is weighed once


@lru_cache(maxsize=256)
def _merged(matrix: bytes, alive: bytes) -> tuple[IntArray, IntArray]:
    """Return every class's group (of equal columns), and the groups' columns with a row of ones."""
    present = np.frombuffer(alive, np.bool_)
    columns = np.frombuffer(matrix, np.int64).reshape(-1, present.size)[:, present]
    group, (label, first) = np.full(present.size, -1, np.int64), equal_rows(sp.csr_array(columns.T))
    group[present] = label
    return group, np.vstack([columns[:, first], np.ones((1, first.size), np.int64)])


@lru_cache(maxsize=256)
def _noise(law: NoiseSpec, reach: float) -> FloatArray:
    """Return log weights of noise from -h to h within ``reach`` of the peak; empty if too many."""
    noise, h = law.to_law(), 1
    while float(noise.logpmf(h)) >= float(noise.logpmf(0)) - reach:
        h *= 2
        if h > _NUMBERS:
            return np.zeros(0)
    weights: FloatArray = np.asarray(noise.logpmf(np.arange(-h, h + 1)), dtype=float)
    near: FloatArray = weights[weights >= weights[h] - reach]
    return near


@lru_cache(maxsize=4096)
def _coarsened(law: Likelihood, count: int, most: int) -> tuple[int, FloatArray]:
    """Return the least true count behind a coarsened one, and log weights from there on.

    Counts above ``most`` are left out.
    """
    low, high = (int(end) for end in law.support(count))
    high = min(high, max(most, low))
    if high - low >= _NUMBERS:
        return 0, np.zeros(0)
    counts = np.arange(low, high + 1)
    with np.errstate(divide="ignore"):
        return low, np.log(np.asarray(law.probability(count, counts), np.float64))


def _sum_weights(
    law: Likelihood, count: int, off: int, errors: FloatArray | None, most: int
) -> tuple[int, FloatArray]:
    """Return the least sum that a published count allows, and log weights from there on.

    ``off`` are known records in the count, and ``most`` is the largest sum of the others.
    ``errors`` are those of :func:`_noise`, if there is noise.
    """
    if law.exact:
        return count - off, np.zeros(1)
    if errors is not None:
        weights, least = errors, count - off - errors.size // 2
    else:
        least, weights = _coarsened(law, count, most + off)
        least -= off
    return max(least, 0), weights[max(-least, 0) :]


def one_record_means(system: WeighedModel) -> FloatArray:
    """Return each group's probability of holding the record, if at most one exists.

    The points are x = 0 and x = e_g for every group g, with the weight of all rows r,
    w(x) = prior(x) prod_r weight_r((A x)_r).
    """
    matrix = system.model.rows.toarray()
    # Column 0 has the sums A 0, column g + 1 the sums A e_g.
    sums = np.concatenate([np.zeros((len(matrix), 1), np.int64), matrix], axis=1)
    weight = np.array([0.0, *(p[1] if p.size > 1 else -np.inf for p in system.priors)])
    for row_weights, first, row in zip(system.row_weights, system.model.row_low, sums, strict=True):
        place = row - first
        inside = (place >= 0) & (place < row_weights.size)
        weight = weight + np.where(inside, row_weights[np.where(inside, place, 0)], -np.inf)
    if not (weight > -np.inf).any():
        raise DataError(_CONTRADICTION)
    mass: FloatArray = np.exp(weight - weight.max())
    means: FloatArray = mass[1:] / mass.sum()
    return means
