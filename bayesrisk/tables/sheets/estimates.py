"""Survey estimates and units that count nobody, recognised by the texts of sheets."""

import re
from collections.abc import Mapping, Sequence

from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.sheets.grids import share_words
from bayesrisk.tables.sheets.lines import Grid, filled_texts
from bayesrisk.tables.sheets.records import UNITS, says_money, says_no_count, says_records
from bayesrisk.tables.sheets.texts import PATH, THOUSANDS, cut, key, listing, says_number

_IN_THOUSANDS = re.compile(
    rf"((weighted|survey) )?estimates?\W*(in )?({THOUSANDS}|000)\W*", re.IGNORECASE
)
_ERRORS = re.compile(
    r"(.*[\W_])?(rses?|moes?|(standard|sampling)[\W_]errors?|"
    r"margins?[\W_]of[\W_]error)([\W_].*)?",
    re.IGNORECASE,
)
_MOST_HEADINGS = 6  # rows
#: A line that says where standard errors stand: beside or below the estimates.
_BESIDE = re.compile(r"(standard|sampling) errors? (appear|are|is) .*(parenthes|bracket)", re.I)


def survey_estimates(grid: Grid, tab: str = "", grids: Mapping[str, Grid] | None = None) -> str:
    """Return the words that reveal survey estimates; empty without any.

    A row has the single text "Estimates ('000)" or "Standard errors appear in parentheses". Or a
    sheet named after errors (*RSEs*, *Margins of error*) is this one, or has the same headings and
    labels.
    """
    for number, row in grid:
        text = " ".join("".join(row).split())
        if filled_texts(row) == 1 and (_IN_THOUSANDS.fullmatch(text) or _BESIDE.search(text)):
            return f"(row {number} says {cut(text)!r})"
    for name, other in (grids or {}).items():
        if _ERRORS.fullmatch(name) and (name == tab or share_words(grid, other)):
            return f"(sheet {name!r} holds their errors)"
    return ""


def refused_estimates(name: str, words: str) -> DataError:
    """Return the error that a table holds survey estimates, with the words that reveal them."""
    return DataError(
        f"{name}: must hold counts, got estimates of a survey {words}: they are weighted, and no "
        "range holds the true count for certain"
    )


def units_of_nobody(rows: Sequence[Sequence[str]]) -> str:
    """Return the column of units and its texts, if all rows of a table are in money or shares.

    Units stand below a heading that names them, beside most rows of numbers. If headings of some
    numbers name records, the units are of the others.
    """
    for k, row in enumerate(rows[:_MOST_HEADINGS]):
        units = [j for j, text in enumerate(row) if UNITS.fullmatch(key(text.rpartition(PATH)[2]))]
        below = [r for r in rows[k + 1 :] if any(map(says_number, r))] if units else []
        texts = dict.fromkeys(r[j] for r in below for j in units if r[j])
        columns = {j: [r[j] for r in below if r[j]] for j in range(len(row)) if j not in units}
        heads = [
            " ".join(r[j] for r in rows[: k + 1]) for j, column in columns.items()
            if 2 * sum(map(says_number, column)) > len(column)
        ]  # fmt: skip
        called = {says_records(head) and not says_no_count(key(head)) for head in heads}
        most = 2 * sum(any(r[j] for j in units) for r in below) > len(below)
        if most and len(called) < 2 and all(says_money(t) or says_no_count(key(t)) for t in texts):
            return f"{listing(texts)}, as column {quote(row[units[0]].rpartition(PATH)[2])} says"
    return ""


def refused_units(title: str, units: str) -> DataError:
    """Return the error that all numbers of a table are in units that count nobody."""
    return DataError(
        f"{title}: must hold counts of people, got numbers in {units}: money, shares and rates "
        "count nobody, and a table of the counts behind them is needed"
    )
