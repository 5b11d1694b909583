"""The most detailed release that keeps given limits, and the search that found it."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import disk, validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import TextArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.base import by_level
from bayesrisk.mechanisms.rules import AGENCY_RULES, UNPUBLISHED, Rule, RulesByTable
from bayesrisk.release import Release
from bayesrisk.risk.audit import Adversary
from bayesrisk.risk.planning import ladders
from bayesrisk.risk.planning.fits import UNSEEN
from bayesrisk.risk.planning.ladders import (
    BELIEVED,
    PROVEN,
    Ladder,
    PlanLimits,
    Publication,
    Rungs,
    publish,
    read_ladders,
    usual_ladders,
)
from bayesrisk.risk.planning.tester import (
    Beliefs,
    Leak,
    PlaceMemory,
    Setting,
    Tester,
    summed,
    usual_adversaries,
)
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.microdata import OCCUPIED, as_microdata
from bayesrisk.tables.workload import Key

#: Told how many settings were looked at, how many may still be, and the seconds that were needed.
Report = Callable[[int, int, float], None]
Rules = dict[str, dict[str, str]]
_WIDENED = 6  # places, the worst, by which coarser settings are shown unsafe, too


@displayed
@dataclass(frozen=True, eq=False)
class ReleasePlan(Tabular):
    """The cheapest rules that keep given limits, and the search that found them.

    Attributes
    ----------
    workload : Workload
        The requested tables.
    limits : PlanLimits
        Limits that the release must keep.
    rules : mapping of str to mapping of str to str
        The chosen rule by level and table; empty if no rules keep the limits.
    frontier : pandas.DataFrame
        A row for each examined setting: its rules by ladder, and its ``cost`` with ``error`` (mean
        absolute error of a count) and ``withheld`` (share of counts). Its ``role`` is ``chosen``,
        ``tried``, ``finer`` (one step finer than the chosen one), ``agency`` or ``coarsest``. It
        proves at least ``recovered``, ``sentences`` and ``proved``, and at most ``*_most``.
        ``gain`` and ``doubled`` are given on request. The ``verdict`` is safe, unsafe, undecided,
        or the exceeded limit of belief. ``decided_by`` is the place or adversary that decided it.
    settings : int
        Number of settings of the ladders.
    blocking : mapping of str to float
        If no setting keeps all limits: for each limit that the coarsest setting exceeds, the
        smallest number that it would keep.
    places : ndarray of str
        The places of the finest level in the plan.
    occupied : bool
        Whether these are the places with a record, because no public list was given.
    """

    workload: Workload
    limits: PlanLimits
    rules: Rules
    frontier: pd.DataFrame
    settings: int
    blocking: Mapping[str, float]
    places: TextArray
    occupied: bool = False

    def to_frame(self) -> pd.DataFrame:
        """Return the settings that the search examined."""
        return self.frontier

    @property
    def chosen(self) -> pd.Series | None:
        """The row of the chosen setting, or None."""
        rows = self.frontier[self.frontier["role"] == "chosen"]
        return None if rows.empty else rows.iloc[0]

    @property
    def mechanism(self) -> RulesByTable:
        """The mechanism that releases by the chosen rules."""
        if not self.rules:
            raise ArgumentError("plan", "must have rules that keep the limits", shown="none")
        return RulesByTable(rules=self.rules)

    def release(self, records: Records | Microdata) -> Release:
        """Return the release of records by the chosen rules, for the plan's places."""
        places = OCCUPIED if self.occupied else self.places
        return self.mechanism.release(records, workload=self.workload, places=places)

    @property
    def publishes(self) -> bool:
        """Whether the chosen rules publish any table."""
        return any(
            text != UNPUBLISHED for tables in self.rules.values() for text in tables.values()
        )

    @property
    def recipe(self) -> str:
        """The chosen rules as TOML, which ``bayesrisk release --config`` reads."""
        return recipe(self.mechanism.spec.parameters["rules"])

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if not self.rules:
            return blocked(self.settings, self.blocking)
        return answer(self.rules, self.frontier, self.limits)


