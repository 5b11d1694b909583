"""Decisions that the hierarchy sets right or spoils, against the adversary without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.risk.two_levels.averages import AverageAnswer
from bayesrisk.risk.two_levels.releases import Truth, block_thresholds, siblings_noise


@displayed
@dataclass(frozen=True)
class HierarchicalGain(AverageAnswer):
    """Decisions that the group's and the siblings' counts set right, and that they spoil.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    gain, loss : ndarray
        Probability of the releases that are read rightly with the hierarchy and wrongly without,
        and of those read wrongly with it and rightly without.
    with_hierarchy, without_hierarchy : ndarray
        Probability of a correct decision; the difference is ``net``.
    """

    _columns = ("gain", "loss", "net", "with_hierarchy", "without_hierarchy")
    gain: FloatArray
    loss: FloatArray
    with_hierarchy: FloatArray
    without_hierarchy: FloatArray

    @property
    def net(self) -> FloatArray:
        """Gain minus loss."""
        return self.gain - self.loss

    def decision_map(self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike) -> pd.DataFrame:
        """Return the decision for every combination of releases (Figure 4 of Kazan and Reiter).

        One row for each (y, n, S): ``decision`` and ``decision_without`` (the guessed block count;
        k + 1 at a tie), ``change`` ("none", "gain" or "loss"; "tie" where a coin decides for one
        of the two adversaries) and ``probability`` of the release given the truth.
        """
        if self.gain.size != 1:
            raise ArgumentError(
                f"decision_map needs a result for one setting, got {self.gain.size}"
            )
        settings, truths, _ = next(self.question.groups())
        axes = [
            np.unique(check.count_array(values, name).ravel())
            for values, name in ((block, "block"), (group, "group"), (siblings, "siblings"))
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        d, n, total = model.relative_releases(settings, *mesh)
        low, high = model.thresholds(settings, n[:1], total[:1])
        alone = block_thresholds(settings)
        nested, without = d >= low, d >= alone[0]
        tied = (nested & (d < high)) | (without & (d < alone[1]))
        if self.question.ties == "as-published":
            tied = np.zeros_like(tied)
        right = bool(truths[0].target)
        change = np.select(
            [tied, (nested == right) & (without != right), (nested != right) & (without == right)],
            ["tie", "gain", "loss"],
            "none",
        )
        k = settings.known_count.item()
        columns = {
            "block": mesh[0],
            "group": mesh[1],
            "siblings": mesh[2],
            "decision": k + nested.astype(int),
            "decision_without": k + without.astype(int),
            "change": change,
            "probability": _release_probability(settings, truths[0], axes),
        }
        return pd.DataFrame({name: array.ravel() for name, array in columns.items()})


def _release_probability(settings: Settings, truth: Truth, axes: list[IntArray]) -> FloatArray:
    """Return the probability of each (y, n, S) given the truth; what is silent has factor 1."""
    k = settings.known_count.item()
    laws = ((settings.block, k + truth.target), (settings.group, k + truth.group))
    factors = [
        np.asarray(DiscreteGaussian(0.5 / precision, int(centre)).pmf(axis))
        if precision > 0.0
        else np.ones(axis.size)
        for (precision, centre), axis in zip(laws, axes[:2], strict=True)
    ]
    noise, pmf = siblings_noise(settings)
    distance = axes[2] - (truth.group - truth.target)
    inside = (distance >= noise[0]) & (distance <= noise[-1])
    position = np.where(inside, distance - noise[0], 0)
    silent = bool(settings.block == 0.0)
    factors.append(np.ones(axes[2].size) if silent else np.where(inside, pmf[position], 0.0))
    return np.asarray(factors[0][:, None, None] * factors[1][:, None] * factors[2])
