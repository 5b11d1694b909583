"""Labels in headings: several count columns, each with labels of one variable or more."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import numpy as np

from bayesrisk.tables.reading.rows import part_paths
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.margins import (
    CountedColumns,
    margin_sums,
    margins,
    named_margins,
)
from bayesrisk.tables.sheets.sheet import Sheet, thousands_in_rows
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    NEGATIVE,
    NUMBER,
    OWN_UNIT,
    PATH,
    POINTS,
    SOME,
    THOUSANDS,
    UNKNOWN,
    WHOLE,
    interval,
    is_mark,
    key,
    number_range,
    says_number,
    sex,
    total_word,
)

#: Thousands, in a heading.
UNIT = re.compile(
    rf"[ (\[]*(\bin )?(\bthousand\b|{THOUSANDS}|[x×] ?1[ .]?000(?!\d))[)\]]?| ?[(\[]000[)\]]",
    re.IGNORECASE,
)
UNNAMED, _LONGEST, _OLDEST = "category 1", 40, 130
_PAIR = 2
_CLEARLY = 4  # times as near
_FEW_HEADS = 4  # rows that may be headings
#: Columns of results, reserved as names.
RESERVED = re.compile(
    "all|at_least|cell|error|file|known|(low|high)(_stated)?|number|place|probability|records?|row|"
    "sentence|stated|status|table"
)
#: Headings above all counts that name no variable.
_COUNTED = re.compile(rf"no\.?|n|numbers?|counts?|records?|status|table|row|place|{NUMBER}")
_FOR = re.compile(r"total (for|of)\b", re.IGNORECASE)
#: Between words written as one: PupilsMale.
LETTERS = re.compile(r"(?<=[a-zà-ÿ])(?=[A-Z])")
_BITS = 8  # sums of columns hold by chance in one case of 2**8
_KNOWN = ("sex", "age", "year")
#: A label of a dimension, as Statistics Canada writes it above a column.
MEMBER = re.compile(r"dim: (.*?)(?: \(\d+\))?: member id: \[\d+\]: ", re.IGNORECASE)
#: 2014** and 2020 1) have notes, 2014.06 a month.
_YEAR = re.compile(r"(19|20)\d\d([.M]\d\d)?[ 년年]?([*†‡^]{1,3}|[(\[]?\w{1,2}[)\]])?")
#: Between parts of a heading, and not between the ends of a range: 0 - 4 years - male.
_DASH = re.compile(r"(?<!\d) [-–—] | [-–—] (?!\d)")


def in_persons(sheet: Sheet) -> Sheet:
    """Return a sheet with marked thousands, and their decimals written out: 1.25 as 1250.

    Numbers with three digits after each point stay, since points may separate thousands.
    """
    sheet = sheet._replace(thousands=sheet.thousands or thousands_in_rows(sheet))
    units = [bool(UNIT.search(head)) for head in sheet.heads]
    columns = list(zip(*(row for _, row in sheet.rows), strict=True))
    decimals = [{t for t in c if DECIMAL.fullmatch(t) and not NEGATIVE.fullmatch(t)}
                for c in columns]  # fmt: skip
    few = (2 * sum(map(bool, map(WHOLE.fullmatch, c))) <= sum(t in d for t in c)  # 12 for 12.0
           for c, d in zip(columns, decimals, strict=True))  # fmt: skip
    if sheet.thousands and all(few):
        units = [not OWN_UNIT.search(head) for head in sheet.heads]
    digits = {
        i: max(len(re.split("[.,]", t)[-1]) for t in texts)
        for i, texts in enumerate(decimals)
        if units[i] and not all(map(POINTS.fullmatch, texts))
    }
    persons = {i: 1000 // 10**n for i, n in digits.items() if n <= 3}
    if not persons:
        return sheet
    comma = {i for i in persons if any(re.fullmatch(r"\d+,\d\d?", t) for t in columns[i])}

    def count_text(i: int, text: str) -> str:
        if i not in persons or not (text in decimals[i] or WHOLE.fullmatch(text)):
            return text
        plain = text.replace(",", "." if i in comma else "")
        return str(int(Decimal(re.sub(r"[^\d.]", "", plain)) * 1000))

    rows = [(n, [count_text(i, text) for i, text in enumerate(row)]) for n, row in sheet.rows]
    return sheet._replace(rows=rows, persons=persons)


def below_units(sheet: Sheet) -> Sheet:
    """Return a sheet without its first rows up to one that has *number* in place of counts.

    That row names the labels. Texts of several columns in the rows above move to the headings.
    """
    for r, (_, row) in enumerate(sheet.rows[:_FEW_HEADS]):
        if not any(_COUNTED.fullmatch(key(t)) for t in row):
            continue
        below = [*zip(*(texts for _, texts in sheet.rows[r + 1 :]), strict=True)]
        counted = [j for j, c in enumerate(below) if 2 * sum(map(says_number, c)) > len(c)]
        units = [row[j] for j in counted]
        has_unit = any(_COUNTED.fullmatch(key(t)) and not is_mark(t) for t in units)
        if not has_unit or any(map(says_number, units)):
            continue
        above = [[texts[j] for j in counted] for _, texts in sheet.rows[:r]]
        more = zip(*(t for t in above if len({*t}) > 1), strict=True)
        paths = dict(zip(counted, more, strict=False))
        heads = [
            PATH.join([head, *paths.get(j, ())]) if j in counted else row[j] or head
            for j, head in enumerate(sheet.heads)
        ]  # fmt: skip
        left = [(i, ", ".join(filter(None, texts))[:40], "a row of headings")
                for i, texts in sheet.rows[: r + 1]]  # fmt: skip
        return sheet._replace(heads=heads, rows=sheet.rows[r + 1 :], left=[*sheet.left, *left])
    return sheet


def wide(
    sheet: Sheet, numeric: Sequence[int], names: Mapping[int, str], rules: ReadingRules
) -> dict[int, dict[str, str]]:
    """Return the labels of each count column, whose headings are labels of variables."""
    if not numeric:
        return {}
    if len(numeric) == 1 and (names or PATH not in sheet.heads[numeric[0]]):
        return {numeric[0]: {}}
    heads = {i: MEMBER.sub(r"\1: ", sheet.heads[i]) for i in numeric}
    heads = {i: UNIT.sub("", head).strip() or head for i, head in heads.items()}
    columns = [[row[i] for _, row in sheet.rows] for i in numeric]
    paths = part_paths(list(heads.values()), columns, rules)
    heads |= {numeric[position]: path for position, path in paths.items()}
    parts = _without_group(_without_names(_parts(heads)))
    parts = _with_periods({i: _with_totals(part) for i, part in parts.items()})
    parts = _with_lone_total(sheet, parts)
    size = max(map(len, parts.values()))
    inner = {part[-1] for part in parts.values() if len(part) == size > 1}
    outer = {part[0] for part in parts.values() if len(part) > 1 and not total_word(part[0])}
    for i, part in parts.items():  # a lone total was merged with its total below
        if len(part) == 1:  # "Men Total" beside columns below "Men"
            groups = (g for g in outer if key(g) in key(part[0])
                      and "Total" in _with_totals([g, *part]))  # fmt: skip
            parts[i] = part = next(([group, "Total"] for group in groups), part)
        if len(part) == 1 and part[0] in inner and total_word(part[0]) == 2:
            parts[i] = part * size
        elif len(part) == 1 and total_word(first := part[0].partition(" ")[0]) == 2:
            below = part[0].removeprefix(first).strip(" :,-–")  # "Total F" counts all of F
            parts[i] = [first, below] if below in inner and size > 1 else part
    parts = _with_total_of_groups(sheet, parts, outer)
    parts, named_kinds = _with_whole_groups(sheet, _with_one_word(parts))
    kinds = {
        i: [heading_kind(label, depth) for depth, label in enumerate(part, 1)]
        for i, part in parts.items()
    }
    kinds |= {i: [*kinds[i][:1], kind] for i, kind in named_kinds.items()}
    for d in range(size):  # single years of age beside others: 99, 100 and over
        ranges = {
            i: interval(p[d]) for i, p in parts.items() if len(p) > d and total_word(p[d]) < 2
        }
        if any(kinds[i][d] == "age" for i in ranges) and all(
            end and end[0] < _OLDEST for end in ranges.values()
        ):
            for i in ranges:
                kinds[i][d] = "age"
    # Unknown ages belong to ages. A total in a path is a label if its depth has only one
    # variable; otherwise it counts all.
    words = {i: [total_word(p) == 2 for p in part] for i, part in parts.items()}
    at_depth: dict[int, set[str]] = {}
    for i, word in words.items():
        for depth, total in enumerate(word):
            rest = total or UNKNOWN.search(parts[i][depth])
            at_depth.setdefault(depth, set()).update(() if rest else kinds[i][depth : depth + 1])
    one = {depth: next(iter(options)) for depth, options in at_depth.items() if len(options) == 1}
    plain = {i: [w and d not in one for d, w in enumerate(word)] for i, word in words.items()}
    kinds = {
        i: [
            one.get(d, kind) if words[i][d] or UNKNOWN.search(parts[i][d]) else kind
            for d, kind in enumerate(part)
        ]
        for i, part in kinds.items()
    }
    sums = margin_sums(sheet, parts, kinds, "category ")
    kinds = {i: [sums.get((d, p), k) for d, (p, k) in enumerate(zip(parts[i], ks, strict=True))]
             for i, ks in kinds.items()}  # fmt: skip
    blocks = named_margins(sheet, parts)
    if not blocks and len(joined := _joined(sheet, parts)) > 1:
        parts, kinds = joined, {i: [UNNAMED] for i in joined}
        plain = {i: [False] for i in joined}
    called = _called(blocks, parts, kinds, {*names.values()})
    for i, name in blocks.items():
        parts[i], kinds[i] = parts[i][-1:] if name else ["Total"], [called[name]]
        plain[i] = [not name]
    flat = not blocks and all(len(part) < 2 for part in parts.values())
    if flat:
        parts = {i: part or ["Total"] for i, part in parts.items()}
    side_by_side = dict[int, str]()
    if flat:
        labels = {i: part[0] for i, part in parts.items()}
        named = {i: ks[0] if ks else "" for i, ks in kinds.items()}
        side_by_side = margins(CountedColumns.from_sheet(sheet, [*labels]), labels, named, UNNAMED)
    if side_by_side:
        kinds = {i: [side_by_side.get(i, UNNAMED)] for i in parts}
        plain = {i: [i not in side_by_side] for i in parts}
    elif flat:
        options = {heading_kind(p[0], 1) for p in parts.values() if not total_word(p[0])}
        kind = options.pop() if len(options) == 1 else UNNAMED
        kinds, plain = {i: [kind] for i in parts}, {i: [False] for i in parts}
    prefix = _prefix([*heads.values()])
    if prefix and prefix not in names.values() and {*itertools.chain(*kinds.values())} == {UNNAMED}:
        kinds = {i: [prefix] * len(ks) for i, ks in kinds.items()}
    kinds = {i: [free_name(k) for k in ks] for i, ks in kinds.items()}
    kinds = _distinct(kinds, parts, rules)
    rules.kinds |= {k for ks in kinds.values() for k in ks}
    return {
        i: {
            rules.columns.get(k, k): label
            for k, label, total in zip(kinds[i], part, plain[i], strict=True)
            if not total
        }
        for i, part in parts.items()
    }


def _joined(sheet: Sheet, parts: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Join each path of a tree, such as *Beds* of *General: Eyes* and *Mental: Children*, or none.

    Each label stands below one heading alone. Another column counts what all of them do, or there
    is none and groups stand inside others.
    """
    deep = [i for i, part in parts.items() if len(part) > 1]
    alone = [i for i, part in parts.items() if len(part) == 1 and not total_word(part[0])]
    if len({parts[i][-1] for i in deep}) < len(deep) or len(deep) < 2:
        return {}
    if len(deep) == len(parts):
        words = not any(map(total_word, itertools.chain(*parts.values())))
        inside = min(map(len, parts.values())) > _PAIR and words
        return {i: [": ".join(part)] for i, part in parts.items()} if inside else {}
    counts, bits = CountedColumns.from_sheet(sheet, [*parts]), _BITS + 2 * len(alone)
    if not any(counts.add_up(deep, i, bits) for i in alone):
        return {}
    return {i: [": ".join(part)] for i, part in parts.items()}


