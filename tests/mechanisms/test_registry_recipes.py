"""A recipe means the same to Python, the command line, files of settings and audits."""

import json

import numpy as np
import pandas as pd
import pytest
from mechanism_cases import county, tables
from typer.testing import CliRunner

from bayesrisk import (
    MechanismQuestion,
    Records,
    Schema,
    Workload,
    datasets,
    make_mechanism,
    run as execute,
)
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments import AuditStudy, Protection
from bayesrisk.experiments.audit.populations import source_digest
from bayesrisk.experiments.audit.results import audited_protection
from bayesrisk.mechanisms import Rounding, Swapping
from bayesrisk.mechanisms.registry import usual_parameters
from bayesrisk.release import Release
from bayesrisk.risk import Adversary, mechanism_risk

RECIPES = ("swapping:rate=0.3", "discrete-gaussian:rho=1", "rounding:base=3")


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def people():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {name: rng.choice(list(kinds), 90) for name, kinds in (
            ("clinic", "ABC"), ("sex", "FM"), ("age", "yo"), ("ill", "xyz"))}
    )  # fmt: skip
    return frame, Schema.from_frame(frame, place="clinic")


@pytest.mark.parametrize("recipe", RECIPES)
def test_one_line_everywhere(recipe, tmp_path):
    frame, schema = people()
    frame.to_csv(tmp_path / "p.csv", index=False)
    work = Workload.of(schema)
    records = Records.from_frame(frame, schema=schema)
    made = make_mechanism(recipe).release(records, workload=work, rng=7)
    name, _, rest = recipe.partition(":")
    given = [part.partition("=")[::2] for part in rest.split(",") if part]
    (tmp_path / "r.toml").write_text(f'protection = "{recipe}"\nplace = ["clinic"]\n')
    more = [word for pair in given for word in ("--set", "=".join(pair))]
    ways = {
        "line": ["--protection", recipe, "--place", "clinic"],
        "set": ["--protection", name, *more, "--place", "clinic"],
        "file": ["--config", tmp_path / "r.toml"],
    }
    for way, options in ways.items():
        out = tmp_path / way
        done = run("release", tmp_path / "p.csv", *options, "--simulation-seed", 7, "-o", out)
        assert done.exit_code == 0, done.exception
        assert Release.read(out).spec == made.spec
        assert Release.read(out).tables.counts.keys() == made.tables.counts.keys()
        for key, counts in made.tables.counts.items():
            assert (counts != Release.read(out).tables.counts[key]).nnz == 0
    one = Protection(recipe)
    whole = usual_parameters(one.mechanism, work, **one.parameters)
    assert make_mechanism(one.mechanism, **whole).spec.parameters == made.spec.parameters


def test_usual_values_follow_from_tables_and_records():
    census = Workload.named("sf1-block", levels=["county", "block"])
    found = usual_parameters("swapping:rate=1/10,neighbours=2", census, households=True)
    assert found == {
        "rate": "1/10", "neighbours": 2, "swap_key": ["size", "adults"], "unit": "household",
        "unique_by": ["race", "hisp"], "within": "county", "unique_within": "tract",
    }  # fmt: skip
    shares = usual_parameters("discrete-laplace:epsilon=2", census)
    assert shares["level_shares"] == {"county": "1/2", "block": "1/2"}
    assert set(shares["table_shares"].values()) == {"1/18"}
    stated = usual_parameters("discrete-gaussian", census, budgets={"block": {"P1": 1}})
    assert set(stated) == {"budgets", "sensitivity"}
    assert usual_parameters("swapping:rate=1/2") == {"rate": "1/2"}
    assert usual_parameters("rounding", base=5) == {"base": 5, "method": "random"}
    _, schema = people()
    own = usual_parameters("swapping:rate=1/2", Workload.of(schema))
    assert (own["swap_key"], own["unique_by"], own["within"]) == (["sex"], ["ill"], "all")
    parts = 'discrete-gaussian:sensitivity=add-remove,budgets.all.a=1/2,budgets.all."b * c"=1'
    assert usual_parameters(parts)["budgets"] == {"all": {"a": "1/2", "b * c": 1}}


