"""Priors, precision of certainty and statements of claims, against direct counting."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from bayesrisk import ArgumentError, datasets as samples, make_mechanism, tabulate
from bayesrisk.reconstruction import find_claims
from bayesrisk.risk import claim_precision, claim_priors, count_claims, records_identified
from bayesrisk.tables import Workload

COLUMNS = ["tenure", "size", "race", "hhage", "under_18"]


@pytest.fixture(scope="module")
def sample():
    data = samples.load_microdata("fifty-blocks")
    blocks = data.blocks.loc[data.blocks["chosen"], "block"].to_numpy(dtype="U15")[:6]
    own = data.households.take(np.flatnonzero(np.isin(data.households.geoids, blocks)))
    found = find_claims(tabulate(own, Workload.named("household-dhc")), columns=COLUMNS)
    return data, own, found


def agrees(row, frame):
    """Whether records agree with a claim, renters of both kinds being one."""
    match = np.ones(len(frame), bool)
    for name in COLUMNS:
        code = getattr(row, name)
        if not pd.isna(code):
            values = frame[name].replace(4, 3) if name == "tenure" else frame[name]
            match &= (values == code).to_numpy()
    return match


def test_verified_claims_are_true_and_counted_right(sample):
    _, own, found = sample
    truth = own.to_frame()
    chosen = found.to_frame().sample(300, random_state=1)
    counts = count_claims(found, chosen, own)
    for row, count in zip(chosen.itertuples(index=False), counts, strict=True):
        here = truth[(truth["block"] == row.block) & (truth["vacancy"] == 0)]
        assert agrees(row, here).sum() == count == row.multiplicity


@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize(("level", "width"), [("tract", 11), ("state", 2)])
def test_priors_are_binomial_with_and_without_the_targets_record(sample, level, width, leave_out):
    data, _, found = sample
    everybody = data.households.to_frame()
    everybody = everybody[everybody["vacancy"] == 0]
    priors = claim_priors(found, data.households, level=level, leave_out=leave_out)
    assert len(priors) == len(found.to_frame(readable="here")) > 20
    told = "own record left out" if leave_out else "own record counted, as published"
    assert set(priors["baseline"]) == {told}
    size = found.blocks.set_index("block")["records"]
    for row in priors.sample(min(60, len(priors)), random_state=2).itertuples(index=False):
        area = everybody[everybody["block"].str[:width] == row.block[:width]]
        if leave_out:
            own = area[area["block"] == row.block]
            area = area.drop(index=own.index[agrees(row, own)][0])
        p, n, m = agrees(row, area).mean(), int(size[row.block]), row.multiplicity
        expected = math.comb(n, m) * p**m * (1 - p) ** (n - m)
        assert row.share == pytest.approx(p, rel=1e-14)
        assert row.prior == pytest.approx(expected, rel=1e-12)
        assert row.ratio == pytest.approx(1 / expected if expected else math.inf, rel=1e-12)
    counted = claim_priors(found, data.households, level=level)
    assert (priors["share"] <= counted["share"]).all()
    assert (priors["share"] < counted["share"]).any() == leave_out


def test_a_false_claim_has_no_record_to_leave_out(sample):
    """The target of a claim that is true of nobody in its block is not in the larger place."""
    data, _, found = sample
    everybody = data.households
    block = found.to_frame(readable="here")["block"].iloc[0]
    elsewhere = everybody.take(np.flatnonzero(everybody.geoids != block))
    counted, without = (
        claim_priors(found, elsewhere, level="state", leave_out=leave) for leave in (False, True)
    )
    here = (counted["block"] == block).to_numpy()
    assert here.any()
    np.testing.assert_array_equal(without["share"][here], counted["share"][here])
    assert (without["share"][~here] < counted["share"][~here]).any()


def test_a_prior_of_nobody_is_zero(sample):
    data, own, found = sample
    row = claim_priors(found, data.households, level="tract").iloc[0]
    other = own.to_frame().assign(size=7, race=7, tenure=1, hhage=9, under_18=1)
    only = type(own).from_frame(other[other["vacancy"] == 0], schema=own.schema)
    priors = claim_priors(found, only, level="tract")
    same = priors[(priors["block"] == row["block"])]
    assert (same["prior"] == 0).any()
    assert np.isinf(same["ratio"][same["prior"] == 0]).all()
    elsewhere = own.take(np.flatnonzero(own.geoids == own.geoids[0]))
    with pytest.raises(ArgumentError, match="records must be there for tract"):
        claim_priors(found, elsewhere, level="tract")


def test_claims_of_true_counts_are_true_and_of_swapped_ones_not_all(sample):
    data, own, found = sample
    precise = claim_precision(found, own)
    assert (precise["precision"] == 1.0).all()
    total = precise[(precise["kind"] == "any") & (precise["columns"] == 0)].iloc[0]
    assert total["claims"] == len(found.to_frame())
    mechanism = make_mechanism(
        "swapping", rate=0.5, swap_key=["size"], unique_by=["size", "race", "hhage"],
        within="state", unique_within="tract", unit="household",
    )  # fmt: skip
    release = mechanism.release(data, workload=Workload.named("household-dhc"), rng=3)
    inside = np.isin(release.tables.geoids["block"], found.blocks["block"].to_numpy(dtype="U15"))
    tables = type(release.tables)(
        release.tables.workload,
        {"block": release.tables.geoids["block"][inside]},
        {k: v[inside] for k, v in release.tables.counts.items()},
    )
    swapped = find_claims(tables, columns=COLUMNS)
    result = claim_precision(swapped, own)
    line = result[(result["kind"] == "any") & (result["columns"] == 0)].iloc[0]
    verified = swapped.to_frame()
    right = count_claims(swapped, verified, own) == verified["multiplicity"]
    assert line["true"] == right.sum() < line["claims"] == len(verified)
    by_block = right.groupby(verified["block"]).all()
    assert (line["blocks"], line["all_true"]) == (len(by_block), by_block.sum())
    assert line["lower"] < line["precision"] < line["upper"]
    assert line["block_lower"] <= line["block_share"] <= line["block_upper"]
    rows = swapped.statements(release=release, prior=data.households, truth=data).frame
    # Nobody's record is left out of the composition: the prior is that of the paper.
    everybody = data.households.to_frame()
    everybody = everybody[everybody["vacancy"] == 0]
    size = swapped.blocks.set_index("block")["records"]
    asked = swapped.to_frame(readable="here").itertuples(index=False)
    for prior, row in itertools.islice(zip(rows["prior"], asked, strict=True), 30):
        p, n, m = agrees(row, everybody).mean(), int(size[row.block]), row.multiplicity
        assert prior == pytest.approx(math.comb(n, m) * p**m * (1 - p) ** (n - m), rel=1e-9)
    assert set(rows["status"]) == {"believed"}
    same = swapped.to_frame(readable="here")
    true = count_claims(swapped, same, own) == same["multiplicity"].to_numpy()
    known = rows["correct"].notna().to_numpy()
    np.testing.assert_array_equal(rows["correct"][known], true[known])
    assert not true[~known].any()  # they are about nobody
    assert rows["without"].isna().all()  # no mechanism is given


def test_records_identified_counts_households(sample):
    _, own, found = sample
    truth = own.to_frame()
    truth = truth[truth["vacancy"] == 0]
    table = records_identified(found, truth=own)
    single = found.to_frame(readable="here").query("multiplicity == 1")
    for k in range(1, len(COLUMNS) + 1):
        covered = np.zeros(len(truth), bool)
        for row in single[single["n_columns"] == k].itertuples(index=False):
            covered |= agrees(row, truth) & (truth["block"] == row.block).to_numpy()
        assert table.loc["total", k] == covered.sum()
    assert table.loc["total", "n"] == len(truth)
    assert table.loc["average", "n"] == pytest.approx(len(truth) / 6)
    # The data set that was found is another, and the claims describe it as well.
    assert records_identified(found).loc["total", "n"] == len(truth)


def test_other_things_are_refused(sample):
    _, own, found = sample
    people = samples.load_microdata("synthetic-county").persons
    with pytest.raises(ArgumentError, match="truth must be of schema 'household-dhc'"):
        claim_precision(found, people)
    with pytest.raises(ArgumentError, match="level must be one of"):
        claim_priors(found, own, level="village")
    with pytest.raises(ArgumentError, match="count must be one of"):
        claim_precision(found, own, count="columns")
