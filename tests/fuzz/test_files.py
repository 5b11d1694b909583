"""Damaged files: a result, or an error of our own that names the file, in bounded time.

``--fuzz-files`` says how many.
"""

import gzip
import io
import json
import time
import warnings
import zipfile

import pyarrow as pa
import pytest
from fuzz.corpus import KINDS, SEALED
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st
from pyarrow import parquet

from bayesrisk.exceptions import BayesRiskError, BayesRiskWarning, DataError

SHARES = ("--fuzz-files", 5000, 2)
SECONDS = 10
HOSTILE = [
    b"", b"\0", b"\r", b"\r\n", b"\n", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"'", b",",
    b"|", b"#", b" ", b"-1", b"0", b"007", b"1e400", b"nan", b"-Infinity", b"null", b"true", b"NA",
    b"0.5", b"1_000", b"9223372036854775808", b"9" * 400, b"x" * 140_000, b"\xd9\xa1", b"../../x",
    b"=1+1", b"[]", b"{}", b"&b;", b"<a>" * 200, b"1/0", b"[" * 10_000, b"a." * 200,
]  # fmt: skip
VALUES = [
    None, True, -1, 0, 1, 2**31, 2**53, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308, float("nan"), "",
    "x", "1/3", "\0", "x" * 10_000, "9" * 5000, [], {}, [[]], [None], {"a": 1}, [1, "a"], "0-1,",
]  # fmt: skip
COLUMNS = [
    pa.array([1, -1, 127], pa.int8()), pa.array([2**64 - 1, 0, 1], pa.uint64()),
    pa.array([0.5, None, 1e308]), pa.array([None] * 3), pa.array([b"\xff", b"", b"1"]),
    pa.array([True, False, None]), pa.array([[1], [], None]), pa.array(["", "x", "9" * 400]),
    pa.array([{"a": 1}] * 3), pa.array([0, 1, 10**6], pa.date32()),
    pa.array(["1", "x", None]).dictionary_encode(), pa.array([1, 2, 3], pa.decimal128(20, 2)),
]  # fmt: skip


def of_bytes(draw, data):
    """Turn a bit, leave out, repeat or overwrite a piece, or put in what is hard to read."""
    start, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
    end = min(end, start + 500)
    how = draw(st.sampled_from(["bit", "out", "twice", "zeros", "cut", "hostile", "hostile"]))
    if how == "bit" and start < len(data):
        changed = bytes([data[start] ^ 1 << draw(st.integers(0, 7))])
        return data[:start] + changed + data[start + 1 :]
    new = {"twice": data[start:end] * 2, "zeros": bytes(end - start)}.get(how, b"")
    if how == "hostile":
        new, end = draw(st.sampled_from(HOSTILE)), draw(st.sampled_from([start, end]))
    return data[:start] if how == "cut" else data[:start] + new + data[end:]


def of_words(draw, data):
    """Change a field of a line, or the lines and their ends."""
    lines = data.split(b"\n")
    place = draw(st.integers(0, len(lines) - 1))
    mark = b"|" if b"|" in lines[place] else b","
    fields = lines[place].split(mark)
    one, other = (draw(st.integers(0, len(fields) - 1)) for _ in range(2))
    how = draw(st.sampled_from(["value", "swap", "more", "less", "line", "ends"]))
    if how == "value":
        fields[one] = draw(st.sampled_from(HOSTILE))
    elif how == "swap":
        fields[one], fields[other] = fields[other], fields[one]
    elif how == "more":
        fields.insert(one, fields[other])
    elif how == "less":
        del fields[one]
    lines[place] = mark.join(fields)
    if how == "line":
        lines.insert(draw(st.integers(0, len(lines))), lines[place])
    return draw(
        st.sampled_from([b"\r", b"\r\n", b"\n\n"]) if how == "ends" else st.just(b"\n")
    ).join(lines)


def of_json(draw, data):
    """Change a value of a document, or a key."""
    document, found = json.loads(data), []

    def collect(holder):
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                collect(holder[key])

    collect(document)
    holder, key = draw(st.sampled_from(found))
    how = draw(st.sampled_from(["value", "value", "value", "out", "name"]))
    if how == "name" and isinstance(holder, dict):
        holder[draw(st.sampled_from(["x", "", *holder]))] = holder.pop(key)
    elif how == "out":
        del holder[key]
    else:
        holder[key] = draw(st.sampled_from(VALUES))
    return json.dumps(document).encode()


