"""Tests of settings: how much their tables prove, and how much adversaries learn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesrisk._base import disk
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, OutputError
from bayesrisk.inference.microdata.system import TooLargeError
from bayesrisk.mechanisms.registry import usual_roles
from bayesrisk.mechanisms.rules import UNPUBLISHED, RulesByTable
from bayesrisk.risk.audit import Adversary, AuditQuestion, audit_targets
from bayesrisk.risk.audit.population import AuditedPopulation
from bayesrisk.risk.intervals import number_interval
from bayesrisk.risk.planning.fits import UNSEEN, LeakQuestion, Open, PlaceFits, Variant
from bayesrisk.risk.planning.ladders import PROVEN, PlanLimits, Publication
from bayesrisk.tables import Microdata, PublishedTables, Workload
from bayesrisk.tables.cells import coarsest_cells
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.workload import Key

#: A rule for every table.
Setting = Mapping[Key, str]
#: Kinds of records at all finest places of one place of the coarsest level.
_MOST = 2**24
_BATCH = 16  # places that are looked at before it is asked whether more are needed
_SMALL = (1, 2)


class Leak(NamedTuple):
    """Bounds on the numbers that a setting proves, one for each of ``PROVEN``."""

    recovered: Open = Open(0, 0)
    sentences: Open = Open(0, 0)
    proved: Open = Open(0, 0)

    def plus(self, other: Leak) -> Leak:
        """Return the leak of two sets of places together."""
        pairs = zip(self, other, strict=True)
        return Leak(*(Open(a.least + b.least, a.most + b.most) for a, b in pairs))

    def verdict(self, limits: PlanLimits) -> str:
        """Return whether the limits are kept: safe, unsafe (both proved) or undecided."""
        stated = [(getattr(self, n), m) for n in PROVEN if (m := getattr(limits, n)) is not None]
        if any(leak.least > most for leak, most in stated):
            return "unsafe"
        return "safe" if all(leak.most <= most for leak, most in stated) else "undecided"


class PlaceMemory:
    """A file with one line for each place and setting examined."""

    def __init__(self, file: Path, digest: str, *, keep: bool) -> None:
        self._file = file
        self.lines: list[tuple[str, tuple[str, ...], Leak]] = []
        if keep and file.exists():
            first, *rest = (
                disk.read_bytes(file, disk.MAX_HELD, OutputError).decode("utf-8").splitlines()
            )
            if first != json.dumps({"digest": digest}):
                raise ArgumentError(
                    "resume", "must be of the same records, tables and limits", shown=str(file)
                )
            for line in rest:
                try:
                    code, texts, numbers = json.loads(line)
                    leak = Leak(*(Open(*map(int, n)) for n in numbers))
                except (ValueError, TypeError):  # the run was ended within it
                    continue
                self.lines.append((code, tuple(texts), leak))
        text = [json.dumps({"digest": digest})]
        text += [json.dumps([code, texts, leak]) for code, texts, leak in self.lines]
        disk.write_bytes(file, ("\n".join(text) + "\n").encode(), private=True)

    def write(self, code: str, texts: tuple[str, ...], leak: Leak) -> None:
        """Append a line to the file."""
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([code, texts, leak]) + "\n")


class Tester:
    """The places of a population, and what each setting proves about them.

    Parameters
    ----------
    data : Microdata
        The records.
    truth : PublishedTables
        The true tables requested.
    publications : mapping of (key, rule) to Publication
        Each rule's publication of each table.
    limits : PlanLimits
        Limits, which select the questions.
    workers : int
        Number of places examined in parallel.
    memory : PlaceMemory, optional
        Leaks of an earlier, interrupted run, to which this run adds its own.
    """

    def __init__(
        self,
        data: Microdata,
        truth: PublishedTables,
        publications: Mapping[tuple[Key, str], Publication],
        limits: PlanLimits,
        *,
        workers: int = 1,
        memory: PlaceMemory | None = None,
    ) -> None:
        self.truth, self.limits, self._workers = truth, limits, workers
        self._publications = publications
        work = truth.workload
        self.space = coarsest_cells(work.schema, work.tables.values())
        self.kinds = self.space.representatives()
        self._variants()
        parents = {level: truth.parents(level) for level in work.levels}
        top, finest = parents[work.levels[0]], work.levels[-1]
        self.codes = truth.geoids[work.levels[0]]
        largest = int(np.bincount(top).max()) * self.kinds.size
        if largest > _MOST:
            raise ArgumentError(
                "tables",
                f"must tell at most {_MOST} kinds of records at places of one "
                f"{work.levels[0]} apart",
                shown=f"{largest}: plan fewer tables, or without that level",
            )
        records = data.for_schema(work.schema)
        places = truth.geoids[finest]
        home = np.searchsorted(places, work.schema.geography.ancestors(records.geoids, finest))
        label = self.space.labels(records.cells())
        #: For each place its finest places, and the positions of those of each level in tables.
        self.blocks = [np.flatnonzero(top == place) for place in range(self.codes.size)]
        self.rows: list[dict[str, IntArray]] = []
        self.places: list[PlaceFits] = []
        by_block = np.argsort(home, kind="stable")
        ends = np.searchsorted(home[by_block], np.arange(places.size + 1))
        for blocks in self.blocks:
            base = np.zeros((blocks.size, self.kinds.size), np.int64)
            for i, block in enumerate(blocks.tolist()):
                np.add.at(base[i], label[by_block[ends[block] : ends[block + 1]]], 1)
            pairs = {n: np.unique(p[blocks], return_inverse=True) for n, p in parents.items()}
            self.rows.append({level: rows for level, (rows, _) in pairs.items()})
            inner = {level: inverse.astype(np.int64) for level, (_, inverse) in pairs.items()}
            self.places.append(self.fits(inner, base))
        self._small = [self._small_counts(number) for number in range(self.codes.size)]
        self._memory = memory
        self._leaks: dict[tuple[int, tuple[str, ...]], Leak] = {}
        number = {str(code): i for i, code in enumerate(self.codes.tolist())}
        for code, texts, leak in memory.lines if memory is not None else ():
            if code in number:
                self._leaks[number[code], texts] = leak

    def fits(self, parents: dict[str, IntArray], base: IntArray) -> PlaceFits:
        """Return the data sets of a place, starting from its own records."""
        return PlaceFits(self.variants, parents, base)

    def _variants(self) -> None:
        """List the requested tables, followed by those that rules recode."""
        work = self.truth.workload
        tables = list(work.tables.items())
        self._number: dict[tuple[Key, str], int] = {}
        for (key, text), one in self._publications.items():
            if one.ruled is None:
                continue
            table = one.ruled.table
            equal = (i for i, (k, t) in enumerate(tables) if k == key and t == table)
            number = next(equal, len(tables))
            if number == len(tables):
                tables.append((key, table))
            self._number[key, text] = number
        self.variants = [Variant.make(k[0], t, work.schema, self.kinds) for k, t in tables]
        self.n_asked = len(work.tables)

    def _small_counts(self, number: int) -> IntArray:
        """Return the positions of a place's counts of 1 and 2 in the requested tables."""
        fits = self.places[number]
        counts = fits.base_counts[: fits.start[self.n_asked]]
        small: IntArray = np.flatnonzero(np.isin(counts, _SMALL))
        return small

    def ends(self, number: int, setting: Setting) -> tuple[IntArray, IntArray]:
        """Return the bounds of all counts of a place that a setting publishes."""
        fits = self.places[number]
        low = np.zeros(int(fits.start[-1]), np.int64)
        high = np.full_like(low, UNBOUNDED)
        for key, text in setting.items():
            if (key, text) not in self._number:
                continue
            variant, one = self._number[key, text], self._publications[key, text]
            place, part = self.rows[number][key[0]], slice(*fits.start[variant : variant + 2])
            low[part], high[part] = one.low[place].ravel(), one.high[place].ravel()
        return low, high

    def leak(self, number: int, setting: Setting, *, in_full: bool = False) -> Leak:
        """Return the numbers that a setting proves about a place, as far as limits require."""
        key = number, tuple(setting.values())
        leak = self._leaks.get(key)
        if leak is None or (in_full and leak.proved.most >= UNSEEN):
            question = self._question(number)._replace(in_full=in_full)
            leak = self._leaks[key] = self._answer(number, setting, question)
        return leak

    def least_leak(self, number: int, setting: Setting) -> Leak:
        """Return a place's leak; for a large place only a lower bound from earlier leaks."""
        key, fits = (number, tuple(setting.values())), self.places[number]
        if key in self._leaks or not fits.large:
            return self.leak(number, setting)
        return self._answer(number, setting, self._question(number)._replace(quick=True))

    def _answer(self, number: int, setting: Setting, question: LeakQuestion) -> Leak:
        return Leak(*self.places[number].leaks(*self.ends(number, setting), question))

    def _question(self, number: int) -> LeakQuestion:
        limits, small = self.limits, self._small[number]
        return LeakQuestion(
            small, limits.within, limits.recovered, limits.sentences, limits.proved
        )  # fmt: skip

    def leaks(
        self, setting: Setting, order: Sequence[int], *, whole: bool = False
    ) -> dict[int, Leak]:
        """Return each place's leak, until a limit is certainly exceeded.

        The number of examined places does not depend on the number of workers.
        """
        results: dict[int, Leak] = {}
        total = Leak()
        with ThreadPoolExecutor(self._workers) as pool:
            for start in range(0, len(order), _BATCH):
                batch = order[start : start + _BATCH]
                before = {n: self._leaks.get((n, tuple(setting.values()))) for n in batch}
                leaks: Iterable[Leak] = pool.map(
                    lambda n: self.leak(n, setting, in_full=whole), batch
                )
                for number, leak in zip(batch, leaks, strict=True):
                    results[number] = leak
                    total = total.plus(leak)
                    if self._memory is not None and leak != before[number]:
                        code = str(self.codes[number])
                        self._memory.write(code, tuple(setting.values()), leak)
                if total.verdict(self.limits) == "unsafe" and not whole:
                    break
        return results


