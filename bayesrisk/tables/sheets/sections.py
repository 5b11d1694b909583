"""Sections and outlines: rows of one text above the rows they describe, and indented labels.

The heading of a section is a label of its rows, such as a town above its wards. Or it is the
variable of their labels, such as *Sex* above *Male* and *Female*.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bayesrisk.tables.sheets.lines import CountColumns, Grid, Line, filled_texts
from bayesrisk.tables.sheets.texts import PATH, is_date, number_range, total_word

_BITS = 8  # sums of sections are equal by chance in one case of 2**8
_FEW_LABELS, _MOST_SORTED = 3, 10  # in alphabetical order, except one in this many
_PARTS_WITHIN = 20  # for each part above its whole
_PAIR = 2  # labels
_ROUNDED = 50  # a sum of rounded counts misses its total by at most 1 / 50
_SUBTOTAL = re.compile(r"sub-? ?totals?\b", re.IGNORECASE)


class _Section(NamedTuple):
    """The heading of a section, and the rows below it with their depths."""

    heading: str
    rows: list[tuple[Sequence[str], int]]

    @property
    def total(self) -> str:
        """The label of the total in the last row, or empty."""
        text = _first_text(self.rows[-1][0])
        called = total_word(text) and not text.isdecimal()
        return text if len(self.rows) > _PAIR and called else ""

    @property
    def alone(self) -> bool:
        """Whether its heading is that of its one row, as of a total."""
        return len(self.rows) == 1 and self.rows[0][0][0] == self.heading

    def sums(self, columns: Collection[int]) -> dict[int, int]:
        """Return the sums of the outermost labels by column, where all counts are known.

        A total below the labels is left out.
        """
        least = min(depth for _, depth in self.rows)
        results = {}
        for j in columns:
            rows = self.rows[:-1] if self.total else self.rows
            ends = [number_range(row[j]) for row, depth in rows if depth == least]
            if all(end is not None and end[0] == end[1] for end in ends):
                results[j] = sum(end[0] for end in ends if end)
        return results


def section_headings(
    lines: Sequence[Line], heads: Sequence[Sequence[str]], columns: CountColumns, group: int = -1
) -> dict[int, str]:
    """Return the section heading of each line, by line number; empty without sections.

    A row of one text is a heading if rows with counts, or another heading, stand below it. Rows
    before the first heading are the total, or without section.

    There are sections if labels repeat below two headings, an empty row precedes each heading, or
    rows are indented below headings. Equal totals of sections also show them. So do first rows of a
    section that add up to the only row above all, or a column with one text in each section, as a
    code of it. One heading suffices if it is no day and rows are not in alphabetical order.

    A section ends after its own total if another total follows, or at a new group in the column
    ``group``.
    """
    lone = _lone_headings(lines, heads, columns, group)
    sections = lone.headings
    rows = [(line, sections[line.number]) for line in lines if line.number in sections]
    leading = [(name, line.row) for line, name in rows if name in ("", line.row[0])]
    several_sections = len({*sections.values()} - {name for name, _ in leading}) > 1
    if not sections or not (several_sections or len(leading) > 1):
        return {}
    first = next((name for name, _ in leading), "")
    named = {i: "" if not total_word(t) and t == first else t for i, t in sections.items()}
    if lone.certain or _follow_a_column(rows, columns):
        return named
    parts = _sections([(name, line.row, line.depth) for line, name in rows])
    called = len(leading) < 2 or all(name for name, _ in leading)  # perhaps with an average
    if called and _same_total(parts, columns.beside_ages):
        return sections
    if called and len(leading) == 1 and _begins_with_parts(parts, columns.beside_ages):
        return named
    if not lone.days and _make_up_total(parts, columns.beside_ages):
        return named
    listed = by_alphabet([line.row for line in lines])
    return {} if listed or several_sections or lone.days else named


def _follow_a_column(rows: Sequence[tuple[Line, str]], columns: CountColumns) -> bool:
    """Return whether a column of labels has one text in each section, and another in each other."""
    for j in columns.labels:
        texts = dict[str, set[str]]()
        for line, name in rows:
            texts.setdefault(name, set()).add(line.row[j])
        same_codes = all(len(one) == 1 and "" not in one for one in texts.values())
        several = len(texts) > _PAIR and len(rows) >= _PAIR * len(texts)
        if same_codes and several and len(set().union(*texts.values())) == len(texts):
            return True
    return False


class _SectionHeadings(NamedTuple):
    """Section headings by line number, and whether they are certain, and all are days."""

    headings: dict[int, str]
    certain: bool = False
    days: bool = False


def _lone_headings(
    lines: Sequence[Line], heads: Sequence[Sequence[str]], columns: CountColumns, group: int
) -> _SectionHeadings:
    """Return the sections whose headings are rows of one text, if these may be headings.

    Headings above other headings name groups of sections. They name none if an empty row leaves
    open whether a section belongs to the group before.
    """
    filled = [line.row for line in lines if any(line.row)]
    lone = [(row, after) for row, after in itertools.pairwise(filled) if _is_lone(row)]
    titles = [row for row, after in lone if after in heads]
    if len(titles) == len(lone):
        return _SectionHeadings({})
    names = [_first_text(row) for row, _ in lone]
    times, afters = Counter(names), (after for _, after in lone)
    several = {n for n, after in zip(names, afters, strict=True) if times[n] > 1 or _is_lone(after)}
    paths = dict[int, tuple[str, str]]()
    first_section = dict[tuple[str, ...], tuple[str, str]]()
    upper, section, gap, gaps, repeated, flat = "", "", True, True, False, False
    above, inside = False, list[Sequence[str]]()  # the row above is a heading; rows below it
    every, rows_inside, totals, ended = _RunningSum(), _RunningSum(), _RunningSum(), False
    depths = list[int](), list[int]()  # of headings, and of rows below them
    for number, row, _, depth, _ in lines:
        if not any(row) or row in heads or row in titles:
            gap = gap or not any(row)
            continue
        alone, wider = _is_lone(row), False
        if section and not alone:
            wider = _counts_all(row, every, rows_inside, totals, ended=ended)
            if wider or _is_beyond(inside, row, group, columns.counts):
                section, upper = "", ""
            total = _is_total(row)
            ended = ended or total
            for one in [totals] if total else [every, rows_inside]:
                one.add(row, columns.counts)
        if alone:
            inside, rows_inside, ended = [], _RunningSum(), False
        else:
            inside.append(row)
        if alone or section:
            depths[not alone].append(depth)
        if alone:
            name = _first_text(row)
            nested = above or not upper or name in several
            if row.index(name) not in (0, *columns.labels) or not (nested or gap):
                return _SectionHeadings({})  # not after an empty row
            flat = flat or (not nested and gaps)  # perhaps in no group
            upper = section if above else upper if nested else ""
            section, gaps = name, gaps and (gap or above)
        else:
            texts = tuple(row[j] for j in (columns.labels or [0]))  # ages are numbers, and labels
            name = row[0] if wider or total_word(row[0]) or not paths else ""
            path = paths[number] = upper, section or name
            repeated = repeated or first_section.setdefault(texts, path) != path
        above, gap = alone, False
    if above or not depths[0]:
        return _SectionHeadings({})
    if flat and len({*paths.values()}) > len({section for _, section in paths.values()}):
        return _SectionHeadings({})  # only the outer headings distinguish these names
    sections = {i: f"{a}{PATH}{b}" if a and not flat else b for i, (a, b) in paths.items()}
    certain = repeated or gaps or max(depths[0]) < min(depths[1])
    return _SectionHeadings(sections, certain, all(map(is_date, names)))


def is_group_row(row: Sequence[str], lines: Sequence[Sequence[str]], labels: Sequence[int]) -> bool:
    """Return whether a row without counts has the names of two groups, the inner one last.

    Some ``lines`` are names of inner groups alone, and no row with counts has such a label.
    """
    columns = [j for j, text in enumerate(row) if text]
    if len(columns) != _PAIR or not {*columns} <= {*labels}:
        return False
    inner = columns[-1]
    names = {line[inner] for line in lines if line[inner] and _is_lone(line)}
    called = {
        line[inner] for line in lines if not {j for j, t in enumerate(line) if t} <= {*labels}
    }
    return bool(names) and called.isdisjoint({*names, row[inner]})


def with_groups(
    rows: Sequence[Sequence[str]], columns: CountColumns
) -> tuple[list[list[str]], int]:
    """Return rows with the names of their outer groups, and the column of these names.

    The names stand beside the name of an inner group, or beside the first row. If all stand beside
    rows with counts, at most half of these have one, and rows stay unchanged. Without names the
    column is -1.
    """
    results, column, name = [list(row) for row in rows], -1, ""
    for position, row in enumerate(rows):
        if is_group_row(row, rows, columns.labels):
            column = next(j for j, text in enumerate(row) if text)
            results[position][column] = ""
        if column >= 0:
            name = row[column] or name
            if any(row[j] for j in columns.counts):
                results[position][column] = name
    inner = {row.index(_first_text(row)) for row in rows if _is_lone(row) and any(row)}
    if column < 0 and len(inner) == 1:
        full = [row for row in rows if any(row[j] for j in columns.counts)]
        for j in (j for j in columns.labels if j < min(inner)):
            if 0 < 2 * sum(bool(row[j]) for row in full) <= len(full):
                return results, j
    return results, column


def _is_beyond(
    inside: Sequence[Sequence[str]], row: Sequence[str], group: int, counts: Collection[int]
) -> bool:
    """Return whether a row belongs to another group than the section above, or is a wider total."""
    if group >= 0 and inside and row[group] not in ("", inside[-1][group]):
        return True
    if len(inside) < _PAIR or not (_is_total(inside[-1]) and _is_total(row)):
        return False
    if _is_subtotal(inside[-1]) and not _is_subtotal(row):
        return True
    sums = _Section("", [(line, 0) for line in inside[:-1]]).sums(counts)
    return bool(sums) and all(number_range(inside[-1][j]) == (n, n) for j, n in sums.items())


class _RunningSum:
    """The sum of rows by column, and the columns in which some count is unknown."""

    def __init__(self) -> None:
        self.least, self.hidden = Counter[int](), set[int]()

    def add(self, row: Sequence[str], counts: Collection[int]) -> None:
        """Add a row."""
        for j in counts:
            ends = number_range(row[j])
            self.least[j] += ends[0] if ends else 0
            self.hidden |= {j} if not ends or ends[0] < ends[1] else set()

    def bits(self, wholes: Mapping[int, int]) -> float:
        """Return the bits of the known columns if each is equal to a total, else 0."""
        plain = {j: n for j, n in wholes.items() if j not in self.hidden}
        equal = all(self.least[j] == n for j, n in plain.items())
        return sum(math.log2(n + 1) for n in plain.values()) if equal else 0.0


def _counts_all(
    row: Sequence[str], every: _RunningSum, section: _RunningSum, totals: _RunningSum,
    *, ended: bool,
) -> bool:  # fmt: skip
    """Return whether a row counts ``every`` row so far, and not only those of its section.

    A total is their sum, or no less if some are unknown. Another label is exactly their sum, or
    that of the ``totals`` of sections if this one has ``ended`` with its own.
    """
    ends_by_column = {j: number_range(row[j]) for j in section.least}
    wholes = {j: ends[0] for j, ends in ends_by_column.items() if ends and ends[0] == ends[1]}
    more = any(j in section.hidden or section.least[j] < every.least[j] for j in wholes)
    if not more or any(_ROUNDED * (every.least[j] - n) > n for j, n in wholes.items()):
        return False
    if not _is_total(row):
        return max(every.bits(wholes), totals.bits(wholes) if ended else 0.0) >= _BITS
    inside = any(section.least[j] == n > 0 for j, n in wholes.items() if j not in section.hidden)
    near = all(j in every.hidden or _ROUNDED * (n - every.least[j]) <= n for j, n in wholes.items())
    return near and not (ended or inside)


def _is_subtotal(row: Sequence[str]) -> bool:
    return any(map(_SUBTOTAL.match, row))


def _is_total(row: Sequence[str]) -> bool:
    """Return whether a label of a row names a total or a subtotal."""
    return _is_subtotal(row) or any(total_word(text) for text in row if not text.isdecimal())


def names_with_counts(
    lines: list[Line], heads: Sequence[Sequence[str]], columns: CountColumns
) -> list[Line]:
    """Return the lines with counts beside section names moved to the first labels below.

    The row below such a name lacks exactly its counts. The move is made only if it gives sections
    with the same total.
    """
    counts, changed = columns.beside_ages, dict[int, list[str]]()
    for (i, row, *_), (k, below, *_) in itertools.pairwise(lines):
        pairs = [(row[j], below[j]) for j in counts]
        named = i not in changed and row[0] and below[0] and any(a for a, _ in pairs)
        if named and all(bool(a) != bool(b) for a, b in pairs):
            changed[i] = [t if j not in counts else "" for j, t in enumerate(row)]
            changed[k] = [t or row[j] for j, t in enumerate(below)]
    if len(changed) <= _PAIR:
        return lines
    changed_lines = [line._replace(row=changed.get(line.number, line.row)) for line in lines]
    sections = section_headings(changed_lines, heads, columns)
    parts = _sections([(sections[i], row, d) for i, row, _, d, _ in changed_lines if i in sections])
    return changed_lines if sections and _same_total(parts, counts) else lines


def with_totals_first(
    lines: list[Line], columns: CountColumns
) -> tuple[list[Line], dict[int, str]]:
    """Return lines whose sections begin with their total, relabelled so, and the section of each.

    The total's row has the name of the section. The labels below repeat in other sections. They add
    up to it, or to no more if a count is withheld. If no row is indented, the first row may be the
    sum of all sections' totals.
    """
    times = Counter(line.row[0] for line in lines if any(line.row))
    blocks, bits = list[list[Line]](), 0.0
    for line in (line for line in lines if any(line.row)):
        if times[line.row[0]] == 1:
            blocks.append([])
        if not blocks or not line.row[0] or not {*columns.labels} <= {0}:
            return lines, {}
        blocks[-1].append(line)
    if len(blocks) < _PAIR:
        return lines, {}
    flat = len({line.depth for block in blocks for line in block}) == 1
    whole = blocks.pop(0) if flat and len(blocks) > _PAIR and len(blocks[0]) == 1 else []
    sums = _Section("", [(first.row, 0) for first, *_ in blocks]).sums(columns.beside_ages)
    if whole and not (
        sums and all(number_range(whole[0].row[j]) == (n, n) for j, n in sums.items())
    ):
        return lines, {}
    below = [[line.row[0] for line in rest] for _, *rest in blocks]
    if any(not _PAIR <= len({*b}) == len(b) for b in below):
        return lines, {}
    for (first, *rest), j in itertools.product(blocks, columns.beside_ages):
        ends = [number_range(line.row[j]) for line in (first, *rest)]
        if ends[0] is None:
            continue
        total, least = ends[0][0], sum(end[0] for end in ends[1:] if end)
        exact = all(end and end[0] == end[1] for end in ends)
        if total < least or (exact and total != least):
            return lines, {}
        bits += math.log2(max(total, 1)) if total == least else 0.0
    blocks = [whole, *blocks] if whole else blocks
    sections = {line.number: block[0].row[0] for block in blocks for line in block}
    firsts = {block[0].number for block in blocks}
    called = [x._replace(row=["Total", *x.row[1:]]) if x.number in firsts else x for x in lines]
    return (called, sections) if bits >= _BITS * (len(blocks) - bool(whole)) else (lines, {})


def rows_of_others(
    lines: Sequence[Line], sections: Mapping[int, str], columns: CountColumns
) -> set[int]:
    """Return the rows below the only heading, with it, if they count others than the rows before.

    An example is *England* below *Grossed data*. These rows are fewer, have other labels, are not
    indented, and do not add up to one of the rows before, which have no section.
    """
    full = [(i, row, depth) for i, row, _, depth, _ in lines if i in sections]
    names = ["" if sections[i] == row[0] else sections[i] for i, row, _ in full]
    below = names[names.count("") :]
    texts = {tuple(row[j] for j in (columns.labels or [0])) for _, row, _ in full}
    if not below or {*below} != {below[0]} or "" in below or 2 * len(below) >= len(names):
        return set()
    depths = [depth for _, _, depth in full]
    if len(texts) < len(full) or min(depths[-len(below) :]) > max(depths[: -len(below)]):
        return set()
    sums = _Section("", [(row, depth) for _, row, depth in full[-len(below) :]]).sums(
        columns.beside_ages
    )
    if sums and any(
        all(number_range(row[j]) == (number, number) for j, number in sums.items())
        for _, row, _ in full[: -len(below)]
    ):
        return set()
    return {i for i, row, *_ in lines if filled_texts(row) == 1 or sections.get(i) == below[0]}


def by_alphabet(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows of one text stand in their place in an alphabetical list of labels."""
    texts = [(_first_text(row).casefold(), _is_lone(row)) for row in rows if any(row)]
    listed = [text for text, alone in texts if not alone]
    wrong = sum(a > b for a, b in itertools.pairwise(listed))
    placed = all(a <= b for (a, x), (b, y) in itertools.pairwise(texts) if x or y)
    return placed and len({*listed}) > _FEW_LABELS and wrong * _MOST_SORTED <= len(listed)


