"""How often the best guess from two levels is right, whether or not the target is in the block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._validation import FloatArray, Number
from bayesrisk.distributions import CountLaw
from bayesrisk.inference.two_levels import model
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import Question, read_question, streams, without_hierarchy
from bayesrisk.risk.two_levels.averages import HierarchicalRisk, evaluate

__all__ = ["hierarchical_decision_accuracy"]


def hierarchical_decision_accuracy(
    *,
    n_siblings: ArrayLike,
    rho_block: Number,
    rho_group: Number,
    prior: Number,
    group_count: ArrayLike,
    known_count: ArrayLike = 0,
    group_prior: CountLaw | None = None,
    sensitivity: Number = 1.0,
    conditionals: str = "coherent",
    sibling_noise: str = "approximate",
    ties: str = "shared",
    method: str = "exact",
    releases: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> HierarchicalRisk:
    r"""Return how often the adversary's best guess is right, whether or not the target is there.

    .. math:: p\, P(\text{found} \mid X^* = k + 1, N^*) + (1 - p)\, P(\text{cleared} \mid X^* = k,
        N^* - 1)

    The people of the other blocks are the same in both cases: without the target the group counts
    one less.  Both probabilities are those of
    :func:`hierarchical_correct_decision_probability`.

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
        Probability p that the target is in the cell of its block, in (0, 1).
    group_count : array_like of int
        True count N* of the group with the target, at least ``known_count + 1`` and at most
        2**51.
    known_count : array_like of int, default 0
        Others in the block known to be in the cell, k.
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
        Number of releases to draw for each of the two cases, at least 2; with ``"monte-carlo"``
        only.
    rng : int or Generator, optional
        Seed or generator; with ``"monte-carlo"`` only, and then required.

    Returns
    -------
    HierarchicalRisk
        ``value`` with its Monte Carlo error or truncation bound; the accuracy of the adversary who
        reads the block alone, ``without_hierarchy``; and ``without_release``, max(p, 1 - p): always
        guessing the more probable.  ``value`` may be below both: the adversary is right as often as
        can be on average over its own prior of the group count, not at every true one.

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
    Kazan and Reiter (arXiv:2204.04253), section 4.3, for the adversary.

    Examples
    --------
    >>> accuracy = hierarchical_decision_accuracy(
    ...     n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5, group_count=[1, 10])
    >>> accuracy.value.round(4).tolist(), accuracy.without_release.tolist()
    ([0.6037, 0.5897], [0.5, 0.5])
    """
    question = read_question(
        n_siblings=n_siblings,
        rho_block=rho_block,
        rho_group=rho_group,
        prior=prior,
        group_count=group_count,
        block_count=None,
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
    both = _with_and_without_target(question, rng)
    value, error = evaluate(both, decision=True)
    alone = without_hierarchy(both, decision=True)
    p = question.arrays["prior"]
    return HierarchicalRisk(
        quantity="decision accuracy",
        value=_weighted(p, value),
        without_hierarchy=_weighted(p, alone),
        without_release=np.maximum(p, 1.0 - p),
        standard_error=np.hypot(p * error[0], (1.0 - p) * error[1]),
        truncation_bound=grid.TRUNCATION if question.method == "exact" else 0.0,
        status=question.method,
        releases=question.releases,
        settings=question.settings().drop(columns="block_count"),
        provenance=question.provenance,
    )


def _weighted(prior: FloatArray, halves: FloatArray) -> FloatArray:
    return np.asarray(prior * halves[0] + (1.0 - prior) * halves[1])


def _with_and_without_target(question: Question, rng: int | np.random.Generator | None) -> Question:
    """Return the question twice along a new first axis: the target there, and not there."""
    arrays = {name: np.stack([array, array]) for name, array in question.arrays.items()}
    for name in ("group_count", "block_count"):
        arrays[name][1] -= 1
    shape = (2, *question.shape)
    draws = None if rng is None else streams(rng, int(np.prod(shape)))
    return replace(question, arrays=arrays, shape=shape, rng=draws)
