"""Reconstruction, the majority and claims on one scale, against complete enumeration."""

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SCHEMA, SWAP, homes, town
from oracles import audit as oracle, occupancy, record_law
from random_places import place

from bayesrisk.census.studies.occupancy_beliefs import ViolationAttack
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import RecordPrior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, SuppressedCounts, TrueCounts
from bayesrisk.risk.audit import (
    METHODS,
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    attacks,
    audit_measures,
    audit_targets,
    available_methods,
    population,
)
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.risk.audit.attacks import MajorityAttack, infer_by_attack, place_tables
from bayesrisk.risk.audit.place_beliefs import AuditTarget, PlaceReading, infer
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.tables import PublishedTables, Table, Workload

NOBODY = np.zeros(0, np.int64)
AS_TRUE = METHODS[1:4]


class Case:
    """A random place with true counts, all its records as targets, and all data sets that fit."""

    def __init__(self, seed, kind="exact"):
        rng = np.random.default_rng([seed, 5])
        self.release, self.prior, self.terms, (self.truth,) = place(seed, kind)
        shape = self.prior.schema.shape
        self.index = np.indices(shape).reshape(len(shape), -1)
        known = len(shape) > 1 and rng.random() < 0.7
        self.targets = []
        for cell in np.flatnonzero(self.truth).tolist():
            possible = np.ones(self.truth.size, bool)
            if known:
                possible = self.index[0] == self.index[0][cell]
            asked = TargetQuestion(possible, self.index[-1].astype(np.int64), shape[-1])
            self.targets.append(AuditTarget(cell, cell, asked, NOBODY, False))

    def told(self, method):
        reading = Reading(method, self.release)
        one = PlaceReading(reading, "block", "100", self.prior, True, None, (1,))
        return list(
            infer(one, self.targets)
            if method == "law"
            else infer_by_attack(method, one, self.targets)
        )

    def feasible(self, off=None):
        """Return all data sets of at most four with the counts, less one record of a cell."""
        taken = np.zeros(self.truth.size, int)
        if off is not None:
            taken[off] = 1
        every = (np.array(x) for x in record_law.histograms(self.truth.size, 4))
        return [
            x
            for x in every
            if all(value(int(np.dot(w, x + taken))) == 0.0 for _, w, value in self.terms[5])
        ]


def by_group(asked, x):
    return np.bincount(asked.value[asked.possible], x[asked.possible], minlength=asked.values)


def expected_claims(case, target, feasible):
    """Return the prior of the values that some data set leaves to somebody like the target."""
    left = np.array([by_group(target.question, x) for x in feasible]).sum(axis=0) > 0
    prior = by_group(target.question, case.prior.shares_of_cells)
    if left.all() or not (prior * left).any():
        return prior / prior.sum()
    return prior * left / (prior * left).sum()


CASES = [case for case in map(Case, range(26)) if case.targets]


def test_claims_are_certain_exactly_where_all_data_sets_agree():
    certain = open_ = 0
    for case in CASES:
        feasible = case.feasible()
        for target, told in zip(case.targets, case.told("claims"), strict=True):
            expected = expected_claims(case, target, feasible)
            np.testing.assert_allclose(told.posterior.probability, expected, atol=1e-12)
            alone = expected_claims(case, target, case.feasible(target.cell))
            np.testing.assert_allclose(told.without.probability, alone, atol=1e-12)
            sure = told.posterior.probability.max() == 1.0
            assert (told.status == "proved") == (sure and told.status != "unstated")
            certain, open_ = certain + sure, open_ + (not sure)
    assert min(certain, open_) > 6


