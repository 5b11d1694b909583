"""The 2020 noisy measurement files: folders of Parquet files, read in pieces.

For each level of the spine, a product's folder holds the noisy answers (``DPQuery``) and the exact
constraints (``Constraint``)::

    US_Person_PL_PROD/Block.parquet/DPQuery/State=050/part-0.parquet

Counts may be negative. A unit without siblings has no row among the answers, as its share of the
budget went to its parent. The constraints list every unit.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.disk.parquet import opened
from bayesrisk._base.disk.text import check_held, named
from bayesrisk._base.display import displayed
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import MAX_COUNT, FloatAnswer, FloatArray, IntArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS
from bayesrisk.census.readers.nmf.rows import (
    BATCH_CELLS,
    MeasurementBatch,
    Rows,
    Universe,
    batches,
    cell_labels,
    check_columns,
    histogram_axes,
    matching_universe,
    rows_of_query,
)
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.tables.cells import joint_kinds, positions

# Variance and scale of the noise in noisy measurement files.
#
# The files give the variance of the discrete Gaussian, rounded to single precision; inference wants
# the scale parameter sigma2.  The two agree to 2e-7 at 1 and differ by 6 % at sigma2 = 0.3.


# Above this scale, variance and sigma2 are the same double: the gap is sigma2 times
# 8 pi**2 sigma2 exp(-2 pi**2 sigma2), relatively 2e-17.
_LARGE = 2.2
_TERMS = np.arange(1.0, 16.0)  # exp(-j**2 / (2 _LARGE)) < 1e-21 beyond
_MAX_STEPS = 60
#: Relative difference that rounding to single precision explains, with a margin of two.
SINGLE = 2.0**-23


def _log_variance(precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log variance at precision 1 / (2 sigma2), and its derivative.

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
    r"""Return the discrete Gaussian's scale parameter for a variance in (0, 1e30].

    It is the inverse of ``DiscreteGaussian(sigma2).var()``, by Newton's method on
    :math:`\log \operatorname{var}` as a function of :math:`1 / (2 \sigma^2)`. This smooth curve
    falls everywhere, with slopes between -4.4 and -0.79, and -1 at the far end.

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
    small = target < _LARGE
    if small.any():
        goal = np.log(target[small])
        precision = np.full(goal.shape, 0.5 / _LARGE)
        for _ in range(_MAX_STEPS):
            value, slope = _log_variance(precision)
            step = (goal - value) / slope
            precision = np.maximum(precision + step, 0.5 / _LARGE)
            if (np.abs(step) <= 4e-16 * precision).all():
                break
        result[small] = 0.5 / precision
    return result[()]


def budget_chain(budget: pd.DataFrame, level: str, query: str) -> list[Fraction]:
    """Return a query's budgets at a level and the levels below it, from a budget table."""
    budget = check.frame(budget, "budget", ("level", "query", "rho"))
    levels = list(dict.fromkeys(budget["level"]))
    if level not in levels:
        raise ArgumentError("budget", f"must have the level {level!r}", shown=", ".join(levels))
    mine = budget[budget["query"] == query]
    if mine.empty:
        raise ArgumentError("budget", f"must have the query {query!r}", shown="none of that name")
    if mine["level"].duplicated().any():
        raise ArgumentError("budget", f"must have one row for each level of {query!r}", shown="two")
    budgets = zip(mine["level"], mine["rho"], strict=True)
    rho = {name: exact_number(value, "rho") for name, value in budgets}
    return [rho.get(name, Fraction(0)) for name in levels[levels.index(level) :]]


