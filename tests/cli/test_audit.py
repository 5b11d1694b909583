"""``bayesrisk audit``: options, the TOML file, JSON, and refusals with their exit status."""

import json
import types

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.cli import audit as audit_command
from bayesrisk.cli.app import app
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments.audit import read_audit, results
from bayesrisk.experiments.audit.populations import Pilot, PopulationInParts
from bayesrisk.experiments.runs import engine

pytestmark = pytest.mark.usefixtures("quick_figures")

SCHEMA = """
name = "people"

[geography]
name = "towns"
levels = ["tract", "block"]
widths = [1, 3]

[[attributes]]
name = "sex"
size = 2

[[attributes]]
name = "race"
size = 3
"""
TABLES = """
schema = "schema.toml"
levels = ["block"]
tables = [{ name = "race", cross = ["race"] }, { name = "sex", cross = ["sex"] }]
"""


def run(*words):
    return CliRunner().invoke(app, ["audit", *map(str, words)])


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A file of records, and the tables' definition."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "block": rng.choice(["100", "101", "102"], 30),
            "sex": rng.integers(0, 2, 30),
            "race": rng.integers(0, 3, 30),
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "tables.toml").write_text(TABLES, encoding="utf-8")
    return folder


def options(inputs):
    return [
        "--tables", inputs / "tables.toml", "--known", "sex", "--stated", "race", "--targets", "5",
        "--adversary", "outsider,linker", "--releases", "2", "--quiet",
    ]  # fmt: skip


def test_options_and_json(inputs, tmp_path):
    words = [inputs / "people.csv", "-o", tmp_path / "out", "--protection", "identity"]
    words += ["--protection", "rounding:base=5", *options(inputs)]
    first = run(*words)
    assert first.exit_code == 0, first.exception
    lines = first.output.splitlines()
    assert lines[5].startswith("no protection: ")
    assert lines[6].startswith("rounding:base=5: ")
    statements, _ = read_audit(tmp_path / "out")
    assert statements["target"].nunique() == 5
    again = run(*words)
    assert isinstance(again.exception, BayesRiskError)
    assert "--resume" in str(again.exception)
    document = json.loads(run(*words, "--resume", "--json").stdout)
    assert document["complete"]
    assert document["statements"] == len(statements)


def test_a_target_ratio_is_a_choice(inputs, tmp_path):
    words = [inputs / "people.csv", "--protection", "identity", *options(inputs)]
    goal = ["--target-ratio", "1.5", "--quantile", "0.5", "--against", "linker", "--steps", "0"]
    done = run(*words, *goal, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    assert "identity, as stated, " in done.output
    choice = pd.read_csv(tmp_path / "out" / "choice.csv")
    assert choice["adversary"].tolist() == ["linker"]


def test_a_file_says_the_same_as_options(inputs, tmp_path):
    file = tmp_path / "audit.toml"
    file.write_text(
        f"""
population = '{inputs / "people.csv"}'
tables = ['{inputs / "tables.toml"}']
known = ["sex"]
stated = ["race"]
adversary = ["outsider", "linker"]
targets = 9

[[protection]]
name = "coarse"
mechanism = "rounding"
parameters = {{base = 5, method = "nearest"}}
""",
        encoding="utf-8",
    )
    done = run(file, "-o", tmp_path / "out", "--targets", "5", "--quiet")
    assert done.exit_code == 0, done.exception
    statements, _ = read_audit(tmp_path / "out")
    assert set(statements["protection"]) == {"coarse"}
    assert statements["target"].nunique() == 5  # options on the command line come first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("targets = 5", "population must be given"),
        ("population = 'p'\ntargets = 0", "targets"),
        ("population = 'p'\ncolour = 1", "colour"),
        ("population = 3", "population must be of type str, got 3"),
        ("[[population]]\nrecords = 'p'", "population[0].name must be given"),
        ("[[population]]\nname = 'a'\ncolour = 1", "unknown key population[0].colour"),
        (
            "[[population]]\nname = 'a'\nrecords = 'p'\nsimulate = 'tract'",
            "population[0] must have one of records and simulate",
        ),
        (
            "[[population]]\nname = 'a'\nsimulate = 'tract'",
            "population[0].seed must be given where simulate is",
        ),
        (
            "[[population]]\nname = 'a'\nrecords = 'p'\nseed = 1",
            "population[0].seed goes with simulate",
        ),
    ],
)
def test_faults_of_a_file_are_named(tmp_path, text, words):
    file = tmp_path / "audit.toml"
    file.write_text(text, encoding="utf-8")
    done = run(file, "-o", tmp_path / "out")
    assert isinstance(done.exception, BayesRiskError)
    assert "audit.toml" in str(done.exception)
    assert words in str(done.exception)


