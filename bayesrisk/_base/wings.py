"""Wings: folders of the package that add to it by an ``entry_points.txt``, and are not imported."""

import functools
from configparser import ConfigParser
from pathlib import Path


@functools.cache
def wing_points() -> dict[str, dict[str, str]]:
    """Return the entry points of the wings, by group and name, as of an installed package."""
    points = ConfigParser(delimiters="=", interpolation=None)
    points.optionxform = str  # type: ignore[assignment, method-assign]
    points.read(sorted(Path(__file__).parents[1].glob("*/entry_points.txt")), encoding="utf-8")
    return {group: dict(points[group]) for group in points.sections()}
