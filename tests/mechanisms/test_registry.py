"""Mechanisms by name: the package's own, registered ones, and plug-ins that are broken."""

import pytest

from bayesrisk.exceptions import ArgumentError
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
