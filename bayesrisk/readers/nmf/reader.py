"""The 2020 noisy measurement files: folders of Parquet files, read a piece at a time.

A folder of a product holds, for each level of the spine, the noisy answers (``DPQuery``) and the
constraints, which are exact (``Constraint``)::

    US_Person_PL_PROD/Block.parquet/DPQuery/State=050/part-0.parquet

Counts may be negative.  A unit without siblings has no row among the answers (its share of the
budget went to its parent); the constraints list every unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parquet import opened
from bayesrisk._files.text import named, shown
from bayesrisk._show import displayed
from bayesrisk._validation import FloatAnswer, FloatArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.readers.geocodes import SPINE_WIDTHS
from bayesrisk.readers.nmf.rows import (
    BATCH_CELLS,
    MeasurementBatch,
    Rows,
    Universe,
    axes_of,
    batches,
    check_columns,
    rows_of_query,
    universe_of,
)

if TYPE_CHECKING:
    import pandas as pd

# Variance and scale of the noise in noisy measurement files.
#
# The files give the variance of the discrete Gaussian, rounded to single precision; inference wants
# the scale parameter sigma2.  The two agree to 2e-7 at 1 and differ by 6 % at sigma2 = 0.3.


# Above this scale, variance and sigma2 are the same double: the gap is sigma2 times
# 8 pi**2 sigma2 exp(-2 pi**2 sigma2), relatively 2e-17.
_SAME = 2.2
_TERMS = np.arange(1.0, 16.0)  # exp(-j**2 / (2 _SAME)) < 1e-21 beyond
_MAX_STEPS = 60
#: Relative difference that rounding to single precision explains, with a margin of two.
SINGLE = 2.0**-23


def _log_variance(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the variance at 1 / (2 sigma2), and its derivative.

    The weight of 1 is taken out, so that nothing underflows.
    """
    squares = _TERMS**2
    weight = np.exp(-precision[..., None] * (squares - 1.0))
    second, fourth = (weight * squares).sum(-1), (weight * squares**2).sum(-1)
    first = 2.0 * np.exp(-precision)
    mass = 1.0 + first * weight.sum(-1)
    value = np.log(2.0 * second) - precision - np.log(mass)
    return value, first * second / mass - fourth / second


def sigma2_from_variance(variance: ArrayLike) -> FloatAnswer:
    r"""Return the scale parameter of the discrete Gaussian that has a given variance.

    The inverse of ``DiscreteGaussian(sigma2).var()``, by Newton's method on
    :math:`\log \operatorname{var}` as a function of :math:`1 / (2 \sigma^2)`, a smooth
    curve that falls everywhere, with slopes between -4.4 and -0.79 and -1 at the far end.

    Parameters
    ----------
    variance : array_like
        Variances, in (0, 1e30].

    Examples
    --------
    >>> float(sigma2_from_variance(10.09))
    10.09
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> variance = float(DiscreteGaussian(0.2).var())
    >>> round(variance, 6), round(float(sigma2_from_variance(variance)), 12)
    (0.14132, 0.2)
    """
    target = check.real_array(variance, "variance", lower=0.0, upper=1e30, bounds="(]")
    result = target.astype(float)
    small = target < _SAME
    if small.any():
        goal = np.log(target[small])
        precision = np.full(goal.shape, 0.5 / _SAME)
        for _ in range(_MAX_STEPS):
            value, slope = _log_variance(precision)
            step = (goal - value) / slope
            precision = np.maximum(precision + step, 0.5 / _SAME)
            if (np.abs(step) <= 4e-16 * precision).all():
                break
        result[small] = 0.5 / precision
    return result[()]


def budget_chain(budget: pd.DataFrame, level: str, query: str) -> list[Fraction]:
    """Return the budgets of a query at a level and at those below it, from a table of budgets."""
    budget = check.frame(budget, "budget", ("level", "query", "rho"))
    levels = list(dict.fromkeys(budget["level"]))
    if level not in levels:
        raise ArgumentError(f"budget must have the level {level!r}, got {', '.join(levels)}")
    mine = budget[budget["query"] == query]
    if mine.empty:
        raise ArgumentError(f"budget must have the query {query!r}, got none of that name")
    if mine["level"].duplicated().any():
        raise ArgumentError(f"budget must have one row for each level of {query!r}, got two")
    budgets = zip(mine["level"], mine["rho"], strict=True)
    rho = {name: exact_number(value, "rho") for name, value in budgets}
    return [rho.get(name, Fraction(0)) for name in levels[levels.index(level) :]]


