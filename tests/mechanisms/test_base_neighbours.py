"""Nothing of a release but its counts depends on who is in the records.

The folder of one data set is held against that of a neighbour which was given the first one's
counts and nothing else of it: whatever byte still differs would tell the two apart.
"""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles.mechanisms import AGES, PEOPLE, TOTAL, people_workload

from bayesrisk import Release, make_mechanism, run
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.experiments.by_place import ReleaseStudy, split_by_place
from bayesrisk.mechanisms import BaseMechanism, Protected, available_mechanisms
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import Microdata, Records, tabulate

BLOCKS = ["111", "112", "113", "121", "122", "131"]
ASKED = people_workload(TOTAL, AGES)
INNER = people_workload(TOTAL, AGES, levels=("tract", "block"))
SHARES = {
    "level_shares": {"county": "1/3", "tract": "1/3", "block": "1/3"},
    "table_shares": {"total": "1/2", "ages": "1/2"},
    "sensitivity": "add-remove",
}
OPTIONS = {
    "none": {},
    "discrete-gaussian": {"rho": "1/2", **SHARES},
    "discrete-laplace": {"epsilon": 1, **SHARES},
    "rounding": {"base": 3, "method": "random"},
    "suppression": {"threshold": 3},
    "swapping": {
        "rate": "1/2", "swap_key": ["sex"], "unique_by": ["age"], "within": "tract",
        "unique_within": "tract", "unit": "person",
    },
    "topdown": {"rho": 1},
    "bottom-up": {"sensitivity": "change-one", "budget": {"ages": "1/2"}, "universe": "total"},
}  # fmt: skip


def examples():
    """Return the ``EXAMPLE`` of every test file of this folder that has one, and its ``RULES``."""
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""
            if name in ("EXAMPLE", "RULES"):
                given = ast.literal_eval(node.value)
                yield from ((key, given[key] if name == "EXAMPLE" else {}) for key in given)


OPTIONS |= dict(examples())
#: What a mechanism says that it publishes of the records besides counts.
STATED = {"suppression": "suppressed_cells"}


def microdata(frame, places=BLOCKS):
    records = Records.from_frame(frame, schema=PEOPLE)
    return Microdata(records, blocks=pd.DataFrame({"block": places}))


def neighbours(seed):
    """Return people of six blocks, and the same without one, or with one changed.

    In every other pair it is the only resident of a block, a tract or everywhere.
    """
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 12))
    here = rng.permutation(BLOCKS)[: rng.integers(1, 6)]
    frame = pd.DataFrame(
        {
            "block": rng.choice(here, size),
            "sex": rng.integers(2, size=size),
            "age": rng.integers(90, size=size),
        }
    ).astype({"block": str, "sex": int, "age": int})
    place = rng.choice(sorted(set(BLOCKS) - set(frame["block"])) if seed % 2 else here)
    more = pd.concat([frame, pd.DataFrame({"block": [place], "sex": [0], "age": [seed]})])
    if seed % 3 == 0:  # somebody moves and ages
        frame = pd.concat([frame, pd.DataFrame({"block": [here[0]], "sex": [1], "age": [80]})])
    return more, frame


def files(folder):
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def differing(one, other, folder):
    """Return the files of a release that are not those of another one with its counts."""
    one.write(folder / "one", replace=True)
    stated = {name: one.diagnostics[name] for name in STATED.values() if name in one.diagnostics}
    try:
        tables = replace(other.tables, counts=one.tables.counts, suppressed=one.tables.suppressed)
    except ShapeError:  # counts of other places
        return {"_geographies.parquet"}
    alike = replace(other, tables=tables, diagnostics={**other.diagnostics, **stated})
    alike.write(folder / "other", replace=True)
    left, right = files(folder / "one"), files(folder / "other")
    return {name for name in {*left, *right} if left.get(name) != right.get(name)}


