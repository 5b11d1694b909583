"""Labels of a variable: totals, subtotals and trees by the sums that hold; what excludes what."""

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.nested import REST, Nesting, adds_up, beyond_chance
from bayesrisk.tables.reading.rows import exclusive
from bayesrisk.tables.reading.rules import ReadingRules, hierarchy
from bayesrisk.tables.reading.sums import (
    CodedLabels,
    Ends,
    Groups,
    LabelSums,
    NearSum,
    SumInGroups,
    consecutive,
    may_lie_in,
    overlapping,
)
from bayesrisk.tables.sheets.texts import (
    BLANK,
    SOME,
    UNKNOWN,
    first_sums,
    interval,
    is_date,
    key,
    listing,
    sex,
    span,
    total_word,
)

_YEARS = 1800, 2200
_MOST_RUNS = 3000  # labels among which subtotals are looked for
_MOST_CODES = 4  # numbers that may be no ages, but codes such as those of sexes
_MOST_COMBINED = 64  # labels of which each may be the sum of any others
_MOST_PARTS = 2**14  # of trees, and of each the parts of all
_MOST_SCATTERED = 8  # labels whose sets are tried as the parts of others
#: Sums hold by chance in one case of 2**8, or in one of as many as are looked at times that.
_BITS = 8
_BITS_ALONE = 16  # of one group alone


class TableVariable:
    """Labels, groups of them by the spelling of a published label, None for all, and names.

    Attributes
    ----------
    labels : list of str
        Labels that exclude each other; each code of the variable is the place of one.
    totals : set of str
        Spellings of labels that count all.
    groups : dict
        For the spelling of every other published label, the codes that it counts.
    names : dict
        A published label for groups of codes.
    separate : bool
        Whether nothing is concluded between labels, since these may overlap or have no total.
    sums : list of SumInGroups
        What the sum of each total and subtotal says, in each group.
    wholes : dict
        Of separate labels in a tree the first label of it.
    left_out : list of int
        Counts of the few groups in which the sum of a total does not hold.
    near : dict
        Sums that hold in most groups, and are not used.
    """

    def __init__(
        self, published: Iterable[str], rules: Mapping[str, str], children: Mapping[str, list[str]],
        totals: Iterable[str], disjoint: Iterable[str] = (),
    ) -> None:  # fmt: skip
        first: dict[str, str] = {}
        for label in published:
            first.setdefault(key(label), label)
        self.first, self.separate = first, False
        self.sums: list[SumInGroups] = []
        self.wholes: dict[str, str] = {}
        self.left_out: list[int] = []
        self.near: Mapping[str, NearSum] = {}
        self.totals = {k for k in first if rules.get(k, "all" if k in totals else "") == "all"}
        choices = {k: [key(p) for p in rules[k].split(" | ")] for k in first if k in rules}
        parts = {k: choices.get(k) or _leaves(k, children) for k in first if k not in self.totals}
        base = {p: first.get(p, p) for part in parts.values() for p in part}
        alone = {*disjoint, *(k for k, part in choices.items() if part == [k])}
        alone |= _unknown(base)
        single = [k for k in base if k in alone]  # in no range, whatever they are called
        ends = _intervals({k: x for k, x in base.items() if k not in single})
        bounds = {end for end in ends.values() if end is not None}
        self.intervals = None not in ends.values() and any(low < high for low, high in bounds)
        self.labels, inside = list(base.values()), {k: {i} for i, k in enumerate(base)}
        if self.intervals:  # what ends of groups cut apart, and nobody may be counted in between
            points = sorted({p for low, high in bounds for p in (low, high + 1)})
            pieces = [(a, b - 1) for a, b in pairwise(points)]
            titles = {end: base[k] for k, end in reversed([*ends.items()])}
            self.labels = [titles.get(piece, span(*piece)) for piece in pieces]
            self.labels += [base[k] for k in single]
            inside = {
                k: {i for i, (a, b) in enumerate(pieces) if end and end[0] <= a and b <= end[1]}
                for k, end in ends.items()
            } | {k: {i} for i, k in enumerate(single, len(pieces))}
        self.groups = {
            k: tuple(sorted(set().union(*(inside[p] for p in part)))) for k, part in parts.items()
        }
        self.names = {g: first[k] for k, g in reversed(self.groups.items())}
        self.names |= {(i,): label for i, label in enumerate(self.labels)}

    @property
    def exclusive(self) -> bool:
        """Whether labels exclude each other by what they mean: sexes, or groups of ages."""
        return self.intervals or all(map(sex, self.labels)) or exclusive(self.labels)

    @property
    def exhaustive(self) -> bool:
        """Whether each record has a label by what they mean: both sexes, or ages without an end."""
        if self.intervals:
            ends = [end for end in map(interval, self.labels) if end is not None]
            return min(ends)[0] == 0 and max(b for _, b in ends) >= UNBOUNDED - 1
        return {sex(label) for label in self.labels} == {"male", "female"}

    def take_by_itself(self, *, summed: bool) -> None:
        """Conclude nothing between labels, but within the trees of the sums that are shown."""
        self.separate, whole_by_code = True, dict[int, str]()
        for k, codes in sorted(self.groups.items(), key=lambda one: -len(one[1])):
            inside = {whole_by_code.get(i, "") for i in codes}
            tree = len(inside) == 1 and (len(codes) > 1 or "" not in inside)
            if summed and tree and k != key(BLANK):
                whole = inside.pop() or k
                self.wholes[k] = whole
                whole_by_code |= dict.fromkeys(codes, whole)
        if len({*self.wholes.values()}) * len(whole_by_code) > _MOST_PARTS:
            self.wholes = {}

    def add_rest(self) -> None:
        """Add the label of whom only totals count."""
        self.names[(len(self.labels),)] = REST
        self.labels.append(REST)


