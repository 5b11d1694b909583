"""What can be made from what, by enumeration: a kernel that leads from one law to the other."""

import dataclasses
import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import NoiseSpec, SuppressedCounts, TrueCounts
from bayesrisk.risk.audit.constructions import _adds_noise, can_be_made, constructions
from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload

PLACES = Geography("towns", ("tract", "block"), (1, 3))
PEOPLE = Schema("people", (Attribute("sex", 2), Attribute("race", 4)), PLACES)
SEX = Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)})
RACE = Table("R", ("a", "b", "c", "d"), {"race": np.eye(4, dtype=int)})
COARSE = Table("C", ("ab", "cd"), {"race": np.array([[1, 1, 0, 0], [0, 0, 1, 1]])})
ALL = Table("N", ("all",), {})
CROSS = Table("SR", tuple("abcdefgh"), {
    "sex": np.repeat(np.eye(2, dtype=int), 4, axis=0), "race": np.tile(np.eye(4, dtype=int), (2, 1))
})  # fmt: skip


def workload(*tables, levels=("block",)):
    return Workload(PEOPLE, {(level, t.name): t for level in levels for t in tables})


def spec(recipe, **parameters):
    return make_mechanism(recipe, **parameters).spec


ROWS = workload(RACE)
#: Mechanisms that act on each count by itself, and so have a kernel of counts.
CELLS = {
    "none": spec("identity"),
    "0 1 3 6 10": spec("ranges", edges=[0, 1, 3, 6, 10]),
    "0 1 6": spec("ranges", edges=[0, 1, 6]),
    "0 2 6": spec("ranges", edges=[0, 2, 6]),
    "0 6 by 3": spec("ranges", edges=[0, 6], step=3),
    "0 3 by 6": spec("ranges", edges=[0, 3], step=6),
    "0 12 by 6": spec("ranges", edges=[0, 12], step=6),
    "0 1 by 1": spec("ranges", edges=[0, 1], values=[0, 7], step=1),
    "below 3": spec("threshold", least=3),
    "below 5": spec("threshold", least=5),
    "below 5, zeros too": spec("threshold", least=5, zeros="within"),
    "withheld below 5": spec("suppression", threshold=5, complementary=False),
    **{f"nearest {b}": spec("rounding", base=b, method="nearest") for b in (2, 3, 4, 5, 6, 9, 10)},
    **{f"random {b}": spec("rounding", base=b, method="random") for b in (2, 3, 4, 6, 9)},
    "cms": spec("cms-11"),
    "ons": spec("ons-10-5"),
    "midpoint": spec("opensafely-midpoint-6"),
}
MOST = 72  # counts that are enumerated: more than every edge, and a period of all steps


@functools.cache
def kernel(name):
    """Return P(published | count), a row for each count up to MOST."""
    law = CELLS[name].likelihood("block", "R")
    if isinstance(law, SuppressedCounts):  # the rule alone: 1 to 4 are withheld, as one answer
        answers = [x if x == 0 or x >= 5 else -1 for x in range(MOST + 1)]
        return (np.unique(answers)[None, :] == np.array(answers)[:, None]).astype(float)
    counts = np.arange(MOST + 1)
    numbers = law.releases(0, MOST, tail=1e-9)
    found = np.array([law.probability(numbers, x) for x in counts])
    assert np.allclose(found.sum(axis=1), 1.0)
    return found[:, found.any(axis=0)]


def makes(one, other):
    """Return whether some kernel K has one @ K = other, by linear programming, column by column.

    A row of K is a law, so that all columns belong to one program.
    """
    rows, columns = one.shape[1], other.shape[1]
    # One @ K = other holds for each column; each row of K sums to 1.
    left = np.vstack([np.kron(one, np.eye(columns)), np.kron(np.eye(rows), np.ones(columns))])
    right = np.concatenate([other.ravel(), np.ones(rows)])
    solved = linprog(np.zeros(rows * columns), A_eq=left, b_eq=right, method="highs")
    return solved.status == 0


def functional(one, other):
    """Return whether the second is a function of the first, where neither has chance in it."""
    pairs = {*zip(one.argmax(axis=1).tolist(), other.argmax(axis=1).tolist(), strict=True)}
    return len(pairs) == len({a for a, _ in pairs})


def has_chance(name):
    return CELLS[name].likelihood("block", "R").random


def test_laws_without_chance_are_functions_or_not():
    names = [name for name in CELLS if not has_chance(name)]
    for one, other in itertools.permutations(names, 2):
        found = can_be_made(CELLS[one], CELLS[other], ROWS)
        assert found == functional(kernel(one), kernel(other)), (one, other)


@pytest.mark.slow
@pytest.mark.parametrize("one", CELLS)
def test_laws_with_chance_against_all_kernels(one):
    """What is said to be made has a kernel; of two with chance that is not said there is none."""
    for other in CELLS:
        if one == other or not (has_chance(one) or has_chance(other)):
            continue
        if can_be_made(CELLS[one], CELLS[other], ROWS):
            assert makes(*(kernel(name)[:25] for name in (one, other))), other
        elif has_chance(one) and has_chance(other):
            assert not makes(*(kernel(name)[:37] for name in (one, other))), other


