"""The law of the records of a place given a release, and answers to questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special
from scipy.stats import betabinom, binom

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.microdata import _people, _people_kernels
from bayesrisk.inference.microdata._exact import TooManyPointsError, weigh
from bayesrisk.inference.microdata._lattice_chain import LatticeChain
from bayesrisk.inference.microdata._presolve import presolve
from bayesrisk.inference.microdata._watch import Watch
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.inference.microdata.questions import RecordQuestion, of_classes
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
        Draws of the numbers that questions are about, for ArviZ; None where the law is exact.
    """

    answers: pd.DataFrame
    expected: pd.DataFrame
    engine: str
    reason: str
    points: int
    samples: Samples | None

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
    engine: str = "auto",
    rng: Seed | None = None,
    draws: int = 1000,
    chains: int = 4,
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
    engine : {"auto", "exact", "people", "lattice"}
        ``exact`` visits every x that has a weight.  ``people`` is a chain over lists of people,
        for noisy counts; ``lattice`` one on the x that agree with exact counts.  ``auto`` takes
        the first that can do it.
    rng : Generator, int or other seed, optional
        For the chains.
    draws, chains : int
        Draws kept of each chain, after as many that are discarded; number of chains, >= 2.

    Returns
    -------
    MicrodataPosterior
        Answers with their errors.  ``prior`` is NaN for numbers of records where the prior does
        not say how many there are.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a table has no likelihood in closed form.
    DataError
        If the prior forbids what was released, or the tables contradict each other.

    Notes
    -----
    Errors: exact laws to about 1e-12, relative.  Draws are thinned by about one proposal for each
    person (or one step for each move), so that the error of a mean of draws is its Monte Carlo
    standard error, from the effective number of draws.  An answer has status ``undecided`` unless
    the rank-normalised R-hat is at most 1.01 and bulk and tail effective sizes are at least 400,
    for the answer's own draws and for the log density and two random projections of the state.

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
    apart = [t for q in asked for t in q.tables(prior.schema)]
    system = system_of(release, level=level, place=place, prior=prior, apart=apart)
    functions = _functions(asked, system)
    if engine == "exact" or (engine == "auto" and _may_be_exact(system)):
        try:
            return _exact(system, asked, functions)
        except TooManyPointsError:
            if engine == "exact":
                raise ArgumentError(
                    f"engine must be another for this place: more than {_MAX_POINTS} points"
                ) from None
    check.integer(chains, "chains", lower=2, upper=2**10)
    check.integer(draws, "draws", lower=4, upper=10**7)
    if rng is None:
        raise ArgumentError("rng must be given: this place needs a chain")
    people = _people.suits(system)
    if engine == "people" and not people:
        raise ArgumentError(
            "engine 'people' must have noisy counts, and none that are exact but numbers of people"
        )
    use = _people_chains if engine == "people" or (engine == "auto" and people) else _lattice_chains
    return use(system, asked, functions, rng, draws, chains)


def _functions(asked: Sequence[RecordQuestion], system: MicrodataSystem) -> sp.csr_array:
    """Return two linear functions of the unknowns for each question: what it counts, among what."""
    places = [str(p) for p in system.places]
    rows = []
    for question in asked:
        where = of_classes(question.where, system.classes)
        group = of_classes(question.among or {}, system.classes)
        member = np.ones(len(places), np.int64)
        if question.place is not None:
            check.choice(question.place, "place", tuple(places))
            member = np.array([p == question.place for p in places], np.int64)
        for values in (where * group, group):
            rows.append(sp.csr_array(np.kron(member, values)[None, :]))
    return sp.csr_array(sp.vstack(rows, format="csr"), dtype=np.int64)


def _may_be_exact(system: MicrodataSystem) -> bool:
    """Return whether a search is worth a try: a wide system with noisy counts never ends."""
    return system.size <= _MAX_EXACT


