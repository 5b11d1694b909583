"""Statements about persons, from releases of them and of their households."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference import MemberQuestion, RecordPrior, microdata_posterior
from bayesrisk.inference.microdata.posterior import absent_member_posterior
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import Adversary
from bayesrisk.risk.audit.place_beliefs import CALCULATED
from bayesrisk.risk.audit.population import AuditQuestion
from bayesrisk.risk.statements.statements import Statements
from bayesrisk.tables import HouseholdLink, Records, Workload
from bayesrisk.tables.microdata import without_member


def statements_about_members(
    mechanism: Mechanism,
    records: Records,
    link: HouseholdLink,
    question: AuditQuestion,
    *,
    workload: Workload,
    prior: RecordPrior,
    rng: int,
) -> Statements:
    """Return beliefs about every person before a release, without the person, and after.

    ``without`` is the belief after a release, from the same random numbers, of the data without the
    person. The household then lacks this member; it is gone if the person lived alone.

    There is a row for each adversary, each kind of person in each kind of household of a place, and
    each value. Laws are exact; a place that is too large for this is refused.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the release; every table needs a closed-form likelihood.
    records : Records
        Linked records (:func:`~bayesrisk.tables.link_households`); their places are taken as a
        public list.
    link : HouseholdLink
        Link of persons to households, from which the records are made.
    question : AuditQuestion
        The statements and the adversaries' knowledge of persons. Its workload is one of persons;
        its adversaries know attributes of the target alone.
    workload : Workload
        Tables of linked records that are published (:meth:`HouseholdLink.workload`).
    prior : RecordPrior
        Prior on each place's households, with known shares and a law of their number.
    rng : int
        Seed of the release.

    Examples
    --------
    A town of one block and one household of two women, whose numbers are published:

    >>> from bayesrisk.mechanisms import Identity
    >>> from bayesrisk.tables import Attribute, Geography, Schema
    >>> town = Geography("town", ("block",), (1,))
    >>> persons = Schema("persons", (Attribute("sex", 2),), town)
    >>> homes = Schema("homes", (Attribute("size", 2, 1),), town)
    >>> link = HouseholdLink.enumerate(
    ...     persons, homes, most=2, derived={"size": lambda members: members.sum(axis=1)})
    >>> frame = pd.DataFrame({"block": ["1"], "members": [2]})
    >>> home = Records.from_frame(frame, schema=link.schema)
    >>> work = Workload.of(persons, ["sex"])
    >>> question = AuditQuestion(work, ("sex",), (Adversary("outsider"),))
    >>> prior = RecordPrior(link.schema, link.shares([0.5, 0.5], [0.5, 0.5]), None, np.ones(4) / 4)
    >>> statements = statements_about_members(
    ...     Identity(), home, link, question, workload=link.convert(work), prior=prior, rng=1)
    >>> statements.frame[["prior", "posterior"]].round(9).to_numpy().tolist()
    [[0.5, 1.0], [0.5, 0.0]]
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentTypeError("mechanism", "must be a Mechanism", got=mechanism)
    check.instance(records, Records, "records")
    check.instance(link, HouseholdLink, "link")
    check.instance(question, AuditQuestion, "question")
    level = check.instance(workload, Workload, "workload").levels[-1]
    seed = check.integer(rng, "rng", lower=0)
    if question.workload.schema != link.persons or any(a.neighbours for a in question.adversaries):
        raise ArgumentError("question must be about persons of the link, and targets known alone")
    if level != link.schema.geography.finest:
        raise ArgumentError("workload", "must have tables of the finest level", got=level)
    listed: dict[str, Any] = {
        "workload": workload,
        "rng": seed,
        "places": np.unique(records.geoids),
    }
    release = mechanism.release(records, **listed)
    homes = pd.DataFrame({"place": records.geoids, "cell": records.cells()})
    rows = []
    key: Any
    for key, group in homes.groupby(["place", "cell"], sort=True):
        place, cell = str(key[0]), int(key[1])
        members = link.members[cell % len(link.members)]
        setting: dict[str, Any] = {"level": level, "place": place, "prior": prior}
        for person in np.flatnonzero(members).tolist():
            reduced = without_member(records, int(group.index[0]), person, link=link)
            reduced_release: Release = mechanism.release(reduced, **listed)
            for adversary in question.adversaries:
                questions = list(_questions(link, question, adversary, person))
                answers = microdata_posterior(release, questions, engine="exact", **setting).answers
                columns = {
                    "adversary": adversary.name,
                    "target": f"{link.person_labels[person]}, household {cell} of {place}",
                    "people": len(group) * int(members[person]),
                    "place": place,
                    "statement": question.values,
                    "correct": np.arange(len(questions)) == question.value_of_cell[person],
                    "without": absent_member_posterior(reduced_release, questions, **setting),
                }
                rows.append(answers[["prior", "posterior"]].assign(**columns))
    frame = pd.concat(rows, ignore_index=True)
    name = release.spec.mechanism
    return Statements(frame.assign(attack="posterior", protection=name, status=CALCULATED))


def _questions(
    link: HouseholdLink, question: AuditQuestion, adversary: Adversary, person: int
) -> Iterator[MemberQuestion]:
    """Yield, for each statement, the question about a person of a given kind."""
    codes = link.persons.codes(np.arange(link.persons.size))
    among = {name: [int(codes[name][person])] for name in adversary.known}
    for value in range(len(question.values)):
        like = int((question.value_of_cell == value).argmax())
        stated = {name: [int(codes[name][like])] for name in question.stated}
        yield MemberQuestion(stated, among, link=link)
