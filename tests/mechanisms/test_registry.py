"""Mechanisms by name: the package's own, registered ones, and plug-ins that are broken."""

import pytest

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms import (
    Identity,
    available_mechanisms,
    make_mechanism,
    register_mechanism,
    registry,
)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry.REGISTRY, "_registered", {})


def test_registered_mechanism():
    register_mechanism("mine", Identity)
    assert "mine" in available_mechanisms()
    assert isinstance(make_mechanism("mine"), Identity)


@pytest.mark.parametrize(
    ("name", "factory", "error", "match"),
    [
        ("mine", None, ArgumentTypeError, "factory must be callable"),
        ("", Identity, ArgumentTypeError, "name must be a text"),
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
        ("topdwn", {}, r"got 'topdwn'\. Did you mean 'topdown'\?"),
        ("identity", {"rate": 1}, "unexpected keyword argument 'rate'"),
        ("ranges", {}, "missing a required"),
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
