"""Tables as agencies publish them: long or wide, with totals, marks, ranges and rounding.

Each published count becomes a cell: a label, or a group of labels, of some variables, and a text.
What these mean is guessed by the rules below.  A guess on which it depends what is proved is a
question, and tables are made when all questions are answered.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations, product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.text import read_bytes, read_toml
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables._grammar import group_text
from bayesrisk.tables.likelihoods import (
    UNBOUNDED,
    Likelihood,
    RoundingSpec,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables.workload import Workload

_BYTES, _MOST, _NOTES = 2**26, 2**17, 2**10
#: Columns of results, which no variable may be called.
_RESERVED = re.compile(
    "all|at_least|cell|error|file|known|(low|high)(_stated)?|number|place|probability|records?|row|"
    "sentence|stated|status|table"
)
_REST = "others"  # the label of records that a total counts and no other row does

# -----------------------------------------------------------------------------
# Texts: counts, ranges and marks; totals; groups of ages or amounts.


_NUMBER = r"(\d{1,3}(?:[,'’\u00a0\u2009\u202f ]\d{3})+|\d+)(?:\.0+)?"
_WHOLE = re.compile(_NUMBER)
_RANGES: dict[str, Callable[..., tuple[int, int]]] = {
    _NUMBER: lambda a: (a, a),
    rf"{_NUMBER} ?(?:-|–|—|to) ?{_NUMBER}": lambda a, b: (a, b),
    rf"(?:<|under|below|fewer than|less than) ?{_NUMBER}": lambda a: (0, a - 1),
    rf"(?:<=|≤|up to|at most) ?{_NUMBER}": lambda a: (0, a),
    rf"(?:>|over|more than) ?{_NUMBER}": lambda a: (a + 1, UNBOUNDED),
    rf"(?:>=|≥|at least) ?{_NUMBER}": lambda a: (a, UNBOUNDED),
    rf"{_NUMBER} ?(?:\+|(?:and|or) (?:more|over|above|older))": lambda a: (a, UNBOUNDED),
}
_FLAGGED = re.compile(rf"{_NUMBER} ?[(\[]?([A-Za-z*†‡#^~]{{1,3}})[)\]]?")
_MARK = re.compile(
    r"[^\w\s]{0,4}[a-z]{0,2}[^\w\s]{0,2}|n[./]a\.?|\[?low\]?|nan|null|none|missing|suppressed|"
    r"withheld|redacted|confidential|unreliable|not (?:available|applicable|shown|published)",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(?:grand )?total(?: - [\w ]+|,? (?:persons|people|population|all \w+))?|persons|people|t|"
    r"overall|all(?! other)(?: [\w-]+){0,2}|both(?: \w+)?",
    re.IGNORECASE,
)
_AGE = re.compile(r"\b(years?|yrs?)( old| of age)?\b|\b(ages?|aged)\b|\by ?(?=\d|lt|ge)")
_SYNONYMS = {"m": "male", "males": "male", "f": "female", "females": "female"}
_COUNT = re.compile(r"n|obs(ervations?| value)?|counts?|numbers?|values?|frequency|records")
_FLAG = re.compile(r"(.* )?(flags?|status|symbols?)")
_NO_COUNT = re.compile(r".*(%|\b(percent(age)?|rate|share|proportion|(foot)?notes?)\b).*")
_GROUP = re.compile(r"([a-z]+ )?(age|band|group|year)s?( (group|band|range))?")
_CODE = re.compile(r" ?\b(code|id|name|label)\b")


def _key(text: str) -> str:
    """Return the spelling by which labels and headings are compared."""
    plain = " ".join(re.sub("[–—]", "-", text).replace("_", " ").split()).casefold()
    return _SYNONYMS.get(plain, plain)


def _range(text: str) -> tuple[int, int] | None:
    """Return the smallest and the largest number that a text such as ``1-4`` or ``<5`` says."""
    for pattern, ends in _RANGES.items():
        if len(text) <= 80 and (match := re.fullmatch(pattern, text, re.IGNORECASE)):
            low, high = ends(*(int(re.sub(r"\D", "", part)) for part in match.groups()))
            return (low, high) if low <= high <= UNBOUNDED else None
    return None


def _interval(label: str) -> tuple[int, int] | None:
    """Return the ages or amounts of a group such as ``Under 5 years`` or ``Y_GE65``."""
    text = " ".join(_AGE.sub("", _key(label)).split())
    return _range(re.sub(r"^ge ?(?=\d)", ">=", re.sub(r"^lt ?(?=\d)", "<", text)))


def _span(low: int, high: int) -> str:
    return f"{low}+" if high >= UNBOUNDED - 1 else str(low) if low == high else f"{low}-{high}"


def _listing(texts: Iterable[str]) -> str:
    parts = [text if len(text) <= 40 else f"{text[:40]}…" for text in texts]
    return ", ".join(parts[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")


# -----------------------------------------------------------------------------
# What is assumed, by names such as ``counts``, ``marks.*`` and ``labels.region.England``.


_CHOICES = {
    "totals": ("complete", "partial"),
    "absent": ("unknown", "zero"),
    "blank": ("above", "total"),
}


def assumptions(options: Mapping[str, Any]) -> dict[str, str]:
    """Return assumptions as texts by name; ``assume`` is a file that the others change."""
    values = dict(options)
    file = values.pop("assume", None)
    choices = {} if file is None else _flat(read_toml(check.path(file, "assume")))
    choices |= _flat(values)
    for name, text in choices.items():
        section = name.partition(".")[0]
        if section not in ("counts", "marks", "columns", "labels", *_CHOICES):
            raise ArgumentError(
                f"assumptions must be counts, marks, columns, labels, {', '.join(_CHOICES)} or "
                f"assume, got {quote(name)}"
            )
        bound, good = " or ".join(_CHOICES.get(section, ("a text",))), isinstance(text, str)
        if section == "counts":
            bound = "exact, nearest-BASE or random-BASE"
            good = re.fullmatch(r"exact|(nearest|random)-[1-9]\d{0,8}", str(text)) is not None
        elif section == "marks":
            bound = "a range such as 1-4, withheld (any count) or note (the count beside holds)"
            good = text in ("withheld", "note") or _range(str(text)) is not None
        elif section in _CHOICES:
            good = text in _CHOICES[section]
        if not good:
            raise ArgumentError(f"{name[:80]} must be {bound}, got {quote(text)}")
    return choices


def setting(text: str, sheets: Sequence["Sheet"]) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``; both may hold equals signs.

    The name is the longest one about a heading, a file or a text of the sheets; where none is, all
    before the last sign.
    """
    places = [match.start() for match in re.finditer("=", text)]
    splits = [(text[:i], text[i + 1 :]) for i in reversed(places)]
    words = set[str]()
    for sheet in sheets if len(splits) > 1 else ():
        cells = {cell for _, row in sheet.rows for cell in row}
        heads = {part for head in sheet.heads for part in (head, *head.split("!!"))}
        words |= {*map(_key, cells | heads | {Path(sheet.name).name})}
    for name, value in splits:
        section, _, rest = name.partition(".")
        label = rest.partition(".")[2] if section == "labels" else rest
        if section in ("counts", "marks", "columns", "labels") and _key(label) in words:
            return name, value
    return splits[0]


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{before}{key}.") if nested else {f"{before}{key}": value}
    return flat


