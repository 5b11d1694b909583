"""Average risk of a count that is published after post-processing, and before it (S6).

Two releases of the same noisy counts are compared, to an adversary who knows the group's count N
either way: the block's count after projection on N, and the noisy counts (y, S) themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._validation import Number
from bayesrisk._version import __version__
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.kernels import REACH
from bayesrisk.distributions.noise import noise_precision
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count import postprocessed_kernels as kernels
from bayesrisk.inference.count.noise_differences import SumLaws, exact_wanted, sum_laws
from bayesrisk.inference.count.postprocessed import group_setting
from bayesrisk.risk.count.averages import marginal_posterior
from bayesrisk.risk.count.unprocessed import before_postprocessing

_MAX_RELEASES = 2**24


def _check_cost(laws: SumLaws, group_count: NDArray[np.int64]) -> None:
    """Refuse sums over more than 2**24 released values."""
    depth = -np.minimum.reduceat(laws.ripples, laws.ends[:-1])
    window = np.sqrt((REACH + 2.0 * depth) / laws.rates)
    releases = np.minimum(window[laws.index], group_count)
    if releases.max() > _MAX_RELEASES:
        raise ArgumentError(
            f"rho must be worth at most {_MAX_RELEASES} released values up to group_count, got "
            f"{releases.max():.3g}"
        )


def postprocessed_marginal_posterior(
    *,
    group_count: ArrayLike,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
    sibling_noise: str = "approximate",
) -> Belief:
    r"""Return the belief after post-processing, averaged, if the target is in the cell.

    .. math:: \sum_{a=0}^{N} P(a \mid X = k + 1)\, P(X = k + 1 \mid a)

    Parameters
    ----------
    group_count : array_like of int
        Count N of the group, known to the adversary, >= 1.
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    noise : Noise or DiscreteGaussian
        Noise of each block's count: its zCDP budget, ``Noise(rho=...)``, or its law.
    prior : array_like
        Probability p of the truth, in (0, 1).
    known_count : array_like of int, default 0
        Others in the block known to have the characteristics, k, below N.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise, as in :func:`postprocessed_posterior`.

    Returns
    -------
    Belief
        Prior and average posterior, in [p, 1], of the broadcast shape; relative error at most
        2**-44, which includes all truncation.  It depends on N and k because the ends 0 and N are
        mixtures of many noise values.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or more than 2**24 released values would have to be
        summed.

    References
    ----------
    Kazan and Reiter, supplement, equation (S6.8).

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> belief = postprocessed_marginal_posterior(
    ...     group_count=[1, 2, 50], n_siblings=1, noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> belief.posterior.round(5).tolist()
    [0.53051, 0.53637, 0.53917]
    """
    exact = exact_wanted(sibling_noise)
    precision = noise_precision(noise)
    n, m, k = group_setting(group_count, n_siblings, known_count)
    p = check.probability(prior, "prior")
    shape = check.broadcast(group_count=n, n_siblings=m, known_count=k, noise=precision, prior=p)
    laws = sum_laws(precision, m + 1, exact=exact, shape=shape)
    _check_cost(laws, np.broadcast_to(n, shape))
    out = np.empty(shape)
    settings = [np.ascontiguousarray(np.broadcast_to(v, shape)).reshape(-1) for v in (n, k, p)]
    kernels.fill_marginal_ratio(
        settings[0],
        settings[1],
        settings[2],
        laws.index.reshape(-1),
        laws.rates,
        laws.ripples,
        laws.ends,
        out.reshape(-1),
    )
    ratio = np.clip(out, 1.0, 1.0 / p)
    return Belief(p, np.minimum(ratio * p, 1.0))


@displayed
@dataclass(frozen=True)
class PostprocessingComparison:
    """Average posteriors of the truth before and after post-processing, with the baselines.

    The numbers are exact (no sampling); arrays have one common shape.

    Attributes
    ----------
    group_count, n_siblings, known_count : ndarray of int64
        N, m and k.
    sigma2 : ndarray
        Scale parameter of a block's noise.
    prior : ndarray
        Belief before any release: the baseline.
    block_only : ndarray
        Marginal posterior given y alone, which is not what post-processing starts from.
    before : ndarray
        Marginal posterior given (y, S) with N known.
    after : ndarray
        Marginal posterior given the post-processed count with N known.
    risk_before, risk_after : ndarray
        The same two over the prior.
    ratio : ndarray
        ``after / before``, at most 1.
    margin : ndarray
        ``before - after``, at least 0 (data processing), up to ``error_bound``.
    error_bound : ndarray
        Bound on the error of ``margin``, from rounding and truncation.
    sibling_noise : str
        ``"approximate"`` or ``"exact"``.
    status : str
        Always ``"exact"``.
    version : str
        Version of bayesrisk.
    """

    group_count: NDArray[np.int64]
    n_siblings: NDArray[np.int64]
    known_count: NDArray[np.int64]
    sigma2: NDArray[np.float64]
    prior: NDArray[np.float64]
    block_only: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    risk_before: NDArray[np.float64]
    risk_after: NDArray[np.float64]
    ratio: NDArray[np.float64]
    margin: NDArray[np.float64]
    error_bound: NDArray[np.float64]
    sibling_noise: str
    status: str = "exact"
    version: str = __version__

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting.

        Returns
        -------
        pandas.DataFrame
            A column for each array.
        """
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        return pd.DataFrame(
            {name: value.ravel() for name, value in arrays.items() if isinstance(value, np.ndarray)}
        )


def compare_postprocessing(
    *,
    group_count: ArrayLike,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
    sibling_noise: str = "approximate",
) -> PostprocessingComparison:
    """Compare the average risk before and after post-processing, under the same knowledge of N.

    Parameters
    ----------
    group_count : array_like of int
        Count N of the group, known to the adversary, >= 1.
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    noise : Noise or DiscreteGaussian
        Noise of each block's count: its zCDP budget, ``Noise(rho=...)``, or its law.
    prior : array_like
        Probability p of the truth, in (0, 1).
    known_count : array_like of int, default 0
        Others in the block known to have the characteristics, k, below N.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise, as in :func:`postprocessed_posterior`.

    Returns
    -------
    PostprocessingComparison
        Arrays of the broadcast shape.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or more than 2**24 released values would have to be
        summed.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), supplement S6 and Figure 12.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> result = compare_postprocessing(
    ...     group_count=50, n_siblings=[1, 27], noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> result.to_frame()[["n_siblings", "block_only", "before", "after", "margin"]].round(4)
       n_siblings  block_only  before   after  margin
    0           1      0.5237  0.5453  0.5392  0.0062
    1          27      0.5237  0.5245  0.5029  0.0216
    """
    pair: dict[str, Any] = {"noise": noise, "prior": prior, "sibling_noise": sibling_noise}
    p = check.probability(prior, "prior")
    precision = noise_precision(noise)
    published = postprocessed_marginal_posterior(
        group_count=group_count, n_siblings=n_siblings, known_count=known_count, **pair
    )
    noisy = before_postprocessing(n_siblings=n_siblings, **pair)
    before, after = np.asarray(noisy.posterior), np.asarray(published.posterior)
    alone = marginal_posterior(rho=precision, prior=prior)
    columns = {
        "group_count": check.count_array(group_count, "group_count"),
        "n_siblings": check.count_array(n_siblings, "n_siblings"),
        "known_count": check.count_array(known_count, "known_count"),
        "sigma2": 0.5 / precision,
        "prior": p,
        "block_only": np.asarray(alone),
        "before": before,
        "after": after,
        "risk_before": np.asarray(noisy.ratio),
        "risk_after": np.asarray(published.ratio),
        "ratio": after / before,
        "margin": before - after,
        # 2**-44 of ``after``, and that of ``multilevel_marginal_posterior`` of ``before``.
        "error_bound": 2.0**-44 * after
        + before * (4.0 + 6.0 * np.minimum(precision, 900.0)) * 2.0**-52,
    }
    arrays = np.broadcast_arrays(*columns.values())
    named: dict[str, Any] = dict(zip(columns, arrays, strict=True))
    return PostprocessingComparison(**named, sibling_noise=sibling_noise)
