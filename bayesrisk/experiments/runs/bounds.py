"""The bound of a number that may be written as a fraction."""

from fractions import Fraction
from typing import Any

from bayesrisk._files.limits import Bound, refuse
from bayesrisk.accounting import exact_number
from bayesrisk.exceptions import ArgumentError


def number(low: float, high: float, *, open_: bool = False, **told: Any) -> Bound:
    """Return the bound of a number or fraction, which is read exactly."""
    brackets = "()" if open_ else "[]"
    words = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"

    def check(value: Any) -> Fraction:
        try:
            exact = exact_number(value)
        except ArgumentError:
            raise refuse(words, **told) from None
        if not (low < exact < high if open_ else low <= exact <= high):
            raise refuse(words, **told)
        return exact

    ends = ("exclusiveMinimum", "exclusiveMaximum") if open_ else ("minimum", "maximum")
    drawn = [{"type": "number", ends[0]: low, ends[1]: high}, {"type": "string"}]
    return Bound(words, check, {"anyOf": drawn})
