"""Figures of the risk of counts, and of several protections against the error of the tables."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where

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
    panel: str | None = None,
    budgets: Mapping[str, float] | None = None,
    ax: Where = None,
) -> Panels | Axes:
    """Return posterior and risk ratio by budget, released count or levels (Kazan and Reiter).

    There are two panels, or the named one, with one line for each prior.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``prior``, the one in ``against``, and ``marginal_posterior`` and ``marginal_risk``;
        with ``noisy_count`` instead ``posterior`` and ``risk_ratio``.
    against : {"rho", "noisy_count", "levels"}, default "rho"
        Quantity on the horizontal axis: the budget on a logarithmic scale (Figure 2), the released
        count (Figure 1), or the number of levels used (Figure 7).
    panel : {"posterior", "ratio"}, optional
    budgets : mapping of str to float, optional
    ax : sequence of matplotlib.axes.Axes, optional
    """
    belief, ratio, text, markers = _AGAINST[check.choice(against, "against", tuple(_AGAINST))]
    averaged = "marginal " if belief.startswith("marginal") else ""
    names = ("posterior", "ratio")
    chosen = names if panel is None else (check.choice(panel, "panel", names),)
    columns = (against, "prior", *([belief, ratio][names.index(n)] for n in chosen))
    frame = canvas.require(frame, columns, maker="risk_curve" * (against == "rho"))
    panels = canvas.pair(ax) if panel is None else canvas.panels(ax, 1, (3.9, 3.1))
    for name, axes in zip(chosen, panels, strict=True):
        canvas.lines(axes, frame, against, ratio if name == "ratio" else belief, markers=markers)
        axes.set_xlabel(text)
        if against == "rho":
            axes.set_xscale("log")
            canvas.mark(axes, budgets)
        elif against == "levels":
            axes.set_xticks(sorted(frame["levels"].unique()))
        if name == "ratio":
            axes.set(ylabel=f"{averaged}posterior / prior")
            canvas.ratio_axis(axes, frame[ratio])
        else:
            axes.set(ylabel=f"{averaged}posterior of the truth", ylim=(-0.02, 1.02))
    canvas.legend(panels)
    return panels if panel is None else panels[0]


@canvas.styled
def plot_privacy_loss(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Return epsilon by delta, of a release's own law and by conversion of its rho.

    One panel, with delta on a logarithmic axis.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``delta``, ``epsilon_lower`` and ``epsilon_upper``, and if rho is known
        ``rho_tight`` and ``rho_bun_steinke``, as from ``PrivacyLoss.to_frame``.
    ax : matplotlib.axes.Axes, optional
    """
    frame = canvas.require(frame, ("delta", "epsilon_lower", "epsilon_upper"))
    axes = canvas.panel(ax, 5.2, 3.3)
    for name, text, style in (
        ("rho_bun_steinke", "simple conversion of rho", ":"),
        ("rho_tight", "tight conversion of rho", "--"),
        ("epsilon_upper", "law of the release", "-"),
    ):
        if name in frame:
            axes.plot(frame["delta"], frame[name], style, label=text)
    axes.set(xscale="log", xlabel=r"$\delta$", ylabel=r"$\epsilon$", ylim=(0.0, None))
    axes.legend()
    return axes


@canvas.styled
def plot_correct_decision(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None, ax: Axes | None = None
) -> Axes:
    """Return the chance that a person in a cell is found, by rho (Kazan and Reiter, Figure 3).

    This is not the rate of right guesses: see :func:`plot_decision_accuracy`. The curves are
    jagged. Between two rises the decision threshold stands still while the noise shrinks, so
    releases that convince the adversary become rarer.

    One panel, one line for each prior, rho on a logarithmic axis.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior`` and ``correct_decision_probability``. With
        ``decision_threshold``, a line jumps midway if the threshold differs between two budgets.
    budgets : mapping of str to float, optional
    ax : matplotlib.axes.Axes, optional
    """
    name = "correct_decision_probability"
    frame = canvas.require(frame, ("rho", "prior", name))
    panels = canvas.panels(ax, 1, (5.2, 3.5))
    axes: Axes = panels[0]
    canvas.lines(axes, frame, "rho", name, markers=False, jumps="decision_threshold")
    axes.set(
        xscale="log",
        xlabel=r"$\rho$ of the count",
        ylabel="probability of being found,\nif in the cell",
        ylim=(-0.02, 1.02),
    )
    canvas.mark(axes, budgets)
    canvas.legend(panels)
    return axes


