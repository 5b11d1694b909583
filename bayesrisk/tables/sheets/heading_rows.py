"""Rows of headings: the start of a table, its heading rows, and the columns beside it."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.joined_headings import (
    distinct_headings,
    joined_headings,
    spread,
    without_number,
    wrapped,
)
from bayesrisk.tables.sheets.lines import (
    UNIT,
    CountColumns,
    Left,
    Line,
    filled_texts,
    said_once,
    short,
)
from bayesrisk.tables.sheets.sections import is_group_row
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    PATH,
    TABLE,
    WHOLE,
    cut,
    interval,
    is_date,
    is_mark,
    is_year,
    plain_year,
    says_number,
)

_FEW_NUMBERS = 3  # of consecutive columns
_MOST_HEADINGS = 6  # rows
_FEW_ROWS = 8  # to look at
_FEW_BLANKS = 10  # headings for each missing one
_FEW_YEARS = 2  # headings
#: Headings that name years, in the languages of words for totals.
_YEARS = re.compile(
    r"(calendar |financial |reference )?years?|jahre?|années?|ans?|años?|anos?|ann[oi]|jaar|jaren|"
    r"år|vuosi|vuodet|rok|lata",
    re.IGNORECASE,
)


#: Beside a year: 2014(2), 1997 /1, 2019 [note 3].
_NOTE_AT_YEAR = re.compile(
    r"(?<=\d{4})( ?[(\[/\\*†‡^]{1,2}(notes? ?)?(\w{1,2}([, ]{1,2}\w{1,2})*)?[)\]\\]?)+$",
    re.IGNORECASE,
)
_NOTE_NUMBER = re.compile(r"\\\w{1,2}\\|[(\[](note )?\w{1,2}[)\]]|[¹²³⁰⁴⁵⁶⁷⁸⁹]+", re.IGNORECASE)
_SOURCE = re.compile(r"(data )?(sources?|quellen?|fontes?|fuentes?|bron|källa|kilde) ?:", re.I)
#: The number of a table in its title.
_TABLE = re.compile(rf"{TABLE}\w", re.IGNORECASE)


class Headed(NamedTuple):
    """The lines above a table, its heading rows, these as one row, and the lines below."""

    above: Sequence[Line]
    rows: list[list[str]]
    head: list[str]
    below: list[Line]
    left: Left


def headed(name: str, lines: Sequence[Line], columns: CountColumns) -> Headed:
    """Return the lines split at the headings of their table, without columns beside it."""
    above, lines = _parted(name, _above_numbers(lines), columns)
    rows = [line.row for line in lines]
    empty = _empty_columns(lines)
    head, size = _first_rows_as_one(rows, columns, empty)
    head = _beside_empty(head, rows[size:], columns.counts)
    rows = [head, *rows[1:]] if size == 1 else rows
    head = _beside_years(head, rows[size:], above, columns)
    head, left = without_number(distinct_headings(head, columns.counts)), Left()
    if rows[size:] and numbers_columns(rows[size], rows[size + 1 :][:_FEW_ROWS]):
        left.append(lines[size].left("numbers of columns"))
        size += 1
    left += [line.left("above the table") for line in above if any(line.row)]
    outside = columns_beside(rows[:size], rows[size:], empty)
    left += [(lines[0].number, f"column {j + 1}", "beside the table") for j in outside]

    def used(row: Sequence[str]) -> list[str]:
        return ["" if j in empty or j in outside else text for j, text in enumerate(row)]

    def used_once(row: Sequence[str]) -> list[str]:
        return said_once(used(row), columns.counts)

    below = [line._replace(row=used_once(line.row)) for line in lines[size:]]
    return Headed(above, [*map(used, rows[:size])], used(head), below, left)


def _above_numbers(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines without empty ones between headings and a row of column numbers."""
    rows = [line.row for line in lines]
    for k in range(1, len(rows) - 1):
        if not any(rows[k - 1]) and numbers_columns(rows[k], rows[k + 1 :][:_FEW_ROWS]):
            end = max((j for j in range(k) if any(rows[j])), default=k)
            headings = end < k and filled_texts(rows[end]) > 1
            return [*lines[: end + 1], *lines[k:]] if headings else lines
    return lines


