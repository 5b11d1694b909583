"""Reconstruction of the public records of eighteen tracts from their own tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.tables import Records, Schema, Workload, tabulate

PERSON = Path(__file__).parents[3] / "shared" / "data" / "person"
KEY = ["block", "sex", "agebin", "race", "hisp"]

pytestmark = pytest.mark.skipif(
    not PERSON.is_dir(), reason=f"needs the shared data folder, {PERSON} is absent"
)


def load(name):
    frame = pd.read_parquet(PERSON / f"{name}_dev.parquet")
    frame["block"] = frame["block"].astype(str).str.zfill(15)
    columns = ["block", "sex", "age", "race", "hisp"]
    asked = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    records = Records.from_frame(frame[columns], schema=Schema.named("sf1-person"))
    return frame, tabulate(records, asked)


@pytest.fixture(scope="module")
def rhdf():
    return load("rhdf")


@pytest.fixture(scope="module")
def rmdf():
    return load("rmdf")


def differing(truth, found):
    """Return the blocks whose records differ, ages in bins."""
    a, b = truth[KEY].value_counts(), found[KEY].value_counts()
    apart = pd.concat([a, b], axis=1).fillna(0)
    bad = apart.iloc[:, 0] != apart.iloc[:, 1]
    return set(apart.index[bad].get_level_values("block"))


def test_block_tables_prove_all_but_27_blocks(rhdf):
    frame, tables = rhdf
    result = reconstruct(tables, scope="block")
    status = np.array(result.status)
    assert (status == "unique").sum() == 5311
    assert (status == "feasible").sum() == 27
    assert differing(frame, result.to_frame()) <= set(result.geoids[status == "feasible"])


def test_tract_tables_prove_every_block(rhdf):
    frame, tables = rhdf
    result = reconstruct(tables, scope="tract")
    assert set(result.status) == {"unique"}
    assert differing(frame, result.to_frame()) == set()


@pytest.mark.parametrize("name", ["rhdf", "rmdf"])
def test_variability_is_proved_for_every_block(name, request):
    _, tables = request.getfixturevalue(name)
    solution = reconstruct(tables, scope="tract")
    moved = {}
    for scope in ("block", "tract-bounds", "tract-joint"):
        found = solution_variability(tables, scope=scope, solution=solution)
        assert set(found.status) == {"proved"}
        moved[scope] = float((found.upper * found.population).sum())
    assert moved["tract-joint"] <= moved["tract-bounds"] <= moved["block"]
    assert moved["block"] > 0
    if name == "rhdf":
        assert moved["tract-bounds"] == 0.0
