"""The figure of claims draws the frames it is given."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError
from bayesrisk.plotting import plot_claims

COVERAGE = pd.DataFrame(
    {"block": ["a", "a", "b", "b"], "columns": [1, 2, 1, 2], "claims": [3, 0, 1, 0]}
)
PRIORS = pd.DataFrame(
    {"n_columns": [1] * 5 + [2] * 3, "prior": [0.1, 0.2, 0.3, 0.4, 0.5, 0, 0, 0.1]}
)


def test_bars_count_places_and_boxes_are_quartiles():
    panels = plot_claims(COVERAGE, {"tract": PRIORS, "state": PRIORS})
    left, tract, state = panels
    assert [bar.get_height() for bar in left.patches] == [2, 0]
    assert (tract.get_title(), state.get_title()) == ("prior: tract", "prior: state")
    boxes = [line.get_ydata() for line in tract.lines if len(line.get_ydata()) == 5]
    assert [(np.min(b), np.max(b)) for b in boxes] == [
        (pytest.approx(0.2), pytest.approx(0.4)),
        (0.0, pytest.approx(0.05)),
    ]
    assert tract.get_ylim() == state.get_ylim()


def test_frames_that_cannot_be_drawn_are_refused():
    with pytest.raises(ArgumentError, match="missing: claims"):
        plot_claims(COVERAGE.drop(columns="claims"), {"tract": PRIORS})
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_claims(COVERAGE, {"tract": PRIORS.iloc[:0]})
    with pytest.raises(ArgumentError, match="priors must have at least one frame"):
        plot_claims(COVERAGE, {})
