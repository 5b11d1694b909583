"""HUD's Picture of Subsidized Households: rounded shares, and codes for withheld values."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.extensions import ExtensionArray

from bayesrisk._base import validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.disk.delimited import header_fields, split_line
from bayesrisk._base.disk.text import gather
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.census.readers import text as forms
from bayesrisk.exceptions import DataError, DataWarning, quote

# Columns by vintage, and what each of them holds.
#
# Names and codes of the county files of 2006 to 2023 and of the tract, project and other files of
# the 2010s; those of 2024 and 2025 from the list of another reader.  Case and order change by
# year.


_TEXTS = (
    "quarter states entities program_label program sub_program name code cbsa msa place place2kx "
    "placefips state ha_size std_addr std_city std_zip5 stctytrt fedhse gsl sumlevel"
)
# Each column stands beside the one that it took the place of.
_COLUMNS = (
    "quarter gsl states entities sumlevel program_label program sub_program name code total_units "
    "total_occupied pct_occupied number_reported pct_reported months_since_report pct_movein "
    "people_per_unit people_total rent_per_month spending_per_month hh_income person_income "
    "pct_noincome pct_lt5k pct_5k_lt10k pct_10k_lt15k pct_15k_lt20k pct_20k_lt25k pct_ge20k "
    "pct_wage_major pct_wage_maj pct_welfare_major pct_welf_maj pct_other_major pct_other_maj "
    "pct_median pct_lt80_median pct_lt50_median pct_lt30_median pct_2adults pct_1adult "
    "pct_female_head pct_female_head_child pct_disabled_lt62 pct_disabled_ge62 pct_disabled_all "
    "pct_lt24_head pct_lt62_head pct_age25_50 pct_age51_61 pct_age62plus pct_age85plus "
    "pct_minority pct_black pct_black_nonhsp pct_native_american pct_native_american_nonhsp "
    "pct_asian pct_asian_pacific pct_asian_pacific_nonhsp pct_white_nothsp pct_black_hsp "
    "pct_wht_hsp pct_oth_hsp pct_hispanic pct_multi months_waiting months_from_movein "
    "pct_utility_allow ave_util_allow pct_bed1 pct_bed2 pct_bed3 pct_overhoused tpoverty "
    "tminority tpct_ownsfd pct_ownsfd fedhse cbsa msa place place2kx placefips latitude longitude "
    "state pha_total_units ha_size std_addr std_city std_zip5 stctytrt"
)
#: In the order of the published files.
COLUMNS = tuple(_COLUMNS.split())
_COLUMN_SET = frozenset(COLUMNS)
_CHILDREN = re.compile(r"pct_chldrn[a-z0-9_]*(?<!_reason)(?<!_low)(?<!_high)")  # of 2024 on, by age
_ALIASES = {"pct_white_nonhsp": "pct_white_nothsp", "pct_wht_nonhsp": "pct_white_nothsp"}
# Headings in words, as the query page gives them; the first of a name is that of 2010 to 2013.
_WORDS = """
sumlevel summary level; sub_program sub-program; total_units subsidized units available;
number_reported # reported; months_since_report average months since report;
pct_movein % moved in past year; people_per_unit number of people per unit;
people_total number of people: total; rent_per_month rent per month ($$);
rent_per_month average family expenditure per month ($$);
spending_per_month spending per month ($$);
spending_per_month average hud expenditure per month ($$); hh_income household income per year;
person_income household income per year per person; pct_lt5k % $1 - $4,999;
pct_5k_lt10k % $5,000 - $9,999; pct_10k_lt15k % $10,000 - $14,999;
pct_15k_lt20k % $15,000 - $19,999; pct_ge20k % $20,000 or more;
pct_wage_major % households where wages are major source of income;
pct_welfare_major % households where welfare is major source of income;
pct_other_major % households with other major sources of income;
pct_median % of local median (household income); pct_lt50_median % very low income;
pct_lt30_median % extremely low income; pct_2adults % 2+ adults with children;
pct_1adult % 1 adult with children; pct_female_head_child % female head with children;
pct_disabled_lt62 % with disability, among head, spouse, co-head, aged 61 years or less;
pct_disabled_ge62 % with disability, among head, spouse, co-head, aged 62 years or older;
pct_disabled_all % with disability, among all persons in households;
pct_lt24_head % 24 years or less (head or spouse); pct_age25_50 % 25 to 49 years (head or spouse);
pct_age51_61 % 51 to 60 (head or spouse); pct_age62plus % 62 or more (head or spouse);
pct_age85plus % 85 or more (head or spouse); pct_asian_pacific % asian or pacific islander;
pct_asian_pacific_nonhsp % asian or pacific islander non-hispanic;
pct_black_nonhsp % black non-hispanic; pct_native_american_nonhsp % native american non-hispanic;
pct_white_nothsp % white non-hispanic; pct_black_hsp % black hispanic;
pct_wht_hsp % white hispanic; pct_oth_hsp % other hispanic; pct_multi % multiple race;
months_waiting average months on waiting list; months_from_movein average months since moved in;
pct_utility_allow % with utility allowance; ave_util_allow average utility allowance $$;
pct_bed1 % 0 - 1 bedrooms; tpoverty % in poverty (census tract);
pct_bed2 % 2 bedrooms; pct_bed3 % 3+ bedrooms; tminority % minority (census tract);
tpct_ownsfd % single family owners (census tract); fedhse congressional district;
ha_size ha category
"""
_HEADINGS = {"".join(words): name for name, *words in map(str.split, _WORDS.split(";"))}
#: What a rounded percentage is a share of, where it is known.  It was measured on the county files
#: of 2014 to 2023: among up to 60 reported households each of these shares is that of a whole
#: number.  That of ``pct_occupied`` and of the income bands is not, and the share of the disabled
#: is one of people.
_HOUSEHOLD_SHARES = (
    "pct_wage_major pct_welfare_major pct_other_major pct_lt50_median pct_lt30_median pct_2adults "
    "pct_1adult pct_female_head pct_female_head_child pct_lt24_head pct_age25_50 pct_age51_61 "
    "pct_age62plus pct_age85plus pct_minority pct_black_nonhsp pct_native_american_nonhsp "
    "pct_asian_pacific_nonhsp pct_white_nothsp pct_black_hsp pct_wht_hsp pct_oth_hsp pct_hispanic "
    "pct_multi pct_bed1 pct_bed2 pct_bed3 pct_overhoused"
)
BASES = MappingProxyType(dict.fromkeys(_HOUSEHOLD_SHARES.split(), "number_reported"))
# Only files of before 2014 have one of these, and each of them has one.
_OLD = (
    "msa placefips pct_asian pct_asian_pacific pct_black pct_native_american pct_other_maj "
    "pct_wage_maj pct_welf_maj"
)
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
_SHARES_SINCE = "2014"
#: Amounts that are below 0 in some rows, and may be: rents where an allowance for utilities exceeds
#: what households pay; of spending HUD does not say why.
SIGNED = frozenset({"rent_per_month", "spending_per_month"})
#: Why a value is missing, by its code.
REASONS = MappingProxyType(
    {
        -1: "not available",
        -2: "missing, code -2",
        -4: "suppressed, fewer than 11",
        -5: "reporting too low",
    }
)
#: Digits of the code at a summary level.
CODE_WIDTHS = MappingProxyType({"tract": 11, "county": 5, "state": 2})


def usual_name(name: str) -> str:
    """Return a column's standard name, or its own name if the column is unknown."""
    lower = name.strip().lower().removeprefix("\ufeff")
    words = "".join(lower.split()).removesuffix(":")
    # Most shares are called by their group alone: "% Occupied".
    usual = _ALIASES.get(lower) or _HEADINGS.get(words) or re.sub(r"^%\s*", "pct_", lower)
    usual = re.sub(r"\s+", "_", usual)
    return usual if is_known(usual) else name.strip()


