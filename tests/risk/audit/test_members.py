"""Beliefs about persons in households, from releases of both, against enumeration."""

from itertools import combinations_with_replacement
from math import factorial, prod

import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.inference import RecordPrior
from bayesrisk.risk import Adversary, AuditQuestion, statements_about_members
from bayesrisk.tables import Attribute, Geography, HouseholdLink

ISLAND = Geography("island", ("block",), (1,))
PERSONS = br.Schema("persons", (Attribute("sex", 2, labels=("woman", "man")),), ISLAND)
HOMES = br.Schema("homes", (Attribute("size", 2, 1),), ISLAND)
LINK = HouseholdLink.enumerate(
    PERSONS, HOMES, most=2, derived={"size": lambda members: members.sum(axis=1)}
)
SHARES = {"w": 0.25, "m": 0.25, "ww": 0.125, "wm": 0.25, "mm": 0.125}
RULES = {
    "persons": {"mechanism": "rounding:base=3,method=nearest", "tables": ["persons: sex"]},
    "homes": {"mechanism": "identity", "tables": ["homes: size"]},
}


def share_of_women(chosen):
    """Return E[women] / E[people] over islands of up to six households that fit the counts."""
    women = people = 0.0
    for n in range(1, 7):
        for island in combinations_with_replacement(SHARES, n):
            text = "".join(island)
            w, m = text.count("w"), text.count("m")
            fits = {
                "persons": [(2 * x + 3) // 6 * 3 for x in (w, m)] == [3, 0],
                "homes": sorted(map(len, island)) == [2],
            }
            if all(fits[name] for name in chosen):
                ways = factorial(n) / prod(factorial(island.count(kind)) for kind in SHARES)
                weight = ways * prod(SHARES[kind] for kind in island)
                women += weight * w
                people += weight * (w + m)
    return women / people


@pytest.mark.parametrize("chosen", [["persons"], ["homes"], ["persons", "homes"]], ids=len)
def test_beliefs_about_members_equal_enumeration_and_prove_only_together(chosen):
    homes = pd.DataFrame({"block": ["1"], "members": ["woman + woman"]})
    records = br.Records.from_frame(homes, schema=LINK.schema)
    works = {"persons": br.Workload.of(PERSONS, ["sex"]), "homes": br.Workload.of(HOMES, ["size"])}
    protection = br.make_mechanism("composition", releases={name: RULES[name] for name in chosen})
    prior = RecordPrior(LINK.schema, LINK.shares([0.5, 0.5], [0.5, 0.5]), None, [1 / 7] * 7)
    found = statements_about_members(
        protection,
        records,
        LINK,
        AuditQuestion(works["persons"], ("sex",), (Adversary("outsider"),)),
        workload=LINK.workload({name: works[name] for name in chosen}),
        prior=prior,
        rng=1,
    ).frame
    truth = found[found["correct"]]
    assert truth["posterior"].tolist() == pytest.approx([share_of_women(chosen)], abs=1e-9)
    assert (truth["posterior"].iloc[0] == 1.0) == (len(chosen) == 2)
    assert truth["without"].iloc[0] < 1.0
    assert found.groupby("target")[
        ["prior", "without", "posterior"]
    ].sum().to_numpy() == pytest.approx(1.0)
