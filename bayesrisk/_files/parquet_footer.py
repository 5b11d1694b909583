"""How many values the lists of a Parquet file hold, from its footer.

A row of a list may hold billions of equal numbers in a few bytes, and is read whole.  The footer
says how many there are; pyarrow's own view of that part ends the process where it is damaged, so
that it is read here: Thrift's compact protocol, as the Parquet format's specification has it.
"""

from pathlib import Path
from typing import Any

from bayesrisk._files.parse import named
from bayesrisk.exceptions import DataError

__all__ = ["check_lists"]

#: Numbers in the lists of a file, and how many for each byte of it once there are many.
MAX_NUMBERS = 2**23
MAX_NUMBERS_PER_BYTE = 512
_DEPTH = 32
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
# Fields of the specification.
_ROW_GROUPS, _COLUMNS, _ABOUT, _PATH, _NUMBERS = 4, 1, 3, 3, 5


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

    def _number(self) -> int:
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
            plain = kind in (_TRUE, _FALSE)  # of a field they are the value itself
            found[field] = kind == _TRUE if plain else self.value(kind, depth + 1)
        self.at += 1
        return found


def check_lists(file: Path, columns: list[str]) -> None:
    """Refuse a file whose lists in some columns hold more numbers than its bytes allow."""
    with named(str(file), also=(LookupError, TypeError, AttributeError)), file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(-8, 2)
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(-8 - length, 2)
        footer = _Compact(stream.read(length)).struct()
        abouts = [column[_ABOUT] for group in footer[_ROW_GROUPS] for column in group[_COLUMNS]]
        wanted = {column.encode() for column in columns}
        numbers = sum(about[_NUMBERS] for about in abouts if about[_PATH][0] in wanted)
    most = max(MAX_NUMBERS, MAX_NUMBERS_PER_BYTE * size)
    if numbers > most:
        raise DataError(
            f"{file}: columns {', '.join(columns)}: must hold at most {most} numbers, by the "
            f"file's size, got {numbers}"
        )
