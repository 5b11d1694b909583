"""What anybody can say about suppressed cells from the published ones: exact ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.mechanisms.suppression._group_ranges import group_ranges
from bayesrisk.mechanisms.suppression._groups import Structure, structure_of
from bayesrisk.mechanisms.suppression._integer_range import ENDLESS
from bayesrisk.tables import PublishedTables

if TYPE_CHECKING:
    import pandas as pd


@displayed
@dataclass(frozen=True, eq=False)
class ProtectionRanges:
    """Range of every suppressed cell that the published cells leave open.

    Attributes
    ----------
    level, geoid, table, cell : ndarray of str
        Where each suppressed cell is.
    lower, upper : ndarray of float64
        Smallest and largest count, both whole, that agrees with every published one; ``upper``
        may be infinite.
    proved : ndarray of bool
        Whether both ends are reached; where not, the range reached is narrower.
    """

    level: NDArray[np.str_]
    geoid: NDArray[np.str_]
    table: NDArray[np.str_]
    cell: NDArray[np.str_]
    lower: FloatArray
    upper: FloatArray
    proved: NDArray[np.bool_]

    @property
    def recovered(self) -> NDArray[np.bool_]:
        """Which cells have one possible count only, so that suppressing them was in vain."""
        return np.equal(self.lower, self.upper)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each suppressed cell.

        Returns
        -------
        pandas.DataFrame
            Columns named as the attributes.
        """
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


def audit_suppression(
    tables: PublishedTables, *, least: int = 0, most: int | None = None
) -> ProtectionRanges:
    """Return what published cells reveal about suppressed ones.

    Every suppressed count is minimised and maximised over all histograms of whole, non-negative
    numbers, one for each place of the finest level, that have every published count of every table
    at every level.

    Parameters
    ----------
    tables : PublishedTables
        With suppressed cells.
    least : int, default 0
        Smallest count that the adversary takes a suppressed cell to have, >= 0.  Zeros that
        :class:`~bayesrisk.Suppression` leaves are published, so that it is 1 for its tables.
    most : int, optional
        Largest such count, >= ``least``; none by default.  It is ``threshold - 1`` for primary
        suppression alone.

    Returns
    -------
    ProtectionRanges
        A range for each suppressed cell, level by level, by place and cell.

    Raises
    ------
    DataError
        If no histogram has the published counts, as with noisy or rounded ones, a level lacks a
        place, or a count is 2**31 or more.

    Notes
    -----
    Linear programs propose; whole numbers decide.  An end of a range is reached by a histogram
    that is checked in every published cell, and bounded by dual values that are rounded to
    fractions first, so that the bound is exact whatever they are.  Where the two do not meet, the
    program is split at a variable, up to 2,000 times; then ``proved`` is False and the end is the
    bound.  A cell that is recovered is so in any case.

    Attributes that no table crosses have histograms of their own that agree on what they share,
    which loses nothing (whole margins that agree come from a whole histogram where the crossed
    attributes form a tree of cliques).  Codes that no table tells apart are one.

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
        raise ArgumentTypeError(f"tables must be PublishedTables, got {shown(tables)}")
    least = check.integer(least, "least", lower=0)
    most = None if most is None else check.integer(most, "most", lower=least)
    plan = structure_of(tables)
    found: list[tuple[IntArray, ...]] = [(np.zeros(0, dtype=np.int64),) * 6]
    for group in plan.groups():
        rows = np.flatnonzero(group.hidden)
        if rows.size:
            where = group.level[rows], group.place[rows], group.cell[rows]
            lower, upper, proved = group_ranges(group, least, most)
            found.append((*where, lower, upper, proved.astype(np.int64)))
    level, place, cell, lower, upper, proved_ = (
        np.concatenate(part) for part in zip(*found, strict=True)
    )
    order = np.lexsort((cell, place, level))
    text = _names(plan, level[order], place[order], cell[order])
    return ProtectionRanges(
        text[0],
        text[1],
        text[2],
        text[3],
        lower[order].astype(float),
        np.where(upper >= ENDLESS, np.inf, upper)[order].astype(float),
        proved_[order] > 0,
    )


def _names(plan: Structure, level: IntArray, place: IntArray, cell: IntArray) -> NDArray[np.str_]:
    """Return level, place, table and cell by name, each an array."""
    workload = plan.tables.workload
    names: list[tuple[str, str, str, str]] = []
    for number, (name, starts) in enumerate(zip(workload.levels, plan.start, strict=True)):
        own = level == number
        geoids = plan.tables.geoids[name][place[own]].tolist()
        titles, first = list(starts), np.array(list(starts.values()))
        table = np.searchsorted(first, cell[own], side="right") - 1
        inside = (cell[own] - first[table]).tolist()
        for geoid, at, position in zip(geoids, table.tolist(), inside, strict=True):
            cells = workload.tables[name, titles[at]].cells
            names.append((name, str(geoid), titles[at], cells[position]))
    return np.array(names, dtype=np.str_).reshape(-1, 4).T
