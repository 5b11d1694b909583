"""Releases of two levels around a truth, enumerated, and what the adversary decides from them.

The truth enters here: the block count, k or k + 1, and the group count.  The decision depends on
the block's release through a threshold, which is a function of the other two releases (n, S).  So a
probability of decisions is a sum over (n, S) of tails of the block's noise.  Noise is cut where
each side weighs less than ``exp(-_REACH)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.sums import sum_ripple
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.risk.count.averages import marginal_ratio

_REACH = 38.0
#: Bound on the probability of the releases left out: three laws, two sides each.
TRUNCATION = float(6.0 * np.exp(-_REACH))
MAX_CELLS = 2**24
_TABLE = 2**20


@dataclass(frozen=True)
class Truth:
    """True counts relative to the known count: the target's (0 or 1) and the group's."""

    target: int
    group: int


def _noise_window(precision: float, ripple: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the values of a noise that matter, and their probabilities; one value if silent."""
    if precision == 0.0:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    reach = np.sqrt((_REACH + float(np.ptp(ripple))) / precision) + 1.0
    if not reach < MAX_CELLS:
        raise ArgumentError(
            "rho_block",
            f"and rho_group must leave noise of fewer than {MAX_CELLS} values",
            shown=f"{reach:g}",
        )
    x = np.arange(-int(reach), int(reach) + 1)
    log_weight = ripple[x % ripple.size] - precision * x.astype(float) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return x, weight / weight.sum()


def siblings_noise(settings: Settings) -> tuple[IntArray, FloatArray]:
    """Return the noise of the siblings' total that matters, and its probabilities.

    It is what is really added: a sum, whatever the adversary takes.
    """
    ripple = sum_ripple(settings.block.item(), settings.n_siblings.item())
    return _noise_window(settings.total.item(), ripple)


def block_noise(settings: Settings) -> tuple[IntArray, FloatArray]:
    """Return the noise of the block's count that matters, and its probabilities."""
    return _noise_window(settings.block.item(), np.zeros(1))


@dataclass(frozen=True)
class Grid:
    """The group's and the siblings' releases, relative to k, around one or several truths."""

    group: IntArray
    siblings: IntArray
    group_noise: IntArray
    group_pmf: FloatArray
    siblings_noise: IntArray
    siblings_pmf: FloatArray

    def part(self, truth: Truth, settings: Settings) -> tuple[slice, slice]:
        """Return where the releases around one of the truths are."""
        n = self.group_noise[0] + (0 if settings.group == 0.0 else truth.group)
        s = self.siblings_noise[0] + (0 if settings.block == 0.0 else truth.group - truth.target)
        i, j = int(n - self.group[0]), int(s - self.siblings[0])
        return slice(i, i + self.group_noise.size), slice(j, j + self.siblings_noise.size)


def grid_around(settings: Settings, truths: list[Truth]) -> Grid:
    """Return the smallest grid that holds the releases around all the truths."""
    n, n_pmf = _noise_window(settings.group.item(), np.zeros(1))
    s, s_pmf = siblings_noise(settings)
    groups = [0 if settings.group == 0.0 else t.group for t in truths]
    siblings = [0 if settings.block == 0.0 else t.group - t.target for t in truths]
    near = np.arange(n[0] + min(groups), n[-1] + max(groups) + 1)
    near_siblings = np.arange(s[0] + min(siblings), s[-1] + max(siblings) + 1)
    return Grid(near, near_siblings, n, n_pmf, s, s_pmf)


def _grids(settings: Settings, truths: list[Truth]) -> Iterator[tuple[Grid, list[int]]]:
    """Yield grids with the truths that they serve: one for all if that is no more work."""
    shared = grid_around(settings, truths)
    alone = shared.group_noise.size * shared.siblings_noise.size
    if shared.group.size * shared.siblings.size <= max(len(truths), 1) * alone:
        check_size(shared)
        yield shared, list(range(len(truths)))
        return
    for i, truth in enumerate(truths):
        grid = grid_around(settings, [truth])
        check_size(grid)
        yield grid, [i]


def check_size(grid: Grid) -> None:
    """Refuse more releases than are enumerated."""
    cells = grid.group.size * grid.siblings.size
    if cells > MAX_CELLS:
        raise ArgumentError(
            f"rho_block, rho_group and n_siblings must leave at most {MAX_CELLS} releases to "
            f"enumerate, got {cells}"
        )


