"""Lines: rows of a sheet in the width of its table, and the columns that hold counts."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.texts import DECIMAL, WHOLE, is_mark, says_number, two_scripts

_LENGTH = 1000  # of a note
#: The unit of all counts of a row or table: *no.*, *persons*.
UNIT = re.compile(
    r"numbers?( of \w+)*|no\.|counts?|persons|people|individuals|cases|patients|pupils|households",
    re.IGNORECASE,
)
#: Beside a title: *Unit: persons*.
_NAMED_UNIT = re.compile(r"(units?|einheit|unité|[単单單]位|단위) ?[:：].+", re.IGNORECASE)
_PAIR = 2  # texts
_DASHES = re.compile(r"\s*[-–—•·]+ ?(?=[^\W\d_])")
_NOTE_BEFORE_YEAR = re.compile(r"\(\w\) ?(?=(?:18|19|20)\d\d$)")
#: A count with its share of a hundred: *675 (8.84%)*.
_WITH_SHARE = re.compile(r"^([<>≤≥]? ?\d[\d,.]*|[*†]{1,2}) ?\(\W?\d*[.,]?\d+ ?%\)$")
_NOTES = re.compile(r"\W*((foot)?notes?|(symbol )?legend|key|simbologia)\W*", re.IGNORECASE)
#: Rows with their numbers in the file.
Grid = list[tuple[int, list[str]]]
#: Rows that are left out: their numbers, texts and the reason.
Left = list[tuple[int, str, str]]


class Line(NamedTuple):
    """A numbered row: its texts in the width of the table, and its original ``fields``.

    ``size`` is the number of fields up to the last text, ``depth`` that of blanks before the first.
    """

    number: int
    row: list[str]
    size: int
    depth: int
    fields: Sequence[str]

    @property
    def fits(self) -> bool:
        """Whether the line has several fields, and no more than the table."""
        return 1 < self.size <= len(self.row)

    def left(self, reason: str) -> tuple[int, str, str]:
        """Return the line's entry in the list of lines left out."""
        return self.number, short(self.row), reason

    def too_wide(self, name: str) -> DataError:
        """Return the error that the line has more fields than the table."""
        width = len(self.row)
        return DataError(
            f"{name}: row {self.number}: must have {width} columns, got "
            f"{len(_trimmed(self.fields))}: {quote(self.fields[: width + 3])}; a text or number "
            'with a delimiter stands in quotes ("1,234"), or the row is removed'
        )


class CountColumns(NamedTuple):
    """The columns of counts and labels; without ``numbers`` all counts are withheld.

    Headings may then be numbers, such as years. ``marks`` are those that repeat in a column.
    """

    counts: set[int]
    labels: list[int]
    numbers: bool
    marks: Set[tuple[int, str]]

    @property
    def beside_ages(self) -> set[int]:
        """The count columns without the first column, which may hold ages."""
        return self.counts - {0}

    def has_count(self, row: Sequence[str]) -> bool:
        """Return whether a row has a count and another text; all its counts may be withheld."""
        texts = [(j, row[j]) for j in self.counts if row[j]]
        withheld = bool(texts) and {*texts} <= self.marks
        return filled_texts(row) > 1 and (
            withheld
            or any(
                says_number(row[j]) or (not self.numbers and is_mark(row[j])) for j in self.counts
            )
        )

    def states_counts(self, row: Sequence[str]) -> bool:
        """Return whether a row has a count, or marks in place of all counts."""
        texts = [row[j] for j in self.counts if row[j]]
        marks = filled_texts(row) > 1 and bool(texts) and all(map(is_mark, texts))
        return marks or self.has_count(row)


def short(row: Sequence[str]) -> str:
    """Return the texts of a row, shortened."""
    text = ", ".join(filter(None, row))
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"


def filled_texts(row: Sequence[str]) -> int:
    """Return the number of nonempty texts of a row."""
    return len(row) - row.count("")


