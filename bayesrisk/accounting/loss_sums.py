r"""Lower and upper ends of expectations of a privacy loss, by adding its values or by inversion.

If the counts together have few values, these are added. Otherwise, with :math:`M(s) = E e^{sL}`,

.. math:: \delta(\epsilon) = E(1 - e^{\epsilon - L})_+ =
    \frac{1}{2 \pi i} \int_{\lambda - i\infty}^{\lambda + i\infty}
    \frac{M(s)\, e^{-s\epsilon}}{s\,(s + 1)}\, ds, \quad \lambda > 0,

by the trapezoid rule with a step h. This adds the integral's values at epsilon plus multiples of
:math:`2 \pi / h`, which M bounds. A tiny further loss Y, with :math:`E e^Y = 1` and
:math:`|Y| \le \kappa`, makes the integrand small where the line is cut off. It makes delta too
large, by Jensen's inequality; the convexity of delta in :math:`e^\epsilon` bounds the difference.

Source: Zhu, Dong and Wang (2022, arXiv:2106.08567) for the inversion; the two ends are new here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import ULP, FloatArray
from bayesrisk.accounting import loss_parts as kernels
from bayesrisk.accounting.loss_parts import LossPart, Values, transform

_MOST_VALUES = 2**21  # of all counts together, that are listed
_MOST_PAIRS = 2**23  # values that are merged at a time
_SMALL = 44.0  # what is left out is smaller than the answer by this logarithm
_UNIFORMS = 8  # uniform laws whose sum is the further loss
KAPPA = 1e-4  # its largest size, as a share of how large losses are, or of 1


class Pair(NamedTuple):
    """Lower and upper end of a number."""

    lower: float
    upper: float

    def with_endless(self, endless: float, lost: float) -> Pair:
        """Return the ends after adding the chance of an infinite loss and of omitted values."""
        wide = 64.0 * ULP
        low = self.lower + endless * (1.0 - wide) - lost
        return Pair(max(low, 0.0), min(self.upper + endless * (1.0 + wide) + lost, 1.0))


def log_moment(parts: Sequence[LossPart], tilt: float) -> float:
    """Return log E exp(tilt L), over finite losses."""
    return math.fsum(part.log_moment(tilt) for part in parts)


def endless_mass(parts: Sequence[LossPart]) -> tuple[float, float]:
    """Return the probability of an infinite loss, and a bound on the mass that tables omit."""
    if any(part.endless >= 1.0 for part in parts):
        endless = 1.0
    else:
        endless = -math.expm1(math.fsum(math.log1p(-part.endless) for part in parts))
    return endless, math.fsum(part.lost for part in parts if not part.sigma2)


class LossList:
    """The values of the loss of all counts together, in order."""

    def __init__(self, parts: Sequence[LossPart], loss: FloatArray, mass: FloatArray) -> None:
        self.loss, self.mass = loss, mass
        self.endless = endless_mass(parts)[0]
        self.lost = math.fsum(p.lost for p in parts)
        counts = sum(p.times for p in parts)
        largest = max(1.0, float(np.abs(loss[[0, -1]]).max()))
        #: Rounding of a loss, of sums and of what was merged; and of a probability, as a share.
        self.shift = 8.0 * ULP * largest * (counts + 1)
        self._alone = counts == 1
        sizes = sum((p.times - 1) * p.values.loss.size for p in parts)  # terms of convolutions
        self.share = ULP * (64.0 + 64.0 * counts + 8.0 * largest + sizes)
        self._delta, self._weight = np.empty(loss.size), np.empty(loss.size)
        kernels.excesses(loss, mass, self._delta, self._weight)

    @classmethod
    def listed(cls, parts: Sequence[LossPart]) -> LossList | None:
        """Return the list of values, or None where there are too many."""
        loss = parts[0].values.loss if len(parts) == 1 and parts[0].times == 1 else np.zeros(0)
        if loss.size and np.all(np.diff(loss) > 0.0):
            return cls(parts, *parts[0].values[:2])
        if math.prod(min(p.values.loss.size, 64) for p in parts) > 64 * _MOST_PAIRS:
            return None
        loss, mass = np.zeros(1), np.ones(1)
        if any(part.values.loss.size == 0 for part in parts):  # every loss is endless
            return cls(parts, loss, np.zeros(1))
        for part in sorted(parts, key=lambda p: p.times * p.values.loss.size):
            values, times = _folded(part), part.times
            if values is not None:
                times = 1
            for _ in range(times):
                one = part.values if values is None else values
                if loss.size * one.loss.size > _MOST_PAIRS:
                    return None
                loss, mass = _sum(loss, mass, one)
                if loss.size > _MOST_VALUES:
                    return None
        return cls(parts, loss, mass)

    def _excess(self, epsilon: float) -> float:
        k = int(np.searchsorted(self.loss, epsilon, side="left"))
        if k == self.loss.size:
            return 0.0
        return float(self._delta[k] - self._weight[k] * math.expm1(epsilon - self.loss[k]))

    def delta(self, epsilon: float) -> Pair:
        """Return the ends of E (1 - exp(epsilon - L))+."""
        # Of one count, losses near epsilon are rounded in proportion to themselves.
        shift = 4.0 * ULP * (1.0 + abs(epsilon)) if self._alone else self.shift
        low, high = (self._excess(epsilon + side * shift) for side in (1.0, -1.0))
        pair = Pair(low * (1.0 - self.share), high * (1.0 + self.share))
        return pair.with_endless(self.endless, self.lost)

    def epsilon(self, delta: float) -> Pair:
        """Return the ends of the least epsilon >= 0 that keeps delta, which inverts ``delta``."""
        wide = 64.0 * ULP
        goals = (
            (delta + self.lost - self.endless * (1.0 - wide)) / (1.0 - self.share),
            (delta - self.lost - self.endless * (1.0 + wide)) / (1.0 + self.share),
        )
        ends = []
        for goal, side in zip(goals, (-1.0, 1.0), strict=True):
            k = int(np.searchsorted(-self._delta, -goal, side="left"))
            if k == self.loss.size:  # a negative goal
                ends.append(math.inf)
                continue
            # goal = delta[k] + weight[k] (1 - exp(epsilon - loss[k]))
            share = (goal - self._delta[k]) / self._weight[k] if self._weight[k] else 1.0
            point = float(self.loss[k]) + math.log1p(-share) if share < 1.0 else -math.inf
            shift = 8.0 * ULP * (1.0 + abs(point)) + (0.0 if self._alone else self.shift)
            ends.append(max(point + side * shift, 0.0) if math.isfinite(point) else 0.0)
        return Pair(*ends)

    def tail(self, loss: float) -> Pair:
        """Return the ends of P(L > loss)."""
        low, high = (
            math.fsum(self.mass[np.searchsorted(self.loss, loss + side * self.shift, "right") :])
            for side in (1.0, -1.0)
        )
        pair = Pair(low * (1.0 - self.share), high * (1.0 + self.share))
        return pair.with_endless(self.endless, self.lost)

    def logistic(self, shift: float) -> Pair:
        """Return the ends of E 1 / (1 + exp(-L - shift))."""
        from scipy.special import expit  # slow to import

        low, high = (
            math.fsum(self.mass * expit(self.loss + shift + side * self.shift))
            for side in (-1.0, 1.0)
        )
        pair = Pair(low * (1.0 - self.share), high * (1.0 + self.share))
        return pair.with_endless(self.endless, self.lost)


def _folded(part: LossPart) -> Values | None:
    """Return the sum of a group's losses if they are equally spaced, or None if it is too long."""
    loss, mass, endless = part.values
    gaps = np.diff(loss)
    even = loss.size > 1 and np.ptp(gaps) <= 64.0 * ULP * float(np.abs(loss[[0, -1]]).max())
    if part.times == 1 or not even or part.times**2 * loss.size**2 > 2**31:
        return None
    total = mass
    for _ in range(part.times - 1):
        total = np.convolve(total, mass)
    first, step = part.times * loss[0], (loss[-1] - loss[0]) / (loss.size - 1)
    return Values(first + step * np.arange(total.size), np.asarray(total, float), endless)


