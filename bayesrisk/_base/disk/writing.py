"""Files and folders that are whole or unchanged, and their digests."""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from bayesrisk._base.disk.objects import is_object, local_draft, write_object
from bayesrisk._base.disk.text import MAX_FILE, MAX_HELD, Fault, check_own, read_json, read_pieces
from bayesrisk.exceptions import BayesRiskError, DataError, OutputError

if sys.platform != "win32":
    import fcntl

_SEAL = "seal"
_UNFINISHED = re.compile(r"\.bayesrisk-([0-9a-f]{16})-[0-9a-f]{16}\.tmp")
_NEW, _OLD = "new", "old"  # in an unfinished folder: what is being made, and what it replaces
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_FILE, _FOLDER = 0o666, 0o777  # less what the user's umask takes away


# Digests of files, and JSON documents that carry their own.


def digest(file: str | Path, most: int = MAX_FILE, fault: Fault = DataError) -> str:
    """Return the SHA-256 of a file's bytes; more than ``most`` bytes are refused."""
    total = hashlib.sha256()
    for data in read_pieces(Path(file) if isinstance(file, str) else file, most, fault):
        total.update(data)
    return total.hexdigest()


def check_digest(
    file: Path, expected: str, listing: str, fault: Fault = DataError, most: int = MAX_HELD
) -> None:
    """Refuse a file that is not the one that a manifest beside it lists."""
    check_own(file, fault)
    if digest(file, most, fault) != expected:
        raise fault(f"{file}: is not the file that {listing} lists: damaged, or changed")


def digest_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's finished files."""
    total = hashlib.sha256()
    try:
        for file in sorted(p for p in folder.iterdir() if p.is_file()):
            if not is_leftover(file.name):
                total.update(f"{file.name} {digest(file)}\n".encode())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error}") from error
    return total.hexdigest()


def read_document(file: Path, fault: Fault = DataError) -> dict[str, Any]:
    """Return the JSON object in a file without its seal, which must fit where there is one."""
    check_own(file, fault)
    document = read_json(file, fault)
    try:
        return unsealed(document)
    except ValueError as error:
        raise fault(f"{file}: {error}") from error


def sealed(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON with its own digest in it, under ``seal``."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return (json.dumps({**plain, _SEAL: document_digest(plain)}, indent=1) + "\n").encode()


def unsealed(document: object) -> dict[str, Any]:
    """Return a document without its seal; a ValueError says that it was changed.

    A document without a seal is accepted: it may have been written by hand. So a reader must refuse
    unknown keys, or a seal with a damaged name would go unnoticed.
    """
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise ValueError(f"must be an object, got {kind}")  # noqa: TRY004 - a fault of the file
    plain = dict(document)
    if _SEAL in plain and plain.pop(_SEAL) != document_digest(plain):
        raise ValueError("was changed after it was written: its seal does not fit")
    return plain


def document_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the content of a JSON document, in any layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


# Unfinished outputs: a hidden folder beside each, locked by the process that fills it.


def is_leftover(name: str) -> bool:
    """Return whether a name is one that only an unfinished output of ours has."""
    return _UNFINISHED.fullmatch(name) is not None


def _key(target: Path) -> str:
    """Return a hash of an output's name, for the name of its unfinished form."""
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]


def hidden(target: Path) -> Path:
    """Return a name beside an output that nobody can foresee."""
    return target.parent / f".bayesrisk-{_key(target)}-{secrets.token_hex(8)}.tmp"


@contextlib.contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside an output, locked while in use, and remove it at the end."""
    while True:
        folder = hidden(target)
        folder.mkdir(_PRIVATE_FOLDER)
        lock = _locked(folder)
        if lock is not None:
            break  # else another process took it for a leftover
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:  # whatever stops the removal: the next start must be free to end it
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Return a handle that locks a folder; None if another process holds it."""
    if sys.platform == "win32":  # no locks, and nobody removes leftovers either
        return os.open(os.devnull, os.O_RDONLY)
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:  # whoever had it has removed it
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks
        return handle
    if os.fstat(handle).st_nlink:
        return handle
    os.close(handle)
    return None


