"""Steps of chains on lattice points against laws that are added up over all points."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from bayesrisk.inference.microdata.chains import lattice, make_moves
from bayesrisk.inference.microdata.lattice_moves import (
    _random_record,
    combine_near,
    combine_small,
    span_sums,
    walks,
)

TOP = 3


def system_of(rng, groups, hard):
    """Return random soft rows over some groups, with as many hard rows of 0 and 1 as are given."""
    soft = rng.integers(0, 3, (2, groups))
    rows = np.concatenate([np.array(hard, np.int64).reshape(-1, groups), soft])
    is_hard = np.arange(len(rows)) < len(rows) - 2
    # all sums that TOP records of each group may have, some of them impossible
    sizes = TOP * rows.sum(axis=1) + 1
    weights = [np.where(rng.random(n) < 0.2, -np.inf, rng.normal(size=n)) for n in sizes]
    return SimpleNamespace(
        model=SimpleNamespace(rows=sp.csr_array(rows)),
        hard=is_hard,
        row_weights=weights,
        priors=tuple(rng.normal(size=(groups, TOP + 1))),
        mass=rng.random(groups) + 0.1,
    )


def law_of(system, start):
    """Return the log weight of every point that single records can lead to, and the points."""
    rows, points = system.model.rows.toarray(), {}
    for x in itertools.product(range(TOP + 1), repeat=rows.shape[1]):
        sums = rows @ x
        if np.any((sums != rows @ start) & system.hard):
            continue
        soft = sum(system.row_weights[r][sums[r]] for r in np.flatnonzero(~system.hard))
        value = soft + sum(p[n] for p, n in zip(system.priors, x, strict=True))
        if value > -np.inf:
            points[x] = value
    # those that a record less, more or of another group leads to, step by step
    found, queue = {start}, [start]
    columns = rows[system.hard].T
    while queue:
        x = queue.pop()
        for old, new in itertools.permutations(range(-1, len(x)), 2):
            before = columns[old] if old >= 0 else 0 * columns[0]
            after = columns[new] if new >= 0 else 0 * columns[0]
            y = tuple(n + (g == new) - (g == old) for g, n in enumerate(x))
            if np.array_equal(before, after) and y in points and y not in found:
                found.add(y)
                queue.append(y)
    weight = np.exp(np.array([points[x] for x in sorted(found)]))
    return sorted(found), weight / weight.sum()


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    hard=st.sampled_from([[], [[1, 1, 1, 1]], [[1, 1, 0, 0]], [[1, 1, 0, 0], [0, 0, 1, 1]]]),
)
def test_steps_of_one_record_keep_the_law(seed, hard):
    rng = np.random.default_rng(seed)
    system = system_of(rng, 4, hard)
    rows, start = system.model.rows, (1, 1, 1, 1)
    for r in np.flatnonzero(~system.hard):  # where the chain begins is possible
        system.row_weights[r][(rows @ np.array(start))[r]] = 0.0
    of = lattice(system, np.zeros((0, 4), np.int64))
    of = of._replace(chances=np.array([1.0, of.chances[1]]))  # single records alone
    points, law = law_of(system, start)
    draws = 40_000
    counts, sums = np.empty((draws, 4), np.int64), np.empty((draws, rows.shape[0]), np.int64)
    x = np.array(start)
    state = (x, span_sums(x), rows @ x, np.zeros(TOP + 2))
    walks(np.random.default_rng(seed + 1), of, *state, 25, counts, sums)
    assert np.array_equal(sums, (rows @ counts.T).T)
    number = {point: i for i, point in enumerate(points)}
    seen = np.bincount([number[tuple(c)] for c in counts.tolist()], minlength=len(points)) / draws
    # half of the summed differences: 1,000 independent draws of so many points would give more
    assert np.abs(seen - law).sum() / 2 < 0.4 * np.sqrt(len(points) / 1000)


@pytest.mark.parametrize(
    ("hard", "block", "loose"),
    [
        ([], [0, 0, 0, 0], True),
        ([[1, 1, 1, 1]], [1, 1, 1, 1], False),
        ([[1, 1, 0, 0]], [1, 1, 0, 0], True),
        ([[1, 2, 3, 4]], [-1, -1, -1, -1], False),
    ],
)
def test_records_change_among_groups_of_equal_hard_columns(hard, block, loose):
    system = system_of(np.random.default_rng(0), 4, hard)
    of = lattice(system, np.zeros((0, 4), np.int64))
    assert of.block.tolist() == block
    assert (of.chances[1] > 0) == loose
    assert (of.chances[0] > 0) == (max(block) >= 0)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(0, 3), min_size=1, max_size=100), seed=st.integers(0, 2**32 - 1))
def test_a_random_record_is_that_of_its_place_in_order(counts, seed):
    x = np.array([*counts, 1])
    u = np.random.default_rng(seed).random()
    group = _random_record(np.random.default_rng(seed), x, span_sums(x), x.sum())
    assert group == np.repeat(np.arange(x.size), x)[int(u * x.sum())]


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 6), st.integers(1, 8)),
    size=st.sampled_from([1, 3, 200, 70_000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_moves_are_different_up_to_their_sign_and_in_order(shape, size, seed):
    basis = np.random.default_rng(seed).integers(-size, size + 1, shape)
    moves = make_moves(basis, basis[:0], np.random.default_rng(seed), 20)
    assert np.array_equal(moves, np.unique(moves, axis=0))
    first = moves[np.arange(len(moves)), np.argmax(moves != 0, axis=1)]
    assert (first > 0).all()
    rows = {tuple(z) for z in moves.tolist()}
    assert all(tuple(z) in rows or tuple(-z) in rows for z in basis if z.any())


def test_combinations_prefer_moves_that_share_groups():
    """A move that shares both groups comes with weight 2.05, one that shares none with .05."""
    basis = np.array([[1, -1, 0, 0], [1, -1, 0, 0], [0, 0, 1, -1]])
    near = (basis != 0).astype(int) @ (basis != 0).astype(int).T
    out, rng = np.empty((20_000, 4), np.int64), np.random.default_rng(3)
    number = combine_near(rng, basis, near, 10**6, np.empty(3), out)
    # Of two-move combinations that start with the third, 2.05 of 2.15 add or take the third again.
    assert 0 < number <= len(out)  # z - z is nothing, and not kept
    mixed = out[:number, :2].any(axis=1) & out[:number, 2:].any(axis=1)
    assert 0.02 < mixed.mean() < 0.2
    short = combine_near(np.random.default_rng(3), basis, near, 2, np.empty(3), out)
    assert np.abs(out[:short]).sum(axis=1).max() == 2
    assert short < number


def test_small_combinations_take_back_changes_of_soft_sums():
    """Two moves that change the same sum by 5 nearly always cancel, a third that changes none."""
    basis, changes = np.eye(3, dtype=np.int64), np.array([[5], [5], [0]])
    overlap = changes @ changes.T
    out, work = np.empty((4000, 3), np.int64), np.empty((2, 3))
    number = combine_small(np.random.default_rng(5), basis, overlap, work[0], work[1], out)
    assert number == len(out)  # each move at most once: none is nothing
    assert np.abs(out).max() == 1
    change = np.abs(out @ changes).ravel()
    paired = out[:, :2].all(axis=1)
    assert (change[paired] == 0).all()
    assert paired.mean() > 0.5
