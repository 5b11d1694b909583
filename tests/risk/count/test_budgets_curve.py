"""Curves of the risk of a count: every number against a plain sum over releases, and figures."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes

import bayesrisk as br


def averages(rho, prior):
    """Return mean posterior, chance of being found, and rate of right guesses, by plain sums."""
    reach = range(-400, 402)  # y - k: of releases beyond it is nothing left in double precision
    total = sum(math.exp(-rho * y * y) for y in range(-400, 401))
    there = {y: math.exp(-rho * (y - 1) ** 2) / total for y in reach}
    absent = {y: math.exp(-rho * y * y) / total for y in reach}
    posterior = {
        y: prior * there[y] / (prior * there[y] + (1 - prior) * absent[y])
        for y in reach
        if prior * there[y] > 0.0
    }
    mean = math.fsum(there[y] * belief for y, belief in posterior.items())
    found = math.fsum(there[y] for y, belief in posterior.items() if belief >= 0.5)
    right = math.fsum(max(prior * there[y], (1 - prior) * absent[y]) for y in reach)
    return mean, mean / prior, found, right, max(prior, 1 - prior)


def test_numbers_are_sums_over_releases():
    curve = br.risk_curve([0.01, 0.13, 1.0], [0.3, 1 / 864])
    frame = curve.to_frame()
    assert list(frame)[:2] == ["rho", "prior"]
    assert len(frame) == 6
    for rho, prior, *numbers in frame.itertuples(index=False):
        assert np.allclose(numbers, averages(rho, prior), rtol=1e-12)


def test_each_prior_is_taken_with_each_budget_and_texts_are_numbers():
    curve = br.risk_curve("1/10", ["1/10", "0.25"])
    assert curve.rho.tolist() == [0.1, 0.1]
    assert curve.prior.tolist() == [0.1, 0.25]
    doubled = br.risk_curve(0.2, 0.1, sensitivity=2**0.5)
    assert np.isclose(doubled.marginal_risk, br.marginal_risk(rho=0.1, prior=0.1), rtol=1e-12)


def test_what_cannot_be_drawn_or_computed_is_refused():
    with pytest.raises(br.ArgumentError, match="prior must be < 1"):
        br.risk_curve(0.1, [0.5, 1.0])
    with pytest.raises(br.ArgumentError, match="panel must be one of posterior, ratio, found"):
        br.risk_curve([0.1, 1.0], 0.5).plot(panel="risk")
    with pytest.raises(br.ArgumentError, match="rho and prior must make at most"):
        br.risk_curve(np.full(3000, 0.1), np.full(3000, 0.1))


@pytest.mark.parametrize(
    ("panel", "column"),
    [
        ("posterior", "marginal_posterior"),
        ("ratio", "marginal_risk"),
        ("found", "correct_decision_probability"),
    ],
)
def test_a_panel_is_one_axes_with_a_line_for_each_prior(panel, column):
    curve = br.risk_curve(np.geomspace(0.01, 1, 5), [0.5, 0.1])
    axes = curve.plot(panel=panel, budgets={"block": 0.1})
    assert isinstance(axes, Axes)
    drawn = axes.get_lines()[:2]
    frame = curve.to_frame()
    for line, prior in zip(drawn, (0.5, 0.1), strict=True):
        assert line.get_ydata().tolist() == frame.loc[frame["prior"] == prior, column].tolist()
    assert len(axes.figure.legends[0].get_texts()) == 2


def test_without_a_panel_there_are_two():
    left, right = br.risk_curve(np.geomspace(0.01, 1, 5), [0.5, 0.1]).plot()
    assert "prior" not in left.get_ylabel()
    assert right.get_ylabel().endswith("/ prior")
