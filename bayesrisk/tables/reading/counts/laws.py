"""Laws of published counts, by name, or guessed from numbers, sums and notes."""

import functools
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from math import ceil, log2, pi, prod, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED, Likelihood, TrueCounts
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.notes import Note, bases, rounding
from bayesrisk.tables.reading.rules import ReadingRules, law as named_law
from bayesrisk.tables.reading.variables.ages import nested_ages
from bayesrisk.tables.reading.variables.evidence import sums_shown
from bayesrisk.tables.reading.variables.sums import MOST_OFF, CodedLabels, LabelSums
from bayesrisk.tables.reading.variables.variable import intervals
from bayesrisk.tables.sheets.texts import (
    BLANK,
    SOME,
    WHOLE,
    is_mark,
    key,
    listing,
    number_range,
    total_word,
)

#: Alternatives to exact counts, the most informative first.
_ROUNDED = [f"{way}-{base}" for way in ("nearest", "random") for base in (3, 5)]
_WEAKER = ("stats-nz", "perturbed-1", *_ROUNDED, "perturbed-2", "perturbed-5")
#: The largest change if a note says that counts are changed, and no sum shows how much.
_UNSEEN = 5
_MANY_SMALL = 20  # counts, so that missing smaller ones are no chance
_FEW_ZEROS = 2  # among counts without 1 and 2
#: The number of counts among which missing small ones are no chance.
_ENOUGH = 12
_FEW_SUMS = 4  # of which most hold
#: Bases for rounded totals of true counts.
_BASES = (5, 10, 100, 1000)
#: Sums that are off by more than both this share of counts and this number have overlaps.
_SHARE, _LEAST_SHARE = 20, 20
#: Numbers are multiples of a base by chance in one case of 2**8.
_BITS = 8
#: Bits of evidence that totals are sums of rounded counts.
_ADDED_BITS = 5
#: Sums that hold for each error of an office; sums of changed counts hold less often.
OF_AN_ERROR = 50
_MOST_LABELS = 128  # to search for one that is nearly the sum of the others
_MOST_ADDED = 12  # labels to ask about one by one
#: Most counts of one label are multiples by chance in one case of 2**30.
_ROUND_BASES, _ROUND_BITS = (100, 10, 5), 30
#: Distinct numbers of a column that are not all multiples by chance.
_DIFFERENT = 6
#: The bound on other small counts where 1 and 2 become 3.
_SMALL = 10
_CHANGED = re.compile(
    r"(randomly|slightly) (adjusted|altered|changed|modified)|perturb|cell.?key|\bckm\b|"
    r"(adjusted|altered|modified|treated) .{0,40}(confidential|disclos|privacy|protect|identif)|"
    r"small (cells|counts|numbers|values) (have been|were|are) (adjusted|altered|changed|modified)|"
    r"random(ised)? (adjustment|error|noise)|noise (has been|was|is) added|noise infusion|"
    r"differential(ly)? priva|(plus or minus|\+/-|±) ?\d|confiden.{0,40}slightly modif|"
    r"\bbruit(s|ée?s?)?\b|(ruido|ruído|ruis) .{0,30}(a los|aos|ajout|toegevoegd|add|adicion)|"
    r"(leicht|zufällig) (ver|abge)änder|verfremdet|überlager|zaszum|zaburz|誤差を加|雑音|"
    r"(små|tilfeldig|slumpmässig)\w* (endring|ändring|störning|støy)",
    re.IGNORECASE,
)
#: A sentence on rounding without a base.
_SOME_ROUNDING = re.compile(
    r"\b(are|been|were|is|values|figures) rounded\b(?! (percent|rate))|significant (figures|"
    r"digits)|gerundet|arrondi|redondead|arredondad|arrotondat|afgerond|avrunda|avrundet|afrundet|zaokrągl|"
    r"pyöriste|округл|丸め|四捨五入|반올림",
    re.IGNORECASE,
)


class _Guess(NamedTuple):
    """A guessed law with its reason; whether another fits as well, and whether sums hold."""

    law: str
    reason: str
    doubtful: bool = False
    summed: bool = False


class PlainLaw(NamedTuple):
    """The law of plain counts, and the range of withheld ones under the rule."""

    law: Likelihood
    withheld: tuple[int, int] | None = None


@functools.lru_cache(maxsize=2**16)
def support(law: Likelihood, number: int) -> tuple[int, int]:
    """Return the smallest and largest true count that a law allows for a number."""
    low, high = law.support(number)
    return int(low), int(high)


