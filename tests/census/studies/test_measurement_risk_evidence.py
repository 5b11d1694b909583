"""All noisy values of the same count, against sets of people listed in plain loops."""

import itertools
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.noisy_measurements import AXES, SIZES, frame_of
from pyarrow import parquet
from studies import run_measurements

import bayesrisk as br
from bayesrisk import DataError
from bayesrisk.census.studies.measurement_evidence import same_count

pytestmark = pytest.mark.usefixtures("quick_figures")

GROUPS = {
    "hhinstlevels": [[0], [1, 2, 3, 4], [5, 6, 7]],
    "gqNursingTotal": [[3]],
    "nonvoting": [[0]],
}
LEVELS = ["US", "State", "County", "Tract", "Block_Group", "Block"]
WIDTHS = {"US": 0, "State": 3, "County": 9, "Tract": 13, "Block_Group": 15, "Block": 31}


def cells_of(row):
    """Return, for each answer of a row, the cells of the histogram that it counts."""
    choices = []
    for axis, size in zip(AXES, SIZES, strict=True):
        answer = getattr(row, axis)
        if answer == "*":
            choices.append([list(range(size))])
        elif answer in GROUPS:
            choices.append(GROUPS[answer])
        else:
            choices.append([[value] for value in range(size)])
    index = np.arange(math.prod(SIZES)).reshape(SIZES)
    return [set(index[np.ix_(*group)].ravel().tolist()) for group in itertools.product(*choices)]


def open_cells(folder):
    """Return, for each block, the cells that no upper bound of 0 around it rules out."""
    blocks = sorted(set(frame_of(folder, "Block", "Constraint")["geocode"]))
    alive = {block: set(range(math.prod(SIZES))) for block in blocks}
    for level in LEVELS:
        for row in frame_of(folder, level, "Constraint").itertuples():
            if row.sign == ">=":
                continue
            ruled_out = set().union(
                *(c for c, v in zip(cells_of(row), row.value, strict=True) if v == 0), set()
            )
            for block in blocks:
                if level == "US" or block.startswith(row.geocode):
                    alive[block] -= ruled_out
    return alive


def joint_odds(folder, known_count):
    """Return log likelihood ratio and number of values for each block and cell, by sets.

    A noisy value is of the count of a cell when the pairs (block, cell) that it counts and that
    are open are just the one of the cell.
    """
    alive = open_cells(folder)
    total, values = {}, {}
    for level in LEVELS[1:]:
        if not (folder / f"{level}.parquet" / "DPQuery").exists():
            continue  # units without siblings have no answer
        for row in frame_of(folder, level).itertuples():
            inside = [block for block in alive if block.startswith(row.geocode)]
            for cells, noisy in zip(cells_of(row), row.value, strict=True):
                people = [(b, c) for b in inside for c in cells & alive[b]]
                if len(people) == 1:
                    gain = (2 * (int(noisy) - known_count) - 1) / (2 * row.variance)
                    total[people[0]] = total.get(people[0], 0.0) + gain
                    values[people[0]] = values.get(people[0], 0) + 1
    return alive, total, values


@pytest.mark.parametrize(("seed", "known_count"), [(3, 0), (5, 2)])
def test_every_value_of_the_same_count_and_no_other(tmp_path, seed, known_count):
    sample = br.census.write_nmf(
        tmp_path / "US_Person_PL_PROD", rng=seed, states=("057",), counties=1, tracts=(2, 2),
        block_groups=(1, 2), blocks=(2, 3),
    )  # fmt: skip
    result = run_measurements(sample.folder, tmp_path / "r", prior=0.1, known_count=known_count)
    ours = pd.read_parquet(tmp_path / "r" / "risk.parquet")
    alive, total, values = joint_odds(sample.folder, known_count)
    keys = list(zip(ours["geocode"].astype(str), ours["cell"], strict=True))
    assert set(ours["geocode"]) == set(alive)
    assert len(ours) == 2016 * len(alive)
    np.testing.assert_array_equal(ours["values"], [values.get(key, 0) for key in keys])
    room = np.array([c in alive[b] for b, c in keys])
    np.testing.assert_array_equal(ours["settled_by"].isna(), room)
    odds = np.log(0.1 / 0.9) + np.array([total.get(key, 0.0) for key in keys])
    expected = np.where(room, 1 / (1 + np.exp(-odds)), 0.0)
    np.testing.assert_allclose(ours["posterior_with_constraints"], expected, rtol=1e-9)
    np.testing.assert_allclose(ours["risk_ratio_with_constraints"], expected / 0.1, rtol=1e-9)
    assert result.strengthened == sum(v > 1 for v in values.values())
    assert result.strengthened > 1000
    assert sum(result.settled.values()) == (~room).sum()
    # Only children have no answer of their own: all that is known of them is from around.
    silent = ours["noisy_count"].isna()
    assert silent.any()
    assert (ours["values"][silent & room] > 0).any()
    above = result.exceedance[0]
    assert above["proved_empty"] == ((ours["risk_ratio"] > 1.5) & ~room).sum()
    assert above["cells_with_constraints"] == (ours["risk_ratio_with_constraints"] > 1.5).sum()


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(-1, 3), min_size=n, max_size=n),
            st.lists(st.integers(-1, 3), min_size=n, max_size=n),
            st.lists(st.booleans(), min_size=n, max_size=n),
            st.lists(st.booleans(), min_size=n, max_size=n),
        )
    )
)
def test_pairs_are_those_with_the_same_people(case):
    target, other, live, elsewhere = (np.array(x) for x in case)
    target[0] = other[0] = 3  # the number of cells is that of the largest
    cells, partner = same_count(target, other, live, elsewhere)
    expected = set()
    for t, j in itertools.product(range(4), repeat=2):
        mine = {("own", c) for c in np.flatnonzero((target == t) & live)}
        theirs = {("own", c) for c in np.flatnonzero((other == j) & live)}
        theirs |= {("else", c) for c in np.flatnonzero((other == j) & elsewhere)}
        if mine and mine == theirs:
            expected.add((t, j))
    assert set(zip(cells.tolist(), partner.tolist(), strict=True)) == expected


