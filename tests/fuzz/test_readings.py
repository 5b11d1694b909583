"""Damaged published tables: a reading, or an error of our own that names the file, in bounded time.

Bytes, cells, headings, encodings and workbooks are damaged; ``--fuzz-readings`` says how often.
"""

import contextlib
import csv
import io
import time
import warnings

import numpy as np
import openpyxl
import pytest
from random_layouts import random_layout

from bayesrisk import PublishedTables, TableReading
from bayesrisk.exceptions import BayesRiskError, DataError

SHARES = ("--fuzz-readings", 250, 2)
SECONDS = 10  # of the processor, for a file of a few hundred bytes
CELLS = [
    "", " ", "*", "0", "-1", "007", "1e400", "nan", "9" * 400, "9223372036854775808", "x" * 5000,
    "<5", "5-4", "5+", "1.204", "12,5", "50%", "1 (a)", "Total", "_T", "all", "place", "!!", "a!!b",
    "a!!b!!c!!d", "\0", "\n", "\r", '"', "=1+1", "#REF!", "\u202e", "\ud83d\ude00", "1/0", "(1-4)",
    "__", "---", "Source: x", "FIPS", "Margin of error", "B01001_001E", "geo\\time", "a,b\\TIME",
    "'000", "thousands", "2020", "0-17", "<", ">", "...", "[c]", "Rate", "code", "n", "{}", "[",
    "weniger als 5", "1 bis unter 0", "٣", "①", "10 000", "1'000", "\ufeff", "marks.*", "a=b",
]  # fmt: skip


def damaged_rows(rows, rng):
    """Return rows with a few of them changed, moved, cut or joined."""
    rows = [list(row) for row in rows]
    for _ in range(rng.integers(1, 5)):
        i = int(rng.integers(len(rows)))
        row = rows[i]
        kind = rng.integers(10)
        if kind < 4 and row:
            row[int(rng.integers(len(row)))] = str(rng.choice(CELLS))
        elif kind == 4:
            row.insert(int(rng.integers(len(row) + 1)), str(rng.choice(CELLS)))
        elif kind == 5 and row:
            del row[int(rng.integers(len(row))) :]
        elif kind == 6:
            rows.insert(i, list(rows[int(rng.integers(len(rows)))]))
        elif kind == 7 and len(rows) > 1:
            del rows[i]
        elif kind == 8:  # all of a column
            column, text = int(rng.integers(max(len(row), 1))), str(rng.choice(CELLS))
            for one in rows:
                one[column : column + 1] = [text]
        else:
            rows = [rows[int(j)] for j in rng.permutation(len(rows))]
    return rows


def damaged_bytes(raw, rng):
    """Return bytes of which some are changed, cut out or doubled."""
    data = bytearray(raw)
    for _ in range(rng.integers(1, 4)):
        i, j = sorted(int(n) for n in rng.integers(0, len(data) + 1, 2))
        kind = rng.integers(4)
        if kind == 0 and i < len(data):
            data[i] = int(rng.integers(256))
        elif kind == 1:
            data[i:j] = b""
        elif kind == 2:
            data[i:i] = data[i:j]
        else:
            data[i:i] = bytes(rng.choice([0, 10, 13, 34, 44, 59, 255], 2).tolist())
    return bytes(data)


def damaged_file(seed):
    """Return the name and the bytes of a damaged table."""
    rng = np.random.default_rng(seed)
    layout = random_layout(int(rng.integers(2**20)))
    text = next(text for name, text in layout.files.items() if name.endswith(".csv"))
    delimiter = max(",;\t", key=text.count)
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    if rng.random() < 0.8:
        rows = damaged_rows(rows, rng)
    if rng.random() < 0.25:
        book = openpyxl.Workbook()
        for i, row in enumerate(rows, 1):
            for j, cell in enumerate(row, 1):
                legal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", cell)[:30_000]
                book.active.cell(
                    i, j, int(legal) if legal.isdecimal() and len(legal) < 9 else legal
                )
        for _ in range(rng.integers(3)):
            top, left = (int(n) for n in rng.integers(1, 6, 2))
            book.active.merge_cells(
                start_row=top, start_column=left, end_row=top + int(rng.integers(3)),
                end_column=left + int(rng.integers(3)),
            )  # fmt: skip
        out = io.BytesIO()
        book.save(out)
        raw = out.getvalue()
        return "t.xlsx", damaged_bytes(raw, rng) if rng.random() < 0.3 else raw
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    coding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    raw = out.getvalue().encode(coding, errors="replace")
    return "t.csv", damaged_bytes(raw, rng) if rng.random() < 0.5 else raw


def check(name, raw, folder):
    """Check that a file is read or refused, in time; its name is in a refusal of its text."""
    file = folder / name
    file.write_bytes(raw)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            reading = TableReading.read(file)
            tables = PublishedTables(*reading.accepted().parts)
        except DataError as error:
            assert name in str(error) or "tables must hold" in str(error)  # noqa: PT017
            assert len(str(error)) < 2000  # noqa: PT017
        except BayesRiskError:
            pass
        else:
            assert tables.geoids
            assert reading.screen()
            with contextlib.suppress(DataError):  # a label that is now a mark, too
                again = TableReading.read(file, reading=reading)  # as it was accepted
                assert not again.questions or again.rules.keys() >= reading.rules.keys()
    assert time.process_time() - began < SECONDS


def test_a_damaged_table_is_read_or_refused(share, quick_path):
    for seed in range(share.start, share.stop):
        check(*damaged_file(seed), quick_path)


@pytest.mark.slow
def test_many_damaged_tables_are_read_or_refused(quick_path):
    for seed in range(10**6, 10**6 + 5000):
        check(*damaged_file(seed), quick_path)
