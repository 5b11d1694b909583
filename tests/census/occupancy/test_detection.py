"""Eq. 1: detection against enumeration, against a fresh program, and with bad input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from occupancy_cases import NAMES, as_blocks, law_of
from oracles import occupancy as oracle
from solver_cases import Silent, WrongPresolve

from bayesrisk.census import (
    detect_occupancy,
    occupancy_statistics,
    population_spec,
    reconstruct_occupancy,
    simulate_population,
)
from bayesrisk.census.occupancy.statistics import OccupancyStatistics, _interval
from bayesrisk.constraints import highs as _highs
from bayesrisk.constraints.search import Relaxation
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import make_attack
from bayesrisk.release import RangeSpec, RoundingSpec, SuppressedCounts
from bayesrisk.tables import Records, Schema, Workload, tabulate

SCHEMA = "household-occupancy"


def random_homes(rng, n, top=9):
    homes = []
    for _ in range(n):
        size = int(rng.integers(1, top))
        children = int(rng.integers(0, size))
        rooms = int(rng.integers(0, 4))
        homes.append((size, int(rng.integers(0, 3)), children, rooms, int(rooms > 0)))
    return homes


def random_statistics(rng, n):
    """Published numbers of a few households, half the time with some of them changed."""
    s = oracle.statistics_of(random_homes(rng, n))
    if rng.random() < 0.5:
        name = str(rng.choice(["population", "children", "hud_people", "hud_households"]))
        s[name] = max(s[name] + int(rng.integers(-2, 3)), 0)
    if rng.random() < 0.3:
        s["hud_bedrooms"] = rng.permutation(s["hud_bedrooms"]).tolist()
    if rng.random() < 0.2:  # households without a published size
        s["sizes"][int(rng.integers(0, 7))] = 0
    return s


@pytest.mark.parametrize("adults", [0, 1])
@pytest.mark.parametrize("open_end", [True, False])
def test_detection_is_that_of_enumeration(adults, open_end):
    rng = np.random.default_rng(20 + adults + 2 * open_end)
    cases = [random_statistics(rng, int(rng.integers(0, 4))) for _ in range(60)]
    found = detect_occupancy(as_blocks(cases), adults=adults, open_end=open_end)
    # Large enough for all people, or all children, in one household.
    expected = [oracle.detect(s, adults=adults, open_end=open_end, top=28) for s in cases]
    assert list(found.status) == expected
    assert {"violation", "possible", "infeasible"} <= set(expected)


def synthetic(seed, n_blocks=300):
    spec = population_spec(
        "county", n_blocks=n_blocks, subsidised_blocks=1.0, occupied_blocks=1.0, quarters_blocks=0.0
    )
    return simulate_population(spec, rng=seed).for_schema(Schema.named(SCHEMA))


@pytest.mark.slow
def test_detection_is_that_of_a_fresh_program_without_presolve():
    seen = {}
    for seed, name in ((31, "identity"), (32, "bottom-up")):
        options = {}
        if name == "bottom-up":
            options = {"sensitivity": "steed-2024", "allocation": "das-2020"}
        release = make_mechanism(name, **options).release(
            synthetic(seed, 650), workload=Workload.named(SCHEMA), rng=seed, places="occupied"
        )
        blocks = occupancy_statistics(release.tables, taken_as_true=True)
        blocks = blocks.take(np.flatnonzero(blocks.hud_households > 0)[:250])
        found = detect_occupancy(blocks)
        assert len(blocks) == 250
        for i, status in enumerate(found.status):
            s = {name: getattr(blocks, name)[i].tolist() for name in NAMES}
            assert status == oracle.detect_by_program(s, adults=1)
            seen[name, status] = seen.get((name, status), 0) + 1
    assert seen["identity", "violation"] > 10
    assert seen["bottom-up", "infeasible"] > 10
    assert ("identity", "infeasible") not in seen


def test_true_tables_never_accuse_wrongly():
    records = synthetic(33)
    frame = records.to_frame()
    small = (frame["bedrooms"] == 1) & (frame["size"] > 2)
    frame["breach"] = small | ((frame["bedrooms"] == 2) & (frame["size"] > 4))
    holding = set(frame.loc[frame["breach"], "block"])
    for hud in ("counts", "percentages"):
        blocks = occupancy_statistics(tabulate(records, Workload.named(SCHEMA)), hud=hud)
        found = detect_occupancy(blocks)
        accused = set(found.geoids[found.violation])
        assert accused
        assert accused <= holding
        assert set(found.status) == {"violation", "possible"}


def one_block(homes):
    columns = ["size", "race_ethnicity", "children", "bedrooms", "subsidised"]
    frame = pd.DataFrame(homes, columns=columns).assign(block="500010101001000")
    return Records.from_frame(frame, schema=Schema.named(SCHEMA))


def test_statistics_are_those_counted_by_hand():
    homes = [(1, 0, 0, 0, 0), (7, 8, 6, 3, 1), (3, 4, 1, 2, 1), (2, 5, 0, 1, 1)]
    found = occupancy_statistics(tabulate(one_block(homes), Workload.named(SCHEMA)))
    expected = oracle.statistics_of(homes)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name)[0], expected[name])
    assert found.largest_people[0] == 12
    assert len(found) == 1


def test_percentages_hold_every_count_that_rounds_so():
    for n in (1, 3, 7, 11, 40, 333):
        homes = [(2, 0, 1, 1, 1)] * n
        tables = tabulate(one_block(homes), Workload.named(SCHEMA))
        assert occupancy_statistics(tables, hud="percentages").hud_children[0, 1] == n
        for count in sorted({0, 1, n // 3, n // 2, n}):
            low, high = _interval(np.array([[count]]), np.array([[n]]))
            percent = int(100 * count / n + 0.5)
            alike = [k for k in range(n + 1) if abs(100 * k - percent * n) * 2 <= n]
            assert (low[0, 0], high[0, 0]) == (min(alike), max(alike))


def test_percentages_accuse_no_block_that_counts_do_not():
    tables = tabulate(synthetic(34), Workload.named(SCHEMA))
    exact = detect_occupancy(occupancy_statistics(tables)).violation
    loose = detect_occupancy(occupancy_statistics(tables, hud="percentages")).violation
    assert not np.any(loose & ~exact)


def test_blocks_without_households_or_subsidies_are_possible():
    empty = oracle.statistics_of([])
    alone = oracle.statistics_of([(5, 0, 2, 0, 0)])
    assert detect_occupancy(as_blocks([empty, alone])).status == ("possible", "possible")
    assert detect_occupancy(as_blocks([empty, alone]).take(np.array([], int))).status == ()


def test_contradictions_are_named_and_never_violations():
    more = oracle.statistics_of([(1, 0, 0, 1, 1)])
    more["hud_households"] = 2  # more than there are households
    rooms = oracle.statistics_of([(1, 0, 0, 1, 1), (1, 0, 0, 0, 0)])
    rooms["hud_bedrooms"] = [1, 1, 0]
    children = oracle.statistics_of([(1, 0, 0, 1, 1)])
    children["hud_children"] = [1, 1]
    found = detect_occupancy(as_blocks([more, rooms, children]))
    assert found.status == ("infeasible",) * 3
    assert not found.violation.any()
    assert {"H3", "HUD-households"} <= set(found.conflict[0].split(", "))
    assert {"HUD-bedrooms", "HUD-households"} <= set(found.conflict[1].split(", "))
    assert "HUD-children" in found.conflict[2]
    assert found.to_frame()["conflict"].tolist() == list(found.conflict)


def by_solver_only(monkeypatch):
    """Make the relaxation say nothing, so that every case goes to the solver."""
    monkeypatch.setattr(
        _highs.HighsWarm, "relax", lambda self, low, high: Relaxation(None, None, None)
    )


def test_a_wrong_infeasible_never_becomes_a_violation(monkeypatch):
    rng = np.random.default_rng(35)
    cases = as_blocks([random_statistics(rng, 4) for _ in range(40)])
    expected = detect_occupancy(cases).status
    by_solver_only(monkeypatch)
    liar = WrongPresolve()
    assert detect_occupancy(cases, solver=liar).status == expected
    assert liar.lies > 20
    assert set(detect_occupancy(cases).way) == {"program"}


def test_a_limit_is_undecided(monkeypatch):
    block = as_blocks([oracle.statistics_of([(3, 0, 1, 1, 1)])])
    assert detect_occupancy(block, time_limit=1.0).status == ("violation",)
    by_solver_only(monkeypatch)
    found = detect_occupancy(block, solver=Silent())
    assert (found.status, found.way) == (("undecided",), ("none",))


def test_interrupts_pass(monkeypatch):
    def stop(self, low, high):
        raise KeyboardInterrupt

    monkeypatch.setattr(_highs.HighsWarm, "relax", stop)
    with pytest.raises(KeyboardInterrupt):
        detect_occupancy(as_blocks([oracle.statistics_of([(3, 0, 1, 1, 1)])]))


def test_the_attack_reads_a_release_only():
    records = synthetic(36, 60)
    release = make_mechanism("identity").release(records, workload=Workload.named(SCHEMA), rng=1)
    attack = make_attack("occupancy", hud="percentages", adults=0)
    direct = detect_occupancy(occupancy_statistics(release.tables, hud="percentages"), adults=0)
    assert attack.run(release).status == direct.status
    with pytest.raises(ArgumentTypeError, match="release must be a Release, got 3"):
        attack.run(3)
    with pytest.raises(ArgumentTypeError, match="is no argument of detect_occupancy"):
        make_attack("occupancy", colour=1)


def test_bad_arguments():
    tables = tabulate(one_block([(3, 0, 1, 1, 1)]), Workload.named(SCHEMA))
    blocks = occupancy_statistics(tables)
    with pytest.raises(ArgumentTypeError, match="tables must be a PublishedTables, got 3"):
        occupancy_statistics(3)
    with pytest.raises(ArgumentError, match="table 'H3' of level 'tract'"):
        occupancy_statistics(tables, level="tract")
    with pytest.raises(ArgumentError, match="hud must be one of"):
        occupancy_statistics(tables, hud="rumours")
    with pytest.raises(ArgumentTypeError, match="blocks must be a OccupancyStatistics, got"):
        detect_occupancy(3)
    with pytest.raises(ArgumentError, match="adults must be <= 1, got 2"):
        detect_occupancy(blocks, adults=2)
    with pytest.raises(ArgumentError, match="time_limit must be > 0"):
        detect_occupancy(blocks, time_limit=0.0)
    with pytest.raises(ArgumentError, match="solver must be"):
        detect_occupancy(blocks, solver="abacus")
    row = {name: getattr(blocks, name) for name in NAMES}
    with pytest.raises(ShapeError, match="sizes must have shape"):
        OccupancyStatistics(blocks.geoids, **{**row, "sizes": row["race"]})
    with pytest.raises(ArgumentError, match="row 1, column hud_children_1: must be at most"):
        OccupancyStatistics(blocks.geoids, **{**row, "hud_children": np.array([[2, 1]])})
    with pytest.raises(ArgumentError, match="households must be >= 0"):
        OccupancyStatistics(blocks.geoids, **{**row, "households": np.array([-1])})


def test_negative_and_suppressed_counts_are_refused_by_name():
    tables = tabulate(one_block([(3, 0, 1, 1, 1)]), Workload.named(SCHEMA))
    key = ("block", "H13")
    changed = tables.counts[key].toarray()
    changed[0, 3] = -2
    noisy = replace(tables, counts={**tables.counts, key: sp.csr_array(changed)})
    name = "tables: block 500010101001000, table H13, cell H0130005: must be"
    with pytest.raises(DataError, match=f"{name} >= 0, got -2"):
        occupancy_statistics(noisy)
    hidden = sp.csr_array(np.eye(7, dtype=bool)[3:4])
    withheld = replace(tables, suppressed={key: hidden})
    with pytest.raises(DataError, match=f"{name} published"):
        occupancy_statistics(withheld, taken_as_true=True)
    with pytest.raises(ArgumentError, match=r"hud must be 'counts'.*got 'percentages'"):
        occupancy_statistics(withheld, hud="percentages")
    key, hidden = ("block", "H3"), sp.csr_array([[True]])
    counts = {**tables.counts, key: sp.csr_array([[0]])}
    with pytest.raises(DataError, match=r"H3.*must be of a count with a largest value"):
        occupancy_statistics(replace(tables, counts=counts, suppressed={key: hidden}))
    laws = {("block", "P1"): RoundingSpec(5, "nearest")}
    with pytest.raises(DataError, match=r"P1.*must be a number that is published, got 3"):
        occupancy_statistics(replace(tables, laws=laws))


OCCUPANCY_LAWS = (
    None, RoundingSpec(2, "nearest"), RoundingSpec(3, "nearest"), RoundingSpec(3, "random"),
    RangeSpec((0, 1, 2, 4), (0, 1, 2, 4), 2), SuppressedCounts(1, 2), SuppressedCounts(1),
)  # fmt: skip


def published_blocks(rng, homes):
    """Tables of one block whose counts are rounded, in ranges or withheld, and how."""
    tables = tabulate(one_block(homes), Workload.named(SCHEMA))
    counts, suppressed, laws = {}, {}, {}
    for key, matrix in tables.counts.items():
        law, own = OCCUPANCY_LAWS[rng.integers(len(OCCUPANCY_LAWS))], matrix.toarray()
        if key[1] == "H3" and isinstance(law, SuppressedCounts):
            law = None  # some table must say how many households there are at most
        if isinstance(law, SuppressedCounts):
            hidden = (own >= law.low) & (own <= law.withheld[1]) & (rng.random(own.shape) < 0.5)
            suppressed[key], own = sp.csr_array(hidden), np.where(hidden, 0, own)
        elif isinstance(law, RoundingSpec):
            below = own // law.base * law.base
            up = rng.random(own.shape) < (own - below) / law.base
            if law.method == "nearest":
                up = 2 * (own - below) >= law.base
            own = below + up * law.base
        elif law is not None:
            own = law.publish(own)
        counts[key] = sp.csr_array(own)
        if law is not None:
            laws[key] = law
    return tables, replace(tables, counts=counts, suppressed=suppressed, laws=laws)


def test_violations_hold_for_every_count_that_is_allowed():
    """Counts drawn among those allowed, and the true ones: none of them leaves another way."""
    rng = np.random.default_rng(8)
    seen = {"violation": 0, "possible": 0}
    for _ in range(30):
        tables, published = published_blocks(rng, random_homes(rng, int(rng.integers(1, 4)), 7))
        blocks = occupancy_statistics(published)
        status = detect_occupancy(blocks).status[0]
        again = OccupancyStatistics.from_frame(blocks.to_frame())
        assert detect_occupancy(again).status == (status,)
        if blocks.most is None:
            assert occupancy_statistics(tables).to_frame().equals(blocks.to_frame())
            continue
        true = occupancy_statistics(tables)
        drawn = {}
        for name in NAMES:
            low, high = getattr(blocks, name), getattr(blocks.most, name)
            high = np.minimum(high, low + 9)  # some have no largest number
            draws = rng.integers(low, high + 1, (12, *low.shape[1:]))
            if name == "hud_children":
                least, largest = low[0]
                draws = rng.integers(least, largest + 1, (12, 1)).repeat(2, axis=1)
            drawn[name] = np.concatenate([getattr(true, name), draws])
        exact = OccupancyStatistics(np.array([f"{i:015d}" for i in range(13)]), **drawn)
        answers = set(detect_occupancy(exact).status)
        assert status in seen  # what was published honestly is never contradictory
        if status == "violation":
            assert answers <= {"violation", "infeasible"}
        seen[status] += 1
    assert min(seen.values()) > 2


def test_rounded_counts_that_contradict_each_other_name_the_tables():
    tables = tabulate(one_block([(2, 0, 1, 1, 1)]), Workload.named(SCHEMA))
    key = ("block", "H13")
    laws = {key: RoundingSpec(3, "nearest"), ("block", "H3"): RoundingSpec(3, "nearest")}
    counts = {
        **tables.counts,
        key: sp.csr_array([[0, 9, 0, 0, 0, 0, 0]]),
        ("block", "H3"): sp.csr_array([[3]]),
    }
    found = detect_occupancy(occupancy_statistics(replace(tables, counts=counts, laws=laws)))
    assert found.status == ("infeasible",)
    assert found.conflict == ("H13, H3",)
    assert found.subsidised.tolist() == [1]


def test_reconstructions_need_one_number_for_each_count():
    tables = tabulate(one_block([(2, 0, 1, 1, 1)]), Workload.named(SCHEMA))
    laws = {("block", "P1"): RangeSpec((0, 1, 4), (0, 2, 4), 1)}
    blocks = occupancy_statistics(replace(tables, laws=laws))
    assert (blocks.population, blocks.most.population) == (1, 3)
    law = law_of([2])
    with pytest.raises(ArgumentError, match=r"one number for each count.*taken_as_true"):
        reconstruct_occupancy(blocks, law, rng=1)
    other = replace(blocks.most, geoids=np.array(["500010101001001"]))
    with pytest.raises(ArgumentError, match="most must be of the same blocks"):
        replace(blocks, most=other)
    with pytest.raises(ArgumentError, match=r"most must be at least.*population is not"):
        replace(blocks, population=blocks.population + 9)
