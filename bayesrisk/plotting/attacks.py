"""Figures of attacks: claims, occupancy, re-identification, majorities and variability."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.plotting import _canvas as canvas
from bayesrisk.plotting._canvas import Axes, Panels, Where

_LETTERS = 60  # of a line of a label
#: A figure as it is drawn for a phone.
phone_png = canvas.phone_png

# Figures of verified claims: how many places have one, and how surprising they are.


@canvas.styled
def draw_numbers(numbers: Mapping[str, float], label: str) -> Axes:
    """Return a bar chart of a few numbers, each labelled with its value."""
    axes = canvas.panel(None, 6.4, 0.7 + 0.34 * len(numbers))
    names, sizes = [canvas.as_text(name) for name in numbers], list(numbers.values())
    axes.barh(range(len(names)), sizes, color=canvas.COLOURS[0], height=0.7)
    for place, size in enumerate(sizes):
        axes.annotate(
            f"{size:,}", (size, place), xytext=(3, 0), textcoords="offset points",
            va="center", fontsize=8.0,
        )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 1.2 * max(*sizes, 1)), xlabel=label)
    axes.locator_params(axis="x", integer=True, nbins=5)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    return axes


@canvas.styled
def plot_bounds(frame: pd.DataFrame) -> Axes:
    """Draw the range of each count as stated, and as narrowed by all counts together.

    ``frame`` has columns ``label``, ``low_stated``, ``high_stated`` (missing without an end),
    ``low`` and ``high``, a row for each count; they are drawn from the top.
    """
    canvas.require(frame, ("label", "low_stated", "high_stated", "low", "high"))
    labels = [textwrap.fill(canvas.as_text(text), _LETTERS) for text in frame["label"]]
    lines = 1 + max(text.count("\n") for text in labels)
    axes = canvas.panel(None, 6.4, 0.9 + (0.06 + 0.14 * lines) * len(frame))
    rows = np.arange(len(frame))
    ends = frame[["low_stated", "high_stated", "low", "high"]].astype("Float64")
    edge = 1.15 * float(ends.max().max()) + 1.0
    stated, most, low, high = (ends[name].fillna(edge).to_numpy(float) for name in ends)
    axes.hlines(rows, stated, most, color="0.8", linewidth=6.0)
    axes.hlines(rows, low, high, color=canvas.COLOURS[0], linewidth=2.5)
    axes.plot(low, rows, "o", high, rows, "o", color=canvas.COLOURS[0], markersize=4.0)
    axes.set_yticks(rows, labels, fontsize=7.5)
    axes.set(
        xlabel="records",
        xlim=(min(-0.02 * edge, 1.1 * low.min()), edge),
        ylim=(len(frame) - 0.4, -0.6),
    )
    axes.grid(visible=False, axis="y")
    return axes


@canvas.styled
def plot_claims(
    coverage: pd.DataFrame, priors: Mapping[str, pd.DataFrame], *, ax: Where = None
) -> Panels:
    """Return panels of places with a verified claim, and of claims' priors, by columns.

    The left panel has the number of places with at least one claim (Figures 2a and 3a of Liu et
    al.). A panel for each prior follows (2b, 2c, 3b and 3c). Boxes are quartiles; whiskers reach
    1.5 times the interquartile range, and points lie beyond.

    Parameters
    ----------
    coverage : pandas.DataFrame
        From :meth:`Claims.covered`: columns ``columns`` and ``claims``, a row for each place and
        number of columns.
    priors : mapping of str to pandas.DataFrame
        From :func:`claim_priors`, by the name of the prior: columns ``n_columns`` and ``prior``.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    coverage = canvas.require(coverage, ("columns", "claims"), "coverage")
    if not check.mapping(priors, "priors"):
        raise ArgumentError("priors", "must have at least one frame", shown="none")
    for frame in priors.values():
        frame = canvas.require(frame, ("n_columns", "prior"), "priors")
    most = int(coverage["columns"].max())
    left, *prior_panels = every = canvas.panels(ax, 1 + len(priors), (3.0 + 2.9 * len(priors), 3.2))
    _places(left, coverage)
    for axes, (name, frame) in zip(prior_panels, priors.items(), strict=True):
        _boxes(axes, frame, name)
    top = max(float(frame["prior"].max()) for frame in priors.values())
    for axes in prior_panels:
        axes.set_ylim(-0.02 * top, 1.05 * top)
    for axes in (left, *prior_panels):
        axes.set_xticks(range(1, most + 1))
        axes.set_xlim(0.4, most + 0.6)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("columns of the claim")
    return every


