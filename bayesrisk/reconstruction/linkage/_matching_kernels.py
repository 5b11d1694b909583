"""Kernels of matching: a stable radix sort, and the walk over two sorted lists of keys."""

from typing import Any

import numpy as np

from bayesrisk._numba import kernel

_DIGIT = 11  # bits of a pass: the 2,048 counters stay in the first-level cache
_BUCKETS = 1 << _DIGIT
_MASK = _BUCKETS - 1


@kernel
def _sort_keys(keys: Any, order: Any, spare_keys: Any, spare_order: Any, bits: int) -> None:
    """Sort ``keys`` (non-negative, below ``2**bits``) in place, stably, and ``order`` with them."""
    n = keys.size
    start = np.empty(_BUCKETS, np.int64)
    for shift in range(0, bits, _DIGIT):
        start[:] = 0
        for i in range(n):
            start[(keys[i] >> shift) & _MASK] += 1
        total = 0
        for b in range(_BUCKETS):
            total, start[b] = total + start[b], total
        for i in range(n):
            b = (keys[i] >> shift) & _MASK
            spare_keys[start[b]] = keys[i]
            spare_order[start[b]] = order[i]
            start[b] += 1
        keys[:] = spare_keys
        order[:] = spare_order


@kernel
def _shuffle(order: Any, first: int, last: int, uniform: Any) -> None:
    """Put ``order[first:last]`` into random order: Fisher and Yates, from the front."""
    for i in range(first, last - 1):
        j = i + int(uniform[i] * (last - i))
        order[i], order[j] = order[j], order[i]


@kernel
def _match_sorted(
    left: Any,
    left_order: Any,
    left_uniform: Any,
    right: Any,
    right_order: Any,
    right_uniform: Any,
    left_out: Any,
    right_out: Any,
) -> int:
    """Pair records of equal key at random, without replacement; return how many pairs."""
    i = j = pairs = 0
    while i < left.size and j < right.size:
        if left[i] < right[j]:
            i += 1
        elif left[i] > right[j]:
            j += 1
        else:
            key = left[i]
            i_end = i
            while i_end < left.size and left[i_end] == key:
                i_end += 1
            j_end = j
            while j_end < right.size and right[j_end] == key:
                j_end += 1
            _shuffle(left_order, i, i_end, left_uniform)
            _shuffle(right_order, j, j_end, right_uniform)
            for k in range(min(i_end - i, j_end - j)):
                left_out[pairs] = left_order[i + k]
                right_out[pairs] = right_order[j + k]
                pairs += 1
            i = i_end
            j = j_end
    return pairs
