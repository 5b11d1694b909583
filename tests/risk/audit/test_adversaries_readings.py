"""How releases are read, who asks, and which releases are sums of records and noise."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SCHEMA, SWAP

from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import RecordPrior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import NoiseSpec, TrueCounts
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.adversaries import prior_knowing
from bayesrisk.risk.audit.reading import readings
from bayesrisk.risk.audit.surroundings import MECHANISM, audit_rng
from bayesrisk.risk.statements.residual import is_additive
from bayesrisk.tables import Microdata, Records, Table, Workload, tabulate

WORKLOAD = Workload(
    SCHEMA,
    {
        ("tract", "N"): Table("N", ("all",), {}),
        ("block", "R"): Table("R", ("a", "b", "c"), {"race": np.eye(3, dtype=int)}),
        ("block", "S"): Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)}),
    },
)
#: Of the levels and tables above, add-remove.
SHARES = {
    "level_shares": {"tract": "1/2", "block": "1/2"},
    "table_shares": {"N": "1/2", "R": "1/4", "S": "1/4"},
    "sensitivity": "add-remove",
}
TOPDOWN = {"rho": 1, "level_shares": SHARES["level_shares"]}


def people(rows=None):
    """Return 12 people of three blocks, one of which has one resident."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, 12),
            "race": rng.integers(0, 3, 12),
            "block": ["100"] * 6 + ["101"] * 5 + ["102"],
        }
    )
    return Records.from_frame(frame if rows is None else frame.iloc[rows], schema=SCHEMA)


def population(adversaries=EVERYBODY, concentration=3.0, rows=None):
    question = AuditQuestion(WORKLOAD, ("race",), adversaries, concentration)
    return AuditedPopulation(people(rows), question, seed=1)


def statements(mechanism, rows=(0, 7, 11), **options):
    of = population(**options)
    return of.statements("p", "p", 0, mechanism, of.release("p", 0, mechanism), np.array(rows))


NOISY = [
    make_mechanism("identity"),
    make_mechanism("discrete-gaussian", rho=1, **SHARES),
    make_mechanism("discrete-laplace", epsilon=1, **SHARES),
]
OTHERS = [
    make_mechanism("rounding", base=3, method="random"),
    make_mechanism("swapping", rate="0.3", **SWAP),
]


@pytest.mark.parametrize("mechanism", NOISY, ids=["identity", "gaussian", "laplace"])
def test_additive_releases_without_a_record_differ_by_the_record(mechanism):
    """So that what is found from the release less a record is what a second release would say."""
    of = population()
    release = of.release("p", 0, mechanism)
    assert is_additive(release.spec)
    for row in range(12):
        less = of.release("p", 0, mechanism, without_row=row)
        kept = np.delete(np.arange(12), row)
        own = tabulate(people([row]), WORKLOAD)
        assert len(people(kept)) == 11
        for key, counts in release.tables.counts.items():
            difference = (counts - less.tables.counts[key]).toarray()
            at = np.searchsorted(release.tables.geoids[key[0]], own.geoids[key[0]][0])
            expected = np.zeros(difference.shape, int)
            expected[at] = own.counts[key].toarray()[0]
            np.testing.assert_array_equal(difference, expected)


@pytest.mark.parametrize(
    "mechanism", [*NOISY, *OTHERS, make_mechanism("suppression", threshold=3)], ids=repr
)
def test_releases_are_those_of_the_mechanism_itself(mechanism):
    """What is prepared once draws what the mechanism releases of the data, or of all but one."""
    of = population()
    for number in (0, 1, 0):
        seed = int(audit_rng(1, MECHANISM, number, *b"p").integers(2**63))
        for row in (None, 0, 7, 11):
            kept = np.arange(12) if row is None else np.delete(np.arange(12), row)
            data = Microdata(persons=people(kept), blocks=of.data.blocks)
            expected = mechanism.release(data, workload=WORKLOAD, rng=seed)
            made = of.release("p", number, mechanism, without_row=row)
            assert made.tables == expected.tables
            assert made.spec == expected.spec
            assert made.diagnostics == expected.diagnostics


def test_other_releases_are_not_taken_to_be_additive():
    of = population()
    for mechanism in OTHERS:
        release = of.release("p", 0, mechanism)
        assert not is_additive(release.spec)
        changed = 0
        for row in range(12):
            less = of.release("p", 0, mechanism, without_row=row)
            for key, counts in release.tables.counts.items():
                changed += int(np.abs((counts - less.tables.counts[key]).toarray()).sum())
        assert changed != 12 * 3  # a record has one cell of every table


@pytest.mark.parametrize("mechanism", [NOISY[0], *OTHERS], ids=["identity", "rounding", "swapping"])
def test_a_place_that_loses_its_only_resident_is_still_a_place(mechanism):
    found = statements(mechanism, rows=(11,))
    assert set(found["place"]) == {"102"}
    assert found[["prior", "without", "posterior"]].notna().all(axis=None)


