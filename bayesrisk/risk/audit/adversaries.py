"""Adversaries: what each knows before a release, and the prior that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.posterior import RecordLaw, record_law
from bayesrisk.inference.microdata.prior import fit_concentration
from bayesrisk.inference.microdata.system import MicrodataSystem, make_system
from bayesrisk.release import Likelihood, MechanismSpec, NoiseSpec, Release, TrueCounts
from bayesrisk.tables.cells import CellSpace

# -----------------------------------------------------------------------------
# Beliefs about one target: before a release, after it, and after one without its record.


_WORTH = 0.2  # of the draws, for weights to be used
_FAR = 4.0  # standard deviations of how often a record is alone
_BATCHES = 20  # of all chains together at least, for the Monte Carlo error


@dataclass(frozen=True)
class TargetQuestion:
    """Statements about a target, and the cells of the schema that its record may be in."""

    possible: BoolArray  # (cells of the schema,): agrees with what is known of the target
    value: IntArray  # (cells of the schema,): which statement is true of a record of the cell
    values: int  # number of statements

    def sums(self, cells: FloatArray) -> FloatArray:
        """Return the sums over the possible cells of every value."""
        weights: FloatArray = cells[self.possible].astype(np.float64)
        sums = np.bincount(self.value[self.possible], weights, minlength=self.values)
        return sums.astype(np.float64)

    def shares(self, classes: CellSpace, cells: FloatArray) -> FloatArray:
        """Return (classes, values): how many records of a class are of a value, on average."""
        index = classes.labels(np.flatnonzero(self.possible))
        flat = index * self.values + self.value[self.possible]
        parts = np.bincount(flat, cells[self.possible], minlength=classes.size * self.values)
        mass = classes.mass(cells)[:, None]
        table = parts.reshape(classes.size, self.values)
        return np.divide(table, mass, out=np.zeros_like(table), where=mass > 0)


@dataclass(frozen=True)
class TargetBelief:
    """Probabilities of all statements about a target, with their Monte Carlo standard errors."""

    probability: FloatArray
    error: FloatArray

    @classmethod
    def exact(cls, parts: FloatArray) -> TargetBelief:
        """Return probabilities proportional to parts; NaN where there is nothing to share."""
        whole = parts.sum()
        value = parts / whole if whole > 0 else np.full(parts.shape, np.nan)
        return cls(value, np.zeros(parts.shape))


def prior_belief(prior: RecordPrior, question: TargetQuestion) -> TargetBelief:
    """Return the belief about a target of a place before anything is released."""
    return TargetBelief.exact(question.sums(prior.shares_of_cells))


def posterior_belief(law: RecordLaw, place: int, shares: FloatArray) -> TargetBelief:
    r"""Return the belief about a target who is one of the records, E[X_r] / E[G]."""
    by_group = _by_group(law, place, shares)
    if law.draws is None:
        return TargetBelief.exact(law.mean @ by_group)
    return _ratio(law.draws @ by_group, np.ones(law.draws.shape[:2]))


def belief_without_record(
    law: RecordLaw, place: int, shares: FloatArray, prior: RecordPrior, question: TargetQuestion
) -> TargetBelief:
    r"""Return the belief about a person who is none of the records of a law.

    .. math:: P(r) \propto E[(A \theta_r + x_r) / (A + n)],

    the predictive probability of one more record.  The law is that of the other records, under
    :func:`prior_of_others`, which has the factor 1 / (A + n) in it; ``shares`` is (classes,
    values).
    """
    if prior.concentration is None:
        return prior_belief(prior, question)
    base = prior.concentration * question.sums(prior.shares_of_cells)
    by_group = _by_group(law, place, shares)
    if law.draws is None:
        return TargetBelief.exact(base + law.mean @ by_group)
    weight = np.ones(law.draws.shape[:2])
    if prior.size is None:  # equal weights for all sizes have no law of the others' number
        n = (law.draws @ _by_group(law, place, np.ones((len(shares), 1))))[..., 0]
        weight = (n + 1.0) / (prior.concentration + n)
    return _ratio(base + law.draws @ by_group, weight)


def reweighted_belief(
    law: RecordLaw,
    place: int,
    shares: FloatArray,
    prior: RecordPrior,
    question: TargetQuestion,
    record: int,
) -> TargetBelief | None:
    r"""Return the same from draws of the law *with* the record, where released counts are sums.

    If what is released of the others is R less the record's part, the law of the others is that of
    all with the record taken off and weighed, and the predictive probability of one more record is

    .. math:: P(r) \propto E[w(x) (A \theta_r + x_r - 1_{t \in r})], \quad
        w(x) = \frac{x_t}{A \theta_t + x_t - 1},

    where t is the group of the record: 0 where there is no such record.  None without draws, and
    where their weights are worth less than a fifth of the draws, or would be with as many more or
    fewer draws of such a record alone as may well be by chance: of a rare record these weigh most.
    """
    if prior.concentration is None:
        return prior_belief(prior, question)
    group = int(law.group[place * len(shares) + record])
    if law.draws is None or group < 0:
        return None
    by_group = _by_group(law, place, shares)
    x, mass = law.draws[..., group], law.mass[group]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(x > 0, x / (mass + x - 1.0), 0.0)
    # Whether a record is often enough alone is not decided by how often it happens to be: else
    # draws would be kept that by chance have it too rarely.
    alone, rest = np.count_nonzero(x == 1), np.where(x > 1, weight, 0.0)
    plausible = np.maximum(alone + np.linspace(-_FAR, _FAR, 33) * np.sqrt(alone + 1.0), 0.0)
    square = (rest**2).sum() + plausible / mass**2
    worth = (rest.sum() + plausible / mass) ** 2 / np.maximum(square, 1e-300)
    if not worth.min() >= _WORTH * weight.size:
        return None
    base = prior.concentration * question.sums(prior.shares_of_cells)
    unseen = 0.0 if alone else 1.0 / mass
    return _ratio(base + law.draws @ by_group - by_group[group], weight, float(unseen))


def _by_group(law: RecordLaw, place: int, values: FloatArray) -> FloatArray:
    """Return values of the classes (classes, columns) in a place, by groups of the law."""
    start = place * len(values)
    group = law.group[start : start + len(values)]
    weight = law.weight[start : start + len(values)]
    present = group >= 0
    totals = np.zeros((law.mean.size, values.shape[1]))
    np.add.at(totals, group[present], weight[present, None] * values[present])
    return totals


def _ratio(parts: FloatArray, weight: FloatArray, unseen: float = 0.0) -> TargetBelief:
    """Return shares of weighted means of parts (chains, draws, values), with errors.

    ``unseen`` is a larger weight than that of any draw, which one in as many may have.
    """
    mean = np.einsum("cd,cdv->v", weight, parts) / weight.size
    whole = mean.sum()
    if not whole > 0:
        return TargetBelief.exact(np.zeros(mean.size))
    value = mean / whole
    # Linearised: the error of a ratio of means is that of the mean of these.
    line = weight[..., None] * (parts - value * parts.sum(axis=-1, keepdims=True)) / whole
    chains, draws, values = line.shape
    batches = min(draws, -(-_BATCHES // chains))
    size = draws // batches
    means = line[:, : size * batches].reshape(chains * batches, size, values).mean(axis=1)
    # Of so few batches it is a Student law's scale, whose deviation is larger.
    number = chains * batches
    error = means.std(axis=0, ddof=1) * np.sqrt((number - 1) / max(number - 3, 1) / number)
    # Draws that all say the same say nothing about what one in as many would have said.
    return TargetBelief(
        value, np.hypot(error, max(1.0 / weight.size, unseen / float(weight.sum())))
    )


#: Share of the other people of the place whose records an adversary of this name knows.
ADVERSARIES = {"outsider": 0.0, "linker": 0.0, "insider": 0.5, "knows-all-but-one": 1.0}


@displayed
@dataclass(frozen=True)
class Adversary:
    """Prior knowledge of an adversary: of the target, and of the others of its place.

    Everybody knows the place of the target, and the composition of all other places.

    Attributes
    ----------
    name : str
        How the adversary is called in results.
    known : tuple of str
        Attributes of the target that are known, besides its place.
    neighbours : float, default 0
        Share, in [0, 1], of the other people of the place whose whole records are known.
    """

    name: str
    known: tuple[str, ...] = ()
    neighbours: float = 0.0

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        object.__setattr__(self, "known", check.texts(self.known, "known"))
        share = check.scalar(self.neighbours, "neighbours", lower=0.0, upper=1.0)
        object.__setattr__(self, "neighbours", share)

    @classmethod
    def named(cls, name: str, *, known: Sequence[str] = ()) -> Self:
        """Return one of the four adversaries, who knows attributes ``known`` of the target.

        ``outsider`` and ``linker`` know nobody else's record, ``insider`` half of those of the
        place, ``knows-all-but-one`` all of them.
        """
        check.choice(name, "name", tuple(ADVERSARIES))
        return cls(name, check.texts(known, "known"), ADVERSARIES[name])


def prior_knowing(prior: RecordPrior, records: FloatArray, remaining: int | None) -> RecordPrior:
    r"""Return the prior of the other records of a place, some being known.

    With a concentration A the known records k say what people of the place are like,

    .. math:: A' = A + |k|, \quad \theta'_c = (A \theta_c + k_c) / A';

    without one they say nothing about others.

    With ``MicrodataSystem.without_records``, which takes the known records off the counts, this
    says the same as :class:`~bayesrisk.inference.KnownRecords` of relation ``at least`` for each of
    them.  One system then serves all targets of a place, and an adversary who knows all other
    records also knows their number (``remaining``), which no condition on records says.
    """
    size = prior.size
    n_known = int(records.sum())
    if remaining is not None:
        size = np.zeros(remaining + 1)
        size[remaining] = 1.0
    elif size is not None and n_known:
        size = size[n_known:] / size[n_known:].sum()
    if prior.concentration is None or not n_known:
        return replace(prior, size=size)
    more = prior.concentration + n_known
    shares = (prior.concentration * prior.shares_of_cells + records) / more
    return replace(prior, shares=shares / shares.sum(), concentration=more, size=size)


def prior_of_others(prior: RecordPrior) -> RecordPrior:
    """Return the prior of the other records of the place of a target.

    A place with more people is the more probably the target's: with n of them it has m = n - 1
    others with probability proportional to (m + 1) P(m + 1).  With a concentration A there is a
    factor 1 / (A + m), so that means of the others' counts give the predictive probability of one
    more record.
    """
    if prior.size is None:
        return prior
    m = np.arange(prior.size.size - 1)
    size = prior.size[1:] * (m + 1.0)
    if prior.concentration is not None:
        size /= prior.concentration + m
    return replace(prior, size=size / size.sum())


# -----------------------------------------------------------------------------
# How an adversary reads a release: by its likelihood, or by a working model where it has none.


#: Names of all readings: of one question, so that answers of one can be held against another's.
READINGS = ("likelihood", "as-true", "swap-aware", "working-error")

_MOVED = {"rate", "swap_key"}  # parameters of releases whose records change places
_LEAST = Fraction(1, 10**4)  # variance of a table without an error that anybody saw

Key = tuple[str, str]


@displayed
@dataclass(frozen=True)
class Reading:
    """A release as an adversary takes it."""

    # ``likelihood``: as its spec says; ``as-true``: as if nothing had been protected; ``swap-
    # aware``: as true, but the target's record is counted elsewhere with the public probability;
    # ``working-error``: true counts with independent errors of the public variance
    name: str
    release: Release  # With a likelihood in closed form for every table
    moved: float = 0.0  # Probability that a record of a place is counted elsewhere


def readings(release: Release, errors: Mapping[Key, float]) -> list[Reading]:
    """Return every reading of a release by an adversary.

    By the likelihood, where every table has one of each count given the true one alone.  Else,
    where records changed places, one that takes all counts as true and one that knows of the
    exchange; otherwise one with a working model of the error, from the mean squared error of every
    table that an agency publishes.
    """
    laws = release.spec.tables
    unknown = [key for key, law in laws.items() if not law.closed]
    if not unknown:
        return [Reading("likelihood", release)]
    parameters = release.spec.parameters
    if set(parameters) >= _MOVED:  # the stated rate: the one that was reached is not published
        naive = _under_laws(release, {key: TrueCounts() for key in unknown})
        moved = float(Fraction(parameters["rate"]))
        return [Reading("as-true", naive), Reading("swap-aware", naive, moved)]
    if errors and set(unknown).isdisjoint(errors):
        other = unknown[0]
        raise ArgumentError(
            "protection",
            "must not compose releases without a likelihood in closed form",
            shown=f"table {quote(other[1])}: audit that release by itself",
        )
    working: dict[Key, Likelihood] = {}
    for key in unknown:
        variance = Fraction(float(errors.get(key, 0.0))).limit_denominator(10**6)
        working[key] = NoiseSpec("discrete-gaussian", max(variance, _LEAST))
    return [Reading("working-error", _under_laws(release, working))]


def _under_laws(release: Release, laws: Mapping[Key, Likelihood]) -> Release:
    spec = MechanismSpec(
        release.spec.mechanism, release.spec.parameters, {**release.spec.tables, **laws}
    )
    return replace(release, spec=spec)


# -----------------------------------------------------------------------------
# Statements about targets of one place: prior, without, posterior, for every adversary.


CALCULATED, SAMPLED, UNDECIDED, UNSTATED = "calculated", "sampled", "undecided", "unstated"


@dataclass(frozen=True)
class AuditTarget:
    """A target: its record, the question, and the others whose records an insider knows."""

    row: int  # Row in the population of a record like it, which counterfactuals leave out
    cell: int  # Cell of its record in the schema
    question: TargetQuestion
    known_cells: IntArray  # Cells of the records of others that are known; empty if none are
    all_others: bool  # Whether these are all the others


@dataclass(frozen=True)
class _Rest:
    """The law of the records of a place that are not known."""

    prior: RecordPrior
    other_prior: RecordPrior  # of these records without the target's
    system: MicrodataSystem
    law: RecordLaw


# By what is known, laws of the rest, and of the others by a record or a row
SharedLaws = tuple[dict[tuple[bytes, bool], _Rest], dict[tuple[bytes, int], RecordLaw]]


@dataclass(frozen=True)
class PlaceReading:
    """A place as one adversary reads it in one release."""

    release: Reading
    level: str  # of the place, the finest of the release
    code: str  # of the place
    prior: RecordPrior  # of its records
    additive: bool  # Whether the release without a record is the release less the record
    # Returns the reading of a release of the data without the record of a row
    counterfactual: Callable[[int], Reading]
    seed: tuple[int, ...]  # Of the chains
    # Numbers of known people with which exact laws of the place are too large, by earlier releases
    # too: chains begin at once
    too_large: set[int] = field(default_factory=set)
    laws: SharedLaws = field(default_factory=lambda: ({}, {}))  # Of all readings of the release


@dataclass(frozen=True)
class TargetBeliefs:
    """The three beliefs of an adversary about a target, and the engine that found them."""

    row: int
    prior: TargetBelief
    without: TargetBelief
    posterior: TargetBelief
    engine: str
    status: str


def prior_of_rest(prior: RecordPrior, target: AuditTarget) -> RecordPrior:
    """Return the prior of the records that are not known, the target's among them."""
    if not target.known_cells.size and not target.all_others:
        return prior
    known_counts = np.bincount(target.known_cells, minlength=prior.schema.size)
    return prior_knowing(prior, known_counts.astype(float), 1 if target.all_others else None)