class Scales:
    """Scale parameters by variance, for one query at one level.

    A unit without siblings passes its budget to its parent, which may pass it on. With a table of
    budgets, a row's share is the sum of the level's own and those of one, two, ... levels below.
    """

    def __init__(self, chain: Sequence[Fraction] | None) -> None:
        self._exact: FloatArray | None = None
        if chain is not None:
            totals = {sum(chain[: i + 1], Fraction(0)) for i in range(len(chain))} - {Fraction(0)}
            if not totals:
                raise ArgumentTypeError("budget", "must be positive at some level", shown="zero")
            self._exact = np.array(sorted(float(1 / total) for total in totals))
            self._variance = np.asarray(DiscreteGaussian(self._exact).var())

    @property
    def allowed(self) -> list[float] | None:
        """Variances that the budget allows, or None without a budget."""
        return None if self._exact is None else self._variance.tolist()

    def __call__(self, variance: FloatArray) -> FloatArray:
        """Return sigma2 for each variance, NaN where no budget gives it."""
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


def unpack(archive: Path, folder: str | Path) -> Path:
    """Return a product's folder, unpacked from a zip into ``folder``."""
    faults = zipfile.BadZipFile, RuntimeError, NotImplementedError
    with named(str(archive), also=faults), zipfile.ZipFile(archive) as members:
        check_held(str(archive), sum(member.file_size for member in members.infolist()))
        members.extractall(folder)  # no member leaves the folder
    inner = [path for path in sorted(Path(folder).iterdir()) if path.suffix != ".parquet"]
    return inner[0] if inner else Path(folder)


def folder_levels(folder: Path) -> tuple[str, ...]:
    """Return the levels that a product's folder has, coarse to fine."""
    with named(str(folder)):
        if not folder.is_dir():
            raise DataError(f"{folder}: must be a folder of noisy measurements, but is none")
    present = {p.name.removesuffix(".parquet") for p in folder.glob("*.parquet") if p.is_dir()}
    levels = tuple(level for level in _LEVELS if level in present)
    if unknown := sorted(present - set(levels)):
        raise DataError(
            f"{folder}: folders must be named after the levels {', '.join(_LEVELS)}, "
            f"got {quote(unknown[0])}"
        )
    if not levels:
        inner = sorted(p.parent.name for p in folder.glob("*/*.parquet") if p.is_dir())
        hint = f"; the folder {inner[0]!r} in it does" if inner else ""
        raise DataError(f"{folder}: must hold folders such as Block.parquet, got none{hint}")
    return levels


def level_files(folder: Path, level: str, kind: str) -> Iterator[tuple[Path, str | None]]:
    """Yield a level's files with the state of their folder, state by state."""
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
                    f"got {quote(part)}"
                )
            if key == "State":
                state = value
        if state is not None and (len(state) != SPINE_WIDTHS["State"] or not state.isdigit()):
            raise DataError(
                f"{file}: State= must have 3 digits, a tribal flag and the FIPS code, "
                f"got {quote(state)}"
            )
        yield file, state


def geocode_widths(folder: Path, levels: tuple[str, ...]) -> dict[str, int]:
    """Return the number of characters of geocodes by level, from each level's first row.

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
                f"{least - 1}, got {quote(code)}"
            )
        widths[level] = len(code)
    return widths


def _first_geocode(folder: Path, level: str) -> tuple[Path, str] | None:
    """Return a level's first non-missing geocode and its file, or None if there is none."""
    for kind in ("Constraint", "DPQuery"):
        for file, _ in level_files(folder, level, kind):
            with opened(file) as (source, _):
                present = "geocode" in source.schema_arrow.names
            # A file without the column is refused by name where it is read.
            rows = next(batches(file, ("geocode",), 1), None) if present else None
            code = None if rows is None else rows.table.column("geocode")[0].as_py()
            if code is not None:
                return file, str(code)
    return None


def refuse_repeated(rows: Rows, codes: NDArray[np.str_], level: str, previous: set[int]) -> None:
    """Raise if a unit has been read before; remember the new ones.

    A unit is kept as a number; a block by its published part, the nation as a single 1.
    """
    part = {"Block": slice(-_SUFFIX, None), "US": slice(0, 0)}.get(level, slice(None))
    keys = [int("1" + code[part]) for code in codes.tolist()]
    distinct = set(keys)
    if len(distinct) < len(keys) or not previous.isdisjoint(distinct):
        for place, key in enumerate(keys):
            if key in previous:
                text = quote(str(codes[place]))
                rule = f"must occur once for the query, got {text} again"
                raise rows.refuse(place, "geocode", rule)
            previous.add(key)
    previous |= distinct


