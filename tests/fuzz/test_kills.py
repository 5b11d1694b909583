"""Every command that writes, killed before each change of a file and after the last: old or new.

``--fuzz-kills`` says how many points of each are tried, or ``all``; which ones, ``--fuzz-seed``.
A find is printed with its command and point.
"""

import numpy as np
import pytest
from fuzz.quick import quick_results
from writing_cases import Case, commands, inputs

from bayesrisk._base import disk

_LONG = (
    *("occupancy-study", "occupancy-figures", "reidentify", "sweep", "audit-by", "nmf-counts"),
)


SHARES = ("--fuzz-kills", 4, 1)


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("inputs"))


def chosen(points, wanted, seed):
    """Return the points to try."""
    if wanted == "all" or points <= int(wanted):
        return range(points)
    rng = np.random.default_rng([seed, points])
    return sorted(rng.choice(points, int(wanted), replace=False).tolist())


def finds(case, points):
    """Return what a kill at some points left that is neither old nor new."""
    found = []
    for point in points:
        try:
            case.check(point)
        except AssertionError as error:
            found.append(f"point {point} of {case.points}: {error}")
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in _LONG else [])
        for name in commands(disk.writing.Path())
    ],
)
def test_a_kill_leaves_the_old_or_the_new(name, share, at, quick_path, request):
    seed, wanted = request.config.getoption("--fuzz-seed"), request.config.getoption("--fuzz-kills")
    with quick_results():
        case = Case(commands(at)[name], quick_path)
        found = finds(case, chosen(case.points, wanted, seed)[share])
    assert found == [], "\n".join([f"{name}, --fuzz-seed {seed}", *found[:5]])


def test_what_writes_in_place_is_found(at, tmp_path, monkeypatch):
    """A command that makes its files where they belong, one after another."""
    case = Case(commands(at)["simulate-again"], tmp_path)
    monkeypatch.setattr(disk.writing, "_swap", in_place)
    assert finds(case, range(0, case.points, 3))


def in_place(new, target):
    for file in new.iterdir():
        file.replace(target / file.name)
