"""A system made small without changing its law: dead unknowns, equal columns, implied rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.prior import RecordPrior, pieces
from bayesrisk.inference.microdata.system import MAX_SUM, TAIL, MicrodataSystem, Rows
from bayesrisk.release import NoiseSpec, RoundingSpec

_DENOMINATORS = 12
_NO_BOUND = np.iinfo(np.int64).max
_MAX_ENTRIES = 2**26  # of rows by groups, written out: half a GiB


class TooLargeError(ArgumentError):
    """A place has too many counts for the engines that solve its system."""


@dataclass(frozen=True)
class SmallSystem:
    """The system over groups of unknowns whose columns are equal.

    Attributes
    ----------
    group : ndarray of int64
        The group of every unknown of the system; -1 where the count is 0 for certain.
    weight : ndarray of float
        Share of every unknown in its group: inside a group records are exchangeable.
    matrix : scipy.sparse.csr_array of int64
        Rows by groups; hard rows are independent of each other.
    hard, given : ndarray
        Which rows have a given sum, and the sum.
    soft : tuple of ndarray
        Log weight of the sums 0, 1, ... of every row; empty where it is hard.
    runs : tuple of ndarray of int64, shape (runs, 2)
        First and last sum of the runs of every row that most of its weight is on
        (:func:`~bayesrisk.inference.microdata.prior.pieces`).
    priors : tuple of ndarray
        Log weight of the counts 0, 1, ... of every group, up to the largest that rows leave.
    mass : ndarray of float
        Share, or Dirichlet parameter, of every group.
    constant : float
        Log weight that all points share.
    """

    group: IntArray
    weight: FloatArray
    matrix: sp.csr_array
    hard: IntArray
    given: IntArray
    soft: tuple[FloatArray, ...]
    runs: tuple[IntArray, ...]
    priors: tuple[FloatArray, ...]
    mass: FloatArray
    constant: float

    @property
    def top(self) -> IntArray:
        """Largest count of every group."""
        return np.array([p.size - 1 for p in self.priors], np.int64)


def presolve(system: MicrodataSystem, asked: sp.csr_array) -> tuple[SmallSystem, sp.csr_array]:
    """Return the small system, and functions of the unknowns (functions, unknowns) over groups.

    Raises
    ------
    ArgumentError
        If nothing bounds the number of records, or a sum has too many values.
    DataError
        If the prior forbids what was released, or rows contradict each other.
    """
    prior = system.prior
    mass = _mass(system)
    rows = _all_rows(system)
    for bad in np.flatnonzero(rows.hard & (rows.given < rows.known)):
        raise DataError(
            f"release contradicts what is known: {rows.names[bad]} is {rows.given[bad]}, and "
            f"{rows.known[bad]} are known"
        )
    zero = rows.hard & (rows.given == rows.known)
    alive = mass > 0.0
    alive[np.unique(rows.matrix[np.flatnonzero(zero), :].indices)] = False
    both = sp.csr_array(sp.vstack([rows.matrix, asked], format="csr"))
    group, first = _equal_columns(both, alive)
    total = np.bincount(group[alive], mass[alive], minlength=first.size).astype(float)
    weight = np.zeros(mass.size)
    weight[alive] = mass[alive] / total[group[alive]]
    rows.matrix = sp.csr_array(sp.csc_array(rows.matrix)[:, first])
    rows = rows.keep(np.flatnonzero(~zero))
    rows, constant = _without_implied(rows, prior)
    bounds = _bounds(rows, prior)
    top = _tops(rows, bounds, first.size)
    soft, runs = [], []
    for r in range(len(rows.laws)):
        part = slice(rows.matrix.indptr[r], rows.matrix.indptr[r + 1])
        reach = int(np.sum(rows.matrix.data[part] * top[rows.matrix.indices[part]]))
        if rows.hard[r]:
            soft.append(np.zeros(0))
            runs.append(np.full((1, 2), rows.given[r] - rows.known[r]))
            if reach < rows.given[r] - rows.known[r]:
                raise DataError(
                    f"release contradicts itself or the prior: {rows.names[r]} is "
                    f"{rows.given[r]}, and other counts leave at most {reach + rows.known[r]}"
                )
            continue
        soft.append(_log_weights(rows, r, min(reach, int(bounds[r])), prior))
        size = prior.size if rows.laws[r] is None else None
        law = soft[r] > -np.inf if size is None else size[rows.known[r] :][: soft[r].size]
        runs.append(pieces(law.astype(float)))
    priors = tuple(
        log_prior(m, int(t), dirichlet=prior.concentration is not None)
        for m, t in zip(total, top, strict=True)
    )
    small = SmallSystem(
        group,
        weight,
        rows.matrix,
        rows.hard,
        rows.given - rows.known,
        tuple(soft),
        tuple(runs),
        priors,
        total,
        constant,
    )
    return small, sp.csr_array(sp.csc_array(asked)[:, first].astype(np.int64))


def log_prior(mass: float, top: int, *, dirichlet: bool) -> FloatArray:
    """Return the log weight of 0, 1, ... ``top`` records of a group."""
    j = np.arange(top)
    step = np.log(mass + j) if dirichlet else np.full(top, np.log(mass))
    return np.concatenate([[0.0], np.cumsum(step - np.log1p(j))])


def _mass(system: MicrodataSystem) -> FloatArray:
    """Return the share, or Dirichlet parameter, of every unknown."""
    prior, n_places = system.prior, len(system.places)
    shares = system.classes.mass(prior.shares)
    mass = np.tile(shares * (prior.concentration or 1.0), n_places)
    if prior.concentration is not None:  # known people of a place say what others are like
        mass += system.known.settled.toarray().ravel() * (mass > 0.0)
    return np.concatenate([mass, *(group.mass for group in system.known.partly)])


def _all_rows(system: MicrodataSystem) -> Rows:
    """Return the rows of the system, of what is known, and of the people of every place."""
    n_places, n_classes, known = len(system.places), system.classes.size, system.known
    told = system.rows()
    settled = np.asarray(known.settled.sum(axis=1), np.int64).ravel()
    # The number of others: its law is that of all records, less those that are known.
    ones = sp.kron(
        sp.eye_array(n_places, dtype=np.int64), np.ones((1, n_classes), np.int64), format="csr"
    )
    ones = sp.hstack([ones, sp.csr_array((n_places, system.size - system.cells))], format="csr")
    parts, start = [], system.cells
    for group in known.partly:
        parts.append(_ones(np.arange(start, start + group.classes.size), system.size))
        start += group.classes.size
    among = [_ones(g.place * n_classes + g.classes, system.cells) for g in known.exactly]
    sums = sp.csr_array(sp.vstack(among, format="csr")) if among else None
    extra = [*parts] + ([system.over_unknowns(sums)] if sums is not None else [])
    constant = system.settled(sums) if sums is not None else np.zeros(0, np.int64)
    counts = [g.count for g in (*known.partly, *known.exactly)]
    return Rows(
        sp.csr_array(sp.vstack([told.matrix, ones, *extra], format="csr"), dtype=np.int64),
        np.concatenate([told.hard, np.zeros(n_places, np.bool_), np.ones(len(counts), np.bool_)]),
        np.concatenate([told.given, settled, np.array(counts, np.int64)]),
        np.concatenate([told.known, known.people, np.zeros(len(parts), np.int64), constant]),
        [*told.laws, *[None] * (n_places + len(counts))],
        [
            *told.names,
            *(f"number of records of {p}" for p in system.places),
            *(f"number of {g.name}" for g in (*known.partly, *known.exactly)),
        ],
    )


def _ones(columns: IntArray, width: int) -> sp.csr_array:
    """Return a row that counts some of the unknowns."""
    return sp.csr_array(
        (np.ones(columns.size, np.int64), columns, np.array([0, columns.size])), shape=(1, width)
    )


def _equal_columns(matrix: sp.csr_array, alive: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the group of every living unknown, and one unknown of each group."""
    columns = sp.csc_array(matrix)
    columns.sort_indices()
    group = np.full(columns.shape[1], -1, np.int64)
    seen: dict[bytes, int] = {}
    first: list[int] = []
    for at in np.flatnonzero(alive):
        part = slice(columns.indptr[at], columns.indptr[at + 1])
        key = columns.indices[part].tobytes() + b"|" + columns.data[part].tobytes()
        label = seen.setdefault(key, len(first))
        if label == len(first):
            first.append(int(at))
        group[at] = label
    return group, np.array(first, np.int64)


