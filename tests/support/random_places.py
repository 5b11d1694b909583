"""Random small places with exact, noisy, rounded and withheld counts, and their oracle's terms."""

import math

import numpy as np
import scipy.sparse as sp

from bayesrisk import MechanismSpec, PublishedTables, Release, Schema, Workload
from bayesrisk.inference import RecordPrior, RecordQuestion
from bayesrisk.release import NoiseSpec, RangeSpec, RoundingSpec, SuppressedCounts, TrueCounts
from bayesrisk.tables import Attribute, Geography, Table

GEOGRAPHY = Geography("towns", ("tract", "block"), (1, 3))
KINDS = ("exact", "noisy", "rounded", "withheld", "mixed")
#: Noise from near-exact to strong, rounding and exact tables; numbers of people with gaps.
WIDE = "wide"
#: Ranges, thresholds and counts that are withheld by a known rule, mixed with the others.
COARSE = "coarse"
SCALES = ("1/1000", "1/100", "1/10", 1, 5, 30)


def place(seed, kind, n_places=1):
    """Return a release of one tract, its prior, what the oracle needs, and the truth."""
    rng = np.random.default_rng([seed, (*KINDS, WIDE, COARSE).index(kind)])
    prior, sizes, truth = _people(rng, kind, n_places)
    release, terms = _release(rng, kind, prior.schema, sizes, truth)
    return release, prior, (n_places, *_law_of(prior), terms), truth


def pair(seed, kinds, n_places=1):
    """Return two releases of one tract, the prior, what the oracle needs, and the truth."""
    rng = np.random.default_rng([seed, 99])
    prior, sizes, truth = _people(rng, kinds[0], n_places)
    releases, terms = zip(
        *(_release(rng, kind, prior.schema, sizes, truth) for kind in kinds), strict=True
    )
    return releases, prior, (n_places, *_law_of(prior), [*terms[0], *terms[1]]), truth


def _law_of(prior):
    return len(prior.shares), prior.shares, prior.concentration, prior.size


def _people(rng, kind, n_places):
    """Return a prior, the sizes of its attributes, and people of every block."""
    sizes = [(2, 2), (2, 3), (4,), (2, 2, 2)][int(rng.integers(4 if n_places == 1 else 3))]
    n_cells = math.prod(sizes)
    names = ("sex", "age", "race")[: len(sizes)]
    schema = Schema(
        "people", tuple(Attribute(a, s) for a, s in zip(names, sizes, strict=True)), GEOGRAPHY
    )
    most = 4 if n_places == 1 else 2
    size = rng.dirichlet(np.ones(most + 1))
    if kind == WIDE:
        size *= rng.random(most + 1) < 0.7
        size = size / size.sum() if size.any() else np.eye(most + 1)[most]
    shares = rng.dirichlet(np.ones(n_cells))
    if n_cells > 3:
        shares[int(rng.integers(n_cells))] = 0.0  # a structural zero
        shares /= shares.sum()
    concentration = [None, 0.7, 30.0][int(rng.integers(3))]
    prior = RecordPrior(schema, shares, concentration, size, name="random")
    truth = []
    for _ in range(n_places):
        p = shares if concentration is None else rng.dirichlet(concentration * shares + 1e-300)
        truth.append(rng.multinomial(int(rng.choice(most + 1, p=size)), p / p.sum()))
    return prior, sizes, truth


def _release(rng, kind, schema, sizes, truth):
    """Return a release of random tables, and what each published count says to the oracle."""
    n_places = len(truth)
    tables, geoids, counts, hidden, laws, terms = {}, {}, {}, {}, {}, []
    geoids["block"] = np.array([f"1{i:02d}" for i in range(n_places)])
    levels = ("block",) if n_places == 1 else ("tract", "block")
    if n_places > 1:
        geoids["tract"] = np.array(["1"])
    for level in levels:
        for number in range(int(rng.integers(1, 4))):
            table, weights = _table(rng, schema, sizes, f"T{number}")
            law = _law(rng, kind)
            covered = [[p] for p in range(n_places)] if level == "block" else [range(n_places)]
            true = np.array([weights @ sum(truth[p] for p in c) for c in covered])
            out, withheld = publish(rng, law, true)
            tables[level, table.name], laws[level, table.name] = table, law
            counts[level, table.name] = sp.csr_array(out)
            hidden[level, table.name] = sp.csr_array(withheld)
            for i, c in enumerate(covered):
                for q in range(len(weights)):
                    if withheld[i, q]:
                        if law.high is not None or law.low:
                            terms.append((c, weights[q].tolist(), _by_rule(law)))
                    else:
                        terms.append((c, weights[q].tolist(), _log_likelihood(law, out[i, q])))
    published = PublishedTables(Workload(schema, tables), geoids, counts, hidden)
    return Release(MechanismSpec("random", {}, laws), published), terms


