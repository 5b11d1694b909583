"""Choosing a protection: the search, its errors, and what it says where nothing is enough."""

import numpy as np
import pandas as pd
import pytest
from audits import WORKLOAD, contents
from hypothesis import given, strategies as st
from scipy.stats import binom, t

from bayesrisk.exceptions import ArgumentError, BayesRiskError, PartFileError
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import AuditStudy, Protection, ProtectionGoal, choosing, read_audit
from bayesrisk.experiments.audit.choosing import (
    chosen_settings,
    make_search,
    setting_bound,
    worst_quantiles,
)
from bayesrisk.mechanisms import available_mechanisms
from bayesrisk.mechanisms.registry import REGISTRY, mechanism_dial
from bayesrisk.risk.audit import Adversary

pytestmark = pytest.mark.usefixtures("quick_figures")

GOAL = ProtectionGoal(1.5, 0.9, steps=2)
#: Of so few targets a lower quantile has a bound.
STUDIED = ProtectionGoal(1.5, 0.8, steps=2)
EVERYBODY_ELSE = [Adversary.named("knows-all-but-one")]


def searched(text):
    return make_search(Protection(text))


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
    dials = {name: mechanism_dial(name) for name in REGISTRY.builtin}
    assert {name: dial.name for name, dial in dials.items() if dial is not None} == {
        "discrete-gaussian": "rho", "discrete-laplace": "epsilon",
        "rounding": "base", "suppression": "threshold", "swapping": "rate", "topdown": "rho",
        "bottom-up": "rho", "threshold": "least",
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
    assert (
        make_search(Protection("p", "discrete-gaussian", {"budgets": {"block": {"R": 1}}})) is None
    )
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


def statements(name, ratios, *, without=0.01, **about):
    """Return what one adversary believes of targets, by ratios (releases, targets) of the truth."""
    ratios = np.atleast_2d(np.asarray(ratios, float))
    m, number = ratios.shape
    frame = pd.DataFrame(
        {
            "protection": name, "attack": "likelihood", "adversary": "outsider",
            "release": np.repeat(np.arange(m), number), "randomised": m > 1,
            "target": np.tile(np.arange(number).astype(str), m), "statement": "it",
            "prior": without, "without": without, "posterior": without * ratios.ravel(),
            "without_error": 0.0, "posterior_error": 0.0, "correct": True, "status": "calculated",
            "place": "1", "place_size": 20, "alike": 2, "nonmodal": False,
        }
        | about
    )  # fmt: skip
    frame.loc[np.isnan(frame["posterior"]), "status"] = "undecided"
    return frame


def bound(frame, goal=GOAL, *, share=1.0, tries=1):
    return setting_bound(worst_quantiles(frame, goal, share), goal, tries=tries)


def test_the_bound_of_one_more_release_is_that_of_a_student_law():
    quantiles = np.random.default_rng(3).uniform(1.1, 1.3, 8)
    frame = statements("p", [[q - 0.1] * 9 + [q] * 2 for q in quantiles])
    logs = np.log(quantiles)
    for tries in (1, 5):
        reach = t.ppf(1 - 0.05 / tries, 7) * logs.std(ddof=1) * np.sqrt(1 + 1 / 8)
        one = bound(frame, tries=tries)
        assert one["upper"] == pytest.approx(np.exp(logs.mean() + reach))
        assert one["ratio"] == pytest.approx(np.exp(logs.mean()))
        assert one["met"] == (one["upper"] <= 1.5)
    fixed = bound(statements("p", [1.0] * 98 + [9.0] * 2))
    assert (fixed["upper"], fixed["met"], fixed["releases"]) == (pytest.approx(1.0), True, 1)
    alone = bound(statements("p", [1.0] * 100, randomised=True))  # one release of many
    assert (alone["upper"], alone["met"]) == (np.inf, False)


def test_tables_that_the_best_model_does_not_explain_meet_no_goal():
    def silent(attack, adversary="outsider"):
        return statements("p", [1.0] * 10, attack=attack, adversary=adversary, status="unstated")

    best = statements("p", [1.2] * 10)
    for attack, upper in (("swap-aware", np.inf), ("as-true", 1.2), ("majority", 1.2)):
        assert bound(pd.concat([best, silent(attack)]))["upper"] == pytest.approx(upper)
    alone = bound(pd.concat([best, silent("as-true", "linker")]))  # who has no better model
    assert (alone["adversary"], alone["upper"], alone["undecided"]) == ("linker", np.inf, 10)
    few = silent("likelihood").iloc[:1]
    assert bound(pd.concat([best.iloc[1:], few]))["upper"] == pytest.approx(1.2)


def test_in_a_sample_the_quantile_of_all_is_bounded_by_an_order_statistic():
    """By scipy's binomial law; of few targets nothing bounds it; undecided ones are infinite."""
    values = np.arange(100.0, 200.0)
    goal = ProtectionGoal(1.5, 0.9)
    worst = worst_quantiles(statements("p", values), goal, 0.5).iloc[0]
    k = next(k for k in range(100) if binom.sf(k, 100, 0.9) <= 0.025)
    assert (worst["ratio"], worst["upper"]) == (pytest.approx(189), pytest.approx(values[k]))
    few = worst_quantiles(statements("p", values[:20]), goal, 0.5).iloc[0]
    assert few["upper"] == np.inf
    some = worst_quantiles(statements("p", [*values, *[np.nan] * 30]), goal, 1.0).iloc[0]
    assert (some["undecided"], some["ratio"], some["upper"]) == (30, pytest.approx(189), np.inf)


def test_the_worst_adversary_of_each_release_is_taken_unless_one_is_named():
    linker = statements("p", [[2.0] * 30, [1.1] * 30], adversary="linker")
    frame = pd.concat([statements("p", [[1.2] * 30] * 2), linker])
    worst = worst_quantiles(frame, GOAL, 1.0)
    assert worst["adversary"].tolist() == ["linker", "outsider"]
    assert bound(frame)["adversary"] == "linker"
    named = worst_quantiles(frame, ProtectionGoal(1.5, 0.9, against="outsider"), 1.0)
    assert named["upper"].tolist() == pytest.approx([1.2, 1.2])


def chosen(uppers, proofs, goal=GOAL):
    """Return the choice from bounds of settings by value, and what proofs said."""
    search = searched("discrete-gaussian:rho=0.01..100")
    tried = pd.DataFrame(
        {
            "protection": search.protection.name, "parameter": "rho", "value": value,
            "setting": search.setting(value).name, "adversary": "outsider", "attack": "likelihood",
            "ratio": upper - 0.1, "upper": upper, "met": upper <= goal.target_ratio,
            "cost": 1 / value, "withheld": 0.0,
        }
        for value, upper in uppers.items()
    )  # fmt: skip
    proofs = {search.setting(value).name: proof for value, proof in proofs.items()}
    return chosen_settings({search.protection.name: search}, tried, proofs, goal).iloc[0]


def test_the_weakest_setting_that_fresh_releases_prove_is_chosen():
    uppers = {100.0: 3.0, 0.01: 1.1, 1.0: 1.4, 10.0: 1.45}
    row = chosen(uppers, {10.0: (17, 20), 1.0: (18, 20)})
    assert (row["value"], row["met"], row["cheapest"]) == (1.0, True, True)
    assert (row["fresh_met"], row["fresh"], row["tried"]) == (18, 20, 4)
    assert "18 of 20" in row["answer"]
    refuted = chosen(uppers, {10.0: (17, 20), 1.0: (5, 20), 0.01: (9, 20)})
    assert (refuted["met"], refuted["cheapest"]) == (False, False)
    assert "no setting that was tried" in refuted["answer"]
    # What is enough by chance beside a stronger setting that is not is no choice.
    gap = chosen({0.01: 1.1, 1.0: 1.7, 100.0: 1.2}, {0.01: (20, 20)})
    assert gap["value"] == 0.01
    assert not chosen({0.01: 2.0, 1.0: 1.2}, {})["met"]


def test_what_misses_the_goal_is_not_said_to_tell_more_than_what_it_is_made_from():
    tried = pd.DataFrame({
        "protection": ["fine", "coarse"], "parameter": "", "value": np.nan,
        "setting": ["fine", "coarse"], "adversary": "linker", "attack": "likelihood",
        "ratio": [1.3, 1.7], "upper": [1.4, 1.8], "met": [True, False], "cost": [1.0, 2.0],
        "withheld": 0.0,
    })  # fmt: skip
    about = {"fine": None, "coarse": None}, tried, {"fine": (0, 0)}, GOAL
    free = chosen_settings(*about)["answer"]
    said = chosen_settings(*about, follows=lambda *pair: pair == ("fine", "coarse"))["answer"]
    assert said[0] == free[0]
    assert said[1] == free[1] + "; by construction it can tell no more than fine"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(5)
    blocks = [f"1{i:02d}" for i in rng.integers(0, 12, 48)]
    codes = {"sex": rng.integers(0, 2, 48), "race": rng.choice(3, 48, p=[0.7, 0.2, 0.1])}
    frame = pd.DataFrame(codes | {"block": blocks})
    file = tmp_path_factory.mktemp("people") / "people.csv"
    frame.to_csv(file, index=False)
    return file


WHAT = ("identity", "discrete-gaussian:rho=0.01..100", "discrete-laplace:epsilon=0.05")


def study(people, **options):
    texts = options.pop("texts", WHAT)
    what = [Protection(one) if isinstance(one, str) else one for one in texts]
    options = {"adversaries": EVERYBODY_ELSE, "goal": STUDIED, "targets": 24} | options
    return AuditStudy(
        people, WORKLOAD, protections=what, stated=["race"], targets_per_shard=12, **options
    )


@pytest.fixture(scope="module")
def done(people, tmp_path_factory):
    folder, shares = tmp_path_factory.mktemp("done") / "out", set()

    def spied(frame, goal, share):
        shares.add(share)
        return worst_quantiles(frame, goal, share)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(choosing, "worst_quantiles", spied)
        summary = run(study(people), folder)
    assert shares == {0.5}  # of all people; what proves a setting is a sample, too
    return folder, summary


def test_a_study_chooses_and_proves_its_choice(done):
    folder, summary = done
    choice = pd.read_csv(folder / "choice.csv").set_index("protection")
    tried = pd.read_csv(folder / "settings.csv")
    assert list(choice.index) == list(WHAT)
    identity, gaussian, laplace = (choice.loc[name] for name in WHAT)
    assert (identity["setting"], identity["tried"], identity["met"]) == ("identity", 1, False)
    assert gaussian["met"]
    assert gaussian["upper"] <= 1.5
    mine = tried[tried["parameter"] == "rho"].sort_values("value")
    assert len(mine) == gaussian["tried"] == 5
    assert mine["value"].is_unique
    assert not mine[mine["value"] > gaussian["value"]]["met"].iloc[0]
    assert mine["cost"].is_monotonic_decreasing  # of more noise
    assert (laplace["setting"], laplace["tried"], laplace["met"]) == (WHAT[2], 1, True)
    assert gaussian["cost"] < laplace["cost"]
    assert choice.index[choice["cheapest"]].tolist() == [WHAT[1]]
    statements_, measures = read_audit(folder)
    assert set(measures["protection"]) == set(choice["setting"])
    assert set(statements_["protection"]) == set(tried["setting"])
    # Results of what was chosen are about the 20 fresh releases that prove it, not those it was
    # chosen by; both are among the statements.
    own = statements_[statements_["protection"] == gaussian["setting"]]
    assert sorted(own["release"].unique()) == list(range(28))
    everybody = measures[measures["group"] == "everybody"].set_index("protection")
    assert everybody.loc[gaussian["setting"], "releases"] == 20 == gaussian["fresh"]
    fresh = worst_quantiles(own[own["release"] >= 8], STUDIED, 0.5)
    assert (fresh["upper"] <= 1.5).sum() == gaussian["fresh_met"] >= 18
    assert summary.brief[: len(choice)] == tuple(f"{text}." for text in choice["answer"])


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
    assert answer.count("at most no bound; informed, likelihood)") == 1
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
