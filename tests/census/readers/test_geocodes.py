"""Geocodes: composition, the way to published numbers and back, and codes that are none."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS, WATER_BLOCKS_2020, block_geocode
from bayesrisk.exceptions import ArgumentTypeError, ShapeError

GROUP = "057100011000101"
BLOCK = GROUP + "5700102030011004"

digits = st.text("0123456789", min_size=15, max_size=15)


@given(st.lists(st.tuples(st.sampled_from("01"), digits, digits), min_size=1, max_size=5))
def test_there_and_back(rows):
    groups = [flag + geoid[:2] + group[3:] for flag, group, geoid in rows]
    geoids = [geoid for _, _, geoid in rows]
    codes = block_geocode(groups, geoids)
    assert br.census.block_geoid(codes).tolist() == geoids
    assert br.census.is_tribal(codes).tolist() == [flag == "1" for flag, _, _ in rows]
    for code, geoid in zip(codes, geoids, strict=True):
        # As it is written down: 16 characters, of which the 12th is left out.
        assert code[15:][:11] + code[15:][12:] == geoid


def test_published_widths():
    assert dict(SPINE_WIDTHS) == {
        "US": 0,
        "State": 3,
        "County": 9,
        "Tract": 13,
        "Block_Group": 15,
        "Block": 31,
    }


def test_blocks_of_water_move_once():
    assert len(WATER_BLOCKS_2020) == 15
    for water, land in WATER_BLOCKS_2020.items():
        assert len(water) == len(land) == 15
        assert water[:2] == land[:2]
        codes = block_geocode([f"0{water[:2]}100011000101"], [water])
        assert br.census.block_geoid(codes).tolist() == [water]
        assert br.census.block_geoid(codes, water_blocks="published").tolist() == [land]
    assert set(WATER_BLOCKS_2020).isdisjoint(WATER_BLOCKS_2020.values())
    assert br.census.block_geoid([BLOCK], water_blocks="published").tolist() == ["570010203001004"]


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        (BLOCK[:-1], "31 characters"),
        (BLOCK + "0", "31 characters"),
        ("", "digits only"),
        (BLOCK[:5] + "x" + BLOCK[6:], "digits only"),
        (BLOCK[:5] + "²" + BLOCK[6:], "digits only"),
        ("2" + BLOCK[1:], "a tribal flag 0 or 1 in front"),
        ("058" + BLOCK[3:], "the same state in its spine and in its last 16"),
        (BLOCK[:26] + "2" + BLOCK[27:], "a block number that starts with its block group"),
    ],
)
def test_bad_blocks_are_named_with_their_row(code, rule):
    with pytest.raises(DataError, match=f"geocodes: row 2: must have {rule}") as caught:
        br.census.block_geoid([BLOCK, code])
    assert repr(code) in str(caught.value)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="water_blocks must be one of measured, published"):
        br.census.block_geoid([BLOCK], water_blocks="both")
    with pytest.raises(ArgumentTypeError, match="geocodes must be an array of strings, got '05"):
        br.census.block_geoid(BLOCK)
    with pytest.raises(ArgumentTypeError, match="geocodes must be an array of strings, got dtype"):
        br.census.block_geoid([57100011])
    with pytest.raises(ShapeError, match=r"geocodes must have one axis, got shape \(1, 1\)"):
        br.census.block_geoid(np.array([[BLOCK]]))
    with pytest.raises(ShapeError, match="geoids must be as many as block_groups, 1, got 2"):
        block_geocode([GROUP], ["1" * 15] * 2)
    with pytest.raises(DataError, match="geoids: row 1: must have 15 digits, got '57'"):
        block_geocode([GROUP], ["57"])
    with pytest.raises(DataError, match="the same state"):
        block_geocode([GROUP], ["580010203001004"])


def test_nothing_of_nothing():
    assert br.census.block_geoid(np.empty(0, dtype=str)).tolist() == []
    assert br.census.is_tribal(np.array([BLOCK, "157"], dtype=object)).tolist() == [
        False,
        True,
    ]
