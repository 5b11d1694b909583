"""What it costs the adversary to take one discrete Gaussian for the noise of a total."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._types import FloatArray
from bayesrisk._validation import Number
from bayesrisk.distributions import CountLaw, DiscreteGaussian, sum_approximation
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.posterior import HierarchicalPosterior, hierarchical_posterior

__all__ = ["ApproximationCost", "sibling_approximation_cost"]


@dataclass(frozen=True)
class ApproximationCost:
    """What the approximate law of the siblings' noise changes, release by release.

    Attributes
    ----------
    approximate, exact : HierarchicalPosterior
        Posteriors with either law of the noise.
    target_difference : ndarray
        Approximate minus exact probability of the target.
    group_total_variation : ndarray
        Total-variation distance between the two posteriors of the group count.
    noise_total_variation : float
        Total-variation distance between the two laws of the noise; NaN where it is not one law or
        its table would be too long.
    noise_error_bound : float
        Bound on the error of that distance.
    """

    approximate: HierarchicalPosterior
    exact: HierarchicalPosterior
    target_difference: FloatArray
    group_total_variation: FloatArray
    noise_total_variation: float
    noise_error_bound: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each release.

        Returns
        -------
        pandas.DataFrame
            Releases, both probabilities of the target, their difference, and the distance between
            the posteriors of the group count.
        """
        frame = self.approximate.to_frame()[["block", "group", "siblings", "prior"]]
        return frame.assign(
            approximate=self.approximate.target_probability.ravel(),
            exact=self.exact.target_probability.ravel(),
            target_difference=self.target_difference.ravel(),
            group_total_variation=self.group_total_variation.ravel(),
        )


def sibling_approximation_cost(
    block: ArrayLike,
    group: ArrayLike,
    siblings: ArrayLike,
    *,
    n_siblings: ArrayLike,
    rho_block: Number,
    rho_group: Number,
    prior: Number,
    known_count: ArrayLike = 0,
    group_prior: CountLaw | None = None,
    sensitivity: Number = 1.0,
    conditionals: str = "coherent",
) -> ApproximationCost:
    r"""Return what it costs to replace the siblings' noise by one discrete Gaussian.

    The two laws differ by a factor of period m in the distance d and by nothing else:
    :math:`g_m(d) = e^{-\rho d^2 / m} e^{r(d)}`, :math:`r(d + m) = r(d)`, because adding one to
    each of m terms takes d to d + m and the sum of their squares q to q + 2 d + m.

    Parameters
    ----------
    block : array_like of int
        Noisy count y of the block.
    group : array_like of int
        Noisy count n of the group.
    siblings : array_like of int
        Total S of the noisy counts of the other blocks.
    n_siblings : array_like of int
        Number m of those blocks, at least 1; at most 10**4 where rho_block > 1/8.
    rho_block : array_like
        zCDP budget of every block count, >= 0.
    rho_group : array_like
        zCDP budget of the group count, >= 0.
    prior : array_like
        Probability that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Others in the block known to have them.
    group_prior : CountLaw, optional
        Prior on the group count; flat by default.
    sensitivity : array_like, default 1.0
        L2 sensitivity that both budgets refer to.
    conditionals : {"coherent", "as-published"}, default "coherent"
        As for :func:`hierarchical_posterior`.

    Returns
    -------
    ApproximationCost
        Differences of the posteriors, and the distance between the laws of the noise.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    ShapeError
        If arrays do not broadcast.

    Examples
    --------
    >>> cost = sibling_approximation_cost(
    ...     1, 1, 2, n_siblings=4, rho_block=2.0, rho_group=1.0, prior=0.5)
    >>> round(float(cost.target_difference), 4), round(cost.noise_total_variation, 4)
    (0.0249, 0.0688)
    """
    keywords: dict[str, Any] = {
        "n_siblings": n_siblings,
        "rho_block": rho_block,
        "rho_group": rho_group,
        "prior": prior,
        "known_count": known_count,
        "group_prior": group_prior,
        "sensitivity": sensitivity,
        "conditionals": conditionals,
    }
    approximate, exact = (
        hierarchical_posterior(block, group, siblings, **keywords, sibling_noise=noise)
        for noise in model.SIBLING_NOISE
    )
    distances = [
        _distance(approximate.group_pmf_of(i), exact.group_pmf_of(i))
        for i in range(exact.target_probability.size)
    ]
    distance, bound = _noise_distance(exact)
    return ApproximationCost(
        approximate=approximate,
        exact=exact,
        target_difference=approximate.target_probability - exact.target_probability,
        group_total_variation=np.reshape(distances, exact.target_probability.shape),
        noise_total_variation=distance,
        noise_error_bound=bound,
    )


def _distance(p: pd.Series, q: pd.Series) -> float:
    return 0.5 * float(p.sub(q, fill_value=0.0).abs().sum())


def _noise_distance(result: HierarchicalPosterior) -> tuple[float, float]:
    """Return the distance between the laws of the noise, where there is one law."""
    budget = np.unique(result.rho_block / result.sensitivity**2)
    m = np.unique(result.n_siblings)
    if budget.size > 1 or m.size > 1 or budget[0] == 0.0:
        return float("nan"), float("nan")
    try:
        answer = sum_approximation(DiscreteGaussian(0.5 / budget[0]), int(m[0]))
    except ArgumentError:  # a table of more than 2**24 entries
        return float("nan"), float("nan")
    return answer.total_variation, answer.error_bound
