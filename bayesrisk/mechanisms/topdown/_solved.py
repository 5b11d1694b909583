"""Families that were solved before, known again by their contents.

Without one record a release with the same noise asks the same of nearly all families: those with
the same counts above and the same noisy answers have the same children.
"""

import hashlib
from collections import OrderedDict
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bayesrisk._types import IntArray
from bayesrisk.mechanisms.topdown._children import solve_family
from bayesrisk.mechanisms.topdown._family import Family

_ROOM = 2**22  # numbers that are kept, about 64 MiB


class SolvedFamilies:
    """Solves families, each once; of more than there is room for, those used last are kept.

    It holds what was computed from confidential counts: it belongs to the custodian.

    Parameters
    ----------
    room : int
        Most numbers that are kept.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room, self._held = room, 0
        self._found: OrderedDict[bytes, sparse.csr_array] = OrderedDict()

    def __call__(self, family: Family) -> IntArray:
        """Return the integer counts of the children, (children, cells), as ``solve_family``."""
        digest = hashlib.blake2b(digest_size=32)
        _take(family, digest)
        key = digest.digest()
        if key in self._found:
            self._found.move_to_end(key)
            counts: IntArray = self._found[key].toarray()
            return counts
        solved = solve_family(family)
        self._found[key] = kept = sparse.csr_array(solved)
        self._held += _size(kept)
        while self._held > self._room:
            self._held -= _size(self._found.popitem(last=False)[1])
        return solved


def _size(kept: sparse.csr_array) -> int:
    return int(kept.data.size + kept.indptr.size)


def _take(value: Any, digest: Any) -> None:
    """Add a value to a digest: kind, shape and bytes, so that no two values add the same."""
    if is_dataclass(value):
        value = tuple(getattr(value, own.name) for own in fields(value))
    elif hasattr(value, "tocsr"):
        rows = value.tocsr()
        value = (rows.shape, rows.indptr, rows.indices, rows.data)
    if isinstance(value, tuple):
        digest.update(f"({len(value)}".encode())
        for one in value:
            _take(one, digest)
    elif isinstance(value, np.ndarray):
        digest.update(f"[{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    else:
        digest.update(f"{value!r};".encode())
