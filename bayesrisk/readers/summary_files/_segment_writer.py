"""Writing published tables in the form of a state's summary file, for small samples and tests."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.summary_files import _header_2020 as header_2020
from bayesrisk.readers.summary_files._products import Product
from bayesrisk.readers.summary_files._sf1_geography import FIELDS, LINE
from bayesrisk.readers.text.places import STATES
from bayesrisk.readers.text.write import new_file
from bayesrisk.tables import PublishedTables

_ROWS = 2**12
_STAMP = (2011, 1, 1, 0, 0, 0)


def write_segments(product: Product, tables: PublishedTables, path: str | Path) -> None:
    """Write published tables of one state: a geographic header and segments in a ZIP archive."""
    if check.path(path, "path").suffix.lower() != ".zip":
        raise ArgumentError(f"path must end in .zip, got {shown(str(path))}")
    work = check.instance(tables, PublishedTables, "tables").workload
    product.check_workload(work)
    if any(matrix.nnz for matrix in tables.suppressed.values()) or tables.signed:
        raise ArgumentError("tables must have no suppressed and no negative count")
    state = _state(tables)
    records = _records(tables)
    with (
        new_file(path) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        name = f"{state}geo{product.year}.{product.ending}"
        _member(archive, name, _header(product, state, records, tables))
        for number in sorted({product.codebook[t.name].segment for t in work.tables.values()}):
            rows = _segment(product, state, records, tables, number)
            _member(archive, product.segment(state, number), rows)


def _member(archive: zipfile.ZipFile, name: str, lines: Iterator[str]) -> None:
    info = zipfile.ZipInfo(name, date_time=_STAMP)
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        for text in lines:
            member.write(text.encode("latin-1"))


def _state(tables: PublishedTables) -> str:
    """Return the abbreviation of the state that all places are in."""
    codes = {
        str(g)[:2] for level, places in tables.geoids.items() if level != "nation" for g in places
    }
    if len(codes) != 1:
        raise ArgumentError(f"tables must have places of one state, got {len(codes)}")
    names = {code: name.lower() for name, code in STATES.items()}
    code = codes.pop()
    if code not in names:
        raise ArgumentError(f"tables must have places of a state or Puerto Rico, got {shown(code)}")
    return names[code]


def _records(tables: PublishedTables) -> list[tuple[str, int]]:
    """Return level and position of each place, in the order of the file: areas before parts."""
    rank = tables.workload.schema.geography.rank
    found = [
        (str(geoid), rank(level), level, row)
        for level, places in tables.geoids.items()
        for row, geoid in enumerate(places)
    ]
    return [(level, row) for _, _, level, row in sorted(found)]


def _header(
    product: Product, state: str, records: list[tuple[str, int]], tables: PublishedTables
) -> Iterator[str]:
    line = _fixed if product.year == 2010 else _delimited
    for number, (level, row) in enumerate(records, 1):
        geoid = str(tables.geoids[level][row])
        fields = {
            "FILEID": product.file_id,
            "STUSAB": state.upper(),
            "SUMLEV": product.summary_levels[level],
            "GEOVAR": "00",
            "GEOCOMP": "00",
            "CHARITER": "000",
            "CIFSN": "00",
            "LOGRECNO": f"{number:07d}",
            "STATE": geoid[:2],
            "COUNTY": geoid[2:5],
            "TRACT": geoid[5:11],
            "BLKGRP": geoid[11:12],
            "BLOCK": geoid[11:15] if len(geoid) == 15 else "",
            "GEOCODE": geoid,
        }
        yield line(fields) + "\n"


def _fixed(fields: dict[str, str]) -> str:
    """Return a line of fixed width."""
    line = fields["FILEID"].ljust(6).ljust(LINE)
    for name, (start, stop) in FIELDS.items():
        if name in fields:
            line = line[:start] + fields[name].ljust(stop - start) + line[stop:]
    return line


def _delimited(fields: dict[str, str]) -> str:
    """Return a line of fields between ``|``."""
    known = [fields.get(name, "") for name in header_2020.FIELDS]
    return "|".join([*known, *[""] * (header_2020.COLUMNS - len(known))])


def _segment(
    product: Product,
    state: str,
    records: list[tuple[str, int]],
    tables: PublishedTables,
    number: int,
) -> Iterator[str]:
    """Yield the rows of a segment, of those levels that have a table in it."""
    book, cut = product.codebook, product.delimiter
    blank = "" if product.year == 2010 else "."
    width = max(b.column + b.cells - 1 for b in book.values() if b.segment == number)
    keys = [k for k, t in tables.workload.tables.items() if book[t.name].segment == number]
    levels = {level for level, _ in keys}
    lines = [(n, *record) for n, record in enumerate(records, 1) if record[0] in levels]
    for start in range(0, len(lines), _ROWS):
        part = lines[start : start + _ROWS]
        columns = np.full((len(part), width), -1, dtype=np.int64)
        for level, name in keys:
            here = [i for i, line in enumerate(part) if line[1] == level]
            rows = [part[i][2] for i in here]
            _fill(product, columns, here, tables, (level, name), rows)
        for (record, _, _), values in zip(part, columns[:, 5:].tolist(), strict=True):
            front = (product.file_id, state.upper(), "000", f"{number:02d}", f"{record:07d}")
            counts = (blank if v < 0 else str(v) for v in values)
            yield cut.join((*front, *counts)) + "\n"


def _fill(
    product: Product,
    columns: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    here: list[int],
    tables: PublishedTables,
    key: tuple[str, str],
    rows: list[int],
) -> None:
    table = tables.workload.tables[key]
    first = product.codebook[table.name].column - 1
    if not rows:
        return
    values = tables.counts[key][rows, :].toarray()
    columns[np.array(here)[:, None], first + product.numbers(table) - 1] = values
    if product.has_total(table):
        columns[here, first] = values.sum(axis=1)
