"""Files of every form that are as long as one likes, and what reads them a piece at a time."""

import gzip
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from agency_forms import write_ipums_1940
from oracles import hud_files, readers as oracle
from pyarrow import parquet
from scipy import sparse

import bayesrisk
from bayesrisk.census import write_nmf, write_ppmf, write_record_form
from bayesrisk.tables import Workload

#: Rows of what is repeated.
ROWS = 2**15

#: What stands before the reading, and the reading, of which the answer is how many rows it gave.
PREPARE = """
import warnings
from pathlib import Path

import bayesrisk
from bayesrisk.tables import Schema, Workload, iter_records

warnings.simplefilter("ignore")
PERSON = Schema.named("sf1-person")
P1 = Workload.named("sf1-block").select(tables=["P1"])
TWO = Workload.named("sf1-block").select(tables=["P1", "P14"])
PL94 = Workload.named("pl94-tables").select(tables=["P1"])
DHC = Workload.named("dhc-block").select(tables=["P1"])
read = bayesrisk.census


def known_persons(file):
    from bayesrisk.census.studies import linked_counties

    columns = ("block", "sex", "age", "race", "hisp", "person")
    return linked_counties.read_persons(file, columns, "archive")


ITERATORS = {
    "units": lambda file: read.iter_ppmf_units(file, chunk=2**15),
    "hud": lambda file: read.iter_hud(file, level="tract", chunk=2**12),
    "records-csv": lambda file: iter_records(file, schema=PERSON, chunk=2**15),
    "records-parquet": lambda file: iter_records(file, schema=PERSON, chunk=2**15),
    "form-parquet": lambda file: read.iter_record_form(
        file, dialect="schema", chunk=2**15
    ),
    "nhgis": lambda file: read.iter_nhgis(file, workload=P1, chunk=2**13),
    "sf1": lambda file: read.iter_sf1(file, workload=P1, chunk=2**13),
    "pl94": lambda file: read.iter_pl94(file, workload=PL94, chunk=2**13),
    "nhgis-several": lambda file: read.iter_nhgis(file, workload=TWO, chunk=2**13),
    "dhc": lambda file: read.iter_dhc(file, workload=DHC, chunk=2**13),
    "nhgis-zip": lambda file: read.iter_nhgis(file, workload=P1, chunk=2**13),
    "early": lambda file: read.iter_ppmf(file, chunk=2**15),
    "ppmf-2010": lambda file: read.iter_ppmf(file, chunk=2**15),
    "ppmf-2020": lambda file: read.iter_ppmf(file, chunk=2**15),
    "form-csv": lambda file: read.iter_record_form(file, dialect="archive", chunk=2**15),
    "form-labels": lambda file: read.iter_record_form(file, dialect="labels", chunk=2**15),
    "form-gz": lambda file: read.iter_record_form(file, dialect="archive", chunk=2**15),
    "ipums-1940": lambda file: read.iter_ipums_1940(file, chunk=2**15),
    "ipums-csv": lambda file: read.iter_ipums_1940(file, chunk=2**15),
    "hud-county": lambda file: read.iter_hud(file, level="county", chunk=2**12),
    "hud-xlsx": lambda file: read.iter_hud(file, level="county", chunk=2**12),
    "read_hud": lambda file: [read.read_hud(file, level="county")],
    "persons-csv": lambda file: [known_persons(Path(file))],
    "tables": lambda file: [bayesrisk.PublishedTables.read(file)],
    "release": lambda file: [bayesrisk.Release.read(file).tables],
    "nmf": lambda file: read.NoisyMeasurements.open(file).iter_values(
        "Block", "detailed"
    ),
}
LENGTHS = {"nmf": lambda batch: len(batch.geocodes)}
for kind in ("nhgis", "nhgis-several", "nhgis-zip", "sf1", "pl94", "dhc", "tables", "release"):
    LENGTHS[kind] = lambda tables: len(tables.geoids["block"])
"""
READ_MANY = """
answer = sum(map(LENGTHS.get(sys.argv[1], len), ITERATORS[sys.argv[1]](sys.argv[2])))
"""


def repeated(file, times, header):
    """Return a file with the rows of another many times over."""
    lines = file.read_bytes().splitlines(keepends=True)
    longer = file.with_name(f"{times}-{file.name}")
    with longer.open("wb") as stream:
        stream.writelines(lines[:header])
        body = b"".join(lines[header:])
        for _ in range(times):
            stream.write(body)
    return longer


