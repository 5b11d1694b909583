"""Figures of audits and plans: adversaries' knowledge against the cost of protection."""

import math
import textwrap
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import read_own_csv
from bayesrisk._base.validation import BoolArray, FloatArray
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.mechanisms.registry import shown_name
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where

#: Readings by an adversary's best model, which need no name beside the protection's, and attacks
#: whose name says how the release was read.
_BEST = ("likelihood", "swap-aware", "working-error")
_NAMES = ("reconstruction", "majority", "claims", "occupancy")
_THREE = (
    ("believed_prior", "before any release", "o", "none"),
    ("believed_without", "without their own record", "s", "none"),
    ("believed_posterior", "after the release", "D", None),
)
_KEYS = ("protection", "attack", "adversary")
_LETTERS = 36  # of a line of a name
_EVERYBODY = "everybody"


class AuditTables(Protocol):
    """Tables of a finished audit, as :func:`~bayesrisk.read_audit` returns them."""

    @property
    def measures(self) -> pd.DataFrame:
        """Rows as in ``measures.csv``."""

    @property
    def costs(self) -> pd.DataFrame:
        """Rows as in ``costs.csv``."""

    @property
    def comparisons(self) -> pd.DataFrame:
        """Rows as in ``comparisons.csv``."""


_ANSWERS = ("answers_posterior", "answers_posterior_lower", "answers_posterior_upper")
#: Verdicts that tell an order, measured or by construction.
_LOWER, _HIGHER = ("less", "no more"), ("more", "no less")
#: Times the lower end of an interval: beyond, it says nothing.
WIDE = 10.0