class _Judge:
    """Verdicts about settings of ladders, with the reason for each."""

    def __init__(self, tester: Tester, rungs: Sequence[Rungs], beliefs: Beliefs | None) -> None:
        self._tester, self.rungs, self._beliefs = tester, rungs, beliefs
        self._order = list(range(tester.codes.size))
        self._deciding: list[int] = []
        self.lines: dict[tuple[str, ...], dict[str, Any]] = {}

    def setting(self, choice: ladders.Choice) -> Setting:
        pairs = zip(self.rungs, choice, strict=True)
        by_key = {k: rung.ladder.rules[i] for rung, i in pairs for k in rung.ladder.tables}
        return {key: by_key[key] for key in self._tester.truth.workload.tables}

    def verdict(self, choice: ladders.Choice) -> str:
        return self.judged(self.setting(choice))

    def judged(self, setting: Setting, *, whole: bool = False) -> str:
        """Return the verdict about a setting; with ``whole`` every place is examined."""
        limits = self._tester.limits
        leaks = self._tester.leaks(setting, self._order, whole=whole)
        total, decided = summed(leaks.values()), ""
        verdict = total.verdict(limits)
        if verdict != "safe":
            worst = sorted(leaks, key=lambda n: (-_exceeding(leaks[n], limits), n))
            if verdict == "unsafe":
                self._deciding = [n for n in worst if _exceeding(leaks[n], limits)]
                # They are looked at first from now on.
                late = [n for n in self._order if n not in self._deciding]
                self._order = self._deciding + late
            decided = str(self._tester.codes[worst[0]])
        line: dict[str, Any] = {n: leak.least for n, leak in zip(PROVEN, total, strict=True)}
        line |= {
            f"{n}_most": leak.most if leak.most < UNSEEN and len(leaks) == self._tester.codes.size
            else np.nan for n, leak in zip(PROVEN, total, strict=True)
        }  # fmt: skip
        line |= {"places": len(leaks), "verdict": verdict, "decided_by": decided}
        if self._beliefs is not None and (verdict == "safe" or whole):
            rules = by_level(setting)
            broken = self._beliefs.exceeded(rules, limits)
            if broken and verdict == "safe":
                line |= {"verdict": broken, "decided_by": self._beliefs._order[0]}
            if whole or verdict == "safe":
                gains, doubles = self._beliefs.worst(rules)
                line |= {"gain": gains.gain + gains.reach, "doubled": doubles.doubled}
        self.lines[tuple(setting.values())] = line
        verdict = str(line["verdict"])
        return verdict if verdict in (ladders.SAFE, ladders.UNSAFE) else ladders.OTHER

    def still_unsafe(self, choice: ladders.Choice) -> bool:
        """Return whether the places that made the last setting unsafe make this one unsafe."""
        setting, total = self.setting(choice), Leak()
        for number in self._deciding[:_WIDENED]:
            total = total.plus(self._tester.least_leak(number, setting))
            if total.verdict(self._tester.limits) == "unsafe":
                return True
        return False


def _exceeding(leak: Leak, limits: PlanLimits) -> int:
    """Return the total of the proved numbers about a place that limits restrict."""
    stated = (getattr(leak, n).least for n in PROVEN if getattr(limits, n) is not None)
    return sum(stated)


