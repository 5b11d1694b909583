"""Files in the forms of agencies, written from records, tables and frames for the tests of readers.

HUD's Picture of Subsidized Households, persons of the 1940 Census as IPUMS delivers them, a state's
summary files of 2010 and 2020, and NHGIS extracts.
"""

import zipfile
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk.census.readers import hud, ipums
from bayesrisk.census.readers.summary_files import nhgis, segments
from bayesrisk.census.readers.text import STATES, digit_matrix, new_file, schema_pieces, write_table
from bayesrisk.tables.records import whole_column

_STAMP = (2011, 1, 1, 0, 0, 0)


# -----------------------------------------------------------------------------
# HUD's Picture of Subsidized Households


def write_hud(frame, path):
    """Write frames such as ``iter_hud`` yields: codes for what is missing, no bounds of counts."""
    frames = [frame] if isinstance(frame, pd.DataFrame) else list(frame)
    names = [name for name in frames[0] if not hud.is_derived(name)]
    tables = (pa.table({n: _hud_texts(piece, n) for n in names}) for piece in frames)
    write_table(path, names, tables, quotes=True)


def _hud_texts(frame, name):
    if hud.is_text(name):
        missing = hud.NO_PLACE if name == "code" else ""
        return pa.array(frame[name].fillna(missing).astype(str).tolist(), pa.string())
    codes = {text: str(code) for code, text in hud.REASONS.items()}
    pairs = zip(frame[name].tolist(), frame[f"{name}_reason"].tolist(), strict=True)
    texts = [codes.get(why, "") if pd.isna(v) else f"{float(v):.15g}" for v, why in pairs]
    return pa.array(texts, pa.string())


# -----------------------------------------------------------------------------
# Persons of the 1940 Census: an extract as CSV or of fixed width, or EXT1940USCB.dat


_HOUSEHOLD_LINE, _PERSON_LINE = 131, 118
_NEEDED = {"household": 10**8 - 1, "person": 9999, "sex": 1, "age": 120}
_CUTS = tuple(pairwise((0, 2, 6, 9, 13)))


def write_ipums_1940(records, path, *, ddi=None):
    """Write persons: ``.csv``, or ``.dat`` with a codebook, or the hierarchical file."""
    pieces = (_variables(piece) for piece in schema_pieces(records, "census-1940"))
    if Path(path).suffix == ".csv":
        write_table(path, list(ipums.EXTRACT), (pa.table(columns) for columns in pieces))
    elif ddi is not None:
        _write_fixed(Path(path), ddi, pieces)
    else:
        with new_file(path) as stream:
            for columns in pieces:
                if columns["SERIAL"].size:
                    stream.write(_hierarchy(columns))


def _variables(records):
    kept = {name: whole_column(records, name, largest) for name, largest in _NEEDED.items()}
    points = np.ascontiguousarray(records.geoids, dtype="U13").view(np.uint32).reshape(-1, 13)
    digits = points.astype(np.int64) - 48
    place = [digits[:, a:b] @ 10 ** np.arange(b - a - 1, -1, -1) for a, b in _CUTS]
    kind = records.codes("hhgq")
    return {
        "YEAR": np.full(len(records), 1940),
        "SERIAL": kept["household"].astype(np.int64),
        "PERNUM": kept["person"].astype(np.int64),
        **dict(zip(("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST"), place, strict=True)),
        "GQ": np.where(kind > 0, 4, 1),
        "GQTYPE": np.array(ipums.QUARTERS)[kind],
        "SEX": kept["sex"].astype(np.int64) + 1,
        "AGE": kept["age"].astype(np.int64),
        "RACE": records.codes("cenrace") + 1,
        "HISPAN": np.array(ipums.HISPANIC)[records.codes("hispanic")],
    }


def _write_fixed(target, ddi, pieces):
    variables, start = {}, 0
    for name, (_, largest) in ipums.EXTRACT.items():
        variables[name] = ipums.Variable(name, start, start + len(str(largest)))
        start = variables[name].stop
    with new_file(ddi) as book, new_file(target) as stream:
        book.write(ddi_codebook(variables, target.name))
        for columns in pieces:
            lines = np.full((columns["YEAR"].size, start + 1), ord("\n"), dtype=np.uint8)
            for name, place in variables.items():
                lines[:, place.start : place.stop] = _digits(columns[name], place.start, place.stop)
            stream.write(lines.tobytes())


def ddi_codebook(variables, data):
    """Return the DDI codebook of a rectangular fixed-width file."""
    root = ElementTree.Element("codeBook", {"xmlns": "ddi:codebook:2_5", "version": "2.5"})
    text = ElementTree.SubElement(ElementTree.SubElement(root, "fileDscr"), "fileTxt")
    ElementTree.SubElement(text, "fileName").text = data
    ElementTree.SubElement(text, "fileStrc", {"type": "rectangular"})
    described = ElementTree.SubElement(root, "dataDscr")
    for v in variables.values():
        entry = ElementTree.SubElement(described, "var", {"ID": v.name, "name": v.name})
        place = {"StartPos": str(v.start + 1), "EndPos": str(v.stop)}
        ElementTree.SubElement(entry, "location", place)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _digits(values, start, stop):
    return digit_matrix(values, stop - start)


