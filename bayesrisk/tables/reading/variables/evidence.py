"""Evidence on the labels of a variable: totals, subtotals and trees, by sums that hold."""

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bayesrisk.tables.reading.rules import ReadingRules, hierarchy
from bayesrisk.tables.reading.variables.ages import (
    Ends,
    consecutive,
    may_lie_in,
    nested_ages,
    overlapping,
)
from bayesrisk.tables.reading.variables.judgements import Groups, NearSum, SumInGroups
from bayesrisk.tables.reading.variables.nested import adds_up, beyond_chance
from bayesrisk.tables.reading.variables.searches import SumSearch
from bayesrisk.tables.reading.variables.sums import CodedLabels
from bayesrisk.tables.reading.variables.variable import (
    TableVariable,
    intervals,
    leaves,
    unknown_ages,
)
from bayesrisk.tables.sheets.texts import interval, is_date, key, sex, total_word

_MOST_RUNS = 3000  # labels to search for subtotals
_MOST_CODES = 4  # numbers that may be codes, as of sexes, and not ages
_MOST_COMBINED = 64  # labels to test as sums of any others
_MOST_SCATTERED = 8  # labels whose subsets are tried as parts
#: Sums hold by chance in one case of 2**8, times the number of sums tried.
BITS = 8
BITS_ALONE = 16  # of one group alone


