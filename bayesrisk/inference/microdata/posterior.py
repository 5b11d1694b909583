"""The law of the records of a place given a release, and answers to questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.microdata import _people, _people_kernels
from bayesrisk.inference.microdata._asked import Asked, asked_of, before
from bayesrisk.inference.microdata._exact import TooManyPointsError, weigh
from bayesrisk.inference.microdata._lattice import LatticeChain
from bayesrisk.inference.microdata._presolve import SmallSystem, TooLargeError, presolve
from bayesrisk.inference.microdata._records import (
    GroupLaws,
    Ranking,
    Tally,
    Watch,
    expected_of,
    ranked,
)
from bayesrisk.inference.microdata._strata import strata_of
from bayesrisk.inference.microdata.knowledge import KnownRecords
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.inference.microdata.questions import RecordQuestion
from bayesrisk.inference.microdata.system import MicrodataSystem, system_of
from bayesrisk.inference.sampling.arviz_io import ChainNumbers, chain_numbers
from bayesrisk.inference.sampling.chains import (
    Samples,
    room_for,
    run_chains,
    spawn,
    standard_error,
)
from bayesrisk.release import Release

__all__ = ["MicrodataPosterior", "microdata_posterior"]

ENGINES = ("auto", "exact", "people", "lattice")
_MAX_POINTS = 10**7
_MAX_EXACT = 2**16
_FEWEST = 1000  # proposals between draws: to come back to Python costs about so many
_ESS, _RHAT = 400.0, 1.01
_MAX_SAMPLES = 2**25


@dataclass(frozen=True)
class _Law:
    """The law of every unknown, of which place and class and known people they are."""

    ranking: Ranking
    system: MicrodataSystem
    cell_of: IntArray
    names: list[str]
    agreed: bool = True


@displayed
@dataclass(frozen=True)
class MicrodataPosterior:
    """What a release says about the records of a place.

    Attributes
    ----------
    answers : pandas.DataFrame
        One row for each question: ``question``, ``prior``, ``posterior``, ``error`` (0 where it
        is exact), ``lower``, ``upper`` (the 95 % interval of the Monte Carlo error, Clopper and
        Pearson's for probabilities), ``status`` (``exact``, ``sampled``, or ``undecided`` where
        chains do not agree: there is no posterior then), ``r_hat`` and ``ess``.
    expected : pandas.DataFrame
        One row for each class of records that may be there: ``place``, a column for each
        attribute (its codes, ``a-b`` for a range), and ``expected``, the posterior mean of their
        number.
    engine : str
        ``exact``, ``people`` or ``lattice``.
    reason : str
        Why this engine.
    points : int
        Points that were weighed, of an exact law; 0 else.
    samples : Samples or None
        Draws of the numbers that questions are about, for ArviZ; None where the law is exact, and
        where they would be more than 2^25 numbers.
    """

    answers: pd.DataFrame
    expected: pd.DataFrame
    engine: str
    reason: str
    points: int
    samples: Samples | None
    _law: _Law = field(repr=False)

    def ranked_records(self, top: int = 100) -> pd.DataFrame:
        """Return the records that are most probably there.

        For each class c of a place and k = 1, 2, ..., the probability that at least k records of
        the class are there.  An adversary who lists those of probability q or more is right with
        each of them so often.

        Parameters
        ----------
        top : int, default 100
            How many.

        Returns
        -------
        pandas.DataFrame
            ``place``, a column for each attribute as in ``expected``, ``known`` (of which known
            people, by what is known; empty for all others), ``number`` k, ``probability`` and
            ``error``: 0 where it is exact, else the standard error between chains.  People whose
            class is known are left out, and do not count in k.

        Raises
        ------
        ArgumentError
            If the chains do not agree.

        Notes
        -----
        Chains count up to k = 2^25 / (chains * classes of all places), at least 1.
        """
        check.integer(top, "top", lower=1)
        if not self._law.agreed:
            raise ArgumentError("draws must be more for a ranking: the chains do not agree")
        law = self._law
        return ranked(law.ranking, law.system, law.cell_of, law.names, top)

    def _answer(self) -> list[str]:
        lines = [f"{len(self.answers)} questions answered, {self.engine}: {self.reason}."]
        for row in self.answers.head(6).itertuples():
            lines.append(
                f"{row.question}: {row.posterior:.4g} ({row.status}), before {row.prior:.4g}"
            )
        return lines


def microdata_posterior(
    release: Release,
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
) -> MicrodataPosterior:
    r"""Return what a release says about the records of a place.

    The unknown counts x of all kinds of records in the finest places have the law

    .. math:: P(x \mid R) \propto P(x) \prod_q L_q(R_q \mid (A x)_q),

    with the prior of :class:`RecordPrior` and, for each published cell q, the likelihood that the
    spec of the release names: true counts, independent noise or rounding.  A withheld count says
    nothing here.

    Parameters
    ----------
    release : Release
        Tables with their likelihoods.
    questions : sequence of RecordQuestion
        What is asked.
    level, place : str
        The place; its own tables and those of the places inside are used.
    prior : RecordPrior
        Prior of the records of every finest place.
    known : sequence of KnownRecords
        What the adversary knows beyond the release.
    engine : {"auto", "exact", "people", "lattice"}
        ``exact`` visits every x that has a weight.  ``people`` is a chain over lists of people,
        for noisy counts; ``lattice`` one on the x that agree with exact counts.  ``auto`` takes
        the first that can do it.
    rng : Generator, int or other seed, optional
        For the chains.
    draws, chains : int
        Draws kept of each chain, after as many that are discarded; number of chains, >= 2.
    thin : int, default 1
        Sweeps between two draws: with more, chains that move slowly need no more memory.

    Returns
    -------
    MicrodataPosterior
        Answers with their errors.  ``prior`` is what is believed given ``known`` alone; NaN for
        numbers of records where the prior does not say how many there are, and where what is
        known overlaps.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a table has no likelihood in closed form.
    DataError
        If the prior forbids what was released, or the tables contradict each other.

    Notes
    -----
    Errors: exact laws to about 1e-12, relative.  A sweep is about one proposal for each person (or
    one step for each move); draws are ``thin`` sweeps apart, and the error of a mean of draws is
    its Monte Carlo standard error, from the effective number of draws.  An answer has status
    ``undecided`` unless the rank-normalised R-hat is at most 1.01 and bulk and tail effective sizes
    are at least 400, for the answer's own draws and for the log density and two random projections
    of the state.

    Examples
    --------
    Two of five people are women, four are of age group 0, and who is what is not published:

    >>> import pandas as pd
    >>> from bayesrisk import MechanismSpec, Records, Release, Schema, Workload, tabulate
    >>> from bayesrisk.release import TrueCounts
    >>> from bayesrisk.tables import Attribute, Geography, Table
    >>> schema = Schema("town", (Attribute("sex", 2), Attribute("age", 2)),
    ...                 Geography("blocks", ("block",), (1,)))
    >>> one_way = {("block", a): Table(a, ("0", "1"), {a: [[1, 0], [0, 1]]})
    ...            for a in ("sex", "age")}
    >>> people = pd.DataFrame({"block": list("77777"), "sex": [0, 0, 0, 1, 1],
    ...                        "age": [0, 0, 1, 0, 0]})
    >>> tables = tabulate(Records.from_frame(people, schema=schema), Workload(schema, one_way))
    >>> release = Release(MechanismSpec("identity", others=TrueCounts()), tables)
    >>> young_woman = RecordQuestion({"age": [0]}, among={"sex": [1]})
    >>> found = microdata_posterior(release, [young_woman], level="block", place="7",
    ...                             prior=RecordPrior.uniform_data_sets(schema))
    >>> float(found.answers["posterior"][0])
    0.8
    """
    asked = check.instances(questions, RecordQuestion, "questions")
    check.instance(release, Release, "release")
    check.instance(prior, RecordPrior, "prior")
    check.choice(engine, "engine", ENGINES)
    for name, code in (("level", level), ("place", place)):
        if not isinstance(code, str):  # the code of a nation is empty
            raise ArgumentTypeError(f"{name} must be a text, got {shown(code)}")
    if place not in release.tables.geoids.get(level, place):
        raise ArgumentError(f"place must be one of level {level!r}, got {shown(place)}")
    what = check.instances(known, KnownRecords, "known")
    apart = [t for q in asked for t in q.tables(prior.schema)]
    system = system_of(release, level=level, place=place, prior=prior, apart=apart, known=what)
    functions = asked_of(asked, system)
    if engine == "exact" or (engine == "auto" and _may_be_exact(system)):
        try:
            return _exact(system, asked, functions)
        except TooLargeError:
            if engine == "exact" or not _people.suits(system):
                raise
        except TooManyPointsError:
            if engine == "exact":
                raise ArgumentError(
                    f"engine must be another for this place: more than {_MAX_POINTS} points"
                ) from None
    check.integer(chains, "chains", lower=2, upper=2**10)
    check.integer(draws, "draws", lower=4, upper=10**7)
    check.integer(thin, "thin", lower=1, upper=10**6)
    if rng is None:
        raise ArgumentError("rng must be given: this place needs a chain")
    people = _people.suits(system)
    if engine == "people" and not people:
        raise ArgumentError(
            "engine 'people' must have noisy counts, and none that are exact but numbers of people"
        )
    use = _people_chains if engine == "people" or (engine == "auto" and people) else _lattice_chains
    return use(system, asked, functions, rng, draws, chains, thin)


def _may_be_exact(system: MicrodataSystem) -> bool:
    """Return whether a search is worth a try: a wide system with noisy counts never ends."""
    return system.size <= _MAX_EXACT


def _exact(
    system: MicrodataSystem, asked: Sequence[RecordQuestion], functions: Asked
) -> MicrodataPosterior:
    small, over_groups = presolve(system, system.over_unknowns(functions.cells))
    law = weigh(small, over_groups, _MAX_POINTS)
    means = np.array([np.arange(p.size) @ p for p in law.answers])
    values = []
    for question, row, known in zip(asked, functions.row, functions.known, strict=True):
        if question.at_least is not None:
            need = max(0, question.at_least - int(known[0]))
            values.append(float(law.answers[row[0]][need:].sum()))
        elif question.among is not None:
            values.append(_ratio(means[row[0]] + known[0], means[row[1]] + known[1]))
        else:
            values.append(float(means[row[0]] + known[0]))
    group_mean = np.array([*(np.arange(p.size) @ p for p in law.laws), 0.0])
    expected = np.where(small.group >= 0, small.weight * group_mean[small.group], 0.0)
    answers = pd.DataFrame(
        {
            "question": [str(q) for q in asked],
            "prior": before(asked, functions, system, strata_of(system)),
            "posterior": values,
            "error": 0.0,
            "lower": values,
            "upper": values,
            "status": "exact",
            "r_hat": np.nan,
            "ess": np.nan,
        }
    )
    reason = f"all {law.points:,} points were weighed"
    table = expected_of(system, system.cell_of, expected)
    found = _Law(_groups(system, small, [list(law.laws)]), system, system.cell_of, _names(system))
    return MicrodataPosterior(answers, table, "exact", reason, law.points, None, found)


def _groups(system: MicrodataSystem, small: SmallSystem, laws: list[list[FloatArray]]) -> GroupLaws:
    dirichlet = system.prior.concentration is not None
    return GroupLaws(laws, small.group, small.mass, small.weight, dirichlet)


def _names(system: MicrodataSystem) -> list[str]:
    """Return of every unknown of which known people it is."""
    groups = system.known.partly
    return [""] * system.cells + [g.name for g in groups for _ in range(g.classes.size)]


def _ratio(part: float, whole: float) -> float:
    """Return the share of a target's kind; NaN if nobody can be the target."""
    return float(part / whole) if whole > 0.0 else float("nan")


