"""Ranges of marks in settings, checked against the sums of the counts around them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.evidence import sums_shown
from bayesrisk.tables.reading.variables.sums import CodedLabels
from bayesrisk.tables.sheets.texts import key, listing, number_range, span

#: Factors by which ranges of marks are widened to see which sums show.
_TIMES = (2, 4, 8, 16)


class _MarkSum(NamedTuple):
    """A sum, and the joint count of its marks: its total less its other parts."""

    total: Cell
    hidden: list[Cell]
    ends: Ends


def check_ranges(cells: Sequence[Cell], ends: Sequence[Ends], rules: ReadingRules) -> None:
    """Refuse a mark's range that a sum contradicts, and name a range that fits.

    The numbers show this sum if the marks stand for more, but not under the stated ranges.
    """
    ranges = {
        name.partition(".")[2]: end
        for name, text in rules.choices.items()
        if name.startswith("marks.") and (end := number_range(text)) and end[1] < UNBOUNDED
    }
    marked = [ranges.get(cell.text) for cell in cells]
    if "totals" in rules.choices or not any(marked):
        return
    coded = CodedLabels([cell.labels for cell in cells], ends)
    settled = {n for n, sums in sums_shown(coded, rules).items() if sums}
    coded.labels = {
        name: labels
        for name, labels in coded.labels.items()
        if name not in settled and f"totals.{name}" not in rules.choices
    }
    wrong, fits = dict[str, tuple[str, _MarkSum]](), dict(ranges)
    for times in _TIMES if coded.labels else ():
        free = [
            end if stated_range is None else (0, times * (stated_range[1] + 1))
            for stated_range, end in zip(marked, ends, strict=True)
        ]
        coded.low, coded.high = np.array(free, np.int64).T
        for name, wholes in sums_shown(coded, rules).items():
            for rest in _mark_sums(name, wholes, cells, free, ranges):
                mark, size = rest.hidden[0].text, len(rest.hidden)
                low, high = fits[mark]
                if {cell.text for cell in rest.hidden} > {mark}:
                    continue  # any of several marks may be wrong
                if size * high < rest.ends[0] or size * low > rest.ends[1]:
                    wrong.setdefault(mark, (name, rest))
                    fits[mark] = min(low, rest.ends[1] // size), max(high, -(-rest.ends[0] // size))
    for mark, (name, rest) in wrong.items():
        raise ArgumentError(
            f"marks.{mark}",
            _contradiction(name, rest),
            got=span(*ranges[mark]),
            advice=f"; marks.{mark}={span(*fits[mark])} fits, and totals.{name}=separate takes no "
            f"sum of {name} for granted",
        )


def _mark_sums(
    name: str, wholes: Mapping[str, Sequence[str]], cells: Sequence[Cell], ends: Sequence[Ends],
    ranges: Mapping[str, Ends],
) -> Iterator[_MarkSum]:  # fmt: skip
    """Yield the sums with marks whose total and other parts are known."""
    groups: dict[frozenset[tuple[str, str]], dict[str, int]] = {}
    for i, cell in enumerate(cells):
        group = frozenset((n, key(x)) for n, x in cell.labels.items() if n != name)
        groups.setdefault(group, {})[key(cell.labels.get(name, ""))] = i
    for whole, parts in wholes.items():
        for columns in groups.values():
            members = [columns.get(k, -1) for k in (whole, *parts)]
            hidden = [i for i in members if cells[i].text in ranges]
            stated = [ends[i] for i in members[1:] if cells[i].text not in ranges]
            total = ends[members[0]]
            if (
                -1 in members
                or not hidden
                or hidden[0] == members[0]
                or max(b for _, b in [total, *stated]) >= UNBOUNDED
            ):
                continue
            low, high = (sum(side) for side in zip((0, 0), *stated, strict=True))
            rest = max(total[0] - high, 0), total[1] - low
            yield _MarkSum(cells[members[0]], [cells[i] for i in hidden], rest)


def _contradiction(name: str, rest: _MarkSum) -> str:
    """Return a text on the sum that a range contradicts, and the joint count of its marks."""
    size, rows = len(rest.hidden), listing(dict.fromkeys(str(cell.row) for cell in rest.hidden))
    rows = f"row{'s' * (', ' in rows)} {rows}"
    many = f"{size} marks in {rows} count" if size > 1 else f"the mark in {rows} counts"
    label = rest.total.labels.get(name, "all")
    return (
        f"must fit the sum of {name} in row {rest.total.row} ({label!r} is {rest.total.text}): "
        f"{many} {span(*rest.ends)}{' together' * (size > 1)}"
    )
