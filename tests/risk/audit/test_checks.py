"""Checks of an audit: each passes where all is well, and each finds what is not (controls)."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from audits import SHARES, WORKLOAD, town
from scipy.stats import t as student

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import SuppressedCounts, TrueCounts
from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_calibration,
    audit_checks,
)
from bayesrisk.risk.audit.checks import CHECKS
from bayesrisk.risk.audit.constructions import constructions

WHO = (
    Adversary.named("outsider"),
    Adversary.named("linker", known=["sex"]),
    Adversary.named("knows-all-but-one"),
)
QUESTION = AuditQuestion(WORKLOAD, ("race",), WHO)


def noise(name="discrete-laplace", **budget):
    return make_mechanism(name, **budget, **SHARES).spec


SPECS = {
    "none": make_mechanism("identity").spec,
    "rounded": make_mechanism("rounding", base=3, method="random").spec,
    "weak": noise(epsilon=2),
    "strong": noise(epsilon="1/2"),
    "gauss": noise("discrete-gaussian", rho=1),
    "swapped": make_mechanism(
        "swapping", rate="1/10", swap_key=["sex"], unique_by=["race"], within="tract",
        unique_within="tract", unit="person",
    ).spec,
}  # fmt: skip


def frame(q, truth, **columns):
    """Return statements of targets (rows of q), the most telling columns given by name."""
    targets, values = q.shape
    number = np.repeat(np.arange(targets), values)
    found = {
        "protection": "none", "attack": "likelihood", "adversary": "outsider", "release": 0,
        "target": number.astype(str),
        "statement": np.tile([f"race {i}" for i in range(values)], targets), "prior": 1.0 / values,
        "without": q.ravel(), "posterior": q.ravel(), "without_error": 0.0, "posterior_error": 0.0,
        "correct": (np.arange(values) == truth[:, None]).ravel(), "status": "calculated",
        "place": (number // 4).astype(str), "place_size": 4, "alike": 1, "nonmodal": False,
    }  # fmt: skip
    return pd.DataFrame(found | columns)


def drawn(seed, targets=4000):
    """Return beliefs, and truths drawn from them."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet([1.0, 0.7, 0.4], targets)
    return q, (rng.random(targets)[:, None] > q.cumsum(axis=1)).sum(axis=1)


def row(checks, name, belief="posterior"):
    of = checks["belief"].isna() | (checks["belief"] == belief)
    (found,) = checks[(checks["check"] == name) & of].to_dict("records")
    return found


def sharper(q, power=1.3):
    return q**power / (q**power).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_truths_drawn_from_beliefs_are_inside_the_band_and_sharper_beliefs_outside(seed):
    q, truth = drawn(seed)
    good = row(audit_checks(frame(q, truth), confidence=0.999), "calibration")
    assert (good["verdict"], good["failed"]) == ("inside", 0)
    assert good["lower"] < 0.0 < good["upper"]
    wrong = row(audit_checks(frame(sharper(q), truth), confidence=0.999), "calibration")
    assert wrong["verdict"] == "outside"
    assert wrong["lower"] > 0.0  # it promises too much
    assert wrong["lost"] > good["lost"]
    blunt = row(audit_checks(frame(sharper(q, 0.7), truth), confidence=0.999), "calibration")
    assert blunt["upper"] < 0.0


def test_the_bands_hold_as_often_as_they_say():
    """Of a fourth of 20 % for two curves: 5 % at most fail, 9 of 60 in less than 1 of 200."""
    outside = 0
    for seed in range(100, 160):
        found = audit_checks(frame(*drawn(seed, 240)), confidence=0.8)
        curves = found[found["check"] == "calibration"]
        assert curves["belief"].tolist() == ["posterior", "without"]
        outside += bool(curves["failed"].any())
    assert outside < 9


def test_beliefs_without_the_record_are_calibrated_too():
    q, truth = drawn(7)
    checks = audit_checks(frame(q, truth, without=sharper(q).ravel()))
    assert row(checks, "calibration")["verdict"] == "inside"
    assert row(checks, "calibration", "without")["verdict"] == "outside"


