"""Numbers that are no counts: codes, periods, and numbers fixed by the labels of their rows."""

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

import numpy as np
import pandas as pd

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.tables.sheets.records import says_records
from bayesrisk.tables.sheets.texts import (
    NUMBER,
    PATH,
    POINTS,
    WHOLE,
    is_mark,
    is_year,
    key,
    noted,
    number_range,
    total_word,
)

#: Words for all people of a place, in other languages than English.
_POPULATION = (
    rf"(({NUMBER})( d[aei'’])? ?)?("
    r"(ein|be)wohner(zahl)?|(gesamt|wohn)?bevölkerung(szahl)?|befolkning(s(tal|mængde|mengde))?|"
    r"folkmängd|folketal|invånare|(ind|inn)byggere?|mannfjöldi|inwoners?(tal)?|bevolking(saantal)?|"
    r"població|población( total)?|habitantes|população( residente)?|popolazione( residente)?|"
    r"abitanti|population( totale| municipale)|habitants|väestö|väkiluku|asukasluku|"
    r"ludno[śs][ćc]i?|mieszkańc\w+|obyvatel\w*|népesség|lakosság|nüfus|населени[ея]|人口|인구)"
)
_OTHERS = re.compile(
    r"pop( (cnt|count|size|est\w*|\d{2,4}))?|"
    r"([\w\-]+ )*population( (size|estimates?|at risk|served|base|denominator|\(?[\d-]{4,}\)?))*|"
    rf"{_POPULATION}( \W?[\d.-]{{4,}}\W?)?|"
    r"(\w*fläche|superficie|oppervlakte|land\w*areal|areal|powierzchnia|rozloha|pinta-ala|面積|면적)"
    r"( (in )?\W*(km|qkm|ha|hektar|hect\w*)\b.*)?|"
    r"((land|water|total|surface) )?area( (in )?\W*(km.?|sq|square|ha|hectares|miles|acres)\b.*)?|"
    r".*\b(persons? at risk|density|dens|depth|elevation|altitude|lat(itude)?|lon(gitude)?|"
    r"(?<!components of )(?<!components of population )change|delta|difference|"
    r"\w*dichte|densit[éàe]|densidade?|dichtheid|tæthed|täthet|tetthet|gęsto[śs][ćc]|hustota|"
    r"tiheys|yoğunluk|kepadatan|\w*密度|\w*밀도|moe|margin of error|standard error|ci|"
    r"(lower|upper)( \S+)* (bounds?|limits?|ci|cl|\d+ ?%.*))\b.*|lower|upper|days|hours|minutes|"
    r"((occupied|private|number|no|of) )*households?( (count|number|total))?"
)
#: Headings of ages, years and groups of them.
GROUP = re.compile(
    r"([a-z]+ )?(age|band|age group|age range|year)s?( (group|grp|band|range))?|"
    r"(età|eta|edad|idade|alter|âge|leeftijd|alder|ålder|ikä|wiek|věk)( .*)?"
)
#: Money, beside counts.
_MONEY = re.compile(
    r"(?!.*\b(persons?|people|numbers?|no|workers|employees|households|with)\b)"
    r"(agi|total income|(total )?values? of \w.*|(.*\b)?(gdp|gross (domestic|national) product|"
    r"gayri safi (yurti[cç]i|milli) has[ıi]la|bruttoinlandsprodukt|produit int[eé]rieur brut|"
    r"produ[ck]?to (interior|interno) bruto|prodotto interno lordo|국내총생산|国内総生産)\b.*|"
    r"(.* )?(wages?|salaries|payrolls?|revenues?|turnover|expenditures?|spending|earnings|"
    r"adjusted gross income|(aggregate|gross|net|taxable|disposable|annual|weekly|monthly|wkly) "
    r"([\w ]+ )?(income|pay)|(tax|qtrly|quarterly|employer|insurance|pension) contributions?|"
    r"((average|mean|median|unit|sales?|net|gross|total|list) )*"
    r"(prices?|fees?|costs?|fares?|premiums)|"
    r"\w*preise?|prix|precios?|preços?|prezz[oi]|prij(s|zen)|cen[ay]|harga|価格|가격|"
    r"[\w ]*\w amount))( [(\[]?(in )?([\w,']+ )?(dollars|euros?|pounds|usd|eur|gbp|[£$€].*)[)\]]?)?"
    r"|"
    r".*[(\[][^)\]]*(\b(dollars?|euros?|pounds|usd|eur|gbp|reais|pesos|rupees|francs?|yen|kronor|"
    r"kroner|kr|sek|nok|dkk|chf|zł|tl)\b|[£$€¥])[^)\]]*[)\]]"
)
#: Bits of evidence against counts: these are equal by chance in one case of 1,000.
_SAME = 10
_MANY_FACTS = 20  # distinct numbers of places and years
_MANY, _MORE = 20, 60  # rows whose counts are not all near 2,000: few distinct ones, or any
_FEW = 16  # rows that repeat their label's number for each that differs
_BITS_OF_STEPS = 20  # of evidence for a running sum
_NEAR = 8  # columns from a running sum to its summands
_LENGTHS = 5  # of codes at most, one for each level
_LONG_RUN = 3  # rows of each code that stands in one block
_HUNDRED, _SHARES, _OFF = 100, 6, 2  # the sum of shares, the least groups, the largest error
_EXACT = 1e-9  # of the largest number of a row
_GROUPS, _TOLD, _LARGE = 3, 8, 1000  # repeated lists, their joint length, largest number
_LAST_YEAR = 2035  # of years in unequal steps
_LISTED = 100  # the least first number of a list of codes
_FEW_ROWS = 3  # whose counts may be 1, 2 and 3 by chance
_DOTTED, _NO_THOUSANDS = re.compile(r"\d+(\.\d+)+"), re.compile(r"\d{4,}|0\..*")
_POINTED = re.compile(rf"\d{{1,9}}|{POINTS.pattern}")
_AFTER_COMMA = re.compile(r"\d+(\.\d{3})*,\d{1,2}(\D.*)?")
#: A number of a row, or of its series: 17, v1017, 1.1.3.
_SERIAL = re.compile(r"[A-Za-z]{0,2}\d+(\.\d+)*")
_ORDINAL = re.compile(r"\d{1,9}")
_YEAR = re.compile(r"(19|20)\d\d(?!\w)")
_CODE = re.compile(r"\b(id|codes?|no|nr|num|number|nummer)\b")
_NAME = re.compile(r"\b(names?|navn|namn|naam|nom|label|title|description)\b")


