"""Sections of a table: rows of one text, which are headings of the rows below them.

A heading is a label of these rows, such as a town above its wards, or it is the variable of their
labels, such as *Sex* above *Male* and *Female*.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from bayesrisk.tables.reading.grids import Grid
from bayesrisk.tables.reading.texts import PATH, number_range

LABELS, VARIABLES = "labels", "variables"
_BITS = 8  # sums of sections are equal by chance in one case of 2**8
_ROUNDED = 50  # a sum of rounded counts misses its total by at most one part of so many


class _Section(NamedTuple):
    """The heading of a section, its depth, and the rows below it with theirs."""

    heading: str
    depth: int
    rows: list[tuple[Sequence[str], int]]

    def sums(self, columns: Sequence[int]) -> dict[int, int]:
        """Return the sum of the labels that are within no other, by column, where all are known."""
        least = min((depth for _, depth in self.rows), default=0)
        results = {}
        for j in columns:
            ends = [number_range(row[j]) for row, depth in self.rows if depth == least]
            if all(end is not None and end[0] == end[1] for end in ends):
                results[j] = sum(end[0] for end in ends if end)
        return results


def section_kind(
    rows: Sequence[Sequence[str]], depths: Sequence[int], heads: Sequence[Sequence[str]],
    labels: Sequence[int],
) -> str:  # fmt: skip
    """Return what rows of one text say of those below: labels, variables, or nothing (empty).

    Each of several has rows below it, and one row at most, the total, stands above all.  A label
    stands below two of them, or the labels are indented, or an empty row is before each heading.
    They are variables if the labels of each make up the same total.
    """
    sections, gaps, empty = [_Section("", -1, [])], True, True
    for row, depth in zip(rows, depths, strict=True):
        if not any(row):
            empty = True
        elif row not in heads:
            if len(row) - row.count("") > 1:
                sections[-1].rows.append((row, depth))
            elif row[0]:
                sections.append(_Section(row[0], depth, []))
                gaps = gaps and empty
            else:
                return ""
            empty = False
    above, *below = sections
    if len(below) < 2 or len(above.rows) > 1 or not all(section.rows for section in below):
        return ""
    labels = sorted({0, *labels})  # ages are numbers, and labels all the same
    places: dict[tuple[str, ...], int] = {}
    repeated = any(
        places.setdefault(tuple(row[j] for j in labels), i) != i
        for i, section in enumerate(below) for row, _ in section.rows
    )  # fmt: skip
    counts = [j for j in range(len(rows[0])) if j not in labels]
    one_label = not any(row[j] for section in below for row, _ in section.rows for j in labels[1:])
    if one_label and not repeated and _same_total(above, below, counts):
        return VARIABLES
    indented = all(depth > section.depth for section in below for _, depth in section.rows)
    return LABELS if repeated or gaps or indented else ""


def _same_total(above: _Section, below: Sequence[_Section], counts: Sequence[int]) -> bool:
    """Return whether labels of at least half of the sections, two or more, make up one total."""
    every = [section.sums(counts) for section in below if len(section.rows) > 1]
    total = above.sums(counts) if above.rows else next(filter(None, every), {})
    rounded = _ROUNDED if above.rows else 0
    equal = 0
    for sums in every:
        pairs = [(sums[j], total[j]) for j in sums if total.get(j, 0) > 0]
        near = all(abs(a - b) * rounded <= b if rounded else a == b for a, b in pairs)
        equal += near and sum(math.log2(b) for _, b in pairs) >= _BITS
    return equal > 1 and 2 * equal >= len(every)


def with_paths(body: Grid, depths: Sequence[int], column: int) -> Grid:
    """Return rows whose label in a column has before it those that it is indented under."""
    if len(set(depths)) < 2 or min(depths) != depths[0]:
        return body
    path: list[tuple[int, str]] = []
    rows = []
    for (i, row), depth in zip(body, depths, strict=True):
        path = [(d, text) for d, text in path if d < depth]
        if row[column]:
            path.append((depth, row[column]))
        text = PATH.join(text for _, text in path) if row[column] else ""
        rows.append((i, [*row[:column], text, *row[column + 1 :]]))
    return rows


def with_variables(
    head: Sequence[str], body: Grid, depths: Sequence[int]
) -> tuple[list[str], Grid]:
    """Return headings and rows with a column for each section, which others count all of.

    Rows begin with the heading of their section and their label.
    """
    names = list(dict.fromkeys(row[0] for _, row in body if row[0]))
    results: Grid = []
    for name in ("", *names):
        inside = [k for k, (_, row) in enumerate(body) if row[0] == name]
        for i, row in with_paths([body[k] for k in inside], [depths[k] for k in inside], 1):
            labels = [row[1] if name == other else "Total" for other in names]
            results.append((i, [*labels, *row[2:]]))
    return [*names, *head[2:]], results
