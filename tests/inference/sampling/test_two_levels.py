"""The two-level sampler against enumeration, within Monte Carlo error; and what it must refuse."""

import math
import warnings

import numpy as np
import pytest
import two_level_questions as questions
from oracles import two_levels as slow
from oracles.samplers import largest_score
from refusals import refuses

from bayesrisk import ArgumentError, FiniteLaw
from bayesrisk.exceptions import IncompatibleConditionalsWarning

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
RELEASE = (2, 1, -1)
RUN = {"warmup": 50, "chains": 4, "rng": 11}


def worst(samples, law):
    """Return the largest gap to P(target) and the law of the group in standard errors."""
    target, group = law
    return largest_score(samples, {"group": group}, target=target, rare=1e-3)


def random_case(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(0, 4))
    case = {
        "n_siblings": int(rng.integers(1, 40)),
        "rho_block": float(rng.choice([0.0, 0.03, 0.1, 0.5, 3.0], p=[0.1, 0.2, 0.3, 0.3, 0.1])),
        "rho_group": float(rng.choice([0.02, 0.25, 1.0, 8.0])),
        "prior": float(rng.uniform(0.02, 0.98)),
        "known_count": k,
        "sensitivity": float(rng.choice([1.0, math.sqrt(2.0)])),
    }
    release = tuple(int(v) for v in (k + rng.integers(-3, 5), k + rng.integers(-3, 9), 0))
    release = (*release[:2], int(rng.integers(-6, 12)))
    weights = rng.dirichlet(np.ones(12))
    prior = FiniteLaw(k + int(rng.integers(-2, 3)), weights) if seed % 3 == 0 else None
    return release, case, prior