def _table(rng, schema, sizes, name):
    """Return a random table: a margin, or arbitrary sums with weights."""
    chosen = [a for a in range(len(sizes)) if rng.random() < 0.6]
    index = np.indices(sizes).reshape(len(sizes), -1)
    shape = [sizes[a] for a in chosen]
    cells = np.indices(shape).reshape(len(chosen), -1) if chosen else np.zeros((0, 1), int)
    n = cells.shape[1]
    factors, weights = {}, np.ones((n, index.shape[1]), np.int64)
    for i, a in enumerate(chosen):
        factor = (cells[i][:, None] == np.arange(sizes[a])).astype(np.int64)
        if rng.random() < 0.2:
            factor *= 2  # a weighted count, such as people of a household
        factors[schema.attributes[a].name] = factor
        weights *= factor[:, index[a]]
    return Table(name, tuple(f"{name}-{q}" for q in range(n)), factors), weights


def _law(rng, kind):
    if kind == WIDE and rng.random() < 0.6:
        law = ("discrete-gaussian", "discrete-laplace")[int(rng.integers(2))]
        return NoiseSpec(law, SCALES[int(rng.integers(len(SCALES)))])
    if kind == WIDE:
        kind = ("exact", "rounded", "withheld")[int(rng.choice(3, p=[0.4, 0.5, 0.1]))]
    if kind == COARSE and rng.random() < 0.5:
        edges = (0, *np.unique(rng.integers(1, 6, int(rng.integers(1, 4)))).tolist())
        gap = int(rng.integers(3))
        values = tuple(edge + gap * at for at, edge in enumerate(edges))
        return RangeSpec(edges, values, [None, 1, 2, 3][int(rng.integers(4))])
    if kind == COARSE and rng.random() < 0.5:
        low = int(rng.integers(3))
        return SuppressedCounts(low, [None, low, low + 1][int(rng.integers(3))])
    if kind in ("mixed", COARSE):
        kind = ("exact", "noisy", "rounded", "withheld")[int(rng.integers(4))]
    if kind == "noisy":
        law = ("discrete-gaussian", "discrete-laplace")[int(rng.integers(2))]
        return NoiseSpec(law, [1, 2, "1/2"][int(rng.integers(3))])
    if kind == "rounded":
        return RoundingSpec(int(rng.integers(2, 5)), ("nearest", "random")[int(rng.integers(2))])
    return SuppressedCounts() if kind == "withheld" else TrueCounts()


def publish(rng, law, true):
    """Return the numbers published for true counts under a law, and which are withheld."""
    withheld = np.zeros(true.shape, np.bool_)
    if isinstance(law, NoiseSpec):
        return true + law.to_law().rvs(true.shape, random_state=rng), withheld
    if isinstance(law, RoundingSpec):
        below = true // law.base * law.base
        if law.method == "nearest":
            return (2 * true + law.base) // (2 * law.base) * law.base, withheld
        return below + law.base * (rng.random(true.shape) < (true - below) / law.base), withheld
    if isinstance(law, RangeSpec):
        return np.vectorize(lambda count: _range(law, int(count))[2])(true), withheld
    if isinstance(law, SuppressedCounts):
        most = true.max() if law.high is None else law.high
        withheld = (law.low <= true) & (true <= most)
        if law.high is None:  # others besides, by a choice that depends on nothing
            withheld &= rng.random(true.shape) < 0.4
    return np.where(withheld, 0, true), withheld


def _range(law, count):
    """Return the ends of the range that a count lies in, and the number published for it."""
    ends = [*law.edges[1:], math.inf]
    for low, above, value in zip(law.edges, ends, law.values, strict=True):
        if law.step is not None and low == law.edges[-1]:
            while count >= low + law.step:
                low, value = low + law.step, value + law.step
            return low, low + law.step, value
        if count < above:
            return low, above, value
    raise AssertionError(count)


def _by_rule(law):
    most = math.inf if law.high is None else law.high
    return lambda s: 0.0 if law.low <= s <= most else -math.inf


