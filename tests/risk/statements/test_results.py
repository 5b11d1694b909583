"""Statements of results of every attack, against loops over people and fresh releases."""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SCHEMA, SWAP, homes, town
from oracles import occupancy as households
from scipy.special import comb

import bayesrisk as br
from bayesrisk.census.studies.occupancy_beliefs import household_weights, occupancy_cells
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference import RecordPrior
from bayesrisk.interfaces import AttackResult
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import make_attack
from bayesrisk.risk import majority_inference, race_ethnicity_counts
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion
from bayesrisk.risk.statements.statements import COLUMNS
from bayesrisk.tables import Records, Schema, Table, Workload

BOTH = {
    "sex": np.repeat(np.eye(2, dtype=int), 3, axis=0),
    "race": np.tile(np.eye(3, dtype=int), 2).T,
}
WORKLOAD = Workload(
    SCHEMA,
    {
        ("block", "R"): Table("R", ("a", "b", "c"), {"race": np.eye(3, dtype=int)}),
        ("block", "S"): Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)}),
        ("block", "F"): Table("F", ("fa",), {"sex": [[0, 1]], "race": [[1, 0, 0]]}),
    },
)
SHARES = {
    "level_shares": {"block": "1"},
    "table_shares": {"R": "1/2", "S": "1/4", "F": "1/4"},
    "sensitivity": "add-remove",
}
MECHANISMS = {
    "identity": make_mechanism("identity"),
    "noise": make_mechanism("discrete-laplace", epsilon=4, **SHARES),
    "little noise": make_mechanism("discrete-laplace", epsilon=16, **SHARES),
    "rounding": make_mechanism("rounding", base=2, method="random"),
    "suppression": make_mechanism("suppression", threshold=2),
    "swapping": make_mechanism("swapping", rate="0.4", **SWAP),
}
SEED = 7


def people(seed=0, size=24):
    return town(seed, size, ["100", "101", "102"], [0.5, 0.3, 0.2])


def public(records, concentration=5.0):
    blocks = pd.DataFrame({"block": np.unique(records.geoids), "x": 0.0, "y": 0.0})
    data = br.tables.Microdata(records, None, blocks)
    shares = np.arange(1.0, 7.0) / 21.0
    return data, RecordPrior(SCHEMA, shares, concentration, name="outside")


def released(name, data, seed=SEED):
    return MECHANISMS[name].release(data, workload=WORKLOAD, rng=seed)


def less(data, row):
    keep = np.arange(len(data.persons)) != row
    return br.tables.Microdata(data.persons.take(keep), None, data.blocks)


def told(row):
    """Whether a statement is true of everybody it may be about; None where nobody can say."""
    return None if pd.isna(row["correct"]) else bool(row["correct"])


def share_of(found, block, sex, race):
    """The share of reconstructed records, in a loop; None where there is none of the kind."""
    rows = found.to_frame().to_dict(orient="records")
    kind = [r for r in rows if r["block"] == block and r["sex"] == sex]
    return sum(r["race"] == race for r in kind) / len(kind) if kind else None


@pytest.mark.parametrize("name", ["identity", "noise", "rounding", "suppression", "swapping"])
def test_reconstructions_without_a_record_are_those_of_releases_without_it(name):
    attack = make_attack("reconstruction", scope="block", nearest=True, taken_as_true=True)
    moved = 0
    for seed in range(2):
        records = people(seed, size=16)
        data, prior = public(records)
        release = released(name, data)
        found = attack.run(release)
        said = found.statements(
            release=release, prior=prior, truth=data, mechanism=MECHANISMS[name], rng=SEED,
            known=["sex"], stated=["race"],
        ).frame  # fmt: skip
        truth = records.to_frame().to_dict(orient="records")
        for row in said.to_dict(orient="records"):
            block, sex, race = row["block"], row["sex"], row["race"]
            kind = [i for i, r in enumerate(truth) if (r["block"], r["sex"]) == (block, sex)]
            shares = prior.shares.reshape(2, 3)
            assert row["prior"] == pytest.approx(shares[sex, race] / shares[sex].sum())
            assert row["posterior"] == share_of(found, block, sex, race)
            right = [truth[i]["race"] == race for i in kind]
            assert told(row) == (right[0] if len(set(right)) == 1 else None)
            alone = []
            for i in kind:
                other = attack.run(released(name, less(data, i)))
                value = share_of(other, block, sex, race)
                alone.append(row["prior"] if value is None else value)
            assert row["without"] == pytest.approx(np.mean(alone) if kind else np.nan, nan_ok=True)
            moved += bool(kind) and row["without"] != row["posterior"]
    assert moved
    assert set(said["baseline"]) == {"outside"}
    if name != "suppression":
        assert ("proved" in set(said["status"])) == (name == "identity")


