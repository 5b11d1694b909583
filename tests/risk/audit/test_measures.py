"""Belief in the truth, what own records add to it, and intervals over releases and places."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, hypergeom, t, ttest_1samp

from bayesrisk.exceptions import DataError
from bayesrisk.risk.audit import audit_calibration, audit_measures, audit_targets, costs
from bayesrisk.risk.audit.measures import GROUPS, Sample, clustered_mean, widest_interval


def rows(target, place, three, truth, status="calculated", **about):
    """Return the statements 0, 1, ... about a target; three lists of probabilities."""
    size = len(three[0])
    return pd.DataFrame(
        {
            "protection": "p", "attack": "likelihood", "adversary": "outsider", "release": 0,
            "randomised": False, "target": target, "statement": [str(i) for i in range(size)],
            "prior": three[0], "without": three[1], "posterior": three[2], "without_error": 0.0,
            "posterior_error": 0.0, "correct": np.arange(size) == truth, "status": status,
            "place": place, "place_size": 20, "alike": 2, "nonmodal": False,
        }
        | about
    )  # fmt: skip


def released(gains, places=None, protection="p", **about):
    """Return targets whose belief is 1/4 without their own record and ``gains`` more with it."""
    gains = np.asarray(gains, float)
    people, m = gains.shape
    places = np.arange(people) if places is None else places
    return pd.DataFrame(
        {
            "protection": protection, "attack": "likelihood", "adversary": "outsider",
            "release": np.tile(np.arange(m), people), "randomised": m > 1,
            "target": np.repeat(np.arange(people).astype(str), m),
            "place": np.repeat(np.asarray(places).astype(str), m), "place_size": 20, "alike": 2,
            "nonmodal": False, "status": "calculated", "truth_prior": 0.2, "truth_without": 0.25,
            "truth_posterior": 0.25 + gains.ravel(), "error": 0.0, "right_prior": 0.0,
            "right_without": 0.0, "right_posterior": 1.0, "certain_without": False,
            "certain_posterior": False, "false": False, "brier": 0.5,
        }
        | about
    )  # fmt: skip


def test_targets_by_hand():
    frame = pd.concat(
        [
            rows("1", "a", ([0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.9, 0.1, 0.0]), 0,
                 posterior_error=[0.03, 0.0, 0.0], without_error=[0.04, 0.0, 0.0]),
            rows("2", "a", ([0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]), 2),
            rows("2", "a", ([0.4, 0.4, 0.2], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]), 2, release=1),
            rows("3", "b", ([0.4, 0.6], [np.nan] * 2, [np.nan] * 2), 0, status="undecided"),
        ]
    )  # fmt: skip
    targets = audit_targets(frame)
    assert targets["target"].tolist() == ["1", "2", "2", "3"]
    assert targets["release"].tolist() == [0, 0, 1, 0]
    nobody = targets.iloc[3]
    assert (nobody["status"], nobody["right_prior"], nobody["truth_prior"]) == ("undecided", 0, 0.4)
    assert nobody[["right_without", "right_posterior", "truth_posterior", "error"]].isna().all()
    targets = targets.iloc[:3]
    assert targets["right_prior"].tolist() == [0.5, 0.0, 0.0]
    np.testing.assert_allclose(targets["right_without"], [0.0, 1 / 3, 1.0])
    np.testing.assert_allclose(targets["truth_without"], [0.2, 1 / 3, 1.0])
    np.testing.assert_allclose(targets["truth_posterior"], [0.9, 0.0, 1.0])
    np.testing.assert_allclose(targets["error"], [0.05, 0.0, 0.0])
    np.testing.assert_allclose(targets["brier"], [0.02, 2.0, 0.0])
    assert targets["false"].tolist() == [False, True, False]
    assert targets["certain_posterior"].tolist() == [False, False, True]
    assert targets["certain_without"].tolist() == [False, False, True]


def test_nobody_is_a_frame_without_rows():
    frame = rows("3", "b", ([0.4, 0.6], [np.nan] * 2, [np.nan] * 2), 0, status="undecided")
    targets = audit_targets(frame)
    whole = rows("3", "b", ([0.4, 0.6], [0.5, 0.5], [0.5, 0.5]), 0)
    for none, some in (
        (audit_measures(targets), audit_measures(audit_targets(whole))),
        (audit_calibration(frame), audit_calibration(whole)),
    ):
        assert none.empty
        assert none.columns.tolist() == some.columns.tolist()


def test_measures_by_hand():
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
    measures = audit_measures(audit_targets(frame)).set_index("group")
    assert measures.loc[list(GROUPS), "targets"].tolist() == [5, 1, 3, 1, 2, 1, 1]
    one = measures.loc["everybody"]
    beliefs = one[["believed_prior", "believed_without", "believed_posterior"]].tolist()
    assert beliefs == [0.5, 0.25, 1.0]
    # Everybody, the only release there can be, and no chain: nothing is estimated.
    assert one[["gain", "gain_lower", "gain_upper"]].tolist() == [0.75, 0.75, 0.75]
    assert one[["doubled", "doubled_lower", "doubled_upper", "tenfold"]].tolist() == [5, 5, 5, 0]
    assert one[["certain", "proved", "proved_own", "false"]].tolist() == [5, 5, 5, 0]
    assert one["ratio_50"] == one["ratio_99"] == 4.0
    assert (one["right_prior"], one["right_without"], one["right_posterior"]) == (0.5, 0.0, 1.0)
    for name, answers in (("prior", 2.0), ("without", 4.0), ("posterior", 1.0)):
        columns = [f"answers_{name}{end}" for end in ("", "_lower", "_upper")]
        assert one[columns].tolist() == pytest.approx([answers] * 3)
    for name, factor in (("others", 2.0), ("own", 0.25)):
        columns = [f"{name}_factor{end}" for end in ("", "_lower", "_upper")]
        assert one[columns].tolist() == pytest.approx([factor] * 3)
    assert one["brier"] == 0.0
    like = "answers_posterior_like_lower"
    assert np.isnan(one[like])  # five places alike say nothing about others
    assert np.isnan(measures.loc["unlike their place", like])


def test_certainty_that_is_no_proof_is_not_counted_as_one():
    """Tables that are taken as true say much with certainty; only a law or a prover proves."""
    right, wrong = ([0.5, 0.5], [0.5, 0.5], [1.0, 0.0]), ([0.5, 0.5], [0.5, 0.5], [0.0, 1.0])
    for attack, status, proved in (
        ("likelihood", "calculated", 2), ("as-true", "calculated", 0), ("claims", "believed", 0),
        ("claims", "proved", 2), ("likelihood", "sampled", 0),
    ):  # fmt: skip
        about = {"attack": attack, "status": status}
        three = [rows(str(i), "a", one, 0, **about) for i, one in enumerate([right, right, wrong])]
        one = audit_measures(audit_targets(pd.concat(three))).iloc[0]
        assert one[["certain", "proved", "false"]].tolist() == [2, proved, 1]
        noisy = audit_targets(pd.concat(three).assign(randomised=True))
        by_prover = proved if status == "proved" else 0  # under noise everything is possible
        assert audit_measures(noisy).iloc[0]["proved"] == by_prover


def test_infinite_ratios_are_quantiles_and_no_averages():
    frame = pd.concat(
        [
            rows(str(i), "a", ([0.5, 0.5], [w, 1 - w], [0.5, 0.5]), 0)
            for i, w in enumerate([0.5, 0.25, 0.0, 0.0])
        ]
    )
    one = audit_measures(audit_targets(frame)).iloc[0]
    assert (one["ratio_50"], one["doubled"], one["tenfold"]) == (2.0, 3.0, 2.0)
    assert np.isinf(one["ratio_90"])


def test_over_releases_the_interval_is_that_of_student():
    gains = np.random.default_rng(1).uniform(0, 0.5, (7, 6))
    one = audit_measures(released(gains)).iloc[0]
    law = ttest_1samp(gains.mean(axis=0), 0.0).confidence_interval()
    np.testing.assert_allclose(one[["gain_lower", "gain_upper"]].tolist(), list(law), rtol=1e-12)
    scores = np.log(0.25 + gains)
    np.testing.assert_allclose(one["error_releases"], scores.mean(axis=0).std(ddof=1) / np.sqrt(6))
    twice = (gains >= 0.25).mean(axis=0)
    law = 7 * np.array(ttest_1samp(twice, 0.0).confidence_interval())
    assert one["doubled"] == pytest.approx(7 * twice.mean())
    limits = one[["doubled_lower", "doubled_upper"]].tolist()
    np.testing.assert_allclose(limits, np.clip(law, 0, 7), rtol=1e-12)
    # One release of many, or releases that happen to agree, tell nothing of others.
    alone = audit_measures(released(gains[:, :1], randomised=True)).iloc[0]
    assert alone[["gain_lower", "gain_upper"]].isna().all()
    same = audit_measures(released(np.full((7, 3), 0.125))).iloc[0]
    assert same[["gain_lower", "doubled_lower"]].isna().all()


def test_a_sample_has_its_own_part_with_the_finite_population_factor():
    gains = np.random.default_rng(2).uniform(0, 0.5, (40, 1))
    one = audit_measures(released(gains), people=100).iloc[0]
    error = gains.std(ddof=1) / np.sqrt(40) * np.sqrt(0.6)
    scores = np.log(0.25 + gains)
    assert one["error_people"] == pytest.approx(scores.std(ddof=1) / np.sqrt(40) * np.sqrt(0.6))
    reach = t.ppf(0.975, 39) * error
    limits = gains.mean() + np.array([-reach, reach])
    np.testing.assert_allclose(one[["gain_lower", "gain_upper"]].tolist(), limits)
    assert one["people"] == pytest.approx(100)
    assert one["doubled"] == pytest.approx(100 * (gains >= 0.25).mean())
    assert widest_interval(released(gains), share=0.4) == pytest.approx(reach)


def test_chains_of_a_place_err_together():
    frame = released(np.full((4, 1), 0.125), places=[0, 0, 1, 1], error=0.02)
    one = audit_measures(frame).iloc[0]
    # Two places, not four people; of a logarithm the error is over the probability.
    assert one["error_chains"] == pytest.approx(0.02 / 0.375 / np.sqrt(2))
    assert one["gain_upper"] - one["gain"] == pytest.approx(1.959964 * 0.02 / np.sqrt(2))


def test_every_target_is_asked_about_in_every_release():
    frame = released(np.full((3, 2), 0.125))
    with pytest.raises(DataError, match="under every release of 'p'"):
        audit_measures(frame.iloc[:-1])


@pytest.mark.parametrize(("places", "m"), [(16, 8), (40, 20), (16, 1)])
def test_intervals_cover_the_long_run(places, m):
    """Of this population, of a sample of it, and of others like it, with places of any size."""
    rng, runs, covered = np.random.default_rng(3), 1000, np.zeros(3)
    naive = 0
    for _ in range(runs):
        place = np.repeat(np.arange(places), rng.integers(5, 40, places))
        people = 0.03 * rng.normal(size=places)[place] + 0.1 * rng.normal(size=place.size)
        rest = 0.007 * rng.normal(size=m) + 0.01 * rng.normal(size=(places, m))[place]
        values = people[:, None] + (rest + 0.05 * rng.normal(size=(place.size, m))) * (m > 1)
        whole = Sample(place, m, 1.0, m > 1)
        some = np.sort(rng.choice(place.size, place.size // 3, replace=False))
        part = Sample(
            np.unique(place[some], return_inverse=True)[1], m, some.size / place.size, m > 1
        )
        like = whole.wide_interval(values, 0.95)
        for i, (limits, truth) in enumerate(
            [
                (whole.interval(values, None, 0.95), people.mean()),
                (part.interval(values[some], None, 0.95), people.mean()),
                (like, 0.0),
            ]
        ):
            covered[i] += limits[0] - 1e-12 <= truth <= limits[1] + 1e-12
        error = values.std(ddof=1) / np.sqrt(values.size)  # people and releases as if independent
        naive += abs(values.mean()) <= 1.96 * error
    # 93 to 97 %, and 3 standard errors of so many runs.
    spare = 3 * np.sqrt(0.05 * 0.95 / runs)
    assert np.all(covered[1:] / runs > 0.93 - spare)
    assert np.all(covered[1:] / runs < 0.97 + spare)
    if m > 1:
        assert 0.93 - spare < covered[0] / runs < 0.97 + spare
    else:
        assert covered[0] == runs  # exact
    assert naive / runs < 0.9  # negative control


def test_calibration_by_hand():
    frame = pd.concat(
        [rows(str(i), str(i), ([0.5, 0.5], [0.5, 0.5], [0.9, 0.1]), int(i == 9)) for i in range(10)]
        + [rows("x", "x", ([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), 1)]
    )
    curve = audit_calibration(frame)
    assert curve["statements"].tolist() == [10, 10, 1]  # what nobody believes is left out
    assert curve["from"].tolist() == [0.1, 0.9, 0.98]
    assert curve["to"].tolist() == [0.3, 0.98, 1.0]
    low = curve.iloc[0]
    assert low["posterior"] == pytest.approx(0.1)
    assert low["correct"] == pytest.approx(0.1)
    assert 0.0 <= low["correct_lower"] < 0.1 < low["correct_upper"] < 0.55
    assert (curve.iloc[2]["correct"], curve.iloc[2]["correct_lower"]) == (0.0, 0.0)
    assert curve.iloc[2]["correct_upper"] == pytest.approx(0.975)


def test_statements_that_are_true_as_often_in_every_place_are_no_certainty():
    """Three of five in each of three places: the interval of 1.8 of 3 trials, not of no width."""
    frame = pd.concat(
        [
            rows(f"{p} {i}", str(p), ([0.5, 0.5], [0.5, 0.5], [0.6, 0.4]), int(i > 2))
            for p in range(3)
            for i in range(5)
        ]
    )
    curve = audit_calibration(frame).iloc[1]
    assert (curve["statements"], curve["correct"]) == (15, pytest.approx(0.6))
    limits = beta.ppf([0.025, 0.975], [1.8, 2.8], [2.2, 1.2])
    assert [curve["correct_lower"], curve["correct_upper"]] == pytest.approx(limits.tolist())


@pytest.mark.parametrize("p", [0.003, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("places", [20, 100])
def test_intervals_of_rare_gains_cover(places, p):
    """Every number of places with a gain, weighed; Student's interval alone would be [0, 0] mostly.

    Between none and some five places with a gain it is still too short, as a normal law is.
    """
    at = np.arange(places)
    limits = np.array([clustered_mean((at < k) * 1.0, at, 0.95)[1:] for k in range(places + 1)])
    weight = binom.pmf(np.arange(places + 1), places, p)
    assert weight @ ((limits[:, 0] <= p) & (p <= limits[:, 1])) > 0.87
    assert np.all(limits[:, 1] - limits[:, 0] > 0.025)


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
    alone = [audit_measures(audit_targets(one)).iloc[0] for one in both]
    assert [one["believed_posterior"] for one in alone] == pytest.approx([0.55, 0.9])
    assert [one["left_out"] for one in alone] == [0, 20]
    measures = audit_measures(audit_targets(pd.concat(both)))
    measures = measures[measures["group"] == "everybody"]
    assert measures["believed_posterior"].tolist() == pytest.approx([0.9, 0.9])
    assert measures["targets"].tolist() == measures["left_out"].tolist() == [20, 20]


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


def test_remaining_answers_by_hand():
    """Geometric means over people and releases, with Student's interval of the mean logarithm."""
    chances = np.array([[1.0, 0.5], [0.25, 0.25]])
    one = audit_measures(released(chances - 0.25)).iloc[0]
    by_release = np.log(chances).mean(axis=0)
    assert one["answers_posterior"] == pytest.approx(np.prod(1.0 / chances) ** 0.25)
    law = ttest_1samp(by_release, 0.0).confidence_interval()
    limits = np.exp([max(-law.high, 0.0), -law.low])
    columns = ["answers_posterior_lower", "answers_posterior_upper"]
    assert one[columns].tolist() == pytest.approx(limits)
    assert one["answers_prior"] == pytest.approx(5.0)  # 0.2 of everybody
    assert one["answers_without"] == pytest.approx(4.0)
    assert one["others_factor"] == pytest.approx(4.0 / 5.0)
    assert one["own_factor"] == pytest.approx(one["answers_posterior"] / 4.0)
    step = ttest_1samp(np.log(0.25) - by_release, 0.0).confidence_interval()
    columns = ["own_factor_lower", "own_factor_upper"]
    assert one[columns].tolist() == pytest.approx(np.exp([step.low, step.high]))


