"""Limits of a plan, ladders of rules with their costs, and the search for the cheapest safe rules.

Replacing a rule by one that can be made from it never proves more. So if a setting is unsafe, so is
every setting from which it can be made; if it is safe, so is every setting that can be made from
it. Settings are tried in the order of their cost. An unsafe one is made as coarse as possible while
it stays unsafe. A safe setting then needs, on some ladder, a rule from which the unsafe setting's
rule cannot be made. Only such settings remain, on each ladder in turn.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import BoolArray, FloatArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.base import by_level
from bayesrisk.mechanisms.rules import AS_IT_IS, UNPUBLISHED, USUAL_RULES, Rule, RulesByTable
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.risk.audit.constructions import table_can_be_made
from bayesrisk.risk.audit.population import error_sums
from bayesrisk.tables import Microdata, PublishedTables, Workload, tabulate
from bayesrisk.tables.workload import Key

#: What is proved, in the order of a test.
PROVEN = ("recovered", "sentences", "proved")
#: What is believed, which need not fall when tables get coarser.
BELIEVED = ("gain", "doubled")


@displayed
@dataclass(frozen=True)
class PlanLimits:
    """The most that a release may prove, or let an adversary learn; None means no limit.

    Attributes
    ----------
    recovered : int, optional
        Counts of 1 or 2 in the requested tables that are known within ``within``.
    sentences : int, optional
        Counts of 1 or 2 that are proved to be at least one person.
    proved : int, optional
        Proved records: the place surely has a person with these values of all published attributes.
    gain : float, optional
        Largest gain of any adversary from the own record, in points.
    doubled : int, optional
        People whose own record at least doubles the probability of the truth about them, for the
        adversary with most of them.
    within : int, default 0
        Largest difference of the largest and smallest possible values of a recovered count.

    Examples
    --------
    >>> PlanLimits.parse(["recovered=0", "gain=3.5"]).stated
    {'recovered': 0, 'gain': 3.5}
    """

    recovered: int | None = None
    sentences: int | None = None
    proved: int | None = None
    gain: float | None = None
    doubled: int | None = None
    within: int = 0

    def __post_init__(self) -> None:
        for name in (*PROVEN, "doubled"):
            if getattr(self, name) is not None:
                check.integer(getattr(self, name), name, lower=0)
        if self.gain is not None:
            object.__setattr__(self, "gain", check.scalar(self.gain, "gain", lower=0.0))
        check.integer(self.within, "within", lower=0)
        if not self.stated:
            raise ArgumentError(
                "limit", f"must be given, one of {', '.join(PROVEN + BELIEVED)}", shown="none"
            )

    @classmethod
    def parse(cls, limits: PlanLimits | Mapping[str, float] | Iterable[str]) -> PlanLimits:
        """Return limits from a mapping or from texts ``NAME=NUMBER``."""
        if isinstance(limits, PlanLimits):
            return limits
        is_mapping, values = isinstance(limits, Mapping), dict[str, Any]()
        for text in limits if is_mapping else check.texts(limits, "limits"):
            name, _, number = (part.strip() for part in str(text).partition("="))
            check.choice(
                name, "limits" if is_mapping else "limit", tuple(f.name for f in fields(cls))
            )
            try:
                kind = float if name == "gain" else int
                values[name] = limits[text] if isinstance(limits, Mapping) else kind(number)
            except ValueError:
                advice = f": write {name}=0"
                rule = "must be NAME=NUMBER"
                raise ArgumentError("limit", rule, got=text, advice=advice) from None
        return cls(**values)

    @property
    def stated(self) -> dict[str, float]:
        """The limits that are set, by name."""
        names = PROVEN + BELIEVED
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


#: Codes of an attribute that are one, and the most that stay as they are.
_MERGED, _FEW = (5, 10, 20), 12
#: What a withheld count costs beside its error.
WITHHELD = 1.0


@dataclass(frozen=True)
class Ladder:
    """Some tables, and the rules from which a plan chooses one for all of them.

    Attributes
    ----------
    tables : tuple of (str, str)
        Level and name of each table.
    rules : tuple of str
        Texts of rules (:class:`~bayesrisk.mechanisms.rules.Rule`).
    """

    tables: tuple[Key, ...]
    rules: tuple[str, ...]

    def __post_init__(self) -> None:
        rules = check.texts(self.rules, "rules")
        check.each_once(rules, "rules", filled=True)
        for text in rules:
            Rule(text)
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "tables", tuple(map(tuple, self.tables)))

    @property
    def name(self) -> str:
        """The names of the tables, in words."""
        levels = itertools.groupby(self.tables, key=lambda key: key[0])
        return "; ".join(f"{level}: {', '.join(n for _, n in keys)}" for level, keys in levels)


def usual_ladders(workload: Workload) -> list[Ladder]:
    """Return a ladder for each table and level.

    Categories are those requested, or groups of 5, 10 or 20 codes of an attribute without labels.
    Counts are true, rounded to 3 or 5, or by the 10-5 rule; or the table is not published.
    """
    return [Ladder((key,), _usual_rules(workload, key)) for key in workload.tables]


def _usual_rules(workload: Workload, key: Key) -> tuple[str, ...]:
    recodings, schema = [""], workload.schema
    for name in workload.tables[key].factors:
        attribute = schema.attribute(name)
        if attribute.labels or attribute.size <= _FEW:
            continue
        for width in _MERGED:
            edges = list(range(attribute.first, attribute.last + 1, width))
            recodings.append(f"recode:groups.{name}={edges} + ")
    rules, published = [], []
    for text in itertools.chain.from_iterable((r + c for c in USUAL_RULES) for r in recodings):
        try:
            one = Rule(text).table(workload, key)
        except ArgumentError:  # cells of the table cut these groups
            continue
        if one is not None and one not in published:
            published.append(one)
            rules.append(text)
    return (*rules, UNPUBLISHED)


def read_ladders(entries: Sequence[Ladder | Mapping[str, Any]], workload: Workload) -> list[Ladder]:
    """Return checked ladders from ``tables``, ``levels`` (default: all) and ``rules``.

    Every table at every level must be in one ladder; those without a rule are published unchanged.
    """
    ladders: list[Ladder] = []
    every_name = tuple(dict.fromkeys(name for _, name in workload.tables))
    for number, entry in enumerate(entries, 1):
        label = f"ladder {number}"
        if not isinstance(entry, Ladder):
            if not set(check.mapping(entry, label)) <= {"tables", "levels", "rules"}:
                raise ArgumentError(label, "must have rules, and perhaps tables and levels",
                                    got=list(entry))  # fmt: skip
            chosen = check.texts(entry.get("tables", every_name), f"{label}: tables")
            levels = check.texts(entry.get("levels", workload.levels), f"{label}: levels")
            for names, possible in ((chosen, every_name), (levels, workload.levels)):
                for name in names:
                    check.choice(name, label, tuple(possible))
            keys = [k for k in workload.tables if k[0] in levels and k[1] in chosen]
            rules = check.texts(entry.get("rules", ()), f"{label}: rules")
            entry = Ladder(tuple(keys), tuple(rules))
        left = {*workload.tables}.difference(*(one.tables for one in ladders))
        if not entry.tables or not {*entry.tables} <= left:
            wrong = sorted({*entry.tables} - left)
            raise ArgumentError(label, "must be of tables that no other has", got=wrong)
        ladders.append(entry)
    left = {*workload.tables}.difference(*(one.tables for one in ladders))
    return ladders + [Ladder((key,), (AS_IT_IS,)) for key in workload.tables if key in left]


class Publication:
    """A table as a rule publishes it, with the bounds of each count at each place."""

    def __init__(
        self, truth: PublishedTables, key: Key, text: str, tables: PublishedTables | None
    ) -> None:
        self.key, self.text = key, text
        work = Workload(truth.workload.schema, {key: truth.workload.tables[key]})
        self.ruled = Rule(text).table(work, key)
        if self.ruled is None or tables is None:
            self.error, self.withheld = float(np.abs(truth.counts[key].toarray()).mean()), 1.0
            return
        only = PublishedTables(work, {key[0]: truth.geoids[key[0]]}, {key: truth.counts[key]})
        name = key[0], self.ruled.table.name
        self.low, self.high = tables.support(*name)
        spec = MechanismSpec(RulesByTable.name, tables=dict(tables.laws))
        sums = error_sums(Release(spec, tables), only).iloc[0]
        self.error = float(sums["absolute"] / max(sums["cells"], 1))
        self.withheld = 1.0 - float(sums["seen"] / max(sums["cells"], 1))

    @property
    def cost(self) -> float:
        """The mean error of a count, plus a cost for each withheld one."""
        return self.error + WITHHELD * self.withheld

    def says_no_more(self, other: Publication) -> bool:
        """Return whether this publication can be made from another one of the table."""
        if self.ruled is None or other.ruled is None:
            return self.ruled is None
        if Rule(self.text).joint:  # which counts are withheld depends on all, of true ones on none
            return other.text == AS_IT_IS and other.ruled.table == self.ruled.table
        if Rule(other.text).joint:
            return False
        return table_can_be_made(other.ruled, self.ruled)


def publish(
    truth: PublishedTables, keys: Sequence[Key], text: str, data: Microdata
) -> dict[tuple[Key, str], Publication]:
    """Return the publications of some tables that one rule protects together."""
    tables = None
    if text != UNPUBLISHED:
        work = Workload(truth.workload.schema, {key: truth.workload.tables[key] for key in keys})
        mechanism = RulesByTable(rules=by_level(dict.fromkeys(keys, text)))
        places = truth.geoids[work.levels[-1]]
        exact = tabulate(data, mechanism.published(work), geoids=places)
        tables = mechanism.protected(exact, work, data, np.random.default_rng(0))
    return {(key, text): Publication(truth, key, text, tables) for key in keys}


@dataclass(frozen=True, eq=False)
class Rungs:
    """A ladder with the cost of each rule, and which rules can be made from which.

    ``coarser[i, j]`` is True where rule j can be made from rule i.
    """

    ladder: Ladder
    cost: FloatArray
    coarser: BoolArray

    @classmethod
    def make(
        cls, ladder: Ladder, publications: Mapping[tuple[Key, str], Publication],
        weights: Mapping[Key, float],
    ) -> Rungs:  # fmt: skip
        """Return a ladder's rungs; the ``weights`` of all tables sum to 1."""
        size = len(ladder.rules)
        cost, coarser = np.zeros(size), np.ones((size, size), np.bool_)
        for key in ladder.tables:
            rungs = [publications[key, text] for text in ladder.rules]
            cost += weights[key] * np.array([one.cost for one in rungs])
            for (i, fine), (j, faint) in itertools.product(enumerate(rungs), repeat=2):
                coarser[i, j] &= i == j or faint.says_no_more(fine)
        return cls(ladder, cost, coarser)


