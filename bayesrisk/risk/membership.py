"""Trade-off curves of the best tests of whether a record is in the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import ULP, FloatAnswer, FloatArray
from bayesrisk.accounting.privacy_loss import PrivacyLoss
from bayesrisk.distributions import CountLaw, DiscreteGaussian, Noise
from bayesrisk.distributions.base import single_law
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.simulated import SimulatedLikelihood
from bayesrisk.risk.intervals import binomial_interval

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes

_MOST_CHANGE = 10**4


@displayed
@dataclass(frozen=True, eq=False)
class TradeOffCurve(Tabular):
    r"""True against false positive rates of tests of whether the target's record is in the data.

    Straight lines join the points: between two of them a test decides by chance at one value of the
    release (a randomised test at an atom). As a trade-off function of f-DP the curve is
    :math:`T(\alpha) = 1 -` true positive rate.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : ndarray, shape (points,)
        From (0, 0) to (1, 1), both nondecreasing.
    advantage : float
        Largest difference of the two rates. In closed form it is that of the best test, the
        total-variation distance. If estimated, it is that of one test chosen on other draws.
    advantage_lower, advantage_upper, confidence : float
        Interval of that difference, and its confidence; the latter is 1 in closed form.
    error : float
        In closed form, a bound on the numerical error of rates and advantage; if estimated, the
        standard error of the advantage.
    method, draws : str, int
        ``"exact"`` or ``"simulated"``, and the releases under each hypothesis for estimating the
        rates; 0 in closed form.
    """

    false_positive_rate: FloatArray
    true_positive_rate: FloatArray
    advantage: float
    advantage_lower: float
    advantage_upper: float
    error: float
    method: str
    draws: int = 0
    confidence: float = 1.0

    def _answer(self) -> list[str]:
        sure = (
            f"numerical error below {number(self.error)}"
            if self.method == "exact"
            else f"{self.confidence:.0%} interval {number(self.advantage_lower)} to "
            f"{number(self.advantage_upper)}, from {self.draws:,} releases under each hypothesis"
        )
        return [
            f"Advantage {number(self.advantage)} ({sure}): the largest difference between the "
            "rates of true and of false positives.",
            *(
                f"With {alpha:.0%} false positives a record that is there is found with "
                f"probability {number(self.power(alpha))}."
                for alpha in (0.01, 0.05)
            ),
        ]

    def power(self, false_positive_rate: ArrayLike) -> FloatAnswer:
        """Return the best test's true positive rate at given false positive rates in [0, 1].

        At 0 it is the true positive rate without any false positive.
        """
        rate = check.real_array(false_positive_rate, "false_positive_rate", lower=0.0, upper=1.0)
        # Where several points have one false positive rate the last, the highest, counts.
        last = np.flatnonzero(np.diff(self.false_positive_rate, append=np.inf) > 0)
        points = self.false_positive_rate[last], self.true_positive_rate[last]
        return check.answer(np.interp(rate, *points))

    def delta(self, epsilon: ArrayLike) -> FloatAnswer:
        r"""Return the least delta at which the release is (epsilon, delta)-indistinguishable.

        .. math:: \delta(\epsilon) = \max_\alpha\; \mathrm{TPR}(\alpha) - e^\epsilon \alpha

        It takes epsilon in [0, 700] and this order of the data sets (present against absent). Its
        error is at most ``(1 + exp(epsilon)) * error`` in closed form.
        """
        loss = check.real_array(epsilon, "epsilon", lower=0.0, upper=700.0)
        gap = self.true_positive_rate - np.exp(loss)[..., None] * self.false_positive_rate
        return check.answer(np.maximum(gap.max(axis=-1), 0.0))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point."""
        columns: dict[str, FloatArray] = {}
        for name in ("false_positive_rate", "true_positive_rate"):
            rate = getattr(self, name)
            low, high = rate - self.error, rate + self.error
            if self.draws:
                hits = np.rint(rate * self.draws)
                low, high = binomial_interval(hits, self.draws, confidence=self.confidence)
            columns |= {name: rate, f"{name}_lower": low, f"{name}_upper": high}
        return pd.DataFrame(columns).clip(0.0, 1.0)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve."""
        from bayesrisk.plotting.audit import plot_tradeoff  # slow to import

        return plot_tradeoff({self.method: self.to_frame()}, ax=ax)


def tradeoff_curve(
    noise: Noise | CountLaw | Sequence[Noise | CountLaw], *, changes: ArrayLike = 1
) -> TradeOffCurve:
    r"""Return the exact trade-off curve of counts with independent noise.

    Either the target's record is absent, or it is present and moves the cells by ``changes``; all
    other records are known. By Neyman and Pearson's lemma, the best tests reject if the ratio of
    the two probabilities of the release is large. Source: Wasserman and Zhou (2010,
    arXiv:0811.2501) for the tests; Dong, Roth and Su (2022, arXiv:1905.02383) for f-DP, its
    trade-off functions and their duality with (epsilon, delta).

    The error is bounded by rounding and by the mass cut off, below 1e-59 for each cell. If the
    cells together have too many values to list, the curve has 401 points with bounded error: see
    :class:`~bayesrisk.accounting.PrivacyLoss`.

    Parameters
    ----------
    noise : Noise, CountLaw, or a sequence of them
        Law of the noise of every cell: one for all cells, or one for each.
    changes : int or array_like of int, default 1
        How the record moves each observed cell, in [-10,000, 10,000]: 1 for a record that is added,
        ``[1, -1]`` for one that changes its cell.

    Examples
    --------
    >>> curve = tradeoff_curve(Noise(rho=0.0992264))
    >>> round(curve.advantage, 5)
    0.17772
    >>> float(np.round(curve.power(0.05), 5))
    0.11479
    """
    moved = np.atleast_1d(
        check.count_array(changes, "changes", lower=-_MOST_CHANGE, upper=_MOST_CHANGE)
    )
    if moved.ndim != 1:
        raise ShapeError("changes", "must have one axis", shown=f"shape {moved.shape}")
    noises = noise if isinstance(noise, Sequence) else [noise] * moved.size
    laws = [single_law(n.law() if isinstance(n, Noise) else n, "noise") for n in noises]
    if len(laws) != moved.size:
        raise ShapeError("noise", f"must be one or {moved.size} laws", shown=len(laws))
    law = PrivacyLoss.of(list(zip(laws, moved.tolist(), strict=True)))
    false, true, error = law.curve()
    ends = law.advantage
    lower, upper = float(ends.lower), float(ends.upper)
    return TradeOffCurve(
        false,
        true,
        advantage=float(np.clip((true - false).max(), lower, upper)),
        advantage_lower=lower,
        advantage_upper=upper,
        error=error,
        method="exact",
    )


def simulated_tradeoff(
    likelihood: SimulatedLikelihood, *, absent: int = 0, present: int = 1, confidence: float = 0.95
) -> TradeOffCurve:
    """Return the trade-off curve of a protection, from simulated releases.

    The first half of the draws ranks values of the release by their estimated likelihood ratio. The
    other half estimates the rates of the tests that follow this ranking. So every point is that of
    a real test, and on average none is above the best test's.

    Parameters
    ----------
    likelihood : SimulatedLikelihood
        Draws under each hypothesis; ``mechanism_risk(...).likelihood`` is one.
    absent, present : int, default 0 and 1
        The hypotheses to compare; saying "present" when the first is true is a false positive.
    confidence : float, default 0.95
        Confidence of the interval of the advantage, in (0, 1).

    Returns
    -------
    TradeOffCurve
        ``advantage`` is estimated on the second half, at the threshold that was best on the first.
        It estimates what one test reaches; with its interval, it is a lower bound for the best
        test. The interval combines Clopper-Pearson intervals of both rates at
        ``(1 + confidence) / 2``.

    Examples
    --------
    >>> from bayesrisk.inference import simulated_likelihood
    >>> law = DiscreteGaussian.from_rho(0.0992264)
    >>> likelihood = simulated_likelihood(
    ...     lambda h, rng, size: h + law.rvs(size, random_state=rng),
    ...     hypotheses=2, draws=40_000, batch=40_000, rng=7,
    ... )
    >>> curve = simulated_tradeoff(likelihood)
    >>> curve.advantage_lower < 0.17772 < curve.advantage_upper
    True
    """
    check.instance(likelihood, SimulatedLikelihood, "likelihood")
    most = len(likelihood.codes) - 1
    pair = [
        check.integer(h, name, lower=0, upper=most)
        for name, h in (("absent", absent), ("present", present))
    ]
    if pair[0] == pair[1]:
        raise ArgumentError(f"absent and present must differ, got {absent} twice")
    sure = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    check.integer(likelihood.draws, "draws", lower=4)
    half, size = likelihood.draws // 2, len(likelihood.values)
    ranked, judged = likelihood.codes[pair, :half], likelihood.codes[pair, half:]
    counts = np.stack([np.bincount(row, minlength=size) for row in ranked]) + likelihood.smoothing
    ratio = counts[1] / counts[0]
    order = np.argsort(-ratio, kind="stable")
    ends = np.flatnonzero(np.diff(ratio[order], append=-np.inf) < 0)  # ties are one step
    draws = judged.shape[1]
    rates = []
    for row in judged:
        hits = np.cumsum(np.bincount(row, minlength=size)[order])[ends]
        rates.append(np.concatenate([[0.0], hits / draws]))
    gain = np.cumsum(np.bincount(ranked[1], minlength=size)[order])
    loss = np.cumsum(np.bincount(ranked[0], minlength=size)[order])
    best = int(np.argmax(np.concatenate([[0], (gain - loss)[ends]])))
    false, true = (float(rate[best]) for rate in rates)
    intervals = binomial_interval(
        np.rint([false * draws, true * draws]), draws, confidence=(1.0 + sure) / 2.0
    )
    return TradeOffCurve(
        rates[0],
        rates[1],
        advantage=true - false,
        advantage_lower=float(intervals[0][1] - intervals[1][0]),
        advantage_upper=float(intervals[1][1] - intervals[0][0]),
        error=math.sqrt((true * (1.0 - true) + false * (1.0 - false)) / draws),
        method="simulated",
        draws=draws,
        confidence=sure,
    )


def rho_for_advantage(advantage: float, *, change: int = 1, sensitivity: float = 1.0) -> float:
    r"""Return the largest rho at which no test of membership has more than a given advantage.

    The noise is discrete Gaussian, and a record moves one count by D. The best test says "present"
    from the middle on, so its advantage is the mass of the D central values,

    .. math:: \sum_{y = \lceil D/2 \rceil - D}^{\lceil D/2 \rceil - 1} f(y),

    which for D = 1 is the probability of zero noise, and grows with rho.

    rho is rounded down. Its advantage does not exceed the given one, and is less than 1e-11 of it
    below the exact value.

    Parameters
    ----------
    advantage : float
        Largest difference of true and false positive rates, in [1e-6, 1 - 1e-12].
    change : int, default 1
        How far the record moves the count, in [1, 10,000].
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to, in (0, 1e100]: ``sigma2 = sensitivity**2 / (2 rho)``.

    Examples
    --------
    >>> round(rho_for_advantage(0.1), 6)
    0.031416
    >>> round(tradeoff_curve(Noise(rho=rho_for_advantage(0.1))).advantage, 6)
    0.1
    """
    from scipy.optimize import brentq  # slow to import

    wanted = check.scalar(advantage, "advantage", lower=1e-6, upper=1.0 - 1e-12)
    moved = check.integer(change, "change", lower=1, upper=_MOST_CHANGE)
    scale = check.scalar(
        check.by_neighbour(sensitivity), "sensitivity", lower=0.0, upper=1e100, bounds="(]"
    )
    middle = -(-moved // 2)
    values = np.arange(middle - moved, middle)

    def excess(log_rho: float) -> float:
        mass = np.asarray(DiscreteGaussian.from_rho(math.exp(log_rho)).pmf(values))
        return math.fsum(mass) - wanted

    low, high = math.log(1e-14 / moved**2), math.log(40.0)
    root = float(brentq(excess, low, high, xtol=1e-14, rtol=4 * ULP))
    step = 1e-13
    while excess(root) > 0.0:  # a root is one to its own rounding only
        root -= step
        step *= 2.0
    return math.exp(root) * scale**2
