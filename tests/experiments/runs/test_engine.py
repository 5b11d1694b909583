"""The engine: one way to run for every study, in pieces, on any executor, to the same bytes."""

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from studies import contents

from bayesrisk import datasets as samples, run, tabulate
from bayesrisk._base.display import arrow_table
from bayesrisk.census import (
    MeasurementCountsStudy,
    MeasurementsStudy,
    population_spec,
    simulate_population,
    write_nmf,
)
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy
from bayesrisk.census.studies.occupancy import OccupancyStudy, synthetic_households
from bayesrisk.census.studies.occupancy_attack import OccupancyAttackStudy
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, OutputError
from bayesrisk.experiments.by_place import TabulationStudy
from bayesrisk.experiments.reconstruction import ClaimsStudy, ReconstructionStudy, shard_size
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.engine import Outlook, RunSummary, Study, ends_of_shards
from bayesrisk.experiments.runs.folder import Layout
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.tables import Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

STUDIES = [
    "sweep", "reconstruct", "claims", "occupancy-attack", "occupancy-study", "measurements",
    "measurement-counts", "nation", "tabulation",
]  # fmt: skip


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """A study of each kind, of several shards."""
    at = tmp_path_factory.mktemp("inputs")
    data = samples.load_microdata("fifty-blocks")
    blocks, sizes = np.unique(data.households.geoids, return_counts=True)
    small = blocks[np.argsort(sizes, kind="stable")[:3]]
    own = data.households.take(np.flatnonzero(np.isin(data.households.geoids, small)))
    tabulate(own, Workload.named("household-dhc")).write(at / "households")
    occupancy = OccupancyStudy(seeds=(5,), blocks=6, protections=("none", "swapping"), solutions=2)
    homes = synthetic_households(occupancy, 5)[0].households
    tabulate(homes, Workload.named("household-occupancy")).write(at / "homes")
    people = simulate_population(population_spec("tract", n_blocks=6), rng=1)
    tabulate(people, Workload.named("sf1-block")).write(at / "people")
    few = {"counties": 1, "tracts": (1, 2), "block_groups": (1, 1), "blocks": (1, 3)}
    noisy = write_nmf(at / "nmf", rng=1, universe="unit", **few).folder
    spec = population_spec("tract", blocks_per_group=2, tracts_per_county=2)
    run(NationStudy(Nation(30, spec), 1), at / "nation")
    levels = Workload.named("sf1-tract", levels=["state", "tract"])
    grid = {"rho": [{"log": [0.01, 1.0], "points": 4}], "prior": [0.1]}
    return {
        "sweep": parse_config({"settings_per_shard": 1, "grid": grid}),
        "reconstruct": ReconstructionStudy(at / "people", scope="block"),
        "claims": ClaimsStudy(at / "households", columns=["size"]),
        "occupancy-attack": OccupancyAttackStudy(at / "homes", blocks_per_shard=2),
        "occupancy-study": occupancy,
        "measurements": MeasurementsStudy(noisy, prior=0.1, units_per_shard=3),
        "measurement-counts": MeasurementCountsStudy(noisy, query="detailed", top="County"),
        "nation": NationStudy(Nation(30, spec), 2),
        "tabulation": TabulationStudy(at / "nation", levels),
    }


@pytest.mark.parametrize("name", STUDIES)
def test_pieces_and_executors_do_not_matter(studies, tmp_path, name):
    study = studies[name]
    whole = run(study, tmp_path / "whole")
    assert whole.complete
    assert whole.shards == study.shards == whole.computed >= 2
    for piece in (2, 1):
        last = run(study, tmp_path / "pieces", shard=(piece, 2))
        assert last.complete == (piece == 1)
    assert last.computed < whole.computed
    with ThreadPoolExecutor(2) as pool:
        run(study, tmp_path / "threads", executor=pool)
    expected = contents(tmp_path / "whole")
    assert contents(tmp_path / "pieces") == expected
    assert contents(tmp_path / "threads") == expected
    with pytest.raises(OutputError, match=r"finished.*add --resume"):
        run(study, tmp_path / "whole")
    again = run(study, tmp_path / "whole", resume=True)
    assert (again.computed, again.resumed) == (0, whole.shards)
    assert contents(tmp_path / "whole") == expected