# -----------------------------------------------------------------------------
# Sheets: the rows of a file or a frame below their headings, every cell as text.


class Sheet(NamedTuple):
    """Headings, and rows with their numbers in the file; ``notes`` are rows left out."""

    name: str
    heads: list[str]
    rows: list[tuple[int, list[str]]]
    notes: tuple[tuple[int, str], ...] = ()


def frame_sheets(frames: pd.DataFrame | Sequence[pd.DataFrame]) -> list[Sheet]:
    """Return the sheets of a data frame or several."""
    several = frames if isinstance(frames, list | tuple) else [frames]
    sheets = []
    for number, frame in enumerate(several, 1):
        table = check.frame(frame, "frame")
        table = table.reset_index() if any(n is not None for n in table.index.names) else table
        columns: list[Any] = list(table.columns)
        heads = ["!!".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in columns]
        texts = [
            ["" if pd.isna(value) else str(value).strip() for value in row]
            for row in table.itertuples(index=False, name=None)
        ]
        sheets.append(Sheet(f"frame {number}", heads, list(enumerate(texts, 1))))
    return sheets


def file_sheet(file: Path) -> Sheet:
    """Return the sheet of a text file: its delimiter, headings and rows are found by rule.

    The delimiter is that which most rows have in the same number.  The first row with two texts is
    that of the headings; where it has gaps, it is joined with the next.  Lines of one text are
    titles before it, and notes below the last row, which stand in the first column.
    """
    raw = read_bytes(file, _BYTES)
    coding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(coding)
    except UnicodeError:
        text = raw.decode("cp1252", errors="replace")
    text = text.rstrip(",;\t| \r\n") + "\n"  # an open quote takes in the line feed
    if (length := text.count("\n")) > _MOST + _NOTES:
        raise DataError(f"{file}: must hold from 1 to {_MOST} counts, got {length} lines")
    often, width, grid = 0, 0, list[list[str]]()
    for delimiter in ",;\t|":
        try:
            split = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise DataError(f"{file}: cannot be read: {error}") from error
        widths = Counter(len(row) for row in split if len(row) > 1).most_common(1)
        if widths and widths[0][1] > often:
            (width, often), grid = widths[0], split
    lines = [
        (i, [c.strip() for c in (row + [""] * width)[:width]]) for i, row in enumerate(grid, 1)
    ]
    filled = {i for i, row in lines if sum(map(bool, row)) > 1}
    if len(filled) < 2:
        raise DataError(f"{file}: must hold headings and rows of counts, got none")
    first, last = min(filled), max(filled)
    notes = [(i, row) for i, row in lines if not first <= i <= last and any(row)]
    rows = [(i, row) for i, row in lines if first <= i <= last and any(row)]
    for i, row in [*notes, *rows]:
        whole = grid[i - 1]
        if any(map(str.strip, whole[width:])):
            raise DataError(
                f"{file}: row {i}: must have {width} columns, got {len(whole)}: {quote(whole)}; a "
                'text or number with a delimiter stands in quotes ("1,234"), or the row is removed'
            )
        if i != first and any("\n" in text or "\r" in text for text in whole):
            raise DataError(f"{file}: row {i}: a quote must be closed on its line")
        if first < i <= last and i not in filled:
            raise DataError(f"{file}: row {i}: must be a row of the table, got {quote(row[:3])}")
        if i > last and (not row[0] or _range(row[0])):
            text = "must be a row of the table or a note in the first column"
            raise DataError(f"{file}: row {i}: {text}, got {quote(row[:3])}")
    heads = rows.pop(0)[1]
    if rows and any(a and not b for a, b in pairwise(heads)):
        for i in range(1, width):
            heads[i] = heads[i] or heads[i - 1]
        heads = [
            f"{a}!!{b}" if a and b else a or b for a, b in zip(heads, rows.pop(0)[1], strict=True)
        ]
    # A name of bytes that are no UTF-8 could not be written into any result.
    called = str(file).encode(errors="backslashreplace").decode()
    return Sheet(called, heads, rows, tuple((i, "".join(row)) for i, row in notes))


