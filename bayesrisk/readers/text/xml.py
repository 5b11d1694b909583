"""XML from elsewhere, a piece at a time: no document type, and with it no entity; bounded tags."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.parsers import expat

from bayesrisk._files.parse import shown
from bayesrisk._files.text import MAX_LINE
from bayesrisk.exceptions import DataError

_DEPTH = 64


def plain_name(tag: str) -> str:
    """Return a name without its prefix."""
    return tag.rsplit(":", 1)[-1]


def parse(
    name: str,
    pieces: Iterable[bytes],
    *,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda tag: None,
    text: Callable[[str], None] = lambda data: None,
) -> Iterator[None]:
    """Tell of tags and text as they come; yield after each piece.

    Names of tags and attributes are told without their prefix.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def refuse(doctype: str, *_: Any) -> None:
        raise DataError(f"{name}: must have no document type, got {shown(doctype)}")

    def opening(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEPTH:
            raise DataError(f"{name}: tags must be at most {_DEPTH} deep")
        start(plain_name(tag), {plain_name(key): value for key, value in attributes.items()})

    def closing(tag: str) -> None:
        nonlocal depth
        depth -= 1
        end(plain_name(tag))

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = opening, closing
    parser.CharacterDataHandler = text
    fed = 0
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            fed += len(piece)
            if fed - parser.CurrentByteIndex > MAX_LINE:
                raise DataError(f"{name}: tags must be at most {MAX_LINE} bytes long, got more")
            yield
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: cannot be read: {error}") from error
    yield
