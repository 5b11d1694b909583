"""Averages over the releases of two levels, given the truth: sums over a bounded grid, or draws.

The decision depends on the block's release through a threshold, which is a function of the other
two releases (n, S).  So a probability of decisions is a sum over (n, S) of tails of the block's
noise.  Noise is cut where each side weighs less than ``exp(-_REACH)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import FloatArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.gaussian_sums import sum_ripple
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.risk.count.kernels import marginal_ratio

_REACH = 38.0
#: Bound on the probability of the releases left out: three laws, two sides each.
TRUNCATION = float(6.0 * np.exp(-_REACH))
MAX_CELLS = 2**24
_CHUNK = 2**16
_TABLE = 2**20


@dataclass(frozen=True)
class Truth:
    """True counts relative to the known count: the target's (0 or 1) and the group's."""

    target: int
    group: int


def _noise_window(precision: float, ripple: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the values of a noise that matter, and their probabilities; one value if silent."""
    if precision == 0.0:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    reach = np.sqrt((_REACH + float(np.ptp(ripple))) / precision) + 1.0
    if not reach < MAX_CELLS:
        raise ArgumentError(
            f"rho_block and rho_group must leave noise of fewer than {MAX_CELLS} values "
            f"(use method='monte-carlo'), got {reach:g}"
        )
    x = np.arange(-int(reach), int(reach) + 1)
    log_weight = ripple[x % ripple.size] - precision * x.astype(float) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return x, weight / weight.sum()


def _sibling_ripple(settings: model.Settings) -> FloatArray:
    """Return the ripple of the noise that is really added: a sum, whatever the adversary takes."""
    return sum_ripple(settings.block.item(), settings.n_siblings.item(), name="n_siblings")


def siblings_noise(settings: model.Settings) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the noise of the siblings' total that matters, and its probabilities."""
    return _noise_window(settings.total.item(), _sibling_ripple(settings))


def block_noise(settings: model.Settings) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the noise of the block's count that matters, and its probabilities."""
    return _noise_window(settings.block.item(), np.zeros(1))


@dataclass(frozen=True)
class Grid:
    """The group's and the siblings' releases, relative to k, around one or several truths."""

    group: NDArray[np.int64]
    siblings: NDArray[np.int64]
    group_noise: NDArray[np.int64]
    group_pmf: FloatArray
    siblings_noise: NDArray[np.int64]
    siblings_pmf: FloatArray

    def part(self, truth: Truth, silent_group: bool, silent_block: bool) -> tuple[slice, slice]:
        """Return where the releases around one of the truths are."""
        n = self.group_noise[0] + (0 if silent_group else truth.group)
        s = self.siblings_noise[0] + (0 if silent_block else truth.group - truth.target)
        i, j = int(n - self.group[0]), int(s - self.siblings[0])
        return slice(i, i + self.group_noise.size), slice(j, j + self.siblings_noise.size)


def around(settings: model.Settings, truths: list[Truth]) -> Grid:
    """Return the smallest grid that holds the releases around all the truths."""
    n, n_pmf = _noise_window(settings.group.item(), np.zeros(1))
    s, s_pmf = siblings_noise(settings)
    groups = [0 if settings.group == 0.0 else t.group for t in truths]
    others = [0 if settings.block == 0.0 else t.group - t.target for t in truths]
    return Grid(
        group=np.arange(n[0] + min(groups), n[-1] + max(groups) + 1),
        siblings=np.arange(s[0] + min(others), s[-1] + max(others) + 1),
        group_noise=n,
        group_pmf=n_pmf,
        siblings_noise=s,
        siblings_pmf=s_pmf,
    )


def _grids(settings: model.Settings, truths: list[Truth]) -> Iterator[tuple[Grid, list[int]]]:
    """Yield grids with the truths that they serve: one for all if that is no more work."""
    shared = around(settings, truths)
    alone = shared.group_noise.size * shared.siblings_noise.size
    if shared.group.size * shared.siblings.size <= max(len(truths), 1) * alone:
        check_size(shared)
        yield shared, list(range(len(truths)))
        return
    for i, truth in enumerate(truths):
        grid = around(settings, [truth])
        check_size(grid)
        yield grid, [i]


def check_size(grid: Grid) -> None:
    cells = grid.group.size * grid.siblings.size
    if cells > MAX_CELLS:
        raise ArgumentError(
            f"rho_block, rho_group and n_siblings must leave at most {MAX_CELLS} releases to "
            f"enumerate (use method='monte-carlo'), got {cells}"
        )


def upper_tail(settings: model.Settings, thresholds: Any, target: int) -> FloatArray:
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
    settings: model.Settings, thresholds: tuple[Any, Any], target: int, ties: str
) -> FloatArray:
    """Return the probability of the decision for k + 1, given the two thresholds of ``model``."""
    above = upper_tail(settings, thresholds[0], target)
    if ties == "as-published":
        return above
    return 0.5 * (above + upper_tail(settings, thresholds[1], target))


def block_thresholds(settings: model.Settings) -> tuple[Any, Any]:
    """Return the thresholds of the adversary who reads the block alone."""
    p = settings.prior.item()
    logit = float(np.log(p) - np.log1p(-p))
    if settings.block == 0.0:
        return -np.inf if p >= 0.5 else np.inf, -np.inf if p > 0.5 else np.inf
    return model.threshold(logit, settings.block.item())