def _people_chains(
    system: MicrodataSystem,
    asked: Sequence[RecordQuestion],
    functions: Asked,
    rng: Seed,
    draws: int,
    chains: int,
    thin: int,
) -> MicrodataPosterior:
    of = _people.people_model(system)
    sweep = thin * max(_FEWEST, int(of.likely.sum()))
    generators, origin = spawn(rng, chains)
    counts = room_for(draws, chains, functions.cells.shape[0])
    cell_of = of.cell_of
    of_state = sp.csr_array(functions.cells[:, cell_of])
    means = np.zeros((chains, cell_of.size))
    watch = Watch(chains, draws, cell_of.size, np.random.default_rng(0))
    tally = Tally(chains, cell_of.size)

    def begin(chain: int) -> Any:
        own = generators[chain]
        state = _people.first_state(of, own)

        def step(discard: int, out: IntArray) -> None:
            _people_kernels.go(own, of.model, state, discard * sweep)
            for row in out:
                _people_kernels.go(own, of.model, state, sweep)
                flat = state.x.ravel()
                row[:] = of_state @ flat
                means[chain] += flat
                watch.note(chain, flat, float(state.density[0]))
                tally.note(chain, flat)

        return step

    run_chains(begin, counts, draws, None)
    names = [s.name for s in of.strata for _ in range(of.classes)]
    law = _Law(tally, system, cell_of, names, _agreed(watch))
    return _sampled(
        asked,
        functions,
        counts,
        watch,
        _Run("people", "counts are noisy", origin, thin),
        expected_of(system, cell_of, means.mean(axis=0) / draws),
        law,
    )


