"""Figures of block-level risk: by released count, by rho, by level."""

from collections.abc import Mapping

import pandas as pd

from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    legend,
    lines,
    logarithmic,
    mark,
    pair,
    panel,
    ratio_axis,
    require,
    style,
)


def plot_released_count(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw posterior and risk ratio against the released count (Figure 1 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``noisy_count``, ``prior``, ``posterior`` and ``risk_ratio``.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels, one line for each prior.
    """
    require(frame, ("noisy_count", "prior", "posterior", "risk_ratio"))
    with style():
        left, right = both = pair(ax)
        lines(left, frame, "noisy_count", "posterior", markers=True)
        lines(right, frame, "noisy_count", "risk_ratio", markers=True)
        left.set(xlabel="released count", ylabel="posterior of the truth", ylim=(-0.02, 1.02))
        right.set(xlabel="released count", ylabel="posterior / prior")
        ratio_axis(right, frame["risk_ratio"])
        legend(left)
        return both


def plot_marginal_risk(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None, ax: Where = None
) -> Panels:
    """Draw marginal posterior and marginal risk against rho (Figure 2 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior``, ``marginal_posterior`` and ``marginal_risk``.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels, one line for each prior, rho on a logarithmic axis.
    """
    require(frame, ("rho", "prior", "marginal_posterior", "marginal_risk"))
    with style():
        left, right = both = pair(ax)
        lines(left, frame, "rho", "marginal_posterior", markers=False)
        lines(right, frame, "rho", "marginal_risk", markers=False)
        for axes in (left, right):
            axes.set(xscale="log", xlabel=r"$\rho$ of the count")
            mark(axes, budgets)
        left.set(ylabel="marginal posterior of the truth", ylim=(-0.02, 1.02))
        right.set(ylabel="marginal posterior / prior")
        ratio_axis(right, frame["marginal_risk"])
        legend(right, smallest_first=True)
        return both


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
    require(frame, ("rho", "prior", "correct_decision_probability"))
    with style():
        axes = panel(ax, 5.2, 3.3)
        lines(axes, frame, "rho", "correct_decision_probability", markers=False)
        axes.set(
            xscale="log",
            xlabel=r"$\rho$ of the count",
            ylabel="probability of being found,\nif in the cell",
            ylim=(-0.02, 1.02),
        )
        mark(axes, budgets)
        legend(axes)
        return axes


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
    require(frame, ("rho", "prior", "decision_accuracy", "decision_baseline"))
    gain = frame["decision_accuracy"] - frame["decision_baseline"]
    with style():
        left, right = both = pair(ax)
        lines(left, frame, "rho", "decision_accuracy", markers=False)
        lines(right, frame.assign(gain=gain), "rho", "gain", markers=False)
        baselines = frame.groupby("prior")["decision_baseline"].first().sort_index(ascending=False)
        for line, baseline in zip(left.get_lines(), baselines, strict=True):
            left.axhline(baseline, color=line.get_color(), linewidth=1.0, linestyle=(0, (1, 1)))
        for axes in (left, right):
            axes.set(xscale="log", xlabel=r"$\rho$ of the count")
            mark(axes, budgets)
        left.set(ylabel="best guess is right\n(dotted: without a release)", ylim=(0.48, 1.02))
        right.set(ylabel="above always guessing\nthe more probable", ylim=(-0.01, None))
        legend(right)
        return both


def plot_levels(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw marginal posterior and risk by the number of levels used (Figure 7 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``levels``, ``prior``, ``marginal_posterior`` and ``marginal_risk``.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels, one line for each prior.
    """
    require(frame, ("levels", "prior", "marginal_posterior", "marginal_risk"))
    with style():
        left, right = both = pair(ax)
        lines(left, frame, "levels", "marginal_posterior", markers=True)
        lines(right, frame, "levels", "marginal_risk", markers=True)
        for axes in (left, right):
            axes.set(xlabel="levels at which the target is unique")
            axes.set_xticks(sorted(frame["levels"].unique()))
        left.set(ylabel="marginal posterior of the truth", ylim=(-0.02, 1.02))
        right.set(ylabel="marginal posterior / prior")
        ratio_axis(right, frame["marginal_risk"])
        legend(right, smallest_first=True)
        return both


def plot_risk_distribution(
    frame: pd.DataFrame, *, mean: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how often each risk ratio is exceeded over releases.

    Distributions draw themselves (:meth:`bayesrisk.risk.RiskDistribution.plot`); this is for frames
    that look like theirs.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``risk_ratio`` and ``exceeds``.
    mean : float, optional
        Average ratio, to be marked.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One panel with one line of steps, the ratio on a logarithmic axis.
    """
    require(frame, ("risk_ratio", "exceeds"))
    with style():
        axes = panel(ax, 5.2, 3.3)
        axes.step(frame["risk_ratio"], frame["exceeds"], where="post", color="#0072B2")
        axes.set(
            xlabel="posterior / prior",
            ylabel="probability of a release\nwith a larger ratio",
            ylim=(-0.02, 1.02),
        )
        logarithmic(axes, frame["risk_ratio"])
        mark(axes, {} if mean is None else {"mean": mean})
        return axes
