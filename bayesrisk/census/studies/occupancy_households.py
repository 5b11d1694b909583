"""The confidential households that occupancy attacks are held against."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.census.population.subsidies import occupancy_violation
from bayesrisk.exceptions import ArgumentTypeError, DataError, quote

#: What a match key is made of.
Key = str | tuple[str, ...] | list[str]
#: What a match key may hold.
KEY_COLUMNS = ("subsidised", "bedrooms", "race_ethnicity", "child")
#: Match keys of the reference: HUD's variables; the same without bedrooms; and what a data broker
#: sells, with no knowledge of who is subsidised.
MATCH_KEYS = {
    "hud": ("subsidised", "bedrooms", "race_ethnicity", "child"),
    "subsidised": ("subsidised", "race_ethnicity", "child"),
    "broker": ("race_ethnicity", "child"),
}
_BASE = (2, 4, 14, 2)
_BOUNDS = {
    "size": (1, 7),
    "race_ethnicity": (0, 13),
    "children": (0, 6),
    "bedrooms": (0, 3),
    "subsidised": (0, 1),
}


def household_frame(households: pd.DataFrame, *, source: str) -> pd.DataFrame:
    """Return checked households with what is derived: ``child`` and ``violation``."""
    households = check.frame(households, source, ("block", *_BOUNDS))
    columns = {}
    for name, (low, high) in _BOUNDS.items():
        values = pd.to_numeric(households[name], errors="coerce").to_numpy(dtype=float)
        bad = ~((values >= low) & (values <= high) & (values == np.floor(values)))
        if bad.any():
            row = int(bad.argmax())
            raise DataError(
                f"{source}: row {row + 1}, column {name!r}: must be a whole number in "
                f"[{low}, {high}], got {quote(households[name].iloc[row])}"
            )
        columns[name] = values.astype(np.int64)
    breach = occupancy_violation(columns["size"], columns["bedrooms"])
    return pd.DataFrame(
        {
            "block": households["block"].astype("str").to_numpy(),
            **columns,
            "child": (columns["children"] > 0).astype(np.int64),
            "violation": breach & (columns["subsidised"] == 1),
        }
    )


def checked_key(key: object) -> tuple[str, ...]:
    """Return the columns of a match key, those of the reference by their names."""
    if isinstance(key, str) and key in MATCH_KEYS:
        return MATCH_KEYS[key]
    if isinstance(key, str) or not isinstance(key, tuple | list) or not key:
        raise ArgumentTypeError(
            f"key must be columns of {', '.join(KEY_COLUMNS)}, or one of {', '.join(MATCH_KEYS)}, "
            f"got {quote(key)}"
        )
    for name in key:
        if name not in KEY_COLUMNS or list(key).count(name) > 1:
            raise DataError(f"key: must be columns of {', '.join(KEY_COLUMNS)}, got {quote(name)}")
    return tuple(key)


def key_codes(frame: pd.DataFrame, key: tuple[str, ...]) -> IntArray:
    """Return a number for the values of the key of each row."""
    code = np.zeros(len(frame), dtype=np.int64)
    for name, base in zip(KEY_COLUMNS, _BASE, strict=True):
        code *= base
        if name in key:
            code += frame[name].to_numpy(np.int64)
    return code
