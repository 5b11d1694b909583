"""The pilot of a run: what it foretells, when it ends, and that it leaves no trace."""

import time

import numpy as np
import pytest
from persons import persons
from studies import contents

from bayesrisk._base.compiling import uncollected
from bayesrisk.census import MeasurementCountsStudy, MeasurementsStudy, write_nmf
from bayesrisk.experiments import run
from bayesrisk.experiments.by_place import ReleaseStudy, split_by_place
from bayesrisk.experiments.reconstruction import BoundsStudy, ClaimsStudy, ReconstructionStudy
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.engine import evenly, forecast
from bayesrisk.experiments.sweep_document import parse_config
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Records, Schema, Workload, tabulate

PLACES = [f"010010{tract}1{block:03d}" for tract in (20100, 20200, 20300) for block in range(60)]


class Clock:
    """A processor whose time passes by what is computed: for each call, and for each unit."""

    def __init__(self, call=0.0, unit=0.01, first=0.0):
        self.now, self.calls, self._costs = 0.0, [], (call, unit, first)

    def __call__(self):
        return self.now

    def compute(self, shard, amount):
        call, unit, first = self._costs
        each = unit[shard] if isinstance(unit, list) else unit
        self.now += call + each * int(amount) + (0.0 if self.calls else first)
        self.calls.append((shard, int(amount)))
        return int(amount)


@pytest.fixture
def clock(monkeypatch):
    def made(**costs):
        one = Clock(**costs)
        monkeypatch.setattr(engine.time, "process_time", one)
        return one

    return made


@pytest.mark.parametrize("size", [8, 100, 2500])
@pytest.mark.parametrize("call", [0.0, 0.05, 0.3])
def test_the_time_of_each_call_and_of_each_unit_is_told_apart(clock, size, call):
    one = clock(call=call, unit=0.002, first=3.0)
    found = forecast(dict.fromkeys(range(40), size), one.compute)
    assert set(found) == set(range(40))
    np.testing.assert_allclose(list(found.values()), call + 0.002 * size, rtol=1e-6)


def test_shards_of_one_place_are_foretold_by_some_all_over_the_run(clock):
    rng = np.random.default_rng(3)
    costs = np.sort(rng.lognormal(-3.0, 1.0, 400)).tolist()  # the first are the easiest
    one = clock(unit=costs)
    found = forecast(dict.fromkeys(range(400), 1.0), one.compute, seconds=3.0)
    assert 0.5 < sum(found.values()) / sum(costs) < 2.0
    assert one.now < 0.25 * sum(costs)


def test_a_pilot_ends_in_time_and_is_a_small_part_of_the_run(clock):
    one = clock(unit=0.4)
    forecast(dict.fromkeys(range(1000), 50.0), one.compute)
    assert [amount for _, amount in one.calls] == [1, 2, 4]  # 0.8 seconds, and one more part
    long = clock(unit=30.0)
    assert forecast({0: 5.0, 1: 5.0}, long.compute) == {0: 150.0, 1: 150.0}
    assert len(long.calls) == 1
    short = clock(unit=0.001)
    forecast({0: 100.0}, short.compute)
    assert [amount for _, amount in short.calls] == [1, 2, 4, 8, 16]  # a quarter of it is done


@pytest.mark.parametrize(("compiled", "found"), [(3, 0.1), (0, 25.1)])
def test_what_compiles_in_a_first_part_is_no_cost_of_the_others(
    clock, monkeypatch, compiled, found
):
    """A first part of 25 seconds counts, and is the only one, unless it wrote kernels."""
    monkeypatch.setattr(engine, "compiled_since", lambda _: compiled)
    one = clock(unit=0.1, first=25.0)
    expected = pytest.approx(dict.fromkeys(range(100), 8.0 * found))
    assert forecast(dict.fromkeys(range(100), 8.0), one.compute) == expected
    assert (len(one.calls) == 1) == (not compiled)


@pytest.mark.parametrize("work", [{}, {0: 0.0, 1: 0.0}, {0: 1.0, 1: 2.0}])
def test_a_run_of_which_no_part_is_small_is_not_foretold(clock, work):
    one = clock()
    assert forecast(work, one.compute) == {}
    assert one.calls == []


def test_a_part_that_fails_is_left_to_the_run(clock):
    one = clock(unit=0.01)

    def compute(shard, amount):
        if amount > 3:
            raise ValueError("this place")
        return one.compute(shard, amount)

    assert forecast({0: 100.0}, compute) == pytest.approx({0: 1.0})

    def fails(shard, amount):
        raise ValueError("each place")

    assert forecast({0: 100.0}, fails) == {}
    assert forecast({0: 100.0}, lambda *_: 0) == {}

    def asked(shard, amount):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forecast({0: 100.0}, asked)