def clear(target: Path, *siblings: Path) -> None:
    """Remove leftovers of killed processes in one folder, and restore what they moved away."""
    if is_object(target):
        return
    try:
        leftovers = [path for path in target.parent.iterdir() if is_leftover(path.name)]
    except OSError:
        return  # no such folder, or none to be read: the writing itself says so
    outputs = {_key(path): path for path in (target, *siblings)} if leftovers else {}
    for path in leftovers:
        output = outputs.get(path.name.split("-")[1])
        if output is not None and sys.platform != "win32":
            with contextlib.suppress(OSError):
                _clear_one(path, output)


def _clear_one(path: Path, output: Path) -> None:
    if path.lstat().st_uid != os.geteuid() or (lock := _locked(path)) is None:
        return
    try:
        if (path / _OLD).exists() and not os.path.lexists(output):
            (path / _OLD).rename(output)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


@contextlib.contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Turn a refusal of the system into an error that names the path and the reason."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BayesRiskError):
            raise
        reason = error.strerror or str(error) or type(error).__name__
        other = Path(error.filename) if isinstance(error.filename, str) else None
        inside = other is None or any(map(is_leftover, other.parts))
        if not inside and other != Path(path):
            reason += f" ({other})"
        advice = "; choose another place"
        raise OutputError(f"{path}: cannot be written: {reason}", advice=advice) from error


@contextlib.contextmanager
def whole_file(
    path: str | Path, *, private: bool = False, new: bool = False, tidy: bool = True
) -> Iterator[BinaryIO]:
    """Open a file that takes its place in one step, once everything is written.

    An existing file keeps its permissions, or is refused if the file must be ``new``. A ``private``
    file is its owner's alone (0600). ``tidy`` first removes leftovers of killed runs for this file,
    which lists its folder. Nothing of it remains after an error.
    """
    if is_object(path):
        with explained(path), local_draft(path) as stream:  # type: ignore[arg-type]
            yield stream
        return
    target = Path(path)
    if tidy:
        clear(target)
    with contextlib.ExitStack() as stack:
        with explained(target):
            if new and os.path.lexists(target):
                raise OutputError(f"{target}: exists already; choose another name")
            if target.is_dir():
                raise OutputError(f"{target}: must be a file, but is a folder")
            if not target.parent.exists():
                raise OutputError(f"{target}: the folder {str(target.parent)!r} does not exist")
            _check_name(target)
            draft = stack.enter_context(_unfinished(target)) / _NEW
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            handle = os.open(draft, flags, _PRIVATE_FILE if private else _FILE)
        stream = os.fdopen(handle, "wb")
        try:
            with explained(target):
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                stream.close()
                if not private and (before := _permissions(target)) is not None:
                    draft.chmod(before)
                draft.replace(target)
                _settle(target.parent)
        finally:
            with contextlib.suppress(OSError, ValueError):
                stream.close()


def write_bytes(path: str | Path, data: bytes, *, private: bool = False, tidy: bool = True) -> None:
    """Write a file so that it is either whole or as it was before."""
    if is_object(path):
        with explained(path):
            write_object(path, data)  # type: ignore[arg-type]
        return
    with whole_file(path, private=private, tidy=tidy) as stream:
        stream.write(data)


@contextlib.contextmanager
def whole_folder(
    path: str | Path, check: Callable[[Path], None], *, private: bool = False
) -> Iterator[Path]:
    """Make a folder that takes its place once it is whole.

    ``check`` refuses, by an OutputError, a folder that must not be replaced. It is called with the
    path at the start, and again before the step; a folder that it accepts is deleted afterwards.
    Parents are made. A ``private`` folder is its owner's alone (0700, files 0600). On Linux a
    replaced folder changes places with the new one in one step. Elsewhere a kill between two
    renames leaves the old one in a hidden folder, and none in its place. The next start of the same
    output restores it.
    """
    if is_object(path):
        with _objects(path, check) as draft:  # type: ignore[arg-type]
            yield draft
        return
    output = Path(path)
    with contextlib.ExitStack() as stack:
        with explained(output):
            target = Path(os.path.realpath(output))
            clear(target)
            _check_place(output, target)
            check(output)
            parents = [folder for folder in target.parents if not folder.exists()]
            stack.callback(lambda: _remove_empty(parents))
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = stack.enter_context(_unfinished(target)) / _NEW
            draft.mkdir(_PRIVATE_FOLDER if private else _FOLDER)
        with _rename_errors(output, draft), explained(output):
            yield draft
            for inner in (draft, *draft.rglob("*")):
                if private:
                    inner.chmod(_PRIVATE_FOLDER if inner.is_dir() else _PRIVATE_FILE)
                elif (before := _permissions(target / inner.relative_to(draft))) is not None:
                    inner.chmod(before)
                if inner.is_dir():
                    _settle(inner)
            check(output)
            _swap(draft, target)
            _settle(target.parent)