def _places(axes: Axes, coverage: pd.DataFrame) -> None:
    claimed = coverage.assign(some=coverage["claims"] > 0).groupby("columns")["some"]
    counts = claimed.sum()
    axes.bar(counts.index, counts.to_numpy(), color=canvas.COLOURS[0], width=0.75)
    for x, y in counts.items():
        axes.annotate(
            f"{int(y)}", (float(str(x)), float(y)), xytext=(0, 1), textcoords="offset points",
            ha="center", va="bottom", fontsize=7.5,
        )  # fmt: skip
    axes.set_axisbelow(True)
    axes.set_ylim(0, 1.08 * int(claimed.size().max()))
    axes.locator_params(axis="y", integer=True)
    axes.set(
        ylabel=f"places (of {int(claimed.size().max())}) with a claim", title="at least one claim"
    )


def _boxes(axes: Axes, frame: pd.DataFrame, name: str) -> None:
    groups = {int(str(k)): part["prior"].to_numpy() for k, part in frame.groupby("n_columns")}
    thin: Any = {key: {"linewidth": 0.9} for key in ("boxprops", "whiskerprops", "capprops")}
    axes.boxplot(
        list(groups.values()),
        positions=list(groups),
        widths=0.6,
        manage_ticks=False,
        medianprops={"color": canvas.COLOURS[1], "linewidth": 1.6},
        flierprops={"marker": ".", "markersize": 2.0, "alpha": 0.35, "markeredgecolor": "0.3"},
        **thin,
    )
    axes.set(ylabel="prior probability of the claim", title=f"prior: {canvas.as_text(name)}")


# Figures of occupancy violations: blocks, households linked, and variability of solutions.


_NAMES = {
    "none": "no protection",
    "swapping": "swapping",
    "das": "noise, DAS budget",
    "uniform": "noise, uniform",
    "das-hud": "DAS budget, HUD too",
    "uniform-hud": "uniform, HUD too",
    "sampling": "sampling attack",
}
_MEASURES = ("precision", "recall")
_CURVES = ("precision", "recall", "match_rate")


def _name(protection: str) -> str:
    return _NAMES.get(protection, canvas.as_text(protection))