def is_known(name: str) -> bool:
    """Return whether a column name is one that HUD publishes."""
    return name in _COLUMN_SET or _CHILDREN.fullmatch(name) is not None


def is_derived(name: str) -> bool:
    """Return whether a name is that of a column which the reader derives from a known one."""
    lower = name.strip().lower()
    return any(
        lower.endswith(end) and is_known(lower.removesuffix(end)) and not is_known(lower)
        for end in ("_reason", "_low", "_high")
    )


def is_text(name: str) -> bool:
    """Return whether a column is read as text: names, codes with leading zeros, unknown columns."""
    return name in _TEXTS.split() or not is_known(name)


def bases(names: Iterable[str], file: str) -> dict[str, str]:
    """Return the base column of each share column, where known; empty for files before 2014.

    The vintage is that of the columns, or of a year in the file's name.
    """
    columns = set(names)
    year = _YEAR.search(file)
    if columns & set(_OLD.split()) or (year is not None and year[0] < _SHARES_SINCE):
        return {}
    return {name: base for name, base in BASES.items() if name in columns and base in columns}


# Values: texts, numbers, and counts behind shares.

#: What is written for the code of a place that is not known.
NO_PLACE = "X"
_NOWHERE = "^[0-9]*X*MISSING?$"  # a row of what could not be placed at all
# Why a value is missing, by position: not at all, blank, what a value cannot be, then the codes.
BLANK, NO_COUNT, NO_NUMBER, BELOW, NO_SHARE, TOO_LARGE = 1, 2, 3, 4, 5, 6
_FAULTS = ("no number", "below 0", "no whole percentage up to 100", "too large")
_TEXT_OF_REASON = pa.array(
    [None, "blank", "no whole count", *_FAULTS, *REASONS.values()], pa.large_string()
)
_CODES = pa.array([str(code) for code in REASONS])
# Numbers as spreadsheets show them: $1,234.50, and shares such as 45%.
_AMOUNT = r"^-?\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?$"
_SHARE = r"^[0-9]+(?:\.[0-9]+)?%$"
_BLANKS = pa.array(["", "NA", "."])


