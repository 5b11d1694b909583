"""Values of cells: the law of each published count, and what its text says under it."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from bayesrisk.tables.likelihoods import UNBOUNDED, Likelihood, SuppressedCounts, TrueCounts
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.laws import PlainLaw, cell_laws
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.sheet import Sheet
from bayesrisk.tables.reading.texts import (
    DECIMAL,
    NEGATIVE,
    WHOLE,
    is_mark,
    noted,
    number_range,
    span,
)


class Value(NamedTuple):
    """The meaning of a text: a number under a law; ``kind`` is empty for plain counts."""

    law: Likelihood
    number: int
    hidden: bool = False
    kind: str = ""

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest true count."""
        return self.law.withheld if self.hidden else _support(self.law, self.number)


@functools.lru_cache(maxsize=2**16)
def _support(law: Likelihood, number: int) -> tuple[int, int]:
    """Return the ends of the counts that a law allows for a number."""
    low, high = law.support(number)
    return int(low), int(high)


def values(cells: Sequence[Cell], rules: ReadingRules, sheets: Sequence[Sheet]) -> list[Value]:
    """Return the meaning of each cell; ``rules`` gets what is asked about laws and marks."""
    laws = cell_laws(cells, rules, sheets)
    return [_value(cell, law, rules) for cell, law in zip(cells, laws, strict=True)]


def _plain(cell: Cell, law: Likelihood, number: int) -> Value:
    """Return a count as it stands; refuse one that is not rounded as all are."""
    number *= cell.unit
    if number > UNBOUNDED:
        raise cell.refuse(f"be at most {UNBOUNDED}")
    low, high = _support(law, number)
    if low > high:
        raise cell.refuse(f"be rounded as counts says ({law})")
    return Value(law, number)


def _value(cell: Cell, rule: PlainLaw, rules: ReadingRules) -> Value:
    """Return the meaning of a cell; refuse a text that is no count, no range and no mark."""
    text, law, marked = cell.text, rule.law, f"marks.{cell.text}" in rules.choices
    ends = None if marked else number_range(text)
    if ends and f"marks.{text}" in rules.questions:  # a number that stands for others
        ends = number_range(rules.questions[f"marks.{text}"][0]) or ends
        text = ""
    if ends and WHOLE.fullmatch(text) and cell.row:
        return _plain(cell, law, ends[0])
    if ends is None:
        note = None if marked else noted(text)
        mark = note.note if note else text
        whole = marked or not (DECIMAL.fullmatch(text) or NEGATIVE.fullmatch(text))
        if whole and not note and not marked and not is_mark(mark) and any(map(str.isdigit, mark)):
            raise cell.refuse("be a count, a range such as 1-4 or <5, or a mark (marks.MARK=1-4)")
        guess, meaning = "withheld", "a count that is withheld and may be any"
        if rule.withheld and not note:
            guess, meaning = span(*rule.withheld), "withheld by the rule of the counts"
        if not whole:
            guess, meaning = "withheld", "no count: it may stand for any"
        if note:
            guess, meaning = "note", "a note beside a count that holds"
        answer = rules.ask(f"marks.{mark}", guess, f"{mark!r} is {meaning}")
        if answer == "withheld":
            return Value(law, 0, hidden=True)
        if answer == "note" and not note:
            raise cell.refuse("have a count beside the note")
        number = number_range(note.number) if note else None
        if answer == "note" and number:
            return _plain(cell, law, number[0])
        ends = number_range(answer) or (0, UNBOUNDED)
        rules.alternatives[f"marks.{mark}", "withheld"] = None
    low, high = ends
    if low == high:
        return Value(TrueCounts(), low, kind="" if law.exact else "exact")
    spread = SuppressedCounts(low, None if high >= UNBOUNDED else high).rule
    return Value(spread, low, kind=span(low, high)) if spread else Value(law, 0, hidden=True)
