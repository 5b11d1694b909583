"""Average risk of a count, before and after post-processing (supplement S6).

The adversary knows the group's count N either way, and sees one of two releases of the same noisy
counts. One is the block's count after projection on N, the other the noisy counts (y, S)
themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.doors import door
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.answers import Belief
from bayesrisk.distributions import Noise
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count import postprocessed as kernels
from bayesrisk.inference.count.measurements import SumLaws, sum_laws
from bayesrisk.inference.count.postprocessed import PostprocessedArguments, PostprocessedCount
from bayesrisk.risk.count.question import CountRisk
from bayesrisk.risk.count.several_levels import multilevel_marginal_posterior

_MAX_RELEASES = 2**24


@displayed
@dataclass(frozen=True)
class PostprocessingComparison(Tabular):
    """Average posteriors of the truth before and after post-processing, with baselines.

    The numbers are exact (no sampling); arrays have one common shape.

    Attributes
    ----------
    group_count, n_siblings, known_count : ndarray of int64
        N, m and k.
    sigma2, prior : ndarray
        Scale parameter of a block's noise, and the belief before any release: the baseline.
    block_only, before, after : ndarray
        Marginal posterior given y alone, from which post-processing does not start; given (y, S)
        and N; and given the post-processed count and N.
    sibling_noise : str
        ``"approximate"`` or ``"exact"``.
    """

    group_count: IntArray
    n_siblings: IntArray
    known_count: IntArray
    sigma2: FloatArray
    prior: FloatArray
    block_only: FloatArray
    before: FloatArray
    after: FloatArray
    sibling_noise: str

    @property
    def risk_before(self) -> FloatArray:
        """Average risk before post-processing: ``before / prior``."""
        return self.before / self.prior

    @property
    def risk_after(self) -> FloatArray:
        """Average risk after it: ``after / prior``."""
        return self.after / self.prior

    @property
    def ratio(self) -> FloatArray:
        """``after / before``, at most 1."""
        return self.after / self.before

    @property
    def margin(self) -> FloatArray:
        """``before - after``, at least 0 (data processing), up to ``error_bound``."""
        return self.before - self.after

    @property
    def error_bound(self) -> FloatArray:
        """Bound on the error of ``margin``, from rounding and truncation."""
        # 2**-44 of ``after``, and that of ``multilevel_marginal_posterior`` of ``before``.
        rounding = (4.0 + 6.0 * np.minimum(0.5 / self.sigma2, 900.0)) * 2.0**-52
        return 2.0**-44 * self.after + self.before * rounding

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting."""
        names = (
            *("group_count", "n_siblings", "known_count", "sigma2", "prior", "block_only"),
            *("before", "after", "risk_before", "risk_after", "ratio", "margin", "error_bound"),
        )
        return pd.DataFrame({name: getattr(self, name).ravel() for name in names})


