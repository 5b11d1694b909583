"""Values that nobody means to pass: wrong types, limits, nesting, sizes."""

import datetime
import decimal
import fractions
import sys
from collections.abc import Callable
from pathlib import Path
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


def _a_file() -> str:
    """Return the path of a file that nobody misses: a writer may write over it."""
    path = Path("file.txt").absolute()
    path.write_text("a,b\n1,2\n", encoding="ascii")
    return str(path)


#: Each value by its name, made when it is called: most are made quickly, all together are not.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "2**31": lambda: 2**31,
    "2**63-1": lambda: 2**63 - 1,
    "2**64": lambda: 2**64,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "0.5": lambda: 0.5,
    "-0.0": lambda: -0.0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "1e-320": lambda: 1e-320,
    "1e308": lambda: 1e308,
    "complex": lambda: 1j,
    "decimal-nan": lambda: decimal.Decimal("NaN"),
    "decimal": lambda: decimal.Decimal("0.5"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "tiny-fraction": lambda: fractions.Fraction(1, 10**400),
    "text": lambda: "x",
    "empty-text": lambda: "",
    "nul": lambda: "a\0b",
    "surrogate": lambda: "\ud800",
    "number-text": lambda: "1",
    "long-text": lambda: "9" * 100_000,
    "bytes": lambda: b"1",
    "list": lambda: [1],
    "empty-list": lambda: [],
    "texts": lambda: ["a", "b"],
    "ragged": lambda: [[1], [1, 2]],
    "none-list": lambda: [None],
    "cyclic": _cyclic,
    "deep": _deep,
    "tuple": lambda: (),
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1},
    "empty-dict": lambda: {},
    "odd-dict": lambda: {1: 2, ("a",): None},
    "proxy": lambda: MappingProxyType({"a": 1}),
    "range": lambda: range(3),
    "endless": lambda: iter(int, 1),
    "lambda": lambda: lambda *a, **k: None,
    "raises": Liar,
    "object": Odd,
    "type": lambda: int,
    "module": lambda: sys,
    "slice": lambda: slice(None),
    "ellipsis": lambda: ...,
    "np-scalar": lambda: np.float32(0.5),
    "np-bool": lambda: np.bool_(True),
    "np-0d": lambda: np.array(1),
    "np-empty": lambda: np.array([]),
    "np-ints": lambda: np.array([1, 2, 3]),
    "np-floats": lambda: np.array([0.5, np.nan]),
    "np-matrix": lambda: np.ones((2, 3)),
    "np-4d": lambda: np.ones((1, 1, 1, 2)),
    "np-object": lambda: np.array([1, "a", None], dtype=object),
    "np-text": lambda: np.array(["a", "b"]),
    "np-struct": lambda: np.zeros(2, dtype=[("a", int), ("b", float)]),
    "np-time": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "np-complex": lambda: np.array([1j]),
    "np-big-endian": lambda: np.array([1, 2], dtype=">i8"),
    "np-unsigned": lambda: np.array([2**63], dtype=np.uint64),
    "masked": lambda: np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]),
    "masked-all": lambda: np.ma.masked_array([1.0], mask=[True]),
    "huge-array": lambda: np.broadcast_to(np.int64(1), (2**40,)),
    "huge-float-array": lambda: np.broadcast_to(np.float64(0.5), (2**20, 2**20)),
    "series": lambda: pd.Series([0.1, None]),
    "series-na": lambda: pd.Series([1, pd.NA], dtype="Int64"),
    "series-category": lambda: pd.Series(["a", "b"], dtype="category"),
    "frame": lambda: pd.DataFrame({"a": [1, 2]}),
    "empty-frame": lambda: pd.DataFrame(),
    "twice-frame": lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "index-levels": lambda: pd.DataFrame({("a", "b"): [1]}),
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "timestamp": lambda: pd.Timestamp("2020-01-01"),
    "date": lambda: datetime.date(2020, 1, 1),
    "law": lambda: bayesrisk.DiscreteGaussian(sigma2=1.0),
    "laws": lambda: bayesrisk.DiscreteGaussian(sigma2=np.array([1.0, 2.0])),
    "generator": lambda: np.random.default_rng(0),
    "path": lambda: _a_file(),
}
