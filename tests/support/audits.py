"""A small population to audit: what its people are, and what is published of them."""

import numpy as np
import pandas as pd

from bayesrisk.risk.audit import Adversary
from bayesrisk.tables import Attribute, Geography, Records, Schema, Table, Workload

SCHEMA = Schema(
    "people",
    (Attribute("sex", 2), Attribute("race", 3)),
    Geography("towns", ("tract", "block"), (1, 3)),
)
WORKLOAD = Workload(
    SCHEMA,
    {
        ("block", "R"): Table("R", ("a", "b", "c"), {"race": np.eye(3, dtype=int)}),
        ("block", "S"): Table("S", ("m", "f"), {"sex": np.eye(2, dtype=int)}),
    },
)

SWAP = {
    "swap_key": ["sex"], "unique_by": ["race"], "within": "tract", "unique_within": "tract",
    "unit": "person",
}  # fmt: skip
#: One release of all tables, half of the budget for each.
SHARES = {
    "sensitivity": "add-remove", "level_shares": {"block": 1},
    "table_shares": {"R": "1/2", "S": "1/2"},
}  # fmt: skip
#: Everybody who may ask; the linker knows the sex.
EVERYBODY = tuple(
    Adversary.named(name, known=["sex"] if name == "linker" else ())
    for name in ("outsider", "linker", "insider", "knows-all-but-one")
)


def town_frame(seed, number, codes, p=None):
    """Return people of three races, one of them common, in blocks that are drawn."""
    rng = np.random.default_rng(seed)
    sex, race = rng.integers(0, 2, number), rng.choice(3, number, p=[0.7, 0.2, 0.1])
    block = (
        rng.choice(codes, number, p=p)
        if p
        else np.array(codes)[rng.integers(0, len(codes), number)]
    )
    return pd.DataFrame({"sex": sex, "race": race, "block": block})


def town(*about):
    return Records.from_frame(town_frame(*about), schema=SCHEMA)


def homes(seed, size, blocks, races=1):
    """Return households in small blocks, so that some must hold a violation of occupancy."""
    rng = np.random.default_rng(seed)
    subsidised = rng.integers(0, 2, size)
    frame = pd.DataFrame(
        {
            "block": rng.choice([f"50001010100100{i}" for i in range(blocks)], size),
            "size": rng.integers(1, 6, size),
            "race_ethnicity": rng.integers(0, races, size),
            "children": 0,
            "bedrooms": np.where(subsidised == 1, rng.integers(1, 4, size), 0),
            "subsidised": subsidised,
        }
    )
    return Records.from_frame(frame, schema=Schema.named("household-occupancy"))


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
