"""Refuting claims by data sets that are one exchange away from another.

Two records are exchanged for two others that the published tables count alike: the result fits
every table as well.  A walk of many exchanges meets very different data sets, and each step
changes the counts of a few claims only; a claim whose count changes is refuted.

Two things keep a step short. First, a published cell that counts one of the two that leave must
count one of the two that fill in. So only the classes of the published cell with the fewest are
tried. Second, the open claims about a cell are listed once, and again when half of them are
settled.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import BoolArray, CodeArray, IntArray, WordArray
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.reconstruction.claims.search.lattice import Subsets

_PROBES = 2**12
#: Exchanges after which settled claims are first left out.
_FIRST = 16
#: Records that a walk may move; of more, some of each class, and the others stay where they are.
_MOVED = 2**15
#: Claims in the lists of all cells together; when there is no room, all lists are made anew.
_LISTED = 2**21
_ODD = np.uint64(0x9E3779B97F4A7C15)


class HashTable(NamedTuple):
    """A hash table: keys, and the position of each, -1 where a slot is empty."""

    keys: WordArray
    place: IntArray


class ExchangeClasses(NamedTuple):
    """Classes of cells that the published tables count alike, and what they count of each.

    The first three are a sparse matrix, (published ``cells``, classes); the classes of published
    cell r are ``members[first[r]:first[r + 1]]``.  ``start`` says where the cells of each class
    begin, ``label`` which class a cell is in.  Two classes with the same sum of ``hashes`` probably
    fill in for two others; ``table`` finds them.
    """

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: IntArray
    cells: int
    first: NDArray[np.int32]
    members: NDArray[np.int32]
    start: IntArray
    label: IntArray
    hashes: WordArray
    table: HashTable


class OpenClaims(NamedTuple):
    """Where the claims about a cell stand: by its codes, every set of columns, and their keys.

    ``set_positions`` are the sets of columns of the claims in the table, by position.
    """

    codes: CodeArray
    eligible: BoolArray
    sets: Subsets
    radix: WordArray
    set_positions: IntArray
    table: HashTable


class CellLists(NamedTuple):
    """Claims about each cell: ``claim[begin[cell]:end[cell]]``, ``begin`` -1 where not made yet.

    ``used`` is the length of the lists made so far; ``keys`` has room for those of one cell.
    """

    begin: IntArray
    end: IntArray
    claim: NDArray[np.int32]
    used: IntArray
    keys: WordArray


class ClaimCounts(NamedTuple):
    """Records that each claim describes: now, in the first solution, and where they differed."""

    current: IntArray
    base: IntArray
    settled: BoolArray


class Exchange:
    """Claims, and the number of records of a data set that each describes.

    ``columns`` are the weights of the classes in the published cells, ``start`` says where the
    cells of each class begin, ``codes`` and ``eligible`` are of the cells, class by class;
    ``keys`` are those of the claims, all different, made with ``radix``.  ``settled`` are claims
    whose count was seen to change, or of which no more is to be known.
    """

    def __init__(
        self,
        columns: sp.csc_array,
        start: IntArray,
        codes: NDArray[np.int16],
        eligible: BoolArray,
        sets: Subsets,
        radix: IntArray,
        keys: IntArray,
    ) -> None:
        # Sums of random numbers find classes that may fill in; each exchange is then checked.
        random = np.random.default_rng(0).integers(0, 2**63, columns.shape[0], dtype=np.uint64)
        every = np.arange(start.size - 1)
        hashes, rows = np.zeros(every.size, np.uint64), columns.tocsr()
        weights = random[columns.indices] * columns.data.astype(np.uint64)
        np.add.at(hashes, np.repeat(every, np.diff(columns.indptr)), weights)
        self._classes = ExchangeClasses(
            columns.indptr, columns.indices, columns.data, columns.shape[0],
            rows.indptr, rows.indices, start, np.repeat(every, np.diff(start)), hashes,
            _table(hashes),
        )  # fmt: skip
        self._keys = keys.astype(np.uint64)
        positions = np.arange(sets.bits.size)
        self._claims = OpenClaims(
            codes, eligible, sets, radix.astype(np.uint64), positions, _table(self._keys)
        )
        self._open = keys.size
        self._lists: CellLists | None = None
        self._count: IntArray = np.zeros(keys.size, np.int64)
        self._base: IntArray | None = None
        self.settled = np.zeros(keys.size, np.bool_)

    def load(self, solution: IntArray) -> None:
        """Count the claims in a solution; refute those that another solution counts otherwise."""
        filled = np.flatnonzero(solution)
        self._leave_out_settled()
        self._count[:] = 0
        _count(self._claims, self._classes.start[filled], solution[filled], self._count)
        if self._base is None:
            self._base = self._count.copy()
        self.settled |= self._count != self._base

    def walk(self, solution: IntArray, *, idle: int, deadline: Deadline) -> IntArray:
        """Exchange records of a solution until several rounds refuted nothing.

        ``idle`` rounds without a new refutation end the walk; the solution at its end is returned.
        """
        self.load(solution)
        moved = solution
        if solution.sum(dtype=np.float64) > _MOVED:  # no sum of many large ones wraps around
            moved = np.minimum(solution, max(1, _MOVED // int(np.count_nonzero(solution))))
        cells = np.repeat(self._classes.start[:-1], moved)
        base = self._count if self._base is None else self._base
        counts = ClaimCounts(self._count, base, self.settled)
        state, once = np.array([cells.size], np.uint64), max(64, 2 * cells.size)
        # The first exchanges settle most claims, so the first parts of a round are short.
        rest, tries = idle * once, min(_FIRST, once)
        if self._lists is None:
            self._lists = _lists(self._claims)
        while rest > 0 and cells.size > 1 and not deadline.late and not self.settled.all():
            new = _exchange(self._classes, self._claims, self._lists, counts, cells, tries, state)
            rest, tries = idle * once if new else rest - tries, min(2 * tries, once)
            self._leave_out_settled()
        now = np.bincount(self._classes.label[cells], minlength=self._classes.hashes.size)
        return solution - moved + now

    def _leave_out_settled(self) -> None:
        """Forget claims that are settled, once they are half of those that are looked up."""
        left = np.flatnonzero(~self.settled)
        if 2 * left.size > self._open:
            return
        self._open = left.size
        keys, positions = self._keys[left], self._claims.set_positions
        if left.size < positions.size:  # else hardly a set is without a claim
            positions = _column_sets(keys, self._claims)
        self._claims = self._claims._replace(set_positions=positions, table=_table(keys, left))
        if self._lists is not None:
            _forget(self._lists)


def _table(keys: WordArray, position: IntArray | None = None) -> HashTable:
    """Return a table that finds each key's position, by default that in the array."""
    slots = 1 << int(2 * keys.size + 2).bit_length()
    table_keys, place = np.zeros(slots, np.uint64), np.full(slots, -1, np.int64)
    _fill(keys, np.arange(keys.size) if position is None else position, table_keys, place)
    return HashTable(table_keys, place)