def test_every_mechanism_is_looked_at():
    assert set(OPTIONS) == set(available_mechanisms())


@pytest.mark.parametrize("name", OPTIONS)
def test_neighbours_differ_in_counts_alone(name, tmp_path):
    mechanism = make_mechanism(name, **OPTIONS[name])
    changed = 0
    for number in range(8):
        pair, last = [microdata(frame) for frame in neighbours(number)], None
        for seed in (number, number + 100)[: 1 + (number < 3)]:
            one, other = (mechanism.release(data, workload=ASKED, rng=seed) for data in pair)
            changed += one.tables != other.tables
            if (one, other) == last:  # nothing is drawn
                continue
            last = one, other
            assert differing(one, other, tmp_path) == set()
            assert one.spec.places == "public"
            assert set(one.diagnostics) - {"rho", "epsilon"} <= {STATED.get(name)}
            if name == "suppression":  # a fact about the tables
                cells = sum(one.tables.hidden(*key).nnz for key in ASKED.tables)
                assert one.diagnostics["suppressed_cells"] == cells
    # Else nothing was compared; of so few people every count is below 10.
    assert changed > 5 or name == "ons-10-5"


@pytest.mark.parametrize("name", OPTIONS)
def test_the_order_of_records_decides_nothing(name, tmp_path):
    mechanism = make_mechanism(name, **OPTIONS[name])
    for number in range(6):
        more = pd.concat([neighbours(number)[0], neighbours(number + 50)[0]])
        shuffled = more.sample(frac=1.0, random_state=number)
        made = (
            mechanism.release(microdata(f), workload=ASKED, rng=number) for f in (more, shuffled)
        )
        for release, folder in zip(made, ("one", "other"), strict=True):
            release.write(tmp_path / folder, replace=True)
        assert files(tmp_path / "one") == files(tmp_path / "other")


@pytest.mark.parametrize("name", OPTIONS)
def test_the_seed_and_the_spec_decide(name):
    data, mechanism = microdata(neighbours(5)[0]), make_mechanism(name, **OPTIONS[name])
    made, other = (mechanism.release(data, workload=ASKED, rng=seed) for seed in (1, 2))
    again = make_mechanism(made.spec.mechanism, **made.spec.parameters)
    assert again.release(data, workload=ASKED, rng=np.random.default_rng(1)) == made
    assert again.release(data, workload=ASKED, rng=1).simulation
    assert not again.release(data, workload=ASKED).simulation
    assert (made.tables == other.tables) == (
        not any(law.random for law in made.spec.tables.values())
    )
    if hasattr(mechanism, "prepare"):
        prepared = mechanism.prepare(data, workload=ASKED)
        assert [prepared.draw(seed) for seed in (1, 2, 1)] == [made, other, made]
        assert not prepared.draw().simulation


