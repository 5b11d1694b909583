"""Files that are small, or one line, and would become gigabytes: refused in little memory."""

import gzip
import json
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from peak_memory import run_and_measure
from pyarrow import parquet

pytestmark = pytest.mark.slow

MEGABYTES = 500
ZEROS = 2**30
# The answer is the time in milliseconds; anything but an error of our own ends the process.
READ = """
import time
import bayesrisk
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.tables import PublishedTables, Records, schema
file, how = sys.argv[1:]
start = time.perf_counter()
try:
    if how == "records":
        Records.read(file, schema=schema("sf1-person"))
    elif how == "tables":
        PublishedTables.read(file)
    elif how == "sweep":
        from bayesrisk.experiments import load_config
        load_config(file)
    elif how == "releases":
        from pathlib import Path
        from bayesrisk.experiments.release_table import add_columns
        add_columns(Path(file), Path(file + ".out.csv"), None, {})
    elif how == "known":
        from pathlib import Path
        from bayesrisk.experiments.reidentification_report import _read
        _read(Path(file), ("block", "sex", "age", "person"))
    elif how == "hud":
        bayesrisk.read_hud(file, level="tract")
    elif how == "ddi":
        list(bayesrisk.iter_ipums_1940(file, ddi=file))
    else:
        for _ in getattr(bayesrisk, how)(file):
            pass
except BayesRiskError as error:
    assert sys.argv[1].rsplit("/", 1)[-1] in str(error), error
    assert len(str(error)) < 2000, len(str(error))
    answer = int(1000 * (time.perf_counter() - start))
"""


def refused(file, how):
    """Refuse a file in a process of its own, in 20 s and 500 MB."""
    milliseconds, kilobytes = run_and_measure(READ, file, how, timeout=120)
    assert kilobytes < MEGABYTES * 1000, f"{kilobytes // 1000} MB"
    assert milliseconds < 20_000
    return True


def packed(stream, text, end=b""):
    """Write many copies of a text."""
    for _ in range(ZEROS // 2**20):
        stream.write(text * (2**20 // len(text)))
    stream.write(end)


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """One line of a gigabyte; the file takes no room on the disk."""
    file = tmp_path_factory.mktemp("line") / "line.csv"
    with file.open("wb") as stream:
        stream.write(b"block,sex,age,race,hisp\n")
        stream.truncate(ZEROS)
    return file


@pytest.mark.parametrize(
    "how",
    ["iter_record_form", "iter_ppmf", "iter_ipums_1940", "hud", "records", "releases", "known"],
)
@pytest.mark.parametrize("header", [True, False])
def test_one_line(how, header, line, tmp_path):
    if not header:
        line = tmp_path / "line.csv"
        with line.open("wb") as stream:
            stream.truncate(ZEROS)
    assert refused(line, how)


@pytest.mark.parametrize("how", ["sweep", "ddi"])
def test_one_document(how, line):
    assert refused(line, how)


@pytest.mark.parametrize("text", [b"x", b"1,2\n"])
def test_gzip(text, tmp_path):
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wb", 9) as stream:
        packed(stream, text)
    assert refused(file, "iter_record_form")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip(method, tmp_path):
    file = tmp_path / "bomb.zip"
    with (
        zipfile.ZipFile(file, "w", method) as archive,
        archive.open("bomb.csv", "w", force_zip64=True) as stream,
    ):
        packed(stream, b"x" if method != zipfile.ZIP_LZMA else b"\0")
    assert refused(file, "iter_ppmf")


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml"])
@pytest.mark.parametrize("text", [b"<a>", b"<a/>", b"x", b" b='c'"])
def test_excel(part, text, tmp_path):
    openpyxl.Workbook().save(tmp_path / "sound.xlsx")
    file = tmp_path / "bomb.xlsx"
    with (
        zipfile.ZipFile(tmp_path / "sound.xlsx") as sound,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in sound.namelist():
            if name != part:
                archive.writestr(name, sound.read(name))
        with archive.open(part, "w", force_zip64=True) as stream:
            stream.write(
                b"<worksheet><sheetData><row><c t='inlineStr'><is><t" + b">" * (text[0] != 32)
            )
            packed(stream, text)
    assert refused(file, "hud")


ENTITIES = b'<!DOCTYPE a [<!ENTITY a0 "x">%s]><codeBook>&a30;</codeBook>' % b"".join(
    b'<!ENTITY a%d "&a%d;&a%d;">' % (i, i - 1, i - 1) for i in range(1, 31)
)


def test_entities(tmp_path):
    (tmp_path / "book.xml").write_bytes(ENTITIES)
    assert refused(tmp_path / "book.xml", "ddi")


@pytest.mark.parametrize("text", ["[" * 10**6, "[[]," * 10**7, '{"a":' * 10**6])
def test_json(text, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "_manifest.json").write_text(text)
    assert refused(tmp_path / "tables", "tables")


@pytest.mark.parametrize("text", ["a=" + "[" * 10**5, "a." * 10**5 + "a=1", "a=[" + "1," * 10**6])
def test_toml(text, tmp_path):
    (tmp_path / "sweep.toml").write_text(text)
    assert refused(tmp_path / "sweep.toml", "sweep")


def test_parquet(tmp_path):
    rows = 2**26
    columns = {name: pa.array(np.zeros(rows, np.int8)) for name in ("sex", "age", "race", "hisp")}
    parquet.write_table(pa.table(columns), tmp_path / "many.parquet")
    assert refused(tmp_path / "many.parquet", "records")
    text = pa.DictionaryArray.from_arrays(np.zeros(2**20, np.int32), ["x" * 2**20])
    table = pa.table({"block": text, **{n: c[: 2**20] for n, c in columns.items()}})
    parquet.write_table(table, tmp_path / "long.parquet")
    assert refused(tmp_path / "long.parquet", "records")
    assert refused(tmp_path / "long.parquet", "iter_record_form")


def test_manifest_of_many_cells(tmp_path):
    from fuzz.file_kinds import exchange

    made = exchange(tmp_path)
    file = next(f for f in made.files if f.name == "_manifest.json")
    document = json.loads(file.read_text())
    document["workload"]["schema"]["attributes"][1]["size"] = 2**31 - 1
    file.write_text(json.dumps(document))
    assert refused(file.parent, "tables")
    document["workload"]["schema"]["attributes"][1]["size"] = 111
    document["workload"]["tables"][0]["parts"][0]["cells"] = "P{0-2000000000}"
    file.write_text(json.dumps(document))
    assert refused(file.parent, "tables")
