"""Shares of targets who are guessed right, what is due to own records, and intervals by place."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, ttest_1samp

from bayesrisk.risk.audit import audit_calibration, audit_summary, audit_targets
from bayesrisk.risk.audit.summary import GROUPS, clustered_mean


def rows(target, place, three, truth, status="calculated", **about):
    """Return the statements 0, 1, ... about a target; three lists of probabilities."""
    size = len(three[0])
    return pd.DataFrame(
        {
            "protection": "p", "attack": "likelihood", "adversary": "outsider", "target": target,
            "statement": [str(i) for i in range(size)], "prior": three[0], "without": three[1],
            "posterior": three[2], "correct": np.arange(size) == truth, "status": status,
            "place": place, "place_size": 20, "alike": 2, "nonmodal": False,
        }
        | about
    )  # fmt: skip


def test_targets_by_hand():
    frame = pd.concat(
        [
            rows("1", "a", ([0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.9, 0.1, 0.0]), 0),
            rows("2", "a", ([0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.8, 0.1]), 2),
            rows("3", "b", ([0.4, 0.6], [np.nan] * 2, [np.nan] * 2), 0, status="undecided"),
        ]
    )
    found = audit_targets(frame)
    assert found["target"].tolist() == ["1", "2", "3"]
    nobody = found.iloc[2]
    assert (nobody["status"], nobody["right_prior"], nobody["truth_prior"]) == ("undecided", 0, 0.4)
    assert nobody[["right_without", "right_posterior", "truth_posterior"]].isna().all()
    found = found.iloc[:2]
    assert found["right_prior"].tolist() == [0.5, 0.0]
    np.testing.assert_allclose(found["right_without"], [0.0, 1 / 3])
    assert found["right_posterior"].tolist() == [1.0, 0.0]
    np.testing.assert_allclose(found["truth_prior"], [0.5, 0.2])
    np.testing.assert_allclose(found["truth_without"], [0.2, 1 / 3])
    np.testing.assert_allclose(found["truth_posterior"], [0.9, 0.1])


def test_nobody_is_a_frame_without_rows():
    frame = rows("3", "b", ([0.4, 0.6], [np.nan] * 2, [np.nan] * 2), 0, status="undecided")
    targets = audit_targets(frame)
    assert targets["status"].tolist() == ["undecided"]
    whole = rows("3", "b", ([0.4, 0.6], [0.5, 0.5], [0.5, 0.5]), 0)
    for none, some in (
        (audit_summary(targets), audit_summary(audit_targets(whole))),
        (audit_calibration(frame), audit_calibration(whole)),
    ):
        assert none.empty
        assert none.columns.tolist() == some.columns.tolist()


def test_summary_by_hand():
    sizes = [5, 10, 49, 50, 250]
    frame = pd.concat(
        [
            rows(
                str(i), f"place {i}", ([0.5, 0.5], [0.25, 0.75], [1.0, 0.0]), 0,
                place_size=size, alike=1 + i % 2, nonmodal=i == 0,
            )
            for i, size in enumerate(sizes)
        ]
    )  # fmt: skip
    found = audit_summary(audit_targets(frame)).set_index("group")
    assert set(found.index) <= set(GROUPS)
    assert found.loc[list(GROUPS), "targets"].tolist() == [5, 1, 3, 1, 2, 1, 1]
    one = found.loc["everybody"]
    assert (one["right_prior"], one["right_without"], one["right_posterior"]) == (0.5, 0.0, 1.0)
    # Equal in five places: in a sixth it may be -1, with a probability of 1 - 0.025**(1 / 5).
    assert (one["own"], one["own_upper"]) == (1.0, 1.0)
    assert one["own_lower"] == pytest.approx(1.0 - 2.0 * (1.0 - 0.025**0.2))
    assert one["log_score_lower"] == -np.inf
    assert one["learned_50"] == one["learned_99"] == 2.0
    assert one["own_50"] == one["own_99"] == 4.0
    single = found.loc["unlike their place"]  # one place says nothing of the spread
    assert (single["own_lower"], single["own_upper"]) == (-1.0, 1.0)


def test_infinite_ratios_are_quantiles_and_no_averages():
    frame = pd.concat(
        [
            rows(str(i), "a", ([0.5, 0.5], [w, 1 - w], [0.5, 0.5]), 0)
            for i, w in enumerate([0.5, 0.25, 0.0, 0.0])
        ]
    )
    found = audit_summary(audit_targets(frame)).iloc[0]
    assert found["own_50"] == 2.0
    assert np.isinf(found["own_90"])


def clustered(rng, places):
    """Return targets whose gains are alike inside a place, with mean 0."""
    frames = []
    for place in range(places):
        size, gain = int(rng.integers(1, 30)), rng.normal()
        right = np.clip(0.5 + 0.2 * gain + rng.normal(0, 0.02, size), -5, 5)
        frames.append(
            pd.DataFrame({"place": str(place), "right_posterior": right, "right_without": 0.5})
        )
    frame = pd.concat(frames, ignore_index=True)
    about = {
        "protection": "p", "attack": "a", "adversary": "o", "right_prior": 0.5, "truth_prior": 0.5,
        "truth_without": 0.5, "truth_posterior": 0.5, "place_size": 20, "alike": 2,
        "nonmodal": False, "status": "calculated",
    }  # fmt: skip
    return frame.assign(target=[str(i) for i in range(len(frame))], **about)


@pytest.mark.slow
def test_intervals_cover_with_places_as_units():
    """One number for all people of a place: as if people were independent, they cover rarely."""
    rng = np.random.default_rng(5)
    covered = naive = 0
    runs = 150
    for _ in range(runs):
        frame = clustered(rng, 30)
        one = audit_summary(frame).iloc[0]
        covered += one["own_lower"] <= 0.0 <= one["own_upper"]
        alone = frame.assign(place=frame["target"])
        one = audit_summary(alone).iloc[0]
        naive += one["own_lower"] <= 0.0 <= one["own_upper"]
    # 95 % with units of unequal size: 4 standard errors, and 3 points for a ratio of 30 units.
    assert covered / runs > 0.92 - 4 * np.sqrt(0.05 * 0.95 / runs)
    assert naive / runs < 0.7


def test_calibration_by_hand():
    frame = pd.concat(
        [rows(str(i), str(i), ([0.5, 0.5], [0.5, 0.5], [0.9, 0.1]), int(i == 9)) for i in range(10)]
        + [rows("x", "x", ([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), 1)]
    )
    found = audit_calibration(frame)
    assert found["statements"].tolist() == [10, 10, 1]  # what nobody believes is left out
    assert found["from"].tolist() == [0.1, 0.9, 0.98]
    assert found["to"].tolist() == [0.3, 0.98, 1.0]
    low = found.iloc[0]
    assert low["posterior"] == pytest.approx(0.1)
    assert low["correct"] == pytest.approx(0.1)
    assert 0.0 <= low["correct_lower"] < 0.1 < low["correct_upper"] < 0.55
    assert (found.iloc[2]["correct"], found.iloc[2]["correct_lower"]) == (0.0, 0.0)
    assert found.iloc[2]["correct_upper"] == pytest.approx(0.975)


def test_statements_that_are_true_as_often_in_every_place_are_no_certainty():
    """Three of five in each of three places: the interval of 1.8 of 3 trials, not of no width."""
    frame = pd.concat(
        [
            rows(f"{p} {i}", str(p), ([0.5, 0.5], [0.5, 0.5], [0.6, 0.4]), int(i > 2))
            for p in range(3)
            for i in range(5)
        ]
    )
    found = audit_calibration(frame).iloc[1]
    assert (found["statements"], found["correct"]) == (15, pytest.approx(0.6))
    ends = beta.ppf([0.025, 0.975], [1.8, 2.8], [2.2, 1.2])
    assert [found["correct_lower"], found["correct_upper"]] == pytest.approx(ends.tolist())


@pytest.mark.parametrize("p", [0.003, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("places", [20, 100])
def test_intervals_of_rare_gains_cover(places, p):
    """Every number of places with a gain, weighed; Student's interval alone would be [0, 0] mostly.

    Between none and some five places with a gain it is still too short, as a normal law is.
    """
    at = np.arange(places)
    ends = np.array([clustered_mean((at < k) * 1.0, at, 0.95)[1:] for k in range(places + 1)])
    weight = binom.pmf(np.arange(places + 1), places, p)
    assert weight @ ((ends[:, 0] <= p) & (p <= ends[:, 1])) > 0.87
    assert np.all(ends[:, 1] - ends[:, 0] > 0.025)


def easy_and_hard(protection, attack, adversary, *, decided):
    """Return 20 targets who are guessed right, and 20 who are not, decided perhaps."""
    sure, wrong = ([0.5, 0.5], [0.5, 0.5], [0.9, 0.1]), ([0.5, 0.5], [0.5, 0.5], [0.2, 0.8])
    nothing = ([0.5, 0.5], [np.nan] * 2, [np.nan] * 2)
    about = {"protection": protection, "attack": attack, "adversary": adversary}
    frames = [rows(str(i), f"e{i}", sure, 0, **about) for i in range(20)]
    hard = (wrong, "calculated") if decided else (nothing, "undecided")
    frames += [rows(str(i), f"h{i}", hard[0], 0, hard[1], **about) for i in range(20, 40)]
    return pd.concat(frames)


def test_protections_are_compared_on_the_same_people():
    """The other way, a protection that leaves hard targets undecided would look the worse one."""
    both = [
        easy_and_hard("open", "likelihood", "outsider", decided=True),
        easy_and_hard("swapped", "as-true", "outsider", decided=False),
    ]
    alone = [audit_summary(audit_targets(one)).iloc[0] for one in both]
    assert [one["right_posterior"] for one in alone] == [0.5, 1.0]  # as if one protected half
    assert [one["left_out"] for one in alone] == [0, 20]
    found = audit_summary(audit_targets(pd.concat(both)))
    found = found[found["group"] == "everybody"]
    assert found["right_posterior"].tolist() == [1.0, 1.0]
    assert found["targets"].tolist() == found["left_out"].tolist() == [20, 20]


@pytest.mark.parametrize("places", [2, 1000])
@pytest.mark.parametrize("confidence", [0.5, 1.0 - 1e-6])
def test_places_of_one_target_each_have_the_interval_of_student(places, confidence):
    """The quantile is that of the law itself: the rest is rounding, of a few sums and of the level.

    A level that is off by 2**-52 moves the quantile most for one degree of freedom, by that over
    the tail.
    """
    values = np.random.default_rng(places).normal(size=places)
    law = ttest_1samp(values, 0.0).confidence_interval(confidence)
    mean, low, high = clustered_mean(values, np.arange(places), confidence, bound=np.inf)
    assert mean == values.mean()
    reach = (law.high - law.low) / 2
    rounding = 1e-13 + 2.0**-50 / (1.0 - confidence)
    assert [mean - low, high - mean] == pytest.approx([reach, reach], rel=rounding)


def test_log_scores_by_hand():
    frame = pd.concat(
        [
            rows(str(i), str(i), ([0.5, 0.5], [0.5, 0.5], [p, 1 - p]), 0)
            for i, p in enumerate([1, 0.25])
        ]
    )
    one = audit_summary(audit_targets(frame)).iloc[0]
    assert one["log_score"] == pytest.approx(np.log(0.25) / 2)
    assert one["log_score_lower"] < one["log_score"] < one["log_score_upper"] == 0.0
    nothing = [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    drawn = audit_summary(audit_targets(rows("1", "a", nothing, 0, "sampled"))).iloc[0]
    assert drawn["log_score"] == pytest.approx(np.log(1e-3))
    never = audit_summary(audit_targets(rows("1", "a", nothing, 0))).iloc[0]
    assert never["log_score"] == never["log_score_lower"] == -np.inf
