"""Averages and laws of the risk ratio, the target alone in its category at several levels (S1.3).

The posterior depends on the releases through the total evidence E = sum_l rho_l (2 eta_l + 1)
only, so all that is needed is its law.  That law has irrational atoms, many more than can be
listed; but it is integrated against one function, 1 / (p + (1 - p) exp(-E)), which is analytic in
the strip |Im E| < pi.  So each atom may be replaced by the weights of polynomial interpolation on
a grid of spacing 1/10: no error above rounding, and the levels then combine by plain convolution,
at a cost linear in their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntArray, Number
from bayesrisk._version import __version__
from bayesrisk.answers import Belief
from bayesrisk.distributions import CountLaw, DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import REACH, LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.count import postprocessed as kernels
from bayesrisk.inference.count.measurements import MAX_SIBLINGS, exact_wanted, sum_laws
from bayesrisk.risk.count.accuracy import (
    TIE,
    DecisionAccuracy,
    EvidenceLaw,
    combine,
    levels_law,
    unknown_others_law,
)
from bayesrisk.risk.count.averages import SMOOTH, STEP, marginal_excess

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes

_Grid = tuple[int, FloatArray]
_Term = tuple[FloatArray, FloatArray]

# Interpolation error, relative: 2 / pi**17 * 0.1**16 * (15!! / 2**8)**2 = 5e-17 (two poles at a
# distance of pi from the real line, sixteen points around each atom).
_SPACING = 0.1
_POINTS = 16
_NODES = np.arange(_POINTS) - (_POINTS // 2 - 1)
_BARYCENTRIC = np.array([1.0 / np.prod([float(a - b) for b in _NODES if a != b]) for a in _NODES])
# Evidence of one level beyond which the adversary is certain: exp(-900) is below 1e-300**1.3.
_CERTAIN = 900.0
_LEFT_OUT = 1e-15
_CHUNK = 2**16


def _on_grid(atoms: FloatArray, weights: FloatArray) -> _Grid:
    """Return a discrete measure as weights on the grid: its first index, and the weights."""
    position = atoms / _SPACING
    base = np.floor(position)
    distance = (position - base)[:, None] - _NODES
    exact = distance == 0.0
    factors = _BARYCENTRIC / np.where(exact, 1.0, distance)
    on_node = exact.any(axis=1, keepdims=True)
    factors = np.where(on_node, exact, factors)
    spread = factors * (weights / factors.sum(axis=1))[:, None]
    index = base.astype(np.int64)[:, None] + _NODES
    first = int(index.min())
    size = int(index.max()) - first + 1
    gridded = np.bincount((index - first).ravel(), weights=spread.ravel(), minlength=size)
    return first, np.asarray(gridded, dtype=np.float64)


def _level(rho: float) -> _Term:
    """Return the law of rho (2 eta + 1), eta ~ N_Z(0, 1 / (2 rho))."""
    last = np.floor(1.0 + np.sqrt(REACH / rho))
    eta = np.arange(-last, last + 1.0)
    weight = np.exp(-rho * eta**2)
    return rho * (2.0 * eta + 1.0), weight / weight.sum()


def _smooth_levels(total: float) -> _Term:
    """Return the law N(total, 2 total), to which levels of small rho add up.

    Each differs from its continuous counterpart by less than 1e-17 under an analytic integrand
    (Poisson summation, as in ``marginal_ratio``).  So does the trapezoidal rule taken here: its
    exponent 2 pi**2 / (step deviation) - (pi / deviation)**2 / 2 is at least REACH; where the
    poles are farther off than half a period it is the Gaussian's own, 2 pi**2 / step**2.
    """
    deviation = float(np.sqrt(2.0 * total))
    step = STEP
    if step < 2.0 * deviation:
        poles = 2.0 * np.pi**2 / (deviation * (REACH + 0.5 * (np.pi / deviation) ** 2))
        step = min(step, poles)
    last = np.floor((np.sqrt(2.0 * REACH) + deviation) / step)
    z = step * np.arange(-last, last + 1.0)
    weight = np.exp(-0.5 * z**2)
    return total + deviation * z, weight / weight.sum()


def _evidence(precision: FloatArray) -> _Term:
    """Return values and weights that stand for the law of the evidence with the target there.

    The windows hold what matters without the target too: there the evidence has the law of minus
    these values.
    """
    smooth = precision < SMOOTH
    terms = [_level(float(rho)) for rho in precision[~smooth]]
    if smooth.any():
        terms.append(_smooth_levels(float(precision[smooth].sum())))
    return terms[0] if len(terms) == 1 else _sum([_on_grid(*term) for term in terms])


def _sum(grids: list[_Grid]) -> _Term:
    """Return values and weights of a sum of independent terms on the grid."""
    first, weights = grids[0]
    for start, other in grids[1:]:
        first, weights = first + start, np.convolve(weights, other)
    return _SPACING * np.arange(first, first + weights.size, dtype=np.float64), weights


def _averaged(term: _Term, prior: FloatArray) -> FloatArray:
    """Return the average ratio over a law of the evidence."""
    evidence, weights = term
    with np.errstate(over="ignore", under="ignore"):
        decay = np.exp(-evidence)
        ratios = [(weights / (p + (1.0 - p) * decay)).sum() for p in prior]
    return np.minimum(ratios, 1.0 / prior)


def excess_ratio(rho: float, prior: float, levels: int) -> float:
    """Return the marginal risk ratio of levels of one rho less 1; see ``marginal_excess``."""
    if levels == 1 or levels * rho < SMOOTH:
        return float(marginal_excess(levels * rho, prior))
    values, weights = _evidence(np.full(levels, rho))
    decay, rest = np.exp(-np.abs(values)), np.expm1(-np.abs(values))
    with np.errstate(divide="ignore"):
        without = np.sign(weights) * np.exp(np.log(np.abs(weights)) - np.minimum(values, 0.0))
    below = rest**2 / (prior * decay + (1.0 - prior))
    above = rest**2 / (prior + (1.0 - prior) * decay)
    return float((1.0 - prior) ** 2 * (without @ np.where(values < 0.0, below, above)))


def average_ratio(law: EvidenceLaw, prior: float) -> float:
    """Return the average of the ratio over a law of the evidence, at a cost linear in its lists."""
    grids = []
    for values, weights in ((law.first, law.weights), (law.second, law.masses)):
        low = int(np.floor(values[0] / _SPACING)) + int(_NODES[0])
        high = int(np.floor(values[-1] / _SPACING)) + int(_NODES[-1])
        whole = np.zeros(high - low + 1)
        for index in range(0, values.size, _CHUNK):
            start, part = _on_grid(values[index : index + _CHUNK], weights[index : index + _CHUNK])
            whole[start - low : start - low + part.size] += part
        grids.append((low, whole))
    return float(_averaged(_sum(grids), np.array([prior]))[0])


def multilevel_marginal_posterior(*, noise: Noise | DiscreteGaussian, prior: Number) -> Belief:
    r"""Return the posterior from several levels, averaged over releases given the truth.

    .. math:: E\big[\operatorname{expit}(\operatorname{logit} p
        + \sum_l \rho_l (2\eta_l + 1))\big], \quad \eta_l \sim N_\mathbb{Z}(0, 1 / 2\rho_l)

    The target is known to be the only one in question at every level, or the same count is released
    several times.  Source: Kazan and Reiter (arXiv:2204.04253), supplement S1.3 and Figure 7.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape (..., levels)
        Noise of each level: its zCDP budget, ``Noise(rho=[...])``, or its law.
    prior : array_like, shape (...)
        Probability of the truth, in (0, 1).

    Returns
    -------
    Belief
        Prior and average posterior, in [p, 1], of shape (...).  Relative error of the ratio, the
        average risk, about (5 + 3 sum(rho)) 2**-52 while sum(rho) < 900, none above (it is then
        1 / p).

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> belief = multilevel_marginal_posterior(noise=levels, prior=0.1)
    >>> round(belief.posterior, 6), round(belief.ratio, 6)
    (0.162837, 1.628373)
    """
    p, shape, groups = _by_levels(noise, prior)
    out = np.empty(int(np.prod(shape)))
    for levels, members, priors in groups:
        certain = levels.max() >= _CERTAIN
        out[members] = 1.0 / priors if certain else _averaged(_evidence(levels), priors)
    return Belief(p, np.minimum(out.reshape(shape) * p, 1.0))


def _by_levels(
    noise: Noise | DiscreteGaussian, prior: Number
) -> tuple[FloatArray, tuple[int, ...], list[tuple[FloatArray, IntArray, FloatArray]]]:
    """Return priors, the shape of settings, and for each set of levels its settings and priors."""
    precision = noise_precision(noise)
    p = check.probability(prior, "prior")
    if precision.ndim == 0:
        raise ShapeError("noise must have an axis of levels, got one number")
    shape = check.broadcast(noise=precision[..., 0], prior=p)
    count = precision.shape[-1]
    rows = np.broadcast_to(precision, (*shape, count)).reshape(-1, count)
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(index.ravel(), minlength=len(distinct)))
    priors = np.broadcast_to(p, shape).ravel()
    members = np.split(order, ends[:-1])
    return p, shape, [(r, m, priors[m]) for r, m in zip(distinct, members, strict=True)]


def multilevel_decision_accuracy(
    *, noise: Noise | DiscreteGaussian, prior: Number
) -> DecisionAccuracy:
    r"""Return the rates at which the best guess from several levels is right, and finds.

    The adversary guesses that the target is there where the posterior from all levels is at least
    1/2, that is where the evidence E reaches log((1 - p) / p):

    .. math:: p\, P(E_+ \ge \log\tfrac{1-p}{p}) + (1 - p)\, P(E_- < \log\tfrac{1-p}{p}),
        \quad E_\pm = \sum_l \rho_l (2 \eta_l \pm 1)

    A posterior of exactly 1/2 (at p = 1/2, with levels of equal noise) is decided by a fair coin.
    Source: Kazan and Reiter (arXiv:2204.04253), equations (3.5) and (3.6) and supplement S1.3.

    Parameters
    ----------
    noise, prior
        As for :func:`multilevel_marginal_posterior`; p is the probability that the target is there.

    Returns
    -------
    DecisionAccuracy
        Of shape (...).  Absolute error at most 1e-12: the evidence of each half of the levels is
        listed, at most 2**22 values.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> result = multilevel_decision_accuracy(noise=levels, prior=[1 / 2, 1 / 5])
    >>> result.found.round(5).tolist(), result.accuracy.round(5).tolist()
    ([0.66132, 0.10598], [0.66132, 0.8062])
    """
    p, shape, groups = _by_levels(noise, prior)
    halves = np.empty((2, int(np.prod(shape))))
    for levels, members, priors in groups:
        limits = (np.log1p(-priors) - np.log(priors)).tolist()
        for half, present in zip(halves, (True, False), strict=True):
            law = levels_law(levels, present=present, left_out=_LEFT_OUT)
            half[members] = [law.reached(limit, present=present) for limit in limits]
    detected, cleared = np.minimum(halves, 1.0).reshape(2, *shape)
    return combine(p, detected, cleared)


# -----------------------------------------------------------------------------
# Average risk of the noisy counts of a block and its siblings, released as they are, N known.


def before_postprocessing(
    *,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    sibling_noise: str = "approximate",
) -> Belief:
    r"""Return the belief from the noisy counts (y, S) with N known, averaged given the truth.

    With N known, N - S is a second noisy count of the block, with m times the scale:

    .. math:: P(X = k + 1 \mid y, S) = \operatorname{expit}\big(\operatorname{logit} p
        + \rho\,(2(y - k) - 1) + \tfrac{\rho}{m}\,(2(N - S - k) - 1)\big)

    It depends on neither N nor k, and no release made of (y, S) has a larger average (data
    processing).  Errors as for :func:`multilevel_marginal_posterior`.
    """
    exact = exact_wanted(sibling_noise)
    precision = noise_precision(noise)
    m = check.count_array(n_siblings, "n_siblings", lower=1, upper=MAX_SIBLINGS)
    p = check.probability(prior, "prior")
    shape = check.broadcast(n_siblings=m, noise=precision, prior=p)
    inner = check.broadcast(n_siblings=m, noise=precision)
    levels = np.stack(
        [np.broadcast_to(precision, inner), np.broadcast_to(precision / m, inner)], axis=-1
    )
    # A level below the normal range carries no evidence.
    two_counts = multilevel_marginal_posterior(noise=Noise(rho=np.maximum(levels, 1e-300)), prior=p)
    if not exact:
        return two_counts
    laws = sum_laws(precision, m, exact=True, shape=inner)
    out = np.array(np.broadcast_to(two_counts.ratio, shape)).reshape(-1)
    # The precision of one count, beside that of the sum in ``laws.rates``.
    precisions = np.broadcast_to(precision, shape).ravel()
    priors = np.broadcast_to(p, shape).ravel()
    for i, law in enumerate(np.broadcast_to(laws.number.reshape(inner), shape).ravel().tolist()):
        ripple = laws.ripple(law)
        if ripple.size > 1:  # else the two laws are the same
            out[i] = kernels.two_counts_ratio(precisions[i], laws.rates[law], ripple, priors[i])
    ratio = np.clip(out.reshape(shape), 1.0, 1.0 / p)
    return Belief(p, np.minimum(ratio * p, 1.0))


# -----------------------------------------------------------------------------
# The whole law of the risk ratio over releases, not its average alone.


_DRAWN = 256  # ratios of a curve
GIVEN = ("target", "other", "prior")


def ratio_evidence(ratio: FloatArray, prior: float) -> FloatArray:
    """Return the evidence at which the risk ratio is ``ratio``: infinite from 1 / p on."""
    # log((1 - p) / (1 / r - p)), in r - 1: near 1 the ratio and the prior would cancel.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = prior / (1.0 - prior) * (ratio - 1.0)
        inside = np.log(ratio) - np.log1p(-share)
    return np.where(share < 1.0, inside, np.inf)


def evidence_ratio(evidence: FloatArray, prior: float) -> FloatArray:
    """Return the risk ratio that a given evidence makes."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(1.0 / (prior + (1.0 - prior) * np.exp(-evidence)))