_IDENTIFIER = re.compile(
    r"(.* )?(fips\w*|object ?id|fid|pos|rang|code\d\d|codes?|id|geoid|geo id|ags|nuts\d?|lsoa|msoa|"
    r"uid|urn|sort( ?order)?|"
    r"ukprn|estab|lea|key|isced|sic|naics|zip|postcode|plz|postleitzahl|codice|kode|.*(コード|코드)|codgeo|teryt|k[oó]d|c[oó]d(igo)?|clave|cve|ubigeo|ibge|insee|"
    r"schlüssel|lau\d?|((kommune?|gemeinde|lfd) ?)?nr|\w*nummer)( \d+)?( .*)?|dep|reg|la"
)
_PLACE_NUMBER = re.compile(r"(?!total )\w.* (number|num|no|numéro|numero|número)\.?")
_ROWS_OF_PLACES, _DIGITS_OF_PLACES = 20, 5
_MEMBER = re.compile(r"\bid: ?\[\d+\]", re.IGNORECASE)  # of a label: "Member ID: [2]: Male"
_PERIOD = re.compile(
    r"years? (ended|ending|to)\b.*|((calendar|civil|financial|fiscal|academic|school|tax|survey|"
    r"census|reference|reporting|report|data|start|end|base|epi|epidemiological|iso|mmwr|week|"
    r"month|quarter|mid) )*(years?|date|periods?|time ?(period|frame)?|month|quarter|week|jahre?|"
    r"monate?|woche|kw|années?|annee|mois|semaine|jaar|jaren|maand|år|vecka|månad|anos?|años?|mes|"
    r"mês|semana|kvartal|kwarta[ał]l?|quartal|trimestre|çeyrek|四半期|분기|квартал|год|"
    r"ann[oi]|mes[ei]|rok|lata|miesiąc|måned|uge|uke|vuosi|kuukausi|év|tahun|bulan|"
    r"年[度次]?|月|연도|년|월)( id)?"
)
#: Other words before those: counts of a first year, or a year that is written out.
_SOME_PERIOD = re.compile(r"[a-z ]+ (years?|date|period|month|quarter|week)( id)?")


