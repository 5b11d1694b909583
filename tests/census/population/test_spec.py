"""Settings: ready ones, changed ones, refused ones."""

import math
from dataclasses import fields, replace

import pytest

from bayesrisk import ArgumentError
from bayesrisk.census import PopulationSpec, population_spec
from bayesrisk.census.population.spec import population_presets

SPEC = population_spec("tract")
BAD = {
    "n_blocks": (0, 1.5, 10**9, None), "blocks_per_group": (0, 1001), "groups_per_tract": (0, 10),
    "tracts_per_county": (0, 10_000), "state": ("9", "999", 99, "9x", "٩٩", None),
    "occupied_blocks": (-0.1, 1.1, math.nan), "quarters_blocks": (-0.1, 1.1),
    "tract_mixing": (0.0, math.inf, 1e7), "block_mixing": (0.0, 1e7),
    "block_mixing_growth": (-0.1, 1.1), "household_homogeneity": (-0.1, 1.1),
    "tenure_correlation": (-0.1, 1.1), "subsidised_blocks": (-0.1, 1.1),
    "subsidised_share": (-0.1, 1.1), "bedroom_mixing": (0.0, 1e7), "alpha": (0.0, 1.1, -1.0),
}  # fmt: skip


def test_every_field_is_tried():
    assert set(BAD) == {f.name for f in fields(PopulationSpec)}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in BAD.items() for v in vs])
def test_bad_values_are_named(name, value):
    with pytest.raises(ArgumentError, match=rf"^{name} must "):
        replace(SPEC, **{name: value})


def test_presets():
    assert [population_spec(n).n_blocks for n in population_presets()] == [153, 1000, 20_000]
    changed = population_spec("county", alpha=0.5, n_blocks=12)
    assert (changed.alpha, changed.n_blocks) == (0.5, 12)
    assert changed == replace(population_spec("tract"), alpha=0.5, n_blocks=12)


def test_unknown_names():
    with pytest.raises(ArgumentError, match="name must be one of tract, county, state, got 'city'"):
        population_spec("city")
    with pytest.raises(ArgumentError, match=r"field must be one of .* got 'blocks'.*'n_blocks'"):
        population_spec("tract", blocks=3)


def test_codes_must_suffice():
    with pytest.raises(
        ArgumentError, match="n_blocks must fit into 500 counties of 1 blocks, got 5"
    ):
        replace(SPEC, n_blocks=501, blocks_per_group=1, groups_per_tract=1, tracts_per_county=1)
