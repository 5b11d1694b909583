"""Columns of counts side by side: margins of several variables, under whatever names."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import PublishedTables, TableReading
from bayesrisk.reconstruction import count_bounds

NAMES = (
    *("alba", "bern", "cora", "dora", "elba", "fino", "gala", "hugo"),
    *("iris", "jena", "kilo", "lima", "mora", "nola", "oslo"),
)


def random_margins(seed):
    """Return a table of places by the margins of some attributes, its truth, and the margins."""
    rng = np.random.default_rng(seed)
    names, total = [*rng.permutation(NAMES)], rng.choice(["Total", "All persons", "quux"])
    sizes = rng.integers(2, 5, rng.integers(1, 4))
    attributes = [[names.pop() for _ in range(size)] for size in sizes]
    rows, mean, places = [], rng.choice([6, 30, 200]), int(rng.integers(3, 9))
    crossed = len(sizes) > 1 and rng.random() < 0.3
    for _ in range(places):
        people = rng.poisson(mean)
        codes = [rng.choice(size, people, p=rng.dirichlet(np.ones(size) * 2)) for size in sizes]
        row = {total: people}
        for labels, code in zip(attributes, codes, strict=True):
            row |= {label: int((code == k).sum()) for k, label in enumerate(labels)}
        for i, a in enumerate(attributes[0] if crossed else ()):
            for j, b in enumerate(attributes[1]):
                row[f"{a} {b}"] = int(((codes[0] == i) & (codes[1] == j)).sum())
        rows.append(row)
    frame = pd.DataFrame(rows)
    if rng.random() < 0.3:
        frame = frame[[*rng.permutation(frame.columns)]]
    truth = frame.to_numpy()
    hidden = (truth > 0) & (truth < rng.choice([3, 5, 11])) & (rng.random(truth.shape) < 0.8)
    return frame, hidden, total


def bounds_of(frame, hidden, total):
    """Return the true and the proved least and most of the counts of each row and column."""
    stated = frame.astype(str).where(~hidden, "*")
    stated.insert(0, "area", [f"place {k}" for k in range(len(frame))])
    reading = TableReading.from_frame(stated, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    cells = reading.cells.merge(
        bounds.counts.rename(columns={"geoid": "place"}), on=["place", "table", "cell"]
    )
    kept = ("place", "table", "cell", "area", "row", "stated", "file", "low", "high", "level")
    results = {}
    for cell in cells.to_dict("records"):
        labels = {str(v) for k, v in cell.items() if k not in kept}
        heads = [head for head in frame.columns if head in labels] or [total]
        assert len(heads) == 1
        high = 2**40 if pd.isna(cell["high"]) else cell["high"]
        results[cell["row"] - 1, heads[0]] = (
            frame.loc[cell["row"] - 1, heads[0]],
            cell["low"],
            high,
        )
    return results


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_margins_side_by_side_make_nothing_false(first):
    for seed in range(first * 100, first * 100 + 40 + 60 * bool(first)):
        for at, (count, low, high) in bounds_of(*random_margins(seed)).items():
            assert low <= count <= high, (seed, at)


def test_each_margin_adds_up_to_the_total():
    """A count that is withheld in each of three margins follows from the total of its place."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(6):
        a, b = rng.integers(100, 400, 2)
        parts = rng.multinomial(a + b, [0.3, 0.3, 0.4])
        halves = rng.multinomial(a + b, [0.5, 0.5])
        rows.append([a + b, a, b, *parts, *halves])
    frame = pd.DataFrame(rows, columns=["quux", *NAMES[:7]])
    hidden = np.zeros(frame.shape, dtype=bool)
    for row, column in ((0, 1), (1, 4), (2, 7)):
        hidden[row, column] = True
    found = bounds_of(frame, hidden, "quux")
    for row, column in zip(*np.nonzero(hidden), strict=True):
        count = frame.iloc[row, column]
        assert found[row, frame.columns[column]] == (count, count, count)


def test_parts_of_a_margin_are_a_tree_of_its_variable():
    """Urban and rural people, and poor and rich ones of each: no second variable."""
    rng = np.random.default_rng(5)
    parts = rng.integers(50, 500, (6, 4))
    frame = pd.DataFrame(parts, columns=["urban poor", "urban rich", "rural poor", "rural rich"])
    frame.insert(0, "urban", parts[:, :2].sum(axis=1))
    frame.insert(1, "rural", parts[:, 2:].sum(axis=1))
    frame.insert(0, "Total", parts.sum(axis=1))
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[2, 1] = hidden[2, 5] = True
    found = bounds_of(frame, hidden, "Total")
    assert found[2, "urban"][1:] == (frame.loc[2, "urban"],) * 2
    assert found[2, "rural poor"][1:] == (frame.loc[2, "rural poor"],) * 2
