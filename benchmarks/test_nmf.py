"""A noisy measurement file: look-up against an exponential, reading, writing, combining.

The limit of the look-up is memory: 8 bytes read and 16 written for each cell.
"""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import special
from targets import as_long, faster, seconds_each

from bayesrisk.census import MeasurementsStudy, NoisyMeasurements, write_nmf
from bayesrisk.census.readers.geocodes import block_geocode
from bayesrisk.experiments import run
from bayesrisk.inference.count.measurements import MeasurementTables

UNITS, CELLS, PRIOR = 2600, 2016, 0.1
SIGMA2 = float(np.float32(10.09))  # as a file holds it


def values():
    rng = np.random.default_rng(1)
    return np.rint(rng.normal(0.0, SIGMA2**0.5, (UNITS, CELLS))).astype(np.int64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return measurements(tmp_path_factory.mktemp("nmf"))


def measurements(root):
    """Make a folder of one state, one part, nothing but the detailed query."""
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
        aims={
            "posterior of a measured cell, looked up": seconds_each(100e-9, "cell"),
            "posterior of a measured cell, looked up, beside computed": faster(2),
        },
        ours_units=counts.size,
        twin_units=counts.size,
    )


def test_look_up_against_copying(compare):
    """As far from the limit as memory lets it be: as many bytes, only copied."""
    counts, scale = values(), np.full(UNITS, SIGMA2)
    tables = MeasurementTables(PRIOR, 0)
    posterior, ratio = tables.look_up(counts, scale)
    assert posterior.size == counts.size  # as many as are copied; test_look_up says they are right
    np.testing.assert_allclose(ratio, posterior / PRIOR, rtol=1e-15)
    compare(
        lambda: tables.look_up(counts, scale),
        lambda: (counts.astype(float), counts.astype(float)),
        aims={"posterior of a measured cell, looked up, beside copying": as_long(2)},
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
    name, cells = "reading noisy measurements, beside Arrow that checks nothing", UNITS * CELLS
    compare(ours, twin, aims={name: as_long(2.5)}, ours_units=cells, twin_units=cells)


def test_folder_to_parquet(compare, folder, tmp_path):
    """Read, compute and write, against pandas, SciPy and one data frame.

    Ours also writes what constraints and other values add, and each part with its checksum.
    """
    import pandas as pd

    numbers = iter(range(1000))

    def ours():
        study = MeasurementsStudy(folder, prior=PRIOR, query="detailed")
        return run(study, tmp_path / str(next(numbers)))

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
    written = pd.read_parquet(f"{result.folder}/risk.parquet", columns=["posterior"])["posterior"]
    theirs = pd.read_parquet(tmp_path / "twin.parquet", columns=["posterior"])["posterior"]
    np.testing.assert_allclose(written, theirs, rtol=1e-13)
    compare(
        ours,
        twin,
        aims={"the run on a folder of noisy measurements, beside pandas and SciPy": as_long(1.5)},
        ours_units=result.cells,
        twin_units=result.cells,
        rounds=5,
    )


AXES = ("hhgq", "votingage", "hispanic", "cenrace")
SIZES = (8, 2, 2, 63)
LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")


def cells_of(row):
    """Return the cells of the histogram that each answer of a row counts."""
    named = {"hhinstlevels": [[0], [1, 2, 3, 4], [5, 6, 7]], "gqNursingTotal": [[3]]}
    choices = []
    for axis, size in zip(AXES, SIZES, strict=True):
        answer = row[axis]
        every = [[i] for i in range(size)]
        choices.append(
            [list(range(size))] if answer == "*" else [[0]] if answer == "nonvoting"
            else named.get(answer, every)
        )  # fmt: skip
    index = np.arange(2016).reshape(SIZES)
    return [set(index[np.ix_(*g)].ravel().tolist()) for g in itertools.product(*choices)]


def rows_of(folder, level, kind):
    files = sorted((folder / f"{level}.parquet" / kind).rglob("*.parquet"))
    return [row for f in files for row in parquet.read_table(f, partitioning=None).to_pylist()]


def one_by_one(folder):
    """Combine cell by cell, as one would write it first: sets of people behind every value."""
    blocks = sorted({row["geocode"] for row in rows_of(folder, "Block", "Constraint")})
    alive = {block: set(range(2016)) for block in blocks}
    for level, row in ((x, r) for x in LEVELS for r in rows_of(folder, x, "Constraint")):
        if row["sign"] != ">=":
            empty = set().union(
                *(c for c, v in zip(cells_of(row), row["value"], strict=True) if v == 0)
            )
            for block in blocks:
                if level == "US" or block.startswith(row["geocode"]):
                    alive[block] -= empty
    evidence = {}
    for row in (r for x in LEVELS[1:] for r in rows_of(folder, x, "DPQuery")):
        inside = [block for block in blocks if block.startswith(row["geocode"])]
        for cells, noisy in zip(cells_of(row), row["value"], strict=True):
            people = [(block, cell) for block in inside for cell in cells & alive[block]]
            if len(people) == 1:
                gain = (2.0 * noisy - 1.0) / (2.0 * row["variance"])
                evidence[people[0]] = evidence.get(people[0], 0.0) + gain
    return alive, evidence


def test_combining(compare, tmp_path):
    """All values of the same count and the constraints, against sets cell by cell."""
    import pandas as pd

    folder = write_nmf(
        tmp_path / "US_Person_PL_PROD", rng=3, states=("057",), counties=1, tracts=(2, 3),
        blocks=(3, 5),
    ).folder  # fmt: skip
    numbers = iter(range(1000))

    def ours():
        return run(MeasurementsStudy(folder, prior=PRIOR), tmp_path / str(next(numbers)))

    found = pd.read_parquet(f"{ours().folder}/risk.parquet")
    alive, evidence = one_by_one(folder)
    odds = special.logit(PRIOR)
    twin = [
        special.expit(odds + evidence.get((block, cell), 0.0)) if cell in alive[block] else 0.0
        for block in sorted(alive)
        for cell in range(2016)
    ]
    np.testing.assert_allclose(found["posterior_with_constraints"], twin, rtol=1e-9)
    compare(
        ours,
        lambda: one_by_one(folder),
        aims={"all measurements of a cell put together, beside sets of people": faster(1)},
        ours_units=len(found),
        twin_units=len(found),
        rounds=3,
    )
