"""Files and folders that are whole or as before, whoever else is there and wherever it stops."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bayesrisk._base import disk
from bayesrisk._base.disk import writing
from bayesrisk.exceptions import OutputError


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def anything(path):
    """Let every folder be replaced."""


def new(path):
    return disk.whole_file(path, new=True)


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    file = tmp_path / "file"
    with disk.whole_file(file) as stream:
        stream.write(b"new")
        (name,) = listing(tmp_path)
        assert disk.is_leftover(name)
    assert file.read_bytes() == b"new"
    assert listing(tmp_path) == ["file"]


def test_what_fails_leaves_the_old_file(tmp_path):
    file = tmp_path / "file"
    disk.write_bytes(file, b"old")
    with pytest.raises(KeyError), disk.whole_file(file) as stream:
        stream.write({}["new"])
    assert file.read_bytes() == b"old"
    with pytest.raises(OutputError, match=r"file: exists already"), new(file):
        pass
    assert listing(tmp_path) == ["file"]


def test_names_cannot_be_foreseen_and_links_are_not_followed(tmp_path, monkeypatch):
    """A link where the unfinished file would be is never written through."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    taken, free = "0" * 16, "1" * 16
    names = iter([taken, free])
    monkeypatch.setattr(writing.secrets, "token_hex", lambda _: next(names))
    planted = tmp_path / f".bayesrisk-{writing._key(tmp_path / 'file')}-{taken}.tmp"
    planted.symlink_to(outside)
    with pytest.raises(OutputError, match="File exists"):
        disk.write_bytes(tmp_path / "file", b"new")
    assert outside.read_bytes() == b"mine"
    assert planted.is_symlink()
    disk.write_bytes(tmp_path / "file", b"new")
    assert (outside.read_bytes(), (tmp_path / "file").read_bytes()) == (b"mine", b"new")


def test_two_writers_of_one_process_number(tmp_path):
    """As in two containers on one folder: neither takes the other's unfinished file."""
    file = tmp_path / "file"
    with disk.whole_file(file) as one, disk.whole_file(file) as other:
        one.write(b"one")
        other.write(b"other")
        assert len(listing(tmp_path)) == 2
    assert file.read_bytes() == b"one"  # the one that ends last
    assert listing(tmp_path) == ["file"]


KILLED = """
import os, sys
from bayesrisk._base import disk
with disk.{}(sys.argv[1]{}) as made:
    os._exit(9)
"""


@pytest.mark.parametrize(("what", "more"), [("whole_file", ""), ("whole_folder", ", print")])
def test_leftovers_of_the_dead_are_removed_and_no_others(tmp_path, what, more):
    target = tmp_path / "out"
    foreign = [".out.1234.tmp", ".out.tmp", "x.tmp", ".bayesrisk-zz.tmp"]
    for name in foreign:
        (tmp_path / name).mkdir()
    subprocess.run([sys.executable, "-c", KILLED.format(what, more), target], check=False)
    (left,) = [name for name in listing(tmp_path) if disk.is_leftover(name)]
    disk.clear(tmp_path / "another")
    assert left in listing(tmp_path)
    with disk.whole_file(target) if not more else disk.whole_folder(target, anything):
        (now,) = [name for name in listing(tmp_path) if disk.is_leftover(name)]
        assert now != left
        disk.clear(target)  # as another process would: this one is alive
        assert now in listing(tmp_path)
    assert listing(tmp_path) == sorted([*foreign, "out"])


def test_a_folder_takes_the_place_of_another(tmp_path):
    target = tmp_path / "deep" / "out"
    with disk.whole_folder(target, anything) as made:
        (made / "old").write_bytes(b"old")
    with pytest.raises(KeyError), disk.whole_folder(target, anything):
        raise KeyError
    assert listing(target) == ["old"]
    with disk.whole_folder(target, anything) as made:
        (made / "new").write_bytes(b"new")
        assert listing(target) == ["old"]
    assert listing(target) == ["new"]
    assert listing(tmp_path / "deep") == ["out"]


def test_a_folder_that_was_moved_away_comes_back(tmp_path):
    """Killed between the two renames."""
    target = tmp_path / "out"
    with disk.whole_folder(target, anything) as made:
        (made / "old").write_bytes(b"old")
    left = writing.hidden(target)
    left.mkdir()
    target.rename(left / "old")
    disk.clear(target)
    assert (target / "old").read_bytes() == b"old"
    assert listing(tmp_path) == ["out"]


def test_folders_that_failed_leave_nothing(tmp_path):
    with pytest.raises(KeyError), disk.whole_folder(tmp_path / "a" / "b", anything):
        raise KeyError
    assert listing(tmp_path) == []
    made = disk.whole_folder(tmp_path / "out", anything)
    with pytest.raises(OutputError, match=r"out/inside/missing: the folder "), made as folder:
        disk.write_bytes(folder / "inside" / "missing", b"")
    assert listing(tmp_path) == []


def test_a_scratch_folder_is_its_owners_and_does_not_stay(tmp_path):
    target = tmp_path / "deep" / "out"
    with disk.scratch_folder(target) as folder:
        (folder / "records").write_bytes(b"confidential")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert disk.is_leftover(folder.name)
        with disk.scratch_folder(target) as other:  # of another process with the same output
            assert (folder / "records").exists()
            assert other != folder
    assert listing(tmp_path / "deep") == []
    with pytest.raises(KeyError), disk.scratch_folder(target) as folder:
        raise KeyError
    assert listing(tmp_path / "deep") == []


