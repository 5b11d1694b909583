"""The cheapest choice of one rule of each ladder that is safe, by sets that are shown unsafe.

What is proved never grows where a rule is replaced by one that can be made from it.  So a setting
that is shown unsafe makes all settings unsafe from which it can be made, and one that is shown safe
all that can be made from it.  Settings come in the order of their cost.  An unsafe one is made as
coarse as it can be while it stays unsafe; a safe setting must then have, on some ladder, a rule
from which that one's cannot be made, and the settings with such a rule on each ladder in turn are
what is left to look at.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from bayesrisk._base.validation import BoolArray
from bayesrisk.risk.planning.ladders import Rungs

#: Settings of which those that are left are counted.
COUNTED = 2**24
#: A rule of each ladder, by its position.
Choice = tuple[int, ...]
#: Verdicts about a setting: all limits are kept; proved that one is not; left open, or a limit that
#: is not monotone is exceeded.
SAFE, UNSAFE, OTHER = "safe", "unsafe", "other"


class Judge(Protocol):
    """Says whether a setting keeps the limits."""

    def verdict(self, choice: Choice) -> str:
        """Return ``safe``, ``unsafe`` or ``other``."""

    def still_unsafe(self, choice: Choice) -> bool:
        """Return True if a setting is shown unsafe by what showed the last one unsafe."""


def is_finer(rungs: Sequence[Rungs], choice: Choice, other: Choice) -> bool:
    """Return whether the second of two settings can be made from the first."""
    return all(rung.coarser[a, b] for rung, a, b in zip(rungs, choice, other, strict=True))


def cost(rungs: Sequence[Rungs], choice: Choice) -> float:
    """Return the cost of a setting."""
    return float(sum(rung.cost[i] for rung, i in zip(rungs, choice, strict=True)))


def coarsest(rungs: Sequence[Rungs]) -> Choice:
    """Return the setting with a rule of each ladder that can be made from most, the cheapest."""
    return tuple(int(np.lexsort((rung.cost, -rung.coarser.sum(axis=0)))[0]) for rung in rungs)


def widest(rungs: Sequence[Rungs], choice: Choice, unsafe: Callable[[Choice], bool]) -> Choice:
    """Return an unsafe setting as coarse as can be: no coarser rule of a ladder leaves it so."""
    for ladder, rung in enumerate(rungs):
        rule = choice[ladder]
        above = [j for j in np.flatnonzero(rung.coarser[rule]).tolist() if j != rule]
        # The coarsest first: from it the fewest others can be made.
        for j in sorted(above, key=lambda j: (int(rung.coarser[j].sum()), rung.cost[j])):
            wider = (*choice[:ladder], j, *choice[ladder + 1 :])
            if unsafe(wider):
                choice = wider
                break
    return choice


def cheapest_first(rungs: Sequence[Rungs], judge: Judge) -> Iterator[tuple[Choice, str, int]]:
    """Yield settings that are looked at with what became of each, the cheapest safe one last.

    And how many may still have to be looked at.  Settings that are unsafe by others are left out.
    Of equal costs the first by position comes.
    """
    unsafe: list[Choice] = []  # each with all from which it can be made
    every = tuple(np.ones(rung.cost.size, np.bool_) for rung in rungs)
    waiting = [_entry(rungs, every)]
    queued: set[tuple[bytes, ...]] = set()
    verdicts: dict[Choice, str] = {}
    sizes = tuple(mask.size for mask in every)
    left = np.ones(sizes if math.prod(sizes) <= COUNTED else (1,) * len(sizes), np.bool_)
    while waiting:
        _, choice, masks = heapq.heappop(waiting)
        allowed = tuple(np.frombuffer(m, np.bool_) for m in masks)
        excluded = next((one for one in unsafe if is_finer(rungs, choice, one)), None)
        if excluded is None:
            new = choice not in verdicts
            if new:
                verdicts[choice] = judge.verdict(choice)
            if verdicts[choice] == UNSAFE:
                excluded = widest(rungs, choice, judge.still_unsafe)
                unsafe.append(excluded)
            if left.shape == sizes:
                pairs = zip(rungs, choice if excluded is None else excluded, strict=True)
                rules = [[i] if excluded is None else rung.coarser[:, i] for rung, i in pairs]
                left[np.ix_(*rules)] = False
            if new:
                safe = verdicts[choice] == SAFE
                rest = int(left.sum()) if left.shape == sizes else math.prod(sizes) - len(verdicts)
                yield choice, verdicts[choice], 0 if safe else rest
                if safe:
                    return
        for ladder, rung in enumerate(rungs):
            # All from which the unsafe rule can be made; of a single setting the rule alone.
            alone = np.arange(rung.cost.size) == choice[ladder]
            excluded_rules = alone if excluded is None else rung.coarser[:, excluded[ladder]]
            open_rules = allowed[ladder] & ~excluded_rules
            if not open_rules.any():
                continue
            child = (*allowed[:ladder], open_rules, *allowed[ladder + 1 :])
            key = tuple(mask.tobytes() for mask in child)
            if key not in queued:
                queued.add(key)
                heapq.heappush(waiting, _entry(rungs, child))


def _entry(
    rungs: Sequence[Rungs], allowed: tuple[BoolArray, ...]
) -> tuple[float, Choice, tuple[bytes, ...]]:
    """Return the cheapest setting of some rules of each ladder, to be looked at by its cost."""
    pairs = zip(rungs, allowed, strict=True)
    choice = tuple(int(np.where(mask, rung.cost, np.inf).argmin()) for rung, mask in pairs)
    return cost(rungs, choice), choice, tuple(mask.tobytes() for mask in allowed)
