"""One population for many tests, and ways to read it."""

import pytest

from bayesrisk.census import population_spec, simulate_population


@pytest.fixture(scope="session")
def county():
    """Return a population with subsidised households in every block that can have them."""
    return simulate_population(population_spec("county", subsidised_blocks=1.0), rng=11)


@pytest.fixture(scope="session")
def state():
    """Return half a million people."""
    return simulate_population("state", rng=12)
