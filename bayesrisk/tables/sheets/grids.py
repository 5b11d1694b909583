"""Grids: numbered rows of a text file or a workbook, with every cell as text."""

import csv
import io
import itertools
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bayesrisk._base.disk.text import named
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables.sheets.joined_headings import called_again
from bayesrisk.tables.sheets.legends import Legend, legend
from bayesrisk.tables.sheets.lines import Grid, Left, filled_texts, stands_again
from bayesrisk.tables.sheets.merged_headings import Merged, join_merged_headings
from bayesrisk.tables.sheets.texts import (
    NO_COUNT,
    WHOLE,
    is_date,
    is_mark,
    is_year,
    key,
    number_range,
    says_number,
)

_UNPACKED, _NOTES = 2**28, 2**10
_FACTS = 15  # rows about series
_OF_SEVERAL = ".."  # in place of a number merged over several rows
_FEW_WITHHELD = 2  # counts, and as many numbers
_TOP = 40  # rows in which headings may be
_DIGITS = 12  # of numbers with decimals
_PAIR = 2  # columns
_MOST_FEWER = 20  # the factor by which a sheet may have fewer numbers than another
#: Counts of all files together.
MOST = 2**20
FEWER = f"from 1 to {MOST} counts (give fewer rows, or columns.HEADING=ignored)"


def text_grid(file: str, text: str) -> Grid:
    """Return the rows of a text, split at the delimiter that gives most rows the same width.

    In a tie the tab wins, then the delimiter that splits into more fields.
    """
    text = text.rstrip(",;\t| \r\n") + "\n"
    if (length := text.count("\n")) > MOST + _NOTES:
        raise DataError(f"{file}: must hold {FEWER}, got {length} lines")
    best, grid = (0, False, 0), Grid()
    faults = []
    paired = all(line.count('"') % 2 == 0 for line in text.splitlines())
    for delimiter in ",;\t|":
        if delimiter not in text and delimiter != ",":
            continue
        try:
            split = list(_lines(text, delimiter, strict=not paired))
        except csv.Error:
            faults.append(delimiter)
            continue
        widths = Counter(len(row) for _, row in split if len(row) > 1).most_common(1)
        if widths and (rank := (widths[0][1], delimiter == "\t", widths[0][0])) > best:
            best, grid = rank, split
    if max(",;\t|", key=text.count) in faults and not best[1]:
        opened = _unclosed(text)
        raise DataError(f"{file}: row {opened}: a quote must be closed on its line")
    return _without_dimensions(grid)


def _unclosed(text: str) -> int:
    """Return the number of the first line with an open quote."""
    lines = text.splitlines()
    return next((i for i, line in enumerate(lines, 1) if line.count('"') % 2), len(lines))