def histograms(n, cells=6):
    return [
        np.bincount(x, minlength=cells)
        for x in itertools.combinations_with_replacement(range(cells), n)
    ]


def feasible(tables, block):
    """All histograms of the block's people with its published counts."""
    counts = {t: tables.count("block", t, block) for t in ("R", "S", "F")}
    return [
        x for x in histograms(max(int(counts["S"].sum()), 0))
        if np.array_equal(x.reshape(2, 3).sum(0), counts["R"])
        and np.array_equal(x.reshape(2, 3).sum(1), counts["S"])
        and np.array_equal(x[3:4], counts["F"])
    ]  # fmt: skip


@pytest.mark.parametrize("concentration", [None, 5.0])
@pytest.mark.parametrize("name", ["identity", "little noise"])
def test_claims_have_the_law_of_a_number_and_the_others_are_proved_by_enumeration(
    name, concentration
):
    inside = {True: 0, False: 0}
    for seed in range(2):
        records = people(seed, size=11)
        data, prior = public(records, concentration)
        release = released(name, data)
        found = make_attack("claims", taken_as_true=True).run(release)
        said = found.statements(release=release, prior=prior, truth=data, readable=None).frame
        asked = found.to_frame()
        asked = asked[asked["multiplicity"] > 0]
        assert len(said) == len(asked)
        truth = records.to_frame()
        for row, claim in zip(
            said.to_dict(orient="records"), asked.to_dict(orient="records"), strict=True
        ):
            given = {c: claim[c] for c in ("sex", "race") if not pd.isna(claim[c])}
            index = SCHEMA.indices(np.arange(6))
            fits = np.all([index[c] == v for c, v in given.items()] or [np.ones(6, bool)], axis=0)
            p, m = float(prior.shares[fits].sum()), int(claim["multiplicity"])
            n = int(release.tables.count("block", "S", claim["block"]).sum())
            assert row["prior"] == pytest.approx(number_law(m, n, p, concentration), abs=1e-12)
            here = truth["block"] == claim["block"]
            alike = np.flatnonzero(here & np.all([truth[c] == v for c, v in given.items()], axis=0))
            alone = []
            for i in alike.tolist():
                law = feasible(released(name, less(data, i)).tables, claim["block"])
                numbers = {int(x[fits].sum()) for x in law}
                if numbers == {m - 1}:
                    alone.append(p if concentration is None else (5 * p + m - 1) / (5 + n - 1))
                elif numbers == {m}:
                    alone.append(1 - (p if concentration is None else (5 * p + m) / (5 + n - 1)))
                else:
                    alone.append(row["prior"])
                inside[len(numbers) == 1] += 1
            assert row["without"] == pytest.approx(np.mean(alone) if alone else np.nan, nan_ok=True)
            assert row["posterior"] == 1.0
            if len(alike):
                assert row["correct"] == (len(alike) == m)
        assert set(said["status"]) <= {"proved" if name == "identity" else "believed"}
    assert inside[True] > 6


def number_law(m, n, p, a):
    """P(m of n), by the order in which they come."""
    if a is None:
        return comb(n, m) * p**m * (1 - p) ** (n - m)
    value = comb(n, m)
    for i in range(n):
        value *= (a * p + i if i < m else a * (1 - p) + i - m) / (a + i)
    return value