def _parted(
    name: str, lines: Sequence[Line], columns: CountColumns
) -> tuple[Sequence[Line], Sequence[Line]]:
    """Return the lines above the first heading row, and the lines from it on."""
    lines, start = _with_start(lines, columns)
    if start < 0:
        raise DataError(
            f"{name}: must hold headings and a column of counts, got none (records of "
            "people are no table: tabulate them, or use audit)"
        )
    if start and lines[start - 1].size > len(lines[start].row):
        raise lines[start - 1].too_wide(name)
    start = first_heading_row(name, lines, start, columns.counts)
    start += _title_rows([line.row for line in lines[start:]], columns)
    if lines[start + 1 :] and is_title_row(lines[start].row, lines[start + 1].row, columns.counts):
        start += 1
    return lines[:start], lines[start:]


def _title_rows(rows: Sequence[Sequence[str]], columns: CountColumns) -> int:
    """Return the number of title rows above the headings, each of one text at the left or two.

    Several stand below each other, or the first states the number of the table. Count columns lie
    between their texts, and the row below has headings of most columns. A single row has texts at
    both ends, above a row without a label heading. The first row may name sources.
    """
    size = 0
    if rows[1:] and any(map(_SOURCE.match, rows[0])):  # a title, and sources above some columns
        full = filled_texts(rows[1]) > 2 * filled_texts(rows[0])
        return int(full and not columns.has_count(rows[1]))
    for row in rows:
        places = [j for j, text in enumerate(row) if text]
        end = places[1] if len(places) > 1 else len(row)
        gap_columns = {*range(1, end)} & {*columns.counts}
        if not (row[0] and len(places) <= 2 and gap_columns) or columns.has_count(row):
            break
        size += 1
    numbered = any(map(_TABLE.match, filter(None, rows[0]))) if size else False
    below = rows[size : size + 1]
    ends = size == 1 and filled_texts(rows[0]) > 1 and rows[0][-1] != ""
    if ends and any(not row[0] and filled_texts(row) > 1 for row in below):
        return 0 if columns.has_count(below[0]) else size
    named = any(row[0] and 2 * filled_texts(row) > len(row) for row in below)
    return size if (size > 1 or numbered) and named and not columns.has_count(below[0]) else 0


def _with_start(lines: Sequence[Line], columns: CountColumns) -> tuple[Sequence[Line], int]:
    """Return the lines, and the start of the first block of rows with a count; -1 for none.

    Headings may stand above the block, separated by empty rows, which are left out, or by days.
    """
    rows = [line.row for line in lines]
    block, before = list[int](), list[int]()
    for position, row in enumerate(rows):
        if filled_texts(row) > 1 and lines[position].size <= len(row):
            block.append(position)
            if not columns.has_count(row):
                continue
            heads, below = ([rows[k] for k in part] for part in (before, block))
            separate = before and _stands_below(heads, below, columns)
            if separate:
                inner_lines = [line for line in lines[before[0] : block[0]] if any(line.row)]
                return [*lines[: before[0]], *inner_lines, *lines[block[0] :]], before[0]
            if len(block) > 1 or not any(map(says_number, row)):
                gap = rows[before[-1] + 1 : block[0]] if before else []
                days = gap and all(filled_texts(row) == 1 and is_date(row[0]) for row in gap)
                return lines, before[-1] if days else block[0]
        elif block and not (
            (row[0] and not rows[block[-1]][0])
            or line_of_heading(rows, rows[block[0]], position, columns.counts)
        ):
            block, before = [], block
    return lines, -1


