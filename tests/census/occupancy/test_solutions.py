"""Eq. 2, the best t, Eq. 8 and Eq. 3 against enumeration of tiny blocks."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from occupancy_cases import NAMES, as_blocks, law_of
from oracles import occupancy as oracle
from solver_cases import Silent

from bayesrisk.census import (
    HouseholdLaw,
    detect_occupancy,
    occupancy_statistics,
    occupancy_variability,
    reconstruct_occupancy,
)
from bayesrisk.census.occupancy.household_law import UNIT
from bayesrisk.constraints import solvers as model
from bayesrisk.constraints.highs import HighsWarm
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.tables import Records, Schema, Workload, tabulate


def random_sample(rng, kinds=6):
    """A sample with a few kinds of households, and the kinds."""
    found = set()
    while len(found) < kinds:
        size = int(rng.integers(1, 8))
        found.add((size, int(rng.choice([0, 1, 5, 8])), int(rng.integers(0, min(size, 7)))))
    kinds = sorted(found)
    rows = [k for k in kinds for _ in range(int(rng.integers(1, 9)))]
    return pd.DataFrame(rows, columns=["size", "race_ethnicity", "children"]), kinds


def random_block(rng, kinds, n):
    homes = []
    for _ in range(n):
        size, race, children = kinds[int(rng.integers(0, len(kinds)))]
        rooms = int(rng.integers(0, 4))
        homes.append((size, race, children, rooms, int(rooms > 0)))
    return oracle.statistics_of(homes)


def noisy(rng, s):
    """Published numbers with errors in all but the number of households."""
    changed = {"households": s["households"]}
    for name in NAMES[1:]:
        values = np.array(s[name])
        values = np.maximum(values + rng.integers(-1, 2, values.shape), 0)
        changed[name] = values.tolist()
    changed["hud_children"] = [changed["hud_children"][0]] * 2
    return changed


def weights(law, kinds):
    at = {
        (int(s), int(r), int(c)): i
        for i, (s, r, c) in enumerate(zip(law.size, law.race_ethnicity, law.children, strict=True))
    }
    return [int(law.log_probability[at[k]]) for k in kinds]


def solutions_of(found, block):
    """Households of each solution of a block: sorted (size, race, children, rooms)."""
    frame = found.to_frame()
    rows = frame[frame["block"] == found.geoids[block]]
    result = []
    for number in range(int(found.solutions[block])):
        own = rows[rows["solution"] == number]
        homes = []
        for row in own.to_dict(orient="records"):
            home = (row["size"], row["race_ethnicity"], row["children"], row["bedrooms"])
            homes += [home] * row["households"]
            assert row["subsidised"] == (row["bedrooms"] > 0)
            assert row["violation"] == oracle.breach(row["bedrooms"], row["size"])
        result.append(sorted(homes))
    return result


def sums_of(homes):
    kinds = sorted({h[:3] for h in homes})
    every = [(kinds.index(h[:3]), h[3]) for h in homes]
    return oracle.query_rows(kinds, every).sum(axis=0)[None, :]


@pytest.mark.parametrize("error", ["none", "absolute", "squared"])
@pytest.mark.parametrize("likelihood", [True, False])
def test_the_best_reconstruction_is_that_of_enumeration(error, likelihood):
    rng = np.random.default_rng(41)
    checked = 0
    for case in range(15):
        sample, kinds = random_sample(rng)
        law = law_of(sample)
        s = random_block(rng, kinds, int(rng.integers(1, 4)))
        s = s if error == "none" else noisy(rng, s)
        found = reconstruct_occupancy(
            as_blocks([s]), law, rng=case, error=error, likelihood=likelihood
        )
        weight = weights(law, kinds)
        counted = weight if likelihood else [0] * len(kinds)
        value = oracle.reconstruct(s, kinds, counted, error=error, adults=1)[3]
        assert found.status == ("proved",)
        assert not found.outside_sample[0]
        (homes,) = solutions_of(found, 0)
        assert len(homes) == s["households"]
        mine = sum(weight[kinds.index(h[:3])] for h in homes)
        assert found.log_likelihood[0][0] == pytest.approx(mine / UNIT, abs=1e-9)
        sums = sums_of(homes)
        if error == "none":
            assert oracle.fits(s, sums, adults=1).all()
            cost = 0
        else:
            off = oracle.missed(s, sums)[0]
            cost = int((off if error == "absolute" else off**2).sum())
        assert found.misfit[0][0] == cost
        assert (mine if likelihood else 0) - UNIT * cost == value.max()
        checked += 1
    assert checked == 15


def test_the_best_t_are_those_of_enumeration_and_ties_fall_at_random():
    rng = np.random.default_rng(42)
    several = 0
    for case in range(12):
        sample, kinds = random_sample(rng)
        sample = sample.drop_duplicates() if case % 2 else sample  # all kinds alike: ties
        law = law_of(sample)
        s = random_block(rng, kinds, 4)
        # Blur what is published, so that there are several.
        s["sizes"], s["race"] = [0] * 7, [0] * 14
        s["population"], s["children"] = s["population"] // 2, 0
        _, _, kind, value = oracle.reconstruct(
            s, kinds, weights(law, kinds), error="none", adults=1
        )
        different = dict(zip(map(tuple, kind), value.tolist(), strict=True))
        best = sorted(different.values(), reverse=True)
        found = reconstruct_occupancy(as_blocks([s]), law, rng=case, count=25)
        assert found.status == ("proved",)
        assert found.solutions[0] == min(25, len(best))
        homes = solutions_of(found, 0)
        mine = [tuple(sorted(kinds.index(h[:3]) for h in one)) for one in homes]
        assert len(set(mine)) == len(mine)
        assert [different[m] for m in mine] == best[: len(mine)]
        assert all(oracle.fits(s, sums_of(one), adults=1).all() for one in homes)
        np.testing.assert_allclose(found.log_likelihood[0], np.array(best[: len(mine)]) / UNIT)
        several += len(best) > 25
        if case % 2 and len(best) > 25:
            again = reconstruct_occupancy(as_blocks([s]), law, rng=case, count=25)
            assert solutions_of(again, 0) == homes
            firsts = set()
            for seed in range(12):
                other = reconstruct_occupancy(as_blocks([s]), law, rng=seed, count=2)
                firsts.add(tuple(h[:3] for h in solutions_of(other, 0)[0]))
            tied = sum(v == best[0] for v in best)
            assert len(firsts) > 1 or tied == 1
    assert several >= 3


def many_bedrooms():
    """A block whose few kinds of households leave many ways to deal out subsidies and bedrooms."""
    s = {"households": 16, "population": 48, "sizes": [3, 6, 1, 2, 3, 0, 1]}
    s |= {"race": [16] + [0] * 13, "children": 16, "hud_households": 11, "hud_people": 36}
    s |= {"hud_race": [11] + [0] * 5, "hud_children": [6, 6], "hud_bedrooms": [2, 5, 4]}
    kinds = [(size, 0, c) for size in range(1, 8) for c in range(size)]
    rows = [kind for at, kind in enumerate(kinds) for _ in range(1 + 37 * at % 11)]
    sample = pd.DataFrame(rows, columns=["size", "race_ethnicity", "children"])
    return as_blocks([s]), law_of(sample)


def test_the_ways_to_deal_out_bedrooms_are_not_searched_one_by_one(monkeypatch):
    asked = []
    relax = HighsWarm.relax
    monkeypatch.setattr(HighsWarm, "relax", lambda *given: asked.append(1) or relax(*given))
    block, law = many_bedrooms()
    found = reconstruct_occupancy(block, law, rng=1, count=40)
    assert (found.status, found.solutions[0]) == (("proved",), 40)
    # A search of bedrooms one by one looks at ten times as many.
    assert len(asked) < 1200


def test_what_a_limit_leaves_are_the_best_ones(monkeypatch):
    block, law = many_bedrooms()
    every = reconstruct_occupancy(block, law, rng=1, count=30)
    assert every.status == ("proved",)
    reached = set()
    for steps in range(40, 1240, 120):
        clock = iter(range(10**9))  # one second goes by at each look
        monkeypatch.setattr(model, "time", SimpleNamespace(perf_counter=lambda c=clock: next(c)))
        some = reconstruct_occupancy(block, law, rng=1, count=30, time_limit=float(steps))
        done = int(some.solutions[0])
        assert some.status[0] == ("proved" if done == 30 else "feasible" if done else "unknown")
        np.testing.assert_array_equal(some.log_likelihood[0], every.log_likelihood[0][:done])
        reached.add(done)
    assert len(reached) > 3


def test_perturbed_reconstructions_fit_and_are_near_the_best():
    rng = np.random.default_rng(43)
    for case in range(8):
        sample, kinds = random_sample(rng)
        law = law_of(sample)
        s = random_block(rng, kinds, 4)
        s["race"], s["children"] = [0] * 14, 0
        best = reconstruct_occupancy(as_blocks([s]), law, rng=1).log_likelihood[0][0]
        found = reconstruct_occupancy(
            as_blocks([s]), law, rng=case, count=20, method="perturbed", scale=0.01
        )
        assert found.status == ("feasible",)
        assert found.solutions[0] == 20
        for homes in solutions_of(found, 0):
            assert oracle.fits(s, sums_of(homes), adults=1).all()
        # Gumbel noise of 0.01 on 4 households: beyond 1 with probability below 1e-30.
        assert np.all(found.log_likelihood[0] >= best - 1.0)
        loose = reconstruct_occupancy(
            as_blocks([noisy(rng, s)]), law, rng=case, count=3, method="perturbed", scale=0.1,
            error="absolute",
        )  # fmt: skip
        assert loose.solutions[0] == 3


def test_kinds_outside_the_sample_are_used_when_needed_and_flagged():
    law = law_of([1, 2])
    inside = oracle.statistics_of([(1, 0, 0, 1, 1), (2, 0, 0, 0, 0)])
    outside = oracle.statistics_of([(3, 4, 1, 1, 1), (2, 0, 0, 0, 0)])
    wrong = oracle.statistics_of([(1, 0, 0, 1, 1)])
    wrong["hud_children"] = [1, 1]  # nobody alone has children
    empty = oracle.statistics_of([])
    found = reconstruct_occupancy(as_blocks([inside, outside, wrong, empty]), law, rng=1)
    assert found.status == ("proved", "proved", "infeasible", "proved")
    assert found.outside_sample.tolist()[:2] == [False, True]
    assert found.solutions.tolist() == [1, 1, 0, 1]
    assert solutions_of(found, 1) == [[(2, 0, 0, 0), (3, 4, 1, 1)]]
    assert solutions_of(found, 3) == [[]]
    several = reconstruct_occupancy(as_blocks([wrong, empty]), law, rng=1, count=3)
    assert several.status == ("infeasible", "proved")


def interval(count, whole):
    """The least and largest counts with a whole percentage in common with ``count``."""
    of = {c: (200 * c + whole) // max(2 * whole, 1) for c in range(whole + 1)}
    near = [c for c in of if abs(200 * c - 2 * of[count] * whole) <= whole]
    return min(near), max(near)


def as_percentages(s):
    """Statistics as whole percentages of the subsidised households tell them."""
    n, found = s["hud_households"], dict(s)
    for name in ("hud_race", "hud_bedrooms"):
        both = [interval(c, n) for c in s[name]]
        found[name], found[f"{name}_most"] = [a for a, _ in both], [b for _, b in both]
    found["hud_children"] = list(interval(s["hud_children"][0], n))
    return found


@pytest.mark.parametrize("error", ["absolute", "squared"])
def test_exact_percentages_have_no_error(error):
    # 300 subsidised households in shares of a third or so: a percentage stands for several counts.
    rng = np.random.default_rng(46)
    homes = pd.DataFrame(
        {
            "block": "500010101001000",
            "size": rng.integers(1, 5, 310),
            "race_ethnicity": rng.choice([0, 1], 310),
            "children": 0,
            "bedrooms": rng.integers(1, 4, 310),
            "subsidised": (np.arange(310) < 300).astype(int),
        }
    )
    homes["bedrooms"] *= homes["subsidised"]
    records = Records.from_frame(homes, schema=Schema.named("household-occupancy"))
    tables = tabulate(records, Workload.named("household-occupancy"))
    blocks = occupancy_statistics(tables, hud="percentages")
    true = occupancy_statistics(tables)
    for name in ("hud_race", "hud_bedrooms"):
        low, high = getattr(blocks, name)[0], getattr(blocks, f"{name}_most")[0]
        expected = [interval(int(c), 300) for c in getattr(true, name)[0]]
        assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected
    assert np.any(blocks.hud_bedrooms < true.hud_bedrooms)  # least counts are no targets
    law = law_of(homes[["size", "race_ethnicity", "children"]])
    found = reconstruct_occupancy(blocks, law, rng=1, error=error, likelihood=False)
    assert (found.status, found.misfit[0].tolist()) == (("proved",), [0])


@pytest.mark.parametrize("error", ["absolute", "squared"])
def test_errors_of_percentages_are_those_of_enumeration(error):
    rng = np.random.default_rng(47)
    apart = 0
    for case in range(12):
        sample, kinds = random_sample(rng, 4)
        law = law_of(sample)
        s = noisy(rng, random_block(rng, kinds, int(rng.integers(1, 4))))
        # Wider intervals than those of so few households, as of many.
        for name in ("hud_race", "hud_bedrooms"):
            s[f"{name}_most"] = list(s[name])
            s[name] = [max(c - int(rng.integers(0, 3)), 0) for c in s[name]]
        s["hud_children"] = [s["hud_children"][0], s["hud_children"][0] + int(rng.integers(0, 2))]
        found = reconstruct_occupancy(as_blocks([s]), law, rng=case, error=error, likelihood=False)
        value = oracle.reconstruct(s, kinds, [0] * len(kinds), error=error, adults=1)[3]
        assert found.misfit[0].tolist() == [-int(value.max()) // UNIT]
        narrow = {**s, **{f"{n}_most": s[n] for n in ("hud_race", "hud_bedrooms")}}
        other = oracle.reconstruct(narrow, kinds, [0] * len(kinds), error=error, adults=1)[3]
        apart += other.max() != value.max()
    assert apart > 3


def test_blocks_without_households_but_with_people_are_infeasible():
    law = law_of([1, 2])
    empty = oracle.statistics_of([])
    some = {**empty, "population": 5, "children": 2, "hud_bedrooms": [2, 0, 0]}
    blocks = as_blocks([empty, some])
    for options in ({}, {"count": 3}, {"count": 2, "method": "perturbed", "scale": 0.1}):
        found = reconstruct_occupancy(blocks, law, rng=1, **options)
        assert found.status[1] == "infeasible"
        assert found.status[0] != "infeasible"
        assert found.solutions[1] == 0
    for error, cost in (("absolute", 9), ("squared", 5**2 + 2**2 + 2**2)):
        found = reconstruct_occupancy(blocks, law, rng=1, error=error)
        assert found.status == ("proved", "proved")
        assert [m.tolist() for m in found.misfit] == [[0], [cost]]
        assert found.households.size == 0


def test_reconstruction_and_detection_agree_on_contradictions():
    rng = np.random.default_rng(48)
    law = law_of([1])
    rows = []
    for _ in range(80):
        kinds = [(int(rng.integers(1, 8)), 0, 0) for _ in range(3)]
        s = random_block(rng, kinds, int(rng.integers(0, 4)))
        s = noisy(rng, s) if rng.random() < 0.6 else s
        if rng.random() < 0.5:
            s["sizes"] = [0] * 7
        if rng.random() < 0.3:
            s["population"] += int(rng.integers(0, 20))
        s["race"], s["hud_race"] = [0] * 14, [0] * 6  # which detection leaves out
        rows.append(s)
    # More people than the sizes explain, and no household that could be larger than they say.
    rows.append({**oracle.statistics_of([(1, 0, 0, 1, 1)]), "population": 5, "race": [0] * 14})
    rows.append({**oracle.statistics_of([(7, 0, 0, 1, 1)]), "population": 12, "race": [0] * 14})
    blocks = as_blocks(rows)
    detected = np.array(detect_occupancy(blocks).status) == "infeasible"
    status = np.array(reconstruct_occupancy(blocks, law, rng=1).status)
    assert set(status) == {"proved", "infeasible"}
    assert np.array_equal(detected, status == "infeasible")
    assert detected[-2]
    assert not detected[-1]


def test_squared_errors_without_end_are_refused():
    block = {**oracle.statistics_of([(1, 0, 0, 1, 1)]), "population": 2**31 - 1}
    law = law_of([1])
    with pytest.raises(ArgumentError, match="error 'squared' must have at most 1000000 units"):
        reconstruct_occupancy(as_blocks([block]), law, rng=1, error="squared")
    found = reconstruct_occupancy(as_blocks([block]), law, rng=1, error="absolute")
    assert found.misfit[0].tolist() == [2**31 - 2]


def test_limits_are_unknown_not_infeasible():
    law = law_of([1, 3])
    block = as_blocks([oracle.statistics_of([(3, 0, 0, 1, 1), (1, 0, 0, 0, 0)])])
    found = reconstruct_occupancy(block, law, rng=1, solver=Silent())
    assert (found.status, found.solutions.tolist()) == (("unknown",), [0])
    none = occupancy_variability(block, found, law, attributes="full")
    assert none.status == ("none",)
    assert np.isnan(none.share[0])
    best = reconstruct_occupancy(block, law, rng=1)
    bounded = occupancy_variability(block, best, law, attributes="full", solver=Silent())
    assert (bounded.status, bounded.lower[0], bounded.upper[0]) == (("bounded",), 0, 4)
    late = reconstruct_occupancy(block, law, rng=1, count=50, time_limit=1e-9)
    assert late.status == ("unknown",)


@pytest.mark.parametrize("attributes", ["full", "binned"])
def test_variability_is_that_of_enumeration(attributes):
    rng = np.random.default_rng(44)
    seen = set()
    for case in range(14):
        n = int(rng.integers(1, 3))
        races = rng.choice([0, 1, 5, 8], n)
        homes = []
        for race in races.tolist():
            size = int(rng.integers(1, 5))
            rooms = int(rng.integers(0, 4))
            children = int(rng.integers(0, size))
            homes.append((size, race, children, rooms, int(rooms > 0)))
        s = oracle.statistics_of(homes)
        sample = pd.DataFrame(
            [h[:3] for h in homes], columns=["size", "race_ethnicity", "children"]
        )
        law = law_of(sample)
        blocks = as_blocks([s])
        found = reconstruct_occupancy(blocks, law, rng=case)
        (star,) = solutions_of(found, 0)
        kinds = [
            (int(size), int(race), int(children))
            for size, race, children in zip(law.size, law.race_ethnicity, law.children, strict=True)
            if race in races and size <= max(h[0] for h in homes)
        ]
        answer = occupancy_variability(blocks, found, law, attributes=attributes)
        worst = oracle.variability(s, kinds, star, full=attributes == "full", adults=1)
        assert answer.status == ("proved",)
        assert (answer.lower[0], answer.upper[0]) == (worst, worst)
        assert answer.share[0] == worst / (2 * n)
        seen.add(worst)
    assert {0, 2} <= seen if attributes == "binned" else 2 in seen
    frame = answer.to_frame()
    assert frame["attributes"].tolist() == [attributes]


def test_law_is_smoothed_and_ordered():
    sample = pd.DataFrame(
        {"size": [1, 3], "race_ethnicity": 2, "children": [0, 2], "weight": [3, 5]}
    )
    law = HouseholdLaw.from_sample(sample, smoothing=0.25)
    whole = 8 + 0.25 * len(law)
    np.testing.assert_allclose(
        law.log_probability[:2] / UNIT, np.log(np.array([3.25, 5.25]) / whole), atol=5e-5
    )
    assert law.log_probability[2:].max() == round(UNIT * np.log(0.25 / whole))
    assert law.in_sample.sum() == 2
    assert np.all(law.children <= law.size - 1)
    assert len(HouseholdLaw.from_sample(sample, smoothing=0.25, adults=0)) > len(law)


def test_bad_arguments():
    sample = pd.DataFrame({"size": [1], "race_ethnicity": [0], "children": [0]})
    law = law_of(sample)
    block = as_blocks([oracle.statistics_of([(1, 0, 0, 1, 1)])])
    for frame, text in (
        (sample.drop(columns="size"), r"sample: must have .*, it lacks \['size'\]"),
        (sample.assign(size=9), "sample: size must be <= 7, got 9"),
        (sample.assign(children=1), "children must be <= size - 1, got 1 in a household of 1"),
        (sample.assign(weight=0), "must hold households, got none"),
    ):
        with pytest.raises(DataError, match=text):
            HouseholdLaw.from_sample(frame, smoothing=0.5)
    with pytest.raises(ArgumentTypeError, match="sample must be a DataFrame of pandas"):
        HouseholdLaw.from_sample(3, smoothing=0.5)
    with pytest.raises(ArgumentError, match="smoothing must be > 0"):
        HouseholdLaw.from_sample(sample, smoothing=0.0)
    for options, text in (
        ({"count": 0}, "count must be >= 1"),
        ({"method": "psychic"}, "method must be one of"),
        ({"error": "cubic"}, "error must be one of"),
        ({"scale": 0.1}, "scale must be given for perturbed objectives only"),
        ({"method": "perturbed"}, "scale must be given for perturbed objectives only"),
        ({"time_limit": -1}, "time_limit must be > 0"),
    ):
        with pytest.raises(ArgumentError, match=text):
            reconstruct_occupancy(block, law, rng=1, **options)
    with pytest.raises(ArgumentTypeError, match="blocks must be a OccupancyStatistics"):
        reconstruct_occupancy(3, law, rng=1)
    with pytest.raises(ArgumentTypeError, match="law must be a HouseholdLaw"):
        reconstruct_occupancy(block, 3, rng=1)
    found = reconstruct_occupancy(block, law, rng=1)
    with pytest.raises(ArgumentError, match="attributes must be one of"):
        occupancy_variability(block, found, law, attributes="some")
    with pytest.raises(ArgumentError, match="same blocks"):
        occupancy_variability(block.take(np.array([], int)), found, law, attributes="full")
    for arguments in ((3, found, law), (block, 3, law), (block, found, 3)):
        with pytest.raises(ArgumentTypeError):
            occupancy_variability(*arguments, attributes="full")
