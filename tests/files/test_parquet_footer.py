"""What a Parquet file says of its lists and pages, against pyarrow's own view of sound files."""

import numpy as np
import pyarrow as pa
import pytest
from fuzz.page_headers import lie
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bayesrisk._files import parquet as footer
from bayesrisk.exceptions import DataError

NUMBERS = st.lists(st.lists(st.integers(-5, 5), max_size=20), min_size=1, max_size=30)


@given(rows=NUMBERS, group=st.integers(1, 30))
def test_numbers_are_those_of_pyarrow(rows, group, tmp_path_factory):
    file = tmp_path_factory.mktemp("footer") / "a.parquet"
    table = pa.table(
        {"text": ["a"] * len(rows), "value": rows, "other": rows, "x": [0.5] * len(rows)}
    )
    parquet.write_table(table, file, row_group_size=group)
    about = parquet.ParquetFile(file).metadata
    held = sum(
        about.row_group(i).column(j).num_values for i in range(about.num_row_groups) for j in (1, 2)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footer, "MAX_NUMBERS_PER_BYTE", 0)
        patch.setattr(footer, "MAX_NUMBERS", held)
        footer.check_lists(file, ["value", "other"])
        patch.setattr(footer, "MAX_NUMBERS", held - 1)
        with pytest.raises(DataError, match=f"must hold at most {held - 1} numbers.*got {held}$"):
            footer.check_lists(file, ["value", "other"])


@given(data=st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_an_error(data, tmp_path_factory):
    file = tmp_path_factory.mktemp("footer") / "a.parquet"
    file.write_bytes(data + len(data).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        footer.check_lists(file, ["value"])


def test_every_kind_of_field():
    """Sixteen columns, so that a list has its length by itself; and a footer cut anywhere."""
    sink = pa.BufferOutputStream()
    table = pa.table({f"c{i}": np.arange(3.0) for i in range(16)}).replace_schema_metadata(
        {"a": "b"}
    )
    parquet.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little")
    text = data[-8 - length : -8]
    found = footer._Compact(text).struct()
    assert len(found[4][0][1]) == 16
    assert [c[3][5] for c in found[4][0][1]] == [3] * 16
    for cut in range(length):
        with pytest.raises((IndexError, ValueError)):
            footer._Compact(text[:cut]).struct()


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "data_page_size": st.sampled_from([1, 100, 2**20]),
        "write_page_checksum": st.booleans(),
        "write_page_index": st.booleans(),
        "row_group_size": st.integers(1, 40),
    }
)


@given(rows=NUMBERS, options=OPTIONS)
def test_pages_of_sound_files_are_those_of_pyarrow(rows, options, tmp_path_factory):
    file = tmp_path_factory.mktemp("footer") / "a.parquet"
    some = [None if len(row) % 3 == 0 else len(row) for row in rows]
    table = pa.table({"text": [str(n) for n in some], "some": some, "none": [None] * len(rows)})
    flags = pa.array([len(row) > 5 for row in rows])
    parquet.write_table(
        table.append_column("flag", flags).append_column("list", [rows]), file, **options
    )
    footer.check_pages(file)
    about = parquet.ParquetFile(file).metadata
    with file.open("rb") as stream:
        found, end = footer._abouts(stream)
        for number, columns in enumerate(found):
            for place, column in enumerate(columns):
                known = about.row_group(number).column(place)
                stored, length = footer._pages(stream, column, end, end)
                assert stored == known.total_compressed_size
                headers = known.total_uncompressed_size - length
                assert 0 < headers < stored


@pytest.mark.parametrize(
    ("where", "field", "value", "words"),
    [
        ("data", 1, 2**30, "pages must be at most 16777216 bytes long, got 10737"),
        ("data", 1, -1, "cannot hold -1 bytes"),
        ("data", 2, 2**30, "cannot be 1073741824 bytes long"),
        ("data", 2, -1, "cannot be -1 bytes long"),
        ("data", 3, 101, "cannot hold 101 values"),
        ("data", 3, -1, "cannot hold -1 values"),
        ("words", 1, 2**30, "pages must be at most 16777216 bytes long, got 10737"),
        ("words", 2, 2**30, "cannot be 1073741824 bytes long"),
        ("words", 3, 2**30, "cannot hold 1073741824 values"),
    ],
)
def test_pages_that_lie(where, field, value, words, tmp_path):
    file = tmp_path / "a.parquet"
    table = pa.table({"x": ["a", "b"] * 50})
    parquet.write_table(table, file, compression="none", write_page_checksum=False)
    column = parquet.ParquetFile(file).metadata.row_group(0).column(0)
    at = column.data_page_offset if where == "data" else column.dictionary_page_offset
    data = file.read_bytes()
    file.write_bytes(lie(data, at, field, value))
    with pytest.raises(DataError, match=rf"a\.parquet: .*{words}"):
        footer.check_pages(file)
    footer.check_pages(file, ["another"])
    footer.check_pages(file, groups=[])


def test_pages_that_overlap(tmp_path, monkeypatch):
    """Many columns of one page would take memory and time for each of them."""
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"x": np.arange(1000)}), file)
    told = footer._abouts
    monkeypatch.setattr(footer, "_abouts", lambda stream: (told(stream)[0] * 2, told(stream)[1]))
    with pytest.raises(DataError, match=r"column 'x': the page at byte 4 cannot be"):
        footer.check_pages(file)


def test_a_number_without_end():
    with pytest.raises(ValueError, match="at most 64 bits"):
        footer._Compact(b"\x15" + b"\xff" * 1000).struct()