def _unknown(labels: Mapping[str, str]) -> set[str]:
    """Return the labels of those whose age nobody knows, beside others."""
    unknown = {k for k, x in labels.items() if UNKNOWN.search(x) and not interval(x)}
    return unknown if len(unknown) < len(labels) else set()


def _intervals(labels: Mapping[str, str]) -> dict[str, Ends | None]:
    """Return the first and the last age of each group, None for other labels, and for all years."""
    ends = {k: interval(x) for k, x in labels.items()}
    if all(end and _YEARS[0] <= end[0] <= end[1] <= _YEARS[1] for end in ends.values()):
        return dict.fromkeys(ends)  # years: no two of their windows are known to add up
    return _without_gaps(_without_next(ends), labels)


def _without_next(ends: Mapping[str, Ends | None]) -> dict[str, Ends | None]:
    """Return groups without their last age where the next one begins with it: 3-6, 6-10."""
    starts = {end[0] for end in ends.values() if end and end[0] < end[1]}
    groups = [end for end in ends.values() if end and end[0] < end[1]]
    shared = sum(high in starts for _, high in groups)
    if 2 * shared < len(groups) - 1:
        return dict(ends)
    return {
        k: (end[0], end[1] - 1) if end and end[0] < end[1] and end[1] in starts else end
        for k, end in ends.items()
    }


def _without_gaps(
    ends: Mapping[str, Ends | None], labels: Mapping[str, str]
) -> dict[str, Ends | None]:
    """Return groups with the year that "> 75" or "< 5" says, where it alone is in none: 65-74."""
    groups, closed = {k: end for k, end in ends.items() if end}, dict(ends)
    sides = {side for group in groups.values() for side in group}
    for k, (low, high) in groups.items():
        numbers = {int(text) for text in re.findall(r"\d{1,9}", labels[k])}
        for year in {low - 1, high + 1} & numbers:
            inside = any(a <= year <= b for a, b in groups.values())
            if {year - 1, year + 1} <= sides and not inside:
                closed[k] = min(low, year), max(high, year)
    return closed


def _leaves(label: str, children: Mapping[str, list[str]]) -> list[str]:
    """Return the labels at the end of a tree below one."""
    below = children.get(label)
    return [leaf for child in below for leaf in _leaves(child, children)] if below else [label]


class _Evidence(NamedTuple):
    """The parts of each subtotal, the total, and the groups in which the numbers show it.

    ``disjoint`` are labels that lie in another one by their names alone, and not by the numbers;
    ``overlap`` is such a label and the other one, where the numbers do not tell.  ``impossible`` is
    in how many groups no records fit, if labels make up the total, and if others may be counted;
    ``doubts`` are labels, with groups, that the total may leave out where they are withheld;
    ``listed`` says that many labels, such as places, are nearly all of each total, ``certain`` that
    no sum of a subtotal holds by chance; ``near`` are sums that hold in most groups.
    """

    children: dict[str, list[str]]
    totals: list[str]
    groups: Groups = Groups()
    disjoint: Sequence[str] = ()
    overlap: tuple[str, ...] = ()
    impossible: tuple[int, int] = (0, 0)
    doubts: Mapping[str, int] = MappingProxyType({})
    listed: bool = False
    certain: bool = False
    near: Mapping[str, NearSum] = MappingProxyType({})


