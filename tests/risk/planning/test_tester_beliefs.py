"""Beliefs under a plan: of people who were sampled a limit sees the largest number that is left."""

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.inference.microdata.system import TooLargeError
from bayesrisk.risk.planning import tester
from bayesrisk.tables import Schema, Workload

FRAME = pd.DataFrame({"sex": ["F", "M"] * 20, "ill": ["no"] * 34 + ["yes"] * 6})
SCHEMA = Schema.from_frame(FRAME)
WORK = Workload.of(SCHEMA)
RULES = {"all": {name: "identity" for _, name in WORK.tables}}


def learned(monkeypatch, most):
    monkeypatch.setattr(tester, "MOST", most)
    people = br.Records.from_frame(FRAME, schema=SCHEMA)
    every, stated = tester.usual_adversaries(WORK)
    found = tester.Beliefs(br.tables.Microdata(people), WORK, every, stated, seed=1)
    return [found.learned(RULES, one.name) for one in every]


def test_a_sample_bounds_what_all_come_to(monkeypatch):
    every = learned(monkeypatch, len(FRAME))
    assert all(one.reach == 0.0 for one in every)
    for whole, part in zip(every, learned(monkeypatch, 10), strict=True):
        assert part.reach > 0.0
        assert abs(whole.gain - part.gain) <= part.reach
        # Ten of forty: even where nobody seen is doubled, some of the others may be.
        assert whole.doubled <= part.doubled
        assert part.doubled > 0


@pytest.mark.parametrize("most", [len(FRAME), 10])
def test_a_limit_of_nobody_is_kept_where_nothing_is_published(monkeypatch, most):
    monkeypatch.setitem(RULES, "all", dict.fromkeys(RULES["all"], "unpublished"))
    assert all(one[1:] == (0.0, 0.0, 0.0) for one in learned(monkeypatch, most))


def test_tables_too_large_for_any_engine_keep_no_limit_of_belief(monkeypatch):
    """Nobody's belief is decided, and all count as if their truth were certain."""

    def refuse(*args):
        raise TooLargeError("place must have fewer kinds of records")

    monkeypatch.setattr(tester.AuditedPopulation, "statements", refuse)
    found = learned(monkeypatch, len(FRAME))
    assert [tuple(one[1:]) for one in found] == [(100.0, 0.0, 40.0)] * len(found)
    people = br.Records.from_frame(FRAME, schema=SCHEMA)
    rules = ["identity", "unpublished"]
    ladders = [{"levels": ["all"], "tables": [n], "rules": rules} for _, n in WORK.tables]
    plan = br.plan(people, WORK, limits=["gain=5"], ladders=ladders)
    assert {text for one in plan.rules.values() for text in one.values()} == {"unpublished"}
