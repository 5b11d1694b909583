"""A small sound example of every file that the package reads, and how it is read.

Each maker writes its example into a folder and returns the files that may be damaged and a call
that reads everything there is.
"""

import json
import shutil
import warnings
import zipfile
from collections import namedtuple
from functools import cache

import numpy as np
import pandas as pd
from oracles import hud_files
from oracles import readers as oracle
from studies import run_reconstruction, run_sweep

import bayesrisk as br
from bayesrisk.cli.recipes import read_release_file
from bayesrisk.exceptions import BayesRiskWarning
from bayesrisk.experiments import load_config, parse_config, read_reconstruction, read_results
from bayesrisk.experiments.hierarchy import add_columns
from bayesrisk.experiments.linkage.counties import _read as read_known
from bayesrisk.experiments.occupancy import attack
from bayesrisk.experiments.occupancy.report import read_households, read_sample
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.readers import NoisyMeasurements
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

Example = namedtuple("Example", "files read")


def people(n=ROWS):
    rng = np.random.default_rng(5)
    return oracle.person_records(rng, n, block=[BLOCKS[i % 3] for i in range(n)])


@cache
def tables():
    return tabulate(people(), P1)


def _length(pieces):
    return sum(len(piece) for piece in pieces)


def _text_of(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def ppmf(vintage, name):
    def make(folder):
        rng = np.random.default_rng(1)
        extra = {"gq": rng.integers(0, 8, ROWS)}
        records = (
            oracle.person_records(rng, ROWS, **extra)
            if vintage in ("2020", "mdf-dhc", "2020-05-27-ages")
            else oracle.pl94_records(rng, ROWS)
        )
        plain = folder / "people.csv"
        br.readers.write_ppmf(records, plain, vintage=vintage)
        if vintage == "2020-05-27":  # as published: codes as 3.0
            oracle.with_decimals(plain)
        return Example(
            [_packed(plain, folder / name)], lambda: _length(br.readers.iter_ppmf(folder / name))
        )

    return make


def _packed(plain, target):
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(plain, plain.name)
    elif target.suffix == ".gz":
        import gzip

        target.write_bytes(gzip.compress(plain.read_bytes()))
    elif target != plain:
        shutil.copy(plain, target)
    return target


def ppmf_units(folder):
    records = oracle.household_records(np.random.default_rng(1), ROWS)
    file = folder / "units.csv"
    br.readers.write_ppmf_units(records, file, vintage="2020")
    return Example([file], lambda: _length(br.readers.iter_ppmf_units(file)))


def form(ending, dialect="schema"):
    def make(folder):
        file = folder / f"form.{ending}"
        br.readers.write_record_form(people(), file, dialect=dialect)
        return Example([file], lambda: _length(br.readers.iter_record_form(file, dialect=dialect)))

    return make


def ipums_fixed(folder):
    records = oracle.records_1940(np.random.default_rng(1), 5)
    file = folder / "EXT1940USCB.dat"
    br.readers.write_ipums_1940(records, file)
    return Example([file], lambda: _length(br.readers.iter_ipums_1940(file)))


def ipums_csv(folder):
    records = oracle.records_1940(np.random.default_rng(1), 5)
    file = folder / "usa.csv"
    br.readers.write_ipums_1940(records, file)
    return Example([file], lambda: _length(br.readers.iter_ipums_1940(file)))


def ipums_ddi(folder):
    records = oracle.records_1940(np.random.default_rng(1), 5)
    file, book = folder / "usa.dat", folder / "usa.xml"
    br.readers.write_ipums_1940(records, file, ddi=book)
    return Example([book, file], lambda: _length(br.readers.iter_ipums_1940(file, ddi=book)))


def sf1_zip(folder):
    file = folder / "vt2010.sf1.zip"
    br.readers.write_sf1(tables(), file)
    return Example([file], lambda: br.readers.read_sf1(file, workload=P1))


def sf1_folder(folder):
    br.readers.write_sf1(tables(), folder / "vt2010.sf1.zip")
    place = folder / "vt"
    with zipfile.ZipFile(folder / "vt2010.sf1.zip") as archive:
        archive.extractall(place)
    return Example(sorted(place.iterdir()), lambda: br.readers.read_sf1(place, workload=P1))


def nhgis_zip(folder):
    file = folder / "nhgis0001_csv.zip"
    br.readers.write_nhgis(tables(), file, described=True)
    return Example([file], lambda: br.readers.read_nhgis(file, workload=P1))


def nhgis_folder(folder):
    br.readers.write_nhgis(tables(), folder / "nhgis0001_csv.zip")
    with zipfile.ZipFile(folder / "nhgis0001_csv.zip") as archive:
        for info in archive.infolist():
            (folder / info.filename.rsplit("/", 1)[-1]).write_bytes(archive.read(info))
    (data,) = folder.glob("*.csv")
    return Example([data, *folder.glob("*.txt")], lambda: br.readers.read_nhgis(data, workload=P1))


def nhgis_several(folder):
    """Two levels in one archive, and the redistricting file of 2020 in another."""
    work = P1.union(Workload.named("sf1-block", levels=["tract"]).select(tables=["P1"]))
    whole = tabulate(people(), work)
    file = folder / "nhgis0002_csv.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for level in ("block", "tract"):
            part = tabulate(people(), work.select(levels=[level]))
            br.readers.write_nhgis(part, folder / f"{level}.zip")
            with zipfile.ZipFile(folder / f"{level}.zip") as one:
                for info in one.infolist():
                    archive.writestr(info.filename, one.read(info))
    assert br.readers.read_nhgis(file, workload=work) == whole
    return Example([file], lambda: br.readers.read_nhgis(file, workload=work))


def nhgis_2020(folder):
    work = Workload.named("pl94-tables").select(tables=["P1", "P5"])
    file = folder / "nhgis0003_csv.zip"
    br.readers.write_nhgis(tabulate(voters(), work), file, dataset="2020_PL94171")
    return Example([file], lambda: br.readers.read_nhgis(file, workload=work))


def voters(n=ROWS):
    return oracle.pl94_records(np.random.default_rng(5), n).replace(
        block=[BLOCKS[i % 3] for i in range(n)]
    )


def pl94_folder(folder):
    work = Workload.named("pl94-tables")
    br.readers.write_pl94(tabulate(voters(), work), folder / "vt2020.pl.zip")
    place = folder / "vt"
    with zipfile.ZipFile(folder / "vt2020.pl.zip") as archive:
        archive.extractall(place)
    return Example(sorted(place.iterdir()), lambda: br.readers.read_pl94(place, workload=work))


def dhc_zip(folder):
    file = folder / "vt2020.dhc.zip"
    br.readers.write_dhc(tables(), file)
    return Example([file], lambda: br.readers.read_dhc(file, workload=P1))


HUD = """\
Quarter,States,SumLevel,Name,Code,Total_Units,Pct_Occupied,Number_Reported,Pct_Female_Head,Latitude
2020,AL,8,"Tract 1, Baldwin",1003010100,40,95,38,79,-30.5
2020,AL,8,Tract 2,01003010200,12,-1,-4,-4,
"""


def hud_csv(folder):
    file = _text_of(folder / "TRACT_2020.csv", HUD)
    return Example([file], lambda: br.readers.read_hud(file, level="tract"))


def hud_vintage(vintage):
    def make(folder):
        file = folder / f"COUNTY_{vintage}.csv"
        hud_files.county_file(file, vintage, np.random.default_rng(1), rows=6)
        return Example([file], lambda: _quietly(lambda: br.readers.read_hud(file, level="county")))

    return make


def _quietly(read):
    """Read what is kept with a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesRiskWarning)
        return read()


LINK = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
HUD_ROWS = [line.split(",") for line in HUD.replace('"Tract 1, Baldwin"', "Tract 1").splitlines()]


def _links(*targets):
    rows = (
        f'<Relationship Id="r{i}" Type="{LINK}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(targets, 1)
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{space}">{"".join(rows)}</Relationships>'


def write_workbook(file, rows):
    """Write a workbook as Excel does: the texts of cells apart, blank cells left out."""
    texts = list(dict.fromkeys(t for row in rows for t in row if t and not t.isdigit()))
    lines = []
    for number, row in enumerate(rows, 1):
        cells = [
            f'<c r="{chr(65 + at)}{number}"><v>{text}</v></c>'
            if text.isdigit()
            else f'<c r="{chr(65 + at)}{number}" t="s"><v>{texts.index(text)}</v></c>'
            for at, text in enumerate(row)
            if text
        ]
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    parts = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="application/vnd.openxmlformats-'
        f'officedocument.spreadsheetml.{kind}+xml"/>'
        for name, kind in (
            ("workbook", "sheet.main"),
            ("worksheets/sheet1", "worksheet"),
            ("sharedStrings", "sharedStrings"),
        )
    )
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{types}">{parts}</Types>',
        "_rels/.rels": _links(("officeDocument", "xl/workbook.xml")),
        "xl/_rels/workbook.xml.rels": _links(
            ("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "/xl/sharedStrings.xml")
        ),
        "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{LINK}"><sheets>'
        '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{"".join(lines)}'
        "</sheetData></worksheet>",
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEETS}">'
        + "".join(f"<si><r><t>{t[:1]}</t></r><r><t>{t[1:]}</t></r></si>" for t in texts)
        + "</sst>",
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file


def hud_xlsx(folder):
    file = write_workbook(folder / "TRACT_2020.xlsx", HUD_ROWS)
    return Example([file], lambda: br.readers.read_hud(file, level="tract"))


def nmf(folder):
    sample = br.readers.write_nmf(folder / "US_Unit_PL_PROD", universe="unit", rng=1)
    state = "State=" + min(p.name for p in (sample.folder / "Block.parquet/DPQuery").iterdir())[6:]
    files = [
        next((sample.folder / "Block.parquet/DPQuery" / state).glob("*.parquet")),
        next((sample.folder / "Block.parquet/Constraint" / state).glob("*.parquet")),
    ]

    def read():
        source = NoisyMeasurements.open(sample.folder)
        source.n_rows("Block")
        for query in source.queries("Block"):
            for batch in source.iter_values("Block", query):
                assert len(batch.values)
        for query in source.constraints("Block"):
            for batch in source.iter_constraints("Block", query):
                assert len(batch.values)
        source.units("Block")

    return Example(files, read)


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


def records(ending):
    def make(folder):
        file = folder / f"records.{ending}"
        if ending == "csv":
            people().to_frame().assign(note="a, b").to_csv(file, index=False)
        else:
            people().write(file)
        about = Schema.named("sf1-person")
        return Example([file], lambda: _length(iter_records(file, schema=about, chunk=5)))

    return make


def microdata(folder):
    place = folder / "micro"
    blocks = pd.DataFrame({"block": BLOCKS, "x": [0.0, 1.5, 2.0], "y": [3.0, 4.0, 5.0]})
    Microdata(people(), oracle.household_records(np.random.default_rng(2), 6), blocks).write(place)
    return Example(sorted(place.iterdir()), lambda: Microdata.read(place))


def exchange(folder):
    place = folder / "tables"
    tables().write(place)
    return Example(sorted(place.iterdir()), lambda: PublishedTables.read(place))


def release(folder):
    place = folder / "release"
    mechanism = make_mechanism(
        "discrete-gaussian",
        sensitivity="add-remove",
        rho="1/10",
        level_shares={"block": 1},
        table_shares={"P1": 1},
    )
    asked = P1.select(tables=["P1"])
    mechanism.release(people(), workload=asked, rng=1, places="occupied").write(place)
    return Example([place / "_release.json"], lambda: Release.read(place))


SWEEP = """\
title = "a sweep"
scenario = "characteristics"
seed = 3
settings_per_shard = 4
[table]
path = "cells.csv"
count = "count"
[grid]
rho = [0.1, "1/864", {log = [0.01, 1.0], points = 5},
  {name = "b", budget = "pl94/US/person/Block/detailed"}]
prior = [0.1, "1/3"]
sensitivity = ["add-remove", 2.0]
released = {from = -2, to = 2}
[levels]
names = ["block", "tract"]
rho = [0.1, 0.2]
[hierarchy]
rho_group = [0.1]
group_count = [3, 4]
n_siblings = [2]
[accounting]
delta = 1e-10
"""
CELLS = "age,sex,count\n1,0,1\n2,1,0\n3,0,4\n"


def sweep_toml(folder):
    _text_of(folder / "cells.csv", CELLS)
    file = _text_of(folder / "sweep.toml", SWEEP)
    return Example([file], lambda: load_config(file))


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
OWN_RECORDS = "ward,sex,age\n101,F,1\n102,M,3\n201,1,2\n"


def own_tables(folder):
    """Return a schema, tables and records of somebody's own."""
    files = [
        _text_of(folder / name, text)
        for name, text in (
            ("ward.toml", SCHEMA), ("tables.toml", OWN_TABLES), ("records.csv", OWN_RECORDS),
        )
    ]  # fmt: skip

    def read():
        work = Workload.read(folder / "tables.toml")
        tabulate(Records.read(folder / "records.csv", schema=work.schema), work)

    return Example(files, read)


def sweep_table(ending):
    def make(folder):
        file = folder / f"cells.{ending}"
        frame = pd.DataFrame({"age": ["a", "b", "c"], "sex": [0, 1, 0], "count": [1, 0, 4]})
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
        document = {"table": {"path": file.name}, "grid": {"rho": [0.1], "prior": [0.5]}}
        return Example([file], lambda: parse_config(document, folder=folder))

    return make


def release_toml(folder):
    file = _text_of(
        folder / "release.toml",
        'mechanism = "swapping"\ntables = ["sf1-block"]\nlevels = ["block"]\nonly = ["P1"]\n'
        '[parameters]\nrate = 0.1\nswap_key = ["size"]\n[parameters.more]\na.b = [1, 2]\n',
    )
    return Example([file], lambda: read_release_file(file))


Posterior = namedtuple("Posterior", "target_probability risk_ratio truncation_bound")


def _posterior(**columns):
    half = np.full(len(columns["block"]), 0.5)
    return Posterior(half, half, half)


def releases(ending):
    def make(folder):
        file, output = folder / f"releases.{ending}", folder / f"out.{ending}"
        frame = pd.DataFrame(
            {
                "code": ["001", "002", "003"],
                "block": [1, 2, 3],
                "group": [5, 6, 7],
                "siblings": [4, 4, 4],
                "n_siblings": [2, 2, 2],
                "prior": ["1/3", "0.1", "0.2"],
            }
        )
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
        settings = {"n_siblings": None, "prior": None, "known_count": None}

        def read():
            output.unlink(missing_ok=True)
            add_columns(file, output, _posterior, settings)

        return Example([file], read)

    return make


def known(ending):
    def make(folder):
        file = folder / f"known.{ending}"
        frame = people().to_frame().assign(person=range(ROWS))
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
        columns = ("block", "sex", "age", "race", "hisp", "person")
        return Example([file], lambda: read_known(file, columns, "schema").frame)

    return make


def _homes():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "block": [BLOCKS[i % 3] for i in range(ROWS)],
            "size": rng.integers(3, 8, ROWS),
            "race_ethnicity": rng.integers(0, 14, ROWS),
            "children": rng.integers(0, 3, ROWS),
            "bedrooms": rng.integers(0, 4, ROWS),
            "subsidised": rng.integers(0, 2, ROWS),
        }
    )


