"""Headings of several rows joined into one row, and repeated headings made distinct."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from bayesrisk.tables.sheets.lines import filled_texts
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    NUMBER,
    PATH,
    WHOLE,
    interval,
    is_mark,
    is_year,
    noted,
    number_range,
    plain_year,
    says_number,
    sex,
    total_word,
    two_scripts,
)

#: The end of a heading line that continues in the next line: "Number / of / returns".
_JOINT = re.compile(
    r"(.* )?(of|and|or|per|for|by|with|in|to|from|the|de|des|du|da|di|et|y|e|und|von|der|mit|&)",
    re.IGNORECASE,
)
#: Before a number: Under / 20.
_OPEN = re.compile(r"under|below|less than|aged?|ages", re.IGNORECASE)
#: Names of counts beside their shares.
_NUMBER = re.compile(rf"(numbers?|no\.?|n|counts?|head ?count|{NUMBER})( ?\(n\))?", re.IGNORECASE)
_SHARE = re.compile(
    r".*(%|per ?cent|\b(rates?|shares?|proportions?|anteil|taux|tasa|procent|prozent|andel)\b).*",
    re.IGNORECASE,
)
_FEW_NUMBERS, _YEARS_DIGITS = 3, 4  # consecutive numbers as headings; digits of a year


def joined_headings(
    head: Sequence[str], rows: Sequence[Sequence[str]], row: Sequence[str],
    below: Mapping[int, Sequence[str]], empty: set[int],
) -> list[str]:  # fmt: skip
    """Return headings joined with the row below them; empty if that is no heading row.

    ``rows`` are the heading rows above in their original form. In a heading row most texts above
    counts are words that do not stand below. Numbers are headings only as years or in turn. Ranges
    are if numbers stand below, and letter marks (M and F) if none of them stands below. The row
    fills gaps of the row above, or has no text above labels, or other words above most counts.
    """
    raw, row = rows[-1], [*map(plain_year, row)]
    if _are_years(head, row, below):
        return [row[0] or head[0], *row[1:]]
    if _says_again(raw, row, below):
        return [a if j in below else b or a for j, (a, b) in enumerate(zip(head, row, strict=True))]
    if called_again(raw, row, below):
        return _paths(head, raw, row, below, empty)
    in_turn = _in_turn(head, row, below)
    ends = {j for j in below if _ends_range(raw[j], row[j])}
    plain = {j: texts for j, texts in below.items() if j not in ends}
    words, numbers = _words(row, plain, in_turn=in_turn)
    if len(words) <= numbers:
        return []
    if _are_codes(head, row, below):
        return list(row)  # a row of codes, and the row of their labels
    if _translates(raw, row):
        return [wrapped(a, b) for a, b in zip(head, row, strict=True)]
    going_on = [] if numbers else _going_on(rows, row, below)
    differs = _differs(row, below, words, numbers, in_turn=in_turn)
    if not (going_on or differs or _names_columns(head, row, below, words, numbers)):
        return []
    if len({*filter(None, row)}) == 1 < filled_texts(row):  # one text for all columns
        return list(head)
    columns = [j for j, text in enumerate(row) if text]
    lines = all(raw[j] and not raw[j].isdecimal() and not row[j].isdecimal() for j in columns)
    if differs and lines and any(raw[j] and not row[j] for j in below):
        return [
            b if total_word(a) == 2 and head.count(a) > 1 == row.count(b) else wrapped(a, b)
            for a, b in zip(head, row, strict=True)
        ]
    lower = ["" if j in going_on else text for j, text in enumerate(row)]
    joined = _paths(head, raw, lower, below, empty)
    heads = [joined[j] for j in below if joined[j]]
    if len({*heads}) < len(heads):
        joined = _paths(head, raw, lower, below, set())
    return [wrapped(head[j], row[j]) if j in going_on else t for j, t in enumerate(joined)]


def _are_years(head: Sequence[str], row: Sequence[str], below: Mapping[int, Sequence[str]]) -> bool:
    """Return whether a row has distinct years above all counts, which have one heading.

    They are in equal steps, or fewer than half of the counts below could be years.
    """
    texts = [row[j] for j in below]
    if not (len({*texts}) == len(texts) > 1 and all(map(is_year, texts))):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(texts)}
    return len({head[j] for j in below}) == 1 and (len(steps) == 1 or _few_years(below))


def _few_years(below: Mapping[int, Sequence[str]]) -> bool:
    """Return whether fewer than half of the texts below headings could be years."""
    texts = [*itertools.chain(*below.values())]
    return 2 * sum(map(is_year, texts)) < len(texts)


def _words(
    row: Sequence[str], below: Mapping[int, Sequence[str]], *, in_turn: bool
) -> tuple[list[str], int]:
    """Return the words of a row above counts, and the number of other texts there.

    The others are marks, and numbers and ranges unless headings are numbers ``in_turn``.
    """
    marks = {text for texts in below.values() for text in texts if is_mark(text)}
    words, other_texts = list[str](), 0
    for text, texts in ((row[j], texts) for j, texts in below.items() if row[j]):
        sign = text in ("%", "#", "$", "€", "£") or any(map(str.isalpha, text))
        mark = is_mark(text) and (text in marks or not sign)
        counted = sum(bool(WHOLE.fullmatch(t)) or (not row[0] and is_mark(t)) for t in texts)
        wide = number_range(text) and 2 * counted < len(texts)
        number = wide or WHOLE.fullmatch(text) or DECIMAL.fullmatch(text) or noted(text)
        if mark or (number and not in_turn):
            other_texts += 1
        else:
            words.append(text)
    return words, other_texts


def _are_codes(head: Sequence[str], row: Sequence[str], below: Collection[int]) -> bool:
    """Return whether headings are codes, each above a text of the row."""
    code = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+|\.[\w-]+)*")
    return all(
        bool(upper) == bool(text) and (not upper or code.fullmatch(upper))
        for j, (upper, text) in enumerate(zip(head, row, strict=True))
        if j in below or upper != text
    )


def _translates(above: Sequence[str], row: Sequence[str]) -> bool:
    """Return whether a row repeats the headings above it in another script."""
    pairs = [pair for pair in zip(above, row, strict=True) if any(pair)]
    several = 1 < len({*pairs}) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    return several and all(two_scripts(*pair) for pair in pairs)


def _differs(
    row: Sequence[str], below: Mapping[int, Sequence[str]], words: Sequence[str], other_texts: int,
    *, in_turn: bool,
) -> bool:  # fmt: skip
    """Return whether most texts of a row are distinct words, none of which stands below it."""
    most = not other_texts or len(words) > max(other_texts, len(below) // 2)
    repeats = (row[j] in texts for j, texts in below.items()
             if not (in_turn and WHOLE.fullmatch(row[j])))  # fmt: skip
    different = len(words) > bool(row[0]) and len({*words}) > min(2, len(words) // 2)
    return most and different and not any(repeats)


def _names_columns(
    head: Sequence[str], row: Sequence[str], below: Mapping[int, Sequence[str]],
    words: Sequence[str], other_texts: int,
) -> bool:  # fmt: skip
    """Return whether a row fills gaps of headings, or has texts above all counts.

    Alternatively it has words alone, and nothing above labels.
    """
    labels = [j for j in range(len(row)) if not j or j not in below]
    if not other_texts and not any(row[j] for j in labels):
        return True
    if any(a and not b and c for (a, b), c in zip(pairwise(head), row[1:], strict=True)):
        return True
    headed = [j for j in below if j and head[j]]
    if row[0] in ("", head[0]) and (
        len(words) == len(below) or (headed and all(row[j] for j in headed))
    ):
        return True
    # The row names the labels, and its words above counts do not repeat below.
    called = all(row[j] and not head[j] for j in range(len(row)) if j not in below)
    repeats = any(is_mark(row[j]) or row[j] in texts for j, texts in below.items())
    return len(words) == len(below) and called and not repeats


def _says_again(above: Sequence[str], row: Sequence[str], counts: Collection[int]) -> bool:
    """Return whether most headings of counts extend the one above: *M 0-64* below *0-64*."""
    pairs = [(above[j], row[j]) for j in counts if above[j]]
    longer = sum(a != b for a, b in pairs)
    return longer > 1 and 2 * longer > len(pairs) and all(b.endswith(a) for a, b in pairs)


def called_again(above: Sequence[str], row: Sequence[str], counts: Collection[int]) -> bool:
    """Return whether a row repeats label headings above it, and has no count.

    Cells merged with those above repeat their texts. The other texts are words, or one year above
    counts.
    """
    repeats = sum(bool(text) and text == upper for text, upper in zip(row, above, strict=True))
    columns = [j for j, text in enumerate(row) if text not in ("", above[j])]
    texts = {row[j] for j in columns}
    label = any(not j or j not in counts for j in columns)
    year = len(texts) == 1 and not label and all(map(is_year, texts))
    words = repeats > 1 and bool(texts) and not any(map(says_number, texts))
    return year or words


def _ends_range(above: str, text: str) -> bool:
    """Return whether a number completes the heading above it: *Under* and *20*."""
    return bool(text[:1].isdecimal() and _OPEN.fullmatch(above))


def _going_on(
    rows: Sequence[Sequence[str]], row: Sequence[str], below: Mapping[int, Sequence[str]]
) -> list[int]:
    """Return the columns whose heading continues in a row, in small letters, as one name.

    Some line of a heading ends with a word such as "of", or all texts of each line differ. No
    heading spans several columns, and only words such as "of" repeat in the row.
    """
    raw = rows[-1]
    lower = [
        j for j, text in enumerate(row)
        if raw[j] and (text[:1].islower() or _ends_range(raw[j], text))
        and not (row[j + 1 :] and row[j + 1] and not raw[j + 1])
    ]  # fmt: skip
    counts = [j for j in lower if j in below]
    if not counts or any(row[j] in below[j] for j in counts):
        return []
    joint = any(_JOINT.fullmatch(line[j]) for line in (*rows, row) for j in counts)
    words = [row[j] for j in counts if not _JOINT.fullmatch(row[j])]
    lines = [[line[j] for j in below] for line in (*rows, row)]
    several = all(len({*line}) == len(line) > 1 and all(line) for line in lines)
    plain = not any(map(_is_label, itertools.chain(*lines)))
    differ = several and plain and len(counts) == len(below)
    differ = differ and all(j in below or not t or j in lower for j, t in enumerate(row))
    return lower if len({*words}) == len(words) and (joint or differ) else []


def _is_label(text: str) -> bool:
    return sex(text) is not None or total_word(text) == 2 or interval(text) is not None


def wrapped(text: str, more: str) -> str:
    """Return a heading with the text below it as its second line."""
    joint = "" if text.endswith("/") else " "
    return f"{text[:-1]}{more}" if more and text.endswith("-") else f"{text}{joint}{more}".strip()


def _in_turn(head: Sequence[str], row: Sequence[str], below: Mapping[int, Sequence[str]]) -> bool:
    """Return whether numbers are headings: codes with leading zeros, or others below one heading.

    The others are years or consecutive numbers, perhaps restarting from 1, as months do. Years that
    repeat below each heading are headings. So are codes of many names that rise from 1 with few
    gaps.
    """
    numbers = [row[j] for j in below if WHOLE.fullmatch(row[j])]
    filled = [head[j] for j in below if row[j]]
    spans, several = len({*filled}) < len(filled), len(numbers) == len({*numbers}) > 1
    if (_few_years(below) and _years_again(head, row, below)) or _begin_again(numbers):
        return True
    code = re.compile(r"0\d+").fullmatch
    if several and any(map(code, numbers)):
        return len({*map(len, numbers)}) == 1 and not any(
            map(code, itertools.chain(*below.values()))
        )
    if several and spans and all(map(is_year, numbers)):
        return _few_years(below)
    plain = [int(text) for text in numbers if text.isdecimal() and len(text) < _YEARS_DIGITS]
    names = {head[j] for j in below if WHOLE.fullmatch(row[j])} - {""}
    if len(plain) > 2 * _FEW_NUMBERS and len(names) == len(plain) == len(numbers):
        few_gaps = plain[0] == 1 and plain[-1] < 2 * len(plain) and plain == sorted({*plain})
        return few_gaps and not any(map(says_number, names))
    follow = len(plain) > _FEW_NUMBERS and plain == [*range(plain[0], plain[0] + len(numbers))]
    return spans and follow


def _begin_again(numbers: Sequence[str]) -> bool:
    """Return whether numbers count from 1 to the same number again and again, perhaps not fully."""
    size = max((int(t) for t in numbers if len(t) < _YEARS_DIGITS and t.isdecimal()), default=0)
    turns = [str(k % size + 1) for k in range(len(numbers))] if size else []
    return _FEW_NUMBERS < size < len(numbers) and list(numbers) == turns


def spread(heads: Sequence[str]) -> list[str]:
    """Return column headings with each empty one filled from its left."""
    results = list[str]()
    for text in heads:
        results.append(text or (results[-1] if results else ""))
    return results


def _years_again(head: Sequence[str], row: Sequence[str], columns: Collection[int]) -> bool:
    """Return whether years in a row repeat below each of several headings.

    The row may name labels without a heading above. Other count columns have their own heading, and
    no number in the row.
    """
    places = sorted(columns)
    heads = dict(zip(places, spread([head[j] for j in places]), strict=True))
    years = [j for j in places if is_year(row[j])]
    rest = [j for j in places if j not in years]
    pairs = {(heads[j], row[j]) for j in years}
    named = {heads[j] for j in years}
    labels = any(text and head[j] for j, text in enumerate(row) if j not in columns)
    different = len(pairs) == len(years) > len(rest) and len(named) > 1 and all(named)
    repeated = len({row[j] for j in years}) < len(years)
    return (
        different and repeated and not labels
        and all(head[j] and not says_number(row[j]) for j in rest)
    )  # fmt: skip


def _paths(
    head: Sequence[str], raw: Sequence[str], row: Sequence[str],
    below: Collection[int], empty: set[int],
) -> list[str]:  # fmt: skip
    """Return headings joined with those below; each spans up to the next or an empty column.

    So does a heading of a row between, below the same heading. A total belongs below the headings
    that it names.
    """
    above, row, part = list(head), list(row), ""
    for j in range(1, len(above)):
        if j - 1 in empty:
            continue
        above[j] = above[j] or above[j - 1]
        part = raw[j - 1] or part
        inside = above[j - 1] == f"{above[j]}{PATH}{part}" and not raw[j]
        total = total_word(row[j]) and not row[j].isdecimal()  # 9 is a month
        if inside and row[j] and (part in row[j] or not total):
            above[j] = above[j - 1]
    totals = [j for j in below if row[j] == above[j] and total_word(row[j]) == 2]  # merged cells
    named = [j for j in (below if totals else range(len(row))) if row[j] and j not in totals]
    headings = {above[j] for j in named}
    other_heads = [above[j] for j in below if above[j] not in headings]
    several = any(PATH in text or (text and other_heads.count(text) > 1) for text in other_heads)
    whole = any(total_word(row[j]) == 2 for j in named)  # a total of its own, beside other totals
    several |= whole and any(total_word(text) < 2 for text in other_heads)
    if len(headings) == 1 and not several:  # no other heading spans several counts
        above = ["" if text in headings else text for text in above]
    named = [j for j in below if "" != above[j] != row[j] != ""]
    coded = [j for j in named if above[j].isdecimal() != row[j].isdecimal()]
    if all(len({texts[j] for j in coded}) == len(coded) > _FEW_NUMBERS for texts in (above, row)):
        for j in coded:  # a number of a column beside its name
            upper_text, name = above[j], row[j] if above[j].isdecimal() else above[j]
            for k in range(j, len(row)):
                if above[k] != upper_text or k in empty or (row[k] and k > j):
                    break
                above[k], row[k] = "", name
    return [
        f"{a}{PATH}{b}" if a and b and a.rpartition(PATH)[2] != b else a or b
        for a, b in zip(above, row, strict=True)
    ]


def without_number(heads: Sequence[str]) -> list[str]:
    """Return headings without *Number* below one that also has a share: *Men!!Number*."""
    parts = [head.rpartition(PATH) for head in heads]
    shared = {upper for upper, _, name in parts if upper and _SHARE.fullmatch(name)}
    numbers = Counter(upper for upper, _, name in parts if _NUMBER.fullmatch(name))
    single = {upper for upper in shared.difference(heads) if numbers[upper] == 1}
    single = set() if any(map(_NUMBER.fullmatch, single)) else single  # Yes and No
    return [
        upper if upper in single and _NUMBER.fullmatch(name) else head
        for head, (upper, _, name) in zip(heads, parts, strict=True)
    ]


def distinct_headings(heads: Sequence[str], columns: Collection[int]) -> list[str]:
    """Return headings, with the distinct first heading of each repeated run before its headings.

    An example of runs is *2019, Men, Women, 2020, Men, Women*.
    """
    places = [j for j in range(min(columns, default=0), len(heads)) if heads[j]]
    texts = [heads[j] for j in places]
    counted = [j in columns for j in places]
    twice = next((k for k, text in enumerate(texts) if counted[k] and text in texts[:k]), 0)
    if not twice:
        return list(heads)
    begin = texts.index(texts[twice]) - 1
    run, firsts = twice - begin - 1, list[int]()
    while begin >= 0 and run > 1 and texts[begin + 1 :][: run - 1] == texts[twice:][: run - 1]:
        firsts.append(begin)
        begin += run
    results = list(heads)
    if len({texts[k] for k in firsts}) < len(firsts):
        return results
    for k, rest in itertools.product(firsts, range(run)):
        upper, _, name = texts[k].rpartition(PATH)
        text = texts[k + rest] if rest else upper
        results[places[k + rest]] = f"{name}{PATH}{text}" if text else name
    return results
