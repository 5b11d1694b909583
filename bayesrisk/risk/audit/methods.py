"""Ways to conclude from a release: the law of the records, and attacks that take tables as true."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bayesrisk._types import IntArray
from bayesrisk.inference import RecordPrior
from bayesrisk.release import Release
from bayesrisk.risk.audit.as_true import AsTrue, Claimed, Majority, Reconstructed, tables_of
from bayesrisk.risk.audit.belief import Belief, before
from bayesrisk.risk.audit.place import UNSTATED, Place, Target, Told, prior_of_rest, tell
from bayesrisk.risk.audit.readings import Reading, readings
from bayesrisk.tables import PublishedTables

POSTERIOR = "posterior"
#: How an adversary concludes: by the law of the records, or by attacks that take tables as true.
METHODS = (POSTERIOR, "reconstruction", "majority", "claims")
PROVED, BELIEVED = "proved", "believed"
_NOBODY: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Way:
    """A way to conclude from a release.

    Attributes
    ----------
    reading : Reading
        The release, and how results call the way.
    counterfactual : callable
        Returns the reading of the release without the record of a row.
    tell : callable
        Yields what is believed of targets of a place: :func:`tell` or :func:`tell_by`.
    number : int
        Of the reading, which random numbers depend on.
    """

    reading: Reading
    counterfactual: Callable[[int], Reading]
    tell: Callable[[Place, Iterable[Target]], Iterator[Told]]
    number: int


def ways(
    methods: Iterable[str],
    release: Release,
    less: Callable[[int], Release],
    errors: Mapping[tuple[str, str], float],
) -> Iterator[Way]:
    """Yield every way of some methods: the posterior has one for each reading of the release.

    Parameters
    ----------
    methods : iterable of str
        Some of ``METHODS``.
    release : Release
        What was published.
    less : callable
        Returns the release of the data without the record of a row.
    errors : mapping of (level, table) to float
        Mean squared error of every table (:func:`readings`).
    """

    def read_again(number: int, row: int) -> Reading:
        return readings(less(row), errors)[number]

    def as_true(method: str, row: int) -> Reading:
        return Reading(method, less(row))

    for method in methods:
        if method == POSTERIOR:
            for number, reading in enumerate(readings(release, errors)):
                yield Way(reading, functools.partial(read_again, number), tell, number)
        else:
            again = functools.partial(as_true, method)
            yield Way(Reading(method, release), again, functools.partial(tell_by, method), 0)


def tell_by(method: str, place: Place, targets: Iterable[Target]) -> Iterator[Told]:
    """Yield what an attack says of each target, in order; what they share is found once.

    Parameters
    ----------
    method : {"reconstruction", "majority", "claims"}
        The attack.
    place : Place
        The place and the release, however its counts came about: they are taken as true.
    targets : iterable of Target
        Who is asked about.  Known records of others are taken off the tables first, but by the
        majority, which is what a stranger sees.

    Yields
    ------
    Told
        ``proved`` where published counts are true ones and nothing else fits; ``unstated`` where
        the attack says nothing after the release, so that the prior stands; else ``believed``.
    """
    attacks = _Attacks(method, place)
    for target in targets:
        yield attacks.told(target)


class _Attacks:
    """The attacks of one method on a place, each made once."""

    def __init__(self, method: str, place: Place) -> None:
        self._method, self._place = method, place
        self._made: dict[tuple[int | None, bytes], AsTrue] = {}
        release = place.release.release
        self._true = all(
            release.spec.likelihood(place.level, name).exact
            for name in release.tables.workload.at(place.level)
        )

    def told(self, target: Target) -> Told:
        """Return what is said of a target."""
        place = self._place
        prior = prior_of_rest(place.prior, target)
        others = _NOBODY if self._method == "majority" else target.others
        start = before(prior, target.asked)
        attack = self._attack(None, others)
        after = _said(attack, target, prior)
        if place.additive:
            other = self._attack(None, np.append(others, target.cell))
        else:
            other = self._attack(target.row, others)
        alone = _said(other, target, prior)
        status = UNSTATED if after is None else BELIEVED
        certain = after is not None and after.probability.max() == 1.0
        sure = certain if self._method == "claims" else attack.proof
        if after is not None and self._true and attack.proof and sure:
            status = PROVED
        return Told(target.row, start, alone or start, after or start, attack.engine, status)

    def _attack(self, without: int | None, off: IntArray) -> AsTrue:
        """Return the attack on the release, or on one without a row, less known records."""
        off = np.sort(off)
        key = without, off.tobytes()
        if key not in self._made:
            read = self._place.release if without is None else self._place.counterfactual(without)
            self._made[key] = self._make(read.release, off)
        return self._made[key]

    def _make(self, release: Release, off: IntArray) -> AsTrue:
        place = self._place
        if self._method == "majority":
            return Majority(_around(release, place.code, off), place.prior)
        tables = tables_of(release.tables, place.level, place.code, off)
        return Reconstructed(tables) if self._method == "reconstruction" else Claimed(tables)


def _said(attack: AsTrue, target: Target, prior: RecordPrior) -> Belief | None:
    parts = attack.parts(target.asked, prior)
    return None if parts is None else Belief.exact(parts)


def _around(release: Release, code: str, off: IntArray) -> Iterator[PublishedTables]:
    """Yield the tables of a place, and of those around it, the nearest first."""
    workload = release.tables.workload
    geography = workload.schema.geography
    for level in reversed(workload.levels):
        around = str(geography.ancestors(np.array([code]), level)[0])
        yield tables_of(release.tables, level, around, off)
