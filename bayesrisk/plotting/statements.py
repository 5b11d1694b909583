"""Figure of statements: how much an adversary gains, by attack and protection."""

import textwrap

import numpy as np
import pandas as pd

from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Panels, Where, legend_outside, panels, require, style
from bayesrisk.risk.statements.statements import comparable_statements

__all__ = ["plot_statements"]


def plot_statements(statements: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Draw the share of statements whose ratio of posterior to prior is at least so large.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of any attacks, with columns ``attack``, ``protection``, ``target``,
        ``statement``, ``status``, ``ratio``; those without a ratio are left out.  Where the
        protections of an attack have different statements only proved ones are drawn, and a line
        under the figure says so: estimates are pooled over other people under each protection (see
        :func:`statements_about_people`).
    ax : sequence of matplotlib.axes.Axes, optional
        Where to draw, one Axes for each panel; by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes
        A panel for each attack, a line for each protection.  The axis ends where at most 1 in 100
        statements of any line is left; what is beyond (also infinite ratios, of a prior of 0) is
        the share at the right edge.

    Raises
    ------
    ArgumentError
        If a column is missing or no statement has a ratio that can be drawn.
    """
    require(statements, ("attack", "protection", "target", "statement", "status", "ratio"))
    statements = statements.reset_index(drop=True)
    same = comparable_statements(statements)
    drawn = statements["attack"].map(same) | (statements["status"] == "proved")
    some = statements[statements["ratio"].notna()]
    known = some[drawn[some.index]]
    require(known, ("ratio",))
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
            for i, protection in enumerate(protections):
                rows = known[(known["attack"] == attack) & (known["protection"] == protection)]
                if not len(rows):
                    continue
                ratio = np.sort(rows["ratio"].to_numpy(np.float64))
                share = 1.0 - np.arange(ratio.size) / ratio.size
                inside = np.clip(ratio, low, high)
                axes.step(
                    np.concatenate([[low], inside, [high]]),
                    np.concatenate([[1.0], share, [float((ratio > high).mean())]]),
                    where="pre",
                    label="_nolegend_" if protection in named else canvas.as_text(protection),
                    color=canvas._COLOURS[i % len(canvas._COLOURS)],
                    linestyle=canvas._DASHES[i % len(canvas._DASHES)],
                )
                named.add(protection)
            axes.axvline(1.0, color="0.35", linewidth=1.0, zorder=0)
            axes.set(
                xscale="log", xlim=(low, high), ylim=(-0.02, 1.02), title=canvas.as_text(attack),
                xlabel="posterior / prior",
            )  # fmt: skip
        every[0].set_ylabel("share of statements with at least\nthis ratio")
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
