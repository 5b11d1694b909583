import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_records import PERSON

from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.tables import Histogram, Records, iter_records


def frame(**changes):
    columns = {
        "block": ["500010101001000", "010730051031000", "500010101001000"],
        "sex": [0, 1, 1],
        "age": [0, 110, 34],
        "race": [1, 63, 3],
        "hisp": [0, 1, 0],
        "name": ["x", "y", "z"],
    }
    return pd.DataFrame({**columns, **changes})


def test_columns_and_cells():
    records = Records.from_frame(frame(), schema=PERSON)
    assert len(records) == 3
    assert records.columns == tuple(frame().columns)
    assert records.table.schema.field("sex").type == pa.int16()
    assert records.geoids.tolist() == frame()["block"].tolist()
    assert records.codes("race").tolist() == [1, 63, 3]
    codes = {name: records.codes(name) for name in PERSON.names}
    assert records.cells().tolist() == PERSON.cell_index(codes).tolist()
    assert records.cells().dtype == records.codes("sex").dtype == np.int64
    pd.testing.assert_frame_equal(records.to_frame(), frame(), check_dtype=False)
    places, index = records.places()
    assert places.tolist() == ["010730051031000", "500010101001000"]
    assert index.tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", ["int64", "int32", "category", "string[pyarrow]"])
def test_places_and_codes_of_other_types(kind):
    blocks = [10730051031000, 500010101001000, 500010101001000]
    if kind == "int64":
        given = frame(block=blocks, sex=np.array([0, 1, 1], dtype="int8"))
    elif kind == "int32":
        given = frame(block=blocks, age=np.array([0, 110, 34], dtype="uint8"))
    else:
        given = frame(block=pd.Series([f"{b:015d}" for b in blocks], dtype=kind))
    records = Records.from_frame(given, schema=PERSON)
    assert records.geoids.tolist() == [f"{b:015d}" for b in blocks]


def test_take_and_replace():
    records = Records.from_frame(frame(), schema=PERSON)
    assert records.take([2, 0, 2]).to_frame()["name"].tolist() == ["z", "x", "z"]
    assert records.take(np.array([True, False, True])).codes("age").tolist() == [0, 34]
    assert len(records.take([])) == 0
    changed = records.replace(age=[1, 2, 3], weight=[0.5, 1.0, 2.0])
    assert changed.codes("age").tolist() == [1, 2, 3]
    assert changed.to_frame()["weight"].tolist() == [0.5, 1.0, 2.0]
    assert records.codes("age").tolist() == [0, 110, 34]
    with pytest.raises(ArgumentError, match="index must be <= 2, got 3"):
        records.take([3])
    with pytest.raises(ShapeError, match="index must have shape"):
        records.take(np.array([True]))
    with pytest.raises(ShapeError, match="age must have 3 values, got 1"):
        records.replace(age=[1])
    with pytest.raises(DataError, match="row 2, column 'age'"):
        records.replace(age=[1, 111, 3])


