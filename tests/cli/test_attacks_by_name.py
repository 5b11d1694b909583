"""``bayesrisk attack --method``: an attack of the registry, the package's own or a plug-in."""

import json
import os
import sys
from pathlib import Path

import pandas as pd
import pytest
from persons import persons

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction.records.reconstruction import ReconstructionAttack
from bayesrisk.reconstruction.registry import REGISTRY
from bayesrisk.tables import Records, Schema, Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "bayesrisk-homogeneous"
RULES = Workload.named("sf1-block")


class Wanders:
    """An attack that leaves the folder in which the command was called."""

    name = "wanders"

    def __init__(self, *, fails=False):
        self._fails = fails

    def run(self, release):
        os.chdir(Path.cwd().anchor)
        if self._fails:
            raise SystemExit(0)
        return pd.DataFrame({"=place": release.tables.geoids["block"]})


@pytest.fixture
def records():
    frame = persons(1, 16, [f"01001020100100{i}" for i in range(8)])
    return Records.from_frame(frame, schema=Schema.named("sf1-person"))


@pytest.fixture
def release(records, tmp_path, monkeypatch):
    """Exact tables as a release in the current folder."""
    made = make_mechanism("none").release(records, workload=RULES, places="occupied")
    made.write(tmp_path / "release")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def registered(monkeypatch):
    """The attack of the documentation, and one of this file, for the time of a test."""
    monkeypatch.syspath_prepend(EXAMPLE)
    from bayesrisk_homogeneous import Homogeneous

    monkeypatch.setattr(REGISTRY, "_registered", {"homogeneous": Homogeneous, "wanders": Wanders})
    yield
    sys.modules.pop("bayesrisk_homogeneous", None)


def test_the_own_attack_gives_the_records_that_python_gives(run, release):
    status, said, _ = run(
        "attack", "release", "-o", "out", "--method", "reconstruction:scope=block"
    )
    assert status == 0
    found = pd.read_csv("out/reconstruction.csv", dtype={"block": "str"})
    expected = ReconstructionAttack(scope="block").run(release).to_frame()
    assert len(found) == len(expected) > 0
    pd.testing.assert_frame_equal(found, expected.reset_index(drop=True), check_dtype=False)
    assert f"{len(expected)} rows in out/reconstruction.csv" in said


def test_the_attack_of_the_page_finds_places_where_all_are_alike(run, records, release, registered):
    recipe = "homogeneous:level=block,table=P8"
    status, said, _ = run("attack", "release", "-o", "out", "--method", recipe, "--json")
    assert status == 0
    # Counted from the records: places whose people have one race and origin.
    frame = records.to_frame()
    kinds = frame.groupby("block")[["race", "hisp"]].apply(lambda part: len(part.drop_duplicates()))
    alike = kinds.index[kinds == 1]
    people = frame["block"].value_counts()[alike]
    assert 0 < len(alike) < frame["block"].nunique()
    found = pd.read_csv("out/homogeneous.csv", dtype={"block": "str"})
    document = json.loads(said)
    assert document == {"method": "homogeneous", "rows": len(alike), "file": "out/homogeneous.csv"}
    assert dict(zip(found["block"], found["people"], strict=True)) == people.to_dict()


def test_an_attack_that_changes_the_folder_writes_where_it_was_called(run, release, registered):
    here = Path.cwd()
    status, _, errors = run("attack", "release", "-o", "out", "--method", "wanders")
    assert (status, errors) == (0, "")
    assert Path.cwd() == here
    assert sorted(path.name for path in (here / "out").iterdir()) == ["wanders.csv"]
    # A heading that a spreadsheet would compute is guarded.
    assert (here / "out" / "wanders.csv").read_text().splitlines()[0] == "'=place"


def test_an_attack_that_ends_the_process_is_named_and_leaves_nothing(run, release, registered):
    here = Path.cwd()
    status, said, errors = run("attack", "release", "-o", "out", "--method", "wanders:fails=true")
    assert (status, said) == (1, "")
    assert "attack 'wanders' failed: SystemExit: 0" in errors
    assert Path.cwd() == here
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tables", "--method", "homogeneous:level=block,table=P8"], "which tables is not"),
        (["release", "--method", "homogeneus"], "Did you mean 'homogeneous'?"),
        (["release", "--method", "homogeneous:level=block"], "table"),
        (["release", "--method", "homogeneous", "--only", "bounds"], "does not go with --only"),
    ],
)
def test_what_does_not_go_with_a_method_says_what_does(run, release, registered, words, part):
    release.tables.write("tables")
    status, _, errors = run("attack", *words, "-o", "out")
    assert status != 0
    assert part in errors
    assert not Path("out").exists()


def test_an_audit_asks_attacks_by_their_recipes_beside_its_own_methods(
    run, records, release, registered
):
    records.to_frame().to_csv("people.csv", index=False)
    words = ["people.csv", "--schema", "sf1-person", "--stated", "race", "--known", "sex"]
    words += ["--protection", "none", "--adversary", "outsider", "--targets", "9"]
    words += ["--only", "P8", "-o", "audit"]
    recipe = "homogeneous:level=block,table=P8"
    status, _, errors = run("audit", *words, "--method", f"{recipe},majority")
    assert status == 0, errors
    told = pd.concat(map(pd.read_parquet, sorted(Path("audit").rglob("*statements*.parquet"))))
    assert set(told["attack"]) == {recipe, "majority"}
    mine = told[told["attack"] == recipe]
    assert set(mine["status"]) == {"proved", "unstated"}
    kinds = records.to_frame().groupby("block")["race"].nunique()
    alike = mine["place"].map(kinds == 1)
    assert (alike == (mine["status"] == "proved")).all()
    assert (mine["posterior"][alike] == mine["correct"][alike]).all()


def test_an_attack_that_fails_in_an_audit_is_named_and_leaves_no_report(
    run, records, release, registered
):
    records.to_frame().to_csv("people.csv", index=False)
    words = ["people.csv", "--schema", "sf1-person", "--stated", "race", "--protection", "none"]
    for recipe, part in (
        ("wanders:fails=true", "attack 'wanders' failed: SystemExit: 0"),
        ("wanders", "attack 'wanders' failed: run() must return columns block"),
    ):
        folder = f"audit{len(recipe)}"
        status, _, errors = run("audit", *words, "--method", recipe, "-o", folder)
        assert status != 0
        assert part in errors
        assert not Path(folder, "report.html").exists()
