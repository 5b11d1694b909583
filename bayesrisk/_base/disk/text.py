"""JSON, TOML and small files from elsewhere, within bounds; errors name the file."""

import io
import json
import os
import re
import stat
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from bayesrisk._base.disk.objects import is_object, open_object
from bayesrisk.exceptions import (
    BayesRiskError,
    ConfigError,
    DataError,
    did_you_mean,
    name_list,
    number_advice,
    quote,
)

_T = TypeVar("_T")
#: Makes the error about a file: a class of our own tree.
Fault = type[BayesRiskError]

#: Bytes of a file or of a table that is held whole: records of the largest state take 2 GiB.
MAX_HELD = 2**32
#: What to do about what is longer, unless who asks for it knows better.
IN_PIECES = ": read it a piece at a time, or a file for each state"
#: What a caller may say, so that a file is read in spite of values that cannot be.
MISSING = '; on_error="missing" keeps such values as missing'
#: Bytes and values of a JSON document: a sweep of 2**20 budgets is one of 68 MB and 3 million.
JSON_BYTES = 2**27
JSON_VALUES = 2**22
#: Bytes of any file: a length that is larger is a claim, such as that of a file with holes.
MAX_FILE = 2**38
#: Bytes of a TOML document.
TOML_BYTES = 2**18
_PIECE = 2**20
_ENTRIES = 2**12  # of a folder, among which one may be meant
_DEPTH = 64
_FIELDS = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_WIDTH = 200  # characters of a reason that a message quotes
_FAULTS = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,  # RecursionError is one
    zlib.error,
    zipfile.BadZipFile,
)


def nearby(path: Path, *marks: str) -> str:
    """Return advice about a path that does not exist, or lacks a file of these names.

    It names similar names, or an enclosing folder with such a file.
    """
    if is_object(path):
        return ""
    folder = path.parent
    if not os.path.lexists(path):
        if not folder.is_dir():
            return f"; there is no folder {folder}"
        if "\\" in path.name and os.sep == "/":
            return "; folders are set apart by / here"
        if re.search(r"[*?\[]", path.name):
            return "; no name fits the pattern"
        names = [one.name for one in islice(folder.iterdir(), _ENTRIES)]
        if near := did_you_mean(path.name, names):
            return f"{near[:-1]} in {folder}?" if path.name != str(path) else near
        like = sorted(n for n in names if Path(n).suffix == path.suffix and n[0] != ".")
        listing = name_list(like) if like else f"no {path.suffix or 'such'} file"
        return f"; {folder.resolve()} has {listing}"
    below = islice(path.iterdir(), _ENTRIES) if path.is_dir() else ()
    around = [folder, *sorted(below)]
    marked = [one for one in around if any((one / mark).is_file() for mark in marks)]
    return f": give {marked[0]}" if marked else ""


@contextmanager
def named(name: str, fault: Fault = DataError, *, also: tuple[Any, ...] = ()) -> Iterator[None]:
    """Turn what goes wrong in reading into an error that names the file."""
    try:
        yield
    except (*_FAULTS, *also) as error:
        if isinstance(error, BayesRiskError):
            raise
        if isinstance(error, IsADirectoryError):
            raise fault(f"{name}: must be a file, is a folder") from error
        lines = str(error).strip().splitlines()
        reason = _FIELDS.sub(r"row \1 must have \2 fields, got \3", (lines or [repr(error)])[0])
        reason = reason[:_WIDTH]
        if isinstance(error, FileNotFoundError):
            near = nearby(Path(error.filename)) if isinstance(error.filename, str) else ""
            raise fault(f"{name}: cannot be read: there is no such file", advice=near) from error
        other = isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason
        advice = "; save it as text in UTF-8 (`CSV UTF-8` in a spreadsheet)" * other
        if "magic bytes" in reason:
            reason, advice = "it is no Parquet file, or a part of one", ": copy it again, whole"
        raise fault(f"{name}: cannot be read: {reason}", advice=advice) from error


def check_held(name: str, size: int, most: int | None = None, fault: Fault = DataError) -> None:
    """Refuse a file too long to hold in memory: above ``MAX_HELD`` bytes, or ``most`` if less."""
    most = MAX_HELD if most is None else min(most, MAX_HELD)
    if size > most:
        text = f"{name}: must take at most {most} bytes to be held whole, got {size}"
        raise fault(text, advice=IN_PIECES)


def gather(pieces: Iterable[_T], size: Callable[[_T], int], name: str) -> list[_T]:
    """Return all pieces, as long as they can be held."""
    parts, total = [], 0
    for piece in pieces:
        total += size(piece)
        check_held(name, total)
        parts.append(piece)
    return parts


