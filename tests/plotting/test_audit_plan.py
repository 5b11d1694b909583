"""The figure of a plan draws each setting once, at its error and what it gives away."""

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.exceptions import BayesRiskError

FRONTIER = pd.DataFrame({
    "role": ["tried", "finer", "chosen", "agency", "coarsest"],
    "rule": ["", "", "", "ons-10-5", ""],
    "error": [0.0, 1.0, 1.3, 2.7, 4.0], "proved": [50, 3, 0, 12, 0],
})  # fmt: skip


def test_every_setting_is_drawn():
    axes = br.plotting.plot_plan(FRONTIER, leak="proved", most=0)
    drawn = np.concatenate([c.get_offsets() for c in axes.collections])
    wanted = FRONTIER[["error", "proved"]].to_numpy(float)
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, wanted))
    names = [t.get_text() for legend in axes.figure.legends for t in legend.get_texts()]
    assert "ons-10-5" in names


def test_a_frame_without_the_leak_is_refused():
    with pytest.raises(BayesRiskError, match="gain"):
        br.plotting.plot_plan(FRONTIER, leak="gain")