@pytest.mark.parametrize("concentration", [None, 4.0])
def test_a_household_of_a_block_that_holds_a_violation_by_enumeration(concentration):
    """Every list of N households, weighed; the target is the first of them."""
    schema = Schema.named("household-occupancy")
    rng = np.random.default_rng(3)
    helped, over = occupancy_cells(schema)
    for cells in (np.flatnonzero(over), np.flatnonzero(helped & ~over), np.flatnonzero(~helped)):
        sizes = schema.indices(cells)["size"] + 1
        rooms = schema.indices(cells)["bedrooms"]
        sub = schema.indices(cells)["subsidised"]
        breach = [households.breach(r, x) for r, x in zip(rooms, sizes, strict=True)]
        np.testing.assert_array_equal(over[cells], (sub == 1) & breach)
    pick = [rng.choice(np.flatnonzero(mask), 2, replace=False) for mask in
            (over, helped & ~over, ~helped)]  # fmt: skip
    pick = np.concatenate(pick)
    shares = np.zeros(schema.size)
    shares[pick] = rng.dirichlet(np.ones(6))
    prior = RecordPrior(schema, shares, concentration)
    for n, subsidised in ((1, 1), (3, 1), (4, 2), (4, 4)):
        expected = np.zeros(schema.size)
        for kinds in itertools.product(range(6), repeat=n):
            cells = pick[list(kinds)]
            if helped[cells].sum() != subsidised or not over[cells].any():
                continue
            weight = 1.0
            for i, cell in enumerate(cells):
                if concentration is None:
                    weight *= shares[cell]
                else:
                    seen = np.count_nonzero(cells[:i] == cell)
                    weight *= (concentration * shares[cell] + seen) / (concentration + i)
            expected[cells[0]] += weight
        found = household_weights(prior, n, subsidised)
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=1e-12)


HOMES = Workload.named("household-occupancy")


def household_prior(records, concentration=10.0):
    counts = np.bincount(records.cells(), minlength=records.schema.size)
    return RecordPrior.composition(records.schema, counts, concentration=concentration, more=1.0)


def over_limit(q, a, n, status):
    """P(one household is over the limit | one of n is), where that was found."""
    none = math.prod((a * (1 - q) + i) / (a + i) for i in range(n))
    return q / (1 - none) if status == "violation" else q


def test_occupancy_is_about_one_household_of_those_subsidised():
    hits = 0
    attack = make_attack("occupancy", taken_as_true=True)
    for seed in range(6):
        records = homes(seed, 14, 5)
        blocks = pd.DataFrame({"block": np.unique(records.geoids), "x": 0.0, "y": 0.0})
        data = br.tables.Microdata(None, records, blocks)
        prior = household_prior(records)
        release = make_mechanism("identity").release(data, workload=HOMES, rng=1)
        found = attack.run(release)
        said = found.statements(release=release, prior=prior, truth=data).frame
        truth = records.to_frame()
        helped, over = occupancy_cells(records.schema)
        q = prior.shares[over].sum() / prior.shares[helped].sum()
        breach = over[records.cells()]

        believed = functools.partial(over_limit, q, 10.0 * prior.shares[helped].sum())
        status = found.to_frame().set_index("block")["status"]
        for row in said.to_dict(orient="records"):
            block = row["target"].split()[-1]
            mine = np.flatnonzero((truth["block"] == block) & (truth["subsidised"] == 1))
            assert row["people"] == len(mine)
            assert row["prior"] == pytest.approx(q)
            assert row["posterior"] == pytest.approx(believed(len(mine), status[block]))
            alone = []
            for i in mine:
                keep = np.arange(len(records)) != i
                fewer = br.tables.Microdata(None, records.take(keep), blocks)
                other = make_mechanism("identity").release(fewer, workload=HOMES, rng=1)
                again = attack.run(other).to_frame().set_index("block")["status"][block]
                alone.append(believed(len(mine) - 1, again))
            assert row["without"] == pytest.approx(np.mean(alone))
            hits += status[block] == "violation"
            right = breach[mine].tolist()
            assert told(row) == (right[0] if len(set(right)) == 1 else None)
        sure = said["status"] == "proved"
        assert (said["posterior"][sure] == 1.0).all()
        assert said["correct"][sure].all()
    assert hits > 4


