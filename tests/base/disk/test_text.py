"""What is opened: regular files of a bounded length, none of them elsewhere, each key once."""

import ast
import gzip
import json
import os
import shutil
import signal
import time
import zipfile
from pathlib import Path

import pytest
from fuzz.corpus import KINDS, SEALED

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk import delimited
from bayesrisk._base.disk.text import json_document, nearby, read_toml
from bayesrisk.exceptions import BayesRiskError, ConfigError, DataError

SECONDS = 60
#: Folders that one receives from others.
RECEIVED = ("exchange", "microdata", "release-json")


def pipe(file):
    os.mkfifo(file)


def zeros(file):
    file.symlink_to("/dev/zero")


def endless(file):
    """A file of the system that is regular, states no length and has some 2**47 bytes."""
    file.symlink_to("/proc/self/pagemap")


def holes(file):
    with file.open("wb") as stream:
        stream.truncate(2**39)


def long(file):
    """Zeros of more bytes than tables may have: a digest of them would take its time."""
    with file.open("wb") as stream:
        stream.truncate(2**34)


class Stopped(BaseException):
    """The time is over."""


@pytest.fixture
def limited():
    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(read, *names):
    start = time.process_time()
    with pytest.raises(BayesRiskError) as error:
        read()
    assert any(name in str(error.value) for name in names), error.value
    assert time.process_time() - start < SECONDS / 2


@pytest.mark.filterwarnings("ignore::bayesrisk.exceptions.BayesRiskWarning")
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_no_file_is_refused_by_every_reader(kind, tmp_path, limited):
    """Nobody waits for a pipe, and nothing that has no end is read."""
    made = KINDS[kind](tmp_path)
    if kind != "release-json-by-hand":  # which no digest binds, and so is refused as it is
        made.read()
    for file in made.files:
        kept = file.read_bytes()
        # A reader may take only what is a file out of a folder, and miss the one that is not.
        names = (file.name, file.parent.name)
        received = kind.startswith(RECEIVED)
        for instead in (pipe, zeros, endless, holes, *((long,) if received else ())):
            file.unlink()
            instead(file)
            refused(made.read, *names)
            file.unlink()
            file.write_bytes(kept)


@pytest.mark.parametrize("kind", RECEIVED)
def test_a_link_out_of_a_folder_is_refused(kind, tmp_path):
    """Its bytes are right, but they are not in the folder that is said to be whole."""
    made = KINDS[kind](tmp_path / "in")
    for number, file in enumerate(made.files):
        elsewhere = tmp_path / f"{number}"
        shutil.move(file, elsewhere)
        file.symlink_to(elsewhere)
        refused(made.read, file.name)
        shutil.move(elsewhere, file)
    made.read()


@pytest.mark.parametrize("kind", sorted(SEALED))
def test_a_key_that_stands_there_twice_is_refused(kind, tmp_path):
    """The last one counts for a parser, the first one for whoever reads it: the seal fits both."""
    made = KINDS[kind](tmp_path)
    for file in (file for file in made.files if file.suffix == ".json"):
        text = file.read_text()
        key = next(iter(json.loads(text)))
        file.write_text(f'{{"{key}": null, {text.strip()[1:]}')
        assert json.loads(file.read_text()) == json.loads(text)
        refused(made.read, file.name)
        file.write_text(text)


def test_a_key_may_stand_in_two_objects():
    assert json_document(b'[{"a": 1}, {"a": {"a": 2}}]', "x") == [{"a": 1}, {"a": {"a": 2}}]
    with pytest.raises(DataError, match="'b'"):
        json_document(b'[{"a": {"b": 1, "a": 2, "b": 1}}]', "x")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(DataError, match="must be a file, is a folder"):
        disk.open_regular(tmp_path)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(DataError):
            disk.open_regular(tmp_path)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_members_of_a_gzip_file(tmp_path):
    """All members are read; many must not be tiny, of which a megabyte has 50,000."""
    file, row = tmp_path / "rows.csv.gz", b"".join(b"%d,%d\n" % (n, n * n) for n in range(2000))
    few = delimited.MAX_MEMBERS
    for data in (gzip.compress(b"a,b\n") * few, gzip.compress(row) * (few + 9) + b"\0" * 99):
        file.write_bytes(data)
        with delimited.open_text(file) as stream:
            assert stream.read() == gzip.decompress(data)
    for body in (b"", b"\n", b"1,2\n"):
        file.write_bytes(gzip.compress(body) * (few + 1))
        with pytest.raises(DataError, match=r"rows\.csv\.gz"), delimited.open_text(file) as stream:
            stream.read()


@pytest.mark.parametrize("cut", [1, 5, 12, 20])
def test_a_gzip_file_that_ends_too_early(tmp_path, cut):
    file = tmp_path / "rows.csv.gz"
    file.write_bytes(gzip.compress(b"a,b\n" * 99)[:-cut])
    with pytest.raises(DataError, match=r"rows\.csv\.gz"), delimited.open_text(file) as stream:
        stream.read()


