"""Exact counts of TopDown-like releases: nested sets of cells, public zeros and lookahead.

Exact counts at a level are exact, as sums, at every level above. Sets must be nested: two sets are
disjoint, or one contains the other. Then a parent's integers can always be split over its children,
and the rounding remains a transportation problem.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.accounting import census_2020_budget, split_rho
from bayesrisk.constraints.model import equal_rows
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.mechanisms.base import census_level
from bayesrisk.tables import Workload

# What the problem of the children of one node consists of.


@dataclass(frozen=True)
class Query:
    """The children's noisy answers to one table: rows over live cells, weight and answers.

    The weight is that of the table, or one for each of its rows.
    """

    rows: sparse.csc_array
    weight: float | FloatArray
    noisy: IntArray | FloatArray


@dataclass(frozen=True)
class Lookahead:
    """Constraints that the units below one child put on the child's counts.

    Units with the same zeros are one group; cells that every constraint below treats alike are one
    class.  The child's class counts must split over the groups so that each group's sets come out.
    """

    classes: IntArray  # class of every live cell
    sets: sparse.csr_array  # sets over classes, whose totals the groups keep
    allowed: BoolArray  # (groups, classes): where a group may hold anybody
    totals: IntArray  # (groups, sets): totals of the sets


@dataclass(frozen=True)
class Family:
    """The estimation problem for the children of one node."""

    # (children, cells): where a child may hold anybody; cells are those that are live in some child
    live: BoolArray
    parent: IntArray | None  # (cells,): counts to which the children add up; None at the top
    queries: tuple[Query, ...]  # noisy answers
    sets: sparse.csr_array  # (sets, cells): nested sets of cells whose totals are exact
    totals: IntArray
    controlled: sparse.csr_array  # nested sets whose totals may move to a neighbouring integer only
    # (child, Lookahead): only for children whose descendants have zeros that differ
    lookahead: tuple[tuple[int, Lookahead], ...] = ()


# Cells that nothing tells apart are one count, and sums that are measured twice are one row.
#
# Cells are alike where every table, every set, every child's zeros and every lookahead treat them
# alike: the objective then depends on the sum of a child's counts over the class alone.  Counts of
# a parent's cells ``h_j`` ask of the sums ``X_c`` of a class no more than ``sum_c X_c = sum_j
# h_j``, for ``x_cj = X_c h_j / sum_j h_j`` then has every parent sum.  So the sums of an optimum
# over classes are those of an optimum over cells.  The sums are rounded, for only they were
# fitted: cells rounded one by one would go up or down together, and favour sums that are multiples
# of their number. The rounded sums are then split in proportion to the parent, what is left over
# by lot.


@dataclass(frozen=True)
class CellClasses:
    """A family whose cells are merged into classes of interchangeable cells."""

    family: Family  # with a cell for every class; its queries are one, whose rows differ
    label: IntArray  # class of every cell

    def split(self, sums: IntArray, parent: IntArray | None, rng: np.random.Generator) -> IntArray:
        """Return integer counts of cells (children, cells), split from the counts of classes.

        Every cell gets its share of the sum of its class, rounded down. The rest of a class is
        assigned at random to the places left in its cells. At the top all cells have equal shares.
        """
        label = self.label
        if sums.shape[1] == label.size:  # no cells were merged
            return sums
        if parent is None:
            size = np.bincount(label)
            order = np.lexsort((rng.random(label.size), label))
            rank = np.empty(label.size, dtype=np.int64)
            rank[order] = np.arange(label.size) - (np.cumsum(size) - size)[label[order]]
            return np.asarray(sums[:, label] // size[label] + (rank < (sums % size)[:, label]))
        people = np.maximum(np.bincount(label, parent).astype(np.int64), 1)
        counts: IntArray = sums[:, label] * parent // people[label]
        member = sparse.csr_array((np.ones_like(label), (np.arange(label.size), label)))
        left = (sums - counts @ member).T
        kind, child = np.nonzero(left)
        kind, child = (np.repeat(axis, left[kind, child]) for axis in (kind, child))
        dealt = child[np.lexsort((rng.random(kind.size), kind))]
        cells = np.argsort(label, kind="stable")
        np.add.at(counts, (dealt, np.repeat(cells, (parent - counts.sum(axis=0))[cells])), 1)
        return counts


def cell_classes(family: Family) -> CellClasses:
    """Return a family with its interchangeable cells merged; parent counts must be > 0."""
    rows = sparse.csr_array(sparse.vstack([query.rows for query in family.queries], format="csr"))
    first, label = _cell_classes(family, rows)
    parent, merged = family.parent, family
    if first.size < label.size:
        rows = sparse.csr_array(sparse.csc_array(rows)[:, first])
        merged = replace(
            family,
            live=family.live[:, first],
            parent=None if parent is None else np.bincount(label, parent).astype(np.int64),
            sets=sparse.csr_array(family.sets[:, first]),
            controlled=sparse.csr_array(family.controlled[:, first]),
            lookahead=tuple(
                (child, replace(ahead, classes=ahead.classes[first]))
                for child, ahead in family.lookahead
            ),
        )
    several = np.flatnonzero(np.diff(merged.controlled.indptr) > 1)
    controlled = sparse.csr_array(merged.controlled[several])
    return CellClasses(
        replace(merged, queries=(_one_query(family, rows),), controlled=controlled), label
    )


def _cell_classes(family: Family, rows: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """Return the first cell of each class, and the class of every cell."""
    if any(map(_tells_all_apart, family.queries)):
        cells = np.arange(rows.shape[1], dtype=np.int64)
        return cells, cells
    kinds = np.array([ahead.classes for _, ahead in family.lookahead]).reshape(-1, rows.shape[1])
    parts = [rows, family.sets, sparse.csr_array(family.live.astype(np.float64))]
    columns = sparse.csc_array(sparse.vstack(parts, format="csc"), dtype=np.float64)
    label, first = equal_rows(columns.T, *kinds)
    return first, label


def _tells_all_apart(query: Query) -> bool:
    """Return whether every cell has a row of its own."""
    cells, rows = np.diff(query.rows.indptr), np.bincount(query.rows.indices, minlength=1)
    return bool((cells > 0).all() and rows.max() <= 1)


def _one_query(family: Family, rows: sparse.csr_array) -> Query:
    """Return all queries merged into one without repeated rows.

    Answers ``y_k`` to one sum with weights ``w_k`` are, up to a constant, one answer
    ``sum_k w_k y_k / sum_k w_k`` with weight ``sum_k w_k``.
    """
    weight = np.concatenate([np.broadcast_to(q.weight, q.rows.shape[0]) for q in family.queries])
    answers = np.hstack([query.noisy for query in family.queries]).astype(np.float64)
    label, first = equal_rows(rows)
    total: FloatArray = np.bincount(label, weight).astype(np.float64)
    sums = np.array([np.bincount(label, weight * answer) for answer in answers])
    return Query(sparse.csc_array(rows[first]), total, sums / total)


# Which tables are measured at which level, with how much budget and hence how much noise.


Budget = dict[str, dict[str, Fraction]]


def census_2020_allocation(levels: list[str]) -> Budget:
    """Return the exact 2020 budgets of redistricting persons at the given levels."""
    table = census_2020_budget("pl94")
    allocation: Budget = {}
    for level, query, rho in zip(table["level"], table["query"], table["rho"], strict=True):
        name = census_level(level)
        if name in levels:
            allocation.setdefault(name, {})[query] = rho
    missing = [level for level in levels if level not in allocation]
    if missing:
        raise ArgumentError(
            "budget", f"must be given: the 2020 allocation has no level {missing[0]!r}"
        )
    return allocation


def allocate(
    available: dict[str, list[str]],
    default: Budget | None,
    *,
    rho: Fraction | None,
    level_shares: dict[str, Fraction] | None,
    query_shares: dict[str, Fraction] | None,
) -> Budget:
    """Return the budget of every level and table; they sum to ``rho`` exactly if it is given.

    Shares that are not given are those of the default allocation, else equal.
    """
    weights: Budget = {}
    base = default or {k: dict.fromkeys(v, Fraction(1)) for k, v in available.items()}
    for level in _named(level_shares, list(available), "level_shares"):
        tables = _named(query_shares, available[level], "query_shares", strict=False)
        shares = {t: query_shares[t] if query_shares else base[level].get(t) for t in tables}
        inside = {t: w for t, w in shares.items() if w is not None}
        if not inside:
            raise ArgumentError(f"query_shares must name a table of level {level!r}, got none")
        default_level = sum(base[level].values()) if default else Fraction(1)
        whole = level_shares[level] if level_shares else default_level
        weights[level] = split_rho(whole, inside)
    total = sum(part for parts in weights.values() for part in parts.values())
    if rho is None:
        if default is None or level_shares:
            raise ArgumentError(
                "rho", "must be given where no published allocation applies", shown="None",
                advice=": write topdown:rho=1, or a value of yours",
            )  # fmt: skip
        return weights
    return {
        level: {table: rho * part / total for table, part in parts.items()}
        for level, parts in weights.items()
    }


def _named(
    shares: dict[str, Fraction] | None, names: list[str], name: str, *, strict: bool = True
) -> list[str]:
    """Return the known names that have a share, or all names if no shares are given."""
    if shares is None:
        return names
    unknown = [key for key in shares if key not in names]
    if unknown and strict:
        raise ArgumentError(name, f"must name {', '.join(names)}", got=unknown[0])
    return [key for key in names if key in shares]


def matrices(workload: Workload) -> dict[tuple[str, str], sparse.csr_array]:
    """Return each table as a matrix over the histogram's cells, shared between levels."""
    cells = np.arange(workload.schema.size, dtype=np.int64)
    tables: dict[tuple[str, str], sparse.csr_array] = {}
    for table, levels in workload.distinct():
        rows = sparse.csr_array(table.incidence(workload.schema, cells))
        tables |= {(level, table.name): rows for level in levels}
    return tables


