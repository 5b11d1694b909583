"""Cells of published tables: the text, labels and position of each count."""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.reading.columns.attributes import is_period
from bayesrisk.tables.reading.columns.roles import SheetColumns
from bayesrisk.tables.reading.headings import UNIT, heading_kind
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.sheets.grids import FEWER, MOST
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    OWN_UNIT,
    PATH,
    POINTS,
    WHOLE,
    listing,
    noted,
    number_range,
    total_word,
)

_FEW_SUMS = 4  # needed to show the labels of a period
_SHORT = 3  # letters of a note that may stand beside a count without brackets


class Cell(NamedTuple):
    """A published count: its position, its label of each variable, its text and its unit.

    Counts already written out from thousands were rounded to multiples of ``step``.
    """

    file: str
    row: int
    column: str
    labels: dict[str, str]
    text: str
    unit: int = 1
    step: int = 1

    def refuse(self, must: str) -> DataError:
        """Return the error that names the cell's position."""
        location = f"{self.file}: row {self.row}, column {quote(self.column)}"
        return DataError(f"{location}: must {must}, got {quote(self.text)}")


def cells(sheets: Sequence[Sheet], rules: ReadingRules) -> list[Cell]:
    """Return the cells of all sheets, and add lines on the choices made to ``rules``."""
    results = [cell for sheet in sheets for cell in _SheetCells(sheet, sheets, rules).cells()]
    results = _in_use(results, rules)
    if not 0 < len(results) <= MOST:
        raise DataError(f"tables must hold {FEWER}, got {len(results)}")
    return results


