"""Values of cells: a number under a law, a range, or a withheld count."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayesrisk.tables.likelihoods import (
    UNBOUNDED,
    CountLimits,
    Likelihood,
    PerturbedCounts,
    RoundingSpec,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.laws import PlainLaw, cell_laws, counted, support
from bayesrisk.tables.reading.counts.marks import DASHES, UNKNOWN, WORD, WORDS, marks_answered
from bayesrisk.tables.reading.counts.notes import sampled, sheet_notes, small_counts, without_years
from bayesrisk.tables.reading.counts.untrue import untrue
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    NEGATIVE,
    WHOLE,
    is_mark,
    key,
    listing,
    noted,
    number_range,
    span,
)


class Value(NamedTuple):
    """The meaning of a text: a number under a law; ``kind`` is empty for plain counts.

    The kind ``missing`` is no count.
    """

    law: Likelihood
    number: int
    hidden: bool = False
    kind: str = ""

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest true count."""
        return self.law.withheld if self.hidden else support(self.law, self.number)


def values(cells: Sequence[Cell], rules: ReadingRules, sheets: Sequence[Sheet]) -> list[Value]:
    """Return the meaning of each cell, and add questions on laws and marks to ``rules``."""
    notes = {sheet.name: sheet_notes(sheet) for sheet in sheets}
    heads = dict.fromkeys((cell.file, cell.column) for cell in cells)
    doubts = {s.name: sampled(s, [h for f, h in heads if f == s.name]) or untrue(s) for s in sheets}
    laws = cell_laws(cells, rules, notes, doubts)
    rules.notes = [*itertools.chain(*notes.values())]
    answers = marks_answered(cells, laws, rules, rules.notes)
    cache: dict[tuple[str, int, bool, int, str], Value] = {}  # few texts stand in many cells
    by_column = {column: rules.columns.get(f"{key(column)}.marks", "") for _, column in heads}
    results = []
    for cell, law in zip(cells, laws, strict=True):
        meaning = "" if WHOLE.fullmatch(cell.text) else by_column.get(cell.column, "")
        words = (cell.text, cell.unit, cell.row > 0, id(law), meaning)
        if (value := cache.get(words)) is None:
            one = {cell.text: meaning} if meaning else answers
            value = cache[words] = _value(cell, law, rules, one)
        results.append(value)
    _check_sum(cells, results)
    ranges = {c.text: end for c in cells if not WHOLE.fullmatch(c.text) and not is_mark(c.text)
              and f"marks.{c.text}" not in rules.all and (end := number_range(c.text))}  # fmt: skip
    if ranges:
        texts = [f"{text!r} is {span(*ends)}" for text, ends in ranges.items()]
        zeros = sum(cell.text == "0" for cell in cells if cell.row)
        from_0 = next((x for x, (low, high) in ranges.items() if zeros and low == 0 < high), "")
        line = f"  ranges: {listing(texts)}"
        if from_0:
            setting = f"marks.{from_0}={span(1, ranges[from_0][1])}"
            line += f"; 0 stands in {zeros:,} counts: --set '{setting}' if {from_0!r} leaves it out"
        rules.lines.append(line)
    return results


def _check_sum(cells: Sequence[Cell], meanings: Sequence[Value]) -> None:
    """Refuse the largest count if the sum of all reaches the bound for unlimited counts."""
    least = [value.ends[0] for value in meanings]
    if sum(least) >= UNBOUNDED:
        cell = cells[least.index(max(least))]
        raise cell.refuse(f"leave the sum of all counts below {UNBOUNDED:,}")


def _plain(cell: Cell, law: Likelihood, number: int) -> Value:
    """Return a count as it stands; refuse one that is not rounded as its law says."""
    number = counted(cell, law, number)
    low, high = support(law, number)
    if low > high:
        raise cell.refuse(f"be rounded as counts says ({law})")
    return Value(law, number)


def _value(cell: Cell, rule: PlainLaw, rules: ReadingRules, answers: Mapping[str, str]) -> Value:
    """Return the meaning of a cell; refuse a text that is no count, range or mark."""
    text, law, marked = cell.text, rule.law, f"marks.{cell.text}" in rules.choices
    marked = marked or (text in answers and WHOLE.fullmatch(text) is not None)
    ends = None if marked else number_range(text)
    if ends and f"marks.{text}" in rules.questions:  # a number that replaces others
        ends = number_range(rules.questions[f"marks.{text}"][0]) or ends
        text = ""
    if ends and WHOLE.fullmatch(text) and cell.row:
        return _plain(cell, law, ends[0])
    if ends is None:
        if WHOLE.fullmatch(text) and not marked:
            raise cell.refuse(f"leave the sum of all counts below {UNBOUNDED:,}")
        note = None if marked else noted(text)
        mark = note.note if note else text
        whole = marked or not (DECIMAL.fullmatch(text) or NEGATIVE.fullmatch(text))
        words = WORD.findall(mark)
        digits = whole and not note and not marked and any(map(str.isdigit, without_years(mark)))
        small = small_counts(mark.casefold()) if digits and words else None
        said_so = small or is_mark(mark) or mark in answers
        if digits and not said_so and len(words) < WORDS:
            raise cell.refuse(
                "be a count, a range such as 1-4 or <5, or a mark (marks.MARK=withheld or 1-4)"
            )
        guess, meaning = "withheld", "a count that is not stated and may be any"
        meaning += f", such as 0 (marks.{text}=0)" * (text in DASHES)
        if rule.withheld and not note:
            guess, meaning = span(*rule.withheld), "withheld by the rule of the counts"
        if not whole:
            guess, meaning = "withheld", "no count: it may stand for any"
        if small:
            guess, meaning = span(*small), "a small count, as it says"
        if note:
            guess, meaning = "note", "a note beside a count that holds"
        answer = answers.get(mark, "")  # by sums or words
        answer = "" if note and answer != "withheld" else answer
        if not answer:
            answer = rules.ask(f"marks.{mark}", guess, f"{mark!r} is {meaning}")
        if answer in UNKNOWN:
            return Value(law, 0, hidden=True, kind="missing" * (answer == "missing"))
        if answer == "note" and not note:
            raise cell.refuse("have a count beside the note")
        number = number_range(note.number) if note else None
        if answer == "note" and number:
            return _plain(cell, law, number[0])
        ends = number_range(answer) or (0, UNBOUNDED)
        rules.alternatives[f"marks.{mark}", "withheld"] = None
    return range_value(*ends, law)


def limit_value(high: int) -> Value:
    """Return the meaning of an upper limit; all limits share one law, and so one table."""
    if not high:
        return Value(TrueCounts(), 0, kind="exact")
    return Value(CountLimits(), high, kind="at most")


def range_value(low: int, high: int, law: Likelihood) -> Value:
    """Return the meaning of a range, beside plain counts with a law."""
    if low < high < UNBOUNDED and isinstance(law, PerturbedCounts | RoundingSpec):
        # A range holds changed counts.
        base = law.base if isinstance(law, RoundingSpec) else 1
        low = min(low, support(law, -(-low // base) * base)[0])
        high = max(high, support(law, high // base * base)[1])
    if low == high:
        return Value(TrueCounts(), low, kind="" if law.exact else "exact")
    spread = SuppressedCounts(low, None if high >= UNBOUNDED else high).rule
    return Value(spread, low, kind=span(low, high)) if spread else Value(law, 0, hidden=True)
