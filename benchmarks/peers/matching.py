"""Records of two files matched one to one on equal values."""

import warnings

import pandas as pd
from peers.comparison import Case, Comparison
from test_matching import KEYS, files, with_pandas

from bayesrisk.reconstruction import match_records

SOME, MANY = 20_000, 1_000_000


def ours(left, right):
    return match_records(left, right, keys=KEYS, rng=1).counts().tolist()


def matches_pandas() -> Case:
    few, many = files(MANY // 10), files(MANY)
    assert ours(*few) == with_pandas(*few)
    return Case(lambda: ours(*many), lambda: with_pandas(*few), MANY, MANY // 10, rounds=3)


def with_recordlinkage(left: pd.DataFrame, right: pd.DataFrame) -> list[int]:
    """Make the pairs that are equal on each key in turn, and link greedily, one to one."""
    import recordlinkage

    counts = []
    for key in KEYS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas, about how the library calls it
            pairs = recordlinkage.Index().block(list(key)).index(left, right)
            links = recordlinkage.OneToOneLinking().compute(pairs)
        counts.append(len(links))
        left = left.drop(index=links.get_level_values(0))
        right = right.drop(index=links.get_level_values(1))
    return counts


def matches_recordlinkage() -> Case:
    few, many = files(SOME), files(MANY)
    # Records that are equal on a key form groups in which every pair is allowed: the greedy
    # linkage of each is as large as can be.
    assert ours(*few) == with_recordlinkage(*few)
    return Case(lambda: ours(*many), lambda: with_recordlinkage(*few), MANY, SOME, rounds=3)


QUESTION = "Two files matched one to one, in two passes, time for each record"
ALL = [
    Comparison(
        QUESTION,
        "reconstruction.match_records",
        "`merge` of pandas on a running number",
        ("pandas",),
        "as many matches in each pass",
        "which of several equal records is taken is random in both; 1,000,000 records here,"
        " 100,000 there",
        matches_pandas,
    ),
    Comparison(
        QUESTION,
        "reconstruction.match_records",
        "recordlinkage, `Index.block` and `OneToOneLinking`",
        ("recordlinkage",),
        "as many matches in each pass",
        "recordlinkage makes all candidate pairs, for it also compares names and dates that are"
        " only alike; ours knows equality alone. 1,000,000 records here, 20,000 there",
        matches_recordlinkage,
    ),
]
