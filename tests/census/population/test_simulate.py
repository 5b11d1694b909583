"""Same seed, same bytes; other seeds, other people; the sample can be made again."""

import json

import numpy as np

from bayesrisk import datasets as samples
from bayesrisk.census import population_spec, simulate_population


def written(folder, population):
    population.write(folder)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_same_seed_same_bytes(tmp_path):
    first = written(tmp_path / "a", simulate_population("tract", rng=5))
    again = simulate_population(population_spec("tract"), rng=np.random.default_rng(5))
    assert written(tmp_path / "b", again) == first
    other = written(tmp_path / "c", simulate_population("tract", rng=6))
    assert set(other) == {
        "_microdata.json",
        "blocks.parquet",
        "households.parquet",
        "persons.parquet",
    }
    assert all(other[name] != first[name] for name in first)


def test_a_generator_moves_on():
    rng = np.random.default_rng(5)
    first, second = (simulate_population("tract", rng=rng).persons for _ in range(2))
    assert first.table != second.table


def test_nobody_at_all():
    population = simulate_population(population_spec("tract", occupied_blocks=0.0), rng=1)
    assert (len(population.persons), len(population.households)) == (0, 0)
    assert len(population.blocks) == 153


def test_everybody_in_group_quarters_or_nobody():
    none = simulate_population(population_spec("tract", quarters_blocks=0.0), rng=1)
    assert not none.persons.table.column("gq").to_numpy().any()
    some = simulate_population(population_spec("tract", quarters_blocks=1.0), rng=1)
    share = (some.persons.table.column("gq").to_numpy() > 0).mean()
    assert 0.2 < share < 0.8


def test_the_sample_can_be_made_again():
    catalogue = json.loads((samples.folder() / "catalogue.json").read_text(encoding="utf-8"))
    recipe = catalogue["synthetic-county"]["recipe"]
    spec = population_spec(recipe["preset"], **recipe["changes"])
    made, stored = (
        simulate_population(spec, rng=recipe["rng"]),
        samples.load_microdata("synthetic-county"),
    )
    assert made.persons.table == stored.persons.table
    assert made.households.table == stored.households.table
    assert made.blocks.equals(stored.blocks)
    other = simulate_population(spec, rng=recipe["rng"] + 1)
    assert other.persons.table != stored.persons.table
