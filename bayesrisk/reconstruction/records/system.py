"""The integer system of published tables: cells, rows, and the published cells behind each row.

The unknown is the histogram ``x`` of a geography over the cells of its schema, and the tables say
``A x = c``. Three steps make the system small without changing its solutions. Attribute values that
no query separates share a cell (single years of age become 38 bins). Rows are split by differences
of published cells, so that a cell lies in few, small rows. A cell in any row that is zero is dead,
and never listed.

A cell of the histogram lies in up to fourteen tables of the 2010 Summary File 1. Differences of
published cells give families of rows in which no two rows share a cell: (1) sex x age bin, from P14
and P12; (2) sex x age group of P12 x {White alone not Hispanic, White alone Hispanic, five other
races alone, two or more}, from P12A-G and P12I; (3) sex x age group of P12, Hispanic and not White
alone, from P12H, P12A and P12I; (4) {minor, adult} x 63 races x Hispanic origin, from P8-P11. So a
cell lies in at most four rows, and the families span every published cell. Tables are recognised by
what they count; rows of a missing table are left out.
"""

import itertools
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import Columns, by_columns
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records.kernels import HIDDEN
from bayesrisk.tables import Table
from bayesrisk.tables.cells import CellSpace, Queries, coarsest_cells, table_cells
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Workload

#: Most cells that are enumerated for one schema.
MAX_CELLS = 2_000_000
_SAID = 10  # tables that an error names


def cell_space(schema: Schema, tables: Sequence[Table]) -> CellSpace:
    """Return the coarsest cells on which every query of the tables is constant.

    For the block tables of the 2010 Summary File 1: 2 sexes, 38 age bins, 63 race combinations
    and Hispanic origin, 9,576 cells.
    """
    space = table_cells(schema, tables)
    if space.size > MAX_CELLS:
        coarse, left = _coarse_tables(schema, tables)
        names = [table.name for table in tables if table not in coarse]
        better = (
            f": without {', '.join(names)} it is {left}" if coarse and len(names) < _SAID else ""
        )
        raise ArgumentError(
            f"the tables must tell at most {MAX_CELLS} cells apart, got {space.size}{better}"
        )
    return space


def _coarse_tables(schema: Schema, tables: Sequence[Table]) -> tuple[list[Table], int]:
    """Return the tables left after dropping the finest until few cells remain, and their number.

    The attribute with most bins per table that has it is dropped first.
    """
    coarse = list(tables)
    while (space := coarsest_cells(schema, coarse)).size > MAX_CELLS // 10:
        bins = dict(zip(schema.names, space.shape, strict=True))
        using = {name: [t for t in coarse if name in t.factors] for name in bins if bins[name] > 1}
        worst = max(using, key=lambda name: math.log(bins[name]) / len(using[name]))
        coarse = [table for table in coarse if worst not in table.factors]
    return coarse, space.size


@dataclass(frozen=True)
class CellSystem:
    """Rows of an integer system over cells, derived from published cells.

    The equations are ``row counts = derivation @ published counts``. The rows of every cell come
    with its coefficients. ``cover`` has the cells of each row of a set of rows that holds every
    cell exactly once. If there is no such set, it includes one more row without a count. Rows of
    one ``family`` share no cell; ``reduced`` says whether rows are differences of published cells.
    """

    queries: Queries
    derivation: sp.csr_array
    columns: Columns
    cover_ptr: IntArray
    cover_cell: IntArray
    family: IntArray
    reduced: bool

    @property
    def space(self) -> CellSpace:
        """The cells."""
        return self.queries.space

    @property
    def n_rows(self) -> int:
        """Number of rows with a count."""
        return int(self.derivation.shape[0])

    @property
    def has_free_row(self) -> bool:
        """Whether one more row, without a count, contains all cells."""
        return bool(self.cover_ptr[-1] > self.cover_ptr[-2])

    def row_counts(self, counts: sp.csr_array) -> sp.csr_array:
        """Return each place's counts of the rows, zeros left out."""
        rows = sp.csr_array(counts @ self.derivation.T)
        if self.has_free_row:  # in every block
            column = np.full((rows.shape[0], 1), HIDDEN, np.int64)
            rows = sp.csr_array(sp.hstack([rows, sp.csr_array(column)], format="csr"))
        rows.eliminate_zeros()
        rows.sort_indices()
        return rows