def test_an_unfinished_study_has_no_results(studies, tmp_path):
    first = run(studies["occupancy-study"], tmp_path, shard=(1, 2))
    assert (first.complete, first.results) == (False, None)
    assert not (tmp_path / "table.csv").exists()
    some = run(studies["claims"], tmp_path / "claims", shard=(1, 2))
    assert not some.complete
    assert not (tmp_path / "claims" / "claims.parquet").exists()


class SquaresStudy(Study):
    config: ClassVar = {"shards": 3}
    layout = Layout("table of squares", merged=("part",))

    def compute(self, shard):
        return {"part": arrow_table(pd.DataFrame({"square": [shard**2]}))}

    def facts(self, folder, *, complete):
        return {"squares": folder.frame("part")["square"].tolist()}


def test_a_study_of_ones_own(tmp_path):
    done = []
    outcome = run(SquaresStudy(), tmp_path, progress=lambda *call: done.append(call))
    assert outcome == RunSummary(str(tmp_path), 3, 3, 0, True, {"squares": [0, 1, 4]})
    assert outcome.squares == outcome.to_dict()["squares"] == [0, 1, 4]
    assert "3 of 3 shards" in repr(outcome)
    with pytest.raises(AttributeError, match="cubes"):
        outcome.cubes  # noqa: B018
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert pd.read_parquet(tmp_path / "part.parquet")["square"].tolist() == [0, 1, 4]


def test_arguments_are_checked_before_a_folder_is_made(studies, tmp_path):
    study = studies["sweep"]
    with pytest.raises(ArgumentTypeError, match="study must be a Study, got int"):
        run(3, tmp_path / "out")
    for options, text in (
        ({"shard": (0, 2)}, r"shard\[0\] must be >= 1"),
        ({"shard": 2}, "shard must be a pair"),
        ({"workers": 0}, "workers must be >= 1"),
        ({"executor": "cloud"}, "executor must be one of"),
        ({"resume": 1}, "resume must be"),
        ({"progress": 3}, "progress must be"),
    ):
        with pytest.raises(ArgumentError, match=text):
            run(study, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_small_inputs_have_many_shards():
    assert [shard_size(blocks) for blocks in (1, 40, 128, 6400, 10**6)] == [1, 1, 2, 100, 250]


def test_an_outlook_names_the_time_and_what_takes_most_of_it(monkeypatch):
    one = Outlook(("40 of 200",), {0: 120.0, 1: 300.0}, {"a": 120.0, "b": 300.0}, 300.0)
    assert one.sentences(1) == [
        "40 of 200",
        "about 2 minutes to 7 minutes with 1 worker; b takes most of it",
    ]
    three = one._replace(parts={"a": 120.0, "b": 160.0, "c": 140.0}, optional=0.0)
    assert three.sentences(1)[1] == "about 7 minutes with 1 worker; b takes longest"
    assert three._replace(seconds={}).sentences(1) == ["40 of 200"]
    assert three._replace(seconds={0: 0.5, 1: 0.1}).sentences(1)[1].count(";") == 0
    # Where others use half of the machine, and where one worker has two threads.
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 2)
    assert three.sentences(1, 0.5)[1] == "about 15 minutes with 1 worker; b takes longest"
    assert three.sentences(1, 1.5)[1] == "about 5 minutes with 1 worker; b takes longest"
    # Where others want more than is there, they may end at once, or go on.
    assert three.sentences(1, 0.5, 2.0)[1].startswith("about 7 minutes to 15 minutes with 1 worker")
    assert three.sentences(1, 1.0, 0.5)[1] == three.sentences(1)[1]  # there is room for both
    known = three._replace(unknown=("slow ones",)).sentences(1, 0.5, 2.0)
    assert known[1].startswith("more than 7 minutes with 1 worker")
    assert known[2] == "not known yet, how long it takes: slow ones"


