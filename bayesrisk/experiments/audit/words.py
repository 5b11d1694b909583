"""Formatting of an audit's numbers as words."""

from __future__ import annotations

import math
from collections.abc import Callable

_WIDE = 1e4  # times its value the upper end of an interval says nothing


def capital(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def answers_text(value: float) -> str:
    """Return a number of remaining answers as text."""
    return "unboundedly many" if math.isinf(value) else f"{value:.2f}"


def people_text(number: float) -> str:
    """Return a mean number of people as text; a small positive one never reads 0."""
    return "fewer than 1" if 0.0 < number < 0.5 else f"{number:,.0f}"


def error_text(error: float) -> str:
    """Return the error of a count as text with two significant digits."""
    if 0.0 < error < 0.005:
        return "less than 0.01"
    return f"{error:.2g}" if 0.0 < error < 10.0 else f"{error:,.0f}"


def interval_text(
    value: float, low: float, high: float, form: Callable[[float], str] = answers_text,
    most: float = math.inf,
) -> str:  # fmt: skip
    """Return a value with its interval, or "too few" if data cannot bound it."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "unbounded"
    if value == low == high:
        return f"{form(value)} (exact)"
    text = f"{form(low)} to {form(high)}" if high - low < most else "too few"
    if form is answers_text and high > _WIDE * max(value, 1.0):
        text = f"at least {form(low)}" if low >= 1.005 else "too few"
    return f"{form(value)} ({text})"


def people_interval(value: float, low: float, high: float, people: float) -> str:
    """Return a number of people with its interval as text."""
    if value == 0.0 and math.isnan(low):
        return "0 (in no release)"
    if value > 0.0 and high < 0.5:
        return people_text(value)
    return interval_text(value, low, high, people_text, people)
