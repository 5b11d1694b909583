"""Limits of a plan: what may be proved, recovered, or learned from the own record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk.exceptions import ArgumentError

#: What is proved, in the order of a test.
PROVEN = ("recovered", "sentences", "proved")
#: What is believed, which need not fall when tables get coarser.
BELIEVED = ("gain", "doubled")


@displayed
@dataclass(frozen=True)
class PlanLimits:
    """The most that a release may prove, or let somebody learn; None is no limit.

    Attributes
    ----------
    recovered : int, optional
        Counts of 1 or 2, of the tables asked for, that are known within ``within``.
    sentences : int, optional
        Such counts of which it is proved that there is at least one person.
    proved : int, optional
        Records proved: everybody knows that the place has somebody with all that the tables tell.
    gain : float, optional
        Gain from the own record, in points, of the adversary who gains most.
    doubled : int, optional
        People whose truth becomes at least twice as probable through their own record, for the
        adversary for whom they are most.
    within : int, default 0
        The largest less the smallest possible number of a count that is recovered.

    Examples
    --------
    >>> PlanLimits.parse(["recovered=0", "gain=3.5"]).stated
    {'recovered': 0, 'gain': 3.5}
    """

    recovered: int | None = None
    sentences: int | None = None
    proved: int | None = None
    gain: float | None = None
    doubled: int | None = None
    within: int = 0

    def __post_init__(self) -> None:
        for name in (*PROVEN, "doubled"):
            if getattr(self, name) is not None:
                check.integer(getattr(self, name), name, lower=0)
        if self.gain is not None:
            object.__setattr__(self, "gain", check.scalar(self.gain, "gain", lower=0.0))
        check.integer(self.within, "within", lower=0)
        if not self.stated:
            raise ArgumentError(
                "limit", f"must be given, one of {', '.join(PROVEN + BELIEVED)}", shown="none"
            )

    @classmethod
    def parse(cls, limits: PlanLimits | Mapping[str, float] | Iterable[str]) -> PlanLimits:
        """Return limits of a mapping, or of texts ``NAME=NUMBER``."""
        if isinstance(limits, PlanLimits):
            return limits
        is_mapping, values = isinstance(limits, Mapping), dict[str, Any]()
        for text in limits if is_mapping else check.texts(limits, "limits"):
            name, _, number = (part.strip() for part in str(text).partition("="))
            check.choice(
                name, "limits" if is_mapping else "limit", tuple(f.name for f in fields(cls))
            )
            try:
                kind = float if name == "gain" else int
                values[name] = limits[text] if isinstance(limits, Mapping) else kind(number)
            except ValueError:
                raise ArgumentError("limit", "must be NAME=NUMBER", got=text) from None
        return cls(**values)

    @property
    def stated(self) -> dict[str, float]:
        """The limits that are given, by name."""
        names = PROVEN + BELIEVED
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}
