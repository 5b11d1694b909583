"""The one compiler setting that every kernel uses.

Kernels get contiguous arrays and scalars, fill an ``out`` array, and check nothing: the calling
public function has done so. A *step* is a part of kernels that Python code never calls; it is
compiled within each of them. Compiled kernels are cached on disk beside the package (or in
``NUMBA_CACHE_DIR``). So they are compiled once per installation, and again if their source or that
of their steps changes. If no folder can be written, or the disk is full, every process compiles
anew, with one warning. Code in such a folder runs when it is read. So a folder in which others can
write is not used, and such a ``NUMBA_CACHE_DIR`` is refused. ``fastmath`` stays off: the
compensated arithmetic of the likelihoods relies on IEEE rounding.
"""

import contextlib
import functools
import gc
import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numba.extending

from bayesrisk.exceptions import BayesRiskWarning, ConfigError

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

_SETTINGS = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # no kernel is called from C
}

#: Kernels that Python code calls, in the order of loading: what can be compiled ahead.
DECLARED: list[Any] = []


def kernel(function: _F) -> _F:
    """Compile ``function`` in nopython mode, cached, without fast-math, releasing the GIL."""
    return _kernel(function)


def lean_kernel(function: _F) -> _F:
    """Compile a kernel that makes no arrays, without reference counting.

    In a kernel of many small functions over tuples of arrays, counting costs more than the work,
    and much of the compile time. The caller holds all arrays meanwhile. All kernels that it calls
    must be compiled this way, too.
    """
    return _kernel(function, _nrt=False)


def step(function: _F) -> _F:
    """Declare a step of kernels: each compiles it as its own part.

    It stays a plain function: a call from Python runs it uncompiled.
    """
    return _step(function)


def lean_step(function: _F) -> _F:
    """Declare a step that makes no arrays, for lean kernels too; see :func:`lean_kernel`."""
    return _step(function, _nrt=False)


def _step(function: _F, **options: bool) -> _F:
    register: Any = numba.extending.register_jitable
    registered: _F = register(**_SETTINGS, **options)(function)
    return registered


def _kernel(function: _F, **options: bool) -> _F:
    def compile_(cache: bool) -> _F:
        njit: Any = numba.njit
        compiled = njit(cache=cache, **_SETTINGS, **options)(function)
        if hasattr(compiled, "_cache"):  # not where Numba is switched off
            if cache:
                _check_folder(compiled._cache.cache_path, function.__code__.co_filename)
            _keep_if_possible(compiled._cache, function)
        return compiled  # type: ignore[no-any-return]

    compiled: _F = _cached_if_possible(compile_)
    DECLARED.append(compiled)
    return compiled


def parts(kernel: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Yield a kernel and all kernels and steps that it calls, directly or not."""
    todo, visited = [kernel], {id(kernel)}
    while todo:
        yield (part := todo.pop())
        for value in _globals(part):
            if (
                isinstance(getattr(value, "py_func", value), FunctionType)
                and id(value) not in visited
            ):
                visited.add(id(value))
                todo.append(value)  # type: ignore[arg-type]


def _globals(part: Any) -> Iterator[object]:
    """Yield the values of the names in a kernel's code, of its module and of others of ours."""
    function = getattr(part, "py_func", part)
    package, names = function.__module__.partition(".")[0], function.__code__.co_names
    spaces = [function.__globals__]
    for name in names:
        module = function.__globals__.get(name)
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] == package:
            spaces.append(vars(module))
    return (space[name] for name in names for space in spaces if name in space)


def _sources(function: Callable[..., Any]) -> str:
    """Return a digest of all source that the machine code of a kernel comes from.

    It covers the files of all its parts, and of the constants that they read, in any file. Numba
    itself looks only at the kernel's own file.
    """
    declared = list(parts(function))
    files = {getattr(part, "py_func", part).__code__.co_filename for part in declared}
    constants = {
        repr(value)
        for part in declared
        for value in _globals(part)
        if isinstance(value, (int, float, tuple))
    }
    lines = sorted(map(_digest, files)) + sorted(constants)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@functools.cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def elementwise(*signatures: str) -> Callable[[_F], Callable[..., Any]]:
    """Compile a scalar function into a NumPy ufunc, which broadcasts without copying.

    It is compiled, or loaded, on its first call: a program pays only for what it uses.
    """

    def decorate(function: _F) -> Callable[..., Any]:
        wrapper = functools.wraps(function)(_Elementwise(function, signatures))
        DECLARED.append(wrapper)
        return wrapper

    return decorate


