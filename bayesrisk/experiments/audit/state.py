"""What every process of an audit keeps: the population, and what was released."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesrisk import _files
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.audit.by_place import PopulationByPlace
from bayesrisk.experiments.audit.protections import Protection, Usual
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import BaseMechanism
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion


@dataclass(eq=False)
class State:
    """A population, what is asked of whom, and releases that were made."""

    name: str
    question: AuditQuestion
    population: AuditedPopulation | PopulationByPlace
    usual: Usual
    targets: IntArray

    def __post_init__(self) -> None:
        self._released: dict[str, tuple[Mechanism, Any]] = {}

    def parts(self, size: int) -> list[IntArray]:
        """Return targets in parts of about a size, those of one place together."""
        place = self.population.places_of(self.targets)
        order = np.argsort(place, kind="stable")
        rows, place = self.targets[order], place[order]
        first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        cuts, last = [0], 0
        for start in first.tolist():
            if start - last >= size:
                cuts.append(start)
                last = start
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], rows.size], strict=True)]

    def released(self, number: int, protection: Protection) -> tuple[Mechanism, Any]:
        """Return a protection and its release, made once."""
        name = protection.name
        if name not in self._released:
            mechanism = protection.make(self.usual)
            if isinstance(mechanism, BaseMechanism):  # released anew without each target
                mechanism = mechanism.for_neighbours()
            self._released = {name: (mechanism, self.population.release(number, mechanism))}
        return self._released[name]


def digest_of(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder."""
    return _files.digest(path) if path.is_file() else _files.digest_folder(path)


def plain(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return values as JSON keeps them."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameters of {name!r} must be plain values: {error}") from error
    return plain
