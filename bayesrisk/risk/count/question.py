"""Risk of one noisy count, before it is drawn: one question, whose answers are averages.

Only this module uses the truth. Every average is over the noise around X = k + 1, the count that
includes the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.doors import door
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntArray
from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.inference.count.posterior import (
    CountArguments,
    NoisyCount,
    count_posterior,
    threshold_offset,
)
from bayesrisk.risk.count.averages import marginal_ratio
from bayesrisk.risk.count.blocks import SCENARIOS, BlockRisk, DecisionAccuracy, combine


@dataclass(frozen=True, eq=False, kw_only=True)
class CountRisk(NoisyCount):
    """The risk of one noisy count before it is released.

    The methods of :class:`~bayesrisk.inference.NoisyCount` say what an adversary infers from one
    release. This class adds averages over all releases that the noise may give. They do not depend
    on the counts, as only y - k matters. Source: Kazan and Reiter (arXiv:2204.04253), equations
    (3.3) to (3.6).

    Attributes
    ----------
    rho, prior, known_count, sensitivity, sigma2 : array_like
        As for :class:`~bayesrisk.inference.NoisyCount`.

    Examples
    --------
    >>> count = CountRisk(rho=0.0992264, prior=[1 / 2, 1 / 5])
    >>> count.marginal_posterior().round(6).tolist()
    [0.523666, 0.225423]
    >>> round(float(CountRisk(rho=0.0992264, prior=1 / 864).marginal_risk()), 6)
    1.218828
    >>> count.correct_decision().round(7).tolist()
    [0.5888605, 0.0017522]

    At prior 1/5 the target is hardly ever found, and always guessing "no" is right 80 % of the
    time:

    >>> count.accuracy().accuracy.round(5).tolist(), count.accuracy().baseline.tolist()
    ([0.58886, 0.80005], [0.5, 0.8])
    >>> result = CountRisk(rho=0.0992264, prior=0.5).summary([1, 3])
    >>> result.to_frame()[["noisy_count", "prior", "posterior", "risk_ratio"]].round(3)
       noisy_count  prior  posterior  risk_ratio
    0            1    0.5      0.525       1.050
    1            3    0.5      0.622       1.243
    """

    def marginal_risk(self) -> FloatAnswer:
        r"""Return the risk ratio averaged over all releases, if the target is in the cell.

        .. math:: \sum_y f(y - k - 1)\, \pi(y) / p

        It is in [1, 1 / p]; its relative error is at most (16 + 3 min(rho, log(1 / p))) 2**-52,
        truncation included. For small priors it is not monotone in rho. Noise of about one unit
        sometimes makes the adversary certain; less noise makes such releases rare before it is
        convincing in general.
        """
        precision, p, _ = self._values
        # Beyond these the ratio is 1, or 1 / p, in double precision.
        return check.answer(marginal_ratio(np.clip(precision, 1e-200, 1e100), p))

    def marginal_posterior(self) -> FloatAnswer:
        r"""Return the posterior averaged over all releases, if the target is in the cell.

        .. math:: \sum_y f(y - k - 1)\, \pi(y)

        It is in [p, 1]; errors are those of :meth:`marginal_risk`.
        """
        return np.minimum(self.marginal_risk() * self._values.prior, 1.0)[()]

    def correct_decision(self) -> FloatAnswer:
        r"""Return the probability that the target is found, if it is in the cell.

        .. math:: P(\eta \ge t - 1), \quad t = \lceil 1/2 + \log((1-p)/p) / (2\rho) \rceil

        The adversary guesses "in the cell" if the posterior is at least 1/2, and is right if the
        target is there. Guesses about absent targets do not count here; :meth:`accuracy` counts
        both, beside the rate without a release.

        The probability is exact to 1e-13 relative. It is not monotone in rho: it drops where the
        threshold stays and the noise shrinks.
        """
        noise, threshold = self._noise_and_threshold()
        return noise.sf(threshold - 2.0)

    def accuracy(self) -> DecisionAccuracy:
        r"""Return the rate at which the adversary's best guess is right, target present or not.

        .. math:: p\, P(\eta \ge t - 1) + (1 - p)\, P(\eta < t)
            = \sum_y \max\{p\, f(y - k - 1),\ (1 - p)\, f(y - k)\}

        Here t is as for :meth:`correct_decision`. The baseline is max(p, 1 - p), the rate of an
        adversary who ignores the release and guesses the more probable. The release adds the
        difference.

        The absolute error is at most 4e-13 (1e-13 relative for each half). Ties do not affect the
        accuracy.
        """
        noise, threshold = self._noise_and_threshold()
        detection, clearance = noise.sf(threshold - 2.0), noise.cdf(threshold - 1.0)
        return combine(self._values.prior, np.asarray(detection), np.asarray(clearance))

    def _noise_and_threshold(self) -> tuple[DiscreteGaussian, FloatArray]:
        precision, p, _ = self._values
        return DiscreteGaussian.from_rho(precision), threshold_offset(precision, p)

    def summary(
        self, noisy_count: ArrayLike, *, scenario_name: str = "characteristics"
    ) -> BlockRisk:
        """Return beliefs, averages and decisions for released counts ``noisy_count``.

        ``scenario_name`` names the adversary's question; see :meth:`Scenario.named`.
        """
        check.choice(scenario_name, "scenario_name", tuple(SCENARIOS))
        decisions = self.accuracy()
        columns = {
            "noisy_count": check.count_array(noisy_count, "noisy_count"),
            "known_count": self._values.known_count,
            "sigma2": 0.5 / self._values.precision,
            "posterior": self.posterior(noisy_count),
            "risk_ratio": self.risk_ratio(noisy_count),
            "decision_threshold": self.decision_threshold(),
            "marginal_risk": self.marginal_risk(),
        }
        halves = [getattr(decisions, field.name) for field in fields(decisions)]
        arrays: list[Any] = list(np.broadcast_arrays(*columns.values(), *halves))
        named = dict(zip(columns, arrays[: len(columns)], strict=True))
        decisions = DecisionAccuracy(*arrays[len(columns) :])
        return BlockRisk(**named, decisions=decisions, scenario=SCENARIOS[scenario_name])


@door(CountRisk)
def marginal_risk(**question: Unpack[CountArguments]) -> FloatAnswer:
    """Return the average risk ratio over releases: :meth:`CountRisk.marginal_risk`."""
    return CountRisk(**question).marginal_risk()


@door(CountRisk)
def marginal_posterior(**question: Unpack[CountArguments]) -> FloatAnswer:
    """Return the average posterior over releases: :meth:`CountRisk.marginal_posterior`."""
    return CountRisk(**question).marginal_posterior()


@door(CountRisk)
def correct_decision_probability(**question: Unpack[CountArguments]) -> FloatAnswer:
    """Return the probability that the target is found: :meth:`CountRisk.correct_decision`."""
    return CountRisk(**question).correct_decision()


@door(CountRisk)
def decision_accuracy(**question: Unpack[CountArguments]) -> DecisionAccuracy:
    """Return the rate of right guesses, target present or not: :meth:`CountRisk.accuracy`."""
    return CountRisk(**question).accuracy()


@door(CountRisk)
def block_risk(
    noisy_count: ArrayLike,
    *,
    scenario_name: str = "characteristics",
    **question: Unpack[CountArguments],
) -> BlockRisk:
    """Return beliefs, averages and decisions for released counts: :meth:`CountRisk.summary`."""
    return CountRisk(**question).summary(noisy_count, scenario_name=scenario_name)


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
        """Return the posterior after a release above k, and after one of at most k."""
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
        """Return the probability that the guess is right; ``always`` is that of always "there"."""
        least = self.decision_threshold()
        other = np.where(least > 1.0, 1.0 - always, self._share())
        return np.where(np.isneginf(least), always, other)

    def correct_decision(self) -> FloatArray:
        """Return the probability that the target is found, if it is there."""
        return self._reached(1.0)

    def accuracy(self) -> DecisionAccuracy:
        """Return the rate of right guesses, target present or not."""
        return combine(self.prior, self._reached(1.0), self._reached(0.0))


class NoiseRisk(NamedTuple):
    """One noisy count under one kind of noise: its law, parameter, answers and epsilon.

    Counts are measured from the known one, priors have one axis, and epsilon is a function of
    delta.
    """

    parameter: float
    noise: DiscreteGaussian | DiscreteLaplace
    question: CountRisk | LaplaceRisk
    epsilon: Callable[[float], FloatAnswer]

    def posteriors(self, noisy: IntArray) -> FloatArray:
        """Return the posterior for each prior (rows) given each released count."""
        return np.ascontiguousarray(np.asarray(self.question.posterior(noisy[:, None])).T)

    def simulated(self, releases: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the average posterior over simulated releases, and its standard error."""
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

        With d the distance of the posterior from its average, it is n E[d^2]^2 / E[d^4]. This is
        n/3 for a normal d, and the expected number of rare releases if these dominate. It is
        computed from the law and not from the draws, which say nothing about a release too rare to
        be drawn. It is 0 if the posterior is equal to rounding for every release.
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
