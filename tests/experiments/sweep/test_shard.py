"""Every quantity of a sweep against the function, or the slow twin, that it stands for."""

import dataclasses

import numpy as np
import pytest
import two_level_questions as questions

from bayesrisk import (
    DiscreteLaplace,
    Noise,
    correct_decision_probability,
    count_posterior,
    decision_accuracy,
    marginal_posterior,
    marginal_risk,
    posterior_probability,
    rho_to_epsilon,
)
from bayesrisk.experiments.sweep import SCHEMA
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.inference import decision_threshold
from bayesrisk.risk import marginal_count_posterior, multilevel_marginal_posterior
from bayesrisk.risk.count.question import laplace_risk


def frame_of(config):
    import pyarrow as pa

    return pa.concat_tables(
        [config.compute(shard)["part"] for shard in range(config.shards)]
    ).to_pandas()


def values(frame, quantity):
    return frame[frame["quantity"] == quantity]


def test_every_quantity_is_the_function_it_names(document):
    document["grid"]["sensitivity"] = ["change-one"]
    config = parse_config(document)
    frame = frame_of(config)
    assert len(frame) == config.rows
    assert set(frame["quantity"]) == set(config.quantities)
    for name, function in {
        "marginal_posterior": marginal_posterior,
        "marginal_risk": marginal_risk,
        "decision_threshold": decision_threshold,
        "correct_decision_probability": correct_decision_probability,
    }.items():
        rows = values(frame, name)
        expected = function(rho=rows["rho"], prior=rows["prior"], sensitivity=2**0.5)
        np.testing.assert_array_equal(rows["value"], expected)
    rows = values(frame, "decision_accuracy")
    guess = decision_accuracy(rho=rows["rho"], prior=rows["prior"], sensitivity=2**0.5)
    np.testing.assert_array_equal(rows["value"], guess.accuracy)
    np.testing.assert_array_equal(values(frame, "decision_baseline")["value"], guess.baseline)
    rows = values(frame, "posterior")
    expected = posterior_probability(
        rows["noisy_count"].astype(int), rho=rows["rho"], prior=rows["prior"], sensitivity=2**0.5
    )
    np.testing.assert_allclose(rows["value"], expected, rtol=1e-15)
    ratio = values(frame, "risk_ratio")
    np.testing.assert_allclose(ratio["value"] * ratio["prior"], expected, rtol=1e-15)
    epsilon = values(frame, "epsilon")
    np.testing.assert_allclose(epsilon["value"], rho_to_epsilon(epsilon["rho"], 1e-10), rtol=1e-14)
    levels = values(frame, "multilevel_marginal_posterior")
    for row in levels[levels["levels"] == 2].itertuples():
        twin = multilevel_marginal_posterior(
            noise=Noise(rho=[row.rho, row.rho / 2], sensitivity=2**0.5), prior=row.prior
        ).posterior
        assert row.value == pytest.approx(twin, rel=1e-14)


def test_two_levels_on_every_axis(document):
    document["grid"]["rho"] = document["grid"]["rho"][1:]
    document["hierarchy"]["conditionals"] = ["coherent", "as-published"]
    document["quantities"] = ["hierarchical_correct_decision_probability"]
    config = parse_config(document)
    frame = values(frame_of(config), "hierarchical_correct_decision_probability")
    assert len(frame) == len(config.settings) * config.hierarchy.points * len(config.prior)
    row = frame[
        (frame["rho_name"] == "block")
        & (frame["rho_group"] == 0.25)
        & (frame["group_count"] == 3)
        & (frame["conditionals"] == "coherent")
        & (frame["prior_text"] == "1/2")
    ].squeeze()
    expected = questions.correct_decision(
        n_siblings=27, rho_block=row["rho"], rho_group=0.25, prior=0.5, group_count=3
    )
    assert row["value"] == expected.value
    document["quantities"] = ["hierarchical_decision_accuracy"]
    accuracy = values(frame_of(parse_config(document)), "hierarchical_decision_accuracy")
    twin = questions.accuracy(
        n_siblings=27, rho_block=row["rho"], rho_group=0.25, prior=0.5, group_count=3
    )
    assert accuracy.loc[row.name, "value"] == twin.value != row["value"]
    # Kazan and Reiter's conditionals are another adversary, not a rounding of this one.
    published = frame[(frame["conditionals"] == "as-published") & (frame["group_count"] == 1)]
    coherent = frame[(frame["conditionals"] == "coherent") & (frame["group_count"] == 1)]
    gap = published["value"].to_numpy() - coherent["value"].to_numpy()
    assert gap[published["prior_text"] == "1/2"].min() > 0.05


