"""The posterior of a place's records given a release, and answers to questions about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, quote
from bayesrisk.inference.microdata.chains import (
    Chain,
    Draws,
    LatticeChains,
    Observer,
    PeopleChain,
    TooLateError,
    check_kinds,
    draw,
    no_observer,
)
from bayesrisk.inference.microdata.contraction import TooManyStatesError
from bayesrisk.inference.microdata.exact import one_record_means, place_law, weigh
from bayesrisk.inference.microdata.expected_counts import ExpectedCounts
from bayesrisk.inference.microdata.people_model import people_model, suits
from bayesrisk.inference.microdata.prior import Knowledge, KnownGroup, KnownRecords, RecordPrior
from bayesrisk.inference.microdata.questions import (
    GroupLaws,
    MemberQuestion,
    MicrodataPosterior,
    PosteriorLaw,
    QuestionFunctions,
    RecordQuestion,
    Tally,
    estimate_answers,
    expected_frame,
    prior_answers,
    question_functions,
    ratio,
)
from bayesrisk.inference.microdata.system import (
    GroupSystem,
    MicrodataSystem,
    TooLargeError,
    make_system,
    presolve,
)
from bayesrisk.inference.sampling.chains import Samples, spawn
from bayesrisk.release import MechanismSpec, Release, TrueCounts
from bayesrisk.tables import HouseholdLink, PublishedTables, Table, Workload
from bayesrisk.tables.linked import MEMBERS

# The law of the records of a place itself: means, draws, and what one record less would change.


# Proposals between draws: to begin with, where Python sees many draws together, and where it sees
# each of them, which costs about so many.
_FEWEST_TOGETHER, _FEWEST = 25, 1000
_MOST_DOUBLINGS = 5
# Groups of exact counts above which no chain is run: of 16 such laws of random tables none was
# decided, after up to 65 s each; of 24 with fewer groups 15 were.
_MOST_HARD = 200
_PAIRS = 2 * 10**7
_CERTAIN = 1.0 - 1e-9


class ChainNeededError(ArgumentError):
    """A law is too large to be exact, and there are no random numbers for a chain."""


@dataclass(frozen=True)
class RecordLaw:
    """Mean numbers of records of groups of unknowns, with draws if the law is not exact.

    A group is a set of unknowns that no row distinguishes; its records are exchangeable.
    """

    # for every unknown its group (-1: there are none for certain) and its share of the group
    group: IntArray
    weight: FloatArray
    mass: FloatArray  # share, or Dirichlet parameter, of every group
    mean: FloatArray  # mean number of records of every group
    # (chains, draws, groups): draws of a chain; None where the law is exact
    draws: IntArray | None
    engine: str  # ``exact``, ``people`` or ``lattice``
    # whether chains agree: rank-normalised R-hat at most 1.01 and bulk and tail effective sizes of
    # at least 400, of the log density and of two random projections of the state
    decided: bool = True
    # for groups of which a record is removed, the mean number of other records of every group
    reduced_means: Mapping[int, FloatArray] = field(default_factory=dict)


def record_law(
    system: MicrodataSystem,
    *,
    removed: Sequence[int] = (),
    rng: Seed | None = None,
    draws: int = 250,
    chains: int = 4,
    max_pairs: int = _PAIRS,
    deadline: Deadline | None = None,
) -> RecordLaw:
    """Return the posterior means of a system's records: exact where possible, else by chains.

    If chains are needed and there is no ``rng``, a ChainNeededError is raised; if they do not end
    by the deadline, a TooLateError.

    No chain is run if all counts are exact and of more than ``_MOST_HARD`` groups: such a law is
    undecided.

    An exact law has means only. If the prior gives every number of records the same weight, it is
    used only if that number is certain: otherwise means do not suffice for the caller. ``removed``
    are unknowns. An exact law by one contraction also has, for their groups, the means of the
    others if one of their records is removed from all counts.
    """
    if (place := place_law(system, max_pairs)) is not None:
        return RecordLaw(*place, None, "exact")
    people = suits(system)
    if not people or system.size <= _MAX_EXACT:
        one = np.ones((1, system.classes.size), np.int64)
        places = sp.eye_array(len(system.places), dtype=np.int64)
        numbers = system.map_unknowns(sp.csr_array(sp.kron(places, one)))
        small, group_functions = presolve(system, numbers)
        totals = list(group_functions.toarray()) if system.prior.size is None else []
        single = system.prior.size is not None and system.prior.size.size == 2 and not removed
        if single and len(system.places) == 1 and small.group.size == system.classes.size:
            groups = small.group, small.weight, small.mass
            return RecordLaw(*groups, one_record_means(small), None, "exact")
        alive = sorted({int(g) for g in small.group[list(removed)] if g >= 0})
        try:
            law = weigh(small, max_pairs, totals, alive, deadline)
        except TooManyStatesError:
            law = None
        if law is not None and all(p.max() > _CERTAIN for p in law.functions):
            mean = np.array([np.arange(p.size) @ p for p in law.laws])
            groups = small.group, small.weight, small.mass
            return RecordLaw(*groups, mean, None, "exact", reduced_means=law.reduced_means)
    if rng is None:
        raise ChainNeededError("rng must be given: this place needs a chain")
    if not people and small.hard.all() and small.mass.size > _MOST_HARD:
        nothing = np.full(small.mass.size, np.nan)
        return RecordLaw(
            small.group, small.weight, small.mass, nothing, None, "lattice", decided=False
        )
    generators, _ = spawn(rng, chains + 1)
    doublings = _MOST_DOUBLINGS
    if people:
        starts = _people(system, generators[:-1], _FEWEST_TOGETHER)
        initial: Sequence[Chain] = starts
        doublings += _first_doublings(starts)
        mass = np.tile(system.mass, len(system.places))
        group, weight = np.arange(system.size, dtype=np.int64), np.ones(system.size)
    else:
        sampler = LatticeChains(small, chains, generators[-1], deadline)
        initial = sampler.begin(generators[:-1], sampler.halvings)
        doublings += sampler.halvings
        group, weight, mass = small.group, small.weight, small.mass
    identity = sp.csr_array(sp.eye_array(mass.size, dtype=np.int64))
    sample = draw(
        initial, identity, draws, thin=1, doublings=doublings, deadline=deadline, impatient=True
    )
    if deadline is not None and deadline.late and not sample.agreed:  # more was to come
        raise TooLateError("chains must end within the limit of time")
    mean, engine = sample.counts.mean(axis=(0, 1)), "people" if people else "lattice"
    return RecordLaw(group, weight, mass, mean, sample.counts, engine, sample.agreed)


def _people(
    system: MicrodataSystem, generators: Sequence[np.random.Generator], fewest: int
) -> list[PeopleChain]:
    """Return chains over lists of people, started far apart."""
    model, chains = people_model(system), len(generators)
    return [PeopleChain.begin(model, g, fewest, i / chains) for i, g in enumerate(generators)]


def _first_doublings(chains: Sequence[PeopleChain]) -> int:
    """Return the number of free doublings that bring short sweeps to the usual length."""
    return max(0, math.ceil(math.log2(_FEWEST / chains[0].sweep_size)))


ENGINES = ("auto", "exact", "people", "lattice")
_MAX_PAIRS = 10**8
_MAX_EXACT = 2**16
_MAX_SAMPLES = 2**25


_Answer = Callable[[pd.DataFrame, Draws], pd.DataFrame]


class _Settings(NamedTuple):
    """Settings of the Markov chains."""

    rng: Seed
    draws: int
    chains: int
    thin: int
    doublings: int
    deadline: Deadline


def microdata_posterior(
    release: Release | PublishedTables | Mapping[str, Release] | Sequence[Release],
    questions: Sequence[RecordQuestion],
    *,
    level: str,
    place: str,
    prior: RecordPrior,
    known: Sequence[KnownRecords] = (),
    engine: str = "auto",
    rng: Seed | None = None,
    draws: int = 1000,
    chains: int = 4,
    thin: int = 1,
    doublings: int = 3,
    time_limit: float | None = None,
) -> MicrodataPosterior:
    r"""Return the posterior of the records of a place given a release.

    Let x be the counts of all kinds of records in the finest places. Their law is

    .. math:: P(x \mid R) \propto P(x) \prod_q L_q(R_q \mid (A x)_q),

    with the prior of :class:`RecordPrior` and, for each published cell q, the likelihood in the
    spec of the release: true counts, independent noise or rounding. A withheld count is ignored
    here.

    Parameters
    ----------
    release : Release or PublishedTables, or sequence of releases, or mapping by name
        Tables with their likelihoods; several releases of the same people are combined, see
        :meth:`Release.combine`.
    questions : sequence of RecordQuestion
        The questions; for persons in households also :class:`MemberQuestion`.
    level, place : str
        The place; its own tables and those of the places inside are used.
    prior : RecordPrior
        Prior on the records of every finest place.
    known : sequence of KnownRecords
        The adversary's knowledge beyond the release.
    engine : {"auto", "exact", "people", "lattice"}
        ``exact`` sums over every x, part by part. ``people`` is a chain over lists of people, for
        noisy counts; ``lattice`` is a chain on the x that agree with exact counts. ``auto`` takes
        the first engine that can solve the problem.
    rng : Generator, int or other seed, optional
        Randomness of the chains.
    draws, chains : int
        Draws kept of each chain, after as many discarded ones; number of chains, >= 2.
    thin : int, default 1
        Sweeps between two draws, at the start.
    doublings : int, default 3
        How often the chains may double their length while they do not agree, or a question is
        undecided. Each time all earlier draws are discarded, and as many are kept, twice as far
        apart: this costs time but no memory. Further draws for single questions (see Notes) do not
        count.
    time_limit : float, optional
        Seconds; an exact law takes at most half if chains may follow. Chains that run out of time
        answer with the draws before their last doubling. Without such draws an error is raised.

    Returns
    -------
    MicrodataPosterior
        Answers with their errors. ``prior`` is the belief given ``known`` alone. It is NaN for
        numbers of records if the prior has no law of their number, and if the known records
        overlap. It is also NaN for a least number of persons, as a household may have several.

    Notes
    -----
    Exact laws have a relative error of about 1e-12, of which at most 1e-13 is omitted weight of
    noisy counts. The error of a mean of draws is its Monte Carlo standard error, from the effective
    number of draws. A sweep is about one proposal for each person, or one step for each move.
    Sweeps that begin with few proposals do not count in the first doublings. An answer has status
    ``undecided`` unless two conditions hold. The log density and two random projections of the
    state need a rank-normalised R-hat of at most 1.01, and bulk and tail effective sizes of at
    least 400. The answer's own mean needs a split R-hat of at most 1.01 and an effective size of at
    least 400. For a probability p of error s, that size is also at most p (1 - p) / s**2: draws
    without a possible target do not count.

    If the law of the number of people has gaps, chains start on every side of them, if there are
    enough chains. Chains over people cross a gap by steps of many people. If no step of a lattice
    chain crosses it, the answers are undecided.

    If the chain over people leaves a share undecided, the equation of Mecke may answer. It gives
    the mean number of people of a class, with n people in the place, as the mean of a product. Its
    factors are (n + 1) P(n + 1) / P(n), the prior share of the class, and a likelihood ratio. That
    is the ratio with and without one more such person. ``reason`` gives the number of answers found
    this way. It needs a number of people that is not published exactly, a prior that allows every
    smaller one, and noise. For the counts that include one class, the sum of 1 / variance must be
    at most 1.5. If it needs more draws, the answer is from these alone, without those for which it
    was undecided.

    Examples
    --------
    Two of five people are women and four are of age group 0; the joint counts are not published:

    >>> import pandas as pd
    >>> from bayesrisk import Records, Release, Schema, Workload, tabulate
    >>> from bayesrisk.release import MechanismSpec, TrueCounts
    >>> from bayesrisk.tables import Attribute, Geography, Table
    >>> schema = Schema("town", (Attribute("sex", 2), Attribute("age", 2)),
    ...                 Geography("blocks", ("block",), (1,)))
    >>> one_way = {("block", a): Table(a, ("0", "1"), {a: [[1, 0], [0, 1]]})
    ...            for a in ("sex", "age")}
    >>> people = pd.DataFrame({"block": list("77777"), "sex": [0, 0, 0, 1, 1],
    ...                        "age": [0, 0, 1, 0, 0]})
    >>> tables = tabulate(Records.from_frame(people, schema=schema), Workload(schema, one_way))
    >>> release = Release(MechanismSpec("none", others=TrueCounts()), tables)
    >>> young_woman = RecordQuestion({"age": [0]}, among={"sex": [1]})
    >>> posterior = microdata_posterior(release, [young_woman], level="block", place="7",
    ...                                 prior=RecordPrior.uniform_data_sets(schema))
    >>> round(float(posterior.answers["posterior"][0]), 12)
    0.8
    """
    deadline = Deadline(check.time_limit(time_limit))
    questions = check.instances(questions, RecordQuestion, "questions")
    if isinstance(release, PublishedTables):
        release = Release(MechanismSpec("published", {}, release.laws, TrueCounts()), release)
    if isinstance(release, (Mapping, Sequence)):
        release = Release.combine(release)
    check.instance(release, Release, "release")
    check.instance(prior, RecordPrior, "prior")
    check.choice(engine, "engine", ENGINES)
    for name, code in (("level", level), ("place", place)):
        if not isinstance(code, str):  # the code of a nation is empty
            raise ArgumentTypeError(f"{name} must be a text, got {quote(code)}")
    if place not in release.tables.geoids.get(level, place):
        raise ArgumentError("place", f"must be one of level {level!r}", got=place)
    known_people = check.instances(known, KnownRecords, "known")
    conditions = [t for q in questions for t in q.tables(prior.schema)]
    system = make_system(
        release,
        level=level,
        place=place,
        prior=prior,
        conditions=conditions,
        known_people=known_people,
    )
    functions = question_functions(questions, system)
    people = suits(system)
    # A search is worth a try: a wide system with noisy counts never ends.
    if engine == "exact" or (engine == "auto" and system.size <= _MAX_EXACT):
        try:
            half = deadline.sooner(deadline.left / 2) if engine == "auto" else Deadline()
            return _exact(system, questions, functions, half)
        except TooLargeError:
            if engine == "exact" or not people:
                raise
        except TooManyStatesError:
            if engine == "exact":
                if not people:
                    nothing = sp.csr_array((0, system.size), dtype=np.int64)
                    check_kinds(presolve(system, nothing)[0])
                raise ArgumentError(
                    f"engine must be 'auto', which takes chains, for this place: an exact law "
                    f"needs more than {_MAX_PAIRS} pairs of sums"
                ) from None
    check.integer(chains, "chains", lower=2, upper=2**10)
    check.integer(draws, "draws", lower=4, upper=10**7)
    check.integer(thin, "thin", lower=1, upper=10**6)
    check.integer(doublings, "doublings", lower=0, upper=20)
    if rng is None:
        raise ArgumentError("rng must be given: this place needs a chain")
    if engine == "people" and not people:
        raise ArgumentError(
            "engine 'people' must have noisy counts, and none that are exact but numbers of people"
        )
    settings = _Settings(rng, draws, chains, thin, doublings, deadline)
    use = _people_chains if engine == "people" or (engine == "auto" and people) else _lattice_chains
    return use(system, questions, functions, settings)


def _exact(
    system: MicrodataSystem,
    questions: Sequence[RecordQuestion],
    functions: QuestionFunctions,
    deadline: Deadline,
) -> MicrodataPosterior:
    small, group_functions = presolve(system, system.map_unknowns(functions.cells))
    tails = sorted({int(functions.row[i, 0]) for i, q in enumerate(questions) if q.at_least})
    law = weigh(small, _MAX_PAIRS, list(group_functions[tails, :].toarray()), deadline=deadline)
    tail = dict(zip(tails, law.functions, strict=True))
    group_mean = np.array([np.arange(p.size) @ p for p in law.laws])
    means = group_functions @ group_mean
    values = []
    for question, row, constants in zip(questions, functions.row, functions.constants, strict=True):
        if question.at_least is not None:
            need = max(0, question.at_least - int(constants[0]))
            values.append(float(tail[int(row[0])][need:].sum()))
        elif question.among is not None:
            values.append(ratio(means[row[0]] + constants[0], means[row[1]] + constants[1]))
        else:
            values.append(float(means[row[0]] + constants[0]))
    expected = np.where(
        small.group >= 0, small.weight * np.append(group_mean, 0.0)[small.group], 0.0
    )
    answers = pd.DataFrame(
        {
            "question": [str(q) for q in questions],
            "prior": prior_answers(questions, functions, system),
            "posterior": values,
            "error": 0.0,
            "lower": values,
            "upper": values,
            "status": "exact",
            "r_hat": np.nan,
            "ess": np.nan,
        }
    )
    reason = f"{law.pairs:,} pairs of sums were weighed"
    table = expected_frame(system, system.unknown_cell, expected)
    groups_law = _group_law(system, small, [list(law.laws)])
    return MicrodataPosterior(answers, table, "exact", reason, law.pairs, None, groups_law)


def _group_law(
    system: MicrodataSystem, small: GroupSystem, laws: list[list[FloatArray]], agreed: bool = True
) -> PosteriorLaw:
    """Return every unknown's law from the laws of groups, with names for known people."""
    dirichlet = system.prior.concentration is not None
    ranking = GroupLaws(laws, small.group, small.mass, small.weight, dirichlet)
    groups = system.knowledge.groups
    names = [""] * system.cells + [g.name for g in groups for _ in range(g.classes.size)]
    return PosteriorLaw(ranking, system, system.unknown_cell, names, agreed)