def _assemble(
    published: Queries,
    rows: sp.csr_array,
    derivation: sp.csr_array,
    family: IntArray,
    *,
    reduced: bool,
) -> CellSystem:
    cover = _cover(rows, family)
    return CellSystem(published, derivation, by_columns(rows), *cover, family, reduced)


def _cover(rows: sp.csr_array, family: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cells of the largest family whose rows contain every cell once."""
    n_rows, n_cells = rows.shape
    candidates = []
    for label in np.unique(family):
        members = np.flatnonzero(family == label)
        cells = np.concatenate([rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in members])
        if cells.size == n_cells and np.unique(cells).size == n_cells:
            candidates.append((members.size, members, cells))
    sizes = np.zeros(n_rows + 1, np.int64)
    if not candidates:
        sizes[n_rows] = n_cells
        cells = np.arange(n_cells)
        return np.concatenate([[0], np.cumsum(sizes)]), cells
    _, members, cells = max(candidates, key=lambda c: c[0])
    sizes[members] = np.diff(rows.indptr)[members]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), cells.astype(np.int64)


def raw_system(published: Queries) -> CellSystem:
    """Return the system whose rows are the published cells themselves."""
    rows = published.matrix
    count = len(published.names)
    family = _disjoint_families(rows, published.table)
    identity = sp.csr_array(sp.eye_array(count, dtype=np.int64))
    return _assemble(published, rows, identity, family, reduced=False)


def _disjoint_families(rows: sp.csr_array, labels: IntArray) -> IntArray:
    """Return ``labels``, with separate families for the rows of a table whose rows overlap."""
    family = labels.copy()
    following = int(labels.max()) + 1 if labels.size else 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        used = np.concatenate([rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in members])
        if np.unique(used).size < used.size:
            family[members] = following + np.arange(members.size)
            following += members.size
    return family


def reduced_system(published: Queries) -> CellSystem:
    """Return the system whose rows are differences of published cells where that is smaller.

    For tables that add up it has the solutions of :func:`raw_system`.
    """
    families = person_families(published)
    if not families:
        return raw_system(published)
    matrix = published.matrix
    left = np.flatnonzero(~spanned(matrix, [*families, *joined(families)]))
    derivation = [family.derivation for family in families]
    labels = [np.full(f.derivation.shape[0], number) for number, f in enumerate(families)]
    # What no family spans stays as it was published, each row a family of its own.
    pick = sp.csr_array(
        (np.ones(left.size, np.int64), (np.arange(left.size), left)),
        shape=(left.size, len(published.names)),
    )
    labels.append(len(families) + np.arange(left.size))
    stacked = sp.csr_array(sp.vstack([*derivation, pick], format="csr"))
    rows = sp.csr_array(stacked @ matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    family = np.concatenate(labels).astype(np.int64)
    return _assemble(published, rows, stacked, family, reduced=True)


# -----------------------------------------------------------------------------
# Rows that couple the blocks of a larger place, such as the tract tables by single years of age.
#
# The tables PCT12A-G and PCT12I-O fix every count of sex x age x 7 race classes x Hispanic origin
# in a tract.  Summed over the ages of a bin they couple the blocks, and whatever solves block rows
# and coupling rows can be given single years of age afterwards.


@dataclass(frozen=True)
class Coupling:
    """Rows of a larger place over the cells of its blocks.

    ``queries`` are its published cells, over cells that they separate, and ``derivation`` makes its
    rows from them. If the cells of the blocks are coarser than the tables of the place, ``detail``
    makes finer rows of the published cells. Each has a first fine cell, ``detail_cell``, and lies
    in the row ``detail_row``.
    """

    queries: Queries
    derivation: sp.csr_array
    rows: sp.csr_array
    family: IntArray
    detail: sp.csr_array | None
    detail_cell: IntArray
    detail_row: IntArray


def coarse_coupling(
    space: CellSpace, finest: Sequence[Table], tables: Sequence[Table]
) -> Coupling | None:
    """Return rows over the blocks' cells that are equivalent to all tables of the place, or None.

    ``finest`` are the tables of the blocks. None if finer attributes, such as single years of age,
    could not be filled in afterwards.
    """
    fine = cell_space(space.schema, [*finest, *tables])
    published = fine.queries(tables)
    family = coupling_family(published)
    if family is None:
        return None
    coarse = space.labels(fine.representatives(family.rows.indices.astype(np.int64)))
    sizes = np.diff(family.rows.indptr)
    first = np.minimum.reduceat(coarse, family.rows.indptr[:-1])
    keys, group = np.unique(first, return_inverse=True)
    merge = sp.csr_array(
        (np.ones(group.size, np.int64), (group, np.arange(group.size))),
        shape=(keys.size, group.size),
    )
    pairs = np.unique(np.stack([np.repeat(group, sizes), coarse]), axis=1)
    if np.unique(pairs[1]).size < pairs.shape[1]:
        return None  # rows that overlap on the coarse cells could not be summed
    rows = sp.csr_array(
        (np.ones(pairs.shape[1], np.int64), (pairs[0], pairs[1])), shape=(keys.size, space.size)
    )
    detail_cell = np.minimum.reduceat(family.rows.indices, family.rows.indptr[:-1])
    return Coupling(
        published,
        sp.csr_array(merge @ family.derivation),
        rows,
        np.zeros(keys.size, np.int64),
        family.derivation,
        detail_cell.astype(np.int64),
        group.astype(np.int64),
    )


def whole_coupling(space: CellSpace, tables: Sequence[Table]) -> Coupling:
    """Return one row for each published cell of the larger place."""
    published = space.queries(tables)
    family, empty = np.arange(len(published.names)), np.zeros(0, np.int64)
    identity = sp.csr_array(sp.eye_array(family.size, dtype=np.int64))
    return Coupling(published, identity, published.matrix, family, None, empty, empty)


_Key: TypeAlias = tuple[
    Schema, tuple[str, ...], tuple[bool, bool], tuple[Table, ...], tuple[Table, ...]
]
#: The last systems: many tracts with one workload need one of them.
_KEPT: deque[tuple[_Key, tuple[CellSystem, tuple[Coupling, ...]]]] = deque(maxlen=8)


def cell_systems(
    workload: Workload, levels: tuple[str, ...], raw: tuple[bool, bool], extra: tuple[Table, ...]
) -> tuple[CellSystem, tuple[Coupling, ...]]:
    """Return the system of the first level, and the couplings of the other levels.

    If some cell of the blocks, or of the larger places, is withheld or coarsened (``raw``), their
    rows are the published cells themselves.
    """
    finest, *larger = [
        tuple(workload.tables[key] for key in workload.tables if key[0] == level)
        for level in levels
    ]
    every = (*finest, *itertools.chain(*larger))
    key = (workload.schema, levels, raw, every, extra)
    for other, systems in _KEPT:
        if other == key:
            return systems
    space = cell_space(workload.schema, (*finest, *extra))
    couplings: list[Coupling] = []
    for tables in larger:
        coarse = None if raw[1] or extra else coarse_coupling(space, finest, tables)
        if coarse is None:
            space = cell_space(workload.schema, (*every, *extra))
            couplings = [whole_coupling(space, tables) for tables in larger]
            break
        couplings.append(coarse)
    published = space.queries(finest)
    system = raw_system(published) if raw[0] else reduced_system(published)
    _KEPT.append((key, (system, tuple(couplings))))
    return system, tuple(couplings)


Combination = Mapping[int, int]

PERSON = ("sex", "age", "race", "hisp")
ADULT = 18


@dataclass(frozen=True)
class RowFamily:
    """Rows with weights 1 that share no cell, with their derivation from published cells."""

    derivation: sp.csr_array
    rows: sp.csr_array


class _CellFinder:
    """Finds published cells by the factors that they count."""

    def __init__(self, published: Queries) -> None:
        self.published = published
        self.index: dict[tuple[bytes, ...], int] = {}
        for number in range(len(published.names)):
            self.index.setdefault(published.key(number), number)
        sizes = dict(zip(PERSON, published.space.shape, strict=True))
        self.all = {name: np.ones(size, np.int64) for name, size in sizes.items()}
        self.one = {name: np.eye(size, dtype=np.int64) for name, size in sizes.items()}
        bits = np.array([int(mask).bit_count() for mask in range(1, sizes["race"] + 1)])
        alone = [self.one["race"][2**k - 1] for k in range(6)]
        self.classes = [*alone, (bits > 1).astype(np.int64)]

    def plus(self, **factors: IntArray) -> Combination | None:
        """Return the published cell with these factors (others: all values), or None."""
        key = tuple(factors.get(name, self.all[name]).tobytes() for name in PERSON)
        return {self.index[key]: 1} if key in self.index else None

    def difference(
        self, whole: Mapping[str, IntArray], part: Mapping[str, IntArray]
    ) -> Combination | None:
        """Return one published cell minus another, or None if one is missing."""
        return _sum(self.plus(**whole), _minus(self.plus(**part)))

    def ages(self, **factors: IntArray) -> list[IntArray]:
        """Return the finest age groups published together with the ``factors``."""
        fixed = {name: factors.get(name, self.all[name]).tobytes() for name in PERSON}
        groups = {
            key[1]: np.frombuffer(key[1], np.int64)
            for key in self.index
            if all(k == fixed[n] for k, n in zip(key, PERSON, strict=True) if n != "age")
        }
        covered = np.zeros(self.all["age"].size, bool)
        disjoint = []
        for group in sorted(groups.values(), key=lambda g: (int(g.sum()), int(np.argmax(g)))):
            inside = group > 0
            if not (covered & inside).any():
                covered |= inside
                disjoint.append(group)
        return sorted(disjoint, key=lambda g: int(np.argmax(g)))


def _sum(*parts: Combination | None) -> Combination | None:
    """Return the sum of combinations, or None if one is missing."""
    total: dict[int, int] = {}
    for part in parts:
        if part is None:
            return None
        for query, weight in part.items():
            total[query] = total.get(query, 0) + weight
    return total


def _minus(part: Combination | None) -> Combination | None:
    return None if part is None else {query: -weight for query, weight in part.items()}


def _sex_by_age(finder: _CellFinder) -> Iterator[Combination | None]:
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex):
            yield finder.plus(sex=sex, age=age)


def _classes(finder: _CellFinder) -> Iterator[Combination | None]:
    """Yield sex x age group x race class, with White alone split by Hispanic origin."""
    white, *nonwhite = finder.classes
    no = finder.one["hisp"][0]
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex, race=white):
            cell = {"sex": sex, "age": age}
            yield finder.plus(**cell, race=white, hisp=no)
            yield finder.difference({**cell, "race": white}, {**cell, "race": white, "hisp": no})
        for other in nonwhite:
            for age in finder.ages(sex=sex, race=other):
                yield finder.plus(sex=sex, age=age, race=other)


def _hispanic_not_white(finder: _CellFinder) -> Iterator[Combination | None]:
    white = finder.classes[0]
    no, yes = finder.one["hisp"]
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex, hisp=yes):
            cell = {"sex": sex, "age": age}
            white_hispanic = finder.difference(
                {**cell, "race": white}, {**cell, "race": white, "hisp": no}
            )
            yield _sum(finder.plus(**cell, hisp=yes), _minus(white_hispanic))


def _adult_races(finder: _CellFinder) -> Iterator[Combination | None]:
    """Yield {minor, adult} x race x Hispanic origin, as differences of four tables' cells."""
    space = finder.published.space
    adult = np.zeros(space.shape[1], np.int64)
    adult[np.unique(space.bins["age"][ADULT - space.schema.attribute("age").first :])] = 1
    no = finder.one["hisp"][0]
    for race in finder.one["race"]:
        grown = finder.plus(age=adult, race=race)
        grown_no = finder.plus(age=adult, race=race, hisp=no)
        everyone = finder.plus(race=race)
        everyone_no = finder.plus(race=race, hisp=no)
        yield grown_no
        yield _sum(grown, _minus(grown_no))
        yield _sum(everyone_no, _minus(grown_no))
        yield _sum(everyone, _minus(everyone_no), _minus(grown), grown_no)


def _family(published: Queries, combinations: Iterator[Combination | None]) -> RowFamily | None:
    """Return the rows that could be made, or None if there are none or they overlap."""
    nonempty = [c for c in combinations if c]
    if not nonempty:
        return None
    row = np.repeat(np.arange(len(nonempty)), [len(c) for c in nonempty])
    column = np.array([query for c in nonempty for query in c], np.int64)
    weight = np.array([w for c in nonempty for w in c.values()], np.int64)
    derivation = sp.csr_array((weight, (row, column)), shape=(len(nonempty), len(published.names)))
    rows = sp.csr_array(derivation @ published.matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    # Every row must be a set of cells; anything else would not be a family.
    if rows.data.size and (rows.data.min() != 1 or rows.data.max() != 1):
        return None
    if np.unique(rows.indices).size < rows.indices.size or (np.diff(rows.indptr) == 0).any():
        return None
    return RowFamily(derivation, rows)


def _has_persons(space: CellSpace) -> bool:
    shape = (*space.shape[:1], *space.shape[2:])
    return space.schema.names == PERSON and shape == (2, 63, 2)


def person_families(published: Queries) -> list[RowFamily]:
    """Return the families of rows that published person tables allow; none for other schemas."""
    if not _has_persons(published.space):
        return []
    finder = _CellFinder(published)
    makers = (_sex_by_age, _classes, _hispanic_not_white, _adult_races)
    families = [_family(published, maker(finder)) for maker in makers]
    return [family for family in families if family is not None]


def coupling_family(published: Queries) -> RowFamily | None:
    """Return the tract tables' rows sex x age x 7 race classes x Hispanic origin.

    None unless these rows span every published cell and hold every cell.
    """
    if not _has_persons(published.space):
        return None
    finder = _CellFinder(published)
    no = finder.one["hisp"][0]

    def rows() -> Iterator[Combination | None]:
        for sex in finder.one["sex"]:
            for age in finder.one["age"]:
                for race in finder.classes:
                    cell = {"sex": sex, "age": age, "race": race}
                    yield finder.plus(**cell, hisp=no)
                    yield finder.difference(cell, {**cell, "hisp": no})

    family = _family(published, rows())
    if family is None or family.rows.indices.size < published.space.size:
        return None
    return family if spanned(published.matrix, [family]).all() else None


def joined(families: list[RowFamily]) -> list[RowFamily]:
    """Return, for each pair of families, the first plus the second's rows that leave it alone."""
    pairs = []
    for one in families:
        for other in families:
            covered = np.zeros(one.rows.shape[1], bool)
            covered[one.rows.indices] = True
            touched = np.add.reduceat(covered[other.rows.indices], other.rows.indptr[:-1])
            free = np.flatnonzero(touched == 0)
            if free.size:
                pairs.append(
                    RowFamily(
                        sp.csr_array(sp.vstack([one.derivation, other.derivation[free]])),
                        sp.csr_array(sp.vstack([one.rows, other.rows[free]])),
                    )
                )
    return pairs


def spanned(matrix: sp.csr_array, families: list[RowFamily]) -> BoolArray:
    """Return a mask of the published cells that are sums of rows of one family."""
    complete = np.zeros(matrix.shape[0], bool)
    for family in families:
        cells = np.zeros(matrix.shape[1], np.int64)
        cells[family.rows.indices] = 1
        sizes = np.diff(family.rows.indptr)
        indicator = sp.csr_array(
            (np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        overlap = sp.csr_array(indicator @ family.rows.T)
        # A row is inside a published cell, outside it, or cuts it.
        whole = overlap.data == sizes[overlap.indices]
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(overlap.indptr))
        cut = np.bincount(row[~whole], minlength=matrix.shape[0]) > 0
        covered = np.bincount(row, weights=overlap.data, minlength=matrix.shape[0])
        units = np.bincount(
            np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)),
            weights=matrix.data != 1,
            minlength=matrix.shape[0],
        )
        complete |= (units == 0) & ~cut & (covered == np.diff(matrix.indptr))
    return complete
