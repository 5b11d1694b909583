"""The law of the records of a place: points weighed and proposals made, against plain loops."""

import copy
import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from targets import Aim, a_second, faster, lasting, seconds_each

from bayesrisk import MechanismSpec, PublishedTables, Records, Release, Schema, Workload, tabulate
from bayesrisk.census import simulate_population
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata.chains import LatticeChains, PeopleChain
from bayesrisk.inference.microdata.lattice_moves import walk
from bayesrisk.inference.microdata.people_model import people_model, put
from bayesrisk.inference.microdata.system import make_system, presolve
from bayesrisk.inference.sampling.chains import effective_size
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.noise import DiscreteGaussianMechanism
from bayesrisk.release import NoiseSpec, TrueCounts
from bayesrisk.tables import Attribute, Geography, Table, cells

SIZES = {"sex": 2, "age": 4}


def noisy_block(people, scale=2, *, counted=True):
    """Return a release of one block: its number of people as it is, three tables with noise.

    The number has noise, too, if it is not ``counted``; ``scale`` is the variance.
    """
    attributes = tuple(Attribute(name, size) for name, size in SIZES.items())
    schema = Schema("people", attributes, Geography("towns", ("block",), (1,)))
    eye = {name: np.eye(size, dtype=np.int64) for name, size in SIZES.items()}
    both = {"sex": np.repeat(eye["sex"], 4, axis=0), "age": np.tile(eye["age"], (2, 1))}
    factors = {"total": {}, "sex": {"sex": eye["sex"]}, "age": {"age": eye["age"]}, "both": both}
    tables = {}
    for name, factor in factors.items():
        cells = max((len(f) for f in factor.values()), default=1)
        tables["block", name] = Table(name, tuple(f"{name}{q}" for q in range(cells)), factor)
    workload = Workload(schema, tables)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(size, size=people) for name, size in SIZES.items()})
    published = tabulate(Records.from_frame(frame.assign(block="1"), schema=schema), workload)
    noise, counts = NoiseSpec("discrete-gaussian", scale), {}
    laws = {key: TrueCounts() if counted and key[1] == "total" else noise for key in tables}
    for key, matrix in published.counts.items():
        drawn = 0 if laws[key].exact else noise.to_law().rvs(matrix.shape, random_state=rng)
        counts[key] = sp.csr_array(matrix.toarray() + drawn)
    release = Release(
        MechanismSpec("some", {}, laws), PublishedTables(workload, published.geoids, counts)
    )
    size = None if counted else np.full(3 * people + 1, 1.0 / (3 * people + 1))
    return release, RecordPrior.uniform_data_sets(schema, size=size)


def plain_enumeration(release, people):
    """Return P(somebody is of sex 0 and age 0): every histogram, one after another."""
    count = {key[1]: m.toarray()[0] for key, m in release.tables.counts.items()}
    total = hit = 0.0
    for bars in itertools.combinations(range(people + 7), 7):
        edges = (-1, *bars, people + 7)
        x = [b - a - 1 for a, b in itertools.pairwise(edges)]
        value = -sum(math.lgamma(k + 1) for k in x)
        for q in range(8):
            value -= (count["both"][q] - x[q]) ** 2 / 4
        for s in range(2):
            value -= (count["sex"][s] - sum(x[4 * s : 4 * s + 4])) ** 2 / 4
        for a in range(4):
            value -= (count["age"][a] - x[a] - x[a + 4]) ** 2 / 4
        weight = math.exp(value)
        total += weight
        hit += weight * (x[0] > 0)
    return hit / total


def test_points(compare):
    """All record sets behind a block of 28 people, of which sums are weighed."""
    people, many = 12, 28
    asked = [RecordQuestion({"sex": [0], "age": [0]}, at_least=1)]

    def ours(block):
        release, prior = block
        about = {"level": "block", "place": "1", "prior": prior, "engine": "exact"}
        return microdata_posterior(release, asked, **about)

    small, large = noisy_block(people), noisy_block(many)
    slow = plain_enumeration(small[0], people)
    assert abs(ours(small).answers["posterior"][0] - slow) < 1e-9
    points = math.comb(many + 7, 7)
    compare(
        lambda: ours(large),
        lambda: plain_enumeration(small[0], people),
        aims={"all record sets behind a block of 28, weighed": a_second(1e7, "points")},
        ours_units=points,
        twin_units=math.comb(people + 7, 7),
        rounds=3,
    )


