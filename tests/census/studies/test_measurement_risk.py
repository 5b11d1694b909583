"""Posterior of every cell of a noisy measurement file, against the formula row by row."""

import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from oracles.noisy_measurements import frame_of, pmf, posterior
from pyarrow import parquet
from studies import run_measurements

import bayesrisk as br
from bayesrisk import DataError
from bayesrisk.exceptions import OutputError
from bayesrisk.inference.count import measurements as _measurement_tables

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD"
    return br.census.write_nmf(folder, rng=31, counties=1, block_groups=(1, 2), blocks=(1, 3))


def risk_of(result):
    return pd.read_parquet(f"{result.folder}/risk.parquet")


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
        ("State", "total", 0.2, 0),
        ("US", "detailed", 0.99, 0),
    ],
)
def test_every_cell_of_one_query(sample, tmp_path, level, query, prior, known_count):
    result = run_measurements(
        sample.folder, tmp_path / "r", prior=prior, known_count=known_count,
        level=level, query=query, exceeds=[1.05, 1.5], budget="pl94-us",
    )  # fmt: skip
    ours = risk_of(result)
    theirs = expected(sample, level, query, prior=prior, known_count=known_count)
    theirs = theirs.sort_values(["geocode", "cell"], ignore_index=True)
    assert [str(t) for t in ours.dtypes[:5]] == ["category", "int32", "int64", *["float64"] * 2]
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
    assert (ours["values"] == 1).all()
    for row in (*result.exceedance, *result.curve[::7]):
        assert row["cells"] == (theirs["risk_ratio"] > row["risk_ratio"]).sum()
    assert result.curve[0]["risk_ratio"] == 1.0
    # Constraints only ever settle a cell: elsewhere both columns agree to the bit.
    free = ours["settled_by"].isna() & ours["risk_ratio_with_constraints"].notna()
    for name in ("posterior", "risk_ratio"):
        np.testing.assert_array_equal(ours[name][free], ours[f"{name}_with_constraints"][free])


def test_what_the_noise_alone_gives(sample, tmp_path):
    """The expectation by adding up the pmf over every noise value that exceeds."""
    limits = [0.5, 0.97, 1.0, 1.2, 1.5, 2.0, 5.0, 9.99]
    result = run_measurements(
        sample.folder, tmp_path / "r", prior=0.1, known_count=2, level="Tract", exceeds=limits,
        budget="pl94-us",
    )  # fmt: skip
    noise = np.arange(-1500, 1501)
    for row in result.exceedance:
        for true, mean, error in (
            (2, row["expected_known"], row["error_known"]),
            (3, row["expected_one_more"], row["error_one_more"]),
        ):
            total, variance = 0.0, 0.0
            for rho, units in Counter(filter(None, sample.rho["Tract", "detailed"])).items():
                sigma2 = float(1 / rho)
                ratio = br.risk_ratio(true + noise, sigma2=sigma2, prior=0.1, known_count=2)
                q = pmf(noise, sigma2)[ratio > row["risk_ratio"]].sum()
                total += units * 2016 * q
                variance += units * 2016 * q * (1 - q)
            assert mean == pytest.approx(total, rel=1e-11, abs=1e-11)
            assert error == pytest.approx(np.sqrt(variance), rel=1e-10, abs=1e-10)


def test_a_file_of_noise_alone_is_within_its_error(tmp_path):
    """Nobody lives here: what exceeds is noise; with one more in every cell it would not fit."""
    sample = br.census.write_nmf(tmp_path / "nmf", rng=8, blocks=(6, 9), block_groups=(2, 2))
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
    result = run_measurements(
        sample.folder, tmp_path / "r", prior=0.1, exceeds=[1.2, 1.5, 2.0], query="detailed"
    )
    for row in result.exceedance:
        assert abs(row["cells"] - row["expected_known"]) < 4 * row["error_known"]
        assert abs(row["cells"] - row["expected_one_more"]) > 8 * row["error_one_more"]


def test_the_size_of_shards_does_not_matter(sample, tmp_path):
    for query in (None, "votingage * cenrace"):
        found = []
        for size in (2, 1000):
            place = tmp_path / f"{query}-{size}"
            result = run_measurements(
                sample.folder, place, prior=0.1, level="Block_Group", query=query,
                units_per_shard=size,
            )  # fmt: skip
            kept = {"folder", "shards", "computed"}
            found.append(
                (risk_of(result).astype({"geocode": str, "settled_by": str}),
                 {k: v for k, v in result.to_dict().items() if k not in kept})
            )  # fmt: skip
        for frame, summary in found[1:]:
            pd.testing.assert_frame_equal(frame, found[0][0])
            assert summary == found[0][1]


