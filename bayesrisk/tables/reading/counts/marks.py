"""Marks in place of counts: their meanings by numbers, sums and notes."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import not_

from bayesrisk.exceptions import quote
from bayesrisk.tables.likelihoods import UNBOUNDED, TrueCounts
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.laws import PlainLaw, counted, plain_number, support
from bayesrisk.tables.reading.counts.notes import Note, marked, replaced, small_counts
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.evidence import sums_shown
from bayesrisk.tables.reading.variables.judgements import Groups
from bayesrisk.tables.reading.variables.sums import CodedLabels, LabelSums
from bayesrisk.tables.sheets.texts import (
    NO_COUNT,
    is_mark,
    key,
    noted,
    number_range,
    span,
    total_word,
)

_NEAR = 10  # less common numbers on each side of a common one
#: Texts for no cases in many offices, and the number of rows that show it.
DASHES, _ROWS = ("-", "–", "—", "−"), 4
_ENDS = 2  # blocks of a column that has a mark in its first or last rows alone
_SHORTEST = 3  # the least upper end of a range with both ends shown
_SHOWN = 8  # counts of 1 and 2, beside which missing zeros are no chance
UNKNOWN = {"withheld": "withheld, and may be any", "missing": "no count, and left out"}
#: Sums that hold under a mark's meaning, for each error of an agency.
_MOST_MISSED = 20
#: Blanks in combinations of labels without counts, for each other one.
_FEW_APART = 20
#: The least number of withheld small counts for each one shown.
_FEWER = 8
_ESTIMATED = "(estimat|imput|geschätzt|schätz|estimé|estimad|stimat|skatta|anslå|szacun|推計|추정)"
#: Words of a text with a number that explains a missing count; texts to ask about at most.
WORD, WORDS, _FEW_SENTENCES = re.compile(r"[^\W\d_]{2,}"), 3, 2


def marks_answered(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules, notes: Sequence[Note]
) -> dict[str, str]:
    """Return the meanings of marks, by settings, or by numbers, notes and sums.

    A column of one mark alone is by itself, if sums of others show what the mark is there.
    """
    filled = _filled_columns(cells, rules)
    pairs = [(c, law) for c, law in zip(cells, laws, strict=True)
              if (c.file, c.column) not in filled]  # fmt: skip
    rest, rest_laws = [cell for cell, _ in pairs], [law for _, law in pairs]
    answers = _ask_nines(cells, rules) | _ask_dashes(rest, rules) | _ask_flags(cells, rules, notes)
    for number, setting, note in replaced(notes):
        text = f"{number!r} stands for {UNKNOWN.get(setting, setting)}: {note.quoted}"
        answers[number] = rules.ask(f"marks.{number}", setting, text)
    noted_meanings, denied = _ask_notes(cells, laws, rules, notes)
    answers |= noted_meanings
    answers |= _ask_nothing(rest, rest_laws, rules)
    answers |= _ask_sums(rest, rest_laws, rules, answers)
    _ask_unrecorded(rest, rest_laws, rules, answers)
    answers |= _ask_not_counted(rest, rules, answers)
    for (_, column), mark in filled.items():
        if answers.get(mark, "withheld") != "withheld" and mark not in noted_meanings:
            text = f"{column}: {mark!r} stands alone there, and may be any, such as 0"
            name = f"columns.{column}.marks"
            rules.columns[f"{key(column)}.marks"] = rules.ask(name, "withheld", text)
    for mark, text in denied.items():
        if mark not in answers:
            answers[mark] = rules.ask(f"marks.{mark}", "withheld", text)
    return answers | _sentences(cells, rules, answers)


def _ask_nines(cells: Sequence[Cell], rules: ReadingRules) -> dict[str, str]:
    """Ask whether 999 or 9999 means withheld, if it is more common than numbers nearby."""
    times = Counter(cell.text for cell in cells if cell.row)
    answers = dict[str, str]()
    for text in [t for t in times if re.fullmatch("9{3,}", t)]:
        near = sum(times[str(int(text) + d)] for d in range(-_NEAR, _NEAR + 1) if d)
        if times[text] > max(2, 2 * near):
            reason = f"{text!r} stands in {times[text]:,} counts: it is withheld, and may be any"
            answers[text] = rules.ask(f"marks.{text}", "withheld", reason)
    return {text: answer for text, answer in answers.items() if answer == "withheld"}


def _ask_notes(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules,
    notes: Sequence[Note],
) -> tuple[dict[str, str], dict[str, str]]:  # fmt: skip
    """Ask whether marks mean what notes say; also return questions where numbers deny the notes."""
    texts = {c.text for c in cells if not number_range(c.text)} if notes else set[str]()
    marks = [t for t in texts if f"marks.{t}" not in rules.all and not noted(t)]
    marks = sorted(t for t in marks if is_mark(t) or not any(map(str.isdigit, t)))
    answers, denied = dict[str, str](), dict[str, str]()
    for mark in marks:
        finding = marked(mark, notes, alone=len(marks) == 1)
        if finding and (inner := _inner_range(finding, cells)):
            finding = inner, finding[1]
        if finding and (finding[0] in UNKNOWN or _fits(mark, finding[0], cells, laws)):
            meaning = UNKNOWN.get(finding[0], finding[0])
            text = f"{mark!r} is {meaning}: {finding[1].quoted}"
            answers[mark] = rules.ask(f"marks.{mark}", finding[0], text)
        elif finding:
            text = f"{mark!r} may be any, although {finding[1].quoted}: other counts deny that"
            denied[mark] = f"{text} (marks.{mark}={finding[0]} says which)"
    return answers, denied


def _inner_range(finding: tuple[str, Note], cells: Sequence[Cell]) -> str:
    """Return the range inside *between 0 and 5*, if counts of 0 and 5 are shown; else empty."""
    ends = number_range(finding[0])
    if not ends or ends[0] or ends[1] < _SHORTEST or "between" not in finding[1].text.casefold():
        return ""
    times = Counter(cell.text for cell in cells if cell.row)
    published = min(times["0"], times[str(ends[1])]) >= _SHOWN
    return span(1, ends[1] - 1) if published else ""


def _sentences(
    cells: Sequence[Cell], rules: ReadingRules, answers: Mapping[str, str]
) -> dict[str, str]:
    """Return texts of words in place of counts as withheld, if they are many; add a line."""
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.text, cell)
    texts = [
        t for t in first
        if len(WORD.findall(t)) > 1 and not (is_mark(t) or noted(t) or number_range(t))
        and t not in answers and f"marks.{t}" not in rules.choices
        and not small_counts(t.casefold())
    ]  # fmt: skip
    if len(texts) <= _FEW_SENTENCES:
        return {}
    every = {*texts}
    number = sum(cell.text in every for cell in cells)
    text = f"{quote(texts[0])} (row {first[texts[0]].row}) and {len(texts) - 1} more texts"
    rules.lines.append(f"  {number} cells have words, {text}: what they count may be any")
    return dict.fromkeys(texts, "withheld")


def _fits(mark: str, text: str, cells: Sequence[Cell], laws: Sequence[PlainLaw]) -> bool:
    """Return whether a mark may be a range: few such counts are shown, and the sums allow it."""
    low, high = number_range(text) or (0, 0)
    every = [(0, UNBOUNDED)] * len(cells)
    for position, (cell, law) in enumerate(zip(cells, laws, strict=True)):
        if ends := plain_number(cell.text):
            every[position] = support(law.law, counted(cell, law.law, ends[0]))
    small = [c for c, (a, b) in zip(cells, every, strict=True)  # a rounded 5 may be 6
             if c.row and max(low, 1) <= a <= b <= high]  # fmt: skip
    if _FEWER * len(small) > sum(cell.text == mark for cell in cells):
        return False
    partial_totals = [low > 0 and zero.good - any_.good == zero.telling - any_.telling > 0
             for any_, zero in _sums_with(mark, (0, 0), cells, every)]  # fmt: skip
    # Totals of shown counts deny nothing.
    pairs = [
        *itertools.compress(_sums_with(mark, (low, high), cells, every), map(not_, partial_totals))
    ]
    more = sum(b.good - a.good for a, b in pairs)
    missed = sum(b.telling - b.good for a, b in pairs if a.telling == a.good)
    return _MOST_MISSED * missed <= more


def _sums_with(
    mark: str, ends: Ends, cells: Sequence[Cell], every: Sequence[Ends]
) -> Iterator[tuple[Groups, Groups]]:
    """Yield for each total the groups that add up to it, without and with a mark's range."""
    proposal = [ends if c.text == mark else e for c, e in zip(cells, every, strict=True)]
    labels = [cell.labels for cell in cells]
    return zip(_sums(labels, every), _sums(labels, proposal), strict=True)


