"""Mechanisms by name: the package's own, registered ones, and plug-ins that are broken."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskWarning
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import (
    Identity,
    available_mechanisms,
    make_mechanism,
    register_mechanism,
    registry,
)

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def test_the_names_are_those_of_the_entry_points():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["bayesrisk.mechanisms"] == registry._OWN


@pytest.mark.parametrize("name", sorted(registry._OWN))
def test_the_packages_own_load(name):
    factory = EntryPoint(name, registry._OWN[name], "bayesrisk.mechanisms").load()
    assert isinstance(factory, type)
    assert hasattr(factory, "release")
    assert hasattr(factory, "spec")


def test_mechanisms_follow_the_protocol():
    assert isinstance(make_mechanism("identity"), Mechanism)
    assert make_mechanism("rounding", base=3, method="random").spec.mechanism == "rounding"


def test_registered_mechanism():
    register_mechanism("mine", Identity)
    assert "mine" in available_mechanisms()
    assert isinstance(make_mechanism("mine"), Identity)


@pytest.mark.parametrize(
    ("name", "factory", "error", "match"),
    [
        ("mine", None, ArgumentTypeError, "factory must be callable"),
        ("", Identity, ArgumentTypeError, "name must be text"),
        ("identity", Identity, ArgumentError, "package's own"),
    ],
)
def test_registering_is_checked(name, factory, error, match):
    with pytest.raises(error, match=match):
        register_mechanism(name, factory)


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        ("nothing", {}, "mechanism must be one of"),
        ("identity", {"rate": 1}, "unexpected keyword argument 'rate'"),
        ("rounding", {"base": 5}, "missing a required"),
        ("rounding", {"base": 1, "method": "random"}, "base must be >= 2"),
    ],
)
def test_making_is_checked(name, parameters, match):
    with pytest.raises(ArgumentError, match=match):
        make_mechanism(name, **parameters)


def test_what_is_no_mechanism_is_refused():
    register_mechanism("mine", dict)
    with pytest.raises(ArgumentTypeError, match="must have spec and release"):
        make_mechanism("mine")


class _Point:
    def __init__(self, name, found):
        self.name, self.found = name, found

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_broken_plug_in_is_skipped_with_a_warning(monkeypatch):
    points = [_Point("broken", RuntimeError("boom"))]
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    assert "broken" in available_mechanisms()
    with (
        pytest.warns(BayesRiskWarning, match="mechanism 'broken' is skipped: boom"),
        pytest.raises(ArgumentError, match="cannot be loaded"),
    ):
        make_mechanism("broken")


def test_a_plug_in_behind_a_broken_one_is_found(monkeypatch):
    points = [_Point("two", RuntimeError("boom")), _Point("two", Identity)]
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    with pytest.warns(BayesRiskWarning, match="boom"):
        assert isinstance(make_mechanism("two"), Identity)


def test_a_plug_in_does_not_replace_the_packages_own(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda **_: [_Point("identity", dict)])
    assert isinstance(make_mechanism("identity"), Identity)