def _as_text(values: pa.Array) -> ExtensionArray:
    """Return texts in pandas' string storage, without an object for each."""
    return pd.arrays.ArrowStringArray(pa.chunked_array([values.cast(pa.large_string())]))


def texts(
    piece: forms.Piece, usual: str, name: str, width: int, faults: forms.Faults
) -> ExtensionArray:
    """Return a column of text, with leading zeros of codes restored and missing values kept."""
    values = forms.one_array(piece.table.column(name))
    missing = pc.equal(values, "")
    if is_known(usual):
        missing = pc.or_(missing, pc.is_in(values, _CODES))
    digits = {"code": width, "sumlevel": 2, "stctytrt": 11}.get(usual)
    if digits is not None and len(values):
        # What was once read as a number with a fraction.
        values = pc.replace_substring_regex(values, r"^([0-9]+)\.0$", r"\1")
        good = pc.match_substring_regex(values, f"^[0-9]{{1,{digits}}}$")
        if usual == "code":
            place = pc.match_substring_regex(values, "^[0-9]*X+$")
            whole = pc.equal(pc.utf8_length(values), digits)
            place = pc.and_(place, pc.or_(whole, pc.equal(values, NO_PLACE)))
            # A code is needed: only what is said to be missing is.
            missing = pc.or_(pc.is_in(values, _CODES), place)
        rule = f"at most {digits} digits"
        rule += f", or such as {'01XXX'.ljust(digits, 'X')[:digits]}" if usual == "code" else ""
        right = pc.or_(good, missing).to_numpy(zero_copy_only=False)
        if usual == "code":  # without its place a row is nothing
            piece.check(name, right, rule)
        else:
            missing = pc.or_(missing, pa.array(faults.missing(piece, name, right, rule)))
        values = pc.utf8_lpad(values, digits, "0")
    return _as_text(pc.if_else(missing, pa.scalar(None, pa.string()), values))


class _Numbers:
    """A column's numbers, NaN where missing, with the reasons."""

    def __init__(self, piece: forms.Piece, usual: str, name: str, faults: forms.Faults) -> None:
        self.piece, self.name, self.faults = piece, name, faults
        column = forms.one_array(piece.table.column(name))
        blank = pc.is_in(column, _BLANKS)
        hidden = blank.to_numpy(zero_copy_only=False)
        self.values = _floats(pc.if_else(blank, pa.scalar(None, pa.string()), column), usual)
        self.reason = np.where(hidden, np.int8(BLANK), np.int8(0))
        self.keep(np.isfinite(self.values) | hidden, "a number", NO_NUMBER)
        for place, code in enumerate(REASONS, TOO_LARGE + 1):
            self.reason[self.values == code] = place
        self.values[self.reason > 0] = np.nan

    def keep(self, good: BoolArray, rule: str, reason: int) -> None:
        """Set invalid numbers to missing, or raise if the file is refused."""
        text = _TEXT_OF_REASON[reason].as_py()
        bad = self.faults.missing(self.piece, self.name, good, rule, text)
        self.values[bad], self.reason[bad] = np.nan, reason


