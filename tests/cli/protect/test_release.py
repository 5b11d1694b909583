"""``bayesrisk release`` as a user runs it."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from oracles.readers import person_records
from typer.testing import CliRunner

from bayesrisk import Release, make_mechanism, simulate_population
from bayesrisk.census import write_record_form
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.by_place import split_by_place
from bayesrisk.mechanisms.registry import with_settings
from bayesrisk.tables import Microdata, Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

SWAPPING = """
protection = "swapping"
tables = ["sf1-block"]
only = ["P1", "P12"]

[parameters]
rate = "1/10"
swap_key = ["size", "adults"]
unique_by = ["race", "age"]
within = "county"
unique_within = "tract"
unit = "household"
"""


COMMAND = ("release",)


@pytest.fixture(scope="module")
def microdata(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people") / "microdata"
    simulate_population("tract", rng=1).write(folder)
    return folder


def test_the_command_releases_what_the_class_does(run, microdata, tmp_path):
    out = tmp_path / "out"
    settings = ["--set", "sensitivity=add-remove", "--set", "budgets.block.P12=1/10"]
    tables = ["--tables", "sf1-block", "--only", "P12"]
    words = ["--protection", "discrete-gaussian", *settings, *tables, "--simulation-seed", 7]
    status, text, _ = run(microdata, *words, "-o", out)
    assert status == 0
    assert "1 tables" in text
    made = Release.read(out)
    mechanism = make_mechanism(
        "discrete-gaussian", budgets={"block": {"P12": "1/10"}}, sensitivity="add-remove"
    )
    asked = Workload.named("sf1-block").select(tables=["P12"])
    assert made == mechanism.release(Microdata.read(microdata), workload=asked, rng=7)
    frame = pd.read_parquet(out / "part-00000.parquet")
    assert frame.columns.tolist() == ["level", "geoid", "table", "cell", "count"]


def test_perturbation_tables_and_groups_are_settings(run, microdata, tmp_path):
    file = tmp_path / "ptable.csv"
    file.write_text("pcv,ckey,pvalue\n1,0,1\n1,1,-1\n", encoding="utf-8")
    tables = ["--tables", "sf1-block", "--only", "P1", "--only", "P12", "--simulation-seed", 7]
    groups = "groups={age=[0, 18, 65]}"
    people = Microdata.read(microdata)
    asked = Workload.named("sf1-block").select(tables=["P1", "P12"])
    for name, settings, same in (
        ("cell-key", [f"ptable={str(file)!r}", "keys=2"], {"ptable": ["0 0", "1 -1"], "keys": 2}),
        ("recode", [groups], {"groups": {"age": [0, 18, 65]}}),
    ):
        given = [word for setting in settings for word in ("--set", setting)]
        status, text, _ = run(
            microdata, "--protection", name, *given, *tables, "-o", tmp_path / name
        )
        assert (status, text.splitlines()[1].split(" (")[0]) == (0, "2 tables")
        made = make_mechanism(name, **same).release(people, workload=asked, rng=7)
        assert Release.read(tmp_path / name) == made


def test_a_file_of_settings(run, microdata, tmp_path):
    config = tmp_path / "swap.toml"
    config.write_text(SWAPPING, encoding="utf-8")
    status, text, _ = run(
        microdata, "--config", config, "--simulation-seed", 1, "-o", tmp_path / "a", "--json"
    )
    assert status == 0
    document = json.loads(text)
    assert document["mechanism"] == "swapping"
    assert document["tables"] == 2
    assert document["diagnostics"] == {}
    # Options go before the file.
    more = ("--set", "rate=0", "--simulation-seed", 1)
    run(microdata, "--config", config, *more, "-o", tmp_path / "b")
    assert Release.read(tmp_path / "b").spec.parameters["rate"] == "0"
    assert Release.read(tmp_path / "a").spec.parameters["rate"] == "1/10"


def test_the_seed_and_the_truth_stay_home(run, microdata, tmp_path):
    out = tmp_path / "out"
    options = ["--protection", "rounding", "--set", "base=5", "--set", "method=random"]
    run(microdata, *options, "--tables", "sf1-block", "--simulation-seed", 918273645, "-o", out)
    files = sorted(p.name for p in out.iterdir())
    described = ["README.txt", "_geographies.parquet", "_manifest.json", "_release.json"]
    assert files == [*described, "part-00000.parquet", "tables"]
    assert not any(b"918273645" in file.read_bytes() for file in out.rglob("*.*"))
    counts = pd.read_parquet(out / "part-00000.parquet")["count"]
    assert (counts % 5 == 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protection = 3", "protection must be of type str, got 3"),
        ("protection = 'nothing'\ntables = ['pl94']", "bad.toml: protection must be one of"),
        ("levels = [1]", "levels[0] must be of type str, got 1"),
        ("tables = []", "bad.toml: "),
        ("parameters = 1", "bad.toml: "),
        ("seed = 1", "unknown key seed; known: place, columns, cuts, protection, tables"),
        ("mechanism", "cannot be read as TOML"),
    ],
)
def test_bad_files_of_settings(run, microdata, tmp_path, text, message):
    config = tmp_path / "bad.toml"
    config.write_text(text, encoding="utf-8")
    status, _, err = run(
        microdata, "--config", config, "--simulation-seed", 1, "-o", tmp_path / "out"
    )
    assert status == 2
    assert f"{config}: " in err
    assert message in err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", "0.5"),
        ("1/10", "1/10"),
        ("county", "county"),
        ('["size", "adults"]', ["size", "adults"]),
        ("{ P12 = 2 }", {"P12": 2}),
        ("1\nother = 2", "1\nother = 2"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_values_are_read_by_their_form(text, value):
    assert with_settings({}, [f"key={text}"], "--set") == {"key": value}


def test_dots_lead_into_mappings():
    given = {"budgets": {"block": {"a": 1}}}
    found = with_settings(given, ["budgets.block.b=2", "rho=1"], "--set")
    assert found == {"budgets": {"block": {"a": 1, "b": 2}}, "rho": 1}
    assert given == {"budgets": {"block": {"a": 1}}}
    with pytest.raises(ArgumentError, match="'rho' is already 1"):
        with_settings({"rho": 1}, ["rho.block=2"], "--set")


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ('budgets.village."sex * age"=1/2', ["budgets", "village", "sex * age"]),
        ("budgets . village.sex * age = 1/2", ["budgets", "village", "sex * age"]),
        ('budgets."a.b=c"."d"=1/2', ["budgets", "a.b=c", "d"]),
    ],
)
def test_a_name_may_stand_in_quotes(setting, path):
    inside = with_settings({}, [setting], "--set")
    for name in path:
        inside = inside[name]
    assert inside == "1/2"


@pytest.mark.parametrize("setting", ["", "=1", "a", "a=", "a..b=1", '"a=1', '""=1'])
def test_settings_without_a_name_are_refused(setting):
    with pytest.raises(ArgumentError, match="--set must be KEY=VALUE"):
        with_settings({}, [setting], "--set")


def test_a_seed_is_for_simulation_and_both_sides_are_told(run, microdata, tmp_path):
    options = ["--protection", "rounding", "--set", "base=5", "--set", "method=random"]
    options += ["--tables", "sf1-block", "--only", "P1"]
    status, _, err = run(microdata, *options, "--simulation-seed", 1, "-o", tmp_path / "a")
    assert status == 0
    assert err.startswith("Warning: this is a simulation, not a protected release.")
    assert Release.read(tmp_path / "a").simulation
    status, out, err = run(microdata, *options, "-o", tmp_path / "b", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["simulation"] is False
    assert not Release.read(tmp_path / "b").simulation
    status, _, err = run(microdata, *options, "--seed", 1, "-o", tmp_path / "c")
    assert status == 2
    assert "--seed" in err
    status, _, err = run(microdata, *options, "--set", "name=x", "-o", tmp_path / "c")
    assert status == 2
    assert "'name'" in err


def test_codings_of_a_file_of_persons(run, tmp_path):
    """The archive's file, whose 1 is male, gives the release of the same persons."""
    persons = person_records(np.random.default_rng(1), 300)
    write_record_form(persons, tmp_path / "a.csv", dialect="archive")
    persons.write(tmp_path / "b.parquet")
    how = ("--protection", "identity", "--tables", "sf1-block")
    coded = run(tmp_path / "a.csv", "--dialect", "archive", *how, "-o", tmp_path / "a")
    assert coded[0] == 0
    assert run(tmp_path / "b.parquet", *how, "-o", tmp_path / "b")[0] == 0
    assert Release.read(tmp_path / "a") == Release.read(tmp_path / "b")
    (tmp_path / "release.toml").write_text(
        'protection = "identity"\ntables = ["sf1-block"]\ndialect = "archive"\n'
    )
    by_file = run(tmp_path / "a.csv", "--config", tmp_path / "release.toml", "-o", tmp_path / "c")
    assert by_file[0] == 0
    assert Release.read(tmp_path / "c") == Release.read(tmp_path / "b")
    Microdata(persons).write(tmp_path / "m")
    for source, more, message in (
        (tmp_path / "a.csv", (), "--dialect must be said"),
        (tmp_path / "a.csv", ("--dialect", "pum"), "--dialect must be one of schema, archive"),
        (tmp_path / "m", ("--dialect", "schema"), "--dialect goes with a file of records"),
    ):
        status, _, said = run(source, *more, *how, "-o", tmp_path / "d")
        assert status == 2
        assert message in said
        assert not (tmp_path / "d").exists()


