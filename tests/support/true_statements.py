"""What is stated of the records behind a published table, checked against the truth of a layout."""

import re

import numpy as np
import pandas as pd

from bayesrisk import PublishedTables, Workload
from bayesrisk.reconstruction import count_bounds, find_claims

RESULTS = ("place", "table", "cell", "stated", "file", "row")
COUNTS = {"9"}  # a label that is also a count
MOST_CELLS = 300  # combinations of all variables that are bounded


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
        cells, self.false = self.reading.cells[self.reading.cells["file"] != ""], []
        self.trees = {
            (whole := name.removeprefix("parts of ")): {
                (a, b) for a, b in zip(cells[whole], cells[name], strict=True)
                if b != "all"
            }
            for name in names if name.startswith("parts of ")
        }  # fmt: skip

    def check_all(self):
        """Check all that is stated, in every form that an attack has."""
        assert lost(self.layout, self) == []
        self.bounds()
        if self.schema.names:
            self.claims()
            self.combinations()
        assert self.false == []

    def state(self, said, low, high):
        """Keep a statement that is false: so many records have these labels."""
        for name in [n for n in said if n.startswith("parts of ") and said[n] != "all"]:
            part, whole = said[name], name.removeprefix("parts of ")
            tree = {b for a, b in self.trees[whole] if a == said.get(whole)} or {"in no sum"}
            if said.get(whole, "all") == "all":  # in a place that has no label of it
                tree = {b for _, b in self.trees[whole]}
                if part == "in no sum":
                    assert low == 0
                    return
            if part not in tree:  # no label of the file says it: the part of another tree
                assert high == 0
                return
            said = {n: x for n, x in said.items() if n != (name if len(tree) == 1 else whole)}
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
        here = [x for x in who if x in cells - COUNTS and not layout.is_total(x)]
        missing += [label for label in here if who[label] not in codes]
    return missing
