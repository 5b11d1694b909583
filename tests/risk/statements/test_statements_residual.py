"""Residual risk against the formula on counts, exact intervals and simulated groups."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest

from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk import Statements, residual_risk


def said(correct, protection="none", posterior=1.0, **more):
    return Statements(
        pd.DataFrame(
            {
                "attack": "guess",
                "adversary": "outsider",
                "protection": protection,
                "target": [str(i) for i in range(len(correct))],
                "statement": "s",
                "people": 1,
                "prior": 0.5,
                "posterior": posterior,
                "status": "believed",
                "correct": pd.array(correct, dtype="boolean"),
                **more,
            }
        )
    )


TRUTHS = st.lists(st.booleans(), min_size=1, max_size=30)


@settings(max_examples=40)
@given(TRUTHS, TRUTHS)
def test_the_formula_and_its_interval(own, others):
    row = residual_risk(said(own), said(others)).iloc[0]
    s, c = np.mean(own), np.mean(others)
    if c < 1:
        assert row["residual"] == pytest.approx((s - c) / (1 - c), abs=1e-12)
        assert row["lower"] <= row["residual"] + 1e-12
        assert row["residual"] <= row["upper"] + 1e-12
    else:
        assert np.isnan(row["residual"]) or row["residual"] == -np.inf
    low, high = (binomtest(sum(x), len(x)).proportion_ci(0.975) for x in (own, others))
    if high.high < 1:
        wanted = (low.low - high.high) / (1 - high.high)
        assert row["lower"] == pytest.approx(wanted, abs=1e-11 / (1 - high.high) ** 2)
    for name, truths in (("success", own), ("control", others)):
        exact = binomtest(sum(truths), len(truths)).proportion_ci(0.95)
        assert row[f"{name}_lower"] == pytest.approx(exact.low, abs=1e-9)
        assert row[f"{name}_upper"] == pytest.approx(exact.high, abs=1e-9)


def test_intervals_hold_the_true_value():
    rng = np.random.default_rng(5)
    s, c, held = 0.6, 0.4, 0
    for _ in range(100):
        row = residual_risk(said(rng.random(80) < s), said(rng.random(120) < c)).iloc[0]
        held += row["lower"] <= (s - c) / (1 - c) <= row["upper"]
    assert held >= 95


def test_the_same_success_is_no_residual_risk_and_full_success_is_all():
    assert residual_risk(said([True, False]), said([True, False]))["residual"].tolist() == [0.0]
    assert residual_risk(said([True, True]), said([True, False]))["residual"].tolist() == [1.0]


def test_unknown_truths_are_left_out_and_units_widen():
    found = residual_risk(said([True, None, False]), said([False, None]))
    assert found[["statements", "controls"]].values.tolist() == [[2, 1]]
    nothing = residual_risk(said([None]), said([True, False])).iloc[0]
    assert np.isnan(nothing["residual"])
    blocks = np.repeat(["a", "b", "c", "d"], 20)
    truths = np.repeat([True, False, True, False], 20)
    pair = said(truths, block=blocks), said(~truths, block=blocks)
    alone, together = (residual_risk(*pair, units=u).iloc[0] for u in (None, "block"))
    assert together["residual"] == alone["residual"]
    assert together["lower"] < alone["lower"] < alone["upper"] <= together["upper"]


def test_posteriors_as_success():
    found = residual_risk(
        said([True] * 4, posterior=[1.0, 0.5, 1.0, 0.5]),
        said([True] * 4, posterior=[0.5, 0.5, 0.5, 0.5]),
        measure="posterior",
    )
    assert found["residual"].tolist() == [0.5]


def test_each_protection_has_its_control():
    own = Statements.concat([said([True, True]), said([True, False], "noise")])
    others = Statements.concat([said([False, False], "noise"), said([True, False])])
    found = residual_risk(own, others)
    assert found["protection"].tolist() == ["none", "noise"]
    assert found["residual"].tolist() == [1.0, 0.5]


def test_refusals():
    own = said([True, False])
    with pytest.raises(ArgumentError, match="measure must be one of"):
        residual_risk(own, own, measure="luck")
    with pytest.raises(DataError, match="statements: must have the columns"):
        residual_risk(own, own, units="x")
    with pytest.raises(DataError, match="control: must have statements of guess, outsider, none"):
        residual_risk(own, said([True], "noise"))
