"""Posterior of every cell of a noisy measurement file, against the formula row by row."""

import json

import numpy as np
import pandas as pd
import pytest
from oracles.noisy_measurements import frame_of, pmf, posterior
from pyarrow import parquet
from refusals import NOT_COUNTS, NOT_POSITIVE, NOT_PRIORS, refuses

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.exceptions import OutputError
from bayesrisk.inference.count import _measurement_kernels
from bayesrisk.inference.count import measurement_tables as _measurement_tables
from bayesrisk.readers.nmf import reader

BUDGET = br.accounting.census_2020_budget("pl94")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.readers.write_nmf(tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=31)


@pytest.fixture(scope="module")
def source(sample):
    return br.readers.NoisyMeasurements.open(sample.folder, budget=BUDGET)


def expected(sample, level, query, **settings):
    """Return the table that the output should be, from pandas and the public functions."""
    frame = frame_of(sample.folder, level)
    frame = frame[frame["query_name"] == f"{query}_dpq"]
    rho = dict(zip(sample.geocodes[level], sample.rho[level, query], strict=True))
    parts = []
    for code, value in zip(frame["geocode"], frame["value"], strict=True):
        noise = {"sigma2": float(1 / rho[code]), **settings}
        parts.append(
            pd.DataFrame(
                {
                    "geocode": code,
                    "cell": np.arange(len(value)),
                    "noisy_count": np.asarray(value, dtype=np.int64),
                    "posterior": br.posterior_probability(value, **noise),
                    "risk_ratio": br.risk_ratio(value, **noise),
                    "plain": posterior(np.asarray(value), **noise),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(
    ("level", "query", "prior", "known_count"),
    [
        ("Block", "detailed", 0.1, 0),
        ("Block", "total", 1 / 864, 3),
        ("Tract", "hispanic * cenrace", 0.5, 1),  # three scales in one file
        ("State", "total", 0.2, 0),  # thousands: beyond the table where sigma2 is 1.2
        ("US", "detailed", 0.99, 0),
    ],
)
def test_every_cell(sample, source, tmp_path, level, query, prior, known_count):
    result = br.experiments.noisy_measurement_risk(
        source, tmp_path / "r.parquet", prior=prior, known_count=known_count,
        level=level, query=query, exceeds=[1.05, 1.5],
    )  # fmt: skip
    ours = pd.read_parquet(result.output)
    theirs = expected(sample, level, query, prior=prior, known_count=known_count)
    assert [str(t) for t in ours.dtypes] == ["category", "int32", "int64", "float64", "float64"]
    assert ours["geocode"].astype(str).tolist() == theirs["geocode"].tolist()
    for column in ("cell", "noisy_count", "posterior", "risk_ratio"):
        np.testing.assert_array_equal(ours[column], theirs[column])  # bit for bit
    # The plain formula loses digits where its exponent is rounded: 2**-53 of its size.
    exponent = 2.0 * np.abs(theirs["noisy_count"] - known_count) + 1.0
    scale = min(float(1 / r) for r in sample.rho[level, query] if r)
    room = (8 + 4 * exponent / (2 * scale) + abs(np.log(prior))) * 2.0**-52
    assert (np.abs(ours["posterior"] - theirs["plain"]) <= room * theirs["plain"] + 1e-300).all()
    assert (result.cells, result.units) == (len(theirs), theirs["geocode"].nunique())
    assert result.unmeasured == len(sample.geocodes[level]) - result.units
    for row in result.exceedance.itertuples():
        assert row.cells == (theirs["risk_ratio"] > row.risk_ratio).sum()
    for row in result.curve.iloc[::7].itertuples():
        assert row.cells == (theirs["risk_ratio"] > row.risk_ratio).sum()
    assert result.curve["risk_ratio"].iloc[0] == 1.0


def test_what_the_noise_alone_gives(sample, source, tmp_path):
    """The expectation by adding up the pmf over every noise value that exceeds."""
    limits = [0.5, 0.97, 1.0, 1.2, 1.5, 2.0, 5.0, 9.99]
    result = br.experiments.noisy_measurement_risk(
        source, tmp_path / "r.parquet", prior=0.1, known_count=2, level="Tract", exceeds=limits
    )
    noise = np.arange(-1500, 1501)
    for row in result.exceedance.itertuples():
        for true, mean, error in (
            (2, row.expected_known, row.error_known),
            (3, row.expected_one_more, row.error_one_more),
        ):
            total, variance = 0.0, 0.0
            for rho in sample.rho["Tract", "detailed"]:
                if rho:
                    sigma2 = float(1 / rho)
                    ratio = br.risk_ratio(true + noise, sigma2=sigma2, prior=0.1, known_count=2)
                    q = pmf(noise, sigma2)[ratio > row.risk_ratio].sum()
                    total += 2016 * q
                    variance += 2016 * q * (1 - q)
            assert mean == pytest.approx(total, rel=1e-11, abs=1e-11)
            assert error == pytest.approx(np.sqrt(variance), rel=1e-10, abs=1e-10)


def test_a_file_of_noise_alone_is_within_its_error(tmp_path):
    """Nobody lives here: what exceeds is noise; with one more in every cell it would not fit."""
    sample = br.readers.write_nmf(tmp_path / "nmf", rng=8, blocks=(6, 9), block_groups=(2, 2))
    files = sorted((sample.folder / "Block.parquet" / "DPQuery").rglob("*.parquet"))
    truth = dict(zip(sample.geocodes["Block"].tolist(), sample.counts["Block"], strict=True))
    for file in files:
        table = parquet.read_table(file, partitioning=None)
        rows = table.filter([n == "detailed_dpq" for n in table["query_name"].to_pylist()])
        noise = [
            np.array(v) - truth[c]
            for v, c in zip(rows["value"].to_pylist(), rows["geocode"].to_pylist(), strict=True)
        ]
        place = rows.schema.get_field_index("value")
        parquet.write_table(rows.set_column(place, "value", [[v.tolist() for v in noise]]), file)
    result = br.experiments.noisy_measurement_risk(
        sample.folder, tmp_path / "r.parquet", prior=0.1, exceeds=[1.2, 1.5, 2.0]
    )
    for row in result.exceedance.itertuples():
        assert abs(row.cells - row.expected_known) < 4 * row.error_known
        assert abs(row.cells - row.expected_one_more) > 8 * row.error_one_more


def test_batches_do_not_matter(source, tmp_path, monkeypatch):
    settings = {"prior": 0.1, "level": "Block_Group", "query": "votingage * cenrace"}
    whole = br.experiments.noisy_measurement_risk(source, tmp_path / "a.parquet", **settings)
    monkeypatch.setattr(reader, "BATCH_CELLS", 300)
    parts = br.experiments.noisy_measurement_risk(source, tmp_path / "b.parquet", **settings)
    pd.testing.assert_frame_equal(whole.curve, parts.curve)
    a, b = pd.read_parquet(whole.output), pd.read_parquet(parts.output)
    pd.testing.assert_frame_equal(a.astype({"geocode": str}), b.astype({"geocode": str}))
    groups = parquet.ParquetFile(parts.output).num_row_groups
    assert groups > parquet.ParquetFile(whole.output).num_row_groups


def test_the_file_says_what_it_is(source, tmp_path):
    seen = []
    result = br.experiments.noisy_measurement_risk(
        source, tmp_path / "r.parquet", prior=0.25, known_count=1, level="County",
        progress=lambda *position: seen.append(position),
    )  # fmt: skip
    about = json.loads(parquet.read_schema(result.output).metadata[b"bayesrisk"])
    assert about == {
        "level": "County",
        "query": "detailed",
        "prior": 0.25,
        "known_count": 1,
        "version": br.__version__,
    }
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(source.n_rows("County").values())
    assert set(result.seconds) == {"read", "compute", "write"}
    assert all(value > 0 for value in result.seconds.values())


def test_a_folder_without_constraints(sample, tmp_path):
    import shutil

    folder = tmp_path / "nmf"
    shutil.copytree(sample.folder / "Tract.parquet" / "DPQuery", folder / "Tract.parquet/DPQuery")
    result = br.experiments.noisy_measurement_risk(
        folder, tmp_path / "r.parquet", prior=0.1, level="Tract"
    )
    assert result.unmeasured is None


# --- tables and kernel ------------------------------------------------------------------------


def test_counts_beyond_the_table(monkeypatch):
    monkeypatch.setattr(_measurement_tables, "_REACH", 5)
    tables = _measurement_tables.MeasurementTables(0.3, 2)
    values = np.array([[-9, 0, 2, 7, 8, 400], [0, 0, 0, 0, 0, 2**40]])
    for rows in (values, values[::-1]):
        found, ratio = tables.look_up(rows, np.array([4.0, 9.0]))
        for i, sigma2 in enumerate((4.0, 9.0)):
            part = slice(6 * i, 6 * i + 6)
            noise = {"sigma2": sigma2, "prior": 0.3, "known_count": 2}
            np.testing.assert_array_equal(found[part], br.posterior_probability(rows[i], **noise))
            np.testing.assert_array_equal(ratio[part], br.risk_ratio(rows[i], **noise))
    assert tables.cells == 24
    assert tables.largest_ratio() == br.risk_ratio(400, sigma2=4.0, prior=0.3, known_count=2)
    assert tables.exceedance([1.5]).loc[0, "cells"] == sum(
        2 * (br.risk_ratio(values[i], sigma2=s, prior=0.3, known_count=2) > 1.5).sum()
        for i, s in ((0, 4.0), (1, 9.0), (1, 4.0), (0, 9.0))
    ) / 2  # fmt: skip
    assert tables.exceedance([1 / 0.3, 10.0])["cells"].tolist() == [0, 0]


def test_thresholds_that_are_attained_count_cells_strictly_above():
    tables = _measurement_tables.MeasurementTables(0.1, 0)
    values = np.arange(-20, 60)[None, :]
    _, ratio = tables.look_up(values, np.array([10.09]))
    for limit in np.unique(ratio):
        assert tables.exceedance([limit]).loc[0, "cells"] == (ratio > limit).sum()


def test_the_kernel_without_its_compiler():
    table, histogram = np.arange(8.0).reshape(4, 2), np.zeros(4, dtype=np.int64)
    found, ratio = np.full(5, np.nan), np.full(5, np.nan)
    values = np.array([2, 5, 6, 1, 3])
    outside = _measurement_kernels.look_up.py_func(values, 2, table, histogram, found, ratio)
    assert outside == 2
    assert histogram.tolist() == [1, 1, 0, 1]
    np.testing.assert_array_equal(found, [0, 6, np.nan, np.nan, 2])
    np.testing.assert_array_equal(ratio, [1, 7, np.nan, np.nan, 3])


# --- what is refused, and what is left behind ------------------------------------------------


def test_bad_arguments(source, tmp_path):
    def call(**settings):
        path = tmp_path / "r.parquet"
        return br.experiments.noisy_measurement_risk(source, path, **{"prior": 0.1, **settings})

    for bad in NOT_PRIORS:
        assert refuses(lambda bad: call(prior=bad), "prior", bad)
    for bad in [b for b in NOT_COUNTS if b != []]:
        assert refuses(lambda bad: call(known_count=bad), "known_count", bad)
    for bad in NOT_POSITIVE:
        assert refuses(lambda bad: call(exceeds=[1.5, bad]), "exceeds", bad)
    for bad in ("1.5", 1.5, None):
        assert refuses(lambda bad: call(exceeds=bad), "exceeds", bad)
    with pytest.raises(ArgumentError, match="level must be one of US, State"):
        call(level="Prim")
    with pytest.raises(ArgumentError, match="query must be one of cenrace; detailed"):
        call(query="age")
    assert list(tmp_path.iterdir()) == []


def test_bad_outputs(source, tmp_path):
    (tmp_path / "mine.parquet").write_text("mine", encoding="utf-8")
    for path, kind, text in (
        (tmp_path / "r.csv", ArgumentError, "output must end in .parquet"),
        (tmp_path / "mine.parquet", OutputError, "exists already"),
        (tmp_path / "no" / "r.parquet", OutputError, "folder .* does not exist"),
    ):
        with pytest.raises(kind, match=text):
            br.experiments.noisy_measurement_risk(source, path, prior=0.1)
    assert (tmp_path / "mine.parquet").read_text(encoding="utf-8") == "mine"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError, OSError("disk full")])
def test_nothing_is_left_half_written(source, tmp_path, stop):
    def interrupt(done, total):
        raise stop

    kind = OutputError if isinstance(stop, OSError) else stop
    with pytest.raises(kind):
        br.experiments.noisy_measurement_risk(
            source, tmp_path / "r.parquet", prior=0.1, progress=interrupt
        )
    assert list(tmp_path.iterdir()) == []


def test_a_bad_row_at_the_end_leaves_nothing(sample, tmp_path):
    import shutil

    folder = tmp_path / "nmf"
    shutil.copytree(sample.folder / "Block.parquet" / "DPQuery", folder / "Block.parquet/DPQuery")
    last = max((folder / "Block.parquet").rglob("*.parquet"))
    last.write_bytes(last.read_bytes()[:-40])
    with pytest.raises(DataError, match=last.name):
        br.experiments.noisy_measurement_risk(folder, tmp_path / "r.parquet", prior=0.1)
    assert [p.name for p in tmp_path.iterdir()] == ["nmf"]
