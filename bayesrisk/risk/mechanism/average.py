"""Average risk from a simulated likelihood: a bracket whose ends err in known directions.

With posterior pi = w_t P_t / sum_h w_h P_h, the average given the truth t is a quadratic:
m = E_t[pi] = E_mix[pi**2] / w_t.  For any function q of the release,

    2 E_t[q] - E_mix[q**2] / w_t = m - E_mix[(q - pi)**2] / w_t <= m,

so that a posterior learnt from other draws gives a lower end.  Relative frequencies put in for the
laws, on the same draws, give an upper end: p1**2 / (w1 p1 + w0 p0) is jointly convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.simulated import SimulatedLikelihood, prior_vector

if TYPE_CHECKING:
    import pandas as pd

_GROUPS = 20  # of the jackknife: independent replicates left out in turn
_METHOD = "simulated"


@displayed
@dataclass(frozen=True)
class AverageRisk:
    """Average posterior of the truth and right decisions, with everything that may be wrong.

    Attributes
    ----------
    prior : float
        Belief in the truth before the release: the baseline.
    marginal_posterior : Estimate
        Posterior of the truth averaged over releases, in [prior, 1].  Simulated, it is the middle
        of two estimates whose biases have opposite signs: its standard error comes from leaving out
        one in twenty of the draws at a time, and its interval runs from the lower estimate minus
        its error to the upper plus its own.
    correct_decision_probability : Estimate
        Probability that the truth is found: how often it is the most probable hypothesis, given
        that it is the truth; ties are shared.  Releases whose decision the draws do not settle
        count as wrong at one end of the interval and as right at the other.
    decision_accuracy : Estimate
        How often the most probable hypothesis is the true one, whichever is true.  Simulated, its
        interval runs from a decision learnt from other draws to relative frequencies put in for
        the laws.
    decision_baseline : float
        The same without a release: the largest prior.
    bias_bound : float
        How far bias may move the average beside its standard error: half the distance of the two
        estimates; 0 for known likelihoods.
    draws : int
        Draws under each hypothesis; 0 where none were.
    smoothing : float
        Pseudo-count of the simulated likelihood.
    seed : int
        Root of the random streams.
    """

    prior: float
    marginal_posterior: Estimate
    correct_decision_probability: Estimate
    decision_accuracy: Estimate
    decision_baseline: float
    bias_bound: float = 0.0
    draws: int = 0
    smoothing: float = 0.0
    seed: int = 0

    @property
    def marginal_risk(self) -> Estimate:
        """The average posterior over the prior: 1 where nothing is learned, 1 / prior at most."""
        return self.marginal_posterior.over(self.prior)

    @property
    def method(self) -> str:
        """How it was computed.

        ``"closed-form"``; ``"closed-form likelihood, sampled releases"``; ``"deterministic"``, for
        a mechanism that draws nothing; or ``"simulated"``.
        """
        return self.marginal_posterior.method

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return self.marginal_posterior.confidence

    def to_frame(self) -> pd.DataFrame:
        """Return one row."""
        import pandas as pd  # slow to import

        row = {
            "method": self.method,
            "prior": self.prior,
            **self.marginal_posterior.columns("marginal_posterior"),
            "bias_bound": self.bias_bound,
            **self.marginal_risk.columns("marginal_risk"),
            **self.correct_decision_probability.columns("correct_decision_probability"),
            **self.decision_accuracy.columns("decision_accuracy"),
            "decision_baseline": self.decision_baseline,
            "confidence": self.confidence,
            "draws": self.draws,
            "smoothing": self.smoothing,
            "seed": self.seed,
            "version": __version__,
        }
        return pd.DataFrame([row])


def _estimates(
    codes: NDArray[np.int64],
    prior: NDArray[np.float64],
    truth: int,
    smoothing: float,
    n_values: int,
) -> tuple[float, float]:
    """Return the lower estimate (each draw judged by all others) and the upper one."""
    counts = np.stack([np.bincount(row, minlength=n_values) for row in codes])
    mixture = prior @ counts
    drawn = mixture > 0.0
    upper = prior[truth] * (counts[truth, drawn] ** 2 / mixture[drawn]).sum() / codes.shape[1]
    lower = 0.0
    for h, row in enumerate(codes):
        if prior[h] == 0.0:
            continue
        left = counts[:, row] - (codes == row)  # without the replicate that is judged
        joint = prior[:, None] * (left + smoothing)
        posterior = joint[truth] / joint.sum(axis=0)
        lower -= prior[h] * np.mean(posterior**2) / prior[truth]
        if h == truth:
            lower += 2.0 * np.mean(posterior)
    return float(lower), float(upper)


def _jackknife(
    codes: NDArray[np.int64],
    prior: NDArray[np.float64],
    truth: int,
    smoothing: float,
    n_values: int,
) -> NDArray[np.float64]:
    """Return the standard errors of the lower estimate, the upper one and their middle."""
    group = np.arange(codes.shape[1]) % _GROUPS
    without = np.array(
        [
            _estimates(codes[:, group != g], prior, truth, smoothing, n_values)
            for g in range(_GROUPS)
        ]
    )
    all_three = np.column_stack([without, without.mean(axis=1)])
    return np.asarray(np.sqrt((_GROUPS - 1.0) * all_three.var(axis=0)))


def _decisions(
    likelihood: SimulatedLikelihood, prior: NDArray[np.float64], truth: int, quantile: float
) -> tuple[float, float, float, float]:
    """Return how often the truth is decided for, the error, and the ends of the interval."""
    codes, counts = likelihood.codes, likelihood.counts
    own, n = codes[truth], likelihood.draws
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    # Every draw under the truth, judged by all others.
    left = counts[:, own] - (codes == own)
    score = log_prior[:, None] + np.log(left + likelihood.smoothing)
    best = score >= score.max(axis=0) - 1e-12
    right = best[truth] / best.sum(axis=0)
    error = float(np.std(right) / np.sqrt(n))
    # Every value: is the decision settled against each other hypothesis?
    weight = counts + likelihood.smoothing
    surely, surely_not = np.ones(counts.shape[1], bool), np.zeros(counts.shape[1], bool)
    for h in np.flatnonzero(prior > 0.0):
        if h == truth:
            continue
        odds = log_prior[truth] - log_prior[h] + np.log(weight[truth] / weight[h])
        together: NDArray[Any] = np.zeros(counts.shape[1])
        if likelihood.streams == "common":
            together = np.bincount(own[own == codes[h]], minlength=counts.shape[1])
        variance = 1.0 / weight[truth] + 1.0 / weight[h]
        variance = variance - 2.0 * together / (weight[truth] * weight[h])
        reach = quantile * np.sqrt(np.maximum(variance, 0.0))
        surely &= odds > reach
        surely_not |= odds < -reach
    lower = _shares(float(counts[truth, surely].sum()), n, quantile)[0]
    upper = _shares(float(counts[truth, ~surely_not].sum()), n, quantile)[1]
    value = float(right.mean())
    return value, error, min(lower, value), max(upper, value)


def _accuracy(
    likelihood: SimulatedLikelihood, prior: NDArray[np.float64], quantile: float
) -> tuple[float, float, float, float]:
    """Return how often the best guess is right over all hypotheses, its error, and the ends.

    A decision learnt from all other draws is right less often than the best one, on average;
    relative frequencies put in for the laws make a convex functional too large.
    """
    codes, counts, n = likelihood.codes, likelihood.counts, likelihood.draws
    joint = prior[:, None] * counts
    top = joint >= joint.max(axis=0) * (1.0 - 1e-12)
    low, high = np.zeros(n), np.zeros(n)
    for h in np.flatnonzero(prior > 0.0):
        left = counts[:, codes[h]] - (codes == codes[h])
        score = prior[:, None] * (left + likelihood.smoothing)
        best = score >= score.max(axis=0) * (1.0 - 1e-12)
        low += prior[h] * best[h] / best.sum(axis=0)
        high += prior[h] * (top[h] / top.sum(axis=0))[codes[h]]
    errors = [float(np.std(part) / np.sqrt(n)) for part in (low, high)]
    value = float(0.5 * (low.mean() + high.mean()))
    ends = low.mean() - quantile * errors[0], high.mean() + quantile * errors[1]
    least = float(prior.max())
    value, lower, upper = np.clip([value, *ends], least, 1.0).tolist()
    return value, max(errors), min(lower, value), max(upper, value)


def _shares(hits: float, draws: int, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share."""
    square = quantile**2
    centre = (hits + 0.5 * square) / (draws + square)
    share = hits / draws
    reach = quantile * np.sqrt(share * (1.0 - share) / draws + 0.25 * square / draws**2)
    reach /= 1.0 + square / draws
    lower = 0.0 if hits == 0 else max(0.0, float(centre - reach))
    return lower, 1.0 if hits == draws else min(1.0, float(centre + reach))