def _without_implied(rows: Rows, prior: RecordPrior) -> tuple[Rows, float]:
    """Remove rows whose sum the hard rows fix, and return the log weight of those sums."""
    if np.prod(rows.matrix.shape, dtype=float) > _MAX_ENTRIES:
        raise TooLargeError(
            f"place must have at most {_MAX_ENTRIES} pairs of a published count and a kind of "
            f"record, got {rows.matrix.shape[0]} * {rows.matrix.shape[1]}"
        )
    dense = rows.matrix.toarray()
    sizes = np.diff(rows.matrix.indptr)
    order = np.lexsort((sizes, ~rows.hard))
    span = _Span(dense.shape[1])
    kept, constant = [], 0.0
    for r in order:
        fixed = span.value(dense[r])
        if fixed is None:
            kept.append(r)
            if rows.hard[r]:
                span.add(dense[r], int(rows.given[r] - rows.known[r]))
            continue
        total, scale = fixed
        found = total / scale + int(rows.known[r])
        if total % scale or total < 0:
            raise DataError(
                f"release contradicts itself: other counts make {rows.names[r]} {found:g}"
            )
        if rows.hard[r]:
            if total != scale * int(rows.given[r] - rows.known[r]):
                raise DataError(
                    f"release contradicts itself or the prior: {rows.names[r]} is "
                    f"{rows.given[r]}, and other counts make it {found:.0f}"
                )
            continue
        value = float(_log_weight(rows, r, np.array([total // scale]), prior)[0])
        if value == -np.inf:
            raise DataError(
                f"release contradicts itself or the prior: {rows.names[r]} cannot be "
                f"{found:.0f}, as other counts say"
            )
        constant += value
    return rows.keep(np.array(sorted(kept), np.int64)), constant


class _Span:
    """Rows with given sums: which other sums they fix, found in floats and checked in integers."""

    def __init__(self, width: int) -> None:
        self._rows = np.zeros((0, width), np.int64)
        self._given: list[int] = []
        self._orthonormal = np.zeros((0, width))

    def add(self, row: IntArray, given: int) -> None:
        left = self._rest(row)
        self._orthonormal = np.vstack([self._orthonormal, left / np.linalg.norm(left)])
        self._rows = np.vstack([self._rows, row])
        self._given.append(given)

    def _rest(self, row: IntArray) -> FloatArray:
        left = row.astype(float)
        for _ in range(2):  # once more for what rounding left
            left = left - self._orthonormal.T @ (self._orthonormal @ left)
        return left

    def value(self, row: IntArray) -> tuple[int, int] | None:
        """Return (total, scale): the row's sum is total / scale.  None where it is not fixed."""
        size = float(np.linalg.norm(row))
        if size and np.linalg.norm(self._rest(row)) > 1e-9 * size:
            return None
        if not size:
            return 0, 1
        coef = np.linalg.lstsq(self._rows.T.astype(float), row.astype(float), rcond=None)[0]
        for scale in range(1, _DENOMINATORS + 1):
            whole = np.rint(coef * scale).astype(np.int64)
            if np.array_equal(whole @ self._rows, scale * row):
                return sum(int(c) * g for c, g in zip(whole, self._given, strict=True)), scale
        return None


def _bounds(rows: Rows, prior: RecordPrior) -> IntArray:
    """Return the largest sum of every row that has a weight."""
    found = np.full(len(rows.laws), _NO_BOUND, np.int64)
    for r, law in enumerate(rows.laws):
        if rows.hard[r]:
            found[r] = rows.given[r]
        elif law is None:
            size = prior.size
            if size is not None:
                found[r] = int(np.flatnonzero(size)[-1])
        elif isinstance(law, RoundingSpec):
            found[r] = rows.given[r] + law.base
    limited = found < _NO_BOUND
    found[limited] -= rows.known[limited]
    return found


def _tops(rows: Rows, bounds: IntArray, n_groups: int) -> IntArray:
    """Return the largest count of every group: by exact bounds, or else by noisy sums."""
    top = np.full(n_groups, _NO_BOUND, np.int64)
    _lower(top, rows.matrix, bounds)
    if np.any(top == _NO_BOUND):
        noisy = bounds.copy()
        for r, law in enumerate(rows.laws):
            if isinstance(law, NoiseSpec):
                noisy[r] = max(0, int(rows.given[r])) + int(law.to_law().isf(TAIL))
                noisy[r] -= rows.known[r]
        weak = top == _NO_BOUND
        limit = top.copy()
        _lower(limit, rows.matrix, noisy)
        top[weak] = limit[weak]
        bounds[:] = np.minimum(bounds, noisy)
    if np.any(top == _NO_BOUND):
        raise ArgumentError(
            "size must be given in the prior: no published count bounds the number of records"
        )
    return top


def _lower(top: IntArray, matrix: sp.csr_array, bounds: IntArray) -> None:
    for r in np.flatnonzero(bounds < _NO_BOUND):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        groups, coef = matrix.indices[part], matrix.data[part]
        top[groups] = np.minimum(top[groups], np.maximum(bounds[r], 0) // coef)


def _log_weights(rows: Rows, r: int, most: int, prior: RecordPrior) -> FloatArray:
    if most > MAX_SUM:
        raise ArgumentError(
            f"release must leave at most {MAX_SUM} values to {rows.names[r]}, got {most}"
        )
    return _log_weight(rows, r, np.arange(most + 1), prior)


def _log_weight(rows: Rows, r: int, sums: IntArray, prior: RecordPrior) -> FloatArray:
    """Return the log weight of sums of a soft row."""
    law = rows.laws[r]
    if law is None:
        return log_size(sums, prior, int(rows.known[r]), int(rows.given[r]))
    sums = sums + rows.known[r]
    if isinstance(law, NoiseSpec):
        return np.asarray(law.to_law().logpmf(int(rows.given[r]) - sums), dtype=float)
    found = law.probability(int(rows.given[r]), sums)
    with np.errstate(divide="ignore"):
        weights: FloatArray = np.log(np.asarray(found, dtype=float))
    return weights


def log_size(u: IntArray, prior: RecordPrior, known: int = 0, settled: int = 0) -> FloatArray:
    """Return log of P(n) u!, with n = u + known, times Gamma(A) / Gamma(A + u) for unknown shares.

    A is the concentration and the number of known people whose class is known.
    """
    size, a = prior.size, prior.concentration
    value: FloatArray = np.asarray(gammaln(u + 1.0), dtype=float)
    if a is not None:
        steps = np.concatenate([[0.0], np.cumsum(np.log(a + settled + np.arange(int(u.max()))))])
        value = value - steps[u]
    if size is not None:
        n = u + known
        with np.errstate(divide="ignore"):
            value = value + np.where(
                n < size.size, np.log(size[np.minimum(n, size.size - 1)]), -np.inf
            )
    return value
