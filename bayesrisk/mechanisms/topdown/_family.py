"""What the problem of the children of one node consists of."""

from dataclasses import dataclass

from scipy import sparse

from bayesrisk._types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Query:
    """Noisy answers of the children to one table: rows over live cells, weight, answers.

    The weight is that of the table, or one for each of its rows.
    """

    rows: sparse.csc_array
    weight: float | FloatArray
    noisy: IntArray | FloatArray


@dataclass(frozen=True)
class Lookahead:
    """What the units below one child still must be able to hold.

    Units with the same zeros are one group; cells that every constraint below treats alike are one
    class.  The child's class counts must split over the groups so that each group's sets come out.

    Attributes
    ----------
    classes : ndarray of int64
        Class of every live cell.
    sets : csr_array
        Sets over classes, whose totals the groups keep.
    allowed : ndarray of bool, (groups, classes)
        Where a group may hold anybody.
    totals : ndarray of int64, (groups, sets)
        Totals of the sets.
    """

    classes: IntArray
    sets: sparse.csr_array
    allowed: BoolArray
    totals: IntArray


@dataclass(frozen=True)
class Family:
    """Children of one node.

    Attributes
    ----------
    live : ndarray of bool, (children, cells)
        Where a child may hold anybody; cells are those that are live in some child.
    parent : ndarray of int64 or None, (cells,)
        Counts to which the children add up; None at the top.
    queries : tuple of Query
        Noisy answers.
    sets, totals : csr_array (sets, cells) and ndarray of int64 (children, sets)
        Nested sets of cells whose totals are exact.
    controlled : csr_array
        Nested sets whose totals may move to a neighbouring integer only.
    lookahead : tuple of (child, Lookahead)
        Only for children whose descendants have zeros that differ.
    """

    live: BoolArray
    parent: IntArray | None
    queries: tuple[Query, ...]
    sets: sparse.csr_array
    totals: IntArray
    controlled: sparse.csr_array
    lookahead: tuple[tuple[int, Lookahead], ...] = ()
