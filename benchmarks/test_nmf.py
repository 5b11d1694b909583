"""A noisy measurement file: look-up against an exponential for each row, reading, writing.

The limit of the look-up is memory: 8 bytes read and 16 written for each cell.
"""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import special

from bayesrisk.experiments import noisy_measurement_risk
from bayesrisk.inference.count.measurement_tables import MeasurementTables
from bayesrisk.readers import NoisyMeasurements, block_geocode

UNITS, CELLS, PRIOR = 2600, 2016, 0.1
SIGMA2 = float(np.float32(10.09))  # as a file holds it


def values():
    rng = np.random.default_rng(1)
    return np.rint(rng.normal(0.0, SIGMA2**0.5, (UNITS, CELLS))).astype(np.int64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of one state, one part, nothing but the detailed query."""
    root = tmp_path_factory.mktemp("nmf")
    place = root / "Block.parquet" / "DPQuery" / "State=057"
    place.mkdir(parents=True)
    numbers = [f"57001020{i:07d}" for i in range(UNITS)]
    axes = dict.fromkeys(("hhgq", "votingage", "hispanic", "cenrace"), ["detailed"] * UNITS)
    lists = pa.ListArray.from_arrays(
        pa.array(np.arange(UNITS + 1, dtype=np.int32) * CELLS),
        pa.array(values().astype(np.int32).reshape(-1)),
    )
    table = pa.table(
        {
            "geocode": block_geocode(["057100011000101"] * UNITS, numbers).tolist(),
            "query_name": ["detailed_dpq"] * UNITS,
            **axes,
            "query_shape": [[8, 2, 2, 63]] * UNITS,
            "value": lists,
            "variance": pa.array(np.full(UNITS, SIGMA2), pa.float32()),
        }
    )
    parquet.write_table(table, place / "part-0.parquet")
    return root


def by_row(counts):
    """Compute posterior and ratio row by row, as one would write it first."""
    odds = special.logit(PRIOR)
    found = []
    for row in counts:
        posterior = special.expit(odds + (2.0 * row - 1.0) / (2.0 * SIGMA2))
        found.append((posterior, posterior / PRIOR))
    return found


def test_look_up(compare):
    counts, scale = values(), np.full(UNITS, SIGMA2)
    tables = MeasurementTables(PRIOR, 0)
    posterior, _ = tables.look_up(counts[:5], scale[:5])
    twin = np.concatenate([row for row, _ in by_row(counts[:5])])
    np.testing.assert_allclose(posterior, twin, rtol=1e-13)
    compare(
        lambda: tables.look_up(counts, scale),
        lambda: by_row(counts),
        aim="2 times faster; below 100 ns a cell",
        ours_units=counts.size,
        twin_units=counts.size,
    )


def test_look_up_against_copying(compare):
    """As far from the limit as memory lets it be: as many bytes, only copied."""
    counts, scale = values(), np.full(UNITS, SIGMA2)
    tables = MeasurementTables(PRIOR, 0)
    compare(
        lambda: tables.look_up(counts, scale),
        lambda: (counts.astype(float), counts.astype(float)),
        aim="at most 2",
        ours_units=counts.size,
        twin_units=counts.size,
    )


def test_reading(compare, folder):
    """Against Arrow alone, which checks nothing and makes no arrays of rows."""
    file = next(folder.rglob("part-*"))

    def ours():
        batches = NoisyMeasurements.open(folder).iter_values("Block", "detailed")
        return sum(int(batch.values.shape[0]) for batch in batches)

    def twin():
        with parquet.ParquetFile(file) as source:
            return sum(b.num_rows for b in source.iter_batches(260, use_threads=False))

    assert ours() == twin() == UNITS
    compare(ours, twin, aim="at most 2.5", ours_units=UNITS * CELLS, twin_units=UNITS * CELLS)


def test_folder_to_parquet(compare, folder, tmp_path):
    """Read, compute and write, against pandas, SciPy and one data frame."""
    import pandas as pd

    numbers = iter(range(1000))

    def ours():
        path = tmp_path / f"{next(numbers)}.parquet"
        return noisy_measurement_risk(folder, path, prior=PRIOR)

    def twin():
        frame = pd.read_parquet(next(folder.rglob("part-*")), partitioning=None)
        counts = np.stack(frame["value"].to_numpy())
        rows = by_row(counts)
        pd.DataFrame(
            {
                "geocode": np.repeat(frame["geocode"].to_numpy(), CELLS),
                "cell": np.tile(np.arange(CELLS), len(frame)),
                "noisy_count": counts.ravel(),
                "posterior": np.concatenate([p for p, _ in rows]),
                "risk_ratio": np.concatenate([r for _, r in rows]),
            }
        ).to_parquet(tmp_path / "twin.parquet")

    result = ours()
    twin()
    written = pd.read_parquet(result.output, columns=["posterior"])["posterior"]
    theirs = pd.read_parquet(tmp_path / "twin.parquet", columns=["posterior"])["posterior"]
    np.testing.assert_allclose(written, theirs, rtol=1e-13)
    for name, seconds in result.seconds.items():
        print(f"\n  {name}: {result.cells / seconds / 1e6:.3g} million cells a second", end="")
    compare(
        ours, twin, aim="2 times faster; below 100 ns a cell", ours_units=result.cells,
        twin_units=result.cells, rounds=3,
    )  # fmt: skip
