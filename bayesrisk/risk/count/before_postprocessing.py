"""Average risk of the noisy counts of a block and its siblings, released as they are, N known.

What post-processing on a known total starts from; see ``postprocessing``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._validation import Number
from bayesrisk.inference.count import postprocessed_kernels as kernels
from bayesrisk.inference.count.noise_differences import MAX_SIBLINGS, exact_wanted, sum_laws
from bayesrisk.risk.count.several_levels import multilevel_marginal_risk

__all__ = ["unprocessed_marginal_posterior", "unprocessed_marginal_risk"]


def unprocessed_marginal_risk(
    *,
    n_siblings: ArrayLike,
    rho: Number | None = None,
    prior: Number,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
    sibling_noise: str = "approximate",
) -> Any:
    """Return the risk ratio of the noisy counts (y, S) with N known, averaged given the truth.

    As :func:`unprocessed_marginal_posterior`, divided by the prior.

    Parameters
    ----------
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    rho : array_like, optional
        zCDP budget of each block's count, > 0; give either it or ``sigma2``.
    prior : array_like
        Probability p of the truth, in (0, 1).
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to.
    sigma2 : array_like, optional
        Scale parameter of the noise, instead of ``rho`` and ``sensitivity``.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise, as in :func:`postprocessed_posterior`.

    Returns
    -------
    float or ndarray
        Ratio in [1, 1 / p]; errors as for :func:`multilevel_marginal_risk`.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or not exactly one of ``rho`` and ``sigma2`` is given.
    ShapeError
        If they do not broadcast, or one is empty.

    Examples
    --------
    >>> unprocessed_marginal_risk(n_siblings=[1, 27], rho=0.0992264, prior=0.1).round(4).tolist()
    [1.3469, 1.1741]
    """
    exact = exact_wanted(sibling_noise)
    precision = check.cell_precision(rho, sigma2, sensitivity)
    m = check.count_array(n_siblings, "n_siblings", lower=1, upper=MAX_SIBLINGS)
    p = check.probability(prior, "prior")
    shape = check.broadcast(n_siblings=m, rho=precision, prior=p)
    inner = check.broadcast(n_siblings=m, rho=precision)
    levels = np.stack(
        [np.broadcast_to(precision, inner), np.broadcast_to(precision / m, inner)], axis=-1
    )
    # A level below the normal range carries no evidence.
    ratio = np.asarray(multilevel_marginal_risk(rho=np.maximum(levels, 1e-300), prior=p))
    if not exact:
        return ratio[()]
    laws = sum_laws(precision, m, exact=True, shape=inner)
    out = np.array(np.broadcast_to(ratio, shape)).reshape(-1)
    # The precision of one count, beside that of the sum in ``laws.rates``.
    own = np.broadcast_to(precision, shape).ravel()
    priors = np.broadcast_to(p, shape).ravel()
    for i, law in enumerate(np.broadcast_to(laws.index, shape).ravel().tolist()):
        wave = laws.wave(law)
        if wave.size > 1:  # else the two laws are the same
            out[i] = kernels.two_counts_ratio(own[i], laws.rates[law], wave, priors[i])
    return np.clip(out.reshape(shape), 1.0, 1.0 / p)[()]


def unprocessed_marginal_posterior(
    *,
    n_siblings: ArrayLike,
    rho: Number | None = None,
    prior: Number,
    sensitivity: Number = 1.0,
    sigma2: Number | None = None,
    sibling_noise: str = "approximate",
) -> Any:
    r"""Return the posterior given the noisy counts (y, S) with N known, averaged given the truth.

    With N known, N - S is a second noisy count of the block, with m times the scale:

    .. math:: P(X = k + 1 \mid y, S) = \operatorname{expit}\big(\operatorname{logit} p
        + \rho\,(2(y - k) - 1) + \tfrac{\rho}{m}\,(2(N - S - k) - 1)\big)

    Parameters
    ----------
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    rho : array_like, optional
        zCDP budget of each block's count, > 0; give either it or ``sigma2``.
    prior : array_like
        Probability p of the truth, in (0, 1).
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to.
    sigma2 : array_like, optional
        Scale parameter of the noise, instead of ``rho`` and ``sensitivity``.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise, as in :func:`postprocessed_posterior`.

    Returns
    -------
    float or ndarray
        Probability in [p, 1]; errors as for :func:`multilevel_marginal_risk`.  It depends on
        neither N nor k.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or not exactly one of ``rho`` and ``sigma2`` is given.
    ShapeError
        If they do not broadcast, or one is empty.

    Notes
    -----
    No release made of (y, S), by whatever rule, has a larger average (data processing).

    Examples
    --------
    >>> posterior = unprocessed_marginal_posterior(n_siblings=[1, 27], rho=0.0992264, prior=0.5)
    >>> posterior.round(5).tolist()
    [0.54535, 0.5245]
    """
    ratio = unprocessed_marginal_risk(
        n_siblings=n_siblings,
        rho=rho,
        prior=prior,
        sensitivity=sensitivity,
        sigma2=sigma2,
        sibling_noise=sibling_noise,
    )
    return np.minimum(ratio * check.probability(prior, "prior"), 1.0)[()]
