"""Random tables in random layouts, with what is true of them: an oracle for their reading.

Every label says by itself whom it counts, so that a sentence is checked against the records
whatever the reader took for what.
"""

import csv
import io
from dataclasses import dataclass, field
from itertools import product

import numpy as np

TOTALS = (
    "Total", "Insgesamt", "Ensemble", "Totaal", "Totalt", "Totale", "Celkem", "Yhteensä",
    "Ogółem", "Всего", "Grand total", "_T", "Alles zusammengezählt", "Qwyx", "Everything",
)  # fmt: skip
PLACES = ("Nord", "Westmark", "Ostheim", "Suder", "Midland", "Farland", "Highmoor")
WORDS = {
    "region": PLACES,
    "cause": ("Falls", "Burns", "Cuts", "Bites", "Stings"),
    "tenure": ("Owned", "Rented", "Free"),
    "marital status": ("Single", "Married", "Widowed", "Divorced"),
    "sex": ("Male", "Female"),
    "lives with": ("Both parents", "Mother only", "Father only"),
    "age": ("0-17", "18-64", "65+"),
}


@dataclass
class Layout:
    """A file, the truth behind it, and how its author describes it."""

    text: str
    labels: dict[str, tuple[str, ...]]  # of each variable, without totals
    totals: dict[str, str]  # what each total is called
    truth: np.ndarray
    rest: dict[str, bool] = field(default_factory=dict)  # totals that count others, too
    law: str = "exact"

    def count(self, said: set[str]) -> int | None:
        """Return how many records have all labels that are said; None for an unknown label."""
        index, known = [], {"all", "total", "any", ""}
        for name, labels in self.labels.items():
            every = {*labels, "others", self.totals.get(name), *known}
            mine = [x for x in said if x in labels or (x == "others" and self.rest.get(name))]
            chosen = range(self.truth.shape[len(index)])
            for label in mine:
                at = len(labels) if label == "others" else labels.index(label)
                chosen = [i for i in chosen if i == at]
            index.append(list(chosen))
            known |= {x for x in every if x}
        if not said <= known:
            return None
        return int(self.truth[np.ix_(*index)].sum())


def rounded(count, rule, rng):
    """Return the text of a count under a rule."""
    if rule == "random-3":
        return str(int(count - count % 3 + 3 * (rng.random() < (count % 3) / 3)))
    if rule == "nearest-5":
        return str(int((2 * count + 5) // 10 * 5))
    if rule == "suppressed" and 1 <= count <= 4:
        return "*"
    return f"{count:,}" if rng.random() < 0.3 else str(count)


def random_layout(seed):
    """Return a random layout of a random table."""
    rng = np.random.default_rng(seed)
    names = [str(n) for n in rng.permutation(list(WORDS))[: rng.integers(1, 4)]]
    labels = {
        n: WORDS[n] if n in ("sex", "age") else WORDS[n][: rng.integers(2, len(WORDS[n]) + 1)]
        for n in names
    }
    rest = {n: n not in ("sex", "age") and rng.random() < 0.12 for n in names}
    shape = [len(labels[n]) + rest[n] for n in names]
    truth = rng.poisson(rng.choice([1.5, 6.0, 60.0]), shape) + (rng.random(shape) < 0.3)
    words = [str(t) for t in rng.permutation(TOTALS)]
    totals = {n: words.pop() for n in names if rng.random() < 0.65}
    rule = str(rng.choice(["exact", "exact", "suppressed", "random-3", "nearest-5"]))
    made = Layout("", labels, totals, truth, rest, "exact" if rule == "suppressed" else rule)
    wide = names[-1] if len(names) > 1 and rng.random() < 0.45 else None
    keys = {n: [*labels[n], *([totals[n]] if n in totals else [])] for n in names}
    if rng.random() < 0.4:
        keys = {n: [str(x) for x in rng.permutation(k)] for n, k in keys.items()}
    cells = {}
    for one in product(*keys.values()):
        said = {x for n, x in zip(names, one, strict=True) if x != totals.get(n)}
        cells[one] = rounded(made.count(said), rule, rng)
    made.text = _write(names, keys, cells, wide, rng)
    return made


def _with_columns(head, rows, rng):
    """Return headings and rows with columns that count nobody: numbers of rows, codes, a gap."""
    if rng.random() < 0.25:
        head = ["FIPS", *head]
        rows = [[f"{99001 + 2 * i}", *row] for i, row in enumerate(rows)]
    if rng.random() < 0.25:
        head = [*head, "Population"]
        rows = [[*row, str(rng.integers(100, 9999))] for row in rows]
    if rng.random() < 0.2:
        head = [*head, "Rate per 1,000"]
        rows = [[*row, f"{rng.uniform(0, 50):.1f}"] for row in rows]
    if rng.random() < 0.2:
        head, rows = [*head[:1], "", *head[1:]], [[*row[:1], "", *row[1:]] for row in rows]
    return head, rows


def _write(names, keys, cells, wide, rng):
    """Return the text of a file."""
    long = [n for n in names if n != wide]
    codes = {n: {x: f"{i:02d}" for i, x in enumerate(keys[n], 1)} for n in long
             if rng.random() < 0.25}  # fmt: skip
    head = []
    for n in long:
        head += [f"{n} code"] if n in codes else []
        head.append(n.capitalize() if rng.random() < 0.5 else n)
    counts = str(rng.choice(["Count", "Number of persons", "Cases", "n", "Patients"]))
    head += list(keys[wide]) if wide else [counts]
    extra = rng.random() < 0.15
    head += ["Year"] if extra else []
    rows = []
    for one in product(*(keys[n] for n in long)):
        row = []
        for n, label in zip(long, one, strict=True):
            row += [codes[n][label]] if n in codes else []
            row.append(label)
        at = dict(zip(long, one, strict=True))
        if wide:
            row += [cells[tuple({**at, wide: w}[n] for n in names)] for w in keys[wide]]
        else:
            row.append(cells[tuple(at[n] for n in names)])
        rows.append(row + (["2021"] if extra else []))
    if rng.random() < 0.2:
        rows = [rows[i] for i in rng.permutation(len(rows))]
    head, rows = _with_columns(head, rows, np.random.default_rng(len(rows) + 97 * len(head)))
    sheet = [head, *rows]
    if wide and rng.random() < 0.3:
        above = [""] * len(head)
        above[len(head) - len(keys[wide]) - extra] = wide.capitalize()
        sheet = [above, head, *rows] if rng.random() < 0 else sheet
    if rng.random() < 0.25:
        sheet = [["Table 1: persons by several things"], [], *sheet]
    if rng.random() < 0.25:
        sheet += [[], ["Source: made up"], ["* withheld, to protect people"]]
    out = io.StringIO()
    csv.writer(out, delimiter=str(rng.choice([",", ";", "\t"]))).writerows(sheet)
    return out.getvalue()
