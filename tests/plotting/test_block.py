"""Figures draw the numbers they are given, every line told apart by more than its colour."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import block_risk, plotting
from bayesrisk.exceptions import ArgumentError

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
    left, right = plotting.plot_risk(by_rho, budgets={"2020 block": 0.0992264})
    rows = by_rho[by_rho["prior"] == 0.5].sort_values("rho")
    np.testing.assert_array_equal(data_of(left)["1/2"], rows["marginal_posterior"])
    assert [text.get_text() for text in left.texts] == ["2020 block"]
    assert any(list(line.get_xdata()) == [0.0992264] * 2 for line in right.lines)
    assert left.get_xscale() == "log"


def test_correct_decision(by_rho):
    axes = plotting.plot_correct_decision(by_rho)
    rows = by_rho[by_rho["prior"] == 1 / 864].sort_values("rho")
    np.testing.assert_array_equal(data_of(axes)["1/864"], rows["correct_decision_probability"])

    assert axes.get_ylabel() == "probability of being found,\nif in the cell"


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


def test_a_name_with_a_convention_is_marked_on_two_lines(by_rho):
    budgets = {"2020 block, as produced": 0.0992264}
    axes = plotting.plot_correct_decision(by_rho, budgets=budgets)
    assert [text.get_text() for text in axes.texts] == ["2020 block,\nas produced"]


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


@pytest.mark.parametrize(
    "function",
    [plotting.plot_risk, plotting.plot_correct_decision, plotting.plot_decision_accuracy],
)
def test_missing_columns_and_rows_are_named(function):
    with pytest.raises(ArgumentError, match=r"missing: .*prior"):
        function(pd.DataFrame({"x": [1]}))
    full = ["rho", "prior", "correct_decision_probability", "marginal_posterior", "marginal_risk"]
    with pytest.raises(ArgumentError, match="at least one row"):
        function(pd.DataFrame(columns=[*full, "decision_accuracy", "decision_baseline"]))
    with pytest.raises(ArgumentError, match="against must be one of"):
        plotting.plot_risk(pd.DataFrame({"x": [1]}), against="x")


def test_saved_figures_are_the_same_bytes_each_time(released, tmp_path):
    files = [
        [path.read_bytes() for path in plotting.save_figure(figure, tmp_path / name)]
        for name in ("a", "b")
        for figure in [plotting.plot_risk(released, against="noisy_count")]
    ]
    assert files[0] == files[1]
    assert files[0][1].startswith(b"<?xml")