class LabelEvidence(NamedTuple):
    """The parts of each subtotal, the total, and the groups in which the numbers show it.

    ``disjoint`` are labels that lie in another one by name, but not by the numbers. ``overlap`` is
    such a label and the other one, if the numbers do not decide. ``impossible`` counts the groups
    in which no records fit, if labels add up to the total, and if it may count others. ``doubts``
    maps labels that the total may leave out where withheld to numbers of groups. ``listed`` says
    whether many labels, such as places, are nearly all of each total. ``certain`` says that no sum
    of a subtotal holds by chance. ``near`` are sums that hold in most groups. ``second_way`` is a
    label that others add up to in a second way, and the fewer labels of one way. ``missing`` are
    the groups with withheld counts in which the others nearly add up to the total, and the most
    that is missing for one.
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
    second_way: tuple[str, Sequence[str]] = ("", ())
    missing: tuple[int, int] = (0, 0)

    def variable(self, labels: Sequence[str], rules: Mapping[str, str]) -> TableVariable:
        """Return the variable with some labels, and settings about these."""
        return TableVariable(labels, rules, self.children, self.totals, self.disjoint)

    def find_second_way(self, sums: SumSearch) -> tuple[str, Sequence[str]]:
        """Return a label that others add up to in a second way, and the labels that move.

        These are in no tree but its own. Or all labels after the first add up to it repeatedly, in
        runs.
        """
        every = [k for k in sums.column if k]
        below = {k: _labels_below(k, self.children) for k in every}
        inside = {*itertools.chain(*self.children.values())}
        top = [k for k in every if k not in inside]
        if not self.children and not self.groups.good and top:
            return top[0], sums.last_run(top[0], top[1:], BITS + BITS_ALONE)
        for whole in self.children if 2 < len(top) <= _MOST_COMBINED else ():
            free = [k for k in top if whole not in below[k]]
            free += [whole] * (whole not in free)
            parts = sums.combined(free, {}, BITS + len(free) + math.log2(len(free))).get(whole, ())
            inner = [k for k in every if k in parts or any(k in below[p] for p in parts)]
            if inner:
                return whole, min(inner, [k for k in every if k in below[whole]], key=len)
        return "", ()


def _labels_below(label: str, children: Mapping[str, Sequence[str]]) -> set[str]:
    """Return all labels of the tree below one."""
    parts = {*children.get(label, ())}
    return parts.union(*(_labels_below(k, children) for k in parts))


def sums_shown(coded: CodedLabels, rules: ReadingRules) -> dict[str, dict[str, list[str]]]:
    """Return for each variable the parts of every label that the numbers show to be their sum."""
    results: dict[str, dict[str, list[str]]] = {}
    for name, labels in coded.labels.items():
        sums = SumSearch(name, coded, {})
        wholes = _sums(_evidence(name, labels, *label_rules(name, rules), sums), sums)
        results[name] = {
            whole: parts for whole, parts in wholes.items() if adds_up(sums.adding_up(parts)(whole))
        }
    return results


def _sums(one: LabelEvidence, sums: SumSearch) -> dict[str, list[str]]:
    """Return the published parts of each subtotal and of the total."""
    wholes, inside = dict(one.children), {*itertools.chain(*one.children.values())}
    for total in one.totals or [""] * sums.implied:
        parts = [k for k in sums.column if k and k != total and k not in inside]
        unknown = unknown_ages({k: k for k in parts})
        ends = intervals({k: k for k in parts if k not in unknown})
        ranges = {k: end for k, end in ends.items() if end}
        nested = len(ranges) + len(unknown) == len(parts) and not one.disjoint
        wholes[total] = [*consecutive(ranges), *sorted(unknown)] if nested else parts
    return {k: parts for k, parts in wholes.items() if parts and {k, *parts} <= {*sums.column}}


def all_evidence(
    labels: Mapping[str, list[str]],
    choices: Mapping[str, tuple[dict[str, str], dict[str, list[str]]]],
    coded: CodedLabels, totals: Mapping[str, Sequence[str]],
) -> tuple[dict[str, LabelEvidence], dict[str, list[SumInGroups]], set[str]]:  # fmt: skip
    """Return the evidence on each variable, its sums, and the variables with counts of all."""
    evidence, implied = dict[str, LabelEvidence](), set[str]()
    sums_by_name: dict[str, list[SumInGroups]] = {}
    for name, texts in labels.items():
        sums = SumSearch(name, coded, totals)  # one at a time, since they may be large
        finding = _evidence(name, texts, *choices[name], sums)
        one = finding.variable(texts, choices[name][0])
        size, tree = len(one.labels), choices[name][1]
        every = {"", *one.totals}
        (wrong, doubts), (other, _) = (
            sums.impossible(one.groups, every, size + rest) for rest in (0, 1)
        )
        parts_by_whole = _sums(finding, sums)
        wholes = {k: sums.in_groups(k, parts) for k, parts in parts_by_whole.items()}
        listed = bool(finding.totals) and all(
            sums.nearly_all(k, parts_by_whole.get(k, ())) for k in finding.totals
        )
        missing = [sums.missing(k, parts_by_whole[k]) for k in every & parts_by_whole.keys()]
        rest = sums.bounded.any(axis=0).sum() - 1  # others: one group may show that all add up
        sums_by_name[name] = [*wholes.values()]
        inner, groups = [w.numbers for k, w in wholes.items() if k not in every], finding.groups
        if all((telling == good).all() for telling, good, *_ in inner):  # they support each other
            groups = groups._replace(bits=groups.bits + sum(float(n[-1].sum()) for n in inner))
        near = {} if finding.totals or sums.implied else sums.near([*sums.column], parts_by_whole)
        evidence[name] = finding._replace(
            groups=groups, impossible=(wrong, other), doubts=doubts, listed=listed, near=near,
            second_way=finding.find_second_way(sums), missing=max(missing, default=(0, 0)),
            certain=all(
                w.certain or (len(parts_by_whole[k]) == rest and w.numbers[-1].sum() >= BITS_ALONE)
                for k, w in wholes.items() if not {k} & (every | tree.keys())
            )
            and SumInGroups.show_one_another([w for k, w in wholes.items() if k in tree]),
        )  # fmt: skip
        implied |= {name} if sums.implied else set()
    unshown = {n: one.totals for n, one in evidence.items()
               if not one.groups.telling and (one.totals or n in implied)}  # fmt: skip
    joint, sums_of_all = coded.add_up_together(unshown) if unshown else (Groups(), [])
    if adds_up(joint):
        evidence |= {n: evidence[n]._replace(groups=joint) for n in unshown}
        sums_by_name[next(iter(unshown))] += sums_of_all
    return evidence, sums_by_name, implied


def label_rules(name: str, rules: ReadingRules) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return settings about labels, and the tree of a ``.hrc`` file named in one."""
    section = rules.section(f"labels.{name}")
    inner = {k: v for k, v in section.items() if v == "all" or " | " in v or key(v) == k}
    file = rules.section("labels").get(key(name), "")
    return inner, hierarchy(Path(file)) if file.endswith(".hrc") else {}


