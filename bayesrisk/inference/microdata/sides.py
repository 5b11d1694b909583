r"""Tables that share little, summed side by side: exact laws of very many kinds of records.

Let every published sum be one of a *side* A or of a side B.  Side A sees of a group of unknowns its
cell a alone (groups in one cell have equal weights in all sums of A), side B its cell b.  A
*separator* s is a function of a, and one of b, given which shares are products:

.. math:: \theta_{ab} = \theta_a \theta_b / \theta_s.

Counts with weights :math:`\prod_{ab} \theta_{ab}^{x_{ab}} / x_{ab}!` have then sums y over cells of
A, z over cells of B, and n over separators, with

.. math:: \sum_{x: y, z} \prod_{ab} \frac{\theta_{ab}^{x_{ab}}}{x_{ab}!} =
   \prod_a \frac{\theta_a^{y_a}}{y_a!} \prod_b \frac{\theta_b^{z_b}}{z_b!}
   \prod_s \frac{n_s!}{\theta_s^{n_s}}.

So the sides are independent given n; each is contracted alone, with n open to the end.  Given y and
z, the records are paired at random within a separator: :math:`x_{ab}` is hypergeometric.  Race by
ethnicity on one side and sex by age on the other need 126 + 76 unknowns instead of 9,576.

The cells of B whose shares of the cells of A are in the same proportions are one separator, which
makes the equation true whatever the shares are.  Where shares are no products, there are as many
separators as cells, and nothing is gained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.inference.microdata.contraction import Contraction, NoStateError, sums_of
from bayesrisk.inference.microdata.system import SmallSystem, log_prior

_SEPARATORS = 8  # the most that are tried
_TABLES = 32  # tables that are put on one side or the other
_CELLS = 2**22  # pairs of a cell of either side that are looked at
_FAINT = 1e-26  # share of numbers of records that are left out when counts are found
_EQUAL = 1e-12  # relative difference of shares that are equal but for rounding


@dataclass(frozen=True, eq=False)
class Sides:
    """The cells of both sides, and the separators between them, of every group."""

    one: IntArray
    other: IntArray
    separator: IntArray

    @property
    def size(self) -> int:
        """Number of cells of both sides."""
        return int(self.one.max() + self.other.max()) + 2

    def see(self, function: IntArray) -> bool:
        """Return whether a function of the groups is one of the cells of a side."""
        return _sees(self.one, function) or _sees(self.other, function)


def sides_of(system: SmallSystem, functions: Sequence[IntArray] = ()) -> Sides | None:
    """Return two sides with fewer cells than half the groups; None where there are none.

    ``functions`` of the groups are seen by a side, too.
    """
    groups = system.mass.size
    if system.noisy.any() or not _multinomial(system):
        return None
    rows = sp.csr_array(sp.vstack([system.matrix, *(sp.csr_array(f[None]) for f in functions)]))
    found = list(_partitions(rows))
    cells = dict(enumerate(cell for cell in found if cell.any()))
    if not 2 <= len(cells) <= _TABLES:
        return None
    shared = {ij: _shared(cells, ij, system.mass) for ij in combinations(cells, 2)}
    while len(cells) > 2:  # the two that share most are on one side
        i, j = max(shared, key=lambda ij: shared[ij])
        joined, new = _both(cells.pop(i), cells.pop(j)), max(cells) + len(found)
        shared = {ij: n for ij, n in shared.items() if not {i, j} & {*ij}}
        cells[new] = joined
        shared |= {(k, new): _shared(cells, (k, new), system.mass) for k in cells if k != new}
    best: Sides | None = None
    for one, other in (tuple(cells.values()), tuple(cells.values())[::-1]):
        separator = _separators(one, other, system.mass)
        if separator is not None:
            sides = Sides(_both(one, separator), other, separator)
            if 2 * sides.size < min(groups + 1, 2 * best.size if best is not None else np.inf):
                best = sides
    return best


def _multinomial(system: SmallSystem) -> bool:
    """Return whether groups have weights m^x / x!; where all x <= 1, others are equal to these."""
    several = [g for g, prior in enumerate(system.priors) if prior.size > 2]
    two = np.array([system.priors[g][2] for g in several])
    return bool(np.allclose(two, 2.0 * np.log(system.mass[several]) - np.log(2.0), 1e-12, 1e-12))


def _partitions(matrix: sp.csr_array) -> Iterator[IntArray]:
    """Return the cells of every group by runs of rows that have no group in common."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    key = row * (int(matrix.data.max(initial=0)) + 1) + matrix.data
    cell = np.full(matrix.shape[1], -1, np.int64)
    for begin, end in pairwise(matrix.indptr):
        own = matrix.indices[begin:end]
        if np.any(cell[own] >= 0):
            yield np.unique(cell, return_inverse=True)[1].astype(np.int64)
            cell = np.full(matrix.shape[1], -1, np.int64)
        cell[own] = key[begin:end]
    yield np.unique(cell, return_inverse=True)[1].astype(np.int64)


