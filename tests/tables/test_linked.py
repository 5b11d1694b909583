"""Linked records and tables: what they count, and what cannot be linked."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import Records, Schema, Workload, make_mechanism, simulate_population, tabulate
from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.inference import RecordPrior
from bayesrisk.release import TrueCounts
from bayesrisk.risk import Adversary, AuditedPopulation, AuditQuestion, statements_about_members
from bayesrisk.tables import Attribute, Geography, HouseholdLink, PublishedTables, link_households
from bayesrisk.tables.microdata import without_member

TOWN = Geography("town", ("block",), (1,))
PERSONS = Schema("persons", (Attribute("sex", 2), Attribute("age", 2)), TOWN)
HOMES = Schema("homes", (Attribute("rented", 2), Attribute("size", 3, 1)), TOWN)


def link_of(most=3):
    return HouseholdLink.enumerate(
        PERSONS, HOMES, most=most, derived={"size": lambda members: members.sum(axis=1)}
    )


def people(seed=1, homes=60):
    """Return persons and households of three blocks."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, homes)
    units = pd.DataFrame(
        {"household": np.arange(homes) * 7, "rented": rng.integers(0, 2, homes), "size": size}
    )
    units["block"] = rng.choice(list("123"), homes)
    rows = units.loc[np.repeat(np.arange(homes), size), ["household", "block"]]
    rows = rows.assign(sex=rng.integers(0, 2, len(rows)), age=rng.integers(0, 2, len(rows)))
    rows = rows.sample(frac=1.0, random_state=seed)
    return Records.from_frame(rows, schema=PERSONS), Records.from_frame(units, schema=HOMES)


def test_tables_of_linked_records_are_those_of_persons_and_of_households():
    persons, homes = people()
    link = link_of()
    linked = link_households(persons, homes, link=link)
    assert len(linked) == 60
    works = {
        "p": Workload.of(PERSONS, ["sex", "age", ["sex", "age"]]),
        "h": Workload.of(HOMES, ["rented", "size", ["rented", "size"]]),
    }
    joint = tabulate(linked, link.workload(works))
    for name, records in (("p", persons), ("h", homes)):
        own = tabulate(records, works[name])
        for level, table in own.workload.tables:
            both = joint.counts[level, f"{name}: {table}"].toarray()
            assert both.tolist() == own.counts[level, table].toarray().tolist()
    apart = {n: tabulate(r, works[n]) for n, r in (("p", persons), ("h", homes))}
    combined = PublishedTables.combine(apart, link=link)
    assert combined == joint


def test_tables_of_a_simulated_town_are_linked():
    """Households of up to four people in the schemas of the census, ages in two groups."""
    town = simulate_population("tract", rng=3)
    few = town.households.table["people"].to_numpy()
    kept = (few >= 1) & (few <= 4)
    homes = town.households.take(kept)
    inside = np.isin(town.persons.table["household"], homes.table["household"])
    frame = town.persons.take(inside).to_frame()[["block", "household", "age"]]
    place = town.persons.schema.geography
    persons = Schema("persons", (Attribute("adult", 2),), place)
    units = Schema("units", (Attribute("size", 4, 1), Attribute("under_18", 2)), place)
    small = Records.from_frame(frame.assign(adult=(frame["age"] >= 18) * 1), schema=persons)
    table = homes.to_frame()[["block", "household", "people"]].rename(columns={"people": "size"})
    children = small.to_frame().groupby("household")["adult"].min() == 0
    table["under_18"] = table["household"].map(children).astype(int)
    link = HouseholdLink.enumerate(
        persons, units, most=4,
        derived={"size": lambda m: m.sum(axis=1), "under_18": lambda m: m[:, 0] > 0},
    )  # fmt: skip
    linked = link_households(small, Records.from_frame(table, schema=units), link=link)
    assert link.schema.names == ("members",)
    counts = link.members[linked.codes("members")].sum(axis=0)
    assert counts.tolist() == np.bincount(small.codes("adult")).tolist()
    assert len(linked) == kept.sum()


def test_a_person_left_out_changes_both_tables():
    persons, homes = people()
    link = link_of()
    linked = link_households(persons, homes, link=link)
    work = link.workload({"p": Workload.of(PERSONS, ["sex"]), "h": Workload.of(HOMES, ["size"])})
    whole = tabulate(linked, work, geoids=list("123"))
    for row in range(20):
        code = linked.codes("members")[row]
        person = int(np.flatnonzero(link.members[code])[-1])
        rest = tabulate(without_member(linked, row, person, link=link), work, geoids=list("123"))
        less = {k: (whole.counts[k] - rest.counts[k]).toarray().sum(axis=0) for k in whole.counts}
        sex = PERSONS.codes(np.array([person]))["sex"][0]
        assert less["block", "p: sex"].tolist() == [1 - sex, sex]
        size = link.members[code].sum()
        change = np.zeros(3, int)
        change[size - 1] = 1
        if size > 1:
            change[size - 2] = -1
        assert less["block", "h: size"].tolist() == change.tolist()


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda p, h: (p.assign(household=5), h), "household"),
        (lambda p, h: (p.assign(block="9"), h), "household"),
        (lambda p, h: (p.iloc[1:], h), "size|household"),
        (lambda p, h: (p, h.assign(household=0)), "household"),
        (lambda p, h: (p, h.assign(size=h["size"] % 3 + 1)), "size"),
        (lambda p, h: (pd.concat([p, p, p, p]), h), "members"),
    ],
)
def test_records_that_do_not_belong_together_are_refused(spoil, word):
    frames = spoil(*(records.to_frame() for records in people()))
    given = [Records.from_frame(f, schema=s) for f, s in zip(frames, (PERSONS, HOMES), strict=True)]
    with pytest.raises(DataError, match=word):
        link_households(*given, link=link_of())


