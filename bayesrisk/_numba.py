"""The one compiler setting that every kernel uses.

Kernels get contiguous arrays and scalars, fill an ``out`` array, and check nothing: the public
function that calls them has done so.  Compiled code is cached on disk beside the package (or in
``NUMBA_CACHE_DIR``), so the compile time is paid once per installation; where no folder for it
can be written, or the disk is full, kernels are compiled anew in every process, with one warning.
``fastmath`` stays off: the compensated arithmetic of the likelihoods relies on IEEE rounding.
"""

import functools
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from bayesrisk.exceptions import BayesRiskWarning

_F = TypeVar("_F", bound=Callable[..., Any])

#: Everything that was declared below, in the order of loading: what can be compiled ahead.
DECLARED: list[Any] = []


def kernel(function: _F) -> _F:
    """Compile ``function`` in nopython mode, cached, without fast-math, releasing the GIL."""
    return _kernel(function)


def lean_kernel(function: _F) -> _F:
    """Compile a kernel that makes no arrays, without the counting of references to them.

    In a kernel of many small functions over tuples of arrays the counting costs more than the
    work; the caller holds all arrays meanwhile.
    """
    return _kernel(function, _nrt=False)


def _kernel(function: _F, **options: bool) -> _F:
    def compile_(cache: bool) -> _F:
        njit: Any = numba.njit
        made = njit(cache=cache, nogil=True, fastmath=False, error_model="numpy", **options)
        compiled = made(function)
        if hasattr(compiled, "_cache"):  # not where Numba is switched off
            _keep_if_possible(compiled)
        return compiled  # type: ignore[no-any-return]

    compiled: _F = _cached_if_possible(compile_)
    DECLARED.append(compiled)
    return compiled


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
        vectorize: Any = numba.vectorize
        return _cached_if_possible(
            lambda cache: vectorize(self._signatures, nopython=True, cache=cache)(self._function)
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._ufunc(*args, **options)


def unused_kernels() -> list[str]:
    """Return the names of what was declared, and neither called here nor part of what was.

    Whoever compiles a kernel compiles those that it calls.
    """
    declared = {id(made): made for made in DECLARED}
    found = [made for made in DECLARED if _is_ready(made)]
    ready = {id(made) for made in found}
    while found:
        function = _python_of(found.pop())
        for name in function.__code__.co_names:
            part = function.__globals__.get(name)
            if id(part) in declared and id(part) not in ready:
                ready.add(id(part))
                found.append(part)
    missing = [_python_of(made) for made in DECLARED if id(made) not in ready]
    return [f"{function.__module__}.{function.__qualname__}" for function in missing]


def _is_ready(made: Any) -> bool:
    if isinstance(made, _Elementwise):
        return "_ufunc" in vars(made)
    return bool(getattr(made, "overloads", True))  # True where Numba is switched off


def _python_of(made: Any) -> Any:
    return made._function if isinstance(made, _Elementwise) else getattr(made, "py_func", made)


def cache_folder() -> str | None:
    """Return the folder that holds all compiled kernels, None if one of them cannot be kept."""
    folders = _cache_folders()
    lost = _warn_once.cache_info().currsize > 0
    return os.path.commonpath(folders) if folders and not lost else None


def compiled_since(start_ns: int) -> int:
    """Return how many compiled kernels were written since a time, in nanoseconds of the epoch."""
    files = (file for folder in _cache_folders() for file in Path(folder).glob("*.nbc"))
    return sum(file.stat().st_mtime_ns >= start_ns for file in files)


def _cache_folders() -> set[str]:
    caches = (getattr(made, "_cache", None) for made in DECLARED)
    return {cache.cache_path for cache in caches if cache is not None and cache.cache_path}


def _cached_if_possible(compile_: Callable[[bool], Any]) -> Any:
    """Return what ``compile_(cache)`` makes, without a cache where none can be written."""
    try:
        return compile_(True)
    except OSError:  # a full disk
        pass
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    _warn_once()
    return compile_(False)


def _keep_if_possible(compiled: Any) -> None:
    """Let a kernel that was compiled run, whether its file can be written or not."""
    save = compiled._cache.save_overload

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError:
            _warn_once()

    compiled._cache.save_overload = save_if_possible


@functools.cache
def _warn_once() -> None:
    """Say that there is no cache, and how to have one."""
    warnings.warn(
        "compiled kernels cannot be written to disk: every process compiles them anew, which "
        "takes seconds; set NUMBA_CACHE_DIR to a folder with room that can be written",
        BayesRiskWarning,
        stacklevel=2,
    )
