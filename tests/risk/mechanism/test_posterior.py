"""One protection and one target: closed forms, simulations and plug-ins in the same units."""

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from mechanism_cases import BLOCKS, ByHand, county, ignores, leaks, tables, uniform_noise
from oracles.simulated import binomial_range
from scipy.special import ndtr

import bayesrisk as br
from bayesrisk.mechanisms.registry import make_mechanism
from bayesrisk.risk.mechanism.hypotheses import MechanismOptions, MechanismQuestion
from bayesrisk.risk.mechanism.posterior import MechanismRisk, mechanism_risk

BLOCK = tables("block")
TARGET = {"person": 104}  # colour 2, shape 0, block 1


def gaussian(total="1/10", detail="1/4"):
    budgets = {"block": {"total": total, "colour": "1/5", "detail": detail}}
    return make_mechanism("discrete-gaussian", budgets=budgets, sensitivity="add-remove")


def risk(mechanism, target=TARGET, *, draws=400, rng=1, **changes):
    question = {
        "workload": BLOCK,
        "observed": [("block", "total")],
        "alternatives": [None],
        "prior": 0.2,
    }
    names = {*question, "known_totals"}
    question |= {name: changes.pop(name) for name in names & set(changes)}
    options = MechanismOptions(**{"utility_draws": 2, **changes})
    asked = MechanismQuestion(**question)
    return mechanism_risk(county(), mechanism, target, asked, draws=draws, rng=rng, options=options)


@pytest.mark.parametrize("p", [0.5, 0.2, 0.01])
@pytest.mark.parametrize("rho", ["1/1000", "1/10", "1", "4"])
def test_one_noisy_count_is_the_closed_form(rho, p):
    result = risk(gaussian(rho), prior=p)
    assert result.method == "closed-form"
    exact = br.marginal_posterior(rho=float(Fraction(rho)), prior=p)
    assert abs(result.marginal_posterior - exact) <= result.marginal_posterior.error
    assert result.marginal_risk == pytest.approx(
        br.marginal_risk(rho=float(Fraction(rho)), prior=p), rel=1e-11
    )
    assert result.correct_decision_probability == pytest.approx(
        br.correct_decision_probability(rho=float(Fraction(rho)), prior=p), abs=1e-11
    )
    guess = br.risk.decision_accuracy(rho=float(Fraction(rho)), prior=p)
    assert result.decision_accuracy == pytest.approx(float(guess.accuracy), abs=1e-11)
    assert result.decision_baseline == guess.baseline
    assert result.draws == 0


def test_several_noisy_counts_are_levels():
    observed = [("block", "total"), ("block", "colour"), ("block", "detail")]
    result = risk(gaussian(), observed=observed)
    assert len(result.cells) == 3
    exact = br.risk.multilevel_marginal_posterior(
        noise=br.Noise(rho=[0.1, 0.2, 0.25]), prior=0.2
    ).posterior
    assert result.method == "closed-form"
    assert result.marginal_posterior == pytest.approx(exact, rel=1e-11)


def smooth_accuracy(rho, p):
    """Return the accuracy from a normal log odds of mean +-rho and variance 2 rho.

    That is the evidence of several counts whose budgets sum to rho and are small; the decision is
    not a step of one count any more.
    """
    cut = np.log((1.0 - p) / p)
    spread = np.sqrt(2.0 * rho)
    return p * ndtr((rho - cut) / spread) + (1.0 - p) * ndtr((cut + rho) / spread)


def test_many_noisy_counts_are_sampled_with_the_exact_posterior():
    workload = tables("county", "tract", "block")
    levels = ("county", "tract", "block")
    budgets = {level: {"total": "1/10", "colour": "1/50", "detail": "1/20"} for level in levels}
    noise = make_mechanism("discrete-gaussian", budgets=budgets, sensitivity="add-remove")
    observed = [(level, name) for level in levels for name in ("total", "colour", "detail")]
    exact = br.risk.multilevel_marginal_posterior(
        noise=br.Noise(rho=[0.1, 0.02, 0.05] * 3), prior=0.2
    ).posterior
    right = smooth_accuracy(0.51, 0.2)
    inside, guesses, runs = 0, 0, 15
    for seed in range(runs):
        result = risk(noise, workload=workload, observed=observed, rng=seed, draws=4000)
        inside += result.marginal_posterior.lower <= exact <= result.marginal_posterior.upper
        guesses += result.decision_accuracy.lower <= right <= result.decision_accuracy.upper
        assert result.bias_bound == 0.0
        assert abs(result.marginal_posterior - exact) < 6 * result.marginal_posterior.error
    assert result.method == "closed-form likelihood, sampled releases"
    low, _ = binomial_range(runs, 0.95)
    assert inside >= low
    assert guesses >= low


