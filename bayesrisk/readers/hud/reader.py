"""HUD's Picture of Subsidized Households: rounded shares, and codes for what is withheld."""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayesrisk import _validation as check
from bayesrisk._files.parse import all_of, shown
from bayesrisk._files.text import header_fields, split_line
from bayesrisk.exceptions import DataError, DataWarning
from bayesrisk.readers.hud import _columns as known
from bayesrisk.readers.hud import _values
from bayesrisk.readers.text.columns import Faults, Piece, blank_columns, csv_pieces, header_of
from bayesrisk.readers.text.source import Source, check_length, first_lines, one_source
from bayesrisk.readers.text.xlsx import sheet_rows

#: Most households of a place, of which shares are read.
MAX_BASE = 10**12
CHUNK = 2**15  # rows in memory at a time, where the caller does not say
_ABOVE = 20  # rows among which the header is


def iter_hud(
    path: str | Path, *, level: str, on_error: str = "refuse", chunk: int = CHUNK
) -> Iterator[pd.DataFrame]:
    r"""Read HUD's Picture of Subsidized Households, a piece at a time.

    Parameters
    ----------
    path : path-like
        CSV file (also gzip or ZIP), or ``.xlsx``, whose first sheet is read.  The header is the
        first of 20 rows with a column ``code``: titles above it, and empty rows, are left out.
        Numbers may be written as ``$1,234`` and shares as ``45%``.
    level : str
        ``"tract"``, ``"county"`` or ``"state"``: what the file's ``code`` is of, 11, 5 or 2
        digits, whose leading zeros are put back.
    on_error : str, optional
        What becomes of a value that cannot be, such as -13 units: ``"refuse"`` raises for the first
        of them, ``"missing"`` keeps it as missing, with its reason, and counts it.  A row without a
        code of its place is refused always.
    chunk : int, optional
        Rows in memory at a time.

    Yields
    ------
    pandas.DataFrame
        The columns of the file in lower case and the order of the published files: text, or
        numbers (``Float64``, missing where the file has one of its codes) each followed by
        ``<name>_reason`` where a value is missing.  A code of a place that is not known, such as
        ``01XXX``, is missing.  A share of the reported households is followed by ``<name>_low`` and
        ``<name>_high`` (``Int64``), the least and largest whole count that rounds to it; where
        none does, both are missing and the reason is ``no whole count``.  Columns that no known
        vintage has follow as they are, text.

    Raises
    ------
    DataError
        If a column is there twice or takes a name that this reader gives, there is no column
        ``code``, a code is of another level, or a value is no number or out of range and
        ``on_error`` is ``"refuse"``.

    Warns
    -----
    DataWarning
        Once if there are columns of no known vintage, and at the end once if percentages without
        an interval are above 100 or ``rent_per_month`` or ``spending_per_month`` is below 0, and
        once if values are missing because they cannot be; it says how many, by column and reason,
        and its ``missing`` holds these numbers.

    Notes
    -----
    The columns of 2006 to 2008, of 2009 to 2013, of 2014 to 2023 and of 2024 and 2025 are known.
    There are no intervals before 2014, which the columns, or a year in the file's name, tell: in
    12 to 26 percent of the shares of 2009 to 2013 of fewer than 60 households none is that of a
    whole number, and those of 2006 to 2008 were not examined.  There are none for
    ``pct_disabled_all``, which is a share of people, nor for ``pct_occupied`` and the income bands,
    whose bases are not published.

    A share of p percent among n households, rounded either way at a half, is of a count c with
    :math:`n (2p - 1) \le 200 c \le n (2p + 1)`; the bounds are computed in whole numbers, and n
    may be at most :math:`10^{12}`.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_hud
    >>> try:
    ...     list(iter_hud("no-such-file.csv", level="tract"))
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """
    width = known.CODE_WIDTHS[check.choice(level, "level", tuple(known.CODE_WIDTHS))]
    rows = check.integer(chunk, "chunk", lower=1)
    faults = Faults(on_error)
    source = one_source(path, ".csv", ".xlsx")
    if source.base.endswith(".xlsx"):
        pieces = _from_excel(source, rows)
    else:
        above, header, blank = _header(source)
        _names(header, source.name)
        raw = csv_pieces(
            source, header, wanted=header, chunk=rows, text=pa.binary(), header=False,
            skip=above + 1, blank=blank,
        )  # fmt: skip
        pieces = map(_decoded, raw)
    names: dict[str, str] = {}
    odd: Counter[str] = Counter()
    for piece in pieces:
        if not names:
            names = _names(piece.table.column_names, source.name)
            _warn_of_unknown(names, source.name)
        yield _frame(
            _without_empty_rows(piece, names["code"]),
            names,
            width,
            known.bases(names, source.base),
            odd,
            faults,
        )
    faults.warn(source.name)
    _warn_of_odd(odd, source.name)


