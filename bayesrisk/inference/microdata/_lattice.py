"""Moves that leave exact counts as they are: a basis of a lattice, and combinations of it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata._lattice_kernels import Lattice
from bayesrisk.inference.microdata._presolve import SmallSystem

__all__ = ["kernel_basis", "lattice", "moves_of"]

#: Most groups of a system whose lattice is worked out.
MAX_GROUPS = 2000
_LARGEST = 2**31  # entries of a basis beyond this are refused: products must fit 64 bits
_SPARSEST = 4  # combinations are kept while they are at most so many times as long as a basis move


def kernel_basis(matrix: IntArray) -> IntArray:
    """Return a basis of the whole vectors z with ``matrix @ z == 0``, one in each row.

    Columns are reduced by whole-number steps of Euclid, row by row; those that end with zeros are
    a basis of the kernel, and short vectors are then subtracted from longer ones.

    Parameters
    ----------
    matrix : ndarray of int64, shape (rows, columns)
        Weights.

    Returns
    -------
    ndarray of int64, shape (dimension, columns)
        Every whole vector of the kernel is a combination of them with whole coefficients.

    Raises
    ------
    ArgumentError
        If entries grow beyond 2^31.
    """
    n = matrix.shape[1]
    work = np.concatenate([matrix.T.copy(), np.eye(n, dtype=np.int64)], axis=1)  # row: a column
    rows, done = matrix.shape[0], 0
    for r in range(rows):
        while True:
            active = done + np.flatnonzero(work[done:, r])
            if active.size == 0:
                break
            sizes = np.abs(work[active, r]) * (n + 1) + np.count_nonzero(work[active], axis=1)
            pivot = active[np.argmin(sizes)]
            work[[done, pivot]] = work[[pivot, done]]
            others = done + 1 + np.flatnonzero(work[done + 1 :, r])
            if others.size == 0:
                done += 1
                break
            factor = np.rint(work[others, r] / work[done, r]).astype(np.int64)
            factor[factor == 0] = np.sign(work[others, r] * work[done, r])[factor == 0]
            work[others] -= factor[:, None] * work[done]
            if np.abs(work[others]).max(initial=0) > _LARGEST:
                raise ArgumentError("the lattice of the published counts has too large entries")
    return _shortened(work[done:, rows:])


def _shortened(basis: IntArray) -> IntArray:
    """Subtract multiples of vectors from longer ones while that makes them shorter."""
    basis = basis[np.argsort((basis**2).sum(axis=1), kind="stable")]
    for _ in range(20):
        gram = basis @ basis.T
        size = np.diag(gram).copy()
        changed = False
        for i in range(len(basis)):
            factor = np.rint(gram[i] / np.maximum(size, 1)).astype(np.int64)
            factor[i] = 0
            # Only shorter vectors are taken from longer ones, the best of them first.
            gain = 2 * factor * gram[i] - factor**2 * size
            j = int(np.argmax(gain))
            if gain[j] > 0:
                basis[i] -= factor[j] * basis[j]
                gram = basis @ basis.T
                size = np.diag(gram).copy()
                changed = True
        if not changed:
            break
    return basis[np.argsort((basis**2).sum(axis=1), kind="stable")]


def moves_of(basis: IntArray, more: IntArray, rng: np.random.Generator, count: int) -> IntArray:
    """Return basis moves, given moves, and random combinations of two to four of them.

    A basis alone need not connect the points that are not negative.

    Parameters
    ----------
    basis : ndarray of int64, shape (dimension, groups)
        A basis of the lattice.
    more : ndarray of int64, shape (moves, groups)
        Other moves, such as differences of solutions.
    rng : Generator
        For the combinations.
    count : int
        How many combinations to try.

    Returns
    -------
    ndarray of int64, shape (moves, groups)
        Each once, whatever its sign.
    """
    dimension = len(basis)
    found = [basis, more]
    longest = _SPARSEST * max(1, int(np.abs(basis).sum(axis=1).max(initial=1)))
    if dimension > 1:
        # Combinations of neighbours, moves that share a group, are shorter than others.
        near = (np.abs(basis) > 0).astype(np.int64)
        near = near @ near.T
        rows = []
        for _ in range(count):
            i = int(rng.integers(dimension))
            z = basis[i].copy()
            for _ in range(int(rng.integers(1, 4))):
                weights = near[i] + 0.05
                j = int(rng.choice(dimension, p=weights / weights.sum()))
                z += int(rng.choice([-1, 1])) * basis[j]
            if z.any() and np.abs(z).sum() <= longest:
                rows.append(z)
        if rows:
            found.append(np.array(rows))
    every = np.concatenate([f for f in found if len(f)]) if dimension else more
    if not len(every):
        return np.zeros((0, basis.shape[1]), np.int64)
    first = np.argmax(every != 0, axis=1)
    sign = np.sign(every[np.arange(len(every)), first])
    unique: IntArray = np.unique(every * sign[:, None], axis=0)
    return unique[unique.any(axis=1)]


def lattice(system: SmallSystem, moves: IntArray) -> Lattice:
    """Return the arrays of the kernel."""
    soft = [s if not h else np.zeros(0) for s, h in zip(system.soft, system.hard, strict=True)]
    z = sp.csr_array(moves)
    changed = sp.csr_array(z @ system.matrix.T)
    changed = sp.csr_array(changed.multiply(~system.hard[None, :]))
    changed.eliminate_zeros()
    return Lattice(
        ptr=z.indptr.astype(np.int64),
        group=z.indices.astype(np.int64),
        coef=z.data.astype(np.int64),
        row_ptr=changed.indptr.astype(np.int64),
        row=changed.indices.astype(np.int64),
        row_coef=changed.data.astype(np.int64),
        prior_ptr=_starts([p.size for p in system.priors]),
        prior=np.concatenate([*system.priors, np.zeros(1)]),
        soft_ptr=_starts([s.size for s in soft]),
        soft=np.concatenate([*soft, np.zeros(1)]),
    )


def _starts(sizes: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
