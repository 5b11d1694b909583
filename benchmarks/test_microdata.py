"""Uniques and repeated records of microdata, against a loop over records and against pandas."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from targets import as_long, faster

from bayesrisk.risk import first_look, repeated_microdata

KEYS = ["sex", "age", "race", "tract", "size"]


def people(count: int, seed: int = 1) -> pd.DataFrame:
    """Return made-up records."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.integers(0, 2, count),
            "age": rng.integers(0, 100, count),
            "race": rng.geometric(0.4, count),
            "tract": rng.integers(0, 40, count),
            "size": rng.integers(1, 8, count),
            "ill": rng.integers(0, 5, count),
        }
    )


def pairwise(frame: pd.DataFrame) -> int:
    """Count minimal uniques by comparing every record with every other one."""
    rows = list(frame[KEYS].itertuples(index=False))
    found = 0
    for row in rows:
        own: list[set[int]] = []
        for size in range(1, 4):
            for chosen in combinations(range(len(KEYS)), size):
                alike = sum(all(other[i] == row[i] for i in chosen) for other in rows)
                if alike == 1 and not any(part <= set(chosen) for part in own):
                    own.append(set(chosen))
        found += len(own)
    return found


def grouped(frame: pd.DataFrame) -> int:
    """Count minimal uniques with a grouped frame for every set of keys."""
    alone: dict[tuple[str, ...], pd.Series] = {}
    found = 0
    for size in range(1, 4):
        for chosen in combinations(KEYS, size):
            alone[chosen] = frame.groupby(list(chosen))["ill"].transform("size") == 1
            new = alone[chosen].copy()
            for part in combinations(chosen, size - 1):
                if part:
                    new &= ~alone[part]
            found += int(new.sum())
    return found


@pytest.mark.parametrize(
    ("twin", "other", "ours", "theirs", "aim"),
    [
        (pairwise, "comparing all pairs", 200_000, 300, faster(100)),
        (grouped, "groups of pandas", 200_000, 200_000, as_long(0.5)),
    ],
    ids=["pairwise", "grouped"],
)
def test_first_look(compare, twin, other, ours, theirs, aim):
    small = people(theirs)
    look = first_look(small, keys=KEYS)
    assert int(look.minimal_uniques.sum()) == twin(small)
    large = people(ours)
    compare(
        lambda: first_look(large, keys=KEYS),
        lambda: twin(small),
        aims={f"unique records of a file, beside {other}": aim},
        ours_units=ours,
        twin_units=theirs,
    )


def joined(original: pd.DataFrame, protected: pd.DataFrame) -> float:
    """Return DiSCO by merging groups of both frames."""
    groups = protected.groupby(KEYS)["ill"].agg(["nunique", "first"])
    both = original.merge(groups, left_on=KEYS, right_index=True, how="left")
    return 100.0 * float(((both["nunique"] == 1) & (both["first"] == both["ill"])).mean())


def test_repeated_microdata(compare):
    original, protected = people(200_000), people(200_000, seed=2)
    found = repeated_microdata(original, protected, keys=KEYS, target="ill")
    assert found.disclosive_correct == pytest.approx(joined(original, protected))
    compare(
        lambda: repeated_microdata(original, protected, keys=KEYS, target="ill"),
        lambda: joined(original, protected),
        aims={"records repeated in a protected file, beside a merge in pandas": as_long(2)},
    )
