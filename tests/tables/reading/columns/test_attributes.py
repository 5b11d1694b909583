"""Shares of a hundred are told by their sums, codes of blocks by their size; no name is needed."""

import numpy as np
import pytest

from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.columns.attributes import are_blocks, shares
from bayesrisk.tables.reading.reading import TableReading

CITIES, AGES = [f"city {n}" for n in "ABCDEFGH"], ("young", "middle", "old")


def read_text(tmp_path, text):
    file = tmp_path / "t.csv"
    file.write_text(text, encoding="utf-8")
    return TableReading.read(file)


def hundreds(seed, off):
    """Return three numbers for each city, which make up 100 but for an error, and their counts."""
    rng = np.random.default_rng(seed)
    parts = rng.multinomial(100, [0.2, 0.3, 0.5], len(CITIES))
    parts[:, 0] += rng.integers(-off, off + 1, len(CITIES))
    return parts, rng.integers(20, 900, parts.shape)


@pytest.mark.parametrize("off", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_groups_that_make_up_a_hundred_are_no_counts(seed, off, tmp_path):
    parts, counts = hundreds(seed, off)
    cells = [(c, a) for c in CITIES for a in AGES]
    rows = zip(cells, parts.ravel(), counts.ravel(), strict=True)
    lines = [f"{c},{a},{part},{count}" for (c, a), part, count in rows]
    reading = read_text(tmp_path, "\n".join(["city,age,offenders,children", *lines]) + "\n")
    assert {*reading.cells["stated"]} == {str(n) for n in counts.ravel()}
    text = "\n".join(["city,age,offenders", *(line.rpartition(",")[0] for line in lines)]) + "\n"
    with pytest.raises(DataError, match="make up 100"):
        read_text(tmp_path, text)


def test_columns_that_make_up_a_hundred_in_each_row_are_shares():
    parts, counts = hundreds(3, 1)
    columns = {1: parts[:, 0], 2: parts[:, 1] + parts[:, 2], 4: counts[:, 0] % 50}
    columns = {i: column.tolist() for i, column in columns.items()}
    assert shares(columns, [CITIES]) == {1, 2}
    # One that stands apart is no part of a sum, nor are those of too few rows.
    assert shares({1: columns[1], 3: columns[2]}, [CITIES]) == set()
    few = {i: column[:5] for i, column in columns.items()}
    assert shares(few, [CITIES[:5]]) == set()


@pytest.mark.parametrize("seed", range(8))
def test_small_counts_make_up_no_hundred(seed):
    rng = np.random.default_rng(seed)
    numbers = rng.poisson(rng.uniform(5, 60), (3, 24))
    labels = [[c for c in CITIES for _ in AGES], [*AGES] * len(CITIES)]
    assert shares(dict(enumerate(numbers.tolist())), labels) == set()


@pytest.mark.parametrize(
    ("texts", "blocks"),
    [
        ("10 10 10 11 11 11", True),
        ("1 1 1 2 2 2 3 3 3 4 4 4", True),
        ("3 3 3 3 9 9", False),  # rounded to 3: as 1 1 1 1 3 3
        ("1 1 1 2 2 2", False),
        ("10 10 10 11 11 10", False),
        ("0 0 0 11 11 11 12 12 12", False),
    ],
)
def test_small_counts_make_no_blocks_of_codes_in_a_few_rows(texts, blocks):
    assert are_blocks(texts.split()) == blocks


@pytest.mark.parametrize(
    ("upper", "counted"), [("Components of population change", True), ("Yearly change", False)]
)
def test_components_of_a_change_are_counts(upper, counted, tmp_path):
    heads = f"Stock!!In May,Stock!!In June,{upper}!!Arrivals,{upper}!!Exits"
    rows = "Ash,812,904,717,1210\nElm,418,512,480,871\nOak,650,731,655,540\nYew,302,288,341,133\n"
    cells = read_text(tmp_path, f"Region,{heads}\n{rows}").cells
    assert ({"717", "133"} <= {*cells["stated"]}) is counted
