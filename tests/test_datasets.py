"""Samples open by name, say where they come from, and are refused when damaged."""

import hashlib
import json
import shutil

import pytest

from bayesrisk import ArgumentError, DataError, datasets as samples


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """Return a copy of the samples, whose files a test may change."""
    folder = tmp_path / "samples"
    shutil.copytree(samples.folder(), folder)
    monkeypatch.setattr(samples, "folder", lambda: folder)
    return folder


@pytest.mark.parametrize("name", samples.names())
def test_every_sample(name):
    file = samples.path(name)
    catalogue = json.loads((samples.folder() / "catalogue.json").read_text(encoding="utf-8"))
    known = catalogue[name]["sha256"]
    if file.is_dir():
        found = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in file.iterdir()}
    if file.is_dir() and "kind" not in catalogue[name]:
        data = samples.load_microdata(name)
        assert len(data.households if data.persons is None else data.persons) > 0
    else:
        if not file.is_dir():
            found = hashlib.sha256(file.read_bytes()).hexdigest()
        with pytest.raises(ArgumentError, match=rf"name must be microdata .* got '{name}'"):
            samples.load_microdata(name)
    assert found == known
    text, _, licence = samples.source(name).partition(" Licence: ")
    assert text.endswith(".")
    assert licence
    if file.suffix == ".csv":
        assert len(samples.load(name)) > 0
    else:
        with pytest.raises(ArgumentError, match=f"name must be a table .* got '{name}'"):
            samples.load(name)


def test_every_file_is_in_the_catalogue():
    listed = {samples.path(name).name for name in samples.names()}
    files = {f.name for f in samples.folder().iterdir()} - {"README.md", "catalogue.json"}
    assert files == listed


def test_dare_county():
    table = samples.load("dare-county-28-21")
    assert list(table) == ["hhgq", "votingage", "hispanic", "cenrace", "count"]
    assert table["count"].tolist() == [34, 10, 1]
    assert table["count"].dtype == "int64"


def test_damage_is_noticed(damaged):
    file = damaged / "dare-county-28-21.csv"
    assert samples.path("dare-county-28-21") == file
    file.write_text(file.read_text(encoding="utf-8").replace("34", "35"), encoding="utf-8")
    for function in (samples.path, samples.load):
        with pytest.raises(DataError, match=r"dare-county-28-21\.csv: sha256 must be .*, got "):
            function("dare-county-28-21")


def test_an_incomplete_installation(damaged):
    (damaged / "catalogue.json").unlink()
    with pytest.raises(OSError, match=r"catalogue\.json"):
        samples.names()


def test_damage_in_a_folder_is_noticed(damaged):
    file = damaged / "synthetic-county" / "blocks.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    for function in (samples.path, samples.load_microdata):
        with pytest.raises(DataError, match=r"blocks\.parquet: sha256 must be .*, got "):
            function("synthetic-county")
    file.unlink()
    with pytest.raises(DataError, match=r"blocks\.parquet"):
        samples.path("synthetic-county")


@pytest.mark.parametrize(
    "function", [samples.path, samples.source, samples.load, samples.load_microdata]
)
def test_unknown_names(function):
    for bad in ("nowhere", "../catalogue.json", "", None, 3):
        with pytest.raises(ArgumentError, match=r"name must be one of .*coarsening-audit, .* got"):
            function(bad)