def test_what_is_no_link_is_refused():
    with pytest.raises(ArgumentError, match="most"):
        link_of(most=100)
    with pytest.raises(ArgumentError, match="households"):
        HouseholdLink.enumerate(PERSONS, PERSONS, most=2, derived={})
    other = Schema("homes", (Attribute("size", 3, 1),))
    with pytest.raises(ArgumentError, match="households"):
        HouseholdLink.enumerate(PERSONS, other, most=2, derived={})
    with pytest.raises(ArgumentError, match=r"derived\['size'\]"):
        HouseholdLink.enumerate(PERSONS, HOMES, most=4, derived={"size": lambda m: m.sum(axis=1)})
    with pytest.raises(ShapeError, match="persons and sizes"):
        link_of().shares([1, 1], [1])
    with pytest.raises(ArgumentError, match="workload"):
        link_of().convert(Workload.of(other, ["size"]))
    members = np.array([[2, 0, 0, 0]])
    alone = HouseholdLink(PERSONS, HOMES, members, {"size": np.array([2])})
    records = Records.from_frame(
        pd.DataFrame({"block": ["1"], "rented": [0], "members": [0]}), schema=alone.schema
    )
    with pytest.raises(DataError, match="row 1"):
        without_member(records, 0, 0, link=alone)


def test_shares_are_those_of_independent_members():
    link = link_of()
    kinds, sizes = np.array([0.1, 0.2, 0.3, 0.4]), [0.5, 0.3, 0.2]
    shares = link.shares(kinds, sizes).reshape(2, -1)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] == pytest.approx(shares[1])
    size = link.members.sum(axis=1)
    for n in (1, 2, 3):
        assert 2 * shares[0, size == n].sum() == pytest.approx(sizes[n - 1])
        mean = (shares[0, size == n] @ link.members[size == n]) / shares[0, size == n].sum()
        assert mean == pytest.approx(n * kinds)


def test_vacant_units_count_as_units():
    members = np.vstack([np.zeros((1, 4), int), np.eye(4, dtype=int)])
    link = HouseholdLink(PERSONS, HOMES, members, {})
    tables = link.convert(Workload.of(HOMES, ["rented"]))
    assert tables.at("block")["rented"].factors.keys() == {"rented"}
    assert link.schema.attribute("members").labels[0] == "nobody"


def test_audits_leave_the_household_out_of_both():
    """Of exact counts of a block, who is left out is missing from the tables of both."""
    persons, homes = people(homes=12)
    link = link_of()
    linked = link_households(persons, homes, link=link)
    work = link.workload({"p": Workload.of(PERSONS, ["sex"]), "h": Workload.of(HOMES, ["size"])})
    question = AuditQuestion(work, ("rented",), (Adversary.named("linker", known=["members"]),))
    audit = AuditedPopulation(linked, question, seed=1)
    mechanism = make_mechanism("rounding", base=3, method="nearest")
    release = audit.release("r", 0, mechanism)
    others = audit.release("r", 0, mechanism, without_row=0)
    block = linked.geoids[0]
    left = linked.take(np.arange(12) != 0)
    true = tabulate(left, work, geoids=np.unique(linked.geoids)).count("block", "p: sex", block)
    near = (2 * true + 3) // 6 * 3
    assert others.tables.count("block", "p: sex", block).tolist() == near.tolist()
    frame = audit.statements("p", "r", 0, mechanism, release, np.array([0]))
    assert frame["posterior"].between(0, 1).all()
    assert (frame["status"] == "calculated").all()


def test_statements_about_members_are_refused_where_they_make_no_sense():
    link = link_of()
    linked = link_households(*people(homes=5), link=link)
    work = link.workload({"p": Workload.of(PERSONS, ["sex"])})
    asked = AuditQuestion(Workload.of(PERSONS, ["sex"]), ("sex",), (Adversary.named("insider"),))
    prior = RecordPrior(link.schema, None, None, np.ones(9) / 9)
    identity = make_mechanism("identity")
    assert identity.spec.others == TrueCounts()
    with pytest.raises(ArgumentError, match="question"):
        statements_about_members(identity, linked, link, asked, workload=work, prior=prior, rng=1)