def test_methods_are_rows_of_the_same_tables(inputs, tmp_path):
    words = [inputs / "people.csv", "-o", tmp_path / "out", "--protection", "identity"]
    words += ["--method", "posterior,claims", "--method", "majority", *options(inputs)]
    done = run(*words)
    assert done.exit_code == 0, done.exception
    measures = read_audit(tmp_path / "out")[1]
    assert list(dict.fromkeys(measures["attack"])) == ["likelihood", "claims", "majority"]
    proved = measures[measures["attack"] != "majority"]
    assert not proved["false"].any()


def test_the_sample_of_settings_opens(tmp_path):
    one = ["--targets", "2", "--method", "majority", "--protection", "identity", "--quiet"]
    done = run("sample:one-scale-audit", "-o", tmp_path / "out", *one)
    assert done.exit_code == 0, done.exception
    statements, _ = read_audit(tmp_path / "out")
    assert set(statements["adversary"]) == {"linker", "knows-all-but-one"}
    assert set(statements["protection"]) == {"identity"}


def test_everybody_may_be_asked_about(inputs, tmp_path):
    words = [inputs / "people.csv", "--protection", "identity", "--method", "majority"]
    done = run(*words, *options(inputs), "--targets", "all", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.exception
    assert read_audit(tmp_path / "out")[0]["target"].nunique() == 30
    done = run(*words, *options(inputs), "--targets", "some", "-o", tmp_path / "no")
    assert isinstance(done.exception, BayesRiskError)


def test_the_console_says_the_answer_in_eight_lines(inputs, tmp_path):
    words = [inputs / "people.csv", "-o", tmp_path / "out"]
    for base in range(2, 7):
        words += ["--protection", f"rounding:base={base},method=nearest"]
    done = run(*words, *options(inputs))
    assert done.exit_code == 0, done.exception
    # What first meets the eye are rare records; the answer has eight lines.
    first, lines = done.output.splitlines()[:-8], done.output.splitlines()[-8:]
    assert len(first) == 4
    measures = read_audit(tmp_path / "out")[1].query("group == 'everybody'")
    own = np.log(measures["own_factor"]).groupby(measures["adversary"]).mean()
    mine = measures[measures["adversary"] == own.idxmin()].set_index("protection")
    for line in lines[1:4]:
        name, _, rest = line.partition(": ")
        assert f", {mine.loc[name, 'answers_posterior']:.2f} (" in rest
    assert lines[4] == "and 2 more in the report"
    assert lines[5].startswith("5 of 5 parts done")
    assert lines[6].startswith("Checks: ")
    assert str(tmp_path / "out" / "report.html") in lines[-1]
    document = json.loads(run(*words, "--resume", "--json", *options(inputs)).stdout)
    assert len(document["brief"]) == 5
    assert document["checks"] == lines[6].removeprefix("Checks: ")


def test_several_files_are_several_populations(inputs, tmp_path):
    other = tmp_path / "others.csv"
    lines = (inputs / "people.csv").read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join(lines[:20]), encoding="utf-8")
    words = ["-o", tmp_path / "out", "--protection", "identity", "--method", "majority"]
    done = run(inputs / "people.csv", other, *words, *options(inputs))
    assert done.exit_code == 0, done.exception
    assert done.output.startswith("people: ")
    assert "\nothers: " in done.output
    statements, _ = read_audit(tmp_path / "out")
    assert list(dict.fromkeys(statements["population"])) == ["people", "others"]
    twice = run(other, other, *words, *options(inputs))
    assert "different names, got 'others' twice" in str(twice.exception)
    file = tmp_path / "audit.toml"
    file.write_text("targets = 5", encoding="utf-8")
    assert "the only population argument" in str(run(other, file, *words).exception)


