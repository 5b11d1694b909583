"""Rows of a sheet before its columns have roles: rows without counts, blank labels, parts."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, MutableSequence, Sequence
from itertools import pairwise

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.reading.columns.attributes import is_ordinal
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.sheets.grids import FEWER, MOST
from bayesrisk.tables.sheets.records import says_no_count
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    BLANK,
    DECIMAL,
    NEGATIVE,
    PATH,
    POINTS,
    SOME,
    WHOLE,
    interval,
    is_date,
    is_mark,
    is_year,
    key,
    listing,
    number_range,
    says_number,
    sex,
    total_word,
)

_CODED, _CODE_ROWS = 20, 3  # texts for each code below 0, and its rows
_FEW_MEANS = 3  # rows for each with a mean
_FEW = 16  # rows for each with the labels of another
_BITS = 32  # of evidence that sums make up the rows of a label
_MOST_WHOLES = 3  # labels of the largest counts, perhaps totals
_SEVERAL, _FEW_NOTES = 3, 2  # count columns; fewer of them hold a note
#: Units of areas, weights and energy, in brackets.
SIZE = re.compile(
    r".*[(\[] ?(in )?(1[., ]?000 ?)?(ha|he[ck]t[aá]r\w*|acres?|k?m[2²]|qkm|(sq\.?|square) ?\w+|"
    r"tonn?e?[sn]?|tonel\w*|kgs?|(quilo|kilo)gram\w*|lit[er]+s?|[kmg]wh|公頃|㎢) ?[)\]]\W*"
)
#: Money of persons or households, but not groups of people: *low income*.
_INCOME = re.compile(
    r"((hh|households?|persons?|personal|family|gross|net|annual|disposable) )+"
    r"(incomes?|salar(y|ies)|earnings)"
)
_RANK = re.compile(r"rank(ing)? (of|by|in|among)\b.*")
_SIGNS = ("%", "‰")  # labels of rows
_SUM = r"(?:sub)?totals?|totaal|totale|totalt|ergebnis|summ[ea]|insgesamt|zusammen|razem|suma|всего"
#: The total of a label: "North Total", "*Total North".
_NAMED_TOTAL = re.compile(
    rf"\W*(?:(?:{_SUM})(?: of| for|:)? (.+)|(.+?)[ ,:–-]+(?:{_SUM}))", re.IGNORECASE
)
#: Means and medians, such as of ages, in the languages of words for totals.
_MEANS = re.compile(
    r".*(\b(avg|ave\b|(?<!below )(?<!above )average|(jahres|monats)?durchschnitt|mittelwert|"
    r"mittleres alter|"
    r"^media$|\bmedia (de|del|di|della|dei|delle|do|da|dos|das|anual|annua\w*|ponderad\w*)\b|"
    r"\b(edad|et[aà]|renta|estancia|durata|permanenza|superficie|spesa) media\b|"
    r"medi[aá]n|médian|moyenn?e?\b|promedio|média\b|gemiddeld|mediaan|medel(ålder|värde|tal)|genomsnitt|gjennomsnitt|"
    r"gennemsnit|middelalder|keski(arvo|-?ikä|määr)|średni|průměr|priemer|átlag|ortalama|ortanca|medyan|povpreč|prosje|"
    r"μέσ[οη]|διάμεσ|средн|медиан|середн|медіан)|平均|中位|中央値|평균|중위|중앙값).*"
)
#: Labels of rows that name a mean or a share in words: 'per cent of ...'.
_SHARE_OF = re.compile(
    r"(%|percent(age)?s?|per cent|proportion|rates?|ratio|anteil|pourcentage|porcentaje|"
    r"percentuale?|percentagem|taux|tasa|taxa|andel|aandeel|osuus|odsetek) "
    r"(of|per|for|in|am?|an|der|des?|d[ou]|di|af|av|van|z)\b.*|.*\brates? per\b.*"
)
_PER = re.compile(r"\b(per|pro|pour|por|je) (cent\w*|mille?|thousand|million|\d[\d ,.]*)\b")
_NUMBERED_MEAN = re.compile(r"\d+[- ](year|week|month|day)s? (average|mean)")
_CHANGE = re.compile(r".*\b(increase|decrease|change|difference|net|balance)\b.*")
#: Headings of differences: *variazione totale positivi*.
_DIFFERENCE = re.compile(
    r"((daily|weekly|monthly|yearly|annual|absolute|total) )?(change|difference)"
    r"( (in|from|since)\b.*)?|"
    r"(variazion[ei]|variaci[oó]n(es)?|varia[cç](ão|ões|ao)|variations?|différences?|diferencias?|"
    r"differenz(en)?|veränderung(en)?|forandring|förändring|zmian[ay]|muutos|verandering(en)?)\b.*"
)


def says_mean(head: str) -> bool:
    """Return whether a heading names means or medians in some language, or incomes."""
    return any(pattern.fullmatch(head) for pattern in (_MEANS, _INCOME))


def says_change(head: str) -> bool:
    """Return whether a heading names differences between counts."""
    return _DIFFERENCE.fullmatch(head) is not None


def titles_rates(title: str) -> bool:
    """Whether a title names rates, shares, means or differences, which count nobody."""
    return _rates(title) or any(p.search(key(title)) for p in (_SHARE_OF, _PER))


def _rates(text: str) -> bool:
    patterns = (_CHANGE, _DIFFERENCE, _MEANS, SIZE)
    return says_no_count(key(text)) or any(pattern.fullmatch(key(text)) for pattern in patterns)


def codes_below_0(rows: Mapping[str, int]) -> list[str]:
    """Return the negative numbers of a column if they are codes: few, each in several rows.

    ``rows`` maps each text to its number of rows.
    """
    codes = [t for t in rows if NEGATIVE.fullmatch(t)]
    few = _CODED * len(codes) < len(rows) and all(rows[t] >= _CODE_ROWS for t in codes)
    return codes if few else []


def without_notes(sheet: Sheet) -> Sheet:
    """Return a sheet without rows of notes: rows without numbers, with a text in a count column.

    The text stands in only one of several count columns. A mark may stand in others too.
    """
    if len(sheet.heads) <= _SEVERAL:
        return sheet
    every = [*zip(*(row for _, row in sheet.rows), strict=True)]
    columns = [set(c) - {"", "NA"} for c in every]
    counted = [
        j for j, c in enumerate(columns)
        if 2 * sum(map(says_number, c)) >= len(c) > 0
        and not is_ordinal(every[j], [False] * len(sheet.rows), named=True)
    ]  # fmt: skip
    times = Counter(itertools.chain.from_iterable(columns[j] for j in counted))
    texts = {t for t, n in times.items() if n == 1 and not (says_number(t) or is_mark(t))}
    if len(counted) < _SEVERAL or not texts:
        return sheet
    left, rows = list[tuple[int, str, str]](), list[tuple[int, list[str]]]()
    silent = {"", "NA", *texts}
    for quiet, group in itertools.groupby(
        sheet.rows,
        lambda line: (
            all(line[1][j] in silent for j in counted)
            and sum(line[1][j] in texts for j in counted) < _FEW_NOTES
        ),
    ):
        lines = [*group]
        if quiet and any(row[j] in texts for _, row in lines for j in counted):
            left += [(i, max(row, key=len), "a row without counts") for i, row in lines]
        else:
            rows += lines
    return sheet._replace(rows=rows, left=[*sheet.left, *left]) if rows and left else sheet


def counting_rows(sheet: Sheet) -> Sheet:
    """Return a sheet without rows of percentages, rates and other numbers that count nobody.

    The label of such a row names them, and some of its rows have decimals in a column of whole
    numbers. Or all rows of a label have decimals, while others have none. If such rows exist,
    further labels that name rates need no decimals.
    """
    texts = {*itertools.chain.from_iterable(row for _, row in sheet.rows)}
    columns = zip(*(row for _, row in sheet.rows), strict=True)
    codes = {*itertools.chain.from_iterable(codes_below_0(Counter(c)) for c in columns)}
    changed = {t for t in texts if DECIMAL.fullmatch(t) or NEGATIVE.fullmatch(t)} - codes
    says_so = {
        t for t in texts
        if (any(map(str.isalpha, t)) and not t[0].isdigit() and _rates(t)) or t in _SIGNS
    }  # fmt: skip
    plain_rows = [row for _, row in sheet.rows if says_so.isdisjoint(row)] if changed else []
    whole = [
        j for j, column in enumerate(zip(*plain_rows, strict=True))
        if 2 * sum(t in changed for t in column) <= sum(map(says_number, column))
        and not _rates(sheet.heads[j])
    ]  # fmt: skip
    changed_rows = [row for _, row in sheet.rows if any(row[j] in changed for j in whole)]
    labels = says_so.intersection(*[itertools.chain.from_iterable(changed_rows)])
    labels |= {t for t in texts if _RANK.fullmatch(key(t))} | _whole_means(sheet)
    rest = [row for _, row in sheet.rows if labels.isdisjoint(row)]
    decimals = {t for t in changed if not POINTS.fullmatch(t)}
    counted = [j for j, head in enumerate(sheet.heads) if not _rates(head)]
    column, rates = _labels_of_decimals(rest, decimals, counted, certain=bool(labels))
    labels |= says_so if rates else set()
    left, rows = list[tuple[int, str, str]](), list[tuple[int, list[str]]]()
    for i, row in sheet.rows:
        if row[column] in rates or not labels.isdisjoint(row):
            left.append((i, f"{', '.join(row)[:40]}…", "no count"))
        else:
            rows.append((i, row))
    return sheet._replace(rows=rows, left=[*sheet.left, *left]) if rows and left else sheet


def without_spanning_rows(sheet: Sheet) -> Sheet:
    """Return a sheet without rows that state one count for all columns of each group of headings.

    Such a row has counts in the first columns of the groups alone. One of these rows shows it: its
    counts are the sums over each group of another row.
    """
    groups = dict[str, list[int]]()
    for j, head in enumerate(sheet.heads):
        if PATH in head:
            groups.setdefault(head.rpartition(PATH)[0], []).append(j)
    several = [places for places in groups.values() if len(places) > 1]
    firsts = [places[0] for places in several]
    rest = [j for places in several for j in places[1:]]
    spanning = [
        (i, row) for i, row in sheet.rows
        if len(several) > 1 and all(map(WHOLE.fullmatch, (row[j] for j in firsts)))
        and not any(row[j] for j in rest)
    ]  # fmt: skip
    sums = {
        tuple(sum(_number(row[j]) for j in places) for places in several)
        for _, row in sheet.rows
        if spanning and all(map(WHOLE.fullmatch, (row[j] for j in [*firsts, *rest])))
    }
    if sums.isdisjoint(tuple(_number(row[j]) for j in firsts) for _, row in spanning):
        return sheet
    lines = {i for i, _ in spanning}
    left = [(i, f"{', '.join(row)[:40]}…", "one number for several columns") for i, row in spanning]
    rows = [(i, row) for i, row in sheet.rows if i not in lines]
    return sheet._replace(rows=rows, left=[*sheet.left, *left])


def _number(text: str) -> int:
    """Return a whole number, which may have separators of thousands."""
    return int(re.sub(r"\D", "", text))


def _whole_means(sheet: Sheet) -> set[str]:
    """Return labels that name a mean or a share in several words, beside whole numbers.

    Labels whose numbers are needed for a total of other labels are left out.
    """
    columns = [*zip(*(row for _, row in sheet.rows), strict=True)]
    numeric = [2 * sum(map(says_number, c)) >= len(c) - c.count("") > 0 for c in columns]
    words = [*itertools.takewhile(lambda j: not numeric[j], range(len(columns)))]
    labels = set[str]()
    for j in words:
        called = {t for t in {*columns[j]} if _says_mean_or_share(key(t.rpartition(PATH)[2]))}
        if not called:
            continue
        rest = [columns[i] for i in words if i != j]
        groups: dict[tuple[str, ...], list[int]] = {}
        for p, texts in enumerate(zip(*rest, strict=True) if rest else [()] * len(sheet.rows)):
            groups.setdefault(texts, []).append(p)
        for text in called:
            places = [(p, g) for g in groups.values() for p in g if columns[j][p] == text]
            needed = [
                _is_needed(c[p], [c[k] for k in group])
                for c in itertools.compress(columns, numeric) for p, group in places
            ]  # fmt: skip
            labels |= {text} if 2 * sum(needed) <= len(needed) else set()
    return labels


def _says_mean_or_share(label: str) -> bool:
    words = len(label.split())
    mean = _MEANS.fullmatch(label) and words > 2
    return bool(mean or _SHARE_OF.fullmatch(label) or _NUMBERED_MEAN.fullmatch(label))


def _is_needed(text: str, texts: Sequence[str]) -> bool:
    """Return whether a number is part of a sum that equals the largest one, or a multiple."""
    every = [ends[0] for t in texts if WHOLE.fullmatch(t) and (ends := number_range(t))]
    ends = number_range(text) if WHOLE.fullmatch(text) else None
    most = max(every, default=0)
    if ends is None or not 0 < ends[0] < most:
        return False
    return sum(every) % most == 0


def _labels_of_decimals(
    rows: Sequence[Sequence[str]], decimals: set[str], counted: Collection[int], *, certain: bool
) -> tuple[int, set[str]]:
    """Return a column, and those of its labels whose numbers have decimals, while no others do.

    The numbers stand in ``counted`` columns, which are not all rates. The label column has the
    fewest other numbers there, then the fewest labels. Labels of few rows have letters. Unless
    rates are ``certain``, such labels are few, and no column has mostly decimals. Otherwise labels
    repeat.
    """
    columns = [*zip(*rows, strict=True)]
    mixed = [
        k for k, column in enumerate(columns)
        if k in counted
        and 0 < 3 * sum(t in decimals for t in column) <= 2 * sum(map(says_number, column))
    ]  # fmt: skip
    everywhere = any(
        k in counted and 3 * sum(t in decimals for t in column) > 2 * sum(map(says_number, column))
        for k, column in enumerate(columns) if any(map(says_number, column))
    )  # fmt: skip
    row_sizes = [
        (1, sum(says_number(row[k]) for k in mixed), sum(row[k] in decimals for k in mixed))
        for row in rows if mixed
    ]  # fmt: skip
    ways = list[tuple[int, int, int, set[str]]]()
    for j, column in enumerate(columns) if mixed else ():
        sizes: dict[str, list[int]] = {}
        for text, size_of_row in zip(column, row_sizes, strict=True):
            one = sizes.setdefault(text, [0, 0, 0])
            for k, n in enumerate(size_of_row):
                one[k] += n
        rates = {t for t, (_, size, number) in sizes.items() if t and 2 * number >= size > 0}
        rates -= {t for t in rates if says_number(t) and not WHOLE.fullmatch(t)}  # counts: <5
        lines, size, number = (sum(sizes[t][k] for t in rates) for k in range(3))
        rest = [one for t, one in sizes.items() if t not in rates]
        clear = rest and all(10 * n < numbers for _, numbers, n in rest if n)
        few = _FEW_MEANS * lines <= len(rows) and number > 1 - certain
        few = few and all(any(map(str.isalpha, t)) for t in rates)
        few = few and (certain or (len(rates) <= _FEW_MEANS and not everywhere))
        repeated = 2 * len(sizes) <= len(rows) and number > _FEW_MEANS
        if j not in mixed and rates and clear and (few or repeated):
            ways.append((size - number, len(sizes), j, rates))
    return min(ways, default=(0, 0, 0, set[str]()))[2:]


def without_false_parts(sheet: Sheet) -> Sheet:
    """Return a sheet without parts that count more than twice their whole.

    Examples are age bands indented below a single age. If only one label has parts, these are added
    up: states after the last region.
    """
    for j, column in enumerate(list(zip(*(row for _, row in sheet.rows), strict=True))):
        place = {text: k for k, text in enumerate(column)}
        rows, below = sheet.rows, dict[int, list[list[str]]]()
        for text, k in place.items():
            if PATH in text and (above := text.rpartition(PATH)[0]) in place:
                below.setdefault(place[above], []).append(rows[k][1])
        short = [text.rpartition(PATH)[2] for text in column]
        if len({*short}) == len(rows) and any(
            _exceed(group, rows[k][1])
            for k, parts in below.items()
            for group in ([parts] if len(below) == 1 else [[part] for part in parts])
        ):
            plain = [(i, [*row[:j], text, *row[j + 1 :]])
                     for (i, row), text in zip(rows, short, strict=True)]  # fmt: skip
            sheet = sheet._replace(rows=plain)
    return sheet


def _exceed(rows: Sequence[Sequence[str]], other: Sequence[str]) -> bool:
    """Return whether all sums of rows' whole numbers are more than twice those of another row."""
    every = [
        (number_range(b), [number_range(a) for a in texts if WHOLE.fullmatch(a)])
        for *texts, b in zip(*rows, other, strict=True) if WHOLE.fullmatch(b)
    ]  # fmt: skip
    sums = [(b[0], sum(a[0] for a in parts if a)) for b, parts in every if b and parts]
    return bool(sums) and all(least > 2 * b for b, least in sums)


