"""Post-processing against enumeration of both noisy counts in NumPy.

The limit of ours is three exponentials and two logarithms for each released value; the twin needs
one for each pair of noise values.
"""

import numpy as np

from bayesrisk import Noise
from bayesrisk.inference import postprocessed_posterior
from bayesrisk.risk import PostprocessingRisk

RHO, SIBLINGS, GROUP = 0.0992264, 27, 20
BUDGETS = np.geomspace(0.01, 10.0, 40)
GRID = {
    "group_count": np.arange(1, 51)[:, None],
    "n_siblings": 27,
    "noise": Noise(rho=BUDGETS),
    "prior": 0.5,
}


def enumerate_likelihoods(rho, m, n, k):
    """Return P(a | k) and P(a | k + 1), every (y, S) projected, clipped and rounded."""
    near = np.arange(-int(np.sqrt(41 / rho)) - 1, int(np.sqrt(41 / rho)) + 2)
    far = np.arange(-int(np.sqrt(41 * m / rho)) - 1, int(np.sqrt(41 * m / rho)) + 2)
    mass = np.outer(np.exp(-rho * near**2), np.exp(-rho / m * far**2))
    mass /= mass.sum()
    laws = []
    for x in (k, k + 1):
        y, siblings = (x + near)[:, None], n - x + far
        a = np.floor(np.clip((n + y - siblings) / 2, 0, n) + 0.5).astype(int)
        laws.append(np.bincount(a.ravel(), weights=mass.ravel(), minlength=n + 1))
    return laws


def enumerated_marginal(rho, m, n, p, k=0):
    without, with_target = enumerate_likelihoods(rho, m, n, k)
    evidence = p * with_target + (1 - p) * without
    return (p * with_target**2 / np.maximum(evidence, 1e-300)).sum()


def test_marginal_after_post_processing(compare):
    """The grid behind Figure 12: 40 budgets and 50 group counts."""
    some = [(rho, int(n)) for rho in BUDGETS[::13] for n in (1, 10, 50)]
    np.testing.assert_allclose(
        [
            PostprocessingRisk(group_count=n, n_siblings=27, noise=Noise(rho=rho), prior=0.5)
            .after()
            .posterior
            for rho, n in some
        ],
        [enumerated_marginal(rho, 27, n, 0.5) for rho, n in some],
        rtol=1e-12,
    )
    compare(
        lambda: PostprocessingRisk(**GRID).after().posterior,
        lambda: [enumerated_marginal(rho, 27, n, 0.5) for rho, n in some],
        ours_units=2000,
        twin_units=len(some),
        rounds=3,
    )


def test_posterior_of_many_releases(compare):
    released = np.random.default_rng(2).integers(0, GROUP + 1, 200_000)
    setting = {"group_count": GROUP, "n_siblings": SIBLINGS, "noise": Noise(rho=RHO), "prior": 0.1}

    def twin():
        without, with_target = enumerate_likelihoods(RHO, SIBLINGS, GROUP, 0)
        return 0.1 * with_target / (0.1 * with_target + 0.9 * without)

    np.testing.assert_allclose(
        postprocessed_posterior(np.arange(GROUP + 1), **setting).posterior, twin(), rtol=1e-11
    )
    compare(
        lambda: postprocessed_posterior(released, **setting).posterior,
        twin,
        ours_units=released.size,
        twin_units=GROUP + 1,
        rounds=3,
    )
