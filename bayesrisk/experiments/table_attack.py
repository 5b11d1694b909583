"""Attacks on published tables: bounds, claims, matching records and likely records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import reconstruction
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes
from bayesrisk._base.display import displayed, several as first_of
from bayesrisk._version import __version__
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, BayesRiskError, quote
from bayesrisk.experiments import pages
from bayesrisk.experiments.clock import Clock
from bayesrisk.experiments.folder_attack import attack_folder
from bayesrisk.experiments.pages import Part
from bayesrisk.experiments.place_bounds import PlaceBounds, write_read_tables
from bayesrisk.experiments.table_reports import (
    attack_advice,
    attack_quotes,
    bounds_figures,
    hidden_sentences,
    linked,
    placed,
)
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.reconstruction import Proofs
from bayesrisk.reconstruction.claims.result import Claims, one_record, several
from bayesrisk.reconstruction.records.bounds import CountBounds, narrowed
from bayesrisk.reconstruction.records.problem import published_problem
from bayesrisk.reconstruction.records.reconstruction import Reconstruction, record_form
from bayesrisk.reconstruction.records.solve import LIMIT_REACHED
from bayesrisk.release import Release
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload
from bayesrisk.tables.reading.reading import TableReading, check_marks
from bayesrisk.tables.reading.variables.trees import parts_title, published_labels

#: Combinations of all variables that are bounded, and places in which records are looked for, at
#: most; records with a row each (of more, those alike have one), and with an exact law.
_MOST_CELLS, _MOST_PLACES, _MOST_LISTED, _MOST_LIKELY = 2**11, 200, 20_000, 2**20
_MOST_KINDS = 2**9  # combinations of labels of which likely records are looked for
_SAID, _LIKELY, _PILOT = 10, 200, 200
_CAPTIONS = {
    "bounds": "Bounds of every published count, and of every combination of all variables",
    "claims": "What must be true, and no count states by itself",
    "records": "Records that fit",
    "likely": "Likely records, if all lists of records were equally probable before",
}
_TOGETHER = "together without a solution: "
_PROVED = "no others fit: proved."
_MUST = "This must be true, if the tables were read as they are meant:"
_STEPS = ("bounds", "claims", "records", "likely", "combinations")
_SECONDS = 60.0  # for all steps
_SHOWN = 2.0  # seconds after which bounds of some places are written
_MOST_READINGS = 60  # that are tried where no records fit


@displayed
@dataclass(frozen=True)
class AttackAnswer:
    """Bounds, claims and records that published tables reveal.

    Attributes
    ----------
    sentences : list of str
        The answer, in the order of discovery, and its assumptions.
    last : list of str
        Those of them on proofs, on gaps, and on the assumptions.
    frames : dict of str to pandas.DataFrame
        ``bounds`` of counts, ``claims`` (true, but stated by no count), ``records`` that fit and
        ``likely`` records, as far as they were found.
    facts : dict
        Numbers of counts that are coarsened, recovered, and more.
    reading : TableReading, optional
        How the tables were read; None for a folder or a release.
    """

    sentences: list[str]
    last: list[str]
    frames: dict[str, pd.DataFrame]
    facts: dict[str, int]
    reading: TableReading | None

    def _answer(self) -> list[str]:
        return self.sentences


def attack(
    tables: TableReading | PublishedTables | Release | str | Path | pd.DataFrame | Sequence[Any],
    folder: str | Path | None = None,
    *,
    accept: bool = False,
    seed: int = 0,
    time_limit: float | Clock | None = _SECONDS,
    proofs: int = 10,
    made_up: bool = False,
    say: Callable[[str], None] | None = None,
    tell: Callable[[AttackAnswer], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: object,
) -> AttackAnswer:
    """Return all that published tables reveal; each part is written to a folder when found.

    A run that is stopped leaves what it found; ``report.html`` says what is missing.

    Parameters
    ----------
    tables : TableReading, path-like, data frame, or sequence of paths or frames
        Readings of tables without open questions; or published tables to read. Or
        :class:`PublishedTables`, a :class:`Release`, or the folder of one. Then bounds, records and
        claims are found as by `bayesrisk attack FOLDER`, each in a folder of its own.
    folder : path-like, optional
        New or empty folder for ``report.html``, ``bounds.csv``, ``claims.csv``, ``records.csv``,
        ``likely.csv``, ``reading.toml`` (the assumptions), ``tables`` (for other commands), and
        ``proofs``, with certificates and their checker, which the report links. By default nothing
        is written.
    accept : bool, default False
        Whether to confirm all guesses about the reading of the tables.
    seed : int
        Seed of the draws of likely records, used without an exact law.
    time_limit : float, optional
        Seconds of clock time for all steps; each takes at most half of the rest, and says what it
        leaves open. For a folder it applies to each place and step; the default is then no limit.
    proofs : int, default 10
        Largest number of certificates of claims, in the order of the report, and of bounds,
        published counts first. There are also certificates of unique records, or of a
        contradiction. 0 for none.
    made_up : bool, default False
        Whether the people do not exist, as in a sample; the report and the folder then say so.
    say : callable, optional
        Called with each sentence of the answer as it is found.
    tell : callable, optional
        Called with the answer so far, each time when it is complete in the folder.
    progress : callable, optional
        Called with the numbers of finished and all steps.
    **settings : object
        For paths and frames: how they are read, such as ``counts="exact"``
        (:meth:`PublishedTables.read`).

    Raises
    ------
    ArgumentError
        If a guess about the reading was not confirmed; ``accept=True`` confirms all.

    Examples
    --------
    >>> frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    >>> found = attack(frame, accept=True)
    >>> found.sentences[0]
    'The one hidden count can be worked out; it is a single record.'
    """
    for name, value in settings.items():
        if like := check.did_you_mean(name, ("time_limit", "folder", "proofs", "accept")):
            raise ArgumentError(name, "is no argument of attack", got=value, advice=like)
    if tables is None or isinstance(tables, Records | Microdata):
        rule = f"must be published tables, got {type(tables).__name__}"
        raise ArgumentTypeError("tables", f"{rule}: bayesrisk.audit(records, ...) takes records")
    if isinstance(tables, list | tuple) and not tables:
        raise ArgumentError("tables must be at least one file, frame or release, got none")
    if (release := _earlier_release(tables)) is not None:
        if settings or seed or proofs != 10:
            name = min(settings) if settings else "seed" if seed else "proofs"
            raise ArgumentError(name, "goes with tables that are read, not with a folder of tables")
        keep = None if folder is None else check.path(folder, "folder")
        if keep is not None:
            disk.new_folder(keep)
        usual = isinstance(time_limit, Clock) or time_limit == _SECONDS
        limit = None if usual else check.time_limit(time_limit)
        answer = attack_folder(release, keep, time_limit=limit, say=say, progress=progress)
        return AttackAnswer(answer[0], [], *answer[1:], None)
    reading = _reading(tables, settings)
    if check.flag(accept, "accept"):
        reading = reading.accepted()
    try:
        reading.confirmed()
    except ArgumentError as error:
        other = "only a setting answers what the table does not show"
        advice = other if reading.open else "accept=True confirms them"
        raise error.advised(f"; {advice}") from error
    most = check.integer(proofs, "proofs", lower=0)
    if not (time_limit is None or isinstance(time_limit, Clock)):
        check.scalar(time_limit, "time_limit", lower=0.0)
    target = None if folder is None else check.path(folder, "folder")
    clock = time_limit if isinstance(time_limit, Clock) else Clock(time_limit)
    certificates = _Certificates(most if target else 0, reading.digest, clock)
    run = _Attack(reading, target, seed, certificates, clock)
    if made_up:
        run.tables = replace(run.tables, made_up=True)
    with nullcontext() if target is None else disk.explained(target):
        with clock.writing:
            run.begin()
        texts, bounded = set[str](), 0
        places = len(run.tables.geoids[run.level])
        for _ in run.steps():
            with clock.writing:
                run.save()
                # After those of some places alone.
                if say and 0 < bounded < places == run.bounded and not run.conflict:
                    say(f"All {places:,} places are bounded.")
                for sentence in run.sentences if say else ():
                    if sentence not in texts:
                        say(sentence)  # type: ignore[misc]
                texts.update(run.sentences)
                bounded = run.bounded
                run.report()  # figures take longer than what they show
                if tell:
                    tell(run.answer)
            if progress:
                progress(len(_STEPS) - len(run.missing), len(_STEPS))
    return run.answer


def _earlier_release(tables: Any) -> PublishedTables | Release | Path | None:
    """Return tables made earlier, or their folder, or None for any other input."""
    one = tables[0] if isinstance(tables, list | tuple) and len(tables) == 1 else tables
    if check.is_path(one):
        return path if (path := check.path(one, "tables")).is_dir() else None
    return one if isinstance(one, PublishedTables | Release) else None


def _reading(tables: Any, settings: Mapping[str, object]) -> TableReading:
    if isinstance(tables, TableReading):
        if settings:
            raise ArgumentError(f"{min(settings)} goes with paths and frames, not with a reading")
        return tables
    several: Any = tables if isinstance(tables, list | tuple) else [tables]
    paths = all(map(check.is_path, several))
    sources: Any = several if paths else [check.frame(one, "tables") for one in several]
    reading = (TableReading.read if paths else TableReading.from_frame)(sources, **settings)
    marks = settings.get("marks")
    check_marks(reading, [f"marks.{mark}" for mark in marks] if isinstance(marks, Mapping) else [])
    return reading


class _Attack:
    """The tables under attack, the results so far, and the output folder."""

    def __init__(
        self, reading: TableReading, target: Path | None, seed: int, certificates: _Certificates,
        clock: Clock,
    ) -> None:  # fmt: skip
        self.reading, self.target, self.seed = reading, target, seed
        self.tables = PublishedTables(*reading.confirmed())
        self.certificates, self.clock = certificates, clock
        self.frames: dict[str, pd.DataFrame] = {}
        self.first, self.proved = list[str](), list[str]()
        self.unique = False  # whether no other records fit
        self.rest: list[str] = []
        self.facts: Mapping[str, int] = {}
        self.missing, self.total = list(_STEPS), 0
        self.level, self.bounded = self.tables.workload.levels[-1], 0
        self.conflict = False  # whether no records fit at some place

    # Steps.

    @property
    def place_share(self) -> float | None:
        """Seconds for each place, if all places together take half of the time left."""
        share = self.clock.share
        return None if share is None else share / len(self.tables.geoids[self.level])

    @property
    def half(self) -> Deadline | None:
        """Deadline of a step that takes half of the time left, or None without a limit."""
        share = self.clock.share
        return None if share is None else Deadline(share, share=self.place_share)

    def steps(self) -> Iterator[None]:
        """Take the steps, the surest and quickest first, and yield before proofs, too."""
        # Posed once: bounds, claims, records and their variability are of one system.
        self.problem = published_problem(self.tables, scope=None)
        places, first = len(self.tables.geoids[self.level]), True
        search, wait = PlaceBounds(self.problem, self.reading.count_keys, self.clock), _SHOWN
        half = math.inf if self.clock.share is None else self.clock.passed + self.clock.share
        for number in search.steps():
            # Each time twice as late as before: what is written often is no more than all of it.
            looked = number == places and first  # at all places for the first time
            if (looked or self.clock.passed >= wait) and not search.complete:
                wait, first = 2 * self.clock.passed, first and not looked
                self._bounds(search.bounds, number)
                yield
            if search.conflict and self.clock.passed >= half:
                break  # the other half is for another reading
        bounds = search.bounds
        if search.complete:
            self.missing.remove("bounds")
        if bounds.conflict or (search.complete and self.certificates.most):
            self._bounds(bounds, search.number)
            yield
        self._bounds(bounds, search.number, proofs=search.complete)
        if bounds.conflict:
            self.first.append(self._otherwise())
            self.missing = [] if search.complete else self.missing
        yield
        if bounds.conflict or not search.complete:
            return
        if places > _MOST_PLACES or not self.tables.workload.schema.names:
            reason = "each count stands alone"
            if places > _MOST_PLACES:
                reason = self._many(places)
            self.rest.append(f"Counts are bounded, and records are not looked for: {reason}.")
            self.missing = []
            yield
            return
        steps: Sequence[tuple[str, Callable[[], Iterator[None] | None]]] = (
            ("claims", self._claims), ("records", self._records), ("likely", self._likely),
            ("combinations", self._combinations),
        )  # fmt: skip
        for name, step in steps:
            if self.clock.ended:
                return
            for _ in step() or ():
                yield
            self.missing.remove(name)
            yield

    def _bounds(self, bounds: CountBounds, number: int, *, proofs: bool = False) -> None:
        """Tell how many hidden counts follow, and keep the ends of all, for some more places."""
        keys, frame = ["place", "table", "cell"], self.reading.stated_cells
        self.facts = bounds.facts
        places, self.bounded = len(self.tables.geoids[self.level]), number
        self.conflict = bool(bounds.conflict)
        if bounds.conflict:
            self.first = [self._contradiction(bounds, number)]
            if proofs:
                proof = self.certificates.add(self.tables, bounds, 1)[0]
                self.first = [pages.PageCell(self.first[0], href=proof)]
            # What is stated there is no result.
            fits = bounds.counts["status"] != Status.INFEASIBLE
            bounds = replace(bounds, counts=bounds.counts[fits])
            self.facts = bounds.facts
        elif number < places:  # certificates are of all
            # One sentence, so that no part of it is read as one on all places.
            one = number == 1
            text = f"{number:,} of {places:,} places {'is' if one else 'are'} bounded so far"
            alone = " ".join(hidden_sentences(bounds, self._coarse))
            self.first = [f"{text}; of {'it' if one else 'these'} alone: {alone}"]
        else:
            if proofs:
                bounds = self.certificates.add_bounds(self.tables, bounds)
            self.first = hidden_sentences(bounds, self._coarse)
        counts = bounds.counts.rename(columns={"geoid": "place"})
        columns = [*keys, "low_stated", "high_stated", "low", "high", "status"]
        columns += [c for c in self.certificates.column if c in counts]
        frame = frame.merge(counts[columns], on=keys).drop(columns=keys)
        self.frames["bounds"] = published_labels(frame, self.reading.trees)

    def _contradiction(self, bounds: CountBounds, number: int) -> str:
        """Return the sentence that no records fit, at which of a number of places, and why."""
        code, reason = next(iter(bounds.conflict.items()))
        text, wrong = "No records fit these tables as they were read", "a guess or a count is wrong"
        reason = reason.removeprefix(f"{self.level} {code}: ").removeprefix(_TOGETHER)
        cells = reason.replace(f"{self.level} {code}: ", "").replace("all : ", "")
        if not self.reading.separate:  # one place, which needs no name
            return f"{text}, so {wrong}; these counts contradict each other: {cells}."
        labels = (self.reading.places[place] for place in bounds.conflict)
        names = [", ".join(_in_sentence(x) for x in one if x != "all") or "all" for one in labels]
        place_text = f"{len(names):,} of {number:,} places ({first_of(names)})"
        place_text += " looked at so far" * (number < len(self.tables.geoids[self.level]))
        return f"{text} at {place_text}, so {wrong}; {names[0]} has a contradiction in: {cells}."

    def _many(self, places: int) -> str:
        """Return the reason why records are not searched for in this many places."""
        names = list(map(quote, self.reading.separate))
        if not names:
            return f"more than {_MOST_PLACES} places"
        kind = f"{'combinations of ' * (len(names) > 1)}labels of {pages.listed(names)}"
        return f"each of {places:,} {kind} is taken by itself, and {_MOST_PLACES} are the limit"

    def _otherwise(self) -> str:
        """Return a sentence on the least changed reading of the tables that some records fit."""
        readings = list(dict.fromkeys(self.reading.alternatives))
        pairs = itertools.combinations(readings, 2)
        alone: Iterator[tuple[tuple[str, str], ...]] = ((one,) for one in readings)
        choices = itertools.chain(alone, (p for p in pairs if p[0][0] != p[1][0]))
        for changes in itertools.islice(choices, _MOST_READINGS):
            if self.clock.ended:
                return "The time was over before it was known which other reading fits."
            try:
                reading = self.reading.changed(dict(changes))
                problem = published_problem(PublishedTables(*reading.parts), scope=None)
            except BayesRiskError:  # another reading that cannot be
                continue
            search = PlaceBounds(problem, reading.count_keys, self.clock)
            if any(search.conflict for _ in search.steps()):
                continue
            if search.complete:
                words = " and ".join(f"{name}={value}" for name, value in changes)
                return f"Some records fit if it is read otherwise: {words}."
        return "No other reading that was tried fits: the counts or a setting must be wrong."

    @property
    def _coarse(self) -> str:
        """The adjective for inexact counts: "hidden", or "hidden or rounded"."""
        laws = self.tables.laws.values()
        withheld = all(law.exact or law.kind in ("ranges", "limits") for law in laws)
        return "hidden" if withheld else "hidden or rounded"

    def _claims(self) -> Iterator[None]:
        """Find claims that must be true and that no count states by itself."""
        claims = reconstruction.find_claims(self.problem, time_limit=self.place_share)
        frame = claims.to_frame(readable="here")
        frame = frame[frame["multiplicity"] > 0]
        order = np.lexsort((-frame["n_columns"].to_numpy(), several(frame), ~one_record(frame)))
        frame = frame.iloc[order].reset_index(drop=True)
        places, schema = self._places(frame[self.level]), self.tables.workload.schema
        words = schema.labelled(frame)[list(schema.names)].fillna("any")
        trees = self.reading.trees
        trees = {n: trees[n] for n in trees if parts_title(n) not in claims.grouped}
        words = published_labels(pd.concat([places, words], axis=1), trees)
        frame = frame.loc[words.index]
        plain = frame.copy()
        plain[[*map(parts_title, trees)]] = pd.NA
        sentences = [
            placed(text, place)
            for text, place in zip(
                reconstruction.claim_sentences(claims, plain),
                words[places.columns].to_dict("records"), strict=True,
            )
        ]  # fmt: skip
        one = int(one_record(frame).sum())
        few = len(frame) == 1
        text = "One statement is" if few else f"{len(frame):,} statements are"
        text += " proved that no count makes by itself; "
        text += (
            "none is about one record."
            if not one
            else ("it is" if few else f"{one:,} of them {'is' if one == 1 else 'are'}")
            + " about exactly one record."
        )
        self.rest.append(
            text
            if len(frame)
            else ("Nothing is proved of the records beyond what each count says.")
        )
        table = pd.DataFrame({"sentence": sentences, "records": frame["multiplicity"]})
        table["at_least"] = several(frame)
        self.proved = sentences[:_SAID]
        self.frames["claims"] = pd.concat([table, words], axis=1)
        if not self.certificates.most:
            return
        yield
        files = self.certificates.add(self.tables, replace(claims, claims=frame), len(frame))
        table = table.assign(**dict.fromkeys(self.certificates.column, files))
        pairs = zip(sentences[:_SAID], files, strict=False)
        self.proved = [pages.PageCell(text, href=file) for text, file in pairs]
        self.frames["claims"] = pd.concat([table, words], axis=1)

    def _records(self) -> Iterator[None]:
        """Find records that fit, and how many of them could be others."""
        tables = self.tables
        solution = reconstruction.reconstruct(self.problem, scope=self.level, time_limit=self.half)
        total = self.total = int(solution.count.sum())
        many = total > _MOST_LISTED
        rows = np.ones_like(solution.count) if many else solution.count
        frame = tables.workload.schema.labelled(record_form(replace(solution, count=rows)))
        codes = np.repeat(solution.geoids[solution.block], rows)
        places = self._places(pd.Series(codes, frame.index))
        frame = pd.concat([places, frame.drop(columns=self.level)], axis=1)
        frame = frame.assign(**({"records": solution.count} if many else {}))
        frame = published_labels(frame, self.reading.trees)
        text = f"Records that fit were not found ({solution.status[0]})."
        fits = np.isin(solution.status, (Status.UNIQUE, Status.FEASIBLE))
        if total:
            other = reconstruction.solution_variability(
                self.problem, scope=self.level, solution=solution, time_limit=self.half,
                node_limit=1000,
            )  # fmt: skip
            size = np.bincount(solution.block, solution.count, minlength=len(solution.geoids))
            # Where the distance is not known, all records could be others.
            upper = np.nan_to_num(np.asarray(other.upper, dtype=np.float64), nan=1.0)
            upper *= size > 0
            most = float((upper * size).sum() / total)
            text, group = f"{total:,} records were found that fit; ", "them"
            if self.reading.separate:  # labels may overlap: records of several are not added up
                names = self._labels(solution)
                sizes = [f"{size[i]:,.0f} of {names[i]}" for i in np.flatnonzero(fits)]
                worst = int(np.argmax(upper))
                most, group = float(upper[worst]), f"those of {names[worst]}"
                part = "one label" if len(sizes) == 1 else f"{len(sizes):,} labels, each by itself"
                part = "each label by itself" if fits.all() else part
                text = f"Records were found that fit {part}: {first_of(sizes)}; "
            text += f"{_at_most(most)} of {group} could be others." if most else _PROVED
            text += self._without(solution)
            if not most:
                self.unique = True
                status = np.where(fits, Status.UNIQUE, solution.status)
                unique = replace(solution, status=tuple(status.tolist()))
                self.rest.append(text)
                self.frames["records"] = frame
                yield
                self.rest.pop()
                text = pages.PageCell(text, href=self.certificates.add(tables, unique, 1)[0])
        self.rest.append(text)
        self.frames["records"] = frame

    def _labels(self, solution: Reconstruction) -> list[str]:
        """Return the labels of each place in a solution, as a sentence writes them."""
        codes = [self.reading.places[code] for code in solution.geoids]
        return [", ".join(map(_in_sentence, labels)) for labels in codes]

    def _without(self, solution: Reconstruction) -> str:
        """Return sentences on labels without records: none fit, or none were found."""
        names, text = self._labels(solution) if self.reading.separate else [], ""
        causes: dict[str, list[str]] = {}
        for name, status, conflict in zip(names, solution.status, solution.conflict, strict=False):
            if status not in (Status.UNIQUE, Status.FEASIBLE):
                limited = LIMIT_REACHED * (conflict == LIMIT_REACHED)
                cause = status if status == Status.INFEASIBLE else limited
                causes.setdefault(cause, []).append(name)
        for cause, mine in causes.items():
            one = len(mine) == 1
            labels = "one other label" if one else f"{len(mine):,} other labels"
            labels += f" ({first_of(mine)})"
            if cause == Status.INFEASIBLE:
                text += f" No records fit {labels}: proved."
            elif cause == LIMIT_REACHED:
                text += f" Of {labels} none were found within the limits of the search."
            else:
                text += (
                    f" Records of {labels} were not looked for: some combinations are in none of "
                    f"{'its' if one else 'their'} counts."
                )
        return text

    def _likely(self) -> None:
        """Find the most probable records, by an exact law or a short Markov chain."""
        tables, schema = self.tables, self.tables.workload.schema
        if self.reading.separate or schema.size > _MOST_KINDS:
            reason = (
                f"there are {schema.size:,} combinations of labels; {_MOST_KINDS} are the limit"
            )
            if self.reading.separate:
                names = pages.listed(list(map(quote, self.reading.separate)))
                reason = f"each label of {names} is taken by itself"
            self.rest.append(f"Likely records were not looked for: {reason}.")
            return
        if self.total > _MOST_LIKELY:
            self.rest.append(
                f"Likely records are looked for among at most {_MOST_LIKELY:,} records, since "
                f"their law has a step for each; here are {self.total:,}."
            )
            return
        prior, questions = RecordPrior.uniform_data_sets(schema), [RecordQuestion({})]
        try:
            posterior = microdata_posterior(
                tables, questions, level=self.level, place="", prior=prior, rng=self.seed,
                draws=_PILOT, doublings=2, time_limit=self.clock.share,
            )  # fmt: skip
            ranked = posterior.ranked_records(_LIKELY).drop(columns=["place", "known"])
        except ArgumentError as error:
            self.rest.append(f"Likely records were not found: {error}.")
            return
        if posterior.engine != "exact" and (posterior.answers["status"] == "undecided").any():
            self.rest.append("Likely records were not found: chains of a short pilot disagree.")
            return
        for attribute in schema.attributes:
            ranked[attribute.name] = [
                " or ".join(
                    label
                    for a, _, b in (run.partition("-") for run in str(text).split(","))
                    for label in attribute.labels[int(a) : int(b or a) + 1]
                )
                for text in ranked[attribute.name]
            ]
        self.frames["likely"] = ranked
        # An exact law gives 1 to what all lists have: that is proved, and no matter of likelihood.
        high = int((ranked["probability"] >= 0.9).sum())
        certain = int((ranked["probability"] > 1.0 - 1e-9).sum()) * (posterior.engine == "exact")
        if not self.unique:
            number = f"{high - certain:,}{' or more' * (high == _LIKELY)}"
            self.rest.append(
                f"Likely, and not proved: {number} further records, with 90 % or more each, if all "
                f"lists were equally probable before ({posterior.engine})."
            )

    def _combinations(self) -> None:
        """Add bounds for unpublished combinations of all variables."""
        stated, schema = self.frames["bounds"], self.tables.workload.schema
        geoids = self.tables.geoids[self.level]
        if schema.size * len(geoids) > _MOST_CELLS:
            return
        cross = Workload.of(schema, [schema.names], levels=[self.level])
        bounds = reconstruction.count_bounds(self.problem, queries=cross, time_limit=self.half)
        labels = schema.labelled(pd.DataFrame(schema.codes(np.arange(schema.size))))
        labels = pd.concat([labels] * len(geoids), ignore_index=True)
        codes = pd.Series(np.repeat(geoids, schema.size), name=self.level)
        frame = published_labels(
            pd.concat([self._places(codes), labels], axis=1), self.reading.trees
        )
        names = [n for n in stated.columns if n in frame]
        new = ~pd.MultiIndex.from_frame(frame[names]).isin(pd.MultiIndex.from_frame(stated[names]))
        bounds = replace(bounds, counts=bounds.counts.loc[frame.index[new]])
        bounds = self.certificates.add_bounds(self.tables, bounds, queries=cross)
        frame = pd.concat([frame[new], bounds.counts], axis=1).reindex(columns=stated.columns)
        frame = pd.concat([stated, frame], ignore_index=True)
        self.frames["bounds"] = frame.astype({"row": "Int64"})

    def _places(self, codes: pd.Series) -> pd.DataFrame:
        """Return the labels of the variables that make up each place."""
        rows = [self.reading.places[code] for code in codes] if self.reading.separate else []
        return pd.DataFrame(
            rows, columns=list(self.reading.separate), index=codes.index, dtype=object
        )

    # The folder.

    def begin(self) -> None:
        """Create the folder, and write the tables as they were read."""
        if self.target is None:
            return
        disk.new_folder(self.target)
        self.target.mkdir(parents=True, exist_ok=True)
        disk.write_bytes(self.target / "reading.toml", self.reading.to_toml().encode())
        write_read_tables(self.reading, self.tables, self.target / "tables")

    def save(self) -> None:
        """Write the tables and proofs found so far."""
        if self.target is None:
            return
        for name, frame in self.frames.items():
            disk.write_bytes(self.target / f"{name}.csv", csv_bytes(frame))
        self.certificates.write(self.target)

    def report(self) -> None:
        """Write the report of the results so far, with figures."""
        if self.target is None:
            return
        first, *next_ = self.first
        proved: list[Part] = [_MUST, ("points", self.proved)] if self.proved else []
        tables = [
            ("folded", _CAPTIONS[name], [pages.table(linked(frame.head(500)), _CAPTIONS[name])])
            for name, frame in {**self.frames, **self._kinds_of_records()}.items()
            if len(frame)
        ]
        page = pages.render(
            "What these tables give away",
            [
                ("sentence", first, "lead"),
                self._advice(),
                *next_,
                *proved,
                ("points", [*self.rest, *self.last]),
            ],
            [
                *bounds_figures(self.frames["bounds"], self.target),
                ("heading", "How the tables were read"),
                ("listing", "\n".join(self.reading.lines)),
                *tables,
                ("prose", "attack_reading.html", self.certificates),
            ],
            quotes=attack_quotes(first, self.proved, self.facts),
            made_up=self.tables.made_up,
            source=f"Made by bayesrisk {__version__}, seed {self.seed}.",
            settings_title="What was assumed, as a file for --assume",
            settings=self.reading.to_toml(),
        )
        disk.write_bytes(self.target / "report.html", page)

    def _advice(self) -> Part:
        """Return the advice by the proofs and bounds so far."""
        claims = self.frames.get("claims", pd.DataFrame({"records": [], "at_least": []}))
        single = int(((claims["records"] == 1) & ~claims["at_least"].astype(bool)).sum())
        weaker = int(narrowed(self.frames["bounds"]).sum()) + len(claims) - single
        files = [name for name in self.reading.stated_cells["file"].unique() if Path(name).suffix]
        return attack_advice(
            self.facts["recovered"], single + self.unique, weaker, files,
            conflict=self.conflict, ended=not self.missing,
        )  # fmt: skip

    def _kinds_of_records(self) -> dict[str, pd.DataFrame]:
        """Return the records that fit, those alike in a row, for the page."""
        frame = self.frames.get("records", pd.DataFrame())
        if "records" in frame or not len(frame.columns):
            return {}
        columns = [*frame.columns]
        groups = frame.groupby(columns, sort=False, dropna=False, observed=True)
        return {"records": groups.size().rename("records").reset_index()}

    @property
    def last(self) -> list[str]:
        """Closing sentences: proofs, missing steps, and assumptions."""
        lines = self.certificates.answer()
        if self.missing:
            lines.append(
                f"Not looked for, or not ended within the time: {pages.listed(self.missing)}."
            )
        return [*lines, self.reading.condition]

    @property
    def answer(self) -> AttackAnswer:
        """The answer so far."""
        last = [*self.last, f"What to do: {self._advice()[1]}"]
        sentences = [str(text) for text in (*self.sentences, *last)]
        return AttackAnswer(sentences, last, {**self.frames}, {**self.facts}, self.reading)

    @property
    def sentences(self) -> list[str]:
        """All sentences so far, in the order they were found."""
        return [*self.first, *self.proved, *self.rest]


def _in_sentence(label: str) -> str:
    """Return a label for a sentence, in quotes where it would be ambiguous in a list."""
    return quote(label) if "," in label or label.lower().startswith("of ") else label


_CELL = ("place", "table", "cell", "stated", "file", "row")


class _Certificates:
    """Certificates of proved results, at most ``most`` of each kind, with file names."""

    folder = "proofs"

    def __init__(self, most: int, digest: str, clock: Clock) -> None:
        self.most, self.bounds_left, self.parts = most, most, list[Proofs]()
        self.digest, self.clock = digest, clock
        self.column = ["proof"] if most else []

    def add(
        self, tables: PublishedTables, answer: Claims | CountBounds | Reconstruction, size: int,
        **options: Workload,
    ) -> list[str]:  # fmt: skip
        """Prove statements, and return the certificate file of each, or ``""``."""
        chosen = min(size, self.most)
        if not chosen:
            return [""] * size
        proofs = reconstruction.prove(
            tables, answer, most=chosen, queries=options.get("queries"),
            time_limit=self.clock.share,
        )  # fmt: skip
        first = 1 + sum(len(part.statements) for part in self.parts)
        names = [
            f"proof-{number:04d}.json" for number in range(first, first + len(proofs.statements))
        ]
        present = (proofs.statements["file"] != "").to_numpy()
        files = np.where(present, names, "").tolist()
        self.parts.append(replace(proofs, statements=proofs.statements.assign(file=files)))
        paths = [f"{self.folder}/{name}" if name else "" for name in files]
        return [*paths, *[""] * (size - len(paths))]

    def add_bounds(
        self, tables: PublishedTables, bounds: CountBounds, **options: Workload
    ) -> CountBounds:
        """Return bounds with the certificate file of each one narrower than stated."""
        if not self.most:
            return bounds
        frame = bounds.counts
        rows = np.flatnonzero(narrowed(frame))[: self.bounds_left]
        self.bounds_left -= rows.size
        files = np.full(len(frame), "", dtype=object)
        chosen = replace(bounds, counts=frame.iloc[rows])
        files[rows] = self.add(tables, chosen, rows.size, **options)
        return replace(bounds, counts=frame.assign(proof=files))

    def answer(self) -> list[str]:
        every = [bool(certificate) for part in self.parts for certificate in part.certificates]
        proved, unproved = sum(every), len(every) - sum(every)
        text = (
            f"{proved:,} of these statements and bounds have a proof for others to check, in the "
        )
        text += f"folder {self.folder}."
        left = f" No proof was found for {unproved:,} more within the limit of the search."
        return [text + left * bool(unproved)] if every else []

    def write(self, folder: Path) -> None:
        """Write the certificates found so far, with the program that checks them."""
        if self.parts:
            statements = pd.concat([part.statements for part in self.parts], ignore_index=True)
            statements = statements.assign(reading=self.digest)
            certificates = tuple(c for part in self.parts for c in part.certificates)
            Proofs(statements, certificates).write(folder / self.folder, replace=True)


def _at_most(share: float) -> str:
    """Return a share as text, rounded up."""
    if share < 1e-3:
        return "fewer than 0.1%"
    digits = 0 if share >= 1e-2 else 1
    return f"at most {math.ceil(share * 10 ** (2 + digits) - 1e-9) / 10**digits:.{digits}f}%"
