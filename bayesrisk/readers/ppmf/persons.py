"""Privacy-protected microdata files: the persons and units that TopDown made up.

Layouts after the specification of the microdata detail file in the Census Bureau's published
programs (2010 demonstrations of 2021 and its internal form; 2020 production of August 2024).
Columns are found by name; tract and block group changed theirs between releases.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk.readers.ppmf import _layouts as layouts
from bayesrisk.readers.text.columns import CHUNK, Piece
from bayesrisk.readers.text.places import block_column, state_code, state_of_name
from bayesrisk.readers.text.record_pieces import extra_column, joined, pieces_of
from bayesrisk.readers.text.source import one_source
from bayesrisk.readers.text.write import write_table
from bayesrisk.tables import Records, Schema

_OLDEST = 110  # age 110 and over is one code of the published tables
_IN_HOUSEHOLD, _IN_QUARTERS = 3, 5


def iter_ppmf(
    path: str | Path, *, state: str | None = None, chunk: int = CHUNK
) -> Iterator[Records]:
    """Read persons of a privacy-protected microdata file, a piece at a time.

    Parameters
    ----------
    path : path-like
        CSV file, or a ZIP archive or gzip file of one: 2010 demonstration data of May 2020 (without
        ``VINTAGE``; voting age or single years) or of 2021 (11 columns), the 2020 file (whose other
        geographies are not read), or the internal forms (``|`` between columns, ``#`` before
        comments).  Codes may be written as ``3.0``.
    state : str, optional
        FIPS code or postal abbreviation of the state that every block must lie in; by default the
        one that ends the file's name, if one does.
    chunk : int, optional
        Rows in memory at a time.

    Yields
    ------
    Records
        Schema ``pl94`` from 2010 demonstration data, else ``sf1-person`` with ages over 110 as 110
        and a column ``gq`` (0 to 7, the kinds of group quarters of ``pl94``).

    Raises
    ------
    DataError
        If the columns are those of no known vintage, or a value breaks its format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.readers import iter_ppmf, write_ppmf
    >>> from bayesrisk.tables import Records, Schema
    >>> frame = pd.DataFrame({"block": ["500010001001000"] * 3, "hhgq": 0, "votingage": [0, 1, 1],
    ...                       "hispanic": 0, "cenrace": [0, 0, 62]})
    >>> with TemporaryDirectory() as folder:
    ...     write_ppmf(Records.from_frame(frame, schema=Schema.named("pl94")), folder + "/vt.csv",
    ...                vintage="2010-demonstration")
    ...     [len(piece) for piece in iter_ppmf(folder + "/vt.csv", chunk=2)]
    [2, 1]
    """
    rows = check.integer(chunk, "chunk", lower=1)
    source = one_source(path, ".csv", ".txt")
    place = state_code(state) or state_of_name(source.base)
    layout, names, wanted = layouts.detect(source, "person")
    pieces = layouts.code_pieces(source, layout, names, wanted, rows)
    make = _pl94 if layout.schema == "pl94" else _persons
    for piece in pieces:
        yield make(piece, wanted, place)


def read_ppmf(path: str | Path, *, state: str | None = None) -> Records:
    """Read all persons of a privacy-protected microdata file into memory.

    Parameters
    ----------
    path : path-like
        As for :func:`iter_ppmf`.
    state : str, optional
        As for :func:`iter_ppmf`.

    Returns
    -------
    Records
        Schema ``pl94`` or ``sf1-person``.

    Raises
    ------
    ArgumentError
        If ``state`` names no state.
    DataError
        If the columns are those of no known vintage, or a value breaks its format.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import read_ppmf
    >>> try:
    ...     read_ppmf("no-such-file.csv")
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: no such file
    """
    return joined(iter_ppmf(path, state=state), path)


def block_of(piece: Piece, names: dict[str, str], state: str | None) -> Any:
    """Return the 15-digit blocks of a piece."""
    return block_column(piece, [names[n] for n in layouts.GEOGRAPHY], state)


def _check_quarters(piece: Piece, names: dict[str, str], quarters: Any, column: str) -> None:
    """Refuse a type of record that contradicts the kind of quarters."""
    kind = piece.codes(names["RTYPE"], (_IN_HOUSEHOLD, _IN_QUARTERS))
    same = (kind == _IN_QUARTERS) == (quarters > 0)
    piece.check(column, same, "0 where RTYPE is 3, and only there")


def _pl94(piece: Piece, names: dict[str, str], state: str | None) -> Records:
    quarters = piece.whole(names["GQTYPE_PL"], 0, 7)
    _check_quarters(piece, names, quarters, names["GQTYPE_PL"])
    columns = {
        "block": block_of(piece, names, state),
        "hhgq": quarters,
        "votingage": piece.whole(names["VOTING_AGE"], 1, 2) - 1,
        "hispanic": piece.whole(names["CENHISP"], 1, 2) - 1,
        "cenrace": piece.whole(names["CENRACE"], 1, 63) - 1,
    }
    return records_of("pl94", columns)


def _persons(piece: Piece, names: dict[str, str], state: str | None) -> Records:
    if "GQTYPE_PL" in names:
        column = names["GQTYPE_PL"]
        quarters = piece.whole(column, 0, 7)
    else:
        column = names["GQTYPE"]
        quarters = layouts.major_quarters(piece.codes(column, layouts.QUARTERS))
    _check_quarters(piece, names, quarters, column)
    age = piece.whole(names["QAGE"], 0, 115)
    if "VOTING_AGE" in names:
        adult = piece.whole(names["VOTING_AGE"], 1, 2) == 2
        piece.check(names["VOTING_AGE"], adult == (age >= 18), "2 where QAGE is 18 or more, else 1")
    columns = {
        "block": block_of(piece, names, state),
        "sex": piece.whole(names["QSEX"], 1, 2) - 1,
        "age": np.minimum(age, _OLDEST),
        "race": layouts.RACE_MASKS[piece.whole(names["CENRACE"], 1, 63) - 1],
        "hisp": piece.whole(names["CENHISP"], 1, 2) - 1,
        "gq": quarters,
    }
    return records_of("sf1-person", columns)


def records_of(name: str, columns: dict[str, Any]) -> Records:
    """Return records of a schema by its name."""
    kept = {k: v if k == "block" else pa.array(v.astype(np.int16)) for k, v in columns.items()}
    return Records(Schema.named(name), pa.table(kept))


def write_ppmf(records: Records | Iterable[Records], path: str | Path, *, vintage: str) -> None:
    """Write persons in the form of a privacy-protected microdata file.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``pl94`` for ``2010-demonstration``, ``2020-05-27`` and ``mdf-pl94``; ``sf1-person``
        with a column ``gq`` for ``2020``, ``2020-05-27-ages`` and ``mdf-dhc``.
    path : path-like
        File to be made; it must not exist.
    vintage : str
        One of these six.  Columns that the records do not hold are left empty.

    Raises
    ------
    ArgumentError
        If the vintage is unknown or the records have another schema or no column ``gq``.
    OutputError
        If the file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_ppmf
    >>> try:
    ...     write_ppmf([], "new.csv", vintage="2000")
    ... except ArgumentError as error:
    ...     print(str(error).split(",")[0])
    vintage must be one of 2010-demonstration
    """
    layout = layouts.named_layout(vintage, "person")
    make = _pl94_rows if layout.schema == "pl94" else _person_rows
    tables = (
        layouts.filled(make(piece), layout, len(piece))
        for piece in pieces_of(records, layout.schema)
    )
    write_rows_of(path, layout, tables)


def write_rows_of(path: str | Path, layout: layouts.Layout, tables: Iterable[pa.Table]) -> None:
    """Write tables in a layout."""
    above = "" if layout.comment is None else f"{layout.comment} bayesrisk {layout.name}\n"
    write_table(path, layout.columns, tables, delimiter=layout.delimiter, above=above)


def _pl94_rows(records: Records) -> dict[str, Any]:
    quarters = records.codes("hhgq")
    return {
        **layouts.geography_columns(records.geoids),
        "RTYPE": np.where(quarters > 0, _IN_QUARTERS, _IN_HOUSEHOLD),
        "GQTYPE_PL": quarters,
        "VOTING_AGE": records.codes("votingage") + 1,
        "CENHISP": records.codes("hispanic") + 1,
        "CENRACE": layouts.TWO_DIGITS[records.codes("cenrace") + 1],
    }


def _person_rows(records: Records) -> dict[str, Any]:
    quarters = extra_column(records, "gq", 7)
    age, race = records.codes("age"), records.codes("race")
    return {
        **layouts.geography_columns(records.geoids),
        "EPNUM": np.arange(1, len(records) + 1),
        "RTYPE": np.where(quarters > 0, _IN_QUARTERS, _IN_HOUSEHOLD),
        "GQTYPE": layouts.FIRST_QUARTERS[quarters],
        "QSEX": records.codes("sex") + 1,
        "QAGE": age,
        "CENHISP": records.codes("hisp") + 1,
        "CENRACE": layouts.TWO_DIGITS[layouts.RACE_INDEX[race] + 1],
        "NUMRACE": np.bitwise_count(race.astype(np.uint8)).astype(np.int64),
        "GQTYPE_PL": quarters,
        "VOTING_AGE": 1 + (age >= 18),
    }
