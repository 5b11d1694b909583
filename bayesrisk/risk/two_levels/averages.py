"""Risk from releases of two levels, before they are drawn: averages over releases, given the truth.

The truth enters here and only here: the block count, k or k + 1, and the group count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._show import displayed
from bayesrisk._validation import FloatArray, Number
from bayesrisk.distributions import CountLaw
from bayesrisk.inference.two_levels import model
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import (
    Question,
    drawn_answers,
    read_question,
    without_hierarchy,
)

__all__ = [
    "HierarchicalRisk",
    "hierarchical_correct_decision_probability",
    "hierarchical_marginal_posterior",
]


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


def _average(question: Question, *, decision: bool) -> HierarchicalRisk:
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


def hierarchical_correct_decision_probability(
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
) -> HierarchicalRisk:
    r"""Return the probability that the target is found by releases of two levels, if it is there.

    .. math:: \sum_{n, S} f_2(n - N^*)\, f_m(S - N^* + X^*)\, P(X^* + \eta \ge t(n, S))

    for X* = k + 1; t(n, S) is the smallest noisy block count at which the posterior of k + 1 is at
    least 1/2.  For X* = k it is the probability that the target is rightly taken not to be there,
    that of staying below the threshold.  :func:`hierarchical_decision_accuracy` has both, weighted
    by the prior, beside what is right without a release.

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
    HierarchicalRisk
        ``value`` with its Monte Carlo error or truncation bound, and the probability
        ``without_hierarchy``, of the broadcast shape.

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
    Kazan and Reiter (arXiv:2204.04253), section 4.3, Figures 5 and 6.

    Examples
    --------
    >>> risk = hierarchical_correct_decision_probability(
    ...     n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5, group_count=[1, 10])
    >>> risk.value.round(6).tolist(), risk.without_hierarchy.round(6).tolist()
    ([0.318191, 0.589726], [0.58886, 0.58886])
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
    return _average(question, decision=True)


def hierarchical_marginal_posterior(
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
    method: str = "exact",
    releases: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> HierarchicalRisk:
    r"""Return the posterior of the truth averaged over releases of two levels, given the truth.

    .. math:: \sum_{y, n, S} f_1(y - X^*)\, f_2(n - N^*)\, f_m(S - N^* + X^*)\,
        P(X = X^* \mid y, n, S)

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
    method : {"exact", "monte-carlo"}, default "exact"
        Enumerate the releases, or draw them.
    releases : int, optional
        Number of releases to draw for each value, at least 2; with ``"monte-carlo"`` only.
    rng : int or Generator, optional
        Seed or generator; with ``"monte-carlo"`` only, and then required.

    Returns
    -------
    HierarchicalRisk
        ``value`` with its Monte Carlo error or truncation bound, and the average
        ``without_hierarchy``, of the broadcast shape.  Divided by the prior of the truth it is the
        marginal risk.

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
    Kazan and Reiter (arXiv:2204.04253), sections 3.1 and 3.2.

    Examples
    --------
    >>> risk = hierarchical_marginal_posterior(
    ...     n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.5, group_count=10)
    >>> round(float(risk.value), 6), round(float(risk.without_hierarchy), 6)
    (0.52449, 0.523666)
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
        method=method,
        releases=releases,
        rng=rng,
    )
    model.warn_if_published(question.model)
    return _average(question, decision=False)