def _sum(loss: FloatArray, mass: FloatArray, one: Values) -> tuple[FloatArray, FloatArray]:
    """Return the sorted sum with another loss; values that differ by rounding are merged."""
    values = np.add.outer(loss, one.loss).ravel()
    order = np.argsort(values, kind="stable")
    values, chance = values[order], np.multiply.outer(mass, one.mass).ravel()[order]
    width = 4.0 * ULP * max(1.0, float(np.abs(values[[0, -1]]).max()))
    count = kernels.merge(values, chance, width)
    return values[:count].copy(), chance[:count].copy()


class LossLine:
    """The loss's transform along one vertical line; delta near an epsilon is a short sum on it."""

    def __init__(self, parts: Sequence[LossPart], epsilon: float, share: float = KAPPA) -> None:
        self.parts = parts
        scale = min(math.hypot(*(part.scale for part in parts)), 1.0)
        kappa = share * scale
        self.endless, self.lost = endless_mass(parts)
        self.tilt = _best_tilt(parts, epsilon, scale)
        self.log_moment, self.twice = (log_moment(parts, k * self.tilt) for k in (1.0, 2.0))
        # One turn is so long that what comes along is small beside delta <= exp(log_bound).
        log_bound = self.log_moment - self.tilt * epsilon
        growth = max(self.twice - 2.0 * self.tilt * epsilon, 0.0)
        self.period = (_SMALL + 10.0 + max(-log_bound, 0.0) + growth) / self.tilt
        self.step = 2.0 * math.pi / self.period
        half = kappa / _UNIFORMS
        last = math.ceil(4.0 / half / self.step)
        self.nodes = transform(parts, self.tilt, self.step, last, -_SMALL - math.log(last + 1.0))
        # E exp(-s Y): Y is a sum of uniform laws on [-half, half], moved so that E exp(Y) = 1.
        move = -_UNIFORMS * _log_sinc(half)
        s = self.tilt + 1j * self.nodes.t
        spline = (np.sinh(s * half) / (s * half)) ** _UNIFORMS * np.exp(-s * move)
        first = np.where(self.nodes.t == 0.0, 0.5, 1.0)
        self.kernel = self.nodes.size * first * spline / (s * (s + 1.0))
        wide = math.cosh(self.tilt * half) ** _UNIFORMS * math.exp(self.tilt * abs(move))
        envelope = wide / np.maximum(np.abs(s * half), 1.0) ** _UNIFORMS / np.abs(s * (s + 1.0))
        self.weight = self.nodes.size * envelope
        # Beyond the last node |E exp(-s Y)| <= wide / (t half)**8, and |s (s + 1)| >= t**2.
        end = last * self.step
        tail = wide / (end * half) ** _UNIFORMS / end / math.pi
        dead = wide * self.nodes.rest * self.step / math.pi / (self.tilt * (self.tilt + 1.0))
        self.left_out = tail + dead
        # E (exp(Y) - 1)+ = E |exp(Y) - 1| / 2 is at most half the standard deviation of exp(Y).
        variance = math.expm1(_UNIFORMS * (_log_sinc(2.0 * half) - 2.0 * _log_sinc(half)))
        self.reach = (kappa + abs(move)) * (1.0 + 8.0 * ULP)
        self.spread = 0.5 * math.sqrt(variance) * (1.0 + 1e-9)
        self.rounding = math.fsum(p.moment_error(self.tilt) for p in parts)

    def _smooth(self, epsilon: float) -> Pair:
        """Return the ends of delta of the loss plus the tiny further loss Y."""
        nodes, point = self.nodes, self.tilt * epsilon
        # Delta one turn above is at most M(2 tilt) exp(-2 tilt epsilon), and 1 below.
        log_above = self.twice - 2.0 * point + 4.0 * self.tilt * self.reach
        if max(log_above - self.tilt * self.period, self.log_moment - point) > 600.0:
            return Pair(0.0, 1.0)  # a line that was made for an epsilon far away
        scale = math.exp(self.log_moment - point)
        angle = nodes.phase - nodes.t * epsilon
        terms = np.cos(angle) * self.kernel.real - np.sin(angle) * self.kernel.imag
        middle = scale * self.step / math.pi * float(terms.sum())
        # 64 roundings of each term: of its factors, and of a sum by pairs.
        off = nodes.error + ULP * (64.0 + 4.0 * np.abs(nodes.t * epsilon))
        error = scale * (self.step / math.pi * float(self.weight @ off) + self.left_out)
        rotation = self.tilt * self.period
        error += 2.0 * (math.exp(log_above - rotation) + math.exp(-rotation))
        error += abs(middle) * (
            self.rounding + 64.0 * ULP * (1.0 + abs(self.log_moment) + abs(point))
        )
        return Pair(min(max(middle - error, 0.0), 1.0), min(max(middle + error, 2.0**-1022), 1.0))

    def delta(self, epsilon: float) -> Pair:
        """Return the ends of E (1 - exp(epsilon - L))+.

        Let D(E) = delta, convex in E = exp(epsilon), and U its average over E exp(Y).  Then
        D <= U, and by straight lines above D

            U(E) <= (1 - a - b) D(E) + a U(E exp(reach)) + b U(E exp(-reach)).
        """
        smooth = self._smooth(epsilon)
        right, left = (self._smooth(epsilon + side * self.reach) for side in (1.0, -1.0))
        a, b = self.spread / math.expm1(self.reach), self.spread / -math.expm1(-self.reach)
        lower = (
            (smooth.lower - a * right.upper - b * left.upper) / (1.0 - a - b) * (1.0 - 16.0 * ULP)
        )
        return Pair(max(lower, 0.0), smooth.upper).with_endless(self.endless, self.lost)


