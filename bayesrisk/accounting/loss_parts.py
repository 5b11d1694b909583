"""The privacy loss of noisy counts alike: its values, its moments, its transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import FloatArray
from bayesrisk.accounting import loss_kernels as kernels
from bayesrisk.distributions import CountLaw, DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions.sums import as_finite

_DUAL_FROM = 1.0  # sigma2 from which three terms of Poisson's dual sum suffice
_REACH = 17.0  # beyond so many standard deviations a discrete Gaussian has less mass than ...
_TAIL = 1e-60  # ... this, which a list of values may leave out on each side
_CHUNK = 2**17  # nodes of the transform at a time
_ULP = 2.0**-52


class Values(NamedTuple):
    """Values of a loss, increasing, and their probabilities; the mass of an endless loss."""

    loss: FloatArray
    mass: FloatArray
    endless: float


@dataclass(frozen=True)
class LossPart:
    r"""Counts alike that a record moves by ``change``, with noise of one law.

    The loss of a released value x is :math:`\log p(x - \mathrm{change}) - \log p(x)`: of the
    record's being there against its absence, with the others known.
    """

    law: CountLaw
    change: int
    times: int

    @cached_property
    def sigma2(self) -> float:
        """Parameter of a discrete Gaussian whose transform has a closed form, else 0."""
        if isinstance(self.law, DiscreteGaussian) and (v := float(self.law.sigma2)) >= _DUAL_FROM:
            return v
        return 0.0

    @cached_property
    def lost(self) -> float:
        """Bound on the mass that ``values`` leaves out, of all counts."""
        if isinstance(self.law, FiniteLaw):
            return 2.0 * self.times * self.law.error_bound
        return 0.0 if isinstance(self.law, DiscreteLaplace) else self.times * 4.0 * _TAIL

    @cached_property
    def endless(self) -> float:
        """Probability that the loss of one of the counts is infinite."""
        if self.sigma2 or self.values.endless == 0.0:
            return 0.0
        one = min(self.values.endless, 1.0)
        return -math.expm1(self.times * math.log1p(-one)) if one < 1.0 else 1.0

    @cached_property
    def scale(self) -> float:
        """Root of E L**2 over all counts, where the loss is finite: how large losses are."""
        if self.sigma2:
            return abs(self.change) * math.sqrt(self.times / self.sigma2)
        loss, mass, _ = self.values
        return math.sqrt(self.times * float(mass @ loss**2))

    @cached_property
    def values(self) -> Values:
        """The values of the loss of one count, where the record is there."""
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
        """Return log E exp(tilt L) of all counts, over finite losses; see ``kernels.transform``."""
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
            return 16.0 * _ULP * (self.times + abs(self.log_moment(tilt)))
        loss, mass, _ = self.values
        largest = float(np.abs(tilt * loss).max(initial=0.0))
        return self.times * _ULP * (64.0 + mass.size + 8.0 * largest)


class Nodes(NamedTuple):
    """Nodes t of a line that count, f there with its error, and the sum of |f| at the others."""

    t: FloatArray
    size: FloatArray
    phase: FloatArray
    error: FloatArray
    rest: float


def transform(
    parts: Sequence[LossPart], tilt: float, step: float, last: int, least: float
) -> Nodes:
    """Return M(tilt + i t) / M(tilt) at t = 0, step, ..., last step, where it is not too small."""
    # What is small at most nodes comes first: it excludes them.
    closed = sorted((p for p in parts if p.sigma2), key=lambda p: -p.times * p.sigma2)
    gaussians = kernels.Gaussians(
        np.array([p.sigma2 for p in closed], dtype=float),
        np.array([abs(p.change) for p in closed], dtype=float),
        np.array([p.times for p in closed], dtype=float),
    )
    listed = [p for p in parts if not p.sigma2]
    weights = [
        p.values.mass * np.exp(tilt * p.values.loss - p.log_moment(tilt) / p.times) for p in listed
    ]
    lists = kernels.Lists(
        np.concatenate([np.zeros(0), *(p.values.loss for p in listed)]),
        np.concatenate([np.zeros(0), *weights]),
        np.cumsum([0, *(w.size for w in weights)]),
        np.array([p.times for p in listed], dtype=float),
    )
    nodes, values, rest = [], [], 0.0
    for first in range(0, last + 1, _CHUNK):
        out = np.empty((min(_CHUNK, last + 1 - first), 3))
        kernels.transform(step, first, tilt, gaussians, lists, least, out)
        alive = out[:, 2] >= 0.0
        nodes.append(step * (first + np.flatnonzero(alive)))
        values.append(out[alive])
        rest += float(np.exp(out[~alive, 0]).sum())
    table = np.concatenate(values)
    return Nodes(np.concatenate(nodes), np.exp(table[:, 0]), table[:, 1], table[:, 2], rest)
