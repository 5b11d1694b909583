"""Posterior of the group count for one release and one setting."""

import numpy as np

from bayesrisk._types import FloatArray
from bayesrisk.distributions.gaussian_sums import FLAT as NO_RIPPLE
from bayesrisk.distributions.gaussian_sums import sum_ripple
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import _kernels as kernels
from bayesrisk.inference.two_levels import model


def _window(settings: model.Settings, n: float, total: float, reach: float) -> tuple[int, int]:
    """Return the first group count minus k that matters, and how many."""
    k, table = settings.known_count.item(), settings.group_prior
    if not table.flat:
        return table.start - k, table.log_pmf.size
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
    first = int(max(0.0, np.floor(centre - width)))
    return first, int(max(0.0, np.ceil(centre)) + np.ceil(width)) + 1 - first


def group_pmf(
    settings: model.Settings, block: float, group: float, siblings: float
) -> tuple[int, FloatArray]:
    """Return the smallest group count and the probabilities from there on.

    Given the block count N follows A_i(t); the two laws are mixed by the posterior of the block
    count, under the coherent model and, by stationarity, under the published conditionals.
    """
    k = settings.known_count.item()
    ripple = NO_RIPPLE
    if settings.exact_noise:
        ripple = sum_ripple(settings.block.item(), settings.n_siblings.item(), name="n_siblings")
    d, n, total = np.array(block - k), np.array(group - k), np.array(siblings)
    pi = float(model.target_probability(settings, d, n, total))
    reach = REACH + float(np.ptp(ripple))
    window = _window(settings, n.item(), total.item(), reach)
    weights = kernels.group_weights(
        n.item(),
        total.item(),
        settings.group.item(),
        settings.total.item(),
        kernels.Laws(ripple, settings.group_prior.log_pmf, reach),
        window,
    )
    impossible = max(-window[0], 0)
    without, with_target = weights[:, impossible:]
    pmf = (1.0 - pi) * (without / without.sum())
    if pi > 0.0:
        pmf = pmf + pi * (with_target / with_target.sum())
    return max(window[0], 0) + k, pmf