# -----------------------------------------------------------------------------
# From sheets to cells: which columns are variables, and which are counts of what.


class Cell(NamedTuple):
    """A published count: where it stands, the label of each variable, and its text."""

    file: str
    row: int
    column: str
    labels: dict[str, str]
    text: str

    def refuse(self, must: str) -> DataError:
        """Return the error that names where it stands."""
        location = f"{self.file}: row {self.row}, column {quote(self.column)}"
        return DataError(f"{location}: must {must}, got {quote(self.text)}")


class _Reader:
    """Sheets as cells, in ``lines`` what was taken for what, and the ``questions`` with guesses."""

    def __init__(self, rules: Mapping[str, str], sheets: Sequence[Sheet]) -> None:
        self.rules = rules
        self.lines: list[str] = []
        self.questions: dict[str, tuple[str, str]] = {}
        self.kinds = set[str]()
        self.columns = self.section("columns")
        #: Headings with the one value that they have in every row of every file.
        every = [
            {
                (_key(head), values.pop())
                for i, head in enumerate(sheet.heads)
                if len(values := {row[i] for _, row in sheet.rows}) == 1
            }
            for sheet in sheets
        ]
        self.fixed = set.intersection(*every) if every else set()

    def section(self, name: str) -> dict[str, str]:
        """Return the assumptions about headings or labels, by their spelling."""
        size = len(name) + 1
        part = {k: v for k, v in self.rules.items() if k[:size].casefold() == f"{name}.".casefold()}
        return {_key(k[size:]): v for k, v in part.items()}

    def ask(self, name: str, guess: str, text: str) -> str:
        """Return the answer to a question; without one note it and return the guess."""
        if name not in self.rules:
            self.questions[name] = guess, text
        return self.rules.get(name, guess)

    def cells(self, sheet: Sheet) -> Iterator[Cell]:
        """Yield the cells of a sheet."""
        names, counts, flags = self._roles(sheet)
        keys: dict[tuple[tuple[str, str], ...], None] = {}
        above: dict[str, str] = {}
        for row, texts in sheet.rows:
            row_labels: dict[str, str] = {}
            for column, name in names.items():
                label = texts[column]
                if not label and self.rules.get("blank") == "above":
                    label = above.get(name, "")
                if not label and (self.rules.get("blank") or any(map(_TOTAL.fullmatch, texts))):
                    label = "Total"
                if not label:
                    cell = Cell(sheet.name, row, sheet.heads[column], row_labels, label)
                    raise cell.refuse("have a label (blank=above or blank=total explains it)")
                above[name] = row_labels[name] = label
            for column, labels in counts.items():
                text, flag = texts[column], next((texts[f] for f in flags if texts[f]), "")
                if flag:
                    text = f"{text} {flag}" if _WHOLE.fullmatch(text) else flag
                keys[tuple((row_labels | labels).items())] = None
                yield Cell(sheet.name, row, sheet.heads[column], row_labels | labels, text)
        if self.rules.get("absent") == "zero":
            variables = list(dict.fromkeys(n for key in keys for n, _ in key))
            every = [list(dict.fromkeys(dict(key).get(n, "") for key in keys)) for n in variables]
            if prod(map(len, every)) > _MOST:
                raise DataError(f"{sheet.name}: must have at most {_MOST} combinations of labels")
            for one in product(*every):
                key = tuple((n, label) for n, label in zip(variables, one, strict=True) if label)
                if key not in keys:
                    yield Cell(sheet.name, 0, "absent", dict(key), "0")

    def _roles(self, sheet: Sheet) -> tuple[dict[int, str], dict[int, dict[str, str]], list[int]]:
        """Return variables and counts by column, and columns of flags."""
        heads = [_key(re.sub(r"\(\d+ categories\)", "", head)) for head in sheet.heads]
        columns = [[row[i] for _, row in sheet.rows] for i in range(len(heads))]
        stated = {i: self.columns[head] for i, head in enumerate(heads) if head in self.columns}
        names = {i: t for i, t in stated.items() if t not in ("count", "ignored") and "=" not in t}
        counts: dict[int, dict[str, str]] = {
            i: dict(p.split("=", 1) for p in t.split(", ") if "=" in p)
            for i, t in stated.items() if "=" in t or t == "count"
        }  # fmt: skip
        flags, numeric = [], []
        for i, head in enumerate(heads):
            values = [text for text in columns[i] if text]
            if i in stated or not values or _NO_COUNT.fullmatch(head):
                continue
            if _FLAG.fullmatch(head):
                flags.append(i)
            elif _GROUP.fullmatch(head):
                names[i] = head
            elif all(map(self._like_count, values)) and (
                any(map(_range if _COUNT.fullmatch(head) else _WHOLE.fullmatch, values))
            ):
                numeric.append(i)
            else:
                names[i] = head.rpartition("!!")[2] or "category"
        named = [i for i in numeric if _COUNT.fullmatch(heads[i])]
        if not counts and (named or len(numeric) == 1):
            counted = heads[(named or numeric)[0]]
            counts = {i: {} for i in numeric if heads[i] == counted}
            names |= {i: heads[i] for i in numeric if i not in named and i not in counts}
        elif not counts:
            counts = self._wide({i: sheet.heads[i] for i in numeric})
        if not counts:
            raise DataError(
                f"{sheet.name}: must have a column of counts, got {quote(sheet.heads)}; "
                "columns.HEADING=count names it"
            )
        if len(sheet.rows) * len(counts) > _MOST:
            size = len(sheet.rows) * len(counts)
            raise DataError(f"{sheet.name}: must hold from 1 to {_MOST} counts, got {size}")
        first: dict[Any, int] = {}
        for i, labels in counts.items():
            before = first.setdefault(frozenset((n, _key(x)) for n, x in labels.items()), i)
            if before != i:
                twice = quote([sheet.heads[before], sheet.heads[i]])
                raise DataError(
                    f"{sheet.name}: columns {before + 1} and {i + 1} must count different records, "
                    f"got the headings {twice}: call one of them otherwise, or remove it"
                )
        headings = [sheet.heads[i] for i in counts]
        self.lines.append(
            f"{Path(sheet.name).name}: {len(sheet.rows)} rows, counts in {_listing(headings)}"
        )
        if sheet.notes:
            left_out = _listing(f"row {row} {text!r}" for row, text in sheet.notes)
            self.lines.append(f"  left out as titles and notes: {left_out}")
        for i, j in permutations([i for i in names if i not in stated], 2):
            pairs = set(zip(columns[i], columns[j], strict=True))
            one = len(pairs) == len({*columns[i]}) == len({*columns[j]})
            equal = _CODE.sub("", heads[i]) == _CODE.sub("", heads[j]) or "name" in heads[j]
            if re.search(r"\b(code|id)\b", heads[i]) and one and equal and j in names:
                names.pop(i, None)
        for i in [i for i in names if i not in stated]:
            value = columns[i][0]
            if (_key(sheet.heads[i]), value) in self.fixed and not _TOTAL.fullmatch(value):
                del names[i]
        unused = [h for i, h in enumerate(sheet.heads) if h and i not in {*names, *counts, *flags}]
        if unused:
            self.lines.append(f"  not used: {_listing(unused)}")
        short = {
            i: name if i in stated else _CODE.sub("", name) or name for i, name in names.items()
        }
        names = short if len({*short.values()}) == len(short) else names
        titles = [*names.values(), *dict.fromkeys(n for labels in counts.values() for n in labels)]
        wrong = [name for name in titles if titles.count(name) > 1 or _RESERVED.fullmatch(name)]
        if wrong:
            raise DataError(
                f"{sheet.name}: columns must be different variables, and none of results "
                f"(columns.HEADING=name calls them otherwise), got {quote(wrong[0])}"
            )
        return dict(sorted(names.items())), counts, flags

    def _like_count(self, text: str) -> bool:
        kinds = (_FLAGGED.fullmatch, _MARK.fullmatch, _range)
        return f"marks.{text}" in self.rules or any(kind(text) is not None for kind in kinds)

    def _wide(self, heads: Mapping[int, str]) -> dict[int, dict[str, str]]:
        """Return the labels of each column of counts, whose headings are values of variables."""
        separators = ("!!", " | ", ": ", "; ", ", ")
        mark = next((s for s in separators if any(s in h for h in heads.values())), "!!")
        parts = {i: [p.strip().rstrip(":") for p in head.split(mark)] for i, head in heads.items()}
        while all(parts.values()) and len({p[0] for p in parts.values()}) == 1:
            parts = {i: p[1:] for i, p in parts.items()}  # "Estimate!!Total"
        columns: dict[int, dict[str, str]] = {i: {} for i in parts}
        kinds: dict[str, dict[str, None]] = {}
        for i, part in parts.items():
            for depth, label in enumerate(p for p in part if not _TOTAL.fullmatch(p)):
                kind = f"category {depth + 1}"
                kind = "age" if (ends := _interval(label)) and ends[0] < ends[1] else kind
                kind = "sex" if _key(label) in _SYNONYMS.values() else kind
                kinds.setdefault(kind, {})[label] = None
                columns[i][self.columns.get(kind, kind)] = label
        self.kinds |= {*kinds}
        flat = all(len(labels) < 2 for labels in columns.values())
        for kind, labels in kinds.items():
            if (
                kind.startswith("category") or (flat and len(kinds) > 1)
            ) and kind not in self.columns:
                text = f"{_listing(labels)} are values of one variable, and each record has one"
                self.ask(f"columns.{kind}", kind, text)
        return columns


