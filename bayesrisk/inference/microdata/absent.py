r"""Belief about a person whom a release counts nowhere, and whose household it counts without them.

The household of such a person has a law of its own: where the person is of kind c, the rest r of
the household is seen in place of r + e_c.  With independent households of shares theta, n of them
with probability P(n), and every person of a group G equally probably the target,

.. math:: P(r, c \mid R) \propto \theta_{r + e_c} (r_c + 1) \sum_x n P(n) P_{n-1}(x)
    L(R \mid A (x + e_r)), \qquad c \in G.

Of somebody who lived alone nothing is left: r is a household of nobody, which no table counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata.contraction import TooManyStatesError
from bayesrisk.inference.microdata.exact import weigh
from bayesrisk.inference.microdata.knowledge import Knowledge, KnownGroup
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.inference.microdata.questions import MemberQuestion
from bayesrisk.inference.microdata.system import MicrodataSystem, presolve, system_of
from bayesrisk.release import Release
from bayesrisk.tables import HouseholdLink, Table, Workload
from bayesrisk.tables.linked import MEMBERS

_MAX_PAIRS = 10**8


def absent_member_posterior(
    release: Release,
    questions: Sequence[MemberQuestion],
    *,
    level: str,
    place: str,
    prior: RecordPrior,
) -> FloatArray:
    """Return the posterior of questions about a person whom a release is without.

    It is what an adversary believes of a person of the place who was left out of all tables before
    they were made: of persons as well as of the household, which is counted without this member,
    and not at all where they lived alone.

    Parameters
    ----------
    release : Release
        Tables of linked records.
    questions : sequence of MemberQuestion
        Shares (``among``) about the target, all of one link.
    level, place : str
        The finest place in which the target lives.
    prior : RecordPrior
        Prior of the households of the place, target's household included: with known shares and a
        law of their number.

    Returns
    -------
    ndarray of float64
        One probability for each question.  The law is exact; a place too large for that is refused.

    Examples
    --------
    Of two persons one is left out, and the tables say that a woman is left:

    >>> from bayesrisk import MechanismSpec, PublishedTables, Schema
    >>> from bayesrisk.release import TrueCounts
    >>> from bayesrisk.tables import Attribute, Geography
    >>> town = Geography("town", ("block",), (1,))
    >>> persons = Schema("persons", (Attribute("sex", 2),), town)
    >>> homes = Schema("homes", (Attribute("size", 2, 1),), town)
    >>> link = HouseholdLink.enumerate(
    ...     persons, homes, most=2, derived={"size": lambda members: members.sum(axis=1)})
    >>> tables = PublishedTables(link.convert(Workload.of(persons, ["sex"])), {"block": ["1"]},
    ...                          {("block", "sex"): np.array([[0, 1]])})
    >>> release = Release(MechanismSpec("true", others=TrueCounts()), tables)
    >>> prior = RecordPrior(link.schema, link.shares([0.5, 0.5], [0, 1]), None, np.eye(2)[1])
    >>> asked = MemberQuestion({"sex": [1]}, among={}, link=link)
    >>> absent_member_posterior(release, [asked], level="block", place="1", prior=prior).tolist()
    [0.5]
    """
    asked = check.instances(questions, MemberQuestion, "questions")
    check.instance(release, Release, "release")
    if check.instance(prior, RecordPrior, "prior").size is None or prior.concentration is not None:
        raise ArgumentError("prior must have known shares and a law of the number of households")
    if not asked or any(q.among is None or q.link is not asked[0].link for q in asked):
        raise ArgumentError("questions must be of one link, each with what is known of the target")
    link = asked[0].link
    asked[0].tables(release.tables.workload.schema)
    rest = _rest_masses(link, prior)
    # A household of nobody is one more composition, which no table counts.
    members = np.vstack([link.members, np.zeros_like(link.members[:1])])
    derived = {name: np.append(codes, codes[0]) for name, codes in link.derived.items()}
    wider = replace(link, members=members, derived=derived)
    tables = release.tables
    seen = replace(
        release, tables=replace(tables, workload=_without_nobody(wider, tables.workload))
    )
    # Of n households the target's is one: a place with more is the more probably the target's.
    size = prior.size * np.arange(prior.size.size)
    shape = (-1, len(link.members))
    shares = np.pad(prior.shares_of_cells.reshape(shape), ((0, 0), (0, 1))).ravel()
    others = replace(prior, schema=wider.schema, shares=shares, size=size / size.sum())
    system = system_of(seen, level=level, place=place, prior=others)
    if len(system.places) > 1:
        raise ArgumentError(f"place must be one of the finest level, got {place!r}")
    of_cell = system.classes.of_cells(np.arange(wider.schema.size, dtype=np.int64))
    laws: dict[bytes, FloatArray] = {}
    found = []
    for question in asked:
        kinds, group = question.kinds()
        if group.tobytes() not in laws:
            mass = np.bincount(of_cell, rest @ group, minlength=system.classes.size)
            laws[group.tobytes()] = _law_of_rest(system, mass) / np.where(mass > 0.0, mass, 1.0)
        part = np.bincount(of_cell, rest @ kinds, minlength=system.classes.size)
        found.append(float(laws[group.tobytes()] @ part))
    return np.array(found)


def _rest_masses(link: HouseholdLink, prior: RecordPrior) -> FloatArray:
    """Return theta_{r + e_c} (r_c + 1) for every kind of rest, nobody last, and of person."""
    shares = prior.shares_of_cells.reshape(-1, len(link.members))
    rests = np.vstack([link.members, np.zeros_like(link.members[:1])])
    code = {row.tobytes(): at for at, row in enumerate(link.members)}
    found = np.zeros((len(shares), len(rests), link.persons.size))
    there = shares.any(axis=0)
    for kind in range(link.persons.size):
        left = link.members[there & (link.members[:, kind] > 0)]
        left = left - (np.arange(link.persons.size) == kind)
        if any(row.any() and row.tobytes() not in code for row in left):
            raise ArgumentError(
                "link must have what is left of every household that loses a person; one that "
                "there cannot be has a share of 0 in the prior"
            )
        whole = rests + (np.arange(link.persons.size) == kind)
        at = np.array([code.get(row.tobytes(), -1) for row in whole])
        inside = at >= 0
        inside[:-1] &= link.members.any(axis=1)  # a vacant unit is no rest
        found[:, inside, kind] = shares[:, at[inside]] * whole[inside, kind]
    return found.reshape(-1, link.persons.size)


def _without_nobody(wider: HouseholdLink, workload: Workload) -> Workload:
    """Return the tables of linked records over one composition more, which counts nowhere."""
    tables = {}
    for key, table in workload.tables.items():
        of_members = table.factors.get(MEMBERS)
        if of_members is None:
            of_members = np.ones((len(table.cells), len(wider.members) - 1), np.int64)
        factors = {**table.factors, MEMBERS: np.pad(of_members, ((0, 0), (0, 1)))}
        tables[key] = Table(table.name, table.cells, factors)
    return Workload(wider.schema, tables)


def _law_of_rest(system: MicrodataSystem, mass: FloatArray) -> FloatArray:
    """Return the posterior of the class of the rest of the household, with prior masses."""
    nobody = sp.csr_array(system.known.settled.shape, dtype=np.int64)
    classes: IntArray = np.flatnonzero(mass > 0.0)
    if not classes.size:
        raise ArgumentError("questions must be about a target who is possible under the prior")
    own = KnownGroup(0, classes, mass[classes], 1, "the rest of the target's household")
    with_rest = replace(system, known=Knowledge(nobody, nobody, (own,)))
    nothing = sp.csr_array((0, with_rest.size), dtype=np.int64)
    small, _ = presolve(with_rest, nothing)
    try:
        law = weigh(small, _MAX_PAIRS)
    except TooManyStatesError:
        raise ArgumentError(
            f"place must be smaller for an exact law: more than {_MAX_PAIRS} pairs of sums"
        ) from None
    mean = np.array([np.arange(p.size) @ p for p in law.laws])
    unknowns = np.arange(with_rest.cells, with_rest.size)
    group = small.group[unknowns]
    found = np.zeros(mass.size)
    found[classes] = np.where(group >= 0, small.weight[unknowns] * np.append(mean, 0.0)[group], 0.0)
    return found
