"""Legends: meanings of marks and rounding, as stated in sheets without a table."""

import re
from collections.abc import Mapping

from bayesrisk.tables.sheets.lines import Grid, filled_texts
from bayesrisk.tables.sheets.texts import is_mark, says_number

#: The names of sheets, numbers of rows and sentences, such as *c = fewer than 5*.
Legend = tuple[tuple[str, int, str], ...]

_QUOTED = r"['\"‘“]?(\[?(?:\w{1,2}|low|[*#~^†‡.:-]{1,3})\]?)['\"’”]?"
_SIGN = re.compile(_QUOTED)
_SAYS = re.compile(
    rf"(?:the )?(?:symbol )?{_QUOTED} ?(?:[=:–—]|- |,? ?(?:represents?|means|denotes?|"
    r"indicates?|refers to|stands for)\b) ?(\S.*)",
    re.IGNORECASE,
)
_ROUNDED = re.compile(r"\b(?:rounded|rounding)\b", re.IGNORECASE)
_LONGEST = 300  # sentence
_PAIR = 2  # words


def legend(grids: Mapping[str, Grid]) -> Legend:
    """Return the sentences on marks and rounding in sheets without a table.

    Marks with several meanings are left out.
    """
    results, rounding = dict[str, list[tuple[str, int, str]]](), list[tuple[str, int, str]]()
    for tab, grid in grids.items():
        rows = [(i, [text.strip() for text in row]) for i, row in grid]
        full = [row for _, row in rows if any(row)]
        if 2 * sum(any(map(says_number, row[1:])) for row in full) >= len(full):
            continue
        for i, row in rows:
            first, *rest = [text for text in row if text] or [""]
            sign, sentence = _SIGN.fullmatch(first), _SAYS.fullmatch(first)
            mark, meaning = "", ""
            if sign and filled_texts(row) == _PAIR and len(rest[0].split()) >= _PAIR:
                mark, meaning = sign[1], rest[0]
            elif sentence and not rest:
                mark, meaning = sentence[1], sentence[2]
            if mark and is_mark(mark) and len(meaning) <= _LONGEST:
                line = (tab, i, f"{mark} = {meaning}")
                results.setdefault(mark.strip("[]").casefold(), []).append(line)
            elif not rest and len(first) <= _LONGEST and _ROUNDED.search(first):
                rounding.append((tab, i, first))
    clear = [x for x in results.values() if len({text.casefold() for *_, text in x}) == 1]
    return (*(lines[0] for lines in clear), *rounding)
