"""Valid calls of the public callables, recorded from their examples, and values to break them."""

import datetime
import decimal
import doctest
import fractions
import importlib
import inspect
import io
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz import corpus

import bayesrisk
from bayesrisk import readers

#: Examples that write into a folder of their own, and their place in that of a call.
_OUTPUTS = {"write_nmf": {"folder": "nmf"}, "split_by_place": {"folder": "places"}}


@dataclass(frozen=True)
class Recipe:
    """A call that works: what is called, under which name, with which arguments by name."""

    name: str
    function: Any
    arguments: dict[str, Any]

    def call(self, change: Mapping[str, Any]) -> Any:
        """Call with some arguments changed."""
        bound = inspect.signature(self.function).bind_partial()
        bound.arguments.update(self.arguments | dict(change))
        return self.function(*bound.args, **bound.kwargs)


class Recorder:
    """Stand in for a callable, and note how it and its class methods are called."""

    def __init__(self, name: str, subject: Any, found: list[Recipe]) -> None:
        self._name, self._subject, self._found = name, subject, found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the subject, and keep the arguments if it worked."""
        made = self._subject(*args, **kwargs)
        bound = inspect.signature(self._subject).bind(*args, **kwargs)
        self._found.append(Recipe(self._name, self._subject, dict(bound.arguments)))
        return made

    def __getattr__(self, attribute: str) -> Any:
        """Record class methods too."""
        value = getattr(self._subject, attribute)
        name = f"{self._name}.{attribute}"
        return Recorder(name, value, self._found) if callable(value) else value


def recipes() -> list[Recipe]:
    """Return one call of every public callable with an example, and of every reader.

    Folders of examples must stay (:func:`kept_folders`): they are read again.
    """
    found: list[Recipe] = []
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    for name, subject in public():
        if ">>>" not in (subject.__doc__ or ""):
            continue
        module = importlib.import_module(subject.__module__)
        globs = dict(vars(module)) | {subject.__name__: Recorder(name, subject, found)}
        for example in finder.find(subject, name, globs=globs):
            with redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # The functions of an example are called again: they keep their names.
                runner.run(example, out=lambda _: None, clear_globs=False)
    named = {recipe.name: recipe for recipe in [*found, *_of_readers(Path(tempfile.mkdtemp()))]}
    for name, change in _OUTPUTS.items():  # calls are made in a new folder, where nothing is yet
        if name in named:
            named[name].arguments.update(change)
    return [named[name] for name in sorted(named)]


@contextmanager
def kept_folders(folder: Path) -> Iterator[None]:
    """Let temporary folders be made in a folder, and stay."""

    def keep(made: Any) -> None:
        made._finalizer.detach()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setattr(tempfile.TemporaryDirectory, "cleanup", keep)
        yield


def _of_readers(folder: Path) -> list[Recipe]:
    given: dict[str, tuple[str, dict[str, Any]]] = {
        "ppmf": ("ppmf-csv", {"state": None}),
        "ppmf_units": ("ppmf-units", {"state": None}),
        "record_form": ("form-csv", {"state": None, "dialect": "schema"}),
        "ipums_1940": ("ipums-csv", {"ddi": None}),
        "sf1": ("sf1-zip", {"workload": corpus.P1}),
        "nhgis": ("nhgis-zip", {"workload": corpus.P1, "codebook": None, "state": None}),
        "hud": ("hud-csv", {"level": "tract"}),
    }
    found = []
    for name, (kind, arguments) in given.items():
        (folder / kind).mkdir()
        path = {"path": corpus.KINDS[kind](folder / kind).files[0]}
        for verb, more in (("iter", {"chunk": 5}), ("read", {})):
            function = getattr(readers, f"{verb}_{name}")
            found.append(Recipe(f"{verb}_{name}", function, path | arguments | more))
    return found


def public() -> list[tuple[str, Any]]:
    """Return every public callable once, by its name: those at the top and one dot deeper."""
    found: dict[int, tuple[str, Any]] = {}
    at_top = (getattr(bayesrisk, name) for name in bayesrisk.__all__)
    zones = [value for value in at_top if inspect.ismodule(value)]
    for zone in [bayesrisk, bayesrisk.release, *zones]:
        for name in zone.__all__:
            subject = getattr(zone, name)
            enum = inspect.isclass(subject) and issubclass(subject, Enum)  # Python's own errors
            if callable(subject) and not enum:
                found.setdefault(id(subject), (name, subject))
    return sorted(found.values(), key=lambda pair: pair[0])


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


PLAIN = [
    None, True, 0, -1, 2**31, 2**63 - 1, 2**64, 10**400, 0.5, -0.0, float("nan"), float("inf"),
    1e-320, 1e308, 1j, decimal.Decimal("NaN"), fractions.Fraction(1, 10**400), "x", "", "a\0b",
    "\ud800", "1", "9" * 100_000, b"1", [1], [], ["a", "b"], [[1], [1, 2]], [None], (), {1, 2},
    {"a": 1}, {}, {1: 2, ("a",): None}, MappingProxyType({"a": 1}), range(3), int, sys, ...,
    slice(None), pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), datetime.date(2020, 1, 1),
]  # fmt: skip
#: Functions that make a hostile value: most are made quickly, all together are not.
VALUES = [
    *((lambda value=value: value) for value in PLAIN),
    _cyclic, _deep, _a_file, Liar, Odd,
    lambda: iter(int, 1),
    lambda: lambda *a, **k: None,
    lambda: np.float32(0.5),
    lambda: np.array(1),
    lambda: np.array([]),
    lambda: np.array([1, 2, 3]),
    lambda: np.array([0.5, np.nan]),
    lambda: np.ones((2, 3)),
    lambda: np.ones((1, 1, 1, 2)),
    lambda: np.array([1, "a", None], dtype=object),
    lambda: np.zeros(2, dtype=[("a", int), ("b", float)]),
    lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    lambda: np.array([2**63], dtype=np.uint64),
    lambda: np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]),
    lambda: np.broadcast_to(np.int64(1), (2**40,)),
    lambda: np.broadcast_to(np.float64(0.5), (2**20, 2**20)),
    lambda: pd.Series([1, pd.NA], dtype="Int64"),
    lambda: pd.Series(["a", "b"], dtype="category"),
    lambda: pd.DataFrame({"a": [1, 2]}),
    lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
    lambda: pd.DataFrame({("a", "b"): [1]}),
    lambda: bayesrisk.DiscreteGaussian(sigma2=np.array([1.0, 2.0])),
    lambda: np.random.default_rng(0),
]  # fmt: skip
