"""Adversaries: what each knows before a release, and the prior that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference import RecordPrior, fit_concentration
from bayesrisk.inference.microdata.knowledge import Classes
from bayesrisk.inference.microdata.posterior import RecordLaw, record_law
from bayesrisk.inference.microdata.system import MicrodataSystem, system_of
from bayesrisk.release import Likelihood, MechanismSpec, NoiseSpec, Release, TrueCounts

# -----------------------------------------------------------------------------
# What is believed of one target: before a release, after it, and after one without its record.


_WORTH = 0.2  # of the draws, for weights to be used
_FAR = 4.0  # standard deviations of how often a record is alone
_BATCHES = 20  # of all chains together at least, for the Monte Carlo error


@dataclass(frozen=True)
class Asked:
    """What is asked of a target.

    Attributes
    ----------
    possible : ndarray of bool, shape (cells of the schema,)
        Cells that agree with what is known of the target.
    value : ndarray of int64, shape (cells of the schema,)
        Which statement, 0, 1, ..., is true of a record of the cell.
    values : int
        Number of statements.
    """

    possible: NDArray[np.bool_]
    value: IntArray
    values: int

    def sums(self, cells: FloatArray) -> FloatArray:
        """Return the sums over the possible cells of every value."""
        weights: FloatArray = cells[self.possible].astype(np.float64)
        sums = np.bincount(self.value[self.possible], weights, minlength=self.values)
        return sums.astype(np.float64)

    def shares(self, classes: Classes, cells: FloatArray) -> FloatArray:
        """Return (classes, values): how many records of a class are of a value, on average."""
        of = classes.of_cells(np.flatnonzero(self.possible))
        flat = of * self.values + self.value[self.possible]
        parts = np.bincount(flat, cells[self.possible], minlength=classes.size * self.values)
        whole = classes.mass(cells)[:, None]
        table = parts.reshape(classes.size, self.values)
        found: FloatArray = np.divide(table, whole, out=np.zeros_like(table), where=whole > 0)
        return found


@dataclass(frozen=True)
class Belief:
    """Probabilities of all statements about a target, with their Monte Carlo standard errors."""

    probability: FloatArray
    error: FloatArray

    @classmethod
    def exact(cls, parts: FloatArray) -> Belief:
        """Return probabilities proportional to parts; NaN where there is nothing to share."""
        whole = parts.sum()
        value = parts / whole if whole > 0 else np.full(parts.shape, np.nan)
        return cls(value, np.zeros(parts.shape))


def before(prior: RecordPrior, asked: Asked) -> Belief:
    """Return what is believed of a target of a place before anything is released."""
    return Belief.exact(asked.sums(prior.shares_of_cells))


def after(law: RecordLaw, place: int, shares: FloatArray) -> Belief:
    r"""Return what is believed of a target who is one of the records, E[X_r] / E[G]."""
    of = _by_group(law, place, shares)
    if law.draws is None:
        return Belief.exact(law.mean @ of)
    return _ratio(law.draws @ of, np.ones(law.draws.shape[:2]))


def without(
    law: RecordLaw, place: int, shares: FloatArray, prior: RecordPrior, asked: Asked
) -> Belief:
    r"""Return what is believed of somebody who is none of the records of a law.

    .. math:: P(r) \propto E[(A \theta_r + x_r) / (A + n)],

    the predictive probability of one more record.
    """
    if prior.concentration is None:
        return before(prior, asked)
    base = prior.concentration * asked.sums(prior.shares_of_cells)
    of = _by_group(law, place, shares)
    if law.draws is None:
        return Belief.exact(base + law.mean @ of)
    n = (law.draws @ _by_group(law, place, np.ones((len(shares), 1))))[..., 0]
    # Equal weights for all sizes have no law of the others' number: n + 1 times as probable.
    more = n + 1.0 if prior.size is None else 1.0
    return _ratio(base + law.draws @ of, more / (prior.concentration + n))


def without_by_weights(
    law: RecordLaw,
    place: int,
    shares: FloatArray,
    prior: RecordPrior,
    asked: Asked,
    record: int,
) -> Belief | None:
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
        return before(prior, asked)
    group = int(law.group[place * len(shares) + record])
    if law.draws is None or group < 0:
        return None
    of = _by_group(law, place, shares)
    x, mass = law.draws[..., group], law.mass[group]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(x > 0, x / (mass + x - 1.0), 0.0)
    # Whether a record is often enough alone is not decided by how often it happens to be: else
    # draws would be kept that by chance have it too rarely.
    alone, rest = np.count_nonzero(x == 1), np.where(x > 1, weight, 0.0)
    maybe = np.maximum(alone + np.linspace(-_FAR, _FAR, 33) * np.sqrt(alone + 1.0), 0.0)
    square = (rest**2).sum() + maybe / mass**2
    worth = (rest.sum() + maybe / mass) ** 2 / np.maximum(square, 1e-300)
    if not worth.min() >= _WORTH * weight.size:
        return None
    base = prior.concentration * asked.sums(prior.shares_of_cells)
    unseen = 0.0 if alone else 1.0 / mass
    return _ratio(base + law.draws @ of - of[group], weight, float(unseen))


def _by_group(law: RecordLaw, place: int, values: FloatArray) -> FloatArray:
    """Return values of the classes (classes, columns) in a place, by groups of the law."""
    start = place * len(values)
    group = law.group[start : start + len(values)]
    weight = law.weight[start : start + len(values)]
    there = group >= 0
    found = np.zeros((law.mean.size, values.shape[1]))
    np.add.at(found, group[there], weight[there, None] * values[there])
    return found


def _ratio(parts: FloatArray, weight: FloatArray, unseen: float = 0.0) -> Belief:
    """Return shares of weighted means of parts (chains, draws, values), with errors.

    ``unseen`` is a larger weight than that of any draw, which one in as many may have.
    """
    mean = np.einsum("cd,cdv->v", weight, parts) / weight.size
    whole = mean.sum()
    if not whole > 0:
        return Belief.exact(np.zeros(mean.size))
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
    return Belief(value, np.hypot(error, max(1.0 / weight.size, unseen / float(weight.sum()))))


# -----------------------------------------------------------------------------


#: Share of the other people of the place whose records an adversary of this name knows.
ADVERSARIES = {"outsider": 0.0, "linker": 0.0, "insider": 0.5, "knows-all-but-one": 1.0}


@displayed
@dataclass(frozen=True)
class Adversary:
    """Who asks: what is known of the target, and of the others of its place.

    Everybody knows the place of the target, and the composition of all other places.

    Attributes
    ----------
    name : str
        How the adversary is called in results.
    known : tuple of str
        Attributes of the target that are known, besides its place.
    neighbours : float, default 0
        Share, in [0, 1], of the other people of the place whose whole records are known.

    Examples
    --------
    >>> Adversary.named("linker", known=["sex", "age"])
    Adversary(name='linker', known=('sex', 'age'), neighbours=0)
    >>> Adversary.named("knows-all-but-one").neighbours
    1.0
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
        """Return one of the four adversaries.

        Parameters
        ----------
        name : {"outsider", "linker", "insider", "knows-all-but-one"}
            ``outsider`` and ``linker`` know nobody else's record, ``insider`` half of those of the
            place, ``knows-all-but-one`` all of them.
        known : sequence of str
            Attributes of the target that are known, which make an outsider a linker.

        Returns
        -------
        Adversary
            With this name.
        """
        check.choice(name, "name", tuple(ADVERSARIES))
        return cls(name, check.texts(known, "known"), ADVERSARIES[name])