def _called(
    blocks: Mapping[int, str], parts: Mapping[int, list[str]], kinds: Mapping[int, list[str]],
    used_names: set[str],
) -> dict[str, str]:  # fmt: skip
    """Return the variable below each heading that names one: age, sex, or the heading's name."""
    results = {"": UNNAMED}
    for name in dict.fromkeys(filter(None, blocks.values())):
        options = {kinds[i][-1] for i, block in blocks.items() if block == name and parts[i]}
        words = [k for k in ("age", "sex") if k in options]
        called = words[0] if len(words) == 1 else key(name)
        number, used = 1, used_names | {*results.values()}
        while called in used:
            called, number = f"category {number}", number + 1
        results[name] = called
    return results


def _distinct(
    kinds: Mapping[int, list[str]], parts: Mapping[int, list[str]], rules: ReadingRules
) -> dict[int, list[str]]:
    """Return kinds, renamed if an earlier file uses the name and shares no label."""
    labels: dict[str, dict[str, int]] = {}  # with the total_word of each
    for i, part in parts.items():
        for kind, label in zip(kinds[i], part, strict=True):
            labels.setdefault(kind, {})[key(label)] = total_word(label)
    names: dict[str, str] = {}
    for kind, words in labels.items():
        # A word that may be a total distinguishes variables without other labels.
        texts = {k for k, w in words.items() if not w} or {k for k, w in words.items() if w == 1}
        name, number = kind, 1
        while kind.startswith("category ") and (
            name in names.values() or (texts and rules.labels.get(name, texts).isdisjoint(texts))
        ):
            name, number = f"category {number}", number + 1
        names[kind] = name
        rules.labels.setdefault(name, set()).update(k for k, w in words.items() if w < 2)
    return {i: [names[k] for k in ks] for i, ks in kinds.items()}


