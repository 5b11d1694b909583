"""Comma-separated text in blocks of whole lines, beside the csv module."""

import csv
import io
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from bayesrisk._base.disk import delimited
from bayesrisk._base.disk.delimited import csv_bytes, csv_tables, own_text
from bayesrisk.experiments.audit.results import result_table

TWO = pa.schema([("x", pa.string()), ("y", pa.string())])
VALUES = st.text(st.sampled_from('ab ,"0é'), max_size=4)


@pytest.fixture
def blocks_of(monkeypatch):
    """Blocks so small that a short text has several."""
    return lambda size: monkeypatch.setattr(delimited, "_BLOCK", size)


class Watched(io.BytesIO):
    """A stream that knows which threads read from it, and how often."""

    def __init__(self, data):
        super().__init__(data)
        self.threads = []

    def read(self, size=-1, /):
        self.threads.append(threading.get_ident())
        return super().read(size)


def rows_of(data, **options):
    tables = list(csv_tables(io.BytesIO(data), TWO, **options))
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


@given(st.lists(st.tuples(VALUES, VALUES)), st.integers(1, 40), st.booleans())
def test_rows_are_those_of_the_csv_module(rows, size, ended):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = text.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BLOCK", size)
        assert rows_of(data if ended else data.removesuffix(b"\n")) == rows


def test_blank_lines_are_no_rows(blocks_of):
    blocks_of(4)
    assert rows_of(b"\n\na,b\n\n\nc,d\n\n") == [("a", "b"), ("c", "d")]
    assert rows_of(b"\n\n") == rows_of(b"") == []


def test_columns_and_numbers_that_are_asked_for():
    kinds = pa.schema([("x", pa.string()), ("n", pa.int64())])
    (table,) = csv_tables(
        io.BytesIO(b"01;5\n02;\n"), kinds, wanted=["n"], nulls=[""], delimiter=";"
    )
    assert table.to_pydict() == {"n": [5, None]}


def test_a_row_with_other_columns_is_counted_from_the_beginning(blocks_of):
    blocks_of(8)
    with pytest.raises(pa.ArrowInvalid, match=r"Row #6: Expected 2 columns, got 3"):
        rows_of(b"a,b\n" * 5 + b"a,b,c\n" + b"a,b\n" * 3)


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("size", [5, 22, 100])
@pytest.mark.parametrize("first", [b"a", b'5"'])
def test_a_quote_must_be_closed_on_its_line(blocks_of, after, size, first):
    """In the last column it took the rows after it with it."""
    blocks_of(size)
    with pytest.raises(pa.ArrowInvalid, match="Row #3: a quote must be closed on its line"):
        rows_of(b"\na,b\n\na,b\n" + first + b',"b\n' + b"c,d\n" * after)


def test_a_quote_inside_a_value_is_a_character():
    assert rows_of(b'a,5"\na,b"') == [("a", '5"'), ("a", 'b"')]


def test_without_quotes_they_are_characters():
    assert rows_of(b'a,"b\nc,d\n', quotes=False) == [("a", '"b'), ("c", "d")]


def test_nobody_reads_ahead_in_a_thread(blocks_of):
    """A process that ended meanwhile, as after an error in the first rows, never came back."""
    blocks_of(8)
    stream = Watched(b"a,b\n" * 100)
    tables = csv_tables(stream, TWO)
    next(tables)
    assert len(stream.threads) == 1
    assert sum(table.num_rows for table in tables) == 98
    assert set(stream.threads) == {threading.get_ident()}


CELLS = st.one_of(
    st.sampled_from(
        ["=1+1", "+1", "-cmd|x", "@sum", "'=1", "''-a", "-1.5", "+3e-5", "'plain", "a=b"]
    ),
    st.text(st.characters(codec="ascii", exclude_characters="\r\n\0"), max_size=5),
)


@given(st.lists(CELLS, min_size=1, max_size=6), st.sampled_from(["object", "string", "category"]))
def test_no_text_of_a_file_of_ours_is_a_formula(texts, kind):
    """A spreadsheet computes none of them, numbers stay numbers, and the texts come back."""
    numbers = np.linspace(-2.5, 3, len(texts))
    frame = pd.DataFrame({"text": pd.Series(texts, dtype=object).astype(kind), "number": numbers})
    written = csv_bytes(frame)
    rows = list(csv.reader(io.StringIO(written.decode(), newline="")))[1:]
    for (cell, number), text, value in zip(rows, texts, numbers, strict=True):
        assert float(number) == value
        assert cell[:1] not in tuple("=@\t")
        if cell[:1] in tuple("+-"):
            float(cell.replace(",", "").rstrip("%") or "x")
        assert own_text(cell) == text


def test_names_from_others_are_guarded_in_the_files_of_an_audit(tmp_path):
    frame = pd.DataFrame({"setting": ["=HYPERLINK(1)", "0.05"], "own": [-1.5, 2.0]})
    (tmp_path / "choice.csv").write_bytes(csv_bytes(frame))
    text = (tmp_path / "choice.csv").read_text()
    assert text == "setting,own\n'=HYPERLINK(1),-1.5\n0.05,2.0\n"
    assert result_table(tmp_path / "choice.csv").to_dict("list") == frame.to_dict("list")
