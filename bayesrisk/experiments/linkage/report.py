"""The report of a re-identification: tables, figures, and one self-contained HTML page."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files, plotting
from bayesrisk import _validation as check
from bayesrisk._files.parquet import opened, read_frame
from bayesrisk._files.parse import all_of, named
from bayesrisk._files.parse import shown as quoted
from bayesrisk._files.text import header_fields, open_text, text_tables
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.linkage.tables import THRESHOLDS, Results, report_tables, shown
from bayesrisk.experiments.reconstruction.folder import ReconstructionOutput, read_reconstruction
from bayesrisk.experiments.runs import html
from bayesrisk.readers.dialects import (
    DIALECTS,
    decoded_persons,
    is_person_column,
    missing_columns,
    named_dialect,
    said_by_file,
)
from bayesrisk.reconstruction.linkage.guessers import Guesses
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.reconstruction.status import Status
from bayesrisk.risk.linkage.agreement import compare_with_truth
from bayesrisk.risk.linkage.majority import majority_inference
from bayesrisk.risk.linkage.race_ethnicity import race_ethnicity_counts
from bayesrisk.risk.linkage.reidentification import Reidentification, reidentify
from bayesrisk.risk.linkage.target_groups import PANELS
from bayesrisk.risk.linkage.variability_reports import uniques_by_block_size, variability_quantiles
from bayesrisk.risk.linkage.without_record import inference_without_record

__all__ = ["ReidentificationReport", "write_reidentification"]

SOURCE = "reconstruction"
_KNOWN = ("block", "sex", "age", "person")  # what an attacker knows of persons
_TRUE = ("block", "sex", "age", "race", "hisp", "person")
_STEPS = 6  # that are told of
#: Columns of the rates that are returned.
_RATES = [
    "attacker", "source", "attacker_records", "putative", "confirmed", "precision",
    "precision_lower", "precision_upper", "recall_confirmed", "recall_putative",
    "left_out", "left_out_guesser", "left_out_ratio", "left_out_ratio_lower",
    "left_out_ratio_upper", "baseline_precision", "baseline_guesser", "precision_ratio",
]  # fmt: skip


@displayed
@dataclass(frozen=True, eq=False)
class ReidentificationReport:
    """What a re-identification came to, and where it is told.

    Attributes
    ----------
    report : pathlib.Path
        The page.
    rates : pandas.DataFrame
        A row for each attacker and source (the records, and both published guessers), everybody
        in the attacker's file: ``putative`` and ``confirmed`` links, ``precision`` and both recalls
        as shares; the precision of a guesser without the targets' own records (``left_out``) and
        of the published one (``baseline_precision``); and the ratios to them, with intervals.  NaN
        where nothing was linked, infinite where a guesser is never right.
    confidence : float
        Of the intervals.
    """

    report: Path
    rates: pd.DataFrame
    confidence: float

    def _answer(self) -> list[str]:
        own = self.rates[self.rates["source"] == SOURCE]
        lines = [
            f"{row['attacker']}: {row['confirmed']:,} confirmed of {row['putative']:,} links to "
            f"{row['attacker_records']:,} known persons; precision {row['precision']:.1%}, "
            f"{row['left_out_ratio']:.2f} times that of a guesser without their own records."
            if row["putative"]
            else f"{row['attacker']}: no link to {row['attacker_records']:,} known persons."
            for row in own.to_dict(orient="records")
        ]
        return [*lines, f"Report: {self.report}"]

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain values, for JSON, which has no infinity.

        Returns
        -------
        dict
            ``report`` and ``rates``, a list of rows; what is not finite is None.
        """
        rows = self.rates.replace(np.inf, np.nan).astype(object)
        rows = rows.where(rows.notna(), None)
        return {"report": str(self.report), "rates": rows.to_dict(orient="records")}


