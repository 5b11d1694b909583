"""How long the pages of a Parquet file are, and how many values its lists hold, by its own word.

A page is held whole, and memory for it is taken by what its header says before a byte of it is
read.  A row of a list may hold billions of equal numbers in a few bytes, and is read whole; the
footer says how many there are.  pyarrow does not show the one, and its view of the other ends the
process where it is damaged, so that both are read here: Thrift's compact protocol, as the Parquet
format's specification has it.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

from bayesrisk._files.parse import Fault, named, shown
from bayesrisk.exceptions import DataError

#: Numbers in the lists of a file, and how many for each byte of it once there are many.
MAX_NUMBERS = 2**23
MAX_NUMBERS_PER_BYTE = 512
#: Bytes of all pages before they were compressed, and how many for each byte of the file.
MAX_PAGES = 2**24
MAX_BYTES_PER_BYTE = 128
#: Bytes of a page's header: it may quote the least and the greatest text of the page.
_HEADER = 2**16
_DEPTH = 32
_BITS = 64  # of a whole number
_NUMBER = (5, 4, 6)
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
# Fields of the specification.
_ROW_GROUPS, _COLUMNS, _ABOUT, _PATH, _NUMBERS, _DATA_AT, _DICTIONARY_AT = 4, 1, 3, 3, 5, 9, 11
_KIND, _LENGTH, _STORED = 1, 2, 3
_VALUES = {0: 5, 2: 7, 3: 8}  # where the header of a kind of page says how many there are
_DICTIONARY = 2


class _Compact:
    """Values of a text of the compact protocol, from its beginning; structs by their fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > _BITS:
                raise ValueError(f"whole numbers must have at most {_BITS} bits")

    def _number(self) -> int:
        value = self.data[self.at]
        if value < 128:  # most are
            self.at += 1
        else:
            value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return a value that stands alone or in a list."""
        if depth > _DEPTH:
            raise ValueError(f"the footer must be at most {_DEPTH} deep")
        if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY):
            size = self._varint() if kind == _BINARY else 8 if kind == _DOUBLE else 1
            self.at += size
            return self.data[self.at - size : self.at]
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _MAP:
            raise ValueError("the footer must hold no maps")
        return self.struct(depth) if kind == _STRUCT else self._number()

    def _list(self, depth: int) -> list[Any]:
        head = self.data[self.at]
        self.at += 1
        size = self._varint() if head >> 4 == 15 else head >> 4
        if size > len(self.data):
            raise ValueError(f"the footer must hold lists of its own length at most, got {size}")
        return [self.value(head & 15, depth + 1) for _ in range(size)]

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by their numbers."""
        found: dict[int, Any] = {}
        field = 0
        while head := self.data[self.at]:
            self.at += 1
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if kind in _NUMBER:  # most are
                found[field] = self._number()
            elif kind in (_TRUE, _FALSE):  # of a field they are the value itself
                found[field] = kind == _TRUE
            else:
                found[field] = self.value(kind, depth + 1)
        self.at += 1
        return found


def _abouts(stream: BinaryIO) -> tuple[list[list[dict[int, Any]]], int]:
    """Return what the footer says of the columns of each row group, and where the footer begins."""
    size = stream.seek(0, 2)
    stream.seek(-8, 2)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(-8 - length, 2)
    footer = _Compact(stream.read(length)).struct()
    groups = [[column[_ABOUT] for column in group[_COLUMNS]] for group in footer[_ROW_GROUPS]]
    return groups, size - 8 - length


def check_lists(file: Path, columns: list[str]) -> None:
    """Refuse a file whose lists in some columns hold more numbers than its bytes allow."""
    with named(str(file), also=(LookupError, TypeError, AttributeError)), file.open("rb") as stream:
        groups, _ = _abouts(stream)
        wanted = {column.encode() for column in columns}
        abouts = [about for group in groups for about in group]
        numbers = sum(about[_NUMBERS] for about in abouts if about[_PATH][0] in wanted)
        size = stream.seek(0, 2)
    most = max(MAX_NUMBERS, MAX_NUMBERS_PER_BYTE * size)
    if numbers > most:
        raise DataError(
            f"{file}: columns {', '.join(columns)}: must hold at most {most} numbers, by the "
            f"file's size, got {numbers}"
        )


def check_pages(
    file: Path,
    columns: Collection[str] | None = None,
    groups: Collection[int] | None = None,
    fault: Fault = DataError,
) -> None:
    """Refuse a file whose pages, of some columns in some row groups, are longer than it allows.

    The header of every page is read, and nothing of what follows it: no page may reach beyond the
    pages of the file, none may be part of another one, and all of them, before they were
    compressed, may be as long as the file's size allows.
    """
    wanted = None
    if columns is not None:  # pyarrow takes "a.b" for the part b of a as well
        wanted = {n.encode() for name in columns for n in (name, name.partition(".")[0])}
    with (
        named(str(file), fault, also=(LookupError, TypeError, AttributeError)),
        file.open("rb") as stream,
    ):
        found, end = _abouts(stream)
        most, stored, length = max(MAX_PAGES, MAX_BYTES_PER_BYTE * stream.seek(0, 2)), 0, 0
        for number in range(len(found)) if groups is None else groups:
            for about in found[number]:
                if wanted is not None and about[_PATH][0] not in wanted:
                    continue
                try:
                    sizes = _pages(stream, about, end, end - stored)
                except ValueError as error:
                    name = shown(about[_PATH][0].decode(errors="replace"))
                    raise ValueError(f"column {name}: {error}") from error
                stored, length = stored + sizes[0], length + sizes[1]
                if length > most:
                    raise fault(f"{file}: pages must be at most {most} bytes long, got {length}")


def _pages(stream: BinaryIO, about: dict[int, Any], end: int, room: int) -> tuple[int, int]:
    """Return the bytes of a column's pages in a row group: as they are stored, and of their text.

    ``room`` is how many of the bytes before ``end`` are of no page so far.
    """
    at = about[_DATA_AT]
    if 0 < about.get(_DICTIONARY_AT, 0) < at:
        at = about[_DICTIONARY_AT]
    left, stored, length = about[_NUMBERS], 0, 0
    while left > 0:
        header, begin = _header(stream, at, end)
        kind, size, packed = header[_KIND], header[_LENGTH], header[_STORED]
        values = header[_VALUES[kind]][1] if kind in _VALUES else 0
        stored, length = stored + begin - at + packed, length + size
        if not 0 <= packed <= end - begin or stored > room:
            raise ValueError(f"the page at byte {at} cannot be {packed} bytes long")
        # Each value in a dictionary takes a byte at least.
        if not 0 <= values <= (size if kind == _DICTIONARY else left):
            raise ValueError(f"the page at byte {at} cannot hold {values} values")
        if size < 0:
            raise ValueError(f"the page at byte {at} cannot hold {size} bytes")
        left -= 0 if kind == _DICTIONARY else values
        at = begin + packed
    return stored, length


def _header(stream: BinaryIO, at: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at a place, and where it ends."""
    if not 0 <= at < end:
        raise ValueError(f"a page must begin before byte {end}, got {at}")
    for size in (_HEADER >> 8, _HEADER):
        stream.seek(at)
        text = _Compact(stream.read(min(size, end - at)))
        try:
            return text.struct(), at + text.at
        except IndexError:
            continue
    raise ValueError(f"the header of the page at byte {at} must be at most {_HEADER} bytes long")
