"""Random small releases whose cells allow several counts, with every data set that fits."""

import itertools

import numpy as np
import scipy.sparse as sp
from claims_cases import random_table, small_schema
from oracles import claims as oracle

from bayesrisk.release import RangeSpec, RoundingSpec, SuppressedCounts
from bayesrisk.tables import PublishedTables, Table, Workload
from bayesrisk.tables.likelihoods import PerturbedCounts

LAWS = (
    None, RoundingSpec(2, "nearest"), RoundingSpec(3, "nearest"), RoundingSpec(2, "random"),
    RoundingSpec(3, "random"), RangeSpec((0, 1, 3), (0, 1, 3)),
    RangeSpec((0, 1, 2, 4), (0, 1, 2, 4), 2), RangeSpec((0, 3), (0, 3), 1),
    RangeSpec((0, 4), (1, 5), 2), SuppressedCounts(1, 2), SuppressedCounts(1), SuppressedCounts(),
)  # fmt: skip
#: More than any count of the small releases, weights and all.
MOST = 40


def published_number(law, count, rng):
    """Return the number that is published for a count, and whether it is withheld."""
    if law is None:
        return count, False
    if isinstance(law, SuppressedCounts):
        hidden = rng.random() < 0.25 if law.high is None else law.low <= count <= law.high
        return count, bool(hidden and count >= law.low)
    if isinstance(law, PerturbedCounts):
        return max(0, count + int(rng.integers(-law.largest, law.largest + 1))), False
    numbers = law.releases(count, count, tail=0.1)
    chance = law.probability(numbers, count)
    return int(rng.choice(numbers, p=chance / chance.sum())), False


def allowed_counts(law, number, hidden, known_rule):
    """Return which counts below MOST may be published so, from what the law makes of each."""
    counts = np.arange(MOST)
    if hidden:
        low, high = (law.low, law.high) if known_rule else (0, None)
        return (counts >= low) & (counts <= (MOST if high is None else high))
    if law is None or isinstance(law, SuppressedCounts):
        return counts == number
    if isinstance(law, PerturbedCounts):
        return abs(counts - number) <= law.largest
    return np.asarray(law.probability(number, counts)) > 0


def range_case(seed, *, known_rule=True, among=LAWS):
    """Return schema, tables, possible cells, what is published and all data sets that it allows."""
    rng = np.random.default_rng(seed)
    schema = small_schema(*rng.integers(2, 4, 2))
    tables = [Table("N", ("N_0",), {})]
    tables += [random_table(rng, schema, f"T{i}") for i in range(rng.integers(1, 4))]
    laws = [among[rng.integers(len(among))] for _ in tables]
    cells = np.sort(rng.permutation(schema.size)[: rng.integers(3, 7)])
    n = int(rng.integers(0, 5))
    weights = oracle.weights_of(schema, tables, cells)
    free = isinstance(laws[0], SuppressedCounts) or laws[0] == LAWS[5]
    if free:  # nothing limits the number of records: few of them, in few cells
        n, cells = min(n, 2), cells[:4]
        weights = weights[:, :4]
    data = np.bincount(rng.integers(0, len(cells), n), minlength=len(cells))
    numbers, hidden, allowed = [], [], []
    of_table = np.repeat(np.arange(len(tables)), [len(t.cells) for t in tables])
    for count, t in zip((weights @ data).tolist(), of_table.tolist(), strict=True):
        number, withheld = published_number(laws[t], count, rng)
        numbers.append(0 if withheld else number)
        hidden.append(withheld)
        allowed.append(allowed_counts(laws[t], number, withheld, known_rule))
    most = 9 if free else int(np.flatnonzero(allowed[0])[-1])
    found = []
    for total in range(most + 1):
        ways = oracle.multisets(len(cells), total)
        sums = ways @ weights.T
        fits = [ok[np.minimum(sums[:, q], MOST - 1)] for q, ok in enumerate(allowed)]
        found.append(ways[np.all(fits, axis=0)])
    published = publish(schema, tables, laws, numbers, hidden)
    return schema, tables, cells, published, np.concatenate(found), data


def publish(schema, tables, laws, numbers, hidden):
    """Return tables of one block with these numbers in their cells."""
    counts, masks, at = {}, {}, 0
    for table in tables:
        piece = slice(at, at + len(table.cells))
        counts["block", table.name] = sp.csr_array([numbers[piece]])
        masks["block", table.name] = sp.csr_array([hidden[piece]])
        at += len(table.cells)
    workload = Workload(schema, {("block", t.name): t for t in tables})
    stated = {
        ("block", t.name): law for t, law in zip(tables, laws, strict=True) if law is not None
    }
    return PublishedTables(workload, {"block": ["001"]}, counts, masks, stated)


def strongest_claims(schema, tables, cells, data_sets):
    """Return {pattern: (m, at least)} of what holds in every data set, m >= 1, the strongest."""
    groups = oracle.code_groups(schema, tables)
    index = np.array([np.unravel_index(c, schema.shape) for c in cells])
    coded = np.array(
        [[groups[n][i] for n, i in zip(schema.names, row, strict=True)] for row in index]
    )
    found = {}
    for pattern in itertools.product(*([None, *sorted(set(part))] for part in coded.T)):
        used = [a for a, v in enumerate(pattern) if v is not None]
        if used:
            match = np.all([coded[:, a] == pattern[a] for a in used], axis=0)
            counts = data_sets @ match
            if counts.min() >= 1:
                found[pattern] = int(counts.min()), bool(counts.min() < counts.max())
    return found