def with_words_of_codes(sheet: Sheet) -> Sheet:
    """Return a sheet in which *Total* in place of a code is moved to the label column.

    All other rows have distinct codes of equal length, each with a label beside it.
    """
    columns = [*zip(*(row for _, row in sheet.rows), strict=True)]
    for i, j in pairwise(range(len(columns))):
        words = [k for k, text in enumerate(columns[j]) if not text]
        codes = {text for text, label in zip(columns[i], columns[j], strict=True) if label}
        if not words or len(codes) + len(words) < max(len(columns[i]), _FEW):
            continue
        called = all(any(map(str.isalpha, columns[i][k])) for k in words)
        if called and all(map(str.isdecimal, codes)) and len({*map(len, codes)}) == 1:
            rows = [(n, row if row[j] else [*row[:i], "", row[i], *row[j + 1 :]])
                    for n, row in sheet.rows]  # fmt: skip
            sheet = sheet._replace(rows=rows)
    return sheet


def with_label_of_all(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet in which a label that repeats in several columns of its rows is a total.

    An example is the rows *Norway, Norway*, below counties and towns. Rows of other labels add up
    to them in each group of the labels beside them. Totals among these may have other names.
    """
    rows = [row for _, row in sheet.rows]
    whole = [sum(WHOLE.fullmatch(t) is not None for t in c) for c in zip(*rows, strict=True)]
    words = [j for j, size in enumerate(whole) if 2 * size < len(rows)]  # ages are ranges
    counts = [j for j in range(len(whole)) if j not in words]
    places = dict[str, list[list[int]]]()  # by label: the columns in which a row has it
    largest = dict[str, int]()
    for row in rows:
        labels = [row[j] for j in words if row[j]]
        repeated = {label for label in labels if labels.count(label) > 1}
        high = (
            max([e[1] for j in counts if (e := number_range(row[j]))], default=0) if repeated else 0
        )
        for label in repeated:
            places.setdefault(label, []).append([j for j, t in enumerate(row) if t == label])
            largest[label] = max(high, largest.get(label, 0))
    for label in sorted(places, key=lambda x: -largest[x])[:_MOST_WHOLES]:
        axes = places[label]
        number = sum(any(row[j] == label for j in words) for row in rows)
        several = number == len(axes) and all(one == axes[0] for one in axes)
        if not several or 2 * number > len(rows) or total_word(label) == 2:
            continue
        rest = [j for j in words if j not in axes[0]]
        groups: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
        for k, row in enumerate(rows):
            named = tuple("" if total_word(row[j]) else key(row[j]) for j in rest)
            groups.setdefault(named, ([], []))[row[axes[0][0]] != label].append(k)
        tops = [(inside[0], rest_rows) for inside, rest_rows in groups.values() if len(inside) == 1]
        if len(tops) < len(groups) or not any(
            _make_up([(rows[k][j], [rows[i][j] for i in rest_rows]) for k, rest_rows in tops])
            for j in counts
        ):
            continue
        new = dict[int, list[str]]()
        for k, rest_rows in tops:
            names = {j: rows[rest_rows[0]][j] for j in rest if total_word(rows[k][j])}
            names |= dict.fromkeys(axes[0], "Total")
            new[k] = [names.get(j, text) for j, text in enumerate(rows[k])]
        rules.lines.append(f"  {label!r} counts all: the rows of other labels make up its rows")
        lines = [(i, new.get(k, row)) for k, (i, row) in enumerate(sheet.rows)]
        return sheet._replace(rows=lines)
    return sheet


def _make_up(sums: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Return whether each count is the sum of others, with enough bits against chance."""
    bits = 0.0
    for texts in ([whole, *parts] for whole, parts in sums):
        ends = [number_range(t) for t in texts if WHOLE.fullmatch(t)]
        total, *parts = [end[0] for end in ends if end] or [0]
        if len(parts) + 1 < len(texts) or len(parts) < 1 or total != sum(parts):
            return False
        bits += math.log2(total + 1)
    return bits >= _BITS


def with_named_totals(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet in which the total of a label, *North Total*, is a total beside that label.

    Blank labels after it are also totals, as in subtotals of a spreadsheet.
    """
    columns = list(zip(*(row for _, row in sheet.rows), strict=True))
    labels = {
        j: {text: key(match[1] or match[2]) for text in {*column}
            if (match := _NAMED_TOTAL.fullmatch(text))}
        for j, column in enumerate(columns)
        if 2 * sum(map(says_number, column)) < len(column) or not any(map(WHOLE.fullmatch, column))
    }  # fmt: skip
    words = [j for j in labels if any(columns[j])]
    if not any(labels.values()):
        return sheet
    spelled = {j: {key(text): text for text in columns[j][::-1]} for j in words}
    above = {j: filled(columns[j]) for j in words}
    rows, named = [[*row] for _, row in sheet.rows], dict[str, str]()
    for position, row in enumerate(rows):
        place = next((k for k, j in enumerate(words) if row[j]), len(words))
        for k, j in enumerate(words[place:], place):
            label, rest = labels[j].get(row[j], ""), words[k + 1 :]
            owners = [above[i][position] for i in words[:k] if key(above[i][position]) == label]
            labelled = [spelled[j][label]] if rest and label in spelled[j] else []
            if label and (owners or labelled) and not any(row[i] for i in rest):
                named[row[j]] = (owners or labelled)[0]
                row[j] = "Total" if owners else labelled[0]
                for i in rest:
                    row[i] = "Total"
    for row in rows:
        first, *rest = [j for j in words if row[j]] or [-1]
        if named and not rest and total_word(row[first]) == 2:
            for i in words[words.index(first) + 1 :]:
                row[i] = "Total"
    different = {*zip(*(filled([row[j] for row in rows]) for j in words), strict=True)}
    if not named or len(different) < len(rows):
        return sheet
    total, label = next(iter(named.items()))
    rules.lines.append(f"  rows such as {total!r} count all of {label!r}")
    rules.summed = True
    numbers = [number for number, _ in sheet.rows]
    return sheet._replace(rows=list(zip(numbers, rows, strict=True)))


def with_blocks(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet in which a label inside or at the end of a block of rows applies to all.

    All blocks have the same size, the label in the same row, and the same texts in another column.
    Numbers are labels if they are years, or have equal steps.
    """
    columns = list(zip(*(row for _, row in sheet.rows), strict=True))
    if rules.all.get("blank", "block") != "block" or blanks_end(columns):
        return sheet
    full, filled_columns = [c for c in columns if all(c)], dict[int, list[str]]()
    for j, column in enumerate(columns):
        labels = [*filter(None, column)]
        size = len(column) // max(len(labels), 1)
        if len(labels) < 2 or size < 2 or column[0]:
            continue
        whole = all(re.fullmatch(r"-?\d{1,15}", t) for t in labels) and not all(
            map(is_year, labels)
        )
        if whole and len({int(b) - int(a) for a, b in pairwise(labels)}) > 1:
            continue  # numbers that stand in one row of each block
        cycles = any(len({*c[:size]}) == size and [*c] == [*c[:size]] * len(labels) for c in full)
        if cycles and labels in ([*column[k::size]] for k in range(1, size)):
            filled_columns[j] = [text for text in labels for _ in range(size)]
    if not filled_columns:
        return sheet
    title = next(filter(None, columns[min(filled_columns)]))
    text = f"blank labels are of the block of rows they stand in, such as that of {title!r}"
    if rules.ask("blank", "block", text) != "block":
        return sheet
    rows = [
        (i, [filled_columns[j][k] if j in filled_columns else t for j, t in enumerate(row)])
        for k, (i, row) in enumerate(sheet.rows)
    ]
    return sheet._replace(rows=rows)


def with_repeated(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet with blank labels filled from above, if a setting or the rows show it."""
    columns = [list(c) for c in zip(*(row for _, row in sheet.rows), strict=True)]
    if rules.all.get("blank", "above") == "above" and blanks_repeat(columns):
        rules.ask("blank", "above", "blank labels are those above them: rows would be equal else")
    if rules.all.get("blank") != "above":
        return sheet
    first = _blank_columns(columns)
    words = [
        2 * sum(map(says_number, c)) < len(c) and not all(map(is_mark, filter(None, c)))
        for c in columns
    ]  # fmt: skip
    words[:first] = [True] * first
    counted = [row for _, row in sheet.rows]
    labels = (_filled_labels(c, counted) if w else c for c, w in zip(columns, words, strict=True))
    rows, numbers = zip(*labels, strict=True), [number for number, _ in sheet.rows]
    return sheet._replace(rows=[(i, [*row]) for i, row in zip(numbers, rows, strict=True)])


def _filled_labels(column: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return labels with blanks filled from above, except below a mean if rows have no decimals."""
    texts, decimals = filled(column), [any(map(DECIMAL.fullmatch, row)) for row in rows]
    first = [k for k, text in enumerate(column) if text]
    for k, end in pairwise([*first, len(column)]):
        if _rates(column[k]) and decimals[k] and not any(decimals[k + 1 : end]):
            texts[k + 1 : end] = [BLANK] * (end - k - 1)
    return texts


def blanks_repeat(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether blanks begin rows, and only the labels above them distinguish rows.

    Labels may be numbers, such as ages, if each block of rows has the same ones.
    """
    if (first := _blank_columns(columns)) and first + 1 < len(columns):
        blocks = list[list[str]]()
        for above, text in zip(columns[first - 1], columns[first], strict=True):
            if above:
                blocks.append([])
            blocks[-1].append(text)
        longest = {*max(blocks, key=len)}
        equal = [len({*block}) == len(block) and {*block} <= longest for block in blocks]
        if all(equal) and sum(len(block) > 1 for block in blocks) > 1:
            return True
    words = [2 * sum(map(says_number, c)) < len(c) or not any(map(WHOLE.fullmatch, c))
             for c in columns]  # fmt: skip
    labels = [c for c, word in zip(columns, words, strict=True) if word and c and c[0]]
    rows = list(zip(*labels, strict=True))
    empty = [[not text for text in row] for row in rows]
    if not any(map(any, empty)) or any(sorted(e, reverse=True) != e or all(e) for e in empty):
        return False
    repeated = {*zip(*map(filled, labels), strict=True)}
    return len({*rows}) < len(repeated) == len(rows)


def _blank_columns(columns: Sequence[Sequence[str]]) -> int:
    """Return the number of leading columns that have a first label and blanks below."""
    filled_columns = (j for j, c in enumerate(columns) if not c or not c[0] or all(c))
    return next(filled_columns, len(columns))


def blanks_end(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether blanks precede the totals of their groups, which distinguish rows."""
    labels = [c for c in columns if 2 * sum(map(says_number, c)) < len(c)]
    groups = [c for c in labels if c and not c[0] and c[-1]]
    ends = [below for c in groups for text, below in pairwise(c) if not text and below]
    if not ends or any(not total_word(text) or total_word(text) == 2 for text in ends):
        return False
    years = [c for c in columns if all(map(is_date, c))]
    rows = {*zip(*labels, *years, strict=True)}
    called = [filled(c[::-1])[::-1] if c in groups else c for c in labels]
    repeated = {*zip(*called, *years, strict=True)}
    return len(rows) < len(repeated) == len(columns[0])


def filled(column: Sequence[str]) -> list[str]:
    """Return the texts of a column with blanks filled from above."""
    texts, above = list[str](), ""
    for text in column:
        above = text or above
        texts.append(above)
    return texts


def name_blanks(
    columns: Sequence[MutableSequence[str]], names: Iterable[int], sheet: Sheet, choice: str
) -> None:
    """Label blanks as a total if a total stands beside each of them, else with their own label.

    If all labels are blank, a word that may mean a total suffices. The sums of labels later decide
    whether it counts all.
    """
    rows, named = [row for _, row in sheet.rows], [columns[i] for i in names]
    least = [1 if not any(texts) else 2 for texts in zip(*named, strict=True)]
    for column in named:
        blank = [p for p, text in enumerate(column) if not text]
        totals = all(
            any(total_word(t) >= (least[p] if "total" in key(t) else 2) for t in rows[p])
            for p in blank
        )
        for p in blank:
            column[p] = "Total" if totals or choice == "total" else BLANK


def with_parts(sheet: Sheet, rules: ReadingRules) -> Sheet:
    """Return a sheet in which parts ("of which: lung") are paths below their wholes."""
    rows = [row for _, row in sheet.rows]
    for j in range(len(sheet.heads)):
        texts, name = [row[j] for row in rows], sheet.heads[j]
        settled = f"totals.{name}" in rules.choices or "note" in key(name)
        settled = settled or any(".counts" not in k for k in rules.section(f"labels.{name}"))
        called = not settled and any(map(SOME.match, texts))
        if called and (paths := part_paths(texts, rows, rules)):
            rows = [[*row[:j], paths.get(i, row[j]), *row[j + 1 :]] for i, row in enumerate(rows)]
    numbers = [number for number, _ in sheet.rows]
    return sheet._replace(rows=list(zip(numbers, rows, strict=True)))


def part_paths(
    texts: Sequence[str], numbers: Sequence[Sequence[str]], rules: ReadingRules
) -> dict[int, str]:
    """Return paths of texts such as "of which: lung", below the last other text before them.

    Empty if they cannot be its parts, since a number beside one is larger, or texts are in
    alphabetical order. ``numbers`` has the texts beside each one.
    """
    paths, above, before = dict[int, str](), "", list[str]()
    for position, text in enumerate(texts):
        if not text or not SOME.match(text):
            above, before = (text, list(numbers[position])) if text else (above, before)
        elif above and not (interval(above) and interval(text)):  # ages within others
            paths[position] = f"{above}{PATH}{text}"
            ends = [
                (number_range(a), number_range(b))
                for a, b in zip(numbers[position], before, strict=True)
            ]
            if any(a and b and a[0] > b[1] for a, b in ends):
                return {}
    spelled = list(dict.fromkeys(map(str.casefold, texts)))
    several = len({*spelled} - {texts[position].casefold() for position in paths}) > 1
    if not paths or (several and spelled == sorted(spelled)):
        return {}
    chains = [path.split(PATH)[::-1] for path in dict.fromkeys(paths.values())]
    pairs = [" of ".join(map(repr, chain)) for chain in chains]
    text = f"each is a part of what stands before it: {listing(pairs, 60)}"
    return paths if rules.ask("parts", "above", text) == "above" else {}


#: A word that negates the next words: Non-members beside members.
_NOT = re.compile(r"(?:non|not|no|nicht|niet|ikke|icke|inte|não|nie)[\W_]*(.+)")


def exclusive(parts: Sequence[str]) -> bool:
    """Return whether parts exclude each other: sexes, ages, or a word and its negation."""
    ends = sorted(end for part in parts if (end := interval(part)) and end[0] < end[1])
    disjoint = len(ends) == len(parts) and all(a[1] < b[0] for a, b in pairwise(ends))
    sexes = {sex(SOME.sub("", part).strip(" :,")) for part in parts}
    words = [key(part) for part in parts]
    denied = [match[1] for word in words if (match := _NOT.fullmatch(word))]
    denies = len(words) == 2 and len({*words, *denied}) == 2 and bool(denied)
    return disjoint or denies or len(sexes - {None}) == len(parts)


def tell_apart(
    columns: Sequence[MutableSequence[str]], sheet: Sheet, names: Iterable[int],
    counts: Iterable[int], rules: ReadingRules,
) -> None:  # fmt: skip
    """Distinguish rows with equal labels by row numbers; refuse many with different counts."""
    labels = [columns[i] for i in names]
    every = list(zip(*labels, strict=True)) or [()] * len(sheet.rows)
    places: dict[tuple[str, ...], list[int]] = {}
    for position, texts in enumerate(every):
        places.setdefault(texts, []).append(position)
    twice = {texts: several for texts, several in places.items() if len(several) > 1}
    counted = [[row[i] for i in counts] for _, row in sheet.rows]
    unequal = [(a, b) for a, *rest in twice.values() for b in rest if counted[a] != counted[b]]
    more = sum(map(len, twice.values()))
    few = bool(labels) and _FEW * (more - len(twice)) < len(every)
    if not twice or not (unequal or few):
        return
    first, second = next(iter(unequal or (several[:2] for several in twice.values())))
    a, b = sheet.rows[first][0], sheet.rows[second][0]
    called = quote(", ".join(every[first])) if labels else "rows without labels"
    blank = any(BLANK in row for row in every) and "blank" not in rules.choices
    choice = rules.choices.get("rows", "separate" if 2 * more <= len(every) else "")
    if not labels or not choice:
        raise DataError(
            f"{sheet.name}: rows {a} and {b}: must have different labels where their counts "
            f"differ, got {called} twice: columns.HEADING=NAME names the column that tells them "
            f"apart{'; rows=separate takes each by itself' * bool(labels)}"
            f"{'; blank=above fills in the labels that stand once for several rows' * blank}"
        )
    text = f"{called} stands in rows {a} and {b}"
    if len(twice) > 1:
        text = f"{len(twice)} labels stand in several rows, {called} in rows {a} and {b}"
    if few:
        rules.lines.append(f"  {text}: each by itself, with its row")
    else:
        rules.ask("rows", "separate", f"{text}: each row of them is by itself")
    column = max(labels[::-1], key=lambda column: len({*column}))
    for p in itertools.chain(*twice.values()):
        column[p] += f" (row {sheet.rows[p][0]})"


def refuse_same(
    sheet: Sheet, heads: Sequence[str], counts: Mapping[int, Mapping[str, str]],
    ignored: Sequence[int], rules: ReadingRules,
) -> None:  # fmt: skip
    """Refuse two columns that count the same records, and more counts than can be read."""
    if len(sheet.rows) * len(counts) > MOST:
        size = len(sheet.rows) * len(counts)
        raise DataError(f"{sheet.name}: must hold {FEWER}, got {size}")
    first: dict[object, int] = {}
    for i, head in enumerate(heads):
        if i in ignored:
            continue
        labels = frozenset((n, key(x)) for n, x in counts[i].items()) if i in counts else None
        if labels is None and not (head and head in {heads[j] for j in counts}):
            continue
        before = first.setdefault(labels if labels is not None else head, i)
        other = first.setdefault(head, i)
        other = before if labels else other  # labels distinguish equal headings
        if min(before, other) != i:
            before = min(before, other)
            twice, number = quote([sheet.heads[before], sheet.heads[i]]), heads[: i + 1].count(head)
            raise DataError(
                f"{sheet.name}: columns {before + 1} and {i + 1} must count different records, "
                f"got the headings {twice}: columns.{sheet.heads[i]}#{number}=ignored leaves that "
                "one out; 'sex=Men', say, for #1 and #2 tells both apart"
            )
