"""Damage to files: of their bytes, of their text, and of what they hold."""

import gzip
import io
import json
import re
import zipfile

import numpy as np
import pyarrow as pa
from pyarrow import parquet

HOSTILE = [
    b"", b"\0", b"\r", b"\r\n", b"\n", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"',
    b"'", b",", b"|", b"#", b" ", b"-", b"-1", b"0", b"1", b"007", b"1e400", b"1e-400", b"nan",
    b"NaN", b"inf", b"-Infinity", b"null", b"true", b"None", b"NA", b"0.5", b"1.0", b"1_000",
    b"9" * 19, b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"9" * 400,
    b"9" * 5000, b"x" * 140_000, b"\xd9\xa1", b"\xe2\x80\xa8", b"../../x", b"=1+1", b"[]", b"{}",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"&#0;", b"<a>" * 200, b"1/0", b"1/3",
]  # fmt: skip
VALUES = [
    None, True, False, -1, 0, 1, 2, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400,
    0.5, -0.0, 1e308, float("nan"), float("inf"), "", "0", "x", "1/3", "é", "\0", "x" * 10_000,
    "9" * 5000, "1e400", [], {}, [[]], [None], {"a": 1}, [1, "a"], "0-1,", "each 0-9", "P{0-9}",
]  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+")


def _place(rng, data):
    return int(rng.integers(0, len(data) + 1))


def _pick(rng, values):
    return values[int(rng.integers(len(values)))]


def _length(rng):
    return int(2 ** rng.uniform(0, 9))


def flip(rng, data):
    """Turn some bits."""
    changed = bytearray(data)
    for _ in range(_length(rng) % 8 + 1):
        if changed:
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(rng, data):
    """Cut the end, or the beginning."""
    at = _place(rng, data)
    return data[:at] if rng.random() < 0.8 else data[at:]


def insert(rng, data):
    """Put in some bytes."""
    at = _place(rng, data)
    return data[:at] + rng.bytes(_length(rng)) + data[at:]


def overwrite(rng, data):
    """Put bytes in the place of others."""
    at, size = _place(rng, data), _length(rng)
    new = b"\0" * size if rng.random() < 0.5 else rng.bytes(size)
    return data[:at] + new + data[at + size :]


def repeat(rng, data):
    """Have a piece twice, elsewhere."""
    start, at, size = _place(rng, data), _place(rng, data), 4 * _length(rng)
    return data[:at] + data[start : start + size] + data[at:]


def leave_out(rng, data):
    """Leave out a piece."""
    at = _place(rng, data)
    return data[:at] + data[at + _length(rng) :]


def hostile(rng, data):
    """Put in something that is hard to read."""
    at = _place(rng, data)
    return data[:at] + _pick(rng, HOSTILE) + data[at:]


def token(rng, data):
    """Put something hard to read, or another word of the file, in the place of a word."""
    words = list(_TOKEN.finditer(data))
    if not words:
        return hostile(rng, data)
    found = _pick(rng, words)
    new = _pick(rng, HOSTILE) if rng.random() < 0.7 else _pick(rng, words)[0]
    return data[: found.start()] + new + data[found.end() :]


def line_ends(rng, data):
    """End lines otherwise."""
    ends = [b"\r", b"\r\n", b"\n\n", b"\r\r\n", b""]
    if rng.random() < 0.5:
        return data.replace(b"\n", _pick(rng, ends))
    lines = data.split(b"\n")
    return b"".join(line + (_pick(rng, ends) if rng.random() < 0.3 else b"\n") for line in lines)


def columns(rng, data):
    """Swap, repeat or leave out fields of a line, or lines."""
    lines = data.split(b"\n")
    at = 0 if rng.random() < 0.4 else int(rng.integers(len(lines)))
    mark = b"|" if b"|" in lines[at] else b","
    fields = lines[at].split(mark)
    what = fields if rng.random() < 0.7 else lines
    first, second = int(rng.integers(len(what))), int(rng.integers(len(what)))
    how = rng.random()
    if how < 0.4:
        what[first], what[second] = what[second], what[first]
    elif how < 0.7:
        what.insert(first, what[second])
    else:
        del what[first]
    if what is fields:
        lines[at] = mark.join(fields)
    return b"\n".join(lines)


def deep(rng, data):
    """Put in something many levels deep."""
    text = _pick(rng, [b"[", b"{", b'{"a":', b"a.", b"[[", b"(", b"<a>", b'"a".', b"{a="])
    at = _place(rng, data)
    return data[:at] + text * int(10 ** rng.uniform(1, 5)) + data[at:]


BYTES = [flip, truncate, insert, overwrite, repeat, leave_out]
TEXT = [*BYTES, hostile, token, token, token, line_ends, columns, deep]


def _containers(document, found):
    if isinstance(document, dict | list):
        found.append(document)
        for value in document.values() if isinstance(document, dict) else document:
            _containers(value, found)
    return found


def of_json(rng, data):
    """Change a value of a document, or a key."""
    document = json.loads(data)
    for _ in range(1 + (rng.random() < 0.2)):
        holder = _pick(rng, [c for c in _containers(document, []) if c] or [[0]])
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = _pick(rng, keys)
        how = rng.random()
        if how < 0.7:
            holder[key] = _pick(rng, VALUES)
        elif how < 0.8:
            del holder[key]
        elif how < 0.9:
            holder[key] = _pick(rng, _containers(document, []) or [1])
            try:
                json.dumps(document)
            except ValueError:  # it holds itself
                holder[key] = [holder[key] is holder]
        elif isinstance(holder, dict):
            holder[_pick(rng, ["x", "", "name", "levels", *map(str, keys)])] = holder.pop(key)
    text = json.dumps(document)
    return text.encode()


