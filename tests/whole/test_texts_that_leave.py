"""Texts of others at every place where they leave: no formula, no escape, no tag, no line."""

import csv
import io
import json
import os
import sys
import tomllib
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hostile_texts import TEXTS, Tags, is_formula, spreadsheet, steering
from hypothesis import given, strategies as st
from studies import run_sweep

from bayesrisk._base import disk
from bayesrisk._base.disk.delimited import csv_bytes, guarded_table, own_text
from bayesrisk.cli.app import app, main
from bayesrisk.cli.printing import print_answer, say
from bayesrisk.experiments.pages import Quotes, findings, fragment, table, what_to_do
from bayesrisk.experiments.sweep_document import parse_config

#: Those that a file in UTF-8 may have.
LABELS = [t for t in TEXTS if "\0" not in t and not any("\ud800" <= c < "\ue000" for c in t)]
PLAIN = [f"plain {n}" for n in range(len(TEXTS))]


def wide(texts):
    """A frame with a text in each heading and each cell, the names of its axes too."""
    rows, heads = ([texts, texts[::-1]], pd.Index(texts, dtype=object))
    frame = pd.DataFrame(rows, columns=heads, index=heads[:2], dtype=object)
    return frame.rename_axis(index=texts[0], columns=texts[-1])


def test_what_is_a_formula():
    assert all(map(is_formula, TEXTS[:6]))
    assert not any(map(is_formula, ["", "-1.5", "+3e5", "'=1", "a=b", "plain", "1-4"]))


def test_headings_and_cells_of_csv():
    rows = spreadsheet(csv_bytes(wide(TEXTS)))
    assert len(rows) == 3
    assert all(len(row) == len(TEXTS) for row in rows)
    assert [cell for row in rows for cell in row if is_formula(cell)] == []
    # What is no formula is not touched, but for ends of lines and halves of characters.
    plain = [t for t in TEXTS if "\r" not in t and not any("\ud800" <= c < "\ue000" for c in t)]
    rows = list(csv.reader(io.StringIO(csv_bytes(wide(plain)).decode(), newline="")))
    assert [[own_text(cell) for cell in row] for row in rows] == [plain, plain, plain[::-1]]


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_cells_of_a_column(kind):
    texts = TEXTS if kind == "object" else LABELS
    rows = spreadsheet(csv_bytes(pd.DataFrame({"a": pd.Series(texts, dtype=object).astype(kind)})))
    assert len(rows) == len(texts) + 1
    assert not any(is_formula(row[0]) for row in rows)


@pytest.mark.parametrize("coded", [False, True])
def test_headings_and_cells_of_tables_of_arrow(coded):
    column = pa.array([*LABELS, None])
    column = column.dictionary_encode() if coded else column
    numbers = pa.array(range(len(column)))
    table = pa.table([column, *[numbers] * len(LABELS)], names=["=head", *LABELS])
    stream = io.BytesIO()
    pyarrow.csv.write_csv(guarded_table(table), stream)
    rows = spreadsheet(stream.getvalue())
    assert {len(row) for row in rows} == {len(LABELS) + 1}
    assert [cell for row in rows for cell in row if is_formula(cell)] == []
    assert [row[1] for row in rows[1:]] == list(map(str, range(len(column))))


def test_labels_of_targets_in_the_results_of_a_sweep(tmp_path):
    cells = pd.DataFrame({"who": ["=1", " =2", "plain"], "count": 1})
    cells.to_csv(tmp_path / "cells.csv", index=False)
    document = {
        "grid": {"rho": [0.1], "prior": [0.5], "released": {"from": 0, "to": 1}},
        "table": {"path": "cells.csv", "count": "count"},
    }
    run_sweep(parse_config(document, folder=tmp_path), tmp_path / "out")
    rows = spreadsheet((tmp_path / "out" / "results.csv").read_bytes())
    assert {"'=1", "' =2", "plain"} <= {cell for row in rows for cell in row}
    assert not any(is_formula(cell) for row in rows for cell in row)


@given(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True))
def test_any_text_is_no_formula_and_comes_back(texts):
    texts = [t for t in texts if "\r" not in t] or ["x"]
    rows = list(csv.reader(io.StringIO(csv_bytes(wide([*texts, "x"])).decode(), newline="")))
    for row, expected in zip(rows[:2], 2 * [texts], strict=True):
        assert [own_text(cell) for cell in row[:-1]] == expected
        assert not any(is_formula(cell) for cell in row if own_text(cell) != cell)


def test_columns_of_one_name_and_names_that_are_no_text():
    frame = pd.DataFrame([["=1", "=2", 3]], columns=["a", "a", 7])
    assert csv_bytes(frame) == b"a,a,7\n'=1,'=2,3\n"
    assert frame.to_numpy().tolist() == [["=1", "=2", 3]]


