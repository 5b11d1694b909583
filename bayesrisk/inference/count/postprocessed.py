"""The posterior on a count that was post-processed to fit a known total (supplement S6).

The group's count N is known. The block's noisy count y and the noisy total S of its m siblings are
projected on a + c = N, clipped to [0, N] and rounded; only a is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import kernel, lean_step
from bayesrisk._base.doors import door
from bayesrisk._base.validation import FloatArray, IntAnswer, IntArray, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_gaussian import BERNOULLI
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count.measurements import MAX_SIBLINGS, SIBLING_NOISE, SumLaws, sum_laws
from bayesrisk.inference.count.posterior import bayes_rule

# Compiled inner loops, which check no arguments.
#
# The noise D of a post-processed count adds up n = m + 1 discrete Gaussians, or two that stand for
# them; its log-pmf is -h d**2 + ripple[d mod n] but for a constant, see ``distributions.sums``.


# B_2k / (2 k)!, k = 1..8: the coefficients of the Euler-Maclaurin formula (DLMF 24.2, 2.10.1).
_BERNOULLI = np.array([float(b / math.factorial(2 * k)) for k, b in enumerate(BERNOULLI[:8], 1)])


@lean_step
def log_tail(first: int, rate: float, ripple: FloatArray, span: float) -> float:
    """Return log of P(D >= first) exp(rate first**2), up to a constant; first >= -1.

    It is summed term by term. If that would take long, the ripple is flat, and only every
    ``step``-th term is taken. Two Euler-Maclaurin formulas for the same integral are subtracted.
    They leave end corrections, the ninth of which is below 1e-17 of the sum.
    """
    # Steps so short that the summand changes little from one to the next.
    step = 1
    slope = 2.0 * rate * first
    if ripple.size == 1:
        step = int(min(0.1 / math.sqrt(rate), 0.5 / slope if slope > 0.0 else math.inf, 2.0**60))
        step = max(step, 1)
    # sum_i exp(ripple - rate ((first + i)**2 - first**2)), rescaled whenever the peak rises
    peak = -math.inf
    total = 0.0
    i = 0
    while True:
        fall = rate * i * (2.0 * first + i)
        if fall > REACH + span:
            break
        term: float = ripple[(first + i) % ripple.size] - fall
        if term > peak:
            total = total * math.exp(peak - term) + 1.0
            peak = term
        else:
            total += math.exp(term - peak)
        i += step
    if step == 1:
        return peak + math.log(total)
    # End corrections sum_k B_2k / (2 k)! (step**(2 k) - 1) f^(2 k - 1), derivatives by recursion.
    total = math.exp(peak) * total * step + 0.5 * (1.0 - step)
    before, derivative = 1.0, -slope
    for k in range(1, 9):
        total += float(_BERNOULLI[k - 1]) * (float(step) ** (2 * k) - 1.0) * derivative
        for order in (2 * k - 1, 2 * k):
            after = -slope * derivative - 2.0 * rate * order * before
            before, derivative = derivative, after
    return math.log(total)


@lean_step
def _log_pair(low: int, base: int, rate: float, ripple: FloatArray) -> float:
    """Return log of P(low <= D <= low + 1) exp(rate base**2), up to a constant."""
    a: float = ripple[low % ripple.size]
    b: float = ripple[(low + 1) % ripple.size]
    a -= rate * float(low - base) * float(low + base)
    b -= rate * float(low + 1 - base) * float(low + 1 + base)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@lean_step
def evidence(
    released: int, group: int, known_count: int, rate: float, ripple: FloatArray, span: float
) -> tuple[float, float]:
    """Return the log-likelihood ratio of X = k + 1 against X = k, and the log-likelihood of k + 1.

    The released value is the count plus floor((D + 1) / 2), clipped to [0, N]: a pair of values of
    D inside, a tail at either end. Both likelihoods are taken relative to one exponent, so nothing
    cancels for releases in the far tails. The second omits a constant.
    """
    # The lower end: P(D <= -2 x), by symmetry an upper tail.
    if released == 0:
        first = 2 * known_count + 2
        with_target = log_tail(first, rate, ripple, span)
        without = log_tail(first - 2, rate, ripple, span)
        change = -4.0 * rate * (2.0 * known_count + 1.0)
        return with_target - without + change, with_target - rate * float(first) ** 2
    # The upper end: P(D >= 2 (N - x) - 1).
    if released == group:
        first = 2 * (group - known_count - 1) - 1
        with_target = log_tail(first, rate, ripple, span)
        without = log_tail(first + 2, rate, ripple, span)
        change = 4.0 * rate * (first + 1.0)
        return with_target - without + change, with_target - rate * float(first) ** 2
    # Inside: P(2 (a - x) - 1 <= D <= 2 (a - x)).
    base = 2 * (released - known_count - 1)
    with_target = _log_pair(base - 1, base, rate, ripple)
    without = _log_pair(base + 1, base, rate, ripple)
    return with_target - without, with_target - rate * float(base) ** 2


@kernel
def fill_evidence(
    released: IntArray, group: IntArray, known_count: IntArray, laws: SumLaws, out: FloatArray
) -> None:
    """Fill ``out`` with the log-likelihood ratio of each release under its law."""
    for i in range(out.size):
        j = laws.number[i]
        ripple = laws.ripples[laws.ends[j] : laws.ends[j + 1]]
        out[i], _ = evidence(
            released[i], group[i], known_count[i], laws.rates[j], ripple, -ripple.min()
        )


@kernel
def fill_marginal_ratio(
    group: IntArray, known_count: IntArray, prior: FloatArray, laws: SumLaws, out: FloatArray
) -> None:
    """Fill ``out`` with the mean of posterior / prior over releases, if the target is there.

    Relative to the largest summand, that at the noise value d is at most exp(-h d**2). For tiny
    priors the bound is exp(-h (d - 2)**2). Both hold up to twice the depth of the ripple. The
    window follows from these bounds.
    """
    for i in range(out.size):
        j = laws.number[i]
        rate, ripple = laws.rates[j], laws.ripples[laws.ends[j] : laws.ends[j + 1]]
        span = -ripple.min()
        reach = int(math.sqrt((REACH + 2.0 * span) / rate)) + 2
        truth = known_count[i] + 1
        # posterior / prior = 1 / (p + (1 - p) exp(-evidence)), weighted by P(released | k + 1)
        first = max(truth - reach // 2 - 1, 0)
        last = min(truth + reach // 2 + 3, group[i])
        total = 0.0
        mass = 0.0
        for released in range(first, last + 1):
            ratio, likelihood = evidence(released, group[i], known_count[i], rate, ripple, span)
            weight = math.exp(likelihood)
            mass += weight
            total += weight / (prior[i] + (1.0 - prior[i]) * math.exp(-ratio))
        out[i] = total / mass


@kernel
def two_counts_ratio(precision: float, rate: float, ripple: FloatArray, prior: float) -> float:
    """Return the mean of posterior / prior over two noisy counts that are not post-processed.

    The noise of the first is N_Z with this precision, that of the second has the law of ``rate``
    and ``ripple``.
    """
    span = -ripple.min()
    near = math.sqrt(REACH / precision)
    far = math.sqrt((REACH + 2.0 * span) / rate)
    total = 0.0
    mass = 0.0
    for second in range(-math.floor(far), math.floor(far) + 3):
        level = ripple[second % ripple.size]
        outer = math.exp(level - rate * second * second)
        gain = rate * (2.0 * second + 1.0) + level - ripple[(second + 1) % ripple.size]
        for first in range(-math.floor(near), math.floor(near) + 2):
            weight = outer * math.exp(-precision * first * first)
            decay = math.exp(-(precision * (2.0 * first + 1.0) + gain))
            mass += weight
            total += weight / (prior + (1.0 - prior) * decay)
    return total / mass


# Half the largest count, so that N + y - S + 1 is exact wherever it goes.
_MAX_GROUP = check.MAX_COUNT // 2


def postprocess(block: ArrayLike, siblings: ArrayLike, *, group_count: ArrayLike) -> IntAnswer:
    r"""Return the block's count after projection, clipping and rounding.

    .. math:: a = \operatorname{round} \min(\max((N + y - S) / 2,\, 0),\, N)

    The projection minimises ``(a - y)**2 + (c - S)**2`` subject to ``a + c = N``; halves are
    rounded up.

    Source: Kazan and Reiter (arXiv:2204.04253), supplement, equations (S6.1) to (S6.3).

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
        Exact count in [0, N], of the broadcast shape; the siblings' count is N minus it.

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


