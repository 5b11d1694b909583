"""Person records as attackers and auditors exchange them: one checked frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.linkage.age_bins import age_bin

__all__ = ["CELLS", "person_frame", "race_ethnicity"]

#: Race (63 combinations) by Hispanic origin.
CELLS = 126
_RANGES = {"sex": (0, 1), "age": (0, 110), "race": (1, 63), "hisp": (0, 1)}


def person_frame(records: pd.DataFrame, *, columns: Sequence[str], source: str) -> pd.DataFrame:
    """Return the named columns, checked, with ``agebin`` made from ``age`` and blocks as text.

    Parameters
    ----------
    records : pandas.DataFrame
        A row for each person; blocks are text of 15 digits, or whole numbers.
    columns : sequence of str
        Of ``block``, ``sex``, ``age``, ``race``, ``hisp`` and ``person``.
    source : str
        How messages call the frame.

    Returns
    -------
    pandas.DataFrame
        The columns, ``agebin`` after ``age``, numbered from 0.

    Raises
    ------
    ArgumentTypeError
        If the records are not a frame.
    DataError
        If a column is missing or a value is out of range; the row is counted from 1.
    """
    check.frame(records, source, columns)
    found: dict[str, Any] = {}
    for name in columns:
        column = records[name]
        if column.isna().any():
            row = int(np.argmax(column.isna().to_numpy())) + 1
            raise DataError(f"{source}: row {row}, column {name!r}: is missing")
        found[name] = _checked(column, name, source)
        if name == "age":
            found["agebin"] = age_bin(found["age"]) if len(records) else found["age"]
    return pd.DataFrame(found)


def _checked(column: pd.Series, name: str, source: str) -> Any:
    if name == "block":
        return _blocks(column, source)
    if name not in _RANGES:
        return column.reset_index(drop=True)
    if not pd.api.types.is_integer_dtype(column.dtype):
        raise DataError(f"{source}: column {name!r} must hold whole numbers, got {column.dtype}")
    values = column.to_numpy(dtype=np.int64)
    lowest, highest = _RANGES[name]
    bad = (values < lowest) | (values > highest)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{source}: row {row + 1}, column {name!r}: must be from {lowest} to {highest}, "
            f"got {values[row]}"
        )
    return values


def _blocks(column: pd.Series, source: str) -> pd.Series:
    """Return blocks as text of 15 digits."""
    if pd.api.types.is_integer_dtype(column.dtype):
        text = column.astype("int64").astype(str).str.zfill(15)
    else:
        text = column.astype("str")
    text = text.reset_index(drop=True)
    for block in text.unique():
        if len(block) != 15 or not (block.isascii() and block.isdigit()):
            row = int(np.argmax((text == block).to_numpy())) + 1
            raise DataError(
                f"{source}: row {row}, column 'block': must be 15 digits, got {shown(block)}"
            )
    return text


def race_ethnicity(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return the cell ``2 (race - 1) + hisp`` of each record of a checked frame, 0 to 125."""
    cells: NDArray[np.int64] = 2 * (frame["race"].to_numpy(np.int64) - 1)
    cells += frame["hisp"].to_numpy(np.int64)
    return cells
