"""Risk of one noisy count by its budget: the averages over releases, as a frame and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatArray, Number
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.count.question import CountRisk

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes, Panels, Where

_PANELS = ("posterior", "ratio", "found")
_MOST = 2**22  # pairs of a budget and a prior


@displayed
@dataclass(frozen=True, eq=False)
class RiskCurve(Tabular):
    """Averages over the releases of a count, for each budget with each prior.

    Arrays have one axis, a budget after the other and in each the priors.

    Attributes
    ----------
    rho, prior : ndarray
        Budget of the count, and probability p that the target is in its cell before the release.
    marginal_posterior, marginal_risk : ndarray
        Belief after a release, averaged over releases if the target is in the cell, and that
        average over the prior (:func:`marginal_posterior`, :func:`marginal_risk`).
    correct_decision_probability : ndarray
        Probability that the target is found, if it is in the cell.
    decision_accuracy, decision_baseline : ndarray
        Rate of right best guesses, and the rate without a release (:func:`decision_accuracy`).
    """

    rho: FloatArray
    prior: FloatArray
    marginal_posterior: FloatArray
    marginal_risk: FloatArray
    correct_decision_probability: FloatArray
    decision_accuracy: FloatArray
    decision_baseline: FloatArray

    def _answer(self) -> list[str]:
        peak = int(np.argmax(self.marginal_risk))
        prior, after, rho = (
            number(a[peak]) for a in (self.prior, self.marginal_posterior, self.rho)
        )
        return [
            f"On average over releases the belief that the target is in the cell, if it is, grows "
            f"{span(self.marginal_risk)}-fold.",
            f"It grows most at rho {rho}: from {prior} to {after}.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each budget and prior, with the attributes as columns."""
        return pd.DataFrame({field.name: getattr(self, field.name) for field in fields(self)})

    def plot(
        self,
        *,
        panel: str | None = None,
        budgets: Mapping[str, float] | None = None,
        ax: Where = None,
    ) -> Panels | Axes:
        """Draw the curves: one line for each prior, rho on a logarithmic axis.

        ``panel`` is ``"posterior"``, ``"ratio"`` or ``"found"`` (the probability of being found);
        without it the first two stand side by side.  ``budgets`` are marked by their names.
        """
        from bayesrisk.plotting import plot_correct_decision, plot_risk  # slow to import

        if panel is not None:
            check.choice(panel, "panel", _PANELS)
        frame = self.to_frame()
        if panel == "found":
            return plot_correct_decision(frame, budgets=budgets, ax=cast("Axes", ax))
        return plot_risk(frame, panel=panel, budgets=budgets, ax=ax)


def risk_curve(rho: ArrayLike, prior: ArrayLike, *, sensitivity: Number = 1.0) -> RiskCurve:
    r"""Return the average risk of a noisy count for each budget with each prior.

    .. math:: R(\rho, p) = \sum_y f(y - k - 1)\, \pi(y) / p

    with f the discrete Gaussian of sigma2 = sensitivity**2 / (2 rho), k the others in the cell and
    pi(y) the posterior after the release y.  Source: Kazan and Reiter (arXiv:2204.04253),
    equations (3.3) to (3.6).

    Parameters
    ----------
    rho : array_like
        Budgets of the count, > 0, of any number.
    prior : array_like
        Probabilities that the target is in the cell, in (0, 1): each is taken with each budget.
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to, as for :func:`rho_for_risk`.

    Returns
    -------
    RiskCurve
        Numbers, ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> curve = risk_curve([0.01, 0.1, 1.0], prior=["1/10", "1/864"])
    >>> curve.to_frame()[["rho", "prior", "marginal_risk"]].round(3).head(3)
        rho  prior  marginal_risk
    0  0.01  0.100          1.016
    1  0.01  0.001          1.020
    2  0.10  0.100          1.169
    """
    budgets = np.ravel(check.real_array(rho, "rho", lower=0.0, bounds="()"))
    priors = np.ravel(check.probability(prior, "prior"))
    if budgets.size * priors.size > _MOST:
        raise ArgumentError(
            "rho", f"and prior must make at most {_MOST:,} pairs", shown=budgets.size * priors.size
        )
    by_rho, by_prior = np.repeat(budgets, priors.size), np.tile(priors, budgets.size)
    count = CountRisk(rho=by_rho, prior=by_prior, sensitivity=sensitivity)
    decisions = count.accuracy()
    return RiskCurve(
        by_rho,
        by_prior,
        np.asarray(count.marginal_posterior()),
        np.asarray(count.marginal_risk()),
        np.asarray(count.correct_decision()),
        decisions.accuracy,
        decisions.baseline,
    )
