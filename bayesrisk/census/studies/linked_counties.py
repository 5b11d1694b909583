"""Re-identification county by county: person files, and the sums of each county.

All files are read county by county, so one file and parts by place give the same results. Other
counties matter in three ways. They affect the most frequent race and ethnicity of all records. A
person's true record may be in another county than the one in a file. And no person may occur twice.
Two passes over the persons settle these, and a third one links.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import text_frame
from bayesrisk._base.disk.parquet import read_frame, spill, spilled
from bayesrisk._base.disk.record_file import RecordFile
from bayesrisk._base.disk.text import named
from bayesrisk._base.display import arrow_table
from bayesrisk._base.validation import IntArray
from bayesrisk.census.readers import record_form
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.reconstruction import FinishedReconstruction
from bayesrisk.reconstruction.linkage import Guesses, cell_counts
from bayesrisk.reconstruction.persons import Persons, person_frame
from bayesrisk.risk.linkage import reidentification as linkage, variability
from bayesrisk.risk.linkage.agreement import (
    AgreementSums,
    ReidentificationSums,
    compare_with_truth,
    inference_without_record,
)
from bayesrisk.risk.linkage.majority import condensed, majority_inference, race_ethnicity_counts
from bayesrisk.tables.exchange import Partitions

SOURCE = "reconstruction"
_COUNTY = 5  # digits of a county
PASSES = 3
_QUOTED = 3  # codes that a message quotes
_PERSONS = 2**18  # names that are compared at a time
_FACTS = ["modal", "unique", "zero_variability"]
_TEXTS = ("block", "geoid_block", "person", "pik")  # whatever they look like

# Files of persons.


class PersonFile:
    """Checked persons of a file or of microdata by place, read one county at a time.

    ``counties`` with people are sorted. For a data set by place, only the part read last is held; a
    file is one part.
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
        """Return a part's persons by county; the empty code has none."""
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
    """Return the checked persons of a Parquet or CSV file; errors name the file."""
    with named(str(file)):
        if not file.is_file():
            raise DataError(f"{file}: is not a file")
    records = RecordFile(file)
    coding = record_form.named_dialect(dialect, str(file), record_form.said_by_file(records))
    if file.suffix.lower() == ".csv":
        frame = _read_csv(file)
    else:
        names = records.columns
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
    """Return a text file's columns: blocks and identifiers as text, others as numbers."""
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
    """Facts about persons whose true record is in another county than a file says.

    Facts and questions are stored by a hash of the name and joined one hash value at a time, so
    about 2**18 names are in memory. ``truth`` is the name of the true records in messages.
    """

    def __init__(self, folder: Path, persons: int, truth: str) -> None:
        self._folder, self._truth = folder, truth
        self._parts = -(-max(persons, 1) // _PERSONS)

    def add_facts(self, county: str, persons: pd.DataFrame) -> None:
        """Store the facts about the persons in a county's truth."""
        facts = sum(persons[name].to_numpy(np.int64) << bit for bit, name in enumerate(_FACTS))
        self._spill("facts", persons[["person"]].assign(county=county, facts=facts))

    def ask(self, county: str, attacker: int, persons: pd.Series) -> None:
        """Store the persons of a file whom the same county's truth does not contain."""
        questions = pd.DataFrame({"person": persons.unique()})
        self._spill("asked", questions.assign(file=f"{county}-{attacker}"))

    def _spill(self, kind: str, rows: pd.DataFrame) -> None:
        names = rows["person"].to_numpy().astype(object)
        part = pd.util.hash_array(names, categorize=False) % self._parts  # the same everywhere
        table = arrow_table(rows)
        for number in np.unique(part):
            spill(self._folder / f"{kind}-{number}", table.filter(pa.array(part == number)))

    def answer(self) -> None:
        """Answer all stored questions; raise if a person has two true records."""
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
        """Return ``person`` and the facts found in other counties' truth."""
        table = spilled(self._folder / f"answer-{county}-{attacker}")
        if table is None:
            table = pa.table({"person": pa.array([], pa.string()), "facts": np.zeros(0, np.int64)})
        frame: pd.DataFrame = table.to_pandas()
        facts = frame["facts"].to_numpy(np.int64)
        columns = {name: facts >> bit & 1 for bit, name in enumerate(_FACTS)}
        return frame[["person"]].assign(**columns)


# Sums of counties.


class CountyRows(NamedTuple):
    """A county's rows of the reconstruction; ``number`` is its position among all counties."""

    code: str
    number: int
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


@dataclass(frozen=True)
class LinkageSums:
    """Sums over counties from which a re-identification's tables are computed.

    ``statuses`` has numbers of blocks of the reconstruction; ``bounds`` are those of the
    variability.
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
        """Return the sums over the counties of both."""
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
            condensed(pd.concat([self.majority, other.majority], ignore_index=True)),
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
    """The counties of a reconstruction and of person files, in order."""

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
        """Yield each county with the rows of the requested files; other files stay empty."""
        rows = {kind: self.run.rows(kind, _COUNTY) for kind in self.run.files}
        nothing = {kind: self.run.rows(kind, _COUNTY).rows("") for kind in self.run.files}
        for number, code in enumerate(self.codes):
            frames = {k: rows[k].rows(code) if k in kinds else nothing[k] for k in rows}
            records, blocks = frames["records"], frames["blocks"]
            yield CountyRows(code, number, records, blocks, frames.get("variability"))
            self._steps += 1
            if self._progress is not None:
                self._progress(self._steps, PASSES * len(self.codes) + 1)


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
    """Return the sums, over all counties, of links, agreement and inference without records.

    ``folder`` is an empty one for scratch files; each county has random draws of its
    own.  ``confidence`` is that of the intervals.  ``progress`` is told of every county in every
    pass; the last step is the writing.
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
    """Return race-and-ethnicity counts of records and truth, and the number of true records.

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
        bounds = variability.checked_variability(rows.variability)[["population", "lower", "upper"]]
        if not (rows.blocks["population"] != rows.variability["population"]).any():
            uniques = variability.unique_sums(records, variability=rows.variability)
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
    """Return a county's generator: one sequence, jumped ahead so that counties never overlap."""
    return np.random.Generator(np.random.PCG64(seed).jumped(number))


def _majority(records: Persons, truth: Persons) -> pd.DataFrame:
    true = race_ethnicity_counts(truth)
    if true.empty:
        names = {"release": "str", "true": "int64", "precision": "float64", "population": "int64"}
        return pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in names.items()})
    read = race_ethnicity_counts(records)
    # No records of a county are counts of zero.
    read = true[:1] * 0 if read.empty else read
    return condensed(majority_inference({SOURCE: read}, truth=true).blocks)
