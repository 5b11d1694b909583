"""Priors of the counts of a tree's leaves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError


@dataclass(frozen=True, eq=False)
class LeafPrior:
    r"""A prior on the count of each leaf of a tree, as the ratios of successive probabilities.

    Use one of the constructors :meth:`flat`, :meth:`poisson`, :meth:`negative_binomial` and
    :meth:`hurdle`; their parameters are scalars, or arrays with one value per leaf in the order
    of ``tree.leaves``.  Any other law is given as a ``FiniteLaw`` in place of a ``LeafPrior``.

    .. math:: \frac{\pi(1)}{\pi(0)} = e^{\mathtt{log\_jump}}, \qquad
        \frac{\pi(x+1)}{\pi(x)} = q\,\frac{x + r}{x + 1} \quad (x \ge 1)

    and :math:`\mu / (x + 1)` when r is infinite.  Normalisers cancel in a posterior.

    Attributes
    ----------
    name : str
        Which constructor made it.
    log_jump : ndarray
        Log of the ratio of the probabilities of 1 and 0.
    size : ndarray
        r; infinite for the Poisson law.
    log_ratio : ndarray
        log q, or log of the Poisson mean.

    Examples
    --------
    >>> LeafPrior.flat().log_ratios([0, 1, 5]).tolist()
    [0.0, 0.0, 0.0]
    >>> LeafPrior.poisson(2.0).log_ratios([0, 1]).round(4).tolist()
    [0.6931, 0.0]
    """

    name: str
    log_jump: FloatArray
    size: FloatArray
    log_ratio: FloatArray

    def __post_init__(self) -> None:
        check.instance(self.name, str, "name")
        for name in ("log_jump", "size", "log_ratio"):
            values = check.as_array(getattr(self, name), name)
            if values.dtype.kind not in "iuf" or np.isnan(values).any():
                raise ArgumentError(name, "must hold numbers", got=values)
            object.__setattr__(self, name, values.astype(np.float64))

    @classmethod
    def flat(cls) -> "LeafPrior":
        """Return the improper prior that is constant on 0, 1, 2, ..."""
        return cls("flat", np.zeros(()), np.ones(()), np.zeros(()))

    @classmethod
    def poisson(cls, mean: ArrayLike) -> "LeafPrior":
        """Return the Poisson prior of a mean in (0, 2**52]."""
        log_mean = np.log(_positive(mean, "mean"))
        return cls("poisson", log_mean, np.full(log_mean.shape, np.inf), log_mean)

    @classmethod
    def negative_binomial(cls, mean: ArrayLike, *, dispersion: ArrayLike) -> "LeafPrior":
        r"""Return the negative binomial prior of a mean in (0, 2**52].

        Its dispersion is :math:`\alpha` of the variance :math:`\mu + \alpha \mu^2`, in
        [1e-300, 1e300].
        """
        mu = _positive(mean, "mean")
        alpha = check.real_array(dispersion, "dispersion", lower=1e-300, upper=1e300)
        check.broadcast(mean=mu, dispersion=alpha)
        # q = alpha mu / (1 + alpha mu), and q r = mu / (1 + alpha mu)
        log_jump = np.log(mu) - np.log1p(alpha * mu)
        log_q = np.log(alpha) + log_jump
        return cls("negative_binomial", log_jump, np.broadcast_to(1.0 / alpha, log_q.shape), log_q)

    @classmethod
    def hurdle(
        cls, probability: ArrayLike, *, mean: ArrayLike, positive: str = "geometric"
    ) -> "LeafPrior":
        r"""Return the sparse prior: zero with probability 1 - w, else a law on 1, 2, ...

        ``probability`` is w, in (0, 1), and a ``positive`` count is geometric of a mean >= 1, or
        ``"poisson"``: with zero removed from the law of that mean, > 0.
        """
        check.choice(positive, "positive", ("geometric", "poisson"))
        w = check.probability(probability, "probability")
        odds = np.log(w) - np.log1p(-w)
        if positive == "geometric":
            mu = check.real_array(mean, "mean", lower=1.0, upper=check.MAX_COUNT)
            check.broadcast(probability=w, mean=mu)
            with np.errstate(divide="ignore"):
                log_q = np.broadcast_to(np.log1p(-1.0 / mu), np.broadcast(w, mu).shape)
            return cls("hurdle", odds - np.log(mu), np.ones(log_q.shape), np.array(log_q))
        mu = _positive(mean, "mean")
        check.broadcast(probability=w, mean=mu)
        first = np.log(mu) - mu - np.log(-np.expm1(-mu))  # log P(1 | positive)
        log_mean = np.broadcast_to(np.log(mu), np.broadcast(w, mu).shape)
        return cls("hurdle", odds + first, np.full(log_mean.shape, np.inf), np.array(log_mean))

    def log_ratios(self, x: ArrayLike) -> FloatArray:
        """Return log P(x + 1) - log P(x)."""
        count = check.count_array(x, "x", lower=0).astype(float)
        with np.errstate(invalid="ignore"):
            grown = np.where(np.isinf(self.size), 1.0, (count + self.size)) / (count + 1.0)
        return np.asarray(np.where(count == 0.0, self.log_jump, self.log_ratio + np.log(grown)))


def _positive(value: ArrayLike, name: str) -> FloatArray:
    return check.real_array(value, name, lower=0.0, upper=check.MAX_COUNT, bounds="(]")