@canvas.styled
def plot_decision_accuracy(
    frame: pd.DataFrame, *, budgets: Mapping[str, float] | None = None, ax: Where = None
) -> Panels:
    """Return the share of right best guesses by rho, beside the share without a release.

    Two panels have one line for each prior, and rho on a logarithmic axis. One shows the accuracy,
    with its baseline as a dotted line of the same colour; the other the difference.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``prior``, ``decision_accuracy`` and ``decision_baseline``.
    budgets : mapping of str to float, optional
    ax : sequence of matplotlib.axes.Axes, optional
    """
    frame = canvas.require(frame, ("rho", "prior", "decision_accuracy", "decision_baseline"))
    gain = frame["decision_accuracy"] - frame["decision_baseline"]
    left, right = panels = canvas.pair(ax)
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
    canvas.legend(panels)
    return panels


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


# Figure of the risk before and after post-processing.


_COLUMNS = ("rho", "group_count", "risk_before", "risk_after")


def _named(axes: Axes, frame: pd.DataFrame, column: str) -> tuple[list[Any], list[str]]:
    """Return handles and labels of the lines by value of a column, largest first."""
    names = [f"{value:.4g}" for value in sorted(frame[column].unique().tolist(), reverse=True)]
    return axes.get_legend_handles_labels()[0][: len(names)], names


def _legend(axes: Axes, frame: pd.DataFrame, column: str, title: str, **placement: Any) -> None:
    handles, names = _named(axes, frame, column)
    bound = axes.plot([], [], **canvas.DOTTED)
    axes.legend([*handles, *bound], [*names, "not processed"], title=title, **placement)


@canvas.styled
def plot_postprocessing(
    by_rho: pd.DataFrame, by_group_count: pd.DataFrame, *, ax: Where = None
) -> Panels:
    """Return the marginal risk after post-processing, and its bound (Kazan and Reiter, Figure 12).

    There are two panels; thin dotted lines show the same noisy counts without processing.

    Parameters
    ----------
    by_rho : pandas.DataFrame
        Left panel, against rho, one line for each ``group_count``.  Columns ``rho``,
        ``group_count``, ``risk_before`` and ``risk_after``, as in
        :class:`PostprocessingComparison`; one prior and one number of siblings.
    by_group_count : pandas.DataFrame
        Right panel, against the group's count, one line for each ``rho``; the same columns.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    by_rho = canvas.require(by_rho, _COLUMNS, "by_rho")
    by_group_count = canvas.require(by_group_count, _COLUMNS, "by_group_count")
    left, right = panels = canvas.pair(ax)
    canvas.lines(left, by_rho, "rho", "risk_after", markers=False, column="group_count")
    bound = by_rho.drop_duplicates("rho").sort_values("rho")
    left.plot(bound["rho"], bound["risk_before"], zorder=0, **canvas.DOTTED)
    left.set(xscale="log", xlabel=r"$\rho$ of a block's count")
    canvas.lines(right, by_group_count, "group_count", "risk_after", markers=True, column="rho")
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
    low, high = right.get_ylim()  # room for a legend above the lines
    log = right.get_yscale() == "log"
    right.set_ylim(low, high * (high / low) ** 0.5 if log else high + 0.5 * (high - low))
    _legend(right, by_group_count, "rho", r"$\rho$", loc="upper left", ncols=2)
    return panels


_RISK = ("marginal_risk", "marginal_risk_lower", "marginal_risk_upper")
_RISK_COLUMNS = ("protection", "target", "prior", *_RISK)
_BAR: dict[str, Any] = {"capsize": 2.5, "elinewidth": 1.1, "markersize": 5.0, "linestyle": "none"}


def _reach(rows: pd.DataFrame) -> list[list[float]]:
    return canvas.reach(*(rows[column] for column in _RISK))


def _certain(axes: Axes, priors: pd.Series) -> None:
    """Mark the ratio 1 / prior of certainty, where all targets share one prior."""
    if priors.nunique() == 1:
        top = 1.0 / float(priors.iloc[0])
        axes.axhline(top, linestyle=(0, (2, 2)), zorder=0, **canvas.GREY)
        axes.annotate(
            "certain", (1.0, top), xycoords=("axes fraction", "data"), xytext=(-2, -3),
            textcoords="offset points", ha="right", va="top", fontsize=7.5, color="0.25",
        )  # fmt: skip


def _by_target(axes: Axes, frame: pd.DataFrame, names: list[str]) -> None:
    """Draw the risk ratio of every target, by protection along the x axis."""
    for i, name in enumerate(names):
        rows = frame[frame["protection"] == name]
        width = min(0.6, 0.12 * (len(rows) - 1))
        places = i + np.linspace(-0.5 * width, 0.5 * width, len(rows))
        axes.errorbar(places, rows["marginal_risk"], yerr=_reach(rows), **canvas.point(i), **_BAR)
    canvas.named_ticks(axes, [canvas.as_text(name) for name in names])
    axes.set(xlim=(-0.6, len(names) - 0.4), xlabel="protection; one mark for each target")


def _against_utility(axes: Axes, frame: pd.DataFrame, names: list[str], utility: str) -> None:
    """Draw the mean risk ratio over targets against the error of the tables."""
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
    """Return the risk ratio of protections, by target and against the error of the tables.

    The left panel has every target, the right one the mean over targets; bars are intervals.

    Parameters
    ----------
    frame : pandas.DataFrame
        From :func:`compare_mechanisms`: columns ``protection``, ``target``, ``prior``,
        ``marginal_risk`` with ``_lower`` and ``_upper``, and ``utility`` with ``_error``.
    utility : {"mean_absolute_error", "root_mean_square_error"}, default "mean_absolute_error"
        Quantity on the horizontal axis of the right panel.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    check.choice(utility, "utility", ("mean_absolute_error", "root_mean_square_error"))
    frame = canvas.require(frame, (*_RISK_COLUMNS, utility, f"{utility}_error"))
    names = frame["protection"].unique().tolist()
    left, right = panels = canvas.pair(ax, height=3.4)
    _by_target(left, frame, names)
    _against_utility(right, frame, names, utility)
    for axes in (left, right):
        axes.set_ylabel("marginal posterior / prior")
        canvas.ratio_axis(axes, pd.concat([frame[column] for column in _RISK]))
        _certain(axes, frame["prior"])
    right.set_ylim(left.get_ylim())
    return panels


