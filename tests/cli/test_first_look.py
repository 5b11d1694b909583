"""The command that counts rare records, against the function."""

import json

import pandas as pd
from typer.testing import CliRunner

from bayesrisk import Records, Schema, datasets
from bayesrisk.cli.app import app
from bayesrisk.risk import first_look

KEYS = ["region", "age"]


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_files_of_any_form_give_the_same(tmp_path):
    folder = datasets.path("hospital")
    frame = pd.read_csv(folder / "records.csv")
    frame.to_parquet(tmp_path / "r.parquet", index=False)
    wanted = first_look(frame, keys=KEYS, sensitive="diagnosis")
    more = ("--known", "region,age", "--stated", "diagnosis")
    for i, (source, schema) in enumerate(
        (
            ("sample:hospital", ()),
            (folder / "records.csv", ()),
            (folder / "records.csv", ("--schema", folder / "schema.toml")),
            (tmp_path / "r.parquet", ()),
        )
    ):
        out = tmp_path / f"{i}.parquet"
        done = run(source, *more, *schema, "-o", out)
        assert done.exit_code == 0, done.exception
        first = ["Made-up data: none of these people exists."] if i < 3 else []  # of a sample
        assert done.stdout.splitlines() == [*first, *wanted._answer()]
        assert pd.read_parquet(out).equals(wanted.to_frame())
    said = json.loads(run("sample:hospital", *more, "--json").stdout)
    assert (said["k"], said["l"], said["unique"]) == (wanted.k, wanted.l, int(wanted.unique.sum()))
    assert sum(row["records"] for row in said["classes"]) == said["records"] == 60


def test_microdata_and_levels(tmp_path):
    done = run("sample:synthetic-county", "--known", "tract,sex,age", "--json", "--max-size", 2)
    people = datasets.load_microdata("synthetic-county").persons
    wanted = first_look(people, keys=["tract", "sex", "age"], max_size=2)
    assert json.loads(done.stdout)["unique"] == int(wanted.unique.sum()) > 0
    done = run("sample:fifty-blocks", "--known", "tenure,size", "--json")
    assert json.loads(done.stdout)["records"] > 0
    people.write(tmp_path / "p.parquet")
    done = run(tmp_path / "p.parquet", "--schema", "sf1-person", "--known", "tract,sex", "--json")
    again = Records.read(tmp_path / "p.parquet", schema=Schema.named("sf1-person"))
    assert json.loads(done.stdout)["k"] == first_look(again, keys=["tract", "sex"]).k


def test_an_empty_file(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\n")
    assert "0 records" in run(tmp_path / "e.csv", "--known", "a,b").stdout
