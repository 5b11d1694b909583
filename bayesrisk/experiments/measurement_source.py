"""Folders of noisy measurements: their constraints, bounds of cells, and budgets, for one query."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import MAX_COUNT
from bayesrisk.accounting import census_2020_budget
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers import SPINE_WIDTHS, NoisyMeasurements
from bayesrisk.readers.nmf.bounds import Atoms, CellBounds, cell_bounds, definitions, rows_between
from bayesrisk.readers.nmf.rows import cell_labels

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.readers.nmf.bounds import QueryRows

#: Production budgets that a run may name.
_BUDGETS = ("pl94-us", "pl94-pr")


@dataclass(frozen=True, eq=False)
class Source:
    """A folder of noisy measurements, for the cells of one query in the units of one level.

    ``target`` is for every cell of the histogram the cell of the query, of which there are
    ``n_cells``; None where axes are not known.  ``atoms`` are the constraints that are understood.
    """

    nmf: NoisyMeasurements
    level: str
    query: str
    n_cells: int
    target: NDArray[np.int64] | None
    atoms: Atoms

    @property
    def digest(self) -> str:
        """SHA-256 of the names and contents of the folder's files."""
        folder, total = self.nmf.folder, hashlib.sha256()
        try:
            for file in sorted(p for p in folder.rglob("*.parquet") if p.is_file()):
                name = file.relative_to(folder).as_posix()
                total.update(f"{name} {_files.digest(file)}\n".encode())
        except OSError as error:
            raise DataError(f"{folder}: cannot be read: {error}") from error
        return total.hexdigest()

    @property
    def above(self) -> tuple[str, ...]:
        """Levels around that of the units, coarse to fine."""
        return self.nmf.levels[: self.nmf.levels.index(self.level)]

    def known_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cell of the query and the atom of every cell of a histogram that is known."""
        if self.target is None or self.atoms.of_cell is None:
            raise DataError(f"{self.nmf.folder}: axes of the histogram must be known, but are not")
        return self.target, self.atoms.of_cell

    def state(self, code: str) -> str:
        """Return the state of a unit: the beginning of its geocode; nothing for the nation."""
        wide = self.nmf.widths.get("State", SPINE_WIDTHS["State"])
        return "" if self.level == "US" else code[:wide]

    def width(self, level: str) -> int:
        """Return the characters of a geocode of a level; 0 for the nation."""
        return self.nmf.widths.get(level, 0)

    def answers(self, level: str, units: NDArray[np.str_]) -> QueryRows | None:
        """Return the noisy answers to the query in a range of sorted units, if there are any."""
        width = self.width(level)
        low, high = str(units[0])[:width], str(units[-1])[:width]
        return rows_between(self.nmf, level, "DPQuery", low, high, (self.query,)).get(self.query)

    def check_listed(
        self, level: str, answered: NDArray[np.str_], listed: NDArray[np.str_]
    ) -> None:
        """Refuse noisy answers of units that the constraints of the folder leave out."""
        missing = np.setdiff1d(answered, listed)
        if missing.size:
            raise DataError(
                f"{self.nmf.folder}: {level} {missing[0]} has a noisy answer, but the constraints "
                "do not list it: copy the whole Constraint folder, or none"
            )

    def bounds(
        self,
        units: NDArray[np.str_],
        level: str,
        target: NDArray[np.int64] | None,
        *,
        around: bool = True,
    ) -> CellBounds:
        """Return the bounds that constraints set to cells of sorted units of a level.

        With ``around`` the constraints of the units around them count too.
        """
        if target is None or not units.size:
            return _no_bounds(units.size, self.n_cells, self.atoms.size)
        rows = []
        # Its own constraints first: of two that say the same, they are named.
        for other in reversed(self.nmf.levels[: self.nmf.levels.index(level) + 1]):
            width = self.width(other)
            if (other != level and not around) or (other != "US" and not width):
                continue
            low, high = str(units[0])[:width], str(units[-1])[:width]
            constraints = rows_between(self.nmf, other, "Constraint", low, high)
            rows.append(("" if other == level else f"{other} ", width, constraints))
        return cell_bounds(self.atoms, target, units, rows, f"{self.nmf.folder}: {level}")


def _no_bounds(units: int, cells: int, atoms: int) -> CellBounds:
    """Return the bounds of cells of which nothing is known."""
    return CellBounds(
        np.zeros(units, dtype=np.int64),
        np.zeros((1, cells), dtype=np.int64),
        np.full((1, cells), MAX_COUNT),
        np.full((1, cells), -1, dtype=np.int16),
        (),
        np.ones((1, atoms), dtype=np.bool_),
    )


def _budget(name: str, universe: str) -> pd.DataFrame:
    """Return the production budget of a name, which must be of the folder's product."""
    check.choice(name, "budget", _BUDGETS)
    product, region = name.split("-")
    if not universe.startswith(product):
        raise ArgumentError(f"budget must be that of the folder's product, {universe}, got {name}")
    kind = universe.removeprefix(f"{product}-")
    return census_2020_budget(product, region=region.upper(), universe=kind)