def _people_chains(
    system: MicrodataSystem,
    questions: Sequence[RecordQuestion],
    functions: QuestionFunctions,
    settings: _Settings,
) -> MicrodataPosterior:
    generators, origin = spawn(settings.rng, settings.chains)
    starts = _people(system, generators, _FEWEST)
    model = starts[0].model
    state_functions = sp.csr_array(functions.cells[:, model.unknown_cell])
    tallies: list[Tally] = []
    expected = ExpectedCounts(system, questions, functions, starts, settings.draws)
    batched = not expected.possible.any()
    if batched:  # nothing is asked of the chain in each state
        starts = _people(system, generators, _FEWEST_TOGETHER)
        settings = settings._replace(doublings=settings.doublings + _first_doublings(starts))

    def observer() -> Observer:
        tallies[:] = [Tally(settings.chains, model.unknown_cell.size)]
        expected.reset()

        def observe(chain: int, counts: IntArray) -> None:
            tallies[0].add(chain, counts)
            expected.record(chain)

        return observe

    def answer(frame: pd.DataFrame, draws: Draws) -> pd.DataFrame:
        return expected.extend_chains(expected.answer_undecided(frame, draws), draws)

    leap = int(model.arrays.leap.max(initial=1))
    draws, frame = _draw_answers(
        starts, state_functions, questions, functions, settings, (observer, answer, leap, batched)
    )
    reason = "counts are noisy"
    if expected.used:
        reason += f"; {expected.used:,} answers are from what one more person would change"
    run = ("people", reason, origin)
    names = [s.name for s in model.strata for _ in range(model.classes)]
    law = PosteriorLaw(tallies[0], system, model.unknown_cell, names, draws.agreed)
    table = expected_frame(system, model.unknown_cell, tallies[0].mean)
    return _make_posterior(questions, functions, draws, frame, run, table, law)