class _Steps:
    """What is done, told to whoever watches."""

    def __init__(self, progress: Callable[[int, int], None] | None) -> None:
        check.function(progress, "progress")
        self._progress, self._done = progress, 0

    def done(self) -> None:
        """Say that another step is done."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, _STEPS)


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
        A finished reconstruction.
    output : path-like
        New or empty folder: ``report.html``, ``rates.csv``, ``tables/*.csv``, ``figures/``,
        ``manifest.json``; it appears whole or not at all.  All of it is computed from the
        confidential records, so that only its owner may read it (0700, files 0600).
    attackers : mapping of str to path-like
        Files of known persons by name (Parquet or CSV): ``block, sex, age, person``.  Columns may
        have the names of the archive, ``geoid_block`` and ``pik``.
    truth : path-like
        Confidential records: ``block, sex, age, race, hisp, person``; instead of ``race`` also six
        flags.
    seed : int
        Of the choices among equal records and of the proportional guesses.
    dialect : str, optional
        What the codes of the files mean, as for :func:`bayesrisk.readers.iter_record_form`.  Files
        of a folder of microdata and Parquet files of this package say it themselves.
    truth_dialect : str, optional
        That of ``truth``, if it has another than the files of known persons.
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.
    progress : callable, optional
        Called with the steps done and all steps: reading, links, agreement, guesses without the
        record, the rest of the numbers, and writing.

    Returns
    -------
    ReidentificationReport
        The path of the page, and the rates of everybody in the attackers' files.

    Raises
    ------
    ArgumentError
        If there is no attacker, a number is out of range, or a file's coding is not said.
    DataError
        If a file lacks a column or has a value out of range: file, row and column are named; or
        if nobody in it lives in a block of the reconstruction.
    OutputError
        If the output folder holds something, or ``folder`` holds no reconstruction.
    PartFileError
        If the reconstruction is not finished or was altered.
    """
    seed = check.integer(seed, "seed", lower=0)
    if not check.mapping(attackers, "attackers"):
        raise ArgumentError(
            f"attackers must map at least one name to a file, got {quoted(attackers)}"
        )
    if truth_dialect is not None:
        check.choice(truth_dialect, "truth_dialect", tuple(DIALECTS))
    target, truth = check.path(output, "output"), check.path(truth, "truth")
    files = {name: check.path(file, "attackers") for name, file in attackers.items()}
    check.function(progress, "progress")
    with _files.explained(target):
        _files.new_folder(target)
    run = read_reconstruction(folder)
    missing = {"block", "sex", "age", "race", "hisp"} - set(run.records)
    if missing:
        raise DataError(f"{folder}: must hold records of persons, it lacks {sorted(missing)}")
    persons = {name: _read(file, _KNOWN, dialect) for name, file in files.items()}
    known = _read(truth, _TRUE, dialect if truth_dialect is None else truth_dialect)
    for name, file in persons.items():
        _check_places(run, file, f"{files[name]}: none of the {len(file)} known persons")
    _check_places(run, known, f"{truth}: none of the {len(known)} confidential records")
    steps = _Steps(progress)
    steps.done()
    results = _results(run, persons, known, seed, confidence, steps)
    inputs = {
        "reconstruction": run.config.digest,
        "truth": _files.digest(truth),
        "attackers": {name: _files.digest(file) for name, file in files.items()},
    }
    with _files.whole_folder(target, _files.new_folder, private=True) as made:
        _files.make_folder(made / "tables")
        _files.make_folder(made / "figures")
        rates = _write(results, made, seed)
        manifest = {
            "confidential": True,
            "files": {
                path.relative_to(made).as_posix(): _files.digest(path)
                for path in sorted(made.rglob("*"))
                if path.is_file()
            },
            "inputs": inputs,
            "confidence": confidence,
            "seed": seed,
            "version": results.links.version,
        }
        _files.write_bytes(made / "manifest.json", _files.sealed(manifest))
    steps.done()
    whole = (rates["panel"] == "all") & (rates["blocks"] == "all")
    overall = rates[whole & (rates["block_size"] == "All")]
    return ReidentificationReport(
        target / "report.html", overall[_RATES].reset_index(drop=True), confidence
    )


