"""Figures of two levels: decision maps, averages of decisions, and the noise of a total."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import (
    Axes,
    Panels,
    Where,
    as_text,
    legend_outside,
    lines,
    logarithmic,
    mark,
    pair,
    panel,
    panels,
    require,
    style,
)

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
_NOTHING: dict[str, Any] = {"color": "0.35", "linewidth": 1.0, "linestyle": (0, (6, 3))}
_BASELINE: dict[str, Any] = {"color": "0.35", "linewidth": 1.0, "linestyle": (0, (1, 1))}


def _kinds(rows: pd.DataFrame) -> pd.Series:
    """Return what to colour each release by."""
    included = rows["decision"] > rows["decision"].groupby(rows["_map"]).transform("min")
    same = np.where(included, "with", "without")
    kinds = pd.Series(np.where(rows["change"] == "none", same, rows["change"]), index=rows.index)
    other = kinds[~kinds.isin(list(_KINDS))]
    if len(other):
        raise ArgumentError(
            f"maps must have a change of none, gain, loss or tie, got {shown(other.iloc[0])}"
        )
    return kinds


def _tiles(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw one panel: siblings across, group up, each run of equal tiles as one bar."""
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
    """Return how a kind of tile is painted; hatches are drawn in the colour of the edge."""
    look = {name: value for name, value in _KINDS[kind].items() if name != "label"}
    return {**look, "edgecolor": "white" if "hatch" in look else look["facecolor"], "linewidth": 0}


def plot_decision_map(
    maps: pd.DataFrame | Mapping[str, pd.DataFrame], *, ax: Where = None
) -> Panels:
    """Draw the decision for every release (Figures 4, 10 and 11 of Kazan and Reiter).

    Parameters
    ----------
    maps : pandas.DataFrame or mapping of str to pandas.DataFrame
        What :meth:`HierarchicalGain.decision_map` returns, over whole ranges; or several of them
        by name, such as one for each prior, one below the other.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each noisy block count, the noisy total of the siblings across and the noisy
        group count up.
    """
    named = {"": maps} if isinstance(maps, pd.DataFrame) else dict(check.mapping(maps, "maps"))
    if not named:
        raise ArgumentError("maps must hold at least one frame, got none")
    for frame in named.values():
        require(frame, _MAP, "maps")
    rows = pd.concat([frame.assign(_map=name) for name, frame in named.items()], ignore_index=True)
    blocks = sorted(rows["block"].unique())
    if len(blocks) > _MAX_PANELS:
        raise ArgumentError(
            f"maps must have at most {_MAX_PANELS} values of block, got {len(blocks)}"
        )
    rows["_kind"] = _kinds(rows)
    with style():
        size = (max(1.0 + 1.75 * len(blocks), 4.6), 0.9 + 1.75 * len(named))
        every = panels(
            ax, len(named) * len(blocks), size, columns=len(blocks), sharex=True, sharey=True
        )
        grid = every.reshape(len(named), len(blocks))
        for line, name in zip(grid, named, strict=True):
            for axes, block in zip(line, blocks, strict=True):
                _tiles(axes, rows[(rows["_map"] == name) & (rows["block"] == block)])
            line[0].set_ylabel(f"{as_text(name)}\n$n$ (group)" if name else "$n$ (group)")
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
        legend_outside(every, handles, [handle.get_label() for handle in handles], ncols=2)
        return every


def _name_lines(within: Panels, frame: pd.DataFrame, by: str, title: str) -> None:
    """Name the lines that ``lines`` drew, below the panels, the smallest value first."""
    axes = within[0]
    values = sorted(frame[by].unique().tolist())
    handles = axes.get_legend_handles_labels()[0][: len(values)][::-1]
    names = [f"{value:.4g}" for value in values]
    baseline = axes.plot([], [], **_BASELINE)
    if "baseline" in frame:
        baseline += axes.plot([], [], **_NOTHING)
    legend_outside(
        within,
        [*handles, *baseline],
        [*names, "block alone", *(["no release"] if "baseline" in frame else [])],
        title=title,
        ncols=len(values) + len(baseline),
    )