def stands_again(row: Sequence[str], head: Sequence[str]) -> bool:
    """Return whether a row only repeats headings of its columns, such as years."""
    filled = [(text, other) for text, other in zip(row, head, strict=False) if text]
    return len(filled) > 2 * _PAIR and all(text == other for text, other in filled)


def said_once(row: Sequence[str], counts: Collection[int]) -> list[str]:
    """Return a row without the second of its two texts, if it translates the first.

    One is in another script, and counts stand between them.
    """
    places = [j for j, text in enumerate(row) if text]
    pair = len(places) == 2 and two_scripts(row[places[0]], row[places[1]])
    if not (pair and any(places[0] < j < places[1] for j in counts)):
        return list(row)
    return [row[places[0]], *[""] * (len(row) - 1)]


def grid_lines(grid: Grid) -> tuple[list[Line], Left]:
    """Return the lines of a grid in one width, without rows that state the unit of all counts."""
    grid = _with_indents(_with_first_label(grid))
    units = [(i, short(row), "what is counted") for i, row in grid if _is_unit(row)]
    grid = _without_margin([(i, row) for i, row in grid if not _is_unit(row)])
    rows = [[_NOTE_BEFORE_YEAR.sub("", " ".join(t.split())) for t in row] for _, row in grid]
    rows = [[_WITH_SHARE.sub(r"\1", text) for text in row] for row in rows]
    width = _width(rows)
    lines = [
        Line(i, [*row, *[""] * width][:width], len(_trimmed(row)), _depth(fields), fields)
        for (i, fields), row in zip(grid, rows, strict=True)
    ]
    return lines, units


def begins_notes(row: Sequence[str]) -> bool:
    """Return whether a row has the title of the notes, alone or beside the first note."""
    title, *rest = [text for text in row if text] or [""]
    plain = any(WHOLE.fullmatch(t) or DECIMAL.fullmatch(t) for t in rest)
    return _NOTES.fullmatch(title) is not None and not plain