def test_where_records_are_unique_reconstruction_claims_and_the_law_agree():
    """Each of two of them is compared with enumeration, weighed by the prior."""
    unique = agreed = sure = 0
    for case in CASES:
        law = record_law.posterior(*case.terms)
        told = (case.told(name) for name in ("reconstruction", "claims", "law"))
        for target, rebuilt, claimed, exact in zip(case.targets, *told, strict=True):
            asked = target.question
            enumerated = oracle.after(
                law, asked.possible.tolist(), asked.value.tolist(), asked.values
            )
            if rebuilt.status == "proved":
                unique += 1
                np.testing.assert_allclose(rebuilt.posterior.probability, enumerated, atol=1e-9)
                if exact.status == "calculated":
                    agreed += 1
                    np.testing.assert_allclose(
                        rebuilt.posterior.probability, exact.posterior.probability, atol=1e-9
                    )
            if claimed.posterior.probability.max() == 1.0 and claimed.status == "proved":
                sure += 1
                np.testing.assert_allclose(claimed.posterior.probability, enumerated, atol=1e-9)
                at = int(claimed.posterior.probability.argmax())
                # A prior without any such record cannot share out what was reconstructed.
                assert rebuilt.status == "unstated" or rebuilt.posterior.probability[
                    at
                ] == pytest.approx(1.0, abs=1e-12)
    assert min(unique, agreed, sure) > 9


SEX, RACE = np.eye(2, dtype=int), np.eye(3, dtype=int)
BOTH = {
    "sex": np.repeat(SEX, 3, axis=0),
    "race": np.tile(RACE, (2, 1)),
}
WORKLOAD = Workload(
    SCHEMA,
    {
        ("tract", "R"): Table("R", ("a", "b", "c"), {"race": RACE}),
        ("block", "R"): Table("R", ("a", "b", "c"), {"race": RACE}),
        ("block", "B"): Table("B", tuple("uvwxyz"), BOTH),
    },
)
SHARES = {
    "level_shares": {"tract": "1/4", "block": "3/4"},
    "table_shares": {"R": "1/2", "B": "1/2"},
    "sensitivity": "add-remove",
}


def people(seed=0):
    return town(seed, 30, ["100", "101", "102", "103"], [0.5, 0.3, 0.15, 0.05])


def audited(mechanism, methods=AS_TRUE, who=EVERYBODY, seed=0, rows=None):
    question = AuditQuestion(WORKLOAD, ("race",), who, 3.0, methods=methods)
    of = AuditedPopulation(people(seed), question, seed=seed)
    rows = np.arange(len(of.records)) if rows is None else np.array(rows)
    return of.statements("p", "p", 0, mechanism, of.release("p", 0, mechanism), rows)


@pytest.mark.parametrize(
    "mechanism",
    [
        make_mechanism("identity"),
        make_mechanism("discrete-gaussian", rho=2, **SHARES),
        make_mechanism("discrete-laplace", epsilon=2, **SHARES),
    ],
    ids=["identity", "gaussian", "laplace"],
)
def test_without_by_subtraction_is_without_by_a_second_release(mechanism, monkeypatch):
    rows = [0, 3, 11, 20]
    quick = audited(mechanism, rows=rows)
    monkeypatch.setattr(population, "is_additive", lambda spec: False)
    slow = audited(mechanism, rows=rows)
    pd.testing.assert_frame_equal(quick, slow)
    assert set(quick["attack"]) == set(AS_TRUE)


def test_who_knows_all_others_reconstructs_and_proves_the_target_from_true_counts():
    found = audited(make_mechanism("identity"))
    sure = found[(found["adversary"] == "knows-all-but-one") & (found["attack"] != "majority")]
    assert len(sure)
    assert set(sure["status"]) == {"proved"}
    np.testing.assert_array_equal(sure["posterior"], sure["correct"].astype(float))
    np.testing.assert_allclose(sure["without"], sure["prior"])  # nobody is left to speak of


