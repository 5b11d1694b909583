"""Figures of two levels draw the frames that they are given."""

import numpy as np
import pandas as pd
import pytest
import two_level_questions as questions

import bayesrisk as br
from bayesrisk import plotting

GRANVILLE = {"n_siblings": 27, "rho_block": 0.0992264, "rho_group": 0.2464845, "prior": 0.5}


@pytest.fixture(scope="module")
def decisions():
    gain = questions.gain(**GRANVILLE, group_count=1)
    return gain.decision_map(range(0, 3), range(-4, 7), range(-20, 21))


@pytest.fixture(scope="module")
def risks():
    risk = questions.correct_decision(
        **(GRANVILLE | {"rho_group": [[0.1], [1.0], [0.3]]}), group_count=[1, 10]
    )
    return risk.to_frame()


def colour_at(axes, siblings, group):
    """Return the colour of the bar that covers a release."""
    (found,) = [
        bar
        for bar in (bar for container in axes.containers for bar in container)
        if bar.get_x() < siblings < bar.get_x() + bar.get_width()
        and bar.get_y() < group < bar.get_y() + bar.get_height()
    ]
    return found.get_facecolor()


def test_the_decision_map_paints_every_release(decisions):
    panels = plotting.plot_decision_map(decisions)
    assert [axes.get_title() for axes in panels] == ["$y$ = 0", "$y$ = 1", "$y$ = 2"]
    kinds = decisions.assign(
        kind=np.where(decisions["change"] == "none", decisions["decision"], decisions["change"])
    )
    seen = {}
    for axes, (_, rows) in zip(panels, kinds.groupby("block"), strict=True):
        for row in rows.itertuples():
            seen.setdefault(row.kind, set()).add(colour_at(axes, row.siblings, row.group))
        assert axes.get_xlim() == (-20.5, 20.5)
        assert axes.get_ylim() == (-4.5, 6.5)
    # One colour for each kind, and another for every other kind.
    assert all(len(colours) == 1 for colours in seen.values())
    assert len(set.union(*seen.values())) == len(seen) == 4


def test_group_count_draws_bars_for_draws(risks):
    frame = risks[risks["rho_group"] == 0.1].assign(conditionals="coherent")
    (axes,) = plotting.plot_group(frame)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), frame["value"])
    drawn = pd.concat([frame.assign(standard_error=0.01), frame.assign(conditionals="other")])
    left, right = plotting.plot_group(drawn)
    assert len(left.collections) == 1
    assert not right.collections
    assert (left.get_title(), right.get_title()) == ("coherent", "other")


def test_group_budget_has_a_line_for_each_count(risks):
    panels = plotting.plot_group(risks, against="rho_group", budgets={"here": 0.2464845})
    (axes,) = panels
    ten = risks[risks["group_count"] == 10].sort_values("rho_group")
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), ten["value"])
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == [
        "1",
        "10",
        "block alone",
    ]
    assert [text.get_text() for text in axes.texts] == ["here"]
    both = pd.concat([risks.assign(conditionals=name) for name in "ab"])
    assert len(plotting.plot_group(both, against="rho_group")) == 2


def test_a_tie_is_painted_as_one():
    law = br.distributions.FiniteLaw(1, [1.0])
    gain = questions.gain(**GRANVILLE, group_count=1, group_prior=law)
    frame = gain.decision_map(range(0, 3), range(0, 2), range(-30, 31))
    assert (frame["change"] == "tie").any()
    (legend,) = plotting.plot_decision_map(frame)[0].figure.legends
    assert "a tie: a coin decides" in [text.get_text() for text in legend.get_texts()]