class PostprocessedArguments(TypedDict, total=False):
    """Unchecked arguments of :class:`PostprocessedCount`."""

    group_count: Required[ArrayLike]
    n_siblings: Required[ArrayLike]
    noise: Required[Noise | DiscreteGaussian]
    prior: Required[Number]
    known_count: ArrayLike
    sibling_noise: str


class PostprocessedValues(NamedTuple):
    """Checked arguments: N, m, k, 1 / (2 sigma2), p, and whether sums have exact laws."""

    group_count: IntArray
    n_siblings: IntArray
    known_count: IntArray
    precision: FloatArray
    prior: FloatArray
    exact: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class PostprocessedCount:
    r"""A block's post-processed count, and the adversary's prior knowledge.

    The group's count N is known.  Source: Kazan and Reiter, supplement, equation (S6.7).

    Attributes
    ----------
    group_count : array_like of int
        Count N of the group, known to the adversary, >= 1.
    n_siblings : array_like of int
        Number m of other blocks in the group, in [1, 10**6].
    noise : Noise or DiscreteGaussian
        Noise of each block's count: a zCDP budget, ``Noise(rho=...)``, or a law.
    prior : array_like
        Probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Number k of others in the block known to have them, below N.
    sibling_noise : {"approximate", "exact"}
        Law of the siblings' noise: one discrete Gaussian of m times the scale, or the convolution
        of m of them. For ``sigma2 >= 4`` they agree to 1e-17.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> count = PostprocessedCount(
    ...     group_count=2, n_siblings=1, noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> belief = count.posterior([0, 1, 2])
    >>> belief.posterior.round(4).tolist(), belief.ratio.round(4).tolist()
    ([0.3607, 0.5242, 0.6708], [0.7214, 1.0483, 1.3416])
    """

    group_count: ArrayLike
    n_siblings: ArrayLike
    noise: Noise | DiscreteGaussian
    prior: Number
    known_count: ArrayLike = 0
    sibling_noise: str = "approximate"
    _values: PostprocessedValues = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments; the true count k + 1 must not exceed N."""
        n = check.count_array(self.group_count, "group_count", lower=1, upper=_MAX_GROUP)
        m = check.count_array(self.n_siblings, "n_siblings", lower=1, upper=MAX_SIBLINGS)
        k = check.count_array(self.known_count, "known_count", lower=0)
        noise = check.choice(self.sibling_noise, "sibling_noise", SIBLING_NOISE)
        precision, exact = noise_precision(self.noise), noise == "exact"
        p = check.probability(self.prior, "prior")
        values = PostprocessedValues(
            np.array(n), np.array(m), np.array(k), np.array(precision), np.array(p), exact
        )
        self._broadcast(values)
        bad = k >= n
        if bad.any():
            value, count = (
                check.describe_first(np.broadcast_to(array, bad.shape), bad) for array in (k, n)
            )
            raise ArgumentError("known_count", f"must be < group_count, {count}", shown=value)
        object.__setattr__(self, "_values", values)

    @staticmethod
    def _broadcast(values: PostprocessedValues, **more: IntArray) -> tuple[int, ...]:
        n, m, k, precision, p, _ = values
        return check.broadcast(
            **more, group_count=n, n_siblings=m, known_count=k, noise=precision, prior=p
        )

    def posterior(self, released: ArrayLike) -> Belief:
        r"""Return the belief that the target has the characteristics, given published counts.

        Let D be the noise of the block less that of its siblings. The published count is
        :math:`x + \lfloor (D + 1) / 2 \rfloor`, clipped to [0, N], so that

        .. math:: P(a \mid x) = \begin{cases}
            P(D \le -2x) & a = 0 \\
            P(2(a - x) - 1 \le D \le 2(a - x)) & 0 < a < N \\
            P(D \ge 2(N - x) - 1) & a = N
            \end{cases}

        ``released`` are counts a in [0, N]. The log-odds of the posterior have a relative error of
        at most 2**-46 and an absolute one of at most 2**-48 (1 + 1 / (2 sigma2)). Log-likelihoods
        are compared relative to one exponent, so releases in the far tails lose no precision.
        """
        n, m, k, precision, p, exact = self._values
        a = check.count_array(released, "released", lower=0)
        shape = self._broadcast(self._values, released=a)
        bad = a > n
        if bad.any():
            value = check.describe_first(np.broadcast_to(a, bad.shape), bad)
            raise ArgumentError("released", "must be <= group_count", shown=value)
        inner = np.broadcast_shapes(a.shape, n.shape, m.shape, k.shape, precision.shape)
        laws = sum_laws(precision, m + 1, exact=exact, shape=inner)
        change = np.empty(inner)
        # Copies: what may not be written would be compiled apart.
        x, total, counts = (
            np.array(np.broadcast_to(v, inner), order="C").reshape(-1) for v in (a, n, k)
        )
        fill_evidence(x, total, counts, laws, change.reshape(-1))
        out = np.empty(shape)
        bayes_rule(-change, p, p, out)
        return Belief(p, out)


@door(PostprocessedCount)
def postprocessed_posterior(
    released: ArrayLike, **question: Unpack[PostprocessedArguments]
) -> Belief:
    """Return the belief given a post-processed count: :meth:`PostprocessedCount.posterior`."""
    return PostprocessedCount(**question).posterior(released)
