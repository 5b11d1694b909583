"""Bytes of a file, of a compressed file or of a member of an archive, a piece at a time.

Nothing is unpacked to disk.  A member of an archive may be 256 GiB long at most, and beyond 64 MiB
at most 200 times as long as its compressed form: no census file comes near either bound.
"""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from bayesrisk.exceptions import BayesRiskError, DataError

__all__ = [
    "Source",
    "blocks",
    "find_source",
    "first_lines",
    "list_sources",
    "named",
    "one_source",
]

#: Bytes of a member of an archive, and how many for each compressed byte once it is large.
MAX_MEMBER = 2**38
MAX_RATIO = 200
_LARGE = 2**26
_FAULTS = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Turn what goes wrong in reading into an error that names the file."""
    try:
        yield
    except _FAULTS as error:
        if isinstance(error, BayesRiskError):
            raise
        lines = str(error).strip().splitlines()
        raise DataError(f"{name}: cannot be read: {lines[0] if lines else error!r}") from error


class _Tail:
    """A binary stream that remembers its last byte, to tell a file that was cut off."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.last = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if data:
            self.last = data[-1:]
        return data

    def readline(self) -> bytes:
        data = self._stream.readline()
        if data:
            self.last = data[-1:]
        return data

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@dataclass(frozen=True)
class Source:
    """A file, or one member of an archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def base(self) -> str:
        """Its own name in lower case, without folder and without the ending of compression."""
        base = (self.member or self.path.name).rsplit("/", 1)[-1].lower()
        return base.removesuffix(".gz")

    @contextmanager
    def open(self) -> Iterator[_Tail]:
        """Open the bytes; the last line must end in a newline once all is read."""
        with named(self.name):
            if self.member is not None:
                with zipfile.ZipFile(self.path) as archive:
                    _check_size(archive.getinfo(self.member), self.name)
                    with archive.open(self.member) as stream:
                        yield _Tail(cast("BinaryIO", stream))
            elif self.path.suffix.lower() == ".gz":
                with gzip.open(self.path, "rb") as packed:
                    yield _Tail(cast("BinaryIO", packed))
            else:
                with self.path.open("rb") as plain:
                    yield _Tail(plain)

    def check_end(self, stream: _Tail) -> None:
        """Refuse a file whose last line has no end: it may have been cut off."""
        if stream.last not in (b"", b"\n"):
            raise DataError(f"{self.name}: the last line must end in a newline; is the file whole?")


def _check_size(info: zipfile.ZipInfo, name: str) -> None:
    if info.file_size > MAX_MEMBER:
        raise DataError(f"{name}: must be at most {MAX_MEMBER} bytes long, got {info.file_size}")
    if info.file_size > _LARGE and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise DataError(
            f"{name}: must be at most {MAX_RATIO} times as long as its compressed form, got "
            f"{info.file_size} bytes from {info.compress_size}"
        )


def list_sources(path: str | Path) -> list[Source]:
    """Return the files of a folder, the members of an archive, or the file itself."""
    place = Path(path)
    with named(str(place)):
        if place.is_dir():
            return [Source(file) for file in sorted(place.iterdir()) if file.is_file()]
        if place.suffix.lower() != ".zip":
            if not place.exists():
                raise DataError(f"{place}: no such file")
            return [Source(place)]
        with zipfile.ZipFile(place) as archive:
            return [
                Source(place, info.filename) for info in archive.infolist() if not info.is_dir()
            ]


def find_source(path: str | Path, match: Callable[[str], bool], what: str) -> Source:
    """Return the only file below ``path`` whose own name matches."""
    found = list_sources(path)
    fitting = [source for source in found if match(source.base)]
    if len(fitting) == 1:
        return fitting[0]
    held = ", ".join(source.base for source in found[:10]) or "nothing"
    raise DataError(f"{path}: must hold exactly one {what}, got {len(fitting)} among: {held}")


def one_source(path: str | Path, *endings: str) -> Source:
    """Return a file as it is, or the only member of an archive or folder with such an ending."""
    place = Path(path)
    if place.is_dir() or place.suffix.lower() == ".zip":
        return find_source(place, lambda base: base.endswith(endings), " or ".join(endings))
    return list_sources(place)[0]


def blocks(source: Source, size: int) -> Iterator[bytes]:
    """Yield whole lines in pieces of about ``size`` bytes."""
    rest = b""
    with source.open() as stream:
        while data := stream.read(size):
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                if len(rest) > 2**24:
                    raise DataError(f"{source.name}: lines must end, got 16 MiB of one")
                rest += data
                continue
            whole, rest = rest + data[:cut], data[cut:]
            yield whole
        source.check_end(stream)


def first_lines(source: Source, comment: str | None) -> tuple[int, str]:
    """Return how many comment lines stand above the header, and the header."""
    skipped = 0
    with source.open() as stream:
        while line := stream.readline():
            text = line.decode("utf-8-sig" if skipped == 0 else "utf-8", errors="replace")
            if comment is None or not text.startswith(comment):
                return skipped, text.rstrip("\r\n")
            skipped += 1
    raise DataError(f"{source.name}: must have a header line, got none")