def _log_likelihood(law, released):
    """Return log L of a true count, from the definitions and not from the package's laws."""
    released = int(released)
    if isinstance(law, NoiseSpec):
        scale = float(law.scale)
        if law.law == "discrete-gaussian":
            weights = [math.exp(-(k**2) / (2 * scale)) for k in range(-60, 61)]
            return lambda s: -((released - s) ** 2) / (2 * scale) - math.log(math.fsum(weights))
        norm = math.log(math.tanh(1 / (2 * scale)))
        return lambda s: -abs(released - s) / scale + norm
    if isinstance(law, RoundingSpec):
        base = law.base
        if law.method == "nearest":
            return lambda s: 0.0 if (2 * s + base) // (2 * base) * base == released else -math.inf

        def random(s):
            gap = abs(s - released)
            return math.log(1 - gap / base) if gap < base else -math.inf

        return random
    if isinstance(law, RangeSpec):
        return lambda s: 0.0 if _range(law, int(s))[2] == released else -math.inf
    return lambda s: 0.0 if s == released else -math.inf


def questions(schema, n_places):
    names = schema.names
    where = {names[0]: [1]}
    both = {names[0]: [0], names[-1]: [schema.attribute(names[-1]).last]}
    asked = [
        RecordQuestion(where),
        RecordQuestion(both, at_least=1),
        RecordQuestion({}, at_least=2),
    ]
    asked.append(RecordQuestion(where, among={names[-1]: [0, 1]}))
    if n_places > 1:
        asked += [RecordQuestion(where, place="101"), RecordQuestion(both, place="100", at_least=1)]
    return asked


def one_block(law, released, weights, most):
    """Return a release of one table of one block, and the flat prior of up to ``most`` people."""
    schema = Schema("people", (Attribute("kind", 3),), Geography("towns", ("block",), (1,)))
    table = Table("T", tuple(f"T{q}" for q in range(len(weights))), {"kind": weights})
    workload = Workload(schema, {("block", "T"): table})
    tables = PublishedTables(workload, {"block": ["1"]}, {("block", "T"): np.array([released])})
    size = np.full(most + 1, 1.0 / (most + 1))
    prior = RecordPrior.uniform_data_sets(schema, size=size)
    return Release(MechanismSpec("one", {}, {}, others=law), tables), prior


TOWN = {"sex": 2, "age": 4}


def town(seed, blocks, together):
    """Return a release of a town drawn from its prior, the prior and the truth.

    Every block has its number of people as it is and people by sex and age with noise; if
    ``together``, the town has ages with noise too, and the blocks are no longer independent.
    """
    rng = np.random.default_rng([seed, blocks])
    attributes = tuple(Attribute(name, size) for name, size in TOWN.items())
    schema = Schema("people", attributes, Geography("towns", ("tract", "block"), (1, 4)))
    index = np.indices((2, 4)).reshape(2, -1)
    coded = zip(TOWN, index, strict=True)
    factors = {n: (i[:, None] == np.arange(TOWN[n])).astype(int) for n, i in coded}
    tables = {
        ("block", "total"): Table("total", ("all",), {}),
        ("block", "both"): Table("both", tuple(f"both{i}" for i in range(8)), factors),
    }
    if together:
        ages = Table("age", tuple(f"age{i}" for i in range(4)), {"age": np.eye(4, dtype=int)})
        tables["tract", "age"] = ages
    shares = np.array([6, 2, 1, 1, 2, 4, 3, 1]) / 20
    prior = RecordPrior(schema, shares, 3.0, name="town")
    x = np.array(
        [rng.multinomial(rng.integers(1, 6), rng.dirichlet(3.0 * shares)) for _ in range(blocks)]
    )
    noise = NoiseSpec("discrete-gaussian", 1)
    true = {
        ("block", "total"): x.sum(axis=1)[:, None],
        ("block", "both"): x,
        ("tract", "age"): x.reshape(-1, 2, 4).sum(axis=(0, 1))[None, :],
    }
    laws = {key: TrueCounts() if key[1] == "total" else noise for key in tables}
    counts = {
        key: sp.csr_array(
            true[key]
            + (0 if laws[key].exact else noise.to_law().rvs(true[key].shape, random_state=rng))
        )
        for key in tables
    }
    geoids = {"block": np.array([f"1{i:03d}" for i in range(blocks)]), "tract": np.array(["1"])}
    used = {level: geoids[level] for level in {key[0] for key in tables}}
    published = PublishedTables(Workload(schema, tables), used, counts)
    return Release(MechanismSpec("town", {}, laws), published), prior, x


