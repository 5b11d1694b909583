"""Numbers that are no true counts: money, in other units, rates by their title, or swapped."""

import re

from bayesrisk.tables.reading.counts.notes import Note, sheet_notes
from bayesrisk.tables.reading.headings import UNIT
from bayesrisk.tables.reading.rows import says_mean, titles_rates
from bayesrisk.tables.sheets.records import says_no_count
from bayesrisk.tables.sheets.sheet import EXPONENT, Sheet
from bayesrisk.tables.sheets.texts import key

_WORDS = re.compile(
    r"\b(data|record|household|target)s?[- ]swapping|\b(records?|households?|persons?|data|values) "
    r"\w+( \w+)? swapped|\bsynthetic (data|records)|[(\[（,;:–-] ?(in )?(hundreds|millions|lakhs?|"
    r"hunderten?|millionen|centaines|millones|mi(g)?liones|milhões|miljoen(er)?|百人|万人|萬人|百万人|"
    r"만 ?명)\W*$",
    re.IGNORECASE,
)
#: Amounts in the labels of a column: *Bin TL*, *million USD*, *1 000 EUR*.
_AMOUNTS = re.compile(
    r"\b(bin|mil\w*|m[il]?ln|mio|mrd|mld|bil\w*|tis|tys|tsd|tausend|thousands?|(1[., ]?)?000)"
    r"\W{0,2}"
    r"(tl|try|eur|usd|gbp|chf|sek|nok|dkk|pln|czk|huf|ron|bgn|brl|jpy|krw|cny|inr|aud|cad|nzd|zar|"
    r"rub|uah|euros?|dollars?|pounds|lira|zł|kč|ft|lei|[€£$¥₺₽₩])(?!\w)",
    re.IGNORECASE,
)


def untrue(sheet: Sheet) -> Note | None:
    """Return the first sentence, title, heading or unit that denies true counts of records.

    A title on rates belongs to other columns if some heading names rates.
    """
    heads, first = [*map(key, sheet.heads)], sheet.rows[0][0]
    notes = [*sheet_notes(sheet), *(Note(first - 1, head) for head in sheet.heads)]
    results = [note for note in notes if _WORDS.search(note.text)]
    means = any(map(says_mean, heads))
    rates = means or any(map(says_no_count, heads))
    results += [
        n for n in notes if n.text in sheet.captions
        and ((titles_rates(n.text) and not rates) or (says_mean(key(n.text)) and not means))
    ]  # fmt: skip
    for head, column in zip(heads, zip(*(row for _, row in sheet.rows), strict=True), strict=False):
        texts, exponent = dict.fromkeys(column), EXPONENT.fullmatch(head)
        plain_texts = {"", "0"} | {t for t in texts if not (exponent or UNIT.fullmatch(t))}
        units = [t for t in texts if t not in plain_texts]
        if units and (len(texts) > 1 or not sheet.thousands):
            results.append(Note(first, f"{head}: {units[0]}"))
        if all(map(_AMOUNTS.search, texts)):
            results.append(Note(first, f"{head}: {column[0]}"))
    return next(iter(results), None)
