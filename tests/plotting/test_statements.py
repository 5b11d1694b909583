"""The figure of statements: what it leaves out is said, and nothing covers it."""

import pandas as pd

from bayesrisk.plotting import plot_statements


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
    figure = plot_statements(frame)[0].figure
    figure.draw_without_rendering()
    note = figure._suptitle
    assert "occupancy under identity" in note.get_text()
    assert [axes.get_title() for axes in figure.axes] == ["claims", "reconstruction"]
    boxes = [figure.legends[0].get_window_extent(), *(a.get_tightbbox() for a in figure.axes)]
    assert not any(note.get_window_extent().overlaps(box) for box in boxes)
    assert note.get_window_extent().width <= figure.bbox.width