def _finest(nmf: NoisyMeasurements, asked: dict[str, tuple[str, ...]], level: str) -> str:
    """Return the query with most cells: the detailed one where there is one."""
    if "detailed" in asked:
        return "detailed"
    sizes = {}
    for name, answers in asked.items():
        labels = cell_labels(nmf.universe, answers)
        sizes[name] = 0 if labels is None else int(labels.max()) + 1
    if not sizes:
        raise DataError(f"{nmf.folder}: level {level} must have noisy answers, got none")
    return max(sizes, key=lambda name: sizes[name])


def read_source(folder: str, level: str, query: str | None, budget: str | None) -> Source:
    """Return a folder for one query, by default the one with most cells."""
    nmf = NoisyMeasurements.open(folder)
    if budget is not None:
        nmf = NoisyMeasurements.open(folder, budget=_budget(budget, nmf.universe.name))
    check.choice(level, "level", nmf.levels)
    asked = definitions(nmf, level, "DPQuery")
    name = _finest(nmf, asked, level) if query is None else query
    if name not in asked:
        raise ArgumentError(
            f"query must be one of {'; '.join(asked) or 'none'} at level {level}, got {shown(name)}"
            + check.did_you_mean(name, asked)
        )
    target = cell_labels(nmf.universe, asked[name])
    stated: dict[str, tuple[str, ...]] = {}
    for other in nmf.levels[: nmf.levels.index(level) + 1]:
        for constraint, answers in definitions(nmf, other, "Constraint").items():
            if stated.setdefault(constraint, answers) != answers:
                known = ", ".join(stated[constraint])
                raise DataError(
                    f"{nmf.folder}: constraint {constraint} must ask {known} at every level, "
                    f"got {', '.join(answers)} at {other}"
                )
    if target is None:
        cells = next(nmf.iter_values(level, name)).values.shape[1]
    else:
        cells = int(target.max()) + 1
    return Source(nmf, level, name, cells, target, Atoms(nmf.universe, stated))


_kept = functools.lru_cache(maxsize=1)(read_source)  # the shards of a run all read one folder


def open_source(measurements: Any, level: str, query: str | None, budget: str | None) -> Source:
    """Return the same from checked arguments, kept until :func:`forget_source`."""
    folder = check.path(measurements, "measurements")
    check.text(level, "level")
    if query is not None:
        check.text(query, "query")
    if budget is not None:
        check.choice(budget, "budget", _BUDGETS)
    return _kept(str(folder), level, query, budget)


def forget_source() -> None:
    """Forget the folder that was read last."""
    _kept.cache_clear()


def summary_file(shards: int, facts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return ``summary.json`` of a complete run, without how the run came to it."""
    told = {"shards": shards, "complete": True, **facts}
    return {"summary.json": (json.dumps(told, indent=2, allow_nan=False) + "\n").encode()}
