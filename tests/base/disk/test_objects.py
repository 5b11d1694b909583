"""Files by URL: whole or absent, the same bytes as on a disk, and errors that name the URL."""

import errno
import os
import uuid
from contextlib import contextmanager

import pytest
from upath import UPath

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk import objects
from bayesrisk._base.disk.text import read_json
from bayesrisk.exceptions import ArgumentError, DataError, MissingDependencyError, OutputError


@pytest.fixture
def url():
    return f"memory://{uuid.uuid4().hex}/run"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("memory://a/b", "memory://a/b"),
        ("memory:/a/b", "memory://a/b"),  # as it is after pathlib
        ("file:///folder/b", "/folder/b"),
        ("C:/folder", "C:/folder"),
        ("folder/a:/b", "folder/a:/b"),
        ("a:b", "a:b"),
    ],
)
def test_urls_are_told_from_paths(text, found):
    assert str(check.path(text, "folder")) == found
    assert disk.is_object(check.path(text, "folder")) == found.startswith("memory://")


def test_a_folder_whose_name_looks_like_a_url_stays_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory:").mkdir()
    (tmp_path / "memory:" / "a").write_text("here")
    assert check.path("memory:/a", "folder").read_text() == "here"


def test_unknown_protocols_and_missing_extras_are_named():
    with pytest.raises(ArgumentError, match="nothing://a"):
        check.path("nothing://a", "folder")
    with pytest.raises(MissingDependencyError, match=r"bayesrisk-disclosure\[cloud\]"):
        check.path("gs://a", "folder")


def test_what_is_written_is_read(url):
    file = check.path(url, "folder") / "one.json"
    disk.write_bytes(file, disk.sealed({"a": 1}))
    assert disk.read_document(file) == {"a": 1}
    assert disk.digest(file) == disk.digest(file)
    with disk.local_copy(file) as copy:
        assert copy.read_bytes() == UPath(str(file)).read_bytes()
    with pytest.raises(DataError, match="at most 3 bytes"):
        disk.read_bytes(file, 3)
    with pytest.raises(DataError, match=r"memory://.*none\.json"):
        read_json(file.with_name("none.json"))


def test_a_file_that_fails_on_the_way_leaves_no_object(url):
    file = check.path(url, "folder") / "big"

    def fail():
        with disk.whole_file(file) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not file.exists()
    with disk.whole_file(file) as stream:
        stream.write(b"whole")
    assert file.read_bytes() == b"whole"


def test_a_folder_that_fails_on_the_way_leaves_no_object(url):
    folder = check.path(url, "folder")

    def fail():
        with disk.whole_folder(folder, disk.new_folder) as draft:
            (draft / "a").write_text("a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not folder.exists()
    with disk.whole_folder(folder, disk.new_folder) as draft:
        (draft / "_list.json").write_text("{}")
        (draft / "inner").mkdir()
        (draft / "inner" / "a").write_text("a")
    assert (folder / "inner" / "a").read_text() == "a"
    with (
        pytest.raises(OutputError, match="must be new"),
        disk.whole_folder(folder, disk.new_folder),
    ):
        pass


def test_the_file_that_lists_the_others_is_written_last(url, monkeypatch):
    order = []
    write = objects.write_object
    monkeypatch.setattr(
        "bayesrisk._base.disk.writing.write_object",
        lambda path, data: (order.append(path.name), write(path, data)),
    )
    with disk.whole_folder(check.path(url, "folder"), disk.new_folder) as draft:
        for name in ("_manifest.json", "a.parquet", "z.parquet"):
            (draft / name).write_text(name)
    assert order == ["a.parquet", "z.parquet", "_manifest.json"]


def test_errors_of_a_store_name_the_url(url, monkeypatch):
    file = check.path(url, "folder") / "a"

    class StrangeError(Exception):
        pass

    def fail(*arguments, **options):
        raise StrangeError("no route")

    monkeypatch.setattr(type(file.fs), "pipe_file", fail)
    with pytest.raises(OutputError, match=r"memory://.*StrangeError: no route"):
        disk.write_bytes(file, b"1")

    def full(*arguments, **options):
        raise OSError(errno.EDQUOT, "no room")

    monkeypatch.setattr(type(file.fs), "pipe_file", full)
    with pytest.raises(OutputError, match="no room"):
        disk.write_bytes(file, b"1")


def test_listings_tell_what_changed(tmp_path, url):
    for folder in (tmp_path, check.path(url, "folder")):
        assert not disk.listing(folder / "none")
        disk.write_bytes(folder / "a", b"1")
        before = disk.listing(folder)
        assert list(before) == ["a"]
        disk.write_bytes(folder / "a", b"22")
        assert disk.listing(folder)["a"] != before["a"]


def test_a_listing_keeps_files_when_another_vanishes(tmp_path, monkeypatch):
    """A temporary file is renamed between the look at the folder and that at the file."""
    for name in ("a", "b", "c"):
        disk.write_bytes(tmp_path / name, b"1")
    scandir = os.scandir

    @contextmanager
    def late(folder):
        with scandir(folder) as entries:
            found = list(entries)
        (tmp_path / "b").unlink()
        yield iter(found)

    monkeypatch.setattr(os, "scandir", late)
    assert sorted(disk.listing(tmp_path)) == ["a", "c"]