def _lattice_chains(
    system: MicrodataSystem,
    questions: Sequence[RecordQuestion],
    functions: QuestionFunctions,
    settings: _Settings,
) -> MicrodataPosterior:
    small, group_functions = presolve(system, system.map_unknowns(functions.cells))
    if not small.mass.size:
        return _exact(system, questions, functions, Deadline())
    generators, origin = spawn(settings.rng, settings.chains + 1)
    sampler = LatticeChains(small, settings.chains, generators[-1], settings.deadline)
    if not len(sampler.moves):  # the exact counts leave one point
        return _exact(system, questions, functions, Deadline())
    identity = sp.csr_array(sp.eye_array(small.mass.size, dtype=np.int64))
    functions_and_counts = sp.csr_array(sp.vstack([group_functions, identity], format="csr"))
    draws, frame = _draw_answers(
        sampler.begin(generators[:-1]), functions_and_counts, questions, functions, settings
    )
    group_counts = draws.counts[:, :, group_functions.shape[0] :]
    groups = group_counts.mean(axis=(0, 1))
    mean = np.where(small.group >= 0, small.weight * groups[small.group], 0.0)
    laws = [[np.bincount(g) / settings.draws for g in chain.T] for chain in group_counts]
    law = _group_law(system, small, laws, draws.agreed)
    run = (
        "lattice",
        "counts are exact or within ranges, and there are too many pairs of sums",
        origin,
    )
    table = expected_frame(system, system.unknown_cell, mean)
    return _make_posterior(questions, functions, draws, frame, run, table, law)