def _lines(text: str, delimiter: str, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield rows, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
    line = 1
    for row in reader:  # a text of several lines is joined if it holds no delimiter
        several = reader.line_num > line and any("\n" in t and delimiter not in t for t in row)
        yield line, [_one_line(t) if delimiter not in t else t for t in row] if several else row
        line = reader.line_num + 1


def _without_dimensions(grid: Grid) -> Grid:
    r"""Return a grid with a first column of several dimensions (``sex,geo\TIME``) split."""
    first = next((row[0] for _, row in grid if row), "")
    dimensions, slash, _ = first.partition("\\")
    number = dimensions.count(",")
    if not slash or any(row and row[0].count(",") != number for _, row in grid):
        return grid
    heads = [*dimensions.split(","), *next(row for _, row in grid if row)[1:]]
    split = [(line, [*row[0].split(","), *row[1:]]) for line, row in grid if row]
    return [(split[0][0], heads), *split[1:]]


def workbook_grids(
    file: str, raw: bytes, wanted: str | None
) -> tuple[tuple[tuple[str, Grid], ...], int, Legend]:
    """Return the names and rows of sheets, best first, their number in the file, and the legend.

    The sheet asked for comes first, then sheets that withhold counts, then those with more numbers.
    Sheets with few numbers are left out.
    """
    if raw[:2] == b"PK":
        with named(file), zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(part.file_size for part in archive.infolist())
            if size > _UNPACKED:
                raise DataError(f"{file}: must unpack to at most {_UNPACKED} bytes, got {size}")
    import python_calamine  # slow to load

    try:
        with named(file, also=(python_calamine.CalamineError,)):
            book = python_calamine.load_workbook(io.BytesIO(raw))
    except DataError as fault:
        raise fault.advised("; save it as .xlsx, or its sheets as CSV") from fault
    with named(file, also=(python_calamine.CalamineError,)):
        if wanted is not None and wanted not in book.sheet_names:
            have = ", ".join(book.sheet_names)
            raise ArgumentError(f"sheet must be one of {have}, got {quote(wanted)}")
        grids = {name: _sheet_grid(book.get_sheet_by_name(name)) for name in book.sheet_names}
    counts = {n: sum(says_number(text) for _, row in g for text in row) for n, g in grids.items()}
    most = max(counts.values(), default=0)
    names = [n for n, count in counts.items() if n == wanted or count * _MOST_FEWER >= most]
    withheld = {n: wanted is None and withheld_counts(grids[n]) >= _FEW_WITHHELD for n in names}
    names.sort(key=lambda n: (n != wanted, not withheld[n], -counts[n]))
    if names and wanted is None:  # of sheets with one form, the first in the file comes first
        same_kind = (n for n in grids if n in names and withheld[n] == withheld[names[0]])
        candidates = (
            n for n in same_kind if n == names[0] or _share_form(grids[n], grids[names[0]])
        )
        first = next(candidates, names[0])
        names.sort(key=lambda n: n != first)
    return tuple((n, grids[n]) for n in names), len(grids), legend(grids)


def withheld_counts(grid: Grid) -> int:
    """Return the number of withheld counts, such as <5 or *, in columns with numbers.

    Marks for no count or an unknown one are not included.
    """
    rows = [[text.strip() for text in row[1:]] for _, row in grid if any(map(says_number, row))]
    number = 0
    for column in itertools.zip_longest(*rows, fillvalue=""):
        texts = Counter(filter(None, column))
        numbers = sum(n for t, n in texts.items() if WHOLE.fullmatch(t))
        marks = sum(n for t, n in texts.items() if is_mark(t))
        hidden = sum(n for t, n in texts.items() if _is_withheld(t))
        counted = numbers >= _FEW_WITHHELD and 2 * (numbers + marks + hidden) >= texts.total()
        number += hidden * counted
    return number


def _is_withheld(text: str) -> bool:
    ends = None if WHOLE.fullmatch(text) else number_range(text)
    if ends:  # 2015-2020 is a time
        return ends[0] < ends[1] and not is_year(str(ends[0]))
    return is_mark(text) and not NO_COUNT.fullmatch(text)


def _share_form(grid: Grid, other: Grid) -> bool:
    """Return whether two sheets share most headings and have similarly many whole numbers."""
    numbers, more = (sum(sum(map(_is_count, row)) for _, row in g) for g in (grid, other))
    return share_words(grid, other, _is_count) and 2 * numbers >= more


def share_words(grid: Grid, other: Grid, is_number: Callable[[str], bool] = says_number) -> bool:
    """Return whether two sheets share most words of their rows without a number."""
    words, more = (
        {t for _, row in g if not any(map(is_number, row)) for t in row if any(map(str.isalpha, t))}
        for g in (grid, other)
    )
    return 3 * len(words & more) >= 2 * max(len(words), len(more), 1)


def _is_count(text: str) -> bool:
    return WHOLE.fullmatch(text) is not None and text != "0" and not is_date(text)


def _sheet_grid(sheet: Any) -> Grid:
    """Return the rows of a sheet, with merged cells repeated in each nonempty row below.

    Rows begin in the first nonempty column, and columns of merged cells are counted from it.
    """
    rows = [[_text(value) for value in row] for row in sheet.iter_rows()]
    first = sheet.start[1] if sheet.start else 0
    cells = [
        Merged(top, left - first, bottom, right - first)
        for (top, left), (bottom, right) in sheet.merged_cell_ranges or () if left >= first
    ]  # fmt: skip
    join_merged_headings(rows, cells)
    filled = [any(map(str.strip, row)) for row in rows]
    merged = {(cell.top, cell.left): cell.bottom for cell in cells}
    _part_numbers(rows, merged)
    for (top, left), bottom in merged.items():
        for row in itertools.compress(rows[top + 1 : bottom + 1], filled[top + 1 :]):
            if left < len(row) and left < len(rows[top]):
                row[left] = row[left] or rows[top][left]
    return [*enumerate(rows, 1)]


def _part_numbers(rows: list[list[str]], merged: Mapping[tuple[int, int], int]) -> None:
    """Assign numbers merged over rows of different labels to one of these rows, or to none.

    Several rows whose numbers are merged only with the next row are section names: the numbers
    belong to the label below. Otherwise they may belong to all labels.
    """
    parted = dict[int, list[int]]()
    for top in sorted({top for top, _ in merged if top < len(rows)}):
        row = rows[top]
        below = rows[top + 1] if top + 1 < len(rows) else []
        label = next((j for j, text in enumerate(row) if text.strip()), 0)
        numbers = [j for j, t in enumerate(row) if says_number(t) and not is_date(t.strip())]
        split = [j for j in numbers if merged.get((top, j), top) > top]
        free = all(j in split or not below[j].strip() for j in numbers) if below else False
        if below and 2 * len(split) > len(numbers) and free and label not in numbers:
            named = (top, label) not in merged and below[label].strip() not in ("", row[label])
            headed = any(filled_texts(r) > 1 for r in rows[:top])
            if headed and named and not WHOLE.fullmatch(below[label].strip()):
                counts = [j for j, t in enumerate(row) if says_number(t)]  # 2018 may be one
                parted[top] = [j for j in counts if j in numbers or (top, j) in merged]
    for top, columns in parted.items():
        section = len(parted) > 1 and all(merged.get((top, j), top) <= top + 1 for j in columns)
        for j in columns:
            text = rows[top][j] if section else _OF_SEVERAL
            rows[top + 1][j], rows[top][j] = text, "" if section else text


def _text(value: object) -> str:
    """Return a cell as text on one line, with whole numbers without a decimal point.

    Numbers are rounded as spreadsheets show them, since sums may miss whole numbers by tiny
    fractions.
    """
    if isinstance(value, float) and not value.is_integer():
        value = float(f"{value:.{_DIGITS}g}")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _one_line(str(value).removesuffix(" 00:00:00"))


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)