@canvas.styled
def plot_audit(
    measures: pd.DataFrame | AuditTables | str | Path,
    costs: pd.DataFrame | None = None,
    comparisons: pd.DataFrame | None = None,
    *,
    population: str | None = None,
    ax: Where = None,
) -> Panels:
    """Return panels of remaining answers against the error of a count, one per adversary.

    The remaining answers are the number of equally probable answers among which the truth would be
    as uncertain. Fewer is worse, and one is certainty. Each adversary has a panel. Each protection
    has a point with its interval, by the adversary's best reading. A band shows 95 in 100 single
    releases of a randomised protection.

    Parameters
    ----------
    measures : pandas.DataFrame, AuditResults, str or Path
        Rows of :func:`~bayesrisk.risk.audit_measures`; of several groups, the rows of everybody are
        drawn. Or a finished audit from :func:`~bayesrisk.read_audit`, or its folder.
    costs : pandas.DataFrame
        ``error``, the mean absolute error of a count, for each ``protection``. Omit it, and the
        comparisons, for a finished audit.
    comparisons : pandas.DataFrame, optional
        Rows of :func:`~bayesrisk.risk.compare`. A line joins two protections if their order was
        decided and no third one lies between them. Without comparisons nothing is joined.
    population : str, optional
        Required if several populations were audited.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    if not isinstance(measures, pd.DataFrame):
        if costs is not None or comparisons is not None:
            raise ArgumentError("costs and comparisons must be left out: a finished audit has them")
        if isinstance(measures, str | PathLike):
            names = ("measures", "costs", "comparisons")
            measures, costs, comparisons = (_audit_table(measures, name) for name in names)
        elif hasattr(measures, "comparisons"):
            costs, comparisons = measures.costs, measures.comparisons
            measures = measures.measures
    needed = (*_ANSWERS, "error_releases", "releases", "randomised")
    measures = canvas.require(check.frame(measures, "measures"), (*_KEYS, *needed), "measures")
    measures = _chosen_rows(measures, "population", population, must_exist=population is not None)
    costs = canvas.require(check.frame(costs, "costs"), ("protection", "error"), "costs")
    costs = _chosen_rows(costs, "population", population)
    if comparisons is not None:
        comparisons = _chosen_rows(comparisons, "population", population)
    measures = _chosen_rows(measures, "group", _EVERYBODY)
    if "group" in measures and set(measures["group"]) != {_EVERYBODY}:
        comparisons = None
    measures = _best_readings(measures)
    error = costs.set_index("protection")["error"]
    adversaries = measures["adversary"].unique().tolist()
    order = list(dict.fromkeys(_name(row) for _, row in measures.iterrows()))
    # The legend below has two columns; beyond three rows it would take the panels' place.
    height = 3.3 + 0.2 * max(-(-len(order) // 2) - 3, 0)
    every = canvas.panels(ax, len(adversaries), (2.0 + 2.4 * len(adversaries), height), sharey=True)
    for axes, adversary in zip(every, adversaries, strict=True):
        rows = measures[measures["adversary"] == adversary]
        axes.axhline(1.0, color="0.6", linewidth=0.8)
        for _, row in rows.iterrows():
            look = canvas.point(order.index(_name(row)))
            answers, low, high = (row[name] for name in _ANSWERS)
            if not math.isfinite(answers):  # the truth was held impossible
                continue
            cost, (below, above) = error[row["protection"]], one_release(row)
            if below < above < WIDE * below:
                axes.vlines(
                    cost, below, above,
                    color=look["color"], alpha=0.25, linewidth=7.0, zorder=1.5,
                )  # fmt: skip
            # An interval that says nothing would hide the others.
            reach = canvas.reach([answers], [low], [high]) if high < WIDE * low else None
            axes.errorbar(
                [cost],
                [answers],
                yerr=reach,
                **look,
                capsize=2.5,
                linestyle="none",
                label=_name(row),
            )
        axes.set_title(canvas.as_text(adversary), fontsize=9.5)
        axes.set_xlabel("cost: mean absolute error of a count")
        axes.margins(x=0.08)
    for axes, adversary in zip(every, adversaries, strict=True):
        _join(axes, measures[measures["adversary"] == adversary], error, comparisons)
    for axes in canvas.leftmost(every):
        axes.set_ylabel("remaining answers (fewer is worse)")
    canvas.legend_outside(every, *canvas.named_once(every), ncols=2)
    return every


def _audit_table(folder: str | Path, name: str) -> pd.DataFrame:
    file = check.path(folder, "measures") / f"{name}.csv"
    if not file.is_file():
        raise DataError(
            f"{file.parent}: must be the folder of a finished audit, has no {file.name}"
        )
    return read_own_csv(file, ("population", "protection", "against"))


def _chosen_rows(
    frame: pd.DataFrame, column: str, value: str | None, *, must_exist: bool = False
) -> pd.DataFrame:
    """Return the rows of one population or group; raise if several would be overlaid."""
    values = list(dict.fromkeys(frame[column].tolist())) if column in frame else []
    if value in values:
        return frame[frame[column] == value]
    if must_exist or len(values) > 1:
        names = ", ".join(map(str, values))
        rule = f"one of {names}" if names else "left out, as one was audited"
        raise ArgumentError(column, f"must be {rule}; got {quote(value)}")
    return frame


def _best_readings(measures: pd.DataFrame) -> pd.DataFrame:
    order = {name: rank for rank, name in enumerate((*_BEST, "as-true"))}
    rank = measures["attack"].map(order).fillna(len(order))
    best = measures.loc[rank.sort_values(kind="stable").index]
    return best.drop_duplicates(["protection", "adversary"]).sort_index()


def one_release(row: Mapping[Any, Any]) -> tuple[float, float]:
    """Return the 95 % prediction interval of the remaining answers under one more release.

    Let s be the standard error of the mean logarithm over m releases. The interval reaches t s
    sqrt(m + 1) to each side, t the quantile of Student's law with m - 1 degrees of freedom. It is
    NaN for a single release.
    """
    number, answers = int(row["releases"]), float(row["answers_posterior"])
    if not row["randomised"]:
        return answers, answers
    reach = float(stdtrit(number - 1, 0.975) * row["error_releases"] * math.sqrt(number + 1.0))
    return max(answers * math.exp(-reach), 1.0), answers * math.exp(reach)


def _join(
    axes: Axes, rows: pd.DataFrame, error: pd.Series, comparisons: pd.DataFrame | None
) -> None:
    """Join protections whose order is decided by grey lines, leaving out implied pairs."""
    if comparisons is None:
        return
    best = rows[rows["attack"].isin(_BEST)]
    best = (rows if best.empty else best).drop_duplicates("protection")
    answers = best.set_index("protection")["answers_posterior"]
    mine = comparisons["adversary"].isin(rows["adversary"])
    mine &= comparisons["attack"].isin([*best["attack"], "posterior"])
    ordered_pairs = comparisons[mine & comparisons["verdict"].isin([*_LOWER, *_HIGHER])]
    pairs = {
        (row["protection"], row["against"])[:: 1 if row["verdict"] in _LOWER else -1]
        for _, row in ordered_pairs.iterrows()
    }
    pairs = {pair for pair in pairs if answers.index.isin(pair).sum() == 2}
    names = answers.index.tolist()
    points = np.stack([error[names], answers], axis=1)
    ends = np.array([axes.get_xlim(), axes.get_ylim()])
    axes.autoscale(enable=False)
    for low, high in sorted(pairs):
        if not any({(low, name), (name, high)} <= pairs for name in names):
            span = np.ptp(ends, axis=1)
            line = bent(points, names.index(low), names.index(high), span)
            for row in best[~best["protection"].isin((low, high))].to_dict(orient="records"):
                line[_behind(line, row, error[row["protection"]], span)] = np.nan
            axes.plot(*line.T, color="0.7", linewidth=1.2, zorder=1)


def _behind(line: FloatArray, row: Mapping[Any, Any], cost: float, span: FloatArray) -> BoolArray:
    """Return where a line would cross the point, interval or band of a protection between."""
    answers, *interval = (row[name] for name in _ANSWERS)
    reaches = [end for low, high in (one_release(row), interval) if high < WIDE * low
             for end in (low, high)]  # fmt: skip
    below, above = min([answers, *reaches]), max([answers, *reaches])
    middle, reach = np.array([cost, (below + above) / 2.0]), np.array([0.0, (above - below) / 2.0])
    crossed: BoolArray = (np.abs(line - middle) < reach + _CLEAR * span / 2.0).all(axis=1)
    return crossed


#: Bends of a line, as shares of its length, and the share of a panel that is clear of a marker.
_BENDS, _CLEAR = (0.0, 0.2, -0.2, 0.4, -0.4, 0.6, -0.6), 0.04


def bent(points: FloatArray, start: int, stop: int, span: FloatArray) -> FloatArray:
    """Bend a line between two of the points as little as keeps it clear of all others.

    ``span`` is that of the panel.
    """
    markers = np.delete(points, [start, stop], axis=0) / span
    markers, (x, y) = markers[np.isfinite(markers).all(axis=1)], points[[start, stop]] / span
    along = np.linspace(0.0, 1.0, 201)[:, None]

    def curve(share: float) -> FloatArray:
        middle = (x + y) / 2.0 + share * np.array([1.0, -1.0]) * (y - x)[::-1]
        line: FloatArray = (1 - along) ** 2 * x + 2 * along * (1 - along) * middle + along**2 * y
        return line

    def room(line: FloatArray) -> float:
        return float(np.linalg.norm(line[:, None] - markers, axis=2).min(initial=np.inf))

    lines = [curve(share) for share in _BENDS]
    best: FloatArray = next((one for one in lines if room(one) > _CLEAR), max(lines, key=room))
    return best * span


@canvas.styled
def plot_beliefs(
    measures: pd.DataFrame, *, population: str | None = None, ax: Where = None
) -> Panels:
    """Return panels of the belief in the truth: prior, without the target's record, and after.

    There is a panel for each adversary, and a line for each protection and reading.

    Parameters
    ----------
    measures : pandas.DataFrame
        Rows of :func:`~bayesrisk.risk.audit_measures`; of several groups, the rows of everybody are
        drawn.
    population : str, optional
        Required if several populations were audited.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    measures = canvas.require(measures, (*_KEYS, *(c for c, *_ in _THREE)), "measures")
    measures = _chosen_rows(measures, "population", population, must_exist=population is not None)
    measures = _chosen_rows(measures, "group", _EVERYBODY)
    adversaries = measures["adversary"].unique().tolist()
    lines = list(dict.fromkeys(_name(row) for _, row in measures.iterrows()))
    # The legend below is one row, wider than one panel.
    size = (max(2.6 + 2.1 * len(adversaries), 5.4), 1.5 + 0.32 * len(lines))
    every = canvas.panels(ax, len(adversaries), size, sharey=True)
    for axes, adversary in zip(every, adversaries, strict=True):
        rows = measures[measures["adversary"] == adversary]
        heights = [len(lines) - 1 - lines.index(_name(row)) for _, row in rows.iterrows()]
        low = 100.0 * rows[[c for c, *_ in _THREE]].min(axis=1)
        high = 100.0 * rows[[c for c, *_ in _THREE]].max(axis=1)
        axes.hlines(heights, low, high, color="0.75", linewidth=2.0, zorder=1)
        for i, (column, name, marker, face) in enumerate(_THREE):
            colour = canvas.COLOURS[i]
            axes.scatter(
                100.0 * rows[column], heights, marker=marker, s=34, label=name, zorder=2 + i,
                edgecolors=colour, facecolors=colour if face is None else face,
            )  # fmt: skip
        axes.set_title(canvas.as_text(adversary), fontsize=9.5)
        axes.set_xlabel("probability of the truth (%)")
        axes.set_xlim(0.0, 103.0)
    for axes in canvas.leftmost(every):
        axes.set_yticks(range(len(lines)), lines[::-1])
        axes.set_ylim(-0.6, len(lines) - 0.4)
    canvas.legend_outside(every, *every[0].get_legend_handles_labels(), ncols=3)
    return every


