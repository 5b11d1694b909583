"""What is handed over with a release: every cell as CSV, a README, and checks of both."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br

WARDS = pd.DataFrame(
    {
        "ward": ["=1+1", "South"] * 20,
        "sex": ["F", "M"] * 20,
        "ill": (["no"] * 17 + ["yes"] * 3) * 2,
    }
)


def written(folder, protection="identity", **options):
    return br.release(WARDS, place="ward", protection=protection, folder=folder, **options)


def rows_of(file):
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def test_every_cell_is_there_with_its_place_and_label(tmp_path):
    written(tmp_path / "out")
    rows = rows_of(tmp_path / "out" / "tables" / "sex_ill.csv")
    assert len(rows) == 2 * 4
    counted = WARDS.value_counts().to_dict()
    for row in rows:
        place = row["name"].removeprefix("'")  # what a spreadsheet would compute is text
        sex, ill = row["cell"].split(", ")
        assert int(row["count"]) == counted.get((place, sex, ill), 0)
    assert {row["place"]: row["name"] for row in rows} == {"1": "'=1+1", "2": "South"}
    assert sum(row["count"] == "0" for row in rows) == 4
    (total,) = {row["level"] for row in rows_of(tmp_path / "out" / "tables" / "total.csv")}
    assert total == "ward"


def test_withheld_counts_are_empty_and_noisy_ones_negative(tmp_path):
    made = written(tmp_path / "held", "suppression:threshold=4")
    rows = rows_of(tmp_path / "held" / "tables" / "ill.csv")
    hidden = made.tables.hidden("ward", "ill").toarray().ravel()
    assert [row["count"] == "" for row in rows] == hidden.tolist()
    assert hidden.any()
    noisy = written(tmp_path / "noisy", "discrete-gaussian:rho=1/100", seed=1)
    counts = [int(row["count"]) for row in rows_of(tmp_path / "noisy" / "tables" / "sex_ill.csv")]
    assert counts == noisy.tables.counts["ward", "sex * ill"].toarray().ravel().tolist()
    assert min(counts) < 0


def test_the_readme_says_what_is_exact_what_is_random_and_who_drew(tmp_path):
    written(tmp_path / "out", "discrete-gaussian:rho=1")
    text = (tmp_path / "out" / "README.txt").read_text("utf-8")
    # Four tables share rho 1, each of sensitivity 1: sigma^2 is 1 / (2 / 4).
    assert "noise of sigma^2 2 in every cell" in text
    assert "those with a record" in text
    assert "NumPy, from entropy" in text
    assert "bayesrisk verify" in text
    written(tmp_path / "exact")
    text = (tmp_path / "exact" / "README.txt").read_text("utf-8")
    assert "ward total, ward sex, ward ill, ward sex * ill: true counts" in text
    assert "Nothing is random" in text
    written(tmp_path / "seed", "rounding:base=3", seed=1)
    assert "A simulation" in (tmp_path / "seed" / "README.txt").read_text("utf-8")


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in "ab":
        written(tmp_path / name, "discrete-gaussian:rho=1", seed=3)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    made = br.Release.read(tmp_path / "a")
    made.write(tmp_path / "b", replace=True)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("name", ["README.txt", "tables/sex_ill.csv"])
def test_a_changed_or_missing_file_is_refused(name, tmp_path):
    written(tmp_path / "out")
    file = tmp_path / "out" / name
    text = file.read_bytes()
    file.write_bytes(text.replace(b"1", b"7", 1))
    with pytest.raises(br.DataError, match=rf"{file.name}: is not the file that _release.json"):
        br.Release.read(tmp_path / "out")
    file.unlink()
    with pytest.raises(br.DataError, match=file.name):
        br.Release.read(tmp_path / "out")


def test_files_of_a_description_stay_in_the_folder(tmp_path):
    from bayesrisk._base import disk

    written(tmp_path / "out")
    (tmp_path / "mine.csv").write_text("x")
    document = disk.read_document(tmp_path / "out" / "_release.json")
    document["files"] = {"../mine.csv": disk.digest(tmp_path / "mine.csv")}
    (tmp_path / "out" / "_release.json").write_bytes(disk.sealed(document))
    with pytest.raises(br.DataError, match=r"files must be README.txt and tables"):
        br.Release.read(tmp_path / "out")


def test_releases_of_before_are_read(tmp_path):
    made = br.release(WARDS, place="ward", protection="identity")
    made.write(tmp_path / "old", readable=False)
    assert "files" not in json.loads((tmp_path / "old" / "_release.json").read_text())
    assert br.Release.read(tmp_path / "old").tables == made.tables


def test_names_of_files_differ_whatever_tables_are_called(tmp_path):
    schema = br.Schema.from_frame(WARDS[["sex"]])
    names = ["a b", "A_b", "a/b", "../x", "*", "?", "é" * 200]
    table = br.Workload.of(schema, ["sex"]).tables["all", "sex"]
    tables = {
        ("all", name): br.tables.Table(name, table.cells, dict(table.factors)) for name in names
    }
    people = br.Records.from_frame(WARDS[["sex"]], schema=schema)
    work = br.Workload(schema, tables)
    made = br.make_mechanism("identity").release(people, workload=work)
    made.write(tmp_path / "out")
    files = list((tmp_path / "out" / "tables").iterdir())
    assert len({file.name.casefold() for file in files}) == len(names)
    assert br.Release.read(tmp_path / "out").tables == made.tables
    assert all([int(row["count"]) for row in rows_of(file)] == [20, 20] for file in files)
    assert np.all([len(file.name) < 100 for file in files])