class Scales:
    """Scale parameters for the variances of one query at one level.

    A unit without siblings hands its budget to its parent, and that one perhaps to its own: with
    a table of budgets a row's share is the level's own and those of one, two, ... levels below.
    """

    def __init__(self, chain: Sequence[Fraction] | None) -> None:
        self._exact: FloatArray | None = None
        if chain is not None:
            totals = {sum(chain[: i + 1], Fraction(0)) for i in range(len(chain))} - {Fraction(0)}
            if not totals:
                raise ArgumentTypeError("budget must be positive at some level, got zero")
            self._exact = np.array(sorted(float(1 / total) for total in totals))
            self._variance = np.asarray(DiscreteGaussian(self._exact).var())

    @property
    def allowed(self) -> list[float] | None:
        """Variances that the budget allows, or None."""
        return None if self._exact is None else self._variance.tolist()

    def __call__(self, variance: FloatArray) -> FloatArray:
        """Return sigma2 for each variance; NaN where the budget does not explain it."""
        distinct, place = np.unique(variance, return_inverse=True)
        if self._exact is None:
            scales = np.asarray(sigma2_from_variance(distinct))
        else:
            gap = np.abs(distinct[:, None] / self._variance - 1.0)
            best = gap.argmin(axis=1)
            scales = np.where(gap.min(axis=1) <= SINGLE, self._exact[best], np.nan)
        result: FloatArray = scales[place]
        return result


# Folders of a noisy measurement file, and units that occur twice.

# Levels of the redistricting data and of the later demographic ones, coarse to fine.
_LEVELS = (
    *("US", "State", "County", "Prim", "Tract_Subset_Group", "Tract_Subset", "Tract"),
    *("Block_Group", "Block"),
)
_SUFFIX = 16  # characters of a block's geocode that are published geography


def levels_of(folder: Path) -> tuple[str, ...]:
    """Return the levels that a product's folder has, coarse to fine."""
    with named(str(folder)):
        if not folder.is_dir():
            raise DataError(f"{folder}: must be a folder of noisy measurements, but is none")
    present = {p.name.removesuffix(".parquet") for p in folder.glob("*.parquet") if p.is_dir()}
    levels = tuple(level for level in _LEVELS if level in present)
    if unknown := sorted(present - set(levels)):
        raise DataError(
            f"{folder}: folders must be named after the levels {', '.join(_LEVELS)}, "
            f"got {shown(unknown[0])}"
        )
    if not levels:
        inner = sorted(p.parent.name for p in folder.glob("*/*.parquet") if p.is_dir())
        hint = f"; the folder {inner[0]!r} in it does" if inner else ""
        raise DataError(f"{folder}: must hold folders such as Block.parquet, got none{hint}")
    return levels


def files_of(folder: Path, level: str, kind: str) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of a level with the state of their folder, the states one after the other."""
    root = folder / f"{level}.parquet" / kind
    for file in sorted(root.rglob("*.parquet")):
        inner = file.relative_to(root).parts
        if inner[-1].startswith(("_", ".")):
            continue
        state = None
        for part in inner[:-1]:
            key, _, value = part.partition("=")
            if key not in ("State", "County"):
                raise DataError(
                    f"{file}: folders below {kind} must be State=... or County=..., "
                    f"got {shown(part)}"
                )
            if key == "State":
                state = value
        if state is not None and (len(state) != SPINE_WIDTHS["State"] or not state.isdigit()):
            raise DataError(
                f"{file}: State= must have 3 digits, a tribal flag and the FIPS code, "
                f"got {shown(state)}"
            )
        yield file, state


def widths_of(folder: Path, levels: tuple[str, ...]) -> dict[str, int]:
    """Return the characters of a geocode by level, from the first row of each.

    A run of the agency's system finds them from the largest number of children, so that they
    differ from product to product; along the spine they grow, as each unit's code starts with
    that of the unit around it.
    """
    widths: dict[str, int] = {}
    for level in levels:
        if level == "US":
            widths[level] = 0
            continue
        first = _first_geocode(folder, level)
        if first is None:
            continue
        file, code = first
        above = next(reversed(widths), None)
        least = widths[above] + 1 if above else 1
        if len(code) < least:
            raise DataError(
                f"{file}: column 'geocode': a {level} must have more characters than a {above}, "
                f"{least - 1}, got {shown(code)}"
            )
        widths[level] = len(code)
    return widths


def _first_geocode(folder: Path, level: str) -> tuple[Path, str] | None:
    """Return a level's first geocode that is text, and its file; None where it has no row."""
    for kind in ("Constraint", "DPQuery"):
        for file, _ in files_of(folder, level, kind):
            with opened(file) as (source, _):
                there = "geocode" in source.schema_arrow.names
            # A file without the column is refused by name where it is read.
            rows = next(batches(file, ("geocode",), 1), None) if there else None
            code = None if rows is None else rows.table.column("geocode")[0].as_py()
            if code is not None:
                return file, str(code)
    return None


