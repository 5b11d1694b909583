"""Figures of counts draw the numbers they are given, every line told apart by more than colour."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from bayesrisk import DiscreteGaussian, DiscreteLaplace, Noise, block_risk, plotting
from bayesrisk.accounting import PrivacyLoss
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk import compare_postprocessing

PRIORS = [1 / 2, 1 / 10, 1 / 864]


@pytest.fixture
def released():
    counts = np.arange(-3, 6)[:, None]
    return block_risk(counts, rho=0.0992264, prior=PRIORS).to_frame()


@pytest.fixture
def by_rho():
    rho = np.geomspace(0.01, 10, 20)[:, None]
    return block_risk(1, rho=rho, prior=PRIORS).to_frame().assign(rho=np.repeat(rho.ravel(), 3))


def data_of(axes):
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    return {line.get_label(): np.array(line.get_ydata()) for line in lines}


def test_released_count_draws_the_frame(released):
    left, right = plotting.plot_risk(released, against="noisy_count")
    assert list(data_of(left)) == ["1/2", "1/10", "1/864"]
    rows = released[released["prior"] == 1 / 10]
    np.testing.assert_array_equal(data_of(left)["1/10"], rows["posterior"])
    np.testing.assert_array_equal(data_of(right)["1/10"], rows["risk_ratio"])
    assert left.get_xlabel() == "released count"


def test_marginal_risk_marks_the_budgets(by_rho):
    left, right = plotting.plot_risk(by_rho, budgets={"2020 block, as produced": 0.0992264})
    rows = by_rho[by_rho["prior"] == 0.5].sort_values("rho")
    np.testing.assert_array_equal(data_of(left)["1/2"], rows["marginal_posterior"])
    assert [text.get_text() for text in left.texts] == ["2020 block, as produced"]
    assert any(list(line.get_xdata()) == [0.0992264] * 2 for line in right.lines)
    assert left.get_xscale() == "log"


def test_correct_decision(by_rho):
    axes = plotting.plot_correct_decision(by_rho)
    rows = by_rho[by_rho["prior"] == 1 / 864].sort_values("rho")
    drawn = data_of(plotting.plot_correct_decision(by_rho.drop(columns="decision_threshold")))
    np.testing.assert_array_equal(drawn["1/864"], rows["correct_decision_probability"])
    (line,) = [one for one in axes.lines if one.get_label() == "1/864"]
    # With thresholds the line goes on level to the middle of two budgets, and jumps there.
    points, wanted = rows.to_dict("records"), []
    for here, there in itertools.pairwise(points):
        wanted.append((here["rho"], here["correct_decision_probability"]))
        if here["decision_threshold"] != there["decision_threshold"]:
            middle = math.sqrt(here["rho"] * there["rho"])
            wanted += [(middle, one["correct_decision_probability"]) for one in (here, there)]
    wanted.append((points[-1]["rho"], points[-1]["correct_decision_probability"]))
    assert len(wanted) > len(points)
    np.testing.assert_allclose(line.get_xydata(), wanted, rtol=1e-12)


def test_thresholds_that_are_infinite_alike_are_no_jump(by_rho):
    rows = by_rho[by_rho["prior"] == 1 / 864].sort_values("rho").iloc[:3]
    never = rows.assign(decision_threshold=[np.inf, np.inf, 4.0])
    (line,) = plotting.plot_correct_decision(never).lines[:1]
    assert len(line.get_xdata()) == 3 + 2  # one jump, between the second and the third


def test_decision_accuracy_stands_beside_its_baseline(by_rho):
    left, right = plotting.plot_decision_accuracy(by_rho)
    rows = by_rho[by_rho["prior"] == 1 / 10].sort_values("rho")
    np.testing.assert_array_equal(data_of(left)["1/10"], rows["decision_accuracy"])
    np.testing.assert_array_equal(data_of(right)["1/10"], rows["decision_accuracy"] - 0.9)
    colours = {
        line.get_label(): line.get_color() for line in left.lines if len(line.get_xdata()) > 2
    }
    baselines = {line.get_ydata()[0]: line.get_color() for line in left.lines[len(PRIORS) :]}
    assert baselines == {
        max(p, 1 - p): colours[name] for p, name in zip(PRIORS, colours, strict=True)
    }


def test_levels():
    frame = pd.DataFrame(
        {
            "levels": [3, 2, 1],
            "prior": 0.3,
            "marginal_posterior": [0.5, 0.4, 0.35],
            "marginal_risk": [1.7, 1.3, 1.2],
        }
    )
    left, _ = plotting.plot_risk(frame, against="levels")
    np.testing.assert_array_equal(data_of(left)["0.3"], [0.35, 0.4, 0.5])
    assert list(left.get_xticks()) == [1, 2, 3]


def test_lines_differ_in_dash_and_marker_too(released):
    lines = plotting.plot_risk(released, against="noisy_count")[0].lines
    assert len({line.get_marker() for line in lines}) == len(lines)
    assert len({str(line._dash_pattern) for line in lines}) == len(lines)


def processed(group_count, rho, n_siblings=1):
    table = compare_postprocessing(
        group_count=group_count, n_siblings=n_siblings, noise=Noise(rho=rho), prior=0.5
    ).to_frame()
    return table.assign(rho=(0.5 / table["sigma2"]).round(10))


@pytest.fixture
def panels():
    by_rho = processed([1, 5, 50], np.geomspace(0.01, 10, 12)[:, None])
    return by_rho, processed(np.arange(1, 9)[:, None], [0.1, 1.0])


def test_both_panels_draw_the_frames(panels):
    by_rho, by_count = panels
    left, right = plotting.plot_postprocessing(by_rho, by_count)
    data = [np.array(line.get_ydata()) for line in left.lines]
    for i, n in enumerate((50, 5, 1)):
        np.testing.assert_array_equal(data[i], by_rho[by_rho["group_count"] == n]["risk_after"])
    bound = by_rho[by_rho["group_count"] == 1]["risk_before"]
    assert any(np.array_equal(d, bound) for d in data)
    drawn = [np.array(line.get_ydata()) for line in right.lines]
    for column in ("risk_after", "risk_before"):
        for rho in (0.1, 1.0):
            rows = by_count[by_count["rho"] == rho].sort_values("group_count")
            assert any(np.array_equal(d, rows[column]) for d in drawn)
    assert left.get_xscale() == "log"
    assert (left.get_xlabel(), right.get_xlabel()) == (
        r"$\rho$ of a block's count",
        "count of the group, $N$",
    )


def protections(largest=2.0):
    rows = []
    for i, name in enumerate(["none", "swapping", "discrete Gaussian"]):
        for target, shift in (("a", 0.0), ("b", 0.5)):
            ratio = [10.0, 4.0, 1.8][i] - shift * (i > 0)
            rows.append(
                {
                    "protection": name,
                    "target": target,
                    "prior": 0.1,
                    "marginal_risk": ratio,
                    "marginal_risk_lower": max(ratio - 0.3, 1.0),
                    "marginal_risk_upper": min(ratio + 0.3, 10.0),
                    "mean_absolute_error": [0.0, 0.05, largest][i],
                    "mean_absolute_error_error": 0.01 * i,
                    "root_mean_square_error": [0.0, 0.3, 2.0][i],
                    "root_mean_square_error_error": 0.01 * i,
                }
            )
    return pd.DataFrame(rows)


def points(axes):
    return [
        (np.array(c.lines[0].get_xdata(), float), np.array(c.lines[0].get_ydata(), float))
        for c in axes.containers
    ]


def test_panels_draw_targets_and_means():
    data = protections()
    left, right = plotting.plot_mechanisms(data)
    for i, name in enumerate(["none", "swapping", "discrete Gaussian"]):
        rows = data[data["protection"] == name]
        assert points(left)[i][1].tolist() == rows["marginal_risk"].tolist()
        assert np.abs(points(left)[i][0] - i).max() <= 0.3
        x, y = points(right)[i]
        assert x.tolist() == [rows["mean_absolute_error"].iloc[0]]
        assert y.tolist() == pytest.approx([rows["marginal_risk"].mean()])
    assert [t.get_text() for t in left.get_xticklabels()] == list(dict.fromkeys(data["protection"]))
    assert [t.get_text() for t in right.get_legend().get_texts()] == list(
        dict.fromkeys(data["protection"])
    )
    assert left.get_ylim() == right.get_ylim()


def test_bars_are_the_intervals():
    data = protections()
    left, _ = plotting.plot_mechanisms(data)
    for container, (_, rows) in zip(
        left.containers, data.groupby("protection", sort=False), strict=True
    ):
        segments = container.lines[2][0].get_segments()
        ends = np.array([segment[:, 1] for segment in segments])
        np.testing.assert_allclose(ends[:, 0], rows["marginal_risk_lower"])
        np.testing.assert_allclose(ends[:, 1], rows["marginal_risk_upper"])


@pytest.fixture
def curve():
    ratio = np.geomspace(1.0, 9.0, 20)
    cells = np.round(1e5 * np.exp(-2 * ratio)) + 3
    cells[-1] = 0
    known = 1e5 * np.exp(-3 * ratio)
    return pd.DataFrame(
        {
            "risk_ratio": ratio,
            "cells": cells.astype(int),
            "expected_known": known,
            "error_known": np.sqrt(known),
            "expected_one_more": 2 * known,
            "error_one_more": np.sqrt(2 * known),
        }
    )


def test_lines_and_bands_are_the_columns(curve):
    axes = plotting.plot_noisy_measurements(curve.sample(frac=1, random_state=1), [1.5, 2.0])
    by_label = {line.get_label(): line for line in axes.lines}
    drawn = {
        "this file": curve["cells"].where(curve["cells"] > 0),
        "noise alone, nobody more there": curve["expected_known"],
        "noise alone, one more everywhere": curve["expected_one_more"],
    }
    for text, values in drawn.items():
        np.testing.assert_array_equal(by_label[text].get_xdata(), curve["risk_ratio"])
        np.testing.assert_array_equal(by_label[text].get_ydata(), values)
    tops = [band.get_paths()[0].vertices[:, 1].max() for band in axes.collections]
    expected = [
        (curve[f"expected_{name}"] + 2 * curve[f"error_{name}"]).max()
        for name in ("one_more", "known")
    ]
    np.testing.assert_allclose(tops, expected)
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_label().startswith("_")]
    assert marks == [1.5, 2.0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlim() == (1.0, pytest.approx(9.0))
    (legend,) = axes.figure.legends
    assert [t.get_text() for t in legend.get_texts()] == list(drawn)


def test_the_law_of_a_release_lies_below_the_conversions():
    frame = PrivacyLoss.of([DiscreteGaussian(4.0)] * 3).to_frame()
    axes = plotting.plot_privacy_loss(frame)
    drawn = {line.get_label(): np.array(line.get_ydata()) for line in axes.lines}
    assert drawn["law of the release"].tolist() == frame["epsilon_upper"].tolist()
    assert (drawn["law of the release"] < drawn["tight conversion of rho"]).all()
    assert axes.get_xscale() == "log"
    alone = plotting.plot_privacy_loss(PrivacyLoss.of([DiscreteLaplace(2.0)]).to_frame())
    assert len(alone.lines) == 1


def test_a_frame_of_something_else_is_told_what_makes_one():
    with pytest.raises(ArgumentError, match=r"as of risk_curve; missing: marginal_post"):
        plotting.plot_risk(pd.DataFrame({"rho": [1.0], "prior": [0.1], "marginal_risk": [1.0]}))
    frame = pd.DataFrame({"noisy_count": [1], "prior": [0.1], "risk_ratio": [1.0]})
    with pytest.raises(ArgumentError, match=r"missing: posterior$"):  # no curve is of counts
        plotting.plot_risk(frame, against="noisy_count")