def test_release_probabilities_are_those_under_the_truth(document):
    document["grid"]["released"] = {"from": -60, "to": 62}
    document["grid"]["rho"] = [0.1]
    mass = values(frame_of(parse_config(document)), "release_probability")
    assert mass["value"].sum() == pytest.approx(1.0, abs=1e-12)
    assert mass.loc[mass["value"].idxmax(), "noisy_count"] == 1


def test_simulation_agrees_with_the_exact_average(document):
    document["simulation"]["releases"] = 40_000
    document["grid"]["prior"] = ["1/2"]
    frame = frame_of(parse_config(document))
    simulated = values(frame, "simulated_marginal_posterior")
    exact = values(frame, "marginal_posterior")["value"].to_numpy()
    score = (simulated["value"].to_numpy() - exact) / simulated["standard_error"].to_numpy()
    assert np.abs(score).max() < 4.5
    # A control: against the prior, what it would be without a release, it must not agree.
    assert np.abs((simulated["value"] - 0.5) / simulated["standard_error"]).max() > 10.0


def test_draws_do_not_depend_on_the_shards(document):
    small = frame_of(parse_config(document))
    document["settings_per_shard"] = 5
    large = frame_of(parse_config(document))
    simulated = values(small, "simulated_marginal_posterior")["value"].to_numpy()
    assert len(set(simulated)) == len(simulated)
    np.testing.assert_array_equal(
        simulated, values(large, "simulated_marginal_posterior")["value"].to_numpy()
    )
    other = frame_of(dataclasses.replace(parse_config(document), seed=8))
    assert not np.array_equal(
        simulated, values(other, "simulated_marginal_posterior")["value"].to_numpy()
    )


def test_targets_share_their_numbers(document, tmp_path):
    (tmp_path / "t.csv").write_text("race,count\nA,4\nB,1\n", encoding="utf-8")
    document["table"] = {"path": "t.csv", "targets": "all"}
    frame = values(frame_of(parse_config(document, folder=tmp_path)), "posterior")
    a, b = (frame[frame["target"] == name].reset_index(drop=True) for name in "AB")
    np.testing.assert_array_equal(a["value"], b["value"])
    np.testing.assert_array_equal(a["noisy_count"], b["noisy_count"] + 3)


def test_schema_and_missing_values(document):
    table = parse_config(document).compute(0)["part"]
    assert table.schema == SCHEMA
    exact = table.to_pandas().query("quantity == 'marginal_posterior'")
    assert exact["standard_error"].isna().all()
    assert exact["noisy_count"].isna().all()


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 300.0])
@pytest.mark.parametrize("prior", [1e-9, 0.1, 0.5, 0.97])
def test_laplace_closed_forms(scale, prior):
    law = DiscreteLaplace(scale)
    pmf = [1.0 - prior, prior]
    average = marginal_count_posterior(noise=law, prior_pmf=pmf)[1, 1]
    known = laplace_risk(0.5, scale, np.array([prior])).question  # epsilon is 1
    (got,) = known.marginal_posterior()
    assert got == pytest.approx(average, rel=1e-12)
    noisy = np.arange(-3, 5)
    decides = count_posterior(noisy, noise=law, prior_pmf=pmf)[:, 1] >= 0.5
    (threshold,) = known.decision_threshold()
    np.testing.assert_array_equal(decides, noisy >= threshold)
    reach = np.arange(-60 * int(scale + 1), 60 * int(scale + 1))
    right = law.pmf(reach - 1)[count_posterior(reach, noise=law, prior_pmf=pmf)[:, 1] >= 0.5].sum()
    assert known.correct_decision()[0] == pytest.approx(right, abs=1e-12)
    best = np.maximum(prior * law.pmf(reach - 1), (1.0 - prior) * law.pmf(reach)).sum()
    accuracy = known.accuracy()
    assert accuracy.accuracy[0] == pytest.approx(best, abs=1e-12)
    assert accuracy.baseline[0] == max(prior, 1.0 - prior)


def test_laplace_sweep_uses_the_same_zcdp_budget(document):
    document["grid"]["noise"] = ["discrete-laplace"]
    frame = frame_of(parse_config(document))
    np.testing.assert_allclose(frame["noise_parameter"], 1.0 / np.sqrt(2.0 * frame["rho"]))
    epsilon = values(frame, "epsilon")
    np.testing.assert_allclose(epsilon["value"], np.sqrt(2.0 * epsilon["rho"]))
    risk = values(frame, "marginal_risk")["value"].to_numpy()
    average = values(frame, "marginal_posterior")
    np.testing.assert_allclose(risk * average["prior"], average["value"], rtol=1e-14)
