"""Protections in words: what a setting does, for readers who know no parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from bayesrisk.accounting import census_2020_budget

NOTHING = "no protection"
_MOST_RANGES = 5  # that a sentence names


def shown_name(name: str) -> str:
    """Return the name of a protection as it is shown."""
    return NOTHING if name in ("none", "identity") else name


def meaning(mechanism: str, parameters: Mapping[str, Any], error: str) -> str:
    """Return the meaning of a mechanism with its settings, in words; empty where there are none.

    ``error`` is that of a count, as text, which says how large noise is.
    """
    write = _WORDS.get(mechanism)
    try:
        return "" if write is None else write(parameters, error)
    except (KeyError, TypeError, ValueError):  # a setting that is stated in another way
        return ""


def _noise(parameters: Mapping[str, Any], error: str) -> str:
    budget = census_2020_budget("pl94", total_rho="2.56")
    census = budget.query("level == 'Block' and query == 'detailed'")["rho_float"].item()
    rho = float(Fraction(parameters.get("rho", 0)))
    if math.isclose(rho, census, rel_tol=0.01):
        return "noise of the 2020 census's size"
    return f"noise of {error} a count"


def _swapping(parameters: Mapping[str, Any], error: str) -> str:
    units = {"person": "people", "household": "households"}[parameters["unit"]]
    return f"swapping {100.0 * float(Fraction(parameters['rate'])):.3g} % of {units}"


def _rounding(parameters: Mapping[str, Any], error: str) -> str:
    rule = "at random to" if parameters["method"] == "random" else "to the nearest"
    return f"rounding {rule} multiples of {int(parameters['base'])}"


def _ranges(parameters: Mapping[str, Any], error: str) -> str:
    edges = [int(edge) for edge in parameters["edges"]]
    if len(edges) > _MOST_RANGES or parameters.get("step"):
        return f"publishing ranges with an error of {error} a count"
    pairs = itertools.pairwise(edges)
    ends = [f"{a} to {b - 1}" if b - a > 1 else str(a) for a, b in pairs]
    return f"publishing ranges {', '.join([*ends, f'{edges[-1]} or more'])}"


def _threshold(parameters: Mapping[str, Any], error: str) -> str:
    least = 0 if parameters.get("zeros") == "within" else 1
    return f"hiding counts of {least} to {int(parameters['least']) - 1}"


def _suppression(parameters: Mapping[str, Any], error: str) -> str:
    more = " and what gives them away" if parameters.get("complementary", True) else ""
    return f"hiding counts of 1 to {int(parameters['threshold']) - 1}{more}"


_WORDS: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "none": lambda _, __: NOTHING,
    "identity": lambda _, __: NOTHING,  # in files of the version before
    "discrete-gaussian": _noise,
    "discrete-laplace": lambda _, error: f"noise of {error} a count",
    "topdown": lambda _, error: f"noise made consistent, of {error} a count",
    "bottom-up": lambda _, error: f"noise made consistent, of {error} a count",
    "swapping": _swapping,
    "rounding": _rounding,
    "ranges": _ranges,
    "threshold": _threshold,
    "suppression": _suppression,
}