def upper_tail(settings: Settings, thresholds: ArrayLike, target: int) -> FloatArray:
    """Return P(d >= threshold), d = target + noise, for whole or infinite thresholds."""
    first = np.clip(np.asarray(thresholds, dtype=float) - target, -(2.0**52), 2.0**52)
    if settings.block == 0.0:
        return np.where(first <= 0.0, 1.0, 0.0)
    law = DiscreteGaussian(0.5 / settings.block.item())
    low, high = float(first.min()), float(first.max())
    if high - low < _TABLE:
        table = np.atleast_1d(law.sf(np.arange(low - 1.0, high)))
        return np.asarray(table[(first - low).astype(np.int64)])
    return np.asarray(law.sf(first - 1.0))


def deciding(
    settings: Settings, thresholds: tuple[ArrayLike, ArrayLike], target: int, ties: str
) -> FloatArray:
    """Return the probability of the decision for k + 1, given the two thresholds of ``model``."""
    above = upper_tail(settings, thresholds[0], target)
    if ties == "as-published":
        return above
    return 0.5 * (above + upper_tail(settings, thresholds[1], target))


def block_thresholds(settings: Settings) -> tuple[FloatArray | float, FloatArray | float]:
    """Return the thresholds of the adversary who reads the block alone."""
    p = settings.prior.item()
    logit = float(np.log(p) - np.log1p(-p))
    if settings.block == 0.0:
        return -np.inf if p >= 0.5 else np.inf, -np.inf if p > 0.5 else np.inf
    return model.threshold(logit, settings.block.item())


def decisions(settings: Settings, truths: list[Truth], ties: str) -> FloatArray:
    """Return, for each truth, P(correct), P(only with hierarchy), P(only without) as columns."""
    out = np.empty((len(truths), 3))
    alone = block_thresholds(settings)
    for grid, members in _grids(settings, truths):
        n, total = grid.group.astype(float)[:, None], grid.siblings.astype(float)[None, :]
        low, high = model.thresholds(settings, n, total)
        for i in members:
            truth = truths[i]
            part = grid.part(truth, settings)
            above = deciding(settings, (low[part], high[part]), truth.target, ties)
            base = float(deciding(settings, alone, truth.target, ties))
            change = above - base if truth.target else base - above
            correct = above if truth.target else 1.0 - above
            values = (correct, np.maximum(change, 0.0), np.maximum(-change, 0.0))
            out[i] = [grid.group_pmf @ value @ grid.siblings_pmf for value in values]
    return out


def marginal_posteriors(settings: Settings, truths: list[Truth]) -> FloatArray:
    """Return the posterior of each truth averaged over the releases that it gives."""
    out = np.empty(len(truths))
    average = _average_published if settings.published else _average_coherent
    for grid, members in _grids(settings, truths):
        for i in members:
            rows, columns = grid.part(truths[i], settings)
            n = grid.group[rows].astype(float)[:, None]
            total = grid.siblings[columns].astype(float)[None, :]
            value = average(settings, n, total, truths[i].target)
            out[i] = grid.group_pmf @ value @ grid.siblings_pmf
    return out


def _average_coherent(
    settings: Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    """Average over the block's release: that of one noisy count, whose prior is what (n, S) say."""
    p, a = settings.prior, settings.block.item()
    evidence = model.group_evidence(settings, n, total)
    with np.errstate(over="ignore", under="ignore"):
        odds = np.exp(np.log(p) - np.log1p(-p) + evidence)
        belief = 1.0 / (1.0 + 1.0 / odds) if target else 1.0 / (1.0 + odds)
    if a == 0.0:
        return np.asarray(belief)
    return np.asarray(np.minimum(marginal_ratio(a, np.maximum(belief, 1e-300)) * belief, 1.0))


def _average_published(
    settings: Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    noise, pmf = block_noise(settings)
    value = np.zeros(np.broadcast_shapes(n.shape, total.shape))
    for eta, weight in zip(noise.tolist(), pmf.tolist(), strict=True):
        d = np.array(float(eta + target) if settings.block else 0.0)
        posterior = model.target_probability(settings, d, n, total)
        value += weight * (posterior if target else 1.0 - posterior)
    return value
