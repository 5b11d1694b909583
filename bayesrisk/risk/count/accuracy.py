"""Rate of right guesses about one noisy count, over both truths."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntArray, Number
from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import LogTable
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.count.posterior import (
    count_posterior,
    decision_threshold,
    posterior_probability,
    threshold_offset,
)
from bayesrisk.risk.count.averages import (
    correct_decision_probability,
    marginal_posterior,
    marginal_risk,
    pair_tail,
)

# -----------------------------------------------------------------------------
# The law of the adversary's evidence over releases, a sum of independent terms, one for each: kept
# as two sorted lists of values instead of every pair, so that a tail is one passage over both.


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


def _merged(values: FloatArray, weights: FloatArray) -> _Term:
    """Return the distinct values in order, and what each weighs."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values) > 0.0)))
    return values[starts], np.add.reduceat(weights, starts)


class EvidenceLaw:
    """The law of a sum of two independent terms, each a list of values with probabilities."""

    def __init__(self, first: _Term, second: _Term) -> None:
        self.first, self.weights = _merged(*first)
        self.second, self.masses = _merged(*second)
        # Each tail is summed from its own end, so that both keep their relative precision.
        self._lower = np.concatenate(([0.0], np.cumsum(self.masses)))
        self._upper = np.concatenate((np.cumsum(self.masses[::-1])[::-1], [0.0]))

    def tail(self, limit: float, *, above: bool) -> float:
        """Return the probability of evidence above a limit, or at most it, with its ties."""
        if np.isinf(limit):
            return float((limit < 0.0) == above)
        table = self._upper if above else self._lower
        edge = limit + TIE * (1.0 + abs(limit))
        return float(pair_tail(edge, self.first, self.weights, self.second, table)[0])

    def next_above(self, limit: float) -> float:
        """Return the smallest value above a limit and its ties; infinite if there is none."""
        edge = limit + TIE * (1.0 + abs(limit))
        return float(pair_tail(edge, self.first, self.weights, self.second, self._lower)[1])

    def excess(self, limit: float) -> float:
        """Return the expectation of the positive part of 1 - exp(limit - evidence)."""
        decay = np.exp(-self.second)
        table = np.concatenate((np.cumsum((self.masses * decay)[::-1])[::-1], [0.0]))
        weights = self.weights * np.exp(limit - self.first)
        above = pair_tail(limit, self.first, self.weights, self.second, self._upper)[0]
        return float(above - pair_tail(limit, self.first, weights, self.second, table)[0])

    def reached(self, limit: float, *, present: bool) -> float:
        """Return the chance that evidence reaches a limit, or does not; ties count one half."""
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
    """Return the largest noise that matters and the probabilities from minus it to it."""
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
    """Return the sum of independent terms, value by value."""
    values, weights = np.zeros(1), np.ones(1)
    for more, masses in terms:
        _check_size(float(values.size) * more.size)
        values = np.add.outer(values, more).ravel()
        weights = np.multiply.outer(weights, masses).ravel()
        values, weights = _merged(values, weights)
    return values, weights


def _level_terms(precision: FloatArray, *, present: bool, cut: float) -> list[_Term]:
    """Return the evidence of levels whose others are known, one term for each precision.

    A level of precision rho says rho (2 eta + 1) if the target is there, rho (2 eta - 1) if not.
    Levels of one precision add up to a whole number of steps of 2 rho.  ``cut`` bounds the
    probability of the noise of one level that is left out to one side.
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
    """Return the law of the evidence of releases that each count the target, or each do not.

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
    """Return the law of the evidence where the adversary has laws for numbers of other people.

    ``tables`` says how many each level adds to the one below: None where known, and centred.  From
    the first unknown number on, levels are about the same people, so that their evidence does not
    add up, and all their releases are listed; the levels below it are as in :func:`levels_law`.
    With ``truth`` the releases are those of these numbers, else of what the adversary expects.
    """
    unknown = next(i for i, law in enumerate(tables) if law is not None)
    cut = 0.25 * left_out / precision.size
    second = _level_terms(precision[:unknown], present=present, cut=2.0 * cut)
    truth = None if truth is None else np.cumsum(truth[unknown:])
    listed = _Listing(precision[unknown:], tables[unknown:], present=present, cut=cut, truth=truth)
    return EvidenceLaw(listed.term(), _sum_terms(second))