def test_a_class_finds_what_its_recipe_finds():
    town = datasets.load_microdata("synthetic-county")
    census = Workload.named("sf1-block", levels=["county", "block"]).select(tables=["P8", "P12"])
    frame, schema = people()
    own = Records.from_frame(frame, schema=schema), Workload.of(schema)
    for records, work in ((town, census), own):
        short, line = Swapping(rate=0.3), make_mechanism("swapping:rate=0.3")
        whole = Swapping(**usual_parameters("swapping:rate=0.3", work, households=records is town))
        releases = [m.release(records, workload=work, rng=5) for m in (short, line, whole)]
        assert {one.acts_within(work) for one in (short, line)} == {whole.acts_within(work)}
        assert releases[0].tables == releases[1].tables == releases[2].tables
        assert releases[0].spec == releases[1].spec == releases[2].spec
        assert short.prepare(records, workload=work).draw(5).tables == releases[0].tables
        with pytest.raises(ArgumentError, match="swap_key must be given"):
            short.swap(records)
    assert Rounding(base=7).spec == make_mechanism("rounding:base=7").spec


@pytest.mark.parametrize(
    ("recipe", "needed"),
    [
        ("rounding", "needs base"),
        ("suppression", "needs threshold"),
        ("swapping", "needs rate"),
        ("discrete-gaussian", "budgets"),
        ("discrete-laplace", "budgets"),
    ],
)
def test_how_much_is_protected_is_never_taken_silently(recipe, needed):
    frame, schema = people()
    records = Records.from_frame(frame, schema=schema)
    with pytest.raises(ArgumentError, match=needed):
        make_mechanism(recipe).release(records, workload=Workload.of(schema), rng=1)


def test_open_parameters_are_filled_in_by_whoever_has_the_records():
    question = MechanismQuestion(
        tables("block"), observed=[("block", "colour")], alternatives=[{"colour": 2}], prior=0.2
    )
    line = make_mechanism("discrete-gaussian:rho=1/4")
    whole = make_mechanism(
        "discrete-gaussian", **usual_parameters("discrete-gaussian:rho=1/4", tables("block"))
    )
    options = {"draws": 40, "rng": 3}
    found = [
        mechanism_risk(county(), m, {"person": 100}, question, **options) for m in (line, whole)
    ]
    assert found[0].spec == found[1].spec
    assert float(found[0].marginal_posterior) == float(found[1].marginal_posterior)
    assert line.acts_within(tables("block")) == whole.acts_within(tables("block"))
    with pytest.raises(ArgumentError, match=r"needs rate: write swapping:rate=0\.05"):
        make_mechanism("swapping")
    with pytest.raises(ArgumentError, match=r"no 'rat'\. Did you mean 'rate'"):
        make_mechanism("swapping:rate=0.1,rat=2")


