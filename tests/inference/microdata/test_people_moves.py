"""Detailed balance of every kind of move over lists of people, exactly, by all that may happen."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import record_law as oracle
from random_places import GEOGRAPHY

from bayesrisk import MechanismSpec, PublishedTables, Release, Schema, Workload
from bayesrisk.inference import KnownRecords, RecordPrior
from bayesrisk.inference.microdata import people_moves as moves
from bayesrisk.inference.microdata.people_model import (
    BIRTH,
    EXCHANGE,
    KINDS,
    LEAP,
    MOVE,
    REDRAW,
    SWAP,
    ChainState,
    people_model,
    put,
)
from bayesrisk.inference.microdata.system import make_system
from bayesrisk.release import NoiseSpec
from bayesrisk.tables import Attribute, Table

EVERYBODY = np.zeros(0, np.int64)


class Branches:
    """A source of random numbers that goes every way once, with the probability of each."""

    def runs(self, run):
        """Yield what a run returns and how probable it is, for all that its numbers may be."""
        self.path = []
        while True:
            self.depth, self.probability = 0, 1.0
            yield run(self), self.probability
            while self.path and self.path[-1] == 0:
                self.path.pop()
            if not self.path:
                return
            self.path[-1] -= 1

    def choice(self, chances):
        """Return a position drawn with some chances, of which none is 0."""
        if self.depth == len(self.path):
            self.path.append(len(chances) - 1)
        at = self.path[self.depth]
        self.depth += 1
        self.probability *= chances[at]
        return at

    def random(self):
        return Uniform(self, 0.0, 1.0)


class Uniform:
    """A number from ``low`` to ``high`` of which no more is known than comparisons told."""

    __array_ufunc__ = None  # comparisons with numbers of NumPy are those below

    def __init__(self, source, low, high):
        self.source, self.low, self.high = source, float(low), float(high)

    def __mul__(self, factor):
        return Uniform(self.source, self.low * factor, self.high * factor)

    def __ge__(self, value):
        if not self.low < value < self.high:
            return bool(value <= self.low)
        share = (self.high - value) / (self.high - self.low)
        above = bool(self.source.choice([1.0 - share, share]))
        self.low, self.high = (float(value), self.high) if above else (self.low, float(value))
        return above

    def __lt__(self, value):
        return not self >= value

    def __int__(self):
        whole = round(self.high)
        assert self.low == 0.0
        assert whole == self.high
        self.low = self.source.choice([1.0 / whole] * whole)
        self.high = self.low + 1.0
        return int(self.low)

    def __sub__(self, whole):  # what is behind the point of a number whose whole part is known
        return Uniform(self.source, self.low - whole, self.high - whole)


class Place(NamedTuple):
    """Blocks with noisy tables, and what is believed and known of their people."""

    attributes: tuple = (("sex", 2),)
    blocks: int = 2
    size: tuple = (0.2, 0.5, 0.3)
    concentration: float | None = None
    known: tuple = ()


SHARES = np.array([0.7, 0.3]), np.array([0.4, 0.3, 0.1, 0.2])
SOMEBODY = KnownRecords({"sex": [1]}, place="100")
A_WOMAN = KnownRecords({"sex": [1]}, 1, relation="exactly", place="100")
BOTH = (("sex", 2), ("age", 2))
PLACES = {
    "known shares": Place(),
    "alike, somebody known": Place(size=(0.2, 0.3, 0.3, 0.2), concentration=1.7, known=(SOMEBODY,)),
    "known how many women": Place(size=(0.2, 0.3, 0.3, 0.2), known=(A_WOMAN,)),
    "two attributes": Place(BOTH, 1, (0.1, 0.2, 0.3, 0.4)),
    "two attributes, alike": Place(BOTH, 1, (0.1, 0.2, 0.3, 0.4), 2.5),
    "gaps": Place(blocks=1, size=(0.2, 0.0, 0.3, 0.0, 0.5)),
    "gaps, alike": Place(blocks=1, size=(0.3, 0.0, 0.0, 0.4, 0.3), concentration=1.3),
}
CASES = [
    (REDRAW, "known shares"), (REDRAW, "alike, somebody known"), (REDRAW, "two attributes, alike"),
    (MOVE, "known shares"), (MOVE, "alike, somebody known"), (MOVE, "known how many women"),
    (BIRTH, "known shares"), (BIRTH, "alike, somebody known"), (BIRTH, "known how many women"),
    (SWAP, "known shares"), (SWAP, "alike, somebody known"),
    (EXCHANGE, "two attributes"), (EXCHANGE, "two attributes, alike"),
    (LEAP, "gaps"), (LEAP, "gaps, alike"),
]  # fmt: skip


def model_and_law(place):
    """Return the arrays of the chain, and the weight of every state by enumeration."""
    schema = Schema("people", tuple(Attribute(*a) for a in place.attributes), GEOGRAPHY)
    shares = SHARES[len(place.attributes) - 1]
    prior = RecordPrior(schema, shares, place.concentration, np.array(place.size), name="some")
    cells = np.indices(schema.shape).reshape(len(schema.shape), -1)
    own = {
        n: (c[:, None] == np.arange(2)).astype(int)
        for n, c in zip(schema.names, cells, strict=True)
    }
    names = tuple(map(str, range(schema.size)))
    tables = {("block", "kinds"): Table("kinds", names, own)}
    counts = {
        ("block", "kinds"): np.array([[1, 0, 2, 0], [0, 2, 0, 1]])[: place.blocks, : len(names)]
    }
    geoids = {"block": np.array(["100", "101"][: place.blocks])}
    if place.blocks > 1:
        tables["tract", "weighted"] = Table("weighted", ("all",), {"sex": np.array([[1, 2]])})
        counts["tract", "weighted"], geoids["tract"] = np.array([[4]]), np.array(["1"])
    laws = {key: NoiseSpec("discrete-gaussian", 2) for key in tables}
    published = PublishedTables(
        Workload(schema, tables), geoids, {k: sp.csr_array(c) for k, c in counts.items()}
    )
    level, code = ("tract", "1") if place.blocks > 1 else ("block", "100")
    release = Release(MechanismSpec("noise", {}, laws), published)
    where = {"level": level, "place": code, "prior": prior, "known_people": place.known}
    model = people_model(make_system(release, **where))
    terms = [
        ([p], np.eye(schema.size, dtype=int)[c].tolist(), lambda s, r=r: -((s - r) ** 2) / 4)
        for p, row in enumerate(counts["block", "kinds"].tolist())
        for c, r in enumerate(row)
    ]
    if place.blocks > 1:
        terms.append(([0, 1], [1, 2], lambda s: -((s - 4) ** 2) / 4))
    people = [[] for _ in range(place.blocks)]
    exactly = [[] for _ in range(place.blocks)]
    for known in place.known:
        if known.relation == "exactly":
            exactly[0].append(([1], known.count))
        else:
            people[0].append(([1], True))
    about = shares, place.concentration, place.size, terms
    law = oracle.with_known_people(place.blocks, schema.size, *about, people, exactly)
    # A part that is known to have all women has these; the rest of its block is another part.
    split = len(model.strata) > place.blocks
    found = {}
    for w, _, others in law:
        x = [[0, others[0][1]], [others[0][0], 0], *others[1:]] if split else others
        found[tuple(itertools.chain(*x))] = w
    return model, found


def state_of(model, x):
    """Return a state of the chain with these counts."""
    occupant, people = np.zeros(int(model.arrays.first[-1]), np.int64), x.sum(axis=1)
    for part, row in enumerate(x):
        start = model.arrays.first[part]
        occupant[start : start + people[part]] = np.repeat(np.arange(row.size), row)
    spot = model.spot.copy()
    put(model.arrays, spot, x)
    tally, density = np.zeros((len(KINDS), 2), np.int64), np.zeros(1)
    return ChainState(occupant, people, x.copy(), spot, tally, density, np.zeros(x.shape[1]))


def flows(model, law, kind, slots=EVERYBODY):
    """Return the probability of every pair of states, one after the other, by one proposal."""
    number = {x: i for i, x in enumerate(law)}
    found = np.zeros((len(law), len(law)))
    for x, weight in law.items():
        shape = len(model.strata), model.classes
        begin = state_of(model, np.array(x).reshape(shape))

        def run(source, begin=begin):
            state = ChainState(*(a.copy() for a in begin))
            moves._propose(source, model.arrays, state, kind, slots)
            seen = state_of(model, state.x)  # rows and density anew: what the move added up
            assert np.array_equal(seen.spot, state.spot)
            table = model.arrays.table
            change = table[seen.spot].sum() - table[begin.spot].sum()
            assert state.density[0] == pytest.approx(change, abs=1e-9)
            return number[tuple(state.x.ravel().tolist())]

        for there, probability in Branches().runs(run):
            found[number[x], there] += weight * probability
    return found


@pytest.fixture
def plain(monkeypatch):
    """Run kernels as they are written, with few tries to find a person."""
    for name, kernel in list(vars(moves).items()):
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(moves, name, kernel.py_func)
    monkeypatch.setattr(moves, "_TRIES", 2)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("kind", "case"), CASES, ids=[f"{KINDS[k]}, {c}" for k, c in CASES])
def test_every_kind_of_move_is_in_detailed_balance(kind, case):
    """pi(x) P(x, x') is symmetric for all states."""
    model, law = model_and_law(PLACES[case])
    flow = flows(model, law, kind)
    assert flow.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.count_nonzero(flow - np.diag(np.diag(flow))) >= 10
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-15)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("kind", [REDRAW, BIRTH, LEAP])
def test_moves_from_some_slots_are_in_detailed_balance(kind):
    """Also where people of one block alone change; leaps are births there."""
    model, law = model_and_law(PLACES["alike, somebody known"])
    flow = flows(model, law, kind, np.arange(*model.arrays.first[1:3]))
    assert np.count_nonzero(flow - np.diag(np.diag(flow))) >= 10
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9, atol=1e-15)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("kind", [REDRAW, MOVE, BIRTH, SWAP])
def test_a_chain_of_another_likelihood_is_not_in_balance(kind):
    model, law = model_and_law(PLACES["alike, somebody known"])
    dull = model.arrays._replace(table=0.9 * model.arrays.table)
    flow = flows(replace(model, arrays=dull), law, kind)
    assert np.abs(flow - flow.T).max() > 1e-4
