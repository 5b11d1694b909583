"""Verdicts between protections: by hand, how often they are false, and what they need."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from bayesrisk.risk.audit import compare

from .test_measures import released


def test_paired_releases_by_hand():
    rng = np.random.default_rng(4)
    one, other = rng.uniform(0.2, 0.4, (9, 12)), rng.uniform(0.0, 0.2, (9, 12))
    frame = pd.concat([released(one, protection="a"), released(other, protection="b")])
    (row,) = compare(frame, constructions=[("a", "b")]).to_dict("records")
    test = ttest_rel(other.mean(axis=0), one.mean(axis=0))
    assert (row["protection"], row["against"], row["verdict"]) == ("b", "a", "less")
    assert row["p"] == pytest.approx(test.pvalue)
    law = test.confidence_interval()
    assert [row["lower"], row["upper"]] == pytest.approx([law.low, law.high])
    assert (row["releases"], row["construction"]) == (12, True)
    assert compare(frame.iloc[::-1])["verdict"].tolist() == ["more"]  # the other way round


def test_what_is_not_randomised_is_exact_or_as_uncertain_as_its_targets():
    one, other = np.full((50, 1), 0.25), np.full((50, 1), 0.125)
    one[:20] = 0.0
    frame = pd.concat([released(one, protection="a"), released(other, protection="b")])
    (row,) = compare(frame).to_dict("records")
    assert row["difference"] == row["lower"] == row["upper"] == pytest.approx(-0.025)
    assert (row["verdict"], row["p"]) == ("less", 0.0)
    assert compare(frame, people=5000)["verdict"].tolist() == ["cannot tell"]
    same = pd.concat([released(one, protection="a"), released(one, protection="b")])
    assert compare(same)["verdict"].tolist() == ["cannot tell"]


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
    frame = pd.concat([
        released(np.full((10, 1), 0.25), protection="a"),
        released(np.zeros((10, 1)), protection="b", attack=attack),
        released(np.full((10, 1), 0.125), protection="c"),
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
        assert some["p"].tolist() == [float(verdict == "cannot tell") for verdict in verdicts]
        assert some["needed"].isna().tolist() == (~some["explained"]).tolist()


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
