import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from small_records import people, tables
from table_strategies import documents, records

from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    OutputError,
    ShapeError,
)
from bayesrisk.tables import PublishedTables, Records, Workload, exchange, tabulate


def noisy():
    rng = np.random.default_rng(5)
    made = tables()
    counts = {
        key: sparse.csr_array(value.toarray() + rng.integers(-3, 4, value.shape))
        for key, value in made.counts.items()
    }
    hidden = {key: sparse.csr_array(rng.random(value.shape) < 0.3) for key, value in counts.items()}
    counts = {
        key: sparse.csr_array(v.toarray() * ~hidden[key].toarray()) for key, v in counts.items()
    }
    return tables(counts=counts, suppressed=hidden)


def content(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@settings(max_examples=25)
@given(st.data())
def test_round_trip_byte_for_byte(tmp_path_factory, data):
    document = data.draw(documents())
    made = Workload.from_dict(document)
    rows = pd.DataFrame(
        data.draw(records(document["schema"])), columns=[*made.schema.names, "street"]
    )
    types = dict.fromkeys(made.schema.names, "int64") | {"street": str}
    published = tabulate(Records.from_frame(rows.astype(types), schema=made.schema), made)
    folder = tmp_path_factory.mktemp("tables")
    published.write(folder / "a")
    again = PublishedTables.read(folder / "a")
    assert again == published
    again.write(folder / "b")
    assert content(folder / "a") == content(folder / "b")


def test_noise_and_suppression_round_trip(tmp_path):
    made = noisy()
    assert made.signed
    assert not tables().signed
    made.write(tmp_path / "a")
    again = PublishedTables.read(tmp_path / "a")
    assert again == made
    again.write(tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    frame = made.to_frame()
    assert frame["count"].isna().sum() == sum(h.nnz for h in made.suppressed.values())
    assert made != tables()
    assert made != 3


def test_the_folder_is_a_plain_data_set(tmp_path):
    tables().write(tmp_path / "t")
    frame = pd.read_parquet(tmp_path / "t")
    assert frame.columns.tolist() == ["level", "geoid", "table", "cell", "count"]
    assert str(frame["count"].dtype) == "int64"
    assert (frame["count"] == 0).any()
    listed = frame[frame["count"] > 0].reset_index(drop=True).astype({"count": "Int64"})
    pd.testing.assert_frame_equal(listed, tables().to_frame(), check_dtype=False)
    one = frame.query("level == 'tract' and table == 'P1'").set_index("geoid")["count"]
    assert one.to_dict() == people()["block"].str[:11].value_counts().to_dict()


@pytest.mark.parametrize("most", [0, 50, 2**17])
def test_what_is_not_written_is_said_to_be_zero(tmp_path, monkeypatch, most):
    monkeypatch.setattr(exchange, "WHOLE", most)
    made = noisy()
    made.write(tmp_path / "t")
    rows = pq.read_table(tmp_path / "t" / "part-00000.parquet").to_pandas()
    manifest = json.loads((tmp_path / "t" / "_manifest.json").read_text())
    left_out = {tuple(key) for key in manifest.get("absent", {}).get("tables", [])}
    large = {key for key, counts in made.counts.items() if np.prod(counts.shape) > most}
    assert left_out == large
    assert len(large) == {0: len(made.counts), 50: 2, 2**17: 0}[most]
    assert ("is 0" in json.dumps(manifest.get("absent", ""))) == bool(large)
    for key, counts in made.counts.items():
        mine = rows[(rows["level"] == key[0]) & (rows["table"] == key[1])]
        unlisted = int(np.prod(counts.shape)) - len(mine)
        zeros = (counts.toarray() == 0).sum() - made.suppressed[key].nnz
        assert unlisted == (zeros if key in large else 0)
        assert (mine["count"] == 0).sum() == zeros - unlisted
    again = PublishedTables.read(tmp_path / "t")
    assert again == made
    assert all((again.counts[key].data != 0).all() for key in made.counts)


def test_parts_have_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_PART_ROWS", 30)
    monkeypatch.setattr(exchange, "_SLICE", 20)
    made = noisy()
    made.write(tmp_path / "t")
    parts = sorted(p.name for p in (tmp_path / "t").glob("part-*"))
    assert len(parts) > 3
    assert PublishedTables.read(tmp_path / "t") == made
    (tmp_path / "t" / parts[1]).unlink()
    with pytest.raises(DataError, match=r"must hold the parts of its manifest.*part-00001"):
        PublishedTables.read(tmp_path / "t")


def test_rows_in_any_order_are_read(tmp_path):
    tables().write(tmp_path / "t")
    file = tmp_path / "t" / "part-00000.parquet"
    frame = pd.read_parquet(file).sample(frac=1.0, random_state=2)
    frame["table"] = frame["table"].astype("category")
    frame["count"] = frame["count"].astype("int32")
    frame.to_parquet(file, index=False)
    rewrite(tmp_path / "t", without_digests)
    assert PublishedTables.read(tmp_path / "t") == tables()


def edited(tmp_path, change, name="part-00000.parquet"):
    """Write tables, change a file, and return the folder; the manifest keeps the row number."""
    folder = tmp_path / "t"
    tables().write(folder)
    frame = change(pd.read_parquet(folder / name).reset_index(drop=True))
    table = (
        frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    )
    pq.write_table(table.replace_schema_metadata(None), folder / name)
    rewrite(folder, without_digests)
    return folder


def rewrite(folder, change):
    """Change the manifest as if the folder had been written by hand: without a seal."""
    file = folder / "_manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["seal"]
    change(manifest)
    file.write_text(json.dumps(manifest))


def without_digests(manifest):
    del manifest["geographies"]
    for part in manifest["parts"]:
        del part["sha256"]


def at(row, column, value):
    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at(4, "level", "county"), r"row 5, column 'level': must be one of tract, block"),
        (at(4, "level", None), r"row 5, column 'level': must be a text, got none"),
        (at(4, "table", "P99"), r"row 5, column 'table': must be a table of level 'tract'"),
        (at(4, "geoid", "99999999999"), r"row 5, column 'geoid': .* got '99999999999'"),
        (at(4, "cell", "P0010002"), r"row 5, column 'cell': must be a cell of its table"),
        (at(4, "count", -2), r"row 5, column 'count': must be >= 0 .* got -2"),
        (
            lambda f: f.astype({"count": float}).assign(
                count=lambda g: g["count"] + (g.index == 7) / 2
            ),
            r"row 8, column 'count': must be of type int64, got [0-9]+\.5 \(double\)",
        ),
        (lambda f: f.astype({"count": float}), r"row 1, column 'count': must be of type int64"),
        (lambda f: f.assign(geoid=1), r"row 1, column 'geoid': must be of type string, got 1"),
        (lambda f: f.iloc[[*range(len(f) - 1), 3]], r"row \d+, columns 'level' to 'cell': .* once"),
        (lambda f: f.iloc[:-1], r"must have \d+ rows, got \d+"),
        (lambda f: f.drop(columns="cell"), "columns must be level, geoid, table, cell, count"),
    ],
)
def test_bad_rows_are_refused(tmp_path, change, message):
    folder = edited(tmp_path, change)
    with pytest.raises(DataError, match=f"part-00000.parquet: {message}"):
        PublishedTables.read(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at(1, "geoid", "01"), "row 2, column 'geoid': must be a place of 11 digits, got '01'"),
        (lambda f: f.iloc[[0, 0, *range(2, len(f))]], "row 2, column 'geoid': must be sorted"),
        (at(0, "level", "block"), "row 1, column 'level': must be 'tract', got 'block'"),
        (lambda f: f.iloc[:-1], "must have 5 rows, got 4"),
    ],
)
def test_bad_places_are_refused(tmp_path, change, message):
    folder = edited(tmp_path, change, "_geographies.parquet")
    with pytest.raises(DataError, match=f"_geographies.parquet: {message}"):
        PublishedTables.read(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("workload"), "must have format"),
        (lambda m: m.update(parts=3), "is not the manifest of tables"),
        (lambda m: m.update(format="bayesrisk tables 9"), "must have format"),
        (lambda m: m["parts"][0].update(file="../part-00000.parquet"), "must have format"),
        (lambda m: m["workload"]["tables"].clear(), "workload: tables must have at least one"),
        (lambda m: m["places"].pop("tract"), "places must be of tract, block"),
        (
            lambda m: m["workload"]["tables"][0].update(levels=["street"]),
            "workload: level must be one of",
        ),
    ],
)
def test_bad_manifests_are_refused(tmp_path, change, message):
    tables().write(tmp_path / "t")
    rewrite(tmp_path / "t", change)
    with pytest.raises(DataError, match=f"_manifest.json: {message}"):
        PublishedTables.read(tmp_path / "t")


