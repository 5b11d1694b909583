"""A geography with its measurements: prepared once, solved from the top down for every draw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._validation import IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.topdown.estimation import solve_family
from bayesrisk.mechanisms.topdown.families import ExactSets, Family, Lookahead, Query, Zeros

Rows = sparse.csr_array
#: Returns the integer counts of the children of a node, (children, cells).
Solve = Callable[[Family], IntArray]


@dataclass(frozen=True)
class Measured:
    """A table that is measured at a level: rows over all cells, true answers, noise, weight."""

    rows: sparse.csc_array
    answers: Rows
    law: DiscreteGaussian
    weight: float


@dataclass(frozen=True)
class Level:
    """One level of the tree."""

    name: str  # its name
    geoids: NDArray[np.str_]  # nodes in order; the children of a node are neighbours
    # where the children of each node of the level above start, and the end; at the top every node
    # is a family of its own
    first: IntArray
    measured: tuple[Measured, ...]  # tables
    exact: ExactSets  # what the children keep exactly
    zeros: Zeros  # public zeros
    controlled: Rows  # sets whose totals are rounded to a neighbour
    lookahead: dict[int, Lookahead] = field(default_factory=dict)  # by node, where needed


def _noisy(level: Level, nodes: slice, rng: np.random.Generator) -> list[IntArray]:
    """Return the noisy answers of some nodes, (nodes, rows) for each table."""
    found = []
    for table in level.measured:
        answers = table.answers[nodes].toarray()
        answers += table.law.rvs(answers.shape, rng)
        found.append(answers)
    return found


def _family(
    level: Level, nodes: slice, parent: IntArray | None, noisy: list[IntArray]
) -> tuple[Family, IntArray]:
    """Return the problem of some nodes, and the cells it is about."""
    exact, zeros = level.exact, level.zeros
    totals = exact.totals[nodes]
    cells = np.arange(zeros.kinds.size) if parent is None else np.flatnonzero(parent)
    sets = sparse.csr_array(exact.sets[:, cells])
    live = zeros.allowed[nodes][:, zeros.kinds[cells]]
    if sets.shape[0]:
        live = live & ((totals == 0).astype(np.int64) @ sets == 0)  # an exact zero empties its set
    if parent is None:
        cells, sets, live = _compress(cells, sets, live)
    elif not live.any(axis=0).all():
        raise DataError(
            f"level {level.name!r}: public zeros and invariants leave no place for a count above"
        )
    ahead = [
        (child, replace(found, classes=found.classes[cells]))
        for child, node in enumerate(range(nodes.start, nodes.stop))
        if (found := level.lookahead.get(node)) is not None
    ]
    queries = tuple(
        Query(table.rows[:, cells], table.weight, answers)
        for table, answers in zip(level.measured, noisy, strict=True)
    )
    counts = None if parent is None else parent[cells]
    controlled = sparse.csr_array(level.controlled[:, cells])
    return Family(live, counts, queries, sets, totals, controlled, tuple(ahead)), cells


def _compress(
    cells: IntArray, sets: Rows, live: NDArray[np.bool_]
) -> tuple[IntArray, Rows, NDArray[np.bool_]]:
    """Drop the cells that no node can hold."""
    kept = np.flatnonzero(live.any(axis=0))
    return cells[kept], sparse.csr_array(sets[:, kept]), live[:, kept]


def _families(level: Level) -> Iterator[slice]:
    for start, stop in zip(level.first[:-1], level.first[1:], strict=True):
        yield slice(int(start), int(stop))


def solve_level(
    level: Level, above: Rows | None, rng: np.random.Generator, solve: Solve = solve_family
) -> Rows:
    """Return the integer histograms of a level, given those of the level above.

    Noise is drawn for every node in order, used or not, so that two runs with one seed differ
    only where their data do.
    """
    size = level.zeros.kinds.size
    rows: list[IntArray] = []
    columns: list[IntArray] = []
    counts: list[IntArray] = []
    for number, nodes in enumerate(_families(level)):
        parent = None if above is None else above[[number]].toarray().ravel()
        noisy = _noisy(level, nodes, rng)
        if parent is not None and not parent.any():
            continue
        family, cells = _family(level, nodes, parent, noisy)
        solved = solve(family)
        child, cell = np.nonzero(solved)
        rows.append(nodes.start + child)
        columns.append(cells[cell])
        counts.append(solved[child, cell])
    shape = (level.geoids.size, size)
    if not counts:
        return sparse.csr_array(shape, dtype=np.int64)
    triplets = np.concatenate(counts), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array(triplets, shape=shape)


def solve_tree(
    levels: tuple[Level, ...], rng: np.random.Generator, solve: Solve = solve_family
) -> list[Rows]:
    """Return the histograms of every level, coarse to fine; children add up to parents."""
    solved: list[Rows] = []
    for level in levels:
        solved.append(solve_level(level, solved[-1] if solved else None, rng, solve))
    return solved