def test_the_same_people_under_more_releases_are_no_more_people():
    """The interval of what is promised is that of one release, and not a fourth of it."""
    q, truth = drawn(8, 400)
    one = frame(q, truth)
    more = pd.concat([one.assign(release=i) for i in range(16)], ignore_index=True)
    single, many = (row(audit_checks(said), "calibration") for said in (one, more))
    assert many["value"] == pytest.approx(single["value"])
    assert many["upper"] - many["lower"] == pytest.approx(single["upper"] - single["lower"])
    assert many["compared"] == 16 * single["compared"]


@pytest.mark.slow
def test_releases_of_one_population_keep_to_the_level():
    """Truths drawn once, beliefs from eight noisy signals: alarms of a fourth of 20 % at most."""
    alarms = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        truth = rng.choice(3, 120, p=[0.6, 0.3, 0.1])
        parts = []
        for release in range(8):
            signal = np.eye(3)[truth] * 1.5 + rng.normal(size=(120, 3))
            weight = np.array([0.6, 0.3, 0.1]) * np.exp(1.5 * signal)
            q = weight / weight.sum(axis=1, keepdims=True)
            parts.append(frame(q, truth, release=release))
        checks = audit_checks(pd.concat(parts, ignore_index=True), confidence=0.8)
        alarms += bool(checks.loc[checks["check"] == "calibration", "failed"].any())
    assert alarms < 16


def test_no_interval_of_calibration_has_no_width():
    """Fifteen statements that are true as often in every place say nothing for certain."""
    q = np.tile([0.6, 0.4], (15, 1))
    truth = np.tile([0, 0, 0, 1, 1], 3)
    said = frame(q, truth, place=np.repeat(np.arange(3).astype(str), 10))
    curve = audit_calibration(said)
    assert (curve["correct_upper"] - curve["correct_lower"] > 0.1).all()
    found = row(audit_checks(said), "calibration")
    assert found["upper"] - found["lower"] > 0.1
    alone = row(audit_checks(said.assign(place="1")), "calibration")
    assert (alone["lower"], alone["upper"], alone["power"]) == (-np.inf, np.inf, np.inf)


def test_a_shift_of_the_stated_power_is_seen_in_nine_of_ten():
    seen = 0
    rng = np.random.default_rng(4)
    for _ in range(40):
        p = np.full(400, 0.75)
        q, truth = np.stack([p, 1 - p], axis=1), (rng.random(400) > p).astype(int)
        power = row(audit_checks(frame(q, truth)), "calibration")["power"]
        less = (rng.random(400) > p - power).astype(int)
        seen += row(audit_checks(frame(q, less)), "calibration")["failed"] > 0
    assert seen >= 29  # of 40; 36 are expected


def test_what_is_lost_is_counted_by_hand():
    """Nine statements of 0.8 and nine of 0.2 about nine targets, of which three are right."""
    q = np.tile([0.8, 0.2], (9, 1))
    truth = np.array([0] * 3 + [1] * 6)
    found = row(audit_checks(frame(q, truth, prior=0.5)), "calibration")
    assert found["compared"] == 18
    assert found["lost"] == pytest.approx(0.8 - 3 / 9)
    assert found["lost_before"] == pytest.approx(0.0)
    assert found["value"] == pytest.approx(0.8 - 3 / 9)  # promised more than is true


def scored(scores):
    """Return statements under protections whose posterior of the truth is given, by target."""
    parts = [
        frame(np.stack([p, 1.0 - p], axis=1), np.zeros(p.size, int), protection=name)
        for name, p in scores.items()
    ]
    return pd.concat(parts, ignore_index=True)


def ordered(scores):
    checks = audit_checks(scored(scores), question=QUESTION, specs=SPECS)
    return checks[checks["check"] == "ordering"].set_index(["protection", "against"])


