"""Figures.  The only module that imports matplotlib; it draws frames and recomputes nothing.

Every function takes a data frame with named columns (from :meth:`BlockRisk.to_frame`, from a
sweep, or your own) and returns a ``matplotlib.figure.Figure``.  Colours are Okabe and Ito's, safe
for colour-blind readers, and every line also has its own dash and marker for print.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bayesrisk.exceptions import ArgumentError

__all__ = [
    "plot_correct_decision",
    "plot_levels",
    "plot_marginal_risk",
    "plot_released_count",
    "save_figure",
]

# Okabe and Ito (2008), without yellow, which vanishes on paper.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
_DASHES: list[Any] = ["-", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), "-", "--"]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "bayesrisk",
}


def _label(value: float) -> str:
    """Write a probability as a person would: 1/864, 0.3, 1e-300."""
    fraction = Fraction(value).limit_denominator(10_000)
    if fraction.numerator == 1 and abs(float(fraction) - value) <= 1e-12 * value:
        return f"1/{fraction.denominator}"
    return f"{value:.4g}"


def _require(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ArgumentError(
            f"frame must have the columns {', '.join(columns)}; missing: {', '.join(missing)}"
        )
    if frame.empty:
        raise ArgumentError("frame must have at least one row, got none")


def _lines(
    axes: Axes, frame: pd.DataFrame, x: str, y: str, *, markers: bool, by: str = "prior"
) -> None:
    """Draw one line for each value of ``by``, the largest first."""
    for i, value in enumerate(sorted(frame[by].unique().tolist(), reverse=True)):
        ordered = frame[frame[by] == value].sort_values(x)
        axes.plot(
            ordered[x],
            ordered[y],
            color=_COLOURS[i % len(_COLOURS)],
            linestyle=_DASHES[i % len(_DASHES)],
            marker=_MARKERS[i % len(_MARKERS)] if markers else None,
            markersize=4.0 if len(ordered) <= 15 else 3.0,
            label=_label(value),
        )


def _mark(axes: Axes, budgets: Mapping[str, float]) -> None:
    """Mark chosen budgets by vertical lines, their names at the top, left of the line.

    Where the next budget to the left is close the name goes to the right.
    """
    before = 0.0
    for name, rho in sorted(budgets.items(), key=lambda item: item[1]):
        axes.axvline(rho, color="0.35", linewidth=1.0, linestyle=(0, (2, 2)), zorder=0)
        right = before > rho / 4.0
        axes.annotate(
            name,
            (rho, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3 if right else -3, -3),
            textcoords="offset points",
            ha="left" if right else "right",
            va="top",
            rotation=90,
            fontsize=7.5,
            color="0.25",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )
        before = rho


def _ratio_axis(axes: Axes, values: pd.Series) -> None:
    """Mark the ratio 1, nothing learned; use a logarithmic axis where ratios spread widely."""
    axes.axhline(1.0, color="0.35", linewidth=1.0, zorder=0)
    finite = values[(values > 0.0) & np.isfinite(values)]
    spread = float(finite.max() / finite.min()) if len(finite) else 1.0
    if spread > 20.0:
        axes.set_yscale("log")
        subs = (1.0, 2.0, 5.0) if spread < 300.0 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())


def _pair(width: float = 7.2, height: float = 3.1) -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    left, right = figure.subplots(1, 2)
    return figure, left, right


def _legend(axes: Axes, *, smallest_first: bool = False) -> None:
    """Add a legend in the order in which the lines lie above each other."""
    handles, labels = axes.get_legend_handles_labels()
    step = -1 if smallest_first else 1
    axes.legend(handles[::step], labels[::step], title="prior", fontsize=8.0, title_fontsize=8.0)


def plot_released_count(frame: pd.DataFrame) -> Figure:
    """Draw posterior and risk ratio against the released count (Figure 1 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``noisy_count``, ``prior``, ``posterior`` and ``risk_ratio``.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, one line for each prior.

    Raises
    ------
    ArgumentError
        If a column is missing or there is no row.
    """
    _require(frame, ("noisy_count", "prior", "posterior", "risk_ratio"))
    with mpl.rc_context(_STYLE):
        figure, left, right = _pair()
        _lines(left, frame, "noisy_count", "posterior", markers=True)
        _lines(right, frame, "noisy_count", "risk_ratio", markers=True)
        left.set(xlabel="released count", ylabel="posterior of the truth", ylim=(-0.02, 1.02))
        right.set(xlabel="released count", ylabel="posterior / prior")
        _ratio_axis(right, frame["risk_ratio"])
        _legend(left)
        return figure


def plot_marginal_risk(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None
) -> Figure:
    """Draw marginal posterior and marginal risk against rho (Figure 2 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior``, ``marginal_posterior`` and ``marginal_risk``.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, one line for each prior, rho on a logarithmic axis.

    Raises
    ------
    ArgumentError
        If a column is missing or there is no row.
    """
    _require(frame, ("rho", "prior", "marginal_posterior", "marginal_risk"))
    with mpl.rc_context(_STYLE):
        figure, left, right = _pair()
        _lines(left, frame, "rho", "marginal_posterior", markers=False)
        _lines(right, frame, "rho", "marginal_risk", markers=False)
        for axes in (left, right):
            axes.set(xscale="log", xlabel=r"$\rho$ of the count")
            _mark(axes, budgets or {})
        left.set(ylabel="marginal posterior of the truth", ylim=(-0.02, 1.02))
        right.set(ylabel="marginal posterior / prior")
        _ratio_axis(right, frame["marginal_risk"])
        _legend(right, smallest_first=True)
        return figure


def plot_correct_decision(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None
) -> Figure:
    """Draw the probability of a correct decision against rho (Figure 3 of Kazan and Reiter).

    The curves are jagged: between two rises the decision threshold stands still while the noise
    shrinks, so that the releases which would convince the adversary become rarer.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior`` and ``correct_decision_probability``.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.

    Returns
    -------
    matplotlib.figure.Figure
        One panel, one line for each prior, rho on a logarithmic axis.

    Raises
    ------
    ArgumentError
        If a column is missing or there is no row.
    """
    _require(frame, ("rho", "prior", "correct_decision_probability"))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 3.3), layout="constrained")
        axes = figure.subplots()
        _lines(axes, frame, "rho", "correct_decision_probability", markers=False)
        axes.set(
            xscale="log",
            xlabel=r"$\rho$ of the count",
            ylabel="probability of a correct decision",
            ylim=(-0.02, 1.02),
        )
        _mark(axes, budgets or {})
        _legend(axes)
        return figure


def plot_levels(frame: pd.DataFrame) -> Figure:
    """Draw marginal posterior and risk by the number of levels used (Figure 7 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``levels``, ``prior``, ``marginal_posterior`` and ``marginal_risk``.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, one line for each prior.

    Raises
    ------
    ArgumentError
        If a column is missing or there is no row.
    """
    _require(frame, ("levels", "prior", "marginal_posterior", "marginal_risk"))
    with mpl.rc_context(_STYLE):
        figure, left, right = _pair()
        _lines(left, frame, "levels", "marginal_posterior", markers=True)
        _lines(right, frame, "levels", "marginal_risk", markers=True)
        for axes in (left, right):
            axes.set(xlabel="levels at which the target is unique")
            axes.set_xticks(sorted(frame["levels"].unique()))
        left.set(ylabel="marginal posterior of the truth", ylim=(-0.02, 1.02))
        right.set(ylabel="marginal posterior / prior")
        _ratio_axis(right, frame["marginal_risk"])
        _legend(right, smallest_first=True)
        return figure


def save_figure(figure: Figure, stem: str | Path) -> list[Path]:
    """Write a figure as PNG (200 dpi) and SVG, the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to write.
    stem : path-like
        Path without its ending; the folder must exist.

    Returns
    -------
    list of pathlib.Path
        The two files.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    written = []
    with mpl.rc_context(_STYLE):
        for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            path = Path(f"{stem}.{ending}")
            figure.savefig(path, dpi=200, metadata=metadata)
            written.append(path)
    return written
