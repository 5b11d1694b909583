"""Hostile calls of the public API: a result in time, or an error that names the argument.

Every call changes one or two arguments of a call that works to a hostile value.  ``--fuzz-calls``
says how many; a find is told with its number, by which it is the same again.
"""

import faulthandler
import inspect
import resource
import signal
import traceback
import warnings
from collections.abc import Mapping

import numpy as np
import pytest
from fuzz.calls import VALUES, Recipe, kept_folders, public, recipes
from writing_cases import quick_figures

from bayesrisk import BayesRiskError
from bayesrisk.experiments.runs import engine
from bayesrisk.mechanisms import registry as mechanisms
from bayesrisk.reconstruction import registry as attacks
from bayesrisk.reconstruction.solvers import registry as solvers

SHARES = ("--fuzz-calls", 5000, 1)  # each share first runs all examples
SEED = 1
HANG = 10  # seconds of processor time that a call may take: other work on the machine is no hang
MEMORY = 12 * 2**30
REGISTRIES = (attacks.REGISTRY, engine.REGISTRY, mechanisms.REGISTRY, solvers.REGISTRY)
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