def test_more_noise_is_held_against_less_and_true_counts_against_all_that_is_made_of_them():
    p = np.random.default_rng(1).uniform(0.5, 0.9, 80)
    scores = dict(zip(SPECS, [p, p - 0.1, p - 0.05, p - 0.2, p - 0.1, p], strict=True))
    found = ordered(scores)
    made = {("none", "weak"), ("none", "rounded"), ("none", "gauss"), ("weak", "strong")}
    # Swapped records are no function of the tables; noises of two laws not of each other; and
    # from none to strong is the way by weak.
    assert set(found.index) == made
    assert set(found["verdict"]) == {"in order"}
    value = np.log(p) - np.log(p - 0.05)
    assert found.loc[("none", "weak"), "value"] == pytest.approx(value.mean())
    places = value.reshape(-1, 4).sum(axis=1) - 4 * value.mean()
    error = np.sqrt((places**2).sum() * 20 / 19) / 80
    reach = found.loc[("none", "weak"), "upper"] - value.mean()
    # Of four pairs together, and of a fifth of what may fail.
    assert reach == pytest.approx(student.ppf(1 - 0.01 / 40, 19) * error)


def test_counts_that_are_withheld_are_made_from_true_ones_and_nothing_is_made_from_them():
    p = np.random.default_rng(2).uniform(0.5, 0.9, 80)
    specs = {
        "withheld": make_mechanism("suppression", threshold=3).spec,
        "more-withheld": make_mechanism("suppression", threshold=9).spec,
        **{name: SPECS[name] for name in ("none", "weak", "rounded")},
    }
    # A valid audit: true counts tell most, and withheld ones less than noise here.
    scores = dict(zip(specs, [p - 0.3, p - 0.35, p, p - 0.1, p - 0.2], strict=True))
    checks = audit_checks(scored(scores), question=QUESTION, specs=specs)
    found = checks[checks["check"] == "ordering"].set_index(["against", "protection"])
    assert sorted(found.index) == [(name, "none") for name in sorted({*specs} - {"none"})]
    assert not found["failed"].any()
    assert found.loc["withheld", "value"].item() == pytest.approx(np.log(p / (p - 0.3)).mean())


def test_what_can_be_made_of_what():
    """Tables may be protected in different ways, and what follows from two pairs is one, too."""
    nearest = make_mechanism("rounding", base=3, method="nearest").spec
    mixed = {
        "none": SPECS["none"],
        "rounded": nearest,
        "half": dataclasses.replace(nearest, tables={("block", "R"): TrueCounts()}),
        "other": dataclasses.replace(nearest, tables={("block", "R"): SuppressedCounts()}),
        "weak": SPECS["weak"],
        "strong": SPECS["strong"],
        "swapped": SPECS["swapped"],
    }
    made = set(constructions(mixed, WORKLOAD))
    assert made == {
        ("none", "rounded"), ("none", "half"), ("none", "other"), ("none", "weak"),
        ("none", "strong"), ("weak", "strong"), ("half", "rounded"), ("half", "other"),
    }  # fmt: skip


def test_an_order_over_releases_is_that_of_means():
    p = np.random.default_rng(1).uniform(0.5, 0.9, 80)
    said = [scored({"none": p})]
    said += [scored({"weak": p - off}).assign(release=i) for i, off in enumerate((0.1, 0.2))]
    checks = audit_checks(pd.concat(said), question=QUESTION, specs=SPECS)
    found = row(checks, "ordering")
    assert found["compared"] == 80
    mean = (np.log(p) - (np.log(p - 0.1) + np.log(p - 0.2)) / 2).mean()
    assert found["value"] == pytest.approx(mean)


def test_an_order_that_is_reversed_is_found():
    p = np.random.default_rng(1).uniform(0.5, 0.9, 80)
    found = ordered({"weak": p - 0.1, "strong": p})
    assert found["verdict"].tolist() == ["reversed"]
    assert found["failed"].tolist() == [1]
    never = ordered({"none": p * 0.0, "weak": p})  # what is true was held impossible
    assert never["verdict"].tolist() == ["reversed"]
    alike = ordered({"none": p * 0.0, "weak": p * 0.0})
    assert alike["value"].tolist() == [0.0]


