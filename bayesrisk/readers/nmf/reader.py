"""The 2020 noisy measurement files: folders of Parquet files, read a piece at a time.

A folder of a product holds, for each level of the spine, the noisy answers (``DPQuery``) and the
constraints, which are exact (``Constraint``)::

    US_Person_PL_PROD/Block.parquet/DPQuery/State=050/part-0.parquet

Counts may be negative.  A unit without siblings has no row among the answers (its share of the
budget went to its parent); the constraints list every unit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.nmf._folder import (
    check_units,
    files_of,
    levels_of,
    refuse_repeated,
    widths_of,
)
from bayesrisk.readers.nmf._rows import (
    BATCH_CELLS,
    Rows,
    axes_of,
    batches,
    check_columns,
    check_suffix,
    column_of_text,
    opened,
    rows_of_query,
)
from bayesrisk.readers.nmf.axes import Universe, universe_of
from bayesrisk.readers.nmf.batches import ConstraintBatch, MeasurementBatch
from bayesrisk.readers.nmf.noise import Scales, budget_chain

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = {"DPQuery": "_dpq", "Constraint": "_con"}
_SIGNS = ("=", "<=", ">=")
_UNKNOWN_SIZE = 2**21  # cells of a row where the axes are not known
_NAME_ROWS = 2**17


@displayed
@dataclass(frozen=True)
class NoisyMeasurements:
    """A folder of noisy measurement files; ``open`` makes it, its methods read.

    Every row is checked when it is read: types, shapes against axes and lists, geocodes against
    level and folder, units that occur twice.  Memory does not grow with the files: a batch holds
    about 2**20 cells (one row where that is more), besides one number for each unit of a state.

    Attributes
    ----------
    folder : pathlib.Path
        The product's folder.
    levels : tuple of str
        Levels that it has, coarse to fine.
    universe : Universe
        What is counted: axes and recodes of the histogram.
    budget : pandas.DataFrame or None
        Budgets (``level``, ``query``, ``rho`` with sigma2 = 1 / rho), from which the exact scale
        of a row is taken, with its variance as a check; without them the variance is inverted.
    widths : mapping of str to int
        Characters of a geocode by level, as the folder's own first rows have them; every other
        row must have as many.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Unit_PL_PROD", universe="unit", rng=1)
    ...     nmf = NoisyMeasurements.open(sample.folder)
    ...     batch = next(nmf.iter_values("Block", "detailed"))
    >>> nmf.levels
    ('US', 'State', 'County', 'Tract', 'Block_Group', 'Block')
    >>> batch.values.shape[1], batch.shape, round(float(batch.sigma2[-1]), 2)
    (2, (2,), 110.52)
    """

    folder: Path
    levels: tuple[str, ...]
    universe: Universe
    budget: "pd.DataFrame | None" = None
    widths: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | Path, *, budget: "pd.DataFrame | None" = None) -> Self:
        """Open a product's folder.

        Parameters
        ----------
        folder : path-like
            Folder with ``<Level>.parquet`` folders in it, such as ``US_Person_PL_PROD``.
        budget : pandas.DataFrame, optional
            Table with columns ``level`` (coarse to fine), ``query`` and ``rho``, such as
            ``census_2020_budget("pl94")``; the noise has sigma2 = 1 / rho.

        Returns
        -------
        NoisyMeasurements
            The folder, of which only the columns of one file and a row of each level were read.

        Raises
        ------
        DataError
            If it is not such a folder.
        """
        path = check.path(folder, "folder")
        levels = levels_of(path)
        kinds = ((level, kind) for level in levels for kind in _SUFFIXES)
        found = (file for level, kind in kinds for file, _ in files_of(path, level, kind))
        first = next(found, None)
        if first is None:
            raise DataError(f"{path}: must hold Parquet files in its levels, got none")
        with opened(first) as source:
            universe = universe_of(axes_of(source.schema_arrow))
        return cls(path, levels, universe, budget, widths_of(path, levels))

    def _level(self, level: str) -> str:
        return check.choice(level, "level", self.levels)

    def n_rows(self, level: str) -> dict[Path, int]:
        """Return the number of rows of each file of noisy answers, from their footers.

        Parameters
        ----------
        level : str
            One of ``levels``.

        Returns
        -------
        dict of pathlib.Path to int
            Rows by file, in the order in which they are read.

        Raises
        ------
        DataError
            If a file is damaged.
        """
        found = {}
        for file, _ in files_of(self.folder, self._level(level), "DPQuery"):
            with opened(file) as source:
                found[file] = source.metadata.num_rows
        return found

    def _names(self, level: str, kind: str) -> tuple[str, ...]:
        """Return the names of the queries of a level, without their ending, sorted."""
        names: set[str] = set()
        suffix = _SUFFIXES[kind]
        for file, _ in files_of(self.folder, self._level(level), kind):
            with opened(file) as source:
                check_columns(source.schema_arrow, file, tuple(self.universe.axes), ("query_name",))
            for start, batch in batches(file, ("query_name",), _NAME_ROWS):
                column = column_of_text(batch, "query_name", file, start)
                check_suffix(column, suffix, file, start)
                names |= {str(name) for name in pc.unique(column).to_pylist()}
        return tuple(sorted(name.removesuffix(suffix) for name in names))

    def queries(self, level: str) -> tuple[str, ...]:
        """Return the names of the queries with noisy answers at a level.

        Parameters
        ----------
        level : str
            One of ``levels``.

        Returns
        -------
        tuple of str
            Names without the ending ``_dpq``, sorted.

        Raises
        ------
        DataError
            If a file is damaged or a name does not end in ``_dpq``.
        """
        return self._names(level, "DPQuery")

    def constraints(self, level: str) -> tuple[str, ...]:
        """Return the names of the constraints of a level.

        Parameters
        ----------
        level : str
            One of ``levels``.

        Returns
        -------
        tuple of str
            Names without the ending ``_con``, sorted.

        Raises
        ------
        DataError
            If a file is damaged or a name does not end in ``_con``.
        """
        return self._names(level, "Constraint")

    def _check_query(self, level: str, kind: str, query: str) -> None:
        known = self._names(level, kind)
        if query not in known:
            raise ArgumentError(
                f"query must be one of {'; '.join(known) or 'none'} at level {level}, "
                f"got {shown(query)}"
            )

    def _rows(
        self, level: str, kind: str, query: str, extra: str
    ) -> Iterator[tuple[Rows, NDArray[np.str_], tuple[int, ...]]]:
        """Yield checked rows of a query with their geocodes and their shape."""
        axes = tuple(self.universe.axes)
        columns = ("geocode", "query_name", *axes, "query_shape", "value", extra)
        expected: tuple[int, ...] | None = None
        seen: set[Any] = set()
        of_state: str | None = None
        for file, state in files_of(self.folder, level, kind):
            with opened(file) as source:
                check_columns(source.schema_arrow, file, axes, columns)
            if state != of_state:
                seen, of_state = set(), state
            for rows in rows_of_query(
                file,
                columns,
                query + _SUFFIXES[kind],
                suffix=_SUFFIXES[kind],
                cells=BATCH_CELLS,
                most=self.universe.size or _UNKNOWN_SIZE,
            ):
                codes = rows.geocodes(level, self.widths.get(level), state)
                refuse_repeated(rows, codes, level, seen)
                shape = rows.shape(self.universe)
                if expected is not None and shape != expected:
                    raise rows.refuse(
                        0,
                        "query_shape",
                        f"must be {list(expected)} as in the query's other rows, got {list(shape)}",
                    )
                expected = shape
                yield rows, codes, shape

    def iter_values(self, level: str, query: str) -> Iterator[MeasurementBatch]:
        """Yield the noisy answers to a query, batch by batch.

        Parameters
        ----------
        level : str
            One of ``levels``.
        query : str
            One of :meth:`queries`.

        Yields
        ------
        MeasurementBatch
            Rows of one file, about 2**20 cells.

        Raises
        ------
        ArgumentError
            If there is no such level or query, or the budget does not have it.
        DataError
            If a row breaks the format: file, row and column are named.
        """
        self._check_query(level, "DPQuery", query)
        chain = None if self.budget is None else budget_chain(self.budget, level, query)
        scales = Scales(chain)
        for rows, codes, shape in self._rows(level, "DPQuery", query, "variance"):
            variance, sigma2 = rows.variance(), rows.sigma2(scales)
            values = rows.values(shape)
            yield MeasurementBatch(
                level, query, shape, codes, values, variance, sigma2, rows.file, rows.numbers
            )

    def iter_constraints(self, level: str, query: str) -> Iterator[ConstraintBatch]:
        """Yield the constraints of a name, batch by batch.

        Parameters
        ----------
        level : str
            One of ``levels``.
        query : str
            One of :meth:`constraints`.

        Yields
        ------
        ConstraintBatch
            Rows of one file.

        Raises
        ------
        DataError
            If a row breaks the format: file, row and column are named.
        """
        self._check_query(level, "Constraint", query)
        for rows, codes, shape in self._rows(level, "Constraint", query, "sign"):
            signs = rows.text("sign")
            bad = ~np.isin(signs, _SIGNS)
            if bad.any():
                place = int(bad.argmax())
                raise rows.refuse(
                    place,
                    "sign",
                    f"must be one of {', '.join(_SIGNS)}, got {shown(str(signs[place]))}",
                )
            values = rows.values(shape)
            yield ConstraintBatch(
                level, query, shape, codes, values, signs, rows.file, rows.numbers
            )

    def iter_units(self, level: str) -> Iterator[NDArray[np.str_]]:
        """Yield the geocodes of all units of a level, from the constraints, state by state.

        Parameters
        ----------
        level : str
            One of ``levels``.

        Yields
        ------
        ndarray of str
            Sorted geocodes, each once.

        Raises
        ------
        DataError
            If a file is damaged or a geocode is not one of the level.
        """
        files: dict[str | None, list[Path]] = {}
        for file, state in files_of(self.folder, self._level(level), "Constraint"):
            files.setdefault(state, []).append(file)
        if not files:
            raise ArgumentError(
                f"level must have constraints to list its units, got {shown(level)}"
            )
        for state, parts in files.items():
            units: set[str] = set()
            for file in parts:
                for start, batch in batches(file, ("geocode",), _NAME_ROWS):
                    column = column_of_text(batch, "geocode", file, start)
                    units |= set(pc.unique(column).to_pylist())
            codes = np.array(sorted(units), dtype=np.str_)
            check_units(codes, level, self.widths.get(level), state, parts[0])
            yield codes

    def units(self, level: str) -> NDArray[np.str_]:
        """Return the geocodes of all units of a level, those without a noisy answer too.

        Parameters
        ----------
        level : str
            One of ``levels``.

        Returns
        -------
        ndarray of str
            Geocodes, each once; in memory at once, so for a nation of blocks
            use :meth:`iter_units`.

        Raises
        ------
        DataError
            If a file is damaged or a geocode is not one of the level.
        """
        return np.concatenate(list(self.iter_units(level)))

    def cells(self, shape: tuple[int, ...]) -> Mapping[str, NDArray[np.int64]]:
        """Return the position on each axis of every cell of a query.

        Parameters
        ----------
        shape : tuple of int
            Shape of the query, as in :class:`MeasurementBatch`.

        Returns
        -------
        mapping of str to ndarray of int64
            For each axis, the position of cell 0, 1, ...

        Raises
        ------
        ArgumentError
            If it does not have one entry for each axis.
        """
        axes = tuple(self.universe.axes)
        if len(shape) != len(axes):
            raise ArgumentError(f"shape must have {len(axes)} entries, got {shown(shape)}")
        positions = np.unravel_index(np.arange(prod(shape)), shape)
        return {axis: place.astype(np.int64) for axis, place in zip(axes, positions, strict=True)}