def _read(file: Path, columns: tuple[str, ...], dialect: str | None) -> Persons:
    """Return the persons of a file, checked once; a fault is named with the file."""
    with named(str(file)):
        if not file.is_file():
            raise DataError(f"{file}: is not a file")
    coding = named_dialect(dialect, str(file), said_by_file(file))
    if file.suffix.lower() == ".csv":
        frame = _from_csv(file)
    else:
        with opened(file) as (_, schema):
            names = schema.names
        lacking = missing_columns(names, columns)  # nothing need be read to say so
        check.frame(pd.DataFrame(columns=list({*columns} - {*lacking})), str(file), columns)
        kinds = dict.fromkeys((n for n in names if is_person_column(n)), ("number", "text"))
        frame = read_frame(file, kinds)
    frame = decoded_persons(frame, coding, columns=columns, source=str(file))
    checked = person_frame(frame, columns=columns, source=str(file))
    # Identifiers are names, whether a file stores them as numbers or as text.
    return Persons(checked.assign(person=checked["person"].astype("str")), str(file))


_TEXTS = ("block", "geoid_block", "person", "pik")  # whatever they look like


def _from_csv(file: Path) -> pd.DataFrame:
    """Return the columns of a text file: blocks and identifiers as text, all others as numbers."""
    with open_text(file) as lines, named(str(file), also=(pa.ArrowException,)):
        names = header_fields(lines.readline(), str(file))
        wanted = [name for name in names if is_person_column(name)]
        pieces = (table.select(wanted) for table in text_tables(lines, names))
        held = all_of(pieces, lambda piece: int(piece.nbytes), str(file))
    schema = pa.schema([(name, pa.string()) for name in wanted])
    frame: pd.DataFrame = pa.concat_tables([schema.empty_table(), *held]).to_pandas()
    for name in wanted:
        nothing = frame[name].str.strip() == ""
        frame[name] = frame[name].mask(nothing)
        if name not in _TEXTS:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            # What is no number stays a text: the message about it says so.
            frame[name] = numbers if (numbers.notna() | nothing).all() else frame[name]
    return frame


def _check_places(run: ReconstructionOutput, persons: Persons, nobody: str) -> None:
    """Refuse persons none of whom lives in a block of the reconstruction."""
    here = np.unique(run.records["block"].astype(str))
    theirs = np.unique(persons.frame["block"].astype(str))
    if not np.isin(theirs, here).any():
        raise DataError(
            f"{nobody} lives in a block of the reconstruction: first codes "
            f"{', '.join(theirs[:3])} in the file, {', '.join(here[:3])} in the reconstruction"
        )


def _proved(run: ReconstructionOutput) -> list[str]:
    """Return the blocks whose records are proved to be the only ones that fit."""
    unique = set(run.blocks.loc[run.blocks["status"] == Status.UNIQUE, "block"])
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
    persons: Mapping[str, Persons],
    truth: Persons,
    seed: int,
    confidence: float,
    steps: _Steps,
) -> Results:
    rng = np.random.default_rng(seed)
    records = Persons(run.records, SOURCE)
    sources = {SOURCE: records}
    guesses = Guesses.draw(records, source=SOURCE, rng=rng)  # one baseline for all tables
    links = reidentify(
        sources,
        persons,
        truth=truth,
        baseline_from=guesses,
        rng=rng,
        zero_variability_blocks=_proved(run),
        confidence=confidence,
    )
    steps.done()
    agreed = compare_with_truth(
        sources, truth=truth, baseline_from=guesses, rng=rng, confidence=confidence
    )
    steps.done()
    alone = inference_without_record(truth)
    steps.done()
    true_counts = race_ethnicity_counts(truth)
    majority = majority_inference({SOURCE: race_ethnicity_counts(records)}, truth=true_counts)
    quantiles = uniques = None
    if run.variability is not None and "block" in run.variability:
        quantiles = variability_quantiles(run.variability, rng=rng)
        if not (run.blocks["population"] != run.variability["population"]).any():
            uniques = uniques_by_block_size(records, variability=run.variability)
    steps.done()
    return Results(run, links, agreed, alone, majority, quantiles, uniques)


