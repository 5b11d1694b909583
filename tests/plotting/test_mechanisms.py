"""The figure of protections draws the frame it is given."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError
from bayesrisk.plotting import plot_mechanisms


def frame(largest=2.0):
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
    data = frame()
    left, right = plot_mechanisms(data)
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
    data = frame()
    left, _ = plot_mechanisms(data)
    for container, (_, rows) in zip(
        left.containers, data.groupby("protection", sort=False), strict=True
    ):
        segments = container.lines[2][0].get_segments()
        ends = np.array([segment[:, 1] for segment in segments])
        np.testing.assert_allclose(ends[:, 0], rows["marginal_risk_lower"])
        np.testing.assert_allclose(ends[:, 1], rows["marginal_risk_upper"])


def test_wide_utilities_are_logarithmic_with_a_zero():
    _, right = plot_mechanisms(frame())
    assert right.get_xscale() == "symlog"
    _, near = plot_mechanisms(frame(largest=0.1))
    assert near.get_xscale() == "linear"
    _, root = plot_mechanisms(frame(), utility="root_mean_square_error")
    assert root.get_xlabel() == "root mean square error of a published count"


def test_certainty_is_marked_where_the_prior_is_one_number():
    left, _ = plot_mechanisms(frame())
    assert "certain" in [t.get_text() for t in left.texts]
    mixed = frame().assign(prior=[0.1, 0.2] * 3)
    left, _ = plot_mechanisms(mixed)
    assert not left.texts


def test_missing_columns_and_rows_are_named():
    with pytest.raises(ArgumentError, match="missing: marginal_risk_upper"):
        plot_mechanisms(frame().drop(columns="marginal_risk_upper"))
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_mechanisms(frame().iloc[:0])
    with pytest.raises(ArgumentError, match=r"utility must be one of .* got 'bias'"):
        plot_mechanisms(frame(), utility="bias")
