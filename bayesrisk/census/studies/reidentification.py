"""Re-identification of reconstructed records: tables, figures and the report."""

import functools
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import datasets, plotting
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes
from bayesrisk._base.display import displayed
from bayesrisk._version import __version__
from bayesrisk.census.readers import record_form
from bayesrisk.census.studies.linkage_words import link_advice, link_quotes, link_verdict
from bayesrisk.census.studies.linked_counties import (
    PASSES,
    SOURCE,
    LinkageSums,
    PersonFile,
    county_rng,
    link_counties,
)
from bayesrisk.exceptions import ArgumentError, DataError, quote as quoted
from bayesrisk.experiments import pages
from bayesrisk.experiments.pages import Figure, Part, marked
from bayesrisk.experiments.reconstruction import FinishedReconstruction
from bayesrisk.experiments.runs.folder import config_digest
from bayesrisk.reconstruction.persons import KNOWN, RECORDS, TRUTH
from bayesrisk.risk.linkage import variability
from bayesrisk.risk.linkage.agreement import (
    MODAL,
    PANELS,
    PROPORTIONAL,
    ReidentificationSums,
    agreement_layout,
    agreement_rates,
    without_record_means,
)
from bayesrisk.risk.linkage.majority import MajorityInference
from bayesrisk.tables.exchange import MADE_UP, made_up_mark

_GUESSERS = (MODAL, PROPORTIONAL)
#: Smallest majorities that are inferred.
_THRESHOLDS = (1, 5, 10, 20)
_PRECISIONS = (0.5, 0.75, 0.9, 1.0)
_PERCENT = " (%)"
_ROWS = 40  # of a table in the page; the files have all
_BOTH = (
    "beside both baselines: guessers without the target's record (left out), and in their "
    "published form"
)
_CAPTIONS = {
    "linked-all": "Putative and confirmed re-identifications by block size (layout S6, S12)",
    "linked-panels": "All people in the attacker's file, and only those whose block, sex and age "
    "it has right (Table S7 of Abowd et al.)",
    "linked-nonmodal-proved": "Nonmodal people in blocks of proved zero solution variability "
    "(layout S8)",
    "linked-modal": "Modal people by block size (layout S9, S13)",
    "agreement": "Agreement of the records with the truth (layout S10)",
    "agreement-baselines": f"Agreement, all blocks, {_BOTH}",
    "baselines": f"Precision in every panel, {_BOTH}",
    "linked-nonmodal": "Nonmodal people by block size (layout S11)",
    "leave-one-out": "What a guesser infers of a person without that person's record: accuracy "
    "and upper bound",
    "majority": "Inferring the majority of the block, which links nobody to anything",
    "variability": "Solution variability: quantiles weighted by population (layout S4)",
    "uniques": "Uniques, and blocks of zero variability, among the records (layout S5)",
}


def _flat(layout: pd.DataFrame) -> pd.DataFrame:
    """Return a published layout with one header row, such as ``persons: precision (%)``."""
    flat = layout.reset_index()
    heads = []
    for column in flat.columns:  # the group, then the kind of number and its unit
        parts = [str(part) for part in column if part]
        *group, kind = [part.removesuffix(" Percentage") for part in parts]
        unit = _PERCENT if any(part.endswith(" Percentage") for part in parts) else ""
        heads.append(": ".join([*group, kind.lower()]) + unit)
    flat.columns = pd.Index(heads)
    # Places without anybody are missing from a layout, which makes its counts floats.
    counts = [c for c in heads if not c.endswith(_PERCENT) and flat[c].dtype.kind == "f"]
    return flat.astype(dict.fromkeys(counts, "Int64"))


