"""Verdicts between protections: by hand, how often they are false, and what they need."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student, ttest_rel

from bayesrisk.risk.audit import compare

from .test_measures import released


def log_scores(gains):
    """Return mean log scores of releases of ``released``, whose belief without gain is 1/4."""
    return np.log(0.25 + gains).mean(axis=0)


def test_paired_releases_by_hand():
    rng = np.random.default_rng(4)
    one, other = rng.uniform(0.2, 0.4, (9, 12)), rng.uniform(0.0, 0.2, (9, 12))
    frame = pd.concat([released(one, protection="a"), released(other, protection="b")])
    (row,) = compare(frame).to_dict("records")
    test = ttest_rel(log_scores(other), log_scores(one))
    assert (row["protection"], row["against"], row["verdict"]) == ("b", "a", "less")
    assert row["factor"] == pytest.approx(np.exp(log_scores(one - 0.0) - log_scores(other)).prod()
                                          ** (1 / 12))  # fmt: skip
    # Three questions of one pair: the order, people doubled, people proved.
    law = test.confidence_interval(1.0 - 0.05 / 3)
    assert [row["lower"], row["upper"]] == pytest.approx(np.exp([-law.high, -law.low]))
    twice = [(gains >= 0.25).sum(axis=0) for gains in (other, one)]
    counts = ttest_rel(*twice)
    assert row["doubled"] == pytest.approx((twice[0] - twice[1]).mean())
    law = counts.confidence_interval(1.0 - 0.05 / 3)
    assert [row["doubled_lower"], row["doubled_upper"]] == pytest.approx([law.low, law.high])
    assert row["proved"] == 0.0
    # Nobody is proved in any release: as uncertain as if one of them had one person.
    reach = student.ppf(1.0 - 0.025 / 3, 11) / 12
    assert [row["proved_lower"], row["proved_upper"]] == pytest.approx([-reach, reach])
    # Holm: the smallest of three p-values three times, the next one twice.
    small, large = sorted([test.pvalue, counts.pvalue])
    wanted = 3 * small if test.pvalue == small else max(3 * small, 2 * large)
    assert row["p"] == pytest.approx(wanted)
    assert (row["releases"], row["scope"]) == (12, "this population")
    assert compare(frame.iloc[::-1])["verdict"].tolist() == ["more"]  # the other way round


def test_construction_decides_before_data():
    """Whatever was measured, what is made from a release tells no more, and asks no data."""
    rng = np.random.default_rng(4)
    one, other = rng.uniform(0.2, 0.4, (9, 12)), rng.uniform(0.0, 0.2, (9, 12))
    low = pd.concat([released(one, protection="a"), released(other, protection="b")])
    high = pd.concat([released(other, protection="a"), released(one, protection="b")])
    for frame in (low, high):
        for pairs, verdict in (
            ([("a", "b")], "no more"), ([("b", "a")], "no less"),
            ([("a", "b"), ("b", "a")], "as much"),
        ):  # fmt: skip
            (row,) = compare(frame, constructions=pairs).to_dict("records")
            assert row["verdict"] == verdict
            assert np.isnan(row["p"])
            assert np.isnan(row["needed"])
    free = compare(low)
    third = pd.concat([low, released(one, protection="c")])
    assert compare(third)["p"].iloc[0] > free["p"].iloc[0]
    every = [("a", "b"), ("a", "c"), ("b", "c")]
    assert compare(third, constructions=every)["p"].isna().all()


def test_rules_without_chance_are_compared_in_populations_like_it():
    """By hand: residuals summed over a place, those of a large place weighed up."""
    rng = np.random.default_rng(7)
    places = np.repeat(np.arange(10), rng.integers(4, 12, 10))
    one, other = (rng.uniform(0.1, 0.5, (places.size, 1)) for _ in range(2))
    one[: places.size // 2] += 0.2
    frame = pd.concat([released(g, places, protection=n) for g, n in ((one, "a"), (other, "b"))])
    (row,) = compare(frame).to_dict("records")
    less = np.log(0.25 + other[:, 0]) - np.log(0.25 + one[:, 0])
    sizes = np.bincount(places)
    off = np.bincount(places, less - less.mean()) / np.sqrt(1.0 - sizes / places.size)
    error = np.sqrt((off**2).sum()) / places.size
    freedom = (sizes**2).sum() ** 2 / (sizes**4).sum() - 1.0
    reach = student.ppf(1.0 - 0.025 / 3, freedom) * error
    limits = np.exp([-less.mean() - reach, -less.mean() + reach])
    assert [row["lower"], row["upper"]] == pytest.approx(limits)
    assert row["scope"] == "populations like it"
    assert row["p"] > 0.0
    assert compare(frame, people=5000)["scope"].tolist() == ["populations like it"]


def test_what_does_not_vary_tells_no_order():
    """Nothing varies in one population, so that any difference would be sure there."""
    one, other = np.full((50, 1), 0.25), np.full((50, 1), 0.125)
    frame = pd.concat([released(one, protection="a"), released(other, protection="b")])
    (row,) = compare(frame).to_dict("records")
    assert row["factor"] == pytest.approx(0.5 / 0.375)
    assert (row["verdict"], row["p"]) == ("cannot tell", 1.0)
    same = pd.concat([released(one, protection="a"), released(one, protection="b")])
    assert compare(same)["verdict"].tolist() == ["cannot tell"]
    assert compare(same)["factor"].tolist() == [1.0]


@pytest.mark.parametrize("wrong", [1, 2])
def test_whoever_held_the_truth_impossible_ranks_nothing(wrong):
    rng = np.random.default_rng(3)
    one, other = rng.uniform(0.2, 0.4, (9, 12)), rng.uniform(0.0, 0.2, (9, 12))
    other[:wrong, 0] = -0.25
    frame = pd.concat([released(one, protection="a"), released(other, protection="b")])
    (row,) = compare(frame).to_dict("records")
    assert (row["verdict"], row["explained"], row["p"]) == ("cannot tell", False, 1.0)
    assert np.isnan(row["factor"])
    assert np.isfinite(row["doubled_lower"])


def test_one_release_of_many_tells_nothing():
    frame = pd.concat(
        [released(np.full((9, 1), gain), protection=name, randomised=True)
         for name, gain in (("a", 0.1), ("b", 0.5))]
    )  # fmt: skip
    (row,) = compare(frame).to_dict("records")
    assert (row["verdict"], row["p"]) == ("cannot tell", 1.0)
    assert np.isnan(row["lower"])
    assert np.isnan(row["needed"])


@pytest.mark.parametrize("attack", ["likelihood", "swap-aware"])
def test_tables_that_a_model_does_not_explain_are_ranked_neither_way(attack):
    off = np.linspace(0.0, 0.01, 10)[:, None]
    frame = pd.concat([
        released(0.25 + off, protection="a"),
        released(off**2, protection="b", attack=attack),
        released(0.125 + off[::-1], protection="c"),
    ])  # fmt: skip
    mine = frame["protection"] == "b"
    for unstated, verdicts in (
        (5, ["less", "less", "more"]),
        (6, ["cannot tell", "less", "cannot tell"]),
    ):
        few = mine & (frame["target"].astype(int) < unstated)
        some = compare(frame.assign(status=frame["status"].mask(few, "unstated")))
        assert some["verdict"].tolist() == verdicts
        assert some["explained"].tolist() == [verdict != "cannot tell" for verdict in verdicts]
        assert (some["lower"].isna() == ~some["explained"]).all()
        assert (some["p"] == 1.0).tolist() == [verdict == "cannot tell" for verdict in verdicts]
        assert some["needed"].isna().all()


def test_equal_settings_are_told_apart_in_one_audit_of_twenty_at_most():
    """Five equal protections, ten verdicts each: any of them is false in 5 % of audits at most."""
    rng, runs = np.random.default_rng(5), 60
    audits = dict.fromkeys(("holm", "naive"), 0)
    for _ in range(runs):
        gains = 0.1 + 0.01 * rng.normal(size=(5, 1, 8)) + 0.05 * rng.normal(size=(5, 12, 8))
        frame = pd.concat([released(gain, protection=str(i)) for i, gain in enumerate(gains)])
        audits["holm"] += bool((compare(frame)["verdict"] != "cannot tell").any())
        means = gains.mean(axis=1)
        pairs = [(i, j) for i in range(5) for j in range(i)]
        audits["naive"] += any(ttest_rel(means[i], means[j]).pvalue < 0.05 for i, j in pairs)
    assert audits["holm"] <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)
    assert audits["naive"] > 0.12 * runs  # negative control: each pair by itself


def test_as_many_releases_as_are_needed_tell_mostly():
    rng = np.random.default_rng(6)
    told, needed = 0, []
    for _ in range(20):
        gains = [g + 0.02 * rng.normal(size=(1, 200)) + np.zeros((3, 1)) for g in (0.2, 0.21)]
        few = pd.concat(
            [released(g[:, :12], protection=n) for g, n in zip(gains, "ab", strict=True)]
        )
        row = compare(few).iloc[0]
        needed.append(row["needed"])
        # With the true difference and spread: (1.96 * .02 * sqrt(2) / .01)**2 = 30.7.
        whole = pd.concat([released(g, protection=n) for g, n in zip(gains, "ab", strict=True)])
        told += compare(whole).iloc[0]["verdict"] == "more"
    assert told >= 19
    assert 12 < np.nanmedian(needed) < 80


def test_only_the_best_reading_is_compared_and_only_decided_targets():
    gains = np.full((6, 3), 0.1) + np.arange(3) / 50
    frame = pd.concat(
        [
            released(gains, protection="a"),
            released(gains / 2 + np.eye(6, 3) / 99, protection="s", attack="swap-aware"),
            released(gains * 2, protection="s", attack="as-true"),
            released(gains, protection="a", attack="majority"),
        ]
    )
    (row,) = compare(frame).to_dict("records")
    assert (row["attack"], row["attack_against"], row["targets"]) == ("swap-aware", "likelihood", 6)
    frame.loc[(frame["target"] == "0") & (frame["release"] == 1), "status"] = "undecided"
    assert compare(frame)["targets"].tolist() == [5]
    assert compare(frame[frame["protection"] == "a"]).empty


@pytest.mark.parametrize("drawn", [True, False])
def test_as_many_people_as_are_needed_tell_mostly(drawn):
    """Of a population of 4,000 some are asked; those that would tell are asked in turn."""
    rng = np.random.default_rng(8)
    people, releases = 4000, 6 if drawn else 1
    base = rng.uniform(0.1, 0.5, (people, 1))
    less = 0.02 + 0.15 * rng.normal(size=(people, 1))
    noise = 0.001 * rng.normal(size=(2, 1, releases)) * drawn
    gains = np.exp(np.log(0.25 + base) + noise[0]), np.exp(np.log(0.25 + base) - less + noise[1])

    def asked(rows):
        frames = [
            released(np.clip(g[rows], 0.01, 0.999) - 0.25, protection=n)
            for g, n in zip(gains, "ab", strict=True)
        ]
        return compare(pd.concat(frames), people=people).iloc[0]

    told, needed = 0, []
    for _ in range(12):
        order = rng.permutation(people)
        few = asked(order[:60])
        if few["verdict"] == "cannot tell":
            needed.append(few["needed_people"])
            told += asked(order[:1500])["verdict"] == "less"
    assert len(needed) >= 6
    assert told >= len(needed) - 1
    # With the true difference and spread: (2.39 * .15 / .02)**2 = 321, or 297 of 4,000.
    assert 60 < np.nanmedian(needed) < 1500
    whole = asked(np.arange(people))
    assert np.isnan(whole["needed_people"])
