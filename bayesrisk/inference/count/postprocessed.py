"""The adversary's posterior on a count that was post-processed to fit a known total (S6).

The group's count N is known.  The block's noisy count y and the noisy total S of its m siblings
are projected on a + c = N, kept within [0, N] and rounded; only a is published.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._validation import IntAnswer, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.noise import noise_precision
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count import postprocessed_kernels as kernels
from bayesrisk.inference.count.noise_differences import MAX_SIBLINGS, exact_wanted, sum_laws
from bayesrisk.inference.count.posterior import bayes_rule

# Half the largest count, so that N + y - S + 1 is exact wherever it goes.
_MAX_GROUP = check.MAX_COUNT // 2


def postprocess(block: ArrayLike, siblings: ArrayLike, *, group_count: ArrayLike) -> IntAnswer:
    r"""Return the block's count after projection, clipping and rounding.

    .. math:: a = \operatorname{round} \min(\max((N + y - S) / 2,\, 0),\, N)

    The projection minimises ``(a - y)**2 + (c - S)**2`` subject to ``a + c = N``; halves are
    rounded up.

    Parameters
    ----------
    block : array_like of int
        Noisy count y of the block; may be negative.
    siblings : array_like of int
        Sum S of the noisy counts of the other blocks of the group; may be negative.
    group_count : array_like of int
        Count N of the group, taken as fixed, >= 0.

    Returns
    -------
    int or ndarray of int64
        Count in [0, N], of the broadcast shape, exact; the siblings' count is N less it.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), supplement, equations (S6.1) to (S6.3).

    Examples
    --------
    >>> postprocess([4, -3, 2], [1, 5, 0], group_count=3).tolist()
    [3, 0, 3]
    """
    y = check.count_array(block, "block")
    total = check.count_array(siblings, "siblings")
    n = check.count_array(group_count, "group_count", lower=0, upper=_MAX_GROUP)
    check.broadcast(block=y, siblings=total, group_count=n)
    # The ends are whole numbers, so rounding first and clipping then gives the same.
    return check.whole_answer(np.clip((n + y - total + 1) // 2, 0, n))


def group_setting(
    group_count: ArrayLike, n_siblings: ArrayLike, known_count: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return N, m and k, checked; k + 1, the truth, must not exceed N."""
    n = check.count_array(group_count, "group_count", lower=1, upper=_MAX_GROUP)
    m = check.count_array(n_siblings, "n_siblings", lower=1, upper=MAX_SIBLINGS)
    k = check.count_array(known_count, "known_count", lower=0)
    check.broadcast(group_count=n, n_siblings=m, known_count=k)
    bad = k >= n
    if bad.any():
        shown = check.describe_first(np.broadcast_to(k, bad.shape), bad)
        count = check.describe_first(np.broadcast_to(n, bad.shape), bad)
        raise ArgumentError(f"known_count must be < group_count, {count}, got {shown}")
    return n, m, k


def postprocessed_posterior(
    released: ArrayLike,
    *,
    group_count: ArrayLike,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
    sibling_noise: str = "approximate",
) -> Belief:
    r"""Return the posterior of the target's characteristics given a post-processed count.

    With D the noise of the block less that of its siblings, the published count is
    :math:`x + \lfloor (D + 1) / 2 \rfloor`, kept within [0, N], so that

    .. math:: P(a \mid x) = \begin{cases}
        P(D \le -2x) & a = 0 \\
        P(2(a - x) - 1 \le D \le 2(a - x)) & 0 < a < N \\
        P(D \ge 2(N - x) - 1) & a = N
        \end{cases}

    Parameters
    ----------
    released : array_like of int
        Published count a of the block, in [0, N].
    group_count : array_like of int
        Count N of the group, known to the adversary, >= 1.
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    noise : Noise or DiscreteGaussian
        Noise of each block's count: its zCDP budget, ``Noise(rho=...)``, or its law.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Others in the block known to have them, k, below N.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise: one discrete Gaussian of m times the scale, or the convolution
        of m of them.

    Returns
    -------
    Belief
        Prior and posterior, of the broadcast shape.  The log-odds of the posterior have a relative
        error of at most 2**-46 and an absolute one of at most 2**-48 (1 + 1 / (2 sigma2)).

    Notes
    -----
    Log-likelihoods are compared relative to one exponent, so that releases far out lose nothing.
    For ``sigma2 >= 4`` the two laws of the siblings' noise are the same to 1e-17.

    References
    ----------
    Kazan and Reiter, supplement, equation (S6.7).

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> belief = postprocessed_posterior(
    ...     [0, 1, 2], group_count=2, n_siblings=1, noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> belief.posterior.round(4).tolist(), belief.ratio.round(4).tolist()
    ([0.3607, 0.5242, 0.6708], [0.7214, 1.0483, 1.3416])
    """
    precision = noise_precision(noise)
    exact = exact_wanted(sibling_noise)
    n, m, k = group_setting(group_count, n_siblings, known_count)
    p = check.probability(prior, "prior")
    a = check.count_array(released, "released", lower=0)
    shape = check.broadcast(
        released=a, group_count=n, n_siblings=m, known_count=k, noise=precision, prior=p
    )
    bad = a > n
    if bad.any():
        shown = check.describe_first(np.broadcast_to(a, bad.shape), bad)
        raise ArgumentError(f"released must be <= group_count, got {shown}")
    inner = np.broadcast_shapes(a.shape, n.shape, m.shape, k.shape, precision.shape)
    laws = sum_laws(precision, m + 1, exact=exact, shape=inner)
    change = np.empty(inner)
    counts = [np.ascontiguousarray(np.broadcast_to(v, inner)).reshape(-1) for v in (a, n, k)]
    kernels.fill_evidence(
        counts[0],
        counts[1],
        counts[2],
        laws.index.reshape(-1),
        laws.rates,
        laws.ripples,
        laws.ends,
        change.reshape(-1),
    )
    out = np.empty(shape)
    bayes_rule(-change, p, p, out)
    return Belief(p, out)
