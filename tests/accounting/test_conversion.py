"""Conversions against brute force: minimised over the order, or summed, in 40 to 60 digits."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from mpmath import mp
from oracles import laws as oracles
from refusals import NOT_REAL, refuses

from bayesrisk import epsilon_to_rho, rho_to_epsilon
from bayesrisk.accounting import (
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    rho_to_delta,
    sigma2_from_rho,
)

NORMAL = 2.0**-1022
EXACT_DELTA = 1e-14  # documented, relative
rhos = st.floats(-6, 3).map(lambda t: 10.0**t)
deltas = st.floats(-30, -0.1).map(lambda t: 10.0**t)
epsilons = st.floats(-3, 3).map(lambda t: 10.0**t)


def draws(seed, n=12):
    """Return pairs: rho over nine powers of ten, delta over thirty."""
    rng = np.random.default_rng(seed)
    return list(zip(10 ** rng.uniform(-6, 3, n), 10 ** rng.uniform(-30, -0.1, n), strict=True))


def rounding_up(rho, delta):
    """Return by how much the documentation allows the tight epsilon to be too large."""
    with mp.workdps(40):
        # log(1 / delta) = b**2 rho + log(1 + b) rises in b, from 0.
        target, low, high = -mp.log(oracles.exact(delta)), mp.mpf(0), mp.mpf(2) ** 40
        for _ in range(140):
            middle = (low + high) / 2
            if middle**2 * oracles.exact(rho) + mp.log1p(middle) < target:
                low = middle
            else:
                high = middle
        return float(2e-15 * (2 + 2 * mp.log1p(1 / high)))


def test_tight_epsilon():
    for rho, delta in draws(1):
        truth = oracles.tight_epsilon(rho, delta)
        excess = float(oracles.exact(rho_to_epsilon(rho, delta)) - truth)
        assert 0.0 <= excess <= 2e-15 * float(truth) + rounding_up(rho, delta), (rho, delta)


def test_tight_delta():
    rng = np.random.default_rng(2)
    for _ in range(12):
        rho = 10 ** rng.uniform(-6, 3)
        epsilon = rho + rng.uniform(-1, 30) * math.sqrt(rho)
        if epsilon >= 0:
            truth = oracles.tight_delta(rho, epsilon)
            value = oracles.exact(rho_to_delta(rho, epsilon))
            assert value >= truth, (rho, epsilon)
            documented = 5e-15 * (1 + math.log1p((1 + epsilon) / rho) + epsilon**2 / rho)
            assert truth < NORMAL or value / truth - 1 < documented, (rho, epsilon)


def test_tight_rho():
    rng = np.random.default_rng(3)
    for _ in range(8):
        epsilon, delta = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-20, -0.5)
        value = epsilon_to_rho(epsilon, delta)
        if value > 0:
            assert oracles.tight_epsilon(value, delta) <= epsilon
        truth = oracles.tight_rho(epsilon, delta)
        assert truth <= 1e-6 * epsilon or oracles.relative_error(value, truth) < 1e-13


def test_simple_bound():
    for rho, delta in draws(4):
        with mp.workdps(40):
            r, inverse = oracles.exact(rho), -mp.log(oracles.exact(delta))
            truth = r + 2 * mp.sqrt(r * inverse)
            epsilon = rho_to_epsilon(rho, delta, "bun-steinke")
            assert 0 <= oracles.exact(epsilon) / truth - 1 < 1e-15
            e = oracles.exact(epsilon)
            below = (e / (mp.sqrt(inverse + e) + mp.sqrt(inverse))) ** 2
            assert 1 - oracles.exact(epsilon_to_rho(epsilon, delta, "bun-steinke")) / below >= 0
            least = mp.exp(-((e - r) ** 2) / (4 * r))
            assert rho_to_delta(rho, epsilon, "bun-steinke") >= least
        assert epsilon_to_rho(epsilon, delta, "bun-steinke") == pytest.approx(rho, rel=1e-13, abs=0)
        again = rho_to_delta(rho, epsilon, "bun-steinke")
        assert again == pytest.approx(delta, rel=1e-13 * (1 + epsilon**2 / rho), abs=0)
    assert rho_to_delta(2.0, 1.0, "bun-steinke") == 1.0


@given(rhos, deltas)
def test_tight_is_at_most_simple(rho, delta):
    tight, simple = rho_to_epsilon(rho, delta), rho_to_epsilon(rho, delta, "bun-steinke")
    assert 0.0 <= tight <= simple
    assert rho_to_delta(rho, simple) <= delta * (1 + 1e-12 * (1 + simple**2 / rho))


@settings(max_examples=40)
@given(rhos, deltas)
def test_the_directions_invert_each_other(rho, delta):
    epsilon = rho_to_epsilon(rho, delta)
    # Through epsilon an error of 1e-14 epsilon is one of 1e-14 epsilon / (d epsilon / d rho).
    if epsilon > 1e-3 * rho:
        slack = 1e-13 * (2 + epsilon / rho)
        assert epsilon_to_rho(epsilon, delta) == pytest.approx(rho, rel=slack, abs=0)
        again = rho_to_delta(rho, epsilon)
        assert again == pytest.approx(delta, rel=1e-13 * (2 + epsilon**2 / rho), abs=0)


@settings(max_examples=25)
@given(rhos, deltas, st.floats(1.01, 10.0))
def test_monotone(rho, delta, factor):
    assert rho_to_epsilon(factor * rho, delta) >= rho_to_epsilon(rho, delta)
    assert rho_to_epsilon(rho, min(factor * delta, 0.99)) <= rho_to_epsilon(rho, delta) * (
        1 + 1e-14
    )
    epsilon = rho_to_epsilon(rho, delta) + 1e-3
    assert rho_to_delta(factor * rho, epsilon) >= rho_to_delta(rho, epsilon) * (1 - 1e-12)
    assert epsilon_to_rho(factor * epsilon, delta) > epsilon_to_rho(epsilon, delta)


def test_ends_of_the_ranges():
    # Nothing spent on either side of the ranges may warn, overflow or come out negative.
    ends = rho_to_epsilon([[1e-15], [1.0], [1e12]], [1e-300, 0.5, 1 - 1e-16])
    assert np.isfinite(ends).all()
    assert (ends >= 0).all()
    assert np.isfinite(epsilon_to_rho([[0.0], [1.0], [1e12]], [1e-300, 0.5, 1 - 1e-16])).all()
    delta = rho_to_delta([[1e-15], [1.0], [1e12]], [0.0, 1.0, 1e12])
    assert ((delta >= 0) & (delta <= 1)).all()


@pytest.mark.parametrize(
    ("sigma2", "sensitivity"), [(0.05, 1), (0.5, 7), (5.04, 1), (5.04, 2), (100.0, 7), (1e4, 1)]
)
def test_exact_delta(sigma2, sensitivity):
    scale = sensitivity / math.sqrt(sigma2)
    for z in (0.0, 0.1, 1.0, 4.0, 12.0, 30.0):
        epsilon = z * scale
        truth = oracles.gaussian_delta(epsilon, sigma2, sensitivity, dps=400 if z > 4 else 60)
        value = discrete_gaussian_delta(epsilon, sigma2=sigma2, sensitivity=sensitivity)
        if truth > NORMAL:
            assert oracles.relative_error(value, truth) < EXACT_DELTA, (epsilon, value)


def test_exact_delta_where_one_release_is_barely_bad():
    # The first term, exp(epsilon - loss) next to 1, outweighs all the later ones together.
    epsilon, sigma2 = 11.420445127198944, 5.910336316740367
    truth = oracles.gaussian_delta(epsilon, sigma2, dps=400)
    value = discrete_gaussian_delta(epsilon, sigma2=sigma2)
    assert oracles.relative_error(value, truth) < EXACT_DELTA


@pytest.mark.parametrize(
    ("sigma2", "delta"), [(0.3, 1e-10), (5.04, 1e-200), (5.04, 1e-3), (1e3, 0.2)]
)
def test_exact_epsilon_inverts_exact_delta(sigma2, delta):
    epsilon = discrete_gaussian_epsilon(delta, sigma2=sigma2)
    if epsilon == 0.0:
        assert discrete_gaussian_delta(0.0, sigma2=sigma2) <= delta
    else:
        # delta may jump nowhere, but it falls at a rate of up to exp(epsilon): bracket the root.
        low, high = epsilon * (1 - 1e-12), epsilon * (1 + 1e-12)
        assert oracles.gaussian_delta(low, sigma2, dps=300) >= delta
        assert oracles.gaussian_delta(high, sigma2, dps=300) <= delta


# Where delta falls by many powers of ten between neighbouring doubles of epsilon.
PLUNGES = [
    (0.027005089381804497, 1.8500225813373616e-219),
    (0.023025101387360573, 1.0554206131828913e-30),
    (0.7517641535448243, 5.425720350792716e-219),
    (11.666781015808372, 1.1961763560611736e-100),
]


def scales_and_deltas():
    """Return the plunges, and pairs over the whole ranges of sigma2 and delta."""
    rng = np.random.default_rng(11)
    scales, exponents = 10 ** rng.uniform(-2, 6, 16), rng.uniform(-300, -0.01, 16)
    exponents[::2] /= 15.0
    return PLUNGES + list(zip(scales.tolist(), (10**exponents).tolist(), strict=True))


def test_exact_epsilon_keeps_its_promise():
    for sigma2, delta in scales_and_deltas():
        epsilon = discrete_gaussian_epsilon(delta, sigma2=sigma2)
        least = oracles.gaussian_delta(epsilon, sigma2, dps=90)
        assert least <= oracles.exact(delta), (sigma2, delta)
        rounded = discrete_gaussian_delta(epsilon, sigma2=sigma2)
        assert least <= oracles.exact(rounded), (sigma2, delta)
        if epsilon > 0:  # and little less would not do
            less = oracles.gaussian_delta(epsilon * (1 - 1e-12), sigma2, dps=90)
            assert less > delta * (1 - EXACT_DELTA), (sigma2, delta)


@given(
    st.floats(-100, 8).map(lambda t: 10.0**t),
    st.floats(-300, -1e-6).map(lambda t: 10.0**t),
    st.integers(1, 10**6),
)
@settings(max_examples=50)
def test_exact_epsilon_at_the_ends_of_its_range(sigma2, delta, sensitivity):
    epsilon = discrete_gaussian_epsilon(delta, sigma2=sigma2, sensitivity=sensitivity)
    assert np.isfinite(epsilon)
    if epsilon <= 1e12:
        again = discrete_gaussian_delta(epsilon, sigma2=sigma2, sensitivity=sensitivity)
        assert 0.0 < again <= delta


def test_a_delta_is_never_zero():
    # No Gaussian noise is pure differential privacy: what doubles cannot hold is rounded up.
    assert discrete_gaussian_delta(1e6, sigma2=1.0) == NORMAL
    assert rho_to_delta(1.0, 1e6) == rho_to_delta(1.0, 1e6, "bun-steinke") == NORMAL


@given(rhos.filter(lambda r: r < 100), epsilons)
def test_exact_never_exceeds_tight(rho, epsilon):
    exact = discrete_gaussian_delta(epsilon, sigma2=1 / (2 * rho))
    assert exact <= rho_to_delta(rho, epsilon) * (1 + 1e-12 * (1 + epsilon**2 / rho))


def test_the_variance_is_not_the_scale():
    # Negative control: half the scale is another privacy level.
    right = float(oracles.gaussian_delta(1.0, 5.04))
    assert discrete_gaussian_delta(1.0, sigma2=2.52) > 3 * right
    assert rho_to_delta(0.0992 / 2, 1.0) < 0.1 * rho_to_delta(0.0992, 1.0)


def test_broadcasting_equals_a_loop():
    rho, delta = np.array([[0.1], [2.56]]), np.array([1e-10, 1e-3, 0.4])
    table = rho_to_epsilon(rho, delta)
    loop = [[rho_to_epsilon(r, d) for d in delta] for r in rho[:, 0]]
    assert table == pytest.approx(np.array(loop), rel=1e-15, abs=0)
    exact = discrete_gaussian_delta([0.5, 1.0], sigma2=[[2.0], [9.0]])
    one_by_one = [[discrete_gaussian_delta(e, sigma2=s) for e in (0.5, 1.0)] for s in (2.0, 9.0)]
    assert exact.tolist() == one_by_one
    roots = discrete_gaussian_epsilon([1e-3, 1e-9], sigma2=[[2.0], [9.0]], sensitivity=2)
    assert roots[1, 0] == pytest.approx(
        discrete_gaussian_epsilon(1e-3, sigma2=9.0, sensitivity=2), rel=1e-12, abs=0
    )


def test_kinds_of_numbers():
    assert isinstance(rho_to_epsilon(0.1, 1e-6), float)
    assert isinstance(discrete_gaussian_epsilon(1e-6, sigma2=2), float)
    assert rho_to_epsilon(Fraction(1, 10), 1e-6) == rho_to_epsilon(0.1, 1e-6)
    series = pd.Series([0.1, 0.2])
    assert rho_to_delta(series, 1.0).tolist() == rho_to_delta([0.1, 0.2], 1.0).tolist()
    assert sigma2_from_rho(Fraction(1, 3), 1) == Fraction(3, 2)
    assert sigma2_from_rho(2, 3) == Fraction(9, 4)
    assert sigma2_from_rho([0.5, 0.25], [1, 2]).tolist() == [1.0, 8.0]
    assert sigma2_from_rho(0.1, 2**0.5) == pytest.approx(10.0, rel=1e-15, abs=0)


@given(st.fractions(Fraction(1, 10**6), 10**6), st.fractions(Fraction(1, 100), 100))
def test_scale_and_budget_exchange_exactly(rho, sensitivity):
    assert 2 * rho * sigma2_from_rho(rho, sensitivity) == sensitivity**2
    assert float(sigma2_from_rho(rho, sensitivity)) == pytest.approx(
        sigma2_from_rho(float(rho), float(sensitivity)), rel=1e-15, abs=0
    )


CALLS = {
    "rho": [
        (lambda v: rho_to_epsilon(v, 0.1), [0, -1, 1e-16, 1e13]),
        (lambda v: rho_to_delta(v, 1.0), [0, -1, 1e-16, 1e13]),
        (lambda v: sigma2_from_rho(v, 1), [0, -1]),
    ],
    "delta": [
        (lambda v: rho_to_epsilon(1.0, v), [0, 1, -0.1, 1e-301]),
        (lambda v: epsilon_to_rho(1.0, v), [0, 1, -0.1]),
        (lambda v: discrete_gaussian_epsilon(v, sigma2=1.0), [0, 1, 2]),
    ],
    "epsilon": [
        (lambda v: epsilon_to_rho(v, 0.1), [-1, 1e13]),
        (lambda v: rho_to_delta(1.0, v), [-1e-9, 1e13]),
        (lambda v: discrete_gaussian_delta(v, sigma2=1.0), [-1, 1e13]),
    ],
    "sigma2": [
        (lambda v: discrete_gaussian_delta(1.0, sigma2=v), [0, -1, 1e-320, 1e15]),
        (lambda v: discrete_gaussian_epsilon(0.1, sigma2=v), [0, -1, 1e-320, 1e15]),
    ],
    "sensitivity": [
        (lambda v: discrete_gaussian_delta(1.0, sigma2=1.0, sensitivity=v), [0, 1.5, 10**7]),
        (lambda v: discrete_gaussian_epsilon(0.1, sigma2=1.0, sensitivity=v), [0, 1.5, -2]),
        (lambda v: sigma2_from_rho(1.0, v), [0, -1]),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_bad_numbers(name):
    for call, out_of_range in CALLS[name]:
        for bad in [*NOT_REAL, None, *out_of_range]:
            assert refuses(call, name, bad)
