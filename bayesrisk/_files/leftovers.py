"""Names of what is being made, locks on them, and what killed processes leave behind.

Two kinds: ``tmp`` is being filled, ``old`` was moved out of the way.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from pathlib import Path

from bayesrisk._files.seal import digest
from bayesrisk.exceptions import DataError

if sys.platform != "win32":
    import fcntl

_OURS = re.compile(r"\.bayesrisk-([0-9a-f]{16})-[0-9a-f]{16}\.(tmp|old)")


def is_leftover(name: str) -> bool:
    """Return whether a file's name is one that only an unfinished output of ours has."""
    return _OURS.fullmatch(name) is not None


def digest_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files, but for unfinished ones."""
    total = hashlib.sha256()
    try:
        for file in sorted(p for p in folder.iterdir() if p.is_file()):
            if not is_leftover(file.name):
                total.update(f"{file.name} {digest(file)}\n".encode())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error}") from error
    return total.hexdigest()


def hidden(target: Path, kind: str = "tmp") -> Path:
    """Return a name beside an output that nobody can foresee."""
    return target.parent / f".bayesrisk-{_key(target)}-{secrets.token_hex(8)}.{kind}"


def _key(target: Path) -> str:
    """Return what stands for a name in that of its unfinished form, however long it is."""
    return hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]


def locked_file(target: Path, mode: int) -> tuple[Path, int, int | None]:
    """Make a file beside an output; return its path, a handle, and a second one that locks it.

    There is no second one on systems that lock by keeping a file open.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        path = hidden(target)
        handle = os.open(path, flags, mode)
        if _locked(handle):
            return path, handle, None if sys.platform == "win32" else os.dup(handle)
        os.close(handle)  # somebody took it for a leftover


def locked_folder(target: Path, mode: int) -> tuple[Path, int]:
    """Make a folder beside an output; return its path, and a handle that locks it."""
    while True:
        path = hidden(target)
        path.mkdir(mode)
        if sys.platform == "win32":
            return path, os.open(os.devnull, os.O_RDONLY)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if _locked(handle):
            return path, handle
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock what was just made; return False if it is being removed as a leftover."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks, on which nobody removes leftovers either
    return os.fstat(handle).st_nlink > 0


def clear(target: Path, *others: Path) -> None:
    """Remove what killed processes left of outputs in one folder, and undo their half steps."""
    try:
        found = [path for path in target.parent.iterdir() if is_leftover(path.name)]
    except OSError:
        return  # no such folder, or none to be read: the writing itself says so
    known = {_key(path): path for path in (target, *others)} if found else {}
    for path in found:
        if (key := path.name.split("-")[1]) in known:
            with contextlib.suppress(OSError):
                _clear_one(path, known[key])


def _clear_one(path: Path, target: Path) -> None:
    """Undo a leftover that belongs to nobody else, and that no process holds."""
    about, kind = path.lstat(), path.suffix[1:]
    folder = stat.S_ISDIR(about.st_mode)
    if not folder and not stat.S_ISREG(about.st_mode):
        return  # ours are never links
    if sys.platform == "win32":
        if folder and kind == "tmp":
            return  # nobody can know whether it is being filled
        _undo(path, target, kind)
        return
    if about.st_uid != os.geteuid():
        return
    flags = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR
    handle = os.open(path, flags | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a living process has it: an OSError
        _undo(path, target, kind)
    finally:
        os.close(handle)


def _undo(path: Path, target: Path, kind: str) -> None:
    if kind == "old" and not os.path.lexists(target):
        path.rename(target)
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
