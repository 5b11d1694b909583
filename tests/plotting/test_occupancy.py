"""Figures of occupancy violations show the numbers of their frames."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import (
    plot_occupancy_blocks,
    plot_occupancy_counts,
    plot_occupancy_linkage,
    plot_occupancy_variability,
)


def table():
    rows = []
    for name, value in (("none", 0.9), ("das", 0.4)):
        for reading in ("apart", "violation"):
            row = {"protection": name, "infeasible_as": reading}
            for m in ("precision", "recall"):
                row |= {m: value, f"{m}_lower": value - 0.1, f"{m}_upper": value + 0.05}
                row[f"{m}_baseline"] = 0.3
            rows.append(row)
    return pd.DataFrame(rows)


def curves():
    k = np.arange(1, 4)
    frame = pd.DataFrame({"k": k, "precision": 1 / k, "recall": k / 3, "match_rate": 0.5})
    return pd.concat(
        frame.assign(protection=p, key="hud", unique=u, baseline=0.1)
        for p in ("none", "sampling")
        for u in (False, True)
    )


def test_blocks():
    panels = plot_occupancy_blocks(table())
    for axes in panels:
        (apart, violation) = (c.lines[0].get_ydata().tolist() for c in axes.containers)
        assert apart == violation == [0.9, 0.4]
        assert [t.get_text() for t in axes.get_xticklabels()] == [
            "no protection",
            "noise, DAS budget",
        ]


def test_linkage():
    for against in ("recall", "k"):
        left, right = plot_occupancy_linkage(curves(), key="hud", unique=True, against=against)
        np.testing.assert_allclose(left.lines[0].get_ydata(), [1, 1 / 2, 1 / 3])
        expected = [1, 2, 3] if against == "k" else [1 / 3, 2 / 3, 1]
        np.testing.assert_allclose(left.lines[0].get_xdata(), expected)
        np.testing.assert_allclose(right.lines[1].get_ydata(), 0.5)


def test_counts():
    frame = pd.DataFrame(
        {"protection": "none", "violations": [1, 2, 0], "reconstructed": [1.5, 2.0, np.nan]}
    )
    axes = plot_occupancy_counts(frame, protection="none")
    assert axes.lines[0].get_ydata().tolist() == [1.5, 2.0]
    none = frame.assign(reconstructed=np.nan)
    assert plot_occupancy_counts(none, protection="none").axes


def test_variability():
    frame = pd.DataFrame(
        {"attributes": "full", "share": [0.5, 1.0, np.nan], "households": [30, 10, 5]}
    )
    left, right = plot_occupancy_variability(frame)
    assert left.lines[0].get_ydata().tolist() == [0.0, 0.5, 1.0]
    assert right.lines[0].get_ydata().tolist() == [0.0, 0.75, 1.0]


def test_refusals():
    with pytest.raises(ArgumentError, match="missing"):
        plot_occupancy_blocks(table().drop(columns="recall"))
    with pytest.raises(ArgumentError, match="key must be one of hud"):
        plot_occupancy_linkage(curves(), key="none", unique=True)
    with pytest.raises(ArgumentError, match="against must be one of"):
        plot_occupancy_linkage(curves(), key="hud", unique=True, against="luck")
    with pytest.raises(ArgumentError, match="protection must be one of none"):
        plot_occupancy_counts(
            pd.DataFrame({"protection": ["none"], "violations": 1, "reconstructed": 1.0}),
            protection="das",
        )
    with pytest.raises(ArgumentError, match="at least one row"):
        plot_occupancy_variability(pd.DataFrame(columns=["attributes", "share", "households"]))