def _abridged(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for the report, without empty classes, percentages to one decimal."""
    counts = [c for c in table if table[c].dtype.kind in "iu"]
    if "block_size" in table and counts:
        table = table[(table[counts] != 0).any(axis=1)]
    for name in [c for c in table if str(c).endswith(_PERCENT)]:
        text = table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.1f}")
        table = table.assign(**{str(name): text.astype("str")})
    if "left_out_ratio" in table:
        table = pages.rounded(table)
    return table.head(_ROWS)


def _overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of records (not guessers) for blocks of all sizes."""
    return frame[(frame["block_size"] == "All") & ~frame["source"].isin(_GUESSERS)]


def _agreement(agreed: pd.DataFrame) -> pd.DataFrame:
    """Return agreement with both baselines, one row for each source and kind of age."""
    frame, parts = _overall(agreed), []
    for kind in ("exact", "binned"):
        names = {c: c.removeprefix(f"{kind}_") for c in map(str, frame) if c.startswith(f"{kind}_")}
        part = frame[["source", "population", *names]].rename(columns=names)
        parts.append(part.assign(age=kind))
    whole = pd.concat(parts)
    first = ["source", "age", "population"]
    return whole[[*first, *(name for name in whole if name not in first)]]


def report_tables(sums: LinkageSums, rates: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Return all tables by file name, in published layouts."""
    links, inferred = sums.links, MajorityInference(sums.majority, (SOURCE,))
    agreed = agreement_rates(sums.agreement, confidence=links.confidence)
    proved = links.to_panels(panels=("nonmodal", "nonmodal-unique"), zero_variability=True)
    shares = ["Putative Percentage", "Confirmed Percentage"]
    proved = proved.drop(columns=[(name, share) for name in links.attackers for share in shares])
    majority = [inferred.summary(threshold=t, precisions=_PRECISIONS) for t in _THRESHOLDS]
    tables = {
        "linked-all": _flat(links.to_layout()),
        "linked-panels": _flat(links.to_panels(panels=("all", "in-truth"))),
        "linked-nonmodal-proved": _flat(proved),
        "linked-modal": _flat(links.to_layout(panel="modal")),
        "agreement": _flat(agreement_layout(agreed, links.sources)),
        "agreement-baselines": _agreement(agreed),
        "baselines": _overall(rates)[_BASELINES],
        "linked-nonmodal": _flat(links.to_layout(panel="nonmodal")),
        "leave-one-out": without_record_means(sums.alone),
        "majority": pd.concat(majority),
    }
    if sums.bounds is not None:
        tables["variability"] = variability.quantile_table(
            sums.bounds, rng=county_rng(seed, sums.counties)
        )
    if sums.uniques is not None:
        tables["uniques"] = variability.unique_table(sums.uniques)
    return tables


#: Columns of the rates that are returned.
_RATES = [
    "attacker", "source", "attacker_records", "putative", "confirmed", "precision",
    "precision_lower", "precision_upper", "recall_confirmed", "recall_putative",
    "left_out", "left_out_guesser", "left_out_ratio", "left_out_ratio_lower",
    "left_out_ratio_upper", "baseline_precision", "baseline_guesser", "precision_ratio",
]  # fmt: skip
#: Columns of the rates in the page, and their heads there.
_NOT_SHOWN = ("attacker", "recall_confirmed", "recall_putative", "left_out_guesser")
_SHOWN = [n for n in _RATES if n not in (*_NOT_SHOWN, "baseline_guesser")] + ["recall_confirmed"]
#: Columns of both baselines in every panel.
_ELSEWHERE = ("attacker", "attacker_records", "confirmed", "recall_confirmed", "recall_putative")
_BASELINES = ["attacker", "panel", "blocks", *(n for n in _RATES if n not in _ELSEWHERE)]
_HEADS = {
    "attacker_records": "persons",
    "left_out": "guesser without the record",
    "left_out_ratio": "ratio",
    "left_out_ratio_lower": "ratio_lower",
    "left_out_ratio_upper": "ratio_upper",
    "baseline_precision": "published guesser",
    "precision_ratio": "ratio to it",
    "recall_confirmed": "confirmed / persons",
}


@displayed
@dataclass(frozen=True, eq=False)
class ReidentificationReport:
    """Rates of a re-identification, with the path of its report.

    ``rates`` has a row for each attacker and source (the records, and both published guessers), for
    everybody in the attacker's file. It has ``putative`` and ``confirmed`` links, ``precision`` and
    both recalls as shares. It has the precision of a guesser without the targets' own records
    (``left_out``) and of the published guesser (``baseline_precision``), and the ratios to them,
    with intervals of ``confidence``. It is NaN if nothing was linked, and infinite if a guesser is
    never right. ``made_up`` says whether these people do not exist.
    """

    report: Path
    rates: pd.DataFrame
    confidence: float
    made_up: bool = False

    def _answer(self) -> list[str]:
        rates = self.rates[self.rates["source"] == SOURCE]
        lines = [
            f"{row['attacker']}: {row['confirmed']:,} confirmed of {row['putative']:,} links to "
            f"{row['attacker_records']:,} known persons; precision {row['precision']:.1%}, "
            f"{row['left_out_ratio']:.2f} times that of a guesser without their own records."
            if row["putative"]
            else f"{row['attacker']}: no link to {row['attacker_records']:,} known persons."
            for row in rates.to_dict(orient="records")
        ]
        return [*[datasets.MADE_UP] * self.made_up, *lines, f"Report: {self.report}"]

    def to_dict(self) -> dict[str, object]:
        """Return ``report`` and the rows of ``rates`` for JSON, with None if not finite."""
        rows = self.rates.replace(np.inf, np.nan).astype(object)
        rows = rows.where(rows.notna(), None)
        rates = rows.to_dict(orient="records")
        return {**made_up_mark(self.made_up), "report": str(self.report), "rates": rates}


def write_reidentification(
    folder: str | Path,
    output: str | Path,
    *,
    attackers: Mapping[str, str | Path],
    truth: str | Path,
    seed: int,
    dialect: str | None = None,
    truth_dialect: str | None = None,
    confidence: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> ReidentificationReport:
    """Link reconstructed records to files of known persons, confirm the links, and report both.

    Parameters
    ----------
    folder : path-like
        Folder of a finished reconstruction.
    output : path-like
        New or empty folder: ``report.html``, ``rates.csv``, ``tables/*.csv``, ``figures/``,
        ``manifest.json``. It appears whole or not at all. All are computed from the confidential
        records, so only its owner may read it (0700, files 0600).
    attackers : mapping of str to path-like
        Files of known persons by name (Parquet or CSV): ``block, sex, age, person``. Columns may
        have the archive's names ``geoid_block`` and ``pik``. Or folders of microdata by place, read
        one part at a time.
    truth : path-like
        Confidential records: ``block, sex, age, race, hisp, person``, with six flags as an
        alternative to ``race``. A file, or a folder by place.
    seed : int
        Seed of the choices among equal records and of the proportional guesses.
    dialect, truth_dialect : str, optional
        Coding of the files, as for :func:`bayesrisk.census.iter_record_form`, and that of ``truth``
        if it differs. Folders of microdata and Parquet files of this package state it themselves.
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.
    progress : callable, optional
        Called with the numbers of finished and all steps: each county in three passes, and the
        writing.

    Notes
    -----
    Each county has its own random draws. So parts and one file with the same rows in the same order
    give the same bytes, except for the digests of the inputs in ``manifest.json``. Memory holds the
    files that are not by place, one county of the others (or a larger part), and three numbers for
    each block with bounds. During the work, the disk holds the names of all true persons.
    """
    seed = check.integer(seed, "seed", lower=0)
    if not check.mapping(attackers, "attackers"):
        raise ArgumentError(
            f"attackers must map at least one name to a file, got {quoted(attackers)}"
        )
    if truth_dialect is not None:
        check.choice(truth_dialect, "truth_dialect", tuple(record_form.DIALECTS))
    target, truth = check.path(output, "output"), check.path(truth, "truth")
    files = {name: check.path(file, "attackers") for name, file in attackers.items()}
    check.function(progress, "progress")
    with disk.explained(target):
        disk.new_folder(target)
    run = FinishedReconstruction(folder)
    missing = {*RECORDS} - set(run.columns("records"))
    if missing:
        raise DataError(f"{folder}: must hold records of persons, it lacks {sorted(missing)}")
    check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    persons = {name: PersonFile(file, KNOWN, dialect) for name, file in files.items()}
    coding = dialect if truth_dialect is None else truth_dialect
    person_file = PersonFile(truth, TRUTH, coding, once=True)
    inputs = {
        "reconstruction": config_digest(run.config),
        "truth": person_file.digest,
        "attackers": {name: file.digest for name, file in persons.items()},
    }
    with disk.whole_folder(target, disk.new_folder, private=True) as new_folder:
        spilled = new_folder / "_spilled"
        disk.make_folder(spilled, private=True)
        sums = link_counties(
            run, persons, person_file, spilled, seed=seed, confidence=confidence, progress=progress
        )
        shutil.rmtree(spilled)
        true = not datasets.is_made_up(truth)
        made_up = bool(run.config.get(MADE_UP)) or not true
        config = run.config | made_up_mark(made_up)
        rates = _write(sums, config, new_folder, seed, confidential=true)
        manifest = {
            "confidential": True,
            "files": {
                path.relative_to(new_folder).as_posix(): disk.digest(path)
                for path in sorted(new_folder.rglob("*"))
                if path.is_file()
            },
            "inputs": inputs,
            **made_up_mark(made_up),
            "confidence": confidence,
            "seed": seed,
            "version": __version__,
        }
        disk.write_bytes(new_folder / "manifest.json", disk.sealed(manifest))
    if progress is not None:
        steps = PASSES * sums.counties + 1
        progress(steps, steps)
    everybody = (rates["panel"] == "all") & (rates["blocks"] == "all")
    overall = rates[everybody & (rates["block_size"] == "All")]
    return ReidentificationReport(
        target / "report.html", overall[_RATES].reset_index(drop=True), confidence, made_up
    )


def _write(
    sums: LinkageSums, config: dict[str, Any], folder: Path, seed: int, *, confidential: bool
) -> pd.DataFrame:
    """Write tables, figures and page; return the rates of all panels."""
    links, figure_folder = sums.links, folder / "figures"
    rates = pd.concat(
        links.to_frame(panel=panel, zero_variability=proved).assign(
            panel=panel, blocks="proved" if proved else "all"
        )
        for proved in (False, True)
        for panel in PANELS
    )
    disk.write_bytes(folder / "rates.csv", csv_bytes(rates))
    disk.make_folder(folder / "tables")
    disk.make_folder(figure_folder)
    tables = report_tables(sums, rates, seed)
    for name, table in tables.items():
        disk.write_bytes(folder / "tables" / f"{name}.csv", csv_bytes(table))
    attackers, confidence = list[dict[Any, Any]](), f"{links.confidence:.0%}"
    question = {
        "records": sums.records,
        "statuses": sums.statuses.most_common(),
        "taken_as_true": config["taken_as_true"],
    }
    parts: list[Part] = [("prose", "reidentification_question.html", question)]
    for name in links.attackers:
        mine = rates[(rates["attacker"] == name) & (rates["blocks"] == "all")]
        overall = mine[(mine["block_size"] == "All") & (mine["source"] == SOURCE)]
        panels = overall.set_index("panel").to_dict(orient="index")
        attackers.append({"name": name, **panels})
        parts += _attacker(mine, name, figure_folder, links)
    every = [pages.table(_abridged(table), _CAPTIONS[name]) for name, table in tables.items()]
    page = pages.render(
        "Re-identification of reconstructed records",
        _answer(attackers, confidence),
        [
            *parts,
            ("heading", "The records and the truth"),
            *_figures(sums, tables.get("variability"), figure_folder),
            ("folded", f"All tables ({len(every)})", every),
            ("prose", "reidentification_reading.html"),
        ],
        quotes=link_quotes(attackers, confidence),
        made_up=config.get(MADE_UP, False),
        warning=marked(pages.CONFIDENTIAL) if confidential else "",
        source=f"Seed {seed}.",
        settings_title="The reconstruction",
        settings=json.dumps(config, indent=2),
    )
    disk.write_bytes(folder / "report.html", page)
    return rates


def _answer(attackers: Sequence[Mapping[Any, Any]], confidence: str) -> list[Part]:
    """Return sentences on all people known to each attacker, and on unusual ones."""
    parts = list[Part]()
    for one in attackers:
        everybody = link_verdict(one["all"], "known persons", confidence)
        few = link_verdict(one["nonmodal"], "them", confidence)
        parts += [
            ("sentence", f"Attacker {one['name']}. {everybody}", "" if parts else "lead"),
            *([] if parts else [link_advice(attackers)]),
            f"People who are not what most of their block are: {few}",
        ]
    return parts


def _attacker(
    mine: pd.DataFrame, attacker: str, folder: Path, links: ReidentificationSums
) -> list[Part]:
    """Return one attacker's section of the report: the records' rates beside the guessers'."""
    overall = mine[mine["block_size"] == "All"]
    everybody = overall.loc[overall["panel"] == "all", _SHOWN].rename(columns=_HEADS)
    caption = f"Rates, beside those of the guessers; intervals of {links.confidence:.0%}"
    figures = []
    number = links.attackers.index(attacker) + 1
    for panel in ("all", "nonmodal"):
        figure_rows = mine[mine["panel"] == panel]
        if (figure_rows["putative"] > 0).any():
            draw = functools.partial(plotting.plot_reidentification, figure_rows)
            label = (
                f"Precision by block size, {panel} targets, and its ratio to what a guesser "
                "reaches without the target's record"
            )
            figures.append(pages.figure(draw, folder / f"precision-{number}-{panel}", label))
    rows = pages.table(pages.rounded(everybody), caption)
    return [("heading", f"Attacker: {attacker}"), *figures, ("folded", "The rates", [rows])]


def _figures(sums: LinkageSums, quantiles: pd.DataFrame | None, folder: Path) -> list[Figure]:
    inferred = MajorityInference(sums.majority, (SOURCE,))
    points = pd.concat(inferred.curve(threshold=t) for t in _THRESHOLDS)
    curves = functools.partial(plotting.plot_majority, points)
    caption = "Majority inference from the reconstructed records: precision over the population"
    figures = [pages.figure(curves, folder / "majority", caption)]
    if quantiles is not None:
        draw = functools.partial(plotting.plot_variability, quantiles)
        caption = "Solution variability over the population"
        figures.append(pages.figure(draw, folder / "variability", caption))
    return figures