def normal(data):
    """Return a JSON document without what follows from counts: digests, rows, signs."""
    text = re.sub(r"[0-9a-f]{64}", "digest", data.decode())
    return re.sub(r'"(rows|negative|suppressed_cells)": [^,\n]*', r"\1", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_neighbours_by_place_differ_in_counts_alone(name, tmp_path):
    options = OPTIONS[name]
    if "level_shares" in options:
        options = {**options, "level_shares": {"tract": "1/2", "block": "1/2"}}
    if name == "rules-by-table":
        options = {"rules": {k: v for k, v in options["rules"].items() if k != "county"}}
    mechanism = make_mechanism(name, **options)
    for number in (1, 3, 5):
        folders = []
        for which, frame in enumerate(neighbours(number)):
            people = Records.from_frame(frame, schema=PEOPLE)
            folders.append(tmp_path / f"{number}-{which}")
            source = tmp_path / f"people-{number}-{which}"
            split_by_place(people, source, level="tract", places=BLOCKS)
            run(ReleaseStudy(source, INNER, mechanism, number), folders[-1])
        left, right = map(files, folders)
        assert set(left) == set(right)
        assert {file.split("/")[0] for file in left} >= {"part-11", "part-12", "part-13"}
        assert left["_places.parquet"] == right["_places.parquet"]
        for file in ("_partitions.json", "_release.json"):
            assert normal(left[file]) == normal(right[file])
        for part in ("part-11", "part-12", "part-13"):
            one, other = (Release.read(folder / part) for folder in folders)
            assert differing(one, other, tmp_path / part) == set()


class Telling(BaseMechanism):
    """A mechanism whose counts are noise, and which says how many places have a record."""

    def __init__(self):
        super().__init__(MechanismSpec("telling"))

    def _protect(self, microdata, workload, rng):
        tables = tabulate(microdata, workload)
        counts = {key: rng.integers(0, 9, part.shape) for key, part in tables.counts.items()}
        there = float(len(np.unique(microdata.persons.geoids)))
        return Protected(replace(tables, counts=counts), diagnostics={"there": there})


def test_what_tells_neighbours_apart_is_noticed(tmp_path):
    pair = [microdata(frame) for frame in neighbours(1)]  # a lone resident leaves
    one, other = (Telling().release(data, workload=ASKED, rng=1) for data in pair)
    assert differing(one, other, tmp_path) == {"_manifest.json", "_release.json"}
    gaussian = make_mechanism("discrete-gaussian", **OPTIONS["discrete-gaussian"])
    one, other = (gaussian.release(data, workload=ASKED, rng=1, places="occupied") for data in pair)
    assert one.spec.places == "occupied"
    assert len(one.tables.geoids["block"]) == len(other.tables.geoids["block"]) + 1
    assert differing(one, other, tmp_path) == {"_geographies.parquet"}


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"none"}))
def test_records_without_a_list_of_places_are_refused(name):
    mechanism = make_mechanism(name, **OPTIONS[name])
    people = Records.from_frame(neighbours(4)[0], schema=PEOPLE)
    refused = "places must be given where records come without a public list"
    with pytest.raises(ArgumentError, match=refused):
        mechanism.release(people, workload=ASKED, rng=1)
    listed = mechanism.release(people, workload=ASKED, rng=1, places=reversed(BLOCKS))
    assert listed.tables.geoids["block"].tolist() == BLOCKS
    assert listed == mechanism.release(
        Microdata(people, blocks=pd.DataFrame({"block": BLOCKS})), workload=ASKED, rng=1
    )
    if hasattr(mechanism, "prepare"):
        with pytest.raises(ArgumentError, match=refused):
            mechanism.prepare(people, workload=ASKED)
        assert mechanism.prepare(people, workload=ASKED, places=BLOCKS).draw(1) == listed
    lived = sorted(set(people.geoids.tolist()))
    with pytest.raises(ArgumentError, match=f"places must hold every place .*'{lived[0]}'"):
        mechanism.release(people, workload=ASKED, rng=1, places=lived[1:] or ["999"])


def test_what_is_published_as_it_is_says_so():
    people = Records.from_frame(neighbours(4)[0], schema=PEOPLE)
    made = make_mechanism("identity").release(people, workload=ASKED, rng=1)
    assert made.spec.places == "occupied"
    assert made.tables.geoids["block"].tolist() == sorted(set(people.geoids.tolist()))
    assert json.loads(json.dumps(made.spec.to_dict()))["places"] == "occupied"


@pytest.mark.parametrize(
    ("places", "found"),
    [
        (["1111", "112"], "places must be codes of one level .* got"),
        ([], "places must be codes .* got none"),
        ([1.5], "places must hold text"),
    ],
)
def test_bad_lists_of_places(places, found):
    people = Records.from_frame(neighbours(4)[0], schema=PEOPLE)
    with pytest.raises(ArgumentError, match=found):
        make_mechanism("rounding", base=3, method="nearest").release(
            people, workload=ASKED, rng=1, places=places
        )
