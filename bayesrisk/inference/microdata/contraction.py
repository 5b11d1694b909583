r"""Exact distribution of integers with known weighted sums, by tensor contraction.

The unknowns are whole numbers :math:`x_g \ge 0` with weights :math:`\varphi_g(x_g)`. A row r gives
a weight to every value of a sum of them:

.. math:: P(x) \propto \prod_g \varphi_g(x_g) \prod_r w_r\Bigl(\sum_g a_{rg} x_g\Bigr).

A row of exact counts allows one value, a rounded count or a range some, a noisy count all. A *part*
is a set of unknowns. The other unknowns depend on it only through the *open* rows, which have
unknowns on both sides. So the weights of all values of the open sums summarise a part. Parts are
joined two at a time, and a row is closed by its weight once all its unknowns are in one part. The
end result is the total weight; the probabilities of all states pass back along the same tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.compiling import kernel, step
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.propagation import narrow_dense
from bayesrisk.constraints.solvers import Deadline

_CHOICES = 12  # parts that are compared when many are joined
_MAX_STATES = 2**22  # of one join: half a GiB
_PLANNED = 2  # numbers looked at in search of an order of joins, for each pair that may be joined
_COLUMNS = 10  # laws that are found together, for each pair that may be joined
_ROOM = 2**26  # probabilities of the states of one part, for all of these: half a GiB
_PIECE = 2**22  # pairs of states joined before Python is asked again: some tenths of a second


class TooManyStatesError(Exception):
    """A contraction would join more pairs of states than its limit."""


class NoStateError(Exception):
    """No values of the unknowns have positive weight."""


class JoinedRows(NamedTuple):
    """The open rows of two parts, and how their sums combine in a join.

    Log weights of the sums ``low[r]`` to ``high[r]`` stand from ``weights[start[r]]`` on.
    """

    left: IntArray  # column of the row in the sums of either part; -1: not there
    right: IntArray
    closed: BoolArray  # whether all unknowns of the row are in one of the two parts
    low: IntArray  # least and largest sum that has a weight
    high: IntArray
    rest: IntArray  # the most that unknowns outside of both parts add
    start: IntArray
    weights: FloatArray


class States(NamedTuple):
    """Distinct values of a part's open sums with their weights, stored in a hash table or in order.

    If the open sums determine all unknowns, no two pairs have the same sums, and no look-up is
    needed. Then ``first`` has the number of states before each state of the left part.
    """

    sums: IntArray  # (room, rows)
    peak: FloatArray  # (room,): largest log weight m that was added to the state
    total: FloatArray  # (room,): sum of exp(w - m) of all log weights w that were added
    slots: IntArray  # (4 room,): state at every hash; -1: none; empty without hashes
    first: IntArray  # (left,): empty with hashes
    number: IntArray  # (1,): how many states there are


@step
def _slot(states: States, sums: IntArray) -> int:
    """Return the hash slot that holds a state, or the free slot where it belongs."""
    # FNV-1a over the sums, then a linear search; there are at least three free slots of four
    mask = np.uint64(states.slots.size - 1)
    code = np.uint64(14695981039346656037)
    for k in range(sums.size):
        code = (code ^ np.uint64(sums[k])) * np.uint64(1099511628211)
        code ^= code >> np.uint64(32)
    slot = code & mask
    while True:
        state = states.slots[slot]
        if state < 0:
            return int(slot)
        equal = True
        for k in range(sums.size):
            if states.sums[state, k] != sums[k]:
                equal = False
                break
        if equal:
            return int(slot)
        slot = (slot + np.uint64(1)) & mask


@kernel
def _index(states: States) -> None:
    if not states.slots.size:
        return
    states.slots[:] = -1
    for state in range(states.number[0]):
        states.slots[_slot(states, states.sums[state])] = state


@step
def _pair(rows: JoinedRows, one: IntArray, other: IntArray, weight: float, sums: IntArray) -> float:
    """Return the log weight of a pair of states, or -inf, and fill in its open sums."""
    k = 0
    for r in range(rows.closed.size):
        s = np.int64(0)
        if rows.left[r] >= 0:
            s += one[rows.left[r]]
        if rows.right[r] >= 0:
            s += other[rows.right[r]]
        # A sum s can still end between low and high if s <= high and s + rest >= low
        if s > rows.high[r] or s + rows.rest[r] < rows.low[r]:
            return -math.inf
        if rows.closed[r]:
            weight += rows.weights[rows.start[r] + s - rows.low[r]]
        else:
            sums[k] = s
            k += 1
    return weight


@kernel
def _join(
    rows: JoinedRows,
    left: IntArray,
    left_weight: FloatArray,
    right: IntArray,
    right_weight: FloatArray,
    span: IntArray,
    begin: int,
    states: States,
    budget: int,
) -> int:
    """Add pairs of states to the joint states, from ``begin`` on; return where to continue.

    State i is paired with states ``span[0, i]`` up to ``span[1, i]`` of ``right``.
    """
    sums, hashed = np.empty(states.sums.shape[1], np.int64), states.slots.size > 0
    for i in range(begin, left_weight.size):
        if states.number[0] + span[1, i] - span[0, i] > states.peak.size or budget < 0:
            return i
        budget -= span[1, i] - span[0, i]
        if not hashed:
            states.first[i] = states.number[0]
        for j in range(span[0, i], span[1, i]):
            w = _pair(rows, left[i], right[j], left_weight[i] + right_weight[j], sums)
            if w == -math.inf:
                continue
            slot = np.int64(_slot(states, sums)) if hashed else np.int64(0)
            state = np.int64(states.slots[slot]) if hashed else np.int64(-1)
            if state < 0:
                state = states.number[0]
                states.number[0] += 1
                if hashed:
                    states.slots[slot] = state
                for k in range(sums.size):
                    states.sums[state, k] = sums[k]
                states.peak[state], states.total[state] = w, 1.0
            elif w <= states.peak[state]:
                # log(e^m t + e^w) = m + log(t + e^(w - m))
                states.total[state] += math.exp(w - states.peak[state])
            else:
                states.total[state] = states.total[state] * math.exp(states.peak[state] - w) + 1.0
                states.peak[state] = w
    return left_weight.size


@kernel
def _count(
    rows: JoinedRows,
    left: IntArray,
    left_weight: FloatArray,
    right: IntArray,
    right_weight: FloatArray,
    span: IntArray,
) -> int:
    """Return the number of pairs of states that have positive weight."""
    sums, number = np.empty(rows.closed.size, np.int64), 0
    for i in range(left_weight.size):
        for j in range(span[0, i], span[1, i]):
            w = _pair(rows, left[i], right[j], left_weight[i] + right_weight[j], sums)
            number += w > -math.inf
    return number


@kernel
def _share(
    rows: JoinedRows,
    left: IntArray,
    left_weight: FloatArray,
    right: IntArray,
    right_weight: FloatArray,
    span: IntArray,
    begin: int,
    states: States,
    factors: tuple[FloatArray, FloatArray],
    shares: tuple[FloatArray, FloatArray, FloatArray],
    budget: int,
    upward: bool,
) -> int:
    """Pass probabilities of joint states down to both parts, or means of factors up.

    ``shares`` are the probability of every joint state divided by its weight, e^-peak p / total.
    They are added to the probabilities of the states of both parts, one column for each law.
    ``factors`` multiply the states of each part, for the other. Upward, the products of both are
    added to ``shares``.
    """
    sums, hashed = np.empty(states.sums.shape[1], np.int64), states.slots.size > 0
    left_factor, right_factor = factors
    joint, left_share, right_share = shares
    for i in range(begin, left_weight.size):
        if budget < 0:
            return i
        budget -= span[1, i] - span[0, i]
        next_state = np.int64(0) if hashed else states.first[i]
        for j in range(span[0, i], span[1, i]):
            w = _pair(rows, left[i], right[j], left_weight[i] + right_weight[j], sums)
            if w == -math.inf:
                continue
            state = np.int64(states.slots[_slot(states, sums)]) if hashed else next_state
            next_state += 1
            # P(i, j) = P(i + j) e^w / weight of i + j
            factor = math.exp(w - states.peak[state])
            for k in range(joint.shape[1]):
                if upward:
                    joint[state, k] += factor * left_factor[i, k] * right_factor[j, k]
                    continue
                p = joint[state, k] * factor
                left_share[i, k] += p * right_factor[j, k]
                right_share[j, k] += p * left_factor[i, k]
    return left_weight.size


class RowEnds(NamedTuple):
    """When each row is closed, and its largest sum of positive weight."""

    members: IntArray  # number of unknowns of a part that has all of the row
    high: IntArray


@kernel
def _independent_states(
    matrix: IntArray, inside: IntArray, most: IntArray, ends: RowEnds
) -> tuple[float, int]:
    """Return an estimate of the number of states of some unknowns, and the work it took.

    It is the number of values of those open sums that no others fix, sums of few values first.
    """
    rows = np.empty(matrix.shape[0], np.int64)
    span = np.empty(matrix.shape[0])
    n = 0
    for r in range(matrix.shape[0]):
        members, reach = 0, 0
        for g in inside:
            if matrix[r, g] != 0:
                members += 1
                reach += matrix[r, g] * most[g]
        if 0 < members < ends.members[r]:
            rows[n], span[n] = r, 1.0 + min(ends.high[r], reach)
            n += 1
    size, rank = 1.0, 0
    basis = np.empty((min(n, inside.size), inside.size))
    for i in np.argsort(span[:n], kind="mergesort"):
        if rank == len(basis):
            break  # all other sums are fixed
        # v less its projections b (b v), twice for what rounding left
        v = basis[rank]
        for k in range(inside.size):
            v[k] = matrix[rows[i], inside[k]]
        for _ in range(2):
            for b in range(rank):
                dot = 0.0
                for k in range(inside.size):
                    dot += basis[b, k] * v[k]
                for k in range(inside.size):
                    v[k] -= dot * basis[b, k]
        length = math.sqrt(np.sum(v * v))
        if length > 1e-9:  # else other sums fix this one
            v /= length
            size *= span[i]
            rank += 1
    return size, n * n * inside.size


class _Leaf(NamedTuple):
    """A single unknown, with the log weights of its values."""

    sums: IntArray  # (states, rows)
    weight: FloatArray  # (states,): log weights

    @property
    def number(self) -> int:
        """Number of states."""
        return self.weight.size


@dataclass(frozen=True, eq=False)
class _Part:
    """A subset of the unknowns, with its open rows and states."""

    cells: frozenset[int]
    rows: IntArray
    states: _Leaf | _Join

    @property
    def size(self) -> int:
        """Number of states."""
        return self.states.number


@dataclass(frozen=True, eq=False)
class _Join:
    """A join of two parts; the joint states are computed when first needed.

    They are ``single`` where no two pairs of states have the same open sums.
    """

    left: _Part
    right: _Part
    order: IntArray  # of the states of ``right`` in the join
    rows: JoinedRows
    span: IntArray
    single: bool
    deadline: Deadline

    @property
    def arguments(self) -> tuple[JoinedRows, IntArray, FloatArray, IntArray, FloatArray, IntArray]:
        """Arguments of the compiled kernels."""
        left, right, order = self.left.states, self.right.states, self.order
        return self.rows, left.sums, left.weight, right.sums[order], right.weight[order], self.span

    @cached_property
    def number(self) -> int:
        """Number of states."""
        return int(_count(*self.arguments) if self.single else self.states.number[0])

    @cached_property
    def states(self) -> States:
        """The joint states of both parts."""
        room, position = int((self.span[1] - self.span[0]).max(initial=0)), 0
        singles = self.left.size if self.single else 0
        states = _room(
            1024 + room,
            int(np.count_nonzero(~self.rows.closed)),
            singles,
            self.left.states.sums.dtype,
        )
        while (position := _join(*self.arguments, position, states, _PIECE)) < self.left.size:
            if self.deadline.late:
                raise TooManyStatesError
            states = _with_room(states, room)
        return states

    @property
    def sums(self) -> IntArray:
        """Open sums (states, rows)."""
        return self.states.sums[: self.number]

    @cached_property
    def weight(self) -> FloatArray:
        """Log weights (states,)."""
        n = self.number
        return self.states.peak[:n] + np.log(self.states.total[:n])

    def shared(
        self, probability: FloatArray, left_mean: FloatArray, right_mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of both parts' states, given those of the joint states.

        They are matrices with a column for each law. Each part is weighted with the means of the
        other's factor.
        """
        left, right = np.zeros_like(left_mean), np.zeros_like(right_mean)
        shares = probability / self.states.total[: len(probability), None], left, right
        self._pass_on((left_mean, right_mean[self.order]), shares, upward=False)
        ordered, right = right, np.empty_like(right)
        right[self.order] = ordered
        return left, right

    def means(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return each factor's mean given a joint state, from its means given each part's state."""
        n = int(self.states.number[0])
        total = np.zeros((n, left.shape[1]))
        self._pass_on((left, right[self.order]), (total, left, right), upward=True)
        mean: FloatArray = total / self.states.total[:n, None]
        return mean

    def _pass_on(
        self,
        factors: tuple[FloatArray, FloatArray],
        shares: tuple[FloatArray, FloatArray, FloatArray],
        *,
        upward: bool,
    ) -> None:
        position = 0
        while position < self.left.size:
            position = _share(
                *self.arguments, position, self.states, factors, shares, _PIECE, upward
            )


@dataclass(frozen=True, eq=False)
class WeighedModel:
    """Whole numbers >= 0 with log weights for their values and for the sums of rows.

    ``priors`` has the weights of 0, 1, ... of every unknown, and ``row_weights`` those of the sums
    of every row between its ends. No coefficient is negative. Rows that are ``noisy`` are counts
    with noise, which every sum is compatible with.
    """

    model: IntegerModel
    row_weights: tuple[FloatArray, ...]
    priors: tuple[FloatArray, ...]
    noisy: BoolArray

    def part(self, rows: IntArray, unknowns: IntArray, reach: float) -> WeighedModel:
        """Return the model of some rows and unknowns; unlikely sums of noisy rows are left out.

        Sums are kept within ``reach`` of the largest weight of their row.
        """
        low, weights = [], []
        for r in rows.tolist():
            weight, least = self.row_weights[r], -math.inf
            if self.noisy[r]:
                least = weight.max() - reach
            inside = np.flatnonzero((weight > -math.inf) & (weight >= least))
            low.append(int(self.model.row_low[r] + inside[0]) if inside.size else 0)
            weights.append(weight[inside[0] : inside[-1] + 1] if inside.size else weight[:1])
        matrix = self.model.rows[rows][:, unknowns]
        priors = [self.priors[g] for g in unknowns]
        return weighed_model(matrix, np.array(low, np.int64), weights, priors, self.noisy[rows])

    def with_sums(self, functions: IntArray, most: IntArray | None = None) -> WeighedModel:
        """Return the model with more rows whose sums 0 to ``most`` (default: all) have weight 1."""
        most = functions @ self.model.high if most is None else most
        matrix = sp.vstack([self.model.rows, sp.csr_array(functions)], format="csr")
        low, nothing = np.append(self.model.row_low, np.zeros_like(most)), np.zeros(most.size, bool)
        weights = [*self.row_weights, *(np.zeros(int(end) + 1) for end in most)]
        return weighed_model(matrix, low, weights, self.priors, np.append(self.noisy, nothing))


def weighed_model(
    rows: IntArray | sp.csr_array,
    low: IntArray,
    weights: Sequence[FloatArray],
    priors: Sequence[FloatArray],
    noisy: BoolArray | None = None,
) -> WeighedModel:
    """Return a model from the unknowns' priors and the weights of each row's sums from ``low``."""
    top = np.array([p.size - 1 for p in priors], np.int64)
    high = low + np.array([w.size - 1 for w in weights], np.int64)
    model = IntegerModel(np.zeros_like(top), top, sp.csr_array(rows), low, high)
    noise = np.zeros(low.size, np.bool_) if noisy is None else noisy
    return WeighedModel(model, tuple(weights), tuple(priors), noise)


class Contraction:
    """Computes the total weight and the unknowns' distributions of a system of sums.

    The rows ``keep`` stay open to the end, for the joint law of their sums. Errors of probabilities
    and of the log weight are those of sums in double precision, about 1e-13.
    """

    def __init__(
        self, weighed: WeighedModel, limit: int, keep: Sequence[int] = (),
        deadline: Deadline | None = None,
    ) -> None:  # fmt: skip
        self.pairs = 0  # of states that were joined
        self._deadline = deadline or Deadline()
        self._planned = 0  # numbers that were looked at to find the order of joins
        self._limit, self._keep, model = limit, frozenset(keep), weighed.model
        self._low, self._high, self._matrix = model.row_low, model.row_high, model.rows.toarray()
        self._row_weights, self._priors = weighed.row_weights, weighed.priors
        self._least, self._most = model.low.copy(), model.high.copy()
        if not narrow_dense(self._matrix, self._low, self._high, self._least, self._most):
            raise NoStateError
        self._reach = self._matrix * self._most
        small = self._reach.sum(axis=1).max(initial=0) < 2**31  # half the memory
        self._numbers: Any = np.int32 if small else np.int64
        self._start = starts([w.size for w in self._row_weights])
        self._weights = np.concatenate([*self._row_weights, np.zeros(1)])
        self._members = [frozenset(np.flatnonzero(row).tolist()) for row in self._matrix]
        many = np.count_nonzero(self._matrix, axis=1)
        many[list(keep)] = self._most.size + 1  # which no part has: these stay open
        self._ends = RowEnds(many, self._high)
        self._sizes: dict[frozenset[int], float] = {}
        self._costs: dict[tuple[_Part, ...], float] = {}
        self._joins: list[tuple[_Part, _Join]] = []
        self._values: list[IntArray] = []
        self._leaves = [self._leaf(g) for g in range(self._most.size)]
        parts = self._leaves
        while chosen := self._cheapest(parts):
            parts = [*(p for p in parts if p not in chosen), self._joined(chosen)]
        self._root = self._joined(sorted(parts, key=_states))
        peak = float(self._root.states.weight.max())
        mass = np.exp(self._root.states.weight - peak)
        self.log_weight = peak + math.log(float(mass.sum())) + self._constant()
        self._probability: FloatArray = mass / mass.sum()

    def root_states(self) -> tuple[IntArray, FloatArray]:
        """Return the values (states, sums) of the rows that were kept, and their probabilities."""
        # No part has a sum of nothing, which is 0.
        sums = np.zeros((self._probability.size, len(self._keep)), np.int64)
        sums[:, np.searchsorted(sorted(self._keep), self._root.rows)] = self._root.states.sums
        return sums, self._probability

    def laws(self) -> list[FloatArray]:
        """Return the distribution of every unknown: the probability of 0, 1, ...."""
        return [law[:, 0] for law in self._laws(self._probability[:, None])]

    def laws_by_state(self, states: IntArray) -> list[FloatArray]:
        """Return the unknowns' laws (values, states), given each chosen :meth:`root_states`."""
        largest = max((part.size for part, _ in self._joins), default=0)
        if self.pairs * states.size > _COLUMNS * self._limit or largest * states.size > _ROOM:
            raise TooManyStatesError
        root_law = np.zeros((self._probability.size, states.size))
        root_law[states, np.arange(states.size)] = 1.0
        return self._laws(root_law)

    def weighed_means(self, factors: Sequence[tuple[int, FloatArray]]) -> FloatArray:
        """Return E[w(x_g)] and E[w(x_g) x_h] for all h, a row for each pair (g, w) of ``factors``.

        All rows are from the one elimination: the mean of a factor given a state of a part that has
        its unknown goes up with the states, and down again to all other parts.
        """
        size = sum(p.size for p in (*self._leaves, *(part for part, _ in self._joins)))
        rows, step = [np.zeros((0, 1 + len(self._leaves)))], max(1, _ROOM // size)
        for begin in range(0, len(factors), step):
            chosen = factors[begin : begin + step]
            means = {leaf: np.ones((leaf.size, len(chosen))) for leaf in self._leaves}
            for k, (g, factor) in enumerate(chosen):
                means[self._leaves[g]][:, k] = factor[self._values[g]]
            for part, join in self._joins:
                means[part] = join.means(means[join.left], means[join.right])
            laws = self._laws(np.repeat(self._probability[:, None], len(chosen), axis=1), means)
            sums = [np.arange(len(law)) @ law for law in laws]
            rows.append(np.stack([laws[0].sum(axis=0), *sums], axis=1))
        return np.concatenate(rows)

    def _laws(
        self, root_law: FloatArray, means: Mapping[_Part, FloatArray] | None = None
    ) -> list[FloatArray]:
        """Return laws of all unknowns, given the laws (states, laws) of the root's states.

        ``means`` are those of the factor of each law given the states of all parts; by default
        none.
        """
        probability, ones = {self._root: root_law}, np.ones((1, root_law.shape[1]))

        def mean(part: _Part) -> FloatArray:
            return np.repeat(ones, part.size, axis=0) if means is None else means[part]

        for part, join in reversed(self._joins):
            left, right = join.shared(probability.pop(part), mean(join.left), mean(join.right))
            probability |= {join.left: left, join.right: right}
        laws = []
        for leaf, values, prior in zip(self._leaves, self._values, self._priors, strict=True):
            law = np.zeros((prior.size, root_law.shape[1]))
            law[values] = probability[leaf] * mean(leaf)
            laws.append(law)
        return laws

    def _constant(self) -> float:
        """Return the log weight of rows without unknowns, whose sum is 0."""
        weight = 0.0
        for r, members in enumerate(self._members):
            if not members and r not in self._keep:
                inside = self._low[r] <= 0 <= self._high[r]
                weight += float(self._row_weights[r][-self._low[r]]) if inside else -math.inf
        if weight == -math.inf:
            raise NoStateError
        return weight

    def _leaf(self, g: int) -> _Part:
        alone, rows = frozenset([g]), np.flatnonzero(self._matrix[:, g]).astype(np.int64)
        x = np.arange(self._least[g], self._most[g] + 1)
        weight, values = self._priors[g][x], x[:, None] * self._matrix[rows, g]
        is_open = np.array([self._is_open(int(r), alone) for r in rows], np.bool_)
        for r, s in zip(rows[~is_open], values[:, ~is_open].T, strict=True):
            inside = (s >= self._low[r]) & (s <= self._high[r])
            row_weight = self._row_weights[r][np.where(inside, s - self._low[r], 0)]
            weight = weight + np.where(inside, row_weight, -np.inf)
        supported = np.flatnonzero(weight > -np.inf)
        if not supported.size:
            raise NoStateError
        self._values.append(x[supported])
        open_sums: IntArray = np.ascontiguousarray(values[supported][:, is_open], self._numbers)
        return _Part(alone, rows[is_open], _Leaf(open_sums, weight[supported]))

    def _is_open(self, row: int, cells: frozenset[int]) -> bool:
        return row in self._keep or not self._members[row] <= cells

    def _cheapest(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return the parts of the row that is cheapest to close, small parts first."""
        touching: dict[int, list[_Part]] = {}
        for part in sorted(parts, key=_states):
            for row in part.rows:
                touching.setdefault(int(row), []).append(part)
        choices = [group for group in touching.values() if len(group) > 1]
        best, least = 0, math.inf
        # Short rows first: most of the long ones are then given up after a few parts.
        for index in sorted(range(len(choices)), key=lambda index: (len(choices[index]), index)):
            cost = self._cost(choices[index], least)
            if cost < least or (cost == least and index < best):  # as if the choices came in order
                best, least = index, cost
        return choices[best] if choices else []

    def _cost(self, parts: list[_Part], most: float) -> float:
        """Return an estimate of the pairs of states visited when parts are joined in order.

        A result above ``most`` says only that the cost is larger than ``most``.
        """
        if self._costs.get(key := tuple(parts), 0.0) > most:
            return self._costs[key]
        cells, size, pairs = parts[0].cells, float(parts[0].size), 0.0
        for part in parts[1:]:
            pairs += size * part.size
            if pairs > most:
                break
            cells |= part.cells
            size = min(size * part.size, self._states(cells))
        self._costs[key] = pairs
        return pairs

    def _states(self, cells: frozenset[int]) -> float:
        """Return an estimate of the number of states of some unknowns."""
        if cells in self._sizes:
            return self._sizes[cells]
        inside = np.sort(np.fromiter(cells, np.int64, len(cells)))
        size, work = _independent_states(self._matrix, inside, self._most, self._ends)
        self._planned += work
        if self._planned > _PLANNED * self._limit or self._deadline.late:
            raise TooManyStatesError
        self._sizes[cells] = size
        return size

    def _joined(self, parts: Sequence[_Part]) -> _Part:
        """Return all parts joined into one, pair by pair, least growth first."""
        waiting = list(parts)
        while len(waiting) > 1:
            choices = combinations(range(min(len(waiting), _CHOICES)), 2)
            i, j = min(choices, key=lambda ij: self._growth(waiting[ij[0]], waiting[ij[1]]))
            other, one = waiting.pop(j), waiting.pop(i)
            waiting.insert(0, self._pair(one, other))
        return waiting[0]

    def _growth(self, one: _Part, other: _Part) -> float:
        """Return an estimate of the joint states for each state of the larger part."""
        sizes = one.size, other.size
        return min(self._states(one.cells | other.cells), math.prod(sizes)) / max(sizes)

    def _pair(self, one: _Part, other: _Part) -> _Part:
        """Return the join of two parts."""
        left, right = (one, other) if one.size >= other.size else (other, one)
        cells = left.cells | right.cells
        names = np.union1d(left.rows, right.rows).astype(np.int64)
        closed = np.array([not self._is_open(int(r), cells) for r in names], np.bool_)
        outside = np.ones(len(self._leaves), np.bool_)
        outside[list(cells)] = False
        rows = JoinedRows(
            _position(left.rows, names),
            _position(right.rows, names),
            closed,
            self._low[names],
            self._high[names],
            self._reach[names][:, outside].sum(axis=1).astype(np.int64),
            self._start[names],
            self._weights,
        )
        order, span = _by_one_row(left, right, rows)
        self.pairs += int((span[1] - span[0]).sum())
        if self.pairs > self._limit or self._deadline.late:
            raise TooManyStatesError
        single = not self._repeated(names[~closed], cells)
        join = _Join(left, right, order, rows, span, single, self._deadline)
        part = _Part(cells, names[~closed], join)
        if not part.size:
            raise NoStateError
        self._joins.append((part, join))
        return part

    def _repeated(self, rows: IntArray, cells: frozenset[int]) -> bool:
        """Return whether different unknowns' values may give equal sums of the rows."""
        moving = np.sort([g for g in cells if self._least[g] < self._most[g]]).astype(np.int64)
        return bool(np.linalg.matrix_rank(self._matrix[np.ix_(rows, moving)]) < moving.size)


def starts(sizes: Sequence[int] | IntArray) -> IntArray:
    """Return the start position of consecutive parts of these sizes, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)


def _states(part: _Part) -> int:
    return part.size


def _position(rows: IntArray, names: IntArray) -> IntArray:
    positions = np.full(names.size, -1, np.int64)
    positions[np.searchsorted(names, rows)] = np.arange(rows.size)
    return positions


def _by_one_row(left: _Part, right: _Part, rows: JoinedRows) -> tuple[IntArray, IntArray]:
    """Return ``right`` ordered by the most selective row, and each left state's partners in it."""
    size, n, best = left.size, right.size, left.size * right.size
    order, span = np.arange(n), np.stack([np.zeros(size, np.int64), np.full(size, n, np.int64)])
    for r in np.flatnonzero((rows.left >= 0) & (rows.right >= 0)):
        left_sums = left.states.sums[:, rows.left[r]]
        right_sums = right.states.sums[:, rows.right[r]]
        # Pairs are counted once for each value that left sums may have, where these are fewer.
        values, place = left_sums, np.arange(size)
        if int(np.ptp(left_sums)) < size:
            values = np.arange(left_sums.min(), left_sums.max() + 1)
            place = left_sums - values[0]
        order_right = np.argsort(right_sums, kind="stable")
        ordered = right_sums[order_right]
        first = np.searchsorted(ordered, rows.low[r] - rows.rest[r] - values, "left")
        last = np.searchsorted(ordered, rows.high[r] - values, "right")
        pairs = np.stack([first, np.maximum(first, last)]).astype(np.int64)
        total = int(np.bincount(place) @ (pairs[1] - pairs[0]))
        if total < best:
            best, order, span = total, order_right, np.ascontiguousarray(pairs[:, place])
    return order, span


def _room(states: int, rows: int, single: int, kind: np.dtype[Any]) -> States:
    """Return an empty store for states; ``single`` > 0 means one without a hash table."""
    size = 1 << max(states - 1, 1).bit_length()
    table = States(
        np.zeros((size, rows), kind),
        np.zeros(size),
        np.zeros(size),
        np.empty(0 if single else 4 * size, np.int32),
        np.zeros(single, np.int64),
        np.zeros(1, np.int64),
    )
    _index(table)
    return table


def _with_room(states: States, more: int) -> States:
    """Return the states in a store with room for ``more``."""
    n = int(states.number[0])
    if n + more <= states.peak.size:
        return states
    if n > _MAX_STATES:
        raise TooManyStatesError
    larger = _room(2 * (n + more), states.sums.shape[1], states.first.size, states.sums.dtype)
    for old, new in zip(states[:3], larger[:3], strict=True):
        new[:n] = old[:n]
    larger.first[:] = states.first
    larger.number[0] = n
    _index(larger)
    return larger
