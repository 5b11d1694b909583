"""Posteriors for a table of releases, a piece at a time.

CSV or Parquet by the ending of either file.  Columns that are not needed pass through as they are,
so that codes in a CSV file keep their leading zeros; those that are needed are written as numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from bayesrisk import _files
from bayesrisk._files.delimited import header_fields, open_text, text_tables
from bayesrisk._files.parquet import check_kinds, read_batches
from bayesrisk._files.text import named, shown
from bayesrisk._validation import MAX_COUNT, BoolArray, FloatArray, IntArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError, DataError

#: Rows in memory at a time.
CHUNK = 2**18
NEW_COLUMNS = ("target_probability", "risk_ratio", "truncation_bound")
_COUNTS = ("block", "group", "siblings")
_SETTINGS = ("n_siblings", "prior", "known_count")
_LOWEST = {"n_siblings": 1, "known_count": 0}
_NEEDED = (*_COUNTS, *_SETTINGS)


def add_columns(
    source: Path,
    output: Path,
    compute: Callable[..., Any],
    settings: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
) -> tuple[int, float]:
    """Write a table with posterior columns; return its rows and their largest truncation bound.

    ``source`` has columns ``block``, ``group`` and ``siblings`` and, unless they are among the
    settings (None where they differ by row), ``n_siblings``, ``prior`` and (optional)
    ``known_count``; ``output`` is new.  ``compute`` is ``hierarchical_posterior`` with the settings
    that no table holds; ``progress`` is called with the number of rows of each piece.
    """
    ending = _ending(output, "output")
    _ending(source, "releases")
    with _files.whole_file(output, new=True) as target:
        return _write(_pieces(source, compute, dict(settings), progress), target, ending)


def _ending(file: Path, option: str) -> str:
    ending = file.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise ArgumentError(f"{option} must end in .csv or .parquet, got {shown(str(file))}")
    return ending


def _read(file: Path) -> Iterator[pd.DataFrame]:
    """Yield the table in pieces; a table without rows yields one empty piece."""
    if file.suffix.lower() == ".csv":
        with named(str(file), also=(pa.ArrowException,)), open_text(file) as lines:
            names = header_fields(lines.readline(), str(file))
            empty = True
            for table in text_tables(lines, names):
                empty = False
                for start in range(0, table.num_rows, CHUNK):
                    yield table.slice(start, CHUNK).to_pandas()
            if empty:
                yield pd.DataFrame(columns=names, dtype=str)
        return
    for table in read_batches(file, CHUNK):
        needed = {name: ("number", "text") for name in table.column_names if name in _NEEDED}
        check_kinds(table.schema, file, needed)
        yield table.to_pandas(types_mapper=pd.ArrowDtype)


def _refuse(bad: BoolArray, values: pd.Series, file: Path, start: int, bound: str) -> None:
    """Name the first bad value by row and column, if there is one."""
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{file}: row {start + row + 1}, column {values.name!r}: must be {bound}, "
            f"got {shown(values.iloc[row])}"
        )


def _whole_numbers(values: pd.Series, file: Path, start: int) -> IntArray:
    """Return counts as whole numbers."""
    name = str(values.name)
    low = _LOWEST.get(name, -MAX_COUNT)
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.dtype == bool:
        numbers = pd.Series(np.nan, index=values.index)
    number = numbers.to_numpy(dtype=float, na_value=np.nan)
    with np.errstate(invalid="ignore"):
        bad = ~((number == np.rint(number)) & (number >= low) & (number <= MAX_COUNT))
    bound = str(low) if name in _LOWEST else "-2**52"
    _refuse(bad, values, file, start, f"a whole number in [{bound}, 2**52]")
    return number.astype(np.int64)


def _probabilities(values: pd.Series, file: Path, start: int) -> FloatArray:
    """Return priors, which may be written as fractions."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    numbers = np.full(len(distinct), np.nan)
    for i, value in enumerate(distinct):
        try:
            numbers[i] = float(exact_number(value if isinstance(value, str) else float(value)))
        except (ArgumentError, TypeError, ValueError, OverflowError):
            continue
    numbers = numbers[codes]
    with np.errstate(invalid="ignore"):
        bad = ~((numbers > 0.0) & (numbers < 1.0))
    _refuse(bad, values, file, start, "a probability in (0, 1)")
    return numbers


def _check_columns(piece: pd.DataFrame, file: Path, settings: Mapping[str, Any]) -> None:
    present = [str(name) for name in piece.columns]
    listed = ", ".join(present) or "none"
    for name in _NEEDED:
        option, given = f"--{name.replace('_', '-')}", settings.get(name) is not None
        if name in present and given:
            raise DataError(f"{file}: has a column {name!r}, so {option} must not be given")
        if name not in present and not given:
            hint = "" if name in _COUNTS else f", and {option} is not given"
            raise DataError(f"{file}: has no column {name!r}{hint}; columns: {listed}")
    for name in NEW_COLUMNS:
        if name in present:
            raise DataError(f"{file}: must not have a column {name!r}, which is to be added")
    if piece.empty:
        raise DataError(f"{file}: must have at least one row, got none")


def _pieces(
    file: Path,
    compute: Callable[..., Any],
    settings: dict[str, Any],
    progress: Callable[[int], None] | None,
) -> Iterator[pd.DataFrame]:
    """Yield the pieces of the table with their new columns."""
    start = 0
    for piece in _read(file):
        if start == 0:
            if "known_count" not in piece.columns and settings.get("known_count") is None:
                settings["known_count"] = 0
            _check_columns(piece, file, settings)
        fixed = {name: value for name, value in settings.items() if value is not None}
        columns = {
            name: (_probabilities if name == "prior" else _whole_numbers)(piece[name], file, start)
            for name in _NEEDED
            if name not in fixed
        }
        try:
            result = compute(**columns, **fixed)
        except ArgumentError as error:
            rows = f"rows {start + 1} to {start + len(piece)}"
            raise DataError(f"{file}: {rows}: {error}") from error
        columns |= {name: getattr(result, name) for name in NEW_COLUMNS}
        yield piece.assign(**columns)
        start += len(piece)
        if progress is not None:
            progress(len(piece))


def _write(pieces: Iterable[pd.DataFrame], target: BinaryIO, ending: str) -> tuple[int, float]:
    """Write the pieces; return the number of rows and the largest truncation bound."""
    rows, bound = 0, 0.0
    writer: Any = None
    try:
        for piece in pieces:
            if ending == ".csv":
                text = piece.to_csv(index=False, header=rows == 0, lineterminator="\n")
                target.write(text.encode())
            else:
                schema = writer.schema if writer else None
                table = pa.Table.from_pandas(piece, schema=schema, preserve_index=False)
                writer = writer or parquet.ParquetWriter(target, table.schema)
                writer.write_table(table)
            rows += len(piece)
            bound = max(bound, float(piece["truncation_bound"].max()))
    finally:
        if writer:
            writer.close()
    return rows, bound
