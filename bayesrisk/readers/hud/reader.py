"""HUD's Picture of Subsidized Households: rounded shares, and codes for what is withheld."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import all_of, shown
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.hud import _columns as known
from bayesrisk.readers.text.columns import Piece, csv_pieces, header_of
from bayesrisk.readers.text.source import Source, check_length, one_source
from bayesrisk.readers.text.write import write_table
from bayesrisk.readers.text.xlsx import sheet_rows

__all__ = ["iter_hud", "read_hud", "write_hud"]

#: Most households or units of a place, of which shares are read.
MAX_BASE = 10**12
CHUNK = 2**15  # rows in memory at a time, where the caller does not say


def iter_hud(path: str | Path, *, level: str, chunk: int = CHUNK) -> Iterator[pd.DataFrame]:
    r"""Read HUD's Picture of Subsidized Households, a piece at a time.

    Parameters
    ----------
    path : path-like
        CSV file (also gzip or ZIP), or ``.xlsx``, whose first sheet is read.
    level : str
        ``"tract"``, ``"county"`` or ``"state"``: what the file's ``code`` is of, 11, 5 or 2
        digits, whose leading zeros are put back.
    chunk : int, optional
        Rows in memory at a time.

    Yields
    ------
    pandas.DataFrame
        The columns of the file in lower case and the order of the published files: text, or
        numbers (``Float64``, missing where the file has one of its codes) each followed by
        ``<name>_reason`` where a value is missing.  A share of households or units is followed by
        ``<name>_low`` and ``<name>_high`` (``Int64``), the least and largest whole count that
        rounds to it; where none does, both are missing and the reason is ``no whole count``.

    Raises
    ------
    ArgumentError
        If ``level`` is not one of these or ``chunk`` is not positive.
    DataError
        If a column is unknown, or a value is no number, out of range or of another level.

    Notes
    -----
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
    source = one_source(path, ".csv", ".xlsx")
    if source.base.endswith(".xlsx"):
        pieces = _from_excel(source, rows)
    else:
        header = header_of(source)
        _names(header, source.name)
        pieces = csv_pieces(source, header, wanted=header, chunk=rows)
    for piece in pieces:
        yield _frame(piece, _names(piece.table.column_names, piece.name), width)


def read_hud(path: str | Path, *, level: str) -> pd.DataFrame:
    r"""Read a whole file of HUD's Picture of Subsidized Households into memory.

    Parameters
    ----------
    path, level
        As for :func:`iter_hud`.

    Returns
    -------
    pandas.DataFrame
        As :func:`iter_hud` yields.

    Raises
    ------
    ArgumentError
        If ``level`` is not known.
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
    frames = all_of(iter_hud(path, level=level), _bytes, str(path))
    return pd.concat(frames, ignore_index=True)


def _bytes(frame: pd.DataFrame) -> int:
    return int(frame.memory_usage(deep=True).sum())


def _from_excel(source: Source, chunk: int) -> Iterator[Piece]:
    """Yield the rows of the first sheet as text, as they stand in its cells."""
    if source.member is not None:
        raise DataError(f"{source.name}: must not be in an archive")
    rows = sheet_rows(source)
    header = next(rows, [])
    while header and not header[-1]:
        header.pop()
    _names(header, source.name)
    start = 0
    held: list[list[str]] = []
    for row in rows:
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


def _sheet_piece(name: str, start: int, header: list[str], rows: list[list[str]]) -> Piece:
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    table = {h: pa.array(list(c), pa.string()) for h, c in zip(header, columns, strict=True)}
    return Piece(name, start, pa.table(table))


def _names(header: list[str], source: str) -> dict[str, str]:
    """Return what the file calls each column, in the usual order."""
    found: dict[str, str] = {}
    for name in header:
        usual = known.usual_name(name)
        if usual not in known.COLUMNS or usual in found:
            raise DataError(f"{source}: column {shown(name)}: must be a known one, each once")
        found[usual] = name
    if "code" not in found:
        raise DataError(f"{source}: must have a column 'code'; has {', '.join(found)}")
    return {name: found[name] for name in known.COLUMNS if name in found}


def _frame(piece: Piece, names: dict[str, str], width: int) -> pd.DataFrame:
    numbers = {
        usual: _numbers(piece, name) for usual, name in names.items() if usual not in known.TEXTS
    }
    for usual in sorted({*known.BASES.values()} & {*numbers}):
        # Bounds of counts are computed in 64-bit integers.
        good = ~(numbers[usual][0] > MAX_BASE)
        piece.check(names[usual], good, f"at most {MAX_BASE}")
    columns: dict[str, Any] = {}
    for usual, name in names.items():
        if usual in known.TEXTS:
            columns[usual] = _texts(piece, usual, name, width)
            continue
        values, reason = numbers[usual]
        base = known.BASES.get(usual)
        columns[usual] = pd.array(values, dtype="Float64")
        if base in numbers:
            whole = numbers[base][0]
            low, high, none = _counts(piece, name, values, whole)
            reason = np.where(none, "no whole count", reason)
            columns[f"{usual}_reason"] = _reasons(reason)
            columns[f"{usual}_low"], columns[f"{usual}_high"] = low, high
        else:
            columns[f"{usual}_reason"] = _reasons(reason)
    return pd.DataFrame(columns)


def _reasons(reason: NDArray[Any]) -> Any:
    return pd.array([text or None for text in reason.tolist()], dtype="string")


def _texts(piece: Piece, usual: str, name: str, width: int) -> Any:
    """Return a column of text; codes get their leading zeros back."""
    values = np.array(piece.table.column(name).to_pylist(), dtype=object)
    digits = {"code": width, "sumlevel": 2, "stctytrt": 11}.get(usual)
    if digits is not None and len(values):
        good = np.array(
            [
                (t.isascii() and t.isdigit() and len(t) <= digits) or (t == "" and usual != "code")
                for t in values
            ]
        )
        piece.check(name, good, f"at most {digits} digits")
        values = np.array([t.zfill(digits) if t else None for t in values], dtype=object)
    return pd.array([t or None for t in values], dtype="string")


def _numbers(piece: Piece, name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return numbers, NaN where missing, and why they are."""
    texts = pd.Series(piece.table.column(name).to_pylist(), dtype=object)
    blank = texts.isin(["", "NA", "."]).to_numpy(dtype=bool)
    values = pd.to_numeric(texts.mask(blank), errors="coerce").to_numpy(dtype=float)
    piece.check(name, np.isfinite(values) | blank, "a number")
    reason = np.where(blank, "blank", "").astype(object)
    # Coordinates are negative numbers of their own.
    if known.usual_name(name) not in ("latitude", "longitude"):
        for code, text in known.REASONS.items():
            reason[values == code] = text
        values = np.where(reason == "", values, np.nan)
        piece.check(name, ~(values < 0), "a number >= 0 or one of -1, -4, -5")
    return values, reason


