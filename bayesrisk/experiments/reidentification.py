"""The report of a re-identification: tables, figures, and one self-contained HTML page."""

import functools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import datasets, plotting
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes, text_frame
from bayesrisk._base.disk.parquet import opened, read_frame, spill, spilled
from bayesrisk._base.disk.text import named
from bayesrisk._base.display import arrow_table, displayed
from bayesrisk._base.validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.census.readers import record_form
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, DataError, quote as quoted
from bayesrisk.experiments.reconstruction import FinishedReconstruction
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.folder import config_digest
from bayesrisk.reconstruction.linkage import Guesses, Persons, cell_counts, person_frame
from bayesrisk.risk.linkage import reidentification as linkage
from bayesrisk.risk.linkage.agreement import (
    MODAL,
    PANELS,
    PROPORTIONAL,
    AgreementSums,
    ReidentificationSums,
    agreement_layout,
    agreement_rates,
    compare_with_truth,
    inference_without_record,
    without_record_means,
)
from bayesrisk.tables.exchange import MADE_UP, Partitions, made_up_mark

# Re-identification county by county: files of persons, and the sums of each county.
#
# The county is the unit whatever the files are, so that one file and parts come to the same.  Other
# counties matter in three ways: for the most frequent race and ethnicity of all, for persons whose
# true record is in another county than where a file has them, and because no person may be there
# twice.  Two passes over the persons settle them, and a third one links.

SOURCE = "reconstruction"
_COUNTY = 5  # digits of a county
_PASSES = 3
_QUOTED = 3  # codes that a message quotes
_PERSONS = 2**18  # names that are compared at a time
_FACTS = ["modal", "unique", "zero_variability"]
_TEXTS = ("block", "geoid_block", "person", "pik")  # whatever they look like

# -----------------------------------------------------------------------------
# Files of persons.


class PersonFile:
    """Checked persons of a file, or of microdata by place, read a county at a time.

    ``counties`` with anybody in them are sorted.  Of a data set by place the part that was read
    last is held; a file is one part.
    """

    def __init__(
        self, path: Path, columns: tuple[str, ...], dialect: str | None, *, once: bool = False
    ) -> None:
        # `once` is whether a person may be in a file, or in a part, only once.
        self.name, self._columns, self._dialect, self._once = str(path), columns, dialect, once
        self._index = Partitions.read(path, "microdata") if Partitions.there(path) else None
        self._part = functools.lru_cache(maxsize=1)(self._read_part)
        self._parts: dict[str, list[str]] = {}
        self._codes = ("",) if self._index is None else tuple(self._index.codes)
        for code in self._codes:
            # Of parts that are larger than counties only their persons say which there are.
            wide = len(code) < _COUNTY
            for county in filter(None, self._part(code)) if wide else (code[:_COUNTY],):
                self._parts.setdefault(county, []).append(code)
        self.digest = disk.digest(path) if self._index is None else self._index.digest
        self.counties = tuple(sorted(self._parts))

    def county(self, code: str) -> pd.DataFrame:
        """Return the persons of a county, rows numbered from 0."""
        parts = self._parts.get(code, self._codes[:1])
        frames = [
            parts_by_code.get(code, parts_by_code[""]) for parts_by_code in map(self._part, parts)
        ]
        return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)

    def _read_part(self, code: str) -> dict[str, pd.DataFrame]:
        """Return the persons of a part by county; those of the empty code are none."""
        file = Path(self.name)
        if self._index is not None:
            folder = self._index.checked(code)
            file = folder / "persons.parquet"
            with named(str(folder), also=(KeyError, TypeError)):
                files = disk.read_document(folder / "_microdata.json")["files"]
                listed = files[file.name]["sha256"]
            disk.check_digest(file, listed, "_microdata.json")
        frame = read_persons(file, self._columns, self._dialect)
        outside = ~frame["block"].str.startswith(code)
        check.refuse_row(outside, frame["block"], file, "block", f"be in {code}")
        if self._once:
            names, rule = frame["person"], "be different for each record"
            check.refuse_row(names.duplicated(), names, file, "person", rule, " again")
        counties = frame.groupby(frame["block"].str[:_COUNTY], sort=True)
        inside = {str(name): rows.reset_index(drop=True) for name, rows in counties}
        return {"": frame[:0].copy(), **inside}