def test_a_table_that_the_manifest_does_not_name_is_an_error(tmp_path):
    """A missing row is a zero; a table that is not there at all cannot be asked for."""
    tables().write(tmp_path / "t")
    made = PublishedTables.read(tmp_path / "t")
    with pytest.raises(ArgumentError, match="table must be one of P1, P6, P12, got 'P8'"):
        made.count("block", "P8", "500010101001000")
    with pytest.raises(ArgumentError, match="geoid must be a place of level 'block'"):
        made.count("block", "P1", "500010101001009")


def test_files_that_are_missing(tmp_path):
    for name in ("part-00000.parquet", "_geographies.parquet", "_manifest.json"):
        folder = tmp_path / name
        tables().write(folder)
        (folder / name).unlink()
        with pytest.raises(DataError, match=name):
            PublishedTables.read(folder)
    with pytest.raises(DataError, match=r"_manifest.json"):
        PublishedTables.read(tmp_path / "nothing")


def test_folders_in_use(tmp_path):
    tables().write(tmp_path / "t")
    before = content(tmp_path / "t")
    noisy().write(tmp_path / "t")
    assert PublishedTables.read(tmp_path / "t") == noisy()
    tables().write(tmp_path / "t")
    assert content(tmp_path / "t") == before
    (tmp_path / "t" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'notes.txt'; nothing was changed"):
        noisy().write(tmp_path / "t")
    assert content(tmp_path / "t") == before | {"notes.txt": b"mine"}
    foreign = tmp_path / "parts"
    foreign.mkdir()
    (foreign / "part-00000.parquet").write_bytes(b"")
    with pytest.raises(OutputError, match=r"holds 'part-00000.parquet'"):
        tables().write(foreign)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"geoids": {"block": []}}, ArgumentError, "geoids must be of tract, block"),
        (
            {"geoids": {"tract": ["2", "1"], "block": []}},
            ArgumentError,
            "geoids of 'tract' must be one axis of sorted places",
        ),
        ({"geoids": {"tract": ["1"], "block": []}}, ArgumentError, "must have 11 digits"),
        ({"counts": {}}, ArgumentError, "counts must be of every table"),
        ({"suppressed": {("block", "P8"): None}}, ArgumentError, "suppressed must be of known"),
        (
            {"suppressed": {("block", "P1"): np.ones((1, 1), dtype=bool)}},
            ShapeError,
            r"must have shape \(3, 1\), got \(1, 1\)",
        ),
        (
            {"suppressed": {("block", "P1"): np.ones((3, 1))}},
            ArgumentTypeError,
            "must hold bool, got float64",
        ),
        (
            {"suppressed": {("block", "P1"): np.ones((3, 1), dtype=bool)}},
            ArgumentError,
            "must be 0 where suppressed",
        ),
    ],
)
def test_constructor_is_strict(changes, error, message):
    with pytest.raises(error, match=message):
        tables(**changes)
