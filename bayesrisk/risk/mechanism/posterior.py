"""Risk under any protection: average posterior, ratio and right decisions, with utility.

The adversary is that of Kazan and Reiter, who knows the mechanism and every record but the
target's. The prior is over the possible records of the target and its absence. The adversary sees
the released counts of the named cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.randomness import generator, seeded
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.simulated import SimulatedLikelihood, prior_vector, simulated_likelihood
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism.hypotheses import (
    Cell,
    MechanismOptions,
    MechanismQuestion,
    Target,
    TargetHypotheses,
    ask,
    read_options,
)
from bayesrisk.risk.mechanism.simulation import ReleaseSimulation, TruthDraws, utility_and_spec
from bayesrisk.tables import Microdata, Records, Workload

# Average risk from a simulated likelihood: a bracket whose ends err in known directions.
#
# The average m = E_t[pi] = E_mix[pi**2] / w_t is a quadratic in the posterior pi, so that for any
# function q of the release 2 E_t[q] - E_mix[q**2] / w_t = m - E_mix[(q - pi)**2] / w_t <= m.


_GROUPS = 20  # of the jackknife: independent replicates left out in turn


@displayed
@dataclass(frozen=True)
class AverageRisk(Tabular):
    """Average posterior and right decisions for one target, with intervals for all errors.

    Attributes
    ----------
    prior : float
        Prior probability of the truth: the baseline.
    marginal_posterior : Estimate
        Posterior of the truth averaged over releases, in [prior, 1]. If simulated, it is the mean
        of two estimates with biases of opposite sign (:func:`simulated_marginal_posterior`).
    correct_decision_probability : Estimate
        Probability that the truth is the most probable hypothesis, given that it is true; ties are
        shared. Releases whose decision the draws do not settle count as wrong at one end of the
        interval and as right at the other.
    decision_accuracy : Estimate
        Probability that the most probable hypothesis is true, whichever is true. If simulated, its
        interval has two ends: a decision learnt from other draws, and relative frequencies in place
        of the laws.
    decision_baseline : float
        The same probability without a release: the largest prior.
    bias_bound : float
        Largest bias of the average beside its standard error: half the distance of the two
        estimates; 0 for known likelihoods.
    draws, smoothing, seed : int, float, int
        Draws under each hypothesis, 0 if there are none; pseudo-count of the simulated likelihood;
        root of the random streams.
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
        """The average posterior over the prior, between 1 (nothing is learned) and 1 / prior."""
        return self.marginal_posterior.ratio(self.prior)

    @property
    def method(self) -> str:
        """Method of computation.

        It is ``"closed-form"``, ``"closed-form likelihood, sampled releases"``, ``"simulated"``,
        or, for a mechanism without randomness, ``"deterministic"``.
        """
        return self.marginal_posterior.method

    @property
    def confidence(self) -> float:
        """Confidence of the intervals."""
        return self.marginal_posterior.confidence

    def to_frame(self) -> pd.DataFrame:
        """Return one row."""
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
    codes: IntArray, prior: FloatArray, truth: int, smoothing: float, n_values: int
) -> tuple[float, float]:
    """Return a lower estimate of the average posterior (each draw left out) and an upper one."""
    counts = np.stack([np.bincount(row, minlength=n_values) for row in codes])
    mixture = prior @ counts
    occurs = mixture > 0.0
    upper = prior[truth] * (counts[truth, occurs] ** 2 / mixture[occurs]).sum() / codes.shape[1]
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


def _decisions(
    likelihood: SimulatedLikelihood, prior: FloatArray, truth: int, quantile: float
) -> tuple[float, float, float, float]:
    """Return the rate of decisions for the truth, its error, and its interval."""
    codes, counts = likelihood.codes, likelihood.counts
    true_codes, n = codes[truth], likelihood.draws
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    # Every draw under the truth, judged by all others.
    left = counts[:, true_codes] - (codes == true_codes)
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
        shared: IntArray = np.zeros(counts.shape[1], dtype=np.int64)
        if likelihood.streams == "common":
            shared = np.bincount(true_codes[true_codes == codes[h]], minlength=counts.shape[1])
        variance = 1.0 / weight[truth] + 1.0 / weight[h]
        variance = variance - 2.0 * shared / (weight[truth] * weight[h])
        reach = quantile * np.sqrt(np.maximum(variance, 0.0))
        surely &= odds > reach
        surely_not |= odds < -reach
    lower = _shares(float(counts[truth, surely].sum()), n, quantile)[0]
    upper = _shares(float(counts[truth, ~surely_not].sum()), n, quantile)[1]
    value = float(right.mean())
    return value, error, min(lower, value), max(upper, value)


