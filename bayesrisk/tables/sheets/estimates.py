"""Survey estimates, recognised by the texts of a sheet and the names of other sheets."""

import re
from collections.abc import Mapping

from bayesrisk.exceptions import DataError
from bayesrisk.tables.sheets.grids import share_words
from bayesrisk.tables.sheets.lines import Grid, filled_texts
from bayesrisk.tables.sheets.texts import THOUSANDS, cut

_IN_THOUSANDS = re.compile(
    rf"((weighted|survey) )?estimates?\W*(in )?({THOUSANDS}|000)\W*", re.IGNORECASE
)
_ERRORS = re.compile(
    r"(.*[\W_])?(rses?|moes?|(standard|sampling)[\W_]errors?|"
    r"margins?[\W_]of[\W_]error)([\W_].*)?",
    re.IGNORECASE,
)
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
