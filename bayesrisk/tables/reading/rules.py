"""Settings of a published table by name, and the laws of its counts."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesrisk._base import validation as check
from bayesrisk._base.disk.text import read_bytes, read_toml
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables.likelihoods import (
    Likelihood,
    PerturbedCounts,
    RangeSpec,
    RoundingSpec,
    TrueCounts,
)
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import PATH, key, number_range

_CHOICES = {
    "totals": ("complete", "partial", "separate"),
    "absent": ("unknown", "zero"),
    "blank": ("above", "below", "block", "total", "label"),
    "thousands": ("point", "comma"),
    "parts": ("above", "separate"),
    "rows": ("separate",),
}
_TREE_BYTES = 2**22
_SECTIONS = ("counts", "marks", "columns", "labels", *_CHOICES, "sheet", "encoding")
_LAWS = (
    "exact, nearest-BASE, random-BASE, midpoint-BASE, perturbed-LARGEST, withheld-below-LEAST, "
    "ranges-0-1-10, cms-11, ons-10-5 or stats-nz"
)


def law(text: str) -> tuple[Likelihood, tuple[int, int] | None] | None:
    """Return the named law of plain counts, and its range of withheld counts, if any.

    None if there is no such law.
    """
    name, _, rest = text.partition("-")
    numbers = [int(n) for n in rest.split("-")] if re.fullmatch(r"\d{1,9}(-\d{1,9})*", rest) else []
    number = numbers[0] if len(numbers) == 1 else 0
    if text == "exact":
        return TrueCounts(), None
    if name == "ons" and numbers == [10, 5]:
        return RangeSpec((0, 10, 13), (0, 10, 15), 5), (0, 9)
    if text == "stats-nz":  # 1 and 2 become 3
        return RangeSpec((0, 1, 4), (0, 3, 4), 1), None
    if name in ("nearest", "random") and number:
        return RoundingSpec(number, name), None
    if name == "midpoint" and number > 1:
        return RangeSpec((0, 1), (0, (number + 1) // 2), number), None
    if name == "perturbed" and number:
        return PerturbedCounts(number), None
    if name == "ranges" and len(numbers) > 1 and numbers[0] == 0:
        return RangeSpec(tuple(numbers), tuple(numbers)), None
    least = re.fullmatch(r"(?:withheld-below|cms)-(\d{1,9})", text)
    return (TrueCounts(), (1, int(least[1]) - 1)) if least and int(least[1]) > 1 else None


def settings(options: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as texts by name; other settings override the file ``assume``."""
    values = dict(options)
    file = values.pop("assume", None)
    stated = {} if file is None else _flat(read_toml(check.path(file, "assume")))
    changes = _flat(values)
    choices = stated | changes
    for name, text in choices.items():
        origin = "" if name in changes else f"{file}: "
        section = name.partition(".")[0]
        if section not in _SECTIONS:
            advice = check.did_you_mean(section, _SECTIONS)
            rule = f"must be {', '.join(_SECTIONS)} or assume"
            raise ArgumentError("assumptions", rule, got=name, advice=advice)
        bound, good = " or ".join(_CHOICES.get(section, ("a text",))), isinstance(text, str)
        if section == "counts" or (section in ("labels", "columns") and name.endswith(".counts")):
            bound, good = _LAWS, good and law(text) is not None
        elif section == "marks" or (section == "columns" and name.endswith(".marks")):
            bound = "a range such as 1-4, withheld (any count), missing (no count) or note (the "
            bound += "count beside holds)"
            good = text in ("withheld", "missing", "note") or number_range(str(text)) is not None
            if name == "marks":
                bound, good = f"given by mark: write marks.MARK={text}", False
        elif section in _CHOICES:
            good = text in _CHOICES[section]
        if not good:
            raise ArgumentError(f"{origin}{name[:80]} must be {bound}, got {quote(text)}")
    return choices