@pytest.mark.parametrize(("one", "other"), [("random 3", "random 9"), ("random 2", "random 6")])
def test_a_random_multiple_of_a_multiple_has_the_same_law(one, other):
    assert can_be_made(CELLS[one], CELLS[other], ROWS)
    assert not can_be_made(CELLS[other], CELLS[one], ROWS)
    assert makes(kernel(one)[:37], kernel(other)[:37])
    assert not makes(kernel(other)[:37], kernel(one)[:37])


def test_long_ranges_are_decided_without_listing_counts():
    fine = spec("ranges", edges=[0, 1], step=2)
    coarse = spec("ranges", edges=[0, 2**30 + 1], step=2**30)
    odd = spec("ranges", edges=[0, 2**30], step=2**30)
    assert can_be_made(fine, coarse, ROWS)
    assert not can_be_made(fine, odd, ROWS)
    assert not can_be_made(coarse, fine, ROWS)


def noise(scale, tables=("R",)):
    law = NoiseSpec("discrete-gaussian", scale)
    one = spec("discrete-gaussian", budgets={"block": dict.fromkeys(tables, "1")},
               sensitivity="add-remove")  # fmt: skip
    return dataclasses.replace(one, tables={("block", name): law for name in tables})


def test_chance_of_one_count_serves_for_one_count_only():
    """Two noisy releases cannot be made from one: their noise would be the same."""
    once, more = "discrete-laplace:epsilon=1", "discrete-laplace:epsilon=1/2"
    shares = {"sensitivity": "add-remove", "level_shares": {"block": 1}, "table_shares": {"R": 1}}

    def both(*recipes):
        parts = {f"r{i}": {"mechanism": r.partition(":")[0], "parameters": shares | {
            "epsilon": r.partition("=")[2]}} for i, r in enumerate(recipes)}  # fmt: skip
        return spec("composition", releases=parts)

    one, strong = (spec("discrete-laplace", epsilon=e, **shares) for e in ("1", "1/2"))
    assert can_be_made(one, strong, ROWS)
    assert can_be_made(both(once, more), strong, ROWS)
    assert can_be_made(both(once, more), one, ROWS)
    assert can_be_made(both(once, more), both(more, more), ROWS)
    assert can_be_made(both(once, once), both(more, once), ROWS)
    assert not can_be_made(one, both(more, more), ROWS)
    assert not can_be_made(both(once, more), both(once, once), ROWS)
    assert not can_be_made(both(more, more), one, ROWS)
    assert can_be_made(spec("identity"), both(once, once, more), ROWS)


def test_parts_of_a_composition():
    nearest = {"mechanism": "rounding", "parameters": {"base": 3, "method": "nearest"}}
    nine = {"mechanism": "rounding", "parameters": {"base": 9, "method": "nearest"}}
    swapped = {"mechanism": "swapping", "parameters": {
        "rate": "0.1", "swap_key": ["sex"], "unique_by": ["race"], "within": "tract",
        "unique_within": "tract", "unit": "person"}}  # fmt: skip
    asked = workload(RACE, SEX)

    def composed(**releases):
        return spec("composition", releases=releases)

    whole = composed(a=nearest | {"tables": ["R"]}, b=swapped, c="identity")
    assert can_be_made(whole, composed(a=nine, b=swapped), asked)
    assert can_be_made(whole, spec("identity"), asked)
    assert not can_be_made(whole, composed(a=swapped, b=swapped), asked)
    assert not can_be_made(spec("identity"), composed(a=swapped), asked)
    part = composed(a=nearest, b=swapped | {"tables": ["R"]})
    assert can_be_made(part, composed(x=nine | {"tables": ["S"]}), asked)
    assert not can_be_made(part, composed(b=swapped), asked)  # of all tables it is another swap


def test_merged_categories_and_larger_places_follow_from_true_counts():
    asked = workload(RACE, SEX, levels=("tract", "block"))
    none = spec("identity")
    merged = spec("recode", groups={"race": [[0, 1], [2, 3]]})
    more = spec("recode", groups={"race": [[0, 1, 2, 3]]})
    other = spec("recode", groups={"race": [[0, 2], [1, 3]]})
    above = spec("recode", level="tract")
    both = spec("recode", level="tract", groups={"race": [[0, 1], [2, 3]]})
    specs = {"none": none, "merged": merged, "more": more, "other": other, "above": above,
             "both": both}  # fmt: skip
    assert set(constructions(specs, asked)) == {
        *(("none", name) for name in specs if name != "none"),
        ("merged", "more"), ("other", "more"), ("merged", "both"), ("above", "both"),
    }  # fmt: skip
    # From larger categories or places nothing smaller follows, with noise on it or not.
    gauss = noise(9, ("R", "S"))
    small = workload(RACE, SEX)
    assert can_be_made(none, gauss, small)
    assert not can_be_made(merged, gauss, small)
    assert not can_be_made(spec("rounding", base=3, method="nearest"), merged, small)


