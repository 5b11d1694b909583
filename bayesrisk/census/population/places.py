"""Where blocks are, and how many people they are meant to have."""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray, TextArray
from bayesrisk.census.population import spec as national

_BLOCK_SIDE = 0.2  # kilometres: the nation's mean block, about 0.8 square kilometres, is far larger


class Places(NamedTuple):
    """Blocks in order of their codes: code, tract, planar coordinates, target population."""

    geoids: TextArray
    tracts: IntArray
    x: FloatArray
    y: FloatArray
    target: IntArray


def _padded(numbers: IntArray, width: int) -> TextArray:
    return np.char.zfill(numbers.astype(f"U{width}"), width)


def _cell(index: IntArray, count: int) -> tuple[IntArray, IntArray, int]:
    """Return column and row of each index on the smallest square grid with ``count`` cells."""
    side = int(np.ceil(np.sqrt(count)))
    return index % side, index // side, side


def make_places(
    spec: national.PopulationSpec,
    rng: np.random.Generator,
    first: int = 0,
    counties: int | None = None,
) -> Places:
    """Draw the blocks: nested codes, places on nested grids, target populations.

    They begin with county number ``first`` of ``counties``, by default of those that there are.
    """
    number = np.arange(spec.n_blocks)
    group, block = np.divmod(number, spec.blocks_per_group)
    tract, group_in_tract = np.divmod(group, spec.groups_per_tract)
    county, tract_in_county = np.divmod(tract, spec.tracts_per_county)
    county = county + first
    codes = [
        _padded(2 * (county % national.COUNTIES) + 1, 3),  # counties have odd numbers
        _padded(100 * (tract_in_county + 1), 6),
        _padded(1000 * (group_in_tract + 1) + block, 4),
    ]
    geoids = np.full(spec.n_blocks, spec.state)
    for part in codes:
        geoids = np.char.add(geoids, part)
    counts = (
        (block, spec.blocks_per_group),
        (group_in_tract, spec.groups_per_tract),
        (tract_in_county, spec.tracts_per_county),
        (county, int(county[-1]) + 1 if counties is None else counties),
    )
    xy = rng.random((2, spec.n_blocks))
    side = 1
    for index, count in counts:
        column, row, cells = _cell(index, count)
        xy += side * np.stack([column, row])
        side *= cells
    occupied = rng.random(spec.n_blocks) < spec.occupied_blocks
    cumulative = np.cumsum(national.block_law())
    size = np.searchsorted(cumulative / cumulative[-1], rng.random(spec.n_blocks), side="right")
    x, y = np.round(_BLOCK_SIDE * xy, 4)
    return Places(geoids, tract, x, y, np.where(occupied, size, 0))