def test_a_scratch_folder_of_a_killed_process_goes_at_the_next_start(tmp_path):
    target = tmp_path / "out"
    left = writing.hidden(target)
    left.mkdir()
    (left / "records").write_bytes(b"confidential")
    with disk.scratch_folder(target) as folder:
        assert listing(tmp_path) == [folder.name]
    assert listing(tmp_path) == []


def test_what_appears_while_a_folder_is_made_is_kept(tmp_path):
    target = tmp_path / "out"
    made = disk.whole_folder(target, disk.new_folder)
    with pytest.raises(OutputError, match="new or an empty folder"), made:
        (target / "mine").mkdir(parents=True)
    assert listing(target) == ["mine"]


def test_places_that_cannot_be_exchanged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (".", "/"):
        made = disk.whole_folder(place, anything)
        with pytest.raises(OutputError, match="must not be the current folder, nor one"), made:
            pass
    (tmp_path / "file").touch()
    long = "x" * 300
    for place, reason in (
        ("file", "but is a file"),
        ("file/below", "Not a directory"),
        (long, "File name too long"),
        (f"{long}/below", "File name too long"),
    ):
        with pytest.raises(OutputError, match=reason), disk.whole_folder(place, anything):
            pass
        with pytest.raises(OutputError), disk.whole_file(Path(place) / "x"):
            pass
    assert listing(tmp_path) == ["file"]


def test_a_long_name_is_as_good(tmp_path):
    name = "x" * 250
    disk.write_bytes(tmp_path / name, b"")
    with disk.whole_folder(tmp_path / name[1:], anything):
        pass
    assert listing(tmp_path) == [name[1:], name]


def test_permissions(tmp_path):
    def mode(path):
        return stat.S_IMODE(path.stat().st_mode)

    umask = os.umask(0o022)
    try:
        disk.write_bytes(tmp_path / "open", b"")
        disk.write_bytes(tmp_path / "private", b"", private=True)
        with disk.whole_folder(tmp_path / "folder", anything, private=True) as made:
            assert mode(made) == 0o700
            disk.make_folder(made / "in")
            disk.write_bytes(made / "in" / "file", b"")
    finally:
        os.umask(umask)
    assert (mode(tmp_path / "open"), mode(tmp_path / "private")) == (0o644, 0o600)
    inside = tmp_path / "folder" / "in"
    assert [mode(p) for p in (inside.parent, inside, inside / "file")] == [0o700, 0o700, 0o600]
    (tmp_path / "open").chmod(0o640)
    disk.write_bytes(tmp_path / "open", b"again")
    assert mode(tmp_path / "open") == 0o640
    with disk.whole_folder(tmp_path / "folder", anything) as made:
        disk.make_folder(made / "in")
        disk.write_bytes(made / "in" / "file", b"again")
    assert [mode(p) for p in (inside.parent, inside, inside / "file")] == [0o700, 0o700, 0o600]


def test_another_process_clears_a_folder_before_it_is_locked(tmp_path, monkeypatch):
    """As of two machines with one file: the folder just made is taken for a leftover and removed.

    Another one is made then.
    """
    file, opened = tmp_path / "file", os.open
    cleared = []

    def clearing(path, *more, **options):
        if not cleared and disk.is_leftover(Path(path).name):
            cleared.append(path)
            Path(path).rmdir()
        return opened(path, *more, **options)

    monkeypatch.setattr(writing.os, "open", clearing)
    disk.write_bytes(file, b"new")
    assert len(cleared) == 1
    assert file.read_bytes() == b"new"
    assert listing(tmp_path) == ["file"]


WRITER = """
import os, sys
os.getpid = lambda: 1
from bayesrisk._base import disk
for _ in range(int(sys.argv[2])):
    disk.write_bytes(sys.argv[1], sys.argv[3].encode())
"""


@pytest.mark.slow
def test_three_writers_of_one_file_with_one_process_number(tmp_path):
    file = tmp_path / "file"
    lines = [[sys.executable, "-c", WRITER, file, "400", letter * 999] for letter in "abc"]
    writers = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for line in lines]
    assert [writer.communicate()[1] for writer in writers] == ["", "", ""]
    assert file.read_bytes() in (b"a" * 999, b"b" * 999, b"c" * 999)
    assert listing(tmp_path) == ["file"]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_is_never_absent_while_it_is_replaced(tmp_path, monkeypatch, in_one_step):
    """On Linux two folders change places; elsewhere the old one is moved away, and comes back."""
    target = tmp_path / "out"
    with disk.whole_folder(target, anything) as made:
        (made / "old").write_bytes(b"old")

    class KilledError(Exception):
        pass

    def killed(path, _):
        raise KilledError(path)

    if in_one_step:
        if sys.platform != "linux":
            pytest.skip("only Linux exchanges folders")
        monkeypatch.setattr(Path, "rename", killed)
    else:
        monkeypatch.setattr(writing, "_exchanged", lambda new, target: False)
    with disk.whole_folder(target, anything) as made:
        (made / "new").write_bytes(b"new")
    assert listing(target) == ["new"]
    assert listing(tmp_path) == ["out"]
    # A link and a folder that is not there are not exchanged.
    if in_one_step:
        with pytest.raises(KilledError), disk.whole_folder(tmp_path / "first", anything):
            pass
