"""Averages before and after post-processing: enumeration, simulation, and data processing."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import postprocessing as twin
from refusals import NOT_COUNTS, NOT_POSITIVE, NOT_PRIORS, refuses

from bayesrisk import ArgumentError, DiscreteGaussian, Noise
from bayesrisk.exceptions import ShapeError
from bayesrisk.inference import postprocess, postprocessed_posterior
from bayesrisk.risk import (
    PostprocessingRisk,
    compare_postprocessing,
    marginal_posterior,
    multilevel_marginal_posterior,
)
from bayesrisk.risk.count.postprocessing import PostprocessingComparison

MODES = ["approximate", "exact"]
RHO = 0.0992264
BASE = {"group_count": 3, "n_siblings": 2, "noise": Noise(rho=0.1), "prior": 0.5}


def postprocessed_marginal_posterior(**question):
    return PostprocessingRisk(**question).after()


def before_postprocessing(**question):
    return PostprocessingRisk(group_count=1, **question).before()  # N does not matter


def average(n, m, rho, p, k=0, mode="approximate"):
    return postprocessed_marginal_posterior(
        group_count=n, n_siblings=m, noise=Noise(rho=rho), prior=p, known_count=k,
        sibling_noise=mode,
    )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_after_against_enumeration(mode):
    rng = np.random.default_rng(11)
    for _ in range(12):
        n, m = int(rng.integers(1, 13)), int(rng.integers(1, 9))
        k, rho = int(rng.integers(n)), float(10 ** rng.uniform(-1.5, 0.6))
        p = float(rng.uniform(0.001, 0.999))
        _, truth = twin.after(rho, m, n, k, p, mode == "exact")
        value = average(n, m, rho, p, k, mode).posterior
        assert value == pytest.approx(truth, rel=1e-12), (n, m, k, rho, p)


@pytest.mark.parametrize(
    ("rho", "m", "n", "k"),
    [(0.0992264, 1, 3, 0), (0.02, 5, 12, 4), (0.9, 4, 9, 8), (6.0, 3, 5, 2), (60.0, 2, 4, 1)],
)
@pytest.mark.parametrize("p", [1e-200, 0.3])
def test_after_to_the_documented_error(rho, m, n, k, p):
    truth = twin.marginal_risk(rho, m, n, k, p)
    value = average(n, m, rho, p, k).ratio
    assert value == pytest.approx(float(truth), rel=2**-44, abs=0)


@pytest.mark.parametrize("mode", MODES)
def test_before_against_enumeration(mode):
    rng = np.random.default_rng(12)
    for _ in range(12):
        n, m = int(rng.integers(1, 13)), int(rng.integers(1, 7))
        k, rho = int(rng.integers(n)), float(10 ** rng.uniform(-1, 0.6))
        p = float(rng.uniform(0.01, 0.99))
        truth = twin.before(rho, m, n, k, p, mode == "exact")
        value = before_postprocessing(
            n_siblings=m, noise=Noise(rho=rho), prior=p, sibling_noise=mode
        ).posterior
        assert value == pytest.approx(truth, rel=1e-12), (n, m, k, rho, p)


@pytest.mark.parametrize(
    ("n", "m", "k", "rho", "p"), [(4, 3, 1, 0.2, 0.3), (2, 1, 0, 0.05, 0.5), (9, 6, 8, 1.5, 0.1)]
)
def test_simulated_releases_average_to_it(n, m, k, rho, p):
    rng, size = np.random.default_rng(17), 200_000
    block = k + 1 + DiscreteGaussian.from_rho(rho).rvs(size, rng)
    siblings = n - (k + 1) + DiscreteGaussian.from_rho(rho).rvs((size, m), rng).sum(axis=1)
    released = postprocess(block, siblings, group_count=n)
    setting = {
        "group_count": n, "n_siblings": m, "noise": Noise(rho=rho), "prior": p, "known_count": k,
        "sibling_noise": "exact",
    }  # fmt: skip
    draws = postprocessed_posterior(released, **setting).posterior
    error = draws.std() / math.sqrt(size)
    value = postprocessed_marginal_posterior(**setting).posterior
    assert abs(draws.mean() - value) <= 4 * error
    # Control: the average for another truth or another budget is told apart.
    other = postprocessed_marginal_posterior(**{**setting, "noise": Noise(rho=2 * rho)}).posterior
    assert abs(draws.mean() - other) > 4 * error


@given(
    st.integers(1, 200),
    st.integers(1, 300),
    st.floats(-3, 1.5).map(lambda t: 10.0**t),
    st.one_of(st.floats(1e-6, 1 - 1e-6), st.floats(-250, -1).map(lambda t: 10.0**t)),
    st.data(),
)
@settings(max_examples=60)
def test_post_processing_never_adds_risk(n, m, rho, p, data):
    k = data.draw(st.integers(0, n - 1))
    mode = data.draw(st.sampled_from(MODES))
    result = compare_postprocessing(
        group_count=n, n_siblings=m, noise=Noise(rho=rho), prior=p, known_count=k,
        sibling_noise=mode,
    )  # fmt: skip
    assert result.margin >= -result.error_bound
    assert result.ratio <= 1 + 2**-40
    assert result.after >= p * (1 - 2**-44)
    assert result.before >= result.block_only * (1 - 2**-44)


def test_the_release_of_y_alone_is_not_the_bound():
    # Negative control: the adversary who knows N and sees a knows more than one who sees only y.
    result = compare_postprocessing(group_count=50, n_siblings=1, noise=Noise(rho=RHO), prior=0.5)
    assert result.after == pytest.approx(0.53917, abs=5e-6)
    assert result.block_only == pytest.approx(0.52367, abs=5e-6)
    assert result.after > result.block_only + 1000 * result.error_bound
    # With many siblings the order turns round: equal weights bring in all of their noise.
    many = compare_postprocessing(group_count=50, n_siblings=27, noise=Noise(rho=RHO), prior=0.5)
    assert many.after < many.block_only


def test_limits():
    # Far from both ends nothing is clipped, and only the pairs of D remain.
    inner = average([400, 1000], 3, 0.2, 0.1, [199, 499]).posterior
    assert inner[0] == pytest.approx(inner[1], rel=1e-14)
    # No noise: certainty; all noise: nothing learned.
    assert average(5, 4, 1e5, 0.2, 2).ratio == 5.0
    assert average(5, 4, 1e-300, 0.2, 2).ratio == pytest.approx(1.0, abs=1e-15)
    before = before_postprocessing(noise=Noise(rho=[1e5, 1e-300]), n_siblings=4, prior=0.2).ratio
    np.testing.assert_allclose(before, [5.0, 1.0], rtol=1e-14)


def test_one_sibling_needs_no_approximation():
    rho = np.geomspace(0.01, 20, 15)
    values = [average(6, 1, rho, 0.3, 1, mode).posterior for mode in MODES]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-13)
    before = before_postprocessing(
        n_siblings=1, noise=Noise(rho=rho), prior=0.3, sibling_noise="exact"
    ).posterior
    levels = np.stack([rho, rho], axis=-1)
    np.testing.assert_allclose(
        before,
        multilevel_marginal_posterior(noise=Noise(rho=levels), prior=0.3).posterior,
        rtol=1e-13,
    )


def test_broadcasting_equals_a_loop():
    group, siblings = np.array([[2], [7]]), np.array([1, 3, 9])
    for mode in MODES:
        result = compare_postprocessing(
            group_count=group,
            n_siblings=siblings,
            noise=Noise(rho=0.7),
            prior=0.2,
            sibling_noise=mode,
        )
        assert result.before.shape == result.group_count.shape == (2, 3)
        for i, j in itertools.product(range(2), range(3)):
            one = compare_postprocessing(
                group_count=group[i, 0],
                n_siblings=siblings[j],
                noise=Noise(rho=0.7),
                prior=0.2,
                sibling_noise=mode,
            )
            assert one.after == result.after[i, j]
            assert one.before == result.before[i, j]
    assert isinstance(postprocessed_marginal_posterior(**BASE).posterior, float)


def test_the_result_is_a_table():
    result = compare_postprocessing(
        group_count=[2, 5], n_siblings=3, noise=DiscreteGaussian(5.0), prior=0.2
    )
    assert isinstance(result, PostprocessingComparison)
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["group_count"].tolist() == [2, 5]
    np.testing.assert_allclose(frame["risk_after"] * 0.2, frame["after"], rtol=1e-15)
    np.testing.assert_allclose(frame["ratio"], frame["after"] / frame["before"], rtol=1e-15)
    assert (frame["error_bound"] < 1e-13).all()
    assert result.sibling_noise == "approximate"


@pytest.mark.parametrize(
    "function",
    [postprocessed_marginal_posterior, compare_postprocessing],
)
def test_bad_arguments(function):
    for bad in NOT_COUNTS:
        for name in ("group_count", "n_siblings", "known_count"):
            assert refuses(lambda v, name=name: function(**{**BASE, name: v}), name, bad)
    for bad in NOT_PRIORS:
        assert refuses(lambda v: function(**{**BASE, "prior": v}), "prior", bad)
    for bad in NOT_POSITIVE:
        assert refuses(lambda v: function(**{**BASE, "noise": Noise(rho=v)}), "rho", bad)
    with pytest.raises(ArgumentError, match="known_count must be < group_count, 3, got 3"):
        function(**BASE, known_count=3)
    with pytest.raises(ArgumentError, match="n_siblings must be >= 1, got 0"):
        function(**{**BASE, "n_siblings": 0})
    with pytest.raises(ArgumentError, match="sibling_noise must be one of"):
        function(**BASE, sibling_noise="s2")
    with pytest.raises(ArgumentError, match="at most 16777216 released values"):
        function(**{**BASE, "noise": Noise(rho=1e-20), "group_count": 10**9})
    with pytest.raises(ShapeError, match="do not broadcast"):
        function(**{**BASE, "prior": [0.1, 0.2], "noise": Noise(rho=[0.1, 0.2, 0.3])})


def test_long_windows():
    # A few hundred thousand released values, against the count without ends and the sum over D.
    rho, m, n, k = 1e-7, 1, 10**6, 499_999
    value = average(n, m, rho, 0.3, k).posterior
    # y - S is all that is used; for m = 1 it carries all the evidence, and pairs lose next to none.
    assert value == pytest.approx(marginal_posterior(rho=2 * rho, prior=0.3), rel=1e-11)


def test_on_a_grid_too():
    result = compare_postprocessing(
        group_count=np.array([1, 2, 3, 8, 40])[:, None, None, None],
        n_siblings=np.array([1, 2, 5, 27, 300])[:, None, None],
        noise=Noise(rho=np.array([0.01, RHO, 0.5, 3.0])[:, None]),
        prior=[1e-9, 0.1, 0.5, 0.9],
    )
    assert result.margin.shape == (5, 5, 4, 4)
    assert (result.margin >= -result.error_bound).all()
    # It is a real loss, and it shrinks with N.
    assert (result.margin > 0).mean() > 0.99
    assert (np.diff(result.after, axis=0) >= -result.error_bound[1:]).all()
