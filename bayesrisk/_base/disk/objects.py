"""Files by URL, such as ``s3://bucket/run``: objects in a store that fsspec reaches.

A store shows an object once it is whole, so nothing is renamed and no folder is made. To read
several objects together, a last object must list them, as the manifest of a run does.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from bayesrisk.exceptions import ArgumentError, BayesRiskError, MissingDependencyError

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.DOTALL)  # a path has lost one slash
_EXTRA = "needs the extra bayesrisk-disclosure[cloud]"


def at_url(text: str, name: str = "path") -> Path | None:
    """Return the path of a URL, or None for another text.

    It is a path of universal-pathlib, which answers as one of :mod:`pathlib` does.
    """
    match = _URL.fullmatch(text)
    if match is None or (":/" in text and "://" not in text and os.path.lexists(text)):
        return None
    protocol, rest = match.groups()
    if protocol == "file":
        return Path("/" + rest)
    try:
        from upath import UPath

        place: Any = UPath(f"{protocol}://{rest}", use_listings_cache=False)
        _ = place.fs
    except ImportError as error:
        raise MissingDependencyError(f"{name} {text!r} {_EXTRA}: {error}") from error
    except ValueError as error:
        raise ArgumentError(name, "must have a protocol that fsspec knows", got=text) from error
    path: Path = place
    return path


def is_object(path: object) -> bool:
    """Return whether a path is one of a store."""
    return hasattr(path, "fs") and not isinstance(path, Path)


@contextmanager
def reached(path: Path) -> Iterator[Any]:
    """Provide the store of an object; its exceptions become errors of the system."""
    try:
        yield path.fs  # type: ignore[attr-defined]
    except (OSError, BayesRiskError):
        raise
    except Exception as error:  # each store has errors of its own
        raise OSError(f"{type(error).__name__}: {error}") from error


def _key(path: Path) -> str:
    key: str = path.path  # type: ignore[attr-defined]
    return key


def open_object(path: Path) -> tuple[BinaryIO, int]:
    """Return a stream of an object, and its size in bytes."""
    with reached(path) as store:
        size = int(store.info(_key(path))["size"])
        stream: BinaryIO = store.open(_key(path), "rb")
        return stream, size


def write_object(path: Path, data: bytes) -> None:
    """Write an object in one step."""
    with reached(path) as store:
        store.pipe_file(_key(path), data)


@contextmanager
def local_draft(path: Path) -> Iterator[BinaryIO]:
    """Provide a file on this machine that becomes an object when nothing went wrong."""
    with tempfile.TemporaryDirectory(prefix="bayesrisk-") as folder:
        draft = Path(folder) / "draft"
        with draft.open("wb") as stream:
            yield stream
        with reached(path) as store:
            store.put_file(str(draft), _key(path))


@contextmanager
def local_copy(path: Path) -> Iterator[Path]:
    """Provide a file on this machine with the bytes of an object."""
    with tempfile.TemporaryDirectory(prefix="bayesrisk-") as folder:
        copy = Path(folder) / path.name
        with reached(path) as store:
            store.get_file(_key(path), str(copy))
        yield copy


def listing(folder: Path) -> Mapping[str, tuple[Any, ...]]:
    """Return the files of a folder by name, with size and times.

    It may miss files that others write or remove meanwhile, in any order.
    """
    if not is_object(folder):
        states: dict[str, tuple[Any, ...]] = {}
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # gone since, as a temporary file is
                    states[entry.name] = _state(entry.stat(follow_symlinks=False))
        return states
    with reached(folder) as store:
        try:
            entries = store.ls(_key(folder), detail=True, refresh=True)
        except FileNotFoundError:
            return {}
    marks = ("size", "ETag", "etag", "mtime", "LastModified", "created")
    return {
        entry["name"].rsplit("/", 1)[-1]: tuple(str(entry.get(mark)) for mark in marks)
        for entry in entries
        if entry["type"] == "file"
    }


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