def _sums(labels: Sequence[Mapping[str, str]], ends: Sequence[Ends]) -> Iterator[Groups]:
    """Yield, for each variable with a total, the groups in which the others add up to it."""
    coded = CodedLabels(labels, ends)
    for column, (name, texts) in enumerate(coded.labels.items()):
        words = {key(x): total_word(x) for x in texts}
        every = max(words, key=lambda k: words[k], default="")
        total = every if words.get(every) else ""
        if total or not coded.codes[:, column].all():
            sums = LabelSums(name, coded, coded.following(name))
            parts = [k for k in sums.column if k and k != total]
            if total in sums.column and len(parts) > 1:
                yield sums.adding_up(parts)(total)


def _ask_dashes(cells: Sequence[Cell], rules: ReadingRules) -> dict[str, str]:
    """Ask whether a dash is 0, if in all rows with one the others add up to their total."""
    answers = dict[str, str]()
    rows: dict[tuple[str, int], list[str]] = {}
    for cell in cells:
        rows.setdefault((cell.file, cell.row), []).append(cell.text)
    texts_of_cells = {cell.text for cell in cells}
    for dash in filter(texts_of_cells.__contains__, DASHES):
        every = [texts for texts in rows.values() if dash in texts]
        numbers = [
            [end[0] for t in texts if t != dash and (end := plain_number(t))] for texts in every
        ]
        full = [n for n, texts in zip(numbers, every, strict=True)
                if len(n) + texts.count(dash) == len(texts) and any(n)]  # fmt: skip
        if len(full) >= _ROWS and all(len(n) > 1 and 2 * max(n) == sum(n) for n in full):
            text = f"{dash!r} is 0: without it the others add up to a total in {len(full)} rows"
            answers[dash] = rules.ask(f"marks.{dash}", "0", text)
    return answers


