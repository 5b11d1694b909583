"""Posterior of the group count for one release and one setting."""

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import FloatArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import _kernels as kernels
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.sibling_noise import log_ripple

__all__ = ["group_pmf"]


def _window(settings: model.TwoLevels, n: float, total: float, reach: float) -> FloatArray:
    """Return the group counts minus k that matter."""
    k, table = settings.known_count.item(), settings.group_prior
    if table is not model.FLAT:
        first = table.start - k
        return np.arange(max(first, 0), first + table.log_pmf.size, dtype=float)
    b, c = settings.group.item(), settings.total.item()
    if b + c == 0.0:
        raise ArgumentError(
            "group_pmf needs a release or a proper group_prior: with rho_block = rho_group = 0 "
            "the flat prior has no posterior that sums to 1"
        )
    width = np.sqrt(reach / (b + c)) + 2.0
    if not 2.0 * width <= model.MAX_TERMS:
        raise ArgumentError(
            f"group_pmf must have at most {model.MAX_TERMS} entries, got {2 * width:g}"
        )
    centre = n * (b / (b + c)) + total * (c / (b + c))
    first = max(0.0, np.floor(centre - width))
    return np.arange(first, max(0.0, np.ceil(centre)) + np.ceil(width) + 1.0)


def _log_weights(
    settings: model.TwoLevels, t: FloatArray, n: float, total: float, ripple: NDArray[np.float64]
) -> tuple[FloatArray, FloatArray]:
    """Return log A_0(t) and log A_1(t), as ``_hierarchy_kernels._fill``."""
    table = settings.group_prior
    common = -settings.group.item() * (n - t) ** 2
    if table is not model.FLAT:
        index = (t + settings.known_count.item() - table.start).astype(np.int64)
        common = common + table.log_pmf[index]
    d = total - t

    def log_law(d: FloatArray) -> FloatArray:
        index = d.astype(np.int64) % ripple.size
        return np.asarray(ripple[index] - settings.total.item() * d**2)

    return common + log_law(d), np.where(t >= 1.0, common + log_law(d + 1.0), -np.inf)


def _normalised(log_weights: FloatArray) -> FloatArray:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def group_pmf(
    settings: model.TwoLevels, block: float, group: float, siblings: float
) -> tuple[int, FloatArray]:
    """Return the smallest group count and the probabilities from there on.

    Given the block count N follows A_i(t); the two laws are mixed by the posterior of the block
    count, under the coherent model and, by stationarity, under the published conditionals.
    """
    k = settings.known_count.item()
    ripple = np.zeros(1)
    if settings.exact_noise:
        ripple = log_ripple(settings.block.item(), settings.n_siblings.item())
    d, n, total = np.array(block - k), np.array(group - k), np.array(siblings)
    pi = float(model.target_probability(settings, d, n, total))
    reach = kernels.REACH + float(np.ptp(ripple))
    t = _window(settings, n.item(), total.item(), reach)
    log_0, log_1 = _log_weights(settings, t, n.item(), total.item(), ripple)
    pmf = (1.0 - pi) * _normalised(log_0)
    if pi > 0.0:
        pmf = pmf + pi * _normalised(log_1)
    return int(t[0]) + k, pmf
