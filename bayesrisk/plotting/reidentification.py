"""Figures of re-identification, majority inference and solution variability."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    legend_outside,
    pair,
    panel,
    panels,
    require,
    style,
)

_GUESSERS = ("MDG", "PRG")
_RATES = (
    "attacker",
    "source",
    "block_size",
    "putative",
    "precision",
    "precision_lower",
    "precision_upper",
)
_RATIO = ("left_out_ratio", "left_out_ratio_lower", "left_out_ratio_upper")


def _look(i: int) -> dict[str, Any]:
    return {
        "color": canvas._COLOURS[i % len(canvas._COLOURS)],
        "linestyle": canvas._DASHES[i % len(canvas._DASHES)],
        "marker": canvas._MARKERS[i % len(canvas._MARKERS)],
        "markersize": 4.0,
    }


def _guesser(i: int) -> dict[str, Any]:
    """Return the look of a baseline: grey, so that the attacks stand out."""
    return {"color": "0.4", "linestyle": ("--", ":")[i % 2], "marker": ("x", "+")[i % 2]}


def plot_reidentification(rates: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw the precision of re-identification by block size, guessers in grey.

    Parameters
    ----------
    rates : pandas.DataFrame
        Result of :meth:`Reidentification.to_frame` with its rows by size, for one attacker.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Precision with its intervals on the left; on the right its ratio to what a
        guesser reaches without the target's record (``left_out_ratio``), with its interval.
    """
    require(rates, (*_RATES, *_RATIO), "rates")
    if rates["attacker"].nunique() > 1:
        names = rates["attacker"].unique().tolist()
        raise ArgumentError(f"rates must be of one attacker, got {names}")
    shown = rates[(rates["block_size"] != "All") & (rates["putative"] > 0)]
    sizes = [
        size for size in dict.fromkeys(rates["block_size"]) if size in set(shown["block_size"])
    ]
    position = {size: i for i, size in enumerate(sizes)}
    with style():
        left, right = both = pair(ax, 7.2, 3.4)
        sources = list(dict.fromkeys(rates["source"]))
        attacks = [name for name in sources if name not in _GUESSERS]
        for name in sources:
            rows = shown[shown["source"] == name]
            is_guess = name in _GUESSERS
            look = _guesser(_GUESSERS.index(name)) if is_guess else _look(attacks.index(name))
            # Side by side, so that intervals do not hide each other.
            # A source without a link has no row, and no number to add to.
            at = np.array([float(position[size]) for size in rows["block_size"]])
            at += 0.08 * (sources.index(name) - len(sources) / 2)
            span = [
                (rows["precision"] - rows["precision_lower"]).clip(lower=0.0).tolist(),
                (rows["precision_upper"] - rows["precision"]).clip(lower=0.0).tolist(),
            ]
            left.errorbar(at, rows["precision"], yerr=span, capsize=2.0, label=name, **look)
            if not is_guess:
                ratio = rows["left_out_ratio"]
                above = (rows["left_out_ratio_upper"] - ratio).replace(np.inf, np.nan)
                span = [  # few blocks: no upper end
                    (ratio - rows["left_out_ratio_lower"]).clip(lower=0.0).tolist(),
                    above.clip(lower=0.0).tolist(),
                ]
                right.errorbar(at, ratio, yerr=span, capsize=2.0, label=name, **look)
        left.set(ylabel="precision", ylim=(0.0, 1.05))
        right.set_ylabel("precision / guesser without the record")
        canvas.ratio_axis(right, shown["left_out_ratio"])
        # Ratios set the scale: the interval of a class with few blocks may run off it.
        known = shown.loc[~shown["source"].isin(_GUESSERS), "left_out_ratio"].dropna()
        known = known[known > 0]
        if len(known):
            log = right.get_yscale() == "log"
            right.set_ylim(min(known.min(), 1.0) / 2.0 if log else 0.0, 1.7 * max(known.max(), 1.0))
        for axes in (left, right):
            axes.set_xticks(range(len(sizes)), sizes, rotation=30, ha="right")
            axes.set_xlabel("people in the block")
        legend_outside(both, *left.get_legend_handles_labels(), side="upper", ncols=6)
        return both


def _steps(axes: Axes, rows: pd.DataFrame, label: str, look: dict[str, Any]) -> None:
    """Draw precision against the share of records at or above it, as steps."""
    recall = np.insert(rows["recall"].to_numpy(float), 0, 0.0)
    precision = rows["precision"].to_numpy(float)
    precision = np.insert(precision, 0, precision[0])
    plain = {k: v for k, v in look.items() if k not in ("marker", "markersize")}
    axes.step(recall, precision, where="pre", label=label, **plain)


def plot_majority(curves: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw the precision of majority inference over records, a panel for each threshold.

    Parameters
    ----------
    curves : pandas.DataFrame
        Results of :meth:`MajorityInference.curve`, those of several thresholds one under another.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Precision against the share of records inferred with that precision or a higher one, a line
        for each release.
    """
    require(curves, ("release", "threshold", "precision", "recall"), "curves")
    thresholds = sorted(curves["threshold"].unique().tolist())
    with style():
        size = (7.2, 2.9 * ((len(thresholds) + 1) // 2))
        columns = min(2, len(thresholds))
        every = panels(ax, len(thresholds), size, columns=columns, sharex=True, sharey=True)
        for axes, threshold in zip(every, thresholds, strict=True):
            at = curves[curves["threshold"] == threshold]
            for i, release in enumerate(dict.fromkeys(at["release"])):
                rows = at[at["release"] == release].sort_values("recall")
                _steps(axes, rows, canvas.as_text(release), _look(i))
            axes.set(title=f"majority of at least {threshold}", xlim=(0.0, 1.0), ylim=(0.0, 1.05))
            axes.set_ylabel("precision")
            axes.set_xlabel("share of people in blocks\nwith at least this precision")
            axes.label_outer()
        every[0].legend(loc="lower left", fontsize=8.0)
        return every


def plot_variability(quantiles: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw quantiles of solution variability over the population.

    Parameters
    ----------
    quantiles : pandas.DataFrame
        Result of :func:`variability_quantiles`; a column ``scope`` draws a line for each value.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Variability in percent against the cumulative percentage of people; where lower and upper
        bounds differ, the band between them.
    """
    require(quantiles, ("cumulative_percentage", "quantile_lower", "quantile_upper"), "quantiles")
    frame = quantiles if "scope" in quantiles else quantiles.assign(scope="")
    with style():
        axes = panel(ax, 4.6, 3.2)
        for i, scope in enumerate(dict.fromkeys(frame["scope"])):
            rows = frame[frame["scope"] == scope].sort_values("cumulative_percentage")
            at = rows["cumulative_percentage"]
            look = _look(i)
            axes.plot(at, rows["quantile_upper"], label=str(scope), **look)
            axes.fill_between(
                at,
                rows["quantile_lower"],
                rows["quantile_upper"],
                color=look["color"],
                alpha=0.2,
                linewidth=0.0,
            )
        axes.set(
            xlabel="people, cumulative percentage",
            ylabel="solution variability, percent",
            xlim=(0.0, 102.0),
        )
        axes.set_ylim(bottom=-0.02 * max(1.0, float(frame["quantile_upper"].max())))
        if frame["scope"].nunique() > 1:
            axes.legend(fontsize=8.0)
        return axes
