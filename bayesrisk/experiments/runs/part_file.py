"""A result part as one file that can tell whether it is whole, and what it is.

The footer names the part (kind, shard, digest of the configuration) and carries a seal: the
SHA-256 of the file's own bytes, the place of the seal blank.  So any bit that changes is noticed
without a second file, whatever the reader makes of it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk.exceptions import PartFileError

_KEY = "bayesrisk.seal"
_NOT_SAID = (_KEY.encode(), b"ARROW:schema")
_BLANK = b"0" * 64
_SEAL = re.compile(rb"bayesrisk\.seal.{1,8}?([0-9a-f]{64})", re.DOTALL)


class PartFile(NamedTuple):
    """What a part holds: its rows, its footer, and the SHA-256 of the file."""

    table: pa.Table
    footer: dict[str, str]
    sha256: str


class PartSummary(NamedTuple):
    """What a part says of itself: its number of rows, its footer, and the SHA-256 of the file."""

    rows: int
    footer: dict[str, str]
    sha256: str


def pack(table: pa.Table, footer: Mapping[str, str]) -> bytes:
    """Return the bytes of a part."""
    sink = pa.BufferOutputStream()
    named = table.replace_schema_metadata(dict(footer))
    with pq.ParquetWriter(
        sink, named.schema, compression="zstd", write_page_checksum=True
    ) as writer:
        writer.write_table(named)
        writer.add_key_value_metadata({_KEY: _BLANK.decode()})
    data: bytes = sink.getvalue().to_pybytes()
    start, stop = _place(data)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[stop:]


def unpack(file: Path, advice: str) -> PartFile:
    """Return a part after checking its seal.

    Parameters
    ----------
    file : Path
        The part.
    advice : str
        What to do where it is damaged, for the message.

    Raises
    ------
    PartFileError
        If it cannot be read, or is not as it was written: the file is named.
    """
    with _named(file, advice):
        part, data = _opened(file)
        # Arrow's threads let go of Python's bytes some time after: a process that ends then aborts.
        table = part.read(use_threads=False).replace_schema_metadata(None)
        return PartFile(table, _footer(part), hashlib.sha256(data).hexdigest())


def look_at(file: Path, advice: str) -> PartSummary:
    """Return what a part says of itself after checking its seal, without decoding its rows.

    The seal is over every byte of the file, so a part that is whole here is whole.

    Parameters
    ----------
    file : Path
        The part.
    advice : str
        What to do where it is damaged, for the message.

    Raises
    ------
    PartFileError
        If it cannot be read, or is not as it was written: the file is named.
    """
    with _named(file, advice):
        part, data = _opened(file)
        return PartSummary(part.metadata.num_rows, _footer(part), hashlib.sha256(data).hexdigest())


@contextmanager
def _named(file: Path, advice: str) -> Iterator[None]:
    """Name the file in every error of reading it."""
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise PartFileError(f"{file}: is not a whole part ({reason}); {advice}") from error


def _opened(file: Path) -> tuple[pq.ParquetFile, bytes]:
    """Return a part whose seal fits, and its bytes."""
    data = file.read_bytes()
    _check_seal(data)
    return pq.ParquetFile(pa.BufferReader(data)), data


def _footer(part: pq.ParquetFile) -> dict[str, str]:
    about = part.metadata.metadata
    return {k.decode(): v.decode() for k, v in about.items() if k not in _NOT_SAID}


def _check_seal(data: bytes) -> None:
    start, stop = _place(data)
    blank = data[:start] + _BLANK + data[stop:]
    if hashlib.sha256(blank).hexdigest().encode() != data[start:stop]:
        raise ValueError("its bytes do not fit its seal")


def _place(data: bytes) -> tuple[int, int]:
    """Return where the seal stands: in the last key of that name, which is in the footer."""
    start = data.rfind(_KEY.encode())
    found = _SEAL.match(data, start) if start >= 0 else None
    if found is None:
        raise ValueError("it has no seal")
    return found.span(1)