def read_persons(file: Path, columns: tuple[str, ...], dialect: str | None) -> pd.DataFrame:
    """Return the persons of a Parquet or CSV file, checked once; a fault is named with the file."""
    with named(str(file)):
        if not file.is_file():
            raise DataError(f"{file}: is not a file")
    coding = record_form.named_dialect(dialect, str(file), record_form.said_by_file(file))
    if file.suffix.lower() == ".csv":
        frame = _read_csv(file)
    else:
        with opened(file) as (_, schema):
            names = schema.names
        lacking = record_form.missing_columns(names, columns)  # nothing need be read to say so
        check.frame(pd.DataFrame(columns=list({*columns} - {*lacking})), str(file), columns)
        kinds = dict.fromkeys(
            (n for n in names if record_form.is_person_column(n)), ("number", "text")
        )
        frame = read_frame(file, kinds)
    frame = record_form.decoded_persons(frame, coding, columns=columns, source=str(file))
    checked = person_frame(frame, columns=columns, source=str(file))
    # Identifiers are names, whether a file stores them as numbers or as text.
    return Persons(checked.assign(person=checked["person"].astype("str")), str(file)).frame


def _read_csv(file: Path) -> pd.DataFrame:
    """Return the columns of a text file: blocks and identifiers as text, all others as numbers."""
    frame = text_frame(file, record_form.is_person_column)
    for name in map(str, frame.columns):
        nothing = frame[name].str.strip() == ""
        frame[name] = frame[name].mask(nothing)
        if name not in _TEXTS:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            # Where a value is no number the column stays text: the message about it says so.
            frame[name] = numbers if (numbers.notna() | nothing).all() else frame[name]
    return frame


