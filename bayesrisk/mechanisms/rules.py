"""Separate rules for each table and level: merged categories, and rules for counts."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.mechanisms.base import BaseMechanism, Protected, filled_mapping
from bayesrisk.mechanisms.recode import Recode
from bayesrisk.mechanisms.registry import make_mechanism, read_recipe
from bayesrisk.mechanisms.suppression.mechanism import Suppression
from bayesrisk.release import MechanismSpec, RangeSpec, RoundingSpec, SimulationOnly, TrueCounts
from bayesrisk.tables import Microdata, PublishedTables, Records, Table, Workload, tabulate
from bayesrisk.tables.likelihoods import Likelihood
from bayesrisk.tables.workload import Key

#: The rules of a table that is not published, and of one that is published as it is.
UNPUBLISHED, AS_IT_IS = "unpublished", "identity"
#: What agencies do to every table, beside no protection.
AGENCY_RULES = (AS_IT_IS, "nearest-5", "opensafely-midpoint-6", "ons-10-5", "cms-11")
#: What is done to counts where nothing is said, from detailed to coarse.
USUAL_RULES = (AS_IT_IS, "rounding:base=3,method=nearest", "nearest-5", "ons-10-5")
_WORDS = {
    "identity": "as they are", "nearest-5": "rounded to 5", "ons-10-5": "by the 10-5 rule",
    "opensafely-midpoint-6": "by OpenSAFELY's midpoint 6", "cms-11": "with 1 to 10 as one range",
}  # fmt: skip
_AND = " + "


class RuledTable(NamedTuple):
    """A table as a rule publishes it, perhaps recoded, with the law of its counts."""

    table: Table
    law: Likelihood


@dataclass(frozen=True)
class Rule:
    """A table's rule: a recipe of recoding, a rule for each count, or both.

    Its text is a recipe of a mechanism without randomness that treats each count alone, such as
    ``identity``, ``nearest-5`` or ``ranges:edges=[0,1,6]``. It may be ``recode:groups.age=[0,18]``,
    or both, joined by `` + `` with the recoding first. Or it is ``unpublished``. ``suppression`` is
    also allowed: tables with the same text are protected together (``joint``).

    Examples
    --------
    >>> Rule("recode:groups.age=[0,18,65] + nearest-5").counts.spec.mechanism
    'rounding'
    """

    text: str

    def __post_init__(self) -> None:
        check.text(self.text, "rule")
        parts = self._parts
        if len(parts) > 2 or (len(parts) == 2 and parts[0][0] != "recode"):
            raise ArgumentError(
                "rule", "must be one recipe, or a recoding and one more", got=self.text
            )
        if self.published:
            law = getattr(self.counts, "spec", MechanismSpec("none")).others
            plain = isinstance(law, TrueCounts | RangeSpec | RoundingSpec) and not law.random
            if not (plain or self.joint) or not isinstance(self.counts, BaseMechanism):
                raise ArgumentError(
                    "rule",
                    "must have no chance in it, and look at each count alone: identity, nearest-5, "
                    "rounding:base=3,method=nearest, ranges:edges=..., threshold:least=...",
                    got=self.text,
                )

    @property
    def published(self) -> bool:
        """Whether the rule publishes the table."""
        return self.text != UNPUBLISHED

    @cached_property
    def _parts(self) -> list[tuple[str, dict[str, Any]]]:
        return [read_recipe(part, "rule") for part in self.text.split(_AND)]

    @cached_property
    def recoding(self) -> Recode | None:
        """The recoding that is applied first, or None."""
        name, parameters = self._parts[0]
        return Recode(**parameters) if name == "recode" else None

    @cached_property
    def counts(self) -> BaseMechanism:
        """The mechanism applied to each count after the recoding."""
        name, parameters = self._parts[-1]
        if name == "recode":
            name, parameters = AS_IT_IS, {}
        return cast(BaseMechanism, make_mechanism(name, **parameters))

    @property
    def joint(self) -> bool:
        """Whether a published count also depends on other counts."""
        return self.published and isinstance(self.counts, Suppression)

    @property
    def recipe(self) -> str:
        """The part of the rule's text that follows the recoding."""
        return self.text.rpartition(_AND)[2]

    @property
    def words(self) -> str:
        """The rule in words, such as ``rounded to 5, by groups of 5 of age``."""
        if not self.published:
            return "not published"
        name, parameters = self.counts.spec.mechanism, self.counts.spec.parameters
        text = _WORDS.get(self.recipe, _WORDS.get(name, ""))
        if self.joint:
            text = f"without counts from 1 to {parameters['threshold'] - 1}"
            text += " and those that give them away" * parameters["complementary"]
        elif not text and "base" in parameters:
            text = f"rounded to {parameters['base']}"
        elif not text and "least" in parameters:
            text = f"with counts below {parameters['least']} as one range"
        elif not text:
            text = f"as ranges that begin at {', '.join(map(str, parameters['edges']))}"
        groups = self.recoding.spec.parameters["groups"] if self.recoding is not None else None
        merged = [f"{_group_words(codes)} of {name}" for name, codes in (groups or {}).items()]
        return f"{text}, by {' and '.join(merged)}" if merged else text

    def table(self, workload: Workload, key: Key) -> RuledTable | None:
        """Return a workload's table as the rule publishes it, or None if it does not."""
        if not self.published:
            return None
        left = Workload(workload.schema, {key: workload.tables[key]})
        if self.recoding is not None:
            left = self.recoding.published(left)
            if next(iter(left.tables))[0] != key[0]:
                raise ArgumentError("rule", "must leave the level as it is", got=self.text)
        (table,) = left.tables.values()
        return RuledTable(table, self.counts.spec.likelihood(key[0], table.name))


