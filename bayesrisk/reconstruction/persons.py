"""Person records in one checked form, as attackers and auditors exchange them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.tables.schema import age_group


def age_bin(age: ArrayLike) -> IntArray:
    """Return each age's bin, 0 to 37, by ``tables.schema.AGE_BIN_STARTS``.

    Parameters
    ----------
    age : array_like of int
        Ages in years, 0 to 110.

    Examples
    --------
    >>> age_bin([0, 21, 22, 24, 25, 84, 110])
    array([ 0, 21, 22, 22, 23, 36, 37])
    """
    ages = check.count_array(age, "age", lower=0, upper=110)
    return age_group(ages)


#: Race (63 combinations) by Hispanic origin.
CELLS = 126
#: Columns of records, and of the true ones, which say who it is.
RECORDS = ("block", "sex", "age", "race", "hisp")
TRUTH = (*RECORDS, "person")
#: Columns of persons whom an attacker knows.
KNOWN = ("block", "sex", "age", "person")
_RANGES = {"sex": (0, 1), "age": (0, 110), "race": (1, 63), "hisp": (0, 1)}


@dataclass(frozen=True, eq=False)
class Persons:
    """Records of persons: block, sex, age, race and Hispanic origin, checked.

    Every function of linkage takes a frame or this class. Make it where a file is read, and pass it
    on.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each person, numbered from 0. It has those of these columns that the records have:
        ``block`` (text of 15 digits, also made from whole numbers), ``sex`` (0, 1), ``age`` (0 to
        110), ``race`` (1 to 63), ``hisp`` (0, 1) and ``person``. ``agebin`` follows ``age``. Do not
        change it.
    source : str
        Name of the records in messages.

    Raises
    ------
    DataError
        If a value is missing or out of range; the message counts rows from 1.

    Examples
    --------
    >>> people = pd.DataFrame({"block": [500010101001000], "sex": 0, "age": 21})
    >>> Persons(people, "my file").frame.values.tolist()
    [['500010101001000', 0, 21, 21]]
    """

    frame: pd.DataFrame
    source: str

    def __post_init__(self) -> None:
        frame = check.frame(self.frame, f"{check.text(self.source, 'source')}: frame")
        columns: dict[str, Any] = {}
        for name in TRUTH:
            if name not in frame:
                continue
            column = frame[name]
            if column.isna().any():
                row = int(np.argmax(column.isna().to_numpy())) + 1
                raise DataError(f"{self.source}: row {row}, column {name!r}: is missing")
            columns[name] = _checked(column, name, self.source)
            if name == "age":
                columns["agebin"] = age_bin(columns["age"]) if len(column) else columns["age"]
        object.__setattr__(self, "frame", pd.DataFrame(columns))

    def __len__(self) -> int:
        return len(self.frame)


def person_frame(
    records: pd.DataFrame | Persons, *, columns: Sequence[str], source: str
) -> pd.DataFrame:
    """Return the named columns of persons, checked, with ``agebin`` after ``age``.

    ``source`` is what messages call a frame; persons have a name of their own.
    """
    if isinstance(records, Persons):
        check.frame(records.frame, records.source, columns)
    else:
        records = check.frame(records, source, columns)
        records = Persons(records[list(columns)], source)
    wanted = [part for name in columns for part in ((name, "agebin") if name == "age" else (name,))]
    return records.frame[wanted]


def _checked(column: pd.Series, name: str, source: str) -> pd.Series | IntArray:
    if name == "block":
        return _blocks(column, source)
    if name not in _RANGES:
        return column.reset_index(drop=True)
    if not pd.api.types.is_integer_dtype(column.dtype):
        raise DataError(f"{source}: column {name!r} must hold whole numbers, got {column.dtype}")
    values = column.to_numpy(dtype=np.int64)
    lowest, highest = _RANGES[name]
    bad = (values < lowest) | (values > highest)
    check.refuse_row(bad, values, source, name, f"be from {lowest} to {highest}")
    return values


def _blocks(column: pd.Series, source: str) -> pd.Series:
    if pd.api.types.is_integer_dtype(column.dtype):
        text = column.astype("int64").astype(str).str.zfill(15)
    else:
        text = column.astype("str")
    text = text.reset_index(drop=True)
    good = {b for b in text.unique() if len(b) == 15 and b.isascii() and b.isdigit()}
    check.refuse_row(~text.isin(good), text, source, "block", "be 15 digits")
    return text


def race_ethnicity(frame: pd.DataFrame) -> IntArray:
    """Return the cell ``2 (race - 1) + hisp`` of each record of a checked frame, 0 to 125."""
    cells: IntArray = 2 * (frame["race"].to_numpy(np.int64) - 1)
    cells += frame["hisp"].to_numpy(np.int64)
    return cells
