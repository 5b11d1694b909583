"""Several releases of the same people: posteriors, bounds and claims against enumeration."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings, strategies as st
from oracles import record_law as oracle
from random_places import COARSE, KINDS, WIDE, pair, questions

from bayesrisk import Release, tabulate
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.reconstruction import (
    count_bounds,
    find_claims,
    reconstruct,
    solution_variability,
    verify_claims,
)
from bayesrisk.release import MechanismSpec, NoiseSpec, RoundingSpec, SuppressedCounts, TrueCounts
from bayesrisk.tables import Attribute, Geography, PublishedTables, Records, Schema, Table, Workload

ALL = (*KINDS, WIDE, COARSE)


def enumerated(seed, kinds, n_places):
    """Return the largest difference between beliefs from two releases and their enumeration."""
    releases, prior, terms, _ = pair(seed, kinds, n_places)
    law = oracle.posterior(*terms)
    cells = np.indices(prior.schema.shape).reshape(len(prior.schema.shape), -1)

    def numbers(histograms, condition, place):
        kept = np.ones(cells.shape[1], bool)
        for name, codes in condition.items():
            kept &= np.isin(cells[prior.schema.names.index(name)], list(codes))
        chosen = histograms if place is None else [histograms[int(place[1:])]]
        return sum(int(np.array(h)[kept].sum()) for h in chosen)

    level = "block" if n_places == 1 else "tract"
    where = releases[0].tables.geoids[level][0]
    asked = [q for q in questions(prior.schema, n_places) if q.among is None]
    found = microdata_posterior(
        releases, asked, level=level, place=where, prior=prior, engine="exact"
    )
    off = []
    for question, value in zip(asked, found.answers["posterior"], strict=True):
        held = [(w, numbers(x, question.where, question.place)) for w, x in law]
        if question.at_least is None:
            expected = math.fsum(w * k for w, k in held)
        else:
            expected = math.fsum(w for w, k in held if k >= question.at_least)
        off.append(abs(value - expected))
    return max(off)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(ALL), st.sampled_from(ALL), st.integers(1, 2))
def test_beliefs_equal_enumeration(seed, first, second, n_places):
    assert enumerated(seed, (first, second), n_places) < 1e-9


@pytest.mark.slow
def test_two_thousand_pairs_equal_enumeration():
    rng = np.random.default_rng(20261123)
    worst = 0.0
    for seed in range(2000):
        kinds = [ALL[i] for i in rng.integers(len(ALL), size=2)]
        worst = max(worst, enumerated(seed, kinds, 1 + seed % 2))
    assert worst < 1e-9


def test_one_release_alone_is_not_enough():
    """The test above can fail: beliefs from the first release differ from those from both."""
    off = []
    for seed in range(10):
        releases, prior, _, _ = pair(seed, ("noisy", "exact"), 1)
        where = {"level": "block", "place": releases[0].tables.geoids["block"][0], "prior": prior}
        asked = questions(prior.schema, 1)[:1]
        one, both = (microdata_posterior(r, asked, **where) for r in (releases[0], releases))
        off.append(abs(one.answers["posterior"][0] - both.answers["posterior"][0]))
    assert max(off) > 0.1


def halves(tables, chosen):
    """Return the chosen tables, and the others, as two releases of the same places."""
    parts = []
    for keys in (chosen, [key for key in tables.workload.tables if key not in chosen]):
        work = Workload(tables.workload.schema, {key: tables.workload.tables[key] for key in keys})
        parts.append(
            PublishedTables(
                work,
                {level: tables.geoids[level] for level in work.levels},
                {key: tables.counts[key] for key in keys},
                {key: tables.suppressed[key] for key in keys if key in tables.suppressed},
                {key: tables.laws[key] for key in keys if key in tables.laws},
            )
        )
    return parts


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 2))
def test_two_halves_prove_what_the_whole_proves(seed, n_places):
    """Bounds, statuses and claims of one release, which are those of enumeration elsewhere."""
    (one, _), _, _, _ = pair(seed, ("rounded", "exact"), n_places)
    tables = one.tables
    keys = [key for key in tables.workload.tables if key[0] == "block"]
    assume(len(tables.workload.tables) > 1)
    several = halves(tables, keys[:1])
    scope = tables.workload.levels[0]
    assert sorted(reconstruct(several, scope=scope).status) == sorted(
        reconstruct(tables, scope=scope).status
    )
    whole, both = (count_bounds(given).to_frame() for given in (tables, several))
    both["table"] = both["table"].str.partition(": ")[2]
    # Of two tables of one release that state the same, the combination has one.
    names = [pd.MultiIndex.from_frame(frame[["level", "table"]]) for frame in (whole, both)]
    whole = whole[names[0].isin(names[1])]
    order = ["level", "geoid", "table", "cell"]
    pd.testing.assert_frame_equal(
        both.sort_values(order).reset_index(drop=True),
        whole.sort_values(order).reset_index(drop=True),
        check_dtype=False,
    )
    assert len(whole) > 0


def town():
    """Return tables of two blocks of three people, counted by sex and by age."""
    schema = Schema(
        "town", (Attribute("sex", 2), Attribute("age", 2)), Geography("g", ("block",), (1,))
    )
    by_one = {
        ("block", name): Table(name, ("0", "1"), {name: np.eye(2, dtype=int)})
        for name in schema.names
    }
    people = pd.DataFrame({"block": list("111222"), "sex": [0, 1, 1, 0, 0, 1], "age": [0, 1] * 3})
    return tabulate(Records.from_frame(people, schema=schema), Workload(schema, by_one))


def under(tables, law):
    """Return a release of tables under one law."""
    return Release(MechanismSpec("stated", others=law), tables)


def test_repeated_true_counts_are_one_row():
    tables = town()
    joint = PublishedTables.combine({"spring": tables, "autumn": tables})
    assert list(joint.workload.tables) == [("block", "spring: sex"), ("block", "spring: age")]
    assert joint.counts["block", "spring: sex"].toarray().tolist() == [[1, 2], [2, 1]]
    one, two = (reconstruct(t, scope="block") for t in (tables, [tables, tables]))
    assert one.to_frame().equals(two.to_frame())
    one, two = (find_claims(t).to_frame() for t in (tables, [tables, tables]))
    assert one.equals(two)
    assert verify_claims([tables, tables], two).to_frame().equals(two)
    one, two = (
        solution_variability(t, scope="block").to_frame() for t in (tables, [tables, tables])
    )
    assert one.equals(two)
    assert one["upper"].max() > 0


def test_independent_noise_is_there_twice():
    tables = town()
    noisy = under(tables, NoiseSpec("discrete-gaussian", 2))
    joint = Release.combine({"a": noisy, "b": noisy})
    assert len(joint.tables.workload.tables) == 4
    assert {law.scale for law in joint.spec.tables.values()} == {2}
    assert joint.simulation
    assert joint.spec.parameters["releases"]["b"]["mechanism"] == "stated"


def test_two_noisy_releases_narrow_as_the_product_of_their_likelihoods():
    """One unknown count: the posterior is the normalised product of two noise laws."""
    schema = Schema("s", (Attribute("kind", 2),), Geography("g", ("block",), (1,)))
    work = Workload(schema, {("block", "T"): Table("T", ("one",), {"kind": [[1, 0]]})})
    prior = RecordPrior(schema, np.array([1.0, 0.0]), None, np.full(7, 1 / 7))
    law = DiscreteGaussian(sigma2=3)
    releases = [
        under(
            PublishedTables(work, {"block": ["1"]}, {("block", "T"): np.array([[count]])}),
            NoiseSpec("discrete-gaussian", 3),
        )
        for count in (2, 5)
    ]
    asked = [RecordQuestion({"kind": [0]}, at_least=k) for k in range(1, 7)]
    found = microdata_posterior(releases, asked, level="block", place="1", prior=prior)
    weight = law.pmf(2 - np.arange(7)) * law.pmf(5 - np.arange(7))
    tail = np.cumsum((weight / weight.sum())[::-1])[::-1][1:]
    np.testing.assert_allclose(found.answers["posterior"], tail, rtol=1e-9)


def test_contradictions_are_named_by_release():
    tables = town()
    counts = {key: part.toarray() for key, part in tables.counts.items()}
    counts["block", "sex"][1] += [1, 0]
    other = PublishedTables(tables.workload, tables.geoids, counts)
    with pytest.raises(DataError) as caught:
        PublishedTables.combine({"spring": tables, "autumn": other})
    for part in ("block 2", "'autumn: sex'", "'spring: sex'", "is 3", "and 2"):
        assert part in str(caught.value)
    # Rounded counts that exact ones exclude: nothing fits, and the table is named by its release.
    counts = {key: np.full((2, 2), 2) for key in counts}
    near = PublishedTables(tables.workload, tables.geoids, counts)
    rounded = under(near, RoundingSpec(2, "nearest")).tables
    assert reconstruct({"exact": tables, "rounded": rounded}, scope="block").status[1] == "feasible"
    counts["block", "sex"][1] += [4, 0]
    far = PublishedTables(tables.workload, tables.geoids, counts)
    far = under(far, RoundingSpec(2, "nearest")).tables
    found = reconstruct({"exact": tables, "rounded": far}, scope="block")
    assert found.status[1] == "infeasible"
    assert "rounded: sex" in found.conflict[1]


def test_places_that_overlap():
    tables = town()
    second = PublishedTables(
        tables.workload,
        {"block": ["2", "3"]},
        {key: np.array([[1, 1], [2, 2]]) for key in tables.workload.tables},
    )
    noisy = under(second, NoiseSpec("discrete-gaussian", 1))
    joint = Release.combine([under(tables, TrueCounts()), noisy])
    assert joint.tables.geoids["block"].tolist() == ["1", "2", "3"]
    hidden = joint.tables.hidden("block", "1: sex").toarray()
    assert hidden.tolist() == [[False, False], [False, False], [True, True]]
    assert (
        joint.tables.hidden("block", "2: age").toarray().tolist()
        == [[True] * 2] + [[False] * 2] * 2
    )
    assert joint.tables.count("block", "2: sex", "3").tolist() == [2, 2]
    with pytest.raises(ArgumentError, match="block 1"):
        Release.combine([under(tables, TrueCounts()), under(second, SuppressedCounts(1, 2))])


def test_what_is_no_release_is_refused():
    with pytest.raises(ArgumentError, match="releases"):
        PublishedTables.combine([])
    with pytest.raises(ArgumentTypeError, match="releases"):
        Release.combine({"a": town()})
    with pytest.raises(ArgumentTypeError, match="tables"):
        reconstruct("tables", scope="block")