def _log_sinc(x: float) -> float:
    """Return log(sinh(x) / x) for 0 < x < 0.1, by its series: 2**-60 of it is left out."""
    return x**2 / 6.0 - x**4 / 180.0 + x**6 / 2835.0 - x**8 / 37800.0 + x**10 / 467775.0


def _best_tilt(parts: Sequence[LossPart], epsilon: float, scale: float) -> float:
    """Return a tilt that nearly minimises the integrand; any positive tilt would be valid."""
    from scipy.optimize import minimize_scalar  # slow to import

    def size(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return log_moment(parts, tilt) - tilt * epsilon - math.log(tilt * (tilt + 1.0))

    return math.exp(
        float(minimize_scalar(size, bounds=(-1.5, 7.0 - math.log(scale)), method="bounded").x)
    )


def logistic(parts: Sequence[LossPart], shift: float) -> Pair:
    """Return the ends of E 1 / (1 + exp(-L - shift)), computed directly or from its complement."""
    if endless_mass(parts)[0] == 1.0:
        return Pair(1.0, 1.0)
    direct, rest = (log_moment(parts, tilt) + tilt * shift for tilt in (0.5, -0.5))
    if direct <= max(rest, 0.0) + 1.0:
        return _finite_logistic(parts, shift, 1.0).with_endless(*endless_mass(parts))
    missing, lost = _finite_logistic(parts, shift, -1.0), endless_mass(parts)[1]
    ends = Pair(1.0 - missing.upper - lost - 2.0 * ULP, 1.0 - missing.lower + lost + 2.0 * ULP)
    return ends.with_endless(0.0, 0.0)


def _finite_logistic(parts: Sequence[LossPart], shift: float, side: float) -> Pair:
    """Return the ends of E 1 / (1 + exp(side (-L - shift))) over finite losses.

    On the line s = side / 2 + i t the kernel is pi / cosh(pi t).  The trapezoid rule adds the
    values one turn above, which are at most 1, and below, at most E exp(side (L + shift)).
    """
    half, whole = (log_moment(parts, side * tilt) for tilt in (0.5, 1.0))
    signed = side * shift
    period = 2.0 * (_SMALL + 10.0 + max(whole + signed, 0.0) + abs(shift))
    step = 2.0 * math.pi / period
    last = math.ceil((_SMALL + 10.0 + abs(shift) + abs(half)) / math.pi / step)
    nodes = transform(parts, 0.5 * side, step, last, -_SMALL - 20.0 - abs(shift) - abs(half))
    scale = math.exp(half + 0.5 * signed)
    fall = np.exp(-np.pi * nodes.t)
    weight = nodes.size * 2.0 * np.pi * fall / (1.0 + fall**2)
    middle = math.fsum(weight * np.cos(nodes.phase + nodes.t * shift)) - 0.5 * math.pi
    middle *= scale * step / math.pi
    off = float(weight @ (nodes.error + ULP * (32.0 + 8.0 * np.abs(nodes.t * shift))))
    tail = 4.0 * math.exp(-math.pi * last * step)
    error = scale * (step / math.pi * (off + math.pi * nodes.rest) + tail)
    error += 2.0 * (math.exp(-0.5 * period) + math.exp(whole + signed - 0.5 * period))
    rounding = math.fsum(p.moment_error(0.5 * side) for p in parts)
    error += abs(middle) * (rounding + 64.0 * ULP * (1.0 + abs(half) + abs(shift)))
    return Pair(middle - error, middle + error)
