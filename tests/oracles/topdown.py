"""Slow, obvious twins of the TopDown-like and bottom-up mechanisms, and small random worlds."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
from scipy import optimize, sparse

from bayesrisk.mechanisms.topdown.families import Family, Query
from bayesrisk.tables import Attribute, Geography, Microdata, Records, Schema, Table, Workload


def cross(schema, names):
    """Return the table that crosses attributes, cells numbered in C order."""
    sizes = [schema.attribute(name).size for name in names]
    cells = list(product(*(range(size) for size in sizes)))
    factors = {
        name: np.array([[int(code == cell[k]) for code in range(sizes[k])] for cell in cells])
        for k, name in enumerate(names)
    }
    labels = tuple("-".join(map(str, cell)) or "all" for cell in cells)
    return Table(" * ".join(names) or "total", labels, factors)


def world(rng, *, levels=3, tables=None, people=40, empty=True):
    """Return a random schema, tree, records and workload; some blocks have nobody."""
    sizes = rng.integers(2, 5, size=rng.integers(1, 4))
    attributes = tuple(Attribute(f"a{k}", int(size)) for k, size in enumerate(sizes))
    names = ("root", "region", "area", "block")[-levels:]
    start = int(rng.integers(0, 2)) if levels > 1 else 1  # one root, or several tops
    geography = Geography("random", names, tuple(range(start, start + levels)))
    schema = Schema("random", attributes, geography)
    digits = [rng.integers(1, 5) for _ in range(start + levels - 1)]
    blocks = ["".join(map(str, code)) for code in product(*(range(d) for d in digits))]
    blocks = sorted(rng.choice(blocks, size=rng.integers(1, len(blocks) + 1), replace=False))
    lived = blocks if not empty else blocks[: max(1, len(blocks) - 1)]
    count = int(rng.integers(0, people))
    frame = pd.DataFrame({"block": rng.choice(lived, size=count).astype(str)})
    for attribute in attributes:
        frame[attribute.name] = rng.integers(attribute.size, size=count)
    records = Records.from_frame(frame, schema=schema)
    places = pd.DataFrame({"block": blocks, "x": 0.0, "y": 0.0})
    kinds = tables or [
        [a.name for a in attributes if rng.random() < 0.5] for _ in range(rng.integers(1, 4))
    ] + [[], [a.name for a in attributes]]
    defined = {t.name: t for t in (cross(schema, kind) for kind in kinds)}
    workload = Workload(schema, {(lv, n): t for lv in names for n, t in defined.items()})
    return Microdata(records, None, places), workload


def dense_histograms(microdata, workload):
    """Count records one by one: level -> geoid -> cell -> count."""
    schema, geography = workload.schema, workload.schema.geography
    found = {}
    for level in workload.levels:
        width = geography.width(level)
        places = sorted({str(block)[:width] for block in microdata.blocks["block"]})
        found[level] = {place: np.zeros(schema.size, dtype=np.int64) for place in places}
        frame = microdata.persons.to_frame()
        for row in frame.itertuples():
            cell = 0
            for attribute in schema.attributes:
                cell = cell * attribute.size + getattr(row, attribute.name) - attribute.first
            found[level][row.block[:width]][cell] += 1
    return found


def random_family(rng, *, children, cells, invariant=False, controlled=False):
    """Return a small family of noisy children, its true counts, and its dense pieces."""
    truth = rng.integers(0, 4, size=(children, cells))
    halves = (np.arange(cells) % 2 == np.arange(2)[:, None]).astype(np.int64)
    total = np.ones((1, cells), dtype=np.int64)
    queries = []
    for rows, weight in ((np.eye(cells, dtype=np.int64), 0.2), (halves, 0.7), (total, 1.0)):
        noise = rng.integers(-3, 4, size=(children, len(rows)))
        queries.append(Query(sparse.csc_array(rows.astype(float)), weight, truth @ rows.T + noise))
    sets = total if invariant else np.zeros((0, cells), dtype=np.int64)
    near = halves if controlled else np.zeros((0, cells), dtype=np.int64)
    family = Family(
        np.ones((children, cells), dtype=bool), truth.sum(axis=0), tuple(queries),
        sparse.csr_array(sets), truth @ sets.T, sparse.csr_array(near),
    )  # fmt: skip
    return family, truth


def objective(family, x):
    """Return the weighted sum of squares of a family, straight from its definition."""
    return 0.5 * sum(
        query.weight * np.sum((x @ query.rows.toarray().T - query.noisy) ** 2)
        for query in family.queries
    )


def slow_least_squares(family):
    """Minimise the same objective by sequential quadratic programming on dense arrays."""
    shape = family.live.shape
    rows, rhs = [], []
    for cell in range(shape[1]):
        row = np.zeros(shape)
        row[:, cell] = 1
        rows.append(row.ravel())
        rhs.append(family.parent[cell])
    for child in range(shape[0]):
        for members, total in zip(family.sets.toarray(), family.totals[child], strict=True):
            row = np.zeros(shape)
            row[child] = members
            rows.append(row.ravel())
            rhs.append(total)
    matrix, right = np.array(rows, dtype=float), np.array(rhs, dtype=float)
    matrix, right = _independent(matrix, right)
    answer = optimize.minimize(
        lambda x: objective(family, x.reshape(shape)),
        np.broadcast_to(family.parent / shape[0], shape).ravel(),
        bounds=[(0, None)] * (shape[0] * shape[1]),
        constraints={"type": "eq", "fun": lambda x: matrix @ x - right, "jac": lambda x: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return answer.x.reshape(shape)


def _independent(matrix, right):
    kept = []
    for row in range(len(matrix)):
        if np.linalg.matrix_rank(matrix[[*kept, row]]) > len(kept):
            kept.append(row)
    return matrix[kept], right[kept]


def best_rounding(fractional, equalities, totals, controlled):
    """Return the smallest total distance over every choice of floor or ceiling, or None."""
    low = np.floor(fractional + 1e-6)
    free = np.flatnonzero(fractional - low > 1e-6)
    best = None
    for steps in product((0, 1), repeat=len(free)):
        counts = low.copy()
        counts[free] += steps
        if np.any(equalities @ counts != totals):
            continue
        if np.any(np.abs(controlled @ counts - controlled @ fractional) >= 1 - 1e-6):
            continue
        distance = np.abs(counts - fractional).sum()
        best = distance if best is None else min(best, distance)
    return best


def appendix_f(noisy, occupied):
    """Scale the clipped counts of one place to its occupied units, in fractions."""
    clipped = [max(0, int(count)) for count in noisy]
    if not sum(clipped):
        clipped = [1] * len(clipped)
    return [Fraction(count * int(occupied), sum(clipped)) for count in clipped]
