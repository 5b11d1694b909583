"""Small rows from differences of published person tables.

The tables of the 2010 Summary File 1 overlap: a cell of the histogram lies in up to fourteen of
them.  Differences of published cells give families of rows in which no two rows share a cell:

1. sex x age bin, from P14 and P12;
2. sex x age group of P12 x {White alone not Hispanic, White alone Hispanic, five other races
   alone, two or more races}, from P12A-G and P12I;
3. sex x age group of P12, Hispanic and not White alone, from P12H, P12A and P12I;
4. {minor, adult} x 63 races x {not Hispanic, Hispanic}, from P8-P11.

So a cell lies in at most four rows, and the families span every published cell.  Tables are
recognised by what they count and not by name; what a missing table would give is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._numba import kernel
from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.constraints.cells import Queries

# -----------------------------------------------------------------------------
# Kernel over all blocks of a file: live cells, and bounds of each, by interval propagation.


#: A count that was not published: its row says nothing.
HIDDEN = -(2**62)
#: More than any count; a cell that keeps this bound is in no published count.
UNBOUNDED = 2**52

FIXED, OPEN, INFEASIBLE, LOOSE = 0, 1, 2, 3


class System(NamedTuple):
    """The rows of every cell with its coefficient in each, and rows that cover the cells.

    Every cell lies in exactly one cover row.  ``ceiling`` bounds the cells that no published row of
    a block does, by larger places.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    cover_ptr: IntArray
    cover_cell: IntArray
    ceiling: IntArray


class Blocks(NamedTuple):
    """The rows of each block that are not zero, block after block, and their counts."""

    ptr: IntArray
    row: IntArray
    value: IntArray


class Outcome(NamedTuple):
    """Of every block: its status, the row at fault (or -1), and where its cells begin."""

    status: IntArray
    culprit: IntArray
    ptr: IntArray


class Work(NamedTuple):
    """One block: the count of every row, sums of bounds, and its live cells with their bounds.

    ``least`` and ``most`` hold the sums of the bounds of every row and are kept up to date.
    """

    value: IntArray
    least: IntArray
    most: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray


@kernel
def grown(array: IntArray, needed: int) -> IntArray:
    """Return ``array``, or a copy at least twice as long when ``needed`` entries do not fit."""
    if needed <= array.size:
        return array
    larger = np.empty(max(needed, 2 * array.size), np.int64)
    larger[: array.size] = array
    return larger


@kernel
def live_cells(s: System, w: Work, rows: IntArray) -> int:
    """List the cells that no row excludes, with their largest count, and return how many.

    ``rows`` are the rows of the block that are not zero: only the cells of the cover rows among
    them are looked at.
    """
    cell_ptr, cell_row, cell_coef = s.cell_ptr, s.cell_row, s.cell_coef
    cover_ptr, cover_cell, value = s.cover_ptr, s.cover_cell, w.value
    found = 0
    for row in rows:
        for at in range(cover_ptr[row], cover_ptr[row + 1]):
            candidate = cover_cell[at]
            most = UNBOUNDED
            for k in range(cell_ptr[candidate], cell_ptr[candidate + 1]):
                count = value[cell_row[k]]
                if count == HIDDEN:
                    continue
                if count < cell_coef[k]:
                    most = 0
                    break
                if count < most * cell_coef[k]:
                    most = count // cell_coef[k]
            if most == UNBOUNDED:
                most = s.ceiling[candidate]
            if most > 0:
                w.cell[found] = candidate
                w.high[found] = most
                found += 1
    return found