def _first_text(row: Sequence[str]) -> str:
    return next(filter(None, row), "")


def _is_lone(row: Sequence[str]) -> bool:
    return filled_texts(row) < 2


def _sections(rows: Sequence[tuple[str, Sequence[str], int]]) -> list[_Section]:
    """Return the sections of rows with their headings and depths."""
    results: dict[str, _Section] = {}
    for heading, row, depth in rows:
        results.setdefault(heading, _Section(heading, [])).rows.append((row, depth))
    return list(results.values())


def _same_total(sections: Sequence[_Section], counts: Collection[int]) -> bool:
    """Return whether at least half of the sections, two or more, have the same sum of labels.

    The total is the first section if that is a single row with its own heading. It may be rounded.
    """
    first = sections[0]
    stated = first.alone
    every = [section.sums(counts) for section in sections[stated:] if len(section.rows) > 1]
    total = first.sums(counts) if stated else next(filter(None, every), {})
    rounded = _ROUNDED if stated else 0
    bits = list[float]()
    for sums in every:
        pairs = [(sums[j], total[j]) for j in sums if total.get(j, 0) > 0]
        if all(abs(a - b) * rounded <= b if rounded else a == b for a, b in pairs):
            bits.append(sum(math.log2(b) for _, b in pairs))
    weights = [b for b in bits if b >= (_BITS / 2 if stated else _BITS)]
    return len(weights) > 1 and 2 * len(weights) >= len(every) and sum(weights) >= _BITS


