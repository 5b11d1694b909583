"""Grids: rows of a text file or a workbook with their numbers, every cell a text."""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bayesrisk._base.disk.text import named
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables.reading.texts import is_mark, says_number

_UNPACKED, _NOTES = 2**28, 2**10
#: Counts of all files together.
MOST = 2**20
FEWER = f"from 1 to {MOST} counts (give fewer rows, or columns.HEADING=ignored)"
Grid = list[tuple[int, list[str]]]


def text_grid(file: str, text: str) -> Grid:
    """Return the rows of a text, split at the delimiter that most rows have in the same number.

    Of two such delimiters a tab wins, which no text holds, and then that which splits into more.
    """
    text = text.rstrip(",;\t| \r\n") + "\n"
    if (length := text.count("\n")) > MOST + _NOTES:
        raise DataError(f"{file}: must hold {FEWER}, got {length} lines")
    best, grid = (0, False, 0), Grid()
    faults = []
    for delimiter in ",;\t|":
        if delimiter not in text and delimiter != ",":
            continue
        try:
            split = list(_lines(text, delimiter))
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
    """Return the number of the first line in which a quote is left open."""
    lines = text.splitlines()
    return next((i for i, line in enumerate(lines, 1) if line.count('"') % 2), len(lines))


def _lines(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of the line that each begins at."""
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    for row in reader:  # a text of several lines is one where it holds no delimiter
        several = reader.line_num > line and any("\n" in t and delimiter not in t for t in row)
        yield line, [_one_line(t) if delimiter not in t else t for t in row] if several else row
        line = reader.line_num + 1


def _without_dimensions(grid: Grid) -> Grid:
    r"""Return a grid whose first column, several dimensions such as ``sex,geo\TIME``, is split."""
    first = next((row[0] for _, row in grid if row), "")
    dimensions, slash, _ = first.partition("\\")
    number = dimensions.count(",")
    if not slash or any(row and row[0].count(",") != number for _, row in grid):
        return grid
    heads = [*dimensions.split(","), *next(row for _, row in grid if row)[1:]]
    split = [(line, [*row[0].split(","), *row[1:]]) for line, row in grid if row]
    return [(split[0][0], heads), *split[1:]]


def workbook_grid(file: str, raw: bytes, wanted: str | None) -> tuple[Grid, str, int]:
    """Return the rows of the sheet that is asked for, or of that with the most counts.

    And the name of the sheet, and how many sheets there are.
    """
    if raw[:2] == b"PK":
        with named(file), zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(part.file_size for part in archive.infolist())
            if size > _UNPACKED:
                raise DataError(f"{file}: must unpack to at most {_UNPACKED} bytes, got {size}")
    import python_calamine  # slow to load

    with named(file, also=(python_calamine.CalamineError,)):
        book = python_calamine.load_workbook(io.BytesIO(raw))
        names = [wanted] if wanted else book.sheet_names
        if wanted is not None and wanted not in book.sheet_names:
            have = ", ".join(book.sheet_names)
            raise ArgumentError(f"sheet must be one of {have}, got {quote(wanted)}")
        grids = {name: _sheet_grid(book.get_sheet_by_name(name)) for name in names}
        number = len(book.sheet_names)
    counts = {n: sum(says_number(text) for _, row in g for text in row) for n, g in grids.items()}
    name = max(counts, key=counts.__getitem__, default="")
    return grids.get(name, []), name, number


def _sheet_grid(sheet: Any) -> Grid:
    """Return the rows of a sheet; a cell that is merged with those below it stands in each."""
    rows = [[_text(value) for value in row] for row in sheet.iter_rows()]
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
        for row in rows[top + 1 : bottom + 1]:
            if left < len(row) and left < len(rows[top]):
                row[left] = row[left] or rows[top][left]
    return [*enumerate(rows, 1)]


def _text(value: object) -> str:
    """Return a cell of a workbook as text on one line: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _one_line(str(value).removesuffix(" 00:00:00"))


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)


def table_starts(grid: Grid) -> list[int]:
    """Return where the tables of a grid begin, which stand one below the other; 0 for the first.

    A table begins with headings: words above numbers, after the rows of another table, and perhaps
    a title.  Headings that are those of the table above begin none without a title.
    """
    starts, top, counted = [0], list[str](), 0  # rows that count, and headings above the first
    block, title, gap = list[int](), -1, False  # rows without numbers before those with some
    for position, (_, row) in enumerate(grid):
        texts = [text.strip() for text in row]
        if not any(texts):
            gap = True
            continue
        if len(texts) - texts.count("") < 2:
            title, block = (position if title < 0 or block else title), []
            continue
        repeated = counted > 1 and texts[1:] == top[1:] and texts[0] != top[0]  # such as years
        numbers = [j for j, text in enumerate(texts) if text and says_number(text)]
        top = top or texts
        if repeated or not (numbers or all(map(is_mark, filter(None, texts[1:])))):
            block.append(position)
            continue
        if counted > 1 and block:
            head = [text.strip() for text in grid[block[-1]][1]]
            first = title if title >= 0 else block[0]
            if _names(head, numbers, isolated=gap or title >= 0) and (title >= 0 or head != top):
                going_on = title >= 0 and re.search(r"\bcont(inued|\.|'d)", grid[title][1][0])
                starts += [] if going_on else [first]
                top = head
        elif block and not counted:
            counted, top = 1, [text.strip() for text in grid[block[-1]][1]]
        counted, block, title, gap = counted + bool(numbers), [], -1, False
    return starts


def _names(head: Sequence[str], numbers: Sequence[int], *, isolated: bool) -> bool:
    """Return whether texts are headings of numbers: words, different ones without a gap."""
    texts = [head[j] if j < len(head) else "" for j in numbers]
    if not texts or not all(texts):
        return False
    return isolated or (1 < len(texts) == len({*texts}) and not any(map(is_mark, texts)))