def _parts(heads: Mapping[int, str]) -> dict[int, list[str]]:
    """Return headings split at the separator that makes them a tree or a crossing."""
    ends = {head.rpartition("; ")[2] for head in heads.values()}
    if len(ends) == 1 and all("; " in head for head in heads.values()):  # "; measures: Value"
        return _parts({i: head.rpartition("; ")[0] for i, head in heads.items()})
    for mark in (PATH, " | ", ": ", "; ", ";", ", ", " - "):
        separator = _DASH if mark == " - " else re.compile(re.escape(mark))
        parts = {i: [p.strip().rstrip(":") for p in separator.split(head)]
                 for i, head in heads.items()}  # fmt: skip
        while min(map(len, parts.values())) and len({p[0] for p in parts.values()}) == 1:
            parts = {i: p[1:] for i, p in parts.items()}  # "Estimate!!Total"
        while len(last := [p[-1] for p in parts.values() if len(p) > 1]) > 1 == len({*last}):
            short = {i: p[:-1] if len(p) > 1 else p for i, p in parts.items()}
            if len({*map(tuple, short.values())}) < len(parts):
                break
            parts = short  # "Male!!N" beside "Female!!N", and perhaps "All"
        sizes = {len(p) for p in parts.values()}
        if mark == PATH and any(PATH in head for head in heads.values()):
            return parts
        crossed = (
            len(sizes) == 1
            and min(sizes) > 1
            and all(1 < len({p[d] for p in parts.values()}) < len(parts) for d in range(min(sizes)))
        )
        common = all(mark in head for head in heads.values()) and max(sizes) == 1
        if crossed or (common and mark == ": "):
            return parts
        if mark == ": " and (tree := _by_words(heads) or _tree(parts)):
            return tree
    return _by_words(heads) or _with_underscores(heads) or {i: [head] for i, head in heads.items()}