def _evidence(
    name: str, labels: Sequence[str], choices: Mapping[str, str], tree: Mapping[str, list[str]],
    sums: SumSearch,
) -> LabelEvidence:  # fmt: skip
    """Return the subtotals and the total shown by the numbers; few labels may stand anywhere."""
    finding = _neighbour_evidence(name, labels, choices, tree, sums)
    free = [k for k in sums.column if k and k not in choices]
    ages = 2 * sum(interval(k) is not None for k in free) > len(free)
    if adds_up(finding.groups) or ages or not 2 < len(free) <= _MOST_COMBINED:
        return finding
    trees = {k: frozenset(leaves(k, finding.children)) for k in finding.children}
    below = sums.combined(free, trees, BITS + len(free) + math.log2(len(free)))
    if len(below) == len(trees):
        return finding
    return _neighbour_evidence(name, labels, choices, {**below, **tree}, sums)


def _neighbour_evidence(
    name: str, labels: Sequence[str], choices: Mapping[str, str], tree: Mapping[str, list[str]],
    sums: SumSearch,
) -> LabelEvidence:  # fmt: skip
    """Return the total, and subtotals among neighbouring labels, with the help of words."""
    top = list(dict.fromkeys(key(x) for x in labels if key(x) not in choices))
    free = {*top}
    words = {k: total_word(x, name) for x in labels if (k := key(x)) in free}
    children = {k: [c for c in parts if c in words] for k, parts in tree.items() if k in words}
    below = {k for parts in children.values() for k in parts}
    top = [k for k in top if k not in below]
    plain = {key(x): x for x in labels if not words.get(key(x), 1)}
    plain = plain or {key(x): x for x in labels if words.get(key(x)) == 1}
    unknown = unknown_ages(plain)
    whole = None not in intervals({k: x for k, x in plain.items() if k not in unknown}).values()
    if not whole and len(sums.low) and not all(map(is_date, top)):
        trees = _outline(top, {*children}, words, sums)
        trees = trees or (_runs(top, words, sums) if len(top) <= _MOST_RUNS else {})
        children |= {k: ps for k, ps in trees.items() if all(may_lie_in(p, k) for p in ps)}
    totals = [k for k, v in choices.items() if v == "all"]
    if len(top) == 1 and children.get(top[0]) and not totals:  # the subtotal of all others
        parts = children.pop(top[0])
        stated = [k for k in parts if k in sums.column]
        return LabelEvidence(children, top, sums.adding_up(stated)(top[0]))
    if (several := [k for k in top if words[k]]) and not totals and len(several) == len(top) > 1:
        summed = [k for k in top if k in children]  # each counts all, in separate groups
        if len(summed) == 1 and not sums.meet(several):
            parts = children.pop(summed[0])
            judge = sums.adding_up(parts)
            return LabelEvidence(children, several, Groups.joint(map(judge, several)))
    parts = top
    ends = dict[str, Ends | None]()
    if whole and len(top) > 1:  # consecutive ones among nested ages add up
        ends = intervals({k: k for k in top if words[k] < 2 and k not in unknown})
        parts = consecutive({k: end for k, end in ends.items() if end})
        parts += [k for k in top if k in unknown]
    evidence = LabelEvidence(children, totals)
    if not totals:
        evidence = _twice(_total(children, top, parts, words, sums, whole=whole), top, sums)
    every = evidence.totals[0] if evidence.totals else ""
    if every in sums.column and not (totals or whole) and evidence.groups.good < 2:
        members = [k for k in top if k != every]  # the first may be sums of the rest
        runs = sums.runs(every, members, BITS + math.log2(len(top)))
        size = members.index(runs[0][-1]) + 1 if runs else len(members)
        inner = _parts_below(members[:size], members[size:], sums) if members[size:] else None
        if inner is not None:
            return _joined(evidence, members[:size], inner, sums)
        if evidence.groups.above and (run := sums.only_run(every, members, 2 * BITS_ALONE)):
            return LabelEvidence({**children, every: run}, [])  # the remaining labels count others
    if not (evidence.totals or totals or whole or sums.implied) and len(top) > _MOST_CODES:
        for label in dict.fromkeys([top[0], top[-1]]):  # the sum of all others but one
            if run := sums.all_but_one(label, top, math.log2(len(top))):
                return LabelEvidence({**children, label: run}, [])
    ranges = {k: end for k, end in ends.items() if end}
    evidence = _range_evidence(evidence, ranges, parts, sums)
    if evidence.disjoint:
        return evidence
    without_total = {**ranges}
    if ranges and every in sums.column and not unknown:  # the total is of all ages
        ranges[every] = min(low for low, _ in ranges.values()), max(b for _, b in ranges.values())
    groups = evidence.groups
    if groups.good == groups.telling and (contrary := sums.contradictory(ranges)):
        telling = groups.telling + contrary
        ages = sums.contradictory(without_total)  # else the total counts others, too
        denied = contrary * (ages > 0)
        groups = groups._replace(telling=telling, above=denied, contrary=denied)
        return evidence._replace(groups=groups)
    if totals or (sums.implied and not evidence.groups.telling):
        rest = [k for k in parts if k not in evidence.totals]
        return evidence._replace(groups=sums.adding_up(rest)(totals[0] if totals else ""))
    return evidence


