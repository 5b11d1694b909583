"""The path sampler against enumeration, its limits, and bad input."""

import numpy as np
import pytest
from oracles import samplers as slow
from paths import sample_path

from bayesrisk import ArgumentError, FiniteLaw, posterior_probability

RUN = {"draws": 10_000, "warmup": 100, "chains": 4, "rng": 7}


def worst(samples, laws):
    """Return the largest gap to the laws of all levels in Monte Carlo standard errors."""
    by_label = dict(zip(samples.labels[1:], laws[1:], strict=True))
    return slow.largest_score(samples, by_label, target=laws[0][1])


def random_case(seed):
    rng = np.random.default_rng(100 + seed)
    levels, k = int(rng.integers(2, 5)), int(rng.integers(0, 3))
    rho = rng.choice([0.1, 0.25, 0.6, 1.5], levels)
    if seed % 3 == 0:
        rho[rng.integers(0, levels - 1)] = 0.0  # no release at one level
    m = rng.integers(1, 6, levels - 1)
    if seed % 5 == 0:
        m[rng.integers(0, levels - 1)] = 0  # an only child
    priors = [None] * (levels - 1)
    if seed % 2:
        priors[-1] = FiniteLaw(k + 1, rng.dirichlet(np.ones(8)))
    if seed % 4 == 3:
        law = rng.dirichlet(np.ones(9)) * (rng.random(9) < 0.7)
        priors[0] = FiniteLaw(k, law / law.sum())
    return {
        "noisy": k + rng.integers(-3, 7, levels),
        "totals": rng.integers(-3, 7, levels - 1),
        "m": m,
        "rho": rho,
        "p": float(rng.uniform(0.1, 0.9)),
        "k": k,
    }, priors


def sampled(case, priors, **changes):
    setting = {"rho": case["rho"], "n_siblings": case["m"], "prior": case["p"], **RUN, **changes}
    return sample_path(
        case["noisy"], case["totals"], known_count=case["k"], count_priors=priors, **setting
    )


@pytest.mark.parametrize("seed", range(12))
def test_draws_follow_the_enumerated_posterior(seed):
    case, priors = random_case(seed)
    tables = [None if law is None else (lambda c, law=law: float(law.logpmf(c))) for law in priors]
    laws = slow.path(**case, log_priors=tables)
    assert worst(sampled(case, priors), laws) < 4.0


def test_the_comparison_can_fail():
    """A law for another budget is seen to be another law."""
    case, priors = random_case(4)
    laws = slow.path(**(case | {"rho": case["rho"] * 1.5}))
    assert worst(sampled(case, priors), laws) > 8.0


GRANVILLE = {"n_siblings": 27, "rho": [0.0992264, 0.2464845], "prior": 0.5}


def test_a_deeper_path_without_budget_changes_nothing():
    """Levels above the last release: one is known through its children only, others not at all."""
    setting = {"n_siblings": 27, "prior": 0.5, **RUN}
    deep = sample_path([2, 1, 9, 99], [-1, 5, 50], rho=[0.0992264, 0.2464845, 0, 0], **setting)
    assert deep.labels == ("level_0", "level_1", "level_2")
    assert abs(deep.target_probability - 0.503288) < 4 * deep.target_error


def test_draws_are_nested():
    known = {"n_siblings": [27, 3], "rho": 0.2, "prior": 0.3, "known_count": 1}
    samples = sample_path([2, 1, 4], [-1, 2], **known, **RUN)
    assert samples.labels == ("level_0", "level_1", "level_2")
    assert np.all(np.diff(samples.counts, axis=2) >= 0)
    assert set(np.unique(samples.of("level_0"))) == {1, 2}


def test_point_prior_at_the_known_count():
    priors = [None, FiniteLaw(0, [1.0])]
    setting = {"n_siblings": 3, "rho": 0.2, "prior": 0.5, **RUN}
    assert not sample_path([2, 1, 1], [0, 0], count_priors=priors, **setting).counts.any()


def test_nothing_released_leaves_the_prior():
    samples = sample_path([2, 1], [0], n_siblings=3, rho=0, prior=0.3, **RUN)
    assert samples.labels == ("level_0",)
    assert abs(samples.target_probability - 0.3) < 4 * samples.target_error


def test_an_only_child_has_its_parents_count():
    """Two releases of one count are a release at the weighted mean: here of the block itself."""
    samples = sample_path([4, 1, 9], [0, 2], n_siblings=[0, 3], rho=0.2, prior=0.3, **RUN)
    np.testing.assert_array_equal(samples.of("level_0"), samples.of("level_1"))
    only = sample_path([4, 1], [5], n_siblings=0, rho=0.2, prior=0.3, **RUN)
    exact = posterior_probability([4], rho=0.2, prior=posterior_probability(1, rho=0.2, prior=0.3))
    assert abs(only.target_probability - exact[0]) < 4 * only.target_error


def run(noisy=(2, 1), totals=(-1,), **changes):
    setting = {**GRANVILLE, "draws": 10, "warmup": 1, "chains": 2, "rng": 1, **changes}
    return sample_path(noisy, totals, **setting)


def test_priors_that_exclude_everything():
    with pytest.raises(ArgumentError, match="got none for node 'level_1'"):
        run(count_priors=[FiniteLaw(0, [1.0])], known_count=2)
    with pytest.raises(ArgumentError, match="got none for node 'level_2'"):
        run((2, 1, 1), (0, 0), rho=0.2, count_priors=[FiniteLaw(3, [1.0]), FiniteLaw(0, [0.5] * 2)])
