"""The values of the points of a figure, and where they are: what a page tells who points at one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesrisk.plotting._canvas import (
    GUIDE,
    Axes,
    Axis,
    BarContainer,
    Drawn,
    ErrorbarContainer,
    FixedLocator,
    PathCollection,
    figure_of,
)

_APART = 0.012  # of the width of a figure: nearer points of one line nobody can tell apart
_SIZE = 0.02  # of the width: what a pointer finds
_NUMBER = re.compile(r"[-+.\d\u2212e]*")
_MATHS = re.compile(r"(?<!\\)\$(.*?)(?<!\\)\$", re.S)


@dataclass(frozen=True)
class Point:
    """A mark of a figure: a box, and what it stands for.

    Attributes
    ----------
    x, y : float
        Left and upper edge of the box, as shares of the figure's width and height, from its left
        and upper edge.
    width, height : float
        Of the box, as shares of the figure's.
    text : str
        What the mark stands for: its line, values and interval.
    """

    x: float
    y: float
    width: float
    height: float
    text: str


def figure_points(drawn: Drawn) -> list[Point]:
    """Return what the marks of a figure stand for.

    Parameters
    ----------
    drawn : matplotlib.axes.Axes, array of them, or matplotlib.figure.Figure
        What a plot function returned, drawn once (:func:`save_figure` does).

    Returns
    -------
    list of Point
        For every point of a line, point of a scatter and bar inside the panels: the name of its
        line, its values with four significant digits, and its interval where it has one.  Points
        of one line that lie closer together than anybody could point at are left out.
    """
    whole = figure_of(drawn)
    to_share = whole.transFigure.inverted()
    least = _SIZE * np.array([1.0, whole.get_figwidth() / whole.get_figheight()])
    found = []
    for axes in whole.axes:
        if not axes.get_visible():
            continue
        box = axes.get_position()
        low, high = np.array(box.min) - 1e-9, np.array(box.max) + 1e-9
        for at, text in _marks(axes):
            shares = to_share.transform(axes.transData.transform(at))
            # A bar may begin below what an axis shows.
            shares = np.clip(shares, low, high) if len(shares) > 1 else shares
            middle, size = shares.mean(axis=0), np.maximum(np.ptp(shares, axis=0), least)
            if (middle >= low).all() and (middle <= high).all():
                left, top = middle[0] - size[0] / 2.0, 1.0 - middle[1] - size[1] / 2.0
                width, height = float(size[0]), float(size[1])
                found.append(Point(float(left), float(top), width, height, text))
    return found


def _marks(axes: Axes) -> Iterator[tuple[Any, str]]:
    """Yield data coordinates, one pair or two corners, and the words of every mark."""
    ranged = {c[0]: c for c in axes.containers if isinstance(c, ErrorbarContainer) and c[0]}
    caps = {cap for several in ranged.values() for cap in several[1]}
    for line in axes.lines:
        if line in caps or str(line.get_gid()).startswith(GUIDE):
            continue
        if line.get_transform() != axes.transData:  # a ruler across the whole panel
            continue
        bars = ranged.get(line)
        values = np.asarray(line.get_xydata(), float)
        reach = _intervals(bars, len(values))
        for i in _apart(axes, values):
            yield values[[i]], _words(axes, bars or line, values[i], reach[i])
    for points in axes.collections:
        if isinstance(points, PathCollection):
            for pair in np.asarray(points.get_offsets(), float):
                yield pair[None], _words(axes, points, pair)
    for several in axes.containers:
        if not isinstance(several, BarContainer):
            continue
        for bar in several.patches:
            low = np.array(bar.get_xy(), float)
            size = np.array([bar.get_width(), bar.get_height()], float)
            end = size * ((1.0, 0.5) if several.orientation == "horizontal" else (0.5, 1.0))
            yield np.array([low, low + size]), _words(axes, several, low + end)


def _apart(axes: Axes, values: Any) -> list[int]:
    """Return which points of a line are told: finite, and far enough from the one before."""
    with np.errstate(all="ignore"):
        at = axes.transData.transform(values) / figure_of(axes).bbox.width
    kept: list[int] = []
    for i in np.flatnonzero(np.isfinite(at).all(axis=1)).tolist():
        if not kept or np.hypot(*(at[i] - at[kept[-1]])) >= _APART:
            kept.append(i)
    return kept


def _intervals(bars: ErrorbarContainer | None, points: int) -> list[tuple[str, str]]:
    """Return the intervals of every point in words, across and up; empty where it has none."""
    found = [["", ""] for _ in range(points)]
    if bars is not None:
        has = [axis for axis, there in ((0, bars.has_xerr), (1, bars.has_yerr)) if there]
        for axis, lines in zip(has, bars[2], strict=True):
            for one, ends in zip(found, lines.get_segments(), strict=False):
                if len(ends):  # a value that is no number has no segment
                    one[axis] = f" ({ends[:, axis].min():.4g} to {ends[:, axis].max():.4g})"
    return [(across, up) for across, up in found]


def _words(axes: Axes, what: Any, pair: Any, reach: tuple[str, str] = ("", "")) -> str:
    """Return "panel, line: across 1, up 2 (1 to 3)"."""
    beside = [axes, *axes.get_shared_y_axes().get_siblings(axes)]  # one of which has the label
    below = [axes, *axes.get_shared_x_axes().get_siblings(axes)]
    across = _said([one.xaxis for one in below], float(pair[0])) + reach[0]
    up = _said([one.yaxis for one in beside], float(pair[1])) + reach[1]
    name = str(what.get_label())
    legends = [axes.get_legend(), *figure_of(axes).legends]
    title = next((one.get_title().get_text() for one in legends if one is not None), "")
    line = "" if name.startswith("_") else f"{title} {name}"
    head = ", ".join(part for part in (_plain(axes.get_title()), _plain(line)) if part)
    return f"{head}: {across}, {up}" if head else f"{across}, {up}"


def _said(alike: list[Axis], value: float) -> str:
    """Return what alike axes call a value: the name at a tick, or their label and the number."""
    if isinstance(alike[0].get_major_locator(), FixedLocator):
        places = list(alike[0].get_majorticklocs())
        names = alike[0].get_major_formatter().format_ticks(places)
        for place, name in zip(places, names, strict=False):
            if place == value and not _NUMBER.fullmatch(name):
                return _plain(name)
    label = next((text for axis in alike if (text := _plain(axis.get_label().get_text()))), "")
    return f"{label} {value:.4g}".strip()


def _plain(text: str) -> str:
    """Return a label of a figure as words on one line, without the signs of mathematics."""
    words = _MATHS.sub(lambda found: re.sub(r"[\\{}^]", "", found.group(1)), text)
    return " ".join(words.replace(r"\$", "$").split())