def of_text(rng, data):
    """Change a text."""
    for _ in range(1 + (rng.random() < 0.2)):
        data = _pick(rng, TEXT)(rng, data)
    return data


def _kinds(rows):
    return [
        pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(),
        pa.bool_(), pa.null(), pa.binary(), pa.date32(), pa.timestamp("s"), pa.decimal128(20, 2),
        pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.time64("us"),
        pa.dictionary(pa.int32(), pa.string()), pa.float16(), pa.duration("s"),
    ]  # fmt: skip


def _column(rng, rows):
    """Return a column of another type."""
    kind = _pick(rng, _kinds(rows))
    values = {
        pa.int8(): [1, -1, 127], pa.uint64(): [0, 2**64 - 1, 2**63], pa.bool_(): [True, False],
        pa.float32(): [0.5, float("nan"), 1.0], pa.float64(): [1.0, 1e308, float("inf"), 2.0],
        pa.binary(): [b"\xff", b""], pa.list_(pa.int64()): [[1], [], None],
        pa.struct([("a", pa.int64())]): [{"a": 1}], pa.date32(): [0, 10**6],
        pa.timestamp("s"): [0, 2**62], pa.time64("us"): [5], pa.float16(): [np.float16(1.5)],
        pa.duration("s"): [1, 2**62],
    }.get(kind, [None] if pa.types.is_null(kind) else ["", "x", "1", "9" * 400])  # fmt: skip
    if pa.types.is_decimal(kind):
        values = [1, 2]
    if rng.random() < 0.3:
        values = [*values, None]
    return pa.array([values[i % len(values)] for i in range(rows)], kind)


def _changed(rng, column):
    """Return a column with one value, or all, of another kind."""
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # dates beyond those of the standard library
        return column
    for place in {int(rng.integers(len(values)))} if values else ():
        values[place] = _pick(rng, [None, -1, 0, 2**40, 0.5, "x", "", 1e300, float("nan"), [], [0]])
        if column.type == pa.string() or pa.types.is_list(column.type):
            other = [None, "", "x" * 10**5, "é"] if column.type == pa.string() else [None, [], [0]]
            values[place] = _pick(rng, other)
    try:
        return pa.array(values, column.type if rng.random() < 0.7 else None)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return column


def of_parquet(rng, data):
    """Change columns, types or values of a table."""
    table = parquet.read_table(io.BytesIO(data))
    if table.num_columns == 0:
        return data
    for _ in range(1 + (rng.random() < 0.2)):
        at, other = (int(i) for i in rng.integers(0, table.num_columns, 2))
        name, how = table.column_names[at], int(rng.integers(8))
        if how == 0:
            table = table.remove_column(at)
            if not table.num_columns:
                break
        elif how == 1:
            table = table.append_column(name, table.column(other))
        elif how == 2:
            names = list(table.column_names)
            names[at], names[other] = names[other], names[at]
            table = table.rename_columns(names)
        elif how in (3, 4):
            table = table.set_column(at, name, _column(rng, table.num_rows))
        elif how == 5:
            table = table.slice(0, int(rng.integers(0, 2)))
        elif how == 6:
            names = list(table.column_names)
            names[at] = _pick(rng, ["", "x", "é", "\0", "x" * 1000, "__index_level_0__"])
            table = table.rename_columns(names)
        else:
            table = table.set_column(at, name, _changed(rng, table.column(at)))
    if rng.random() < 0.2:
        about = dict(table.schema.metadata or {})
        key = _pick(rng, [b"pandas", b"bayesrisk.schema", b"bayesrisk.shard", b"ARROW:schema"])
        about[key] = _pick(rng, [b"{}", b"[]", b"\xff", b"null", b'{"columns": [{}]}', b"9" * 50])
        table = table.replace_schema_metadata(about)
    sink = io.BytesIO()
    try:
        parquet.write_table(table, sink, compression=_pick(rng, ["none", "zstd", "snappy"]))
    except (pa.ArrowException, TypeError):
        return data[: len(data) // 2]
    return sink.getvalue()


def of_zip(rng, data):
    """Change a member, or how it is packed, its name, or how often it is there."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = int(rng.integers(len(members)))
    how = rng.random()
    if how < 0.8:
        members[at] = (members[at][0], of_text(rng, members[at][1]))
    elif how < 0.87:
        del members[at]
    elif how < 0.94:
        members.append((_pick(rng, ["x.csv", members[at][0] + "x", "../a.csv"]), members[at][1]))
    else:
        members[at] = (members[at][0], _pick(rng, members)[1])
    method = _pick(rng, [0, 8, 8, 8, 8, 8, 8, 12, 14])
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return sink.getvalue()


def of_gzip(rng, data):
    """Change what is packed."""
    return gzip.compress(of_text(rng, gzip.decompress(data)), 1)


STRUCTURES = {
    ".json": of_json, ".parquet": of_parquet, ".zip": of_zip, ".xlsx": of_zip, ".gz": of_gzip,
}  # fmt: skip


def damaged(rng, name, data):
    """Return other bytes for a file, by its ending, and how they were made."""
    structure = next((f for end, f in STRUCTURES.items() if name.endswith(end)), None)
    if structure is not None and rng.random() < 0.6:
        return structure(rng, data), structure.__name__
    if structure is None or structure is of_json:
        return of_text(rng, data), "of_text"
    how = _pick(rng, BYTES)
    return how(rng, data), how.__name__
