"""Tables from which the two-level Gibbs sampler draws: everything that does not change."""

import numpy as np
from scipy import special

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.distributions.log_table import LogTable
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.sampling._kernels import TwoLevelTables

_TAIL = 50.0  # weights below e**-50 of the peak are never drawn: far below one step of a uniform
_GUIDE = 1024  # entries of the table that starts the search of an inverse
_MAX_TABLE = 2**22


def _log_weights(
    centre: float, precision: float, reference: int, lower: int, start: int, table: FloatArray
) -> tuple[int, FloatArray]:
    """Return the log weights of N on a window of N >= lower, relative to the largest.

    ``centre`` is relative to the whole number ``reference``.
    """
    if table.size:
        base = max(start, lower)
        values = np.arange(base, start + table.size)
        log_prior = table[base - start :]
    else:
        mode = max(lower - reference, round(centre))
        lean, fall = mode - centre, _TAIL / precision
        root = np.sqrt(lean * lean + fall)
        right = fall / (lean + root) if lean > 0.0 else root - lean
        left = min(root + lean, float(mode + reference - lower))
        if left + right > _MAX_TABLE:
            raise ArgumentError(
                f"rho_group and rho_block must leave at most {_MAX_TABLE} likely counts of the "
                f"group; with these budgets there are {left + right:.3g}: give a group_prior"
            )
        base = reference + mode - int(np.floor(left))
        values = np.arange(base, reference + mode + int(np.ceil(right)) + 1)
        log_prior = np.zeros(values.size)
    if values.size == 0 or not np.isfinite(log_prior).any():
        return base, np.empty(0)
    # Differences from the likeliest count of the window, so that nothing large cancels.
    nearest = min(max(reference + round(centre), base), int(values[-1]))
    step = (values - nearest).astype(float)
    lean = (nearest - reference) - centre
    log_weight = log_prior - precision * step * (step + 2.0 * lean)
    return base, log_weight - log_weight.max()


def _inverse_tables(windows: list[tuple[int, FloatArray]]) -> tuple[int, FloatArray, IntArray]:
    """Return the common base, the cdfs of N - base given x = 0, 1, and the guides to them."""
    used = [(b, w) for b, w in windows if w.size]
    base = min(b for b, _ in used)
    width = max(b + w.size for b, w in used) - base
    if width > _MAX_TABLE:
        raise ArgumentError(f"the group's likely counts must span at most {_MAX_TABLE}")
    cdf = np.ones((2, width))
    guide = np.zeros((2, _GUIDE), dtype=np.int64)
    for x, (first, log_weight) in enumerate(windows):
        if log_weight.size:
            weight = np.zeros(width)
            with np.errstate(under="ignore"):
                weight[first - base : first - base + log_weight.size] = np.exp(log_weight)
            total = np.cumsum(weight)
            cdf[x] = total / total[-1]
            cdf[x, np.flatnonzero(weight)[-1] :] = 1.0
            guide[x] = np.searchsorted(cdf[x], np.arange(_GUIDE) / _GUIDE, side="right")
    return base, cdf, guide


def two_level_tables(
    counts: tuple[int, int, int],
    weights: tuple[float, float],
    log_odds: float,
    group_prior: LogTable,
    *,
    coherent: bool,
) -> tuple[TwoLevelTables, list[int]]:
    """Return the laws of N given x and of x given N, and the possible x."""
    (n, s, k), (tau_group, tau_siblings) = counts, weights
    start, table = group_prior.start, group_prior.log_pmf
    tau = tau_group + tau_siblings
    if tau == 0.0 and not table.size:
        raise ArgumentError(
            "rho_group or rho_block must be > 0 under a flat group_prior: nothing else bounds "
            "the group's count"
        )
    reference = n if tau_group > 0.0 else s + k
    windows = []
    for x in (0, 1):
        pull = tau_siblings * (s + k + x - reference)  # the group's own residual is n - n
        centre = pull / tau if tau > 0.0 else 0.0
        windows.append(_log_weights(centre, tau, reference, k + x, start, table))
    feasible = [x for x in (0, 1) if windows[x][1].size]
    base, cdf, guide = _inverse_tables(windows)
    group = base + np.arange(cdf.shape[1])
    has_target = special.expit(log_odds + tau_siblings * (2.0 * (group - s - k) - 1.0))
    if coherent:
        has_target[group < k + 1] = 0.0
    return TwoLevelTables(k, base, cdf, guide, has_target), feasible