def variables(
    cells: Sequence[Cell], ends: Sequence[Ends], nesting: Nesting, rules: ReadingRules
) -> dict[str, TableVariable]:
    """Return the variables of all files; ``rules`` gets what is asked about them, and lines."""
    texts: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for name, label in cell.labels.items():
            texts.setdefault(name, {}).setdefault(cell.file, {})[label] = None
    labels = {n: list(dict.fromkeys(x for f in fs.values() for x in f)) for n, fs in texts.items()}
    choices = {name: _label_rules(name, rules) for name in texts}
    for name, tree in nesting.trees.items():  # the rest of a parent has a label of its own
        labels[name] = list(dict.fromkeys([*labels[name], *itertools.chain(*tree.values())]))
        children = {key(k): [*map(key, parts)] for k, parts in tree.items()}
        nodes = {*children, *itertools.chain(*children.values())}
        settings = {k: v for k, v in choices[name][0].items() if k not in nodes or key(v) != k}
        choices[name] = settings, choices[name][1] | children
    for nested_name, paths in nesting.paths.items():  # a tree of labels that are paths now
        name = nesting.root(nested_name)
        settings, tree = choices[name]
        called = {paths.get(k, k): [paths.get(p, p) for p in parts]
                  for k, parts in _label_rules(nested_name, rules)[1].items()}  # fmt: skip
        choices[name] = settings, called | tree
    coded = CodedLabels([cell.labels for cell in cells], ends)
    evidence, sums_by_name, implied = _all_evidence(labels, choices, coded, {})
    if len({cell.file for cell in cells}) > 1:  # a count of all may have a label here, none there
        totals = {name: one.totals for name, one in evidence.items()}
        evidence, sums_by_name, implied = _all_evidence(labels, choices, coded, totals)
    results = {}
    for name, files in texts.items():
        inner, finding = choices[name][0], evidence[name]
        if name in nesting.separate:
            one = results[name] = TableVariable(labels[name], inner, {}, ())
            one.separate = True
            rules.lines.append(f"  {name}: {listing(one.labels)}; each is taken by itself")
            continue
        one = results[name] = _variable(labels[name], inner, finding)
        one.sums = sums_by_name[name]
        _judge(name, one, finding, rules, nesting, implied=name in implied)
        if finding.groups.nearly and not (one.separate or REST in one.labels):
            denied = itertools.chain(*(sums.contradicting for sums in one.sums))
            one.left_out = sorted({*map(int, denied)})
            counts = listing(repr(f"{cells[i].text}, row {cells[i].row}") for i in one.left_out)
            rules.lines.append(f"  left out, since sums of {name} deny them: {counts}")
            one.sums = [sums.holding for sums in one.sums]
        if one.totals or not one.separate:
            _ask_spellings(name, one, files, inner, rules)
    _name_complete(results, rules)
    _ask_same(texts, results, rules)
    return results


def sums_shown(coded: CodedLabels, rules: ReadingRules) -> dict[str, dict[str, list[str]]]:
    """Return for each variable the parts of every label that numbers show as their sum."""
    results: dict[str, dict[str, list[str]]] = {}
    for name, labels in coded.labels.items():
        sums = LabelSums(name, coded, {})
        wholes = _sums(_evidence(name, labels, *_label_rules(name, rules), sums), sums)
        results[name] = {
            whole: parts for whole, parts in wholes.items() if adds_up(sums.adding_up(parts)(whole))
        }
    return results


def _sums(one: _Evidence, sums: LabelSums) -> dict[str, list[str]]:
    """Return the published parts of each subtotal, and of the total."""
    wholes, inside = dict(one.children), {*itertools.chain(*one.children.values())}
    for total in one.totals or [""] * sums.implied:
        parts = [k for k in sums.column if k and k != total and k not in inside]
        unknown = _unknown({k: k for k in parts})
        ends = _intervals({k: k for k in parts if k not in unknown})
        ranges = {k: end for k, end in ends.items() if end}
        nested = len(ranges) + len(unknown) == len(parts) and not one.disjoint
        wholes[total] = [*consecutive(ranges), *sorted(unknown)] if nested else parts
    return {k: parts for k, parts in wholes.items() if parts and {k, *parts} <= {*sums.column}}


def _all_evidence(
    labels: Mapping[str, list[str]],
    choices: Mapping[str, tuple[dict[str, str], dict[str, list[str]]]],
    coded: CodedLabels, totals: Mapping[str, Sequence[str]],
) -> tuple[dict[str, _Evidence], dict[str, list[SumInGroups]], set[str]]:  # fmt: skip
    """Return the evidence on each variable, its sums, and those with counts of all."""
    evidence, implied = dict[str, _Evidence](), set[str]()
    sums_by_name: dict[str, list[SumInGroups]] = {}
    for name, texts in labels.items():
        sums = LabelSums(name, coded, totals)  # one at a time, since they may be large
        finding = _evidence(name, texts, *choices[name], sums)
        one = _variable(texts, choices[name][0], finding)
        size, every = len(one.labels), {"", *one.totals}
        (wrong, doubts), (other, _) = (
            sums.impossible(one.groups, every, size + rest) for rest in (0, 1)
        )
        parts_by_whole = _sums(finding, sums)
        wholes = {k: sums.in_groups(k, parts) for k, parts in parts_by_whole.items()}
        listed = bool(finding.totals) and all(
            sums.nearly_all(k, parts_by_whole.get(k, ())) for k in finding.totals
        )
        sums_by_name[name] = [*wholes.values()]
        inner, groups = [w.numbers for k, w in wholes.items() if k not in every], finding.groups
        if all((telling == good).all() for telling, good, *_ in inner):  # they show one another
            groups = groups._replace(bits=groups.bits + sum(float(n[-1].sum()) for n in inner))
        near = {} if finding.totals or sums.implied else sums.near([*sums.column], parts_by_whole)
        evidence[name] = finding._replace(
            groups=groups, impossible=(wrong, other), doubts=doubts, listed=listed, near=near,
            certain=all(w.certain for k, w in wholes.items() if k not in every),
        )  # fmt: skip
        implied |= {name} if sums.implied else set()
    unshown = {n: one.totals for n, one in evidence.items()
               if not one.groups.telling and (one.totals or n in implied)}  # fmt: skip
    if unshown and adds_up(joint := coded.add_up_together(unshown)):
        evidence |= {n: evidence[n]._replace(groups=joint) for n in unshown}
    return evidence, sums_by_name, implied


