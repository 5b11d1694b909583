"""Style, axes and files shared by all figures; the only module that imports matplotlib.

Colours are those of Okabe and Ito, safe for colour-blind readers. Every line also has its own dash
and marker for print.
"""

import functools
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes as Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from bayesrisk._base import disk, validation as check
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Okabe and Ito (2008), without yellow, which vanishes on paper.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
_DASHES: list[Any] = ["-", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), "-", "--"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.title_fontsize": 8.0,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "bayesrisk",
}


def style() -> AbstractContextManager[None]:
    """Return a context manager that sets the style in which figures are drawn and written."""
    return mpl.rc_context(_STYLE)


def styled(draw: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function so that it draws in the package's figure style."""

    @functools.wraps(draw)
    def wrapper(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        with style():
            return draw(*arguments, **keywords)

    return wrapper


#: Lines of what is known without the numbers drawn: a blind guess, certainty, no release.
GREY: dict[str, Any] = {"color": "0.35", "linewidth": 1.0}
DOTTED = GREY | {"linestyle": (0, (1, 1))}
_MARKED = {"color": "0.35", "linewidth": 1.0, "linestyle": (0, (2, 2))}
_ROW = 10.0  # points between the names of two budgets
_WRITTEN = 200  # pixels to an inch of a file
_SHOWN = (100, 2)  # pixels to an inch where a notebook shows a figure, and how much finer it is


def _png_image(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """Return the PNG bytes of a figure for a notebook, and its width and height in pixels."""
    pixels, finer = _SHOWN
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="png", dpi=pixels * finer, metadata={"Software": None})
    width, height = figure.get_size_inches() * pixels
    return stream.getvalue(), {"width": round(width), "height": round(height)}


class _Panel(Axes):
    """Axes of a figure unknown to pyplot; a notebook shows the whole figure for them."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return _png_image(parent_figure(self))


class Panels(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of Axes; a notebook shows the whole figure for it."""

    @property
    def figure(self) -> Figure:
        """The figure of all Axes, which ``savefig`` writes to a file."""
        return parent_figure(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        # Axes that somebody else made are shown by whoever made them.
        native = self.size and all(isinstance(axes, _Panel) for axes in self.flat)
        return _png_image(parent_figure(self)) if native else None


Where: TypeAlias = Axes | Sequence[Axes] | Panels | None
Drawn: TypeAlias = Axes | Panels | Figure


def parent_figure(plot: Drawn) -> Figure:
    """Return the Matplotlib figure that holds the result of a plot function.

    Parameters
    ----------
    plot : matplotlib.axes.Axes, array of them, or matplotlib.figure.Figure
        Result of a plot function; a figure is returned unchanged.
    """
    return _whole(plot, "plot")


def _whole(plot: Drawn, name: str) -> Figure:
    first = plot.flat[0] if isinstance(plot, np.ndarray) and plot.size else plot
    figure = first.get_figure(root=True) if isinstance(first, Axes) else first
    if not isinstance(figure, Figure):
        raise ArgumentTypeError(
            name, "must be a Figure, Axes or an array of Axes", shown=type(plot).__name__
        )
    return figure


def as_text(name: object) -> str:
    """Return a name as text that Matplotlib draws literally and lists in legends.

    A dollar sign would begin mathematics, control characters have no glyph (and no place in SVG),
    and a first underscore would hide the name from a legend.
    """
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def label(value: float) -> str:
    """Return a probability as a short label: 1/864, 0.3, 1e-300."""
    fraction = Fraction(value).limit_denominator(10_000)
    if fraction.numerator == 1 and abs(float(fraction) - value) <= 1e-12 * value:
        return f"1/{fraction.denominator}"
    return f"{value:.4g}"


def require(
    frame: pd.DataFrame, columns: Iterable[str], name: str = "frame", *, maker: str = ""
) -> pd.DataFrame:
    """Return a data frame; raise if it is empty or lacks one of ``columns``, as ``maker`` has."""
    frame = check.frame(frame, name)
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        rule = f"must have the columns {', '.join(columns)}" + f", as of {maker}" * bool(maker)
        raise ArgumentError(name, f"{rule}; missing: {', '.join(missing)}")
    if frame.empty:
        raise ArgumentError(name, "must have at least one row", shown="none")
    return frame


def look(i: int, *, marked: bool = False) -> dict[str, Any]:
    """Return colour and dash of line ``i``, and with ``marked`` its marker."""
    properties = {"color": COLOURS[i % len(COLOURS)], "linestyle": _DASHES[i % len(_DASHES)]}
    if marked:
        properties |= {"marker": MARKERS[i % len(MARKERS)], "markersize": 4.0}
    return properties


def lines(
    axes: Axes,
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    markers: bool,
    column: str = "prior",
    jumps: str = "",
) -> None:
    """Draw one line for each value of ``column``, the largest first.

    If the whole number in a column ``jumps`` differs between two points, the line jumps midway.
    """  # fmt: skip
    for i, value in enumerate(sorted(frame[column].unique().tolist(), reverse=True)):
        ordered = frame[frame[column] == value].sort_values(x)
        across, up = ordered[x].to_numpy(float), ordered[y].to_numpy(float)
        if jumps in ordered:
            law = ordered[jumps].to_numpy(float)  # infinite where nothing is decided
            ends = np.flatnonzero(law[1:] != law[:-1])
            middle = np.sqrt(across[ends] * across[ends + 1])
            up = np.insert(
                up, np.repeat(ends + 1, 2), np.column_stack([up[ends], up[ends + 1]]).ravel()
            )
            across = np.insert(across, np.repeat(ends + 1, 2), np.repeat(middle, 2))
        axes.plot(
            across,
            up,
            **look(i, marked=markers) | {"markersize": 4.0 if len(ordered) <= 15 else 3.0},
            label=label(value),
        )


def mark(axes: Axes, budgets: Mapping[str, float] | None) -> None:
    """Mark chosen budgets by vertical lines, each named in its own row above the panel.

    Names are right of their lines if the budget lies in the left half of the panel, else left. The
    name with most lines on its way has the highest row, so that no line crosses it.
    """
    named = check.mapping({} if budgets is None else budgets, "budgets")
    positions = {
        n: check.scalar(rho, "budgets", lower=0.0, bounds="()") for n, rho in named.items()
    }
    for rho in positions.values():
        axes.axvline(rho, linestyle=(0, (2, 2)), zorder=0, **GREY)
    if not positions:
        return
    ends = axes.transAxes.inverted().transform(
        axes.transData.transform([(rho, axes.get_ylim()[1]) for rho in positions.values()])
    )[:, 0]
    right = 0.5 * (ends.min() + ends.max()) > 0.5
    order = sorted(positions.items(), key=lambda item: item[1], reverse=not right)
    for row, (name, rho) in enumerate(order):
        axes.annotate(
            as_text(name),
            (rho, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-2 if right else 2, 2 + _ROW * row),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom",
            fontsize=7.5,
            color="0.25",
            annotation_clip=False,
        )
        if row:  # the line of a higher row goes on to it
            axes.annotate(
                "", (rho, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 8 + _ROW * row),
                textcoords="offset points", annotation_clip=False,
                arrowprops={"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, **_MARKED},
            )  # fmt: skip
    if axes.get_title():
        axes.set_title(axes.get_title(), pad=6.0 + _ROW * len(order))


def ratio_axis(axes: Axes, values: pd.Series) -> None:
    """Draw a line at ratio 1, and make the y axis logarithmic where ratios span over 20-fold."""
    axes.axhline(1.0, zorder=0, **GREY)
    finite = values[(values > 0.0) & np.isfinite(values)]
    spread = float(finite.max() / finite.min()) if len(finite) else 1.0
    if spread > 20.0:
        axes.set_yscale("log")
        subs = (1.0, 2.0, 5.0) if spread < 300.0 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


_DECADES = 1e5  # from here on powers of ten, as matplotlib writes them, are enough


def logarithmic(axes: Axes, *values: pd.Series) -> None:
    """Make the x axis logarithmic, with plain tick labels few enough not to overlap."""
    axes.set_xscale("log")
    every = np.concatenate([np.asarray(part, dtype=float) for part in values])
    every = every[(every > 0.0) & np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if every.size else (1.0, 1.0)
    if not low < high < low * _DECADES:
        return
    steps = np.array([1, 1.2, 1.5, 2, 3, 4, 5, 7])
    if high / low > 12.0:
        steps = np.array([1, 2, 5] if high / low < 300.0 else [1])
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = (decades[:, None] * steps).ravel()
    inside = ticks[(ticks >= low) & (ticks <= high)]
    if inside.size < 2:
        ticks = np.asarray(MaxNLocator(4).tick_values(low, high))
        inside = ticks[(ticks >= low) & (ticks <= high)]
    axes.set_xticks(inside, [f"{tick:g}" for tick in inside])
    axes.set_xticks([], minor=True)


def point(i: int) -> dict[str, Any]:
    """Return colour and marker of point series ``i``; pairs repeat only after many series."""
    n = len(COLOURS)
    return {"color": COLOURS[i % n], "marker": MARKERS[(i + i // n) % len(MARKERS)]}


def reach(value: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> list[list[float]]:
    """Return the lengths of the error bars below and above each value."""
    middle, low, high = (np.asarray(part, dtype=float) for part in (value, lower, upper))
    return [np.maximum(middle - low, 0.0).tolist(), np.maximum(high - middle, 0.0).tolist()]


def named_ticks(axes: Axes, names: Sequence[str]) -> None:
    """Label the whole numbers 0, 1, ... of the x axis with names."""
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
    axes.tick_params(axis="x", labelsize=8.0, length=0.0)
    axes.grid(visible=False, axis="x")


def panels(
    ax: Where, n: int, size: tuple[float, float], *, columns: int | None = None, **sharing: Any
) -> Panels:
    """Return n panels in reading order: the given Axes, or those of a new figure.

    The figure is made outside pyplot, which would keep it for ever.
    """
    if ax is not None:
        several = [ax] if isinstance(ax, Axes | str) else check.items(ax, "ax")
        array = np.asarray(several, dtype=object).ravel()
        if array.size != n or not all(isinstance(axes, Axes) for axes in array):
            raise ArgumentError("ax", f"must hold {n} Axes, one for each panel", shown=array.size)
        return array.view(Panels)
    wide = columns or n
    if _narrow.get():  # one below the other
        rows = -(-n // wide)
        size, wide = (min(size[0], NARROW), n * size[1] / rows), 1
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(
        -(-n // wide), wide, squeeze=False, subplot_kw={"axes_class": _Panel}, **sharing
    )
    for spare in grid.flat[n:]:
        spare.set_visible(False)
    flat: Panels = grid.ravel()[:n].view(Panels)
    return flat


#: Inches of a figure for a phone.
NARROW = 3.6
_narrow: ContextVar[bool] = ContextVar("narrow", default=False)


@contextmanager
def narrow() -> Iterator[None]:
    """Draw the figures of a ``with`` block for a phone: panels below each other."""
    token = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(token)


def leftmost(group: Panels) -> Sequence[Axes]:
    """Return the panels of a row that need their own y label: on a phone all, else the first."""
    return [*group] if _narrow.get() else [group[0]]


def pair(ax: Where, width: float = 7.2, height: float = 3.1) -> Panels:
    return panels(ax, 2, (width, height))


def panel(ax: Axes | None, width: float, height: float) -> Axes:
    axes: Axes = panels(ax, 1, (width, height))[0]
    return axes


def legend_outside(
    group: Panels,
    handles: Sequence[Artist],
    labels: Sequence[str],
    *,
    side: str = "lower",
    ncols: int = 1,
    **look: Any,
) -> None:
    """Add a legend beside the panels of a new figure, or right of the last given panel.

    There are as many columns as fit, at most ``ncols``.
    """
    figure, last = parent_figure(group), group[-1]
    column = 0.5 + 0.06 * max(map(len, labels), default=0)  # inches
    if isinstance(last, _Panel):
        place: Any = f"outside {side} center"
        fitting = max(int(figure.get_figwidth() / column), 1)
        figure.legend(handles, labels, loc=place, ncols=min(ncols, fitting), **look)
        return
    if figure.get_layout_engine() is None:  # else that makes the room
        x, y, width, height = last.get_position().bounds
        last.set_position((x, y, max(width - column / figure.get_figwidth(), 0.4 * width), height))
    last.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), **look)


def named_once(group: Panels) -> tuple[list[Artist], list[str]]:
    """Return handles and labels of a legend for all panels, each label once."""
    handles: dict[str, Artist] = {}
    for axes in group:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    return list(handles.values()), list(handles)


def legend(group: Panels) -> None:
    """Add a legend of priors below the panels, in the order of drawing."""
    handles, labels = group[0].get_legend_handles_labels()
    legend_outside(group, handles, labels, title="prior", ncols=len(labels))


def phone_png(draw: Callable[[], Drawn]) -> tuple[bytes, float]:
    """Return the PNG of a figure drawn for a phone, and its width in inches."""
    stream = io.BytesIO()
    with narrow():
        figure = parent_figure(draw())
    with style(), _laid_out(figure):
        FigureCanvasAgg(figure).print_png(  # type: ignore[no-untyped-call]
            stream, metadata={"Software": None}
        )
    return stream.getvalue(), float(figure.get_figwidth())


def save_figure(figure: Drawn, stem: str | Path, *, private: bool = False) -> list[Path]:
    """Return paths of the PNG (200 dpi) and SVG files of a figure; its bytes are reproducible.

    Parameters
    ----------
    figure : matplotlib.axes.Axes, array of them, or matplotlib.figure.Figure
        Result of a plot function; the whole figure is written.
    stem : path-like
        Path in an existing folder; an ending ``.png`` or ``.svg`` is dropped.
    private : bool, default False
        Whether only the owner may read the files.
    """
    whole, start = _whole(figure, "figure"), check.path(stem, "stem")
    check.flag(private, "private")
    start = start.with_suffix("") if start.suffix in (".png", ".svg") else start
    png, svg = Path(f"{start}.png"), Path(f"{start}.svg")
    with style(), _laid_out(whole):
        with disk.whole_file(png, private=private) as stream:
            FigureCanvasAgg(whole).print_png(  # type: ignore[no-untyped-call]
                stream, metadata={"Software": None}
            )
        with disk.whole_file(svg, private=private) as stream:
            FigureCanvasSVG(whole).print_svg(  # type: ignore[no-untyped-call]
                stream, metadata={"Date": None}
            )
    return [png, svg]


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay a figure out at 200 dpi once for all its files, and restore it afterwards.

    ``savefig`` draws a figure twice for each file, the first time to lay it out anew.
    """
    canvas, dpi, engine = figure.canvas, figure.dpi, figure.get_layout_engine()
    # A layout begins where panels are, and would not come to the same bits from elsewhere.
    places = [(a, a.get_position(original=True).frozen(), a.get_in_layout()) for a in figure.axes]
    try:
        figure.dpi = _WRITTEN
        if engine is not None:
            FigureCanvasAgg(figure)  # whose letters the layout measures
        with warnings.catch_warnings():
            # A letter that no font has is drawn as a box; the text stands in the tables, too.
            warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
            if engine is not None:
                engine.execute(figure)
                figure.set_layout_engine("none")
            yield
    finally:
        figure.set_canvas(canvas)
        figure.dpi = dpi
        if engine is not None:
            figure.set_layout_engine(engine)
            for axes, place, inside in places:
                axes.set_position(place)
                axes.set_in_layout(inside)
