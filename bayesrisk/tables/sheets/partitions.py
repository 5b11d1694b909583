"""Partitions: sections whose labels add up to the first row, or another row above all sections.

An example is *Deaths* = *Females* + *Males* above the sections *Age*, *Age* of *Females*, and
*Place of death*. One total is cut by sex, by age, by both, and by place. Each section is a
variable; so are groups that repeat the labels of a section.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bayesrisk.tables.sheets.lines import CountColumns, Grid, Line
from bayesrisk.tables.sheets.texts import DECIMAL, number_range, sex

_BITS = 8  # sums are equal by chance in one of 2**8 cases, times the sums tried
MOST_CROSSINGS = 2**10  # of labels of all sections
_FEW = 2  # sections, labels and columns of counts


class _Block(NamedTuple):
    """Rows of one section and one group in it, by their labels."""

    section: str
    group: str
    rows: dict[str, Line]


class _Parted(NamedTuple):
    """The rows above all sections by their labels, and the blocks of the sections."""

    first: dict[str, Line]
    blocks: list[_Block]


def partitioned(
    head: Sequence[str], lines: Sequence[Line], sections: Mapping[int, str], columns: CountColumns
) -> tuple[list[str], Grid] | None:
    """Return a table with each section as a variable; None where sums do not show it.

    Each block adds up to the first row, or another row above all sections that is a part of it.
    Rows above with decimals are means, kept by their labels.
    """
    labels = [j for j in columns.labels if any(line.row[j] for line in lines)]
    parted = _parted(lines, sections, labels) if 0 < len(labels) <= _FEW else None
    counts = sorted(columns.counts - {*labels})
    if parted is None or len(parted.first) < _FEW:
        return None
    sums = _Sums(counts, len(parted.blocks) * len(parted.first))
    whole, *rest = parted.first
    means = [k for k in rest if any(DECIMAL.fullmatch(parted.first[k].row[j]) for j in counts)]
    parts = [k for k in rest if k not in means]
    wholes = [sums.whole([*block.rows.values()], parted.first) for block in parted.blocks]
    every = {block.section: {*block.rows} for block, k in zip(parted.blocks, wholes, strict=True)
             if k == whole and not block.group}  # fmt: skip
    inner = {k: block for block, k in zip(parted.blocks, wholes, strict=True) if k in parts}
    holds = sums.whole([parted.first[k] for k in parts], {whole: parted.first[whole]}) == whole
    crossed = all({*block.rows} <= every.get(block.section, set()) for block in inner.values())
    if not (holds and crossed and all(wholes)) or len(every) < _FEW:
        return None
    if sum(k == whole for k in wholes) != len(every) or any(not b.group for b in inner.values()):
        return None
    groups = {k: inner[k].group if k in inner else k for k in parts}
    groups |= {k: k for k in means} | {whole: "Total"}
    if len({*groups.values()}) < len(groups):
        return None
    name = "sex" if all(sex(groups[k]) for k in parts) else "group"
    names = [*every, name]
    if len({*names}) < len(names):
        return None

    crossings = math.prod(len(labels) for labels in every.values())
    joint = crossings <= MOST_CROSSINGS
    if not joint and not all(sums.stated(parted.first[k]) for k in (whole, *parts)):
        return None  # a withheld count would repeat in each section
    times = Counter(itertools.chain(*every.values()))

    def row(line: Line, section: str, label: str, group: str) -> tuple[int, list[str]]:
        texts = [label if n == section else "Total" for n in every]
        if not joint:
            texts = [section, f"{label} ({section})" if times[label] > 1 else label]
        return line.number, [*texts, group, *(line.row[j] for j in counts)]

    above = parted.first if joint else means  # means are left out later, by name
    rows = [row(parted.first[k], "", "", groups[k]) for k in above]
    for section in every if not joint else ():
        mine = {b.group for b in parted.blocks if b.section == section}
        rows += [row(line, section, "Total", groups[k]) for k, line in parted.first.items()
                 if k == whole or groups[k] in mine]  # fmt: skip
    for block, k in zip(parted.blocks, wholes, strict=True):
        rows += [row(line, block.section, x, groups[k]) for x, line in block.rows.items()]
    titles = [*every, name] if joint else ["section", "label", name]
    return [*titles, *(head[j] for j in counts)], rows


def _parted(
    lines: Sequence[Line], sections: Mapping[int, str], labels: Sequence[int]
) -> _Parted | None:
    """Return the rows above all sections and the blocks; None if labels do not distinguish rows.

    Rows without a section belong to the section above.
    """
    outer, inner = (labels[0] if labels[1:] else -1), labels[-1]
    first, blocks = dict[str, Line](), dict[tuple[str, str], _Block]()
    section = group = ""
    for line in lines:
        texts = [line.row[j] for j in labels if line.row[j]]
        name, label = sections.get(line.number, ""), line.row[inner]
        if not blocks and len(texts) == 1 and name in ("", texts[0]):
            if texts[0] in first:
                return None
            first[texts[0]] = line
            continue
        called = line.row[outer] if outer >= 0 else ""
        group = called or ("" if name else group)
        section = name or section
        block = blocks.setdefault((section, group), _Block(section, group, {}))
        if not (section and label and (name or group)) or label in block.rows:
            return None
        block.rows[label] = line
    return _Parted(first, [*blocks.values()])


class _Sums:
    """Sums of rows in count columns, and the bits of evidence needed against chance."""

    def __init__(self, counts: Sequence[int], number: int) -> None:
        self.counts, self.bits = counts, _BITS + math.log2(max(number, 1))

    def stated(self, line: Line) -> bool:
        """Return whether no count of a row is withheld."""
        ends = [number_range(line.row[j]) for j in self.counts if line.row[j]]
        return all(end and end[0] == end[1] for end in ends)

    def whole(self, rows: Sequence[Line], wholes: Mapping[str, Line]) -> str:
        """Return the label of the row that is the sum of others in two columns; empty if none is.

        The sum holds wherever all counts are known.
        """
        results = []
        for label, line in wholes.items():
            bits, size = 0.0, 0
            for j in self.counts:
                ends = [number_range(one.row[j]) for one in (line, *rows)]
                if all(end and end[0] == end[1] for end in ends):
                    total, *parts = [end[0] for end in ends if end]
                    if total != sum(parts):
                        break
                    bits, size = bits + math.log2(total + 1), size + (total > 0)
            else:
                results += [label] * (size >= _FEW and bits >= self.bits and len(rows) >= _FEW)
        return results[0] if len(results) == 1 else ""
