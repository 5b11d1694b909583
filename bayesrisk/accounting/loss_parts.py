"""The privacy loss of independent noisy counts: values, moments, and characteristic functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import ULP, FloatArray, IntArray
from bayesrisk.distributions import CountLaw, DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions.sums import as_finite


class Gaussians(NamedTuple):
    """Discrete Gaussian noise of groups of counts: sigma2 >= 1, |change| and size of each group."""

    sigma2: FloatArray
    change: FloatArray
    times: FloatArray


class Lists(NamedTuple):
    """Privacy losses tabulated value by value, with tilted probabilities, list after list.

    List i has the entries from ``ends[i]`` to ``ends[i + 1]`` and stands for ``times[i]`` counts.
    """

    loss: FloatArray
    mass: FloatArray
    ends: IntArray
    times: FloatArray


@kernel
def fill_transform(
    step: float,
    first: int,
    tilt: float,
    gaussians: Gaussians,
    lists: Lists,
    least: float,
    out: FloatArray,
) -> None:
    """Fill ``out`` with log |f(t)|, arg f(t) and the error of both at t = first step, ....

    f(t) = M(tilt + i t) / M(tilt), with M(s) = E exp(s L) a product over independent counts.  For
    a discrete Gaussian, by Poisson's summation with u = s change,

        M(s) = exp((s + s**2) change**2 / 2 sigma2) theta(u) / theta(0),
        theta(u) = sum over k of exp(-2 pi**2 sigma2 k**2 + 2 pi i k u).

    Within half a period of t, 2 pi sigma2 / change, the terms |k| > 1 are below 2**-56. For a node
    with log |f(t)| < ``least``, only a bound of this logarithm is given, and error -1.
    """
    for k in range(out.shape[0]):
        t = step * (first + k)
        size, phase, error, dead = 0.0, 0.0, 0.0, False
        for i in range(gaussians.sigma2.size):
            v, d, n = gaussians.sigma2[i], gaussians.change[i], gaussians.times[i]
            # Into the middle period: whole periods turn the phase alone.
            period = 2.0 * math.pi * v / d
            near = t - period * math.floor(t / period + 0.5)
            size -= n * 0.5 * near * near * d * d / v
            # |theta| is at most 2.01 times its value at t = 0, and further factors at most 1.
            if size + 0.7 * n < least:
                size, dead = size + 0.7 * n, True
                break
            angle = 2.0 * math.pi * ((tilt * d) % 1.0)
            down = math.exp(-2.0 * math.pi * (math.pi * v + near * d))
            up = math.exp(-2.0 * math.pi * (math.pi * v - near * d))
            real = 1.0 + (down + up) * math.cos(angle)
            imaginary = (down - up) * math.sin(angle)
            theta = max(math.sqrt(real * real + imaginary * imaginary), 1e-300)
            zero = 1.0 + 2.0 * math.exp(-2.0 * math.pi**2 * v) * math.cos(angle)
            size += n * (math.log(theta) - math.log(zero))
            # The phase of exp((s**2 d**2 + s d**2) / 2 sigma2), s = tilt + i t, less whole periods.
            rotation = (tilt * near + 0.5 * t) * d * d / v
            phase += n * (rotation + math.atan2(imaginary, real))
            # Rounding: of the terms, of the sums, and of t within its period.
            error += n * (16.0 + 8.0 / theta + 4.0 * abs(rotation) + 4.0 * near * near * d * d / v)
            error += n * 4.0 * t * d * (10.0 / math.sqrt(v) + (1.0 + tilt) * d / v) + abs(phase)
        if not dead:
            for i in range(lists.times.size):
                real, imaginary, spread = 0.0, 0.0, 0.0
                for j in range(lists.ends[i], lists.ends[i + 1]):
                    rotation = t * lists.loss[j]
                    real += lists.mass[j] * math.cos(rotation)
                    imaginary += lists.mass[j] * math.sin(rotation)
                    spread += lists.mass[j] * (8.0 + 2.0 * abs(rotation))
                spread += lists.ends[i + 1] - lists.ends[i]
                modulus, n = math.sqrt(real * real + imaginary * imaginary), lists.times[i]
                if size + n * math.log(min(modulus + spread * ULP, 1.0)) < least:
                    size, dead = size + n * math.log(min(modulus + spread * ULP, 1.0)), True
                    break
                size += n * math.log(modulus)
                phase += n * math.atan2(imaginary, real)
                error += n * (8.0 + spread / modulus) + abs(phase)
        out[k, 0] = min(size, 0.0)
        out[k, 1] = phase
        out[k, 2] = -1.0 if dead else error * ULP


@kernel
def excesses(loss: FloatArray, mass: FloatArray, delta: FloatArray, weight: FloatArray) -> None:
    """Fill ``delta[k]`` with E (1 - exp(loss[k] - L))+ and ``weight[k]`` with its slope there.

    With weight[k] = sum over j >= k of mass[j] exp(loss[k] - loss[j]), from the last value down,

        delta(e) = delta[k] + weight[k] (1 - exp(e - loss[k])),  loss[k - 1] <= e <= loss[k],

    sums of terms that are not negative, added with Kahan's correction.  ``loss`` increases.
    """
    last = loss.size - 1
    anchor = loss[last]
    total, low = mass[last], 0.0  # sum of mass[j] exp(anchor - loss[j]), and what rounding left
    below = 0.0
    delta[last], weight[last] = 0.0, mass[last]
    for k in range(last - 1, -1, -1):
        # delta[k] = delta[k + 1] + weight[k + 1] (1 - exp(loss[k] - loss[k + 1]))
        term = -weight[k + 1] * math.expm1(loss[k] - loss[k + 1]) - below
        delta[k] = delta[k + 1] + term
        below = (delta[k] - delta[k + 1]) - term
        if anchor - loss[k] > 300.0:  # before the exponential overflows
            factor = math.exp(loss[k] - anchor)
            total, low, anchor = total * factor, low * factor, loss[k]
        term = mass[k] * math.exp(anchor - loss[k]) - low
        grown = total + term
        low, total = (grown - total) - term, grown
        weight[k] = total * math.exp(loss[k] - anchor)


@kernel
def merge(loss: FloatArray, mass: FloatArray, width: float) -> int:
    """Merge sorted values within ``width`` of a run's first; return how many values remain."""
    count, begin = 0, loss[0]
    for k in range(1, loss.size):
        if loss[k] - begin <= width:
            mass[count] += mass[k]
        else:
            count += 1
            loss[count], mass[count] = loss[k], mass[k]
            begin = loss[k]
    return count + 1


