"""The one compiler setting that every kernel uses.

Kernels get contiguous arrays and scalars, fill an ``out`` array, and check nothing: the public
function that calls them has done so.  Compiled code is cached on disk beside the package (or in
``NUMBA_CACHE_DIR``), so the compile time is paid once per installation; where no folder for it
can be written, or the disk is full, kernels are compiled anew in every process, with one warning.
What is in such a folder runs when it is read: one in which others can write is not used, and a
``NUMBA_CACHE_DIR`` of that kind is refused.
``fastmath`` stays off: the compensated arithmetic of the likelihoods relies on IEEE rounding.
"""

import contextlib
import functools
import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from bayesrisk.exceptions import BayesRiskWarning, ConfigError

_F = TypeVar("_F", bound=Callable[..., Any])

#: Everything that was declared below, in the order of loading: what can be compiled ahead.
DECLARED: list[Any] = []


def kernel(function: _F) -> _F:
    """Compile ``function`` in nopython mode, cached, without fast-math, releasing the GIL."""
    return _kernel(function)


def lean_kernel(function: _F) -> _F:
    """Compile a kernel that makes no arrays, without the counting of references to them.

    In a kernel of many small functions over tuples of arrays the counting costs more than the
    work, and much of the time to compile it; the caller holds all arrays meanwhile.  Whatever
    such a kernel calls must be lean, too.
    """
    return _kernel(function, _nrt=False)


def _kernel(function: _F, **options: bool) -> _F:
    def compile_(cache: bool) -> _F:
        njit: Any = numba.njit
        settings = {"nogil": True, "fastmath": False, "error_model": "numpy"}
        # No kernel is called from C: it needs no way in from there.
        made = njit(cache=cache, no_cfunc_wrapper=True, **settings, **options)
        compiled = made(function)
        if hasattr(compiled, "_cache"):  # not where Numba is switched off
            if cache:
                _check_folder(compiled._cache.cache_path, function.__code__.co_filename)
            _keep_if_possible(compiled)
        return compiled  # type: ignore[no-any-return]

    compiled: _F = _cached_if_possible(compile_)
    if hasattr(compiled, "get_call_template"):
        _take_any_constant(compiled)
    DECLARED.append(compiled)
    return compiled


def _take_any_constant(compiled: Any) -> None:
    """Compile a kernel once for all constants that others call it with.

    Numba gives each constant its own version, though a kernel and those that it calls become one
    piece of machine code later on, in which constants are put through anyway.
    """
    template = compiled.get_call_template

    def of_types(arguments: tuple[Any, ...], named: dict[str, Any]) -> object:
        plain: Callable[[Any], Any] = numba.types.unliteral
        return template(
            tuple(map(plain, arguments)), {name: plain(kind) for name, kind in named.items()}
        )

    compiled.get_call_template = of_types


def elementwise(*signatures: str) -> Callable[[_F], Any]:
    """Compile a scalar function into a NumPy ufunc, which broadcasts without copying.

    It is compiled, or loaded, when it is first called: a program pays for what it uses.
    """

    def decorate(function: _F) -> Any:
        made = functools.wraps(function)(_Elementwise(function, signatures))
        DECLARED.append(made)
        return made

    return decorate


class _Elementwise:
    """A ufunc that is made when it is first called; kernels cannot call it."""

    def __init__(self, function: Callable[..., Any], signatures: tuple[str, ...]) -> None:
        self._function, self._signatures = function, list(signatures)

    @functools.cached_property
    def _ufunc(self) -> Any:
        numba_: Any = numba

        def compile_(cache: bool) -> Any:
            known = numba_.njit(cache=cache)(self._function)  # compiles nothing, and says where
            if cache and hasattr(known, "_cache"):
                _check_folder(known._cache.cache_path, self._function.__code__.co_filename)
            made = numba_.vectorize(self._signatures, nopython=True, cache=cache)
            return made(self._function)

        return _cached_if_possible(compile_)

    def __call__(self, *args: object, **options: Any) -> Any:
        return self._ufunc(*args, **options)


