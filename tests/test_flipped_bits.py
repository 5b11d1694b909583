"""A bit of a stored file changes: an error of our tree that names it, or the same results."""

import shutil

import numpy as np
import pytest
from writing_cases import commands, content, inputs, run

from bayesrisk.exceptions import BayesRiskError, PartFileError
from bayesrisk.experiments import read_reconstruction, read_results
from bayesrisk.experiments.runs.folder import arrow_table
from bayesrisk.experiments.runs.part_file import pack, unpack
from bayesrisk.experiments.sweep.folder import SweepFolder
from bayesrisk.release import Release
from bayesrisk.tables import Microdata, PublishedTables

FLIPS = 60  # of each kind of folder
RESUMED = ("sweep", "reconstruct", "claims", "occupancy-attack", "occupancy-study")


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def made(at, tmp_path, request):
    """The folder that a command makes."""
    command = commands(at)[request.param]
    status, told = run(*command.line(tmp_path / "out"))
    assert status == 0, told
    return tmp_path / "out"


def flips(folder, number, *, among=""):
    """Flip one bit after another, each in a file that is as it was but for it."""
    rng = np.random.default_rng(11)
    files = sorted(p for p in folder.rglob("*") if p.is_file() and among in p.name)
    for i in range(number):
        file = files[i % len(files)]
        sound = file.read_bytes()
        damaged = bytearray(sound)
        damaged[rng.integers(len(sound))] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        yield file
        file.write_bytes(sound)


def microdata(folder):
    data = Microdata.read(folder)
    units = (data.persons, data.households)
    return [unit and unit.to_frame().to_dict() for unit in units], data.blocks.to_dict()


def tables(folder):
    return PublishedTables.read(folder).to_frame().to_dict()


def release(folder):
    return Release.read(folder)


def sweep(folder):
    config, frame = read_results(folder)
    return config, frame.to_csv()


def reconstruction(folder):
    found = read_reconstruction(folder)
    return found.config, found.records.to_csv(), found.blocks.to_csv()


@pytest.mark.parametrize(
    ("made", "read"),
    [
        ("simulate", microdata),
        ("tabulate", tables),
        ("release", release),
        ("release", tables),
        ("sweep", sweep),
        ("reconstruct", reconstruction),
    ],
    indirect=["made"],
)
def test_reading(made, read):
    sound, errors = read(made), 0
    for file in flips(made, FLIPS):
        try:
            assert read(made) == sound, file
        except BayesRiskError:
            errors += 1
    assert errors > 0
    assert read(made) == sound


@pytest.mark.slow
@pytest.mark.parametrize("made", RESUMED, indirect=True)
def test_going_on(made, at, request):
    command = commands(at)[request.node.callspec.params["made"]]
    sound = content(made)
    for file in flips(made, 4, among="-00"):  # parts
        status, told = run(*command.line(made, again=True))
        assert status == 2
        assert told.startswith(f"bayesrisk: {file}: is not a whole part (")
        assert told.count("\n") == 1
    for file in flips(made, 4, among="."):
        status, told = run(*command.line(made, again=True))
        assert status == 2 or content(made) == sound, file
    assert run(*command.line(made, again=True))[0] == 0
    assert content(made) == sound


@pytest.mark.parametrize("made", ["claims"], indirect=True)
def test_a_part_of_another_kind_is_refused(made, at):
    """Its shard and its configuration are right, and its bytes are whole."""
    parts = made / "parts"
    shutil.copy(parts / "coverage-000000.parquet", parts / "examples-000000.parquet")
    status, told = run(*commands(at)["claims"].line(made, again=True))
    assert status == 2
    assert "examples-000000.parquet: is not a part of this run of claims; delete" in told


@pytest.mark.parametrize("made", ["sweep"], indirect=True)
def test_every_bit_of_a_part(made):
    """All bytes, one bit of each, and every length: never another error, never other rows."""
    file = SweepFolder(made).part(0)
    sound = file.read_bytes()
    for at in range(0, len(sound), 7):
        for damaged in (sound[:at], sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :]):
            file.write_bytes(damaged)
            with pytest.raises(PartFileError, match=r"part-000000\.parquet: is not a whole"):
                unpack(file, "advice")


def test_a_part_may_hold_what_looks_like_a_seal(tmp_path):
    import pandas as pd

    texts = ["bayesrisk.seal", "0" * 64, "bayesrisk.seal\x18@" + "a" * 64]
    table = arrow_table(pd.DataFrame({"text": texts * 3}))
    file = tmp_path / "part"
    file.write_bytes(pack(table, {"bayesrisk.kind": "0" * 64}))
    part = unpack(file, "advice")
    assert part.table.equals(table)
    assert part.footer == {"bayesrisk.kind": "0" * 64}
