"""The figure of exceeding cells draws the numbers it is given."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError
from bayesrisk.plotting import plot_noisy_measurements


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
    axes = plot_noisy_measurements(curve.sample(frac=1, random_state=1), [1.5, 2.0])
    by_label = {line.get_label(): line for line in axes.lines}
    drawn = {
        "this file": curve["cells"].where(curve["cells"] > 0),
        "noise alone, every true count $k$": curve["expected_known"],
        "noise alone, every true count $k + 1$": curve["expected_one_more"],
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
    assert [t.get_text() for t in axes.get_legend().get_texts()] == list(drawn)


@pytest.mark.parametrize("top", [1.3, 9.0, 80.0, 5000.0])
def test_ticks_are_plain_numbers_at_any_range(curve, top):
    stretched = curve.assign(risk_ratio=np.geomspace(1.0, top, len(curve)))
    axes = plot_noisy_measurements(stretched)
    texts = [t.get_text() for t in axes.get_xticklabels()]
    assert 2 <= len(texts) <= 9
    assert [float(t) for t in texts] == pytest.approx(axes.get_xticks())


def test_missing_columns_and_rows_are_named(curve):
    with pytest.raises(ArgumentError, match="missing: error_known"):
        plot_noisy_measurements(curve.drop(columns="error_known"))
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_noisy_measurements(curve.iloc[:0])
