"""Parquet files read piece by piece beside pyarrow alone, published tables beside pandas."""

import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from peers.comparison import Case, Comparison
from pyarrow import parquet
from test_nmf import CELLS, UNITS, measurements

from bayesrisk import census
from bayesrisk.tables import TableReading

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
from oracles.readers import person_records

ROWS = 500_000


@cache
def scratch() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


def measurements_pyarrow() -> Case:
    folder = Path(scratch().name) / "measurements"
    folder.mkdir()
    measurements(folder)
    file = next(folder.rglob("part-*"))

    def ours():
        batches = census.NoisyMeasurements.open(folder).iter_values("Block", "detailed")
        return sum(int(batch.values.sum()) for batch in batches)

    def theirs():
        with parquet.ParquetFile(file) as source:
            batches = source.iter_batches(260, use_threads=False)
            return sum(int(b["value"].values.to_numpy().sum()) for b in batches)

    assert ours() == theirs()
    return Case(ours, theirs, UNITS * CELLS, UNITS * CELLS)


def records_pyarrow() -> Case:
    file = Path(scratch().name) / "records.parquet"
    people = person_records(np.random.default_rng(1), ROWS)
    census.write_record_form(people, file, dialect="archive")

    def ours():
        pieces = census.iter_record_form(file, dialect="archive")
        return sum(int(piece.codes("age").sum()) for piece in pieces)

    def theirs():
        with parquet.ParquetFile(file) as source:
            batches = source.iter_batches(2**16, use_threads=False)
            return sum(int(batch["age"].to_numpy().sum()) for batch in batches)

    assert ours() == theirs()
    return Case(ours, theirs, rounds=3)


def published_table_pandas() -> Case:
    rng, file = np.random.default_rng(1), Path(scratch().name) / "published.csv"
    labels = {"region": 227, "age": 16, "sex": 2, "year": 3}
    codes = np.indices(tuple(labels.values())).reshape(len(labels), -1)
    names = [np.array([f"{name} {i:03d}" for i in range(n)]) for name, n in labels.items()]
    frame = pd.DataFrame({n: t[c] for n, t, c in zip(labels, names, codes, strict=True)})
    counts = rng.integers(4, 60, len(frame))
    frame["count"] = np.where(rng.random(len(frame)) < 0.03, "*", counts.astype(str))
    frame.to_csv(file, index=False)

    def ours():
        return TableReading.read(file, counts="exact", marks={"*": "withheld"})

    def theirs():
        return pd.read_csv(file, na_values="*")

    keys, found = list(labels), ours().cells
    stated = pd.to_numeric(found["stated"].where(found["stated"] != "*"))
    mine = found[keys].assign(count=stated).sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(mine, theirs().sort_values(keys, ignore_index=True),
                                  check_dtype=False)  # fmt: skip
    return Case(ours, theirs, len(frame), len(frame))


ALL = [
    Comparison(
        "A noisy measurement file in Parquet, piece by piece",
        "census.NoisyMeasurements.iter_values",
        "pyarrow, same bytes, one thread",
        ("pyarrow",),
        "the sum of all values",
        "ours reads with pyarrow, and also checks shapes, geocodes and variances of every row",
        measurements_pyarrow,
    ),
    Comparison(
        "Records in Parquet, piece by piece",
        "census.iter_record_form",
        "pyarrow, same bytes, one thread",
        ("pyarrow",),
        "the sum of all ages",
        "ours reads with pyarrow, checks every value against its schema and puts codes together",
        records_pyarrow,
    ),
    Comparison(
        "A published table of 21,792 counts, read from text",
        "tables.TableReading.read",
        "pandas, `read_csv`",
        ("pandas",),
        "every label and every count, withheld ones missing",
        "ours also finds out what each column and label is, which labels add up to which, and "
        "under which law the counts are; and makes the tables that an attack takes",
        published_table_pandas,
    ),
]