def prior_knowing(prior: RecordPrior, records: FloatArray, others: int | None) -> RecordPrior:
    r"""Return the prior of the other records of a place, some being known.

    With a concentration A the known records k say what people of the place are like,

    .. math:: A' = A + |k|, \quad \theta'_c = (A \theta_c + k_c) / A';

    without one they say nothing about others.

    With ``MicrodataSystem.less``, which takes the known records off the counts, this says the same
    as :class:`~bayesrisk.inference.KnownRecords` of relation ``at least`` for each of them.  An
    audit uses it since one system then serves all targets of a place, and since whoever knows all
    other records also knows their number (``others``), which no condition on records says.
    """
    size = prior.size
    known = int(records.sum())
    if others is not None:
        size = np.zeros(others + 1)
        size[others] = 1.0
    elif size is not None and known:
        size = size[known:] / size[known:].sum()
    if prior.concentration is None or not known:
        return replace(prior, size=size)
    more = prior.concentration + known
    shares = (prior.concentration * prior.shares_of_cells + records) / more
    return replace(prior, shares=shares / shares.sum(), concentration=more, size=size)


def prior_of_others(prior: RecordPrior) -> RecordPrior:
    """Return the prior of the other records of the place of a target.

    A place with more people is the more probably the target's: with n of them it has m = n - 1
    others with probability proportional to (m + 1) P(m + 1).
    """
    if prior.size is None:
        return prior
    size = prior.size[1:] * np.arange(1, prior.size.size)
    return replace(prior, size=size / size.sum())