def test_the_majority_says_the_counts_of_the_place_whoever_asks():
    of = people()
    block = of.places()[0][of.places()[1]]
    race = of.to_frame()["race"].to_numpy()
    for name, less in (("posterior", 0), ("without", 1)):
        found = audited(make_mechanism("identity"), ("majority",))
        for target, rows in found.groupby("target"):
            here = np.bincount(race[block == block[int(target)]], minlength=3)
            here[race[int(target)]] -= less
            if here.sum():
                for _, one in rows.groupby("adversary"):
                    value = one["statement"].str[-1].astype(int)
                    np.testing.assert_allclose(one[name], (here / here.sum())[value])


def tables(race, both, tract=(5, 3, 0)):
    counts = {("tract", "R"): [tract], ("block", "R"): [race], ("block", "B"): [both]}
    geoids = {"tract": ["1"], "block": ["100"]}
    return PublishedTables(WORKLOAD, geoids, {k: np.array(v) for k, v in counts.items()})


def test_the_majority_of_a_place_without_counts_is_that_of_the_next_larger():
    prior = RecordPrior(SCHEMA, np.full(6, 1 / 6), 2.0)
    asked = TargetQuestion(np.ones(6, bool), np.tile(np.arange(3), 2), 3)

    def parts(published):
        around = (place_tables(published, *p, NOBODY) for p in (("block", "100"), ("tract", "1")))
        return MajorityAttack(around, prior).weights(asked, prior)

    nothing = [0, 0, 0], [0] * 6
    np.testing.assert_allclose(parts(tables(*nothing)), [5, 3, 0], atol=1e-9)
    # Counts by sex and race are not about race alone, and counts below 0 are none.
    np.testing.assert_allclose(parts(tables([4, -1, 1], [9] * 6)), [4, 0, 1], atol=1e-9)
    assert parts(tables(*nothing, tract=(0, 0, -2))) is None


def test_counts_that_leave_values_open_are_shared_as_in_the_prior():
    """Published: a or b, and b or c; least squares and what is least against the prior's roots."""
    table = Table("T", ("ab", "bc"), {"race": np.array([[1, 1, 0], [0, 1, 1]])})
    workload = Workload(SCHEMA, {("block", "T"): table})
    published = PublishedTables(workload, {"block": ["100"]}, {("block", "T"): np.array([[6, 4]])})
    shares = np.array([0.5, 0.3, 0.2])
    prior = RecordPrior(SCHEMA, np.tile(shares / 2, 2), 2.0)
    asked = TargetQuestion(np.ones(6, bool), np.tile(np.arange(3), 2), 3)
    found = MajorityAttack([published], prior).weights(asked, prior)
    # Numbers (6 - b, b, 4 - b) with the least sum of squares over shares.
    b = (6 / 0.5 + 4 / 0.2) / (1 / 0.5 + 1 / 0.3 + 1 / 0.2)
    np.testing.assert_allclose(found, [6 - b, b, max(4 - b, 0.0)], atol=1e-9)


def test_tables_that_contradict_prove_nothing_and_are_met_by_the_nearest_records():
    noise = make_mechanism("discrete-gaussian", rho="1/2", **SHARES)
    found = audited(noise, ("reconstruction", "claims"), EVERYBODY[:2])
    assert "proved" not in set(found["status"])
    rebuilt = found[found["attack"] == "reconstruction"]
    assert "nearest" in set(rebuilt["engine"])
    sums = found.groupby(["attack", "adversary", "target"])[["prior", "without", "posterior"]].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)


def test_certain_claims_are_true_of_true_counts_and_stop_being_so_in_swapped_ones():
    swap = make_mechanism("swapping", rate="0.5", **SWAP)
    totals = dict.fromkeys(("identity", "swapped"), 0)
    false, proved = dict(totals), dict(totals)
    for seed, (name, mechanism) in itertools.product(
        range(8), (("identity", make_mechanism("identity")), ("swapped", swap))
    ):
        found = audited(mechanism, ("claims",), EVERYBODY[1:2], seed=seed, rows=range(0, 30, 3))
        row = audit_measures(audit_targets(found)).iloc[0]
        totals[name] += row["certain"]
        false[name] += row["false"]
        proved[name] += int((found["status"] == "proved").sum())
    assert min(totals.values()) > 8
    assert false["identity"] == proved["swapped"] == 0
    assert proved["identity"] > 20
    assert false["swapped"] > 1


