"""Figure of trade-off curves: true against false positives of tests of membership."""

from collections.abc import Mapping

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, panel, require, style

_RATES = ("false_positive_rate", "true_positive_rate")


def plot_tradeoff(curves: Mapping[str, pd.DataFrame], *, ax: Axes | None = None) -> Axes:
    """Draw the true positive rate of the best test against its false positive rate.

    Parameters
    ----------
    curves : mapping of str to pandas.DataFrame
        By what the legend says; each as :meth:`TradeOffCurve.to_frame` returns it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each curve, and the diagonal, on which a test does no better than chance.
    """
    if not check.mapping(curves, "curves"):
        raise ArgumentError("curves must be at least one, got none")
    for frame in curves.values():
        require(frame, _RATES)
    with style():
        axes = panel(ax, 3.9, 3.6)
        axes.plot([0.0, 1.0], [0.0, 1.0], color="0.35", linewidth=1.0, zorder=0)
        for i, (name, frame) in enumerate(curves.items()):
            axes.plot(
                *(frame[rate] for rate in _RATES),
                label=canvas.as_text(name),
                color=canvas._COLOURS[i % len(canvas._COLOURS)],
                linestyle=canvas._DASHES[i % len(canvas._DASHES)],
            )
        axes.set(
            xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="false positive rate",
            ylabel="true positive rate", aspect="equal",
        )  # fmt: skip
        axes.legend(loc="lower right", fontsize=8.0)
        return axes
