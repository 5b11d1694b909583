"""Figures of occupancy violations: blocks, households linked, and variability of solutions."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    legend_outside,
    logarithmic,
    pair,
    panel,
    require,
    style,
)

_NAMES = {
    "none": "no protection",
    "swapping": "swapping",
    "das": "noise, DAS budget",
    "uniform": "noise, uniform",
    "das-hud": "DAS budget, HUD too",
    "uniform-hud": "uniform, HUD too",
    "sampling": "sampling attack",
}
_MEASURES = ("precision", "recall")
_CURVES = ("precision", "recall", "match_rate")


def _name(protection: str) -> str:
    return _NAMES.get(protection, canvas.as_text(protection))


def _look(i: int) -> dict[str, Any]:
    return {
        "color": canvas._COLOURS[i % len(canvas._COLOURS)],
        "linestyle": canvas._DASHES[i % len(canvas._DASHES)],
    }


def plot_occupancy_blocks(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw precision and recall of blocks said to hold a violation, by protection.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``table`` of an :class:`OccupancyResults`.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Bars are intervals; the short lines are blind guesses of as many blocks.
    """
    wanted = [f"{m}{end}" for m in _MEASURES for end in ("", "_lower", "_upper", "_baseline")]
    require(frame, ("protection", "infeasible_as", *wanted))
    names = list(dict.fromkeys(frame["protection"].tolist()))
    with style():
        both = pair(ax, height=3.4)
        for axes, measure in zip(both, _MEASURES, strict=True):
            _intervals(axes, frame, names, measure)
        # Intervals may be anywhere in a panel, and each protection has its own.
        legend_outside(both, *both[0].get_legend_handles_labels(), ncols=2)
        return both


def _intervals(axes: Axes, frame: pd.DataFrame, names: list[str], measure: str) -> None:
    """Draw one measure, protections along the axis, a mark for each reading."""
    readings = list(dict.fromkeys(frame["infeasible_as"].tolist()))
    for i, reading in enumerate(readings):
        rows = frame[frame["infeasible_as"] == reading].set_index("protection").loc[names]
        value = rows[measure].to_numpy(float)
        low, high = (rows[f"{measure}_{end}"].to_numpy(float) for end in ("lower", "upper"))
        place = np.arange(len(names)) + 0.26 * (i - 0.5 * (len(readings) - 1))
        error = [np.maximum(value - low, 0.0).tolist(), np.maximum(high - value, 0.0).tolist()]
        text = "not counted" if reading == "apart" else "counted as violations"
        axes.errorbar(
            place,
            value,
            yerr=error,
            color=canvas._COLOURS[i],
            marker=canvas._MARKERS[i],
            linestyle="none",
            markersize=5.0,
            capsize=2.5,
            label=f"infeasible blocks {text}",
        )
        blind = rows[f"{measure}_baseline"].to_numpy(float)
        axes.hlines(blind, place - 0.11, place + 0.11, color="0.35", linewidth=1.2)
    axes.plot([], [], color="0.35", linewidth=1.2, label="blind guess")
    axes.set_xticks(range(len(names)), [_name(n) for n in names], rotation=25, ha="right")
    axes.tick_params(axis="x", labelsize=8.0, length=0.0)
    axes.grid(visible=False, axis="x")
    axes.set(ylim=(-0.03, 1.05), ylabel=f"{measure}, blocks")