def test_a_changed_record_moves_two_cells():
    result = risk(gaussian(), alternatives=[{"colour": 0}], observed=[("block", "colour")])
    assert [cell[2] for cell in result.cells] == ["0", "2"]
    assert result.true_counts.tolist() == [[1, 2], [2, 1]]
    exact = br.risk.multilevel_marginal_posterior(
        noise=br.Noise(rho=[0.2, 0.2]), prior=0.2
    ).posterior
    assert result.marginal_posterior == pytest.approx(exact, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("discrete-gaussian", {"sensitivity": "add-remove"}),
        ("discrete-laplace", {"sensitivity": "add-remove"}),
        ("rounding", {"base": 3, "method": "random"}),
    ],
)
def test_simulated_agrees_with_the_closed_form(name, parameters):
    if name != "rounding":
        share = {"total": "1/3", "colour": "1/2", "detail": "1"}
        parameters = {**parameters, "budgets": {"block": share}}
    mechanism = make_mechanism(name, **parameters)
    choice = {"workload": BLOCK.select(tables=["detail"]), "observed": [("block", "detail")]}
    choice |= {"alternatives": [None, {"colour": 1, "shape": 1}], "prior": [0.3, 0.4, 0.3]}
    exact = risk(mechanism, **choice)
    assert exact.method == "closed-form"
    for seed in range(2):
        close = risk(mechanism, method="simulated", rng=seed, draws=400, confidence=0.999, **choice)
        assert close.method == "simulated"
        low, high = close.marginal_posterior.lower, close.marginal_posterior.upper
        assert low <= exact.marginal_posterior <= high
        share = close.correct_decision_probability
        low, high = share.lower, share.upper
        assert low <= exact.correct_decision_probability <= high
        assert high - low < 1.0


def test_identity_makes_certain():
    exact = risk(make_mechanism("identity"))
    assert (exact.method, exact.marginal_posterior) == ("closed-form", 1.0)
    assert exact.marginal_risk == pytest.approx(5.0)
    assert exact.correct_decision_probability == 1.0
    assert exact.baseline_decision_probability == 0.0
    forced = risk(make_mechanism("identity"), method="simulated")
    assert forced.marginal_posterior.upper == 1.0
    assert forced.marginal_posterior > 0.999
    assert exact.utility["mean_absolute_error"].tolist() == [0.0] * 4


def test_a_plug_in_that_ignores_the_data_tells_nothing():
    result = risk(ByHand(ignores), draws=80)
    assert result.method == "simulated"
    assert result.marginal_risk == pytest.approx(1.0, abs=1e-12)


def test_a_plug_in_that_leaks_tells_everything():
    result = risk(ByHand(leaks), draws=100)
    assert result.marginal_risk.upper == pytest.approx(5.0)
    assert result.marginal_risk.lower > 4.99
    assert result.correct_decision_probability == 1.0


def test_a_plug_in_with_uniform_noise():
    # Shifted by one: two of the three releases are possible either way, so m = (1 + 2 p) / 3.
    total = BLOCK.select(tables=["total"])
    result = risk(ByHand(uniform_noise), workload=total, draws=1000, confidence=0.999)
    exact = (1.0 + 2.0 * 0.2) / 3.0
    assert result.marginal_posterior.lower <= exact <= result.marginal_posterior.upper
    assert result.marginal_posterior == pytest.approx(exact, abs=0.04)
    seen = result.likelihood.posterior([7], prior_pmf=[0.2, 0.8])
    assert seen.posterior[0] > 0.99


