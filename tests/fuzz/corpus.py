"""A small sound example of every file that the package reads, and how it is read.

Each maker writes its example into a folder and returns the files that may be damaged and a call
that reads everything there is.
"""

import gzip
import json
import zipfile
from collections import namedtuple
from functools import cache

import agency_forms
import numpy as np
import openpyxl
import pandas as pd
from oracles import hud_files, readers as oracle
from studies import run_reconstruction, run_sweep

import bayesrisk as br
from bayesrisk.census import NoisyMeasurements
from bayesrisk.census.readers.nmf.reader import rows_between
from bayesrisk.census.studies.linked_counties import read_persons as read_known
from bayesrisk.cli.protect.release import ReleaseOptions
from bayesrisk.cli.recipes import read_release_file
from bayesrisk.experiments import load_config, read_results
from bayesrisk.experiments.reconstruction import read_reconstruction
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import Release
from bayesrisk.tables import (
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    iter_records,
    tabulate,
)

ROWS = 12
BLOCKS = ["500010001001000", "500010001001001", "500010002002000"]
P1 = Workload.named("sf1-block").select(tables=["P1", "P7", "P12"])
PL94 = Workload.named("pl94-tables")

Example = namedtuple("Example", "files read")


def people(n=ROWS):
    rng = np.random.default_rng(5)
    return oracle.person_records(rng, n, block=[BLOCKS[i % 3] for i in range(n)])


@cache
def tables():
    return tabulate(people(), P1)


@cache
def voters():
    rng = np.random.default_rng(5)
    return tabulate(
        oracle.pl94_records(rng, ROWS).replace(block=[BLOCKS[i % 3] for i in range(ROWS)]), PL94
    )


def pieces(iterate, file, **options):
    """Return an example of one file that is read a piece at a time."""
    return Example([file], lambda: sum(len(piece) for piece in iterate(file, **options)))


def text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def ppmf(vintage, name):
    def make(folder):
        rng = np.random.default_rng(1)
        plain, file = folder / "people.csv", folder / name
        if vintage in ("2020", "mdf-dhc"):
            records = oracle.person_records(rng, ROWS, gq=rng.integers(0, 8, ROWS))
        else:
            records = oracle.pl94_records(rng, ROWS)
        br.census.write_ppmf(records, plain, vintage=vintage)
        data = plain.read_bytes()
        if name.endswith(".zip"):
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("people.csv", data)
        else:
            file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return pieces(br.census.iter_ppmf, file)

    return make


def ppmf_units(folder):
    records = oracle.household_records(np.random.default_rng(1), ROWS)
    br.census.write_ppmf_units(records, folder / "units.csv", vintage="2020")
    return pieces(br.census.iter_ppmf_units, folder / "units.csv")


def form(ending, dialect="schema"):
    def make(folder):
        file = folder / f"form.{ending}"
        br.census.write_record_form(people(), file, dialect=dialect)
        return pieces(br.census.iter_record_form, file, dialect=dialect)

    return make


def ipums(name):
    def make(folder):
        file, book = folder / name, folder / "usa.xml" if name == "usa.dat" else None
        records = oracle.records_1940(np.random.default_rng(1), 5)
        agency_forms.write_ipums_1940(records, file, ddi=book)
        made = pieces(br.census.iter_ipums_1940, file, ddi=book)
        return Example([file, book] if book else [file], made.read)

    return make


def archive(write, read, found, name, *, unpacked=False):
    """Return the maker of an archive of tables, or of a folder with its members."""

    def make(folder):
        write(found(), folder / name)
        if not unpacked:
            return Example([folder / name], lambda: read(folder / name, workload=found().workload))
        place = folder / "unpacked"
        place.mkdir()
        with zipfile.ZipFile(folder / name) as members:
            for member in members.namelist():
                (place / member.rsplit("/", 1)[-1]).write_bytes(members.read(member))
        return Example(sorted(place.iterdir()), lambda: read(place, workload=found().workload))

    return make


HUD = """\
Quarter,States,SumLevel,Name,Code,Total_Units,Pct_Occupied,Number_Reported,Pct_Female_Head,Latitude
2020,AL,8,"Tract 1, Baldwin",1003010100,40,95,38,79,-30.5
2020,AL,8,Tract 2,01003010200,12,-1,-4,-4,
"""


def hud_csv(folder):
    file = text(folder / "TRACT_2020.csv", HUD)
    return Example([file], lambda: br.census.read_hud(file, level="tract"))