def cell_laws(
    cells: Sequence[Cell], rules: ReadingRules, notes: Mapping[str, Sequence[Note]],
    samples: Mapping[str, Note | None],
) -> list[PlainLaw]:  # fmt: skip
    """Return the law of each cell, and add questions on laws to ``rules``."""
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
        # An agency that changes the counts of one table changes all.
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
    """Return the law that fits the plain counts of a file, with the reason."""
    note = any(_CHANGED.search(one.text) for one in notes)
    numbers = [ends[0] for cell in cells if cell.row and (ends := plain_number(cell.text))]
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
    positive, doubt, note_denied = [n for n in numbers if n > 0], "", ""
    stated = bool({"counts", f"counts.{Path(cells[0].file).name}"} & rules.choices.keys())
    missed = _missed(coded := _coded(cells))
    if positive and (rule := rounding(notes)):
        way, base, sentence = rule
        if way == "perturbed":  # one of two bases: change by the larger one less 1 at most
            return _Guess(f"perturbed-{base}", sentence.quoted)
        most = base - 1 if way == "random" else base // 2  # by which one count may be off
        fits = all(abs(d) <= most * size for d, size in itertools.chain(*missed))
        if fits and base > 1 and not any(n % base for n in numbers):
            halves = ", halves upwards" * (way == "nearest" and base % 2 == 0)
            reason = sentence.quoted + halves
            every = bases(notes)
            return _rounded(f"{way}-{base}", reason, coded, rules, stated=stated, named=every)
        if base > 1 and not (fits or any(n % base for n in numbers)):
            number = sum(abs(d) > most * size for d, size in itertools.chain(*missed))
            sums = f"{number} sum" + "s" * (number > 1)
            note_denied = f"; {sums} deny that {sentence.quoted}"
        if base > 1 and any(n % base for n in numbers):
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
        inside = all(2 * abs(d) <= base * size for d, size in itertools.chain(*missed))
        text = f"all are multiples of {base}; random holds for nearest, too"
        text += f" (counts=nearest-{base} if they are so rounded)" * inside
        midpoint = base == 3 and all(n % 6 == 3 for n in positive)
        text += "; midpoint-6 fits as well" * midpoint + note_denied
        guess = _rounded(f"random-{base}", text, coded, rules, stated=stated)
        return guess._replace(doubtful=midpoint or guess.doubtful)
    if base := _column_base(cells, rules):
        return _Guess(f"random-{base}", f"all are multiples of {base}, but in columns named so")
    # Whether most sums of some labels hold: then parts are exact even if totals are not.
    exact_parts = any(
        len(o) >= _FEW_SUMS and 3 * sum(not d for d, _ in o) >= 2 * len(o) for o in missed
    )
    if rounded := _rounded_totals(coded, rules, exact_parts=exact_parts):
        return _Guess("exact", f"true, but {rounded} rounded: sums of others miss them by little")
    if exact_parts and (changed := _changed_labels(coded, rules)):
        return _Guess("exact", f"true, but not {changed}: sums hold beside others alone")
    ages = _missed_by_ages(coded)
    if changed_ages := any(d for d, _ in ages):  # of the same people, unlike other sums
        missed = [ages, *(group for group in missed if _are_near(group))]
    near = max(_LEAST_SHARE, int(np.median(positive)) // _SHARE if positive else 0)
    off = [
        pair for group in missed for pair in group
        if not note or max(abs(d) // size for d, size in group) <= near
    ]  # fmt: skip
    number = sum(d != 0 for d, _ in off)
    few = not note and OF_AN_ERROR * number <= len(off) - number  # errors of the agency
    largest = 0 if few else _perturbed(off, one_way=changed_ages, note=note)
    if largest:
        text = f"sums are off in {number:,} of {len(off):,} groups, "
        text += "by little" if changed_ages else "in both directions, by little"
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
    note_doubts = [f"true, although {n.quoted}" for n in notes if _SOME_ROUNDING.search(n.text)]
    if note_doubts and (not missed or any(d for d, _ in itertools.chain(*missed))):
        doubt = doubt or note_doubts[0]
    zero = any(d > 0 for d, _ in itertools.chain(*missed)) or "marks.0" in rules.choices
    if not zero:  # neither sums nor a setting explain 0
        doubt = doubt or _lack_small(cells, numbers)
    return _Guess("exact", doubt or "true", doubtful=bool(doubt))


def _lack_small(cells: Sequence[Cell], numbers: Sequence[int]) -> str:
    """Return a doubt about exact counts if many are small, but none below the least except 0."""
    least = min(filter(None, numbers), default=0)
    marks = sum(is_mark(cell.text) for cell in cells)
    small = sum(0 < n < 3 * least for n in numbers)  # a third of these would be below the least
    needed = _ENOUGH if least <= _SMALL else _MANY_SMALL
    if least < 2 or small < needed or numbers.count(0) <= max(_FEW_ZEROS, marks):
        return ""
    ranges = {ends for cell in cells if cell.row and (ends := number_range(cell.text))}
    if any(low <= 1 and least - 1 <= high < UNBOUNDED and low < high for low, high in ranges):
        return ""  # a range such as <5 replaces them
    missing = "1" if least == 2 else f"from 1 to {least - 1}"
    text = f"true, although none is {missing}: 0 may stand for those"
    return f"{text} (marks.0=0-{least - 1} if it does)"


def _rounded_parts(
    cells: Sequence[Cell], law: str, base: int, note: Note, rules: ReadingRules
) -> str:
    """Return the columns and labels to which a note on rounding applies; ask about each law.

    Their counts are multiples of its base, not by chance, while others are not.
    """
    numbers: dict[tuple[str, str], list[int]] = {}
    words: dict[tuple[str, str], int] = {}
    for cell in cells:
        if not (cell.row and (ends := plain_number(cell.text))):
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
    """Return the base of the counts of most columns; ask about the others, which are exact."""
    columns: dict[str, set[int]] = {}
    for cell in cells:
        if cell.row and (ends := plain_number(cell.text)):
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
    """Return the labels that are rounded sums of true counts; ask about the law of each.

    Their counts are multiples of a base, not by chance, and miss all sums by at most half of it.
    """
    labels_shown = list[str]()
    several = log2(sum(map(len, coded.spellings.values())) or 1)  # labels tried
    for column, name in enumerate(coded.names):
        codes, bases = coded.codes[:, column], dict[int, int]()
        words = [total_word(k, name) == 2 for k in coded.spellings[name]]
        least = _BITS + np.where(np.logical_and(words, exact_parts), 0, several)
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
            off = sorted(
                ((abs(d), n) for d, n in sums.missed(key(label), every=False)), reverse=True
            )
            # The parts of one sum may be rounded totals too.
            first, *rest = off or [(0, 0)]
            rest = rest if len(rest) > 2 and 2 * first[0] <= base * (1 + first[1]) else off
            if len(off) < 2 - words[code] or not 0 < 2 * rest[0][0] <= base:
                continue
            if label:
                title = f"a blank in {name}" if label == BLANK else label
                text = f"{title}: nearest-{base}, as sums of the others show"
                rules.ask(f"labels.{name}.{label}.counts", f"nearest-{base}", text)
            labels_shown.append(title if label else f"a count without {name}")
    return listing(labels_shown)


def _changed_labels(coded: CodedLabels, rules: ReadingRules) -> str:
    """Return labels at which sums miss in both directions by little, but hold at all others.

    An example is totals of areas whose sexes are rounded one by one. The law of each is asked
    about. Each has two such sums at least, unless it is called a total.
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
    """Return the label with too many multiples of a base for chance; empty if none.

    A share 1 / b of exact counts are multiples of b. If a share f of n are, the evidence is about n
    (f log2(f b) + (1 - f) log2((1 - f) b / (b - 1))) bits. Small counts often equal the smallest
    multiple, and are left out.
    """
    best = (float(_ROUND_BITS), "")
    for column, base in itertools.product(range(len(coded.names)), _ROUND_BASES):
        name, large = coded.names[column], coded.low >= 10 * base
        pairs = np.stack([coded.codes[large, column], coded.low[large]])
        codes, low = np.unique(pairs, axis=1)  # a count repeated on many days is used once
        number = np.maximum(np.bincount(codes), 1)
        multiples = np.bincount(codes, low % base == 0)
        share = np.clip(multiples / number, 1e-9, 1 - 1e-9)
        bits = share * np.log2(share * base) + (1 - share) * np.log2(
            (1 - share) * base / (base - 1)
        )
        bits = np.where(2 * share > 1, bits * number, 0.0)
        code = int(bits.argmax()) if len(bits) else 0
        if len(bits) and bits[code] > best[0]:
            label = coded.spellings[name][code]
            counts = f"counts {f'of {label}' if label else f'without {name}'} that differ"
            text = f"{int(multiples[code])} of {int(number[code])} {counts}"
            best = (float(bits[code]), f"{text} are multiples of {base}")
    return best[1]


def _coded(cells: Sequence[Cell]) -> CodedLabels:
    """Return labels and numbers, unbounded at marks, without counts that are parts ("of which")."""
    ends, spelled = list[tuple[int, int]](), list[dict[str, str]]()
    parts = {x for x in {x for cell in cells for x in cell.labels.values()} if SOME.match(x)}
    for cell in cells:
        if parts and not parts.isdisjoint(cell.labels.values()):
            continue  # no total is a sum with such a part
        ends.append(number_range(cell.text) or (0, UNBOUNDED))
        spelled.append(cell.labels)
    return CodedLabels(spelled, ends)


def _missed(coded: CodedLabels) -> list[list[tuple[int, int]]]:
    """Return the excess of totals over sums of numbers, and the number of counts in each sum.

    The pairs of each variable form a list. Without a word for a total, the total is the label that
    is nearly the sum of all others.
    """
    words = {name: {key(x): total_word(x) for x in labels} for name, labels in coded.labels.items()}
    totals = {
        name: sorted(filter(labels.get, labels), key=lambda k: -labels[k])
        for name, labels in words.items()
    }
    off = list[list[tuple[int, int]]]()
    for column, (name, every) in enumerate(totals.items()):
        implied = not coded.codes[:, column].all()
        if every or implied or len(coded.labels[name]) <= _MOST_LABELS:
            sums = LabelSums(name, coded, totals)
            total = "" if implied or every else sums.near_total()
            off.append(sums.missed(every[0] if every else total))
    return list(filter(None, off))


def _missed_by_ages(coded: CodedLabels) -> list[tuple[int, int]]:
    """Return the excess of age groups over those inside, and the number of counts in each sum.

    The group of all ages is left out, since it may include unknown ages.
    """
    off = list[tuple[int, int]]()
    for name, labels in coded.labels.items():
        ends = {k: end for k, end in intervals({key(x): x for x in labels}).items() if end}
        if not 3 <= len(ends) == len(coded.spellings[name]) - 1:
            continue
        every = min(low for low, _ in ends.values()), max(high for _, high in ends.values())
        sums = LabelSums(name, coded, {})
        for label, parts in nested_ages(ends).items():
            off += sums.missed(label, parts) if parts and ends[label] != every else []
    return off


def _rounded(
    law: str, reason: str, coded: CodedLabels, rules: ReadingRules, *, stated: bool,
    named: Collection[int] = (),
) -> _Guess:  # fmt: skip
    """Return the guess of a law of rounded counts; ask about totals that are their sums.

    The error of a sum of n counts rounded to the nearest has a variance of n / 12 squares of the
    base. So the sum holds with a probability of about 1 / sqrt(2 pi n / 12). Each variable with
    sums adds one bit of evidence. The law is doubtful if labels of totals are missing, or too many
    to ask about.
    """
    law, text, several = _ask_coarser(law, coded, rules, named)
    reason += text
    sums_by_name = {} if stated else {n: one for n, one in sums_shown(coded, rules).items() if one}
    bits = float(len(sums_by_name))
    for name, wholes in sums_by_name.items():
        judged = LabelSums(name, coded, {})
        for whole, parts in wholes.items():
            bits += judged.adding_up(parts)(whole).good * log2(pi * (len(parts) + 1) / 6) / 2
    if bits < _ADDED_BITS:
        return _Guess(law, reason, doubtful=several)
    reason += "; but sums hold, so that totals may be sums of rounded counts"
    every = [(name, whole) for name, labels in coded.labels.items()  # all, if some are added up
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
    return _Guess(law, reason, doubtful=several, summed=True)


def _ask_coarser(
    law: str, coded: CodedLabels, rules: ReadingRules, named: Collection[int]
) -> tuple[str, str, bool]:
    """Ask about labels whose counts are rounded to a larger base, as national totals often are.

    All are its multiples, not by chance, or a note names it. If most labels are, the others are
    asked about, and the law is that of most. The result is the law, a reason, and whether there are
    too many to ask about.
    """
    (way, _, base), labels = law.partition("-"), list[tuple[str, str, BoolArray]]()
    in_total, tried = np.zeros(len(coded.low), np.bool_), 0
    for column, (name, texts) in enumerate(coded.labels.items()):
        for label in texts:
            inside = coded.codes[:, column] == coded.spellings[name].index(key(label))
            labels.append((name, label, inside & (coded.low > 0)))
            in_total |= labels[-1][2] if total_word(label, name) == 2 else False
        tried += len(texts)
    every, fine = dict[tuple[str, str], int](), np.ones(len(coded.low), np.bool_)
    frequent = {step for step in _BASES if _too_many_multiples(coded.low, int(base), step)}
    for name, label, inside in labels:
        total = total_word(label, name) == 2
        counts = coded.low[in_total if total else inside]
        bits = _BITS + (0 if total else log2(tried))
        least = int(base) * 2 ** (bits / max(len(counts), 1))
        for step in [b for b in _BASES if b > int(base) and b % int(base) == 0 and len(counts)]:
            evidence = step >= least or step in {*named, *frequent}
            if evidence and not (counts % step).any():
                every[name, label] = step
                fine &= ~inside
    reason = ""
    for name, texts in coded.labels.items():
        rest = [label for label in texts if (name, label) not in every]
        steps = {every[name, label] for label in texts if (name, label) in every}
        whole = coded.codes[:, coded.names.index(name)].all() and len(rest) <= _MOST_ADDED
        if whole and len(steps) == 1 and len(texts) - len(rest) > _MOST_ADDED:
            every, law = {(name, label): int(base) for label in rest}, f"{way}-{min(steps)}"
            reason = f"; of most {name} all are multiples of {min(steps)}"
            break
    more = [step for step in frequent if _too_many_multiples(coded.low[fine], int(base), step)]
    if len(every) > _MOST_ADDED or more:
        step = min([*more, *every.values()])
        return law, f"; more than chance explains are multiples of {step} or more", True
    for (name, label), step in every.items():
        text = f"{label}: all are multiples of {step}"
        rules.ask(f"labels.{name}.{label}.counts", f"{way}-{step}", text)
    return law, reason, False


def _too_many_multiples(numbers: IntArray, base: int, step: int) -> bool:
    """Return whether more multiples of a base are multiples of a larger one than by chance.

    The evidence is that of :func:`_round_counts`, for a share of ``base / step``.
    """
    large = np.unique(numbers[numbers >= 10 * step])
    share, chance = (
        np.clip((large % step == 0).mean() if len(large) else 0, 1e-9, 1 - 1e-9),
        base / step,
    )
    if step % base or share <= chance or step == base:
        return False
    bits = share * log2(share / chance) + (1 - share) * log2((1 - share) / (1 - chance))
    return bool(len(large) * bits > _ROUND_BITS)


def _are_near(off: Sequence[tuple[int, int]]) -> bool:
    """Return whether sums are off by little enough to be explained by changed counts."""
    return all(abs(d) <= MOST_OFF * size for d, size in off)


def _perturbed(off: Sequence[tuple[int, int]], *, one_way: bool = False, note: bool) -> int:
    """Return the largest change of each count; 0 without evidence in sums or notes.

    It is three standard deviations, estimated from sums that are off both ways, or the least change
    that explains the sums.
    """
    both_ways = one_way or (any(d > 0 for d, _ in off) and any(d < 0 for d, _ in off))
    if not (note or (both_ways and _are_near(off))):
        return 0
    variance = sum(d * d / size for d, size in off) / max(len(off), 1)
    needed = max((-(-abs(d) // size) for d, size in off), default=0)
    return max(2 if any(d for d, _ in off) else _UNSEEN, needed, ceil(3 * sqrt(variance)))


def _ask_zeros(cells: Sequence[Cell], rules: ReadingRules) -> None:
    """Ask whether 0 stands for small counts, if none is small and totals exceed their parts."""
    texts = [cell.text for cell in cells if cell.row and number_range(cell.text)]
    if not all(map(plain_number, {*texts})) or any(map(is_mark, {cell.text for cell in cells})):
        return  # ranges or marks replace small counts
    numbers = [end[0] for text in texts if (end := number_range(text))]
    least = min(filter(None, numbers), default=0)
    if len(numbers) < _ENOUGH or numbers.count(0) < 3 or least < 4:
        return
    if any(d > 0 for d, _ in itertools.chain(*_missed(_coded(cells)))):
        text = f"none is from 1 to {least - 1}, and totals exceed their parts: 0 stands for those"
        rules.ask("marks.0", f"0-{least - 1}", text)


@functools.lru_cache(maxsize=2**16)
def plain_number(text: str) -> tuple[int, int] | None:
    """Return both ends of a whole number."""
    return number_range(text) if WHOLE.fullmatch(text) else None


def _cell_law(
    cell: Cell, law: PlainLaw, columns: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]
) -> PlainLaw:
    """Return the law set for a cell's column or one of its labels; else its file's."""
    if key(cell.column) in columns:
        return PlainLaw(*named_law(columns[key(cell.column)]) or law)
    for name, label in cell.labels.items():
        if choice := labels[name].get(f"{key(label)}.counts"):
            return PlainLaw(*named_law(choice) or law)
    return law


def counted(cell: Cell, law: Likelihood, number: int) -> int:
    """Return a number in persons, if its law rounds at least to the unit of the cell."""
    low, high = support(law, number * cell.unit)
    return number * cell.unit if high - low >= cell.unit - 1 else number