def _make_up_total(sections: Sequence[_Section], counts: Collection[int]) -> bool:
    """Return whether all rows of sections, several in each, add up to a row outside of them."""
    wholes, rest = ([s for s in sections if s.alone is alone] for alone in (True, False))
    if len(wholes) != 1 or any(len(section.rows) < _PAIR for section in rest):
        return False
    sums = _Section("", [(row, 0) for section in rest for row, _ in section.rows]).sums(counts)
    holds = all(number_range(wholes[0].rows[0][0][j]) == (n, n) for j, n in sums.items())
    return holds and sum(math.log2(n + 1) for n in sums.values()) >= _BITS


def _begins_with_parts(sections: Sequence[_Section], counts: Collection[int]) -> bool:
    """Return whether the first rows of a section add up to the row above all sections.

    They do so in two columns or more, and wherever counts are known.
    """
    whole = {j: number_range(sections[0].rows[0][0][j]) for j in counts}
    totals = {j: ends[0] for j, ends in whole.items() if ends and ends[0] == ends[1] > 0}
    for section in sections[1:]:
        for size in range(_PAIR, len(section.rows) + 1):
            sums = _Section("", section.rows[:size]).sums(totals)
            bits = sum(math.log2(totals[j]) for j in sums)
            if len(sums) >= _PAIR and sums == {j: totals[j] for j in sums} and bits >= 2 * _BITS:
                return True
    return False


