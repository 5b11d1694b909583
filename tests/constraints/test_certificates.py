"""Combinations of rows against every point of small models, some of whose ends are open."""

import numpy as np
import pytest
import scipy.sparse as sp

from bayesrisk.constraints.certificates import UNITS, Bounds, combinations, proves_infeasible
from bayesrisk.constraints.model import ENDLESS, IntegerModel
from bayesrisk.constraints.search import Relaxation, find_at_least
from bayesrisk.constraints.solvers import Deadline

TOP = 5


def open_model(rng):
    """Return a model with ends that are none, and its points from 0 to TOP."""
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    dense = rng.integers(-2, 4, (m, n))
    low, high = rng.integers(0, 2, n), rng.integers(1, TOP + 1, n)
    at = dense @ rng.integers(low, high + 1)
    row_low, row_high = at - rng.integers(0, 2, m), at + rng.integers(0, 2, m)
    high[rng.random(n) < 0.4] = ENDLESS
    row_low[rng.random(m) < 0.3], row_high[rng.random(m) < 0.3] = -ENDLESS, ENDLESS
    model = IntegerModel(low, high, sp.csr_array(dense), row_low, row_high)
    grid = np.indices([TOP + 1] * n).reshape(n, -1).T
    return model, np.array([point for point in grid if model.holds(point)]).reshape(-1, n)


def test_every_combination_bounds_every_solution():
    rng, proved, poorer = np.random.default_rng(1), 0, 0
    for _ in range(400):
        model, points = open_model(rng)
        objective = rng.integers(-3, 4, model.low.size)
        duals = rng.choice([0.5, 1 / 3, 1.0, -1.0, 0.0], model.row_low.size) * rng.integers(-2, 3)
        bounds = Bounds(model.low, model.high, model.row_low, model.row_high)
        for found in combinations(model, objective, bounds, duals, UNITS):
            assert found.unit in UNITS
            worth = [found.unit * int(objective @ point) for point in points]
            assert max(worth, default=found.total) <= found.total
            assert found.total / found.unit <= found.bound
            assert found.floor == found.total // found.unit
            proved += 1
            poorer += bool(worth) and max(worth) < found.total
    assert proved > 150
    assert 0 < poorer < proved


def test_a_rest_without_an_end_proves_nothing():
    # x + y <= 1, and nothing bounds z: 1 is the most of x + y, and x + y + z has no bound.
    one = np.ones(1, np.int64)
    none = np.full(3, ENDLESS)
    model = IntegerModel(0 * none, none, sp.csr_array([[1, 1, 0]]), -ENDLESS * one, one)
    bounds = Bounds(model.low, model.high, model.row_low, model.row_high)
    (found,) = combinations(model, np.array([1, 1, 0]), bounds, np.ones(1))
    assert (found.total, found.unit) == (1, 1)
    assert not list(combinations(model, np.ones(3, np.int64), bounds, np.ones(1)))
    # A row without a smallest sum adds nothing from that side.
    (least,) = combinations(model, np.array([-1, -1, 0]), bounds, -np.ones(1))
    assert least.multiples.tolist() == [0]
    assert least.total == 0


@pytest.mark.parametrize("ray", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("high", [1, ENDLESS])
def test_a_ray_that_proves_nothing_is_no_proof_that_no_counts_fit(ray, high):
    """A linear program that errs: it finds nothing, and gives a ray for it."""

    class Careless:
        def relax(self, low, high):
            return Relaxation(None, None, np.array([ray]))

    one = np.ones(1, np.int64)
    fits = IntegerModel(0 * one, high * one, sp.csr_array([[1]]), 0 * one, one)
    limits = {"nodes": 9, "deadline": Deadline()}
    assert find_at_least(Careless(), fits, one, None, **limits) == ("unknown", None)
    # The same ray proves it where no whole number fits.
    beyond = IntegerModel(one, high * one, sp.csr_array([[1]]), 0 * one, 0 * one)
    found = find_at_least(Careless(), beyond, one, None, **limits)
    assert found == ("none" if ray else "unknown", None)
    assert proves_infeasible(beyond, beyond.low, beyond.high, np.array([ray])) == bool(ray)
