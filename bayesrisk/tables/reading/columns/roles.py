"""Roles of columns: labels, counts, or neither, by their numbers first, then their names."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.reading.columns.attributes import (
    GROUP,
    are_of_blanks,
    attributes,
    blank_totals,
    inner_codes,
    is_identifier,
    is_serial,
    one_of_each,
    running_sums,
    shares,
)
from bayesrisk.tables.reading.columns.evidence import (
    AMOUNTS,
    COUNT,
    LIST,
    MEASURE,
    NUMBERED,
    RANKS,
    ROWS,
    SPELLED,
    ColumnEvidence,
)
from bayesrisk.tables.reading.columns.repeats import counted_over
from bayesrisk.tables.reading.counts.notes import estimates, no_counts, stated_unit
from bayesrisk.tables.reading.headings import RESERVED, UNIT, free_name, is_group, numbered, wide
from bayesrisk.tables.reading.rows import (
    codes_below_0,
    name_blanks,
    refuse_same,
    says_change,
    says_mean,
    tell_apart,
)
from bayesrisk.tables.reading.variables.margins import CountedColumns
from bayesrisk.tables.sheets.estimates import refused_estimates, refused_units, units_of_nobody
from bayesrisk.tables.sheets.records import UNITS, says_no_count, says_records
from bayesrisk.tables.sheets.texts import (
    DECIMAL,
    NEGATIVE,
    POINTS,
    SHARE,
    WHOLE,
    cut,
    is_mark,
    key,
    listing,
    noted,
    number_range,
    sex,
    total_word,
)

_HIDDEN = re.compile(r"[(\[]\w{1,2}[)\]]|.*(suppressed|withheld|redacted)", re.IGNORECASE)
_FLAG = re.compile(
    r"(.* )?(flags?|symbols?|annotations?)|(obs )?conf(identiality)?|"
    r"((obs|observation|conf|confidentiality|data|value|cell|suppression) )?status( code)?|"
    r"(conf|confidentiality|disclosure|suppression|suppressed|withheld)( (code|indicator|yn))?"
)
_NOTES = re.compile(r".*\b(foot)?notes?\b.*")
_NO_SUM = "in no sum, as others are"
_DECIMALS = "numbers with decimals or below 0"
_LABELS = ("a period", "codes", "codes with leading zeros", SPELLED)
_MORE_BELOW = 3  # columns with numbers below 0 for each without
_SEVERAL = 4  # count columns for each one called a count
_DECIMAL_TEXTS = 4  # at most among counts
_CODE_BELOW_0 = re.compile(r"[-−](\d|9+)")
_SHORT = 3  # letters of a flag
_FEW_REPEATS = 4  # of counts in rows of one label, by chance
_REPEATS = 3  # of each text in a column of codes, at least
#: Titles on full-time equivalents, and words for heads counted beside them.
_EQUIVALENTS = re.compile(
    r"\bfull[- ]time[- ]equivalents?\b|\bftes?\b|vollzeitäquivalent|équivalents? temps plein|"
    r"heltidsekvivalent|årsverk|\bvoltijdsequivalent",
    re.IGNORECASE,
)
_HEADS = re.compile(r"\b(head ?counts?|köpfe|koppen|effectifs|antal personer)\b", re.IGNORECASE)
_PERSONS = re.compile(r"\b(persons?|people|individuals)\b")
_FEW_NAMES = 1.25  # codes for each name of a place
_FEW_NUMBERED = 10  # names of places for each with a number
_FEW_SPELLINGS = 20  # labels for each that another column merges
_WHOLE_SHARES = {"0", "1", "100"}
#: Separated thousands.
_APART = re.compile(r"\d[,'’\u00a0\u2009\u202f ]\d{3}")
_LEVEL = re.compile(r"((geograph\w*|geo|area|region(al)?|summary) (level|type)|level)( name)?")
_DIMENSION = re.compile(r"dim: (.*?)( \(\d+\))?")
CODE = re.compile(r" ?\b(code|id|name|label)\b( \d+)?")


class _Roles(NamedTuple):
    """Variables by column, the labels of each count column, and the flag columns."""

    names: dict[int, str]
    counts: dict[int, dict[str, str]]
    flags: list[int]


class SheetColumns(ColumnEvidence):
    """The columns of a sheet, and their roles."""

    def roles(self) -> _Roles:
        """Return the role of each column."""
        columns = self.rules.columns
        choices = {
            i: columns[name]
            for i, names in enumerate(numbered(self.heads)) for name in names if name in columns
        }  # fmt: skip
        names = {i: t for i, t in choices.items() if t not in ("count", "ignored") and "=" not in t}
        counts: dict[int, dict[str, str]] = {
            i: dict(p.split("=", 1) for p in t.split(", ") if "=" in p)
            for i, t in choices.items() if "=" in t or t == "count"
        }  # fmt: skip
        self.reasons |= {i: "ignored" for i, t in choices.items() if t == "ignored"}
        flags, numeric = list[int](), list[int]()
        stages = {"p1", "p2", "p3"} <= {*self.heads}  # stages of schools; otherwise percentiles
        for i, head in enumerate(self.heads):
            texts = [t for t in self.row_counts[i] if t]
            plain = [t for t in texts if not is_mark(t)]
            measure = says_no_count(self.spoken[i]) and not (stages and re.fullmatch(r"p\d", head))
            mean = says_mean(self.spoken[i]) or says_change(self.spoken[i])
            mean = mean and not (COUNT.fullmatch(head) or self.adds_up(i))
            measure = measure or mean
            if i in choices:
                continue
            if not texts:
                self.reasons[i] = "empty"
            elif _NOTES.fullmatch(head):
                self.reasons[i] = "notes"
            elif match := _DIMENSION.fullmatch(head):
                names[i] = match[1]
            elif f"dim: {head.partition(': ')[2]}" in self.heads:  # of members, or of notes
                self.reasons[i] = "the same as its dimension"
            elif measure and 2 * sum(any(map(str.isdigit, t)) for t in plain) >= len(plain):
                self.reasons[i] = "no counts"
            elif self._flags(head, texts) and all(map(str.isdecimal, texts)):
                self.reasons[i] = "codes beside counts"
            elif self._flags(head, texts):
                flags.append(i)
            elif self._shares(i):
                self.reasons[i] = "no counts"
            elif self._decimals(i, texts):
                self.reasons[i] = _DECIMALS
            elif GROUP.fullmatch(head) and not (
                COUNT.fullmatch(head)
                or total_word(head)
                or self.adds_up(i)
                or self._beside_words(i)
            ):
                names[i] = head
            elif (
                self._withheld(i)
                or codes_below_0(self.row_counts[i])
                or (2 * self.share(i) >= 1 and self._numbers(head, texts))
            ):
                numeric.append(i)
            elif 2 * sum(map(bool, map(DECIMAL.fullmatch, self.columns[i]))) > len(self.columns[i]):
                self.reasons[i] = _DECIMALS  # in units, but not written as counts
            else:
                unnamed = "category" if "category" not in names.values() else f"column {i + 1}"
                names[i] = head.rpartition("!!")[2] or unnamed
        self._refuse_estimates(choices)
        if not counts:
            decimal = [i for i, r in self.reasons.items() if r == _DECIMALS]
            named = any(COUNT.fullmatch(self.heads[i]) for i in numeric)
            if not named and any(COUNT.fullmatch(self.heads[i]) for i in decimal):
                numeric = []  # the column called counts holds none
            if numeric == [0] and not self.heads[0] and "no counts" in self.reasons.values():
                numeric = []  # labels stand before measures
            below = [i for i in decimal if not any(map(DECIMAL.fullmatch, self.row_counts[i]))]
            if len(below) >= _MORE_BELOW * len(numeric) and not any(
                map(self._says_people, numeric)
            ):
                numeric = []  # likely differences, none of them below 0
            numeric = self._counts(numeric, names)
            counts = wide(self.sheet, numeric, names, self.rules)
            unused = {*numeric} - counts.keys()
            self.reasons |= dict.fromkeys(unused, "the total of its heading, or of all")
        else:
            unused_counts = self._counts(numeric, names) if numeric else []
            self.reasons |= dict.fromkeys(unused_counts, "other counts were named")
            # Several columns only called counts are distinguished by labels in their headings.
            if len(counts) > 1 and not any(counts.values()):
                counts = wide(self.sheet, sorted(counts), names, self.rules)
        if not counts:
            reasons = "".join(f"; {self.sheet.heads[i]}: {r}" for i, r in self.reasons.items())
            raise DataError(
                f"{self.sheet.title}: must have a column of counts, got {listing(self.sheet.heads)}"
                f"{reasons[:200]}; columns.HEADING=count names it (records of people are no table: "
                "tabulate them, or use audit)"
            )
        ignored = [i for i, reason in self.reasons.items() if reason == "ignored"]
        refuse_same(self.sheet, self.heads, counts, ignored, self.rules)
        for i in [i for i in names if i not in choices and self._own_flags(i, names, counts)]:
            del names[i]
            flags.append(i)
        self._drop(names, choices)
        self._leave_out(names, [*counts, *flags])
        name_blanks(self.columns, names, self.sheet, self.rules.choices.get("blank", ""))
        tell_apart(self.columns, self.sheet, names, counts, self.rules)
        self._ask_unused(names, counts)
        return self._titled(names, counts, flags, choices)

    def _beside_words(self, i: int) -> bool:
        """Return whether whole numbers or marks stand beside words that distinguish all rows.

        Numbers that are labels would be needed for that; "Old age" may count people.
        """
        texts, head = {t for t in self.row_counts[i] if t}, self.heads[i]
        marks = {t for t in texts if not any(map(str.isalnum, t))}
        if not all(map(WHOLE.fullmatch, texts - marks)) or not (texts - marks):
            return False
        words = [
            c for j, c in enumerate(self.columns)
            if 2 * self.share(j) < 1 and not self.paired(i, j)
        ]  # fmt: skip
        distinct = len({*zip(*words, strict=True)}) == len(self.columns[i]) > 1
        return distinct and (bool(marks) or (" " in head and head.split()[-1] in ("age", "year")))

    def _shares(self, i: int) -> bool:
        """Return whether most texts of a column, marks apart, are percentages."""
        texts = {t: n for t, n in self.row_counts[i].items() if t and not is_mark(t)}
        unnamed = not self.heads[i] and any(map(says_no_count, self.heads))
        if unnamed and texts and {*texts} <= _WHOLE_SHARES:  # of a total
            return True
        shares = sum(n for t, n in texts.items() if SHARE.fullmatch(t))
        return 2 * shares > sum(texts.values())

    def _withheld(self, i: int) -> bool:
        """Return whether a column of only marks or ranges has counts, by other columns or name."""
        column, head = self.columns[i], self.heads[i]
        ranges = {t for t in column if number_range(t) and not WHOLE.fullmatch(t)}
        plain = head and not UNITS.fullmatch(head)  # the unit of a row: %, no.
        if not (plain and all(t and (is_mark(t) or t in ranges) for t in column)):
            return False
        hidden = not any(any(map(str.isalnum, t)) for t in {*column} if not _HIDDEN.fullmatch(t))
        called = COUNT.fullmatch(head) or sex(head) or says_records(head)
        if hidden or (called and (ranges or self.heads.count(head) == 1)):  # else codes of labels
            return True
        counts = [
            j for j, other in enumerate(self.columns)
            if 2 * self.share(j) >= 1 and any(map(WHOLE.fullmatch, other))
        ]  # fmt: skip
        if is_group(head) and any(is_group(self.heads[j]) for j in counts):
            return True  # an age group with all counts withheld
        total = any(total_word(self.heads[j]) == 2 for j in counts)  # letters are parts of it
        equal = (total or not column[0].isalnum()) and self.columns.count(column) > 1  # of several
        return any(equal or {*column} <= {*self.columns[j]} for j in counts)

    def _numbers(self, head: str, texts: Sequence[str]) -> bool:
        """Return whether some texts are numbers; ranges suffice below a heading of counts."""
        plain = any(WHOLE.fullmatch(t) or POINTS.fullmatch(t) or noted(t) for t in texts)
        return plain or (COUNT.fullmatch(head) is not None and any(map(self.like_count, texts)))

    @staticmethod
    def _flags(head: str, texts: Sequence[str]) -> bool:
        """Return whether a column holds flags beside counts: short codes or known marks."""
        short = all(len(t) <= 3 or is_mark(t) for t in texts)
        if head.startswith("status"):
            return short and all(map(is_mark, texts))
        return _FLAG.fullmatch(head) is not None and (short or not any(map(total_word, texts)))

    def _own_flags(self, i: int, names: Mapping[int, str], counts: Iterable[int]) -> bool:
        """Return whether a column has short codes and is named after a count column."""
        texts, head = self.row_counts[i], self.heads[i]
        called = any(h and head.startswith(f"{h} ") for h in (self.heads[j] for j in counts))
        short = all(len(t) <= _SHORT and not t.isdecimal() for t in texts)
        if not called or not short:
            return False
        rest = [self.columns[j] for j in names if j != i]
        several = len({*zip(*rest, strict=True)}) if rest else 1
        return several == len({*zip(*rest, self.columns[i], strict=True)})

    def _decimals(self, i: int, texts: Sequence[str]) -> bool:
        """Return whether a column's numbers have decimals, or are below 0.

        One decimal suffices if another column has several and is not called a share.
        """
        if UNIT.search(self.sheet.heads[i]):
            return False
        wrong = [t for t in texts if DECIMAL.fullmatch(t.lstrip("<>≤≥~ ")) or NEGATIVE.fullmatch(t)]
        wrong = [t for t in wrong if not (self.points and POINTS.fullmatch(t))]
        codes = {*codes_below_0(self.row_counts[i])}
        wrong = [t for t in wrong if t not in codes]
        if any(map(DECIMAL.fullmatch, wrong)) and self._beside_decimals(i):
            return True
        rows, below = self.row_counts[i], [t for t in wrong if NEGATIVE.fullmatch(t)]
        coded = all(map(_CODE_BELOW_0.fullmatch, below))  # one value may mean withheld
        if len(below) > 1 or not coded or len(wrong) > _DECIMAL_TEXTS:
            return True
        return 3 * sum(rows[t] for t in wrong) >= sum(rows[t] for t in texts if t[-1].isdigit()) > 0

    def _beside_decimals(self, i: int) -> bool:
        """Return whether another column has several decimal numbers that are no shares."""
        decimal = [
            j for j, texts in enumerate(self.row_counts)
            if j != i and sum(map(bool, map(DECIMAL.fullmatch, texts))) > _DECIMAL_TEXTS
        ]  # fmt: skip
        return not all(says_no_count(self.heads[j]) for j in decimal)

    def _refuse_estimates(self, choices: Mapping[int, str]) -> None:
        """Refuse survey estimates, means and amounts, since they count nobody."""
        if choices:
            return
        advice = "; columns.HEADING=count takes one for a count all the same"
        lines = [text for text in self.sheet.captions if _EQUIVALENTS.search(text)]
        counted = any(map(_HEADS.search, self.sheet.captions))
        counted = counted or any(map(_EQUIVALENTS.search, self.sheet.heads))
        got = ""
        if no_counts(unit := stated_unit(self.sheet)):
            got = f"numbers in {quote(unit)}, a line says"
        elif lines and not counted:
            got = f"full-time equivalents, {quote(cut(lines[0], 60))} says"
        elif measure := self._measures():
            got = measure
        if got:
            raise DataError(f"{self.sheet.title}: must hold counts of people, got {got}{advice}")
        if units := units_of_nobody([self.sheet.heads, *(row for _, row in self.sheet.rows)]):
            raise refused_units(self.sheet.title, units)
        if words := estimates(self.sheet):
            raise refused_estimates(self.sheet.name, words).advised(advice)

    def _measures(self) -> str:
        """Return a text on the column that calls all rows means."""
        for head, rows in zip(self.sheet.heads, self.row_counts, strict=True):
            texts = [key(t) for t in rows if t]
            if texts and all(map(says_mean, texts)):
                return f"means, of which column {quote(head)} is: {listing([*rows])}"
        return ""

    def _counts(self, numeric: Sequence[int], names: dict[int, str]) -> list[int]:
        """Return the count columns among number columns, and record the others' roles."""
        words = [i for i in names if i not in numeric]
        numbers = {i: self.numbers[i] for i in numeric}
        hundreds = shares(numbers, [self.columns[j] for j in words])
        self.reasons |= dict.fromkeys(hundreds, "shares that make up 100")
        numeric = [i for i in numeric if i not in hundreds]
        facts = blank_totals([r for _, r in self.sheet.rows], self.total_rows(words), numeric)
        facts = [i for i in facts if not self.adds_up(i)]
        numeric = [i for i in numeric if i not in facts] or [*numeric]
        self.reasons |= {i: "blank beside each total" for i in facts if i not in numeric}
        doubts = {i: self.doubt(i, words) for i in numeric}
        self.reasons |= {i: AMOUNTS for i in numeric if doubts[i] == AMOUNTS}
        numeric = [i for i in numeric if i not in self.reasons]
        doubts = {i: doubts[i] for i in numeric}
        clear = [i for i in numeric if not doubts[i]]
        for i in numeric:
            summed = doubts[i] == MEASURE and self.in_sum(i, clear, several=True)
            if doubts[i] == SPELLED:
                summed = self.adds_up(i, exact=False) or self.in_sum(i, clear)
            doubts[i] = "" if summed else doubts[i]
        repeats = self._attributes(doubts, names)
        if any(i not in repeats and doubts[i] in ("", SPELLED) for i in numeric):
            files = [i for i in repeats if len(self.row_counts[i]) == 1 and not self.fixed[i]]
            doubts |= dict.fromkeys(files, "codes")  # each file has its own, such as its year
            self.reasons |= {i: text for i, text in repeats.items() if i not in files}
            numeric = [i for i in numeric if i not in self.reasons]
        if all(doubt in _LABELS for doubt in doubts.values()):  # counts that rise with the years
            last = [i for i in numeric if doubts[i] == SPELLED][-1:]
            repeated = any(2 * len({*self.columns[i]}) <= len(self.columns[i]) for i in last)
            doubts |= dict.fromkeys([] if repeated else last, "")  # codes repeat as their labels do
        rest = [i for i in numeric if not doubts[i]]
        for i in numeric if len(rest) > 1 else ():  # counts that match a label by chance
            called = any(self.heads[j] for j in rest)  # counts have headings, codes may not
            numbered = NUMBERED.fullmatch(self.heads[i]) if self.heads[i] else called
            repetitions = len(self.columns[i]) - len(self.row_counts[i])
            if doubts[i] == SPELLED and not numbered and repetitions < _FEW_REPEATS:
                doubts[i] = ""
        every = [self.columns[j] for j in [*names, *(i for i in numeric if doubts[i] in _LABELS)]]
        counted = {i: self.numbers[i] for i in numeric if not doubts[i] and self.numbers[i]}
        running = running_sums(counted, every)
        for i, j in running.items() - self._summed(running, counted):
            doubts[i] = f"the running sum of {self.sheet.heads[j]!r}"
        fixed = [i for i in numeric if self.fixed[i] and doubts[i]]
        labels = {i: self.heads[i] for i in numeric if doubts[i] in _LABELS and i not in fixed}
        if not (names or labels):  # place numbers, if nothing else names places
            late = [i for i in numeric if self.numbers[i][:1] > [1]]
            labels = {
                i: head for i in numeric if doubts[i] in (ROWS, LIST, RANKS)
                and (not NUMBERED.fullmatch(head := self.heads[i]) or i in late)
            }  # fmt: skip
        clear = [i for i in numeric if not doubts[i] and i not in fixed]
        freq = [i for i in clear if self.heads[i] == "freq" and self.numbers[i]]
        named = freq or [i for i in clear if COUNT.fullmatch(self.heads[i])]
        begins = tuple(f"{self.heads[i]} " for i in named if len(self.heads[i]) > _SHORT)
        named += [i for i in clear if i not in named and self.spoken[i].startswith(begins)]
        if len(clear) > _SEVERAL * len(named):  # one of them has its own unit: schools
            named = [i for i in named if " " not in self.heads[i]]
        other = [i for i in clear if i not in named]
        summed_up = any if any(map(self.adds_up, other)) else all
        if named and summed_up(map(self.adds_up, named)):  # sums of others, or parts of these
            named, other = [], clear
        units = [i for i in named if " " in self.heads[i] and not _PERSONS.search(self.heads[i])]
        reason_units = _NO_SUM if any(map(self.adds_up, other)) else ""
        full = [i for i in clear if self.numbers[i]]
        following = one_of_each(self.columns, names | labels, full) if units and other else None
        if following and following[1] == {*units}:
            reason_units = reason_units or f"one of each {self.sheet.heads[following[0]]!r}"
        if named == units and reason_units:
            named, clear = [], other
            doubts |= dict.fromkeys(units, reason_units)
        label_rows = {*zip(*(self.columns[j] for j in names | labels), strict=True)}
        size = len(self.sheet.rows)
        if len(label_rows) == size and all(
            (self._says_people(i) and _REPEATS * len(self.row_counts[i]) > size)
            or total_word(self.heads[i])
            for i in clear
        ):  # the others are no labels, and count records too
            named = [i for i in named if i not in units]
        if not named and len(clear) > 1:
            needed = [i for i in clear[:-1] if self._needed(i, names | labels)][:1]
            for i in needed or self._codes_in_grid(clear[:-1], names | labels):
                names[i] = self.heads[i] or "code"
                clear.remove(i)
        rest = [
            i for i in numeric if named and i not in named and (i in clear or doubts[i] == LIST)
            and not self._is_beside(i, names)
        ]  # fmt: skip
        names |= {i: self.heads[i] for i in self._needed_together(rest, names | labels)}
        listed = [i for i in numeric if doubts[i] == ROWS and NUMBERED.fullmatch(self.heads[i])]
        rest = [i for i in numeric if doubts[i] not in _LABELS and i not in listed]
        chosen = named or clear or [i for i in rest if self._says_people(i)] or rest
        for i in numeric:
            if i in chosen or i in names:
                continue
            if i in labels or (doubts[i] in _LABELS and i in fixed):
                names[i] = self.heads[i] or ("year" if doubts[i] == "a period" else "code")
            elif doubts[i] in ("", LIST) and self._needed(i, names):
                names[i] = self.heads[i]
            else:
                self.reasons[i] = doubts[i] or "other counts"
        measures = {"no counts", _DECIMALS} & {*self.reasons.values()}
        if measures and len(chosen) == 1 and self._needed(chosen[0], names):
            return []  # a label of the measures
        unused = [
            i for i, reason in self.reasons.items()
            if reason in ("other counts", _NO_SUM)
            or i in units
            or (reason == repeats.get(i) and total_word(self.heads[i]))
        ]  # fmt: skip
        self.unused = [i for i in unused if self.heads[i] and len({*self.numbers[i]}) > 1]
        self.repeating = [i for i, reason in self.reasons.items() if reason == repeats.get(i)]
        return chosen

    def _summed(self, running: Mapping[int, int], columns: Iterable[int]) -> set[tuple[int, int]]:
        """Return the running sums in a sum of columns with others: *all* = *active* + *dead*."""
        rest = list(columns)
        counts = CountedColumns.from_sheet(self.sheet, rest) if running else None
        sums = [
            {total, *parts} for total in rest if counts is not None
            for parts in counts.sets([i for i in rest if i != total], total)
        ]  # fmt: skip
        inside = {i for one in sums if not one <= running.keys() for i in one}
        return {(i, j) for i, j in running.items() if i in inside}

    def _ask_unused(self, names: Mapping[int, str], counts: Iterable[int]) -> None:
        """Keep totals that repeat in rows, and ask about other unused whole numbers."""
        counted, labels = [*counts], {j: self.columns[j] for j in names}
        candidates = dict.fromkeys([*self.unused, *self.repeating])
        for i in candidates if len(counted) == 1 else ():
            named = "total" in self.spoken[i]
            axes = counted_over(self.columns[i], self.columns[counted[0]], labels, named=named)
            if axes:
                self.repeated[i] = axes
                del self.reasons[i]
        heads = [self.sheet.heads[i] for i in self.unused if i not in self.repeated]
        chosen_by_user = any(
            t in ("count", "ignored") or "=" in t for t in self.rules.columns.values()
        )
        if heads and not chosen_by_user:
            text = f"{listing(heads)}: whole numbers that are not used (=count reads one instead)"
            self.rules.ask(f"columns.{heads[0]}", "ignored", text)

    def _attributes(self, doubts: Mapping[int, str], names: Mapping[int, str]) -> dict[int, str]:
        """Return descriptions of the columns whose numbers are attributes of labels."""
        labels = [*names, *(i for i, d in doubts.items() if d in _LABELS and d != SPELLED)]
        perhaps = [
            i for i, doubt in doubts.items()
            if doubt in ("", SPELLED) and not COUNT.fullmatch(self.heads[i])
        ]  # fmt: skip
        columns = self.columns
        if self.points:
            columns = [[re.sub(r"(?<=\d)\.(?=\d)", "", t) for t in c] for c in columns]
        results = attributes(columns, self.sheet.heads, perhaps, labels) if labels else {}
        rest = [i for i in perhaps if i not in results]
        return {
            i: text for i, text in results.items()
            if not (self.adds_up(i) or self.in_sum(i, rest))
            and not (text.startswith("always ") and self._is_of_kind(i, labels))
        }  # fmt: skip

    def _is_of_kind(self, i: int, words: Iterable[int]) -> bool:
        """Return whether a constant number is a count, since its heading is one of several alike.

        It names a sex or ages, as another does, or shares a merged heading with others.
        """
        kinds = [bool(sex(h)) or is_group(h) for h in self.heads]
        return (kinds[i] and kinds.count(True) > 1) or self.is_merged(i, words)

    def _says_people(self, i: int) -> bool:
        """Return whether a heading names people, but not a population density."""
        return says_records(self.heads[i]) and "density" not in self.spoken[i]

    def _needed(self, i: int, names: Mapping[int, str]) -> bool:
        """Return whether only this column, added to the labels, distinguishes the rows.

        Its texts must repeat, or the labels distinguish at most half of the rows; otherwise counts
        may do so by chance. Columns with marks or separated thousands are counts.
        """
        texts = self.row_counts[i]
        marks = any(t and not any(map(str.isalnum, t)) for t in texts)
        if marks or sex(self.heads[i]) or any(map(_APART.search, texts)):
            return False
        columns, size = [self.columns[j] for j in names], len(self.columns[i])
        without = len({*zip(*columns, strict=True)}) if columns else 1
        few = 4 * len(self.row_counts[i]) <= size and 10 * without <= 9 * size
        if not (few or 2 * without <= size) or self._is_beside(i, names):
            return False
        return without < size == len({*zip(*columns, self.columns[i], strict=True)})

    def _is_beside(self, i: int, words: Iterable[int]) -> bool:
        """Return whether numbers are counts beside others: a total, of one heading, or in a sum."""
        return total_word(self.heads[i]) == 2 or self.is_merged(i, words) or self.adds_up(i)

    def _codes_in_grid(self, numeric: Sequence[int], names: Mapping[int, str]) -> list[int]:
        """Return columns of few numbers that cross with the labels in all combinations."""
        size = len(self.sheet.rows)
        codes = [i for i in numeric if 1 < len(self.row_counts[i]) <= size // _FEW_REPEATS]
        columns = [*names, *codes]
        rows = {*zip(*(self.columns[j] for j in columns), strict=True)} if codes else {}
        grid = prod(len(self.row_counts[j]) for j in columns)
        return codes if len(codes) > 1 and len(rows) == grid == size else []

    def _needed_together(self, rest: Sequence[int], names: Mapping[int, str]) -> list[int]:
        """Return columns that jointly distinguish all rows, those with the fewest texts first."""
        columns, size = [self.columns[j] for j in names], len(self.sheet.rows)
        number, needed = len({*zip(*columns, strict=True)}) if columns else 1, list[int]()
        if 10 * number > 9 * size:  # few rows repeat
            return []
        for i in sorted(rest, key=lambda i: len(self.row_counts[i])):
            if number < (more := len({*zip(*columns, self.columns[i], strict=True)})):
                columns, number, needed = [*columns, self.columns[i]], more, [*needed, i]
        return needed if number == size else []

    def _drop(self, names: dict[int, str], choices: Mapping[int, str]) -> None:
        """Remove uninformative columns, and those that repeat another one."""
        for i in [i for i in names if i not in choices]:
            if self.fixed[i] or (len({*self.columns[i]}) == 1 and total_word(self.columns[i][0])):
                del names[i]
                self.reasons[i] = f"always {self.columns[i][0]!r}"
            elif label := self._label_beside_totals(i, [j for j in names if j != i]):
                del names[i]
                self.reasons[i] = f"always {label!r}, but in rows of a total"
        for i, j in itertools.permutations([i for i in names if i not in choices], 2):
            if i in names and j in names and self.paired(i, j) and self._worse(i) > self._worse(j):
                del names[i]
                self.reasons[i] = f"the same as {self.sheet.heads[j]!r}"
        codes = inner_codes({i: self.columns[i] for i in names if i not in choices})
        for i, j in codes.items():
            del names[i]
            self.reasons[i] = f"a code of {self.sheet.heads[j]!r}"
        blanks = any("" in self.row_counts[i] for i in names)
        rows = self.sheet.rows if blanks else []
        plain = [row for _, row in rows if not any(total_word(t) == 2 for t in row)]
        for i in [i for i in names if i not in choices and any(not row[i] for row in plain)]:
            rest = {*zip(*(self.columns[j] for j in names if j != i), strict=True)}
            if len(rest) == len(self.columns[i]) > 3 and "blank" not in self.rules.all:
                del names[i]
                self.reasons[i] = "blank in some rows, which differ without it"
        for i in [i for i in names if i not in choices and _LEVEL.fullmatch(self.heads[i])]:
            blank = [self.columns[j] for j in names if j != i and not all(self.columns[j])]
            if are_of_blanks(self.columns[i], blank):
                del names[i]
                self.reasons[i] = "says which labels are blank"
        for i, j in itertools.permutations([i for i in names if i not in choices], 2):
            if i in names and j in names and self._names_places(i, j, names):
                times = Counter(a for a, _ in {*zip(self.columns[i], self.columns[j], strict=True)})
                pairs = zip(self.columns[i], self.columns[j], strict=True)
                self.columns[i] = [f"{a} ({b})" if times[a] > 1 else a for a, b in pairs]
                del names[j]
                self.reasons[j] = f"a code of {self.sheet.heads[i]!r}, beside names that repeat"
        for i, j in itertools.permutations([i for i in names if i not in choices], 2):
            if i in names and j in names and self._spells_but_few(i, j):
                del names[i]
                self.reasons[i] = f"the same as {self.sheet.heads[j]!r}, but for few"
        for i in [i for i in names if i not in choices]:
            if is_serial(self.columns[i], [self.columns[j] for j in names if j != i]):
                del names[i]
                self.reasons[i] = "a number of what other labels tell apart"

    def _names_places(self, i: int, j: int, names: Mapping[int, str]) -> bool:
        """Return whether words name the places that another column's codes distinguish, except few.

        No word that may mean a total stands beside several codes. One code may have no digit, if
        no other column, such as one of levels, tells the names apart.
        """
        pairs = {*zip(self.columns[i], self.columns[j], strict=True)}
        times = Counter(a for a, _ in pairs)
        columns = [self.columns[k] for k in names if k != j]
        alone = len({*zip(*columns, strict=True)}) < len(self.sheet.rows)
        codes = [b for a, b in pairs if a and not re.search(r"\d", b)]  # DG, above 01 to 16
        words = all(re.search(r"[^\W\d_]", a) for a, _ in pairs if a) and len(codes) <= alone
        words = words and _FEW_NUMBERED * sum(any(map(str.isdigit, a)) for a in times) < len(times)
        few = len(times) < len(pairs) == len(self.row_counts[j]) < _FEW_NAMES * len(times)
        return words and few and not any(total_word(a) for a in times if times[a] > 1)

    def _spells_but_few(self, i: int, j: int) -> bool:
        """Return whether another column of words, with few more texts, determines this column.

        Examples are names in two languages, and codes of names. No text in either may mean a total.
        """
        texts, finer = self.row_counts[i], self.row_counts[j]
        extra = len(finer) - len(texts)
        if not 0 < _FEW_SPELLINGS * extra <= len(finer):
            return False
        words = all(any(map(str.isalpha, t)) for t in finer)
        codes = all(any(map(str.isalpha, t)) or re.search(r"\d{3}", t) for t in texts)
        if not (words and codes) or any(map(total_word, (*texts, *finer))):
            return False
        return len({*zip(self.columns[i], self.columns[j], strict=True)}) == len(finer)

    def _label_beside_totals(self, i: int, labels: Sequence[int]) -> str:
        """Return a column's only label, if it stands exactly in rows with another label."""
        plain = [t for t in self.row_counts[i] if total_word(t) < 2]
        if len(plain) != 1 or len(self.row_counts[i]) == 1 or not labels:
            return ""
        rows = zip(self.columns[i], *(self.columns[j] for j in labels), strict=True)
        return plain[0] if all((t == plain[0]) == any(rest) for t, *rest in rows) else ""

    def _leave_out(self, names: Mapping[int, str], stated: Sequence[int]) -> None:
        """Leave out rows with a missing label and no count: second headings, lines between."""
        rows = self.sheet.rows
        lines = [
            any(not row[i] for i in names)
            and not any(row[i] and (is_mark(row[i]) or self.like_count(row[i])) for i in stated)
            for _, row in rows
        ]
        if "blank" in self.rules.choices or not any(lines) or all(lines):
            return
        left = [
            (i, ", ".join(filter(None, row))[:40], "a row without counts")
            for (i, row), line in zip(rows, lines, strict=True) if line
        ]  # fmt: skip
        keep = [not line for line in lines]
        rows = list(itertools.compress(rows, keep))
        self.sheet = self.sheet._replace(rows=rows, left=[*self.sheet.left, *left])
        self.columns = [list(itertools.compress(column, keep)) for column in self.columns]
        self.row_counts = [Counter(column) for column in self.columns]

    def _worse(self, i: int) -> tuple[bool, bool, int, int]:
        """Return the rank of a column as a spelling: codes come last, after texts in capitals."""
        texts = {t for t in self.columns[i] if t}
        plain = "".join(texts)
        words = sum(map(str.islower, plain))
        return is_identifier(self.sheet.heads[i]), not any(map(str.isalpha, plain)), -words, i

    def _titled(
        self, names: dict[int, str], counts: dict[int, dict[str, str]], flags: list[int],
        choices: Mapping[int, str],
    ) -> _Roles:  # fmt: skip
        """Return the roles with short, distinct variable names, and add lines that state them."""
        sheet, lines = self.sheet, self.rules.lines
        heads = [sheet.heads[i] for i in counts]
        file = Path(sheet.name).name + sheet.title[len(sheet.name) :]
        title = f"{file}: {len(sheet.rows)} rows, counts in {listing(heads)}"
        lines.insert(self.first_line, title)  # earlier lines of this file come after it
        unused = [
            f"{cut(sheet.heads[i]) or f'column {i + 1}'} ({reason})"
            for i, reason in self.reasons.items() if sheet.heads[i] or reason != "empty"
        ]  # fmt: skip
        if self.points:
            lines.append("  points part thousands: 1.204 is 1,204")
        if unused:
            lines.append(f"  not used: {listing(unused, 120)}")
        for i, axes in self.repeated.items():
            lines.append(f"  {sheet.heads[i]}: the total over {listing(names[j] for j in axes)}")
        if sheet.left:
            lines.append(f"  left out: {sheet.left_out()}")
        short = {
            i: name if i in choices else free_name(CODE.sub("", name).strip() or name)
            for i, name in names.items()
        }
        names = short if len({*short.values()}) == len(short) else names
        times = Counter[tuple[str, str]]()
        for i, name in names.items():  # of one heading: distinguished by position
            pair = (name, sheet.heads[i])
            times[pair] += 1
            names[i] = f"{name} {times[pair]}" if times[pair] > 1 and i not in choices else name
            if not sheet.heads[i] and any(name in labels for labels in counts.values()):
                names[i] = f"row {names[i]}"
        titles = [*names.values(), *dict.fromkeys(n for labels in counts.values() for n in labels)]
        wrong = [name for name in titles if titles.count(name) > 1 or RESERVED.fullmatch(name)]
        if wrong:
            raise DataError(
                f"{sheet.name}: columns must be different variables, and none of results "
                f"(columns.HEADING=name calls them otherwise), got {quote(wrong[0])}"
            )
        return _Roles(dict(sorted(names.items())), counts, flags)
