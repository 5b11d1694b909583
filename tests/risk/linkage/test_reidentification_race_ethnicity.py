"""Counts of race by Hispanic origin, from records and from every set of tables that has them."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.noise import DiscreteGaussianMechanism
from bayesrisk.risk import majority_inference, race_ethnicity_counts
from bayesrisk.tables import Records, Schema, Workload, tabulate
from bayesrisk.tables.microdata import as_microdata

BLOCKS = [f"01001020100100{i}" for i in range(4)]


def people(count=400):
    rng = np.random.default_rng(6)
    return pd.DataFrame(
        {
            "block": rng.choice(BLOCKS, count),
            "sex": rng.integers(0, 2, count),
            "age": rng.integers(0, 80, count),
            "race": rng.integers(1, 64, count),
            "hisp": rng.integers(0, 2, count),
            "gq": 0,
        }
    )


def records():
    return Records.from_frame(people(), schema=Schema.named("sf1-person"))


def direct(*, adults):
    """Count person by person."""
    counts = {block: np.zeros(126, int) for block in BLOCKS}
    for person in people().itertuples():
        if not adults or person.age >= 18:
            counts[person.block][2 * (person.race - 1) + person.hisp] += 1
    return pd.DataFrame.from_dict(counts, orient="index")


@pytest.mark.parametrize("adults", [False, True])
def test_records_and_tables_agree_with_counting(adults):
    expected = direct(adults=adults)
    pl94 = as_microdata(records()).for_schema(Schema.named("pl94"))
    sources = [
        people(),
        tabulate(records(), Workload.named("sf1-block")),
        tabulate(pl94, Workload.named("pl94", levels=["block"])),
    ]
    for source in sources:
        found = race_ethnicity_counts(source, adults=adults)
        assert found.index.name == "block"
        assert found.columns.tolist() == list(range(126))
        np.testing.assert_array_equal(found.loc[BLOCKS], expected)


def test_larger_places_and_noise():
    tables = tabulate(records(), Workload.named("sf1-block", levels=["tract", "block"]))
    tract = race_ethnicity_counts(tables, level="tract")
    assert tract.index.tolist() == ["01001020100"]
    assert tract.sum(axis=1).item() == len(people())
    noisy = DiscreteGaussianMechanism(
        rho=1,
        level_shares={"block": 1},
        table_shares={"P8": "1/2", "P9": "1/2"},
        sensitivity="change-one",
        overlap={"P8": 1, "P9": 1},
    ).release(
        records(),
        workload=Workload.named("sf1-block").select(tables=["P8", "P9"]),
        rng=1,
        places=BLOCKS,
    )
    counts = race_ethnicity_counts(noisy.tables)
    assert (counts.to_numpy() < 0).any()
    truth = race_ethnicity_counts(people())
    found = majority_inference({"noisy": counts, "true": truth}, truth=truth)
    means = found.summary(threshold=1, precisions=[0.5]).set_index("release")["mean_precision"]
    assert means["noisy"] <= means["true"]


def test_blocks_of_children_only_are_places_without_adults():
    frame = people(5).assign(age=3)
    found = race_ethnicity_counts(frame, adults=True)
    assert found.index.tolist() == sorted(frame["block"].unique())
    assert found.to_numpy().sum() == 0


def test_missing_tables_are_named():
    some = tabulate(records(), Workload.named("sf1-block").select(tables=["P8", "P12"]))
    with pytest.raises(ArgumentError, match="must have tables P8 and P9, or 'hispanic"):
        race_ethnicity_counts(some)
    with pytest.raises(ArgumentError, match="P10 and P11"):
        race_ethnicity_counts(some, adults=True)
    with pytest.raises(ArgumentError, match="level must be one of block"):
        race_ethnicity_counts(some, level="tract")