def _exact(
    system: MicrodataSystem, asked: Sequence[RecordQuestion], functions: sp.csr_array
) -> MicrodataPosterior:
    small, over_groups = presolve(system, functions)
    law = weigh(small, over_groups, _MAX_POINTS)
    means = np.array([np.arange(p.size) @ p for p in law.answers])
    values = []
    for i, question in enumerate(asked):
        pmf = law.answers[2 * i]
        if question.at_least is not None:
            values.append(float(pmf[question.at_least :].sum()))
        elif question.among is not None:
            values.append(_ratio(means[2 * i], means[2 * i + 1]))
        else:
            values.append(float(means[2 * i]))
    group_mean = np.array([*(np.arange(p.size) @ p for p in law.laws), 0.0])
    expected = np.where(small.group >= 0, small.weight * group_mean[small.group], 0.0)
    answers = pd.DataFrame(
        {
            "question": [str(q) for q in asked],
            "prior": [_prior_of(q, system) for q in asked],
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
    return MicrodataPosterior(
        answers, _expected(system, expected), "exact", reason, law.points, None
    )


def _ratio(part: float, whole: float) -> float:
    """Return the share of a target's kind; NaN if nobody can be the target."""
    return float(part / whole) if whole > 0.0 else float("nan")


def _people_chains(
    system: MicrodataSystem,
    asked: Sequence[RecordQuestion],
    functions: sp.csr_array,
    rng: Seed,
    draws: int,
    chains: int,
) -> MicrodataPosterior:
    of = _people.people_model(system)
    thin = max(_FEWEST, int(of.likely.sum()))
    generators, origin = spawn(rng, chains)
    counts = room_for(draws, chains, functions.shape[0])
    means = np.zeros((chains, system.size))
    watch = Watch(chains, draws, system.size, np.random.default_rng(0))

    def begin(chain: int) -> Any:
        own = generators[chain]
        state = _people.first_state(of, own)

        def step(discard: int, out: IntArray) -> None:
            _people_kernels.go(own, of.model, state, discard * thin)
            for row in out:
                _people_kernels.go(own, of.model, state, thin)
                flat = state.x.ravel()
                row[:] = functions @ flat
                means[chain] += flat
                watch.note(chain, flat, float(state.density[0]))

        return step

    run_chains(begin, counts, draws, None)
    reason = "counts are noisy"
    return _sampled(system, asked, counts, means / draws, watch, "people", reason, origin)


def _lattice_chains(
    system: MicrodataSystem,
    asked: Sequence[RecordQuestion],
    functions: sp.csr_array,
    rng: Seed,
    draws: int,
    chains: int,
) -> MicrodataPosterior:
    small, over_groups = presolve(system, functions)
    if not small.matrix.shape[1]:
        return _exact(system, asked, functions)
    generators, origin = spawn(rng, chains + 1)
    chain_of = LatticeChain(small, chains, generators[-1])
    if not len(chain_of.moves):  # the exact counts leave one point
        return _exact(system, asked, functions)
    identity = sp.csr_array(sp.eye_array(small.matrix.shape[1], dtype=np.int64))
    everything = sp.csr_array(sp.vstack([over_groups, identity], format="csr"))
    counts = room_for(draws, chains, everything.shape[0])
    watch = Watch(chains, draws, small.matrix.shape[1], np.random.default_rng(0))
    run_chains(lambda c: chain_of.step(c, generators[c], everything, watch), counts, draws, None)
    n = functions.shape[0]
    groups = counts[:, :, n:].mean(axis=1)
    means = np.where(small.group >= 0, small.weight * groups[:, small.group], 0.0)
    reason = "some counts are exact, and there are too many points to visit"
    return _sampled(system, asked, counts[:, :, :n].copy(), means, watch, "lattice", reason, origin)


def _sampled(
    system: MicrodataSystem,
    asked: Sequence[RecordQuestion],
    counts: IntArray,
    means: FloatArray,
    watch: Watch,
    engine: str,
    reason: str,
    origin: Any,
) -> MicrodataPosterior:
    """Return the answers of draws: those that chains disagree about are undecided."""
    tracked: list[tuple[FloatArray, float, float, bool]] = []
    for i, question in enumerate(asked):
        part, whole = counts[:, :, 2 * i], counts[:, :, 2 * i + 1]
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
    frame.insert(1, "prior", [_prior_of(q, system) for q in asked])
    samples = Samples(
        counts=counts,
        target=None,
        labels=tuple(f"{label}{end}" for label in labels for end in ("", " (of)")),
        dimension="question",
        sampler=f"{engine} chain of records",
        warmup=counts.shape[1],
        spec={"questions": labels},
        seed=origin,
    )
    return MicrodataPosterior(
        frame, _expected(system, means.mean(axis=0)), engine, reason, 0, samples
    )


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


def _prior_of(question: RecordQuestion, system: MicrodataSystem) -> float:
    """Return the answer before the release; NaN where the prior does not say how many there are."""
    of, prior = system.classes, system.prior
    mass = of.mass(prior.shares)
    where = of_classes(question.where, of)
    if question.among is not None:
        group = of_classes(question.among, of)
        return float((where * group) @ mass / (group @ mass))
    if prior.size is None:
        return float("nan")
    part, n = min(float(where @ mass), 1.0), np.arange(prior.size.size)
    places = len(system.places) if question.place is None else 1
    if question.at_least is None:
        return float(places * part * (n @ prior.size))
    if prior.concentration is None or part in (0.0, 1.0):
        one = [binom.pmf(n, m, part) for m in n]
    else:
        a = prior.concentration
        one = [betabinom.pmf(n, m, a * part, a * (1.0 - part)) for m in n]
    law = prior.size @ np.array(one)
    every = np.ones(1)
    for _ in range(places):  # no more than the question needs
        every = np.convolve(every, law)[: question.at_least]
    return float(max(0.0, 1.0 - every.sum()))


def _expected(system: MicrodataSystem, expected: FloatArray) -> pd.DataFrame:
    """Return one row for each class that may be there."""
    of = system.classes
    kept = np.flatnonzero(expected > 0.0)
    place, cls = np.divmod(kept, of.size)
    frame = pd.DataFrame({"place": system.places[place]})
    for name, bins in zip(of.schema.names, np.unravel_index(cls, of.shape), strict=True):
        frame[name] = np.array(_codes(of, name))[bins]
    return frame.assign(expected=expected[kept])


def _codes(of: Any, name: str) -> list[str]:
    """Return the codes of every bin of an attribute."""
    attribute = of.schema.attribute(name)
    told = []
    for b in range(int(of.bins[name].max()) + 1):
        codes = np.flatnonzero(of.bins[name] == b) + attribute.first
        runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        told.append(",".join(str(r[0]) if r.size == 1 else f"{r[0]}-{r[-1]}" for r in runs))
    return told
