"""Audits of several populations: each is judged as it would be alone, and nothing is pooled."""

import dataclasses
import html

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from audits import SCHEMA, WORKLOAD, contents

from bayesrisk.census import SimulatedPopulation, population_spec, simulate_population
from bayesrisk.exceptions import BayesRiskError
from bayesrisk.experiments import run
from bayesrisk.experiments.audit import AuditStudy, Protection, ProtectionGoal, read_audit
from bayesrisk.experiments.audit.populations import PopulationInParts
from bayesrisk.risk import Statements
from bayesrisk.risk.audit import Adversary, AuditQuestion
from bayesrisk.tables import Records, Workload

pytestmark = pytest.mark.usefixtures("quick_figures")

WHO = [Adversary.named("linker", known=["sex"]), Adversary.named("knows-all-but-one")]
WHAT = [Protection(text) for text in ("identity", "discrete-laplace:epsilon=2")]
NAMES = ["north", "<south>"]


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    """Return files of two populations that are not alike."""
    folder, found = tmp_path_factory.mktemp("towns"), {}
    for seed, name in enumerate(NAMES):
        rng = np.random.default_rng(seed)
        shares = [[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]][seed]
        frame = pd.DataFrame(
            {
                "sex": rng.integers(0, 2, 30),
                "race": rng.choice(3, 30, p=shares),
                "block": [f"10{i}" for i in rng.integers(0, 5, 30)],
            }
        )
        found[name] = folder / f"{seed}.csv"
        frame.to_csv(found[name], index=False)
    return found


def study(population, **options):
    usual = {
        "protections": WHAT, "adversaries": WHO[1:], "stated": ["race"], "targets": 8,
        "targets_per_shard": 4, "releases": 2, "methods": ["majority", "posterior"],
    }  # fmt: skip
    return AuditStudy(population, WORKLOAD, **usual | options)


@pytest.fixture(scope="module")
def done(towns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done") / "out"
    return folder, run(study(towns), folder)


def test_each_population_is_judged_as_it_would_be_alone(towns, done, tmp_path):
    statements, summary = read_audit(done[0])
    assert list(dict.fromkeys(statements["population"])) == NAMES
    for name, file in towns.items():
        run(study(file), tmp_path / file.stem)
        alone = tmp_path / file.stem
        theirs, found = read_audit(alone)
        assert "population" not in theirs
        mine = statements[statements["population"] == name].drop(columns="population")
        assert (mine["target"] == f"{name}:" + mine["target"].str.rpartition(":")[2]).all()
        mine["target"] = mine["target"].str.rpartition(":")[2]
        keys = ["protection", "attack", "adversary", "release", "target", "statement"]
        pd.testing.assert_frame_equal(
            mine.sort_values(keys).reset_index(drop=True),
            theirs.sort_values(keys).reset_index(drop=True),
        )
        for file_name in ("measures", "comparisons", "costs", "calibration", "checks"):
            both = pd.read_csv(done[0] / f"{file_name}.csv")
            assert both.columns[0] == "population"
            part = both[both["population"] == name].drop(columns="population")
            expected = pd.read_csv(alone / f"{file_name}.csv")
            keys = list(expected.columns[expected.dtypes == expected.dtypes.iloc[0]])
            pd.testing.assert_frame_equal(
                part.sort_values(keys).reset_index(drop=True),
                expected.sort_values(keys).reset_index(drop=True),
            )
        assert (summary["population"] == name).sum() == len(found)


def test_statements_are_as_those_of_any_audit_and_targets_are_told_apart(done):
    statements, _ = read_audit(done[0])
    said = Statements(statements)
    assert said.frame["target"].nunique() == 16 == done[1].targets
    assert said.frame["population"].tolist() == statements["population"].tolist()


def test_the_report_has_a_first_screen_and_a_figure_of_each(done):
    page = (done[0] / "report.html").read_text(encoding="utf-8")
    assert page.count("<h2>north</h2>") == page.count("<h2>&lt;south&gt;</h2>") == 1
    assert "<south>" not in page
    assert page.count('<p class="lead">') == page.count('<table class="cards">') == 2
    assert page.split("<details")[0].count("<img") == 2  # one adversary
    for name in NAMES:
        assert f'alt="{name}: remaining answers of ' in html.unescape(page)
    names = {file.name for file in (done[0] / "figures").iterdir()}
    assert {"answers-against-cost-1.svg", "answers-against-cost-2.svg"} <= names


def test_names_and_digests_are_kept_and_another_population_is_another_audit(towns, done, tmp_path):
    config = study(towns).config
    assert list(config["population"]) == NAMES
    assert len(set(config["population"].values())) == 2
    changed = dict(zip(NAMES, reversed(towns.values()), strict=True))
    with pytest.raises(BayesRiskError, match="population"):
        run(study(changed), done[0], resume=True)


def test_a_goal_is_about_the_worst_population(towns, tmp_path):
    goal = ProtectionGoal(3.0, 0.5, steps=0)
    options = {"goal": goal, "protections": WHAT[1:], "methods": ["posterior"]}
    choices = {}
    for name, population in {"both": towns, **towns}.items():
        folder = tmp_path / str(len(choices))
        run(study(population, **options), folder)
        choices[name] = pd.read_csv(folder / "choice.csv").iloc[0]
    for name in NAMES:  # in every release the worst of both
        assert choices["both"]["ratio"] >= choices[name]["ratio"] - 1e-12
    worst = choices["both"]["population"]
    assert choices["both"]["answer"].count(f", {worst})") == 1


def test_a_simulated_population_is_that_of_its_seed(tmp_path):
    spec = dataclasses.replace(population_spec("tract"), n_blocks=3)
    known, again = SimulatedPopulation(spec, 1), SimulatedPopulation(spec, 1)
    workload = Workload.named("sf1-block").select(tables=["P8"])
    people = simulate_population(spec, rng=1)
    people.write(tmp_path / "people")
    found = []
    for population in (known, again, SimulatedPopulation(spec, 2), tmp_path / "people"):
        one = AuditStudy(
            population, workload, protections=WHAT[:1], adversaries=WHO[1:2], stated=["race"],
            targets=4, methods=["majority"],
        )  # fmt: skip
        folder = tmp_path / str(len(found))
        run(one, folder)
        found.append((one.config["population"], read_audit(folder)[0]))
    digests, frames = zip(*found, strict=True)
    assert digests[0] == digests[1] != digests[2]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0], frames[3])
    assert not frames[0]["target"].equals(frames[2]["target"])