def test_what_was_audited_is_released(tmp_path):
    frame, _ = people()
    frame.to_csv(tmp_path / "p.csv", index=False)
    done = run(
        "audit", tmp_path / "p.csv", "--place", "clinic", "--protection", "identity",
        "--protection", "swapping:rate=0.3", "--adversary", "linker", "--targets", 4,
        "--releases", 1, "-o", tmp_path / "audit", "--quiet",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    audited = json.loads((tmp_path / "audit" / "protections.json").read_text())
    made = run(
        "release", tmp_path / "p.csv", "--from-audit", tmp_path / "audit",
        "--protection", "swapping:rate=0.3", "-o", tmp_path / "out",
    )  # fmt: skip
    assert made.exit_code == 0, made.exception
    assert "Warning" not in made.stderr
    release = Release.read(tmp_path / "out")
    assert release.tables.workload == Workload.from_dict(audited["workload"])
    entry = next(one for one in audited["protections"] if one["name"] == "swapping:rate=0.3")
    same = make_mechanism(entry["mechanism"], **entry["parameters"])
    assert release.spec.parameters == same.spec.parameters
    assert not release.simulation
    frame.iloc[1:].to_csv(tmp_path / "other.csv", index=False)
    other = run(
        "release", tmp_path / "other.csv", "--from-audit", tmp_path / "audit",
        "--protection", "identity", "-o", tmp_path / "out2",
    )  # fmt: skip
    assert other.exit_code == 0, other.exception
    assert "is not what was audited" in other.stderr


def test_records_are_those_of_their_file(tmp_path):
    frame, schema = people()
    frame = frame.assign(number=range(90))  # text in the file
    frame.to_csv(tmp_path / "same.csv", index=False)
    digest = source_digest(Records.from_frame(frame, schema=schema))
    assert source_digest(Records.read(tmp_path / "same.csv", schema=schema)) == digest
    for other in (frame.iloc[::-1], frame.assign(number=1)):
        assert source_digest(Records.from_frame(other, schema=schema)) != digest


@pytest.mark.slow
def test_an_audit_of_a_frame_knows_the_file_with_the_same_records(tmp_path):
    frame, schema = people()
    frame.to_csv(tmp_path / "same.csv", index=False)
    frame.iloc[::-1].to_csv(tmp_path / "other.csv", index=False)
    frame.drop(columns="clinic").to_csv(tmp_path / "columns.csv", index=False)
    study = AuditStudy(
        frame, Workload.of(schema, [["ill"]]), protections=[Protection("identity")],
        adversaries=[Adversary.named("outsider")], stated=["ill"], targets=2, releases=1,
    )  # fmt: skip
    execute(study, tmp_path / "audit")
    for name, same in (("same", True), ("other", False), ("columns", False)):
        file = tmp_path / f"{name}.csv"
        assert audited_protection(tmp_path / "audit", "identity", records=file)[3] == same


@pytest.mark.parametrize("kind", ["mechanisms", "attacks", "samples", "workloads", "schemas"])
def test_names_are_listed_with_a_line_each(kind):
    done = run("list", kind)
    assert done.exit_code == 0, done.exception
    found = json.loads(run("list", kind, "--json").stdout)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(found)
    assert all(found.values())
    assert set(datasets.names()) == set(json.loads(run("list", "samples", "--json").stdout))


def test_without_a_kind_all_kinds_are_listed():
    found = json.loads(run("list", "--json").stdout)
    for kind, entries in found.items():
        assert entries == json.loads(run("list", kind, "--json").stdout)
    lines = run("list").stdout.splitlines()
    assert [line.rstrip(":") for line in lines if not line.startswith(" ")] == list(found)
    assert len(lines) == len(found) + sum(map(len, found.values()))
    assert set(found) >= {"mechanisms", "attacks", "methods", "samples", "workloads", "schemas"}


@pytest.mark.parametrize(
    ("recipe", "name", "bound", "write"),
    [
        ("swapping:rate=5", "swapping:rate", "[0, 1]", "0.05"),
        ("swapping:rate=100", "swapping:rate", "[0, 1]", "1"),
        ("swapping:rate=5%", "swapping:rate", "number", "0.05"),
        ("swapping:rate=0.05,neighbours=0", "swapping:neighbours", ">= 1", ""),
        ("discrete-gaussian:rho=-1", "discrete-gaussian:rho", "> 0", ""),
        ("discrete-laplace:epsilon=0", "discrete-laplace:epsilon", "> 0", ""),
        ("topdown:rho=-1", "topdown:rho", "> 0", ""),
        ("rounding:base=1", "rounding:base", ">= 2", ""),
        ("ranges:edges=3", "ranges:edges", "sequence", "[3]"),
    ],
)
def test_wrong_parameters_are_refused_when_a_mechanism_is_made(recipe, name, bound, write):
    with pytest.raises(ArgumentError) as caught:
        make_mechanism(recipe)
    assert caught.value.argument == name
    assert bound in caught.value.rule
    assert write in caught.value.advice


@pytest.mark.parametrize("recipe", ["swapping:rate=0.05", "swapping:rate=1", "swapping:rate=0"])
def test_rates_within_their_bounds_are_taken(recipe):
    assert str(make_mechanism(recipe).spec.parameters["rate"]) == recipe.partition("=")[2]
