"""Boxes of the texts of a figure: which lie over each other, and which a line crosses."""

import contextlib
import itertools
import unittest.mock

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

_TOUCH = 1.0  # pixels by which boxes may overlap: letters have air around them


def visible_texts(figure):
    """Return the box of each text that is seen, with its words."""
    renderer = figure.canvas.get_renderer()
    found = []
    for text in figure.findobj(Text):
        if not (text.get_visible() and text.get_text().strip()):
            continue
        if any(not axes.get_visible() for axes in figure.axes if text.axes is axes):
            continue
        box = text.get_window_extent(renderer)
        if box.width and box.height and _drawn(text, box):
            found.append((text, box))
    return found


def _drawn(text, box):
    """Return whether a text is drawn: ticks beyond the ends of an axis are not."""
    for axes in text.figure.axes if text.figure else ():
        for axis, low, high, side in (
            (axes.xaxis, axes.bbox.x0, axes.bbox.x1, 0),
            (axes.yaxis, axes.bbox.y0, axes.bbox.y1, 1),
        ):
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if text in (tick.label1, tick.label2):
                    point = tick.get_loc()
                    place = axes.transData.transform((point, point))[side]
                    return tick.label1.get_visible() and low - 1 <= place <= high + 1
    return True


def _less(box):
    return Bbox.from_extents(box.x0 + _TOUCH, box.y0 + _TOUCH, box.x1 - _TOUCH, box.y1 - _TOUCH)


def label_faults(figure):
    """Return what is wrong with the texts of a figure as it is drawn now.

    Two texts over each other, a text outside of the figure, a line through a text that stands in
    its panel (or through the box of a legend).
    """
    if not hasattr(figure.canvas, "get_renderer"):
        FigureCanvasAgg(figure)
    texts, faults = visible_texts(figure), []
    for (one, box), (other, second) in itertools.combinations(texts, 2):
        if _less(box).overlaps(_less(second)):
            faults.append(f"{one.get_text()!r} lies over {other.get_text()!r}")
    for text, box in texts:
        if not (
            box.x0 >= figure.bbox.x0 - 2 and box.x1 <= figure.bbox.x1 + 2
            and box.y0 >= figure.bbox.y0 - 2 and box.y1 <= figure.bbox.y1 + 2
        ):  # fmt: skip
            faults.append(f"{text.get_text()!r} leaves the figure")
    inside = [
        (text.get_text(), box)
        for axes in figure.axes
        for text in axes.texts
        for one, box in texts
        if one is text
    ]
    renderer = figure.canvas.get_renderer()
    legends = [part for part in figure.findobj(Legend) if part.get_visible()]
    inside += [("a legend", part.get_window_extent(renderer)) for part in legends]
    own = {line for part in legends for line in part.findobj(Line2D)}
    for axes in figure.axes:
        for line in axes.lines:
            if line in own or not line.get_visible() or not len(line.get_xdata()):
                continue
            path = line.get_transform().transform_path(line.get_path())
            if not np.isfinite(path.vertices).all(axis=1).any():
                continue
            for words, box in inside:  # lines are drawn inside of their panel alone
                seen = Bbox.intersection(_less(box), axes.bbox)
                if seen is not None and path.intersects_bbox(seen, filled=False):
                    faults.append(f"a line of {line.get_label()!r} crosses {words!r}")
    return faults


@contextlib.contextmanager
def drawn_labels():
    """Collect the faults of all figures that are written meanwhile, for a screen or a phone."""
    faults, draw = [], FigureCanvasAgg.print_png

    def print_png(canvas, stream, **options):
        draw(canvas, stream, **options)
        size = tuple(canvas.figure.get_size_inches())
        faults.extend((size, fault) for fault in label_faults(canvas.figure))

    with unittest.mock.patch.object(FigureCanvasAgg, "print_png", print_png):
        yield faults