def summed(leaks: Iterable[Leak]) -> Leak:
    """Return the leak of several places together."""
    total = Leak()
    for leak in leaks:
        total = total.plus(leak)
    return total


#: People who are asked about where there are more; confidence, and its normal quantile.
MOST, _LEVEL, _Z = 500, 0.95, 1.959963984540054
_DOUBLED = 2.0


class Learned(NamedTuple):
    """An adversary's gain in points, its interval's half-width, and the number of people doubled.

    If only some people are targets, ``doubled`` is the largest number that the sample allows (95
    %).
    """

    adversary: str
    gain: float
    reach: float
    doubled: float


def usual_adversaries(workload: Workload) -> tuple[tuple[Adversary, ...], tuple[str, ...]]:
    """Return an outsider and a linker, and the attributes to learn, as in ``bayesrisk audit``."""
    background, stated = usual_roles(workload.schema)
    people = [Adversary.named("outsider", known=())]
    people += [Adversary.named("linker", known=background)] if background else []
    return tuple(people), tuple(stated)


class Beliefs:
    """Adversaries' beliefs under settings, each computed once.

    People whose belief was not decided count as if their truth were certain.
    """

    def __init__(
        self, data: Microdata, workload: Workload, adversaries: Sequence[Adversary],
        stated: Sequence[str], *, seed: int,
    ) -> None:  # fmt: skip
        self.workload, self.adversaries = workload, tuple(adversaries)
        self._populations = {
            one.name: AuditedPopulation(
                data, AuditQuestion(workload, tuple(stated), (one,)), seed=seed
            )
            for one in self.adversaries
        }
        self._answers: dict[tuple[str, str], Learned] = {}
        self._order = [one.name for one in self.adversaries]

    def learned(self, rules: Mapping[str, Mapping[str, str]], adversary: str) -> Learned:
        """Return an adversary's gain under rules by level and table."""
        key = repr(rules), adversary
        if key not in self._answers:
            self._answers[key] = self._measure(rules, adversary)
        return self._answers[key]

    def _measure(self, rules: Mapping[str, Mapping[str, str]], adversary: str) -> Learned:
        if {text for one in rules.values() for text in one.values()} == {UNPUBLISHED}:
            return Learned(adversary, 0.0, 0.0, 0.0)
        population = self._populations[adversary]
        mechanism = RulesByTable(rules=rules)
        number = len(population.records)
        rows = population.targets(None if number <= MOST else MOST)
        release = population.release(mechanism.name, 0, mechanism)
        try:
            frame = population.statements("plan", mechanism.name, 0, mechanism, release, rows)
        except TooLargeError:  # no engine takes such tables: nobody's belief is decided
            return Learned(adversary, 100.0, 0.0, float(number))
        targets = audit_targets(frame)
        after = targets["truth_posterior"].fillna(1.0).to_numpy(float)
        without = targets["truth_without"].fillna(0.0).to_numpy(float)
        gain, share = 100.0 * (after - without), rows.size / number
        spread = float(gain.std(ddof=1)) if gain.size > 1 else 0.0
        reach = _Z * spread * np.sqrt(max(1.0 - share, 0.0) / gain.size)
        if share < 1.0 and spread == 0.0:
            # All who were asked agree: as many others may gain all as the sample can have missed.
            unseen = number_interval((0, 0), rows.size, number, confidence=_LEVEL)[1] / number
            reach = unseen * (100.0 - gain.mean())
        hits = int((after >= _DOUBLED * without).sum())
        doubled = number_interval((hits, hits), rows.size, number, confidence=_LEVEL)[1]
        return Learned(adversary, float(gain.mean()), float(reach), float(doubled))

    def exceeded(self, rules: Mapping[str, Mapping[str, str]], limits: PlanLimits) -> str | None:
        """Return the limit that an adversary exceeds, or None; the last offender is tried first."""
        for name in list(self._order):
            one = self.learned(rules, name)
            broken = {
                "gain": limits.gain is not None and one.gain + one.reach > limits.gain,
                "doubled": limits.doubled is not None and one.doubled > limits.doubled,
            }
            for limit, is_broken in broken.items():
                if is_broken:
                    self._order.insert(0, self._order.pop(self._order.index(name)))
                    return limit
        return None

    def worst(self, rules: Mapping[str, Mapping[str, str]]) -> tuple[Learned, Learned]:
        """Return the largest gain of an adversary, and the result with most people doubled."""
        every = [self.learned(rules, one.name) for one in self.adversaries]
        return max(every, key=lambda one: one.gain), max(every, key=lambda one: one.doubled)