# -----------------------------------------------------------------------------
# How an adversary reads a release: by its likelihood, or by a working model where it has none.


#: Names of all readings: of one question, so that answers of one can be held against another's.
READINGS = ("likelihood", "as-true", "swap-aware", "working-error")

_MOVED = "realised_rate"  # diagnostic of releases whose records change places
_LEAST = Fraction(1, 10**4)  # variance of a table without an error that anybody saw

Key = tuple[str, str]


@displayed
@dataclass(frozen=True)
class Reading:
    """A release as an adversary takes it.

    Attributes
    ----------
    name : str
        ``likelihood``: as its spec says; ``as-true``: as if nothing had been protected;
        ``swap-aware``: as true, but the target's household is from elsewhere with the public
        probability; ``working-error``: true counts with independent errors of the public variance.
    release : Release
        With a likelihood in closed form for every table.
    moved : float
        Probability that a record of a place is from elsewhere.
    """

    name: str
    release: Release
    moved: float = 0.0


def is_additive(spec: MechanismSpec) -> bool:
    """Return whether every released count is the true one plus what does not depend on records."""
    return all(isinstance(law, (TrueCounts, NoiseSpec)) for law in spec.tables.values())


def readings(release: Release, errors: Mapping[Key, float]) -> list[Reading]:
    """Return every reading of a release by an adversary.

    By the likelihood, where every table has one.  Else, where records changed places, one that
    takes all counts as true and one that knows of the exchange; otherwise one with a working model
    of the error, from the mean squared error of every table that an agency publishes.
    """
    laws = release.spec.tables
    unknown = [key for key, law in laws.items() if not is_readable(law)]
    if not unknown:
        return [Reading("likelihood", release)]
    moved = release.diagnostics.get(_MOVED)
    if moved is not None:
        naive = _with(release, {key: TrueCounts() for key in unknown})
        return [Reading("as-true", naive), Reading("swap-aware", naive, float(moved))]
    working: dict[Key, Likelihood] = {}
    for key in unknown:
        variance = Fraction(float(errors.get(key, 0.0))).limit_denominator(10**6)
        working[key] = NoiseSpec("discrete-gaussian", max(variance, _LEAST))
    return [Reading("working-error", _with(release, working))]


def is_readable(law: Likelihood) -> bool:
    """Return whether a published count has a likelihood given the true one alone."""
    return law.exact or law.probability(0, 0) is not None


def _with(release: Release, laws: Mapping[Key, Likelihood]) -> Release:
    spec = MechanismSpec(
        release.spec.mechanism, release.spec.parameters, {**release.spec.tables, **laws}
    )
    return replace(release, spec=spec)


