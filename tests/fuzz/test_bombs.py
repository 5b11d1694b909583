"""Files that are small, or one line, and would become gigabytes: refused in little memory."""

import gzip
import json
import shutil
import struct
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from fuzz.file_kinds import exchange
from peak_memory import run_and_measure
from pyarrow import parquet

from bayesrisk.readers import write_nmf

pytestmark = pytest.mark.slow

MEGABYTES = 500
ROWS = ("level", "geoid", "table", "cell", "count")
ZEROS = 2**30
# The answer is the longest time in milliseconds; anything but an error of our own ends the process.
READ = """
import time
from pathlib import Path
import bayesrisk
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments import load_config
from bayesrisk.experiments.linked_counties import read_persons
from bayesrisk.experiments.hierarchy import add_columns
from bayesrisk.tables import PublishedTables, Records, Schema

PERSON = Schema.named("sf1-person")
def of(name):
    readers, tables = bayesrisk.readers, bayesrisk.tables
    return getattr(readers if hasattr(readers, name) else tables, name)
def measurements(folder, kind, _):
    nmf = bayesrisk.readers.NoisyMeasurements.open(folder)
    if kind == "DPQuery":
        list(nmf.iter_values("Block", nmf.queries("Block")[0]))
    else:
        list(nmf.iter_constraints("Block", nmf.constraints("Block")[0]))
OTHERS = {
    "records": lambda file: Records.read(file, schema=PERSON),
    "tables": lambda file: PublishedTables.read(file),
    "sweep": lambda file: load_config(file),
    "releases": lambda file: add_columns(Path(file), Path(file + ".out.csv"), None, {}),
    "known": lambda file: read_persons(Path(file), ("block", "sex", "age", "person"), "schema"),
    "form": lambda file: list(bayesrisk.readers.iter_record_form(file, dialect="schema")),
    "hud": lambda file: bayesrisk.readers.read_hud(file, level="tract"),
    "nmf": lambda name: measurements(*name.split("#")),
    "ddi": lambda file: list(bayesrisk.readers.iter_ipums_1940(file, ddi=file)),
}
answer = 0
for case in sys.argv[1:]:
    how, _, file = case.partition(":")
    start = time.perf_counter()
    try:
        OTHERS[how](file) if how in OTHERS else list(of(how)(file))
    except BayesRiskError as error:
        assert file.replace("#", "/").rsplit("/", 1)[-1] in str(error), error
        assert len(str(error)) < 2000, len(str(error))
    else:
        raise AssertionError(case)
    answer = max(answer, int(1000 * (time.perf_counter() - start)))
"""


def refused(*cases):
    """Refuse files, each with a reader, in a process of their own: 20 s for each, and 500 MB."""
    pairs = [f"{how}:{file}" for file, how in cases]
    milliseconds, kilobytes = run_and_measure(READ, *pairs, timeout=300)
    assert kilobytes < MEGABYTES * 1000, f"{kilobytes // 1000} MB"
    assert milliseconds < 20_000
    return True