@kernel
def tighten(s: System, w: Work, n_cells: int) -> int:
    """Tighten the bounds of the first cells to a fixed point; return a row that contradicts, or -1.

    The fixed point does not depend on the order.
    """
    cell_ptr, cell_row, cell_coef = s.cell_ptr, s.cell_row, s.cell_coef
    value, least, most, cell, low, high = w
    changed = True
    while changed:  # ends: each pass moves a whole-numbered bound inwards
        changed = False
        for j in range(n_cells):
            if low[j] == high[j]:
                continue
            new_low, new_high = low[j], high[j]
            tight = -1
            for k in range(cell_ptr[cell[j]], cell_ptr[cell[j] + 1]):
                row = cell_row[k]
                count = value[row]
                if count == HIDDEN:
                    continue
                coef = cell_coef[k]
                # The row minus the most (least) that its other cells can hold.
                needed = count - most[row] + coef * high[j]
                room = count - least[row] + coef * low[j]
                if coef != 1:
                    needed = -(-needed // coef)
                    room = room // coef
                if needed > new_low:
                    new_low = needed
                    tight = row
                if room < new_high:
                    new_high = room
                    tight = row
            if tight < 0:
                continue
            if new_low > new_high:
                return tight
            for k in range(cell_ptr[cell[j]], cell_ptr[cell[j] + 1]):
                row = cell_row[k]
                least[row] += cell_coef[k] * (new_low - low[j])
                most[row] += cell_coef[k] * (new_high - high[j])
            low[j], high[j] = new_low, new_high
            changed = True
    return -1


@kernel
def solve_block(s: System, w: Work, rows: IntArray) -> tuple[int, int, int]:
    """Bound the cells of one block; return its status, the row at fault and how many cells."""
    value, least, most, cell, low, high = w
    for row in rows:
        if value[row] < 0 and value[row] != HIDDEN:
            return INFEASIBLE, row, 0
    found = live_cells(s, w, rows)
    status = FIXED
    for row in rows:
        least[row] = 0
        most[row] = 0
    for j in range(found):
        low[j] = 0
        if high[j] == UNBOUNDED:  # in no published row: it changes nothing for other cells
            status = LOOSE
            continue
        for k in range(s.cell_ptr[cell[j]], s.cell_ptr[cell[j] + 1]):
            most[s.cell_row[k]] += s.cell_coef[k] * high[j]
    # A row that its live cells cannot fill is the clearest contradiction: look for it first.
    for row in rows:
        if value[row] != HIDDEN and most[row] < value[row]:
            return INFEASIBLE, row, 0
    wrong = tighten(s, w, found)
    if wrong >= 0:
        return INFEASIBLE, wrong, 0
    for row in rows:
        if value[row] != HIDDEN and (least[row] > value[row] or most[row] < value[row]):
            return INFEASIBLE, row, 0
    for j in range(found):
        if status == FIXED and low[j] < high[j]:
            status = OPEN
    return status, -1, found


@kernel
def solve_blocks(
    s: System, blocks: Blocks, outcome: Outcome
) -> tuple[IntArray, IntArray, IntArray]:
    """Bound the cells of every block; return cells, lower and upper bounds, block after block.

    Cells without a bound are not returned, and make the block ``LOOSE``.  ``outcome`` is filled.
    """
    n_rows, n_cells = s.cover_ptr.size - 1, s.cell_ptr.size - 1
    value = np.zeros(n_rows, np.int64)
    cell = np.empty(n_cells, np.int64)
    low = np.empty(n_cells, np.int64)
    high = np.empty(n_cells, np.int64)
    w = Work(value, np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), cell, low, high)
    start = max(blocks.row.size // 2, 16)
    cells = np.empty(start, np.int64)
    lows = np.empty(start, np.int64)
    highs = np.empty(start, np.int64)
    used = 0
    outcome.ptr[0] = 0
    for block in range(blocks.ptr.size - 1):
        first, last = blocks.ptr[block], blocks.ptr[block + 1]
        rows = blocks.row[first:last]
        for k in range(first, last):
            value[blocks.row[k]] = blocks.value[k]
        outcome.status[block], outcome.culprit[block], found = solve_block(s, w, rows)
        cells = grown(cells, used + found)
        lows = grown(lows, used + found)
        highs = grown(highs, used + found)
        for j in range(found):
            if 0 < high[j] < UNBOUNDED:
                cells[used], lows[used], highs[used] = cell[j], low[j], high[j]
                used += 1
        outcome.ptr[block + 1] = used
        for row in rows:
            value[row] = 0
    return cells[:used], lows[:used], highs[:used]


# -----------------------------------------------------------------------------


Combination = Mapping[int, int]

PERSON = ("sex", "age", "race", "hisp")
ADULT = 18


@dataclass(frozen=True)
class Family:
    """Rows that share no cell.

    Attributes
    ----------
    derivation : scipy.sparse.csr_array
        Rows in terms of published cells.
    rows : scipy.sparse.csr_array
        Rows in terms of cells, all coefficients one.
    """

    derivation: sp.csr_array
    rows: sp.csr_array


class _Finder:
    """Finds published cells by what they count."""

    def __init__(self, published: Queries) -> None:
        self.published = published
        self.index: dict[tuple[bytes, ...], int] = {}
        for at in range(len(published.names)):
            self.index.setdefault(published.key(at), at)
        sizes = dict(zip(PERSON, published.space.shape, strict=True))
        self.all = {name: np.ones(size, np.int64) for name, size in sizes.items()}
        self.one = {name: np.eye(size, dtype=np.int64) for name, size in sizes.items()}
        bits = np.array([int(mask).bit_count() for mask in range(1, sizes["race"] + 1)])
        alone = [self.one["race"][2**k - 1] for k in range(6)]
        self.classes = [*alone, (bits > 1).astype(np.int64)]

    def find(self, **factors: IntArray) -> int | None:
        """Return the published cell with these factors; an attribute not named does not matter."""
        key = tuple(factors.get(name, self.all[name]).tobytes() for name in PERSON)
        return self.index.get(key)

    def plus(self, **factors: IntArray) -> Combination | None:
        """Return a published cell as a combination."""
        at = self.find(**factors)
        return None if at is None else {at: 1}

    def difference(
        self, whole: Mapping[str, IntArray], part: Mapping[str, IntArray]
    ) -> Combination | None:
        """Return one published cell minus another, if both are there."""
        a, b = self.find(**whole), self.find(**part)
        return None if a is None or b is None else {a: 1, b: -1}

    def ages(self, **factors: IntArray) -> list[IntArray]:
        """Return the smallest age groups that are published together with ``factors``."""
        fixed = {name: factors.get(name, self.all[name]).tobytes() for name in PERSON}
        groups = {
            key[1]: np.frombuffer(key[1], np.int64)
            for key in self.index
            if all(k == fixed[n] for k, n in zip(key, PERSON, strict=True) if n != "age")
        }
        taken = np.zeros(self.all["age"].size, bool)
        found = []
        for group in sorted(groups.values(), key=lambda g: (int(g.sum()), int(np.argmax(g)))):
            inside = group > 0
            if not (taken & inside).any():
                taken |= inside
                found.append(group)
        return sorted(found, key=lambda g: int(np.argmax(g)))


def _sum(*parts: Combination | None) -> Combination | None:
    """Return the sum of combinations, or None when one of them is missing."""
    total: dict[int, int] = {}
    for part in parts:
        if part is None:
            return None
        for at, weight in part.items():
            total[at] = total.get(at, 0) + weight
    return total


def _minus(part: Combination | None) -> Combination | None:
    return None if part is None else {at: -weight for at, weight in part.items()}


def _sex_by_age(finder: _Finder) -> Iterator[Combination | None]:
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex):
            yield finder.plus(sex=sex, age=age)


