"""Invented geography and people for a small noisy measurement file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.geocodes import SPINE_WIDTHS, block_geocode
from bayesrisk.readers.nmf.axes import Universe

_LEVELS = tuple(SPINE_WIDTHS)
_NATION = "0"
# Rough shares, only to have one dominant cell and a long tail.
_TYPES = (0.972, 0.008, 0.001, 0.005, 0.001, 0.009, 0.001, 0.003)
_ADULTS = (0.97, 1.0, 0.0, 1.0, 0.8, 1.0, 1.0, 0.9)  # by type; the first is set apart below
_ADULTS_AT_HOME = 0.77
_HISPANIC = 0.18
_RACES = (0.66, 0.13, 0.02, 0.06, 0.004, 0.07)
_CONCENTRATION = 12.0  # of a block's shares around those: a few cells hold most of it
_EMPTY, _MEAN_PEOPLE, _MEAN_UNITS = 0.2, 25.0, 11.0
_OCCUPIED = 0.9
_MOST_UNITS_OF_A_KIND = 9


@dataclass(frozen=True)
class Spine:
    """Units of every level and how they nest.

    Attributes
    ----------
    levels : tuple of str
        Coarse to fine.
    geocodes : mapping of str to ndarray of str
        Units of each level, sorted.
    parent : mapping of str to ndarray of int64
        For each level below the first, the place of each unit's parent.
    """

    levels: tuple[str, ...]
    geocodes: Mapping[str, NDArray[np.str_]]
    parent: Mapping[str, NDArray[np.int64]]

    def only_child(self, level: str) -> NDArray[np.bool_]:
        """Return whether each unit is without siblings."""
        parents = self.parent[level]
        alone: NDArray[np.bool_] = (np.bincount(parents) == 1)[parents]
        return alone

    def add_up(self, values: NDArray[np.int64], level: str) -> NDArray[np.int64]:
        """Return the sums over the children of each unit of the level above."""
        parents = self.parent[level]
        sums = np.zeros((int(parents.max()) + 1, values.shape[1]), dtype=np.int64)
        np.add.at(sums, parents, values)
        return sums

    def by_state(self, level: str) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the units of each state; the nation's state has no name."""
        codes = self.geocodes[level]
        if level == _LEVELS[0]:
            yield "", np.arange(codes.size)
            return
        states = codes.astype("U3")
        for state in np.unique(states).tolist():
            yield state, np.flatnonzero(states == state)


def draw_spine(
    states: Sequence[str],
    counties: int,
    sizes: Mapping[str, tuple[int, int]],
    rng: np.random.Generator,
) -> Spine:
    """Draw how many units each has, and number them."""
    check.integer(counties, "counties", lower=1, upper=99)
    for name, pair in sizes.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ArgumentError(f"{name} must be the least and the most, got {shown(pair)}")
        least = check.integer(pair[0], name, lower=1, upper=999)
        check.integer(pair[1], name, lower=least, upper=999)
    if sizes["block_groups"][1] > _MOST_UNITS_OF_A_KIND:
        raise ArgumentError(f"block_groups must be <= 9, got {sizes['block_groups'][1]}")
    states = check.texts(states, "states")
    found = sorted(set(states))
    for state in found:
        if len(state) != 3 or not state.isdigit() or state[0] not in "01":
            raise ArgumentError(f"states must be a tribal flag and two digits, got {shown(state)}")
    if not found or len(found) != len(states):
        raise ArgumentError(f"states must be different, at least one, got {shown(list(states))}")

    def some(name: str) -> int:
        least, most = sizes[name]
        return int(rng.integers(least, most + 1))

    groups: list[str] = []
    numbers: list[str] = []
    for state in found:
        first = True
        for county in range(1, counties + 1):
            # Tribal parts have counties of their own numbers, so that no block is in both.
            public = f"{2 * county - 1 + 100 * int(state[0]):03d}"
            for tract in range(1, some("tracts") + 1):
                for group in range(1, some("block_groups") + 1):
                    n_blocks = 1 if first else some("blocks")
                    first = False
                    spine = f"{state}10{public}1{tract:04d}{group:02d}"
                    for block in range(n_blocks):
                        groups.append(spine)
                        numbers.append(f"{state[1:]}{public}{100 * tract:06d}{group}{block:03d}")
    blocks = np.sort(block_geocode(groups, numbers))
    geocodes: dict[str, NDArray[np.str_]] = {}
    for level in _LEVELS[1:]:
        geocodes[level] = np.unique(blocks.astype(f"U{SPINE_WIDTHS[level]}"))
    parent = {
        lower: np.searchsorted(geocodes[upper], geocodes[lower].astype(f"U{SPINE_WIDTHS[upper]}"))
        for upper, lower in pairwise(_LEVELS[1:])
    }
    parent["State"] = np.zeros(len(found), dtype=np.int64)
    return Spine(_LEVELS, {"US": np.array([_NATION]), **geocodes}, parent)


def _profile() -> NDArray[np.float64]:
    """Return shares of the 2,016 cells, in the order of the histogram."""
    adults = np.array([_ADULTS_AT_HOME, *_ADULTS[1:]])
    # The voting age of nursing homes is fixed by a constraint: nobody there is a minor.
    adults[3] = 1.0
    races = np.array([*_RACES, *np.full(57, (1.0 - sum(_RACES)) / 57)])
    shares = np.einsum(
        "i,ij,k,l->ijkl",
        np.array(_TYPES),
        np.stack([1.0 - adults, adults], axis=1),
        np.array([1.0 - _HISPANIC, _HISPANIC]),
        races,
    ).ravel()
    result: NDArray[np.float64] = shares / shares.sum()
    return result


def draw_counts(n_blocks: int, universe: Universe, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw histograms of blocks: some empty, the others with few cells that hold most people."""
    person = universe.name == "pl94-person"
    mean = _MEAN_PEOPLE if person else _MEAN_UNITS
    size = np.where(rng.random(n_blocks) < _EMPTY, 0, rng.geometric(1.0 / mean, n_blocks))
    if not person:
        occupied = rng.binomial(size, _OCCUPIED)
        return np.stack([size - occupied, occupied], axis=1)
    shares = _profile()
    counts = np.empty((n_blocks, universe.size), dtype=np.int64)
    for i in range(n_blocks):
        weights = rng.standard_gamma(_CONCENTRATION * shares)
        counts[i] = rng.multinomial(size[i], weights / weights.sum())
    return counts
