"""What damaged files did before: each cause once, by the error that names it now."""

import io
import itertools
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from fuzz.corpus import KINDS, people
from hypothesis import given, strategies as st
from pyarrow import parquet

import bayesrisk as br
from bayesrisk._base.disk.delimited import TextStream, WithoutComments
from bayesrisk.census.readers.text import Piece
from bayesrisk.exceptions import BayesRiskError, DataError
from bayesrisk.tables import Attribute, Records, Schema
from bayesrisk.tables._grammar import parse_codes

PERSON = Schema.named("sf1-person")


@pytest.fixture
def example(tmp_path):
    """Return the files of an example by their names, and the call that reads them."""

    def make(kind):
        made = KINDS[kind](tmp_path)
        return {file.name: file for file in made.files}, made.read

    return make


TEXTS = [
    "ppmf-csv", "ppmf-mdf", "form-csv", "ipums-fixed", "ipums-csv", "sf1-folder", "nhgis-folder",
    "hud-csv", "records-csv", "known-csv",
]  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_lines_may_end_otherwise(kind, example):
    files, read = example(kind)
    before = read()
    kept = {file: file.read_bytes() for file in files.values()}
    for end in (b"\r", b"\r\n"):
        for file, data in kept.items():
            file.write_bytes(data.replace(b"\n", end))
        after = read()
        if isinstance(before, pd.DataFrame):
            pd.testing.assert_frame_equal(after, before)
        else:
            assert after == before


def in_pieces(stream, sizes):
    """Return what a stream gives, asked for pieces of these sizes in turn."""
    found = b""
    for size in itertools.cycle(sizes):
        piece = stream.read(size)
        assert len(piece) <= size
        if not piece:
            return found
        found += piece


BYTES = st.binary(max_size=40)
SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=8)


@given(text=BYTES, sizes=SIZES)
def test_line_ends_wherever_a_piece_ends(text, sizes):
    data = text.replace(b"a", b"\r\n").replace(b"\0", b"\r")
    found = in_pieces(TextStream(io.BytesIO(data), "x"), sizes)
    # The standard library's own universal newlines say the same.
    with io.TextIOWrapper(io.BytesIO(data), encoding="latin-1", newline=None) as lines:
        assert found == lines.read().encode("latin-1")
    again = TextStream(io.BytesIO(data), "x")
    assert b"".join(iter(again.readline, b"")) == found


@given(text=BYTES, sizes=SIZES)
def test_comments_wherever_a_piece_ends(text, sizes):
    data = text.replace(b"a", b"\n#").replace(b"\r", b"#").replace(b"\0", b"\n")
    found = in_pieces(WithoutComments(TextStream(io.BytesIO(data), "x"), b"#"), sizes)
    lines = io.BytesIO(data).readlines()
    assert found == b"".join(line for line in lines if not line.startswith(b"#"))


def test_rows_that_are_no_text_among_comments(example, capfd):
    """They are told of in the error, and not on standard error as well."""
    files, read = example("ppmf-mdf")
    (file,) = files.values()
    before, lines = read(), file.read_bytes().splitlines(keepends=True)
    lines[3:3] = [b"# one | two\n", b"#\n", b"#" + lines[3]]
    file.write_bytes(b"".join(lines))
    assert read() == before
    lines.insert(6, b"\xff|1\n")
    file.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match=rf"{file.name}: row 2: must have \d+ columns, got 2"):
        read()
    assert capfd.readouterr().err == ""


DEEP = "[" * 100_000
JSON = [DEEP, "[" * 70 + "]" * 70, '{"a": 1e999}', "[NaN]", "1" * 30]
TOML = [f"a = {DEEP}", f"a = {'{a=' * 70}1{'}' * 70}"]
PARQUET = ["form-parquet", "records-parquet", "known-parquet"]


def impossible(file, data):
    """Yield what no reader may take, and what is said: deep values, columns twice or of lists."""
    texts = {".json": JSON, ".toml": TOML}.get(file.suffix, [])
    yield from ((text.encode(), f"cannot be read as {file.suffix[1:].upper()}") for text in texts)
    if file.suffix == ".parquet":
        table = parquet.read_table(io.BytesIO(data))
        lists = pa.array([[1]] * len(table))
        twice = table.append_column(table.column_names[0], table.column(0))
        names = enumerate(table.column_names)
        for changed in (twice, *(table.set_column(i, name, lists) for i, name in names)):
            parquet.write_table(changed, file)
            yield file.read_bytes(), ""


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"nmf"}))
def test_what_no_reader_may_take(kind, tmp_path):
    made = KINDS[kind](tmp_path)
    for file in made.files:
        sound = file.read_bytes()
        for data, said in impossible(file, sound):
            file.write_bytes(data)
            with pytest.raises(BayesRiskError, match=f"({file.name}|{file.parent.name}).*{said}"):
                made.read()
        file.write_bytes(sound)


@pytest.mark.parametrize("about", [b'{"columns": [{}]}', b"\xff"])
@pytest.mark.parametrize("kind", PARQUET)
def test_metadata_of_pandas_is_not_read(kind, about, example):
    files, read = example(kind)
    (file,) = files.values()
    table = parquet.read_table(file)
    before = read()
    parquet.write_table(table.replace_schema_metadata({b"pandas": about}), file)
    after = read()
    assert type(after) is type(before)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(after, before)


def test_text_that_is_no_text(tmp_path):
    """Indices outside their dictionary, and bytes that are no UTF-8."""
    people().write(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    bad = pa.StringArray.from_buffers(
        len(table), *(b for b in pa.array([b"\xff" * 15] * len(table)).buffers()[1:])
    )
    parquet.write_table(table.set_column(0, "block", bad), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet: cannot be read: .*UTF8"):
        Records.read(tmp_path / "b.parquet", schema=PERSON)


def test_whole_numbers_beyond_64_bits(tmp_path, example):
    files, read = example("exchange-by-hand")
    file = files["part-00000.parquet"]
    table = parquet.read_table(file)
    counts = pa.array([2**64 - 1] * len(table), pa.uint64())
    parquet.write_table(table.set_column(4, "count", counts), file)
    with pytest.raises(DataError, match=r"row 1, column 'count': must be below 2\*\*63, got 18446"):
        read()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("18446744073709551617", None),
        ("0" * 18 + "17", 17),
        (" " * 18 + "17", 17),
    ],
)
def test_fields_wider_than_a_number(text, answer):
    """Digits beyond 64 bits are no number that has come round to a small one: 2**64 + 1."""
    piece = Piece("a.dat", 0, pa.table({"AGE": [text]}), unit="line")
    if answer is None:
        with pytest.raises(
            DataError, match=r"a\.dat: line 1, column 'AGE': must be a whole number"
        ):
            piece.whole("AGE", 0, 99)
    else:
        assert piece.whole("AGE", 0, 99).tolist() == [answer]


def test_no_message_quotes_a_value_of_any_length():
    package = Path(br.__file__).parent
    for file in package.rglob("*.py"):
        found = re.findall(r"got [^\n]*\{[^{}]*!r\}", file.read_text(encoding="utf-8"))
        assert not found, f"{file}: {found}: take quote(...)"


def test_a_range_longer_than_len_can_say():
    with pytest.raises(BayesRiskError, match="must have at most"):
        parse_codes("0-99999999999999999999999", Attribute("sex", 2))
