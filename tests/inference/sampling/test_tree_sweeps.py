"""The compiled draws, one by one: against weights summed directly, and as plain Python."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from bayesrisk.inference.sampling import tree_sweeps as kernels

draw_offset = numba.njit(kernels.draw_offset)


def weights(centre, precision, low, high):
    d = np.arange(low, high + 1)
    log_weight = -precision * (d - centre) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return d, weight / weight.sum()


@pytest.mark.parametrize(
    ("centre", "precision", "low", "high"),
    [
        (0.0, 0.5, -30, 30),
        (0.3, 0.02, -60, 60),
        (0.49, 4.0, -6, 6),
        (-7.7, 0.1, 0, 40),  # all of it in one tail
        (12.2, 0.1, -40, 0),
        (3.0, 0.001, 0, 5),  # nearly flat on a short range
        (0.0, 0.0, -3, 4),  # flat
        (0.5, 1.0, -20, 20),  # two modes
        (-1000.0, 0.3, 0, 20),
        (2.0, 1e-4, -400, 400),
        (0.2, 0.01, -1, 60),
    ],
)
def test_truncated_discrete_gaussian(centre, precision, low, high):
    rng, size = np.random.default_rng(1), 40_000
    drawn = np.array([draw_offset(rng, centre, precision, low, high) for _ in range(size)])
    d, law = weights(centre, precision, low, high)
    assert drawn.min() >= low
    assert drawn.max() <= high
    # Chi square over cells of at least ten draws, the rest in one cell.
    often = law * size >= 10
    seen = np.array([np.sum(drawn == value) for value in d])
    observed, expected = seen[often], law[often] * size
    if size - expected.sum() >= 5.0:
        observed = np.append(observed, size - observed.sum())
        expected = np.append(expected, size - expected.sum())
    else:
        expected *= observed.sum() / expected.sum()
    if expected.size > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-4


@settings(max_examples=150)
@given(
    st.floats(-1e9, 1e9),
    st.floats(-12, 280).map(lambda t: 10.0**t),
    st.integers(-(10**9), 10**9),
    st.one_of(st.integers(0, 50), st.integers(0, 10**9)),
)
def test_draws_stay_inside_for_any_setting(centre, precision, low, width):
    rng = np.random.default_rng(2)
    for _ in range(5):
        d = draw_offset(rng, centre, precision, low, low + width)
        assert low <= d <= low + width
    mode = min(max(round(centre), low), low + width)
    if precision > 1e6 and abs(abs(centre - mode) - 0.5) > 1e-3:
        assert d == mode


def test_the_same_draws_as_plain_python():
    for setting in [(0.3, 0.02, -60, 60), (-7.7, 0.1, 0, 40), (0.0, 5.0, -3, 3)]:
        rngs = [np.random.default_rng(3) for _ in range(2)]
        compiled = [draw_offset(rngs[0], *setting) for _ in range(200)]
        plain = [kernels.draw_offset(rngs[1], *setting) for _ in range(200)]
        assert compiled == plain


@pytest.mark.parametrize("draw", [numba.njit(kernels.draw_weighted), kernels.draw_weighted])
def test_weighted_choice(draw):
    rng = np.random.default_rng(4)
    log_weight = np.array([-np.inf, 0.0, math.log(3.0), -np.inf, -800.0])
    drawn = [draw(rng, log_weight.copy(), 5) for _ in range(2000)]
    assert set(drawn) == {1, 2}
    assert abs(np.mean(np.array(drawn) == 2) - 0.75) < 4 * math.sqrt(0.75 * 0.25 / 2000)
    assert draw(rng, np.full(3, -np.inf), 3) == -1
    assert draw(rng, np.array([1e300, -np.inf]), 1) == 0
