"""Risk of one or many released counts, as one labelled result."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.inference import decision_threshold, posterior_probability, risk_ratio
from bayesrisk.risk.count.accuracy import DecisionAccuracy, decision_accuracy
from bayesrisk.risk.count.averages import marginal_risk

# -----------------------------------------------------------------------------
# Attacks that one formula answers: only the meaning of the prior changes (S1.2).


@dataclass(frozen=True)
class Scenario:
    """A question of the adversary, and the meaning of the numbers in it.

    Attributes
    ----------
    name, statement, alternative, knowledge : str
        Name to choose it by; the true statement whose probability is the prior, the posterior and
        so on; what the adversary holds possible instead, and knows before the release.
    """

    name: str
    statement: str
    alternative: str
    knowledge: str

    @classmethod
    def named(cls, name: str) -> Scenario:
        """Return the scenario of a name in ``SCENARIOS``."""
        check.choice(name, "name of the scenario", tuple(SCENARIOS))
        return SCENARIOS[name]


SCENARIOS: dict[str, Scenario] = {
    item.name: item
    for item in (
        Scenario(
            "characteristics",
            "the target has the characteristics that the cell counts",
            "the target has other characteristics",
            "the complete records of everyone in the area of the count but the target",
        ),
        Scenario(
            "membership",
            "the target responded to the census",
            "the target did not respond",
            "the complete records of everyone in the area of the count, the target's included, and "
            "that all others responded correctly",
        ),
        Scenario(
            "truthfulness",
            "the target reported the correct characteristics",
            "the target reported other characteristics",
            "the true characteristics of everyone in the area of the count, and that all others "
            "reported them correctly",
        ),
        Scenario(
            "unknown-attribute",
            "the target's unknown attribute has the value that the cell counts",
            "the target's unknown attribute has another value",
            "the complete records of everyone in the area of the count, but for one attribute of "
            "the target",
        ),
    )
}


@displayed
@dataclass(frozen=True)
class BlockRisk(Tabular):
    """Prior, posterior and their ratio for released counts, with what to compare them with.

    The numbers are exact (no sampling); arrays have one common shape.

    Attributes
    ----------
    noisy_count, known_count : ndarray of int64
        The release, and the others known to be in the cell.
    sigma2 : ndarray
        Scale parameter of the noise.
    posterior, risk_ratio : ndarray
        Belief after the release, and posterior over prior.
    decision_threshold : ndarray of int64
        The release from which the adversary's best guess includes the target.
    marginal_risk : ndarray
        Ratio averaged over all releases that the noise could have produced, if the target is in
        the cell.
    decisions : DecisionAccuracy
        How often the best guess "in the cell" is right over those releases, and how often it is
        without a release.
    scenario : Scenario
        What the statement is.
    """

    noisy_count: IntArray
    known_count: IntArray
    sigma2: FloatArray
    posterior: FloatArray
    risk_ratio: FloatArray
    decision_threshold: IntArray
    marginal_risk: FloatArray
    decisions: DecisionAccuracy
    scenario: Scenario

    @property
    def prior(self) -> FloatArray:
        """Belief before the release: the baseline."""
        return self.decisions.prior

    @property
    def decision(self) -> IntArray:
        """The adversary's best guess of the count."""
        return self.known_count + (self.noisy_count >= self.decision_threshold)

    @property
    def marginal_posterior(self) -> FloatArray:
        """Posterior averaged over releases, if the target is in the cell."""
        return np.minimum(self.marginal_risk * self.prior, 1.0)

    def _answer(self) -> list[str]:
        if not self.prior.size:
            return ["No release."]
        peak = int(np.argmax(self.risk_ratio))
        release, prior, posterior, ratio = (
            number(a.flat[peak])
            for a in (self.noisy_count, self.prior, self.posterior, self.risk_ratio)
        )
        first = (
            f"A release of {release} moves the belief from {prior} to {posterior} ({ratio}-fold)."
        )
        if self.prior.size > 1:
            first = (
                f"{self.prior.size:,} releases with ratios of posterior to prior of "
                f"{span(self.risk_ratio)}; the largest is that of {release} with prior {prior}, "
                f"which moves the belief to {posterior}."
            )
        return [
            first,
            "Over all releases that the noise could have produced, if the target is in the cell, "
            f"the mean posterior is {span(self.marginal_risk)} times the prior.",
            f"The best guess is right with probability {span(self.decisions.accuracy)}; without a "
            f"release with {span(self.decisions.baseline)}.",
            "Exact: nothing was sampled.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each released count and setting."""
        return pd.DataFrame(self._columns())

    def to_rows(self) -> list[dict[str, float]]:
        """Return the rows of :meth:`to_frame` as Python numbers by name, without loading pandas."""
        columns = {name: values.tolist() for name, values in self._columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _columns(self) -> dict[str, NDArray[Any]]:
        names = (
            *("noisy_count", "known_count", "sigma2", "prior", "posterior", "risk_ratio"),
            *("decision", "decision_threshold", "marginal_posterior", "marginal_risk"),
        )
        columns = {name: getattr(self, name).ravel() for name in names}
        return columns | {
            "correct_decision_probability": self.decisions.found.ravel(),
            "decision_accuracy": self.decisions.accuracy.ravel(),
            "decision_baseline": self.decisions.baseline.ravel(),
        }


def block_risk(
    noisy_count: ArrayLike,
    *,
    rho: ArrayLike | Fraction | None = None,
    prior: ArrayLike | Fraction,
    known_count: ArrayLike = 0,
    sensitivity: ArrayLike | Fraction = 1.0,
    sigma2: ArrayLike | Fraction | None = None,
    scenario_name: str = "characteristics",
) -> BlockRisk:
    """Return everything there is to say about the risk of released counts.

    Parameters
    ----------
    noisy_count : array_like of int
        Released counts.
    rho, prior, known_count, sensitivity, sigma2 : array_like
        As for :func:`posterior_probability`.
    scenario_name : str, default "characteristics"
        What the adversary wants to know; see :meth:`Scenario.named`.

    Examples
    --------
    >>> result = block_risk([1, 3], rho=0.0992264, prior=0.5)
    >>> result.to_frame()[["noisy_count", "prior", "posterior", "risk_ratio"]].round(3)
       noisy_count  prior  posterior  risk_ratio
    0            1    0.5      0.525       1.050
    1            3    0.5      0.622       1.243
    """
    check.choice(scenario_name, "scenario_name", tuple(SCENARIOS))
    noise = {"rho": rho, "sensitivity": sensitivity, "sigma2": sigma2}
    settings: dict[str, Any] = {**noise, "prior": prior}
    shifted = {**settings, "known_count": known_count}
    accuracy = decision_accuracy(**settings)
    columns = {
        "noisy_count": check.count_array(noisy_count, "noisy_count"),
        "known_count": check.count_array(known_count, "known_count", lower=0),
        "sigma2": 0.5 / check.cell_precision(rho, sigma2, sensitivity),
        "posterior": posterior_probability(noisy_count, **shifted),
        "risk_ratio": risk_ratio(noisy_count, **shifted),
        "decision_threshold": decision_threshold(**shifted),
        "marginal_risk": marginal_risk(**settings),
    }
    halves = (accuracy.prior, accuracy.accuracy, accuracy.baseline, accuracy.found)
    arrays: list[Any] = list(np.broadcast_arrays(*columns.values(), *halves, accuracy.cleared))
    named = dict(zip(columns, arrays[:7], strict=True))
    return BlockRisk(
        **named, decisions=DecisionAccuracy(*arrays[7:]), scenario=SCENARIOS[scenario_name]
    )
