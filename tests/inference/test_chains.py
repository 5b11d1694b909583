"""Effective sizes and errors of draws, seeds, and the result's own access."""

import numpy as np
import pytest

from bayesrisk import ArgumentError, Samples, sample_hierarchy
from bayesrisk.inference import arviz_io
from bayesrisk.inference.chains import effective_size, run_chains, spawn, standard_error


def autoregression(rng, chains, draws, phi):
    noise = rng.standard_normal((chains, draws))
    out = np.zeros((chains, draws))
    out[:, 0] = noise[:, 0] / np.sqrt(1 - phi * phi)
    for t in range(1, draws):
        out[:, t] = phi * out[:, t - 1] + noise[:, t]
    return out


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_effective_size_of_an_autoregression(phi):
    draws = autoregression(np.random.default_rng(1), 4, 20_000, phi)
    assert effective_size(draws) / draws.size == pytest.approx((1 - phi) / (1 + phi), rel=0.15)


@pytest.mark.parametrize("phi", [-0.3, 0.0, 0.7])
@pytest.mark.parametrize("draws", [50, 501])
def test_errors_agree_with_arviz(phi, draws):
    sample = autoregression(np.random.default_rng(2), 4, draws, phi)
    theirs = arviz_io._arviz().statistic("mcse", sample)
    assert standard_error(sample) == pytest.approx(theirs, rel=0.02)


def test_errors_are_those_of_repeated_runs():
    setting = {"n_siblings": 3, "rho_block": 0.5, "rho_group": 0.5, "prior": 0.5}
    runs = [
        sample_hierarchy(2, 4, 1, **setting, draws=500, warmup=20, chains=4, rng=seed)
        for seed in range(60)
    ]
    spread = np.std([run.target_probability for run in runs], ddof=1)
    claimed = np.mean([run.target_error for run in runs])
    assert spread == pytest.approx(claimed, rel=4 / np.sqrt(2 * 59))


def test_constant_draws_have_no_error():
    assert np.isnan(standard_error(np.ones((4, 100))))
    assert np.isnan(effective_size(np.random.default_rng(1).random((4, 3))))


def test_spawned_generators_differ_and_are_recorded():
    first, origin = spawn(7, 3)
    again, _ = spawn(np.int64(7), 3)
    values = [g.random() for g in first]
    assert len(set(values)) == 3
    assert values == [g.random() for g in again]
    assert (origin["entropy"], origin["bit_generator"], origin["spawn_key"]) == (7, "PCG64", ())


def test_a_failing_chain_is_not_silent():
    def task(chain):
        if chain == 2:
            raise ValueError("chain 2")

    for threads in (1, 2):
        with pytest.raises(ValueError, match="chain 2"):
            run_chains(task, 4, threads)


def make(counts, target=None):
    counts = np.asarray(counts)
    return Samples(
        counts=counts,
        target=target,
        labels=("a", "b"),
        dimension="node",
        sampler="test",
        warmup=0,
        spec={},
        seed={},
    )


def test_access():
    samples = make([[[1, 2], [3, 2], [1, 2], [1, 2]]])
    assert (samples.chains, samples.draws) == (1, 4)
    assert samples.of("a").tolist() == [[1, 3, 1, 1]]
    pmf = samples.pmf("a")
    assert pmf["probability"].to_dict() == {1: 0.75, 3: 0.25}
    assert pmf.index.name == "a"
    assert np.isnan(samples.pmf("b")["error"]).all()
    assert repr(samples) == "Samples(test: 1 chains x 4 draws x 2 nodes)"
    assert set(samples.versions) == {"bayesrisk", "numpy"}
    with pytest.raises(ArgumentError, match="label must be one of a, b, got 'c'"):
        samples.of("c")
    with pytest.raises(ArgumentError, match="single target"):
        _ = samples.target_probability
    with pytest.raises(AttributeError):
        samples.warmup = 3
