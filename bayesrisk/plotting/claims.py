"""Figures of verified claims: how many places have one, and how surprising they are."""

from collections.abc import Mapping

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where, panels, require, style


def plot_claims(
    coverage: pd.DataFrame, priors: Mapping[str, pd.DataFrame], *, ax: Where = None
) -> Panels:
    """Draw the places with a verified claim, and the prior probabilities, by number of columns.

    Parameters
    ----------
    coverage : pandas.DataFrame
        From :meth:`Claims.covered`: columns ``columns`` and ``claims``, a row for each place and
        number of columns.
    priors : mapping of str to pandas.DataFrame
        From :func:`claim_priors`, by the name of the prior: columns ``n_columns`` and ``prior``.
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        Left the number of places with at least one claim (Figures 2a and 3a of Liu et al.), then
        a panel for each prior: boxes are quartiles, whiskers reach 1.5 times their distance,
        points lie beyond (Figures 2b, 2c, 3b and 3c).
    """
    require(coverage, ("columns", "claims"), "coverage")
    if not check.mapping(priors, "priors"):
        raise ArgumentError("priors must have at least one frame, got none")
    for frame in priors.values():
        require(frame, ("n_columns", "prior"), "priors")
    most = int(coverage["columns"].max())
    with style():
        left, *others = every = panels(ax, 1 + len(priors), (3.0 + 2.9 * len(priors), 3.2))
        _places(left, coverage)
        for axes, (name, frame) in zip(others, priors.items(), strict=True):
            _boxes(axes, frame, name)
        top = max(float(frame["prior"].max()) for frame in priors.values())
        for axes in others:
            axes.set_ylim(-0.02 * top, 1.05 * top)
        for axes in (left, *others):
            axes.set_xticks(range(1, most + 1))
            axes.set_xlim(0.4, most + 0.6)
            axes.grid(visible=False, axis="x")
            axes.set_xlabel("columns of the claim")
        return every


def _places(axes: Axes, coverage: pd.DataFrame) -> None:
    some = coverage.assign(some=coverage["claims"] > 0).groupby("columns")["some"]
    counts = some.sum()
    axes.bar(counts.index, counts.to_numpy(), color=canvas._COLOURS[0], width=0.75)
    for x, y in counts.items():
        axes.annotate(
            f"{int(y)}", (float(str(x)), float(y)), xytext=(0, 1), textcoords="offset points",
            ha="center", va="bottom", fontsize=7.5,
        )  # fmt: skip
    axes.set_axisbelow(True)
    axes.set_ylim(0, 1.08 * int(some.size().max()))
    axes.locator_params(axis="y", integer=True)
    axes.set(
        ylabel=f"places (of {int(some.size().max())}) with a claim", title="at least one claim"
    )


def _boxes(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    groups = {int(str(k)): part["prior"].to_numpy() for k, part in frame.groupby("n_columns")}
    axes.boxplot(
        list(groups.values()),
        positions=list(groups),
        widths=0.6,
        manage_ticks=False,
        medianprops={"color": canvas._COLOURS[1], "linewidth": 1.6},
        flierprops={"marker": ".", "markersize": 2.0, "alpha": 0.35, "markeredgecolor": "0.3"},
        boxprops={"linewidth": 0.9},
        whiskerprops={"linewidth": 0.9},
        capprops={"linewidth": 0.9},
    )
    axes.set(ylabel="prior probability of the claim", title=f"prior: {canvas.as_text(name)}")
