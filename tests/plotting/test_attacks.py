"""Figures of attacks draw the frames they are given; what they leave out is said."""

import numpy as np
import pandas as pd
import pytest
from persons import persons

from bayesrisk import plotting
from bayesrisk.risk import majority_inference, reidentify, variability_quantiles

COVERAGE = pd.DataFrame(
    {"block": ["a", "a", "b", "b"], "columns": [1, 2, 1, 2], "claims": [3, 0, 1, 0]}
)
PRIORS = pd.DataFrame(
    {"n_columns": [1] * 5 + [2] * 3, "prior": [0.1, 0.2, 0.3, 0.4, 0.5, 0, 0, 0.1]}
)


def test_bars_count_places_and_boxes_are_quartiles():
    panels = plotting.plot_claims(COVERAGE, {"tract": PRIORS, "state": PRIORS})
    left, tract, state = panels
    assert [bar.get_height() for bar in left.patches] == [2, 0]
    assert (tract.get_title(), state.get_title()) == ("prior: tract", "prior: state")
    boxes = [line.get_ydata() for line in tract.lines if len(line.get_ydata()) == 5]
    assert [(np.min(b), np.max(b)) for b in boxes] == [
        (pytest.approx(0.2), pytest.approx(0.4)),
        (0.0, pytest.approx(0.05)),
    ]
    assert tract.get_ylim() == state.get_ylim()


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
    panels = plotting.plot_occupancy_blocks(table())
    for axes in panels:
        (apart, violation) = (c.lines[0].get_ydata().tolist() for c in axes.containers)
        assert apart == violation == [0.9, 0.4]
        assert [t.get_text() for t in axes.get_xticklabels()] == [
            "no protection",
            "noise, DAS budget",
        ]


def test_linkage():
    for against in ("recall", "k"):
        left, right = plotting.plot_occupancy_linkage(
            curves(), key="hud", unique=True, against=against
        )
        np.testing.assert_allclose(left.lines[0].get_ydata(), [1, 1 / 2, 1 / 3])
        expected = [1, 2, 3] if against == "k" else [1 / 3, 2 / 3, 1]
        np.testing.assert_allclose(left.lines[0].get_xdata(), expected)
        np.testing.assert_allclose(right.lines[1].get_ydata(), 0.5)


def test_counts():
    frame = pd.DataFrame(
        {"protection": "none", "violations": [1, 2, 0], "reconstructed": [1.5, 2.0, np.nan]}
    )
    axes = plotting.plot_occupancy_counts(frame, protection="none")
    assert axes.lines[0].get_ydata().tolist() == [1.5, 2.0]
    none = frame.assign(reconstructed=np.nan)
    assert plotting.plot_occupancy_counts(none, protection="none").axes


def test_variability_of_occupancy():
    frame = pd.DataFrame(
        {"attributes": "full", "share": [0.5, 1.0, np.nan], "households": [30, 10, 5]}
    )
    left, right = plotting.plot_occupancy_variability(frame)
    assert left.lines[0].get_ydata().tolist() == [0.0, 0.5, 1.0]
    assert right.lines[0].get_ydata().tolist() == [0.0, 0.75, 1.0]


BLOCKS = ["010010201001000", "010010201001001", "010010201001002"]


def people():
    p, shares = [0.75, 0.22, 0.03], [0.7, 0.3]
    frame = persons(2, 150, BLOCKS, p=p, races=[1, 2], shares=shares, hispanic=0)
    return frame.assign(person=np.arange(150))


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
    names = {"t", "modal guesser (MDG)", "proportional guesser (PRG)"}
    assert {c.get_label() for c in left.containers} == names
    assert set(drawn) == {"t"}
    assert [t.get_text() for t in left.get_xticklabels()] == mine["block_size"].tolist()


def test_an_arrow_says_which_intervals_of_ratios_leave_the_panel(rates):
    mine = rates[(rates["source"] == "t") & (rates["block_size"] != "All")]
    mine = mine[mine["putative"] > 0]
    wide = mine.assign(left_out_ratio_upper=[np.inf, *mine["left_out_ratio"].iloc[1:]])
    for frame in (mine, wide):
        left, right = plotting.plot_reidentification(frame)
        left.figure.draw_without_rendering()
        assert min(axes.get_position().width for axes in (left, right)) > 0.3
        top = right.get_ylim()[1]
        arrows = [y for one in right.lines if one.get_marker() == "^" for y in one.get_ydata()]
        assert arrows == [top] * int((frame["left_out_ratio_upper"] > top).sum())
    assert len(arrows) == 1
    (bars,) = right.containers[0].lines[2]  # the one without an upper end leaves the panel, too
    assert max(bars.get_segments()[0][:, 1]) > top
    _, right = plotting.plot_reidentification(mine.assign(left_out_ratio=np.nan))
    assert pd.isna(right.containers[0].lines[0].get_ydata()).all()


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


def rows(attack, protection, status):
    targets = [f"{protection} {i}" for i in range(4)]
    return pd.DataFrame(
        {
            "attack": attack,
            "protection": protection,
            "target": targets if status == "estimated" else list("abcd"),
            "statement": "is",
            "status": status,
            "ratio": [0.5, 1.0, 2.0, 30.0],
        }
    )


def test_estimates_left_out_are_named_where_nothing_covers_them():
    attacks = [("claims", "proved"), ("occupancy", "estimated"), ("reconstruction", "proved")]
    frame = pd.concat(
        rows(attack, protection, status)
        for attack, status in attacks
        for protection in ("identity", "swapping")
    )
    figure = plotting.plot_statements(frame)[0].figure
    figure.draw_without_rendering()
    note = figure._suptitle
    assert "occupancy under identity" in note.get_text()
    assert [axes.get_title() for axes in figure.axes] == ["claims", "reconstruction"]
    boxes = [figure.legends[0].get_window_extent(), *(a.get_tightbbox() for a in figure.axes)]
    assert not any(note.get_window_extent().overlaps(box) for box in boxes)
    assert note.get_window_extent().width <= figure.bbox.width
