"""Choosing a protection: the search, its errors, and what it says where nothing is enough."""

import numpy as np
import pandas as pd
import pytest
from audits import WORKLOAD, contents
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from bayesrisk.exceptions import ArgumentError, BayesRiskError, PartFileError
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import (
    AuditStudy,
    Protection,
    ProtectionGoal,
    parse_protection,
    read_audit,
)
from bayesrisk.experiments.audit.choosing import (
    chosen_settings,
    search_of,
    tried_settings,
    worst_quantile,
)
from bayesrisk.mechanisms import available_mechanisms
from bayesrisk.mechanisms.registry import REGISTRY, mechanism_dial
from bayesrisk.risk.audit import Adversary

GOAL = ProtectionGoal(1.5, 0.9, steps=2)
EVERYBODY_ELSE = [Adversary.named("knows-all-but-one")]


def searched(text):
    return search_of(parse_protection(text))


def found(search, enough, steps):
    """Return what a search tries and chooses, where ``enough`` says of a value whether it does."""
    met = {value: enough(value) for value in search.first()}
    for _ in range(steps):
        value = search.following(met)
        if value is None:
            break
        assert value not in met
        met[value] = enough(value)
    return met, search.chosen(met)


@given(st.floats(0.001, 1000.0))
def test_a_bisection_ends_next_to_where_it_turns(turn):
    search = searched("discrete-gaussian")
    met, value = found(search, lambda rho: rho <= turn, 12)
    assert value <= turn
    # A range of 10^6, halved 13 times on the scale of logarithms, in values of three digits.
    assert turn <= value * 10 ** (6 / 2**13) * (1 + 1e-2)
    assert len(met) <= 15


@given(st.integers(2, 40), st.integers(3, 9))
def test_whole_numbers_are_found_exactly(turn, steps):
    """More of a base protects more, so that the weakest that is enough is the smallest."""
    search = searched("rounding:base=2..40,method=nearest")
    met, value = found(search, lambda base: base >= turn, steps)
    assert value >= turn
    assert all(v.is_integer() for v in met)
    if steps >= 6:
        assert value == turn


def test_nothing_is_tried_where_the_ends_say_it_all():
    search = searched("swapping:rate=0.01..0.5")
    for enough, value in ((False, None), (True, 0.01)):
        met, chosen_ = found(search, lambda rate, met=enough: met, 9)
        assert (len(met), chosen_) == (3, value)
    assert searched("rounding:base=4..5").first() == [5.0, 4.0]


def test_a_weak_setting_that_is_enough_by_chance_is_not_chosen_over_a_strong_one_that_is_not():
    search = searched("discrete-gaussian:rho=0.01..100")
    assert search.chosen({0.01: False, 1.0: True, 100.0: True}) is None
    assert search.chosen({0.01: True, 1.0: False, 100.0: True}) == 0.01


def test_every_mechanism_says_its_own_dial():
    """By what is declared beside it; a parameter of every dial is one of its mechanism."""
    dials = {name: mechanism_dial(name) for name in REGISTRY.own}
    assert {name: dial and dial.name for name, dial in dials.items()} == {
        "identity": None, "discrete-gaussian": "rho", "discrete-laplace": "epsilon",
        "rounding": "base", "suppression": "threshold", "swapping": "rate", "topdown": "rho",
        "bottom-up": "rho",
    }  # fmt: skip
    for name, dial in dials.items():
        assert dial is None or dial.name in REGISTRY.parameters(name)
    assert {"base", "threshold", "rate"}.isdisjoint(
        d.name for d in dials.values() if d and d.strongest < d.weakest
    )


def test_a_plugin_may_declare_a_dial(monkeypatch):
    class Coarse:
        dial = "base"

    monkeypatch.setitem(REGISTRY._registered, "coarse", Coarse)
    assert "coarse" in available_mechanisms()
    with pytest.raises(ArgumentError, match="dial of mechanism 'coarse' must be a Dial"):
        mechanism_dial("coarse")


def test_what_is_stated_is_not_searched():
    assert searched("identity") is None
    assert searched("swapping:rate=0.05") is None
    assert search_of(Protection("p", "discrete-gaussian", {"budgets": {"block": {"R": 1}}})) is None
    assert searched("bottom-up:allocation=das-2020") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rounding:base=9..3", "0 < A < B, got '9..3'"),
        ("rounding:base=2..3.5", "whole numbers"),
        ("swapping:rate=0..1", "0 < A < B"),
        ("swapping:rate=1..2..3", "a range A..B"),
        ("swapping:neighbours=1..9", "declares for a search, 'rate', got 'neighbours'"),
        ("identity:rate=1..2", "declares for a search, none"),
    ],
)
def test_ranges_that_are_none(text, words):
    with pytest.raises(ArgumentError, match=words):
        searched(text)