def _hierarchy(columns):
    serial = columns["SERIAL"]
    first = np.flatnonzero(np.concatenate([[True], serial[1:] != serial[:-1]]))
    size = np.diff([*first, serial.size])
    houses = _blank_lines(first.size, _HOUSEHOLD_LINE, "H")
    values = {**columns, "COUNTY": columns["COUNTYICP"]}
    for name, (start, stop) in ipums.HOUSEHOLD.items():
        numbers = np.minimum(size, 99) if name == "NUMPREC" else values[name][first]
        houses[:, start:stop] = _digits(numbers, start, stop)
    persons = _blank_lines(serial.size, _PERSON_LINE, "P")
    for name in ("SERIAL", "PERNUM", "SEX", "AGE", "RACE", "HISPAN"):
        start, stop = ipums.PERSON[name]
        persons[:, start:stop] = _digits(columns[name], start, stop)
    return b"".join(
        house.tobytes() + persons[start : start + count].tobytes()
        for house, start, count in zip(houses, first, size, strict=True)
    )


def _blank_lines(rows, width, kind):
    lines = np.full((rows, width + 1), ord(" "), dtype=np.uint8)
    lines[:, 0], lines[:, -1] = ord(kind), ord("\n")
    return lines


# -----------------------------------------------------------------------------
# Summary files of a state: a geographic header and segments in a ZIP archive


def write_sf1(tables, path):
    """Write exact tables of one state as its 2010 Summary File 1."""
    _write_segments(segments.SF1, tables, path)


def write_pl94(tables, path):
    """Write exact tables of one state as its 2020 redistricting file."""
    _write_segments(segments.PL94, tables, path)


def write_dhc(tables, path):
    """Write exact tables of one state as its 2020 DHC."""
    _write_segments(segments.DHC, tables, path)


def _write_segments(product, tables, path):
    product.check_workload(tables.workload)
    codes = {str(g)[:2] for level, places in tables.geoids.items() if level != "nation"
             for g in places}  # fmt: skip
    state = {code: name.lower() for name, code in STATES.items()}[codes.pop()]
    rank = tables.workload.schema.geography.rank
    # Areas stand before their parts.
    order = sorted(
        (str(geoid), rank(level), level, row)
        for level, places in tables.geoids.items()
        for row, geoid in enumerate(places)
    )
    records = [(level, row) for _, _, level, row in order]
    members = {f"{state}geo{product.year}.{product.ending}": _header(product, state, order)}
    book = product.codebook
    for number in sorted({book[t.name].segment for t in tables.workload.tables.values()}):
        members[product.segment(state, number)] = _segment(product, state, records, tables, number)
    _write_archive(path, members)


def _write_archive(path, members):
    with new_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, lines in members.items():
            info = zipfile.ZipInfo(name, date_time=_STAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "".join(lines).encode("latin-1"))


def _header(product, state, order):
    for number, (geoid, _, level, _) in enumerate(order, 1):
        fields = {
            "FILEID": f"{product.ending.upper()}ST", "STUSAB": state.upper(),
            "SUMLEV": product.summary_levels[level], "GEOVAR": "00", "GEOCOMP": "00",
            "CHARITER": "000", "CIFSN": "00", "LOGRECNO": f"{number:07d}", "STATE": geoid[:2],
            "COUNTY": geoid[2:5], "TRACT": geoid[5:11], "BLKGRP": geoid[11:12],
            "BLOCK": geoid[11:15] if len(geoid) == 15 else "", "GEOCODE": geoid,
        }  # fmt: skip
        if product.year == 2010:
            line = fields["FILEID"].ljust(segments.LINE)
            for name, (start, stop) in segments.WIDE_FIELDS.items():
                if name in fields:
                    line = line[:start] + fields[name].ljust(stop - start) + line[stop:]
        else:
            known = [fields.get(name, "") for name in segments.FIELDS]
            line = "|".join([*known, *[""] * (segments.COLUMNS - len(known))])
        yield line + "\n"