def _lattice_chains(
    system: MicrodataSystem,
    asked: Sequence[RecordQuestion],
    functions: Asked,
    rng: Seed,
    draws: int,
    chains: int,
    thin: int,
) -> MicrodataPosterior:
    small, over_groups = presolve(system, system.over_unknowns(functions.cells))
    if not small.matrix.shape[1]:
        return _exact(system, asked, functions)
    generators, origin = spawn(rng, chains + 1)
    chain_of = LatticeChain(small, chains, generators[-1], thin)
    if not len(chain_of.moves):  # the exact counts leave one point
        return _exact(system, asked, functions)
    identity = sp.csr_array(sp.eye_array(small.matrix.shape[1], dtype=np.int64))
    everything = sp.csr_array(sp.vstack([over_groups, identity], format="csr"))
    counts = room_for(draws, chains, everything.shape[0])
    watch = Watch(chains, draws, small.matrix.shape[1], np.random.default_rng(0))
    run_chains(lambda c: chain_of.step(c, generators[c], everything, watch), counts, draws, None)
    n = over_groups.shape[0]
    groups = counts[:, :, n:].mean(axis=(0, 1))
    mean = np.where(small.group >= 0, small.weight * groups[small.group], 0.0)
    laws = [[np.bincount(g) / draws for g in chain.T] for chain in counts[:, :, n:]]
    law = _Law(_groups(system, small, laws), system, system.cell_of, _names(system), _agreed(watch))
    reason = "some counts are exact, and there are too many points to visit"
    return _sampled(
        asked,
        functions,
        counts[:, :, :n],
        watch,
        _Run("lattice", reason, origin, thin),
        expected_of(system, system.cell_of, mean),
        law,
    )


