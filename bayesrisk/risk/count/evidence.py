"""The distribution of the adversary's evidence (log Bayes factor) over releases.

The evidence is a sum of independent terms, one for each level. They are kept as two sorted lists of
values, not as all pairs, so that a tail takes one pass over both.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.kernels import LogTable
from bayesrisk.exceptions import ArgumentError

#: Evidence this close to a limit, relative to 1 or to its own size, is equal to it.
TIE = 1e-10
#: Values kept in one of the two lists.
MAX_VALUES = 2**22
_CHUNK = 2**16
# Evidence beyond this is certainty in double precision.
_CERTAIN = 745.0
# Variance from which discrete Gaussians add up to one, relative error 2 exp(-2 pi**2 s t / (s + t))
# of variances s and t (Poisson summation): 1e-17 where both are so large.
_SMOOTH = 4.0
_Term = tuple[FloatArray, FloatArray]


@kernel
def pair_tail(
    edge: float, first: FloatArray, weights: FloatArray, second: FloatArray, table: FloatArray
) -> tuple[float, float]:
    """Return a tail probability of a sum of two terms, and the smallest sum above the edge.

    ``table[j]`` is the mass of ``second[:j]`` or of ``second[j:]``.  Both lists are sorted, so that
    the edge moves down the second while the first goes up: one passage over both.
    """
    j = second.size
    total = 0.0
    nearest = math.inf
    for i in range(first.size):
        # The largest j with first[i] + second[j - 1] <= edge: second[:j] keeps the sum below it.
        while j > 0 and first[i] + second[j - 1] > edge:
            j -= 1
        # P(tail) = sum_i P(first_i) P(second in the tail left by it).
        total += weights[i] * table[j]
        if j < second.size:
            nearest = min(nearest, first[i] + second[j])
    return total, nearest


def _merged(values: FloatArray, weights: FloatArray) -> _Term:
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values) > 0.0)))
    return values[starts], np.add.reduceat(weights, starts)


class EvidenceLaw:
    """The law of a sum of two independent terms, each a list of values and probabilities."""

    def __init__(self, first: _Term, second: _Term) -> None:
        self.first, self.weights = _merged(*first)
        self.second, self.masses = _merged(*second)
        # Each tail is summed from its own end, so that both keep their relative precision.
        self._lower = np.concatenate(([0.0], np.cumsum(self.masses)))
        self._upper = np.concatenate((np.cumsum(self.masses[::-1])[::-1], [0.0]))

    def tail(self, limit: float, *, above: bool) -> float:
        """Return P(evidence > limit), or P(evidence <= limit); ties belong to the limit."""
        if np.isinf(limit):
            return float((limit < 0.0) == above)
        table = self._upper if above else self._lower
        edge = limit + TIE * (1.0 + abs(limit))
        return float(pair_tail(edge, self.first, self.weights, self.second, table)[0])

    def next_above(self, limit: float) -> float:
        """Return the smallest value above a limit (ties excluded), or infinity."""
        edge = limit + TIE * (1.0 + abs(limit))
        return float(pair_tail(edge, self.first, self.weights, self.second, self._lower)[1])

    def reached(self, limit: float, *, present: bool) -> float:
        """Return P(evidence >= limit), or its complement, with ties counted half."""
        slack = TIE * (1.0 + abs(limit))
        table = self._upper if present else self._lower
        arguments = (self.first, self.weights, self.second, table)
        return 0.5 * float(sum(pair_tail(limit + s, *arguments)[0] for s in (-slack, slack)))

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        low = float(self.first[0] + self.second[0])
        return low, float(self.first[-1] + self.second[-1])

    def average(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """Return the expectation of a function of the evidence, pair by pair."""
        total, step = 0.0, max(_CHUNK // self.second.size, 1)
        for start in range(0, self.first.size, step):
            part = slice(start, start + step)
            values = function(self.first[part, None] + self.second)
            total += float(self.weights[part] @ values @ self.masses)
        return total


def _window(precision: float, tail: float) -> tuple[int, FloatArray]:
    """Return the largest relevant noise w, and the probabilities from -w to w."""
    law = DiscreteGaussian(0.5 / precision)
    reach = float(np.asarray(law.isf(tail)))
    _check_size(2.0 * reach + 1.0)
    return int(reach), np.asarray(law.pmf(np.arange(-int(reach), int(reach) + 1)))


def _check_size(size: float) -> None:
    if not size <= MAX_VALUES:
        raise ArgumentError(
            f"noise must leave at most {MAX_VALUES} values of the evidence to list "
            f"(fewer with less noise or a larger left_out), got {size:g}"
        )


def _sum_terms(terms: list[_Term]) -> _Term:
    values, weights = np.zeros(1), np.ones(1)
    for more, masses in terms:
        _check_size(float(values.size) * more.size)
        values = np.add.outer(values, more).ravel()
        weights = np.multiply.outer(weights, masses).ravel()
        values, weights = _merged(values, weights)
    return values, weights


def _level_terms(precision: FloatArray, *, present: bool, cut: float) -> list[_Term]:
    """Return the evidence of levels with known others, one term for each distinct precision.

    A level of precision rho contributes rho (2 eta + 1) if the target is present, rho (2 eta - 1)
    if not. Levels of one precision add up to a whole number of steps of 2 rho. ``cut`` bounds the
    probability left out on one side of one level's noise.
    """
    terms: list[_Term] = []
    levels, times = np.unique(precision, return_counts=True)
    for rho, m in zip(levels.tolist(), times.tolist(), strict=True):
        if 0.5 / rho >= _SMOOTH:
            reach, pmf = _window(rho / m, m * cut)
        else:
            reach, one = _window(rho, cut)
            reach, pmf = m * reach, functools.reduce(np.convolve, [one] * m)
        total = np.arange(-reach, reach + 1)
        terms.append((rho * (2.0 * total + (m if present else -m)), pmf))
    return terms


def levels_law(precision: FloatArray, *, present: bool, left_out: float) -> EvidenceLaw:
    """Return the law of the evidence if all releases count the target, or none does.

    ``left_out`` bounds the probability of the noise that is cut off.
    """
    # The largest first, each to the half that is smaller so far.
    halves: list[list[_Term]] = [[], []]
    sizes = [1.0, 1.0]
    terms = _level_terms(precision, present=present, cut=0.5 * left_out / precision.size)
    for term in sorted(terms, key=lambda term: -term[0].size):
        i = int(sizes[1] < sizes[0])
        halves[i].append(term)
        sizes[i] *= term[0].size
    return EvidenceLaw(_sum_terms(halves[0]), _sum_terms(halves[1]))


def unknown_others_law(
    precision: FloatArray,
    tables: Sequence[LogTable | None],
    *,
    present: bool,
    left_out: float,
    truth: IntArray | None = None,
) -> EvidenceLaw:
    """Return the law of the evidence if the adversary knows only laws for numbers of others.

    ``tables`` are the laws of the numbers that each level adds to the one below: None if known, and
    centred. From the first unknown number on, levels share people, so their evidence does not add
    up, and all their releases are listed. The levels below it are as in :func:`levels_law`. With
    ``truth`` the releases have these numbers, else they follow the adversary's prior.
    """
    unknown = next(i for i, law in enumerate(tables) if law is not None)
    cut = 0.25 * left_out / precision.size
    second = _level_terms(precision[:unknown], present=present, cut=2.0 * cut)
    truth = None if truth is None else np.cumsum(truth[unknown:])
    listed = _Listing(precision[unknown:], tables[unknown:], present=present, cut=cut, truth=truth)
    return EvidenceLaw(listed.term(), _sum_terms(second))


class _Listing:
    """All releases of nested levels, with forward sums over the numbers of others."""

    def __init__(
        self,
        precision: FloatArray,
        tables: Sequence[LogTable | None],
        *,
        present: bool,
        cut: float,
        truth: IntArray | None,
    ) -> None:
        self.present = present
        #: Law of what each level adds, and of what all levels so far add, both from 0.
        weights = [np.ones(1) if t is None else np.exp(t.log_pmf - t.log_pmf.max()) for t in tables]
        self.added = [np.asarray(w / w.sum()) for w in weights]
        starts = np.cumsum([0 if law is None else law.start for law in tables])
        self.releases: list[IntArray] = []
        self.noise: list[DiscreteGaussian] = []
        self.truth: list[int] = []
        total = np.ones(1)
        for i, (rho, added) in enumerate(zip(precision.tolist(), self.added, strict=True)):
            _check_size(float(total.size) * added.size)
            total = np.convolve(total, added)
            reach, _ = _window(rho, cut)
            if truth is None:
                below, above = np.cumsum(total), np.cumsum(total[::-1])[::-1]
                near = np.flatnonzero((below > cut) & (above > cut))
                low, high = (int(near[0]), int(near[-1])) if near.size else (0, total.size - 1)
            else:
                low = high = int(truth[i] - starts[i])
            self.truth.append(low)
            self.releases.append(np.arange(low - reach, high + reach + 1) + int(present))
            self.noise.append(DiscreteGaussian(0.5 / rho))
        _check_size(float(np.prod([float(y.size) for y in self.releases])))
        self.fixed = truth is not None

    def _pmf(self, level: int, states: int, target: int) -> FloatArray:
        """Return the probability of each release given each number of others."""
        gap = self.releases[level] - np.arange(states)[:, None] - target
        return np.asarray(self.noise[level].pmf(gap))

    def term(self) -> _Term:
        joint = [self.added[0][None, :]] * 2  # without the target, with it: releases by others
        mass = np.ones(1)
        last = len(self.added) - 1
        for level in range(last):
            pmf = [self._pmf(level, joint[0].shape[1], x) for x in (0, 1)]
            mass = np.multiply.outer(mass, self._mass(level)).ravel()
            _check_size(float(mass.size) * joint[0].shape[1])
            joint = [
                (f[:, None, :] * e.T[None, :, :]).reshape(-1, f.shape[1])
                for f, e in zip(joint, pmf, strict=True)
            ]
            if level + 1 < last:
                joint = [f @ self._step(level + 1, f.shape[1]) for f in joint]
        values, weights = [], []
        steps = self._step(last, joint[0].shape[1]) if last else np.eye(joint[0].shape[1])
        pmf = [steps @ self._pmf(last, steps.shape[1], x) for x in (0, 1)]
        rows = max(_CHUNK // pmf[0].shape[1], 1)
        for start in range(0, mass.size, rows):
            part = slice(start, start + rows)
            without, with_target = (f[part] @ e for f, e in zip(joint, pmf, strict=True))
            with np.errstate(divide="ignore", invalid="ignore"):
                evidence = np.log(with_target) - np.log(without)
            if self.fixed:
                chance = np.multiply.outer(mass[part], self._mass(last))
            else:
                chance = with_target if self.present else without
            possible = (chance > 0.0) & ~np.isnan(evidence)
            values.append(np.clip(evidence[possible], -_CERTAIN, _CERTAIN))
            weights.append(chance[possible])
        return np.concatenate(values), np.concatenate(weights)

    def _mass(self, level: int) -> FloatArray:
        """Return the probability of each release given the true number of others."""
        gap = self.releases[level] - self.truth[level] - int(self.present)
        return np.asarray(self.noise[level].pmf(gap))

    def _step(self, level: int, states: int) -> FloatArray:
        """Return the law of a level's number of others, given that of the level below."""
        added = self.added[level]
        _check_size(float(states) * (states + added.size - 1))
        step = np.zeros((states, states + added.size - 1))
        for i in range(states):
            step[i, i : i + added.size] = added
        return step
