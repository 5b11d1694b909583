"""The register of published numbers, as tests read it: numbers with the error of their rounding."""

import importlib.util
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location(
    "published_numbers", ROOT / "docs" / "published_numbers.py"
)
register = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(register)
ROWS = register.read()
WORDS = {"five": "5", "six": "6"}


class Range(NamedTuple):
    """All numbers that are printed alike; sums and quotients hold all that they can be."""

    low: Fraction
    high: Fraction

    def __add__(self, other):
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other):
        return Range(self.low - other.high, self.high - other.low)

    def percent_of(self, other):
        return Range(100 * self.low / other.high, 100 * self.high / other.low)

    def meets(self, other):
        return self.low <= other.high and other.low <= self.high


def number(text):
    """Return a printed number; fractions as they are, percentages without their sign."""
    text = WORDS.get(text, text).replace(",", "")
    numerator, _, denominator = text.partition("/")
    return Fraction(numerator) / Fraction(denominator or 1)


def rounded(text, *, significant=None):
    """Return what a text may stand for, rounded in its last digit, or to significant digits."""
    digits = text.replace(",", "").lstrip("-")
    whole, _, decimals = digits.partition(".")
    last = Fraction(1, 10 ** len(decimals)) if decimals else Fraction(1)
    if significant and not decimals:
        last = Fraction(10 ** max(len(whole) - significant, 0))
    value = number(text)
    return Range(value - last / 2, value + last / 2)


def rows(paper, place=None, **fields):
    """Return the register's rows of a paper and a place, with these fields."""
    return [
        row
        for row in ROWS
        if row["paper"] == paper
        and place in (None, row["place"])
        and all(row[name] == value for name, value in fields.items())
    ]


def cells(paper, place):
    """Return the texts of a table by row and column."""
    return {(row["row"], row["column"]): row["value"] for row in rows(paper, place)}


def interval(values):
    """Mean of independent values with its 95 % interval (Student's t); gaps are left out."""
    values = np.asarray(values, float)
    values = values[~np.isnan(values)]
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    reach = stats.t.ppf(0.975, len(values) - 1) * error
    return mean, mean - reach, mean + reach


def surely_less(one, other):
    """Whether the mean difference of paired values is below 0 with its whole interval."""
    return interval(np.asarray(one, float) - np.asarray(other, float))[2] < 0


def compare(test, found):
    """Compare means with the intervals of every row of the register that names this test."""
    own = [row for row in ROWS if row["checked"] == test and row["status"] != "input"]
    assert own
    for row in own:
        low, _, high = row["ours"].partition(" to ")
        mean = interval(found[row["paper"], row["place"], row["row"], row["column"]])[0]
        assert number(low) <= mean <= number(high), row


def falls(values):
    """Whether values of classes of size fall from each class to the next."""
    return all(surely_less(large, small) for small, large in pairwise(values))
