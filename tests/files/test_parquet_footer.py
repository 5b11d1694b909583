"""What a Parquet file's footer says of its lists, against pyarrow's own view of sound files."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bayesrisk._files import parquet_footer as footer
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