def model(case=GRANVILLE, prior=None):
    """Return the settings of the slow twins."""
    scale, k = case.get("sensitivity", 1.0) ** 2, case.get("known_count", 0)
    logs = (lambda n: 0.0) if prior is None else (lambda n: float(prior.logpmf(n)))
    return {
        "m": case["n_siblings"], "a": case["rho_block"] / scale, "b": case["rho_group"] / scale,
        "p": case["prior"], "k": k, "group_log_prior": {n: logs(n) for n in range(k, k + 80)},
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_coherent_draws_follow_the_enumerated_posterior(seed):
    release, case, prior = random_case(seed)
    samples = questions.sample(*release, **case, group_prior=prior, draws=20_000, **RUN)
    assert worst(samples, slow.coherent(*release, **model(case, prior))) < 4.0


def test_the_published_numbers_of_the_coherent_law():
    samples = questions.sample(*RELEASE, **GRANVILLE, draws=200_000, **RUN)
    group = np.array([12.935, 38.660, 29.790, 13.919, 3.943, 0.677]) / 100
    assert worst(samples, (0.503288, group)) < 4.0


def published(**changes):
    with pytest.warns(IncompatibleConditionalsWarning, match="no joint"):
        return questions.sample(*RELEASE, **(GRANVILLE | changes), conditionals="as-published")


def test_as_published_replicates_the_printed_law():
    samples = published(draws=200_000, **RUN)
    group = np.array([10.998, 39.503, 30.456, 14.237, 4.036, 0.694]) / 100
    assert worst(samples, (0.577702, group)) < 4.0
    law = slow.published(*RELEASE, **model())
    assert law[0] == pytest.approx(0.577702, abs=5e-7)
    assert worst(samples, law) < 4.0


def test_the_comparison_can_fail():
    """Coherent draws are far from the as-published law, and the other way round."""
    samples = questions.sample(*RELEASE, **GRANVILLE, draws=20_000, **RUN)
    assert worst(samples, slow.published(*RELEASE, **model())) > 20.0
    samples = published(draws=20_000, **RUN)
    assert worst(samples, slow.coherent(*RELEASE, **model())) > 20.0


def test_every_draw_is_feasible_and_labelled():
    samples = questions.sample(
        *RELEASE, **GRANVILLE, known_count=3, draws=1000, warmup=0, chains=3, rng=2
    )
    assert samples.counts.shape == (3, 1000, 2)
    assert samples.labels == ("block", "group")
    assert np.all(samples.of("group") >= samples.of("block"))
    np.testing.assert_array_equal(samples.target, samples.of("block") - 3)
    assert set(np.unique(samples.target)) == {0, 1}
    frame = samples.to_frame()
    assert list(frame) == ["chain", "draw", "target", "block", "group"]
    assert len(frame) == 3000
    assert samples.spec["known_count"] == 3
    assert samples.seed["entropy"] == 2


@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
def test_draws_do_not_depend_on_the_number_of_threads(conditionals):
    setting = {**GRANVILLE, "conditionals": conditionals, "draws": 500, "warmup": 5, "chains": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompatibleConditionalsWarning)
        runs = [questions.sample(*RELEASE, **setting, rng=3, threads=t) for t in (1, 2, 5, None)]
        other = questions.sample(*RELEASE, **setting, rng=4)
    for run in runs[1:]:
        np.testing.assert_array_equal(run.counts, runs[0].counts)
    assert np.any(other.counts != runs[0].counts)
    chains = [tuple(chain.ravel()) for chain in runs[0].counts]
    assert len(set(chains)) == 5


def test_a_generator_moves_on():
    rng = np.random.default_rng(5)
    setting = {**GRANVILLE, "draws": 50, "warmup": 0, "chains": 2}
    first, second = (questions.sample(*RELEASE, **setting, rng=rng) for _ in range(2))
    assert np.any(first.counts != second.counts)
    assert (first.seed["first_child"], second.seed["first_child"]) == (0, 2)
    again = questions.sample(*RELEASE, **setting, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(again.counts, first.counts)


@pytest.mark.parametrize(
    ("prior", "group"),
    [
        (FiniteLaw(0, [1.0]), {0}),
        (FiniteLaw(4, [1.0]), {4}),
        (FiniteLaw(0, [0.5, 0.0, 0.0, 0.5]), {0, 3}),
    ],
)
def test_priors_with_holes(prior, group):
    samples = questions.sample(*RELEASE, **GRANVILLE, group_prior=prior, draws=20_000, **RUN)
    assert set(np.unique(samples.of("group"))) == group
    if group == {0}:
        assert not samples.target.any()
    else:
        assert worst(samples, slow.coherent(*RELEASE, **model(prior=prior))) < 4.0


def test_large_counts_keep_their_digits():
    """Shifting everything by a large number shifts the draws, and nothing else."""
    big = 2**40
    small = questions.sample(5, 40, 33, known_count=4, **GRANVILLE, draws=2000, **RUN)
    large = questions.sample(5, 40 + big, 33 + big, known_count=4, **GRANVILLE, draws=2000, **RUN)
    assert np.mean(large.of("group") - big == small.of("group")) > 0.999
    np.testing.assert_allclose(large.of("block"), small.of("block"))


def run(**changes):
    setting = {"block": 2, "group": 1, "siblings": -1, **GRANVILLE}
    setting |= {"draws": 10, "warmup": 1, "chains": 2, "rng": 1}
    return questions.sample(**(setting | changes))


@pytest.mark.parametrize(
    ("name", "bad"),
    [("draws", 0), ("warmup", -1), ("chains", 0), ("threads", 0), ("rng", None), ("draws", 2.5)],
)
def test_bad_settings(name, bad):
    assert refuses(lambda value: run(**{name: value}), name, bad)


@pytest.mark.parametrize("name", ["block", "rho_block", "prior", "draws"])
def test_one_release_at_a_time(name):
    with pytest.raises(ArgumentError, match=name):
        run(**{name: [1, 2]})


def test_priors_that_exclude_everything():
    with pytest.raises(ArgumentError, match="group_prior"):
        run(group_prior=FiniteLaw(0, [1.0]), conditionals="as-published")


def test_improper_posteriors_are_refused():
    with pytest.raises(ArgumentError, match="flat group_prior"):
        run(rho_block=0, rho_group=0)
    samples = run(rho_block=0, rho_group=0, group_prior=FiniteLaw(0, [0.25] * 4), draws=5000)
    assert 0.3 < samples.target_probability < 0.55  # N = 0 forbids the target


def test_windows_too_wide_to_tabulate_are_refused():
    with pytest.raises(ArgumentError, match="group_prior"):
        run(rho_block=1e-14, rho_group=0)