@pytest.fixture(scope="module")
def parts(tmp_path_factory, microdata):
    folder = tmp_path_factory.mktemp("people") / "parts"
    split_by_place(Microdata.read(microdata), folder, level="tract")
    return folder


class TestByPlace:
    """Records become a release by place, part after part, or in one piece where it is said."""

    ROUNDED = (
        "--protection", "rounding", "--set", "base=3", "--set", "method=nearest",
        "--tables", "sf1-block", "--only", "P1",
    )  # fmt: skip

    def test_a_folder_by_place_a_file_and_the_whole_are_the_same(
        self, run, parts, microdata, tmp_path
    ):
        status, out, err = run(parts, *self.ROUNDED, "-o", tmp_path / "parts", "--quiet")
        assert (status, err) == (0, "")
        assert "parts.confidential beside it is not for publication" in out
        persons = microdata / "persons.parquet"
        assert run(microdata, *self.ROUNDED, "--by", "tract", "-o", tmp_path / "split")[0] == 0
        assert run(parts, *self.ROUNDED, "--whole", "-o", tmp_path / "whole")[0] == 0
        whole = Release.read(tmp_path / "whole")
        assert not (tmp_path / "whole" / "_partitions.json").exists()
        for name in ("parts", "split"):
            assert (tmp_path / name / "_partitions.json").exists()
            assert Release.read(tmp_path / name).tables == whole.tables
        options = (*self.ROUNDED, "--by", "tract", "--json", "-o", tmp_path / "file")
        status, out, err = run(persons, *options)
        assert (status, "--places must be given" in err) == (2, True)
        assert not (tmp_path / "file").exists()
        status, out, _ = run(persons, *options, "--places", microdata)
        summary = json.loads(out)
        assert (status, summary["complete"], summary["simulation"]) == (0, True, False)
        assert Release.read(tmp_path / "file").tables == whole.tables

    def test_a_seed_is_a_simulation_and_a_run_goes_on(self, run, parts, tmp_path):
        options = (*self.ROUNDED, "--simulation-seed", 3, "-q", "-o", tmp_path / "out")
        status, _, err = run(parts, *options, "--shard", "1/2")
        assert status == 0
        assert "this is a simulation" in err
        status, _, err = run(parts, *options)
        assert status == 2
        assert "add --resume" in err
        assert run(parts, *options, "--resume")[0] == 0
        assert Release.read(tmp_path / "out").simulation


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Return a file of eight people in two of three places, and a list of the three."""
    folder = tmp_path_factory.mktemp("town")
    ages = [30, 41, 5, 22, 22, 67, 35, 8]
    rows = pd.DataFrame({"block": ["990010001001001"] * 3 + ["990010001001002"] * 5, "age": ages})
    rows.assign(sex=[0, 1] * 4, race=1, hisp=0).to_csv(folder / "people.csv", index=False)
    places = ["990010001001001", "990010001001002", "990010001001003"]
    pd.DataFrame({"block": places}).to_csv(folder / "places.csv", index=False)
    return folder


def listed_cells(folder):
    """Return the rows of a folder of tables as they stand in its files."""
    parts = [pd.read_parquet(file) for file in sorted(folder.glob("part-*.parquet"))]
    return pd.concat(parts)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian:rho=1", "suppression:threshold=3"])
def test_a_release_lists_every_cell_zeros_too(run, town, tmp_path, mechanism):
    status, _, errors = run(
        town / "people.csv", "--tables", "sf1-block", "--only", "P1,P8,P12", "-q",
        "--protection", mechanism, "--places", town / "places.csv", "-o", tmp_path / "out",
    )  # fmt: skip
    assert status == 0, errors
    rows, release = listed_cells(tmp_path / "out"), Release.read(tmp_path / "out")
    assert (rows["count"] == 0).any()
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert "absent" not in manifest
    for (level, name), table in release.spec.tables.items():
        cells = release.tables.workload.tables[level, name].cells
        mine = rows[(rows["level"] == level) & (rows["table"] == name)]
        assert len(mine) == 3 * len(cells), table
        pairs = set(zip(mine["geoid"], mine["cell"], strict=True))
        assert pairs == set(itertools.product(release.tables.geoids[level].tolist(), cells))
        for place in release.tables.geoids[level].tolist():
            read = mine[mine["geoid"] == place].set_index("cell")["count"][list(cells)]
            hidden = release.tables.hidden(level, name).toarray()
            row = release.tables.geoids[level].tolist().index(place)
            assert read.isna().tolist() == hidden[row].tolist()
            assert read.fillna(0).tolist() == release.tables.count(level, name, place).tolist()


def test_the_report_says_what_is_exact_as_verify_release_does(run, town, tmp_path):
    for name, places in (("occupied", "occupied"), ("public", town / "places.csv")):
        out = tmp_path / name
        status, _, errors = run(
            town / "people.csv", "--tables", "sf1-block", "--only", "P1,P8", "-q",
            "--protection", "topdown:rho=3/2", "--places", places, "-o", out,
        )  # fmt: skip
        assert status == 0, errors
        page = (tmp_path / f"{name}-report.html").read_text("utf-8")
        verified = CliRunner().invoke(app, ["verify", str(out)]).output
        line = next(one for one in verified.splitlines() if one.startswith("  the list of places"))
        assert f"Published exactly: {line.strip()}" in page
        assert ("with a record" in line) == (name == "occupied")
        assert "The budget of all noise is rho 1.5." in page
        assert "counts is stated exactly" in page


@pytest.mark.parametrize(
    ("protection", "rho"),
    [
        ("topdown:rho=3/2", 1.5),
        ("discrete-gaussian:rho=3/2", 1.5),
        ("discrete-laplace:epsilon=1", None),
        ("rounding:base=3", None),
    ],
)
def test_the_first_sentence_has_the_budget_of_every_gaussian_noise(
    run, town, tmp_path, protection, rho
):
    status, _, errors = run(
        town / "people.csv", "--tables", "sf1-block", "--only", "P8", "-q",
        "--protection", protection, "--places", "occupied", "-o", tmp_path / "out",
    )  # fmt: skip
    assert status == 0, errors
    page = (tmp_path / "out-report.html").read_text("utf-8")
    lead = page.split('<p class="lead">')[1].split("</p>")[0]
    assert (f"rho {rho:g}" in lead) if rho else ("rho" not in lead)


def test_the_report_of_another_release_is_not_written_over(run, town, tmp_path):
    words = (
        town / "people.csv", "--tables", "sf1-block", "--only", "P8", "-q",
        "--protection", "rounding:base=3", "--places", "occupied", "-o", tmp_path / "out",
    )  # fmt: skip
    other = tmp_path / "out-report.html"
    other.write_text("mine")
    status, _, errors = run(*words)
    assert status == 2
    assert "out-report.html exists already" in errors
    assert other.read_text() == "mine"
    assert not (tmp_path / "out").exists()
    other.unlink()
    assert run(*words)[0] == 0
