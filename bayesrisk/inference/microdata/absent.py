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

from bayesrisk._validation import FloatArray
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
    """Return the posterior of shares about a person of a finest place whom a release is without.

    ``questions`` are about the target (``among``), all of one link; ``prior`` is that of the
    households of the place, the target's included.  The law is exact.
    """
    link = questions[0].link
    if prior.size is None or prior.concentration is not None:
        raise ArgumentError("prior must have known shares and a law of the number of households")
    rest = _rest_masses(link, prior)
    # A household of nobody is one more composition, which no table counts.
    members = np.vstack([link.members, np.zeros_like(link.members[:1])])
    derived = {name: np.append(codes, codes[0]) for name, codes in link.derived.items()}
    wider = replace(link, members=members, derived=derived)
    work = _without_nobody(wider, release.tables.workload)
    seen = replace(release, tables=replace(release.tables, workload=work))
    # Of n households the target's is one: a place with more is the more probably the target's.
    size = prior.size * np.arange(prior.size.size)
    shares = prior.shares_of_cells.reshape(-1, len(link.members))
    others = replace(
        prior,
        schema=wider.schema,
        shares=np.pad(shares, ((0, 0), (0, 1))).ravel(),
        size=size / size.sum(),
    )
    system = system_of(seen, level=level, place=place, prior=others)
    of_cell = system.classes.of_cells(np.arange(wider.schema.size, dtype=np.int64))
    laws: dict[bytes, FloatArray] = {}
    found = []
    for question in questions:
        kinds, group = question.kinds()
        part, mass = (np.bincount(of_cell, rest @ k, system.classes.size) for k in (kinds, group))
        if group.tobytes() not in laws:
            laws[group.tobytes()] = _law_of_rest(system, mass.astype(np.float64))
        found.append(laws[group.tobytes()] @ (part / np.where(mass > 0.0, mass, 1.0)))
    return np.array(found)


def _rest_masses(link: HouseholdLink, prior: RecordPrior) -> FloatArray:
    """Return theta_{r + e_c} (r_c + 1) for every kind of rest, nobody last, and of person."""
    shares = prior.shares_of_cells.reshape(-1, len(link.members))
    rests = np.vstack([link.members, np.zeros_like(link.members[:1])])
    code = {row.tobytes(): at for at, row in enumerate(link.members)}
    found = np.zeros((len(shares), len(rests), link.persons.size))
    there = shares.any(axis=0)
    for kind in range(link.persons.size):
        person = np.arange(link.persons.size) == kind
        left = link.members[there & (link.members[:, kind] > 0)] - person
        if any(row.any() and row.tobytes() not in code for row in left):
            raise ArgumentError(
                "link must have what is left of every household that loses a person; one that "
                "there cannot be has a share of 0 in the prior"
            )
        whole = rests + person
        at = np.array([code.get(row.tobytes(), -1) for row in whole])
        inside = at >= 0
        inside[:-1] &= link.members.any(axis=1)  # a vacant unit is no rest
        found[:, inside, kind] = shares[:, at[inside]] * whole[inside, kind]
    return found.reshape(-1, link.persons.size)


def _without_nobody(wider: HouseholdLink, workload: Workload) -> Workload:
    """Return the tables of linked records over one composition more, which counts nowhere."""
    tables = {}
    for key, table in workload.tables.items():
        whole = np.ones((len(table.cells), len(wider.members) - 1), np.int64)
        of_members = np.pad(table.factors.get(MEMBERS, whole), ((0, 0), (0, 1)))
        tables[key] = Table(table.name, table.cells, {**table.factors, MEMBERS: of_members})
    return Workload(wider.schema, tables)


def _law_of_rest(system: MicrodataSystem, mass: FloatArray) -> FloatArray:
    """Return the posterior of the class of the rest of the household, with prior masses."""
    nobody = sp.csr_array(system.known.settled.shape, dtype=np.int64)
    classes = np.flatnonzero(mass > 0.0)
    own = KnownGroup(0, classes, mass[classes], 1, "the rest of the target's household")
    with_rest = replace(system, known=Knowledge(nobody, nobody, (own,)))
    small, _ = presolve(with_rest, sp.csr_array((0, with_rest.size), dtype=np.int64))
    try:
        law = weigh(small, _MAX_PAIRS)
    except TooManyStatesError:
        raise ArgumentError(
            f"place must be smaller for an exact law: more than {_MAX_PAIRS} pairs of sums"
        ) from None
    mean = np.array([*(np.arange(p.size) @ p for p in law.laws), 0.0])
    found = np.zeros(mass.size)
    found[classes] = (small.weight * mean[small.group])[with_rest.cells :]
    return found
