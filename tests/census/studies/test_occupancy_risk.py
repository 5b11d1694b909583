"""Blocks and households said to violate the limit, against slow loops over the truth."""

import numpy as np
import pandas as pd
import pytest
from oracles import linkage as matching, occupancy as oracle
from scipy import stats

from bayesrisk.census import occupancy_block_risk, occupancy_linkage
from bayesrisk.census.occupancy.detection import OccupancyDetection
from bayesrisk.census.occupancy.solutions import OccupancyReconstruction
from bayesrisk.census.studies.occupancy_risk import MATCH_KEYS, occupancy_ranking, sampling_ranking
from bayesrisk.exceptions import ArgumentError, DataError

KEYS = [*MATCH_KEYS.values(), ("race_ethnicity",), ("bedrooms", "child")]


def random_truth(rng, n=40, blocks=4):
    rooms = rng.integers(0, 4, n)
    size = rng.integers(1, 8, n)
    return pd.DataFrame(
        {
            "block": rng.integers(0, blocks, n).astype(str),
            "size": size,
            "race_ethnicity": rng.integers(0, 3, n),
            "children": rng.integers(0, size),
            "bedrooms": rooms,
            "subsidised": (rooms > 0).astype(int),
        }
    )


def with_answers(truth):
    """The truth as dictionaries, with what is derived worked out by hand."""
    rows = truth.to_dict(orient="records")
    for row in rows:
        row["child"] = int(row["children"] > 0)
        row["violation"] = bool(row["subsidised"]) and oracle.breach(row["bedrooms"], row["size"])
    return rows


def detection(status):
    n = len(status)
    empty = ("",) * n
    return OccupancyDetection(np.arange(n).astype(str), np.arange(11, 11 + n), status, empty, empty)


def test_block_counts_are_those_of_a_loop():
    rng = np.random.default_rng(51)
    truth = random_truth(rng, 30, 12)
    holding = {row["block"] for row in with_answers(truth) if row["violation"]}
    kinds = ("violation", "possible", "infeasible", "undecided")
    status = tuple(rng.choice(kinds, 12))
    for infeasible, said in (
        ("apart", {"violation"}),
        ("violation", {"violation", "infeasible"}),
    ):
        risk = occupancy_block_risk(detection(status), truth, infeasible=infeasible)
        putative = {str(i) for i, s in enumerate(status) if s in said}
        assert risk.blocks == 12
        assert risk.violating == len(holding)
        assert risk.putative == len(putative)
        assert risk.confirmed == len(putative & holding)
        assert risk.infeasible == status.count("infeasible")
        assert risk.undecided == status.count("undecided")
        frame = risk.to_frame().set_index("measure")
        exact = stats.binomtest(risk.confirmed, risk.putative).proportion_ci(method="exact")
        assert frame.loc["precision", ["lower", "upper"]].tolist() == pytest.approx(list(exact))
        assert frame.loc["precision", "baseline"] == risk.violating / 12
        assert frame.loc["recall", "value"] == risk.confirmed / risk.violating
        assert frame.loc["recall", "baseline"] == risk.putative / 12
        both = risk + risk
        assert (both.blocks, both.confirmed) == (24, 2 * risk.confirmed)
    with pytest.raises(ArgumentError, match=r"confidence must be 0\.95, got 0\.9"):
        risk + occupancy_block_risk(detection(status), truth, confidence=0.9)
    assert risk.__add__(3) is NotImplemented


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("unique", [False, True])
def test_linkage_is_that_of_all_orders_of_ties(key, unique):
    rng = np.random.default_rng(52)
    for _ in range(5):
        truth = random_truth(rng)
        rows = with_answers(truth)
        entries = {(r["block"], tuple(r[name] for name in key)) for r in rows}
        entries |= {("9", codes) for _, codes in list(entries)[:2]}  # matches nobody
        picked = sorted(entries)
        picked = [picked[i] for i in rng.permutation(len(picked))[:6]]
        scored = [(*entry, float(rng.integers(0, 3))) for entry in picked]
        ranking = pd.DataFrame([[b, *codes, score] for b, codes, score in scored])
        ranking.columns = ["block", *key, "score"]
        curve = occupancy_linkage(ranking, truth, key=key, unique=unique)
        total, violations, homes = oracle.linkage(scored, rows, key, unique=unique)
        np.testing.assert_allclose(curve.putative, total[0])
        np.testing.assert_allclose(curve.hits, total[1])
        np.testing.assert_allclose(curve.matched, total[2])
        assert (curve.violations, curve.households) == (violations, homes)
        np.testing.assert_allclose(curve.match_rate, total[2] / np.arange(1, 7))
        if violations:
            np.testing.assert_allclose(curve.recall, total[1] / violations)
            assert curve.baseline == violations / homes
        frame = curve.to_frame()
        assert np.all(frame["precision_lower"] <= frame["precision_upper"])
        inside = frame["precision"].notna()
        assert np.all(frame["precision"][inside] <= frame["precision_upper"][inside])


