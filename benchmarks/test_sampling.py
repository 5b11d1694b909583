"""Simulation-grade draws against NumPy's normal, and against OpenDP's exact sampler."""

import numpy as np
import opendp.prelude as opendp
import pytest
from targets import as_long, faster

from bayesrisk import DiscreteGaussian

DRAWS = 10_000_000


@pytest.mark.parametrize("sigma2", [0.5, 5.039, 1e4])
def test_draws(compare, sigma2):
    law, rng = DiscreteGaussian(sigma2), np.random.default_rng(4)
    draws = law.rvs(100_000, rng)
    # The variance of n draws has a relative standard error of about sqrt((kurtosis - 1) / n).
    assert abs(draws.var() / law.var() - 1.0) < 5.0 * (2.2 / draws.size) ** 0.5
    compare(
        lambda: law.rvs(DRAWS, rng),
        lambda: rng.standard_normal(DRAWS),
        aims={f"discrete Gaussian noise of sigma2 {sigma2:g}, beside NumPy's normal": as_long(3)},
        ours_units=DRAWS,
        twin_units=DRAWS,
    )


def test_draws_against_opendp(compare):
    """OpenDP pays for cryptographic randomness and exact arithmetic: what a release needs."""
    opendp.enable_features("contrib")
    law, rng, some = DiscreteGaussian(5.039), np.random.default_rng(5), 20_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    mechanism = opendp.m.make_gaussian(*space, scale=5.039**0.5)
    zeros = [0] * some
    theirs = np.array(mechanism(zeros))
    assert abs(theirs.var() / law.var() - 1.0) < 5.0 * (2.2 / some) ** 0.5
    compare(
        lambda: law.rvs(DRAWS, rng),
        lambda: mechanism(zeros),
        aims={"discrete Gaussian noise for simulations, beside OpenDP's exact": faster(400)},
        ours_units=DRAWS,
        twin_units=some,
        rounds=3,
    )
