"""What the hierarchy changes: decisions gained and lost against the adversary without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._validation import FloatArray, Number
from bayesrisk.distributions import CountLaw, DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import Question, drawn_answers, read_question

__all__ = ["HierarchicalGain", "hierarchical_gain"]


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

        Raises
        ------
        ArgumentError
            If a count is out of range, or the result holds more than one setting.
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
    settings: model.TwoLevels, truth: grid.Truth, axes: list[Any]
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


def hierarchical_gain(
    *,
    n_siblings: ArrayLike,
    rho_block: Number,
    rho_group: Number,
    prior: Number,
    group_count: ArrayLike,
    block_count: ArrayLike | None = None,
    known_count: ArrayLike = 0,
    group_prior: CountLaw | None = None,
    sensitivity: Number = 1.0,
    conditionals: str = "coherent",
    sibling_noise: str = "approximate",
    ties: str = "shared",
    method: str = "exact",
    releases: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> HierarchicalGain:
    r"""Return how often the hierarchy sets a decision right, and how often it spoils one.

    Both adversaries decide for the more probable block count; one reads (y, n, S), the other y
    alone.  A release that only a coin reads rightly counts one half.

    Parameters
    ----------
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**9]; at most 10**4 where
        ``rho_block / sensitivity**2 > 1/8``.
    rho_block : array_like
        zCDP budget of every block count; 0 (nothing released) or at least 1e-30.
    rho_group : array_like
        zCDP budget of the group count; 0 (nothing released) or at least 1e-30.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    group_count : array_like of int
        True count N* of the group, at most 2**51.
    block_count : array_like of int, optional
        True count X* of the block: ``known_count``, or one more, which is the default.
    known_count : array_like of int, default 0
        Others in the block known to have the characteristics, k.
    group_prior : CountLaw, optional
        The adversary's prior on the group count; flat by default.
    sensitivity : array_like, default 1.0
        L2 sensitivity that both budgets refer to.
    conditionals : {"coherent", "as-published"}, default "coherent"
        As for :func:`hierarchical_posterior`.
    sibling_noise : {"approximate", "exact"}, default "approximate"
        The law that the adversary takes for the siblings' noise.  The noise itself is always the
        sum of m draws.
    ties : {"shared", "as-published"}, default "shared"
        A posterior of exactly 1/2 is decided by a fair coin; or always for k + 1, as in (3.5) of
        Kazan and Reiter.
    method : {"exact", "monte-carlo"}, default "exact"
        Enumerate the releases, or draw them.
    releases : int, optional
        Number of releases to draw for each value, at least 2; with ``"monte-carlo"`` only.
    rng : int or Generator, optional
        Seed or generator; with ``"monte-carlo"`` only, and then required.

    Returns
    -------
    HierarchicalGain
        Gain, loss and both probabilities of a correct decision, of the broadcast shape, with
        Monte Carlo errors or a truncation bound.

    Raises
    ------
    ArgumentError
        If an argument is out of range, the truth is impossible, or more than 2**24 pairs (n, S)
        would have to be enumerated.
    ArgumentTypeError
        If ``group_prior`` is not a law or ``rng`` not a seed or a generator.
    ShapeError
        If arrays do not broadcast.

    Warns
    -----
    IncompatibleConditionalsWarning
        With ``conditionals="as-published"``.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 4.3 and Figure 4.

    Examples
    --------
    >>> result = hierarchical_gain(
    ...     n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5, group_count=10)
    >>> round(float(result.gain), 5), round(float(result.loss), 5)
    (0.02019, 0.01932)
    """
    question = read_question(
        n_siblings=n_siblings,
        rho_block=rho_block,
        rho_group=rho_group,
        prior=prior,
        group_count=group_count,
        block_count=block_count,
        known_count=known_count,
        group_prior=group_prior,
        sensitivity=sensitivity,
        conditionals=conditionals,
        sibling_noise=sibling_noise,
        ties=ties,
        method=method,
        releases=releases,
        rng=rng,
    )
    model.warn_if_published(question.model)
    shape = question.shape
    values = np.empty((int(np.prod(shape)), 3))
    errors = np.zeros_like(values)
    if method == "exact":
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
        truncation_bound=grid.TRUNCATION if method == "exact" else 0.0,
        status=method,
        releases=question.releases,
        question=question,
    )