def packed(stream, text):
    """Write many copies of a text."""
    for _ in range(ZEROS // 2**22):
        stream.write(text * (2**20 // len(text)))


def test_one_line(tmp_path):
    """One line of a gigabyte, as the header and below one; the files take no room on the disk."""
    files = []
    for name, start in (("head.csv", b""), ("below.csv", b"block,sex,age,race,hisp\n")):
        with (tmp_path / name).open("wb") as stream:
            stream.write(start)
            stream.truncate(ZEROS)
        files.append(tmp_path / name)
    readers = ["form", "iter_ppmf", "iter_ipums_1940", "hud", "records", "releases"]
    readers += ["known", "sweep", "ddi"]
    assert refused(*((file, how) for file in files for how in readers))


def test_gzip(tmp_path):
    for name, text in (("line.csv.gz", b"x"), ("lines.csv.gz", b"1,2\n")):
        with gzip.open(tmp_path / name, "wb", 9) as stream:
            packed(stream, text)
    assert refused(*((file, "form") for file in sorted(tmp_path.iterdir())))


def test_zip(tmp_path):
    methods = {"deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "xz": zipfile.ZIP_LZMA}
    for name, method in methods.items():
        with (
            zipfile.ZipFile(tmp_path / f"{name}.zip", "w", method) as archive,
            archive.open("bomb.csv", "w", force_zip64=True) as stream,
        ):
            packed(stream, b"x")
    assert refused(*((file, "iter_ppmf") for file in sorted(tmp_path.iterdir())))


def archive_of_many(file, count, width):
    """Write a sound archive, by zip64, of members of nothing whose names are of a width."""
    name = b"%0*d.csv" % (width - 4, 0)
    entry = struct.pack("<4s4BHHHHLLLHHHHHLL", b"PK\1\2", 20, 3, 20, *[0] * 8, width, *[0] * 6)
    with file.open("wb") as stream:
        stream.write(struct.pack("<4s22xH2x", b"PK\3\4", width) + name)
        start = stream.tell()
        for _ in range(20):
            stream.write((entry + name) * (count // 20))
        end = stream.tell()
        stream.write(
            struct.pack(
                "<4sQHHLLQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, end - start, start
            )
        )
        stream.write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        stream.write(
            struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[2**16 - 1] * 2, *[2**32 - 1] * 2, 0)
        )
    return file


def test_directory_of_an_archive(tmp_path):
    """Hundreds of megabytes of directory, of many members or of long names."""
    few = archive_of_many(tmp_path / "few.zip", 20, 8)
    with zipfile.ZipFile(few) as archive:
        assert len(archive.namelist()) == 20  # such an archive is a sound one
    cases = []
    for name, count, width in (("many", 4 * 10**6, 12), ("long", 4000, 2**16 - 1)):
        file = archive_of_many(tmp_path / f"{name}.zip", count, width)
        assert file.stat().st_size > 200e6
        shutil.copy(file, file.with_suffix(".xlsx"))
        cases += [(file, "iter_ppmf"), (file.with_suffix(".xlsx"), "hud")]
    assert refused(*cases)


def test_archive_in_an_archive(tmp_path):
    """What is in an archive is not unpacked again: one in it is no text."""
    inner = tmp_path / "inner.zip"
    with (
        zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("bomb.csv", "w", force_zip64=True) as stream,
    ):
        packed(stream, b"x")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(inner, "people.csv")
    assert refused((tmp_path / "outer.zip", "iter_ppmf"))


def test_excel(tmp_path):
    openpyxl.Workbook().save(tmp_path / "sound.xlsx")
    with zipfile.ZipFile(tmp_path / "sound.xlsx") as sound:
        members = {name: sound.read(name) for name in sound.namelist()}
    opening = b"<worksheet><sheetData><row><c t='inlineStr'><is><t"
    texts = {"deep": b"<a>", "wide": b"<a/>", "text": b"x", "tag": b" b='c'"}
    cases = []
    for part in ("xl/worksheets/sheet1.xml", "xl/workbook.xml"):
        for name, text in texts.items():
            file = tmp_path / f"{name}-{part[3:7]}.xlsx"
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for other in members.keys() - {part}:
                    archive.writestr(other, members[other])
                with archive.open(part, "w", force_zip64=True) as stream:
                    stream.write(opening + b">" * (name != "tag"))
                    packed(stream, text)
            cases.append((file, "hud"))
    assert refused(*cases)


ENTITIES = b'<!DOCTYPE a [<!ENTITY a0 "x">%s]><codeBook>&a30;</codeBook>' % b"".join(
    b'<!ENTITY a%d "&a%d;&a%d;">' % (i, i - 1, i - 1) for i in range(1, 31)
)


def test_documents(tmp_path):
    (tmp_path / "book.xml").write_bytes(ENTITIES)
    cases = [(tmp_path / "book.xml", "ddi")]
    for i, text in enumerate(["[" * 10**6, "[[]," * 10**7, '{"a":' * 10**6]):
        folder = tmp_path / f"tables{i}"
        folder.mkdir()
        (folder / "_manifest.json").write_text(text)
        cases.append((folder, "tables"))
    for i, text in enumerate(["a=" + "[" * 10**5, "a." * 10**5 + "a=1", "a=[" + "1," * 10**6]):
        (tmp_path / f"sweep{i}.toml").write_text(text)
        cases.append((tmp_path / f"sweep{i}.toml", "sweep"))
    assert refused(*cases)


def test_parquet(tmp_path):
    rows = 2**26
    columns = {name: pa.array(np.zeros(rows, np.int8)) for name in ("sex", "age", "race", "hisp")}
    parquet.write_table(pa.table(columns), tmp_path / "many.parquet")
    text = pa.DictionaryArray.from_arrays(np.zeros(2**20, np.int32), ["x" * 2**20])
    table = pa.table({"block": text, **{n: c[: 2**20] for n, c in columns.items()}})
    parquet.write_table(table, tmp_path / "long.parquet")
    names = ("many.parquet", "long.parquet")
    assert refused(*((tmp_path / n, how) for n in names for how in ("records", "form")))


def test_parquet_of_one_value(tmp_path):
    """One value many times over is a few bytes: texts, numbers, and lists of them in one row."""
    columns = {
        name: pa.array(np.full(2**16, name == "race", np.int8))
        for name in ("sex", "age", "race", "hisp")
    }
    rows = np.zeros(2**16, np.int32)
    tables = {
        "texts": {"block": pa.DictionaryArray.from_arrays(rows, ["x" * 60_000]), **columns},
        "wide": {f"a{i}": pa.array(np.zeros(2**21)) for i in range(15)},
        "lists": {"a": pa.ListArray.from_arrays([0, 2**26], np.zeros(2**26, np.int64))},
    }
    numbers = pa.DictionaryArray.from_arrays(np.zeros(2**25, np.int32), ["1"])
    tables["known"] = {"person": numbers}
    cases = []
    for name, table in tables.items():
        file = tmp_path / f"{name}.parquet"
        parquet.write_table(pa.table(table), file)
        assert file.stat().st_size < 10**6
        how = ["known"] if name == "known" else ["records", "form", "releases"]
        cases += [(file, one) for one in how]
    assert refused(*cases)


def test_measurements_in_one_row(tmp_path):
    """A row of noisy answers that holds one number many times."""
    folder = write_nmf(tmp_path / "US_Unit_PL_PROD", universe="unit", rng=1).folder
    cases = []
    for kind in ("DPQuery", "Constraint"):
        file = min((folder / "Block.parquet" / kind).rglob("*.parquet"))
        table = parquet.read_table(file, partitioning=None).slice(0, 1)
        column = table.schema.field("value").type
        numbers = np.zeros(2**26, column.value_type.to_pandas_dtype())
        values = pa.ListArray.from_arrays([0, len(numbers)], numbers).cast(column)
        place = table.column_names.index("value")
        parquet.write_table(table.set_column(place, "value", values), file)
        assert file.stat().st_size < 10**5
        cases.append((f"{folder}#{kind}#{file.name}", "nmf"))
    assert refused(*cases)


def test_manifest_of_many_cells(tmp_path):
    (file,) = (f for f in exchange(tmp_path).files if f.name == "_manifest.json")
    document = json.loads(file.read_text())
    attribute = document["workload"]["schema"]["attributes"][1]
    part = document["workload"]["tables"][0]["parts"][0]
    cases = []
    for i, (size, cells) in enumerate([(2**31 - 1, "P{0010001}"), (111, "P{0-2000000000}")]):
        attribute["size"], part["cells"] = size, cells
        folder = tmp_path / f"other{i}"
        folder.mkdir()
        (folder / file.name).write_text(json.dumps(document))
        cases.append((folder, "tables"))
    assert refused(*cases)


def test_gzip_of_many_members(tmp_path):
    """Of nothing, and of a byte each: what is read of them is one text."""
    for name, text in (("nothing", b""), ("bytes", b"x")):
        file = tmp_path / f"{name}.csv.gz"
        file.write_bytes(gzip.compress(text) * 100_000)
    assert refused(*((file, "iter_record_form") for file in sorted(tmp_path.iterdir())))


def test_a_million_columns(tmp_path):
    file = tmp_path / "wide.csv"
    names = b"block,sex,age,race,hisp,person"
    file.write_bytes(names + b",a" * 10**6 + b"\n" + b"1" + b",1" * (10**6 + 5) + b"\n")
    narrow = tmp_path / "below.csv"  # only in the rows
    narrow.write_bytes(names + b"\n" + b"1" + b",1" * 10**6 + b"\n")
    readers = ["iter_record_form", "iter_ppmf", "iter_ipums_1940", "hud", "records", "releases"]
    assert refused(*((one, how) for one in (file, narrow) for how in [*readers, "known"]))


def test_documents_of_half_a_gigabyte(tmp_path):
    """They are refused by their size, before anything of them is read."""
    cases = []
    for name, how in (("tables", "tables"), ("sweep.toml", "sweep")):
        file = tmp_path / name
        if how == "tables":
            file.mkdir()
        document = file / "_manifest.json" if how == "tables" else file
        with document.open("wb") as stream:
            stream.truncate(500 * 10**6)
        cases.append((file, how))
    milliseconds, kilobytes = run_and_measure(READ, *(f"{how}:{file}" for file, how in cases))
    nothing = run_and_measure(READ)[1]
    assert milliseconds < 20_000
    assert kilobytes - nothing < 50_000


def test_footer_and_dictionary_of_a_parquet_file(tmp_path):
    """Metadata of 50 MB; many columns in many pieces; and one page of long texts, well packed."""
    people = {name: pa.array([1], pa.int8()) for name in ("sex", "age", "race", "hisp")}
    table = pa.table({"block": ["1" * 15], **people})
    said = table.replace_schema_metadata({"a": "x" * (20 * 10**6)})
    parquet.write_table(said, tmp_path / "said.parquet")
    wide = pa.table({f"a{i}": pa.array(np.zeros(300, np.int8)) for i in range(300)})
    parquet.write_table(wide, tmp_path / "pieces.parquet", row_group_size=1)
    texts = pa.array([f"{i:04}" + "x" * 2**20 for i in range(300)])
    page = {"block": texts, **{name: pa.array(np.ones(300, np.int8)) for name in people}}
    parquet.write_table(
        pa.table(page), tmp_path / "page.parquet", dictionary_pagesize_limit=2**30,
        compression="zstd",
    )  # fmt: skip
    names = ("said.parquet", "pieces.parquet", "page.parquet")
    readers = ("records", "iter_record_form", "releases", "known")
    assert refused(*((tmp_path / n, how) for n in names for how in readers))


def test_tables_in_many_parts(tmp_path):
    """Each part is small enough to be held, and all of them together are not."""
    made = exchange(tmp_path)
    folder = made.files[0].parent
    manifest = json.loads((folder / "_manifest.json").read_text())
    manifest.pop("seal", None)
    first = manifest["parts"][0]
    first.pop("sha256", None)
    table = parquet.read_table(folder / first["file"]).slice(0, 1)
    rows = 10**6
    many = pa.table({name: table.column(name).take(np.zeros(rows, int)) for name in ROWS})
    manifest["parts"] = []
    for number in range(40):
        name = f"part-{number:05d}.parquet"
        if number:
            (folder / name).write_bytes((folder / "part-00000.parquet").read_bytes())
        else:
            parquet.write_table(many, folder / name, compression="zstd")
        manifest["parts"].append({"file": name, "rows": rows})
    (folder / "_manifest.json").write_text(json.dumps(manifest))
    assert sum(file.stat().st_size for file in folder.iterdir()) < 10**6
    assert refused((folder, "tables"))
