"""Housing units of privacy-protected microdata files."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk.readers.ppmf import _layouts as layouts
from bayesrisk.readers.ppmf.persons import block_of, records_of, write_rows_of
from bayesrisk.readers.text.columns import CHUNK, Piece
from bayesrisk.readers.text.places import state_code, state_of_name
from bayesrisk.readers.text.record_pieces import joined, pieces_of
from bayesrisk.readers.text.source import one_source
from bayesrisk.tables import Records

_UNIT, _QUARTERS = 2, 4  # kinds of record


def iter_ppmf_units(
    path: str | Path, *, state: str | None = None, chunk: int = CHUNK
) -> Iterator[Records]:
    """Read housing units of a privacy-protected microdata file, a piece at a time.

    Group quarters are left out, because they are not housing units.

    Parameters
    ----------
    path : path-like
        CSV file, or a ZIP archive or gzip file of one: 2010 demonstration data of 2021 (8 columns),
        the 2020 file, or the internal forms of either.
    state : str, optional
        As for :func:`iter_ppmf`.
    chunk : int, optional
        Rows in memory at a time.

    Yields
    ------
    Records
        Schema ``pl94-units`` from 2010 demonstration data, else ``household-dhc``.

    Raises
    ------
    DataError
        If the columns are those of no known vintage, or a value breaks its format.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_ppmf_units
    >>> try:
    ...     list(iter_ppmf_units("no-such-file.csv"))
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """
    rows = check.integer(chunk, "chunk", lower=1)
    source = one_source(path, ".csv", ".txt")
    place = state_code(state) or state_of_name(source.base)
    layout, names, wanted = layouts.detect(source, "unit")
    pieces = layouts.code_pieces(source, layout, names, wanted, rows)
    make = _occupancy if layout.schema == "pl94-units" else _households
    for piece in pieces:
        yield make(piece, wanted, place)


def read_ppmf_units(path: str | Path, *, state: str | None = None) -> Records:
    """Read all housing units of a privacy-protected microdata file into memory.

    Parameters
    ----------
    path : path-like
        As for :func:`iter_ppmf_units`.
    state : str, optional
        As for :func:`iter_ppmf`.

    Returns
    -------
    Records
        Schema ``pl94-units`` or ``household-dhc``.

    Raises
    ------
    ArgumentError
        If ``state`` names no state.
    DataError
        If the columns are those of no known vintage, or a value breaks its format.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import read_ppmf_units
    >>> try:
    ...     read_ppmf_units("no-such-file.csv")
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """
    return joined(iter_ppmf_units(path, state=state), path)


def _occupancy(piece: Piece, names: dict[str, str], state: str | None) -> Records:
    block = block_of(piece, names, state)
    unit = piece.codes(names["RTYPE"], (_UNIT, _QUARTERS)) == _UNIT
    status = piece.whole(names["HH_STATUS"], 0, 2)
    piece.check(names["HH_STATUS"], unit == (status > 0), "1 or 2 where RTYPE is 2, else 0")
    kept = np.flatnonzero(unit)
    return records_of("pl94-units", {"block": block.take(kept), "h1": 2 - status[kept]})


def _households(piece: Piece, names: dict[str, str], state: str | None) -> Records:
    block = block_of(piece, names, state)
    unit = piece.codes(names["RTYPE"], (_UNIT, _QUARTERS)) == _UNIT
    kept = np.flatnonzero(unit)
    codes = {
        own: piece.whole(names[name], 0, top) for own, (name, top) in layouts.HOUSEHOLD.items()
    }
    occupied = unit & (codes["vacancy"] == 0)
    for own in layouts.PRESENCE:
        codes[own] = np.where(occupied, codes[own] + 1, codes[own])
    for own, (name, _) in layouts.HOUSEHOLD.items():
        if own != "vacancy":
            rule = "0 in vacant units and group quarters, and only there"
            piece.check(names[name], (codes[own] > 0) == occupied, rule)
    columns = {"block": block.take(kept), **{own: v[kept] for own, v in codes.items()}}
    return records_of("household-dhc", columns)


def write_ppmf_units(
    records: Records | Iterable[Records], path: str | Path, *, vintage: str
) -> None:
    """Write housing units in the form of a privacy-protected microdata file.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``pl94-units`` for ``2010-demonstration`` and ``mdf-pl94``; ``household-dhc`` for
        ``2020`` and ``mdf-dhc``.
    path : path-like
        File to be made; it must not exist.
    vintage : str
        One of these four.  Columns that the records do not hold are left empty.

    Raises
    ------
    ArgumentError
        If the vintage is unknown or the records have another schema.
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_ppmf_units
    >>> try:
    ...     write_ppmf_units([], "new.csv", vintage="2000")
    ... except ArgumentError as error:
    ...     print(error)
    vintage must be one of 2010-demonstration, mdf-pl94, mdf-dhc, 2020, got '2000'
    """
    layout = layouts.named_layout(vintage, "unit")
    make = _occupancy_rows if layout.schema == "pl94-units" else _household_rows
    tables = (
        layouts.filled(make(piece), layout, len(piece))
        for piece in pieces_of(records, layout.schema)
    )
    write_rows_of(path, layout, tables)


def _occupancy_rows(records: Records) -> dict[str, Any]:
    return {
        **layouts.geography_columns(records.geoids),
        "RTYPE": np.full(len(records), _UNIT),
        "HH_STATUS": 2 - records.codes("h1"),
    }


def _household_rows(records: Records) -> dict[str, Any]:
    occupied = records.codes("vacancy") == 0
    columns: dict[str, Any] = {
        **layouts.geography_columns(records.geoids),
        "RTYPE": np.full(len(records), _UNIT),
        "GQTYPE": np.full(len(records), "000"),
        "HH_STATUS": np.where(occupied, 1, 2),
    }
    for own, (name, _) in layouts.HOUSEHOLD.items():
        codes = records.codes(own)
        columns[name] = np.maximum(codes - 1, 0) if own in layouts.PRESENCE else codes
    return columns