# -----------------------------------------------------------------------------
# All attacks on one population of persons and one of households, on one scale.


@pytest.fixture(scope="module")
def area():
    """Fourteen persons of two blocks."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(
        {
            "block": np.repeat(["500010101001000", "500010101001001"], [8, 6]),
            "sex": rng.integers(0, 2, 14),
            "age": rng.choice([7, 31, 52], 14),
            "race": rng.choice([1, 2], 14, p=[0.7, 0.3]),
            "hisp": 0,
        }
    )
    blocks = pd.DataFrame({"block": frame["block"].unique(), "x": 0.0, "y": 0.0})
    persons = Records.from_frame(frame, schema=Schema.named("sf1-person"))
    return br.tables.Microdata(persons, None, blocks)


@pytest.fixture(scope="module")
def everything(area):
    """Results of all four attacks under true counts, with how their statements are made."""
    schema = Schema.named("sf1-person")
    counts = np.bincount(area.persons.cells(), minlength=schema.size)
    prior = RecordPrior.composition(schema, counts, concentration=30.0, more=1.0)
    release = make_mechanism("identity").release(area, workload=Workload.named("sf1-block"), rng=1)
    rebuilt = make_attack("reconstruction", scope="block").run(release)
    claimed = make_attack("claims", columns=["sex", "race"], max_columns=2).run(release)
    true = race_ethnicity_counts(area.persons.to_frame())
    inferred = majority_inference({"identity": race_ethnicity_counts(release.tables)}, truth=true)
    records = homes(0, 14, 5)
    units = make_mechanism("identity").release(records, workload=HOMES, rng=1)
    detected = make_attack("occupancy").run(units)
    person = {"release": release, "prior": prior, "truth": area}
    return [
        (rebuilt, person | {"known": ["sex", "age"], "stated": ["race", "hisp"]}),
        (claimed, person | {"readable": None}),
        (inferred, person),
        (detected, {"release": units, "prior": household_prior(records), "truth": records}),
    ]


def audited(records):
    question = AuditQuestion(WORKLOAD, ("race",), EVERYBODY[:2], 3.0)
    of = AuditedPopulation(records, question, seed=1)
    mechanism = MECHANISMS["identity"]
    return br.Statements(
        of.statements("p", "p", 0, mechanism, of.release("p", 0, mechanism), [0, 1])
    )


def test_all_attacks_stand_on_one_scale(everything):
    parts = [found.statements(**how) for found, how in everything]
    law = audited(people())
    whole = br.Statements.concat([*parts, law])
    assert len(whole) == sum(map(len, parts)) + len(law)
    assert set(whole.frame["attack"]) == {
        "reconstruction", "claims", "majority", "occupancy", "likelihood",
    }  # fmt: skip
    assert list(whole.frame.columns[: len(COLUMNS)]) == list(COLUMNS)
    frame = whole.frame
    for name in ("prior", "without", "posterior"):
        assert frame[name].between(0.0, 1.0).all()
    assert set(frame["status"]) <= {"proved", "believed", "unstated", "calculated"}
    assert len(whole.learned_from_own_record.dropna())
    summary = whole.summary().set_index("attack")
    for found in parts:
        row = summary.loc[found.frame["attack"].iloc[0]]
        assert row["statements"] == len(found)
        assert row["prior"] == pytest.approx(found.frame["prior"].mean())
    assert whole.plot()[0].figure is not None
    # Somebody's most probable race is no news from the record: by the majority a share of n people
    # is the mean of the shares without each of them.
    majority = frame[frame["attack"] == "majority"]
    np.testing.assert_allclose(majority["without"], majority["posterior"])


def test_the_truth_never_moves_a_belief(everything, area):
    """Negative control: with everybody's race exchanged it is another truth."""
    shuffled = area.persons.to_frame()
    shuffled["race"] = 3 - shuffled["race"]
    other = br.tables.Microdata(
        Records.from_frame(shuffled, schema=area.persons.schema), None, area.blocks
    )
    for found, how in everything:
        truth = other if how["truth"] is area else homes(9, 14, 5)
        told = found.statements(**how).frame
        changed = found.statements(**how | {"truth": truth}).frame
        alone = found.statements(**how | {"truth": None}, without=False).frame
        for frame in (changed, alone):
            same = ["target", "statement", "people", "prior", "posterior", "status"]
            pd.testing.assert_frame_equal(frame[same], told[same])
        assert alone[["without", "correct"]].isna().all(axis=None)
        assert not changed["without"].equals(told["without"])
        quick = found.statements(**how, without=False).frame
        assert quick["without"].isna().all()
        assert quick["correct"].equals(told["correct"])


