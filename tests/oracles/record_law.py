"""The law of the records of a place by complete enumeration: every histogram, weighed by itself."""

import functools
import itertools
import math

import numpy as np


def histograms(n_cells, most):
    """Yield every histogram of at most ``most`` records."""
    for n in range(most + 1):
        for bars in itertools.combinations(range(n + n_cells - 1), n_cells - 1):
            edges = (-1, *bars, n + n_cells - 1)
            yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


@functools.cache
def every(n_cells, most):
    """Return all of these histograms."""
    return tuple(histograms(n_cells, most))


def log_prior(x, shares, concentration, size):
    """Return log P(x): multinomial, or Dirichlet-multinomial, times the law of the size."""
    n = sum(x)
    if n >= len(size) or size[n] == 0:
        return -math.inf
    value = math.log(size[n]) + math.lgamma(n + 1)
    if concentration is not None:
        value += math.lgamma(concentration) - math.lgamma(concentration + n)
    for count, share in zip(x, shares, strict=True):
        if count and not share:
            return -math.inf
        if count and concentration is None:
            value += count * math.log(share)
        elif count:
            value += math.lgamma(concentration * share + count)
            value -= math.lgamma(concentration * share)
        value -= math.lgamma(count + 1)
    return value


def posterior(places, n_cells, shares, concentration, size, cells):
    """Return pairs (weight, histograms of the places), the weights with sum 1.

    ``cells`` are published cells: (places that it covers, weight of a record of each schema cell,
    log likelihood of a true count).
    """
    alone = [(x, log_prior(x, shares, concentration, size)) for x in every(n_cells, len(size) - 1)]
    alone = [(x, value) for x, value in alone if value > -math.inf]
    records, values = np.array([x for x, _ in alone]), np.array([value for _, value in alone])
    # Every choice of a histogram for each place, by their numbers.
    chosen = np.indices((len(alone),) * places).reshape(places, -1)
    log_weight = values[chosen].sum(axis=0)
    for covered, weights, log_likelihood in cells:
        count = (records @ np.asarray(weights))[chosen[list(covered)]].sum(axis=0)
        distinct, number = np.unique(count, return_inverse=True)
        log_weight += np.array([log_likelihood(c) for c in distinct.tolist()])[number]
        chosen, log_weight = chosen[:, log_weight > -math.inf], log_weight[log_weight > -math.inf]
    best = log_weight.max()
    log_evidence = best + math.log(math.fsum(np.exp(log_weight - best).tolist()))
    return [
        (weight, tuple(alone[i][0] for i in numbers))
        for weight, numbers in zip(
            np.exp(log_weight - log_evidence).tolist(), chosen.T.tolist(), strict=True
        )
    ]


def with_known_people(places, n_cells, shares, concentration, size, cells, people, exactly):
    """Return triples (weight, histograms, histograms of those not named), by lists of people.

    The first people of the list of a place are the known ones.  ``people[p]`` has for each of them
    the cells that they may have, and whether that is all there is to know; ``exactly[p]`` has
    pairs (cells, how many people of the place have one of them).
    """
    alone = []
    for p in range(places):
        found = {}
        for n in range(len(people[p]), len(size)):
            allowed = [kinds for kinds, _ in people[p]]
            allowed += [range(n_cells)] * (n - len(people[p]))
            for chosen in itertools.product(*allowed):
                if any(sum(c in kinds for c in chosen) != m for kinds, m in exactly[p]):
                    continue
                value = math.log(size[n]) if size[n] > 0 else -math.inf
                seen = [0] * n_cells
                for i, c in enumerate(chosen):
                    share = shares[c]
                    if concentration is not None:
                        share = (concentration * share + seen[c]) / (concentration + i)
                        share *= shares[c] > 0
                    value += math.log(share) if share > 0 else -math.inf
                    seen[c] += 1
                if value > -math.inf:
                    named = [c for c, (_, whole) in zip(chosen, people[p], strict=False) if whole]
                    others = list(seen)
                    for c in named:
                        others[c] -= 1
                    key = tuple(seen), tuple(others)
                    found.setdefault(key, []).append(math.exp(value))
        alone.append([(key, math.log(math.fsum(v))) for key, v in found.items()])
    found = []
    for chosen in itertools.product(*alone):
        value = math.fsum(v for _, v in chosen)
        for covered, weights, log_likelihood in cells:
            count = sum(
                w * x for p in covered for w, x in zip(weights, chosen[p][0][0], strict=True)
            )
            value += log_likelihood(count)
            if value == -math.inf:
                break
        if value > -math.inf:
            found.append((value, [k[0] for k, _ in chosen], [k[1] for k, _ in chosen]))
    best = max(value for value, _, _ in found)
    total = math.fsum(math.exp(value - best) for value, _, _ in found)
    return [(math.exp(value - best) / total, x, others) for value, x, others in found]


def fulfil(condition, schema):
    """Return which cells of a schema fulfil a condition."""
    cells = np.indices(schema.shape).reshape(len(schema.shape), -1)
    kept = np.ones(cells.shape[1], bool)
    for name, codes in condition.items():
        kept &= np.isin(cells[schema.names.index(name)], list(codes))
    return kept


def answers(law, schema, asked):
    """Return the answers of a law to questions; shares are among people who are not named."""
    found = []
    for question in asked:
        at = slice(None) if question.place is None else [int(question.place[1:])]
        among = fulfil(question.among or {}, schema)
        where = fulfil(question.where, schema) & among
        every = [
            (w, np.array(x[-1] if question.among is not None else x[0])[at].sum(axis=0))
            for w, *x in law
        ]
        mean = math.fsum(w * x[where].sum() for w, x in every)
        if question.at_least is not None:
            found.append(math.fsum(w for w, x in every if x[where].sum() >= question.at_least))
        elif question.among is not None:
            whole = math.fsum(w * x[among].sum() for w, x in every)
            # A group that is there so rarely may be what an exact law leaves out.
            found.append(mean / whole if whole > 1e-4 else math.nan)
        else:
            found.append(mean)
    return found
