"""Releases by place: each part is that of its own records, and of the whole where it should be."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from nations import write_counties
from studies import contents, run_reconstruction

from bayesrisk import Release, make_mechanism, run
from bayesrisk._base.randomness import named_stream
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskError,
    DataError,
    OutputError,
    ShardError,
)
from bayesrisk.experiments.by_place import ReleaseStudy, split_by_place
from bayesrisk.experiments.reconstruction import open_tables
from bayesrisk.mechanisms import BaseMechanism, Protected
from bayesrisk.release import MechanismSpec, TrueCounts
from bayesrisk.tables import Microdata, Workload, tabulate
from bayesrisk.tables.exchange import index_files, index_rows, manifest_digest
from bayesrisk.tables.microdata import as_microdata

pytestmark = pytest.mark.usefixtures("quick_figures")

BLOCK = Workload.named("sf1-block").select(tables=["P1", "P8"])
ALL = Workload.named("sf1-block", levels=["nation", "state", "county", "tract", "block"]).select(
    tables=["P1", "P8"]
)
INNER = ALL.select(levels=["county", "tract", "block"])
HOMES = Workload.named("household-occupancy", levels=["state", "block"])
SHARES = {"table_shares": {"P1": "1/2", "P8": "1/2"}, "sensitivity": "change-one"}
LEVELS = {"level_shares": {"county": "1/4", "tract": "1/4", "block": "1/2"}}
SWAP = {
    "rate": "1/5", "swap_key": ["size"], "unique_by": ["race"], "within": "county",
    "unique_within": "tract", "unit": "household",
}  # fmt: skip
#: Of every mechanism: what it publishes, and how it is made.
CASES = {
    "identity": (ALL, "identity", {}),
    "nearest": (INNER, "rounding", {"base": 5, "method": "nearest"}),
    "suppression": (INNER.select(tables=["P1"]), "suppression", {"threshold": 4}),
    "rounding": (INNER, "rounding", {"base": 5, "method": "random"}),
    "gaussian": (INNER, "discrete-gaussian", {"rho": "1/2", **SHARES, **LEVELS}),
    "laplace": (INNER, "discrete-laplace", {"epsilon": 1, **SHARES, **LEVELS}),
    "swapping": (ALL, "swapping", SWAP),
    "topdown": (ALL, "topdown", {"rho": 1, "level_shares": {"county": 1, "block": 1},
                                 "measurements": INNER.select(tables=["P8"]).to_dict()}),
    "bottom-up": (ALL, "bottom-up", {"sensitivity": "change-one", "budget": {"P8": "1/2"},
                                     "universe": "P1"}),
}  # fmt: skip
DETERMINISTIC = ("identity", "nearest", "suppression")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return a nation of four counties."""
    folder = tmp_path_factory.mktemp("released") / "people"
    write_counties(folder)
    return folder


def study(people, case, seed=7):
    workload, name, parameters = CASES[case]
    return ReleaseStudy(people, workload, make_mechanism(name, **parameters), seed)


@pytest.mark.parametrize("case", CASES)
def test_a_part_is_the_release_of_its_records_alone(people, tmp_path, case):
    made = run(study(people, case), tmp_path / "all")
    assert made.complete
    assert made.simulation
    workload, name, parameters = CASES[case]
    parts = Release.read(tmp_path / "all").tables
    inner = [level for level in workload.levels if level not in ("nation", "state")]
    code = "80007"
    data = Microdata.read(people / f"part-{code}")
    alone = make_mechanism(name, **parameters).release(
        data, workload=workload, rng=named_stream(7, code)
    )
    own = Release.read(tmp_path / "all" / f"part-{code}")
    assert own.simulation
    assert own.spec == alone.spec.for_tables(own.tables.counts)
    for key, counts in own.tables.counts.items():
        assert (counts != alone.tables.counts[key]).nnz == 0
    # The same bytes come from a data set of this county and no other.
    split_by_place(data, tmp_path / f"people-{code}", level="county")
    run(study(tmp_path / f"people-{code}", case), tmp_path / f"only-{code}")
    assert contents(tmp_path / f"only-{code}" / f"part-{code}") == contents(
        tmp_path / "all" / f"part-{code}"
    )
    assert set(parts.workload.levels) == set(workload.levels)
    for key in workload.tables:  # tables of coarser levels are sums of what was released
        if key[0] not in inner:
            expected = parts.counts["county", key[1]].sum(axis=0)
            assert parts.counts[key].toarray().sum(axis=0).tolist() == expected.tolist()


