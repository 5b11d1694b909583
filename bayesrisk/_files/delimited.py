"""Lines of comma-separated text as columns, a block of whole lines at a time.

Blocks are read here, and parsed from memory that is Arrow's own.  Given a stream of Python's, Arrow
reads ahead in a thread: where a process ends meanwhile, as after an error in the first rows, that
thread never comes back from Python, and the process waits for it for ever.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv

_BLOCK = 2**22  # bytes that are parsed at a time, and at most one line more
_ROW = re.compile(r"Row #(\d+)")
# Texts that a spreadsheet computes when it opens a file, and numbers, which it may.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9,]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?%?", re.IGNORECASE)


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def csv_tables(
    stream: _Stream,
    kinds: pa.Schema,
    *,
    wanted: Collection[str] | None = None,
    nulls: Sequence[str] = (),
    delimiter: str = ",",
    quotes: bool = True,
) -> Iterator[pa.Table]:
    """Yield the rows of a text without a header; lines end in a line feed, blank ones are no rows.

    Parameters
    ----------
    stream : file-like
        Bytes whose lines have a bounded length.
    kinds : pyarrow.Schema
        All columns of the text in turn, with their types.
    wanted : collection of str, optional
        Those that are yielded, in this order; by default all.
    nulls : sequence of str, optional
        What stands for a missing number; by default nothing does.
    delimiter : str, default ","
        What separates columns, one character.
    quotes : bool, default True
        Whether a value may stand between double quotes, on one line.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a row, which the message names, has another number of columns, a value is not of its
        kind, or a quote is not closed on its line.
    """
    names = list(kinds.names if wanted is None else wanted)
    parse = pa_csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False)
    convert = pa_csv.ConvertOptions(
        column_types={name: kinds.field(name).type for name in names},
        include_columns=names,
        null_values=list(nulls),
        strings_can_be_null=False,
    )
    done = 0
    for block in _blocks(stream):
        read = pa_csv.ReadOptions(
            column_names=kinds.names, block_size=len(block) + 1, use_threads=False
        )
        held = pa.BufferOutputStream()
        held.write(block)
        try:
            table = pa_csv.read_csv(held.getvalue(), read, parse, convert)
        except pa.ArrowInvalid as error:
            raise _after(done, error) from None
        if quotes:
            _check_quotes(block, table.num_rows, done, delimiter)
        done += table.num_rows
        yield table


def csv_bytes(frame: Any) -> bytes:
    """Return a data frame as CSV, in which no text is a formula.

    Names of protections and values of records come from others.  One that a spreadsheet would
    compute stands after an apostrophe, by which it takes a cell for text; ``own_text`` removes it.
    """
    texts = frame.select_dtypes(["object", "string", "category"])
    guarded = {name: texts[name].astype(object).map(_guarded) for name in texts}
    text: str = frame.assign(**guarded).to_csv(index=False, lineterminator="\n")
    return text.encode()


def _guarded(value: Any) -> Any:
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def own_text(value: Any) -> Any:
    """Return a value of such a file as it was."""
    if isinstance(value, str) and value.startswith("'") and _FORMULA.match(value):
        return value[1:]
    return value


def _after(done: int, error: pa.ArrowInvalid) -> pa.ArrowInvalid:
    """Return an error whose row is counted from the beginning of the text."""
    return pa.ArrowInvalid(_ROW.sub(lambda row: f"Row #{done + int(row[1])}", str(error)))


def _blocks(stream: _Stream) -> Iterator[bytes]:
    """Yield the bytes of a stream in pieces of whole lines, the end of the last one left out."""
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        data = stream.read(_BLOCK)
        more = bool(data)
        pieces.append(data)
        size += len(data)
        cut = data.rfind(b"\n") + 1
        if not more or (size >= _BLOCK and cut):
            pieces[-1] = data[:cut]
            # A blank line is no row, and a block without a row is an error of the parser.
            if block := b"".join(pieces).rstrip(b"\n"):
                yield block
            pieces, size = [data[cut:]], len(data) - cut


def _check_quotes(block: bytes, rows: int, done: int, delimiter: str) -> None:
    """Refuse a quote that is not closed on its line: the lines after it became one value."""
    closed = not _left_open(block[block.rfind(b"\n") + 1 :], delimiter)
    if closed and rows == block.count(b"\n") + 1:
        return
    lines = [line for line in block.split(b"\n") if line]
    if closed and rows == len(lines):
        return
    found = (row for row, line in enumerate(lines, done + 1) if _left_open(line, delimiter))
    raise pa.ArrowInvalid(f"Row #{next(found, done + 1)}: a quote must be closed on its line")


def _left_open(line: bytes, delimiter: str) -> bool:
    if b'"' not in line:
        return False
    try:
        next(csv.reader([line.decode(errors="replace")], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False
