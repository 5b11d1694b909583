"""Slow, obvious twins of the mechanisms, and small populations to run them on."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd

from bayesrisk.tables import Attribute, Geography, Microdata, Records, Schema, Table, Workload

PLACES = Geography("towns", ("county", "tract", "block"), (1, 2, 3))
PEOPLE = Schema("people", (Attribute("sex", 2), Attribute("age", 90)), PLACES)
UNITS = Schema("household-occupancy", (Attribute("tenure", 3), Attribute("size", 7, 1)), PLACES)


def by_age(name, edges):
    """Return a table of age groups that start at the edges."""
    groups = np.searchsorted(edges, np.arange(90), side="right") - 1
    cells = tuple(f"{name}-{edge}" for edge in edges)
    return Table(name, cells, {"age": (groups == np.arange(len(edges))[:, None]).astype(np.int64)})


TOTAL = Table("total", ("all",), {})
SEX = Table("sex", ("all", "men", "women"), {"sex": np.array([[1, 1], [1, 0], [0, 1]])})
AGES = by_age("ages", [0, 18, 65])


def people_workload(*tables, levels=("county", "tract", "block")):
    return Workload(PEOPLE, {(level, table.name): table for level in levels for table in tables})


def population(seed, *, blocks=12, households=60, largest=4, coordinates=True):
    """Return persons and households in blocks of one county, all of it random."""
    rng = np.random.default_rng(seed)
    names = np.array([f"1{b // 5}{b % 5}" for b in range(blocks)])
    place = rng.integers(blocks, size=households)
    size = rng.integers(1, largest + 1, size=households)
    member = np.repeat(np.arange(households), size)
    number = rng.permutation(10 * households)[:households]
    persons = pd.DataFrame(
        {
            "block": names[place][member],
            "sex": rng.integers(2, size=len(member)),
            "age": rng.integers(90, size=len(member)),
            "household": number[member],
        }
    )
    units = pd.DataFrame(
        {
            "block": names[place],
            "tenure": rng.integers(3, size=households),
            "size": size,
            "household": number,
        }
    )
    centres = pd.DataFrame({"block": names, "x": rng.random(blocks), "y": rng.random(blocks)})
    order = rng.permutation(len(persons))
    return Microdata(
        Records.from_frame(persons.iloc[order], schema=PEOPLE),
        Records.from_frame(units, schema=UNITS),
        centres if coordinates else None,
    )


def household_facts(data):
    """Return for each household (block, size, adults, its persons), one person at a time."""
    facts = {}
    persons = data.persons.to_frame()
    for row in persons.itertuples():
        blocks, people = facts.setdefault(row.household, (set(), []))
        blocks.add(row.block)
        people.append((row.sex, row.age))
    return {
        number: (blocks, len(people), sum(age >= 18 for _, age in people), sorted(people))
        for number, (blocks, people) in facts.items()
    }


def key_counts(data):
    """Return how many households each block has of each size and number of adults."""
    counts = Counter()
    for blocks, size, adults, _ in household_facts(data).values():
        (block,) = blocks
        counts[block, size, adults] += 1
    return counts


def slow_swap(blocks, keys, points, *, order, neighbours, pairs, rng):
    """Return partners by a double loop over all units; none is paired twice."""
    partner = [-1] * len(blocks)
    done = 0
    for unit in order:
        if done == pairs:
            break
        if partner[unit] >= 0:
            continue
        near = []
        for other in range(len(blocks)):
            if partner[other] < 0 and keys[other] == keys[unit] and blocks[other] != blocks[unit]:
                distance = np.hypot(*(points[blocks[other]] - points[blocks[unit]]))
                near.append((distance, rng.random(), other))
        if near:
            _, _, other = sorted(near)[:neighbours][int(rng.integers(min(neighbours, len(near))))]
            partner[unit], partner[other] = other, unit
            done += 1
    return np.array(partner)


def largest_remainder(total, weights):
    """Return whole parts of a total by largest remainder, ties to the first."""
    whole = sum(weights)
    exact = [Fraction(total) * w / whole for w in weights]
    parts = [int(e) for e in exact]
    order = sorted(range(len(exact)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[: total - sum(parts)]:
        parts[i] += 1
    return parts


def possible_counts(published, sums, limit):
    """Return for each hidden cell (None) the counts below a limit that all sums allow."""
    hidden = [name for name, count in published.items() if count is None]
    grid = np.indices((limit,) * len(hidden), dtype=np.int16).reshape(len(hidden), -1)
    counts = {**published, **dict(zip(hidden, grid, strict=True))}
    fits = np.ones(grid.shape[1], dtype=bool)
    for whole, parts in sums:
        fits &= counts[whole] == sum(counts[part] for part in parts)
    return {
        name: set(np.unique(own[fits]).tolist()) for name, own in zip(hidden, grid, strict=True)
    }