def _in_use(cells: list[Cell], rules: ReadingRules) -> list[Cell]:
    """Return the cells without blanks of labels that the first or the last periods do not use.

    In all groups of such a period the same labels are blank, and the others add up to one of them.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.labels)
    names = names if any(not cell.text for cell in cells) else {}
    labels = {n: [*dict.fromkeys(cell.labels.get(n, "") for cell in cells)] for n in names}
    years = [
        n for n, x in labels.items()
        if len({re.sub(r"\d+", "#", t) for t in x}) == 1 < len(x) or is_period(n, x)
    ]  # fmt: skip
    for year, name in itertools.permutations(names, 2):
        if year not in years:
            continue
        groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
        for cell in cells:
            rest = (("", cell.file), *((n, x) for n, x in cell.labels.items() if n != name))
            groups.setdefault(rest, []).append(cell)
        blanks: dict[str, list[set[str]]] = {text: [] for text in labels[year]}
        for group in groups.values():
            blank = {cell.labels.get(name, "") for cell in group if not cell.text}
            texts = [cell.text for cell in group if cell.text]
            ends = [number_range(t) for t in texts]
            numbers = [end[0] for end in ends if end and end[0] == end[1]]
            holds = len(numbers) == len(texts) > 2 and sum(numbers) == 2 * max(numbers) > 0
            blanks[group[0].labels.get(year, "")].append(blank if holds else set())
        common = {y: b[0] for y, b in blanks.items() if all(one == b[0] for one in b)}
        runs = [
            (blank or set(), [*every])
            for blank, every in itertools.groupby(labels[year], common.get)
        ]
        for ordered in (runs, runs[::-1]):
            number = 0
            for k, (unused, periods) in enumerate(ordered[:-1]):
                number += sum(len(blanks[y]) for y in periods)
                if not unused or number < _FEW_SUMS or (k and not unused < ordered[k - 1][0]):
                    break  # unused labels must become fewer towards the middle
                pairs = {(y, label) for y in periods for label in unused}
                text = listing(x for x in labels[name] if x in unused)
                text = f"  not used: blanks of {text} in {listing(periods)}"
                rules.lines.append(f"{text} ({number} sums hold without them)")
                cells = [
                    c for c in cells if (c.labels.get(year), c.labels.get(name, "")) not in pairs
                ]
    return cells


class _SheetCells(SheetColumns):
    """The cells of a sheet, by the roles of its columns."""

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of the sheet."""
        names, counts, flag_columns = self.roles()
        kinds = {kind for more in counts.values() for kind in more}  # names of paths must differ
        for i in self.trees.keys() & names.keys():
            if any(kind.startswith(f"{names[i]} ") for kind in kinds):
                names[i] = f"row {names[i]}"
        flags = self._flags_by_count(flag_columns, [*counts])
        withholding = self._withholding(flags)
        sheet, choices = self.sheet, self.rules.choices
        heads = {i: sheet.heads[i] for i in counts}
        thousands = {
            i for i, head in heads.items()
            if (sheet.thousands and not OWN_UNIT.search(head)) or UNIT.search(head)
        }  # fmt: skip
        stated = [
            (i, more, flags[i], sheet.heads[i],
             1000 if i in thousands and i not in sheet.persons else 1, sheet.persons.get(i, 1))
            for i, more in counts.items()
        ]  # fmt: skip
        keys: dict[tuple[tuple[str, str], ...], None] = {}
        absent = choices.get("absent") == "zero"
        points, plain = self.points, self.trees.keys().isdisjoint(names)
        every = list(zip(*(self.columns[i] for i in names), strict=True)) if plain else []
        for position, (row, texts) in enumerate(sheet.rows):
            labels: dict[str, str] = {}
            if every:
                labels = dict(zip(names.values(), every[position], strict=True))
            for column, name in names.items() if not labels else ():
                labels |= self._label(column, name, self.columns[column][position])
            for column, more, places, head, unit, step in stated:
                text = texts[column]
                if places and (flag := next((texts[f] for f in places if texts[f]), "")):
                    note = flag if len(flag) <= _SHORT else f"[{flag}]"
                    pair = f"{text} {note}"
                    if (column, flag) in withholding:
                        text = flag
                    else:
                        counted = WHOLE.fullmatch(text) or number_range(text)
                        text = pair if noted(pair) else text if counted else flag
                if points and POINTS.fullmatch(text):
                    text = text.replace(".", "")
                every_label = labels | more if more else labels
                cell = Cell(sheet.name, row, head, every_label, text, unit, step)
                if absent:
                    keys[tuple(cell.labels.items())] = None
                yield cell
        yield from self._repeated(names, next(iter(counts.values())))
        if absent:
            yield from self._zeros(list(keys))

    def _repeated(self, names: Mapping[int, str], more: dict[str, str]) -> Iterator[Cell]:
        """Yield once each total that repeats in all rows it counts."""
        for column, axes in self.repeated.items():
            keys = set[tuple[str, ...]]()
            for position, (row, texts) in enumerate(self.sheet.rows):
                every = more.copy()
                for i in names.keys() - {*axes}:
                    every |= self._label(i, names[i], self.columns[i][position])
                if (spelled := tuple(every.values())) not in keys:
                    keys.add(spelled)
                    yield Cell(self.sheet.name, row, self.sheet.heads[column], every, texts[column])

    def _flags_by_count(self, flags: Sequence[int], counts: Sequence[int]) -> dict[int, list[int]]:
        """Return the flag columns that belong to each count column.

        A flag belongs to the count that its heading names, else to the count before it. One block
        of flags belongs to all counts.
        """
        alternating = any(flags[0] < i < flags[-1] for i in counts) if flags else False
        words = {i: " ".join(re.findall(r"[\w-]+", self.heads[i])) for i in (*flags, *counts)}
        results: dict[int, list[int]] = {i: [] for i in counts}
        for flag in flags:
            named = [i for i in counts if words[i] and f" {words[i]} " in f" {words[flag]} "]
            before = [i for i in counts if i < flag] if alternating else []
            chosen = [max(named, key=lambda i: len(words[i]))] if named else before[-1:] or counts
            for i in chosen:
                results[i].append(flag)
        return results

    def _withholding(self, flags: Mapping[int, Sequence[int]]) -> set[tuple[int, str]]:
        """Return the pairs of a count column and a flag that means "withheld".

        Every count beside such a flag is 0 or blank, and some count without a flag is positive.
        """
        results = set[tuple[int, str]]()
        for column, columns in ((i, c) for i, c in flags.items() if c):
            numbers: dict[str, set[str]] = {}
            for _, row in self.sheet.rows:
                flag = next((row[f] for f in columns if row[f]), "")
                numbers.setdefault(flag, set()).add(row[column])
            stated = numbers.pop("", set()) - {"", "0"}
            results |= {(column, flag) for flag, texts in numbers.items()
                        if stated and texts <= {"", "0", "0.0"}}  # fmt: skip
        return results

    def _label(self, column: int, name: str, label: str) -> dict[str, str]:
        """Return a row's label, or the labels of the path given by its indentation."""
        if column not in self.trees:
            return {name: label}
        common, at_depth = self.trees[column]
        parts = [p.rstrip(":") for p in label.split(PATH)][common:]
        kinds = [heading_kind(p, d, name) for d, p in enumerate(parts, 1)]
        for depth, part in enumerate(parts):  # a total belongs to the variable beside it
            options = at_depth.get(depth, set())
            if total_word(part) and len(options) == 1 and not min(options).startswith(" "):
                kinds[depth] = min(options)
        self.rules.kinds |= {*kinds}
        return {self.rules.columns.get(k, k): p for k, p in zip(kinds, parts, strict=True)}

    @functools.cached_property
    def trees(self) -> dict[int, tuple[int, dict[int, set[str]]]]:
        """Columns of paths: the number of first parts that all share, and variables by depth."""
        results = {}
        for i, texts in enumerate(self.row_counts):
            paths = [t.split(PATH) for t in texts if t]
            if i not in self.reasons and any(len(p) > 1 for p in paths):
                common = 0
                while all(len(p) > common for p in paths) and len({p[common] for p in paths}) == 1:
                    common += 1
                kinds: dict[int, set[str]] = {}
                for depth, part in {(d, p) for path in paths for d, p in enumerate(path[common:])}:
                    if not total_word(part):
                        kind = heading_kind(part, depth + 1, "")
                        kinds.setdefault(depth, set()).add(kind)
                results[i] = common, kinds
        return results

    def _zeros(self, keys: Sequence[tuple[tuple[str, str], ...]]) -> Iterator[Cell]:
        """Yield the combinations of labels without a row, as counts of 0."""
        variables = list(dict.fromkeys(n for one in keys for n, _ in one))
        every = [list(dict.fromkeys(dict(one).get(n, "") for one in keys)) for n in variables]
        if prod(map(len, every)) > MOST:
            raise DataError(f"{self.sheet.name}: must have at most {MOST} combinations of labels")
        for one in itertools.product(*every):
            labels = tuple((n, label) for n, label in zip(variables, one, strict=True) if label)
            if labels not in keys:
                yield Cell(self.sheet.name, 0, "absent", dict(labels), "0")
