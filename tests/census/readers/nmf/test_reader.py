"""The reader gives what pandas gives, row for row, whatever the parts look like."""

import gc
import tempfile
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from oracles.noisy_measurements import frame_of, values_of
from pyarrow import parquet

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS
from bayesrisk.census.readers.nmf import reader as nmf
from bayesrisk.census.readers.nmf.reader import rows_between

LEVELS = ("US", "State", "County", "Tract", "Block_Group", "Block")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.census.write_nmf(tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=11)


@pytest.fixture(scope="module")
def source(sample):
    return br.census.NoisyMeasurements.open(sample.folder)


def read(source, level, query):
    """Return {geocode: (values, variance)} through the reader."""
    found = {}
    for batch in source.iter_values(level, query):
        assert batch.values.dtype == np.int64
        assert batch.values.shape == (len(batch.geocodes), np.prod(batch.shape))
        for code, row, variance in zip(batch.geocodes, batch.values, batch.variance, strict=True):
            found[str(code)] = (row.tolist(), float(variance))
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_every_query_as_pandas_reads_it(sample, source, level):
    frame = frame_of(sample.folder, level)
    names = sorted({name.removesuffix("_dpq") for name in frame["query_name"]})
    assert list(source.queries(level)) == names
    negative = 0
    for query in names:
        ours = read(source, level, query)
        assert ours == values_of(sample.folder, level, query)
        negative += sum(v < 0 for values, _ in ours.values() for v in values)
    assert negative > 100


def test_the_parts_differ_as_the_released_ones_do(sample):
    folder = sample.folder / "Block.parquet" / "DPQuery"
    files = sorted(folder.rglob("*.parquet"))
    kinds = {f: parquet.read_schema(f).field("value").type.value_type for f in files}
    assert set(kinds.values()) == {pa.int32(), pa.int64()}
    assert sorted(p.name for p in folder.iterdir()) == ["State=057", "State=058", "State=157"]
    assert len(list((folder / "State=157").iterdir())) == 2
    assert parquet.read_schema(files[0]).field("variance").type == pa.float32()
    assert "sign" not in parquet.read_schema(files[0]).names


def test_units_and_those_without_an_answer(sample, source):
    for level in LEVELS:
        units = source.units(level)
        np.testing.assert_array_equal(units, sample.geocodes[level])
        silent = set(units.tolist()) - set(read(source, level, "detailed"))
        parents = {code[: SPINE_WIDTHS[LEVELS[LEVELS.index(level) - 1]]] for code in silent}
        assert len(parents) == len(silent)  # each is an only child
    assert silent


def test_rows_say_where_they_are_from(source):
    for batch in source.iter_values("Block", "cenrace"):
        frame = parquet.ParquetFile(batch.file).read().to_pandas().iloc[batch.rows]
        assert frame["geocode"].tolist() == batch.geocodes.tolist()
        assert set(frame["query_name"]) == {"cenrace_dpq"}
        assert (batch.level, batch.query, batch.shape) == ("Block", "cenrace", (1, 1, 1, 63))


def test_constraints(sample, source):
    blocks = rows_between(source, "Block", "Constraint", "", "")
    assert sorted(blocks) == ["hhgq_total_lb", "hhgq_total_ub", "nurse_nva_0"]
    assert sorted(rows_between(source, "State", "Constraint", "", "")) == [*sorted(blocks), "total"]
    signs = {"total": "=", "nurse_nva_0": "=", "hhgq_total_lb": ">=", "hhgq_total_ub": "<="}
    for level in ("State", "Block"):
        people = sample.counts[level].reshape(-1, 8, 252).sum(axis=2)
        for name, rows in rows_between(source, level, "Constraint", "", "").items():
            values = values_of(sample.folder, level, name, "Constraint", "_con")
            place = np.searchsorted(sample.geocodes[level], rows.geocodes)
            assert rows.sign == signs[name]
            assert rows.values.tolist() == [values[c][0] for c in rows.geocodes.tolist()]
            truth = people[place]
            holds = {
                "total": rows.values[:, 0] == truth.sum(axis=1),
                "nurse_nva_0": rows.values[:, 0] == 0,
                "hhgq_total_lb": rows.values <= truth,
                "hhgq_total_ub": rows.values >= truth,
            }
            assert holds[name].all()


def test_exact_scales_from_the_budget(sample, source):
    budget = br.accounting.census_2020_budget("pl94")
    exact = br.census.NoisyMeasurements.open(sample.folder, budget=budget)
    for level in LEVELS[1:]:
        for query in ("total", "detailed"):
            rho = dict(zip(sample.geocodes[level], sample.rho[level, query], strict=True))
            for ours, plain in zip(
                exact.iter_values(level, query), source.iter_values(level, query), strict=True
            ):
                assert ours.sigma2.tolist() == [float(1 / rho[c]) for c in ours.geocodes]
                # The column is rounded to single precision.
                np.testing.assert_allclose(plain.sigma2, ours.sigma2, rtol=2.0**-24)


@pytest.mark.parametrize("cells", [1, 5000, 2**20])
def test_batches_of_any_size_are_the_same_rows(source, monkeypatch, cells):
    whole = read(source, "Block", "detailed")
    monkeypatch.setattr(nmf, "BATCH_CELLS", cells)
    sizes = [b.values.size for b in source.iter_values("Block", "detailed")]
    assert max(sizes) <= max(cells + 2 * cells, 2016)
    assert read(source, "Block", "detailed") == whole


