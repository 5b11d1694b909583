"""What was released against its law: exact levels, what is seen, and what cannot be."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from audits import SCHEMA, SHARES, SWAP, WORKLOAD, town
from scipy.stats import binom

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, RoundingSpec, TrueCounts
from bayesrisk.risk.audit import release_differences, release_proofs
from bayesrisk.risk.audit.release_law import DIFFERENCES, _scale_p, _sum_law, law_checks
from bayesrisk.tables import Microdata, tabulate

GAUSS, LAPLACE = NoiseSpec("discrete-gaussian", 2), NoiseSpec("discrete-laplace", "3/2")


def people(seed=1, number=300):
    records = town(seed, number, [f"1{i:02d}" for i in range(40)])
    codes = np.unique(records.geoids)
    blocks = pd.DataFrame({"block": codes, "x": np.arange(codes.size, dtype=float), "y": 0.0})
    return Microdata(records, None, blocks)


def released(mechanism, seed=1):
    """Return a release, the true tables, and the differences."""
    data = people()
    release = mechanism.release(data, workload=WORKLOAD, rng=seed)
    truth = tabulate(data, WORKLOAD)
    return release, truth, release_differences(release, truth)


def rows(draws, given=0, table="T"):
    """Return differences as :func:`release_differences` counts them."""
    d, cells = np.unique(draws, return_counts=True)
    values = {"level": "block", "table": table, "place": "", "cell": -1, "given": given}
    values |= {"difference": d, "possible": True}
    return pd.DataFrame(values | {"cells": cells, "protection": "p"})


def verdicts_of(differences, spec):
    found = law_checks(differences.assign(protection="p"), {"p": spec}, alpha=0.01)
    return {row["against"]: row["verdict"] for row in found}


def verdicts(differences, law, alpha=0.01):
    spec = MechanismSpec("by hand", others=law)
    return list(law_checks(differences, {"p": spec}, alpha=alpha))


@pytest.mark.parametrize("law", [GAUSS, LAPLACE, NoiseSpec("discrete-gaussian", "1/20")])
def test_noise_as_stated_fails_no_more_often_than_it_may(law):
    """Two tables of 60 counts each, at 10 %: more than 24 of 120 are one in a thousand."""
    rng = np.random.default_rng(5)
    failed = 0
    for _ in range(120):
        draws = law.to_law().rvs((2, 60), random_state=rng)
        both = pd.concat([rows(d, table=t) for d, t in zip(draws, "AB", strict=True)])
        failed += any(row["failed"] for row in verdicts(both, law, alpha=0.1))
    assert failed <= 24


@pytest.mark.parametrize("law", [GAUSS, LAPLACE])
def test_p_values_are_bounds_of_exact_ones(law):
    """Of two counts, by all outcomes: no level is exceeded."""
    d = np.arange(17)
    pmf = law.to_law().pmf(d) * np.where(d > 0, 2.0, 1.0)  # the statistic knows no signs
    pairs = np.array(list(itertools.combinations_with_replacement(d, 2)))
    weight = pmf[pairs].prod(axis=1) * np.where(pairs[:, 0] < pairs[:, 1], 2.0, 1.0)
    power = 2 if law is GAUSS else 1
    p = np.array([_scale_p([(law, 2, (pair**power).mean())]) for pair in pairs])
    rest = 1.0 - weight.sum()
    for alpha in (0.5, 0.2, 0.05, 0.01):
        assert weight[p <= alpha].sum() + rest <= alpha + 1e-12
    assert weight[p <= 0.5].sum() > 0.0


@pytest.mark.parametrize("law", [GAUSS, LAPLACE])
def test_other_scales_are_seen_as_often_as_is_stated(law):
    rng = np.random.default_rng(6)
    (row,) = verdicts(rows(law.to_law().rvs(200, random_state=rng)), law)
    assert row["power_unit"] == "times the stated variance"
    power = 2 if law is GAUSS else 1  # of the scale that the variance is like
    wider = NoiseSpec(law.law, str(round(float(law.scale) * row["power"] ** (power / 2), 6)))
    seen = sum(
        bool(verdicts(rows(wider.to_law().rvs(200, random_state=rng)), law)[0]["failed"])
        for _ in range(50)
    )
    assert seen >= 38  # 45 are expected
    assert _scale_p([(law, 40, 0.0)]) < 1e-6  # far too little noise
    (none,) = verdicts(rows(np.zeros(40, int)), law)
    assert (none["value"], none["bound"], none["verdict"]) == (0.0, 1.0, "not as stated")


def test_noise_of_another_shape_is_seen():
    """Of the stated variance: two values, a shift, and the other law."""
    rng = np.random.default_rng(7)
    law = NoiseSpec("discrete-gaussian", 9)
    assert verdicts(rows(rng.choice([-3, 3], 200)), law)[0]["failed"]
    shifted = NoiseSpec("discrete-gaussian", 5).to_law().rvs(400, random_state=rng) + 2
    assert verdicts(rows(shifted), law)[0]["failed"]
    again = rows(np.repeat(law.to_law().rvs(2, random_state=rng), 200))  # twice the same draw
    assert verdicts(again, law)[0]["failed"]


@pytest.mark.parametrize("name", ["discrete-gaussian", "discrete-laplace"])
def test_what_mechanisms_draw_is_as_stated_and_half_of_it_is_not(name):
    unit = "rho" if name.endswith("gaussian") else "epsilon"
    mechanism = make_mechanism(name, **{unit: 1}, **SHARES)
    release, truth, found = released(mechanism)
    for key in (("block", "R"), ("block", "S")):
        off = (release.tables.counts[key] - truth.counts[key]).toarray()
        mine = found[found["table"] == key[1]]
        single, sums = mine[mine["given"] == 0], mine[mine["given"] > 0]
        codes = release.tables.geoids["block"].tolist()
        at = [codes.index(place) for place in single["place"]]
        np.testing.assert_array_equal(single["difference"], off[at, single["cell"]])
        assert single["cells"].sum() == off.size
        assert set(sums["given"]) == {off.shape[1]}
        at = [codes.index(place) for place in sums["place"]]
        np.testing.assert_array_equal(sums["difference"], off.sum(axis=1)[at])
        few = release_differences(release, truth, places=3)
        few = few[few["table"] == key[1]]
        assert set(few["place"]) == {"", *codes[:3]}
        assert few.loc[few["given"] == 0, "cells"].sum() == off.size
    specs = {"p": mechanism.spec}
    good = list(law_checks(found.assign(protection="p"), specs, alpha=0.01))
    assert [row["verdict"] for row in good] == ["as stated"] * 6
    names = ["block R", "block S", "all tables", "places", "cells", "sums over places"]
    assert [row["against"] for row in good] == names
    other = make_mechanism(name, **{unit: "1/16"}, **SHARES)
    bad = law_checks(found.assign(protection="p"), {"p": other.spec}, alpha=0.01)
    assert all(row["failed"] for row in bad if row["against"] in names[:3])
    assert not list(law_checks(found.assign(protection="q"), specs, alpha=0.01))


def by_part(differences, spec, alpha=0.01):
    found = law_checks(differences.assign(protection="p"), {"p": spec}, alpha=alpha)
    return {row["against"]: row for row in found}


def told_apart(noise, table="T"):
    _, place, cell = np.indices(noise.shape)
    single = {"place": place.ravel(), "cell": cell.ravel(), "given": 0, "difference": noise.ravel()}
    sums = noise.sum(axis=2)
    whole = {"place": np.indices(sums.shape)[1].ravel(), "cell": -1, "given": noise.shape[2]}
    frame = pd.concat([pd.DataFrame(single), pd.DataFrame(whole | {"difference": sums.ravel()})])
    frame = frame.assign(level="block", table=table, possible=True, protection="p")
    frame["place"] = "b" + frame["place"].astype(str)
    return frame.groupby(DIFFERENCES).size().rename("cells").reset_index()


@pytest.mark.parametrize("law", [GAUSS, LAPLACE])
def test_a_place_cells_and_totals_without_noise_are_seen_by_themselves(law):
    """And the pooled tests of the table see none of these: that is what the parts are for."""
    noise = law.to_law().rvs((8, 16, 6), random_state=np.random.default_rng(3))
    spec = MechanismSpec("by hand", others=law)
    good = by_part(told_apart(noise), spec)
    assert set(good) == {"block T", "places", "cells", "sums over places"}
    assert not any(row["failed"] for row in good.values())
    assert [row["compared"] for row in good.values()] == [768, 16, 96, 128]
    block, cells, totals = noise.copy(), noise.copy(), noise.copy()
    block[:, 5] = 0
    cells[:, np.arange(96).reshape(16, 6) % 10 == 0] = 0
    totals[..., 0] -= totals.sum(axis=2) - np.sign(totals.sum(axis=2))  # all but kept: off by one
    for name, broken in {"places": block, "cells": cells, "sums over places": totals}.items():
        row = by_part(told_apart(broken), spec)[name]
        assert row["failed"] > 0
        assert row["verdict"] == "not as stated"
    assert by_part(told_apart(block), spec)["places"]["failed"] == 1
    assert by_part(told_apart(block), spec)["places"]["value"] == 0.0
    assert by_part(told_apart(block), spec)["block T"]["failed"] == 0
    share = by_part(told_apart(cells), spec)["cells"]
    assert share["value"] == pytest.approx(10 / 96, abs=1 / 96)
    assert good["cells"]["power"] < 0.06


@pytest.mark.parametrize("law", [GAUSS, LAPLACE, NoiseSpec("discrete-gaussian", "1/5")])
def test_parts_of_valid_noise_fail_no_more_often_than_they_may(law):
    """At 10 % for all of it: more than 22 of 120 are less than one in a hundred."""
    rng, spec, failed = np.random.default_rng(11), MechanismSpec("by hand", others=law), 0
    for _ in range(120):
        noise = law.to_law().rvs((2, 8, 4), random_state=rng)
        rows = by_part(told_apart(noise), spec, alpha=0.1).values()
        failed += any(row["failed"] for row in rows)
    assert failed <= 22


@pytest.mark.parametrize("law", [GAUSS, LAPLACE])
def test_the_law_of_sums_is_that_of_all_outcomes(law):
    s, mass = _sum_law(law, 3)
    d = np.arange(-40, 41)
    pmf = law.to_law().pmf(d)
    by_hand = np.convolve(np.convolve(pmf, pmf), pmf)
    at = np.searchsorted(s, np.arange(-20, 21))
    np.testing.assert_allclose(mass[at], by_hand[100:141], atol=1e-12)
    wide, coarse = _sum_law(NoiseSpec(law.law, 10**12), 5)  # of so many values every so many
    assert wide.size < 2**18
    variance = 5 * float(NoiseSpec(law.law, 10**12).to_law().var())
    assert coarse @ wide**2 == pytest.approx(variance, rel=1e-4)


@pytest.mark.parametrize("ratio", ["13/10", "77/100"])
def test_the_least_deviation_that_is_said_to_be_seen_is_seen(ratio):
    """Of 8 releases of 16 places and ten cells, as of the demonstration."""
    rng, law = np.random.default_rng(12), NoiseSpec("discrete-gaussian", 1)
    spec, other = MechanismSpec("by hand", others=law), NoiseSpec("discrete-gaussian", ratio)
    seen = 0
    for _ in range(16):
        two = [told_apart(other.to_law().rvs((8, 16, n), random_state=rng), t) for n, t in
               ((4, "A"), (6, "B"))]  # fmt: skip
        row = by_part(pd.concat(two), spec, alpha=0.002)["all tables"]
        seen += bool(row["failed"])
        assert 1.2 < row["power"] < 1.3
    assert seen >= 15


def test_rows_add_up_over_parts_and_releases():
    mechanism = make_mechanism("discrete-gaussian", rho=1, **SHARES)
    every = [released(mechanism, seed)[2].assign(release=seed) for seed in (1, 2, 3)]
    apart = pd.concat(every).assign(protection="p")
    keys = ["protection", *DIFFERENCES]
    whole = apart.groupby(keys)["cells"].sum().reset_index()
    one, other = (list(law_checks(f, {"p": mechanism.spec}, alpha=0.01)) for f in (apart, whole))
    assert one == other
    single = every[0][(every[0]["table"] == "R") & (every[0]["given"] == 0)]
    assert one[0]["compared"] == 3 * single["cells"].sum()


def test_random_rounding_goes_up_as_often_as_it_should():
    law = RoundingSpec(3, "random")
    n, up = 30, 17
    draws = np.where(np.arange(n) < up, 2, -1)
    for alpha in (0.001, 0.01, 0.02, 0.04):
        p = 2 * min(binom.cdf(up, n, 1 / 3), binom.sf(up - 1, n, 1 / 3))
        (row,) = verdicts(rows(draws, given=1), law, alpha=alpha)
        assert row["failed"] == (p <= alpha / 2)  # the other half is for parts of noise
    release, truth, found = released(make_mechanism("rounding", base=3, method="random"))
    good = law_checks(found.assign(protection="p"), {"p": release.spec}, alpha=0.01)
    assert not any(row["failed"] for row in good)
    nearest = make_mechanism("rounding", base=3, method="nearest").release(
        people(), workload=WORKLOAD, rng=1
    )
    found = release_differences(dataclasses.replace(nearest, spec=release.spec), truth)
    bad = list(law_checks(found.assign(protection="p"), {"p": release.spec}, alpha=0.01))
    assert all(row["failed"] for row in bad)
    assert {row["value"] for row in bad} == {0.0}  # possible, each of them


def changed(release, key, change):
    """Return a release one of whose counts is another."""
    counts = dict(release.tables.counts)
    dense = counts[key].toarray()
    at = change(dense)
    counts[key] = sp.csr_array(dense)
    return dataclasses.replace(
        release, tables=dataclasses.replace(release.tables, counts=counts)
    ), at


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("identity", {}), ("suppression", {"threshold": 3}),
        ("rounding", {"base": 3, "method": "nearest"}),
        ("rounding", {"base": 3, "method": "random"}),
    ],
)  # fmt: skip
def test_one_count_that_cannot_be_is_found(name, parameters):
    release, truth, found = released(make_mechanism(name, **parameters))
    assert found["possible"].all()
    seen = ~release.tables.hidden("block", "R").toarray()

    def change(dense):
        at = tuple(np.argwhere(seen)[7])
        dense[at] += 3 * parameters.get("base", 1)
        return at

    wrong, _ = changed(release, ("block", "R"), change)
    bad = release_differences(wrong, truth)
    assert bad.loc[~bad["possible"], "cells"].sum() == 1
    by = {row["against"]: row for row in law_checks(
        bad.assign(protection="p"), {"p": release.spec}, alpha=0.01
    )}  # fmt: skip
    assert by["block R"]["failed"] == 1
    assert by["block S"]["failed"] == 0
    cells = by["block R"]["compared"]
    assert (1 - by["block R"]["power"]) ** cells == pytest.approx(0.1)


def test_a_small_count_that_should_be_withheld_is_found():
    data = people()
    truth = tabulate(data, WORKLOAD)
    release = make_mechanism("suppression", threshold=3).release(data, workload=WORKLOAD, rng=1)
    bare = dataclasses.replace(release, tables=truth)
    found = release_differences(bare, truth)
    small = sum(int(np.isin(part.toarray(), [1, 2]).sum()) for part in truth.counts.values())
    assert found.loc[~found["possible"], "cells"].sum() == small > 0


def test_swapping_is_checked_where_it_changes_nothing():
    release, _, found = released(make_mechanism("swapping", rate="1/10", **SWAP))
    assert verdicts_of(found, release.spec) == {"block S": "as stated"}  # the key does not change


def test_a_release_without_any_law_has_no_differences():
    release, truth, _ = released(make_mechanism("identity"))
    unknown = dataclasses.replace(release, spec=MechanismSpec("mine"))
    assert release_differences(unknown, truth).empty
    mixed = dataclasses.replace(
        release, spec=MechanismSpec("mine", {}, {("block", "R"): TrueCounts()})
    )
    assert set(release_differences(mixed, truth)["table"]) == {"R"}


# What counts prove together, against all lists of records that the release allows.


def lists_of(size):
    """Return all histograms of at most so many people over sex and race, (lists, 6)."""
    every = np.array(list(itertools.product(range(size + 1), repeat=6)))
    return every[every.sum(axis=1) <= size]


@pytest.mark.parametrize(
    ("name", "options"),
    [("rounding", {"base": 3, "method": "nearest"}), ("threshold", {"least": 3}),
     ("suppression", {"threshold": 2}), ("identity", {})],
)  # fmt: skip
def test_proofs_of_a_release_are_those_of_all_lists_that_fit(name, options):
    records = people(number=60).persons
    codes, sizes = np.unique(records.geoids, return_counts=True)
    places = codes[sizes <= 2][:6].tolist()
    release = make_mechanism(name, **options).release(people(number=60), workload=WORKLOAD, rng=1)
    truth = tabulate(people(number=60), WORKLOAD)
    found = release_proofs(release.tables, truth, places, whole=["sex", "race"])
    tables = WORKLOAD.at("block")
    weights = np.concatenate([t.incidence(SCHEMA, np.arange(6)).toarray() for t in tables.values()])
    lists = lists_of(6)  # nothing here allows more than a few people of a place
    for place, row in zip(places, found.to_dict(orient="records"), strict=True):
        at = [int(np.searchsorted(release.tables.geoids["block"], place))]
        low, high = (
            np.concatenate(side, axis=1)[0]
            for side in zip(
                *(release.tables.support("block", t, np.array(at)) for t in tables), strict=True
            )
        )
        true = np.concatenate([truth.counts["block", t][at].toarray()[0] for t in tables])
        counts = lists @ weights.T
        fits = ((low <= counts) & (counts <= high)).all(axis=1)
        least, most = counts[fits].min(axis=0), counts[fits].max(axis=0)
        wide, exact = low < high, (low < high) & (least == most)
        assert row["coarsened"] == wide.sum()
        assert row["recovered"] == exact.sum()
        assert row["empty"] == (exact & (most == 0)).sum()
        assert row["small_recovered"] == (exact & (true > 0) & (true <= 2)).sum()
        assert row["at_least_one"] == (wide & (low == 0) & (least > 0)).sum()
        assert row["records"] == lists[fits].min(axis=0).sum()
        assert row["decided"] == row["counts"] == low.size
        if (high < 100).all():
            assert row["width"] == (most - least)[wide].sum()
    assert (found["coarsened"].sum() == 0) == (name == "identity")


def test_noise_proves_nothing():
    mechanism = make_mechanism("discrete-gaussian", rho="1", **SHARES)
    release, truth, _ = released(mechanism)
    places = release.tables.geoids["block"].tolist()
    found = release_proofs(release.tables, truth, places, whole=["sex", "race"])
    nothing = ["limited", "recovered", "at_least_one", "records"]
    assert (found[nothing] == 0).to_numpy().all()
    assert np.isinf(found["width"]).all()
