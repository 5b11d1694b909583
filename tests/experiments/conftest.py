"""A small sweep that every quantity takes part in."""

import copy

import pytest

DOCUMENT = {
    "title": "small <sweep> & more",
    "seed": 7,
    "settings_per_shard": 2,
    "grid": {
        "rho": [
            {"log": [0.01, 1.0], "points": 4},
            {"name": "block", "budget": "pl94/US/person/Block/detailed", "total": "2.56"},
        ],
        "prior": ["1/2", "1/864"],
        "released": {"from": -1, "to": 2},
    },
    "levels": {"names": ["block", "tract"], "rho": ["0.1", "0.05"]},
    "hierarchy": {
        "rho_group": ["0.25", {"name": "group", "value": "0.5"}],
        "group_count": [3, 1],
        "n_siblings": [27],
    },
    "accounting": {"delta": "1e-10"},
    "simulation": {"releases": 500},
}


@pytest.fixture(scope="session")
def shared_document():
    """Not to be changed."""
    return DOCUMENT


@pytest.fixture
def document():
    """A fresh copy, free to be changed."""
    return copy.deepcopy(DOCUMENT)
