"""Effective sizes and errors of draws, seeds, and the result's own access."""

import signal
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import two_level_questions as questions
from paths import sample_path

from bayesrisk import ArgumentError
from bayesrisk.exceptions import ConvergenceWarning
from bayesrisk.inference.sampling import chains
from bayesrisk.inference.sampling.chains import (
    Samples,
    diagnose,
    effective_size,
    run_chains,
    spawn,
    standard_error,
)


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
    theirs = chains._statistic("mcse", sample)
    assert standard_error(sample) == pytest.approx(theirs, rel=0.02)


def test_errors_are_those_of_repeated_runs():
    setting = {"n_siblings": 3, "rho_block": 0.5, "rho_group": 0.5, "prior": 0.5}
    runs = [
        questions.sample(2, 4, 1, **setting, draws=500, warmup=20, chains=4, rng=seed)
        for seed in range(60)
    ]
    spread = np.std([run.target_probability for run in runs], ddof=1)
    claimed = np.mean([run.target_error for run in runs])
    assert spread == pytest.approx(claimed, rel=4 / np.sqrt(2 * 59))


def test_the_estimate_of_the_target():
    setting = {"n_siblings": 3, "rho_block": 0.5, "rho_group": 0.5, "prior": 0.5}
    run = questions.sample(2, 4, 1, **setting, draws=500, warmup=20, chains=4, rng=1)
    share = run.estimate(0.95)
    assert (share.value, share.error) == (run.target_probability, run.target_error)
    assert (share.confidence, share.method) == (0.95, "coherent")
    assert share.upper - share.value == pytest.approx(1.959963984540054 * run.target_error)


@pytest.mark.parametrize("draws", [4, 20, 2000])
@pytest.mark.parametrize("apart", [False, True])
def test_numbers_of_unfinished_chains_are_marked(draws, apart):
    """Independent draws converge with 100 a chain; chains with means of their own never do."""
    coin = np.random.default_rng(8).integers(0, 2, (4, draws))
    coin[:, 0], coin[:, 1] = 0, 1  # no chain is constant
    if apart:
        coin[0, 2:] = 1
    run = make(np.stack([coin, coin], axis=-1).tolist())
    run = replace(run, target=coin)
    done = draws == 2000 and not apart
    assert set(run.pmf("a")["status"]) == {"sampled" if done else "undecided"}
    assert ("Not converged: target: " in repr(run)) == (not done)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        share = run.estimate(0.95) if draws > 4 else None
    assert bool(caught) == (draws == 20 or (draws > 4 and apart))
    assert all(issubclass(one.category, ConvergenceWarning) for one in caught)
    assert share is None or share.value == coin.mean()
    if draws > 4:
        assert (diagnose(run).verdict == "converged") == done


def test_constant_draws_have_no_error():
    certain = {"n_siblings": 3, "rho_block": 900.0, "rho_group": 0.5, "prior": 0.5}
    run = questions.sample(1, 4, 1, **certain, draws=20, warmup=20, chains=2, rng=1)
    with pytest.raises(ArgumentError, match="the draws must differ for an error, got 40 equal"):
        run.estimate(0.95)
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
    def begin(chain):
        def step(skip, out):
            if chain == 2:
                raise ValueError("chain 2")

        return step

    for threads in (1, 2):
        with pytest.raises(ValueError, match="chain 2"):
            run_chains(begin, np.zeros((4, 10, 1), dtype=np.int64), 5, threads)


@pytest.mark.parametrize(("draws", "warmup"), [(1, 0), (7, 0), (100, 33), (3, 1000), (1000, 1)])
@pytest.mark.parametrize("seconds", [0.0, 1e-5, 10.0])
def test_pieces_of_a_chain_are_the_chain(monkeypatch, draws, warmup, seconds):
    """A step that counts its own sweeps: every kept row holds its number, whatever the pieces."""
    monkeypatch.setattr(chains, "_SECONDS", seconds)
    sizes = []

    def begin(chain):
        done = [0]

        def step(skip, out):
            sizes.append(skip + len(out))
            done[0] += skip
            out[:, 0] = np.arange(done[0], done[0] + len(out))
            done[0] += len(out)

        return step

    counts = np.full((2, draws, 1), -1, dtype=np.int64)
    run_chains(begin, counts, warmup, 1)
    for chain in counts:
        assert chain[:, 0].tolist() == list(range(warmup, warmup + draws))
    assert sum(sizes) == 2 * (draws + warmup)
    assert len(sizes) > 2 or draws + warmup <= 16 or seconds > 1.0


def test_samplers_draw_the_same_in_pieces(monkeypatch):
    def draw():
        about = {"n_siblings": 27, "rho_block": 0.1, "rho_group": 0.25, "prior": 0.5}
        run = {"draws": 200, "warmup": 50, "chains": 2, "rng": 1}
        one = questions.sample(2, 1, -1, **about, **run).counts
        two = sample_path([2, 1], [-1], n_siblings=27, rho=[0.1, 0.25], prior=0.5, **run).counts
        return one.tobytes() + two.tobytes()

    whole = draw()
    monkeypatch.setattr(chains, "_SECONDS", 0.0)  # one sweep at a time, after the first sixteen
    assert draw() == whole


_LONG = """
import time
from bayesrisk import TwoLevels
question = TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
question.sample(2, 1, -1, draws=10, warmup=0, chains=1, rng=1)
try:
    print("ready", flush=True)
    question.sample(2, 1, -1, draws=1, warmup=10**8, chains=64, threads=2, rng=1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a process there")
def test_ctrl_c_stops_chains():
    process = subprocess.Popen(
        [sys.executable, "-c", _LONG],
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        # All sweeps would take minutes.
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        process.kill()


def test_what_is_kept_is_bounded():
    about = {"n_siblings": 27, "rho_block": 0.1, "rho_group": 0.25, "prior": 0.5, "rng": 1}
    with pytest.raises(ArgumentError, match=r"draws \* chains \* variables must be <= 268435456"):
        questions.sample(2, 1, -1, **about, draws=10**8, warmup=0, chains=2)
    with pytest.raises(ArgumentError, match="warmup must be <= 100000000"):
        questions.sample(2, 1, -1, **about, draws=1, warmup=2**31 - 1, chains=1)
    with pytest.raises(ArgumentError, match="threads must be <= 1024"):
        questions.sample(2, 1, -1, **about, draws=1, warmup=0, chains=2, threads=10**9)


def make(counts, target=None):
    counts = np.asarray(counts)
    return Samples(
        counts=counts, target=target, labels=("a", "b"), dimension="node", sampler="test", warmup=0,
        spec={}, seed={},
    )  # fmt: skip


def test_access():
    samples = make([[[1, 2], [3, 2], [1, 2], [1, 2]]])
    assert (samples.chains, samples.draws) == (1, 4)
    assert samples.of("a").tolist() == [[1, 3, 1, 1]]
    pmf = samples.pmf("a")
    assert pmf["probability"].to_dict() == {1: 0.75, 3: 0.25}
    assert pmf.index.name == "a"
    assert np.isnan(samples.pmf("b")["error"]).all()
    assert (pmf["status"].unique(), samples.pmf("b")["status"].unique()) == (
        ["undecided"],
        ["constant"],
    )
    assert "test, 1 chains x 4 draws x 2 nodes." in repr(samples)
    assert set(samples.versions) == {"bayesrisk", "numpy"}
    with pytest.raises(ArgumentError, match="label must be one of a, b, got 'c'"):
        samples.of("c")
    with pytest.raises(ArgumentError, match="single target"):
        _ = samples.target_probability
    with pytest.raises(AttributeError):
        samples.warmup = 3