def _without_names(parts: dict[int, list[str]]) -> dict[int, list[str]]:
    """Return paths without a row of headings that only names each column: Column1, Column2.

    The other row has sexes, ages, years and totals. If neither row has any, as with names in two
    languages, the two texts of a column form one label.
    """
    rows = [*zip(*parts.values(), strict=True)] if len({*map(len, parts.values())}) == 1 else []
    if len(rows) != 2 or any(len({*row}) < len(row) for row in rows) or len(rows[0]) < 2:
        return parts
    sizes = [sum(total_word(t) == 2 or heading_kind(t, 0) in _KNOWN for t in row) for row in rows]
    if not any(sizes):
        return {i: [": ".join(part)] for i, part in parts.items()}
    if (len(rows[0]) not in sizes) or min(sizes):
        return parts
    return {i: [part[sizes[1] > 0]] for i, part in parts.items()}


def _without_group(parts: dict[int, list[str]]) -> dict[int, list[str]]:
    """Return paths without a heading that stands only beside totals: *Age* below each sex.

    It has no counts of its own, and names the labels below it.
    """
    for d in range(1, max(map(len, parts.values())) - 1):
        names = {p[d] for p in parts.values() if len(p) > d and total_word(p[d]) < 2}
        named = {i: p for i, p in parts.items() if len(p) > d and p[d] in names}
        if len(names) == 1 and all(len(p) > d + 1 for p in named.values()):
            first = f"{min(names)}: " if SOME.match(min(names)) else ""
            short = {i: [*p[:d], first + p[d + 1], *p[d + 2 :]] for i, p in named.items()}
            return parts | short
    return parts