# --- what may be missing ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    return br.census.write_nmf(
        tmp_path / "nmf", rng=7, states=("057",), counties=1, tracts=(2, 2), blocks=(1, 3)
    ).folder


def without(folder, level, kind, keep):
    """Keep only some units of a level."""
    for file in sorted((folder / f"{level}.parquet" / kind).rglob("*.parquet")):
        table = parquet.read_table(file, partitioning=None)
        parquet.write_table(table.filter([keep(c) for c in table["geocode"].to_pylist()]), file)


def test_places_that_are_not_complete_say_nothing(folder, tmp_path):
    """With one block group left of a tract, the tract is not taken for the count of its blocks."""
    blocks = sorted(set(frame_of(folder, "Block", "Constraint")["geocode"]))
    tract = next(b[:13] for b in blocks if len({x[:15] for x in blocks if x[:13] == b[:13]}) > 1)
    kept = next(b[:15] for b in blocks if b[:13] == tract)
    for kind in ("DPQuery", "Constraint"):
        without(folder, "Block", kind, lambda code: code[:13] != tract or code[:15] == kept)
    found = []
    for name in ("complete in name", "incomplete"):
        if name == "complete in name":  # the negative control: lists that hide what is missing
            copy = tmp_path / "copy"
            shutil.copytree(folder, copy)
            for kind in ("DPQuery", "Constraint"):
                without(copy, "Block_Group", kind, lambda code: code[:13] != tract or code == kept)
        source = copy if name == "complete in name" else folder
        run_measurements(source, tmp_path / name, prior=0.1)
        frame = pd.read_parquet(tmp_path / name / "risk.parquet")
        found.append(frame["values"][frame["geocode"].astype(str).str.startswith(kept)])
    assert (found[1].to_numpy() <= found[0].to_numpy()).all()
    assert (found[1].to_numpy() < found[0].to_numpy()).any()


def test_a_unit_that_its_constraints_do_not_list_is_refused(folder, tmp_path):
    answered = sorted(set(frame_of(folder, "Block")["geocode"]))[-1]
    listed = frame_of(folder, "Block", "Constraint")["geocode"]
    assert answered == max(listed)  # behind the last unit that is listed: no shard has it
    without(folder, "Block", "Constraint", lambda code: code != answered)
    for query in (None, "detailed"):
        with pytest.raises(DataError, match=f"Block {answered} has a noisy answer, but the"):
            run_measurements(folder, tmp_path / str(query), prior=0.1, query=query)


def test_a_unit_outside_the_spine_is_refused(folder, tmp_path):
    tract = sorted(set(frame_of(folder, "Tract", "Constraint")["geocode"]))[0]
    without(folder, "Tract", "Constraint", lambda code: code != tract)
    with pytest.raises(DataError, match=f"must lie in a Tract that the .* got none '{tract}'"):
        run_measurements(folder, tmp_path / "r", prior=0.1)


def test_constraints_of_places_around_settle_cells_too(folder, tmp_path):
    """Without the blocks' own constraints those of their block groups rule out as many cells."""
    shutil.rmtree(folder / "Block.parquet" / "Constraint")
    result = run_measurements(folder, tmp_path / "r", prior=0.1)
    assert set(result.settled) <= {
        f"{level} {name}" for level in LEVELS[:-1] for name in ("hhgq_total_ub", "nurse_nva_0")
    }
    assert sum(result.settled.values()) > 0
    assert result.unmeasured is None
    assert result.strengthened > 0  # by other queries about the block itself