# -----------------------------------------------------------------------------
# Variables: labels that exclude each other, and every published label as a group of them.


class _Variable:
    """Labels, groups of them by the spelling of a published label, None for all, and names."""

    def __init__(self, published: Iterable[str], rules: Mapping[str, str]) -> None:
        first: dict[str, str] = {}
        for label in published:
            first.setdefault(_key(label), label)
        self.totals = {
            k for k in first if rules.get(k) == "all" or (k not in rules and _TOTAL.fullmatch(k))
        }
        parts = {
            k: [_key(part) for part in rules.get(k, k).split(" | ")]
            for k in first if k not in self.totals
        }  # fmt: skip
        base = {p: first.get(p, p) for part in parts.values() for p in part}
        ends = {key: _interval(label) for key, label in base.items()}
        bounds = {end for end in ends.values() if end is not None}
        self.intervals = None not in ends.values() and any(low < high for low, high in bounds)
        self.labels, inside = list(base.values()), {k: {i} for i, k in enumerate(base)}
        if self.intervals:  # what ends of groups cut apart, and nobody may be counted in between
            points = sorted({p for low, high in bounds for p in (low, high + 1)})
            pieces = [(a, b - 1) for a, b in pairwise(points)]
            titles = {end: base[key] for key, end in reversed(ends.items())}
            self.labels = [titles.get(piece, _span(*piece)) for piece in pieces]
            inside = {
                k: {i for i, (a, b) in enumerate(pieces) if end and end[0] <= a and b <= end[1]}
                for k, end in ends.items()
            }
        self.groups = {
            k: tuple(sorted(set().union(*(inside[p] for p in part)))) for k, part in parts.items()
        }
        self.names = {g: first[k] for k, g in reversed(self.groups.items())}
        self.names |= {(i,): label for i, label in enumerate(self.labels)}


