"""Sheets: headings and rows of a text file, a workbook or a data frame, with every cell as text."""

import itertools
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import uncollected
from bayesrisk._base.disk.text import read_bytes
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables.sheets.bodies import NO_COUNTS, bodied, body_grid, body_lines, is_note
from bayesrisk.tables.sheets.encodings import decoded
from bayesrisk.tables.sheets.estimates import (
    refused_estimates,
    refused_units,
    survey_estimates,
    units_of_nobody,
)
from bayesrisk.tables.sheets.grids import (
    codes_above,
    grid_tables,
    series_below_names,
    text_grid,
    workbook_grids,
)
from bayesrisk.tables.sheets.heading_rows import Headed, headed
from bayesrisk.tables.sheets.legends import Legend
from bayesrisk.tables.sheets.lines import Grid, Line, count_columns, filled_texts, grid_lines, short
from bayesrisk.tables.sheets.records import says_money
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    OWN_UNIT,
    PATH,
    THOUSANDS,
    WHOLE,
    cut,
    is_date,
    is_mark,
    is_year,
    key,
    listing,
    plain_year,
    says_number,
    sex,
    total_word,
)

_BYTES = 2**26
_IN = "(?:in |en |em |i |w |v |в |у )"
#: A title or a note on the unit of all counts.
_THOUSANDS = re.compile(
    rf"[(\[【（]([\w ]+ )?{_IN}?({THOUSANDS}|(1[ .,])?000)( of \w+)?[)\]】）]|"
    r"\b(numbers|figures|data|persons|people|counts|values|levels|zahlen|angaben|chiffres|effectifs|"
    r"cifras|personas|dati|valori|dados|pessoas|cijfers|aantal(len)?|tal|antal)"
    rf"( \w+){{0,2}} {_IN}{THOUSANDS}|"
    r"(?<!per )\bthousand (persons|people|inhabitants|residents|households|employees|workers|"
    r"jobs)\b|"
    rf"(^|[(,;:：=–-])\W*{_IN}?{THOUSANDS}(\W*$|,? (unless|except|if not|sofern|soweit|wenn nicht|"
    r"sauf|salvo|tranne|tenzij|om inte|hvis ikke|o ile)\b)|"
    rf"\b(in|en) (?=[\d'’`]){THOUSANDS}",
    re.IGNORECASE,
)
EXPONENT = re.compile(r"unit mult(iplier)?( code)?")
_CLAUSE_ENDS = re.compile(r"[;:,—]|(?<!\btsd)\.(?=\s)", re.IGNORECASE)
_NOTE_MARK = re.compile(r" ?\[(foot)?notes?:? ?[\w, ]*\]", re.IGNORECASE)
_FEW_ROWS = 8  # left out that are listed in full
_PAIR, _MOST_SUMS = 2, 10  # tables; sums, one of which may fail
#: Reasons for leaving out rows that are not part of the table.
_NO_ROWS = (
    "numbers of columns",
    "the headings again",
    "the title again",
    "above the table",
    NO_COUNTS,
)
_FORMS = {
    "{": "JSON", **dict.fromkeys(("[[", "[{", '["'), "JSON of an API"),
    **{f"<{sign}": "a web page or XML" for sign in f"!?{string.ascii_letters}"},  # <5 is a label
    "CHARSET=": "a PC-Axis file", "AXIS-VERSION=": "a PC-Axis file", "%PDF": "a PDF",
    "PAR1": "Parquet", "\0": "bytes that are no text",
}  # fmt: skip


