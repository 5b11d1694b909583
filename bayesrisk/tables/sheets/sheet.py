"""Sheets: headings and rows of a text file, a workbook or a data frame, every cell as text."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import uncollected
from bayesrisk._base.disk.text import read_bytes
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables.sheets.encodings import decoded
from bayesrisk.tables.sheets.grids import Grid, grid_tables, text_grid, workbook_grids
from bayesrisk.tables.sheets.heading_rows import (
    YEAR,
    columns_beside,
    distinct_headings,
    filled_texts,
    first_heading_row,
    is_title_row,
    joined_headings,
    line_of_heading,
    numbers_columns,
    repeat_each_other,
    short,
    wrapped,
)
from bayesrisk.tables.sheets.sections import (
    by_alphabet,
    by_variable,
    is_group_row,
    names_with_counts,
    outlined,
    rows_of_others,
    section_headings,
    with_groups,
)
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    PATH,
    THOUSANDS,
    WHOLE,
    begins_parts,
    cut,
    is_date,
    is_mark,
    listing,
    number_range,
    says_number,
)

_BYTES = 2**26
_NOTE = re.compile(
    r"\W*(source|notes?|data source|copyright|info|footnotes?|legend|key|\w\)|\(\w\)|[*†‡^#])\b.*|"
    r"[*†‡©].*",
    re.IGNORECASE,
)
#: A title or a note on the unit of all counts.
_THOUSANDS = re.compile(
    rf"[(\[]([\w ]+ )?(in |en )?({THOUSANDS}|000)( of \w+)?[)\]]|"
    r"\b(numbers|figures|data|persons|people|counts|values|levels|zahlen|angaben|chiffres|effectifs)"
    rf"( \w+){{0,2}} (in|en) {THOUSANDS}|"
    rf"(^|[,;:–-])\W*(in |en )?{THOUSANDS}\W*$|\b(in|en) (?=[\d'’`]){THOUSANDS}",
    re.IGNORECASE,
)
_NOTE_MARK = re.compile(r" ?\[(foot)?notes?:? ?[\w, ]*\]", re.IGNORECASE)
_UNIT = re.compile(
    r"numbers?( of \w+)*|no\.|counts?|persons|people|individuals|cases|patients|pupils|households",
    re.IGNORECASE,
)
_ALONE_NOTE = re.compile(r"\W*((foot)?notes?|(symbol )?legend|key|simbologia)\W*", re.IGNORECASE)
_RULE = re.compile(r"[-_=*.]{2,}")  # a line before the notes
_MOST_HEADINGS = 6  # rows
_FEW_ROWS = 8  # that are looked at
#: Why rows are left out that are none of the table.
_NO_ROWS = ("numbers of columns", "the headings again", "the title again", "above the table")
_FEW_BLANKS = 10  # headings for each that is missing
_FORMS = {
    "{": "JSON", **dict.fromkeys(("[[", "[{", '["'), "JSON of an API"), "<": "a web page or XML",
    "CHARSET=": "a PC-Axis file", "AXIS-VERSION=": "a PC-Axis file", "%PDF": "a PDF",
    "PAR1": "Parquet", "\0": "bytes that are no text",
}  # fmt: skip


class Sheet(NamedTuple):
    """Headings, and rows with their numbers in the file; rows left out, with the reason.

    ``part`` says which sheet of a workbook it is, and how many tables of it are read; ``tab`` is
    its name, ``number`` how many sheets there are, ``alternatives`` are those that may be read
    instead, with the number of the table, ``fault`` why it cannot, ``unread`` why others cannot.
    ``encoding`` says how a text was read, ``captions`` are lines above it, ``thousands`` whether a
    title or a note says that all counts are in units of 1,000.
    ``persons`` has the columns of such counts with decimals that are written out in persons, and
    the unit of their last digit.
    """

    name: str
    heads: list[str]
    rows: list[tuple[int, list[str]]]
    left: list[tuple[int, str, str]]
    part: str = ""
    thousands: bool = False
    persons: Mapping[int, int] = MappingProxyType({})
    captions: tuple[str, ...] = ()
    tab: str = ""
    alternatives: tuple[tuple[str, Grid, int], ...] = ()
    fault: DataError | None = None
    unread: tuple[str, ...] = ()
    number: int = 1
    encoding: str = ""

    @property
    def title(self) -> str:
        """The name of the file, which sheet of a workbook it is, and how its text is read."""
        details = "; ".join(filter(None, (self.part, self.encoding)))
        return self.name + f" ({details})" * bool(details)

    def left_out(self) -> str:
        """Return the rows that are left out as one list: those with numbers first."""
        numbered = [_holds_numbers(text, reason) for _, text, reason in self.left]
        texts = [f"row {i} {cut(text, 60)!r} ({reason})" for i, text, reason in self.left]
        first = [*itertools.compress(texts, numbered)]
        every = listing([*first, *(text for text in texts if text not in first)], 160)
        rows = listing(str(i) for (i, _, _), full in zip(self.left, numbered, strict=True) if full)
        many = first and len(texts) > _FEW_ROWS
        return f"{len(first)} with numbers (rows {rows}), all: {every}" if many else every

    def refused(self, fault: DataError, advice: str = "") -> DataError:
        """Return an error about this sheet that names which one of the workbook it is."""
        sentence = fault.sentence
        if self.tab and sentence.startswith(self.name) and "(sheet " not in sentence:
            sentence = f"{self.name} (sheet {self.tab!r}){sentence.removeprefix(self.name)}"
        return DataError(sentence, advice=fault.advice + advice)


def _holds_numbers(text: str, reason: str) -> bool:
    """Return whether a row that is left out holds numbers beside a label."""
    if reason in _NO_ROWS or reason.startswith("another table"):
        return False
    words = text.split(", ")
    return len(words) > 1 and any(says_number(word) and not is_date(word) for word in words)


def frame_sheets(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> list[Sheet]:
    """Return the sheets of a data frame or several."""
    several = frames if isinstance(frames, list | tuple) else [frames]
    sheets = []
    for number, frame in enumerate(several, 1):
        table = check.frame(frame, "frame")
        table = table.reset_index() if any(n is not None for n in table.index.names) else table
        columns: list[Any] = list(table.columns)
        heads = [PATH.join(map(str, c)) if isinstance(c, tuple) else str(c) for c in columns]
        texts = [
            ["" if pd.isna(value) else str(value).strip() for value in row]
            for row in table.itertuples(index=False, name=None)
        ]
        sheets.append(Sheet(f"frame {number}", heads, list(enumerate(texts, 1)), []))
    return sheets


@uncollected()
def file_sheet(file: Path, sheet: str | None = None, encoding: str | None = None) -> Sheet:
    """Return the sheet of a text file or a workbook; of a workbook that with the most counts.

    A text file has an ``encoding``; without one it is UTF-8, or what :func:`decoded` finds.
    """
    raw = read_bytes(file, _BYTES)
    wanted = re.fullmatch(r"(.*)#(\d{1,4})", sheet or "", re.DOTALL)
    sheet, number = (wanted[1] or None, int(wanted[2])) if wanted else (sheet, 0)
    # A name of bytes that are no UTF-8 could not be written into any result.
    name = str(file).encode(errors="backslashreplace").decode()
    if raw[:4] == b"PK\x03\x04" or raw[:4] == b"\xd0\xcf\x11\xe0":
        grids, size = workbook_grids(name, raw, sheet)
        alternatives = tuple((tab, grid, number) for tab, grid in grids or (("", []),))
        return next(other_sheets(Sheet(name, [], [], [], alternatives=alternatives, number=size)))
    text, guess = decoded(raw, encoding or "")
    first = "".join(text[:1024].split())
    first = "\0" if "\0" in first else first
    form = next((f for start, f in _FORMS.items() if first.startswith(start)), None)
    form = form if text.strip() else "an empty file"
    if form:
        raise DataError(
            f"{name}: must be a table with headings and rows, got {form}: save or download it as "
            "CSV or as a workbook"
        )
    one = _numbered(name, text_grid(name, text), number)
    read = f"read as {guess}; encoding=NAME reads it otherwise" if guess else ""
    return one._replace(encoding=read, tab=f"#{number or 1}" * bool(number or one.alternatives))


def other_sheets(before: Sheet) -> Iterator[Sheet]:
    """Yield the sheets and tables of a file after one; those without a table hold the fault."""
    for position, (tab, grid, number) in enumerate(before.alternatives, 1):
        called = tab + f"#{number}" * (number > 1)
        part = f"sheet {called!r}"
        part += f" of {before.number}; sheet=NAME reads another" * (before.number > 1)
        try:
            one = _numbered(before.name, grid, number, tab)
        except DataError as fault:
            one = Sheet(before.name, [], [], [], fault=fault)
        part += f"; {one.part}" * bool(one.part)
        more = (*one.alternatives, *before.alternatives[position:])
        yield one._replace(
            part=part, tab=called, alternatives=more, number=before.number,
            encoding=before.encoding,
        )  # fmt: skip


def _numbered(name: str, grid: Grid, number: int, tab: str = "") -> Sheet:
    """Return one of the tables of a grid, by its number; the others are left out.

    Without a number it is the first one that can be read, with those that repeat it.
    """
    tables = grid_tables(grid)
    facts = [part for part in tables if _are_facts(part)]
    facts = facts if len(facts) < len(tables) else []
    tables = [part for part in tables if part not in facts]
    if number > len(tables):
        names = " or ".join(f"#{n}" for n in range(1, len(tables) + 1))
        raise ArgumentError(f"sheet must be one of its tables, {names}, got #{number}: {name}")
    table, chosen, faults = None, {number - 1}, list[DataError]()
    for position, part in enumerate(tables) if not number else [(number - 1, tables[number - 1])]:
        try:
            table = _table(name, part)
        except DataError as fault:
            faults.append(fault)
        else:
            chosen = {position}
            break
    if table is None:
        raise faults[0]
    if not number:
        table, chosen = _with_repeats(name, table, tables, position)
    left = [
        (*next((i, short(row)) for i, row in part if any(row)),
         f"another table: sheet={tab}#{n} reads it")
        for n, part in enumerate(tables, 1) if n - 1 not in chosen
    ]  # fmt: skip
    left += [(i, short(row), "about the table") for part in facts for i, row in part if any(row)]
    fewer = not number and len(chosen) < len(tables)
    unread_tables = [n for n in range(1, len(tables) + 1) if fewer and n - 1 not in chosen]
    unread_tables.sort(key=lambda n: -_numbers(tables[n - 1]))
    read = f"{len(chosen)} of {len(tables)} tables {'is' if len(chosen) == 1 else 'are'} read"
    alternatives = tuple((tab, grid, n) for n in unread_tables)
    return table._replace(left=[*table.left, *left], part=read * fewer, alternatives=alternatives)


def _numbers(grid: Grid) -> int:
    """Return the number of texts of a grid that say a number."""
    return sum(says_number(text) for _, row in grid for text in row)


def _are_facts(grid: Grid) -> bool:
    """Return whether rows are a name and a text each, of which few are counts: *units, Persons*."""
    rows = [row for _, row in grid if filled_texts(row) > 1]
    values = [row[1] for row in rows if filled_texts(row) == 2 and row[0] and row[1]]
    counts = sum((says_number(t) and not is_date(t)) or is_mark(t) for t in values[1:])
    return len(values) == len(rows) > 1 and 2 * counts < len(values) - 1


def _with_repeats(
    name: str, table: Sheet, tables: Sequence[Grid], first: int
) -> tuple[Sheet, set[int]]:
    """Return a table with those that repeat its headings and labels, and which ones these are.

    Each has its title as the label of a further variable; where no label is repeated and none has
    a title, they are one table whose rows stand side by side.
    """
    parts = {first: table}
    for position in range(first + 1, len(tables)):
        try:
            other = _table(name, tables[position])
        except DataError:
            continue
        if other.heads == table.heads and _decimals(other) == _decimals(table):
            parts[position] = other
    if len(parts) < 2 or "section" in table.heads:
        return table, {first}
    labels = [list(map(tuple, _labels(part))) for part in parts.values()]
    most = max(labels, key=len)
    equal = all(one == [label for label in most if label in one] for one in labels)
    shared = set.intersection(*({*part.captions} for part in parts.values()))
    captions = [[c for c in part.captions if c not in shared] for part in parts.values()]
    titles = [lines[-1] if lines else "" for lines in captions]
    rows = [row for part in parts.values() for row in part.rows]
    left = [line for part in parts.values() for line in part.left]
    thousands = any(part.thousands for part in parts.values())
    if len({*titles}) == len(titles) and all(titles) and equal:
        named = zip(titles, parts.values(), strict=True)
        rows = [(i, [title, *row]) for title, part in named for i, row in part.rows]
        left = [line for line in left if line[1] not in titles]
        table = table._replace(heads=["section", *table.heads])
    elif len({*titles}) > 1 or len({*itertools.chain(*labels)}) < len(rows):
        return table, {first}
    return table._replace(rows=rows, left=left, thousands=thousands), {*parts}


def _labels(table: Sheet) -> list[list[str]]:
    """Return the labels of the rows of a table: texts of the first column, and words."""
    columns = [*zip(*(row for _, row in table.rows), strict=True)]
    words = [
        j == 0 or 2 * sum(bool(WHOLE.fullmatch(t)) or is_mark(t) for t in column) < len(column)
        for j, column in enumerate(columns)
    ]
    return [[*itertools.compress(row, words)] for _, row in table.rows]


def _decimals(table: Sheet) -> set[int]:
    """Return the columns of a table that have numbers with decimals."""
    return {j for _, row in table.rows for j, t in enumerate(row) if DECIMAL.fullmatch(t)}


def _table(name: str, grid: Grid) -> Sheet:
    """Return the table of a grid.

    Titles stand before it: lines of one text, and blocks of rows without a number.  Its headings
    are one row, or several where one fills gaps of that above.  It ends with the last row that has
    a count.
    """
    grid = _with_first_label(grid)
    units = [(i, short(row), "what is counted") for i, row in grid if _is_unit(row)]
    grid = [(i, row) for i, row in grid if not _is_unit(row)]
    grid = _without_margin(grid)
    rows = [(i, [" ".join(c.split()) for c in row], _depth(row)) for i, row in grid]
    width = _width([row for _, row, _ in rows])
    full = [(i, (row + [""] * width)[:width], len(_trimmed(row)), d) for i, row, d in rows]
    legends = (p for p, (_, row, _, _) in enumerate(full) if _ALONE_NOTE.fullmatch(" ".join(row)))
    legend = next(legends, len(full))
    table_rows = [row for _, row, size, _ in full[:legend] if 1 < size <= width]
    every = [row for _, row, size, _ in full if 1 < size <= width]
    numeric = _numeric(table_rows, width) or _numeric(every, width)

    # Headings may be numbers, such as years, above counts that are all withheld.
    head = next((row for _, row, size, _ in full if 1 < size <= width), [])
    numbers = any(says_number(row[j]) for _, row, _, _ in full if row != head for j in numeric)

    def data(row: Sequence[str]) -> bool:
        return filled_texts(row) > 1 and any(
            says_number(row[j]) or (not numbers and is_mark(row[j])) for j in numeric
        )

    def stated(row: Sequence[str]) -> bool:
        texts = [row[j] for j in numeric if row[j]]
        return data(row) or (filled_texts(row) > 1 and bool(texts) and all(map(is_mark, texts)))

    def named(above: Sequence[str], row: Sequence[str]) -> bool:
        """Return whether a row of headings names all counts of a row below empty ones."""
        filled = [j for j in numeric if says_number(row[j])]
        texts, values = [above[j] for j in filled], [row[j] for j in filled]
        years = len(texts) > 1 and all(re.fullmatch(YEAR, text) for text in texts)
        words = texts.count("") * _FEW_BLANKS <= len(texts)
        words = words and (years or not any(map(says_number, texts)))
        words = words and not all(map(is_date, values))
        return words and all(DECIMAL.fullmatch(t) or WHOLE.fullmatch(t) for t in values)

    lines = [row for _, row, _, _ in full]
    block, before, start = list[int](), list[int](), None  # rows side by side, one has a number
    for position, (_, row, size, _) in enumerate(full):
        if filled_texts(row) > 1 and size <= width:
            block.append(position)
            separate = bool(before) and named(full[before[-1]][1], full[block[0]][1])
            heads = [full[k][1] for k in block[:-1]]
            if before and heads and all(heads[-1][j] for j in numeric if says_number(row[j])):
                several = sum(bool(full[before[-1]][1][j]) for j in numeric) > 1
                separate = separate or (several and repeat_each_other(heads, numeric))
            if data(row) and (separate or len(block) > 1 or not any(map(says_number, row))):
                start = before[0] if separate else block[0]  # headings, and empty rows below them
                keep = [i for i in range(len(full)) if not start < i < block[0] or any(full[i][1])]
                full, grid = [full[i] for i in keep], [grid[i] for i in keep]
                legend = sum(i < legend for i in keep)
                break
        elif block and not (
            (row[0] and filled_texts(row) and not full[block[-1]][1][0])
            or line_of_heading(lines, lines[block[0]], position, numeric)
        ):
            block, before = [], block
    gap = full[before[-1] + 1 : start] if start and before else []
    if gap and all(filled_texts(row) == 1 and is_date(row[0]) for _, row, _, _ in gap):
        start = before[-1]  # headings, and days before the first count
    if start and full[start - 1][2] > width:
        raise _too_wide(name, full[start - 1][0], width, grid[start - 1][1])
    if start is not None:
        start = first_heading_row(name, [(i, row) for i, row, _, _ in full[: start + 1]], numeric)
    if start is None:
        raise DataError(
            f"{name}: must hold headings and a column of counts, got none (records of "
            "people are no table: tabulate them, or use audit)"
        )
    if start + 1 < len(full) and is_title_row(full[start][1], full[start + 1][1], numeric):
        start += 1
    labels = [j for j in range(width) if j not in numeric]
    head, first = full[start][1], start + 1
    columns = [[row[j] for _, row, size, _ in full[start:] if size > 1 and row[j]]
               for j in range(width)]  # fmt: skip
    empty = {
        j for j, c in enumerate(columns) if not c[1:] and not any(map(str.isalnum, "".join(c)))
    }
    while first < min(start + _MOST_HEADINGS, len(full) - 1):
        row = full[first][1]
        next_row = full[first + 1][1]  # of headings, where the name of the labels stands between
        if row[0] and filled_texts(row) == 1 < filled_texts(next_row) and not data(next_row):
            head, first = [head[0] or row[0], *head[1:]], first + 1
            continue
        if is_group_row(row, [r for _, r, _, _ in full[first + 1 :]], labels):
            break
        if _names_labels(head, row, [r for _, r, _, _ in full[first + 1 :]]):
            head, first = [row[j] or text for j, text in enumerate(head)], first + 1
            continue
        below = {
            j: [r[j] for _, r, _, _ in full[first + 1 :] if r[j] and r != row] for j in numeric
        }
        lines = [line for _, line, _, _ in full[start:]]
        joined = joined_headings(head, lines[: first - start], row, below, empty)
        if not joined and line_of_heading(lines, lines[0], first - start, numeric):
            joined = [wrapped(a, b) for a, b in zip(head, row, strict=True)]
        if not joined:
            break
        head, first = joined, first + 1
    for j in [
        j for j in numeric if j and not head[j] and not any(r[j - 1] for _, r, _, _ in full[first:])
    ]:
        head[j], head[j - 1] = head[j - 1], ""  # merged with an empty column
    head = distinct_headings(head, numeric)
    below_heads = [row for _, row, _, _ in full[first:][: 1 + _FEW_ROWS]]
    if below_heads and numbers_columns(below_heads[0], below_heads[1:]):
        units.append((full[first][0], short(below_heads[0]), "numbers of columns"))
        first += 1
    left = units + [(i, short(row), "above the table") for i, row, _, _ in full[:start] if any(row)]
    names = [row for _, row, _, _ in full[start:first]]
    outside = columns_beside(names, [row for _, row, _, _ in full[first:]], empty)
    left += [(full[start][0], f"column {j + 1}", "beside the table") for j in outside]
    for row in [head, *(row for _, row, _, _ in full[start:])]:
        for j in (*outside, *empty):
            row[j] = ""
    heads = [*names, head]
    backwards = range((legend if legend > first else len(full)) - 1, first - 1, -1)
    last = next((i for i in backwards if stated(full[i][1])), first - 1)
    bare = {
        k
        for k in range(first, last + 1)
        if filled_texts(full[k][1]) == 1 and begins_parts("".join(full[k][1]))
    }
    left += [(full[k][0], short(full[k][1]), "words before parts") for k in sorted(bare)]
    full = [line for k, line in enumerate(full) if k not in bare]
    grid = [line for k, line in enumerate(grid) if k not in bare]
    last -= len(bare)
    inner = [row for _, row, _, _ in full[first : last + 1]]
    lone = [position for position, row in enumerate(inner) if filled_texts(row) == 1]
    if lone == [0] and inner[0][0] and not says_number(inner[0][0]):  # the name of the labels
        head, first = [inner[0][0], *head[1:]], first + 1
    grouped, group = with_groups([row for _, row, _, _ in full[first : last + 1]], labels, numeric)
    full[first : last + 1] = [
        (i, row, size, depth)
        for (i, _, size, depth), row in zip(full[first : last + 1], grouped, strict=True)
    ]
    members = [
        one for one in full[first : last + 1] if filled_texts(one[1]) != 1 or not _is_line(one[1])
    ]
    if changed := names_with_counts(members, heads, labels, numeric):
        full = [(i, changed.get(i, row), size, depth) for i, row, size, depth in full]
        members = [(i, changed.get(i, row), size, depth) for i, row, size, depth in members]
    sections = section_headings(members, heads, labels, numeric, group)
    listed = bool(lone) and not sections and by_alphabet([row for _, row, _, _ in members])
    if other_rows := rows_of_others(members, sections, labels, {*numeric} - {0}):
        sections = {}
    longest = max((len(row[0]) for _, row, _, _ in full[first : last + 1]), default=0)
    body, depths, beyond, closed = [], [], False, False
    for position in range(first, len(full)):
        i, row, size, depth = full[position]
        if not any(row):
            beyond = beyond or position > last
            continue
        if row in heads:
            left.append((i, short(row), "the headings again"))
            continue
        alone = filled_texts(row) < 2
        if alone and next((r for _, r, _, _ in full[position + 1 :] if any(r)), None) in heads:
            left.append((i, short(row), "the title again"))
            continue
        if alone and _is_line(row) and position < last:
            continue
        if i in other_rows:
            left.append((i, short(row), "below a heading of its own"))
            continue
        closed = closed or (position > last and alone and _RULE.fullmatch(row[0]) is not None)
        aside = position > last and not row[0]  # a source below another column
        if closed or (aside and not any(says_number(t) or is_mark(t) for t in row if t)):
            left.append((i, short(row), "a note below the table"))
            continue
        if size > width and not (position > last and _is_note(row)):
            raise _too_wide(name, i, width, grid[position][1])
        broken = [text for text in grid[position][1] if "\n" in text or "\r" in text]
        if not all(_is_prose(text, width) for text in broken):
            raise DataError(f"{name}: row {i}: a quote must be closed on its line")
        complete = labels and all(row[j] for j in labels if head[j])
        if position > last and alone:  # no label: a title of notes, or a sentence
            beyond = beyond or row[0].endswith(":") or len(row[0]) > longest
        after = position > last and 0 in numeric and number_range(row[0])
        inside = position <= last and listed
        if alone and (after or inside or (is_date(row[0]) and not sections)):
            left.append((i, short(row), "a row without counts"))
            continue
        if position > last and (beyond or not complete or _is_note(row)):
            numbered = number_range(row[0]) and not any(" " in text for text in row[1:])
            if not row[0] or numbered or _split_otherwise(row[0], width):
                raise DataError(
                    f"{name}: row {i}: must be a row of the table or a note in the first column, "
                    f"got {quote(short(row))}"
                )
            beyond = True
            left.append((i, short(row), "a note below the table"))
            continue
        if alone and sections:
            continue
        if alone:
            raise DataError(
                f"{name}: row {i}: must be a row of the table, with counts, got "
                f"{quote(short(row))}: remove it, or name what it says in a column of its own"
            )
        body.append((i, [sections.get(i, ""), *row] if sections else row))
        depths.append(depth)
    if sections:
        head, body = by_variable(["section", *head], body, depths, numeric)
    else:
        head, body = outlined(head, body, depths, numeric)
    used = [bool(head[j]) or any(row[j] for _, row in body) for j in range(len(head))]
    keep = [j for j, use in enumerate(used) if use]
    body = [(i, [row[j] for j in keep]) for i, row in body]
    notes = (*full[:start], *(full[i] for i in range(last + 1, len(full))))
    thousands = any(_THOUSANDS.search(text) for _, row, _, _ in notes for text in row)
    corner = (_THOUSANDS.fullmatch(text) for line in names for j, text in enumerate(line)
              if j in labels)  # fmt: skip
    thousands = thousands or any(corner)
    head = [text[:4] if re.fullmatch(rf"{YEAR}\.0", text) else text for text in head]
    titles = [_NOTE_MARK.sub("", head[j]).strip() or head[j] for j in keep]
    lines = [row for _, row, _, _ in full[:start] if filled_texts(row) in (1, 2)]
    captions = tuple(text for text in map(short, lines) if not _NOTE.fullmatch(text))
    return Sheet(name, titles, body, left, thousands=thousands, captions=captions)


def _names_labels(head: Sequence[str], row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below headings names the first columns, of which one has no heading.

    Those columns hold labels: the row has no text elsewhere, and none that stands below again.
    """
    size = filled_texts(row)
    named = size > 1 and all(row[:size]) and not all(head[:size]) and any(head[size:])
    return named and not any(other[j] == row[j] for other in below for j in range(size))