def is_identifier(head: str) -> bool:
    """Return whether a heading says that its column holds codes."""
    lowest = head.rpartition(PATH)[2]  # in "ID and name!!Alba" the upper part has several columns
    return _IDENTIFIER.fullmatch(_words(lowest)) is not None and not _MEMBER.search(lowest)


def is_place_number(head: str, texts: Sequence[str]) -> bool:
    """Return whether a heading and enough rows or digits show numbers of schools or boards.

    A few counts may have equal lengths, and a number of pupils is a count.
    """
    many = len(texts) > _ROWS_OF_PLACES or all(len(t) > _DIGITS_OF_PLACES for t in texts)
    named = _PLACE_NUMBER.fullmatch(head) and not says_records(head.rpartition(" ")[0])
    return bool(many and named)


def is_list(numbers: Sequence[int]) -> bool:
    """Return whether numbers are a list: rising, and mostly consecutive."""
    rising = len(numbers) >= _MANY and all(a < b for a, b in itertools.pairwise(numbers))
    if not rising or numbers[0] < _LISTED:
        return False
    return 2 * sum(b - a == 1 for a, b in itertools.pairwise(numbers)) >= len(numbers)


def is_in_turn(numbers: Sequence[int]) -> bool:
    """Return whether numbers are a list that repeats in each of several groups.

    In each group they count up from 1, or are the same few rising numbers.
    """
    starts = [i for i, n in enumerate(numbers) if not i or n <= numbers[i - 1]]
    runs = [list(numbers[a:b]) for a, b in itertools.pairwise([*starts, len(numbers)])]
    if len(runs) < _GROUPS or len(numbers) < max(_TOLD, 2 * len(runs)) or max(numbers) >= _LARGE:
        return False
    return all(run == [*range(1, len(run) + 1)] for run in runs) or (
        min(map(len, runs)) > 2 and all(run == runs[0] for run in runs)
    )


def may_part_thousands(columns: Iterable[Iterable[str]]) -> bool:
    """Return whether points may part thousands: three digits follow each, others are small."""
    dotted, plain = set[str](), set[str]()
    for texts in columns:
        points = {t for t in texts if _DOTTED.fullmatch(t)}
        dotted |= points
        plain |= {*texts} if points else set()
    whole = bool(dotted) and all(map(POINTS.fullmatch, dotted))
    return whole and not any(map(_NO_THOUSANDS.fullmatch, plain))


