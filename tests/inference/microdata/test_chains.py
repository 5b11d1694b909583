"""The two chains against the exact law; what they cannot settle, they do not answer."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles import record_law as oracle
from random_places import one_block, place, questions, three_levels, town
from scipy.optimize import OptimizeResult
from scipy.stats import binom, binomtest

from bayesrisk import MechanismSpec, PublishedTables, Records, Release, Schema, Workload
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import KnownRecords, RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata import chains, people_model as kernels, people_model as module
from bayesrisk.inference.microdata.chains import (
    Draws,
    LatticeChains,
    PeopleChain,
    TooLateError,
    draw,
    moving,
)
from bayesrisk.inference.microdata.people_model import people_model, put
from bayesrisk.inference.microdata.people_moves import sweep
from bayesrisk.inference.microdata.posterior import ChainNeededError, record_law
from bayesrisk.inference.microdata.questions import (
    QuestionFunctions,
    answer_interval,
    estimate_answers,
)
from bayesrisk.inference.microdata.system import make_system, presolve
from bayesrisk.inference.sampling.chains import chain_numbers
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import NoiseSpec, RoundingSpec, TrueCounts
from bayesrisk.tables import Attribute, Geography, Table

BLOCKS = ["1100", "1101", "1200", "1201"]
SEXES = {"sex": [0]}, {"sex": [1]}


def small_place(seed, kind, n_places):
    """Return a random place, what is asked about it, and where it is."""
    release, prior, _, _ = place(seed, kind, n_places)
    level = "block" if n_places == 1 else "tract"
    common = {"level": level, "place": release.tables.geoids[level][0], "prior": prior}
    return release, questions(prior.schema, n_places), common


def of_town(seed, together):
    """Return people by sex and age of a town, or of its first block, of known size."""
    release, prior, _ = town(seed, 2, together)
    level, code = ("tract", "1") if together else ("block", "1000")
    asked = [RecordQuestion({"sex": [s], "age": [a]}) for s in range(2) for a in range(4)]
    return release, asked, {"level": level, "place": code, "prior": prior}


def misleading(seed):
    """Return a block of six people whose noisy counts are 4, 4 and less than none."""
    release, asked, common = of_town(0, together=False)
    cells = [[-1, 4, 4, -1, 0, 0, 0, 0]] * 2
    counts = {("block", "total"): [[6], [0]], ("block", "both"): cells}
    counts = {key: sp.csr_array(np.array(value)) for key, value in counts.items()}
    asked += [RecordQuestion({"sex": [0], "age": [0]}, at_least=m) for m in (1, 2)]
    return replace(release, tables=replace(release.tables, counts=counts)), asked, common


def of_levels(seed, wanted=SEXES, most=2, known=(), **prior):
    """Return each block of a tract of three levels, most with tables of their own."""
    release, own = three_levels(seed, most)
    asked = [RecordQuestion(w, place=b) for b in BLOCKS for w in wanted]
    common = {"level": "tract", "place": "1", "prior": replace(own, **prior), "known": known}
    return release, asked, common


def areas(seed):
    release, asked, common = of_levels(seed)
    asked += [RecordQuestion(SEXES[1], among={}, place=b) for b in BLOCKS]
    return release, asked, common


def gaps_in(known):
    """Return places of nobody or three people, of which something may be known."""
    of = {"wanted": ({}, SEXES[0]), "most": 3, "known": known, "concentration": 5.0}
    return lambda seed: of_levels(3, **of, size=np.array([0.5, 0.0, 0.0, 0.5]))


NOBODY = KnownRecords(SEXES[0], count=0, relation="exactly", place="1100")
#: Places by seed, the seeds, draws of a chain, and how many answers have errors at least.
PLACES = {
    "one block": (lambda seed: small_place(seed, "noisy", 1), (2, 3, 5, 7), 300, 10),
    "two blocks": (lambda seed: small_place(seed, "noisy", 2), range(3), 300, 5),
    "sizes of blocks are known": (lambda seed: of_town(seed, together=False), range(6), 1000, 20),
    "and a table of the town": (lambda seed: of_town(seed, together=True), range(6), 1000, 20),
    "counts that mislead": (misleading, range(3), 1000, 24),
    "areas inside areas": (areas, range(1), 1000, 8),
    "gaps": (gaps_in([]), range(2), 500, 8),
    "gaps, somebody known": (gaps_in([KnownRecords(SEXES[1], place="1101")]), range(2), 500, 8),
    "gaps, known how many": (
        gaps_in([KnownRecords(SEXES[0], 2, place="1200", relation="exactly")]), range(2), 500, 8
    ),
    # Where some kind is known to be nobody, the shares of the others are larger.
    "a kind is not in one block": (lambda seed: of_levels(seed, known=[NOBODY]), range(1), 1000, 7),
    "more blocks": (lambda seed: small_place(seed, "noisy", 2), range(4), 1000, 5),
    "more areas": (areas, range(3), 1000, 24),
}  # fmt: skip
SLOW = ("more blocks", "more areas")


def both(release, asked, common, engine, seed, draws=1000):
    """Return the answers of a chain and of the exact law, and whether each is a share."""
    exact = microdata_posterior(release, asked, **common, engine="exact").answers
    how = {"engine": engine, "rng": seed, "draws": draws, "doublings": 0}
    shares = [q.at_least is not None or q.among is not None for q in asked]
    return microdata_posterior(release, asked, **common, **how), exact.assign(share=shares)


def surprises(pairs):
    """Return standardised differences, where a normal law holds; all are in their intervals."""
    found = []
    for sampled, exact in pairs:
        for a, b in zip(sampled.answers.itertuples(), exact.itertuples(), strict=True):
            if a.status != "sampled":
                continue
            assert a.lower <= a.posterior <= a.upper
            # One interval in a million misses; the exact law has an error of 1e-12.
            low, high = answer_interval(
                a.posterior, a.error, a.ess, share=b.share, level=1.0 - 1e-6
            )
            assert low - 1e-12 <= b.posterior <= high + 1e-12
            rare = b.share and min(b.posterior, 1.0 - b.posterior) * a.ess < 30
            if a.error > 0.0 and not rare:
                found.append((a.posterior - b.posterior) / a.error)
    return np.array(found)


@pytest.mark.parametrize("n", [400, 4000])
@pytest.mark.parametrize("p", [0.0003, 0.002, 0.03, 0.4, 0.997])
def test_intervals_of_rare_events_hold_as_often_as_they_say(n, p):
    """Every outcome of n independent draws of 0 or 1, weighed; the normal interval would fail."""
    events = np.arange(n + 1)
    error = np.sqrt(events / n * (1.0 - events / n) / n)
    found = np.array(
        [answer_interval(k / n, e, n, share=True) for k, e in zip(events, error, strict=True)]
    )
    weight = binom.pmf(events, n, p)
    assert weight @ ((found[:, 0] <= p) & (p <= found[:, 1])) >= 0.95
    low, high = binomtest(3, n).proportion_ci(0.95, method="exact")
    assert found[3] == pytest.approx([low, high], rel=1e-9)
    assert found[0] == pytest.approx([0.0, 1.0 - 0.025 ** (1 / n)])
    if n == 400 and p in (0.0003, 0.002, 0.997):
        normal = np.abs(events / n - p) <= 1.96 * error
        assert weight @ normal < 0.75


@pytest.mark.parametrize(
    ("engine", "case"),
    [("lattice", "one block"), ("lattice", "two blocks")]
    + [
        pytest.param("people", case, marks=[pytest.mark.slow] * (case in SLOW)) for case in PLACES
    ],
)  # fmt: skip
def test_chains_agree_with_the_exact_law_of_noisy_counts(engine, case):
    made, seeds, draws, fewest = PLACES[case]
    pairs = [both(*made(seed), engine, seed, draws) for seed in seeds]
    assert {sampled.engine for sampled, _ in pairs} == {engine}
    z = surprises(pairs)
    assert z.size >= fewest
    assert np.abs(z).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exact", "noisy", "rounded", "withheld", "mixed"])
def test_lattice_chains_agree_with_the_exact_law(kind):
    pairs = [
        both(*small_place(seed, kind, n), "lattice", seed) for n in (1, 2) for seed in range(40, 55)
    ]
    z = surprises(pairs)
    assert z.size >= 3
    assert np.abs(z).max() < 4.5
    assert np.mean(z**2) < 2.0


def test_a_chain_over_people_is_not_asked_to_cross_what_rounding_forbids():
    # Two kinds weigh 6 and 10: a sum of 30 is five of one or three of the other.
    release, prior = one_block(RoundingSpec(2, "nearest"), [30], np.array([[6, 10, 0]]), 6)
    asked = [RecordQuestion({"kind": [0]}, at_least=5)]
    common = {"level": "block", "place": "1", "prior": prior}
    with pytest.raises(ArgumentError, match="engine 'people' must have noisy"):
        microdata_posterior(release, asked, **common, engine="people", rng=1)
    exact = microdata_posterior(release, asked, **common).answers["posterior"][0]
    assert 0.001 < exact < 0.999
    found = microdata_posterior(release, asked, **common, engine="lattice", rng=1).answers
    if found["status"][0] == "sampled":
        assert abs(found["posterior"][0] - exact) < 4.5 * found["error"][0]
    else:
        assert np.isnan(found["posterior"][0])


def test_a_density_that_is_no_number_is_not_left_out():
    density = np.full((2, 500), np.nan)
    (kept,) = moving([density])
    assert not chain_numbers(kept).r_hat <= 1.01
    assert moving([np.ones((2, 500))]) == []


def test_the_same_seed_gives_the_same_draws():
    release, asked, common = small_place(3, "noisy", 2)
    common |= {"engine": "people", "draws": 50, "doublings": 0}
    one, two, other = (
        microdata_posterior(release, asked, **common, rng=seed).samples.counts for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one, two)
    assert np.any(one != other)


def model_of(most, **prior):
    """Return the model of a tract of three levels."""
    release, own = three_levels(1, most)
    own = replace(own, **prior)
    return people_model(make_system(release, level="tract", place="1", prior=own))


def spots(of, x):
    spot = of.spot.copy()
    put(of.arrays, spot, x)
    return spot


@pytest.mark.parametrize("kind", ["all moves", "unequal areas", "leaps"])
def test_a_chain_over_people_goes_back_as_often_as_forth(kind):
    """Every kind of move is in detailed balance; not if one block had a larger area than others."""
    if kind == "leaps":
        of = model_of(3, concentration=2.0, size=np.array([0.5, 0.0, 0.0, 0.5]))
        of.arrays.chance[:] = np.cumsum([0.2, 0.0, 0.0, 0.0, 0.0, 0.8])
    else:
        of = model_of(1)
    if kind == "unequal areas":
        of.arrays.area[:, 0] = [0, of.arrays.first[-1]]
    chain = PeopleChain.begin(of, np.random.default_rng(1), 1000)
    chain.advance(20)
    chain.sweep_size, steps = 1, 40_000 if kind == "leaps" else 80_000
    states = np.empty((steps, chain.state.x.size), np.int64)
    for row in states:
        chain.advance(1)
        row[:] = chain.snapshot()[0]
    assert (imbalance(states[:-1], states[1:]) < 4.5) != (kind == "unequal areas")
    spot = spots(of, chain.state.x)
    assert np.array_equal(spot, chain.state.spot)
    assert chain.snapshot()[1] == pytest.approx(float(of.arrays.table[spot].sum()), abs=1e-9)


@pytest.mark.parametrize("slots", ["of two parts", "taken ones alone"])
def test_steps_that_stay_in_some_places_are_in_balance(slots):
    """Not if only people who are there could be chosen: they would go more often than come."""
    of = model_of(1)
    chain = PeopleChain.begin(of, np.random.default_rng(2), 1000)
    chain.advance(20)
    chain.sweep_size, steps = 4, 40_000
    states = np.empty((2, steps, chain.state.x.size), np.int64)
    first, seen = of.arrays.first, chain.state.people
    every = np.concatenate([np.arange(first[p], first[p + 1]) for p in (1, 2)])
    for before, after in zip(*states, strict=True):
        chain.advance(1)
        before[:] = chain.snapshot()[0]
        part = of.arrays.part[every]
        there = every[every - first[part] < seen[part]]
        chosen = every if slots == "of two parts" else there
        if chosen.size:
            unseen = np.empty((1, 0, 0), np.int64), np.empty(1)
            sweep(chain.rng, of.arrays, chain.state, 1, chosen, *unseen)
        after[:] = chain.snapshot()[0]
    assert (imbalance(*states) < 4.5) == (slots == "of two parts")
    x = chain.state.x
    moved = (states[0] != states[1]).any(axis=0).reshape(x.shape).any(axis=1)
    assert moved.all()  # a swap may be with anybody
    chain.advance_parts(np.array([3]), 5)
    assert np.array_equal(spots(of, x), chain.state.spot)


def imbalance(before, after):
    """Return how far steps go more often one way than back, in standard errors at most."""
    number = np.unique(np.concatenate([before, after]), axis=0, return_inverse=True)[1].ravel()
    flow = np.zeros((number.max() + 1,) * 2)
    np.add.at(flow, (number[: len(before)], number[len(before) :]), 1)
    forth, back = flow[np.triu_indices(len(flow), 1)], flow.T[np.triu_indices(len(flow), 1)]
    often = forth + back >= 30
    assert often.sum() >= 40  # pairs of states
    worst: float = np.abs((forth - back)[often] / np.sqrt((forth + back)[often])).max()
    return worst


GAPS = {
    "two": [2, 9], "even": range(0, 13, 2), "nobody, or many": [0, 12], "three": [1, 6, 11],
    "runs": [0, 1, 2, 9, 10, 11], "nearly": [3, 10],
}  # fmt: skip


def gaps(seed, kind):
    """Return a noisy block whose number of people has gaps, with its law by enumeration."""
    rng = np.random.default_rng([seed, list(GAPS).index(kind)])
    size = np.full(13, 1e-9 if kind == "nearly" else 0.0)
    size[list(GAPS[kind])] = rng.dirichlet(np.full(len(GAPS[kind]), 9.0))
    size /= size.sum()
    released = rng.integers(0, 5, 3).tolist()
    variance = [4, 9][int(rng.integers(2))]
    law = NoiseSpec("discrete-gaussian", variance)
    release, prior = one_block(law, released, np.eye(3, dtype=np.int64), 12)
    shares = np.array([0.5, 0.3, 0.2])
    prior = RecordPrior(prior.schema, shares, [None, 2.0][int(rng.integers(2))], size)
    terms = [
        ([0], row, lambda s, r=r: -((s - r) ** 2) / (2.0 * variance))
        for row, r in zip(np.eye(3, dtype=int).tolist(), released, strict=True)
    ]
    return release, prior, oracle.posterior(1, 3, shares, prior.concentration, size, terms)


COUNTED = (
    (RecordQuestion({}), lambda x: sum(x)),
    (RecordQuestion({"kind": [0]}), lambda x: x[0]),
    (RecordQuestion({}, at_least=7), lambda x: sum(x) >= 7),
)


@pytest.mark.parametrize("kind", GAPS)
def test_numbers_of_people_with_gaps(kind, monkeypatch):
    """Chains leap over numbers that are impossible; those that cannot are not believed."""
    z = []
    asked = [question for question, _ in COUNTED]
    for seed in range(3):
        release, prior, law = gaps(seed, kind)
        common = {"level": "block", "place": "1", "prior": prior}
        truth = [sum(w * count(x) for w, (x,) in law) for _, count in COUNTED]
        exact = microdata_posterior(release, asked, **common, engine="exact").answers
        np.testing.assert_allclose(exact["posterior"], truth, rtol=1e-9)
        common |= {"engine": "people", "draws": 250}
        found = microdata_posterior(release, asked, **common, rng=seed).answers
        assert found["status"].eq("sampled").all()
        z += ((found["posterior"] - truth) / found["error"]).tolist()
    assert np.abs(z).max() < 4.5
    assert np.mean(np.square(z)) < 3.0
    monkeypatch.setattr(module, "_leaps", lambda runs: (np.zeros(0, np.int64), np.zeros(0)))
    shut_in = microdata_posterior(release, asked, **common, rng=1, doublings=0).answers
    assert shut_in["status"].eq("undecided").all() or kind == "nearly"


def test_a_rare_number_of_people_that_no_draw_has_is_within_the_interval():
    """All draws have 3 people; 12 have a probability of 1e-4, which moves the mean by 9 of it."""
    size = np.zeros(13)
    size[[3, 12]] = 0.5
    law = NoiseSpec("discrete-gaussian", 1)
    weights = np.array([[1, 1, 1], [1, 0, 0]])
    release, prior = one_block(law, [6, 2], weights, 12)
    prior = RecordPrior(prior.schema, np.array([0.4, 0.3, 0.3]), None, size)
    common = {"level": "block", "place": "1", "prior": prior}
    asked = [RecordQuestion({})]
    exact = microdata_posterior(release, asked, **common, engine="exact").answers["posterior"][0]
    assert 3.0 < exact < 3.01
    found = microdata_posterior(
        release, asked, **common, engine="people", rng=1, draws=250
    ).answers.iloc[0]
    assert found["posterior"] == 3.0
    assert found["upper"] - 3.0 == pytest.approx(9.0 * (1.0 - 0.025 ** (1.0 / found["ess"])))
    assert exact < found["upper"]


@pytest.mark.parametrize("kind", GAPS)
def test_chains_start_in_every_run_of_possible_numbers(kind):
    release, prior, _ = gaps(1, kind)
    system = make_system(release, level="block", place="1", prior=prior)
    of = people_model(system)
    runs = len(of.runs)
    starts = [int(of.sizes(i / 8)[0]) for i in range(8)]
    assert set(starts) <= set(GAPS[kind])
    assert len(set(starts)) == runs == {"even": 7, "three": 3}.get(kind, 2)
    number = sp.csr_array(np.ones((1, system.size), np.int64))
    small, over_groups = presolve(system, number)
    begun = LatticeChains(small, 8, np.random.default_rng(1)).starts
    seen = {int((over_groups @ x)[0]) for x in begun}
    assert all(any(low <= n <= high for low, high in of.runs) for n in seen)
    assert len({int(np.searchsorted(of.runs[:, 1], n)) for n in seen}) == runs


def crossed(columns, people, recipe="none"):
    """Return the system of one town with all tables of two columns, of random people."""
    rng = np.random.default_rng(5)
    draws = {f"c{i}": rng.geometric(0.45, people).clip(max=n) for i, n in enumerate(columns)}
    frame = pd.DataFrame(draws)
    schema = Schema.from_frame(frame)
    work = Workload.of(schema, [*itertools.combinations(frame, 2)])
    records = Records.from_frame(frame, schema=schema)
    release = make_mechanism(recipe).release(records, workload=work, rng=1)
    level = work.levels[-1]
    prior = RecordPrior.uniform_data_sets(schema)
    code = str(release.tables.geoids[level][0])
    return make_system(release, level=level, place=code, prior=prior)


@pytest.mark.parametrize("kept", [True, False])
def test_starts_beside_a_vertex_of_a_linear_program_are_nearly_as_extreme(kept, monkeypatch):
    """Where nothing agrees with what the vertex leaves whole, the whole program is solved."""
    system = crossed((4, 3, 3, 3), 60, "rounding:base=3")
    small, _ = presolve(system, sp.csr_array((0, system.size), dtype=np.int64))
    solver, asked = chains.milp, []

    def milp(cost, **options):
        low, high = options["bounds"].lb, options["bounds"].ub
        asked.append(int(np.count_nonzero(low == high)))
        refused = not kept and options["integrality"].any() and asked[-1] > asked[0]
        return OptimizeResult(x=None) if refused else solver(cost, **options)

    monkeypatch.setattr(chains, "milp", milp)
    for seed in range(4):
        direction = np.random.default_rng(seed).normal(size=small.mass.size)
        plain = chains._solution(small, direction, [], Deadline())
        monkeypatch.setattr(chains, "_MANY", 0)
        asked.clear()
        x = chains._solution(small, direction, [], Deadline())
        monkeypatch.setattr(chains, "_MANY", 10**6)
        assert len(asked) == (2 if kept else 3)
        assert asked[1] > asked[0]
        for runs, n in zip(small.runs, small.model.rows @ x, strict=True):
            assert np.any((runs[:, 0] <= n) & (n <= runs[:, 1]))
        assert direction @ x <= direction @ plain + 0.2 * abs(direction @ plain)
        assert kept or np.array_equal(x, plain)
    monkeypatch.setattr(chains, "milp", lambda *_, **__: OptimizeResult(x=None))
    assert chains._solution(small, direction, [], Deadline()) is None


@pytest.mark.parametrize(
    ("columns", "people", "few"), [((3, 3, 3), 40, 0), ((6, 2, 5, 3, 3), 50, 6)]
)
def test_chains_that_agree_say_the_same_whatever_their_starts(columns, people, few):
    """With moves between their own starts four of six agreed, on numbers two people apart."""
    system = crossed(columns, people)
    laws = [record_law(system, rng=seed, max_pairs=0) for seed in range(6)]
    agreed = np.array([law.mean for law in laws if law.decided])
    assert len(laws) - len(agreed) <= few
    assert few or len(agreed) == 6
    if len(agreed):
        assert np.ptp(agreed, axis=0).max() < 0.5


@pytest.mark.parametrize(("columns", "people", "tried"), [((6, 6, 5, 5, 4), 100, False),
                                                          ((3, 3, 3), 40, True)])  # fmt: skip
def test_exact_counts_of_very_many_groups_are_undecided_at_once(columns, people, tried):
    law = record_law(crossed(columns, people), rng=0, max_pairs=0)
    assert (law.mass.size > 200) == (not tried)
    assert law.decided == tried == (law.draws is not None)
    assert np.isnan(law.mean).all() == (not tried)


def test_a_law_by_chains_needs_random_numbers_and_time():
    system = crossed((3, 3, 3), 40)
    with pytest.raises(ChainNeededError, match="rng"):
        record_law(system, max_pairs=0)
    with pytest.raises(TooLateError):
        record_law(system, rng=0, max_pairs=0, deadline=Deadline(0.0))
    free, limited = (
        record_law(system, rng=0, max_pairs=0, deadline=one) for one in (None, Deadline(600.0))
    )
    assert np.array_equal(free.mean, limited.mean)
    assert np.array_equal(free.draws, limited.draws)
    # an exact law needs neither
    assert record_law(crossed((2, 2), 5), deadline=Deadline(600.0)).engine == "exact"


def test_lattice_chains_that_no_move_leads_over_a_gap_are_not_believed():
    """Twelve counts with noise of variance 30: none of the moves adds 60 people as they are."""
    schema = Schema("people", (Attribute("kind", 12),), Geography("towns", ("block",), (1,)))
    kinds = Table("T", tuple(map(str, range(12))), {"kind": np.eye(12, dtype=np.int64)})
    tables = PublishedTables(
        Workload(schema, {("block", "T"): kinds}),
        {"block": np.array(["1"])},
        {("block", "T"): sp.csr_array([[4, 3, 1, 2, 4, 1, 0, 3, 2, 3, 2, 4]])},
    )
    law = NoiseSpec("discrete-gaussian", 30)
    size = np.zeros(61)
    size[[0, 60]] = 0.5
    found = microdata_posterior(
        Release(MechanismSpec("one", {}, {}, others=law), tables), [RecordQuestion({})],
        level="block", place="1", prior=RecordPrior.uniform_data_sets(schema, size=size),
        engine="lattice", rng=1, draws=400, doublings=0,
    )  # fmt: skip
    assert found.answers["status"].tolist() == ["undecided"]


@pytest.mark.parametrize(("engine", "draws"), [("people", 8), ("lattice", 8), ("people", 2000)])
def test_no_number_of_too_few_draws_is_told(engine, draws):
    schema = Schema("kinds", (Attribute("kind", 3),), Geography("one", ("block",), (1,)))
    work = Workload(
        schema, {("block", "T"): Table("T", tuple("abc"), {"kind": np.eye(3, dtype=int)})}
    )
    law = NoiseSpec("discrete-gaussian", 2)
    tables = PublishedTables(
        work, {"block": np.array(["1"])}, {("block", "T"): sp.csr_array([[4, 3, 1]])}
    )
    prior = RecordPrior.uniform_data_sets(schema, size=np.ones(30) / 30)
    found = microdata_posterior(
        Release(MechanismSpec("one", {}, {}, others=law), tables), [RecordQuestion({})],
        level="block", place="1", prior=prior,
        engine=engine, rng=1, draws=draws, doublings=0,
    )  # fmt: skip
    done = draws == 2000
    assert found.expected["expected"].notna().tolist() == [done] * 3
    assert found.answers["posterior"].notna().tolist() == [done]
    assert ("do not agree" in repr(found)) == (not done)
    if not done:
        with pytest.raises(ArgumentError, match="draws must be more"):
            found.ranked_records()


def test_draws_in_which_nobody_can_be_the_target_do_not_count():
    """Of a group that is mostly empty few draws say anything, however many they are."""
    rng = np.random.default_rng(1)
    group = (rng.random((4, 2000)) < 0.02).astype(np.int64)
    kind = group * (rng.random(group.shape) < 0.5)
    counts = np.stack([kind, group], axis=2)
    watched = [chain_numbers(rng.normal(size=group.shape))]
    row, known = np.array([[0, 1]]), np.zeros((1, 2), np.int64)
    functions = QuestionFunctions(sp.csr_array((2, 1), dtype=np.int64), row, known)
    asked = [RecordQuestion({"sex": [0]}, among={})]
    found = estimate_answers(asked, functions, Draws(counts, watched, 1)).iloc[0]
    assert 0.7 < found["ess"] / group.sum() < 1.4  # that are independent
    assert found["status"] == "undecided"
    # Of a large group a draw says more than of one person; no more than draws are counted.
    counts = np.stack([rng.binomial(40, 0.5, group.shape), np.full(group.shape, 40)], axis=2)
    found = estimate_answers(asked, functions, Draws(counts, watched, 1)).iloc[0]
    assert 0.7 < found["ess"] / group.size < 1.4
    assert found["status"] == "sampled"


def test_the_density_of_a_chain_over_people_is_that_of_its_state():
    release, prior, _ = town(1, 3, together=True)
    system = make_system(release, level="tract", place="1", prior=prior)
    of = people_model(system)
    chain = PeopleChain.begin(of, np.random.default_rng(1), 1000)
    for _ in range(20):
        chain.advance(1)
        x, density = chain.snapshot()
        spot = spots(of, x.reshape(len(of.strata), -1))
        assert np.array_equal(spot, chain.state.spot)
        assert density == pytest.approx(float(of.arrays.table[spot].sum()), abs=1e-9)
    proposed, taken = chain.state.tally.T
    at = [kernels.REDRAW, kernels.SWAP, kernels.EXCHANGE]
    assert np.all(taken[at] > 0)
    assert np.all(taken[at] < proposed[at])


class Slow:
    """A chain that forgets a fiftieth of where it is in a sweep."""

    def __init__(self, seed):
        self.rng, self.value, self.sweeps = np.random.default_rng(seed), 0.0, 0

    def advance(self, sweeps):
        self.sweeps += sweeps
        for step in self.rng.normal(size=sweeps):
            self.value = 0.98 * self.value + step

    def snapshot(self):
        return np.array([round(100 * self.value)]), self.value

    def record(self, draws, sweeps):
        found = []
        for _ in range(draws):
            self.advance(sweeps)
            found.append(self.snapshot())
        return np.array([x for x, _ in found]), np.array([density for _, density in found])


def test_chains_that_do_not_agree_go_on():
    one, draws = sp.csr_array(np.ones((1, 1), np.int64)), 500
    chains = [Slow(seed) for seed in range(4)]
    first = draw(chains, one, draws, thin=1, doublings=0)
    assert not first.agreed
    assert {c.sweeps for c in chains} == {2 * draws}
    chains = [Slow(seed) for seed in range(4)]
    told = []

    def observer():
        told.clear()
        return lambda chain, x: told.append(chain)

    last = draw(chains, one, draws, thin=1, doublings=8, observer=observer)
    assert last.agreed
    assert 1 < last.thin < 2**8
    assert last.counts.shape == first.counts.shape == (4, draws, 1)
    assert {c.sweeps for c in chains} == {2 * draws * last.thin}  # half of them is warm-up
    assert len(told) == 4 * draws
    chains = [Slow(seed) for seed in range(4)]
    never = draw(chains, one, draws, thin=8, doublings=2, enough=lambda _: False)
    assert never.thin == 32


def test_exact_counts_that_leave_one_point_need_no_chain():
    release, prior = one_block(TrueCounts(), [2, 0, 1], np.eye(3, dtype=np.int64), 6)
    asked = [RecordQuestion({"kind": [0]}, among={})]
    found = microdata_posterior(
        release, asked, level="block", place="1", prior=prior, engine="lattice", rng=1
    )
    assert found.engine == "exact"
    assert found.answers["posterior"][0] == pytest.approx(2 / 3, rel=1e-14)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"engine": "quick"}, "engine must be one of auto, exact, people, lattice"),
        ({"engine": "people", "rng": None}, "rng must be given"),
        ({"engine": "people", "rng": 1, "chains": 1}, "chains must be >= 2"),
        ({"place": "7"}, "place must be one of level 'block'"),
        ({"level": "county"}, "level must be one of block"),
        ({"questions": [RecordQuestion({"age": [1]})]}, "attribute must be one of kind"),
        ({"questions": [RecordQuestion({"kind": [3]})]}, "kind must be from 0 to 2, got 3"),
        ({"questions": [RecordQuestion({}, place="5")]}, "place must be one of 1"),
    ],
)
def test_bad_questions_are_refused(change, match):
    law = NoiseSpec("discrete-gaussian", 1)
    release, prior = one_block(law, [2, 0, 1], np.eye(3, dtype=np.int64), 6)
    given = {"questions": [RecordQuestion({})], "level": "block", "place": "1", "prior": prior}
    with pytest.raises(ValueError, match=match):
        microdata_posterior(release, **(given | change))


def test_rounding_of_densities_is_no_disagreement():
    """Chains whose equal states differ by a rounding error each do not disagree."""
    rng = np.random.default_rng(1)
    one = rng.choice([-440.0, -441.5, -444.0], (1, 4000), p=[0.6, 0.3, 0.1])
    states = np.repeat(one, 4, axis=0)
    for chain in range(4):
        rng.shuffle(states[chain])
    drifted = states + 1e-12 * np.arange(4)[:, None]
    assert chain_numbers(drifted).r_hat > 1.01  # as if they did
    (even,) = moving([drifted])
    assert chain_numbers(even).r_hat < 1.001
    order = [np.argsort(values, axis=1, kind="stable") for values in (even, states)]
    assert np.array_equal(*order)
    assert moving([np.full((4, 10), 3.0) + 1e-12 * np.arange(10)]) == []


def test_a_place_has_room_for_people_that_noise_took_away():
    """A count of -5 with a standard deviation of 10: there may well be 20 people."""
    release, prior = one_block(NoiseSpec("discrete-gaussian", 100), [-5], np.array([[1, 1, 1]]), 1)
    prior = RecordPrior(prior.schema, np.array([0.7, 0.2, 0.1]))
    n = np.arange(400)
    law = np.exp(-((n + 5.0) ** 2) / 200.0)
    law /= law.sum()
    asked = [RecordQuestion({"kind": [0, 1, 2]}), RecordQuestion({"kind": [0, 1, 2]}, at_least=10)]
    common = {"level": "block", "place": "1", "prior": prior}
    found = microdata_posterior(release, asked, **common, engine="people", rng=1, draws=300).answers
    for value, answer in zip((law @ n, law[10:].sum()), found.itertuples(), strict=True):
        assert abs(answer.posterior - value) < 4.5 * answer.error
