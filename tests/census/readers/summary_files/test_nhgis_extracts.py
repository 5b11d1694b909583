"""NHGIS extracts of several files, of 2020, and of forms that are not read."""

import warnings
import zipfile
from collections import Counter

import numpy as np
import pytest
from agency_forms import nhgis_codes, write_nhgis
from hypothesis import given, settings, strategies as st
from oracles import readers as oracle

from bayesrisk import ArgumentError, DataError
from bayesrisk.census import iter_nhgis, read_nhgis
from bayesrisk.census.readers.summary_files.segments import SF1
from bayesrisk.census.readers.text import combined
from bayesrisk.tables import Workload, tabulate

BLOCKS = Workload.named("sf1-block").select(tables=["P1", "P7", "P12"])
TRACTS = Workload.named("sf1-tract").select(tables=["PCT12"])


def people(seed=1, n=60):
    """Return persons of one state in few places."""
    rng = np.random.default_rng(seed)
    blocks = [f"5000100010{t}{b}" for t, b in zip(
        rng.integers(0, 3, n), rng.integers(1000, 1004, n), strict=True
    )]  # fmt: skip
    return oracle.person_records(rng, n).replace(block=blocks)


def members(tables, folder, name, **options):
    """Return the two files of an extract, renamed."""
    write_nhgis(tables, folder / f"{name}.zip", **options)
    with zipfile.ZipFile(folder / f"{name}.zip") as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def packed(file, *parts):
    with zipfile.ZipFile(file, "w") as archive:
        for part in parts:
            for name, data in part.items():
                archive.writestr(name, data)
    return file


def renamed(part, old, new):
    return {name.replace(old, new): data.replace(old.encode(), new.encode())
            for name, data in part.items()}  # fmt: skip


def test_several_levels_in_an_archive(tmp_path):
    """Each level of the workload is read from its own file; without one it is refused."""
    both = BLOCKS.union(TRACTS)
    tables = tabulate(people(), both)
    block, tract = (tabulate(people(), work) for work in (BLOCKS, TRACTS))
    file = packed(
        tmp_path / "n.zip",
        members(block, tmp_path, "b"),
        members(tract, tmp_path, "t"),
        {"nhgis0001_csv/notes.csv": b"a,b\n", "nhgis0001_csv/readme.txt": b"x"},
    )
    assert read_nhgis(file, workload=both) == tables
    assert read_nhgis(file, workload=BLOCKS) == block
    pieces = list(iter_nhgis(file, workload=both, chunk=2))
    assert all(len(p.geoids["block"]) + len(p.geoids["tract"]) <= 2 for p in pieces)
    with pytest.raises(DataError, match=r"must hold a file of level 'county', holds .*_block.csv"):
        read_nhgis(file, workload=Workload.named("sf1-block", levels=["county"]))


def test_tables_of_a_level_in_several_files(tmp_path):
    """Two data sets of blocks, each with its tables, and the same table in both."""
    whole = tabulate(people(), BLOCKS)
    one = members(tabulate(people(), BLOCKS.select(tables=["P1", "P7"])), tmp_path, "one")
    two = members(tabulate(people(), BLOCKS.select(tables=["P12"])), tmp_path, "two")
    two = renamed(renamed(two, "ds172", "ds173"), "2010_SF1a", "2010_SF1b")
    file = packed(tmp_path / "n.zip", one, two)
    assert read_nhgis(file, workload=BLOCKS) == whole
    again = renamed(renamed(one, "ds172", "ds173"), "2010_SF1a", "2010_SF1b")
    twice = packed(tmp_path / "twice.zip", one, again)
    first = BLOCKS.select(tables=["P1"])
    with pytest.raises(DataError, match=r"table P1 in one file, it is in .*ds172.*ds173.*choose a"):
        read_nhgis(twice, workload=first)
    for dataset in ("ds172", "DS173", "2010_SF1b"):
        assert read_nhgis(twice, workload=first, dataset=dataset) == tabulate(people(), first)
    with pytest.raises(DataError, match=r"must hold a file of the dataset 'ds999', holds"):
        read_nhgis(twice, workload=first, dataset="ds999")


def test_files_of_a_level_must_have_the_same_places(tmp_path):
    one = members(tabulate(people(), BLOCKS.select(tables=["P1"])), tmp_path, "one")
    other = tabulate(people(2, 8), BLOCKS.select(tables=["P12"]))
    fewer = tabulate(people(1, 3), BLOCKS.select(tables=["P12"]))
    for place, tables in enumerate((other, fewer)):
        two = renamed(members(tables, tmp_path, f"two{place}"), "ds172", "ds173")
        file = packed(tmp_path / f"n{place}.zip", one, two)
        with pytest.raises(DataError, match=r"must have the places of|must be the place of this r"):
            read_nhgis(file, workload=BLOCKS.select(tables=["P1", "P12"]))


