"""How often the adversary's best guess about one noisy count is right, whatever the truth is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk._validation import Number
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.inference.count.decision import threshold_offset

if TYPE_CHECKING:
    import pandas as pd


@displayed
@dataclass(frozen=True)
class DecisionAccuracy:
    """How often the best guess is right, beside what is right without any release.

    Arrays have one common shape.  ``accuracy`` is ``prior * found + (1 - prior) * cleared``.

    Attributes
    ----------
    prior : ndarray
        Probability p that the target is in the cell, as the adversary believes before the release.
    accuracy : ndarray
        Probability that the best guess is right, whether the target is in the cell or not.
    baseline : ndarray
        max(p, 1 - p): always guessing the more probable, without a release.
    found : ndarray
        Probability of the guess "in the cell", if the target is in it: the
        :func:`correct_decision_probability`.
    cleared : ndarray
        Probability of the guess "not in the cell", if the target is not in it.
    """

    prior: FloatArray
    accuracy: FloatArray
    baseline: FloatArray
    found: FloatArray
    cleared: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting.

        Returns
        -------
        pandas.DataFrame
            A column for each array.
        """
        import pandas as pd  # slow to import

        return pd.DataFrame({f.name: np.ravel(getattr(self, f.name)) for f in fields(self)})


def combine(prior: FloatArray, found: FloatArray, cleared: FloatArray) -> DecisionAccuracy:
    """Return the accuracy from its two halves; rounding does not push it below the baseline."""
    p, found, cleared = np.broadcast_arrays(prior, found, cleared)
    baseline = np.maximum(p, 1.0 - p)
    accuracy = np.clip(p * found + (1.0 - p) * cleared, baseline, 1.0)
    return DecisionAccuracy(p, accuracy, baseline, found, cleared)


def decision_accuracy(
    *,
    rho: Number | None = None,
    prior: Number,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
) -> DecisionAccuracy:
    r"""Return how often the adversary's best guess is right, whether or not the target is there.

    .. math:: p\, P(\eta \ge t - 1) + (1 - p)\, P(\eta < t)
        = \sum_y \max\{p\, f(y - k - 1),\ (1 - p)\, f(y - k)\}

    with t the threshold of :func:`decision_threshold`, minus k.  An adversary who ignores the
    release and guesses the more probable is right with probability max(p, 1 - p), the baseline:
    what the release adds is the difference.

    Parameters
    ----------
    rho : array_like, optional
        zCDP budget of the count, > 0; give either it or ``sigma2``.
    prior : array_like
        Probability p that the target is in the cell, in (0, 1).
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to.
    sigma2 : array_like, optional
        Scale parameter of the noise, instead of ``rho`` and ``sensitivity``.

    Returns
    -------
    DecisionAccuracy
        Accuracy, baseline and the two halves, of the broadcast shape; absolute error at most
        4e-13 (the halves: 1e-13 relative).  How ties are decided does not matter to the accuracy.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), equations (3.5) and (3.6), for the decision and for
    ``found``.

    Examples
    --------
    At prior 1/5 the target is hardly ever found, and always guessing "no" is right in 80 %:

    >>> result = decision_accuracy(rho=0.0992264, prior=[1 / 2, 1 / 5])
    >>> result.found.round(5).tolist()
    [0.58886, 0.00175]
    >>> result.accuracy.round(5).tolist(), result.baseline.tolist()
    ([0.58886, 0.80005], [0.5, 0.8])
    """
    precision = check.cell_precision(rho, sigma2, sensitivity)
    p = check.probability(prior, "prior")
    check.broadcast(prior=p, **{check.NOISE: precision})
    noise, threshold = DiscreteGaussian.from_rho(precision), threshold_offset(precision, p)
    found, cleared = noise.sf(threshold - 2.0), noise.cdf(threshold - 1.0)
    return combine(p, np.asarray(found), np.asarray(cleared))