def test_suppression_shows_what_it_hides():
    suppression = make_mechanism("suppression", threshold=3)
    # Two persons of colour 2 in block 1: with or without the target the count is below three.
    kept = risk(suppression, observed=[("block", "colour", "2")])
    assert kept.method == "deterministic"
    assert kept.true_counts.tolist() == [[2], [1]]
    assert kept.marginal_posterior == pytest.approx(0.2)
    assert kept.correct_decision_probability == 0.0
    assert (kept.decision_accuracy, kept.decision_baseline) == (0.8, 0.8)
    # One person of colour 1 in block 0: suppressed if there, published as zero if not.
    alone = risk(suppression, {"person": 102}, observed=[("block", "colour", "1")])
    assert alone.true_counts.tolist() == [[1], [0]]
    assert alone.marginal_posterior == 1.0
    assert (alone.decision_accuracy, alone.decision_baseline) == (1.0, 0.8)


def test_a_tie_is_shared_and_the_accuracy_does_not_depend_on_it():
    """Where nothing is shown, half of those who are there are found at even odds, and not all."""
    suppression = make_mechanism("suppression", threshold=3)
    even = risk(suppression, observed=[("block", "colour", "2")], prior=0.5)
    assert even.correct_decision_probability == even.baseline_decision_probability == 0.5
    assert even.decision_accuracy == even.decision_baseline == 0.5
    three = risk(
        suppression,
        observed=[("block", "colour", "2")],
        alternatives=[None, {"colour": 1}],
        prior=[0.4, 0.4, 0.2],
    )
    assert three.correct_decision_probability == 0.5
    assert three.decision_accuracy == pytest.approx(0.4)
    forced = risk(
        suppression, observed=[("block", "colour", "2")], prior=0.5, method="simulated", draws=40
    )
    assert forced.correct_decision_probability == forced.decision_accuracy == 0.5


def test_absent_and_changed_together():
    result = risk(
        gaussian(),
        alternatives=[None, {"colour": 0}, {"block": BLOCKS[0]}],
        prior=[0.1, 0.3, 0.3, 0.3],
        observed=[("block", "total"), ("block", "colour", "2")],
    )
    assert result.true_counts.tolist() == [[4, 6, 2], [4, 5, 1], [4, 6, 1], [5, 5, 1]]
    assert result.baseline_decision_probability == 0.0


@pytest.mark.parametrize(
    ("target", "counts"),
    [(4, [[6], [5]]), ({"persons": [4, 5]}, [[6], [4]]), ({"household": 2}, [[6], [3]])],
)
def test_targets(target, counts):
    assert risk(gaussian(), target).true_counts.tolist() == counts


def test_results_are_repeatable_and_labelled():
    first, again = (risk(ByHand(uniform_noise), rng=7, draws=60) for _ in range(2))
    assert first.marginal_posterior == again.marginal_posterior
    assert first.seed == again.seed
    assert risk(ByHand(uniform_noise), rng=8, draws=60).seed != first.seed
    frame = first.to_frame()
    assert frame["mechanism"].tolist() == ["by-hand"]
    assert {"marginal_risk", "mean_absolute_error", "utility_draws"} <= set(frame)
    assert isinstance(first, MechanismRisk)
    with pytest.raises(FrozenInstanceError):
        first.prior = 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alternatives": []}, "alternatives must have at least one"),
        ({"alternatives": [{"height": 1}]}, "alternatives must name a column .* got 'height'"),
        ({"alternatives": [{"colour": 2}]}, "alternatives must change what the workload counts"),
        ({"alternatives": [{"colour": 0}]}, "observed must have a cell that a hypothesis changes"),
        ({"prior": 0.0}, "prior must be > 0"),
        ({"prior": [0.0, 1.0]}, r"prior\[0\] must be in \(0, 1\), got 0.0"),
        ({"prior": 0.5, "alternatives": [None, {"colour": 0}]}, "prior must hold 3 beliefs"),
        ({"observed": [("block", "age")]}, r"observed must name tables .* got \('block', 'age'\)"),
        ({"observed": [("block", "total", "0", "9" * 15)]}, "observed must name places"),
        ({"draws": 39}, "draws must be >= 40, got 39"),
        ({"method": "exact"}, "method must be one of auto, closed-form, simulated"),
    ],
)
def test_bad_arguments(changes, message):
    with pytest.raises(br.ArgumentError, match=message):
        risk(gaussian(), **changes)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (13, r"target\['persons'\] must be <= 12, got 13"),
        ({"person": 7}, r"target\['person'\] must be in the population, got 7"),
        ({"dwelling": 7}, "target must have one key of household"),
        ({"households": 0}, "population must have households, got none"),
    ],
)
def test_bad_targets(target, message):
    with pytest.raises(br.ArgumentError, match=message):
        risk(gaussian(), target)