def plan(
    records: Records | Microdata,
    workload: Workload,
    *,
    limits: PlanLimits | Mapping[str, float] | Iterable[str],
    ladders: Sequence[Ladder | Mapping[str, Any]] | None = None,
    weights: Mapping[str, float] | None = None,
    adversaries: Sequence[Adversary] | None = None,
    stated: Sequence[str] | None = None,
    places: ArrayLike | None = None,
    workers: int = 1,
    seed: int = 1,
    report: Report | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
) -> ReleasePlan:
    """Return the least costly rules under which the tables keep all limits.

    Parameters
    ----------
    records : Records or Microdata
        The confidential records.
    workload : Workload
        The tables to publish, at the finest categories wanted.
    limits : PlanLimits, mapping or texts
        ``{"recovered": 0, "proved": 0, "gain": 3.5}`` or ``["recovered=0", "gain=3.5"]``.
    ladders : sequence, optional
        The rules to choose from, for sets of tables. Each entry is a :class:`Ladder`, or a mapping
        of ``tables``, ``levels`` and ``rules``. By default there is one for each table and level.
    weights : mapping of str to float, optional
        Weight of the error of each table, by name; by default 1.
    adversaries : sequence of Adversary, optional
        The adversaries whose gain is limited; by default an outsider and a linker.
    stated : sequence of str, optional
        Attributes that the adversaries try to learn.
    places : array_like of str, optional
        The public list of places; by default that of the microdata, or the places with a record.
    workers : int, default 1
        Number of places examined in parallel; the answer does not depend on it.
    seed : int, default 1
        Seed for the choice of targets among many people.
    report : callable, optional
        Called after each setting with the number examined, the number that may follow, and the
        seconds.
    folder : path, optional
        Folder for ``places.jsonl``, which records what each place proves under each setting. An
        interrupted run resumes from it.
    resume : bool, default False
        Whether to keep the results in the folder.

    Returns
    -------
    ReleasePlan
        With rules, or with the smallest limits that the coarsest rules would keep.

    Notes
    -----
    The cost of a setting is a weighted mean over tables. Each table adds the mean absolute error of
    a count at the requested categories, and the share of counts of which nothing is published. For
    the error, a reader takes the middle of a range, equal shares of a merged count, and 0 for an
    unpublished count.

    Examples
    --------
    >>> import bayesrisk as br
    >>> folder = br.datasets.path("hospital")
    >>> work = br.Workload.read(folder / "tables.toml").select(tables=["total", "region * age"])
    >>> people = br.Records.read(folder / "records.csv", schema=work.schema)
    >>> made = plan(people, work, limits={"recovered": 0})
    >>> made.rules["all"]["region * age"]
    'rounding:base=3,method=nearest'
    """
    data = as_microdata(records)
    check.instance(workload, Workload, "workload")
    workers, limits = check.integer(workers, "workers", lower=1), PlanLimits.parse(limits)
    listed = public_places(data, workload) if places is None else check.text_array(places, "places")
    truth = tabulate(data, workload, geoids=listed)
    chosen = usual_ladders(workload) if ladders is None else read_ladders(ladders, workload)
    shares = _shares(workload, weights)
    publications = _publications(truth, chosen, data)
    rungs = [Rungs.make(one, publications, shares) for one in chosen]
    memory = None
    if folder is not None:
        if not resume and Path(folder).is_dir() and any(Path(folder).iterdir()):
            rule = "must be new or empty, or resume must be True to go on with its plan"
            raise ArgumentError("folder", rule, shown=str(folder))
        disk.make_folder(folder, private=True)
        memory = PlaceMemory(Path(folder) / "places.jsonl", _digest(truth, limits), keep=resume)
    tester = Tester(data, truth, publications, limits, workers=workers, memory=memory)
    beliefs = None
    if any(getattr(limits, name) is not None for name in BELIEVED):
        usual, usual_stated = usual_adversaries(workload)
        beliefs = Beliefs(data, workload, adversaries or usual, stated or usual_stated, seed=seed)
    judge = _Judge(tester, rungs, beliefs)
    result = _searched(judge, truth, publications, shares, report)
    return replace(result, occupied=listed is None and data.blocks is None)


def _publications(
    truth: PublishedTables, ladders: Sequence[Ladder], data: Microdata
) -> dict[tuple[Key, str], Publication]:
    """Return each table as published by each rule of its ladder and by agencies' usual rules."""
    publications: dict[tuple[Key, str], Publication] = {}
    for one in ladders:
        for text in one.rules:
            if Rule(text).joint:
                if any(Rule(other).recipe == Rule(text).recipe for _, other in publications):
                    raise ArgumentError(
                        "ladders", "must have a rule that protects tables together in one ladder, "
                        "once", got=text,
                    )  # fmt: skip
                publications |= publish(truth, one.tables, text, data)
    texts = [(key, text) for one in ladders for key in one.tables for text in one.rules]
    texts += [(key, text) for key in truth.workload.tables for text in AGENCY_RULES]
    for key, text in sorted(set(texts) - set(publications)):
        publications |= publish(truth, [key], text, data)
    return publications


