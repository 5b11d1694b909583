"""How the risk of a mechanism is found: in closed form, from a fixed release, or by simulation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.simulated.likelihood import SimulatedLikelihood, simulated_likelihood
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism._closed_form import Average, cell_laws, exact_average, fixed_average
from bayesrisk.risk.mechanism._hypotheses import Question
from bayesrisk.risk.mechanism._simulation import Simulation, TruthDraws
from bayesrisk.risk.mechanism.average import simulated_marginal_posterior
from bayesrisk.risk.mechanism.question import MechanismOptions
from bayesrisk.tables import Workload

#: The numbers of a result, and the likelihood where it was simulated.
Answer = tuple[Average, SimulatedLikelihood | None]


@dataclass(frozen=True)
class Settings:
    """How the answer is found: the same for every target and mechanism of a comparison."""

    draws: int
    options: MechanismOptions

    def __post_init__(self) -> None:
        check.integer(self.draws, "draws", lower=40)


def answers(
    questions: Sequence[Question],
    mechanism: Mechanism,
    spec: MechanismSpec,
    workload: Workload,
    settings: Settings,
    sampling: np.random.Generator,
    simulating: np.random.Generator,
    truth: TruthDraws | None = None,
) -> list[Answer]:
    """Return the answer to each question; those that must be simulated share one run.

    ``truth`` holds releases of the truth that other questions have drawn with the same streams.
    """
    known: list[Average | None] = []
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
        if isinstance(answer, Average):
            found.append((answer, None))
        else:
            found.append((_of_likelihood(answer, question, settings), answer))
    return found


def known_laws(
    question: Question, spec: MechanismSpec, settings: Settings
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
    questions: Sequence[Question],
    mechanism: Mechanism,
    workload: Workload,
    settings: Settings,
    rng: np.random.Generator,
    truth: TruthDraws | None,
) -> list[SimulatedLikelihood | Average]:
    """Return the likelihood of each question, from one run over all their data sets.

    Where the mechanism draws nothing: the averages themselves.
    """
    if not questions:
        return []
    datasets = [questions[0].datasets[0]]
    datasets += [dataset for question in questions for dataset in question.datasets[1:]]
    cells = list(dict.fromkeys(cell for question in questions for cell in question.cells))
    simulation = Simulation(mechanism, datasets, workload, cells, truth)
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


def _of_likelihood(
    likelihood: SimulatedLikelihood, question: Question, settings: Settings
) -> Average:
    average = simulated_marginal_posterior(
        likelihood, prior_pmf=question.prior, truth=0, confidence=settings.options.confidence
    )
    return Average(
        average.marginal_posterior,
        average.correct_decision_probability,
        average.decision_accuracy,
        average.bias_bound,
        average.draws,
    )