def _column_sets(keys: WordArray, claims: OpenClaims) -> IntArray:
    bits = np.zeros(keys.size, np.int64)
    rest = keys.copy()
    for c in reversed(range(claims.radix.size)):
        code, rest = np.divmod(rest, claims.radix[c])
        bits |= (code > 0).astype(np.int64) << c
    return np.unique(claims.sets.position[bits])


def _lists(claims: OpenClaims) -> CellLists:
    n_cells, n_sets = len(claims.codes), claims.sets.bits.size
    room = max(n_sets, min(_LISTED, n_cells * n_sets))
    lists = CellLists(
        np.empty(n_cells, np.int64), np.empty(n_cells, np.int64), np.empty(room, np.int32),
        np.empty(1, np.int64), np.empty(n_sets, np.uint64),
    )  # fmt: skip
    _forget(lists)
    return lists


def _forget(lists: CellLists) -> None:
    lists.begin[:] = -1
    lists.used[0] = 0


@lean_kernel
def _fill(keys: WordArray, position: IntArray, table_keys: WordArray, place: IntArray) -> None:
    last = np.int64(table_keys.size - 1)
    for i in range(keys.size):
        # The first slot of a key: multiplicative hashing, slots a power of two.
        slot = np.int64((keys[i] * _ODD) >> np.uint64(24)) & last
        # Linear probing: the next slot where one is taken.
        while place[slot] >= 0:
            slot = (slot + 1) & last
        table_keys[slot], place[slot] = keys[i], position[i]


@lean_step
def _find(key: np.uint64, table: HashTable) -> np.int64:
    table_keys, place = table
    last = np.int64(table_keys.size - 1)
    slot = np.int64((key * _ODD) >> np.uint64(24)) & last
    while place[slot] >= 0:
        if table_keys[slot] == key:
            return np.int64(place[slot])
        slot = (slot + 1) & last
    return np.int64(-1)


@lean_step
def _keys(claims: OpenClaims, cell: int, out: WordArray) -> None:
    """Fill in the key of every set of columns of one cell."""
    codes, radix = claims.codes[cell], claims.radix
    without, lowest = claims.sets.without, claims.sets.lowest
    for s in range(without.size):
        # key(s) = key(s without its lowest column c) + (code_c + 1) radix_c.
        before = np.uint64(0) if without[s] < 0 else out[without[s]]
        out[s] = before + np.uint64(codes[lowest[s]] + 1) * radix[lowest[s]]