@pytest.mark.parametrize("stream", ["out", "err"])
def test_lines_of_a_terminal(stream, capsys):
    for text in TEXTS:
        if stream == "out":
            print_answer({text: text}, [text, f"  {text}"], as_json=False)
        else:
            say(text, f"  {text}")
        printed = getattr(capsys.readouterr(), stream)
        assert printed.count("\n") == 2
        assert steering(printed) == []
        print_answer({text: [text]}, [], as_json=True)
        assert json.loads(capsys.readouterr().out) == {text: [text]}


def called(capfd, monkeypatch, *words):
    """Return what a command prints, as bytes that are read as UTF-8."""
    monkeypatch.setattr(sys, "argv", ["bayesrisk", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capfd.readouterr()
    return stop.value.code, printed.out, printed.err


def commands():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    return sorted({name.strip("_").replace("_", "-") for name in names})


@pytest.mark.parametrize("name", commands())
def test_names_of_files_in_the_errors_of_every_command(name, capfd, monkeypatch, tmp_path):
    """A file that is not there, a bad option and a bad value: each command tells in safe lines."""
    monkeypatch.chdir(tmp_path)
    told = 0
    for text in ("\x1b[31m\nbayesrisk: accepted", "\udcff", "\u202ex.csv"):
        for words in ((f"{text}.csv", "-o", "out"), (f"--{text}",), (text, text, text)):
            status, out, err = called(capfd, monkeypatch, name, *words)
            assert steering(out + err.replace("\t", " ")) == []  # of lists of choices
            told += bool(status)
            assert "\nbayesrisk: accepted" not in err
    assert told >= 6


def pages(texts):
    """Return the tags of a page that has texts in each place, of it and of it as a fragment."""
    page = findings(
        texts[0],
        texts,
        advice=what_to_do(texts[3], step=texts[4]),
        quotes=Quotes(texts, dict(zip(texts, texts, strict=True))),
        source=texts[1],
        settings=dict(zip(texts, texts, strict=True)),
        tables=[table(wide(texts), text) for text in texts[:3]],
        words=dict(zip(texts, texts, strict=True)),
        warning=texts[2],
    ).decode("utf-8")
    return page, fragment(page)


def test_titles_headings_keys_and_cells_of_pages():
    for start in range(0, len(TEXTS), 4):
        order = np.roll(np.arange(len(TEXTS)), -start)
        hostile, plain = ([texts[n] for n in order] for texts in (TEXTS, PLAIN))
        for mine, reference in zip(pages(hostile), pages(plain), strict=True):
            assert Tags(mine).found == Tags(reference).found
            assert steering(mine.replace("\t", " ")) == []


def test_keys_of_documents():
    for text in TEXTS:
        document = {text: {text: [text]}}
        data = disk.sealed(document)
        assert data.isascii()
        assert disk.unsealed(json.loads(data)) == document


def published(folder, name, heading, labels):
    rows = [["sex", heading, "count"], ["Total", "Total", 2 * len(labels)]]
    rows += [[s, "Total", len(labels)] for s in ("F", "M")]
    rows += [["Total", label, 2] for label in labels]
    file = folder / name
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return file


@pytest.mark.parametrize("number", range(0, 48, 6))
def test_everything_that_an_attack_on_a_published_table_writes(
    number, capfd, monkeypatch, tmp_path
):
    """Headings, labels and the name of the file: in its files, their names, and what it says."""
    monkeypatch.chdir(tmp_path)
    text = LABELS[number % len(LABELS)]
    heading = text if text.strip() and "\n" not in text and "\r" not in text else "=head"
    labels = [t for t in LABELS[number : number + 3] if "\n" not in t and "\r" not in t]
    name = os.fsdecode(b"t\xff\x1b[31m.csv")
    file = published(tmp_path, name, heading, labels or ["=1", "=2"])
    words = ("attack", file, "--set", "counts=exact", "--set", "totals=complete")
    monkeypatch.setattr(sys, "argv", ["bayesrisk", *map(str, words), "-o", "out"])
    try:
        main()
        status = 0
    except SystemExit as stop:
        status = stop.code
    printed = capfd.readouterr()
    assert steering(printed.out) + steering(printed.err) == []
    assert status in (0, None, 2, 3), printed.err  # a heading may be none that is understood
    assert "internal error" not in printed.err
    for made in (tmp_path / "out").rglob("*.*"):
        assert steering(made.name, lines=False) == []
        if made.suffix == ".csv":
            cells = [cell for row in spreadsheet(made.read_bytes()) for cell in row]
            assert [cell for cell in cells if is_formula(cell)] == [], made.name
        elif made.suffix == ".json":
            json.loads(made.read_bytes())
        elif made.suffix == ".toml":
            tomllib.loads(made.read_text("utf-8"))
        elif made.suffix == ".svg":
            ElementTree.fromstring(made.read_bytes())  # noqa: S314  (of our own)
        elif made.suffix == ".html" and "report" in made.name:
            mine, plain = (Tags(page).found for page in (made.read_text("utf-8"), pages(PLAIN)[0]))
            for tag in ("script", "iframe", "object", "style"):
                assert [t for t, _ in mine].count(tag) == [t for t, _ in plain].count(tag)
            assert not [name for _, names in mine for name in names if name.startswith("on")]