def test_shards_end_as_workers_take_them_one_after_another(monkeypatch):
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 2)
    seconds = [16.0, 26.0, 47.0, 50.0]
    assert ends_of_shards(seconds, 1) == [16.0, 42.0, 89.0, 139.0]
    assert ends_of_shards(seconds, 2) == [16.0, 26.0, 63.0, 76.0]  # 0-16-63 and 0-26-76
    assert ends_of_shards(seconds, 8) == ends_of_shards(seconds, 8, 2.0)
    assert ends_of_shards(seconds, 8) == [32.0, 52.0, 94.0, 100.0]  # four share two processors
    assert ends_of_shards([10.0], 2) == [10.0]  # one shard is not shared
    # Two others share the two processors with two workers; one other has half of what one misses.
    assert ends_of_shards([10.0, 10.0], 2, 1.0, 2.0) == [20.0, 20.0]
    assert ends_of_shards([10.0, 10.0], 2, 1.0, 1.0) == [15.0, 15.0]
    assert ends_of_shards([10.0], 1, 1.0, 1.0) == [10.0]
    assert ends_of_shards([10.0], 1, 0.5, 1.0) == [20.0]


def test_each_worker_starts_before_its_first_shard(monkeypatch):
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 2)
    seconds = [16.0, 26.0, 47.0, 50.0]
    assert ends_of_shards(seconds, 2, start=8.0) == [24.0, 34.0, 71.0, 84.0]
    assert ends_of_shards([10.0], 1, 0.5, 0.0, 8.0) == [36.0]
    late = Outlook(seconds={0: 120.0, 1: 120.0}, optional=120.0)
    assert late.sentences(2) == ["about a minute to 2 minutes with 2 workers"]
    assert late.sentences(2, 1.0, 0.0, 120.0) == ["about 3 minutes to 4 minutes with 2 workers"]


def test_this_process_works_alone_where_that_is_sooner(monkeypatch):
    """A worker loads for 8 seconds what this process has loaded."""
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(engine.time, "process_time", lambda: 30.0)
    assert engine.fastest([7.0, 7.0], 2, (1.0, 0.0)) == (1, 1.0, 0.0, 0.0)  # 14, not 15
    assert engine.fastest([9.0, 9.0], 2, (1.0, 0.0)) == (2, 1.0, 0.0, 8.0)  # 17, not 18
    assert engine.fastest([9.0, 9.0], 1, (0.5, 2.0)) == (1, 0.5, 2.0, 0.0)
    monkeypatch.setattr(engine.time, "process_time", lambda: 2.0)
    assert engine.fastest([7.0, 7.0], 2, (1.0, 0.0)) == (2, 1.0, 0.0, 2.0)  # 9, not 14


def test_a_shard_without_a_forecast_is_as_long_as_any():
    outlook = Outlook(seconds={0: 7.0, 1: 5.0, 2: 0.0})
    assert outlook.shard_seconds([0, 1, 2]) == [7.0, 5.0, 1e-6]
    assert outlook.shard_seconds([1, 5, 6]) == [5.0, 7.0, 7.0]
    assert Outlook().shard_seconds([0, 1]) == []


def test_the_pace_of_this_process_and_of_all_others_is_measured(monkeypatch):
    monkeypatch.setattr(engine, "_pace", [(1.0, 0.0)])
    times = iter([(6.0, 108.0, 73.0), (6.0, 100.1, 73.0), (6.0, 105.0, 73.0)])
    monkeypatch.setattr(engine, "clocks", lambda: next(times))
    assert engine.pace_since((2.0, 100.0, 63.0)) == (0.5, 0.75)  # 4 and 10 - 4 seconds, of 8
    assert engine.pace_since((6.0, 100.0, 73.0)) == (0.5, 0.75)  # too short to tell
    assert engine.pace_since((5.99, 100.0, 63.0)) == (0.5, 0.75)  # it mostly waited
    monkeypatch.undo()
    process, clock, of_all = engine.clocks()
    assert 0.0 < process <= of_all
    assert clock > 0.0


def test_the_time_left_counts_what_others_have_begun(monkeypatch):
    """Two workers take 76 seconds: 60, 50 and 13 are left when shards end; those begun count."""
    now, told = [100.0], []
    monkeypatch.setattr(engine.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    seconds = dict(enumerate([16.0, 26.0, 47.0, 50.0]))
    advance = engine._timed(
        Outlook(seconds=seconds),
        range(4),
        (2, 1.0, 0.0, 0.0),
        lambda text, _: told.append(text),
        None,
    )
    for count, end in enumerate([16.0, 26.0, 63.0, 76.0], 1):
        now[0] = 100.0 + end
        advance(count, 4)
    assert told[0].startswith("about a minute with 2 workers")
    assert told[1:] == [
        "about a minute left", "about 50 seconds left", "about 20 seconds left",
        "only the results are left",
    ]  # fmt: skip