def read_hud(path: str | Path, *, level: str, on_error: str = "refuse") -> pd.DataFrame:
    r"""Read a whole file of HUD's Picture of Subsidized Households into memory.

    Parameters
    ----------
    path, level, on_error
        As for :func:`iter_hud`.

    Returns
    -------
    pandas.DataFrame
        As :func:`iter_hud` yields.

    Raises
    ------
    ArgumentError
        As for :func:`iter_hud`.
    DataError
        As for :func:`iter_hud`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesrisk.readers import read_hud
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
    check_length(path)
    frames = all_of(iter_hud(path, level=level, on_error=on_error), _bytes, str(path))
    return pd.concat(frames, ignore_index=True)


def _bytes(frame: pd.DataFrame) -> int:
    return int(frame.memory_usage(deep=True).sum())


def _is_header(fields: Sequence[str]) -> bool:
    return "code" in map(known.usual_name, fields)


def _header(source: Source) -> tuple[int, list[str], int]:
    """Return how many lines stand above the header, its names, and how many more have no name.

    It is the first line with a column ``code``: others are titles.  Where none is, it is the first.
    """
    first_lines(source, None)  # which refuses what is no text
    with source.open() as stream:
        lines = [line for line in (stream.readline() for _ in range(_ABOVE)) if line]
    for place, line in enumerate(lines):
        fields = split_line(line.decode("utf-8-sig", "replace").rstrip("\n"), source.name)
        if _is_header(fields):
            blank = blank_columns(line, source)
            names = header_fields(line, source.name, errors="replace", without_blank=True)
            return place, names, blank
    return 0, header_of(source), 0


def _without_empty_rows(piece: Piece, code: str) -> Piece:
    """Leave out rows in which nothing stands, as spreadsheets have at their end."""
    if not pc.any(pc.equal(piece.table.column(code), "")).as_py():
        return piece
    there = np.zeros(len(piece), dtype=bool)
    for column in piece.table.columns:
        there |= pc.not_equal(pc.utf8_trim_whitespace(column), "").to_numpy()
    return piece.take(np.flatnonzero(there))


def _from_excel(source: Source, chunk: int) -> Iterator[Piece]:
    """Yield the rows of the first sheet as text, as they stand in its cells."""
    if source.member is not None:
        raise DataError(f"{source.name}: must not be in an archive: unpack it")
    rows = sheet_rows(source)
    first = list(islice(rows, _ABOVE))
    above = next((i for i, row in enumerate(first) if _is_header(row)), 0)
    header = first[above] if first else []
    while header and not header[-1]:
        header.pop()
    _names(header, source.name)
    start = 0
    held: list[list[str]] = []
    for row in chain(first[above + 1 :], rows):
        if len(row) > len(header) and any(row[len(header) :]):
            raise DataError(
                f"{source.name}: row {start + len(held) + 1}: must have {len(header)} columns, got "
                f"{len(row)}"
            )
        held.append([*row[: len(header)], *[""] * (len(header) - len(row))])
        if len(held) == min(chunk, CHUNK):
            yield _sheet_piece(source.name, start, header, held)
            start, held = start + len(held), []
    if held or start == 0:
        yield _sheet_piece(source.name, start, header, held)


def _decoded(piece: Piece) -> Piece:
    """Return bytes as text: UTF-8, or a column that is not as Latin-1, as older files are."""
    table = piece.table
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [cell.decode("latin-1") for cell in column.to_pylist()]
            column = pa.array(texts, pa.string())
        table = table.set_column(place, name, column)
    return Piece(piece.name, piece.start, table)


def _sheet_piece(name: str, start: int, header: list[str], rows: list[list[str]]) -> Piece:
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    table = {h: pa.array(list(c), pa.string()) for h, c in zip(header, columns, strict=True)}
    return Piece(name, start, pa.table(table))


def _names(header: list[str], source: str) -> dict[str, str]:
    """Return what the file calls each column: known ones in the usual order, then the others."""
    found: dict[str, str] = {}
    for name in header:
        usual = known.usual_name(name)
        if usual in found:
            raise DataError(
                f"{source}: column {shown(name)}: must stand in the file once, got it again after "
                f"{shown(found[usual])}"
            )
        if not usual or known.is_derived(usual):
            rule = "a name that this reader does not give" if usual else "a name"
            raise DataError(f"{source}: column {shown(name)}: must have {rule}; rename it")
        found[usual] = name
    if "code" not in found:
        raise DataError(
            f"{source}: must have a column 'code', of places; has {shown(', '.join(found))}"
        )
    first = [name for name in known.COLUMNS if name in found]
    return {name: found[name] for name in dict.fromkeys([*first, *found])}


def _warn_of_unknown(names: dict[str, str], source: str) -> None:
    """Say which columns are kept as they are."""
    unknown = [name for usual, name in names.items() if not known.is_known(usual)]
    if unknown:
        warnings.warn(
            f"{source}: columns that no known vintage has are kept as text: {', '.join(unknown)}",
            DataWarning,
            stacklevel=3,
        )


def _warn_of_odd(odd: Counter[str], source: str) -> None:
    """Say which values are out of the usual range."""
    if odd:
        listed = "; ".join(f"{what} ({times} rows)" for what, times in odd.items())
        warnings.warn(
            f"{source}: values out of the usual range are kept: {listed}", DataWarning, stacklevel=3
        )


def _frame(
    piece: Piece,
    names: dict[str, str],
    width: int,
    bases: dict[str, str],
    odd: Counter[str],
    faults: Faults,
) -> pd.DataFrame:
    """Return a piece as a frame; what is odd in it is counted."""
    found = {
        usual: _values.numbers(piece, usual, name, odd, faults, share=usual in bases)
        for usual, name in names.items()
        if not known.is_text(usual)
    }
    for usual in sorted(set(bases.values())):
        # Bounds of counts are computed in 64-bit integers.
        good = ~(found[usual][0] > MAX_BASE)
        found[usual] = _values.missing(
            faults, piece, names[usual], found[usual], good, f"at most {MAX_BASE}",
            _values.TOO_LARGE,
        )  # fmt: skip
    columns: dict[str, Any] = {}
    for usual, name in names.items():
        if known.is_text(usual):
            columns[usual] = _values.texts(piece, usual, name, width, faults)
            continue
        values, reason = found[usual]
        bounds = {}
        if usual in bases:
            good = ((np.rint(values) == values) & (values <= 100)) | np.isnan(values)
            values, reason = _values.missing(
                faults, piece, name, (values, reason), good, "a whole percentage up to 100",
                _values.NO_SHARE,
            )  # fmt: skip
            low, high, none = _values.counts(values, found[bases[usual]][0])
            reason = np.where(none, _values.NO_COUNT, reason)
            bounds = {f"{usual}_low": low, f"{usual}_high": high}
        columns[usual] = pd.arrays.FloatingArray(values.copy(), np.isnan(values))
        columns |= {f"{usual}_reason": _values.reasons(reason), **bounds}
    return pd.DataFrame(columns)