def theory(log_odds, **columns):
    """Return the check where every other target's odds move by a factor, from one half."""
    q = 1.0 / (1.0 + np.exp(-np.asarray(log_odds)))
    said = frame(np.stack([q, 1.0 - q], axis=1), np.zeros(q.size, int), **columns)
    checks = audit_checks(said.assign(without=0.5), question=QUESTION, specs=SPECS)
    return row(checks, "theory")


@pytest.mark.parametrize(
    ("protection", "adversary", "bound"),
    [("weak", "knows-all-but-one", 4.0), ("weak", "linker", 8.0), ("strong", "outsider", 2.0)],
)
def test_odds_beyond_the_bound_of_pure_privacy_are_found(protection, adversary, bound):
    who = {"protection": protection, "adversary": adversary}
    kept = theory([0.0, bound - 1e-3, -bound + 1e-3, 0.1], **who)
    assert (kept["bound"], kept["verdict"]) == (bound, "kept")
    assert kept["value"] == pytest.approx(bound - 1e-3)
    for beyond in (bound + 1e-3, -bound - 1e-3):
        broken = theory([0.0, beyond, 0.1, 0.2], **who)
        # Of two statements about a target, the odds of both are beyond.
        assert (broken["failed"], broken["verdict"]) == (2, "broken")
    unsure = theory([0.0, bound + 1e-3, 0.1, 0.2], **who, posterior_error=0.01)
    assert unsure["failed"] == 0


def test_certainty_is_beyond_every_bound_and_a_draw_that_is_missing_is_not():
    who = {"protection": "weak", "adversary": "knows-all-but-one"}
    assert theory([0.0, 800.0], **who)["failed"] == 2
    assert theory([0.0, 800.0], **who, posterior_error=0.01, status="sampled")["failed"] == 0


def test_the_bound_is_of_the_stated_budget_and_neighbour():
    for sensitivity, times in (("add-remove", 2), ("change-one", 1)):
        budgets = {"block": {"R": "3/4", "S": "1/4"}}
        mechanism = make_mechanism("discrete-laplace", budgets=budgets, sensitivity=sensitivity)
        q = np.full((4, 2), 0.5)
        said = frame(q, np.zeros(4, int), adversary="knows-all-but-one")
        checks = audit_checks(said, question=QUESTION, specs={"none": mechanism.spec})
        assert row(checks, "theory")["bound"] == times * 1.0


def test_gaussian_noise_has_no_bound_that_is_feigned():
    found = theory([0.0, 30.0], protection="gauss", adversary="knows-all-but-one")
    assert (found["verdict"], found["compared"], found["failed"]) == ("no bound", 0, 0)
    assert np.isnan(found["bound"])


def agreement(said):
    checks = audit_checks(said, question=QUESTION, specs=SPECS)
    rows = checks[checks["check"] == "agreement"]
    return {r["against"]: (r["compared"], r["failed"]) for r in rows.to_dict("records")}


def proofs():
    """Return posteriors that agree with claims and with records, of one adversary."""
    q = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.4], [0.2, 0.5, 0.3], [0.5, 0.5, 0.0]])
    truth = np.array([0, 1, 1, 0])
    claimed = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.3, 0.3, 0.4], [0.6, 0.4, 0.0]])
    status = np.repeat(["proved", "believed", "unstated", "believed"], 3)
    one = np.repeat(["proved", "believed", "believed", "believed"], 3)
    return [
        frame(q, truth),
        frame(claimed, truth, attack="claims", status=status),
        frame(q, truth, attack="reconstruction", status=one),
    ]


