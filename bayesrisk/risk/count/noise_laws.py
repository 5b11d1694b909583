"""Laws of noise of one budget, and the question of one count under each: in closed form, drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import FloatAnswer, FloatArray, IntArray
from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.inference.count.posterior import count_posterior
from bayesrisk.risk.count.blocks import DecisionAccuracy, combine
from bayesrisk.risk.count.question import CountRisk

_DRAWS_AT_ONCE = 2**20  # 8 MiB
_TAIL = 2.0**-60  # of the noise left out on each side
_VALUES = 2**13
_ROUNDING = 1e-11  # relative standard errors below it are rounding, not chance


@dataclass(frozen=True, eq=False)
class LaplaceRisk:
    """The answers of :class:`CountRisk` under discrete Laplace noise, in closed form.

    The evidence of a release for X = k + 1 against X = k is one of two values: +1/b from k + 1
    upwards, -1/b below.  So there are two posteriors, and every average is a sum of two terms.  The
    general form, :func:`marginal_count_posterior`, gives the same by summation; this one holds at
    any scale b.  Counts are measured from the known one.
    """

    scale: float
    prior: FloatArray

    def posterior(self, noisy: IntArray) -> FloatArray:
        """Return the posterior given released counts."""
        pmf = np.stack((1.0 - self.prior, self.prior), axis=-1)
        law = DiscreteLaplace(self.scale)
        return np.asarray(count_posterior(noisy, noise=law, prior_pmf=pmf))[..., 1]

    def _posteriors(self) -> tuple[FloatArray, FloatArray]:
        """Return the posterior after a release above, and after one not above, the known count."""
        p, q = self.prior, 1.0 - self.prior
        with np.errstate(over="ignore"):
            decay, growth = np.exp(-1.0 / self.scale), np.exp(1.0 / self.scale)
            return p / (p + q * decay), p / (p + q * growth)

    def _share(self) -> float:
        """Return P(Y > k | X = k + 1) = P(noise >= 0) = P(Y <= k | X = k)."""
        return float(DiscreteLaplace(self.scale).sf(-1))

    def marginal_posterior(self) -> FloatArray:
        """Return the posterior averaged over releases, if the target is there."""
        (above, below), share = self._posteriors(), self._share()
        return np.asarray(share * above + (1.0 - share) * below)

    def marginal_risk(self) -> FloatArray:
        """Return the average posterior over the prior."""
        return self.marginal_posterior() / self.prior

    def decision_threshold(self) -> FloatArray:
        """Return the smallest release at which the posterior is at least 1/2, or infinity."""
        above, below = self._posteriors()
        return np.where(below >= 0.5, -np.inf, np.where(above >= 0.5, 1.0, np.inf))

    def _reached(self, always: float) -> FloatArray:
        """Return the chance of the guess that needs a release, where it depends on one."""
        least = self.decision_threshold()
        other = np.where(least > 1.0, 1.0 - always, self._share())
        return np.where(np.isneginf(least), always, other)

    def correct_decision(self) -> FloatArray:
        """Return the probability that the target is found, if it is there."""
        return self._reached(1.0)

    def accuracy(self) -> DecisionAccuracy:
        """Return the rate of right guesses, the target there or not."""
        return combine(self.prior, self._reached(1.0), self._reached(0.0))


class NoiseRisk(NamedTuple):
    """One noisy count under a law of noise: the law, its parameter, the question, and epsilon.

    Counts are measured from the known one, priors have one axis, and epsilon is a function of
    delta.
    """

    parameter: float
    noise: DiscreteGaussian | DiscreteLaplace
    question: CountRisk | LaplaceRisk
    epsilon: Callable[[float], FloatAnswer]

    def posteriors(self, noisy: IntArray) -> FloatArray:
        """Return the posterior of each prior, a row, given each released count."""
        return np.ascontiguousarray(np.asarray(self.question.posterior(noisy[:, None])).T)

    def simulated(self, releases: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the posterior averaged over simulated releases, and its standard error."""
        tally: Counter[int] = Counter()
        for start in range(0, releases, _DRAWS_AT_ONCE):
            draws = 1 + self.noise.rvs(min(_DRAWS_AT_ONCE, releases - start), rng)
            values, repeats = np.unique(draws, return_counts=True)
            tally.update(dict(zip(values.tolist(), repeats.tolist(), strict=True)))
        noisy, times = np.array(sorted(tally.items())).T
        posterior = self.posteriors(noisy)
        mean = posterior @ times / releases
        variance = ((posterior - mean[:, None]) ** 2) @ times / (releases - 1)
        return mean, np.sqrt(variance / releases)

    def effective_releases(self, releases: int) -> FloatArray:
        """Return the number of simulated releases on which the standard error rests.

        With d the distance of the posterior from its average, n E[d^2]^2 / E[d^4]: n/3 for a normal
        d, the expected number of rare releases where these make all of it.  It is computed from the
        law and not from the draws: a release so rare that it was not drawn is what the draws cannot
        tell.  0 where the posterior is the same to rounding for every release.
        """
        first, last = int(self.noise.ppf(_TAIL)), int(self.noise.isf(_TAIL))
        # Noise that is spread over more values than these is smooth: some of them will do.
        noisy = 1 + np.arange(first, last + 1, 1 + (last - first) // _VALUES)
        mass = np.asarray(self.noise.pmf(noisy - 1))
        mass = mass / mass.sum()
        posterior = self.posteriors(noisy)
        distance = np.abs(posterior / (posterior @ mass)[:, None] - 1.0)
        second, fourth = distance**2 @ mass, distance**4 @ mass
        with np.errstate(invalid="ignore", divide="ignore"):
            effective = releases * second**2 / fourth
        return np.where(np.sqrt(second / releases) > _ROUNDING, effective, 0.0)


def gaussian_risk(rho: float, sensitivity: float, priors: FloatArray) -> NoiseRisk:
    """Return the risk under discrete Gaussian noise of a zCDP budget."""
    sigma2 = sensitivity**2 / (2.0 * rho)
    question = CountRisk(rho=rho, prior=priors, sensitivity=sensitivity)
    return NoiseRisk(sigma2, DiscreteGaussian(sigma2), question, partial(rho_to_epsilon, rho))


def laplace_risk(rho: float, sensitivity: float, priors: FloatArray) -> NoiseRisk:
    """Return the risk under discrete Laplace noise of that budget: epsilon = sqrt(2 rho)."""
    epsilon = float(np.sqrt(2.0 * rho))
    scale = sensitivity / epsilon
    return NoiseRisk(scale, DiscreteLaplace(scale), LaplaceRisk(scale, priors), lambda _: epsilon)


#: The risk of a budget, a sensitivity and priors by the law of noise; the first is the usual one.
LAWS = {"discrete-gaussian": gaussian_risk, "discrete-laplace": laplace_risk}
