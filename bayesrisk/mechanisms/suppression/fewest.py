r"""The fewest cells to withhold so that no sum gives a withheld count back.

Of each row z says whether it is withheld.  Under given z the ends of a withheld count p are those
of a linear program: records x >= 0 that have all published counts, and at least 1 of what is
withheld.  Where both ends show it, their dual values name the published rows S that do; what they
show stays shown until one of these is withheld, too:

    sum_{s in S} z_s >= z_p.

The z with the fewest cells under all such rows are looked for, then the ends again, until no count
is shown.  The caller proves the answer in whole numbers, and withholds more where that fails.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel

#: Rounds; unknowns of a program, and nodes of a search, of which more are not looked at.
_ROUNDS, _UNKNOWNS, _NODES = 60, 20_000, 2_000
_NEAR = 1e-6
#: What a cell costs beside the largest count, which decides between equal numbers of cells.
_CELL, _COUNT = 1000, 9


def fewest_withheld(
    rows: sparse.csr_array, ties: sparse.csr_array, counts: IntArray, cells: IntArray,
    primary: BoolArray, protection: int,
) -> BoolArray:  # fmt: skip
    """Return the rows to withhold, the primary ones and as few others as were found.

    Parameters
    ----------
    rows, ties : csr_array
        Weights of the unknowns in each count, and in sums that are 0.
    counts : ndarray of int64
        The true counts, all above 0.
    cells : ndarray of int64
        How many cells each row stands for.
    primary : ndarray of bool
        Rows that must be withheld.
    protection : int
        The smallest width of what a withheld count may be.
    """
    from bayesrisk.constraints.highs import HighsSolver, HighsWarm  # loads a compiled solver
    from bayesrisk.constraints.solvers import Limits

    size, unknowns = rows.shape
    withheld = primary.copy()
    if not primary.any() or unknowns > _UNKNOWNS:
        return withheld
    zero = np.zeros(ties.shape[0], np.int64)
    low, high = np.zeros(unknowns, np.int64), np.full(unknowns, ENDLESS)
    matrix = sparse.csr_array(sparse.vstack([rows, ties]))
    ends = IntegerModel(low, high, matrix, np.r_[counts, zero], np.r_[counts, zero])
    linear = HighsWarm(ends, np.zeros(unknowns, np.int64))
    cost = -(_CELL * cells + (_COUNT * counts) // counts.max())
    cuts: list[sparse.csr_array] = []
    for _ in range(_ROUNDS):
        linear.rebound(
            np.where(withheld, 1, counts), np.where(withheld, ENDLESS, counts), np.arange(size)
        )
        new = []
        for p in np.flatnonzero(withheld).tolist():
            form, proof, width = rows[[p], :].toarray()[0], np.zeros(size, np.bool_), 0.0
            for sign in (1, -1):
                linear.aim(sign * form)
                answer = linear.relax(low, high)
                if answer.values is None or answer.duals is None:  # without end
                    width = np.inf
                    break
                width += sign * float(form @ answer.values)
                proof |= np.abs(answer.duals[:size]) > _NEAR
            if width < protection - _NEAR:
                weight = (proof & ~withheld).astype(np.int64)
                weight[p] = -1
                new.append(sparse.csr_array(weight[None, :]))
        if not new:
            break
        cuts += new
        nothing, endless = np.zeros(len(cuts), np.int64), np.full(len(cuts), ENDLESS)
        choice = IntegerModel(
            primary.astype(np.int64), np.ones(size, np.int64),
            sparse.csr_array(sparse.vstack(cuts)), nothing, endless,
        )  # fmt: skip
        values = HighsSolver().solve(choice, cost, limits=Limits(nodes=_NODES)).values
        if values is None:  # a count that nothing hides
            break
        withheld = values > 0
    return withheld
