"""Beliefs about targets of one place: prior, without the own record, and posterior."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import DataError
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.chains import TooLateError
from bayesrisk.inference.microdata.fixed import mean_ends
from bayesrisk.inference.microdata.posterior import ChainNeededError, RecordLaw, record_law
from bayesrisk.inference.microdata.system import MicrodataSystem, make_system
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import (
    Adversary,
    Removals,
    TargetBelief,
    TargetQuestion,
    belief_without_record,
    posterior_belief,
    prior_belief,
    prior_knowing,
    prior_of_others,
    reweighted_belief,
)
from bayesrisk.risk.audit.reading import Reading

CALCULATED, SAMPLED, UNDECIDED, UNSTATED = "calculated", "sampled", "undecided", "unstated"


@dataclass(frozen=True)
class AuditTarget:
    """A target: its record, the question about it, and the known records of others."""

    row: int  # Row in the population of a record like it, which counterfactuals leave out
    cell: int  # Cell of its record in the schema
    question: TargetQuestion
    known_cells: IntArray  # Cells of the records of others that are known; empty if none are
    all_others: bool  # Whether these are all the others


@dataclass(frozen=True)
class _Rest:
    """The law of a place's unknown records, with its priors and system."""

    prior: RecordPrior
    other_prior: RecordPrior  # of these records without the target's
    system: MicrodataSystem
    law: RecordLaw

    @functools.cached_property
    def removals(self) -> Removals | None:
        """Draws of the law less one record each."""
        return Removals.make(self.system, self.law)


# By what is known, laws of the rest, and of the others by a record or a row
SharedLaws = tuple[dict[tuple[bytes, bool], _Rest], dict[tuple[bytes, int], RecordLaw]]


class PilotTimeError(Exception):
    """The time of pilots was over before one had ended."""


@dataclass(eq=False)
class DrawnLaws:
    """Laws drawn by chains during a pilot, with their seconds, for reuse."""

    laws: dict[tuple[Any, ...], tuple[RecordLaw, float]] = field(default_factory=dict)
    # While a pilot runs: laws are added and none is taken away, until this moment of the clock
    pilot_end: float | None = None
    #: Whether no law is drawn, and a ChainNeededError is raised where one would be.
    exact_only: bool = False
    #: Seconds of laws that the end of a pilot cut, which take longer.
    least: dict[tuple[Any, ...], float] = field(default_factory=dict)

    def take(self, key: tuple[Any, ...]) -> RecordLaw | None:
        """Return a drawn law, or None if there is none."""
        if self.pilot_end is not None and time.monotonic() > self.pilot_end:
            raise PilotTimeError
        entry = self.laws.pop(key, None) if self.pilot_end is None else self.laws.get(key)
        return None if entry is None else entry[0]


@dataclass(frozen=True)
class PlaceReading:
    """A place in one reading of a release by an adversary."""

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
    law_store: DrawnLaws = field(default_factory=DrawnLaws)


@dataclass(frozen=True)
class TargetBeliefs:
    """An adversary's three beliefs about a target, and how they were found."""

    row: int
    prior: TargetBelief
    without: TargetBelief
    posterior: TargetBelief
    engine: str
    status: str


def prior_of_rest(prior: RecordPrior, target: AuditTarget) -> RecordPrior:
    """Return the prior of the unknown records, the target's included."""
    if not target.known_cells.size and not target.all_others:
        return prior
    known_counts = np.bincount(target.known_cells, minlength=prior.schema.size)
    return prior_knowing(prior, known_counts.astype(float), 1 if target.all_others else None)


def infer(place: PlaceReading, targets: Iterable[AuditTarget]) -> Iterator[TargetBeliefs]:
    """Yield the beliefs about each target, in order; shared laws are computed once."""
    targets = list(targets)
    laws = PlaceLaws(place, targets)
    for target in targets:
        try:
            yield laws.beliefs(target)
        except DataError:  # the release, as it is read, cannot be of such records
            start = prior_belief(prior_of_rest(place.prior, target), target.question)
            yield TargetBeliefs(target.row, start, start, start, "none", UNSTATED)