def test_folders_are_called_by_their_whole_names(tmp_path, monkeypatch):
    """Folders have no ending, and the one that a user is in has a name as well."""
    people = simulate_population(population_spec("tract", n_blocks=2), rng=1)
    for name in ("people.v1", "people.v2"):
        people.write(tmp_path / name)
    monkeypatch.chdir(tmp_path / "people.v1")
    words = ["-o", tmp_path / "out", "--protection", "identity", "--method", "majority"]
    words += ["--tables", "sf1-block", "--only", "P8", "--targets", "3", "--quiet"]
    done = run(".", tmp_path / "people.v2", *words)
    assert done.exit_code == 0, done.exception
    statements, _ = read_audit(tmp_path / "out")
    assert list(dict.fromkeys(statements["population"])) == ["people.v1", "people.v2"]
    for folders in ((".",), (".", tmp_path / "people.v2")):
        told = str(run(*folders, *words, "--schema", "sf1-person").exception)
        assert told.startswith("--schema goes with a file of records")


def test_a_file_names_populations(inputs, tmp_path):
    file = tmp_path / "audit.toml"
    town = f"""
[[population]]
name = "the town"
records = '{inputs / "people.csv"}'
"""
    file.write_text(town + town.replace("the town", "the same"), encoding="utf-8")
    words = [file, "-o", tmp_path / "out", "--method", "majority", *options(inputs)]
    done = run(*words, "--protection", "identity")
    assert done.exit_code == 0, done.exception
    statements, _ = read_audit(tmp_path / "out")
    assert list(dict.fromkeys(statements["population"])) == ["the town", "the same"]
    file.write_text(town + town, encoding="utf-8")
    twice = run(*words, "--protection", "identity")
    assert "different names, got 'the town' twice" in str(twice.exception)


@pytest.mark.slow
def test_a_file_simulates_a_population(tmp_path):
    file = tmp_path / "audit.toml"
    made = "[[population]]\nname = 'made'\nsimulate = 'tract'\nseed = 3\nblocks = 2\n"
    file.write_text(f"only = ['P8']\ntables = ['sf1-block']\n{made}", encoding="utf-8")
    words = [file, "-o", tmp_path / "out", "--method", "majority", "--targets", "3", "--quiet"]
    done = run(*words, "--protection", "identity")
    assert done.exit_code == 0, done.exception
    statements, _ = read_audit(tmp_path / "out")
    assert set(statements["population"]) == {"made"}
    assert statements["place"].nunique() <= 2
    file.write_text(made.replace("tract", "village"), encoding="utf-8")
    assert "simulate" in str(run(*words, "--protection", "identity").exception)


def test_a_time_limit_asks_about_fewer_and_a_run_that_goes_on_asks_about_the_same(
    inputs, tmp_path, monkeypatch
):
    """Each person takes ten seconds: of 30 people as many are asked about as 100 seconds allow."""
    pilot = Pilot(0.0, 0.0, 0.0, 0.0, 10.0)
    monkeypatch.setattr(PopulationInParts, "pilot", lambda *_: pilot)
    monkeypatch.setattr(engine, "_pace", [(1.0, 0.0)])
    words = [inputs / "people.csv", "--schema", inputs / "schema.toml", "--tables"]
    words += [inputs / "tables.toml", "--known", "sex", "--stated", "race", "-o", tmp_path / "out"]
    words += ["--protection", "none", "--time-limit", "100", "--json"]
    done = run(*words)
    assert done.exit_code == 0, done.output
    targets = json.loads(done.stdout)["targets"]
    assert 5 <= targets <= 6  # 75 of 100 seconds, without those of the results and of the start
    again = run(*words, "--resume")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["targets"] == targets


def test_a_run_goes_on_with_the_protections_in_the_order_of_the_time_limit(monkeypatch, tmp_path):
    """Those without chance came first, whatever was asked for."""
    names = ["noise", "none", "rounding"]
    asked = types.SimpleNamespace(protections=[types.SimpleNamespace(name=one) for one in names])
    changes = dict[str, object]()
    begun = {"protections": [{"name": "none"}, {"name": "noise"}], "targets": 30, "releases": 2}
    monkeypatch.setattr(results, "begun_audit", lambda _: begun)
    replaced = types.SimpleNamespace(replace=lambda _, **new: changes.update(new))
    monkeypatch.setattr(audit_command, "dataclasses", replaced)
    audit_command._begun(asked, tmp_path)
    assert [one.name for one in changes.pop("protections")] == ["none", "noise"]
    assert changes == {"targets": 30, "releases": 2}
    begun["protections"].append({"name": "other"})
    assert audit_command._begun(asked, tmp_path) is None
