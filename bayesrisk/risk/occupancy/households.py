"""The confidential households that occupancy attacks are held against."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.population import occupancy_violation

#: What a match key may hold.
KEY_COLUMNS = ("subsidised", "bedrooms", "race_ethnicity", "child")
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
    check.frame(households, source)
    for name in ("block", *_BOUNDS):
        if name not in households:
            held = ", ".join(map(str, households.columns))
            raise DataError(f"{source}: must have a column {name!r}, got {held}")
    found = {}
    for name, (low, high) in _BOUNDS.items():
        values = pd.to_numeric(households[name], errors="coerce").to_numpy(dtype=float)
        bad = ~((values >= low) & (values <= high) & (values == np.floor(values)))
        if bad.any():
            row = int(bad.argmax())
            raise DataError(
                f"{source}: row {row + 1}, column {name!r}: must be a whole number in "
                f"[{low}, {high}], got {shown(households[name].iloc[row])}"
            )
        found[name] = values.astype(np.int64)
    breach = occupancy_violation(found["size"], found["bedrooms"])
    return pd.DataFrame(
        {
            "block": households["block"].astype("str").to_numpy(),
            **found,
            "child": (found["children"] > 0).astype(np.int64),
            "violation": breach & (found["subsidised"] == 1),
        }
    )


def checked_key(key: object) -> tuple[str, ...]:
    """Return the columns of a match key."""
    if isinstance(key, str) or not isinstance(key, tuple | list) or not key:
        raise ArgumentTypeError(
            f"key must be columns of {', '.join(KEY_COLUMNS)}, got {shown(key)}"
        )
    for name in key:
        if name not in KEY_COLUMNS or list(key).count(name) > 1:
            raise DataError(f"key: must be columns of {', '.join(KEY_COLUMNS)}, got {shown(name)}")
    return tuple(key)


def key_codes(frame: pd.DataFrame, key: tuple[str, ...]) -> NDArray[np.int64]:
    """Return a number for the values of the key of each row."""
    code = np.zeros(len(frame), dtype=np.int64)
    for name, base in zip(KEY_COLUMNS, _BASE, strict=True):
        code *= base
        if name in key:
            code += frame[name].to_numpy(np.int64)
    return code