@contextlib.contextmanager
def _objects(output: Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """Make a folder on this machine, and then its files as objects: those that list others last."""
    check(output)
    with tempfile.TemporaryDirectory(prefix="bayesrisk-") as folder:
        draft = Path(folder) / _NEW
        draft.mkdir()
        with _rename_errors(output, draft), explained(output):
            yield draft
            files = [file.relative_to(draft) for file in draft.rglob("*") if file.is_file()]
            for file in sorted(files, key=lambda f: (f.name.startswith("_"), f.as_posix())):
                write_object(output / file.as_posix(), (draft / file).read_bytes())


@contextlib.contextmanager
def scratch_folder(path: str | Path) -> Iterator[Path]:
    """Make a scratch folder beside an output, for use while the output is made.

    Only its owner may read it. It is removed on leaving; one left by a killed process is removed at
    the next start of the same output. Its parents are made, and stay.
    """
    if is_object(path):
        with tempfile.TemporaryDirectory(prefix="bayesrisk-") as folder:
            yield Path(folder)
        return
    output = Path(path)
    with contextlib.ExitStack() as stack:
        with explained(output):
            target = Path(os.path.realpath(output))
            clear(target)
            _check_name(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = stack.enter_context(_unfinished(target))
        with _rename_errors(output, draft), explained(output):
            yield draft


def new_folder(path: Path) -> None:
    """Refuse a path unless it is free or an empty folder: a check for :func:`whole_folder`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise OutputError(f"{path}: must be new or an empty folder; nothing was changed")


def make_folder(path: str | Path, *, private: bool = False) -> None:
    """Make a folder and its parents unless they exist; private ones are 0700."""
    if is_object(path):  # a store has none
        return
    folder = Path(path)
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if private:
            folder.chmod(_PRIVATE_FOLDER)


@contextlib.contextmanager
def _rename_errors(output: Path, temporary: Path) -> Iterator[None]:
    """Let messages say the name that the user knows."""
    try:
        yield
    except OutputError as error:
        raise type(error)(str(error).replace(str(temporary), str(output))) from error


def _check_name(target: Path) -> None:
    """Let the system refuse a path below a file, and a name that is too long."""
    with contextlib.suppress(FileNotFoundError):
        target.lstat()


def _check_place(output: Path, target: Path) -> None:
    """Refuse places that cannot change hands in one step."""
    _check_name(target)
    if os.path.lexists(target) and not target.is_dir():
        raise OutputError(f"{output}: must be a folder, but is a file; nothing was changed")
    if target.is_dir() and (target.samefile(os.curdir) or target.is_mount()):
        raise OutputError(
            f"{output}: must not be the current folder, nor one where a disk is mounted: it could "
            "not be put in place in one step; name a folder in it"
        )
    if target.is_dir() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _permissions(path: Path) -> int | None:
    """Return the permissions of an existing file or folder; None for others, or a link."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    return None if stat.S_ISLNK(mode) else stat.S_IMODE(mode)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _settle(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)


def _swap(new: Path, target: Path) -> None:
    """Put a folder in the place of another, which is then in the new one's old place or beside."""
    if target.exists() and _exchanged(new, target):
        return
    old = new.with_name(_OLD)
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def _exchanged(new: Path, target: Path) -> bool:
    """Let two folders change places in one step; return whether the system can."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return False
    sys.audit("os.rename", new, target, -1, -1)  # as for every other rename
    folder, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(rename(folder, os.fsencode(new), folder, os.fsencode(target), exchange) == 0)