def _draw_answers(
    chains: Sequence[Chain],
    state_functions: sp.csr_array,
    questions: Sequence[RecordQuestion],
    functions: QuestionFunctions,
    settings: _Settings,
    special: tuple[Callable[[], Observer], _Answer, int, bool] = (
        no_observer,
        lambda frame, _: frame,
        1,
        True,
    ),
) -> tuple[Draws, pd.DataFrame]:
    """Return draws and answers, extended until all questions are decided or doublings end.

    ``special`` are an observer of the states, further answers, the largest jump of a number, and
    whether the observer sees many states at once.
    """
    observer, answer, leap, batched = special
    leap *= int(functions.cells.data.max(initial=1))  # a record may count several times
    frames: list[pd.DataFrame] = []

    def enough(draws: Draws) -> bool:
        draws = replace(draws, leap=leap)
        frames.append(answer(estimate_answers(questions, functions, draws), draws))
        return bool((frames[-1]["status"] == "sampled").all())

    sample = draw(
        chains,
        state_functions,
        settings.draws,
        thin=settings.thin,
        doublings=settings.doublings,
        enough=enough,
        observer=observer,
        batched=batched,
        deadline=settings.deadline,
    )
    draws = replace(sample, leap=leap)
    return draws, frames[-1] if draws.agreed else estimate_answers(questions, functions, draws)