@canvas.styled
def plot_occupancy_blocks(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Return panels of precision and recall of finding blocks with a violation, by protection.

    Bars are intervals; short lines are blind guesses of as many blocks.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame ``table`` of an :class:`OccupancyResults`.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    wanted = [f"{m}{end}" for m in _MEASURES for end in ("", "_lower", "_upper", "_baseline")]
    frame = canvas.require(frame, ("protection", "infeasible_as", *wanted))
    names = frame["protection"].unique().tolist()
    panels = canvas.pair(ax, height=3.4)
    for axes, measure in zip(panels, _MEASURES, strict=True):
        _intervals(axes, frame, names, measure)
    # Intervals may be anywhere in a panel, and each protection has its own.
    canvas.legend_outside(panels, *panels[0].get_legend_handles_labels(), ncols=2)
    return panels


def _intervals(axes: Axes, frame: pd.DataFrame, names: list[str], measure: str) -> None:
    """Draw one measure with intervals by protection, one mark for each reading."""
    readings = frame["infeasible_as"].unique().tolist()
    for i, reading in enumerate(readings):
        rows = frame[frame["infeasible_as"] == reading].set_index("protection").loc[names]
        value, low, high = (rows[f"{measure}{end}"] for end in ("", "_lower", "_upper"))
        place = np.arange(len(names)) + 0.26 * (i - 0.5 * (len(readings) - 1))
        text = "not counted" if reading == "apart" else "counted as violations"
        axes.errorbar(
            place,
            value,
            yerr=canvas.reach(value, low, high),
            **canvas.point(i),
            linestyle="none",
            markersize=5.0,
            capsize=2.5,
            label=f"infeasible blocks {text}",
        )
        blind = rows[f"{measure}_baseline"].to_numpy(float)
        axes.hlines(blind, place - 0.11, place + 0.11, color="0.35", linewidth=1.2)
    axes.plot([], [], color="0.35", linewidth=1.2, label="blind guess")
    canvas.named_ticks(axes, [_name(n) for n in names])
    axes.set(ylim=(-0.03, 1.05), ylabel=f"{measure}, blocks")


@canvas.styled
def plot_occupancy_linkage(
    frame: pd.DataFrame, *, key: str, unique: bool, against: str = "recall", ax: Where = None
) -> Panels:
    """Return panels of precision and match rate of households linked, by protection.

    The left panel has precision, with the rate of violations (a blind guess); the right one the
    match rate.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame ``curves`` of an :class:`OccupancyResults`.
    key : str
        Match key; one of those in the frame.
    unique : bool
        Whether to show households that are alone in their block with their key, or all.
    against : {"recall", "k"}, default "recall"
        Quantity on the horizontal axis of precision.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    frame = canvas.require(frame, ("protection", "key", "unique", "k", *_CURVES, "baseline"))
    check.choice(key, "key", tuple(frame["key"].unique()))
    check.choice(against, "against", ("recall", "k"))
    rows = frame[(frame["key"] == key) & (frame["unique"] == check.flag(unique, "unique"))]
    if rows.empty:
        raise ArgumentError(f"frame must have a row with key {key!r} and unique {unique}, got none")
    names = rows["protection"].unique().tolist()
    left, right = panels = canvas.pair(ax, height=3.4)
    for i, name in enumerate(names):
        curve = rows[rows["protection"] == name].sort_values("k")
        left.plot(curve[against], curve["precision"], label=_name(name), **canvas.look(i))
        right.plot(curve["k"], curve["match_rate"], **canvas.look(i))
    left.axhline(float(rows["baseline"].iloc[0]), zorder=0, **canvas.GREY)
    left.plot([], [], label="blind guess", **canvas.GREY)
    unit = "unique households" if unique else "households"
    left.set(ylim=(-0.03, 1.03), xlabel=against, ylabel=f"precision, {unit}")
    right.set(ylim=(-0.03, 1.03), xlabel="k, entries of the ranking", ylabel="match rate")
    for axes, column in ((right, "match_rate"), (left, "precision")):
        # A study may have linked nobody: then there is nothing to scale.
        if (axes is right or against == "k") and rows[column].notna().any():
            canvas.logarithmic(axes, rows["k"])
    canvas.legend_outside(panels, *left.get_legend_handles_labels(), ncols=4)
    return panels


@canvas.styled
def plot_occupancy_counts(frame: pd.DataFrame, *, protection: str, ax: Axes | None = None) -> Axes:
    """Return a panel of reconstructed against true violations of every block.

    There is one point for each block found to hold a violation; the line is equality.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame ``blocks`` of an :class:`OccupancyResults`.
    protection : str
        One of the protections in the frame.
    ax : matplotlib.axes.Axes, optional
    """
    frame = canvas.require(frame, ("protection", "violations", "reconstructed"))
    check.choice(protection, "protection", tuple(frame["protection"].unique()))
    rows = frame[(frame["protection"] == protection) & frame["reconstructed"].notna()]
    axes = canvas.panel(ax, 3.7, 3.3)
    points: dict[str, Any] = {"linestyle": "none", "markersize": 4.0, "alpha": 0.5}
    axes.plot(rows["violations"], rows["reconstructed"], **canvas.point(0), **points)
    # Noise can make far more violations than there are: each axis has its own scale.
    axes.axline((0.0, 0.0), slope=1.0, zorder=0, **canvas.GREY)
    axes.locator_params(axis="x", integer=True)
    axes.set(
        xlabel="households in violation",
        ylabel="mean of the reconstructions",
        title=_name(protection),
    )
    return axes


@canvas.styled
def plot_occupancy_variability(frame: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Return panels of the distribution of solution variability over blocks and over households.

    They show cumulative shares, left of blocks, right of households, for each set of attributes.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame ``variability`` of an :class:`OccupancyResults`.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    frame = canvas.require(frame, ("attributes", "share", "households"))
    shares = frame[frame["share"].notna()]
    left, right = panels = canvas.pair(ax, height=3.1)
    for i, name in enumerate(shares["attributes"].unique()):
        rows = shares[shares["attributes"] == name].sort_values("share")
        share = rows["share"].to_numpy(float)
        weights = (np.ones(len(rows)), rows["households"].to_numpy(float))
        for axes, weight in zip((left, right), weights, strict=True):
            below = np.cumsum(weight) / weight.sum()
            axes.step(
                np.concatenate([[0.0], share]),
                np.concatenate([[0.0], below]),
                where="post",
                label=f"{name} attributes",
                **canvas.look(i),
            )
    for axes, unit in ((left, "blocks"), (right, "households")):
        axes.set(
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel="at most this share of records may differ",
            ylabel=f"share of {unit}",
        )
    left.legend()
    return panels


_GUESSERS = {"MDG": "modal guesser (MDG)", "PRG": "proportional guesser (PRG)"}
_RATES = (
    *("attacker", "source", "block_size", "putative"),
    *("precision", "precision_lower", "precision_upper"),
)
_RATIO = ("left_out_ratio", "left_out_ratio_lower", "left_out_ratio_upper")


@canvas.styled
def plot_reidentification(rates: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Return panels of the precision of re-identification by block size, guessers in grey.

    The left panel has precision with its intervals. The right one has its ratio to the success of a
    guesser without the target's record (``left_out_ratio``), with its interval. An arrow marks an
    interval that extends beyond the panel.

    Parameters
    ----------
    rates : pandas.DataFrame
        Result of :meth:`Reidentification.to_frame` with its rows by size, for one attacker.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    rates = canvas.require(rates, (*_RATES, *_RATIO), "rates")
    if rates["attacker"].nunique() > 1:
        names = rates["attacker"].unique().tolist()
        raise ArgumentError("rates", "must be of one attacker", shown=names)
    points = rates[(rates["block_size"] != "All") & (rates["putative"] > 0)]
    linked = set(points["block_size"])
    sizes = [size for size in rates["block_size"].unique() if size in linked]
    position = {size: i for i, size in enumerate(sizes)}
    left, right = panels = canvas.pair(ax, 7.2, 3.4)
    # Ratios set the scale: the interval of a class with few blocks may run off it.
    ratios = points.loc[~points["source"].isin(_GUESSERS), "left_out_ratio"].dropna()
    ratios = ratios[ratios > 0]
    far = 10.0 * max([1.0, *ratios])
    sources = rates["source"].unique().tolist()
    attacks = [name for name in sources if name not in _GUESSERS]
    ends: list[tuple[FloatArray, FloatArray, FloatArray, Any]] = []  # of intervals of ratios
    for name in sources:
        rows = points[points["source"] == name]
        is_guess = name in _GUESSERS
        number = [*(_GUESSERS if is_guess else attacks)].index(name)
        marks = canvas.look(number, marked=True)
        if is_guess:  # grey, so that the attacks stand out
            marks = {"color": "0.4", "marker": "x+"[number]}
        marks["linestyle"] = "none"  # classes of size have nothing between them
        # Side by side, so that intervals do not hide each other.
        # A source without a link has no row, and no number to add to.
        positions = np.array([float(position[size]) for size in rows["block_size"]])
        positions += 0.08 * (sources.index(name) - len(sources) / 2)
        for axes, rate in ((left, "precision"), *([] if is_guess else [(right, "left_out_ratio")])):
            upper = rows[f"{rate}_upper"].replace(np.inf, far)  # few blocks: no upper end
            span = canvas.reach(rows[rate], rows[f"{rate}_lower"], upper)
            label = _GUESSERS.get(name, canvas.as_text(name))
            axes.errorbar(positions, rows[rate], yerr=span, capsize=2.0, label=label, **marks)
            if axes is right:
                low, high = (rows[f"{rate}_{end}"].to_numpy(float) for end in ("lower", "upper"))
                ends.append((positions, low, high, marks["color"]))
    left.set(ylabel="precision", ylim=(0.0, 1.05))
    right.set_ylabel("precision / guesser's")
    canvas.ratio_axis(right, points["left_out_ratio"])
    if len(ratios):
        log = right.get_yscale() == "log"
        right.set_ylim(min(ratios.min(), 1.0) / 2.0 if log else 0.0, 1.7 * max(ratios.max(), 1.0))
    bottom, top = right.get_ylim()
    for positions, low, high, color in ends:
        for edge, beyond, marker in ((top, high > top, "^"), (bottom, low < bottom, "v")):
            x = positions[beyond]
            style = {"linestyle": "none", "markersize": 4.0, "clip_on": False, "color": color}
            for arrow in right.plot(x, np.full(x.size, edge), marker, **style):
                arrow.set_in_layout(False)  # it takes no room: panels are as wide as without it
    for axes in (left, right):
        axes.set_xticks(range(len(sizes)), sizes, rotation=30, ha="right")
        axes.set(xlabel="people in the block", xlim=(-0.6, len(sizes) - 0.4))
    canvas.legend_outside(panels, *left.get_legend_handles_labels(), side="upper", ncols=6)
    return panels


@canvas.styled
def plot_majority(curves: pd.DataFrame, *, ax: Where = None) -> Panels:
    """Return the precision of majority inference over records, a panel for each threshold.

    Precision is drawn against the share of records inferred with at least that precision, a line
    for each release.

    Parameters
    ----------
    curves : pandas.DataFrame
        Results of :meth:`MajorityInference.curve`; those of several thresholds are concatenated.
    ax : sequence of matplotlib.axes.Axes, optional
    """
    curves = canvas.require(curves, ("release", "threshold", "precision", "recall"), "curves")
    thresholds = sorted(curves["threshold"].unique().tolist())
    size = (7.2, 2.9 * ((len(thresholds) + 1) // 2))
    columns = min(2, len(thresholds))
    every = canvas.panels(ax, len(thresholds), size, columns=columns, sharex=True, sharey=True)
    for axes, threshold in zip(every, thresholds, strict=True):
        points = curves[curves["threshold"] == threshold]
        for i, release in enumerate(points["release"].unique()):
            rows = points[points["release"] == release].sort_values("recall")
            recall, precision = rows[["recall", "precision"]].to_numpy(float).T
            axes.step(
                np.insert(recall, 0, 0.0),
                np.insert(precision, 0, precision[0]),
                where="pre",
                label=canvas.as_text(release),
                **canvas.look(i),
            )
        axes.set(title=f"majority of at least {threshold}", xlim=(0.0, 1.0), ylim=(0.0, 1.05))
        axes.set_ylabel("precision")
        axes.set_xlabel("share of people in blocks\nwith at least this precision")
        axes.label_outer()
    canvas.legend_outside(every, *every[0].get_legend_handles_labels(), ncols=4)
    return every


@canvas.styled
def plot_variability(quantiles: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Return a panel of quantiles of solution variability over the population.

    It is in percent, against the cumulative percentage of people. If lower and upper bounds differ,
    the band between them is drawn.

    Parameters
    ----------
    quantiles : pandas.DataFrame
        Result of :func:`variability_quantiles`; a column ``scope`` gives one line for each value.
    ax : matplotlib.axes.Axes, optional
    """
    canvas.require(
        quantiles, ("cumulative_percentage", "quantile_lower", "quantile_upper"), "quantiles"
    )
    frame = quantiles if "scope" in quantiles else quantiles.assign(scope="")
    axes = canvas.panel(ax, 4.6, 3.2)
    for i, scope in enumerate(frame["scope"].unique()):
        rows = frame[frame["scope"] == scope].sort_values("cumulative_percentage")
        percentages = rows["cumulative_percentage"]
        low, high = rows["quantile_lower"], rows["quantile_upper"]
        (line,) = axes.plot(percentages, high, label=str(scope), **canvas.look(i, marked=True))
        axes.fill_between(percentages, low, high, color=line.get_color(), alpha=0.2, linewidth=0.0)
    axes.set(
        xlabel="people, cumulative percentage",
        ylabel="solution variability, percent",
        xlim=(0.0, 102.0),
    )
    axes.set_ylim(bottom=-0.02 * max(1.0, float(frame["quantile_upper"].max())))
    if frame["scope"].nunique() > 1:
        axes.legend()
    return axes