@pytest.mark.parametrize("case", DETERMINISTIC)
def test_without_chance_it_is_the_release_of_the_whole(people, tmp_path, case):
    run(study(people, case), tmp_path / "parts")
    workload, name, parameters = CASES[case]
    whole = make_mechanism(name, **parameters).release(
        Microdata.read(people), workload=workload, rng=1
    )
    found = Release.read(tmp_path / "parts")
    assert found.tables == whole.tables
    assert found.diagnostics == whole.diagnostics
    assert found.spec == whole.spec


def test_the_streams_of_parts_and_seeds_differ():
    drawn = {
        (seed, code): tuple(named_stream(seed, code).integers(2**62, size=4).tolist())
        for seed in (0, 1, 2**64 + 1)
        for code in ("1", "01", "80001", "80003")
    }
    assert len(set(drawn.values())) == len(drawn)


class TestBudget:
    """Counties are different people: the budget of all is that of each, and not their sum."""

    @pytest.mark.parametrize(("case", "unit", "total"), [
        ("gaussian", "rho", 0.5), ("laplace", "epsilon", 1.0), ("bottom-up", "rho", 0.5),
    ])  # fmt: skip
    def test_the_whole_states_what_each_part_does(self, people, tmp_path, case, unit, total):
        run(study(people, case), tmp_path / "out")
        parts = [Release.read(part) for part in sorted((tmp_path / "out").glob("part-[0-9]*"))]
        assert len(parts) == 4
        stated = json.loads((tmp_path / "out" / "_release.json").read_text())["diagnostics"]
        assert stated == {unit: total}
        assert [part.diagnostics for part in parts] == [{unit: total}] * 4
        whole = Release.read(tmp_path / "out")
        assert whole.diagnostics == {unit: total}
        assert make_mechanism(CASES[case][1], **CASES[case][2]).spec.mechanism == (
            whole.spec.mechanism
        )

    def test_a_record_that_moves_to_another_county_spends_no_more(self, people, tmp_path):
        """The zCDP of the noise between neighbours, from the counts that change: by Gaussians'."""
        run(study(people, "gaussian"), tmp_path / "out")
        spec = Release.read(tmp_path / "out").spec
        truth = tabulate(Microdata.read(people), INNER)
        before = Microdata.read(people).persons
        other = str(truth.geoids["block"][-1])
        assert other[:5] != before.geoids[0][:5]
        places = before.geoids
        places[0] = other
        after = tabulate(before.replace(block=places), INNER, geoids=truth.geoids["block"])
        spent = {False: 0.0, True: 0.0}  # in the county that is left, and in the other one
        for key, noise in spec.noise.items():
            off = (after.counts[key] - truth.counts[key]).tocoo()
            there = np.array([str(p) for p in truth.geoids[key[0]]])[off.coords[0]]
            for place, change in zip(there, off.data, strict=True):
                spent[place[:5] == other[:5]] += change**2 / (2 * float(noise.scale))
        assert sum(spent.values()) == pytest.approx(0.5, rel=1e-12)
        assert min(spent.values()) > 0
        assert sum(spent.values()) <= Release.read(tmp_path / "out").diagnostics["rho"] + 1e-12

    def test_diagnostics_that_differ_are_told_by_their_extremes(self, people, tmp_path):
        run(ReleaseStudy(people, INNER, Telling(), 1), tmp_path / "out")
        told = [
            Release.read(part).diagnostics["people"]
            for part in (tmp_path / "out").glob("part-[0-9]*")
        ]
        assert min(told) < max(told)
        assert Release.read(tmp_path / "out").diagnostics == {
            "people_lowest": min(told), "people_highest": max(told),
        }  # fmt: skip


class Telling(BaseMechanism):
    """A mechanism that publishes how many people a part has."""

    grain = 0

    def __init__(self):
        super().__init__(MechanismSpec("telling", others=TrueCounts()))

    def _protect(self, microdata, workload, rng):
        told = {"people": float(len(microdata.persons))}
        return Protected(tabulate(microdata, workload), diagnostics=told)