def test_releases_that_cannot_be_made_again_have_no_belief_without():
    data, prior = public(people())
    release = released("swapping", data)
    found = make_attack("reconstruction", scope="block", taken_as_true=True).run(release)
    how = {"release": release, "prior": prior, "truth": data, "stated": ["race"]}
    assert found.statements(**how).frame["without"].isna().all()
    with pytest.raises(ArgumentError, match="truth, mechanism and rng must be those of the rele"):
        found.statements(**how, mechanism=MECHANISMS["swapping"], rng=SEED + 1)
    with pytest.raises(ArgumentTypeError, match="rng must be the seed of the release"):
        found.statements(**how, mechanism=MECHANISMS["swapping"])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"prior": RecordPrior(Schema.named("sf1-person"))}, ArgumentError, "prior must be of sch"),
        ({"prior": 0.2}, ArgumentTypeError, "prior must be a RecordPrior"),
        ({"release": "x"}, ArgumentTypeError, "release must be a Release"),
        ({"colour": 1}, ArgumentTypeError, r"options must be those of the attack \(stated, known"),
        ({"truth": 3}, ArgumentTypeError, "truth must be Records or Microdata"),
        ({"without": 3}, ArgumentTypeError, "without must be"),
        ({"prior": RecordPrior(SCHEMA, np.eye(6)[0])}, ArgumentError, "prior must allow records l"),
    ],
)
def test_refusals(change, error, words):
    data, prior = public(people())
    release = released("identity", data)
    found = make_attack("reconstruction", scope="block").run(release)
    how = {"release": release, "prior": prior, "known": ["sex"], "stated": ["race"]}
    with pytest.raises(error, match=words):
        found.statements(**how | change)


def test_records_stand_for_their_composition():
    """Of a value that none of them has the prior is 0."""
    data, _ = public(people())
    release = released("identity", data)
    frame = people(4).to_frame()
    sample = Records.from_frame(frame[frame["race"] < 2], schema=SCHEMA)
    found = make_attack("reconstruction", scope="block").run(release)
    said = found.statements(release=release, prior=sample, known=["sex"], stated=["race"]).frame
    other = sample.to_frame()
    for row in said.to_dict(orient="records"):
        kind = other[other["sex"] == row["sex"]]
        assert row["prior"] == pytest.approx((kind["race"] == row["race"]).mean())
    assert (said["prior"] == 0.0).any()
    tables = {"release": release, "prior": sample, "truth": data, "readable": None}
    claimed = make_attack("claims").run(release).statements(**tables).frame
    assert claimed["prior"].between(0.0, 1.0).all()


def test_results_of_other_packages_write_their_own():
    class Mine(AttackResult):
        pass

    data, prior = public(people())
    with pytest.raises(ArgumentTypeError, match="statements must be written by Mine itself"):
        Mine().statements(release=released("identity", data), prior=prior)
