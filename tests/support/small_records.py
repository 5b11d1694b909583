"""A few hundred people of three blocks and their tables; a toy schema of two attributes."""

import numpy as np
import pandas as pd

from bayesrisk.tables import PublishedTables, Records, Schema, Workload, tabulate

PERSON = Schema.named("sf1-person")
SMALL = Workload.named("sf1-block", levels=["tract", "block"]).select(tables=["P1", "P6", "P12"])
TOY = {
    "name": "toy",
    "attributes": [{"name": "a", "size": 3, "first": 1}, {"name": "b", "size": 2, "first": 0}],
    "geography": {"name": "toy", "levels": ["all", "town", "street"], "widths": [0, 1, 3]},
}


def people(count=200, seed=3):
    rng = np.random.default_rng(seed)
    blocks = np.array(["010730051031000", "010730051031001", "500010101001000"])
    return pd.DataFrame(
        {
            "block": blocks[rng.integers(0, 3, count)],
            "sex": rng.integers(0, 2, count),
            "age": rng.integers(0, 111, count),
            "race": rng.integers(1, 64, count),
            "hisp": rng.integers(0, 2, count),
        }
    )


def tables(**changes):
    made = tabulate(Records.from_frame(people(), schema=PERSON), SMALL)
    return PublishedTables(**{**vars(made), **changes})


def toy(rows):
    columns = pd.DataFrame(rows, columns=["a", "b", "street"])
    types = {"a": "int64", "b": "int64", "street": str}
    return Records.from_frame(columns.astype(types), schema=Schema.from_dict(TOY))