BAD = [
    ({"age": [0, 111, 5]}, r"row 2, column 'age': must be a whole number in \[0, 110\], got 111"),
    ({"age": np.array([0, 2**64 - 1, 5], dtype="uint64")}, r"row 2, column 'age': .* got 18446"),
    ({"race": [1, 2, 0]}, r"row 3, column 'race': .* got 0"),
    ({"sex": pd.array([0, None, 1], dtype="Int64")}, r"row 2, column 'sex': .* got None"),
    ({"sex": [0.0, 0.5, 1.0]}, r"column 'sex': .* got values of type double"),
    ({"sex": ["0", "1", "1"]}, r"row 1, column 'sex': .* or one of 'male', 'female', got '0'"),
    ({"block": ["500010101001000", "50001010100100", "x" * 15]}, r"row 2, column 'block': .* 15"),
    ({"block": ["500010101001000", "٠" * 15, "y" * 15]}, r"row 2, column 'block'"),
    ({"block": ["500010101001000", None, "y" * 15]}, r"row 2, column 'block': .* got None"),
    ({"block": [1, 2, 10**15]}, r"row 3, column 'block': .* got 1000000000000000"),
    ({"block": [1.0, 2.0, 3.0]}, r"column 'block': .* got values of type double"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_values_are_named_with_their_source(changes, message, tmp_path):
    with pytest.raises(DataError, match=f"^people: {message}"):
        Records.from_frame(frame(**changes), schema=PERSON, source="people")
    file = tmp_path / "people.parquet"
    frame(**changes).to_parquet(file, index=False)
    with pytest.raises(DataError, match=f"people.parquet: {message}"):
        Records.read(file, schema=PERSON)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_files_in_pieces(tmp_path, ending, chunk):
    file = tmp_path / f"people.{ending}"
    if ending == "csv":
        frame().to_csv(file, index=False)
    else:
        Records.from_frame(frame(), schema=PERSON).write(file)
    pieces = list(iter_records(file, schema=PERSON, chunk=chunk))
    assert [len(piece) for piece in pieces] == [min(chunk, 3)] * (3 // min(chunk, 3)) + (
        [1] if chunk == 2 else []
    )
    whole = Records.read(file, schema=PERSON)
    assert whole.to_frame()["block"].tolist() == frame()["block"].tolist()
    assert whole.cells().tolist() == Records.from_frame(frame(), schema=PERSON).cells().tolist()
    assert list(tmp_path.iterdir()) == [file]


def test_writing_twice_gives_the_same_bytes(tmp_path):
    records = Records.from_frame(frame(), schema=PERSON)
    records.write(tmp_path / "a.parquet")
    Records.read(tmp_path / "a.parquet", schema=PERSON).write(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_without_rows(tmp_path, ending):
    file = tmp_path / f"none.{ending}"
    none = Records.from_frame(frame(), schema=PERSON).take([])
    if ending == "csv":
        none.to_frame().to_csv(file, index=False)
    else:
        none.write(file)
    assert len(Records.read(file, schema=PERSON)) == 0
    assert Histogram.from_records(iter_records(file, schema=PERSON)).counts.shape[0] == 0


def test_the_row_is_counted_over_pieces(tmp_path):
    file = tmp_path / "people.parquet"
    frame(age=[1, 2, 200]).to_parquet(file, index=False)
    with pytest.raises(DataError, match="row 3, column 'age'"):
        list(iter_records(file, schema=PERSON, chunk=1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("block,sex\n1,2\n", "must have one column 'age'"),
        ("block,sex,age,race,hisp\n500010101001000,0,1.5,1,0\n", "row 1, column 'age': .*'1.5'"),
        ("block,sex,age,race,hisp\n500010101001000,0,,1,0\n", "row 1, column 'age': .* got ''"),
        ("block,sex,age,race,hisp\n500010101001000,0,1,1,0\n5,0,1,1,0\n", "row 2, column 'block'"),
        ("block,sex,age,race,hisp\n500010101001000,0,1\n", "cannot be read"),
        ("", "must have a header line"),
        (
            "block,sex,sex,age,race,hisp\n1,0,0,1,1,0\n",
            "column 'sex': must stand in the header once",
        ),
    ],
)
def test_bad_text_files(tmp_path, text, message):
    file = tmp_path / "people.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=f"people.csv: {message}"):
        Records.read(file, schema=PERSON)


def test_text_columns_of_a_text_file_are_kept_as_they_are(tmp_path):
    file = tmp_path / "people.csv"
    lines = ['\ufeffblock,sex,age,race,hisp,"a, b",code', '500010101001000,0,1,1,0,"x, y",007']
    file.write_text("\n".join(lines), encoding="utf-8")
    frame = Records.read(file, schema=PERSON).to_frame()
    assert frame["a, b"].tolist() == ["x, y"]
    assert frame["code"].tolist() == ["007"]
    file.write_bytes("block,sex,age,race,hisp,é\n".encode("latin-1"))
    with pytest.raises(DataError, match="cannot be read"):
        Records.read(file, schema=PERSON)


def test_damaged_and_foreign_files(tmp_path):
    file = tmp_path / "people.parquet"
    Records.from_frame(frame(), schema=PERSON).write(file)
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"people.parquet: cannot be read"):
        Records.read(file, schema=PERSON)
    with pytest.raises(DataError, match=r"none.csv: cannot be read"):
        Records.read(tmp_path / "none.csv", schema=PERSON)
    with pytest.raises(ArgumentError, match=r"must end in .parquet or .csv"):
        Records.read(tmp_path / "people.xlsx", schema=PERSON)
    with pytest.raises(ArgumentError, match="chunk must be >= 1"):
        list(iter_records(file, schema=PERSON, chunk=0))


def test_a_byte_that_was_changed_is_seen(tmp_path):
    file = tmp_path / "people.parquet"
    many = pd.concat([frame(age=[1, 2, 3])] * 500, ignore_index=True)
    Records.from_frame(many.assign(age=np.arange(1500) % 111), schema=PERSON).write(file)
    data = bytearray(file.read_bytes())
    start = pq.ParquetFile(file).metadata.row_group(0).column(2).data_page_offset
    data[start + 40] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(DataError, match="cannot be read"):
        Records.read(file, schema=PERSON)
