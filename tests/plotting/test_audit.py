"""Figures of audits: intervals, bands of single releases, and lines only where order was told."""

import itertools
import math

import numpy as np
import pytest
from first_screen import (
    comparisons_of,
    costs_of,
    errors_of,
    half_width,
    measures_of,
    releases_of,
    statements_of,
)
from matplotlib.collections import LineCollection

from bayesrisk import plotting
from bayesrisk.plotting.audit import bent, one_release

GAINS = {"none": 0.16, "noise a": 0.12, "noise b": 0.08, "noise c": 0.04}
WHO = ("outsider", "linker")


@pytest.fixture(scope="module")
def audit():
    statements = statements_of(GAINS, spread=0.004, adversaries=WHO)
    costs = costs_of(errors_of(dict(zip(GAINS, range(4), strict=True))))
    return statements, measures_of(statements), costs, comparisons_of(statements)


def joined(axes):
    """Return the pairs of costs that lines join."""
    lines = [line for line in axes.lines if line.get_color() == "0.7"]
    ends = (np.round(line.get_xdata()[[0, -1]], 9).tolist() for line in lines)
    return sorted(tuple(sorted(pair)) for pair in ends)


def test_a_line_joins_neighbours_whose_order_was_told(audit):
    _, measures, costs, told = audit
    assert set(told["verdict"]) == {"more"}  # of every pair, the first let more be learned
    made = told.assign(verdict="no less")  # by construction
    for axes in plotting.plot_audit(measures, costs, told):
        # Not the pairs that have a third one between them.
        assert joined(axes) == [(0, 1), (1, 2), (2, 3)]
    for axes in plotting.plot_audit(measures, costs, made):
        assert joined(axes) == [(0, 1), (1, 2), (2, 3)]
    for axes in plotting.plot_audit(measures, costs):
        assert joined(axes) == []


@pytest.mark.parametrize("untold", list(itertools.combinations(range(4), 2)))
def test_no_line_joins_what_was_not_told(audit, untold):
    _, measures, costs, told = audit
    names = [list(GAINS)[i] for i in untold]
    pair = told["protection"].isin(names) & told["against"].isin(names)
    some = told.assign(verdict=told["verdict"].mask(pair, "cannot tell"))
    for axes in plotting.plot_audit(measures, costs, some):
        assert tuple(untold) not in joined(axes)


def test_no_line_crosses_the_interval_of_a_protection_that_it_passes(audit):
    """All pairs but those with the second protection are told, whose interval is made tall."""
    _, measures, costs, told = audit
    made, wide = list(GAINS)[1], measures.copy()
    mine = wide["protection"] == made
    middle = float(wide.loc[mine, "answers_posterior"].iloc[0])
    ends = {"answers_posterior_lower": middle / 2.0, "answers_posterior_upper": middle * 2.0}
    wide.loc[mine, [*ends]] = [*ends.values()]
    apart = told["protection"].eq(made) | told["against"].eq(made)
    some = told.assign(verdict=told["verdict"].mask(apart, "cannot tell"))
    crossed = []
    for axes in plotting.plot_audit(wide, costs, some):
        passed = [line.get_xydata() for line in axes.lines if line.get_color() == "0.7"]
        assert len(passed) == 2
        for x, y in np.concatenate(passed):
            assert not (abs(x - 1.0) < 0.02 and middle / 2.0 <= y <= middle * 2.0)
        crossed.append(sum(np.isnan(line).any() for line in passed))
    assert crossed == [1, 1]  # from the first to the third, which has a gap


def test_each_adversary_has_its_own_order(audit):
    _, measures, costs, told = audit
    some = told.assign(verdict=told["verdict"].where(told["adversary"] == "linker", "cannot tell"))
    outsider, linker = plotting.plot_audit(measures, costs, some)
    assert [axes.get_title() for axes in (outsider, linker)] == list(WHO)
    assert joined(outsider) == []
    assert len(joined(linker)) == 3


