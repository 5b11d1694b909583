"""``bayesrisk verify`` of an attack: each certificate again, and against what was published."""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.cli.app import app
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds, prove

TABLE = """school,asthma,diabetes,total
Alder,12,c,16
Birch,c,5,8
All,15,9,24
"""


def verify(*words: object) -> list[str]:
    """Return the lines that the command prints; raise what it refuses."""
    done = CliRunner().invoke(app, ["verify", *map(str, words)], catch_exceptions=True)
    if isinstance(done.exception, DataError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a published table and its attack."""
    root = tmp_path_factory.mktemp("attacked")
    (root / "schools.csv").write_text(TABLE, encoding="utf-8")
    br.attack(root / "schools.csv", root / "out", marks={"c": "1-4"}, counts="exact", accept=True)
    return root


def change(file: str, function: Callable[[Any], None]) -> Callable[[Path], None]:
    """Return a function that changes the JSON of a file of an attack."""

    def apply(folder: Path) -> None:
        path = folder / file
        document = json.loads(path.read_text(encoding="utf-8"))
        function(document)
        path.write_text(json.dumps(document), encoding="utf-8")

    return apply


def replaced(file: str, old: str, new: str) -> Callable[[Path], None]:
    """Return a function that replaces a text of a file of an attack once."""

    def apply(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    return apply


def swapped(folder: Path) -> None:
    """Swap the files of two proofs."""
    one, two = folder / "proofs/proof-0001.json", folder / "proofs/proof-0002.json"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def larger(proof: Any) -> None:
    """Raise an exact count of a proof by one."""
    count = next(one for one in proof["counts"] if one["law"] == {"law": "exact"})
    count.update(dict.fromkeys(("published", "low", "high"), count["published"] + 1))


FORGERIES = {
    "byte": (replaced("proofs/proof-0001.json", "{", "\x00"), "cannot be read"),
    "number": (change("proofs/proof-0001.json", larger), "refused"),
    "sentence": (
        change("proofs/proof-0001.json", lambda p: p.update(sentence="Nobody.")),
        "sentence: must be: Number of records",
    ),
    "listed": (replaced("proofs/proofs.csv", "exactly", "at most"), "proofs.csv says otherwise"),
    "swapped": (swapped, "proofs.csv says otherwise of it; it says"),
    "reading": (replaced("reading.toml", "1-4", "1-5"), "not the file that proofs.csv lists"),
    "missing": (lambda f: (f / "proofs/proof-0002.json").unlink(), "proof-0002.json"),
    "added": (
        lambda f: shutil.copy(f / "proofs/proof-0001.json", f / "proofs/proof-0999.json"),
        "proof-0999.json",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_proof_is_found_out(attacked: Path, tmp_path: Path, name: str):
    folder = tmp_path / "out"
    shutil.copytree(attacked / "out", folder)
    forge, message = FORGERIES[name]
    forge(folder)
    with pytest.raises(DataError, match=message):
        verify(folder)


def test_what_was_published_is_compared(attacked: Path, tmp_path: Path):
    published, folder = attacked / "schools.csv", attacked / "out"
    assert "proofs hold" in verify(folder)[0]
    first, second, *proved = verify(folder, "--published", published)
    assert "The counts that they rest on are those of" in first
    assert str(published) in first
    assert "nothing else" in second
    assert len(set(proved)) == len(proved) > 1
    other = tmp_path / "schools.csv"  # another edition: one more, wherever it is added up
    more = TABLE.replace("12,c,16", "13,c,17").replace("15,9,24", "16,9,25")
    other.write_text(more, encoding="utf-8")
    with pytest.raises(DataError, match=r"count 1: 24 in all; .* in the tables it is 25"):
        verify(folder, "--published", other)
    shutil.copytree(folder / "proofs", tmp_path / "proofs")  # the proofs alone
    assert "compare these with what was" in verify(tmp_path / "proofs")[0]


def test_a_mark_is_withheld_and_a_published_range_is_a_number(attacked: Path):
    proofs = [json.loads(f.read_text()) for f in (attacked / "out/proofs").glob("*.json")]
    laws = {c["law"]["law"] for p in proofs for c in p["counts"] if "1-4" in c["table"]}
    assert laws == {"withheld"}
    people = pd.DataFrame({"sex": ["F"] * 7 + ["M"] * 2, "ward": ["A"] * 6 + ["B"] * 3})
    schema = br.Schema.from_frame(people)
    tables = br.Workload.of(schema, [["sex"], ["ward"]])
    made = br.release(people, protection="ranges:edges=[0,1,5,10]", tables=tables).tables
    asked = br.Workload.of(schema, [["sex", "ward"]])
    found = prove(made, count_bounds(made, queries=asked), queries=asked)
    laws = {c["law"]["law"] for p in found.certificates if p for c in p["counts"]}
    assert laws == {"ranges"}


def write_tables(folder: Path) -> list[Path]:
    """Write counts by three variables with all totals, and rounded ones by two."""
    names = {"region": "NSEW", "sex": "FM", "age": "YMO"}
    counts = np.random.default_rng(3).poisson([4, 30, 9], (4, 2, 3))
    every = [[*labels, "All"] for labels in names.values()]
    sums = counts
    for axis in range(3):
        sums = np.concatenate([sums, sums.sum(axis, keepdims=True)], axis)
    full = pd.DataFrame(itertools.product(*every), columns=[*names])
    full["count"] = ["*" if 0 < n < 4 else str(n) for n in sums.ravel()]
    rounded = pd.DataFrame(itertools.product(*every[:2]), columns=["region", "sex"])
    rounded["count"] = (5 * np.floor(sums[:, :, -1] / 5 + 0.5)).astype(int).ravel()
    paths = [folder / "full.csv", folder / "rounded.csv"]
    for path, frame in zip(paths, (full, rounded), strict=True):
        frame.to_csv(path, index=False)
    return paths


@pytest.mark.parametrize("name", ["full.csv", "other.csv"])
def test_a_changed_count_of_several_files_is_named(tmp_path: Path, name: str):
    full, rounded = write_tables(tmp_path)
    laws = tmp_path / "laws.toml"
    laws.write_text('counts = "exact"\n"counts.rounded.csv" = "nearest-5"\n')
    br.attack([full, rounded], tmp_path / "out", assume=laws, accept=True)
    words = ("--published", rounded)
    assert "proofs hold" in verify(tmp_path / "out", "--published", full, *words)[0]
    lines = full.read_text(encoding="utf-8").splitlines()
    *labels, number = lines[20].split(",")
    lines[20] = ",".join([*labels, str(int(number) + 1)])
    other = tmp_path / name  # another name changes no count
    other.write_text("\n".join(lines), encoding="utf-8")
    says = rf"attacked: row 21 of {name} has {int(number) + 1}, and had {number} when attacked$"
    with pytest.raises(DataError, match=says):
        verify(tmp_path / "out", "--published", other, *words)
