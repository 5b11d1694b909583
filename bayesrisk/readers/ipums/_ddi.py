"""The DDI codebook of an IPUMS extract: where each variable stands in a line.

XML from elsewhere is not trusted: a document type, and with it every entity, is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree  # to write

from bayesrisk._files.parse import shown
from bayesrisk._files.text import MAX_LINE
from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.source import list_sources, named
from bayesrisk.readers.text.xml import parse

_BYTES = 2**26
_PIECE = 2**16
_SPACE = "ddi:codebook:2_5"


@dataclass(frozen=True)
class Variable:
    """A variable: its first character in a line, from 0, and the one after its last."""

    name: str
    start: int
    stop: int


def read_ddi(path: str | Path) -> dict[str, Variable]:
    """Return the variables of a rectangular extract by their names, in capitals."""
    source = list_sources(path)[0]
    name = source.name
    book = _Codebook(name)
    with source.raw() as (stream, _):
        size = 0
        for _ in parse(
            name, iter(lambda: stream.read(_PIECE), b""), start=book.start, end=book.end
        ):
            size += _PIECE
            if size > _BYTES:
                raise DataError(f"{name}: must be at most {_BYTES} bytes long, got more")
    if not book.found:
        raise DataError(f"{name}: must describe variables, got none")
    return book.found


class _Codebook:
    """What has been read of a codebook."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[str, Variable] = {}
        self.root: str | None = None
        self.title: str | None = None
        self.place: dict[str, str] | None = None

    def start(self, tag: str, about: dict[str, str]) -> None:
        """Take in a tag."""
        if self.root is None:
            self.root = tag
            if tag != "codeBook":
                raise DataError(f"{self.name}: must be a DDI codebook, got {shown(tag)}")
        elif tag == "fileStrc" and about.get("type", "rectangular") != "rectangular":
            raise DataError(
                f"{self.name}: must describe a rectangular file, "
                f"got {shown(about['type'])}; ask for "
                "a rectangular extract"
            )
        elif tag == "var":
            self.title, self.place = (about.get("name") or about.get("ID") or "").upper(), None
        elif tag == "location" and self.place is None:
            self.place = about

    def end(self, tag: str) -> None:
        """Take in the end of a variable."""
        if tag != "var" or self.title is None:
            return
        title, place = self.title, self.place
        where = f"{self.name}: variable {title!r}"
        if not title or place is None:
            raise DataError(f"{where}: must have a name and a location")
        with named(where):
            start, stop = int(place.get("StartPos", "")), int(place.get("EndPos", ""))
        if not 1 <= start <= stop <= MAX_LINE:
            raise DataError(f"{where}: must be in a line, got {start}-{stop}")
        self.found[title] = Variable(title, start - 1, stop)
        self.title = None


def write_ddi(variables: dict[str, Variable], data: str) -> bytes:
    """Return the codebook of a fixed-width file."""
    root = ElementTree.Element("codeBook", {"xmlns": _SPACE, "version": "2.5"})
    text = ElementTree.SubElement(ElementTree.SubElement(root, "fileDscr"), "fileTxt")
    ElementTree.SubElement(text, "fileName").text = data
    ElementTree.SubElement(text, "fileStrc", {"type": "rectangular"})
    described = ElementTree.SubElement(root, "dataDscr")
    for variable in variables.values():
        entry = ElementTree.SubElement(
            described, "var", {"ID": variable.name, "name": variable.name, "dcml": "0"}
        )
        width = str(variable.stop - variable.start)
        place = {"StartPos": str(variable.start + 1), "EndPos": str(variable.stop), "width": width}
        ElementTree.SubElement(entry, "location", place)
    text_of: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text_of + b"\n"
