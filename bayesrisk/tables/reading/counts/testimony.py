"""Evidence that numbers count records, and that rows are counts and not records."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.reading.cells import Cell
from bayesrisk.tables.reading.counts.laws import OF_AN_ERROR
from bayesrisk.tables.reading.counts.notes import stated_unit, titles
from bayesrisk.tables.reading.rules import ReadingRules
from bayesrisk.tables.reading.variables.nested import REST
from bayesrisk.tables.reading.variables.variable import TableVariable
from bayesrisk.tables.sheets.records import UNITS, says_records, titles_records
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import (
    PART,
    PATH,
    WHOLE,
    interval,
    key,
    listing,
    number_range,
    sex,
    total_word,
)

#: Headings that only announce numbers, or name their period.
_ANY = re.compile(
    r"((obs(ervation)?|measure|data|indicator) )?(values?|valor(es)?|valeurs?|wert|waarde|verdi)|"
    r"värde|obs||(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -](19|20)?\d\d|"
    r"wartość|wartosc|hodnota|érték|(19|20)\d\d\b.*|"
    r"\d\d?[-/.]\d\d?[-/.](\d\d)?\d\d( ?([-–]|to) ?\d\d?[-/.]\d\d?[-/.](\d\d)?\d\d)?"
)
#: Words for the ages of people.
_AGES = re.compile(
    r"\b(ages?|aged|âges?|edad|età|idade|alter(sgruppe)?|leeftijd|ålder|alder|aldur|ikä|wiek|věk|"
    r"életkor|vârsta|возраст|вік|ηλικία|yaş|umur|usia)\b|年[齢龄齡]|연령"
)
#: Laws under which sums hold.
_BY_SUMS = ("exact", "stats-nz")
_GROUPS = 3  # in which changed counts add up by chance in one case of 100
_ONE_WAY = 5  # groups in which changed counts all miss one way in one case of 16
_BOTH_WAYS = 2  # groups missed each way that deny exact counts
_MOST_EXACT = 20  # sums that hold for each that misses, more than changed counts have
_SMALL = 20  # the largest count withheld because it is small
_BITS = 10  # of evidence needed from a single sum
_FEW = 2  # columns for each that may be no count
_MOST_LABELS = 2**14  # of a variable, to search for words for totals


def ask_for_counts(
    cells: Sequence[Cell], variables: Mapping[str, TableVariable], sheets: Sequence[Sheet],
    rules: ReadingRules,
) -> dict[str, str]:  # fmt: skip
    """Leave the law of a file open if sums deny it, or nothing shows that numbers are counts.

    Overlapping labels exceed their total, and incomplete labels leave a rest. Sums that miss totals
    both ways show changed counts. A column counts records if it has such a heading, a withheld
    small count (<3), or takes part in sums beside words for records: money and areas add up as
    well. A title helps headings that say nothing, and several headings of which none names records.
    A part of another column counts what that does.

    The result is the few columns that may be no counts, with reasons, beside others that sums show.
    """
    files = [name for name in dict.fromkeys(cell.file for cell in cells) if _question(name, rules)]
    columns = {(c.file, c.column): c.file for c in cells
               if c.row and c.file in files and any(map(str.isdigit, c.text))}  # fmt: skip
    if not columns:
        return {}
    exact, near, denied, counting = _evidence(cells, variables, rules)
    stated = {c for c, t in rules.columns.items() if t == "count" or "=" in t}
    words = {sheet.name: any(map(says_records, titles(sheet))) for sheet in sheets}
    summed, counting = counting, counting & _beside_records(cells, variables, words)
    counting |= {(c.file, c.column) for c in cells if _is_small(c.text)}
    units = {sheet.name for sheet in sheets
             if any(map(_is_unit, sheet.captions)) or says_records(stated_unit(sheet))}  # fmt: skip
    for sheet in sheets:
        counted = [head for other, head in columns if other == sheet.name]
        if len(counted) > 1 and not any(map(says_records, counted)):
            units |= {sheet.name for text in sheet.captions if titles_records(text)}
    results = dict[str, str]()
    aged = {file for file, head in counting if interval(head)}  # age groups share their unit
    for file in files:
        question, name = _question(file, rules), Path(file).name
        doubts = [
            head for pair, other in columns.items()
            if other == file and file not in rules.rounded_sums
            and pair not in counting and key(head := pair[1]) not in stated and file not in units
            and not _names_records(head, words[file] or (file in aged and bool(interval(head))))
        ]  # fmt: skip
        used = [head for other, head in columns if other == file]
        wholes = _wholes(next(sheet.heads for sheet in sheets if sheet.name == file))
        heads = [head for head in doubts if wholes.get(head, head) not in {*used} - {*doubts}]
        few = _FEW * len(heads) <= len(used) and exact[file] >= _GROUPS
        few = few and rules.questions[question][0] in _BY_SUMS and question not in rules.open
        texts = {c.text for c in cells if c.file == file and c.column in heads}
        few = few and all(map(WHOLE.fullmatch, texts)) and "0" not in texts  # else perhaps parts
        nothing = (
            "no word" if summed.issuperset((file, head) for head in heads) else "no sum and no word"
        )
        if heads and few and file not in denied:
            text = f"{nothing} shows that it counts people or other records: left out"
            results |= {head: f"{head!r}: {text} (counts=exact reads it)" for head in heads}
        elif heads:
            every = f"{nothing} of {name} shows that {listing(map(repr, heads))} counts people"
            setting = f"columns.{heads[0]}=ignored leaves it out"
            rules.leave_open(question, f"{every} or other records ({setting})")
        guess, text = rules.questions[question]
        if guess in _BY_SUMS and file in denied:
            rules.leave_open(question, f"sums of {name} {denied[file]}")
            # How counts were made decides the meaning of totals, so ask about these later.
            for variable in variables if "miss totals" in denied[file] else ():
                if any(sums.contradicting.size for sums in variables[variable].sums):
                    rules.ask_later(f"totals.{variable}")
        elif guess in _BY_SUMS and not heads:  # sums of other columns are no evidence for these
            number = exact[file]
            groups = f"{number} group" + "s" * (number > 1)
            sums = f"sums hold exactly in {groups}" if number else near[file] or "no sum shows it"
            guessed = "a guess, " * (number < _GROUPS)
            several = f"of {name} " * (len(files) > 1)
            rules.questions[question] = guess, f"{text} ({several}{guessed}{sums})"
    return results


def _wholes(heads: Sequence[str]) -> dict[str, str]:
    """Return the heading before each part (*of which women*), the last one that is no part."""
    results, whole = dict[str, str](), ""
    for head in heads:
        if PART.match(head.rpartition(PATH)[2]):
            results[head] = whole
        else:
            whole = head
    return results


def _beside_records(
    cells: Sequence[Cell], variables: Mapping[str, TableVariable], words: Mapping[str, bool]
) -> set[tuple[str, str]]:
    """Return the columns beside words for records, which show the unit of their sums.

    Such words stand in a title, a heading, the name of the file or a total; sexes and ages are of
    people. If some headings name records, only parts and totals of other columns share their unit.
    """
    people = {file for file, word in words.items() if word or says_records(Path(file).stem)}
    every: dict[tuple[str, str], dict[str, set[str]]] = {}
    for cell in cells:
        labels = every.setdefault((cell.file, cell.column), {})
        for name, label in cell.labels.items():
            labels.setdefault(name, set()).add(label)
    for (file, _), labels in every.items():
        texts = (text for name in labels for text in (name, *labels[name]) if file not in people)
        if any(
            sex(text) or _AGES.search(key(text)) or (total_word(text) == 2 and says_records(text))
            for text in texts
        ):
            people.add(file)
    joint = {
        file: {n for pair, labels in every.items() if pair[0] == file
               for n in labels if not variables[n].separate}
        for file in people
    }  # fmt: skip
    named = {pair for pair in every if says_records(pair[1])}
    files = {file for file, _ in named}
    trees = {
        pair: {(pair[0], name, variables[name].wholes.get(key(*texts)))
               for name, texts in labels.items() if len(texts) == 1 and variables[name].separate}
        for pair, labels in every.items()
    }  # fmt: skip
    shared = {tree for pair in named for tree in trees[pair] if tree[2]}
    # A column with one label of a variable, or none, is a part or a total of columns beside it.
    return {
        pair for pair, labels in every.items()
        if (file := pair[0]) in people
        and (file not in files or pair in named or trees[pair] & shared
             or any(len(labels.get(name, ())) < 2 for name in joint[file]))
    }  # fmt: skip


def _is_small(text: str) -> bool:
    """Return whether a text is a range of small counts, which stand for few people."""
    ends = number_range(text)
    return ends is not None and ends[0] < ends[1] <= _SMALL


def _is_unit(caption: str) -> bool:
    """Return whether a line above a table gives records as the unit of all: *Units: Persons*."""
    name, _, unit = re.sub("[,：]", ":", caption).partition(":")
    return UNITS.fullmatch(key(name).strip("( ")) is not None and says_records(unit.strip(" )"))


def _names_records(head: str, title: bool) -> bool:
    """Return whether a heading names records, or is plain below a title that does."""
    head = re.sub(r"(?<=[a-z])\d$", "", head)  # "Rape1" has a note
    parts = key(head).split(PATH)
    plain = any(
        _ANY.fullmatch(part) or total_word(part) or sex(part) or interval(part) for part in parts
    )
    return says_records(head) or (title and plain)


def _question(file: str, rules: ReadingRules) -> str:
    """Return the name of the open question about the law of a file; empty if none."""
    names = (f"counts.{Path(file).name}", "counts")
    if any(name in rules.choices for name in names):
        return ""
    return next((name for name in names if name in rules.questions), "")


def _evidence(
    cells: Sequence[Cell], variables: Mapping[str, TableVariable], rules: ReadingRules
) -> tuple[dict[str, int], dict[str, str], dict[str, str], set[tuple[str, str]]]:
    """Return by file exact sums, sums in most groups, and denials of exact counts; and columns.

    These columns are shown to count: all informative sums of one variable, or of all, hold in them
    beyond chance. Unused sums that hold in most groups show it too.
    """
    columns = {pair: i for i, pair in enumerate(dict.fromkeys((c.file, c.column) for c in cells))}
    files = {name: i for i, name in enumerate(dict.fromkeys(c.file for c in cells))}
    column = np.array([columns[c.file, c.column] for c in cells])
    file = np.array([files[c.file] for c in cells])
    counting = np.zeros(len(columns), np.bool_)
    both_ways, mixed = np.zeros((2, len(files)), np.bool_)
    nothing = np.zeros((7, len(columns)))
    evidence = {name: nothing.copy() for name in variables}
    number, clean, little, rest = np.zeros((4, len(files)), np.int64)
    pairs = [(name, one) for name, variable in variables.items() for one in variable.sums]
    for name, one in pairs:
        evidence[name] += one.by_place(column, len(columns))
        _, good, above, below, exact, near, _ = one.by_place(file, len(files)).astype(np.int64)
        less, missed = np.minimum(below, above), below + above
        several = (less >= _BOTH_WAYS) & (OF_AN_ERROR * missed > exact)
        missed_so = several | ((less > 0) & (good <= missed))
        overlap = variables[name].separate
        few = overlap & (good <= missed)  # overlapping labels that leave a rest
        mixed |= missed_so & few
        both_ways |= missed_so & ~few
        number += exact
        clean += exact * (_MOST_EXACT * missed <= exact)
        if not (overlap and f"totals.{name}" in rules.choices):  # labels are known to overlap
            little += near * ((missed == near) & (missed < _ONE_WAY))
        several = variables[name].labels[1:] != [REST]  # one label has no sum
        rest += missed * (several and not overlap)
    denied = {
        "miss totals both ways": both_ways | (mixed & (clean < _GROUPS)),
        "miss totals by little": (little > 0) & (clean < _GROUPS),
        "never hold exactly": (rest > 0) & (number == 0),
    }
    for telling, good, *_, bits in (*evidence.values(), sum(evidence.values(), nothing)):
        counting |= (good > 0) & (good == telling) & ((good > 1) | (bits >= _BITS))
    most = np.zeros((2, len(files)), np.int64)
    for one in [near.groups for variable in variables.values() for near in variable.near.values()]:
        counting |= one.by_place(column, len(columns))[4] > 0
        most += one.by_place(file, len(files)).astype(np.int64)[[4, 0]]
    near_sums = {name: f"sums hold in {most[0, i]:,} of {most[1, i]:,} groups" * bool(most[0, i])
                 for name, i in files.items()}  # fmt: skip
    reasons = {name: text for text, files_ in reversed(denied.items())
               for name, i in files.items() if files_[i]}  # fmt: skip
    exact_sums = {name: int(number[i]) for name, i in files.items()}
    return exact_sums, near_sums, reasons, {pair for pair, i in columns.items() if counting[i]}


def check_records(frame: pd.DataFrame, source: object) -> None:
    """Refuse rows of a published table: SDMX, or counts beside labels of totals.

    A label is a total if a word says so and labels distinguish all rows. Its counts are no less
    than the sum of the others with the same other labels.
    """
    names = {key(str(name)): name for name in frame.columns}
    reason = f"column {quote(names['obs value'])}" if "obs value" in names else ""
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    labels = {name: frame[name].drop_duplicates() for name in text}
    words = {
        name: [label for label in map(str, texts) if total_word(label) == 2]
        for name, texts in labels.items() if len(texts) <= _MOST_LABELS
    }  # fmt: skip
    numbers = frame.apply(pd.to_numeric, errors="coerce") if any(words.values()) else frame[[]]
    counts = [name for name in numbers if numbers[name].notna().mean() > 0.5]
    variables = [name for name in frame if name not in counts]
    for name in variables if not reason and len(frame) > len(variables) + 1 else ():
        totals = frame[name].astype(str).isin(words.get(name, []))
        if not 0 < totals.sum() <= len(frame) / 2 or frame.duplicated(variables).any():
            continue
        groups = [frame[other] for other in variables if other != name] or (lambda _: 0)
        for column in counts:
            values = numbers[column].fillna(0)
            whole = values.where(totals, 0).groupby(groups, dropna=False).sum()
            parts = values.mask(totals, 0).groupby(groups, dropna=False).sum()
            if (whole >= parts).all() and (parts > 0).any() and (values >= 0).all():
                label = quote(str(frame[name][totals].iloc[0]))
                reason = f"counts in column {quote(column)}, and {label} in column {quote(name)}"
    if reason:
        file = source if str(source) != "records" else "FILE"
        raise DataError(
            f"{source}: must be records, one row for each person, got a published table: {reason}",
            advice=f"; `bayesrisk attack {file} -o OUT` says what it gives away",
        )