def points_shown(columns: Sequence[Sequence[str]], heads: Sequence[str]) -> bool | None:
    """Return whether points separate thousands, not decimals; None without evidence.

    Evidence is decimals after a comma, several points in a number, or sums. Sums of rows above a
    total, or columns beside one, with and without points hold in only one way.
    """
    texts = set[str]().union(*columns)
    if any(_AFTER_COMMA.fullmatch(t) or (t.count(".") > 1 and POINTS.fullmatch(t)) for t in texts):
        return True
    sums = list[list[str]]()  # the total comes last
    total = [any(total_word(t) == 2 for t in row) for row in zip(*columns, strict=True)]
    for column in columns:
        every, block = list[str](), list[str]()
        for text, whole in zip(column, total, strict=True):
            block.append(text)
            if whole:
                every += block[:-1]
                sums += [block, [*every, text]]
                block = []
    numeric = [i for i, column in enumerate(columns) if all(map(_POINTED.fullmatch, column))]
    for i in [i for i in numeric if total_word(heads[i]) == 2]:
        rest = [columns[j] for j in numeric if total_word(heads[j]) < 2]
        sums += map(list, zip(*rest, columns[i], strict=True))
    sums_by_way = [0, 0]
    for numbers in sums:
        if len(numbers) < 3 or not all(map(_POINTED.fullmatch, numbers)):
            continue
        for way, unit in enumerate((1000, 1)):
            *parts, last = (int(t.replace(".", "")) * (1 if "." in t else unit) for t in numbers)
            sums_by_way[way] += sum(parts) == last
    decimals, thousands = sums_by_way
    return thousands > decimals if thousands != decimals else None


def is_ordinal(column: Sequence[str], total: Sequence[bool], *, named: bool) -> bool:
    """Return whether a column numbers its rows consecutively, totals apart.

    Numbers whose sum is a total are counts. Numbers from 2 or more need a longer list. If the
    column is ``named`` so, three rows suffice, one step in four may repeat, and totals may have
    numbers.
    """
    numbered = [one.number if (one := noted(t)) else t for t in column]
    texts = [t for t, whole in zip(numbered, total, strict=True) if t and not whole]
    if len(texts) <= _FEW_ROWS - named or not all(map(_ORDINAL.fullmatch, texts)):
        return False
    numbers = [int(t) for t in texts]
    stated = [n[0] for t, whole in zip(column, total, strict=True) if whole
              and WHOLE.fullmatch(t) and (n := number_range(t))]  # fmt: skip
    if sum(numbers) in stated or (stated and not named):
        return False
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    if numbers[0] > 1:
        return len(steps) >= _TOLD and {*steps} == {1}
    return {*steps} <= {0, 1} and 4 * steps.count(0) <= len(steps) * named


def is_ranking(numbers: Sequence[int]) -> bool:
    """Return whether each number is one more than the count of smaller ones; most are distinct."""
    order = sorted(numbers)
    ranks = all(n == 1 + bisect.bisect_left(order, n) for n in numbers)
    return ranks and len(numbers) >= _TOLD and 2 * len({*numbers}) > len(numbers)


def is_measure(head: str, heads: Sequence[str]) -> bool:
    """Return whether a heading names a measure of something other than counted records.

    "SE" is a standard error alone, or beside a column that it may belong to; so are bounds.
    """
    error = re.sub(r"\W*\b(se|lb|ub|quality)\b\W*", " ", head).strip(" ()")
    if error != head.strip(" ()") and (not error or error in heads):
        return True
    plain = re.sub(r"(?<=[a-z])\d$", "", head)  # "Population2" has a note
    return any(pattern.fullmatch(plain) for pattern in (_OTHERS, _MONEY))


def one_spelling(column: Sequence[str]) -> list[str]:
    """Return labels with one spelling for those that differ only in capitals or signs."""
    if any(map(WHOLE.fullmatch, {*column})):
        return [*column]
    first: dict[str, str] = {}
    spelled = {text: first.setdefault(key(text), text) for text in dict.fromkeys(column)}
    return [spelled[text] for text in column] if len(first) < len(spelled) else [*column]