def test_units_of_housing(tmp_path):
    sample = br.census.write_nmf(tmp_path / "US_Unit_PL_PROD", universe="unit", rng=5)
    budget = br.accounting.census_2020_budget("pl94", universe="unit")
    source = br.census.NoisyMeasurements.open(sample.folder, budget=budget)
    assert source.universe.name == "pl94-unit"
    assert source.queries("Block") == ("detailed",)
    assert read(source, "Block", "detailed") == values_of(sample.folder, "Block", "detailed")
    (batch,) = source.iter_values("US", "detailed")
    assert (batch.geocodes.size, batch.sigma2[0]) == (1, pytest.approx(2735, rel=1e-3))


# --- other products: any query, any shape, lists of any kind ----------------------------------

DHC = {"relgq": 42, "sex": 2, "age": 116, "hispanic": 2, "cenrace": 63}
DHC_ROWS = [
    ("hispanic * sex_dpq", ("*", "sex", "*", "hispanic", "*"), [1, 2, 1, 2, 1]),
    ("age_38_groups * sex_dpq", ("*", "sex", "age_38_groups", "*", "*"), [1, 2, 38, 1, 1]),
    ("popSehsdTargetsRelship_dpq", ("popSehsdTargetsRelship", *"****"), [19, 1, 1, 1, 1]),
    ("a query of tomorrow_dpq", ("strange", *"****"), [7, 1, 1, 1, 1]),
    ("detailed_dpq", ("detailed",) * 5, list(DHC.values())),
]


def dhc_table(geocodes, rng, lists):
    rows = [(code, *row) for code in geocodes for row in DHC_ROWS]
    axes = {axis: [answers[i] for _, _, answers, _ in rows] for i, axis in enumerate(DHC)}
    return pa.table(
        {
            "geocode": [r[0] for r in rows],
            "query_name": [r[1] for r in rows],
            **axes,
            "query_shape": pa.array([r[3] for r in rows], lists(pa.int32())),
            "value": pa.array(
                [rng.integers(-9, 9, int(np.prod(r[3]))) for r in rows], lists(pa.int64())
            ),
            "variance": pa.array([909.0909] * len(rows), pa.float64()),
        }
    )


def test_demographic_files_by_county(tmp_path):
    rng = np.random.default_rng(3)
    folder = tmp_path / "US_DHCP_PROD"
    tables = []
    for lists, county in ((pa.list_, "05010001"), (pa.large_list, "05010003")):
        place = folder / "Tract_Subset.parquet" / "DPQuery" / "State=050" / f"County={county}"
        place.mkdir(parents=True)
        codes = [f"{county}1{i:04d}" for i in range(2)]
        tables.append(dhc_table(codes, rng, lists))
        parquet.write_table(tables[-1], place / "part-0.parquet")
    (place / "_SUCCESS.parquet").write_text("", encoding="utf-8")  # not data
    source = br.census.NoisyMeasurements.open(folder)
    assert (source.universe.name, source.levels) == ("dhc-person", ("Tract_Subset",))
    assert len(source.queries("Tract_Subset")) == 5
    frame = pd.concat([t.to_pandas() for t in tables])
    for name, _, shape in DHC_ROWS:
        ours = read(source, "Tract_Subset", name.removesuffix("_dpq"))
        mine = frame[frame["query_name"] == name]
        assert {c: v for c, (v, _) in ours.items()} == {
            c: v.tolist() for c, v in zip(mine["geocode"], mine["value"], strict=True)
        }
        assert next(source.iter_values("Tract_Subset", name[:-4])).shape == tuple(shape)
    with pytest.raises(ArgumentError, match="level must have constraints"):
        source.units("Tract_Subset")


def test_axes_that_nobody_told_us_of(tmp_path):
    place = tmp_path / "new" / "County.parquet" / "DPQuery"
    place.mkdir(parents=True)
    table = pa.table(
        {
            "geocode": ["057100011", "057100031"],
            "query_name": ["tenure_dpq"] * 2,
            "tenure": ["detailed"] * 2,
            "query_shape": [[3]] * 2,
            "value": pa.array([[1, -2, 3], [4, 5, 6]], pa.list_(pa.int16())),
            "variance": pa.array([0.5, 20.0], pa.float32()),
        }
    )
    parquet.write_table(table, place / "part-0.parquet")
    (batch,) = br.census.NoisyMeasurements.open(tmp_path / "new").iter_values("County", "tenure")
    assert batch.values.tolist() == [[1, -2, 3], [4, 5, 6]]
    assert batch.sigma2[0] > 0.5  # the scale parameter is above the variance
    assert br.DiscreteGaussian(batch.sigma2).var() == pytest.approx([0.5, 20.0], rel=1e-13)


def test_a_zip_is_read_as_its_folder_is_and_leaves_nothing(tmp_path, monkeypatch):
    source, opened = br.datasets.path("noisy-measurements"), br.census.NoisyMeasurements.open
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    with zipfile.ZipFile(source) as archive:
        archive.extractall(tmp_path / "whole")
    (folder,) = (tmp_path / "whole").iterdir()
    zipped, whole = opened(source), opened(folder)
    assert zipped.levels == whole.levels
    for one, other in zip(
        zipped.iter_values("Block", "detailed"), whole.iter_values("Block", "detailed"), strict=True
    ):
        np.testing.assert_array_equal(one.values, other.values)
    del zipped, one
    gc.collect()
    assert list((tmp_path / "scratch").iterdir()) == []
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"bad\.zip"):
        opened(tmp_path / "bad.zip")
    assert list((tmp_path / "scratch").iterdir()) == []