def simulated_marginal_posterior(
    likelihood: SimulatedLikelihood,
    *,
    prior_pmf: ArrayLike,
    truth: int,
    confidence: float = 0.95,
) -> AverageRisk:
    r"""Return the posterior of the truth averaged over releases, from simulated releases.

    .. math:: m = E_t[\pi] = \frac{1}{w_t} E_{\mathrm{mix}}[\pi^2], \qquad
        \pi(y) = \frac{w_t P_t(y)}{\sum_h w_h P_h(y)}

    The lower estimate :math:`2 E_t[\hat\pi] - E_{\mathrm{mix}}[\hat\pi^2] / w_t` judges every
    draw by a posterior from all other draws (as many folds as draws): it is below m on average by
    exactly the mean squared error of that posterior, over the prior.  The upper one puts relative
    frequencies in for the laws: above m on average, because the functional is convex.

    Parameters
    ----------
    likelihood : SimulatedLikelihood
        Releases drawn under each hypothesis; at least 40 draws.
    prior_pmf : array_like, shape (hypotheses,)
        Belief in each hypothesis; sums to 1, and is positive for the truth.
    truth : int
        Which hypothesis is true.
    confidence : float, default 0.95
        Of the intervals, in (0, 1).

    Returns
    -------
    AverageRisk
        Average posterior, its ratio to the prior, and how often the adversary decides rightly.

    Notes
    -----
    The interval runs from the lower estimate minus t times its jackknife error to the upper plus t
    times its own (t of 19 degrees of freedom), cut to [prior, 1], in which m lies always.  Where
    few releases repeat it is wide: the draws cannot tell.  A prior below about 3 / draws keeps
    the upper end large, whatever the truth, because n draws do not exclude a probability of 3 / n.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> from bayesrisk.inference import simulated_likelihood
    >>> law = DiscreteGaussian.from_rho(0.0992264)
    >>> likelihood = simulated_likelihood(
    ...     lambda h, rng, size: h + law.rvs(size, random_state=rng),
    ...     hypotheses=2, draws=20_000, batch=20_000, rng=7,
    ... )
    >>> result = simulated_marginal_posterior(likelihood, prior_pmf=[0.8, 0.2], truth=1)
    >>> result.marginal_posterior.lower < 0.2254231 < result.marginal_posterior.upper
    True
    """
    if not isinstance(likelihood, SimulatedLikelihood):
        raise ArgumentTypeError(
            f"likelihood must be a SimulatedLikelihood, got {shown(likelihood)}"
        )
    prior = prior_vector(prior_pmf, len(likelihood.counts))
    truth = check.integer(truth, "truth", lower=0, upper=len(prior) - 1)
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if prior[truth] <= 0.0:
        raise ArgumentError(f"prior_pmf[{truth}] must be > 0, got {prior[truth]}")
    if likelihood.draws < 2 * _GROUPS:
        raise ArgumentError(
            f"likelihood must have at least {2 * _GROUPS} draws, got {likelihood.draws}"
        )
    p = float(prior[truth])
    setting = (likelihood.codes, prior, truth, likelihood.smoothing, len(likelihood.values))
    low, high = _estimates(*setting)
    low_error, high_error, error = _jackknife(*setting)
    t = float(special.stdtrit(_GROUPS - 1, 0.5 + 0.5 * level))
    middle = 0.5 * (low + high)
    ends = min(low - t * low_error, middle), max(high + t * high_error, middle)
    value, lower, upper = np.clip([middle, *ends], p, 1.0)
    quantile = float(special.ndtri(0.5 + 0.5 * level))
    right, accuracy = (
        Estimate(*numbers, confidence=level, method=_METHOD)
        for numbers in (
            _decisions(likelihood, prior, truth, quantile),
            _accuracy(likelihood, prior, quantile),
        )
    )
    return AverageRisk(
        prior=p,
        marginal_posterior=Estimate(value, error, lower, upper, level, _METHOD),
        bias_bound=max(0.0, 0.5 * (min(high, 1.0) - max(low, p))),
        correct_decision_probability=right,
        decision_accuracy=accuracy,
        decision_baseline=float(prior.max()),
        draws=likelihood.draws,
        smoothing=likelihood.smoothing,
        seed=likelihood.seed,
    )