def by_variable(
    head: Sequence[str], body: Grid, depths: Sequence[int], counts: Collection[int]
) -> tuple[list[str], Grid]:
    """Return a table with each section as a variable in a column of its own.

    This needs sections with the same total; otherwise the table stays as it is. Rows of other
    sections have the label *Total* there. Each row begins with its section heading and its label.
    ``counts`` are the count columns.
    """
    named = [(row[0], row[1:], depth) for (_, row), depth in zip(body, depths, strict=True)]
    sections = _sections(named)
    labels = [{row[0] for row, _ in section.rows} for section in sections]
    several = any(row[j] for _, row, _ in named for j in range(1, min({*counts} - {0}, default=1)))
    if (
        several
        or sum(map(len, labels)) > len(set().union(*labels))
        or not _same_total(sections, {*counts} - {0})
    ):
        return list(head), with_paths(body, depths, 1)
    whole = [s.heading for s in sections[:1] if labels[0] == {s.heading}]
    names = [section.heading for section in sections[len(whole) :]]
    totals = {section.heading: section.total for section in sections}
    results: Grid = []
    for name in (*whole, *names):
        inside = [k for k, (_, row) in enumerate(body) if row[0] == name]
        for i, row in with_paths([body[k] for k in inside], [depths[k] for k in inside], 1):
            label = "Total" if row[1] == totals[name] else row[1]
            results.append((i, [*(label if name == n else "Total" for n in names), *row[2:]]))
    return [*names, *head[2:]], results


