"""Hostile calls of the public API: a result in time, or an error that names the argument.

Every call changes one or two arguments of a call that works to a hostile value.  ``--fuzz-calls``
says how many; a find is told with its number, by which it is the same again.
"""

import datetime
import decimal
import doctest
import faulthandler
import fractions
import importlib
import inspect
import io
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from figures import quick_figures
from fuzz import corpus

import bayesrisk
from bayesrisk import BayesRiskError, census as readers
from bayesrisk.constraints import solvers
from bayesrisk.experiments.runs import executors
from bayesrisk.mechanisms import registry as mechanisms
from bayesrisk.reconstruction import registry as attacks

SHARES = ("--fuzz-calls", 5000, 1)  # each share first runs all examples
SEED = 1
HANG = 10  # seconds of processor time that a call may take: other work on the machine is no hang
MEMORY = 12 * 2**30
REGISTRIES = (attacks.REGISTRY, executors.REGISTRY, mechanisms.REGISTRY, solvers.REGISTRY)
#: Calls and arguments that are the caller's own function or iterator: what it raises goes through,
#: or of which SciPy, too, answers what is no number by what is none.
CALLERS = {
    *((name, "progress") for name in (
        "compare_mechanisms", "mechanism_risk", "run", "simulated_likelihood",
        "write_reidentification")),
    ("simulated_likelihood", "simulate"),
    *((f"DiscreteGaussian.{name}", "x") for name in ("pmf", "logpmf", "cdf", "sf", "logcdf")),
    ("write_ppmf", "records"), ("write_record_form", "records"), ("sample_tree", "leaf_prior"),
    # Another argument, which is named, does not fit the changed one.
    ("Histogram", "geoids"), ("compare_with_truth", "sources"), ("reidentify", "sources"),
    ("compare_mechanisms", "mechanisms"),
}  # fmt: skip


#: Examples that write into a folder of their own, and their place in that of a call.
_OUTPUTS = {"write_nmf": {"folder": "nmf"}, "split_by_place": {"folder": "places"}}


@dataclass(frozen=True)
class Recipe:
    """A call that works: what is called, under which name, with which arguments by name."""

    name: str
    function: Any
    arguments: dict[str, Any]

    def call(self, change: Mapping[str, Any]):
        """Call with some arguments changed."""
        bound = inspect.signature(self.function).bind_partial()
        bound.arguments.update(self.arguments | dict(change))
        return self.function(*bound.args, **bound.kwargs)


class Recorder:
    """Stand in for a callable, and note how it and its class methods are called."""

    def __init__(self, name: str, subject: Any, found: list[Recipe]):
        self._name, self._subject, self._found = name, subject, found

    def __call__(self, *args: Any, **kwargs: Any):
        """Call the subject, and keep the arguments if it worked."""
        made = self._subject(*args, **kwargs)
        bound = inspect.signature(self._subject).bind(*args, **kwargs)
        self._found.append(Recipe(self._name, self._subject, dict(bound.arguments)))
        return made

    def __getattr__(self, attribute: str):
        """Record class methods too."""
        value = getattr(self._subject, attribute)
        name = f"{self._name}.{attribute}"
        return Recorder(name, value, self._found) if callable(value) else value


def recipes():
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
def kept_folders(folder: Path):
    """Let temporary folders be made in a folder, and stay."""

    def keep(made: Any):
        made._finalizer.detach()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        patch.setattr(tempfile.TemporaryDirectory, "cleanup", keep)
        yield


def _of_readers(folder: Path):
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


def public():
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

    def __len__(self):
        return 3

    def __getitem__(self, _: Any):
        raise RuntimeError("no item")


def _cyclic():
    found: list[Any] = []
    found.append(found)
    return found


def _deep():
    found: list[Any] = []
    for _ in range(20_000):
        found = [found]
    return found


def _a_file():
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


class Late(BaseException):
    """The alarm: no code catches it by mistake."""


def _alarm(number, frame):
    raise Late


@pytest.fixture
def bounded(tmp_path, monkeypatch):
    """An empty folder, less memory, and an alarm."""
    monkeypatch.chdir(tmp_path)
    before, limits = signal.signal(signal.SIGPROF, _alarm), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    faulthandler.enable()
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.signal(signal.SIGPROF, before)


def is_nan(value):
    """Return whether a number or an array of them holds what is no number."""
    kinds = isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f"
    return kinds and bool(np.isnan(value).any())


def is_called(value, text):
    """Return whether a message begins with a name that was given: of a file, or of an item."""
    names = [value] if isinstance(value, str) else value if isinstance(value, Mapping) else ()
    return any(text.startswith((f"{name}: ", f"{name} ", f"{name}/", f"{name}.")) for name in names)


def wrong_answer(recipe, given):
    """Return what is wrong with the answer to a call, or None."""
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        with quick_figures(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = recipe.call(given)
            if inspect.isgenerator(result):
                next(result, None)
        return "no number" if is_nan(result) else None
    except BayesRiskError as error:
        text = str(error)
        named = any(p in text or is_called(v, text) for p, v in given.items())
        return None if named else f"unnamed: {text[:200]}"
    except Late:
        return f"> {HANG} s"
    except BaseException as error:
        trace = [
            f for f in traceback.extract_tb(error.__traceback__) if "/bayesrisk/" in f.filename
        ]
        place = f"{trace[-1].filename}:{trace[-1].lineno}" if trace else "?"
        return f"{type(error).__name__} at {place}: {str(error)[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for registry in REGISTRIES:  # what a call registers is not there for the next one
            registry._registered.clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with kept_folders(tmp_path_factory.mktemp("examples")):
        return recipes()


@pytest.mark.slow
def test_hostile_calls(share, made, bounded):
    made = [recipe for recipe in made if inspect.signature(recipe.function).parameters]
    finds = []
    for number in range(share.start, share.stop):
        rng = np.random.default_rng([SEED, number])
        recipe = made[int(rng.integers(len(made)))]
        every = inspect.signature(recipe.function).parameters.values()
        names = [p.name for p in every if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        chosen = rng.choice(names, size=min(len(names), 1 + int(rng.random() < 0.1)), replace=False)
        given = {str(name): VALUES[int(rng.integers(len(VALUES)))]() for name in chosen}
        found = wrong_answer(recipe, given)
        if found and not any((recipe.name, name) in CALLERS for name in given):
            finds.append(f"{number}: {recipe.name}({', '.join(given)}): {found}")
    assert finds == [], "\n".join(finds[:20])


@pytest.mark.slow
def test_most_of_the_callables_have_a_call(made):
    assert all(isinstance(recipe, Recipe) for recipe in made)
    assert len(made) >= 100
    assert {"tabulate", "sample_tree", "read_sf1"} <= {recipe.name for recipe in made}
    assert {recipe.name.partition(".")[0] for recipe in made} <= {name for name, _ in public()}


def test_answers_to_calls_are_judged():
    assert is_called("x", "x.svg: cannot be written")
    assert is_called({"a": 1}, "a must be a DataFrame")
    assert not is_called("x", "rho must be 1")
    assert is_nan(np.array([1.0, np.nan]))
    assert not is_nan("nan")