def homes(folder):
    file = folder / "homes.parquet"
    _homes().to_parquet(file)
    return Example([file], lambda: read_households(file))


def sample(folder):
    file = folder / "sample.parquet"
    _homes().assign(weight=2).to_parquet(file)
    config = namedtuple("Config", "smoothing")(0.5)
    return Example([file], lambda: (read_sample(file), attack._sample(str(file), config)))


def statistics(folder):
    file = folder / "statistics.parquet"
    about = Workload.named("household-occupancy")
    homes = Records.from_frame(_homes(), schema=about.schema)
    br.reconstruction.occupancy_statistics(tabulate(homes, about)).to_frame().to_parquet(file)

    def read():
        attack._statistics.cache_clear()
        attack._statistics(str(file), attack._digest(file), "block", "counts")

    return Example([file], read)


def run(folder):
    place = folder / "run"
    document = {"grid": {"rho": [0.1, 0.2], "prior": [0.5]}, "settings_per_shard": 1}
    run_sweep(parse_config(document), place)
    files = [place / "config.json", *sorted((place / "parts").iterdir())]
    return Example(files, lambda: read_results(place))


def reconstruction(folder):
    place = folder / "out"
    tables().write(folder / "tables")
    run_reconstruction(folder / "tables", place, scope="block", variability="block")
    files = [place / "config.json", place / "manifest.json", *sorted(place.glob("*.parquet"))]
    return Example(files, lambda: read_reconstruction(place))


