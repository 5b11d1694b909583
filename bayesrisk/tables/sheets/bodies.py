"""Bodies: the rows of a table below its headings, and the reasons why other rows are left out."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.heading_rows import Headed
from bayesrisk.tables.sheets.lines import (
    CountColumns,
    Grid,
    Left,
    Line,
    before_notes,
    begins_notes,
    filled_texts,
    short,
    stands_again,
)
from bayesrisk.tables.sheets.partitions import partitioned
from bayesrisk.tables.sheets.sections import (
    by_alphabet,
    by_variable,
    names_with_counts,
    outlined,
    rows_of_others,
    section_headings,
    with_groups,
    with_totals_first,
)
from bayesrisk.tables.sheets.texts import (
    PATH,
    WHOLE,
    begins_parts,
    interval,
    is_date,
    is_mark,
    number_range,
    says_number,
    sex,
    total_word,
)

_NOTE = re.compile(
    r"\W*(sources?|notes?|data source|copyright|info|footnotes?|legend|key|fonte|fuente|quelle|"
    r"källa|kilde|bron|źródło|zdroj|forrás|lähde|kaynak|источник|nota|anmerkung(en)?|remarque|uwaga|obs|"
    r"\w\)|\(\w\)|[*†‡^#])\b.*|\([a-z]?\d{1,6}\).*|[-–—.…:]{2,3} ?[^\W\d_]{2}.*|[*†‡©].*|"
    r"\\\w{1,2}\\.*|\d{1,2}/ ?\D.*|[¹²³⁰⁴⁵⁶⁷⁸⁹].*",
    re.IGNORECASE,
)
_PAIR = 2  # texts
_LONG_LABEL = 25  # letters of a label that may continue in the next row
_RULE = re.compile(r"[-_=*.]{2,}")  # a line before the notes
_SENTENCE = re.compile(r"(\S+\s+){2}\S")
_ARROW = re.compile(r"(?<=\w) ?(->|→|›|») ?(?=\w)")  # from a label to its part
_NOTE_BELOW, NO_COUNTS = "a note below the table", "a row without counts"


class Body(NamedTuple):
    """The headings and lines of a table up to its last row of counts, and the lines below.

    ``sections`` maps line numbers to headings of sections, and ``reasons`` to reasons for leaving
    lines out. ``listed`` says whether rows of one text stand in an alphabetical list.
    """

    head: list[str]
    inside: Sequence[Line]
    below: Sequence[Line]
    sections: Mapping[int, str]
    reasons: Mapping[int, str]
    listed: bool


def bodied(table: Headed, columns: CountColumns) -> tuple[Body, Left]:
    """Return the body of a table below its headings, and the rows left out."""
    ends = with_last_total(before_notes(table.below) or table.below, columns)
    stating = (columns.states_counts(x.row) and not _is_aside(x.row, columns) for x in ends)
    size = max(itertools.compress(itertools.count(1), stating), default=0)
    inside, below = ends[:size], table.below[size:]
    left = [line.left("words before parts") for line in inside if _is_before_parts(line)]
    inside = [line for line in inside if not (_is_before_parts(line) or _is_rule(line))]
    inside = _with_whole_labels(inside)
    forms = _forms(inside)
    blank = [filled_texts(x.row) == 1 and _form(x.row[0]) in forms for x in inside]
    left += [line.left(NO_COUNTS) for line, alone in zip(inside, blank, strict=True) if alone]
    inside = [line for line, alone in zip(inside, blank, strict=True) if not alone]
    lone = [k for k, line in enumerate(inside) if filled_texts(line.row) == 1]
    head = table.head
    if 0 in columns.counts and head[0] and lone == [*range(len(lone))]:  # labels at the right
        left += [line.left("the same of all rows") for line in inside[: len(lone)]]
        inside, lone = inside[len(lone) :], []
    name = inside[0].row[0] if lone == [0] else ""
    if name and not says_number(name):
        every = total_word(name) == 2 or sex(name) is not None  # describes all rows
        left += [inside[0].left("the same of all rows")] * every
        head, inside = head if every else [name, *head[1:]], inside[1:]
    heads = [*table.rows, table.head]
    inside, head = _with_named_labels(inside, head, columns)
    inside = _without_codes(inside)
    rows, group = with_groups([line.row for line in inside], columns)
    inside = [line._replace(row=row) for line, row in zip(inside, rows, strict=True)]
    inside = names_with_counts(inside, heads, columns)
    sections = section_headings(inside, heads, columns, group)
    if not sections:
        inside, sections = with_totals_first(inside, columns)
    if not sections and (line := _words_before_parts(inside, columns)):
        left += [line.left("words before parts")]
        inside.remove(line)
    listed = not sections and by_alphabet([line.row for line in inside])
    other_rows = rows_of_others(inside, sections, columns)
    reasons = dict.fromkeys(other_rows, "below a heading of its own")
    reasons |= _repeated([*inside, *below], heads)
    reasons |= dict.fromkeys(_rows_of_another(inside, columns), "of another table")
    return Body(head, inside, below, {} if other_rows else sections, reasons, listed), left


def with_last_total(lines: Sequence[Line], columns: CountColumns) -> Sequence[Line]:
    """Return the lines with the label "Total" in the last row, if its numbers are sums.

    That row has numbers alone, each the sum of all numbers above it, or of those not called totals.
    """
    filled = [k for k, line in enumerate(lines) if any(line.row[1:])]  # notes stand below
    last = lines[filled[-1]] if filled else None
    places = [j for j, text in enumerate(last.row) if text] if last else []
    if last is None or not places or not columns.counts - {0} >= {*places}:
        return lines
    rows = [lines[k].row for k in filled]
    plain = [row for row in rows[:-1] if not any(total_word(t) == 2 for t in row)]
    if not all(_are_summed(j, rows, plain) for j in places):
        return lines
    row = [*last.row]
    for j in columns.labels or [0]:
        if any(line[j] for line in rows):
            row[j] = "Total"
    return [*lines[: filled[-1]], last._replace(row=row), *lines[filled[-1] + 1 :]]


def _are_summed(j: int, rows: Sequence[Sequence[str]], plain: Sequence[Sequence[str]]) -> bool:
    """Return whether a column's last number is the sum of all above it, or of plain rows."""
    whole = number_range(rows[-1][j])
    for above in (rows[:-1], plain):
        ends = [number_range(row[j]) for row in above]
        parts = [end[0] if end and end[0] == end[1] else -1 for end in ends]
        if whole and len(parts) > _PAIR and min(parts) >= 0 and whole[0] == sum(parts) > max(parts):
            return True
    return False


