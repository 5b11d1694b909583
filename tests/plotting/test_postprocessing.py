"""Figure 12 draws the numbers it is given, with the bound beside them."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError, Noise
from bayesrisk.plotting import plot_postprocessing
from bayesrisk.risk import compare_postprocessing


def frame(group_count, rho, n_siblings=1):
    table = compare_postprocessing(
        group_count=group_count, n_siblings=n_siblings, noise=Noise(rho=rho), prior=0.5
    ).to_frame()
    return table.assign(rho=(0.5 / table["sigma2"]).round(10))


@pytest.fixture
def panels():
    by_rho = frame([1, 5, 50], np.geomspace(0.01, 10, 12)[:, None])
    return by_rho, frame(np.arange(1, 9)[:, None], [0.1, 1.0])


def test_both_panels_draw_the_frames(panels):
    by_rho, by_count = panels
    left, right = plot_postprocessing(by_rho, by_count)
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


def test_legends_name_the_lines_and_the_bound(panels):
    left, right = plot_postprocessing(*panels)
    texts = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in (left, right)]
    assert texts == [["50", "5", "1", "not processed"], ["1", "0.1", "not processed"]]


def test_wide_ranges_are_logarithmic():
    by_count = frame(np.array([1, 5, 50, 400])[:, None], [0.1, 1.0])
    ratios = by_count.assign(risk_before=by_count["risk_before"] * [1, 2, 5, 10, 20, 50, 80, 90])
    _, right = plot_postprocessing(frame([1], np.array([0.1, 1.0])[:, None]), ratios)
    assert (right.get_xscale(), right.get_yscale()) == ("log", "log")


def test_missing_columns_and_rows_are_named(panels):
    by_rho, by_count = panels
    with pytest.raises(ArgumentError, match="missing: risk_after"):
        plot_postprocessing(by_rho.drop(columns="risk_after"), by_count)
    with pytest.raises(ArgumentError, match="missing: rho, group_count"):
        plot_postprocessing(by_rho, pd.DataFrame({"risk_before": [1.0], "risk_after": [1.0]}))
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_postprocessing(by_rho.iloc[:0], by_count)
