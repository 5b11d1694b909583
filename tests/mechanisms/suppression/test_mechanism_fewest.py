"""The fewest cells that hide small counts, against every choice of cells and every data set."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles.plans import data_sets

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Attribute, Geography, Records, Schema, Workload

SCHEMA = Schema(
    "two by two", (Attribute("a", 2), Attribute("b", 2)), Geography("g", ("area",), (1,))
)
WORK = Workload.of(SCHEMA, [(), ("a",), ("b",), ("a", "b")])
#: The cells of all tables, each a set of kinds.
CELLS = [{0, 1, 2, 3}, {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0}, {1}, {2}, {3}]
WORLDS = data_sets(4, 14)
COUNTS = np.stack([WORLDS[:, sorted(cell)].sum(axis=1) for cell in CELLS], axis=1)


def hides(true, withheld):
    """Return whether every withheld count may be two numbers, to who knows that none is 0."""
    same = (COUNTS[:, ~withheld] == true[~withheld]).all(axis=1)
    left = COUNTS[same & (COUNTS[:, withheld] > 0).all(axis=1)][:, withheld]
    return bool((left.max(axis=0) > left.min(axis=0)).all())


def fewest(true):
    """Return the least number of cells that hide all counts of 1 and 2, by all choices."""
    primary = (true > 0) & (true < 3)
    others = np.flatnonzero(true > 2)
    for number in range(others.size + 1):
        for more in itertools.combinations(others.tolist(), number):
            withheld = primary.copy()
            withheld[list(more)] = True
            if hides(true, withheld):
                return int(withheld.sum())
    return None


def released(kinds, **options):
    frame = pd.DataFrame({"area": "1", "a": kinds // 2, "b": kinds % 2})
    records = Records.from_frame(frame, schema=SCHEMA)
    mechanism = make_mechanism("suppression", threshold=3, **options)
    tables = mechanism.release(records, workload=WORK, rng=1, places=["1"]).tables
    return np.concatenate([tables.hidden(*key).toarray().ravel() for key in WORK.tables])


@pytest.mark.parametrize("seed", range(25))
def test_no_choice_withholds_fewer(seed):
    rng = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(4), rng.integers(0, 4, size=4))
    true = np.array([np.isin(kinds, list(cell)).sum() for cell in CELLS])
    if not ((true > 0) & (true < 3)).any():
        return
    withheld = released(kinds, fewest=True)
    assert (withheld[(true > 0) & (true < 3)]).all()
    assert not withheld[true == 0].any()
    assert hides(true, withheld)
    least = fewest(true)
    assert least is None or withheld.sum() == least
    assert withheld.sum() <= released(kinds).sum()


def test_without_it_cells_are_as_before():
    assert "fewest" not in make_mechanism("suppression", threshold=3).spec.parameters
    assert make_mechanism("suppression", threshold=3, fewest=True).spec.parameters["fewest"]
