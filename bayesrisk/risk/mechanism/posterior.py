"""Risk of any protection in one unit: posterior, ratio and right decisions, with utility beside.

The adversary is that of Kazan and Reiter: knows the mechanism and every record but the target's,
has a prior over what the target's record is (or that it is absent), and sees the released counts
of the cells that are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._random import generator
from bayesrisk._show import displayed, number
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.simulated import SimulatedLikelihood, simulated_likelihood
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism.average import AverageRisk, simulated_marginal_posterior
from bayesrisk.risk.mechanism.question import (
    Cell,
    MechanismOptions,
    MechanismQuestion,
    ReleaseSimulation,
    TargetHypotheses,
    TruthDraws,
    ask,
    read_options,
    utility_and_spec,
)
from bayesrisk.tables import Microdata, Records, Workload

if TYPE_CHECKING:
    import pandas as pd

# -----------------------------------------------------------------------------
# Average risk where the likelihood of every observed cell is known and cells are independent.


TAIL = 2.0**-60  # of the noise left out on each side of a cell
_MAX_RELEASES = 2**20  # releases of all cells together that are enumerated
_CHUNK = 2**16


def cell_laws(
    spec: MechanismSpec, counts: IntArray, tables: Sequence[tuple[str, str]]
) -> list[FloatArray] | None:
    """Return for each cell P(release | hypothesis), (hypotheses, releases), or None.

    ``counts`` is (hypotheses, cells).  None where some cell has no likelihood in closed form.
    Cells with the same count under every hypothesis tell nothing and are left out.
    """
    laws = []
    for column, (level, table) in zip(counts.T, tables, strict=True):
        found = _cell_law(spec, column, level, table)
        if found is None:
            return None
        if np.ptp(column) > 0:
            laws.append(found)
    return laws


def _cell_law(spec: MechanismSpec, counts: IntArray, level: str, table: str) -> FloatArray | None:
    likelihood = spec.likelihood(level, table)
    releases = likelihood.releases(int(counts.min()), int(counts.max()), tail=TAIL)
    return likelihood.probability(releases, counts[:, None])


def exact_average(
    laws: list[FloatArray],
    prior: FloatArray,
    truth: int,
    *,
    draws: int,
    rng: np.random.Generator | int,
    confidence: float,
) -> AverageRisk:
    """Return the averages: summed over all releases where these are few, else over drawn ones.

    The posterior is exact either way, so drawn releases give an unbiased average.
    """
    if not laws:
        found = _right(prior[:, None], truth).item()
        values = (float(prior[truth]), found, float(prior.max()))
        return _settled(values, prior, truth, confidence)
    if np.prod([law.shape[1] for law in laws], dtype=float) <= _MAX_RELEASES:
        return _enumerated(laws, prior, truth, confidence)
    return _drawn(laws, prior, truth, draws=draws, rng=rng, confidence=confidence)


def fixed_average(
    observed: IntArray, prior: FloatArray, truth: int, *, confidence: float
) -> AverageRisk:
    """Return the averages of a mechanism that draws nothing, from what each hypothesis shows.

    ``observed`` holds released counts or symbols, (hypotheses, cells).
    """
    same = (observed == observed[truth]).all(axis=1)
    joint = np.where(same, prior, 0.0)
    correct = _right(joint[:, None], truth).item()
    _, shown = np.unique(observed, axis=0, return_inverse=True)
    best = np.zeros(len(prior))  # the most probable hypothesis behind each thing shown
    np.maximum.at(best, shown.ravel(), prior)
    values = (float(prior[truth] / joint.sum()), correct, float(best.sum()))
    return _settled(values, prior, truth, confidence, method="deterministic")


def _right(joint: FloatArray, truth: int) -> FloatArray:
    """Return the share of decisions for the truth, ties shared among the most probable."""
    best = joint >= joint.max(axis=0) * (1.0 - 1e-12)
    return np.asarray(best[truth] / best.sum(axis=0))


def _settled(
    values: tuple[float, float, float],
    prior: FloatArray,
    truth: int,
    confidence: float,
    error: float = 0.0,
    *,
    method: str = "closed-form",
) -> AverageRisk:
    """Return averages that nothing was drawn for, all within one numerical error.

    ``values`` are the average posterior, correct decisions given the truth, and all right guesses.
    """

    def known(value: float) -> Estimate:
        lower, upper = max(0.0, value - error), min(1.0, value + error)
        return Estimate(value, error, lower, upper, confidence, method)

    posterior, correct, accuracy = (known(value) for value in values)
    return AverageRisk(float(prior[truth]), posterior, correct, accuracy, float(prior.max()))


def _enumerated(
    laws: list[FloatArray], prior: FloatArray, truth: int, confidence: float
) -> AverageRisk:
    joint = prior[:, None]
    mass = np.ones(1)
    for law in laws:
        joint = (joint[:, :, None] * law[:, None, :]).reshape(len(prior), -1)
        mass = np.multiply.outer(mass, law[truth]).ravel()
    accuracy = float(joint.max(axis=0).sum())
    unseen = max(0.0, 1.0 - float(joint.sum()))
    possible = mass > 0.0
    joint, mass = joint[:, possible], mass[possible]
    with np.errstate(under="ignore", invalid="ignore"):
        posterior = joint[truth] / joint.sum(axis=0)
    # Underflow of everything: releases of no weight.
    posterior = np.where(np.isnan(posterior), 1.0, posterior)
    value, correct = float(mass @ posterior), float(mass @ _right(joint, truth))
    missing = max(0.0, 1.0 - float(mass.sum()))
    rounding = mass.size * 2.0**-52
    values = (
        min(max(value, float(prior[truth])), 1.0),
        min(correct, 1.0),
        min(max(accuracy, float(prior.max())), 1.0),
    )
    return _settled(values, prior, truth, confidence, max(missing, unseen) + rounding)


def _drawn(
    laws: list[FloatArray],
    prior: FloatArray,
    truth: int,
    *,
    draws: int,
    rng: np.random.Generator | int,
    confidence: float,
) -> AverageRisk:
    random = generator(rng)
    posterior, right, best = np.empty(draws), np.empty(draws), np.empty(draws)
    for chosen, joint in _joints(laws, prior, np.full(draws, truth), random):
        posterior[chosen] = joint[truth] / joint.sum(axis=0)
        right[chosen] = _right(joint, truth)
    # The best guess is right with the probability of the most probable, over all hypotheses.
    for chosen, joint in _joints(laws, prior, _hypotheses(prior, draws, random), random):
        best[chosen] = joint.max(axis=0) / joint.sum(axis=0)
    method = "closed-form likelihood, sampled releases"
    quantile = float(special.ndtri(0.5 + 0.5 * confidence))

    def average(drawn: FloatArray, least: float) -> Estimate:
        value, error = float(drawn.mean()), float(drawn.std(ddof=1) / np.sqrt(draws))
        ends = np.array([value, value - quantile * error, value + quantile * error])
        value, lower, upper = np.clip(ends, least, 1.0).tolist()
        return Estimate(value, error, lower, upper, confidence, method)

    found, error = float(right.mean()), float(right.std(ddof=1) / np.sqrt(draws))
    # Draws that are all right, or all wrong, leave one in ``draws`` open.
    reach = quantile * max(error, 1.0 / draws)
    correct = Estimate(
        found, error, max(0.0, found - reach), min(1.0, found + reach), confidence, method
    )
    p, most = float(prior[truth]), float(prior.max())
    return AverageRisk(p, average(posterior, p), correct, average(best, most), most, draws=draws)


def _hypotheses(prior: FloatArray, draws: int, random: np.random.Generator) -> IntArray:
    """Return hypotheses drawn as the adversary believes in them."""
    edges = np.cumsum(prior)
    u = random.random(draws) * edges[-1]
    return np.asarray(np.searchsorted(edges[:-1], u, side="right"), dtype=np.int64)


def _joints(
    laws: list[FloatArray], prior: FloatArray, drawn: IntArray, random: np.random.Generator
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield positions of ``drawn`` and, for a release drawn under each, the joint weights."""
    with np.errstate(divide="ignore"):
        logs = [np.log(law) for law in laws]
        log_prior = np.log(prior)
    for h in np.unique(drawn):
        edges = [np.cumsum(law[h]) for law in laws]
        members = np.flatnonzero(drawn == h)
        for start in range(0, members.size, _CHUNK):
            chosen = members[start : start + _CHUNK]
            joint = np.repeat(log_prior[:, None], chosen.size, axis=1)
            for log, edge in zip(logs, edges, strict=True):
                u = random.random(chosen.size) * edge[-1]
                joint = joint + log[:, np.searchsorted(edge[:-1], u, side="right")]
            yield chosen, np.exp(joint - joint.max(axis=0))


