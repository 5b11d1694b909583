"""The compiled loops, compiled and as plain Python: both must give the oracle's numbers."""

import math

import numba
import numpy as np
import pytest
from mpmath import mp, mpf
from oracles import laws as oracles

from bayesrisk.distributions import kernels as _kernels
from bayesrisk.distributions.discrete_gaussian import MIDPOINT


def both(ufunc, *arguments):
    """Return what the compiled function and the function it was compiled from give."""
    return float(ufunc(*arguments)), float(ufunc.__wrapped__(*arguments))


@pytest.mark.parametrize(
    ("x", "sigma2"), [(0.0, 3.0), (1.5, 0.01), (37.0, 1.0), (3e6, 7e9), (1e9, 1.0)]
)
def test_gaussian_weight(x, sigma2):
    with mp.workdps(60):
        truth = mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma2)))
    for value in both(_kernels.gaussian_weight, x, sigma2):
        if truth < 1e-308:
            assert value == 0.0
        else:
            assert oracles.relative_error(value, truth) < 4 * 2**-52


def test_gaussian_weight_beats_the_rounded_exponent():
    # Negative control: without the second double the error is a hundred times larger.
    x, sigma2 = 12_345.0, 1.1e5
    with mp.workdps(60):
        truth = mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma2)))
    careless = [
        oracles.relative_error(
            math.exp(-(x + i) * ((x + i) / (2 * sigma2))),
            mp.exp(-(mpf(x + i) ** 2) / (2 * mpf(sigma2))),
        )
        for i in range(50)
    ]
    assert max(careless) > 1e-14
    assert oracles.relative_error(_kernels.gaussian_weight(x, sigma2), truth) < 1e-15


def test_product_is_exact():
    rng, compiled = np.random.default_rng(1), numba.njit(_kernels._product)
    for a, b in rng.lognormal(0, 20, (200, 2)):
        for function in (compiled, _kernels._product):
            high, low = function(a, b)
            assert high == a * b
            with mp.workdps(60):
                assert mpf(high) + mpf(low) == mpf(a) * mpf(b)


def test_euler_maclaurin_coefficients():
    # B_2k(1/2) / (2k)! is the coefficient of t**2k in (t/2) / sinh(t/2), with the sign of -sum.
    with mp.workdps(40):
        series = mp.taylor(lambda t: t / 2 / mp.sinh(t / 2) if t else mpf(1), 0, 19)
    for k, coefficient in enumerate(MIDPOINT, start=1):
        assert abs(abs(coefficient) - abs(float(series[2 * k]))) < 1e-14 * abs(coefficient), k