def _variable(labels: Sequence[str], rules: Mapping[str, str], finding: _Evidence) -> TableVariable:
    return TableVariable(labels, rules, finding.children, finding.totals, finding.disjoint)


def _label_rules(name: str, rules: ReadingRules) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return settings about labels, and the tree of a ``.hrc`` file that one of them names."""
    section = rules.section(f"labels.{name}")
    inner = {k: v for k, v in section.items() if v == "all" or " | " in v or key(v) == k}
    file = rules.section("labels").get(key(name), "")
    return inner, hierarchy(Path(file)) if file.endswith(".hrc") else {}


def _evidence(
    name: str, labels: Sequence[str], choices: Mapping[str, str], tree: Mapping[str, list[str]],
    sums: LabelSums,
) -> _Evidence:  # fmt: skip
    """Return subtotals and the total that the numbers show, of few labels wherever they stand."""
    finding = _neighbour_evidence(name, labels, choices, tree, sums)
    free = [k for k in sums.column if k and k not in choices]
    ages = 2 * sum(interval(k) is not None for k in free) > len(free)
    if adds_up(finding.groups) or ages or not 2 < len(free) <= _MOST_COMBINED:
        return finding
    leaves = {k: frozenset(_leaves(k, finding.children)) for k in finding.children}
    below = sums.combined(free, leaves, _BITS + len(free) + math.log2(len(free)))
    if len(below) == len(leaves):
        return finding
    return _neighbour_evidence(name, labels, choices, {**below, **tree}, sums)


def _neighbour_evidence(
    name: str, labels: Sequence[str], choices: Mapping[str, str], tree: Mapping[str, list[str]],
    sums: LabelSums,
) -> _Evidence:  # fmt: skip
    """Return subtotals among labels beside each other and the total, helped by words."""
    top = list(dict.fromkeys(key(x) for x in labels if key(x) not in choices))
    free = {*top}
    words = {k: total_word(x, name) for x in labels if (k := key(x)) in free}
    children = {k: [c for c in parts if c in words] for k, parts in tree.items() if k in words}
    below = {k for parts in children.values() for k in parts}
    top = [k for k in top if k not in below]
    plain = {key(x): x for x in labels if not words.get(key(x), 1)}
    plain = plain or {key(x): x for x in labels if words.get(key(x)) == 1}
    unknown = _unknown(plain)
    whole = None not in _intervals({k: x for k, x in plain.items() if k not in unknown}).values()
    if not whole and len(sums.low) and not all(map(is_date, top)):
        trees = _outline(top, {*children}, words, sums)
        trees = trees or (_runs(top, words, sums) if len(top) <= _MOST_RUNS else {})
        children |= {k: ps for k, ps in trees.items() if all(may_lie_in(p, k) for p in ps)}
    totals = [k for k, v in choices.items() if v == "all"]
    if len(top) == 1 and children.get(top[0]) and not totals:  # the subtotal of all others
        parts = children.pop(top[0])
        stated = [k for k in parts if k in sums.column]
        return _Evidence(children, top, sums.adding_up(stated)(top[0]))
    parts = top
    ends = dict[str, Ends | None]()
    if whole and len(top) > 1:  # of nested ages some follow each other and add up
        ends = _intervals({k: k for k in top if words[k] < 2 and k not in unknown})
        parts = consecutive({k: end for k, end in ends.items() if end})
        parts += [k for k in top if k in unknown]
    evidence = _Evidence(children, totals)
    if not totals:
        evidence = _twice(_total(children, top, parts, words, sums, whole=whole), top, sums)
    every = evidence.totals[0] if evidence.totals else ""
    if every in sums.column and not (totals or whole) and evidence.groups.good < 2:
        members = [k for k in top if k != every]  # the first of them may be sums of the rest
        runs = sums.runs(every, members, _BITS + math.log2(len(top)))
        size = members.index(runs[0][-1]) + 1 if runs else len(members)
        inner = _parts_below(members[:size], members[size:], sums) if members[size:] else None
        if inner is not None:
            return _joined(evidence, members[:size], inner, sums)
        if evidence.groups.above and (run := sums.only_run(every, members, 2 * _BITS_ALONE)):
            return _Evidence({**children, every: run}, [])  # what else there is counts others
    ranges = {k: end for k, end in ends.items() if end}
    evidence = _range_evidence(evidence, ranges, parts, sums)
    if evidence.disjoint:
        return evidence
    if ranges and every in sums.column and not unknown:  # the total is of all ages
        ranges[every] = min(low for low, _ in ranges.values()), max(b for _, b in ranges.values())
    groups = evidence.groups
    if groups.good == groups.telling and (contrary := sums.contradictory(ranges)):
        telling = groups.telling + contrary
        groups = groups._replace(telling=telling, above=contrary, contrary=contrary)
        return evidence._replace(groups=groups)
    if totals or (sums.implied and not evidence.groups.telling):
        rest = [k for k in parts if k not in evidence.totals]
        return evidence._replace(groups=sums.adding_up(rest)(totals[0] if totals else ""))
    return evidence


def _range_evidence(
    evidence: _Evidence, ranges: Mapping[str, Ends], parts: Sequence[str], sums: LabelSums
) -> _Evidence:
    """Return evidence on ranges that share ages by their names: 15 may be *under 15*, or of 15-19.

    They exclude each other where all of them add up to the total in more groups than those that
    follow each other, and exceed it in none.
    """
    free = {k: end for k, end in ranges.items() if k not in evidence.totals and k in sums.column}
    inside, across = overlapping(free)
    every = evidence.totals[0] if evidence.totals else ""
    larger = next((pair for pair in inside if sums.exceeds(*pair)), ())
    overlap = larger or next(iter([*inside, *across]), ())
    if not overlap:
        return evidence
    if every not in sums.column:
        if not across and _tiled(free, sums):
            return evidence
        contrary = evidence.groups._replace(contrary=int(bool(larger)))
        return evidence._replace(overlap=overlap, groups=contrary)
    unknown = [k for k in parts if k not in ranges and k != every]
    groups = sums.adding_up([*free, *unknown])(every)
    if groups.above:
        return evidence
    if larger or (groups.good > evidence.groups.good and beyond_chance(groups)):
        disjoint = [k for k in free if k not in parts]
        return evidence._replace(groups=groups, disjoint=disjoint)
    return evidence._replace(overlap=overlap)


def _tiled(ends: Mapping[str, Ends], sums: LabelSums) -> bool:
    """Return whether each range that has others inside is shown to be the sum of some of these."""
    for label, (low, high) in ends.items():
        inside = {
            k: end for k, end in ends.items() if k != label and low <= end[0] and end[1] <= high
        }
        if inside and not adds_up(sums.adding_up(consecutive(inside))(label)):
            return False
    return True


def _twice(evidence: _Evidence, top: Sequence[str], sums: LabelSums) -> _Evidence:
    """Return evidence that keeps one set of parts of a total, where two sets add up to it.

    *People* may be *men* and *women*, and also *boys*, *girls*, *adult men* and *adult women*.
    Then the second set is searched for the parts of each label of the first.  If they do not
    add up to it, the labels may overlap.
    """
    parts = next((evidence.children.pop(k) for k in evidence.totals if k in evidence.children), [])
    rest = [k for k in top if k not in evidence.totals]
    if not parts or not rest:
        return evidence
    return _joined(evidence, parts, _parts_below(parts, rest, sums), sums)


def _joined(
    evidence: _Evidence, parts: Sequence[str], below: Mapping[str, list[str]] | None,
    sums: LabelSums,
) -> _Evidence:  # fmt: skip
    """Return evidence on a total of some parts, with what is below each of them.

    One that has parts already is cut twice: *sheltered* into kinds of shelter, and into kinds by
    families.  Then those of one cut are searched for the parts of the other, as above.
    """
    total = evidence.totals[0] if evidence.totals else ""
    children = {**evidence.children}
    for label, second in (below or {}).items():
        first = children.get(label)
        inner = {label: second} if first is None else _parts_below(first, second, sums)
        if inner is None or (first and inner.keys() & children.keys()):
            below = None
            break
        children |= inner
    groups = sums.adding_up(parts)(total)
    if below is None:  # labels overlap in a way that no tree has
        above = max(groups.above, 1)
        return evidence._replace(groups=groups._replace(telling=groups.good + above, above=above))
    return evidence._replace(children=children, groups=groups)


def _parts_below(
    labels: Sequence[str], rest: Sequence[str], sums: LabelSums
) -> dict[str, list[str]] | None:
    """Return the labels of the rest that add up to each of some labels; None if others are left."""
    bits = _BITS + 2 * math.log2(len(rest))
    results, used = dict[str, list[str]](), set[str]()
    for label in labels:
        candidates = (sums.runs(label, rest[i : i + 41], bits) for i in range(len(rest)))
        runs = [list(run) for run in dict.fromkeys(map(tuple, itertools.chain(*candidates)))]
        if len(runs) == 1 and used.isdisjoint(runs[0]):
            results[label] = runs[0]
            used |= {*runs[0]}
    if used == {*rest}:
        return results
    few = len(rest) <= _MOST_SCATTERED
    bits = _BITS + len(rest) + math.log2(len(labels))
    return sums.scattered(labels, rest, bits) if few else None


def _total(
    children: dict[str, list[str]], top: Sequence[str], parts: Sequence[str],
    words: Mapping[str, int], sums: LabelSums, *, whole: bool,
) -> _Evidence:  # fmt: skip
    """Return the label that is the sum of all others, or is called so and may be."""
    judge, smaller, inside = sums.adding_up(parts), sums.exceeded(), {*parts}
    whole = whole and not (len(top) <= _MOST_CODES and all(map(str.isdecimal, top)))
    best, finding = _Evidence(children, []), list[_Evidence]()
    for label in sorted(top, key=lambda k: -words[k]):
        size, word = len(parts) - (label in inside), words[label]
        if not size or label in smaller or (not word and (whole or label not in sums.counting)):
            continue
        groups = judge(label)
        holds = groups.telling == groups.good or groups.nearly
        meant = groups.good > 0 and (whole or all(sex(k) for k in parts if k != label))
        # The first label, or the last, may be the sum of all others in one group alone.
        alone = label in (top[0], top[-1]) and groups.bits >= _BITS_ALONE
        several = groups.good > 1 or (alone and groups.exact > 0)
        holds = holds and (several, meant or groups.no_chance, groups.good > 0)[word]
        chance = _BITS // (2 if meant else 1) + math.log2(len(top))
        holds = holds and groups.bits >= (chance, 2, 0)[word]
        if holds and (size > 1 or word == 2):
            finding.append(_Evidence(children, [label], groups))
        if word == 2 and not best.totals:
            best = _Evidence(children, [label], groups)
    named = [one for one in finding if words[one.totals[0]] == 2]
    called = best.totals
    if named or len(finding) == 1:  # equal ones could each be the total
        best = [*named, *finding][0]
    noun = "".join(best.totals).partition(" ")[2]
    other_totals = [
        k for k in smaller if words.get(k) == 2 and k.partition(" ")[2] not in ("", noun)
    ]
    if noun and not named and any(sums.meet([*best.totals, k]) for k in other_totals):
        return _Evidence(children, [])  # total births beside total deaths
    for label in [*called, *(k for k in top if words[k] == 2 and k not in smaller)]:
        if label not in best.totals and not sums.meet([*best.totals, label]):
            groups = min(best.groups, judge(label), key=lambda one: one.good)
            best = _Evidence(children, [*best.totals, label], groups)  # each in groups of its own
    return best


def _outline(
    top: list[str], whole: set[str], words: Mapping[str, int], sums: LabelSums
) -> dict[str, list[str]]:
    """Return the parts of each label in a list of a tree, but those that have some already.

    What a tree of all labels says by its one sum of all is beyond chance where each sum is not.
    """
    for ordered in (top, top[::-1]):
        tree = sums.outline(ordered, _BITS)
        if len(tree) > 1 and all(k not in whole if k in tree else words[k] < 2 for k in ordered):
            top[:] = ordered[:1]
            return tree
    return {}


def _runs(top: list[str], words: Mapping[str, int], sums: LabelSums) -> dict[str, list[str]]:
    """Return subtotals among labels in their order: what follows or precedes them adds up to them.

    Codes that begin with another one are its parts, if their sums do not say otherwise.  What is
    a part of another label is taken out of ``top``.
    """
    children: dict[str, list[str]] = {}

    def take(label: str, parts: list[str]) -> None:
        children[label] = parts
        top[:] = [k for k in top if k not in {*parts}]

    codes = sorted(k for k in top if len(k) <= 12 and any(map(str.isdigit, k)))
    for label in sorted(top, key=len, reverse=True):
        if words[label] or len(label) > 10:
            continue
        first, last = (bisect.bisect_right(codes, label + end) for end in ("", "\U0010ffff"))
        coded = [k for k in codes[first:last] if k in top] if label in top else []
        if len(coded) > 1:
            groups = sums.adding_up(coded)(label)
            if groups.telling == groups.good and groups.no_chance:
                take(label, coded)
    for ahead in (True, False):
        for label in list(reversed(top)) if ahead else list(top):
            if label not in children and label in top and words[label] != 2:
                position = top.index(label)
                rest = (top[position + 1 :] if ahead else top[:position][::-1])[:40]
                end = next((i for i, k in enumerate(rest) if words[k] == 2), len(rest))
                bits = _BITS + math.log2(len(top) * len(rest)) if rest else 0.0
                runs = sums.runs(label, rest[:end], bits) if end > 1 else []
                if runs and len(runs[0]) + 1 < len(top):
                    take(label, runs[0])
    return children


def _judge(
    name: str, one: TableVariable, evidence: _Evidence, rules: ReadingRules,
    nesting: Nesting, *, implied: bool,
) -> None:  # fmt: skip
    """Say whether the labels of a variable make up its totals, and whether they overlap."""
    subtotals = [k for k, parts in evidence.children.items() if parts]
    labels = [one.first[k] for k in (*one.totals, *subtotals) if k in one.first]
    labels = [label for label in labels if label not in nesting.trees.get(name, {})]
    rules.alternatives[f"totals.{name}", "partial"] = None
    rules.alternatives |= {(f"labels.{name}.{label}", label): None for label in labels}
    rules.alternatives[f"totals.{name}", "separate"] = None
    line = f"  {name}: {listing(one.labels)}"
    counted = listing(repr(one.first[t]) for t in sorted(one.totals))
    line += f"; {counted} counts all" * bool(one.totals)
    summed = evidence.certain and not (evidence.impossible[1] or evidence.doubts or one.intervals)
    summed = summed and nesting.is_complete(name)
    groups = evidence.groups
    if not one.totals and not implied:
        one.separate = not one.exclusive or groups.contrary > 0 or evidence.impossible[1] > 0
        if evidence.overlap and not one.separate:
            plain = f"totals.{name}"
            plain = "totals" if "totals" in rules.choices and plain not in rules.choices else plain
            text = _by_name(name, one, evidence)
            one.separate = rules.ask(plain, "partial", text) == "separate"
        if one.separate:
            one.take_by_itself(summed=summed)
        alone = "what is in no sum" if one.wholes else "each"
        tail = f"; no total: {alone} is taken by itself" * one.separate
        one.near = evidence.near if one.separate else {}
        tail += "".join(near.clause(k, one.first) for k, near in one.near.items())
        rules.lines.append(line + _sums_text(one, evidence) + tail)
        return
    tail = ""
    complete = one.exhaustive and groups.good == groups.telling > 0
    settled = not any(map(SOME.match, one.labels)) and (complete or adds_up(groups))
    settled = settled and not evidence.overlap
    if settled and not {"totals", f"totals.{name}"} & {*rules.choices}:
        # Ranges of changed counts allow sums that are off: such groups show no sum that holds.
        kind = "complete"
        numbers = f"{groups.good} of {groups.telling} groups"
        ranges = f"may hold in {numbers}, whose counts are ranges"
        tail += f" (the sums {f'hold in {numbers}' if groups.exact else ranges})"
    else:
        kind = _totals_rule(name, one, evidence, rules)
        if groups.rounded and kind == "complete":
            rounded = " within rounding" * (groups.exact < groups.good)
            tail += f" (the sums hold{rounded} in {groups.good} groups)"
    wrong = evidence.impossible[kind == "partial"]
    wrong -= min(wrong, groups.telling - groups.good) * (groups.nearly and kind == "complete")
    if kind != "separate" and not {"totals", f"totals.{name}"} & {*rules.choices}:
        if wrong:
            tail += f"; if labels excluded each other, no records would fit in {wrong} groups"
        for label, number in evidence.doubts.items() if kind == "complete" else ():
            wrong = number
            tail += (
                f"; the total may leave out {one.first.get(label, label)!r} where it is withheld"
            )
        if wrong:
            kind = "separate"  # and what was asked about is not so
            rules.questions.pop(f"totals.{name}", None)
    if kind == "separate":
        one.take_by_itself(summed=summed)
        alone = "what is in no sum" if one.wholes else "each"
        tail += f"; labels may overlap: {alone} is taken by itself"
    elif kind == "partial":
        one.add_rest()
        tail += f"; and {REST}, whom only totals count"
    rules.lines.append(line + _sums_text(one, evidence) + tail)


def _sums_text(one: TableVariable, evidence: _Evidence) -> str:
    """Return the text of the sums of labels that are used."""
    return first_sums(
        f"; {one.first.get(label, label)!r} = {' + '.join(one.first.get(p, p) for p in parts)}"
        for label, parts in evidence.children.items()
        if parts and (not one.separate or label in one.wholes)
    )


def _totals_rule(name: str, one: TableVariable, evidence: _Evidence, rules: ReadingRules) -> str:
    """Return whether labels are complete, partial or separate, where numbers do not show it."""
    groups = evidence.groups
    plain, short = f"totals.{name}", groups.telling - groups.good
    overlap = f"; {_by_name(name, one, evidence)}" if evidence.overlap else ""
    if plain in rules.choices or "totals" in rules.choices:
        return rules.choices.get(plain, rules.choices.get("totals", ""))
    one_way = short and not groups.above and groups.no_chance
    if one_way and (one.exclusive or groups.nearly):
        text = (
            f"the total of {name} counts more than its labels in {short} of {groups.telling} groups"
        )
        text += f": the rest have a label of their own, {REST!r}"
        return rules.ask(plain, "partial", text + overlap)
    if groups.nearly:
        text = f"the labels of {name} make up its total in {groups.good:,} of {groups.telling:,}"
        text += " groups, and the counts of the others are left out"
        return rules.ask(plain, "complete", text + overlap)
    if len(one.labels) == 1 and one.exclusive and not groups.above:
        return rules.ask(plain, "partial", f"all of {name} are {one.labels[0]!r} and {REST}")
    if (groups.above and not one.exclusive) or len(one.labels) < 2:
        return "separate"  # more than the total: some are counted twice
    unseen = groups.vague and not groups.telling  # words alone say that nobody else is counted
    if (one.exhaustive and not short and not unseen) or groups.rounded:
        text = (
            "the labels of each variable make up its totals, and all files count the same records"
        )
        if not overlap:
            return rules.ask("totals", "complete", text)
        return rules.ask(plain, "complete", f"the labels of {name} make up its total{overlap}")
    rounded = any(f"labels.{name}.{one.first[k]}.counts" in rules.all for k in one.totals)
    close = rounded and all(v == "exact" for k, v in rules.all.items() if k.startswith("counts"))
    close = close and groups.no_chance and groups.good == groups.telling
    close = close and 2 * groups.bits >= 3 * _BITS  # sums of exact counts, near rounded totals
    listed = evidence.listed and all(total_word(k, name) == 2 for k in one.totals)
    close = close or one.exclusive or (listed and not any(map(SOME.match, one.labels)))
    guess = "partial" if close and not groups.above else "separate"
    if rules.summed and groups.good == groups.telling > 0 and not groups.contrary:
        guess = "complete"  # a spreadsheet sums up the rows that stand there
    text = f"too few groups show whether the labels of {name} make up its total"
    if 0 < groups.good == groups.telling and groups.bits >= 2 * _BITS_ALONE:
        ranges = "of ranges that leave" if groups.exact < groups.good else "which leave"
        text = f"the sums hold in {groups.good} groups, {ranges} open whether"
        text += f" the labels of {name} make up its total"
    if groups.contrary:
        text = f"counts of {name} contradict each other in {groups.contrary} groups"
    elif groups.above:
        number = f"{groups.above} of {groups.telling} groups"
        text = f"the labels of {name} add up to more than its total in {number}"
    elif short:
        text = (
            f"the labels of {name} do not make up its total in {short} of {groups.telling} groups"
        )
    text += (
        ": complete if they do, partial if they exclude each other and the total may count others, "
        "separate if they may overlap"
    )
    return rules.ask(plain, guess, text + overlap)


def _by_name(name: str, one: TableVariable, evidence: _Evidence) -> str:
    """Return the guess that a range shares its ages with another one, and what says otherwise."""
    part, whole = (one.first[k] for k in evidence.overlap)
    text = f"{part!r} shares ages with {whole!r} by its name alone"
    return f"{text} (labels.{name}.{part}={part} if it does not, separate if nothing is known)"


def _ask_spellings(
    name: str, one: TableVariable, files: Mapping[str, Mapping[str, None]],
    choices: Mapping[str, str], rules: ReadingRules,
) -> None:  # fmt: skip
    """Ask about labels that one file alone has: they may be other spellings."""
    reached = [{i for x in labels for i in one.groups.get(key(x), ())} for labels in files.values()]
    alone = {
        file: [
            label for label in labels
            if (group := {*one.groups.get(key(label), ())})
            and sum(bool(group & other) for other in reached) == 1
            and key(label) not in choices
        ]
        for file, labels in files.items()
    }  # fmt: skip
    if sum(map(bool, alone.values())) > 1:  # else one file has fewer labels, no other spelling
        for file, label in ((f, label) for f, labels in alone.items() for label in labels):
            text = f"{label!r} is in {Path(file).name} alone: no other spelling of a label"
            rules.ask(f"labels.{name}.{label}", label, text)


def _name_complete(results: Mapping[str, TableVariable], rules: ReadingRules) -> None:
    """Let the question whether labels make up totals name variables, where it is not about all."""
    rest = [n for n, one in results.items() if not one.separate and REST not in one.labels]
    if "totals" in rules.questions and len(rest) < len(results):
        guess, text = rules.questions["totals"]
        named = f"{listing(rest)} make up {'its' if len(rest) == 1 else 'their'} totals"
        rules.questions["totals"] = guess, text.replace("each variable make up its totals", named)


def _ask_same(
    texts: Mapping[str, Mapping[str, object]], results: Mapping[str, TableVariable],
    rules: ReadingRules,
) -> None:  # fmt: skip
    """Ask whether variables that no file has together, with labels alike, are one."""
    for a, b in itertools.combinations(texts, 2):
        equal = {*results[a].groups} == {*results[b].groups} and len(results[a].labels) > 1
        ranges = results[a].intervals and results[b].intervals
        if not {*texts[a]} & {*texts[b]} and (equal or ranges) and key(b) not in rules.columns:
            rules.ask(f"columns.{b}", a, f"{b!r} and {a!r} are one variable")
