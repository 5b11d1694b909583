"""Parts of runs: what changed is refused, and what looks like a seal is no seal."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow.parquet as pq
import pytest
from studies import run_occupancy_attack, run_reconstruction
from writing_cases import commands, content, inputs, quick_figures, run

from bayesrisk.exceptions import DataError, PartFileError
from bayesrisk.experiments import TabulationConfig, read_results
from bayesrisk.experiments.runs.folder import PartFolder, arrow_table
from bayesrisk.experiments.runs.parts import look_at, pack, unpack
from bayesrisk.experiments.sweep.run import SweepFolder


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
def test_a_part_of_another_kind_is_refused(made, at):
    """Its shard and its configuration are right, and its bytes are whole."""
    parts = made / "parts"
    shutil.copy(parts / "coverage-000000.parquet", parts / "examples-000000.parquet")
    status, told = run(*commands(at)["claims"].line(made, again=True))
    assert status == 3
    assert "examples-000000.parquet: is not a part of this run of claims; delete" in told


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
    about.write_text(about.read_text().replace("identity", "idemtity"))
    refused = pytest.raises(DataError, match=r"_release\.json: was changed after it was written")
    with refused:
        run_occupancy_attack(place, tmp_path / "attack")
    with refused:
        run_reconstruction(place, tmp_path / "reconstruction", scope="block")


@pytest.mark.parametrize("made", ["sweep"], indirect=True)
def test_every_bit_of_a_part(made):
    """Every seventh byte, one bit of it, and every such length: never other rows."""
    file = SweepFolder(made).part(0)
    sound = file.read_bytes()
    for at in range(0, len(sound), 7):
        for damaged in (sound[:at], sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :]):
            file.write_bytes(damaged)
            with pytest.raises(PartFileError, match=r"part-000000\.parquet: is not a whole"):
                unpack(file, "advice")


def test_a_part_may_hold_what_looks_like_a_seal(tmp_path):
    texts = ["bayesrisk.seal", "0" * 64, "bayesrisk.seal\x18@" + "a" * 64]
    table = arrow_table(pd.DataFrame({"text": texts * 3}))
    file = tmp_path / "part"
    file.write_bytes(pack(table, {"bayesrisk.kind": "0" * 64}))
    part = unpack(file, "advice")
    assert part.table.equals(table)
    assert part.footer == {"bayesrisk.kind": "0" * 64}


def test_no_thread_of_arrow_holds_the_bytes_of_a_part(tmp_path, monkeypatch):
    """One that lets go of Python's bytes while the process ends aborts it: in 1 run of 12."""
    read, seen = pq.ParquetFile.read, []

    def spied(self, *args, use_threads=True, **options):
        seen.append(use_threads)
        return read(self, *args, use_threads=use_threads, **options)

    monkeypatch.setattr(pq.ParquetFile, "read", spied)
    table = arrow_table(pd.DataFrame({"x": [1, 2]}))
    (tmp_path / "part").write_bytes(pack(table, {}))
    assert unpack(tmp_path / "part", "").table.equals(table)
    assert seen == [False]


def test_each_part_is_decoded_once_for_the_file_of_all(tmp_path, monkeypatch):
    config = TabulationConfig("records", "tables", "county", 3)
    folder = PartFolder(tmp_path)
    (tmp_path / folder.parts).mkdir()
    for shard in range(3):
        table = arrow_table(pd.DataFrame({"x": [shard, shard + 10]}))
        folder.write_parts(config, shard, {"part": table})
    read, seen = PartFolder.read_part, []

    def spied(self, shard, kind=None):
        seen.append(shard)
        return read(self, shard, kind)

    monkeypatch.setattr(PartFolder, "read_part", spied)
    with ThreadPoolExecutor(1) as pool:
        assert folder.run(config, int, pool, [], merged=("part",))
    assert seen == [0, 1, 2]
    assert pd.read_parquet(tmp_path / "part.parquet")["x"].tolist() == [0, 10, 1, 11, 2, 12]


def test_a_part_is_looked_at_without_decoding_its_rows(tmp_path, monkeypatch):
    """Its seal is over every byte: a run that resumes decodes nothing of what is there."""
    file = tmp_path / "part.parquet"
    data = pack(arrow_table(pd.DataFrame({"a": range(1000)})), {"bayesrisk.kind": "part"})
    file.write_bytes(data)
    whole = unpack(file, "advice")
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("rows were decoded"))
    assert look_at(file, "advice") == (whole.table.num_rows, whole.footer, whole.sha256)
    for at in range(0, len(data), 97):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(PartFileError, match=r"part\.parquet: is not a whole part .*; advice"):
            look_at(file, "advice")
