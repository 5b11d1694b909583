"""Scenarios are texts with names; the numbers do not depend on them."""

from dataclasses import FrozenInstanceError, astuple

import pytest

from bayesrisk import ArgumentError, block_risk
from bayesrisk.risk.count.blocks import SCENARIOS, Scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_says_what_it_is_about(name):
    item = Scenario.named(name)
    assert item is SCENARIOS[name]
    assert item.name == name
    assert all(astuple(item))
    assert item.statement != item.alternative
    with pytest.raises(FrozenInstanceError):
        item.name = "other"


def test_only_the_words_differ():
    frames = [
        block_risk([1, 5], rho=0.1, prior=0.2, scenario_name=name).to_frame() for name in SCENARIOS
    ]
    assert len(frames) == 4
    assert all(frame.equals(frames[0]) for frame in frames)


@pytest.mark.parametrize("bad", ["Membership", "", None, 3, ["membership"]])
def test_unknown_names(bad):
    with pytest.raises(ArgumentError, match=r"scenario must be one of characteristics, .* got"):
        Scenario.named(bad)
