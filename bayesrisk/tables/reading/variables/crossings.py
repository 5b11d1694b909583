"""Crossings: a variable whose labels make up one total in several ways is several variables.

*Total* = *men* + *women* = *owners* + *renters*, in rows below each other.
"""

from collections.abc import Sequence

import numpy as np

from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.headings import UNNAMED, heading_kind
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.margins import CountedColumns, margins
from bayesrisk.tables.reading.variables.nested import Nesting
from bayesrisk.tables.reading.variables.sums import CodedLabels, Ends, LabelSums
from bayesrisk.tables.sheets.texts import interval, key, listing

_LEAST, _MOST = 5, 128  # labels that are looked at


def crossed(
    cells: list[Cell], ends: Sequence[Ends], nesting: Nesting, rules: ReadingRules
) -> list[Cell]:
    """Return cells in which each way to make up the total of a variable is a variable.

    Cells of the total have none of these.
    """
    coded = CodedLabels([cell.labels for cell in cells], ends)
    for name in coded.names:
        if name in nesting.trees or name in nesting.separate or name in nesting.paths:
            continue
        titles = _titles(name, coded)
        moved = {k for k, title in titles.items() if title != name}
        if moved & rules.section(f"labels.{name}").keys():
            continue
        if moved:
            ways = listing(dict.fromkeys(titles.values()))
            rules.lines.append(f"  {name}: each way to make up its total is a variable: {ways}")
            cells = [cell._replace(labels=_labels(cell, name, titles)) for cell in cells]
    return cells


def _titles(name: str, coded: CodedLabels) -> dict[str, str]:
    """Return the variable of each label but the total; empty where numbers do not show several."""
    if not _LEAST <= len(coded.spellings[name]) <= _MOST:
        return {}
    ages = [x for x in coded.labels[name] if interval(x)]
    if 2 * len(ages) > len(coded.labels[name]):  # these say by their names what they share
        return {}
    sums = LabelSums(name, coded, {})
    texts = {key(x): x for x in coded.labels[name]} | {"": "Total"}
    labels = {i: texts[k] for k, i in sums.column.items()}
    counts = np.where(sums.bounded & (sums.low == sums.high), sums.low, -1)
    kinds = {i: heading_kind(text, 1) for i, text in labels.items()}
    columns = CountedColumns(counts, [*labels])
    ways = margins(columns, labels, kinds, UNNAMED)
    totals = [i for i in labels if i not in ways]
    for way in {*ways.values()}:  # what else there is may be of some
        parts = [i for i in ways if ways[i] == way]
        if len(totals) != 1 or not columns.sets(parts, totals[0]):
            return {}
    called = dict[str, str]()
    for way in dict.fromkeys(ways[i] for i in labels if i in ways):
        plain = way if called and way in ("age", "sex") else name
        number, used = 2, {*coded.names, *called.values()} - ({name} if not called else set())
        title = plain
        while title in used:
            title, number = f"{name} {number}", number + 1
        called[way] = title
    return {key(labels[i]): called[way] for i, way in ways.items()} if len(called) > 1 else {}


def _labels(cell: Cell, name: str, titles: dict[str, str]) -> dict[str, str]:
    """Return labels with one of a variable moved to that of its way; that of all has none."""
    every = {n if n != name else titles.get(key(x), ""): x for n, x in cell.labels.items()}
    return {n: x for n, x in every.items() if n}