#: How names of queries end, by the kind of the folder.
ENDINGS = {"DPQuery": "_dpq", "Constraint": "_con"}
SIGNS = ("=", "<=", ">=")


@displayed
@dataclass(frozen=True)
class NoisyMeasurements:
    """A folder of noisy measurement files, opened by ``open``.

    Every row is checked when it is read: types, shapes against axes and lists, geocodes against
    level and folder, and repeated units. Memory does not grow with the files. A batch holds about
    2**20 cells (at least one row), plus one number for each unit of a state.

    Attributes
    ----------
    folder : pathlib.Path
        The product's folder.
    levels : tuple of str
        Levels of the folder, coarse to fine.
    universe : Universe
        The histogram's axes and recodes.
    budget : pandas.DataFrame or None
        Budgets (``level``, ``query``, ``rho`` with sigma2 = 1 / rho). They give the exact scale of
        a row, with its variance as a check. Without them the variance is inverted.
    widths : mapping of str to int
        Characters of a geocode by level, as in the folder's own first rows; all rows must agree.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.census import write_nmf
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
        """Return an opened product folder, such as ``US_Person_PL_PROD`` with ``<Level>.parquet``.

        A zip of one is unpacked into the system's temporary folder, for as long as needed.

        The levels of a ``budget``, such as ``census_2020_budget("pl94")``, are coarse to fine.
        """
        path = check.path(folder, "folder")
        if path.suffix == ".zip":
            scratch = tempfile.mkdtemp()
            try:
                whole = cls.open(unpack(path, scratch), budget=budget)
            except BaseException:
                shutil.rmtree(scratch, ignore_errors=True)
                raise
            weakref.finalize(whole, shutil.rmtree, scratch, ignore_errors=True)
            return whole
        levels = folder_levels(path)
        kinds = ((level, kind) for level in levels for kind in ENDINGS)
        files = (file for level, kind in kinds for file, _ in level_files(path, level, kind))
        first = next(files, None)
        if first is None:
            raise DataError(f"{path}: must hold Parquet files in its levels, got none")
        with opened(first) as (source, _):
            universe = matching_universe(histogram_axes(source.schema_arrow))
        return cls(path, levels, universe, budget, geocode_widths(path, levels))

    def queries(self, level: str) -> tuple[str, ...]:
        """Return the sorted names of the queries of a level, without ``_dpq``."""
        check.choice(level, "level", self.levels)
        names: set[str] = set()
        for file, _ in level_files(self.folder, level, "DPQuery"):
            check_columns(file, tuple(self.universe.axes), ("query_name",))
            for rows in batches(file, ("query_name",), _NAMES):
                names.update(rows.queries("_dpq")[1])
        return tuple(sorted(name.removesuffix("_dpq") for name in names))

    def iter_values(self, level: str, query: str) -> Iterator[MeasurementBatch]:
        """Yield the noisy answers to one query, in batches of rows of one file.

        A batch has about 2**20 cells. A row that breaks the format is a ``DataError`` with its
        file, row and column.
        """
        names, axes = self.queries(level), tuple(self.universe.axes)
        if query not in names:
            raise ArgumentError(
                "query", f"must be one of {'; '.join(names) or 'none'} at level {level}", got=query
            )
        columns = ("geocode", "query_name", *axes, "query_shape", "value", "variance")
        scales = Scales(None if self.budget is None else budget_chain(self.budget, level, query))
        expected: tuple[int, ...] | None = None
        units: set[int] = set()
        last_state: str | None = None
        for file, state in level_files(self.folder, level, "DPQuery"):
            check_columns(file, axes, columns)
            if state != last_state:
                units, last_state = set(), state
            most = self.universe.size or _MOST
            for rows in rows_of_query(file, columns, query, cells=BATCH_CELLS, most=most):
                codes = rows.geocodes(level, self.widths.get(level), state)
                refuse_repeated(rows, codes, level, units)
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
        """Return the sorted geocodes of all units that a level's constraints list."""
        check.choice(level, "level", self.levels)
        units, listed = units_between(self, level, kinds=("Constraint",))
        if not listed:
            raise ArgumentError("level", "must have constraints to list its units", got=level)
        return units


