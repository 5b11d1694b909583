"""Rows of headings: which rows above a table are, and several of them as one."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    PATH,
    WHOLE,
    interval,
    is_mark,
    noted,
    number_range,
    says_number,
    sex,
    total_word,
)

#: A year, as a pattern.
YEAR = r"(?:18|19|20)\d\d"
_LENGTH = 1000  # of a note
#: What ends a line of a heading that goes on in the next one: "Number / of / returns".
_JOINT = re.compile(
    r"(.* )?(of|and|or|per|for|by|with|in|to|from|the|de|des|du|da|di|et|y|e|und|von|der|mit|&)",
    re.IGNORECASE,
)
_FEW_NUMBERS, _YEARS_DIGITS = 3, 4  # of headings that are numbers one after another


def short(row: Sequence[str]) -> str:
    """Return the texts of a row, cut."""
    text = ", ".join(filter(None, row))
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"


def filled_texts(row: Sequence[str]) -> int:
    """Return the number of texts of a row that are not empty."""
    return len(row) - row.count("")


def columns_beside(
    heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], empty: set[int]
) -> list[int]:
    """Return the columns beside a table: parted by an empty one, and without its headings.

    They have none at all, or none in the first of several rows of headings and words below.
    """
    used, outside = [j for j in range(len(heads[0])) if j not in empty], list[int]()
    for first, j in pairwise(used):
        last = next((k for k in range(j, len(heads[0])) if k in empty), len(heads[0]))
        if j == first + 1 or not any(heads[0][:j]) or any(heads[0][j:last]):
            continue
        words = [k for k in range(j, last) if not any(says_number(row[k]) for row in rows)]
        if not any(row[k] for row in heads for k in range(j, last)) or (words and heads[1:]):
            outside += range(j, last)
    return outside


def first_heading_row(name: str, rows: Sequence[tuple[int, list[str]]], numeric: set[int]) -> int:
    """Return the first row of headings, where the last of these rows may be one of data.

    Above data stands a heading of the labels or of the counts alone, or one row of a section below
    the headings.  Numbers above several columns are headings: years, ages.
    """
    start = len(rows) - 1
    number, row = rows[-1]
    numbers = [row[j] for j in numeric if says_number(row[j])]
    if not numbers or all(re.fullmatch(r"(18|19|20)\d\d", text) for text in numbers):
        return start
    above = rows[start - 1][1] if start else []
    alone = sum(map(bool, above)) == 1
    named = alone and any(text for j, text in enumerate(above) if not j or j not in numeric)
    top = start - 1
    while alone and top > 0 and sum(map(bool, rows[top - 1][1])) != 1:
        if not _are_headings([t for t in rows[top - 1][1] if says_number(t)]):
            break
        if sum(map(bool, rows[top][1])) > 1 and not any(rows[top - 1][1]):
            break  # what stands above an empty row is no heading
        top -= 1
    while top < start - 1 and not any(rows[top][1]):
        top += 1
    for gap in range(start - 2, top, -1):  # other lines, such as filters, stand above an empty row
        heads = [[r[j] for _, r in rows[gap:start] if r[j]] for j in numeric if row[j]]
        if not any(rows[gap][1]) and all(heads) and len({*map(tuple, heads)}) == len(heads):
            top = gap + 1
            break
    if named and top < start - 1:
        return top
    if len(numbers) == len(row) > 1:
        raise _without_headings(name, number, row)
    if len(numeric) > 1 and not _are_headings(numbers):
        raise _without_headings(name, number, row)
    if len(numeric) > 1 or not WHOLE.fullmatch(numbers[0]):
        return start
    if alone and (named or any(above[j] for j in numeric)):
        return start - 1
    raise _without_headings(name, number, row)


def _are_headings(texts: Sequence[str]) -> bool:
    """Return whether numbers may be headings: years, ages, or others that rise or fall."""
    if any(map(DECIMAL.fullmatch, texts)):
        return False
    numbers = [int(re.sub(r"\D", "", text)) for text in texts if WHOLE.fullmatch(text)]
    steps = [b - a for a, b in pairwise(numbers)]
    even = len({*steps}) < 2 or len(numbers) > _FEW_NUMBERS
    years = all(re.fullmatch(YEAR, text) for text in texts)
    return years or (even and (all(s > 0 for s in steps) or all(s < 0 for s in steps)))


def _without_headings(name: str, number: int, row: Sequence[str]) -> DataError:
    return DataError(
        f"{name}: row {number}: must be a row of headings, got {quote(short(row))}: add a row "
        "that says what the labels and the numbers are"
    )


def joined_headings(
    head: Sequence[str], rows: Sequence[Sequence[str]], row: Sequence[str],
    below: Mapping[int, Sequence[str]], empty: set[int],
) -> list[str]:  # fmt: skip
    """Return headings joined with the row below them; empty if that is no row of headings.

    ``rows`` are those above as they stand.

    Where counts are below, most texts of a row of headings are others: no numbers but years and
    numbers in turn, ranges only if those below are numbers, and marks only of letters (M and F)
    that none of those below is.  It fills gaps of the row above, or has nothing where labels stand
    below, or has other words above most counts.
    """
    raw, row = rows[-1], [t[:4] if re.fullmatch(rf"{YEAR}\.0", t) else t for t in row]
    years = [row[j] for j in below]
    several = len({*years}) == len(years) > 1 and len({head[j] for j in below}) == 1
    texts_below = list(itertools.chain(*below.values()))
    near = sum(bool(re.fullmatch(YEAR, text)) for text in texts_below)  # counts near 2,000
    plain = [int(text) for text in years if re.fullmatch(YEAR, text)]
    follow = len({b - a for a, b in pairwise(plain)}) == 1
    if (
        several
        and plain[: len(years)]
        and len(plain) == len(years)
        and (follow or 2 * near < len(texts_below))
    ):
        return [row[0] or head[0], *row[1:]]
    if called_again(raw, row, below):
        return _paths(head, raw, row, below, empty)
    marks = {text for texts in below.values() for text in texts if is_mark(text)}
    spans = len({head[j] for j in below if row[j]}) < sum(bool(row[j]) for j in below)
    in_turn = _in_turn([row[j] for j in below if WHOLE.fullmatch(row[j])], below, spans=spans)
    in_turn = in_turn or (2 * near < len(texts_below) and _years_again(head, row, below))
    words = list[str]()
    number_texts = 0
    for j, texts in below.items():
        text = row[j]
        sign = text in ("%", "#", "$", "€", "£") or any(map(str.isalpha, text))
        mark = is_mark(text) and (text in marks or not sign)
        wide = number_range(text) and 2 * sum(bool(WHOLE.fullmatch(t)) for t in texts) < len(texts)
        if text:
            number = WHOLE.fullmatch(text) or DECIMAL.fullmatch(text) or noted(text)
            other = (number and not in_turn) or mark or (wide and not in_turn)
            number_texts += bool(other)
            words += [] if other else [text]
    if len(words) <= number_texts:
        return []
    code = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+|\.[\w-]+)*")
    coded = [bool(head[j]) == bool(row[j]) and (not head[j] or code.fullmatch(head[j]))
             for j in range(len(row)) if j in below or head[j] != row[j]]  # fmt: skip
    if all(coded):
        return list(row)  # a row of codes, and the row of their labels
    gaps = any(a and not b and c for (a, b), c in zip(pairwise(head), row[1:], strict=True))
    headed = [j for j in below if head[j]]
    over_all = len(words) == len(below) or (headed and all(row[j] for j in headed))
    # Labels are called here, and words that no count below repeats say what is counted.
    called = len(words) == len(below) and not any(
        text or not row[j] for j, text in enumerate(head) if j not in below
    )
    called = called and not any(is_mark(row[j]) or row[j] in below[j] for j in below)
    most = number_texts == 0 or len(words) > max(number_texts, len(below) // 2)
    differs = (
        most
        and len(words) > bool(row[0])
        and len({*words}) > min(2, len(words) // 2)
        and not any(row[j] in below[j] for j in below if not (in_turn and WHOLE.fullmatch(row[j])))
    )
    going_on = [] if number_texts else _going_on(rows, row, below)
    labels = (text for j, text in enumerate(row) if not j or j not in below)
    bare = not number_texts and not any(labels)
    if not (gaps or called or differs or going_on or bare) and (
        row[0] not in ("", head[0]) or not over_all
    ):
        return []
    if len({*filter(None, row)}) == 1 < filled_texts(row):  # it says the same of all
        return list(head)
    columns = [j for j, text in enumerate(row) if text]
    lines = all(raw[j] and not raw[j].isdecimal() and not row[j].isdecimal() for j in columns)
    if differs and lines and any(raw[j] and not row[j] for j in below):
        inside = [
            total_word(a) == 2 and head.count(a) > 1 == row.count(b)
            for a, b in zip(head, row, strict=True)
        ]
        pairs = zip(inside, head, row, strict=True)
        return [b if part else wrapped(a, b) for part, a, b in pairs]
    lower = ["" if j in going_on else text for j, text in enumerate(row)]
    joined = _paths(head, raw, lower, below, empty)
    heads = [joined[j] for j in below if joined[j]]
    if len({*heads}) < len(heads):
        joined = _paths(head, raw, lower, below, set())
    return [wrapped(head[j], row[j]) if j in going_on else t for j, t in enumerate(joined)]


def line_of_heading(
    rows: Sequence[Sequence[str]], top: Sequence[str], position: int, counts: Collection[int]
) -> bool:
    """Return whether a row is a further line of headings above it, as *Code* below *State*.

    Most columns have a heading in the first row, ``top``.  Lines of the first headings stand above
    other headings; elsewhere it is one text, and no other row below has one there alone, as
    headings of sections do.
    """
    row, below = rows[position], [line for line in rows[position + 1 :] if any(line)]
    columns = [j for j, text in enumerate(row) if text]
    if not (below and position and columns and 2 * filled_texts(top) > len(row)):
        return False
    if not all(rows[position - 1][j] for j in columns):
        return False
    if row[0]:
        words = filled_texts(below[0]) > 1 and not any(says_number(below[0][j]) for j in counts)
        return words and not any(below[0][j] or says_number(row[j]) for j in columns)
    text = row[columns[0]]
    if len(columns) > 1 or (says_number(text) and not re.fullmatch(YEAR, text)):
        return False
    return not any(line[columns[0]] and filled_texts(line) == 1 for line in below)


def called_again(above: Sequence[str], row: Sequence[str], counts: Collection[int]) -> bool:
    """Return whether a row has no label but those of the headings above it, and no count.

    Cells merged with those above repeat their texts.  What stands beside them are words, or one
    and the same year above the counts.
    """
    repeats = sum(bool(text) and text == upper for text, upper in zip(row, above, strict=True))
    columns = [j for j, text in enumerate(row) if text not in ("", above[j])]
    texts = {row[j] for j in columns}
    label = any(not j or j not in counts for j in columns)
    year = len(texts) == 1 and not label and all(re.fullmatch(YEAR, text) for text in texts)
    words = repeats > 1 and bool(texts) and not any(map(says_number, texts))
    return year or words


def _going_on(
    rows: Sequence[Sequence[str]], row: Sequence[str], below: Mapping[int, Sequence[str]]
) -> list[int]:
    """Return the columns whose heading goes on in a row, in small letters, as one name.

    A line of some heading ends with a word such as "of", or each line of each is another one.
    None reaches over several columns, and no word but such is below two of them.
    """
    raw = rows[-1]
    lower = [
        j for j, text in enumerate(row)
        if text[:1].islower() and raw[j] and not (row[j + 1 :] and row[j + 1] and not raw[j + 1])
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
    """Return a heading with what stands below it as its second line."""
    joint = "" if text.endswith("/") else " "
    return f"{text[:-1]}{more}" if more and text.endswith("-") else f"{text}{joint}{more}".strip()


def _in_turn(numbers: Sequence[str], below: Mapping[int, Sequence[str]], *, spans: bool) -> bool:
    """Return whether numbers are headings: codes with leading zeros, or others below one heading.

    Those are years, or numbers one after another.
    """
    several = len(numbers) == len({*numbers}) > 1
    texts = {text for column in below.values() for text in column}
    if several and any(re.fullmatch(r"0\d+", text) for text in numbers):
        return len({*map(len, numbers)}) == 1 and not any(re.fullmatch(r"0\d+", t) for t in texts)
    if several and spans and all(re.fullmatch(YEAR, text) for text in numbers):
        return 2 * sum(bool(re.fullmatch(YEAR, text)) for text in texts) < len(texts)
    plain = [int(text) for text in numbers if text.isdecimal() and len(text) < _YEARS_DIGITS]
    return (
        spans and len(plain) > _FEW_NUMBERS and plain == [*range(plain[0], plain[0] + len(numbers))]
    )


def _years_again(head: Sequence[str], row: Sequence[str], columns: Collection[int]) -> bool:
    """Return whether a row has years alone that stand again below each of several headings."""
    places = sorted(columns)
    heads = list[str]()
    for j in places:
        heads.append(head[j] or (heads[-1] if heads else ""))
    pairs = {(text, row[j]) for text, j in zip(heads, places, strict=True)}
    labels = any(text for j, text in enumerate(row) if j not in columns)
    different = len(pairs) == len(places) and len({*heads}) > 1 and all(heads)
    return different and not labels and all(re.fullmatch(YEAR, row[j]) for j in places)


def is_title_row(row: Sequence[str], below: Sequence[str], counts: Collection[int]) -> bool:
    """Return whether a row has a title at its start and a sign at its end, above years of counts.

    The years stand above all counts, and nothing above the labels.
    """
    places, last = sorted(counts), max(counts, default=0)
    texts = [j for j, text in enumerate(row) if text]
    years = all(re.fullmatch(rf"{YEAR}(\.0)?", below[j]) for j in places)
    bare = not any(text for j, text in enumerate(below) if j not in counts)
    return len(places) > 2 and texts == [0, last] and 0 not in counts and years and bare


def _paths(
    head: Sequence[str], raw: Sequence[str], row: Sequence[str],
    below: Collection[int], empty: set[int],
) -> list[str]:  # fmt: skip
    """Return headings with those below them: a heading reaches to the next, or an empty column.

    So does one in a row between, below the same heading; but a total is below those it names.
    """
    above, row, part = list(head), list(row), ""
    for j in range(1, len(above)):
        if j - 1 in empty:
            continue
        above[j] = above[j] or above[j - 1]
        part = raw[j - 1] or part
        inside = above[j - 1] == f"{above[j]}{PATH}{part}" and not raw[j]
        if inside and row[j] and (part in row[j] or not total_word(row[j])):
            above[j] = above[j - 1]
    totals = [j for j in below if row[j] == above[j] and total_word(row[j]) == 2]  # merged cells
    named = [j for j in (below if totals else range(len(row))) if row[j] and j not in totals]
    headings = {above[j] for j in named}
    above = ["" if len(headings) == 1 and text in headings else text for text in above]
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


def repeat_each_other(rows: Sequence[Sequence[str]], columns: Collection[int]) -> bool:
    """Return whether headings of several rows are the same above some columns."""
    levels = []
    for row in rows:
        level = list(row)
        for j in range(1, len(level) if row is not rows[-1] else 0):
            level[j] = level[j] or level[j - 1]
        levels.append(level)
    heads = [tuple(level[j] for level in levels) for j in columns if any(lv[j] for lv in levels)]
    return len({*heads}) < len(heads)


def distinct_headings(heads: Sequence[str], columns: Collection[int]) -> list[str]:
    """Return headings that repeat in runs with the first of its run, which differs, before each.

    Such are *2019, Men, Women, 2020, Men, Women*.
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


def numbers_columns(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below headings numbers the columns: *A, B, 1, 2, 3*, or *1, 2, 3, 4*.

    So may the first of a list of labels of one letter, which go on below.
    """
    texts = [text for text in row if text]
    letters = [text for text in texts if len(text) == 1 and text.isalpha()]
    numbers = [str(n) for n in range(1, 1 + len(texts) - len(letters))]
    if len(numbers) < _FEW_NUMBERS or texts[len(letters) :] != numbers:
        return False
    listed = row[0] and any(len(other[0]) == 1 for other in below)
    columns = zip(row, *below, strict=True)  # a number stands above words
    words = any(t.isdecimal() and any(c) and not any(map(says_number, c)) for t, *c in columns)
    return bool(below) and (words or not listed)


def heading_positions(heads: Sequence[str]) -> dict[tuple[str, int], int]:
    """Return the column of each heading: a code may be called as its label is, *SEX* and *Sex*."""
    before = Counter[str]()
    results = dict[tuple[str, int], int]()
    for i, head in enumerate(heads):
        results[head, before[head]] = i
        before[head] += 1
    return results
