"""Small random rows over cells of one block, and programs of them."""

import numpy as np
import scipy.sparse as sp

from bayesrisk.constraints.model import by_columns
from bayesrisk.reconstruction.records.problem import CountRanges, RowSource
from bayesrisk.reconstruction.records.search import build_program


def random_problem(rng, *, weights=(1,), feasible=True):
    """Return a matrix (two partitions and some further rows), and counts."""
    n = int(rng.integers(2, 8))
    rows = []
    for _ in range(2):
        label = rng.integers(0, 3, n)
        rows += [(label == k).astype(int) for k in range(3) if (label == k).any()]
    rows += [rng.integers(0, 2, n) * rng.choice(weights, n) for _ in range(int(rng.integers(0, 3)))]
    matrix = np.array(rows)
    x = rng.integers(0, 3, n) * rng.integers(0, 2, n)
    counts = matrix @ x
    if not feasible:
        counts = np.maximum(counts + rng.integers(-1, 2, len(counts)), 0)
    return matrix, counts, x


def source_of(matrix, counts, family=None):
    family = np.arange(len(matrix)) if family is None else family
    return RowSource(
        by_columns(matrix), family.astype(np.int64),
        CountRanges.from_counts(sp.csr_array(counts[None, :].astype(np.int64))),
        np.zeros(1, np.int64),
    )  # fmt: skip


def open_problem(rng, **options):
    """Return a program with all of its variables free, and what it was made from."""
    matrix, counts, x = random_problem(rng, **options)
    used = matrix.sum(axis=0) > 0
    matrix, x = matrix[:, used], x[used]
    n = matrix.shape[1]
    high = np.full(n, int(counts.max(initial=0)))
    source = source_of(matrix, counts)
    program = build_program(
        [source], np.zeros(n, np.int64), np.arange(n), np.zeros(n, np.int64), high
    )
    return program, matrix, counts, x, high