class Sheet(NamedTuple):
    """Headings and numbered rows of a table, and rows left out, with the reasons.

    ``part`` names the sheet of a workbook and the number of its tables read. ``tab`` is the sheet's
    name, ``number`` the number of sheets. ``alternatives`` are tables that may be read instead,
    with their numbers. ``fault`` says why this sheet cannot be read, ``unread`` why others cannot.
    ``encoding`` says how a text was read, and ``captions`` are lines above it. ``thousands`` says
    whether a title or a note gives all counts in units of 1,000. ``estimates`` are the words that
    reveal survey estimates. ``persons`` maps columns of such counts with decimals, written out in
    persons, to the unit of their last digit. ``legend`` holds other sheets' notes on marks and
    rounding.
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
    estimates: str = ""
    legend: Legend = ()

    @property
    def title(self) -> str:
        """The name of the file, the sheet of a workbook, and the way its text is read."""
        details = "; ".join(filter(None, (self.part, self.encoding)))
        return self.name + f" ({details})" * bool(details)

    def left_out(self) -> str:
        """Return the list of rows left out: those with numbers first, then others inside."""
        numbered = [_holds_numbers(text, reason) for _, text, reason in self.left]
        texts = [f"row {i} {cut(text, 60)!r} ({reason})" for i, text, reason in self.left]
        first, last = self.rows[0][0], self.rows[-1][0]
        ranks = [(not full, i > last or (i < first and not full))
                 for (i, _, _), full in zip(self.left, numbered, strict=True)]  # fmt: skip
        order = sorted(range(len(texts)), key=ranks.__getitem__)
        every = listing([texts[k] for k in order], 160)
        rows = listing(str(i) for (i, _, _), full in zip(self.left, numbered, strict=True) if full)
        many = any(numbered) and len(texts) > _FEW_ROWS
        return f"{sum(numbered)} with numbers (rows {rows}), all: {every}" if many else every

    def refused(self, fault: DataError, advice: str = "") -> DataError:
        """Return an error about this sheet that names its sheet of the workbook."""
        sentence = fault.sentence
        if self.tab and sentence.startswith(self.name) and "(sheet " not in sentence:
            sentence = f"{self.name} (sheet {self.tab!r}){sentence.removeprefix(self.name)}"
        return DataError(sentence, advice=fault.advice + advice)


def _holds_numbers(text: str, reason: str) -> bool:
    """Return whether a row left out has numbers beside a label."""
    if reason in _NO_ROWS or reason.startswith("another table"):
        return False
    if reason == "no count":  # percentages and rates; the text may be cut
        return True
    words = text.split(", ")
    return any(says_number(word) and not is_date(word) for word in words[1:])


def frame_sheets(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> list[Sheet]:
    """Return the sheets of one or several data frames."""
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
    """Return the sheet of a text file, or the best sheet of a workbook for an attack.

    A text file without ``encoding`` is UTF-8, or decoded as :func:`decoded` guesses.
    """
    raw = read_bytes(file, _BYTES)
    wanted = re.fullmatch(r"(.*)#(\d{1,4})", sheet or "", re.DOTALL)
    sheet, number = (wanted[1] or None, int(wanted[2])) if wanted else (sheet, 0)
    # A name that is not valid UTF-8 could not be written into any result.
    name = str(file).encode(errors="backslashreplace").decode()
    if raw[:4] == b"PK\x03\x04" or raw[:4] == b"\xd0\xcf\x11\xe0":
        grids, size, legend = workbook_grids(name, raw, sheet)
        alternatives = tuple((tab, grid, number) for tab, grid in grids or (("", []),))
        book = Sheet(name, [], [], [], alternatives=alternatives, number=size, legend=legend)
        return next(other_sheets(book))
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
    grid = text_grid(name, text)
    words = survey_estimates(grid)
    try:
        one = _numbered(name, grid, number)._replace(estimates=words)
    except DataError as fault:
        raise (refused_estimates(name, words) if words else fault) from fault
    read = f"read as {guess}; encoding=NAME reads it otherwise" if guess else ""
    return one._replace(encoding=read, tab=f"#{number or 1}" * bool(number or one.alternatives))


def other_sheets(before: Sheet) -> Iterator[Sheet]:
    """Yield the alternative sheets and tables of a file; those without a table hold the fault."""
    for position, (tab, grid, number) in enumerate(before.alternatives, 1):
        called = tab + f"#{number}" * (number > 1)
        part = f"sheet {called!r}"
        names = listing(dict.fromkeys(repr(t) for t, _, _ in before.alternatives if t != tab))
        part += f" of {before.number}; sheet=NAME reads another" * (before.number > 1)
        part += f": {names}" * bool(names)
        words = survey_estimates(grid, tab, {t: g for t, g, _ in before.alternatives})
        try:
            one = _numbered(before.name, grid, number, tab)
        except DataError as fault:
            refused = refused_estimates(before.name, words) if words else fault
            one = Sheet(before.name, [], [], [], fault=refused)
        part += f"; {one.part}" * bool(one.part)
        more = (*one.alternatives, *before.alternatives[position:])
        yield one._replace(
            part=part, tab=called, alternatives=more, number=before.number,
            encoding=before.encoding, estimates=words, legend=before.legend,
        )  # fmt: skip


def _numbered(name: str, grid: Grid, number: int, tab: str = "") -> Sheet:
    """Return the table of a grid with a number; the others are left out.

    Without a number it is the first readable table, with those that repeat it.
    """
    codes = codes_above(grid)
    left = [(grid[k][0], short(grid[k][1]), "codes above headings") for k in codes]
    named, facts_left = series_below_names([row for k, row in enumerate(grid) if k not in codes])
    tables = grid_tables(named)
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
            called = (Sheet(name, [], [], [], tab=f"{tab}#{n}") for n in itertools.count(1))
            unread = [str(one.refused(f)) for one, f in zip(called, faults, strict=False)]
            table = table._replace(unread=tuple(unread))
            break
    if table is None:
        raise faults[0]
    if not number:
        table, chosen = _with_repeats(name, table, tables, position)
    left += [
        (*next((i, short(row)) for i, row in part if any(row)),
         f"another table: sheet={tab}#{n} reads it")
        for n, part in enumerate(tables, 1) if n - 1 not in chosen
    ]  # fmt: skip
    left += facts_left
    left += [(i, short(row), "about the table") for part in facts for i, row in part if any(row)]
    fewer = not number and len(chosen) < len(tables)
    unread_tables = [n for n in range(1, len(tables) + 1) if fewer and n - 1 not in chosen]
    unread_tables.sort(key=lambda n: -_numbers(tables[n - 1]))
    read = f"{len(chosen)} of {len(tables)} tables {'is' if len(chosen) == 1 else 'are'} read"
    alternatives = tuple((tab, grid, n) for n in unread_tables)
    return table._replace(left=[*table.left, *left], part=read * fewer, alternatives=alternatives)


def _numbers(grid: Grid) -> int:
    """Return the number of texts of a grid that are numbers."""
    return sum(says_number(text) for _, row in grid for text in row)


def _are_facts(grid: Grid) -> bool:
    """Return whether rows are pairs of a name and a text, few of them counts: *units, Persons*."""
    rows = [row for _, row in grid if filled_texts(row) > 1]
    words = [[t for t in row[1:] if any(map(str.isalnum, t))] for row in rows]  # signs apart
    values = [row[1] for row, more in zip(rows, words, strict=True)
              if row[0] and row[1] and len(more) < 2]  # fmt: skip
    dates = {t for t in values if is_date(t) or is_year(t)}
    counts = sum((says_number(t) and t not in dates) or is_mark(t) for t in values[1:])
    return len(values) == len(rows) > 1 and 2 * counts < len(values) - 1


def _with_repeats(
    name: str, table: Sheet, tables: Sequence[Grid], first: int
) -> tuple[Sheet, set[int]]:
    """Return a table joined with those that repeat its headings and labels, and the set of these.

    The label of each in a further variable is its title, or its label heading. Label headings are
    used if they are sexes, or one table is the sum of the others. Without titles and repeated
    labels, the tables are joined as blocks of rows of one table.
    """
    parts = {first: table}
    for position in range(first + 1, len(tables)):
        try:
            other = _table(name, tables[position])
        except DataError:
            continue
        if other.heads[1:] == table.heads[1:] and _decimals(other) == _decimals(table):
            parts[position] = other
    corners = [part.heads[0] for part in parts.values()]
    several = len({*corners}) > 1
    if several and not _are_parted([*parts.values()]):
        parts, several = {k: p for k, p in parts.items() if p.heads == table.heads}, False
    if len(parts) < 2 or "section" in table.heads:
        return table, {first}
    labels = [list(map(tuple, _labels(part))) for part in parts.values()]
    most = max(labels, key=len)
    equal = all(one == [label for label in most if label in one] for one in labels)
    shared = set.intersection(*({*part.captions} for part in parts.values()))
    captions = [[c for c in part.captions if c not in shared] for part in parts.values()]
    titles = corners if several else [lines[-1] if lines else "" for lines in captions]
    rows = [row for part in parts.values() for row in part.rows]
    left = [line for part in parts.values() for line in part.left]
    thousands = any(part.thousands for part in parts.values())
    if len({*titles}) == len(titles) and all(titles) and equal:
        named = zip(titles, parts.values(), strict=True)
        rows = [(i, [title, *row]) for title, part in named for i, row in part.rows]
        left = [line for line in left if line[1] not in titles]
        heads = ["" if several else table.heads[0], *table.heads[1:]]
        table = table._replace(heads=["section", *heads])
    elif several or len({*titles}) > 1 or len({*itertools.chain(*labels)}) < len(rows):
        return table, {first}
    return table._replace(rows=rows, left=left, thousands=thousands), {*parts}


def _are_parted(parts: Sequence[Sheet]) -> bool:
    """Return whether first headings of tables are sexes, or one table is the sum of the others."""
    corners = [part.heads[0] for part in parts]
    if all(sex(text) is not None or total_word(text) == 2 for text in corners):
        return len({*corners}) == len(corners)
    counts = [
        {(*label, j): int(t) for label, (_, row) in zip(_labels(part), part.rows, strict=True)
         for j, t in enumerate(row) if j and t.isdecimal()}
        for part in parts
    ]  # fmt: skip
    shared = set.intersection(*({*one} for one in counts))
    equal = [sum(2 * n[place] == sum(m[place] for m in counts) for place in shared) for n in counts]
    several = len({*corners}) == len(corners) > _PAIR
    return several and _MOST_SUMS * max(equal) >= (_MOST_SUMS - 1) * len(shared) > 0


def _labels(table: Sheet) -> list[list[str]]:
    """Return the labels of each row: texts of the first column, and of columns of words."""
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
    """Return the table of a grid: headings, the rows below them, and the rows left out.

    Titles precede it: lines of one text, and blocks of rows without a number. Its headings are one
    row, or several if one fills gaps of that above. It ends with the last row of counts.
    """
    lines, units = grid_lines(grid)
    columns = count_columns(lines)
    table = headed(name, lines, columns)
    body, words = bodied(table, columns)
    try:
        row_lines, other_rows = body_lines(name, body, columns)
    except DataError as fault:
        named = units_of_nobody([line.row for line in lines])
        if not named:
            raise
        raise refused_units(name, named) from fault
    head, rows = body_grid(body, row_lines, columns)
    heads = [_NOTE_MARK.sub("", text).strip() or text for text in map(plain_year, head)]
    titles = [short(line.row) for line in table.above if filled_texts(line.row) in (1, 2)]
    captions = tuple(text for text in titles if not is_note([text]))
    left = [*units, *table.left, *words, *other_rows]
    thousands = _in_thousands(table, body.below, columns.labels)
    exceptions = [(i, row) for i, row in rows if thousands and any(map(OWN_UNIT.search, row))]
    left += [(i, short(row), "in a unit of its own") for i, row in exceptions]
    rows = [line for line in rows if line not in exceptions]
    return Sheet(name, heads, rows, left, thousands=thousands, captions=captions)


def thousands_in_rows(sheet: Sheet) -> bool:
    """Return whether a column gives counts in units of 1,000 in every row.

    It does so in words, or by the exponent 3 of SDMX.
    """
    columns = zip(*(row for _, row in sheet.rows), strict=True)
    constants = [(key(head), column[0]) for head, column in zip(sheet.heads, columns, strict=False)
                 if len({*column}) == 1]  # fmt: skip
    return any(
        _says_thousands(text) or (text == "3" and EXPONENT.fullmatch(head) is not None)
        for head, text in constants
    )


def _in_thousands(table: Headed, below: Sequence[Line], labels: Sequence[int]) -> bool:
    """Return whether a title, a note or a label heading gives all counts in units of 1,000."""
    notes = (text for line in (*table.above, *below) for text in line.row)
    corner = (row[j] for row in table.rows for j in labels)
    return any(map(_says_thousands, notes)) or any(map(_THOUSANDS.fullmatch, corner))


def _says_thousands(text: str) -> bool:
    """Return whether a text gives counts, and not money, in units of 1,000."""
    for match in _THOUSANDS.finditer(text):
        first = max((m.end() for m in _CLAUSE_ENDS.finditer(text, 0, match.start())), default=0)
        last = _CLAUSE_ENDS.search(text, match.end())
        if not says_money(text[first : last.start() if last else None]):
            return True
    return False