def _shared(cells: dict[int, IntArray], pair: tuple[int, int], mass: FloatArray) -> int:
    """Return the number of separators of two partitions; one more than are tried if too many."""
    one, other = (cells[k] for k in pair)
    found = (_separators(one, other, mass), _separators(other, one, mass))
    return min(_SEPARATORS + 1 if s is None else int(s.max()) + 1 for s in found)


def _separators(one: IntArray, other: IntArray, mass: FloatArray) -> IntArray | None:
    """Return the separator of every group: cells of ``other`` in equal proportions over ``one``.

    None where there are too many.
    """
    rows, columns = int(one.max()) + 1, int(other.max()) + 1
    if rows * columns > _CELLS:
        return None
    table = np.bincount(one * columns + other, mass, rows * columns).reshape(rows, columns)
    share = table / table.sum(axis=0)
    label = np.full(columns, -1, np.int64)
    for s in range(_SEPARATORS):
        left = np.flatnonzero(label < 0)
        if not left.size:
            break
        first = share[:, left[:1]]
        equal = np.all(np.abs(share[:, left] - first) <= _EQUAL * first, axis=0)
        label[left[equal]] = s
    return None if np.any(label < 0) else label[other]


def _both(one: IntArray, other: IntArray) -> IntArray:
    """Return the cells in which both partitions agree."""
    key = one * (int(other.max()) + 1) + other
    cell: IntArray = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return cell


def _sees(cell: IntArray, function: IntArray) -> bool:
    """Return whether a function has one value in each cell."""
    _, first, back = np.unique(cell, return_index=True, return_inverse=True)
    return bool(np.array_equal(function[first][back], function))


