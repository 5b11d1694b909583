"""What a run on noisy measurement files reads: the folder, its constraints, and ranges of units."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._validation import MAX_COUNT
from bayesrisk.accounting import census_2020_budget
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers import SPINE_WIDTHS, NoisyMeasurements
from bayesrisk.readers.nmf.axes import cell_labels
from bayesrisk.readers.nmf.between import definitions, rows_between
from bayesrisk.readers.nmf.bounds import Atoms, CellBounds, cell_bounds

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.readers.nmf.between import QueryRows

#: Production budgets that a run may name.
BUDGETS = ("pl94-us", "pl94-pr")


def _budget(name: str | None, universe: str) -> pd.DataFrame | None:
    """Return the production budget of a name, which must be of the folder's product."""
    if name is None:
        return None
    check.choice(name, "budget", BUDGETS)
    product, region = name.split("-")
    if not universe.startswith(product):
        raise ArgumentError(f"budget must be that of the folder's product, {universe}, got {name}")
    return census_2020_budget(
        product, region=region.upper(), universe=universe.removeprefix(f"{product}-")
    )


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files."""
    total = hashlib.sha256()
    try:
        for file in sorted(p for p in folder.rglob("*.parquet") if p.is_file()):
            total.update(f"{file.relative_to(folder).as_posix()} {_files.digest(file)}\n".encode())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error}") from error
    return total.hexdigest()


@dataclass(frozen=True, eq=False)
class Source:
    """A folder of noisy measurements with what its constraints say, for one query.

    Attributes
    ----------
    nmf : NoisyMeasurements
        The folder.
    level : str
        Level whose units are asked about.
    query : str
        Query whose cells are asked about.
    n_cells : int
        Its cells.
    target : ndarray of int64 or None
        For every cell of the histogram, the cell of the query; None where axes are not known.
    atoms : Atoms
        Constraints that are understood.
    """

    nmf: NoisyMeasurements
    level: str
    query: str
    n_cells: int
    target: NDArray[np.int64] | None
    atoms: Atoms

    @property
    def above(self) -> tuple[str, ...]:
        """Levels around that of the units, coarse to fine."""
        return self.nmf.levels[: self.nmf.levels.index(self.level)]

    def known_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cell of the query and the atom of every cell of a histogram that is known."""
        if self.target is None or self.atoms.of_cell is None:
            raise DataError(f"{self.nmf.folder}: axes of the histogram must be known, but are not")
        return self.target, self.atoms.of_cell

    def state_of(self, code: str) -> str:
        """Return the state of a unit: the beginning of its geocode; nothing for the nation."""
        wide = self.nmf.widths.get("State", SPINE_WIDTHS["State"])
        return "" if self.level == "US" else code[:wide]

    def width(self, level: str) -> int:
        """Return the characters of a geocode of a level; 0 for the nation."""
        return self.nmf.widths.get(level, 0)

    def constraints(self, level: str, low: str, high: str) -> dict[str, QueryRows]:
        """Return the constraints of a level about the units in a range."""
        width = self.width(level)
        return rows_between(self.nmf, level, "Constraint", low[:width], high[:width])

    def bounds(
        self,
        units: NDArray[np.str_],
        level: str,
        target: NDArray[np.int64] | None,
        *,
        around: bool = True,
    ) -> CellBounds:
        """Return what the constraints leave of cells of units of a level.

        With ``around`` the constraints of the units around them count too.
        """
        if target is None or not units.size:
            return _free(units.size, self.n_cells, self.atoms.size)
        low, high = str(units[0]), str(units[-1])
        rows = []
        # Its own constraints first: of two that say the same, they are named.
        for other in reversed(self.nmf.levels[: self.nmf.levels.index(level) + 1]):
            if (other != level and not around) or (other != "US" and not self.width(other)):
                continue
            before = "" if other == level else f"{other} "
            width = 0 if other == "US" else self.width(other)
            rows.append((before, width, self.constraints(other, low, high)))
        return cell_bounds(self.atoms, target, units, rows, f"{self.nmf.folder}: {level}")


def _free(units: int, cells: int, atoms: int) -> CellBounds:
    """Return the bounds of cells of which nothing is known."""
    return CellBounds(
        np.zeros(units, dtype=np.int64),
        np.zeros((1, cells), dtype=np.int64),
        np.full((1, cells), MAX_COUNT),
        np.full((1, cells), -1, dtype=np.int16),
        (),
        np.ones((1, atoms), dtype=np.bool_),
    )


def finest(nmf: NoisyMeasurements, asked: dict[str, tuple[str, ...]], level: str) -> str:
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
    """Return a folder with what its constraints ask, for one query.

    Without a query the one with most cells is taken.
    """
    nmf = NoisyMeasurements.open(folder)
    if budget is not None:
        nmf = NoisyMeasurements.open(folder, budget=_budget(budget, nmf.universe.name))
    check.choice(level, "level", nmf.levels)
    asked = definitions(nmf, level, "DPQuery")
    name = finest(nmf, asked, level) if query is None else query
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


#: The same, kept while a run lasts: its shards all read one folder.
open_source = functools.lru_cache(maxsize=1)(read_source)
