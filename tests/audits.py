"""A small population to audit: what its people are, and what is published of them."""

import numpy as np

from bayesrisk.risk.audit import Adversary
from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload

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
#: Everybody who may ask; the linker knows the sex.
EVERYBODY = tuple(
    Adversary.named(name, known=["sex"] if name == "linker" else ())
    for name in ("outsider", "linker", "insider", "knows-all-but-one")
)


def contents(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