# Figures of two levels and of files of noisy measurements.

_MAP = ("block", "group", "siblings", "decision", "decision_without", "change")
_MAX_PANELS = 8
# Okabe and Ito's orange-red and green for what changes, greys for what does not; hatched for print.
_KINDS: dict[str, dict[str, Any]] = {
    "without": {"facecolor": "#F2F2F2", "label": "target taken not to be there, with or without"},
    "with": {"facecolor": "#BDBDBD", "label": "target taken to be there, with or without"},
    "gain": {"facecolor": "#009E73", "hatch": "////", "label": "set right by the hierarchy"},
    "loss": {"facecolor": "#D55E00", "hatch": "....", "label": "spoilt by the hierarchy"},
    "tie": {"facecolor": "#56B4E9", "hatch": "xxxx", "label": "a tie: a coin decides"},
}
_FOUND = "probability of being found, if in the cell"
_NOTHING = canvas.GREY | {"linestyle": (0, (6, 3))}


def _kinds(rows: pd.DataFrame) -> pd.Series:
    included = rows["decision"] > rows["decision"].groupby(rows["_map"]).transform("min")
    labels = np.where(included, "with", "without")
    kinds = pd.Series(np.where(rows["change"] == "none", labels, rows["change"]), index=rows.index)
    other = kinds[~kinds.isin(list(_KINDS))]
    if len(other):
        raise ArgumentError(
            "maps", "must have a change of none, gain, loss or tie", got=other.iloc[0]
        )
    return kinds


