"""Small rows from differences of published person tables.

A cell of the histogram lies in up to fourteen tables of the 2010 Summary File 1.  Differences of
published cells give families of rows in which no two rows share a cell: (1) sex x age bin, from
P14 and P12; (2) sex x age group of P12 x {White alone not Hispanic, White alone Hispanic, five
other races alone, two or more}, from P12A-G and P12I; (3) sex x age group of P12, Hispanic and
not White alone, from P12H, P12A and P12I; (4) {minor, adult} x 63 races x Hispanic origin, from
P8-P11.  So a cell lies in at most four rows, and the families span every published cell.  Tables
are recognised by what they count; what a missing table would give is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.cells import CellSpace, Queries

Combination = Mapping[int, int]

PERSON = ("sex", "age", "race", "hisp")
ADULT = 18


@dataclass(frozen=True)
class RowFamily:
    """Rows that share no cell: of published cells, and of cells, all coefficients one."""

    derivation: sp.csr_array
    rows: sp.csr_array


class _CellFinder:
    """Finds published cells by what they count."""

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
        """Return the published cell with these factors; an attribute not named does not matter."""
        key = tuple(factors.get(name, self.all[name]).tobytes() for name in PERSON)
        return {self.index[key]: 1} if key in self.index else None

    def difference(
        self, whole: Mapping[str, IntArray], part: Mapping[str, IntArray]
    ) -> Combination | None:
        """Return one published cell minus another, if both are there."""
        return _sum(self.plus(**whole), _minus(self.plus(**part)))

    def ages(self, **factors: IntArray) -> list[IntArray]:
        """Return the smallest age groups that are published together with ``factors``."""
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
    """Return the sum of combinations, or None when one of them is missing."""
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
    """Yield sex x age group x race class, White alone taken apart by Hispanic origin."""
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


def _family(published: Queries, combinations: Iterator[Combination | None]) -> RowFamily | None:
    """Return the rows that could be made, or None when there are none or they overlap."""
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
    """Return the families of rows that published person tables give; none for other schemas."""
    if not _has_persons(published.space):
        return []
    finder = _CellFinder(published)
    makers = (_sex_by_age, _classes, _hispanic_not_white, _adult_races)
    families = [_family(published, maker(finder)) for maker in makers]
    return [family for family in families if family is not None]


def coupling_family(published: Queries) -> RowFamily | None:
    """Return the rows sex x age x 7 race classes x Hispanic origin of the tract tables.

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
    """Return for each two families the first with those rows of the second that it leaves free."""
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
