"""Figure of the risk before and after post-processing."""

from typing import Any

import pandas as pd

from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    lines,
    pair,
    ratio_axis,
    require,
    style,
)

_COLUMNS = ("rho", "group_count", "risk_before", "risk_after")
_DOTTED: dict[str, Any] = {"color": "0.35", "linewidth": 1.0, "linestyle": (0, (1, 1))}


def _legend(axes: Axes, frame: pd.DataFrame, by: str, title: str, **where: Any) -> None:
    """Name each line by its value, the largest first, as ``lines`` draws them."""
    values = sorted(frame[by].unique().tolist(), reverse=True)
    handles = axes.get_legend_handles_labels()[0][: len(values)]
    names = [f"{value:.4g}" for value in values]
    bound = axes.plot([], [], **_DOTTED)
    axes.legend(
        [*handles, *bound],
        [*names, "not processed"],
        title=title,
        fontsize=8.0,
        title_fontsize=8.0,
        **where,
    )


def _headroom(axes: Axes) -> None:
    """Make room for a legend above the lines."""
    low, high = axes.get_ylim()
    top = high * (high / low) ** 0.5 if axes.get_yscale() == "log" else high + 0.5 * (high - low)
    axes.set_ylim(low, top)


def plot_postprocessing(
    by_rho: pd.DataFrame, by_group_count: pd.DataFrame, *, ax: Where = None
) -> Panels:
    """Draw the marginal risk after post-processing, and its bound (Figure 12 of Kazan and Reiter).

    Parameters
    ----------
    by_rho : pandas.DataFrame
        Left panel, against rho, one line for each ``group_count``.  Columns ``rho``,
        ``group_count``, ``risk_before`` and ``risk_after``, as in
        :class:`PostprocessingComparison`; one prior and one number of siblings.
    by_group_count : pandas.DataFrame
        Right panel, against the group's count, one line for each ``rho``; the same columns.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels; thin dotted lines are the same noisy counts not processed.
    """
    require(by_rho, _COLUMNS, "by_rho")
    require(by_group_count, _COLUMNS, "by_group_count")
    with style():
        left, right = both = pair(ax)
        lines(left, by_rho, "rho", "risk_after", markers=False, by="group_count")
        bound = by_rho.drop_duplicates("rho").sort_values("rho")
        left.plot(bound["rho"], bound["risk_before"], zorder=0, **_DOTTED)
        left.set(xscale="log", xlabel=r"$\rho$ of a block's count")
        lines(right, by_group_count, "group_count", "risk_after", markers=True, by="rho")
        for _, rows in by_group_count.groupby("rho"):
            ordered = rows.sort_values("group_count")
            right.plot(ordered["group_count"], ordered["risk_before"], zorder=0, **_DOTTED)
        right.set(xlabel="count of the group, $N$")
        if by_group_count["group_count"].max() > 20:
            right.set_xscale("log")
        for axes, frame in ((left, by_rho), (right, by_group_count)):
            axes.set_ylabel("marginal posterior / prior")
            ratio_axis(axes, pd.concat([frame["risk_before"], frame["risk_after"]]))
        _legend(left, by_rho, "group_count", "$N$")
        _headroom(right)
        _legend(right, by_group_count, "rho", r"$\rho$", loc="upper left", ncols=2)
        return both