def hud_xlsx(folder):
    book = openpyxl.Workbook()
    for line in HUD.replace('"Tract 1, Baldwin"', "Tract 1").splitlines():
        book.worksheets[0].append([int(v) if v.isdigit() else v for v in line.split(",")])
    file = folder / "TRACT_2020.xlsx"
    book.save(file)
    return Example([file], lambda: br.census.read_hud(file, level="tract"))


def hud_old(folder):
    file = folder / "COUNTY_2011.csv"
    hud_files.county_file(file, "2011", np.random.default_rng(1), rows=6)
    return Example([file], lambda: br.census.read_hud(file, level="county"))


def nmf(folder):
    made = br.census.write_nmf(folder / "US_Unit_PL_PROD", universe="unit", rng=1).folder
    files = [
        min((made / "Block.parquet" / kind).rglob("*.parquet"))
        for kind in ("DPQuery", "Constraint")
    ]

    def read():
        source = NoisyMeasurements.open(made)
        for query in source.queries("Block"):
            assert all(len(batch.values) for batch in source.iter_values("Block", query))
        stated = rows_between(source, "Block", "Constraint", "", "").values()
        assert all(len(rows.values) for rows in stated)
        source.units("Block")

    return Example(files, read)


def records(ending):
    def make(folder):
        file = folder / f"records.{ending}"
        if ending == "csv":
            people().to_frame().assign(note="a, b").to_csv(file, index=False)
        else:
            people().write(file)
        return pieces(iter_records, file, schema=Schema.named("sf1-person"), chunk=5)

    return make


def microdata(folder):
    place = folder / "micro"
    blocks = pd.DataFrame({"block": BLOCKS, "x": [0.0, 1.5, 2.0], "y": [3.0, 4.0, 5.0]})
    Microdata(people(), oracle.household_records(np.random.default_rng(2), 6), blocks).write(place)

    def read():
        data = Microdata.read(place)
        units = [unit.table.to_pylist() for unit in (data.persons, data.households)]
        return units, data.blocks.to_dict()

    return Example(sorted(place.iterdir()), read)


def exchange(folder):
    tables().write(folder / "tables")
    return Example(
        sorted((folder / "tables").iterdir()), lambda: PublishedTables.read(folder / "tables")
    )


def release(folder):
    mechanism = make_mechanism(
        "discrete-gaussian", sensitivity="add-remove", rho="1/10", level_shares={"block": 1},
        table_shares={"P1": 1},
    )  # fmt: skip
    asked = P1.select(tables=["P1"])
    made = mechanism.release(people(), workload=asked, rng=1, places="occupied")
    made.write(folder / "release")
    # Tables for people and the README are looked at by ``verify`` alone.
    files = [f for f in sorted((folder / "release").iterdir()) if f.suffix not in ("", ".txt")]
    return Example(files, lambda: Release.read(folder / "release"))


def by_hand(kind):
    """Return an example as if its folder had been written by hand: no seal and no digest.

    Otherwise nearly every change is found by its digest, and nothing behind it is tried.
    """

    def make(folder):
        made = kind(folder)
        for file in made.files:
            if file.name == "_microdata.json":
                file.unlink()
            elif file.suffix == ".json":
                document = json.loads(file.read_text())
                for part in [document, *document.get("parts", [])]:
                    for key in ("seal", "geographies", "sha256"):
                        part.pop(key, None)
                file.write_text(json.dumps(document))
        return Example([file for file in made.files if file.exists()], made.read)

    return make


SWEEP = """\
title = "a sweep"
scenario = "characteristics"
seed = 3
[table]
path = "cells.csv"
count = "count"
[grid]
rho = [0.1, "1/864", {log = [0.01, 1.0], points = 5},
  {name = "b", budget = "pl94/US/person/Block/detailed"}]
prior = [0.1, "1/3"]
sensitivity = ["add-remove", 2.0]
released = {from = -2, to = 2}
[accounting]
delta = 1e-10
"""


def sweep_toml(folder):
    cells = text(folder / "cells.csv", "age,sex,count\n1,0,1\n2,1,0\n3,0,4\n")
    file = text(folder / "sweep.toml", SWEEP)
    return Example([file, cells], lambda: load_config(file))


SCHEMA = """\
name = "ward"
[geography]
levels = ["region", "ward"]
widths = [1, 3]
[[attributes]]
name = "sex"
labels = ["F", "M"]
[[attributes]]
name = "age"
size = 3
first = 1
"""
OWN_TABLES = """\
schema = "ward.toml"
levels = ["region", "ward"]
tables = [
    { cross = ["sex", "age"] },
    { name = "old", cross = [["age", ["1-2", "3"]]], where = { sex = "0" }, levels = ["ward"] },
]
[recodes.age]
two = ["1-2", "3"]
"""


