"""Averages over the releases of two levels, given the truth: arguments, checked, and answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.inference.two_levels.posterior import TwoLevelSettings
from bayesrisk.risk.count.averages import marginal_ratio
from bayesrisk.risk.two_levels.releases import (
    TRUNCATION,
    Truth,
    block_thresholds,
    deciding,
    decisions,
    marginal_posteriors,
    siblings_noise,
)

#: Largest group: the releases around it, which noise may lift, still differ exactly in a double.
MAX_GROUP = 2**51


@dataclass(frozen=True)
class Question:
    """Checked arguments of an average: every setting and its truth, in one common shape."""

    arrays: dict[str, Any]
    model: Settings
    shape: tuple[int, ...]
    ties: str

    def groups(self) -> Iterator[tuple[Settings, list[Truth], IntArray]]:
        """Yield one model, its truths and their positions, for all that differ in truth only."""
        shared = self.model
        settings = (shared.block, shared.group, shared.n_siblings, shared.prior, shared.known_count)
        columns = np.column_stack([np.broadcast_to(v, self.shape).ravel() for v in settings])
        group, block = (self.arrays[name].ravel() for name in ("group_count", "block_count"))
        distinct, index = np.unique(columns, axis=0, return_inverse=True)
        for i, (a, b, m, p, k) in enumerate(distinct):
            members = np.flatnonzero(index.ravel() == i)
            truths = [Truth(int(block[j] - k), int(group[j] - k)) for j in members]
            one = replace(
                shared,
                block=np.array(a),
                group=np.array(b),
                prior=np.array(p),
                n_siblings=np.array(int(m)),
                known_count=np.array(int(k)),
            )
            yield one, truths, members


def read_question(
    raw: TwoLevelSettings,
    group_count: ArrayLike,
    block_count: ArrayLike | None = None,
    *,
    ties: str = model.TIES[0],
) -> Question:
    """Return checked arguments; warn of conditionals that describe no posterior."""
    two_levels = raw.checked
    model.warn_if_published(two_levels, stacklevel=4)
    k = two_levels.known_count
    block = k + 1 if block_count is None else check.count_array(block_count, "block_count")
    group = check.count_array(group_count, "group_count", lower=0, upper=MAX_GROUP)
    for name, precision in (("rho_block", two_levels.block), ("rho_group", two_levels.group)):
        bad = (precision > 0.0) & ((precision < 1e-30) | (precision > 1e99))
        if bad.any():
            raise ArgumentError(
                f"{name} / sensitivity**2 must be 0 or in [1e-30, 1e99], "
                f"got {check.describe_first(precision, bad)}"
            )
    arrays = {
        "group_count": group,
        "block_count": block,
        "known_count": k,
        "n_siblings": two_levels.n_siblings,
        **{name: raw.arrays[name] for name in ("rho_block", "rho_group", "sensitivity")},
        "prior": two_levels.prior,
    }
    shape = check.broadcast(**arrays)
    full = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    check_truth(two_levels, full, "group_count")
    check.choice(ties, "ties", model.TIES)
    return Question(full, two_levels, shape, ties)


def check_truth(settings: Settings, arrays: dict[str, Any], name: str) -> None:
    """Refuse counts that the adversary holds impossible, ``name`` being that of the group's.

    Nothing is impossible under the published conditionals, which are no posterior.
    """
    block, group, k = (arrays[key] for key in ("block_count", "group_count", "known_count"))
    bad = (block != k) & (block != k + 1)
    if bad.any():
        raise ArgumentError(
            f"block_count must be known_count or one more, got {check.describe_first(block, bad)}"
        )
    bad = group < block
    if bad.any():
        raise ArgumentError(
            f"{name} must be >= block_count, got {check.describe_first(group, bad)}"
        )
    if settings.group_prior.flat or settings.published:
        return
    possible = settings.group_prior.allowed
    bad = ~np.isin(group, possible)
    if bad.any():
        rule = f"possible under group_prior ({possible[0]} to {possible[-1]})"
        if settings.known_total is not None:
            rule = f"known_total = {settings.known_total}"
        raise ArgumentError(f"{name} must be {rule}, got {check.describe_first(group, bad)}")


def without_hierarchy(question: Question, *, decision: bool) -> FloatArray:
    """Return the answers of the adversary who reads the block alone."""
    out = np.empty(int(np.prod(question.shape)))
    for one, truths, members in question.groups():
        alone = block_thresholds(one)
        for truth, j in zip(truths, members, strict=True):
            if decision:
                above = float(deciding(one, alone, truth.target, question.ties))
                out[j] = above if truth.target else 1.0 - above
                continue
            p, a = one.prior.item(), one.block.item()
            belief = p if truth.target else 1.0 - p
            out[j] = belief if a == 0.0 else min(float(marginal_ratio(a, belief)) * belief, 1.0)
    return out.reshape(question.shape)


@dataclass(frozen=True)
class AverageAnswer(Tabular):
    """An answer to a question about releases that are enumerated."""

    question: Question
    _columns: ClassVar[tuple[str, ...]]

    @property
    def truncation_bound(self) -> float:
        """Bound on the error by releases left out of the enumeration."""
        return TRUNCATION

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value."""
        return pd.DataFrame({name: array.ravel() for name, array in self.question.arrays.items()})

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each value, with truth and settings."""
        return self.settings.assign(**{n: np.ravel(getattr(self, n)) for n in self._columns})


@displayed
@dataclass(frozen=True)
class HierarchicalRisk(AverageAnswer):
    """An average over the releases of two levels, given the truth.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    quantity : str
        What is averaged: ``"correct decision"``, ``"posterior of the truth"`` or
        ``"decision accuracy"``.
    value : ndarray
        The average, in [0, 1].
    without_hierarchy, without_release : ndarray
        The same for the adversary who reads the block alone, and for the one who reads nothing and
        goes by the prior: the baseline.
    """

    _columns = ("value", "without_hierarchy", "without_release")
    quantity: str
    value: FloatArray
    without_hierarchy: FloatArray
    without_release: FloatArray

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value; accuracy has no one block count."""
        accuracy = self.quantity == "decision accuracy"
        return super().settings.drop(columns=["block_count"] if accuracy else [])


def evaluate(question: Question, *, decision: bool) -> FloatArray:
    """Return correct, gained and lost along a last axis, or the posterior of the truth."""
    value = np.empty((int(np.prod(question.shape)), 3 if decision else 1))
    for one, truths, members in question.groups():
        if decision:
            value[members] = decisions(one, truths, question.ties)
        else:
            value[members] = marginal_posteriors(one, truths)[:, None]
    return np.minimum(value, 1.0).reshape((*question.shape, value.shape[1]))


def average_risk(question: Question, *, decision: bool) -> HierarchicalRisk:
    """Return the probability of a correct decision, or the posterior of the truth, averaged."""
    present = question.arrays["block_count"] > question.arrays["known_count"]
    baseline = np.where(present, question.arrays["prior"], 1.0 - question.arrays["prior"])
    if decision:  # whether a guess by the prior alone is right
        coin = present if question.ties == "as-published" else 0.5
        baseline = np.where(baseline == 0.5, coin, baseline > 0.5)
    quantity = "correct decision" if decision else "posterior of the truth"
    value = evaluate(question, decision=decision)[..., 0]
    alone = without_hierarchy(question, decision=decision)
    return HierarchicalRisk(question, quantity, value, alone, np.asarray(baseline, np.float64))


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