def squared_sensitivity(rows: sparse.csr_array) -> int:
    """Return a table's exact squared L2 sensitivity to a change of one record.

    The record may move to another geography too: then the answer of one loses a column, that of
    the other gains one, and the squares add.  Weights are >= 0, so nothing moves it further.
    """
    squares = sparse.csc_array(rows.astype(np.int64)).power(2).sum(axis=0)
    return 2 * int(np.max(squares, initial=0))


def sigma2(rho: Fraction, rows: sparse.csr_array) -> Fraction:
    """Return the noise scale that spends ``rho`` on a table: Delta**2 / (2 rho)."""
    return Fraction(squared_sensitivity(rows)) / (2 * rho)


def weights(variances: FloatArray) -> FloatArray:
    """Return 1 / variance, scaled into [1e-8, 1].

    A query a hundred million times more precise than another decides alone in any case. The bound
    keeps the solver's numbers in range when a huge budget leaves no noise.
    """
    if not variances.any():
        return np.ones(variances.size)
    floor = np.maximum(variances, 1e-8 * variances.max())
    return np.asarray(floor.min() / floor)


Rows = sparse.csr_array


def nested(sets: Rows) -> bool:
    """Return whether any two of the 0/1 sets are disjoint or one contains the other."""
    whole = sparse.csr_array(sets.astype(np.int64))
    if np.any(whole.data != 1):
        return False
    common = sparse.coo_array(whole @ whole.T)
    size = whole.sum(axis=1)
    i, j = common.coords
    return bool(np.all((common.data == size[i]) | (common.data == size[j])))


