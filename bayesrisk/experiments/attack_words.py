"""Sentences and the figure of an attack on published tables, and what may be quoted of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import Quotes
from bayesrisk.plotting.attacks import plot_bounds
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed

_DRAWN = 30  # counts of the figure


def hidden_sentences(bounds: CountBounds, coarse: str) -> list[str]:
    """Return sentences on the counts that can be worked out, and on how many people these are.

    ``coarse`` is what such counts are, such as ``hidden``.
    """
    frame = bounds.counts
    facts = bounds.facts
    ends = frame[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    recovered = (ends["low"] == ends["high"]) & (ends["low_stated"] < ends["high_stated"])
    single = int((recovered & (ends["low"] == 1)).sum())
    wide, exact = facts["coarsened"], facts["recovered"]
    narrower = int(narrowed(frame).sum()) - exact
    singles = (
        ""
        if not single
        else (
            "; one is a single record"
            if single == 1
            else f"; {single:,} of them are single records"
        )
    )
    if not wide:
        return ["No count is hidden: all are stated exactly."]
    if exact == wide:
        word = "The one" if wide == 1 else f"All {wide:,}"
        singles = singles.replace("; one", "; it") if wide == 1 else singles
        text = f"{word} {coarse} count{'s' * (wide > 1)} can be worked out{singles}."
    elif exact:
        text = f"{exact:,} of {wide:,} {coarse} counts can be worked out{singles}."
    else:
        text = f"None of {wide:,} {coarse} counts can be worked out."
        if wide == 1:
            text = f"The one {coarse} count cannot be worked out."
    rest = "others" if exact else "of them"
    more = f"{narrower:,} {rest} become narrower than they are stated."
    if narrower == wide > 1:
        more = "All of them become narrower than they are stated."
    if narrower == 1:
        more = f"One {rest.removesuffix('s')} becomes narrower than it is stated."
    more = more if narrower > 0 else ""
    sentences = [text, *([more] if more else [])]
    if facts["at_least_one"]:
        sure = facts["at_least_one"]
        sentences.append(
            f"{sure:,} counts that could be 0 by themselves are not 0."
            if sure > 1
            else "One count that could be 0 by itself is not 0."
        )
    return sentences


def attack_quotes(first: str, proved: Sequence[str], facts: Mapping[str, int]) -> Quotes:
    """Return quotations of an attack, and what may not be quoted.

    ``first`` is the first sentence, ``proved`` are statements that must be true.
    """
    must = "What is called proved holds for every list of records with these counts."
    may = [first, f"This must be true: {proved[0]}" if proved else must]
    may_not = {
        "The people in these tables were identified.": "Tables have no names: whose record it is, "
        "only other data can say.",
        "The records that were found are the true ones.": "They fit; other records may, unless the "
        "report says that none do.",
    }
    if (hidden := facts["coarsened"] - facts["recovered"]) > 0:
        safe, fault = f"{hidden:,} hidden counts are safe.", "Other tables may tell them."
    else:
        safe, fault = "All tables give as much away.", "Only these tables were looked at."
    used = "Nothing but the published counts was used."
    return Quotes([*may, used], {**may_not, safe: fault})


def placed(sentence: str, place: Mapping[Any, str]) -> str:
    """Return a sentence about records that says also where they are."""
    words = ", ".join(f"{name} {label}" for name, label in place.items())
    return sentence.replace(" with ", f" with {words}, ", 1) if words else sentence


def linked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose proofs are links of a page."""
    if "proof" not in frame:
        return frame
    links = [pages.PageCell(Path(file).name, href=file) for file in frame["proof"]]
    return frame.assign(proof=pd.Series(links, frame.index, dtype=object))


def bounds_figures(bounds: pd.DataFrame, folder: Path) -> list[pages.Figure]:
    """Return the figure of the counts of which most is learned."""
    ends = bounds[["low_stated", "high_stated", "low", "high"]].astype("Float64").fillna(np.inf)
    width, stated = ends["high"] - ends["low"], ends["high_stated"] - ends["low_stated"]
    chosen = bounds.loc[width[(width < stated)].sort_values(kind="stable").index].head(_DRAWN)
    if chosen.empty:
        return []
    names = chosen.columns[: chosen.columns.get_loc("stated")]
    rows = chosen[names].to_numpy()
    labels = [", ".join(label for label in row if label != "all") or "total" for row in rows]
    caption = (
        f"The {'' if len(chosen) == 1 else f'{len(chosen)} '}count{'s' * (len(chosen) > 1)} of "
        "which the tables together say most. Grey: what a count says "
        "by itself, up to the edge where nobody published it; blue: what must be true"
    )
    draw = functools.partial(plot_bounds, chosen.assign(label=labels))
    return [pages.figure(draw, folder / "bounds", caption)]