# -----------------------------------------------------------------------------
# How the risk of a mechanism is found: in closed form, from a fixed release, or by simulation.


#: The numbers of a result, and the likelihood where it was simulated.
Answer = tuple[AverageRisk, SimulatedLikelihood | None]


@dataclass(frozen=True)
class AnswerSettings:
    """How the answer is found: the same for every target and mechanism of a comparison."""

    draws: int
    options: MechanismOptions

    def __post_init__(self) -> None:
        check.integer(self.draws, "draws", lower=40)


def answers(
    questions: Sequence[TargetHypotheses],
    mechanism: Mechanism,
    spec: MechanismSpec,
    workload: Workload,
    settings: AnswerSettings,
    sampling: np.random.Generator,
    simulating: np.random.Generator,
    truth: TruthDraws | None = None,
) -> list[Answer]:
    """Return the answer to each question; those that must be simulated share one run.

    ``truth`` holds releases of the truth that other questions have drawn with the same streams.
    """
    known: list[AverageRisk | None] = []
    for question in questions:
        laws = known_laws(question, spec, settings)
        known.append(
            None
            if laws is None
            else exact_average(
                laws,
                question.prior,
                0,
                draws=settings.draws,
                rng=sampling,
                confidence=settings.options.confidence,
            )
        )
    unknown = [q for q, average in zip(questions, known, strict=True) if average is None]
    others = iter(_simulate(unknown, mechanism, workload, settings, simulating, truth))
    found: list[Answer] = []
    for question, average in zip(questions, known, strict=True):
        answer = next(others) if average is None else average
        if isinstance(answer, AverageRisk):
            found.append((answer, None))
        else:
            confidence = settings.options.confidence
            simulated = simulated_marginal_posterior(
                answer, prior_pmf=question.prior, truth=0, confidence=confidence
            )
            found.append((simulated, answer))
    return found


