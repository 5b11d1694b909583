"""What marks stand for and where they are: against the figure's own pixels and data."""

import matplotlib as mpl
import numpy as np
import pytest

from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.plotting import figure_points
from bayesrisk.plotting._canvas import GUIDE, panels, style


def drawn(axes):
    """Return the picture of a figure, as numbers, after its layout was found."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(axes.get_figure(root=True))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int)


def one(**sharing):
    with style():
        axes = panels(None, 1, (4.0, 3.0), **sharing)[0]
    axes.grid(visible=False)
    return axes


def test_a_mark_is_where_it_is_drawn():
    axes = one()
    axes.plot([1.0, 2.0, 3.0], [10.0, 1.0, 100.0], "o", color="#ff0000", markersize=5)
    axes.set(yscale="log", xlabel="x", ylabel="y")
    picture = drawn(axes)
    tall, wide, _ = picture.shape
    red = (picture[..., 0] > 200) & (picture[..., 1] < 60)
    points = figure_points(axes)
    assert [p.text for p in points] == ["x 1, y 10", "x 2, y 1", "x 3, y 100"]
    for p in points:
        column = slice(round(p.x * wide), round((p.x + p.width) * wide))
        rows = np.flatnonzero(red[:, column].any(axis=1))
        middle = (p.y + p.height / 2.0) * tall
        assert abs(rows.mean() - middle) < 1.5  # the centre of the mark's pixels
    assert red.sum() > 30


def test_bars_and_scatters_and_names_at_ticks():
    axes = one()
    axes.bar([0, 1], [3.0, 5.0], color="#00ff00", label="size")
    axes.scatter([0.5], [4.0], label="other")
    axes.set_xticks([0, 1], ["none", r"5 \$ and $\rho$"])
    axes.set_title("panel")
    picture = drawn(axes)
    found = {p.text: p for p in figure_points(axes)}
    assert set(found) == {
        "panel, size: none, 3", "panel, size: 5 $ and rho, 5", "panel, other: 0.5, 4"
    }  # fmt: skip
    _, wide, _ = picture.shape
    bar = found["panel, size: none, 3"]
    green = (picture[..., 1] > 200) & (picture[..., 0] < 60)
    columns = np.flatnonzero(green[:, : wide // 2].any(axis=0))
    assert bar.x * wide == pytest.approx(columns.min(), abs=1.5)
    assert (bar.x + bar.width) * wide == pytest.approx(columns.max() + 1, abs=1.5)


def test_intervals_are_told_and_guides_are_not():
    axes = one()
    axes.errorbar([1.0], [2.0], xerr=[[0.5], [0.25]], yerr=[[1.0], [3.0]], capsize=2, label="a")
    axes.plot([0.0, 1.0], [0.0, 2.0], gid=f"{GUIDE}0")
    axes.axhline(1.0)
    drawn(axes)
    assert [p.text for p in figure_points(axes)] == ["a: 1 (0.5 to 1.25), 2 (1 to 5)"]


def test_points_nobody_can_tell_apart_and_missing_ones_are_left_out():
    axes = one()
    y = np.sin(np.linspace(0.0, 3.0, 2001))
    y[1000] = np.nan
    axes.plot(np.linspace(0.0, 1.0, 2001), y, label="line")
    axes.set_xlim(0.0, 0.5)  # the other half is outside
    drawn(axes)
    points = figure_points(axes)
    assert 30 < len(points) < 200
    at = np.array([(p.x, p.y) for p in points])
    assert np.hypot(*np.diff(at, axis=0).T).min() > 0.005
    assert ((at > -0.02) & (at < 1.0)).all()
    assert not any("nan" in p.text for p in points)
    assert max(float(p.text.split()[1].rstrip(",")) for p in points) <= 0.5


def test_panels_that_share_an_axis_share_its_label():
    with style():
        both = panels(None, 2, (6.0, 3.0), sharey=True)
    for axes in both:
        axes.plot([1.0], [2.0], "o")
    both[0].set_ylabel("height")
    drawn(both[0])
    assert [p.text for p in figure_points(both)] == ["1, height 2"] * 2


@mpl.rc_context({"axes.grid": False})
def test_what_is_no_figure_is_refused():
    with pytest.raises(ArgumentTypeError):
        figure_points("figure")
