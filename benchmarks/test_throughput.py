"""Rows per second of every reader beside pyarrow's own reading of the same bytes, nothing checked.

pyarrow parses each file of an example once, with its defaults and one thread; the readers find the
columns, check every value, put codes together and count.
"""

import sys
import warnings
import zipfile
from pathlib import Path

import agency_forms
import numpy as np
import pyarrow.csv
import pytest
from pyarrow import parquet
from targets import as_long

from bayesrisk.census import readers
from bayesrisk.exceptions import DataWarning
from bayesrisk.tables import Workload, tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from oracles import hud_files, readers as oracle

ROWS = 50_000


def by_pyarrow(file):
    """Parse a file with pyarrow, as text where its types differ."""
    if file.suffix == ".parquet":
        return parquet.read_table(file, use_threads=False)
    name = file.name
    cut = "|" if name.endswith((".pl", ".dhc", ".txt")) else ","
    return pyarrow.csv.read_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False,
            autogenerate_column_names=name.endswith((".pl", ".dhc", ".sf1")),
            encoding="latin-1" if "geo2020" in name else "utf8",
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=cut),
    )


def persons(folder, rng, vintage):
    make = oracle.pl94_records
    people = make(rng, ROWS) if vintage in ("2010-demonstration", "2020-05-27") else (
        oracle.person_records(rng, ROWS, gq=rng.integers(0, 8, ROWS))
    )  # fmt: skip
    readers.write_ppmf(people, folder / "p.csv", vintage=vintage)
    if vintage == "2020-05-27":
        oracle.with_decimals(folder / "p.csv")
    return [folder / "p.csv"], lambda: sum(map(len, readers.iter_ppmf(folder / "p.csv")))


def units(folder, rng):
    readers.write_ppmf_units(oracle.household_records(rng, ROWS), folder / "u.csv", vintage="2020")
    return [folder / "u.csv"], lambda: sum(map(len, readers.iter_ppmf_units(folder / "u.csv")))


def records(folder, rng, ending, dialect):
    file = folder / f"r.{ending}"
    readers.write_record_form(oracle.person_records(rng, ROWS), file, dialect=dialect)
    return [file], lambda: sum(map(len, readers.iter_record_form(file, dialect=dialect)))


def ipums(folder, rng):
    people = oracle.records_1940(rng, ROWS // 3)
    agency_forms.write_ipums_1940(people, folder / "usa.csv")
    return [folder / "usa.csv"], lambda: sum(map(len, readers.iter_ipums_1940(folder / "usa.csv")))


def hud(folder, rng):
    file = folder / "COUNTY_2019.csv"
    hud_files.county_file(file, "2019", rng, rows=200)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + "".join(lines[1:]) * (ROWS // 2000))

    def read():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return sum(map(len, readers.iter_hud(file, level="county")))

    return [file], read


def published(folder, rng, form):
    """Tables of many blocks with few people: lines are long, and nearly all of them zeros."""
    n = ROWS // 10
    blocks = [f"50001{i // 900:06d}{1000 + i % 900}" for i in range(n)]
    if form == "pl94":
        work = Workload.named("pl94-tables")
        tables = tabulate(oracle.pl94_records(rng, n).replace(block=blocks), work)
    else:
        work = Workload.named("sf1-block")
        tables = tabulate(oracle.person_records(rng, n).replace(block=blocks), work)
    endings = {"sf1": "vt2010.sf1.zip", "pl94": "vt2020.pl.zip", "dhc": "vt2020.dhc.zip"}
    packed = folder / endings.get(form, "n.zip")
    getattr(readers, f"write_{form}")(tables, packed)
    place = folder / "files"
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(place)
    files = [f for f in place.rglob("*") if f.is_file() and f.suffix != ".txt"]
    # The header of 2010 is of fixed width: pyarrow has no reader for it.
    files = [f for f in files if f.name != "vtgeo2010.sf1"]
    where = files[0] if form == "nhgis" else place
    read = getattr(readers, f"iter_{form}")

    def count():
        return sum(len(piece.geoids["block"]) for piece in read(where, workload=work))

    return files, count


KINDS = {
    "ppmf-2010": lambda folder, rng: persons(folder, rng, "2010-demonstration"),
    "ppmf-2020-05": lambda folder, rng: persons(folder, rng, "2020-05-27"),
    "ppmf-2020": lambda folder, rng: persons(folder, rng, "2020"),
    "ppmf-units": units,
    "records-csv": lambda folder, rng: records(folder, rng, "csv", "archive"),
    "records-labels": lambda folder, rng: records(folder, rng, "csv", "labels"),
    "records-parquet": lambda folder, rng: records(folder, rng, "parquet", "archive"),
    "ipums-csv": ipums,
    "hud": hud,
    "sf1": lambda folder, rng: published(folder, rng, "sf1"),
    "pl94": lambda folder, rng: published(folder, rng, "pl94"),
    "dhc": lambda folder, rng: published(folder, rng, "dhc"),
    "nhgis": lambda folder, rng: published(folder, rng, "nhgis"),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_throughput(kind, compare, tmp_path):
    files, read = KINDS[kind](tmp_path, np.random.default_rng(1))
    rows = read()
    assert rows > 0
    parsed = [by_pyarrow(file).num_rows for file in files]
    # A file without a row for each record: households of 1940 stand in the rows of their persons.
    assert max(parsed) >= rows
    aims = {"reading HUD's tables of counties, beside pyarrow": as_long(4)} if kind == "hud" else {}
    compare(
        read,
        lambda: [by_pyarrow(file) for file in files],
        aims=aims,
        ours_units=rows,
        twin_units=rows,
        rounds=3,
    )
