"""Parquet files in bounded memory, by what their own metadata say."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesrisk._base.disk import parquet as reading
from bayesrisk.exceptions import DataError


def file_of(folder, **columns):
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


def test_rows_and_columns_that_are_asked_for(tmp_path):
    file = file_of(tmp_path, x=["a", "b", None], y=[1, 2, 3])
    assert reading.read_table(file, {"y": ("whole",)}).to_pydict() == {"y": [1, 2, 3]}
    batches = list(reading.read_batches(file, 2))
    assert [len(batch) for batch in batches] == [2, 1]
    assert pa.concat_tables(batches).to_pydict() == {"x": ["a", "b", None], "y": [1, 2, 3]}
    with pytest.raises(DataError, match="column 'x': must hold whole, got string"):
        reading.read_table(file, {"x": ("whole",)})
    with pytest.raises(DataError, match="must have a column 'z'; columns: x, y"):
        reading.read_table(file, {"z": ("whole",)})


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"MAX_VALUES": 999, "MAX_PER_BYTE": 0}, "at most 999 values, by its size, got 1000"),
        ({"MAX_TABLE": 99, "MAX_BYTES_PER_BYTE": 0}, "at most 99 bytes long unpacked, got"),
    ],
)
def test_what_becomes_too_long_is_refused(limits, words, tmp_path, monkeypatch):
    file = file_of(tmp_path, x=[str(i) for i in np.arange(9500, 10000)] * 2)
    reading.read_table(file)
    for name, value in limits.items():
        monkeypatch.setattr(reading, name, value)
    with pytest.raises(DataError, match=rf"a\.parquet: .*{words}"):
        reading.read_table(file)


def test_lists_and_damage(tmp_path):
    with pytest.raises(DataError, match="column 'x': must hold single values, got 'list"):
        reading.read_table(file_of(tmp_path, x=[[1], [2]]))
    file = file_of(tmp_path, x=list(range(100)))
    data = file.read_bytes()
    for cut in (0, 4, 20, len(data) - 9):
        file.write_bytes(data[:cut])
        with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
            reading.read_table(file)
