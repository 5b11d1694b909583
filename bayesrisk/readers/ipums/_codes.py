"""Codes of the 1940 Census in IPUMS USA, and the records made of them.

Kinds of quarters as the 2020 disclosure avoidance system recoded them for its 1940 tests: types 1
and 5 do not occur; type 9, "other and unknown", counts as a household where GQ says so.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from bayesrisk._types import IntArray
from bayesrisk.readers.text.columns import digit_matrix, texts
from bayesrisk.tables import Records, Schema

ADULT = 18  # as in the 2020 redistricting data, not the voting age of 1940
#: Types of quarters that occur, by their kind 0 to 7.
QUARTERS = (0, 2, 3, 4, 6, 7, 8, 9)
#: General codes of Hispanic origin; 9 is "not reported".
HISPANIC = (0, 1, 2, 3, 4, 9)
RACES = 9
GQ_CODES = 6
_HOUSEHOLDS = (1, 2, 5)
_UNKNOWN = 9
#: Digits of state, county, supervisor's district and enumeration district.
WIDTHS = (2, 4, 3, 4)


def hhgq_of(gq: IntArray, gqtype: IntArray) -> IntArray:
    """Return the kind of quarters, 0 to 7."""
    kind = np.searchsorted(np.array(QUARTERS), gqtype).astype(np.int64)
    return np.where((gqtype == _UNKNOWN) & np.isin(gq, _HOUSEHOLDS), 0, kind)


def place_of(state: IntArray, county: IntArray, supdist: IntArray, enumdist: IntArray) -> Any:
    """Return 13-digit codes of enumeration districts."""
    code = ((state * 10**4 + county) * 10**3 + supdist) * 10**4 + enumdist
    return texts(digit_matrix(code, sum(WIDTHS)))


def records_of(places: Any, columns: dict[str, IntArray]) -> Records:
    """Return records from checked codes of IPUMS."""
    age = columns["AGE"]
    table = {
        "enumdist": places,
        "hhgq": columns["hhgq"].astype(np.int16),
        "votingage": (age >= ADULT).astype(np.int16),
        "hispanic": np.minimum(columns["HISPAN"], 5).astype(np.int16),
        "cenrace": (columns["RACE"] - 1).astype(np.int16),
        "household": columns["SERIAL"],
        "person": columns["PERNUM"].astype(np.int32),
        "sex": (columns["SEX"] - 1).astype(np.int16),
        "age": age.astype(np.int16),
    }
    return Records(Schema.named("census-1940"), pa.table(table))