def units_file(folder, rows):
    file = folder / "u.csv"
    units = oracle.household_records(np.random.default_rng(1), 2**12)
    bayesrisk.census.write_ppmf_units(units, file, vintage="2020")
    return repeated(file, rows // 2**12, 1)


def hud_file(folder, rows):
    file = folder / "TRACT_2020.csv"
    line = f"1073000100,{'x' * 1000},320,77,-4\n"
    file.write_text("code,name,number_reported,pct_female_head,pct_bed1\n" + line * 2**12)
    return repeated(file, rows // 2**12, 1)


def records_file(folder, rows, ending):
    file = folder / f"r.{ending}"
    table = oracle.person_records(np.random.default_rng(1), 2**15).table
    if ending == "csv":
        table.to_pandas().to_csv(file, index=False)
        return repeated(file, rows // 2**15, 1)
    with parquet.ParquetWriter(file, table.schema, compression="none", use_dictionary=False) as out:
        for _ in range(rows // 2**15):
            out.write_table(table)
    return file


def blocks_of(rows):
    """Yield the number, tract and block of so many blocks."""
    for i in range(rows):
        tract, block = divmod(i, 8999)
        yield i, f"{tract:06d}", str(1000 + block)


def nhgis_file(folder, rows):
    file = folder / "nhgis.csv"
    (folder / "nhgis_codebook.txt").write_text(
        "Table 1:     Total Population\nSource code: P1\nNHGIS code:  H7V\n    H7V001:      Total\n"
    )
    with file.open("w") as stream:
        stream.write("GISJOIN,YEAR,NAME,H7V001\n")
        for i, tract, block in blocks_of(rows):
            stream.write(f"G5000010{tract}{block},2010,{'x' * 150},{i % 50}\n")
    return file


def sf1_folder(folder, rows):
    made = folder / str(rows)
    made.mkdir()
    with (made / "vtgeo2010.sf1").open("w") as header, (made / "vt000012010.sf1").open("w") as one:
        for i, tract, block in blocks_of(rows):
            line = f"SF1ST VT10100     {i + 1:07d}  50001".ljust(54) + tract + block[0] + block
            header.write(line.ljust(500) + "\n")
            one.write(f"SF1ST,VT,000,01,{i + 1:07d},{i % 50}\n")
    return made


def folder_2020(folder, rows, form, level, segment, counts):
    """A header and one segment of the redistricting file or the DHC."""
    made = folder / str(rows)
    made.mkdir()
    kind, other = f"{form.upper()}ST|VT", made / f"vt000{segment}2020.{form}"
    with (made / f"vtgeo2020.{form}").open("w") as header, other.open("w") as one:
        for i, tract, block in blocks_of(rows):
            fields = [kind, level, "00", "00", "000", "00", f"{i + 1:07d}", *[""] * 89]
            fields[11], fields[13], fields[31:34] = "50", "001", (tract, block[0], block)
            header.write("|".join(fields) + "\n")
            one.write(f"{kind}|000|{segment}|{i + 1:07d}|{counts}\n")
    return made


def pl94_folder(folder, rows):
    counts = "|".join(["7", "7", "4", "3", *["0"] * 145])
    return folder_2020(folder, rows, "pl", "750", "01", counts)


def dhc_folder(folder, rows):
    return folder_2020(folder, rows, "dhc", "100", "05", "|".join(["7", *["0"] * 220]))


def nhgis_zip(folder, rows):
    """The file and its codebook in an archive, as they are delivered."""
    file = nhgis_file(folder, rows)
    with zipfile.ZipFile(folder / "nhgis0001_csv.zip", "w", zipfile.ZIP_DEFLATED, 1) as archive:
        archive.write(file, "nhgis0001_csv/nhgis0001_ds172_2010_block.csv")
        book = "nhgis0001_csv/nhgis0001_ds172_2010_block_codebook.txt"
        archive.write(folder / "nhgis_codebook.txt", book)
    file.unlink()
    return folder / "nhgis0001_csv.zip"


def persons_file(folder, rows, vintage):
    file = folder / "p.csv"
    rng = np.random.default_rng(1)
    many = vintage == "2010-demonstration"
    people = (
        oracle.pl94_records(rng, ROWS)
        if many
        else oracle.person_records(rng, ROWS, gq=rng.integers(0, 8, ROWS))
    )
    write_ppmf(people, file, vintage=vintage)
    return repeated(file, rows // ROWS, 1)


def form_file(folder, rows, dialect="archive", *, packed=False, known=False):
    file = folder / "r.csv"
    rng = np.random.default_rng(1)
    write_record_form(oracle.person_records(rng, ROWS), file, dialect=dialect)
    if known:  # with a person each
        lines = file.read_text().splitlines()
        text = [f"{line},{'pik' if i == 0 else i}" for i, line in enumerate(lines)]
        file.write_text("\n".join(text) + "\n")
    long = repeated(file, rows // ROWS, 1)
    if not packed:
        return long
    with long.open("rb") as plain, gzip.open(f"{long}.gz", "wb", 1) as made:
        shutil.copyfileobj(plain, made)
    long.unlink()
    return Path(f"{long}.gz")


def ipums_file(folder, rows, name):
    people = oracle.records_1940(np.random.default_rng(1), ROWS // 3)
    write_ipums_1940(people, folder / name)
    return repeated(folder / name, -(-rows // len(people)), int(name.endswith(".csv")))


def hud_county_file(folder, rows):
    file = folder / "COUNTY_2019.csv"
    hud_files.county_file(file, "2019", np.random.default_rng(1), rows=2**9)
    longer = repeated(file, rows // 2**9, 1)
    return longer.rename(folder / "COUNTY_2020.csv")


def hud_workbook(folder, rows):
    """A workbook whose cells hold their own texts, of at most 2**20 rows."""
    header, lines, _ = hud_files.county_file(
        folder / "COUNTY_2019.csv", "2019", np.random.default_rng(1), rows=2**9
    )

    def line(number, cells):
        inner = "".join(f'<c t="str"><v>{cell}</v></c>' for cell in cells)
        return f'<row r="{number}">{inner}</row>'

    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

    def link(kind, target):
        return (
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{relations}/{kind}" Target="{target}"/></Relationships>'
        )

    file = folder / f"COUNTY-{rows}.xlsx"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        book.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/s.xml" ContentType="{kind}.worksheet+xml"/>'
            "</Types>",
        )
        book.writestr("_rels/.rels", link("officeDocument", "xl/workbook.xml"))
        book.writestr("xl/_rels/workbook.xml.rels", link("worksheet", "worksheets/s.xml"))
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
            '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        )
        with book.open("xl/worksheets/s.xml", "w", force_zip64=True) as sheet:
            sheet.write(f'<worksheet xmlns="{main}"><sheetData>'.encode())
            sheet.write(line(1, header).encode())
            for i in range(rows):
                sheet.write(line(i + 2, lines[i % 2**9]).encode())
            sheet.write(b"</sheetData></worksheet>")
    return file


def tables_folder(folder, rows, *, released=False):
    """Counts of one table for each block, with places that nobody else has."""
    blocks = np.array([f"50001{tract}{block}" for _, tract, block in blocks_of(rows)])
    work = Workload.named("sf1-block").select(tables=["P1"])
    key = next(iter(work.tables))
    counts = sparse.csr_array(np.arange(1, rows + 1, dtype=np.int64).reshape(-1, 1))
    tables = bayesrisk.PublishedTables(work, {"block": blocks}, {key: counts})
    made = folder / f"tables-{rows}"
    if released:
        bayesrisk.Release(spec=bayesrisk.Identity().spec, tables=tables).write(made)
    else:
        tables.write(made)
    return made


def nhgis_several(folder, rows):
    """Two files of the same blocks, each with a table."""
    made = folder / str(rows)
    made.mkdir()
    names = [f"H78{number:03d}" for number in range(2, 44)]
    for dataset, table, code, columns in (
        ("ds172", "P1", "H7V", ["H7V001"]), ("ds173", "P14", "H78", names),
    ):  # fmt: skip
        base = f"nhgis0001_{dataset}_2010_block"
        (made / f"{base}_codebook.txt").write_text(f"Source code: {table}\nNHGIS code:  {code}\n")
        with (made / f"{base}.csv").open("w") as stream:
            stream.write(",".join(["GISJOIN", "YEAR", *columns]) + "\n")
            zeros = ",".join(["0"] * len(columns))
            for _, tract, block in blocks_of(rows):
                stream.write(f"G5000010{tract}{block},2010,{zeros}\n")
    return made


def early_file(folder, rows):
    """Persons of May 2020, whose codes are written as 3.0."""
    file = folder / "p.csv"
    write_ppmf(oracle.pl94_records(np.random.default_rng(1), ROWS), file, vintage="2020-05-27")
    oracle.with_decimals(file)
    return repeated(file, rows // ROWS, 1)


def nmf_folder(folder, rows):
    """Answers of many states, 2**17 blocks each: of a state the reader remembers the units."""
    made = write_nmf(folder / str(rows) / "US_Unit_PL_PROD", universe="unit", rng=1).folder
    root = made / "Block.parquet" / "DPQuery"
    table = parquet.read_table(min(root.rglob("*.parquet")), partitioning=None)
    shutil.rmtree(root)
    whole = table.filter(pc.equal(table.column("query_name"), "detailed_dpq")).slice(0, 1)
    code = whole.column("geocode")[0].as_py()
    many = whole.take(np.zeros(2**17, np.int64))
    flat = np.random.default_rng(1).integers(-50, 50, 2**18)
    lists = pa.ListArray.from_arrays(np.arange(0, 2**18 + 1, 2, dtype=np.int32), flat)
    values, geocode = many.column_names.index("value"), many.column_names.index("geocode")
    many = many.set_column(values, "value", lists.cast(many.schema.field("value").type))
    for state in range(1, 1 + rows // 2**17):
        codes = [
            f"0{state:02d}{code[3:-16]}{state:02d}{code[-14:-11]}{i // 1000:06d}{code[-5:-3]}"
            f"{i % 1000:03d}"
            for i in range(2**17)
        ]
        place = root / f"State=0{state:02d}"
        place.mkdir(parents=True)
        part = many.set_column(geocode, "geocode", pa.array(codes)).cast(table.schema)
        parquet.write_table(
            part, place / "part-0.parquet", compression="none", use_dictionary=False
        )
    return made


#: How a file of so many rows is made, and how many: few enough to be short, and more.
MAKERS = {
    "ipums-1940": (
        lambda folder, rows: ipums_file(folder, rows, "EXT1940USCB.dat"), 2**20, 3 * 2**20,
    ),
    "units": (units_file, 2**20, 3 * 2**20),
    "hud": (hud_file, 2**16, 2**18),
    "records-csv": (lambda folder, rows: records_file(folder, rows, "csv"), 2**23, 2**24),
    "records-parquet": (
        lambda folder, rows: records_file(folder, rows, "parquet"), 2**21, 2**23,
    ),
    "form-parquet": (lambda folder, rows: records_file(folder, rows, "parquet"), 2**21, 2**23),
    "nhgis": (nhgis_file, 2**18, 2**20),
    "sf1": (sf1_folder, 2**17, 2**19),
    "pl94": (pl94_folder, 2**17, 2**19),
    # The allocator's pools are full after 200 MB: 330 MB at 35, 341 at 140, 374 at 210, 378 at 421.
    "nhgis-several": (nhgis_several, 2**20 + 2**19, 2**21 + 2**20),
    "dhc": (dhc_folder, 2**17, 2**19),
    "nhgis-zip": (nhgis_zip, 2**18, 2**20),
    "early": (early_file, 2**22, 2**23),
    "form-gz": (lambda folder, rows: form_file(folder, rows, packed=True), 2**21, 2**23),
    "hud-xlsx": (hud_workbook, 2**13, 2**16 + 2**14),
    "nmf": (nmf_folder, 4 * 2**17, 24 * 2**17),
}  # fmt: skip


def bytes_of(path):
    """Return how long a file is, or what a folder holds, unpacked."""
    if path.is_dir():
        return sum(f.stat().st_size for f in path.rglob("*"))
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    if path.suffix == ".gz":
        return int.from_bytes(path.read_bytes()[-4:], "little")  # it is shorter than 4 GiB
    return path.stat().st_size


#: Forms that the tests of one reader measure, or that take long: for measurements on demand.
MORE = {
    "ppmf-2010": lambda folder, rows: persons_file(folder, rows, "2010-demonstration"),
    "ppmf-2020": lambda folder, rows: persons_file(folder, rows, "2020"),
    "form-csv": form_file,
    "form-labels": lambda folder, rows: form_file(folder, rows, "labels"),
    "ipums-1940": lambda folder, rows: ipums_file(folder, rows, "EXT1940USCB.dat"),
    "ipums-csv": lambda folder, rows: ipums_file(folder, rows, "usa.csv"),
    "hud-county": hud_county_file,
}
#: Readers whose result is the whole file.
WHOLE = {
    "read_hud": hud_county_file,
    "persons-csv": lambda folder, rows: form_file(folder, rows, known=True),
    "tables": tables_folder,
    "release": lambda folder, rows: tables_folder(folder, rows, released=True),
}
