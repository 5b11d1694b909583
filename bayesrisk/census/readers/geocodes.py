"""Geocodes of the 2020 spine, and their conversion to published block numbers.

A geocode of the spine is a prefix of those below it. In the redistricting data a State has 3
characters (tribal flag, FIPS code), County 9, Tract 13, Block_Group 15, Block 31. Other runs have
other widths, found from the largest number of children, so readers take them from the file. Tracts
and block groups are renumbered, so only the last 16 characters of a block are published geography:
state 2, county 3, tract 6, block group 1, block 4. The published 15-digit number omits the block
group, which is the first digit of the block.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentTypeError, DataError, ShapeError, quote

#: Characters of a geocode by level, coarse to fine, in the redistricting data of 2020 (the
#: nation's is not used); a file's own are in ``NoisyMeasurements.widths``.
SPINE_WIDTHS = MappingProxyType(
    {"US": 0, "State": 3, "County": 9, "Tract": 13, "Block_Group": 15, "Block": 31}
)
#: Blocks of water in which respondents were measured, and the blocks to which tabulation moved
#: them (README of the Census Bureau's least squares estimates, paragraph 7).
WATER_BLOCKS_2020 = MappingProxyType(
    {
        "010039900000001": "010030108002009",
        "060739901000002": "060730187001280",
        "060759902000001": "060750179031031",
        "120759900000008": "120759704001101",
        "120869900000022": "120860080002011",
        "250259901010031": "250250503001006",
        "360819901000002": "360810916041000",
        "410079900000010": "410079511004030",
        "450299901000001": "450299708003004",
        "450539901000002": "450539503024009",
        "481679901000039": "481677239003135",
        "530099901000035": "530090019021025",
        "530619900020017": "530610401004007",
        "550259917020003": "550250032001000",
        "721039900130009": "721031704004006",
    }
)
_SUFFIX = 16  # characters of a block's geocode that are published geography
_BLOCK = SPINE_WIDTHS["Block"]
_GROUP_DIGIT, _BLOCK_DIGIT = 11, 12  # places within the suffix, from 0


def _characters(codes: NDArray[np.str_], width: int) -> NDArray[np.uint32]:
    """Return the code points of strings, one row each, padded with zeros."""
    fixed = np.ascontiguousarray(codes, dtype=f"U{max(width, 1)}")
    return fixed.view(np.uint32).reshape(codes.size, -1)


def first_fault(
    codes: NDArray[np.str_], level: str, width: int | None = None
) -> tuple[int, str] | None:
    """Return the position of the first invalid geocode of ``level`` and the rule, or None.

    ``width`` is the number of characters; by default that of the redistricting data. Levels that
    those data lack are checked for digits only.
    """
    if level == "US" or codes.size == 0:
        return None
    longest = codes.dtype.itemsize // 4
    points = _characters(codes, longest)
    digits = ((points >= ord("0")) & (points <= ord("9"))) | (points == 0)
    lengths = np.char.str_len(codes)
    expected = SPINE_WIDTHS.get(level) if width is None else width
    long = lengths == expected if expected else lengths >= SPINE_WIDTHS["State"]
    flag = (points[:, 0] == ord("0")) | (points[:, 0] == ord("1"))
    rules: dict[str, NDArray[np.bool_]] = {
        "digits only": digits.all(axis=1) & (lengths > 0),
        f"{expected} characters" if expected else "3 characters or more": long,
        "a tribal flag 0 or 1 in front": flag,
    }
    group = (expected or 0) - _SUFFIX
    if level == "Block" and longest >= group + _SUFFIX >= SPINE_WIDTHS["State"] + _SUFFIX:
        state = (points[:, 1:3] == points[:, group : group + 2]).all(axis=1)
        rules["the same state in its spine and in its last 16 characters"] = state
        start = points[:, group + _GROUP_DIGIT] == points[:, group + _BLOCK_DIGIT]
        rules["a block number that starts with its block group"] = start
    faults = [(int((~good).argmax()), text) for text, good in rules.items() if not good.all()]
    return min(faults, key=lambda fault: fault[0]) if faults else None


def _codes(values: object, name: str, level: str, *, width: int | None = None) -> NDArray[np.str_]:
    """Return geocodes of a level as an array of strings; raise for the first invalid one."""
    if isinstance(values, str):
        raise ArgumentTypeError(name, "must be an array of strings", got=values)
    array = check.as_array(values, name)
    if array.dtype == object and all(isinstance(item, str) for item in array.flat):
        array = array.astype(str)
    if array.dtype.kind != "U":
        raise ArgumentTypeError(name, "must be an array of strings", shown=f"dtype {array.dtype}")
    if array.ndim != 1:
        raise ShapeError(name, "must have one axis", shown=f"shape {array.shape}")
    fault = first_fault(array, level, width)
    if fault:
        place, rule = fault
        raise DataError(
            f"{name}: row {place + 1}: must have {rule}, got {quote(str(array[place]))}"
        )
    return array


def block_geoid(
    geocodes: Sequence[str] | NDArray[np.str_], *, water_blocks: str = "measured"
) -> NDArray[np.str_]:
    """Return the published 15-digit numbers of blocks.

    It is state 2, county 3, tract 6, block 4: the key of published tables and of block maps.

    Parameters
    ----------
    geocodes : array_like of str, shape (n,)
        Geocodes of blocks, all of one width: 31 characters in the redistricting data, other
        widths in other runs; the last 16 are the published ones.
    water_blocks : {"measured", "published"}, default "measured"
        Place of the few respondents in blocks of water: where they were measured, or the block to
        which they were moved after the measurement (``WATER_BLOCKS_2020``). That block then occurs
        twice.

    Examples
    --------
    >>> block_geoid(["0571000110001015700102030011004"]).tolist()
    ['570010203001004']
    """
    check.choice(water_blocks, "water_blocks", ("measured", "published"))
    array = _codes(geocodes, "geocodes", "US")
    if array.size == 0:
        return np.empty(0, dtype="U15")
    width = max(len(str(array[0])), SPINE_WIDTHS["State"] + _SUFFIX)
    codes = _codes(array, "geocodes", "Block", width=width)
    group = width - _SUFFIX
    points = _characters(codes, codes.dtype.itemsize // 4)
    digits = np.delete(points[:, group:width], _GROUP_DIGIT, axis=1)
    geoids: NDArray[np.str_] = np.ascontiguousarray(digits).view("U15").reshape(-1)
    if water_blocks == "published":
        for water, land in WATER_BLOCKS_2020.items():
            geoids[geoids == water] = land
    return geoids


def block_geocode(
    block_groups: Sequence[str] | NDArray[np.str_], geoids: Sequence[str] | NDArray[np.str_]
) -> NDArray[np.str_]:
    """Return geocodes of blocks from their block group's geocode and published number.

    Geocodes of block groups have 15 characters, published numbers of blocks 15 digits; both are of
    shape (n,).

    Examples
    --------
    >>> block_geocode(["057100011000101"], ["570010203001004"]).tolist()
    ['0571000110001015700102030011004']
    """
    groups = _codes(block_groups, "block_groups", "Block_Group")
    numbers = _codes(geoids, "geoids", "US")
    if groups.shape != numbers.shape:
        raise ShapeError(
            f"geoids must be as many as block_groups, {groups.size}, got {numbers.size}"
        )
    for place, number in enumerate(numbers.tolist()):
        if len(number) != 15 or not (number.isascii() and number.isdigit()):
            raise DataError(f"geoids: row {place + 1}: must have 15 digits, got {quote(number)}")
    pairs = zip(groups.tolist(), numbers.tolist(), strict=True)
    joined = [group + number[:11] + number[11] + number[11:] for group, number in pairs]
    return _codes(np.array(joined, dtype=f"U{_BLOCK}"), "geocodes", "Block")


def is_tribal(geocodes: Sequence[str] | NDArray[np.str_]) -> NDArray[np.bool_]:
    """Return whether geocodes are of American Indian and tribal areas.

    Parameters
    ----------
    geocodes : array_like of str, shape (n,)
        Geocodes of any level below the nation.

    Examples
    --------
    >>> is_tribal(["057", "157"]).tolist()
    [False, True]
    """
    flags: NDArray[np.bool_] = _codes(geocodes, "geocodes", "any").astype("U1") == "1"
    return flags
