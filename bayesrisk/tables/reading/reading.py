"""Readings of published tables: what was understood, the questions, and the resulting tables."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import uncollected
from bayesrisk._base.display import displayed
from bayesrisk.exceptions import ArgumentError, BayesRiskError, DataError, quote
from bayesrisk.tables._grammar import MOST_WEIGHTS, Part
from bayesrisk.tables.likelihoods import UNBOUNDED, Likelihood, TrueCounts
from bayesrisk.tables.reading.cells import Cell, cells as cells_of
from bayesrisk.tables.reading.counts.notes import has_estimates
from bayesrisk.tables.reading.counts.ranges import check_ranges
from bayesrisk.tables.reading.counts.testimony import ask_for_counts
from bayesrisk.tables.reading.counts.values import Value, limit_value, values
from bayesrisk.tables.reading.headings import below_units, numbered
from bayesrisk.tables.reading.rows import without_notes
from bayesrisk.tables.reading.rules import ReadingRules, to_toml
from bayesrisk.tables.reading.variables.crossings import crossed, divided
from bayesrisk.tables.reading.variables.labels import variables
from bayesrisk.tables.reading.variables.nested import Nesting, nested
from bayesrisk.tables.reading.variables.trees import published_labels, take_trees, tree_parts
from bayesrisk.tables.reading.variables.variable import TableVariable
from bayesrisk.tables.sheets.sheet import Sheet, file_sheet, frame_sheets, other_sheets
from bayesrisk.tables.sheets.texts import PART, WHOLE, key, listing, noted, number_range, total_word
from bayesrisk.tables.workload import Workload

_CELL = ("place", "table", "cell", "stated", "file", "row")
_ROWS, _COLUMNS = 6, 5  # of the corner shown
_MOST_COMBINATIONS = 2**61  # of labels, in one table
_MOST_LIMITS = 2**14  # of the parts of a label


@displayed
@dataclass(frozen=True)
class TableReading:
    """Published tables as they were read, and the assumptions made.

    Attributes
    ----------
    lines : list of str
        Lines on what was understood.
    questions : dict
        The guess and the text to confirm, by the name of the setting.
    rules : dict
        All settings by name, with the guesses.
    cells : pandas.DataFrame
        A row for each count: ``place``, ``table`` and ``cell``, a label of each variable (``all``
        where it counts all), ``stated`` (its text), ``file`` and ``row``. Rows of no file say
        that a part does not exceed its whole.
    parts : tuple
        The parts of :class:`PublishedTables`.
    separate : tuple of str
        Variables whose labels stay separate, as places.
    places : dict
        Their labels by the code of the place.
    alternatives : list of tuple
        Alternative settings, by name and value.
    sheets : sequence of Sheet
        Headings and rows.
    trees : dict
        The tree's label for each part, by variable.
    open : frozenset of str
        Questions without evidence in the tables: only a setting answers them.

    Examples
    --------
    >>> frame = pd.DataFrame({"sex": ["F", "M", "Total"], "count": ["*", "6", "7"]})
    >>> reading = TableReading.from_frame(frame)
    >>> list(reading.questions)
    ['counts', 'marks.*', 'totals']
    >>> reading.accepted().rules["marks.*"]
    'withheld'
    """

    lines: list[str]
    questions: dict[str, tuple[str, str]]
    rules: dict[str, str]
    cells: pd.DataFrame
    parts: tuple[Any, ...]
    separate: tuple[str, ...]
    places: dict[str, tuple[str, ...]]
    alternatives: list[tuple[str, str]]
    sheets: Sequence[Sheet]
    trees: Mapping[str, Mapping[str, str]]
    open: frozenset[str] = frozenset()

    @classmethod
    def read(cls, files: str | Path | Sequence[str | Path], **settings: object) -> "TableReading":
        """Return the reading of text files or workbooks; settings: :meth:`PublishedTables.read`.

        ``reading``, another one, gives the settings that are not named.
        """
        several = [files] if check.is_path(files) else check.items(files, "files")
        chosen = [settings.get(name) for name in ("sheet", "encoding")]
        names = [None if name is None else str(name) for name in chosen]
        return read([file_sheet(check.path(file, "files"), *names) for file in several], settings)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame | Sequence[pd.DataFrame], **settings: object
    ) -> "TableReading":
        """Return the reading of one or several data frames; settings as in :meth:`read`."""
        return read(frame_sheets(frame), settings)

    def _answer(self) -> list[str]:
        questions = [f"To confirm: {text}." for _, text in self.questions.values()]
        return [f"{line.strip().rstrip('.')}." for line in self.lines] + questions

    @property
    def stated_cells(self) -> pd.DataFrame:
        """The cells stated in files; others are premises."""
        return self.cells[self.cells["file"] != ""]

    @property
    def count_keys(self) -> pd.DataFrame:
        """Place (``geoid``), table and cell of each count of files, and whether it is a number."""
        names = {"place": "geoid", "table": "table", "cell": "cell"}
        number = [bool(WHOLE.fullmatch(t) or noted(t)) for t in self.stated_cells["stated"]]
        return self.stated_cells[list(names)].rename(columns=names).assign(number=number)

    @property
    def digest(self) -> str:
        """The SHA-256 of the settings file, ``reading.toml``."""
        return hashlib.sha256(self.to_toml().encode()).hexdigest()

    def changed(self, settings: Mapping[str, str]) -> "TableReading":
        """Return the reading of the same tables with other settings, all guesses confirmed."""
        return replace(read(self.sheets, {**self.rules, **settings}), questions={})

    @property
    def condition(self) -> str:
        """The sentence that names the guesses on which everything rests."""
        if not self.rules:
            return "This holds if the tables are read rightly."
        return f"This holds if the tables are read rightly; it rests on: {self._guesses}."

    def screen(self) -> list[str]:
        """Return lines on what was understood: columns, a corner of the counts, and guesses."""
        lines = [*self.lines, *self._corner()]
        number = 0
        for title, names in (
            ("Only you can say, since the table does not show it:", self.open),
            (
                "Taken for granted, until you say otherwise (--accept confirms all):",
                self.questions.keys() - self.open,
            ),
        ):
            lines += [title] * bool(names)
            groups: dict[tuple[str, str], list[str]] = {}  # one line for marks of one meaning
            for name in [name for name in self.questions if name in names]:
                guess, text = self.questions[name]
                plain = text.removeprefix(repr(_marked(name)))
                groups.setdefault((guess, plain), []).append(name)
            for (guess, plain), (name, *rest) in groups.items():
                marks = listing(repr(_marked(n)) for n in (name, *rest))
                text = f"each of {marks}{plain}" if rest else self.questions[name][1]
                number, more = number + 1, ", and so on" * bool(rest)
                lines.append(f"  {number}. {text}  [--set {f'{name}={guess}'!r}{more}]")
        return lines

    def _corner(self) -> list[str]:
        """Return the first counts as a readable table."""
        cells = published_labels(self.stated_cells, self.trees)
        names = [n for n in cells.columns if n not in _CELL]
        if not names or not len(cells):
            return []
        across = names[-1] if len(names) > 1 else None
        frame = cells.assign(**{n: cells[n].map(_short(cells[n])) for n in names})
        if across is None:
            table = frame[[*names, "stated"]].drop_duplicates(names).head(_ROWS)
        else:
            few = list(frame[across].unique())[:_COLUMNS]
            table = frame[frame[across].isin(few)].drop_duplicates(names)
            table = table.set_index(names)["stated"].unstack(fill_value="", sort=False)[few]
            table = table.head(_ROWS).reset_index(allow_duplicates=True).rename_axis(columns=None)
        text = table.to_string(index=False).splitlines()
        return ["  a corner of it:", *(f"    {line}" for line in text)]

    @property
    def _guesses(self) -> str:
        return ", ".join(f"{name}={text}" for name, text in self.rules.items())

    def confirmed(self) -> tuple[Any, ...]:
        """Return the parts of the tables; refuse while a question is open."""
        if self.questions:
            guesses = [f"{name[:80]}={guess[:80]}" for name, (guess, _) in self.questions.items()]
            lines = "; ".join(guesses[:12])
            advice = ": give each as an argument"
            rule = f"guesses must be confirmed or put right; open are: {lines}"
            raise ArgumentError(rule, advice=advice)
        return self.parts

    def accepted(self) -> "TableReading":
        """Return the reading with all guesses confirmed, except those without evidence."""
        return replace(self, questions={n: q for n, q in self.questions.items() if n in self.open})

    def to_toml(self) -> str:
        """Return the text of the file that ``assume`` reads."""
        return to_toml(self.rules, self.open & self.questions.keys())


def _marked(name: str) -> str:
    """Return the mark that a setting is about, or the column with marks."""
    return name.removeprefix("marks.").removeprefix("columns.").removesuffix(".marks")


def _short(labels: pd.Series) -> dict[str, str]:
    """Return short labels that remain distinct."""
    texts: dict[str, str] = {}
    for label in labels.unique():
        variants = (f"{label[:20]}…{k}" for k in itertools.count(2))
        text = next(t for t in itertools.chain([label[:24]], variants) if t not in texts)
        texts[text] = label
    return {label: text for text, label in texts.items()}


@uncollected()
def read(sheets: Sequence[Sheet], options: Mapping[str, Any]) -> TableReading:
    """Return the tables of sheets; ``options`` are those of :meth:`PublishedTables.read`.

    If a sheet or table of a file cannot be read and none is asked for, the next one is tried.
    """
    try:
        return _read(sheets, options)
    except DataError as fault:
        one = next((s for s in sheets if s.tab and s.name in str(fault)), None)
        if one is None:
            raise
        refused = one.refused(fault)
        unread = [*one.unread, str(refused)]
        for other in () if has_estimates(one) else other_sheets(one):
            instead = other._replace(unread=(*unread, *other.unread))
            try:
                reading = _read([instead if s is one else s for s in sheets], options)
            except BayesRiskError as more:
                unread += [str(other.refused(more) if isinstance(more, DataError) else more)]
                continue
            if "sheet" not in options:
                return reading
            refused = one.refused(fault, f"; sheet={other.tab} can be read")
            break
        raise refused from fault


def _read(
    sheets: Sequence[Sheet], options: Mapping[str, Any], unclear: Mapping[str, str] | None = None
) -> TableReading:
    """Return the reading; ``unclear`` columns, with reasons, are left out unless settings say."""
    first_sheets, other = sheets, options.get("reading")
    if other is not None:
        rules_before = check.instance(other, TableReading, "reading").rules
        options = {**rules_before, **{n: v for n, v in options.items() if n != "reading"}}
    if faults := [sheet.fault for sheet in sheets if sheet.fault is not None]:
        raise faults[0]
    rules = ReadingRules(options)
    for head, reason in (unclear or {}).items():
        rules.columns[key(head)] = rules.ask(f"columns.{head}", "ignored", reason)
    rules.lines += [f"not read: {text}" for sheet in sheets for text in sheet.unread]
    sheets = [without_notes(below_units(sheet)) for sheet in sheets]
    cells = cells_of(sheets, rules)
    meanings = values(cells, rules, sheets)
    pairs = [*zip(cells, meanings, strict=True)]
    pairs = [(cell, value) for cell, value in pairs if value.kind != "missing"]
    if not pairs:
        raise DataError("tables must hold counts, got none but those that are left out")
    cells, meanings = [cell for cell, _ in pairs], [value for _, value in pairs]
    ends = [value.ends for value in meanings]
    check_ranges(cells, ends, rules)
    cells = divided(cells, ends, rules)
    cells, nesting = nested(cells, ends, rules)
    cells = crossed(cells, ends, nesting, rules)
    cells, variables_ = variables(cells, ends, nesting, rules)
    if (heads := ask_for_counts(cells, variables_, sheets, rules)) and not unclear:
        return _read(first_sheets, options, heads)
    _check_names(sheets, [*variables_, *nesting.outer], rules)
    left_out = {i for one in variables_.values() for i in one.left_out}
    cells = [cell for i, cell in enumerate(cells) if i not in left_out]
    meanings = [value for i, value in enumerate(meanings) if i not in left_out]
    _ask_large(cells, variables_, rules)
    trees, variables_ = tree_parts(variables_), take_trees(cells, meanings, variables_)
    limits = list(_limits(cells, meanings, nesting, variables_))
    cells, meanings = [*cells, *(c for c, _ in limits)], [*meanings, *(v for _, v in limits)]
    if limits:
        rules.lines.append(f"  a part is no more than what it is of: {len(limits)} limits")
        _ask_totals(variables_, rules)
    frame, parts, places = _tables(cells, meanings, variables_)
    separate = tuple(name for name, variable in variables_.items() if variable.separate)
    alternatives = sorted(rules.alternatives, key=lambda one: one[0].startswith("counts"))
    return TableReading(
        rules.lines,
        rules.questions,
        rules.all,
        frame,
        parts,
        separate,
        places,
        alternatives,
        sheets,
        trees,
        frozenset(rules.open),
    )


def _ask_large(
    cells: Sequence[Cell], variables_: Mapping[str, TableVariable], rules: ReadingRules
) -> None:
    """Separate labels that are too many for joint tables."""
    for name, one in variables_.items():  # one table distinguishes all parts of trees
        size = len({i for k in one.wholes for i in one.groups[k]})
        if len(cells) * size > MOST_WEIGHTS:
            one.wholes = {}
            rules.lines.append(f"  {size:,} labels of {name} are too many: its sums are not used")
    sizes = {name: len(one.labels) for name, one in variables_.items() if not one.separate}
    while prod(sizes.values()) > _MOST_COMBINATIONS:
        name = max(sizes, key=lambda n: sizes[n])
        text = f"labels of {len(sizes)} variables have too many combinations to be read together"
        answer = rules.ask(f"totals.{name}", "separate", f"{text}: those of {name} are by itself")
        variables_[name].separate = answer == "separate"
        del sizes[name]
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        if len(cells) * sum(sizes.values()) <= MOST_WEIGHTS:
            return
        tables: dict[frozenset[str], set[frozenset[tuple[str, str]]]] = {}
        for labels in {tuple(map(cell.labels.get, sizes)) for cell in cells}:
            margin = {n: key(x) for n, x in zip(sizes, labels, strict=True) if x is not None}
            tables.setdefault(frozenset(margin), set()).add(frozenset(margin.items()))
        # Each cell of a table has a weight for each label of its variables.
        weights = sum(len(one) * sum(sizes[n] for n in names) for names, one in tables.items())
        if weights <= MOST_WEIGHTS:
            return
        text = f"{sizes[name]:,} labels of {name} are too many to be read together"
        answer = rules.ask(f"totals.{name}", "separate", f"{text}: each is by itself")
        variables_[name].separate = answer == "separate"
        del sizes[name]


def _limits(
    cells: Sequence[Cell], meanings: Sequence[Value], nesting: Nesting,
    variables_: Mapping[str, TableVariable],
) -> Iterator[tuple[Cell, Value]]:  # fmt: skip
    """Yield cells of no file: nobody has a part without its whole, and no part exceeds it.

    The parts are separate labels. They lie within a label, or within all if called so ("of which"),
    or if the words of a total name them.
    """
    separate = [name for name, one in variables_.items() if one.separate]
    parts_of_total = {name: _counted_by_total(variables_[name]) for name in separate}
    texts = {name: variables_[name].first.values() for name in separate}
    inside = [n for n, x in texts.items()
              if n in nesting.outer or parts_of_total[n] or any(map(PART.match, x))]  # fmt: skip
    if not inside:
        return
    places, stated = set[tuple[str, ...]](), dict[frozenset[tuple[str, str]], int]()
    # By variable and label, or "" for all: the variables of parts, and the parts.
    wholes: dict[tuple[str, str], dict[str, dict[str, None]]] = {}

    def place(labels: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(key(labels.get(name, "all")) for name in separate)

    for cell, value in zip(cells, meanings, strict=True):
        places.add(place(cell.labels))
        for inner in [name for name in inside if name in cell.labels]:
            part, (name, parent) = cell.labels[inner], nesting.parent(cell, inner)
            spelled = frozenset(cell.labels.items())
            stated[spelled] = min(value.ends[1], stated.get(spelled, UNBOUNDED))
            whole = (name, key(parent))
            if not name or whole[1] in variables_[name].totals:
                whole = ("", "")
            if whole[0] or PART.match(part) or part in parts_of_total[inner]:
                wholes.setdefault(whole, {}).setdefault(inner, {})[part] = None
    for (name, parent), parts_by_name in wholes.items():
        one = variables_.get(name)
        group = () if one is None or one.separate else one.groups.get(parent, ())
        rest = () if one is None else tuple(i for i in range(len(one.labels)) if i not in group)
        if one is not None and group and rest:
            label = f"not {one.first[parent]}"
            one.groups[key(label)] = rest
            one.names.setdefault(rest, label)
            for inner, part in ((n, part) for n, parts in parts_by_name.items() for part in parts):
                nobody = {name: label, inner: part}
                yield Cell("", 0, "", nobody, "0"), Value(TrueCounts(), 0, kind="exact")
    cells_of_whole: dict[tuple[str, str], list[tuple[dict[str, str], int]]] = {
        w: [] for w in wholes
    }
    for cell, value in zip(cells, meanings, strict=True):
        if not cell.row:  # of no file: a place lacks the parts of a tree
            continue
        pairs = [("", ""), *((name, key(label)) for name, label in cell.labels.items())]
        for whole in [pair for pair in pairs if pair in wholes and value.ends[1] < UNBOUNDED]:
            cells_of_whole.setdefault(whole, []).append((cell.labels, value.ends[1]))
    for whole, parts_by_name in wholes.items():
        for inner, parts in parts_by_name.items():
            free = {"", *variables_[inner].totals}
            limits = [
                one for one in cells_of_whole.get(whole, ()) if key(one[0].get(inner, "")) in free
            ]
            if len(limits) * len(parts) > _MOST_LIMITS:
                continue
            for (labels, high), part in itertools.product(limits, parts):
                part_labels = {**labels, inner: part}
                spelled = frozenset(part_labels.items())
                if high < stated.get(spelled, UNBOUNDED) and place(part_labels) in places:
                    stated[spelled] = high
                    bound = Cell("", 0, "", part_labels, f"at most {high}")
                    yield bound, limit_value(high)


def _ask_totals(variables_: Mapping[str, TableVariable], rules: ReadingRules) -> None:
    """Ask whether totals count all, if limits of overlapping labels rest on their names."""
    for name, one in variables_.items():
        for label in [one.first[k] for k in one.totals if one.separate and _counted_by_total(one)]:
            text = f"{label!r} counts all of {name} by its name: no other label counts more"
            rules.ask(f"labels.{name}.{label}", "all", f"{text} (={label} if it does not)")


def _counted_by_total(one: TableVariable) -> set[str]:
    """Return labels that may overlap, and that a total includes: *pupils* of *total pupils*."""
    words = [{*re.findall(r"[^\W\d_]{4,}", k)} for k in one.totals]
    nouns = [{w for w in every if not total_word(w)} for every in words]
    return {
        x for k, x in one.first.items()
        if k not in one.totals and nouns and not one.doubtful
        and all(not noun or noun & {*re.findall(r"[^\W\d_]+", k)} for noun in nouns)
    }  # fmt: skip


def _check_names(sheets: Sequence[Sheet], variables_: Sequence[str], rules: ReadingRules) -> None:
    """Refuse settings about headings, variables or labels that do not exist."""
    plain = [[key(re.sub(r"\(\d+ categories\)", "", h)) for h in s.heads] for s in sheets]
    heads = {head for one in plain for head in one}
    used = {*heads, *rules.kinds, *map(key, variables_)}
    used |= {name for one in plain for names in numbered(one) for name in names}
    for name in rules.choices:
        section, _, rest = name.partition(".")
        rest = key(rest).removesuffix(".counts").removesuffix(".marks")
        valid = any(rest == key(n) or rest.startswith(f"{key(n)}.") for n in variables_)
        wrong = (section == "labels" and not valid) or (section == "columns" and rest not in used)
        if wrong or (section == "totals" and rest and rest not in map(key, variables_)):
            have = listing(dict.fromkeys([*variables_, *sorted(heads)]))
            near = check.did_you_mean(rest, {*variables_, *heads})
            raise ArgumentError(f"{name[:80]} must be about a heading or variable: {have}{near}")


def check_marks(reading: TableReading, names: Iterable[str]) -> None:
    """Refuse settings, by name, about marks that are in no count."""
    chosen = [name for name in names if name.startswith("marks.")]
    texts = {*reading.cells["stated"]} if chosen else set[str]()
    if "missing" in map(reading.rules.get, chosen):  # no longer in any cell
        texts.update(*(row for sheet in reading.sheets for _, row in sheet.rows))
    marks = {note.note if (note := noted(text)) else text for text in texts}
    for name in chosen:
        if name.partition(".")[2] not in texts | marks:
            signs = sorted(text for text in marks if text and number_range(text) is None)
            have = listing(map(quote, signs)) or "there is none"
            raise ArgumentError(f"{name[:80]} must be about a mark of the files: {have}")


# -----------------------------------------------------------------------------
# Tables: a place for each combination of separate labels, and in it a table
# for each margin and law.


#: The group of codes of each variable.
_Margin = tuple[tuple[str, tuple[int, ...]], ...]


class _Entry(NamedTuple):
    """A cell with its place, the number of its margin, and its value."""

    cell: Cell
    place: tuple[str, ...]  # as labels are compared
    margin: int
    value: Value


def _entries(
    cells: Sequence[Cell], meanings: Sequence[Value], variables_: Mapping[str, TableVariable]
) -> tuple[list[_Entry], list[_Margin]]:
    """Return the entries of all cells, and the margins by number."""
    separate = [name for name, variable in variables_.items() if variable.separate]
    joint = [name for name in variables_ if name not in separate]
    entries, groups = list[_Entry](), {name: variables_[name].groups for name in joint}
    # Many cells share labels of some variables.
    places, numbers = dict[tuple[str, ...], Any](), dict[tuple[str | None, ...], int]()
    margins = dict[_Margin, int]()
    for cell, value in zip(cells, meanings, strict=True):
        labels = cell.labels
        spelled = tuple([labels.get(name, "all") for name in separate])
        if (place := places.get(spelled)) is None:
            place = places[spelled] = tuple(map(key, spelled))
        stated = tuple(map(labels.get, joint))
        if (number := numbers.get(stated)) is None:
            named = [(n, key(x)) for n, x in zip(joint, stated, strict=True) if x is not None]
            margin = tuple([(n, g) for n, k in named if (g := groups[n].get(k))])
            number = numbers[stated] = margins.setdefault(margin, len(margins))
        entries.append(_Entry(cell, place, number, value))
    return entries, [*margins]


def _tables(
    cells: Sequence[Cell], meanings: Sequence[Value], variables_: Mapping[str, TableVariable]
) -> tuple[pd.DataFrame, tuple[Any, ...], dict[str, tuple[str, ...]]]:
    """Return a row for each cell, the parts of the tables, and the labels of each place."""
    entries, margins = _entries(cells, meanings, variables_)
    headings = [" * ".join(n for n, _ in margin) or "total" for margin in margins]
    separate = [name for name, variable in variables_.items() if variable.separate]
    inside = {name: v for name, v in variables_.items() if name not in separate}
    spelled: dict[tuple[str, ...], tuple[str, ...]] = {}
    for entry in entries:
        if entry.place not in spelled:
            text_by_name = entry.cell.labels
            spelled[entry.place] = tuple(text_by_name.get(name, "all") for name in separate)
    level, codes = _level(separate), _codes(len(spelled), bool(separate))
    code_by_place = dict(zip(spelled, codes, strict=True))
    # By table and margin, the cell and its value in each place.
    tables: dict[str, dict[int, dict[str, tuple[Cell, Value]]]] = {}
    laws: dict[str, Likelihood] = {}
    for entry in entries:
        place = code_by_place[entry.place]
        title = headings[entry.margin] + f" ({entry.value.kind})" * bool(entry.value.kind)
        for name in _numbered(title):  # two values of one cell go to two tables
            table, law = tables.setdefault(name, {}), laws.setdefault(name, entry.value.law)
            stated = (entry.cell, entry.value)
            if law == entry.value.law and (
                table.setdefault(entry.margin, {}).setdefault(place, stated)[1] == entry.value
            ):
                break
    rows_by_code = {code: i for i, code in enumerate(codes)}
    described, counts, hidden, laws_by_table = [], {}, {}, {}
    columns: dict[str, list[Any]] = {n: [] for n in (*_CELL[:3], *variables_, *_CELL[3:])}
    names = dict(zip(codes, spelled.values(), strict=True))
    files = {file: Path(file).name for file in dict.fromkeys(cell.file for cell in cells)}
    for name, table in tables.items():
        parts, used = [], set[str]()
        numbers = np.zeros((len(codes), len(table)), np.int64)
        covered = np.ones((len(codes), len(table)), np.bool_)
        for column, (number, places) in enumerate(table.items()):
            margin = margins[number]
            labels = {n: inside[n].names[group] for n, group in margin}
            title = ", ".join(labels.values()) or "total"
            text = next(t for t in _numbered(title) if t not in used)
            used.add(text)
            parts.append(Part((text,), (), margin, ()))
            rows = [rows_by_code[place] for place in places]
            numbers[rows, column] = [value.number for _, value in places.values()]
            covered[rows, column] = [value.hidden for _, value in places.values()]
            texts = {"table": name, "cell": text, **{n: labels.get(n, "all") for n in inside}}
            place_labels = zip(*(names[place] for place in places), strict=True)
            facts = ((c.text, files[c.file], c.row) for c, _ in places.values())
            for title, values_ in (
                (_CELL[0], places), *zip(separate, place_labels, strict=True),
                *((n, [x] * len(places)) for n, x in texts.items()),
                *zip(_CELL[3:], zip(*facts, strict=True), strict=True),
            ):  # fmt: skip
                columns[title].extend(values_)
        described.append({"name": name, "parts": parts})
        counts[level, name] = sparse.csr_array(numbers)
        if covered.any():
            hidden[level, name] = sparse.csr_array(covered)
        if not laws[name].plain:
            laws_by_table[level, name] = laws[name]
    attributes = [{"name": n, "size": len(v.labels), "labels": v.labels} for n, v in inside.items()]
    geography = None
    if separate:
        titles = {code: ", ".join(place) for code, place in names.items()}
        geography = {"name": "places", "levels": [level], "widths": [len(codes[0])],
                     "names": titles}  # fmt: skip
    schema = {"name": "published", "attributes": attributes, "geography": geography}
    work = Workload.from_dict({"schema": schema, "levels": [level], "tables": described})
    return (
        pd.DataFrame(columns),
        (work, {level: np.array(codes)}, counts, hidden, laws_by_table),
        names,
    )


def _level(separate: Sequence[str]) -> str:
    return " and ".join(separate) if separate else "all"


def _codes(number: int, several: bool) -> list[str]:
    """Return the codes of places: numbers of equal length, or the single empty code."""
    width = len(str(number))
    return [f"{i:0{width}d}" for i in range(1, number + 1)] if several else [""]


def _numbered(text: str) -> Iterator[str]:
    yield text
    number = 2
    while True:
        yield f"{text} ({number})"
        number += 1