def _stands_below(
    above: Sequence[Sequence[str]], block: Sequence[Sequence[str]], columns: CountColumns
) -> bool:
    """Return whether rows are headings of a separate block of rows below them.

    The last row of the block is the first with a count, which may be withheld.
    """
    *heads, row = block
    if heads and all(heads[-1][j] for j in columns.counts if says_number(row[j])):
        several = sum(bool(above[-1][j]) for j in columns.counts) > 1
        if several and repeat_each_other(heads, columns.counts):
            return True
    gaps = [j for j in columns.counts if row[j] and not any(head[j] for head in heads)]
    if 0 < len(gaps) < len(columns.counts) - 1 and all(above[-1][j] for j in gaps) and heads:
        return True  # they fill gaps of the block's own headings
    filled = [j for j in columns.counts if says_number(block[0][j])]
    filled = filled or [j for j in columns.counts if not heads and row[j]]
    texts = [next((head[j] for head in above[::-1] if head[j]), "") for j in filled]
    values = [block[0][j] for j in filled]
    plain = [t for t in texts if says_number(t) and (interval(t) is None or t.isdecimal())]
    words = not plain or (len(texts) > 1 and all(map(_is_noted_year, plain)))
    named = words and texts.count("") * _FEW_BLANKS <= len(texts)
    numbers = all(DECIMAL.fullmatch(t) or WHOLE.fullmatch(t) or is_mark(t) for t in values)
    return named and numbers and not all(map(is_date, values))


def _empty_columns(lines: Sequence[Line]) -> set[int]:
    """Return the columns with nothing but perhaps one sign, or numbers of notes.

    Only lines of several fields are considered.
    """
    rows = [line.row for line in lines if line.size > 1]
    texts = [[*filter(None, column)] for column in zip(*rows, strict=True)]
    return {
        j for j, t in enumerate(texts)
        if (len(t) < 2 and not any(map(str.isalnum, "".join(t)))) or _are_notes(t)
    }  # fmt: skip


def _are_notes(texts: Sequence[str]) -> bool:
    r"""Return whether texts are numbers of notes: *\1\*, *(1)*, *[2]*."""
    return all(map(_NOTE_NUMBER.fullmatch, texts))


def _first_rows_as_one(
    rows: Sequence[Sequence[str]], columns: CountColumns, empty: set[int]
) -> tuple[Sequence[str], int]:
    """Return the headings at the start of the rows as one row, and the number of their rows."""
    head, size = rows[0], 1
    while size < min(_MOST_HEADINGS, len(rows) - 1):
        if numbers_columns(rows[size], rows[size + 1 :][:_FEW_ROWS]):
            break
        more = _with_next(head, rows[:size], rows[size:], columns, empty)
        if not more:
            break
        head, size = more, size + 1
    return head, size


def _with_next(
    head: Sequence[str], above: Sequence[Sequence[str]], rows: Sequence[Sequence[str]],
    columns: CountColumns, empty: set[int],
) -> list[str]:  # fmt: skip
    """Return the headings joined with the first row below; empty if that is no heading row."""
    row, *below = rows
    if (
        row[0]
        and filled_texts(row) == 1 < filled_texts(below[0])
        and not columns.has_count(below[0])
    ):
        return [head[0] or row[0], *head[1:]]  # the row names the labels
    if _states_units(row) and not any(map(_states_units, below)):  # sections repeat such rows
        shares = (f"{a} {b}".strip() if b == "%" else a for a, b in zip(head, row, strict=True))
        return [row[0], *[*shares][1:]]
    if is_group_row(row, below, columns.labels):
        return []
    if filled_texts(said_once(row, columns.counts)) < filled_texts(row) < filled_texts(head):
        return []  # of a section
    if _names_labels(head, row, below):
        return [text or upper for upper, text in zip(head, row, strict=True)]
    texts = {j: [r[j] for r in below if r[j] and r != row] for j in columns.counts}
    joined = joined_headings(head, above, row, texts, empty)
    if not joined and line_of_heading([*above, *rows], above[0], len(above), columns.counts):
        return [wrapped(a, b) for a, b in zip(head, row, strict=True)]
    return joined