def _without_margin(grid: Grid) -> Grid:
    """Return rows without columns to the left of all labels; a text there stands where none is."""
    firsts = [
        next(j for j, text in enumerate(row) if text.strip())
        for _, row in grid
        if sum(map(bool, map(str.strip, row))) > 1 and any(map(says_number, row))
    ]
    first = min(firsts, default=0)
    if not first:
        return grid
    labels = [next((t for t in row[first::-1] if t.strip()), "") for _, row in grid]
    return [(i, [label, *row[first + 1 :]]) for (i, row), label in zip(grid, labels, strict=True)]


def _is_prose(text: str, width: int) -> bool:
    """Return whether no line of a text is a row of the table, which an open quote has taken in."""
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


def _too_wide(name: str, line: int, width: int, row: Sequence[str]) -> DataError:
    return DataError(
        f"{name}: row {line}: must have {width} columns, got {len(_trimmed(row))}: "
        f"{quote(row[: width + 3])}; a text or number with a delimiter stands in quotes "
        '("1,234"), or the row is removed'
    )


def _depth(row: Sequence[str]) -> int:
    """Return the blanks before the first text of a row."""
    return len(row[0]) - len(row[0].lstrip()) if row else 0


def _trimmed(row: Sequence[str]) -> Sequence[str]:
    """Return a row without the empty texts at its end."""
    size = len(row)
    while size and not row[size - 1]:
        size -= 1
    return row[:size]


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of fields that most rows with several texts have, or full headings."""
    several = [row for row in rows if filled_texts(row) > 1]
    width = Counter(map(len, several)).most_common(1)[0][0] if several else 0
    sizes = [len(_trimmed(row)) for row in several]
    full = several and all(several[0]) and not any(map(says_number, several[0]))
    if full and max(sizes) == sizes[0] > width and sizes.count(sizes[0]) > 1:
        return sizes[0]  # rows end where nothing follows
    return width


def _numeric(rows: Sequence[Sequence[str]], width: int) -> set[int]:
    """Return the columns of which at least half of the texts say a number, or are marks."""
    numeric = set()
    for j in range(width):
        texts = Counter(row[j] for row in rows if row[j])
        numbers = sum(n for t, n in texts.items() if says_number(t))
        marks = sum(n for t, n in texts.items() if not says_number(t) and is_mark(t))
        if numbers and 2 * (numbers + marks) >= sum(texts.values()) - 1:  # one is the heading
            numeric.add(j)
    if len(numeric) > 1 and not any(
        WHOLE.fullmatch(row[0]) or DECIMAL.fullmatch(row[0]) for row in rows
    ):
        numeric.discard(0)  # groups of ages
    return numeric or {j for j in range(width) if _withheld([row[j] for row in rows])}


def _withheld(texts: Sequence[str]) -> bool:
    """Return whether all texts below the first are marks without letters, or one and the same."""
    below = texts[1:]
    return (
        bool(below)
        and all(map(is_mark, below))
        and (not any(map(str.isalnum, "".join(below))) or (len({*below}) == 1 and len(below) > 1))
    )


def _with_first_label(grid: Grid) -> Grid:
    """Return rows in which a label beside the unit of all counts stands in the row below it."""
    rows = list(grid)
    for k, ((_, row), (i, below)) in enumerate(itertools.pairwise(grid)):
        if not below or below[0].strip():
            continue
        texts = [text.strip() for text in row if text.strip()]
        alone = len(texts) == 2 and row[0].strip() == texts[0]
        if alone and _UNIT.fullmatch(texts[1]) and any(says_number(t) or is_mark(t) for t in below):
            rows[k], rows[k + 1] = (rows[k][0], ["", *row[1:]]), (i, [row[0], *below[1:]])
    return rows


def _is_unit(row: Sequence[str]) -> bool:
    """Return whether a row says nothing but what all counts are of."""
    if not row or row[0].strip():
        return False
    texts = {text.strip() for text in row} - {""}
    return len(texts) == 1 and _UNIT.fullmatch(texts.pop()) is not None


def _is_line(row: Sequence[str]) -> bool:
    """Return whether a row has signs alone, as a line between rows."""
    return not any(map(str.isalnum, "".join(row)))


def _is_note(row: Sequence[str]) -> bool:
    return _NOTE.fullmatch(row[0]) is not None
