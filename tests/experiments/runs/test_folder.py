"""Parts of runs: whatever changed is refused, and computed again."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow.parquet as pq
import pytest
from figures import quick_figures
from studies import run_occupancy_attack, run_reconstruction
from writing_cases import commands, content, inputs, run

from bayesrisk._base import disk
from bayesrisk._base.display import arrow_table
from bayesrisk.exceptions import DataError, PartFileError
from bayesrisk.experiments import read_results
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.experiments.sweep import SweepStudy


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def made(at, tmp_path, request):
    """The folder that a command makes."""
    with quick_figures():
        status, told = run(*commands(at)[request.param].line(tmp_path / "out"))
    assert status == 0, told
    return tmp_path / "out"


_BY_PLACE = ["tabulate-by", "release-by", "simulate-nation"]


@pytest.mark.parametrize(
    "made",
    ["claims", "reconstruct", "sweep", "occupancy-attack", "nmf", *_BY_PLACE]
    + [
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("audit-by", "nmf-counts", "occupancy-attack-by", "occupancy-study")
    ],
    indirect=True,
)
def test_damaged_parts_are_computed_again(made, at, request):
    """A file of each kind, those in the folders of places among them, with one bit changed."""
    name, sound = request.node.callspec.params["made"], content(made)
    files = [made / file for file in sound if "part" in file.rpartition("/")[0]]
    kinds = {(file.parent.name[:5], file.stem.rstrip("0123456789")): file for file in files}
    assert len(kinds) >= (4 if name in _BY_PLACE else 1)
    for case, file in enumerate(kinds.values()):
        data = bytearray(file.read_bytes())
        data[len(data) * (case + 1) // (len(kinds) + 1)] ^= 1 << case % 8
        file.write_bytes(data)
        with quick_figures():
            status, told = run(*commands(at)[name].line(made, again=True))
        assert status == 0, told
        (line,) = [line for line in told.splitlines() if "warning" in line]
        assert line.endswith("computed again")
        assert f" {file}: " in line or f" {file.parent}: " in line
        assert content(made) == sound, file


@pytest.mark.parametrize("made", ["tabulate-by"], indirect=True)
def test_a_part_that_lost_its_folder_is_computed_again(made, at):
    sound = content(made)
    shutil.rmtree(next(made.glob("part-*")))
    assert run(*commands(at)["tabulate-by"].line(made, again=True))[0] == 0
    assert content(made) == sound


def test_a_finished_release_is_never_drawn_again(at, tmp_path):
    """Without a seed it would be another draw of the same records, and the first may be known."""
    line = commands(at)["release-by"].line(tmp_path / "out", again=True)
    place = line.index("--simulation-seed")
    del line[place : place + 2]
    assert run(*line)[0] == 0
    file = next((tmp_path / "out").glob("part-*/part-*.parquet"))
    file.write_bytes(file.read_bytes()[:-1])
    before = content(tmp_path / "out")
    status, told = run(*line)
    assert (status, told.count("\n")) == (3, 1)
    assert str(file.parent) in told
    assert content(tmp_path / "out") == before
    (tmp_path / "out" / "_partitions.json").unlink()  # as before it was finished
    assert run(*line)[0] == 0
    assert content(tmp_path / "out") != before


@pytest.mark.parametrize("made", ["claims"], indirect=True)
def test_a_part_of_another_kind_is_computed_again(made, at):
    sound, parts = content(made), made / "parts"
    shutil.copy(parts / "coverage-000000.parquet", parts / "examples-000000.parquet")
    status, told = run(*commands(at)["claims"].line(made, again=True))
    assert status == 0
    assert "examples-000000.parquet: is not a whole part" in told
    assert content(made) == sound


@pytest.mark.parametrize("made", ["sweep"], indirect=True)
def test_a_changed_configuration_is_not_blamed_on_the_parts(made):
    """Whoever followed the advice to delete the parts would have lost them."""
    settings = made / "config.json"
    sound = settings.read_text()
    settings.write_text(sound.replace('"title": "small"', '"title": "smalm"'))
    assert settings.read_text() != sound
    with pytest.raises(PartFileError, match=r"another configuration than config\.json") as caught:
        read_results(made)
    assert "delete" not in str(caught.value)


def test_tables_of_a_release_whose_description_was_changed_are_refused(at, tmp_path):
    """The description is in the digest of the folder, so that a run would carry another one."""
    run_occupancy_attack(at / "occupancy-release", tmp_path / "sound")
    place = tmp_path / "release"
    shutil.copytree(at / "occupancy-release", place)
    about = place / "_release.json"
    about.write_text(about.read_text().replace('"none"', '"nome"'))
    refused = pytest.raises(DataError, match=r"_release\.json: was changed after it was written")
    with refused:
        run_occupancy_attack(place, tmp_path / "attack")
    with refused:
        run_reconstruction(place, tmp_path / "reconstruction", scope="block")


@pytest.mark.parametrize("made", ["sweep"], indirect=True)
def test_every_bit_of_a_part(made):
    """Every seventh byte, one bit of it, and every such length: never other rows."""
    folder = RunFolder.existing(made, SweepStudy.layout)
    expected = folder.read_part(0)
    for file, step in ((folder.part(0), 7), (made / "parts" / "shard-000000.json", 3)):
        sound = file.read_bytes()
        for at in range(0, len(sound), step):
            for damaged in (sound[:at], sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :]):
                file.write_bytes(damaged)
                with pytest.raises(PartFileError, match=rf"{file.name}: "):
                    folder.read_part(0)
        file.write_bytes(sound)
    assert folder.read_part(0).equals(expected)


@pytest.fixture
def three(tmp_path):
    """A folder with three parts."""
    folder = RunFolder(tmp_path, {"shards": 3}, Layout("run", merged=("part",)))
    folder.prepare(range(3), resume=False)
    for shard in range(3):
        table = arrow_table(pd.DataFrame({"x": [shard, shard + 10]}))
        folder.write_parts(shard, {"part": table})
    return folder


def test_no_thread_of_arrow_holds_the_bytes_of_a_part(three, monkeypatch):
    """One that lets go of Python's bytes while the process ends aborts it: in 1 run of 12."""
    read, seen = pq.ParquetFile.read, []

    def spied(self, *args, use_threads=True, **options):
        seen.append(use_threads)
        return read(self, *args, use_threads=use_threads, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", spied)
    assert three.read_part(1).column("x").to_pylist() == [1, 11]
    assert seen == [False]


def test_each_part_is_decoded_once_for_the_file_of_all(three, tmp_path, monkeypatch):
    read, seen = RunFolder.read_part, []

    def spied(self, shard, kind=None):
        seen.append(shard)
        return read(self, shard, kind)

    monkeypatch.setattr(RunFolder, "read_part", spied)
    with ThreadPoolExecutor(1) as pool:
        assert three.run(int, pool, [])
    assert seen == [0, 1, 2]
    assert pd.read_parquet(tmp_path / "part.parquet")["x"].tolist() == [0, 10, 1, 11, 2, 12]


def test_parts_are_checked_without_decoding_their_rows(three, monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("rows were decoded"))
    assert three.finished() == [0, 1, 2]


def test_a_shard_written_while_the_folder_is_listed_is_whole(tmp_path, monkeypatch):
    """A listing may have the record, which is written last, and miss a part."""
    folder = RunFolder(tmp_path / "out", {"shards": 1}, Layout("run", kinds=("first", "second")))
    folder.prepare(range(1), resume=False)
    table = arrow_table(pd.DataFrame({"x": [1]}))
    folder.write_parts(0, {"first": table, "second": table})
    listing, looks = disk.listing, []

    def early(path):
        looks.append(path)
        states = dict(listing(path))
        if len(looks) == 1:
            del states[folder.part(0, "first").name]
        return states

    monkeypatch.setattr(disk, "listing", early)
    assert folder.finished() == [0]
    assert len(looks) == 2
    folder.part(0, "first").unlink()  # one that is gone is missed in each look
    with pytest.raises(PartFileError, match="first-000000"):
        folder.finished()