@pytest.mark.parametrize(("size", "amount"), [(1, 1), (7, 3), (7, 7), (7, 20), (1000, 4), (9, 0.2)])
def test_some_of_a_shard_lie_all_over_it(size, amount):
    found = evenly(size, amount)
    assert len(found) == max(1, min(size, int(amount)))
    assert sorted(set(found)) == found
    gaps = np.diff([-1 - found[0], *found, 2 * size - 1 - found[-1]])
    assert 0 <= found[0] <= found[-1] < size
    assert gaps.max() - gaps.min() <= 2


SWEEP = {
    "quantities": ["marginal_risk", "simulated_marginal_posterior"],
    "simulation": {"releases": 2000},
    "settings_per_shard": 4,
    "grid": {"rho": [round(0.01 * 1.2**step, 6) for step in range(24)], "prior": [0.1, 0.01]},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Tables of 180 blocks in three tracts, the same people by tract, and noisy measurements."""
    folder = tmp_path_factory.mktemp("pilot")
    people = Records.from_frame(persons(1, 1500, PLACES), schema=Schema.named("sf1-person"))
    tabulate(people, Workload.named("sf1-block")).write(folder / "tables")
    split_by_place(people, folder / "people", level="tract")
    few = people.take(np.isin(people.geoids, PLACES[:8]))
    both = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    tabulate(few, both).write(folder / "few")
    write_nmf(folder / "US_Person_PL_PROD", rng=1)
    return folder


STUDIES = {
    "sweep": lambda _: parse_config(SWEEP),
    "bounds": lambda folder: BoundsStudy(folder / "tables"),
    "bounds in one shard": lambda folder: BoundsStudy(folder / "tables", blocks_per_shard=1000),
    "records": lambda folder: ReconstructionStudy(
        folder / "tables", scope="block", variability="block"
    ),
    "measurements": lambda folder: MeasurementsStudy(
        folder / "US_Person_PL_PROD", prior=0.1, units_per_shard=10
    ),
    "trees": lambda folder: MeasurementCountsStudy(
        folder / "US_Person_PL_PROD", query="hispanic * cenrace"
    ),
}


def test_claims_say_that_slower_places_may_come_and_foretell_what_is_left(inputs):
    study = ClaimsStudy(inputs / "tables", columns=["sex", "age"], max_columns=2)
    left = range(2, study.shards)  # of a run that is resumed
    found = study.outlook(left)
    assert set(found.seconds) == set(left)
    assert all(seconds > 0.0 for seconds in found.seconds.values())
    slow = "not known yet, how long it takes: places slower than those that were tried"
    assert found.sentences(1)[-1] == slow
    assert BoundsStudy(inputs / "tables").uneven == ()


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one == "trees")) for one in STUDIES]
)
def test_the_time_of_a_run_is_foretold_within_a_factor_of_three(inputs, name):
    study = STUDIES[name](inputs)
    study.compute(0)  # what is compiled is loaded
    with uncollected():  # what other tests have left takes a second to look through
        found = study.outlook(range(study.shards)).seconds
        start = time.process_time()
        for shard in range(study.shards):
            study.compute(shard)
        took = time.process_time() - start
    assert set(found) == set(range(study.shards))
    assert took / 3.0 < sum(found.values()) < 3.0 * took


def _released(folder):
    rounding, workload = make_mechanism("rounding", base=5), Workload.named("sf1-block")
    return ReleaseStudy(folder / "people", workload, rounding, seed=1, places="occupied")


@pytest.mark.parametrize(
    "made",
    [
        STUDIES["sweep"], STUDIES["bounds in one shard"], _released,
        pytest.param(STUDIES["measurements"], marks=pytest.mark.slow),
        lambda folder: ReconstructionStudy(folder / "few", scope="block"),
        lambda folder: ClaimsStudy(folder / "few", max_columns=2),
    ],
)  # fmt: skip
def test_a_pilot_changes_no_byte_of_a_run(inputs, tmp_path, made):
    said = []
    run(made(inputs), tmp_path / "told", announce=lambda text, begun: said.append((text, begun)))
    run(made(inputs), tmp_path / "plain")
    told = contents(tmp_path / "told", but=("lock",))
    assert told == contents(tmp_path / "plain", but=("lock",))
    assert any(text.endswith("left") for text, begun in said if begun)


def test_a_joint_variability_has_no_pilot(inputs):
    study = ReconstructionStudy(inputs / "few", scope="tract", variability="tract-joint")
    assert study.outlook(range(study.shards)).seconds == {}
