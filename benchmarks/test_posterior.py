"""Posterior over ten million counts against one exponential over the same array.

The limit is memory: 8 bytes read and 8 written for each count, and one exponential.
"""

import numpy as np
import pytest
from targets import as_long

from bayesrisk import posterior_probability

COUNTS = np.random.default_rng(1).integers(-40, 60, 10_000_000)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_posterior(compare, dtype):
    counts = COUNTS.astype(dtype)
    doubles = counts.astype(float)
    some = doubles[:1000]
    np.testing.assert_allclose(
        posterior_probability(counts[:1000], rho=0.0992264, prior=0.1),
        1.0 / (1.0 + 9.0 * np.exp(-0.0992264 * (2.0 * some - 1.0))),
        rtol=1e-13,
    )
    compare(
        lambda: posterior_probability(counts, rho=0.0992264, prior=0.1),
        lambda: np.exp(doubles),
        aims={f"ten million posteriors ({dtype} counts), beside np.exp": as_long(4)},
        ours_units=counts.size,
        twin_units=counts.size,
    )


def test_posterior_of_many_settings(compare):
    counts = COUNTS[:1_000_000]
    rng = np.random.default_rng(2)
    prior, rho = rng.uniform(0.01, 0.99, counts.size), rng.uniform(0.01, 2.0, counts.size)
    doubles = counts.astype(float)
    one = [posterior_probability(counts[i], rho=rho[i], prior=prior[i]) for i in range(9)]
    np.testing.assert_array_equal(
        posterior_probability(counts[:9], rho=rho[:9], prior=prior[:9]), one
    )
    compare(
        lambda: posterior_probability(counts, rho=rho, prior=prior),
        lambda: np.exp(doubles),
        ours_units=counts.size,
        twin_units=counts.size,
    )
