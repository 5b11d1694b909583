"""The one registry of mechanisms, attacks, executors and solvers, and plug-ins that are broken."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Protocol, runtime_checkable

import pytest

from bayesrisk import _plugins
from bayesrisk._plugins import Registry
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskWarning
from bayesrisk.experiments.runs.engine import REGISTRY as EXECUTORS
from bayesrisk.mechanisms.registry import REGISTRY as MECHANISMS
from bayesrisk.mechanisms.samplers import REGISTRY as SAMPLERS
from bayesrisk.reconstruction.registry import REGISTRY as ATTACKS
from bayesrisk.reconstruction.solvers import make_solver
from bayesrisk.reconstruction.solvers.model import REGISTRY as SOLVERS

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
ALL = [MECHANISMS, SAMPLERS, ATTACKS, EXECUTORS, SOLVERS]
METHODS = {
    "mechanism": "release",
    "sampler": "draw",
    "attack": "run",
    "executor": "submit",
    "solver": "solve",
}


@runtime_checkable
class Runner(Protocol):
    def run(self, task, items): ...


class Runs:
    def run(self, task, items):
        return map(task, items)


class Point:
    def __init__(self, name, found):
        self.name, self.found = name, found

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def points(monkeypatch):
    """Return a list that stands for the plug-ins of other packages, of every kind."""
    listed = []
    monkeypatch.setattr(_plugins, "entry_points", lambda **_: listed)
    return listed


@pytest.fixture
def runners():
    own = {"slow": f"{__name__}:Runs"}
    return Registry("runner", builtin=own, protocol=Runner, needs="run()")


def test_the_packages_own_are_listed_once():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    assert not {each.group for each in ALL} & set(project.get("entry-points", {}))


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_the_packages_own_load_without_an_installation(each, points):
    assert each.available() == sorted(each.builtin)
    for name in each.builtin:
        factory = EntryPoint(name, each.builtin[name], each.group).load()
        # A rule of an agency is made by a function without parameters.
        made = factory if isinstance(factory, type) else factory()
        assert hasattr(made, METHODS[each.kind])


def test_the_packages_own_are_made_without_a_look_at_other_packages(runners, monkeypatch):
    """Every call that solves something makes a solver, and a look takes longer than many calls."""

    def looked(**_):
        raise AssertionError("read the metadata of every installed package")

    monkeypatch.setattr(_plugins, "entry_points", looked)
    runners.register("mine", Runs)
    assert isinstance(runners.make("slow"), Runs)
    assert isinstance(runners.make("mine"), Runs)
    with pytest.raises(AssertionError, match="metadata"):
        runners.make("other")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_a_slip_is_answered_with_what_may_be_meant(each):
    name = max(each.builtin, key=len)
    with pytest.raises(ArgumentError, match=rf"{each.kind} must be one of .*Did you mean '{name}'"):
        each.make(name[:-2] + name[-1])
    with pytest.raises(ArgumentError, match=rf"{each.kind} must be one of .*got 'nobody'$"):
        each.make("nobody")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_a_broken_plug_in_is_skipped_with_a_warning(each, points):
    points.append(Point("broken", RuntimeError("boom")))
    assert "broken" in each.available()
    with (
        pytest.warns(BayesRiskWarning, match=f"{each.kind} 'broken' is skipped: boom"),
        pytest.raises(ArgumentError, match="cannot be loaded"),
    ):
        each.make("broken")


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.kind)
def test_what_does_not_follow_the_protocol_is_refused(each, points):
    points.append(Point("dictionary", dict))
    with pytest.raises(ArgumentTypeError, match=f"{each.kind} 'dictionary' must have"):
        each.make("dictionary")


def test_a_plug_in_behind_a_broken_one_is_found(runners, points):
    points += [Point("two", RuntimeError("boom")), Point("two", Runs)]
    with pytest.warns(BayesRiskWarning, match="boom"):
        assert isinstance(runners.make("two"), Runs)


def test_a_plug_in_does_not_replace_the_packages_own(points):
    points.append(Point("serial", dict))
    assert EXECUTORS.make("serial", 1).submit(abs, -1).result() == 1


def test_what_is_registered_comes_before_plug_ins(runners, points):
    points.append(Point("mine", dict))
    runners.register("mine", Runs)
    assert isinstance(runners.make("mine"), Runs)


@pytest.mark.parametrize(
    ("name", "factory", "error", "match"),
    [
        ("mine", None, ArgumentTypeError, "factory must be callable"),
        ("", Runs, ArgumentTypeError, "name must be a text"),
        ("slow", Runs, ArgumentError, "package's own runners"),
    ],
)
def test_registering_is_checked(runners, name, factory, error, match):
    with pytest.raises(error, match=match):
        runners.register(name, factory)


def test_arguments_are_checked_before_anything_is_made(runners):
    runners.register("mine", Runs)
    with pytest.raises(ArgumentError, match=r"runner 'mine': too many positional arguments"):
        runners.make("mine", 2)
    with pytest.raises(
        ArgumentError, match=r"unexpected keyword argument 'speed'; needed: nothing"
    ):
        runners.make("mine", speed=1)


def test_a_solver_of_another_package_is_chosen_by_name(points):
    class Guess:
        name = "guess"

        def __init__(self, inner="", *, depth=1):
            self.inner, self.depth = inner, depth

        def solve(self, model, objective, *, limits=None):
            raise NotImplementedError

    points.append(Point("guess", Guess))
    assert make_solver("guess", depth=3).depth == 3
    assert make_solver("guess:well").inner == "well"
