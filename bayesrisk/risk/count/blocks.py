"""Questions about released counts in words, and one result with all answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatArray, IntArray


@dataclass(frozen=True)
class Scenario:
    """The adversary's question in words, and the meaning of the numbers in it.

    Attributes
    ----------
    name, statement, alternative, knowledge : str
        Name to choose it by; the true statement, whose prior and posterior probability are given;
        the alternative; and the adversary's prior knowledge.
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
class DecisionAccuracy(Tabular):
    """Rate of correct best guesses, beside that without any release.

    Arrays have one common shape.  ``accuracy`` is ``prior * found + (1 - prior) * cleared``.

    Attributes
    ----------
    prior, accuracy : ndarray
        Probability p that the target is in the cell, believed before the release; and probability
        that the best guess is correct.
    baseline : ndarray
        max(p, 1 - p): the rate of always guessing the more probable, without a release.
    found, cleared : ndarray
        Probability of the guess "in the cell" if the target is in it (the
        :func:`correct_decision_probability`), and of "not in the cell" if it is not.
    """

    prior: FloatArray
    accuracy: FloatArray
    baseline: FloatArray
    found: FloatArray
    cleared: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting."""
        return pd.DataFrame({f.name: np.ravel(getattr(self, f.name)) for f in fields(self)})


def combine(prior: FloatArray, detected: FloatArray, cleared: FloatArray) -> DecisionAccuracy:
    """Return the accuracy from its rates for present and absent targets, at least the baseline."""
    p, detected, cleared = np.broadcast_arrays(prior, detected, cleared)
    baseline = np.maximum(p, 1.0 - p)
    accuracy = np.clip(p * detected + (1.0 - p) * cleared, baseline, 1.0)
    return DecisionAccuracy(p, accuracy, baseline, detected, cleared)


@displayed
@dataclass(frozen=True)
class BlockRisk(Tabular):
    """Prior, posterior and their ratio for released counts, with baselines.

    The numbers are exact (no sampling); arrays have one common shape.

    Attributes
    ----------
    noisy_count, known_count : ndarray of int64
        The release, and the number of other people known to be in the cell.
    sigma2 : ndarray
        Scale parameter of the noise.
    posterior, risk_ratio : ndarray
        Belief after the release, and posterior over prior.
    decision_threshold : ndarray of int64
        The smallest release for which the adversary's best guess includes the target.
    marginal_risk : ndarray
        Average ratio over all releases that the noise can produce, if the target is in the cell.
    decisions : DecisionAccuracy
        How often the best guess is correct over those releases, and without a release.
    scenario : Scenario
        The statement in words.
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
        """The adversary's most probable count."""
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
        names = ("noisy_count", "prior", "posterior", "risk_ratio", "decision", "marginal_risk")
        return self.to_frame()[[*names, "decision_accuracy", "decision_baseline"]]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each released count and setting."""
        return pd.DataFrame(self._columns())

    def to_rows(self) -> list[dict[str, float]]:
        """Return the rows of :meth:`to_frame` as dictionaries of Python numbers, without pandas."""
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
