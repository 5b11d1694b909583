"""People of one place in two years, by enumeration: every list of trajectories, weighed by itself.

A trajectory is (first, later): tuples of values, or None where the person is not there.  Numbers of
each are independent and Poisson (a Poisson number of people whose kinds are independent), cut off
where there are more than so many people.
"""

import functools
import itertools
import math

import numpy as np


def crossing(starts, years):
    """Return P(later group | group) of ages uniform in their group, by counting single years."""
    last = len(starts) - 1
    found = []
    for g, low in enumerate(starts):
        row = [0.0] * len(starts)
        if g == last:
            row[g] = 1.0
        else:
            ages = range(low, starts[g + 1])
            for age in ages:
                row[max(h for h, s in enumerate(starts) if s <= age + years)] += 1 / len(ages)
        found.append(row)
    return found


def trajectories(sizes, age, law, counts):
    """Return a list of (first, later, expected number).

    ``age`` is the position of the age or None; ``law`` has ``starts``, ``years``, ``staying`` and
    ``dying`` by age, ``change``: a matrix for each position that changes, ``arrivals`` and
    ``births`` for one record of the first year; ``counts`` are expected numbers by value.
    """
    kinds = list(itertools.product(*(range(s) for s in sizes)))
    cross = crossing(law["starts"], law["years"]) if age is not None else None
    total = sum(counts[k] for k in kinds)
    new = dict.fromkeys(kinds, 0.0)
    for k in kinds:
        new[k] += law["arrivals"] * counts[k]
    if age is not None:
        for year in range(law["years"]):
            group = max(h for h, s in enumerate(law["starts"]) if s <= year)
            for k in kinds:
                baby = (*k[:age], group, *k[age + 1 :])
                new[baby] += law["births"] * counts[k] / law["years"]
    assert total > 0
    found = []
    for k in kinds:
        g = 0 if age is None else k[age]
        stay = law["staying"][g] * (1 - law["dying"][g])
        for m in kinds:
            chance = stay
            for i, (v, w) in enumerate(zip(k, m, strict=True)):
                if i == age:
                    chance *= cross[v][w]
                elif i in law["change"]:
                    chance *= law["change"][i][v][w]
                else:
                    chance *= v == w
            found.append((k, m, counts[k] * chance))
        found.append((k, None, counts[k] * (1 - stay)))
        found.append((None, k, new[k]))
    return [t for t in found if t[2] > 0]


def posterior(paths, most, terms):
    """Return (weights with sum 1, histograms (lists, trajectories)).

    ``terms`` are published cells: whether of the later year, the weight of a record by value, and
    the log likelihood of a true count.
    """
    x = _histograms(len(paths), most)
    log_mean = np.log([m for *_, m in paths])
    log_factorial = np.array([math.lgamma(k + 1) for k in range(most + 1)])
    value = x @ log_mean - log_factorial[x].sum(axis=1)
    for later, weights, log_likelihood in terms:
        ends = [p[int(later)] for p in paths]
        own = np.array([0 if end is None else weights[end] for end in ends], np.int64)
        sums = x @ own
        known = {int(s): log_likelihood(int(s)) for s in np.unique(sums)}
        value = value + np.array([known[int(s)] for s in sums])
    weight = np.exp(value - value.max())
    return weight / weight.sum(), x


@functools.cache
def _histograms(kinds, most):
    """Return every histogram of at most so many records, one a row."""
    rows = []
    for n in range(most + 1):
        chosen = np.array(list(itertools.combinations_with_replacement(range(kinds), n)), np.int64)
        found = np.zeros((len(chosen), kinds), np.int64)
        for place in range(n):
            np.add.at(found, (np.arange(len(chosen)), chosen[:, place]), 1)
        rows.append(found)
    return np.concatenate(rows)


def cells_of_year(law, cells, *, later):
    """Return the cell of the schema that trajectories have in a year; -1 where they are away."""
    index = law.schema_of_both.indices(np.asarray(cells))
    values = {name: law.pairs[name][at, int(later)] for name, at in index.items()}
    found = np.zeros(np.shape(cells), np.int64)
    for attribute in law.schema.attributes:
        found = found * attribute.size + values[attribute.name]
    return np.where(values[law.presence] < 0, -1, found)
