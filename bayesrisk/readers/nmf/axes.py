"""Histograms of the 2020 noisy measurement files: axes, recodes, and the shape of a query.

A row of a file names, for each axis, how it is answered: ``*`` (summed out), ``detailed`` or the
axis's own name (every value), or a recode: groups of values.  Axes and recodes are those of the
public code of the 2020 Disclosure Avoidance System.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Groups = tuple[tuple[int, ...], ...]


def _ranges(*first: int, stop: int) -> Groups:
    """Return the runs that start at the given values, up to ``stop``."""
    bounds = (*first, stop)
    return tuple(tuple(range(a, b)) for a, b in pairwise(bounds))


_FROM_18 = (18, 20, *range(25, 60, 5), 60, 62, 65, 67, *range(70, 115, 5))
_RELATIVES = _ranges(*range(18), stop=18)  # members of households, by relationship


@dataclass(frozen=True)
class Universe:
    """What a product counts: the axes of its histogram, in order, and their recodes.

    Attributes
    ----------
    name : str
        ``pl94-person``, ``pl94-unit``, ``dhc-person``, or ``other``.
    axes : mapping of str to int
        Size of each axis; 0 where it is not known.
    recodes : mapping of str to mapping
        For each axis, the groups of values of each recode.
    """

    name: str
    axes: Mapping[str, int]
    recodes: Mapping[str, Mapping[str, Groups]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the number of cells of the histogram, 0 where it is not known."""
        size = 1
        for extent in self.axes.values():
            size *= extent
        return size

    def groups(self, axis: str, answer: str) -> Groups | None:
        """Return the values behind each position of an axis, or None for an unknown recode."""
        extent = self.axes[axis]
        if extent and answer == "*":
            return (tuple(range(extent)),)
        if extent and answer in ("detailed", axis):
            return _ranges(*range(extent), stop=extent)
        return self.recodes.get(axis, {}).get(answer)


UNIVERSES = MappingProxyType(
    {
        "pl94-person": Universe(
            "pl94-person",
            MappingProxyType({"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}),
            MappingProxyType(
                {
                    "hhgq": {"hhinstlevels": _ranges(0, 1, 5, stop=8), "gqNursingTotal": ((3,),)},
                    "votingage": {"nonvoting": ((0,),)},
                }
            ),
        ),
        "pl94-unit": Universe("pl94-unit", MappingProxyType({"h1": 2})),
        "dhc-person": Universe(
            "dhc-person",
            MappingProxyType({"relgq": 42, "sex": 2, "age": 116, "hispanic": 2, "cenrace": 63}),
            MappingProxyType(
                {
                    "relgq": {
                        "relgq_4_groups": _ranges(0, 2, 18, 33, stop=42),
                        "popSehsdTargetsRelship": (*_RELATIVES, tuple(range(18, 42))),
                        "relship_and_eight_level_GQ": (
                            *_RELATIVES,
                            *_ranges(18, 24, 27, 28, 33, 34, 36, stop=42),
                        ),
                        "gq_constr_groups": (
                            tuple(range(18)),
                            (32,),
                            tuple(range(18, 23)),
                            (33, 37, 38, 39, 40, 41),
                            (23, 31, 34, 35),
                            (24, 25, 26, 27, 28, 29, 30, 36),
                        ),
                    },
                    "age": {
                        "age_18_64_116": _ranges(0, 18, 65, stop=116),
                        "age_10_groups": _ranges(0, 3, 15, 16, 17, 18, 20, 25, 30, 35, stop=116),
                        "age_38_groups": _ranges(*range(16), *_FROM_18, stop=116),
                        "age_40_groups": _ranges(*range(18), *_FROM_18, stop=116),
                    },
                }
            ),
        ),
    }
)


def cell_labels(universe: Universe, answers: Sequence[str]) -> NDArray[np.int64] | None:
    """Return, for every cell of the histogram, the cell of a query that counts it; -1 for none.

    ``answers`` say how each axis is answered.  None where an axis or a recode is not known.
    """
    labels: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    for (axis, extent), answer in zip(universe.axes.items(), answers, strict=True):
        groups = universe.groups(axis, answer)
        if not extent or groups is None:
            return None
        place = np.full(extent, -1, dtype=np.int64)
        for number, values in enumerate(groups):
            place[list(values)] = number
        crossed = labels[:, None] * len(groups) + place
        crossed[(labels[:, None] < 0) | (place < 0)] = -1
        labels = crossed.reshape(-1)
    return labels


def universe_of(axes: tuple[str, ...]) -> Universe:
    """Return the universe with these axes; one of unknown sizes where they are not known."""
    for universe in UNIVERSES.values():
        if tuple(universe.axes) == axes:
            return universe
    return Universe("other", MappingProxyType(dict.fromkeys(axes, 0)))


def query_groups(universe: Universe, query: str) -> tuple[Groups, ...]:
    """Return, axis by axis, the groups of values that a query of known recodes counts.

    ``votingage * cenrace`` is the cross of two answers; ``total`` sums everything out.
    """
    if query == "detailed":
        answers = dict.fromkeys(universe.axes, "detailed")
    else:
        names = [] if query == "total" else query.split(" * ")
        owner = {
            name: axis for axis in universe.axes for name in (axis, *universe.recodes.get(axis, {}))
        }
        answers = {owner[name]: name for name in names}
    groups = (universe.groups(axis, answers.get(axis, "*")) for axis in universe.axes)
    return tuple(group for group in groups if group is not None)
