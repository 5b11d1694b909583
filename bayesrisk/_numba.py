"""The one compiler setting that every kernel uses.

Kernels get contiguous arrays and scalars, fill an ``out`` array, and check nothing: the public
function that calls them has done so.  Compiled code is cached on disk beside the package (or in
``NUMBA_CACHE_DIR``), so the compile time is paid once per installation.  ``fastmath`` stays off:
the compensated arithmetic of the likelihoods relies on IEEE rounding.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile ``function`` in nopython mode, cached, without fast-math, releasing the GIL."""
    compile_: Any = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")
    compiled: _F = compile_(function)
    return compiled


def elementwise(*signatures: str) -> Callable[[_F], Any]:
    """Compile a scalar function into a NumPy ufunc, which broadcasts without copying."""

    def decorate(function: _F) -> Any:
        vectorize: Any = numba.vectorize
        return vectorize(list(signatures), nopython=True, cache=True)(function)

    return decorate
