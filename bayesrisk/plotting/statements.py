"""Figure of statements: how much an adversary gains, by attack and protection."""

import textwrap
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where, legend_outside, panels, require, style


def plot_statements(
    statements: pd.DataFrame,
    *,
    comparable: Mapping[str, bool] | None = None,
    ax: Where = None,
) -> Panels:
    """Draw the share of statements whose ratio of posterior to prior is at least so large.

    Statements draw themselves (:meth:`Statements.plot`); this is for frames that look like theirs.

    Parameters
    ----------
    statements : pandas.DataFrame
        Rows with ``attack``, ``protection``, ``status``, ``ratio``, and ``adversary`` where there
        are several; those without a ratio are left out.
    comparable : mapping of str to bool, optional
        Attacks whose protections have the same statements about the same targets
        (:attr:`Statements.comparable`); by default those with a single protection.  Of others only
        proved ones are drawn, and a line above the panels says so: estimates are pooled over other
        people under each protection (see :func:`statements_about_people`).
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each attack; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each attack, a line for each protection.  The axis ends where at most 1 in 100
        statements of any line is left; what is beyond (also infinite ratios, of a prior of 0) is
        the share at the right edge.
    """
    require(statements, ("attack", "protection", "status", "ratio"), "statements")
    statements = _lines(statements)
    if comparable is None:
        same = dict(statements.groupby("attack")["protection"].nunique() == 1)
    else:
        same = dict(check.mapping(comparable, "comparable"))
    drawn = statements["attack"].map(same).fillna(False).astype(bool)
    drawn |= statements["status"] == "proved"
    some = statements[statements["ratio"].notna()]
    known = some[drawn[some.index]]
    require(known, ("ratio",), "statements")
    hidden = some[~drawn[some.index]].drop_duplicates(["attack", "protection"])
    attacks = list(dict.fromkeys(known["attack"].tolist()))
    protections = list(dict.fromkeys(known["protection"].tolist()))
    groups = known.groupby(["attack", "protection"])["ratio"]
    finite = known.loc[np.isfinite(known["ratio"]) & (known["ratio"] > 0), "ratio"]
    ends = groups.quantile(0.99, interpolation="lower")
    low = min(float(finite.min()), 1.0) / 1.5 if len(finite) else 0.5
    high = max(float(ends[np.isfinite(ends)].max()), 1.0) * 1.5 if np.isfinite(ends).any() else 2.0
    with style():
        every = panels(ax, len(attacks), (1.2 + 2.7 * len(attacks), 3.2), sharey=True)
        named: set[str] = set()
        for axes, attack in zip(every, attacks, strict=True):
            named |= _panel(axes, known[known["attack"] == attack], protections, (low, high), named)
        for axes in every[1:]:
            axes.set_ylabel("")
        if len(hidden):
            pairs = ", ".join(
                f"{a} under {p}"
                for a, p in zip(hidden["attack"], hidden["protection"], strict=True)
            )
            note = f"Estimates about other people are not drawn: {canvas.as_text(pairs)}"
            # Above the panels: below them is the legend.
            figure = canvas.figure_of(every)
            width = int(20.0 * figure.get_figwidth())
            figure.suptitle("\n".join(textwrap.wrap(note, width)), fontsize=8.0)
        handles, labels = zip(
            *(
                pair
                for axes in every
                for pair in zip(*axes.get_legend_handles_labels(), strict=True)
            ),
            strict=True,
        )
        legend_outside(every, handles, labels, ncols=4)
        return every


def _lines(statements: pd.DataFrame) -> pd.DataFrame:
    """Return statements whose protection names the adversary too, where there are several."""
    found = statements.reset_index(drop=True)
    if "adversary" in found:
        several = found.groupby("attack")["adversary"].transform("nunique") > 1
        both = found["protection"].astype("str") + ", " + found["adversary"].astype("str")
        found["protection"] = found["protection"].astype("str").where(~several, both)
    return found


def _panel(
    axes: Axes,
    rows: pd.DataFrame,
    protections: list[str],
    span: tuple[float, float],
    named: Collection[str] = (),
) -> set[str]:
    """Draw one attack, and return the protections that its legend now has."""
    low, high = span
    found = set()
    for i, protection in enumerate(protections):
        ratio = np.sort(rows.loc[rows["protection"] == protection, "ratio"].to_numpy(np.float64))
        if not ratio.size:
            continue
        share = 1.0 - np.arange(ratio.size) / ratio.size
        axes.step(
            np.concatenate([[low], np.clip(ratio, low, high), [high]]),
            np.concatenate([[1.0], share, [float((ratio > high).mean())]]),
            where="pre",
            label="_nolegend_" if protection in named else canvas.as_text(protection),
            color=canvas._COLOURS[i % len(canvas._COLOURS)],
            linestyle=canvas._DASHES[i % len(canvas._DASHES)],
        )
        found.add(protection)
    axes.axvline(1.0, color="0.35", linewidth=1.0, zorder=0)
    axes.set(
        xscale="log", xlim=(low, high), ylim=(-0.02, 1.02),
        title=canvas.as_text(rows["attack"].iloc[0]), xlabel="posterior / prior",
        ylabel="share of statements with at least\nthis ratio",
    )  # fmt: skip
    return found