class MovedPersons:
    """Facts about persons whose true record is in another county than where a file has them.

    Facts and questions are put down by a hash of the name and joined one hash value at a time, so
    that about 2**18 names are in memory.  ``truth`` is how messages call the true records.
    """

    def __init__(self, folder: Path, persons: int, truth: str) -> None:
        self._folder, self._truth = folder, truth
        self._parts = -(-max(persons, 1) // _PERSONS)

    def add_facts(self, county: str, persons: pd.DataFrame) -> None:
        """Put down the facts about the persons in the truth of a county."""
        facts = sum(persons[name].to_numpy(np.int64) << bit for bit, name in enumerate(_FACTS))
        self._spill("facts", persons[["person"]].assign(county=county, facts=facts))

    def ask(self, county: str, attacker: int, persons: pd.Series) -> None:
        """Put down the persons of a file that the truth of the same county does not have."""
        questions = pd.DataFrame({"person": persons.unique()})
        self._spill("asked", questions.assign(file=f"{county}-{attacker}"))

    def _spill(self, kind: str, rows: pd.DataFrame) -> None:
        names = rows["person"].to_numpy().astype(object)
        part = pd.util.hash_array(names, categorize=False) % self._parts  # the same everywhere
        table = arrow_table(rows)
        for number in np.unique(part):
            spill(self._folder / f"{kind}-{number}", table.filter(pa.array(part == number)))

    def answer(self) -> None:
        """Answer all questions; refuse a person who has two true records."""
        for number in range(self._parts):
            facts = spilled(self._folder / f"facts-{number}")
            if facts is None:
                continue
            answers_stored = facts.to_pandas()
            repeated = answers_stored.loc[answers_stored["person"].duplicated(), "person"]
            if len(repeated):
                person = repeated.iloc[0]
                places = answers_stored.loc[answers_stored["person"] == person, "county"].tolist()
                raise DataError(
                    f"{self._truth}: column 'person': must be different for each record, "
                    f"got {person} in {places[0]} and {places[1]}"
                )
            questions = spilled(self._folder / f"asked-{number}")
            if questions is None:
                continue
            answers = questions.to_pandas().merge(answers_stored[["person", "facts"]], on="person")
            for file, rows in answers.groupby("file", sort=True):
                spill(self._folder / f"answer-{file}", arrow_table(rows[["person", "facts"]]))

    def answers(self, county: str, attacker: int) -> pd.DataFrame:
        """Return ``person`` and the facts from the truth of other counties."""
        table = spilled(self._folder / f"answer-{county}-{attacker}")
        if table is None:
            table = pa.table({"person": pa.array([], pa.string()), "facts": np.zeros(0, np.int64)})
        frame: pd.DataFrame = table.to_pandas()
        facts = frame["facts"].to_numpy(np.int64)
        columns = {name: facts >> bit & 1 for bit, name in enumerate(_FACTS)}
        return frame[["person"]].assign(**columns)


# -----------------------------------------------------------------------------
# Sums of counties.


class CountyRows(NamedTuple):
    """Rows of the reconstruction in a county; ``number`` is its position among all."""

    code: str
    number: int
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


@dataclass(frozen=True)
class LinkageSums:
    """Sums of one county, or of several, that the tables of a re-identification are made of.

    ``statuses`` counts blocks of the reconstruction; ``bounds`` are those of the variability.
    """

    counties: int
    records: int
    statuses: Counter[str]
    links: ReidentificationSums
    agreement: AgreementSums
    alone: pd.DataFrame
    majority: pd.DataFrame
    bounds: pd.DataFrame | None
    uniques: pd.DataFrame | None

    def plus(self, other: "LinkageSums") -> "LinkageSums":
        """Return the sums of the counties of both."""
        bounds = uniques = None
        if self.bounds is not None and other.bounds is not None:
            bounds = pd.concat([self.bounds, other.bounds], ignore_index=True)
        if self.uniques is not None and other.uniques is not None:
            uniques = self.uniques + other.uniques
        return LinkageSums(
            self.counties + other.counties,
            self.records + other.records,
            self.statuses + other.statuses,
            self.links.plus(other.links),
            self.agreement.plus(other.agreement),
            self.alone + other.alone,
            linkage.condensed(pd.concat([self.majority, other.majority], ignore_index=True)),
            bounds,
            uniques,
        )


def proved_blocks(blocks: pd.DataFrame, variability: pd.DataFrame | None) -> list[str]:
    """Return the blocks whose records are proved to be the only ones that fit."""
    proved = blocks["status"] == Status.UNIQUE
    if variability is not None:
        # Bounds are of blocks, or of tracts, whose codes are the first digits of their blocks'.
        certain = variability.loc[variability["upper"] == 0.0, variability.columns[0]]
        width = int(certain.str.len().max()) if len(certain) else 0
        proved |= blocks["block"].str[:width].isin(set(certain))
    return sorted(blocks.loc[proved, "block"])


class Counties:
    """The counties of a reconstruction and of files of persons, in order."""

    def __init__(
        self,
        run: FinishedReconstruction,
        attackers: Mapping[str, PersonFile],
        truth: PersonFile,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.run, self.attackers, self.truth = run, attackers, truth
        codes = set(truth.counties).union(*(file.counties for file in attackers.values()))
        self.codes = sorted(codes.union(code for code, _ in run.rows("blocks", _COUNTY).places()))
        self._progress, self._steps = progress, 0

    def rows(self, *kinds: str) -> Iterator[CountyRows]:
        """Yield the counties with the rows of some files; the others are empty."""
        rows = {kind: self.run.rows(kind, _COUNTY) for kind in self.run.files}
        nothing = {kind: self.run.rows(kind, _COUNTY).rows("") for kind in self.run.files}
        for number, code in enumerate(self.codes):
            frames = {k: rows[k].rows(code) if k in kinds else nothing[k] for k in rows}
            records, blocks = frames["records"], frames["blocks"]
            yield CountyRows(code, number, records, blocks, frames.get("variability"))
            self._steps += 1
            if self._progress is not None:
                self._progress(self._steps, _PASSES * len(self.codes) + 1)


def link_counties(
    run: FinishedReconstruction,
    attackers: Mapping[str, PersonFile],
    truth: PersonFile,
    folder: Path,
    *,
    seed: int,
    confidence: float,
    progress: Callable[[int, int], None] | None,
) -> LinkageSums:
    """Return the sums over all counties of links, agreement and inference without records.

    ``folder`` is an empty one for scratch files; each county has random draws of its
    own.  ``progress`` is told of every county in every pass; the last step is the writing.
    """
    counties = Counties(run, attackers, truth, progress)
    cells, people = _cells(counties)
    moved = MovedPersons(folder, people, truth.name)
    for rows in counties.rows("blocks", "variability"):
        proved = set(proved_blocks(rows.blocks, rows.variability))
        persons = Persons(truth.county(rows.code), truth.name)
        panel = linkage.panel_targets(persons, proved, cells["truth"])
        moved.add_facts(rows.code, panel)
        for number, file in enumerate(attackers.values()):
            names = file.county(rows.code)["person"]
            moved.ask(rows.code, number, names[~names.isin(panel["person"])])
    moved.answer()
    total: LinkageSums | None = None
    for rows in counties.rows("records", "blocks", "variability"):
        sums = _link(rows, counties, moved, cells, seed, confidence)
        total = total.plus(sums) if total else sums
    if total is None:
        raise DataError(f"{truth.name}: must have at least one person")
    return total


def _cells(counties: Counties) -> tuple[dict[str, IntArray], int]:
    """Return the numbers by race and ethnicity, of the records and of the truth, and these.

    Refuses a file of which nobody lives in a block of the reconstruction.
    """
    files = dict.fromkeys(counties.attackers.values(), "known persons")
    files[counties.truth] = "confidential records"
    shared = dict.fromkeys(files, False)
    persons = dict.fromkeys(files, 0)
    codes: dict[PersonFile, tuple[list[str], list[str]]] = {file: ([], []) for file in files}
    records, true = (np.zeros(126, dtype=np.int64) for _ in range(2))
    for rows in counties.rows("records"):
        blocks = rows.records["block"].unique()
        for file in files:
            theirs = file.county(rows.code)["block"]
            shared[file] = shared[file] or bool(theirs.isin(blocks).any())
            persons[file] += len(theirs)
            for examples, present in zip(codes[file], (theirs.unique(), blocks), strict=True):
                examples += sorted(present)[: _QUOTED - len(examples)]
        records += cell_counts(Persons(rows.records, SOURCE).frame)
        true += cell_counts(counties.truth.county(rows.code))
    for file, persons_text in files.items():
        if not shared[file]:
            first, second = (", ".join(map(str, examples)) for examples in codes[file])
            raise DataError(
                f"{file.name}: none of the {persons[file]} {persons_text} lives in a block of the "
                f"reconstruction: first codes {first} in the file, {second} in the reconstruction"
            )
    return {"records": records, "truth": true}, int(true.sum())


def _link(
    rows: CountyRows,
    counties: Counties,
    moved: MovedPersons,
    cells: Mapping[str, IntArray],
    seed: int,
    confidence: float,
) -> LinkageSums:
    """Return the sums of one county."""
    rng = county_rng(seed, rows.number)
    truth = Persons(counties.truth.county(rows.code), counties.truth.name)
    records = Persons(rows.records, SOURCE)
    sources = {SOURCE: records}
    # One baseline for all tables.
    guesses = Guesses.draw(records, source=SOURCE, rng=rng, everywhere=cells["records"])
    proved = set(proved_blocks(rows.blocks, rows.variability))
    links = linkage.link_targets(
        sources,
        {name: file.county(rows.code) for name, file in counties.attackers.items()},
        linkage.panel_targets(truth, proved, cells["truth"]),
        guesses,
        rng,
        elsewhere={
            name: moved.answers(rows.code, number) for number, name in enumerate(counties.attackers)
        },
        confidence=confidence,
    )
    agreed = compare_with_truth(
        sources, truth=truth, baseline_from=guesses, rng=rng, confidence=confidence
    )
    bounds = uniques = None
    if rows.variability is not None and "block" in rows.variability:
        bounds = linkage.checked_variability(rows.variability)[["population", "lower", "upper"]]
        if not (rows.blocks["population"] != rows.variability["population"]).any():
            uniques = linkage.unique_sums(records, variability=rows.variability)
    return LinkageSums(
        1,
        len(rows.records),
        Counter(rows.blocks["status"].tolist()),
        ReidentificationSums.collect(links),
        agreed.sums(),
        inference_without_record(truth).sums(),
        _majority(records, truth),
        bounds,
        uniques,
    )


def county_rng(seed: int, number: int) -> np.random.Generator:
    """Return the draws of a county: of one sequence, so far apart that they never overlap."""
    return np.random.Generator(np.random.PCG64(seed).jumped(number))


def _majority(records: Persons, truth: Persons) -> pd.DataFrame:
    true = linkage.race_ethnicity_counts(truth)
    if true.empty:
        names = {"release": "str", "true": "int64", "precision": "float64", "population": "int64"}
        return pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in names.items()})
    read = linkage.race_ethnicity_counts(records)
    # No records of a county are counts of zero.
    read = true[:1] * 0 if read.empty else read
    return linkage.condensed(linkage.majority_inference({SOURCE: read}, truth=true).blocks)


