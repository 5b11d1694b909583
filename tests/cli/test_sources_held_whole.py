"""Records that are too many to be held whole: a command says what to do instead."""

import pytest
from typer.testing import CliRunner

from bayesrisk._base.disk import text
from bayesrisk.census import simulate_population
from bayesrisk.cli.app import app
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.by_place import split_by_place

TABLES = ["--tables", "sf1-block", "--only", "P1"]
RELEASE = ["release", "--protection", "identity", *TABLES]
COUNT = ["release", "--protection", "none", "--tables", "sf1-block"]
LOOK = ["audit", "--known", "sex,age"]
BY = "add --by county, which holds one county at a time"
FILE = "give its file of records instead, with --by county"
PLACE = "give those of one place, such as one folder part-CODE of microdata by place"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    at = tmp_path_factory.mktemp("people")
    made = simulate_population("tract", rng=1)
    made.write(at / "folder")
    split_by_place(made, at / "parts")
    return at


@pytest.mark.parametrize(
    ("words", "name", "instead"),
    [
        (RELEASE, "folder/persons.parquet", BY),
        (RELEASE, "folder", FILE),
        ([*RELEASE, "--whole"], "parts", "leave out --whole, which holds one place at a time"),
        (COUNT, "folder", FILE),
        (LOOK, "parts", PLACE),
        (LOOK, "folder/persons.parquet", PLACE),
    ],
)
def test_what_is_too_long_to_be_held_is_refused_with_what_to_do(
    people, tmp_path, monkeypatch, words, name, instead
):
    output = [] if words is LOOK else ["-o", str(tmp_path / "out"), "--quiet"]
    command = [words[0], str(people / name), *words[1:], *output]
    assert CliRunner().invoke(app, command).exit_code == 0
    monkeypatch.setattr(text, "MAX_HELD", 20_000)
    command = [str(word).replace("out", "again") for word in command]
    refused = CliRunner().invoke(app, command).exception
    assert isinstance(refused, DataError)
    assert "must take at most 20000 bytes to be held whole" in str(refused)
    assert instead in str(refused)
    assert text.IN_PIECES not in str(refused)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (COUNT, "folder/persons.parquet"),
        ([*RELEASE, "--by", "county"], "folder/persons.parquet"),
        ([*COUNT, "--by", "county"], "folder/persons.parquet"),
    ],
)
def test_what_is_said_to_do_works(people, tmp_path, monkeypatch, words, name):
    # A part is held whole, and is here all there is, which the file as it stands is not.
    real, held = text.check_held, []
    monkeypatch.setattr(text, "check_held", lambda *about: (held.append(about), real(*about)))
    command = [words[0], str(people / name), *words[1:], "-o", str(tmp_path / "out"), "--quiet"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert not [about for about in held if about[0] == str(people / name)]
