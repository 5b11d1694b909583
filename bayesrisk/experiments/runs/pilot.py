"""The time of a run, foretold by a pilot: parts of it, each about twice the one before."""

import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import nnls

#: Seconds of a processor after which no further part begins.
_SECONDS = 1.0
#: As many times that for the first part, after which no other begins.
_FIRST = 10.0
#: Most of a run that a part is: what is shorter is not foretold.
_SHARE = 0.25
#: Steps of this size, modulo 1, visit a range evenly however many they are.
_GOLDEN = 0.6180339887498949


def evenly(size: int, amount: float) -> list[int]:
    """Return so many of the numbers below a size, from all over them: at least one, at most all."""
    many = max(1, min(size, int(amount)))
    return [size * (2 * number + 1) // (2 * many) for number in range(many)]


def foretold(
    work: Mapping[int, float], compute: Callable[[int, float], float], *, seconds: float = _SECONDS
) -> dict[int, float]:
    """Return the seconds of a processor for each shard, by its work.

    Parameters
    ----------
    work : mapping of int to float
        By shard the amount of work, such as its places.
    compute : callable
        Does so much of a shard, at least 1, and returns the amount that it did; 0 to decline.
    seconds : float, default 1.0
        Time for the pilot, in which its last part may still begin.

    Notes
    -----
    The first part loads what is compiled, and counts only if it is alone.  The later ones lie in
    shards all over the run.  A part that fails ends the pilot: the run itself will tell of it.
    """
    shards, total = list(work), sum(work.values())
    parts: list[tuple[float, float]] = []
    spent, amount = 0.0, 1.0
    while spent < seconds and amount <= _SHARE * total:
        shard = shards[int(len(shards) * (len(parts) * _GOLDEN % 1.0))]
        start = time.process_time()
        try:
            with warnings.catch_warnings():  # the run says them
                warnings.simplefilter("ignore")
                done = compute(shard, min(amount, work[shard]))
        except Exception:
            break
        if not done:
            break
        parts.append((done, time.process_time() - start))
        spent = sum(took for _, took in parts[1:])
        if parts[0][1] > _FIRST * seconds:
            break
        # Once the second part is done, others make the answer surer: up to a share of the run.
        if sum(done for done, _ in parts[1:]) >= _SHARE * total:
            break
        amount = min(2.0 * amount, max(1.0, _SHARE * total))
    counted = np.array(parts[1:] or parts)
    if not counted.size:
        return {}
    done, took = counted.T
    first, each = 0.0, took.sum() / done.sum()
    if done.max() >= 4.0 * done.min():  # a shard takes a time of its own, and one for its work
        found = nnls(np.stack([np.ones_like(done), done], axis=1), took)[0]
        first, each = found if found[1] else (first, each)
    return {shard: float(first + each * part) for shard, part in work.items()}
