"""Back-ends against enumeration; what is claimed is what was proved."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from bayesrisk.constraints.certificates import proves_infeasible, reduced_values
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.search import Relaxation, branch_and_bound, find_at_least
from bayesrisk.constraints.solvers import (
    Deadline,
    Limits,
    Raw,
    SolverBackend,
    make_solver,
    settle_answer,
)
from bayesrisk.exceptions import ArgumentError, MissingDependencyError

BACKENDS = ["highs", "pulp:highs", "pulp:cbc"]


def random_model(rng):
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    dense = rng.integers(-1, 4, (m, n))
    high = rng.integers(0, 4, n)
    low = rng.integers(0, 2, n) * np.minimum(high, 1)
    inside = rng.integers(low, high + 1)
    at = dense @ inside + rng.integers(-1, 2, m)
    model = IntegerModel(low, high, sp.csr_array(dense), at, at + rng.integers(0, 2, m))
    return model, rng.integers(-3, 4, n)


def enumerate_model(model):
    """Every point of the box that satisfies the rows."""
    grid = np.indices(model.high - model.low + 1).reshape(len(model.low), -1).T + model.low
    sums = grid @ model.rows.toarray().T
    return grid[np.all((sums >= model.row_low) & (sums <= model.row_high), axis=1)]


@pytest.mark.parametrize("backend", [*BACKENDS, "highs without diving"])
def test_back_ends_find_the_best_or_that_there_is_none(backend):
    plain = backend == "highs without diving"
    solver = make_solver("highs", dive=False) if plain else make_solver(backend)
    assert isinstance(solver, SolverBackend)
    rng = np.random.default_rng(11)
    seen = set()
    for _ in range(40 if "pulp" in backend else 150):
        model, objective = random_model(rng)
        points = enumerate_model(model)
        answer = solver.solve(model, objective)
        seen.add(answer.status)
        assert answer.seconds >= 0.0
        if len(points):
            assert answer.status == "proved"
            assert answer.value == (points @ objective).max() == objective @ answer.values
            assert answer.bound - answer.value == pytest.approx(answer.gap, abs=1e-9)
            assert model.holds(answer.values)
        else:
            assert answer.status == "infeasible"
            assert answer.values is None
    assert seen == {"proved", "infeasible"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_even_gap_stops_early_and_says_so(backend):
    model = IntegerModel(
        np.zeros(2, int), np.full(2, 4), sp.csr_array([[1, -1]]), *2 * [np.zeros(1, int)]
    )
    answer = make_solver(backend).solve(model, np.ones(2, int), limits=Limits(gap=1.99))
    assert answer.status == "proved"
    assert answer.value == 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_parity_without_a_whole_solution_is_infeasible(backend):
    # The relaxation has solutions; a branching is needed to see that no whole one exists.
    model = IntegerModel(
        np.zeros(3, int), np.full(3, 5), sp.csr_array([[2, 2, 4]]), np.array([7]), np.array([7])
    )
    assert make_solver(backend).solve(model, np.zeros(3, int)).status == "infeasible"


@pytest.mark.parametrize("backend", BACKENDS)
def test_large_coefficients_do_not_make_feasible_models_infeasible(backend):
    # The kind of model that presolve of some versions calls infeasible: a switch of 1000.
    rng = np.random.default_rng(13)
    solver = make_solver(backend)
    for _ in range(30 if backend == "highs" else 8):
        n = 6
        inside = rng.integers(0, 5, n)
        dense = np.vstack([rng.integers(0, 2, (5, n)), np.zeros((n, n), int)])
        links = np.zeros((11, n), int)
        for j in range(n):
            dense[5 + j, j], links[5 + j, j] = 1, -1000
        switch = (inside > 0).astype(int)
        rows = sp.csr_array(np.hstack([dense, links]))
        at = dense[:5] @ inside
        model = IntegerModel(
            np.zeros(2 * n, int),
            np.concatenate([np.full(n, 9), np.ones(n, int)]),
            rows,
            np.concatenate([at, np.full(n, -1000)]),
            np.concatenate([at, np.zeros(n, int)]),
        )
        assert model.holds(np.concatenate([inside, switch]))
        assert solver.solve(model, np.zeros(2 * n, int)).status == "proved"


def hard_model(n=28):
    """A market-split problem: tiny to write down, far from solved in a blink."""
    rng = np.random.default_rng(14)
    dense = rng.integers(0, 100, (4, n))
    half = dense.sum(axis=1) // 2
    return IntegerModel(np.zeros(n, int), np.ones(n, int), sp.csr_array(dense), half, half)


@pytest.mark.parametrize("backend", ["highs", "pulp:highs"])
def test_a_time_limit_is_never_called_a_proof(backend):
    answer = make_solver(backend).solve(hard_model(), np.zeros(28, int), limits=Limits(0.05))
    assert answer.status == "unknown"
    assert answer.values is None
    assert answer.gap == np.inf


def test_a_limit_of_nodes_leaves_the_same_bounds_again_and_they_hold_the_best():
    n, seen = 50, set()
    for seed in (2, 3):
        rng = np.random.default_rng(seed)
        rows = rng.integers(1, 100, (10, n))
        half = rows.sum(axis=1) // 2
        model = IntegerModel(
            np.zeros(n, int), np.ones(n, int), sp.csr_array(rows), np.zeros(10, int), half
        )
        objective = rng.integers(1, 100, n)
        best = make_solver("highs").solve(model, objective)
        assert best.status == "proved"
        for nodes in (1, 5):
            found, again = (
                make_solver("highs").solve(model, objective, limits=Limits(nodes=nodes))
                for _ in range(2)
            )
            assert found.value <= best.value <= found.bound
            assert (found.status == "proved") == (found.value == found.bound)
            assert (found.value, found.bound) == (again.value, again.bound)
            seen.add(found.status)
    assert "feasible" in seen
    # Without a solution at the limit there is no answer, and no proof that there is none.
    split = make_solver("highs").solve(hard_model(), np.zeros(28, int), limits=Limits(nodes=1))
    assert (split.status, split.values, split.gap) == ("unknown", None, np.inf)


def test_a_limit_of_nodes_is_refused_where_it_cannot_be_told_from_a_proof():
    solver = make_solver("pulp:highs")
    with pytest.raises(ArgumentError, match="node_limit must be None for solver 'pulp:highs'"):
        solver.solve(hard_model(), np.zeros(28, int), limits=Limits(nodes=1))


def test_values_that_break_a_row_are_not_an_answer():
    model = IntegerModel(
        np.zeros(1, int), np.ones(1, int), sp.csr_array([[2]]), *2 * [np.array([1])]
    )
    raw = Raw("proved", 0.5, np.array([0.5]))
    assert settle_answer(model, np.ones(1, int), raw, gap=0.0, seconds=0.0).status == "unknown"
    outside = IntegerModel(
        np.zeros(1, int), np.ones(1, int), sp.csr_array([[1]]), *2 * [np.array([2])]
    )
    assert not outside.holds(np.array([2]))


def test_a_wide_gap_is_not_a_proof():
    model = IntegerModel(
        np.zeros(1, int), np.ones(1, int), sp.csr_array((0, 1), dtype=int), *2 * [np.zeros(0, int)]
    )
    raw = Raw("proved", 3.0, np.array([1.0]))
    answer = settle_answer(model, np.ones(1, int), raw, gap=1.0, seconds=0.0)
    assert (answer.status, answer.gap) == ("feasible", 2.0)


def test_any_dual_values_prove_a_bound():
    rng = np.random.default_rng(15)
    for _ in range(200):
        model, objective = random_model(rng)
        points = enumerate_model(model)
        duals = rng.normal(scale=3.0, size=len(model.row_low))
        bound = reduced_values(model, objective, model.low, model.high, duals)[0]
        if len(points):
            assert (points @ objective).max() <= bound
            assert not proves_infeasible(model, model.low, model.high, duals)


def test_dual_values_without_sense_prove_nothing():
    model, objective = random_model(np.random.default_rng(16))
    far = np.full(len(model.row_low), 1e30)
    assert reduced_values(model, objective, model.low, model.high, far)[0] == np.inf
    nothing = np.zeros(len(model.row_low))
    assert not proves_infeasible(model, model.low, model.high, nothing)


def test_bounds_that_whole_numbers_of_64_bits_cannot_hold_are_not_proved():
    """A product that wrapped around would prove anything."""
    rng = np.random.default_rng(17)
    proved = 0
    for large in (2**10, 2**20, 2**28, 2**31):
        for _ in range(50):
            rows = sp.csr_array(rng.integers(0, 4, (4, 5)))
            point = rng.integers(0, large, 5)
            sums = rows @ point
            model = IntegerModel(np.zeros(5, int), np.full(5, large), rows, sums, sums)
            objective = rng.integers(-1000, 1001, 5)
            duals = rng.normal(scale=10.0 ** rng.uniform(0, 6), size=4)
            bound = reduced_values(model, objective, model.low, model.high, duals)[0]
            assert bound >= int(objective @ point)
            assert not proves_infeasible(model, model.low, model.high, duals)
            if np.isfinite(bound):
                proved += 1
                y = [round(d * 2**20) for d in duals]
                exact = sum(a * int(b) for a, b in zip(y, sums, strict=True))
                rest = [
                    int(c) * 2**20 - sum(int(a) * b for a, b in zip(column, y, strict=True))
                    for c, column in zip(objective, rows.toarray().T, strict=True)
                ]
                exact += sum(max(r * large, 0) for r in rest)
                assert Fraction(bound) >= Fraction(exact, 2**20)
    assert 50 <= proved < 200


class Careless:
    """A relaxation that is wrong: branch and bound must hand over, not believe it."""

    def __init__(self, answer):
        self.answer = answer

    def relax(self, low, high):
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        Relaxation(None, None, None),
        Relaxation(None, None, np.array([1.0])),
        Relaxation(np.array([0.0, 0.0]), np.array([0.0]), None),  # breaks the row
        Relaxation(np.array([1.0, 1.0]), np.array([-5.0]), None),  # proves a poor bound
        Relaxation(np.array([0.5, 1.0]), np.array([0.0]), None),  # never ends
    ],
)
def test_a_careless_relaxation_is_not_believed(answer):
    model = IntegerModel(
        np.zeros(2, int), np.full(2, 3), sp.csr_array([[1, 1]]), np.array([2]), np.array([4])
    )
    assert branch_and_bound(Careless(answer), model, np.ones(2, int), Limits()) is None

    # Every sum of 2 to 4 has a solution, and no dual value given here proves that none has.
    for least in (None, 2, 3, 4):
        limits = {"nodes": 9, "deadline": Deadline()}
        found = find_at_least(Careless(answer), model, np.ones(2, int), least, **limits)
        assert found[0] != "none"
        assert found[1] is None or (model.holds(found[1]) and found[1].sum() >= (least or 0))


def test_a_bound_that_reaches_the_least_is_no_proof_that_nothing_does():
    # x = 1 fits and reaches 1; the solver says 0, and its dual values bound the objective by 1.
    model = IntegerModel(
        np.zeros(1, int), np.ones(1, int), sp.csr_array([[1]]), np.zeros(1, int), np.ones(1, int)
    )
    short = Careless(Relaxation(np.zeros(1), np.zeros(1), None))
    limits = {"nodes": 9, "deadline": Deadline()}
    assert find_at_least(short, model, np.ones(1, int), 1, **limits) == ("unknown", None)
    # The same bound proves that nothing reaches 2.
    assert find_at_least(short, model, np.ones(1, int), 2, **limits) == ("none", None)


def test_unknown_and_missing_solvers_are_named():
    for name in ("nope", "highs:x", "pulp", "pulp:"):
        with pytest.raises(ArgumentError, match="solver must be"):
            make_solver(name)
    with pytest.raises(ArgumentError, match="'nope'"):
        make_solver("pulp:nope")
    with pytest.raises(ArgumentError, match="solve method"):
        make_solver(3)
    with pytest.raises(MissingDependencyError, match="'CPLEX_CMD' is not installed"):
        make_solver("pulp:CPLEX_CMD")


def a_few(model, objective):
    """Sift from every third variable."""
    from bayesrisk.constraints.highs import Sifted

    linear = Sifted(model, np.arange(0, model.low.size, 3))
    linear.aim(objective)
    return linear


def all_at_once(model, objective):
    from bayesrisk.constraints.highs import HighsWarm

    return HighsWarm(model, objective)


def test_sifting_finds_the_largest_objective_of_all_variables():
    rng = np.random.default_rng(22)
    statuses = {"optimal": 0, "ray": 0}
    for _ in range(150):
        n = 60
        rows = sp.csr_array(rng.integers(0, 2, (6, n)))
        right = rows @ rng.integers(0, 2, n) + rng.integers(0, 2) * rng.integers(-9, 40, 6)
        model = IntegerModel(np.zeros(n, np.int64), np.full(n, 3), rows, right, right)
        first = rng.integers(-9, 10, n)
        sifted, whole = a_few(model, first), all_at_once(model, first)
        for objective in (first, rng.integers(-9, 10, n), np.zeros(n, np.int64)):
            high = np.where(rng.random(n) < 0.2, 1, 3)
            low = np.minimum((rng.random(n) < 0.03).astype(np.int64), high)
            sifted.aim(objective)
            whole.aim(objective)
            ours, theirs = sifted.relax(low, high), whole.relax(low, high)
            if theirs.values is None:
                assert ours.values is None
                assert proves_infeasible(model, low, high, ours.ray)
                statuses["ray"] += 1
                continue
            # Both keep to their rows and bounds by 1e-7.
            best = objective @ theirs.values
            assert objective @ ours.values == pytest.approx(best, abs=1e-4)
            assert np.abs(rows @ ours.values - right).max() < 1e-5
            bound = reduced_values(model, objective, low, high, ours.duals)[0]
            assert best - 1e-4 <= bound <= best + 1e-3
            statuses["optimal"] += 1
    assert min(statuses.values()) > 50


def test_the_largest_objective_is_that_of_the_model_after_narrower_bounds():
    rng, less = np.random.default_rng(23), 0
    for _ in range(40):
        rows = sp.csr_array(rng.integers(0, 2, (6, 60)))
        ends = rng.integers(20, 40, 6)
        model = IntegerModel(np.zeros(60, np.int64), np.full(60, 3), rows, ends - 5, ends)
        objective = rng.integers(1, 10, 60)
        sifted = a_few(model, objective)
        narrow = sifted.relax(model.low, np.ones(60, np.int64)).values
        found = sifted.maximise(objective).values
        whole = all_at_once(model, objective).relax(model.low, model.high).values
        assert objective @ found == pytest.approx(objective @ whole, abs=1e-4)
        less += narrow is None or objective @ narrow < objective @ found - 1e-4
    assert less > 20


@pytest.mark.parametrize("relaxation", [all_at_once, a_few])
@pytest.mark.parametrize("nodes", [1, 3, 400])
def test_a_search_finds_what_there_is_and_proves_what_there_is_not(nodes, relaxation):
    rng = np.random.default_rng(21)
    seen = {"found": 0, "none": 0, "unknown": 0}
    for _ in range(150):
        model, objective = random_model(rng)
        points = enumerate_model(model)
        best = max((points @ objective).tolist(), default=None)
        linear = relaxation(model, objective)
        for least in (None, -2, 0, 2, 5):
            limits = {"nodes": nodes, "deadline": Deadline()}
            status, values = find_at_least(linear, model, objective, least, **limits)
            there = best is not None and (least is None or best >= least)
            seen[status] += 1
            assert status != ("none" if there else "found")
            if status == "found":
                assert model.holds(values)
                assert least is None or objective @ values >= least
    assert seen["found"] > 50
    assert seen["none"] > 50
    assert (seen["unknown"] > 0) == (nodes < 400)


def test_a_search_stops_when_it_is_late():
    model, objective = random_model(np.random.default_rng(3))

    class Never:
        def relax(self, low, high):
            raise AssertionError

    late = Deadline(1e-9)
    assert late.late
    found = find_at_least(Never(), model, objective, None, nodes=9, deadline=late)
    assert found == ("unknown", None)


@pytest.mark.parametrize("backend", ["highs", "pulp:highs"])
def test_the_second_look_at_an_infeasible_model_has_what_time_is_left(backend, monkeypatch):
    from bayesrisk.constraints import solvers as deadline

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    given = []

    def run(model, objective, limits, *, presolve):
        given.append(limits.seconds)
        clock.now += 6.0
        return Raw("infeasible", -np.inf, None)

    plain = {"dive": False} if backend == "highs" else {}
    solver = make_solver(backend, **plain)
    monkeypatch.setattr(solver, "_run", run)
    model, objective = random_model(np.random.default_rng(3))
    assert solver.solve(model, objective, limits=Limits(10.0)).status == "infeasible"
    assert given == [10.0, 4.0]
    # No time for a second look: what the first says is not believed.
    given.clear()
    assert solver.solve(model, objective, limits=Limits(5.0)).status == "unknown"
    assert given == [5.0]


def test_presolve_of_a_large_model_is_left_out_when_there_is_a_limit(monkeypatch):
    from bayesrisk.constraints import highs as _highs

    model, objective = random_model(np.random.default_rng(3))
    given = []

    def run(model, objective, limits, *, presolve):
        given.append(presolve)
        return Raw("unknown", np.inf, None)

    solver = make_solver("highs", dive=False)
    monkeypatch.setattr(solver, "_run", run)
    solver.solve(model, objective, limits=Limits(10.0))
    monkeypatch.setattr(_highs, "_PRESOLVED", 0)
    solver.solve(model, objective, limits=Limits(10.0))
    solver.solve(model, objective)
    assert given == ["choose", "off", "choose"]


def test_an_interior_point_is_positive_wherever_some_point_is():
    from bayesrisk.constraints.highs import interior_point

    tried = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        dense = rng.integers(0, 2, (3, 6))
        dense[0] = 1
        inside = rng.integers(0, 2, 6)
        at = dense @ inside
        model = IntegerModel(np.zeros(6, int), np.full(6, 9), sp.csr_array(dense), at, at)
        points = enumerate_model(model)
        found = interior_point(model, Deadline())
        if found is None:
            continue
        tried += 1
        assert (found[points.max(axis=0) > 0] > 1e-7).all()
    assert tried > 20


def test_calls_that_share_a_deadline_end_together_and_each_has_its_most():
    shared = Deadline(100.0, share=30.0).part_limits
    assert shared.next.seconds == 30.0
    assert 50.0 < Deadline(100.0).part_limits.next.seconds <= 100.0
    assert Deadline(0.0, share=30.0).part_limits.next.seconds == 0.0
    assert Deadline(0.0, share=30.0).part_limits.deadline.late
    assert Limits(7.0).next == Limits(7.0)
    assert Limits().next.seconds is None
