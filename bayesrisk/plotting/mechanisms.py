"""Figure of several protections: what the adversary learns, against the error of the tables."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    pair,
    ratio_axis,
    require,
    style,
)

_RISK = ("marginal_risk", "marginal_risk_lower", "marginal_risk_upper")
_COLUMNS = ("protection", "target", "prior", *_RISK)
_BAR: dict[str, Any] = {"capsize": 2.5, "elinewidth": 1.1, "markersize": 5.0, "linestyle": "none"}


def _look(i: int) -> dict[str, Any]:
    """Return the colour and the marker of the i-th protection."""
    colours, markers = canvas._COLOURS, canvas._MARKERS
    return {"color": colours[i % len(colours)], "marker": markers[i % len(markers)], **_BAR}


def _interval(rows: pd.DataFrame) -> list[Any]:
    """Return the lengths of the error bars below and above the value."""
    value, lower, upper = (rows[column].to_numpy(dtype=float) for column in _RISK)
    return [np.maximum(value - lower, 0.0).tolist(), np.maximum(upper - value, 0.0).tolist()]


def _certain(axes: Axes, priors: pd.Series) -> None:
    """Mark the ratio at which the adversary is certain, where it is one number."""
    if priors.nunique() == 1:
        top = 1.0 / float(priors.iloc[0])
        axes.axhline(top, color="0.35", linewidth=1.0, linestyle=(0, (2, 2)), zorder=0)
        axes.annotate(
            "certain",
            (1.0, top),
            xycoords=("axes fraction", "data"),
            xytext=(-2, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7.5,
            color="0.25",
        )


def _by_target(axes: Axes, frame: pd.DataFrame, names: list[str]) -> None:
    """Draw every target's ratio, protections along the axis."""
    for i, name in enumerate(names):
        rows = frame[frame["protection"] == name]
        width = min(0.6, 0.12 * (len(rows) - 1))
        places = i + np.linspace(-0.5 * width, 0.5 * width, len(rows))
        axes.errorbar(places, rows["marginal_risk"], yerr=_interval(rows), **_look(i))
    axes.set_xticks(
        range(len(names)), [canvas.as_text(name) for name in names], rotation=25, ha="right"
    )
    axes.tick_params(axis="x", labelsize=8.0, length=0.0)
    axes.grid(visible=False, axis="x")
    axes.set(xlim=(-0.6, len(names) - 0.4), xlabel="protection; one mark for each target")


def _against_utility(axes: Axes, frame: pd.DataFrame, names: list[str], utility: str) -> None:
    """Draw the mean over targets against the error of the tables."""
    for i, name in enumerate(names):
        rows = frame[frame["protection"] == name]
        mean = rows[[*_RISK]].astype(float).mean().to_frame().T
        error = 1.96 * float(rows[f"{utility}_error"].iloc[0])
        axes.errorbar(
            [float(rows[utility].iloc[0])],
            mean["marginal_risk"],
            yerr=_interval(mean),
            xerr=[[error], [error]],
            **_look(i),
        )
        look = {key: _look(i)[key] for key in ("color", "marker", "markersize", "linestyle")}
        axes.plot([], [], label=canvas.as_text(name), **look)
    values = frame[utility].to_numpy(dtype=float)
    positive = values[values > 0.0]
    if positive.size and positive.max() > 20.0 * positive.min():
        axes.set_xscale("symlog", linthresh=float(positive.min()))
        axes.set_xlim(left=-0.2 * float(positive.min()))
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(utility.replace("_", " ") + " of a published count")
    axes.legend(fontsize=8.0)


def plot_mechanisms(
    frame: pd.DataFrame, *, utility: str = "mean_absolute_error", ax: Where = None
) -> Panels:
    """Draw the risk ratio of several protections, by target and against the error of the tables.

    Parameters
    ----------
    frame : pandas.DataFrame
        From :func:`compare_mechanisms`: columns ``protection``, ``target``, ``prior``,
        ``marginal_risk`` with ``_lower`` and ``_upper``, and ``utility`` with ``_error``.
    utility : {"mean_absolute_error", "root_mean_square_error"}, default "mean_absolute_error"
        What the right panel shows along the axis.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Left every target, right the mean over targets; bars are intervals.
    """
    check.choice(utility, "utility", ("mean_absolute_error", "root_mean_square_error"))
    require(frame, (*_COLUMNS, utility, f"{utility}_error"))
    names = list(dict.fromkeys(frame["protection"].tolist()))
    with style():
        left, right = both = pair(ax, height=3.4)
        _by_target(left, frame, names)
        _against_utility(right, frame, names, utility)
        for axes in (left, right):
            axes.set_ylabel("marginal posterior / prior")
            ratio_axis(axes, pd.concat([frame[column] for column in _RISK]))
            _certain(axes, frame["prior"])
        right.set_ylim(left.get_ylim())
        return both