def _name(row: pd.Series) -> str:
    """Return the label of a point: its protection, and the attack unless it is the best."""
    protection, attack = canvas.as_text(row["protection"]), canvas.as_text(row["attack"])
    protection = shown_name(protection)
    read = f", {attack if attack in _NAMES else f'read {attack}'}" if attack not in _BEST else ""
    # A line of a recipe with all its settings would leave a phone no room for the panel.
    return textwrap.fill(f"{protection}{read}", _LETTERS, break_on_hyphens=False)


_RATES = ("false_positive_rate", "true_positive_rate")


@canvas.styled
def plot_tradeoff(curves: Mapping[str, pd.DataFrame], *, ax: Axes | None = None) -> Axes:
    """Return a panel of the true positive rate of the best test against its false positive rate.

    There is a line for each curve, and the diagonal, on which a test is no better than chance.

    Parameters
    ----------
    curves : mapping of str to pandas.DataFrame
        Curves by legend text, each as :meth:`TradeOffCurve.to_frame` returns it.
    ax : matplotlib.axes.Axes, optional
    """
    if not check.mapping(curves, "curves"):
        raise ArgumentError("curves", "must be at least one", shown="none")
    for frame in curves.values():
        frame = canvas.require(frame, _RATES)
    axes = canvas.panel(ax, 3.9, 3.6)
    axes.plot([0.0, 1.0], [0.0, 1.0], zorder=0, **canvas.GREY)
    for i, (name, frame) in enumerate(curves.items()):
        axes.plot(*(frame[rate] for rate in _RATES), label=canvas.as_text(name), **canvas.look(i))
    axes.set(
        xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="false positive rate",
        ylabel="true positive rate", aspect="equal",
    )  # fmt: skip
    axes.legend(loc="lower right")
    return axes