def is_period(head: str, texts: Sequence[str]) -> bool:
    """Return whether a heading and the texts of its column are periods.

    No heading is needed for many rows of few distinct years, or for still more rows of any years.
    """
    words = {t for t in {*texts} if not (is_mark(t) or any(map(str.isdigit, t)))}
    texts = [t for t in texts if t not in words] or texts  # a total, and those of none
    number = {t: int(t) for t in {*texts} if re.fullmatch(r"\d{1,9}", t)}
    numbers = [number[t] for t in texts if t in number]
    if _PERIOD.fullmatch(head) and all(map(_may_be_period, numbers)):
        return True
    several = len(texts) >= _MANY > len({*texts}) * 2
    steps = {b - a for a, b in itertools.pairwise(sorted({*numbers}))}
    past = max(numbers, default=0) <= _LAST_YEAR or len(steps) < 2  # else sizes near 2,000
    if (several or (len(texts) >= _MORE and past)) and all(map(_YEAR.match, texts)):
        return True
    if len(texts) > 1 and all(map(is_day, texts)):
        return True
    dates = numbers and len(numbers) == len(texts) and all(map(is_written_out, numbers))
    return bool(dates) and (not head or _SOME_PERIOD.fullmatch(head) is not None)


def _may_be_period(number: int) -> bool:
    """Return whether a number may be a month, a week, a year, or a date written as a number."""
    return number <= 53 or 1000 <= number < 3000 or number > 9999


def is_day(text: str) -> bool:
    """Return whether a text of eight digits is a day: 20181024 or 24102018."""
    for pattern in ("%Y%m%d", "%d%m%Y"):
        with suppress(ValueError):
            day = datetime.strptime(text, pattern)
            if len(text) == 8 and 1800 < day.year < 2100:
                return True
    return False


def is_written_out(number: int) -> bool:
    """Return whether a number is a year, a year and month, or a day written as one number."""
    return 1800 < number < 2100 or 180001 <= number <= 210012 or 18000101 <= number <= 21001231


def _words(head: str) -> str:
    """Return the words of a heading without signs between them: "Kommune_(id)" as kommune id."""
    parted = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", head)
    return " ".join(re.sub(r"[^\w%#]+", " ", key(parted)).split())


