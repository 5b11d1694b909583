"""Labels with commas, quotes and signs, from a file over a release to an attack and an audit."""

import csv
import itertools
import json

import pandas as pd
import pytest

import bayesrisk as br

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("quick_figures")]

RACES = ["Black, alone", 'White "other"', "it's; x | y : z", "=1+1", "50%", "ä=ö"]
ILL = ["no", "yes, a bit", "Black"]


def test_cells_that_read_alike_are_told_apart(tmp_path):
    """Of "a" with "b, c" and "a, b" with "c", which joined labels would not tell apart."""
    frame = pd.DataFrame({"x": ["a", "a, b", "a"], "y": ["b, c", "c", "c"]})
    made = br.release(frame, protection="none", folder=tmp_path / "out")
    cells = made.tables.workload.tables["all", "x * y"].cells
    # Each cell is read as a line of a CSV file.
    words = [tuple(next(csv.reader([cell], skipinitialspace=True))) for cell in cells]
    assert words == list(itertools.product(["a", "a, b"], ["b, c", "c"]))
    again = br.Release.read(tmp_path / "out")
    assert again.tables.count("all", "x * y", "").tolist() == [1, 1, 0, 1]


def test_odd_labels_come_through_every_command(run, tmp_path):
    people = list(itertools.product(["Ward, A", 'Ward "B"'], RACES, ILL))
    frame = pd.DataFrame(people, columns=["ward", "race, group", "ill"])
    frame.to_csv(tmp_path / "odd.csv", index=False)
    out = tmp_path / "release"
    words = ("--protection", "rounding:base=3,method=nearest", "--place", "ward")
    assert run("release", tmp_path / "odd.csv", "-o", out, *words)[0] == 0
    assert run("verify", out)[0] == 0
    with (out / "tables" / "race_group.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    labels = {line["cell"].removeprefix("'") for line in lines}
    assert (labels, {line["name"] for line in lines}) == ({*RACES}, {"Ward, A", 'Ward "B"'})
    assert {line["count"] for line in lines} == {"3"}  # each label has three people in a ward
    status, said, _ = run("attack", out, "-o", tmp_path / "attack", "--json")
    assert (status, json.loads(said)["bounds"]["conflicts"]) == (0, {})
    status, _, said = run("attack", out / "tables" / "ill.csv", "-o", tmp_path / "no", "--accept")
    assert (status, f"`bayesrisk attack {out} -o OUT`" in said) == (0, True), said
    words = ("--known", '"race, group"', "--stated", "ill", "--targets", "2", "--releases", "1")
    status, _, said = run(
        "audit", tmp_path / "odd.csv", "-o", tmp_path / "audit", "--place", "ward",
        "--protection", "none", *words,
    )  # fmt: skip
    assert status == 0, said
    statements = br.read_audit(tmp_path / "audit").statements
    assert set(statements["statement"]) <= {*ILL}
