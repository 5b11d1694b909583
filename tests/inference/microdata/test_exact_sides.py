"""Tables that share little, summed side by side, against complete enumeration."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from oracles import record_law as oracle
from random_places import SHARES, two_sides

from bayesrisk.inference import RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata import exact
from bayesrisk.inference.microdata.exact import Sides, SideSums, split_sides
from bayesrisk.inference.microdata.system import make_system, presolve

PLACE = {"level": "block", "place": "100"}
ASKED = [
    RecordQuestion({"race": [1]}),
    RecordQuestion({"race": [1]}, at_least=1),
    RecordQuestion({"race": [0, 2], "sex": [0]}, at_least=1),  # seen by neither side
    RecordQuestion({"race": [2], "age": [0, 1]}, at_least=1),
    RecordQuestion({"race": [3]}, among={"sex": [0], "age": [0]}),
    RecordQuestion({}, at_least=2),
]


def small_system(release, prior):
    system = make_system(release, **PLACE, prior=prior)
    return presolve(system, sp.csr_array((0, system.size), dtype=np.int64))[0]


def fulfil(condition):
    cells = dict(zip(("race", "sex", "age"), np.indices((4, 2, 4)).reshape(3, -1), strict=True))
    return np.all([np.isin(cells[a], codes) for a, codes in condition.items()] or [[True] * 32], 0)


def enumerated(law):
    """Return the answers, and the probability of 0, 1, ... records of every cell."""
    weight, x = np.array([w for w, _ in law]), np.array([places[0] for _, places in law])
    found = []
    for question in ASKED:
        among = fulfil(question.among or {})
        part = x @ (fulfil(question.where) & among)
        if question.at_least is not None:
            found.append(weight @ (part >= question.at_least))
        elif question.among is not None:
            whole = weight @ (x @ among)
            found.append(weight @ part / whole if whole > 1e-4 else math.nan)
        else:
            found.append(weight @ part)
    return np.array(found), np.array([weight @ (x == k) for k in range(4)])


def laws_of_cells(small, laws):
    """Return the probability of 0, 1, 2, 3 records of every cell that is alone in its group."""
    found = np.full((4, 32), np.nan)
    alone = np.bincount(small.group[small.group >= 0], minlength=len(laws)) == 1
    for u, g in enumerate(small.group):
        if g >= 0 and alone[g]:
            found[:, u] = np.pad(laws[g], (0, 4))[:4]
    return found


@settings(max_examples=24, deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(SHARES))
def test_answers_and_laws_agree_with_enumeration(seed, kind):
    release, prior, terms = two_sides(seed, kind)
    expected, cells = enumerated(oracle.posterior(*terms))
    small = small_system(release, prior)
    sides = split_sides(small)
    asked = [q for q, value in zip(ASKED, expected, strict=True) if not math.isnan(value)]
    found = microdata_posterior(release, asked, **PLACE, prior=prior, engine="exact").answers
    np.testing.assert_allclose(
        found["posterior"], expected[~np.isnan(expected)], rtol=1e-9, atol=1e-12
    )
    if kind != "any" and small.mass.size == 32:
        assert sides is not None
    if sides is not None:
        own = laws_of_cells(small, SideSums(small, sides, 10**6).laws())
        told = ~np.isnan(own[0])
        np.testing.assert_allclose(own[:, told], cells[:, told], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kind", "separators"), [("independent", 1), ("by age", 2), ("any", None)])
def test_sides_are_those_that_shares_leave_independent(kind, separators):
    seen = set()
    for seed in range(12):
        release, prior, _ = two_sides(seed, kind)
        sides = split_sides(small_system(release, prior))
        seen.add(None if sides is None else int(sides.separator.max()) + 1)
    assert separators in seen
    assert seen <= {separators, None} | ({1} if kind == "by age" else set())


def test_both_ways_are_equal(monkeypatch):
    """One contraction of all unknowns, and two of the sides."""
    used = 0
    for seed in range(20):
        release, prior, _ = two_sides(seed, SHARES[seed % 2])
        about = {**PLACE, "prior": prior, "engine": "exact"}
        one = microdata_posterior(release, ASKED, **about).answers["posterior"]
        used += split_sides(small_system(release, prior)) is not None
        with monkeypatch.context() as patch:
            patch.setattr(exact, "split_sides", lambda *_: None)
            other = microdata_posterior(release, ASKED, **about).answers["posterior"]
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)
    assert used >= 5


def test_nobody_is_counted_by_a_function_of_nothing():
    """Of cells that are empty for certain nothing is asked: it was read as a separator once."""
    systems = [small_system(*two_sides(seed, "by age")[:2]) for seed in range(12)]
    used = [small for small in systems if split_sides(small) is not None]
    assert len(used) >= 3
    for small in used:
        nothing = np.zeros(small.mass.size, np.int64)
        (law,) = exact.weigh(small, 10**6, [nothing]).functions
        assert law[0] == pytest.approx(1.0)


def test_sides_without_what_they_share_are_wrong():
    """A negative control: as if races were the same among adults and children."""
    far = []
    for seed in range(12):
        release, prior, _ = two_sides(seed, "by age")
        small = small_system(release, prior)
        sides = split_sides(small)
        if sides is None or not sides.separator.any():
            continue
        wrong = Sides(sides.one, sides.other, np.zeros_like(sides.separator))
        one, other = (SideSums(small, s, 10**6).laws() for s in (sides, wrong))
        far.append(max(abs(a[0] - b[0]) for a, b in zip(one, other, strict=True)))
    assert len(far) >= 3
    assert max(far) > 1e-2


def test_questions_across_sides_have_one_answer_by_pairs_and_by_a_larger_side(monkeypatch):
    pairs, used = SideSums.pair_law, []

    def counted(sums, function):
        used.append(law := pairs(sums, function))
        return law

    for seed in range(4):
        release, prior, _ = two_sides(seed, "independent")
        monkeypatch.setattr(SideSums, "pair_law", counted)
        one = microdata_posterior(release, ASKED, **PLACE, prior=prior).answers["posterior"]
        monkeypatch.setattr(SideSums, "pair_law", lambda sums, function: None)
        other = microdata_posterior(release, ASKED, **PLACE, prior=prior).answers["posterior"]
        np.testing.assert_allclose(one, other, rtol=1e-10)
    assert sum(law is not None for law in used) >= 4