def infer(place: PlaceReading, targets: Iterable[AuditTarget]) -> Iterator[TargetBeliefs]:
    """Yield the beliefs about each target, in order; laws that they share are found once."""
    targets = list(targets)
    laws = PlaceLaws(place, targets)
    for target in targets:
        try:
            yield laws.beliefs(target)
        except DataError:  # the release, as it is read, cannot be of such records
            start = prior_belief(prior_of_rest(place.prior, target), target.question)
            yield TargetBeliefs(target.row, start, start, start, "none", UNSTATED)


class PlaceLaws:
    """Laws of the records of a place, and shares of what is asked about, each found once."""

    def __init__(self, place: PlaceReading, targets: Iterable[AuditTarget] = ()) -> None:
        self._place = place
        self._system = self._read(place.release.release)
        self._position = int(np.searchsorted(self._system.places, place.code))
        self._laws, self._laws_without = place.laws
        self._priors: dict[tuple[bytes, ...], tuple[TargetBelief, FloatArray]] = {}
        # Unknowns of whose records one is removed, of targets about whom the same is known
        self._removed: dict[tuple[bytes, bool], list[int]] = {}
        for one in targets:
            self._removed.setdefault(_known_key(one), []).append(self._unknown(one))

    def _read(self, release: Release) -> MicrodataSystem:
        place = self._place
        return make_system(release, level=place.level, place=place.code, prior=place.prior)

    def beliefs(self, target: AuditTarget) -> TargetBeliefs:
        """Return the beliefs about a target."""
        rest, question = self._rest(target), target.question
        # The belief before the release, and the shares of all values in every class.
        key = target.known_cells.tobytes(), question.possible.tobytes(), question.value.tobytes()
        if key not in self._priors:
            shares = question.shares(rest.system.classes, rest.prior.shares_of_cells)
            self._priors[key] = prior_belief(rest.prior, question), shares
        start, shares = self._priors[key]
        nothing = TargetBelief.exact(np.zeros(question.values))
        if not rest.law.decided:
            return TargetBeliefs(target.row, start, nothing, nothing, rest.law.engine, UNDECIDED)
        posterior = posterior_belief(rest.law, self._position, shares)
        without = start
        status = CALCULATED if rest.law.draws is None else SAMPLED
        if not target.all_others and rest.prior.concentration is not None:
            other, without = self._without(target, rest, shares)
            if other.draws is not None:
                status = SAMPLED
            if not other.decided:  # no number of unfinished chains is a belief
                return TargetBeliefs(
                    target.row, start, nothing, nothing, rest.law.engine, UNDECIDED
                )
        if np.isnan(posterior.probability).any():  # the tables have no record of its kind
            posterior, without, status = start, start, UNSTATED
        if (moved := self._place.release.moved) and status != UNSTATED:
            # Who is counted elsewhere is one more of those who live here, (A theta + x) / (A + n);
            # whoever knows all the others has nothing to learn from the tables about that one.
            elsewhere = start
            if not target.all_others:
                elsewhere = belief_without_record(
                    rest.law, self._position, shares, rest.prior, question
                )
            posterior = TargetBelief(
                moved * elsewhere.probability + (1.0 - moved) * posterior.probability,
                moved * elsewhere.error + (1.0 - moved) * posterior.error,  # of the same draws
            )
        return TargetBeliefs(target.row, start, without, posterior, rest.law.engine, status)

    def _rest(self, target: AuditTarget) -> _Rest:
        """Return the law of the records that are not known, the target's among them."""
        if (key := _known_key(target)) not in self._laws:
            prior = prior_of_rest(self._place.prior, target)
            system = replace(self._system, prior=prior)
            if target.known_cells.size:
                known_counts = self._classes(system, target.known_cells)
                system = system.without_records(self._position, known_counts)
            other_prior = prior if target.all_others else prior_of_others(prior)
            removed: Sequence[int] = ()
            if self._place.additive and not target.all_others and prior.concentration is not None:
                removed = self._removed.get(key, ())
            law = self._solve(system, 0, target, removed)
            self._laws[key] = _Rest(prior, other_prior, system, law)
        return self._laws[key]

    def _unknown(self, target: AuditTarget) -> int:
        """Return the unknown that a target's record is one of."""
        classes = self._system.classes
        return self._position * classes.size + int(classes.labels(np.array([target.cell]))[0])

    def _without(
        self, target: AuditTarget, rest: _Rest, shares: FloatArray
    ) -> tuple[RecordLaw, TargetBelief]:
        prior, question, law = rest.prior, target.question, rest.law
        record = self._unknown(target) % rest.system.classes.size
        if self._place.additive:
            means = law.reduced_means.get(int(law.group[self._unknown(target)]))
            if means is not None:
                law = replace(law, mean=means)
                return law, belief_without_record(law, self._position, shares, prior, question)
            belief = reweighted_belief(law, self._position, shares, prior, question, record)
            if belief is not None:
                return law, belief
        key = (target.known_cells.tobytes(), record if self._place.additive else ~target.row)
        if key not in self._laws_without:
            system = self._counterfactual(target, rest, record)
            self._laws_without[key] = self._solve(system, 1, target)
        other = self._laws_without[key]
        return other, belief_without_record(other, self._position, shares, prior, question)

    def _counterfactual(self, target: AuditTarget, rest: _Rest, record: int) -> MicrodataSystem:
        """Return the system of the release without the record of a target."""
        if self._place.additive:
            one = np.zeros(rest.system.classes.size, np.int64)
            one[record] = 1
            system = replace(rest.system, prior=rest.other_prior)
            return system.without_records(self._position, one)
        other = self._read(self._place.counterfactual(target.row).release)
        other = replace(other, prior=rest.other_prior)
        if target.known_cells.size:
            other = other.without_records(self._position, self._classes(other, target.known_cells))
        return other

    def _classes(self, system: MicrodataSystem, cells: IntArray) -> IntArray:
        index = system.classes.labels(cells)
        return np.bincount(index, minlength=system.classes.size).astype(np.int64)

    def _solve(
        self, system: MicrodataSystem, kind: int, target: AuditTarget, removed: Sequence[int] = ()
    ) -> RecordLaw:
        seed = np.random.SeedSequence(
            [*self._place.seed, kind, len(self._laws), len(self._laws_without)]
        )
        n_known, too_large = target.known_cells.size, self._place.too_large
        limit = {"max_pairs": 0} if n_known in too_large else {}
        law = record_law(system, removed=removed, rng=np.random.default_rng(seed), **limit)
        if law.engine != "exact":
            too_large.add(n_known)
        return law