def _range_evidence(
    evidence: LabelEvidence, ranges: Mapping[str, Ends], parts: Sequence[str], sums: SumSearch
) -> LabelEvidence:
    """Return evidence on ranges that share ages by name: 15 may be in *under 15* or in 15-19.

    They exclude each other if all add up to the total in more groups than consecutive ones do, and
    exceed it in none.
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


def _tiled(ends: Mapping[str, Ends], sums: SumSearch) -> bool:
    """Return whether each range with others inside is shown to be the sum of some of them."""
    judged = (sums.adding_up(p)(k) if p else Groups() for k, p in nested_ages(ends).items())
    return all(groups.good == groups.telling and groups.no_chance for groups in judged)


def _twice(evidence: LabelEvidence, top: Sequence[str], sums: SumSearch) -> LabelEvidence:
    """Return evidence with one set of parts of a total, if two sets add up to it.

    *People* may be *men* and *women*, and also *boys*, *girls*, *adult men* and *adult women*. Then
    the second set is searched for the parts of each label of the first. If not all are found, the
    labels may overlap.
    """
    parts = next((evidence.children.pop(k) for k in evidence.totals if k in evidence.children), [])
    rest = [k for k in top if k not in evidence.totals]
    if not parts or not rest:
        return evidence
    return _joined(evidence, parts, _parts_below(parts, rest, sums), sums)


def _joined(
    evidence: LabelEvidence, parts: Sequence[str], below: Mapping[str, list[str]] | None,
    sums: SumSearch,
) -> LabelEvidence:  # fmt: skip
    """Return evidence on a total of some parts, with the labels below each of them.

    A part that has parts already is cut twice: *sheltered* by kinds of shelter, and by kinds of
    families. Then one cut is searched for the parts of the other, as above.
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
    labels: Sequence[str], rest: Sequence[str], sums: SumSearch
) -> dict[str, list[str]] | None:
    """Return the parts of each label among the rest; None if some of the rest remain."""
    bits = BITS + 2 * math.log2(len(rest))
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
    bits = BITS + len(rest) + math.log2(len(labels))
    return sums.scattered(labels, rest, bits) if few else None