class TestReach:
    """What a mechanism says of where it acts is so, and what needs more than a part is refused."""

    @pytest.mark.parametrize("case", DETERMINISTIC)
    def test_nothing_outside_of_a_place_changes_it(self, people, case):
        workload, name, parameters = CASES[case]
        mechanism, data = make_mechanism(name, **parameters), Microdata.read(people)
        geography = workload.schema.geography
        assert geography.rank(mechanism.acts_within(workload)) >= geography.rank("county")
        elsewhere = np.array([place[:5] == "80007" for place in data.persons.geoids])
        keep = ~elsewhere | (np.arange(elsewhere.size) % 2 == 1)
        other = Microdata(data.persons.take(keep), data.households, data.blocks)
        one, two = (mechanism.release(d, workload=workload, rng=5).tables for d in (data, other))
        outside = np.array([place[:5] != "80007" for place in one.geoids["block"].tolist()])
        for table in workload.at("block"):
            counts, changed = one.counts["block", table], two.counts["block", table]
            assert (counts[outside] != changed[outside]).nnz == 0
            assert (counts[~outside] != changed[~outside]).nnz > 0

    def test_partners_of_a_swap_are_of_one_county(self, people):
        data = Microdata.read(people)
        homes, found = data.households.geoids, {}
        for within in ("county", "state"):
            mechanism = make_mechanism("swapping", **{**SWAP, "within": within, "rate": "1/2"})
            assert mechanism.acts_within(ALL) == within
            partner = mechanism.swap(data, rng=3).partner
            moved = np.flatnonzero(partner >= 0)
            found[within] = {homes[i][:5] == homes[partner[i]][:5] for i in moved}
        assert found == {"county": {True}, "state": {True, False}}

    @pytest.mark.parametrize(("name", "parameters", "workload", "words"), [
        ("swapping", {**SWAP, "within": "state"}, BLOCK, "'swapping' protects each state as a"),
        ("topdown", {"rho": 1}, ALL, "'topdown' protects each nation as a whole"),
        ("rounding", {"base": 3, "method": "random"}, ALL, "protects each nation as a whole"),
        ("suppression", {"threshold": 3}, ALL.select(levels=["state", "block"]),
         "protects each state as a whole.*have parts by state"),
        ("discrete-gaussian", {"rho": 1, "level_shares": {"state": 1},
                               "table_shares": {"P1": 1}, "sensitivity": "add-remove"},
         ALL.select(levels=["state", "block"], tables=["P1"]), "protects each state as a whole"),
    ])  # fmt: skip
    def test_what_needs_more_than_a_part_is_refused(
        self, people, tmp_path, name, parameters, workload, words
    ):
        mechanism = make_mechanism(name, **parameters)
        refused = ReleaseStudy(people, workload, mechanism, 1)
        for _ in range(2):  # the second time, too
            with pytest.raises(ArgumentError, match=words) as told:
                run(refused, tmp_path / "out")
            assert "in one piece (--whole)" in str(told.value)
        assert not (tmp_path / "out").exists()

    def test_a_mechanism_that_says_nothing_is_refused(self, people, tmp_path):
        with pytest.raises(ArgumentError, match="does not say within which places"):
            run(ReleaseStudy(people, BLOCK, Silent(), 1), tmp_path / "out")
        with pytest.raises(ArgumentError, match="acts_within of mechanism 'mine' must be one of"):
            run(ReleaseStudy(people, BLOCK, Silent("parish"), 1), tmp_path / "out")
        with pytest.raises(ArgumentTypeError, match="mechanism must be a Mechanism"):
            run(ReleaseStudy(people, BLOCK, "rounding", 1), tmp_path / "out")

    def test_records_outside_of_their_part_are_refused(self, people, tmp_path):
        """One person in two parts would spend the budget twice."""
        forged = tmp_path / "people"
        shutil.copytree(people, forged)
        Microdata.read(people / "part-80003").write(forged / "part-80001")
        rows = []
        for code in ("80001", "80003", "80005", "80007"):
            folder = forged / f"part-{code}"
            digest = manifest_digest(folder, "microdata")
            rows.append(index_rows(code, Microdata.read(folder).geoids(), 5, digest))
        for name, data in index_files("microdata", "county", rows, None).items():
            (forged / name).write_bytes(data)
        with pytest.raises(ShardError, match="part 80001 must hold places inside 80001"):
            run(study(forged, "identity"), tmp_path / "out")
        assert not (tmp_path / "out" / "_partitions.json").exists()


class Silent(BaseMechanism):
    """The tables as they are; of its places it says what it is told."""

    def __init__(self, level=None):
        super().__init__(MechanismSpec("mine", others=TrueCounts()))
        self.level = level

    def acts_within(self, workload):
        return self.level

    def _protect(self, microdata, workload, rng):
        return Protected(tabulate(as_microdata(microdata), workload))


