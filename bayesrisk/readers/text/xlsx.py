"""The first sheet of an Excel workbook, row by row, in memory that does not grow with it.

A workbook is an archive of XML files: one lists the sheets, one holds the texts that cells share,
and each sheet has its rows.  Cells are read as the text that stands in them.
"""

import posixpath
import re
from collections.abc import Iterator

from bayesrisk._files.parse import shown
from bayesrisk._files.text import MAX_LINE
from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.source import Source, open_archive
from bayesrisk.readers.text.xml import parse

#: Bytes of a part that is held in memory: the shared texts are the longest.
_MEMBER = 2**25
_ROWS, _COLUMNS = 2**20, 2**14  # of a sheet, as Excel has it
_PIECE = 2**16
_CELL = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")


def sheet_rows(source: Source) -> Iterator[list[str]]:
    """Yield the rows of the first sheet; a cell that is not there is an empty text, or left out."""
    with open_archive(source.path) as archive:
        whole = "_rels/.rels" in archive.namelist()
    book = _targets(source, "", "_rels/.rels", "officeDocument") if whole else {}
    if not book:
        raise DataError(f"{source.name}: cannot be read: must be an Excel workbook")
    main = next(iter(book.values()))
    links = posixpath.join(posixpath.dirname(main), "_rels", posixpath.basename(main) + ".rels")
    base = posixpath.dirname(main)
    sheets = _targets(source, base, links, "worksheet")
    first = next((sheets[key] for key in _sheet_ids(source, main) if key in sheets), None)
    if first is None:
        raise DataError(f"{source.name}: must have a sheet, got none")
    texts = list(_targets(source, base, links, "sharedStrings").values())
    shared = _shared_texts(_member(source, texts[0])) if texts else []
    yield from _rows(_member(source, first), shared)


def _member(source: Source, name: str) -> Source:
    return Source(source.path, name)


def _targets(source: Source, base: str, links: str, kind: str) -> dict[str, str]:
    """Return the parts of a kind that a list of links names, by their keys."""
    found: dict[str, str] = {}

    def start(tag: str, about: dict[str, str]) -> None:
        if tag == "Relationship" and about.get("Type", "").endswith(f"/{kind}"):
            found[about.get("Id", "")] = posixpath.normpath(
                posixpath.join("/" + base, about.get("Target", ""))
            ).lstrip("/")

    part = _member(source, links)
    for _ in parse(part.name, [part.read(_MEMBER)], start=start):
        pass
    return found


def _sheet_ids(source: Source, main: str) -> list[str]:
    """Return the keys of the sheets, in their order."""
    found: list[str] = []

    def start(tag: str, about: dict[str, str]) -> None:
        if tag == "sheet":
            found.append(about.get("id", ""))

    part = _member(source, main)
    for _ in parse(part.name, [part.read(_MEMBER)], start=start):
        pass
    return found


class _Texts:
    """Collects the text of some tags, but for what tells how it is pronounced."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[str] = []
        self.open = False
        self.phonetic = False
        self.length = 0

    def start(self, tag: str) -> None:
        self.phonetic = self.phonetic or tag == "rPh"
        self.open = tag in ("t", "v") and not self.phonetic

    def end(self, tag: str) -> None:
        self.open = False
        self.phonetic = self.phonetic and tag != "rPh"

    def text(self, data: str) -> None:
        if self.open:
            self.parts.append(data)
            self.length += len(data)
            if self.length > MAX_LINE:
                raise DataError(
                    f"{self.name}: rows must be at most {MAX_LINE} characters long, got more"
                )

    def taken(self) -> str:
        whole = "".join(self.parts)
        self.parts = []
        return whole


def _shared_texts(part: Source) -> list[str]:
    """Return the texts that cells share."""
    found: list[str] = []
    texts = _Texts(part.name)

    def end(tag: str) -> None:
        texts.end(tag)
        if tag == "si":
            found.append(texts.taken())
            texts.length = 0

    for _ in parse(
        part.name,
        [part.read(_MEMBER)],
        start=lambda tag, about: texts.start(tag),
        end=end,
        text=texts.text,
    ):
        pass
    return found


class _Sheet:
    """The rows of a sheet that have been read and not yet been taken."""

    def __init__(self, name: str, shared: list[str]) -> None:
        self.name, self.shared = name, shared
        self.texts = _Texts(name)
        self.rows: list[list[str]] = []
        self.count = 0
        self.row: list[str] | None = None
        self.kind, self.column = "n", 0

    def start(self, tag: str, about: dict[str, str]) -> None:
        self.texts.start(tag)
        if tag == "row":
            self.row, self.texts.length = [], 0
            self._number(about.get("r"))
        elif tag == "c" and self.row is not None:
            self.kind = about.get("t", "n")
            self.column = self._column(about.get("r"))

    def _number(self, number: str | None) -> None:
        """Count a row; those left out are empty ones."""
        following = self.count + 1
        plain = number is not None and number.isascii() and number.isdigit() and len(number) < 9
        place = int(number) if number is not None and plain else following
        if not following <= place <= _ROWS or (number is not None and not plain):
            raise DataError(
                f"{self.name}: row {shown(number)}: must be row {following} or one after it, and "
                f"at most {_ROWS}"
            )
        self.rows += [[] for _ in range(place - following)]
        self.count = place

    def _column(self, place: str | None) -> int:
        """Return the column of a cell, from 0; by default the next one."""
        row = self.row or []
        if place is None:
            column = len(row)
        else:
            found = _CELL.fullmatch(place)
            column = 0
            for letter in found[1] if found else "":
                column = 26 * column + ord(letter) - ord("A") + 1
            column -= 1
        if not len(row) <= column < _COLUMNS:
            raise DataError(
                f"{self.name}: row {self.count}, cell {shown(place)}: must be the next of at most "
                f"{_COLUMNS}"
            )
        return column

    def end(self, tag: str) -> None:
        self.texts.end(tag)
        if self.row is None:
            return
        if tag == "c":
            self.row += [""] * (self.column - len(self.row))
            self.row.append(self._value(self.texts.taken()))
        elif tag == "row":
            self.rows.append(self.row)
            self.row = None

    def _value(self, text: str) -> str:
        if self.kind == "s":
            if not (text.isascii() and text.isdigit() and len(text) < 9):
                text = "-1"
            if not 0 <= int(text) < len(self.shared):
                raise DataError(
                    f"{self.name}: row {self.count}: must name one of {len(self.shared)} shared "
                    "texts"
                )
            return self.shared[int(text)]
        if self.kind == "n" and any(mark in text for mark in ".eE"):
            try:
                number = float(text)
            except ValueError:
                return text
            return str(int(number)) if number.is_integer() else str(number)
        return text


def _rows(part: Source, shared: list[str]) -> Iterator[list[str]]:
    sheet = _Sheet(part.name, shared)
    with part.raw() as (stream, _):
        pieces = iter(lambda: stream.read(_PIECE), b"")
        for _ in parse(part.name, pieces, start=sheet.start, end=sheet.end, text=sheet.texts.text):
            yield from sheet.rows
            sheet.rows.clear()
