"""Random tables in random layouts, with what is true of them: an oracle for their reading.

Each published label says by itself whom it counts, so that a sentence is checked against the
records whatever the reader took for what.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

TOTALS = (
    "Total", "Insgesamt", "Ensemble", "Totaal", "Totalt", "Totale", "Celkem", "Yhteensä",
    "Ogółem", "Всего", "Grand total", "_T", "Alles zusammengezählt", "Qwyx", "Everything",
)  # fmt: skip
#: Variables: labels that exclude each other.
FLAT = {
    "region": ("Nord", "Westmark", "Ostheim", "Suder", "Midland", "Farland", "Highmoor"),
    "cause": ("Falls", "Burns", "Cuts", "Bites", "Stings"),
    "tenure": ("Owned", "Rented", "Free"),
    "marital status": ("Single", "Married", "Widowed", "Divorced"),
    "lives with": ("Both parents", "Mother only", "Father only"),
    "school": ("All Saints", "Total Care", "Grammar", "9", "Population Street"),
}
SEXES = (("Male", "Female"), ("Men", "Women"), ("Boys", "Girls"), ("M", "F"))
AGES = (
    ("0-17", "18-64", "65+"), ("Under 18", "18 to 64", "65 and over"),
    ("Aged 0 to 15 years", "Aged 16 to 24 years", "Aged 25 years and over"),
    ("Y_LT15", "Y15-64", "Y_GE65"), ("0 to 4", "5 to 9", "10 to 14"), ("<5", "5-14", ">=15"),
)  # fmt: skip
#: Trees: a label, and those that make it up.
TREES = {
    "district": {"Uplands": ("Ard", "Ben", "Corrie"), "Lowlands": ("Dale", "Erne"),
                 "Isles": ("Fara", "Gruay")},
    "diagnosis": {"C": ("C10", "C11", "C12"), "D": ("D20", "D21")},
    "industry": {"Making": ("Food", "Steel"), "Services": ("Shops", "Hotels", "Banks"),
                 "Public": ("Army", "Clinics")},
}  # fmt: skip
#: Labels that overlap: each counts some of the atoms 0, 1, 2, ...
OVERLAPS = {
    "group": {"Chinese alone": {0}, "Chinese alone or in any combination": {0, 2},
              "Hmong alone": {1}, "Hmong alone or in any combination": {1, 2}},
    "drug": {"Opioids": {0, 2}, "Cocaine": {1, 2}, "Heroin": {0}},
    "disability": {"Sight": {0, 2, 3}, "Hearing": {1, 2}, "Moving": {3}},
    "age": {"0-4": {0}, "0-17": {0, 1}, "5-17": {1}, "18-64": {2}, "65+": {3}},
}  # fmt: skip
MARKS = ("*", "c", "suppressed", "n.a.", "..", "x", "[c]", "n.p.", "Data suppressed", "<5", "1-4")
RULES = ("exact", "exact", "suppressed", "suppressed", "random-3", "nearest-5", "perturbed-2",
         "midpoint-6")  # fmt: skip


@dataclass
class Layout:
    """Files, the truth behind them, and how their author describes them."""

    truth: np.ndarray
    names: list[str]
    who: list[dict[str, frozenset[int]]]  # of each variable, whom each published label counts
    totals: dict[str, str]  # what the total of a variable is called
    law: str
    files: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()

    def axis(self, label: str) -> int | None:
        """Return the variable of a label."""
        return next((i for i, who in enumerate(self.who) if label in who), None)

    def count(self, said: Mapping[str, str], columns: Mapping[str, set[str]]) -> int:
        """Return how many records have all labels that are said.

        ``columns`` has all labels of each variable of the reader: who has none of them is one of
        the others.
        """
        chosen = [set(range(n)) for n in self.truth.shape]
        for name, label in said.items():
            axes = {a for x in columns[name] if (a := self.axis(x)) is not None}
            assert len(axes) == 1, f"{name} holds labels of {len(axes)} variables"
            (axis,) = axes
            chosen[axis] &= self._codes(axis, label, columns[name])
        return int(self.truth[np.ix_(*map(sorted, chosen))].sum())

    def _codes(self, axis: int, label: str, labels: set[str]) -> set[int]:
        who = self.who[axis]
        if label == "others":
            covered = set().union(*(who[x] for x in labels if x in who and not self.is_total(x)))
            return {*range(self.truth.shape[axis])} - covered
        if label in who:
            return {*who[label]}
        ends = numbers(label)  # a piece of ages that no row has
        return {code for x, codes in who.items() if len(codes) == 1 and inside(numbers(x), ends)
                for code in codes}  # fmt: skip

    def is_total(self, label: str) -> bool:
        """Return whether a label counts all."""
        axis = self.axis(label)
        return axis is not None and len(self.who[axis][label]) == self.truth.shape[axis]


def numbers(label):
    """Return the smallest and the largest age of a label."""
    digits = [int(n) for n in re.findall(r"\d+", label)] or [0]
    if label.startswith(("Under", "<", "Y_LT")):
        return 0, digits[0] - 1
    return (digits[0], digits[1]) if len(digits) > 1 else (digits[0], 999)


def inside(small, large):
    """Return whether ages lie in others."""
    return large[0] <= small[0] and small[1] <= large[1]


def variable(name, rng):
    """Return whom each label of a variable counts, the number of atoms, and its tree."""
    if name in OVERLAPS and (name != "age" or rng.random() < 0.2):
        who = {label: frozenset(codes) for label, codes in OVERLAPS[name].items()}
        return who, 4, {}
    if name in TREES:
        tree = dict(list(TREES[name].items())[: rng.integers(1, len(TREES[name]) + 1)])
        leaves = [leaf for below in tree.values() for leaf in below]
        who = {leaf: frozenset({i}) for i, leaf in enumerate(leaves)}
        who |= {top: frozenset(leaves.index(x) for x in below) for top, below in tree.items()}
        return who, len(leaves), tree
    labels = {"sex": SEXES, "age": AGES}.get(name, (FLAT.get(name, ()),))
    labels = labels[rng.integers(len(labels))]
    size = len(labels) if name in ("sex", "age") else rng.integers(2, len(labels) + 1)
    return {label: frozenset({i}) for i, label in enumerate(labels[:size])}, int(size), {}


def published(count, rule, mark, unit, rng):
    """Return the text of a count under a rule."""
    if unit > 1:
        return f"{(2 * count + unit) // (2 * unit):,}"
    if rule == "random-3":
        return str(int(count - count % 3 + 3 * (rng.random() < (count % 3) / 3)))
    if rule == "nearest-5":
        return str(int((2 * count + 5) // 10 * 5))
    if rule == "perturbed-2":
        return str(max(0, int(count + rng.integers(-2, 3))))
    if rule == "midpoint-6":
        return str(int((count + 5) // 6 * 6 - 3 if count else 0))
    if rule == "suppressed" and 1 <= count <= 4:
        return mark
    return f"{count:,}" if rng.random() < 0.3 else str(count)


def random_layout(seed):
    """Return a random layout of a random table."""
    rng = np.random.default_rng(seed)
    pool = [*FLAT, "sex", "age", *TREES, "sex", "age", *(OVERLAPS if rng.random() < 0.3 else ())]
    names = list(dict.fromkeys(str(n) for n in rng.permutation(pool)))[: rng.integers(1, 4)]
    whos, sizes, trees = zip(*(variable(n, rng) for n in names), strict=True)
    words = [str(t) for t in rng.permutation(TOTALS)]
    several = len(names) == 3 and rng.random() < 0.35  # two files of one population
    totals = {n: words.pop() for n in names if rng.random() < 0.65 or (several and n != names[0])}
    rest = [n in totals and n not in ("sex", "age") and rng.random() < 0.15 for n in names]
    sizes = [size + more for size, more in zip(sizes, rest, strict=True)]
    for n, who, size in zip(names, whos, sizes, strict=True):
        if n in totals:
            who[totals[n]] = frozenset(range(size))
    if years := rng.random() < 0.12:
        names, sizes, trees = [*names, "year"], [*sizes, 2], [*trees, {}]
        whos = [*whos, {"2020": frozenset({0}), "2021": frozenset({1})}]
    truth = rng.poisson(rng.choice([1.5, 6.0, 60.0]), sizes) + (rng.random(sizes) < 0.3)
    rule, unit = str(rng.choice(RULES)), 1
    if rng.random() < 0.06:
        rule, unit = "nearest-1000", 1000
        truth = truth * 700 + rng.integers(0, 900, sizes)
    law = "exact" if rule == "suppressed" else rule
    made = Layout(truth, names, list(whos), totals, law)
    mark = str(rng.choice(MARKS))
    made.marks = (mark,)
    texts = {}

    def text(one):
        if one not in texts:
            said = {n: x for n, x in zip(names, one, strict=True) if x is not None}
            count = made.count(said, {n: {x} for n, x in said.items()})
            texts[one] = published(count, rule, mark, unit, rng)
        return texts[one]

    order = {n: _ordered(who, tree, totals.get(n), rng)
             for n, who, tree in zip(names, whos, trees, strict=True)}  # fmt: skip
    hierarchy = next((n for n, tree in zip(names, trees, strict=True) if tree), "")
    tree_file = bool(hierarchy) and rng.random() < 0.4
    if tree_file:
        tree = trees[names.index(hierarchy)]
        lines = [x for top, below in tree.items() for x in (top, *(f"@{leaf}" for leaf in below))]
        made.files["tree.hrc"] = "\n".join(lines) + "\n"
        made.settings[f"labels.{hierarchy}"] = "tree.hrc"
    groups = [(0, 1), (0, 2)] if several else [range(len(names) - years)]
    for number, group in enumerate(groups):
        here = [names[i] for i in group] + (["year"] if years else [])

        def cell(labels, here=here):
            one = tuple(labels[n] if n in here else None for n in names)
            return text(one)

        size = int(rng.choice([0, 0, 1, 2])) if len(here) > 1 else 0
        wide = here[len(here) - min(size, len(here) - 1) :] if size else []
        wide = [n for n in wide if not (len(wide) > 1 and n == "year")]
        wide = [n for n in wide if not (tree_file and n == hierarchy)]  # its heading names it
        text_of = _write(
            made, [n for n in here if n not in wide], wide, order, cell, unit, several, rng
        )
        made.files[f"table{number}.csv"] = text_of
    _stack(made, np.random.default_rng([seed, 1]))  # apart, so that all else is as it was
    return made


def _stack(made, rng):
    """Write another table, of other people, below that of a file."""
    for name, text in made.files.items():
        if not name.endswith(".csv") or rng.random() > 0.15:
            continue
        mark = max(",;\t", key=text.count)
        title = [[], ["Table 2: of beds"]][int(rng.integers(2))]
        heads, rows = ["Ward", "Beds", "Chairs"], [["I", "3", "14"], ["II", "5", "9"]]
        lines = [[], title, heads, *rows] if title or rng.random() < 0.5 else [[], heads, *rows]
        made.files[name] = text + "".join(mark.join(line) + "\n" for line in lines)


def _ordered(who, tree, total, rng):
    """Return labels in a table's order: the total first or last, parts below their sum or above."""
    labels = [x for x in who if x != total]
    if tree:
        after = rng.random() < 0.6
        labels = [x for top, below in tree.items()
                  for x in ([top, *below] if after else [*below, top])]  # fmt: skip
    if rng.random() < 0.3:
        labels = [str(x) for x in rng.permutation(labels)]
    if total is not None:
        labels.insert(0 if rng.random() < 0.4 else len(labels), total)
    return labels