def distinct(sets: Rows) -> tuple[Rows, IntArray]:
    """Return the distinct non-empty sets, and their rows."""
    whole = sparse.csr_array(sets)
    filled = np.flatnonzero(np.diff(whole.indptr))
    rows: IntArray = filled[equal_rows(whole[filled].astype(np.bool_))[1]]
    return sparse.csr_array(whole[rows]), rows


@dataclass(frozen=True)
class ExactSets:
    """Sets of cells with exact totals at a level, and the totals (nodes, sets)."""

    sets: Rows
    totals: IntArray

    @classmethod
    def stack(cls, parts: Sequence["ExactSets"], *, cells: int, nodes: int) -> "ExactSets":
        """Return the distinct sets of all parts."""
        if not parts:
            return cls(sparse.csr_array((0, cells), dtype=np.int64), np.zeros((nodes, 0), np.int64))
        sets, rows = distinct(sparse.csr_array(sparse.vstack([p.sets for p in parts])))
        return cls(sets, np.hstack([p.totals for p in parts])[:, rows])

    def sums(self, parent: IntArray, nodes: int) -> "ExactSets":
        """Return the sets with totals one level up."""
        totals = np.zeros((nodes, self.totals.shape[1]), dtype=np.int64)
        np.add.at(totals, parent, self.totals)
        return ExactSets(self.sets, totals)