# Least and largest counts of the cells of a query, given the constraints of a folder.
#
# A constraint states a total of some cells of the histogram.  Counts are not negative, so a cell is
# at most what any total that holds it is at most, in its own unit and in every unit around that;
# and it is at least what totals inside it add up to.  Bounds from single constraints: what only
# several of them together imply (beyond such sums) is not used.

_MOST = 2**21  # cells of a row where the axes are not known
_NAMES = 2**17  # rows of short columns in memory


class QueryRows(NamedTuple):
    """Rows of one query in some units, sorted by unit.

    ``sigma2`` is empty for constraints, ``sign`` is empty for noisy answers.
    """

    name: str
    shape: tuple[int, ...]
    answers: tuple[str, ...]
    geocodes: NDArray[np.str_]
    values: IntArray
    sigma2: NDArray[np.float64]
    sign: str


def _in_range(codes: pa.Array, low: str, high: str) -> pa.Array:
    """Return a mask of the geocodes whose beginning lies between ``low`` and ``high``."""
    if not (low and high):
        return pc.is_valid(codes)
    first = pc.greater_equal(pc.utf8_slice_codeunits(codes, 0, len(low)), low)
    return pc.and_(first, pc.less_equal(pc.utf8_slice_codeunits(codes, 0, len(high)), high))


