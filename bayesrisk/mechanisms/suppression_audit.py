"""What anybody can say about suppressed cells from the published ones: exact ranges."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.mechanisms._hidden import HiddenSystem, hidden_system, stacked
from bayesrisk.mechanisms._relations import structure
from bayesrisk.tables import PublishedTables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ProtectionRanges", "audit_suppression", "ranges_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Ten times the feasibility tolerance of HiGHS; counts are whole numbers, far further apart.
_SNAP = 1e-6
_SWEEPS = 20  # of bounds through the relations; more only save linear programs


@dataclass(frozen=True, eq=False)
class ProtectionRanges:
    """Range of every suppressed cell that the published cells leave open.

    Attributes
    ----------
    level, geoid, table, cell : ndarray of str
        Where each suppressed cell is.
    lower, upper : ndarray of float64
        Smallest and largest count that agrees with every published one; ``upper`` may be
        infinite.
    """

    level: NDArray[np.str_]
    geoid: NDArray[np.str_]
    table: NDArray[np.str_]
    cell: NDArray[np.str_]
    lower: FloatArray
    upper: FloatArray

    @property
    def recovered(self) -> NDArray[np.bool_]:
        """Which cells have one possible count only, so that suppressing them was in vain."""
        return np.equal(self.lower, self.upper)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each suppressed cell.

        Returns
        -------
        pandas.DataFrame
            Columns named as the attributes.
        """
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


def audit_suppression(tables: PublishedTables) -> ProtectionRanges:
    """Return what published cells reveal about suppressed ones.

    Every suppressed count is minimised and maximised, by linear programs, over all non-negative
    counts for which cells add up to totals and children to parents.

    Parameters
    ----------
    tables : PublishedTables
        With suppressed cells.

    Returns
    -------
    ProtectionRanges
        A range for each suppressed cell.

    Raises
    ------
    ArgumentTypeError
        If ``tables`` are no published tables.
    DataError
        If the published cells contradict each other, as noisy or rounded ones do.

    Notes
    -----
    The sums are those between cells that a table's definition shows to add up without overlap,
    in the same or another table of the level, and between levels.  A range is of real numbers: it
    holds the range of whole ones, and is the same wherever the sums form trees or a two-way
    table.  Ends are exact where whole, as in those cases; otherwise within 1e-6.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload
    >>> place = Geography("towns", ("town",), (1,))
    >>> people = Schema("people", (Attribute("sex", 2),), place)
    >>> sex = Table("sex", ("all", "men", "women"), {"sex": np.array([[1, 1], [1, 0], [0, 1]])})
    >>> counts = {("town", "sex"): csr_array(np.array([[9, 0, 8]]))}
    >>> hidden = {("town", "sex"): csr_array(np.array([[False, True, False]]))}
    >>> published = PublishedTables(
    ...     Workload(people, {("town", "sex"): sex}), {"town": np.array(["1"])}, counts, hidden
    ... )
    >>> ranges = audit_suppression(published)
    >>> ranges.cell.tolist(), ranges.lower.tolist(), ranges.upper.tolist()
    (['men'], [1.0], [1.0])
    """
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {tables!r}")
    plan = structure(tables)
    system = hidden_system(plan, *stacked(tables, plan))
    lower, upper = ranges_of(system)
    names: list[tuple[str, str, str, str]] = []
    for number, level in enumerate(plan.levels):
        own = system.variables.level == number
        starts = np.array(list(level.start.values()))
        titles = list(level.start)
        for place, cell in zip(
            system.variables.place[own].tolist(), system.variables.cell[own].tolist(), strict=True
        ):
            at = int(np.searchsorted(starts, cell, side="right")) - 1
            table = tables.workload.tables[level.name, titles[at]]
            geoid = str(tables.geoids[level.name][place])
            names.append((level.name, geoid, titles[at], table.cells[cell - int(starts[at])]))
    text = np.array(names, dtype=np.str_).reshape(-1, 4).T
    return ProtectionRanges(text[0], text[1], text[2], text[3], lower, upper)


