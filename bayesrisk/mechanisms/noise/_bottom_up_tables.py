"""What the bottom-up post-processing does to each table: who is scaled, derived, bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.tabulation import different_cells
from bayesrisk.tables import Table, Workload

Rows = sparse.csr_array


@dataclass(frozen=True)
class Roles:
    """How each table of a workload comes about.

    Attributes
    ----------
    measured : tuple of str
        Tables that get noise.
    split : tuple of str
        Those of them in whose cells every record is exactly once: scaled to the universe.
    derived : mapping of str to (str, ndarray)
        Tables that are a linear function (cells, cells of the source) of a split table.
    exact : tuple of str
        Tables that are published as they are, the universe first.
    """

    measured: tuple[str, ...]
    split: tuple[str, ...]
    derived: Mapping[str, tuple[str, IntArray]]
    exact: tuple[str, ...]


def roles(workload: Workload, *, universe: str, exact: tuple[str, ...]) -> Roles:
    """Return the role of every table: exact, measured, or computed from a measured one."""
    tables = {name: table for (_, name), table in workload.tables.items()}
    for name in (universe, *exact):
        if name not in tables:
            raise ArgumentError(
                f"universe and exact must name tables of the workload, got {shown(name)}"
            )
    rows = _rows(workload, tables)
    if rows[universe].shape[0] != 1 or not _is_split(rows[universe]):
        raise ArgumentError(
            f"universe must be one cell that counts every record, got {shown(universe)}"
        )
    open_tables = [name for name in tables if name not in (universe, *exact)]
    finest_first = sorted(open_tables, key=lambda name: -rows[name].shape[0])
    split: list[str] = []
    for name in finest_first:
        if _is_split(rows[name]) and _source(rows, split, name) is None:
            split.append(name)
    derived = {
        name: found
        for name in open_tables
        if name not in split and (found := _source(rows, split, name)) is not None
    }
    measured = tuple(name for name in open_tables if name not in derived)
    kept = tuple(name for name in measured if name in split)
    return Roles(measured, kept, derived, tuple(dict.fromkeys((universe, *exact))))


def _rows(workload: Workload, tables: Mapping[str, Table]) -> dict[str, Rows]:
    """Return every table over the kinds of records that the tables tell apart."""
    cells = different_cells(workload.schema, list(tables.values()))
    return {name: table.incidence(workload.schema, cells) for name, table in tables.items()}


def _source(rows: Mapping[str, Rows], split: list[str], name: str) -> tuple[str, IntArray] | None:
    """Return the first split table that a table is a function of, and the function."""
    found = ((source, _function(rows[source], rows[name])) for source in split)
    return next(((source, matrix) for source, matrix in found if matrix is not None), None)


def _is_split(rows: Rows) -> bool:
    """Return whether every record is in exactly one cell."""
    return bool(np.all(rows.sum(axis=0) == 1))


def _function(source: Rows, target: Rows) -> IntArray | None:
    """Return M with ``target = M @ source`` if the target is a function of the source's cell."""
    cell = sparse.csc_array(source).indices
    first = np.full(source.shape[0], -1, dtype=np.int64)
    first[cell[::-1]] = np.arange(cell.size)[::-1]
    matrix = np.zeros((target.shape[0], source.shape[0]), dtype=np.int64)
    used = first >= 0
    matrix[:, used] = target[:, first[used]].toarray()
    difference = sparse.csr_array(sparse.csr_array(matrix) @ source - target)
    return None if difference.count_nonzero() else matrix


def scale_to(noisy: IntArray, totals: IntArray, rng: np.random.Generator) -> IntArray:
    """Return whole counts in proportion to non-negative ones, that add up to the totals.

    Largest remainders, in exact integers; ties fall at random.  Where nothing is left after
    clipping, all cells are alike.

    Parameters
    ----------
    noisy : ndarray of int64, (places, cells)
        Counts, >= 0, each sum times its total below 2**63.
    totals : ndarray of int64, (places,)
        Totals, >= 0.
    rng : Generator
        Breaks ties.
    """
    counts = np.where(noisy.any(axis=1, keepdims=True), noisy, 1)
    whole = counts.sum(axis=1, keepdims=True)
    share, remainder = np.divmod(counts * totals[:, None], whole)
    missing = totals - share.sum(axis=1)
    ties = rng.random(counts.shape)
    order = np.lexsort((ties, -remainder), axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(counts.shape[1])[None, :], axis=1)
    scaled: IntArray = share + (rank < missing[:, None])
    return scaled


def largest_changes(workload: Workload, tables: Sequence[str], kind: str) -> dict[str, int]:
    """Return the square of how far one record can move each table of the smallest places."""
    level = workload.levels[-1]
    return {
        name: workload.select(levels=[level], tables=[name]).largest_change(kind, norm=2)
        for name in tables
    }


def check_plan(workload: Workload, found: Roles, bounds: Mapping[str, str]) -> None:
    """Check bounds, and that what is published above is published at the finest level."""
    finest = workload.at(workload.levels[-1])
    for (level, name), table in workload.tables.items():
        if name not in finest or finest[name] != table:
            raise ArgumentError(
                f"workload must have table {name!r} of level {level!r} at {workload.levels[-1]!r}"
            )
    for name, bound in bounds.items():
        if name not in found.measured or name in found.split or bound not in finest:
            raise ArgumentError(
                f"bounds must map measured tables that are not scaled to tables, "
                f"got {shown(name)}: "
                f"{bound!r}"
            )
        if len(finest[name].cells) != 1 or len(finest[bound].cells) != 1:
            raise ArgumentError(
                f"bounds must be of tables of one cell, got {shown(name)}: {shown(bound)}"
            )