def statements(name, ratios, *, places=None, status="calculated", without=0.01):
    """Return what one adversary believes of targets, by the ratio of the true statement."""
    number = len(ratios)
    frame = pd.DataFrame(
        {
            "protection": name, "attack": "likelihood", "adversary": "outsider",
            "target": [str(i) for i in range(number)], "statement": "it", "prior": without,
            "without": without, "posterior": without * np.asarray(ratios, float), "correct": True,
            "status": status, "place": [str(i) for i in (places or range(number))],
            "place_size": 20, "alike": 2, "nonmodal": False,
        }
    )  # fmt: skip
    frame.loc[np.isnan(frame["posterior"]), "status"] = "undecided"
    return frame


def chosen(search, by_value, goal=GOAL, costs=None):
    """Return the choice from hand-made ratios of every value that was tried."""
    asked = search.protection
    tried = [(asked, search, v, search.setting(v)) for v in by_value]
    frame = pd.concat([statements(search.setting(v).name, r) for v, r in by_value.items()])
    errors = pd.DataFrame(
        {
            "protection": [made.name for *_, made in tried], "withheld": 0.0,
            "mean_absolute_loss": costs or 1.0,
        }
    )  # fmt: skip
    settings_ = tried_settings(tried, frame, errors, goal)
    return chosen_settings({asked.name: search}, settings_, frame, goal).iloc[0]


def test_the_choice_by_hand():
    search = searched("discrete-gaussian:rho=0.01..100")
    row = chosen(search, {0.01: [1.0] * 100, 1.0: [1.2] * 98 + [9.0] * 2, 100.0: [3.0] * 100})
    assert row["setting"] == "discrete-gaussian [rho=1]"
    assert row[["met", "monotone"]].all()
    assert (row["ratio"], row["lower"], row["tried"]) == (1.2, 1.2, 3)
    assert row["sure"]  # of 100 targets 98 are below, where 90 should be
    assert "rho=1] meets the target: for 90 % of people the ratio is at most 1.2" in row["answer"]
    few = chosen(search, {0.01: [1.0] * 20, 1.0: [1.2] * 19 + [9.0], 100.0: [3.0] * 20})
    assert (few["met"], few["sure"], few["upper"]) == (True, False, np.inf)
    assert "do not rule out a larger one" in few["answer"]


def test_it_says_so_if_nothing_in_the_range_is_enough():
    search = searched("discrete-gaussian:rho=0.01..100")
    row = chosen(search, {0.01: [2.0] * 50, 1.0: [3.0] * 50, 100.0: [4.0] * 50})
    assert (row["met"], row["cheapest"], row["monotone"]) == (False, False, True)
    assert "no rho from 0.01 to 100 meets the target; at 0.01" in row["answer"]


def test_it_says_so_if_more_protection_lets_more_be_learned():
    """Negative control: within error nothing is said."""
    search = searched("discrete-gaussian:rho=0.01..100")
    wrong = {0.01: [1.0] * 40 + [2.0] * 20, 1.0: [1.0] * 60, 100.0: [1.0] * 60}
    row = chosen(search, wrong)
    assert not row["monotone"]
    assert "this search may mislead" in row["answer"]
    chance = {0.01: [1.0] * 57 + [2.0] * 3, 1.0: [1.0] * 60, 100.0: [1.0] * 60}
    assert chosen(search, chance)["monotone"]
    right = {0.01: [1.0] * 60, 1.0: [1.0] * 40 + [2.0] * 20, 100.0: [2.0] * 60}
    assert chosen(search, right)["monotone"]


@pytest.mark.parametrize("more", [0, 10, 14, 15])
def test_places_vote_by_a_sign_test(more):
    """Of twenty places that change, the stronger setting is worse for some."""
    search = searched("discrete-gaussian:rho=0.01..1")
    strong, weak = np.ones((2, 40))
    strong[:more], weak[more:20] = 2.0, 2.0
    p = binomtest(more, 20, alternative="greater").pvalue
    assert chosen(search, {0.01: list(strong), 1.0: list(weak)})["monotone"] == (p >= 0.05)


def test_undecided_targets_widen_the_interval_and_not_the_estimate():
    decided = [1.0 + i / 100 for i in range(100)]
    one, two = (
        worst_quantile(statements("p", decided + more), ProtectionGoal(1.5, 0.5))
        for more in ([], [np.nan] * 30)
    )
    assert (one["undecided"], two["undecided"]) == (0, 30)
    assert one["ratio"] == two["ratio"] == 1.49
    assert two["lower"] < one["lower"] < one["ratio"] < one["upper"] < two["upper"]
    nobody = worst_quantile(statements("p", [np.nan] * 5), GOAL)
    assert (nobody["met"], nobody["lower"], nobody["upper"]) == (False, 0.0, np.inf)


def test_the_worst_adversary_is_taken_unless_one_is_named():
    linker = statements("p", [2.0] * 30).assign(adversary="linker")
    frame = pd.concat([statements("p", [1.2] * 30), linker])
    assert worst_quantile(frame, GOAL)["adversary"] == "linker"
    assert not worst_quantile(frame, GOAL)["met"]
    named = worst_quantile(frame, ProtectionGoal(1.5, 0.9, against="outsider"))
    assert (named["adversary"], named["met"], named["ratio"]) == ("outsider", True, 1.2)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(5)
    blocks = [f"1{i:02d}" for i in rng.integers(0, 30, 120)]
    codes = {"sex": rng.integers(0, 2, 120), "race": rng.choice(3, 120, p=[0.7, 0.2, 0.1])}
    frame = pd.DataFrame(codes | {"block": blocks})
    file = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(file, index=False)
    return file