def _variables(cells: Sequence[Cell], reader: _Reader) -> dict[str, _Variable]:
    """Return the variables of all files; what they may have in common is asked."""
    texts: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for name, label in cell.labels.items():
            texts.setdefault(name, {}).setdefault(cell.file, {})[label] = None
    variables = {}
    for name, files in texts.items():
        rules = reader.section(f"labels.{name}")
        variables[name] = one = _Variable([x for labels in files.values() for x in labels], rules)
        reached = [
            {i for x in labels for i in one.groups.get(_key(x), ())} for labels in files.values()
        ]
        alone = {
            file: [
                label for label in labels
                if (group := {*one.groups.get(_key(label), ())})
                and sum(bool(group & other) for other in reached) == 1
                and _key(label) not in rules
            ]
            for file, labels in files.items()
        }  # fmt: skip
        if sum(map(bool, alone.values())) > 1:  # else one file has fewer labels, no other spelling
            for file, label in ((f, label) for f, labels in alone.items() for label in labels):
                text = f"{label!r} is in {Path(file).name} alone: no other spelling of a label"
                reader.ask(f"labels.{name}.{label}", label, text)
    for a, b in combinations(texts, 2):
        equal = {*variables[a].groups} == {*variables[b].groups} and len(variables[a].labels) > 1
        ranges = variables[a].intervals and variables[b].intervals
        if not {*texts[a]} & {*texts[b]} and (equal or ranges) and _key(b) not in reader.columns:
            reader.ask(f"columns.{b}", a, f"{b!r} and {a!r} are one variable")
    return variables


