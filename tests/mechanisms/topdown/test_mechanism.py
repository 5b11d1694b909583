"""The TopDown-like release as a whole, on random trees, schemas and workloads."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import topdown as oracle
from scipy import stats

from bayesrisk.accounting import census_2020_budget
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.mechanisms import TopDown, make_mechanism
from bayesrisk.mechanisms.topdown import families as strategy
from bayesrisk.mechanisms.topdown.mechanism import _noisy
from bayesrisk.tables import Attribute, Microdata, Records, Schema, Workload

SEEDS = st.integers(0, 2**32 - 1)
LEVELS = st.integers(1, 4)


def check_consistent(prepared, rng):
    """Assert that a draw is whole, non-negative, additive, and what its tables are made of."""
    found = prepared.histograms(rng)
    levels = list(found)
    for level in levels:
        counts = found[level].counts
        assert counts.dtype == np.int64
        assert counts.nnz == 0 or counts.data.min() > 0
    for above, below in pairwise(levels):
        assert (found[below].aggregate(above).counts != found[above].counts).nnz == 0
    release = prepared.draw(rng)
    for (level, name), table in prepared.workload.tables.items():
        rows = table.incidence(found[level].schema, np.arange(found[level].schema.size))
        assert ((found[level].counts @ rows.T) != release.tables.counts[level, name]).nnz == 0
    return found, release


@settings(max_examples=25)
@given(
    seed=SEEDS, levels=LEVELS, depth=st.integers(0, 4), zeros=st.booleans(),
    rho=st.sampled_from(["1/100", "1", "20"]),
)  # fmt: skip
def test_draws_are_consistent_and_invariants_and_public_zeros_hold(seed, levels, depth, zeros, rho):
    rng = np.random.default_rng(seed)
    microdata, tables = oracle.world(rng, levels=levels)
    truth = oracle.dense_histograms(microdata, tables)
    names = tables.levels
    exact = [(names[0], "total"), (names[:depth][-1], "total")] if depth else None
    codes = [0, 1] if zeros else []
    prepared = TopDown(
        rho=rho, invariants=exact, zero_patterns={"a0": codes} if zeros else None
    ).prepare(microdata, workload=tables)
    found, release = check_consistent(prepared, seed)
    for level in names[:depth]:
        for row, place in enumerate(found[level].geoids):
            assert (
                release.tables.counts[level, "total"][[row], :].sum() == truth[level][place].sum()
            )
    kind = tables.schema.indices(np.arange(tables.schema.size))["a0"]
    for place, row in zip(found[names[-1]].geoids, found[names[-1]].counts.toarray(), strict=True):
        for code in codes:
            if not truth[names[-1]][place][kind == code].any():
                assert not row[kind == code].any()


@settings(max_examples=40)
@given(seed=SEEDS, levels=LEVELS, rho=st.sampled_from([1, 10**4, 10**9]))
def test_a_detailed_invariant_or_a_huge_budget_returns_the_truth(seed, levels, rho):
    microdata, tables = oracle.world(np.random.default_rng(seed), levels=levels)
    detail = [(tables.levels[-1], " * ".join(tables.schema.names))]
    truth = oracle.dense_histograms(microdata, tables)
    # At 10**4 over some twenty tables a draw differs from 0 with probability exp(-500).
    mechanism = TopDown(rho=rho, invariants=detail if rho == 1 else None)
    for level, found in mechanism.prepare(microdata, workload=tables).histograms(seed).items():
        assert list(found.geoids) == list(truth[level])
        for place, row in zip(found.geoids, found.counts.toarray(), strict=True):
            assert np.array_equal(row, truth[level][place])


def one_world(seed=5, **options):
    return oracle.world(np.random.default_rng(seed), **{"people": 60, **options})


def test_the_spec_of_a_release_builds_the_mechanism_again():
    microdata, tables = one_world()
    mechanism = TopDown(
        rho="3/7",
        level_shares={level: k + 1 for k, level in enumerate(tables.levels)},
        invariants=[("root" if "root" in tables.levels else tables.levels[0], "total")],
        zero_patterns={"a0": [1]},
        measurements=tables,
        rounding=["total"],
    )
    release = mechanism.release(microdata, workload=tables, rng=3)
    parts = release.spec.parameters["budget"].values()
    assert sum(Fraction(rho) for part in parts for rho in part.values()) == Fraction(3, 7)
    again = make_mechanism("topdown", **release.spec.parameters)
    assert again.release(microdata, workload=tables, rng=3).tables == release.tables
    assert release.spec.noise == {}
    assert release.spec.invariants == ((tables.levels[0], "total"),)
    assert mechanism.spec.parameters["rho"] == "3/7"
    assert release.diagnostics == {}


def test_noise_follows_the_law_of_the_budget():
    microdata, tables = one_world(levels=2)
    mechanism = TopDown(rho="1/2")
    prepared = mechanism.prepare(microdata, workload=tables)
    level = prepared.levels[-1]
    nodes, rng = slice(0, level.geoids.size), np.random.default_rng(8)
    noise = mechanism.measurement_noise(tables)
    for number, name in enumerate(tables.at(level.name)):
        truth = level.measured[number].answers.toarray()
        draws = np.concatenate(
            [(_noisy(level, nodes, rng)[number] - truth).ravel() for _ in range(600)]
        )
        law = DiscreteGaussian(noise[level.name, name].scale)
        low, high = int(law.ppf(0.02)), int(law.isf(0.02))
        values = np.clip(draws, low, high)
        expected = law.pmf(np.arange(low, high + 1))
        expected[0], expected[-1] = law.cdf(low), law.sf(high - 1)
        observed = np.bincount(values - low, minlength=expected.size)
        assert stats.chisquare(observed, expected * draws.size).pvalue > 1e-4


def test_two_truths_meet_the_same_noise():
    """Noise is drawn for every node, used or not, so that runs can share it."""
    microdata, tables = one_world(levels=2)
    nobody = replace(microdata, persons=microdata.persons.take(np.zeros(0, dtype=np.int64)))
    drawn = []
    for data in (microdata, nobody):
        prepared, rng = TopDown(rho=1).prepare(data, workload=tables), np.random.default_rng(4)
        prepared.histograms(rng)
        drawn.append(rng.integers(2**60))
    assert drawn[0] == drawn[1]


def test_the_default_is_the_allocation_of_2020():
    tables = Workload.named("pl94", levels=["county", "block_group", "block"])
    budget = census_2020_budget("pl94").set_index(["level", "query"]).rho
    noise = TopDown().measurement_noise(tables)
    names = {"county": "County", "block_group": "Block_Group", "block": "Block"}
    for (level, table), spec in noise.items():
        assert spec.scale == 1 / budget[names[level], table]
    assert {level for level, _ in noise} == set(names)
    assert len(noise) == sum(len(budget[name]) for name in names.values())
    scaled = TopDown(rho=3).measurement_noise(tables)
    assert sum(1 / spec.scale for spec in scaled.values()) == 3
    ratio = {key: scaled[key].scale / noise[key].scale for key in noise}
    assert len(set(ratio.values())) == 1
    nation = TopDown().measurement_noise(Workload.named("pl94", levels=["nation", "state"]))
    assert ("nation", "total") not in nation
    assert nation["nation", "detailed"].scale == 1 / budget["US", "detailed"]


def test_sensitivity_counts_what_a_changed_record_moves():
    tables = Workload.named("household-occupancy").select(tables=["P1", "P15"])
    rows = strategy.matrices(tables)
    assert strategy.squared_sensitivity(rows["block", "P15"]) == 2
    assert strategy.squared_sensitivity(rows["block", "P1"]) == 2 * 7**2
    assert strategy.sigma2(Fraction(1, 4), rows["block", "P1"]) == 196


def pl94_people(counts, seed=0):
    """Return persons of the redistricting schema: block -> how many."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"block": np.repeat(list(counts), list(counts.values()))})
    quarters = frame["block"].str.endswith("7")
    frame["hhgq"] = np.where(quarters & (rng.random(len(frame)) < 0.5), 5, 0)
    frame["votingage"] = (rng.random(len(frame)) < 0.77).astype(int)
    frame["hispanic"] = (rng.random(len(frame)) < 0.2).astype(int)
    frame["cenrace"] = rng.choice(63, size=len(frame), p=np.r_[0.6, 0.2, np.full(61, 0.2 / 61)])
    places = pd.DataFrame({"block": [*counts, "370010002001001"], "x": 0.0, "y": 0.0})
    return Microdata(Records.from_frame(frame, schema=Schema.named("pl94")), None, places)