def own_tables(folder):
    """Return a schema, tables and records of somebody's own."""
    files = [
        text(folder / "ward.toml", SCHEMA),
        text(folder / "tables.toml", OWN_TABLES),
        text(folder / "records.csv", "ward,sex,age\n101,F,1\n102,M,3\n201,1,2\n"),
    ]

    def read():
        work = Workload.read(folder / "tables.toml")
        tabulate(Records.read(folder / "records.csv", schema=work.schema), work)

    return Example(files, read)


def release_toml(folder):
    file = text(
        folder / "release.toml",
        'protection = "swapping"\ntables = ["sf1-block"]\nlevels = ["block"]\nonly = ["P1"]\n'
        '[parameters]\nrate = 0.1\nswap_key = ["size"]\n[parameters.more]\na.b = [1, 2]\n',
    )
    return Example([file], lambda: read_release_file(file, ReleaseOptions))


def _written(frame, file):
    return frame.to_csv(file, index=False) if file.suffix == ".csv" else frame.to_parquet(file)


def known(ending):
    def make(folder):
        file = folder / f"known.{ending}"
        _written(people().to_frame().assign(person=range(ROWS)), file)
        columns = ("block", "sex", "age", "race", "hisp", "person")
        return Example([file], lambda: read_known(file, columns, "schema"))

    return make


def run(folder):
    place = folder / "run"
    document = {"grid": {"rho": [0.1, 0.2], "prior": [0.5]}, "settings_per_shard": 1}
    run_sweep(parse_config(document), place)
    files = [place / "config.json", *sorted((place / "parts").iterdir())]

    def read():
        config, frame = read_results(place)
        return config, frame.to_csv()

    return Example(files, read)


def reconstruction(folder):
    place = folder / "out"
    tables().write(folder / "tables")
    run_reconstruction(folder / "tables", place, scope="block", variability="block")
    files = [place / "config.json", place / "manifest.json", *sorted(place.glob("*.parquet"))]

    def read():
        found = read_reconstruction(place)
        return found.config, found.records.to_csv(), found.blocks.to_csv()

    return Example(files, read)


_SF1 = (agency_forms.write_sf1, br.census.read_sf1, tables, "vt2010.sf1.zip")
_NHGIS = (agency_forms.write_nhgis, br.census.read_nhgis, tables, "nhgis0001_csv.zip")
_PL94 = (agency_forms.write_pl94, br.census.read_pl94, voters, "vt2020.pl.zip")
_DHC = (agency_forms.write_dhc, br.census.read_dhc, tables, "vt2020.dhc.zip")
KINDS = {
    "ppmf-csv": ppmf("2010-demonstration", "people.csv"), "ppmf-mdf": ppmf("mdf-dhc", "people.txt"),
    "ppmf-zip": ppmf("2010-demonstration", "people.zip"), "ppmf-gz": ppmf("2020", "people.csv.gz"),
    "ppmf-units": ppmf_units, "form-csv": form("csv"), "form-parquet": form("parquet"),
    "form-labels-csv": form("csv", "labels"), "form-labels-parquet": form("parquet", "labels"),
    "ipums-fixed": ipums("EXT1940USCB.dat"), "ipums-csv": ipums("usa.csv"),
    "ipums-ddi": ipums("usa.dat"), "sf1-zip": archive(*_SF1),
    "sf1-folder": archive(*_SF1, unpacked=True), "nhgis-zip": archive(*_NHGIS),
    "nhgis-folder": archive(*_NHGIS, unpacked=True), "pl94-folder": archive(*_PL94, unpacked=True),
    "dhc-zip": archive(*_DHC), "hud-csv": hud_csv, "hud-xlsx": hud_xlsx, "hud-2011": hud_old,
    "nmf": nmf, "records-csv": records("csv"), "records-parquet": records("parquet"),
    "microdata": microdata, "microdata-by-hand": by_hand(microdata), "exchange": exchange,
    "exchange-by-hand": by_hand(exchange), "release-json": release,
    "release-json-by-hand": by_hand(release), "release-toml": release_toml,
    "own-tables": own_tables, "sweep-toml": sweep_toml, "known-csv": known("csv"),
    "known-parquet": known("parquet"), "run": run, "reconstruction": reconstruction,
}  # fmt: skip
#: Folders of ours, every file of which carries a digest, or has one in another file.
SEALED = {"microdata", "exchange", "release-json", "run", "reconstruction"}
