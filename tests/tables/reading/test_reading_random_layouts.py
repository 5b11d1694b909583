"""Random tables in random layouts: with all guesses confirmed nothing false is stated of any."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from random_layouts import random_layout

from bayesrisk import PublishedTables, Workload
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds, find_claims
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.reading.sheet import file_sheet

RESULTS = ("place", "table", "cell", "stated", "file", "row")
MOST_CELLS = 300  # combinations of all variables that are bounded


def only_marks(layout):
    """Return whether all counts of a file are withheld, so that no text says which they are."""
    for name, text in layout.files.items():
        rows = list(csv.reader(text.replace(";", ",").replace("\t", ",").splitlines()))
        texts = [x for row in rows for x in row if x in layout.marks]
        if name.endswith(".csv") and len(texts) >= len(rows) - 6 and texts:
            return True
    return False


def reading_of(layout, folder):
    """Return the reading of a layout under its law; None if it is refused."""
    for name, text in layout.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    options = {n: str(folder / t) if t.endswith(".hrc") else t for n, t in layout.settings.items()}
    sheets = [file_sheet(folder / name) for name in layout.files if name.endswith(".csv")]
    try:
        reading = read(sheets, options)
    except DataError:
        assert only_marks(layout)
        return None
    laws = {text for name, text in reading.rules.items() if name.split(".")[0] == "counts"}
    if laws - {layout.law}:  # numbers alone cannot tell every law
        reading = read(sheets, options | {"counts": layout.law})
    return reading


class Statements:
    """What is stated of the records behind a layout, and what of it is false."""

    def __init__(self, layout, reading):
        self.layout, self.reading = layout, reading.accepted()
        self.tables = PublishedTables(*self.reading.parts)
        self.schema = self.tables.workload.schema
        self.level = self.tables.workload.levels[-1]
        names = [n for n in reading.cells.columns if n not in RESULTS]
        self.columns = {n: {*reading.cells[n]} - {"all"} for n in names}
        for attribute in self.schema.attributes:
            self.columns[attribute.name] |= {*attribute.labels}
        self.false = []

    def state(self, said, low, high):
        """Keep a statement that is false: so many records have these labels."""
        said = {n: label for n, label in said.items() if label != "all"}
        true = self.layout.count(said, self.columns)
        if true < low or (not pd.isna(high) and true > high):
            self.false.append((said, true, low, high))

    def place(self, code):
        """Return the labels that make up a place."""
        labels = self.reading.places[code] if self.reading.separate else ()
        return dict(zip(self.reading.separate, labels, strict=True))

    def bounds(self):
        """State the bounds of all published counts."""
        bounds = count_bounds(self.tables, time_limit=5)
        assert not bounds.conflict
        keys = ["place", "table", "cell"]
        rows = self.reading.cells.merge(bounds.counts.rename(columns={"geoid": "place"}), on=keys)
        assert len(rows) == len(self.reading.cells)
        names = [n for n in self.reading.cells.columns if n not in RESULTS]
        for row in rows.to_dict("records"):
            self.state({n: row[n] for n in names}, row["low"], row["high"])

    def claims(self):
        """State all claims that no published count makes."""
        claims = find_claims(self.tables, time_limit=5)
        frame = claims.to_frame(readable="here")
        frame = frame[frame["multiplicity"] > 0]
        words = self.schema.labelled(frame).to_dict("records")
        for row, word in zip(frame.to_dict("records"), words, strict=True):
            names = [n for n in self.schema.names if not pd.isna(row[n])]
            if any(int(row[n]) in g for n in names for g in claims.grouped.get(n, ())):
                continue  # of one of several labels, which no table tells apart
            said = {n: word[n] for n in names} | self.place(row[self.level])
            number = int(row["multiplicity"])
            self.state(said, number, pd.NA if row.get("at_least", False) else number)

    def combinations(self):
        """State the bounds of combinations of all variables that nobody published."""
        geoids = self.tables.geoids[self.level]
        size = self.schema.size
        if size * len(geoids) > MOST_CELLS:
            return
        cross = Workload.of(self.schema, [self.schema.names], levels=[self.level])
        counts = count_bounds(self.tables, queries=cross, time_limit=5).counts
        words = self.schema.labelled(pd.DataFrame(self.schema.codes(np.arange(size))))
        words = words.to_dict("records")
        for i, (low, high) in enumerate(zip(counts["low"], counts["high"], strict=True)):
            self.state(words[i % size] | self.place(geoids[i // size]), low, high)


def lost(layout, statements):
    """Return labels of files that count some and were taken for a total, or for no label."""
    seen = set().union(*statements.columns.values())
    files = [text for name, text in layout.files.items() if name.endswith(".csv")]
    cells = {x for text in files for x in re.split(r'[,;\t\n"\r]', text)}  # "9" is not in "16.9"
    missing = []
    for who in layout.who:
        codes = {who[label] for label in seen if label in who}
        here = [x for x in who if x in cells and not layout.is_total(x)]
        missing += [label for label in here if who[label] not in codes]
    return missing


def check(layout, folder):
    """Check all that is stated of a layout."""
    reading = reading_of(layout, folder)
    if reading is None:
        return
    statements = Statements(layout, reading)
    assert lost(layout, statements) == []
    statements.bounds()
    if statements.schema.names:
        statements.claims()
        statements.combinations()
    assert statements.false == []


@pytest.mark.parametrize("seed", range(40))
def test_nothing_false_is_stated_of_a_random_layout(seed, tmp_path):
    check(random_layout(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 2000, 70))
def test_nothing_false_is_stated_of_many_random_layouts(first, tmp_path):
    for seed in range(first, min(first + 70, 2000)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        check(random_layout(seed), folder)