def _by_words(heads: Mapping[int, str]) -> dict[int, list[str]]:
    """Return headings split into a word for a sex and the rest: *Upper male pupils*.

    Each sex, or all, stands with each other label; a common ending is left out. Separate columns of
    a total have one part.
    """
    totals = {i: [head] for i, head in heads.items() if total_word(head) == 2}
    rest: dict[int, list[str]]
    for rest in ({}, totals) if totals else ({},):
        words = {i: LETTERS.sub(" ", head).split() for i, head in heads.items() if i not in rest}
        while len({*(tuple(w[-1:]) for w in words.values())}) == 1 < min(map(len, words.values())):
            words = {i: w[:-1] for i, w in words.items()}
        places = {i: [k for k, word in enumerate(w) if sex(word)] for i, w in words.items()}
        last = all(place[0] > 0 for place in places.values() if place)
        places |= {i: [k for k in (0, len(words[i]) - 1)[:: -1 if last else 1]
                       if words[i] and total_word(words[i][k])]
                   for i, place in places.items() if not place}  # fmt: skip
        if not words or not all(places.values()):
            continue
        parts = {i: [words[i].pop(place[0]), " ".join(words[i])] for i, place in places.items()}
        meant = {i: sex(word) or "all" for i, (word, _) in parts.items()}
        labels, sexes = {label for _, label in parts.values()}, {*meant.values()}
        crossed = len({(meant[i], p[1]) for i, p in parts.items()}) == len(labels) * len(sexes)
        if crossed and {"male", "female"} <= sexes and len(labels) > 1 and all(labels):
            first = all(place[0] == 0 for place in places.values())
            # *Total for men* is one by its words; *all day* may be a label beside *half day*.
            plain = {text: _FOR.sub("", text).strip() or "total" for text in labels}
            if len(whole := [text for text, name in plain.items() if total_word(name) == 2]) == 1:
                parts = {i: [p[0], "Total" if p[1] in whole else p[1]] for i, p in parts.items()}
            parts |= {i: ["Total", "Total"] if whole else p for i, p in rest.items()}
            if len(labels) * len(sexes) == len(parts) - len(rest):
                return {i: p if first else p[::-1] for i, p in parts.items()}
    return {}


def _with_underscores(heads: Mapping[int, str]) -> dict[int, list[str]]:
    """Return headings split at underscores, as *2020_m_0-9*, if all kinds but one are known.

    Known kinds are sexes, ages and years. A heading without a kind counts all of it. Headings that
    are of one kind as a whole, such as *Y_LT15*, are not split.
    """
    ages = re.compile(r"(?<!\d)(\d{1,2})_(?=\d{1,2}(?!\d))")  # F_00_04
    heads = {i: ages.sub(r"\1-", head) for i, head in heads.items()}
    joined = [head for head in heads.values() if "_" in head and not total_word(head)]
    if all(heading_kind(head, 0) in _KNOWN for head in joined):
        return {}
    parts = {i: head.split("_") for i, head in heads.items()}
    shared = set.intersection(*({*part} for part in parts.values()))
    parts = {i: [p for p in part if p not in shared] for i, part in parts.items()}
    size = max(map(len, parts.values()))
    kinds, full = list[str](), [part for part in parts.values() if len(part) == size]
    if size < 2:
        return {}
    for labels in map(set, zip(*full, strict=True)):
        times = Counter(heading_kind(label, 0) for label in labels)
        kind, number = times.most_common(1)[0]
        kinds.append(kind if 2 * number > len(labels) and kind in _KNOWN else "")
        if not kinds[-1] and any(map(str.isdecimal, labels)):
            return {}
    if kinds.count("") > 1 or len({*kinds}) < len(kinds):
        return {}
    results = dict[int, list[str]]()
    for i, part in parts.items():
        named = {heading_kind(p, 0): p for p in part[:-1]} if len(part) < size else {}
        if not part or not {*named} <= {*kinds[:-1]}:
            return {}
        firsts = (
            [named.get(kind, "Total") for kind in kinds[:-1]] if len(part) < size else part[:-1]
        )
        results[i] = [*firsts, part[-1]]
    return results if len({*map(tuple, results.values())}) == len(results) else {}