def _states_units(row: Sequence[str]) -> bool:
    """Return whether a row has a text, then units of several columns: *Country, no., no., %*."""
    units = [text for text in row[1:] if text]
    return row[0] != "" and len(units) > 1 and all(t == "%" or UNIT.fullmatch(t) for t in units)


def _names_labels(head: Sequence[str], row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below headings names the first columns, one of which has no heading.

    The row has no other text, and none of its names repeats below in the same column.
    """
    size = filled_texts(row)
    named = size > 1 and all(row[:size]) and not all(head[:size]) and any(head[size:])
    return named and not any(other[j] == row[j] for other in below for j in range(size))


def _beside_years(
    head: Sequence[str], rows: Sequence[Sequence[str]], above: Sequence[Line],
    columns: CountColumns,
) -> list[str]:  # fmt: skip
    """Return the headings without label headings that name the years to their right.

    *Years* stands before 1981 and 2019, above towns. The text above it, if any, takes its place.
    """
    results, labels = list(head), [j for j in columns.labels if j < min(columns.counts, default=0)]
    years = [plain_year(head[j].rpartition(PATH)[2]) for j in columns.counts if head[j]]
    if len(years) < _FEW_YEARS or 2 * sum(map(is_year, years)) <= len(years):
        return results
    titles = [line.row for line in above if any(line.row[j] for j in columns.counts)]
    for j in [j for j in labels if _YEARS.fullmatch(head[j])]:
        texts = [row[j] for row in rows if row[j]]
        words = [t for t in texts if not re.search(r"\d", t)]  # no ages
        if 2 * len(words) > len(texts):
            upper = titles[-1][: j + 1] if titles else []
            results[j] = next(filter(None, reversed(upper)), "")
    return results


def _beside_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]], counts: Collection[int]
) -> list[str]:
    """Return the headings with those above an empty column moved to the count column beside it."""
    results = list(head)
    for j in [j for j in counts if j and not head[j] and not any(row[j - 1] for row in rows)]:
        results[j], results[j - 1] = results[j - 1], ""
    return results


def columns_beside(
    heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], empty: set[int]
) -> list[int]:
    """Return the columns beside a table, separated by an empty one, without headings of their own.

    They have none at all, or none in the first of several heading rows and words below.
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


def first_heading_row(name: str, lines: Sequence[Line], start: int, numeric: set[int]) -> int:
    """Return the first heading row; the row at ``start`` may be a heading row or data.

    Above data stands a heading of labels or counts alone, or one section row below the headings.
    Numbers above several columns are headings: years, ages, or codes of groups of names.
    """
    rows = [line.row for line in lines]
    row, below = rows[start], rows[start + 1 :][: _MOST_HEADINGS - 1]
    numbers = [row[j] for j in numeric if says_number(row[j])]
    if not numbers or all(_is_noted_year(t) or (is_date(t) and not t.isdecimal()) for t in numbers):
        return start
    if _group_names(row, below, numeric):
        return start
    above = rows[start - 1] if start else []
    alone = filled_texts(above) == 1
    named = alone and any(text for j, text in enumerate(above) if not j or j not in numeric)
    top = start - 1
    while alone and top > 0 and filled_texts(rows[top - 1]) != 1:
        if not _are_headings([t for t in rows[top - 1] if says_number(t)]):
            break
        if filled_texts(rows[top]) > 1 and not any(rows[top - 1]):
            break  # a row above an empty row is no heading
        top -= 1
    if named and top < start - 1 and filled_texts(rows[top]) > 1:
        return top
    if len(numbers) == len(row) > 1 or (len(numeric) > 1 and not _are_headings(numbers)):
        raise _without_headings(name, lines[start])
    if len(numeric) > 1 or not WHOLE.fullmatch(numbers[0]):
        return start
    if alone and (named or any(above[j] for j in numeric)):
        return start - 1
    raise _without_headings(name, lines[start])


def _group_names(
    row: Sequence[str], below: Sequence[Sequence[str]], counts: Collection[int]
) -> bool:
    """Return whether codes of groups of columns stand in runs, above rows of words.

    One of these rows has a name of its own above each count.
    """
    first = next(j for j in sorted(counts) if says_number(row[j]))
    groups, *levels = ([line[j] for j in sorted(counts) if j >= first] for line in (row, *below))
    words = [*takewhile(lambda texts: all(texts) and not any(map(says_number, texts)), levels)]
    runs = len([*groupby(groups)]) == len({*groups}) < len(groups)
    return all(groups) and runs and any(len({*texts}) == len(texts) for texts in words)


def _is_noted_year(text: str) -> bool:
    return is_year(_NOTE_AT_YEAR.sub("", text))


def _are_headings(texts: Sequence[str]) -> bool:
    """Return whether numbers may be headings: years, ages, or others in rising or equal steps."""
    if any(map(DECIMAL.fullmatch, texts)):
        return False
    numbers = [int(re.sub(r"\D", "", text)) for text in texts if WHOLE.fullmatch(text)]
    steps = [b - a for a, b in pairwise(numbers)]
    even = len({*steps}) < 2
    rising = all(s > 0 for s in steps) and (even or len(numbers) > _FEW_NUMBERS)
    return all(map(is_year, texts)) or rising or (even and all(s < 0 for s in steps))


def _without_headings(name: str, line: Line) -> DataError:
    got = quote(cut(short(line.row), 60))
    return DataError(
        f"{name}: row {line.number}: must be a row of headings, got {got}: add "
        "a row that says what the labels and the numbers are"
    )


def line_of_heading(
    rows: Sequence[Sequence[str]], top: Sequence[str], position: int, counts: Collection[int]
) -> bool:
    """Return whether a row is a further line of the headings above it, as *Code* below *State*.

    Most columns have a heading in the first row, ``top``. A row with a first text stands above
    other headings. Otherwise it has one text, and no row below has its only text in that column, as
    section headings do.
    """
    row, below = rows[position], [line for line in rows[position + 1 :] if any(line)]
    columns = [j for j, text in enumerate(row) if text]
    if not (below and position and columns and 2 * filled_texts(top) > len(row)):
        return False
    gap = len(columns) == 1 and columns[0] in counts and not top[columns[0]]
    if not (gap or all(rows[position - 1][j] for j in columns)):
        return False
    if row[0]:
        words = filled_texts(below[0]) > 1 and not any(says_number(below[0][j]) for j in counts)
        return words and not any(below[0][j] or says_number(row[j]) for j in columns)
    text = row[columns[0]]
    if len(columns) > 1 or (says_number(text) and not is_year(text)):
        return False
    return not any(line[columns[0]] and filled_texts(line) == 1 for line in below)


def is_title_row(row: Sequence[str], below: Sequence[str], counts: Collection[int]) -> bool:
    """Return whether a row has only a title and a sign at its end, above years of counts.

    The row below has a year above each count column, and no other text.
    """
    places, last = sorted(counts), max(counts, default=0)
    texts = [j for j, text in enumerate(row) if text]
    years = all(is_year(plain_year(below[j])) for j in places)
    bare = not any(text for j, text in enumerate(below) if j not in counts)
    return len(places) > 2 and texts == [0, last] and 0 not in counts and years and bare


def repeat_each_other(rows: Sequence[Sequence[str]], columns: Collection[int]) -> bool:
    """Return whether headings of several rows repeat among some columns."""
    levels = [*map(spread, rows[:-1]), rows[-1]]
    heads = [tuple(level[j] for level in levels) for j in columns if any(lv[j] for lv in levels)]
    return len({*heads}) < len(heads)


def numbers_columns(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below headings numbers the columns: *A, B, 1, 2, 3*, or *1, 2, 3, 4*.

    A row that starts a list of one-letter labels does not.
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
    """Return the column of each heading; repeated headings are numbered by occurrence."""
    before = Counter[str]()
    results = dict[tuple[str, int], int]()
    for i, head in enumerate(heads):
        results[head, before[head]] = i
        before[head] += 1
    return results
