"""Results of the occupancy attack, on one release or under several protections: the reports."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import plotting
from bayesrisk._base import disk
from bayesrisk._base.display import displayed
from bayesrisk.census.studies.linkage_words import (
    occupancy_advice,
    occupancy_lead,
    occupancy_quotes,
    occupancy_sentence,
)
from bayesrisk.experiments import pages
from bayesrisk.experiments.runs.folder import CONFIDENTIAL, RunFolder, config_digest
from bayesrisk.experiments.table_reports import IF_TRUE, NAIVE, NO_NAMES, ROWS, proof_advice
from bayesrisk.plotting.attacks import draw_numbers

#: Protections, and their names in reports.  ``das``: noise of the 2020 system's budget on census
#: tables; ``uniform``: a budget in equal parts over them; ``-hud``: HUD's tables have noise too.
PROTECTION_WORDS = {
    "none": "no protection",
    "swapping": "swapping",
    "das": "noise of the 2020 system's budget",
    "uniform": "noise of a uniform budget",
    "das-hud": "noise of the 2020 system's budget, also in HUD's tables",
    "uniform-hud": "noise of a uniform budget, also in HUD's tables",
}


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyResults:
    """Results of a study, as frames.

    ``table`` and ``seeds`` have a row for each protection and each treatment of blocks without
    reconstruction. The rows have block counts, precision and recall with intervals and blind
    guesses, for all populations together and for each. ``blocks`` has every block: status,
    violations, and mean violations of its reconstructions. ``curves`` has precision, recall and
    match rate along k, and ``ends`` at the largest k. They are by protection (``sampling`` knows a
    sample of the truth), match key, and all households or uniques. ``variability`` is that of
    solutions of blocks without protection.
    """

    config: Mapping[str, Any]  # settings, digests of the inputs, and number of ``parts``
    table: pd.DataFrame
    seeds: pd.DataFrame
    blocks: pd.DataFrame
    curves: pd.DataFrame
    ends: pd.DataFrame
    variability: pd.DataFrame

    @property
    def sentences(self) -> list[str]:
        """The first sentence of the report, and one on each protection."""
        rows, confidence = self._rows(), f"{self.config['confidence']:.0%}"
        one_by_one = [occupancy_sentence(row, PROTECTION_WORDS, confidence) for row in rows]
        return [occupancy_lead(rows, PROTECTION_WORDS), *one_by_one]

    def _rows(self) -> list[dict[Any, Any]]:
        """Return the rows that count blocks nothing fits apart."""
        return self.table[self.table["infeasible_as"] == "apart"].to_dict(orient="records")

    def write_report(self, folder: str | Path) -> Path:
        """Write figures and the report of totals; return the path of ``report.html``.

        The page needs no other file and no network, and shows no single block. Figures that do, and
        those of entries of a ranking, are in ``figures/confidential``, which only its owner may
        read.
        """
        path, config = Path(folder), self.config
        images, figures = path / "figures", dict[str, Any]()
        disk.make_folder(images)
        disk.make_folder(images / CONFIDENTIAL, private=True)
        pairs = self.curves[["key", "unique"]].drop_duplicates()
        for key, unique in pairs.itertuples(index=False):
            for against in ("recall", "k"):
                name = f"linkage-{key}-{'unique' if unique else 'all'}-{against}"
                figures[name] = plotting.plot_occupancy_linkage(
                    self.curves, key=key, unique=unique, against=against
                )
        for protection in config["protections"]:
            figures[f"counts-{protection}"] = plotting.plot_occupancy_counts(
                self.blocks, protection=protection
            )
        if len(self.variability):
            figures["variability"] = plotting.plot_occupancy_variability(self.variability)
        for name, figure in figures.items():
            plotting.save_figure(figure, images / CONFIDENTIAL / name, private=True)
        confidence = f"{config['confidence']:.0%}"
        pooled = f"all {config['parts']:,} places together"
        if config["parts"] == 1:
            populations = len(config["seeds"])
            pooled = (
                f"all {populations:,} populations together" if populations > 1 else "one population"
            )
        caption = (
            "Precision and recall of flagged blocks under each protection; intervals of "
            f"{confidence}; a blind guess beside them."
        )
        draw = functools.partial(plotting.plot_occupancy_blocks, self.table)
        ends = self.ends.assign(unique=self.ends["unique"].map({True: "yes", False: "no"}))
        for name in ("putative", "hits"):  # expected ones
            ends[name] = ends[name].map("{:.1f}".format).astype("str")
        tables = [
            pages.table(_totals(self.table), f"Flagged blocks, {pooled}"),
            pages.table(pages.rounded(ends), "Linkage of all flagged households"),
        ]
        first, *one_by_one = self.sentences
        page = pages.render(
            "Blocks with households above the occupancy limit",
            [
                ("sentence", first, "lead"),
                occupancy_advice(self._rows(), PROTECTION_WORDS),
                ("points", one_by_one),
            ],
            [
                ("prose", "occupancy_question.html", config["parts"]),
                ("heading", "Flagged blocks"),
                pages.figure(draw, images / "blocks", caption),
                ("folded", "The numbers", tables),
                ("prose", "occupancy_reading.html"),
            ],
            quotes=occupancy_quotes(self._rows(), PROTECTION_WORDS, confidence),
            made_up=config.get("made_up", False),
            source=f"Configuration {config_digest(config)}.",
            settings_title="The study",
            settings=json.dumps(config, indent=2),
        )
        disk.write_bytes(path / "report.html", page)
        return path / "report.html"


#: Columns of the totals in the page, and their heads there where they have others.
_COLUMNS = (
    "protection", "infeasible_as", "blocks", "violating", "putative", "confirmed", "infeasible",
    "undecided", "precision", "recall",
)  # fmt: skip
_HEADS = {
    "infeasible_as": "blocks that nothing fits are read as",
    "violating": "with a violation",
    "putative": "flagged",
    "confirmed": "flagged and right",
    "infeasible": "nothing fits",
}


def _totals(table: pd.DataFrame) -> pd.DataFrame:
    """Return the totals for the report: rates with intervals and blind guesses."""
    totals = table.copy()
    for name in ("precision", "recall"):
        ends = table[[name, f"{name}_lower", f"{name}_upper", f"{name}_baseline"]]
        text = "{:.3f} ({:.3f} to {:.3f}); blind {:.3f}"
        totals[name] = [text.format(*row) for row in ends.itertuples(index=False)]
    return totals[list(_COLUMNS)].rename(columns=_HEADS)


# The attack on one release.

Facts = Mapping[str, Any]
_MEANINGS = {
    "possible": "households within the limit fit the counts",
    "infeasible": "no households fit, because the counts contradict each other",
    "undecided": "nothing is decided, because the solver stopped at its limit",
}
_BARS = {
    "violation": "must hold one", "possible": "need not hold one",
    "infeasible": "no households fit", "undecided": "not decided",
}  # fmt: skip
_LIMIT = "more than two people for a bedroom: more than 2 in at most one, or more than 4 in two"


def attack_lead(facts: Facts, level: str) -> str:
    """Return a sentence on the places that must hold a household above the occupancy limit."""
    proved, places = facts["statuses"].get("violation", 0), facts["subsidised"]
    start = IF_TRUE * bool(facts["taken_as_true"])
    if not places:
        return f"{start}No place ({level}) has subsidised households, which the limit is for."
    every = f"{places:,} place{'s' * (places > 1)} ({level}) with subsidised households"
    if not proved:
        return f"{start}None of {every} is proved to hold a household above the occupancy limit."
    return (
        f"{start}{proved:,} of {every} must hold a household above the occupancy limit: no "
        "households within it have the published counts."
    )


def attack_advice(facts: Facts) -> pages.Part:
    """Return the advice after an attack on one release."""
    proved = facts["statuses"].get("violation", 0)
    finding = f"in {proved:,} of the places a household above the limit is proved" if proved else ""
    return proof_advice(facts, finding)


def _attack_quotes(lead: str, facts: Facts) -> pages.Quotes:
    proved = facts["statuses"].get("violation", 0)
    wrong = {"A household above the limit was identified.": NO_NAMES}
    if proved:
        wrong["Every household of these places is above the limit."] = (
            "At least one is; of the others nothing is proved."
        )
    else:
        wrong["No household is above the limit."] = "None is proved to be; there may be some."
    wrong["All other places keep the limit."] = (
        "Nothing is proved of them; households above it may fit their counts."
    )
    may = [
        lead,
        "A place is proved when every list of households with the published counts has one above "
        "the limit.",
        "No confidential record was read.",
    ]
    return pages.Quotes(may, wrong)


def occupancy_page(config: Facts, folder: RunFolder, facts: Facts) -> bytes:
    """Return the report of an attack on one release, read one shard at a time."""
    proved, statuses, means = pd.DataFrame(), Counter[str](), list[float]()
    for shard in range(folder.shards):
        part = folder.read_part(shard, "blocks").to_pandas()
        statuses.update(part.loc[part["subsidised"] > 0, "status"].tolist())
        part = part[part["status"] == "violation"].drop(columns=["status", "conflict"])
        proved = pd.concat([proved, part.head(ROWS - len(proved))])
        if config["sample"] is not None:
            means += part["violations"].dropna().tolist()
    lead, level = attack_lead(facts, config["level"]), config["level"]
    likely = [
        f"By the public sample, about {np.mean(means):.0f} of the likely households of such a "
        "place are above the limit. Which household it is stays a guess."
        for _ in means[:1]
    ]
    bars = {text: statuses[name] for name, text in _BARS.items() if name in statuses}
    draw = functools.partial(draw_numbers, bars, f"places ({level})")
    caption = "Places with subsidised households: above the limit?"
    rest = {name: number for name, number in statuses.items() if name != "violation"}
    return pages.findings(
        "Occupancy: which places must hold a household above the limit",
        [
            lead,
            *(f"In {number:,} of them {_MEANINGS[name]}." for name, number in rest.items()),
            *likely,
            *(f"No households fit {block}: {tables}." for block, tables in facts["conflicts"]),
        ],
        advice=attack_advice(facts),
        quotes=_attack_quotes(lead, facts),
        source=pages.origin(config, "places"),
        settings=config,
        figures=[pages.drawing(draw, caption)] if bars else [],
        tables=[pages.table(proved, f"Places that must hold such a household, at most {ROWS}")],
        words={
            "above the limit": f"a subsidised household of {_LIMIT}.",
            "proved": "no list of households within the limit has the published counts.",
            "way": "how it was proved, by a certificate (relaxation) or by a search (program).",
        },
        warning=NAIVE if facts["taken_as_true"] else "",
    )