@kernel
def _count(claims: OpenClaims, cells: IntArray, times: IntArray, count: IntArray) -> None:
    """Add up how many records in some cells each claim describes."""
    keys = np.empty(claims.sets.bits.size, np.uint64)
    for i in range(cells.size):
        if claims.eligible[cells[i]]:
            _keys(claims, cells[i], keys)
            for s in claims.set_positions:
                claim = _find(keys[s], claims.table)
                if claim >= 0:
                    count[claim] += times[i]


@lean_step
def _random(state: WordArray, below: int) -> np.int64:
    """Return the next whole number of a sequence (SplitMix64)."""
    state[0] += _ODD
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1)) % below


@lean_step
def _substitute(classes: ExchangeClasses, four: IntArray, state: WordArray) -> None:
    """Set the last two classes to two that may fill in for the first two; themselves if none do."""
    indptr, indices, first, hashes = classes.indptr, classes.indices, classes.first, classes.hashes
    four[2], four[3] = four[0], four[1]
    # The published cell of either that counts the fewest classes: one that fills in is among them.
    row, fewest = -1, hashes.size + 1
    for w in range(2):
        for i in range(indptr[four[w]], indptr[four[w] + 1]):
            size = int(first[indices[i] + 1] - first[indices[i]])
            if size < fewest:
                row, fewest = int(indices[i]), size
    if row < 0:
        return
    # From a random place on: h(a_2) + h(a_3) = h(a_0) + h(a_1), modulo 2**64.
    total = hashes[four[0]] + hashes[four[1]]
    place = int(_random(state, fewest))
    for _probe in range(min(fewest, _PROBES)):
        place = place + 1 if place + 1 < fewest else 0
        candidate = np.int64(classes.members[first[row] + place])
        if candidate != four[0] and candidate != four[1]:
            other = _find(total - hashes[candidate], classes.table)
            if other >= 0:
                four[2], four[3] = candidate, other
                return


@kernel
def _exchange(
    classes: ExchangeClasses,
    claims: OpenClaims,
    lists: CellLists,
    counts: ClaimCounts,
    cells: IntArray,
    tries: int,
    state: WordArray,
) -> int:
    """Try exchanges of two records of ``cells``, in place; return how many claims they refuted."""
    start, count, new = classes.start, counts.current, 0
    indptr, indices, data = classes.indptr, classes.indices, classes.data
    begin, used, keys = lists.begin, lists.used, lists.keys
    touched = np.empty(4 * claims.sets.bits.size, np.int64)
    left = np.zeros(classes.cells, np.int64)
    four, moved = np.empty(4, np.int64), np.empty(4, np.int64)
    for _ in range(tries):
        i, j = _random(state, cells.size), _random(state, cells.size)
        if i == j:
            continue
        four[0], four[1] = classes.label[cells[i]], classes.label[cells[j]]
        # Without another pair the records may still move within their own classes.
        _substitute(classes, four, state)
        # a_0 + a_1 - a_2 - a_3 over the published cells of the four: zero, or they do not fit.
        for w in range(4):
            for k in range(indptr[four[w]], indptr[four[w] + 1]):
                left[indices[k]] += data[k] if w < 2 else -data[k]
        fits = True
        for w in range(4):
            for k in range(indptr[four[w]], indptr[four[w] + 1]):
                fits &= left[indices[k]] == 0
        if not fits:
            for w in range(4):
                for k in range(indptr[four[w]], indptr[four[w] + 1]):
                    left[indices[k]] = 0
            continue
        # Any cell of the classes that fill in, at random.
        moved[0], moved[1] = cells[i], cells[j]
        for w in range(2, 4):
            moved[w] = start[four[w]] + _random(state, start[four[w] + 1] - start[four[w]])
        cells[i], cells[j] = moved[2], moved[3]
        if moved[0] == moved[2] and moved[1] == moved[3]:
            continue
        # Claims about the cells that leave count one less, those about the new ones one more.
        n_touched = 0
        for w in range(4):
            cell = moved[w]
            if begin[cell] < 0:  # its claims are not listed yet
                if used[0] + keys.size > lists.claim.size:
                    begin[:], used[0] = -1, 0
                begin[cell] = used[0]
                if claims.eligible[cell]:
                    _keys(claims, cell, keys)
                    for s in claims.set_positions:
                        claim = _find(keys[s], claims.table)
                        if claim >= 0:
                            lists.claim[used[0]] = claim
                            used[0] += 1
                lists.end[cell] = used[0]
            for t in range(begin[cell], lists.end[cell]):
                claim = np.int64(lists.claim[t])
                count[claim] += -1 if w < 2 else 1
                touched[n_touched] = claim
                n_touched += 1
        # A claim with another count than in the first solution is false in one of the two.
        for t in range(n_touched):
            claim = touched[t]
            if not counts.settled[claim] and count[claim] != counts.base[claim]:
                counts.settled[claim] = True
                new += 1
    return new
