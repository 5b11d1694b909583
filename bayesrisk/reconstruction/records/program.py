"""Programs: cells whose bounds are apart, and the rows that bind them, in components."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.components import Components, components
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.propagation import (
    ProgramArrays,
    SearchWork,
    program_arrays,
    propagate_components,
    search_work,
)
from bayesrisk.constraints.rows import expand
from bayesrisk.reconstruction.records.problem import BlockBounds, Problem, RowSource
from bayesrisk.tables.likelihoods import UNBOUNDED


@dataclass(frozen=True)
class Program:
    """Free cells with their bounds, and the rows that bind them, in components.

    ``entry``, ``block`` and ``cell`` say which of the given cells each variable is; ``source``,
    ``group`` and ``row`` where each row comes from, and ``family`` which others share none of its
    cells.
    """

    parts: Components
    family: IntArray
    entry: IntArray
    block: IntArray
    cell: IntArray
    source: IntArray
    group: IntArray
    row: IntArray

    @property
    def model(self) -> IntegerModel:
        """The bounds of the cells and the rows."""
        return self.parts.model

    @cached_property
    def arrays(self) -> ProgramArrays:
        """The program as a search takes it."""
        return program_arrays(self.parts, self.family)

    def work(self) -> SearchWork:
        """Return fresh working arrays of a search."""
        return search_work(self.arrays, self.model.low, self.model.high)

    def component_blocks(self, component: int) -> IntArray:
        """Return the blocks that have a cell in a component."""
        first, last = self.parts.first_var[component : component + 2]
        return np.unique(self.block[first:last])


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: BoolArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and both residual ends of rows with free cells, and entries (row, var, coef)."""
    n_rows = source.family.size
    position, owner = expand(source.columns.ptr, cell)
    base = block if source.single_block else source.group[block]
    key = base[owner] * n_rows + source.columns.row[position]
    coef = source.columns.coef[position]
    open_entry = free[owner]
    keys, row = np.unique(key[open_entry], return_inverse=True)
    group = keys // n_rows
    if source.single_block:
        group = source.group[group]
    least, most = source.ranges.ends(group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    index = np.searchsorted(keys, key[~open_entry])
    index = np.minimum(index, max(keys.size - 1, 0))
    fixed = coef[~open_entry] * low[owner[~open_entry]]
    inside = keys[index] == key[~open_entry] if keys.size else np.zeros(0, bool)
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, index[inside], fixed[inside])
    # What a row asks for may be there already; one without an upper end then says nothing.
    endless = most == UNBOUNDED
    published = ~endless | (least > settled) | source.required
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (least - settled)[published],
        np.where(endless, UNBOUNDED, most - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells (of ``block``, ``cell``) whose bounds are apart.

    Counts of settled cells, ``low == high``, are taken off the counts of their rows.  Variables and
    rows are sorted by component.
    """
    free = low < high
    pieces = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in pieces]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[3] + offset[index] for index, p in enumerate(pieces)])
    keys, least, most, _, entry_var, coef = (np.concatenate(p) for p in zip(*pieces, strict=True))
    source = np.repeat(np.arange(len(sources)), sizes)
    # A key is the group, times the rows of its source, plus the row.
    group, row_id = np.divmod(keys, np.array([s.family.size for s in sources])[source])
    first = np.concatenate([[0], np.cumsum([s.family.size for s in sources])[:-1]])[source]
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])[:-1]])
    family = np.concatenate([s.family for s in sources])[first + row_id] + shift[source]
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    # No row has a larger end than its cells: certificates stay within whole numbers.
    room = np.zeros(n_rows, np.int64)
    np.add.at(room, entry_row, coef * high[free][entry_var])
    most = np.where(most > least, np.clip(most, least, np.maximum(room, least)), most)
    matrix = sp.csr_array((coef, (entry_row, entry_var)), shape=(n_rows, n_vars))
    least = np.where(equal, least, 0)
    parts = components(IntegerModel(low[free], high[free], matrix, least, most))
    index, order = np.flatnonzero(free)[parts.variable], parts.row
    return Program(
        parts, family[order], index, block[index], cell[index], source[order], group[order],
        row_id[order],
    )  # fmt: skip


def open_program(
    problem: Problem,
    bounds: BlockBounds,
    good: BoolArray,
    *,
    bounds_only: bool = False,
) -> tuple[Program, dict[int, int], IntArray, IntArray]:
    """Return the program that all rows leave open, contradictions, and the tightened bounds.

    Only blocks that are ``good`` are looked at; with ``bounds_only`` coupling rows hold for every
    block as upper bounds.  Contradictions are the blocks of components without a solution, each
    with the row of the program that contradicts; the bounds are those of the cells of ``bounds``.
    """
    first, *larger = problem.rows
    if bounds_only:
        larger = [replace(rows, equal=False, single_block=True) for rows in larger]
    low, high = bounds.low.copy(), bounds.high.copy()
    inside = np.flatnonzero(good[bounds.block])
    block, cell = bounds.block[inside], bounds.cell[inside]
    wrong: dict[int, int] = {}
    while True:  # ends: each round settles a cell that the last one left open
        program = build_program([first, *larger], block, cell, low[inside], high[inside])
        work = program.work()
        culprit = np.full(program.parts.size, -1, np.int64)
        propagate_components(program.arrays, work, culprit)
        for k in np.flatnonzero(culprit >= 0):
            wrong.update((int(b), int(culprit[k])) for b in program.component_blocks(int(k)))
        low[inside[program.entry]], high[inside[program.entry]] = work.low, work.high
        if wrong or not np.any((work.low == work.high) & (program.model.low < program.model.high)):
            return program, wrong, low, high
