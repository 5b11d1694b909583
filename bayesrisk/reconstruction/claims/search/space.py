"""The cells that claims are about: groups of codes, possible cells, and tables over them.

Codes of an attribute that no table separates count as one value. The possible cells are listed
once. Tables that cross the same attributes form a family. One look-up per family says whether a
published zero rules out a cell.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import BoolArray, CodeArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables import Table
from bayesrisk.tables.cells import CellSpace, Queries, crossed_weights, table_cells
from bayesrisk.tables.schema import CELL_RULES, Schema

#: Most possible cells that are listed.
MAX_CELLS = 2_000_000
HOUSEHOLD = "household-dhc"
TENURES = ("merged", "cash", "four-way")
_NO_RENT = 4
#: Possible cells that are looked at together: more would take memory, fewer time.
_AT_ONCE = 2**18
#: Most cells of the cross of a family of tables.
_MAX_CROSS = 2_000_000


@dataclass(frozen=True)
class CrossedTables:
    """Published cells of the tables that cross the same attributes.

    ``weight`` is that of each of them in the cross of the attributes, ``place`` where in the
    cross each possible cell lies.
    """

    query: IntArray
    weight: CodeArray
    place: NDArray[np.int32]


@dataclass(frozen=True)
class Stated:
    """The cells that each published cell counts: the codes they share, and their number.

    ``value`` is the code of each attribute that all cells share, -1 if they differ. ``width`` is
    their number, -1 if a published cell is no plain count of cells that claims can be about.
    """

    query: IntArray
    value: CodeArray
    width: IntArray


@dataclass(frozen=True)
class ClaimSpace:
    """Possible cells and published cells, over groups of codes.

    ``queries`` are the published cells, ``codes`` the groups of codes of the possible cells,
    (cells, attributes), and ``eligible`` those that claims can be about; ``families`` are the
    tables by the attributes that they cross.
    """

    queries: Queries
    codes: CodeArray
    eligible: BoolArray
    families: tuple[CrossedTables, ...]

    @property
    def cells(self) -> CellSpace:
        """The group of each code of every attribute."""
        return self.queries.space

    @property
    def schema(self) -> Schema:
        """Attributes and geography of the records."""
        return self.cells.schema

    @cached_property
    def sizes(self) -> IntArray:
        """Number of groups of each attribute."""
        return np.array(self.cells.shape)

    def alive(self, high: IntArray) -> IntArray:
        """Return the possible cells that no published maximum of 0 excludes."""
        zero = high == 0
        masks = [~np.any(f.weight[zero[f.query]] > 0, axis=0) for f in self.families]
        order = np.argsort([mask.mean() for mask in masks])
        start = np.concatenate([[0], np.cumsum([masks[i].size for i in order])]).astype(np.int64)
        joined = np.concatenate([masks[i] for i in order])
        return _live_cells(self._places[order], joined, start)

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        return np.stack([f.place for f in self.families])

    def classes(self, cells: IntArray, chosen: IntArray) -> tuple[IntArray, BoolArray]:
        """Return each cell's class by the chosen published cells, and a mask of the classes bound.

        Cells are of one class when all the chosen published cells count them alike.
        """
        label, bound = np.zeros(len(cells), np.int64), np.zeros(min(len(cells), 1), np.bool_)
        for family in self.families:
            weight = family.weight[np.isin(family.query, chosen, assume_unique=True)]
            if not len(weight) or not len(cells):
                continue
            used, index = np.unique(family.place[cells], return_inverse=True)
            packed = np.ascontiguousarray(weight[:, used].T)
            keys = packed.view(np.dtype((np.void, packed.itemsize * packed.shape[1]))).ravel()
            kind = np.unique(keys, return_inverse=True)[1].ravel()
            joined, label = np.unique(label * len(used) + kind[index.ravel()], return_inverse=True)
            counted = np.zeros(len(used), np.bool_)
            counted[kind] = packed.any(axis=1)
            bound = bound[joined // len(used)] | counted[joined % len(used)]
        return label, bound

    def columns(self, cells: IntArray, chosen: IntArray) -> sp.csc_array:
        """Return the weights (published, cells) of cells in the chosen published cells."""
        rows, columns, weights = [], [], []
        for family in self.families:
            positions = np.flatnonzero(np.isin(chosen, family.query, assume_unique=True))
            dense = family.weight[np.searchsorted(family.query, chosen[positions])][
                :, family.place[cells]
            ]
            column, row = np.nonzero(dense.T)
            rows.append(positions[row].astype(np.int32))
            columns.append(column.astype(np.int32))
            weights.append(dense[row, column].astype(np.int64))
        matrix = sp.csc_array(
            (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))),
            shape=(len(chosen), len(cells)),
        )
        matrix.sort_indices()
        return matrix

    @cached_property
    def free(self) -> BoolArray:
        """Mask of attributes whose codes are independent of the others among eligible cells."""
        codes = self.codes[self.eligible].astype(np.int64)
        mask, keys, weight = np.zeros(codes.shape[1], np.bool_), _flat(codes, self.sizes), 1
        for a in reversed(range(codes.shape[1] if len(codes) else 0)):
            rest = _distinct(keys - weight * codes[:, a])
            mask[a] = rest.size * np.unique(codes[:, a]).size == len(codes)
            weight *= int(self.sizes[a])
        return mask

    @cached_property
    def core(self) -> CodeArray:
        """Distinct combinations of the attributes that are not free; free ones are -1."""
        codes = self.codes[self.eligible]
        if not len(codes):
            return codes
        tied = np.where(self.free, np.int16(-1), codes)
        _, first = np.unique(_flat(tied.astype(np.int64) + 1, self.sizes + 1), return_index=True)
        core: CodeArray = tied[first]
        return core

    @cached_property
    def free_values(self) -> IntArray:
        """Number of values of each free attribute; 1 for the others."""
        codes = self.codes[self.eligible]
        values = [np.unique(codes[:, a]).size for a in range(codes.shape[1])]
        return np.where(self.free, values, 1).astype(np.int64)

    @cached_property
    def constant(self) -> Stated:
        """Shared codes and number of the possible cells that each published cell counts."""
        return self.stated(np.arange(len(self.codes)), np.arange(self.queries.table.size))

    def stated(self, cells: IntArray, chosen: IntArray) -> Stated:
        """Return the shared codes and the number of ``cells`` that each published cell counts."""
        value = np.full((len(chosen), self.codes.shape[1]), -1, np.int16)
        width = np.full(len(chosen), -1, np.int64)
        codes, eligible = self.codes[cells], self.eligible[cells]
        for family in self.families:
            positions = np.flatnonzero(np.isin(chosen, family.query, assume_unique=True))
            rows = np.searchsorted(family.query, chosen[positions])
            used, place = np.unique(family.place[cells], return_inverse=True)
            values, size = value[positions], width[positions]
            weight = np.ascontiguousarray(family.weight[rows][:, used])
            _common_values(weight, place.ravel(), codes, eligible, values, size)
            value[positions], width[positions] = values, size
        return Stated(chosen, value, width)

    @cached_property
    def overlapping(self) -> BoolArray:
        """Mask of tables that count some possible cell more than once."""
        mask = np.zeros(len(self.queries.tables), np.bool_)
        for family in self.families:
            tables = self.queries.table[family.query]
            for t in np.unique(tables):
                mask[t] = int(np.sum(family.weight[tables == t] > 0, axis=0).max()) > 1
        return mask

    def overlap(self, query: int, other: int, cells: IntArray) -> bool:
        """Return True if two published cells of one table share one of the given cells."""
        for family in self.families:
            rows = np.searchsorted(family.query, (query, other))
            if rows.max() < family.query.size and (family.query[rows] == (query, other)).all():
                shared = np.flatnonzero((family.weight[rows] > 0).all(axis=0))
                return bool(np.isin(family.place[cells], shared).any())
        return False


@kernel
def _live_cells(place: NDArray[np.int32], mask: BoolArray, start: IntArray) -> IntArray:
    n_families, n_cells = place.shape
    cells = np.empty(n_cells, np.int64)
    count = 0
    for cell in range(n_cells):
        live = True
        for f in range(n_families):
            if not mask[start[f] + place[f, cell]]:
                live = False
                break
        if live:
            cells[count] = cell
            count += 1
    return cells[:count].copy()


@kernel
def _common_values(
    weight: CodeArray,
    place: IntArray,
    codes: CodeArray,
    eligible: BoolArray,
    value: CodeArray,
    width: IntArray,
) -> None:
    """Fill in each published cell's shared codes, and the number of its cells.

    ``place`` says where among the columns of ``weight`` each cell lies.  The width is -1 for
    published cells that count a cell more than once, or one that is not eligible, or none.
    """
    n_places, n_codes = weight.shape[1], codes.shape[1]
    common = np.full((n_places, n_codes), -2, np.int16)
    number, plain = np.zeros(n_places, np.int64), np.ones(n_places, np.bool_)
    # The code that all cells at a place share, -1 where they differ, -2 where there is none.
    for cell in range(place.size):
        p = place[cell]
        number[p] += 1
        plain[p] &= eligible[cell]
        for a in range(n_codes):
            if common[p, a] == -2:
                common[p, a] = codes[cell, a]
            elif common[p, a] != codes[cell, a]:
                common[p, a] = -1
    # The same of the places that a published cell counts, each once.
    for q in range(weight.shape[0]):
        total = np.int64(0)
        value[q, :] = -2
        for p in range(n_places):
            if weight[q, p] == 0 or number[p] == 0:
                continue
            if weight[q, p] > 1 or not plain[p]:
                total = np.int64(-1)
                break
            total += number[p]
            for a in range(n_codes):
                if value[q, a] == -2:
                    value[q, a] = common[p, a]
                elif value[q, a] != common[p, a]:
                    value[q, a] = -1
        width[q] = total if total > 0 else -1
        for a in range(n_codes):
            if width[q] < 0 or value[q, a] == -2:
                value[q, a] = -1


def _flat(codes: IntArray, sizes: IntArray) -> IntArray:
    index = np.zeros(len(codes), np.int64)
    for a in range(codes.shape[1]):
        index = index * int(sizes[a]) + codes[:, a]
    return index


def _distinct(keys: IntArray) -> IntArray:
    """Return the sorted distinct numbers (>= 0), faster than ``np.unique`` if most differ."""
    keys = np.sort(keys)
    return keys[np.diff(keys, prepend=-1) > 0]


class Rules(NamedTuple):
    """Rules for possible records: structural rules and tenure of households, and codes.

    ``among`` are the codes, for some attributes, of the records that claims are about.
    """

    structural: bool
    tenure: str
    among: tuple[tuple[str, tuple[int, ...]], ...]


_KEPT: deque[tuple[tuple[Schema, tuple[Table, ...], Rules], ClaimSpace]] = deque(maxlen=4)


def claim_space(
    schema: Schema, tables: tuple[Table, ...], rules: Rules, *, cells: IntArray | None = None
) -> ClaimSpace:
    """Return the space of claims about tables of one level.

    ``cells`` are the possible schema cells; by default those of the rules. The last few such spaces
    are cached.
    """
    if cells is not None:
        return _claim_space(schema, tables, rules, cells)
    key = (schema, tables, rules)
    for other, space in _KEPT:
        if other == key:
            return space
    space = _claim_space(*key, _possible_cells(schema, rules))
    _KEPT.append((key, space))
    return space


def _possible_cells(schema: Schema, rules: Rules) -> IntArray:
    """Return the schema cells, sorted, that a record can be in."""
    if schema.name != HOUSEHOLD:
        if schema.size > MAX_CELLS:
            raise ArgumentError(
                "schema",
                f"{schema.name!r} must have at most {MAX_CELLS} cells",
                shown=f"{schema.size}; give the possible ones as cells",
            )
        return np.arange(schema.size, dtype=np.int64)
    if rules.structural:
        cells = CELL_RULES.factory(schema.name)()
    else:  # every combination of the codes of occupied units, and the vacant units
        vacancy, shape = schema.names.index("vacancy"), schema.shape
        codes = [np.arange(1, size) for size in shape]
        vacant = [codes[a] if a == vacancy else np.zeros(1, np.int64) for a in range(len(shape))]
        codes[vacancy] = np.zeros(1, np.int64)
        every = [np.ravel_multi_index(np.ix_(*c), shape).ravel() for c in (codes, vacant)]
        cells = np.sort(np.concatenate(every))
    if rules.tenure == "cash":
        tenure = np.unravel_index(cells, schema.shape)[schema.names.index("tenure")]
        cells = cells[tenure != _NO_RENT]
    return cells


def _claim_space(
    schema: Schema, tables: Sequence[Table], rules: Rules, cells: IntArray
) -> ClaimSpace:
    space = table_cells(schema, tables)
    if rules.tenure == "four-way":  # kept apart even where no table does
        tenures = np.arange(space.bins["tenure"].size)
        space = replace(space, bins={**space.bins, "tenure": tenures})
    sizes, pieces = np.array(space.shape), []
    for begin in range(0, len(cells), _AT_ONCE):
        part = cells[begin : begin + _AT_ONCE]
        index, mask = schema.indices(part), np.ones(part.size, np.int64)
        for name, allowed in rules.among:
            mask &= np.isin(index[name] + schema.attribute(name).first, list(allowed))
        pieces.append(_distinct(2 * space.labels(part) + mask))
    keys, eligible = np.divmod(_distinct(np.concatenate([np.zeros(0, np.int64), *pieces])), 2)
    codes = np.empty((len(keys), sizes.size), np.int16)
    for a in reversed(range(sizes.size)):
        keys, codes[:, a] = np.divmod(keys, sizes[a])
    families = _families(space, tables, codes)
    return ClaimSpace(space.queries(tables), codes, eligible.astype(np.bool_), families)


def _families(
    space: CellSpace, tables: Sequence[Table], codes: CodeArray
) -> tuple[CrossedTables, ...]:
    crossed = [frozenset(table.factors) for table in tables]
    largest = [s for s in dict.fromkeys(crossed) if not any(s < other for other in crossed)]
    start = np.concatenate([[0], np.cumsum([len(t.cells) for t in tables])])
    used = np.zeros(len(tables), np.bool_)
    families = []
    for attributes in largest:
        axes = [a for a, name in enumerate(space.schema.names) if name in attributes]
        shape = tuple(space.shape[a] for a in axes)
        if int(np.prod(shape, dtype=np.int64)) > _MAX_CROSS:
            raise ArgumentError("tables", f"must cross at most {_MAX_CROSS} cells", shown=shape)
        members = [t for t, s in enumerate(crossed) if s <= attributes and not used[t]]
        used[members] = True
        first = {name: space.first[name] for name in space.schema.names if name in attributes}
        weight = [_cross(tables[t], first) for t in members]
        query = np.concatenate([np.arange(start[t], start[t + 1]) for t in members])
        place = np.zeros(len(codes), np.int64)
        if axes:
            place = np.ravel_multi_index(tuple(codes[:, axes].T), shape)
        families.append(CrossedTables(query, np.concatenate(weight), place.astype(np.int32)))
    return tuple(families)


def _cross(table: Table, codes: Mapping[str, IntArray]) -> CodeArray:
    """Return a table's weights over the cross of the given codes."""
    weight = crossed_weights(table, codes)
    if weight.min(initial=0) < 0 or weight.max(initial=0) >= 2**15:
        raise ArgumentError(f"weights of table {table.name!r} must be in 0..32767")
    return weight.astype(np.int16)