def _make_posterior(
    questions: Sequence[RecordQuestion],
    functions: QuestionFunctions,
    draws: Draws,
    frame: pd.DataFrame,
    run: tuple[str, str, Mapping[str, Any]],
    expected: pd.DataFrame,
    law: PosteriorLaw,
) -> MicrodataPosterior:
    """Return the posterior from answers; it keeps the draws if they are not too many.

    ``run`` is the engine, why it was taken, and the seed.
    """
    engine, reason, origin = run
    if not draws.agreed:  # chains that disagree have no mean
        expected = expected.assign(expected=np.nan)
    labels = [str(question) for question in questions]
    frame.insert(0, "question", labels)
    frame.insert(1, "prior", prior_answers(questions, functions, law.system))
    samples, counts = None, draws.counts
    if counts.shape[0] * counts.shape[1] * 2 * len(labels) <= _MAX_SAMPLES:
        samples = Samples(
            counts=counts[:, :, functions.row.ravel()] + functions.constants.ravel(),
            target=None,
            labels=tuple(f"{label}{end}" for label in labels for end in ("", " (of)")),
            dimension="question",
            sampler=f"{engine} chain of records",
            warmup=counts.shape[1] * draws.thin,
            spec={"questions": labels, "thin": draws.thin},
            seed=origin,
        )
    return MicrodataPosterior(frame, expected, engine, reason, 0, samples, law)


