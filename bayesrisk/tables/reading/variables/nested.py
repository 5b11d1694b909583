"""Labels that lie within one label of another variable: districts of a council, parts of a cause.

Such a pair of variables is one tree. As crossed variables it would have impossible combinations: a
label with the parts of another one.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import IntArray
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.rows import exclusive
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.judgements import Groups
from bayesrisk.tables.reading.variables.searches import SumSearch
from bayesrisk.tables.reading.variables.sums import CodedLabels, LabelSums
from bayesrisk.tables.sheets.texts import (
    BLANK,
    SOME,
    interval,
    is_date,
    is_year,
    key,
    listing,
    sex,
    total_word,
)

REST = "others"  # the label of records that a total counts and no other row does
#: Bits that show that labels exclude each other, if a word names the total.
_SHOWN = 7
_OLDEST = 130  # years of age; larger numbers are codes
_FEW_AGAIN = 4  # labels for each that repeats in another place, as in another level
_FEW_LABELS = 3  # with the blank one; a sum of two in a single group may be chance


class Nesting(NamedTuple):
    """Trees of labels by variable, the outer variable of each inner one, and separate ones.

    ``paths`` maps labels of an inner variable to labels of its outer one.
    """

    trees: dict[str, dict[str, list[str]]]
    outer: dict[str, str]
    separate: set[str]
    paths: dict[str, dict[str, str]]

    def root(self, inner: str) -> str:
        """Return the outermost variable that has the labels of an inner one."""
        while inner in self.outer:
            inner = self.outer[inner]
        return inner

    def is_complete(self, name: str) -> bool:
        """Return whether the parts of each label are all of it, if a variable has inner ones."""
        partial = any(map(self.outer.get, self.separate)) or any(
            _below(parent, REST) in parts for parent, parts in self.trees.get(name, {}).items()
        )
        return name not in self.outer.values() or not partial

    def parent(self, cell: Cell, inner: str) -> tuple[str, str]:
        """Return the variable and the label that contain a part; empty if there is none."""
        name = self.outer.get(inner, "")
        while name and name not in cell.labels:
            name = self.outer.get(name, "")
        return name, cell.labels.get(name, "")


class _Pair(NamedTuple):
    """Two variables, and the parts of each parent, in their original spelling.

    Parts of two parents may have one name, as *Other* often does.
    """

    outer: str
    inner: str
    parts: dict[str, list[str]]

    def labels(self, cells: Iterable[Cell], separate: Collection[str] = ()) -> list[dict[str, str]]:
        """Return the labels of cells with paths for parts; separate parents keep inner labels."""
        parents = {(key(a), key(b)): a for a, parts in self.parts.items() for b in parts}
        results = list[dict[str, str]]()
        for labels in (cell.labels for cell in cells):
            label = labels.get(self.inner)
            parent = parents.get((key(labels.get(self.outer, "")), key(label or "")))
            if label is None or parent is None:
                keep = label is not None and SOME.match(label)  # a part of a total
                results.append({n: x for n, x in labels.items() if n != self.inner or keep})
            elif parent in separate:
                results.append({**labels, self.inner: _below(parent, label)})
            else:
                text = _below(parent, label)
                results.append({n: text if n == self.outer else x
                                for n, x in labels.items() if n != self.inner})  # fmt: skip
        return results

    def adds_up(self, cells: Sequence[Cell], ends: Sequence[Ends]) -> bool:
        """Return whether parts add up to a parent, or all labels within none to a total."""
        sums = LabelSums(self.outer, CodedLabels(self.labels(cells), ends), {})
        paths = {key(a): [key(_below(a, b)) for b in parts] for a, parts in self.parts.items()}
        wholes = {k: [p for p in parts if p in sums.column]
                  for k, parts in paths.items() if k in sums.column}  # fmt: skip
        inside = {*itertools.chain(*wholes.values())}
        totals = [k for k in sums.column if not k or total_word(k, self.outer)]
        rest = [k for k in sums.column if k not in inside and k not in totals]
        parents = [sums.adding_up(parts)(k) for k, parts in wholes.items()]
        groups = [*parents, *(sums.adding_up(rest)(k) for k in totals)]
        evident = any(map(adds_up, [*groups, Groups.joint(parents)]))
        return evident and all(g.good == g.telling for g in groups)


def beyond_chance(groups: Groups) -> bool:
    """Return whether labels add up to a total in too many groups for chance."""
    return groups.exact > 0 and groups.bits >= _SHOWN and groups.no_chance


def adds_up(groups: Groups) -> bool:
    """Return whether numbers show that labels exclude each other and add up to a total."""
    return beyond_chance(groups) and groups.good == groups.telling


def nested(
    cells: Sequence[Cell], ends: Sequence[Ends], rules: ReadingRules
) -> tuple[list[Cell], Nesting]:
    """Return cells with nested variables joined under the outer name, and the trees.

    Parts not shown to exclude each other stay in the inner variable as separate labels.
    """
    nesting = Nesting({}, {}, set(), {})
    results = _with_blanks(_spelled(cells, rules), ends, rules)
    results = _without_levels(results, ends, rules, nesting)
    while pair := _pair(results, ends, rules, nesting):
        results = _merged(results, ends, pair, rules, nesting)
    return results, nesting


def _spelled(cells: Sequence[Cell], rules: ReadingRules) -> list[Cell]:
    """Return cells with the spellings of labels from settings."""
    names = dict.fromkeys(name for cell in cells for name in cell.labels)
    words = {name: {k: v for k, v in rules.section(f"labels.{name}").items() if is_spelling(k, v)}
             for name in names}  # fmt: skip
    if not any(words.values()):
        return list(cells)
    return [
        c._replace(labels={n: words[n].get(key(x), x) for n, x in c.labels.items()}) for c in cells
    ]


def _with_blanks(cells: list[Cell], ends: Sequence[Ends], rules: ReadingRules) -> list[Cell]:
    """Return cells with blank labels named a total where sums show it; ask about others."""
    names = dict.fromkeys(n for cell in cells for n, x in cell.labels.items() if x == BLANK)
    if not names:
        return cells
    coded, totals = CodedLabels([cell.labels for cell in cells], ends), list[str]()
    for name in names:
        good, telling, bits = LabelSums(name, coded, {}).sum_of_present(BLANK)
        several = good > 1 or len({cell.labels.get(name) for cell in cells}) > _FEW_LABELS
        evident = several and bits >= _SHOWN and Groups(telling, good, bits=bits).no_chance
        if good == telling and evident:
            totals.append(name)
            groups = f"{good} group{'s' * (good > 1)}"
            rules.lines.append(f"  a blank in {name} counts all (the sums hold in {groups})")
    if rest := [name for name in names if name not in totals]:
        text = f"a blank in {listing(rest)} is a label of its own, {BLANK!r}"
        rules.ask("blank", "label", f"{text}; above or total explains it otherwise")
    return [
        c._replace(labels=c.labels | {n: "Total" for n in totals if c.labels.get(n) == BLANK})
        for c in cells
    ]


def _without_levels(
    cells: list[Cell], ends: Sequence[Ends], rules: ReadingRules, nesting: Nesting
) -> list[Cell]:
    """Return cells without variables that are determined by another one, if sums show its tree.

    Such variables are its levels, its codes and other spellings. The tree's labels follow their
    order in the table, or that of codes. A label in several levels gets its level in brackets.
    """
    coded = CodedLabels([cell.labels for cell in cells], ends)
    labels = coded.labels
    for name in sorted(coded.names, key=lambda n: (_are_codes(labels[n]), -len(labels[n]))):
        if f"labels.{name}" in rules.choices or _settled(name, labels[name], rules):
            continue
        places = _Places.from_labels(name, coded)
        if places is None or not places.neighbours:
            continue
        texts = [places.texts[k] for k in places.number]
        rest = [
            {
                n: x if n != name else text
                for n, x in cell.labels.items()
                if n not in places.neighbours
            }
            for cell, text in zip(cells, texts, strict=True)
        ]
        sums = SumSearch(name, CodedLabels(rest, ends), {})
        for ordered in places.orders():
            tree = sums.outline([key(places.texts[k]) for k in ordered], _SHOWN)
            leaves = {*itertools.chain(*tree.values())} - tree.keys()
            called = any(total_word(k, name) == 2 for k in leaves)
            is_tree = len(tree) > 1 or places.has_one_level(tree) or places.cross(tree)
            if is_tree and not called and places.changes(tree):
                levels = listing(places.neighbours)
                says = "says" if len(places.neighbours) == 1 else "say"
                rules.lines.append(f"  {levels} {says} where a label of {name} stands in a tree")
                spelled = {key(x): x for x in places.texts}
                nesting.trees[name] = {spelled[k]: [spelled[p] for p in parts]
                                       for k, parts in tree.items()}  # fmt: skip
                rest_cells = [c._replace(labels=x) for c, x in zip(cells, rest, strict=True)]
                return _without_levels(rest_cells, ends, rules, nesting)
    return cells


def _are_codes(labels: Sequence[str]) -> bool:
    """Return whether most labels have digits."""
    return 2 * sum(any(map(str.isdigit, x)) for x in labels) > len(labels)


class _Places(NamedTuple):
    """Labels of a variable, with labels of other variables that distinguish equal ones.

    ``number`` has the place of each cell, ``texts`` the names of places. ``neighbours`` has their
    labels of each other variable. ``repeated`` says whether a label has several places.
    """

    number: Sequence[int]
    texts: list[str]
    neighbours: dict[str, list[str]]
    repeated: bool

    @classmethod
    def from_labels(cls, name: str, coded: CodedLabels) -> "_Places | None":
        """Return the places of a variable; None if cells lack it, or names are not distinct."""
        codes = dict(zip(coded.names, coded.codes.T, strict=True))
        size = len(coded.spellings[name]) - 1
        number, neighbours = codes[name], list[str]()
        if not number.all():
            return None
        for other in sorted(coded.names, key=lambda n: len(coded.spellings[n])):
            width = len(coded.spellings[other])
            if other == name or not codes[other].all():
                continue
            places = np.unique(number * width + codes[other], return_inverse=True)
            if _FEW_AGAIN * (len(places[0]) - size) <= size:
                number, neighbours = places[1].ravel(), [*neighbours, other]
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        spelled = {n: [coded.spellings[n][k] for k in codes[n][first[order]]]
                   for n in (name, *neighbours)}  # fmt: skip
        text_by_key = {key(x): x for x in reversed(coded.labels[name])}
        texts = [text_by_key[k] for k in spelled.pop(name)]
        labels = {n: {key(x): x for x in reversed(coded.labels[n])} for n in neighbours}
        for other in neighbours:
            times = Counter(map(key, texts))
            pairs = zip(texts, spelled[other], strict=True)
            texts = [f"{x} ({labels[other][k]})" if times[key(x)] > 1 else x for x, k in pairs]
        if len({*map(key, texts)}) < len(texts):
            return None
        return cls(place[number.ravel()].tolist(), texts, spelled, size < len(texts))

    def orders(self) -> Iterator[Sequence[int]]:
        """Yield orders of places: from the first, from the last, and by codes."""
        every = range(len(self.texts))
        yield every
        yield every[::-1]
        for codes in (list(map(key, self.texts)), *self.neighbours.values()):
            ordered = sorted(every, key=codes.__getitem__)
            prefixes = [codes[b].startswith(codes[a]) for a, b in itertools.pairwise(ordered)]
            if sum(prefixes) > 1 and ordered != [*every]:
                yield ordered

    def has_one_level(self, tree: Mapping[str, Sequence[str]]) -> bool:
        """Return whether all parts in the tree have the same label of each other variable."""
        place = {key(x): k for k, x in enumerate(self.texts)}
        parts = [place[part] for part in itertools.chain(*tree.values())]
        return bool(parts) and all(
            len({x[k] for k in parts}) == 1 for x in self.neighbours.values()
        )

    def cross(self, tree: Mapping[str, Sequence[str]]) -> bool:
        """Return whether two other variables form no tree of the parts: offices and regions.

        Neither determines the other among the parts, or one has the same label beside a sum and a
        part.
        """
        place = {key(x): k for k, x in enumerate(self.texts)}
        parts = [place[part] for part in itertools.chain(*tree.values())]
        wholes = [place[k] for k in tree]
        several = len(self.neighbours) > 1
        shared = any({x[k] for k in wholes} & {x[k] for k in parts}
                     for x in self.neighbours.values())  # fmt: skip
        pairs = (
            {(a[k], b[k]) for k in parts}
            for a, b in itertools.combinations(self.neighbours.values(), 2)
        )
        return (several and shared) or any(
            len(p) > max(len({x for x, _ in p}), len({y for _, y in p})) for p in pairs
        )

    def changes(self, tree: Mapping[str, Sequence[str]]) -> bool:
        """Return whether each other variable differs between some label and its part.

        If these distinguish equal labels, one of them differs between every label and its parts.
        """
        place = {key(x): k for k, x in enumerate(self.texts)}
        pairs = [(place[k], place[part]) for k, parts in tree.items() for part in parts]
        changed = [[x[a] != x[b] for a, b in pairs] for x in self.neighbours.values()]
        return all(map(any, changed)) and (not self.repeated or any(map(all, changed)))


def is_spelling(name: str, text: str) -> bool:
    """Return whether a setting about a label is another spelling, and no parts or law."""
    return text != "all" and " | " not in text and not name.endswith(".counts")


def _is_total(label: str, name: str, rules: Mapping[str, str]) -> bool:
    return total_word(label, name) == 2 or rules.get(key(label)) == "all"


def _pair(
    cells: Sequence[Cell], ends: Sequence[Ends], rules: ReadingRules, nesting: Nesting
) -> _Pair | None:
    """Return the pair of nested variables with the fewest inner labels."""
    coded = CodedLabels([cell.labels for cell in cells], ends)
    codes = coded.codes.copy()
    names, texts = coded.names, dict[str, dict[str, str]]()
    times = Counter(itertools.chain(*coded.spellings.values()))
    for column, name in enumerate(names):
        choices = rules.section(f"labels.{name}")
        texts[name] = {key(x): x for x in reversed(coded.labels[name])}
        totals = [  # "Total Kent" may be a county and its town
            _is_total(x := texts[name].get(k, ""), name, choices)
            or (times[k] > 1 and total_word(x) > 0)
            for k in coded.spellings[name]
        ]
        codes[np.array(totals)[codes[:, column]], column] = 0
    best, least = None, (len(codes) + 1, 0, 0)
    for i, inner in enumerate(names):
        if inner in nesting.separate or _settled(inner, texts[inner].values(), rules):
            continue
        inside = codes[:, i] > 0
        # Parts of a total by name are within no label, and stay in their variable.
        called = [bool(SOME.match(texts[inner].get(k, ""))) for k in coded.spellings[inner]]
        plain = ~np.array(called)[codes[:, i]]
        size = len(coded.spellings[inner])  # a pair of labels is one number
        for o, outer in enumerate(names):
            below = inside & ((codes[:, o] > 0) | plain)
            if o == i or outer in nesting.separate or not codes[below, o].all() or not below.any():
                continue
            if _settled(outer, texts[outer].values(), rules):
                continue
            every = np.unique(codes[below, o] * size + codes[below, i])
            for total in _common(np.stack(np.divmod(every, size), axis=1)):
                parts_below = below & (codes[:, i] != total)
                flat = np.unique(codes[parts_below, o] * size + codes[parts_below, i])
                pairs = np.stack(np.divmod(flat, size), axis=1)
                whole = np.unique(codes[~parts_below, o])  # labels with a count of all their parts
                counted = 0 in whole or np.isin(pairs[:, 0], whole).all()  # 0: of both variables
                number = len(np.unique(pairs[:, 1]))
                spelled = [texts[outer].get(coded.spellings[outer][k], "") for k in whole]
                if _FEW_AGAIN * (len(pairs) - number) > number or not (
                    counted or any(total_word(x, outer) for x in spelled)
                ):
                    continue
                parts: dict[str, list[str]] = {}
                for a, b in pairs:
                    parent = texts[outer][coded.spellings[outer][a]]
                    parts.setdefault(parent, []).append(texts[inner][coded.spellings[inner][b]])
                inside_parents = int(np.isin(codes[:, o], pairs[:, 0]).sum())
                rank = number, -len(parts), inside_parents  # fewer grandparents, or with more cells
                pair = _Pair(outer, inner, parts)
                word = total_word(texts[inner].get(coded.spellings[inner][total], ""), inner)
                plainly = len(pairs) == number and counted and (word > 0 or not total)
                if rank < least and (plainly or pair.adds_up(cells, ends)):
                    best, least = pair, rank
                    break
    return best


def _common(pairs: IntArray) -> Iterator[int]:
    """Yield the one label that all labels of another variable contain, perhaps a total, and 0.

    Each other label is in only one of these.
    """
    several = np.flatnonzero(np.bincount(pairs[:, 1]) > 1)
    inside = np.isin(pairs[:, 1], several)
    if several.size == 1 and (~inside).sum() > 0 and np.isin(pairs[:, 0], pairs[inside, 0]).all():
        yield int(several[0])
    yield 0


def _settled(name: str, labels: Iterable[str], rules: ReadingRules) -> bool:
    """Return whether labels are sexes, ages or dates, or have settings on what they count.

    If most are numbers above all ages, they are codes of places.
    """
    choices = rules.section(f"labels.{name}")
    changed = any(" | " in v for v in choices.values())
    plain = [x for x in labels if not _is_total(x, name, choices)]
    ends = [interval(x) for x in plain if x.isdecimal() and not is_year(x)]
    codes = 2 * sum(end is not None and end[0] > _OLDEST for end in ends) > len(plain)
    meant = not codes and all(sex(x) or interval(x) or is_date(x) for x in plain)
    return changed or not plain or meant


def _below(parent: str, part: str) -> str:
    return f"{parent}: {part}"


def _merged(
    cells: Sequence[Cell], ends: Sequence[Ends], pair: _Pair, rules: ReadingRules, nesting: Nesting
) -> list[Cell]:
    """Return cells in which a pair of variables is one, as far as sums allow."""
    outer, inner, parts = pair
    coded = CodedLabels(pair.labels(cells), ends)
    kinds = _kinds(pair, LabelSums(outer, coded, {}), rules)
    separate = {parent for parent, kind in kinds.items() if kind == "separate"}
    tree = nesting.trees.setdefault(outer, {})
    tree |= nesting.trees.pop(inner, {})
    for parent, kind in kinds.items():
        if kind != "separate":
            below = [*parts[parent], *([REST] if kind == "partial" else [])]
            tree[parent] = [_below(parent, part) for part in below]
    nesting.outer[inner] = outer
    times = Counter(map(key, itertools.chain(*parts.values())))
    new = {key(b): key(_below(a, b)) for a, below in parts.items() for b in below
           if times[key(b)] == 1}  # fmt: skip
    for name in [n for n in nesting.paths if nesting.root(n) == outer]:
        nesting.paths[name] = {k: new.get(p, p) for k, p in nesting.paths[name].items()}
    nesting.paths[inner] = new
    nesting.separate.update({inner} if separate else ())
    labels = pair.labels(cells, separate)
    return [cell._replace(labels=one) for cell, one in zip(cells, labels, strict=True)]


def _kinds(pair: _Pair, sums: LabelSums, rules: ReadingRules) -> dict[str, str]:
    """Return for each parent whether its parts are complete, partial or separate."""
    kinds, name, judged = dict[str, str](), f"totals.{pair.inner}", list[Groups]()
    for parent, parts in pair.parts.items():
        if key(parent) not in sums.column:  # it has no count of its own
            continue
        groups = sums.adding_up([key(_below(parent, part)) for part in parts])(key(parent))
        partial = any(map(SOME.match, parts))
        judged.append(groups)
        if adds_up(groups) and not partial:
            kinds[parent] = "complete"
        elif len(parts) == 1 and not groups.above:  # a single part does not exceed its whole
            kinds[parent] = "partial"
    rest = [parent for parent in pair.parts if parent not in kinds and key(parent) in sums.column]
    every = Groups.joint(judged)
    most = sum(g.good > 0 for g in judged) * 2 > len(judged)
    if most and adds_up(every) and not any(map(SOME.match, itertools.chain(*pair.parts.values()))):
        kinds, rest = dict.fromkeys(pair.parts, "complete"), []
    if rest:
        guess = "partial" if all(exclusive(pair.parts[parent]) for parent in rest) else "separate"
        holds = any(g.good for g in judged) and all(g.good == g.telling for g in judged)
        rounded = all(g.balanced and g.fitting for g in judged if not adds_up(g))
        if holds and (rules.summed or rounded):
            guess = "complete"  # a spreadsheet sums up the rows that stand there
        text = (
            f"too few groups show whether the labels of {pair.inner} make up {listing(rest)}: "
            "complete if they do, partial if they exclude each other and others may be counted, "
            "separate if they may overlap"
        )
        if holds and rounded and not rules.summed:
            text = f"sums hold within rounding: the labels of {pair.inner} make up {listing(rest)}"
        kinds |= dict.fromkeys(rest, rules.ask(name, guess, text))
    elif name in rules.choices:
        kinds = dict.fromkeys(kinds, rules.choices[name])
    rules.alternatives |= {(name, kind): None for kind in ("partial", "separate")}
    return {parent: kinds[parent] for parent in pair.parts if parent in kinds}
