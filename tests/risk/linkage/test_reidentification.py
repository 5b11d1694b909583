"""Re-identification, agreement, leave-one-out and majority inference against slow twins."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import linkage as oracle
from persons import persons
from scipy.stats import binomtest

from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.linkage.agreement import (
    SIZE_CLASSES,
    compare_with_truth,
    inference_without_record,
    size_class,
)
from bayesrisk.risk.linkage.majority import majority_inference
from bayesrisk.risk.linkage.reidentification import reidentify
from bayesrisk.risk.linkage.variability import unique_sums, unique_table, variability_quantiles

BLOCKS = [f"01001020100{number}" for number in ("1000", "1001", "2000")]
PERSON = st.fixed_dictionaries(
    {
        "block": st.sampled_from(BLOCKS),
        "sex": st.integers(0, 1),
        "age": st.sampled_from([3, 22, 23, 40]),
        "race": st.sampled_from([1, 2]),
        "hisp": st.integers(0, 1),
    }
)
PEOPLE = st.lists(PERSON, min_size=1, max_size=14)


def identified(people):
    return pd.DataFrame(people).assign(person=np.arange(len(people)))


@given(PEOPLE, PEOPLE, st.integers(0, 2**32))
@settings(deadline=None, max_examples=12)
def test_putative_counts_like_the_printed_loop(records, people, seed):
    truth = identified(people)
    found = reidentify(
        {"r": pd.DataFrame(records)}, {"a": truth}, truth=truth, baseline_from="r", rng=seed
    )
    binned = [
        [{**p, "agebin": oracle.age_bin(p["age"])} for p in group] for group in (records, people)
    ]
    keys = [("block", "sex", "age"), ("block", "sex", "agebin")]
    exact, rest = oracle.match_passes(*binned, keys)
    row = found.to_frame(by_size=False).set_index("source").loc["r"]
    assert (row["putative_exact"], row["putative"]) == (exact, exact + rest)
    assert row["confirmed_exact"] <= row["confirmed"] <= row["putative"] <= row["attacker_records"]


@pytest.mark.slow
@given(PEOPLE)
@settings(deadline=None)
def test_the_truth_itself_confirms_every_unique_person(people):
    truth = identified(people)
    found = reidentify({"t": truth}, {"a": truth}, truth=truth, baseline_from="t", rng=1)
    unique = found.to_frame(panel="nonmodal-unique", by_size=False).set_index("source").loc["t"]
    modal = {i: oracle.modal_cell(people, p["block"]) for i, p in enumerate(people)}
    place = Counter((p["block"], p["sex"], oracle.age_bin(p["age"])) for p in people)
    expected = sum(
        (p["race"], p["hisp"]) != modal[i]
        and place[p["block"], p["sex"], oracle.age_bin(p["age"])] == 1
        for i, p in enumerate(people)
    )
    assert unique["attacker_records"] == unique["putative"] == unique["confirmed"] == expected


def test_panels_and_sizes_add_up():
    people = persons(3, 300, BLOCKS, p=[0.9, 0.08, 0.02], ages=80, shares=[0.7, 0.2, 0.1])
    truth = people.assign(person=[f"p{i}" for i in range(300)])
    known = truth.sample(150, random_state=1).drop(columns=["race", "hisp"])
    wrong = known.assign(person=[f"q{i}" for i in range(150)])  # nobody the truth knows
    found = reidentify(
        {"truth": people},
        {"known": known, "strangers": wrong},
        truth=truth,
        baseline_from="truth",
        rng=1,
        zero_variability_blocks=[BLOCKS[0]],
    )
    frame = found.to_frame()
    total = frame[frame["block_size"] == "All"].set_index(["attacker", "source"])
    parts = frame[frame["block_size"] != "All"].groupby(["attacker", "source"]).sum()
    columns = ["attacker_records", "putative", "confirmed"]
    assert total[columns].sort_index().equals(parts[columns].sort_index())
    modal, nonmodal = (
        found.to_frame(panel=p, by_size=False).query("attacker == 'known'")
        for p in ("modal", "nonmodal")
    )
    known_total = total.loc["known"]
    assert (
        modal["confirmed"].to_numpy() + nonmodal["confirmed"].to_numpy()
        == known_total["confirmed"].to_numpy()
    ).all()
    strangers = total.loc["strangers"]
    assert (strangers["putative"] == 150).all()
    assert (strangers["confirmed"] == 0).all()
    zero = found.to_frame(zero_variability=True, by_size=False).set_index(["attacker", "source"])
    assert zero.loc[("known", "truth"), "attacker_records"] == (known["block"] == BLOCKS[0]).sum()
    assert found.to_frame(panel="in-truth", by_size=False)["attacker_records"].tolist() == [
        *[150] * 3,
        *[0] * 3,
    ]
    layout = found.to_layout()
    assert layout.shape == (3 * (1 + len(SIZE_CLASSES)), 6)
    assert layout.loc[("All", "truth"), ("known", "Putative")] == 150
    # This modal guesser, who has the true records, cannot be right about nonmodal people.
    guesser = nonmodal.set_index("source").loc["MDG"]
    assert guesser["confirmed"] == 0
    assert total.loc[("known", "truth"), "precision_ratio"] > 1.0


def test_intervals_are_those_of_clopper_and_pearson():
    lower, upper = binomial_interval([0, 3, 10, 0], [10, 10, 10, 0], confidence=0.9)
    for i, k in enumerate((0, 3, 10)):
        exact = binomtest(k, 10).proportion_ci(confidence_level=0.9, method="exact")
        assert lower[i] == pytest.approx(exact.low, rel=1e-9)
        assert upper[i] == pytest.approx(exact.high, rel=1e-9)
    assert (lower[3], upper[3]) == (0.0, 1.0)


def blocks_of_all_sizes(seed, blocks=40):
    """People of different ages in blocks of very different sizes, and records wrong by block."""
    rng = np.random.default_rng(seed)
    size = np.ceil(rng.lognormal(2.0, 1.2, blocks)).astype(int).clip(1, 100)
    place = np.repeat(np.arange(blocks), size)
    common = rng.beta(3.0, 1.0, blocks)[place]
    people = pd.DataFrame(
        {
            "block": [f"01001020100{1000 + i}" for i in place],
            "sex": 0,
            "age": np.concatenate([np.arange(n) for n in size]),
            "race": np.where(rng.random(place.size) < common, 1, rng.choice([2, 4], place.size)),
            "hisp": 0,
            "person": np.arange(place.size),
        }
    )
    wrong = rng.random(place.size) < rng.beta(0.4, 1.2, blocks)[place]
    return people, people.assign(race=np.where(wrong, 5, people["race"])), wrong


def per_block(people, values):
    return pd.Series(values, people["block"].to_numpy()).groupby(level=0).sum()


def test_intervals_take_blocks_as_units():
    people, records, wrong = blocks_of_all_sizes(1)
    links = reidentify(
        {"r": records}, {"a": people}, truth=people, baseline_from="r", rng=1, confidence=0.9
    ).to_frame()
    agreed = compare_with_truth(
        {"r": records}, truth=people, baseline_from="r", rng=1, confidence=0.9
    )
    agreed = agreed.to_frame().query("source == 'r'").set_index("block_size")
    links = links.query("source == 'r'").set_index("block_size")
    population = people.groupby("block")["sex"].transform("size")
    for size in ("All", "10-49"):
        kept = np.full(len(people), True)
        if size != "All":
            kept = (size_class(population) == SIZE_CLASSES.index(size)).copy()
        part = people[kept]
        hits, trials = (per_block(part, v[kept].astype(int)) for v in (~wrong, wrong | ~wrong))
        expected = oracle.clustered_interval(hits, trials, 0.9)
        # Ages of one bin are interchangeable, but for those below 22; a link is forced by the age.
        assert links.loc[size, "confirmed"] == agreed.loc[size, "exact"] == hits.sum()
        for row, name in ((links.loc[size], "precision"), (agreed.loc[size], "exact")):
            found = row[f"{name}_lower"], row[f"{name}_upper"]
            np.testing.assert_allclose(found, expected, rtol=1e-8)
        naive = binomtest(int(hits.sum()), int(trials.sum())).proportion_ci(0.9)
        assert expected[1] - expected[0] > 1.5 * (naive.high - naive.low)


def test_the_left_out_baseline_removes_every_target():
    people, records, wrong = blocks_of_all_sizes(2, blocks=15)
    rows = people.to_dict("records")
    chances = np.array([oracle.leave_one_out(rows, i) for i in range(len(rows))])
    modal = np.array([oracle.modal_cell(rows, r["block"]) == (r["race"], r["hisp"]) for r in rows])
    found = reidentify({"r": records}, {"a": people}, truth=people, baseline_from="r", rng=1)
    for panel, chosen in (("all", modal | ~modal), ("modal", modal), ("nonmodal", ~modal)):
        row = found.to_frame(panel=panel, by_size=False).iloc[0]
        means = chances[chosen].mean(axis=0)
        assert row["left_out"] == pytest.approx(means.max(), rel=1e-12)
        name = ("modal", "proportional")[int(means.argmax())]
        assert row["left_out_guesser"] == f"{name}, own record left out"
        ratio = (~wrong[chosen]).mean() / means.max()
        assert row["left_out_ratio"] == pytest.approx(ratio, rel=1e-12)
        assert row["left_out_ratio_lower"] < ratio < row["left_out_ratio_upper"]
        assert row["baseline_guesser"].endswith(", own record counted, as published")
    assert "proportional" in name  # about nonmodal people the modal guesser knows nothing
    agreed = (
        compare_with_truth({"r": records}, truth=people, baseline_from="r", rng=1)
        .to_frame()
        .iloc[0]
    )
    for kind in ("exact", "binned"):
        assert agreed[f"{kind}_left_out"] == pytest.approx(chances.mean(axis=0).max(), rel=1e-12)
        ratio = agreed[f"{kind}_rate"] / agreed[f"{kind}_left_out"]
        assert agreed[f"{kind}_left_out_ratio"] == pytest.approx(ratio, rel=1e-12)


def test_who_is_linked_at_a_wrong_place_is_guessed_by_nobody():
    people, records, _ = blocks_of_all_sizes(3, blocks=6)
    moved = people.assign(block=np.roll(people["block"], 40))
    found = reidentify({"r": records}, {"a": moved}, truth=people, baseline_from="r", rng=1)
    row = found.to_frame(by_size=False).iloc[0]
    links = found.tally.query("source == 'r'")
    right = links[links["in_truth"] == 1]
    assert row["left_out"] * row["putative"] == pytest.approx(
        max(right["left_out_modal"].sum(), right["left_out_proportional"].sum()), rel=1e-12
    )
    assert (links.loc[links["in_truth"] == 0, ["left_out_modal", "confirmed"]] == 0).all(axis=None)


def test_the_published_proportional_guesser_draws_the_targets_own_record():
    """It is right about nonmodal people because it counts them; without them much less often."""
    rng = np.random.default_rng(8)
    blocks = 300
    people = pd.DataFrame(
        {
            "block": np.repeat([f"01001020100{1000 + i}" for i in range(blocks)], 5),
            "sex": 0,
            "age": np.tile(np.arange(5), blocks),
            "race": rng.permuted(np.tile([1, 1, 1, 2, 4], (blocks, 1)), axis=1).ravel(),
            "hisp": 0,
            "person": np.arange(5 * blocks),
        }
    )
    found = reidentify({"t": people}, {"a": people}, truth=people, baseline_from="t", rng=2)
    rows = found.to_frame(panel="nonmodal-unique", by_size=False).set_index("source")
    # Two of five are alone with their race: drawn with 1/5, and never from the four others.
    error = np.sqrt(0.2 * 0.8 / (2 * blocks))
    assert rows.loc["PRG", "precision"] == pytest.approx(0.2, abs=4 * error)
    assert rows.loc["t", "baseline_guesser"] == "PRG, own record counted, as published"
    assert rows.loc["t", "left_out"] == 0.0
    assert np.isnan(rows.loc["t", "left_out_ratio"])


@pytest.mark.slow
@given(PEOPLE, PEOPLE)
@settings(deadline=None)
def test_agreement_counts_like_the_printed_loop(records, people):
    found = compare_with_truth(
        {"r": pd.DataFrame(records)}, truth=pd.DataFrame(people), baseline_from="r", rng=1
    )
    binned = [
        [{**p, "agebin": oracle.age_bin(p["age"])} for p in group] for group in (records, people)
    ]
    shared = ("block", "sex", "race", "hisp")
    exact, rest = oracle.match_passes(*binned, [(*shared, "age"), (*shared, "agebin")])
    row = found.tally.iloc[0]
    assert (row["exact"], row["binned"], row["population"]) == (exact, exact + rest, len(people))
    table = found.to_frame()
    assert table["source"].unique().tolist() == ["r", "MDG", "PRG"]
    parts = found.tally[found.tally["block_size"] != "All"].groupby("source")["binned"].sum()
    assert parts["r"] == row["binned"]


@given(PEOPLE)
@settings(deadline=None, max_examples=40)
def test_leave_one_out_against_removing_each_record(people):
    found = inference_without_record(pd.DataFrame(people))
    expected = np.array([oracle.leave_one_out(people, i) for i in range(len(people))])
    np.testing.assert_allclose(found.persons["modal"], expected[:, 0], rtol=1e-14)
    np.testing.assert_allclose(found.persons["proportional"], expected[:, 1], rtol=1e-14)
    blocks = found.blocks
    means = found.persons.groupby("block", sort=False)[["modal", "proportional"]].mean()
    np.testing.assert_allclose(blocks["modal"], means["modal"], rtol=1e-12, atol=1e-15)
    slack = 1.0 + 1e-12
    assert (blocks["modal"] <= blocks["modal_bound"] * slack).all()
    assert (blocks["proportional"] <= blocks["proportional_bound"] * slack).all()
    assert found.to_frame()["population"].iloc[0] == len(people)


def test_majority_inference_by_hand():
    truth = pd.DataFrame(
        {"x": [51, 1, 0, 3], "y": [49, 9, 0, 0]}, index=["a", "b", "empty", "small"]
    )
    noisy = pd.DataFrame({"x": [48, -2, 7], "y": [52, 5, 0]}, index=["a", "b", "empty"])
    found = majority_inference({"true": truth, "noisy": noisy}, truth=truth)
    assert found.blocks["precision"].tolist() == [0.51, 0.9, 1.0, 0.49, 0.9, 1.0]
    assert "empty" not in set(found.blocks["block"])
    curve = found.curve(threshold=5)
    exact = curve[curve["release"] == "true"]
    assert exact["precision"].tolist() == [0.9, 0.51, 0.0]
    np.testing.assert_allclose(exact["recall"], [10 / 113, 110 / 113, 1.0])
    summary = found.summary(threshold=5, precisions=[0.5, 0.9]).set_index("release")
    assert summary.loc["true", "recall_at_0.9"] == pytest.approx(10 / 113)
    assert summary.loc["noisy", "recall_at_0.5"] == pytest.approx(10 / 113)
    assert summary.loc["true", "mean_precision"] == pytest.approx(60 / 110)
    assert found.curve(threshold=1)["precision"].max() == 1.0
    sizes = found.by_block_size(threshold=5)
    row = sizes[(sizes["release"] == "noisy") & (sizes["block_size"] == "100-249")].iloc[0]
    assert (row["mean_error"], row["precision"]) == (3.0, 0.49)
    assert found.to_frame() is found.blocks


def test_variability_quantiles_by_hand():
    blocks = pd.DataFrame(
        {
            "block": [str(i) for i in range(4)],
            "population": [10, 20, 30, 40],
            "lower": [0.0, 0.0, 0.1, 0.2],
            "upper": [0.0, 0.0, 0.1, 0.5],
        }
    )
    table = variability_quantiles(blocks, rng=1, step=20)
    assert table["quantile_upper"].tolist() == [0.0, 10.0, 10.0, 50.0, 50.0]
    assert table["quantile_lower"].tolist() == [0.0, 10.0, 10.0, 20.0, 20.0]
    assert table["cumulative_population"].iloc[-1] == 100
    assert table["population"].sum() == 100
    assert table["variable_records"].sum() == pytest.approx(3.0 + 20.0)
    assert table["cumulative_variability"].iloc[-1] == pytest.approx(23.0)


def test_uniques_and_zero_variability_by_hand():
    people = pd.DataFrame(
        {
            "block": [BLOCKS[0]] * 12 + [BLOCKS[1]] * 2,
            "sex": 0,
            "age": [*range(10), 22, 24, 5, 5],
        }
    )
    bounds = pd.DataFrame(
        {"block": BLOCKS[:2], "population": [12, 2], "lower": 0.0, "upper": [0.2, 0.0]}
    )
    table = unique_table(unique_sums(people, variability=bounds)).set_index("block_size")
    assert table.loc["10-49", "unique_percentage"] == pytest.approx(100 * 10 / 12)
    assert table.loc["1-9", "unique_percentage"] == 0.0
    assert table["zero_population_percentage"].tolist() == [100.0, 0.0]
    with pytest.raises(DataError, match="population must be 2, got 3"):
        unique_table(unique_sums(people, variability=bounds.assign(population=[12, 3])))


PERSONS = pd.DataFrame(
    {"block": BLOCKS[0], "sex": [0, 1], "age": 3, "race": 1, "hisp": 0, "person": [1, 2]}
)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"sources": {}}, ArgumentError, "sources must map"),
        ({"sources": {"MDG": PERSONS}, "baseline_from": "MDG"}, ArgumentError, "guessers"),
        ({"baseline_from": "other"}, ArgumentError, "baseline_from must be one of r"),
        ({"truth": PERSONS.assign(person=1)}, DataError, "row 2, column 'person'"),
        ({"attackers": {"a": PERSONS.assign(age=-1)}}, DataError, "a: row 1, column 'age'"),
        ({"attackers": {"a": PERSONS.assign(person=["a", "b"])}}, DataError, "int64.*, got"),
    ],
)
def test_refusals(change, error, words):
    given_ = {"sources": {"r": PERSONS}, "attackers": {"a": PERSONS}, "truth": PERSONS}
    given_ |= {"baseline_from": "r", "rng": 1} | change
    with pytest.raises(error, match=words):
        reidentify(given_.pop("sources"), given_.pop("attackers"), **given_)


def test_layouts_have_the_rows_and_columns_of_the_published_tables():
    truth = pd.concat([PERSONS, PERSONS.assign(block=BLOCKS[1], race=2, person=[3, 4])])
    found = reidentify(
        {"r": truth},
        {"a": truth, "b": truth.iloc[:1]},
        truth=truth,
        baseline_from="r",
        rng=1,
        zero_variability_blocks=BLOCKS[:1],
    )
    panels = found.to_panels(panels=["all", "in-truth"])
    assert panels.index.tolist() == [(p, s) for p in ("all", "in-truth") for s in found.sources]
    assert panels.columns.tolist() == [
        (attacker, name)
        for attacker in ("a", "b")
        for name in (
            "Population", "Putative", "Putative Percentage", "Confirmed", "Confirmed Percentage",
            "Precision Percentage",
        )
    ]  # fmt: skip
    assert panels.loc[("all", "r"), "a"].tolist() == [4, 4, 100.0, 4, 100.0, 100.0]
    assert panels.loc[("in-truth", "MDG"), ("b", "Population")] == 1
    proved = found.to_panels(panels=["nonmodal", "nonmodal-unique"], zero_variability=True)
    rows = found.to_frame(panel="nonmodal", zero_variability=True, by_size=False)
    mine = rows.query("attacker == 'a' and source == 'r'").iloc[0]
    assert proved.loc[("nonmodal", "r"), ("a", "Population")] == mine["attacker_records"]
    agreed = compare_with_truth({"r": truth}, truth=truth, baseline_from="r", rng=1)
    layout = agreed.to_layout()
    assert layout.index.tolist() == [(b, s) for b in ("All", *SIZE_CLASSES) for s in agreed.sources]
    assert layout.loc[("All", "r")].tolist() == [4, 4, 4, 100.0, 100.0]
    assert layout.columns.get_level_values(0).tolist() == [
        "Population", "Agreement", "Agreement", "Agreement Percentage", "Agreement Percentage",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("releases", "truth", "error", "words"),
    [
        ({}, {"x": [1]}, ArgumentError, "releases must map"),
        ({"r": {"x": [1]}}, {"x": [-1]}, DataError, "truth: block 0, column 'x': must be >= 0"),
        ({"r": {"z": [1]}}, {"x": [1]}, DataError, "r: column 'z' must be a column of the truth"),
        ({"r": {"x": [1.5]}}, {"x": [1]}, DataError, "r: column 'x' must hold whole numbers"),
    ],
)
def test_majority_refusals(releases, truth, error, words):
    tables = {name: pd.DataFrame(table) for name, table in releases.items()}
    with pytest.raises(error, match=words):
        majority_inference(tables, truth=pd.DataFrame(truth))
    twice = pd.DataFrame({"x": [1, 2]}, index=["a", "a"])
    with pytest.raises(DataError, match="block 'a' occurs twice"):
        majority_inference({"r": twice}, truth=twice)


def test_size_classes_are_those_of_the_published_tables():
    edges = [0, 1, 9, 10, 49, 50, 99, 100, 249, 250, 499, 500, 999, 1000, 10**6]
    assert size_class(edges).tolist() == [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