def plot_group_count(frame: pd.DataFrame, *, quantity: str = _FOUND, ax: Where = None) -> Panels:
    """Draw an average of decisions against the true group count (Figure 5 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``group_count``, ``value`` and ``without_hierarchy``, as in
        :meth:`HierarchicalRisk.to_frame`; with a column ``conditionals``, a panel for each.
        Where ``standard_error`` is positive, bars of two of them.  With a column
        ``baseline``, a line for it: the same without any release.
    quantity : str, default "probability of being found, if in the cell"
        What ``value`` is, for the vertical axis.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        One or more panels, the adversary without hierarchy as a dotted line.
    """
    require(frame, ("group_count", "value", "without_hierarchy"))
    check.text(quantity, "quantity")
    groups = dict(list(frame.groupby("conditionals"))) if "conditionals" in frame else {"": frame}
    with style():
        every = panels(ax, len(groups), (1.6 + 3.0 * len(groups), 3.1), sharey=True)
        every[0].set_ylabel(quantity)
        for axes, (name, rows) in zip(every, groups.items(), strict=True):
            ordered = rows.sort_values("group_count")
            error = ordered.get("standard_error", pd.Series(0.0, index=ordered.index))
            axes.errorbar(
                ordered["group_count"],
                ordered["value"],
                yerr=2.0 * error if error.any() else None,
                color="#0072B2",
                marker="o",
                markersize=4.0,
                label="block, group and siblings",
            )
            axes.plot(
                ordered["group_count"],
                ordered["without_hierarchy"],
                label="block alone",
                **_BASELINE,
            )
            if "baseline" in ordered:
                axes.plot(
                    ordered["group_count"], ordered["baseline"], label="no release", **_NOTHING
                )
            axes.set(
                xlabel="true count of the group",
                title=str(name),
            )
            axes.legend(fontsize=8.0)
        return every


def plot_group_budget(
    frame: pd.DataFrame,
    *,
    budgets: Mapping[str, float] | None = None,
    quantity: str = _FOUND,
    ax: Where = None,
) -> Panels:
    """Draw an average of decisions against the group's budget (Figure 6 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho_group`` (> 0), ``group_count``, ``value`` and ``without_hierarchy``, as in
        :meth:`HierarchicalRisk.to_frame`; with a column ``conditionals``, a panel for each; with a
        column ``baseline``, a line for it: the same without any release.
    budgets : mapping of str to float, optional
        Budgets to mark, by name.
    quantity : str, default "probability of being found, if in the cell"
        What ``value`` is, for the vertical axis.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        One line for each group count, rho on a logarithmic axis, the adversary without hierarchy
        as a dotted line.
    """
    require(frame, ("rho_group", "group_count", "value", "without_hierarchy"))
    check.text(quantity, "quantity")
    groups = dict(list(frame.groupby("conditionals"))) if "conditionals" in frame else {"": frame}
    with style():
        every = panels(ax, len(groups), (1.6 + 3.2 * len(groups), 3.6), sharey=True)
        every[0].set_ylabel(quantity)
        for axes, (name, rows) in zip(every, groups.items(), strict=True):
            lines(axes, rows, "rho_group", "value", markers=True, by="group_count")
            baseline = rows.drop_duplicates("rho_group").sort_values("rho_group")
            axes.plot(baseline["rho_group"], baseline["without_hierarchy"], zorder=0, **_BASELINE)
            if "baseline" in rows:
                axes.plot(baseline["rho_group"], baseline["baseline"], zorder=0, **_NOTHING)
            axes.set(
                xscale="log",
                xlabel=r"$\rho$ of the group's count",
                title=str(name),
            )
            mark(axes, budgets)
        _name_lines(every, frame, "group_count", "true count of the group")
        return every


