"""Two releases some years apart: posteriors, certainty and calibration against enumeration."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from oracles import years as oracle
from random_places import COARSE, GEOGRAPHY, KINDS, WIDE, publish, score
from two_years import MOST, two_years

from bayesrisk import MechanismSpec, PublishedTables, Release, Schema, Workload
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.release import NoiseSpec, RangeSpec, RoundingSpec, TrueCounts
from bayesrisk.tables import Attribute, PopulationChange, Table

ALL = (*KINDS, WIDE, COARSE)


def asked(law, paths, rng):
    """Return questions with what each counts, and among which, by path; and tails."""
    names, found = law.schema.names, []
    both = [f is not None and g is not None for f, g, _ in paths]
    first = [f is not None for f, *_ in paths]
    for i, name in enumerate(names):
        changed = [b and f[i] != g[i] for b, (f, g, _) in zip(both, paths, strict=True)]
        value = int(rng.integers(law.schema.shape[i]))
        known = [f is not None and f[i] == value for f, *_ in paths]
        found += [
            (law.condition(changed=[name]), law.condition(present="both"), changed, both),
            (law.condition(changed=[name]), law.condition({name: [value]}), changed, known),
            (law.condition(present="both"), law.condition({name: [value]}), both, known),
        ]
        after = [g is not None and g[i] == value for _, g, _ in paths]
        among = law.condition({name: [value]}, present="both")
        known = [a and b for a, b in zip(known, both, strict=True)]
        found.append((law.condition(later={name: [value]}), among, after, known))
    left = law.condition(present="left")
    found.append((left, law.condition({}), [g is None for _, g, _ in paths], first))
    return [(w, a, np.array(x), np.array(y)) for w, a, x, y in found]


def largest_difference(seed, kinds):
    law, prior, joint, (paths, terms), _ = two_years(seed, kinds)
    weight, x = oracle.posterior(paths, MOST, terms)
    rng = np.random.default_rng(seed)
    told = asked(law, paths, rng)
    questions = [RecordQuestion(w, among=a) for w, a, *_ in told]
    questions += [RecordQuestion(w, at_least=1) for w, *_ in told]
    found = microdata_posterior(
        joint, questions, level="block", place="100", prior=prior, engine="exact"
    )
    values, off = found.answers["posterior"].to_numpy(), []
    for value, tail, (_, _, counted, group) in zip(
        values[: len(told)], values[len(told) :], told, strict=True
    ):
        inside = weight @ (x @ group)
        if inside > 1e-30:
            off.append(abs(value - weight @ (x @ (counted & group)) / inside))
        off.append(abs(tail - weight @ ((x @ counted) > 0)))
    return np.max(off)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(ALL), st.sampled_from(ALL))
def test_beliefs_equal_enumeration(seed, first, later):
    assert largest_difference(seed, (first, later)) < 1e-9


@pytest.mark.slow
def test_two_thousand_pairs_of_years_equal_enumeration():
    rng = np.random.default_rng(1128)
    kinds = rng.integers(len(ALL), size=(2000, 2))
    worst = [largest_difference(s, (ALL[a], ALL[b])) for s, (a, b) in enumerate(kinds)]
    assert np.max(worst) < 1e-9


# ---- calibration: of statements with probability q a share q is true


SCHEMA = Schema("town", (Attribute("sex", 2), Attribute("age", 3)), GEOGRAPHY)
LAW = PopulationChange(
    SCHEMA, 10, age="age", starts=[0, 20, 50], staying=[0.7, 0.5, 0.8], dying=[0.0, 0.02, 0.4],
    changes={"sex": 0.15}, arrivals=0.3, births=0.15,
)  # fmt: skip
COUNTS = np.array([1.2, 1.2, 0.6, 0.6, 1.2, 1.2])
SEX, AGE = np.eye(2, dtype=np.int64), np.eye(3, dtype=np.int64)
TABLES = (
    Table("sex", ("0", "1"), {"sex": SEX}),
    Table("age", ("0", "1", "2"), {"age": AGE}),
    Table("both", tuple("abcdef"), {"sex": np.repeat(SEX, 3, 0), "age": np.tile(AGE, (2, 1))}),
)
PUBLISHED = (
    TrueCounts(),
    NoiseSpec("discrete-gaussian", 1),
    NoiseSpec("discrete-laplace", "1/2"),
    RoundingSpec(3, "nearest"),
    RoundingSpec(3, "random"),
    RangeSpec((0, 1, 4, 8), (0, 2, 6, 9), None),
)


LARGEST = 12  # trajectories of a population: with more, some exact laws take minutes


def prior_of(law):
    """Return the prior under a law of change, for populations of at most so many trajectories."""
    prior = RecordPrior.trajectories(law, COUNTS)
    size = prior.size[: LARGEST + 1]
    return replace(prior, size=size / size.sum())


def population(seed):
    """Return releases of a population in two years, and the number of each trajectory."""
    rng = np.random.default_rng([seed, 5])
    prior = prior_of(LAW)
    x = rng.multinomial(int(rng.choice(prior.size.size, p=prior.size)), prior.shares)
    releases, kinds = {}, []
    for later in (False, True):
        cells = oracle.cells_of_year(LAW, np.repeat(np.arange(x.size), x), later=later)
        true = np.bincount(cells[cells >= 0], minlength=SCHEMA.size)
        table = TABLES[int(rng.integers(2 if "both" in kinds else 3))]
        kinds.append(table.name)
        law = PUBLISHED[int(rng.integers(len(PUBLISHED)))]
        weights = table.incidence(SCHEMA, np.arange(SCHEMA.size)).toarray()
        out, hidden = publish(rng, law, (weights @ true)[None, :])
        key = ("block", table.name)
        published = PublishedTables(
            Workload(SCHEMA, {key: table}),
            {"block": np.array(["100"])},
            {key: sp.csr_array(out)},
            {key: sp.csr_array(hidden)},
        )
        releases[str(later)] = Release(MechanismSpec("random", {}, {key: law}), published)
    return releases, x


def statements(seeds, law=LAW):
    """Return for every statement its probability, the people whom it may be about, and how many."""
    wanted = []
    for a in range(3):
        wanted.append((LAW.condition(changed=["sex"]), LAW.condition({"age": [a]}, present="both")))
        for s in range(2):
            known = LAW.condition({"sex": [s], "age": [a]})
            wanted.append((LAW.condition(changed=["sex"]), known))
            wanted.append((LAW.condition(present="both"), known))
    both = LAW.schema_of_both
    index = both.indices(np.arange(both.size))

    def counted(condition):
        return np.all([np.isin(index[n], v) for n, v in condition.items()], axis=0)

    masks = [(counted(w), counted(a)) for w, a in wanted]
    asked_ = [RecordQuestion(w, among=a) for w, a in wanted]
    prior = prior_of(law)
    rows = []
    for seed in seeds:
        releases, x = population(seed)
        joint = Release.combine(releases, change=law)
        found = microdata_posterior(
            joint, asked_, level="block", place="100", prior=prior, engine="exact"
        )
        for q, (true, group) in zip(found.answers["posterior"], masks, strict=True):
            if x[group].sum():
                rows.append((q, x[group].sum(), x[true & group].sum()))
    return np.array(rows).T


@pytest.mark.slow
def test_beliefs_about_two_thousand_populations_are_calibrated():
    q, group, hit = statements(range(2000))
    open_ = (q > 0.0) & (q < 1.0)
    assert np.array_equal(hit[~open_], (q * group)[~open_])  # what is certain is true
    q, group, hit = q[open_], group[open_], hit[open_]
    assert q.size > 10_000
    assert abs(score(q, group, hit)) < 3.5
    # By tenths of the probability, too.
    for low in np.arange(0.0, 1.0, 0.1):
        part = (q >= low) & (q < low + 0.1)
        off = (hit - q * group)[part]
        assert abs(off.sum()) < 4.0 * np.sqrt((off**2).sum())
    sharp = q**1.3 / (q**1.3 + (1.0 - q) ** 1.3)
    assert score(sharp, group, hit) < -3.5


@pytest.mark.slow
def test_a_wrong_rate_is_not_calibrated():
    wrong = replace(LAW, staying=[0.95, 0.9, 0.95])
    q, group, hit = statements(range(300), wrong)
    off = hit - q * group
    assert abs(off.sum()) > 4.0 * np.sqrt((off**2).sum())


def test_beliefs_about_a_few_populations_are_calibrated():
    q, group, hit = statements(range(6))
    assert np.array_equal(hit[(q == 0) | (q == 1)], (q * group)[(q == 0) | (q == 1)])
    assert abs(score(q, group, hit)) < 3.5


def test_chains_about_two_years_agree_with_exact_laws():
    asked_ = [
        RecordQuestion(LAW.condition(present="both"), among=LAW.condition({"age": [1]})),
        RecordQuestion(LAW.condition(changed=["sex"])),
    ]
    off = []
    for seed in range(60):
        releases, _ = population(seed)
        if not all(law.random for r in releases.values() for law in r.spec.noise.values()):
            continue
        if not all(r.spec.noise for r in releases.values()):
            continue
        where = {"level": "block", "place": "100", "prior": prior_of(LAW)}
        joint = Release.combine(releases, change=LAW)
        exact = microdata_posterior(joint, asked_, **where, engine="exact").answers
        chain = microdata_posterior(joint, asked_, **where, engine="people", rng=seed).answers
        assert (chain["error"] < 0.05).all()
        off += ((chain["posterior"] - exact["posterior"]) / chain["error"]).tolist()
        if len(off) >= 6:
            break
    assert len(off) >= 6
    assert np.abs(off).max() < 4.5