def _counts(
    piece: Piece, name: str, share: NDArray[np.float64], base: NDArray[np.float64]
) -> tuple[Any, Any, NDArray[np.bool_]]:
    """Return the bounds of the count behind a rounded percentage, and where no count is."""
    there = np.isfinite(share) & np.isfinite(base)
    whole = (np.rint(share) == share) | ~np.isfinite(share)
    piece.check(name, whole & ~(share > 100), "a whole percentage up to 100")
    n = np.where(there, np.rint(base), 0).astype(np.int64)
    p = np.where(there, share, 0).astype(np.int64)
    low, high = share_bounds(n, p)
    none = there & (low > high)
    hidden = ~there | none
    return _integers(low, hidden), _integers(high, hidden), none


def share_bounds(
    n: NDArray[np.int64], p: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and largest count of ``n`` that is ``p`` percent once rounded."""
    low = -(-n * (2 * p - 1) // 200)
    high = n * (2 * p + 1) // 200
    return np.maximum(low, 0), np.minimum(high, n)


def _integers(values: NDArray[np.int64], hidden: NDArray[np.bool_]) -> Any:
    return pd.arrays.IntegerArray(values.copy(), hidden.copy())


def write_hud(frame: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write frames in the form of HUD's Picture of Subsidized Households.

    Parameters
    ----------
    frame : pandas.DataFrame or iterable of them
        Columns as :func:`iter_hud` yields; bounds of counts are left out, missing values get the
        code of their reason.
    path : path-like
        CSV file to be made; it must not exist.

    Raises
    ------
    ArgumentError
        If the path does not end in ``.csv``, or there is no frame.
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_hud
    >>> try:
    ...     write_hud([], "TRACT_2020.xlsx")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .csv, got 'TRACT_2020.xlsx'
    """
    if check.path(path, "path").suffix.lower() != ".csv":
        raise ArgumentError(f"path must end in .csv, got {shown(str(path))}")
    frames = [frame] if isinstance(frame, pd.DataFrame) else check.items(frame, "frame")
    for piece in frames:
        check.frame(piece, "frame")
    if not frames:
        raise ArgumentError("frame must be at least one data frame, got none")
    names = [name for name in known.COLUMNS if name in frames[0].columns]
    tables = (pa.table({n: _shown(piece, n) for n in names}) for piece in frames)
    write_table(path, names, tables, quotes=True)


def _shown(frame: pd.DataFrame, name: str) -> pa.Array:
    """Return a column as text, with the codes of what is missing."""
    if name in known.TEXTS:
        return pa.array(frame[name].fillna("").astype(str).tolist(), pa.string())
    codes = {text: str(code) for code, text in known.REASONS.items()}
    reason = frame[f"{name}_reason"].tolist()
    texts = [
        codes.get(why, "") if pd.isna(value) else f"{float(value):.15g}"
        for value, why in zip(frame[name].tolist(), reason, strict=True)
    ]
    return pa.array(texts, pa.string())
