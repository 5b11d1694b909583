"""A chain over lists of people: one person, or two, change at a time.

People of one finest place of whom the same is known beforehand are a *part* of it; without such
knowledge a place has one part.  Every part has slots, some of them empty in the last part of a
place; an occupied slot holds the class of a person.  The prior of the list of one part is that of
its counts, divided over the orders of the list.  A *level* is a layer of rows: row
``base[level, part] + q`` is the q-th published cell of the place at that level in which the part
lies.  The cells of a level are dealt to *tracks* such that a class has one cell of each at most:
``cell[level, class, track]``, with the weight ``coef`` there, or -1.  The log likelihood of row r
stands at ``table[spot[r]]``: the spot moves with the sum, one entry for one person.

Nothing here checks its arguments.
"""

from typing import Any, NamedTuple

from bayesrisk._numba import lean_kernel
from bayesrisk._types import FloatArray, IntArray

REDRAW, MOVE, BIRTH, SWAP, EXCHANGE, LEAP = range(6)
KINDS = ("redraw", "move", "birth or death", "swap", "exchange", "leap")


class Model(NamedTuple):
    """What does not change."""

    base: IntArray  # (levels, parts)
    cell: Any  # (levels, classes, tracks), int32
    coef: Any
    table: FloatArray
    part_of: IntArray  # part of every slot
    first: IntArray  # first slot of every part, and the end
    home: IntArray  # first slot of the place of every part
    rest: IntArray  # last part of that place
    near: IntArray  # (2, parts): first slot of the next larger area of a part, and the end
    open: Any  # whether the number of people of a part may change
    size_ptr: IntArray  # log P(n) of a part stands at log_size[size_ptr[part] + n]
    log_size: FloatArray
    law: IntArray  # of every part: which row of the next four
    mass: FloatArray  # (laws, classes): share (of sum 1) or Dirichlet parameter of every class
    alias: IntArray  # Walker's tables of the shares
    keep: FloatArray
    concentration: FloatArray  # sum of the Dirichlet parameters; 0: known shares
    stride: IntArray  # classes are C-ordered bins of attributes
    bins: IntArray
    chance: FloatArray  # cumulative probabilities of the kinds of move
    leap: IntArray  # by how many people a leap changes their number
    leap_chance: FloatArray  # cumulative probabilities of these


class State(NamedTuple):
    """What does."""

    who: IntArray  # class in every slot, occupied ones of a part first
    people: IntArray  # in every part
    x: IntArray  # (parts, classes)
    spot: IntArray  # of every row, in the table
    tally: IntArray  # (kinds, 2): proposed, accepted
    density: FloatArray  # log likelihood, so far
    work: FloatArray  # (classes,)


@lean_kernel
def add(of: Any, at: Any, level: Any, part: Any, cls: Any, by: Any) -> float:
    """Add a class to the rows of one part at one level; return the change of the likelihood."""
    change = 0.0
    base, table, spot, cell, coef = of.base[level, part], of.table, at.spot, of.cell, of.coef
    for k in range(cell.shape[2]):
        c = cell[level, cls, k]
        if c >= 0:
            old = spot[base + c]
            new = old + by * coef[level, cls, k]
            change += table[new] - table[old]
            spot[base + c] = new
    return change


@lean_kernel
def turn(of: Any, at: Any, level: Any, part: Any, old: Any, new: Any) -> float:
    """Return the change of the likelihood if one person of a part has another class."""
    change = 0.0
    base, table, spot, cell, coef = of.base[level, part], of.table, at.spot, of.cell, of.coef
    for k in range(cell.shape[2]):
        i, j = cell[level, old, k], cell[level, new, k]
        if i == j:
            step = coef[level, new, k] - coef[level, old, k]
            if i >= 0 and step != 0:
                s = spot[base + i]
                change += table[s + step] - table[s]
            continue
        if i >= 0:
            s = spot[base + i]
            change += table[s - coef[level, old, k]] - table[s]
        if j >= 0:
            s = spot[base + j]
            change += table[s + coef[level, new, k]] - table[s]
    return change


@lean_kernel
def turned(of: Any, at: Any, level: Any, part: Any, old: Any, new: Any) -> None:
    """Let one person of a part have another class, in the rows."""
    base, spot, cell, coef = of.base[level, part], at.spot, of.cell, of.coef
    for k in range(cell.shape[2]):
        i, j = cell[level, old, k], cell[level, new, k]
        if i >= 0:
            spot[base + i] -= coef[level, old, k]
        if j >= 0:
            spot[base + j] += coef[level, new, k]


@lean_kernel
def apply(of: Any, at: Any, level: Any, part: Any, cls: Any, by: Any) -> None:
    """Add a class to the rows of one part at one level."""
    base, spot, cell, coef = of.base[level, part], at.spot, of.cell, of.coef
    for k in range(cell.shape[2]):
        c = cell[level, cls, k]
        if c >= 0:
            spot[base + c] += by * coef[level, cls, k]
