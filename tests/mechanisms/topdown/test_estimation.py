"""Least squares of a family against its optimality conditions and a twin; rounding against all."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles import topdown as oracle
from scipy import sparse

from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.topdown import estimation, families
from bayesrisk.mechanisms.topdown.estimation import (
    NEAR,
    TOLERANCES,
    LeastSquares,
    RoundingTask,
    controlled_rounding,
    least_squares,
    solve,
    solve_family,
    solve_whole,
)
from bayesrisk.mechanisms.topdown.families import Family, Lookahead, Query, cell_classes

SEEDS = st.integers(0, 2**32 - 1)
CHANCE = np.random.default_rng(1)


def empty(cells):
    return sparse.csr_array((0, cells), dtype=np.int64)


@settings(max_examples=50)
@given(seed=SEEDS, children=st.integers(1, 6), cells=st.integers(1, 9), invariant=st.booleans())
def test_optimality_conditions(seed, children, cells, invariant):
    family, _ = oracle.random_family(
        np.random.default_rng(seed), children=children, cells=cells, invariant=invariant
    )
    problem, totals = least_squares(family)
    found = solve(problem)
    reduced = problem.gradient(found.x) + problem.equalities.T @ found.multipliers
    # The solver stops at this gap and these residuals, relative to the size of the problem.
    assert found.tolerance in TOLERANCES[:3]
    size = 1.0 + oracle.objective(family, np.zeros(family.live.shape))
    assert np.abs(problem.equalities @ found.x - totals).max() <= 100 * found.tolerance * size
    assert reduced.min() >= -100 * found.tolerance * size
    assert found.x @ np.abs(reduced) <= 100 * found.tolerance * size


@settings(max_examples=50)
@given(seed=SEEDS, children=st.integers(2, 3), cells=st.integers(2, 4), invariant=st.booleans())
def test_no_feasible_point_of_a_twin_is_better(seed, children, cells, invariant):
    family, truth = oracle.random_family(
        np.random.default_rng(seed), children=children, cells=cells, invariant=invariant
    )
    problem, _ = least_squares(family)
    found = solve(problem)
    x = found.x.reshape(truth.shape)
    ours, twin = oracle.objective(family, x), oracle.slow_least_squares(family)
    size = 1.0 + oracle.objective(family, np.zeros(truth.shape))
    assert ours <= oracle.objective(family, truth) + 100 * found.tolerance * size
    assert ours <= oracle.objective(family, twin) + 1e-7 * size  # the twin leaves its rows by 1e-8
    # The detail weighs 0.2, so the objective is that convex: distances follow from differences.
    gap = max(oracle.objective(family, twin) - ours, 0.0) + 1e-7 * size
    assert np.abs(twin - x).max() <= (2.0 * gap / 0.2) ** 0.5


def family_of_classes(rng, *, top=False):
    """A family whose cells are of few kinds, with repeated rows, zeros and nested sets, or a top.

    Children may lack kinds, one child asks for a lookahead of two groups; the truth fits all.
    """
    kinds, children = 6, 1 if top else 3
    kind = rng.permutation(np.repeat(np.arange(kinds), rng.integers(1, 6, kinds)))
    live = rng.random((children, kinds)) < 0.8
    live[0] = True
    truth = rng.integers(1, 5, (children, kind.size)) * live[:, kind]
    pick = rng.integers(0, 2, (5, kinds)).astype(float)
    queries = []
    for rows, weight in ((pick[:3], 0.7), (pick[2:], 0.2), (pick[[0, 4]], 1.0)):
        own = rows[:, kind]
        noisy = np.rint(truth @ own.T).astype(np.int64) + rng.integers(-3, 4, (children, len(own)))
        queries.append(Query(sparse.csc_array(own), weight, noisy))
    sets = np.array([np.ones(kind.size), kind < 3]).astype(np.int64)
    split = np.array([[True] * kinds, [True, False] * (kinds // 2)])
    part = int(truth[0] @ split[1][kind]) // 2
    ahead = Lookahead(
        kind.astype(np.int64),
        sparse.csr_array(np.ones((1, kinds), dtype=np.int64)),
        split,
        np.array([[truth[0].sum() - part], [part]]),
    )
    if top:
        return Family(
            live[:, kind], None, tuple(queries), empty(kind.size), np.zeros((1, 0), int),
            empty(kind.size),
        ), kind  # fmt: skip
    return Family(
        live[:, kind], truth.sum(axis=0), tuple(queries), sparse.csr_array(sets), truth @ sets.T,
        empty(kind.size), ((0, ahead),),
    ), kind  # fmt: skip


def fitted(family, x):
    """Return what a solution answers to every query, child by child."""
    counts = np.zeros(family.live.shape)
    counts[family.live] = x[: int(family.live.sum())]
    return counts, np.hstack([counts @ query.rows.toarray().T for query in family.queries])


@pytest.mark.parametrize("top", [False, True])
def test_cells_that_nothing_tells_apart_are_solved_as_one(top):
    merged = 0
    for seed in range(15):
        family, kind = family_of_classes(np.random.default_rng(seed), top=top)
        problem, totals = least_squares(family)
        plain, few = solve_whole(problem), cell_classes(family)
        # Optimal sums of classes, in proportion to the parent's counts, are optimal counts.
        sums, _ = fitted(few.family, solve(least_squares(few.family)[0]).x)
        share = np.ones(kind.size) if top else family.parent
        counts = sums[:, few.label] * (share / np.bincount(few.label, share)[few.label])
        ours = np.append(
            counts[family.live], solve(least_squares(few.family)[0]).x[few.family.live.sum() :]
        )
        size = 1.0 + oracle.objective(family, np.zeros(family.live.shape))
        assert ours.min() >= 0
        assert problem.equalities @ ours == pytest.approx(totals, abs=1e-7 * size)
        counts, answers = fitted(family, ours)
        twin, _ = fitted(family, plain.x)
        # Both optima fit the same answers, which are unique; they differ in what no table tells.
        value = oracle.objective(family, counts)
        assert value == pytest.approx(oracle.objective(family, twin), abs=1e-9 * size)
        assert answers == pytest.approx(fitted(family, plain.x)[1], abs=1e-4 * size**0.5)
        assert few.family.live.shape[1] <= np.unique(kind).size
        merged += few.family.live.shape[1] < kind.size
        (query,) = few.family.queries
        rows = query.rows.toarray()
        assert len(np.unique(rows, axis=0)) == len(rows)
    assert merged > 12


def test_cells_that_something_tells_apart_stay_apart():
    family, kind = family_of_classes(np.random.default_rng(5))
    plain = cell_classes(family).family.live.shape[1]
    for change in ("live", "lookahead", "sets"):
        other = _told_apart(family, change, int(np.flatnonzero(np.bincount(kind) > 1)[0]), kind)
        assert cell_classes(other).family.live.shape[1] == plain + 1


@pytest.mark.parametrize("extra", [None, [[1, 1, 0, 0]], [[0, 2, 0, 0], [0, 0, 3, 0]]])
def test_cells_with_rows_of_their_own_are_not_compared(extra, monkeypatch):
    rng, rows = np.random.default_rng(3), np.eye(4)[[2, 0, 3, 1]]
    family = measured(rows, rng.integers(5, 9, 4), rng.integers(0, 5, (2, 4)))
    if extra is not None:
        query = Query(sparse.csc_array(np.array(extra)), 2.0, rng.integers(0, 5, (2, len(extra))))
        family = replace(family, queries=(*family.queries, query))
    compared = []
    equal = families.equal_rows
    monkeypatch.setattr(families, "equal_rows", lambda *a: compared.append(1) or equal(*a))
    counts, n_without = solve_family(family), len(compared)
    monkeypatch.setattr(families, "_tells_all_apart", lambda query: False)
    assert np.array_equal(solve_family(family), counts)
    assert len(compared) == 2 * n_without + 1


@pytest.mark.parametrize("rows", [[[1, 1, 0], [0, 1, 1], [1, 0, 1]], [[1, 0, 0], [0, 1, 0]]])
def test_sums_and_missing_cells_do_not_tell_all_apart(rows):
    query = Query(sparse.csc_array(np.array(rows)), 1.0, np.zeros((1, len(rows))))
    assert not families._tells_all_apart(query)


def _told_apart(family, change, code, kind):
    """One cell of a kind of several differs from the others in one respect."""
    cell = int(np.flatnonzero(kind == code)[0])
    if change == "live":
        live = family.live.copy()
        live[0, cell] = False
        return replace(family, live=live)
    if change == "sets":
        sets = np.vstack([family.sets.toarray(), np.arange(kind.size) == cell]).astype(np.int64)
        return replace(family, sets=sparse.csr_array(sets))
    child, ahead = family.lookahead[0]
    classes = ahead.classes.copy()
    classes[cell] = (classes[cell] + 1) % 6
    return replace(family, lookahead=((child, replace(ahead, classes=classes)),))


def many_unknowns(seed, size=4000):
    """A problem of far more unknowns than rows, without equalities."""
    rng = np.random.default_rng(seed)
    rows = sparse.random_array((60, size), density=0.05, rng=rng, format="csr")
    rows.data[:] = 1.0
    alone = rng.random(size) < 0.01
    return LeastSquares(
        alone.astype(float), rng.integers(-3, 4, size) * alone, sparse.csr_array(rows),
        rng.uniform(0.5, 2.0, 60), rng.integers(-9, 30, 60).astype(float),
        sparse.csr_array((0, size)), np.zeros(0),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_an_optimum_among_few_unknowns_is_one_among_all(seed):
    problem = many_unknowns(seed)
    found, plain = solve(problem), solve_whole(problem)
    gradient = problem.gradient(found.x)
    size = 1.0 + float(np.abs(problem.gradient(np.zeros(found.x.size))).max())
    assert gradient.min() >= -1e-7 * size  # the conditions of an optimum among all
    assert np.abs(gradient * found.x).max() <= 1e-7 * size
    assert problem.rows @ found.x == pytest.approx(problem.rows @ plain.x, abs=1e-5 * size)
    # Every unknown that is clearly above zero in the whole program's answer was let in.
    assert np.all(gradient[plain.x > 1e-3] <= NEAR * size)


def test_large_factors_give_the_same_optimum(monkeypatch):
    family, _ = oracle.random_family(np.random.default_rng(8), children=6, cells=9, invariant=True)
    problem, _ = least_squares(family)
    plain = solve(problem)
    monkeypatch.setattr(estimation, "LARGE", 0)
    dense = solve(problem)
    # The detail weighs 0.2, so that the optimum is unique and the objective that convex.
    size = 1.0 + oracle.objective(family, np.zeros(family.live.shape))
    assert np.abs(dense.x - plain.x).max() <= (2 * 200 * plain.tolerance * size / 0.2) ** 0.5
    assert not np.array_equal(dense.x, plain.x)  # by another factorisation
    assert np.array_equal(solve(problem).x, dense.x)


def test_the_comparison_with_the_twin_can_fail():
    family, truth = oracle.random_family(np.random.default_rng(1), children=3, cells=4)
    ours = oracle.objective(family, solve(least_squares(family)[0]).x.reshape(truth.shape))
    worse = np.broadcast_to(family.parent / 3, truth.shape)
    assert oracle.objective(family, worse) > ours + 0.01


@settings(max_examples=50)
@given(seed=SEEDS, invariant=st.booleans(), controlled=st.booleans())
def test_rounding_is_the_best_of_all(seed, invariant, controlled):
    rng = np.random.default_rng(seed)
    family, truth = oracle.random_family(
        rng, children=3, cells=4, invariant=invariant, controlled=controlled
    )
    problem, totals = least_squares(family)
    x = solve(problem).x
    near = sparse.csr_array(sparse.kron(sparse.eye_array(3), family.controlled))
    best = oracle.best_rounding(x, problem.equalities, totals, near)
    task = RoundingTask(x, problem.equalities, totals, near, x.size, not invariant)
    rounded = controlled_rounding(task, CHANCE)
    assert best is not None
    # Among values within 1e-9 of each other the choice is free.
    assert np.abs(rounded - x).sum() <= best + 1e-6
    assert np.abs(rounded - x).max() < 1.0
    assert np.array_equal(rounded.reshape(truth.shape).sum(axis=0), family.parent)
    if invariant:
        assert np.array_equal(rounded.reshape(truth.shape).sum(axis=1), truth.sum(axis=1))
    if controlled:
        assert np.abs(near @ rounded - near @ x).max() < 1.0 + 1e-6


@settings(max_examples=50)
@given(seed=SEEDS)
def test_largest_remainders_equal_the_program(seed):
    family, _ = oracle.random_family(np.random.default_rng(seed), children=5, cells=6)
    problem, totals = least_squares(family)
    x = solve(problem).x
    distances = [
        np.abs(
            controlled_rounding(
                RoundingTask(x, problem.equalities, totals, empty(x.size), x.size, fast), CHANCE
            )
            - x
        ).sum()
        for fast in (True, False)
    ]
    assert distances[0] == pytest.approx(distances[1], abs=1e-6)


def test_without_a_parent_every_cell_goes_to_the_nearest_integer():
    x = np.array([0.2, 1.7, 3.0, 0.49])
    task = RoundingTask(x, empty(4), np.zeros(0, np.int64), empty(4), 4, True)
    assert controlled_rounding(task, CHANCE).tolist() == [0, 2, 3, 0]


def test_fractions_lost_in_the_last_digits_are_found_again():
    """Ten thousandths of a person hidden below the snap make one whole person."""
    x = np.full(4, 0.9999999)
    rows = sparse.csr_array(np.ones((1, 4)))
    for fast in (True, False):
        task = RoundingTask(x, rows, np.array([3]), empty(4), 4, fast)
        assert sorted(controlled_rounding(task, CHANCE).tolist()) == [0, 1, 1, 1]


def test_rounding_refuses_what_has_no_integers():
    x = np.array([0.5, 0.5])
    rows = sparse.csr_array(np.array([[1.0, 1.0], [1.0, -1.0]]))
    with pytest.raises(DataError, match="whole numbers"):
        controlled_rounding(RoundingTask(x, rows, np.array([1, 0]), empty(2), 2, False), CHANCE)


@settings(max_examples=50)
@given(seed=SEEDS, invariant=st.booleans(), controlled=st.booleans())
def test_children_add_up_and_keep_their_sets(seed, invariant, controlled):
    family, truth = oracle.random_family(
        np.random.default_rng(seed), children=4, cells=5, invariant=invariant, controlled=controlled
    )
    counts = solve_family(family)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert np.array_equal(counts.sum(axis=0), family.parent)
    if invariant:
        assert np.array_equal(counts.sum(axis=1), truth.sum(axis=1))


def test_an_only_child_is_its_parent():
    family, truth = oracle.random_family(np.random.default_rng(3), children=1, cells=5)
    assert np.array_equal(solve_family(family), truth)


def test_a_total_without_a_place_is_refused():
    query = Query(sparse.csc_array(np.eye(2)), 1.0, np.zeros((1, 2), np.int64))
    family = Family(
        np.array([[True, False]]),
        None,
        (query,),
        sparse.csr_array(np.array([[0, 1]])),
        np.array([[2]]),
        empty(2),
    )
    with pytest.raises(DataError, match="public zeros"):
        solve_family(family)
    nobody = Family(
        np.zeros((1, 2), bool), None, (query,), empty(2), np.zeros((1, 0), int), empty(2)
    )
    assert solve_family(nobody).tolist() == [[0, 0]]


def test_contradictory_equalities_are_refused():
    family, _ = oracle.random_family(np.random.default_rng(2), children=2, cells=3, invariant=True)
    with pytest.raises(DataError, match="contradict"):
        solve_family(replace(family, totals=family.totals + 1))


def test_sets_that_are_no_network_are_rounded_by_branch_and_bound():
    """Three overlapping sets: half of each would be the best vertex, and is no integer."""
    x = np.array([0.4, 0.4, 0.4, 0.3, 0.3, 0.3])
    near = np.array([[1, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1]])
    near = sparse.csr_array(near)
    task = RoundingTask(x, empty(6), np.zeros(0, np.int64), near, 6, True)
    rounded = controlled_rounding(task, CHANCE)
    best = oracle.best_rounding(x, np.zeros((0, 6)), np.zeros(0), near)
    assert np.abs(rounded - x).sum() == pytest.approx(best)
    assert sorted(rounded[:3].tolist()) == [0, 1, 1]


def measured(rows, parent, noisy):
    """A family of which one table is measured, without zeros or sets."""
    cells = len(parent)
    query = Query(sparse.csc_array(np.asarray(rows, float)), 1.0, np.asarray(noisy))
    live = np.ones((len(noisy), cells), bool)
    return Family(
        live, np.asarray(parent), (query,), empty(cells), np.zeros((len(noisy), 0), int),
        empty(cells),
    )  # fmt: skip


@pytest.mark.parametrize("parent", [[1, 1], [3, 0, 2]])
def test_a_total_that_alone_is_measured_goes_to_the_nearest_integer(parent):
    """With two children the fit is half the sum of the total and the difference of the answers."""
    people, ups = sum(parent), 0
    for first, second in product(range(-4, people + 5), repeat=2):
        family = measured([np.ones(len(parent))], parent, [[first], [second]])
        fit = min(max((people + first - second) / 2, 0), people)
        total = int(solve_family(family)[0].sum())
        assert abs(total - fit) <= 0.5
        ups += 0 if fit == int(fit) else (1 if total > fit else -1)
    ties = (people + 9) ** 2 / 2
    assert abs(ups) < 4 * ties**0.5


def test_ties_favour_no_child():
    """The fit of single cells with two children is a half-integer every other time.

    The solver's last digits, which are no reason, lean to the smaller child.
    """
    rng, steps = np.random.default_rng(3), []
    for _ in range(60):
        parent, noisy = rng.integers(20, 30, 5), rng.integers([[5], [14]], [[9], [20]], (2, 5))
        counts = solve_family(measured(np.eye(5), parent, noisy))
        steps.extend(counts[0] - (parent + noisy[0] - noisy[1]) / 2)
    assert set(steps) == {-0.5, 0.0, 0.5}
    assert abs(sum(steps)) < 4 * 0.5 * np.count_nonzero(steps) ** 0.5


@given(seed=SEEDS, children=st.integers(1, 5), top=st.booleans())
def test_a_class_is_split_in_proportion_to_the_parent(seed, children, top):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, 8)
    rows = np.eye(3)[label].T
    truth = rng.integers(0, 5, (1 if top else children, 8))
    family = measured(rows, truth.sum(axis=0), truth @ rows.T.astype(int))
    if top:
        family = replace(family, parent=None)
    few = cell_classes(family)
    sums = np.array([np.bincount(few.label, own) for own in truth]).astype(int)
    counts = few.split(sums, family.parent, rng)
    assert np.array_equal([np.bincount(few.label, own) for own in counts], sums)
    for child, cell in np.ndindex(counts.shape):
        alike = few.label == few.label[cell]
        weight = np.ones(8, int) if top else family.parent
        share = sums[child, few.label[cell]] * weight[cell], max(weight[alike].sum(), 1)
        assert counts[child, cell] >= share[0] // share[1]
    if top:
        assert np.all(counts <= -(-sums // np.bincount(few.label))[:, few.label])
    else:
        assert np.array_equal(counts.sum(axis=0), family.parent)
