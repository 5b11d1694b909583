"""Matching records without replacement, against the printed double loop and against pandas."""

import numpy as np
import pandas as pd
import pytest
from targets import seconds_each

from bayesrisk.reconstruction import match_records

KEYS = [("block", "sex", "age"), ("block", "sex", "agebin")]


def files(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two files of made-up persons, 40 to a block, of whom some have another age."""
    rng = np.random.default_rng(1)
    left = pd.DataFrame(
        {
            "block": rng.integers(0, max(count // 40, 1), count, dtype=np.int32),
            "sex": rng.integers(0, 2, count, dtype=np.int8),
            "age": rng.integers(0, 90, count, dtype=np.int16),
        }
    )
    left["agebin"] = left["age"] // 5
    right = left.sample(frac=1.0, random_state=2).reset_index(drop=True)
    moved = rng.random(count) < 0.3
    right["age"] = np.where(moved, 5 * right["agebin"] + rng.integers(0, 5, count), right["age"])
    return left, right.astype({"age": np.int16})


def double_loop(left: pd.DataFrame, right: pd.DataFrame) -> list[int]:
    """Match as the algorithm is printed: for each record the first free one that is equal."""
    counts = []
    ours = list(left.itertuples(index=False))
    free = list(right.itertuples(index=False))
    for key in KEYS:
        rest, found = [], 0
        for record in ours:
            wanted = [getattr(record, name) for name in key]
            for at, other in enumerate(free):
                if [getattr(other, name) for name in key] == wanted:
                    del free[at]
                    found += 1
                    break
            else:
                rest.append(record)
        ours = rest
        counts.append(found)
    return counts


def with_pandas(left: pd.DataFrame, right: pd.DataFrame) -> list[int]:
    """Number the equal records of both files, in random order, and merge on the number."""
    rng = np.random.default_rng(3)
    counts = []
    for key in KEYS:
        sides = []
        for file in (left, right):
            mixed = file.iloc[rng.permutation(len(file))]
            sides.append(mixed.assign(number=mixed.groupby(list(key)).cumcount()))
        columns = [*key, "number"]
        both = (
            sides[0]
            .reset_index()
            .merge(sides[1].reset_index(), on=columns, suffixes=("_left", "_right"))
        )
        counts.append(len(both))
        left = left.drop(index=both["index_left"])
        right = right.drop(index=both["index_right"])
    return counts


@pytest.fixture
def size(benchmark):
    return 20_000 if benchmark.disabled else 10_000_000


def test_ten_million_records_in_two_passes(compare, size):
    left, right = files(size)
    few = files(size // 10)
    assert match_records(*few, keys=KEYS, rng=1).counts().tolist() == with_pandas(*few)
    compare(
        lambda: match_records(left, right, keys=KEYS, rng=1),
        lambda: with_pandas(*few),
        aims={"matching ten million records in two passes": seconds_each(500e-9, "record")},
        ours_units=size,
        twin_units=size // 10,
        rounds=2,
    )


def test_against_the_printed_loop(compare, size):
    left, right = files(size // 10)
    few = files(1_000)
    assert match_records(*few, keys=KEYS, rng=1).counts().tolist() == double_loop(*few)
    compare(
        lambda: match_records(left, right, keys=KEYS, rng=1),
        lambda: double_loop(*few),
        ours_units=size // 10,
        twin_units=1_000,
        rounds=3,
    )