def _group_words(codes: Any) -> str:
    if not isinstance(codes[0], int):
        return f"{len(codes)} merged groups"
    widths = {b - a for a, b in itertools.pairwise(codes)}
    return f"groups of {widths.pop()}" if len(widths) == 1 else f"{len(codes)} groups"


class RulesByTable(BaseMechanism):
    """Publish each table at each level by its own rule, without randomness.

    Each table needs a rule, so no table is published unprotected by oversight. Recoded tables are
    called ``"NAME recoded"``.

    Parameters
    ----------
    rules : mapping of str to mapping of str to str
        By level and table, the text of a rule. It is a recipe of a mechanism without randomness
        that treats each count alone (``nearest-5``, ``ranges:edges=[0,1,6]``), possibly after
        ``recode:groups.age=[0,18,65] + ``; or ``unpublished``.

    Examples
    --------
    >>> from bayesrisk.tables import Workload
    >>> work = Workload.named("sf1-block", levels=["block"]).select(tables=["P1", "P12"])
    >>> recoded = "recode:groups.age=[0,18,65] + nearest-5"
    >>> rules = RulesByTable(rules={"block": {"P1": "identity", "P12": recoded}})
    >>> [*rules.published(work).at("block")]
    ['P1', 'P12 recoded']
    """

    grain = 0
    name = "rules-by-table"

    def __init__(self, *, rules: Mapping[str, Mapping[str, str]]) -> None:
        self._rules: dict[Key, Rule] = {}
        for level, tables in filled_mapping(rules, "rules").items():
            for name, text in check.mapping(tables, f"rules[{level!r}]").items():
                self._rules[check.text(level, "rules"), check.text(name, "rules")] = Rule(text)
        stated = {level: dict(tables) for level, tables in rules.items()}
        super().__init__(
            MechanismSpec(self.name, {"rules": stated}, others=SimulationOnly(drawn=False))
        )

    def tables(self, workload: Workload) -> dict[Key, RuledTable]:
        """Return the published tables, by the level and name in the workload."""
        for level, name in self._rules:
            if (level, name) not in workload.tables:
                change = "leave out --place" if level == "all" else f"give --place {level}"
                other = level not in workload.levels  # planned for other places
                raise ArgumentError(
                    "rules",
                    "must be of tables of the workload",
                    shown=f"{quote(name)} at {quote(level)}",
                    advice=f"; {change}, or plan again for the places of this release" * other,
                )
        for level, name in workload.tables:
            if (level, name) not in self._rules:
                rule = "must have a rule for each table; 'identity' publishes one as it is"
                raise ArgumentError(
                    "rules", rule, shown=f"none for {quote(name)} at {quote(level)}"
                )
        ruled = {k: self._rules[k].table(workload, k) for k in workload.tables}
        return {key: one for key, one in ruled.items() if one is not None}

    def published(self, workload: Workload) -> Workload:
        """Return the workload's published tables, recoded."""
        check.instance(workload, Workload, "workload")
        tables = {(k[0], one.table.name): one.table for k, one in self.tables(workload).items()}
        if not tables:
            raise ArgumentError("rules", "must leave a table of the workload", shown="none")
        return Workload(workload.schema, tables)

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        true = tabulate(microdata, self.published(workload))
        tables = self.protected(true, workload, microdata, rng)
        return Protected(tables, replace(self.spec, tables=dict(tables.laws)))

    def protected(
        self, true: PublishedTables, workload: Workload, data: Microdata | Records,
        rng: np.random.Generator,
    ) -> PublishedTables:  # fmt: skip
        """Return the tables as the rules publish them, with their laws.

        ``true`` are the true counts of :meth:`published`, and ``data`` the records.
        """
        counts, laws = dict(true.counts), dict[Key, Likelihood]()
        hidden, joint_keys = dict[Key, Any](), dict[str, list[Key]]()
        for key, one in self.tables(workload).items():
            published, rule = (key[0], one.table.name), self._rules[key]
            laws[published] = one.law
            if rule.joint:
                joint_keys.setdefault(rule.recipe, []).append(published)
            elif hasattr(rule.counts, "_protect_tables"):  # not as it is
                one_table = rule.counts._protect_tables(_only(true, [published]), rng).tables
                counts |= one_table.counts
        for recipe, keys in joint_keys.items():
            part = cast(Suppression, Rule(recipe).counts).suppress(_only(true, keys), data)
            counts |= part.counts
            hidden |= part.suppressed
        return replace(true, counts=counts, suppressed=hidden, laws=laws)


def _only(tables: PublishedTables, keys: Collection[Key]) -> PublishedTables:
    work = tables.workload
    part = Workload(work.schema, {key: work.tables[key] for key in work.tables if key in keys})
    geoids = {level: tables.geoids[level] for level in part.levels}
    return PublishedTables(part, geoids, {key: tables.counts[key] for key in part.tables})
