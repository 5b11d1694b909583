"""Person records as attackers and auditors exchange them: one checked frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction.linkage.age_bins import age_bin

#: Race (63 combinations) by Hispanic origin.
CELLS = 126
_NAMES = ("block", "sex", "age", "race", "hisp", "person")
_RANGES = {"sex": (0, 1), "age": (0, 110), "race": (1, 63), "hisp": (0, 1)}


@dataclass(frozen=True, eq=False)
class Persons:
    """Records of persons, checked once: what has this type is not looked at again.

    Every function of linkage takes a frame or this.  Make it where a file is read, and hand it on.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each person, numbered from 0: those of ``block`` (text of 15 digits; whole numbers
        are turned into it), ``sex`` (0, 1), ``age`` (0 to 110), ``race`` (1 to 63), ``hisp`` (0, 1)
        and ``person`` that the records have, and ``agebin`` after ``age``.  Do not change it.
    source : str
        How messages call the records.

    Raises
    ------
    DataError
        If a value is missing or out of range; the row is counted from 1.

    Examples
    --------
    >>> people = pd.DataFrame({"block": [500010101001000], "sex": 0, "age": 21})
    >>> Persons(people, "my file").frame.values.tolist()
    [['500010101001000', 0, 21, 21]]
    """

    frame: pd.DataFrame
    source: str

    def __post_init__(self) -> None:
        check.frame(self.frame, f"{check.text(self.source, 'source')}: frame")
        found: dict[str, Any] = {}
        for name in _NAMES:
            if name not in self.frame:
                continue
            column = self.frame[name]
            if column.isna().any():
                row = int(np.argmax(column.isna().to_numpy())) + 1
                raise DataError(f"{self.source}: row {row}, column {name!r}: is missing")
            found[name] = _checked(column, name, self.source)
            if name == "age":
                found["agebin"] = age_bin(found["age"]) if len(column) else found["age"]
        object.__setattr__(self, "frame", pd.DataFrame(found))

    def __len__(self) -> int:
        return len(self.frame)


def person_frame(
    records: pd.DataFrame | Persons, *, columns: Sequence[str], source: str
) -> pd.DataFrame:
    """Return the named columns of persons, and ``agebin`` after ``age``; a frame is checked.

    Parameters
    ----------
    records : pandas.DataFrame or Persons
        A row for each person.
    columns : sequence of str
        Columns of :class:`Persons`.
    source : str
        How messages call a frame; persons have a name of their own.

    Returns
    -------
    pandas.DataFrame
        The columns, rows numbered from 0.

    Raises
    ------
    DataError
        If a column is missing, or a value of a frame is out of range.
    """
    if isinstance(records, Persons):
        check.frame(records.frame, records.source, columns)
    else:
        check.frame(records, source, columns)
        records = Persons(records[list(columns)], source)
    wanted = [part for name in columns for part in ((name, "agebin") if name == "age" else (name,))]
    return records.frame[wanted]


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
