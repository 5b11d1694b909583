"""Which records are there: expected numbers, and the most probable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bayesrisk._numba import kernel
from bayesrisk._validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.knowledge import Classes
from bayesrisk.inference.microdata.system import MicrodataSystem, SmallSystem

# The exact law of a small system: every point of every component is visited and weighed.
#
# The unknowns are whole numbers ``x[0], x[1], ...``.  A *hard* row says that a weighted sum of
# them is a number; a *soft* row gives a log weight to every value of such a sum.  The log weight
# of a point is the sum of the log priors of the unknowns and of the soft rows.  A compiled
# depth-first search, which can pause, reaches a point by one path, and what is below a branch is
# added up on the way back, so the law of every unknown costs nothing beyond the visit.


_FAR = 500.0  # how far a log weight may lie above the reference before all sums are rescaled


class Component(NamedTuple):
    """Unknowns that rows connect, in the order of the search.

    ``ptr, row, coef`` list the rows of every unknown; ``after`` is the most that the unknowns
    after it can add to that row, and ``last`` says whether there are none.
    """

    top: IntArray  # largest value of every unknown
    prior_ptr: IntArray  # log prior of x[i] = v stands at prior[prior_ptr[i] + v]
    prior: FloatArray
    ptr: IntArray
    row: IntArray
    coef: IntArray
    after: IntArray
    last: BoolArray
    hard: BoolArray  # for every row: whether its sum is given
    most: IntArray  # that sum, or the largest that has a weight
    soft_ptr: IntArray  # log weight of a sum s of a soft row stands at soft[soft_ptr[r] + s]
    soft: FloatArray
    asked_ptr: IntArray  # the linear functions that are asked about, by unknown
    asked: IntArray
    asked_coef: IntArray


class SearchState(NamedTuple):
    """State of a search, so that it can pause."""

    x: IntArray
    high: IntArray  # largest value at each depth
    path: FloatArray  # log weight of what stands above each depth
    below: FloatArray  # weight found below the present value of each depth
    sums: IntArray  # of every row so far
    answers: IntArray  # of every linear function so far
    law_ptr: IntArray
    law: FloatArray  # weight of each value of each unknown
    answer_ptr: IntArray
    answer_law: FloatArray  # weight of each value of each linear function
    number: IntArray  # depth, points, nodes, and whether the depth is to be entered
    scale: FloatArray  # reference of the weights (log), and their sum


@kernel
def search(part: Component, state: SearchState, budget: int) -> bool:
    """Go on for about ``budget`` nodes; return whether every point has been visited.

    At each depth the values from ``x`` to ``high`` are still to be tried; ``sums`` and ``answers``
    hold those above and the present value.
    """
    # Arrays by name: to reach into a tuple inside the loop costs more than the loop's own work.
    top, prior_ptr, prior, ptr, row = part.top, part.prior_ptr, part.prior, part.ptr, part.row
    coef, after, last, hard, most = part.coef, part.after, part.last, part.hard, part.most
    soft_ptr, soft, asked_ptr = part.soft_ptr, part.soft, part.asked_ptr
    asked, asked_coef = part.asked, part.asked_coef
    x, high, path, below, sums = state.x, state.high, state.path, state.below, state.sums
    answers, law_ptr, law = state.answers, state.law_ptr, state.law
    answer_ptr, answer_law, scale = state.answer_ptr, state.answer_law, state.scale
    n = top.size
    depth, points, nodes = state.number[0], state.number[1], np.int64(0)
    enter = state.number[3] == 1
    reference, total = scale[0], scale[1]
    while nodes < budget:
        step = np.int64(1)
        if enter:
            # A row of sum s and bound b leaves x with s + a x <= b, and, where the sum is given,
            # with s + a x + after >= b
            low, up = np.int64(0), top[depth]
            for k in range(ptr[depth], ptr[depth + 1]):
                r = row[k]
                rest = most[r] - sums[r]
                up = min(up, rest // coef[k]) if rest >= 0 else np.int64(-1)
                if hard[r] and rest > after[k]:
                    low = max(low, -((after[k] - rest) // coef[k]))
            high[depth], below[depth], step, enter = up, 0.0, low, False
        elif x[depth] > high[depth]:
            # This depth is done: back to the one above, whose value has the weight found below it
            for k in range(ptr[depth], ptr[depth + 1]):
                sums[row[k]] -= x[depth] * coef[k]
            for k in range(asked_ptr[depth], asked_ptr[depth + 1]):
                answers[asked[k]] -= x[depth] * asked_coef[k]
            x[depth] = 0
            found = below[depth]
            depth -= 1
            if depth < 0:
                break
            law[law_ptr[depth] + x[depth]] += found
            below[depth] += found
        else:
            # w(x) = sum of log priors and of log weights of the soft rows that end here
            nodes += 1
            value = path[depth] + prior[prior_ptr[depth] + x[depth]]
            for k in range(ptr[depth], ptr[depth + 1]):
                if last[k] and not hard[row[k]]:
                    value += soft[soft_ptr[row[k]] + sums[row[k]]]
            if value > -math.inf:
                if depth < n - 1:
                    depth += 1
                    path[depth], enter = value, True
                    continue
                # A point: P(x_i = v) and P(answer = v) are sums of exp(w - m)
                points += 1
                if reference == -math.inf:
                    reference = value
                elif value > reference + _FAR:
                    # The reference m moves far up: exp(w - m') = exp(w - m) exp(m - m')
                    factor = math.exp(reference - value)
                    below *= factor
                    law *= factor
                    answer_law *= factor
                    total *= factor
                    reference = value
                weight = math.exp(value - reference)
                law[law_ptr[depth] + x[depth]] += weight
                below[depth] += weight
                total += weight
                for i in range(answers.size):
                    answer_law[answer_ptr[i] + answers[i]] += weight
        if step:  # the next value: s + a step
            x[depth] += step
            for k in range(ptr[depth], ptr[depth + 1]):
                sums[row[k]] += step * coef[k]
            for k in range(asked_ptr[depth], asked_ptr[depth + 1]):
                answers[asked[k]] += step * asked_coef[k]
    scale[0], scale[1] = reference, total
    state.number[0], state.number[1], state.number[3] = depth, points, 1 if enter else 0
    state.number[2] += nodes
    return bool(depth < 0)


_NODES = 2**22  # visited before the search comes back to Python, some tenths of a second
_NODES_A_POINT = 64  # that are visited at most: a search may find little and never end


class TooManyPointsError(Exception):
    """There are more points than may be visited."""


@dataclass(frozen=True)
class ExactLaw:
    """Marginal laws of groups and linear functions."""

    laws: tuple[FloatArray, ...]  # probability of the counts 0, 1, ... of every group
    answers: tuple[FloatArray, ...]  # probability of the values 0, 1, ... of every linear function
    points: int  # points visited, of all components together


def weigh(system: SmallSystem, asked: sp.csr_array, max_points: int) -> ExactLaw:
    """Return the exact laws of the groups, and of linear functions of them."""
    n_groups = system.matrix.shape[1]
    laws: list[FloatArray] = [np.ones(1)] * n_groups
    answers: list[FloatArray] = [np.ones(1)] * asked.shape[0]
    blocks: Any = [[None, system.matrix.T], [system.matrix, None]]
    graph = sp.block_array(blocks)
    _, label = connected_components(graph, directed=False)
    label = label[:n_groups]
    columns, of_rows = sp.csc_array(system.matrix), system.matrix
    points = nodes = 0
    most_nodes = max(_NODES, _NODES_A_POINT * max_points)
    for part in np.unique(label):
        members = np.flatnonzero(label == part)
        rows = np.unique(columns[:, members].indices).astype(np.int64)
        order = members[_order(of_rows[rows, :][:, members], system, rows)]
        component, state = _prepared(system, order, rows, asked)
        while not search(component, state, _NODES):
            nodes_now = nodes + int(state.number[2])
            if points + int(state.number[1]) > max_points or nodes_now > most_nodes:
                raise TooManyPointsError
        points, nodes = points + int(state.number[1]), nodes + int(state.number[2])
        total = float(state.scale[1])
        if not total > 0.0:
            raise DataError(
                "release contradicts itself or the prior: no counts agree with all of it"
            )
        for i, group in enumerate(order):
            laws[group] = state.law[state.law_ptr[i] : state.law_ptr[i + 1]] / total
        for i, f in enumerate(_asked_of(asked, members)):
            found = state.answer_law[state.answer_ptr[i] : state.answer_ptr[i + 1]] / total
            answers[f] = np.convolve(answers[f], found)
    return ExactLaw(tuple(laws), tuple(answers), points)


def _asked_of(asked: sp.csr_array, members: IntArray) -> IntArray:
    """Return the functions that depend on a component."""
    found: IntArray = np.flatnonzero(np.diff(sp.csr_array(asked[:, members]).indptr))
    return found


def _order(rows: sp.csr_array, system: SmallSystem, numbers: IntArray) -> IntArray:
    """Return an order in which rows are complete early, hard ones first."""
    matrix, columns = sp.csr_array(rows), sp.csc_array(rows)
    left = np.diff(matrix.indptr).astype(np.int64)
    penalty = np.where(system.hard[numbers], 0, matrix.shape[1])
    done = np.zeros(matrix.shape[1], np.bool_)
    order: list[int] = []
    while len(order) < matrix.shape[1]:
        open_rows = np.flatnonzero(left)
        if not open_rows.size:
            order += [int(c) for c in np.flatnonzero(~done)]
            break
        row = open_rows[np.argmin(left[open_rows] + penalty[open_rows])]
        members = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        for column in members[~done[members]]:
            done[column] = True
            order.append(int(column))
            left[columns.indices[columns.indptr[column] : columns.indptr[column + 1]]] -= 1
    return np.array(order, np.int64)


def _prepared(
    system: SmallSystem, order: IntArray, rows: IntArray, asked: sp.csr_array
) -> tuple[Component, SearchState]:
    """Return the arrays of a component, and a search at its beginning."""
    top = system.top[order]
    small = sp.csc_array(system.matrix[rows, :][:, order])
    small.sort_indices()
    ptr, row, coef = (a.astype(np.int64) for a in (small.indptr, small.indices, small.data))
    after = np.zeros(row.size, np.int64)
    last = np.zeros(row.size, np.bool_)
    rest, seen = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.bool_)
    for c in range(order.size - 1, -1, -1):
        for k in range(ptr[c], ptr[c + 1]):
            after[k], last[k] = rest[row[k]], not seen[row[k]]
            rest[row[k]] += coef[k] * top[c]
            seen[row[k]] = True
    soft = [system.soft[r] for r in rows]
    functions = _asked_of(asked, order)
    chosen = sp.csc_array(sp.csr_array(asked[functions, :])[:, order])
    chosen.sort_indices()
    most = chosen @ top if functions.size else np.zeros(0, np.int64)
    priors = [system.priors[g] for g in order]
    component = Component(
        top=top,
        prior_ptr=starts([p.size for p in priors]),
        prior=np.concatenate(priors),
        ptr=ptr,
        row=row,
        coef=coef,
        after=after,
        last=last,
        hard=system.hard[rows].astype(np.bool_),
        most=np.array(
            [system.given[r] if system.hard[r] else system.soft[r].size - 1 for r in rows]
        ),
        soft_ptr=starts([s.size for s in soft]),
        soft=np.concatenate([*soft, np.zeros(1)]),
        asked_ptr=chosen.indptr.astype(np.int64),
        asked=chosen.indices.astype(np.int64),
        asked_coef=chosen.data.astype(np.int64),
    )
    n = order.size
    law_ptr, answer_ptr = starts(top + 1), starts(np.asarray(most) + 1)
    state = SearchState(
        x=np.zeros(n, np.int64),
        high=np.zeros(n, np.int64),
        path=np.zeros(n),
        below=np.zeros(n),
        sums=np.zeros(rows.size, np.int64),
        answers=np.zeros(functions.size, np.int64),
        law_ptr=law_ptr,
        law=np.zeros(int(law_ptr[-1])),
        answer_ptr=answer_ptr,
        answer_law=np.zeros(int(answer_ptr[-1])),
        number=np.array([0, 0, 0, 1], np.int64),
        scale=np.array([-np.inf, 0.0]),
    )
    return component, state


def starts(sizes: Sequence[int] | IntArray) -> IntArray:
    """Return the first positions of parts of these sizes, and the end of the last."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)