def known_laws(
    question: TargetHypotheses, spec: MechanismSpec, settings: AnswerSettings
) -> list[NDArray[np.float64]] | None:
    """Return the laws of the observed cells, or None if they are to be simulated."""
    if settings.options.method == "simulated":
        return None
    laws = cell_laws(spec, question.counts, [(level, table) for level, table, *_ in question.cells])
    if laws is None and settings.options.method == "closed-form":
        raise ArgumentError(
            f"method must be 'simulated' for {spec.mechanism!r}: its likelihood has no closed form "
            "in every observed cell, got 'closed-form'"
        )
    return laws


def _simulate(
    questions: Sequence[TargetHypotheses],
    mechanism: Mechanism,
    workload: Workload,
    settings: AnswerSettings,
    rng: np.random.Generator,
    truth: TruthDraws | None,
) -> list[SimulatedLikelihood | AverageRisk]:
    """Return the likelihood of each question, from one run over all their data sets.

    Where the mechanism draws nothing: the averages themselves.
    """
    if not questions:
        return []
    datasets = [questions[0].datasets[0]]
    datasets += [dataset for question in questions for dataset in question.datasets[1:]]
    cells = list(dict.fromkeys(cell for question in questions for cell in question.cells))
    simulation = ReleaseSimulation(mechanism, datasets, workload, cells, truth)
    parts, first = [], 1
    for question in questions:
        last = first + len(question.datasets) - 1
        parts.append(([0, *range(first, last)], [cells.index(c) for c in question.cells]))
        first = last
    fixed = simulation.fixed() if settings.options.method == "auto" else None
    if fixed is not None:
        return [
            fixed_average(
                fixed[np.ix_(rows, columns)],
                question.prior,
                0,
                confidence=settings.options.confidence,
            )
            for question, (rows, columns) in zip(questions, parts, strict=True)
        ]
    whole = simulated_likelihood(
        simulation,
        hypotheses=len(datasets),
        draws=settings.draws,
        rng=rng,
        smoothing=settings.options.smoothing,
        executor=settings.options.executor,
        progress=settings.options.progress,
    )
    return [whole.select(hypotheses=rows, cells=columns) for rows, columns in parts]


