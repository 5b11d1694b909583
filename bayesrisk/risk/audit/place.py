"""Statements about targets of one place: prior, without, posterior, for every adversary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.law import RecordLaw, record_law
from bayesrisk.inference.microdata.system import MicrodataSystem, system_of
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import Adversary, prior_knowing, prior_of_others
from bayesrisk.risk.audit.belief import (
    Asked,
    Belief,
    after,
    before,
    without,
    without_by_weights,
)
from bayesrisk.risk.audit.readings import Reading

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
    """Return for each target row the cells of the others that the adversary knows.

    Parameters
    ----------
    adversary : Adversary
        Who asks.
    cells : mapping of int to int
        Cell of every row of the place.
    rows : ndarray of int64
        Targets.
    rng : Generator
        Chooses whom an insider knows: the same people for every target but the target itself.
    """
    everybody = np.array(sorted(cells), np.int64)
    number = int(np.floor(adversary.neighbours * everybody.size))
    chosen = everybody if adversary.neighbours == 1.0 else rng.permutation(everybody)[:number]
    found = {}
    for row in rows.tolist():
        others = np.sort(np.array([cells[r] for r in chosen.tolist() if r != row], np.int64))
        found[row] = others, adversary.neighbours == 1.0
    return found