@displayed
@dataclass(frozen=True, eq=False)
class RiskDistribution(Tabular):
    """The law of the risk ratio over the releases that the noise may give, exact.

    Attributes
    ----------
    prior : float
        Probability p that the target is there, before the release.
    given : str
        What the releases were averaged over: ``"target"`` (the target is there), ``"other"`` (it is
        not), ``"prior"`` (either, with the adversary's prior), or the true counts.
    mean : float
        Expectation of the ratio; given the target it is the marginal risk.
    left_out : float
        Bound on the probability of releases left out, hence on the error of every probability here.
    laws, version : tuple of (float, EvidenceLaw), str
        Law of the adversary's evidence, as a mixture; and the version of bayesrisk.
    """

    prior: float
    given: str
    mean: float
    left_out: float
    laws: tuple[tuple[float, EvidenceLaw], ...]
    version: str = __version__

    def _answer(self) -> list[str]:
        low, middle, high = (number(self.quantile(q)) for q in (0.05, 0.5, 0.95))
        return [
            f"Risk ratio over releases ({self.given}): mean {number(self.mean)}, median {middle}, "
            f"90 % between {low} and {high}; at prior {number(self.prior)} never above "
            f"{number(1.0 / self.prior)}.",
            f"Exact up to {number(self.left_out)}.",
        ]

    def _tail(self, ratio: ArrayLike, *, above: bool) -> FloatAnswer:
        limits = check.real_array(ratio, "ratio", lower=0.0)
        evidence = ratio_evidence(limits, self.prior)
        out = np.empty(evidence.shape)
        for i, value in enumerate(evidence.flat):
            parts = (w * law.tail(value, above=above) for w, law in self.laws)
            out.flat[i] = min(sum(parts), 1.0)
        return check.answer(out)

    def exceeds(self, ratio: ArrayLike) -> FloatAnswer:
        """Return the probability of releases whose risk ratio is above ``ratio`` (>= 0).

        Within ``left_out`` and rounding (1e-13 relative).  A ratio whose evidence is within 1e-10
        (1 + its size) of a limit's is equal to it, and does not exceed it.
        """
        return self._tail(ratio, above=True)

    def cdf(self, ratio: ArrayLike) -> FloatAnswer:
        """Return the probability of releases whose risk ratio is at most ``ratio`` (>= 0)."""
        return self._tail(ratio, above=False)

    def quantile(self, probability: ArrayLike) -> FloatAnswer:
        """Return the smallest ratio r with P(ratio <= r) >= ``probability``, which is in (0, 1).

        Within ``left_out`` of 0 or 1 it is the end of what was enumerated.
        """
        levels = check.probability(probability, "probability")
        flat = [self._quantile(float(level)) for level in levels.flat]
        evidence = np.reshape(flat, levels.shape)
        ratio = evidence_ratio(evidence, self.prior)
        for _ in range(3):  # next to 1 / p a rounded ratio may stand for less evidence: not below
            short = ratio_evidence(ratio, self.prior) < evidence
            ratio = np.where(short, np.nextafter(ratio, np.inf), ratio)
        return check.answer(ratio)

    def _quantile(self, level: float) -> float:
        """Return the evidence at a level: bisection, then the value of a release next to it."""
        ends = np.array([law.ends for _, law in self.laws])
        low, high = float(ends[:, 0].min()) - 1.0, float(ends[:, 1].max())
        # Whichever tail is the smaller keeps its digits.
        upper = level > 0.5

        def reached(value: float) -> bool:
            parts = [w * law.tail(value, above=upper) for w, law in self.laws]
            return sum(parts) <= 1.0 - level if upper else sum(parts) >= level

        while high - low > 0.25 * TIE * (1.0 + abs(high)):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if reached(middle) else (middle, high)
        # Ties of ``low`` do not reach the level, those of ``high`` do: one value lies between.
        least = min(law.next_above(low) for _, law in self.laws)
        return min(least, float(ends[:, 1].max()))

    def to_frame(self) -> pd.DataFrame:
        """Return the probability that each of 256 ratios is exceeded, as it is drawn."""
        low, high = np.log(np.asarray(self.quantile([1e-4, 1.0 - 1e-4])))
        ratio = np.exp(np.linspace(low, high, _DRAWN))
        return pd.DataFrame({"risk_ratio": ratio, "exceeds": self.exceeds(ratio)})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how often each ratio is exceeded."""
        from bayesrisk.plotting.counts import plot_risk_distribution

        return plot_risk_distribution(self.to_frame(), mean=self.mean, ax=ax)


def risk_distribution(
    *,
    noise: Noise | DiscreteGaussian,
    prior: float,
    given: str = "target",
    others: Sequence[CountLaw | None] | None = None,
    true_others: ArrayLike | None = None,
    left_out: float = 1e-15,
) -> RiskDistribution:
    r"""Return the law of the risk ratio over releases of one count, or of several levels.

    .. math:: P\Big(\frac{\pi}{p} > r\Big) = P\Big(\sum_l \rho_l (2 \eta_l + s) >
        \log\frac{1 - p}{1/r - p}\Big), \quad \eta_l \sim N_\mathbb{Z}(0, 1 / 2\rho_l)

    with s = 1 where the target is there and s = -1 where not; known counts cancel.  Where the
    numbers :math:`J_l` of other people that a level adds are not all known (``others``),
    :math:`y_l = X + J_0 + \dots + J_l + \eta_l` and the evidence is

    .. math:: \log \frac{\sum_J \prod_l P(J_l)\, P(\eta_l = y_l - 1 - J_0 - \dots - J_l)}
        {\sum_J \prod_l P(J_l)\, P(\eta_l = y_l - J_0 - \dots - J_l)} .

    Source: Kazan and Reiter (arXiv:2204.04253), equation (3.2) and supplement S1.3, for the ratio.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape () or (levels,)
        Noise of the count, or of each level that counts the target, smallest area first: its zCDP
        budget, ``Noise(rho=[...])``, or its law.
    prior : float
        Probability p that the target is there, in (0, 1).
    given : {"target", "other", "prior"}, default "target"
        Releases of a truth with the target (the data holder's view), of one without it, or of
        either with the adversary's own prior.
    others : sequence of CountLaw or None, length levels, optional
        What the adversary believes of the number of other people in the category that each level
        adds to the one below: those of the block, of the rest of its group, of the rest of the
        tract, ...  Independent, with finite support; None where known.  By default all known.
    true_others : array_like of int, shape (levels,), optional
        These numbers in truth, possible under ``others`` and without effect where that is None:
        releases are then of this truth.  By default they follow ``others`` too.
    left_out : float, default 1e-15
        Probability of releases that may be left out, in (0, 1e-3].

    Returns
    -------
    RiskDistribution
        Tail probabilities, quantiles and the mean, of the ratio of posterior to prior that the
        target is there.  Exact but for ``left_out`` and rounding.  At most 2**22 values are listed:
        for half of the levels, or, with ``others``, for all from the first unknown number on.

    Notes
    -----
    The mean is that of :func:`multilevel_marginal_posterior` given the target, 1 under the
    adversary's prior, and summed in the same way given the other; with ``others`` it is summed over
    the releases listed, low by at most ``left_out / p``.  Levels from the first unknown number on
    share what is unknown, so that the product of their ranges (8 standard deviations to either side
    at the default) is listed: two such levels are milliseconds, three a second.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> levels = Noise(rho=[0.0992264, 0.2464845])
    >>> law = risk_distribution(noise=levels, prior=1 / 10)
    >>> print(round(law.exceeds(2), 4), round(law.quantile(0.95), 3))
    0.2975 3.849

    The same where three to five others of the rest of the group are not known:

    >>> from bayesrisk import FiniteLaw
    >>> law = risk_distribution(
    ...     noise=levels, prior=1 / 10, others=[None, FiniteLaw(3, [0.25, 0.5, 0.25])]
    ... )
    >>> print(round(law.exceeds(2), 4), round(law.quantile(0.95), 3))
    0.2602 3.334
    """
    precision = noise_precision(noise)
    if precision.ndim > 1:
        raise ShapeError(f"noise must be one number or a list of levels, got {precision.shape}")
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    check.choice(given, "given", GIVEN)
    cut = check.scalar(left_out, "left_out", lower=0.0, upper=1e-3, bounds="(]")
    levels = np.atleast_1d(precision)
    shares = {"target": [(1.0, True)], "other": [(1.0, False)]}
    parts = shares.get(given, [(p, True), (1.0 - p, False)])
    tables = _level_tables(others, levels.size)
    if others is None and true_others is not None:
        raise ArgumentError("true_others belongs with others, got None for these")
    if all(table is None for table in tables):
        laws = tuple((w, levels_law(levels, present=present, left_out=cut)) for w, present in parts)
        mean = 1.0  # on average over the adversary's prior
        if given == "target":
            noise = DiscreteGaussian(0.5 / levels)
            mean = float(multilevel_marginal_posterior(noise=noise, prior=p).ratio)
        elif given == "other":  # the evidence has the law of minus that with the target
            values, weights = _evidence(np.minimum(levels, _CERTAIN))
            certain = levels.max() >= _CERTAIN
            mean = 0.0 if certain else float(_averaged((-values, weights), np.array([p]))[0])
        return RiskDistribution(p, given, mean, cut, laws)
    truth = _truth(true_others, tables)
    laws = tuple(
        (w, unknown_others_law(levels, tables, present=present, left_out=cut, truth=truth))
        for w, present in parts
    )
    mean = sum(w * average_ratio(law, p) for w, law in laws)
    label = given if truth is None else f"{given}, others {', '.join(map(str, truth.tolist()))}"
    return RiskDistribution(p, label, mean, cut, laws)


def _level_tables(entries: Sequence[CountLaw | None] | None, levels: int) -> list[LogTable | None]:
    """Return the laws of the others that each level adds, None where known."""
    laws = [None] * levels if entries is None else check.items(entries, "others")
    if len(laws) != levels:
        raise ShapeError(
            f"others must have one entry for each of {levels} levels of noise, got {len(laws)}"
        )
    return [None if law is None else log_table(law, "others").trimmed() for law in laws]


def _truth(true_others: ArrayLike | None, tables: Sequence[LogTable | None]) -> IntArray | None:
    """Return the true numbers of others that levels add, 0 where they are known."""
    if true_others is None:
        return None
    truth = check.count_array(true_others, "true_others", lower=0)
    if truth.shape != (len(tables),):
        raise ShapeError(
            f"true_others must have one number for each of {len(tables)} levels, got shape "
            f"{truth.shape}"
        )
    for level, (number_, table) in enumerate(zip(truth.tolist(), tables, strict=True)):
        if table is not None and not np.isfinite(table.log_probability(number_)):
            raise ArgumentError(
                f"true_others must be possible under others, got {number_} at level {level}"
            )
    return np.where([table is None for table in tables], 0, truth)


# -----------------------------------------------------------------------------
# The budget that keeps a limit on the risk.  Neither measure is monotone in rho everywhere: the
# largest rho below which *every* rho keeps the limit is returned, not a root.


MEASURES = ("average", "quantile")
#: The measure at the rho returned is at least the limit times one less this.
TOLERANCE = 1e-11
_NOISE = np.arange(1.0, 25.0)  # exp(-SMOOTH * 24**2) is 1e-45
_MAX_STEPS = 10**5
_MAX_COUNT = 2**24
_STEP = 2**12
# Up to this rho a sum of draws is a discrete Gaussian again, as in ``distributions.convolve``.
_CLOSED = 0.125


def _slopes(rho: float) -> tuple[float, float]:
    """Return bounds on how fast the ratio r grows from rho on, and how fast 1 / p - r falls.

    With V the variance of the noise, d log r / d rho <= V + 2: the law of the noise changes by
    V - eta**2 of itself and the summand by at most max(2 eta + 1, 0), which is eta**2 + 2 or less.
    In the same way -d log(1 / p - r) / d rho <= sum over i >= 0 of (1 + i)**2 exp(-rho i**2),
    because the summand falls at least that fast to either side.  Both bounds fall with rho.
    """
    weight = np.exp(-rho * _NOISE**2)
    variance = float(2.0 * (_NOISE**2 @ weight) / (1.0 + 2.0 * weight.sum()))
    return variance + 2.0, float(1.0 + (1.0 + _NOISE) ** 2 @ weight)


def _average_limit(limit: float, prior: float, levels: int) -> float:
    """Return the rho of each level up to which the average keeps the limit.

    Up to ``SMOOTH`` the average is that of Gaussian noise within 1e-17 (``marginal_ratio``), and
    there less noise is more information: it rises, and a root finder will do.  Beyond, steps so
    short that no bound on the slope lets the limit be passed within one.  All in terms of what the
    average and the limit exceed 1 by, which may be little.  That excess is (1 - p)**2 times a sum
    in which p and 1 - p may be exchanged (``marginal_excess``), so that a small prior will do.
    """
    more = limit - 1.0
    if prior > 0.5:
        more, prior = more * (prior / (1.0 - prior)) ** 2, 1.0 - prior
    most = (1.0 - prior) / prior
    if excess_ratio(SMOOTH, prior, levels) >= more:
        low = 0.5 * np.log1p(more) / levels  # the average is below exp(2 rho) for every prior

        def log_gap(log_rho: float) -> float:
            excess = excess_ratio(float(np.exp(log_rho)), prior, levels)
            return float(np.log(excess / more)) + 0.5 * TOLERANCE

        return float(np.exp(brentq(log_gap, np.log(0.99 * low), np.log(SMOOTH), xtol=1e-13)))
    rho = SMOOTH
    for _ in range(_MAX_STEPS):
        excess = excess_ratio(rho, prior, levels)
        if np.log(more / excess) <= TOLERANCE:
            return rho
        rise, fall = _slopes(rho)
        gap = np.log1p((more - excess) / (1.0 + excess))
        left = np.log1p((more - excess) / (most - more)) if more < most else 0.0
        rho += max(gap / rise, left / fall) / levels
    raise ArgumentError(
        f"limit must be further from a maximum of the average risk, got {limit}: not settled "
        f"within {_MAX_STEPS} steps, up to rho = {rho:g}"
    )


def _sum_tails(rho: FloatArray, first: FloatArray, levels: int) -> FloatArray:
    """Return P(S >= first) for the sum S of a number of draws of each rho."""
    law = DiscreteGaussian(0.5 * levels / rho)
    tails = np.atleast_1d(np.asarray(law.sf(first - 1.0)))
    if levels > 1:
        for i in np.flatnonzero(rho > _CLOSED):
            reach = int(np.sqrt(41.0 / rho[i])) + 1
            one = np.exp(-rho[i] * np.arange(-reach, reach + 1.0) ** 2)
            one, pmf = one / one.sum(), np.ones(1)
            for _ in range(levels):
                pmf = np.convolve(pmf, one)
            start = int(first[i]) + levels * reach
            tails[i] = pmf[max(start, 0) :].sum()
    return tails


def _quantile_limit(limit: float, prior: float, levels: int, probability: float) -> float:
    """Return the rho of each level up to which the quantile keeps the limit.

    Where the quantile of the noise S is j, the ratio keeps the limit up to rho_j = E / (2 j + m),
    E its evidence and m the levels.  As rho grows, j falls; the quantile at rho_j is still j or
    more exactly where P(S >= j) > 1 - probability.  So the answer is rho_j for the largest such j.
    By P(S >= j) <= exp(-rho j**2 / m) none is beyond the j that is started from.
    """
    evidence = float(ratio_evidence(np.array(limit), prior))
    rare = -np.log1p(-probability)
    top = levels * (rare + np.sqrt(rare**2 + evidence * rare)) / evidence
    if not top < _MAX_COUNT:
        raise ArgumentError(
            f"limit must be further above 1 for a quantile (noise of at most {_MAX_COUNT} is "
            f"searched), got {limit}"
        )
    last = int(top) + 1
    while last >= 0:
        j = np.arange(last, max(last - _STEP, -1), -1.0)
        rho = evidence / (2.0 * j + levels)
        exceeding = _sum_tails(rho, j, levels) > 1.0 - probability
        if exceeding.any():
            return float(rho[exceeding.argmax()])
        last -= _STEP
    return evidence / levels


def rho_for_risk(
    limit: float,
    *,
    prior: Number,
    measure: str = "average",
    probability: float | None = None,
    sensitivity: Number = 1.0,
    levels: int = 1,
) -> float:
    r"""Return the largest budget such that it, and every smaller one, keeps a limit on the risk.

    .. math:: \sup\{\rho : R(\rho') \le \text{limit for all } \rho' \le \rho\}

    with R the :func:`marginal_risk`, or a quantile of the risk ratio over releases, given that the
    target is there.  Source: Kazan and Reiter (arXiv:2204.04253), equations (3.2) and (3.4), for
    the risks.

    Parameters
    ----------
    limit : float
        Largest risk ratio that is accepted, above 1 and below 1 / p (no release reaches 1 / p).
    prior : float
        Probability p that the target is there, in (0, 1).
    measure : {"average", "quantile"}, default "average"
        The average over releases, or the ratio that they exceed with probability at most
        ``1 - probability``.
    probability : float, optional
        Level of the quantile, in [0.5, 1); with ``"quantile"`` only, and then required.
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to: 1 where a neighbour has one record more or less (the
        paper's noise), sqrt(2) where one record is changed (that of the 2020 census).  The noise
        found is the same, sigma2 = sensitivity**2 / (2 rho); what it costs is not.
    levels : int, default 1
        Number of releases of that budget each that count the target, in [1, 100].

    Returns
    -------
    float
        rho of each release, > 0.  Its average risk exceeds 1 by at most ``limit - 1`` (1 + 1e-12)
        and, unless the average has a maximum just below the limit, by at least 1 - 2e-11 of that;
        its quantile is ``limit`` within 1e-12, and any larger rho next to it exceeds it.  Refused
        where ``limit`` is so near 1 that a quantile needs noise of 2**24 and more, or so near a
        maximum of the average that it cannot be told from it.

    Notes
    -----
    The known count plays no part.  The average rises with rho up to rho / sensitivity**2 = 0.18 at
    every prior, but not beyond for small ones (at p = 1e-6 it falls from rho = 4.9 to 6.9, by
    63 %), and a quantile rises and falls like a saw: larger budgets may keep the limit again.

    Examples
    --------
    >>> from bayesrisk import marginal_risk
    >>> rho = rho_for_risk(1.5, prior=1 / 10)
    >>> print(round(rho, 6), round(marginal_risk(rho=rho, prior=1 / 10), 9))
    0.279491 1.5
    >>> print(round(rho_for_risk(1.5, prior=1 / 10, sensitivity=2**0.5), 6))
    0.558982
    >>> print(round(rho_for_risk(3, prior=1 / 10, measure="quantile", probability=0.99), 6))
    0.122721
    """
    check.choice(measure, "measure", MEASURES)
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    bound = check.scalar(limit, "limit", lower=1.0, bounds="()")
    delta = check.scalar(sensitivity, "sensitivity", lower=1e-100, upper=1e100)
    m = check.integer(levels, "levels", lower=1, upper=100)
    if not bound < 1.0 / p:
        raise ArgumentError(
            f"limit must be below 1 / prior = {1.0 / p:g}, which no release reaches: every rho "
            f"keeps it, got {bound:g}"
        )
    if measure == "average":
        if probability is not None:
            raise ArgumentError("probability", "belongs with 'quantile'", got=probability)
        return _average_limit(bound, p, m) * delta**2
    if probability is None:
        raise ArgumentError("measure='quantile' needs a probability, got None")
    level = check.scalar(probability, "probability", lower=0.5, upper=1.0, bounds="[)")
    return _quantile_limit(bound, p, m, level) * delta**2
