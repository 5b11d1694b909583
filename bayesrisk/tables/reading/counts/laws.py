"""Laws of published counts, by name or guessed, and what the text of each count says under them."""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log2, pi, prod, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesrisk.exceptions import quote
from bayesrisk.tables.likelihoods import (
    UNBOUNDED,
    CountLimits,
    Likelihood,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.notes import (
    Note,
    marked,
    rounding,
    sampled,
    sheet_notes,
    small_counts,
)
from bayesrisk.tables.reading.rules import ReadingRules, law as named_law
from bayesrisk.tables.reading.variables.labels import sums_shown
from bayesrisk.tables.reading.variables.sums import CodedLabels, Ends, Groups, LabelSums
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    BLANK,
    DECIMAL,
    NEGATIVE,
    NO_COUNT,
    SOME,
    WHOLE,
    is_mark,
    key,
    listing,
    noted,
    number_range,
    span,
    total_word,
)

#: Laws of counts that are not exact after all, the one that says most first.
_ROUNDED = [f"{way}-{base}" for way in ("nearest", "random") for base in (3, 5)]
_WEAKER = ("stats-nz", "perturbed-1", *_ROUNDED, "perturbed-2", "perturbed-5")
#: The largest change where a note says that counts are changed, and no sum shows by how much.
_UNSEEN = 5
_MANY_SMALL = 20  # counts, none of which is below the least by chance
_FEW_ZEROS = 2  # of counts of which none is 1 or 2
_NEAR = 10  # numbers on each side of one that is more common than these
#: Counts among which it is no chance that none is small.
_ENOUGH = 12
#: Bases to which totals of true counts are rounded.
_BASES = (5, 10, 100, 1000)
#: Sums that are off by more than this share of counts, and by more than so much, are of overlaps.
_SHARE, _LEAST_SHARE = 20, 20
#: Numbers are multiples of a base by chance in one case of 2**8.
_BITS = 8
#: All sums of rounded counts hold by chance in one case of 2**4, or fewer.
_ADDED_BITS = 5
_MOST_ADDED = 12  # labels of which each is asked about
#: Of one label most counts are multiples by chance in one case of 2**30.
_ROUND_BASES, _ROUND_BITS = (100, 10, 5), 30
#: Numbers of one column that are no multiples of 5 by chance.
_DIFFERENT = 6
#: Where 1 and 2 become 3, other counts are small, too.
_SMALL = 10
#: Texts that say that there is none, in many offices, and rows that show it.
_DASHES, _ROWS = ("-", "–", "—", "−"), 4
_SHOWN = 8  # counts of 1 and 2, beside which 0 stands by no chance
_UNKNOWN = {"withheld": "withheld, and may be any", "missing": "no count, and left out"}
#: Sums that a mark lets hold, for each that misses: agencies contradict themselves in few.
_MOST_MISSED = 20
#: Small counts that are withheld for each that is shown, at least.
_FEWER = 8
#: Words of a text with a number that says why there is no count, and so few such that are asked.
_WORD, _WORDS, _FEW_SENTENCES = re.compile(r"[^\W\d_]{2,}"), 3, 2
_CHANGED = re.compile(
    r"(randomly|slightly) (adjusted|altered)|perturb|cell.?key|"
    r"(adjusted|altered) .{0,40}(confidential|disclos|privacy|protect|identif)|"
    r"random(ised)? (adjustment|error|noise)|noise (has been|was|is) added",
    re.IGNORECASE,
)


class _Guess(NamedTuple):
    """The name of a law, and why it is guessed; whether another one fits as well, and sums hold."""

    law: str
    reason: str
    doubtful: bool = False
    summed: bool = False


class PlainLaw(NamedTuple):
    """The law of plain counts, and the range that the rule gives withheld ones."""

    law: Likelihood
    withheld: tuple[int, int] | None = None


