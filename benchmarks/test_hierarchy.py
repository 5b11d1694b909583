"""Two levels: exact posteriors against a Gibbs sampler in plain NumPy, and the Figure 6 grid.

The sampler is written as section 3.2 of Kazan and Reiter describes it: one draw of the group
count over a grid, one Bernoulli draw of the block count.  The limit of the exact posterior is a
logarithm, an exponential and a few multiplications for each release.
"""

import time

import numpy as np
import pytest
import two_level_questions as questions
from targets import faster, lasting

from bayesrisk import FiniteLaw, hierarchical_posterior

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}
RELEASES = 200_000
DRAWS = 10_000
TIMED_DRAWS = 2_000
RNG = np.random.default_rng(8)
BLOCK = RNG.integers(-4, 8, RELEASES)
GROUP = RNG.integers(-4, 12, RELEASES)
SIBLINGS = RNG.integers(-25, 30, RELEASES)


def numpy_gibbs(y, n, siblings, draws, rng, keep=False):
    """Draw x and N in turn, one at a time; return the mean of x, or with ``keep`` the draws."""
    rho, rho_group, m = GRANVILLE["rho_block"], GRANVILLE["rho_group"], 27
    grid = np.arange(60)
    x, kept = 0, np.empty(draws, dtype=np.int8)
    for step in range(draws):
        weight = np.exp(-rho_group * (n - grid) ** 2 - rho / m * (siblings - grid + x) ** 2)
        weight[:x] = 0.0
        cumulative = np.cumsum(weight)
        N = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
        odds = np.exp(rho * (2 * y - 1) + rho / m * (2 * (N - siblings) - 1)) * (N >= 1)
        x = int(rng.random() * (1.0 + odds) < odds)
        kept[step] = x
    return kept if keep else kept.mean()


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile before anything is timed."""
    hierarchical_posterior(BLOCK[:2], GROUP[:2], SIBLINGS[:2], **GRANVILLE)


def test_posteriors_in_batch(compare):
    rng = np.random.default_rng(1)
    exact = float(hierarchical_posterior(2, 1, -1, **GRANVILLE).target_probability)
    drawn = numpy_gibbs(2, 1, -1, 20_000, rng)
    assert abs(drawn - exact) < 0.03
    compare(
        lambda: hierarchical_posterior(BLOCK, GROUP, SIBLINGS, **GRANVILLE),
        lambda: numpy_gibbs(2, 1, -1, TIMED_DRAWS, rng),
        aims={"exact two-level posteriors, beside 10,000 draws each in NumPy": faster(20_000)},
        ours_units=RELEASES,
        twin_units=TIMED_DRAWS / DRAWS,
        rounds=5,
    )


@pytest.mark.parametrize("case", ["tabulated_prior", "exact_noise"])
def test_posteriors_term_by_term(compare, case):
    change = {
        "tabulated_prior": {"group_prior": FiniteLaw(0, np.full(41, 1 / 41))},
        "exact_noise": {"rho_block": 0.5, "sibling_noise": "exact"},
    }[case]
    some = slice(0, 20_000)
    rng = np.random.default_rng(1)
    few = BLOCK[:50], GROUP[:50], SIBLINGS[:50]
    settings = GRANVILLE | ({} if case == "tabulated_prior" else {"rho_block": 0.05})
    flat = hierarchical_posterior(*few, **settings).target_probability
    # Where the two are the same adversary: a prior flat on 0..400, noise as smooth as rho = .05's.
    same = {"group_prior": FiniteLaw(0, np.full(401, 1 / 401))}
    other = same if case == "tabulated_prior" else {"sibling_noise": "exact"}
    again = hierarchical_posterior(*few, **(settings | other)).target_probability
    np.testing.assert_allclose(again, flat, rtol=1e-11)
    compare(
        lambda: hierarchical_posterior(
            BLOCK[some], GROUP[some], SIBLINGS[some], **(GRANVILLE | change)
        ),
        lambda: numpy_gibbs(2, 1, -1, TIMED_DRAWS, rng),
        ours_units=20_000,
        twin_units=TIMED_DRAWS / DRAWS,
        rounds=5,
    )


@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
@pytest.mark.filterwarnings("ignore::bayesrisk.exceptions.IncompatibleConditionalsWarning")
def test_figure_6(benchmark, measured, conditionals):
    settings = GRANVILLE | {"rho_group": np.geomspace(1e-3, 10.0, 25)[:, None]}

    def grid():
        return questions.correct_decision(
            **settings, group_count=[1, 2, 5, 10, 28], conditionals=conditionals
        )

    grid()
    start = time.process_time()
    result = grid()
    seconds = time.process_time() - start
    assert result.value.shape == (25, 5)
    benchmark.pedantic(grid, rounds=3)
    measured(
        f"the grid of Figure 6 ({conditionals}), 125 averages", lasting(2, "of processor"), seconds
    )
