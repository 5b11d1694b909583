"""Compiled look-up of posteriors by noisy count.  Nothing here checks its arguments."""

from typing import Any

from bayesrisk._numba import kernel


@kernel
def look_up(values: Any, low: int, tables: Any, histogram: Any, posterior: Any, ratio: Any) -> int:
    """Fill posterior and ratio of each count from a table that starts at ``low``.

    ``tables[j]`` holds both for the count ``low + j``, ``histogram[j]`` counts how often it
    occurs.  Returns how many counts lie outside; those are left as they are.
    """
    size = tables.shape[0]
    outside = 0
    for i in range(values.size):
        j = values[i] - low
        if 0 <= j < size:
            posterior[i] = tables[j, 0]
            ratio[i] = tables[j, 1]
            histogram[j] += 1
        else:
            outside += 1
    return outside
