"""Crossings: a variable whose labels divide one total in several ways is several variables.

An example is *Total* = *men* + *women* = *owners* + *renters*, in rows below each other. Another
column may name the ways: *sex* beside *men*.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.headings import UNNAMED, free_name, heading_kind
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.ages import Ends, consecutive
from bayesrisk.tables.reading.variables.evidence import LabelEvidence
from bayesrisk.tables.reading.variables.margins import CountedColumns, margins
from bayesrisk.tables.reading.variables.nested import Nesting
from bayesrisk.tables.reading.variables.sums import CodedLabels, LabelSums
from bayesrisk.tables.sheets.partitions import MOST_CROSSINGS
from bayesrisk.tables.sheets.texts import BLANK, interval, key, listing, total_word

_LEAST, _MOST = 5, 128  # labels to look at
_WAYS = 12  # divisions of the same people at most
_BITS = 16  # of evidence that totals are equal
_AGAIN = 4  # labels for each that repeats in another division, as *unknown* does


def divided(cells: list[Cell], ends: Sequence[Ends], rules: ReadingRules) -> list[Cell]:
    """Return cells in which each division of the same people named by a column is a variable.

    Another column has the labels of all divisions: *sex* beside *men*, *race* beside *white*.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.labels)
    columns = {name: [cell.labels.get(name, "") for cell in cells] for name in names}
    size = {name: len({*column}) for name, column in columns.items()}
    for outer, inner in itertools.permutations(names, 2):
        settled = any(f"{kind}.{name}" in rules.choices or rules.section(f"{kind}.{name}")
                      for kind in ("labels", "totals") for name in (outer, inner))  # fmt: skip
        if settled or not 1 < size[outer] <= min(_WAYS, size[inner] // 2):
            continue
        ways = _divisions(columns, ends, outer, inner)
        titles = dict(zip(ways, map(free_name, ways), strict=True))
        if ways and {*map(key, titles.values())}.isdisjoint({*map(key, names)} - {key(outer)}):
            rules.lines.append(f"  {outer} names divisions of the same people: {listing(ways)}")
            return [cell._replace(labels=_divided(cell, outer, inner, titles)) for cell in cells]
    return cells


def _counts_all(part: str, way: str) -> bool:
    """Return whether a label may count all of a division."""
    return total_word(part) == 2 or part == BLANK or key(part) == key(way)


def _divided(cell: Cell, outer: str, inner: str, titles: dict[str, str]) -> dict[str, str]:
    """Return labels with that of a division under its own variable; totals have none."""
    labels = {n: x for n, x in cell.labels.items() if n not in (outer, inner)}
    way, part = (cell.labels.get(name, "") for name in (outer, inner))
    plain = way in titles and part and not _counts_all(part, way)
    return labels | ({titles[way]: part} if plain else {})


def _divisions(
    columns: Mapping[str, Sequence[str]], ends: Sequence[Ends], outer: str, inner: str
) -> list[str]:
    """Return the labels of a column that name divisions; none without evidence in the numbers.

    The parts of each exceed half of the total in several groups, and the total in few. One group
    suffices if divisions have equal totals everywhere. Parts of one division would not do this.
    """
    pairs = [*zip(columns[outer], columns[inner], strict=True)]
    below: dict[str, set[str]] = {}
    for way, part in {*pairs}:
        if part and not _counts_all(part, way):
            below.setdefault(way, set()).add(key(part))
    labels = [*itertools.chain(*below.values())]
    repeats = len(labels) - len({*labels})
    sizes = [*map(len, below.values())]
    if len(sizes) < 2 or min(sizes) < 2 or _AGAIN * repeats > len(labels):
        return []
    if math.prod(sizes) > MOST_CROSSINGS:
        return []
    # In each group the total of each division, and the known parts.
    totals: dict[tuple[str, ...], dict[str, int]] = {}
    parts: dict[tuple[str, tuple[str, ...]], dict[str, int]] = {}
    rest = [column for name, column in columns.items() if name not in (outer, inner)]
    groups = zip(*rest, strict=True) if rest else itertools.repeat(())
    for (way, part), group, (low, high) in zip(pairs, groups, ends, strict=False):
        if part and not _counts_all(part, way):
            parts.setdefault((way, group), {})[part] = low
        elif low == high and totals.setdefault(group, {}).setdefault(way, low) != low:
            return []
    below = {way: below[way] for way in dict.fromkeys(columns[outer]) if way in below}
    bits, halves = 0.0, dict.fromkeys(below, 0)
    for group, total_by_way in totals.items():
        if len({*total_by_way.values()}) > 1:
            return []
        total = next(iter(total_by_way.values()), 0)
        bits += (len(total_by_way) - 1) * math.log2(total + 1)
        for way in below:
            counts_of_parts = parts.get((way, group), {})
            ages = {part: end for part in counts_of_parts if (end := interval(part))}
            chosen = consecutive(ages) if len(ages) == len(counts_of_parts) else counts_of_parts
            count = sum(map(counts_of_parts.__getitem__, chosen))
            halves[way] += (2 * count > total) - 2 * (count > total)
    return [*below] if min(halves.values()) > (bits < _BITS) else []


def crossed(
    cells: list[Cell], ends: Sequence[Ends], nesting: Nesting, rules: ReadingRules
) -> list[Cell]:
    """Return cells in which each way to divide the total of a variable is a variable.

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
    """Return the variable of each label except the total; empty without evidence of several."""
    if not _LEAST <= len(coded.spellings[name]) <= _MOST:
        return {}
    ages = [x for x in coded.labels[name] if interval(x)]
    if 2 * len(ages) > len(coded.labels[name]):  # their names say what they share
        return {}
    sums = LabelSums(name, coded, {})
    texts = {key(x): x for x in coded.labels[name]} | {"": "Total"}
    labels = {i: texts[k] for k, i in sums.column.items()}
    counts = np.where(sums.bounded & (sums.low == sums.high), sums.low, -1)
    kinds = {i: heading_kind(text, 1) for i, text in labels.items()}
    columns = CountedColumns(counts, [*labels])
    ways = margins(columns, labels, kinds, UNNAMED)
    totals = [i for i in labels if i not in ways]
    for way in {*ways.values()}:  # other labels may be parts of some
        parts = [i for i in ways if ways[i] == way]
        if len(totals) != 1 or not columns.sets(parts, totals[0]):
            return {}
    if _share_a_total(sums, [[i for i in ways if ways[i] == w] for w in {*ways.values()}], totals):
        return {}
    called = dict[str, str]()
    for way in dict.fromkeys(ways[i] for i in labels if i in ways):
        plain = way if called and way in ("age", "sex") else name
        used = {*coded.names, *called.values()} - ({name} if not called else set())
        called[way] = plain if plain not in used else _next_title(name, used)
    return {key(labels[i]): called[way] for i, way in ways.items()} if len(called) > 1 else {}


def _share_a_total(sums: LabelSums, ways: Sequence[Sequence[int]], totals: Sequence[int]) -> bool:
    """Return whether labels of several ways are together no more than a total in some group."""
    every = [i for way in ways for i in way]
    unknown = (sums.present & ~sums.bounded)[:, [*every, *totals]].any(axis=1)
    several = sum((sums.low[:, way].sum(axis=1) > 0).astype(int) for way in ways) > 1
    fits = sums.largest[:, every].sum(axis=1) <= sums.low[:, totals].sum(axis=1)
    return bool((several & fits & ~unknown).any())


def _next_title(name: str, used: Collection[str]) -> str:
    """Return the name of a further variable beside one."""
    titles = (f"{name.rstrip(' 0123456789')} {number}" for number in itertools.count(2))
    return next(title for title in titles if title not in used)


def divided_twice(
    cells: list[Cell], coded: CodedLabels, evidence: Mapping[str, LabelEvidence], nesting: Nesting,
    rules: ReadingRules,
) -> list[Cell]:  # fmt: skip
    """Return cells in which a second way to divide one label is a variable beside it.

    All cases may be in hospital or at home, and by another test, *PCR* or *antigen*.
    """
    for name in coded.names:
        if name in nesting.trees or name in nesting.separate or name in nesting.paths:
            continue
        whole, parts = evidence[name].second_way
        moved = {*parts}
        if not moved or moved & rules.section(f"labels.{name}").keys():
            continue
        first = {key(x): x for x in reversed(coded.labels[name])}
        title = _next_title(name, coded.names)
        text = f"{first[whole]!r} = {listing([first[k] for k in parts])}"
        rules.lines.append(f"  {name}: {text}: a second way to make it up is {title}")
        cells = [
            cell._replace(labels=cell.labels | {name: first[whole], title: x})
            if key(x := cell.labels.get(name, "")) in moved else cell for cell in cells
        ]  # fmt: skip
    return cells


def _labels(cell: Cell, name: str, titles: dict[str, str]) -> dict[str, str]:
    """Return labels with one moved to the variable of its way; labels of the total are dropped."""
    every = {n if n != name else titles.get(key(x), ""): x for n, x in cell.labels.items()}
    return {n: x for n, x in every.items() if n}