# -----------------------------------------------------------------------------
# Belief about a person whom a release counts nowhere, and whose household it counts without them.
#
# The household of such a person has a law of its own: where the person is of kind c, the rest r of
# the household is seen in place of r + e_c.  With independent households of shares theta, n of them
# with probability P(n), and every person of a group G equally probably the target,
#
#   P(r, c | R) ~ theta_{r + e_c} (r_c + 1) sum_x n P(n) P_{n-1}(x) L(R | A (x + e_r)),  c in G.
#
# Of somebody who lived alone nothing is left: r is a household of nobody, which no table counts.


def absent_member_posterior(
    release: Release,
    questions: Sequence[MemberQuestion],
    *,
    level: str,
    place: str,
    prior: RecordPrior,
) -> FloatArray:
    """Return posterior shares about a person whose record the release does not include.

    ``questions`` are about the target (``among``), all of one link; ``prior`` is that of the
    households of the place, the target's included.  The law is exact.
    """
    link = questions[0].link
    if prior.size is None or prior.concentration is not None:
        raise ArgumentError("prior", "must have known shares and a law of the number of households")
    rest = _rest_masses(link, prior)
    # A household of nobody is one more composition, which no table counts.
    members = np.vstack([link.members, np.zeros_like(link.members[:1])])
    derived = {name: np.append(codes, codes[0]) for name, codes in link.derived.items()}
    wider = replace(link, members=members, derived=derived)
    work = _add_empty_household(wider, release.tables.workload)
    extended_release = replace(release, tables=replace(release.tables, workload=work))
    # Of n households the target's is one: a place with more is the more probably the target's.
    size = prior.size * np.arange(prior.size.size)
    shares = prior.shares_of_cells.reshape(-1, len(link.members))
    biased_prior = replace(
        prior,
        schema=wider.schema,
        shares=np.pad(shares, ((0, 0), (0, 1))).ravel(),
        size=size / size.sum(),
    )
    system = make_system(extended_release, level=level, place=place, prior=biased_prior)
    cell_class = system.classes.labels(np.arange(wider.schema.size, dtype=np.int64))
    laws: dict[bytes, FloatArray] = {}
    answers = []
    for question in questions:
        kinds, group = question.kinds()
        part, mass = (
            np.bincount(cell_class, rest @ k, system.classes.size) for k in (kinds, group)
        )
        if group.tobytes() not in laws:
            laws[group.tobytes()] = _rest_law(system, mass.astype(np.float64))
        answers.append(laws[group.tobytes()] @ (part / np.where(mass > 0.0, mass, 1.0)))
    return np.array(answers)