@canvas.styled
def plot_statements(
    statements: pd.DataFrame, *, comparable: Mapping[str, bool] | None = None, ax: Where = None
) -> Panels:
    """Return panels of the share of statements whose posterior over prior is at least a value.

    There is a panel for each attack, and a line for each protection. The axis ends where at most 1
    in 100 statements of any line is left. The share at the right edge includes all larger ratios,
    also infinite ones of a prior of 0.

    Parameters
    ----------
    statements : pandas.DataFrame
        Rows with ``attack``, ``protection``, ``status``, ``ratio``, and ``adversary`` if there are
        several. Rows without a ratio are left out.
    comparable : mapping of str to bool, optional
        Attacks whose protections have the same statements about the same targets
        (:attr:`Statements.comparable`); by default those with a single protection. Of other attacks
        only proved statements are drawn, and a line above the panels says so: under each
        protection, estimates are pooled over other people (see :func:`statements_about_people`).
    ax : sequence of matplotlib.axes.Axes, optional
    """
    statements = canvas.require(
        statements, ("attack", "protection", "status", "ratio"), "statements"
    )
    statements = _lines(statements)
    if comparable is None:
        comparability = dict(statements.groupby("attack")["protection"].nunique() == 1)
    else:
        comparability = dict(check.mapping(comparable, "comparable"))
    visible = statements["attack"].map(comparability).fillna(False).astype(bool)
    visible |= statements["status"] == "proved"
    ratios = statements[statements["ratio"].notna()]
    points = ratios[visible[ratios.index]]
    points = canvas.require(points, ("ratio",), "statements")
    hidden = ratios[~visible[ratios.index]].drop_duplicates(["attack", "protection"])
    attacks = points["attack"].unique().tolist()
    protections = points["protection"].unique().tolist()
    groups = points.groupby(["attack", "protection"])["ratio"]
    finite = points.loc[np.isfinite(points["ratio"]) & (points["ratio"] > 0), "ratio"]
    ends = groups.quantile(0.99, interpolation="lower")
    low = min(float(finite.min()), 1.0) / 1.5 if len(finite) else 0.5
    high = max(float(ends[np.isfinite(ends)].max()), 1.0) * 1.5 if np.isfinite(ends).any() else 2.0
    every = canvas.panels(ax, len(attacks), (1.2 + 2.7 * len(attacks), 3.2), sharey=True)
    for axes, attack in zip(every, attacks, strict=True):
        _panel(axes, points[points["attack"] == attack], protections, (low, high))
    for axes in every[1:]:
        axes.set_ylabel("")
    if len(hidden):
        pairs = ", ".join(
            f"{a} under {p}" for a, p in zip(hidden["attack"], hidden["protection"], strict=True)
        )
        note = f"Estimates about other people are not drawn: {canvas.as_text(pairs)}"
        # Above the panels: below them is the legend.
        figure = canvas.parent_figure(every)
        width = int(20.0 * figure.get_figwidth())
        figure.suptitle("\n".join(textwrap.wrap(note, width)), fontsize=8.0)
    canvas.legend_outside(every, *canvas.named_once(every), ncols=4)
    return every