def open_regular(
    file: Path, fault: Fault = DataError, *, most: int = MAX_FILE, name: str | None = None
) -> BinaryIO:
    """Open a file of at most ``most`` bytes, which nobody has to wait for: no pipe, no device."""
    called = name or str(file)
    if is_object(file):
        with named(called, fault):
            source, size = open_object(file)
        if size > most:
            source.close()
            raise fault(f"{called}: must be at most {most} bytes long, got {size}")
        return source
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with named(called, fault):
        stream = io.FileIO(file, opener=lambda path, _: os.open(path, flags))
    status = os.fstat(stream.fileno())
    refusal = ""
    if not stat.S_ISREG(status.st_mode):
        refusal = "a regular file, is a pipe, a device or a socket"
    elif status.st_size > most:
        refusal = f"at most {most} bytes long, got {status.st_size}"
    if refusal:
        stream.close()
        raise fault(f"{called}: must be {refusal}")
    return io.BufferedReader(stream)


def check_own(path: Path, fault: Fault = DataError) -> None:
    """Refuse a listed file outside the folder: a link that leaves it."""
    if is_object(path):  # a store has no links
        return
    place = Path(os.path.realpath(path))
    if place.parent != Path(os.path.realpath(path.parent)):
        raise fault(f"{path}: must lie in its folder, is a link to {quote(str(place))}")


def read_pieces(
    file: Path, most: int, fault: Fault = DataError, *, name: str | None = None
) -> Iterator[bytes]:
    """Yield the bytes of a file, which are at most ``most``, and as many as it states."""
    called, size = name or str(file), 0
    with named(called, fault), open_regular(file, fault, most=most, name=name) as stream:
        if not is_object(file):
            most = min(most, max(os.fstat(stream.fileno()).st_size, _PIECE))
        while data := stream.read(_PIECE):
            size += len(data)
            if size > most:  # some files of the system state none, and have no end
                raise fault(f"{called}: must be at most {most} bytes long, got more")
            yield data


def read_bytes(
    file: Path, most: int, fault: Fault = DataError, *, name: str | None = None
) -> bytes:
    """Return the bytes of a small file."""
    return b"".join(read_pieces(file, most, fault, name=name))


def read_json(file: Path, fault: Fault = DataError) -> Any:
    """Return the JSON document in a file: numbers are finite and whole ones fit in 64 bits."""
    return json_document(read_bytes(file, JSON_BYTES, fault), str(file), fault)


def json_document(raw: bytes, name: str, fault: Fault = DataError) -> Any:
    """Return a JSON document: numbers are finite and whole ones fit in 64 bits."""
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    if values > JSON_VALUES:
        raise fault(f"{name}: must hold at most {JSON_VALUES} values, got about {values}")
    try:
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise fault(f"{name}: cannot be read as JSON: {_reason(error)}") from error
    if problem := _problem(document):
        raise fault(f"{name}: cannot be read as JSON: {problem}")
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, each of whose keys stands there once."""
    document = dict(pairs)
    if len(document) < len(pairs):
        key = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"key {quote(key)} must stand in its object once")
    return document


def read_toml(file: Path, *, name: str | None = None) -> dict[str, Any]:
    """Return the TOML document in a file."""
    called = name or str(file)
    raw = read_bytes(file, TOML_BYTES, ConfigError, name=called)
    try:
        return toml_document(raw.decode("utf-8"))
    except ValueError as error:
        place = re.search(r"at line (\d+)", str(error))
        lines = raw.decode("utf-8", "ignore").splitlines()
        advice = _toml_advice(lines[int(place[1]) - 1]) if place else ""
        advice = advice or ": close all brackets and quotes" * ("end of document" in str(error))
        text = f"{called}: cannot be read as TOML: {_reason(error)}"
        raise ConfigError(text, advice=advice) from error


def _toml_advice(line: str) -> str:
    """Return advice about a line that is no TOML."""
    name, _, value = (part.strip() for part in line.partition("="))
    if re.fullmatch(r"\"[^\"]*|'[^']*", value):
        return f": close the quote of {value[:40]}"
    if re.fullmatch(r"[A-Za-z_][\w.:/ -]*", value):
        return f': write {name} = "{value}", in quotes'
    if re.fullmatch(r'"[^"]*\\[^"]*"', value):
        return f": write {name} = '{value[1:-1]}', in single quotes"
    return number_advice(value, "a number")


def toml_document(text: str) -> dict[str, Any]:
    """Return the TOML document of a text; any fault in it is a ``ValueError``."""
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(_reason(error)) from error
    if problem := _problem(document, numbers=False):
        raise ValueError(problem)
    return document


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"must be at most {_DEPTH} deep"
    return str(error)[:_WIDTH]


def _problem(document: object, *, numbers: bool = True) -> str | None:
    """Return the first unsupported value (not finite, too large, too deep), or None."""
    level, depth = [document], 0
    while level:
        if depth > _DEPTH:
            return f"must be at most {_DEPTH} deep"
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif numbers and isinstance(value, int) and not -(2**63) <= value < 2**63:
                return f"whole numbers must fit in 64 bits, got {quote(value)}"
            elif numbers and isinstance(value, float) and not abs(value) < float("inf"):
                return f"numbers must be finite, got {value}"
        level, depth = below, depth + 1
    return None
