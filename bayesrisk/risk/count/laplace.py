"""Risk of one count under discrete Laplace noise, in closed form.

The evidence of a release for X = k + 1 against X = k is one of two values: +1/b from k + 1
upwards, -1/b below.  So there are two posteriors, and every average is a sum of two terms.  The
general form, :func:`marginal_count_posterior`, gives the same by summation; this one holds at any
scale.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk.distributions import DiscreteLaplace
from bayesrisk.risk.count.accuracy import DecisionAccuracy, combine


def _posteriors(scale: float, prior: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return the posterior after a release above, and after one not above, the known count."""
    with np.errstate(over="ignore"):
        decay = np.exp(-1.0 / scale)
        growth = np.exp(1.0 / scale)
        return prior / (prior + (1.0 - prior) * decay), prior / (prior + (1.0 - prior) * growth)


def _share_above(scale: float) -> float:
    """Return P(Y > k | X = k + 1) = P(noise >= 0)."""
    return float(DiscreteLaplace(scale).sf(-1))


def laplace_marginal_posterior(scale: float, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the posterior averaged over all releases, if the target is in the cell."""
    above, below = _posteriors(scale, prior)
    share = _share_above(scale)
    return np.asarray(share * above + (1.0 - share) * below)


def laplace_threshold(scale: float, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest release, minus k, at which the posterior is at least 1/2.

    1, or minus infinity (any release will do), or plus infinity (none does).
    """
    above, below = _posteriors(scale, prior)
    return np.where(below >= 0.5, -np.inf, np.where(above >= 0.5, 1.0, np.inf))


def laplace_correct_decision(scale: float, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability that the target is found, if it is in the cell."""
    threshold = laplace_threshold(scale, prior)
    return np.where(
        np.isneginf(threshold), 1.0, np.where(threshold > 1.0, 0.0, _share_above(scale))
    )


def laplace_accuracy(scale: float, prior: NDArray[np.float64]) -> DecisionAccuracy:
    """Return how often the best guess is right, whether or not the target is in the cell.

    Noise is symmetric: P(Y <= k | X = k) = P(noise <= 0) = P(noise >= 0).
    """
    threshold = laplace_threshold(scale, prior)
    cleared = np.where(
        np.isneginf(threshold), 0.0, np.where(threshold > 1.0, 1.0, _share_above(scale))
    )
    return combine(prior, laplace_correct_decision(scale, prior), cleared)