def _without_codes(lines: list[Line]) -> list[Line]:
    """Return the lines without codes before section headings, if no other row has a first text."""
    coded = [line.row for line in lines if line.row[0]]
    pairs = [row for row in coded if row[1] and filled_texts(row) == _PAIR]
    codes = all(
        re.fullmatch(r"\S*\d\S*", code) and not says_number(name) for code, name, *_ in pairs
    )
    if not (codes and 1 < len(pairs) == len(coded) < len(lines) and len(lines[0].row) > _PAIR):
        return lines
    return [x._replace(row=[x.row[1], "", *x.row[2:]]) if x.row[0] else x for x in lines]


def _with_named_labels(
    lines: list[Line], head: list[str], columns: CountColumns
) -> tuple[list[Line], list[str]]:
    """Return lines and headings, with a row that only names label columns moved to the headings.

    No label column has a heading. Each has a text in that row that no other row repeats.
    """
    counts = columns.counts
    labels = [j for j in columns.labels if j < min(counts, default=0)]
    blank = [x for x in lines if any(x.row) and not any(x.row[j] for j in counts)]
    if len(labels) < _PAIR or len(blank) != 1 or any(head[j] for j in labels):
        return lines, head
    row = blank[0].row
    if not all(row[j] for j in labels) or filled_texts(row) > len(labels):
        return lines, head
    if any(row[j] == x.row[j] for x in lines if x is not blank[0] for j in labels):
        return lines, head
    named = [row[j] if j in labels else text for j, text in enumerate(head)]
    return [x for x in lines if x is not blank[0]], named


