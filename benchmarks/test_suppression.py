"""Complementary suppression against one more cell, and one more audit, at a time."""

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk.mechanisms import Suppression, audit_suppression
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Workload,
    tabulate_records,
)

TOWNS = Geography("towns", ("town", "street"), (1, 4))
KINDS = Schema("kinds", (Attribute("kind", 60),), TOWNS)
ASKED = Workload.from_dict(
    {
        "schema": KINDS.to_dict(),
        "levels": ["town", "street"],
        "tables": [{"name": "total"}, {"name": "detail", "cross": ["kind"]}],
    }
)


def truth(streets):
    """Return tables of streets where most kinds are rare."""
    rng = np.random.default_rng(0)
    people = 12 * streets
    frame = pd.DataFrame(
        {
            "street": [f"1{s:03d}" for s in rng.integers(streets, size=people)],
            "kind": np.minimum(rng.geometric(0.15, size=people) - 1, 59),
        }
    )
    return tabulate_records(Records.from_frame(frame, schema=KINDS), ASKED)


def one_at_a_time(tables, threshold):
    """Withhold the smallest published count above 0 until the audit finds nothing recovered."""
    true = {key: part.toarray() for key, part in tables.counts.items()}
    masks = {key: (part > 0) & (part < threshold) for key, part in true.items()}
    audits = 0
    while True:
        made = PublishedTables(
            ASKED,
            tables.geoids,
            {k: sparse.csr_array(np.where(masks[k], 0, true[k])) for k in true},
            {k: sparse.csr_array(mask) for k, mask in masks.items()},
        )
        audits += 1
        if not audit_suppression(made).recovered.any():
            return made, audits
        free = [
            (int(true[k][i, j]), k, i, j)
            for k in true
            for i, j in zip(*np.nonzero((true[k] > 0) & ~masks[k]), strict=True)
        ]
        _, key, i, j = min(free)
        masks[key][i, j] = True


def test_suppression(compare):
    mechanism, small, large = Suppression(threshold=3), truth(6), truth(400)
    made = mechanism.suppress(small)
    slow, _ = one_at_a_time(small, 3)
    for protected in (made, slow):
        assert not audit_suppression(protected).recovered.any()
    hidden = [sum(m.nnz for m in t.suppressed.values()) for t in (made, slow)]
    assert hidden[0] <= hidden[1]
    compare(
        lambda: mechanism.suppress(large),
        lambda: one_at_a_time(small, 3),
        ours_units=sum(c.nnz for c in large.counts.values()),
        twin_units=sum(c.nnz for c in small.counts.values()),
        aim="10 times faster a count",
        rounds=3,
    )