def _accuracy(
    likelihood: SimulatedLikelihood, prior: FloatArray, quantile: float
) -> tuple[float, float, float, float]:
    """Return the rate of right best guesses over all hypotheses, its error, and its interval.

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
    """Return Wilson's interval of a share."""
    square = quantile**2
    centre = (hits + 0.5 * square) / (draws + square)
    share = hits / draws
    reach = quantile * np.sqrt(share * (1.0 - share) / draws + 0.25 * square / draws**2)
    reach /= 1.0 + square / draws
    lower = 0.0 if hits == 0 else max(0.0, float(centre - reach))
    return lower, 1.0 if hits == draws else min(1.0, float(centre + reach))


def simulated_marginal_posterior(
    likelihood: SimulatedLikelihood, *, prior_pmf: ArrayLike, truth: int, confidence: float = 0.95
) -> AverageRisk:
    r"""Return the average posterior of the truth, estimated from simulated releases.

    .. math:: m = E_t[\pi] = \frac{1}{w_t} E_{\mathrm{mix}}[\pi^2], \qquad
        \pi(y) = \frac{w_t P_t(y)}{\sum_h w_h P_h(y)}

    The lower estimate :math:`2 E_t[\hat\pi] - E_{\mathrm{mix}}[\hat\pi^2] / w_t` judges every draw
    by a posterior from all other draws. Its expectation is below m by exactly the mean squared
    error of that posterior over the prior. The upper estimate replaces the laws by relative
    frequencies. Its expectation is above m, because the functional is convex.

    Parameters
    ----------
    likelihood : SimulatedLikelihood
        Releases drawn under each hypothesis; at least 40 draws.
    prior_pmf : array_like, shape (hypotheses,)
        Prior probability of each hypothesis; they sum to 1, and that of the truth is positive.
    truth : int
        Number of the true hypothesis.
    confidence : float in (0, 1), default 0.95

    Notes
    -----
    The interval runs from the lower estimate minus t times its jackknife error to the upper plus t
    times its own. The jackknife leaves out one in twenty of the draws at a time, and t has 19
    degrees of freedom. The interval is cut to [prior, 1], which always holds m. If few releases
    repeat it is wide: the draws cannot tell. A prior below about 3 / draws keeps the upper end
    large, because n draws do not exclude a probability of 3 / n.

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
    check.instance(likelihood, SimulatedLikelihood, "likelihood")
    prior = prior_vector(prior_pmf, len(likelihood.counts))
    truth = check.integer(truth, "truth", lower=0, upper=len(prior) - 1)
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if prior[truth] <= 0.0:
        raise ArgumentError(f"prior_pmf[{truth}]", "must be > 0", shown=prior[truth])
    if likelihood.draws < 2 * _GROUPS:
        raise ArgumentError(
            "likelihood", f"must have at least {2 * _GROUPS} draws", shown=likelihood.draws
        )
    p = float(prior[truth])
    codes, setting = likelihood.codes, (prior, truth, likelihood.smoothing, len(likelihood.values))
    low, high = _estimates(codes, *setting)
    # Standard errors of the lower estimate, the upper one and their middle, by the jackknife.
    group = np.arange(codes.shape[1]) % _GROUPS
    without = np.array([_estimates(codes[:, group != g], *setting) for g in range(_GROUPS)])
    three = np.column_stack([without, without.mean(axis=1)])
    low_error, high_error, error = np.sqrt((_GROUPS - 1.0) * three.var(axis=0))
    t = float(special.stdtrit(_GROUPS - 1, 0.5 + 0.5 * level))
    middle = 0.5 * (low + high)
    ends = min(low - t * low_error, middle), max(high + t * high_error, middle)
    value, lower, upper = np.clip([middle, *ends], p, 1.0)
    quantile = float(special.ndtri(0.5 + 0.5 * level))
    right, accuracy = (
        Estimate(*numbers, confidence=level, method="simulated")
        for numbers in (
            _decisions(likelihood, prior, truth, quantile),
            _accuracy(likelihood, prior, quantile),
        )
    )
    return AverageRisk(
        prior=p,
        marginal_posterior=Estimate(value, error, lower, upper, level, "simulated"),
        bias_bound=max(0.0, 0.5 * (min(high, 1.0) - max(low, p))),
        correct_decision_probability=right,
        decision_accuracy=accuracy,
        decision_baseline=float(prior.max()),
        draws=likelihood.draws,
        smoothing=likelihood.smoothing,
        seed=likelihood.seed,
    )


# Average risk where the likelihood of every observed cell is known and cells are independent.
# Hypothesis 0 is the truth.


TAIL = 2.0**-60  # of the noise left out on each side of a cell
_MAX_RELEASES = 2**20  # releases of all cells together that are enumerated
_CHUNK = 2**16


def cell_laws(spec: MechanismSpec, question: TargetHypotheses) -> list[FloatArray] | None:
    """Return P(release | hypothesis) for each cell (hypotheses, releases), or None if not closed.

    It is None if some cell has no closed-form likelihood, or cells are not independent. Cells with
    the same count under every hypothesis are uninformative and left out.
    """
    laws = []
    for counts, (level, table, *_) in zip(question.counts.T, question.cells, strict=True):
        likelihood = spec.likelihood(level, table)
        releases = likelihood.releases(int(counts.min()), int(counts.max()), tail=TAIL)
        law = likelihood.probability(releases, counts[:, None])
        if law is None or not likelihood.independent:
            return None
        if np.ptp(counts) > 0:
            laws.append(law)
    return laws


def exact_average(
    laws: list[FloatArray],
    prior: FloatArray,
    *,
    draws: int,
    rng: np.random.Generator,
    confidence: float,
) -> AverageRisk:
    """Return the averages, by summation if there are few releases and else over drawn ones.

    The posterior is exact either way, so drawn releases give an unbiased average. ``confidence`` is
    that of the interval of such an average.
    """
    if not laws:
        values = (float(prior[0]), _right(prior[:, None]).item(), float(prior.max()))
        return _settled(values, prior, confidence)
    if np.prod([law.shape[1] for law in laws], dtype=float) <= _MAX_RELEASES:
        return _enumerated(laws, prior, confidence)
    return _sampled(laws, prior, draws=draws, rng=rng, confidence=confidence)


def fixed_average(observed: IntArray, prior: FloatArray, confidence: float) -> AverageRisk:
    """Return the averages of a deterministic mechanism.

    ``observed`` holds the counts or symbols that each hypothesis shows, (hypotheses, cells).
    ``confidence`` is stated with the averages, which are exact.
    """
    joint = np.where((observed == observed[0]).all(axis=1), prior, 0.0)
    _, symbol = np.unique(observed, axis=0, return_inverse=True)
    best = np.zeros(len(prior))  # the most probable hypothesis behind each thing shown
    np.maximum.at(best, symbol.ravel(), prior)
    values = (float(prior[0] / joint.sum()), _right(joint[:, None]).item(), float(best.sum()))
    return _settled(values, prior, confidence, method="deterministic")


def _right(joint: FloatArray) -> FloatArray:
    """Return the share of decisions for the truth; ties are shared equally."""
    best = joint >= joint.max(axis=0) * (1.0 - 1e-12)
    return np.asarray(best[0] / best.sum(axis=0))


def _settled(
    values: tuple[float, float, float],
    prior: FloatArray,
    confidence: float,
    error: float = 0.0,
    *,
    method: str = "closed-form",
) -> AverageRisk:
    """Return averages found without drawing, with one numerical error for all.

    ``values`` are the average posterior, correct decisions given the truth, and all right guesses.
    """
    posterior, correct, accuracy = (
        Estimate(v, error, max(0.0, v - error), min(1.0, v + error), confidence, method)
        for v in values
    )
    return AverageRisk(float(prior[0]), posterior, correct, accuracy, float(prior.max()))


def _enumerated(laws: list[FloatArray], prior: FloatArray, confidence: float) -> AverageRisk:
    joint = prior[:, None]
    mass = np.ones(1)
    for law in laws:
        joint = (joint[:, :, None] * law[:, None, :]).reshape(len(prior), -1)
        mass = np.multiply.outer(mass, law[0]).ravel()
    accuracy = float(joint.max(axis=0).sum())
    unseen = max(0.0, 1.0 - float(joint.sum()))
    possible = mass > 0.0
    joint, mass = joint[:, possible], mass[possible]
    with np.errstate(under="ignore", invalid="ignore"):
        posterior = joint[0] / joint.sum(axis=0)
    # Underflow of everything: releases of no weight.
    posterior = np.where(np.isnan(posterior), 1.0, posterior)
    missing = max(0.0, 1.0 - float(mass.sum()))
    values = (
        min(max(float(mass @ posterior), float(prior[0])), 1.0),
        min(float(mass @ _right(joint)), 1.0),
        min(max(accuracy, float(prior.max())), 1.0),
    )
    return _settled(values, prior, confidence, max(missing, unseen) + mass.size * 2.0**-52)


def _sampled(
    laws: list[FloatArray],
    prior: FloatArray,
    *,
    draws: int,
    rng: np.random.Generator,
    confidence: float,
) -> AverageRisk:
    posterior, right, best = np.empty(draws), np.empty(draws), np.empty(draws)
    for chosen, joint in _joints(laws, prior, np.zeros(draws, dtype=np.int64), rng):
        posterior[chosen] = joint[0] / joint.sum(axis=0)
        right[chosen] = _right(joint)
    # The best guess is right with the probability of the most probable, over all hypotheses,
    # which are drawn as the adversary believes in them.
    edges = np.cumsum(prior)
    hypotheses = np.searchsorted(edges[:-1], rng.random(draws) * edges[-1], side="right")
    for chosen, joint in _joints(laws, prior, hypotheses, rng):
        best[chosen] = joint.max(axis=0) / joint.sum(axis=0)
    method = "closed-form likelihood, sampled releases"
    quantile = float(special.ndtri(0.5 + 0.5 * confidence))

    def average(values: FloatArray, least: float, least_error: float = 0.0) -> Estimate:
        value, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))
        reach = quantile * max(error, least_error)
        ends = np.clip([value, value - reach, value + reach], least, 1.0).tolist()
        return Estimate(ends[0], error, ends[1], ends[2], confidence, method)

    # Draws that are all right, or all wrong, leave one in ``draws`` open.
    correct = average(right, 0.0, 1.0 / draws)
    p, most = float(prior[0]), float(prior.max())
    return AverageRisk(p, average(posterior, p), correct, average(best, most), most, draws=draws)


def _joints(
    laws: list[FloatArray], prior: FloatArray, hypotheses: IntArray, rng: np.random.Generator
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield positions in ``hypotheses``, and joint weights of a release drawn under each."""
    with np.errstate(divide="ignore"):
        logs = [np.log(law) for law in laws]
        log_prior = np.log(prior)
    for h in np.unique(hypotheses):
        edges = [np.cumsum(law[h]) for law in laws]
        members = np.flatnonzero(hypotheses == h)
        for start in range(0, members.size, _CHUNK):
            chosen = members[start : start + _CHUNK]
            joint = np.repeat(log_prior[:, None], chosen.size, axis=1)
            for log, edge in zip(logs, edges, strict=True):
                u = rng.random(chosen.size) * edge[-1]
                joint = joint + log[:, np.searchsorted(edge[:-1], u, side="right")]
            yield chosen, np.exp(joint - joint.max(axis=0))