def of_parquet(draw, data):
    """Change columns, names, types or rows of a table."""
    table = parquet.read_table(io.BytesIO(data), partitioning=None)
    place = draw(st.integers(0, table.num_columns - 1))
    name, other = table.column_names[place], draw(st.integers(0, table.num_columns - 1))
    how = draw(st.sampled_from(["out", "twice", "swap", "type", "type", "rows", "name"]))
    names = list(table.column_names)
    if how == "out":
        table = table.remove_column(place)
    elif how == "twice":
        table = table.append_column(name, table.column(other))
    elif how == "type":
        column = draw(st.sampled_from(COLUMNS))
        rows = pa.array([i % 3 for i in range(len(table))], pa.int64())
        table = table.set_column(place, name, column.take(rows))
    elif how == "rows":
        table = table.slice(0, draw(st.integers(0, 1)))
    else:
        new = draw(st.sampled_from(["", "x", "\0", "x" * 1000, "__index_level_0__"]))
        names[place], names[other] = (names[other], names[place]) if how == "swap" else (new, new)
        table = table.rename_columns(names)
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def of_zip(draw, data):
    """Change a member, leave it out, or have it twice."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    name, text = members.pop(draw(st.integers(0, len(members) - 1)))
    how = draw(st.sampled_from(["change", "change", "change", "out", "twice"]))
    if how == "change":
        members.append((name, draw(st.sampled_from([of_bytes, of_words]))(draw, text)))
    elif how == "twice":
        members += [(name, text), (draw(st.sampled_from(["../a.csv", "x" + name])), text)]
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", draw(st.sampled_from([8, 8, 8, 12]))) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return sink.getvalue()


def of_gzip(draw, data):
    """Change what is packed."""
    return gzip.compress(of_words(draw, gzip.decompress(data)), 1)


STRUCTURES = {
    ".json": (of_json, of_json, of_bytes, of_words), ".parquet": (of_parquet, of_bytes),
    ".zip": (of_zip, of_bytes), ".xlsx": (of_zip, of_bytes), ".gz": (of_gzip, of_bytes),
}  # fmt: skip


@st.composite
def damaged(draw, examples):
    """Draw a kind, one of its files, and other bytes for it."""
    kind = draw(st.sampled_from(sorted(examples)))
    made, kept, _ = examples[kind]
    file = draw(st.sampled_from(made.files))
    how = draw(st.sampled_from(STRUCTURES.get(file.suffix, (of_bytes, of_words, of_words))))
    return kind, file, how(draw, kept[file])


def answer(read, file, *sound):
    """Return what is wrong with the answer to a damaged file, or None: ``sound`` are all answers.

    Files of our own carry digests: damaged ones are refused, or nothing of them has changed.
    """
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BayesRiskWarning)
            found = read()
        if sound and found not in sound:
            return "another result, and not a word"
    except BayesRiskError as error:
        # One file may ask for what another one beside it does not have.
        places = (*(p.name for p in file.parents[:4]), *(p.name for p in file.parent.iterdir()))
        if not any(name in str(error) for name in places):
            return f"{type(error).__name__} names no file: {error}"
    seconds = time.process_time() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS else None


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    found = {}
    for kind, make in KINDS.items():
        made = make(tmp_path_factory.mktemp(kind))
        assert answer(made.read, made.files[0]) is None
        sound = [made.read()] if kind in SEALED else []
        found[kind] = made, {file: file.read_bytes() for file in made.files}, sound
        assert all(len(data) > 20 for data in found[kind][1].values())
    return found


def test_damaged_files(share, examples):
    @seed(share.start)
    @settings(
        max_examples=share.stop - share.start,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        derandomize=False,
    )
    @given(damaged(examples))
    def check(case):
        kind, file, data = case
        made, kept, sound = examples[kind]
        file.write_bytes(data)
        try:
            wrong = answer(made.read, file, *sound)
        finally:
            file.write_bytes(kept[file])
        assert wrong is None, (kind, file.name, wrong)

    check()


@pytest.mark.parametrize("kind", sorted(SEALED))
def test_values_in_another_order_are_noticed(kind, tmp_path):
    """Every value is as it may be, and the bytes are sound: only a digest tells."""
    made = KINDS[kind](tmp_path)
    sound = made.read()
    for file in (file for file in made.files if file.suffix == ".parquet"):
        data = file.read_bytes()
        table = parquet.read_table(io.BytesIO(data))
        for place, name in enumerate(table.column_names):
            turned = table.column(place).take(pa.array(range(len(table))[::-1], pa.int64()))
            parquet.write_table(table.set_column(place, name, turned), file)
            assert answer(made.read, file, sound) is None, (file.name, name)
        file.write_bytes(data)


def test_what_is_wrong_is_found(tmp_path):
    """An error that is not ours, and one that names no file, are finds."""
    file = KINDS["release-toml"](tmp_path).files[0]

    def raises(error):
        def read():
            raise error

        return answer(read, file)

    with pytest.raises(KeyError):
        raises(KeyError("x"))
    assert "names no file" in raises(DataError("x must be 1"))
    assert raises(DataError(f"{file}: x must be 1")) is None


def test_a_reader_that_trusts_its_files_is_found(tmp_path, monkeypatch):
    """Without the seal of the document that says how a release was made, and what binds it."""
    monkeypatch.setattr("bayesrisk._base.disk.writing.document_digest", lambda _: "")
    monkeypatch.setattr("bayesrisk.release.release.check_bound", lambda file, document: None)
    made = KINDS["release-json"](tmp_path)
    (file,) = (file for file in made.files if file.name == "_release.json")
    sound, text = made.read(), file.read_text()
    assert answer(made.read, file, sound) is None
    file.write_text(text.replace('"simulation": true', '"simulation": false'))
    assert "another result" in answer(made.read, file, sound)
