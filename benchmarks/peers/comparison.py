"""One comparison: equal answers first, then times in turn; or the reason why it is left out."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from pairs import Pairs, in_turn


class LeftOutError(Exception):
    """A comparison that cannot be made here; the message says why."""


@dataclass(frozen=True)
class Case:
    """Two functions that were found to answer alike, ready to be timed.

    The units say how much work a call does; times are compared per unit.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    ours_units: float = 1
    theirs_units: float = 1
    rounds: int = 5


@dataclass(frozen=True)
class Comparison:
    """What is compared with what, in words, and how to make it.

    Attributes
    ----------
    question, ours, peer : str
        What is computed; the function of bayesrisk; the other tool.
    needs : tuple of str
        Distributions that must be installed, ``R:name`` for a package of R.
    equal : str
        Which answers were found equal, and how closely.
    differs : str
        What the two do not have in common.
    make : callable
        Checks that the answers are equal, and returns the case.
    """

    question: str
    ours: str
    peer: str
    needs: tuple[str, ...]
    equal: str
    differs: str
    make: Callable[[], Case]

    @property
    def name(self) -> str:
        """Name on the command line."""
        return self.make.__name__


@dataclass(frozen=True)
class Result:
    """A comparison that was made, or the reason why it was not."""

    comparison: Comparison
    versions: tuple[str, ...] = ()
    pairs: Pairs | None = None
    left_out: str = ""

    @property
    def times(self) -> str:
        """Time of the other divided by ours: the median of the rounds, and their range."""
        if self.pairs is None:
            return f"left out: {self.left_out}"
        ratios = [1.0 / r for r in self.pairs.ratios]
        middle, least, most = (
            number(r) for r in (1.0 / self.pairs.ratio, min(ratios), max(ratios))
        )
        return f"{middle} ({least} to {most})"

    @property
    def peer(self) -> str:
        """The other tool with its version."""
        versions = f" ({', '.join(self.versions)})" if self.versions else ""
        return self.comparison.peer + versions


def number(value: float) -> str:
    """Return two digits, written out: 0.083, 1.5, 26, 2,100."""
    return f"{float(f'{value:.2g}'):,.10g}"


def compare(comparison: Comparison) -> Result:
    """Make one comparison; an answer that is not equal is an error, an absent peer is not."""
    try:
        versions = tuple(f"{need.split(':')[-1]} {version(need)}" for need in comparison.needs)
        case = comparison.make()
    except LeftOutError as reason:
        return Result(comparison, left_out=str(reason))
    pairs = in_turn(
        case.ours,
        case.theirs,
        rounds=case.rounds,
        ours_units=case.ours_units,
        theirs_units=case.theirs_units,
    )
    return Result(comparison, versions, pairs)


def version(need: str) -> str:
    """Return the version of a distribution, or of a package of R."""
    if not need.startswith("R:"):
        try:
            return metadata.version(need)
        except metadata.PackageNotFoundError:
            raise LeftOutError(f"{need} is not installed") from None
    program = shutil.which("Rscript")
    if program is None:
        raise LeftOutError(f"{need[2:]} needs R, and there is no Rscript here")
    asked = f"cat(as.character(packageVersion('{need[2:]}')))"
    done = subprocess.run([program, "-e", asked], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LeftOutError(f"{need[2:]} is not installed in R")
    return done.stdout.strip()