def cache_folder() -> str | None:
    """Return the folder that holds all compiled kernels, None if one of them cannot be kept."""
    folders = _cache_folders()
    lost = _warn_once.cache_info().currsize > 0
    return os.path.commonpath(folders) if folders and not lost else None


def compiled_since(start_ns: int) -> int:
    """Return the number of kernels written since a time, in nanoseconds of the epoch."""
    files = (file for folder in _cache_folders() for file in Path(folder).glob("*.nbc"))
    return sum(file.stat().st_mtime_ns >= start_ns for file in files)


def _cache_folders() -> set[str]:
    caches = (getattr(made, "_cache", None) for made in DECLARED)
    return {cache.cache_path for cache in caches if cache is not None and cache.cache_path}


def _cached_if_possible(compile_: Callable[[bool], Any]) -> Any:
    """Return ``compile_(cache)``, without a cache where none can be written."""
    try:
        return compile_(True)
    except OSError:  # a full disk, or a folder that is not safe
        pass
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    _warn_once()
    return compile_(False)


@functools.cache
def _check_folder(folder: str, source: str) -> None:
    """Refuse a folder of compiled code that others can change, or put another one in place of.

    Trusted are this user, root, and whoever owns the package or the root of the file system: their
    code runs here anyway.  A folder beside the package may be as open as that.

    A ConfigError names what is not safe in ``NUMBA_CACHE_DIR``; a PermissionError, in the usual
    folder, lets kernels be compiled without a cache.
    """
    if not hasattr(os, "geteuid"):
        return  # no owners and modes as POSIX has them
    inside, package = Path(os.path.realpath(folder)), Path(os.path.realpath(source)).parent
    trusted = {0, os.geteuid(), package.stat().st_uid, Path("/").stat().st_uid}
    beside = inside.parent == package
    for place in (*inside.glob("*.nb[ic]"), inside, *(() if beside else inside.parents)):
        about = place.lstat()
        writers = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if writers & stat.S_IWGRP and _is_of_one(about.st_gid):
            writers &= ~stat.S_IWGRP
        if beside:
            writers &= ~package.stat().st_mode
        elif place in inside.parents and about.st_mode & stat.S_ISVTX:
            writers = 0  # nobody but its owner can rename what is inside
        if writers or about.st_uid not in trusted:
            what = (
                f"{place} belongs to user {about.st_uid} and has mode "
                f"{stat.S_IMODE(about.st_mode):04o}"
            )
            if numba.config.CACHE_DIR:  # type: ignore[attr-defined]
                raise ConfigError(
                    "NUMBA_CACHE_DIR must be a folder that nobody else can write in or rename, "
                    f"since what it holds is run, got {numba.config.CACHE_DIR}: {what}; "  # type: ignore[attr-defined]
                    "set it to a new folder of your own (mode 0700), or not at all"
                )
            raise PermissionError(what)


def _is_of_one(group: int) -> bool:
    """Return whether a group is this user's private one, as many systems have: of the same name."""
    import grp
    import pwd

    try:
        about, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return about.gr_name == user and set(about.gr_mem) <= {user}


def _keep_if_possible(compiled: Any) -> None:
    """Let a kernel run whether its file can be read or written, or not.

    Numba reads the types of all that it kept before it asks whether the source is the same: after
    an update one of them may be a class that is gone.  Such a file is emptied.
    """
    save, load = compiled._cache.save_overload, compiled._cache.load_overload

    def save_if_possible(*args: object) -> None:
        try:
            save(*args)
        except (OSError, AttributeError, ImportError):
            _warn_once()

    def load_if_possible(*args: object) -> object:
        try:
            return load(*args)
        except (AttributeError, ImportError):
            with contextlib.suppress(OSError):
                compiled._cache.flush()
            return None

    compiled._cache.save_overload = save_if_possible
    compiled._cache.load_overload = load_if_possible


@functools.cache
def _warn_once() -> None:
    """Say that there is no cache, and how to have one."""
    warnings.warn(
        "compiled kernels cannot be written to disk, or only where others can write: every "
        "process compiles them anew, which takes seconds; set NUMBA_CACHE_DIR to a folder of your "
        "own, with room",
        BayesRiskWarning,
        stacklevel=2,
    )