def _classes(finder: _Finder) -> Iterator[Combination | None]:
    """Yield sex x age group x race class, White alone taken apart by Hispanic origin."""
    white, *others = finder.classes
    no = finder.one["hisp"][0]
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex, race=white):
            about = {"sex": sex, "age": age}
            yield finder.plus(**about, race=white, hisp=no)
            yield finder.difference({**about, "race": white}, {**about, "race": white, "hisp": no})
        for other in others:
            for age in finder.ages(sex=sex, race=other):
                yield finder.plus(sex=sex, age=age, race=other)


def _hispanic_not_white(finder: _Finder) -> Iterator[Combination | None]:
    white = finder.classes[0]
    no, yes = finder.one["hisp"]
    for sex in finder.one["sex"]:
        for age in finder.ages(sex=sex, hisp=yes):
            about = {"sex": sex, "age": age}
            both = finder.difference({**about, "race": white}, {**about, "race": white, "hisp": no})
            yield _sum(finder.plus(**about, hisp=yes), _minus(both))


def _adult_races(finder: _Finder) -> Iterator[Combination | None]:
    """Yield {minor, adult} x race x Hispanic origin, by differences of four tables."""
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


def _family(published: Queries, combinations: Iterator[Combination | None]) -> Family | None:
    """Return the rows that could be made, or None when there are none or they overlap."""
    made = [c for c in combinations if c]
    if not made:
        return None
    row = np.repeat(np.arange(len(made)), [len(c) for c in made])
    column = np.array([at for c in made for at in c], np.int64)
    weight = np.array([w for c in made for w in c.values()], np.int64)
    derivation = sp.csr_array((weight, (row, column)), shape=(len(made), len(published.names)))
    rows = sp.csr_array(derivation @ published.matrix())
    rows.eliminate_zeros()
    rows.sort_indices()
    # Every row must be a set of cells; anything else would not be a family.
    if rows.data.size and (rows.data.min() != 1 or rows.data.max() != 1):
        return None
    if np.unique(rows.indices).size < rows.indices.size or (np.diff(rows.indptr) == 0).any():
        return None
    return Family(derivation, rows)