# -----------------------------------------------------------------------------
# Statements about targets of one place: prior, without, posterior, for every adversary.


CALCULATED, SAMPLED, UNDECIDED, UNSTATED = "calculated", "sampled", "undecided", "unstated"


@dataclass(frozen=True)
class Target:
    """A target: its record and what is asked; the others whose records an insider knows.

    Attributes
    ----------
    row : int
        Row in the population.
    cell : int
        Cell of its record in the schema.
    asked : Asked
        What is asked of it.
    others : ndarray of int64
        Cells of the known records of others; empty for an adversary who knows none.
    all_others : bool
        Whether these are all the others.
    """

    row: int
    cell: int
    asked: Asked
    others: IntArray
    all_others: bool


@dataclass(frozen=True)
class Place:
    """A place as one adversary reads it in one release.

    Attributes
    ----------
    release : Reading
        The release.
    level, code : str
        The place, one of the finest of the release.
    prior : RecordPrior
        Of its records.
    additive : bool
        Whether the release without a record is the release less the record.
    counterfactual : callable
        Returns the reading of a release of the data without the record of a row.
    seed : tuple of int
        Of the chains.
    """

    release: Reading
    level: str
    code: str
    prior: RecordPrior
    additive: bool
    counterfactual: Callable[[int], Reading]
    seed: tuple[int, ...]


@dataclass(frozen=True)
class Told:
    """What an adversary believes of a target, three times, and how it was found."""

    row: int
    prior: Belief
    without: Belief
    posterior: Belief
    engine: str
    status: str


def prior_of_rest(prior: RecordPrior, target: Target) -> RecordPrior:
    """Return the prior of the records that are not known, the target's among them."""
    if not target.others.size and not target.all_others:
        return prior
    known = np.bincount(target.others, minlength=prior.schema.size)
    return prior_knowing(prior, known.astype(float), 1 if target.all_others else None)


def tell(place: Place, targets: Iterable[Target]) -> Iterator[Told]:
    """Yield what is believed of each target, in order; laws that they share are found once."""
    of = Laws(place)
    for target in targets:
        try:
            yield of.told(target)
        except DataError:  # the release, as it is read, cannot be of such records
            start = before(prior_of_rest(place.prior, target), target.asked)
            yield Told(target.row, start, start, start, "none", UNSTATED)