# -----------------------------------------------------------------------------
# From cells to tables: what each text says, what totals count, a table for each margin and law.


class _Value(NamedTuple):
    """The meaning of a text: a number under a law; ``kind`` is empty for plain counts."""

    law: Likelihood
    number: int
    hidden: bool = False
    kind: str = ""


class Layouts(NamedTuple):
    """Tables as they were read.

    ``lines`` say what was taken for what, and ``questions`` have by name the guess and the text of
    what must be confirmed; ``rules`` is what was assumed with the guesses.  ``cells`` has a row for
    each count: ``table`` and ``cell``, a label of each variable (``all`` where it counts all),
    ``stated`` (its text), ``file`` and ``row``; ``parts`` make :class:`PublishedTables`.
    """

    lines: list[str]
    questions: dict[str, tuple[str, str]]
    rules: dict[str, str]
    cells: pd.DataFrame
    parts: tuple[Any, ...]

    def confirmed(self) -> tuple[Any, ...]:
        """Return the parts of the tables; refuse them while a question is open."""
        if self.questions:
            guesses = [f"{name[:80]}={guess[:80]}" for name, (guess, _) in self.questions.items()]
            lines = "; ".join(guesses[:12])
            raise ArgumentError(f"guesses must be confirmed or put right, got none of: {lines}")
        return self.parts

    def to_toml(self) -> str:
        """Return the text of the file that ``assume`` reads."""
        quoted = [[json.dumps(t, ensure_ascii=False) for t in pair] for pair in self.rules.items()]
        return "".join(f"{name} = {text}\n" for name, text in quoted).replace("\x7f", "\\u007f")