def _segment(product, state, records, tables, number):
    book = product.codebook
    blank = "" if product.year == 2010 else "."
    width = max(b.column + b.cells - 1 for b in book.values() if b.segment == number)
    keys = [k for k, t in tables.workload.tables.items() if book[t.name].segment == number]
    levels = {level for level, _ in keys}
    lines = [(n, *record) for n, record in enumerate(records, 1) if record[0] in levels]
    columns = np.full((len(lines), width), -1, dtype=np.int64)
    for key in keys:
        here = np.array([i for i, line in enumerate(lines) if line[1] == key[0]], dtype=int)
        if not here.size:
            continue
        table = tables.workload.tables[key]
        first = book[table.name].column - 1
        values = tables.counts[key][[lines[i][2] for i in here], :].toarray()
        columns[here[:, None], first + product.numbers(table) - 1] = values
        if product.has_total(table):
            columns[here, first] = values.sum(axis=1)
    for (record, _, _), values in zip(lines, columns[:, 5:].tolist(), strict=True):
        front = (
            f"{product.ending.upper()}ST", state.upper(), "000", f"{number:02d}", f"{record:07d}",
        )  # fmt: skip
        counts = (blank if v < 0 else str(v) for v in values)
        yield product.delimiter.join((*front, *counts)) + "\n"


# -----------------------------------------------------------------------------
# NHGIS extracts: a CSV file and its codebook in a ZIP archive


_CONTEXT = ("GISJOIN", "YEAR", "STATEA", "COUNTYA", "TRACTA", "BLKGRPA", "BLOCKA")
_WORDS = (
    *("GIS Join Match Code", "Data File Year", "State Code", "County Code"),
    *("Census Tract Code", "Block Group Code", "Block Code"),
)


# First table and first code of each run of the 2010 block data set: codes count A to Z and then 0
# to 9 in their last place.
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_RUNS = (
    ("H7V", [f"P{i}" for i in range(1, 29)]),
    ("H9A", [f"P12{letter}" for letter in "ABCDEFGHI"]),
    ("H9S", [f"P16{letter}" for letter in "ABCDEFGH"]),
    ("IAJ", [f"P28{letter}" for letter in "ABCDEFGH"]),
    ("IFC", [f"H{i}" for i in range(1, 16)]),
)


def nhgis_codes():
    """Return the NHGIS code of tables of the 2010 block data set."""
    found = {}
    for code, tables in _RUNS:
        start = 36 * _DIGITS.index(code[1]) + _DIGITS.index(code[2])
        for place, table in enumerate(tables, start):
            found[table] = code[0] + _DIGITS[place // 36] + _DIGITS[place % 36]
    return found


def write_nhgis(tables, path, *, described=False, dataset="2010_SF1a"):
    """Write exact tables of one level; tables whose code is not known get one in ``ZZ``.

    ``described`` adds a second line with the columns in words.
    """
    names = {nhgis.DATASETS[product.ending][0]: product for product in segments.PRODUCTS}
    product = names[dataset]
    product.check_workload(tables.workload)
    (level,) = tables.workload.levels
    known = nhgis_codes() if product is segments.SF1 else {}
    extra = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    codes = {n: known.get(n) or "ZZ" + next(extra) for n in tables.workload.at(level)}
    place = "blck_grp" if level == "block_group" else level
    data = f"nhgis0001_{nhgis.DATASETS[product.ending][1]}_{product.year}_{place}"
    _write_archive(
        path,
        {
            f"nhgis0001_csv/{data}_codebook.txt": _codebook(codes, data, product),
            f"nhgis0001_csv/{data}.csv": _rows(tables, level, codes, product, described),
        },
    )


def _codebook(codes, data, product):
    name, dataset = nhgis.DATASETS[product.ending]
    yield f"Codebook for NHGIS data file '{data}'\n \nData Summary\n \n"
    yield f"Year:             {product.year}\nDataset:          {product.title}\n"
    yield f"   NHGIS code:    {name}\n   NHGIS ID:      {dataset}\n \nData Dictionary\n \n"
    for place, (table, code) in enumerate(codes.items(), 1):
        yield f"Table {place}:     {table}\nSource code: {table}\nNHGIS code:  {code}\n"
        for number in range(1, product.codebook[table].cells + 1):
            yield f"    {code}{number:03d}:      {number}\n"
        yield " \n"


def _rows(tables, level, codes, product, described):
    names, words, columns = list(_CONTEXT), list(_WORDS), []
    for name, table in tables.workload.at(level).items():
        total = product.has_total(table)
        numbers = [*([1] if total else []), *product.numbers(table).tolist()]
        names += [f"{codes[name]}{number:03d}" for number in numbers]
        words += [f"{name} cell {number}" for number in numbers]
        values = tables.counts[level, name].toarray()
        columns += [values.sum(axis=1, keepdims=True)] if total else []
        columns.append(values)
    yield ",".join(names) + "\n"
    if described:
        yield ",".join(f'"{word}"' for word in words) + "\n"
    for geoid, row in zip(tables.geoids[level], np.hstack(columns).tolist(), strict=True):
        yield f"{_context(str(geoid), product.year)},{','.join(map(str, row))}\n"


def _context(geoid, year):
    state, county, rest = geoid[:2], geoid[2:5], geoid[5:]
    join = f"G{state}0" + (f"{county}0{rest}" if county else "")
    block = rest[6:] if len(geoid) == 15 else ""
    return ",".join([join, str(year), state, county, rest[:6], rest[6:7], block])
