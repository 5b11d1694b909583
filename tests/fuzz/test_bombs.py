"""Files that are small, or one line, and would become gigabytes: refused in little memory."""

import gzip
import zipfile

import pytest
from peak_memory import run_and_measure

pytestmark = pytest.mark.slow

MEGABYTES = 500
ZEROS = 2**30
# The answer is the longest time in milliseconds; anything but an error of our own ends the process.
READ = """
import time
import bayesrisk
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments import load_config
from bayesrisk.tables import PublishedTables, Records, Schema

HOW = {
    "records": lambda file: Records.read(file, schema=Schema.named("sf1-person")),
    "tables": PublishedTables.read,
    "sweep": load_config,
    "form": lambda file: list(bayesrisk.census.iter_record_form(file, dialect="schema")),
    "ppmf": lambda file: list(bayesrisk.census.iter_ppmf(file)),
    "hud": lambda file: bayesrisk.census.read_hud(file, level="tract"),
    "ddi": lambda file: list(bayesrisk.census.iter_ipums_1940(file, ddi=file)),
}
answer = 0
for case in sys.argv[1:]:
    how, _, file = case.partition(":")
    start = time.perf_counter()
    try:
        HOW[how](file)
    except BayesRiskError as error:
        assert file.rsplit("/", 1)[-1] in str(error), error
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


def test_one_line(tmp_path):
    """One line of a gigabyte, as the header and below one; the files take no room on the disk."""
    files = []
    for name, start in (("head.csv", b""), ("below.csv", b"block,sex,age,race,hisp\n")):
        with (tmp_path / name).open("wb") as stream:
            stream.write(start)
            stream.truncate(ZEROS)
        files.append(tmp_path / name)
    readers = ["form", "ppmf", "hud", "records", "sweep", "ddi"]
    assert refused(*((file, how) for file in files for how in readers))


def test_compressed_files_and_members(tmp_path):
    for text in (b"x", b"1,2\n"):
        with gzip.open(tmp_path / f"{len(text)}.csv.gz", "wb", 9) as stream:
            for _ in range(ZEROS // 2**22):
                stream.write(text * (2**20 // len(text)))
    cases = [(file, "form") for file in sorted(tmp_path.iterdir())]
    for ending, member in (("zip", "people.csv"), ("xlsx", "xl/worksheets/sheet1.xml")):
        file = tmp_path / f"bomb.{ending}"
        with (
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open(member, "w", force_zip64=True) as stream,
        ):
            for _ in range(ZEROS // 2**20):
                stream.write(b"x" * 2**20)
        cases.append((file, "ppmf" if ending == "zip" else "hud"))
    assert refused(*cases)