#: Settings of which those that are left are counted.
COUNTED = 2**24
#: A rule of each ladder, by its position.
Choice = tuple[int, ...]
#: Verdicts about a setting: all limits are kept; proved that one is not; left open, or a limit that
#: is not monotone is exceeded.
SAFE, UNSAFE, OTHER = "safe", "unsafe", "other"


class Judge(Protocol):
    """Decides whether a setting keeps the limits."""

    def verdict(self, choice: Choice) -> str:
        """Return ``safe``, ``unsafe``, or ``other`` if neither is proved."""

    def still_unsafe(self, choice: Choice) -> bool:
        """Return whether the places that made the last setting unsafe make this one unsafe."""


def is_finer(rungs: Sequence[Rungs], choice: Choice, other: Choice) -> bool:
    """Return whether the second of two settings can be made from the first."""
    return all(rung.coarser[a, b] for rung, a, b in zip(rungs, choice, other, strict=True))


def cost(rungs: Sequence[Rungs], choice: Choice) -> float:
    """Return the cost of a setting."""
    return float(sum(rung.cost[i] for rung, i in zip(rungs, choice, strict=True)))


def coarsest(rungs: Sequence[Rungs]) -> Choice:
    """Return the setting of the coarsest rule on each ladder, the cheapest of equals."""
    return tuple(int(np.lexsort((rung.cost, -rung.coarser.sum(axis=0)))[0]) for rung in rungs)


