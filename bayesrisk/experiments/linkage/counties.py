"""Re-identification county by county: what a county adds to the tables of all.

The county is the unit whatever the files are, so that one file and parts come to the same.  What
depends on other counties is three things: which race and ethnicity is the most frequent of all,
what the truth says of a person whom a file has in another county, and that no person is there
twice.  Two passes over the persons settle them, and a third one links.
"""

import functools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import header_fields, open_text, text_tables
from bayesrisk._files.parquet import opened, read_frame, spill, spilled
from bayesrisk._files.text import all_of, named
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.reconstruction import FinishedReconstruction, RowsByPlace
from bayesrisk.readers.dialects import (
    decoded_persons,
    is_person_column,
    missing_columns,
    named_dialect,
    said_by_file,
)
from bayesrisk.reconstruction.linkage import Guesses, Persons, cell_counts, person_frame
from bayesrisk.reconstruction.registry import Status
from bayesrisk.risk.linkage.agreement import AgreementSums, ReidentificationSums, compare_with_truth
from bayesrisk.risk.linkage.majority import (
    MajorityInference,
    checked_variability,
    condensed,
    majority_inference,
    quantile_table,
    unique_sums,
    unique_table,
)
from bayesrisk.risk.linkage.reidentification import link_targets, race_ethnicity_counts, targets_of
from bayesrisk.risk.linkage.without_record import inference_without_record, without_record_means
from bayesrisk.tables.exchange import Partitions

# -----------------------------------------------------------------------------
# Persons whose true record is in another county than where a file of known persons has them.
#
# What the truth says of every person is put down by a number that the name gives, and so are the
# questions; each number is then answered by itself.  Memory: the persons of one number.


_PERSONS = 2**18  # of one number
_FACTS = ["modal", "unique", "zero_variability"]


