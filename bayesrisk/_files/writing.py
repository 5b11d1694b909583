"""Files and folders that are whole or as before."""

import contextlib
import ctypes
import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from bayesrisk._files.leftovers import clear, hidden, is_leftover, locked_file, locked_folder
from bayesrisk.exceptions import BayesRiskError, OutputError

_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_FILE, _FOLDER = 0o666, 0o777  # less what the user's umask takes away
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS
_HERE = -100  # AT_FDCWD: paths as the process sees them


@contextlib.contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Turn what the system refuses into an error of our tree that names the path and the reason."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BayesRiskError):
            raise
        reason = error.strerror or str(error) or type(error).__name__
        other = Path(error.filename) if isinstance(error.filename, str) else None
        if other is not None and other != Path(path) and not is_leftover(other.name):
            reason += f" ({other})"
        raise OutputError(f"{path}: cannot be written: {reason}") from error


@contextlib.contextmanager
def whole_file(
    path: str | Path, *, private: bool = False, new: bool = False, tidy: bool = True
) -> Iterator[BinaryIO]:
    """Open a file that takes its place in one step, once all is written.

    Parameters
    ----------
    path : path-like
        The file.  One that is there keeps its permissions.
    private : bool, default False
        Whether only the owner may read it (0600).
    new : bool, default False
        Whether a file that is there already is refused.
    tidy : bool, default True
        Whether leftovers of killed runs for this file are removed first (its folder is listed).

    Yields
    ------
    file object
        Where to write; nothing is left of it when something goes wrong.

    Raises
    ------
    OutputError
        If the file cannot be written; what was there is as before.
    """
    target = Path(path)
    if tidy:
        clear(target)
    with explained(target):
        if new and os.path.lexists(target):
            raise OutputError(f"{target}: exists already; choose another name")
        if target.is_dir():
            raise OutputError(f"{target}: must be a file, but is a folder")
        _check_name(target)
        temporary, handle, hold = locked_file(target, _PRIVATE_FILE if private else _FILE)
    stream = os.fdopen(handle, "wb")
    try:
        with explained(target):
            yield stream
            _close(stream)
            if not private and (before := _permissions(target)) is not None:
                temporary.chmod(before)
            temporary.replace(target)
            _settle(target.parent)
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.close()
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if hold is not None:
            os.close(hold)


def _close(stream: BinaryIO) -> None:
    """Bring what was written to the disk."""
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()


def write_bytes(path: str | Path, data: bytes, *, private: bool = False, tidy: bool = True) -> None:
    """Write a file so that it is either whole or as it was before."""
    with whole_file(path, private=private, tidy=tidy) as stream:
        stream.write(data)