def _rest_masses(link: HouseholdLink, prior: RecordPrior) -> FloatArray:
    """Return theta_{r + e_c} (r_c + 1) for every rest r of a household and kind c of person."""
    shares = prior.shares_of_cells.reshape(-1, len(link.members))
    rests = np.vstack([link.members, np.zeros_like(link.members[:1])])
    code = {row.tobytes(): position for position, row in enumerate(link.members)}
    masses = np.zeros((len(shares), len(rests), link.persons.size))
    possible = shares.any(axis=0)
    for kind in range(link.persons.size):
        person = np.arange(link.persons.size) == kind
        left = link.members[possible & (link.members[:, kind] > 0)] - person
        if any(row.any() and row.tobytes() not in code for row in left):
            raise ArgumentError(
                "link must have what is left of every household that loses a person; one that "
                "there cannot be has a share of 0 in the prior"
            )
        whole = rests + person
        position = np.array([code.get(row.tobytes(), -1) for row in whole])
        inside = position >= 0
        inside[:-1] &= link.members.any(axis=1)  # a vacant unit is no rest
        masses[:, inside, kind] = shares[:, position[inside]] * whole[inside, kind]
    return masses.reshape(-1, link.persons.size)


def _add_empty_household(wider: HouseholdLink, workload: Workload) -> Workload:
    """Return the workload with one more household composition, which no table counts."""
    tables = {}
    for key, table in workload.tables.items():
        whole = np.ones((len(table.cells), len(wider.members) - 1), np.int64)
        member_factors = np.pad(table.factors.get(MEMBERS, whole), ((0, 0), (0, 1)))
        tables[key] = Table(table.name, table.cells, {**table.factors, MEMBERS: member_factors})
    return Workload(wider.schema, tables)


def _rest_law(system: MicrodataSystem, mass: FloatArray) -> FloatArray:
    """Return the posterior of the composition of the target's remaining household."""
    nobody = sp.csr_array(system.knowledge.settled.shape, dtype=np.int64)
    classes = np.flatnonzero(mass > 0.0)
    rest = KnownGroup(0, classes, mass[classes], 1, "the rest of the target's household")
    extended = replace(system, knowledge=Knowledge(nobody, nobody, (rest,)))
    small, _ = presolve(extended, sp.csr_array((0, extended.size), dtype=np.int64))
    try:
        law = weigh(small, _MAX_PAIRS)
    except TooManyStatesError:
        raise ArgumentError(
            "place", f"must be smaller for an exact law: more than {_MAX_PAIRS} pairs of sums"
        ) from None
    mean = np.array([*(np.arange(p.size) @ p for p in law.laws), 0.0])
    class_law = np.zeros(mass.size)
    class_law[classes] = (small.weight * mean[small.group])[extended.cells :]
    return class_law