class TestFolder:
    """A part is a release; what is the custodian's alone is in a folder that only they may read."""

    def test_nothing_confidential_is_published(self, people, tmp_path):
        run(study(people, "gaussian", seed=424242), tmp_path / "out")
        digest = json.loads((tmp_path / "out.confidential/config.json").read_text())["records"]
        files = contents(tmp_path / "out")
        assert set(files) >= {"_release.json", "_partitions.json", "part-80003/_release.json"}
        for data in files.values():
            assert digest.encode() not in data
            assert b"424242" not in data
        beside = tmp_path / "out.confidential"
        inside = [beside, *beside.rglob("*")]
        assert len(inside) > 8
        assert {(p.is_dir(), p.stat().st_mode & 0o777) for p in inside} == {
            (True, 0o700), (False, 0o600)
        }  # fmt: skip
        # What is published is read without it.
        shutil.rmtree(beside)
        assert Release.read(tmp_path / "out").tables.workload.levels == INNER.levels

    def test_it_is_attacked_by_place(self, people, tmp_path):
        workload = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
        protection = ReleaseStudy(people, workload, make_mechanism("identity"), None)
        assert not run(protection, tmp_path / "parts").simulation
        Release.read(tmp_path / "parts").write(tmp_path / "whole")
        for name in ("parts", "whole"):
            run_reconstruction(tmp_path / name, tmp_path / f"of-{name}", scope="tract")
        one, other = (tmp_path / f"of-{n}" / "records.parquet" for n in ("parts", "whole"))
        assert one.read_bytes() == other.read_bytes()

    @pytest.mark.parametrize(("file", "words"), [
        ("_release.json", "seal"), ("part-80003/_release.json", "is not the file that _release"),
        ("part-80003/_manifest.json", "is not the file that _partitions"),
        ("_partitions.json", "is not the file that _release"),
    ])  # fmt: skip
    def test_damage_is_seen(self, people, tmp_path, file, words):
        run(study(people, "nearest"), tmp_path / "out")
        path = tmp_path / "out" / file
        path.write_text(path.read_text().replace(":", ": ", 1))
        if file == "_release.json":
            document = json.loads(path.read_text())
            path.write_text(json.dumps({**document, "simulation": False}))
        with pytest.raises(DataError, match=words):
            Release.read(tmp_path / "out")
        with pytest.raises(DataError, match=words):
            open_tables(tmp_path / "out").shard(1, "county", 24)

    def test_fresh_entropy_is_kept_nowhere(self, people, tmp_path):
        for name in ("one", "two"):
            made = run(study(people, "gaussian", seed=None), tmp_path / name)
            assert not made.simulation
            assert not Release.read(tmp_path / name).simulation
        one, two = (Release.read(tmp_path / name).tables for name in ("one", "two"))
        assert one != two
        config = json.loads((tmp_path / "one.confidential/config.json").read_text())
        assert config["seed"] is None

    def test_what_stands_beside_is_of_this_release_and_no_other(self, people, tmp_path):
        beside = tmp_path / "out.confidential"
        beside.mkdir()
        (beside / "thesis").write_text("mine")
        with pytest.raises(OutputError, match="holds 'thesis'"):
            run(study(people, "gaussian"), tmp_path / "out")
        assert [path.name for path in tmp_path.rglob("*")] == ["out.confidential", "thesis"]
        run(study(people, "gaussian"), tmp_path / "kept")
        (tmp_path / "kept").rename(tmp_path / "published")
        assert Release.read(tmp_path / "published").simulation
        with pytest.raises(OutputError, match=r"kept\.confidential: belongs to .* which is gone"):
            run(study(people, "gaussian"), tmp_path / "kept", resume=True)

    def test_people_without_a_list_of_places(self, people, tmp_path):
        persons = Microdata.read(people).persons
        split_by_place(persons, tmp_path / "bare")
        with pytest.raises(ArgumentError, match="places must be given"):
            run(study(tmp_path / "bare", "gaussian"), tmp_path / "out")
        assert not (tmp_path / "out").exists()
        said = replace(study(tmp_path / "bare", "gaussian"), places="occupied")
        run(said, tmp_path / "out")
        made = Release.read(tmp_path / "out")
        assert made.spec.places == "occupied"
        assert made.tables.geoids["block"].tolist() == np.unique(persons.geoids).tolist()

    def test_another_release_does_not_go_on_with_it(self, people, tmp_path):
        run(study(people, "gaussian"), tmp_path / "out", shard=(1, 2))
        before = contents(tmp_path / "out")
        with pytest.raises(OutputError, match="other seed"):
            run(study(people, "gaussian", seed=8), tmp_path / "out", resume=True)
        with pytest.raises(OutputError, match="other mechanism"):
            run(study(people, "laplace"), tmp_path / "out", resume=True)
        assert contents(tmp_path / "out") == before
        assert run(study(people, "gaussian"), tmp_path / "out", resume=True).complete


def test_a_release_may_be_replaced_only_where_asked(people, tmp_path):
    made = make_mechanism("identity").release(
        Microdata.read(people / "part-80001"), workload=BLOCK, rng=1
    )
    made.write(tmp_path / "out")
    with pytest.raises(OutputError, match="new or an empty folder"):
        made.write(tmp_path / "out")
    made.write(tmp_path / "out", replace=True)
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds 'mine\.txt'"):
        made.write(tmp_path / "out", replace=True)
    with pytest.raises(BayesRiskError, match="replace must be True or False"):
        made.write(tmp_path / "out", replace=1)