def ranges_of(system: HiddenSystem) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest value of every variable of a system.

    Bounds that follow from single relations are outer ones; every solution of a linear program
    gives inner ones for all variables; where the two meet no program is needed.
    """
    lower, upper = _outer(system)
    count = len(lower)
    order = np.argsort(system.components, kind="stable")
    ends = np.flatnonzero(np.diff(system.components[order], append=-1)) + 1
    by_variable = system.matrix.tocsc()
    for part in np.split(order, ends[:-1]) if count else []:
        rows = np.unique(by_variable[:, part].indices)
        if len(rows) > 1:
            _exact(system.matrix[rows][:, part], system.right[rows], part, lower, upper)
    return lower, upper


def _outer(system: HiddenSystem) -> tuple[FloatArray, FloatArray]:
    """Return bounds from each relation by itself, passed on until they settle.

    They are exact for a variable whose part of the system is one relation.
    """
    matrix, right = system.matrix, system.right.astype(float)
    lower = np.zeros(matrix.shape[1])
    upper = np.full(matrix.shape[1], np.inf)
    rows, cols = matrix.tocoo().coords
    sign = matrix.tocoo().data
    size = matrix.shape[0]
    for _ in range(_SWEEPS):
        low = np.where(sign > 0, lower[cols], -upper[cols])
        high = np.where(sign > 0, upper[cols], -lower[cols])
        rest_low, rest_high = _rest(rows, low, size), _rest(rows, high, size)
        above, below = right[rows] - rest_low, right[rows] - rest_high
        new_high, new_low = np.where(sign > 0, above, -below), np.where(sign > 0, below, -above)
        tighter_low, tighter_high = lower.copy(), upper.copy()
        np.maximum.at(tighter_low, cols, new_low)
        np.minimum.at(tighter_high, cols, new_high)
        if np.array_equal(tighter_low, lower) and np.array_equal(tighter_high, upper):
            break
        lower, upper = tighter_low, tighter_high
    if np.any(lower > upper):
        raise DataError("tables: published cells contradict each other: they do not add up")
    return lower, upper


def _rest(rows: NDArray[Any], values: FloatArray, size: int) -> FloatArray:
    """Return for each entry the sum of the other entries of its row, infinities counted apart."""
    finite = np.isfinite(values)
    total = np.bincount(rows, np.where(finite, values, 0.0), size)[rows]
    infinite = np.bincount(rows, ~finite, size)[rows] - ~finite
    own = np.where(finite, values, 0.0)
    # All infinite bounds of one kind have one sign.
    endless = values[~finite][0] if (~finite).any() else 0.0
    return np.where(infinite > 0, endless, total - own)


def _exact(
    matrix: Any,
    right: IntArray,
    part: IntArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Replace outer bounds of one part of a system by exact ones."""
    size = len(part)
    linprog: Any = optimize.linprog  # its stubs know no sparse matrices
    bounds = np.column_stack([lower[part], upper[part]])
    least, most = np.full(size, np.inf), np.full(size, -np.inf)
    for variable in range(size):
        for sign in (1.0, -1.0):
            reached = least[variable] if sign > 0 else most[variable]
            if reached == bounds[variable, 0 if sign > 0 else 1]:
                continue
            cost = np.zeros(size)
            cost[variable] = sign
            solved: Any = linprog(cost, A_eq=matrix, b_eq=right, bounds=bounds, method="highs")
            if solved.status == 3:  # unbounded
                most[variable] = np.inf
                continue
            if solved.status != 0:
                raise DataError(f"tables: published cells contradict each other: {solved.message}")
            x = np.where(np.abs(solved.x - np.rint(solved.x)) < _SNAP, np.rint(solved.x), solved.x)
            least, most = np.minimum(least, x), np.maximum(most, x)
    lower[part], upper[part] = least, most
