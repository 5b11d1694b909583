"""Values that nobody means to pass: wrong types, limits, nesting, sizes."""

import datetime
import decimal
import fractions
import sys
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

import bayesrisk


class Odd:
    """An object that is nothing in particular."""


class Liar:
    """An object whose length and items do not fit."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, _: Any) -> Any:
        raise RuntimeError("no item")


def _cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(20_000):
        found = [found]
    return found


def hostile() -> dict[str, Any]:
    """Return values by name; every call makes them anew."""
    huge = np.broadcast_to(np.int64(1), (2**40,))
    return {
        "None": None,
        "True": True,
        "0": 0,
        "-1": -1,
        "2**31": 2**31,
        "2**63-1": 2**63 - 1,
        "2**64": 2**64,
        "10**400": 10**400,
        "-10**400": -(10**400),
        "0.5": 0.5,
        "-0.0": -0.0,
        "nan": float("nan"),
        "inf": float("inf"),
        "-inf": float("-inf"),
        "1e-320": 1e-320,
        "1e308": 1e308,
        "complex": 1j,
        "decimal-nan": decimal.Decimal("NaN"),
        "decimal": decimal.Decimal("0.5"),
        "fraction": fractions.Fraction(1, 3),
        "tiny-fraction": fractions.Fraction(1, 10**400),
        "text": "x",
        "empty-text": "",
        "nul": "a\0b",
        "surrogate": "\ud800",
        "number-text": "1",
        "long-text": "9" * 100_000,
        "bytes": b"1",
        "list": [1],
        "empty-list": [],
        "texts": ["a", "b"],
        "ragged": [[1], [1, 2]],
        "none-list": [None],
        "cyclic": _cyclic(),
        "deep": _deep(),
        "tuple": (),
        "set": {1, 2},
        "dict": {"a": 1},
        "empty-dict": {},
        "odd-dict": {1: 2, ("a",): None},
        "proxy": MappingProxyType({"a": 1}),
        "range": range(3),
        "endless": iter(int, 1),
        "lambda": lambda *a, **k: None,
        "raises": Liar(),
        "object": Odd(),
        "type": int,
        "module": sys,
        "slice": slice(None),
        "ellipsis": ...,
        "np-scalar": np.float32(0.5),
        "np-bool": np.bool_(True),
        "np-0d": np.array(1),
        "np-empty": np.array([]),
        "np-ints": np.array([1, 2, 3]),
        "np-floats": np.array([0.5, np.nan]),
        "np-matrix": np.ones((2, 3)),
        "np-4d": np.ones((1, 1, 1, 2)),
        "np-object": np.array([1, "a", None], dtype=object),
        "np-text": np.array(["a", "b"]),
        "np-struct": np.zeros(2, dtype=[("a", int), ("b", float)]),
        "np-time": np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        "np-complex": np.array([1j]),
        "np-big-endian": np.array([1, 2], dtype=">i8"),
        "np-unsigned": np.array([2**63], dtype=np.uint64),
        "masked": np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]),
        "masked-all": np.ma.masked_array([1.0], mask=[True]),
        "huge-array": huge,
        "huge-float-array": np.broadcast_to(np.float64(0.5), (2**20, 2**20)),
        "series": pd.Series([0.1, None]),
        "series-na": pd.Series([1, pd.NA], dtype="Int64"),
        "series-category": pd.Series(["a", "b"], dtype="category"),
        "frame": pd.DataFrame({"a": [1, 2]}),
        "empty-frame": pd.DataFrame(),
        "twice-frame": pd.DataFrame([[1, 2]], columns=["a", "a"]),
        "index-levels": pd.DataFrame({("a", "b"): [1]}),
        "NA": pd.NA,
        "NaT": pd.NaT,
        "timestamp": pd.Timestamp("2020-01-01"),
        "date": datetime.date(2020, 1, 1),
        "law": bayesrisk.DiscreteGaussian(sigma2=1.0),
        "laws": bayesrisk.DiscreteGaussian(sigma2=np.array([1.0, 2.0])),
        "generator": np.random.default_rng(0),
        "path": __file__,
    }