def plot_variance_ratio(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw variance over scale parameter of the discrete Gaussian (Figure 8 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``sigma2`` and ``variance``.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Two panels: against sigma squared, and against rho = 1 / (2 sigma squared).
    """
    require(frame, ("sigma2", "variance"))
    ordered = frame.sort_values("sigma2")
    ratio = ordered["variance"] / ordered["sigma2"]
    with style():
        left, right = both = pair(ax)
        for axes, x, name in (
            (left, ordered["sigma2"], r"scale parameter $\sigma^2$"),
            (right, 0.5 / ordered["sigma2"], r"$\rho = 1 / (2 \sigma^2)$"),
        ):
            axes.axhline(1.0, zorder=0, **_BASELINE)
            axes.plot(x, ratio, color="#0072B2")
            axes.set(xlabel=name, ylabel=r"variance / $\sigma^2$", ylim=(-0.02, 1.1))
            logarithmic(axes, x)
        return both


def plot_noise_sum(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw the law of a sum of noise and its approximation (Figure 9 of Kazan and Reiter).

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns ``rho``, ``n_siblings``, ``value``, ``exact`` and ``approximate``: the
        probabilities of each value of the sum.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each pair of a budget and a number of terms.
    """
    require(frame, ("rho", "n_siblings", "value", "exact", "approximate"))
    groups = list(frame.groupby(["rho", "n_siblings"]))
    columns = min(len(groups), 3)
    lines_ = -(-len(groups) // columns)
    with style():
        size = (1.0 + 2.4 * columns, 0.6 + 2.2 * lines_)
        every = panels(ax, len(groups), size, columns=columns)
        for axes, ((rho, m), rows) in zip(every, groups, strict=True):
            ordered = rows.sort_values("value")
            axes.vlines(
                ordered["value"], 0.0, ordered["exact"], color="0.6", linewidth=2.0, label="exact"
            )
            axes.plot(
                ordered["value"],
                ordered["approximate"],
                linestyle="none",
                marker="o",
                markersize=3.0,
                color="#D55E00",
                label="approximation",
            )
            axes.set_title(rf"$\rho$ = {rho:.3g}, {m:g} terms", fontsize=9.0)
            axes.set(xlabel="value of the sum", ylabel="probability")
            axes.locator_params(axis="x", integer=True)
        legend_outside(every, *every[0].get_legend_handles_labels(), ncols=2)
        return every


# -----------------------------------------------------------------------------
# Figure of how many cells of a noisy measurement file exceed a risk ratio.


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


# -----------------------------------------------------------------------------
# How chains of draws look: the draws of :class:`Samples`, in the style of every other figure.
#
# ArviZ draws more kinds: hand it the draws by :func:`to_arviz`.


_MOST = 12  # variables in one figure that can still be read
_RANK_BINS = 20
_LAGS = 60
_Draw = Callable[[Axes, NDArray[Any]], None]


def _variables(samples: Samples, labels: Sequence[Hashable] | None) -> dict[Hashable, NDArray[Any]]:
    """Return the draws (chains, draws) of each variable that was asked for."""
    if not isinstance(samples, Samples):
        raise ArgumentTypeError(f"samples must be Samples, got {type(samples).__name__}")
    target = {} if samples.target is None else {"target": samples.target}
    known = (*target, *samples.labels)
    wanted = known if labels is None else check.items(labels, "labels")
    for label in wanted:
        if not isinstance(label, str) or label not in known:
            some = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise ArgumentError(f"labels must be among {some}, got {shown(label)}")
    if not 1 <= len(wanted) <= _MOST:
        raise ArgumentError(f"labels must name 1 to {_MOST} variables to plot, got {len(wanted)}")
    return {
        label: target[label] if label in target else samples.of(cast(str, label))
        for label in wanted
    }


def _each(
    samples: Samples,
    labels: Sequence[Hashable] | None,
    ax: Where,
    draw: _Draw,
    *,
    wide: bool = False,
    chains: bool = True,
) -> Panels:
    """Draw each variable in a panel of its own, with one legend for the chains."""
    variables = _variables(samples, labels)
    columns = 1 if wide else min(3, len(variables))
    rows = -(-len(variables) // columns)
    size = (7.2, 0.7 + 1.6 * rows) if wide else (1.2 + 2.4 * max(columns, 2), 0.7 + 2.2 * rows)
    with style():
        every = panels(ax, len(variables), size, columns=columns)
        for axes, (label, draws) in zip(every, variables.items(), strict=True):
            draw(axes, draws)
            axes.set_title(canvas.as_text(label), fontsize=9.0)
        if chains:
            handles, names = every[0].get_legend_handles_labels()
            legend_outside(every, handles, names, ncols=min(len(names), 6))
        return every


def _chain_style(chain: int) -> dict[str, Any]:
    return {"color": canvas._COLOURS[chain % len(canvas._COLOURS)], "label": f"chain {chain}"}


def _bars(axes: Axes, draws: NDArray[Any]) -> None:
    values, counts = np.unique(draws, return_counts=True)
    share = counts / draws.size
    if set(values.tolist()) <= {0, 1}:
        probability = float(np.asarray(draws).mean())
        axes.bar([0, 1], [1.0 - probability, probability], width=0.6, color=canvas._COLOURS[0])
        axes.set_xticks([0, 1], ["0: no", "1: yes"])
        axes.annotate(
            f"{probability:.3g}", (1, probability), xytext=(0, 2), textcoords="offset points",
            ha="center", va="bottom", fontsize=8.0,
        )  # fmt: skip
        axes.set(xlim=(-0.6, 1.6), ylim=(0.0, 1.1))
    else:
        axes.bar(values, share, width=0.9, color=canvas._COLOURS[0])
        axes.axvline(float(np.asarray(draws).mean()), color="0.2", linewidth=1.0, ls=(0, (3, 2)))
        axes.set_xlabel("count (dashed: mean)")
        axes.locator_params(axis="x", integer=True)
    axes.set_ylabel("share of draws")
    axes.grid(visible=False, axis="x")


def _traces(axes: Axes, draws: NDArray[Any]) -> None:
    for chain, values in enumerate(draws):
        axes.plot(values, linewidth=0.5, alpha=0.8, **_chain_style(chain))
    axes.set(xlabel="draw", ylabel="value", xlim=(0, draws.shape[1]))
    axes.locator_params(axis="y", integer=True)


def _ranked(draws: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rank of each draw among all draws of all chains, equal ones at random."""
    chance = np.random.default_rng(0).random(draws.size)
    ranks = np.empty(draws.size, dtype=np.int64)
    ranks[np.lexsort((chance, draws.ravel()))] = np.arange(draws.size)
    return ranks.reshape(draws.shape)


def _ranks(axes: Axes, draws: NDArray[Any]) -> None:
    """Draw how often each chain has a rank of each bin, over what it would have by chance."""
    edges = np.linspace(0.0, draws.size, _RANK_BINS + 1)
    even = draws.shape[1] / _RANK_BINS
    for chain, own in enumerate(_ranked(draws) + 0.5):
        share = np.histogram(own, edges)[0] / even
        shares = np.linspace(0.0, 1.0, _RANK_BINS + 1)
        axes.stairs(share, shares, baseline=None, linewidth=1.4, **_chain_style(chain))
    axes.axhline(1.0, color="0.35", linewidth=1.0, linestyle=(0, (3, 2)), zorder=0)
    axes.set(xlabel="rank among all draws (share)", ylabel="draws / if even", xlim=(0.0, 1.0))
    axes.set_ylim(bottom=0.0)


def _correlations(axes: Axes, draws: NDArray[Any]) -> None:
    lags = min(_LAGS, draws.shape[1] - 1)
    for chain, values in enumerate(draws):
        moved = values - values.mean()
        variance = float(moved @ moved)
        if variance == 0.0:  # a chain that stands still has no autocorrelation
            axes.plot([], [], **_chain_style(chain))
            continue
        at = [float(moved[: moved.size - k] @ moved[k:]) / variance for k in range(lags + 1)]
        axes.plot(range(lags + 1), at, linewidth=1.2, **_chain_style(chain))
    axes.axhline(0.0, color="0.35", linewidth=1.0, zorder=0)
    axes.set(xlabel="lag, draws", ylabel="autocorrelation", ylim=(-0.3, 1.03), xlim=(0, lags))


def plot_posterior(
    samples: Samples, *, labels: Sequence[Hashable] | None = None, ax: Where = None
) -> Panels:
    """Draw how often each value was drawn: two bars for the target, one for each count.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each variable; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each variable, draws of all chains together.
    """
    return _each(samples, labels, ax, _bars, chains=False)


def plot_trace(
    samples: Samples, *, labels: Sequence[Hashable] | None = None, ax: Where = None
) -> Panels:
    """Draw the value of each variable along each chain: it should look like noise.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each variable; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each variable, a line for each chain.
    """
    return _each(samples, labels, ax, _traces, wide=True)


def plot_rank(
    samples: Samples, *, labels: Sequence[Hashable] | None = None, ax: Where = None
) -> Panels:
    """Draw how the ranks of the draws spread over the chains: evenly, if the chains agree.

    Equal counts are ranked at random, so that ties favour no chain.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each variable; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each variable: for each chain the number of its draws in twentieths of all
        ranks, over the number if chains agree (the dashed line at 1).
    """
    return _each(samples, labels, ax, _ranks)


def plot_autocorr(
    samples: Samples, *, labels: Sequence[Hashable] | None = None, ax: Where = None
) -> Panels:
    """Draw how far along a chain a draw still shows: lines that fall fast are good.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each variable; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each variable, a line for each chain: the autocorrelation at lags 0 to 60.  A
        chain that never moves has none.
    """
    return _each(samples, labels, ax, _correlations)
