"""Geographies: the levels of places, and the definition files that name those of the package."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._types import TextArray
from bayesrisk.exceptions import ArgumentError, ShapeError

_MAX_WIDTH = 1000
_DEFINITIONS = resources.files("bayesrisk.tables") / "definitions"


def definition(name: str) -> dict[str, Any]:
    """Return a definition file of the package."""
    return tomllib.loads((_DEFINITIONS / f"{name}.toml").read_text(encoding="utf-8"))


def definition_names() -> list[str]:
    """Return the names of the definition files that hold a schema."""
    names = (file.name for file in _DEFINITIONS.iterdir())
    return sorted(n.removesuffix(".toml") for n in names if n != "geographies.toml")


@dataclass(frozen=True)
class Geography:
    """A hierarchy of places whose codes contain those of the places around them.

    Attributes
    ----------
    name : str
        Its name.
    levels : tuple of str
        Names of the levels, coarse to fine.
    widths : tuple of int
        Digits of a code at each level, strictly increasing and at most 1000; 0 is the root, whose
        code is empty.
    """

    name: str
    levels: tuple[str, ...]
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        levels = check.texts(self.levels, "levels")
        widths = tuple(
            check.integer(width, "widths", upper=_MAX_WIDTH)
            for width in check.items(self.widths, "widths")
        )
        if not levels or len(levels) != len(widths):
            raise ShapeError(
                f"levels and widths must be as many and at least one, got {len(levels)} "
                f"and {len(widths)}"
            )
        if len(set(levels)) != len(levels):
            raise ArgumentError(f"levels must differ, got {', '.join(levels)}")
        if widths[0] < 0 or any(a >= b for a, b in pairwise(widths)):
            raise ArgumentError(f"widths must increase from 0 or more, got {widths}")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "widths", widths)

    @property
    def finest(self) -> str:
        """The finest level."""
        return self.levels[-1]

    def rank(self, level: str) -> int:
        """Return the position of a level, coarsest 0."""
        return self.levels.index(check.choice(level, "level", self.levels))

    def width(self, level: str) -> int:
        """Return the number of digits of a code at a level."""
        return self.widths[self.rank(level)]

    def parent(self, level: str) -> str | None:
        """Return the next coarser level, or None at the top."""
        rank = self.rank(level)
        return self.levels[rank - 1] if rank else None

    def ancestors(self, geoids: ArrayLike, level: str) -> TextArray:
        """Return the place at a coarser level (or the same) that each place lies in."""
        codes = check.text_array(geoids, "geoids")
        width = self.width(level)
        if codes.size and int(np.strings.str_len(codes).min()) < width:
            raise ArgumentError(f"geoids must have at least {width} digits for level {level!r}")
        if width == 0:
            return np.full(codes.shape, "", dtype="<U1")
        return codes.astype(f"<U{width}")


#: The geography of records that have none: one place, whose code is empty.
EVERYWHERE = Geography("everywhere", ("all",), (0,))


@cache
def built_in_geographies() -> dict[str, Geography]:
    """Return the built-in geographies by name."""
    return {
        name: Geography(name, tuple(entry["levels"]), tuple(entry["widths"]))
        for name, entry in definition("geographies").items()
    }


def geography_names() -> Sequence[str]:
    """Return the names of the built-in geographies."""
    return tuple(sorted(built_in_geographies()))
