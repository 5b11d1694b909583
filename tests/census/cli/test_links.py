"""The reidentify command, from tables to confirmed links."""

import json

import pytest
from persons import persons
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments.pages import fragment

pytestmark = pytest.mark.usefixtures("quick_figures")

RUNNER = CliRunner()


def people():
    blocks = [10010201001000, 10010201001001, 10010201001002]
    frame = persons(2, 60, blocks, shares=[0.8, 0.1, 0.1], hispanic=0.1)
    return frame.assign(person=[f"p{i}" for i in range(60)])


def run(*arguments):
    return RUNNER.invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    people().to_parquet(folder / "truth.parquet", index=False)
    people()[["block", "sex", "age", "person"]].to_parquet(folder / "known.parquet", index=False)
    tables, out = folder / "tables", folder / "out"
    truth = folder / "truth.parquet"
    assert (
        run(
            "release",
            "--protection",
            "none",
            truth,
            "--tables",
            "sf1-block,sf1-tract",
            "-o",
            tables,
        ).exit_code
        == 0
    )
    options = ["--scope", "tract", "--variability", "tract-bounds", "--quiet"]
    assert run("attack", "--only", "records", tables, "-o", out, *options).exit_code == 0
    return folder


def attack(files, output, *more):
    return run(
        "attack", "--only", "links", files / "out", "--adversary", files / "known.parquet",
        "--truth", files / "truth.parquet", "--dialect", "schema", "-o", output, *more,
    )  # fmt: skip


def test_from_tables_to_confirmed_links(files, tmp_path):
    done = attack(files, tmp_path / "r", "--fragment")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("known, reconstruction: ")
    assert "of 60 putative of 60 persons: precision" in lines[0]
    assert "times a guesser's without their own records" in lines[0]
    assert "times the published guesser's" in lines[0]
    assert [line.split(":")[0] for line in lines[1:3]] == ["known, MDG", "known, PRG"]
    page, part = (tmp_path / "r" / f"{name}.html" for name in ("report", "fragment"))
    assert fragment(page.read_text("utf-8")) == part.read_text("utf-8")


@pytest.mark.slow
def test_json_and_seed(files, tmp_path):
    documents = [
        json.loads(attack(files, tmp_path / str(i), "--seed", seed, "--json").stdout)
        for i, seed in enumerate((7, 7, 8))
    ]
    assert documents[0]["rates"] == documents[1]["rates"]
    assert documents[0]["rates"][0]["putative"] == 60
    manifest = json.loads((tmp_path / "2" / "manifest.json").read_text())
    assert manifest["seed"] == 8


def test_nobody_to_link_is_no_precision(files, tmp_path):
    # In the blocks of the reconstruction, but nobody there is near that age.
    lived = set(people()["age"])
    free = next(a for a in range(1, 84) if lived.isdisjoint({a - 1, a, a + 1}))
    strangers = people().assign(age=free)[["block", "sex", "age", "person"]]
    strangers.to_parquet(tmp_path / "strangers.parquet", index=False)
    done = run(
        "attack", "--only", "links", files / "out", "--adversary", tmp_path / "strangers.parquet",
        "--truth", files / "truth.parquet", "--dialect", "schema", "-o", tmp_path / "r",
    )  # fmt: skip
    assert done.exit_code == 0
    assert "0 confirmed of 0 putative of 60 persons: no precision" in done.stdout


def test_persons_of_other_places_are_refused_before_the_work(files, tmp_path):
    strangers = people().assign(block=990010001001000)
    strangers.to_csv(tmp_path / "strangers.csv", index=False)
    for known, truth, whose in (
        (tmp_path / "strangers.csv", files / "truth.parquet", "60 known persons"),
        (files / "known.parquet", tmp_path / "strangers.csv", "60 confidential records"),
    ):
        done = run(
            "attack", "--only", "links", files / "out", "--adversary", known, "--truth", truth,
            "--dialect", "schema", "-o", tmp_path / "r",
        )  # fmt: skip
        assert isinstance(done.exception, DataError)
        assert f"strangers.csv: none of the {whose} lives in a block" in str(done.exception)
        assert "first codes 990010001001000 in the file, 01001020100100" in str(done.exception)
        assert not (tmp_path / "r").exists()


def test_refusals(files, tmp_path):
    twice = attack(files, tmp_path / "r", "--adversary", files / "known.parquet")
    assert isinstance(twice.exception, ArgumentError)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").touch()
    assert isinstance(attack(files, tmp_path / "used").exception, OutputError)
    assert not (tmp_path / "r").exists()
