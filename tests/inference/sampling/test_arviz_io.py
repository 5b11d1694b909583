"""The adapter and the verdicts, under whichever ArviZ is installed."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import two_level_questions as questions

from bayesrisk import (
    ArgumentError,
    FiniteLaw,
    Tree,
    sample_tree,
    to_arviz,
)
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import diagnose
from bayesrisk.inference.sampling import chains
from bayesrisk.inference.sampling.chains import Samples

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}


@pytest.fixture(scope="module")
def samples():
    return questions.sample(2, 1, -1, **GRANVILLE, draws=1000, warmup=50, chains=4, rng=1)


def altered(samples, counts, target="same"):
    given = {name: getattr(samples, name) for name in samples.__dataclass_fields__}
    given["target"] = samples.target if isinstance(target, str) else target
    return Samples(**(given | {"counts": counts}))


def test_the_containers_of_both_versions(samples):
    data = to_arviz(samples)
    modern = not chains._arviz().__version__.startswith("0.")
    assert type(data).__name__ == ("DataTree" if modern else "InferenceData")
    posterior = data["posterior"]
    assert posterior["target"].dims == ("chain", "draw")
    assert posterior["count"].dims == ("chain", "draw", "level")
    assert posterior["level"].values.tolist() == ["block", "group"]
    np.testing.assert_array_equal(posterior["count"].values, samples.counts)
    np.testing.assert_array_equal(posterior["target"].values, samples.target)
    group = posterior["count"].sel(level="group").values
    np.testing.assert_array_equal(group, samples.of("group"))


def test_what_was_released_and_known_has_groups_of_its_own(samples):
    data = to_arviz(samples)
    observed, constant = data["observed_data"], data["constant_data"]
    assert observed["noisy_count"].dims == ("level",)
    assert observed["noisy_count"].values.tolist() == [2, 1]
    assert observed["noisy_siblings"].item() == -1
    assert constant["prior"].item() == 0.5
    np.testing.assert_allclose(constant["precision"].values, [0.0992264, 0.2464845])


def test_where_the_draws_come_from_travels_along(samples):
    attributes = to_arviz(samples)["posterior"].attrs
    assert attributes["inference_library"] == "bayesrisk"
    assert attributes["tuning_steps"] == 50
    assert json.loads(attributes["spec"])["rho_block"] == 0.0992264
    assert json.loads(attributes["seed"])["entropy"] == 1


def test_trees_have_nodes_and_no_target():
    frame = pd.DataFrame(
        {"node": ["g", "a", "b"], "parent": ["", "g", "g"], "noisy_count": [3, 2, 0], "rho": 0.2}
    )
    tree = Tree.from_frame(frame)
    samples = sample_tree(tree, leaf_prior="flat", draws=1500, warmup=50, chains=4, rng=1)
    data = to_arviz(samples)
    posterior = data["posterior"]
    assert data["observed_data"]["noisy_count"].sel(node="a") == 2
    np.testing.assert_allclose(data["constant_data"]["precision"].values, 0.2)
    assert posterior["count"].dims == ("chain", "draw", "node")
    assert "target" not in posterior
    assert diagnose(samples).variables == ("g", "a", "b")
    assert diagnose(samples).verdict == "converged"


def test_good_chains_pass(samples):
    diagnosis = diagnose(samples)
    assert diagnosis.verdict == "converged"
    assert diagnosis.reasons == diagnosis.notes == ()
    frame = diagnosis.to_frame()
    assert list(frame.index) == ["target", "block", "group"]
    assert np.all(frame["r_hat"] < 1.01)
    assert np.all(frame[["ess_bulk", "ess_tail"]] > 400)
    assert frame["mcse"]["target"] == pytest.approx(samples.target_error, rel=0.02)
    assert frame["mean"]["target"] == pytest.approx(samples.target_probability)
    assert diagnosis.arviz_version == chains._arviz().__version__


def stuck(samples, chain, value):
    counts = samples.counts.copy()
    counts[chain, :, 1] = value
    return altered(samples, counts)


@pytest.mark.parametrize("value", [0, 9])
def test_a_stuck_chain_is_flagged(samples, value):
    diagnosis = diagnose(stuck(samples, 2, value))
    assert diagnosis.verdict == "not converged"
    assert any("group: chain 2 never moved" in reason for reason in diagnosis.reasons)
    assert not any(reason.startswith("block") for reason in diagnosis.reasons)


def test_chains_stuck_apart_are_flagged(samples):
    counts = np.repeat(samples.counts[:, :1, :], samples.draws, axis=1)
    counts[:, :, 1] = np.arange(4)[:, None]
    diagnosis = diagnose(altered(samples, counts, target=None))
    assert diagnosis.verdict == "not converged"
    assert any("group: no chain ever moved" in reason for reason in diagnosis.reasons)
    assert np.isinf(diagnosis.to_frame()["r_hat"]["group"])


def test_chains_that_drift_are_flagged(samples):
    counts = samples.counts.copy()
    counts[:, :, 1] += np.arange(samples.draws) // 250
    reasons = diagnose(altered(samples, counts)).reasons
    assert any("R-hat" in reason for reason in reasons)
    assert any("ESS" in reason for reason in reasons)


def test_too_few_draws_are_flagged(samples):
    few = altered(samples, samples.counts[:, :40], target=samples.target[:, :40])
    diagnosis = diagnose(few)
    assert diagnosis.verdict == "not converged"
    assert all("ESS" in r or "R-hat" in r for r in diagnosis.reasons)
    assert diagnose(few, max_rhat=2.0, min_ess_per_chain=1.0).verdict == "converged"


def test_one_chain_is_never_enough(samples):
    one = altered(samples, samples.counts[:1], target=samples.target[:1])
    diagnosis = diagnose(one, min_ess_per_chain=10.0)
    assert diagnosis.verdict == "not converged"
    assert any("one chain" in reason for reason in diagnosis.reasons)
    assert np.isnan(diagnosis.r_hat).all()


def test_constants_are_noted_and_not_judged():
    """A point prior fixes the group: its draws are constant by right."""
    run = {"group_prior": FiniteLaw(3, [1.0]), "draws": 1000, "warmup": 10, "chains": 4, "rng": 1}
    samples = questions.sample(2, 1, -1, **GRANVILLE, **run)
    diagnosis = diagnose(samples)
    assert diagnosis.verdict == "converged"
    assert diagnosis.notes == ("group: every draw is 3; R-hat has no meaning",)
    assert np.isnan(diagnosis.to_frame().loc["group", ["r_hat", "ess_bulk"]].astype(float)).all()


def test_nothing_but_constants_is_not_convergence(samples):
    counts = np.ones_like(samples.counts)
    diagnosis = diagnose(altered(samples, counts, target=np.zeros_like(samples.target)))
    assert diagnosis.verdict == "not converged"
    assert any("nothing ever moved" in reason for reason in diagnosis.reasons)


def test_bad_input(samples):
    for function in (to_arviz, diagnose):
        with pytest.raises(ArgumentTypeError, match="samples must be a Samples, got"):
            function([1, 2])
    with pytest.raises(ArgumentError, match="max_rhat must be > 1, got 1"):
        diagnose(samples, max_rhat=1.0)
    with pytest.raises(ArgumentError, match="min_ess_per_chain must be > 0"):
        diagnose(samples, min_ess_per_chain=0.0)
    with pytest.raises(ShapeError, match="at least 4 draws, got 3"):
        diagnose(altered(samples, samples.counts[:, :3], target=samples.target[:, :3]))


@pytest.mark.slow
def test_arviz_is_loaded_late_and_without_warnings(tmp_path):
    """ArviZ 0.23 announces 1.0 on the first import of a day; a fresh cache makes it the first."""
    code = (
        "import sys, bayesrisk.inference as b\n"
        "assert 'arviz' not in sys.modules\n"
        "from bayesrisk.inference.sampling import chains\n"
        "chains._arviz()\n"
        "assert 'arviz' in sys.modules\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
