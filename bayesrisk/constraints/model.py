"""Whole numbers within bounds under rows: what published tables say of kinds of records.

A row is exact where its two ends are equal, a range where they differ, and free on a side whose end
is ``ENDLESS``.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED

#: An end that is none.
ENDLESS = UNBOUNDED


class Status(StrEnum):
    """What is proved of a block, a solution or a question, such as unique or undecided.

    Of solutions (records, households, values of an integer program):

    - ``UNIQUE``: proved that no other records fit;
    - ``PROVED``: proved to be the best, or the only number;
    - ``FEASIBLE``: they fit; others do, or might;
    - ``NEAREST``: none fit; these deviate least;
    - ``BOUNDED``: a number lies between two proved bounds;
    - ``INFEASIBLE``: proved that nothing fits what was published;
    - ``UNKNOWN``: no solution is given, and none is excluded;
    - ``NOT_RUN``: nothing was looked for.

    Of questions (does a claim hold, does a household violate a limit):

    - ``VERIFIED``, ``REFUTED``: proved to hold in every solution, or to fail in one;
    - ``VIOLATION``, ``POSSIBLE``: proved in every solution, or missing in one;
    - ``UNDECIDED``: a limit left the question open;
    - ``DECIDED``: no question about the block is open;
    - ``EMPTY``: there is nobody to ask about.

    Examples
    --------
    >>> Status.UNIQUE == "unique", Status("undecided")
    (True, 'undecided')
    """

    UNIQUE = "unique"
    PROVED = "proved"
    FEASIBLE = "feasible"
    NEAREST = "nearest"
    BOUNDED = "bounded"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    NOT_RUN = "none"
    VERIFIED = "verified"
    REFUTED = "refuted"
    VIOLATION = "violation"
    POSSIBLE = "possible"
    UNDECIDED = "undecided"
    DECIDED = "decided"
    EMPTY = "empty"

    def __repr__(self) -> str:
        """Return the text in quotes, as of any text."""
        return repr(self.value)


@displayed
@dataclass(frozen=True)
class IntegerModel:
    """Whole-numbered variables within bounds, and rows ``row_low <= rows @ x <= row_high``.

    The coefficients are whole, rows by variables.
    """

    low: IntArray
    high: IntArray
    rows: sp.csr_array
    row_low: IntArray
    row_high: IntArray

    @cached_property
    def closed(self) -> bool:
        """Whether every row and every variable has two ends."""
        ends = (self.low, self.high, self.row_low, self.row_high)
        return all(bool(np.all(np.abs(end) < ENDLESS)) for end in ends)

    @cached_property
    def heaviest(self) -> int:
        """The largest sum of the weights of one variable, without sign, and 1."""
        return int(np.bincount(self.rows.indices, np.abs(self.rows.data)).max(initial=0)) + 1

    @cached_property
    def largest_ends(self) -> tuple[FloatArray, FloatArray, int, int]:
        """The larger ends of rows and of variables, without sign, and the sums of each."""
        return largest_ends(self.low, self.high, self.row_low, self.row_high)

    @cached_property
    def columns(self) -> sp.csr_array:
        """The rows, transposed."""
        return sp.csr_array(self.rows.T)

    def part(self, rows: IntArray, variables: IntArray | None = None) -> "IntegerModel":
        """Return some of the rows over some of the variables, by default over all."""
        low, high, matrix = self.low, self.high, sp.csr_array(self.rows[rows])
        if variables is not None:
            low, high, matrix = low[variables], high[variables], sp.csr_array(matrix[:, variables])
        return IntegerModel(low, high, matrix, self.row_low[rows], self.row_high[rows])

    def beyond(self, objective: IntArray, least: int, most: int | None = None) -> "IntegerModel":
        """Return the model of the solutions whose objective is ``least`` or more."""
        if most is None:
            most = max(int(np.maximum(objective * self.low, objective * self.high).sum()), least)
        rows = sp.csr_array(sp.vstack([self.rows, sp.csr_array(objective[None, :])], format="csr"))
        ends = np.append(self.row_low, least), np.append(self.row_high, most)
        return IntegerModel(self.low, self.high, rows, *ends)

    def holds(self, values: IntArray) -> bool:
        """Return True if whole values satisfy every bound and row, in integer arithmetic."""
        if np.any(values < self.low) or np.any(values > self.high):
            return False
        sums = self.rows @ values
        return bool(np.all(sums >= self.row_low) and np.all(sums <= self.row_high))


def largest_ends(
    low: IntArray, high: IntArray, row_low: IntArray, row_high: IntArray
) -> tuple[FloatArray, FloatArray, int, int]:
    """Return the larger ends of rows and of variables, without sign, and the sums of each, and 1.

    An end that is none is never multiplied, and counts as 0 of a row, as 1 of a variable.
    """
    rows, variables = (
        np.maximum(*(np.where(np.abs(end) >= ENDLESS, none, np.abs(end)) for end in pair))
        for none, pair in ((0, (row_low, row_high)), (1, (low, high)))
    )
    ends = rows.astype(np.float64), variables.astype(np.float64)
    return *ends, int(ends[0].sum()) + 1, int(ends[1].sum()) + 1