class _Elementwise:
    """A ufunc that is made when it is first called; kernels cannot call it."""

    def __init__(self, function: Callable[..., Any], signatures: tuple[str, ...]) -> None:
        self._function, self._signatures = function, list(signatures)

    @functools.cached_property
    def _ufunc(self) -> Callable[..., Any]:
        numba_: Any = numba

        def compile_(cache: bool) -> Callable[..., Any]:
            decorator = numba_.vectorize(nopython=True, cache=cache)(self._function)
            store = decorator._dispatcher.cache
            if cache and store.cache_path:
                _check_folder(store.cache_path, self._function.__code__.co_filename)
                _keep_if_possible(store, self._function)
            for signature in self._signatures:
                decorator.add(signature)
            decorator.disable_compile()
            return decorator  # type: ignore[no-any-return]

        return _cached_if_possible(compile_)

    def __call__(self, *args: object, **options: object) -> Any:
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
    caches = (getattr(kernel, "_cache", None) for kernel in DECLARED)
    return {cache.cache_path for cache in caches if cache is not None and cache.cache_path}


def _cached_if_possible(compile_: Callable[[bool], _T]) -> _T:
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
    """Refuse a folder of compiled code that others can change or replace.

    Trusted are this user, root, and the owners of the package and of the root of the file system:
    their code runs here anyway. A folder beside the package may be as open as that.

    A ConfigError names what is unsafe in ``NUMBA_CACHE_DIR``. For the default folder it is a
    PermissionError, and kernels are compiled without a cache.
    """
    if not hasattr(os, "geteuid"):
        return  # no owners and modes as POSIX has them
    inside, package = Path(os.path.realpath(folder)), Path(os.path.realpath(source)).parent
    trusted = {0, os.geteuid(), package.stat().st_uid, Path("/").stat().st_uid}
    in_package = inside.parent == package
    for place in (*inside.glob("*.nb[ic]"), inside, *(() if in_package else inside.parents)):
        status = place.lstat()
        writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if writers & stat.S_IWGRP and _is_of_one(status.st_gid):
            writers &= ~stat.S_IWGRP
        if in_package:
            writers &= ~package.stat().st_mode
        elif place in inside.parents and status.st_mode & stat.S_ISVTX:
            writers = 0  # nobody but its owner can rename what is inside
        if writers or status.st_uid not in trusted:
            problem = (
                f"{place} belongs to user {status.st_uid} and has mode "
                f"{stat.S_IMODE(status.st_mode):04o}"
            )
            if numba.config.CACHE_DIR:  # type: ignore[attr-defined]
                raise ConfigError(
                    "NUMBA_CACHE_DIR must be a folder that nobody else can write in or rename, "
                    f"since what it holds is run, got {numba.config.CACHE_DIR}: {problem}; "  # type: ignore[attr-defined]
                    "set it to a new folder of your own (mode 0700), or not at all"
                )
            raise PermissionError(problem)


def _is_of_one(group: int) -> bool:
    """Return whether a group is this user's private one, as many systems have: of the same name."""
    import grp
    import pwd

    try:
        entry, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return entry.gr_name == user and set(entry.gr_mem) <= {user}


def _keep_if_possible(cache: Any, function: Callable[..., Any]) -> None:
    """Let a kernel run whether or not its file can be read or written, and read only current files.

    Numba reads the types in its cache before it compares the source. After an update one of them
    may be a class that no longer exists. Such a file is emptied.
    """
    save, load = cache.save_overload, cache.load_overload

    def stamp() -> None:
        if hasattr(cache, "_cache_file"):
            cache._cache_file._source_stamp = _sources(function)

    def save_if_possible(*args: object) -> None:
        try:
            stamp()
            save(*args)
        except (OSError, AttributeError, ImportError):
            _warn_once()

    def load_if_possible(*args: object) -> object:
        stamp()
        try:
            return load(*args)
        except (AttributeError, ImportError):
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    cache.save_overload = save_if_possible
    cache.load_overload = load_if_possible


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


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Let nothing be collected where most objects that are made are kept, as a compiler's are."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
