"""Risk of one count if the adversary assumes a wrong noise law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import Noise
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.count.averages import single_noise

_MAX_WRONG_RELEASES = 2**22
#: Beliefs that differ by less are one.
_SAME = 1e-12


@displayed
@dataclass(frozen=True, eq=False)
class MisspecifiedRisk(Tabular):
    """Beliefs under a wrong noise law for each release, beside the correct beliefs.

    Attributes
    ----------
    prior : float
        Prior probability p that the target is in the cell.
    release : ndarray of int64
        Released count less the known count.
    probability, probability_if_there : ndarray
        Probability of the release under the true law, with the prior, or with the target present.
    believed_log_odds, correct_log_odds : ndarray
        Log odds of present against absent: those that the adversary computes from the release, and
        those under the true law.
    left_out : float
        Bound on the probability of releases that are not listed, hence on the error of every
        average.
    """

    prior: float
    release: IntArray
    probability: FloatArray
    probability_if_there: FloatArray
    believed_log_odds: FloatArray
    correct_log_odds: FloatArray
    left_out: float

    def _answer(self) -> list[str]:
        return [
            f"If the target is there, the belief grows {number(self.expected_risk)} times on "
            f"average; with the true law it would be {number(self.correct_risk)} times.",
            f"Over all releases it is {number(self.mean_belief)} on average where "
            f"{number(self.prior)} is true, and off by {number(self.mean_error)} on average.",
        ]

    @property
    def believed(self) -> FloatArray:
        """Posterior that the adversary computes from each release."""
        return np.asarray(special.expit(self.believed_log_odds))

    @property
    def correct(self) -> FloatArray:
        """Posterior under the true law."""
        return np.asarray(special.expit(self.correct_log_odds))

    @property
    def expected_risk(self) -> float:
        """Average ratio of believed posterior to prior, if the target is in the cell."""
        return float(self.probability_if_there @ self.believed) / self.prior

    @property
    def correct_risk(self) -> float:
        """Average ratio of correct posterior to prior, if the target is there (marginal risk)."""
        return float(self.probability_if_there @ self.correct) / self.prior

    @property
    def mean_belief(self) -> float:
        """Average belief over all releases; equal to the prior if the adversary knows the law."""
        return float(self.probability @ self.believed)

    @property
    def mean_error(self) -> float:
        """Average absolute difference of belief and correct posterior over releases."""
        return float(self.probability @ np.abs(self.believed - self.correct))

    def calibration(self) -> pd.DataFrame:
        """Return, for each belief, its probability and the share of targets that are present.

        Columns are ``believed`` (ascending; values within 1e-12 are merged), ``probability`` and
        ``share_there``. The last is the share of those releases with the target in the cell; it
        equals ``believed`` for a calibrated adversary.
        """
        order = np.argsort(self.believed, kind="stable")
        values, weight = self.believed[order], self.probability[order]
        weight_present = weight * self.correct[order]
        starts = np.flatnonzero(np.concatenate(([True], np.diff(values) > _SAME)))
        mass = np.add.reduceat(weight, starts)
        share = np.add.reduceat(weight_present, starts) / mass
        columns = {"believed": values[starts], "probability": mass, "share_there": share}
        return pd.DataFrame(columns)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each release."""
        names = ("release", "probability", "probability_if_there", "believed", "correct")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def _log_likelihoods(law: NoiseLaw, release: IntArray) -> FloatArray:
    """Return the log probability of each release without the target and with it."""
    return np.stack([np.asarray(law.logpmf(release - x), dtype=float) for x in (0, 1)])


def misspecified_risk(
    *,
    true_noise: NoiseLaw | Noise,
    believed_noise: NoiseLaw | Noise,
    prior: float,
    left_out: float = 1e-15,
) -> MisspecifiedRisk:
    r"""Return the beliefs of an adversary who assumes the wrong noise law for a count.

    With f the true law of the noise and g the believed one,

    .. math:: \pi_g(y) = \frac{p\, g(y - k - 1)}{p\, g(y - k - 1) + (1 - p)\, g(y - k)}, \quad
        R = \sum_y f(y - k - 1)\, \frac{\pi_g(y)}{p}

    The true posterior is the same with f: the share of releases y with the target in the cell.
    Source: Kazan and Reiter (arXiv:2204.04253), equations (3.1) to (3.4), with f = g.

    An adversary who assumes too little noise is too sure; one who assumes too much is too cautious.
    The known count cancels.

    Parameters
    ----------
    true_noise : NoiseLaw or Noise
        Law of the added noise, or its budget.
    believed_noise : NoiseLaw or Noise
        Law that the adversary assumes: another scale, or another law.
    prior : float
        Prior probability p that the target is in the cell, in (0, 1); the adversary knows it.
    left_out : float, default 1e-15
        Largest probability of releases that are left out, in (0, 1e-3].

    Returns
    -------
    MisspecifiedRisk
        Releases with believed and true posteriors; expected risk, mean belief, error and
        calibration. It is exact but for ``left_out`` and rounding. At most 2**22 releases are
        listed, all of which the believed law must allow.

    Examples
    --------
    The noise of a redistricting cell as produced, if the adversary assumes the paper's:

    >>> result = misspecified_risk(
    ...     true_noise=Noise(rho=0.0992264, sensitivity=2**0.5),
    ...     believed_noise=Noise(rho=0.0992264),
    ...     prior=1 / 10,
    ... )
    >>> print(round(result.expected_risk, 4), round(result.correct_risk, 4))
    1.2402 1.0821
    >>> print(round(result.mean_belief, 4))
    0.1067
    """
    true, believed = (
        single_noise(noise, name)
        for noise, name in ((true_noise, "true_noise"), (believed_noise, "believed_noise"))
    )
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    cut = check.scalar(left_out, "left_out", lower=0.0, upper=1e-3, bounds="(]")
    first, last = float(np.asarray(true.ppf(0.5 * cut))), float(np.asarray(true.isf(0.5 * cut))) + 1
    if not last - first < _MAX_WRONG_RELEASES:
        raise ArgumentError(
            f"true_noise must give at most {_MAX_WRONG_RELEASES} releases, got {last - first + 1:g}"
        )
    release = np.arange(int(first), int(last) + 1)
    logs = _log_likelihoods(true, release)
    with np.errstate(under="ignore"):
        happens = np.exp(logs).sum(axis=0) > 0.0
        release, logs = release[happens], logs[:, happens]
        without, present = np.exp(logs)
    believed_logs = _log_likelihoods(believed, release)
    impossible = np.isneginf(believed_logs.max(axis=0))
    if impossible.any():
        raise ArgumentError(
            "believed_noise must hold every release of true_noise possible, got none for "
            f"{release[impossible][0]} above the known count"
        )
    log_odds = np.log(p) - np.log1p(-p)
    return MisspecifiedRisk(
        prior=p,
        release=release,
        probability=(1.0 - p) * without + p * present,
        probability_if_there=present,
        believed_log_odds=log_odds + (believed_logs[1] - believed_logs[0]),
        correct_log_odds=log_odds + (logs[1] - logs[0]),
        left_out=cut,
    )
