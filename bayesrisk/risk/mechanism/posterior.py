"""Risk of any protection in one unit: posterior, ratio and right decisions, with utility beside.

The adversary is that of Kazan and Reiter: knows the mechanism and every record but the target's,
has a prior over what the target's record is (or that it is absent), and sees the released counts
of the cells that are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._random import generator
from bayesrisk._show import displayed, number
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.inference.simulated.likelihood import SimulatedLikelihood
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism._closed_form import Average
from bayesrisk.risk.mechanism._estimate import Settings, answers
from bayesrisk.risk.mechanism._hypotheses import Cell, Question, ask
from bayesrisk.risk.mechanism.question import (
    MechanismOptions,
    MechanismQuestion,
    read_options,
)
from bayesrisk.risk.mechanism.utility import utility_and_spec
from bayesrisk.tables import Microdata, Records, Workload

if TYPE_CHECKING:
    import pandas as pd


@displayed
@dataclass(frozen=True, eq=False)
class MechanismRisk:
    """What a protection lets the adversary learn about one target, and what it costs in error.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism.
    spec : MechanismSpec
        What was done.
    cells : tuple
        Observed cells: (level, table, cell, place).
    true_counts : ndarray of int64, shape (hypotheses, cells)
        Their counts under each hypothesis; the truth is first.
    prior_pmf : ndarray, shape (hypotheses,)
        Belief in each hypothesis before the release.
    prior : float
        Belief in the truth: what the adversary infers without the target's record.
    marginal_posterior : Estimate
        Posterior of the truth averaged over releases, with its standard error (a bound on the
        numerical error in closed form) and interval; for simulated likelihoods the bias is in it.
    bias_bound : float
        How far bias may move the value beside its standard error; 0 for known likelihoods.
    correct_decision_probability : Estimate
        Probability that the truth is found: how often it is the most probable hypothesis, given
        that it is the truth, ties shared.
    baseline_decision_probability : float
        The same without a release: 1 if the truth is the most probable beforehand, 0 if not.
    decision_accuracy : Estimate
        How often the most probable hypothesis is the true one, whichever is true.
    decision_baseline : float
        The same without a release: the largest prior.
    draws : int
        Releases drawn under each hypothesis; 0 where none were.
    smoothing : float
        Pseudo-count of the simulated likelihood.
    seed : int
        Root of the random streams.
    utility : pandas.DataFrame
        Error of the published tables; see :func:`release_utility`.
    likelihood : SimulatedLikelihood or None
        For posteriors of single releases, where it was simulated.
    version : str
        Version of bayesrisk.
    """

    mechanism: str
    spec: MechanismSpec
    cells: tuple[Cell, ...]
    true_counts: NDArray[np.int64]
    prior_pmf: NDArray[np.float64]
    prior: float
    marginal_posterior: Estimate
    bias_bound: float
    correct_decision_probability: Estimate
    baseline_decision_probability: float
    decision_accuracy: Estimate
    decision_baseline: float
    draws: int
    smoothing: float
    seed: int
    utility: pd.DataFrame
    likelihood: SimulatedLikelihood | None
    version: str = __version__

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

    def _answer(self) -> list[str]:
        return [
            f"Under {self.mechanism} the belief in the truth goes from {number(self.prior)} to "
            f"{_shown(self.marginal_posterior, f'{self.confidence:.0%} interval ')} on average.",
            f"That is {_shown(self.marginal_risk)} times the prior; "
            f"1 would be nothing learned, {number(1.0 / self.prior)} everything.",
            f"The best guess is right with probability {_shown(self.decision_accuracy)}; "
            f"without a release with {number(self.decision_baseline)}.",
            f"How it was computed: {self.method}"
            + (f", {self.draws:,} releases under each hypothesis." if self.draws else "."),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return one row: the risk, and the utility over all published cells.

        Returns
        -------
        pandas.DataFrame
            A column for each number, and those of :func:`release_utility`.  An estimate ``x`` has
            ``x``, ``x_error``, ``x_lower`` and ``x_upper``.
        """
        import pandas as pd  # slow to import

        row = {
            "mechanism": self.mechanism,
            "method": self.method,
            "prior": self.prior,
            **self.marginal_posterior.columns("marginal_posterior"),
            "bias_bound": self.bias_bound,
            **self.marginal_risk.columns("marginal_risk"),
            **self.correct_decision_probability.columns("correct_decision_probability"),
            "baseline_decision_probability": self.baseline_decision_probability,
            **self.decision_accuracy.columns("decision_accuracy"),
            "decision_baseline": self.decision_baseline,
            "confidence": self.confidence,
            "draws": self.draws,
            "smoothing": self.smoothing,
            "seed": self.seed,
            "version": self.version,
        }
        overall = self.utility.iloc[[-1]].drop(columns=["level", "table"])
        overall = overall.rename(columns={"draws": "utility_draws"}).reset_index(drop=True)
        return pd.concat([pd.DataFrame([row]), overall], axis=1)


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
    2**20 together, else averaged over drawn releases with the exact posterior.  What else the
    release shows (other cells, invariants) the adversary does not look at.

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
    settings = Settings(draws, read_options(options))
    asked = ask(population, target, question)
    return assess([asked], mechanism, question.workload, settings, rng)[0]


def assess(
    questions: Sequence[Question],
    mechanism: Mechanism,
    workload: Workload,
    settings: Settings,
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
    question: Question,
    spec: MechanismSpec,
    average: Average,
    settings: Settings,
    seed: int,
    utility: pd.DataFrame,
    likelihood: SimulatedLikelihood | None,
) -> MechanismRisk:
    """Return the risk of one target from the averages that were found."""
    best = question.prior >= question.prior.max()
    return MechanismRisk(
        mechanism=spec.mechanism,
        spec=spec,
        cells=question.cells,
        true_counts=question.counts,
        prior_pmf=question.prior,
        prior=float(question.prior[0]),
        marginal_posterior=average.posterior,
        bias_bound=average.bias_bound,
        correct_decision_probability=average.correct,
        baseline_decision_probability=float(best[0] / best.sum()),
        decision_accuracy=average.accuracy,
        decision_baseline=float(question.prior.max()),
        draws=average.draws,
        smoothing=settings.options.smoothing,
        seed=seed,
        utility=utility,
        likelihood=likelihood,
    )