_DUAL_FROM = 1.0  # sigma2 from which three terms of Poisson's dual sum suffice
_REACH = 17.0  # beyond so many standard deviations a discrete Gaussian has less mass than ...
_TAIL = 1e-60  # ... this, which a list of values may leave out on each side
_CHUNK = 2**17  # nodes of the transform at a time


class Values(NamedTuple):
    """Increasing values of a loss, their probabilities, and the probability of an infinite loss."""

    loss: FloatArray
    mass: FloatArray
    endless: float


@dataclass(frozen=True)
class LossPart:
    r"""A group of counts that one record changes by ``change``, all with noise of the same law.

    The loss of a released value x is :math:`\log p(x - \mathrm{change}) - \log p(x)`, for the
    record's presence against its absence, with the others known.
    """

    law: CountLaw
    change: int
    times: int

    @cached_property
    def sigma2(self) -> float:
        """Parameter of a discrete Gaussian with a closed-form transform, or 0 for any other law."""
        if isinstance(self.law, DiscreteGaussian) and (v := float(self.law.sigma2)) >= _DUAL_FROM:
            return v
        return 0.0

    @cached_property
    def lost(self) -> float:
        """Bound on the probability that the tables ``values`` of all these counts leave out."""
        if isinstance(self.law, FiniteLaw):
            return 2.0 * self.times * self.law.error_bound
        return 0.0 if isinstance(self.law, DiscreteLaplace) else self.times * 4.0 * _TAIL

    @cached_property
    def endless(self) -> float:
        """Probability that the loss of at least one of the counts is infinite."""
        if self.sigma2 or self.values.endless == 0.0:
            return 0.0
        one = min(self.values.endless, 1.0)
        return -math.expm1(self.times * math.log1p(-one)) if one < 1.0 else 1.0

    @cached_property
    def scale(self) -> float:
        """Root mean square of the total loss over all counts, infinite losses left out."""
        if self.sigma2:
            return abs(self.change) * math.sqrt(self.times / self.sigma2)
        loss, mass, _ = self.values
        return math.sqrt(self.times * float(mass @ loss**2))

    @cached_property
    def values(self) -> Values:
        """The values of the loss of one count, if the record is present."""
        d, law = self.change, self.law
        if isinstance(law, DiscreteGaussian):
            v = float(law.sigma2)
            reach = int(np.ceil(_REACH * np.sqrt(v))) + 1
            noise = np.arange(-reach, reach + 1)
            # loss = (2 change noise + change**2) / (2 sigma2)
            loss = np.asarray((noise + 0.5 * d) * (d / v), float)
            mass = np.asarray(law.pmf(noise), float)
            return Values(loss[:: d // abs(d)], mass[:: d // abs(d)], 0.0)
        if isinstance(law, DiscreteLaplace):
            # loss = (|x| - |x - change|) / b, constant beyond 0 and beyond the change
            x, b = np.arange(abs(d) + 1.0), float(law.scale)
            mass = np.asarray(law.pmf(x - abs(d)), float)
            mass[0], mass[-1] = float(law.sf(abs(d) - 1)), float(law.sf(-1))
            return Values((2.0 * x - abs(d)) / b, mass, 0.0)
        table = as_finite(law, tail=_TAIL)
        first, last = (int(end) for end in table.support())
        x = np.arange(first + d, last + d + 1)
        present, absent = (np.asarray(table.pmf(x - move), float) for move in (d, 0))
        finite = (present > 0.0) & (absent > 0.0)
        loss = np.asarray(np.log(present[finite]) - np.log(absent[finite]), float)
        order = np.argsort(loss, kind="stable")
        return Values(loss[order], present[finite][order], float(present[absent == 0.0].sum()))

    def log_moment(self, tilt: float) -> float:
        """Return log E exp(tilt L) of all counts, over finite losses; see ``fill_transform``."""
        if v := self.sigma2:
            d, small = self.change, 2.0 * np.exp(-2.0 * np.pi**2 * v)
            theta = np.log1p(small * np.cos(2.0 * np.pi * ((tilt * d) % 1.0))) - np.log1p(small)
            return self.times * float((tilt + tilt**2) * d * d / (2.0 * v) + theta)
        loss, mass, _ = self.values
        with np.errstate(divide="ignore"):
            logs = np.log(mass) + tilt * loss
        top = float(logs.max(initial=-np.inf))
        return (
            self.times * (top + float(np.log(np.exp(logs - top).sum()))) if mass.size else -np.inf
        )

    def moment_error(self, tilt: float) -> float:
        """Return a bound on the rounding of :meth:`log_moment`."""
        if self.sigma2:
            return 16.0 * ULP * (self.times + abs(self.log_moment(tilt)))
        loss, mass, _ = self.values
        largest = float(np.abs(tilt * loss).max(initial=0.0))
        return self.times * ULP * (64.0 + mass.size + 8.0 * largest)


class Nodes(NamedTuple):
    """Points t where f is not negligible, f and its error there, and the sum of all other |f|."""

    t: FloatArray
    size: FloatArray
    phase: FloatArray
    error: FloatArray
    rest: float


def transform(
    parts: Sequence[LossPart], tilt: float, step: float, last: int, least: float
) -> Nodes:
    """Return M(tilt + i t) / M(tilt) at the multiples t of ``step`` where it is not negligible."""
    # What is small at most nodes comes first: it excludes them.
    closed = sorted((p for p in parts if p.sigma2), key=lambda p: -p.times * p.sigma2)
    gaussians = Gaussians(
        np.array([p.sigma2 for p in closed], dtype=float),
        np.array([abs(p.change) for p in closed], dtype=float),
        np.array([p.times for p in closed], dtype=float),
    )
    listed = [p for p in parts if not p.sigma2]
    weights = [
        p.values.mass * np.exp(tilt * p.values.loss - p.log_moment(tilt) / p.times) for p in listed
    ]
    lists = Lists(
        np.concatenate([np.zeros(0), *(p.values.loss for p in listed)]),
        np.concatenate([np.zeros(0), *weights]),
        np.cumsum([0, *(w.size for w in weights)]),
        np.array([p.times for p in listed], dtype=float),
    )
    nodes, values, rest = [], [], 0.0
    for first in range(0, last + 1, _CHUNK):
        out = np.empty((min(_CHUNK, last + 1 - first), 3))
        fill_transform(step, first, tilt, gaussians, lists, least, out)
        alive = out[:, 2] >= 0.0
        nodes.append(step * (first + np.flatnonzero(alive)))
        values.append(out[alive])
        rest += float(np.exp(out[~alive, 0]).sum())
    table = np.concatenate(values)
    return Nodes(np.concatenate(nodes), np.exp(table[:, 0]), table[:, 1], table[:, 2], rest)
