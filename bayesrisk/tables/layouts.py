"""Tables as agencies publish them: long or wide, with totals, marks, ranges and rounding.

Each published count becomes a cell: a label, or a group of labels, of some variables, and a text.
What the texts and labels mean is guessed by the rules below; a guess on which it depends what is
proved is a question, and tables are made when all questions are answered.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.text import read_bytes, read_toml, shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ConfigError, DataError
from bayesrisk.tables._grammar import text_of
from bayesrisk.tables.likelihoods import (
    UNBOUNDED,
    Likelihood,
    RoundingSpec,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables.schema import Attribute, Schema
from bayesrisk.tables.workload import Workload

_BYTES, _MOST_CELLS = 2**26, 2**17
#: Encodings that are tried, the last of which reads everything.
_ENCODINGS = ("utf-8-sig", "utf-16", "cp1252", "latin-1")
_OTHERS = "others"  # the label of records that a total counts and no other row does
_EVERYTHING = "all"
_WITHHELD, _NOTE = "withheld", "note"

# -----------------------------------------------------------------------------
# Texts: counts, ranges and marks; totals; groups of ages or amounts.


_NUMBER = r"\d{1,3}(?:[,'’\u00a0\u2009\u202f ]\d{3})+|\d+"
_WHOLE = re.compile(rf"({_NUMBER})(?:\.0+)?")
_RANGES = [
    (re.compile(pattern, re.IGNORECASE), ends)
    for pattern, ends in (
        (rf"({_NUMBER}) ?(?:-|–|—|to) ?({_NUMBER})", lambda a, b: (a, b)),
        (rf"(?:<|under|below|fewer than|less than) ?({_NUMBER})", lambda a: (0, a - 1)),
        (rf"(?:<=|≤|up to|at most) ?({_NUMBER})", lambda a: (0, a)),
        (rf"(?:>|over|more than) ?({_NUMBER})", lambda a: (a + 1, UNBOUNDED)),
        (rf"(?:>=|≥|at least) ?({_NUMBER})", lambda a: (a, UNBOUNDED)),
        (rf"({_NUMBER}) ?(?:\+|(?:and|or) (?:more|over|above|older))", lambda a: (a, UNBOUNDED)),
    )
]
_FLAGGED = re.compile(rf"({_NUMBER})(?:\.0+)? ?[(\[]?([A-Za-z*†‡#^~]{{1,3}})[)\]]?")
_MARK = re.compile(
    r"[^\w\s]{0,4}|[(\[]?[a-z]{1,3}[)\]]?|n[./]a\.?|\[?low\]?|nan|null|none|missing|suppressed|"
    r"withheld|redacted|confidential|unreliable|not (?:available|applicable|shown|published)",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"(?:grand )?total(?:,? (?:persons|people|population|all \w+))?|persons|people|overall|"
    r"all(?! other)(?: [\w-]+){0,2}|both(?: \w+)?|t",
    re.IGNORECASE,
)
_AGE_WORDS = re.compile(
    r"\b(?:years?|yrs?)(?: old| of age)?\b|\b(?:ages?|aged)\b|^y_?(?=\d|lt|ge)", re.IGNORECASE
)
_SAME = {"m": "male", "males": "male", "f": "female", "females": "female"}
_COUNT = re.compile(
    r"n|obs(?:ervations?| value)?|counts?|numbers?|values?|frequency|freq|figures?|records",
    re.IGNORECASE,
)
_FLAG = re.compile(r".*\b(?:flags?|status|symbols?)", re.IGNORECASE)
_NO_COUNT = re.compile(
    r".*(?:%|\b(?:percent(?:age)?|rate|share|proportion|notes?|footnotes?|margin of error)\b).*",
    re.IGNORECASE,
)
_CODE = re.compile(r"[ ]?\b(?:code|id|name|label)\b", re.IGNORECASE)
_SEPARATORS = ("!!", " | ", ": ", "; ", ", ")


def _plain(text: object) -> str:
    return " ".join(str(text).replace("_", " ").split())


def _integer(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def _range(text: str) -> tuple[int, int] | None:
    """Return the smallest and the largest number that a text such as ``1-4`` or ``<5`` says."""
    if found := _WHOLE.fullmatch(text):
        return (_integer(found[1]),) * 2
    for pattern, ends in _RANGES:
        if found := pattern.fullmatch(text):
            low, high = ends(*map(_integer, found.groups()))
            return (low, high) if low <= high else None
    return None


def _interval(label: str) -> tuple[int, int] | None:
    """Return the ages or amounts of a group such as ``Under 5 years`` or ``Y_GE65``."""
    text = _AGE_WORDS.sub("", re.sub(r"\bY_?", "Y", label.strip())).strip()
    text = re.sub(r"^lt ?(?=\d)", "<", re.sub(r"^ge ?(?=\d)", ">=", text, flags=re.I), flags=re.I)
    return _range(_plain(text))


def _key(label: str) -> str:
    """Return the spelling by which labels of several files are compared."""
    plain = re.sub("[–—]", "-", _plain(label)).casefold()
    return _SAME.get(plain, plain)


# -----------------------------------------------------------------------------
# What is assumed, and what is asked.


@dataclass(frozen=True)
class Assumptions:
    """How published tables are read, as :meth:`PublishedTables.read` describes it."""

    counts: Mapping[str, str] = field(default_factory=dict)
    totals: str | None = None
    absent: str = "unknown"
    blank: str | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def given(cls, options: Mapping[str, Any], source: str = "") -> Assumptions:
        """Return options by name; ``assume`` names a file of them, which the others change."""
        values = dict(options)
        base: dict[str, Any] = {}
        if (file := values.pop("assume", None)) is not None:
            path = check.path(file, "assume")
            base = vars(cls.given(read_toml(path), f"{path}: "))
        known = [f.name for f in fields(cls)]
        if isinstance(values.get("counts"), str):
            values["counts"] = {"": values["counts"]}
        kind = ConfigError if source else ArgumentError
        for name, value in values.items():
            if name not in known:
                raise (ConfigError if source else ArgumentTypeError)(
                    f"{source}assumptions must be {', '.join(known)}, got {shown(name)}"
                )
            choices = {
                "totals": ("complete", "partial"), "absent": ("unknown", "zero"),
                "blank": ("above", "total"),
            }.get(name)  # fmt: skip
            if choices and value not in choices:
                raise kind(f"{source}{name} must be {' or '.join(choices)}, got {shown(value)}")
            maps = value.values() if name == "labels" and isinstance(value, Mapping) else [value]
            if not choices and not all(
                isinstance(m, Mapping) and all(isinstance(v, str) for v in m.values()) for m in maps
            ):
                raise kind(f"{source}{name} must be texts by name, got {shown(value)}")
        for text in values.get("counts", {}).values():
            _law(text, f"{source}counts", kind)
        for mark, text in values.get("marks", {}).items():
            if text not in (_WITHHELD, _NOTE) and _range(text) is None:
                raise kind(
                    f"{source}marks[{shown(mark)}] must be a range such as 1-4, <5 or 0, withheld "
                    f"(any count) or note (the count beside it holds), got {shown(text)}"
                )
        for name, value in base.items():
            both = name in values and isinstance(value, Mapping)
            values[name] = {**value, **values[name]} if both else values.get(name, value)
        return cls(**values)

    def to_toml(self) -> str:
        """Return the text of the file that ``assume`` reads."""
        lines, sections = [], []
        for name, value in vars(self).items():
            if isinstance(value, str):
                lines.append(f"{name} = {_quoted(value)}")
            elif name == "counts" and set(value) == {""}:
                lines.append(f"counts = {_quoted(value[''])}")
            elif value:
                below = value if name == "labels" else {"": value}
                for part, entries in below.items():
                    title = f"{name}.{_quoted(part)}" if part else name
                    rows = [f"{_quoted(k)} = {_quoted(v)}" for k, v in entries.items()]
                    sections += ["", f"[{title}]", *rows]
        return "\n".join([*lines, *sections, ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _law(text: str, name: str, kind: type[ArgumentError] | type[ConfigError]) -> Likelihood:
    """Return the law of counts that are ``exact``, ``nearest-5`` or ``random-3``."""
    method, _, base = text.partition("-")
    if text == "exact":
        return TrueCounts()
    if method not in ("nearest", "random") or not re.fullmatch(r"[1-9]\d{0,8}", base):
        raise kind(f"{name} must be exact, nearest-BASE or random-BASE, got {shown(text)}")
    return RoundingSpec(int(base), method)


class Question(NamedTuple):
    """A guess that changes what is proved: what is asked, and where the answer stands."""

    text: str
    section: str
    key: str
    guess: str

    @property
    def line(self) -> str:
        """The option of the command line that confirms the guess."""
        option = {"marks": "mark", "columns": "column", "labels": "label"}.get(self.section)
        if option is None:
            value = f"{self.key}={self.guess}" if self.key else self.guess
            return f"--{self.section} {value!r}" if " " in value else f"--{self.section} {value}"
        return f"--{option} {f'{self.key}={self.guess}'!r}"


# -----------------------------------------------------------------------------
# Grids: the rows of a file or a frame below their headings, every cell as text.


class _Grid(NamedTuple):
    name: str
    heads: list[str]
    rows: list[tuple[int, list[str]]]  # each with its number in the file

    def column(self, at: int) -> list[str]:
        return [row[at] for _, row in self.rows]


def frame_grids(frames: object) -> list[_Grid]:
    """Return the grids of a data frame or several."""
    several = [frames] if isinstance(frames, pd.DataFrame) else check.items(frames, "frame")
    grids = []
    for number, frame in enumerate(several, 1):
        given = check.frame(frame, "frame")
        if any(name is not None for name in given.index.names):
            given = given.reset_index()
        heads = ["!!".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in given.columns]
        rows = [
            ["" if pd.isna(value) else str(value).strip() for value in row]
            for row in given.itertuples(index=False, name=None)
        ]
        name = "frame" if len(several) == 1 else f"frame {number}"
        grids.append(_Grid(name, heads, list(enumerate(rows, 1))))
    return grids


def file_grid(file: Path) -> _Grid:
    """Return the grid of a text file: its delimiter, headings and rows are found by rule.

    The delimiter is that which most rows have in the same number.  The first row of that width
    with two texts or more is that of the headings; where it has gaps it is joined with the next.
    Lines of one text are titles before it, and notes below the last row.
    """
    raw, text = read_bytes(file, _BYTES), ""
    for encoding in _ENCODINGS:
        try:
            text = raw.decode(encoding)
            break
        except UnicodeError:
            continue
    best: tuple[int, int, list[list[str]]] = (0, 0, [])
    for delimiter in ",;\t|":
        try:
            found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise DataError(f"{file}: cannot be read: {error}") from error
        widths = Counter(len(row) for row in found if len(row) > 1)
        if widths and (most := widths.most_common(1)[0])[1] > best[0]:
            best = (most[1], most[0], found)
    _, width, lines = best
    full = [
        (at, [cell.strip() for cell in row] + [""] * (width - len(row)))
        for at, row in enumerate(lines, 1)
        if len(row) <= width or not any(cell.strip() for cell in row[width:])
    ]
    several = [at for at, row in full if sum(map(bool, row)) > 1]
    if len(several) < 2:
        raise DataError(f"{file}: must hold headings and rows of counts, got none")
    rows = [(at, row[:width]) for at, row in full if several[0] <= at <= several[-1] and any(row)]
    for at, row in rows:
        if sum(map(bool, row)) == 1 and at not in several:
            text = next(cell for cell in row if cell)
            raise DataError(f"{file}: row {at}: must be a row of the table, got {shown(text)}")
    heads = rows.pop(0)[1]
    if any(a and not b for a, b in zip(heads, heads[1:], strict=False)) and any(rows[0][1]):
        upper = heads
        for at in range(1, width):
            upper[at] = upper[at] or upper[at - 1]
        below = rows.pop(0)[1]
        heads = [f"{a}!!{b}" if a and b else a or b for a, b in zip(upper, below, strict=True)]
    return _Grid(str(file), heads, rows)


# -----------------------------------------------------------------------------
# From grids to cells: which columns are variables, and which are counts of what.


class Cell(NamedTuple):
    """A published count: where it stands, the label of each variable, and its text."""

    file: str
    row: int
    column: str
    at: dict[str, str]
    text: str


class _Reader:
    """Grids as cells, what was assumed on the way in lines, and the questions."""

    def __init__(self, about: Assumptions) -> None:
        self.about = about
        self.lines: list[str] = []
        self.questions: list[Question] = []
        self.fixed: dict[str, tuple[str, str]] = {}
        self.columns = {_key(head): to for head, to in about.columns.items()}

    def _ask(self, text: str, section: str, key: str, guess: str) -> None:
        question = Question(text, section, key, guess)
        if question not in self.questions:
            self.questions.append(question)

    def cells(self, grid: _Grid) -> Iterator[Cell]:
        """Yield the cells of a grid."""
        names, counts, flags = self._roles(grid)
        seen: list[dict[str, str]] = []
        above: dict[str, str] = {}
        for row, texts in grid.rows:
            at = {}
            for column, name in names.items():
                label = texts[column]
                if not label:
                    label = self._blank(grid, row, column, texts, above.get(name))
                above[name] = at[name] = label
            for column, labels in counts.items():
                text = texts[column]
                flag = next((texts[f] for f in flags if texts[f]), "")
                if flag:
                    text = f"{text} {flag}" if _WHOLE.fullmatch(text) else flag
                seen.append(at | labels)
                yield Cell(grid.name, row, grid.heads[column], at | labels, text)
        if self.about.absent == "zero":
            yield from _absent(grid, seen)

    def _blank(
        self, grid: _Grid, row: int, column: int, texts: list[str], above: str | None
    ) -> str:
        if self.about.blank == "total" or any(_TOTAL.fullmatch(text) for text in texts):
            return "Total"
        if self.about.blank == "above" and above is not None:
            return above
        raise DataError(
            f"{grid.name}: row {row}, column {grid.heads[column]!r}: must have a label, got none; "
            "blank = 'above' repeats the last one, 'total' stands for all"
        )

    def _roles(self, grid: _Grid) -> tuple[dict[int, str], dict[int, dict[str, str]], list[int]]:
        """Return variables and counts by column, and columns of flags."""
        heads = [_plain(re.sub(r"\(\d+ categories\)", "", head)) for head in grid.heads]
        said = {i: self.columns[_key(h)] for i, h in enumerate(heads) if _key(h) in self.columns}
        names = {
            i: to for i, to in said.items() if to not in ("count", "ignored") and "=" not in to
        }
        counts: dict[int, dict[str, str]] = {
            i: dict(p.split("=", 1) for p in re.split(r", (?=[^=]*=)", to)) if "=" in to else {}
            for i, to in said.items() if "=" in to or to == "count"
        }  # fmt: skip
        flags, numeric = [], []
        for i, head in enumerate(heads):
            values = [text for text in grid.column(i) if text]
            if i in said or not values:
                continue
            if _FLAG.fullmatch(head):
                flags.append(i)
            elif _NO_COUNT.fullmatch(head):
                continue
            elif all(map(self._is_count, values)) and any(map(_WHOLE.fullmatch, values)):
                numeric.append(i)
            else:
                names[i] = _key(head) or "category"
        named = [i for i in numeric if _COUNT.fullmatch(heads[i])]
        if not counts and (named or len(numeric) == 1):
            counts = {i: {} for i in (named or numeric)[:1]}
            names |= {i: _key(heads[i]) for i in numeric if i not in counts and i not in named}
        elif not counts and numeric:
            wide = self._wide({i: grid.heads[i] for i in numeric}, set(names.values()))
            counts = wide
        if not counts:
            raise DataError(
                f"{grid.name}: must have a column of counts, got {shown(grid.heads)}; say "
                "columns = {HEADING = 'count'}"
            )
        names = self._useful(grid, heads, names, said)
        long = len(counts) == 1 and not next(iter(counts.values()))
        self.lines.append(
            f"{grid.name}: {len(grid.rows)} rows, counts in "
            + (f"column {grid.heads[next(iter(counts))]!r}" if long else f"{len(counts)} columns")
        )
        ignored = [
            head for i, head in enumerate(grid.heads)
            if i not in names and i not in counts and i not in flags and head
        ]  # fmt: skip
        if ignored:
            self.lines.append(f"  not used: {', '.join(map(repr, ignored))}")
        return dict(sorted(names.items())), counts, flags

    def _is_count(self, text: str) -> bool:
        return bool(
            text in self.about.marks or _range(text) is not None or _FLAGGED.fullmatch(text)
            or _MARK.fullmatch(text)
        )  # fmt: skip

    def _useful(
        self, grid: _Grid, heads: list[str], names: dict[int, str], said: Mapping[int, str]
    ) -> dict[int, str]:
        """Return the variables without codes of other columns, and without those of one value."""
        kept = dict(names)
        for i, j in ((i, j) for i in names for j in names if i != j):
            same = _CODE.sub("", heads[i]).strip() == _CODE.sub("", heads[j]).strip()
            pairs = set(zip(grid.column(i), grid.column(j), strict=True))
            alike = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
            if same and alike and i in kept and j in kept and i not in said:
                if "code" in heads[i].casefold() or "id" in heads[i].casefold().split():
                    del kept[i]
        for i in [i for i in kept if i not in said]:
            values = {*grid.column(i)}
            if len(values) == 1 and not _TOTAL.fullmatch(value := values.pop()):
                other = self.fixed.setdefault(kept[i], (value, grid.name))
                if other[0] != value:
                    raise DataError(
                        f"{grid.name}: column {grid.heads[i]!r}: must be {shown(other[0])} as in "
                        f"{other[1]}, got {shown(value)}; if these are not the same records, attack "
                        f"each by itself, else say columns = {{{grid.heads[i]!r} = 'ignored'}}"
                    )
                self.lines.append(f"  {grid.heads[i]} is {value} in all rows: not used")
                del kept[i]
        short = {
            i: _CODE.sub("", name).strip() or name for i, name in kept.items() if i not in said
        }
        for i, name in short.items():
            if list(short.values()).count(name) == 1 and name not in kept.values():
                kept[i] = name
        return kept

    def _wide(self, heads: Mapping[int, str], taken: set[str]) -> dict[int, dict[str, str]]:
        """Return the labels of each column of counts: headings are values of variables."""
        mark = next((s for s in _SEPARATORS if any(s in head for head in heads.values())), "!!")
        parts = {i: [p.strip().rstrip(":") for p in head.split(mark)] for i, head in heads.items()}
        while len({p[0] if p else None for p in parts.values()}) == 1:  # "Estimate!!Total"
            parts = {i: p[1:] for i, p in parts.items()}
        parts = {i: [p for p in part if not _TOTAL.fullmatch(p)] for i, part in parts.items()}
        kinds: dict[str, list[str]] = {}
        found: dict[int, dict[str, str]] = {}
        for i, part in parts.items():
            found[i] = {}
            for depth, label in enumerate(part):
                kind = "sex" if _key(label) in ("male", "female") else ""
                kind = kind or (
                    "age" if _interval(label) else f"category{depth + 1 if depth else ''}"
                )
                name = self.columns.get(kind, kind)
                found[i][name] = label
                kinds.setdefault(kind, []).append(label)
        for kind, labels in kinds.items():
            several = list(dict.fromkeys(labels))
            if kind in taken or kind.startswith("category") or len(kinds) > len(parts):
                text = (
                    f"columns {_listing(several)} are values of one variable, each record has one"
                )
                if kind not in self.columns:
                    self._ask(text, "columns", kind, kind)
        return found


def _absent(grid: _Grid, seen: Sequence[dict[str, str]]) -> Iterator[Cell]:
    """Yield combinations of labels that no row has, as counts of 0."""
    names = list(dict.fromkeys(name for at in seen for name in at))
    labels = [list(dict.fromkeys(at[n] for at in seen if n in at)) for n in names]
    known = {tuple(at.get(n) for n in names) for at in seen}
    if np.prod([float(len(some)) for some in labels]) > _MOST_CELLS:
        raise DataError(f"{grid.name}: must have at most {_MOST_CELLS} combinations of labels")
    for index in np.ndindex(*map(len, labels)):
        one = tuple(some[i] for some, i in zip(labels, index, strict=True))
        if one not in known and all(len(at) == len(names) for at in seen):
            yield Cell(grid.name, 0, "absent", dict(zip(names, one, strict=True)), "0")


def _listing(texts: Iterable[str], most: int = 8) -> str:
    found = [text if len(text) <= 40 else f"{text[:40]}…" for text in texts]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


# -----------------------------------------------------------------------------
# Variables: the labels of all files, and the groups of labels that cells are about.


@dataclass
class _Variable:
    """Labels of a variable that exclude each other, and every published label as some of them."""

    labels: list[str]
    groups: dict[str, tuple[int, ...] | None]  # by spelling; None stands for all
    names: dict[tuple[int, ...], str]
    complete: bool = True


def _variable(by_file: Mapping[str, Sequence[str]], said: Mapping[str, str]) -> _Variable:
    """Return a variable from its labels in each file."""
    first: dict[str, str] = {}
    for label in (label for labels in by_file.values() for label in labels):
        first.setdefault(_key(label), label)
    renamed = {_key(old): new for old, new in said.items()}
    totals = {
        key for key, label in first.items()
        if renamed.get(key, "") == _EVERYTHING
        or (key not in renamed and _TOTAL.fullmatch(_plain(label)))
    }  # fmt: skip
    members = {
        key: [_key(part) for part in renamed.get(key, label).split(" | ")]
        for key, label in first.items() if key not in totals
    }  # fmt: skip
    base = list(dict.fromkeys(part for parts in members.values() for part in parts))
    text = {key: first.get(key, key) for key in base}
    ends = {key: _interval(text[key]) for key in base}
    known = [end for end in ends.values() if end is not None]
    variable = _Variable([], dict.fromkeys(totals), {})
    if len(known) == len(base) and any(low < high for low, high in known):
        points = sorted({p for low, high in known for p in (low, high + 1)})
        pieces = [(a, b - 1) for a, b in zip(points, points[1:], strict=False)]
        own = {end: text[key] for key, end in ends.items()}
        variable.labels = [own.get(piece, _span(*piece)) for piece in pieces]
        inside = {
            key: tuple(i for i, (a, b) in enumerate(pieces) if end and end[0] <= a and b <= end[1])
            for key, end in ends.items()
        }
    else:
        variable.labels = [text[key] for key in base]
        inside = {key: (i,) for i, key in enumerate(base)}
    for key, parts in members.items():
        group = tuple(sorted({i for part in parts for i in inside[part]}))
        variable.groups[key] = group
        variable.names.setdefault(
            group, variable.labels[group[0]] if len(group) == 1 else first[key]
        )
    return variable


def _span(low: int, high: int) -> str:
    if high >= UNBOUNDED - 1:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


# -----------------------------------------------------------------------------
# From cells to tables.


@dataclass(frozen=True, eq=False)
class Layouts:
    """Published tables as they were read: what was taken for what, and what must be confirmed.

    Attributes
    ----------
    lines : list of str
        How the files were read.
    questions : list of Question
        Guesses that nobody confirmed.
    assumptions : Assumptions
        What was confirmed, and the guesses.
    cells : pandas.DataFrame
        A row for each count: ``table`` and ``cell``, the label of each variable (``all`` where it
        counts all), ``stated`` (its text), ``file`` and ``row``.
    parts : tuple
        What :class:`PublishedTables` is made of.
    """

    lines: list[str]
    questions: list[Question]
    assumptions: Assumptions
    cells: pd.DataFrame
    parts: tuple[Any, ...]

    def confirmed(self) -> tuple[Any, ...]:
        """Return the parts of the tables; refuse them while a question is open."""
        if self.questions:
            asked = "; ".join(f"{q.text}: {_argument(q)}" for q in self.questions[:5])
            raise ArgumentError(
                f"guesses must be confirmed ({len(self.questions)}), or put right: {asked}"
            )
        return self.parts


def _argument(question: Question) -> str:
    section, key, guess = question[1:]
    if not key:
        return f"{section}={guess!r}"
    outer, _, inner = key.partition(":")
    if section == "labels":
        return f"labels={ {outer: {inner: guess}} }".replace("{ ", "{").replace(" }", "}")
    return f"{section}={ {key: guess} }".replace("{ ", "{").replace(" }", "}")


def read_layouts(grids: Sequence[_Grid], options: Mapping[str, Any]) -> Layouts:
    """Return the tables of grids; ``options`` are those of :class:`Assumptions`, and ``assume``."""
    about = Assumptions.given(options)
    reader = _Reader(about)
    cells = [cell for grid in grids for cell in reader.cells(grid)]
    if not 0 < len(cells) <= _MOST_CELLS:
        raise DataError(f"tables must hold from 1 to {_MOST_CELLS} counts, got {len(cells)}")
    laws = _laws(cells, reader)
    values = [_value(cell, laws[cell.file], reader) for cell in cells]
    variables = _variables(cells, reader)
    where = [
        {
            n: g
            for n, label in cell.at.items()
            if (g := variables[n].groups[_key(label)]) is not None
        }
        for cell in cells
    ]
    _complete(where, values, variables, reader)
    for name, variable in variables.items():
        every = [key for key, group in variable.groups.items() if group is None]
        said = f"  {name}: {_listing(variable.labels)}"
        said += f"; {_listing(map(repr, every))} counts all" if every else ""
        reader.lines.append(said + f"; {_OTHERS} that no row shows" * (not variable.complete))
        if not variable.complete:
            variable.labels.append(_OTHERS)
    frame, parts = _tables(cells, where, values, variables)
    return Layouts(reader.lines, reader.questions, _with_guesses(about, reader), frame, parts)


def _with_guesses(about: Assumptions, reader: _Reader) -> Assumptions:
    found = {name: dict(v) if isinstance(v, Mapping) else v for name, v in vars(about).items()}
    for _, section, key, guess in reader.questions:
        outer, _, inner = key.partition(":")
        if section == "labels":
            found["labels"] = {
                **found["labels"],
                outer: {**found["labels"].get(outer, {}), inner: guess},
            }
        elif section == "totals":
            found["totals"] = guess
        else:
            found[section][key] = guess
    return Assumptions(**found)


def _laws(cells: Sequence[Cell], reader: _Reader) -> dict[str, Likelihood]:
    """Return the law of the plain counts of each file: said, or guessed from what divides them."""
    guesses, said = {}, reader.about.counts
    laws: dict[str, Likelihood] = {}
    for file in dict.fromkeys(cell.file for cell in cells):
        text = said.get(file, said.get(Path(file).name, said.get("", "")))
        if not text:
            own = [cell.text for cell in cells if cell.file == file and cell.row]
            numbers = [_integer(f[1]) for t in own if (f := _WHOLE.fullmatch(t))]
            several = sum(n > 0 for n in numbers) > 2
            base = next((b for b in (10, 5, 3) if several and not any(n % b for n in numbers)), 0)
            text = guesses[file] = f"random-{base}" if base else "exact"
        laws[file] = _law(text, "counts", ArgumentError)
    alike = len(set(guesses.values())) == 1 and len(guesses) == len(laws)
    for file, text in guesses.items():
        base = text.partition("-")[2]
        reason = f"are all multiples of {base} (random: whatever the rule)" if base else "are true"
        whose = "counts" if alike else f"counts of {file}"
        reader._ask(f"{whose} {reason}", "counts", "" if alike else file, text)
        if alike:
            break
    return laws


class _Value(NamedTuple):
    """What a cell says: a number under a law, or the numbers from one to another."""

    law: Likelihood
    number: int
    hidden: bool = False


def _value(cell: Cell, law: Likelihood, reader: _Reader) -> _Value:
    """Return what a cell says; refuse what is no count, no range and no mark."""
    text, marks = cell.text, reader.about.marks
    flagged = _FLAGGED.fullmatch(text) if text not in marks else None
    if text not in marks and (whole := _WHOLE.fullmatch(text)):
        return _Value(law if cell.row else TrueCounts(), _integer(whole[1]))
    ends = None if text in marks else _range(text)
    if ends is None:
        mark = flagged[2] if flagged else text
        if mark not in marks and not flagged and not _MARK.fullmatch(mark):
            raise DataError(
                f"{cell.file}: row {cell.row}, column {cell.column!r}: must be a count, a range "
                f"such as 1-4 or <5, or a mark that marks explains, got {shown(text)}"
            )
        guess = _NOTE if flagged else _WITHHELD
        said = marks.get(mark, guess)
        if mark not in marks:
            meaning = "a note beside a count" if flagged else "a count withheld, which may be any"
            reader._ask(f"{mark!r} is {meaning}", "marks", mark, guess)
        if said == _NOTE:
            if not flagged:
                raise DataError(
                    f"{cell.file}: row {cell.row}, column {cell.column!r}: must have a count beside "
                    f"the note, got {shown(text)}"
                )
            return _Value(law, _integer(flagged[1]))
        if said == _WITHHELD:
            return _Value(law, 0, hidden=True)
        ends = _range(said)
        assert ends is not None  # what marks mean was checked
    low, high = ends
    if low == high:
        return _Value(TrueCounts(), low)
    rule = SuppressedCounts(low, None if high >= UNBOUNDED else high).rule
    return _Value(law, 0, hidden=True) if rule is None else _Value(rule, low)


def _variables(cells: Sequence[Cell], reader: _Reader) -> dict[str, _Variable]:
    """Return the variables of all files; what they may have in common is asked."""
    seen: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for name, label in cell.at.items():
            seen.setdefault(name, {}).setdefault(cell.file, {})[label] = None
    found, keys = {}, {}
    for name, by_file in seen.items():
        said = reader.about.labels.get(name, {})
        found[name] = variable = _variable({f: list(v) for f, v in by_file.items()}, said)
        own = {f: {_key(x) for x in v} for f, v in by_file.items()}
        keys[name] = {k for k, g in variable.groups.items() if g is not None}
        groups = [{variable.groups[k] for k in v} - {None} for v in own.values()]
        reached = {i for g in groups[0] for i in g or ()}
        if all({i for g in some for i in g or ()} == reached for some in groups):
            continue
        known = {_key(label) for label in said}
        for file, labels in by_file.items():
            for label in labels:
                alone = sum(_key(label) in v for v in own.values()) == 1
                if alone and variable.groups[_key(label)] is not None and _key(label) not in known:
                    text = f"{label!r} of {name!r} is in {file} alone, no other spelling of a label"
                    reader._ask(text, "labels", f"{name}:{label}", label)
    for a, b in ((a, b) for i, a in enumerate(seen) for b in list(seen)[i + 1 :]):
        apart = not set(seen[a]) & set(seen[b]) and keys[a] == keys[b] and len(keys[a]) > 1
        if apart and _key(b) not in reader.columns:
            reader._ask(f"{b!r} and {a!r} are one variable", "columns", b, a)
    return found


def _complete(
    where: Sequence[Mapping[str, tuple[int, ...]]],
    values: Sequence[_Value],
    variables: Mapping[str, _Variable],
    reader: _Reader,
) -> None:
    """Note of every variable whether its labels make up the totals: said, counted or asked."""
    sure = all(value.law.exact and not value.hidden for value in values)
    counts = {frozenset(at.items()): v.number for at, v in zip(where, values, strict=True)}
    for name, variable in variables.items():
        over = [at for at in counts if name not in dict(at)]
        if not over:
            continue
        if reader.about.totals is not None:
            variable.complete = reader.about.totals == "complete"
            continue
        if not sure:
            text = "the labels of each variable make up its totals, and all files count the same"
            reader._ask(text, "totals", "", "complete")
            continue
        sums = []
        for at in over:
            parts = [at | {(name, (i,))} for i in range(len(variable.labels))]
            if all(part in counts for part in parts):
                sums.append(sum(counts[part] for part in parts) == counts[at])
        variable.complete = bool(sums) and all(sums)


def _tables(
    cells: Sequence[Cell],
    where: Sequence[Mapping[str, tuple[int, ...]]],
    values: Sequence[_Value],
    variables: Mapping[str, _Variable],
) -> tuple[pd.DataFrame, tuple[Any, ...]]:
    """Return a row for each cell, and the parts of the tables: one for each margin and law."""
    schema = Schema("published", tuple(
        Attribute(name, len(v.labels), labels=tuple(v.labels)) for name, v in variables.items()
    ))  # fmt: skip
    made: dict[tuple[tuple[str, ...], Likelihood, int], dict[Any, tuple[int, _Value]]] = {}
    for number, (at, value) in enumerate(zip(where, values, strict=True)):
        margin, key, times = tuple(n for n in variables if n in at), tuple(sorted(at.items())), 0
        while (known := made.setdefault((margin, value.law, times), {})).get(key, (0, value))[
            1
        ] != value:
            times += 1
        known.setdefault(key, (number, value))
    rows: list[dict[str, Any]] = []
    tables, counts, hidden, laws = [], {}, {}, {}
    for (margin, law, _), entries in made.items():
        title = " * ".join(margin) or "total"
        names = {entry["name"] for entry in tables}
        name = next(n for n in _numbered(title) if n not in names)
        parts, used = [], set[str]()
        for key, (number, _) in entries.items():
            at = dict(key)
            labels = {n: variables[n].names[at[n]] for n in margin}
            text = ", ".join(labels.values()) or "total"
            text = next(t for t in _numbered(text) if t not in used)
            used.add(text)
            codes = {n: text_of(group) for n, group in at.items()}
            parts.append({"cells": [text], "where": codes} if codes else {"cells": [text]})
            every = {n: labels.get(n, _EVERYTHING) for n in variables}
            about = {"stated": cells[number].text, "file": cells[number].file}
            rows.append({"table": name, "cell": text, **every, **about, "row": cells[number].row})
        tables.append({"name": name, "parts": parts})
        given = [value for _, value in entries.values()]
        counts["all", name] = sparse.csr_array([[v.number for v in given]], dtype=np.int64)
        if any(v.hidden for v in given):
            hidden["all", name] = sparse.csr_array([[v.hidden for v in given]], dtype=np.bool_)
        if not law.plain:
            laws["all", name] = law
    values_of = {"schema": schema.to_dict(), "levels": ["all"], "tables": tables}
    work = Workload.from_dict(values_of)
    return pd.DataFrame(rows), (work, {"all": np.array([""])}, counts, hidden, laws)


def _numbered(text: str) -> Iterator[str]:
    yield text
    number = 2
    while True:
        yield f"{text} ({number})"
        number += 1