def plot_occupancy_linkage(
    frame: pd.DataFrame, *, key: str, unique: bool, against: str = "recall", ax: Where = None
) -> Panels:
    """Draw precision and match rate of households linked, by protection.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``curves`` of an :class:`OccupancyResults`.
    key : str
        Match key, of those in the frame.
    unique : bool
        Households that are alone in their block with their key, or all.
    against : {"recall", "k"}, default "recall"
        What lies along the axis of precision.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Left precision, with the rate of violations (a blind guess); right the match rate.
    """
    require(frame, ("protection", "key", "unique", "k", *_CURVES, "baseline"))
    check.choice(key, "key", tuple(dict.fromkeys(frame["key"].tolist())))
    check.choice(against, "against", ("recall", "k"))
    rows = frame[(frame["key"] == key) & (frame["unique"] == check.flag(unique, "unique"))]
    if rows.empty:
        raise ArgumentError(f"frame must have a row with key {key!r} and unique {unique}, got none")
    names = list(dict.fromkeys(rows["protection"].tolist()))
    with style():
        left, right = both = pair(ax, height=3.4)
        for i, name in enumerate(names):
            own = rows[rows["protection"] == name].sort_values("k")
            left.plot(own[against], own["precision"], label=_name(name), **_look(i))
            right.plot(own["k"], own["match_rate"], **_look(i))
        left.axhline(float(rows["baseline"].iloc[0]), color="0.35", linewidth=1.0, zorder=0)
        left.plot([], [], color="0.35", linewidth=1.0, label="blind guess")
        what = "unique households" if unique else "households"
        left.set(ylim=(-0.03, 1.03), xlabel=against, ylabel=f"precision, {what}")
        right.set(ylim=(-0.03, 1.03), xlabel="k, entries of the ranking", ylabel="match rate")
        for axes, shown in ((right, "match_rate"), (left, "precision")):
            # A study may have linked nobody: then there is nothing to scale.
            if (axes is right or against == "k") and rows[shown].notna().any():
                logarithmic(axes, rows["k"])
        legend_outside(both, *left.get_legend_handles_labels(), ncols=4)
        return both


def plot_occupancy_counts(frame: pd.DataFrame, *, protection: str, ax: Axes | None = None) -> Axes:
    """Draw reconstructed against true violations of every block.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``blocks`` of an :class:`OccupancyResults`.
    protection : str
        One of those in the frame.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One point for each block said to hold a violation; the line is equality.
    """
    require(frame, ("protection", "violations", "reconstructed"))
    check.choice(protection, "protection", tuple(dict.fromkeys(frame["protection"].tolist())))
    rows = frame[(frame["protection"] == protection) & frame["reconstructed"].notna()]
    with style():
        axes = panel(ax, 3.7, 3.3)
        axes.plot(
            rows["violations"],
            rows["reconstructed"],
            linestyle="none",
            marker="o",
            markersize=4.0,
            alpha=0.5,
            color=canvas._COLOURS[0],
        )
        # Noise can make far more violations than there are: each axis has its own scale.
        axes.axline((0.0, 0.0), slope=1.0, color="0.35", linewidth=1.0, zorder=0)
        axes.locator_params(axis="x", integer=True)
        axes.set(
            xlabel="households in violation",
            ylabel="mean of the reconstructions",
            title=_name(protection),
        )
        return axes


def plot_occupancy_variability(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw the distribution of solution variability over blocks and over households.

    Parameters
    ----------
    frame : pandas.DataFrame
        ``variability`` of an :class:`OccupancyResults`.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Cumulative shares, left of blocks, right of households, for each set of attributes.
    """
    require(frame, ("attributes", "share", "households"))
    kept = frame[frame["share"].notna()]
    with style():
        left, right = both = pair(ax, height=3.1)
        for i, name in enumerate(dict.fromkeys(kept["attributes"].tolist())):
            rows = kept[kept["attributes"] == name].sort_values("share")
            share = rows["share"].to_numpy(float)
            weights = (np.ones(len(rows)), rows["households"].to_numpy(float))
            for axes, weight in zip((left, right), weights, strict=True):
                below = np.cumsum(weight) / weight.sum()
                axes.step(
                    np.concatenate([[0.0], share]),
                    np.concatenate([[0.0], below]),
                    where="post",
                    label=f"{name} attributes",
                    **_look(i),
                )
        for axes, what in ((left, "blocks"), (right, "households")):
            axes.set(
                xlim=(-0.02, 1.02),
                ylim=(-0.02, 1.02),
                xlabel="at most this share of records may differ",
                ylabel=f"share of {what}",
            )
        left.legend(fontsize=8.0)
        return both
