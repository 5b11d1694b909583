"""Summary File 1 and NHGIS: tables there and back, by hand, and what must not pass."""

import warnings

import numpy as np
import pytest
from agency_forms import write_nhgis
from oracles import readers as oracle
from scipy import sparse

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import iter_nhgis, read_dhc, read_nhgis, read_pl94, read_sf1
from bayesrisk.census.readers.summary_files.segments import cell_number, sf1_codebook
from bayesrisk.exceptions import DataWarning
from bayesrisk.tables import PublishedTables, Workload, tabulate

BLOCKS = Workload.named("sf1-block")
TRACTS = Workload.named("sf1-tract")
HOUSEHOLDS = Workload.named("household-occupancy").select(tables=["P15", "P16", "H3", "H13"])


def people(seed, n):
    """Return persons of one state in few places, so that blocks and tracts have several."""
    rng = np.random.default_rng(seed)
    records = oracle.person_records(rng, n)
    tracts = rng.integers(0, 3, n)
    blocks = [f"50{c:03d}{t:06d}{b}" for c, t, b in zip(
        rng.integers(1, 3, n), tracts * 100 + 100, rng.integers(1000, 1004, n), strict=True
    )]  # fmt: skip
    return records.replace(block=blocks)


def households(seed, n):
    """Return tables of households, made up cell by cell."""
    rng = np.random.default_rng(seed)
    geoids = np.unique([f"50001000100{b}" for b in rng.integers(1000, 2000, n)])
    counts = {
        key: sparse.csr_array(rng.integers(0, 9, (geoids.size, len(table.cells))))
        for key, table in HOUSEHOLDS.tables.items()
    }
    return PublishedTables(HOUSEHOLDS, {"block": geoids}, counts)


@pytest.mark.parametrize("described", [True, False])
def test_nhgis_there_and_back(described, tmp_path):
    seed, n, folder = 5, 40, tmp_path
    for level, tables in (
        ("block", tabulate(people(seed, n), BLOCKS)),
        ("tract", tabulate(people(seed, n), TRACTS)),
        ("households", households(seed, n)),
    ):
        write_nhgis(tables, folder / f"{level}.zip", described=described)
        work = tables.workload
        assert read_nhgis(folder / f"{level}.zip", workload=work) == tables
        pieces = list(iter_nhgis(folder / f"{level}.zip", workload=work, chunk=2))
        assert all(len(p.geoids[p.workload.levels[0]]) <= 2 for p in pieces)


def header_line(record, level, place, *, component="00"):
    """Return a line of a geographic header by the positions of its documentation, from 1."""
    line = [" "] * 500
    for start, text in (
        (1, "SF1ST"), (7, "VT"), (9, level), (12, component), (19, f"{record:07d}"),
        (28, place[:2]), (30, place[2:5]), (55, place[5:11]), (61, place[11:12]),
        (62, place[11:15] if level == "101" else ""),
    ):  # fmt: skip
        line[start - 1 : start - 1 + len(text)] = list(text)
    line[225:230] = list("Peñá ")  # names are latin-1
    return "".join(line) + "\r\n"


def by_hand(folder, *, total=3, block="500010001001000", counts=(1, 2), component="00"):
    """Write a county, a tract and two blocks with table P12 in segment 4."""
    folder.mkdir(exist_ok=True)
    other = "500010001001001"
    lines = [
        header_line(1, "050", "50001"),
        header_line(2, "140", "50001000100"),
        header_line(3, "140", "50001000100", component="01"),
        header_line(4, "101", block, component=component),
        header_line(5, "101", other),
    ]
    (folder / "vtgeo2010.sf1").write_bytes("".join(lines).encode("latin-1"))
    segment = []
    for record in range(1, 6):
        row = ["SF1ST", "VT", "000", "04", f"{record:07d}", *["0"] * 240]
        if record == 4:
            # P12 begins in column 150: total, male, then the first age of males; females at 27.
            row[149], row[151], row[175] = str(total), str(counts[0]), str(counts[1])
        segment.append(",".join(row) + "\n")
    (folder / "vt000042010.sf1").write_text("".join(segment))
    return folder


P12 = BLOCKS.select(tables=["P12"])


def test_sf1_by_hand(tmp_path):
    tables = read_sf1(by_hand(tmp_path / "vt"), workload=P12)
    assert tables.geoids["block"].tolist() == ["500010001001000", "500010001001001"]
    row = tables.count("block", "P12", "500010001001000")
    assert (row[0], row[23], row.sum()) == (1, 2, 3)
    assert tables.count("block", "P12", "500010001001001").sum() == 0