def _agreed(watch: Watch) -> bool:
    """Return whether the chains agree in what is watched besides the questions."""
    seen = [chain_numbers(v) for v in watch.variables]
    return bool(seen) and all(_good(n) for n in seen)


@dataclass(frozen=True)
class _Run:
    """How draws were made."""

    engine: str
    reason: str
    origin: Any
    thin: int


def _sampled(
    asked: Sequence[RecordQuestion],
    functions: Asked,
    counts: IntArray,
    watch: Watch,
    run: _Run,
    expected: pd.DataFrame,
    law: _Law,
) -> MicrodataPosterior:
    """Return the answers of draws: those that chains disagree about are undecided."""
    tracked: list[tuple[FloatArray, float, float, bool]] = []
    for question, row, known in zip(asked, functions.row, functions.known, strict=True):
        part, whole = (counts[:, :, r] + k for r, k in zip(row, known, strict=True))
        draws: FloatArray = part.astype(float)
        if question.at_least is not None:
            draws = (part >= question.at_least).astype(float)
        value, about = float(draws.mean()), 1.0
        if question.among is not None:
            value, about = _ratio(value, float(whole.mean())), float(np.mean(whole > 0))
            # Linearised: the error of a ratio of means is that of these draws.
            draws = value + (part - value * whole) / whole.mean() if about else 0.0 * draws
        share = question.at_least is not None or question.among is not None
        tracked.append((draws, value, about, share))
    labels = [str(question) for question in asked]
    frame = _diagnosed(tracked, watch)
    frame.insert(0, "question", labels)
    frame.insert(1, "prior", before(asked, functions, law.system, strata_of(law.system)))
    samples = None
    if counts.shape[0] * counts.shape[1] * 2 * len(labels) <= _MAX_SAMPLES:
        samples = Samples(
            counts=counts[:, :, functions.row.ravel()] + functions.known.ravel(),
            target=None,
            labels=tuple(f"{label}{end}" for label in labels for end in ("", " (of)")),
            dimension="question",
            sampler=f"{run.engine} chain of records",
            warmup=counts.shape[1] * run.thin,
            spec={"questions": labels, "thin": run.thin},
            seed=run.origin,
        )
    return MicrodataPosterior(frame, expected, run.engine, run.reason, 0, samples, law)