def test_codebooks_without_lines_of_the_data_set(tmp_path):
    """Only source and code of each table, indented: the file's name tells the rest."""
    tables = tabulate(people(), BLOCKS)
    parts = members(tables, tmp_path, "a")
    for name, data in parts.items():
        if name.endswith("_codebook.txt"):
            kept = [f"      {line.strip()}" for line in data.decode().splitlines()
                    if line.startswith(("Source code", "NHGIS code"))]  # fmt: skip
            parts[name] = "\n".join(kept).encode() + b"\n"
    file = packed(tmp_path / "b.zip", parts)
    assert read_nhgis(file, workload=BLOCKS) == tables
    assert read_nhgis(file, workload=BLOCKS, dataset="ds172") == tables


def test_tables_of_2020(tmp_path):
    """Redistricting file and DHC; without their codebook nothing is known of their columns."""
    rng = np.random.default_rng(3)
    persons = oracle.pl94_records(rng, 50).replace(block=people(1, 50).geoids.tolist())
    for records, name, dataset in (
        (persons, "pl94-tables", "2020_PL94171"),
        (people(), "dhc-block", "2020_DHCa"),
    ):
        work = Workload.named(name)
        tables = tabulate(records, work)
        write_nhgis(tables, tmp_path / f"{name}.zip", dataset=dataset)
        assert read_nhgis(tmp_path / f"{name}.zip", workload=work) == tables
        parts = members(tables, tmp_path, f"again-{name}", dataset=dataset)
        bare = {n: data for n, data in parts.items() if n.endswith(".csv")}
        with pytest.raises(DataError, match=r"has no codebook beside it"):
            read_nhgis(packed(tmp_path / f"bare-{name}.zip", bare), workload=work)
    with pytest.raises(ArgumentError, match="tables of counts of the 2020 DHC"):
        read_nhgis(tmp_path / "dhc-block.zip", workload=Workload.named("pl94-tables").select(
            tables=["P1"]))  # fmt: skip


@pytest.mark.parametrize(
    ("year", "dataset", "number", "tables", "level"),
    [
        ("2000", "2000_SF1b", "ds147", ["NP012A", "NP012B", "NP012C"], "block"),
        ("2015-2019", "2015_2019_ACS5a", "ds244", ["B01001", "B02001"], "tract"),
    ],
)
def test_other_years_are_told_with_their_tables(year, dataset, number, tables, level, tmp_path):
    """As NHGIS delivers them: the refusal says year, data set, tables and what to ask for."""
    codes = [f"ET{i}" for i in range(len(tables))]
    book = ["Data Summary", f"Year:   {year}", "Dataset:   Census",
            f"   NHGIS code:    {dataset}", f"   NHGIS ID:      {number}"]  # fmt: skip
    for table, code in zip(tables, codes, strict=True):
        book += [f"Source code: {table}", f"NHGIS code:  {code}", f"    {code}001:      Total"]
    stem = f"{number}_{'20195_2019' if '-' in year else year}_{level}"
    tail = "_E" if "-" in year else ""
    header = ",".join(["GISJOIN", "YEAR", *(f"{code}001" for code in codes)])
    rows = f"{header}\nG0100010,{year}{',1' * len(codes)}\n"
    names = {
        f"n_csv/nhgis0001_{stem}{tail}.csv": rows.encode(),
        f"n_csv/nhgis0001_{stem}{tail}_codebook.txt": "\n".join(book).encode(),
    }
    with pytest.raises(DataError) as refused:
        read_nhgis(packed(tmp_path / "n.zip", names), workload=BLOCKS)
    message = str(refused.value)
    for part in (f"is of {year},", dataset, number, *tables, "2010_SF1a", "2020_PL94171",
                 "2020_DHCa"):  # fmt: skip
        assert part in message, part
    # The file alone, with a codebook that the caller names; and without a column of the year.
    for data in (rows, rows.replace(",YEAR", "").replace(f",{year}", "")):
        (tmp_path / "a.csv").write_text(data)
        (tmp_path / "book.txt").write_text("\n".join(book))
        with pytest.raises(DataError, match=f"a.csv: is of {year}, data set .*{tables[0]}"):
            read_nhgis(tmp_path / "a.csv", workload=BLOCKS, codebook=tmp_path / "book.txt")


