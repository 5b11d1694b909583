"""``bayesrisk census simulate`` as a user runs it."""

import dataclasses
import json

import numpy as np

from bayesrisk import Release, Workload, make_mechanism, simulate_population, tabulate
from bayesrisk.census import population_spec, stylised_change
from bayesrisk.census.population.nation import Nation
from bayesrisk.tables import Microdata, link_years

COMMAND = (
    "census",
    "simulate",
)


def test_folder_and_summary(run, tmp_path):
    status, out, err = run("--blocks", 200, "--seed", 3, "-o", tmp_path / "p", "--set", "alpha=1/2")
    assert (status, err) == (0, "")
    population = simulate_population(population_spec("county", n_blocks=200, alpha=0.5), rng=3)
    stored = Microdata.read(tmp_path / "p")
    assert stored.persons.table == population.persons.table
    first, *lines = out.splitlines()
    assert first == "Made-up data: none of these people exists."
    assert len(lines) == 12
    assert lines[1].split() == ["population", "blocks", "people", "unique", "modal", "proportional"]
    assert [line.split()[0] for line in lines[2:9]][::6] == ["1-9", "1000+"]
    assert "(81.7)" in lines[2]
    assert f"people: {len(stored.persons)};" in out


def test_sizes_that_no_block_has_have_no_shares(run, tmp_path):
    _, out, _ = run("--preset", "tract", "--blocks", 20, "--seed", 1, "-o", tmp_path / "p")
    largest = next(line for line in out.splitlines() if line.split()[:1] == ["1000+"])
    assert largest.split()[1] == "0.0"
    assert largest.split()[5:] == ["-", "(0.2)", "-", "(60.6)", "-", "(47.9)"]


def test_json(run, tmp_path):
    status, out, _ = run("--preset", "tract", "--seed", 3, "-o", tmp_path / "p", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["all_blocks"] == 153
    assert sum(document["people"]) == len(Microdata.read(tmp_path / "p").persons)
    assert None in document["unique"]  # no block of 1000 or more among so few


def test_microdata_are_replaced_only_when_asked(run, tmp_path):
    folder, first = tmp_path / "p", ("--preset", "tract", "--blocks", 9, "-o", tmp_path / "p")
    assert run(*first, "--seed", 1)[0] == 0
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    status, out, err = run(*first, "--seed", 2)
    assert status != 0
    assert out == ""
    assert "holds microdata; add --replace to make them again" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert run(*first, "--seed", 2, "--replace")[0] == 0
    assert {file.name: file.read_bytes() for file in folder.iterdir()} != before


YEARS = ("--preset", "tract", "--blocks", 30, "--years", 10, "--seed", 3)


def test_the_same_people_ten_years_later(run, tmp_path):
    given = (*YEARS, "--change", "sex=1/4", "--json")
    status, out, _ = run(*given, "-o", tmp_path / "two")
    assert status == 0
    said = json.loads(out)
    first, later = (Microdata.read(tmp_path / "two" / name) for name in ("first", "later"))
    assert (sum(said["people"]), said["later"]) == (len(first.persons), len(later.persons))
    whole = simulate_population(population_spec("tract", n_blocks=30), rng=3)
    assert first.persons.table == whole.persons.table
    assert first.geoids().tolist() == later.geoids().tolist()
    frames = (records.to_frame() for records in (first.persons, later.persons))
    both = next(frames).merge(next(frames), on="person", suffixes=("", "_later"))
    assert len(both) == said["both"]
    assert 0 < len(both) < len(first.persons)
    assert (both["block"] == both["block_later"]).all()
    assert (both["race"] == both["race_later"]).all()
    top = both["age"].max()
    older = both["age_later"] - both["age"]
    assert older[both["age"] < top - 10].eq(10).all()
    assert np.isclose((both["sex"] != both["sex_later"]).mean(), 0.25, atol=0.1)
    # Those who read releases of both write them as one, by the law that the command states.
    law = dataclasses.replace(stylised_change(10), changes={"sex": 0.25})
    work = Workload.named("sf1-block", levels=["block"]).select(tables=["P12"])
    releases = {
        name: make_mechanism("identity").release(data, workload=work)
        for name, data in (("first", first), ("later", later))
    }
    joint = Release.combine(releases, change=law)
    own = tabulate(
        link_years(first.persons, later.persons, change=law), law.workload(work, work),
        geoids=first.geoids(),
    )  # fmt: skip
    assert joint.tables == own
    # The same seed gives the same bytes.
    run(*given, "-o", tmp_path / "again")
    for name in ("first/persons.parquet", "later/persons.parquet"):
        files = [tmp_path / folder / name for folder in ("two", "again")]
        assert files[0].read_bytes() == files[1].read_bytes()


SMALL = ("--set", "blocks_per_group=4", "--set", "tracts_per_county=2")


def test_a_nation_by_county_in_pieces(run, tmp_path):
    nation = ("--nation", "--scale", "5e-6", "--seed", 3, *SMALL)
    status, out, _ = run(*nation, "-o", tmp_path / "whole", "--json")
    document = json.loads(out)
    assert status == 0
    assert (document["all_blocks"], document["shards"], document["complete"]) == (55, 3, True)
    status, out, _ = run(*nation, "-o", tmp_path / "pieces", "--shard", "2/2")
    assert (status, "shards of other runs are missing" in out) == (0, True)
    status, out, _ = run(*nation, "-o", tmp_path / "pieces", "--shard", "1/2")
    assert (status, "(29.4)" in out, "3 of 3 parts done" in out) == (0, True, False)
    whole, pieces = (Microdata.read(tmp_path / name) for name in ("whole", "pieces"))
    assert whole.persons.table == pieces.persons.table
    assert sum(document["people"]) == len(whole.persons)
    spec = population_spec("county", blocks_per_group=4, tracts_per_county=2)
    drawn = Nation(55, spec).county(1, seed=3)
    assert Microdata.read(tmp_path / "whole" / "part-80003").persons.table == drawn.persons.table


def test_the_census_of_the_page_on_occupancy_has_violations_and_all_settings_are_named(
    run, tmp_path
):
    words = ["--preset", "tract", "--blocks", 300, "--seed", 1, "--set", "subsidised_blocks=0.3"]
    status, out, _ = run(*words, "-o", tmp_path / "p", "--json")
    found = json.loads(out)
    assert (status, found["violations"]) == (0, 6)
    homes = Microdata.read(tmp_path / "p").households.to_frame()
    people, rooms = homes["people"], homes["bedrooms"]
    above = ((people > 2) & (rooms == 1)) | ((people > 4) & (rooms == 2))
    assert (above & (homes["subsidised"] == 1)).sum() == 6
    _, text, _ = run("--help")
    fields = {field.name for field in dataclasses.fields(type(population_spec("tract")))}
    assert fields <= {*text.replace(",", " ").replace("│", " ").replace(".", " ").split()}