def test_posteriors_agree_with_proofs_and_every_disagreement_is_found():
    mine, claims, records = proofs()
    everything = pd.concat([mine, claims, records], ignore_index=True)
    good = {"truth": (5, 0), "claims": (12, 0), "reconstruction": (3, 0)}
    assert agreement(everything) == good
    # A certain statement that is false; a refuted value that is thought possible; one that is
    # possible and thought refuted; and records that are unique, and thought others.
    changes = [
        ("likelihood", "0", "race 0", {"correct": False}, "truth", 1),
        ("likelihood", "1", "race 0", {"posterior": 0.01}, "claims", 1),
        ("likelihood", "2", "race 0", {"posterior": 0.0}, "claims", 1),
        ("likelihood", "0", "race 1", {"posterior": 1e-3}, "reconstruction", 1),
        ("claims", "0", "race 0", {"posterior": 0.5}, "claims", 0),  # 1 is told by the others' 0
        ("claims", "0", "race 1", {"posterior": 0.5}, "claims", 1),
    ]
    for attack, target, statement, change, against, failed in changes:
        wrong = everything.copy()
        at = (wrong["attack"] == attack) & (wrong["target"] == target)
        at &= wrong["statement"] == statement
        assert at.sum() == 1
        for column, value in change.items():
            wrong.loc[at, column] = value
        assert agreement(wrong)[against][1] == failed, change


def test_draws_of_a_chain_prove_nothing_but_may_not_deny_a_proof():
    mine, claims, _ = proofs()
    sampled = mine.assign(status="sampled", posterior_error=0.01)
    unseen = (sampled["target"] == "2") & (sampled["statement"] == "race 0")
    sampled.loc[unseen, "posterior"] = 0.0
    assert agreement(pd.concat([sampled, claims])) == {"claims": (12, 0)}
    denied = (sampled["target"] == "1") & (sampled["statement"] == "race 0")
    sampled.loc[denied, "posterior"] = 0.05
    assert agreement(pd.concat([sampled, claims]))["claims"] == (12, 1)


def test_claims_about_noisy_counts_are_no_proofs():
    mine, claims, _ = proofs()
    other = pd.concat([mine, claims.assign(status="believed")]).assign(protection="weak")
    assert "claims" not in agreement(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [("prior", np.nan), ("without", np.inf), ("posterior", -0.01), ("posterior", 1.01)],
)
def test_a_decided_statement_has_a_belief(name, value):
    """One that has none would be inside every band and bound."""
    said = frame(*drawn(1, 40))
    said.loc[7, name] = value
    row = rf"got {value:g} for '{said['statement'][7]} of target {said['target'][7]}'"
    with pytest.raises(
        DataError, match=rf"column '{name}' must be in \[0, 1\] .*calculated, {row}"
    ):
        audit_checks(said)
    open_ = said["target"] == said["target"][7]
    said.loc[open_, "status"] = "undecided"
    assert audit_checks(said)["compared"].gt(0).any()  # nobody holds it


@pytest.mark.parametrize(("given", "error", "words"), [
    ({"question": 3, "specs": SPECS}, ArgumentTypeError, "question must be a AuditQuestion, got 3"),
    ({"question": QUESTION, "specs": [1]}, ArgumentTypeError, "specs must be a mapping"),
    ({"question": QUESTION, "specs": {"a": 3}}, ArgumentTypeError, r"specs\['a'\] must be a Mech"),
    ({"question": QUESTION, "specs": {3: 3}}, ArgumentTypeError, "name of a protection in specs"),
    ({"question": QUESTION}, ArgumentError, "specs must be given where question is"),
    ({"specs": SPECS}, ArgumentError, "question must be given where specs is"),
])  # fmt: skip
def test_what_was_published_is_checked(given, error, words):
    with pytest.raises(error, match=words):
        audit_checks(frame(*drawn(1, 40)), **given)