@pytest.mark.parametrize(
    ("wanted", "tables", "follows"),
    [
        (COARSE, (RACE,), True), (ALL, (SEX,), True), (RACE, (COARSE,), False),
        (RACE, (CROSS,), True), (SEX, (CROSS,), True), (CROSS, (RACE, SEX), False),
        (ALL, (COARSE,), True), (COARSE, (SEX,), False),
    ],
)  # fmt: skip
def test_sums_of_true_counts_by_the_rank_of_all_kinds_of_records(wanted, tables, follows):
    """By adding the rows to those that are known: the rank stays what it was, or grows."""
    known = np.vstack([t.incidence(PEOPLE, np.arange(8)).toarray() for t in tables])
    more = np.vstack([known, wanted.incidence(PEOPLE, np.arange(8)).toarray()])
    assert (np.linalg.matrix_rank(known) == np.linalg.matrix_rank(more)) == follows
    asked = workload(wanted, *tables)
    truth = {("block", t.name): TrueCounts() for t in tables}
    one = dataclasses.replace(noise(1, [wanted.name]), tables={
        **truth, ("block", wanted.name): NoiseSpec("discrete-laplace", 1)})  # fmt: skip
    other = dataclasses.replace(one, tables={
        **truth, ("block", wanted.name): NoiseSpec("discrete-laplace", "1/2")})  # fmt: skip
    assert can_be_made(one, other, asked) == follows  # less noise: only by the sums


def test_what_withholds_by_all_counts_follows_from_all_of_them_or_not_at_all():
    held = spec("suppression", threshold=4)
    none = spec("identity")
    assert can_be_made(none, held, workload(RACE, SEX))
    assert can_be_made(none, held, workload(CROSS))
    # Of three attributes in pairs the choice looks at all three together.
    three = Schema("three", (Attribute("a", 2), Attribute("b", 2), Attribute("c", 2)), PLACES)
    tables = []
    for one, other in itertools.combinations("abc", 2):
        halves = np.eye(2, dtype=int)
        cells = {one: np.repeat(halves, 2, axis=0), other: np.tile(halves, (2, 1))}
        tables.append(Table(one + other, tuple("wxyz"), cells))
    triangle = Workload(three, {("block", t.name): t for t in tables})
    assert not can_be_made(none, held, triangle)
    for specs in ((held, spec("suppression", threshold=9)), (held, CELLS["nearest 9"])):
        assert not can_be_made(*specs, workload(RACE, SEX))
    assert can_be_made(held, spec("suppression", threshold=4), workload(RACE, SEX))


def test_equal_in_law_goes_both_ways():
    specs = {"a": CELLS["below 5"], "b": CELLS["withheld below 5"], "c": CELLS["below 3"],
             "d": spec("ranges", edges=[0, 1, 5], values=[2, 3, 9], step=1)}  # fmt: skip
    assert set(constructions(specs, ROWS)) == {
        *itertools.permutations("abd", 2), ("c", "a"), ("c", "b"), ("c", "d"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("less", "more", "made"),
    [
        (1, 4, True), (5, 6, True), (1, 10, True), (10, 10, True), (Fraction(1, 2), 10**13, False),
        (1, 2, False), (1, Fraction(6, 5), False), (10, Fraction(101, 10), False), (4, 1, False),
    ],
)  # fmt: skip
def test_gaussian_noise_is_more_of_the_same_only_where_a_sum_has_its_law(less, more, made):
    """By convolution: what is added has the rest of the variance, as nothing else could."""
    one, other = (NoiseSpec("discrete-gaussian", scale) for scale in (less, more))
    assert _adds_noise(one, other) == made
    assert not _adds_noise(one, NoiseSpec("discrete-laplace", more))
    if less < more < 10**6:
        x = np.arange(-120, 121)
        pmf = [
            np.exp(-(x**2) / (2.0 * float(scale))) for scale in (less, more - Fraction(less), more)
        ]
        pmf = [law / law.sum() for law in pmf]
        distance = np.abs(np.convolve(pmf[0], pmf[1], mode="same") - pmf[2]).sum() / 2.0
        assert (distance < 1e-6) == made


@pytest.mark.parametrize("scales", [(0.5, 0.6), (1.0, 1.001), (3.0, 70.0)])
def test_laplace_noise_of_a_larger_scale_is_made_from_a_smaller_one(scales):
    """By the ratio of characteristic functions: a law of its own, with a mass at nothing."""
    turn = 2.0 * np.pi * np.arange(4096) / 4096
    a, b = (np.exp(-1.0 / scale) for scale in scales)
    waves = [(1 - r) ** 2 / (1 - 2 * r * np.cos(turn) + r * r) for r in (a, b)]
    added = np.fft.ifft(waves[1] / waves[0]).real
    assert added.min() > -1e-15
    assert added.sum() == pytest.approx(1.0)
    assert added[0] > a / b * ((1 - b) / (1 - a)) ** 2
    less, more = (NoiseSpec("discrete-laplace", str(scale)) for scale in scales)
    assert _adds_noise(less, more)
    assert not _adds_noise(more, less)