def widest(rungs: Sequence[Rungs], choice: Choice, unsafe: Callable[[Choice], bool]) -> Choice:
    """Return an unsafe setting with every ladder as coarse as possible while it stays unsafe."""
    for ladder, rung in enumerate(rungs):
        rule = choice[ladder]
        above = [j for j in np.flatnonzero(rung.coarser[rule]).tolist() if j != rule]
        # The coarsest first: from it the fewest others can be made.
        for j in sorted(above, key=lambda j: (int(rung.coarser[j].sum()), rung.cost[j])):
            wider = (*choice[:ladder], j, *choice[ladder + 1 :])
            if unsafe(wider):
                choice = wider
                break
    return choice


def cheapest_first(rungs: Sequence[Rungs], judge: Judge) -> Iterator[tuple[Choice, str, int]]:
    """Yield settings in order of cost, each with its verdict and an upper bound on those left.

    Settings proved unsafe by others are left out.  Settings of equal cost come by position.
    """
    unsafe: list[Choice] = []  # each with all from which it can be made
    every = tuple(np.ones(rung.cost.size, np.bool_) for rung in rungs)
    waiting = [_entry(rungs, every)]
    queued: set[tuple[bytes, ...]] = set()
    verdicts: dict[Choice, str] = {}
    sizes = tuple(mask.size for mask in every)
    left = np.ones(sizes if math.prod(sizes) <= COUNTED else (1,) * len(sizes), np.bool_)
    while waiting:
        _, choice, masks = heapq.heappop(waiting)
        allowed = tuple(np.frombuffer(m, np.bool_) for m in masks)
        excluded = next((one for one in unsafe if is_finer(rungs, choice, one)), None)
        if excluded is None:
            new = choice not in verdicts
            if new:
                verdicts[choice] = judge.verdict(choice)
            if verdicts[choice] == UNSAFE:
                excluded = widest(rungs, choice, judge.still_unsafe)
                unsafe.append(excluded)
            if left.shape == sizes:
                pairs = zip(rungs, choice if excluded is None else excluded, strict=True)
                rules = [[i] if excluded is None else rung.coarser[:, i] for rung, i in pairs]
                left[np.ix_(*rules)] = False
            if new:
                safe = verdicts[choice] == SAFE
                rest = int(left.sum()) if left.shape == sizes else math.prod(sizes) - len(verdicts)
                yield choice, verdicts[choice], 0 if safe else rest
                if safe:
                    return
        for ladder, rung in enumerate(rungs):
            # All from which the unsafe rule can be made; of a single setting the rule alone.
            alone = np.arange(rung.cost.size) == choice[ladder]
            excluded_rules = alone if excluded is None else rung.coarser[:, excluded[ladder]]
            open_rules = allowed[ladder] & ~excluded_rules
            if not open_rules.any():
                continue
            child = (*allowed[:ladder], open_rules, *allowed[ladder + 1 :])
            key = tuple(mask.tobytes() for mask in child)
            if key not in queued:
                queued.add(key)
                heapq.heappush(waiting, _entry(rungs, child))


def _entry(
    rungs: Sequence[Rungs], allowed: tuple[BoolArray, ...]
) -> tuple[float, Choice, tuple[bytes, ...]]:
    """Return the cheapest setting of the allowed rules, with its cost and the rules' masks."""
    pairs = zip(rungs, allowed, strict=True)
    choice = tuple(int(np.where(mask, rung.cost, np.inf).argmin()) for rung, mask in pairs)
    return cost(rungs, choice), choice, tuple(mask.tobytes() for mask in allowed)
