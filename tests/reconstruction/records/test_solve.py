"""Records that are put and taken one by one, against enumeration of all that fit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from oracles.reconstruction import people, person_tables, solutions
from random_places import publish

from bayesrisk.reconstruction import count_bounds, reconstruct
from bayesrisk.reconstruction.records import climb as module, kernels
from bayesrisk.reconstruction.records.climb import Climb, climb, climb_block, has_others, incidence
from bayesrisk.reconstruction.records.problem import published_problem
from bayesrisk.release import RangeSpec, RoundingSpec, SuppressedCounts
from bayesrisk.tables.likelihoods import UNBOUNDED

RANGES = RangeSpec((0, 1, 3, 6), (0, 1, 3, 6))


def columns(matrix):
    """Return pointers and rows of the cells of a matrix of 0 and 1."""
    made = sp.csr_array(np.asarray(matrix).T)
    return made.indptr.astype(np.int64), made.indices.astype(np.int64)


def climbed(matrix, low, high):
    """Return the cells that may be used, the state after the climb, and whether it arrived."""
    cell = np.flatnonzero([(high[column > 0] > 0).all() for column in np.asarray(matrix).T])
    rows, cells = low.size, cell.size
    links = incidence(*columns(matrix), cell, rows)
    sizes = cells, rows, rows, cells, cells
    work = (np.zeros(size, np.int64) for size in sizes)
    w = Climb(*links, low, high, np.zeros(cells, np.int64), np.full(cells, UNBOUNDED), *work)
    return cell, w, bool(cells) and climb(w, 1000)


def every(matrix, low, high):
    """Return all histograms of at most four records in a cell that fit."""
    size = matrix.shape[1]
    return solutions(matrix, np.zeros(size, int), np.full(size, 4), low, high)


@st.composite
def problems(draw):
    """Return a matrix whose cells all have a row, and two ends of at most 4 for each row."""
    rows, cells = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    bits = st.lists(st.booleans(), min_size=rows * cells, max_size=rows * cells)
    matrix = np.array(draw(bits), int).reshape(rows, cells)
    matrix[draw(st.integers(0, rows - 1))] = 1
    ends = [sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))) for _ in range(rows)]
    low, high = np.array(ends, np.int64).T.copy()
    return matrix, low, high


def fits(matrix, low, high, x):
    """Return whether all sums are between their ends."""
    sums = matrix @ x
    return bool(np.all((low <= sums) & (sums <= high)) and np.all(x >= 0))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_what_a_climb_finds_fits_every_row_and_others_are_there(problem):
    matrix, low, high = problem
    cell, w, arrived = climbed(*problem)
    x = np.zeros(matrix.shape[1], np.int64)
    x[cell] = w.records
    known = every(*problem)
    if not known:
        assert not arrived
    if not cell.size:
        return
    assert np.array_equal(w.total, matrix @ x)
    far = np.maximum(low - w.total, 0) + np.maximum(w.total - high, 0)
    # The gain of a cell is the change of sum w d by one more record in it.
    more = w.total[:, None] + matrix[:, cell]
    after = np.maximum(low[:, None] - more, 0) + np.maximum(more - high[:, None], 0)
    assert np.array_equal(w.gain, w.weight @ (after - far[:, None]))
    assert arrived == (far.sum() == 0)
    if arrived:
        assert fits(matrix, low, high, x)
        assert any(np.array_equal(x, one) for one in known)
        others = has_others(w)
        assert np.array_equal(w.total, matrix @ x)
        assert not others or len(known) > 1


@settings(max_examples=300, deadline=None)
@given(problems(), st.data())
def test_a_climb_within_bounds_is_of_several_that_fit_or_says_nothing(problem, data):
    """Against enumeration within the bounds; with one list, or none, nothing may be said."""
    matrix, low, high = problem
    size = matrix.shape[1]
    ends = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    least, more = (np.array(data.draw(ends), np.int64) for _ in range(2))
    links = incidence(*columns(matrix), np.arange(size), low.size)
    found, x = climb_block(links, low, high, least, least + more)
    known = list(solutions(matrix, least, least + more, low, high))
    if found:
        assert any(np.array_equal(x, one) for one in known)
    assert not (found and len(known) < 2)


def test_others_that_are_two_records_away_are_found():
    """Two binary margins of two people each: only an exchange between two records leads on."""
    matrix = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    ends, none = np.ones(4, np.int64), np.zeros(4, np.int64)
    links = incidence(*columns(matrix), np.arange(4), 4)
    found, x = climb_block(links, ends, ends, none, none + 9)
    assert found
    assert np.array_equal(matrix @ x, ends)
    _, w, arrived = climbed(matrix, ends, ends)
    assert arrived
    assert not has_others(w)
    # With one of the cells full there is a single list, and no other is claimed.
    assert not climb_block(links, ends, ends, none, np.array([0, 9, 9, 9]))[0]


def test_an_answer_with_a_record_more_or_less_does_not_fit():
    matrix, ends = np.ones((1, 3), int), np.array([2])
    cell, w, arrived = climbed(matrix, ends, ends)
    assert (arrived, cell.tolist()) == (True, [0, 1, 2])
    assert fits(matrix, ends, ends, w.records)
    for change in np.vstack([np.eye(3, dtype=int), -np.eye(3, dtype=int)]):
        assert not fits(matrix, ends, ends, w.records + change)


def test_small_problems_that_have_an_answer_are_mostly_climbed():
    """Where none is found programs decide: a climb that never arrived would be a slow one."""
    rng, arrived = np.random.default_rng(1), []
    for _ in range(300):
        matrix = rng.integers(0, 2, (4, 6))
        matrix[0] = 1
        sums = matrix @ rng.poisson(0.6, 6)
        low = np.maximum(sums - rng.integers(0, 3, 4), 0)
        cell, _, found = climbed(matrix, low, sums + rng.integers(0, 3, 4))
        arrived.append(found or not cell.size)
    assert np.mean(arrived) > 0.9


def coarse(law, sizes=(3, 6, 9, 20)):
    """Return tables of persons of some blocks under a law."""
    true = person_tables(people(np.random.default_rng(3), list(sizes), spread=0.5), tract=False)
    rng = np.random.default_rng(4)
    made = {key: publish(rng, law, part.toarray()) for key, part in true.counts.items()}
    counts = {key: sp.csr_array(given) for key, (given, _) in made.items()}
    hidden = {key: sp.csr_array(own) for key, (_, own) in made.items() if own.any()}
    return replace(true, counts=counts, suppressed=hidden, laws=dict.fromkeys(counts, law))


def test_records_are_the_same_each_time_and_in_any_company():
    for law in (RoundingSpec(3, "nearest"), RANGES):
        tables = coarse(law)
        first = reconstruct(tables, scope="block")
        again = reconstruct(tables, scope="block")
        for name in ("block", "cell", "count"):
            assert getattr(first, name).tobytes() == getattr(again, name).tobytes()
        held = first.histogram().toarray()
        for at in range(len(first.geoids)):
            counts = {key: part[[at]] for key, part in tables.counts.items()}
            geoids = {"block": tables.geoids["block"][[at]]}
            alone = reconstruct(replace(tables, geoids=geoids, counts=counts), scope="block")
            assert np.array_equal(alone.histogram().toarray()[0], held[at])


def test_bounds_of_cells_are_made_once_for_climb_programs_and_ends_of_counts(monkeypatch):
    """Blocks that the climb leaves to programs, too: the kernel of bounds runs once for all."""
    tables, calls = coarse(SuppressedCounts(1, 2)), []
    bound, right = kernels.solve_blocks, climb_block

    def small(links, low, *ends):
        found, count = right(links, low, *ends)
        return found and low.max() < 4, count

    monkeypatch.setattr(kernels, "solve_blocks", lambda *given: calls.append(1) or bound(*given))
    monkeypatch.setattr(module, "climb_block", small)
    assert set(reconstruct(tables, scope="block").status) <= {"unique", "feasible"}
    assert len(calls) == 1
    count_bounds(tables, node_limit=5)
    assert len(calls) == 2
    problem = published_problem(tables, scope="block")
    alone = problem.part(np.array([1, 3])).bounds
    assert set(module.climbed_records(problem)[1].tolist()) >= {1, 2, 3}
    known = vars(problem.part(np.array([1, 3])))["bounds"]
    for name in ("status", "culprit", "block", "cell", "low", "high"):
        assert np.array_equal(getattr(alone, name), getattr(known, name))


def test_a_block_that_contradicts_itself_is_left_to_programs():
    tables = coarse(RoundingSpec(3, "nearest"))
    total = next(key for key, part in tables.counts.items() if part.shape[1] == 1)
    counts = tables.counts[total].toarray()
    counts[2] += 30
    broken = replace(tables, counts={**tables.counts, total: sp.csr_array(counts)})
    rest = module.climbed_records(published_problem(broken, scope="block"))[1]
    assert 2 in rest
    made = reconstruct(broken, scope="block")
    assert [status == "infeasible" for status in made.status] == [False, False, True, False]
    assert made.conflict[2]
    assert not made.conflict[0]


@pytest.mark.parametrize("law", [RoundingSpec(3, "nearest"), RANGES], ids=["nearest", "ranges"])
def test_a_climb_that_is_wrong_is_seen(law, monkeypatch):
    """A record too many, said to fit: counts are tabulated again, and programs take over."""
    right = climb_block

    def wrong(*rows):
        count = right(*rows)[1]
        count[0] += 50
        return True, count

    monkeypatch.setattr(module, "climb_block", wrong)
    tables = coarse(law, sizes=(3, 6))
    made = reconstruct(tables, scope="block")
    problem = published_problem(tables, scope="block")
    sums = made.histogram().toarray() @ problem.system.queries.matrix.toarray().T
    low, high = problem.ranges.whole(slice(None))
    assert set(made.status) <= {"feasible", "unique"}
    assert np.all((low <= sums) & (sums <= high))
