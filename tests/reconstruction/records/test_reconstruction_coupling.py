"""Several levels and any schema: joint solutions against enumeration."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.reconstruction import largest_distance, people, person_tables, solutions

from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms import Suppression
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.reconstruction.records.kernels import HIDDEN
from bayesrisk.reconstruction.records.problem import published_problem
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
    tabulate,
)

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


def published(tables, truth, withheld=None):
    """Return the tables of histograms (blocks by the 6 schema cells), some cells withheld."""
    counts, hidden = {}, {}
    for (level, name), table in tables.items():
        matrix = table.incidence(ABOUT, np.arange(6)).toarray()
        places = len(GEOIDS[level])
        total = np.zeros((places, 6), int)
        np.add.at(total, PLACES[level], truth)
        counts[level, name] = total @ matrix.T
        hidden[level, name] = np.zeros(counts[level, name].shape, bool)
        if withheld is not None:
            hidden[level, name] = withheld(level, counts[level, name])
        counts[level, name] = sp.csr_array(np.where(hidden[level, name], 0, counts[level, name]))
        hidden[level, name] = sp.csr_array(hidden[level, name])
    levels = {level for level, _ in tables}
    return PublishedTables(
        Workload(ABOUT, tables), {n: np.array(g) for n, g in GEOIDS.items() if n in levels}, counts,
        {} if withheld is None else hidden,
    )  # fmt: skip


def all_rows(problem):
    """Return the rows of all levels over blocks times the problem's cells; HIDDEN if withheld."""
    own = problem.system.queries.matrix.toarray()
    rows = [np.kron(np.eye(3, dtype=int), own)]
    counts = [problem.published.toarray().ravel()]
    for larger in problem.larger:
        matrix = larger.coupling.queries.matrix.toarray()
        places = np.eye(len(GEOIDS[larger.level]), dtype=int)[PLACES[larger.level]].T
        rows.append(np.kron(places, matrix))
        counts.append(larger.published.toarray().ravel())
    return np.vstack(rows), np.concatenate(counts)


LEVELS = [
    {("block", "A"): A, ("block", "B"): B, ("part", "AB"): CROSSED},
    {("block", "A"): A, ("block", "W"): WEIGHED, ("city", "B"): B},
    {("block", "A"): A, ("block", "B"): B, ("part", "W"): WEIGHED, ("city", "AB"): CROSSED},
]


def test_a_place_that_contradicts_itself_is_named():
    given = published(LEVELS[0], np.random.default_rng(63).integers(0, 2, (3, 6)))
    counts = dict(given.counts)
    counts["part", "AB"] = sp.csr_array(counts["part", "AB"] + np.array([[5, 0], [0, 0]]))
    broken = PublishedTables(given.workload, given.geoids, counts)
    result = reconstruct(broken, scope="part")
    assert result.status[:2] == ("infeasible", "infeasible")
    assert result.status[2] in ("unique", "feasible")
    assert "part 1: x" in result.conflict[0]


def test_a_missing_place_is_named():
    given = published(LEVELS[0], np.ones((3, 6), int))
    counts = {k: v[[0]] if k[0] == "part" else v for k, v in given.counts.items()}
    less = PublishedTables(
        given.workload, {**given.geoids, "part": given.geoids["part"][:1]}, counts
    )
    with pytest.raises(ArgumentError, match="every part, got none of '2'"):
        reconstruct(less, scope="part")