def decisions(settings: model.Settings, truths: list[Truth], ties: str) -> FloatArray:
    """Return, for each truth, P(correct), P(only with hierarchy), P(only without) as columns."""
    out = np.empty((len(truths), 3))
    silent = bool(settings.group == 0.0), bool(settings.block == 0.0)
    alone = block_thresholds(settings)
    for grid, members in _grids(settings, truths):
        n, total = grid.group.astype(float)[:, None], grid.siblings.astype(float)[None, :]
        low, high = model.thresholds(settings, n, total)
        for i in members:
            truth = truths[i]
            part = grid.part(truth, *silent)
            above = deciding(settings, (low[part], high[part]), truth.target, ties)
            base = float(deciding(settings, alone, truth.target, ties))
            change = above - base if truth.target else base - above
            correct = above if truth.target else 1.0 - above
            for column, value in enumerate(
                (correct, np.maximum(change, 0.0), np.maximum(-change, 0.0))
            ):
                out[i, column] = grid.group_pmf @ value @ grid.siblings_pmf
    return out


def marginal_posteriors(settings: model.Settings, truths: list[Truth]) -> FloatArray:
    """Return the posterior of each truth averaged over the releases that it gives."""
    out = np.empty(len(truths))
    silent = bool(settings.group == 0.0), bool(settings.block == 0.0)
    average = _average_published if settings.published else _average_coherent
    for grid, members in _grids(settings, truths):
        for i in members:
            rows, columns = grid.part(truths[i], *silent)
            n = grid.group[rows].astype(float)[:, None]
            total = grid.siblings[columns].astype(float)[None, :]
            value = average(settings, n, total, truths[i].target)
            out[i] = grid.group_pmf @ value @ grid.siblings_pmf
    return out


def _average_coherent(
    settings: model.Settings, n: FloatArray, total: FloatArray, target: int
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


def block_marginal(settings: model.Settings, target: int) -> float:
    """Return the average posterior of the truth for the adversary who reads the block alone."""
    p, a = settings.prior.item(), settings.block.item()
    belief = p if target else 1.0 - p
    return belief if a == 0.0 else min(float(marginal_ratio(a, belief)) * belief, 1.0)


def _average_published(
    settings: model.Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    noise, pmf = block_noise(settings)
    value = np.zeros(np.broadcast_shapes(n.shape, total.shape))
    for eta, weight in zip(noise.tolist(), pmf.tolist(), strict=True):
        d = np.array(float(eta + target) if settings.block else 0.0)
        posterior = model.target_probability(settings, d, n, total)
        value += weight * (posterior if target else 1.0 - posterior)
    return value


def draw(
    settings: model.Settings, truth: Truth, releases: int, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield releases relative to k, drawn given the truth, in chunks."""
    a, b, m = settings.block.item(), settings.group.item(), settings.n_siblings.item()
    summed = _sibling_ripple(settings).size > 1
    chunk = max(_CHUNK // m, 1) if summed else _CHUNK
    for start in range(0, releases, chunk):
        size = min(chunk, releases - start)
        d = np.zeros(size)
        n, total = np.zeros(size), np.zeros(size)
        if a > 0.0:
            law = DiscreteGaussian(0.5 / a)
            d = truth.target + np.asarray(law.rvs(size, rng), dtype=float)
            noise = np.asarray(law.rvs((size, m), rng)).sum(axis=1) if summed else None
            if noise is None:  # the sum is one discrete Gaussian to double precision
                noise = np.asarray(DiscreteGaussian(0.5 * m / a).rvs(size, rng))
            total = (truth.group - truth.target) + noise.astype(float)
        if b > 0.0:
            n = truth.group + np.asarray(DiscreteGaussian(0.5 / b).rvs(size, rng), dtype=float)
        yield d, n, total


def simulate(
    settings: model.Settings, truth: Truth, releases: int, rng: np.random.Generator, ties: str
) -> tuple[FloatArray, FloatArray]:
    """Return means and standard errors of: correct, gained, lost, posterior of the truth."""
    low, high = block_thresholds(settings)
    if ties == "as-published":
        high = low
    sums, squares = np.zeros(4), np.zeros(4)
    for d, n, total in draw(settings, truth, releases, rng):
        posterior = model.target_probability(settings, d, n, total)
        correct = model.decides(posterior, ties)
        without = 0.5 * ((d >= low).astype(float) + (d >= high))
        if not truth.target:
            correct, without = 1.0 - correct, 1.0 - without
        values = np.stack(
            [
                correct,
                np.maximum(correct - without, 0.0),
                np.maximum(without - correct, 0.0),
                posterior if truth.target else 1.0 - posterior,
            ]
        )
        sums += values.sum(axis=1)
        squares += (values**2).sum(axis=1)
    mean = sums / releases
    variance = np.maximum(squares / releases - mean**2, 0.0) * releases / max(releases - 1, 1)
    # An event never seen, or always, still has an error: one release is added to each side.
    event = (sums[:3] + 1.0) / (releases + 2.0)
    variance[:3] = np.where(variance[:3] == 0.0, event * (1.0 - event), variance[:3])
    return mean, np.sqrt(variance / releases)
