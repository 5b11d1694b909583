"""The bottom-up post-processing against its description, place by place."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import topdown as oracle

from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms import BottomUp, make_mechanism
from bayesrisk.mechanisms.bottom_up import roles, scale_counts
from bayesrisk.tables import Microdata, Records, Schema, Workload

SEEDS = st.integers(0, 2**32 - 1)


def households(seed=0, *, count=80, blocks=6):
    """Return occupied units; the last block has none."""
    rng = np.random.default_rng(seed)
    places = [f"37001000100{group}00{k}" for group in (1, 2) for k in range(blocks // 2)]
    frame = pd.DataFrame({"block": rng.choice(places[:-1], size=count)})
    for attribute in Schema.named("household-occupancy").attributes:
        codes = rng.integers(attribute.size, size=count) + attribute.first
        frame[attribute.name] = codes
    frame["household"] = np.arange(count)
    records = Records.from_frame(frame, schema=Schema.named("household-occupancy"))
    return Microdata(None, records, pd.DataFrame({"block": places, "x": 0.0, "y": 0.0}))


TABLES = Workload.named("household-occupancy", levels=["tract", "block"])


def by_hand(data, tables, noise, seed):
    """Return the block tables as the appendix makes them, from the same draws."""
    frame, rng = data.households.to_frame(), np.random.default_rng(seed)
    places = sorted(data.blocks["block"])
    sizes = np.array(
        [np.bincount(frame["size"][frame.block == b] - 1, minlength=7) for b in places]
    )
    race = np.array(
        [np.bincount(frame["race_ethnicity"][frame.block == b], minlength=14) for b in places]
    )
    children = np.array([[frame["children"][frame.block == b].sum()] for b in places])
    truth = {"P15": race, "P16": children, "H13": sizes}
    occupied = sizes.sum(axis=1)
    drawn = {}
    for name in (name for name in tables.at("block") if name in truth):
        scale = noise["block", name].scale
        noisy = truth[name] + DiscreteGaussian(scale).rvs(truth[name].shape, rng)
        drawn[name] = noisy
        if name != "P16":
            rng.random(truth[name].shape)  # what breaks ties
    return drawn, occupied


@settings(max_examples=20)
@given(seed=SEEDS, rho=st.sampled_from(["1/10", "3", "300"]))
def test_the_steps_of_the_appendix(seed, rho):
    data = households(seed % 1000)
    mechanism = BottomUp(sensitivity="steed-2024", allocation="uniform", rho=rho)
    release = mechanism.release(data, workload=TABLES, rng=seed)
    counts = {name: release.tables.counts["block", name].toarray() for name in TABLES.at("block")}
    drawn, occupied = by_hand(data, TABLES, mechanism.measurement_noise(TABLES), seed)
    assert np.array_equal(counts["H3"][:, 0], occupied)
    for name in ("H13", "P15"):
        for row, (noisy, total) in enumerate(zip(drawn[name], occupied, strict=True)):
            exact = oracle.appendix_f(noisy, total)
            assert counts[name][row].sum() == total
            assert all(
                abs(c - e) < 1 for c, e in zip(counts[name][row].tolist(), exact, strict=True)
            )
    assert np.array_equal(counts["P1"][:, 0], counts["H13"] @ np.arange(1, 8))
    clipped = np.maximum(drawn["P16"], 0)
    assert np.array_equal(counts["P16"], np.minimum(clipped, counts["P1"]))
    for name, below in counts.items():
        assert np.array_equal(
            release.tables.counts["tract", name].toarray(), below.sum(axis=0)[None]
        )


def test_exact_tables_are_the_truth_and_said_to_be():
    data = households(3)
    release = BottomUp(sensitivity="steed-2024", allocation="das-2020").release(
        data, workload=TABLES, rng=0
    )
    frame = data.households.to_frame()
    subsidised = frame[frame["subsidised"] == 1]
    assert release.tables.counts["tract", "HUD-households"].sum() == len(subsidised)
    assert release.tables.counts["tract", "HUD-people"].sum() == subsidised["size"].sum()
    assert set(release.spec.invariants) == {
        (level, name)
        for level in ("tract", "block")
        for name in ("H3", *(n for n in TABLES.at("block") if n.startswith("HUD-")))
    }
    assert release.spec.noise == {}
    # 36 times its budget for the children, who move by 6 in two blocks; once for the rest.
    parts = [Fraction("0.0002") / n * Fraction(r) for n, r in ((3360, "7.7"), (2, "7.7"))]
    children = Fraction("0.0002") / 2 * Fraction("4.96")
    assert release.diagnostics == {"rho": float(sum(parts) + 36 * children)}


def test_budgets_of_the_reference():
    noise = BottomUp(sensitivity="steed-2024", allocation="das-2020").measurement_noise(TABLES)
    assert {name: spec.scale for (_, name), spec in noise.items()} == {
        "H13": Fraction(3360) / (Fraction("0.0002") * Fraction("7.7")),
        "P15": Fraction(2) / (Fraction("0.0002") * Fraction("7.7")),
        "P16": Fraction(2) / (Fraction("0.0002") * Fraction("4.96")),
    }
    uniform = BottomUp(
        sensitivity="steed-2024", allocation="uniform", rho="1/10"
    ).measurement_noise(TABLES)
    assert {spec.scale for spec in uniform.values()} == {Fraction(30)}


KINDS = ("add-remove", "change-one")


def worst_loss(noise, kind):
    """Return the largest sum of squared differences / (2 sigma2), over all neighbours, by listing.

    Every household that there can be, in either of two blocks, in place of every other one.
    """
    codes = np.indices((2, 7, 14, 7)).reshape(4, -1)  # block, size, race, children
    block, size, race, children = codes
    tables = {
        "H13": np.eye(14)[7 * block + size],
        "P15": np.eye(28)[14 * block + race],
        "P16": np.eye(2)[block] * children[:, None],
    }
    inverse = {table: 0.5 / float(spec.scale) for (_, table), spec in noise.items()}
    weighted = np.hstack([tables[name] * inverse[name] ** 0.5 for name in inverse])
    norms = (weighted**2).sum(axis=1)
    if kind == "add-remove":
        at = (int(norms.argmax()),)
    else:
        gaps = norms[:, None] + norms[None, :] - 2 * weighted @ weighted.T
        at = np.unravel_index(int(gaps.argmax()), gaps.shape)
    worst = Fraction(0)  # again, exactly
    for (_, name), spec in noise.items():
        rows = tables[name][list(at)].astype(int)
        change = rows[0] - rows[1] if len(at) == 2 else rows[0]
        worst += Fraction(int((change**2).sum())) / (2 * spec.scale)
    return worst


@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbour_costs_more_than_the_budget(kind):
    budget = {"H13": "1/7", "P15": "2", "P16": "3/5"}
    stated = sum(map(Fraction, budget.values()))
    honest = BottomUp(sensitivity=kind, budget=budget)
    assert worst_loss(honest.measurement_noise(TABLES), kind) == stated
    data = households(4)
    assert honest.release(data, workload=TABLES, rng=0).diagnostics == {"rho": float(stated)}
    # Negative control: the reading of the paper exceeds it, and says so.
    paper = BottomUp(sensitivity="steed-2024", budget=budget)
    spent = worst_loss(paper.measurement_noise(TABLES), "change-one")
    assert spent == stated + 35 * Fraction("3/5")
    assert paper.release(data, workload=TABLES, rng=0).diagnostics == {"rho": float(spent)}
    assert paper.release(data, workload=TABLES, rng=0).spec.parameters["sensitivity"] == (
        "steed-2024"
    )


def test_a_huge_budget_returns_the_truth():
    data = households(1)
    release = BottomUp(sensitivity="steed-2024", allocation="uniform", rho=10**6).release(
        data, workload=TABLES, rng=0
    )
    truth = make_mechanism("identity").release(data, workload=TABLES, rng=0)
    assert release.tables == truth.tables


@settings(max_examples=40)
@given(seed=SEEDS, levels=st.integers(1, 3))
def test_any_workload(seed, levels):
    microdata, tables = oracle.world(np.random.default_rng(seed), levels=levels)
    mechanism = BottomUp(sensitivity="steed-2024", allocation="uniform", rho=1, universe="total")
    release = mechanism.release(microdata, workload=tables, rng=seed)
    truth = oracle.dense_histograms(microdata, tables)
    for level in tables.levels:
        totals = [truth[level][place].sum() for place in release.tables.geoids[level]]
        for name in tables.at(level):
            counts = release.tables.counts[level, name].toarray()
            assert counts.min(initial=0) >= 0
            assert counts.sum(axis=1).tolist() == totals
    # Margins of one measured cross agree with it.
    detail = release.tables.counts[tables.levels[-1], " * ".join(tables.schema.names)].toarray()
    for name in tables.schema.names:
        if name in tables.at(tables.levels[-1]):
            margin = release.tables.counts[tables.levels[-1], name].toarray()
            codes = tables.schema.indices(np.arange(tables.schema.size))[name]
            assert all(
                np.array_equal(detail[:, codes == code].sum(axis=1), margin[:, code])
                for code in range(margin.shape[1])
            )


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(0, 12),
    SEEDS,
)
def test_scaling_takes_largest_remainders(noisy, total, seed):
    counts = np.array(noisy)
    totals = np.full(len(counts), total)
    scaled = scale_counts(counts, totals, np.random.default_rng(seed))
    for row, result in zip(noisy, scaled.tolist(), strict=True):
        exact = oracle.appendix_f(row, total)
        best = min(
            sum(abs(e - c) for e, c in zip(exact, (a, b, total - a - b), strict=True))
            for a in range(total + 1)
            for b in range(total + 1 - a)
        )
        assert sum(result) == total
        assert sum(abs(e - c) for e, c in zip(exact, result, strict=True)) == best


def test_ties_fall_at_random():
    zeros, rng = np.zeros((4000, 4), dtype=np.int64), np.random.default_rng(0)
    share = scale_counts(zeros, np.ones(4000, dtype=np.int64), rng).mean(axis=0)
    assert np.abs(share - 0.25).max() < 5 * (0.25 * 0.75 / 4000) ** 0.5


def test_roles():
    found = roles(TABLES.select(levels=["block"]), universe="H3", exact=())
    assert found.split == ("P15", "H13")
    assert set(found.derived) == {"P1"}
    assert found.derived["P1"][0] == "H13"
    assert found.derived["P1"][1].tolist() == [list(range(1, 8))]
    assert "HUD-bedrooms" in found.measured


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sensitivity": "none"}, "sensitivity must be one of add-remove, change-one, steed-2024"),
        ({}, "exactly one of allocation and budget"),
        ({"allocation": "other"}, "allocation must be one of das-2020, uniform, got 'other'"),
        ({"allocation": "uniform"}, "rho must be given with allocation 'uniform'"),
        ({"allocation": "uniform", "rho": 0}, "rho must be > 0, got 0"),
        ({"budget": {"H13": -1}}, r"budget\['H13'\] must be > 0, got -1"),
        ({"budget": {"H13": 1}, "exact": "H3"}, "exact must be a sequence, got 'H3'"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        BottomUp(**{"sensitivity": "change-one"} | parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"universe": "P15"}, "universe must be one cell that counts every record, got 'P15'"),
        ({"exact": ["moon"]}, "must name tables of the workload, got 'moon'"),
        ({"exact": []}, "budget must have table 'HUD-households'"),
        ({"bounds": {"H13": "P1"}}, "bounds must map measured tables"),
        ({"bounds": {"P16": "H13"}}, "bounds must be of tables of one cell"),
    ],
)
def test_what_does_not_fit_the_workload_is_refused(parameters, message):
    with pytest.raises(ArgumentError, match=message):
        BottomUp(sensitivity="steed-2024", allocation="das-2020", **parameters).release(
            households(), workload=TABLES, rng=0
        )


def test_other_refusals():
    data = households()
    budget = {"H13": 1, "P15": 1, "P16": 1}
    with pytest.raises(ArgumentError, match="budget must name measured tables only, got 'P1'"):
        BottomUp(sensitivity="change-one", budget={**budget, "P1": 1}).release(
            data, workload=TABLES, rng=0
        )
    with pytest.raises(ArgumentError, match="sigma2 of table 'P15' must be <= "):
        BottomUp(sensitivity="change-one", budget={**budget, "P15": "1e-16"}).release(
            data, workload=TABLES, rng=0
        )
    microdata, tables = oracle.world(np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="universe must be given for schema 'random'"):
        BottomUp(sensitivity="steed-2024", allocation="uniform", rho=1).release(
            microdata, workload=tables, rng=0
        )
    apart = Workload(
        TABLES.schema,
        {("tract", "P1"): TABLES.tables["tract", "P1"]}
        | {("block", n): TABLES.tables["block", n] for n in ("H3", "H13")},
    )
    with pytest.raises(ArgumentError, match="must have table 'P1' of level 'tract' at 'block'"):
        BottomUp(sensitivity="steed-2024", allocation="das-2020").release(
            data, workload=apart, rng=0
        )
