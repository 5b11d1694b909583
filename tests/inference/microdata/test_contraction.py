"""The law of whole numbers of which sums are known: against enumeration of all their values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk.constraints.solvers import Deadline
from bayesrisk.inference.microdata import contraction
from bayesrisk.inference.microdata.boxes import box_laws
from bayesrisk.inference.microdata.contraction import (
    Contraction,
    NoStateError,
    TooManyStatesError,
    weighed_model,
)


def instance(rng):
    """Return sums of up to five unknowns: exact, in ranges with gaps, with noise of any size."""
    unknowns, rows = rng.integers(1, 6, 2)
    matrix = (rng.random((rows, unknowns)) < 0.6) * rng.integers(1, 3, (rows, unknowns))
    top = rng.integers(0, 5, unknowns)
    truth = rng.integers(0, top + 1)
    priors = [rng.normal(0.0, 3.0, t + 1) for t in top]
    for prior in priors:
        prior[rng.random(prior.size) < 0.1] = -np.inf
    low, weights = np.zeros(rows, np.int64), []
    for r, total in enumerate(matrix @ truth):
        kind = rng.integers(0, 3)
        if kind == 0:
            low[r] = total
            weights.append(np.zeros(1))
        elif kind == 1:
            low[r] = max(0, total - rng.integers(0, 3))
            weights.append(rng.normal(0.0, 5.0, rng.integers(1, 6)))
            weights[-1][rng.random(weights[-1].size) < 0.2] = -np.inf
        else:
            s = np.arange(matrix[r] @ top + 1)
            weights.append(-((s - total) ** 2) / (2.0 * rng.choice([0.003, 1.0, 30.0])))
    return weighed_model(matrix.astype(np.int64), low, tuple(weights), tuple(priors))


def enumerated(sums):
    """Return all values of the unknowns, and their log weights."""
    points = np.array(list(itertools.product(*(range(p.size) for p in sums.priors))))
    weight = sum(p[x] for p, x in zip(sums.priors, points.T, strict=True))
    for row, low, own in zip(
        sums.model.rows.toarray(), sums.model.row_low, sums.row_weights, strict=True
    ):
        s = points @ row - low
        inside = (s >= 0) & (s < own.size)
        weight = weight + np.where(inside, own[np.where(inside, s, 0)], -np.inf)
    return points, weight


def on_boxes(sums, limit=10**9):
    priors = np.full((len(sums.priors), max(p.size for p in sums.priors)), -np.inf)
    for row, prior in zip(priors, sums.priors, strict=True):
        row[: prior.size] = prior
    return box_laws(
        sums.model.rows.toarray(), sums.model.row_low, list(sums.row_weights), priors, limit
    )


def disagreement(sums, function):
    """Return the largest difference from enumeration; None where nothing is possible."""
    points, weight = enumerated(sums)
    most = weight.max()
    reach = int(function @ [p.size - 1 for p in sums.priors])
    more = sums.with_sums(function[None])
    if most == -math.inf:
        for one in (sums, more):
            with pytest.raises(NoStateError):
                Contraction(one, 10**7)
            assert on_boxes(one) is None
        return None
    found, kept = Contraction(sums, 10**7), Contraction(more, 10**7, [len(sums.model.row_low)])
    p = np.exp(weight - most)
    worst = abs(found.log_weight - most - math.log(p.sum()))
    p /= p.sum()
    if (held := on_boxes(sums)) is None:  # underflow might be seen in it
        peaks = sum(float(w.max()) for w in (*sums.row_weights, *sums.priors))
        assert most - peaks < -600.0
        return worst
    log_weight, boxes = held
    worst = max(worst, abs(log_weight - most - math.log(np.exp(weight - most).sum())))
    for x, law, other in zip(points.T, found.laws(), boxes, strict=True):
        exact = np.bincount(x, p, minlength=law.size)
        assert not other[law.size :].any()
        worst = max(worst, np.abs(exact - law).max(), np.abs(exact - other[: law.size]).max())
    values, probability = kept.root_states()
    law = np.bincount(values[:, 0], probability, minlength=reach + 1)
    return max(worst, np.abs(np.bincount(points @ function, p, minlength=reach + 1) - law).max())


def worst_of(seed, number):
    rng = np.random.default_rng(seed)
    found = [
        disagreement(sums, rng.integers(0, 3, sums.model.high.size))
        for sums in (instance(rng) for _ in range(number))
    ]
    decided = [d for d in found if d is not None]
    assert number > len(decided) > number / 3  # both kinds of instance occur
    return max(decided)


@pytest.mark.parametrize(
    ("seed", "number"), [(1, 80), pytest.param(2, 4000, marks=pytest.mark.slow)]
)
def test_laws_of_unknowns_and_of_functions_agree_with_enumeration(seed, number):
    assert worst_of(seed, number) < 1e-11


def block(rng, ages, top, filled=0.3):
    """Return sums like four tables of a block rounded to the nearest 3: by age, and in total."""
    see = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]])  # kinds of each table
    matrix = np.vstack([np.kron(np.eye(ages, dtype=np.int64), see), np.tile(see, ages)])
    truth = rng.integers(0, top + 1, 4 * ages) * (rng.random(4 * ages) < filled)
    rounded = 3 * ((matrix @ truth + 1) // 3)
    low = np.maximum(rounded - 1, 0)
    weights = tuple(np.zeros(n) for n in rounded + 2 - low)
    priors = tuple(rng.normal(0.0, 1.0, (4 * ages, top + 1)))
    return weighed_model(matrix, low, weights, priors)


def by_age(sums, ages):
    """Return the log weight of a block: of all numbers in total, age after age."""
    totals = {(0,) * 4: 1.0}
    for age in range(ages):
        rows, unknowns = slice(4 * age, 4 * age + 4), slice(4 * age, 4 * age + 4)
        own = (
            sums.model.rows.toarray()[rows, unknowns],
            sums.model.row_low[rows],
            sums.row_weights[rows],
            sums.priors[unknowns],
        )
        points, weight = enumerated(weighed_model(*own))
        more = {}
        for x, w in zip(points @ own[0].T, np.exp(weight), strict=True):
            for total, before in totals.items() if w > 0.0 else ():
                key = tuple(np.add(total, x))
                more[key] = more.get(key, 0.0) + before * w
        totals = more
    low, high = sums.model.row_low[-4:], sums.model.row_high[-4:]
    inside = (w for key, w in totals.items() if np.all(low <= key) and np.all(high >= key))
    return math.log(sum(inside))


def test_rounded_tables_of_a_block_agree_with_enumeration_and_with_ages_in_turn():
    rng = np.random.default_rng(5)
    worst = [disagreement(block(rng, 2, 2), rng.integers(0, 2, 8)) for _ in range(6)]
    assert max(worst) < 1e-11
    sums = block(rng, 5, 3)
    found = Contraction(sums, 10**7).log_weight
    assert found == pytest.approx(by_age(sums, 5), abs=1e-10)
    sums.priors[0][0] += 1e-3  # a control
    assert abs(by_age(sums, 5) - found) > 1e-6


class AllCosts(Contraction):
    """The same with the cost of every row worked out to its end."""

    def _cheapest(self, parts):
        touching = {}
        for part in sorted(parts, key=lambda part: part.size):
            for row in part.rows:
                touching.setdefault(int(row), []).append(part)
        choices = [own for own in touching.values() if len(own) > 1]
        return min(choices, key=lambda own: self._cost(own, math.inf), default=[])


def test_costs_that_are_given_up_leave_the_plan_and_its_numbers_as_they_are():
    rng = np.random.default_rng(6)
    for ages in (2, 4, 7):
        sums = block(rng, ages, 3)
        one, other = Contraction(sums, 10**7), AllCosts(sums, 10**7)
        assert one.log_weight == other.log_weight
        assert one.pairs == other.pairs
        assert [p.cells for p, _ in one._joins] == [p.cells for p, _ in other._joins]
        assert all(map(np.array_equal, one.laws(), other.laws()))
    # Of a whole block the plan is short, and its limit a count that no clock changes.
    sums = block(rng, 46, 1, 0.15)
    assert Contraction(sums, 10**6).pairs < 10**6
    with pytest.raises(TooManyStatesError):
        AllCosts(sums, 10**6)


def test_boxes_refuse_what_they_cannot_hold():
    n = 4
    matrix, low = (
        np.vstack([np.ones((1, n)), np.eye(n)[:2]]).astype(np.int64),
        np.zeros(3, np.int64),
    )
    sums = weighed_model(
        matrix, low, (np.zeros(41), np.zeros(11), np.zeros(11)), (np.zeros(11),) * n
    )
    assert on_boxes(sums)[0] == pytest.approx(n * math.log(11.0), rel=1e-12)
    assert on_boxes(sums, 100) is None
    # Weights that only the last row would choose, and that underflow on the way there.
    steep = tuple(-900.0 * np.arange(11.0) for _ in range(n))
    far = weighed_model(matrix, np.array([40, 0, 0]), (np.zeros(1), *sums.row_weights[1:]), steep)
    assert on_boxes(far)[0] == pytest.approx(-36000.0)  # each unknown has one value
    few = weighed_model(matrix, np.array([20, 0, 0]), (np.zeros(1), *sums.row_weights[1:]), steep)
    assert on_boxes(few) is None
    assert Contraction(few, 10**6).log_weight == pytest.approx(-18000.0 + math.log(891.0))


@given(seed=st.integers(0, 2**32 - 1), room=st.sampled_from([1, 2**26]))
@settings(deadline=None, max_examples=60)
def test_means_under_other_weights_of_one_unknown_agree_with_enumeration(seed, room):
    rng = np.random.default_rng(seed)
    sums = instance(rng)
    points, weight = enumerated(sums)
    if weight.max() == -math.inf:
        return
    p = np.exp(weight - weight.max())
    p /= p.sum()
    factors = [(g, rng.random(prior.size)) for g, prior in enumerate(sums.priors)]
    expected = [
        [p @ factor[points[:, g]], *((p * factor[points[:, g]]) @ points)] for g, factor in factors
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "_ROOM", room)  # of 1: each factor by itself
        found = Contraction(sums, 10**7).weighed_means(factors)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert Contraction(sums, 10**7).weighed_means([]).shape == (0, 1 + len(factors))


def test_a_wrong_weight_is_seen():
    rng = np.random.default_rng(3)
    sums = next(s for s in iter(lambda: instance(rng), None) if enumerated(s)[1].max() > -np.inf)
    found = Contraction(sums, 10**7).log_weight
    sums.row_weights[0][:] += 1e-6
    assert Contraction(sums, 10**7).log_weight - found == pytest.approx(1e-6, rel=1e-3)


def test_limits_of_pairs_and_of_time_are_kept():
    n = 12
    sums = weighed_model(
        np.ones((1, n), np.int64), np.zeros(1, np.int64), (np.zeros(5 * n + 1),), (np.zeros(6),) * n
    )
    whole = Contraction(sums, 10**6)
    assert whole.log_weight == pytest.approx(n * math.log(6.0), rel=1e-12)
    assert Contraction(sums, whole.pairs).pairs == whole.pairs
    with pytest.raises(TooManyStatesError):
        Contraction(sums, whole.pairs - 1)
    assert Contraction(sums, whole.pairs, (), Deadline(60.0)).pairs == whole.pairs
    with pytest.raises(TooManyStatesError):
        Contraction(sums, whole.pairs, (), Deadline(0.0))


def test_many_states_are_kept_apart():
    # Sums x, y of two unknowns of 600 values, closed by a third that is their total: x + y - z = 0
    # as x + y + z' = 1198 with z' = 1198 - z; every pair (x, y) is a state until then.
    matrix = np.array([[1, 1, 1], [1, 0, 2], [0, 1, 3]])
    n = 600
    rng = np.random.default_rng(4)
    priors = tuple(rng.normal(size=k) for k in (n, n, 2 * n - 1))
    most = matrix @ [n - 1, n - 1, 2 * n - 2]
    weights = (np.zeros(1), *(rng.normal(size=m + 1) for m in most[1:]))
    low = np.array([2 * n - 2, 0, 0])
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    z = 2 * n - 2 - x - y
    w = priors[0][x] + priors[1][y] + priors[2][z] + weights[1][x + 2 * z] + weights[2][y + 3 * z]
    p = np.exp(w - w.max())
    found = Contraction(weighed_model(matrix, low, weights, priors), 10**7)
    assert found.log_weight == pytest.approx(w.max() + math.log(p.sum()), rel=1e-12)
    np.testing.assert_allclose(found.laws()[0], p.sum(axis=1) / p.sum(), rtol=1e-9)


def test_states_without_hashes_have_the_same_laws_as_with_them(monkeypatch):
    rng = np.random.default_rng(8)
    singles = []
    for _ in range(20):
        matrix = rng.integers(0, 2, (6, 5))
        own = rng.normal(size=(5, 4)), rng.normal(size=(6, 16))
        low = np.zeros(6, np.int64)
        sums = weighed_model(matrix, low, tuple(own[1]), tuple(own[0]))
        plain = Contraction(sums, 10**6, [0])
        singles += [join.single for _, join in plain._joins]
        with monkeypatch.context() as patch:
            patch.setattr(Contraction, "_repeated", lambda *_: True)
            hashed = Contraction(sums, 10**6, [0])
        assert (plain.log_weight, plain.pairs) == (hashed.log_weight, hashed.pairs)
        assert all(map(np.array_equal, plain.laws(), hashed.laws()))
        assert all(map(np.array_equal, plain.root_states(), hashed.root_states()))
    assert 0 < sum(singles) < len(singles)
