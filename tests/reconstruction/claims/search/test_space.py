"""Classes of the cells of a place, against comparing every two cells."""

import itertools

import numpy as np
import pytest
from range_cases import range_case

from bayesrisk.reconstruction.claims.search.block_system import place_classes
from bayesrisk.reconstruction.claims.search.space import Rules, claim_space


@pytest.mark.parametrize("seed", range(12))
def test_cells_are_of_one_class_where_all_counts_that_say_something_count_them_alike(seed):
    schema, tables, cells, published, *_ = range_case(seed)
    space = claim_space(schema, tuple(tables), Rules(False, "merged", ()), cells=cells)
    rng = np.random.default_rng(seed)
    ends = [published.support("block", table.name, np.zeros(1, np.int64)) for table in tables]
    low, high = (np.concatenate(side, axis=1)[0] for side in zip(*ends, strict=True))
    own = space.cells.representatives(np.ravel_multi_index(tuple(space.codes.T), space.cells.shape))
    weights = np.concatenate([table.incidence(schema, own).toarray() for table in tables])
    says = [q for q in range(low.size) if high[q] != 0 and (high[q] < 2**52 or low[q] > 0)]
    live = [c for c in range(own.size) if not weights[high == 0, c].any()]
    for marks in (None, rng.integers(2, size=(2, own.size))):
        found = place_classes(space, low, high, marks)
        assert found.query.tolist() == says
        assert found.cells.tolist() == live
        kind = {cell: k for k, members in enumerate(found.members) for cell in members.tolist()}
        assert sorted(kind) == live
        for one, other in itertools.combinations(live, 2):
            alike = (weights[says, one] == weights[says, other]).all()
            alike &= marks is None or (marks[:, one] == marks[:, other]).all()
            assert (kind[one] == kind[other]) == alike
        for k, members in enumerate(found.members):
            column = weights[says, members[0]]
            assert found.columns[:, [k]].toarray().ravel().tolist() == column.tolist()
            assert found.bound[k] == column.any()
        if marks is None:  # what nothing binds is the last
            assert not np.any(np.diff(found.bound.astype(int)) > 0)
