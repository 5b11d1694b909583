"""Values of HUD's Picture of Subsidized Households: texts, numbers, and counts behind shares."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk.readers.hud import _columns as known
from bayesrisk.readers.text.columns import Faults, Piece, one_array

#: What is written for the code of a place that is not known.
NO_PLACE = "X"
# Why a value is missing, by position: not at all, blank, what a value cannot be, then the codes.
BLANK, NO_COUNT, NO_NUMBER, BELOW, NO_SHARE, TOO_LARGE = 1, 2, 3, 4, 5, 6
_FAULTS = ("no number", "below 0", "no whole percentage up to 100", "too large")
_TEXT_OF_REASON = pa.array(
    [None, "blank", "no whole count", *_FAULTS, *known.REASONS.values()], pa.large_string()
)
_CODES = pa.array([str(code) for code in known.REASONS])
# Numbers as spreadsheets show them: $1,234.50, and shares such as 45%.
_AMOUNT = r"^-?\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?$"
_SHARE = r"^[0-9]+(?:\.[0-9]+)?%$"
_BLANKS = pa.array(["", "NA", "."])


def reasons(reason: NDArray[np.int8]) -> Any:
    return _as_text(_TEXT_OF_REASON.take(pa.array(reason)))


def missing(
    faults: Faults,
    piece: Piece,
    name: str,
    found: tuple[NDArray[np.float64], NDArray[np.int8]],
    good: NDArray[np.bool_],
    rule: str,
    why: int,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return numbers and reasons where those that are not good are missing, or refused."""
    bad = faults.missing(piece, name, good, rule, _TEXT_OF_REASON[why].as_py())
    if not bad.any():
        return found
    return np.where(bad, np.nan, found[0]), np.where(bad, np.int8(why), found[1])


def _as_text(values: pa.Array) -> Any:
    """Return texts as pandas holds them, without an object for each."""
    return pd.arrays.ArrowStringArray(pa.chunked_array([values.cast(pa.large_string())]))


def texts(piece: Piece, usual: str, name: str, width: int, faults: Faults) -> Any:
    """Return a column of text; codes get their leading zeros back, missing ones are missing."""
    values = one_array(piece.table.column(name))
    missing = pc.equal(values, "")
    if known.is_known(usual):
        missing = pc.or_(missing, pc.is_in(values, _CODES))
    digits = {"code": width, "sumlevel": 2, "stctytrt": 11}.get(usual)
    if digits is not None and len(values):
        # What was once read as a number with a fraction.
        values = pc.replace_substring_regex(values, r"^([0-9]+)\.0$", r"\1")
        good = pc.match_substring_regex(values, f"^[0-9]{{1,{digits}}}$")
        if usual == "code":
            place = pc.match_substring_regex(values, "^[0-9]*X+$")
            whole = pc.equal(pc.utf8_length(values), digits)
            place = pc.and_(place, pc.or_(whole, pc.equal(values, NO_PLACE)))
            # A code is needed: only what is said to be missing is.
            missing = pc.or_(pc.is_in(values, _CODES), place)
        rule = f"at most {digits} digits"
        rule += f", or such as {'01XXX'.ljust(digits, 'X')[:digits]}" if usual == "code" else ""
        right = pc.or_(good, missing).to_numpy(zero_copy_only=False)
        if usual == "code":  # without its place a row is nothing
            piece.check(name, right, rule)
        else:
            missing = pc.or_(missing, pa.array(faults.missing(piece, name, right, rule)))
        values = pc.utf8_lpad(values, digits, "0")
    shown_values = pc.if_else(missing, pa.scalar(None, pa.string()), values)
    return _as_text(shown_values)


def numbers(
    piece: Piece, usual: str, name: str, odd: Counter[str], faults: Faults, *, share: bool
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return numbers, NaN where missing, and why they are."""
    column = one_array(piece.table.column(name))
    blank = pc.is_in(column, _BLANKS)
    hidden = blank.to_numpy(zero_copy_only=False)
    values = _floats(pc.if_else(blank, pa.scalar(None, pa.string()), column), usual)
    reason = np.where(hidden, np.int8(BLANK), np.int8(0))
    good = np.isfinite(values) | hidden
    values, reason = missing(faults, piece, name, (values, reason), good, "a number", NO_NUMBER)
    for place, code in enumerate(known.REASONS, TOO_LARGE + 1):
        reason[values == code] = place
    values = np.where(reason == 0, values, np.nan)
    below = values < 0
    if usual in known.SIGNED:
        _count_odd(odd, f"column {name!r} below 0", below)
    elif usual not in ("latitude", "longitude"):
        codes = ", ".join(str(code) for code in known.REASONS)
        rule = f"a number >= 0 or one of {codes}"
        values, reason = missing(faults, piece, name, (values, reason), ~below, rule, BELOW)
    if usual.startswith("pct_") and usual != "pct_median" and not share:
        _count_odd(odd, f"column {name!r} above 100", values > 100)
    return values, reason


def _count_odd(odd: Counter[str], what: str, where: NDArray[np.bool_]) -> None:
    if where.any():
        odd[what] += int(where.sum())


def _floats(column: pa.Array, usual: str) -> NDArray[np.float64]:
    """Return texts as numbers, NaN where they are none."""
    try:
        found = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # as spreadsheets show numbers, blanks around them, or no number at all
        plain = pc.utf8_trim_whitespace(column)
        shown_so = pc.match_substring_regex(plain, _SHARE if usual[:4] == "pct_" else _AMOUNT)
        marks = pc.replace_substring_regex(plain, "[$,%]", "")
        series = pd.Series(pc.if_else(shown_so, marks, plain).to_pylist(), dtype=object)
        found = pd.to_numeric(series, errors="coerce").to_numpy(dtype=float)
    return np.array(found, dtype=np.float64)


def counts(
    share: NDArray[np.float64], base: NDArray[np.float64]
) -> tuple[Any, Any, NDArray[np.bool_]]:
    """Return the bounds of the count behind a rounded percentage, and where no count is."""
    there = np.isfinite(share) & np.isfinite(base)
    n = np.where(there, np.rint(base), 0).astype(np.int64)
    p = np.where(there, share, 0).astype(np.int64)
    low, high = share_bounds(n, p)
    none = there & (low > high)
    hidden = ~there | none
    return _integers(low, hidden), _integers(high, hidden), none


def share_bounds(
    n: NDArray[np.int64], p: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and largest count of ``n`` that is ``p`` percent once rounded."""
    low = -(-n * (2 * p - 1) // 200)
    high = n * (2 * p + 1) // 200
    return np.maximum(low, 0), np.minimum(high, n)


def _integers(values: NDArray[np.int64], hidden: NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values.copy(), hidden.copy())