def everything_that_fits(problem):
    """Return every histogram of all blocks that fits, and which cells are in a published row.

    Cells in none stay at 0: they may hold any number, whatever the others hold.
    """
    rows, counts = all_rows(problem)
    rows, counts = rows[counts != HIDDEN], counts[counts != HIDDEN]
    size = rows.shape[1]
    bound = rows.any(axis=0)
    high = np.zeros(size, int)
    for j in np.flatnonzero(bound):
        held = rows[:, j] > 0
        high[j] = (counts[held] // rows[held, j]).min()
    return solutions(rows, np.zeros(size, int), high, counts, counts), bound


def nothing(rng, share):
    """Withhold nothing."""
    return lambda level, counts: np.zeros(counts.shape, bool)


def some(rng, share):
    """Withhold counts above 0 at random, at every level."""
    return lambda level, counts: (counts > 0) & (rng.random(counts.shape) < share)


def anything(rng, share):
    """Withhold counts at random, at every level."""
    return lambda level, counts: rng.random(counts.shape) < share


def whole_blocks(rng, share):
    """Withhold every count of some blocks, and nothing of larger places."""

    def mask(level, counts):
        gone = rng.random(len(counts)) < share
        return np.repeat(gone[:, None] & (level == "block"), counts.shape[1], axis=1)

    return mask


#: Tables of blocks that leave out everybody but those of b0.
PARTIAL = {
    ("block", "B0"): Table("B0", ("b0",), {"b": np.array([[1, 0, 0]])}),
    ("part", "A"): A,
    ("part", "B"): B,
}


@pytest.mark.parametrize("tables", [*LEVELS, PARTIAL])
@pytest.mark.parametrize("kind", [nothing, some, anything, whole_blocks])
def test_tables_of_several_levels_equal_enumeration(tables, kind):
    rng = np.random.default_rng(65)
    largest = next(n for n in ("city", "part") if any(level == n for level, _ in tables))
    seen, checked = set(), 0
    while checked < 25:
        truth = rng.integers(0, 2, (3, 6)) * rng.integers(0, 3, (3, 6)) // 2
        given = published(tables, truth, kind(rng, rng.choice([0.2, 0.5])))
        problem = published_problem(given, scope=largest)
        try:
            every, bound = everything_that_fits(problem)
        except MemoryError:
            continue
        checked += 1
        assert every  # the truth is among them
        result = reconstruct(given, scope=largest)
        star = result.histogram().toarray()
        kept = bound.reshape(3, -1).all(axis=1)
        seen |= set(result.status)
        for b, status in enumerate(result.status):
            if not kept[b]:
                assert status == "unknown"
                assert "in no published count" in result.conflict[b]
                assert not star[b].any()
                continue
            # A block is unique when its component is; the others need not know.
            assert status in ("unique", "feasible")
            if len({tuple(x.reshape(3, -1)[b]) for x in every}) > 1:
                assert status == "feasible"
        if len(every) == 1:
            assert {s for s, k in zip(result.status, kept, strict=True) if k} <= {"unique"}
        # The records of the blocks that have them belong to one solution of all blocks.
        assert any(np.array_equal(x.reshape(3, -1)[kept], star[kept]) for x in every)
        if kind is nothing and tables is not PARTIAL:
            assert (set(result.status) == {"unique"}) == (len(every) == 1)
            found = solution_variability(given, scope=f"{largest}-joint", solution=result)
            moved = float((2 * found.upper * found.population).sum())
            assert found.status == ("proved",) * len(found.geoids)
            assert moved == pytest.approx(largest_distance(every, star.ravel()), abs=1e-9)
    assert {"unique", "feasible"} <= seen
    if kind is anything:
        assert "unknown" in seen
    if kind is whole_blocks and tables is not LEVELS[0]:  # the place publishes every cell
        assert "unknown" not in seen


def largest_ratio(every, star):
    """Return the largest ``sum |x - x*| / (N + N*)``, which needs no fixed number of records."""
    return max(np.abs(x - star).sum() / max(x.sum() + star.sum(), 1) for x in every)


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("joint", [False, True])
def test_variability_holds_where_the_number_of_records_is_open(share, joint):
    rng, largest = np.random.default_rng(67), "part"
    tables = {
        ("block", "A"): A, ("block", "AB"): CROSSED, ("block", "W"): WEIGHED, ("part", "W"): WEIGHED
    }  # fmt: skip
    varying = proved = 0
    for _ in range(15):
        truth = rng.integers(0, 2, (3, 6)) * rng.integers(0, 4, (3, 6)) // 2
        hide = some(rng, share)
        # The weighted counts are always there, so that no number is unbounded.
        given = published(tables, truth, lambda at, c, h=hide: h(at, c) & (c.shape[1] > 1))
        scope, level = (f"{largest}-joint", largest) if joint else ("block", "block")
        problem = published_problem(given, scope=level)
        every, _ = everything_that_fits(problem)
        result = reconstruct(given, scope=level)
        star = result.histogram().toarray()
        found = solution_variability(given, scope=scope, solution=result)
        assert np.all((found.lower >= 0) & (found.lower <= found.upper) & (found.upper <= 1))
        place = PLACES[level]
        for p, status in enumerate(found.status):
            mine = place == p
            here = {x.reshape(3, -1)[mine].tobytes(): x.reshape(3, -1)[mine] for x in every}
            truth = largest_ratio(here.values(), star[mine])
            assert found.lower[p] <= truth + 1e-12
            assert truth <= found.upper[p] + 1e-12
            assert (status == "proved") == (found.lower[p] == found.upper[p])
            assert (found.upper[p] == 0) == (len(here) == 1)
            varying += len({int(x.sum()) for x in here.values()}) > 1
            proved += status == "proved"
    assert varying > 3
    assert proved > 3


def test_an_open_block_leaves_its_tract_alone():
    # Nothing of the second block is published, and its part publishes only those of age b0.
    only = Table("B0", ("b0",), {"b": np.array([[1, 0, 0]])})
    tables = {("block", "A"): A, ("block", "B"): B, ("part", "B0"): only}
    truth = np.zeros((3, 6), int)
    truth[0, 0], truth[1, 3], truth[2, 4] = 2, 1, 1

    def second(level, counts):
        gone = np.arange(len(counts)) == 1
        return np.repeat(gone[:, None] & (level == "block"), counts.shape[1], axis=1)

    result = reconstruct(published(tables, truth, second), scope="part")
    assert result.status == ("unique", "unknown", "unique")
    assert "no published count (nor in one of its part)" in result.conflict[1]
    assert result.population.tolist() == [2, 0, 1]


def test_what_a_proof_is_about_is_said():
    columns = people(np.random.default_rng(66), [5, 4], races=[1, 2], spread=0.5)
    tables = person_tables(columns)
    exact = reconstruct(tables, scope="tract")
    assert exact.resolution == {"sex": 2, "agebin": 38, "race": 63, "hisp": 2}
    assert set(exact.to_frame()) - {"block", *exact.resolution} == {"age"}
    key = ("block", "P12")
    hidden = {key: sp.csr_array(np.ones(tables.counts[key].shape, bool))}
    counts = {**tables.counts, key: sp.csr_array(tables.counts[key] * 0)}
    secret = PublishedTables(tables.workload, tables.geoids, counts, hidden)
    # Tables of the tract without a withheld cell: bins, and years given afterwards.
    found = reconstruct(secret, scope="tract")
    assert found.resolution == exact.resolution
    assert sorted(found.to_frame()["age"]) == sorted(columns["age"].tolist())
    key = ("tract", "PCT12I")
    hidden |= {key: sp.csr_array(np.ones(tables.counts[key].shape, bool))}
    counts |= {key: sp.csr_array(tables.counts[key] * 0)}
    secret = PublishedTables(tables.workload, tables.geoids, counts, hidden)
    found = reconstruct(secret, scope="tract")
    assert found.resolution == {"sex": 2, "agebin": 103, "race": 63, "hisp": 2}
    assert "age" not in found.to_frame()
    # Its records, on coarser cells, are a solution of the tables of blocks too.
    bounds = solution_variability(secret, scope="block", solution=found)
    assert set(bounds.status) <= {"proved", "feasible"}


def withheld_by_hand(tables, least):
    """Withhold every count from 1 to ``least`` - 1, at both levels."""
    hidden = {k: sp.csr_array((c.toarray() > 0) & (c.toarray() < least))
              for k, c in tables.counts.items()}  # fmt: skip
    counts = {k: sp.csr_array(c * ~hidden[k].toarray()) for k, c in tables.counts.items()}
    return PublishedTables(tables.workload, tables.geoids, counts, hidden)


@pytest.mark.parametrize("how", ["by hand", "suppression"])
def test_the_tables_of_the_tract_only_add_to_withheld_ones(how):
    rng = np.random.default_rng(68)
    columns = people(rng, [1, 2, 15, 4, 1, 25], races=[1, 2], spread=0.5)
    columns["age"] = rng.choice([3, 31, 32], size=len(columns["age"]))
    if how == "by hand":
        secret = withheld_by_hand(person_tables(columns), 3)
    else:
        records = Records.from_frame(pd.DataFrame(columns), schema=Schema.named("sf1-person"))
        # Of the blocks only: what the mechanism withholds of both levels settles less.
        own = (
            Suppression(threshold=3)
            .release(records, workload=Workload.named("sf1-block"), places="occupied")
            .tables
        )
        whole = tabulate(records, Workload.named("sf1-tract"))
        secret = PublishedTables(
            Workload.named("sf1-block").union(Workload.named("sf1-tract")),
            {**own.geoids, **whole.geoids},
            {**own.counts, **whole.counts},
            own.suppressed,
        )
    alone, together = (reconstruct(secret, scope=scope) for scope in ("block", "tract"))
    solved = [np.array([s in ("unique", "feasible") for s in r.status]) for r in (alone, together)]
    assert "unknown" in alone.status  # blocks of one or two: nothing is published but zeros
    assert np.all(solved[1] >= solved[0])
    assert solved[1].sum() > solved[0].sum()
    # The records reproduce all that was published of the tract and of the blocks.
    problem, star = together.problem, together.histogram()
    own = sp.csr_array(star @ problem.system.queries.matrix.T).toarray()
    shown = problem.published.toarray()
    known = (shown != HIDDEN) & solved[1][:, None]
    assert np.array_equal(own[known], shown[known])
    assert solved[1].all()
    if how == "by hand":  # solved with the ages of the tract
        matrix = problem.larger[0].coupling.queries.matrix
        wanted = problem.larger[0].published.toarray().ravel()
        found = star.sum(axis=0) @ matrix.T.toarray()
        assert np.array_equal(found[wanted != HIDDEN], wanted[wanted != HIDDEN])
    else:  # solved with 38 bins, the ages filled in
        columns = ["block", "sex", "age", "race", "hisp"]
        filled = Records.from_frame(together.to_frame()[columns], schema=Schema.named("sf1-person"))
        assert tabulate(filled, Workload.named("sf1-tract")) == whole
