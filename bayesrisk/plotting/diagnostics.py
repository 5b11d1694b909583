"""How chains of draws look: the draws of :class:`Samples`, in the style of every other figure.

ArviZ draws more kinds: hand it the draws by :func:`to_arviz`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where, legend_outside, panels, style

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


def _look(chain: int) -> dict[str, Any]:
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
        axes.plot(values, linewidth=0.5, alpha=0.8, **_look(chain))
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
        axes.stairs(share, shares, baseline=None, linewidth=1.4, **_look(chain))
    axes.axhline(1.0, color="0.35", linewidth=1.0, linestyle=(0, (3, 2)), zorder=0)
    axes.set(xlabel="rank among all draws (share)", ylabel="draws / if even", xlim=(0.0, 1.0))
    axes.set_ylim(bottom=0.0)


def _correlations(axes: Axes, draws: NDArray[Any]) -> None:
    lags = min(_LAGS, draws.shape[1] - 1)
    for chain, values in enumerate(draws):
        moved = values - values.mean()
        variance = float(moved @ moved)
        if variance == 0.0:  # a chain that stands still has no autocorrelation
            axes.plot([], [], **_look(chain))
            continue
        at = [float(moved[: moved.size - k] @ moved[k:]) / variance for k in range(lags + 1)]
        axes.plot(range(lags + 1), at, linewidth=1.2, **_look(chain))
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

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
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

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
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

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
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

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
    """
    return _each(samples, labels, ax, _correlations)
