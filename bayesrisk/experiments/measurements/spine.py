"""The spine of a noisy measurement file as trees of counts, one for each cell of a query."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import MAX_COUNT
from bayesrisk.accounting import census_2020_budget
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference import Tree, TreePosterior, tree_posterior
from bayesrisk.readers import SPINE_WIDTHS, NoisyMeasurements
from bayesrisk.readers.nmf.bounds import (
    Atoms,
    CellBounds,
    cell_bounds,
    definitions,
    place_of,
    rows_between,
    units_between,
)
from bayesrisk.readers.nmf.rows import cell_labels

if TYPE_CHECKING:
    from bayesrisk.readers.nmf.bounds import QueryRows

# -----------------------------------------------------------------------------
# What a run on noisy measurement files reads: the folder, its constraints, and ranges of units.


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


# -----------------------------------------------------------------------------


class Spine:
    """The units below one of the top level, with what the folder says of one query there."""

    def __init__(self, source: Source, top: str, unit: str) -> None:
        self.source = source
        levels = source.nmf.levels
        self.levels = levels[levels.index(top) : levels.index(source.level) + 1]
        self.unit = unit
        below = "" if top == "US" else unit
        self.units = {
            level: units_between(source.nmf, level, below, below)[0] for level in self.levels
        }
        self.levels = tuple(level for level in self.levels if self.units[level].size)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return sum(units.size for units in self.units.values())

    def frames(self, first: int, last: int) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield each cell with its table for :meth:`Tree.from_frame`, which has the level too."""
        parts = []
        for above, level in zip((None, *self.levels), self.levels, strict=False):
            units = self.units[level]
            parts.append((level, units, self._parents(above, level), *self._evidence(level)))
        for cell in range(first, last):
            tables = []
            for level, units, parents, noisy, sigma2, lower, upper, pattern in parts:
                most = upper[pattern, cell]
                columns = {
                    "node": units,
                    "parent": parents,
                    "noisy_count": pd.Series(noisy[:, cell], dtype="Int64").where(
                        np.isfinite(sigma2)
                    ),
                    "sigma2": sigma2,
                    "lower": lower[pattern, cell],
                    "upper": pd.Series(most, dtype="Int64").where(most < MAX_COUNT),
                    "level": level,
                }
                tables.append(pd.DataFrame(columns))
            yield cell, pd.concat(tables, ignore_index=True)

    def _parents(self, above: str | None, level: str) -> NDArray[np.object_]:
        """Return the unit of the level above that holds each; None for the top."""
        units = self.units[level]
        if above is None:
            return np.full(units.size, None, dtype=object)
        known = self.units[above]
        if above == "US":
            return np.full(units.size, known[0], dtype=object)
        codes = units.astype(f"U{self.source.width(above)}")
        lost = np.flatnonzero(place_of(codes, known) < 0)
        if lost.size:
            raise DataError(
                f"{self.source.nmf.folder}: unit {units[lost[0]]} of level {level} must lie in a "
                f"{above} of the folder, got none {shown(str(codes[lost[0]]))}"
            )
        return codes.astype(object)

    def _evidence(self, level: str) -> tuple[Any, Any, Any, Any, Any]:
        """Return noisy counts, scales (NaN for no answer), bounds and their rows of a level."""
        source, units = self.source, self.units[level]
        low, high = ("", "") if level == "US" else (str(units[0]), str(units[-1]))
        found = rows_between(source.nmf, level, "DPQuery", low, high, (source.query,))
        noisy = np.zeros((units.size, source.n_cells), dtype=np.int64)
        sigma2 = np.full(units.size, np.nan)
        if (rows := found.get(source.query)) is not None:
            place = place_of(units, rows.geocodes)
            if (missing := np.setdiff1d(rows.geocodes, units)).size:
                raise DataError(
                    f"{source.nmf.folder}: {level} {missing[0]} has a noisy answer, but the "
                    "constraints do not list it: copy the whole Constraint folder, or none"
                )
            if rows.values.shape[1] != source.n_cells:
                raise DataError(
                    f"{source.nmf.folder}: {source.query} must have {source.n_cells} cells at "
                    f"level {level} as at {source.level}, got {rows.values.shape[1]}"
                )
            noisy[place >= 0] = rows.values[place[place >= 0]]
            sigma2[place >= 0] = rows.sigma2[place[place >= 0]]
        bounds = source.bounds(units, level, source.target, around=False)
        return noisy, sigma2, bounds.lower, bounds.upper, bounds.pattern