def refuse_repeated(rows: Rows, codes: NDArray[np.str_], level: str, seen: set[int]) -> None:
    """Refuse a unit that has been read before, and remember these.

    A unit is kept as a number; a block by its published part, the nation as a single 1.
    """
    kept = {"Block": slice(-_SUFFIX, None), "US": slice(0, 0)}.get(level, slice(None))
    keys = [int("1" + code[kept]) for code in codes.tolist()]
    found = set(keys)
    if len(found) < len(keys) or not seen.isdisjoint(found):
        for place, key in enumerate(keys):
            if key in seen:
                text = shown(str(codes[place]))
                rule = f"must occur once for the query, got {text} again"
                raise rows.refuse(place, "geocode", rule)
            seen.add(key)
    seen |= found


#: How names of queries end, by the kind of the folder.
ENDINGS = {"DPQuery": "_dpq", "Constraint": "_con"}
SIGNS = ("=", "<=", ">=")
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
    budget: pd.DataFrame | None = None
    widths: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | Path, *, budget: pd.DataFrame | None = None) -> Self:
        """Open a product's folder.

        Parameters
        ----------
        folder : path-like
            Folder with ``<Level>.parquet`` folders in it, such as ``US_Person_PL_PROD``.
        budget : pandas.DataFrame, optional
            Table with columns ``level`` (coarse to fine), ``query`` and ``rho``, such as
            ``census_2020_budget("pl94")``; the noise has sigma2 = 1 / rho.
        """
        path = check.path(folder, "folder")
        levels = levels_of(path)
        kinds = ((level, kind) for level in levels for kind in ENDINGS)
        found = (file for level, kind in kinds for file, _ in files_of(path, level, kind))
        first = next(found, None)
        if first is None:
            raise DataError(f"{path}: must hold Parquet files in its levels, got none")
        with opened(first) as (source, _):
            universe = universe_of(axes_of(source.schema_arrow))
        return cls(path, levels, universe, budget, widths_of(path, levels))

    def queries(self, level: str) -> tuple[str, ...]:
        """Return the sorted names of the queries of a level, without ``_dpq``."""
        names: set[str] = set()
        suffix = ENDINGS["DPQuery"]
        for file, _ in files_of(self.folder, check.choice(level, "level", self.levels), "DPQuery"):
            check_columns(file, tuple(self.universe.axes), ("query_name",))
            for rows in batches(file, ("query_name",), _NAME_ROWS):
                names.update(rows.queries(suffix)[1])
        return tuple(sorted(name.removesuffix(suffix) for name in names))

    def iter_values(self, level: str, query: str) -> Iterator[MeasurementBatch]:
        """Yield the noisy answers to one of :meth:`queries`, rows of one file at a time.

        A batch has about 2**20 cells; a row that breaks the format is a ``DataError`` with its
        file, row and column.
        """
        known, axes = self.queries(level), tuple(self.universe.axes)
        if query not in known:
            raise ArgumentError(
                f"query must be one of {'; '.join(known) or 'none'} at level {level}, "
                f"got {shown(query)}"
            )
        columns = ("geocode", "query_name", *axes, "query_shape", "value", "variance")
        scales = Scales(None if self.budget is None else budget_chain(self.budget, level, query))
        expected: tuple[int, ...] | None = None
        seen: set[int] = set()
        of_state: str | None = None
        for file, state in files_of(self.folder, level, "DPQuery"):
            check_columns(file, axes, columns)
            if state != of_state:
                seen, of_state = set(), state
            most = self.universe.size or _UNKNOWN_SIZE
            for rows in rows_of_query(file, columns, query, cells=BATCH_CELLS, most=most):
                codes = rows.geocodes(level, self.widths.get(level), state)
                refuse_repeated(rows, codes, level, seen)
                shape = rows.shape(self.universe)
                expected = expected or shape
                if shape != expected:
                    rule = f"be {list(expected)} as in the query's other rows"
                    raise rows.refuse(0, "query_shape", f"must {rule}, got {list(shape)}")
                variance, sigma2 = rows.variance(), rows.sigma2(scales)
                values = rows.values(shape)
                yield MeasurementBatch(
                    level, query, shape, codes, values, variance, sigma2, rows.file, rows.numbers
                )

    def units(self, level: str) -> NDArray[np.str_]:
        """Return the sorted geocodes of all units that the constraints of a level list."""
        check.choice(level, "level", self.levels)
        files = list(files_of(self.folder, level, "Constraint"))
        if not files:
            raise ArgumentError(
                f"level must have constraints to list its units, got {shown(level)}"
            )
        units: set[str] = set()
        for file, state in files:
            for rows in batches(file, ("geocode",), _NAME_ROWS):
                units.update(rows.geocodes(level, self.widths.get(level), state).tolist())
        return np.array(sorted(units), dtype=np.str_)