def change(file, old, new, count=1):
    text = file.read_bytes()
    assert old in text
    file.write_bytes(text.replace(old, new, count))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total": 4}, r"vt000042010.sf1: row 4, column '150': .*sum of the cells of P12, got 4"),
        ({"counts": (-1, 2)}, "row 4, column '152': must be a whole number in .0, .*got -1"),
        ({"block": "500010001001001"}, "line 5, column 'BLOCK': .*once, got that of line 4 again"),
        ({"block": "010010001001000"}, "line 4, column 'STATE': must be in state 50, got '01'"),
    ],
)
def test_bad_summary_files(options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_sf1(by_hand(tmp_path / "vt", **options), workload=P12)


@pytest.mark.parametrize("counts", [(-1, 2), ("x", 2)])
def test_a_count_that_cannot_be_is_suppressed_where_it_is_said(counts, tmp_path):
    folder = by_hand(tmp_path / "vt", counts=counts)
    with pytest.warns(DataWarning) as caught:
        tables = read_sf1(folder, workload=P12, on_error="missing")
    assert list(caught[0].message.missing.values()) == [1]
    assert [column for column, _ in caught[0].message.missing] == ["152"]
    assert tables.hidden("block", "P12").toarray().nonzero()[1].tolist() == [0]
    row = tables.count("block", "P12", "500010001001000")
    assert (row[0], row[23], row.sum()) == (0, 2, 2)
    with pytest.raises(DataError, match=r"row 4, column '150': .*sum of the cells"):
        read_sf1(by_hand(tmp_path / "vt", total=4), workload=P12, on_error="missing")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("vt000042010.sf1", b",0000004,", b",0000003,", "LOGRECNO': must be larger"),
        ("vt000042010.sf1", b",0000005,", b",0000009,", "LOGRECNO': must be a record of the geo"),
        ("vt000042010.sf1", b"VT,000,04", b"NH,000,04", "row 1, column 'STUSAB': must be VT"),
        ("vt000042010.sf1", b"VT,000,04", b"VT,000,05", "row 1, column 'CIFSN'"),
        ("vt000042010.sf1", b",0,0\nSF1ST,VT,000,04,0000005", b"\nSF1ST,VT,000,04,0000005",
         "row 4: must have 245 columns, got 243"),
        ("vtgeo2010.sf1", b"0000004", b"0000001", "line 4, column 'LOGRECNO': .*that of line 1"),
        ("vtgeo2010.sf1", b"0000004", b"00000x4", "line 4, column 'LOGRECNO'.*'00000x4'"),
    ],
)  # fmt: skip
def test_bad_lines_of_summary_files(file, old, new, message, tmp_path):
    folder = by_hand(tmp_path / "vt")
    change(folder / file, old, new)
    with pytest.raises(DataError, match=message):
        read_sf1(folder, workload=P12)


def test_files_that_end_early(tmp_path):
    folder = by_hand(tmp_path / "vt")
    segment, header = folder / "vt000042010.sf1", folder / "vtgeo2010.sf1"
    whole = segment.read_bytes()
    segment.write_bytes(whole[: whole.rindex(b"SF1ST")])
    with pytest.raises(DataError, match=r"a row for record 5 .block., got none; is the file whole"):
        read_sf1(folder, workload=P12)
    segment.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="last line must end"):
        read_sf1(folder, workload=P12)
    segment.unlink()
    with pytest.raises(DataError, match=r"exactly one vt000042010.sf1"):
        read_sf1(folder, workload=P12)
    header.write_bytes(header.read_bytes()[:1520] + b"\n")
    with pytest.raises(DataError, match="line 4: must have at least 25 characters"):
        read_sf1(folder, workload=P12)
    header.unlink()
    with pytest.raises(DataError, match="exactly one geographic header"):
        read_sf1(folder, workload=P12)
    with pytest.raises(DataError, match=r"level 'block'.*101.*got none"):
        read_sf1(only_county(tmp_path / "county"), workload=P12)


def only_county(folder):
    """Write a header without blocks."""
    by_hand(folder)
    file = folder / "vtgeo2010.sf1"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
    return folder


P16 = Workload.named("sf1-tables").select(tables=["P16"])
NATION = Workload.named("sf1-block", levels=["nation"])


@pytest.mark.parametrize(
    ("read", "asked", "message"),
    [
        (read_sf1, Workload.named("household-occupancy"), "Summary File 1, got 'number_reported'"),
        (read_nhgis, Workload.named("household-occupancy"), "Summary File 1, got 'number_rep"),
        (read_nhgis, NATION, "levels of state, county, .*, got nation"),
        (read_pl94, BLOCKS.select(tables=["P12"]), r"2020 redistricting file \(P1, .*'P0120003"),
        (read_dhc, P16, "of the 2020 DHC .*got .* in 'P16'"),
        (read_dhc, Workload.named("pl94"), "cells of the 2020 DHC, got '0'"),
        *(
            (read, Workload.named("census-1940"), "census geography")
            for read in (read_sf1, read_nhgis, read_dhc)
        ),
    ],
)
def test_workloads_that_files_do_not_hold(read, asked, message, tmp_path):
    with pytest.raises(ArgumentError, match=message):
        read(tmp_path, workload=asked)