def read_layouts(sheets: Sequence[Sheet], options: Mapping[str, Any]) -> Layouts:
    """Return the tables of sheets; ``options`` are those of :meth:`PublishedTables.read`."""
    reader = _Reader(assumptions(options), sheets)
    cells = [cell for sheet in sheets for cell in reader.cells(sheet)]
    if not 0 < len(cells) <= _MOST:
        raise DataError(f"tables must hold from 1 to {_MOST} counts, got {len(cells)}")
    laws = _laws(cells, reader)
    values = [_value(cell, laws[cell.file], reader) for cell in cells]
    variables = _variables(cells, reader)
    groups = [
        {n: g for n, x in cell.labels.items() if (g := variables[n].groups.get(_key(x)))}
        for cell in cells
    ]
    heads = {_key(re.sub(r"\(\d+ categories\)", "", h)) for sheet in sheets for h in sheet.heads}
    for name in reader.rules:
        section, _, rest = name.partition(".")
        valid = any(_key(rest).startswith(f"{_key(n)}.") for n in variables)
        used = {*heads, *reader.kinds, *map(_key, variables)}
        if (section == "labels" and not valid) or (section == "columns" and _key(rest) not in used):
            have = _listing([*variables, *heads])
            raise ArgumentError(f"{name[:80]} must be about a heading or variable: {have}")
    counts = {frozenset(margin.items()): v.number for margin, v in zip(groups, values, strict=True)}
    sure = all(value.law.exact and not value.hidden for value in values)
    for name, variable in variables.items():
        line = f"  {name}: {_listing(variable.labels)}"
        line += f"; {_listing(map(repr, variable.totals))} counts all" * bool(variable.totals)
        if not _complete(name, variable, counts, reader, sure=sure):
            variable.names[(len(variable.labels),)] = _REST
            variable.labels.append(_REST)
            line += f"; and {_REST}, whom only totals count"
        reader.lines.append(line)
    guesses = {name: guess for name, (guess, _) in reader.questions.items()}
    frame, parts = _tables(cells, groups, values, variables)
    return Layouts(reader.lines, reader.questions, {**reader.rules, **guesses}, frame, parts)


def _laws(cells: Sequence[Cell], reader: _Reader) -> dict[str, Likelihood]:
    """Return the law of the plain counts of each file: said, or guessed from what divides them."""
    laws: dict[str, Likelihood] = {}
    questions: dict[str, list[str]] = {}  # files by the question about them
    for file in dict.fromkeys(cell.file for cell in cells):
        texts = [cell.text for cell in cells if cell.file == file and _WHOLE.fullmatch(cell.text)]
        numbers = [ends[0] for text in texts if (ends := _range(text))]
        several = sum(n > 0 for n in numbers) > 2
        base = next((b for b in (10, 5, 3) if several and not any(n % b for n in numbers)), 0)
        guess, name = f"random-{base}" if base else "exact", f"counts.{Path(file).name}"
        text = reader.rules.get(name, reader.rules.get("counts", ""))
        if not text:
            name = "counts" if reader.questions.get("counts", (guess,))[0] == guess else name
            reason = (
                f"all are multiples of {base}; random holds for nearest, too" if base else "true"
            )
            files = questions.setdefault(name, [])
            files.append(Path(file).name)
            text = reader.ask(name, guess, f"counts of {', '.join(files)}: {reason}")
        method, _, number = text.partition("-")
        laws[file] = RoundingSpec(int(number), method) if number else TrueCounts()
    return laws


def _plain(cell: Cell, law: Likelihood, number: int) -> _Value:
    """Return a count as it stands; refuse one that is not rounded as all are."""
    if law.support(number)[0] > law.support(number)[1]:
        raise cell.refuse(f"be rounded as counts says ({law})")
    return _Value(law, number)