def codes_above(grid: Grid) -> list[int]:
    """Return the positions of a row of codes above headings, and of rows of marks below it.

    Codes are different numbers of equal length that are not all years. Each stands above a word and
    a number, and all other numbers are left of them. No row above has numbers there, or the same
    headings, since the codes would then be counts.
    """
    rows = [[text.strip() for text in row] for _, row in grid[:_TOP]]
    for k, row in enumerate(rows):
        places = [j for j, text in enumerate(row) if len(text) > 2 and text.isdecimal()]
        codes = {row[j] for j in places}
        unlike = len({*map(len, codes)}) != 1 or all(map(is_year, codes))
        if unlike or len(codes) == 1 or not len(codes) == len(places) >= filled_texts(row) - 1:
            continue
        rest = [below for below in rows[k + 1 :] if len(below) >= len(row)]
        signs = next((n for n, r in enumerate(rest) if not all(is_mark(r[j]) for j in places)), 0)
        for head, below in itertools.pairwise(rest[signs:][:2]):
            words = all(any(map(str.isalpha, head[j])) and not is_mark(head[j]) for j in places)
            numbers = [j for j in range(places[0], len(below)) if says_number(below[j])]
            counted = any(says_number(t) for above in rows[:k] for t in above[places[0] :])
            if words and numbers == places and not counted and head not in rows[:k]:
                return [*range(k, k + 1 + signs)]
    return []


def series_below_names(grid: Grid) -> tuple[Grid, Left]:
    """Return the rows of series with their names as headings, and the rows of facts as left out.

    This is the form of the Australian statistical office. The first row has names such as *Male ; 0
    ;*. Units, dates and finally series numbers stand below.
    """
    keys = [key(row[0].strip()) if row else "" for _, row in grid[:_FACTS]]
    last = keys.index("series id") if "series id" in keys[1:] else 0
    if not last or keys[0] or not all(keys[1:last]):
        return grid, Left()
    names = ["; ".join(filter(None, re.split(r"\s*;\s*", text.strip()))) for text in grid[0][1]]
    rows = dict(zip(keys, (row for _, row in grid), strict=False))
    units = {*filter(None, rows.get("unit", [])[1:])}
    title = [(grid[0][0], [f"Unit: {min(units)}"])] if len(units) == 1 else []
    left = [(i, ", ".join(row[:2]), "about the table") for i, row in grid[1 : last + 1]]
    return [*title, (grid[0][0], ["Period", *names[1:]]), *grid[last + 1 :]], left


def grid_tables(grid: Grid) -> list[Grid]:
    """Return the tables of a grid, which stand below or beside each other."""
    results = []
    for band in _bands(grid):
        starts = [*_starts(band), len(band)]
        parts = [band[first:end] for first, end in itertools.pairwise(starts)]
        results += parts if len(parts) == 1 else [b for part in parts for b in _bands(part)]
    return results


