"""Judgement on the labels of each variable: exclusive or overlapping, complete or partial."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.notes import Note, counts_more, unadded
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.crossings import divided_twice
from bayesrisk.tables.reading.variables.evidence import (
    BITS,
    BITS_ALONE,
    LabelEvidence,
    all_evidence,
    label_rules,
)
from bayesrisk.tables.reading.variables.nested import REST, Nesting, adds_up, beyond_chance
from bayesrisk.tables.reading.variables.sums import CodedLabels
from bayesrisk.tables.reading.variables.variable import TableVariable
from bayesrisk.tables.sheets.texts import SOME, UNKNOWN, first_sums, key, listing, total_word

_MOST_PARTS, _MANY_MORE = 6, 14  # of a sum, on the screen


def variables(
    cells: list[Cell], ends: Sequence[Ends], nesting: Nesting, rules: ReadingRules
) -> tuple[list[Cell], dict[str, TableVariable]]:
    """Return cells, and the variables of all files; add lines and questions to ``rules``."""
    texts: dict[str, dict[str, dict[str, None]]] = {}
    for cell in cells:
        for name, label in cell.labels.items():
            texts.setdefault(name, {}).setdefault(cell.file, {})[label] = None
    labels = {n: list(dict.fromkeys(x for f in fs.values() for x in f)) for n, fs in texts.items()}
    choices = {name: label_rules(name, rules) for name in texts}
    for name, tree in nesting.trees.items():  # the rest of a parent has its own label
        labels[name] = list(dict.fromkeys([*labels[name], *itertools.chain(*tree.values())]))
        children = {key(k): [*map(key, parts)] for k, parts in tree.items()}
        nodes = {*children, *itertools.chain(*children.values())}
        settings = {k: v for k, v in choices[name][0].items() if k not in nodes or key(v) != k}
        choices[name] = settings, choices[name][1] | children
    for nested_name, paths in nesting.paths.items():  # a tree whose labels became paths
        name = nesting.root(nested_name)
        settings, tree = choices[name]
        called = {paths.get(k, k): [paths.get(p, p) for p in parts]
                  for k, parts in label_rules(nested_name, rules)[1].items()}  # fmt: skip
        choices[name] = settings, called | tree
    coded = CodedLabels([cell.labels for cell in cells], ends)
    evidence, sums_by_name, implied = all_evidence(labels, choices, coded, {})
    if len({cell.file for cell in cells}) > 1:  # a count of all may have a label in one file only
        totals = {name: one.totals for name, one in evidence.items()}
        evidence, sums_by_name, implied = all_evidence(labels, choices, coded, totals)
    if (divided_cells := divided_twice(cells, coded, evidence, nesting, rules)) is not cells:
        return variables(divided_cells, ends, nesting, rules)
    hidden = any(low < high for low, high in ends)  # otherwise sums add no information
    results, denials = {}, unadded(rules.notes, texts) if hidden else {}
    for name, files in texts.items():
        inner, finding = choices[name][0], evidence[name]
        if name in nesting.separate:
            one = results[name] = TableVariable(labels[name], inner, {}, ())
            one.separate = True
            rules.lines.append(f"  {name}: {listing(one.labels)}; each is taken by itself")
            continue
        one = results[name] = finding.variable(labels[name], inner)
        one.sums, groups = sums_by_name[name], finding.groups
        more = [one.first[k] for k in one.totals if hidden and counts_more(one.first[k])]
        if more and not any(map(UNKNOWN.search, one.labels)):
            row = next(
                c.row - (c.column == more[0]) for c in cells if c.labels.get(name) == more[0]
            )
            denials = {name: ("partial", Note(row, more[0]))} | denials
        if groups.nearly and not any(sums.contradicting.size for sums in one.sums):
            finding = finding._replace(groups=groups._replace(telling=groups.good))
        _judge(
            name, one, finding, rules, nesting, implied=name in implied, denial=denials.get(name)
        )
        if finding.groups.nearly and not (one.separate or REST in one.labels):
            denied = itertools.chain(*(sums.contradicting for sums in one.sums))
            one.left_out = sorted({*map(int, denied)})
            rows = listing(dict.fromkeys(str(cells[i].row) for i in one.left_out))
            text = f"{len(one.left_out):,} counts are left out, since sums of {name} deny them"
            rules.lines.extend([f"  {text}: rows {rows}"] * bool(rows))
            one.sums = [sums.holding for sums in one.sums]
        if unstated := _unstated_twins(name, one, cells, ends) if one.intervals else []:
            one.left_out += unstated
            text = listing(dict.fromkeys(cells[i].labels[name] for i in unstated))
            rules.lines.append(f"  {text}: no count, and the ages of another label; left out")
        if one.totals or not one.separate:
            _ask_spellings(name, one, files, inner, rules)
    _name_complete(results, rules)
    _ask_same(texts, results, rules)
    return cells, results


def _unstated_twins(
    name: str, one: TableVariable, cells: Sequence[Cell], ends: Sequence[Ends]
) -> list[int]:
    """Return counts of labels that are unknown everywhere and have the ages of a known label."""
    column = [key(cell.labels.get(name, "")) for cell in cells]
    stated_labels = {k for k, (_, high) in zip(column, ends, strict=True) if high < UNBOUNDED}
    ages = {group for k, group in one.groups.items() if k in stated_labels}
    twins = {k for k, group in one.groups.items() if k not in stated_labels and group in ages}
    return [i for i, k in enumerate(column) if k in twins]


def _judge(
    name: str, one: TableVariable, evidence: LabelEvidence, rules: ReadingRules,
    nesting: Nesting, *, implied: bool, denial: tuple[str, Note] | None,
) -> None:  # fmt: skip
    """Decide whether the labels of a variable add up to its totals, and whether they overlap."""
    subtotals = [k for k, parts in evidence.children.items() if parts]
    labels = [one.first[k] for k in (*one.totals, *subtotals) if k in one.first]
    labels = [label for label in labels if label not in nesting.trees.get(name, {})]
    rules.alternatives[f"totals.{name}", "partial"] = None
    rules.alternatives |= {(f"labels.{name}.{label}", label): None for label in labels}
    rules.alternatives[f"totals.{name}", "separate"] = None
    line = f"  {name}: {listing(one.labels)}"
    line += f"; {listing(repr(one.first[t]) for t in sorted(one.totals))} counts all" * bool(
        one.totals
    )
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
        tail += first_sums(
            f"; {one.first[k]!r} is {_parts_text(k, near.parts, one.first)} in {near.number}"
            for k, near in one.near.items()
        )
        rules.lines.append(line + _sums_text(one, evidence) + tail)
        return
    tail = ""
    complete = one.exhaustive and groups.good == groups.telling > 0
    settled = not any(map(SOME.match, one.labels)) and (complete or adds_up(groups))
    settled = settled and not (evidence.overlap or denial)
    if settled and not {"totals", f"totals.{name}"} & {*rules.choices}:
        # Ranges of changed counts allow sums that are off, so these groups show no exact sum.
        kind = "complete"
        numbers = f"{groups.good} of {groups.telling} groups"
        ranges = f"may hold in {numbers}, whose counts are ranges"
        tail += f" (the sums {f'hold in {numbers}' if groups.exact else ranges})"
    else:
        kind = _totals_rule(name, one, evidence, rules, denial)
        if groups.balanced and groups.fitting and kind == "complete":
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
            kind = "separate"  # so the question's guess is wrong
            rules.questions.pop(f"totals.{name}", None)
    if kind == "separate":
        # Totals of shown counts do not limit withheld ones.
        one.doubtful = bool(wrong or evidence.doubts or (groups.above and one.exclusive))
        one.take_by_itself(summed=summed)
        alone = "what is in no sum" if one.wholes else "each"
        tail += f"; labels may overlap: {alone} is taken by itself"
    elif kind == "partial":
        one.add_rest()
        tail += f"; and {REST}, whom only totals count"
    rules.lines.append(line + _sums_text(one, evidence) + tail)


def _sums_text(one: TableVariable, evidence: LabelEvidence) -> str:
    """Return the text of the sums of labels in use."""
    return first_sums(
        f"; {one.first.get(label, label)!r} = {_parts_text(label, parts, one.first)}"
        for label, parts in evidence.children.items()
        if parts and (not one.separate or label in one.wholes)
    )


def _parts_text(label: str, parts: Sequence[str], first: Mapping[str, str]) -> str:
    """Return the parts of a sum: all, or the first ones and the number of others."""
    texts, path = [first.get(p, p) for p in parts], f"{first.get(label, label)}: "
    more = len(texts) - _MOST_PARTS
    if more > _MANY_MORE or (more > 1 and all(text.startswith(path) for text in texts)):
        texts = [*texts[:_MOST_PARTS], f"{more} more"]
    return " + ".join(text.removeprefix(path) for text in texts)


def _totals_rule(
    name: str, one: TableVariable, evidence: LabelEvidence, rules: ReadingRules,
    denial: tuple[str, Note] | None,
) -> str:  # fmt: skip
    """Return whether labels are complete, partial or separate; ask if numbers do not show it."""
    groups = evidence.groups
    plain, short = f"totals.{name}", groups.telling - groups.good
    overlap = f"; {_by_name(name, one, evidence)}" if evidence.overlap else ""
    if plain in rules.choices or "totals" in rules.choices:
        return rules.choices.get(plain, rules.choices.get("totals", ""))
    if denial:
        text = f"the labels of {name} do not make up its total: {denial[1].quoted}"
        return rules.ask(plain, "separate" if groups.above else denial[0], text + overlap)
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
    unseen = groups.vague and not groups.telling  # only words say that nobody else is counted
    rounded = groups.balanced and groups.fitting
    if (one.exhaustive and not short and not unseen) or rounded:
        text = (
            "the labels of each variable make up its totals, and all files count the same records"
        )
        if not overlap:
            return rules.ask("totals", "complete", text)
        return rules.ask(plain, "complete", f"the labels of {name} make up its total{overlap}")
    close = any(f"labels.{name}.{one.first[k]}.counts" in rules.all for k in one.totals)
    close = close and all(v == "exact" for k, v in rules.all.items() if k.startswith("counts"))
    close = close and groups.no_chance and groups.good == groups.telling
    close = close and 2 * groups.bits >= 3 * BITS  # sums of exact counts, near rounded totals
    listed = evidence.listed and all(total_word(k, name) == 2 for k in one.totals)
    close = close or one.exclusive or groups.fitting or beyond_chance(groups)
    close = close or (listed and not any(map(SOME.match, one.labels)))
    guess = "partial" if close and not groups.above else "separate"
    if rules.summed and groups.good == groups.telling > 0 and not groups.contrary:
        guess = "complete"  # a spreadsheet adds up the rows shown
    text = f"too few groups show whether the labels of {name} make up its total"
    if 0 < groups.good == groups.telling and groups.bits >= 2 * BITS_ALONE:
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
    elif evidence.missing[0]:
        guess, (size, most) = "complete", evidence.missing
        text = f"the labels of {name} miss its total by 1 to {most} for each withheld count in "
        text += f"{size} groups"
    text += (
        ": complete if they do, partial if they exclude each other and the total may count others, "
        "separate if they may overlap"
    )
    return rules.ask(plain, guess, text + overlap)


def _by_name(name: str, one: TableVariable, evidence: LabelEvidence) -> str:
    """Return the guess that two ranges share ages, and the settings that deny it."""
    part, whole = (one.first[k] for k in evidence.overlap)
    text = f"{part!r} shares ages with {whole!r} by its name alone"
    return f"{text} (labels.{name}.{part}={part} if it does not, separate if nothing is known)"


def _ask_spellings(
    name: str, one: TableVariable, files: Mapping[str, Mapping[str, None]],
    choices: Mapping[str, str], rules: ReadingRules,
) -> None:  # fmt: skip
    """Ask whether labels of a single file are other spellings."""
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
    if sum(map(bool, alone.values())) > 1:  # otherwise a file just has fewer labels
        for file, label in ((f, label) for f, labels in alone.items() for label in labels):
            text = f"{label!r} is in {Path(file).name} alone: no other spelling of a label"
            rules.ask(f"labels.{name}.{label}", label, text)


def _name_complete(results: Mapping[str, TableVariable], rules: ReadingRules) -> None:
    """Name the variables in the question on totals, unless it concerns all."""
    rest = [n for n, one in results.items() if not one.separate and REST not in one.labels]
    if "totals" in rules.questions and len(rest) < len(results):
        guess, text = rules.questions["totals"]
        named = f"{listing(rest)} make up {'its' if len(rest) == 1 else 'their'} totals"
        text = text.replace("each variable make up its totals", named)
        rules.questions["totals"] = guess, text


def _ask_same(
    texts: Mapping[str, Mapping[str, object]],
    results: Mapping[str, TableVariable],
    rules: ReadingRules,
) -> None:
    """Ask whether variables with similar labels that no file has together are one."""
    for a, b in itertools.combinations(texts, 2):
        equal = {*results[a].groups} == {*results[b].groups} and len(results[a].labels) > 1
        ranges = results[a].intervals and results[b].intervals
        if not {*texts[a]} & {*texts[b]} and (equal or ranges) and key(b) not in rules.columns:
            rules.ask(f"columns.{b}", a, f"{b!r} and {a!r} are one variable")