def outlined(
    head: Sequence[str], body: Grid, depths: Sequence[int], counts: Collection[int]
) -> tuple[list[str], Grid]:
    """Return a table with each label preceded by the labels that it is part of.

    Labels are indented, or stand in one of several columns, which gives their depth. A label's
    whole stands before it or, as a total, below it.
    """
    size = min(counts, default=0)
    filled = [[j for j in range(size) if row[j]] for _, row in body]
    if any(len(places) != 1 for places in filled) or len({*itertools.chain(*filled)}) < 2:
        inside = _are_inside([row for _, row in body], depths, counts)
        return list(head), with_paths(body, depths, 0) if inside else body
    columns = [place for (place,) in filled]
    name = "/".join(dict.fromkeys(filter(None, head[:size])))
    rows = [(i, [row[j], *[""] * (size - 1), *row[size:]])
            for (i, row), j in zip(body, columns, strict=True)]  # fmt: skip
    if columns[0] > min(columns) == columns[-1]:
        rows = with_paths(rows[::-1], columns[::-1], 0)[::-1]
    else:
        rows = with_paths(rows, columns, 0)
    return [name, *[""] * (size - 1), *head[size:]], rows


def _are_inside(
    rows: Sequence[Sequence[str]], depths: Sequence[int], counts: Collection[int]
) -> bool:
    """Return whether counts of indented rows do not exceed those of the row above them.

    One in twenty may, since counts may be rounded or changed.
    """
    above, size, wrong = list[int](), 0, 0
    for k, depth in enumerate(depths):
        above = [i for i in above if depths[i] < depth]
        for j in counts if above else ():
            whole, part = number_range(rows[above[-1]][j]), number_range(rows[k][j])
            if whole and part:
                size, wrong = size + 1, wrong + (part[0] > whole[1])
        above.append(k)
    return _PARTS_WITHIN * wrong <= size


def with_paths(body: Grid, depths: Sequence[int], column: int) -> Grid:
    """Return rows with each label in a column preceded by the labels it is indented under."""
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
