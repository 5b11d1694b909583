"""Figures of re-identification draw what the frames say, and refuse other frames."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import plotting
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk import majority_inference, reidentify, variability_quantiles

BLOCKS = ["010010201001000", "010010201001001", "010010201001002"]


def people():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "block": rng.choice(BLOCKS, 150, p=[0.75, 0.22, 0.03]),
            "sex": rng.integers(0, 2, 150),
            "age": rng.integers(0, 90, 150),
            "race": rng.choice([1, 2], 150, p=[0.7, 0.3]),
            "hisp": 0,
            "person": np.arange(150),
        }
    )


@pytest.fixture(scope="module")
def rates():
    truth = people()
    found = reidentify({"t": truth}, {"a": truth}, truth=truth, baseline_from="t", rng=1)
    return found.to_frame()


def lines(axes):
    return {line.get_label(): line.get_ydata() for line in axes.lines}


def test_precision_and_ratio(rates):
    left, right = plotting.plot_reidentification(rates)
    mine = rates[(rates["source"] == "t") & (rates["block_size"] != "All")]
    mine = mine[mine["putative"] > 0]
    drawn = next(c for c in left.containers if c.get_label() == "t").lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, mine["precision"])
    drawn = {c.get_label(): c.lines[0].get_ydata() for c in right.containers}
    np.testing.assert_array_equal(drawn["t"], mine["left_out_ratio"])
    assert {c.get_label() for c in left.containers} == {"t", "MDG", "PRG"}
    assert set(drawn) == {"t"}
    assert [t.get_text() for t in left.get_xticklabels()] == mine["block_size"].tolist()


def test_majority_curves():
    truth = pd.DataFrame({"x": [51, 1, 3], "y": [49, 9, 0]}, index=["a", "b", "c"])
    noisy = pd.DataFrame({"x": [48, 2, 3], "y": [52, 5, 0]}, index=["a", "b", "c"])
    found = majority_inference({"true": truth, "noisy": noisy}, truth=truth)
    curves = pd.concat([found.curve(threshold=t) for t in (1, 5, 20)])
    shown = plotting.plot_majority(curves)
    assert [axes.get_title() for axes in shown] == [f"majority of at least {t}" for t in (1, 5, 20)]
    rows = curves[(curves["threshold"] == 5) & (curves["release"] == "true")]
    line = next(line for line in shown[1].lines if line.get_label() == "true")
    np.testing.assert_array_equal(line.get_xdata()[1:], rows["recall"])
    np.testing.assert_array_equal(line.get_ydata()[1:], rows["precision"])


@pytest.mark.parametrize("scopes", [[], ["block", "tract-bounds"]])
def test_variability(scopes):
    blocks = pd.DataFrame(
        {"block": list("abc"), "population": [5, 20, 9], "lower": [0, 0.1, 0.2]}
    ).assign(upper=[0.0, 0.1, 0.4])
    quantiles = variability_quantiles(blocks, rng=1, step=20)
    frame = pd.concat([quantiles.assign(scope=s) for s in scopes]) if scopes else quantiles
    axes = plotting.plot_variability(frame)
    assert len(axes.lines) == max(1, len(scopes))
    for line in axes.lines:
        np.testing.assert_array_equal(line.get_ydata(), quantiles["quantile_upper"])
    assert (axes.get_legend() is None) == (len(scopes) < 2)


def test_figures_are_reproducible(rates, tmp_path):
    files = [
        [path.read_bytes() for path in plotting.save_figure(figure, tmp_path / name)]
        for name in ("one", "two")
        for figure in [plotting.plot_reidentification(rates)]
    ]
    assert files[0] == files[1]


def test_refusals(rates):
    with pytest.raises(ArgumentError, match="must be of one attacker"):
        plotting.plot_reidentification(pd.concat([rates, rates.assign(attacker="b")]))
    for draw in (
        plotting.plot_reidentification,
        plotting.plot_majority,
        plotting.plot_variability,
    ):
        with pytest.raises(ArgumentError):
            draw(rates[["putative"]])
        with pytest.raises(ArgumentError):
            draw(rates.head(0))


def test_sources_without_a_link_are_drawn_as_nothing(rates):
    # As text, the sizes of no row are no numbers to add to.
    for kind in (object, "str"):
        none = rates.assign(putative=0, block_size=rates["block_size"].astype(kind))
        left, right = plotting.plot_reidentification(none)
        for axes in (left, right):
            assert len(axes.containers) > 0
            assert all(len(drawn.lines[0].get_xdata()) == 0 for drawn in axes.containers)
        assert len(left.get_xticklabels()) == 0
    columns = {
        "plot_reidentification": rates.columns,
        "plot_majority": ["release", "threshold", "precision", "recall"],
        "plot_variability": ["cumulative_percentage", "quantile_lower", "quantile_upper"],
    }
    for name, wanted in columns.items():
        with pytest.raises(ArgumentError, match="row"):
            getattr(plotting, name)(pd.DataFrame(columns=wanted))
