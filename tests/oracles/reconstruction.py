"""Slow, obvious twins of the reconstruction: enumeration, and the published integer program."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from bayesrisk.tables import Records, Schema, Workload, tabulate

RACES = [1, 2, 4, 8, 16, 32, 3, 5, 9, 33, 6, 34, 7]


def solutions(matrix, low, high, row_low, row_high, most=10**6):
    """Return every whole x within bounds with ``row_low <= matrix x <= row_high``."""
    matrix = np.asarray(matrix)
    found, sums = np.zeros((1, 0), int), np.zeros((1, len(row_low)), int)
    room = matrix @ np.asarray(high)  # the most that the values to come can add
    for j, (least, largest) in enumerate(zip(low, high, strict=True)):
        values = np.arange(least, largest + 1)
        room = room - matrix[:, j] * largest
        sums = (sums[:, None] + values[:, None] * matrix[:, j]).reshape(-1, sums.shape[1])
        found = np.column_stack([found.repeat(len(values), axis=0), np.tile(values, len(found))])
        fits = (sums <= row_high).all(axis=1) & (sums + room >= row_low).all(axis=1)
        found, sums = found[fits], sums[fits]
        if len(found) > 20 * most:
            raise MemoryError
    if len(found) > most:
        raise MemoryError
    return list(found)


def block_solutions(matrix, counts):
    """Return the cells that no zero excludes, and every histogram over them that fits."""
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    live = np.flatnonzero(~dense[counts == 0].any(axis=0))
    part = dense[:, live]
    rows = np.unique(np.column_stack([part, counts]), axis=0)
    part, wanted = rows[:, :-1], rows[:, -1]
    high = np.array([wanted[part[:, j] > 0].min() for j in range(len(live))], int)
    # Cells with few companions first: dead ends are seen early.
    order = np.argsort(high, kind="stable")
    found = solutions(part[:, order], np.zeros(len(live), int), high[order], wanted, wanted)
    return live[order], found


def largest_distance(found, star):
    return max(int(np.abs(x - star).sum()) for x in found)


def published_program(matrix, counts, star=None, extra=(), by=None):
    """Solve with a binary for every potential record; return the histogram or the distance.

    ``star`` None: any solution (None when there is none).  Else the largest L1 distance from it,
    each cell's by two inequalities and a binary.  ``extra``: further (matrix, low, high) rows.
    ``by``: rows (those of P12) whose counts say how many potential records a cell has, as
    published; without it all rows do, which gives the twin a head start.
    """
    matrix = sp.csr_array(matrix)
    limits, bound = (matrix, counts) if by is None else (matrix[by], counts[by])
    live = np.flatnonzero(sp.csr_array(limits[bound == 0]).sum(axis=0) == 0)
    part = sp.csc_array(matrix[:, live])
    shown = sp.csc_array(sp.csr_array(limits)[:, live])
    most = np.array(
        [
            bound[shown.indices[a:b]].min()
            for a, b in zip(shown.indptr, shown.indptr[1:], strict=False)
        ]
    )
    cell = np.repeat(np.arange(len(live)), most)
    n, cells = len(cell), len(live)
    pick = sp.csr_array((np.ones(n), (cell, np.arange(n))), shape=(cells, n))
    rows = [(sp.csr_array(part @ pick), counts, counts)]
    rows += [(sp.csr_array(sp.csr_array(m)[:, live] @ pick), low, high) for m, low, high in extra]
    if star is None:
        answer = milp(
            np.zeros(n),
            integrality=np.ones(n),
            bounds=Bounds(0, 1),
            constraints=[LinearConstraint(m, low, high) for m, low, high in rows],
        )
        if answer.x is None:
            return None
        x = np.zeros(matrix.shape[1], int)
        x[live] = pick @ np.rint(answer.x).astype(int)
        return x
    at, size = star[live], most + star[live]
    eye = sp.eye_array(cells)
    wide = [
        LinearConstraint(sp.hstack([m, sp.csr_array((m.shape[0], 2 * cells))]), low, high)
        for m, low, high in rows
    ]
    # d <= x - star + 2 size b, d <= star - x + 2 size (1 - b)
    scale = sp.diags_array(2.0 * size)
    wide.append(LinearConstraint(sp.hstack([-pick, eye, -scale]), -np.inf, -at))
    wide.append(LinearConstraint(sp.hstack([pick, eye, scale]), -np.inf, at + 2.0 * size))
    answer = milp(
        np.concatenate([np.zeros(n), -np.ones(cells), np.zeros(cells)]),
        integrality=np.concatenate([np.ones(n), np.zeros(cells), np.ones(cells)]),
        bounds=Bounds(0, np.concatenate([np.ones(n), size, np.ones(cells)])),
        constraints=wide,
        options={"mip_rel_gap": 0.0},
    )
    outside = int(star.sum() - at.sum())
    return round(-answer.fun) + outside


def people(rng, sizes, *, races=RACES, spread=1.0, tract="50001000100"):
    """Return records of blocks of the given sizes, from random mixtures of race and origin."""
    blocks, rows = [], {name: [] for name in ("sex", "age", "race", "hisp")}
    for at, size in enumerate(sizes):
        blocks += [f"{tract}{1000 + at:04d}"] * size
        p = rng.dirichlet(np.full(len(races), spread))
        race = rng.choice(races, size=size, p=p)
        hispanic = rng.beta(0.7, 1.5)
        rows["race"].append(race)
        rows["hisp"].append((rng.random(size) < np.where(race == 32, 0.9, hispanic)).astype(int))
        rows["age"].append(np.minimum(rng.gamma(2.2, 17.0, size=size).astype(int), 110))
        rows["sex"].append(rng.integers(0, 2, size))
    return {"block": blocks, **{name: np.concatenate(parts) for name, parts in rows.items()}}


def person_tables(columns, *, tract=True, without=()):
    """Return the published tables of such records."""
    import pandas as pd

    asked = Workload.named("sf1-block")
    if without:
        asked = asked.select(without=without)
    if tract:
        asked = asked.union(Workload.named("sf1-tract"))
    records = Records.from_frame(pd.DataFrame(columns), schema=Schema.named("sf1-person"))
    return tabulate(records, asked)