class PlaceLaws:
    """Laws of a place's records, each computed once for all targets that share it."""

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
        without, elsewhere, other = start, start, None
        if rest.law.decided and not target.all_others and rest.prior.concentration is not None:
            other, without = self._without(target, rest, shares)
        if rest.law.decided and (other is None or other.decided):
            posterior = posterior_belief(rest.law, self._position, shares)
            if self._place.release.moved and not target.all_others:
                elsewhere = belief_without_record(
                    rest.law, self._position, shares, rest.prior, question
                )
            exact = all(law is None or law.draws is None for law in (rest.law, other))
        else:  # no number of unfinished chains is a belief: what counts alone say may be one
            without, posterior, elsewhere = self._by_counts(target, rest, shares, start)
            if posterior.error.any():
                nothing = TargetBelief.exact(np.zeros(question.values))
                engine = rest.law.engine
                return TargetBeliefs(target.row, start, nothing, nothing, engine, UNDECIDED)
            exact = not (without.error.any() or elsewhere.error.any())
        status = CALCULATED if exact else SAMPLED
        if np.isnan(posterior.probability).any():  # the tables have no record of its kind
            posterior, without, status = start, start, UNSTATED
        if (moved := self._place.release.moved) and status != UNSTATED:
            # Who is counted elsewhere is one more of those who live here, (A theta + x) / (A + n);
            # whoever knows all the others has nothing to learn from the tables about that one.
            posterior = TargetBelief(
                moved * elsewhere.probability + (1.0 - moved) * posterior.probability,
                moved * elsewhere.error + (1.0 - moved) * posterior.error,  # of the same draws
            )
        return TargetBeliefs(target.row, start, without, posterior, rest.law.engine, status)

    def _by_counts(
        self, target: AuditTarget, rest: _Rest, shares: FloatArray, start: TargetBelief
    ) -> tuple[TargetBelief, TargetBelief, TargetBelief]:
        """Return beliefs without the record, after, and for one more, from bounds on counts."""
        least, most = mean_ends(rest.system, self._position, shares)
        posterior = TargetBelief.middle_of_ends(least, most)
        if posterior.error.any() or target.all_others or rest.prior.concentration is None:
            return start, posterior, start
        base = rest.prior.concentration * target.question.sums(rest.prior.shares_of_cells)
        elsewhere = TargetBelief.middle_of_ends(base + least, base + most)
        record = self._unknown(target) % rest.system.classes.size
        system = self._counterfactual(target, rest, record)
        least, most = mean_ends(system, self._position, shares)
        return TargetBelief.middle_of_ends(base + least, base + most), posterior, elsewhere

    def _rest(self, target: AuditTarget) -> _Rest:
        """Return the law of the unknown records, the target's included."""
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
            law = self._solve(system, target, removed)
            self._laws[key] = _Rest(prior, other_prior, system, law)
        return self._laws[key]

    def _unknown(self, target: AuditTarget) -> int:
        """Return the position of the unknown that counts the target's record."""
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
            arguments = law, self._position, shares, prior, question, record
            belief = reweighted_belief(*arguments, rest.removals)
            if belief is not None:
                return law, belief
        key = (target.known_cells.tobytes(), record if self._place.additive else ~target.row)
        if key not in self._laws_without:
            system = self._counterfactual(target, rest, record)
            self._laws_without[key] = self._solve(system, target, without=key[1])
        other = self._laws_without[key]
        return other, belief_without_record(other, self._position, shares, prior, question)

    def _counterfactual(self, target: AuditTarget, rest: _Rest, record: int) -> MicrodataSystem:
        """Return the system of a release without the target's record."""
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
        self,
        system: MicrodataSystem,
        target: AuditTarget,
        removed: Sequence[int] = (),
        without: int | None = None,
    ) -> RecordLaw:
        """Return the law of a system, cached separately for releases ``without`` a record."""
        numbers = len(self._laws), len(self._laws_without)
        seed = [*self._place.seed, int(without is not None), *numbers]
        n_known, too_large, law_store = (
            target.known_cells.size,
            self._place.too_large,
            self._place.law_store,
        )
        key = (self._place.code, without, *_known_key(target), *seed)
        if (law := law_store.take(key)) is None:
            begin, rng = time.process_time(), np.random.default_rng(np.random.SeedSequence(seed))
            limits: dict[str, Any] = {"max_pairs": 0} if n_known in too_large else {}
            if (end := law_store.pilot_end) is not None and end < math.inf:
                limits["deadline"] = Deadline(end - time.monotonic())
            source = None if law_store.exact_only else rng
            try:
                law = record_law(system, removed=removed, rng=source, **limits)
            except ChainNeededError:
                too_large.add(n_known)
                raise
            except TooLateError:
                law_store.least[key] = time.process_time() - begin
                raise PilotTimeError from None
            if law_store.pilot_end is not None and law.engine != "exact":
                law_store.laws[key] = law, time.process_time() - begin
        if law.engine != "exact":
            too_large.add(n_known)
        return law


def _known_key(target: AuditTarget) -> tuple[bytes, bool]:
    """Return the cache key of the law of unknown records."""
    # Whoever knows all others of a place of one person knows no record, and still its size.
    return target.known_cells.tobytes(), target.all_others


def known_others(
    adversary: Adversary, cells: Mapping[int, int], rows: IntArray, rng: np.random.Generator
) -> dict[int, tuple[IntArray, bool]]:
    """Return, for each target row, the other records that the adversary knows (cells; all or not).

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
