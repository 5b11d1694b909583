"""Several levels and any schema: joint solutions against enumeration."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles_reconstruction import largest_distance, people, person_tables, solutions

from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.reconstruction.instance import instance
from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload

ABOUT = Schema(
    "s",
    (Attribute("a", 2), Attribute("b", 3)),
    Geography("g", ("city", "part", "block"), (0, 1, 2)),
)
A = Table("A", ("a0", "a1"), {"a": np.eye(2, dtype=int)})
B = Table("B", ("b0", "b12"), {"b": np.array([[1, 0, 0], [0, 1, 1]])})
#: A weighted count, such as persons in households of a size.
WEIGHED = Table("W", ("w",), {"b": np.array([[1, 2, 3]])})
CROSSED = Table(
    "AB", ("x", "y"), {"a": np.eye(2, dtype=int), "b": np.array([[1, 1, 0], [0, 1, 1]])}
)
GEOIDS = {"block": ["11", "12", "21"], "part": ["1", "2"], "city": [""]}
PLACES = {"block": np.arange(3), "part": np.array([0, 0, 1]), "city": np.zeros(3, int)}


def published(tables, truth):
    """Return the tables of histograms (blocks by the 6 schema cells)."""
    counts = {}
    for (level, name), table in tables.items():
        matrix = table.incidence(ABOUT, np.arange(6)).toarray()
        places = len(GEOIDS[level])
        total = np.zeros((places, 6), int)
        np.add.at(total, PLACES[level], truth)
        counts[level, name] = sp.csr_array(total @ matrix.T)
    levels = {level for level, _ in tables}
    return PublishedTables(
        Workload(ABOUT, tables), {n: np.array(g) for n, g in GEOIDS.items() if n in levels}, counts
    )


def all_rows(problem):
    """Return the published rows of all levels over blocks times the problem's cells."""
    own = problem.system.queries.matrix().toarray()
    rows = [np.kron(np.eye(3, dtype=int), own)]
    counts = [problem.published.toarray().ravel()]
    for level, coupling in problem.couplings.items():
        matrix = coupling.queries.matrix().toarray()
        places = np.eye(len(GEOIDS[level]), dtype=int)[PLACES[level]].T
        rows.append(np.kron(places, matrix))
        counts.append(problem.coupled[level].toarray().ravel())
    return np.vstack(rows), np.concatenate(counts)


LEVELS = [
    {("block", "A"): A, ("block", "B"): B, ("part", "AB"): CROSSED},
    {("block", "A"): A, ("block", "W"): WEIGHED, ("city", "B"): B},
    {("block", "A"): A, ("block", "B"): B, ("part", "W"): WEIGHED, ("city", "AB"): CROSSED},
]


@pytest.mark.parametrize("tables", LEVELS)
def test_joint_solutions_equal_enumeration(tables):
    rng = np.random.default_rng(61)
    largest = next(n for n in ("city", "part") if any(level == n for level, _ in tables))
    statuses = set()
    for _ in range(25):
        truth = rng.integers(0, 2, (3, 6)) * rng.integers(0, 3, (3, 6)) // 2
        given = published(tables, truth)
        problem = instance(given, scope=largest)
        rows, counts = all_rows(problem)
        size = rows.shape[1]
        high = np.array([counts[rows[:, j] > 0].min() for j in range(size)])
        every = solutions(rows, np.zeros(size, int), high, counts, counts)
        result = reconstruct(given, scope=largest)
        star = result.histogram().toarray().ravel()
        assert any(np.array_equal(star, x) for x in every)
        for b, status in enumerate(result.status):
            kinds = {tuple(x.reshape(3, -1)[b]) for x in every}
            # A block is unique when its component is; the others need not know.
            assert status in ("unique", "feasible")
            if len(kinds) > 1:
                assert status == "feasible"
            statuses.add(status)
        assert (set(result.status) == {"unique"}) == (len(every) == 1)
        found = solution_variability(given, scope="tract-joint", larger=largest, solution=result)
        moved = float((2 * found.upper * found.population).sum())
        assert found.status == ("proved",) * len(found.geoids)
        assert moved == pytest.approx(largest_distance(every, star), abs=1e-9)
    assert statuses == {"unique", "feasible"}


def test_levels_in_between_count_too():
    tables = LEVELS[2]
    truth = np.random.default_rng(62).integers(0, 3, (3, 6))
    given = published(tables, truth)
    assert list(instance(given, scope="city").couplings) == ["city", "part"]
    assert list(instance(given, scope="part").couplings) == ["part"]
    assert list(instance(given, scope="block").couplings) == []


def test_a_place_that_contradicts_itself_is_named():
    given = published(LEVELS[0], np.random.default_rng(63).integers(0, 2, (3, 6)))
    counts = dict(given.counts)
    counts["part", "AB"] = sp.csr_array(counts["part", "AB"] + np.array([[5, 0], [0, 0]]))
    broken = PublishedTables(given.workload, given.geoids, counts)
    result = reconstruct(broken, scope="part")
    assert result.status[:2] == ("infeasible", "infeasible")
    assert result.status[2] in ("unique", "feasible")
    assert "part 1: x" in result.detail[0]


def test_a_missing_place_is_named():
    given = published(LEVELS[0], np.ones((3, 6), int))
    counts = {k: v[[0]] if k[0] == "part" else v for k, v in given.counts.items()}
    less = PublishedTables(
        given.workload, {**given.geoids, "part": given.geoids["part"][:1]}, counts
    )
    with pytest.raises(ArgumentError, match="every part, got none of '2'"):
        reconstruct(less, scope="part")


def test_suppressed_tract_cells_say_nothing():
    tables = person_tables(people(np.random.default_rng(64), [4, 6], spread=0.5))
    key = ("tract", "PCT12I")
    hidden = sp.csr_array(np.ones(tables.counts[key].shape, bool))
    secret = PublishedTables(
        tables.workload,
        tables.geoids,
        {**tables.counts, key: sp.csr_array(tables.counts[key] * 0)},
        {key: hidden},
    )
    result = reconstruct(secret, scope="tract")
    assert set(result.status) <= {"unique", "feasible"}
    problem, star = result.problem, result.histogram()
    own = problem.system.queries.matrix()
    assert abs(sp.csr_array(star @ own.T) - problem.published).nnz == 0
    matrix = problem.couplings["tract"].queries.matrix()
    found = star.sum(axis=0) @ matrix.T.toarray()
    wanted = problem.coupled["tract"].toarray().ravel()
    known = wanted >= 0
    assert known.sum() == matrix.shape[0] - 206
    assert np.array_equal(found[known], wanted[known])