def tree_of(source: Source, cell: int, frame: pd.DataFrame) -> Tree:
    """Return the tree of a cell; say of which one bounds contradict."""
    try:
        return Tree.from_frame(frame)
    except DataError as error:
        names = sorted(
            {
                name
                for level in source.nmf.levels
                for name in definitions(source.nmf, level, "Constraint")
            }
        )
        raise DataError(
            f"{source.nmf.folder}: query {source.query}, cell {cell}, constraints "
            f"{', '.join(names) or 'none'}: {error}"
        ) from error


def checked_levels(source: Source, top: str) -> Source:
    """Return a source whose query counts the same cells from its level up to the top one."""
    levels, level, query = source.nmf.levels, source.level, source.query
    check.choice(top, "top", levels)
    if levels.index(top) > levels.index(level):
        raise ArgumentError(f"top must be level {level} or a coarser one, got {top}")
    for other in levels[levels.index(top) : levels.index(level)]:
        answers = definitions(source.nmf, other, "DPQuery").get(query)
        labels = None if answers is None else cell_labels(source.nmf.universe, answers)
        if labels is not None and not np.array_equal(labels, source.known_cells()[0]):
            raise DataError(
                f"{source.nmf.folder}: query {query} must count the same cells at level {other} "
                f"as at {level}, got {', '.join(answers or ())}"
            )
    return source


def measurement_posterior(
    measurements: str | Path,
    *,
    query: str = "total",
    cell: int = 0,
    unit: str | None = None,
    level: str = "Block",
    top: str = "State",
    budget: str | None = None,
    leaf_prior: Any = "flat",
) -> TreePosterior:
    """Return the posterior of one count in every place below a unit, given the whole folder.

    Parameters
    ----------
    measurements : path-like
        Folder of a product of noisy measurement files.
    query : str, default "total"
        Query whose noisy answers are used, at every level that has them.
    cell : int, default 0
        Which of its counts, in C order of its shape.
    unit : str, optional
        Geocode of the top unit; by default the only one.
    level, top : str, default "Block" and "State"
        Finest and coarsest level.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget: exact scales of the noise.
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Belief about each count of the finest level before the release, as for
        :func:`tree_posterior`.

    Returns
    -------
    TreePosterior
        Posterior of every unit, by geocode; all units add up, and keep within exact totals and
        bounds.

    Raises
    ------
    DataError
        If a row breaks the format, or constraints contradict each other.

    Notes
    -----
    Memory: about 2 KiB for each unit of the finest level.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     found = measurement_posterior(sample.folder, unit="057")
    >>> bool(found.mean[0] == sample.counts["State"][0].sum())  # an exact total
    True
    """
    check.text(query, "query")
    folder = str(check.path(measurements, "measurements"))
    source = checked_levels(read_source(folder, level, query, budget), top)
    cell = check.integer(cell, "cell", lower=0, upper=source.n_cells - 1)
    known, _ = units_between(source.nmf, top)
    if unit is None and known.size != 1:
        raise ArgumentError(f"unit must be given: level {top} has {known.size} units")
    chosen = str(known[0]) if unit is None else check.text(unit, "unit")
    if chosen not in known:
        raise ArgumentError(
            f"unit must be a geocode of level {top}, got {shown(chosen)}"
            f"{check.did_you_mean(chosen, known.tolist())}"
        )
    _, frame = next(Spine(source, top, chosen).frames(cell, cell + 1))
    return tree_posterior(tree_of(source, cell, frame), leaf_prior=leaf_prior)