def _floats(column: pa.Array, usual: str) -> FloatArray:
    """Return texts as numbers, NaN where they are not numbers."""
    try:
        numbers = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # as spreadsheets show numbers, blanks around them, or no number at all
        plain = pc.utf8_trim_whitespace(column)
        shown_so = pc.match_substring_regex(plain, _SHARE if usual[:4] == "pct_" else _AMOUNT)
        marks = pc.replace_substring_regex(plain, "[$,%]", "")
        series = pd.Series(pc.if_else(shown_so, marks, plain).to_pylist(), dtype=object)
        numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=float)
    return np.array(numbers, dtype=np.float64)


def share_bounds(n: IntArray, p: IntArray) -> tuple[IntArray, IntArray]:
    """Return the least and largest count of ``n`` that is ``p`` percent once rounded."""
    low = -(-n * (2 * p - 1) // 200)
    high = n * (2 * p + 1) // 200
    return np.maximum(low, 0), np.minimum(high, n)


#: Most households of a place, of which shares are read.
MAX_BASE = 10**12
CHUNK = 2**15  # rows in memory at a time, where the caller does not say
_ABOVE = 20  # rows among which the header is


def iter_hud(
    path: str | Path, *, level: str, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[pd.DataFrame]:
    r"""Yield HUD's Picture of Subsidized Households, a piece at a time.

    Columns are those of the file, in lower case and in its order. They are text, or numbers
    (``Float64``, missing if the file has one of its codes), each followed by ``<name>_reason`` for
    missing values. An unknown code of a place, such as ``01XXX``, is missing. A share of the
    reported households is followed by ``<name>_low`` and ``<name>_high`` (``Int64``), the least and
    largest whole count that rounds to it. If there is none, both are missing and the reason is
    ``no whole count``. Columns of no known vintage follow unchanged, as text.

    Parameters
    ----------
    path : path-like
        CSV file (also gzip or ZIP), or ``.xlsx``, whose first sheet is read. The header is the
        first of 20 rows with a column ``code``; titles above it and empty rows are skipped. Numbers
        may be written as ``$1,234`` and shares as ``45%``.
    level : str
        ``"tract"``, ``"county"`` or ``"state"``: the kind of the file's ``code``, with 11, 5 or 2
        digits, whose leading zeros are restored.
    on_error : str, optional
        Treatment of an impossible value, such as -13 units. ``"refuse"`` raises for the first one.
        ``"missing"`` keeps it as missing, with its reason, and counts it. A row without a code of
        its place is always refused.
    chunk : int, optional
        Rows in memory at a time.

    Warns
    -----
    DataWarning
        Once if there are columns of no known vintage. At the end once if percentages without an
        interval are above 100, or ``rent_per_month`` or ``spending_per_month`` is below 0. Once if
        impossible values are missing: ``missing`` holds their numbers by column and reason. Once if
        rows of no place are left out.

    Notes
    -----
    The columns of 2006 to 2008, of 2009 to 2013, of 2014 to 2023 and of 2024 and 2025 are known.
    There are no intervals before 2014, as told by the columns or a year in the file's name. For 12
    to 26 percent of the shares of 2009 to 2013 with fewer than 60 households, no whole number fits.
    Those of 2006 to 2008 were not examined. There are none for ``pct_disabled_all``, which is a
    share of people, nor for ``pct_occupied`` and the income bands, whose bases are not published.

    A share of p percent among n households may be rounded either way at a half. It belongs to a
    count c with :math:`n (2p - 1) \le 200 c \le n (2p + 1)`. The bounds are computed in whole
    numbers, and n may be at most :math:`10^{12}`.
    """
    width = CODE_WIDTHS[check.choice(level, "level", tuple(CODE_WIDTHS))]
    rows = check.integer(chunk, "chunk", lower=1)
    faults = forms.Faults(on_error)
    source = forms.one_source(path, ".csv", ".xlsx")
    if source.base.endswith(".xlsx"):
        pieces = _from_excel(source, rows)
    else:
        above, header, blank = _header(source)
        _names(header, source.name)
        raw = forms.csv_pieces(
            source, header, wanted=header, chunk=rows,
            form=forms.TextForm(kind=pa.binary(), header=False, skip=above + 1, blank=blank),
        )  # fmt: skip
        pieces = map(_decoded, raw)
    names: dict[str, str] = {}
    odd: Counter[str] = Counter()
    nowhere = 0
    for piece in pieces:
        if not names:
            names = _names(piece.table.column_names, source.name)
            unknown = [name for usual, name in names.items() if not is_known(usual)]
            if 2 * len(unknown) > len(names):
                raise DataError(
                    f"{source.name}: most columns must be of a known vintage, got "
                    f"{quote(', '.join(unknown))}: download the file of the year, whose columns "
                    "are called total_units and so on, or rename them"
                )
            if unknown:
                warnings.warn(
                    f"{source.name}: columns that no known vintage has are kept as text: "
                    f"{', '.join(unknown)}",
                    DataWarning,
                    stacklevel=caller_level(),
                )
        piece = _without_empty_rows(piece, names["code"])
        place = pc.match_substring_regex(piece.table.column(names["code"]), _NOWHERE)
        placed_rows = np.flatnonzero(~place.to_numpy())
        nowhere += len(piece) - placed_rows.size
        yield _frame(piece.take(placed_rows), names, width, bases(names, source.base), odd, faults)
    faults.warn(source.name)
    if nowhere:
        text = f"{source.name}: {nowhere} rows of no place (36XXXMISSIN) are left out"
        warnings.warn(DataWarning(text), stacklevel=caller_level())
    if +odd:
        listed = "; ".join(f"{fault} ({times} rows)" for fault, times in (+odd).items())
        text = f"{source.name}: values out of the usual range are kept: {listed}"
        warnings.warn(DataWarning(text), stacklevel=caller_level())


def read_hud(path: str | Path, *, level: str, on_error: str = "refuse") -> pd.DataFrame:
    r"""Return all rows of a file of HUD's Picture of Subsidized Households, see :func:`iter_hud`.

    Parameters
    ----------
    path, level, on_error
        As for :func:`iter_hud`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesrisk.census import read_hud
    >>> text = "CODE,NUMBER_REPORTED,PCT_FEMALE_HEAD,PCT_BED1\n1073000100,320,77,-4\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "TRACT_2020.csv")
    ...     _ = file.write_text(text)
    ...     frame = read_hud(file, level="tract")
    >>> frame["code"].item()
    '01073000100'
    >>> frame["pct_female_head_low"].tolist(), frame["pct_female_head_high"].tolist()
    ([245], [248])
    """
    source = check.path(path, "path")
    frames = gather(iter_hud(source, level=level, on_error=on_error), _bytes, str(source))
    return pd.concat(frames, ignore_index=True)


def _bytes(frame: pd.DataFrame) -> int:
    return int(frame.memory_usage(deep=True).sum())


def _is_header(fields: Sequence[str]) -> bool:
    return "code" in map(usual_name, fields)


def _header(source: forms.Source) -> tuple[int, list[str], int]:
    """Return the number of lines above the header, its names, and the number of unnamed columns.

    The header is the first line with a column ``code``, or else the first line.
    """
    forms.first_lines(source, None)  # which refuses what is no text
    with source.open() as stream:
        lines = [line for line in (stream.readline() for _ in range(_ABOVE)) if line]
    for place, line in enumerate(lines):
        fields = split_line(line.decode("utf-8-sig", "replace").rstrip("\n"), source.name)
        if _is_header(fields):
            names = header_fields(line, source.name, errors="replace", without_blank=True)
            return place, names, len(fields) - len(names)
    return 0, forms.header_names(source), 0


def _without_empty_rows(piece: forms.Piece, code: str) -> forms.Piece:
    """Return the piece without empty rows, which spreadsheets have at their end."""
    if not pc.any(pc.equal(piece.table.column(code), "")).as_py():
        return piece
    nonempty = np.zeros(len(piece), dtype=bool)
    for column in piece.table.columns:
        nonempty |= pc.not_equal(pc.utf8_trim_whitespace(column), "").to_numpy()
    return piece.take(np.flatnonzero(nonempty))


def _from_excel(source: forms.Source, chunk: int) -> Iterator[forms.Piece]:
    """Yield the rows of the first sheet as text, as its cells hold them."""
    if source.member is not None:
        raise DataError(f"{source.name}: must not be in an archive: unpack it")
    rows = forms.sheet_rows(source)
    first = list(islice(rows, _ABOVE))
    above = next((i for i, row in enumerate(first) if _is_header(row)), 0)
    header = first[above] if first else []
    while header and not header[-1]:
        header.pop()
    _names(header, source.name)
    width = len(header)
    body = _checked_width(chain(first[above + 1 :], rows), width, source.name)
    for start in count(0, size := max(1, min(chunk, CHUNK // max(width, 1)))):
        batch = list(islice(body, size))
        if not batch and start:
            return
        columns = zip(*batch, strict=True) if batch else ([] for _ in header)
        table = {h: pa.array(list(c), pa.string()) for h, c in zip(header, columns, strict=True)}
        yield forms.Piece(source.name, start, pa.table(table))


def _checked_width(rows: Iterable[list[str]], width: int, name: str) -> Iterator[list[str]]:
    for place, row in enumerate(rows, 1):
        if any(row[width:]):
            raise DataError(f"{name}: row {place}: must have {width} columns, got {len(row)}")
        yield [*row[:width], *[""] * (width - len(row))]


def _decoded(piece: forms.Piece) -> forms.Piece:
    """Return bytes as UTF-8 text, or a column as Latin-1 where it is not UTF-8."""
    table = piece.table
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [cell.decode("latin-1") for cell in column.to_pylist()]
            column = pa.array(texts, pa.string())
        table = table.set_column(place, name, column)
    return replace(piece, table=table)


def _names(header: list[str], source: str) -> dict[str, str]:
    """Return the file's name for each standard column, known ones first, in the usual order."""
    names: dict[str, str] = {}
    for name in header:
        usual = usual_name(name)
        if usual in names:
            raise DataError(
                f"{source}: column {quote(name)}: must stand in the file once, got it again after "
                f"{quote(names[usual])}"
            )
        if not usual or is_derived(usual):
            rule = "a name that this reader does not give" if usual else "a name"
            raise DataError(f"{source}: column {quote(name)}: must have {rule}; rename it")
        names[usual] = name
    if "code" not in names:
        raise DataError(
            f"{source}: must have a column 'code', of places; has {quote(', '.join(names))}"
        )
    first = [name for name in COLUMNS if name in names]
    return {name: names[name] for name in dict.fromkeys([*first, *names])}


def _frame(
    piece: forms.Piece,
    names: dict[str, str],
    width: int,
    bases: dict[str, str],
    odd: Counter[str],
    faults: forms.Faults,
) -> pd.DataFrame:
    """Return a piece as a frame; oddities are counted in ``odd``."""
    numbers: dict[str, _Numbers] = {}
    for usual, name in names.items():
        if is_text(usual):
            continue
        column = numbers[usual] = _Numbers(piece, usual, name, faults)
        if usual in SIGNED:
            odd[f"column {name!r} below 0"] += int((column.values < 0).sum())
        elif usual not in ("latitude", "longitude"):
            codes = ", ".join(str(code) for code in REASONS)
            column.keep(~(column.values < 0), f"a number >= 0 or one of {codes}", BELOW)
        if usual.startswith("pct_") and usual != "pct_median" and usual not in bases:
            odd[f"column {name!r} above 100"] += int((column.values > 100).sum())
    for usual in sorted(set(bases.values())):
        # Bounds of counts are computed in 64-bit integers.
        numbers[usual].keep(~(numbers[usual].values > MAX_BASE), f"at most {MAX_BASE}", TOO_LARGE)
    columns: dict[str, ExtensionArray] = {}
    for usual, name in names.items():
        if is_text(usual):
            columns[usual] = texts(piece, usual, name, width, faults)
            continue
        column = numbers[usual]
        bounds = {}
        if usual in bases:
            share, base = column.values, numbers[bases[usual]].values
            good = ((np.rint(share) == share) & (share <= 100)) | np.isnan(share)
            column.keep(good, "a whole percentage up to 100", NO_SHARE)
            finite = np.isfinite(share) & np.isfinite(base)
            n, p = (np.rint(np.where(finite, v, 0)).astype(np.int64) for v in (base, share))
            low, high = share_bounds(n, p)
            impossible = finite & (low > high)
            column.reason[impossible] = NO_COUNT
            bounds = {
                f"{usual}_{end}": pd.arrays.IntegerArray(bound, ~finite | impossible)
                for end, bound in (("low", low), ("high", high))
            }
        columns[usual] = pd.arrays.FloatingArray(column.values, np.isnan(column.values))
        reason = _as_text(_TEXT_OF_REASON.take(pa.array(column.reason)))
        columns |= {f"{usual}_reason": reason, **bounds}
    return pd.DataFrame(columns)
