"""Least and most of forms against every point of small models."""

import numpy as np
import pytest
import scipy.sparse as sp

from bayesrisk.constraints.ends import FormEnds, row_ends
from bayesrisk.constraints.highs import HighsWarm
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.solvers import Deadline, make_solver

TOP = 5


def closed_model(rng):
    """Return a model whose weights are not negative, and its points."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    dense = rng.integers(0, 3, (m, n))
    high = rng.integers(1, TOP, n)
    at = dense @ rng.integers(0, high + 1)
    ends = at - rng.integers(0, 2, m), at + rng.integers(0, 3, m)
    model = IntegerModel(np.zeros(n, np.int64), high, sp.csr_array(dense), *ends)
    grid = np.indices(high + 1).reshape(n, -1).T
    return model, np.array([point for point in grid if model.holds(point)])


@pytest.mark.parametrize("asked", [True, False])
def test_ends_are_those_of_all_solutions(asked):
    """With a general solver behind, and with the warm relaxation alone."""
    rng = np.random.default_rng(4)
    for _ in range(80):
        model, points = closed_model(rng)
        star = points[rng.integers(len(points))]
        if asked:
            sums = points @ model.rows.toarray().T
            seen = (model.rows @ star,) * 2
            every = np.ones(len(sums.T), np.bool_)
            low, high, *reached = row_ends(
                model, star, seen, every, make_solver("highs"), Deadline()
            )
            assert np.array_equal([low, high], reached)
        else:
            forms = rng.integers(-2, 3, (3, model.low.size))
            sums = points @ forms.T
            far = np.full(3, 4 * TOP * model.low.size)
            linear = HighsWarm(model, np.zeros(model.low.size), primal=True)
            ends = FormEnds(model, linear, sp.csr_array(forms), (-far, far), star, nodes=500)
            ends.settle()
            assert np.array_equal(ends.goal, ends.reached)
            high, low = ends.goal[:3], -ends.goal[3:]
        assert low.tolist() == sums.min(axis=0).tolist()
        assert high.tolist() == sums.max(axis=0).tolist()


def test_rows_that_nobody_asks_about_leave_the_ends_of_others_right():
    """Also where an equal row is not asked about; their own ends are bounds."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        model, points = closed_model(rng)
        twice = sp.csr_array(sp.vstack([model.rows, model.rows], format="csr"))
        ends = [np.tile(side, 2) for side in (model.row_low, model.row_high)]
        model = IntegerModel(model.low, model.high, twice, *ends)
        star, sums = points[rng.integers(len(points))], points @ twice.toarray().T
        asked = rng.random(sums.shape[1]) < 0.4
        seen, solver = (twice @ star,) * 2, make_solver("highs")
        low, high, *reached = row_ends(model, star, seen, asked, solver, Deadline())
        least, most = sums.min(axis=0), sums.max(axis=0)
        assert np.array_equal([low[asked], high[asked]], [least[asked], most[asked]])
        assert np.array_equal([low[asked], high[asked]], [side[asked] for side in reached])
        assert (low <= least).all()
        assert (high >= most).all()


def test_ends_that_are_not_settled_are_bounds():
    rng, open_ = np.random.default_rng(5), 0
    for _ in range(80):
        model, points = closed_model(rng)
        forms = rng.integers(-2, 3, (3, model.low.size))
        sums, far = points @ forms.T, np.full(3, 4 * TOP * model.low.size)
        linear = HighsWarm(model, np.zeros(model.low.size), primal=True)
        ends = FormEnds(model, linear, sp.csr_array(forms), (-far, far), None, nodes=1)
        ends.settle()
        assert np.all(ends.goal[:3] >= sums.max(axis=0))
        assert np.all(-ends.goal[3:] <= sums.min(axis=0))
        open_ += int((ends.goal > ends.reached).sum())
    assert open_ > 5