_ROOM = 2**25  # numbers that the tallies of all chains may hold


class Ranking(Protocol):
    """The law of every unknown count."""

    @property
    def size(self) -> int:
        """Number of unknowns."""

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""


@dataclass(frozen=True)
class GroupLaws:
    """Laws of the counts of groups whose records are exchangeable."""

    # for every chain (one if exact) and group, the probability of 0, 1, ... records
    laws: list[list[FloatArray]]
    group: IntArray  # group of every unknown; -1 where there is nobody
    mass: FloatArray  # share or Dirichlet parameter of every group
    weight: FloatArray  # part of it that every unknown has
    dirichlet: bool  # whether these are Dirichlet parameters

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.group.size

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        found = np.zeros((len(self.laws), unknowns.size))
        order = np.argsort(self.group[unknowns], kind="stable")
        groups, starts = np.unique(self.group[unknowns][order], return_index=True)
        for g, at in zip(groups, np.split(order, starts[1:]), strict=True):
            if g < 0:
                continue
            n = np.arange(k, max(laws[g].size for laws in self.laws))
            weights, back = np.unique(self.weight[unknowns[at]], return_inverse=True)
            tails = self._tails(k, n, weights, float(self.mass[g]))
            for chain, laws in enumerate(self.laws):
                law = laws[g][k:]
                found[chain, at] = (law @ tails[: law.size])[back]
        return found

    def _tails(self, k: int, n: IntArray, weights: FloatArray, mass: float) -> FloatArray:
        """Return P(x >= k | n records of the group) for unknowns of these weights."""
        from scipy.stats import betabinom, binom  # slow to import

        found = np.ones((n.size, weights.size))
        part = np.flatnonzero(weights < 1.0)
        if part.size and n.size:
            w = weights[part]
            if self.dirichlet:
                each = betabinom.pmf(
                    np.arange(k)[:, None, None], n[:, None], mass * w, mass * (1.0 - w)
                )
                below = np.asarray(each).sum(axis=0)
                found[:, part] = np.maximum(0.0, 1.0 - below)
            else:
                found[:, part] = binom.sf(k - 1, n[:, None], w)
        return found


