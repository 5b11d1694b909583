"""Re-identification county by county: what a county adds to the tables of all.

The county is the unit whatever the files are, so that one file and parts come to the same.  What
depends on other counties is three things: which race and ethnicity is the most frequent of all,
what the truth says of a person whom a file has in another county, and that no person is there
twice.  Two passes over the persons settle them, and a third one links.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.linkage.elsewhere import Elsewhere
from bayesrisk.experiments.linkage.persons import COUNTY, PersonFile
from bayesrisk.experiments.reconstruction.folder import FinishedReconstruction, RowsByPlace
from bayesrisk.reconstruction.linkage.guessers import Guesses, cell_counts
from bayesrisk.reconstruction.linkage.persons import Persons
from bayesrisk.reconstruction.status import Status
from bayesrisk.risk.linkage.agreement import AgreementSums, compare_with_truth
from bayesrisk.risk.linkage.majority import MajorityInference, condensed, majority_inference
from bayesrisk.risk.linkage.race_ethnicity import race_ethnicity_counts
from bayesrisk.risk.linkage.rates import ReidentificationSums
from bayesrisk.risk.linkage.reidentification import link_targets, targets_of
from bayesrisk.risk.linkage.variability_reports import (
    checked_variability,
    quantile_table,
    unique_sums,
    unique_table,
)
from bayesrisk.risk.linkage.without_record import inference_without_record, without_record_means

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
