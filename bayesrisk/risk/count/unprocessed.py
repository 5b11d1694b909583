"""Average risk of the noisy counts of a block and its siblings, released as they are, N known.

What post-processing on a known total starts from; see ``postprocessing``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._validation import Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.noise import noise_precision
from bayesrisk.inference.count import postprocessed_kernels as kernels
from bayesrisk.inference.count.noise_differences import MAX_SIBLINGS, exact_wanted, sum_laws
from bayesrisk.risk.count.several_levels import multilevel_marginal_posterior


def before_postprocessing(
    *,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    sibling_noise: str = "approximate",
) -> Belief:
    r"""Return the belief from the noisy counts (y, S) with N known, averaged given the truth.

    With N known, N - S is a second noisy count of the block, with m times the scale:

    .. math:: P(X = k + 1 \mid y, S) = \operatorname{expit}\big(\operatorname{logit} p
        + \rho\,(2(y - k) - 1) + \tfrac{\rho}{m}\,(2(N - S - k) - 1)\big)

    Parameters
    ----------
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    noise : Noise or DiscreteGaussian
        Noise of each block's count: its zCDP budget, ``Noise(rho=...)``, or its law.
    prior : array_like
        Probability p of the truth, in (0, 1).
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise, as in :func:`postprocessed_posterior`.

    Returns
    -------
    Belief
        Prior and average posterior, in [p, 1], of the broadcast shape; errors as for
        :func:`multilevel_marginal_posterior`.  It depends on neither N nor k.

    Notes
    -----
    No release made of (y, S), by whatever rule, has a larger average (data processing).

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> belief = before_postprocessing(n_siblings=[1, 27], noise=Noise(rho=0.0992264), prior=0.5)
    >>> belief.posterior.round(5).tolist()
    [0.54535, 0.5245]
    """
    exact = exact_wanted(sibling_noise)
    precision = noise_precision(noise)
    m = check.count_array(n_siblings, "n_siblings", lower=1, upper=MAX_SIBLINGS)
    p = check.probability(prior, "prior")
    shape = check.broadcast(n_siblings=m, noise=precision, prior=p)
    inner = check.broadcast(n_siblings=m, noise=precision)
    levels = np.stack(
        [np.broadcast_to(precision, inner), np.broadcast_to(precision / m, inner)], axis=-1
    )
    # A level below the normal range carries no evidence.
    two_counts = multilevel_marginal_posterior(noise=Noise(rho=np.maximum(levels, 1e-300)), prior=p)
    if not exact:
        return two_counts
    laws = sum_laws(precision, m, exact=True, shape=inner)
    out = np.array(np.broadcast_to(two_counts.ratio, shape)).reshape(-1)
    # The precision of one count, beside that of the sum in ``laws.rates``.
    own = np.broadcast_to(precision, shape).ravel()
    priors = np.broadcast_to(p, shape).ravel()
    for i, law in enumerate(np.broadcast_to(laws.index, shape).ravel().tolist()):
        ripple = laws.ripple(law)
        if ripple.size > 1:  # else the two laws are the same
            out[i] = kernels.two_counts_ratio(own[i], laws.rates[law], ripple, priors[i])
    ratio = np.clip(out.reshape(shape), 1.0, 1.0 / p)
    return Belief(p, np.minimum(ratio * p, 1.0))