def test_withheld_counts_that_bound_nothing_leave_a_belief():
    mechanism = make_mechanism("suppression", threshold=12)
    found = statements(mechanism, rows=(0, 11), adversaries=EVERYBODY[:2])
    sums = found.groupby(["adversary", "target"])[["prior", "without", "posterior"]].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)


def test_who_knows_all_others_of_nobody_is_not_an_outsider():
    """In a place of one person both know no record, but one knows how many there are."""
    noise = make_mechanism("discrete-gaussian", rho="1/2", **SHARES)
    both = statements(noise, (11,), adversaries=(EVERYBODY[0], EVERYBODY[3]))
    alone = statements(noise, (11,), adversaries=(EVERYBODY[3],))
    found = both[both["adversary"] == "knows-all-but-one"]
    assert (found["engine"] == "exact").all()
    np.testing.assert_array_equal(found["posterior"], alone["posterior"])


def test_records_known_to_an_insider_do_not_make_a_rounded_release_impossible():
    found = statements(OTHERS[0], rows=(0, 5, 8, 11))
    assert "unstated" not in set(found["status"])


def test_nobody_like_the_target_in_swapped_tables_leaves_the_prior():
    found = statements(OTHERS[1], rows=range(12))
    assert found[["prior", "without", "posterior"]].notna().all(axis=None)
    nobody = found[found["status"] == "unstated"]
    assert len(nobody)
    np.testing.assert_allclose(nobody["posterior"], nobody["prior"])


def test_readings_of_every_kind():
    of = population()
    for mechanism in NOISY:
        (one,) = readings(of.release("p", 0, mechanism), {})
        assert (one.name, one.moved) == ("likelihood", 0.0)
    swapped = of.release("p", 0, OTHERS[1])
    naive, aware = readings(swapped, {})
    assert (naive.name, aware.name, naive.moved) == ("as-true", "swap-aware", 0.0)
    assert aware.moved == float(Fraction(OTHERS[1].spec.parameters["rate"]))
    assert set(aware.release.spec.tables.values()) == {TrueCounts()}
    release = of.release("p", 0, make_mechanism("topdown", **TOPDOWN))
    (working,) = readings(release, {("block", "R"): 2.5})
    assert working.name == "working-error"
    assert working.release.spec.tables["block", "R"] == NoiseSpec("discrete-gaussian", "5/2")
    assert working.release.spec.tables["block", "S"].scale == Fraction(1, 10**4)


@pytest.mark.parametrize("concentration", [3.0, 40.0])
def test_who_knows_of_the_exchange_reckons_with_one_who_is_counted_elsewhere(concentration):
    of = population(adversaries=(EVERYBODY[0], EVERYBODY[3]), concentration=concentration)
    release = of.release("p", 0, OTHERS[1])
    found = of.statements("s", "p", 0, OTHERS[1], release, np.array([0, 7]))
    r = float(Fraction(release.spec.parameters["rate"]))
    assert r > 0
    both = [found[found["attack"] == name].reset_index(drop=True) for name in
            ("as-true", "swap-aware")]  # fmt: skip
    naive, aware = (one[one["adversary"] == "outsider"] for one in both)
    counts = release.tables.count("block", "R", "100"), release.tables.count("block", "R", "101")
    for (_, row), as_true in zip(aware.iterrows(), naive["posterior"], strict=True):
        here = counts[row["place"] == "101"]
        value = ["race 0", "race 1", "race 2"].index(row["statement"])
        one_more = (concentration * row["prior"] + here[value]) / (concentration + here.sum())
        assert row["posterior"] == pytest.approx(r * one_more + (1 - r) * as_true)
    np.testing.assert_allclose(aware["without"], naive["without"])
    naive, aware = (one[one["adversary"] == "knows-all-but-one"] for one in both)
    told = naive["prior"] * r + naive["posterior"] * (1 - r)
    np.testing.assert_allclose(aware["posterior"], told)


def test_known_records_teach_what_a_place_is_like():
    prior = RecordPrior(SCHEMA, np.full(6, 1 / 6), 3.0, np.full(9, 1 / 9))
    known = np.array([2.0, 0, 0, 1, 0, 0])
    found = prior_knowing(prior, known, None)
    assert found.concentration == 6.0
    np.testing.assert_allclose(found.shares, (0.5 + known) / 6.0)
    np.testing.assert_allclose(found.size, np.full(6, 1 / 6))
    np.testing.assert_array_equal(prior_knowing(prior, known, 1).size, [0.0, 1.0])
    independent = prior_knowing(RecordPrior(SCHEMA), known, 1)
    assert independent.concentration is None
    np.testing.assert_allclose(independent.shares_of_cells, 1 / 6)


def test_refusals():
    with pytest.raises(ArgumentError, match="neighbours must be"):
        Adversary("x", (), 1.5)
    with pytest.raises(ArgumentError, match="at least one record"):
        population(rows=[])