def test_one_reconstruction_of_several_is_believed_where_the_law_has_a_doubt():
    """Negative control: a man and a woman, one of race a and one of race b; who is which?"""
    margins = {"S": Table("S", ("m", "f"), {"sex": SEX}), "R": WORKLOAD.at("block")["R"]}
    workload = Workload(SCHEMA, {("block", name): table for name, table in margins.items()})
    counts = {("block", "S"): np.array([[1, 1]]), ("block", "R"): np.array([[1, 1, 0]])}
    release = Release(
        MechanismSpec("none", {}, {}, others=TrueCounts()),
        PublishedTables(workload, {"block": ["100"]}, counts),
    )
    prior = RecordPrior(SCHEMA, np.full(6, 1 / 6), None, np.full(5, 0.2))
    asked = TargetQuestion(np.repeat([True, False], 3), np.tile(np.arange(3), 2), 3)
    one = PlaceReading(Reading("r", release), "block", "100", prior, True, None, (1,))
    target = AuditTarget(0, 0, asked, NOBODY, False)
    (rebuilt,) = infer_by_attack("reconstruction", one, [target])
    (claimed,) = infer_by_attack("claims", one, [target])
    (exact,) = infer(one, [target])
    np.testing.assert_allclose(exact.posterior.probability, [0.5, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(claimed.posterior.probability, [0.5, 0.5, 0.0], atol=1e-12)
    assert sorted(rebuilt.posterior.probability.tolist()) == [0.0, 0.0, 1.0]
    assert (rebuilt.status, rebuilt.engine, claimed.status) == ("believed", "feasible", "believed")


def test_counts_that_are_withheld_leave_the_prior():
    """Negative control: everything withheld says nothing, whatever the attack."""
    counts = tables([0] * 3, [0] * 6, tract=(0, 0, 0))
    hidden = {key: np.ones(value.shape, bool) for key, value in counts.counts.items()}
    withheld = PublishedTables(WORKLOAD, counts.geoids, counts.counts, hidden)
    release = Release(MechanismSpec("w", {}, {}, others=SuppressedCounts()), withheld)
    prior = RecordPrior(SCHEMA, np.full(6, 1 / 6), 2.0)
    asked = TargetQuestion(np.ones(6, bool), np.tile(np.arange(3), 2), 3)

    def again(_):
        return Reading("again", release)

    for method in AS_TRUE:
        one = PlaceReading(Reading(method, release), "block", "100", prior, False, again, (1,))
        (told,) = infer_by_attack(method, one, [AuditTarget(0, 0, asked, NOBODY, False)])
        assert told.status == "unstated"
        np.testing.assert_allclose(told.posterior.probability, 1 / 3)
        np.testing.assert_allclose(told.without.probability, 1 / 3)


def test_a_spec_with_one_noisy_table_proves_nothing():
    # A copy: other tests, in whatever order they run, ask about the case as it was.
    case = copy.copy(next(c for c in CASES if c.told("claims")[0].status == "proved"))
    laws = dict(case.release.spec.tables)
    noise = NoiseSpec("discrete-gaussian", 1)
    laws[next(iter(laws))] = noise
    for spec in (MechanismSpec("a", {}, laws), MechanismSpec("b", {}, {}, others=noise)):
        case.release = Release(spec, case.release.tables)
        for method in ("claims", "reconstruction"):
            assert "proved" not in {told.status for told in case.told(method)}


HOMES = Workload.named("household-occupancy")


def over_limit_given(prior, units, possible):
    """P(target over the limit | n of N subsidised, one over), by listing who is of which kind.

    Kinds: over the limit, subsidised within it, not subsidised; each also as the target's or not.
    """
    code = {a.name: i + a.first for a, i in zip(
        HOMES.schema.attributes, HOMES.schema.indices(np.arange(HOMES.schema.size)).values(),
        strict=True)}  # fmt: skip
    breach = [occupancy.breach(r, x) for r, x in zip(code["bedrooms"], code["size"], strict=True)]
    helped = code["subsidised"] == 1
    kind = np.where(helped & breach, 0, np.where(helped, 1, 2))
    mass = np.bincount(2 * kind + possible, prior.shares, minlength=6)
    subsidised = int((units["subsidised"] == 1).sum())
    parts = np.zeros(2)
    for kinds in itertools.product(range(6), repeat=len(units)):
        of = np.array(kinds) // 2
        if not kinds[0] % 2 or (of < 2).sum() != subsidised or not (of == 0).any():
            continue
        weight = 1.0
        for i, one in enumerate(kinds):
            seen = kinds[:i].count(one)
            weight *= (prior.concentration * mass[one] + seen) / (prior.concentration + i)
        parts[int(of[0] == 0)] += weight
    return parts / parts.sum() if parts.any() else None  # nobody of the kind can live there


def test_occupancy_says_of_a_household_what_its_block_must_hold():
    """Against every way in which the households of a block can be."""
    who = (Adversary("outsider"), Adversary("linker", ("subsidised", "race_ethnicity")))
    question = AuditQuestion(HOMES, ("over_limit",), who, 6.0, methods=("occupancy",))
    assert question.values == ["within the occupancy limit", "over its occupancy limit"]
    checked = {"believed": 0, "unstated": 0, "proved": 0}
    for seed in range(4):
        records = homes(seed, 12, 4, races=2)
        of = AuditedPopulation(records, question, seed=seed)
        none = make_mechanism("identity")
        release = of.release("none", 0, none)
        rows = np.arange(len(records))
        found = of.statements("none", "none", 0, none, release, rows)
        frame = records.to_frame()
        for (who_asks, target), told in found.groupby(["adversary", "target"]):
            row, (status,) = int(target), set(told["status"])
            units = frame[frame["block"] == frame["block"][row]]
            prior = of.prior(int(of.place[row]))
            adversary = next(a for a in who if a.name == who_asks)
            possible = question.target_question(adversary, int(of.cells[row])).possible
            for name, group in (("posterior", units), ("without", units.drop(row))):
                if len(group) > 4:
                    continue
                rest = [
                    tuple(h)
                    for h in group[
                        ["size", "race_ethnicity", "children", "bedrooms", "subsidised"]
                    ].to_numpy()
                ]
                counts = occupancy.statistics_of(rest)
                said = occupancy.detect_by_program(counts, adults=1) if rest else "possible"
                law = over_limit_given(prior, group, possible) if said == "violation" else None
                over = told["statement"].str.startswith("over").astype(int)
                expected = told["prior"] if law is None else law[over]
                np.testing.assert_allclose(told[name], expected, atol=1e-9)
                if name == "posterior":
                    checked[status] += 1
                    assert (status == "unstated") == (law is None)
            if status == "proved":
                assert told.set_index("correct")["posterior"][True] == 1.0
    assert min(checked.values()) > 0


def test_occupancy_without_a_record_by_subtraction_and_by_a_second_release(monkeypatch):
    question = AuditQuestion(
        HOMES, ("over_limit",), (Adversary("outsider"),), 6.0, methods=("occupancy",)
    )
    none = make_mechanism("identity")
    quick, slow = [], []
    for told in (quick, slow):
        of = AuditedPopulation(homes(1, 12, 4, races=2), question, seed=1)
        told.append(
            of.statements("none", "none", 0, none, of.release("none", 0, none), np.arange(12))
        )
        monkeypatch.setattr(population, "is_additive", lambda spec: False)
    pd.testing.assert_frame_equal(quick[0], slow[0])
    assert (quick[0]["without"] != quick[0]["posterior"]).any()


def test_occupancy_of_withheld_or_negative_counts_says_nothing():
    records = homes(1, 12, 4, races=2)
    tables = make_mechanism("identity").release(records, workload=HOMES, rng=1).tables
    counts = {key: value.toarray() for key, value in tables.counts.items()}
    counts["block", "H3"][:] = -1
    below = PublishedTables(HOMES, tables.geoids, counts)
    prior = RecordPrior.uniform_data_sets(HOMES.schema)
    asked = TargetQuestion(np.ones(HOMES.schema.size, bool), np.zeros(HOMES.schema.size, int), 1)
    code = str(tables.geoids["block"][0])
    assert ViolationAttack(place_tables(below, "block", code, NOBODY)).weights(asked, prior) is None


def test_occupancy_is_refused_where_tables_are_not_of_households():
    asked = {"concentration": 3.0, "methods": ("occupancy",)}
    with pytest.raises(ArgumentError, match="methods must not name occupancy for schema 'people'"):
        AuditQuestion(WORKLOAD, ("race",), EVERYBODY, **asked)
    few = HOMES.select(tables=["P1", "H13"])
    with pytest.raises(ArgumentError, match="for these tables: 'block' has no H3, P15"):
        AuditQuestion(few, ("size",), EVERYBODY[:1], **asked)
    with pytest.raises(ArgumentError, match="stated must not name occupancy for schema 'people'"):
        _ = AuditQuestion(WORKLOAD, ("over_limit",), EVERYBODY[:1], 3.0)


def test_a_statement_that_is_no_attribute_is_known_to_nobody():
    with pytest.raises(ArgumentError, match="known must be one of size"):
        AuditQuestion(HOMES, ("race_ethnicity",), [Adversary("linker", ("over_limit",))], 3.0)


class Quarters:
    """Says of everybody that the first value has three chances of four, the second one."""

    engine, proof = "quarters", True

    def __init__(self, tables):
        self.people = int(tables.count("block", "P1", str(tables.geoids["block"][0])).sum())

    def weights(self, question, prior):
        return np.r_[3.0, 1.0, np.zeros(question.values - 2)] if self.people > 1 else None

    @staticmethod
    def check(workload):
        if "P1" not in workload.at("block"):
            raise ArgumentError("methods must not be quarters without P1")


def test_a_method_of_another_package_is_asked_as_the_packages_own(monkeypatch):
    monkeypatch.setattr(attacks.REGISTRY, "_registered", {"quarters": Quarters})
    assert available_methods() == (*METHODS, "quarters")
    asked = {"concentration": 3.0, "methods": ("quarters",)}
    question = AuditQuestion(HOMES, ("size",), EVERYBODY[:1], **asked)
    of = AuditedPopulation(homes(1, 12, 4, races=2), question, seed=1)
    none = make_mechanism("identity")
    told = of.statements("none", "none", 0, none, of.release("none", 0, none), np.arange(12))
    assert set(told["attack"]) == {"quarters"}
    assert set(told["engine"]) == {"quarters"}
    assert set(told["status"]) == {"proved"}
    values = told["statement"].map({"1": 0.75, "2": 0.25}).fillna(0.0)
    np.testing.assert_allclose(told["posterior"], values, atol=1e-12)
    # Without the target one person is left in some places, of whom nothing is said.
    silent = told["without"] == told["prior"]
    np.testing.assert_allclose(told["without"], values.where(~silent, told["prior"]), atol=1e-12)
    assert 0 < silent.sum() < len(told)
    with pytest.raises(ArgumentError, match="without P1"):
        AuditQuestion(HOMES.select(tables=["H3"]), ("size",), EVERYBODY[:1], **asked)