WHAT = ("identity", "discrete-gaussian:rho=0.01..100", "discrete-laplace:epsilon=0.05")


def study(people, **options):
    texts = options.pop("texts", WHAT)
    what = [parse_protection(one) if isinstance(one, str) else one for one in texts]
    options = {"adversaries": EVERYBODY_ELSE, "goal": GOAL, "targets": 24} | options
    return AuditStudy(
        people, WORKLOAD, protections=what, stated=["race"], targets_per_shard=12, **options
    )


@pytest.fixture(scope="module")
def done(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done") / "out"
    return folder, run(study(people), folder)


def test_a_study_chooses(done):
    folder, summary = done
    choice = pd.read_csv(folder / "choice.csv").set_index("protection")
    tried = pd.read_csv(folder / "settings.csv")
    assert list(choice.index) == list(WHAT)
    identity, gaussian, laplace = (choice.loc[name] for name in WHAT)
    assert (identity["setting"], identity["tried"], identity["met"]) == ("identity", 1, False)
    assert gaussian[["met", "monotone"]].all()
    assert gaussian["ratio"] <= 1.5
    mine = tried[tried["parameter"] == "rho"].sort_values("value")
    assert len(mine) == gaussian["tried"] == 5
    assert mine["value"].is_unique
    assert not mine[mine["value"] > gaussian["value"]]["met"].iloc[0]
    # Of more noise, from the same random numbers, more is wrong.
    assert mine["cost"].is_monotonic_decreasing
    assert (laplace["setting"], laplace["tried"], laplace["met"]) == (WHAT[2], 1, True)
    assert gaussian["cost"] < laplace["cost"]
    assert choice.index[choice["cheapest"]].tolist() == [WHAT[1]]
    assert summary.answers[: len(choice)] == tuple(choice["answer"])
    statements_, found_ = read_audit(folder)
    assert set(found_["protection"]) == set(choice["setting"])
    assert set(statements_["protection"]) == set(tried["setting"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "costs least error of the tables among the protections that meet the target" in page


def test_parts_interrupts_and_workers_give_the_same_bytes(people, done, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    first = run(study(people), folder, shard=(2, 2))
    assert not first.complete
    assert 0 < first.computed < first.shards / 2
    with pytest.raises(PartFileError, match="not finished"):
        read_audit(folder)
    whole, count = AuditStudy.compute_after, []

    def interrupted(self, shard, folder):
        count.append(shard)
        if len(count) > 5:
            raise KeyboardInterrupt
        return whole(self, shard, folder)

    monkeypatch.setattr(AuditStudy, "compute_after", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(study(people), folder, resume=True)
    monkeypatch.undo()
    last = run(study(people), folder, resume=True)
    assert last.complete
    assert last.resumed == first.computed + 5
    assert contents(folder) == contents(done[0])


@pytest.mark.slow
def test_two_workers_choose_the_same(people, done, tmp_path):
    run(study(people), tmp_path / "two", workers=2)
    assert contents(tmp_path / "two") == contents(done[0])


def test_names_are_kept_as_they_are(people, tmp_path):
    """One has a part that reads like a number without bound, one is read as a missing value."""
    informed = [Adversary("informed", known=("sex",))]
    whole = Protection("None", "identity", {})
    goal = ProtectionGoal(1.5, 0.99)
    run(study(people, texts=[whole], adversaries=informed, goal=goal, targets=4), tmp_path / "out")
    answer = pd.read_csv(tmp_path / "out" / "choice.csv")["answer"].item()
    assert answer.count(" to no bound; informed, likelihood)") == 1
    assert answer.startswith("None, as stated")
    assert read_audit(tmp_path / "out")[1]["protection"].unique().tolist() == ["None"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": None}, "rho of 'discrete-gaussian:rho=0.01..100' must be one value where there"),
        ({"goal": ProtectionGoal(1.5, against="linker")}, "against must be"),
        ({"texts": ("swapping:rate=0.5..2",)}, "rate must be"),
        ({"texts": ("discrete-gaussian", "discrete-gaussian:rho=1..2")}, "called as settings"),
    ],
)
def test_refusals_before_there_is_a_folder(people, tmp_path, options, words):
    with pytest.raises(BayesRiskError, match=words):
        run(study(people, **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0.5,), "target_ratio must be"),
        ((1.5, 1.0), "quantile must be"),
        ((1.5, 0.9, ""), "against must"),
        ((1.5, 0.9, None, -1), "steps must be"),
    ],
)
def test_goals_that_are_none(values, words):
    with pytest.raises(BayesRiskError, match=words):
        ProtectionGoal(*values)