def controlled_sets(tables: Mapping[str, Rows], exact: Rows, wanted: Sequence[str] | None) -> Rows:
    """Return the sets whose totals rounding keeps close, nested with each other and ``exact``.

    Unless they are named, tables are taken from the smallest up while they stay nested.
    """
    chosen = exact
    named = sorted(tables, key=lambda name: tables[name].shape[0]) if wanted is None else wanted
    for name in named:
        if name not in tables:
            raise ArgumentError("rounding", "must name measured tables", got=name)
        union = sparse.csr_array(sparse.vstack([chosen, tables[name]]))
        if nested(union):
            chosen = union
        elif wanted is not None:
            raise ArgumentError(
                f"rounding must name 0/1 tables nested in each other and in the invariants, "
                f"got {quote(name)}"
            )
    several = np.flatnonzero(np.diff(chosen.indptr) > 1)
    sets, rows = distinct(sparse.csr_array(chosen[several]))
    return sparse.csr_array(sets[np.flatnonzero(several[rows] >= exact.shape[0])])


@dataclass(frozen=True)
class Zeros:
    """Public zeros: each cell's kind, and the kinds that each node may contain.

    Kinds are combinations of the attribute codes whose zeros are public.
    """

    kinds: IntArray
    allowed: BoolArray

    def above(self, parent: IntArray, nodes: int) -> "Zeros":
        """Return the zeros one level up: a node may contain what any child may."""
        allowed = np.zeros((nodes, self.allowed.shape[1]), dtype=bool)
        np.logical_or.at(allowed, parent, self.allowed)
        return Zeros(self.kinds, allowed)


def lookaheads(exact: ExactSets, zeros: Zeros, ancestor: IntArray) -> dict[int, Lookahead]:
    """Return, by node, the constraints of the units below that have exact counts."""
    # Nested sets: the smallest one around a cell says which others hold it.
    smallest = np.full(zeros.kinds.size, -1, dtype=np.int64)
    for row in np.argsort(-np.diff(exact.sets.indptr), kind="stable"):
        smallest[exact.sets.indices[exact.sets.indptr[row] : exact.sets.indptr[row + 1]]] = row
    _, example, classes = np.unique(
        np.vstack([smallest, zeros.kinds]), axis=1, return_index=True, return_inverse=True
    )
    sets, kinds = sparse.csr_array(exact.sets[:, example]), zeros.kinds[example]
    order = np.argsort(ancestor, kind="stable")
    nodes, first = np.unique(ancestor[order], return_index=True)
    by_node = {}
    for node, units in zip(nodes, np.split(order, first[1:]), strict=True):
        patterns, group = np.unique(zeros.allowed[units], axis=0, return_inverse=True)
        if len(patterns) > 1:
            totals = np.zeros((len(patterns), sets.shape[0]), dtype=np.int64)
            np.add.at(totals, group.reshape(-1), exact.totals[units])
            by_node[int(node)] = Lookahead(
                classes.reshape(-1).astype(np.int64), sets, patterns[:, kinds], totals
            )
    return by_node
