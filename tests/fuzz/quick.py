"""What a command computes is computed once: to write, to stop and to go on is what is tried."""

import contextlib
import unittest.mock

from figures import quick_figures

from bayesrisk.census.studies import linked_counties as linkage_counties, occupancy as occupancy_run
from bayesrisk.risk.linkage.agreement import ReidentificationSums


def _texts(frames):
    return tuple(None if frame is None else frame.to_csv() for frame in frames)


def _once(function, key):
    """Return a function that keeps its last results, by what they are made of."""
    kept = {}

    def call(*given, **named):
        name = (*key(*given), *sorted(named.items()))
        if name not in kept:
            if len(kept) > 50:
                kept.clear()
            kept[name] = given, function(*given, **named)  # what it is made of stays alive
        return kept[name][1]

    return call


def of_county(area, counties, moved, cells, seed, confidence):
    files = (counties.truth, *counties.attackers.values())
    frames = (
        *(area.records, area.blocks, area.variability),
        *(file.county(area.code) for file in files),
        *(moved.answers(area.code, number) for number in range(len(counties.attackers))),
    )
    numbers = (kept.tobytes() for kept in cells.values())
    names = (area.code, area.number, *counties.attackers)
    return *names, *_texts(frames), *numbers, seed, confidence


def _of_study(study, frames, truths):
    return str(study.config), *_texts(frames.values())


@contextlib.contextmanager
def quick_results():
    """Let figures be a few bytes, and the same results be computed once."""
    replaced = (
        (linkage_counties, "_link", of_county),
        (occupancy_run, "pooled_results", _of_study),
        (ReidentificationSums, "to_frame", lambda found: (id(found),)),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(quick_figures())
        for place, name, key in replaced:
            once = _once(getattr(place, name), key)
            stack.enter_context(unittest.mock.patch.object(place, name, once))
        yield
