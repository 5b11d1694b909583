"""Tabulating a million records over the block person tables, against counting with pandas."""

import numpy as np
import pandas as pd
import pytest
from targets import as_long, seconds_each

from bayesrisk.tables import Histogram, PublishedTables, Records, Schema, Workload, tabulate

_RACES = [1, 2, 4, 8, 16, 32, 3, 9, 33, 7, 63]
_SHARES = [0.7, 0.12, 0.01, 0.05, 0.01, 0.06, 0.02, 0.01, 0.01, 0.005, 0.005]
BLOCKS = Workload.named("sf1-block")


def people(count: int) -> pd.DataFrame:
    """Return made-up persons, 40 to a block, in no order."""
    rng = np.random.default_rng(1)
    blocks = 500010000000000 + rng.choice(10**9, count // 40, replace=False)
    return pd.DataFrame(
        {
            "block": rng.choice(blocks, count),
            "sex": rng.integers(0, 2, count),
            "age": np.minimum(rng.gamma(2.5, 15.0, count), 110.0).astype(int),
            "race": rng.choice(_RACES, count, p=_SHARES),
            "hisp": (rng.random(count) < 0.15).astype(int),
        }
    )


def direct(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Count every cell of every table with a mask and a group: the obvious way."""
    found = {}
    codes = {name: frame[name].to_numpy() for name in BLOCKS.schema.names}
    for table in BLOCKS.tables.values():
        for row, cell in enumerate(table.cells):
            keep = np.ones(len(frame), dtype=bool)
            for name, weights in table.factors.items():
                first = BLOCKS.schema.attribute(name).first
                keep &= weights[row][codes[name] - first] == 1
            found[cell] = frame["block"][keep].value_counts()
    return found


@pytest.mark.parametrize("count", [1_000_000])
def test_block_person_tables(compare, count):
    frame, few = people(count), people(count // 20)
    records = Records.from_frame(frame, schema=BLOCKS.schema)
    twin = direct(few)
    ours = tabulate(Records.from_frame(few, schema=BLOCKS.schema), BLOCKS)
    for (level, name), table in BLOCKS.tables.items():
        counts = ours.counts[level, name].tocsc()
        for column, cell in enumerate(table.cells):
            part = slice(*counts.indptr[column : column + 2])
            places = ours.geoids[level][counts.indices[part]].astype(np.int64)
            mine = dict(zip(places.tolist(), counts.data[part].tolist(), strict=True))
            assert mine == twin[cell].to_dict()
    compare(
        lambda: tabulate(records, BLOCKS),
        lambda: direct(few),
        aims={"the block tables of 2010 for a million people": seconds_each(5e-6, "record")},
        ours_units=count,
        twin_units=len(few),
        rounds=3,
    )


def test_histogram(compare):
    frame = people(1_000_000)
    about = Schema.named("sf1-person")
    records = Records.from_frame(frame, schema=about)
    found = Histogram.from_records(records)
    grouped = frame.groupby(["block", "sex", "age", "race", "hisp"]).size()
    assert found.counts.nnz == len(grouped)
    assert np.bincount(found.counts.data).tolist() == np.bincount(grouped).tolist()
    compare(
        lambda: Histogram.from_records(records),
        lambda: frame.groupby(["block", "sex", "age", "race", "hisp"]).size(),
        aims={"the histogram of a million people, beside groups of pandas": as_long(1)},
        ours_units=len(frame),
        twin_units=len(frame),
        rounds=3,
    )


def test_reading_tables(compare, tmp_path):
    made = tabulate(Records.from_frame(people(200_000), schema=BLOCKS.schema), BLOCKS)
    made.write(tmp_path / "t")
    rows = len(made.to_frame())
    assert PublishedTables.read(tmp_path / "t") == made
    compare(
        lambda: PublishedTables.read(tmp_path / "t"),
        lambda: pd.read_parquet(tmp_path / "t"),
        aims={"reading published tables, beside pandas that checks nothing": as_long(10)},
        ours_units=rows,
        twin_units=rows,
        rounds=3,
    )