@pytest.mark.slow
def test_rows_in_any_order_and_in_small_groups(sample, tmp_path):
    """Row groups are skipped by what their footer says of units; nothing depends on their order."""
    folder = tmp_path / "US_Person_PL_PROD"
    shutil.copytree(sample.folder, folder)
    rng = np.random.default_rng(3)
    for place, file in enumerate(sorted(folder.rglob("*.parquet"))):
        if file.is_file():
            table = parquet.read_table(file, partitioning=None)
            order = rng.permutation(table.num_rows) if place % 2 else np.arange(table.num_rows)
            parquet.write_table(
                table.take(order), file, row_group_size=3, write_statistics=place % 3 > 0
            )
    settings = {"prior": 0.1, "units_per_shard": 5}
    whole = run_measurements(sample.folder, tmp_path / "a", **settings)
    mixed = run_measurements(folder, tmp_path / "b", **settings)
    pd.testing.assert_frame_equal(risk_of(whole), risk_of(mixed))


def test_a_folder_without_constraints(sample, tmp_path):
    """Nothing is settled, no places around are known to be complete: both columns are the same."""
    folder = tmp_path / "nmf"
    for level in ("Tract", "State"):
        kind = f"{level}.parquet/DPQuery"
        shutil.copytree(sample.folder / kind, folder / kind)
    result = run_measurements(folder, tmp_path / "r", prior=0.1, level="Tract")
    assert (result.unmeasured, result.settled, result.strengthened) == (None, {}, 0)
    frame = risk_of(result)
    np.testing.assert_array_equal(frame["risk_ratio"], frame["risk_ratio_with_constraints"])
    assert (frame["values"] == 1).all()


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


def test_thresholds_of_a_prior_next_to_1():
    tables = _measurement_tables.MeasurementTables(1 - 1e-12, 0)
    values = np.arange(-20_000, 30_000)[None, :]
    _, ratio = tables.look_up(values, np.array([1e6]))
    for limit in np.sort(ratio.ravel())[[100, 25_000, 49_000]]:
        assert tables.exceedance([limit]).loc[0, "cells"] == (ratio > limit).sum() > 0


def test_tables_from_counts_that_were_seen_elsewhere():
    """What shards count adds up to what one table would have counted."""
    values = np.random.default_rng(1).integers(-60, 60, (6, 50))
    values[2, 3] = 2**40
    scales = np.array([4.0, 9.0, 4.0, 4.0, 9.0, 9.0])
    whole, joined = (_measurement_tables.MeasurementTables(0.2, 1) for _ in range(2))
    whole.look_up(values, scales)
    for part in (slice(0, 2), slice(2, 6)):
        some = _measurement_tables.MeasurementTables(0.2, 1)
        some.look_up(values[part], scales[part])
        joined.add(*some.counted())
    assert joined.counted() == whole.counted()
    assert joined.cells == whole.cells == values.size
    assert joined.largest_ratio() == whole.largest_ratio()
    limits = [0.9, 1.0, 1.3, 2.5]
    pd.testing.assert_frame_equal(joined.exceedance(limits), whole.exceedance(limits), rtol=1e-14)


# --- what is refused, and what is left behind ------------------------------------------------


def test_a_folder_that_changed_is_another_run(sample, tmp_path):
    folder = tmp_path / "nmf"
    shutil.copytree(sample.folder, folder)
    run_measurements(folder, tmp_path / "r", prior=0.1, level="State")
    (folder / "US.parquet" / "Constraint" / "part-00000.parquet").unlink()
    with pytest.raises(OutputError, match=r"another configuration .other measurements"):
        run_measurements(folder, tmp_path / "r", prior=0.1, level="State", resume=True)


def test_a_bad_row_at_the_end_is_named(sample, tmp_path):
    folder = tmp_path / "nmf"
    shutil.copytree(sample.folder / "Block.parquet" / "DPQuery", folder / "Block.parquet/DPQuery")
    last = max((folder / "Block.parquet").rglob("*.parquet"))
    last.write_bytes(last.read_bytes()[:-40])
    with pytest.raises(DataError, match=last.name):
        run_measurements(folder, tmp_path / "r", prior=0.1)
    assert [p.name for p in tmp_path.iterdir()] == ["nmf"]
