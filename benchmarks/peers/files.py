"""Parquet files read piece by piece, beside pyarrow alone."""

import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from peers.comparison import Case, Comparison
from pyarrow import parquet
from test_nmf import CELLS, UNITS, measurements

from bayesrisk.census import readers

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
        batches = readers.NoisyMeasurements.open(folder).iter_values("Block", "detailed")
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
    readers.write_record_form(people, file, dialect="archive")

    def ours():
        pieces = readers.iter_record_form(file, dialect="archive")
        return sum(int(piece.codes("age").sum()) for piece in pieces)

    def theirs():
        with parquet.ParquetFile(file) as source:
            batches = source.iter_batches(2**16, use_threads=False)
            return sum(int(batch["age"].to_numpy().sum()) for batch in batches)

    assert ours() == theirs()
    return Case(ours, theirs, rounds=3)


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
        "readers.iter_record_form",
        "pyarrow, same bytes, one thread",
        ("pyarrow",),
        "the sum of all ages",
        "ours reads with pyarrow, checks every value against its schema and puts codes together",
        records_pyarrow,
    ),
]
