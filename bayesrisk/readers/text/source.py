"""Bytes of a file, of a compressed file or of a member of an archive, a piece at a time.

Nothing is unpacked to disk.  A member of an archive may be 256 GiB long at most, and beyond 64 MiB
at most 200 times as long as its compressed form: no census file comes near either bound.  Members
are packed by DEFLATE, as published ones are, or not at all: of other methods a few bytes can
unpack to gigabytes at once.
"""

import gzip
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.delimited import TextStream, check_ratio
from bayesrisk._files.text import named as named
from bayesrisk.exceptions import ArgumentError, DataError, MissingDependencyError

#: Bytes of a member of an archive.
MAX_MEMBER = 2**38
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_COMMENTS = 1000  # lines above a header
# How files begin that are no text, whatever they are called, and what to do.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an Excel file of the old form (.xls): save it as .xlsx or as CSV",
    b"PK\x03\x04": "a ZIP archive or a workbook: its name must end in .zip or .xlsx",
    b"PAR1": "a Parquet file: its name must end in .parquet",
    b"\x1f\x8b": "a gzip file: its name must end in .gz",
    b"\xff\xfe": "text in UTF-16: save it as CSV UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as CSV UTF-8",
}


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive."""
    with named(str(path)):
        archive = zipfile.ZipFile(path)
    with archive:
        yield archive


@dataclass(frozen=True)
class Source:
    """A file, or one member of an archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def base(self) -> str:
        """Its own name in lower case, without folder and without the ending of compression."""
        base = (self.member or self.path.name).rsplit("/", 1)[-1].lower()
        return base.removesuffix(".gz")

    @contextmanager
    def raw(self) -> Iterator[tuple[BinaryIO, int | None]]:
        """Open the bytes as they are; with them, how many they are compressed, if they are."""
        with named(self.name):
            if self.member is not None:
                with open_archive(self.path) as archive:
                    info = _member(archive, self.member, self.name)
                    with archive.open(info) as stream:
                        yield cast("BinaryIO", stream), info.compress_size
            elif self.path.suffix.lower() == ".gz":
                with gzip.open(self.path, "rb") as packed:
                    yield cast("BinaryIO", packed), self.path.stat().st_size
            else:
                with self.path.open("rb") as plain:
                    yield plain, None

    @contextmanager
    def open(self) -> Iterator[TextStream]:
        """Open the lines."""
        with self.raw() as (stream, packed):
            yield TextStream(stream, self.name, packed)

    def read(self, most: int) -> bytes:
        """Return all bytes of a small file."""
        with self.raw() as (stream, _):
            raw = stream.read(most + 1)
        if len(raw) > most:
            raise DataError(f"{self.name}: must be at most {most} bytes long, got more")
        return raw


def _member(archive: zipfile.ZipFile, member: str, name: str) -> zipfile.ZipInfo:
    """Return the entry of a member that may be read."""
    try:
        info = archive.getinfo(member)
    except KeyError as error:
        raise DataError(f"{name}: is not in the archive") from error
    if info.compress_type not in _METHODS:
        raise DataError(
            f"{name}: must be packed by DEFLATE or not at all, got method {info.compress_type}"
        )
    if info.file_size > MAX_MEMBER:
        raise DataError(f"{name}: must be at most {MAX_MEMBER} bytes long, got {info.file_size}")
    check_ratio(name, info.file_size, info.compress_size)
    return info


def list_sources(path: str | Path) -> list[Source]:
    """Return the files of a folder, the members of an archive, or the file itself."""
    place = check.path(path, "path")
    with named(str(place)):
        if place.is_dir():
            return [Source(file) for file in sorted(place.iterdir()) if file.is_file()]
        if not place.exists():
            raise DataError(f"{place}: no such file")
        if place.suffix.lower() != ".zip":
            return [Source(place)]
        with open_archive(place) as archive:
            members = [info for info in archive.infolist() if info.filename]
            return [Source(place, info.filename) for info in members if not info.is_dir()]


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
    place = check.path(path, "path")
    with named(str(place)):
        several = place.is_dir() or place.suffix.lower() == ".zip"
    if several:
        return find_source(place, lambda base: base.endswith(endings), " or ".join(endings))
    return list_sources(place)[0]


def blocks(source: Source, size: int) -> Iterator[bytes]:
    """Yield whole lines in pieces of about ``size`` bytes."""
    rest = b""
    with source.open() as stream:
        while data := stream.read(size):
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                rest += data
                continue
            whole, rest = rest + data[:cut], data[cut:]
            yield whole
        stream.check_end()


def first_lines(source: Source, comment: str | None) -> tuple[int, bytes]:
    """Return the number of comment lines above the header, and the header."""
    mark = None if comment is None else comment.encode()
    with source.open() as stream:
        for skipped in range(_COMMENTS):
            line = stream.readline()
            for start, what in _OTHERS.items():
                if skipped == 0 and line.startswith(start):
                    raise DataError(f"{source.name}: cannot be read as text, is {what}")
            if mark is None or not line.removeprefix(b"\xef\xbb\xbf").startswith(mark):
                if line:
                    return skipped, line
                raise DataError(f"{source.name}: must have a header line, got none")
    raise DataError(f"{source.name}: must have a header line among the first {_COMMENTS}")


def sheet_rows(source: Source) -> Iterator[list[str]]:
    """Yield the rows of the first sheet of an Excel workbook as text; a blank cell is empty."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingDependencyError(
            f"{source.name}: an Excel workbook needs openpyxl: pip install 'bayesrisk[excel]', or "
            "save it as CSV"
        ) from error
    with open_archive(source.path) as archive:
        for info in archive.infolist():
            _member(archive, info.filename, f"{source.name}/{info.filename}")
    # Every kind of error means that it is no workbook.
    with named(source.name, also=(Exception,)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not kept
            book = openpyxl.load_workbook(source.path, read_only=True, data_only=True)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # they are often wrong
            for row in sheet.iter_rows(values_only=True):
                yield [_cell_text(value) for value in row]
        finally:
            book.close()


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def new_file(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that takes its name only once all is written."""
    return _files.whole_file(check.path(path, "path"), new=True)


def write_table(
    path: str | Path,
    columns: Iterable[str],
    tables: Iterable[pa.Table],
    *,
    delimiter: str = ",",
    above: str = "",
    quotes: bool = False,
) -> None:
    """Write a header and tables with these columns to a new file."""
    names = list(columns)
    options = pyarrow.csv.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="needed" if quotes else "none"
    )
    with new_file(path) as stream:
        stream.write((above + delimiter.join(names) + "\n").encode())
        for table in tables:
            if not table.num_rows:
                continue
            try:
                pyarrow.csv.write_csv(table.select(names), stream, options)
            except pa.ArrowInvalid as error:
                rule = f"records must hold no text with {delimiter!r}"
                raise ArgumentError(f"{rule}: {error}") from error
