"""Posteriors along a path against enumeration, the two-level posterior and published numbers."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles import samplers as slow
from paths import path_posterior

from bayesrisk import ArgumentError, DiscreteGaussian, FiniteLaw, hierarchical_posterior
from bayesrisk.exceptions import ArgumentTypeError, ShapeError

GRANVILLE = {"n_siblings": 27, "rho": [0.0992264, 0.2464845], "prior": 0.5}


def enumerated(y, totals, m, rho, p, k, largest, **more):
    return slow.path(y, totals, m=m, rho=rho, p=p, k=k, size=largest + 1, **more)


def largest_gap(result, truth):
    worst = abs(result.target_probability - truth[0][1])
    for level, pmf in enumerate(truth[1 : result.mean.size], start=1):
        mine = result.pmf(level)
        full = np.zeros(max(pmf.size, mine.index[-1] + 1))
        full[mine.index] = mine
        full[: pmf.size] -= pmf
        worst = max(worst, np.abs(full).max())
    return worst


def log_priors(laws):
    """Return the log probabilities of laws as functions of one count."""
    return [law and (lambda x, law=law: float(law.logpmf(x))) for law in laws]


@pytest.mark.parametrize("noise", ["approximate", "exact"])
@pytest.mark.parametrize("seed", range(8))
def test_one_level_above_is_the_two_level_posterior(seed, noise):
    rng = np.random.default_rng(seed)
    y, n, total = (int(v) for v in rng.integers(-6, 14, 3))
    m, k, p = int(rng.integers(1, 30)), int(rng.integers(0, 4)), rng.uniform(0.01, 0.99)
    rho = np.exp(rng.uniform(np.log(0.02), np.log(4.0), 2))
    law = FiniteLaw(k + int(rng.integers(0, 3)), rng.dirichlet(np.ones(12))) if seed % 3 else None
    rho[1] = 0.0 if seed % 5 == 2 else rho[1]
    two = hierarchical_posterior(
        y, n, total, n_siblings=m, rho_block=rho[0], rho_group=rho[1], prior=p, known_count=k,
        group_prior=law, sibling_noise=noise,
    )  # fmt: skip
    path = path_posterior(
        [y, n],
        [total],
        n_siblings=m,
        rho=rho,
        prior=p,
        known_count=k,
        count_priors=[law],
        sibling_noise=noise,
    )
    assert abs(path.target_probability - float(two.target_probability)) < 1e-12
    assert path.block_probability == pytest.approx(float(two.block_probability), rel=1e-13)
    gap = path.pmf(1).subtract(two.group_pmf, fill_value=0.0).abs().max()
    assert gap < 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_two_levels_above_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    y, totals = rng.integers(-2, 8, 3), rng.integers(-2, 6, 2)
    m, k, p = [int(rng.integers(0, 4)), int(rng.integers(1, 4))], int(rng.integers(0, 3)), 0.3
    rho = rng.uniform(0.5, 2.0, 3)
    sibling_rho = rng.uniform(0.5, 2.0, 2) if seed % 2 else None
    if seed % 3 == 0:
        rho[1] = 0.0  # no release between the levels
    result = path_posterior(
        y, totals, n_siblings=m, rho=rho, prior=p, known_count=k, sibling_rho=sibling_rho
    )
    truth = enumerated(y, totals, m, rho, p, k, 32, sibling_rho=sibling_rho)
    assert largest_gap(result, truth) < 1e-12
    wrong = enumerated(np.add(y, [0, 0, 1]), totals, m, rho, p, k, 32, sibling_rho=sibling_rho)
    assert largest_gap(result, wrong) > 1e-4


def test_three_levels_above_with_priors():
    y, totals, m, rho = [1, 4, 5, 12], [2, 1, 6], [3, 2, 5], [0.4, 0.8, 0.3, 0.9]
    laws = [None, FiniteLaw(2, [0.1, 0.2, 0.4, 0.3]), FiniteLaw(9, np.full(6, 1 / 6))]
    result = path_posterior(y, totals, n_siblings=m, rho=rho, prior=0.2, count_priors=laws)
    truth = enumerated(y, totals, m, rho, 0.2, 0, 14, log_priors=log_priors(laws))
    assert largest_gap(result, truth) < 1e-12


def test_only_children_share_their_count_and_its_priors():
    """Groups of one: block, group and tract have one count, and every prior on it counts."""
    y, rho = [1, 3, 2, 6], [0.4, 0.8, 0.3, 0.9]
    laws = [FiniteLaw(1, [0.2, 0.8]), FiniteLaw(0, [0.1, 0.3, 0.6]), None]
    result = path_posterior(
        y, [0, 0, 4], n_siblings=[0, 0, 2], rho=rho, prior=0.2, known_count=1, count_priors=laws
    )
    more = {"log_priors": log_priors(laws)}
    truth = enumerated(y, [0, 0, 4], [0, 0, 2], rho, 0.2, 1, 24, **more)
    assert largest_gap(result, truth) < 1e-12
    alone = path_posterior(y[:2], [0], n_siblings=0, rho=rho[:2], prior=0.2, count_priors=laws[:1])
    assert alone.target_probability == 1.0  # the group's prior excludes an empty block
    with pytest.raises(ArgumentError, match="priors on one count must share"):
        path_posterior(
            y[:3],
            [0, 0],
            n_siblings=0,
            rho=rho[:3],
            prior=0.2,
            count_priors=[FiniteLaw(1, [1.0]), FiniteLaw(5, [1.0])],
        )


def test_exact_noise_of_the_other_children():
    """With a large budget the sum of three discrete Gaussians is no discrete Gaussian."""
    y, totals, rho = [1, 3, 5], [3, 1], [1.5, 1.0, 0.8]
    law = DiscreteGaussian.from_rho(1.5)
    grid = np.arange(-12, 13)
    one = law.pmf(grid)
    three = np.convolve(np.convolve(one, one), one)

    def noise(gap):
        return np.log(three[np.clip(gap, -36, 36) + 36])

    def gaussian(gap):
        return -rho[1] * gap**2

    settings_ = {"n_siblings": [3, 1], "rho": rho, "prior": 0.4}
    truth = enumerated(y, totals, [3, 1], rho, 0.4, 0, 20, noise=[noise, gaussian])
    exact = path_posterior(y, totals, sibling_noise="exact", **settings_)
    assert largest_gap(exact, truth) < 1e-12
    assert largest_gap(path_posterior(y, totals, **settings_), truth) > 1e-6


@given(
    st.integers(-5, 15),
    st.integers(-5, 25),
    st.integers(-9, 30),
    st.lists(st.tuples(st.integers(-50, 500), st.integers(-50, 500)), min_size=1, max_size=3),
    st.floats(0.01, 2.0),
)
@settings(max_examples=15, deadline=None)
def test_deeper_paths_with_no_extra_budget_change_nothing(y, n, total, more, rho):
    two = path_posterior([y, n], [total], n_siblings=9, rho=[rho, 0.2], prior=0.3)
    deeper = path_posterior(
        [y, n, *(a for a, _ in more)],
        [total, *(b for _, b in more)],
        n_siblings=9,
        rho=[rho, 0.2, *[0.0] * len(more)],
        sibling_rho=[rho, *[0.0] * len(more)],
        prior=0.3,
    )
    assert deeper.target_probability == two.target_probability
    np.testing.assert_array_equal(deeper.mean, two.mean)
    # A total of other children without a total of all says nothing about the levels below.
    total_only = path_posterior(
        [y, n, 7], [total, 40], n_siblings=9, rho=[rho, 0.2, 0.0], prior=0.3
    )
    assert total_only.target_probability == pytest.approx(two.target_probability, abs=1e-13)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noisy_counts": [2]}, ShapeError, "at least two levels"),
        ({"siblings": [1, 2]}, ShapeError, "siblings must have one total for each of the 1"),
        ({"n_siblings": [1, 2]}, ShapeError, "n_siblings"),
        ({"n_siblings": -1}, ArgumentError, "n_siblings must be >= 0"),
        ({"rho": [0.1, 0.1, 0.1]}, ShapeError, "rho"),
        ({"rho": [0.1, -0.1]}, ArgumentError, "rho must be >= 0"),
        ({"sensitivity": 0}, ArgumentError, "sensitivity"),
        ({"siblings": ["x"]}, ArgumentTypeError, "siblings"),
        ({"noisy_counts": [0.5, 1]}, ArgumentError, "noisy_counts"),
        ({"sibling_rho": [0.1, 0.1]}, ShapeError, "sibling_rho"),
        ({"prior": 1.0}, ArgumentError, "prior must be < 1"),
        ({"known_count": -1}, ArgumentError, "known_count must be >= 0"),
        ({"sibling_noise": "none"}, ArgumentError, "sibling_noise must be one of"),
        ({"tail": 0.5}, ArgumentError, "tail must be"),
        ({"count_priors": [None, None]}, ShapeError, "count_priors must have one entry"),
        ({"count_priors": [0.5]}, ArgumentTypeError, "count_priors must be a CountLaw"),
        ({"count_priors": [DiscreteGaussian(1.0)]}, ArgumentError, "at most"),
        ({"count_priors": [FiniteLaw(-2, [1.0])]}, ArgumentError, "must allow a count >= 0"),
        (
            {"count_priors": [FiniteLaw(3, [1.0])], "known_count": 9},
            ArgumentError,
            "allow some set of counts",
        ),
    ],
)
def test_refusals(change, error, message):
    arguments = {"noisy_counts": [2, 1], "siblings": [-1], **GRANVILLE} | change
    with pytest.raises(error, match=message):
        path_posterior(arguments.pop("noisy_counts"), arguments.pop("siblings"), **arguments)