def plain_chain(release, people, proposals, rng, scale=2, *, counted=True):
    """Redraw one person after another, with NumPy; return draws of the first kind's number.

    Of a number of people that is not ``counted`` every fourth proposal is one more or one less.
    """
    count = {key[1]: m.toarray()[0] for key, m in release.tables.counts.items()}
    kinds = rng.integers(8, size=people).tolist()
    x = np.bincount(kinds, minlength=8)

    def log_likelihood(x):
        table = x.reshape(2, 4)
        value = ((count["both"] - x) ** 2).sum() + ((count["sex"] - table.sum(axis=1)) ** 2).sum()
        value += ((count["age"] - table.sum(axis=0)) ** 2).sum()
        if not counted:
            value += (count["total"][0] - x.sum()) ** 2
        return -value / (2 * scale)

    here, draws = log_likelihood(x), np.empty(proposals, dtype=int)
    for step in range(proposals):
        other, up, down = x.copy(), True, True
        if not counted and rng.random() < 0.25:
            up = rng.random() < 0.5
            down = not up
        person, kind = int(rng.random() * len(kinds)), rng.integers(8)
        if (down and not kinds) or (up and not down and len(kinds) == 3 * people):
            draws[step] = x[0]
            continue
        other[kind] += up
        if down:
            other[kinds[person]] -= 1
        there = log_likelihood(other)
        if math.log(rng.random()) < there - here:
            x, here = other, there
            if up and down:
                kinds[person] = kind
            elif up:
                kinds.append(kind)
            else:
                kinds[person] = kinds[-1]
                kinds.pop()
        draws[step] = x[0]
    return draws