class SideSums:
    """The laws of a system by its two sides.  Errors are those of sums, some 1e-12 a record."""

    def __init__(self, system: SmallSystem, sides: Sides, limit: int) -> None:
        self.pairs = 0  # of states that were joined
        self._system, self._sides, self._limit = system, sides, limit
        dense = system.matrix.toarray()
        cells = (sides.separator, sides.one, sides.other)
        self._first = [np.unique(cell, return_index=True)[1] for cell in cells]
        seen = [
            np.all(dense[:, first][:, cell] == dense, axis=1)
            for first, cell in zip(self._first, cells, strict=True)
        ]
        self._rows = [np.flatnonzero(np.argmax(seen, axis=0) == k) for k in range(3)]
        self._weights = [dense[:, first] for first in self._first]
        self._mass = np.bincount(sides.separator, system.mass)
        bounds = [
            int(system.given[r]) if system.hard[r] else int(np.flatnonzero(w > -np.inf)[-1])
            for r, w in enumerate(system.soft)
        ]
        self._bounds = np.array(bounds, np.int64)
        self._most = np.full(self._mass.size, np.iinfo(np.int64).max)
        self._lower(self._most, 0)
        self._tops = []
        for k, cell in ((1, sides.one), (2, sides.other)):
            top = np.bincount(cell, system.top).astype(np.int64)
            self._lower(top, k)
            room = np.bincount(sides.separator[self._first[k]], top).astype(np.int64)
            self._most = np.minimum(self._most, room)
            self._tops.append(top)

    def _lower(self, top: IntArray, side: int) -> None:
        """Lower the largest counts of cells to what the rows of a side leave."""
        for r in self._rows[side]:
            weight = self._weights[side][r]
            inside = weight > 0
            top[inside] = np.minimum(top[inside], self._bounds[r] // weight[inside])

    def _part(self, k: int, functions: Sequence[IntArray] = ()) -> Contraction:
        """Return the contraction of a side: separators, and functions, stay open."""
        system, first = self._system, self._first[k]
        separator = self._sides.separator[first]
        cell = self._sides.one if k == 1 else self._sides.other
        top, mass = (
            np.minimum(self._tops[k - 1], self._most[separator]),
            np.bincount(cell, system.mass),
        )
        priors = tuple(
            log_prior(m, int(t), dirichlet=False) for m, t in zip(mass, top, strict=True)
        )
        own = replace(system, matrix=sp.csr_array(self._weights[k]), priors=priors)
        each = (separator == np.arange(self._most.size)[:, None]).astype(np.int64)
        more = np.vstack([each, *(f[first] for f in functions)])
        sums = sums_of(own, self._rows[k], np.arange(first.size), np.inf, more)
        n, weights = self._rows[k].size, list(sums.weights)
        for s, most in enumerate(self._most):
            weights[n + s] = weights[n + s][: most + 1]
        sums = replace(sums, weights=tuple(weights))
        found = Contraction(sums, self._limit - self.pairs, range(n, n + len(more)))
        self.pairs += found.pairs
        return found

    def _joined(self, parts: Sequence[Contraction]) -> tuple[IntArray, IntArray, FloatArray]:
        """Return numbers that both sides can have, the states of either, and probabilities.

        The numbers (states, separators) are those of records, and then values of functions.
        """
        (one, p), (other, q) = (part.kept() for part in parts)
        width = self._mass.size
        place = {row[:width].tobytes(): at for at, row in enumerate(other)}
        at = np.array([place.get(row[:width].tobytes(), -1) for row in one], np.int64)
        here = np.flatnonzero(at >= 0)
        n = one[here, :width]
        with np.errstate(divide="ignore"):
            weight = np.log(p[here]) + np.log(q[at[here]])
        weight += (gammaln(n + 1.0) - n * np.log(self._mass)).sum(axis=1)
        for r in self._rows[0]:
            total = n @ self._weights[0][r]
            if self._system.hard[r]:
                weight[total != self._system.given[r]] = -np.inf
            else:
                soft = self._system.soft[r]
                inside = total < soft.size
                weight += np.where(inside, soft[np.where(inside, total, 0)], -np.inf)
        if not weight.size or weight.max() == -np.inf:
            raise NoStateError
        probability = np.exp(weight - weight.max())
        return one[here], np.stack([here, at[here]]), probability / probability.sum()

    def law_of(self, function: IntArray) -> FloatArray:
        """Return the probability of the values 0, 1, ... of a function that a side sees."""
        k = 1 if _sees(self._sides.one, function) else 2
        values, _, probability = self._joined([self._part(k, [function]), self._part(3 - k)])
        return np.bincount(values[:, -1], probability).astype(np.float64)

    def laws(self) -> tuple[FloatArray, ...]:
        """Return the probability of 0, 1, ... records of every group."""
        parts = [self._part(k) for k in (1, 2)]
        number, states, probability = self._joined(parts)
        seen = probability > _FAINT * probability.max()
        number, states, probability = number[seen], states[:, seen], probability[seen]
        one, other = (part.laws_given_kept(at) for part, at in zip(parts, states, strict=True))
        found: list[FloatArray] = [np.ones(1)] * self._system.mass.size
        sides = self._sides
        for s, mass in enumerate(self._mass):
            here = np.flatnonzero(sides.separator == s)
            i, a = np.unique(sides.one[here], return_inverse=True)
            j, b = np.unique(sides.other[here], return_inverse=True)
            laws = _pair_laws([one[c] for c in i], [other[c] for c in j], number[:, s], probability)
            # Of a pair of cells a group is a share, so that its records are binomial.
            of_one = np.bincount(a, self._system.mass[here])
            of_other = np.bincount(b, self._system.mass[here])
            share = np.minimum(1.0, self._system.mass[here] * mass / (of_one[a] * of_other[b]))
            values, back = np.unique(np.round(share, 12), return_inverse=True)
            for v in range(values.size):
                pair = np.flatnonzero(back == v)
                own = laws[a[pair], b[pair]] @ _thinning(laws.shape[2], float(share[pair[0]]))
                for g, law in zip(here[pair], own, strict=True):
                    found[g] = law
        return tuple(found)


def _pair_laws(
    one: list[FloatArray], other: list[FloatArray], n: IntArray, probability: FloatArray
) -> FloatArray:
    """Return the laws (cells, cells, values) of the records of each pair of cells.

    ``one`` and ``other`` are for each cell the laws (values, states) of its count; n people of both
    are paired, which has a ``probability`` in each state.
    """
    y, z = (_stacked(laws) for laws in (one, other))  # (values, cells, states)
    found = np.zeros((y.shape[1], z.shape[1], min(len(y), len(z))))
    log = gammaln(np.arange(int(n.max(initial=0)) + 2.0))
    log = np.append(log[1:], np.inf)  # log n!, and log of 1 / 0 for the factorial of -1
    rows = [np.flatnonzero(v.any(axis=1)) for v in y]
    columns = [np.flatnonzero(v.any(axis=1)) for v in z]
    for u, v in product(range(len(y)), range(len(z))):
        if not rows[u].size or not columns[v].size:
            continue
        fits = np.flatnonzero((n >= u) & (n >= v))
        m = n[fits]
        own = y[u][np.ix_(rows[u], fits)] * probability[fits]
        their = z[v][np.ix_(columns[v], fits)]
        for x in range(min(u, v) + 1):
            rest = m - u - v + x
            # P(x) = C(u, x) C(n - u, v - x) / C(n, v)
            h = log[u] - log[x] - log[u - x] + log[v] - log[v - x] - log[m]
            h = h + log[m - u] + log[m - v] - log[np.maximum(rest, -1)]
            found[:, :, x][np.ix_(rows[u], columns[v])] += (own * np.exp(h)) @ their.T
    return found


def _stacked(laws: list[FloatArray]) -> FloatArray:
    """Return laws of different lengths as one array (values, laws, states)."""
    found = np.zeros((max(map(len, laws)), len(laws), laws[0].shape[1]))
    for c, law in enumerate(laws):
        found[: len(law), c] = law
    return found


def _thinning(values: int, share: float) -> FloatArray:
    """Return the probability (values, values) that of x records k are in a share of them."""
    if share > 1.0 - 1e-9:
        return np.eye(values)
    x, k = np.arange(values)[:, None], np.arange(values)
    log = gammaln(np.arange(values) + 1.0)
    drawn = k * np.log(share) + (x - k) * np.log1p(-share)
    drawn = drawn + log[x] - log[k] - log[np.maximum(x - k, 0)]
    return np.where(k <= x, np.exp(drawn), 0.0)
