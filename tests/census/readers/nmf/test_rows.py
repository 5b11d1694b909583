"""Axes and recodes of the histograms: every group of values, and shapes of named queries."""

import itertools

import pytest

from bayesrisk.census.readers.nmf.rows import UNIVERSES, matching_universe, query_groups

# The number of positions of each recode, as the DHC's query shapes have them.
SIZES = {
    "relgq_4_groups": 4, "popSehsdTargetsRelship": 19, "relship_and_eight_level_GQ": 25,
    "gq_constr_groups": 6, "age_18_64_116": 3, "age_10_groups": 10, "age_38_groups": 38,
    "age_40_groups": 40, "hhinstlevels": 3,
}  # fmt: skip


def test_sizes():
    assert {name: u.size for name, u in UNIVERSES.items()} == {
        "pl94-person": 2016,
        "pl94-unit": 2,
        "dhc-person": 1_227_744,
    }


def test_recodes_divide_their_axis():
    found = {}
    for universe in UNIVERSES.values():
        for axis, recodes in universe.recodes.items():
            for name, groups in recodes.items():
                members = sorted(itertools.chain(*groups))
                if name in SIZES:
                    assert members == list(range(universe.axes[axis]))
                    found[name] = len(groups)
                assert universe.groups(axis, name) == groups
    assert found == SIZES


def test_ages_as_written():
    ages = UNIVERSES["dhc-person"].recodes["age"]
    assert [(g[0], g[-1]) for g in ages["age_18_64_116"]] == [(0, 17), (18, 64), (65, 115)]
    assert [(g[0], g[-1]) for g in ages["age_10_groups"]] == [
        *[(0, 2), (3, 14), (15, 15), (16, 16), (17, 17)],
        *[(18, 19), (20, 24), (25, 29), (30, 34), (35, 115)],
    ]
    tail = [(g[0], g[-1]) for g in ages["age_38_groups"]][15:]
    assert tail[:4] == [(15, 17), (18, 19), (20, 24), (25, 29)]
    assert tail[8:14] == [(50, 54), (55, 59), (60, 61), (62, 64), (65, 66), (67, 69)]
    assert tail[14:] == [*((a, a + 4) for a in range(70, 110, 5)), (110, 115)]
    assert [(g[0], g[-1]) for g in ages["age_40_groups"]][18:] == tail[1:]


@pytest.mark.parametrize(
    ("universe", "query", "shape"),
    [
        ("pl94-person", "total", (1, 1, 1, 1)),
        ("pl94-person", "hhinstlevels", (3, 1, 1, 1)),
        ("pl94-person", "votingage * hispanic * cenrace", (1, 2, 2, 63)),
        ("pl94-person", "detailed", (8, 2, 2, 63)),
        ("pl94-unit", "detailed", (2,)),
        ("dhc-person", "age_18_64_116 * relgq_4_groups", (4, 1, 3, 1, 1)),
        ("dhc-person", "hispanic * sex * age_40_groups * relship_and_eight_level_GQ * cenrace",
         (25, 2, 40, 2, 63)),
    ],
)  # fmt: skip
def test_shapes_of_queries(universe, query, shape):
    assert tuple(len(g) for g in query_groups(UNIVERSES[universe], query)) == shape


def test_unknown_axes_are_kept_without_sizes():
    other = matching_universe(("sex", "hhage"))
    assert (other.name, dict(other.axes), other.size) == ("other", {"sex": 0, "hhage": 0}, 0)
    assert other.groups("sex", "detailed") is None
    assert UNIVERSES["pl94-person"].groups("hhgq", "strange") is None