@pytest.mark.parametrize(
    ("what", "scale", "counted"),
    [("rho 1", 2, True), ("rho 0.0992", 20, True), ("an unknown number of people", 2, False)],
)
def test_effective_draws(compare, what, scale, counted):
    """Whether a tenth of the people of a block are of a kind: draws worth as much, each second."""
    people, slow, rounds = 40, 20_000, 3
    release, prior = noisy_block(people, scale, counted=counted)
    asked = [RecordQuestion({"sex": [0], "age": [0]}, at_least=people // 10)]
    common = {"level": "block", "place": "1", "prior": prior, "engine": "people"}

    def ours():
        run = {"rng": 1, "draws": 1000, "chains": 2, "doublings": 0}
        return microdata_posterior(release, asked, **common, **run)

    def theirs():
        rng = np.random.default_rng(1)
        return plain_chain(release, people, slow, rng, scale, counted=counted)

    hits, answer = (theirs() >= people // 10).astype(float), ours().answers.iloc[0]
    worth = effective_size(hits[None])
    spread = math.hypot(hits.std() / math.sqrt(worth), answer["error"])
    assert abs(hits.mean() - answer["posterior"]) < 5.0 * spread
    drawn = ours().samples.counts[:, :, 0] >= people // 10
    compare(
        ours,
        theirs,
        aims={f"effective draws of a block of 40, {what}, beside a plain chain": faster(10)},
        ours_units=effective_size(drawn.astype(float)),
        twin_units=worth,
        rounds=rounds,
    )


def block_chain(people):
    """Return a chain over the people of a block of three noisy tables, which has moved."""
    release, prior = noisy_block(people)
    system = make_system(release, level="block", place="1", prior=prior)
    chain = PeopleChain.begin(people_model(system), np.random.default_rng(1), 1000)
    chain.advance(10)
    return release, chain


def test_proposals(compare):
    people, sweeps, slow = 40, 1000, 20_000
    release, chain = block_chain(people)
    compare(
        lambda: chain.advance(sweeps),
        lambda: plain_chain(release, people, slow, np.random.default_rng(1)),
        aims={"a chain over the people of a block of 40": a_second(3e6, "proposals")},
        ours_units=sweeps * chain.sweep_size,
        twin_units=slow,
        rounds=3,
    )


def drawn_tract(workload, people, blocks, rng):
    """Return drawn people of a tract, their redistricting tables, and the shares of all kinds."""
    schema = workload.schema
    race = np.array([0.6, 0.13, 0.01, 0.06, 0.003, 0.08] + [0.117 / 57] * 57)
    quarters = [0.97] + [0.03 / 7] * 7
    shares = np.einsum("a,b,c,d->abcd", quarters, [0.23, 0.77], [0.82, 0.18], race).ravel()
    cells = rng.choice(schema.size, size=people, p=shares / shares.sum())
    codes = zip(schema.attributes, np.unravel_index(cells, schema.shape), strict=True)
    frame = pd.DataFrame({a.name: code + a.first for a, code in codes})
    sizes = rng.multinomial(people, rng.dirichlet(np.full(blocks, 2.0)))
    geoids = np.array([f"01001020100{1 + 4 * b // blocks}{b:03d}" for b in range(blocks)])
    frame["block"] = np.repeat(geoids, sizes)
    return frame, tabulate(Records.from_frame(frame, schema=schema), workload), shares


def noisy_tract(people, blocks, seed=1):
    """Return redistricting tables with the noise of 2020, what is believed, and the people."""
    workload = Workload.named("pl94", levels=["tract", "block_group", "block"])
    schema, rng = workload.schema, np.random.default_rng(seed)
    frame, published, shares = drawn_tract(workload, people, blocks, rng)
    spec = DiscreteGaussianMechanism(allocation="pl94", sensitivity="change-one").spec
    laws = {key: spec.likelihood(*key) for key in workload.tables}
    counts = {
        key: sp.csr_array(m.toarray() + laws[key].to_law().rvs(m.shape, random_state=rng))
        for key, m in published.counts.items()
    }
    tables = PublishedTables(workload, dict(published.geoids), counts)
    release = Release(MechanismSpec("production noise", {}, laws), tables)
    return release, RecordPrior.composition(schema, shares), frame


def test_all_people_of_a_tract(benchmark, measured):
    """A question for each kind of person of each block, and all of them answered."""
    people, blocks = (80, 2) if benchmark.disabled else (4000, 100)
    release, prior, frame = noisy_tract(people, blocks)
    names = release.tables.workload.schema.names
    asked = [
        RecordQuestion(
            {a: [row[a]] for a in names[2:]},
            among={a: [row[a]] for a in names[:2]},
            place=row["block"],
        )
        for row in frame.drop_duplicates().to_dict("records")
    ]
    whole = {"level": "tract", "place": "01001020100", "prior": prior, "rng": 1}
    microdata_posterior(release, asked[:2], **whole, draws=4, doublings=0)  # kernels
    start = time.process_time()
    found = benchmark.pedantic(microdata_posterior, (release, asked), whole, rounds=1).answers
    seconds = time.process_time() - start
    assert found["status"].isin(["sampled", "undecided"]).all()
    measured("posteriors of all people of a tract of 4,000", lasting(120, "of processor"), seconds)
    measured(
        "posteriors of all people of a tract of 4,000 that stay undecided",
        Aim(0, "questions"),
        float((found["status"] == "undecided").sum()),
    )


def test_proposals_in_a_tract(compare):
    """The sizes of a real tract: 201,600 unknown counts, and 33 rows for every person."""
    release, prior, _ = noisy_tract(4000, 100)
    of = make_system(release, level="tract", place="01001020100", prior=prior)
    chain = PeopleChain.begin(people_model(of), np.random.default_rng(1), 4000)
    chain.advance(20)
    spot = chain.model.spot.copy()
    put(chain.model.arrays, spot, chain.state.x)  # all rows anew: what the moves added up
    assert (spot == chain.state.spot).all()
    assert math.isclose(chain.model.arrays.table[spot].sum(), chain.snapshot()[1], rel_tol=1e-9)
    small, _ = noisy_block(40)
    compare(
        lambda: chain.advance(40),
        lambda: plain_chain(small, 40, 20_000, np.random.default_rng(1)),
        aims={"a chain over the 4,000 people of a tract": a_second(3e6, "proposals")},
        ours_units=40 * chain.sweep_size,
        twin_units=20_000,
        rounds=3,
    )


def test_a_block_of_thirty(compare):
    """Exact redistricting tables of blocks of about 30 people, and a question for each of them."""
    workload = Workload.named("pl94", levels=["block"])
    schema = workload.schema
    frame, published, shares = drawn_tract(workload, 180, 6, np.random.default_rng(1))
    release = Release(MechanismSpec("identity", others=TrueCounts()), published)
    prior = RecordPrior.composition(schema, shares)
    known, secret = schema.names[:2], schema.names[2:]
    of_block = {}
    for block, group in frame.groupby("block"):
        of_block[block] = [
            RecordQuestion({a: [row[a]] for a in secret}, among={a: [row[a]] for a in known})
            for row in group[list(schema.names)].to_dict("records")
        ]

    def ours():
        return [
            microdata_posterior(release, asked, level="block", place=block, prior=prior).answers
            for block, asked in of_block.items()
        ]

    def twin():
        found = []
        for block, asked in of_block.items():
            cells._KEPT.clear()
            one = microdata_posterior(release, asked, level="block", place=block, prior=prior)
            found.append(one.answers)
        return found

    for one, other in zip(ours(), twin(), strict=True):
        assert one.equals(other)
        assert one["status"].eq("exact").all()
    compare(
        ours,
        twin,
        # the twin finds classes and weights anew for every block
        aims={"exact posteriors of all people of a block of 30": seconds_each(50e-3, "block")},
        ours_units=len(of_block),
        twin_units=len(of_block),
        rounds=3,
    )


def test_steps_on_a_lattice(compare):
    release, prior = noisy_block(200)
    of = make_system(release, level="block", place="1", prior=prior)
    small, _ = presolve(of, sp.csr_array((0, of.size), dtype=np.int64))
    (chain,) = LatticeChains(small, 1, np.random.default_rng(1)).begin([np.random.default_rng(2)])
    slow = 300

    def twin():
        state = (chain.rng, chain.lattice, chain.x, chain.spans, chain.sums, chain.work)
        walk.py_func(*state, slow)

    chain.advance(10)
    other = copy.deepcopy(chain)
    walk(chain.rng, chain.lattice, chain.x, chain.spans, chain.sums, chain.work, slow)
    walk.py_func(other.rng, other.lattice, other.x, other.spans, other.sums, other.work, slow)
    assert (chain.x == other.x).all()  # from the same random numbers
    sweeps = 200_000 // chain.sweep_size
    compare(
        lambda: chain.advance(sweeps),
        twin,
        aims={
            "a chain over the counts of a block": a_second(1e6, "steps"),
            "a chain over the counts of a block, beside uncompiled": faster(50),
        },
        ours_units=sweeps * chain.sweep_size,
        twin_units=slow,
        rounds=3,
    )


COARSENED = {
    "nearest 3": "rounding:base=3,method=nearest",
    "nearest 5": "rounding:base=5,method=nearest",
    "random 3": "rounding:base=3,method=random",
    "ranges": "ranges:edges=0/1/3/6/10/20/50",
}
FOUR = (("P12", "P12A", "P12B", "P12H"), ("P8", "P9", "P12", "P14"))


@pytest.mark.parametrize("tables", FOUR, ids=" ".join)
@pytest.mark.parametrize("rule", COARSENED)
def test_four_coarsened_tables(measured, rule, tables):
    """Aim: a block of 20 to 50 people with four coarsened census tables takes 1 s."""
    work = Workload.named("sf1-block", levels=["block"]).select(tables=tables)
    recipe, _, edges = COARSENED[rule].partition(":edges=")
    options = {"edges": [int(edge) for edge in edges.split("/")]} if edges else {}
    mechanism = make_mechanism(recipe, **options)
    prior = RecordPrior.uniform_data_sets(work.schema)
    asked = [RecordQuestion({"race": [1]}), RecordQuestion({"race": [1], "sex": [0]}, at_least=1)]
    seconds, engines = [], set()
    for seed in range(11):
        tract = simulate_population("tract", rng=seed).for_schema(work.schema)
        codes, sizes = np.unique(tract.geoids, return_counts=True)
        for block in codes[(sizes >= 20) & (sizes <= 50)][:2]:
            people = tract.take(np.flatnonzero(tract.geoids == block))
            release = mechanism.release(people, workload=work, rng=seed, places="occupied")
            start = time.process_time()
            law = microdata_posterior(
                release, asked, level="block", place=block, prior=prior, rng=1
            )
            seconds.append(time.process_time() - start)
            engines.add(law.engine)
    assert engines == {"exact"}
    del seconds[:2]  # of the first tract, in which kernels are compiled
    assert len(seconds) >= 10
    name = f"a block of 20 to 50 people, {', '.join(tables)}, {rule}"
    measured(f"{name}: median", lasting(1, "of processor"), np.median(seconds))
    measured(f"{name}: 90 %", lasting(1, "of processor"), np.quantile(seconds, 0.9))