def _check_cost(laws: SumLaws, group_count: IntArray) -> None:
    """Raise if sums would run over more than 2**24 released values."""
    depth = -np.minimum.reduceat(laws.ripples, laws.ends[:-1])
    window = np.sqrt((REACH + 2.0 * depth) / laws.rates)
    releases = np.minimum(window[laws.number], group_count.ravel())
    if releases.max() > _MAX_RELEASES:
        raise ArgumentError(
            "rho",
            f"must be worth at most {_MAX_RELEASES} released values up to group_count",
            shown=f"{releases.max():.3g}",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PostprocessingRisk(PostprocessedCount):
    """The risk of a block's count, before and after post-processing.

    Source: Kazan and Reiter (arXiv:2204.04253), supplement S6 and Figure 12.

    Attributes
    ----------
    group_count, n_siblings, noise, prior, known_count, sibling_noise : array_like
        As for :class:`~bayesrisk.inference.PostprocessedCount`: N, m, a block's noise, p, k, and
        the law of the siblings' noise.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> question = PostprocessingRisk(
    ...     group_count=50, n_siblings=[1, 27], noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> result = question.compare().to_frame()
    >>> result[["n_siblings", "block_only", "before", "after", "margin"]].round(4)
       n_siblings  block_only  before   after  margin
    0           1      0.5237  0.5453  0.5392  0.0062
    1          27      0.5237  0.5245  0.5029  0.0216
    """

    def after(self) -> Belief:
        r"""Return the average belief after post-processing, if the target is in the cell.

        .. math:: \sum_{a=0}^{N} P(a \mid X = k + 1)\, P(X = k + 1 \mid a)

        The relative error is at most 2**-44, truncation included; at most 2**24 released values are
        summed. The average depends on N and k, because the ends 0 and N are mixtures of many noise
        values. Equation (S6.8).
        """
        n, m, k, precision, p, exact = self._values
        shape = self._broadcast(self._values)
        laws = sum_laws(precision, m + 1, exact=exact, shape=shape)
        _check_cost(laws, np.broadcast_to(n, shape))
        out = np.empty(shape)
        # Copies: what may not be written would be compiled apart.
        totals, counts = (
            np.array(np.broadcast_to(v, shape), order="C").reshape(-1) for v in (n, k)
        )
        priors = np.array(np.broadcast_to(p, shape), order="C").reshape(-1)
        kernels.fill_marginal_ratio(totals, counts, priors, laws, out.reshape(-1))
        return _averaged(p, out)

    def before(self) -> Belief:
        r"""Return the average posterior from the noisy counts alone, given the group's total.

        With N known, N - S is a second noisy count of the block, with m times the scale:

        .. math:: P(X = k + 1 \mid y, S) = \operatorname{expit}\big(\operatorname{logit} p
            + \rho\,(2(y - k) - 1) + \tfrac{\rho}{m}\,(2(N - S - k) - 1)\big)

        It depends on neither N nor k. By the data-processing inequality no release made of (y, S)
        has a larger average. Errors are those of :func:`multilevel_marginal_posterior`.
        """
        _, m, _, precision, p, exact = self._values
        shape = np.broadcast_shapes(m.shape, precision.shape, p.shape)
        inner = np.broadcast_shapes(m.shape, precision.shape)
        levels = np.stack(
            [np.broadcast_to(precision, inner), np.broadcast_to(precision / m, inner)], axis=-1
        )
        # A level below the normal range carries no evidence.
        noise = Noise(rho=np.maximum(levels, 1e-300))
        two_counts = multilevel_marginal_posterior(noise=noise, prior=p)
        if not exact:
            return two_counts
        laws = sum_laws(precision, m, exact=True, shape=inner)
        out = np.array(np.broadcast_to(two_counts.ratio, shape)).reshape(-1)
        # The precision of one count, beside that of the sum in ``laws.rates``.
        precisions = np.broadcast_to(precision, shape).ravel()
        priors = np.broadcast_to(p, shape).ravel()
        numbers = np.broadcast_to(laws.number.reshape(inner), shape).ravel().tolist()
        for i, law in enumerate(numbers):
            ripple = laws.ripple(law)
            if ripple.size > 1:  # else the two laws are the same
                out[i] = kernels.two_counts_ratio(precisions[i], laws.rates[law], ripple, priors[i])
        return _averaged(p, out.reshape(shape))

    def compare(self) -> PostprocessingComparison:
        """Return the average risk before and after post-processing, given the group's total N."""
        n, m, k, precision, p, _ = self._values
        columns = {
            "group_count": n,
            "n_siblings": m,
            "known_count": k,
            "sigma2": 0.5 / precision,
            "prior": p,
            "block_only": CountRisk(rho=precision, prior=p).marginal_posterior(),
            "before": self.before().posterior,
            "after": self.after().posterior,
        }
        arrays: list[Any] = list(np.broadcast_arrays(*columns.values()))
        named = dict(zip(columns, arrays, strict=True))
        return PostprocessingComparison(**named, sibling_noise=self.sibling_noise)


def _averaged(prior: FloatArray, ratio: FloatArray) -> Belief:
    """Return the average belief for a risk ratio, clipped against rounding errors."""
    return Belief(prior, np.minimum(np.clip(ratio, 1.0, 1.0 / prior) * prior, 1.0))


@door(PostprocessingRisk)
def compare_postprocessing(**question: Unpack[PostprocessedArguments]) -> PostprocessingComparison:
    """Return the risk before and after post-processing: :meth:`PostprocessingRisk.compare`."""
    return PostprocessingRisk(**question).compare()
