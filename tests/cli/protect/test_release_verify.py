"""``bayesrisk verify``: what a folder is, in words and numbers, and whether it is whole."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from oracles.mechanisms import AGES, PEOPLE, TOTAL, people_workload, population
from typer.testing import CliRunner

from bayesrisk import make_mechanism, run
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.by_place import ReleaseStudy, split_by_place
from bayesrisk.tables import Microdata, Records

ASKED = people_workload(TOTAL, AGES, levels=("tract", "block"))


def verify(*words):
    return CliRunner().invoke(app, ["verify", *map(str, words)])


def by_place(folder, seed=1, base=3):
    source = folder.with_name(f"{folder.name}-people")
    split_by_place(population(seed).persons, source, level="tract", places=PLACES)
    mechanism = make_mechanism("rounding", base=base, method="nearest")
    run(ReleaseStudy(source, ASKED, mechanism, 1), folder)


PLACES = population(1).geoids()


def test_what_a_release_is(tmp_path):
    made = make_mechanism("suppression", threshold=4).release(population(1), workload=ASKED, rng=1)
    made.write(tmp_path / "out")
    about = json.loads(verify(tmp_path / "out", "--json").stdout)
    assert (about["mechanism"], about["simulation"]) == ("suppression", True)
    assert about["places"] == {"tract": 3, "block": 12}
    assert about["list_of_places"] == "public"
    assert about["other_files"] == []
    # Counted once more, cell by cell, in the rows that are published.
    rows = pd.read_parquet(tmp_path / "out" / "part-00000.parquet")
    for part in about["tables"]:
        own = rows[(rows["level"] == part["level"]) & (rows["table"] == part["table"])]
        assert part["withheld"] == own["count"].isna().sum()
        assert part["cells"] == about["places"][part["level"]] * (
            3 if part["table"] == "ages" else 1
        )
        assert part["exact"]
    assert (
        sum(part["withheld"] for part in about["tables"])
        == about["diagnostics"]["suppressed_cells"]
    )
    words = verify(tmp_path / "out").stdout
    assert "simulation" in words
    assert "suppression, threshold 4" in words


@pytest.mark.parametrize(
    ("name", "options", "is_"),
    [
        ("identity", {}, "true counts"),
        ("rounding", {"base": 5, "method": "random"}, "multiple of 5, at random"),
        ("rounding", {"base": 5, "method": "nearest"}, "multiple of 5, the nearest"),
        (
            "discrete-laplace",
            {"budgets": {level: {"total": 1, "ages": "1/2"} for level in ("tract", "block")},
             "sensitivity": "add-remove"},
            "discrete Laplace noise of scale 2",
        ),
        ("topdown", {"rho": 1}, "known by running the mechanism"),
        ("cell-key", {"ptable": [{0: 1}, {-1: "1/2", 2: "1/2"}]}, "changed by -1 to 2"),
    ],
)  # fmt: skip
def test_what_a_count_says(name, options, is_, tmp_path):
    people = population(1).persons
    made = make_mechanism(name, **options).release(people, workload=ASKED, places="occupied")
    made.write(tmp_path / "out")
    found = json.loads(verify(tmp_path / "out", "--json").stdout)
    assert is_ in found["tables"][1]["is"]
    assert found["tables"][1]["exact"] is (name == "identity")
    assert found["random"] is (name != "identity" and options.get("method") != "nearest")
    assert found["places"]["block"] == len(np.unique(people.geoids))
    assert (found["list_of_places"], found["simulation"]) == ("occupied", False)
    done = verify(tmp_path / "out")
    assert done.exit_code == 0
    assert "those with a record" in done.stdout
    assert "{" not in done.stdout  # settings in words
    assert ("Not exactly:" in done.stdout) is (name != "identity")


def test_a_release_by_place_and_its_faults(tmp_path):
    by_place(tmp_path / "out")
    by_place(tmp_path / "other", base=9)
    about = json.loads(verify(tmp_path / "out", "--json").stdout)
    assert about["places"] == {"tract": 3, "block": 12}
    assert about["parameters"] == "base 3, method 'nearest'"
    (tmp_path / "out" / "note.txt").write_text("mine")
    done = verify(tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [" is whole" in done.stdout.splitlines()[0], done.stdout.splitlines()[1]] == [
        True, "not part of the release: note.txt",
    ]  # fmt: skip
    for name in (
        "_release.json", "_partitions.json", "part-10/_release.json", "part-10/_manifest.json",
        "part-10/part-00000.parquet",
    ):  # fmt: skip
        shutil.copytree(tmp_path / "out", tmp_path / "mixed")
        shutil.copy(tmp_path / "other" / name, tmp_path / "mixed" / name)
        failed = verify(tmp_path / "mixed").exception
        assert isinstance(failed, DataError)
        assert name.removesuffix("/part-00000.parquet").split("/")[0] in str(failed)
        shutil.rmtree(tmp_path / "mixed")
    shutil.rmtree(tmp_path / "out" / "part-12")
    assert "part-12" in str(verify(tmp_path / "out").exception)


def test_records_outside_of_the_list(tmp_path):
    people = Records.from_frame(
        pd.DataFrame({"block": ["100", "120"], "sex": 0, "age": 1}), schema=PEOPLE
    )
    for level, places in (("tract", ["100", "101"]), ("county", ["100", "101"])):
        with pytest.raises(ArgumentError, match="places must hold every place with a record"):
            split_by_place(people, tmp_path / level, level=level, places=places)
    with pytest.raises(ArgumentError, match="places must be codes of 3 digits"):
        split_by_place(people, tmp_path / "a", level="tract", places=["10", "12"])
    blocks = pd.DataFrame({"block": ["100", "120"]})
    with pytest.raises(ArgumentError, match="places must not be given where microdata have"):
        split_by_place(
            Microdata(people, blocks=blocks), tmp_path / "a", level="tract", places=["100", "120"]
        )
    assert list(tmp_path.iterdir()) == []
