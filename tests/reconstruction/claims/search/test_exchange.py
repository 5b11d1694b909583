"""Walks by exchange: every step is a data set with the published counts, and none is made up."""

import itertools

import numpy as np
import scipy.sparse as sp
from claims_cases import case, odd_case
from oracles import claims as oracle

from bayesrisk.constraints.solvers import Deadline
from bayesrisk.reconstruction.claims.search.exchange import Exchange
from bayesrisk.reconstruction.claims.search.lattice import subsets


def walked(weights, codes, eligible, data, *, idle=8):
    """Claims of some records (one class for each cell), after a walk: keys, settled, the end."""
    width = codes.shape[1]
    sets = subsets(range(width), width)
    radix = np.cumprod(np.append(1, codes.max(axis=0)[:-1] + 2)).astype(np.int64)
    keys = {}
    for row in codes[(data > 0) & eligible]:
        for bits in sets.bits.tolist():
            used = [a for a in range(width) if bits >> a & 1]
            pattern = tuple((a, int(row[a])) for a in used)
            keys[sum((c + 1) * int(radix[a]) for a, c in pattern)] = pattern
    columns = sp.csc_array(weights)
    columns.sort_indices()
    walk = Exchange(
        columns, np.arange(len(codes) + 1), np.ascontiguousarray(codes.astype(np.int16)), eligible,
        sets, radix, np.array(list(keys), np.int64),
    )  # fmt: skip
    end = walk.walk(data, idle=idle, deadline=Deadline())
    return list(keys.values()), walk.settled, end


def test_walks_stay_among_the_data_sets_and_refute_only_what_differs():
    refuted = held = 0
    for seed in range(60):
        schema, tables, cells, _, sets, data = (case if seed % 2 else odd_case)(seed)
        if seed % 2 == 0:
            if not len(sets):
                continue
            data = sets[0]
        weights = oracle.weights_of(schema, tables, cells)
        bound = (weights > 0).any(axis=0)
        if not bound.all():
            continue
        codes = np.array([np.unravel_index(c, schema.shape) for c in cells])
        claims, settled, end = walked(weights, codes, np.ones(len(cells), bool), data)
        assert np.array_equal(weights @ end, weights @ data)
        for pattern, gone in zip(claims, settled, strict=True):
            match = np.all([codes[:, a] == c for a, c in pattern], axis=0)
            if gone:
                assert len(set((sets @ match).tolist())) > 1
                refuted += 1
            else:
                held += 1
    assert refuted > 30
    assert held > 30


def test_exchanges_meet_every_table_with_the_same_margins():
    # Two rows and columns of twos: tables with these margins are all one exchange apart.
    weights = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    codes = np.array(list(itertools.product(range(2), range(2))))
    claims, settled, _ = walked(weights, codes, np.ones(4, bool), np.array([1, 1, 1, 1]))
    answer = dict(zip(claims, settled.tolist(), strict=True))
    assert [answer[(a, c),] for a in range(2) for c in range(2)] == [False] * 4
    assert [answer[(0, r), (1, c)] for r in range(2) for c in range(2)] == [True] * 4


def test_records_that_claims_are_not_about_are_exchanged_and_not_counted():
    weights = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    codes = np.array(list(itertools.product(range(2), range(2))))
    eligible = np.array([True, True, False, False])
    claims, settled, _ = walked(weights, codes, eligible, np.array([1, 0, 0, 1]))
    answer = dict(zip(claims, settled.tolist(), strict=True))
    assert answer == {((0, 0),): False, ((1, 0),): True, ((0, 0), (1, 0)): True}