def setting(text: str, sheets: Sequence[Sheet]) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``; both may hold equals signs.

    The name is the longest one that refers to a heading, a file or a text of the sheets. Without
    any, it ends at the last sign.
    """
    places = [match.start() for match in re.finditer("=", text)]
    splits = [(text[:i], text[i + 1 :]) for i in reversed(places)]
    words = set[str]()
    for sheet in sheets if len(splits) > 1 else ():
        cells = {cell for _, row in sheet.rows for cell in row}
        heads = {part for head in sheet.heads for part in (head, *head.split(PATH))}
        words |= {*map(key, cells | heads | {Path(sheet.name).name})}
    for name, value in splits:
        section, _, rest = name.partition(".")
        label = rest.partition(".")[2] if section == "labels" else rest
        label = re.sub(r"#\d+$", "", label) if section == "columns" else label
        if section in ("counts", "marks", "columns", "labels") and key(label) in words:
            return name, value
    return splits[0]


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{before}{name}.") if nested else {f"{before}{name}": value}
    return flat


def to_toml(rules: Mapping[str, str], unsaid: Collection[str] = ()) -> str:
    """Return the text of the file that ``assume`` reads; comments mark open questions."""
    lines = []
    for pair in rules.items():
        name, text = (json.dumps(t, ensure_ascii=False) for t in pair)
        line = f"{name} = {text}\n"
        lines.append(
            f"# Only you can say whether this is so:\n{line}" * (pair[0] in unsaid) or line
        )
    return "".join(lines).replace("\x7f", "\\u007f")


class ReadingRules:
    """Settings, questions beyond them with guesses, and lines on what was understood."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.choices = settings(options)
        self.lines: list[str] = []
        self.questions: dict[str, tuple[str, str]] = {}
        self.later: dict[str, str] = {}  # guesses to ask about after other answers
        self.open = set[str]()  # questions without evidence in the tables
        #: Alternative settings, the least changes first.
        self.alternatives: dict[tuple[str, str], None] = {}
        self.kinds = set[str]()  # variables found in headings
        self.labels: dict[str, set[str]] = {}  # of each kind, in the files so far
        self.notes: Sequence[Any] = ()  # sentences around the tables
        self.summed = False  # whether rows are totals, as in a spreadsheet
        self.rounded_sums = set[str]()  # files of rounded counts whose sums hold
        self.columns = self.section("columns")

    def section(self, name: str, *, guessed: bool = False) -> dict[str, str]:
        """Return the settings about headings or labels by spelling, with guesses if wanted."""
        size, every = len(name) + 1, self.all if guessed else self.choices
        part = {k: v for k, v in every.items() if k[:size].casefold() == f"{name}.".casefold()}
        return {key(k[size:]): v for k, v in part.items()}

    def ask(self, name: str, guess: str, text: str) -> str:
        """Return the setting that answers a question; else record it and return the guess."""
        if name not in self.choices:
            self.questions[name] = guess, text
        return self.choices.get(name, guess)

    def leave_open(self, name: str, reason: str) -> None:
        """Mark a question as one that only a person can answer."""
        guess, text = self.questions[name]
        self.questions[name] = guess, f"{text}; {reason}"
        self.open.add(name)

    def ask_later(self, name: str) -> None:
        """Use the guess of a question, if asked, until another one is answered."""
        if name in self.questions:
            self.later[name] = self.questions.pop(name)[0]

    @property
    def all(self) -> dict[str, str]:
        """All settings, with guesses for missing ones."""
        guesses = {name: guess for name, (guess, _) in self.questions.items()}
        return {**self.choices, **self.later, **guesses}


def hierarchy(file: Path) -> dict[str, list[str]]:
    """Return the children of each label in a ``.hrc`` file, which has one @ for each level."""
    path, children = list[str](), dict[str, list[str]]()
    lines = read_bytes(file, _TREE_BYTES).decode("utf-8-sig", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        if not (label := key(line.strip().lstrip("@"))):
            continue
        depth = len(line.strip()) - len(line.strip().lstrip("@"))
        if depth > len(path):
            raise DataError(
                f"{file}: row {number}: must be one level deeper at most, {quote(line)}"
            )
        path = [*path[:depth], label]
        if depth:
            children.setdefault(path[depth - 1], []).append(label)
    return children