def _headings(order, wide):
    """Return one or two rows of headings of the wide variables, and the labels of each column."""
    columns = [dict(zip(wide, one, strict=True)) for one in product(*(order[n] for n in wide))]
    if len(wide) < 2:
        return [[one[wide[0]] for one in columns]], columns
    outer = [one[wide[0]] for one in columns]
    first = [x if not i or outer[i - 1] != x else "" for i, x in enumerate(outer)]
    return [first, [one[wide[1]] for one in columns]], columns


def _write(made, long, wide, order, cell, unit, several, rng):
    """Return the text of a file with the labels of some variables in rows, of others in columns."""
    codes = {n: {x: f"{i:02d}" for i, x in enumerate(order[n], 1)} for n in long
             if rng.random() < 0.25 and n != "year"}  # fmt: skip
    left = []
    for n in long:
        left += [f"{n} code"] if n in codes else []
        left.append(n.capitalize() if rng.random() < 0.5 else n)
    counts = str(rng.choice(["Count", "Number of persons", "Cases", "n", "Patients"]))
    counts += str(rng.choice([" ('000)", " (thousands)"])) if unit > 1 else ""
    heads, columns = _headings(order, wide) if wide else ([[counts]], [{}])
    if wide and unit > 1:
        heads[-1] = [f"{x} ('000)" for x in heads[-1]]
    above = rng.random() < 0.1 and len(long) > 1
    if above:
        made.settings["blank"] = "above"
    rows, before = [], {}
    zeros = rng.random() < 0.1  # rows of nobody are left out
    for one in product(*(order[n] for n in long)):
        at = dict(zip(long, one, strict=True))
        row = []
        for n, label in at.items():
            same = above and n != long[-1] and before.get(n) == label
            row += [codes[n][label]] if n in codes else []
            row.append("" if same else label)
        texts = [cell(at | more) for more in columns]
        rows.append(row + texts)
        before = at
    few = [row for row in rows if {*row[len(left) :]} != {"0"}]
    if zeros and few and not above and all(len({*texts}) > 1 for texts in zip(*few, strict=True)):
        rows = few
    if rng.random() < 0.2 and not above:
        rows = [rows[i] for i in rng.permutation(len(rows))]
    head = [*left, *heads[-1]]
    sheet = [[*[""] * len(left), *heads[0]]] if len(heads) > 1 else []
    width = len(head)
    if len(heads) == 1 and not several:
        head, rows = _with_columns(head, rows, rng)
        width = len(head)
    again = [*sheet, head] if rng.random() < 0.12 and len(rows) > 4 else []
    middle = len(rows) // 2
    sheet += [head, *rows[:middle], *again, *rows[middle:]]
    if rng.random() < 0.25:
        sheet = [["Table 1: persons by several things"], [], *sheet]
    if rng.random() < 0.25:
        sheet += [[], ["Source: made up"], ["* withheld, to protect people"]]
    assert all(len(row) <= width for row in sheet)
    out = io.StringIO()
    csv.writer(out, delimiter=str(rng.choice([",", ";", "\t"]))).writerows(sheet)
    return out.getvalue()


def _with_columns(head, rows, rng):
    """Return headings and rows with columns that count nobody: numbers of rows, notes, a gap."""
    if rng.random() < 0.2:
        head, rows = ["FIPS", *head], [[f"{99001 + 2 * i}", *r] for i, r in enumerate(rows)]
    if rng.random() < 0.2:
        head, rows = [*head, "Population"], [[*r, str(rng.integers(100, 9999))] for r in rows]
    if rng.random() < 0.2:
        head, rows = [*head, "Rate per 1,000"], [[*r, f"{rng.uniform(0, 50):.1f}"] for r in rows]
    if rng.random() < 0.15:
        head, rows = [*head, "Note"], [[*r, "revised" if rng.random() < 0.2 else ""] for r in rows]
    if rng.random() < 0.1:
        head, rows = [*head, "Data year"], [[*r, "2021"] for r in rows]
    if rng.random() < 0.15:
        head, rows = [*head[:1], "", *head[1:]], [[*r[:1], "", *r[1:]] for r in rows]
    return head, rows
