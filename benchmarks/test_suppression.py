"""Suppression against one more cell at a time; its audit against two integer programs a cell."""

import numpy as np
import pandas as pd
from scipy import optimize, sparse
from targets import faster

from bayesrisk.constraints.ends import FormEnds
from bayesrisk.mechanisms import Suppression, audit_suppression
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Workload,
    tabulate,
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
    return tabulate(Records.from_frame(frame, schema=KINDS), ASKED)


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
        if not audit_suppression(made, least=1).recovered.any():
            return made, audits
        free = [
            (int(true[k][i, j]), k, i, j)
            for k in true
            for i, j in zip(*np.nonzero((true[k] > 0) & ~masks[k]), strict=True)
        ]
        _, key, i, j = min(free)
        masks[key][i, j] = True


def two_programs_a_cell(tables):
    """Return the range of each suppressed cell of streets, by solving for both of its ends."""
    # Every street is on its own program, of all kinds: nothing is left out or kept.
    rows = np.vstack([np.ones((1, 60)), np.eye(60)])
    levels = ("town", "street")
    found = []
    streets = len(tables.geoids["street"])
    matrix = sparse.vstack(
        [
            sparse.kron(np.ones((1, streets)), rows, "csr"),
            sparse.kron(sparse.eye_array(streets), rows, "csr"),
        ],
        "csr",
    )
    parts = [
        (tables.counts[n, t], tables.hidden(n, t)) for n in levels for t in ("total", "detail")
    ]
    counts, hidden = (
        np.concatenate(
            [np.hstack([a[i].toarray() for a in parts[at : at + 2]]).ravel() for at in (0, 2)]
        )
        for i in (0, 1)
    )
    rule = optimize.LinearConstraint(
        matrix, np.where(hidden, 0, counts), np.where(hidden, np.inf, counts)
    )
    whole = np.ones(matrix.shape[1])
    for form in matrix[np.flatnonzero(hidden)].toarray():
        ends = [optimize.milp(s * form, constraints=rule, integrality=whole) for s in (1, -1)]
        found.append([np.inf if e.x is None else round(abs(e.fun)) for e in ends])
    return np.array(found).T


def test_audit(compare):
    made = Suppression(threshold=3).suppress(truth(6))
    ranges = audit_suppression(made)
    lower, upper = two_programs_a_cell(made)
    assert sorted(zip(ranges.lower, ranges.upper, strict=True)) == sorted(
        zip(lower, upper, strict=True)
    )
    compare(
        lambda: audit_suppression(made),
        lambda: two_programs_a_cell(made),
        aims={"ranges of suppressed cells, beside two programs a cell": faster(10)},
        rounds=3,
    )


def test_solutions_that_reach_many_bounds(compare, monkeypatch):
    """The audit against itself where each end that no solution has reached gets a program."""
    made = Suppression(threshold=3).suppress(truth(200))

    def alone():
        with monkeypatch.context() as patch:
            patch.setattr(FormEnds, "reach_together", lambda *_: None)
            return audit_suppression(made, least=1)

    ours, theirs = audit_suppression(made, least=1), alone()
    for name in ("lower", "upper", "proved"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    aims = {"ranges of suppressed cells, beside a program for each open end": faster(1.5)}
    compare(lambda: audit_suppression(made, least=1), alone, aims=aims, rounds=3)


def test_suppression(compare):
    mechanism, small, large = Suppression(threshold=3), truth(6), truth(400)
    made = mechanism.suppress(small)
    slow, _ = one_at_a_time(small, 3)
    for protected in (made, slow):
        assert not audit_suppression(protected, least=1).recovered.any()
    hidden = [sum(m.nnz for m in t.suppressed.values()) for t in (made, slow)]
    assert hidden[0] <= hidden[1]
    compare(
        lambda: mechanism.suppress(large),
        lambda: one_at_a_time(small, 3),
        ours_units=sum(c.nnz for c in large.counts.values()),
        twin_units=sum(c.nnz for c in small.counts.values()),
        aims={"choosing what to suppress, beside one more cell at a time": faster(5)},
        rounds=3,
    )
