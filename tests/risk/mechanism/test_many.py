"""Many targets at once: the same numbers as one by one, whatever the protection."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from mechanism_cases import ByHand, county, leaks, tables

from bayesrisk import (
    MechanismQuestion,
    Microdata,
    Records,
    Schema,
    Workload,
    mechanism_risk,
    simulate_population,
)
from bayesrisk.census import population_spec
from bayesrisk.mechanisms import Suppression, Swapping, make_mechanism
from bayesrisk.risk import MechanismOptions, mechanism_risk_of_many
from bayesrisk.risk.mechanism.simulation import released_counts
from bayesrisk.tables import Attribute

BLOCK = tables("county", "block")
TOTAL = ("block", "total", BLOCK.tables["block", "total"].cells[0])
OPTIONS = MechanismOptions(utility_draws=2)
SWAPPING = {
    "rate": "1/2",
    "swap_key": ["size"],
    "unique_by": ["colour"],
    "within": "county",
    "unique_within": "tract",
}
NOISE = {"block": {"total": "1/10", "colour": "1/5", "detail": "1/4"}}
PROTECTIONS = {
    "noise": make_mechanism("discrete-gaussian", budgets=NOISE, sensitivity="add-remove"),
    "swapping households": Swapping(**SWAPPING, unit="household"),
    "swapping persons": Swapping(**SWAPPING | {"swap_key": ["shape"]}, unit="person"),
    "suppression": Suppression(threshold=2),
    "by hand": ByHand(leaks),
}


def asked(workload=BLOCK, **changes):
    settings = {
        "observed": [("block", "total"), ("block", "detail")],
        "alternatives": [None],
        "prior": 0.2,
    }
    return MechanismQuestion(workload, **(settings | changes))


def workload_of(name):
    return tables("block") if name == "noise" else BLOCK


def one_by_one(data, mechanism, question, rows, unit="persons", draws=40):
    found = []
    for row in rows:
        result = mechanism_risk(
            data, mechanism, {unit: row}, question, draws=draws, rng=7, options=OPTIONS
        )
        frame = result.to_frame()
        frame.insert(0, "target", row)
        found.append(frame)
    return pd.concat(found, ignore_index=True)


@pytest.mark.parametrize("name", PROTECTIONS)
def test_rows_are_those_of_one_target_at_a_time(name):
    question, rows = asked(workload_of(name)), [2, 0, 12, 5]
    if name == "swapping households":  # some targets' totals alone must be seen too
        question = asked(BLOCK, observed=[("block", "colour")], alternatives=[{"colour": 2}])
        rows = [0, 2, 8]
    together = mechanism_risk_of_many(
        county(), PROTECTIONS[name], question, targets=rows, draws=40, rng=7, options=OPTIONS
    )
    expected = one_by_one(county(), PROTECTIONS[name], question, rows)
    pd.testing.assert_frame_equal(together, expected, check_exact=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"observed": [("county", "total")]},
        {"observed": [("county", "colour"), ("block", "total")]},
        {"observed": [(*TOTAL, "500010101001003")]},
        {"alternatives": [{"block": "500010101001003"}]},
        {"alternatives": [None, {"colour": 2, "shape": 1}], "prior": [0.2, 0.3, 0.5]},
    ],
)
def test_whatever_is_observed_and_believed(changes):
    if "observed" in changes and len(changes["observed"][0]) == 4:
        changes = changes | {"alternatives": [{"block": "500010101001003"}]}
    question, rows = asked(BLOCK, **changes), [0, 9]
    together = mechanism_risk_of_many(
        county(), PROTECTIONS["suppression"], question, targets=rows, draws=40, rng=7,
        options=OPTIONS,
    )  # fmt: skip
    expected = one_by_one(county(), PROTECTIONS["suppression"], question, rows)
    pd.testing.assert_frame_equal(together, expected, check_exact=True)


def simulated():
    """Return a small tract with persons and households, and a workload of race by ethnicity."""
    everything = simulate_population(
        population_spec("tract", n_blocks=14, blocks_per_group=7), rng=5
    )
    schema = Schema(
        "race-by-ethnicity",
        (Attribute("hisp", 2), Attribute("race", 63, first=1)),
        everything.persons.schema.geography,
    )
    persons = Records(schema, everything.persons.table)
    workload = Workload.from_dict(
        {
            "schema": schema.to_dict(),
            "levels": ["tract", "block"],
            "tables": [{"name": "total"}, {"name": "detail", "cross": ["hisp", "race"]}],
        }
    )
    return Microdata(persons, everything.households, everything.blocks), workload


REAL = Swapping(
    rate="1/5", swap_key=["size"], unique_by=["race", "hispanic"], within="tract",
    unique_within="tract", unit="household",
)  # fmt: skip


@pytest.mark.slow
def test_a_tract_under_swapping_and_topdown():
    data, workload = simulated()
    budget = {level: {"total": "1/20", "detail": "1/5"} for level in workload.levels}
    question = asked(workload, observed=[("block", "detail")])
    rows = [0, 3, 11]
    for mechanism in (REAL, make_mechanism("topdown", budget=budget)):
        together = mechanism_risk_of_many(
            data, mechanism, question, targets=rows, draws=40, rng=7, options=OPTIONS
        )
        expected = one_by_one(data, mechanism, question, rows)
        pd.testing.assert_frame_equal(together, expected, check_exact=True)


@pytest.mark.parametrize("unit", ["household", "person"])
def test_observed_cells_of_swapping_are_those_of_its_tables(unit):
    data, workload = simulated()
    settings = {"unit": unit, "rate": "4/5"}
    if unit == "person":
        settings |= {"swap_key": ["sex"], "unique_by": ["race", "hisp"]}
    mechanism = Swapping(**REAL.spec.parameters | settings)
    prepared = mechanism.prepare(data, workload=workload)
    release = mechanism.release(data, workload=workload, rng=0)
    cells = [
        (level, name, table.cells[column], str(release.tables.geoids[level][row]))
        for (level, name), table in workload.tables.items()
        for row, column in np.argwhere(release.tables.counts[level, name].toarray()).tolist()
    ]
    moved = 0
    for seed in range(4):
        whole = mechanism.release(data, workload=workload, rng=np.random.default_rng(seed))
        again = prepared.draw(np.random.default_rng(seed))
        assert whole.spec == again.spec
        for key, counts in whole.tables.counts.items():
            assert (counts != again.tables.counts[key]).nnz == 0
        expected = released_counts(whole.tables, cells)
        np.testing.assert_array_equal(
            prepared.observed(np.random.default_rng(seed), cells), expected
        )
        moved += int((expected != released_counts(release.tables, cells)).sum())
    assert moved > 0  # swaps were seen


def test_records_that_were_recoded_row_by_row_are_followed_too():
    everything = simulate_population(
        population_spec("tract", n_blocks=4, blocks_per_group=2), rng=4
    )
    workload = Workload.named("pl94")
    prepared = REAL.prepare(everything, workload=workload)
    release = prepared.draw(np.random.default_rng(2))
    place = str(release.tables.geoids["block"][1])
    table = workload.tables["block", "votingage"]
    cells = [("block", "votingage", cell, place) for cell in table.cells]
    np.testing.assert_array_equal(
        prepared.observed(np.random.default_rng(2), cells), released_counts(release.tables, cells)
    )


def test_all_of_a_unit_in_any_executor_with_progress():
    seen = []
    options = MechanismOptions(utility_draws=2, progress=lambda *done: seen.append(done))
    arguments = (county(), PROTECTIONS["noise"], asked(tables("block")))
    alone = mechanism_risk_of_many(*arguments, draws=40, rng=3, options=options)
    assert alone["target"].tolist() == list(range(13))
    assert seen[-1] == (13, 13)
    with ThreadPoolExecutor(2) as pool:
        options = MechanismOptions(utility_draws=2, executor=pool)
        many = mechanism_risk_of_many(*arguments, draws=40, rng=3, options=options)
    pd.testing.assert_frame_equal(alone, many, check_exact=True)


def test_households_are_targets_too():
    data, _ = simulated()
    workload = Workload.from_dict(
        {
            "schema": data.households.schema.to_dict(),
            "levels": ["block"],
            "tables": [{"name": "total"}],
        }
    )
    noise = make_mechanism(
        "discrete-gaussian", budgets={"block": {"total": "1/10"}}, sensitivity="add-remove"
    )
    question = asked(workload, observed=[("block", "total")])
    together = mechanism_risk_of_many(
        data, noise, question, targets=[1, 4], unit="households", draws=40, rng=7, options=OPTIONS
    )
    expected = one_by_one(data, noise, question, [1, 4], unit="households")
    pd.testing.assert_frame_equal(together, expected, check_exact=True)
