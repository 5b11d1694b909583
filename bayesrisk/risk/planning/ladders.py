"""Ladders: for some tables the rules that may be chosen, which of them say less, and their cost."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.rules import AS_IT_IS, UNPUBLISHED, USUAL_RULES, Rule, RulesByTable
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.risk.audit.constructions import table_can_be_made
from bayesrisk.risk.audit.population import error_sums
from bayesrisk.tables import Microdata, PublishedTables, Workload, tabulate
from bayesrisk.tables.workload import Key

#: Codes of an attribute that are one, and the most that stay as they are.
_MERGED, _FEW = (5, 10, 20), 12
#: What a withheld count costs beside its error.
WITHHELD = 1.0


@dataclass(frozen=True)
class Ladder:
    """Some tables, and the rules of which a plan chooses one for all of them.

    Attributes
    ----------
    tables : tuple of (str, str)
        Level and name of each.
    rules : tuple of str
        Texts of rules (:class:`~bayesrisk.mechanisms.rules.Rule`).
    """

    tables: tuple[Key, ...]
    rules: tuple[str, ...]

    def __post_init__(self) -> None:
        rules = check.texts(self.rules, "rules")
        if not rules or len(set(rules)) < len(rules):
            raise ArgumentError("rules", "must be at least one, each of them once", got=rules)
        for text in rules:
            Rule(text)
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "tables", tuple(map(tuple, self.tables)))

    @property
    def name(self) -> str:
        """The tables, in words."""
        levels = itertools.groupby(self.tables, key=lambda key: key[0])
        return "; ".join(f"{level}: {', '.join(n for _, n in keys)}" for level, keys in levels)


def usual_ladders(workload: Workload) -> list[Ladder]:
    """Return a ladder for each table and level.

    Categories are as asked for, or 5, 10 or 20 codes of an attribute without labels are one; counts
    are true, rounded to 3 or 5, or by the 10-5 rule; or the table is not published.
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
    """Return stated ladders: ``tables``, ``levels`` (all by default) and ``rules`` of each.

    Every table at every level must be in one; those of which nothing is said are published as they
    are.
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
    """A table as a rule publishes it: the table, and the ends of each count at each place."""

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
        """The mean error of a count, and what those that are withheld cost."""
        return self.error + WITHHELD * self.withheld

    def says_no_more(self, other: Publication) -> bool:
        """Return whether this can be made from another publication of the table."""
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
    """Return the publication by a rule of each of some tables, which are protected together."""
    tables = None
    if text != UNPUBLISHED:
        work = Workload(truth.workload.schema, {key: truth.workload.tables[key] for key in keys})
        mechanism = RulesByTable(rules=as_rules(dict.fromkeys(keys, text)))
        places = truth.geoids[work.levels[-1]]
        exact = tabulate(data, mechanism.published(work), geoids=places)
        tables = mechanism.protected(exact, work, data, np.random.default_rng(0))
    return {(key, text): Publication(truth, key, text, tables) for key in keys}


def as_rules(setting: Mapping[Key, str]) -> dict[str, dict[str, str]]:
    """Return the rules of tables by level and name."""
    rules: dict[str, dict[str, str]] = {}
    for (level, name), text in setting.items():
        rules.setdefault(level, {})[name] = text
    return rules


@dataclass(frozen=True, eq=False)
class Rungs:
    """A ladder with the cost of each rule, and whether the second of two says no more.

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
        """Return the rungs of a ladder; ``weights`` of all tables add up to 1."""
        size = len(ladder.rules)
        cost, coarser = np.zeros(size), np.ones((size, size), np.bool_)
        for key in ladder.tables:
            rungs = [publications[key, text] for text in ladder.rules]
            cost += weights[key] * np.array([one.cost for one in rungs])
            for (i, fine), (j, faint) in itertools.product(enumerate(rungs), repeat=2):
                coarser[i, j] &= i == j or faint.says_no_more(fine)
        return cls(ladder, cost, coarser)
