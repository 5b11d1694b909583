"""What the hierarchy changes: decisions gained and lost against the adversary without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk.answers import Estimate
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import Question, drawn_answers


@displayed
@dataclass(frozen=True)
class HierarchicalGain:
    """Decisions that the group's and the siblings' counts set right, and that they spoil.

    Attributes
    ----------
    gain : ndarray
        Probability of the releases that are read rightly with the hierarchy and wrongly without.
    loss : ndarray
        Probability of those read wrongly with it and rightly without.
    with_hierarchy, without_hierarchy : ndarray
        Probability of a correct decision; the difference is ``net``.
    gain_error, loss_error, net_error : ndarray
        Monte Carlo errors; 0 where enumerated.
    truncation_bound : float
        Bound on the error by releases left out of the enumeration; 0 where drawn.
    status : str
        ``"exact"`` or ``"monte-carlo"``.
    releases : int
        Number of releases drawn for each value; 0 where enumerated.
    question : Question
        Truth and settings, checked.
    """

    gain: FloatArray
    loss: FloatArray
    with_hierarchy: FloatArray
    without_hierarchy: FloatArray
    gain_error: FloatArray
    loss_error: FloatArray
    net_error: FloatArray
    truncation_bound: float
    status: str
    releases: int
    question: Question

    @property
    def net(self) -> FloatArray:
        """Gain minus loss."""
        return self.gain - self.loss

    def estimates(self, confidence: float) -> dict[str, Estimate]:
        """Return ``gain``, ``loss`` and ``net`` with their errors and intervals."""
        given: dict[str, Any] = {"confidence": confidence, "method": self.status}
        return {
            "gain": Estimate.normal(self.gain, self.gain_error, limits=(0.0, 1.0), **given),
            "loss": Estimate.normal(self.loss, self.loss_error, limits=(0.0, 1.0), **given),
            "net": Estimate.normal(self.net, self.net_error, limits=(-1.0, 1.0), **given),
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """Group prior, conditionals, noise of the siblings, seed and version."""
        return self.question.provenance

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each truth and setting.

        Returns
        -------
        pandas.DataFrame
            Settings, gain, loss, net, their errors, and the probability of a correct decision
            with and without the hierarchy.
        """
        names = (
            "gain",
            "loss",
            "net",
            "with_hierarchy",
            "without_hierarchy",
            "gain_error",
            "loss_error",
            "net_error",
        )
        columns = {name: np.ravel(getattr(self, name)) for name in names}
        return self.question.settings().assign(**columns)

    def decision_map(self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike) -> pd.DataFrame:
        """Return the decision for every combination of releases (Figure 4 of Kazan and Reiter).

        Parameters
        ----------
        block : array_like of int
            Noisy block counts y.
        group : array_like of int
            Noisy group counts n.
        siblings : array_like of int
            Noisy totals S of the other blocks.

        Returns
        -------
        pandas.DataFrame
            One row for each (y, n, S): ``decision`` and ``decision_without`` (the guessed block
            count; k + 1 at a tie), ``change`` ("none", "gain" or "loss"; "tie" where a coin
            decides for one of the two adversaries) and ``probability`` of the release given the
            truth.
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
        (low, high), alone = (
            model.thresholds(settings, n[:1], total[:1]),
            grid.block_thresholds(settings),
        )
        with_, without = d >= low, d >= alone[0]
        tied = (with_ & (d < high)) | (without & (d < alone[1]))
        if self.question.ties == "as-published":
            tied = np.zeros_like(tied)
        right = bool(truths[0].target)
        change = np.select(
            [tied, (with_ == right) & (without != right), (with_ != right) & (without == right)],
            ["tie", "gain", "loss"],
            "none",
        )
        k = settings.known_count.item()
        columns = {
            "block": mesh[0],
            "group": mesh[1],
            "siblings": mesh[2],
            "decision": k + with_.astype(int),
            "decision_without": k + without.astype(int),
            "change": change,
            "probability": _release_probability(settings, truths[0], axes),
        }
        return pd.DataFrame({name: array.ravel() for name, array in columns.items()})


def _release_probability(
    settings: model.Settings, truth: grid.Truth, axes: list[Any]
) -> FloatArray:
    """Return the probability of each (y, n, S) given the truth; what is silent has factor 1."""
    k = settings.known_count.item()
    laws = (
        (settings.block, k + truth.target),
        (settings.group, k + truth.group),
    )
    factors = [
        np.asarray(DiscreteGaussian(0.5 / precision, int(centre)).pmf(axis))
        if precision > 0.0
        else np.ones(axis.size)
        for (precision, centre), axis in zip(laws, axes[:2], strict=True)
    ]
    noise, pmf = grid.siblings_noise(settings)
    distance = axes[2] - (truth.group - truth.target)
    inside = (distance >= noise[0]) & (distance <= noise[-1])
    position = np.where(inside, distance - noise[0], 0)
    silent = bool(settings.block == 0.0)
    factors.append(np.ones(axes[2].size) if silent else np.where(inside, pmf[position], 0.0))
    return np.asarray(factors[0][:, None, None] * factors[1][:, None] * factors[2])


def gain_of(question: Question) -> HierarchicalGain:
    """Return how often the hierarchy sets a decision right, and how often it spoils one."""
    shape = question.shape
    values = np.empty((int(np.prod(shape)), 3))
    errors = np.zeros_like(values)
    if question.method == "exact":
        for one, truths, members in question.groups():
            values[members] = grid.decisions(one, truths, question.ties)
    else:
        mean, error = drawn_answers(question)
        values, errors = mean[:, :3], error[:, :3]
    correct, gain, loss = (values[:, i].reshape(shape) for i in range(3))
    # Gains and losses exclude each other: Var(G - L) = Var G + Var L + 2 E G E L.
    gain_error, loss_error = (errors[:, i].reshape(shape) for i in (1, 2))
    covariance = 2.0 * gain * loss / question.releases if question.releases else 0.0
    return HierarchicalGain(
        gain=gain,
        loss=loss,
        with_hierarchy=correct,
        without_hierarchy=correct - gain + loss,
        gain_error=gain_error,
        loss_error=loss_error,
        net_error=np.sqrt(gain_error**2 + loss_error**2 + covariance),
        truncation_bound=grid.TRUNCATION if question.method == "exact" else 0.0,
        status=question.method,
        releases=question.releases,
        question=question,
    )