# -----------------------------------------------------------------------------
# The tables of a re-identification: published layouts, and every rate beside both baselines.


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
    """Return a published layout with one line of heads, such as ``persons: precision (%)``."""
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
    """Return a table for the page: no empty classes, percentages to one decimal."""
    counts = [c for c in table if table[c].dtype.kind in "iu"]
    if "block_size" in table and counts:
        table = table[(table[counts] != 0).any(axis=1)]
    for name in [c for c in table if str(c).endswith(_PERCENT)]:
        text = table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.1f}")
        table = table.assign(**{str(name): text.astype("str")})
    if "left_out_ratio" in table:
        table = engine.rounded(table)
    return table.head(_ROWS)


def _overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the records for blocks of all sizes together."""
    return frame[(frame["block_size"] == "All") & ~frame["source"].isin(_GUESSERS)]


def _agreement(agreed: pd.DataFrame) -> pd.DataFrame:
    """Return agreement with both baselines, a row for each source and kind of age."""
    frame, parts = _overall(agreed), []
    for kind in ("exact", "binned"):
        names = {c: c.removeprefix(f"{kind}_") for c in map(str, frame) if c.startswith(f"{kind}_")}
        part = frame[["source", "population", *names]].rename(columns=names)
        parts.append(part.assign(age=kind))
    whole = pd.concat(parts)
    first = ["source", "age", "population"]
    return whole[[*first, *(name for name in whole if name not in first)]]


def report_tables(sums: LinkageSums, rates: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Return every table by file name; layouts follow the published tables."""
    links, inferred = sums.links, linkage.MajorityInference(sums.majority, (SOURCE,))
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
        tables["variability"] = linkage.quantile_table(
            sums.bounds, rng=county_rng(seed, sums.counties)
        )
    if sums.uniques is not None:
        tables["uniques"] = linkage.unique_table(sums.uniques)
    return tables