KINDS = {
    "ppmf-csv": ppmf("2010-demonstration", "people.csv"),
    "ppmf-2020": ppmf("2020", "people.csv"),
    "ppmf-early": ppmf("2020-05-27", "people.csv"),
    "ppmf-early-ages": ppmf("2020-05-27-ages", "people.csv"),
    "ppmf-mdf": ppmf("mdf-dhc", "people.txt"),
    "ppmf-zip": ppmf("2010-demonstration", "people.zip"),
    "ppmf-gz": ppmf("2020", "people.csv.gz"),
    "ppmf-units": ppmf_units,
    "form-csv": form("csv"),
    "form-parquet": form("parquet"),
    "form-labels-csv": form("csv", "labels"),
    "form-labels-parquet": form("parquet", "labels"),
    "form-pums-csv": form("csv", "pums"),
    "ipums-fixed": ipums_fixed,
    "ipums-csv": ipums_csv,
    "ipums-ddi": ipums_ddi,
    "sf1-zip": sf1_zip,
    "sf1-folder": sf1_folder,
    "nhgis-zip": nhgis_zip,
    "nhgis-folder": nhgis_folder,
    "nhgis-several": nhgis_several,
    "nhgis-2020": nhgis_2020,
    "pl94-folder": pl94_folder,
    "dhc-zip": dhc_zip,
    "hud-csv": hud_csv,
    "hud-xlsx": hud_xlsx,
    "hud-2006": hud_vintage("2006"),
    "hud-2011": hud_vintage("2011"),
    "hud-2024": hud_vintage("2024"),
    "nmf": nmf,
    "records-csv": records("csv"),
    "records-parquet": records("parquet"),
    "microdata": microdata,
    "microdata-by-hand": by_hand(microdata),
    "exchange": exchange,
    "exchange-by-hand": by_hand(exchange),
    "release-json": release,
    "release-json-by-hand": by_hand(release),
    "release-toml": release_toml,
    "releases-csv": releases("csv"),
    "releases-parquet": releases("parquet"),
    "own-tables": own_tables,
    "sweep-toml": sweep_toml,
    "sweep-table-csv": sweep_table("csv"),
    "sweep-table-parquet": sweep_table("parquet"),
    "known-csv": known("csv"),
    "known-parquet": known("parquet"),
    "homes": homes,
    "sample": sample,
    "statistics": statistics,
    "run": run,
    "reconstruction": reconstruction,
}
