"""Writing persons of the 1940 Census in the forms of IPUMS USA."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.ipums import _codes as codes
from bayesrisk.readers.ipums._ddi import Variable, write_ddi
from bayesrisk.readers.ipums.reader import EXTRACT, HOUSEHOLD, PERSON
from bayesrisk.readers.text.columns import digit_matrix
from bayesrisk.readers.text.record_pieces import extra_column, pieces_of
from bayesrisk.readers.text.write import new_file, write_table
from bayesrisk.tables import Records

_HOUSEHOLD_LINE, _PERSON_LINE = 131, 118
_NEEDED = {"household": 10**8 - 1, "person": 9999, "sex": 1, "age": 120}
_IN_HOUSEHOLD, _IN_QUARTERS = 1, 4  # GQ
_CUTS = tuple(pairwise((0, 2, 6, 9, 13)))


def write_ipums_1940(
    records: Records | Iterable[Records], path: str | Path, *, ddi: str | Path | None = None
) -> None:
    """Write persons of the 1940 Census in a form of IPUMS USA.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``census-1940`` with columns ``household``, ``person``, ``sex`` and ``age`` (see
        :func:`iter_ipums_1940`); the persons of a household one after another.
    path : path-like
        File to be made; it must not exist.  ``.csv`` gets an extract; ``.dat`` gets a fixed-width
        extract if ``ddi`` is given, else the hierarchical form of ``EXT1940USCB.dat``.
    ddi : path-like, optional
        DDI codebook to be made beside a fixed-width extract.

    Raises
    ------
    ArgumentError
        If the path ends otherwise, or the records have another schema, lack a column, have ages
        that disagree with ``votingage``, or households in several places or of several kinds.
    OutputError
        If a file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_ipums_1940
    >>> try:
    ...     write_ipums_1940([], "usa.txt")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .csv or .dat, got 'usa.txt'
    """
    target = check.path(path, "path")
    if ddi is not None:
        check.path(ddi, "ddi")
    if target.suffix.lower() not in (".csv", ".dat"):
        raise ArgumentError(f"path must end in .csv or .dat, got {shown(str(path))}")
    if target.suffix.lower() == ".csv" and ddi is not None:
        raise ArgumentError(f"ddi must not be given with a CSV file, got {shown(str(ddi))}")
    pieces = (_columns(piece) for piece in pieces_of(records, "census-1940"))
    if target.suffix.lower() == ".csv":
        write_table(target, list(EXTRACT), (pa.table(columns) for columns in pieces))
    elif ddi is not None:
        _write_fixed(target, ddi, pieces)
    else:
        with new_file(target) as stream:
            _write_hierarchy(stream, pieces)


def _columns(records: Records) -> dict[str, IntArray]:
    """Return the variables of an extract."""
    kept = {name: extra_column(records, name, largest) for name, largest in _NEEDED.items()}
    if np.any((kept["age"] >= codes.ADULT) != (records.codes("votingage") == 1)):
        raise ArgumentError("records must have votingage 1 where age is 18 or more, else 0")
    points = np.ascontiguousarray(records.geoids, dtype="U13").view(np.uint32).reshape(-1, 13)
    digits = points.astype(np.int64) - 48
    place = [digits[:, a:b] @ 10 ** np.arange(b - a - 1, -1, -1) for a, b in _CUTS]
    kind, origin = records.codes("hhgq"), records.codes("hispanic")
    return {
        "YEAR": np.full(len(records), 1940),
        "SERIAL": kept["household"].astype(np.int64),
        "PERNUM": kept["person"].astype(np.int64),
        **dict(zip(("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST"), place, strict=True)),
        "GQ": np.where(kind > 0, _IN_QUARTERS, _IN_HOUSEHOLD),
        "GQTYPE": np.array(codes.QUARTERS)[kind],
        "SEX": kept["sex"].astype(np.int64) + 1,
        "AGE": kept["age"].astype(np.int64),
        "RACE": records.codes("cenrace") + 1,
        "HISPAN": np.array(codes.HISPANIC)[origin],
    }


def _write_fixed(target: Path, ddi: str | Path, pieces: Iterator[dict[str, IntArray]]) -> None:
    variables, start = {}, 0
    for name, (_, largest) in EXTRACT.items():
        stop = start + len(str(largest))
        variables[name] = Variable(name, start, stop)
        start = stop
    with new_file(ddi) as book, new_file(target) as stream:
        book.write(write_ddi(variables, target.name))
        for columns in pieces:
            lines = np.full((columns["YEAR"].size, start + 1), ord("\n"), dtype=np.uint8)
            for name, place in variables.items():
                _put(lines, columns[name], place.start, place.stop)
            stream.write(lines.tobytes())


def _put(lines: NDArray[np.uint8], values: IntArray, start: int, stop: int) -> None:
    lines[:, start:stop] = digit_matrix(values, stop - start)


def _write_hierarchy(stream: BinaryIO, pieces: Iterator[dict[str, IntArray]]) -> None:
    last = -1
    for columns in pieces:
        serial = columns["SERIAL"]
        if not serial.size:
            continue
        first = np.flatnonzero(np.concatenate([[True], serial[1:] != serial[:-1]]))
        owner = np.cumsum(np.isin(np.arange(serial.size), first)) - 1
        for name in ("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST", "GQ", "GQTYPE"):
            if np.any(columns[name] != columns[name][first][owner]):
                raise ArgumentError(f"records of a household must have one {name}")
        if np.unique(serial[first]).size != first.size or serial[0] == last:
            raise ArgumentError("records of a household must follow one another in one piece")
        last = int(serial[-1])
        stream.write(_lines(columns, first, np.bincount(owner)))


def _lines(columns: dict[str, IntArray], first: IntArray, size: IntArray) -> bytes:
    houses = _blank(first.size, _HOUSEHOLD_LINE, "H")
    values = {**columns, "COUNTY": columns["COUNTYICP"]}
    for name, (start, stop) in HOUSEHOLD.items():
        numbers = np.minimum(size, 99) if name == "NUMPREC" else values[name][first]
        _put(houses, numbers, start, stop)
    persons = _blank(columns["YEAR"].size, _PERSON_LINE, "P")
    for name in ("SERIAL", "PERNUM", "SEX", "AGE", "RACE", "HISPAN"):
        _put(persons, columns[name], *PERSON[name])
    parts = []
    for house, start, count in zip(houses, first, size, strict=True):
        parts.append(house.tobytes())
        parts.append(persons[start : start + count].tobytes())
    return b"".join(parts)


def _blank(rows: int, width: int, kind: str) -> NDArray[np.uint8]:
    lines = np.full((rows, width + 1), ord(" "), dtype=np.uint8)
    lines[:, 0], lines[:, -1] = ord(kind), ord("\n")
    return lines