def _lines(statements: pd.DataFrame) -> pd.DataFrame:
    """Return statements with the adversary's name added to protections where there are several."""
    frame = statements.reset_index(drop=True)
    if "adversary" in frame:
        several = frame.groupby("attack")["adversary"].transform("nunique") > 1
        labels = frame["protection"].astype("str") + ", " + frame["adversary"].astype("str")
        frame["protection"] = frame["protection"].astype("str").where(~several, labels)
    return frame


def _panel(
    axes: Axes, rows: pd.DataFrame, protections: list[str], span: tuple[float, float]
) -> None:
    low, high = span
    for i, protection in enumerate(protections):
        ratio = np.sort(rows.loc[rows["protection"] == protection, "ratio"].to_numpy(np.float64))
        if not ratio.size:
            continue
        share = 1.0 - np.arange(ratio.size) / ratio.size
        axes.step(
            np.concatenate([[low], np.clip(ratio, low, high), [high]]),
            np.concatenate([[1.0], share, [float((ratio > high).mean())]]),
            where="pre",
            label=canvas.as_text(protection),
            **canvas.look(i),
        )
    axes.axvline(1.0, zorder=0, **canvas.GREY)
    axes.set(
        xscale="log", xlim=(low, high), ylim=(-0.02, 1.02),
        title=canvas.as_text(rows["attack"].iloc[0]), xlabel="posterior / prior",
        ylabel="share of statements with at least\nthis ratio",
    )  # fmt: skip


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
    """Draw the table error of each setting against the counts or records it discloses.

    For settings examined only until a limit was exceeded, the drawn number is a lower bound.

    Parameters
    ----------
    frontier : pandas.DataFrame
        Settings, as in :class:`~bayesrisk.risk.ReleasePlan`.
    leak : str, default "proved"
        Column with the number disclosed.
    most : float, optional
        Its limit, drawn as a line.
    ax : Axes, optional
        Axes to draw in, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Error on the horizontal axis, the number disclosed on the vertical one.
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