def attributes(
    columns: Sequence[Sequence[str]], heads: Sequence[str], numeric: Sequence[int],
    labels: Sequence[int],
) -> dict[int, str]:  # fmt: skip
    """Return descriptions of the number columns that are attributes of labels and count nothing.

    Their numbers are equal in all rows of each label, in more rows than counts would be.
    """
    codes = {j: _coded(columns[j]) for j in labels}
    groups = [("", np.zeros(len(columns[0]), np.int64))]
    groups += [(f"one of each {heads[j]!r}", codes[j]) for j in labels]
    groups += [(f"one for all of {heads[k]!r}", g) for k, g in _without_one(codes)]
    totals = np.zeros(len(columns[0]), np.bool_)
    for j in labels:
        totals |= [total_word(text) == 2 for text in columns[j]]
    results = dict[int, str]()
    numbers_by_column = {
        i: {t: n[0] for t in {*columns[i]} if WHOLE.fullmatch(t) and (n := number_range(t))}
        for i in numeric
    }
    stated = {*itertools.chain(*map(dict.values, numbers_by_column.values()))}
    base_of_all = math.gcd(*stated, *[1000] * (len(stated) == 1)) or 1
    for i, numbers in numbers_by_column.items():
        plain = np.array([text in numbers for text in columns[i]])
        # Counts are withheld; codes are not, but a label may always have a mark of its own.
        clear, every = bool((plain | totals).all()), _coded(columns[i])
        if not numbers or (not clear and 4 * int(plain.sum()) < plain.size):
            continue
        texts = [t for t, keep in zip(columns[i], plain, strict=True) if keep]
        column = _coded(texts)
        # The common divisor may be a base of rounding; a single number needs that of other columns.
        base = base_of_all if len(numbers) == 1 else math.gcd(*numbers.values()) or 1
        # A count near n repeats in at most one case of sqrt(n), and in all rows in one case of two,
        # unless it is the base of rounding.
        alone = max(numbers.values()) if len(numbers) == 1 else 0
        least = float(alone > 0 and (base == 1 or alone != base))
        bits = np.array([max(math.log2(max(numbers[t] // base, 1)) / 2, least) for t in texts])
        for title, group in groups:
            inside = group[plain]
            always = (bool(title) or len(numbers) == 1) and (clear or _follows(every, group))
            if always and _repeated(column, inside, bits) >= _SAME:
                results[i] = title or f"always {texts[0]!r}"
                break
        named = [j for j in labels if _names(heads[i], heads[j])]
        for j in named:
            if clear and _follows(column, codes[j][plain]):
                results.setdefault(i, f"a code of {heads[j]!r}")
    return results


def running_sums(
    columns: Mapping[int, Sequence[int]], labels: Sequence[Sequence[str]]
) -> dict[int, int]:
    """Return columns that are running sums, with the columns summed, over all labels of one column.

    Labels of the other columns form groups. Rows are summed in each group, forwards or backwards.
    """
    numbers = {i: np.array(column) for i, column in columns.items()}
    pairs = [
        (i, j) for i, j in itertools.permutations(numbers, 2)
        if abs(i - j) <= _NEAR and (numbers[j] >= numbers[i])[numbers[j] >= 0].all()
    ]  # fmt: skip
    codes = [_coded(column) for column in labels] if pairs else []
    results = dict[int, int]()
    for k in range(max(len(codes), 1)):
        group = _crossed(codes[:k] + codes[k + 1 :], len(labels[0]) if codes else 0)
        forward = np.argsort(group, kind="stable")
        for order, (i, j) in itertools.product((forward, forward[::-1]), pairs if codes else ()):
            added, sums, groups = numbers[i][order][1:], numbers[j][order], group[order]
            before, after = sums[:-1], sums[1:]
            stated_rows = (groups[1:] == groups[:-1]) & (before >= 0) & (added >= 0) & (after >= 0)
            steps = stated_rows & (before > 0) & (added > 0)
            bits = np.log2(after[steps], dtype=float).sum()  # by which no sums hold by chance
            if bits >= _BITS_OF_STEPS and (before + added == after)[stated_rows].all():
                results[j] = i
    return results


def shares(columns: Mapping[int, Sequence[int]], labels: Sequence[Sequence[str]]) -> set[int]:
    """Return columns of shares: numbers of each row, or of all rows of each group, add up to 100.

    Columns of a row stand side by side. A group has all labels of one column, or of none. Numbers
    below 0 are unknown.
    """
    numbers = {i: np.array(column) for i, column in columns.items()
               if 1 < max(column, default=0) <= _HUNDRED}  # fmt: skip
    results = set[int]()
    for i in numbers:
        parts = list(itertools.takewhile(numbers.__contains__, range(i, i + _NEAR)))
        for size in range(2, len(parts) + 1):
            table = np.array([numbers[j] for j in parts[:size]])
            if _make_hundred(table.sum(axis=0)[(table >= 0).all(axis=0)]):
                results |= {*parts[:size]}
    codes = [_coded(column) for column in labels] if numbers else []
    for k, (i, column) in itertools.product(range(len(codes) + 1), numbers.items()):
        group = _crossed(codes[:k] + codes[k + 1 :], len(column))
        unknown = np.bincount(group, column < 0) > 0
        several = np.bincount(group) > 1
        if _make_hundred(np.bincount(group, column)[several & ~unknown]):
            results.add(i)
    return results


def _make_hundred(sums: IntArray | FloatArray) -> bool:
    """Return whether several sums are all 100, up to rounding."""
    return len(sums) >= _SHARES and bool((np.abs(sums - _HUNDRED) <= _OFF).all())


def are_amounts(numbers: Sequence[str], rows: int) -> bool:
    """Return whether long numbers are amounts: of many lengths, or of several and mostly distinct.

    Codes of several lengths begin with shorter ones.
    """
    texts = {*numbers}
    lengths = len({*map(len, texts)})
    several = lengths > _LENGTHS or (lengths > 1 and 10 * len(texts) >= 9 * rows)
    inside = sum(any(t[:k] in texts for k in range(1, len(t))) for t in texts)
    return several and 2 * inside < len(texts)


def blank_totals(
    rows: Sequence[Sequence[str]], total: Sequence[bool], numeric: Sequence[int]
) -> list[int]:
    """Return columns that describe parts only: they are blank beside each total.

    Other columns must have numbers beside totals, as counts do.
    """
    totals = [row for row, t in zip(rows, total, strict=True) if t]
    parts = [row for row, t in zip(rows, total, strict=True) if not t]
    full = (10 * sum(not row[j] for row in totals) <= len(totals) for j in numeric)
    if len(totals) < 2 or not any(full):
        return []
    return [
        i for i in numeric
        if not any(row[i] for row in totals)
        and 10 * sum(not row[i] for row in parts) <= len(parts)
    ]  # fmt: skip


def in_sum(column: IntArray, parts: Sequence[IntArray], *, several: bool) -> bool:
    """Return whether a column is a linear combination of others in nine rows of ten.

    Totals may be rounded. With ``several``, one column or a sum or difference of two is none; it
    may count nobody.
    """
    table = np.column_stack([*parts, column]).astype(float)
    table = table[(table >= 0).all(axis=1) & table.any(axis=1)]
    table /= table.max(axis=1, initial=1, keepdims=True)  # a small row says as much as a total
    for _ in range(2):
        size, number = table.shape
        if number < 4 or 2 * size < 3 * number + 5 or len({*table[:, -1]}) < 4:
            return False
        weights = np.linalg.lstsq(table[:, :-1], table[:, -1], rcond=None)[0]
        off = np.abs(table[:, :-1] @ weights - table[:, -1])
        table, most = table[off <= max(np.quantile(off, 0.9), _EXACT)], off.max()
    if most > _EXACT or not several:
        return bool(most <= _EXACT)
    *rest, last = table.T
    differences = (abs(a - b) for a, b in itertools.combinations(rest, 2))
    sums = (a + b for a, b in itertools.combinations(rest, 2))
    return not any(
        np.abs(other - last).max() <= _EXACT for other in itertools.chain(rest, differences, sums)
    )


def one_of_each(
    columns: Sequence[Sequence[str]], labels: Iterable[int], counts: Iterable[int]
) -> tuple[int, set[int]] | None:
    """Return the first label column that determines the numbers of some columns, and these.

    Its labels stand in two rows or more on average.
    """
    for j in labels:
        size = len({*columns[j]})
        one = {i for i in counts if len({*zip(columns[j], columns[i], strict=True)}) == size}
        if one and 4 <= 2 * size <= len(columns[j]):
            return j, one
    return None


def are_blocks(column: Sequence[str]) -> bool:
    """Return whether few numbers rise from one block of rows to the next, totals apart.

    Small counts, such as rounded ones, may do so in a few rows by chance.
    """
    texts = [t for t in column if t.isdecimal()]
    blocks = [int(text) for text, _ in itertools.groupby(texts)]
    if not all(t.isdecimal() or total_word(t) for t in column):
        return False
    few = 1 < len(blocks) <= len(texts) // _LONG_RUN
    if not few or blocks[0] == 0 or blocks != sorted({*blocks}):
        return False
    base, repeats = math.gcd(*blocks), (int(a) for a, b in itertools.pairwise(texts) if a == b)
    return sum(math.log2(1 + number // base) for number in repeats) >= _SAME


def is_serial(column: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether a column numbers the rows, or the series that other labels distinguish.

    So does a column of many numbers of several lengths, such as populations of places by year. So
    do years that follow from the years of another column.
    """
    size = len({*column})
    if not all(map(_SERIAL.fullmatch, column)):
        return False
    years = [c for c in (column, *rest) if all(map(is_year, c))]
    if years[:1] == [column]:
        return any(len({*zip(column, c, strict=True)}) == len({*c}) for c in years[1:])
    if rest and size > _MANY_FACTS and len({*map(len, column)}) > 1:
        return len({*zip(*rest, strict=True)}) == len({*zip(column, *rest, strict=True)})
    follow = [c for c in rest if len({*zip(column, c, strict=True)}) == size]
    return bool(follow) and len({*zip(*follow, strict=True)}) == size


def inner_codes(columns: Mapping[int, Sequence[str]]) -> dict[int, int]:
    """Return columns of codes that restart below each label of a column, with their label columns.

    Codes have leading zeros. Below each such label, they match labels in words one to one.
    """
    results = dict[int, int]()
    words = [n for n, column in columns.items() if not all(map(str.isdecimal, column))]
    for i, column in columns.items():
        codes = {*column}
        if not all(map(str.isdecimal, codes)) or not any(c[0] == "0" < c for c in codes):
            continue
        for j, k in itertools.permutations(words, 2):
            number = len({*zip(columns[k], column, strict=True)})
            several = number > max(len(codes), len({*columns[k]}))
            if several and number == len({*zip(columns[k], columns[j], strict=True)}) == len(
                {*zip(columns[k], column, columns[j], strict=True)}
            ):
                results[i] = j
                break
    return results


def are_of_blanks(column: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Return whether a column only tells which of the other labels are blank."""
    blanks = list(zip(*([not text for text in other] for other in rest), strict=True))
    pairs = {*zip(blanks, column, strict=True)} if blanks else set()
    return bool(blanks) and len({*blanks}) == len({*column}) == len(pairs)


def is_constant(texts: Iterable[str]) -> bool:
    """Return whether some texts are all equal."""
    rest = iter(texts)
    first = next(rest, None)
    return first is not None and all(text == first for text in rest)


def _coded(texts: Sequence[str]) -> IntArray:
    return np.asarray(pd.factorize(np.array(texts, dtype=object))[0], np.int64)


def _firsts(column: IntArray, group: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first row of each row's group, and the column's value there."""
    rows = np.arange(len(group))
    first = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    first[group[::-1]] = rows[::-1]
    return first[group], column[first[group]]


def _follows(column: IntArray, group: IntArray) -> bool:
    """Return whether a column has one number in each group."""
    return bool((_firsts(column, group)[1] == column).all())


def _repeated(column: IntArray, group: IntArray, bits: FloatArray) -> float:
    """Return the bits of numbers repeated within their group; 0 if many others differ."""
    first, number = _firsts(column, group)
    repeats = (number == column) & (first < np.arange(len(group))) & (bits > 0)
    few = _FEW * int((number != column).sum()) <= int(repeats.sum())  # two places of one name
    return float(bits[repeats].sum()) if few else 0.0


def _without_one(codes: dict[int, IntArray]) -> Iterator[tuple[int, IntArray]]:
    """Yield groups of rows that differ only in one label column and columns determined by it."""
    for k, one in codes.items():
        rest = [c for j, c in codes.items() if j != k and not _follows(c, one)]
        if len(rest) > 1:
            yield k, _crossed(rest, len(one))


def _crossed(codes: Iterable[IntArray], size: int) -> IntArray:
    """Return the groups of rows that agree in all columns, or one group without columns."""
    group = np.zeros(size, np.int64)
    for code in codes:
        group = np.unique(group * (code.max(initial=0) + 1) + code, return_inverse=True)[1].ravel()
    return group


def _names(head: str, other: str) -> bool:
    """Return whether a heading names the codes of another one: "Ward no" beside "Ward"."""
    code, name = _words(head), _words(other)
    base = " ".join(_CODE.sub("", code).split())
    return base == " ".join(_NAME.sub("", name).split()) != "" and (base, base) != (code, name)
