"""Figures of the risk of counts, and of several protections against the error of the tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where

# -----------------------------------------------------------------------------
# Figures of block-level risk: by released count, by rho, by level.


#: Columns of belief and ratio, label of the axis and whether points are marked, by what is across.
_AGAINST: dict[str, tuple[str, str, str, bool]] = {
    "noisy_count": ("posterior", "risk_ratio", "released count", True),
    "rho": ("marginal_posterior", "marginal_risk", r"$\rho$ of the count", False),
    "levels": (
        "marginal_posterior", "marginal_risk", "levels at which the target is unique", True,
    ),
}  # fmt: skip


@canvas.styled
def plot_risk(
    frame: pd.DataFrame,
    *,
    against: str = "rho",
    budgets: Mapping[str, float] | None = None,
    ax: Where = None,
) -> Panels:
    """Draw posterior and risk ratio by budget, released count or levels (Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``prior``, what ``against`` names, and ``marginal_posterior`` and ``marginal_risk``;
        against ``noisy_count`` ``posterior`` and ``risk_ratio``.
    against : {"rho", "noisy_count", "levels"}, default "rho"
        What lies along the axis: the budget on a logarithmic scale (Figure 2), the released count
        (Figure 1), or the number of levels used (Figure 7).
    budgets : mapping of str to float, optional
        Budgets to mark, by name, where the axis is that of budgets.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels, one line for each prior.
    """
    belief, ratio, text, markers = _AGAINST[check.choice(against, "against", tuple(_AGAINST))]
    averaged = "marginal " if belief.startswith("marginal") else ""
    frame = canvas.require(frame, (against, "prior", belief, ratio))
    left, right = both = canvas.pair(ax)
    canvas.lines(left, frame, against, belief, markers=markers)
    canvas.lines(right, frame, against, ratio, markers=markers)
    for axes in both:
        axes.set_xlabel(text)
        if against == "rho":
            axes.set_xscale("log")
            canvas.mark(axes, budgets)
        elif against == "levels":
            axes.set_xticks(sorted(frame["levels"].unique()))
    left.set(ylabel=f"{averaged}posterior of the truth", ylim=(-0.02, 1.02))
    right.set(ylabel=f"{averaged}posterior / prior")
    canvas.ratio_axis(right, frame[ratio])
    if averaged:
        canvas.legend(right, smallest_first=True)
    else:
        canvas.legend(left)
    return both


@canvas.styled
def plot_correct_decision(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the chance of being found, if in the cell, by rho (Figure 3 of Kazan and Reiter).

    It is not how often the adversary is right: see :func:`plot_decision_accuracy`.  The curves are
    jagged: between two rises the decision threshold stands still while the noise shrinks, so that
    the releases which would convince the adversary become rarer.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior`` and ``correct_decision_probability``.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One panel, one line for each prior, rho on a logarithmic axis.
    """
    frame = canvas.require(frame, ("rho", "prior", "correct_decision_probability"))
    axes = canvas.panel(ax, 5.2, 3.3)
    canvas.lines(axes, frame, "rho", "correct_decision_probability", markers=False)
    axes.set(
        xscale="log",
        xlabel=r"$\rho$ of the count",
        ylabel="probability of being found,\nif in the cell",
        ylim=(-0.02, 1.02),
    )
    canvas.mark(axes, budgets)
    canvas.legend(axes)
    return axes


@canvas.styled
def plot_decision_accuracy(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None, ax: Where = None
) -> Panels:
    """Draw how often the best guess is right against rho, beside what is right without a release.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior``, ``decision_accuracy`` and ``decision_baseline``.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels, one line for each prior, rho on a logarithmic axis: the accuracy, with its
        baseline as a dotted line of the same colour; and what it is above the baseline.
    """
    frame = canvas.require(frame, ("rho", "prior", "decision_accuracy", "decision_baseline"))
    gain = frame["decision_accuracy"] - frame["decision_baseline"]
    left, right = both = canvas.pair(ax)
    canvas.lines(left, frame, "rho", "decision_accuracy", markers=False)
    canvas.lines(right, frame.assign(gain=gain), "rho", "gain", markers=False)
    baselines = frame.groupby("prior")["decision_baseline"].first().sort_index(ascending=False)
    for line, baseline in zip(left.get_lines(), baselines, strict=True):
        left.axhline(baseline, color=line.get_color(), linewidth=1.0, linestyle=(0, (1, 1)))
    for axes in (left, right):
        axes.set(xscale="log", xlabel=r"$\rho$ of the count")
        canvas.mark(axes, budgets)
    left.set(ylabel="best guess is right\n(dotted: without a release)", ylim=(0.48, 1.02))
    right.set(ylabel="above always guessing\nthe more probable", ylim=(-0.01, None))
    canvas.legend(right)
    return both


@canvas.styled
def plot_risk_distribution(
    frame: pd.DataFrame, *, mean: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how often each risk ratio is exceeded over releases, and mark the average ratio."""
    frame = canvas.require(frame, ("risk_ratio", "exceeds"))
    axes = canvas.panel(ax, 5.2, 3.3)
    axes.step(frame["risk_ratio"], frame["exceeds"], where="post", color="#0072B2")
    axes.set(
        xlabel="posterior / prior",
        ylabel="probability of a release\nwith a larger ratio",
        ylim=(-0.02, 1.02),
    )
    canvas.logarithmic(axes, frame["risk_ratio"])
    canvas.mark(axes, {} if mean is None else {"mean": mean})
    return axes


# -----------------------------------------------------------------------------
# Figure of the risk before and after post-processing.


_COLUMNS = ("rho", "group_count", "risk_before", "risk_after")


def _legend(axes: Axes, frame: pd.DataFrame, by: str, title: str, **where: Any) -> None:
    """Name each line by its value, the largest first, as ``lines`` draws them."""
    values = sorted(frame[by].unique().tolist(), reverse=True)
    handles = axes.get_legend_handles_labels()[0][: len(values)]
    names = [f"{value:.4g}" for value in values]
    bound = axes.plot([], [], **canvas.DOTTED)
    axes.legend([*handles, *bound], [*names, "not processed"], title=title, **where)


def _headroom(axes: Axes) -> None:
    """Make room for a legend above the lines."""
    low, high = axes.get_ylim()
    top = high * (high / low) ** 0.5 if axes.get_yscale() == "log" else high + 0.5 * (high - low)
    axes.set_ylim(low, top)


@canvas.styled
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
    by_rho = canvas.require(by_rho, _COLUMNS, "by_rho")
    by_group_count = canvas.require(by_group_count, _COLUMNS, "by_group_count")
    left, right = both = canvas.pair(ax)
    canvas.lines(left, by_rho, "rho", "risk_after", markers=False, by="group_count")
    bound = by_rho.drop_duplicates("rho").sort_values("rho")
    left.plot(bound["rho"], bound["risk_before"], zorder=0, **canvas.DOTTED)
    left.set(xscale="log", xlabel=r"$\rho$ of a block's count")
    canvas.lines(right, by_group_count, "group_count", "risk_after", markers=True, by="rho")
    for _, rows in by_group_count.groupby("rho"):
        ordered = rows.sort_values("group_count")
        right.plot(ordered["group_count"], ordered["risk_before"], zorder=0, **canvas.DOTTED)
    right.set(xlabel="count of the group, $N$")
    if by_group_count["group_count"].max() > 20:
        right.set_xscale("log")
    for axes, frame in ((left, by_rho), (right, by_group_count)):
        axes.set_ylabel("marginal posterior / prior")
        canvas.ratio_axis(axes, pd.concat([frame["risk_before"], frame["risk_after"]]))
    _legend(left, by_rho, "group_count", "$N$")
    _headroom(right)
    _legend(right, by_group_count, "rho", r"$\rho$", loc="upper left", ncols=2)
    return both


# -----------------------------------------------------------------------------


_RISK = ("marginal_risk", "marginal_risk_lower", "marginal_risk_upper")
_RISK_COLUMNS = ("protection", "target", "prior", *_RISK)
_BAR: dict[str, Any] = {"capsize": 2.5, "elinewidth": 1.1, "markersize": 5.0, "linestyle": "none"}


def _reach(rows: pd.DataFrame) -> list[list[float]]:
    return canvas.reach(*(rows[column] for column in _RISK))


def _certain(axes: Axes, priors: pd.Series) -> None:
    """Mark the ratio at which the adversary is certain, where it is one number."""
    if priors.nunique() == 1:
        top = 1.0 / float(priors.iloc[0])
        axes.axhline(top, linestyle=(0, (2, 2)), zorder=0, **canvas.GREY)
        axes.annotate(
            "certain", (1.0, top), xycoords=("axes fraction", "data"), xytext=(-2, -3),
            textcoords="offset points", ha="right", va="top", fontsize=7.5, color="0.25",
        )  # fmt: skip


def _by_target(axes: Axes, frame: pd.DataFrame, names: list[str]) -> None:
    """Draw every target's ratio, protections along the axis."""
    for i, name in enumerate(names):
        rows = frame[frame["protection"] == name]
        width = min(0.6, 0.12 * (len(rows) - 1))
        places = i + np.linspace(-0.5 * width, 0.5 * width, len(rows))
        axes.errorbar(places, rows["marginal_risk"], yerr=_reach(rows), **canvas.point(i), **_BAR)
    canvas.named_ticks(axes, [canvas.as_text(name) for name in names])
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
            yerr=_reach(mean),
            xerr=[[error], [error]],
            **canvas.point(i),
            **_BAR,
        )
        label = canvas.as_text(name)
        axes.plot([], [], label=label, markersize=5.0, linestyle="none", **canvas.point(i))
    values = frame[utility].to_numpy(dtype=float)
    positive = values[values > 0.0]
    if positive.size and positive.max() > 20.0 * positive.min():
        axes.set_xscale("symlog", linthresh=float(positive.min()))
        axes.set_xlim(left=-0.2 * float(positive.min()))
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(utility.replace("_", " ") + " of a published count")
    axes.legend()


@canvas.styled
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
    frame = canvas.require(frame, (*_RISK_COLUMNS, utility, f"{utility}_error"))
    names = frame["protection"].unique().tolist()
    left, right = both = canvas.pair(ax, height=3.4)
    _by_target(left, frame, names)
    _against_utility(right, frame, names, utility)
    for axes in (left, right):
        axes.set_ylabel("marginal posterior / prior")
        canvas.ratio_axis(axes, pd.concat([frame[column] for column in _RISK]))
        _certain(axes, frame["prior"])
    right.set_ylim(left.get_ylim())
    return both