def test_no_closed_form_where_there_is_none():
    with pytest.raises(br.ArgumentError, match="method must be 'simulated' for 'by-hand'"):
        risk(ByHand(leaks), method="closed-form")
    with pytest.raises(
        br.exceptions.ArgumentTypeError, match="mechanism must have spec and release"
    ):
        risk(None)


def test_a_place_that_would_disappear_is_refused():
    data = county()
    persons = data.persons.take([0, 4])
    question = MechanismQuestion(BLOCK, [("block", "total")], [None], 0.5)
    with pytest.raises(br.ArgumentError, match="population must list its blocks"):
        mechanism_risk(persons, gaussian(), 0, question, draws=40, rng=0)


@pytest.mark.slow
def test_processes_give_the_same():
    from bayesrisk.experiments.runs.executors import ProcessExecutor

    mechanism = ByHand(uniform_noise)
    alone = risk(mechanism, draws=64)
    other = risk(mechanism, draws=64, executor=ProcessExecutor(2))
    assert alone.marginal_posterior == other.marginal_posterior
    assert np.array_equal(alone.likelihood.codes, other.likelihood.codes)


def test_a_known_total_is_kept_by_every_hypothesis():
    """The target's block holds 6 of the 9 people of two blocks: elsewhere, it is in the other."""
    known = {"known_totals": [("tract", "total")], "workload": tables("block", "tract")}
    budgets = {"block": {"total": "1/10", "colour": "1", "detail": "1"}}
    budgets["tract"] = budgets["block"]
    noise = make_mechanism("discrete-gaussian", budgets=budgets, sensitivity="add-remove")
    found = risk(noise, alternatives=[{"block": BLOCKS[2]}], **known)
    asked = br.TwoLevels(
        n_siblings=1, rho_block=0.1, rho_group=0.0, prior=0.2, known_count=5, known_total=9
    )
    assert found.method == "closed-form"
    assert found.marginal_posterior == pytest.approx(float(asked.average(9).value), abs=1e-10)
    assert found.decision_accuracy == pytest.approx(float(asked.accuracy(9).value), abs=1e-10)
    cell = known["workload"].tables["block", "total"].cells[0]
    for totals, alternative, said in (
        ([("tract", "total")], None, "known total of 'total'.* 13, got 12"),
        ([("block", "total", cell, BLOCKS[1])], {"block": BLOCKS[2]}, " 6, got 5"),
        ([("tract", "colour")], {"colour": 0}, r"alternatives\[0\] must keep .*'colour'"),
        ([("tract", "total", "x")], None, "known_totals must name cells"),
        ([("state", "total")], None, "known_totals must name tables of the workload"),
        ([("block", "total", cell, "9")], None, "known_totals must name places"),
        ("tract", None, "known_totals must be a sequence"),
    ):
        known["known_totals"] = totals
        with pytest.raises(br.ArgumentError, match=said):
            risk(noise, alternatives=[alternative], **known)


def test_a_known_total_of_many_targets():
    question = {"observed": [("block", "colour")], "alternatives": [{"colour": 0}], "prior": 0.2}
    budgets = dict.fromkeys(["total", "colour", "detail"], "1/4")
    noise = make_mechanism(
        "discrete-gaussian", budgets={"block": budgets, "tract": budgets}, sensitivity="add-remove"
    )
    known, free = (
        br.risk.mechanism_risk_of_many(county(), noise, asked, targets=[4, 5], draws=40, rng=1)
        for asked in (
            MechanismQuestion(tables("block", "tract"), **question, known_totals=totals)
            for totals in ([("tract", "total")], ())
        )
    )
    assert known["marginal_posterior"].tolist() == free["marginal_posterior"].tolist()