def _value(cell: Cell, law: Likelihood, reader: _Reader) -> _Value:
    """Return the meaning of a cell; refuse a text that is no count, no range and no mark."""
    text, marked = cell.text, f"marks.{cell.text}" in reader.rules
    ends = None if marked else _range(text)
    if ends and _WHOLE.fullmatch(text) and cell.row:
        return _plain(cell, law, ends[0])
    if ends is None:
        flagged = None if marked else _FLAGGED.fullmatch(text)
        mark = flagged[2] if flagged else text
        if not flagged and not marked and not _MARK.fullmatch(mark):
            raise cell.refuse("be a count, a range such as 1-4 or <5, or a mark (marks.MARK=1-4)")
        guess, meaning = "withheld", "a count that is withheld and may be any"
        if flagged:
            guess, meaning = "note", "a note beside a count that holds"
        answer = reader.ask(f"marks.{mark}", guess, f"{mark!r} is {meaning}")
        if answer == "withheld":
            return _Value(law, 0, hidden=True)
        if answer == "note" and not flagged:
            raise cell.refuse("have a count beside the note")
        number = _range(flagged[1]) if flagged else None
        if answer == "note" and number:
            return _plain(cell, law, number[0])
        ends = _range(answer) or (0, UNBOUNDED)
    low, high = ends
    if low == high:
        return _Value(TrueCounts(), low, kind="" if law.exact else "exact")
    rule = SuppressedCounts(low, None if high >= UNBOUNDED else high).rule
    return _Value(rule, low, kind=_span(low, high)) if rule else _Value(law, 0, hidden=True)


def _complete(
    name: str, variable: _Variable, counts: Mapping[Any, int], reader: _Reader, *, sure: bool
) -> bool:
    """Return whether the labels of a variable make up its totals: said, counted or asked."""
    totals = [key for key in counts if name not in dict(key)]
    if not totals:
        return True
    if "totals" in reader.rules or not sure:
        text = (
            "the labels of each variable make up its totals, and all files count the same records"
        )
        return reader.ask("totals", "complete", text) == "complete"
    sums = []
    for key in totals:
        parts = [key | {(name, (i,))} for i in range(len(variable.labels))]
        if all(part in counts for part in parts):
            sums.append(sum(counts[part] for part in parts) == counts[key])
    return bool(sums) and all(sums)


def _tables(
    cells: Sequence[Cell],
    groups: Sequence[Mapping[str, tuple[int, ...]]],
    values: Sequence[_Value],
    variables: Mapping[str, _Variable],
) -> tuple[pd.DataFrame, tuple[Any, ...]]:
    """Return a row for each cell, and the parts of the tables: one for each margin and law."""
    margins: dict[str, dict[Any, tuple[Cell, _Value]]] = {}
    table_laws: dict[str, Likelihood] = {}
    for cell, margin, value in zip(cells, groups, values, strict=True):
        title = " * ".join(n for n in variables if n in margin) or "total"
        title += f" ({value.kind})" * bool(value.kind)
        key = tuple((n, margin[n]) for n in variables if n in margin)
        for name in _numbered(title):  # what two files say of a cell is of two tables
            table = margins.setdefault(name, {})
            law = table_laws.setdefault(name, value.law)
            if law == value.law and table.setdefault(key, (cell, value))[1] == value:
                break
    rows, tables = [], []
    counts, hidden, laws = {}, {}, {}
    for name, entries in margins.items():
        parts, used = [], set[str]()
        for key, (cell, _) in entries.items():
            labels = {n: variables[n].names[group] for n, group in key}
            title = ", ".join(labels.values()) or "total"
            text = next(t for t in _numbered(title) if t not in used)
            used.add(text)
            parts.append({"cells": [text], "where": {n: group_text(group) for n, group in key}})
            every = {n: labels.get(n, "all") for n in variables}
            source = {"stated": cell.text, "file": Path(cell.file).name, "row": cell.row}
            rows.append({"table": name, "cell": text, **every, **source})
        tables.append({"name": name, "parts": parts})
        stated = [value for _, value in entries.values()]
        counts["all", name] = sparse.csr_array([[v.number for v in stated]], dtype=np.int64)
        if any(v.hidden for v in stated):
            hidden["all", name] = sparse.csr_array([[v.hidden for v in stated]], dtype=np.bool_)
        if not table_laws[name].plain:
            laws["all", name] = table_laws[name]
    columns = [{"name": n, "size": len(v.labels), "labels": v.labels} for n, v in variables.items()]
    schema = {"name": "published", "attributes": columns, "geography": None}
    work = Workload.from_dict({"schema": schema, "levels": ["all"], "tables": tables})
    return pd.DataFrame(rows), (work, {"all": np.array([""])}, counts, hidden, laws)


def _numbered(text: str) -> Iterator[str]:
    yield text
    yield from (f"{text} ({number})" for number in range(2, _MOST))
