"""Valid calls of the public callables: those in their docstrings, and those of the constructors.

A call is recorded while the example of a docstring runs, so that a new function is tried as soon as
it has an example.
"""

import atexit
import doctest
import importlib
import inspect
import io
import shutil
import tempfile
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from fuzz import recipe_files, recipe_plots

import bayesrisk

#: Examples that write into a folder of their own, and their place in that of a call.
_OUTPUTS = {"write_nmf": {"folder": "nmf"}}


@dataclass(frozen=True)
class Recipe:
    """A call that works: what is called, under which name, with which arguments by name."""

    name: str
    function: Any
    arguments: dict[str, Any]

    def call(self, change: dict[str, Any]) -> Any:
        """Call with some arguments changed."""
        bound = inspect.signature(self.function).bind_partial()
        bound.arguments.update(self.arguments | change)
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
        return (
            Recorder(f"{self._name}.{attribute}", value, self._found) if callable(value) else value
        )


def recipes() -> list[Recipe]:
    """Return one call of every public callable with an example, and of every constructor."""
    found: list[Recipe] = []
    _keep_files()
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
    files = recipe_files.calls(Path(tempfile.mkdtemp()))
    found += [Recipe(*call) for call in [*files, *recipe_plots.calls()]]
    named = {recipe.name: recipe for recipe in [*found, *_constructors()]}
    for name, change in _OUTPUTS.items():  # calls are made in a new folder, where nothing is yet
        named[name].arguments.update(change)
    return [named[name] for name in sorted(named)]


def public() -> list[tuple[str, Any]]:
    """Return every public callable once, by its name: those at the top and one dot deeper."""
    found: dict[int, tuple[str, Any]] = {}
    zones = [v for v in map(_top, bayesrisk.__all__) if inspect.ismodule(v)]
    for zone in [bayesrisk, bayesrisk.release, *zones]:
        for name in zone.__all__:
            subject = getattr(zone, name)
            enum = inspect.isclass(subject) and issubclass(subject, Enum)  # Python's own errors
            if callable(subject) and not enum:
                found.setdefault(id(subject), (name, subject))
    return sorted(found.values(), key=lambda pair: pair[0])


def _top(name: str) -> Any:
    return getattr(bayesrisk, name)


def _keep_files() -> None:
    """Let the files of the examples stay until the process ends: they are read again."""
    folder = tempfile.mkdtemp(prefix="fuzz-recipes-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = folder
    tempfile.TemporaryDirectory.cleanup = lambda self: self._finalizer.detach()  # type: ignore[method-assign]


def _constructors() -> list[Recipe]:
    """Return calls of what other examples only use."""
    places = bayesrisk.tables.Geography("towns", ("county", "block"), (1, 3))
    attributes = (bayesrisk.tables.Attribute("sex", 2), bayesrisk.tables.Attribute("age", 3))
    schema = bayesrisk.Schema("people", attributes, places)
    table = bayesrisk.tables.Table("sex", ("men", "women"), {"sex": np.eye(2, dtype=np.int64)})
    workload = bayesrisk.Workload(schema, {("block", "sex"): table})
    frame = pd.DataFrame({"block": ["100", "101", "101"], "sex": [0, 1, 1], "age": [0, 1, 2]})
    records = bayesrisk.Records.from_frame(frame, schema=schema)
    tables = bayesrisk.tabulate(records, workload)
    histogram = bayesrisk.tables.Histogram(
        schema, "block", tables.geoids["block"], np.zeros((2, 6), dtype=np.int64)
    )
    nodes = {"node": ["g", "a", "b"], "parent": ["", "g", "g"], "noisy_count": [3, 2, 1]}
    tree = pd.DataFrame(nodes | {"rho": [0.1, 0.2, 0.2]})
    law = bayesrisk.DiscreteGaussian(sigma2=2.0)
    true = bayesrisk.release.TrueCounts()
    spec = bayesrisk.MechanismSpec("identity", {}, {("block", "sex"): true})
    calls: list[tuple[str, Any, dict[str, Any]]] = [
        ("Attribute", bayesrisk.tables.Attribute, {"name": "sex", "size": 2, "first": 0}),
        (
            "Geography",
            bayesrisk.tables.Geography,
            {"name": "towns", "levels": ("county", "block"), "widths": (1, 3)},
        ),
        (
            "Schema",
            bayesrisk.Schema,
            {"name": "people", "attributes": attributes, "geography": places},
        ),
        (
            "Table",
            bayesrisk.tables.Table,
            {"name": "sex", "cells": ("men", "women"), "factors": dict(table.factors)},
        ),
        ("Workload", bayesrisk.Workload, {"schema": schema, "tables": dict(workload.tables)}),
        ("Records.from_frame", bayesrisk.Records.from_frame, {"frame": frame, "schema": schema}),
        ("Records.take", records.take, {"index": np.array([0, 1])}),
        ("Records.replace", lambda age: records.replace(age=age), {"age": np.array([0, 0, 1])}),
        ("Microdata", bayesrisk.Microdata, {"persons": records}),
        (
            "PublishedTables",
            bayesrisk.PublishedTables,
            {"workload": workload, "geoids": dict(tables.geoids), "counts": dict(tables.counts)},
        ),
        (
            "Histogram",
            bayesrisk.tables.Histogram,
            {
                "schema": schema,
                "level": "block",
                "geoids": tables.geoids["block"],
                "counts": histogram.counts,
            },
        ),
        ("RoundingSpec", bayesrisk.release.RoundingSpec, {"base": 5, "method": "random"}),
        ("NoiseSpec", bayesrisk.NoiseSpec, {"law": "discrete-gaussian", "scale": Fraction(1)}),
        (
            "MechanismSpec",
            bayesrisk.MechanismSpec,
            {"mechanism": "identity", "parameters": {}, "tables": {}, "others": true},
        ),
        ("Release", bayesrisk.Release, {"spec": spec, "tables": tables, "diagnostics": {}}),
        ("Tree.from_frame", bayesrisk.Tree.from_frame, {"frame": tree}),
        (
            "parse_config",
            bayesrisk.experiments.parse_config,
            {"document": {"grid": {"rho": [0.1], "prior": [0.5]}}, "folder": "."},
        ),
        ("DiscreteGaussian", bayesrisk.DiscreteGaussian, {"sigma2": 2.0, "loc": 0}),
        ("DiscreteLaplace", bayesrisk.DiscreteLaplace, {"scale": 2.0, "loc": 0}),
    ]
    for method in ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
        calls.append((f"DiscreteGaussian.{method}", getattr(law, method), {"x": np.array([0, 1])}))
    for method in ("ppf", "isf"):
        calls.append((f"DiscreteGaussian.{method}", getattr(law, method), {"q": np.array([0.5])}))
    calls.append(("DiscreteGaussian.rvs", law.rvs, {"size": 3, "random_state": 1}))
    return [Recipe(*call) for call in calls]