_KNOWN = ("block", "sex", "age", "person")  # of persons whom an attacker knows
_TRUE = ("block", "sex", "age", "race", "hisp", "person")
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
    """Rates of a re-identification, and the page that reports them.

    ``rates`` has a row for each attacker and source (the records, and both published guessers),
    everybody in the attacker's file: ``putative`` and ``confirmed`` links, ``precision`` and both
    recalls as shares; the precision of a guesser without the targets' own records (``left_out``)
    and of the published one (``baseline_precision``); and the ratios to them, with intervals of
    ``confidence``.  NaN where nothing was linked, infinite where a guesser is never right;
    ``made_up`` where these people do not exist.
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
        """Return ``report`` and the rows of ``rates`` for JSON; what is not finite is None."""
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
        A finished reconstruction.
    output : path-like
        New or empty folder: ``report.html``, ``rates.csv``, ``tables/*.csv``, ``figures/``,
        ``manifest.json``; it appears whole or not at all.  All of it is computed from the
        confidential records, so that only its owner may read it (0700, files 0600).
    attackers : mapping of str to path-like
        Files of known persons by name (Parquet or CSV): ``block, sex, age, person``.  Columns may
        have the names of the archive, ``geoid_block`` and ``pik``.  Or folders of microdata by
        place, of which a part is read at a time.
    truth : path-like
        Confidential records: ``block, sex, age, race, hisp, person``; instead of ``race`` also six
        flags.  A file, or a folder by place.
    seed : int
        Of the choices among equal records and of the proportional guesses.
    dialect, truth_dialect : str, optional
        Coding of the files, as for :func:`bayesrisk.census.iter_record_form`, and that of
        ``truth`` if it has another.  Files of a folder of microdata and Parquet files of this
        package say it themselves.
    confidence : float, default 0.95
        Confidence of the intervals, between 0 and 1.
    progress : callable, optional
        Called with the steps done and all: each county in three passes, and the writing.

    Notes
    -----
    Each county has random draws of its own: parts and one file with the same rows in the same
    order come to the same bytes, but for the digests of the inputs in ``manifest.json``.  Memory:
    the files that are not by place, one county of those that are (or a part, where that is
    larger), and three numbers for each block where there are bounds.  On disk, while it works: the
    names of all true persons.
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
    missing = {"block", "sex", "age", "race", "hisp"} - set(run.columns("records"))
    if missing:
        raise DataError(f"{folder}: must hold records of persons, it lacks {sorted(missing)}")
    check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    persons = {name: PersonFile(file, _KNOWN, dialect) for name, file in files.items()}
    coding = dialect if truth_dialect is None else truth_dialect
    person_file = PersonFile(truth, _TRUE, coding, once=True)
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
        steps = _PASSES * sums.counties + 1
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
    page = engine.render(
        "reidentification.html",
        made_up=config.get(MADE_UP, False),
        confidential=confidential,
        title="Re-identification of reconstructed records",
        confidence=f"{links.confidence:.0%}",
        records=sums.records,
        statuses=dict(sums.statuses.most_common()),
        taken_as_true=config["taken_as_true"],
        attackers=[_attacker(rates, name, figure_folder, links) for name in links.attackers],
        figures=_figures(sums, tables.get("variability"), figure_folder),
        tables=[engine.table(_abridged(table), _CAPTIONS[name]) for name, table in tables.items()],
        source=f"Seed {seed}.",
        settings_title="The reconstruction",
        settings=json.dumps(config, indent=2),
    )
    disk.write_bytes(folder / "report.html", page.encode())
    return rates


def _attacker(
    rates: pd.DataFrame, attacker: str, folder: Path, links: ReidentificationSums
) -> dict[str, Any]:
    """Return the section of one attacker: rates of the records, beside those of the guessers."""
    mine = rates[(rates["attacker"] == attacker) & (rates["blocks"] == "all")]
    overall = mine[mine["block_size"] == "All"]
    everybody = overall.loc[overall["panel"] == "all", _SHOWN].rename(columns=_HEADS)
    caption = f"Rates, beside those of the guessers; intervals of {links.confidence:.0%}"
    figures = []
    number = links.attackers.index(attacker) + 1
    for panel in ("all", "nonmodal"):
        figure_rows = mine[mine["panel"] == panel]
        if (figure_rows["putative"] > 0).any():
            figure = plotting.plot_reidentification(figure_rows)
            label = (
                f"Precision by block size, {panel} targets, and its ratio to what a guesser "
                "reaches without the target's record"
            )
            figures.append(engine.figure(figure, folder / f"precision-{number}-{panel}", label))
    attacker_rates = overall[overall["source"] == SOURCE].set_index("panel")
    return {
        "name": attacker,
        "rates": attacker_rates.loc["all"].to_dict(),
        "nonmodal": attacker_rates.loc["nonmodal"].to_dict(),
        "table": engine.table(engine.rounded(everybody), caption),
        "figures": figures,
    }


def _figures(
    sums: LinkageSums, quantiles: pd.DataFrame | None, folder: Path
) -> list[engine.Figure]:
    """Return the figures of the records and the truth."""
    inferred = linkage.MajorityInference(sums.majority, (SOURCE,))
    curves = plotting.plot_majority(pd.concat(inferred.curve(threshold=t) for t in _THRESHOLDS))
    caption = "Majority inference from the reconstructed records: precision over the population"
    figures = [engine.figure(curves, folder / "majority", caption)]
    if quantiles is not None:
        axes = plotting.plot_variability(quantiles)
        caption = "Solution variability over the population"
        figures.append(engine.figure(axes, folder / "variability", caption))
    return figures
