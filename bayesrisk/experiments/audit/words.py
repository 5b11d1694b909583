"""Numbers and protections of an audit, in the words of its report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from bayesrisk.accounting import census_2020_budget

NOTHING = "no protection"
_MOST_RANGES = 5  # that a sentence names


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


# Numbers.


def answers_text(value: float) -> str:
    """Return a number of remaining answers, "no end" of one that is infinite."""
    return "no end" if math.isinf(value) else f"{value:.2f}"


def people_text(number: float) -> str:
    """Return a mean number of people as a whole one; more than none is never none."""
    return "fewer than 1" if 0.0 < number < 0.5 else f"{number:,.0f}"


def error_text(error: float) -> str:
    """Return the error of a count, of two digits that count."""
    if 0.0 < error < 0.005:
        return "less than 0.01"
    return f"{error:.2g}" if 0.0 < error < 10.0 else f"{error:,.0f}"


def interval_text(
    value: float, low: float, high: float, form: Callable[[float], str] = answers_text,
    most: float = math.inf,
) -> str:  # fmt: skip
    """Return a value with its interval: "too few" for one that is missing, or as long as can be."""
    if math.isnan(value):
        return "–"
    if value == low == high:
        return f"{form(value)} (exact)"
    informative = high - low < most
    return f"{form(value)} ({f'{form(low)} to {form(high)}' if informative else 'too few'})"


def people_interval(value: float, low: float, high: float, people: float) -> str:
    """Return a number of people with its interval."""
    if value == 0.0 and math.isnan(low):
        return "0 (in no release)"
    if value > 0.0 and high < 0.5:
        return people_text(value)
    return interval_text(value, low, high, people_text, people)


# Protections: what a setting means, so that nobody has to know its parameters.


def meaning(mechanism: str, parameters: Mapping[str, Any], error: float) -> str:
    """Return what a mechanism does with its settings, in words; empty where there are none.

    ``error`` is that of a count, which says how large noise is.
    """
    write = _WORDS.get(mechanism)
    try:
        return "" if write is None else write(parameters, error_text(error))
    except (KeyError, TypeError, ValueError):  # a setting that is stated in another way
        return ""


def _noise(parameters: Mapping[str, Any], error: str) -> str:
    blocks = census_2020_budget("pl94", total_rho="2.56").set_index(["level", "query"])
    census = float(blocks.loc[("Block", "detailed"), "rho_float"])
    rho = float(Fraction(parameters.get("rho", 0)))
    if math.isclose(rho, census, rel_tol=0.01):
        return "noise of the 2020 census's size"
    return f"noise of {error} a count"


def _swapping(parameters: Mapping[str, Any], error: str) -> str:
    units = {"person": "people", "household": "households"}[parameters["unit"]]
    return f"swapping {100.0 * float(Fraction(parameters['rate'])):.3g} % of {units}"


def _rounding(parameters: Mapping[str, Any], error: str) -> str:
    how = "at random to" if parameters["method"] == "random" else "to the nearest"
    return f"rounding {how} multiples of {int(parameters['base'])}"


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
    "identity": lambda _, __: NOTHING,
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