def test_bands_are_what_one_more_release_shows(audit):
    statements, measures, costs, _ = audit
    found = releases_of(statements)
    mine = found[(found["adversary"] == "linker") & (found["protection"] == "noise b")]["score"]
    row = measures[(measures["adversary"] == "linker") & (measures["protection"] == "noise b")]
    reach = half_width(mine) * math.sqrt(len(mine) + 1.0)
    limits = [math.exp(-mine.mean() - reach), math.exp(-mine.mean() + reach)]
    assert one_release(row.iloc[0]) == pytest.approx(limits)
    axes = plotting.plot_audit(measures, costs)[1]
    bands = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_alpha()]
    assert len(bands) == 3  # nothing varies without protection
    np.testing.assert_allclose(bands[1].get_segments()[0][:, 1], limits)


@pytest.mark.slow
def test_one_more_release_is_within_its_band_95_times_of_100():
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(2000):
        drawn = rng.normal(0.5, 0.02, 7)  # logarithms
        row = {
            "releases": 6,
            "randomised": True,
            "answers_posterior": math.exp(drawn[:6].mean()),
            "error_releases": np.std(drawn[:6], ddof=1) / math.sqrt(6),
        }
        low, high = one_release(row)
        inside += low <= math.exp(drawn[6]) <= high
    assert 0.935 < inside / 2000 < 0.965


def test_an_interval_that_says_nothing_is_not_drawn(audit):
    _, measures, costs, _ = audit
    for axes in plotting.plot_audit(measures.assign(error_releases=9.0), costs):
        assert axes.get_ylim()[1] < 6.0  # nor what one more release shows
    ends = ["answers_posterior_lower", "answers_posterior_upper"]
    nothing = measures.assign(**dict(zip(ends, (1.0, 1e3), strict=True)))
    for axes in plotting.plot_audit(nothing, costs):
        assert axes.get_ylim()[1] < 6.0
    unknown = measures.assign(**dict.fromkeys([*ends, "error_releases"], math.nan))
    plotting.parent_figure(plotting.plot_audit(unknown, costs)).canvas.draw()


def test_truth_that_was_held_impossible_has_no_point(audit):
    _, measures, costs, _ = audit
    wrong = measures["protection"].eq("noise b")
    some = measures.assign(answers_posterior=measures["answers_posterior"].mask(wrong, math.inf))
    for axes, before in zip(
        plotting.plot_audit(some, costs), plotting.plot_audit(measures, costs), strict=True
    ):
        assert len(axes.containers) == len(before.containers) - 1


def test_beliefs_are_those_of_the_truth(audit):
    _, measures, _, _ = audit
    axes = plotting.plot_beliefs(measures)[1]
    rows = measures[measures["adversary"] == "linker"]
    for drawn, name in zip(axes.collections[1:], ("prior", "without", "posterior"), strict=True):
        np.testing.assert_allclose(drawn.get_offsets()[:, 0], 100.0 * rows[f"believed_{name}"])


@pytest.mark.parametrize("between", [(1.0, 2.0), (1.1, 2.1), (0.9, 1.9), (1.0, 2.1)])
def test_a_line_keeps_clear_of_the_markers_between_its_ends(between):
    """Two points of five lie on or beside the straight line from the first to the last."""
    points = np.array([(0.0, 1.0), between, (1.5, 2.5), (0.2, 3.0), (2.0, 3.0)])
    line = bent(points, 0, 4, np.array([2.0, 2.0]))
    np.testing.assert_allclose(line[[0, -1]], points[[0, 4]])
    gaps = np.linalg.norm((line[:, None] - points[[1, 2, 3]]) / 2.0, axis=2)
    assert gaps.min() > 0.04
    straight = np.linspace(points[0], points[4], 41)
    assert np.linalg.norm((straight[:, None] - points[[1, 2]]) / 2.0, axis=2).min() < 0.04


def test_a_line_is_straight_where_nothing_lies_between_its_ends():
    points = np.array([(0.0, 1.0), (2.0, 3.0), (0.0, 3.0), (1.0, np.inf)])
    line = bent(points, 0, 1, np.array([2.0, 2.0]))
    np.testing.assert_allclose(line[:, 1] - line[:, 0], 1.0)