def _total(
    children: dict[str, list[str]], top: Sequence[str], parts: Sequence[str],
    words: Mapping[str, int], sums: SumSearch, *, whole: bool,
) -> LabelEvidence:  # fmt: skip
    """Return the label that is the sum of all others, or may be by its name."""
    judge, smaller, inside = sums.adding_up(parts), sums.exceeded(), {*parts}
    whole = whole and not (len(top) <= _MOST_CODES and all(map(str.isdecimal, top)))
    best, finding = LabelEvidence(children, []), list[LabelEvidence]()
    for label in sorted(top, key=lambda k: -words[k]):
        size, word = len(parts) - (label in inside), words[label]
        if not size or (not word and (whole or label not in sums.counting)):
            continue
        if label in smaller and not (word == 2 and judge(label).nearly):
            continue
        groups = judge(label)
        holds = groups.telling == groups.good or groups.nearly
        meant = groups.good > 0 and (whole or all(sex(k) for k in parts if k != label))
        # The first label, or the last, may be the sum of all others in one group alone.
        alone = label in (top[0], top[-1]) and groups.bits >= BITS_ALONE
        several = groups.good > 1 or (alone and groups.exact > 0)
        holds = holds and (several, meant or groups.no_chance, groups.good > 0)[word]
        chance = BITS // (2 if meant else 1) + math.log2(len(top))
        holds = holds and groups.bits >= (chance, 2, 0)[word]
        if holds and (size > 1 or word == 2):
            finding.append(LabelEvidence(children, [label], groups))
        if word == 2 and not best.totals:
            best = LabelEvidence(children, [label], groups)
    perhaps = [k for k in (*top[:1], *top[-1:]) if words[k] == 1 and k not in smaller]
    met = [k for k in parts if perhaps and k != perhaps[0] and sums.meet([k, perhaps[0]])]
    if met and not (best.totals or finding) and not sums.adding_up(met)(perhaps[0]).telling:
        best = LabelEvidence(children, perhaps[:1])  # no group shows whether it is a total
    named = [one for one in finding if words[one.totals[0]] == 2]
    called = best.totals
    if named or len(finding) == 1:  # several equal ones could be the total
        best = [*named, *finding][0]
    noun = "".join(best.totals).partition(" ")[2]
    other_totals = [
        k for k in smaller if words.get(k) == 2 and k.partition(" ")[2] not in ("", noun)
    ]
    if noun and not named and any(sums.meet([*best.totals, k]) for k in other_totals):
        return LabelEvidence(children, [])  # total births beside total deaths
    for label in [*called, *(k for k in top if words[k] == 2 and k not in smaller)]:
        if label not in best.totals and not sums.meet([*best.totals, label]):
            groups = min(best.groups, judge(label), key=lambda one: one.good)
            best = LabelEvidence(
                children, [*best.totals, label], groups
            )  # each in groups of its own
    return best


def _outline(
    top: list[str], whole: set[str], words: Mapping[str, int], sums: SumSearch
) -> dict[str, list[str]]:
    """Return the parts of each label in a list that forms a tree, unless some have parts already.

    The single sum of a whole tree is beyond chance, even if its inner sums are not.
    """
    for ordered in (top, top[::-1]):
        tree = sums.outline(ordered, BITS)
        if len(tree) > 1 and all(k not in whole if k in tree else words[k] < 2 for k in ordered):
            top[:] = ordered[:1]
            return tree
    return {}


def _runs(top: list[str], words: Mapping[str, int], sums: SumSearch) -> dict[str, list[str]]:
    """Return subtotals among ordered labels: those that follow or precede add up to them.

    Codes that begin with another one are its parts, unless sums deny it. Parts are removed from
    ``top``.
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
                bits = BITS + math.log2(len(top) * len(rest)) if rest else 0.0
                runs = sums.runs(label, rest[:end], bits) if end > 1 else []
                if runs and len(runs[0]) + 1 < len(top):
                    take(label, runs[0])
    return children