def _known_key(target: AuditTarget) -> tuple[bytes, bool]:
    """Return the key of the law of the records that are not known."""
    # Whoever knows all others of a place of one person knows no record, and still its size.
    return target.known_cells.tobytes(), target.all_others


def known_others(
    adversary: Adversary, cells: Mapping[int, int], rows: IntArray, rng: np.random.Generator
) -> dict[int, tuple[IntArray, bool]]:
    """Return for each target row the cells of the others that the adversary knows.

    ``cells`` has the cell of every row of the place.  An insider knows the same people for every
    target, but the target itself.
    """
    everybody = np.array(sorted(cells), np.int64)
    number = int(np.floor(adversary.neighbours * everybody.size))
    chosen = everybody if adversary.neighbours == 1.0 else rng.permutation(everybody)[:number]
    knowledge = {}
    for row in rows.tolist():
        neighbours = np.sort(np.array([cells[r] for r in chosen.tolist() if r != row], np.int64))
        knowledge[row] = neighbours, adversary.neighbours == 1.0
    return knowledge


# -----------------------------------------------------------------------------
# What is known of all places while one of them is looked at: for populations too large to hold.


_FIT_PLACES = 2000
#: Streams of random numbers, apart from each other.
MECHANISM, CHAINS, INSIDERS, _TARGETS, _FIT = range(5)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The population that a part is a part of."""

    code: str  # of the part
    first_row: int  # records of all parts before it
    first_place: int  # places of all parts before it
    composition: IntArray  # Records of all parts in each cell of the schema
    largest: int  # Records of the largest place of all
    concentration: float  # Dirichlet concentration: pseudo-records shared by a place


def audit_rng(seed: int, *key: int) -> np.random.Generator:
    """Return a stream of random numbers of its own."""
    return np.random.default_rng(np.random.SeedSequence([seed, *key]))


def drawn_targets(seed: int, everybody: int, number: int | None) -> IntArray:
    """Return the rows of targets, drawn without replacement; of everybody if there is None."""
    if number is None or number >= everybody:
        return np.arange(everybody, dtype=np.int64)
    rows = audit_rng(seed, _TARGETS).choice(everybody, number, replace=False)
    return np.sort(rows).astype(np.int64)


def sampled_places(seed: int, places: int) -> IntArray:
    """Return the places that a concentration is fitted to."""
    return audit_rng(seed, _FIT).permutation(places)[:_FIT_PLACES].astype(np.int64)


def fit_place_concentration(counts: IntArray) -> float:
    """Return the Dirichlet concentration of people of one place, from counts (places, values)."""
    return fit_concentration(counts, counts.sum(axis=0) / counts.sum())
