"""A nation by county: each county by itself, blocks of the published sizes."""

import numpy as np
import pytest
from scipy.stats import chi2

from bayesrisk.census import population_spec, population_summary
from bayesrisk.census.population import figures
from bayesrisk.census.population.nation import Nation
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

FEW = 1e-6  # how rarely a test of a true law may fail
SMALL = population_spec("county", blocks_per_group=4, tracts_per_county=2)  # 24 blocks in a county


def test_counties_hold_all_blocks_each_once():
    nation = Nation(24 * 503 + 5, SMALL)  # more than a state has
    assert nation.counties == 504
    codes = [nation.code(county) for county in range(nation.counties)]
    assert codes == sorted(set(codes))
    assert (codes[0], codes[499], codes[500]) == ("80001", "80999", "81001")
    for county in (0, 499, 500, 503):
        drawn = nation.county(county, seed=1)
        blocks = drawn.blocks["block"]
        assert len(blocks) == (5 if county == 503 else 24)
        assert {b[:5] for b in blocks} == {codes[county]}
        assert set(drawn.persons.geoids) <= set(blocks)


def test_a_county_is_its_own_and_the_same_again():
    nation = Nation(100, SMALL)
    one, again, other = (nation.county(c, seed=2) for c in (1, 1, 2))
    assert one.persons.table == again.persons.table
    assert one.households.table == again.households.table
    for unit, name in (("persons", "person"), ("households", "household")):
        mine, theirs = (getattr(d, unit).table.column(name).to_pylist() for d in (one, other))
        assert not set(mine) & set(theirs)
    inside = one.persons.table.column("household").to_numpy()
    assert set(inside) - {-1} <= set(one.households.table.column("household").to_pylist())
    mine, theirs = (d.persons.codes("age")[:50].tolist() for d in (one, other))
    assert mine != theirs
    assert nation.county(1, seed=3).persons.table != one.persons.table


def test_counties_lie_beside_each_other():
    nation = Nation(24 * 5, SMALL)
    boxes = []
    for county in range(5):
        xy = nation.county(county, seed=1).blocks[["x", "y"]].to_numpy()
        boxes.append((xy.min(axis=0), xy.max(axis=0)))
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert ((high < other_low) | (other_high < low)).any()


def test_blocks_have_the_published_sizes():
    nation = Nation.scaled(2e-3)
    shares = np.array(figures.CLASS_BLOCKS, dtype=float)
    shares = np.append(shares, figures.ALL_BLOCKS - shares.sum()) / figures.ALL_BLOCKS
    seen = np.zeros(shares.size)
    for county in range(nation.counties):
        found = population_summary(nation.county(county, seed=4))
        seen += np.append(found.blocks, found.all_blocks - found.blocks.sum())
    assert seen.sum() == nation.blocks == round(2e-3 * 11_078_297)

    def statistic(law):
        return ((seen - seen.sum() * law) ** 2 / (seen.sum() * law)).sum()

    limit = chi2.isf(FEW, shares.size - 1) + tolerance(seen.sum() * shares)
    assert statistic(shares) < limit
    assert statistic(np.roll(shares, 1)) > 10 * limit


def tolerance(expected):
    """Return what the statistic may gain: a block passes its target by part of a household.

    Households are added whole, so that a block near the end of its class can pass into the next:
    at most one in eight of those within three people of an end, which are at most 3/10 of a class.
    """
    moved = 0.125 * 0.3 * expected
    return float((moved**2 / expected).sum())


def test_scale_and_refusals():
    assert Nation.scaled(1).blocks == 11_078_297
    assert Nation.scaled(1).counties == 3149
    assert Nation.scaled(1e-9).blocks == 1
    for scale in (0, -1, 2.5, np.nan):
        with pytest.raises(ArgumentError, match="scale must be"):
            Nation.scaled(scale)
    with pytest.raises(ArgumentError, match="blocks must fit into 10000 counties"):
        Nation(24 * 10_000 + 1, SMALL)
    with pytest.raises(ArgumentError, match="county must be <= 0"):
        Nation(5, SMALL).county(1, seed=1)
    with pytest.raises(ArgumentError, match="seed must be >= 0"):
        Nation(5, SMALL).county(0, seed=-1)
    with pytest.raises(ArgumentTypeError, match="spec must be"):
        Nation(5, "county")
