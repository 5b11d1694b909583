"""What Liu et al. show of fifty blocks of households, shown with households of ours.

As in ``test_contrasts.py``: the register holds the 95 % intervals of the means over seeds.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from printed import compare, falls, interval

import bayesrisk as br

pytestmark = pytest.mark.slow
HERE = "tests/reference/test_contrasts_of_claims.py"


def fifty_blocks(seed):
    """Households of fifty made-up states, and the block of median size of each."""
    made, chosen = [], []
    for state in range(50, 100):
        spec = br.census.population_spec(
            "tract", state=str(state), n_blocks=60, blocks_per_group=15, groups_per_tract=2,
            subsidised_blocks=0.0,
        )  # fmt: skip
        units = br.simulate_population(spec, rng=seed + state).households
        sizes = pd.Series(units.geoids[units.codes("vacancy") == 0]).value_counts().sort_index()
        nearest = (sizes - int(np.median(sizes))).abs()
        made.append(units)
        chosen.append(sizes.index[int(np.argmin(nearest))])
    everybody = br.Records.from_frame(
        pd.concat([units.to_frame() for units in made]), schema=made[0].schema
    )
    own = everybody.take(np.flatnonzero(np.isin(everybody.geoids, np.array(chosen))))
    return everybody, own


@cache
def claims():
    sets = []
    for seed in (10_000, 20_000, 30_000, 40_000):
        everybody, own = fifty_blocks(seed)
        found = br.reconstruction.find_claims(br.tabulate(own, br.Workload.named("household-dhc")))
        priors = {
            level: br.risk.claim_priors(found, everybody, level=level).query("multiplicity == 1")
            for level in ("tract", "state")
        }
        sets.append((found, own, priors))
    return sets


def test_households_described_by_verified_claims():
    single, every, blocks, whole = [], [], [], []
    for found, own, _ in claims():
        single.append(br.risk.records_identified(found, truth=own).loc["total"])
        every.append(br.risk.records_identified(found, truth=own, singletons=False).loc["total"])
        covered = found.covered()
        blocks.append(covered[covered["claims"] > 0].groupby("columns")["block"].nunique())
        full = covered[covered["columns"] == 10]
        whole.append(int((full["covered"] == full["records"]).sum()))
    single, every = pd.DataFrame(single), pd.DataFrame(every)
    found = {}
    for table, frame in (("Table 2", single), ("Table 3", every)):
        for k in ("n", *range(5, 11)):
            found["Liu et al.", table, "total", str(k)] = frame[k]
        # As printed: the more columns, the fewer households.
        assert falls([frame[k] for k in range(6, 11)])
    at = pd.DataFrame(blocks)
    place = ("Liu et al.", "Section 5")
    found[(*place, "blocks at 5", "")] = 2 * at[5]
    found[(*place, "majority", "")] = [
        max(k for k in row.index if row[k] > 25) for _, row in at.iterrows()
    ]
    found[(*place, "households at 8", "")] = 100 * single[8] / single["n"]
    found[(*place, "households at 5", "")] = 100 * single[5] / single["n"]
    found["Liu et al.", "Appendix A", "all at 5", ""] = 100 * every[5] / every["n"]
    found["Liu et al.", "Section 1", "unique", ""] = whole
    assert (single[5] > single["n"] / 4).all()  # "a third"
    assert (single[8] > single["n"] / 10).all()  # "over 10 %"
    assert interval(found[(*place, "blocks at 5", "")])[1] > 80
    assert max(whole) < 10  # whole blocks are the exception
    found |= priors_of_claims()
    compare(f"{HERE}::test_households_described_by_verified_claims", found)


def priors_of_claims():
    """The more columns a claim has, the less likely it was before."""
    medians = {
        level: pd.DataFrame(
            [priors[level].groupby("n_columns")["prior"].median() for *_, priors in claims()]
        )
        for level in ("tract", "state")
    }
    for frame in medians.values():
        assert falls([100 * frame[k] for k in range(5, 9)])  # the more columns, the less likely
    found = {
        ("Liu et al.", "Section 5", "median", ""): 100 * medians["state"][8],
        ("Liu et al.", "Section 5", "median of many", ""): 100 * medians["state"][9],
    }
    assert interval(100 * medians["state"][8])[2] < 5
    # "Never exceeds 50 %" could not be otherwise: one household of n has no higher prior than this.
    for claimed, _, priors in claims():
        size = claimed.blocks.set_index("block")["records"]
        for frame in priors.values():
            n = frame["block"].map(size).to_numpy(float)
            assert (n >= 2).all()
            assert (frame["prior"] <= (1 - 1 / n) ** (n - 1) * (1 + 1e-12)).all()
    return found
