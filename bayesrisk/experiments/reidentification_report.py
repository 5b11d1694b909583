"""The report of a re-identification: tables, figures, and one self-contained HTML page."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk import plotting
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments import html
from bayesrisk.experiments.reconstruction_folder import ReconstructionOutput, read_reconstruction
from bayesrisk.reconstruction.person_frame import person_frame
from bayesrisk.risk._panels import PANELS
from bayesrisk.risk.agreement import Agreement, agreement
from bayesrisk.risk.leave_one_out import LeaveOneOut, leave_one_out
from bayesrisk.risk.majority import MajorityInference, majority_inference
from bayesrisk.risk.race_ethnicity import race_ethnicity_counts
from bayesrisk.risk.reidentification import Reidentification, reidentification
from bayesrisk.risk.variability_reports import uniques_by_block_size, variability_quantiles

__all__ = ["write_reidentification"]

SOURCE = "reconstruction"
_THRESHOLDS = (1, 5, 10, 20)
_PRECISIONS = (0.5, 0.75, 0.9, 1.0)
_ROWS = 40  # of a table in the page; the files have all


@dataclass(frozen=True)
class _Results:
    """Everything that the report shows."""

    run: ReconstructionOutput
    links: Reidentification
    agreement: Agreement
    alone: LeaveOneOut
    majority: MajorityInference
    quantiles: pd.DataFrame | None
    uniques: pd.DataFrame | None


def write_reidentification(
    folder: str | Path,
    output: str | Path,
    *,
    attackers: Mapping[str, str | Path],
    truth: str | Path,
    seed: int,
    level: float = 0.95,
) -> dict[str, Any]:
    """Link reconstructed records to files of known persons, confirm the links, and report both.

    Parameters
    ----------
    folder : path-like
        A finished reconstruction.
    output : path-like
        New or empty folder: ``report.html``, ``rates.csv``, ``tables/*.csv``, ``figures/``,
        ``manifest.json``; it appears whole or not at all.
    attackers : mapping of str to path-like
        Files of known persons by name (Parquet or CSV): ``block, sex, age, person``.
    truth : path-like
        Confidential records: ``block, sex, age, race, hisp, person``.
    seed : int
        Of the choices among equal records and of the proportional guesses.
    level : float, default 0.95
        Level of the Clopper-Pearson intervals.

    Returns
    -------
    dict
        ``report`` (path of the page) and ``rates``: for each attacker and source putative,
        confirmed, precision, both recalls, the baseline's precision and the ratio.

    Raises
    ------
    ArgumentError
        If there is no attacker, or a number is out of range.
    DataError
        If a file lacks a column or has a value out of range: file, row and column are named; or
        if nobody in it lives in a block of the reconstruction.
    OutputError
        If the output folder holds something, or ``folder`` holds no reconstruction.
    PartFileError
        If the reconstruction is not finished or was altered.
    """
    seed = check.integer(seed, "seed", lower=0)
    if not attackers:
        raise ArgumentError(f"attackers must map at least one name to a file, got {attackers!r}")
    target = Path(output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(f"{target}: must be a new or empty folder; nothing was changed")
    run = read_reconstruction(folder)
    missing = {"block", "sex", "age", "race", "hisp"} - set(run.records)
    if missing:
        raise DataError(f"{folder}: must hold records of persons, it lacks {sorted(missing)}")
    files = {name: Path(file) for name, file in attackers.items()}
    persons = {name: _read(file, ("block", "sex", "age", "person")) for name, file in files.items()}
    known = _read(Path(truth), ("block", "sex", "age", "race", "hisp", "person"))
    for name, frame in persons.items():
        _check_places(run, frame, f"{files[name]}: none of the {len(frame)} known persons")
    _check_places(run, known, f"{truth}: none of the {len(known)} confidential records")
    results = _results(run, persons, known, seed, level)
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        (temporary / "tables").mkdir(parents=True)
        (temporary / "figures").mkdir()
        rates = _write(results, temporary, seed)
        inputs = {
            "reconstruction": run.config.digest,
            "truth": _digest(Path(truth)),
            "attackers": {name: _digest(file) for name, file in files.items()},
        }
        manifest = {
            "inputs": inputs,
            "seed": seed,
            "level": level,
            "version": results.links.version,
        }
        text = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
        (temporary / "manifest.json").write_text(text, encoding="utf-8")
        if target.exists():
            target.rmdir()
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    whole = (rates["panel"] == "all") & (rates["blocks"] == "all")
    shown = rates[whole & (rates["block_size"] == "All")]
    columns = [
        "attacker", "source", "attacker_records", "putative", "confirmed", "precision",
        "recall_confirmed", "recall_putative", "baseline_precision", "precision_ratio",
    ]  # fmt: skip
    rows = shown[columns].astype(object).where(shown[columns].notna(), None)
    return {"report": str(target / "report.html"), "rates": rows.to_dict(orient="records")}


def _read(file: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a file's columns, checked; a fault is named with the file."""
    if not file.is_file():
        raise DataError(f"{file}: is not a file")
    try:
        if file.suffix.lower() == ".csv":
            frame = pd.read_csv(file, dtype={"block": str, "person": str})
        else:
            frame = pd.read_parquet(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{file}: cannot be read: {error}") from error
    checked = person_frame(frame, columns=columns, source=str(file))
    # Identifiers are names, whether a file stores them as numbers or as text.
    return checked.assign(person=checked["person"].astype("str"))


def _check_places(run: ReconstructionOutput, frame: pd.DataFrame, nobody: str) -> None:
    """Refuse persons none of whom lives in a block of the reconstruction."""
    here = np.unique(run.records["block"].astype(str))
    theirs = np.unique(frame["block"].astype(str))
    if not np.isin(theirs, here).any():
        raise DataError(
            f"{nobody} lives in a block of the reconstruction: first codes "
            f"{', '.join(theirs[:3])} in the file, {', '.join(here[:3])} in the reconstruction"
        )


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _proved(run: ReconstructionOutput) -> list[str]:
    """Return the blocks whose records are proved to be the only ones that fit."""
    unique = set(run.blocks.loc[run.blocks["status"] == "unique", "block"])
    if run.variability is not None:
        place = str(run.variability.columns[0])
        certain = run.variability[run.variability["upper"] == 0.0][place]
        if place == "block":
            unique |= set(certain)
        else:
            width = int(certain.str.len().max()) if len(certain) else 0
            inside = run.blocks["block"].str[:width].isin(set(certain))
            unique |= set(run.blocks.loc[inside, "block"])
    return sorted(unique)


def _results(
    run: ReconstructionOutput,
    persons: Mapping[str, pd.DataFrame],
    truth: pd.DataFrame,
    seed: int,
    level: float,
) -> _Results:
    rng = np.random.default_rng(seed)
    sources = {SOURCE: run.records}
    links = reidentification(
        sources,
        persons,
        truth=truth,
        baseline_from=SOURCE,
        rng=rng,
        zero_variability_blocks=_proved(run),
        level=level,
    )
    agreed = agreement(sources, truth=truth, baseline_from=SOURCE, rng=rng, level=level)
    true_counts = race_ethnicity_counts(truth)
    majority = majority_inference({SOURCE: race_ethnicity_counts(run.records)}, truth=true_counts)
    quantiles = uniques = None
    if run.variability is not None and "block" in run.variability:
        quantiles = variability_quantiles(run.variability, rng=rng)
        if not (run.blocks["population"] != run.variability["population"]).any():
            uniques = uniques_by_block_size(run.records, variability=run.variability)
    return _Results(run, links, agreed, leave_one_out(truth), majority, quantiles, uniques)


def _write(results: _Results, folder: Path, seed: int) -> pd.DataFrame:
    """Write tables, figures and page; return the rates of all panels."""
    links = results.links
    rates = pd.concat(
        [links.to_frame(panel=panel).assign(panel=panel, blocks="all") for panel in PANELS]
        + [
            links.to_frame(panel=panel, zero_variability=True).assign(panel=panel, blocks="proved")
            for panel in PANELS
        ]
    )
    rates.to_csv(folder / "rates.csv", index=False)
    tables = _tables(results)
    for name, (_, table) in tables.items():
        table.to_csv(folder / "tables" / f"{name}.csv", index=False)
    body = [f"<h1>{escape('Re-identification of reconstructed records')}</h1>", _guide(results)]
    for attacker in links.attackers:
        body.append(_attacker(rates, attacker, folder / "figures", links))
    body += [html.table(_shown(table), caption) for caption, table in tables.values()]
    body += _more_figures(results, folder / "figures")
    body.append(_provenance(results, seed))
    page = html.page("Re-identification of reconstructed records", "\n".join(body))
    (folder / "report.html").write_text(page, encoding="utf-8")
    return rates


def _flat(layout: pd.DataFrame) -> pd.DataFrame:
    """Return a published layout with one line of heads."""
    flat = layout.reset_index()
    flat.columns = pd.Index([" ".join(str(part) for part in c if part) for c in flat.columns])
    counts = [
        c for c in flat.columns if not c.endswith(("Percentage", "Age")) or "Agreement E" in c
    ]
    return flat.astype({c: "Int64" for c in counts if flat[c].dtype.kind == "f"})


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what the page shows of a table: no empty classes, percentages to one decimal."""
    counts = [c for c in table if table[c].dtype.kind in "iu"]
    if "block_size" in table and counts:
        table = table[(table[counts] != 0).any(axis=1)]
    percentages = {
        str(c): table[c].map(lambda value: "–" if pd.isna(value) else f"{value:.1f}").astype("str")
        for c in table
        if "Percentage" in str(c)
    }
    return table.assign(**percentages).head(_ROWS)


def _tables(results: _Results) -> dict[str, tuple[str, pd.DataFrame]]:
    """Return every table with its caption, by file name; layouts follow the published tables."""
    links = results.links
    proved = links.to_panels(panels=("nonmodal", "nonmodal-unique"), zero_variability=True)
    shares = ["Putative Percentage", "Confirmed Percentage"]
    proved = proved.drop(columns=[(name, share) for name in links.attackers for share in shares])
    tables = {
        "linked-all": (
            "Putative and confirmed re-identifications by block size (layout S6, S12)",
            _flat(links.to_layout()),
        ),
        "linked-panels": (
            "Of the attacker's whole file, and of those whose block, sex and age bin it has right "
            "(layout S7)",
            _flat(links.to_panels(panels=("all", "in-truth"))),
        ),
        "linked-nonmodal-proved": (
            "Nonmodal people in blocks of proved zero solution variability (layout S8)",
            _flat(proved),
        ),
        "linked-modal": (
            "Modal people by block size (layout S9, S13)",
            _flat(links.to_layout(panel="modal")),
        ),
        "agreement": (
            "Agreement of the records with the truth (layout S10)",
            _flat(results.agreement.to_layout()),
        ),
        "linked-nonmodal": (
            "Nonmodal people by block size (layout S11)",
            _flat(links.to_layout(panel="nonmodal")),
        ),
        "leave-one-out": (
            "What a guesser infers of a person without that person's record: accuracy and upper "
            "bound",
            results.alone.to_frame(),
        ),
        "majority": (
            "Inferring the majority of the block, which links nobody to anything",
            pd.concat(
                results.majority.summary(threshold=t, precisions=_PRECISIONS) for t in _THRESHOLDS
            ),
        ),
    }
    if results.quantiles is not None:
        caption = "Solution variability: quantiles weighted by population (layout S4)"
        tables["variability"] = (caption, results.quantiles)
    if results.uniques is not None:
        caption = "Uniques, and blocks of zero variability, among the records (layout S5)"
        tables["uniques"] = (caption, results.uniques)
    return tables


def _attacker(rates: pd.DataFrame, attacker: str, folder: Path, links: Reidentification) -> str:
    """Return the section of one attacker: its rates beside those of the guessers."""
    mine = rates[(rates["attacker"] == attacker) & (rates["blocks"] == "all")]
    everybody = mine[mine["panel"] == "all"]
    parts = [f"<h2>Attacker: {escape(attacker)}</h2>"]
    shown = everybody[everybody["block_size"] == "All"]
    text = shown.apply(
        lambda column: column.map("{:.3f}".format) if column.dtype == float else column
    )
    rows = pd.DataFrame(
        {
            "source": text["source"],
            "persons": text["attacker_records"],
            "putative": text["putative"],
            "confirmed": text["confirmed"],
            "precision": text["precision"],
            f"{links.level:.0%} interval": text["precision_lower"]
            + " to "
            + text["precision_upper"],
            "better guesser": text["baseline_precision"],
            "ratio": text["precision_ratio"],
            "confirmed / persons": text["recall_confirmed"],
        }
    )
    parts.append(html.table(rows, "Rates, beside those of the guessers"))
    number = links.attackers.index(attacker) + 1
    for panel in ("all", "nonmodal"):
        shown = mine[mine["panel"] == panel]
        if not (shown["putative"] > 0).any():
            continue
        caption = f"Precision by block size, {panel} targets, and its ratio to the better guesser's"
        drawn = plotting.plot_reidentification(shown)
        parts.append(html.figure(drawn, folder / f"precision-{number}-{panel}", caption))
    return "\n".join(parts)


def _more_figures(results: _Results, folder: Path) -> list[str]:
    curves = pd.concat(results.majority.curve(threshold=t) for t in _THRESHOLDS)
    caption = "Majority inference from the reconstructed records: precision over the population"
    parts = [html.figure(plotting.plot_majority(curves), folder / "majority", caption)]
    if results.quantiles is not None:
        caption = "Solution variability over the population"
        drawn = plotting.plot_variability(results.quantiles)
        parts.append(html.figure(drawn, folder / "variability", caption))
    return parts


def _guide(results: _Results) -> str:
    statuses = results.run.blocks["status"].value_counts()
    blocks = ", ".join(f"{count} {escape(str(status))}" for status, count in statuses.items())
    return (
        f"<p>{len(results.run.records):,} reconstructed records; blocks: {blocks}.</p>"
        "<h2>How to read the numbers</h2><ul>"
        "<li>A record linked to a known person on block, sex and age is a <b>putative</b> "
        "re-identification; it is <b>confirmed</b> if race and Hispanic origin are the person's. "
        "<b>Precision</b> is confirmed over putative.</li>"
        "<li><b>MDG</b> says of everybody what most people of the block are, <b>PRG</b> draws from "
        "the block's shares. They link nobody, so what they reach is inference about a group; the "
        "<b>ratio</b> compares with the better of the two.</li>"
        "<li><b>Modal</b> people are what most of their block are. Of <b>nonmodal</b> people the "
        "block's composition says little: what is confirmed there is due to their own records.</li>"
        "<li><b>Leave-one-out</b> is what a guesser reaches who never had the target's record.</li>"
        "<li>In blocks of <b>proved</b> zero variability no other records fit the tables.</li></ul>"
    )


def _provenance(results: _Results, seed: int) -> str:
    text = json.dumps(results.run.config.to_dict(), indent=2)
    return (
        f"<h2>Where this comes from</h2><p>Seed {seed}. {html.versions()}.</p>"
        f"<details><summary>The reconstruction</summary><pre>{escape(text)}</pre></details>"
    )