def _with_totals(parts: Sequence[str]) -> list[str]:
    """Return a path with the total of its upper heading named "Total": 2015!!2015 Total."""
    totals = []
    for a, b in pairwise(parts):
        texts = key(b).split(key(a)) if key(a) else []
        rest = [word for text in texts if (word := text.strip(" -:,"))]
        totals.append(key(a) in key(b) and bool(rest) and all(total_word(w) == 2 for w in rest))
    return [*parts[:1], *("Total" if t else p for t, p in zip(totals, parts[1:], strict=True))]


def _with_one_word(parts: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Return paths with one word for each sex, and for all, the commonest: boys beside men.

    Two words for one stay if both stand beside the same labels.
    """
    results = {i: list(part) for i, part in parts.items()}
    for d in range(max(map(len, parts.values()), default=0)):
        meant = {i: sex(p[d]) or "total" * (total_word(p[d]) == 2)
                 for i, p in parts.items() if len(p) > max(d, 1)}  # fmt: skip
        meant = {i: word for i, word in meant.items() if word}
        paths = {(word, *parts[i][:d], "", *parts[i][d + 1 :]) for i, word in meant.items()}
        for word in {*meant.values()} if len(paths) == len(meant) else ():
            columns = [i for i in meant if meant[i] == word]
            common = Counter(parts[i][d] for i in columns).most_common(1)[0][0]
            for i in columns:
                results[i][d] = common
    return results


def _with_total_of_groups(
    sheet: Sheet, parts: Mapping[int, list[str]], groups: Collection[str]
) -> dict[int, list[str]]:
    """Return paths in which a lone column is the total of all, if group totals add up to it."""
    totals = [i for i, p in parts.items() if len(p) == 2 and p[0] in groups and p[1] == "Total"]
    alone = [i for i, part in parts.items() if len(part) == 1]
    if not alone or not 1 < len(totals) == len(groups):
        return dict(parts)
    counts, bits = CountedColumns.from_sheet(sheet, [*parts]), _BITS + 2 * len(alone)
    wholes = [i for i in alone if counts.add_up(totals, i, bits)]
    return {**parts, **{i: ["Total", "Total"] for i in wholes}}


def _with_lone_total(sheet: Sheet, parts: dict[int, list[str]]) -> dict[int, list[str]]:
    """Return paths in which the last column, a total below one of several headings, counts all.

    Other headings have no such total. It is nearer to the sum of all headings than to that of its
    own. If neither is clearly nearer, its column is left out.
    """
    last, heads = max(parts), dict.fromkeys("".join(part[:1]) for part in parts.values())
    if not parts[last] or len(heads) < _PAIR or any(map(total_word, heads)):
        return parts
    head, size = parts[last][0], max(len(p) for i, p in parts.items() if i != last)
    groups = {h: [i for i, p in parts.items() if i != last and "".join(p[:1]) == h] for h in heads}
    stated = {g: [i for i in group if len(parts[i]) < _PAIR or total_word(parts[i][1]) == 2]
              for g, group in groups.items()}  # fmt: skip
    one_each = {*map(len, stated.values())} in ({0}, {1}) and groups[head]
    total = len(parts[last]) == _PAIR >= size and total_word(parts[last][1]) == 2
    if not (one_each and total):
        return parts
    counts = CountedColumns.from_sheet(sheet, [*parts])
    sums = {g: sum(np.maximum(counts.column(i), 0) for i in stated[g] or group)
            for g, group in groups.items()}  # fmt: skip
    whole = counts.column(last)
    misses = [int(np.abs(whole - n)[whole >= 0].sum()) for n in (sums[head], sum(sums.values()))]
    if misses[1] * _CLEARLY <= misses[0] > 0:
        return parts | {last: ["Total"] * size}
    if misses[0] * _CLEARLY <= misses[1] > 0:
        return parts
    return {i: part for i, part in parts.items() if i != last}


def _with_whole_groups(
    sheet: Sheet, parts: dict[int, list[str]]
) -> tuple[dict[int, list[str]], dict[int, str]]:
    """Return paths cut to one depth below headings whose columns make a total, and their variable.

    An example is *Rulings!!Total, Rulings!!Merits!!Yes, Rulings!!Merits!!No, Rulings!!Closed*. The
    labels below each such heading form a variable of their own.
    """
    groups, named_kinds = dict[str, list[int]](), dict[int, str]()
    for i, part in parts.items():
        groups.setdefault(part[0] if len(part) > 1 else "", []).append(i)
    counts, depth = None, max(map(len, parts.values()))
    for first, group in groups.items():
        totals = [i for i in group if len(parts[i]) == 2 and total_word(parts[i][1])]
        rest = [i for i in group if i not in totals]
        if not first or len(totals) != 1 or len({len(parts[i]) for i in rest}) < 2:
            continue
        counts = counts or CountedColumns.from_sheet(sheet, [*parts])
        if counts.add_up(rest, totals[0], _BITS + 2 * len(parts)):
            parts |= {i: [first, ": ".join(parts[i][1:])] for i in rest}
            parts[totals[0]], depth = [first, "Total"], depth + 1
            named_kinds |= dict.fromkeys(group, f"category {depth}")
    return parts, named_kinds


def _with_periods(parts: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Return paths with a total over a year that stands below no other heading as one label.

    It counts another period than the headings beside it, and is not their total.
    """
    rests = {tuple(p[1:]) for p in parts.values() if p[1:] and not total_word(p[0])}
    years = any(heading_kind(rest[-1], 1) == "year" for rest in rests)

    def other(p: Sequence[str]) -> bool:
        period = len(p) == 2 and total_word(p[0]) == 2 and heading_kind(p[1], 1) == "year"
        return years and period and (p[1],) not in rests

    return {i: [" ".join(p)] if other(p) else p for i, p in parts.items()}


def _prefix(heads: Sequence[str]) -> str:
    """Return the common beginning of all headings if it names a variable; else empty."""
    for mark in (PATH, ": "):
        parts = [head.split(mark) for head in heads]
        common = [p[0] for p in zip(*(part[:-1] for part in parts), strict=False) if len({*p}) == 1]
        name = key(common[-1]) if common else ""
        plain = total_word(name) or number_range(name) or _COUNTED.fullmatch(name)
        if name and not plain and len(name) <= _LONGEST:
            return name
    return ""


def free_name(name: str) -> str:
    """Return a name that no column of results has."""
    return f"{name} label" if RESERVED.fullmatch(name) else name


def _tree(parts: Mapping[int, list[str]]) -> dict[int, list[str]]:
    """Return headings as paths of a tree, if the parent of each has a column too."""
    short = {i: p[:1] if p and total_word(p[0]) == 2 else p for i, p in parts.items()}
    short = {i: p[:-1] if p[1:] and total_word(p[-1]) == 2 else p for i, p in short.items()}
    paths = [tuple(p) for p in short.values()]
    columns = {*paths}
    whole = all(p[:-1] in columns for p in paths if len(p) > 1)
    deep = max(map(len, paths)) > 1 or (() in columns and len(columns) > 2)
    return short if whole and deep and len(columns) == len(paths) else {}


def heading_kind(label: str, depth: int, name: str = "category") -> str:
    """Return the variable to which a label in a heading belongs."""
    if sex(label):
        return "sex"
    ends = interval(label)
    single = ends is not None and ends[0] == ends[1]  # under 1, or 1 year
    words = any(map(str.isalpha, label)) or (ends == (0, 0) and not label.isdecimal())
    if ends and ends[0] < _OLDEST and (words or not single):
        return "age"
    if _YEAR.fullmatch(label):
        return "year"
    return f"{name} {depth}"


def numbered(heads: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of columns in settings: a heading, and its number among equals: men#2."""
    times = Counter[str]()
    for head in heads:
        times[head] += 1
        yield head, f"{head}#{times[head]}"


def is_group(head: str) -> bool:
    """Return whether a heading is a range of numbers, such as ages 18-64, but not a year."""
    return interval(head) is not None and not head.isdecimal()