def test_intervals_of_linkage_take_blocks_as_units():
    rng = np.random.default_rng(57)
    truth = random_truth(rng, 300, 12)
    key = ("race_ethnicity", "child")
    rows = with_answers(truth)
    entries = sorted({(r["block"], *(r[name] for name in key)) for r in rows})
    score = rng.permutation(len(entries)).astype(float)  # no ties: every k is one set of entries
    ranking = pd.DataFrame(entries, columns=["block", *key]).assign(score=score)
    frame = occupancy_linkage(ranking, truth, key=key, unique=False, confidence=0.9).to_frame()
    order = [entries[i] for i in np.argsort(-score)]
    blocks = sorted({r["block"] for r in rows})
    narrower = 0
    for k in (1, 7, 25, len(entries)):
        top = set(order[:k])
        said = [(r["block"], *(r[name] for name in key)) in top for r in rows]
        sums = {block: np.zeros(3) for block in blocks}  # matched, matched violations, violations
        for r, match in zip(rows, said, strict=True):
            sums[r["block"]] += [match, match and r["violation"], r["violation"]]
        matched, hits, violations = np.array(list(sums.values())).T
        row = frame.iloc[k - 1]
        for name, of in (("precision", matched), ("recall", violations)):
            expected = matching.clustered_interval(hits, of, 0.9)
            found = row[f"{name}_lower"], row[f"{name}_upper"]
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
            naive = stats.binomtest(int(hits.sum()), int(of.sum())).proportion_ci(0.9)
            narrower += naive.high - naive.low < 0.999 * (found[1] - found[0])
    assert narrower >= 6


def reconstruction(rng, blocks=3, solutions=4, entries=60):
    rooms = rng.integers(0, 4, entries)
    size = rng.integers(1, 8, entries)
    return OccupancyReconstruction(
        np.arange(blocks).astype(str),
        ("proved",) * blocks,
        np.zeros(blocks, bool),
        np.full(blocks, solutions),
        np.sort(rng.integers(0, blocks, entries)),
        rng.integers(0, solutions, entries),
        size,
        rng.integers(0, 3, entries),
        rng.integers(0, 2, entries),
        rooms,
        (rooms > 0).astype(int),
        rng.integers(1, 4, entries),
        (np.zeros(solutions),) * blocks,
        (np.zeros(solutions, int),) * blocks,
    )


@pytest.mark.parametrize("key", KEYS)
def test_rankings_count_violations_of_reconstructions(key):
    found = reconstruction(np.random.default_rng(53))
    expected = {}
    for row in found.to_frame().to_dict(orient="records"):
        row["child"] = int(row["children"] > 0)
        if oracle.breach(row["bedrooms"], row["size"]):
            at = (row["block"], *(row[name] for name in key))
            expected[at] = expected.get(at, 0.0) + row["households"] / 4
    ranking = occupancy_ranking(found, key=key)
    assert ranking["score"].is_monotonic_decreasing
    mine = {tuple(row[:-1]): row[-1] for row in ranking.itertuples(index=False, name=None)}
    assert mine == pytest.approx(expected)


def test_sampling_ranks_the_same_entries_for_every_target():
    rng = np.random.default_rng(54)
    truth = random_truth(rng, 200)
    key = MATCH_KEYS["broker"]
    ranking = sampling_ranking(truth, ["a", "b"], key=key)
    counts = {}
    for row in with_answers(truth):
        if row["violation"]:
            at = tuple(row[name] for name in key)
            counts[at] = counts.get(at, 0) + 1
    assert len(ranking) == 2 * len(counts)
    for row in ranking.itertuples(index=False, name=None):
        assert row[-1] == counts[row[1:-1]]


def test_a_perfect_ranking_finds_everything_and_a_blind_one_the_rate():
    rng = np.random.default_rng(55)
    truth = random_truth(rng, 400, 30)
    rows = with_answers(truth)
    key = MATCH_KEYS["hud"]
    alike = {}
    for row in rows:
        alike.setdefault((row["block"], *(row[name] for name in key)), []).append(row["violation"])
    sub = [entry for entry in alike if entry[1] == 1]
    perfect = pd.DataFrame([[*e, float(np.mean(alike[e]))] for e in sub])
    blind = pd.DataFrame([[*e, 0.0] for e in sub])
    perfect.columns = blind.columns = ["block", *key, "score"]
    best = occupancy_linkage(perfect, truth, key=key, unique=False)
    worst = occupancy_linkage(blind, truth, key=key, unique=False)
    assert best.recall[-1] == worst.recall[-1] == 1.0
    np.testing.assert_allclose(worst.precision, worst.baseline)
    assert best.precision[10] > 2.0 * worst.precision[10]


def test_bad_arguments():
    truth = random_truth(np.random.default_rng(57))
    found = detection(("violation",))
    ranking = pd.DataFrame({"block": ["1"], "child": [1], "score": [1.0]})
    with pytest.raises(ArgumentError, match="infeasible must be one of"):
        occupancy_block_risk(found, truth, infeasible="both")
    with pytest.raises(DataError, match="truth: row 1, column 'size': must be a whole number in"):
        occupancy_block_risk(found, truth.assign(size=0))
    with pytest.raises(DataError, match=r"key: must be columns of .*, got 'colour'"):
        occupancy_linkage(ranking, truth, key=["colour"], unique=False)
    with pytest.raises(DataError, match="ranking: must have every entry once"):
        occupancy_linkage(pd.concat([ranking] * 2), truth, key=["child"], unique=False)
    assert len(occupancy_linkage(ranking.iloc[:0], truth, key=["child"], unique=False)) == 0
