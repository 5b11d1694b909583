"""What releases of persons and of their households give away about each person, by own record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import (
    MemberQuestion,
    RecordPrior,
    absent_member_posterior,
    microdata_posterior,
)
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import CALCULATED
from bayesrisk.risk.statements.statements import Statements
from bayesrisk.tables import HouseholdLink, Microdata, Records, Workload
from bayesrisk.tables.microdata import as_microdata


@dataclass(frozen=True, eq=False)
class MemberInquiry:
    """What an adversary knows of a person of a place, and what it asks.

    Attributes
    ----------
    link : HouseholdLink
        The households that persons live in.
    stated : tuple of str
        Attributes of persons that a statement gives.
    known : tuple of str
        Attributes of persons that are known of the target, besides its place.
    """

    link: HouseholdLink
    stated: tuple[str, ...]
    known: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        schema = check.instance(self.link, HouseholdLink, "link").persons
        for name in ("stated", "known"):
            names = check.texts(getattr(self, name), name)
            for attribute in names:
                schema.attribute(attribute)
            object.__setattr__(self, name, names)
        if not self.stated or set(self.stated) & set(self.known):
            raise ArgumentError("stated must be at least one attribute, and none that is known")

    def questions(self, person: int) -> list[MemberQuestion]:
        """Return a question for each value of what is stated, about a person of a kind."""
        schema = self.link.persons
        codes = {name: int(v) for name, v in schema.codes(np.int64(person)).items()}
        among = {name: [codes[name]] for name in self.known}
        found = []
        for values in product(*(self._codes(name) for name in self.stated)):
            where = {n: [v] for n, v in zip(self.stated, values, strict=True)}
            words = [self._word(n, v) for n, v in zip(self.stated, values, strict=True)]
            found.append(MemberQuestion(where, among, name=", ".join(words), link=self.link))
        return found

    def _codes(self, name: str) -> range:
        about = self.link.persons.attribute(name)
        return range(about.first, about.last + 1)

    def _word(self, name: str, code: int) -> str:
        about = self.link.persons.attribute(name)
        return f"{name} {about.labels[code - about.first] if about.labels else code}"


def statements_about_members(
    mechanism: Mechanism,
    population: Microdata | Records,
    inquiry: MemberInquiry,
    *,
    workload: Workload,
    prior: RecordPrior,
    rng: int,
) -> Statements:
    """Return what is believed of every person before a release, without the person, and after it.

    ``without`` is the belief after a release of the data without the person, from the same random
    numbers: persons are one fewer, and the household is one without this member, or none where the
    person lived alone.

    Parameters
    ----------
    mechanism : Mechanism
        Of the release; every table needs a likelihood in closed form.
    population : Microdata or Records
        Linked records (:meth:`HouseholdLink.records`); the places of the records are taken as a
        public list where there is none.
    inquiry : MemberInquiry
        What is known and asked.
    workload : Workload
        Tables of linked records that are published (:meth:`HouseholdLink.workload`).
    prior : RecordPrior
        Of the households of each place, with known shares and a law of their number.
    rng : int
        Seed of the release.

    Returns
    -------
    Statements
        A row for each kind of person in each kind of household of a place, and each value; laws are
        exact, and a place that is too large for that is refused.
    """
    link, seed = inquiry.link, check.integer(rng, "rng", lower=0)
    data = as_microdata(population)
    records = data.for_schema(link.schema)
    listed = data.geoids()
    codes = np.unique(records.geoids) if listed is None else listed
    level = check.instance(workload, Workload, "workload").levels[-1]
    if level != link.schema.geography.finest:
        raise ArgumentError(f"workload must have tables of the finest level, got {level!r}")

    def release_of(given: Records) -> Release:
        return mechanism.release(given, workload=workload, rng=seed, places=codes)  # type: ignore[call-arg]

    release = release_of(records)
    labels = link.person_labels
    homes = pd.DataFrame({"place": records.geoids, "cell": records.cells()})
    rows = []
    for (place, cell), alike in homes.groupby(["place", "cell"], sort=True):
        members = link.members[cell % len(link.members)]
        where = {"level": level, "place": str(place), "prior": prior}
        for person in np.flatnonzero(members).tolist():
            asked = inquiry.questions(person)
            answers = microdata_posterior(release, asked, engine="exact", **where).answers
            others = release_of(link.without_member(records, int(alike.index[0]), person))
            without = absent_member_posterior(others, asked, **where)
            true = [bool(question.kinds()[0][person]) for question in asked]
            rows.append(
                pd.DataFrame(
                    {
                        "target": f"{labels[person]}, household {cell} of {place}",
                        "statement": [str(question) for question in asked],
                        "people": len(alike) * int(members[person]),
                        "prior": answers["prior"],
                        "without": without,
                        "posterior": answers["posterior"],
                        "correct": true,
                        "place": str(place),
                    }
                )
            )
    frame = pd.concat(rows, ignore_index=True)
    about = {"attack": "posterior", "adversary": ", ".join(inquiry.known) or "outsider"}
    return Statements(frame.assign(**about, protection=release.spec.mechanism, status=CALCULATED))