def test_whoever_held_the_truth_impossible_has_no_end_of_answers():
    nothing = [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    drawn = audit_measures(audit_targets(rows("1", "a", nothing, 0, "sampled"))).iloc[0]
    assert drawn["answers_posterior"] == pytest.approx(1e3)
    never = audit_measures(audit_targets(rows("1", "a", nothing, 0))).iloc[0]
    assert never["answers_posterior"] == never["answers_posterior_lower"] == np.inf
    assert never["own_factor"] == np.inf
    assert (never["brier"], never["false"]) == (2.0, 1.0)
    assert never[["error_people", "error_releases", "error_chains"]].tolist() == [0.0] * 3


def test_what_was_impossible_before_and_after_has_no_factor():
    sure, wrong = [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    both = pd.concat([rows("1", "a", sure, 0), rows("2", "b", wrong, 0)])
    one = audit_measures(audit_targets(both)).iloc[0]
    assert np.isnan(one["own_factor"])
    assert one["answers_without"] == one["answers_posterior"] == np.inf
    assert one["others_factor"] == np.inf
    once = audit_measures(audit_targets(rows("1", "a", sure, 0))).iloc[0]
    assert (once["own_factor"], once["answers_posterior"]) == (0.0, 1.0)


def test_costs_by_hand():
    errors = pd.DataFrame(
        {
            "protection": ["noise"] * 4 + ["withheld"] * 2, "level": "block",
            "table": ["a", "b"] * 3, "release": [0, 0, 1, 1, 0, 0],
            "error": [1.0, 3.0, 2.0, 6.0, 0.5, 1.5], "withheld": [0, 0, 0, 0, 0.5, 0],
        }
    )  # fmt: skip
    noise, withheld = costs(errors).to_dict("records")
    law = ttest_1samp([2.0, 4.0], 0.0).confidence_interval()
    assert noise["error"] == 3.0
    assert [noise["error_lower"], noise["error_upper"]] == pytest.approx(list(law))
    assert (withheld["error"], withheld["withheld"]) == (1.0, 0.25)
    assert np.isnan(withheld["error_upper"])


@pytest.mark.parametrize("number", [0, 1, 4, 18])
def test_of_some_asked_the_number_of_people_is_covered(number):
    """Samples of 30 of 300 people whose answers are known: each hides most who are affected."""
    rng, runs, covered, exact = np.random.default_rng(4), 100, 0, 0
    for _ in range(runs):
        drawn = rng.choice(300, 30, replace=False)
        one = audit_measures(released(0.5 * (drawn < number)[:, None]), people=300).iloc[0]
        covered += one["doubled_lower"] <= number <= one["doubled_upper"]
        exact += one["doubled_lower"] == one["doubled_upper"]
    assert covered >= 0.95 * runs
    assert exact == 0
    whole = audit_measures(released(0.5 * (np.arange(300) < number)[:, None])).iloc[0]
    assert whole[["doubled", "doubled_lower", "doubled_upper"]].tolist() == [number] * 3


def test_no_number_of_people_is_exact_where_some_were_asked():
    """Of 30 of 300, none seen leaves up to 32 of all: the largest K that a sample may miss."""
    names = ("doubled", "tenfold", "certain", "proved", "proved_own", "false")
    places = hypergeom(300, np.arange(301), 30).cdf(0)
    most = np.flatnonzero(places > 0.025)[-1]
    measures = audit_measures(released(np.zeros((30, 1))), people=300).set_index("group")
    one = measures.loc["everybody"]
    for name in names:
        assert one[[name, f"{name}_lower", f"{name}_upper"]].tolist() == [0, 0, most]
    # All who were asked agree, which the others need not: of beliefs, too.
    assert one["gain_lower"] == pytest.approx(-most / 300)
    assert one["gain_upper"] == pytest.approx(most / 300)
    assert one[["answers_posterior_lower", "answers_posterior_upper"]].isna().all()
    sure = released(np.full((30, 1), 0.5), certain_posterior=True)
    all_ = audit_measures(sure, people=300).iloc[0]
    for name in ("doubled", "certain", "proved", "proved_own"):
        assert all_[[name, f"{name}_lower", f"{name}_upper"]].tolist() == [300, 300 - most, 300]
    # How many live in large places was not asked: a group has no more certainty than everybody.
    part = released(np.zeros((30, 1)), place_size=[300] * 3 + [20] * 27)
    group = audit_measures(part, people=300).set_index("group").loc["place of 250 or more"]
    assert group[["people", "doubled", "doubled_upper"]].tolist() == [30, 0, most]
