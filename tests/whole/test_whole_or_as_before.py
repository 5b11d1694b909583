"""Every command that writes: out of space, or refused where it writes.

What a kill leaves is in ``tests/fuzz/test_kills.py``.
"""

import io
import os
import stat

import pytest
from figures import quick_figures
from writing_cases import STOP, commands, content, inputs, leftovers, run

from bayesrisk._base.disk import writing

#: A command for each way to write: a folder, one replaced, one by place, a run in shards, a file,
#: and what only its owner may read.  Every command is in ``tests/fuzz/test_kills.py``.
NAMES = [
    *("tabulate-again", "simulate-nation", "release-by", "convert-file"),
    *("sweep", "report", "reidentify", "occupancy-figures"),
]


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("inputs"))


class Full(io.FileIO):
    """A file on a disk that is full."""

    def write(self, data):
        raise OSError(28, "No space left on device")


def one_line(status, told):
    assert status == 2
    assert told.startswith("bayesrisk: ")
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk(name, at, tmp_path, monkeypatch):
    command = commands(at)[name]
    if command.before is not None:
        with quick_figures():
            assert run(*command.before, "-o", tmp_path / command.name)[0] == 0
    before = content(tmp_path)
    monkeypatch.setattr(
        writing.os, "fdopen", lambda handle, _: io.BufferedWriter(Full(handle, "wb"))
    )
    told = one_line(*run(*command.line(tmp_path / command.name)))
    assert "cannot be written: No space left on device" in told
    assert ".bayesrisk-" not in told
    assert content(tmp_path) == before
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "report"])
def test_places_that_cannot_be_written(name, at, tmp_path):
    command = commands(at)[name]
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file" / command.name, tmp_path / f"{'x' * 300}{command.name[3:]}"):
        told = one_line(*run(*command.line(place)))
        assert any(text in told for text in ("Not a directory", "too long", "does not exist")), told
    with STOP.after(0, tmp_path, PermissionError(13, "Permission denied")):
        told = one_line(*run(*command.line(tmp_path / command.name)))
    assert "cannot be written: Permission denied" in told
    assert content(tmp_path) == {"file": b"mine"}
    assert not leftovers(tmp_path)


def test_folders_of_the_user_are_left_alone(at, tmp_path):
    """Names that earlier versions deleted or wrote over."""
    (tmp_path / ".out.tmp").mkdir()
    (tmp_path / ".out.tmp" / "thesis").write_text("mine")
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / f".out.parquet.{os.getpid()}.tmp").symlink_to(outside)
    for name in ("reidentify", "convert-file", "simulate"):
        command = commands(at)[name]
        with quick_figures():
            assert run(*command.line(tmp_path / command.name))[0] == 0
        if command.folder:
            (tmp_path / command.name).rename(tmp_path / name)
    assert (tmp_path / ".out.tmp" / "thesis").read_text() == "mine"
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("name", ["simulate", "claims"])
def test_places_given_from_where_one_is(name, at, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = commands(at)[name]
    status, told = run(*command.line(command.name))
    assert status == 0, told
    assert [path.name for path in tmp_path.iterdir()] == [command.name]
    inside = {path.name for path in tmp_path.glob("*/*")}
    assert "out" not in inside
    assert not leftovers(tmp_path)


def modes(folder):
    return {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
    }


def test_confidential_results_are_their_owners_alone(at, tmp_path):
    umask = os.umask(0o022)
    try:
        with quick_figures():
            for name in ("occupancy-figures", "reidentify"):
                status, told = run(*commands(at)[name].line(tmp_path / name))
                assert status == 0, told
    finally:
        os.umask(umask)
    study = modes(tmp_path / "occupancy-figures")
    private = {name for name, mode in study.items() if mode in (0o700, 0o600)}
    assert private == {name for name in study if "confidential" in name}
    assert {"confidential/blocks.csv", "confidential/curves.csv"} <= private
    public = {name for name in set(study) - private if "." in name}
    assert public == {
        *("config.json", "manifest.json", "table.csv", "seeds.csv", "ends.csv", "report.html"),
        *("figures/blocks.png", "figures/blocks.svg"),
    }
    report = modes(tmp_path / "reidentify")
    assert set(report.values()) == {0o700, 0o600}
    assert stat.S_IMODE((tmp_path / "reidentify").stat().st_mode) == 0o700