def person_families(published: Queries) -> list[Family]:
    """Return the families of rows that the published person tables give.

    Parameters
    ----------
    published : Queries
        The published cells of one level.

    Returns
    -------
    list of Family
        Empty for a schema that is not sex, age, race, Hispanic origin.
    """
    if published.space.schema.names != PERSON or published.space.shape[2:] != (63, 2):
        return []
    if published.space.shape[0] != 2:
        return []
    finder = _Finder(published)
    makers = (_sex_by_age, _classes, _hispanic_not_white, _adult_races)
    made = [_family(published, maker(finder)) for maker in makers]
    return [family for family in made if family is not None]


def coupling_family(published: Queries) -> Family | None:
    """Return the rows sex x age x 7 race classes x Hispanic origin of the tract tables.

    Parameters
    ----------
    published : Queries
        The published cells of the coarser level.

    Returns
    -------
    Family or None
        None unless these rows span every published cell and hold every cell.
    """
    space = published.space
    if space.schema.names != PERSON or space.shape[0] != 2 or space.shape[2:] != (63, 2):
        return None
    finder = _Finder(published)
    no = finder.one["hisp"][0]

    def rows() -> Iterator[Combination | None]:
        for sex in finder.one["sex"]:
            for age in finder.one["age"]:
                for race in finder.classes:
                    about = {"sex": sex, "age": age, "race": race}
                    yield finder.plus(**about, hisp=no)
                    yield finder.difference(about, {**about, "hisp": no})

    family = _family(published, rows())
    if family is None or family.rows.indices.size < space.size:
        return None
    return family if spanned(published.matrix(), [family]).all() else None


def joined(families: list[Family]) -> list[Family]:
    """Return for each two families the first with those rows of the second that it leaves free."""
    found = []
    for one in families:
        for other in families:
            taken = np.zeros(one.rows.shape[1], bool)
            taken[one.rows.indices] = True
            touched = np.add.reduceat(taken[other.rows.indices], other.rows.indptr[:-1])
            free = np.flatnonzero(touched == 0)
            if free.size:
                found.append(
                    Family(
                        sp.csr_array(sp.vstack([one.derivation, other.derivation[free]])),
                        sp.csr_array(sp.vstack([one.rows, other.rows[free]])),
                    )
                )
    return found


def spanned(matrix: sp.csr_array, families: list[Family]) -> NDArray[np.bool_]:
    """Return which published cells are sums of rows of one family."""
    done = np.zeros(matrix.shape[0], bool)
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
        done |= (units == 0) & ~cut & (covered == np.diff(matrix.indptr))
    return done