NUMBERS = b"".join(b'<c t="inlineStr"><is><t>%d</t></is></c>' % k for k in (1073000100, 320, -4))
#: Rows of a sheet below the header: too many, left out, empty; and one that is too long.
SHEETS = {
    "many": b"<row>" + NUMBERS + b"</row>",
    "left-out": b'<row r="300000000"></row>',
    "empty": b"<row/>",
    "long": b"<row>" + b"<c><v>1</v></c>" * 300_000 + b"</row>",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SHEETS))
def test_a_workbook_of_more_rows_than_one_has(kind, tmp_path, limited):
    made = KINDS["hud-xlsx"](tmp_path)
    (file,) = made.files
    with zipfile.ZipFile(file) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    name = "xl/worksheets/sheet1.xml"
    copies = 2**20 + 1 if kind in ("many", "empty") else 1
    parts[name] = parts[name].replace(b"</sheetData>", SHEETS[kind] * copies + b"</sheetData>")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
        for name, data in parts.items():
            book.writestr(name, data)
    refused(made.read, file.name)


def test_a_part_of_a_release_by_place_must_lie_in_it(tmp_path):
    """So must its folder."""
    from cli.protect.test_release_verify import by_place, verify

    by_place(tmp_path / "out")
    shutil.move(tmp_path / "out" / "part-10", tmp_path / "part-10")
    (tmp_path / "out" / "part-10").symlink_to(tmp_path / "part-10")
    failed = verify(tmp_path / "out").exception
    assert isinstance(failed, DataError)
    assert "part-10" in str(failed)


OPENING = {"read_text", "read_bytes", "read_csv", "read_parquet", "read_metadata", "ParquetFile",
           "ZipFile", "load_workbook", "FileIO", "fdopen", "memory_map"}  # fmt: skip
#: What opens for all others; and what reads files of the package itself, or those that it has made.
OPENERS = {
    *(
        "_base/disk/delimited.py",
        "_base/disk/text.py",
        "_base/disk/parquet.py",
        "_base/disk/writing.py",
    ),
    "census/readers/text.py",
}
OF_OURS = {
    *(
        "_base/compiling.py",
        "_base/lazy.py",
        "datasets.py",
        "accounting/budget.py",
        "cli/printing.py",
        "census/readers/nmf/reader.py",
        "tables/schema.py",
    ),
    *("experiments/audit/report.py", "experiments/audit/study.py", "experiments/pages.py"),
    *(
        "experiments/folder_attack.py",
        "experiments/reconstruction.py",
        "experiments/runs/folder.py",
    ),
    *("reconstruction/check_safety.py", "risk/planning/safety.py", "risk/planning/tester.py"),
    *("census/readers/summary_files/segments.py", "reconstruction/check_proof.py"),
    "reconstruction/proofs.py",
    "tables/sheets/grids.py",  # bytes in memory, which were read within their bounds
}


def opens(call):
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    ours = isinstance(function.value, ast.Name) and function.value.id == "disk"
    return function.attr in OPENING and not ours


def test_files_are_opened_in_one_place():
    package = Path(br.__file__).parent
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and opens(node)
    }
    assert found <= OPENERS | OF_OURS
    assert found >= OPENERS - {"_base/disk/writing.py"}


def test_what_is_near_a_path_is_named(tmp_path):
    (tmp_path / "people.csv").write_text("a\n1\n")
    release = tmp_path / "made" / "release"
    (release / "tables").mkdir(parents=True)
    (release / "_release.json").write_text("{}")
    assert nearby(release, "_manifest.json") == ""
    assert nearby(tmp_path / "peple.csv") == f". Did you mean 'people.csv' in {tmp_path}?"
    assert nearby(tmp_path / "houses.csv") == f"; {tmp_path} has people.csv"
    (tmp_path / ".old.csv").write_text("a\n1\n")
    assert nearby(tmp_path / "houses.csv") == f"; {tmp_path} has people.csv"
    assert nearby(tmp_path / "houses.parquet") == f"; {tmp_path} has no .parquet file"
    assert nearby(tmp_path / "plan") == f"; {tmp_path} has made"
    assert nearby(tmp_path / "no" / "people.csv") == f"; there is no folder {tmp_path / 'no'}"
    assert "pattern" in nearby(tmp_path / "*.csv")
    for place in (release / "tables", release.parent, release / "_release.json"):
        assert nearby(place, "_release.json") == f": give {release}"
    assert nearby(release.parent, "_manifest.json") == ""


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("name = ward", ': write name = "ward", in quotes'),
        ('file = "C:\\Users\\me"', ": write file = 'C:\\Users\\me', in single quotes"),
        ("rate = 10%", ": write 0.1"),
        ("rate = 0,1", ": write 0.1, with a point"),
        ("rate = [0.1", ""),
    ],
)
def test_a_line_that_is_no_toml_is_written_anew(tmp_path, line, advice):
    file = tmp_path / "a.toml"
    file.write_text(f'title = "x"\n{line}\n')
    with pytest.raises(ConfigError) as caught:
        read_toml(file)
    assert str(file) in str(caught.value)
    assert caught.value.advice == advice or (advice == "" and "close" in caught.value.advice)