def _bands(grid: Grid) -> list[Grid]:
    """Return a grid cut at empty columns that have a table with its own labels on each side."""
    rows = [(i, [text.strip() for text in row]) for i, row in grid]
    full = [row for _, row in rows if filled_texts(row) > 1]
    width = max(map(len, full), default=0)
    empty = {*range(width)}
    for row in full:
        empty = {j for j in empty if j >= len(row) or not row[j]}
        if not empty:
            return [grid]
    edges = [j for j in range(width) if j not in empty and (not j or j - 1 in empty)]
    cuts = [0]
    for j, edge in enumerate(edges[1:], 1):
        if not _is_table([row[cuts[-1] : edge] for row in full]):
            continue
        ends = [*edges[j + 1 :], width]  # an empty column may stand after the labels, too
        if any(_is_table([row[edge:end] for row in full]) for end in ends[:_PAIR]):
            cuts.append(edge)
    if len(cuts) < 2:
        return [grid]
    return [[(i, row[a:b]) for i, row in grid] for a, b in itertools.pairwise([*cuts, None])]


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows have distinct labels, and numbers after them."""
    full = [row for row in rows if filled_texts(row) > 1]
    columns = [*itertools.zip_longest(*full, fillvalue="")]
    first = next((j for j, column in enumerate(columns) if any(column)), 0)
    numeric = [
        2 * sum(map(says_number, column)) > sum(map(bool, column))
        and any(WHOLE.fullmatch(t) and not (j == first and is_date(t)) for t in column[1:])
        for j, column in enumerate(columns)
    ]
    counts = [c for c, number in zip(columns, numeric, strict=True) if number]
    counted = [i for i in range(len(full)) if any(says_number(c[i]) for c in counts)]
    labels = [c for c, number in zip(columns, numeric, strict=True) if not number]
    several = {tuple(column[i] for column in labels) for i in counted}
    return bool(counts) and not numeric[first] and len(several) == len(counted) > 1


def _starts(grid: Grid) -> list[int]:
    """Return the first row of each table in a stack of tables, beginning with 0.

    A table starts with headings: words above numbers, after rows of another table, perhaps below a
    title. Headings that repeat the previous table's need a title to start a table. Numbers are
    headings beside the previous table's label heading, and years below a title or an empty row.
    """
    starts, top, counted = [0], list[str](), 0  # counted rows; headings above the first
    above = list[list[str]]()  # all rows of headings
    block, title, gap = list[int](), -1, False  # rows without numbers, before rows with numbers
    near = False  # the row before is not empty
    for position, (_, row) in enumerate(grid):
        texts = [text.strip() for text in row]
        if not any(texts):
            gap, near = True, False
            continue
        adjacent, near = near, True
        if counted > 1 and title < 0 and stands_again(texts, top):
            continue
        if filled_texts(texts) < 2:
            if not (block and adjacent and texts[0]):  # else the name of the labels, below headings
                title, block = (position if title < 0 or block else title), []
            continue
        label = min(
            next(j for j, text in enumerate(line) if text) for line in (texts, top or texts)
        )
        filled = [text for text in texts[label + 1 :] if text]
        repeats = counted > 1 and texts[1:] == top[1:] and texts[0] != top[0]  # such as years
        separate = counted > 1 and (title >= 0 or gap) and not block and len({*filled}) > 1
        called = separate and (texts[label] == top[label] or _are_years(filled))
        numbers = [j for j, text in enumerate(texts) if text and says_number(text)]
        top = top or texts
        above_row = [text.strip() for text in grid[block[-1]][1]] if block else []
        merged = len(above_row) == len(texts) and called_again(above_row, texts, numbers)
        if repeats or called or merged or not (numbers or all(map(is_mark, filled))):
            block.append(position)
            continue
        if counted > 1 and block:
            heads = [[text.strip() for text in grid[k][1]] for k in block]
            first = title if title >= 0 else block[0]
            if _names(heads, numbers, isolated=gap or title >= 0) and (
                title >= 0 or (heads != above and heads != above[-1:])
            ):
                going_on = title >= 0 and re.search(r"\bcont(inued|\.|'d)", grid[title][1][0])
                starts += [] if going_on else [first]
                top, above = heads[-1], heads
        elif block and not counted:
            counted, above = 1, [[text.strip() for text in grid[k][1]] for k in block]
            top = above[-1]
        withheld = not all(map(str.isalpha, filled))  # letters may be headings
        counted, block, title, gap = counted + bool(numbers or withheld), [], -1, False
    return starts


def _are_years(texts: Sequence[str]) -> bool:
    """Return whether texts are years in equal steps."""
    years = [int(t) for t in texts if is_year(t)]
    steps = {b - a for a, b in itertools.pairwise(years)}
    return len(years) == len(texts) and len(steps) == 1 and steps != {0}


def _names(heads: Sequence[Sequence[str]], numbers: Sequence[int], *, isolated: bool) -> bool:
    """Return whether rows are headings of numbers: words without gaps, distinct unless isolated."""
    texts = [next((h[j] for h in heads[::-1] if j < len(h) and h[j]), "") for j in numbers]
    if not texts or not all(texts):
        return False
    if 0 not in numbers and not any(map(str.isalnum, "".join(texts))):  # else a legend of signs
        return False
    if len(texts) > 1 == len({*texts}) and is_mark(texts[0]) and not texts[0].isalnum():
        return False  # counts that are withheld
    return isolated or (1 < len(texts) == len({*texts}) and not any(map(is_mark, texts)))
