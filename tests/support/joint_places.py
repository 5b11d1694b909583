"""Random pairs of releases of places that are the same, nested or overlap, and what they say.

Where a pair is linked, one release is of persons and one of the households that they live in.
Weights of households in counts of persons are counted member by member here, not by the package.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from random_places import _by_rule, _law, _log_likelihood, publish
from range_cases import LAWS, MOST, allowed_counts, published_number

from bayesrisk import MechanismSpec, PublishedTables, Release, Schema, Workload
from bayesrisk.inference import RecordPrior
from bayesrisk.release import SuppressedCounts, TrueCounts
from bayesrisk.tables import Attribute, Geography, HouseholdLink, PopulationChange, Table

GEOGRAPHY = Geography("towns", ("tract", "block"), (1, 3))
KINDS = ("exact", "noisy", "rounded", "mixed", "wide", "coarse")
LAYOUTS = {"same": [(0,), (0,)], "nested": [(0, 1), (1,)], "overlapping": [(0, 1), (1, 2)]}


@dataclass
class Household:
    """A kind of household as the oracle lists it: codes of attributes, and of each member."""

    codes: dict[str, int] | None
    people: list[tuple[int, ...]]


def world(rng, most, kinds=2):
    """Return a link of households of up to ``most`` members, and its kinds, listed apart."""
    persons = Schema("persons", (Attribute("sex", kinds),), GEOGRAPHY)
    homes = Schema("homes", (Attribute("rented", 2), Attribute("size", most, 1)), GEOGRAPHY)
    link = HouseholdLink.enumerate(
        persons, homes, most=most, derived={"size": lambda members: members.sum(axis=1)}
    )
    every = [
        people
        for size in range(1, most + 1)
        for people in itertools.combinations_with_replacement(range(kinds), size)
    ]
    assert [sorted(np.repeat(range(kinds), row)) for row in link.members] == list(map(list, every))
    listed = [
        Household({"rented": rented, "size": len(people)}, [(sex,) for sex in people])
        for rented in range(2)
        for people in every
    ]
    return link, listed


def weights_of(table, schema, kinds):
    """Return (cells, kinds): records of each kind counted in each cell, one member at a time."""

    def weight(cell, codes):
        value = 1
        for attribute in schema.attributes:
            if attribute.name in table.factors:
                at = codes[attribute.name] - attribute.first
                value *= int(table.factors[attribute.name][cell, at])
        return value

    found = np.zeros((len(table.cells), len(kinds)), np.int64)
    for cell in range(len(table.cells)):
        for at, kind in enumerate(kinds):
            units = [kind.codes]
            if "sex" in schema.names or kind.codes is None:
                units = [dict(zip(schema.names, person, strict=True)) for person in kind.people]
            found[cell, at] = sum(weight(cell, codes) for codes in units)
    return found


def random_table(rng, schema, name):
    """Return a table that crosses some attributes, in a few with weights of 2."""
    chosen = [a for a in schema.attributes if rng.random() < 0.65]
    index = np.array(list(itertools.product(*(range(a.size) for a in chosen)))).T
    n = index.shape[1] if chosen else 1
    factors = {}
    for a, codes in zip(chosen, index, strict=True):
        factors[a.name] = (codes[:, None] == np.arange(a.size)).astype(np.int64)
        factors[a.name] *= 1 + (rng.random() < 0.15)
    return Table(name, tuple(f"{name}-{q}" for q in range(n)), factors)


@dataclass
class Joint:
    """Releases by name, the link if there is one, the prior, and every published cell."""

    releases: dict[str, Release]
    link: HouseholdLink | None
    prior: RecordPrior
    rows: list[tuple]  # release, level, code, table, cell, places, weights, law, number, hidden
    places: int
    truth: np.ndarray
    change: PopulationChange | None = None

    def terms(self):
        """Return what the oracle of posteriors takes."""
        found = []
        for *_, covered, weights, law, number, hidden in self.rows:
            if hidden and (law.high is not None or law.low):
                found.append((covered, weights.tolist(), _by_rule(law)))
            elif not hidden:
                found.append((covered, weights.tolist(), _log_likelihood(law, number)))
        return found

    def combined(self):
        """Return the tables of all releases together."""
        tables = {name: release.tables for name, release in self.releases.items()}
        return PublishedTables.combine(tables, link=self.link, change=self.change)


def joint(seed, *, linked, layout, kinds=None):
    """Return a random pair of releases; of counts that allow several where ``kinds`` is None."""
    rng = np.random.default_rng([seed, linked, sorted(LAYOUTS).index(layout)])
    covers = LAYOUTS[layout]
    places = 1 + max(max(c) for c in covers)
    if linked:
        link, listed = world(rng, int(rng.integers(2, 4)) if places == 1 else 2)
        schemas = [link.persons, link.households]
        over = link.schema
    else:
        link, sizes = None, [(2, 2), (4,)][int(rng.integers(2))]
        names = ("sex", "age")[: len(sizes)]
        over = Schema("people", tuple(map(Attribute, names, sizes)), GEOGRAPHY)
        codes = np.indices(sizes).reshape(len(sizes), -1).T.tolist()
        listed = [Household(dict(zip(names, row, strict=True)), [tuple(row)]) for row in codes]
        schemas = [over, over]
    most = {1: 3, 2: 2, 3: 1 if linked else 2}[places]
    shares = rng.dirichlet(np.ones(len(listed)))
    shares[int(rng.integers(len(listed)))] = 0.0
    shares /= shares.sum()
    concentration = [None, 0.7, 30.0][int(rng.integers(3))]
    size = rng.dirichlet(np.ones(most + 1))
    prior = RecordPrior(over, shares, concentration, size, name="random")
    truth = np.array(
        [rng.multinomial(int(rng.choice(most + 1, p=size)), shares) for _ in range(places)]
    )
    releases, rows = {}, []
    for number, (schema, covered) in enumerate(zip(schemas, covers, strict=True)):
        name = f"r{number}"
        kind = None if kinds is None else kinds[number]
        releases[name], told = _release(rng, kind, schema, listed, truth, covered)
        rows += [(name, *row) for row in told]
    return Joint(releases, link, prior, rows, places, truth)


def _release(rng, kind, schema, kinds, truth, covered):
    """Return a release of some blocks, and the tract where it has all of them."""
    codes = [f"1{p:02d}" for p in covered]
    levels = ["block"]
    if len(truth) > 1 and len(covered) == len(truth):
        levels = ["tract", "block"]
    geoids, tables, counts, hidden, laws, rows = {"block": np.array(codes)}, {}, {}, {}, {}, []
    geoids |= {"tract": np.array(["1"])} if "tract" in levels else {}
    for level in levels:
        for number in range(int(rng.integers(1, 3))):
            table = random_table(rng, schema, f"T{number}")
            if kind is None and number == 0:
                table = Table("T0", ("T0-0",), {})  # something bounds the number of records
            weights = weights_of(table, schema, kinds)
            law = _chosen(rng, kind, len(truth) > len(covered))
            if kind is None and number == 0 and level == "block":
                law = TrueCounts()
            inside = [[p] for p in covered] if level == "block" else [list(covered)]
            true = np.array([weights @ truth[own].sum(axis=0) for own in inside])
            if kind is None:
                plain = None if isinstance(law, TrueCounts) else law
                pairs = [published_number(plain, int(c), rng) for c in true.ravel()]
                withheld = np.array([h for _, h in pairs]).reshape(true.shape)
                out = np.where(withheld, 0, np.reshape([n for n, _ in pairs], true.shape))
            else:
                out, withheld = publish(rng, law, true)
            key = level, table.name
            tables[key], laws[key] = table, law
            counts[key], hidden[key] = sp.csr_array(out), sp.csr_array(withheld)
            rows += [
                (level, code, table.name, table.cells[q], own, weights[q], law,
                 int(out[i, q]), bool(withheld[i, q]))
                for i, (code, own) in enumerate(zip(geoids[level].tolist(), inside, strict=True))
                for q in range(len(weights))
            ]  # fmt: skip
    published = PublishedTables(Workload(schema, tables), geoids, counts, hidden)
    return Release(MechanismSpec("random", {}, laws), published), rows


def _chosen(rng, kind, partial):
    """Return a law; where a release lacks places, one that withholds nothing by a rule."""
    while True:
        if kind is not None:
            law = _law(rng, kind)
        else:
            law = LAWS[int(rng.integers(len(LAWS)))] or TrueCounts()
        if not (partial and isinstance(law, SuppressedCounts) and law.rule is not None):
            return law


def data_sets(case):
    """Return every (data set, place times kind) that all published counts allow."""
    width = len(case.rows[0][6])
    matrix = np.zeros((len(case.rows), case.places, width), np.int64)
    ends = np.zeros((len(case.rows), 2), np.int64)
    for at, (*_, covered, weights, law, number, hidden) in enumerate(case.rows):
        matrix[at, covered] = weights
        plain = None if isinstance(law, TrueCounts) else law
        allowed = np.flatnonzero(allowed_counts(plain, number, hidden, True))
        ends[at] = allowed[0], allowed[-1] if allowed[-1] < MOST - 1 else 10**6
    return matrix.reshape(len(case.rows), -1), ends