@dataclass
class Tally:
    """Frequencies of k or more records in the draws of chains, for every unknown."""

    chains: int  # number of chains and of unknowns
    size: int
    _seen: list[list[IntArray]] = field(default_factory=list)
    _draws: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen = [[] for _ in range(self.chains)]
        self._draws = [0] * self.chains
        self._most = max(1, _ROOM // (self.chains * max(self.size, 1)))
        self._total = np.zeros((self.chains, self.size))

    @property
    def mean(self) -> FloatArray:
        """Mean count of every unknown."""
        found: FloatArray = self._total.sum(axis=0) / sum(self._draws)
        return found

    def add(self, chain: int, x: IntArray) -> None:
        """Count the records of a state of a chain."""
        self._draws[chain] += 1
        self._total[chain] += x
        seen, at, k = self._seen[chain], np.flatnonzero(x), 0
        values = x[at]
        while at.size and k < self._most:
            if k == len(seen):
                seen.append(np.zeros(self.size, np.int32))
            seen[k][at] += 1
            k += 1
            more = values > k
            at, values = at[more], values[more]

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        found = np.zeros((self.chains, unknowns.size))
        for chain, seen in enumerate(self._seen):
            if k <= len(seen):
                found[chain] = seen[k - 1][unknowns] / self._draws[chain]
        return found


def ranked(
    law: Ranking, system: MicrodataSystem, cell_of: IntArray, names: list[str], top: int
) -> pd.DataFrame:
    """Return the most probable records: unknown, number of them, probability and its error."""
    left = np.arange(law.size)
    found: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    best, k = np.zeros(0), 1
    while left.size:
        each = law.at_least(k, left)
        value = each.mean(axis=0)
        error = np.zeros(value.size)
        if len(each) > 1:
            error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        kept = np.flatnonzero(value > 0.0)
        found.append((left[kept], np.full(kept.size, k), value[kept], error[kept]))
        best = np.sort(np.concatenate([best, value[kept]]))[-top:]
        # One more of a kind is never the more probable.
        limit = best[0] if best.size == top else 0.0
        left, k = left[value > limit], k + 1
    unknown, number, value, error = (np.concatenate([part[i] for part in found]) for i in range(4))
    order = np.lexsort((number, unknown, -value))[:top]
    frame = _frame(system, cell_of[unknown[order]])
    frame["known"] = [names[u] for u in unknown[order]]
    return frame.assign(number=number[order], probability=value[order], error=error[order])


def expected_of(system: MicrodataSystem, cell_of: IntArray, mean: FloatArray) -> pd.DataFrame:
    """Return one row for each class that may be there, with the mean of its number."""
    every = np.bincount(cell_of, mean, minlength=system.cells)
    every += system.known.settled.toarray().ravel()
    kept = np.flatnonzero(every > 0.0)
    return _frame(system, kept).assign(expected=every[kept])


def _frame(system: MicrodataSystem, cells: IntArray) -> pd.DataFrame:
    """Return place and codes of classes."""
    of = system.classes
    place, cls = np.divmod(cells, of.size)
    places: TextArray = system.places[place]
    frame = pd.DataFrame({"place": places})
    for name, bins in zip(of.schema.names, np.unravel_index(cls, of.shape), strict=True):
        frame[name] = np.array(_codes(of, name))[bins]
    return frame


def _codes(of: Classes, name: str) -> list[str]:
    """Return the codes of every bin of an attribute."""
    attribute = of.schema.attribute(name)
    told = []
    for b in range(int(of.bins[name].max()) + 1):
        codes = np.flatnonzero(of.bins[name] == b) + attribute.first
        runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        told.append(",".join(str(r[0]) if r.size == 1 else f"{r[0]}-{r[-1]}" for r in runs))
    return told