class Value(NamedTuple):
    """The meaning of a text: a number under a law; ``kind`` is empty for plain counts.

    One that is ``missing`` is no count.
    """

    law: Likelihood
    number: int
    hidden: bool = False
    kind: str = ""

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest true count."""
        return self.law.withheld if self.hidden else _support(self.law, self.number)


@functools.lru_cache(maxsize=2**16)
def _support(law: Likelihood, number: int) -> tuple[int, int]:
    """Return the ends of the counts that a law allows for a number."""
    low, high = law.support(number)
    return int(low), int(high)


def values(cells: Sequence[Cell], rules: ReadingRules, sheets: Sequence[Sheet]) -> list[Value]:
    """Return the meaning of each cell; ``rules`` gets what is asked about laws and marks."""
    notes = {sheet.name: sheet_notes(sheet) for sheet in sheets}
    heads = dict.fromkeys((cell.file, cell.column) for cell in cells)
    samples = {s.name: sampled(s, [h for f, h in heads if f == s.name]) for s in sheets}
    laws = _cell_laws(cells, rules, notes, samples)
    answers = _ask_nines(cells, rules) | _ask_dashes(cells, rules) | _ask_flags(cells, rules)
    answers |= _ask_notes(cells, laws, rules, [*itertools.chain(*notes.values())])
    answers |= _ask_nothing(cells, laws, rules)
    answers |= _ask_sums(cells, laws, rules, answers)
    answers |= _sentences(cells, rules, answers)
    cache: dict[tuple[str, int, bool, int], Value] = {}  # few texts stand in many cells
    results = []
    for cell, law in zip(cells, laws, strict=True):
        words = (cell.text, cell.unit, cell.row > 0, id(law))
        if (value := cache.get(words)) is None:
            value = cache[words] = _value(cell, law, rules, answers)
        results.append(value)
    _check_sum(cells, results)
    ranges = {c.text: end for c in cells if not WHOLE.fullmatch(c.text) and not is_mark(c.text)
              and f"marks.{c.text}" not in rules.all and (end := number_range(c.text))}  # fmt: skip
    if ranges:
        texts = [f"{text!r} is {span(*ends)}" for text, ends in ranges.items()]
        rules.lines.append(f"  ranges: {listing(texts)}")
    return results


def _check_sum(cells: Sequence[Cell], meanings: Sequence[Value]) -> None:
    """Refuse the largest count where all together are no sum below that of no limit."""
    least = [value.ends[0] for value in meanings]
    if sum(least) >= UNBOUNDED:
        cell = cells[least.index(max(least))]
        raise cell.refuse(f"leave the sum of all counts below {UNBOUNDED:,}")


def _cell_laws(
    cells: Sequence[Cell], rules: ReadingRules, notes: Mapping[str, Sequence[Note]],
    samples: Mapping[str, Note | None],
) -> list[PlainLaw]:  # fmt: skip
    """Return the law of each cell; ``rules`` gets what is asked about laws."""
    laws = _laws(cells, rules, notes, samples)
    rule = any(name.endswith(".counts") for name in [*rules.all, *rules.columns])
    names = dict.fromkeys(name for cell in cells for name in cell.labels) if rule else ()
    labels = {name: rules.section(f"labels.{name}", guessed=True) for name in names}
    if all(law.law == TrueCounts() and not law.withheld for law in laws.values()):
        _ask_zeros(cells, rules)
    columns = {k.removesuffix(".counts"): v for k, v in rules.columns.items()
               if k.endswith(".counts")}  # fmt: skip
    return [_cell_law(c, laws[c.file], columns, labels) if rule else laws[c.file] for c in cells]


def _laws(
    cells: Sequence[Cell], rules: ReadingRules, notes: Mapping[str, Sequence[Note]],
    samples: Mapping[str, Note | None],
) -> dict[str, PlainLaw]:  # fmt: skip
    """Return the law of the plain counts of each file."""
    laws: dict[str, PlainLaw] = {}
    files_by_question: dict[str, list[str]] = {}
    by_file: dict[str, list[Cell]] = {}
    for cell in cells:
        by_file.setdefault(cell.file, []).append(cell)
    guesses = {file: _guess(part, rules, notes[file]) for file, part in by_file.items()}
    rules.rounded_sums |= {file for file, one in guesses.items() if one.summed}
    every = [g for g in guesses.values() if g.law.startswith("perturbed")]
    widest = max(every, key=lambda g: int(g.law.rpartition("-")[2]), default=None)
    for file, guessed in guesses.items():
        # Who changes the counts of one table changes all.
        guess, reason, doubtful, _ = widest if widest and guessed.law == "exact" else guessed
        if sentence := samples[file]:
            reason += f", although {sentence.quoted}"
        name = f"counts.{Path(file).name}"
        name = name if name in rules.choices or "counts" not in rules.choices else "counts"
        text = rules.choices.get(name, "")
        if not text:
            name = "counts" if rules.questions.get("counts", (guess,))[0] == guess else name
            files = files_by_question.setdefault(name, [])
            files.append(Path(file).name)
            text = rules.ask(name, guess, f"counts of {', '.join(files)}: {reason}")
            if doubtful or sentence:
                rules.open.add(name)
        if text == "exact":
            rules.alternatives |= {(name, other): None for other in _WEAKER}
        laws[file] = PlainLaw(*named_law(text) or (TrueCounts(), None))
    return laws


def _guess(cells: Sequence[Cell], rules: ReadingRules, notes: Sequence[Note]) -> _Guess:
    """Return the law that fits the plain counts of a file, and why."""
    note = any(_CHANGED.search(one.text) for one in notes)
    numbers = [ends[0] for cell in cells if cell.row and (ends := _number(cell.text))]
    steps = {cell.column: max(cell.unit, cell.step) for cell in cells if cell.row}
    if (step := min((n for n in steps.values() if n > 1), default=1)) > 1:
        for column, other in steps.items():
            if other != step:
                law, reason = (
                    (f"nearest-{other}", f"in units of {other}") if other > 1 else ("exact", "true")
                )
                answer = rules.ask(f"columns.{column}.counts", law, f"{column}: {reason}")
                rules.columns[f"{key(column)}.counts"] = answer
        reason = f"they are in units of {step:,}"
        reason += " (exact takes each as it stands)" * any(cell.unit > 1 for cell in cells)
        return _Guess(f"nearest-{step}", reason)
    positive, doubt = [n for n in numbers if n > 0], ""
    stated = bool({"counts", f"counts.{Path(cells[0].file).name}"} & rules.choices.keys())
    missed = _missed(coded := _coded(cells))
    if positive and (rule := rounding(notes)):
        way, base, sentence = rule
        most = base - 1 if way == "random" else base // 2  # by which one count may be off
        fits = all(abs(d) <= most * size for d, size in itertools.chain(*missed))
        if fits and base > 1 and not any(n % base for n in numbers):
            return _rounded(f"{way}-{base}", sentence.quoted, coded, rules, stated=stated)
        if base > 1 and any(n % base for n in numbers) and not stated:
            if rounded := _rounded_parts(cells, f"{way}-{base}", base, sentence, rules):
                return _Guess("exact", f"true, but {rounded} rounded: {sentence.quoted}")
            doubt = f"true, although {sentence.quoted}"
    base = next((b for b in (1000, 100, 10, 5, 3) if not any(n % b for n in numbers)), 0)
    few = len(positive) * log2(base or 1) < _BITS
    if base and few:
        multiples = f"all are multiples of {base}" if positive else "none is above 0"
        doubt = doubt or f"true, although {multiples}" * bool(numbers)
        base = 0  # perhaps by chance
    if base == 3 and len({*positive}) > 3 and all(n % 6 == 3 for n in positive):
        text = "all are 3, 9, 15 and so on; random-3 allows other counts"
        return _Guess("midpoint-6", text, doubtful=len(positive) < _BITS)
    if base:
        text = f"all are multiples of {base}; random holds for nearest, too"
        midpoint = base == 3 and all(n % 6 == 3 for n in positive)
        text += "; midpoint-6 fits as well" * midpoint
        guess = _rounded(f"random-{base}", text, coded, rules, stated=stated)
        return guess._replace(doubtful=midpoint or guess.doubtful)
    if base := _column_base(cells, rules):
        return _Guess(f"random-{base}", f"all are multiples of {base}, but in columns named so")
    # Whether most sums of some labels hold, so that parts are exact where totals are not.
    exact_parts = any(
        len(o) >= _ROWS and 3 * sum(not d for d, _ in o) >= 2 * len(o) for o in missed
    )
    if rounded := _rounded_totals(coded, rules, exact_parts=exact_parts):
        return _Guess("exact", f"true, but {rounded} rounded: sums of others miss them by little")
    if exact_parts and (changed := _changed_labels(coded, rules)):
        return _Guess("exact", f"true, but not {changed}: sums hold beside others alone")
    near = max(_LEAST_SHARE, int(np.median(positive)) // _SHARE if positive else 0)
    off = [
        pair for group in missed for pair in group
        if not note or max(abs(d) // size for d, size in group) <= near
    ]  # fmt: skip
    largest = _perturbed(off, note=note)
    if largest:
        number = sum(d != 0 for d, _ in off)
        text = f"sums are off in {number:,} of {len(off):,} groups, in both directions, by little"
        text = "a note says that counts are changed" if note else text
        text = f"{text}: each is changed by so much at most, which only the agency knows"
        return _Guess(f"perturbed-{largest}", text, doubtful=True)
    threes = len(positive) >= _ENOUGH and min(positive) == 3
    threes = threes and positive.count(3) > max(1, positive.count(4))  # of 1 and 2, too
    threes = threes and any(3 < n < _SMALL for n in positive)
    if threes and not any(is_mark(cell.text) for cell in cells):
        if numbers.count(0) > _FEW_ZEROS:
            text = "none is 1 or 2, which some agencies make 0 or 3"
            return _Guess("perturbed-2", text)
        return _Guess("stats-nz", "none is 1 or 2, which some agencies make 3")
    estimates = next((column for column in steps if key(column).startswith("estimate")), "")
    if estimates:
        doubt = f"true, although {estimates!r} may be an estimate of a survey, which is weighted"
    if round_counts := _round_counts(coded):
        doubt = doubt or f"true, although {round_counts}"
    if not any(d > 0 for d, _ in itertools.chain(*missed)):  # which says what 0 stands for
        doubt = doubt or _lack_small(cells, numbers)
    return _Guess("exact", doubt or "true", doubtful=bool(doubt))


def _lack_small(cells: Sequence[Cell], numbers: Sequence[int]) -> str:
    """Return a doubt of counts of which many are small and none below the least but 0."""
    least = min(filter(None, numbers), default=0)
    marks = sum(is_mark(cell.text) for cell in cells)
    small = sum(0 < n < 3 * least for n in numbers)  # of these a third would be below the least
    if least < 2 or small < _MANY_SMALL or numbers.count(0) <= max(_FEW_ZEROS, marks):
        return ""
    missing = "1" if least == 2 else f"from 1 to {least - 1}"
    return f"true, although none is {missing}: 0 may stand for those"


def _rounded_parts(
    cells: Sequence[Cell], law: str, base: int, note: Note, rules: ReadingRules
) -> str:
    """Return which columns and labels a note on rounding is of; ask about the law of each.

    Their counts are multiples of its base, by no chance, where others are none.
    """
    numbers: dict[tuple[str, str], list[int]] = {}
    words: dict[tuple[str, str], int] = {}
    for cell in cells:
        if not (cell.row and (ends := _number(cell.text))):
            continue
        for name, label in [("", cell.column), *cell.labels.items()]:
            numbers.setdefault((name, label), []).append(ends[0])
            words[name, label] = total_word(label, name)
    labels_shown = list[str]()
    for (name, label), every in numbers.items():
        bits = sum(n > 0 for n in every) * log2(base)
        supported = bool(words[name, label] and bits)
        if any(n % base for n in every) or not (supported or bits >= _BITS):
            continue
        section = f"columns.{label}" if not name else f"labels.{name}.{label}"
        answer = rules.ask(f"{section}.counts", law, f"{label}: {law}, as row {note.row} says")
        if not name:
            rules.columns[f"{key(label)}.counts"] = answer
        labels_shown.append(label)
    return listing(labels_shown)


def _column_base(cells: Sequence[Cell], rules: ReadingRules) -> int:
    """Return the divisor of the counts of most columns; ask about the others, which are exact."""
    columns: dict[str, set[int]] = {}
    for cell in cells:
        if cell.row and (ends := _number(cell.text)):
            columns.setdefault(cell.column, set()).add(ends[0])
    for base in (10, 5, 3):
        whole = [c for c, ns in columns.items() if not any(n % base for n in ns)]
        rest = [c for c in columns if c not in whole]
        if len(whole) > len(rest) and min(len(columns[c]) for c in whole) >= _DIFFERENT:
            for column in rest:
                name = f"columns.{column}.counts"
                rules.columns[f"{key(column)}.counts"] = rules.ask(name, "exact", f"{column}: true")
            return base
    return 0


def _rounded_totals(coded: CodedLabels, rules: ReadingRules, *, exact_parts: bool) -> str:
    """Return which labels are rounded sums of true counts; ask about the law of each.

    Their counts are multiples of a base, by no chance, and miss all sums by half of it at most.
    """
    labels_shown = list[str]()
    several = log2(sum(map(len, coded.spellings.values())) or 1)  # labels that are looked at
    for column, name in enumerate(coded.names):
        codes, bases = coded.codes[:, column], dict[int, int]()
        called = [exact_parts and total_word(k, name) == 2 for k in coded.spellings[name]]
        least = _BITS + np.where(called, 0, several)
        for base in _BASES:
            whole = coded.low % base == 0
            bits = np.bincount(codes, whole & (coded.low > 0)) * log2(base)
            multiples = (np.bincount(codes, ~whole) == 0) & (bits >= least)
            bases |= dict.fromkeys(np.flatnonzero(multiples), base)
        if not bases:
            continue
        sums = LabelSums(name, coded, {})
        spelled = {key(label): label for label in reversed(coded.labels[name])}
        for code, base in bases.items():
            label = spelled.get(coded.spellings[name][code], "")
            off = [d for d, _ in sums.missed(key(label), every=False)]
            if len(off) < 2 or not 0 < 2 * max(map(abs, off)) <= base:
                continue
            if label:
                called = f"a blank in {name}" if label == BLANK else label
                text = f"{called}: nearest-{base}, as sums of the others show"
                rules.ask(f"labels.{name}.{label}.counts", f"nearest-{base}", text)
            labels_shown.append(called if label else f"a count without {name}")
    return listing(labels_shown)


def _changed_labels(coded: CodedLabels, rules: ReadingRules) -> str:
    """Return labels beside which sums miss both ways, by little, and hold beside all others.

    Such are totals of areas whose sexes are rounded one by one; the law of each is asked about.
    It stands in two such sums at least, unless it is called a total.
    """
    results = dict[tuple[str, str], int]()
    for name in coded.names:
        sums = LabelSums(name, coded, {})
        words = [k for k in sums.column if total_word(k, name) == 2]
        parts = [k for k in sums.column if k and k not in words]
        if len(words) != 1 or len(parts) < 2:
            continue
        one = sums.in_groups(words[0], parts)
        telling, good, above, below, exact, near, _ = one.numbers.astype(bool)
        wrong = telling & ~good
        few = 0 < 2 * wrong.sum() <= exact.sum()
        if not few or not (above.any() and below.any()) or (wrong & ~near).any():
            continue
        most = _perturbed([pair for pair in sums.missed(words[0]) if pair[0]], note=True)
        for column, other in enumerate(coded.names):
            codes = coded.codes[one.cells, column]
            label, group = np.unique(np.stack([codes, one.group]), axis=1)
            missed, sums_held = (np.bincount(label, n[group]) for n in (wrong, exact))
            called = [total_word(k, other) == 2 for k in coded.spellings[other][: len(sums_held)]]
            changed = np.flatnonzero((sums_held == 0) & (missed > 0) & (missed + called > 1))
            equal = {*one.group[np.isin(codes, changed)]} == {*np.flatnonzero(wrong)}
            if other != name and 0 < len(changed) <= _MOST_ADDED and equal:
                spelled = {key(x): x for x in reversed(coded.labels[other])}
                keys = [coded.spellings[other][code] for code in changed]
                results |= {(other, spelled[k]): most for k in keys if k}
    for (other, label), most in results.items():
        question = f"labels.{other}.{label}.counts"
        text = f"{label}: sums show changes, of {most} or what only the agency knows at most"
        if not rules.choices.get(question) and rules.ask(question, f"perturbed-{most}", text):
            rules.open.add(question)
    return listing(label for _, label in results)


def _round_counts(coded: CodedLabels) -> str:
    """Return of which label so many counts are multiples of a base that it is no chance.

    Of exact counts a share 1 / b are multiples of b.  That k of n are, with f = k / n, has about
    n (f log2(f b) + (1 - f) log2((1 - f) b / (b - 1))) bits against it.  Small counts are more
    often equal to the smallest multiple, and are left out.
    """
    best = (float(_ROUND_BITS), "")
    for column, base in itertools.product(range(len(coded.names)), _ROUND_BASES):
        name, codes, large = coded.names[column], coded.codes[:, column], coded.low >= 10 * base
        number = np.maximum(np.bincount(codes, large), 1)
        multiples = np.bincount(codes, large & (coded.low % base == 0))
        share = np.clip(multiples / number, 1e-9, 1 - 1e-9)
        bits = share * np.log2(share * base) + (1 - share) * np.log2(
            (1 - share) * base / (base - 1)
        )
        bits = np.where(2 * share > 1, bits * number, 0.0)
        code = int(bits.argmax())
        if bits[code] > best[0]:
            label = coded.spellings[name][code]
            counts = f"counts of {label}" if label else f"counts without {name}"
            text = f"{int(multiples[code])} of {int(number[code])} {counts}"
            best = (float(bits[code]), f"{text} are multiples of {base}")
    return best[1]


def _coded(cells: Sequence[Cell]) -> CodedLabels:
    """Return labels and numbers, open where a mark stands, without parts of a count beside them."""
    ends, spelled = list[tuple[int, int]](), list[dict[str, str]]()
    parts = {x for x in {x for cell in cells for x in cell.labels.values()} if SOME.match(x)}
    for cell in cells:
        if parts and not parts.isdisjoint(cell.labels.values()):
            continue  # no total is the sum of such a part
        ends.append(number_range(cell.text) or (0, UNBOUNDED))
        spelled.append(cell.labels)
    return CodedLabels(spelled, ends)


def _missed(coded: CodedLabels) -> list[list[tuple[int, int]]]:
    """Return by how much totals exceed the sums of numbers, and how many counts each sum has.

    The pairs of each variable stand together.
    """
    words = {name: {key(x): total_word(x) for x in labels} for name, labels in coded.labels.items()}
    totals = {
        name: sorted(filter(labels.get, labels), key=lambda k: -labels[k])
        for name, labels in words.items()
    }
    off = list[list[tuple[int, int]]]()
    for column, (name, every) in enumerate(totals.items()):
        if not every and coded.codes[:, column].all():
            continue  # there is no total
        sums = LabelSums(name, coded, totals)
        off.append(sums.missed(every[0] if every else ""))
    return list(filter(None, off))


def _rounded(
    law: str, reason: str, coded: CodedLabels, rules: ReadingRules, *, stated: bool
) -> _Guess:
    """Return the guess of a law of rounded counts; ask how far off totals are that are their sums.

    A sum of n counts, each rounded to the nearest, misses its total by a variance of n / 12 squares
    of the base, so that it holds with a probability of about 1 / sqrt(2 pi n / 12).  Sums of one
    more variable speak for it twice as much.  The law is doubtful if labels that count all are not
    there to be asked about, or too many.
    """
    sums_by_name = {} if stated else {n: one for n, one in sums_shown(coded, rules).items() if one}
    bits = float(len(sums_by_name))
    for name, wholes in sums_by_name.items():
        judged = LabelSums(name, coded, {})
        for whole, parts in wholes.items():
            bits += judged.adding_up(parts)(whole).good * log2(pi * (len(parts) + 1) / 6) / 2
    if bits < _ADDED_BITS:
        return _Guess(law, reason)
    reason += "; but sums hold, so that totals may be sums of rounded counts"
    every = [(name, whole) for name, labels in coded.labels.items()  # who adds up some does all
             for whole in sums_by_name.get(name) or map(key, labels)
             if name in sums_by_name or total_word(whole) == 2]  # fmt: skip
    if len(every) > _MOST_ADDED or not all(whole for _, whole in every):
        return _Guess(law, reason, doubtful=True, summed=True)
    most = int(law.rpartition("-")[2]) - 1
    size = prod(max(len(labels) - 1, 1) for labels in coded.labels.values())
    for name, whole in every:
        label = next(x for x in coded.labels[name] if key(x) == whole)
        text = f"{label}: a sum of rounded counts, each off by {most} at most"
        rules.ask(f"labels.{name}.{label}.counts", f"perturbed-{most * size}", text)
    return _Guess(law, reason, summed=True)


def _perturbed(off: Sequence[tuple[int, int]], *, note: bool) -> int:
    """Return by how much each count may be changed; 0 if sums do not show it, and nothing says it.

    Three standard deviations, as sums show them that are off both ways, or what they need.
    """
    both_ways = any(d > 0 for d, _ in off) and any(d < 0 for d, _ in off)
    if not note and (not both_ways or any(abs(d) > 6 * size for d, size in off)):
        return 0
    variance = sum(d * d / size for d, size in off) / max(len(off), 1)
    needed = max((-(-abs(d) // size) for d, size in off), default=0)
    return max(2 if any(d for d, _ in off) else _UNSEEN, needed, ceil(3 * sqrt(variance)))


def _ask_zeros(cells: Sequence[Cell], rules: ReadingRules) -> None:
    """Ask whether counts of 0 are small ones, where none is small and totals exceed their parts."""
    texts = [cell.text for cell in cells if cell.row and number_range(cell.text)]
    if not all(map(_number, {*texts})) or any(map(is_mark, {cell.text for cell in cells})):
        return  # small counts stand as ranges or marks
    numbers = [end[0] for text in texts if (end := number_range(text))]
    least = min(filter(None, numbers), default=0)
    if len(numbers) < _ENOUGH or numbers.count(0) < 3 or least < 4:
        return
    if any(d > 0 for d, _ in itertools.chain(*_missed(_coded(cells)))):
        text = f"none is from 1 to {least - 1}, and totals exceed their parts: 0 stands for those"
        rules.ask("marks.0", f"0-{least - 1}", text)


def _ask_nines(cells: Sequence[Cell], rules: ReadingRules) -> dict[str, str]:
    """Ask whether 999 or 9999 stands for what is withheld, where it is more common than others."""
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
) -> dict[str, str]:  # fmt: skip
    """Ask whether marks are what notes say, where the numbers do not speak against it."""
    texts = {c.text for c in cells if not number_range(c.text)} if notes else set[str]()
    marks = [t for t in texts if f"marks.{t}" not in rules.all and not noted(t)]
    marks = sorted(t for t in marks if is_mark(t) or not any(map(str.isdigit, t)))
    answers = dict[str, str]()
    for mark in marks:
        finding = marked(mark, notes, alone=len(marks) == 1)
        if finding and (finding[0] in _UNKNOWN or _fits(mark, finding[0], cells, laws)):
            meaning = _UNKNOWN.get(finding[0], finding[0])
            text = f"{mark!r} is {meaning}: {finding[1].quoted}"
            answers[mark] = rules.ask(f"marks.{mark}", finding[0], text)
    return answers


def _sentences(
    cells: Sequence[Cell], rules: ReadingRules, answers: Mapping[str, str]
) -> dict[str, str]:
    """Return texts of words in the place of counts, of which many may be any; a line says so."""
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.text, cell)
    texts = [
        t for t in first
        if len(_WORD.findall(t)) > 1 and not (is_mark(t) or noted(t) or number_range(t))
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
    """Return whether a mark may be a range: few such counts are shown, and all sums allow it."""
    low, high = number_range(text) or (0, 0)
    every = [(0, UNBOUNDED)] * len(cells)
    for position, (cell, law) in enumerate(zip(cells, laws, strict=True)):
        if ends := _number(cell.text):
            every[position] = _support(law.law, _counted(cell, law.law, ends[0]))
    small = [c for c, (a, b) in zip(cells, every, strict=True)  # 5 that is rounded may be 6
             if c.row and max(low, 1) <= a <= b <= high]  # fmt: skip
    if _FEWER * len(small) > sum(cell.text == mark for cell in cells):
        return False
    pairs = [*_sums_with(mark, (low, high), cells, every)]
    more = sum(b.good - a.good for a, b in pairs)
    missed = sum(b.telling - b.good for a, b in pairs if a.telling == a.good)
    return _MOST_MISSED * missed <= more


def _sums_with(
    mark: str, ends: Ends, cells: Sequence[Cell], every: Sequence[Ends]
) -> Iterator[tuple[Groups, Groups]]:
    """Yield for each total the groups that add up to it, without and with the range of a mark."""
    proposal = [ends if c.text == mark else e for c, e in zip(cells, every, strict=True)]
    labels = [cell.labels for cell in cells]
    return zip(_sums(labels, every), _sums(labels, proposal), strict=True)


def _sums(labels: Sequence[Mapping[str, str]], ends: Sequence[Ends]) -> Iterator[Groups]:
    """Yield for each variable with a total in which groups others add up to it."""
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
    """Ask whether a dash is 0, where in all rows that have one the rest add up to their total."""
    answers = dict[str, str]()
    rows: dict[tuple[str, int], list[str]] = {}
    for cell in cells:
        rows.setdefault((cell.file, cell.row), []).append(cell.text)
    texts_of_cells = {cell.text for cell in cells}
    for dash in filter(texts_of_cells.__contains__, _DASHES):
        every = [texts for texts in rows.values() if dash in texts]
        numbers = [[end[0] for t in texts if t != dash and (end := _number(t))] for texts in every]
        full = [n for n, texts in zip(numbers, every, strict=True)
                if len(n) + texts.count(dash) == len(texts) and any(n)]  # fmt: skip
        if len(full) >= _ROWS and all(len(n) > 1 and 2 * max(n) == sum(n) for n in full):
            text = f"{dash!r} is 0: without it the others add up to a total in {len(full)} rows"
            answers[dash] = rules.ask(f"marks.{dash}", "0", text)
    return answers


def _ask_sums(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules, answers: Mapping[str, str]
) -> dict[str, str]:
    """Ask whether a mark is no count, where totals are then exactly the sums of all others.

    Such are marks by which no office withholds: a dash is 0, another one tells that there is none.
    """
    results = dict[str, str]()
    if not all(law.law == TrueCounts() for law in laws):
        return results
    every = [_number(cell.text) or (0, UNBOUNDED) for cell in cells]
    texts = {cell.text for cell in cells if NO_COUNT.fullmatch(cell.text)} - answers.keys()
    for mark in sorted(text for text in texts if f"marks.{text}" not in rules.all):
        good, missed = 0, 0
        for before, after in _sums_with(mark, (0, 0), cells, every):
            fits = after.good - before.good
            missed += after.telling - before.telling - fits
            certain = before.telling == before.good and after.no_chance
            good += fits * (certain or after.nearly)
        if good >= max(_ROWS, _MOST_MISSED * missed):
            text = f"totals are the sums of all others in {good} groups"
            guess, word = ("0", "0") if mark in _DASHES else ("missing", "no count, and left out")
            results[mark] = rules.ask(f"marks.{mark}", guess, f"{mark!r} is {word}: {text}")
    return results


def _ask_nothing(
    cells: Sequence[Cell], laws: Sequence[PlainLaw], rules: ReadingRules
) -> dict[str, str]:
    """Ask whether a dash is 0, where no 0 stands and counts of 1 and 2 are shown: none is hidden.

    Sums must not deny it, and no other mark may hide small counts.
    """
    times = Counter(cell.text for cell in cells if cell.row)
    marks = {t for t in times if is_mark(t) and t and f"marks.{t}" not in rules.all}
    if times["0"] or times["1"] + times["2"] < _SHOWN or not all(map(NO_COUNT.fullmatch, marks)):
        return {}
    text = "{!r} is 0: no 0 is stated, and counts of 1 and 2 are"
    return {m: rules.ask(f"marks.{m}", "0", text.format(m))
            for m in sorted(marks & {*_DASHES}) if _fits(m, "0", cells, laws)}  # fmt: skip


def _ask_flags(cells: Sequence[Cell], rules: ReadingRules) -> dict[str, str]:
    """Ask whether counts beside a note are withheld, where each of several is 0."""
    numbers: dict[str, list[str]] = {}
    for note in (noted(cell.text) for cell in cells):
        if note:
            numbers.setdefault(note.note, []).append(note.number)
    return {
        mark: rules.ask(f"marks.{mark}", "withheld", f"{mark!r} is withheld: beside it is 0 always")
        for mark, texts in numbers.items()
        if len(texts) > 1 and {*texts} == {"0"} and f"marks.{mark}" not in rules.choices
    }


@functools.lru_cache(maxsize=2**16)
def _number(text: str) -> tuple[int, int] | None:
    return number_range(text) if WHOLE.fullmatch(text) else None


def _cell_law(
    cell: Cell, law: PlainLaw, columns: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]
) -> PlainLaw:
    """Return the law of a cell's column or of one of its labels, if said; else its file's."""
    if key(cell.column) in columns:
        return PlainLaw(*named_law(columns[key(cell.column)]) or law)
    for name, label in cell.labels.items():
        if choice := labels[name].get(f"{key(label)}.counts"):
            return PlainLaw(*named_law(choice) or law)
    return law


def _counted(cell: Cell, law: Likelihood, number: int) -> int:
    """Return a number in persons, if its law rounds counts to the unit of the cell or more."""
    low, high = _support(law, number * cell.unit)
    return number * cell.unit if high - low >= cell.unit - 1 else number


def _plain(cell: Cell, law: Likelihood, number: int) -> Value:
    """Return a count as it stands; refuse one that is not rounded as all are."""
    number = _counted(cell, law, number)
    low, high = _support(law, number)
    if low > high:
        raise cell.refuse(f"be rounded as counts says ({law})")
    return Value(law, number)


def _value(cell: Cell, rule: PlainLaw, rules: ReadingRules, answers: Mapping[str, str]) -> Value:
    """Return the meaning of a cell; refuse a text that is no count, no range and no mark."""
    text, law, marked = cell.text, rule.law, f"marks.{cell.text}" in rules.choices
    marked = marked or (text in answers and WHOLE.fullmatch(text) is not None)
    ends = None if marked else number_range(text)
    if ends and f"marks.{text}" in rules.questions:  # a number that stands for others
        ends = number_range(rules.questions[f"marks.{text}"][0]) or ends
        text = ""
    if ends and WHOLE.fullmatch(text) and cell.row:
        return _plain(cell, law, ends[0])
    if ends is None:
        if WHOLE.fullmatch(text) and not marked:
            raise cell.refuse(f"leave the sum of all counts below {UNBOUNDED:,}")
        note = None if marked else noted(text)
        mark = note.note if note else text
        whole = marked or not (DECIMAL.fullmatch(text) or NEGATIVE.fullmatch(text))
        words = _WORD.findall(mark)
        digits = whole and not note and not marked and any(map(str.isdigit, mark))
        small = small_counts(mark.casefold()) if digits and words else None
        said_so = small or is_mark(mark) or mark in answers
        if digits and not said_so and len(words) < _WORDS:
            raise cell.refuse(
                "be a count, a range such as 1-4 or <5, or a mark (marks.MARK=withheld or 1-4)"
            )
        guess, meaning = "withheld", "a count that is not stated and may be any"
        meaning += f", such as 0 (marks.{text}=0)" * (text in _DASHES)
        if rule.withheld and not note:
            guess, meaning = span(*rule.withheld), "withheld by the rule of the counts"
        if not whole:
            guess, meaning = "withheld", "no count: it may stand for any"
        if small:
            guess, meaning = span(*small), "a small count, as it says"
        if note:
            guess, meaning = "note", "a note beside a count that holds"
        answer = answers.get(mark, "")  # as sums show, or words
        answer = "" if note and answer != "withheld" else answer
        if not answer:
            answer = rules.ask(f"marks.{mark}", guess, f"{mark!r} is {meaning}")
        if answer in _UNKNOWN:
            return Value(law, 0, hidden=True, kind="missing" * (answer == "missing"))
        if answer == "note" and not note:
            raise cell.refuse("have a count beside the note")
        number = number_range(note.number) if note else None
        if answer == "note" and number:
            return _plain(cell, law, number[0])
        ends = number_range(answer) or (0, UNBOUNDED)
        rules.alternatives[f"marks.{mark}", "withheld"] = None
    return range_value(*ends, law)


def limit_value(high: int) -> Value:
    """Return the meaning of a limit: one law has them all, and so one table."""
    if not high:
        return Value(TrueCounts(), 0, kind="exact")
    return Value(CountLimits(), high, kind="at most")


def range_value(low: int, high: int, law: Likelihood) -> Value:
    """Return the meaning of a range, beside plain counts of a law."""
    if low == high:
        return Value(TrueCounts(), low, kind="" if law.exact else "exact")
    spread = SuppressedCounts(low, None if high >= UNBOUNDED else high).rule
    return Value(spread, low, kind=span(low, high)) if spread else Value(law, 0, hidden=True)