def _searched(
    judge: _Judge,
    truth: PublishedTables,
    publications: Mapping[tuple[Key, str], Publication],
    shares: Mapping[Key, float],
    report: Report | None,
) -> ReleasePlan:
    rungs, limits = judge.rungs, judge._tester.limits
    settings, begun, tried = math.prod(r.cost.size for r in rungs), time.monotonic(), 0
    roles: dict[tuple[str, ...], str] = {}

    def note(setting: Setting, role: str, left: int) -> None:
        nonlocal tried
        tried += tuple(setting.values()) not in roles
        if role != "tried" or tuple(setting.values()) not in roles:
            roles[tuple(setting.values())] = role
        if report is not None:
            report(tried, left, time.monotonic() - begun)

    last = ladders.coarsest(rungs)
    coarse = judge.setting(last)
    hopeless = judge.judged(coarse, whole=True) == ladders.UNSAFE
    # Only where all others say as much or more.
    hopeless &= all(rung.coarser[:, i].all() for rung, i in zip(rungs, last, strict=True))
    note(coarse, "coarsest", settings + len(AGENCY_RULES))
    best: ladders.Choice | None = None
    for choice, verdict, left in () if hopeless else ladders.cheapest_first(rungs, judge):
        note(judge.setting(choice), "tried", left + len(AGENCY_RULES))
        best = choice if verdict == ladders.SAFE else None
    if best is not None:
        every = _one_step_finer(rungs, best)
        for number, finer in enumerate(every, 1):
            judge.judged(judge.setting(finer), whole=True)
            note(judge.setting(finer), "finer", len(every) - number + len(AGENCY_RULES))
    for number, text in enumerate(AGENCY_RULES, 1):
        uniform = dict.fromkeys(truth.workload.tables, text)
        if tuple(uniform.values()) not in roles:
            judge.judged(uniform, whole=True)
            note(uniform, "agency", len(AGENCY_RULES) - number)
    if best is not None:
        note(judge.setting(best), "chosen", 0)
    lines = []
    for texts, role in roles.items():
        setting = dict(zip(truth.workload.tables, texts, strict=True))
        chosen = [(shares[key], publications[key, text]) for key, text in setting.items()]
        rule = dict.fromkeys(texts)
        by_ladder = {
            rung.ladder.name: " | ".join(dict.fromkeys(setting[k] for k in rung.ladder.tables))
            for rung in rungs
        }
        spent = {
            name: float(sum(share * getattr(one, name) for share, one in chosen))
            for name in ("cost", "error", "withheld")
        }
        uniform_rule = next(iter(rule)) if len(rule) == 1 else ""
        lines.append({"role": role, "rule": uniform_rule} | by_ladder | spent | judge.lines[texts])
    frontier = pd.DataFrame(lines).sort_values(["cost", "role"], kind="stable", ignore_index=True)
    rules = {} if best is None else by_level(judge.setting(best))
    blocking = {} if best is not None else _blocking(judge.lines, limits)
    places = truth.geoids[truth.workload.levels[-1]]
    return ReleasePlan(truth.workload, limits, rules, frontier, settings, blocking, places)


def _blocking(lines: Mapping[Any, Mapping[str, Any]], limits: PlanLimits) -> dict[str, float]:
    """Return, for each limit that blocks the plan, the number that the coarsest rules need."""
    first = next(iter(lines.values()))
    blocking = {}
    for name, most in limits.stated.items():
        upper = f"{name}_most" if name in PROVEN else name
        number = float(first.get(upper, np.nan))
        if number > most:
            blocking[name] = number
    return blocking


def _one_step_finer(rungs: Sequence[Rungs], choice: ladders.Choice) -> list[ladders.Choice]:
    """Return the settings in which one ladder has the next finer rule."""
    settings = []
    for ladder, rung in enumerate(rungs):
        rule = choice[ladder]
        strictly = rung.coarser & ~rung.coarser.T
        finer = np.flatnonzero(strictly[:, rule])
        nearest = [j for j in finer.tolist() if not strictly[j, finer].any()]
        settings += [(*choice[:ladder], j, *choice[ladder + 1 :]) for j in nearest]
    return settings


def public_places(data: Records | Microdata, workload: Workload) -> ArrayLike | None:
    """Return the publicly known places of the tables, or None if nobody states them.

    If None, the places with a record are published.
    """
    if as_microdata(data).blocks is not None:
        return None
    geography = workload.schema.geography
    if geography.width(workload.levels[-1]) == 0:
        return [""]
    return [*geography.codes.values()] or None


