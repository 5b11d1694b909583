"""The DDI codebook of an IPUMS extract: where each variable stands in a line.

XML from elsewhere is not trusted: a document type, and with it every entity, is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree  # the parser below refuses document types

from bayesrisk.exceptions import DataError
from bayesrisk.readers._source import list_sources, named

__all__ = ["Variable", "read_ddi", "write_ddi"]

_BYTES = 2**26
_SPACE = "ddi:codebook:2_5"


@dataclass(frozen=True)
class Variable:
    """A variable: its first character in a line, from 0, and the one after its last."""

    name: str
    start: int
    stop: int


class _Builder(ElementTree.TreeBuilder):
    """A tree without document type, and so without entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse a document type."""
        raise DataError(f"must have no document type, got {name!r} ({pubid}, {system})")


def _root(path: str | Path) -> tuple[str, ElementTree.Element]:
    source = list_sources(path)[0]
    with source.open() as stream:
        raw = stream.read(_BYTES + 1)
    if len(raw) > _BYTES:
        raise DataError(f"{source.name}: must be at most {_BYTES} bytes long")
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314
    try:
        parser.feed(raw)
        return source.name, parser.close()
    except ElementTree.ParseError as error:
        raise DataError(f"{source.name}: cannot be read: {error}") from error
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def _plain(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


def read_ddi(path: str | Path) -> dict[str, Variable]:
    """Return the variables of a rectangular extract by their names, in capitals."""
    name, root = _root(path)
    if _plain(root.tag) != "codeBook":
        raise DataError(f"{name}: must be a DDI codebook, got {_plain(root.tag)!r}")
    found: dict[str, Variable] = {}
    for element in root.iter():
        kind = _plain(element.tag)
        if kind == "fileStrc" and element.get("type", "rectangular") != "rectangular":
            raise DataError(
                f"{name}: must describe a rectangular file, got {element.get('type')!r}; ask for "
                "a rectangular extract"
            )
        if kind == "var":
            variable = _variable(element, name)
            found[variable.name] = variable
    if not found:
        raise DataError(f"{name}: must describe variables, got none")
    return found


def _variable(element: ElementTree.Element, name: str) -> Variable:
    title = (element.get("name") or element.get("ID") or "").upper()
    place = next((child for child in element if _plain(child.tag) == "location"), None)
    with named(f"{name}: variable {title!r}"):
        if not title or place is None:
            raise DataError(f"{name}: variable {title!r}: must have a name and a location")
        start, stop = int(place.get("StartPos", "")), int(place.get("EndPos", ""))
        if not 1 <= start <= stop:
            raise DataError(f"{name}: variable {title!r}: must be in a line, got {start}-{stop}")
    return Variable(title, start - 1, stop)


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
