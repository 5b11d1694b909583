"""Counts of a release that need not be true: refused, unless they are taken as true on purpose."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesrisk as br
from bayesrisk.census import detect_occupancy, occupancy_statistics
from bayesrisk.cli.app import app
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.by_place import ReleaseStudy, select_levels, split_by_place
from bayesrisk.experiments.reconstruction import open_tables
from bayesrisk.reconstruction import find_claims, make_attack, verify_claims
from bayesrisk.reconstruction.claims.verification import generate_claims
from bayesrisk.release import MechanismSpec, RoundingSpec, SimulationOnly, TrueCounts
from bayesrisk.tables import PublishedTables, Records, Schema, Workload, tabulate
from bayesrisk.tables.published import joined

pytestmark = pytest.mark.usefixtures("quick_figures")

WORK = Workload.named("sf1-block", levels=["tract", "block"]).select(tables=["P1", "P8"])
SHARES = {
    "sensitivity": "add-remove", "level_shares": {"tract": "1/2", "block": "1/2"},
    "table_shares": {"P1": "1/2", "P8": "1/2"},
}  # fmt: skip
SWAP = {
    "rate": "1/5", "swap_key": ["sex"], "unique_by": ["race"], "within": "tract",
    "unique_within": "tract", "unit": "person",
}  # fmt: skip
INEXACT = {
    "rounding": ("rounding", {"base": 3, "method": "nearest"}),
    "noise": ("discrete-gaussian", {"rho": 1, **SHARES}),
    "simulation": ("swapping", SWAP),
}
EXACT = {"identity": ("identity", {}), "suppression": ("suppression", {"threshold": 2})}
RUNNER = CliRunner()


def people():
    rng = np.random.default_rng(11)
    places = [f"50001010100100{i}" for i in range(3)] + ["500030101001000"]
    frame = pd.DataFrame(
        {
            "block": rng.choice(places, 60),
            "sex": rng.integers(0, 2, 60),
            "age": rng.integers(0, 90, 60),
            "race": rng.choice([1, 2, 4], 60, p=[0.8, 0.1, 0.1]),
            "hisp": 0,
        }
    )
    return Records.from_frame(frame, schema=Schema.named("sf1-person"))


def released(name):
    mechanism, parameters = (INEXACT | EXACT)[name]
    records = people()
    blocks = pd.DataFrame({"block": np.unique(records.geoids), "x": 0.0, "y": 0.0})
    microdata = br.tables.Microdata(records, None, blocks)
    return br.make_mechanism(mechanism, **parameters).release(microdata, workload=WORK, rng=2)


@pytest.fixture(scope="module")
def releases():
    return {name: released(name) for name in INEXACT | EXACT}


ONE = pd.DataFrame({"block": ["500010101001000"], "race": 1, "multiplicity": 1})
CALLS = {
    "reconstruct": lambda t, **how: br.reconstruct(t, scope="tract", **how),
    "variability": lambda t, **how: br.solution_variability(t, scope="tract-joint", **how),
    "find": lambda t, **how: find_claims(t, columns=["race"], **how),
    "generate": lambda t, **how: generate_claims(t, columns=["race"], **how),
    "verify": lambda t, **how: verify_claims(t, ONE, columns=["race"], **how),
}

#: They read a rounded count as all counts that it allows.
RANGES = {"reconstruct", "variability", "find", "generate", "verify"}


def frame_of(found):
    return found.to_frame().drop(columns="seconds", errors="ignore")


def is_assumed(found):
    return getattr(found, "problem", found).taken_as_true


@pytest.mark.parametrize("law", INEXACT)
@pytest.mark.parametrize("call", CALLS)
def test_counts_that_need_not_be_true_are_refused_and_read_as_by_hand_when_told(
    releases, call, law
):
    tables = releases[law].tables
    if law == "rounding" and call in RANGES:
        found = CALLS[call](tables)
        assert not is_assumed(found)
    else:
        with pytest.raises(ArgumentError, match=rf"'{law}'.*taken_as_true=True"):
            CALLS[call](tables)
    naive = CALLS[call](tables, taken_as_true=True)
    by_hand = CALLS[call](dataclasses.replace(tables, laws={}))
    pd.testing.assert_frame_equal(frame_of(naive), frame_of(by_hand))
    assert (is_assumed(naive), is_assumed(by_hand)) == (True, False)
    assert "published counts were" in repr(naive)
    assert "published counts were" not in repr(by_hand)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("call", CALLS)
def test_true_counts_are_proof_whether_or_not_somebody_takes_them_as_true(releases, call, name):
    tables = releases[name].tables
    for how in ({}, {"taken_as_true": True}):
        found = CALLS[call](tables, **how)
        assert not is_assumed(found)
        assert "published counts were" not in repr(found)


@pytest.mark.parametrize("law", INEXACT)
def test_attacks_by_name_refuse_as_their_functions_do(releases, law):
    for name, options in (("reconstruction", {"scope": "block"}), ("claims", {"columns": ["sex"]})):
        if law == "rounding":
            assert not is_assumed(make_attack(name, **options).run(releases[law]))
            continue
        with pytest.raises(ArgumentError, match="taken_as_true"):
            make_attack(name, **options).run(releases[law])
        assert is_assumed(make_attack(name, **options, taken_as_true=True).run(releases[law]))


def test_tables_in_use_decide():
    """Blocks are exact here and tracts are not; P1 of tracts is, and P8 is not."""
    laws = {
        ("block", "P1"): TrueCounts(),
        ("block", "P8"): TrueCounts(),
        ("tract", "P1"): TrueCounts(),
    }
    spec = MechanismSpec("mine", {}, laws, RoundingSpec(5, "nearest"))
    tables = br.Release(spec, tabulate(people(), WORK)).tables
    assert tables.laws == {("tract", "P8"): RoundingSpec(5, "nearest")}
    assert br.reconstruct(tables, scope="block").problem.taken_as_true is False
    assert find_claims(tables, columns=["race"]).taken_as_true is False
    assert not br.solution_variability(tables, scope="block").taken_as_true
    for found in (
        br.reconstruct(tables, scope="tract"),
        br.solution_variability(tables, scope="tract-bounds"),
    ):
        assert "read as ranges" in repr(found)
        assert not is_assumed(found)
    assert "at_least" in find_claims(tables, level="tract", columns=["race"]).claims
    assert "at_least" not in find_claims(tables, columns=["race"]).claims


def test_a_spec_that_says_nothing_promises_nothing():
    tables = br.Release(MechanismSpec("mine"), tabulate(people(), WORK)).tables
    assert SimulationOnly().kind == "simulation"
    assert dict(tables.laws) == dict.fromkeys(WORK.tables, SimulationOnly())
    assert tables == tabulate(people(), WORK)  # of the same counts


def homes(mechanism):
    area = br.census.population_spec("county", n_blocks=20, subsidised_blocks=1.0)
    county = br.simulate_population(area, rng=4)
    units = county.for_schema(Schema.named("household-occupancy"))
    units = br.tables.Microdata(None, units, county.blocks)
    return mechanism.release(units, workload=Workload.named("household-occupancy"), rng=1)


def test_occupancy_reads_noisy_counts_only_when_told(tmp_path):
    release = homes(br.mechanisms.BottomUp(sensitivity="change-one", allocation="das-2020"))
    for call in (
        lambda: occupancy_statistics(release.tables),
        lambda: make_attack("occupancy").run(release),
    ):
        with pytest.raises(ArgumentError, match=r"taken_as_true"):
            call()
    found = make_attack("occupancy", taken_as_true=True).run(release)
    by_hand = occupancy_statistics(dataclasses.replace(release.tables, laws={}))
    assert found.status == detect_occupancy(by_hand).status
    release.write(tmp_path / "r")
    words = [
        "census", "occupancy", "attack", str(tmp_path / "r"), "-o", str(tmp_path / "out"),
        "--quiet",
    ]  # fmt: skip
    refused = RUNNER.invoke(app, words)
    assert isinstance(refused.exception, ArgumentError)
    assert "--taken-as-true" in str(refused.exception)
    assert not (tmp_path / "out").exists()
    said = json.loads(RUNNER.invoke(app, [*words, "--taken-as-true", "--json"]).stdout)
    assert said["taken_as_true"] is True
    assert said["blocks"] == len(found.geoids)


def test_occupancy_reads_a_rounded_count_as_all_that_it_allows(tmp_path):
    release = homes(br.Rounding(base=3, method="nearest"))
    found = make_attack("occupancy").run(release)
    assert "infeasible" not in found.status
    assert occupancy_statistics(release.tables).most is not None
    naive = make_attack("occupancy", taken_as_true=True).run(release)
    assert naive.violation.sum() >= found.violation.sum()
    release.write(tmp_path / "r")
    words = ["census", "occupancy", "attack", str(tmp_path / "r"), "--quiet", "--json", "-o"]
    said = json.loads(RUNNER.invoke(app, [*words, str(tmp_path / "out")]).stdout)
    assert said["taken_as_true"] is False
    assert said["statuses"] == pd.Series(found.status).value_counts().to_dict()
    sample = tmp_path / "sample.parquet"
    pd.DataFrame({"size": [1, 3], "race_ethnicity": 0, "children": [0, 1]}).to_parquet(sample)
    refused = RUNNER.invoke(app, [*words, str(tmp_path / "likely"), "--sample", str(sample)])
    assert "one number for each count" in str(refused.exception)
    assert not (tmp_path / "likely").exists()


def manifest(folder):
    return json.loads((Path(folder) / "_manifest.json").read_text())


@pytest.mark.parametrize("name", INEXACT | EXACT)
def test_tables_say_where_they_are_from_wherever_they_go(releases, tmp_path, name):
    release = releases[name]
    changed = [("block", "P8")] if name == "simulation" else WORK.tables  # swaps keep the rest
    law = release.spec.likelihood("block", "P8")
    expected = dict.fromkeys(changed, law) if not law.plain else {}
    assert dict(release.tables.laws) == expected
    release.write(tmp_path / "release")
    release.tables.write(tmp_path / "tables")
    tabulate(people(), WORK).write(tmp_path / "true")
    assert dict(br.Release.read(tmp_path / "release").tables.laws) == expected
    for folder in (tmp_path / "release", tmp_path / "tables"):
        assert dict(PublishedTables.read(folder).laws) == expected
        assert ("laws" in manifest(folder)) == bool(expected)
        assert dict(open_tables(folder).laws) == expected
        part = open_tables(folder).shard(0, "tract", 1)
        assert dict(part.laws) == expected
    assert "laws" not in manifest(tmp_path / "true")
    if name == "identity":
        same = [(tmp_path / at / "_manifest.json").read_bytes() for at in ("tables", "true")]
        assert same[0] == same[1]
    blocks = select_levels(release.tables, ["block"])
    assert dict(blocks.laws) == {key: law for key, law in expected.items() if key[0] == "block"}
    apart = [select_levels(release.tables, [level]) for level in WORK.levels]
    assert dict(joined(apart).laws) == expected


def test_releases_by_place_say_it_too(tmp_path):
    units = br.tables.Microdata(people(), None, None)
    split_by_place(units.with_places("occupied"), tmp_path / "people", level="county")
    county = Workload.named("sf1-block", levels=["state", "county", "block"]).select(tables=["P8"])
    swapping = br.make_mechanism("swapping", **{**SWAP, "within": "county"})
    for name, mechanism in (("simulation", swapping), ("identity", br.mechanisms.Identity())):
        study = ReleaseStudy(tmp_path / "people", county, mechanism, seed=1)
        br.run(study, tmp_path / name)
        tables = PublishedTables.read(tmp_path / name)
        expected = {("block", "P8"): SimulationOnly()} if name == "simulation" else {}
        assert dict(tables.laws) == dict(open_tables(tmp_path / name).laws) == expected
    words = [
        "attack", "--only", "claims", str(tmp_path / "simulation"), "-o", str(tmp_path / "out"),
        "--quiet",
    ]  # fmt: skip
    assert "taken_as_true" in str(RUNNER.invoke(app, words).exception)
    assert RUNNER.invoke(app, [*words, "--taken-as-true"]).exit_code == 0


@pytest.mark.parametrize("command", ["claims", "records"])
def test_commands_refuse_before_a_folder_is_made_and_say_what_was_assumed(
    releases, tmp_path, command
):
    for name in ("rounding", "noise", "identity"):
        releases[name].write(tmp_path / name)
    more = ["--scope", "tract", "--variability", "tract-bounds"] * (command == "records")
    more += ["--columns", "race"] * (command == "claims")

    def call(name, *options):
        out = tmp_path / f"{name}-out"
        return RUNNER.invoke(
            app,
            [
                "attack",
                "--only",
                command,
                str(tmp_path / name),
                "-o",
                str(out),
                "-q",
                *more,
                *options,
            ],
        )

    ranges = call("rounding")
    assert ranges.exit_code == 0, ranges.output
    assert "taken as true" not in ranges.stdout
    if command == "records":
        assert "published counts are read as ranges" in ranges.stdout
    refused = call("noise")
    assert isinstance(refused.exception, ArgumentError)
    assert "--taken-as-true" in str(refused.exception)
    assert not (tmp_path / "noise-out").exists()
    done = call("noise", "--taken-as-true")
    assert done.exit_code == 0, done.output
    assert "were taken as true" in done.stdout
    assert json.loads((tmp_path / "noise-out" / "config.json").read_text())["taken_as_true"]
    again = call("noise", "--taken-as-true", "--resume", "--json")
    assert json.loads(again.stdout)["taken_as_true"] is True
    for option in ([], ["--taken-as-true", "--resume"]):  # of true counts it is the same run
        exact = call("identity", *option)
        assert exact.exit_code == 0, exact.output
        assert "taken as true" not in exact.stdout


@pytest.mark.parametrize(
    "laws",
    [
        [["block", "P1"]],
        [["block", "P1", ""]],
        [["block", "P77", "noise"]],
        [["block", "P1", {"likelihood": "rounding", "base": 0}]],
        [3],
        3,
        {"block": 1},
    ],
)
def test_laws_that_are_damaged_are_refused(releases, tmp_path, laws):
    from bayesrisk._base import disk

    releases["noise"].tables.write(tmp_path / "t")
    document = {name: value for name, value in manifest(tmp_path / "t").items() if name != "seal"}
    (tmp_path / "t" / "_manifest.json").write_bytes(disk.sealed({**document, "laws": laws}))
    with pytest.raises(DataError, match=r"_manifest\.json"):
        PublishedTables.read(tmp_path / "t")


def test_laws_are_of_tables_and_likelihoods():
    tables = tabulate(people(), WORK)
    with pytest.raises(ArgumentError, match=r"laws must be of known tables.*P77"):
        dataclasses.replace(tables, laws={("block", "P77"): SimulationOnly()})
    with pytest.raises(ArgumentError, match=r"laws.*must be a Likelihood"):
        dataclasses.replace(tables, laws={("block", "P1"): ""})


def test_bounds_advise_no_option_that_they_do_not_take(releases, tmp_path):
    release = releases["noise"]
    release.write(tmp_path / "noise")

    def call(*options):
        words = ["attack", str(tmp_path / "noise"), "-o", str(tmp_path / "out"), "-q", *options]
        return RUNNER.invoke(app, words)

    for refused in (call("--only", "bounds"), call(), call("--taken-as-true")):
        text = str(refused.exception)
        assert isinstance(refused.exception, ArgumentError)
        assert "'noise'" in text
        # What is advised goes with the steps that take it, and is said with their names.
        assert "--only records --taken-as-true" in text
        assert "--only claims --taken-as-true" in text
        assert "bounds" in text
        assert not (tmp_path / "out").exists()
    assert call("--only", "records", "--taken-as-true").exit_code == 0
    with pytest.raises(ArgumentError, match="find_claims") as error:
        br.count_bounds(release.tables)
    assert "reconstruct" in str(error.value)