def _pieces(
    nmf: NoisyMeasurements, level: str, kind: str, columns: tuple[str, ...], low: str, high: str
) -> Iterator[tuple[str | None, Rows]]:
    """Yield the rows of units in a range, with the state of their folder."""
    axes, rows = tuple(nmf.universe.axes), _NAMES
    if "value" in columns:
        rows = max(1, BATCH_CELLS // (2 * (nmf.universe.size or _MOST)))
    for file, state in level_files(nmf.folder, level, kind):
        shared = min(len(state or ""), len(low))
        if state is not None and not low[:shared] <= state[:shared] <= high[:shared]:
            continue
        check_columns(file, axes, columns)
        for piece in batches(file, columns, rows, (low, high)):
            codes = piece.column("geocode").cast(pa.string())
            if len(inside := piece.select(_in_range(codes, low, high))):
                yield state, inside


def state_prefixes(nmf: NoisyMeasurements, level: str) -> list[str]:
    """Return the geocode prefixes of the states in which a level has units.

    Prefixes that no folder of a state gives are found in the files; the nation has one empty
    prefix.
    """
    if level == "US":
        return [""]
    prefixes: set[str] = set()
    for kind in ENDINGS:
        for file, state in level_files(nmf.folder, level, kind):
            if state is not None:
                prefixes.add(state)
                continue
            width = nmf.widths.get("State", SPINE_WIDTHS["State"])
            for rows in batches(file, ("geocode",), _NAMES):
                codes = rows.column("geocode").cast(pa.string())
                prefixes |= set(pc.unique(pc.utf8_slice_codeunits(codes, 0, width)).to_pylist())
    return sorted(prefixes)


def units_between(
    nmf: NoisyMeasurements,
    level: str,
    low: str = "",
    high: str = "",
    kinds: tuple[str, ...] = ("Constraint", "DPQuery"),
) -> tuple[NDArray[np.str_], bool]:
    """Return the sorted geocodes of units in a range, and whether constraints list them.

    For a level without constraints, units are those with a noisy answer.
    """
    for kind in kinds:
        codes: set[str] = set()
        for state, rows in _pieces(nmf, level, kind, ("geocode",), low, high):
            codes |= set(rows.geocodes(level, nmf.widths.get(level), state).tolist())
        if codes:
            return np.array(sorted(codes), dtype=np.str_), kind == "Constraint"
    return np.empty(0, dtype="U1"), False


def definitions(nmf: NoisyMeasurements, level: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Return each query's answers on the axes, by the query's name without ending."""
    axes = tuple(nmf.universe.axes)
    queries: dict[str, tuple[str, ...]] = {}
    for file, _ in level_files(nmf.folder, level, kind):
        check_columns(file, axes, ("query_name", *axes))
        for rows in batches(file, ("query_name", *axes), _NAMES):
            columns = [rows.queries(ENDINGS[kind])[0]]
            columns += [rows.column(axis).cast(pa.string()) for axis in axes]
            table = pa.table(columns, ["query_name", *axes])
            for row in table.group_by(["query_name", *axes]).aggregate([]).to_pylist():
                name = row.pop("query_name").removesuffix(ENDINGS[kind])
                answers = tuple(row[axis] for axis in axes)
                if queries.setdefault(name, answers) != answers:
                    raise DataError(
                        f"{file}: {name} must ask {', '.join(queries[name])} as in its other rows, "
                        f"got {', '.join(answers)}"
                    )
    return dict(sorted(queries.items()))


def rows_between(
    nmf: NoisyMeasurements,
    level: str,
    kind: str,
    low: str,
    high: str,
    queries: tuple[str, ...] | None = None,
) -> dict[str, QueryRows]:
    """Return, by query, the rows of units in a range for all queries or some."""
    axes = tuple(nmf.universe.axes)
    extra = "sign" if kind == "Constraint" else "variance"
    columns = ("geocode", "query_name", *axes, "query_shape", "value", extra)
    scales: dict[str, Scales] = {}
    parts: dict[str, list[QueryRows]] = {}
    for state, rows in _pieces(nmf, level, kind, columns, low, high):
        for name, subset in rows.by_query(ENDINGS[kind]):
            if queries is not None and name not in queries:
                continue
            codes = subset.geocodes(level, nmf.widths.get(level), state)
            shape, answers = subset.shape(nmf.universe), subset.answers(axes)
            last = parts.setdefault(name, [])
            if last and (shape, answers) != last[-1][1:3]:
                raise subset.refuse(
                    0,
                    "query_shape",
                    f"must be {list(last[-1].shape)} as in the query's other rows, "
                    f"got {list(shape)}",
                )
            values, noise, sign = subset.values(shape), np.empty(0), ""
            if kind == "Constraint":
                signs = subset.text("sign")
                first = signs[0]
                wanted = ", ".join(SIGNS) if first not in SIGNS else f"{first!r} as above"
                good = np.isin(signs, SIGNS) & (signs == first)
                subset.check("sign", good, f"be one of {wanted}", signs)
                sign = str(first)
                # A bound below 0 is one on a count that none meets, or every one.
                least = values.min(axis=1)
                subset.check("value", least >= 0, "be >= 0 in a constraint", least.tolist())
            else:
                if name not in scales:
                    chain = None if nmf.budget is None else budget_chain(nmf.budget, level, name)
                    scales[name] = Scales(chain)
                noise = subset.sigma2(scales[name])
            last.append(QueryRows(name, shape, answers, codes, values, noise, sign))
    return {name: _joined(part, f"{nmf.folder}: {level} {kind}") for name, part in parts.items()}


def _joined(parts: list[QueryRows], source: str) -> QueryRows:
    """Return the rows of several pieces joined and sorted by unit."""
    signs = {part.sign for part in parts}
    if len(signs) > 1:
        raise DataError(f"{source}: {parts[0].name} must have one sign, got {sorted(signs)}")
    codes = np.concatenate([part.geocodes for part in parts])
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    repeats = codes[1:] == codes[:-1]
    if repeats.any():
        code = str(codes[int(repeats.argmax())])
        raise DataError(f"{source}: {parts[0].name}: unit {code} must occur once, got it again")
    values = np.concatenate([part.values for part in parts])[order]
    noise = np.concatenate([part.sigma2 for part in parts])
    return parts[0]._replace(
        geocodes=codes, values=values, sigma2=noise[order] if noise.size else noise
    )


class CellBounds(NamedTuple):
    """Least and largest counts of cells, one row for each distinct pattern of bounds.

    ``pattern`` is the row of each unit. ``lower`` and ``upper``, of shape (patterns, cells), are 0
    and 2**52 if nothing is known. ``kind`` is the constraint that gives the upper bound, as a
    position in ``kinds`` (-1 for none). Names of constraints of an enclosing unit begin with its
    level. ``live``, of shape (patterns, atoms), says whether anybody can be in the cells of an
    atom.
    """

    pattern: IntArray
    lower: IntArray
    upper: IntArray
    kind: NDArray[np.int16]
    kinds: tuple[str, ...]
    live: NDArray[np.bool_]


class Atoms:
    """Histogram cells grouped by constraints: all constraints count an atom's cells alike.

    ``constraints`` says of each what it asks of the axes (levels share names and meanings);
    ``labels`` has for each that is known the total that counts each cell, or -1; ``ignored`` are
    those with a recode that is not known, which are not used; ``cell_atoms`` is the atom of each
    cell of the histogram, None where the axes are not known.
    """

    def __init__(self, universe: Universe, constraints: Mapping[str, tuple[str, ...]]) -> None:
        self._universe = universe
        pairs = ((name, cell_labels(universe, answers)) for name, answers in constraints.items())
        self.labels = {name: labels for name, labels in pairs if labels is not None}
        self.ignored = tuple(sorted(set(constraints) - set(self.labels)))
        self.cell_atoms: IntArray | None = None
        if universe.size:
            marks = (labels + 1 for labels in self.labels.values())
            self.cell_atoms = joint_kinds([np.zeros(universe.size, np.int64), *marks])

    @property
    def size(self) -> int:
        """Number of atoms."""
        return 0 if self.cell_atoms is None else int(self.cell_atoms.max()) + 1

    def atom_labels(self, name: str) -> IntArray:
        """Return, for each atom, the constraint's total that counts it, or -1."""
        out = np.empty(self.size, dtype=np.int64)
        out[self.cell_atoms] = self.labels[name]
        return out


def _around(labels: IntArray, target: IntArray, n: int) -> IntArray:
    """Return, for each target cell, the total that contains all of it, or -1."""
    cells = target >= 0
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -2)
    np.minimum.at(least, target[cells], labels[cells])
    np.maximum.at(most, target[cells], labels[cells])
    return np.where(least == most, most, -1)


def cell_bounds(
    atoms: Atoms,
    target: IntArray,
    units: NDArray[np.str_],
    rows: Sequence[tuple[str, int, Mapping[str, QueryRows]]],
    source: str,
) -> CellBounds:
    """Return the least and largest counts of a query's cells that constraints allow in some units.

    ``target`` is the cell of the query of every cell of the histogram, -1 for none; ``units`` are
    sorted. ``rows`` has an entry for the units' own level and each around it: what stands before
    the names of its constraints, the width of its geocodes, and its constraints. Of two that say
    the same the first is named.
    """
    table, columns = _stacked(atoms, units, rows)
    distinct, pattern = np.unique(table, axis=0, return_inverse=True)
    pattern = pattern.reshape(-1)
    n_cells, n = int(target.max()) + 1, len(distinct)
    upper = np.full((n, n_cells), MAX_COUNT)
    lower = np.zeros((n, n_cells), dtype=np.int64)
    most = np.full((n, atoms.size), MAX_COUNT)
    kind = np.full((n, n_cells), -1, dtype=np.int16)
    for number, (_, name, sign, start, size, local) in enumerate(columns):
        totals = distinct[:, start : start + size]
        labels = atoms.labels[name]
        if sign in ("=", "<="):
            around = _around(labels, target, n_cells)
            covered = np.flatnonzero(around >= 0)
            stated = totals[:, around[covered]]
            stated = np.where(stated < 0, MAX_COUNT, stated)
            tighter = stated < upper[:, covered]
            upper[:, covered] = np.minimum(upper[:, covered], stated)
            kind[:, covered] = np.where(tighter, number, kind[:, covered])
            atom_labels = atoms.atom_labels(name)
            inside = np.flatnonzero(atom_labels >= 0)
            stated = totals[:, atom_labels[inside]]
            most[:, inside] = np.minimum(most[:, inside], np.where(stated < 0, MAX_COUNT, stated))
        if sign in ("=", ">=") and local:
            owner = _around(target, labels, size)
            sums = np.zeros_like(lower)
            for total in np.flatnonzero(owner >= 0).tolist():
                sums[:, owner[total]] += np.maximum(totals[:, total], 0)
            lower = np.maximum(lower, sums)
    if atoms.size:
        # A cell made of several atoms may be empty because each of them is, by several constraints:
        # its bound is at most the sum of those of its atoms.
        counted = target >= 0
        pairs = np.unique(target[counted] * atoms.size + atoms.cell_atoms[counted])  # type: ignore[index]
        cells, atom = pairs // atoms.size, pairs % atoms.size
        starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        sums = np.add.reduceat(most[:, atom].astype(float), starts, axis=1)
        sums, covered = np.minimum(sums, MAX_COUNT), cells[starts]
        tighter = sums < upper[:, covered]
        upper[:, covered] = np.minimum(upper[:, covered], sums.astype(np.int64))
        kind[:, covered] = np.where(tighter, -2, kind[:, covered])  # by several
    _refuse_contradictions(atoms, units, pattern, distinct, columns, most, source)
    bad = lower > upper
    if bad.any():
        row, cell = (int(i) for i in np.argwhere(bad)[0])
        unit, bound = str(units[int(np.argmax(pattern == row))]), int(kind[row, cell])
        raise DataError(
            f"{source}: unit {unit}: constraints contradict each other: cell {cell} is at least "
            f"{lower[row, cell]}, and at most {upper[row, cell]} by "
            f"{columns[bound][0] if bound >= 0 else 'several'}"
        )
    kinds = tuple(column[0] for column in columns)
    return CellBounds(pattern, lower, upper, kind, kinds, most > 0)


#: Shown name, name, sign, first column, columns, and whether it is of the unit itself.
_Column = tuple[str, str, str, int, int, bool]


def _stacked(
    atoms: Atoms, units: NDArray[np.str_], rows: Sequence[tuple[str, int, Mapping[str, QueryRows]]]
) -> tuple[IntArray, list[_Column]]:
    """Return all totals about each unit as columns, with -1 where a row is missing."""
    parts: list[IntArray] = [np.zeros((units.size, 0), dtype=np.int64)]
    columns: list[_Column] = []
    start = 0
    for before, width, constraints in rows:
        codes = units.astype(f"U{width}") if width else np.full(units.size, "")
        for name, stated in sorted(constraints.items()):
            if name not in atoms.labels:
                continue
            place = positions(codes, stated.geocodes) if width else np.zeros(units.size, np.int64)
            size = stated.values.shape[1]
            parts.append(np.where(place[:, None] >= 0, stated.values[place], -1))
            columns.append((f"{before}{name}", name, stated.sign, start, size, not before))
            start += size
    return np.concatenate(parts, axis=1), columns


def _refuse_contradictions(
    atoms: Atoms,
    units: NDArray[np.str_],
    pattern: IntArray,
    distinct: IntArray,
    columns: list[_Column],
    most: IntArray,
    source: str,
) -> None:
    """Raise if a total exceeds the most that other totals leave to its cells."""
    for label, name, sign, start, size, local in columns:
        if sign not in ("=", ">=") or not local:
            continue
        atom_labels = atoms.atom_labels(name)
        for total in range(size):
            room = np.minimum(most[:, atom_labels == total].astype(float).sum(axis=1), MAX_COUNT)
            bad = distinct[:, start + total] > room
            if bad.any():
                row = int(bad.argmax())
                limits = sorted(c[0] for c in columns if c[2] != ">=" and c[0] != label)
                unit = str(units[int(np.argmax(pattern == row))])
                raise DataError(
                    f"{source}: unit {unit}: constraints contradict each other: {label} says "
                    f"{sign} {distinct[row, start + total]} of total {total}, of which "
                    f"{', '.join(limits) or 'others'} leave at most {int(room[row])}"
                )
