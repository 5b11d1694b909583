"""The spine of a noisy measurement file as trees of counts, one for each cell of a query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._validation import MAX_COUNT
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.measurements.source import Source, read_source
from bayesrisk.inference import Tree, TreePosterior, tree_posterior
from bayesrisk.readers.nmf.axes import cell_labels
from bayesrisk.readers.nmf.between import definitions, rows_between, units_between
from bayesrisk.readers.nmf.bounds import place_of


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