def _filled_columns(cells: Sequence[Cell], rules: ReadingRules) -> dict[tuple[str, str], str]:
    """Return the mark of each column that holds it alone, beside others, if no setting says it."""
    texts: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        texts.setdefault((cell.file, cell.column), set()).add(cell.text)
    filled = {column: min(marks) for column, marks in texts.items() if len(marks) == 1 < len(texts)}
    return {c: mark for c, mark in filled.items()
            if is_mark(mark) and f"marks.{mark}" not in rules.choices}  # fmt: skip


def _ask_sums(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules, answers: Mapping[str, str]
) -> dict[str, str]:
    """Ask whether a mark is no count, if totals are then exactly the sums of all others.

    These are marks that no office uses to withhold. A dash is 0; another mark is a missing count.
    """
    results = dict[str, str]()
    if not all(law.law == TrueCounts() for law in laws):
        return results
    every = [plain_number(cell.text) or (0, UNBOUNDED) for cell in cells]
    texts = {cell.text for cell in cells if NO_COUNT.fullmatch(cell.text)} - answers.keys()
    for mark in sorted(text for text in texts if f"marks.{text}" not in rules.all):
        good, missed = _shown_sums(mark, cells, every)
        if good >= max(_ROWS, _MOST_MISSED * missed):
            text = f"totals are the sums of all others in {good} groups"
            text += f", and miss them in {missed}" * bool(missed)
            guess, word = ("0", "0") if mark in DASHES else ("missing", "no count, and left out")
            results[mark] = rules.ask(f"marks.{mark}", guess, f"{mark!r} is {word}: {text}")
    return results


def _ask_not_counted(
    cells: Sequence[Cell], rules: ReadingRules, answers: Mapping[str, str]
) -> dict[str, str]:
    """Ask whether blanks are no counts, if they fill combinations of two labels.

    An example is victims of offences without victims. Each label has counts beside others, and none
    is a total, which would count what is blank.
    """
    texts = {c.text for c in cells if not c.text or NO_COUNT.fullmatch(c.text)} - {*DASHES}
    results = dict[str, str]()
    names = dict.fromkeys(name for cell in cells for name in cell.labels)
    for mark in sorted(t for t in texts - answers.keys() if f"marks.{t}" not in rules.all):
        for pair in itertools.combinations(names, 2):
            times, blank = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
            for cell in cells:
                crossing = tuple(cell.labels.get(name, "") for name in pair)
                times[crossing] += 1
                blank[crossing] += cell.text == mark
            # A few counts beside blanks, and a few blanks beside counts, come with late years.
            few = _FEW_APART
            full = {x for x, n in blank.items() if times[x] > 1 and few * (times[x] - n) <= n}
            counts = [x for x, n in blank.items() if few * n <= times[x]]
            counted = [{x[side] for x in counts} for side in (0, 1)]
            inside = all(label in counted[side] for x in full for side, label in enumerate(x))
            inside = inside and not any(total_word(label) for x in times for label in x)
            outside = sum(n for x, n in blank.items() if x not in full)
            if full and inside and few * outside <= blank.total():
                text = (
                    f"it fills {len(full)} combinations of {pair[0]} and {pair[1]}, and few others"
                )
                text = f"{mark!r} is no count, and left out: {text}"
                results[mark] = rules.ask(f"marks.{mark}", "missing", text)
                break
    return results