def three_levels(seed, most):
    """Return a release of a tract of two groups of two blocks, tables of all levels, and its prior.

    No block has more than ``most`` people, and no number of people is published.
    """
    rng = np.random.default_rng(seed)
    geography = Geography("towns", ("tract", "group", "block"), (1, 2, 4))
    schema = Schema("people", (Attribute("sex", 2),), geography)
    prior = RecordPrior(schema, np.array([0.7, 0.3]), None, np.ones(most + 1) / (most + 1))
    x = np.array([np.bincount(rng.integers(2, size=most), minlength=2) for _ in range(4)])
    true = {"block": x, "group": x.reshape(2, 2, 2).sum(axis=1), "tract": x.sum(axis=0)[None, :]}
    tables = {
        (level, "sex"): Table("sex", ("0", "1"), {"sex": np.eye(2, dtype=int)}) for level in true
    }
    laws = {key: NoiseSpec("discrete-gaussian", 4) for key in tables}
    noise = laws["block", "sex"].to_law()
    counts = {
        (level, "sex"): sp.csr_array(count + noise.rvs(count.shape, random_state=rng))
        for level, count in true.items()
    }
    geoids = {"block": ["1100", "1101", "1200", "1201"], "group": ["11", "12"], "tract": ["1"]}
    published = PublishedTables(
        Workload(schema, tables),
        {level: np.array(codes) for level, codes in geoids.items()},
        counts,
    )
    return Release(MechanismSpec("three levels", {}, laws), published), prior


#: Shares for :func:`two_sides`: races and the others independent, so among adults and among
#: children alone, and not even that.
SHARES = ("independent", "by age", "any")


def two_sides(seed, kind):
    """Return a release of a block with tables of race and tables of sex by age, and more.

    Beside it stand the prior, what the oracle needs, and the kind of coarsening of every table.
    """
    rng = np.random.default_rng([seed, SHARES.index(kind), 17])
    sizes = {"race": 4, "sex": 2, "age": 4}
    schema = Schema("people", tuple(Attribute(a, n) for a, n in sizes.items()), GEOGRAPHY)
    race, others = rng.dirichlet(np.ones(4), size=2), rng.dirichlet(np.ones(8)).reshape(2, 4)
    adult = np.array([0, 1, 1, 1])
    if kind == "independent":
        race[1] = race[0]
    shares = (race[adult][:, :, None].transpose(1, 2, 0) * others[None]).ravel()
    if kind == "any":
        shares = rng.dirichlet(np.ones(32))
    size = rng.dirichlet(np.ones(4))
    prior = RecordPrior(schema, shares / shares.sum(), None, size, name="two sides")
    truth = rng.multinomial(int(rng.choice(4, p=size)), prior.shares_of_cells)
    eye = {a: np.eye(n, dtype=np.int64) for a, n in sizes.items()}
    factors = {
        "race": {"race": eye["race"]},
        "age": {"age": eye["age"]},
        "sex by age": {
            "sex": np.repeat(eye["sex"], 4, axis=0),
            "age": np.tile(eye["age"], (2, 1)),
        },
    }
    if kind != "independent":
        factors["race of adults"] = {"race": eye["race"], "age": np.tile(adult, (4, 1))}
    coarse = (  # most leave 0 and 1 together: a zero that is known leaves fewer kinds
        RoundingSpec(3, "nearest"),
        RoundingSpec(3, "random"),
        RangeSpec((0, 2), (0, 2), None),
        SuppressedCounts(0, 2),
        TrueCounts(),
    )
    index = np.unravel_index(np.arange(32), (4, 2, 4))
    tables, counts, hidden, laws, terms = {}, {}, {}, {}, []
    for name, own in factors.items():
        n = len(next(iter(own.values())))
        weights = np.ones((n, 32), np.int64)
        for a, i in zip(sizes, index, strict=True):
            weights *= own[a][:, i] if a in own else 1
        key = "block", name
        tables[key] = Table(name, tuple(f"{name}-{q}" for q in range(n)), own)
        law = laws[key] = coarse[int(rng.choice(5, p=[0.25, 0.25, 0.2, 0.25, 0.05]))]
        out, withheld = publish(rng, law, (weights @ truth)[None])
        counts[key], hidden[key] = sp.csr_array(out), sp.csr_array(withheld)
        for q, row in enumerate(weights.tolist()):
            told = _by_rule(law) if withheld[0, q] else _log_likelihood(law, out[0, q])
            terms.append(([0], row, told))
    geoids = {"block": np.array(["100"])}
    published = PublishedTables(Workload(schema, tables), geoids, counts, hidden)
    release = Release(MechanismSpec("random", {}, laws), published)
    return release, prior, (1, *_law_of(prior), terms)


def score(q, group, hit):
    """Return the standardised excess of true statements where q is above a half, less below it."""
    excess = np.sign(q - 0.5) * (hit - q * group)
    return float(excess.sum() / np.sqrt((excess**2).sum()))