def _digest(truth: PublishedTables, limits: PlanLimits) -> str:
    digest = hashlib.sha256(repr(limits).encode())
    for key, counts in truth.counts.items():
        digest.update(repr((key, truth.workload.tables[key].cells)).encode())
        digest.update(np.ascontiguousarray(counts.toarray()).tobytes())
        digest.update(repr(truth.geoids[key[0]].tolist()).encode())
    return digest.hexdigest()


def _shares(workload: Workload, weights: Mapping[str, float] | None) -> dict[Key, float]:
    names = {name for _, name in workload.tables}
    stated = dict(weights or {})
    for name, weight in stated.items():
        check.choice(name, "weights", tuple(sorted(names)))
        check.scalar(weight, f"weights[{name!r}]", lower=0.0)
    every = {key: float(stated.get(key[1], 1.0)) for key in workload.tables}
    total = sum(every.values())
    if not total > 0:
        raise ArgumentError("weights", "must not all be 0", got=stated)
    return {key: weight / total for key, weight in every.items()}


_WHAT = {
    "recovered": ("count of 1 or 2 would be recovered", "counts of 1 or 2 would be recovered"),
    "sentences": ("count of 1 or 2 would be proved to be at least 1",
                  "counts of 1 or 2 would be proved to be at least 1"),
    "proved": ("person would be proved", "people would be proved"),
}  # fmt: skip


def recipe(rules: Mapping[str, Mapping[str, str]]) -> str:
    """Return rules as TOML, in the form of a release's configuration file."""
    lines = [f"protection = {json.dumps(RulesByTable.name)}"]
    for level, tables in rules.items():
        lines += ["", f"[parameters.rules.{json.dumps(level)}]"]
        lines += [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in tables.items()]
    return "\n".join(lines) + "\n"


def published_words(rules: Mapping[str, Mapping[str, str]]) -> str:
    """Return the tables' rules in words, grouped by rule."""
    by_rule: dict[str, list[str]] = {}
    several = len(rules) > 1
    for level, tables in rules.items():
        for name, text in tables.items():
            by_rule.setdefault(text, []).append(f"{name} of {level}s" if several else name)
    texts = [t for t in by_rule if t != UNPUBLISHED] + [t for t in by_rule if t == UNPUBLISHED]
    return "; ".join(f"{', '.join(by_rule[text])} {Rule(text).words}" for text in texts)


def answer(
    rules: Mapping[str, Mapping[str, str]], frontier: pd.DataFrame, limits: PlanLimits
) -> str:
    """Return the first sentence of a plan that has rules."""
    text = f"All limits are kept by publishing {published_words(rules)}"
    if {one for tables in rules.values() for one in tables.values()} == {UNPUBLISHED}:
        text = "Of all settings only publishing nothing keeps all limits"
    finer = frontier[(frontier["role"] == "finer") & (frontier["verdict"] != "safe")]
    if not finer.empty:
        text += f". One step finer, {leak_words(finer, limits)}"
    (error,) = frontier.loc[frontier["role"] == "chosen", "error"]
    tables = sum(map(len, rules.values()))
    mean = "of the tables' mean errors of a count" if tables > 1 else "error of a count"
    return f"{text}. The mean {mean} is {error:.2g}."


def blocked(settings: int, blocking: Mapping[str, float]) -> str:
    """Return the first sentence of a plan without rules."""
    parts = [f"{name} would have to be {most:.4g}" for name, most in blocking.items()]
    reason = f": under the coarsest rules {'; '.join(parts)}" if parts else ""
    return f"None of the {settings:,} settings keeps all limits{reason}."


def leak_words(rows: pd.DataFrame, limits: PlanLimits) -> str:
    """Return the limit that settings exceed, and the least and the largest number, in words."""
    for name in PROVEN[::-1]:
        most = getattr(limits, name)
        if most is not None and (rows[name] > most).any():
            numbers = sorted({int(number) for number in rows[name] if number > most})
            few = "" if len(numbers) == 1 else f"{numbers[0]:,} to "
            return f"{few}{numbers[-1]:,} {_WHAT[name][numbers[-1] > 1]}"
    row = rows.iloc[-1]
    if row["verdict"] == "gain":
        return f"the {row['decided_by']} would gain {row['gain']:.2g} points"
    if row["verdict"] == "doubled":
        return f"the truth about {row['doubled']:.0f} people would become twice as probable"
    return "it is not decided whether a limit is exceeded"
