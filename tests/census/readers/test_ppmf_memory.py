"""Files larger than what a reader holds: memory stays flat, and sources are bounded."""

import gzip
import zipfile

import numpy as np
import pytest
from large_files import MAKERS, PREPARE, READ_MANY, bytes_of
from oracles import readers as oracle
from peak_memory import run_and_measure

import bayesrisk
from bayesrisk import DataError
from bayesrisk._base.disk import text as _parse
from bayesrisk.census import iter_ppmf, iter_record_form, write_ppmf
from bayesrisk.census.readers import text as _source
from bayesrisk.tables import Records, Schema, iter_records

PERSON = Schema.named("sf1-person")


@pytest.mark.parametrize("read", ["ppmf", "ppmf_units", "record_form", "ipums_1940", "hud"])
def test_what_is_too_long_to_be_held_is_refused_at_once(read, tmp_path):
    """A file of 5 GiB that takes no room on the disk, and an archive that holds one."""
    options = {"hud": {"level": "tract"}, "record_form": {"dialect": "schema"}}.get(read, {})
    with (tmp_path / "long.csv").open("wb") as stream:
        stream.truncate(5 * 2**30)
    with pytest.raises(DataError, match=r"long.csv: lines must be at most 1048576 bytes"):
        getattr(bayesrisk.census, f"read_{read}")(tmp_path / "long.csv", **options)
    archive = tmp_path / "long.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("inner.csv", "block\n")
        made.infolist()[0].file_size = 5 * 2**30  # the directory is written at the end
    with pytest.raises(DataError, match=r"long.zip/inner.csv: must be at most 200 times"):
        getattr(bayesrisk.census, f"read_{read}")(archive, **options)


def test_what_has_become_too_long_is_refused(tmp_path, monkeypatch):
    people = oracle.pl94_records(np.random.default_rng(1), 5000)
    write_ppmf(people, tmp_path / "p.csv", vintage="2010-demonstration")
    whole = bayesrisk.census.read_ppmf(tmp_path / "p.csv")
    with gzip.open(tmp_path / "p.csv.gz", "wb") as packed:
        packed.write((tmp_path / "p.csv").read_bytes())
    assert (tmp_path / "p.csv.gz").stat().st_size < whole.table.nbytes
    monkeypatch.setattr(_parse, "MAX_HELD", whole.table.nbytes)
    assert bayesrisk.census.read_ppmf(tmp_path / "p.csv.gz").table == whole.table
    monkeypatch.setattr(_parse, "MAX_HELD", whole.table.nbytes - 1)
    with pytest.raises(DataError, match=r"p.csv.gz: must take at most .* to be held whole"):
        bayesrisk.census.read_ppmf(tmp_path / "p.csv.gz")
    assert sum(map(len, iter_ppmf(tmp_path / "p.csv.gz", chunk=100))) == 5000


def test_records_too_many_to_be_held(tmp_path, monkeypatch):
    people = oracle.person_records(np.random.default_rng(1), 5000)
    person = PERSON
    files = [tmp_path / "p.parquet", tmp_path / "p.csv"]
    people.write(files[0])
    people.to_frame().to_csv(files[1], index=False)
    for file in files:
        monkeypatch.setattr(_parse, "MAX_HELD", 2**20)
        assert Records.read(file, schema=person).table.equals(people.table)
        monkeypatch.setattr(_parse, "MAX_HELD", 50_000)
        with pytest.raises(DataError, match=rf"{file.name}: must take at most 50000 bytes"):
            Records.read(file, schema=person)
        pieces = iter_records(file, schema=person, chunk=100)
        assert sum(map(len, pieces)) == 5000


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_memory_of_every_iterator(kind, tmp_path):
    make, few, many = MAKERS[kind]
    found = {}
    for rows in (few, many):
        folder = tmp_path / str(rows)
        folder.mkdir()
        made = make(folder, rows)
        read, kilobytes = run_and_measure(PREPARE + READ_MANY, kind, made)
        assert read == rows or (kind == "ipums-1940" and read > rows)  # of whole households
        found[rows] = bytes_of(made), 1000 * kilobytes
    length, memory = (found[many][i] - found[few][i] for i in (0, 1))
    assert length > 130e6
    # A reader that kept the file would take `length`; what differs is the allocator's slack.
    assert memory < length / 4, (memory, length)


def test_members_of_an_archive_are_bounded(tmp_path, monkeypatch):
    people = oracle.pl94_records(np.random.default_rng(1), 50)
    write_ppmf(people, tmp_path / "p.csv", vintage="2010-demonstration")
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.write(tmp_path / "p.csv", "../../p.csv")
    before = sorted(tmp_path.iterdir())
    assert sum(len(piece) for piece in iter_ppmf(tmp_path / "p.zip")) == 50
    assert sorted(tmp_path.iterdir()) == before  # nothing is unpacked, whatever a member is called
    monkeypatch.setattr(_source, "MAX_MEMBER", 100)
    with pytest.raises(DataError, match=r"p.zip/.*must be at most 100 bytes long, got"):
        list(iter_ppmf(tmp_path / "p.zip"))


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        list(iter_ppmf(tmp_path / "p.csv"))
    with pytest.raises(DataError, match=r"exactly one .csv or .txt, got 0 among: nothing"):
        list(iter_ppmf(tmp_path))
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"a.zip: cannot be read"):
        list(iter_record_form(tmp_path / "a.zip", dialect="schema"))
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00block,sex\n")
    with pytest.raises(DataError, match=r"b.csv: cannot be read as text, is text in UTF-16"):
        list(iter_record_form(tmp_path / "b.csv", dialect="schema"))