def _diagnosed(tracked: list[tuple[FloatArray, float, float, bool]], watch: Watch) -> pd.DataFrame:
    """Return value, error, interval, status, R-hat and effective size of draws."""
    seen = [chain_numbers(v) for v in watch.variables]
    # Where nothing was seen to move, nothing is known.
    agreed = bool(seen) and all(_good(n) for n in seen)
    fewest = min((min(n.bulk, n.tail) for n in seen), default=0.0)
    worst = max((n.r_hat for n in seen), default=np.nan)
    rows = []
    for draws, value, about, share in tracked:  # part of the draws is about the question at all
        moved = not np.all(draws == draws.flat[0])
        found = chain_numbers(draws) if moved and np.isfinite(value) else None
        r_hat, ess = (found.r_hat, found.bulk) if found else (worst, about * fewest)
        if not agreed or not ess >= _ESS or (found and not _good(found)):
            rows.append((np.nan, np.nan, np.nan, np.nan, "undecided", r_hat, ess))
            continue
        error = float(standard_error(draws)) if found else 0.0
        low, high = answer_interval(value, error, ess, share=share)
        rows.append((value, error, low, high, "sampled", r_hat, ess))
    names = ["posterior", "error", "lower", "upper", "status", "r_hat", "ess"]
    return pd.DataFrame(rows, columns=names)


def answer_interval(
    value: float, error: float, ess: float, *, share: bool, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of an answer from ``ess`` effective draws with a standard error.

    That of a share is Clopper and Pearson's for the trials that would have this error, which
    are the effective draws where every draw says 0 or 1: a normal law is wrong for rare events.
    Draws that all say the same leave at most the share of a run of so many trials without one
    event.
    """
    tail = 0.5 * (1.0 - level)
    if error == 0.0:
        rest = float(-np.expm1(np.log(tail) / ess))
        return max(value - rest, 0.0), min(value + rest, 1.0) if share else value + rest
    if not share:
        reach = float(-special.ndtri(tail)) * error
        return max(value - reach, 0.0), value + reach
    p = min(value, 1.0)
    trials = p * (1.0 - p) / error**2
    events, others = p * trials, (1.0 - p) * trials
    low = float(special.betaincinv(events, others + 1.0, tail)) if events else 0.0
    high = float(special.betaincinv(events + 1.0, others, 1.0 - tail)) if others else 1.0
    return low, high


def _good(numbers: ChainNumbers) -> bool:
    return numbers.r_hat <= _RHAT and min(numbers.bulk, numbers.tail) >= _ESS