def before_notes(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines before the title of the notes."""
    return [*itertools.takewhile(lambda line: not begins_notes(line.row), lines)]


def count_columns(lines: Sequence[Line]) -> CountColumns:
    """Return the count columns of a table, found before its notes if possible."""
    rows = [line.row for line in lines if line.fits]
    counts = _numeric([line.row for line in before_notes(lines) if line.fits]) or _numeric(rows)
    labels = [j for j in range(len(rows[0]) if rows else 0) if j not in counts]
    below = [line.row for line in lines if line.row != rows[0]] if rows else []
    numbers = any(says_number(row[j]) for row in below for j in counts)
    marks = Counter((j, row[j]) for row in below for j in counts if row[j] and is_mark(row[j]))
    # Letters may be repeated headings, in equal rows.
    rows_by_mark = Counter(place for row in {*map(tuple, below)} for place in enumerate(row))
    several = {
        (j, t) for (j, t), n in marks.items()
        if n > 1 and (rows_by_mark[j, t] > 1 or not any(map(str.isalnum, t)))
    }  # fmt: skip
    return CountColumns(counts, labels, numbers, several)


def _with_first_label(grid: Grid) -> Grid:
    """Return rows in which a label beside the unit of all counts is moved to the row below."""
    rows = list(grid)
    for k, ((_, row), (i, below)) in enumerate(itertools.pairwise(grid)):
        if not below or below[0].strip():
            continue
        texts = [text.strip() for text in row if text.strip()]
        alone = len(texts) == 2 and row[0].strip() == texts[0]
        if alone and UNIT.fullmatch(texts[1]) and any(says_number(t) or is_mark(t) for t in below):
            rows[k], rows[k + 1] = (rows[k][0], ["", *row[1:]]), (i, [row[0], *below[1:]])
    return rows


def _with_indents(grid: Grid) -> Grid:
    """Return rows with blanks in place of the dashes before first labels: - Kent, -- Dover."""
    dashes = [_DASHES.match(row[0]) if row else None for _, row in grid]
    first = next((row[0] for _, row in grid if any(map(says_number, row))), "")
    if len(dashes) - dashes.count(None) < _PAIR or _DASHES.match(first):
        return grid
    return [
        (i, [" " * d.end() + row[0][d.end() :], *row[1:]] if d else row)
        for d, (i, row) in zip(dashes, grid, strict=True)
    ]


def _is_unit(row: Sequence[str]) -> bool:
    """Return whether a row only states the unit of all counts."""
    if not row or row[0].strip():
        return False
    texts = [text.strip() for text in row if text.strip()]
    named = len(texts) == _PAIR and _NAMED_UNIT.fullmatch(texts[-1]) is not None
    return named or (len({*texts}) == 1 and UNIT.fullmatch(texts[0]) is not None)


def _without_margin(grid: Grid) -> Grid:
    """Return rows without columns to the left of all labels; texts there fill empty labels.

    Labels stand beside a number, or a mark that repeats in a column of numbers.
    """
    rows = [[text.strip() for text in row] for _, row in grid]
    columns = {j for row in rows for j, text in enumerate(row) if says_number(text)}
    places = Counter(place for row in rows for place in enumerate(row) if place[0] in columns)
    firsts = [
        next(j for j, text in enumerate(row) if text)
        for row in rows
        if filled_texts(row) > 1
        and any(
            says_number(t) or (t and is_mark(t) and places[j, t] > 1) for j, t in enumerate(row)
        )
    ]
    first = min(firsts, default=0)
    if not first:
        return grid
    labels = [next((t for t in row[first::-1] if t.strip()), "") for _, row in grid]
    return [(i, [label, *row[first + 1 :]]) for (i, row), label in zip(grid, labels, strict=True)]


def _depth(row: Sequence[str]) -> int:
    """Return the number of blanks before the first text of a row."""
    return len(row[0]) - len(row[0].lstrip()) if row else 0


def _trimmed(row: Sequence[str]) -> Sequence[str]:
    """Return a row without empty texts at its end."""
    size = len(row)
    while size and not row[size - 1]:
        size -= 1
    return row[:size]


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the usual number of fields of rows with several texts, or that of full headings."""
    several = [row for row in rows if filled_texts(row) > 1]
    width = Counter(map(len, several)).most_common(1)[0][0] if several else 0
    sizes = [len(_trimmed(row)) for row in several]
    full = several and all(several[0]) and not any(map(says_number, several[0]))
    if full and max(sizes) == sizes[0] > width and sizes.count(sizes[0]) > 1:
        return sizes[0]  # rows omit empty fields at their end
    return width


def _numeric(rows: Sequence[Sequence[str]]) -> set[int]:
    """Return the columns in which at least half of the texts are numbers or marks."""
    numeric = set()
    texts_by_column = [*zip(*rows, strict=True)]
    for j, column in enumerate(texts_by_column):
        texts = Counter(filter(None, column))
        numbers = sum(n for t, n in texts.items() if says_number(t))
        marks = sum(n for t, n in texts.items() if not says_number(t) and is_mark(t))
        if numbers and 2 * (numbers + marks) >= sum(texts.values()) - 1:  # one is the heading
            numeric.add(j)
    if len(numeric) > 1 and not any(
        WHOLE.fullmatch(text) or DECIMAL.fullmatch(text) for text in texts_by_column[0]
    ):
        numeric.discard(0)  # groups of ages
    return numeric or {j for j, column in enumerate(texts_by_column) if _withheld(column[1:])}


def _withheld(texts: Sequence[str]) -> bool:
    """Return whether all texts are marks without letters, or several equal marks."""
    plain = not any(map(str.isalnum, "".join(texts)))
    equal = len(texts) > 1 and len({*texts}) == 1
    return bool(texts) and all(map(is_mark, texts)) and (plain or equal)