BLOCKS = {
    f"37001000{tract}00{group}00{k}": 10 * k
    for tract in (1, 3)
    for group in (1, 2)
    for k in range(5, 9)
}


def test_redistricting_persons_with_facilities():
    people = pl94_people(BLOCKS)
    tables = Workload.named("pl94", levels=["county", "tract", "block"])
    quarters = [block for block in BLOCKS if block.endswith(("7", "8"))]
    mechanism = TopDown(
        invariants=[("county", "total"), ("block", "total")],
        zero_patterns={"hhgq": range(1, 8)},
        facilities={"hhgq": {block: [5] for block in quarters}},
    )
    found, release = check_consistent(mechanism.prepare(people, workload=tables), 2)
    for row, place in enumerate(found["block"].geoids):
        kinds = release.tables.counts["block", "hhgq"][[row], :].toarray()[0]
        assert kinds.sum() == BLOCKS.get(str(place), 0)
        assert not kinds[[1, 2, 3, 4, 6, 7]].any()
        if place not in quarters:
            assert kinds[5] == 0
    assert release.spec.invariants == (("county", "total"), ("block", "total"))


def test_facilities_that_miss_records_are_refused():
    people = pl94_people(BLOCKS)
    tables = Workload.named("pl94", levels=["county", "block"])
    mechanism = TopDown(zero_patterns={"hhgq": [5]}, facilities={"hhgq": {}})
    with pytest.raises(DataError, match=r"facilities\['hhgq'\] must list code 5 at '\d{15}'"):
        mechanism.release(people, workload=tables, rng=0)