def _ask_unrecorded(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules, answers: Mapping[str, str]
) -> None:
    """Ask whether a mark is no count in the first or last rows of columns, if sums show it.

    These are columns of what was not recorded by itself there. Columns add up to others in rows
    without the mark, and in all rows if it counts nobody. What is withheld stands in rows of any
    kind.
    """
    columns: dict[tuple[str, str], list[int]] = {}
    for i, cell in enumerate(cells if all(law.law == TrueCounts() for law in laws) else ()):
        if cell.row:
            columns.setdefault((cell.file, cell.column), []).append(i)
    texts = {cell.text for cell in cells} - answers.keys()
    marks = {t for t in texts if not t or NO_COUNT.fullmatch(t)}
    for mark in sorted(t for t in marks if f"marks.{t}" not in rules.all):
        blocks = {c: [k for k, _ in itertools.groupby(cells[i].text == mark for i in places)]
                  for c, places in columns.items()}  # fmt: skip
        begun = {c for c, block in blocks.items() if len(block) == _ENDS}
        if not begun:
            continue
        every = [plain_number(cell.text) or (0, UNBOUNDED) for cell in cells]
        zero = [(0, 0) if c.text == mark and (c.file, c.column) in begun else e
                for c, e in zip(cells, every, strict=True)]  # fmt: skip
        before, after = (CodedLabels([c.labels for c in cells], ends) for ends in (every, zero))
        for name, wholes in sums_shown(after, rules).items():
            sides = [LabelSums(name, coded, {}) for coded in (before, after)]
            for whole, parts in wholes.items():
                groups, filled = (sums.adding_up(parts)(whole) for sums in sides)
                if not groups.good == groups.telling > 1 or filled.good < groups.good + _ROWS:
                    continue
                reason = f"{mark!r} is no count, since {filled.good} sums hold without it"
                for column in sorted(begun):
                    labels = {key(cells[i].labels.get(name, "")) for i in columns[column]}
                    if labels <= {*parts}:
                        setting = f"columns.{column[1]}.marks"
                        answer = rules.ask(setting, "missing", f"{column[1]!r}: {reason}")
                        rules.columns[f"{key(column[1])}.marks"] = answer


def _shown_sums(mark: str, cells: Sequence[Cell], every: Sequence[Ends]) -> tuple[int, int]:
    """Return the number of sums that hold only if a mark is 0, and of those that then miss."""
    good, missed = 0, 0
    for before, after in _sums_with(mark, (0, 0), cells, every):
        fits = after.good - before.good
        missed += after.telling - before.telling - fits
        certain = before.telling == before.good and after.no_chance
        good += fits * (certain or after.nearly)
    return good, missed


def _ask_nothing(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules
) -> dict[str, str]:
    """Ask whether a dash is 0, if no 0 is stated and the dash can hide no other small count.

    Counts of 1 and 2 are shown, or ranges such as <5 replace them. Sums must not deny it, and no
    other mark may hide small counts.
    """
    times = Counter(cell.text for cell in cells if cell.row)
    ranges = {t for t in times if (end := number_range(t)) and end[0] < 2 < end[1]}
    marks = {t for t in times if is_mark(t) and t and f"marks.{t}" not in rules.all}
    few_counts = times["1"] + times["2"] >= _SHOWN
    ranges_stand = sum(times[t] for t in ranges) >= _SHOWN
    if times["0"] or not (few_counts or ranges_stand) or not all(map(NO_COUNT.fullmatch, marks)):
        return {}
    evidence = "counts of 1 and 2" if few_counts else repr(min(ranges))
    text = f"{{!r}} is 0: no 0 is stated, and {evidence} {'are' if few_counts else 'is'}"
    return {m: rules.ask(f"marks.{m}", "0", text.format(m))
            for m in sorted(marks & {*DASHES}) if _fits(m, "0", cells, laws)}  # fmt: skip


def _ask_flags(cells: Sequence[Cell], rules: ReadingRules, notes: Sequence[Note]) -> dict[str, str]:
    """Ask whether counts beside a note are withheld: several that are all 0, or estimates."""
    numbers: dict[str, list[str]] = {}
    for count_note in (noted(cell.text) for cell in cells):
        if count_note:
            numbers.setdefault(count_note.note, []).append(count_note.number)
    reasons = {m: "beside it is 0 always" for m, t in numbers.items() if len(t) > 1 == len({*t})
               and t[0] == "0"}  # fmt: skip
    if "e" in numbers and "a" not in numbers:  # no letter in a list of notes
        reasons["e"] = "many offices write it beside estimates"
    for mark, note in itertools.product(numbers, notes):
        word = rf"\W*{re.escape(mark.strip('[]()').casefold())}\W+(.{{0,20}}\W)?{_ESTIMATED}"
        if re.match(word, note.text.casefold()):
            reasons[mark] = note.quoted
    return {
        mark: rules.ask(f"marks.{mark}", "withheld", f"{mark!r} is withheld: {reason}")
        for mark, reason in reasons.items() if f"marks.{mark}" not in rules.choices
    }  # fmt: skip
