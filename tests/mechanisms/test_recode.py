"""Recoding against tables of recoded records, and in audits against the same tables asked for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SCHEMA as TOWN
from oracles.mechanisms import AGES, PEOPLE, SEX, TOTAL, by_age, people_workload, population

from bayesrisk import Release, run
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.experiments.audit import AuditStudy, Protection, read_audit
from bayesrisk.experiments.by_place import ReleaseStudy, split_by_place
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.recode import Recode, recoded_table
from bayesrisk.release import SimulationOnly, TrueCounts
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion, release_differences
from bayesrisk.risk.audit.constructions import constructions
from bayesrisk.risk.audit.population import mean_errors
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload, tabulate

EXAMPLE = {"recode": {"level": "block", "groups": {"age": [0, 65]}}}
TENS = by_age("tens", list(range(0, 90, 10)))
CROSS = Table(
    "cross",
    tuple(f"{sex} {edge}" for sex in "mf" for edge in range(0, 90, 10)),
    {
        "sex": np.repeat(np.eye(2, dtype=int), 9, axis=0),
        "age": np.tile(TENS.factors["age"], (2, 1)),
    },
)
ASKED = people_workload(TOTAL, SEX, TENS, CROSS)


def counted(data, level, group_of):
    """Return the records of each place with each value, by a group-by of the recoded frame."""
    frame = data.persons.to_frame()
    width = PEOPLE.geography.width(level)
    place, value = frame["block"].str[:width], frame.apply(group_of, axis=1)
    return pd.crosstab(place, value)


@pytest.mark.parametrize(
    "groups", [[0, 30, 60], [[*range(30)], [*range(30, 60)], [*range(60, 90)]]]
)
def test_counts_are_those_of_recoded_records(groups):
    data = population(3)
    made = Recode(groups={"age": groups}).release(data, workload=ASKED, rng=1)
    assert list(made.tables.workload.at("tract")) == [
        "total",
        "sex",
        "tens recoded",
        "cross recoded",
    ]
    assert made.spec.true_counts
    for level in ASKED.levels:
        ages = counted(data, level, lambda r: r.age // 30)
        found = made.tables.counts[level, "tens recoded"].toarray()
        there = made.tables.geoids[level]
        assert found[np.isin(there, ages.index)].tolist() == ages.to_numpy().tolist()
        assert not found[~np.isin(there, ages.index)].any()
        both = counted(data, level, lambda r: r.sex * 3 + r.age // 30)
        found = made.tables.counts[level, "cross recoded"].toarray()
        assert found[np.isin(there, both.index)].tolist() == both.to_numpy().tolist()
    plain = tabulate(data, ASKED)
    for name in ("total", "sex"):
        assert (made.tables.counts["block", name] != plain.counts["block", name]).nnz == 0


def test_two_attributes_and_names():
    made = Recode(groups={"sex": [[0, 1]], "age": [0, 30]}).published(ASKED).at("block")
    assert list(made) == ["total", "sex recoded", "tens recoded", "cross recoded"]
    assert made["sex recoded"].cells == ("all",)  # both sexes were a cell already
    assert made["tens recoded"].cells == (
        "tens-0 + tens-10 + tens-20",
        "tens-30 + tens-40 + tens-50 + tens-60 + tens-70 + tens-80",
    )
    assert made["cross recoded"].cells[1] == "m 30 + ... + f 80"
    assert made["cross recoded"].factors["sex"].tolist() == [[1, 1], [1, 1]]
    twice = Recode(groups={"sex": [[0, 1]], "age": [0, 30]})
    again = twice.published(twice.published(ASKED))
    assert again == twice.published(ASKED)


@pytest.mark.parametrize(
    ("weights", "left"),
    [
        ([[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]]),  # nothing to add
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 0, 0], [0, 0, 1, 1]]),
        ([[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]], [[1, 1, 1, 1], [1, 1, 0, 0]]),
        ([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]], [[1, 1, 0, 0]]),  # the group is a cell
        ([[2, 0, 0, 0], [0, 2, 0, 0]], [[2, 2, 0, 0]]),
        ([[1, 0, 0, 0]], None),  # the rest of the group is in no cell
        ([[1, 0, 1, 1], [0, 1, 0, 0]], None),  # a cell cuts a group and has others
        ([[2, 0, 0, 0], [0, 1, 0, 0]], None),  # weights that are not alike
        ([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]], None),  # one of the group is there twice
    ],
)
def test_cells_are_added_within_groups_or_the_table_goes(weights, left):
    table = Table("t", tuple("abcd"[: len(weights)]), {"x": np.array(weights)})
    made = recoded_table(table, {"x": np.array([0, 0, 1, 1])})
    assert (made if made is None else made.factors["x"].tolist()) == left
    assert (made is table) == (weights == left)


def test_levels_that_are_finer_are_not_published(tmp_path):
    data = population(3)
    made = Recode(level="tract").release(data, workload=ASKED)
    assert made.tables.workload == ASKED.select(levels=["county", "tract"])
    assert made.tables == tabulate(data, ASKED.select(levels=["county", "tract"]))
    made.write(tmp_path / "made")
    again = Release.read(tmp_path / "made")
    assert again.tables == made.tables
    assert again.spec == made.spec
    spec = Recode(level="tract").spec
    assert spec.others == SimulationOnly(drawn=False)
    assert not spec.others.random
    assert set(made.spec.tables.values()) == {TrueCounts()}


@pytest.mark.parametrize("options", [{"level": "block"}, {"level": "tract"}, {}])
def test_by_place_it_is_the_release_of_the_whole(options, tmp_path):
    data = population(3)
    asked = ASKED.select(levels=["county", "tract", "block"])
    mechanism = Recode(groups={"age": [0, 30]}, **options)
    split_by_place(data.persons, tmp_path / "people", level="county", places=data.geoids())
    run(ReleaseStudy(tmp_path / "people", asked, mechanism, 1), tmp_path / "made")
    assert Release.read(tmp_path / "made").tables == mechanism.release(data, workload=asked).tables
    if options.get("level") == "tract":
        split_by_place(data.persons, tmp_path / "tracts", level="tract", places=data.geoids())
        with pytest.raises(ArgumentError, match="inside a tract"):
            run(ReleaseStudy(tmp_path / "tracts", asked, mechanism, 1), tmp_path / "no")


TOWN_R = Table("R", ("a", "b", "c"), {"race": np.eye(3, dtype=int)})
TOWN_S = Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)})
TOWN_RS = Table(
    "RS",
    tuple(f"{r}{s}" for r in "abc" for s in "mf"),
    {
        "race": np.repeat(np.eye(3, dtype=int), 2, axis=0),
        "sex": np.tile(np.eye(2, dtype=int), (3, 1)),
    },
)


def townspeople():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, 12),
            "race": rng.integers(0, 3, 12),
            "block": ["100"] * 6 + ["101"] * 5 + ["102"],
        }
    )
    return Records.from_frame(frame, schema=TOWN)


def audited(*tables):
    asked = Workload(TOWN, {("block", table.name): table for table in tables})
    return AuditedPopulation(townspeople(), AuditQuestion(asked, ("race",), EVERYBODY, 3.0), seed=1)


RECODE = Recode(groups={"race": [[1, 2]]})


def test_an_audit_concludes_what_it_does_of_the_same_tables():
    """The detailed workload, recoded, and the coarse one as it is: one release, one belief."""
    asked = audited(TOWN_S, TOWN_RS)
    made = asked.release("p", 0, RECODE)
    merged = made.tables.workload.at("block")["RS recoded"]
    coarse = audited(TOWN_S, merged)
    rows = np.array([0, 7, 11])
    one = asked.statements("p", "p", 0, RECODE, made, rows)
    identity = make_mechanism("identity")
    true = coarse.release("p", 0, identity)
    other = coarse.statements("p", "p", 0, identity, true, rows)
    assert set(one["attack"]) == {"likelihood"}
    assert not one["randomised"].any()
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)
    everything = asked.statements("p", "p", 0, identity, asked.release("p", 0, identity), rows)
    assert not np.allclose(
        one.loc[one["correct"], "posterior"], everything.loc[everything["correct"], "posterior"]
    )


def test_the_cost_is_that_of_equal_shares():
    asked = audited(TOWN_R, TOWN_S, TOWN_RS)
    made = asked.release("p", 0, RECODE)
    errors = mean_errors(asked.error_sums(made)).set_index("table")
    assert set(errors.index) == {"R", "S", "RS"}
    frame = townspeople().to_frame()
    off = {"R": [], "RS": []}
    for _, here in frame.groupby("block"):
        n = here.groupby("race").size().reindex(range(3), fill_value=0)
        off["R"] += [0.0, (n[2] - n[1]) / 2, (n[1] - n[2]) / 2]
        for _, alike in [(s, here[here["sex"] == s]) for s in range(2)]:
            m = alike.groupby("race").size().reindex(range(3), fill_value=0)
            off["RS"] += [0.0, (m[2] - m[1]) / 2, (m[1] - m[2]) / 2]
    for name, distances in off.items():
        assert errors.loc[name, "error"] == pytest.approx(np.mean(np.abs(distances)))
        assert errors.loc[name, "mean_squared_error"] == pytest.approx(
            np.mean(np.square(distances))
        )
    assert errors.loc["S", "error"] == 0.0
    assert (errors["withheld"] == 0.0).all()
    differences = release_differences(made, asked.true_tables(made.tables.workload))
    assert differences["possible"].all()
    assert set(differences["table"]) == {"R recoded", "S", "RS recoded"}


def test_what_no_published_cell_holds_is_withheld():
    """A table that is gone is read from the totals that hold its cells, or not at all."""
    part = Table("part", ("b",), {"race": np.array([[0, 1, 0]])})
    for tables, withheld in (((TOWN_S, part), 1.0), ((Table("N", ("all",), {}), part), 0.0)):
        asked = audited(*tables)
        made = asked.release("p", 0, RECODE)
        assert len(made.tables.workload.tables) == 1
        errors = mean_errors(asked.error_sums(made)).set_index("table")
        assert errors.loc["part", "withheld"] == withheld
        true = asked.truth.counts["block", "part"].toarray()
        read = 0 if withheld else asked.truth.counts["block", "N"].toarray()
        assert errors.loc["part", "error"] == pytest.approx(np.abs(true - read).mean())


def test_recoded_tables_follow_from_true_ones_and_no_others_from_them():
    asked = Workload(TOWN, {("block", t.name): t for t in (TOWN_S, TOWN_RS)})
    specs = {
        "recoded": RECODE.spec,
        "rounded": make_mechanism("rounding", base=3, method="nearest").spec,
        "none": make_mechanism("identity").spec,
    }
    assert constructions(specs, asked) == [("none", "recoded"), ("none", "rounded")]


def study(folder, *protections):
    asked = Workload(TOWN, {("block", t.name): t for t in (TOWN_S, TOWN_RS)})
    townspeople().to_frame().to_csv(folder / "people.csv", index=False)
    given = {"protections": protections, "adversaries": EVERYBODY[:2], "stated": ["race"]}
    return AuditStudy(folder / "people.csv", asked, targets=6, releases=2, seed=1, **given)


def test_a_whole_audit_beside_other_protections(tmp_path):
    cell_key = {"ptable": ["0 0", "1 -1", "0 1"], "keys": 2}
    told = Protection("merged", "recode", {"groups": {"race": [[1, 2]]}})
    others = Protection("identity"), Protection("keys", "cell-key", cell_key)
    run(study(tmp_path, *others, told), tmp_path / "out")
    errors = pd.read_parquet(tmp_path / "out" / "errors.parquet")
    merged = errors[errors["protection"] == "merged"].set_index("table")["error"]
    assert set(merged.index) == {"S", "RS"}
    assert merged["S"] == 0.0 < merged["RS"]
    costs = pd.read_csv(tmp_path / "out" / "costs.csv").set_index("protection")
    assert costs.loc["identity", "error"] == 0.0 < costs.loc["merged", "error"]
    assert 0.0 < costs.loc["keys", "error"] <= 1.0
    statements, _ = read_audit(tmp_path / "out")
    readings = statements.groupby("protection")["attack"].agg(set).to_dict()
    assert readings == {
        "identity": {"likelihood"}, "merged": {"likelihood"}, "keys": {"working-error"}
    }  # fmt: skip
    random = statements.groupby("protection")["randomised"].all().to_dict()
    assert random == {"identity": False, "merged": False, "keys": True}
    checks = pd.read_csv(tmp_path / "out" / "checks.csv")
    laws = checks[checks["check"] == "law"].groupby("protection")["against"].agg(set).to_dict()
    assert laws == {
        "identity": {"block S", "block RS"},
        "keys": {"block S", "block RS"},
        "merged": {"block S", "block RS recoded"},
    }
    assert (checks.loc[checks["check"] == "law", "verdict"] == "as stated").all()
    spots = checks[checks["check"] == "spot"]
    assert set(spots["protection"]) == {"identity", "keys", "merged"}
    assert (spots["verdict"] == "agree").all()


def test_an_audit_needs_the_level_where_targets_live(tmp_path):
    tract = Protection("tracts", "recode", {"level": "tract", "groups": {"sex": [[0, 1]]}})
    asked = study(tmp_path, Protection("identity"), tract)
    both = {**asked.workload.tables, ("tract", "S"): TOWN_S}
    wide = replace(asked, workload=Workload(TOWN, both))
    with pytest.raises(ArgumentError, match="'tracts' must publish tables of level 'block'"):
        run(wide, tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({}, ArgumentError, "level or groups must be given"),
        ({"groups": {}}, ArgumentError, "groups must name at least one attribute"),
        ({"groups": {"age": []}}, ArgumentError, r"groups\['age'\] must have at least one group"),
        ({"groups": {"age": [0, 5, 5]}}, ArgumentError, "must be increasing"),
        ({"groups": {"age": [[1, 2], [2, 3]]}}, ArgumentError, "a code once"),
        ({"groups": {"age": [[1, 2], []]}}, ArgumentError, "no empty group"),
        ({"groups": {"age": "0-4"}}, ArgumentTypeError, "must be a sequence"),
        ({"groups": {"age": [1, 30]}}, ArgumentError, "must begin with 0, got 1"),
        ({"groups": {"age": [0, 90]}}, ArgumentError, r"must lie in \[0, 89\], got 90"),
        ({"groups": {"weight": [0, 90]}}, ArgumentError, "weight"),
        ({"level": "nation"}, ArgumentError, "nation"),
        ({"level": 3}, ArgumentTypeError, "level must be"),
    ],
)
def test_bad_recodes_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        Recode(**options).published(ASKED)


def test_no_table_left_is_refused():
    with pytest.raises(ArgumentError, match="leave a table of the workload, got none of 4"):
        Recode(level="county").published(ASKED.select(levels=["block"]))
    clash = Table("ages recoded", ("all",), {})
    with pytest.raises(ArgumentError, match="'ages recoded' beside 'ages'"):
        Recode(groups={"age": [0, 65]}).published(people_workload(AGES, clash))


def test_other_first_codes():
    schema = Schema("s", (Attribute("size", 4, 1),), Geography("g", ("all",), (0,)))
    table = Table("sizes", tuple("abcd"), {"size": np.eye(4, dtype=int)})
    for groups in ([1, 2, 4], [[3, 2]]):
        made = Recode(groups={"size": groups}).published(
            Workload(schema, {("all", "sizes"): table})
        )
        assert made.at("all")["sizes recoded"].cells == ("a", "b + c", "d")
