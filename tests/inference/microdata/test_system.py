"""Classes and weights of tables, and what questions make of them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from random_places import place

from bayesrisk.constraints.model import IntegerModel
from bayesrisk.exceptions import DataError
from bayesrisk.inference import RecordQuestion
from bayesrisk.inference.microdata import system
from bayesrisk.inference.microdata.system import make_system


def found(seed, conditions):
    """Return the system of a random tract, and the tables and questions that made it."""
    release, prior, _, _ = place(seed, "mixed", 2)
    apart = [t for c in conditions for t in RecordQuestion(c).tables(prior.schema)]
    where = {"level": "tract", "place": release.tables.geoids["tract"][0]}
    return make_system(release, prior=prior, conditions=apart, **where), release, apart


@pytest.mark.parametrize("seed", range(6))
def test_codes_are_in_one_class_if_no_table_and_no_question_tells_them_apart(seed):
    rng = np.random.default_rng(seed)
    schema = found(seed, [])[1].tables.workload.schema
    condition = {a.name: rng.choice(a.size, rng.integers(1, a.size + 1)) + a.first
                 for a in schema.attributes if rng.random() < 0.7}  # fmt: skip
    system, release, apart = found(seed, [condition])
    workload = release.tables.workload
    tables = [t for level in workload.levels for t in workload.at(level).values()] + apart
    for attribute in schema.attributes:
        bins, factors = system.classes.bins[attribute.name], [
            t.factors[attribute.name] for t in tables if attribute.name in t.factors
        ]  # fmt: skip
        for i, j in itertools.combinations(range(attribute.size), 2):
            alike = all(np.array_equal(f[:, i], f[:, j]) for f in factors)
            assert (bins[i] == bins[j]) == alike
        first = np.unique(bins, return_index=True)[1]
        assert np.all(np.diff(first) > 0)  # numbered as they come
    cells = system.classes.representatives()
    for layer in system.layers:
        expected = [t.incidence(schema, cells) for t in workload.at(layer.level).values()]
        np.testing.assert_array_equal(
            layer.weights.toarray(), np.concatenate([e.toarray() for e in expected])
        )


def test_questions_that_tell_nothing_more_apart_take_the_weights_that_are_there():
    """They are a large part of the time of a small place."""
    plain, release, _ = found(1, [])
    schema = release.tables.workload.schema
    whole = [{a.name: [a.first + int(c) for c in np.flatnonzero(plain.classes.bins[a.name] == 0)]}
             for a in schema.attributes]  # fmt: skip
    asked = found(1, whole)[0]
    again = make_system(
        release,
        level="tract",
        place=release.tables.geoids["tract"][0],
        prior=asked.prior,
        conditions=[t for c in whole for t in RecordQuestion(c).tables(schema)],
    )
    same = make_system(
        release, level="tract", place=release.tables.geoids["tract"][0], prior=asked.prior
    )
    assert again.classes is same.classes
    for one, other in zip(again.layers, same.layers, strict=True):
        assert one.weights is other.weights


@pytest.mark.parametrize("at_once", [1, 2000])
def test_of_hard_rows_the_first_independent_ones_are_kept_those_of_few_unknowns_first(
    at_once, monkeypatch
):
    monkeypatch.setattr(system, "_AT_ONCE", at_once)
    rng = np.random.default_rng(at_once)
    for _ in range(60):
        size, n_rows = int(rng.integers(1, 5)), int(rng.integers(1, 14))
        matrix = rng.integers(0, 2, (n_rows, size))
        sums = matrix @ rng.integers(0, 4, size)
        nobody, names = np.zeros(size, np.int64), [str(row) for row in range(n_rows)]
        model = IntegerModel(nobody, nobody + 9, sp.csr_array(matrix), sums, sums)
        marks = np.ones(n_rows, np.bool_), sums, np.zeros(n_rows, np.int64), [None] * n_rows
        given = system.PublishedRows(model, *marks, names)
        order = sorted(range(n_rows), key=lambda row: matrix[row].sum())
        ranks = [np.linalg.matrix_rank(matrix[order[: k + 1]]) for k in range(n_rows)]
        expected = {str(order[k]) for k in np.flatnonzero(np.diff(ranks, prepend=0))}
        left = system._drop_implied_rows(given, None)
        assert set(left.names) == expected
        # One more of any row that is left out contradicts the others.
        outside = [row for row in range(n_rows) if str(row) not in expected]
        if outside:
            sums[outside[-1]] += 1
            with pytest.raises(DataError, match="contradicts itself"):
                system._drop_implied_rows(given, None)
