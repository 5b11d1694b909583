"""Laws against the published totals they come from, and against exact computations."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.population import combinations, renewal_overshoot
from scipy.stats import chi2

from bayesrisk.census.population import figures, spec as laws, spec as national
from bayesrisk.census.population.race_ethnicity import dirichlet_rows, pick, race_class, race_masks
from bayesrisk.tables.schema import AGE_BIN_STARTS


def test_published_totals_add_up():
    assert sum(figures.SIZES) == sum(figures.KINDS) == sum(figures.HOLDER_AGES)
    assert sum(figures.SIZES) == figures.HOUSEHOLDS
    assert sum(map(sum, figures.RACE_ETHNICITY)) == figures.PEOPLE
    assert sum(figures.GROUP_QUARTERS) + figures.HOUSEHOLD_PEOPLE == figures.PEOPLE
    assert sum(figures.TENURE) == figures.HOUSEHOLDS
    assert sum(figures.RACE_ETHNICITY[6]) == figures.TWO_OR_MORE_TOTAL
    # Table S5 rounds to thousands: at most half of one in each of seven rows
    assert abs(sum(figures.CLASS_PEOPLE) - figures.PEOPLE) <= 7 * 500
    assert len(AGE_BIN_STARTS) == 38


def test_household_law_has_the_published_margins():
    law = laws.household_law()
    for axes, counts in (((1, 2), "SIZES"), ((0, 2), "KINDS"), ((0, 1), "HOLDER_AGES")):
        margin = np.array(getattr(national, counts)) / figures.HOUSEHOLDS
        assert law.sum(axis=axes) == pytest.approx(margin, abs=1e-7)


def test_household_law_is_possible_and_only_that():
    """Every cell with probability is a combination of the tables, and none of those is left out.

    Householders with children of their own under 18 are under 75: a shape that we chose.
    """
    law = laws.household_law()
    possible = {(n, d, a) for n, _, d, _, _, a in combinations()}
    drawn = {(n + 1, d + 1, a + 1) for n, d, a in np.argwhere(law > 0.0)}
    assert drawn <= possible
    assert all(d in (1, 3, 6, 10) and a >= 8 for _, d, a in possible - drawn)


def test_tenure_law():
    law = laws.tenure_law()
    ages = np.array(figures.HOLDER_AGES) / figures.HOUSEHOLDS
    assert law.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    assert ages @ law == pytest.approx(np.array(figures.TENURE) / figures.HOUSEHOLDS, abs=1e-12)


@given(
    st.lists(st.floats(0.1, 10.0), min_size=6, max_size=6),
    st.lists(st.floats(0.1, 1.0), min_size=2, max_size=2),
    st.lists(st.floats(0.1, 1.0), min_size=3, max_size=3),
)
def test_raking_keeps_margins_and_odds_ratios(start, rows, columns):
    table = np.array(start).reshape(2, 3)
    rows, columns = np.array(rows) / sum(rows), np.array(columns) / sum(columns)
    raked = laws.rake(table, (rows, columns))
    assert raked.sum(axis=1) == pytest.approx(rows, abs=1e-9)
    assert raked.sum(axis=0) == pytest.approx(columns, abs=1e-9)
    odds = [t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]) for t in (table, raked)]
    assert odds[1] == pytest.approx(odds[0], rel=1e-9)


def test_raking_keeps_zeros():
    raked = laws.rake(
        np.array([[1.0, 0.0], [1.0, 1.0]]), (np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    )
    assert raked == pytest.approx(np.array([[0.2, 0.0], [0.3, 0.5]]), abs=1e-12)


def test_block_law_has_the_published_classes():
    law = laws.block_law()
    value = np.arange(law.size)
    total = sum(figures.CLASS_BLOCKS)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    for (low, high), blocks, people in zip(
        figures.SIZE_CLASSES, figures.CLASS_BLOCKS, figures.CLASS_PEOPLE, strict=True
    ):
        inside = slice(low, None if high is None else high + 1)
        assert law[inside].sum() == pytest.approx(blocks / total, rel=1e-12)
        mean = law[inside] @ value[inside] / law[inside].sum()
        assert mean == pytest.approx(people / blocks, rel=1e-9)
        # largest entropy given the mean: the logarithm is a straight line
        assert np.diff(np.log(law[inside][:150]), 2) == pytest.approx(0.0, abs=1e-9)


def test_overshoot_law_is_that_of_a_far_target():
    sizes = np.array(figures.SIZES) / figures.HOUSEHOLDS
    going_on = laws.extra_mean() / (1 + laws.extra_mean())
    sizes = np.concatenate([sizes[:6], sizes[6] * (1 - going_on) * going_on ** np.arange(80)])
    mean = sizes @ np.arange(1, sizes.size + 1)
    assert mean == pytest.approx(figures.HOUSEHOLD_PEOPLE / figures.HOUSEHOLDS, rel=1e-12)
    exact = renewal_overshoot(sizes.tolist(), 300)
    assert laws.overshoot_law() == pytest.approx(np.array(exact), abs=1e-12)
    near = renewal_overshoot(sizes.tolist(), 2)
    assert laws.overshoot_law() != pytest.approx(np.array(near), abs=1e-3)


def test_masks_of_several_races():
    masks, law = laws.several_races()
    assert len(masks) == 57
    assert all(bin(m).count("1") >= 2 for m in masks)
    assert law.sum() == pytest.approx(1.0)
    share = figures.TWO_OR_MORE[3] / figures.TWO_OR_MORE_TOTAL
    assert law[masks.tolist().index(3)] == pytest.approx(share, rel=1e-12)


def test_groups_become_races():
    group = np.repeat(np.arange(14), 200)
    mask, hispanic = race_masks(group, np.random.default_rng(1))
    assert (race_class(mask) - 1 == group // 2).all()
    assert (hispanic == group % 2).all()
    assert [int(race_class(np.array([m]))[0]) for m in (1, 2, 4, 8, 16, 32, 3, 63)] == [
        *range(1, 7),
        7,
        7,
    ]


def test_pick_follows_each_row():
    table = np.array([[0.0, 0.2, 0.0, 0.8, 0.0], [3.0, 0.0, 1.0, 0.0, 0.0]])
    rows = np.repeat([0, 1], 20_000)
    drawn = pick(table, rows, np.random.default_rng(3))
    statistic = 0.0
    for row in (0, 1):
        law = table[row] / table[row].sum()
        seen = np.bincount(drawn[rows == row], minlength=5)
        assert (seen[law == 0.0] == 0).all()
        expected = 20_000 * law[law > 0.0]
        statistic += ((seen[law > 0.0] - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, 2)


def test_pick_never_draws_the_impossible_where_rounding_is_coarse():
    class Last:
        def random(self, size):
            return np.full(size, np.nextafter(1.0, 0.0))

    table = np.tile([0.5, 0.5, 0.0], (100_000, 1))
    assert (pick(table, np.arange(100_000), Last()) == 1).all()


def test_dirichlet_moments():
    concentration = np.tile([0.02, 0.3, 1.0], (40_000, 1))
    drawn = dirichlet_rows(concentration, np.random.default_rng(5))
    total = 1.32
    mean = concentration[0] / total
    assert drawn.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    for power, expected in ((1, mean), (2, mean * (concentration[0] + 1) / (total + 1))):
        error = (drawn**power).std(axis=0) / np.sqrt(len(drawn))
        assert (np.abs((drawn**power).mean(axis=0) - expected) < 5 * error).all()


def test_dirichlet_that_underflows_is_one_entry():
    drawn = dirichlet_rows(np.full((50, 3), 1e-6) * [1, 5, 2], np.random.default_rng(5))
    assert np.isfinite(drawn).all()
    assert drawn.max(axis=1) == pytest.approx(1.0)
