"""Figures of audits: what adversaries learn, and what protecting from it costs."""

from collections.abc import Sequence

import pandas as pd

from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Panels, Where, legend_outside, panels, require, style

#: Attacks whose name says how the release was read.
_NAMES = ("reconstruction", "majority", "claims")
_THREE = (
    ("right_prior", "before any release", "o", "none"),
    ("right_without", "without their own record", "s", "none"),
    ("right_posterior", "after the release", "D", None),
)


def plot_audit(
    summary: pd.DataFrame,
    errors: pd.Series,
    *,
    curves: Sequence[Sequence[str]] = (),
    ax: Where = None,
) -> Panels:
    """Draw what is learned from people's own records against the error of the tables.

    Parameters
    ----------
    summary : pandas.DataFrame
        Rows of one group, as :func:`~bayesrisk.risk.audit_summary` gives them.
    errors : pandas.Series
        Mean absolute error of a published count, by the name of the protection.
    curves : sequence of sequences of str, optional
        Names of protections whose points a line joins, in order: one mechanism along a parameter.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each adversary; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each adversary, a point with its interval for each protection and reading.
    """
    needed = ("protection", "attack", "adversary", "own", "own_lower", "own_upper")
    require(summary, needed, "summary")
    who = list(dict.fromkeys(summary["adversary"].tolist()))
    names = [canvas.as_text(_name(row)) for _, row in summary.iterrows()]
    order = list(dict.fromkeys(names))
    with style():
        # The legend below has two columns; beyond three rows it would take the panels' place.
        height = 3.3 + 0.2 * max(-(-len(order) // 2) - 3, 0)
        every = panels(ax, len(who), (1.4 + 2.4 * len(who), height), sharey=True)
        for number, (axes, adversary) in enumerate(zip(every, who, strict=True)):
            rows = summary[summary["adversary"] == adversary]
            axes.axhline(0.0, color="0.6", linewidth=0.8)
            _join(axes, number, rows, errors, curves)
            for _, row in rows.iterrows():
                name = canvas.as_text(_name(row))
                colour, marker = canvas.colour_and_marker(order.index(name))
                own = 100.0 * row["own"]
                reach = [
                    [own - 100.0 * row["own_lower"]], [100.0 * row["own_upper"] - own]
                ]  # fmt: skip
                axes.errorbar(
                    [errors[row["protection"]]], [own], yerr=reach,
                    color=colour, marker=marker, capsize=2.5, linestyle="none", label=name,
                )  # fmt: skip
            axes.set_title(canvas.as_text(adversary), fontsize=9.5)
            axes.set_xlabel("mean absolute error of a count")
        every[0].set_ylabel("learned from own record,\nmore people guessed right (points)")
        handles: dict[str, object] = {}
        for axes in every:
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        legend_outside(every, list(handles.values()), list(handles), ncols=2)
        return every


def _join(
    axes: canvas.Axes,
    number: int,
    rows: pd.DataFrame,
    errors: pd.Series,
    curves: Sequence[Sequence[str]],
) -> None:
    """Draw a line through the points of every curve, for each reading of its releases."""
    for i, names in enumerate(curves):
        for attack, read in rows.groupby("attack", sort=False):
            own = read.set_index("protection")["own"]
            there = [name for name in names if name in own.index]
            if len(there) < 2:
                continue
            # Its name says that it is a guide for the eye, without points of its own.
            axes.plot(
                [errors[name] for name in there], [100.0 * own[name] for name in there],
                color="0.7", linewidth=1.2, zorder=1, gid=f"{canvas.GUIDE}{number}-{i}-{attack}",
            )  # fmt: skip


def plot_beliefs(summary: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw how often every adversary is right: before, without the target's record, and after.

    Parameters
    ----------
    summary : pandas.DataFrame
        Rows of one group, as :func:`~bayesrisk.risk.audit_summary` gives them.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each adversary; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each adversary, a line for each protection and reading.
    """
    require(summary, ("protection", "attack", "adversary", *(c for c, *_ in _THREE)), "summary")
    who = list(dict.fromkeys(summary["adversary"].tolist()))
    lines = list(dict.fromkeys(_name(row) for _, row in summary.iterrows()))
    with style():
        # The legend below is one row, wider than one panel.
        size = (max(2.6 + 2.1 * len(who), 5.4), 1.5 + 0.32 * len(lines))
        every = panels(ax, len(who), size, sharey=True)
        for axes, adversary in zip(every, who, strict=True):
            rows = summary[summary["adversary"] == adversary]
            at = [len(lines) - 1 - lines.index(_name(row)) for _, row in rows.iterrows()]
            low = 100.0 * rows[[c for c, *_ in _THREE]].min(axis=1)
            high = 100.0 * rows[[c for c, *_ in _THREE]].max(axis=1)
            axes.hlines(at, low, high, color="0.75", linewidth=2.0, zorder=1)
            for i, (column, name, marker, face) in enumerate(_THREE):
                colour, _ = canvas.colour_and_marker(i)
                axes.scatter(
                    100.0 * rows[column], at, marker=marker, s=34, label=name, zorder=2 + i,
                    edgecolors=colour, facecolors=colour if face is None else face,
                )  # fmt: skip
            axes.set_title(canvas.as_text(adversary), fontsize=9.5)
            axes.set_xlabel("people guessed right (%)")
            axes.set_xlim(0.0, 103.0)
        every[0].set_yticks(range(len(lines)), [canvas.as_text(n) for n in reversed(lines)])
        every[0].set_ylim(-0.6, len(lines) - 0.4)
        legend_outside(every, *every[0].get_legend_handles_labels(), ncols=3)
        return every


def _name(row: pd.Series) -> str:
    """Return what a point is called: the protection, and how it is read where that needs saying."""
    protection, attack = str(row["protection"]), str(row["attack"])
    if attack == "likelihood":
        return protection
    return f"{protection}, {attack if attack in _NAMES else f'read {attack}'}"