@contextlib.contextmanager
def whole_folder(
    path: str | Path, check: Callable[[Path], None], *, private: bool = False
) -> Iterator[Path]:
    """Make a folder that takes its place in one step, once it is whole.

    Parameters
    ----------
    path : path-like
        The folder; its parents are made.
    check : callable
        Refuses, by an OutputError, a folder that must not be replaced; called with the path at
        the start, and again before the step.  Whatever it lets pass is deleted after the step.
    private : bool, default False
        Whether only the owner may read what is in it (0700, files 0600).

    Yields
    ------
    Path
        A folder to fill.

    Raises
    ------
    OutputError
        If the folder cannot be written; what was there is as before.

    Notes
    -----
    Where the system cannot exchange two folders in one step, a kill between two steps leaves the
    old folder under a hidden name, and the next start brings it back.
    """
    shown = Path(path)
    with explained(shown):
        target = Path(os.path.realpath(shown))
        clear(target)
        _check_place(shown, target)
        check(shown)
        made = [folder for folder in target.parents if not folder.exists()]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary, hold = locked_folder(target, _PRIVATE_FOLDER if private else _FOLDER)
        except OSError:
            _remove_empty(made)
            raise
    try:
        with _told_as(shown, temporary), explained(shown):
            yield temporary
            _finish(temporary, target, private=private)
            check(shown)
            _swap(temporary, target)
            made = []
            _settle(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(hold)
        _remove_empty(made)


@contextlib.contextmanager
def scratch_folder(path: str | Path) -> Iterator[Path]:
    """Make a folder beside an output, for what is put down while that is made.

    Only its owner may read it.  It is removed on leaving; one that a killed process left, at the
    next start of the same output.

    Parameters
    ----------
    path : path-like
        The output; its parents are made, and stay.

    Yields
    ------
    Path
        A folder to fill.

    Raises
    ------
    OutputError
        If the folder cannot be written.
    """
    shown = Path(path)
    with explained(shown):
        target = Path(os.path.realpath(shown))
        clear(target)
        with contextlib.suppress(FileNotFoundError):
            target.lstat()  # the system refuses a path below a file, and a name that is too long
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary, hold = locked_folder(target, _PRIVATE_FOLDER)
    try:
        with _told_as(shown, temporary), explained(shown):
            yield temporary
    finally:
        try:
            shutil.rmtree(temporary, ignore_errors=True)
        finally:  # whatever stops the removal: the next start must be free to end it
            os.close(hold)


def new_folder(path: Path) -> None:
    """Refuse a path unless it is free or an empty folder: a check for :func:`whole_folder`."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise OutputError(f"{path}: must be new or an empty folder; nothing was changed")


def make_folder(path: str | Path, *, private: bool = False) -> None:
    """Make a folder, and those above it, unless they are there; private ones are 0700."""
    folder = Path(path)
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if private:
            folder.chmod(_PRIVATE_FOLDER)


@contextlib.contextmanager
def _told_as(shown: Path, temporary: Path) -> Iterator[None]:
    """Let messages say the name that the user knows."""
    try:
        yield
    except OutputError as error:
        raise type(error)(str(error).replace(str(temporary), str(shown))) from error


def _check_name(target: Path) -> None:
    """Let the system refuse a name that is too long, a folder that is missing, or a file above."""
    if not target.parent.exists():
        raise OutputError(f"{target}: the folder {str(target.parent)!r} does not exist")
    with contextlib.suppress(FileNotFoundError):
        target.lstat()


def _check_place(shown: Path, target: Path) -> None:
    """Refuse places that cannot change hands in one step."""
    with contextlib.suppress(FileNotFoundError):
        target.lstat()  # the system refuses a path below a file, and a name that is too long
    if os.path.lexists(target) and not target.is_dir():
        raise OutputError(f"{shown}: must be a folder, but is a file; nothing was changed")
    if target.is_dir() and (target.samefile(os.curdir) or target.is_mount()):
        raise OutputError(
            f"{shown}: must not be the current folder, nor one where a disk is mounted: it could "
            "not be put in place in one step; name a folder in it"
        )
    if target.is_dir() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _permissions(path: Path) -> int | None:
    """Return the permissions of a file or folder that is there; None for none, or a link."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    return None if stat.S_ISLNK(mode) else stat.S_IMODE(mode)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _finish(folder: Path, target: Path, *, private: bool) -> None:
    """Give a new folder its permissions, and bring its names to the disk."""
    for path in (folder, *folder.rglob("*")):
        if private:
            path.chmod(_PRIVATE_FOLDER if path.is_dir() else _PRIVATE_FILE)
        elif (before := _permissions(target / path.relative_to(folder))) is not None:
            path.chmod(before)
        if path.is_dir():
            _settle(path)


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
    """Put a folder in the place of another, which then has the new one's name, or none."""
    if not target.exists():
        new.rename(target)
        return
    if _exchange(new, target):
        return
    old = hidden(target, "old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False where the system cannot."""
    sys.audit("os.rename", str(one), str(other), -1, -1)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            done = library.renamex_np(os.fsencode(one), os.fsencode(other), _EXCHANGE)
        else:
            paths = (_HERE, os.fsencode(one), _HERE, os.fsencode(other))
            done = library.renameat2(*paths, _EXCHANGE)
    except (AttributeError, OSError, TypeError):
        return False
    return int(done) == 0
