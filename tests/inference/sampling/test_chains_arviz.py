"""The adapter and the verdicts, under whichever ArviZ is installed."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest
import two_level_questions as questions
from oracles.trees import frame_of
from scipy import stats

from bayesrisk import ArgumentError, FiniteLaw, Tree, sample_tree, to_arviz
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import LeafPrior, diagnose
from bayesrisk.inference.sampling import chains
from bayesrisk.inference.sampling.chains import Samples

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
PRECISION = [0.0992264, 0.2464845, 0.0992264 / 27]


@pytest.fixture(scope="module")
def samples():
    return questions.sample(2, 1, -1, **GRANVILLE, draws=1000, warmup=50, chains=4, rng=1)


def altered(samples, counts, target):
    given = {name: getattr(samples, name) for name in samples.__dataclass_fields__}
    return Samples(**(given | {"counts": counts, "target": target}))


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
    attributes = posterior.attrs
    assert (attributes["inference_library"], attributes["tuning_steps"]) == ("bayesrisk", 50)
    assert json.loads(attributes["spec"])["rho_block"] == 0.0992264
    assert json.loads(attributes["seed"])["entropy"] == 1


def test_a_later_arviz_gets_a_tree_of_the_same_groups(samples, monkeypatch):
    monkeypatch.setattr(chains, "_arviz", lambda: SimpleNamespace(__version__="1.0.0"))
    data = to_arviz(samples)
    assert type(data).__name__ == "DataTree"
    assert set(data.children) == {
        "posterior", "prior", "posterior_predictive", "log_likelihood", "observed_data",
        "constant_data",
    }  # fmt: skip
    assert data["posterior"]["count"].dims == ("chain", "draw", "level")
    assert data["constant_data"]["prior"].dims == ()


def test_what_was_released_and_known_has_groups_of_its_own(samples):
    data = to_arviz(samples)
    observed, constant = data["observed_data"], data["constant_data"]
    assert observed["noisy_count"].dims == constant["precision"].dims == ("release",)
    assert observed["release"].values.tolist() == ["block", "group", "siblings"]
    assert observed["noisy_count"].values.tolist() == [2, 1, -1]
    assert constant["prior"].dims == constant["known_count"].dims == ()
    assert constant["prior"].item() == 0.5
    np.testing.assert_allclose(constant["precision"].values, PRECISION)


def true_counts(data):
    count = data["posterior"]["count"].values
    return np.dstack([count, count[..., 1] - count[..., 0]])


def log_law(precision, distance):
    """Log-probabilities of the discrete Gaussian, its constant summed with 40 digits."""
    with mpmath.workdps(40):
        rate = mpmath.mpf(float(precision))
        constant = mpmath.nsum(lambda j: mpmath.exp(-rate * j * j), [-mpmath.inf, mpmath.inf])
        return -precision * distance.astype(float) ** 2 - float(mpmath.log(constant))


def test_log_likelihoods_are_those_of_the_noise(samples):
    data = to_arviz(samples)
    found = data["log_likelihood"]["noisy_count"]
    assert found.dims == ("chain", "draw", "release")
    true = true_counts(data)
    for i, precision in enumerate(PRECISION):
        distance = np.array([2, 1, -1])[i] - true[..., i]
        np.testing.assert_allclose(found[..., i], log_law(precision, distance), rtol=1e-12)


def test_predictions_have_the_noise_of_the_release(samples):
    data = to_arviz(samples)
    drawn = data["posterior_predictive"]["noisy_count"].values
    noise = (drawn - true_counts(data)).reshape(-1, 3)
    for i, precision in enumerate(PRECISION):
        values, seen = np.unique(noise[:, i], return_counts=True)
        expected = len(noise) * np.exp(log_law(precision, values))
        enough = expected >= 5.0
        rest = [len(noise) - seen[enough].sum(), len(noise) - expected[enough].sum()]
        statistic = ((seen - expected)[enough] ** 2 / expected[enough]).sum()
        statistic += (rest[0] - rest[1]) ** 2 / rest[1]
        assert stats.chi2.sf(statistic, enough.sum()) > 1e-4
    np.testing.assert_array_equal(drawn, to_arviz(samples)["posterior_predictive"]["noisy_count"])


def test_the_prior_of_two_levels_is_that_of_the_question(samples):
    """A flat law of the group has no draws; a proper one holds the block, N >= x."""
    assert list(to_arviz(samples)["prior"].data_vars) == ["target"]
    law = FiniteLaw(0, np.array([4, 2, 1, 1]) / 8)
    given = GRANVILLE | {"prior": 0.25, "group_prior": law, "known_count": 1}
    drawn = questions.sample(2, 1, -1, **given, draws=5000, warmup=1, chains=4, rng=3)
    count = to_arviz(drawn)["prior"]["count"].values.reshape(-1, 2)
    exact = {(1, 1): 6, (1, 2): 3, (1, 3): 3, (2, 2): 1, (2, 3): 1}
    found = {pair: np.mean((count == pair).all(axis=1)) for pair in exact}
    assert sum(found.values()) == pytest.approx(1.0)
    for pair, weight in exact.items():
        assert found[pair] == pytest.approx(weight / 14, abs=5 * np.sqrt(0.25 / len(count)))


def leaf_tree(rho):
    frame = frame_of({"g": "", "a": "g", "b": "g"}, [3, 2, 0], rho)
    return Tree.from_frame(frame)


def test_the_prior_of_a_tree_adds_up():
    laws = [FiniteLaw(1, np.array([0.5, 0.25, 0.25])), FiniteLaw(0, np.full(6, 1 / 6))]
    run = {"draws": 4000, "warmup": 1, "chains": 2, "rng": 5}
    samples = sample_tree(leaf_tree(0.2), leaf_prior=laws, **run)
    count = to_arviz(samples)["prior"]["count"]
    g, a, b = (count.sel(node=name).values.ravel() for name in "gab")
    np.testing.assert_array_equal(g, a + b)
    width = 5 * np.sqrt(0.25 / g.size)
    for law, drawn in zip(laws, (a, b), strict=True):
        for value in range(6):
            assert np.mean(drawn == value) == pytest.approx(float(law.pmf(value)), abs=width)
    flat = sample_tree(leaf_tree(0.2), leaf_prior=[laws[0], LeafPrior.poisson(1.5)], **run)
    assert "prior" not in to_arviz(flat)


def test_only_published_counts_are_observed():
    """Node g has no release: it has draws, and neither a noisy count nor a likelihood."""
    samples = sample_tree(
        leaf_tree([0.0, 0.2, 0.3]), leaf_prior="flat", draws=50, warmup=5, chains=2, rng=1
    )
    data = to_arviz(samples)
    assert data["posterior"]["node"].values.tolist() == ["g", "a", "b"]
    assert data["observed_data"]["release"].values.tolist() == ["a", "b"]
    assert data["log_likelihood"]["noisy_count"].shape == (2, 50, 2)
    found = data["log_likelihood"]["noisy_count"].sel(release="b").values
    np.testing.assert_allclose(found, log_law(0.3, 0 - samples.of("b")), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")  # ArviZ fits a continuous tail to weights that have ties
def test_leave_one_out_of_a_tree_is_that_of_enumeration():
    """The probability of each noisy count given the others, over all pairs of counts."""
    law = FiniteLaw(0, np.full(8, 0.125))
    tree = leaf_tree(0.05)
    samples = sample_tree(tree, leaf_prior=law, draws=20_000, warmup=100, chains=4, rng=1)
    a, b = np.indices((8, 8))
    likelihood = np.exp([log_law(0.05, y - true) for y, true in ((3, a + b), (2, a), (0, b))])
    exact = [
        np.log(likelihood.prod(axis=0).sum() / np.delete(likelihood, i, 0).prod(axis=0).sum())
        for i in range(3)
    ]
    arviz = chains._arviz()
    with np.errstate(all="ignore"):
        found = arviz.loo(to_arviz(samples), pointwise=True)
    np.testing.assert_allclose(found.loo_i, exact, atol=0.01)
    assert found.elpd_loo == pytest.approx(sum(exact), abs=0.02)
    other = sample_tree(tree, leaf_prior=FiniteLaw(90, [1.0]), draws=50, warmup=5, chains=4, rng=2)
    with np.errstate(all="ignore"):
        ranked = arviz.compare({"right": to_arviz(samples), "wrong": to_arviz(other)})
    assert ranked.index.tolist() == ["right", "wrong"]


def test_the_predictive_plot_draws(samples):
    axes = chains._arviz().plot_ppc(to_arviz(samples), num_pp_samples=5)
    assert len(np.atleast_1d(axes)[0].lines) >= 5
    plt.close("all")


def test_trees_have_nodes_and_no_target():
    samples = sample_tree(leaf_tree(0.2), leaf_prior="flat", draws=1500, warmup=50, chains=4, rng=1)
    data = to_arviz(samples)
    posterior = data["posterior"]
    assert data["observed_data"]["noisy_count"].sel(release="a") == 2
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


def stuck(value):
    def change(counts, target):
        counts[2, :, 1] = value
        return counts, target

    return change


def stuck_apart(counts, target):
    counts = np.repeat(counts[:, :1, :], counts.shape[1], axis=1)
    counts[:, :, 1] = np.arange(4)[:, None]
    return counts, None


def drift(counts, target):
    counts[:, :, 1] += np.arange(counts.shape[1]) // 250
    return counts, target


FLAWS = {
    "a chain stuck where others are": (stuck(0), ["group: chain 2 never moved"]),
    "a chain stuck elsewhere": (stuck(9), ["group: chain 2 never moved"]),
    "chains stuck apart": (stuck_apart, ["group: no chain ever moved"]),
    "chains that drift": (drift, ["R-hat", "ESS"]),
    "too few draws": (lambda c, t: (c[:, :40], t[:, :40]), ["ESS"]),
    "one chain": (lambda c, t: (c[:1], t[:1]), ["one chain"]),
    "nothing but constants": (
        lambda c, t: (np.ones_like(c), np.zeros_like(t)),
        ["nothing ever moved"],
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaws_are_named(samples, flaw):
    change, parts = FLAWS[flaw]
    bad = altered(samples, *change(samples.counts.copy(), samples.target.copy()))
    diagnosis = diagnose(bad)
    assert diagnosis.verdict == "not converged"
    for part in parts:
        assert any(part in reason for reason in diagnosis.reasons)
    if flaw.startswith("a chain stuck"):
        assert not any(reason.startswith("block") for reason in diagnosis.reasons)
    if flaw == "chains stuck apart":
        assert np.isinf(diagnosis.to_frame()["r_hat"]["group"])
    if flaw == "one chain":
        assert np.isnan(diagnosis.r_hat).all()
        assert diagnose(bad, min_ess_per_chain=10.0).verdict == "not converged"
    if flaw == "too few draws":
        assert diagnose(bad, max_rhat=2.0, min_ess_per_chain=1.0).verdict == "converged"


def test_constants_are_noted_and_not_judged():
    """A point prior fixes the group: its draws are constant by right."""
    run = {"group_prior": FiniteLaw(3, [1.0]), "draws": 1000, "warmup": 10, "chains": 4, "rng": 1}
    samples = questions.sample(2, 1, -1, **GRANVILLE, **run)
    diagnosis = diagnose(samples)
    assert diagnosis.verdict == "converged"
    assert diagnosis.notes == ("group: every draw is 3; R-hat has no meaning",)
    assert np.isnan(diagnosis.to_frame().loc["group", ["r_hat", "ess_bulk"]].astype(float)).all()


def test_bad_input(samples):
    for function in (to_arviz, diagnose):
        with pytest.raises(ArgumentTypeError, match="samples must be a Samples, got"):
            function([1, 2])
    with pytest.raises(ArgumentError, match="max_rhat must be > 1, got 1"):
        diagnose(samples, max_rhat=1.0)
    with pytest.raises(ArgumentError, match="min_ess_per_chain must be > 0"):
        diagnose(samples, min_ess_per_chain=0.0)
    with pytest.raises(ShapeError, match="at least 4 draws, got 3"):
        diagnose(altered(samples, samples.counts[:, :3], samples.target[:, :3]))


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
