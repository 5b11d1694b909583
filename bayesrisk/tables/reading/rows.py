"""Rows of a sheet before its columns have roles: those that count nobody, and blank labels."""

import itertools
import re
from collections.abc import Iterable, MutableSequence, Sequence

from bayesrisk.tables.reading.sheet import Sheet
from bayesrisk.tables.reading.texts import (
    BLANK,
    DECIMAL,
    NEGATIVE,
    WHOLE,
    key,
    says_number,
    total_word,
)

_NO_COUNT = re.compile(
    r".*((?<![\d ]) ?%|\b(percent(age)?s?|pct|rates?|ratio|share|proportion|mean|median|"
    r"average (age|income|price|rent|wage|salary|earnings|score|size|length|cost)|"
    r"purchasing power|index|uptake|coverage|prevalence|percentile|per 1[0 ,]*00|"
    r"per capita)\b).*|(.* )?p\d\d?(th)?"
)
_CHANGE = re.compile(r".*\b(increase|decrease|change|difference|net|balance)\b.*")


def says_no_count(head: str) -> bool:
    """Return whether a heading is of shares, rates and other numbers that count nobody."""
    return _NO_COUNT.fullmatch(head) is not None


def _rates(text: str) -> bool:
    return says_no_count(key(text)) or _CHANGE.fullmatch(key(text)) is not None


def counting_rows(sheet: Sheet) -> Sheet:
    """Return a sheet without rows of percentages, rates and other numbers that count nobody.

    Such a row has a label that says so, of which some row has a number with decimals in a column
    that holds whole numbers elsewhere.
    """
    texts = {*itertools.chain.from_iterable(row for _, row in sheet.rows)}
    changed = {t for t in texts if DECIMAL.fullmatch(t) or NEGATIVE.fullmatch(t)}
    says_so = {t for t in texts if any(map(str.isalpha, t)) and not t[0].isdigit() and _rates(t)}
    others = [row for _, row in sheet.rows if says_so.isdisjoint(row)] if changed else []
    whole = [
        j for j, column in enumerate(zip(*others, strict=True))
        if 2 * sum(t in changed for t in column) <= sum(map(says_number, column))
        and not _rates(sheet.heads[j])
    ]  # fmt: skip
    rows_of = [row for _, row in sheet.rows if any(row[j] in changed for j in whole)]
    labels = says_so.intersection(*[itertools.chain.from_iterable(rows_of)])
    rows = [(i, row) for i, row in sheet.rows if labels.isdisjoint(row)]
    if not labels or not rows:
        return sheet
    left = [(i, f"{', '.join(row)[:40]}…", "no count") for i, row in sheet.rows if labels & {*row}]
    return sheet._replace(rows=rows, left=[*sheet.left, *left])


def blanks_repeat(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether blanks begin rows, and only the labels above them tell rows apart."""
    words = [2 * sum(map(says_number, c)) < len(c) or not any(map(WHOLE.fullmatch, c))
             for c in columns]  # fmt: skip
    labels = [c for c, word in zip(columns, words, strict=True) if word and c and c[0]]
    rows = list(zip(*labels, strict=True))
    empty = [[not text for text in row] for row in rows]
    if not any(map(any, empty)) or any(sorted(e, reverse=True) != e or all(e) for e in empty):
        return False
    repeated = {*zip(*map(filled, labels), strict=True)}
    return len({*rows}) < len(repeated) == len(rows)


def filled(column: Sequence[str]) -> list[str]:
    """Return the texts of a column with those above where it is blank."""
    texts, above = list[str](), ""
    for text in column:
        above = text or above
        texts.append(above)
    return texts


def name_blanks(
    columns: Sequence[MutableSequence[str]], names: Iterable[int], sheet: Sheet, choice: str
) -> None:
    """Call blank labels a total where that stands beside each of them, else a label of their own.

    The sums of labels say later whether it counts all.
    """
    rows = [row for _, row in sheet.rows]
    for column in (columns[i] for i in names):
        blank = [p for p, text in enumerate(column) if not text]
        beside = all(any(total_word(text) == 2 for text in rows[p]) for p in blank)
        for p in blank:
            column[p] = "Total" if beside or choice == "total" else BLANK
