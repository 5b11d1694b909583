"""The search for the cheapest safe setting, with verdicts that are made up."""

import itertools

import numpy as np
import pytest

from bayesrisk.risk.planning.ladders import Ladder, Rungs, cheapest_first


class MadeUp:
    """Settings are unsafe if they are at least as fine as one of some, or other by chance."""

    def __init__(self, rungs, rng):
        self.rungs = rungs
        every = [*itertools.product(*(range(r.cost.size) for r in rungs))]
        self.unsafe = [every[i] for i in rng.choice(len(every), size=3)]
        self.other = {one for one in every if rng.random() < 0.2}

    def finer(self, choice, other):
        return all(r.coarser[a, b] for r, a, b in zip(self.rungs, choice, other, strict=True))

    def still_unsafe(self, choice):
        return any(self.finer(choice, one) for one in self.unsafe)

    def verdict(self, choice):
        if self.still_unsafe(choice):
            return "unsafe"
        return "other" if choice in self.other else "safe"


def ladders(rng):
    """Return three ladders of rules on a line, some of which cannot be made from finer ones."""
    rungs = []
    for size in rng.integers(2, 5, size=3).tolist():
        place = rng.integers(0, 3, size=(size, 2))  # as fine as another in both, or not comparable
        coarser = (place[:, None] <= place[None, :]).all(axis=2)
        rules = tuple(f"rounding:base={i + 2},method=nearest" for i in range(size))
        rungs.append(Rungs(Ladder((("block", str(size)),), rules), rng.random(size), coarser))
    return rungs


@pytest.mark.parametrize("seed", range(60))
def test_the_first_safe_setting_is_the_cheapest_and_no_more_are_looked_at_than_said(seed):
    rng = np.random.default_rng(seed)
    rungs = ladders(rng)
    judge = MadeUp(rungs, rng)
    every = itertools.product(*(range(r.cost.size) for r in rungs))
    cost = {c: sum(r.cost[i] for r, i in zip(rungs, c, strict=True)) for c in every}
    safe = [c for c in cost if judge.verdict(c) == "safe"]
    found = [*cheapest_first(rungs, judge)]
    last, verdict, left = found[-1]
    if safe:
        assert verdict == "safe"
        assert left == 0
        assert cost[last] == pytest.approx(min(cost[c] for c in safe))
    else:
        assert verdict != "safe"
    looked = []
    for number, (choice, verdict, left) in enumerate(found, 1):
        assert verdict == judge.verdict(choice)
        looked.append(choice)
        assert len(found) - number <= left or verdict == "safe"
        # None that may be safe is left out of the number.
        assert verdict == "safe" or left >= len(set(safe) - set(looked))