def test_records_and_frames_are_judged_as_their_file_is(towns, tmp_path):
    file = towns["north"]
    frame = pd.read_csv(file, dtype={"block": str})
    records = Records.from_frame(frame, schema=SCHEMA)
    other = records.take(np.arange(len(records))[::-1])
    configs, frames = [], []
    for population in (file, records, pa.table(frame)):
        one = study(population, methods=["majority"])
        run(one, tmp_path / str(len(frames)))
        configs.append(one.config)
        frames.append(read_audit(tmp_path / str(len(frames)))[0])
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[1], frames[2])
    assert configs[1] == configs[2]
    assert configs[1]["population"] != study(other).config["population"]
    assert not configs[1]["made_up"]


@pytest.mark.slow
def test_records_come_to_processes(towns, tmp_path):
    records = Records.read(towns["north"], schema=SCHEMA)
    for workers in (1, 2):
        one = study(records, methods=["majority"])
        run(one, tmp_path / str(workers), workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize(
    ("population", "words"),
    [
        ({}, "at least one population"),
        ({" ": "people.csv"}, "name of a population"),
        ({3: "people.csv"}, "name of a population"),
        ({"a": 3}, "population"),
        (pd.DataFrame({"sex": [0], "block": ["101"]}), "column 'race'"),
        ({"a": "missing.csv"}, "missing.csv"),
    ],
)
def test_populations_that_are_refused(tmp_path, population, words):
    with pytest.raises(BayesRiskError, match=words):
        run(study(population), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_population_without_the_columns_of_the_schema_is_named(towns, tmp_path):
    lacking = tmp_path / "lacking.csv"
    pd.read_csv(towns["north"], dtype=str).drop(columns="race").to_csv(lacking, index=False)
    with pytest.raises(BayesRiskError, match=r"lacking\.csv.*race"):
        run(study(towns | {"other": lacking}), tmp_path / "out")
    simulated = SimulatedPopulation("tract", 1)
    with pytest.raises(BayesRiskError, match=f"population 'made'.*{SCHEMA.name}"):
        run(study(towns | {"made": simulated}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_population_answers_by_the_protection_and_not_by_its_name(towns):
    """Other settings under a name that was used have answers of their own."""
    question = AuditQuestion(WORKLOAD, ("race",), (Adversary.named("outsider"),))
    both = [
        Protection("1", "ranges", {"edges": [0, 6, 50]}),
        Protection("1", "threshold", {"least": 5}),
    ]

    def asked(*protections):
        town = PopulationInParts(towns["north"], question, SCHEMA, seed=1, targets=None)
        rows = town.survey.targets
        return [town.statements(one, [0], rows)["posterior"].to_numpy() for one in protections]

    together, alone = asked(*both), [asked(one)[0] for one in both]
    for found, wanted in zip(together, alone, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert not np.array_equal(*together)


def test_settings_that_are_equal_in_law_have_releases_of_their_own(towns):
    """Those of one mechanism share random numbers else, so that they are told apart the sooner."""
    question = AuditQuestion(WORKLOAD, ("race",), (Adversary.named("outsider"),))
    town = PopulationInParts(towns["north"], question, SCHEMA, seed=1, targets=None)
    alike = [Protection(name, "rounding", {"base": 3}) for name in "abc"]
    other = Protection("d", "rounding", {"base": 5})
    shared = [town.release(one, 0, 0)[1].tables for one in (*alike, other)]
    town.separate([*alike, other])
    found = [town.release(one, 0, 0)[1].tables for one in (*alike, other)]
    counts = [t.counts["block", "R"].toarray() for t in found]
    before = [t.counts["block", "R"].toarray() for t in shared]
    np.testing.assert_array_equal(before[0], before[1])
    np.testing.assert_array_equal(counts[0], before[0])
    np.testing.assert_array_equal(counts[3], before[3])
    assert len({one.tobytes() for one in counts[:3]}) == 3