def _write(results: Results, folder: Path, seed: int) -> pd.DataFrame:
    """Write tables, figures and page; return the rates of all panels."""
    links = results.links
    rates = pd.concat(
        [links.to_frame(panel=panel).assign(panel=panel, blocks="all") for panel in PANELS]
        + [
            links.to_frame(panel=panel, zero_variability=True).assign(panel=panel, blocks="proved")
            for panel in PANELS
        ]
    )
    _csv(rates, folder / "rates.csv")
    tables = report_tables(results, rates)
    for name, (_, table) in tables.items():
        _csv(table, folder / "tables" / f"{name}.csv")
    page = html.render(
        "reidentification.html",
        title="Re-identification of reconstructed records",
        confidence=f"{links.confidence:.0%}",
        records=len(results.run.records),
        statuses=results.run.blocks["status"].value_counts().to_dict(),
        attackers=[_attacker(rates, name, folder / "figures", links) for name in links.attackers],
        figures=_more_figures(results, folder / "figures"),
        tables=[html.table(shown(table), caption) for caption, table in tables.values()],
        source=f"Seed {seed}.",
        settings_title="The reconstruction",
        settings=json.dumps(results.run.config.to_dict(), indent=2),
    )
    _files.write_bytes(folder / "report.html", page.encode())
    return rates


def _csv(frame: pd.DataFrame, file: Path) -> None:
    _files.write_bytes(file, frame.to_csv(index=False, lineterminator="\n").encode())


class _Attacker(NamedTuple):
    """The section of one attacker: rates of the records, in all panels, and beside the guessers."""

    name: str
    rates: Mapping[Any, Any]
    nonmodal: Mapping[Any, Any]
    table: html.Table
    figures: list[html.Figure]


def _attacker(
    rates: pd.DataFrame, attacker: str, folder: Path, links: Reidentification
) -> _Attacker:
    """Return the section of one attacker: its rates beside those of the guessers."""
    mine = rates[(rates["attacker"] == attacker) & (rates["blocks"] == "all")]
    everybody = mine[mine["panel"] == "all"]
    everyone = everybody[everybody["block_size"] == "All"]
    columns = {
        "source": "source",
        "attacker_records": "persons",
        "putative": "putative",
        "confirmed": "confirmed",
        "precision": "precision",
        "precision_lower": "precision_lower",
        "precision_upper": "precision_upper",
        "left_out": "guesser without the record",
        "left_out_ratio": "ratio",
        "left_out_ratio_lower": "ratio_lower",
        "left_out_ratio_upper": "ratio_upper",
        "baseline_precision": "published guesser",
        "precision_ratio": "ratio to it",
        "recall_confirmed": "confirmed / persons",
    }
    rows = html.rounded(everyone[list(columns)].rename(columns=columns))
    caption = f"Rates, beside those of the guessers; intervals of {links.confidence:.0%}"
    table = html.table(rows, caption)
    figures = []
    number = links.attackers.index(attacker) + 1
    for panel in ("all", "nonmodal"):
        drawn = mine[mine["panel"] == panel]
        if not (drawn["putative"] > 0).any():
            continue
        caption = (
            f"Precision by block size, {panel} targets, and its ratio to what a guesser reaches "
            "without the target's record"
        )
        figure = plotting.plot_reidentification(drawn)
        figures.append(html.figure(figure, folder / f"precision-{number}-{panel}", caption))
    own = mine[(mine["source"] == SOURCE) & (mine["block_size"] == "All")].set_index("panel")
    return _Attacker(
        attacker,
        own.loc["all"].to_dict(),
        own.loc["nonmodal"].to_dict(),
        table,
        figures,
    )


def _more_figures(results: Results, folder: Path) -> list[html.Figure]:
    curves = pd.concat(results.majority.curve(threshold=t) for t in THRESHOLDS)
    caption = "Majority inference from the reconstructed records: precision over the population"
    parts = [html.figure(plotting.plot_majority(curves), folder / "majority", caption)]
    if results.quantiles is not None:
        caption = "Solution variability over the population"
        drawn = plotting.plot_variability(results.quantiles)
        parts.append(html.figure(drawn, folder / "variability", caption))
    return parts