# -----------------------------------------------------------------------------


@displayed
@dataclass(frozen=True, eq=False)
class MechanismRisk:
    """Risk of one target under a protection, and the error that the protection costs.

    Attributes
    ----------
    spec : MechanismSpec
        What was done.
    cells : tuple
        Observed cells: (level, table, cell, place).
    true_counts : ndarray of int64, shape (hypotheses, cells)
        Their counts under each hypothesis; the truth is first.
    prior_pmf : ndarray, shape (hypotheses,)
        Belief in each hypothesis before the release.
    average : AverageRisk
        Prior, average posterior and right decisions, with their errors.
    utility : pandas.DataFrame
        Error of the published tables by level and table over releases of the truth: mean absolute
        and root mean square error, each with its standard error; suppressed cells count as zeros.
    likelihood : SimulatedLikelihood or None
        For posteriors of single releases, where it was simulated.
    """

    spec: MechanismSpec
    cells: tuple[Cell, ...]
    true_counts: IntArray
    prior_pmf: FloatArray
    average: AverageRisk
    utility: pd.DataFrame
    likelihood: SimulatedLikelihood | None

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.spec.mechanism

    @property
    def prior(self) -> float:
        """Belief in the truth: what the adversary infers without the target's record."""
        return self.average.prior

    @property
    def marginal_posterior(self) -> Estimate:
        """Posterior of the truth averaged over releases."""
        return self.average.marginal_posterior

    @property
    def marginal_risk(self) -> Estimate:
        """The average posterior over the prior: 1 where nothing is learned, 1 / prior at most."""
        return self.average.marginal_risk

    @property
    def correct_decision_probability(self) -> Estimate:
        """Probability that the truth is found, given that it is the truth."""
        return self.average.correct_decision_probability

    @property
    def baseline_decision_probability(self) -> float:
        """The same without a release: 1 if the truth is the most probable beforehand, 0 if not."""
        best = self.prior_pmf >= self.prior_pmf.max()
        return float(best[0] / best.sum())

    @property
    def decision_accuracy(self) -> Estimate:
        """How often the most probable hypothesis is the true one, whichever is true."""
        return self.average.decision_accuracy

    @property
    def method(self) -> str:
        """How it was computed: see :attr:`AverageRisk.method`."""
        return self.average.method

    def _answer(self) -> list[str]:
        draws = self.average.draws
        interval = f"{self.average.confidence:.0%} interval "
        return [
            f"Under {self.mechanism} the belief in the truth goes from {number(self.prior)} to "
            f"{_shown(self.marginal_posterior, interval)} on average.",
            f"That is {_shown(self.marginal_risk)} times the prior; "
            f"1 would be nothing learned, {number(1.0 / self.prior)} everything.",
            f"The best guess is right with probability {_shown(self.decision_accuracy)}; "
            f"without a release with {number(self.average.decision_baseline)}.",
            f"How it was computed: {self.method}"
            + (f", {draws:,} releases under each hypothesis." if draws else "."),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row: the risk, and the utility over all published cells."""
        import pandas as pd  # slow to import

        frame = self.average.to_frame()
        frame.insert(0, "mechanism", self.mechanism)
        before = list(frame).index("decision_accuracy")
        frame.insert(before, "baseline_decision_probability", self.baseline_decision_probability)
        overall = self.utility.iloc[[-1]].drop(columns=["level", "table"])
        overall = overall.rename(columns={"draws": "utility_draws"}).reset_index(drop=True)
        return pd.concat([frame, overall], axis=1)


def _shown(estimate: Estimate, before: str = "") -> str:
    """Return a number and its interval, four digits each."""
    ends = f"{before}{number(estimate.lower)} to {number(estimate.upper)}"
    return f"{number(estimate.value)} ({ends})"


def mechanism_risk(
    population: Microdata | Records,
    mechanism: Mechanism,
    target: int | Mapping[str, Any],
    question: MechanismQuestion,
    *,
    draws: int,
    rng: np.random.Generator | int,
    options: MechanismOptions | None = None,
) -> MechanismRisk:
    r"""Return what a protection tells about one target, in the units of every other.

    The adversary knows the mechanism and every record but the target's.  Hypothesis 0 is the
    truth, the population as it is; each alternative replaces the target's record, or removes it.
    With :math:`P_h` the law of the observed counts under hypothesis h and w the prior,

    .. math:: \pi(y) = \frac{w_0 P_0(y)}{\sum_h w_h P_h(y)}, \quad
        m = \sum_y P_0(y)\, \pi(y), \quad \text{risk} = m / w_0 .

    Parameters
    ----------
    population : Microdata or Records
        The truth; ``blocks`` should list every place, also those without records.  Where there are
        none, the places of the records, under any of the hypotheses, are taken as a public list.
    mechanism : Mechanism
        Anything with ``spec`` and ``release``; ``prepare(microdata, workload=...)`` with ``draw``
        is used where it is there.
    target : int or mapping
        Row of the only unit; or ``{"persons": rows}``, ``{"households": rows}``,
        ``{"person": id}``, ``{"household": id}``: the household's row and all its persons.
    question : MechanismQuestion
        What is published, what the adversary reads of it, the other hypotheses and the beliefs.
    draws : int
        Releases under each hypothesis, at least 40.
    rng : Generator or int
        Source of randomness; results do not depend on the executor.
    options : MechanismOptions, optional
        Method, confidence and other details.

    Returns
    -------
    MechanismRisk
        Prior, posterior, ratio and right decisions, with errors, and the utility.

    Raises
    ------
    ArgumentError
        If an argument is out of range, hypotheses do not differ, a place is not published under
        some hypothesis, or a closed form is asked for where there is none.

    Notes
    -----
    Several cells with known likelihoods: summed exactly while their releases number at most
    2**20 together, else averaged over drawn releases with the exact posterior.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 3.1, for any mechanism.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 3, "sex": [0, 1, 1],
    ...                        "age": [30, 4, 5], "race": [1, 3, 1], "hisp": [0, 0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> noise = make_mechanism(
    ...     "discrete-gaussian", budgets={"block": {"P1": "0.0992264"}}, sensitivity="add-remove"
    ... )
    >>> question = MechanismQuestion(
    ...     Workload.named("sf1-block").select(tables=["P1"]),
    ...     observed=[("block", "P1")], alternatives=[None], prior=0.2,
    ... )
    >>> result = mechanism_risk(records, noise, 0, question, draws=100, rng=1)
    >>> result.method, round(float(result.marginal_posterior), 7)  # as marginal_posterior
    ('closed-form', 0.2254231)
    """
    settings = AnswerSettings(draws, read_options(options))
    asked = ask(population, target, question)
    return assess([asked], mechanism, question.workload, settings, rng)[0]


def assess(
    questions: Sequence[TargetHypotheses],
    mechanism: Mechanism,
    workload: Workload,
    settings: AnswerSettings,
    rng: np.random.Generator | int,
) -> list[MechanismRisk]:
    """Return the risks of targets of one population.

    All share the releases of the truth: with T targets of one alternative, T + 1 data sets are
    released instead of 2 T.
    """
    seed = int(generator(rng).integers(2**63))
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)]
    utility, spec = utility_and_spec(
        questions[0].datasets[0],
        mechanism,
        workload=workload,
        draws=settings.options.utility_draws,
        rng=streams[0],
    )
    answered = answers(questions, mechanism, spec, workload, settings, streams[1], streams[2])
    return [
        result_of(question, spec, average, settings, seed, utility, likelihood)
        for question, (average, likelihood) in zip(questions, answered, strict=True)
    ]


def result_of(
    question: TargetHypotheses,
    spec: MechanismSpec,
    average: AverageRisk,
    settings: AnswerSettings,
    seed: int,
    utility: pd.DataFrame,
    likelihood: SimulatedLikelihood | None,
) -> MechanismRisk:
    """Return the risk of one target from the averages that were found."""
    average = replace(average, smoothing=settings.options.smoothing, seed=seed)
    return MechanismRisk(
        spec, question.cells, question.counts, question.prior, average, utility, likelihood
    )
