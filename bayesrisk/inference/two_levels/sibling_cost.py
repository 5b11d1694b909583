"""What it costs the adversary to take one discrete Gaussian for the noise of a total."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._show import displayed
from bayesrisk._types import FloatArray
from bayesrisk.distributions import Noise, sum_approximation
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.posterior import HierarchicalPosterior, posterior_given
from bayesrisk.inference.two_levels.settings import TwoLevelSettings


@displayed
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


def approximation_cost(
    known: TwoLevelSettings, block: ArrayLike, group: ArrayLike, siblings: ArrayLike
) -> ApproximationCost:
    """Return what it costs to replace the siblings' noise by one discrete Gaussian."""
    approximate, exact = (
        posterior_given(replace(known, sibling_noise=noise), block, group, siblings)
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
        answer = sum_approximation(Noise(rho=budget[0]).law(), int(m[0]))
    except ArgumentError:  # a table of more than 2**24 entries
        return float("nan"), float("nan")
    return answer.total_variation, answer.error_bound
