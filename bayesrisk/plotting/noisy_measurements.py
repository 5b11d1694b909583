"""Figure of how many cells of a noisy measurement file exceed a risk ratio."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.plotting._canvas import Axes, logarithmic, panel, require, style

_COLUMNS = (
    "risk_ratio",
    "cells",
    "expected_known",
    "error_known",
    "expected_one_more",
    "error_one_more",
)
_LEAST = 0.5  # of a cell: below the axis
_LAWS: tuple[tuple[str, str, str, Any], ...] = (
    ("one_more", "noise alone, every true count $k + 1$", "#D55E00", (0, (6, 2))),
    ("known", "noise alone, every true count $k$", "#0072B2", (0, (3, 1.5))),
)


def _law(axes: Axes, frame: pd.DataFrame, name: str, text: str, colour: str, dash: Any) -> None:
    """Draw an expected number with a band of two standard deviations."""
    mean = frame[f"expected_{name}"].to_numpy(dtype=float)
    error = frame[f"error_{name}"].to_numpy(dtype=float)
    ratio = frame["risk_ratio"].to_numpy(dtype=float)
    low = np.maximum(mean - 2.0 * error, _LEAST / 10.0)
    axes.fill_between(ratio, low, mean + 2.0 * error, color=colour, alpha=0.18, step="post", lw=0)
    axes.step(
        ratio, np.where(mean > 0.0, mean, np.nan), where="post", color=colour, ls=dash, label=text
    )


def plot_noisy_measurements(
    curve: pd.DataFrame, thresholds: Iterable[float] = (), *, ax: Axes | None = None
) -> Axes:
    """Draw how many cells exceed a risk ratio, beside what the noise alone would give.

    Parameters
    ----------
    curve : pandas.DataFrame
        Columns ``risk_ratio``, ``cells``, ``expected_known``, ``error_known``,
        ``expected_one_more`` and ``error_one_more``: a frame of ``MeasurementsSummary.curve``.
    thresholds : iterable of float, optional
        Risk ratios to mark.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One panel, both axes logarithmic; bands are two standard deviations over the noise.
    """
    require(curve, _COLUMNS, "curve")
    given = check.items(thresholds, "thresholds")
    limits = [check.scalar(value, "thresholds", lower=0.0, bounds="()") for value in given]
    frame = curve.sort_values("risk_ratio")
    with style():
        axes = panel(ax, 5.4, 3.6)
        for law in _LAWS:
            _law(axes, frame, *law)
        cells = frame["cells"].to_numpy(dtype=float)
        axes.step(
            frame["risk_ratio"],
            np.where(cells > 0.0, cells, np.nan),
            where="post",
            color="black",
            label="this file",
        )
        for value in limits:
            axes.axvline(value, color="0.35", lw=1.0, ls=(0, (1, 1)), zorder=0)
        axes.set(
            yscale="log",
            xlabel="risk ratio $r$ (posterior / prior)",
            ylabel="cells with a ratio above $r$",
        )
        ratios = frame["risk_ratio"]
        axes.set_xlim(ratios.min(), ratios.max())
        tops = frame[["cells", "expected_known", "expected_one_more"]].to_numpy(dtype=float)
        axes.set_ylim(_LEAST, max(2.0 * tops.max(), 1.0))
        logarithmic(axes, ratios)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], fontsize=8.0, loc="upper right")
        return axes
