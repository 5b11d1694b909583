"""Averages over releases against a vectorised NumPy twin, one (rho, prior) pair at a time.

The limit is two exponentials for each of at most 33 terms.
"""

import numpy as np
from targets import faster

from bayesrisk import Noise, marginal_posterior
from bayesrisk.risk import multilevel_marginal_posterior, risk_distribution

PAIRS = 10_000
RNG = np.random.default_rng(3)
RHO = 10.0 ** RNG.uniform(-4, 2, PAIRS)
PRIOR = RNG.uniform(0.001, 0.999, PAIRS)
SOME = 500
PAIRS_OF_TWIN = list(zip(RHO[:SOME], PRIOR[:SOME], strict=True))


def numpy_marginal_posterior(rho, prior):
    """Sum over every release within ten standard deviations, in NumPy."""
    reach = int(np.ceil(10.0 / np.sqrt(2.0 * rho))) + 2
    noise = np.arange(-reach, reach + 1)
    weight = np.exp(-rho * noise**2)
    log_odds = np.log(prior) - np.log1p(-prior) + rho * (2.0 * noise + 1.0)
    return (weight / (1.0 + np.exp(-log_odds))).sum() / weight.sum()


def test_marginal_posterior(compare):
    expected = [numpy_marginal_posterior(r, p) for r, p in PAIRS_OF_TWIN]
    np.testing.assert_allclose(
        marginal_posterior(rho=RHO[:SOME], prior=PRIOR[:SOME]), expected, rtol=1e-12
    )
    compare(
        lambda: marginal_posterior(rho=RHO, prior=PRIOR),
        lambda: [numpy_marginal_posterior(r, p) for r, p in PAIRS_OF_TWIN],
        aims={"average posteriors over releases, beside sums in NumPy": faster(20)},
        ours_units=PAIRS,
        twin_units=SOME,
        rounds=31,  # of milliseconds each
    )


def nested_marginal_posterior(rhos, prior):
    """Enumerate the noise of every level."""
    evidence, weight = np.zeros(1), np.ones(1)
    for rho in rhos:
        reach = int(np.ceil(np.sqrt(40.0 / rho))) + 1
        noise = np.arange(-reach, reach + 1)
        mass = np.exp(-rho * noise**2)
        evidence = np.add.outer(evidence, rho * (2.0 * noise + 1.0)).ravel()
        weight = np.multiply.outer(weight, mass / mass.sum()).ravel()
    return (weight * prior / (prior + (1.0 - prior) * np.exp(-evidence))).sum()


def test_three_levels(compare):
    rhos = [0.0992264, 0.2464845, 0.0504162]
    np.testing.assert_allclose(
        multilevel_marginal_posterior(noise=Noise(rho=rhos), prior=0.1).posterior,
        nested_marginal_posterior(rhos, 0.1),
        rtol=1e-12,
    )
    compare(
        lambda: multilevel_marginal_posterior(noise=Noise(rho=rhos), prior=0.1).posterior,
        lambda: nested_marginal_posterior(rhos, 0.1),
    )


CENSUS = [0.0509378, 0.0504878, 0.0513777, 0.0504162, 0.2464845, 0.0992264]


def test_a_tail_of_six_levels(compare):
    """One passage over two sorted lists against a binary search for each value of the first."""
    law = risk_distribution(noise=Noise(rho=CENSUS), prior=0.1)
    ((_, evidence),) = law.laws
    upper = np.concatenate((np.cumsum(evidence.masses[::-1])[::-1], [0.0]))
    limit = np.log(0.9 / (1 / 3.0 - 0.1))

    def searched():
        index = np.searchsorted(evidence.second, limit - evidence.first, side="right")
        return float(evidence.weights @ upper[index])

    np.testing.assert_allclose(law.exceeds(3.0), searched(), rtol=1e-9)
    name = "tail of the risk ratio of six levels, beside a search for each value"
    compare(lambda: law.exceeds(3.0), searched, aims={name: faster(3)}, rounds=31)