class _Listing:
    """All releases of nested levels: forward sums over the counts of others, level by level."""

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
        """Return the probability of each release given each number of others so far."""
        gap = self.releases[level] - np.arange(states)[:, None] - target
        return np.asarray(self.noise[level].pmf(gap))

    def term(self) -> _Term:
        """Return the evidence of every release, and its probability."""
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
        """Return the law of the number of others at a level given that of the level below."""
        added = self.added[level]
        _check_size(float(states) * (states + added.size - 1))
        step = np.zeros((states, states + added.size - 1))
        for i in range(states):
            step[i, i : i + added.size] = added
        return step


@displayed
@dataclass(frozen=True)
class DecisionAccuracy(Tabular):
    """Rate of right best guesses, beside that without any release.

    Arrays have one common shape.  ``accuracy`` is ``prior * found + (1 - prior) * cleared``.

    Attributes
    ----------
    prior, accuracy : ndarray
        Probability p that the target is in the cell, as the adversary believes before the release,
        and that the best guess is right, whether the target is in the cell or not.
    baseline : ndarray
        max(p, 1 - p): always guessing the more probable, without a release.
    found, cleared : ndarray
        Probability of the guess "in the cell", if the target is in it (the
        :func:`correct_decision_probability`), and "not in the cell", if it is not.
    """

    prior: FloatArray
    accuracy: FloatArray
    baseline: FloatArray
    found: FloatArray
    cleared: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting."""
        return pd.DataFrame({f.name: np.ravel(getattr(self, f.name)) for f in fields(self)})


def combine(prior: FloatArray, detected: FloatArray, cleared: FloatArray) -> DecisionAccuracy:
    """Return the accuracy from its two halves; rounding does not push it below the baseline."""
    p, detected, cleared = np.broadcast_arrays(prior, detected, cleared)
    baseline = np.maximum(p, 1.0 - p)
    accuracy = np.clip(p * detected + (1.0 - p) * cleared, baseline, 1.0)
    return DecisionAccuracy(p, accuracy, baseline, detected, cleared)


def decision_accuracy(
    *,
    rho: Number | None = None,
    prior: Number,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
) -> DecisionAccuracy:
    r"""Return the rate at which the adversary's best guess is right, the target there or not.

    .. math:: p\, P(\eta \ge t - 1) + (1 - p)\, P(\eta < t)
        = \sum_y \max\{p\, f(y - k - 1),\ (1 - p)\, f(y - k)\}

    with t the threshold of :func:`decision_threshold`, minus k.  An adversary who ignores the
    release and guesses the more probable is right with probability max(p, 1 - p), the baseline:
    what the release adds is the difference.  Source: Kazan and Reiter (arXiv:2204.04253), equations
    (3.5) and (3.6), for the decision and for ``found``.

    The absolute error is at most 4e-13 (of the two halves 1e-13 relative).  How ties are decided
    does not matter to the accuracy.

    Parameters
    ----------
    rho, prior, sensitivity, sigma2 : array_like
        As for :func:`marginal_risk`.

    Examples
    --------
    At prior 1/5 the target is hardly ever found, and always guessing "no" is right in 80 %:

    >>> result = decision_accuracy(rho=0.0992264, prior=[1 / 2, 1 / 5])
    >>> result.found.round(5).tolist()
    [0.58886, 0.00175]
    >>> result.accuracy.round(5).tolist(), result.baseline.tolist()
    ([0.58886, 0.80005], [0.5, 0.8])
    """
    precision = check.cell_precision(rho, sigma2, sensitivity)
    p = check.probability(prior, "prior")
    check.broadcast(prior=p, **{check.NOISE: precision})
    noise, threshold = DiscreteGaussian.from_rho(precision), threshold_offset(precision, p)
    detected, cleared = noise.sf(threshold - 2.0), noise.cdf(threshold - 1.0)
    return combine(p, np.asarray(detected), np.asarray(cleared))


# -----------------------------------------------------------------------------
# All that is asked of one noisy count, under either law of a zCDP budget.


_DRAWS_AT_ONCE = 2**20  # 8 MiB
_TAIL = 2.0**-60  # of the noise left out on each side
_VALUES = 2**13
_ROUNDING = 1e-11  # relative standard errors below it are rounding, not chance


class NoiseRisk(NamedTuple):
    """The risk of one noisy count under a law of noise, for counts measured from the known one.

    The law's parameter; functions of released counts and a prior, of priors by quantity, and of
    delta.
    """

    parameter: float
    noise: DiscreteGaussian | DiscreteLaplace
    posterior: Callable[..., Any]
    averages: Mapping[str, Callable[..., Any]]
    accuracy: Callable[..., DecisionAccuracy]
    epsilon: Callable[[float], FloatAnswer]

    def simulated(
        self, priors: FloatArray, releases: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return the posterior averaged over simulated releases, and its standard error."""
        tally: Counter[int] = Counter()
        for start in range(0, releases, _DRAWS_AT_ONCE):
            draws = 1 + self.noise.rvs(min(_DRAWS_AT_ONCE, releases - start), rng)
            values, repeats = np.unique(draws, return_counts=True)
            tally.update(dict(zip(values.tolist(), repeats.tolist(), strict=True)))
        noisy, times = np.array(sorted(tally.items())).T
        posterior = np.array([self.posterior(noisy, prior=prior) for prior in priors])
        mean = posterior @ times / releases
        variance = ((posterior - mean[:, None]) ** 2) @ times / (releases - 1)
        return mean, np.sqrt(variance / releases)

    def effective_releases(self, priors: FloatArray, releases: int) -> FloatArray:
        """Return the number of simulated releases on which the standard error rests.

        With d the distance of the posterior from its average, n E[d^2]^2 / E[d^4]: n/3 for a normal
        d, the expected number of rare releases where these make all of it.  It is computed from the
        law and not from the draws: a release so rare that it was not drawn is what the draws cannot
        tell.  0 where the posterior is the same to rounding for every release.
        """
        first, last = int(self.noise.ppf(_TAIL)), int(self.noise.isf(_TAIL))
        # Noise that is spread over more values than these is smooth: some of them will do.
        noisy = 1 + np.arange(first, last + 1, 1 + (last - first) // _VALUES)
        mass = np.asarray(self.noise.pmf(noisy - 1))
        mass = mass / mass.sum()
        posterior = np.array([self.posterior(noisy, prior=prior) for prior in priors])
        distance = np.abs(posterior / (posterior @ mass)[:, None] - 1.0)
        second, fourth = distance**2 @ mass, distance**4 @ mass
        with np.errstate(invalid="ignore", divide="ignore"):
            effective = releases * second**2 / fourth
        return np.where(np.sqrt(second / releases) > _ROUNDING, effective, 0.0)


def gaussian_risk(rho: float, sensitivity: float) -> NoiseRisk:
    """Return the risk under discrete Gaussian noise of a zCDP budget."""
    budget = {"rho": rho, "sensitivity": sensitivity}
    averages: dict[str, Callable[..., Any]] = {
        "marginal_posterior": marginal_posterior,
        "marginal_risk": marginal_risk,
        "decision_threshold": decision_threshold,
        "correct_decision_probability": correct_decision_probability,
    }
    sigma2 = sensitivity**2 / (2.0 * rho)
    return NoiseRisk(
        sigma2,
        DiscreteGaussian(sigma2),
        partial(posterior_probability, **budget),
        {name: partial(function, **budget) for name, function in averages.items()},
        partial(decision_accuracy, **budget),
        partial(rho_to_epsilon, rho),
    )


def laplace_risk(rho: float, sensitivity: float) -> NoiseRisk:
    """Return the risk under discrete Laplace noise of the same budget, in closed form.

    With epsilon = sqrt(2 rho) and delta = 0.  The evidence of a release for X = k + 1 against X = k
    is one of two values: +1/b from k + 1 upwards, -1/b below.  So there are two posteriors, and
    every average is a sum of two terms.  The general form, :func:`marginal_count_posterior`, gives
    the same by summation; this one holds at any scale b.
    """
    epsilon = float(np.sqrt(2.0 * rho))
    scale = sensitivity / epsilon
    noise = DiscreteLaplace(scale)
    share = float(noise.sf(-1))  # P(Y > k | X = k + 1) = P(noise >= 0) = P(Y <= k | X = k)

    def posterior(noisy: IntArray, *, prior: float) -> FloatArray:
        pair = count_posterior(noisy, noise=noise, prior_pmf=[1.0 - prior, prior])
        return np.asarray(pair)[..., 1]

    def posteriors(prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the posterior after a release above, and after one not above, the known count."""
        with np.errstate(over="ignore"):
            decay, growth = np.exp(-1.0 / scale), np.exp(1.0 / scale)
            return prior / (prior + (1.0 - prior) * decay), prior / (prior + (1.0 - prior) * growth)

    def marginal(prior: FloatArray) -> FloatArray:
        above, below = posteriors(prior)
        return np.asarray(share * above + (1.0 - share) * below)

    def threshold(prior: FloatArray) -> FloatArray:
        above, below = posteriors(prior)
        return np.where(below >= 0.5, -np.inf, np.where(above >= 0.5, 1.0, np.inf))

    def reached(prior: FloatArray, always: float) -> FloatArray:
        """Return the chance of the guess that needs a release, where it depends on one."""
        least = threshold(prior)
        other = np.where(least > 1.0, 1.0 - always, share)
        return np.where(np.isneginf(least), always, other)

    averages: dict[str, Callable[..., Any]] = {
        "marginal_posterior": marginal,
        "marginal_risk": lambda prior: marginal(prior) / prior,
        "decision_threshold": threshold,
        "correct_decision_probability": lambda prior: reached(prior, 1.0),
    }

    def accuracy(prior: FloatArray) -> DecisionAccuracy:
        return combine(prior, reached(prior, 1.0), reached(prior, 0.0))

    return NoiseRisk(scale, noise, posterior, averages, accuracy, lambda _: epsilon)


#: The risk of a budget and a sensitivity by the law of the noise; the first is the usual one.
LAWS = {"discrete-gaussian": gaussian_risk, "discrete-laplace": laplace_risk}


# -----------------------------------------------------------------------------
# What risks say about epsilon: no smaller one can have been promised.


#: Share of delta whose releases may be left out: epsilon stays a lower bound.
_SHARE = 1e-6
_MAX_PRECISION = 1e3


def implied_epsilon(belief: Belief) -> float:
    r"""Return the smallest epsilon of pure differential privacy that beliefs are compatible with.

    .. math:: \epsilon \ge \max \Big| \log\frac{\pi}{1 - \pi} - \log\frac{p}{1 - p} \Big|

    The change of the log-odds is the logarithm of the Bayes factor, P(release | there) over
    P(release | not there), and under epsilon-differential privacy (delta = 0) no release has one
    beyond epsilon, whatever the prior.  Source: S. P. Kasiviswanathan and A. Smith (2014), *On the
    semantics of differential privacy: a Bayesian formulation*, Journal of Privacy and
    Confidentiality 6(1).

    The bound is in nats, and infinite if a posterior is 0 or 1.  A posterior rounded to a double
    moves it by up to 2**-53 / (1 - posterior).

    An average posterior is no single release: its bound is valid but smaller.  Gaussian noise has
    no finite epsilon at delta = 0; see :func:`attainable_epsilon`.

    Parameters
    ----------
    belief : Belief
        Priors in (0, 1) and posteriors of the statement that the target is there, where all else
        is known: the two possible data sets must be neighbours.

    Examples
    --------
    >>> print(round(implied_epsilon(Belief(prior=0.1, posterior=0.182)), 4))
    0.6944
    """
    p = check.probability(check.instance(belief, Belief, "belief").prior, "prior")
    with np.errstate(divide="ignore"):
        after = np.log(belief.posterior) - np.log1p(-np.asarray(belief.posterior))
    return float(np.abs(after - (np.log(p) - np.log1p(-p))).max())


def decision_epsilon(*, found: Number, cleared: Number, delta: float = 0.0) -> FloatAnswer:
    r"""Return the smallest epsilon that a rate of right decisions is compatible with.

    .. math:: \epsilon \ge \log \max\Big\{ \frac{a - \delta}{b}, \frac{b - \delta}{a},
        \frac{1 - a - \delta}{1 - b}, \frac{1 - b - \delta}{1 - a} \Big\}, \quad
        a = \text{found},\ b = 1 - \text{cleared}

    Every decision about one person, as :func:`decision_accuracy` and the simulated attacks give
    them, is a test of two neighbouring data sets.  Source: L. Wasserman and S. Zhou (2010), *A
    statistical framework for differential privacy*, Theorem 2.4; P. Kairouz, S. Oh and P. Viswanath
    (2015), *The composition theorem for differential privacy*, Theorem 2.1.

    The bound is in nats, and infinite where an outcome of probability above delta has none under
    the other truth.

    With estimated rates use the ends of their confidence intervals that make the bound small.

    Parameters
    ----------
    found : array_like
        Probability of deciding "there" if the target is there, in [0, 1].
    cleared : array_like
        Probability of deciding "not there" if not, in [0, 1].
    delta : float, default 0.0
        delta of the promise, in [0, 1).

    Examples
    --------
    >>> print(round(decision_epsilon(found=0.6, cleared=0.7), 4))
    0.6931
    """
    a = check.real_array(found, "found", lower=0.0, upper=1.0) + 0.0  # without minus zero
    right = check.real_array(cleared, "cleared", lower=0.0, upper=1.0) + 0.0
    failure = check.scalar(delta, "delta", lower=0.0, upper=1.0, bounds="[)")
    check.broadcast(found=a, cleared=right)
    b = 1.0 - right
    pairs = [(a, b), (b, a), (1.0 - a, right), (right, 1.0 - a)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bounds = [
            np.where(x > failure, np.log1p((np.maximum(x - failure, 0.0) - y) / y), 0.0)
            for x, y in pairs
        ]
    return check.answer(np.maximum(np.maximum.reduce(bounds), 0.0))


def attainable_epsilon(*, noise: Noise | DiscreteGaussian, delta: float) -> float:
    r"""Return the smallest epsilon that the evidence of noisy counts is compatible with at delta.

    .. math:: \inf\{\epsilon \ge 0 : E[(1 - e^{\epsilon - E})_+] \le \delta\}, \quad
        E = \sum_l \rho_l (2 \eta_l + 1)

    with E the evidence if the target is there, the logarithm of the Bayes factor: the best test of
    whether the target is there decides by whether E exceeds epsilon.  Source: As for
    :func:`decision_epsilon`; by the lemma of Neyman and Pearson no other test gains more.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape () or (levels,)
        Noise of the count, or of each level that counts the target.
    delta : float
        delta of the promise, in [1e-12, 1).

    Returns
    -------
    float
        Epsilon, in nats.  A lower bound for every promise with this delta, and for one person more
        or less attained: for one count it is :func:`discrete_gaussian_epsilon`, of a delta smaller
        by at most 1e-5 of it.  rho / sensitivity**2 is at most 1000, and the evidence of half of
        the levels a list of at most 2**22 values.

    Examples
    --------
    >>> print(round(attainable_epsilon(noise=Noise(rho=0.0992264), delta=1e-6), 4))
    2.0016
    """
    precision = noise_precision(noise)
    if precision.ndim > 1:
        raise ShapeError(f"noise must be one number or a list of levels, got {precision.shape}")
    if np.any(precision > _MAX_PRECISION):
        raise ArgumentError(
            f"noise must have rho / sensitivity**2 <= {_MAX_PRECISION:g}, got {precision.max():g}"
        )
    failure = check.scalar(delta, "delta", lower=1e-12, upper=1.0, bounds="[)")
    law = levels_law(np.atleast_1d(precision), present=True, left_out=_SHARE * failure)
    if law.excess(0.0) <= failure:
        return 0.0
    from scipy.optimize import brentq  # slow to import

    return float(brentq(lambda e: law.excess(e) - failure, 0.0, law.ends[1], xtol=1e-13))
