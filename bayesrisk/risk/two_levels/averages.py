"""Risk from releases of two levels, before they are drawn: averages over releases, given the truth.

The truth enters here and only here: the block count, k or k + 1, and the group count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk.answers import Estimate
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import (
    Question,
    drawn_answers,
    without_hierarchy,
)


@displayed
@dataclass(frozen=True)
class HierarchicalRisk:
    """An average over the releases of two levels, given the truth.

    Attributes
    ----------
    quantity : str
        What is averaged: ``"correct decision"``, ``"posterior of the truth"`` or
        ``"decision accuracy"``.
    value : ndarray
        The average, in [0, 1].
    without_hierarchy : ndarray
        The same for the adversary who reads the block alone.
    without_release : ndarray
        The same for the adversary who reads nothing and goes by the prior: the baseline.
    standard_error : ndarray
        Monte Carlo error of ``value``; 0 where it was enumerated.
    truncation_bound : float
        Bound on the error of ``value`` by releases left out of the enumeration; 0 where drawn.
    status : str
        ``"exact"`` or ``"monte-carlo"``.
    releases : int
        Number of releases drawn for each value; 0 where enumerated.
    settings : pandas.DataFrame
        Truth and settings, one row for each value.
    provenance : dict
        Group prior, conditionals, noise of the siblings, seed and version.
    """

    quantity: str
    value: FloatArray
    without_hierarchy: FloatArray
    without_release: FloatArray
    standard_error: FloatArray
    truncation_bound: float
    status: str
    releases: int
    settings: pd.DataFrame
    provenance: dict[str, Any]

    def estimate(self, confidence: float) -> Estimate:
        """Return the average with its error and an interval of the normal law.

        Where the releases were enumerated the interval has no width.
        """
        return Estimate.normal(
            self.value,
            self.standard_error,
            confidence=confidence,
            method=self.status,
            limits=(0.0, 1.0),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each value, with truth and settings.

        Returns
        -------
        pandas.DataFrame
            Settings, ``value``, ``without_hierarchy``, ``without_release`` and
            ``standard_error``.
        """
        return self.settings.assign(
            value=self.value.ravel(),
            without_hierarchy=self.without_hierarchy.ravel(),
            without_release=self.without_release.ravel(),
            standard_error=self.standard_error.ravel(),
        )


def evaluate(question: Question, *, decision: bool) -> tuple[FloatArray, FloatArray]:
    """Return the average that is asked for, enumerated or drawn, and its Monte Carlo error."""
    size = int(np.prod(question.shape))
    value, error = np.empty(size), np.zeros(size)
    if question.method == "exact":
        for one, truths, members in question.groups():
            if decision:
                value[members] = grid.decisions(one, truths, question.ties)[:, 0]
            else:
                value[members] = grid.marginal_posteriors(one, truths)
    else:
        mean, errors = drawn_answers(question)
        column = 0 if decision else 3
        value, error = mean[:, column], errors[:, column]
    return np.minimum(value, 1.0).reshape(question.shape), error.reshape(question.shape)


def average_of(question: Question, *, decision: bool) -> HierarchicalRisk:
    """Return the probability of a correct decision, or the posterior of the truth, averaged."""
    value, error = evaluate(question, decision=decision)
    return HierarchicalRisk(
        quantity="correct decision" if decision else "posterior of the truth",
        value=value,
        without_hierarchy=without_hierarchy(question, decision=decision),
        without_release=_without_release(question, decision=decision),
        standard_error=error,
        truncation_bound=grid.TRUNCATION if question.method == "exact" else 0.0,
        status=question.method,
        releases=question.releases,
        settings=question.settings(),
        provenance=question.provenance,
    )


def _without_release(question: Question, *, decision: bool) -> FloatArray:
    """Return the prior of the truth, or whether a guess by the prior alone is right."""
    there = question.arrays["block_count"] > question.arrays["known_count"]
    belief = np.where(there, question.arrays["prior"], 1.0 - question.arrays["prior"])
    if not decision:
        return np.asarray(belief, dtype=np.float64)
    coin = there if question.ties == "as-published" else 0.5
    by_prior = np.where(belief == 0.5, coin, belief > 0.5)
    return np.asarray(by_prior, dtype=np.float64)