def test_coarse_tables_without_measurements_are_sums():
    people = pl94_people(BLOCKS)
    tables = Workload.named("pl94", levels=["county", "tract", "block"])
    mechanism = TopDown(rho=1, level_shares={"county": 1, "block": 2})
    release = mechanism.release(people, workload=tables, rng=0)
    blocks, tracts = (
        release.tables.counts[level, "total"].toarray() for level in ("block", "tract")
    )
    assert tracts.sum() == blocks.sum() == sum(BLOCKS.values())
    assert set(release.spec.parameters["budget"]) == {"county", "block"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rho": 0}, "rho must be > 0, got 0"),
        ({"rho": 1, "budget": {"block": {"total": 1}}}, "budget must be given alone"),
        ({"budget": {"block": {"total": -1}}}, r"budget\['block'\]\['total'\] must be > 0, got -1"),
        ({"measurements": 3}, "measurements must be a Workload"),
        ({"invariants": "total"}, "invariants must be pairs"),
        ({"zero_patterns": {"hhgq": [0.5]}}, r"zero_patterns\['hhgq'\] must be a whole number"),
        ({"facilities": {"hhgq": {}}}, r"facilities\['hhgq'\] must have codes in zero_patterns"),
        (
            {"zero_patterns": {"hhgq": [5]}, "facilities": {"hhgq": {"3": [4]}}},
            "must be codes of zero_patterns, got 4",
        ),
        ({"rounding": "total"}, "rounding must be a sequence"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        TopDown(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": {"tract": {"total": 1}}}, "budget names table 'total' at level 'tract'"),
        ({"budget": {"county": {"total": 1}}}, "budget must reach the finest published level"),
        ({"level_shares": {"block": 1, "moon": 1}, "rho": 1}, "level_shares must name .*'moon'"),
        ({"query_shares": {"moon": 1}, "rho": 1}, "query_shares must name a table"),
        ({"invariants": [("block", "moon")]}, "invariants must be tables"),
        (
            {"invariants": [("block", "hhgq"), ("block", "votingage")]},
            "must be 0/1 tables .*nested",
        ),
        ({"invariants": [("county", "hhgq"), ("block", "votingage")]}, "level 'county'"),
        ({"rounding": ["moon"]}, "rounding must name measured tables, got 'moon'"),
        ({"rounding": ["hhgq", "votingage"]}, "rounding must name 0/1 tables nested"),
        ({"zero_patterns": {"hhgq": [8]}}, r"zero_patterns\['hhgq'\] must be in \[0, 7\], got 8"),
        ({"measurements": Workload.named("census-1940")}, "measurements must have the schema"),
    ],
)
def test_what_does_not_fit_the_workload_is_refused(parameters, message):
    tables = Workload.named("pl94", levels=["county", "block"])
    with pytest.raises(ArgumentError, match=message):
        TopDown(**parameters).release(pl94_people(BLOCKS), workload=tables, rng=0)


def test_zeros_allow_invariants_at_one_lower_level():
    tables = Workload.named("pl94", levels=["county", "tract", "block"])
    mechanism = TopDown(
        invariants=[("tract", "total"), ("block", "total")], zero_patterns={"hhgq": [5]}
    )
    with pytest.raises(ArgumentError, match=r"one level below the top .* got tract, block"):
        mechanism.release(pl94_people(BLOCKS), workload=tables, rng=0)


def test_other_refusals():
    microdata, tables = one_world()
    with pytest.raises(ArgumentError, match="rho must be given"):
        TopDown().release(microdata, workload=tables, rng=0)
    large = Schema("large", (Attribute("a", 100_001),), tables.schema.geography)
    wide = Workload(large, {(tables.levels[-1], "total"): oracle.cross(large, [])})
    with pytest.raises(ArgumentError, match="at most 100000 cells, got 100001"):
        TopDown(rho=1).release(microdata, workload=wide, rng=0)
    with pytest.raises(ArgumentError, match="no level 'supdist'"):
        strategy.census_2020_allocation(["supdist"])


def test_nobody_anywhere_is_refused():
    empty = pl94_people(BLOCKS).persons.take(np.zeros(0, dtype=np.int64))
    with pytest.raises(ArgumentError, match=r"at least|must have a record"):
        TopDown().release(
            empty, workload=Workload.named("pl94", levels=["block"]), rng=0, places="occupied"
        )


@pytest.mark.slow
@settings(max_examples=3)
@given(seed=SEEDS)
def test_a_tract_of_redistricting_persons(seed):
    counts = {
        f"3700100010010{k:02d}": int(n)
        for k, n in enumerate(np.random.default_rng(seed).integers(0, 120, 30))
    }
    tables = Workload.named("pl94", levels=["tract", "block_group", "block"])
    prepared = TopDown().prepare(pl94_people(counts, seed), workload=tables)
    found, _ = check_consistent(prepared, seed)
    assert found["tract"].counts.sum() == sum(counts.values())