class Elsewhere:
    """Questions about persons by county, and their answers.

    Parameters
    ----------
    folder : Path
        An empty folder for what is put down.
    persons : int
        True records in all.
    truth : str
        How messages call them.
    """

    def __init__(self, folder: Path, persons: int, truth: str) -> None:
        self._folder, self._truth = folder, truth
        self._numbers = -(-max(persons, 1) // _PERSONS)

    def tell(self, county: str, known: pd.DataFrame) -> None:
        """Put down what the truth of a county says of its persons."""
        facts = sum(known[name].to_numpy(np.int64) << bit for bit, name in enumerate(_FACTS))
        rows = pa.table(
            {
                "person": pa.array(known["person"], pa.string()),
                "county": pa.array([county] * len(known), pa.string()),
                "facts": pa.array(facts, pa.int64()),
            }
        )
        self._put("told", rows)

    def ask(self, county: str, attacker: int, persons: pd.Series) -> None:
        """Put down the persons of a file that the truth of the same county does not have."""
        names = pa.array(persons.unique(), pa.string())
        where = pa.array([f"{county}-{attacker}"] * len(names), pa.string())
        self._put("asked", pa.table({"person": names, "where": where}))

    def _put(self, kind: str, rows: pa.Table) -> None:
        number = self._number(rows.column("person"))
        for own in np.unique(number):
            spill(self._folder / f"{kind}-{own}", rows.filter(pa.array(number == own)))

    def _number(self, persons: pa.ChunkedArray) -> IntArray:
        # The same for the same name on every machine.
        hashed = pd.util.hash_array(persons.to_numpy().astype(object), categorize=False)
        return np.asarray(hashed % self._numbers, dtype=np.int64)

    def answer(self) -> None:
        """Answer all questions.

        Raises
        ------
        DataError
            If a person has two true records.
        """
        for number in range(self._numbers):
            table = spilled(self._folder / f"told-{number}")
            if table is None:
                continue
            told = table.to_pandas()
            again = told["person"].duplicated()
            if again.any():
                person = told["person"][again].iloc[0]
                places = told.loc[told["person"] == person, "county"].tolist()
                raise DataError(
                    f"{self._truth}: column 'person': must be different for each record, "
                    f"got {person} in {places[0]} and {places[1]}"
                )
            asked = spilled(self._folder / f"asked-{number}")
            if asked is None:
                continue
            found = asked.to_pandas().merge(told[["person", "facts"]], on="person")
            for where, rows in found.groupby("where", sort=True):
                own = pa.Table.from_pandas(rows[["person", "facts"]], preserve_index=False)
                spill(self._folder / f"answer-{where}", own.replace_schema_metadata(None))

    def answers(self, county: str, attacker: int) -> pd.DataFrame:
        """Return ``person`` and what the truth of other counties says of them."""
        table = spilled(self._folder / f"answer-{county}-{attacker}")
        frame = pd.DataFrame({"person": pd.Series([], dtype="str"), "facts": np.zeros(0, np.int64)})
        if table is not None:
            frame = table.to_pandas()
        facts = frame["facts"].to_numpy(np.int64)
        found = {name: facts >> bit & 1 for bit, name in enumerate(_FACTS)}
        return frame[["person"]].assign(**found)


# -----------------------------------------------------------------------------
# Files of persons a county at a time: of a data set by place from its parts, or of one file.


#: Digits of a county.
COUNTY = 5
_TEXTS = ("block", "geoid_block", "person", "pik")  # whatever they look like


class PersonFile(ABC):
    """Persons of whom a county is asked for at a time, in the order of the codes.

    Attributes
    ----------
    counties : tuple of str
        Counties with anybody in them, sorted.
    digest : str
        What tells the persons from others.
    name : str
        How messages call them.
    """

    counties: tuple[str, ...]
    digest: str
    name: str

    @abstractmethod
    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county, rows numbered from 0."""


class _Whole(PersonFile):
    """Persons of one file, which is held."""

    def __init__(
        self, file: Path, columns: tuple[str, ...], dialect: str | None, once: bool
    ) -> None:
        persons = _read(file, columns, dialect)
        if once:
            _check_once(persons)
        frame = persons.frame
        self.name, self.digest = str(file), _files.digest(file)
        number, counties = pd.factorize(frame["block"].str[:COUNTY], sort=True)
        order = np.argsort(number, kind="stable")
        self._frame, self.counties = frame.iloc[order], tuple(counties)
        self._ends = np.cumsum(np.bincount(number, minlength=len(counties)))

    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county."""
        if county not in self.counties:
            return self._frame[:0].reset_index(drop=True)
        place = self.counties.index(county)
        start = self._ends[place - 1] if place else 0
        return self._frame[start : self._ends[place]].reset_index(drop=True)


class _ByPlace(PersonFile):
    """Persons of microdata by place, of which the part that was read last is held."""

    def __init__(
        self, folder: Path, columns: tuple[str, ...], dialect: str | None, once: bool
    ) -> None:
        self._index = Partitions.read(folder, "microdata")
        self._columns, self._dialect, self._once = columns, dialect, once
        self.name, self.digest = str(folder), self._index.digest
        self._part = functools.lru_cache(maxsize=1)(self._read_part)
        self._parts: dict[str, list[str]] = {}
        for code in self._index.codes:
            # Of parts that are larger than counties only their persons say which there are.
            inside = {code[:COUNTY]} if len(code) >= COUNTY else self._found(code)
            for county in inside:
                self._parts.setdefault(county, []).append(code)
        self.counties = tuple(sorted(self._parts))

    def _found(self, code: str) -> set[str]:
        return set(self._part(code)["block"].str[:COUNTY].unique())

    def _read_part(self, code: str) -> pd.DataFrame:
        folder = self._index.checked(code)
        file = folder / "persons.parquet"
        with named(str(folder), also=(KeyError, TypeError)):
            listed = _files.read_document(folder / "_microdata.json")["files"][file.name]["sha256"]
        _files.check_digest(file, listed, "_microdata.json")
        persons = _read(file, self._columns, self._dialect)
        outside = ~persons.frame["block"].str.startswith(code).to_numpy(bool)
        if outside.any():
            row = int(np.argmax(outside))
            raise DataError(
                f"{file}: row {row + 1}, column 'block': must be in {code}, "
                f"got {persons.frame['block'].iloc[row]}"
            )
        if self._once:
            _check_once(persons)
        return persons.frame

    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county."""
        codes = self._parts.get(county)
        if codes is None:
            return self._part(self._index.codes[0])[:0]
        if len(codes[0]) < COUNTY:
            frame = self._part(codes[0])
            return frame[frame["block"].str.startswith(county)].reset_index(drop=True)
        return pd.concat([self._part(code) for code in codes], ignore_index=True)


def open_persons(
    path: Path, columns: tuple[str, ...], dialect: str | None, *, once: bool = False
) -> PersonFile:
    """Return the persons of a file, or of microdata by place.

    ``once`` is whether a person may be in a file, or in a part, only once.

    Raises
    ------
    DataError
        If there is no such file, or it lacks a column or has a value out of range: file, row and
        column are named.
    """
    kind = _ByPlace if Partitions.there(path) else _Whole
    return kind(path, columns, dialect, once)


def _check_once(persons: Persons) -> None:
    again = persons.frame["person"].duplicated()
    if again.any():
        row = int(np.argmax(again.to_numpy()))
        raise DataError(
            f"{persons.source}: row {row + 1}, column 'person': must be different for each "
            f"record, got {persons.frame['person'].iloc[row]} again"
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


# -----------------------------------------------------------------------------


SOURCE = "reconstruction"
_PASSES = 3
_SHOWN = 3  # codes that a message quotes


@dataclass(frozen=True)
class Results:
    """Everything that the report shows."""

    records: int
    statuses: dict[str, int]
    links: ReidentificationSums
    agreement: AgreementSums
    alone: pd.DataFrame
    majority: MajorityInference
    quantiles: pd.DataFrame | None
    uniques: pd.DataFrame | None


@dataclass(frozen=True)
class _Area:
    """A county of the reconstruction."""

    code: str
    number: int
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


@dataclass(frozen=True)
class _Part:
    """What a county adds."""

    links: ReidentificationSums
    agreement: AgreementSums
    alone: pd.DataFrame
    majority: pd.DataFrame
    bounds: pd.DataFrame | None
    uniques: pd.DataFrame | None

    def plus(self, other: "_Part") -> "_Part":
        both = pd.concat([self.majority, other.majority], ignore_index=True)
        bounds = uniques = None
        if self.bounds is not None and other.bounds is not None:
            bounds = pd.concat([self.bounds, other.bounds], ignore_index=True)
        if self.uniques is not None and other.uniques is not None:
            uniques = self.uniques + other.uniques
        return _Part(
            self.links.plus(other.links),
            self.agreement.plus(other.agreement),
            self.alone + other.alone,
            condensed(both),
            bounds,
            uniques,
        )


def proved_blocks(blocks: pd.DataFrame, variability: pd.DataFrame | None) -> list[str]:
    """Return the blocks whose records are proved to be the only ones that fit."""
    unique = set(blocks.loc[blocks["status"] == Status.UNIQUE, "block"])
    if variability is not None:
        place = str(variability.columns[0])
        certain = variability[variability["upper"] == 0.0][place]
        if place == "block":
            unique |= set(certain)
        else:
            width = int(certain.str.len().max()) if len(certain) else 0
            inside = blocks["block"].str[:width].isin(set(certain))
            unique |= set(blocks.loc[inside, "block"])
    return sorted(unique)


class _Counties:
    """The counties of a reconstruction and of files of persons, in order."""

    def __init__(
        self,
        run: FinishedReconstruction,
        attackers: Mapping[str, PersonFile],
        truth: PersonFile,
        told: Callable[[int, int], None] | None,
    ) -> None:
        self.run, self.attackers, self.truth = run, attackers, truth
        self.statuses: Counter[str] = Counter()
        found = set(truth.counties).union(*(file.counties for file in attackers.values()))
        for code, rows in run.rows("blocks", COUNTY).places():
            found.add(code)
            self.statuses.update(rows["status"].tolist())
        self.codes = sorted(found)
        self._told, self._done = told, 0

    @property
    def steps(self) -> int:
        """Steps that are told of: every county in every pass, and the writing."""
        return _PASSES * len(self.codes) + 1

    def areas(self, *kinds: str) -> Iterator[_Area]:
        """Yield the counties with the rows of some files; the others are empty."""
        rows = {kind: RowsByPlace(file, COUNTY) for kind, file in self.run.files.items()}
        nothing = {kind: RowsByPlace(file, COUNTY).of("") for kind, file in self.run.files.items()}
        for number, code in enumerate(self.codes):
            frames = {k: rows[k].of(code) if k in kinds else nothing[k] for k in rows}
            yield _Area(
                code, number, frames["records"], frames["blocks"], frames.get("variability")
            )
            self.done()

    def done(self) -> None:
        """Say that another step is done."""
        self._done += 1
        if self._told is not None:
            self._told(self._done, self.steps)


class _Shared:
    """Whether anybody of a file lives in a block of the reconstruction."""

    def __init__(self, nobody: str) -> None:
        self._nobody, self._found, self._persons = nobody, False, 0
        self._codes: tuple[list[str], list[str]] = ([], [])

    def add(self, persons: pd.DataFrame, records: pd.DataFrame) -> None:
        """Look at a county."""
        theirs, here = persons["block"].unique(), records["block"].unique()
        self._found = self._found or bool(np.isin(theirs, here).any())
        self._persons += len(persons)
        for kept, codes in zip(self._codes, (theirs, here), strict=True):
            kept += sorted(codes)[: _SHOWN - len(kept)]

    def check(self) -> None:
        """Refuse persons none of whom does."""
        if not self._found:
            theirs, here = (", ".join(map(str, codes)) for codes in self._codes)
            raise DataError(
                f"{self._nobody.format(self._persons)} lives in a block of the reconstruction: "
                f"first codes {theirs} in the file, {here} in the reconstruction"
            )


def link_counties(
    run: FinishedReconstruction,
    attackers: Mapping[str, PersonFile],
    truth: PersonFile,
    folder: Path,
    *,
    seed: int,
    confidence: float,
    progress: Callable[[int, int], None] | None,
) -> tuple[Results, Callable[[], None]]:
    """Return the results, and what says that the report of them is written.

    Parameters
    ----------
    run : FinishedReconstruction
        The reconstruction.
    attackers : mapping of str to PersonFile
        Known persons by name.
    truth : PersonFile
        Confidential records.
    folder : Path
        An empty folder, for what is put down while it works.
    seed : int
        Of the choices among equal records and of the proportional guesses: each county has draws
        of its own.
    confidence : float
        Of the intervals.
    progress : callable or None
        Called with the steps done and all steps.

    Raises
    ------
    DataError
        If nobody of a file lives in a block of the reconstruction, a person has two true records,
        or a file is damaged.
    """
    counties = _Counties(run, attackers, truth, progress)
    cells, people = _cells(counties)
    elsewhere = Elsewhere(folder, people, truth.name)
    for area in counties.areas("blocks", "variability"):
        proved = set(proved_blocks(area.blocks, area.variability))
        known = targets_of(Persons(truth.of(area.code), truth.name), proved, cells["truth"])
        elsewhere.tell(area.code, known)
        for number, file in enumerate(attackers.values()):
            persons = file.of(area.code)["person"]
            elsewhere.ask(area.code, number, persons[~persons.isin(known["person"])])
    elsewhere.answer()
    total: _Part | None = None
    records = 0
    for area in counties.areas("records", "blocks", "variability"):
        records += len(area.records)
        part = _link(area, counties, elsewhere, cells, seed, confidence)
        total = part if total is None else total.plus(part)
    if total is None:
        raise DataError(f"{truth.name}: must have at least one person")
    return _results(counties, total, records, seed), counties.done


def _cells(counties: _Counties) -> tuple[dict[str, IntArray], int]:
    """Return how many have each race and ethnicity, of the records and of the truth, and these."""
    shared = {
        name: _Shared(f"{file.name}: none of the {{}} known persons")
        for name, file in counties.attackers.items()
    }
    confidential = _Shared(f"{counties.truth.name}: none of the {{}} confidential records")
    records, true = (np.zeros(126, dtype=np.int64) for _ in range(2))
    for area in counties.areas("records"):
        persons = counties.truth.of(area.code)
        confidential.add(persons, area.records)
        for name, file in counties.attackers.items():
            shared[name].add(file.of(area.code), area.records)
        records += cell_counts(Persons(area.records, SOURCE).frame)
        true += cell_counts(persons)
    for found in (*shared.values(), confidential):
        found.check()
    return {"records": records, "truth": true}, int(true.sum())


def _link(
    area: _Area,
    counties: _Counties,
    elsewhere: Elsewhere,
    cells: Mapping[str, IntArray],
    seed: int,
    confidence: float,
) -> _Part:
    """Return what a county adds."""
    rng = _draws(seed, area.number)
    truth = Persons(counties.truth.of(area.code), counties.truth.name)
    records = Persons(area.records, SOURCE)
    sources = {SOURCE: records}
    # One baseline for all tables.
    guesses = Guesses.draw(records, source=SOURCE, rng=rng, everywhere=cells["records"])
    proved = set(proved_blocks(area.blocks, area.variability))
    links = link_targets(
        sources,
        {name: file.of(area.code) for name, file in counties.attackers.items()},
        targets_of(truth, proved, cells["truth"]),
        guesses,
        rng,
        elsewhere={
            name: elsewhere.answers(area.code, number)
            for number, name in enumerate(counties.attackers)
        },
        confidence=confidence,
    )
    agreed = compare_with_truth(
        sources, truth=truth, baseline_from=guesses, rng=rng, confidence=confidence
    )
    bounds = uniques = None
    if area.variability is not None and "block" in area.variability:
        bounds = checked_variability(area.variability)[["population", "lower", "upper"]]
        if not (area.blocks["population"] != area.variability["population"]).any():
            uniques = unique_sums(records, variability=area.variability)
    return _Part(
        ReidentificationSums.of(links),
        agreed.sums(),
        inference_without_record(truth).sums(),
        _majority(records, truth),
        bounds,
        uniques,
    )


def _draws(seed: int, number: int) -> np.random.Generator:
    """Return the draws of a county: of one sequence, so far apart that they never overlap."""
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


def _results(counties: _Counties, total: _Part, records: int, seed: int) -> Results:
    quantiles = None
    if total.bounds is not None:
        quantiles = quantile_table(total.bounds, rng=_draws(seed, len(counties.codes)))
    return Results(
        records,
        dict(counties.statuses.most_common()),
        total.links,
        total.agreement,
        without_record_means(total.alone),
        MajorityInference(total.majority, (SOURCE,)),
        quantiles,
        None if total.uniques is None else unique_table(total.uniques),
    )
