"""Figure of a plan: what each setting of rules costs, and how much it gives away."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes

_ROLES = {
    "tried": ("tried", ".", "0.6"),
    "finer": ("one step finer", "^", "C1"),
    "agency": ("rules of agencies, all tables", "s", "C0"),
    "coarsest": ("coarsest", "v", "0.4"),
    "chosen": ("chosen", "*", "C3"),
}


@canvas.styled
def plot_plan(
    frontier: pd.DataFrame, *, leak: str = "proved", most: float | None = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the cost of each setting against what it gives away.

    Settings that were looked at only until a limit was exceeded give away at least what is drawn.

    Parameters
    ----------
    frontier : pandas.DataFrame
        Settings, as :class:`~bayesrisk.risk.ReleasePlan` has them.
    leak : str, default "proved"
        Column with what is given away.
    most : float, optional
        Its limit, drawn as a line.
    ax : Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Error across, what is given away up.
    """
    canvas.require(frontier, ["role", "error", leak], "frontier")
    group = canvas.panels(ax, 1, (6.0, 3.9))
    axes: Axes = group[0]
    rows_with_leak: Any = frontier[frontier[leak].notna()]
    for role, (label, marker, colour) in _ROLES.items():
        rows = rows_with_leak[rows_with_leak["role"] == role]
        # Rules of agencies may lie on each other: each has a look and a name of its own.
        named = rows["rule"].unique() if role == "agency" and "rule" in rows else [None]
        for number, name in enumerate(named):
            mine = rows if name is None else rows[rows["rule"] == name]
            if len(mine):
                look = {"marker": marker, "color": colour} if name is None else canvas.point(number)
                axes.scatter(
                    mine["error"], mine[leak], **look, s=130 if role == "chosen" else 40, zorder=3,
                    label=label if name is None else canvas.as_text(name),
                )  # fmt: skip
    if most is not None:
        check.scalar(most, "most", lower=0.0)
        axes.axhline(most, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_xscale("symlog", linthresh=1.0)  # what publishes nothing lies far to the right
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(-0.1, 1.5 * max(1.0, float(rows_with_leak["error"].max())))
    if leak != "gain":
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(bottom=-0.3, top=2.0 * float(np.nanmax([1.0, *rows_with_leak[leak]])))
    words = {"proved": "records proved", "recovered": "counts of 1 or 2 recovered",
             "sentences": "small counts proved to be at least 1",
             "gain": "gain from the own record (points)",
             "doubled": "people whose truth becomes twice as probable"}  # fmt: skip
    axes.set(xlabel="mean error of a count", ylabel=words.get(leak, leak))
    canvas.legend_outside(group, *axes.get_legend_handles_labels(), ncols=3)
    return axes