def _with_whole_labels(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with long labels joined to their continuation in small letters below.

    A text that occurs once is a section heading instead if the label below repeats or is indented.
    """
    results, times = list[Line](), Counter(line.row[0] for line in lines)
    for line, below in zip(lines, [*lines[1:], *lines[:1]], strict=True):
        label, *rest = line.row
        times_below = times[below.row[0]] if below.row[0] else 0
        heads = times[label] == 1 and (times_below > 1 or below.depth > line.depth)
        goes_on = label[:1].islower() and label[-1] != ":" and not (any(rest) or sex(label))
        if results and goes_on and not heads:
            above = results[-1].row
            if len(above[0]) >= _LONG_LABEL and 2 * len(label) >= _LONG_LABEL and any(above[1:]):
                whole = [f"{above[0]} {label}", *above[1:]]
                results[-1] = results[-1]._replace(row=whole)
                continue
        results.append(line)
    return results


def _is_before_parts(line: Line) -> bool:
    return filled_texts(line.row) == 1 and begins_parts("".join(line.row))


def _words_before_parts(lines: Sequence[Line], columns: CountColumns) -> Line | None:
    """Return the only line of words, if it follows the first row and all later rows are its parts.

    The first row is their sum, or a total that none of them exceeds. In the second case no label is
    a sex or an age, which could be parts of the total.
    """
    filled = [line for line in lines if any(line.row)]
    words = [k for k, line in enumerate(filled) if filled_texts(line.row) == 1]
    if words != [1] or len(filled) < _PAIR + 2:
        return None
    table = [[line.row[j] for j in columns.counts] for line in filled if line is not filled[1]]
    stated = [column for column in zip(*table, strict=True) if all(map(WHOLE.fullmatch, column))]
    numbers = [[number_range(text) for text in column] for column in stated]
    parts = [(c[0][0], [part[0] for part in c[1:] if part]) for c in numbers if c[0]]
    names = [line.row[0] for line in filled]
    called = total_word(names[0]) == 2 and not any(sex(x) or interval(x) for x in names[1:])
    holds = parts and all(n == sum(rest) or (called and n >= max(rest)) for n, rest in parts)
    return filled[1] if holds else None


def _form(label: str) -> str:
    """Return a label with # for each number, as *aged # to #*; empty without letters or numbers."""
    form = re.sub(r"\d+", "#", label)
    return form if "#" in form and any(map(str.isalpha, form)) else ""


def _forms(lines: Sequence[Line]) -> set[str]:
    return {_form(line.row[0]) for line in lines if filled_texts(line.row) > 1} - {""}


def _is_rule(line: Line) -> bool:
    """Return whether a line has one text of signs alone, as a rule between rows."""
    return filled_texts(line.row) == 1 and not any(map(str.isalnum, "".join(line.row)))


def _repeated(lines: Sequence[Line], heads: Sequence[Sequence[str]]) -> dict[int, str]:
    """Return the reasons, by line number, to leave out repeated headings and titles above them."""
    results, after = dict[int, str](), list[str]()
    for line in reversed([line for line in lines if any(line.row)]):
        if any(_repeats(line.row, head) for head in heads):
            results[line.number] = "the headings again"
        elif after in heads and filled_texts(line.row) < 2:
            results[line.number] = "the title again"
        after = line.row
    return results


def _rows_of_another(lines: Sequence[Line], columns: CountColumns) -> list[int]:
    """Return the numbers of rows below a total and an empty row, with few of its counts.

    All have counts in the same columns, at most half of those of the total.
    """
    gap = max((k for k, line in enumerate(lines) if not any(line.row)), default=0)
    above, below = lines[:gap], lines[gap + 1 :]
    if not above or len(below) < _PAIR or not any(total_word(t) == 2 for t in above[-1].row):
        return []
    filled, *rest = [{j for j in columns.counts if line.row[j]} for line in below]
    total = {j for j in columns.counts if above[-1].row[j]}
    few = filled < total and 2 * len(filled) <= len(total)
    return [line.number for line in below] if few and all(one == filled for one in rest) else []


def _repeats(row: Sequence[str], head: Sequence[str]) -> bool:
    """Return whether a row repeats the headings, perhaps without some of them."""
    words = [t == other for t, other in zip(row, head, strict=False)
             if t and not (says_number(t) or is_mark(t))]  # fmt: skip
    return list(row) == list(head) or stands_again(row, head) or (
        len(words) <= 2 * sum(words) > 2 * _PAIR
    )  # fmt: skip


def body_lines(name: str, body: Body, columns: CountColumns) -> tuple[list[Line], Left]:
    """Return the lines that are rows of a table, and those that are left out."""
    rows, reasons = list[Line](), dict(body.reasons)
    names = {"", *itertools.chain(*(text.split(PATH) for text in body.sections.values()))}
    for line in body.inside:
        if not any(line.row) or line.number in reasons:
            continue
        _check_fields(name, line)
        if filled_texts(line.row) > 1:
            rows.append(line)
        elif body.listed or (is_date(line.row[0]) and not body.sections):
            reasons[line.number] = NO_COUNTS
        elif not body.sections:
            raise _without_counts(name, line)
        elif line.row[0] not in names:
            reasons[line.number] = "a heading of several sections"
    rows += _rows_below(name, body, columns, reasons)
    lines = [*body.inside, *body.below]
    return rows, [x.left(reasons[x.number]) for x in lines if x.number in reasons]


def _rows_below(
    name: str, body: Body, columns: CountColumns, reasons: dict[int, str]
) -> Iterator[Line]:
    """Yield rows without counts at the end of a table, and store why other lines are left out."""
    longest, forms = max((len(x.row[0]) for x in body.inside), default=0), _forms(body.inside)
    beyond = closed = False  # after the table's rows; after the start of the notes
    for line in body.below:
        row, alone = line.row, filled_texts(line.row) < 2
        beyond = beyond or not any(row)
        if not any(row) or line.number in reasons:
            continue
        closed = closed or begins_notes(row) or (alone and _RULE.fullmatch(row[0]) is not None)
        aside = not row[0] and not any(says_number(t) or is_mark(t) for t in row if t)
        if closed or aside or _is_aside(row, columns):  # such as a source below another column
            reasons[line.number] = _NOTE_BELOW
            continue
        _check_fields(name, line, note=is_note(row))
        if alone:  # no label: a title of notes, or a sentence
            beyond = beyond or row[0].endswith(":") or len(row[0]) > longest
        labels = [row[j] for j in columns.labels if body.head[j]]
        aged = 0 in columns.counts or NO_COUNTS in reasons.values()
        listed = (aged and number_range(row[0])) or _form(row[0]) in forms
        if alone and (listed or (is_date(row[0]) and not body.sections)):
            reasons[line.number] = NO_COUNTS
        elif beyond or is_note(row) or not columns.labels or not all(labels):
            _check_note(name, line)
            beyond, reasons[line.number] = True, _NOTE_BELOW
        elif not alone:
            yield line
        elif not body.sections:
            raise _without_counts(name, line)


def _is_aside(row: Sequence[str], columns: CountColumns) -> bool:
    """Return whether a row has no label, but a sentence in a column of counts."""
    texts = (row[j] for j in columns.counts)
    return not row[0] and any(
        _SENTENCE.match(t) and not (says_number(t) or is_mark(t)) for t in texts
    )


def _check_note(name: str, line: Line) -> None:
    """Check that a row below a table has a first text, and no counts at another delimiter."""
    row = line.row
    numbered = number_range(row[0]) and not any(" " in text for text in row[1:])
    if not row[0] or numbered or _split_otherwise(row[0], len(row)):
        raise DataError(
            f"{name}: row {line.number}: must be a row of the table or a note in the first "
            f"column, got {quote(short(row))}"
        )


def _without_counts(name: str, line: Line) -> DataError:
    return DataError(
        f"{name}: row {line.number}: must be a row of the table, with counts, got "
        f"{quote(short(line.row))}: remove it, or name what it says in a column of its own"
    )


def _check_fields(name: str, line: Line, *, note: bool = False) -> None:
    """Check that a line is no wider than the table, unless a note, and has no open quote."""
    if line.size > len(line.row) and not note:
        raise line.too_wide(name)
    broken = [text for text in line.fields if "\n" in text or "\r" in text]
    if not all(_is_prose(text, len(line.row)) for text in broken):
        raise DataError(f"{name}: row {line.number}: a quote must be closed on its line")


def _is_prose(text: str, width: int) -> bool:
    """Return whether no line of a text is a row of the table, swallowed by an open quote."""
    return not any(
        line.count(d) >= width - 1 and says_number(line.rpartition(d)[2].strip())
        for line in text.splitlines()
        for d in ",;|\t"
    )


def _split_otherwise(text: str, width: int) -> bool:
    """Return whether a text is a row of counts with another delimiter, such as ``w;1b;3``."""
    return any(
        text.count(d) == width - 1 and says_number(text.rpartition(d)[2])
        for d in ";|\t"
        if d in text
    )


def is_note(row: Sequence[str]) -> bool:
    """Return whether the first text of a row marks it as a note or a source."""
    return _NOTE.fullmatch(row[0]) is not None


def body_grid(body: Body, lines: Sequence[Line], columns: CountColumns) -> tuple[list[str], Grid]:
    """Return a table's headings and rows, sections and outline resolved, without empty columns."""
    depths = [line.depth for line in lines]
    parted = partitioned(body.head, lines, body.sections, columns) if body.sections else None
    if parted is not None:
        head, rows = parted
    elif body.sections:
        rows = [(line.number, [body.sections.get(line.number, ""), *line.row]) for line in lines]
        head, rows = by_variable(["section", *body.head], rows, depths, columns.counts)
    else:
        rows = [(line.number, line.row) for line in lines]
        head, rows = outlined(body.head, rows, depths, columns.counts)
    keep = [j for j, text in enumerate(head) if text or any(row[j] for _, row in rows)]
    texts_by_column = (([row[j] for _, row in rows], _ARROW.search(head[j])) for j in keep)
    pathed = (texts if flow else _with_arrows(texts) for texts, flow in texts_by_column)
    numbers, cells = [i for i, _ in rows], map(list, zip(*pathed, strict=True))
    return _with_arrows([head[j] for j in keep]), list(zip(numbers, cells, strict=True))


def _with_arrows(texts: Sequence[str]) -> list[str]:
    """Return texts with paths in place of arrows to parts; arrows to destinations stay.

    Arrows lead to destinations if some origin is a destination elsewhere.
    """
    paths = {t: _ARROW.sub(PATH, t).split(PATH) for t in texts if _ARROW.search(t)}
    origins = {first for first, *_ in paths.values()}
    if any(origins.intersection(rest) for _, *rest in paths.values()):
        return list(texts)
    return [PATH.join(paths.get(text, [text])) for text in texts]
