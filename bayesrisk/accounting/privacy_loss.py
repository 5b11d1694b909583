r"""The distribution of the privacy loss of a whole release, and its consequences.

The loss is :math:`L = \log P(\mathrm{release} \mid \mathrm{present}) - \log P(\mathrm{release} \mid
\mathrm{absent})`, with the record present. Losses of counts with independent noise add up. Epsilon,
delta, tests of membership and beliefs are sums over its law. An adversary who knows all other
records has logit(posterior) = logit(prior) + L. Every number has two ends that enclose it.

Source: Dwork and Rothblum (2016, arXiv:1603.01887); Sommer, Meiser and Mohammadi (2019).

    >>> from bayesrisk.accounting import PrivacyLoss
    >>> print(round(float(PrivacyLoss.of("pl94").epsilon(1e-10)), 4))
    16.4652
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import ULP, FloatAnswer, FloatArray
from bayesrisk.accounting.budget import census_2020_budget
from bayesrisk.accounting.conversion import rho_to_epsilon
from bayesrisk.accounting.loss_parts import LossPart
from bayesrisk.accounting.loss_sums import (
    LossLine,
    LossList,
    Pair,
    endless_mass,
    log_moment,
    logistic,
)
from bayesrisk.distributions import CountLaw, DiscreteGaussian, DiscreteLaplace, Noise
from bayesrisk.distributions.base import single_law
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, quote

_MOST_CHANGE = 10**4
_WIDTH = 1e-6  # of delta, as a share, with which a line that is there is taken
_MOST_LINES = 8
_ROUGH = 1e-3  # further loss of lines that only look for the place
_GAP = 1e-4  # distance of two losses between which a slope is taken


@dataclass(frozen=True, eq=False)
class Ends(Tabular):
    """A number that certainly lies between two ends, or an array of such numbers.

    Attributes
    ----------
    lower, upper : float or ndarray
        The two ends, which hold in floating-point arithmetic, too.

    Examples
    --------
    >>> bool(PrivacyLoss.of(Noise(rho=0.5)).delta(1.0).width < 1e-12)
    True
    """

    lower: FloatAnswer
    upper: FloatAnswer

    @property
    def value(self) -> FloatAnswer:
        """Middle of the two ends."""
        return self.lower + 0.5 * (self.upper - self.lower)

    @property
    def width(self) -> FloatAnswer:
        """Distance between the two ends."""
        return self.upper - self.lower

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each number."""
        return pd.DataFrame({"lower": np.ravel(self.lower), "upper": np.ravel(self.upper)})

    def __float__(self) -> float:
        """Return the middle of one number."""
        return float(self.value)


