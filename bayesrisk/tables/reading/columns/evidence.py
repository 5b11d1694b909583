"""Evidence on the role of a column: its numbers, their sums and its heading."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bayesrisk.tables.reading.columns.attributes import (
    are_amounts,
    are_blocks,
    in_sum,
    is_constant,
    is_identifier,
    is_in_turn,
    is_list,
    is_measure,
    is_ordinal,
    is_period,
    is_place_number,
    is_ranking,
    is_written_out,
    may_part_thousands,
    one_spelling,
    points_shown,
)
from bayesrisk.tables.reading.headings import LETTERS, MEMBER, in_persons
from bayesrisk.tables.reading.rows import (
    SIZE,
    blanks_end,
    counting_rows,
    filled,
    with_blocks,
    with_label_of_all,
    with_named_totals,
    with_parts,
    with_repeated,
    with_words_of_codes,
    without_false_parts,
    without_spanning_rows,
)
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.sheets.heading_rows import heading_positions
from bayesrisk.tables.sheets.records import says_records
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    NUMBER,
    PATH,
    POINTS,
    WHOLE,
    interval,
    is_date,
    is_mark,
    key,
    noted,
    number_range,
    sex,
    total_word,
)

COUNT = re.compile(
    r"(.*\b)?(counts?|cnt|frequency|n|no of \w+|(obs|observation) value)|records|obs|values?|"
    rf"numbers?( of .*)?|observations?|{NUMBER}|"
    r"contagem|conteo|recuento|cantidad|quantidade|valor(es)?|valeurs?|wert|"
    r"waarde|verdi|värde|arvo"
)
NUMBERED = re.compile(r"|no\.?|nr\.?|#|index|unnamed: 0|row( number)?|rank|number|obs|column1")
AMOUNTS, MEASURE = "amounts of something else", "a measure of something else"
#: Numbers that may be labels, if they tell rows apart.
ROWS, LIST, RANKS = "numbers of rows", "numbers of a list", "ranks"
SPELLED = "codes of labels"
_FEW_CODES, _DIGITS_OF_CODES = 3, 5
_ROWS_OF_CODE = 20  # for each of few codes
_MOST_ONCE = 5  # codes for each that stands in one row
_PEOPLE = 10  # digits of all people on earth
_DIGITS = 16  # more than numbers to add may have
_BESIDE, _FAR = 8, 40  # parts near a total, shown by two rows, or by four
_STEPS = 4  # from a part of a sum to the next
_FIRST_ROWS = 200  # to check first for a sum
_FEW_DISTINCT = 5  # numbers of rows
_LEAST_SUM = 2**8  # that is no chance
_CODES = 2  # columns of place numbers at most, beside more columns of counts
_MANY_ROWS = 1000  # to check for sums


class ColumnEvidence:
    """The columns of a sheet, and the evidence of their numbers and headings."""

    def __init__(self, sheet: Sheet, sheets: Sequence[Sheet], rules: ReadingRules) -> None:
        self.rules, self.first_line = rules, len(rules.lines)
        sheet = with_blocks(with_words_of_codes(in_persons(sheet)), rules)
        sheet = with_label_of_all(without_false_parts(sheet), rules)
        self.sheet = with_named_totals(sheet, rules)
        counting = without_spanning_rows(counting_rows(with_repeated(self.sheet, rules)))
        self.sheet = with_parts(counting, rules)
        sheet = self.sheet
        plain = [MEMBER.sub("", head) or head for head in sheet.heads]
        plain = [re.sub(r"\(\d+ categories\)", "", head) for head in plain]
        self.heads = [*map(key, plain)]
        self.spoken = [key(LETTERS.sub(" ", head)) for head in plain]
        rows = [row for _, row in sheet.rows]
        self.columns = [*map(one_spelling, zip(*rows, strict=True))] or [[] for _ in self.heads]
        if rules.all.get("blank") == "above":
            self.columns = [filled(column) for column in self.columns]
        if rules.all.get("blank", "below") == "below" and blanks_end(self.columns):
            rules.ask("blank", "below", "blank labels are of the group whose total ends it")
        if rules.all.get("blank") == "below":
            self.columns = [filled(column[::-1])[::-1] for column in self.columns]
        self.row_counts = [Counter(column) for column in self.columns]  # of rows with each text
        self.reasons: dict[int, str] = {}  # reasons why columns are not used
        self.unused = list[int]()  # columns of whole numbers to ask about
        self.repeating = list[int]()  # numbers that repeat in rows of some labels
        self.repeated: dict[int, list[int]] = {}  # totals, and the labels they sum over
        #: Whether a column is constant over all rows of all files that have it.
        sheets = sheets if len(sheets) > 1 else [sheet]  # without the rows left out
        positions = [heading_positions(list(map(key, s.heads))) for s in sheets]
        self.fixed = {
            i: all(one in places for places in positions)
            and is_constant(key(row[place[one]]) for s, place in zip(sheets, positions, strict=True)
                          for _, row in s.rows)
            for one, i in heading_positions(self.heads).items()
        }  # fmt: skip

    def like_count(self, text: str) -> bool:
        """Return whether a text is a number, a range, or a count with a note."""
        if f"marks.{text}" in self.rules.choices or WHOLE.fullmatch(text):
            return True
        if self.points and POINTS.fullmatch(text):
            return True
        return any(map(str.isdigit, text)) and bool(noted(text) or number_range(text))

    @functools.cached_property
    def points(self) -> bool:
        """Whether points separate thousands: three digits follow each, and no sum denies it."""
        if "thousands" in self.rules.choices:
            return self.rules.choices["thousands"] == "point"
        if not may_part_thousands(self.row_counts):
            return False
        thousands = points_shown(self.columns, self.heads)
        if thousands is None:
            text = "no sum shows it, but points part thousands: 1.204 is 1,204"
            return self.rules.ask("thousands", "point", text) == "point"
        return thousands

    def share(self, i: int) -> float:
        """Return the share of a column's texts that are counts."""
        texts = {t: n for t, n in self.row_counts[i].items() if t and not is_mark(t)}
        numbers = {one.number if (one := noted(t)) else "" for t in texts}
        if len(numbers) == 1 < len(texts) and "" not in numbers:  # 71Yes and 71No
            return 0.0
        counts = {t: n for t, n in texts.items() if self.like_count(t)}
        if counts and len(counts) + 1 == len(texts) and {*texts} - {*counts} <= self.words_of_none:
            return 1.0
        return sum(counts.values()) / sum(texts.values()) if texts else 0.0

    @functools.cached_property
    def words_of_none(self) -> set[str]:
        """Texts that are the only word among numbers in several columns, as *no data*."""
        times = Counter[str]()
        for texts in self.row_counts:
            words = [t for t in texts if t and not self.like_count(t)]
            times.update(
                words if len(words) == 1 < len(texts) - 1 and not total_word(words[0]) else ()
            )
        return {t for t, n in times.items() if n > 1}

    def paired(self, i: int, j: int) -> bool:
        """Return whether two columns match one to one."""
        size = len(self.row_counts[i])
        if not size == len(self.row_counts[j]) > 1:
            return False
        return len(set(zip(self.columns[i], self.columns[j], strict=True))) == size

    def adds_up(self, i: int, *, whole: bool = False, exact: bool = True) -> bool:
        """Return whether a column is the sum of columns beside it, or part of such a sum.

        If ``whole``, it must be the sum itself, which may fail in some rows. Other sums may too
        unless ``exact``.
        """
        if whole:
            return any(i == total for total, _, _ in self.sums)
        sums = (one for one in self.sums if one[2] or not exact)
        every = (i == total or i in parts for total, parts, _ in sums)
        return any(every) or self._sums_rows(i)

    @functools.cached_property
    def sums(self) -> list[tuple[int, range, bool]]:
        """The sums of columns: a total, its parts, and whether all known rows add up.

        Parts stand beside their total, or are every second to fourth column, as sexes by age.
        Columns without numbers are no parts. They add up to two known totals or more, many or
        distant parts to four, and in most rows.
        """
        nothing, results = [0] * len(self.sheet.rows), list[tuple[int, range, bool]]()
        columns = np.array([column or nothing for column in self.numbers])
        filled = {i for i, column in enumerate(self.numbers) if column}
        ends = [j for j, texts in enumerate(self.row_counts) if not any(map(str.isdecimal, texts))]
        for step in range(1, _STEPS + 1):
            # For the columns before each at multiples of the step: their sum, and the number of
            # unknown ones.
            sums = np.zeros((len(columns) + step, len(nothing)), np.int64)
            hidden = np.zeros(sums.shape, np.int16)
            for i, column in enumerate(columns):
                sums[i + step] = sums[i] + np.maximum(column, 0)
                hidden[i + step] = hidden[i] + (column < 0)
            for total in sorted(filled):
                for parts in _parts_near(total, step, [-1, *ends, len(columns)]):
                    if (size := len(filled.intersection(parts))) < 2:
                        continue
                    first, end = parts[0], parts[-1] + step
                    for rows in (slice(_FIRST_ROWS), slice(None)):
                        stated_rows = columns[total, rows] > 0
                        stated_rows &= hidden[end, rows] == hidden[first, rows]
                        totals = columns[total, rows][stated_rows]
                        holds = totals == (sums[end, rows] - sums[first, rows])[stated_rows]
                        if not holds.any() and (len(totals) > 1 or len(nothing) <= _FIRST_ROWS):
                            break
                    else:
                        missed = int((~holds).sum())
                        distinct = len({*totals[holds].tolist()})
                        least = 2 if step == 1 and size <= _BESIDE else 4
                        if distinct >= max(least, 4 * missed):
                            results.append((total, parts, not missed))
        return results

    def _sums_rows(self, i: int) -> bool:
        """Return whether the first or last row is the sum of all others, three or more."""
        numbers = self.numbers[i]
        large = len(numbers) > _FEW_CODES and min(numbers) >= 0 and max(numbers) >= _LEAST_SUM
        return large and sum(numbers) in (2 * numbers[0], 2 * numbers[-1])

    @functools.cached_property
    def numbers(self) -> list[list[int]]:
        """The whole numbers of each column, with -1 for other texts; an empty list without any."""
        number = {  # few texts stand in many rows
            t: int(t) if len(t) < _DIGITS and t.isdecimal() else -1
            for texts in self.row_counts
            for t in texts
        }
        every = [[number[t] for t in column] for column in self.columns]
        return [column if max(column, default=-1) > 0 else [] for column in every]

    def doubt(self, i: int, words: Sequence[int]) -> str:
        """Return the reason why numbers may not be counts of records; empty if there is none."""
        texts, head = [t for t in self.columns[i] if t], self.heads[i]
        different = self.row_counts[i]
        number = {t: int(t) for t in different if re.fullmatch(r"\d{1,9}", t)}
        plain = [number[t] for t in texts if t in number]
        if any(re.fullmatch(r"0[ \d]*\d", t) for t in different):  # 01 001, of two levels
            return "codes with leading zeros"
        last, numeric = max(words, default=i), [j for j, n in enumerate(self.numbers) if n]
        if {*texts} == {"0"} and i < last and 2 * sum(j > last for j in numeric) > len(numeric):
            return "always '0', before labels"
        counted = bool(COUNT.fullmatch(head)) or total_word(head) == 2
        digits = {t: re.sub(r"\D", "", t) for t in self.row_counts[i] if WHOLE.fullmatch(t)}
        if not counted and any(len(number) > _PEOPLE for number in digits.values()):
            amounts = are_amounts([*digits.values()], len(texts))
            amounts = amounts and not is_identifier(self.sheet.heads[i])
            return AMOUNTS if amounts else "codes"
        # Counts of a year may be withheld; a mark among years is a label of a row, such as %.
        years = len(plain) > 1 and all(map(is_written_out, plain))
        hidden = any(map(is_mark, filter(None, different))) and not years
        if is_period(head, texts) and not (hidden or self.adds_up(i)):
            return "a period"
        numbered = NUMBERED.fullmatch(head) is not None
        label = is_date(head) or bool(sex(head)) or interval(head) is not None  # of counts
        label = label or (says_records(head) and not numbered)
        if (not (counted or label) or plain[:1] < [2]) and self._orders_rows(
            i, words, named=numbered
        ):
            return ROWS
        if is_ranking(plain) and not (counted or self.adds_up(i)):
            return RANKS
        marks = {*filter(is_mark, filter(None, different))}  # perhaps in rows of totals
        if is_identifier(self.sheet.heads[i]) and (
            (len({len(t) for t in texts if t.isdecimal()}) == 1 < len({*texts} - marks))
            or all(any(total_word(t) == 2 for t in row)
                   for _, row in self.sheet.rows if row[i] in marks)
        ) and not self.adds_up(i):  # fmt: skip
            return "codes"
        if is_list(plain) and len(plain) + len(marks) >= len(texts) and not self.adds_up(i):
            return "codes"
        if self._before_labels(i, words) or self._in_blocks(i):
            return "codes"
        if head.endswith("#") and not self.adds_up(i):  # few such columns: "School #"
            plain_heads = [j for j, n in enumerate(self.numbers) if n and self.heads[j][-1:] != "#"]
            if sum(h.endswith("#") for h in self.heads) <= _CODES < len(plain_heads):
                return "codes"
        every = len({*plain}) == len(plain) > _FEW_DISTINCT
        every = every and max(plain) - min(plain) + 1 == len(plain)
        distinct = len(plain) == len(texts) == len(different) > _FEW_DISTINCT
        if not head and i == 0 and distinct and words and all(self.heads[1:]):
            return ROWS  # of a longer table
        measure = is_measure(self.spoken[i], self.heads) or SIZE.fullmatch(head)
        if measure and not self.adds_up(i, whole=total_word(head) < 2):
            return MEASURE
        even = len({b - a for a, b in itertools.pairwise(plain)}) == 1
        rising = len(plain) > (2 if even else 5) and plain[0] > 999 and plain == sorted({*plain})
        repeated = len({*texts}) < len(texts) or (head and numbered)
        if (
            (repeated or rising or every)
            and not (counted or label)
            and any(
                self.paired(i, j)
                and not all(map(str.isdecimal, self.columns[j]))
                and (even or not all(map(is_date, self.row_counts[j])))
                for j in (*words, *self._copies(i))
            )
        ):
            return SPELLED
        listed = len(texts) == len(plain) and is_in_turn(plain)
        return LIST if listed and not self.adds_up(i) else ""

    def _copies(self, i: int) -> list[int]:
        """Return columns with the same texts in many rows, some of them ages in words.

        Ranges for withheld counts may agree in a few rows.
        """
        groups = [t for t in self.row_counts[i] if any(map(str.isalpha, t)) and interval(t)]
        if not groups or len(self.columns[i]) < _ROWS_OF_CODE:
            return []
        return [j for j, c in enumerate(self.columns) if j != i and c == self.columns[i]]

    def _orders_rows(self, i: int, words: Sequence[int], *, named: bool) -> bool:
        """Return whether a column numbers the rows in order, and is in no sum."""
        total = self.total_rows([i, *words])
        return is_ordinal(self.columns[i], total, named=named) and not self.adds_up(i)

    def total_rows(self, words: Sequence[int]) -> list[bool]:
        """Return for each row whether some columns call it a total."""
        rows = zip(*(self.columns[j] for j in words or [0]), strict=True)
        return [any(total_word(t) == 2 for t in texts) for texts in rows]

    def _before_labels(self, i: int, words: Sequence[int]) -> bool:
        """Return whether numbers before all labels, or few values, are in no sum while others are.

        Numbers before labels, or of places, are distinct. Few values each repeat in many rows, and
        at most half are 0, as rare counts may be.
        """
        texts = {*(plain := [t for t in self.columns[i] if t])}  # totals may have none
        rest = [j for j, numbers in enumerate(self.numbers) if numbers and j not in (i, *words)]
        if not all(t.isdecimal() and len(t) < _DIGITS for t in texts):
            return False
        called = is_place_number(self.heads[i], plain)
        distinct = (called or i < min(words, default=0)) and len(texts) == len(plain) > 2
        rising, one_length = plain == sorted(plain, key=int), len({*map(len, texts)}) == 1
        distinct = distinct and (rising or one_length)
        called = called or (
            rising and one_length and min(len(plain), len(plain[0])) >= _DIGITS_OF_CODES
        )
        repeated = 1 < len(texts) <= len(plain) // _ROWS_OF_CODE and not self.is_merged(i, words)
        repeated &= len(texts) == 2 or 2 * self.row_counts[i]["0"] <= len(plain)
        once = sum(n == 1 for n in self.row_counts[i].values())  # as large counts are
        repeated &= _MOST_ONCE * once <= len(texts)
        if not (distinct or repeated) or self.adds_up(i):
            return False
        summing = filter(self.adds_up, rest)
        return called or any(summing) if distinct else i < next(summing, 0)

    def is_merged(self, i: int, words: Iterable[int]) -> bool:
        """Return whether whole numbers after all labels share a merged heading with others."""
        upper = self.sheet.heads[i].rpartition(PATH)[0]
        return bool(upper) and i > max(words, default=-1) and any(
            numbers and j != i and self.sheet.heads[j].rpartition(PATH)[0] == upper
            for j, numbers in enumerate(self.numbers)
        )  # fmt: skip

    def _in_blocks(self, i: int) -> bool:
        """Return whether few numbers rise from one block of rows to the next, before others."""
        head, size = self.heads[i], len(self.row_counts[i])
        label = COUNT.fullmatch(head) or is_date(head) or sex(head) or interval(head)
        if label or any(self.numbers[:i]) or not are_blocks(self.columns[i]) or self.adds_up(i):
            return False
        rest = [j for j in range(i + 1, len(self.heads)) if self.numbers[j]]
        return any(2 * len(self.row_counts[j]) > len(self.columns[j]) > size for j in rest)

    def in_sum(self, i: int, columns: Sequence[int], *, several: bool = False) -> bool:
        """Return whether a column is a linear combination of others, in rows without a total."""
        parts = [np.array(self.numbers[j]) for j in columns if j != i and self.numbers[j]]
        if not (self.numbers[i] and parts):
            return False
        step, every = len(self.sheet.rows) // _MANY_ROWS + 1, self.sheet.rows
        rows = [
            p for p in range(0, len(every), step)
            if self.numbers[i][p] >= 0 and not any(total_word(t) == 2 for t in every[p][1])
        ]  # fmt: skip
        parts = [c[rows] for c in parts if 10 * (c[rows] < 0).sum() <= len(rows)]
        return in_sum(np.array(self.numbers[i])[rows], parts, several=several)


def _parts_near(total: int, step: int, ends: Sequence[int]) -> Iterator[range]:
    """Yield ranges of columns on each side that may be parts of a total, some steps apart.

    Distant parts are no farther from their total than from each other. All columns up to the next
    column of words may be parts too, however many.
    """
    for gap in range(1, step + 1):
        for number in range(2 if step == 1 else 3, _FAR // step + 1):
            before, after = total - gap - (number - 1) * step, total + gap
            if before >= 0:
                yield range(before, total, step)
            if after + (number - 1) * step < ends[-1]:
                yield range(after, after + number * step, step)
    if step == 1:
        start, end = max(j for j in ends if j < total), min(j for j in ends if j > total)
        yield from (part for part in (range(start + 1, total), range(total + 1, end))
                    if len(part) > _FAR)  # fmt: skip