class Laws:
    """Laws of a place, each found once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._system = self._read(place.release.release)
        self._at = int(np.searchsorted(self._system.places, place.code))
        # Whoever knows all others of a place of one person knows no record, and still its size.
        self._whole: dict[tuple[bytes, bool], tuple[MicrodataSystem, RecordLaw]] = {}
        self._less: dict[tuple[bytes, int], RecordLaw] = {}

    def _read(self, release: Release) -> MicrodataSystem:
        place = self._place
        return system_of(release, level=place.level, place=place.code, prior=place.prior)

    def told(self, target: Target) -> Told:
        """Return what is believed of a target."""
        prior = prior_of_rest(self._place.prior, target)
        start = before(prior, target.asked)
        system, law = self._law(target, prior)
        if not law.decided:
            nothing = Belief.exact(np.zeros(target.asked.values))
            return Told(target.row, start, nothing, nothing, law.engine, UNDECIDED)
        shares = target.asked.shares(system.classes, prior.shares_of_cells)
        found = after(law, self._at, shares)
        alone = start
        status = CALCULATED if law.draws is None else SAMPLED
        if not target.all_others and prior.concentration is not None:
            other, alone = self._without(target, prior, system, law, shares)
            if other.draws is not None:
                status = SAMPLED
            if not other.decided:
                status = UNDECIDED
        if np.isnan(found.probability).any():  # the tables, as they are read, have nobody like it
            found, alone, status = start, start, UNSTATED
        if self._place.release.moved:
            found, alone = (
                _mixed(self._place.release.moved, start, belief) for belief in (found, alone)
            )
        return Told(target.row, start, alone, found, law.engine, status)

    def _law(self, target: Target, prior: RecordPrior) -> tuple[MicrodataSystem, RecordLaw]:
        key = target.others.tobytes(), target.all_others
        if key not in self._whole:
            system = replace(self._system, prior=prior)
            if target.others.size:
                system = system.less(self._at, self._classes(system, target.others))
            self._whole[key] = system, self._found(system, 0)
        return self._whole[key]

    def _without(
        self,
        target: Target,
        prior: RecordPrior,
        system: MicrodataSystem,
        law: RecordLaw,
        shares: FloatArray,
    ) -> tuple[RecordLaw, Belief]:
        record = int(system.classes.of_cells(np.array([target.cell]))[0])
        if self._place.additive:
            found = without_by_weights(law, self._at, shares, prior, target.asked, record)
            if found is not None:
                return law, found
        key = (target.others.tobytes(), record if self._place.additive else ~target.row)
        if key not in self._less:
            self._less[key] = self._found(self._counterfactual(target, system, record), 1)
        other = self._less[key]
        return other, without(other, self._at, shares, prior, target.asked)

    def _counterfactual(
        self, target: Target, system: MicrodataSystem, record: int
    ) -> MicrodataSystem:
        """Return the system of the release without the record of a target."""
        prior = prior_of_others(system.prior)
        if self._place.additive:
            one = np.zeros(system.classes.size, np.int64)
            one[record] = 1
            return replace(system, prior=prior).less(self._at, one)
        other = self._read(self._place.counterfactual(target.row).release)
        other = replace(other, prior=prior)
        if target.others.size:
            other = other.less(self._at, self._classes(other, target.others))
        return other

    def _classes(self, system: MicrodataSystem, cells: IntArray) -> IntArray:
        of = system.classes.of_cells(cells)
        found: IntArray = np.bincount(of, minlength=system.classes.size).astype(np.int64)
        return found

    def _found(self, system: MicrodataSystem, kind: int) -> RecordLaw:
        seed = np.random.SeedSequence([*self._place.seed, kind, len(self._whole), len(self._less)])
        return record_law(system, rng=np.random.default_rng(seed))


def _mixed(moved: float, elsewhere: Belief, here: Belief) -> Belief:
    """Return the belief of who knows that the record may be from elsewhere."""
    return Belief(
        moved * elsewhere.probability + (1.0 - moved) * here.probability,
        (1.0 - moved) * here.error,
    )


def known_others(
    adversary: Adversary, cells: Mapping[int, int], rows: IntArray, rng: np.random.Generator
) -> dict[int, tuple[IntArray, bool]]:
    """Return for each target row the cells of the others that the adversary knows."""
    everybody = np.array(sorted(cells), np.int64)
    number = int(np.floor(adversary.neighbours * everybody.size))
    chosen = everybody if adversary.neighbours == 1.0 else rng.permutation(everybody)[:number]
    found = {}
    for row in rows.tolist():
        others = np.sort(np.array([cells[r] for r in chosen.tolist() if r != row], np.int64))
        found[row] = others, adversary.neighbours == 1.0
    return found


# -----------------------------------------------------------------------------
# What is known of all places while one of them is looked at: for populations too large to hold.


_FIT_PLACES = 2000
#: Streams of random numbers, apart from each other.
MECHANISM, CHAINS, INSIDERS, _TARGETS, _FIT = range(5)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The population that a part is a part of.

    Attributes
    ----------
    code : str
        The part.
    first_row, first_place : int
        Records and places of all parts before it.
    composition : ndarray of int64
        Records of all parts in each cell of the schema.
    largest : int
        Records of the largest place of all.
    concentration : float
        How alike people of one place are.
    """

    code: str
    first_row: int
    first_place: int
    composition: IntArray
    largest: int
    concentration: float


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


def fitted(counts: IntArray) -> float:
    """Return how alike people of one place are, from counts (places, values)."""
    return fit_concentration(counts, counts.sum(axis=0) / counts.sum())