@pytest.mark.slow
def test_a_whole_audit_keeps_all_of_them_and_half_the_noise_is_found():
    """Claims, unique records and the law of the records agree; Laplace noise keeps its promise."""
    people = town(3, 40, [f"10{i}" for i in range(6)])
    who = (WHO[1], WHO[2])
    proved = AuditQuestion(WORKLOAD, ("race",), who, methods=("posterior", "claims"))
    asked = AuditQuestion(WORKLOAD, ("race",), who[1:])
    parts, specs = [], {}
    for number, (name, question, mechanism) in enumerate(
        [
            ("none", proved, make_mechanism("identity")),
            ("weak", asked, make_mechanism("discrete-laplace", epsilon=2, **SHARES)),
            ("strong", asked, make_mechanism("discrete-laplace", epsilon="1/2", **SHARES)),
        ]
    ):
        of = AuditedPopulation(people, question, seed=1)
        release = of.release(name, number, mechanism)
        parts.append(of.statements(name, name, number, mechanism, release, of.targets(20)))
        specs[name] = mechanism.spec
    said = pd.concat(parts, ignore_index=True)
    checks = audit_checks(said, question=proved, specs=specs)
    assert set(checks["check"]) == {*CHECKS} - {"law", "spot"}
    assert checks["power"].notna().sum() == (checks["verdict"] != "no bound").sum()
    sure = checks[checks["check"].isin(["theory", "agreement"])]
    assert not sure["failed"].any()
    against = sure[sure["against"] == "claims"]
    assert (against["compared"] > 40).all()
    assert set(against["adversary"]) == {"linker", "knows-all-but-one"}
    # Negative control: a mechanism that spends more than it states.
    stated = {name: noise(epsilon=Fraction(1, 4)) for name in ("weak", "strong")}
    broken = audit_checks(said, question=proved, specs=stated)
    theory = broken[broken["check"] == "theory"].set_index("protection")
    assert theory.loc["weak", "verdict"] == "broken"


@pytest.mark.parametrize("budgets", [{"R": "1/2"}, {"block": {}}, {"block": {"R": "much", "S": 1}}])
def test_budgets_that_mean_something_else_are_no_bound(budgets):
    spec = noise(epsilon=1)
    other = dataclasses.replace(spec, parameters={**spec.parameters, "budgets": budgets})
    mine = frame(*drawn(1, 40), protection="other")
    assert row(audit_checks(mine, question=QUESTION, specs={"other": spec}), "theory")["compared"]
    checks = audit_checks(mine, question=QUESTION, specs={"other": other})
    assert row(checks, "theory")["verdict"] == "no bound"


def test_pairs_are_neighbours_in_every_row_of_noises():
    scales = ["2", "1", "1/2"]
    p = np.full(40, 0.5)
    specs = {text: noise(epsilon=text) for text in scales}
    for order in itertools.permutations(scales):
        said = scored(dict.fromkeys(order, p))
        checks = audit_checks(said, question=QUESTION, specs={n: specs[n] for n in order})
        rows = checks[checks["check"] == "ordering"]
        pairs = set(zip(rows["protection"], rows["against"], strict=True))
        assert pairs == set(itertools.pairwise(scales))


def test_a_few_targets_that_are_all_right_are_no_loss():
    """Between places nothing varies: chance is what it is where all is calibrated."""
    q = np.tile([0.97, 0.02, 0.01], (24, 1))
    found = row(audit_checks(frame(q, np.zeros(24, int))), "calibration")
    assert found["verdict"] == "inside"
    assert found["value"] < 0.0 < found["upper"]


def test_undecided_targets_are_not_checked_and_nobody_is_no_check():
    mine = frame(*drawn(1, 40))
    nobody = audit_checks(mine.assign(status="undecided"), question=QUESTION, specs=SPECS)
    assert set(nobody["check"]) == {"missing"}  # which looks at nobody else
    assert list(nobody) == list(audit_checks(mine))
    with pytest.raises(ArgumentTypeError):
        audit_checks([1])
    with pytest.raises(DataError, match="posterior"):
        audit_checks(mine.drop(columns="posterior"))
