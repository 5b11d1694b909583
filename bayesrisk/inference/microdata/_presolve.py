"""A system made small without changing its law: dead unknowns, equal columns, implied rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammaln

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.inference.microdata.system import MAX_SUM, TAIL, MicrodataSystem, Rows
from bayesrisk.release import NoiseSpec, RoundingSpec

__all__ = ["SmallSystem", "log_prior", "presolve"]

_DENOMINATORS = 12
_NO_BOUND = np.iinfo(np.int64).max


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
    prior, n_places = system.prior, len(system.places)
    shares = system.classes.mass(prior.shares)
    mass = np.tile(shares * (prior.concentration or 1.0), n_places)
    rows = _all_rows(system)
    zero = rows.hard & (rows.given == 0)
    alive = mass > 0.0
    alive[np.unique(rows.matrix[np.flatnonzero(zero), :].indices)] = False
    both = sp.csr_array(sp.vstack([rows.matrix, asked], format="csr"))
    group, first = _equal_columns(both, alive)
    total = np.bincount(group[alive], mass[alive], minlength=first.size).astype(float)
    weight = np.zeros(mass.size)
    weight[alive] = mass[alive] / total[group[alive]]
    rows.matrix = sp.csr_array(sp.csc_array(rows.matrix)[:, first])
    rows = rows.keep(np.flatnonzero(~zero))
    rows, constant = _without_implied(rows, prior, n_places)
    bounds = _bounds(rows, prior)
    top = _tops(rows, bounds, first.size)
    soft = []
    for r in range(len(rows.laws)):
        part = slice(rows.matrix.indptr[r], rows.matrix.indptr[r + 1])
        most = sum(
            int(c) * int(top[g])
            for c, g in zip(rows.matrix.data[part], rows.matrix.indices[part], strict=True)
        )
        if rows.hard[r]:
            soft.append(np.zeros(0))
            if most < rows.given[r]:
                raise DataError(
                    f"release contradicts itself or the prior: {rows.names[r]} is "
                    f"{rows.given[r]}, and other counts leave at most {most}"
                )
            continue
        soft.append(_log_weights(rows, r, min(most, int(bounds[r])), prior))
    priors = tuple(
        log_prior(m, int(t), dirichlet=prior.concentration is not None)
        for m, t in zip(total, top, strict=True)
    )
    small = SmallSystem(
        group, weight, rows.matrix, rows.hard, rows.given, tuple(soft), priors, total, constant
    )
    return small, sp.csr_array(sp.csc_array(asked)[:, first].astype(np.int64))


def log_prior(mass: float, top: int, *, dirichlet: bool) -> FloatArray:
    """Return the log weight of 0, 1, ... ``top`` records of a group."""
    j = np.arange(top)
    step = np.log(mass + j) if dirichlet else np.full(top, np.log(mass))
    return np.concatenate([[0.0], np.cumsum(step - np.log1p(j))])


def _all_rows(system: MicrodataSystem) -> Rows:
    """Return the rows of the system, and one for the number of records of every place."""
    n_places, n_classes = len(system.places), system.classes.size
    told = system.rows()
    ones = sp.kron(
        sp.eye_array(n_places, dtype=np.int64), np.ones((1, n_classes), np.int64), format="csr"
    )
    return Rows(
        sp.csr_array(sp.vstack([told.matrix, ones], format="csr"), dtype=np.int64),
        np.concatenate([told.hard, np.zeros(n_places, np.bool_)]),
        np.concatenate([told.given, np.zeros(n_places, np.int64)]),
        np.concatenate([told.known, np.zeros(n_places, np.int64)]),
        [*told.laws, *[None] * n_places],
        [*told.names, *(f"number of records of {p}" for p in system.places)],
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


def _without_implied(rows: Rows, prior: RecordPrior, n_places: int) -> tuple[Rows, float]:
    """Remove rows whose sum the hard rows fix, and return the log weight of those sums."""
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
                span.add(dense[r], int(rows.given[r]))
            continue
        total, scale = fixed
        if total % scale or total < 0:
            raise DataError(
                f"release contradicts itself: other counts make {rows.names[r]} {total / scale:g}"
            )
        if rows.hard[r]:
            if total != scale * int(rows.given[r]):
                raise DataError(
                    f"release contradicts itself or the prior: {rows.names[r]} is "
                    f"{rows.given[r]}, and other counts make it {total // scale}"
                )
            continue
        value = float(_log_weight(rows, r, np.array([total // scale]), prior)[0])
        if value == -np.inf:
            raise DataError(
                f"release contradicts itself or the prior: {rows.names[r]} cannot be "
                f"{total // scale}, as other counts say"
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
        return log_size(sums, prior)
    if isinstance(law, NoiseSpec):
        return np.asarray(law.to_law().logpmf(int(rows.given[r]) - sums), dtype=float)
    known = int(rows.known[r])
    found = law.probability(int(rows.given[r]) + known, sums + known)
    with np.errstate(divide="ignore"):
        weights: FloatArray = np.log(np.asarray(found, dtype=float))
    return weights


def log_size(n: IntArray, prior: RecordPrior) -> FloatArray:
    """Return log of P(n) n!, times Gamma(A) / Gamma(A + n) where the shares are unknown."""
    size, a = prior.size, prior.concentration
    value: FloatArray = np.asarray(gammaln(n + 1.0), dtype=float)
    if a is not None:
        steps = np.concatenate([[0.0], np.cumsum(np.log(a + np.arange(int(n.max()))))])
        value = value - steps[n]
    if size is not None:
        with np.errstate(divide="ignore"):
            value = value + np.where(
                n < size.size, np.log(size[np.minimum(n, size.size - 1)]), -np.inf
            )
    return value


def columns_of(matrix: sp.csr_array) -> Sequence[tuple[IntArray, IntArray]]:
    """Return the rows and coefficients of every column."""
    columns = sp.csc_array(matrix)
    columns.sort_indices()
    return [
        (
            columns.indices[columns.indptr[c] : columns.indptr[c + 1]].astype(np.int64),
            columns.data[columns.indptr[c] : columns.indptr[c + 1]].astype(np.int64),
        )
        for c in range(columns.shape[1])
    ]
