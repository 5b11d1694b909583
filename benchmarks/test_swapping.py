"""Swapping against a double loop over all households; noise against publishing without."""

import numpy as np
import pandas as pd
import pytest
from targets import a_second, faster, seconds_each

from bayesrisk import make_mechanism
from bayesrisk.mechanisms import Swapping
from bayesrisk.tables import Microdata, Records, Schema, Workload

SETTINGS = {
    "rate": "1/10",
    "swap_key": ["size", "adults"],
    "unique_by": ["race", "age"],
    "within": "county",
    "unique_within": "tract",
    "unit": "household",
}


def population(households, blocks):
    """Return persons in households in blocks of one county, at random."""
    rng = np.random.default_rng(0)
    names = np.array([f"50001{b // 20:06d}1{b % 20:03d}" for b in range(blocks)])
    place = rng.integers(blocks, size=households)
    member = np.repeat(np.arange(households), rng.integers(1, 6, size=households))
    frame = pd.DataFrame(
        {
            "block": names[place][member],
            "sex": rng.integers(2, size=len(member)),
            "age": rng.integers(90, size=len(member)),
            "race": rng.choice([1, 2, 4, 8, 3], size=len(member)),
            "hisp": rng.integers(2, size=len(member)),
            "household": member,
        }
    )
    centres = pd.DataFrame({"block": names, "x": rng.random(blocks), "y": rng.random(blocks)})
    return Microdata(Records.from_frame(frame, schema=Schema.named("sf1-person")), None, centres)


def household_columns(data):
    """Return block, size and adults of every household."""
    frame = data.persons.to_frame()
    adult = frame.assign(adult=frame["age"] >= 18).groupby("household")
    return adult.agg(block=("block", "first"), size=("age", "size"), adults=("adult", "sum"))


def slow_swap(data, pairs):
    """Swap by looking at every household for each one that is chosen."""
    units = household_columns(data)
    centres = data.blocks.set_index("block").loc[units["block"], ["x", "y"]].to_numpy()
    rows = list(units.itertuples(index=False))
    rng = np.random.default_rng(1)
    partner = [-1] * len(rows)
    done = 0
    for unit in rng.permutation(len(rows)).tolist():
        if done == pairs:
            break
        if partner[unit] >= 0:
            continue
        near = []
        for other, row in enumerate(rows):
            like = row[1:] == rows[unit][1:] and row.block != rows[unit].block
            if like and partner[other] < 0:
                step = centres[other] - centres[unit]
                near.append((float(step @ step), other))
        if near:
            near.sort()
            other = near[:5][int(rng.integers(min(5, len(near))))][1]
            partner[unit], partner[other] = other, unit
            done += 1
    units["block"] = np.where(
        np.array(partner) >= 0, units["block"].to_numpy()[partner], units["block"]
    )
    return units, np.array(partner)


def test_swapping(compare):
    small, large = population(2_000, 100), population(100_000, 2_000)
    mechanism = Swapping(**SETTINGS)
    made = mechanism.swap(small, rng=1)
    units, partner = slow_swap(small, 100)
    assert (partner >= 0).sum() == (made.partner >= 0).sum() == 200
    keys = ["block", "size", "adults"]
    for swapped in (units, household_columns(made.microdata)):
        pd.testing.assert_series_equal(
            swapped.groupby(keys).size(), household_columns(small).groupby(keys).size()
        )
    compare(
        lambda: mechanism.swap(large, rng=1),
        lambda: slow_swap(small, 100),
        ours_units=100_000,
        twin_units=2_000,
        aims={"swapping a county of 100,000 households": seconds_each(100e-6, "household")},
        rounds=3,
    )


@pytest.mark.parametrize("name", ["discrete-gaussian", "discrete-laplace"])
def test_noise(compare, name):
    data = population(20_000, 10_000)
    asked = Workload.named("sf1-block").select(tables=["P12"])
    mechanism = make_mechanism(name, budgets={"block": {"P12": 1}}, sensitivity="add-remove")
    identity = make_mechanism("identity")
    made, true = (m.release(data, workload=asked, rng=1) for m in (mechanism, identity))
    added = (made.tables.counts["block", "P12"] - true.tables.counts["block", "P12"]).toarray()
    law, cells = mechanism.spec.likelihood("block", "P12").to_law(), added.size
    # The kurtosis is 6 at most, so that a sample variance has a relative error of (5 / n)^(1/2).
    assert abs(added.var() / law.var() - 1.0) < 5.0 * (5.0 / cells) ** 0.5
    compare(
        lambda: mechanism.release(data, workload=asked, rng=1),
        lambda: identity.release(data, workload=asked, rng=1),
        ours_units=cells,
        twin_units=cells,
        aims={f"a release with {name} noise": a_second(1e6, "cells")},
        rounds=3,
    )


def test_observed_cells_of_a_release(compare):
    """Cells of a prepared release against a release with its tables, which it must agree with."""
    data, workload = population(600, 40), Workload.named("sf1-block").select(tables=["P1", "P6"])
    mechanism = Swapping(**SETTINGS)
    prepared = mechanism.prepare(data, workload=workload)
    place = data.blocks["block"].iloc[0]
    cells = [("block", "P6", cell, place) for cell in workload.tables["block", "P6"].cells]

    def released():
        tables = mechanism.release(data, workload=workload, rng=np.random.default_rng(3)).tables
        return tables.count("block", "P6", place)

    def observed():
        return prepared.observed(np.random.default_rng(3), cells)

    np.testing.assert_array_equal(observed(), released())
    aims = {"a few cells of a swapped release, beside all of its tables": faster(8)}
    compare(observed, released, aims=aims)