def test_forms_that_are_not_read(tmp_path):
    parts = members(tabulate(people(), BLOCKS), tmp_path, "a")
    old = {name.replace("ds172_2010", "ds146_2000"): data.replace(b",2010,", b",2000,")
           for name, data in parts.items()}  # fmt: skip
    series = {
        "nhgis0001_csv/nhgis0001_ts_nominal_county.csv": b"GISJOIN,STATE,A00AA1790\nG01,x,1\n"
    }
    with pytest.raises(DataError, match=r"county.csv: holds time series, which are not read; ask"):
        read_nhgis(packed(tmp_path / "ts.zip", series), workload=BLOCKS)
    fixed = {"nhgis0001_fixed/nhgis0001_ds172_2010_block.dat": b"G0100010 1\n", "a.do": b"x"}
    with pytest.raises(DataError, match="holds a fixed-width extract, which is not read"):
        read_nhgis(packed(tmp_path / "fixed.zip", fixed), workload=BLOCKS)
    with pytest.raises(DataError, match=r"must hold a .csv file of NHGIS, .*holds a.txt"):
        read_nhgis(packed(tmp_path / "none.zip", {"a.txt": b"x"}), workload=BLOCKS)
    two = packed(tmp_path / "two.zip", parts, renamed(parts, "ds172", "ds173"))
    with pytest.raises(DataError, match=r"must hold one .csv file where a codebook is named"):
        read_nhgis(two, workload=BLOCKS, codebook=tmp_path / "book.txt")
    # A file that cannot be read is no hindrance where it is not needed.
    beside = packed(tmp_path / "beside.zip", parts, old, series)
    assert read_nhgis(beside, workload=BLOCKS) == tabulate(people(), BLOCKS)


COUNTS = st.lists(st.sampled_from(["-1", "", "x", "1.5", "99999999999999999999", "."]), max_size=6)


@settings(max_examples=5)
@given(faults=COUNTS, chunk=st.integers(1, 9), data=st.data())
def test_counts_that_cannot_be_are_suppressed_and_counted(faults, chunk, data, tmp_path_factory):
    """Every other count stays as it was; the first fault is refused where it is not said."""
    folder = tmp_path_factory.mktemp("nhgis")
    tables = tabulate(people(), BLOCKS)
    parts = members(tables, folder, "a", described=True)
    (name,) = (n for n in parts if n.endswith(".csv"))
    lines = [line.split(",") for line in parts[name].decode().splitlines()]
    header, rows = lines[0], lines[2:]
    codes = {nhgis_codes()[table]: table for table in ("P1", "P7", "P12")}
    cells = [(i, j) for i in range(len(rows)) for j, n in enumerate(header) if n[:3] in codes]
    chosen = data.draw(st.lists(st.sampled_from(cells), unique=True, min_size=len(faults),
                                max_size=len(faults)))  # fmt: skip
    for (i, j), text in zip(chosen, faults, strict=True):
        rows[i][j] = text
    parts[name] = ("\n".join(",".join(line) for line in [header, *rows]) + "\n").encode()
    file = packed(folder / "b.zip", parts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pieces = iter_nhgis(file, workload=BLOCKS, on_error="missing", chunk=chunk)
        found = combined(pieces, file)
    counted = Counter(header[j] for _, j in chosen)
    told = [{column: n for (column, _), n in w.message.missing.items()} for w in caught]
    assert told == ([dict(counted)] if chosen else [])
    hidden = {(i, header[j]) for i, j in chosen}
    for table in BLOCKS.tables.values():
        numbers = SF1.numbers(table)
        code = nhgis_codes()[table.name]
        for i, row in enumerate(rows):
            geoid = row[0][1:3] + row[0][4:7] + row[0][8:]
            place = found.row("block", geoid)
            true = tables.count("block", table.name, geoid)
            kept = found.count("block", table.name, geoid)
            bad = found.hidden("block", table.name)[[place], :].toarray()[0]
            expected = [(i, f"{code}{number:03d}") in hidden for number in numbers]
            assert bad.tolist() == expected
            assert kept.tolist() == np.where(expected, 0, true).tolist()
    if chosen:
        with pytest.raises(DataError, match=r"row \d+, column"):
            read_nhgis(file, workload=BLOCKS)


def test_cells_that_contradict_their_total_are_refused_always(tmp_path):
    tables = tabulate(people(), BLOCKS.select(tables=["P12"]))
    parts = members(tables, tmp_path, "a")
    (name,) = (n for n in parts if n.endswith(".csv"))
    lines = parts[name].decode().splitlines()
    cells = lines[1].split(",")
    cells[7] = str(int(cells[7]) + 1)  # the total, after seven columns of the place
    parts[name] = "\n".join([lines[0], ",".join(cells), *lines[2:], ""]).encode()
    file = packed(tmp_path / "b.zip", parts)
    with pytest.raises(DataError, match=r"row 1, column .* must be the sum of the cells of P12"):
        read_nhgis(file, workload=tables.workload, on_error="missing")