def _tiles(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw one panel: siblings' sum along x, group's count along y, equal tiles as one bar."""
    table = rows.pivot(index="group", columns="siblings", values="_kind")
    totals = table.columns.to_numpy()
    for n, kinds in zip(table.index, table.to_numpy(), strict=True):
        starts = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1]))
        ends = np.append(starts[1:], kinds.size) - 1
        for first, last in zip(starts, ends, strict=True):
            width = totals[last] - totals[first] + 1
            axes.barh(n, width, 1.0, totals[first] - 0.5, **_tile_style(kinds[first]))
    axes.set(xlim=(totals[0] - 0.5, totals[-1] + 0.5))
    axes.set(ylim=(table.index[0] - 0.5, table.index[-1] + 0.5))
    axes.grid(visible=False)


def _tile_style(kind: str) -> dict[str, Any]:
    """Return colour and hatch of a kind of tile; hatches take the edge colour."""
    look = {name: value for name, value in _KINDS[kind].items() if name != "label"}
    return {**look, "edgecolor": "white" if "hatch" in look else look["facecolor"], "linewidth": 0}


@canvas.styled
def plot_decision_map(
    maps: pd.DataFrame | Mapping[str, pd.DataFrame], *, ax: Where = None
) -> Panels:
    """Return panels of the decision for every release (Figures 4, 10 and 11 of Kazan and Reiter).

    There is a panel for each noisy block count, with the siblings' noisy total on the horizontal
    axis and the noisy group count on the vertical one.

    Parameters
    ----------
    maps : pandas.DataFrame or mapping of str to pandas.DataFrame
        Result of :meth:`HierarchicalGain.decision_map` over whole ranges; or several of them by
        name, such as one for each prior, which are drawn one below the other.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    named = dict(maps) if isinstance(maps, Mapping) else {"": check.frame(maps, "maps")}
    if not named:
        raise ArgumentError("maps", "must hold at least one frame", shown="none")
    named = {name: canvas.require(frame, _MAP, "maps") for name, frame in named.items()}
    rows = pd.concat([frame.assign(_map=name) for name, frame in named.items()], ignore_index=True)
    blocks = sorted(rows["block"].unique())
    if len(blocks) > _MAX_PANELS:
        raise ArgumentError(
            "maps", f"must have at most {_MAX_PANELS} values of block", shown=len(blocks)
        )
    rows["_kind"] = _kinds(rows)
    size = (max(1.0 + 1.75 * len(blocks), 4.6), 0.9 + 1.75 * len(named))
    every = canvas.panels(
        ax, len(named) * len(blocks), size, columns=len(blocks), sharex=True, sharey=True
    )
    grid = every.reshape(len(named), len(blocks))
    for line, name in zip(grid, named, strict=True):
        for axes, block in zip(line, blocks, strict=True):
            _tiles(axes, rows[(rows["_map"] == name) & (rows["block"] == block)])
        line[0].set_ylabel(f"{canvas.as_text(name)}\n$n$ (group)" if name else "$n$ (group)")
        line[0].locator_params(integer=True)
    for axes, block in zip(grid[0], blocks, strict=True):
        axes.set_title(f"$y$ = {block}", fontsize=9.0)
    for axes in grid[-1]:
        axes.set_xlabel("$S$ (siblings)")
    handles = [
        grid[0, 0].fill([], [], label=look["label"], **_tile_style(kind))[0]
        for kind, look in _KINDS.items()
        if (rows["_kind"] == kind).any()
    ]
    canvas.legend_outside(every, handles, [handle.get_label() for handle in handles], ncols=2)
    return every


@canvas.styled
def plot_group(
    frame: pd.DataFrame,
    *,
    against: str = "group_count",
    budgets: Mapping[str, float] | None = None,
    quantity: str = _FOUND,
    ax: Where = None,
) -> Panels:
    """Return a panel of the rate of right decisions, by a group's count or budget.

    There are one or more panels; a dotted line shows the adversary without hierarchy.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``group_count``, ``value`` and ``without_hierarchy``, as in
        :meth:`HierarchicalRisk.to_frame`, and ``rho_group`` (> 0) to draw against it. A column
        ``conditionals`` gives one panel for each value. Against counts, a positive
        ``standard_error`` gives bars of two standard errors. A column ``baseline`` gives a line for
        the rate without a release.
    against : {"group_count", "rho_group"}, default "group_count"
        Quantity on the horizontal axis: the true count of the group, or its budget on a logarithmic
        scale with one line for each count.
    budgets : mapping of str to float, optional
    quantity : str, default "probability of being found, if in the cell"
        Name of ``value``, for the vertical axis.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    by_count = check.choice(against, "against", ("group_count", "rho_group")) == "group_count"
    frame = canvas.require(frame, ("group_count", against, "value", "without_hierarchy"))
    check.text(quantity, "quantity")
    groups = dict(list(frame.groupby("conditionals"))) if "conditionals" in frame else {"": frame}
    width, height = (3.0, 3.1) if by_count else (3.2, 3.6)
    every = canvas.panels(ax, len(groups), (1.6 + width * len(groups), height), sharey=True)
    for axes in canvas.leftmost(every):
        axes.set_ylabel(quantity)
    for axes, (name, rows) in zip(every, groups.items(), strict=True):
        if by_count:
            _errors(axes, rows.sort_values("group_count"))
        else:
            canvas.lines(axes, rows, "rho_group", "value", markers=True, column="group_count")
        once = rows.drop_duplicates(against).sort_values(against)
        axes.plot(once[against], once["without_hierarchy"], label="block alone", **canvas.DOTTED)
        if "baseline" in rows:
            axes.plot(once[against], once["baseline"], label="no release", **_NOTHING)
        axes.set_title(str(name))
        if by_count:
            axes.set_xlabel("true count of the group")
        else:
            axes.set(xscale="log", xlabel=r"$\rho$ of the group's count")
            canvas.mark(axes, budgets)
    if by_count:
        canvas.legend_outside(every, *every[0].get_legend_handles_labels(), ncols=3)
    else:  # lines are named below the panels, the smallest count first
        handles, names = _named(every[0], frame, "group_count")
        handles, names = handles[::-1], [*names[::-1], "block alone"]
        handles += every[0].plot([], [], **canvas.DOTTED)
        if "baseline" in frame:
            handles += every[0].plot([], [], **_NOTHING)
            names.append("no release")
        title = "true count of the group"
        canvas.legend_outside(every, handles, names, title=title, ncols=len(names))
    return every


def _errors(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw values by group count with error bars of two standard errors, where positive."""
    error = rows.get("standard_error", pd.Series(0.0, index=rows.index))
    axes.errorbar(
        rows["group_count"],
        rows["value"],
        yerr=2.0 * error if error.any() else None,
        color="#0072B2",
        marker="o",
        markersize=4.0,
        label="block, group and siblings",
    )


# Figure of how many cells of a noisy measurement file exceed a risk ratio.


Dash = tuple[int, tuple[float, ...]]
_EXPECTED = ("expected_known", "error_known", "expected_one_more", "error_one_more")
_LEAST = 0.5  # of a cell: below the axis
_LAWS: tuple[tuple[str, str, str, Dash], ...] = (
    ("one_more", "noise alone, one more everywhere", "#D55E00", (0, (6, 2))),
    ("known", "noise alone, nobody more there", "#0072B2", (0, (3, 1.5))),
)


def _law(axes: Axes, frame: pd.DataFrame, name: str, text: str, colour: str, dash: Dash) -> None:
    """Draw an expected number of cells with a band of two standard deviations."""
    mean = frame[f"expected_{name}"].to_numpy(dtype=float)
    error = frame[f"error_{name}"].to_numpy(dtype=float)
    ratio = frame["risk_ratio"].to_numpy(dtype=float)
    low = np.maximum(mean - 2.0 * error, _LEAST / 10.0)
    axes.fill_between(ratio, low, mean + 2.0 * error, color=colour, alpha=0.18, step="post", lw=0)
    axes.step(
        ratio, np.where(mean > 0.0, mean, np.nan), where="post", color=colour, ls=dash, label=text
    )


@canvas.styled
def plot_noisy_measurements(
    curve: pd.DataFrame, thresholds: Iterable[float] = (), *, ax: Axes | None = None
) -> Axes:
    """Return a plot of cells above each risk ratio, beside the number expected from noise alone.

    It has one panel with two logarithmic axes; bands are two standard deviations over the noise.

    Parameters
    ----------
    curve : pandas.DataFrame
        Columns ``risk_ratio``, ``cells``, ``expected_known``, ``error_known``,
        ``expected_one_more`` and ``error_one_more``: the fact ``curve`` of a run of
        :class:`MeasurementsStudy`.
    thresholds : iterable of float, optional
        Risk ratios to mark.
    ax : matplotlib.axes.Axes, optional
    """
    curve = canvas.require(curve, ("risk_ratio", "cells", *_EXPECTED), "curve")
    values = check.items(thresholds, "thresholds")
    limits = [check.scalar(value, "thresholds", lower=0.0, bounds="()") for value in values]
    frame = curve.sort_values("risk_ratio")
    group = canvas.panels(ax, 1, (5.4, 3.8))
    axes: Axes = group[0]
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
        axes.axvline(value, zorder=0, **canvas.DOTTED)
    axes.set(
        yscale="log",
        xlabel="risk ratio $r$ (posterior / prior)",
        ylabel="cells with a ratio above $r$",
    )
    ratios = frame["risk_ratio"]
    axes.set_xlim(ratios.min(), ratios.max())
    tops = frame[["cells", "expected_known", "expected_one_more"]].to_numpy(dtype=float)
    axes.set_ylim(_LEAST, max(2.0 * tops.max(), 1.0))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    canvas.logarithmic(axes, ratios)
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend_outside(group, handles[::-1], labels[::-1])
    return axes