@displayed
@dataclass(frozen=True, eq=False)
class PrivacyLoss(Tabular):
    """Distribution of the privacy loss of a release, over all noisy counts that one record moves.

    It is made by :meth:`of`.

    Attributes
    ----------
    parts : tuple of LossPart
        Law of the noise, change, and number of equal counts.

    Examples
    --------
    >>> law = PrivacyLoss.of("pl94")
    >>> print(round(float(law.epsilon(1e-10)), 4), round(float(law.posterior(0.1).mean), 4))
    16.4652 0.5502
    """

    parts: tuple[LossPart, ...]

    @classmethod
    def of(cls, source: object, *, sensitivity: str | None = None) -> PrivacyLoss:
        """Return the law of a release, a mechanism, a budget, or of single counts.

        Parameters
        ----------
        source : Release, MechanismSpec, mechanism, DataFrame, str, Noise, CountLaw or sequence
            A release or mechanism whose tables have independent noise. Or a frame with the column
            ``sigma2``, as :func:`census_2020_budget` returns, or its name (``"pl94"``, ``"dhc"``).
            Or the law of one count. Or several counts ``[law, (law, -1), ...]``: each a law with
            its change, by default 1.
        sensitivity : {"add-remove", "change-one"}, optional
            Whether the record is added or removed, or changes. In the latter case it moves two
            counts of each table, or twice the mechanism's ``overlap``. By default it is what the
            mechanism states, and ``"change-one"`` for a budget. A list of places that depends on
            the records is taken as known.
        """
        if sensitivity is not None:
            check.choice(sensitivity, "sensitivity", tuple(check.MOVED))
        if isinstance(source, str):
            source = census_2020_budget(source)
        spec = getattr(source, "spec", source)
        counts: list[tuple[CountLaw, int, int]]
        if isinstance(source, pd.DataFrame):
            if "sigma2" not in source:
                raise ArgumentError("source", "must have a column 'sigma2'", shown=list(source))
            moved = check.MOVED[sensitivity or "change-one"]
            scales = check.real_array(source["sigma2"], "sigma2", lower=0.0, bounds="(]")
            counts = [(DiscreteGaussian(v), 1, moved) for v in scales.ravel().tolist()]
        elif hasattr(spec, "noise") and hasattr(spec, "parameters"):
            counts = _counts_of_spec(spec, sensitivity)
        elif isinstance(source, (Noise, CountLaw)):
            counts = _counts_of_laws([source])
        elif isinstance(source, Sequence):
            counts = _counts_of_laws(source)
        else:
            raise ArgumentTypeError(
                "source must be a release, a mechanism, a frame with sigma2, the name of a budget, "
                f"a law of noise or a sequence of these, got {quote(source)}"
            )
        if not counts:
            raise ArgumentError("source", "must have counts with independent noise", shown="none")
        return cls(_grouped(counts))

    @property
    def rho(self) -> float:
        """Budget rho of zCDP if all noise is discrete Gaussian, else NaN."""
        parts = self.parts
        if not all(isinstance(part.law, DiscreteGaussian) for part in parts):
            return math.nan
        return math.fsum(p.times * p.change**2 / (2.0 * float(p.law.sigma2)) for p in parts)  # type: ignore[attr-defined]

    @property
    def reversed(self) -> PrivacyLoss:
        """The privacy loss with the two data sets exchanged; the same for symmetric noise."""
        return PrivacyLoss(tuple(replace(part, change=-part.change) for part in self.parts))

    @cached_property
    def _list(self) -> LossList | None:
        return LossList.listed(self.parts)

    @cached_property
    def _backward(self) -> PrivacyLoss:
        return self.reversed

    @cached_property
    def _lines(self) -> list[LossLine]:
        return []

    def _delta(self, epsilon: float) -> Pair:
        if self._list is not None:
            return self._list.delta(epsilon)
        if epsilon < 0.0:
            # (1 - r)+ = 1 - r + (r - 1)+, with r = exp(epsilon - L), in the other order
            odds, other = math.exp(epsilon), self._backward._delta(-epsilon)
            return Pair(*(1.0 - odds * (1.0 - end) for end in other)).with_endless(0.0, 4.0 * ULP)
        best = Pair(0.0, 1.0)
        for k in range(len(self._lines) + 1):
            if k == len(self._lines):  # none of them is good here
                self._lines.insert(0, LossLine(self.parts, epsilon))
                del self._lines[_MOST_LINES:]
                k = 0
            pair = self._lines[k].delta(epsilon)
            best = Pair(max(best.lower, pair.lower), min(best.upper, pair.upper))
            if best.upper - best.lower <= _WIDTH * best.upper:
                break
        return best

    def delta(self, epsilon: ArrayLike) -> Ends:
        r"""Return the least delta at which the release is (epsilon, delta)-indistinguishable.

        .. math:: \delta(\epsilon) = E(1 - e^{\epsilon - L})_+

        It holds for this order of the two data sets; for asymmetric noise see :attr:`reversed`.

        Parameters
        ----------
        epsilon : array_like
            Epsilon in nats, in [-1000, 10,000].
        """
        points = check.real_array(epsilon, "epsilon", lower=-1e3, upper=1e4)
        return _ends([self._delta(float(e)) for e in points.ravel()], points.shape)

    def epsilon(self, delta: ArrayLike) -> Ends:
        """Return the least epsilon >= 0 that keeps delta; infinite if there is none.

        Parameters
        ----------
        delta : array_like
            Delta, in [1e-300, 1).
        """
        points = check.real_array(delta, "delta", lower=1e-300, upper=1.0, bounds="[)")
        return _ends([self._epsilon(float(d)) for d in points.ravel()], points.shape)

    def _epsilon(self, delta: float) -> Pair:
        if self._list is not None:
            return self._list.epsilon(delta)
        top = self._ceiling(delta)
        if not math.isfinite(top):
            return Pair(math.inf, math.inf)
        low, high = self._near(delta, top)
        upper = _crossing(lambda e: self._delta(e).upper, delta, low, high)
        lower = _crossing(lambda e: self._delta(e).lower, delta, low, high)
        # A root is one to its own rounding: walk to where the inequality holds.
        step = 4.0 * ULP * max(1.0, upper)
        while upper < top and self._delta(upper).upper > delta:
            upper, step = min(upper + step, top), 2.0 * step
        step = 4.0 * ULP * max(1.0, lower)
        while lower > 0.0 and self._delta(lower).lower < delta:
            lower, step = max(lower - step, 0.0), 2.0 * step
        return Pair(lower, upper)

    def _near(self, delta: float, top: float) -> tuple[float, float]:
        """Return two values that enclose epsilon, found by three rough inversions."""
        near = top
        for _ in range(3):
            line = LossLine(self.parts, near, _ROUGH)
            near = _crossing(partial(_upper, line), delta, 0.0, top)
        return max(near - 1e-3, 0.0), min(near + 1e-3, top)

    def _ceiling(self, delta: float) -> float:
        """Return an epsilon that certainly keeps delta, or infinity where none does."""
        endless, lost = endless_mass(self.parts)
        left = delta - (endless + lost) * (1.0 + 1e-12)
        return max(self._reach(left), 0.0) if left > 0.0 else math.inf

    def _reach(self, mass: float, side: float = 1.0) -> float:
        """Return a loss beyond which finite losses have probability at most ``mass``.

        By Chernoff's inequality, P(L >= x) <= E exp(t (L - x)), which bounds delta, too.
        """
        bounds = [
            (log_moment(self.parts, side * t) + 1e-9 - math.log(mass)) / t
            for t in np.geomspace(0.01, 1e3, 50).tolist()
        ]
        return side * float(min(bounds))

    @property
    def advantage(self) -> Ends:
        """Largest difference of true and false positive rates of a test: the total variation."""
        return self.delta(0.0)

    def power(self, false_positive_rate: ArrayLike) -> Ends:
        r"""Return the true positive rate of the best test with a false positive rate in [0, 1].

        .. math:: \min_\epsilon\; e^\epsilon \alpha + \delta(\epsilon)

        Source: Neyman and Pearson; Dong, Roth and Su (2022, arXiv:1905.02383) for the duality.
        """
        rates = check.real_array(false_positive_rate, "false_positive_rate", lower=0.0, upper=1.0)
        if self._list is None:
            return _ends([self._power(rate) for rate in rates.ravel().tolist()], rates.shape)
        false, true, error = self.curve()
        last = np.flatnonzero(np.diff(false, append=np.inf) > 0.0)  # of equal rates the best
        low, high = (
            np.interp(rates + side * error, false[last], true[last]) + side * error
            for side in (-1.0, 1.0)
        )
        return Ends(check.answer(np.maximum(low, rates)), check.answer(np.minimum(high, 1.0)))

    def curve(self) -> tuple[FloatArray, FloatArray, float]:
        """Return false and true positive rates of the best tests, from 0 to 1, and their error.

        The tests reject if the loss exceeds a limit. The limits are its values, or 401 limits if
        the values are too many to list.
        """
        if self._list is not None:
            loss, mass = self._list.loss[::-1], self._list.mass[::-1]
            true = self._list.endless + np.concatenate([[0.0], np.cumsum(mass)])
            with np.errstate(divide="ignore"):
                false = np.concatenate([[0.0], np.cumsum(np.exp(np.log(mass) - loss))])
            error = 2.0 * self._list.lost + self._list.share + self._list.shift
        else:
            top = max(self._reach(1e-12), 0.0)
            limits = np.linspace(top, -top, 401)
            tails = [(self._tail(x), self._backward._tail(-x)) for x in limits.tolist()]
            true = np.array([0.5 * (p.lower + p.upper) for p, _ in tails])
            false = np.array([1.0 - 0.5 * (q.lower + q.upper) for _, q in tails])
            error = max(max(p.upper - p.lower, q.upper - q.lower) for p, q in tails)
        ends = [np.concatenate([[0.0], np.clip(rate, 0.0, 1.0), [1.0]]) for rate in (false, true)]
        return ends[0], ends[1], error

    def _power(self, rate: float) -> Pair:
        """Return the ends of the best test's power, the minimum of rate * x + delta over x."""
        from scipy.optimize import minimize_scalar  # slow to import

        if rate in (0.0, 1.0):
            endless, lost = endless_mass(self.parts)
            return Pair(max(endless - lost, 0.0), endless + lost) if rate == 0.0 else Pair(1.0, 1.0)
        top = max(self._reach(1e-3 * min(rate, 1.0 - rate)), 0.0) + 1.0
        best = minimize_scalar(
            lambda e: math.exp(e) * rate + self._delta(e).upper,
            bounds=(-top, top),
            method="bounded",
            options={"xatol": 1e-6},
        )
        points = float(best.x) + _GAP * np.arange(-2, 3)
        ends = _least(rate, np.exp(points), [self._delta(e) for e in points.tolist()])
        return ends if ends.lower > rate else Pair(self._reached(rate), ends.upper)

    def _reached(self, rate: float) -> float:
        """Return the power of a threshold test whose false positive rate is at most ``rate``."""
        low, high = self._reach(1e-6 * rate, -1.0) - 1.0, self._reach(rate) + 1.0
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            # Q(L > x) = (P(L > x) - delta(x)) exp(-x)
            false = (self._tail(middle).upper - self._delta(middle).lower) * math.exp(-middle)
            low, high = (low, middle) if false <= rate else (middle, high)
        return self._tail(high).lower

    def posterior(self, prior: ArrayLike) -> BeliefLaw:
        """Return the distribution of the posterior of an adversary who knows all other records.

        The record is present, and logit(posterior) = logit(prior) + L.

        Parameters
        ----------
        prior : array_like
            Prior probability that the record is present, in (0, 1).
        """
        chance = check.real_array(prior, "prior", lower=0.0, upper=1.0, bounds="()")
        return BeliefLaw(self, chance)

    def _tail(self, loss: float) -> Pair:
        """Return the ends of P(L > loss).

        Let Q be the law without the record. Then P(L > e) = delta(e) + exp(e) Q(L > e). As a
        function of exp(e), delta is convex with slope -Q(L > e).
        """
        if self._list is not None:
            return self._list.tail(loss)
        centre, right, left = (self._delta(loss + side * _GAP) for side in (0.0, 1.0, -1.0))
        least = max(centre.lower - right.upper, 0.0) / math.expm1(_GAP)
        most = max(left.upper - centre.lower, 0.0) / -math.expm1(-_GAP)
        return Pair(min(centre.lower + least, 1.0), min(centre.upper + most, 1.0))

    def _logistic(self, shift: float) -> Pair:
        return logistic(self.parts, shift) if self._list is None else self._list.logistic(shift)

    def _quantile(self, level: float) -> Pair:
        """Return the ends of the least x with P(L > x) <= 1 - level, widened by at most 1e-10."""
        top = self._reach(0.5 * (1.0 - level)) + 1.0
        bottom = min(self._reach(0.25 * min(level, 1.0 - level), -1.0), top) - 1.0
        ends = []
        for side in (0, 1):
            if self._tail(top)[side] > 1.0 - level:  # endless losses are that many
                ends.append(math.inf)
                continue
            low, high = bottom, top
            while high - low > 1e-10 * max(1.0, abs(high)):
                middle = 0.5 * (low + high)
                low, high = (
                    (low, middle) if self._tail(middle)[side] <= 1.0 - level else (middle, high)
                )
            ends.append(low if side == 0 else high)
        return Pair(*ends)

    def scaled(self, factor: float) -> PrivacyLoss:
        """Return the privacy loss after all noise variances are multiplied by a factor."""
        scale = check.scalar(factor, "factor", lower=1e-12, upper=1e12)
        return PrivacyLoss(
            tuple(replace(part, law=_scaled(part.law, scale)) for part in self.parts)
        )

    def variance_factor(self, *, epsilon: float, delta: float) -> float:
        """Return the least factor on all variances with which the release keeps (epsilon, delta).

        It is rounded up to a share of at most 1e-6 above the least one, in [1e-6, 1e9].
        """
        target = check.scalar(delta, "delta", lower=1e-300, upper=1.0, bounds="[)")
        point = check.scalar(epsilon, "epsilon", lower=0.0, upper=1e4)
        least, most = math.log(1e-6), math.log(1e9)

        def keeps(log_factor: float) -> bool:
            return self.scaled(math.exp(log_factor))._delta(point).upper <= target

        low = high = 0.0
        if keeps(0.0):
            while low > least and keeps(low := max(low - 2.0, least)):
                high = low
        else:
            while high < most and not keeps(high := min(high + 2.0, most)):
                low = high
            if high == most and not keeps(most):
                raise ArgumentError(
                    "delta", "must be kept by some factor of at most 1e9", got=target,
                    advice=f"; epsilon {point:g} or delta must be larger",
                )  # fmt: skip
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return math.exp(high)

    def _answer(self) -> list[str]:
        counts = sum(part.times for part in self.parts)
        epsilon, half = self.epsilon(1e-10), self.posterior(0.1)
        return [
            f"A record moves {counts:,} noisy counts; epsilon is {number(float(epsilon))} at delta "
            "1e-10.",
            "Somebody who knows all others, and believed 10 % before, believes "
            f"{number(float(half.mean))} on average after the release, if the record is there.",
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return epsilon, between its ends, at delta from 1e-2 to 1e-12.

        Further columns are the tight and the simple conversion of rho, if all noise is Gaussian.
        """
        delta = 10.0 ** -np.arange(2, 13)
        frame = pd.DataFrame({"delta": delta})
        frame = frame.join(self.epsilon(delta).to_frame().add_prefix("epsilon_"))
        if not math.isnan(rho := self.rho):
            for name in ("tight", "bun-steinke"):
                frame[f"rho_{name.replace('-', '_')}"] = rho_to_epsilon(rho, delta, method=name)
        return frame


@dataclass(frozen=True, eq=False)
class BeliefLaw(Tabular):
    """The distribution of the posterior over releases, if the record is in the data.

    Attributes
    ----------
    loss : PrivacyLoss
        Law of the log Bayes factor.
    prior : ndarray
        Prior probabilities.
    """

    loss: PrivacyLoss
    prior: FloatArray

    @property
    def mean(self) -> Ends:
        """Average posterior: the marginal posterior of a whole release."""
        return _ends(
            [self.loss._logistic(s) for s in self._logit.ravel().tolist()], self.prior.shape
        )

    @property
    def ratio(self) -> Ends:
        """Average of posterior over prior: the marginal risk of a whole release."""
        mean = self.mean
        return Ends(
            check.answer(np.asarray(mean.lower / self.prior) * (1.0 - 2.0 * ULP)),
            check.answer(np.asarray(mean.upper / self.prior) * (1.0 + 2.0 * ULP)),
        )

    @property
    def decision_error(self) -> Ends:
        r"""Probability that the more probable of the two hypotheses is wrong, within about 1e-12.

        .. math:: \pi\,(1 - \delta(-\mathrm{logit}\, \pi))
        """
        gain = self.loss.delta(-self._logit)
        wide = 4.0 * ULP
        return Ends(
            check.answer(np.asarray(self.prior * (1.0 - gain.upper)) * (1.0 - wide)),
            check.answer(np.asarray(self.prior * (1.0 - gain.lower)) * (1.0 + wide)),
        )

    @property
    def _logit(self) -> FloatArray:
        return np.asarray(np.log(self.prior) - np.log1p(-self.prior))

    def tail(self, posterior: ArrayLike) -> Ends:
        """Return P(posterior > value) for values in (0, 1)."""
        points = check.real_array(posterior, "posterior", lower=0.0, upper=1.0, bounds="()")
        check.broadcast(posterior=points, prior=self.prior)
        losses = np.log(points) - np.log1p(-points) - self._logit
        return _ends([self.loss._tail(x) for x in losses.ravel().tolist()], losses.shape)

    def quantile(self, probability: ArrayLike) -> Ends:
        """Return the smallest posterior exceeded with probability at most 1 - probability."""
        levels = check.real_array(probability, "probability", lower=0.0, upper=1.0, bounds="()")
        check.broadcast(probability=levels, prior=self.prior)
        level, logit = np.broadcast_arrays(levels, self._logit)
        quantiles = {p: self.loss._quantile(p) for p in set(level.ravel().tolist())}
        from scipy.special import expit  # slow to import

        table = np.array([quantiles[p] for p in level.ravel().tolist()]).reshape(*level.shape, 2)
        belief = expit(table + logit[..., None])
        return Ends(check.answer(belief[..., 0]), check.answer(belief[..., 1]))

    def to_frame(self) -> pd.DataFrame:
        """Return prior, mean, ratio and decision error, with both ends, one row for each prior."""
        frame = pd.DataFrame({"prior": np.ravel(self.prior)})
        for name in ("mean", "ratio", "decision_error"):
            frame = frame.join(getattr(self, name).to_frame().add_prefix(f"{name}_"))
        return frame


def _ends(pairs: list[Pair], shape: tuple[int, ...]) -> Ends:
    table = np.array(pairs, dtype=float).reshape(*shape, 2)
    return Ends(check.answer(table[..., 0]), check.answer(table[..., 1]))


def _upper(line: LossLine, epsilon: float) -> float:
    return line.delta(epsilon).upper


def _crossing(function: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Return roughly where a falling function crosses a level, or an end of the interval."""
    from scipy.optimize import brentq  # slow to import

    def excess(epsilon: float) -> float:
        return math.log(max(function(epsilon), 1e-320)) - math.log(level)

    if excess(low) <= 0.0:
        return low
    if excess(high) >= 0.0:
        return high
    return float(brentq(excess, low, high, xtol=1e-13, rtol=8.0 * ULP))


def _least(rate: float, x: FloatArray, curve: list[Pair]) -> Pair:
    """Return the ends of the minimum of rate * x + delta(x), convex in x, from five points.

    The function lies above the lines through two neighbouring points, beyond them.  So the line
    through the two points on each side bounds it in the middle and, where it rises outwards,
    outside.
    """
    low, high = (np.array([pair[side] for pair in curve]) + rate * x for side in (0, 1))
    falls = (low[0] - high[1]) / (x[1] - x[0])  # at least so much, to the right
    rises = (low[4] - high[3]) / (x[4] - x[3])
    most = min(float(high.min()), 1.0)
    if falls <= 0.0 or rises <= 0.0:
        return Pair(rate, most)
    # In the middle, from x[1] to x[3], no function value is below the crossing of two lines.
    falls, rises = (high[0] - low[1]) / (x[1] - x[0]), (high[4] - low[3]) / (x[4] - x[3])
    point = (low[1] - low[3] + falls * x[1] + rises * x[3]) / (falls + rises)
    least = float(low[1] - falls * (point - x[1]))
    # Between the outer two points on each side, the line through the inner two bounds it.
    for one, two, out in ((1, 2, 0), (3, 2, 4)):
        slope = max((high[two] - low[one]) / abs(x[two] - x[one]), 0.0)
        least = min(least, float(low[one] - slope * abs(x[out] - x[one])), float(low[out]))
    return Pair(max(least, rate), most)


def _grouped(counts: Iterable[tuple[CountLaw, int, int]]) -> tuple[LossPart, ...]:
    """Return counts merged into groups that share one law of the loss."""
    groups: dict[tuple[object, ...], LossPart] = {}
    for law, change, times in counts:
        kind: tuple[object, ...] = (id(law), change)
        if isinstance(law, (DiscreteGaussian, DiscreteLaplace)):  # symmetric
            scale = law.sigma2 if isinstance(law, DiscreteGaussian) else law.scale
            kind = (type(law), float(scale), abs(change))
        if change:
            before = groups[kind].times if kind in groups else 0
            groups.setdefault(kind, LossPart(law, change, times))
            groups[kind] = replace(groups[kind], times=before + times)
    return tuple(groups.values())


def _counts_of_laws(source: Sequence[object]) -> list[tuple[CountLaw, int, int]]:
    counts = []
    for item in source:
        law, change = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        moved = check.integer(change, "change", lower=-_MOST_CHANGE, upper=_MOST_CHANGE)
        counts.append(
            (single_law(law.law() if isinstance(law, Noise) else law, "source"), moved, 1)
        )
    return counts


def _counts_of_spec(spec: Any, sensitivity: str | None) -> list[tuple[CountLaw, int, int]]:
    """Return noise law, change and number of the counts in each table that one record changes."""
    for key, law in spec.tables.items():
        if key not in spec.noise:
            raise ArgumentError(
                f"source must have independent noise in every table, got {law} in {'/'.join(key)}: "
                "without it a record is seen for certain, or the law is not known"
            )
    stated = spec.parameters.get("sensitivity")
    moved = check.MOVED[sensitivity or stated or "change-one"]
    overlap = spec.parameters.get("overlap", 1)
    cells = {key: overlap if isinstance(overlap, int) else overlap[key[1]] for key in spec.noise}
    return [(noise.to_law(), 1, moved * cells[key]) for key, noise in spec.noise.items()]


def _scaled(law: CountLaw, factor: float) -> CountLaw:
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(float(law.sigma2) * factor)
    if isinstance(law, DiscreteLaplace):
        return DiscreteLaplace(float(law.scale) * math.sqrt(factor))
    raise ArgumentError("source", "must have Gaussian or Laplace noise to be scaled", got=law)