@displayed
@dataclass(frozen=True, eq=False, kw_only=True)
class MechanismRisk(AverageRisk):
    """Risk of one target under a protection, and the errors that the protection causes.

    It has the averages of :class:`AverageRisk`, and:

    Attributes
    ----------
    spec : MechanismSpec
        Specification of the protection.
    cells : tuple
        Observed cells: (level, table, cell, place).
    true_counts : ndarray of int64, shape (hypotheses, cells)
        Counts of the observed cells under each hypothesis; the truth is first.
    prior_pmf : ndarray, shape (hypotheses,)
        Prior probability of each hypothesis.
    utility : pandas.DataFrame
        Error of the published tables by level and table over releases of the truth: mean absolute
        and root mean square error, each with its standard error. Suppressed cells count as zeros.
    likelihood : SimulatedLikelihood or None
        For posteriors of single releases, if it was simulated.
    """

    spec: MechanismSpec
    cells: tuple[Cell, ...]
    true_counts: IntArray
    prior_pmf: FloatArray
    utility: pd.DataFrame
    likelihood: SimulatedLikelihood | None

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.spec.mechanism

    @property
    def baseline_decision_probability(self) -> float:
        """Probability of deciding correctly by the prior alone; ties are shared equally."""
        return float(_right(self.prior_pmf[:, None]).item())

    def _answer(self) -> list[str]:
        interval = f"{self.confidence:.0%} interval "
        return [
            f"Under {self.mechanism} the belief in the truth goes from {number(self.prior)} to "
            f"{_interval_text(self.marginal_posterior, interval)} on average.",
            f"That is {_interval_text(self.marginal_risk)} times the prior; "
            f"1 would be nothing learned, {number(1.0 / self.prior)} everything.",
            f"The best guess is right with probability {_interval_text(self.decision_accuracy)}; "
            f"without a release with {number(self.decision_baseline)}.",
            f"How it was computed: {self.method}"
            + (f", {self.draws:,} releases under each hypothesis." if self.draws else "."),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row: the risk, and the utility over all published cells."""
        frame = super().to_frame()
        frame.insert(0, "mechanism", self.mechanism)
        before = list(frame).index("decision_accuracy")
        frame.insert(before, "baseline_decision_probability", self.baseline_decision_probability)
        overall = self.utility.iloc[[-1]].drop(columns=["level", "table"])
        overall = overall.rename(columns={"draws": "utility_draws"}).reset_index(drop=True)
        return pd.concat([frame, overall], axis=1)


def _interval_text(estimate: Estimate, before: str = "") -> str:
    """Return a number and its interval, four digits each."""
    ends = f"{before}{number(estimate.lower)} to {number(estimate.upper)}"
    return f"{number(estimate.value)} ({ends})"


@dataclass(frozen=True, eq=False)
class Assessment:
    """A protection of one population with its utility, shared by all targets."""

    mechanism: Mechanism
    workload: Workload
    draws: int
    options: MechanismOptions
    seed: int
    spec: MechanismSpec
    utility: pd.DataFrame

    @classmethod
    def start(
        cls,
        population: Microdata,
        mechanism: Mechanism,
        workload: Workload,
        draws: int,
        options: MechanismOptions,
        rng: np.random.Generator | int,
    ) -> Assessment:
        """Return an assessment, with the utility measured on releases of its own random stream."""
        check.integer(draws, "draws", lower=40)
        seed = int(generator(rng).integers(2**63))
        first = np.random.SeedSequence(seed).spawn(3)[0]
        utility, spec = utility_and_spec(
            population,
            mechanism,
            workload=workload,
            draws=options.utility_draws,
            rng=np.random.default_rng(first),
        )
        return cls(mechanism, workload, draws, options, seed, spec, utility)

    def laws(self, question: TargetHypotheses) -> list[FloatArray] | None:
        """Return the laws of the observed cells, or None if these must be simulated."""
        if self.options.method == "simulated":
            return None
        laws = cell_laws(self.spec, question)
        if laws is None and self.options.method == "closed-form":
            raise ArgumentError(
                f"method must be 'simulated' for {self.spec.mechanism!r}: its likelihood has no "
                "closed form in every observed cell, got 'closed-form'"
            )
        return laws

    def risks(
        self, questions: Sequence[TargetHypotheses], truth: TruthDraws | None = None
    ) -> list[MechanismRisk]:
        """Return the risk of each target; targets that need simulation share one run.

        With T targets of one alternative, T + 1 data sets are released instead of 2 T.  ``truth``
        holds releases of the truth that other questions have drawn with the same streams.
        """
        streams = np.random.SeedSequence(self.seed).spawn(3)
        sampling, simulating = (np.random.default_rng(s) for s in streams[1:])
        exactly = partial(
            exact_average, draws=self.draws, rng=sampling, confidence=self.options.confidence
        )
        averages: list[AverageRisk | None] = []
        for question in questions:
            laws = self.laws(question)
            averages.append(None if laws is None else exactly(laws, question.prior))
        unknown = [q for q, average in zip(questions, averages, strict=True) if average is None]
        simulated = iter(self._simulated(unknown, simulating, truth))
        results = []
        for question, exact in zip(questions, averages, strict=True):
            average, likelihood = next(simulated) if exact is None else (exact, None)
            numbers = {**vars(average), "smoothing": self.options.smoothing, "seed": self.seed}
            results.append(
                MechanismRisk(
                    **numbers,
                    spec=self.spec,
                    cells=question.cells,
                    true_counts=question.counts,
                    prior_pmf=question.prior,
                    utility=self.utility,
                    likelihood=likelihood,
                )
            )
        return results

    def _simulated(
        self,
        questions: Sequence[TargetHypotheses],
        rng: np.random.Generator,
        truth: TruthDraws | None,
    ) -> list[tuple[AverageRisk, SimulatedLikelihood | None]]:
        """Return the averages of each question, from one simulation of all data sets.

        A mechanism that draws nothing is released once for each data set.
        """
        if not questions:
            return []
        datasets = [questions[0].datasets[0]]
        datasets += [dataset for question in questions for dataset in question.datasets[1:]]
        cells = list(dict.fromkeys(cell for question in questions for cell in question.cells))
        simulation = ReleaseSimulation(self.mechanism, datasets, self.workload, cells, truth)
        parts, first = [], 1
        for question in questions:
            last = first + len(question.datasets) - 1
            columns = [cells.index(cell) for cell in question.cells]
            parts.append((question.prior, [0, *range(first, last)], columns))
            first = last
        confidence = self.options.confidence
        fixed = simulation.fixed() if self.options.method == "auto" else None
        if fixed is not None:
            return [(fixed_average(fixed[np.ix_(h, c)], p, confidence), None) for p, h, c in parts]
        whole = simulated_likelihood(
            simulation,
            hypotheses=len(datasets),
            draws=self.draws,
            rng=rng,
            smoothing=self.options.smoothing,
            executor=self.options.executor,
            progress=self.options.progress,
        )
        results: list[tuple[AverageRisk, SimulatedLikelihood | None]] = []
        for prior, rows, columns in parts:
            likelihood = whole.select(hypotheses=rows, cells=columns)
            average = simulated_marginal_posterior(
                likelihood, prior_pmf=prior, truth=0, confidence=confidence
            )
            results.append((average, likelihood))
        return results


@seeded
def mechanism_risk(
    population: Microdata | Records,
    mechanism: Mechanism,
    target: Target,
    question: MechanismQuestion,
    *,
    draws: int,
    rng: np.random.Generator | int,
    options: MechanismOptions | None = None,
) -> MechanismRisk:
    r"""Return the disclosure risk of one person or household under any protection.

    The adversary knows the mechanism and every record but the target's. Hypothesis 0 is the truth,
    the population as it is; each alternative replaces or removes the target's record. Let
    :math:`P_h` be the law of the observed counts under hypothesis h, and w the prior. Then

    .. math:: \pi(y) = \frac{w_0 P_0(y)}{\sum_h w_h P_h(y)}, \quad
        m = \sum_y P_0(y)\, \pi(y), \quad \text{risk} = m / w_0 .

    Source: Kazan and Reiter (arXiv:2204.04253), section 3.1, for any mechanism.

    If several cells have known likelihoods, the sum is exact for at most 2**20 releases of all
    cells together. Otherwise the exact posterior is averaged over drawn releases.

    Parameters
    ----------
    population : Microdata or Records
        The true records. ``blocks`` should list every place, also those without records. If there
        are none, the places of the records under any hypothesis are taken as a public list.
    mechanism : Mechanism
        Any object with ``spec`` and ``release``. If it has ``prepare(microdata, workload=...)``
        with ``draw``, that is used.
    target : int or mapping
        Row of the only unit; or ``{"persons": rows}``, ``{"households": rows}``,
        ``{"person": id}``, ``{"household": id}``: the household's row and all its persons.
    question : MechanismQuestion
        Published tables, observed cells, other hypotheses and prior.
    draws : int
        Releases under each hypothesis, at least 40.
    rng : Generator or int
        Source of randomness; results do not depend on the executor.
    options : MechanismOptions, optional
        Method, confidence and other settings.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Schema
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": 0})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> noise = make_mechanism(
    ...     "discrete-gaussian", budgets={"block": {"P1": "0.0992264"}}, sensitivity="add-remove"
    ... )
    >>> tables = Workload.named("sf1-block").select(tables=["P1"])
    >>> question = MechanismQuestion(tables, [("block", "P1")], alternatives=[None], prior=0.2)
    >>> result = mechanism_risk(records, noise, 0, question, draws=100, rng=1)
    >>> result.method, round(float(result.marginal_posterior), 7)  # as marginal_posterior
    ('closed-form', 0.2254231)
    """
    query = ask(population, target, question)
    options = read_options(options)
    shared = Assessment.start(query.datasets[0], mechanism, question.workload, draws, options, rng)
    return shared.risks([query])[0]