def nhgis(folder, *, gisjoin="G5000010000100", tail="1000", extra="", value="3", codes=True):
    """Write an extract of one block by hand."""
    folder.mkdir(exist_ok=True)
    lines = [
        "GISJOIN,YEAR,STATEA,COUNTYA,TRACTA,BLOCKA,NAME,H7V001",
        f'{gisjoin}{tail},2010,50,001,000100,{tail},"Block, {tail}",{value}',
    ]
    (folder / "nhgis0001_ds172_2010_block.csv").write_text("\n".join(lines) + "\n" + extra)
    if codes:
        text = "Source code: P1\nNHGIS code:  H7V\n    H7V001:      Total\n"
        (folder / "nhgis0001_ds172_2010_block_codebook.txt").write_text(text)
    return folder / "nhgis0001_ds172_2010_block.csv"


P1 = BLOCKS.select(tables=["P1"])


def test_nhgis_by_hand(tmp_path):
    tables = read_nhgis(nhgis(tmp_path / "a"), workload=P1, state="VT")
    assert tables.count("block", "P1", "500010001001000").tolist() == [3]
    with pytest.raises(DataError, match="no codebook"):
        read_nhgis(nhgis(tmp_path / "b", codes=False), workload=P1)
    book = tmp_path / "a" / "nhgis0001_ds172_2010_block_codebook.txt"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = tmp_path / "b" / "nhgis0001_ds172_2010_block.csv"
        assert read_nhgis(file, workload=P1, codebook=book) == tables


AGAIN = 'G50000100001001000,2010,50,001,000100,1000,"x",3\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gisjoin": "G0100010000100"}, "row 1, column 'STATEA': must be the same as in GISJOIN"),
        ({"gisjoin": "G5010010000100"}, "row 1, column 'GISJOIN': must be G and the 17 digits"),
        ({"gisjoin": "G500001000010"}, "row 1, column 'GISJOIN': .*got 'G5000010000101000'"),
        ({"value": "-3"}, "row 1, column 'H7V001': must be a whole number in .0, "),
        ({"value": "3.5"}, "row 1, column 'H7V001': .*'3.5'"),
        ({"extra": AGAIN}, "row 2, column 'GISJOIN': .*once, got that of row 1 again"),
        ({"extra": AGAIN.replace("2010", "2000", 1)}, "row 2, column 'YEAR'"),
        ({"extra": AGAIN[:-3] + "\n"}, "row 2: must have 8 columns, got 7"),
    ],
)
def test_bad_extracts(options, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_nhgis(nhgis(tmp_path / "a", **options), workload=P1)


def test_extracts_and_codebooks_that_do_not_fit(tmp_path):
    file = nhgis(tmp_path / "a")
    with pytest.raises(DataError, match="must have table P12, which the codebook does not name"):
        read_nhgis(file, workload=P12)
    with pytest.raises(DataError, match="in state 01"):
        read_nhgis(file, workload=P1, state="AL")
    book = tmp_path / "a" / "nhgis0001_ds172_2010_block_codebook.txt"
    book.write_text("nothing\n")
    with pytest.raises(DataError, match="must name tables"):
        read_nhgis(file, workload=P1)
    book.write_text("Source code: P1\nNHGIS code:  H7V\nSource code: P1\nNHGIS code:  H7X\n")
    with pytest.raises(DataError, match="table P1: must have one NHGIS code"):
        read_nhgis(file, workload=P1)
    book.write_text("Source code: P1\nNHGIS code:  H7X\n")
    with pytest.raises(DataError, match="must have a column 'H7X001'"):
        read_nhgis(file, workload=P1)


def test_names_of_cells():
    assert cell_number("P0120003") == ("P12", 3)
    assert cell_number("PCT012A209") == ("PCT12A", 209)
    assert cell_number("H00010001") == ("H1", 1)
    for wrong in ("P012A0003", "X0010001", "P1"):
        with pytest.raises(ArgumentError):
            cell_number(wrong)
    assert sf1_codebook()["P12"].column == 150


def test_empty_lines_of_a_header(tmp_path):
    """At its end they are nothing; above a line that holds something they are refused."""
    folder = by_hand(tmp_path / "vt")
    straight = read_sf1(folder, workload=P12)
    header = folder / "vtgeo2010.sf1"
    whole = header.read_bytes()
    header.write_bytes(whole + b"\n\n")
    assert read_sf1(folder, workload=P12) == straight
    header.write_bytes(whole.replace(b"\n", b"\n\n", 1))
    with pytest.raises(DataError, match=r"vtgeo2010.sf1: line 2: must have at least 25 characters"):
        read_sf1(folder, workload=P12)
