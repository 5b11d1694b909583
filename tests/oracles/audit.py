"""What an adversary believes of a target, from the whole law of the records of a place."""

import math


def _sums(x, possible, value, values):
    found = [0.0] * values
    for cell, count in enumerate(x):
        if possible[cell]:
            found[value[cell]] += count
    return found


def _shared(parts):
    whole = math.fsum(parts)
    return [part / whole for part in parts] if whole else [math.nan] * len(parts)


def after(law, possible, value, values):
    """Return E[X_gr] / E[X_g] of one place: the target is one of its records of group g."""
    parts = [(w, _sums(x[0], possible, value, values)) for w, x in law]
    return _shared([math.fsum(w * p[r] for w, p in parts) for r in range(values)])


def without(law, shares, concentration, possible, value, values):
    """Return the predictive probability of one more record, given that it is of the group."""
    if concentration is None:
        return before(shares, possible, value, values)
    base = _sums([concentration * share for share in shares], possible, value, values)
    parts = [0.0] * values
    for w, (x,) in law:
        own = _sums(x, possible, value, values)
        for r in range(values):
            parts[r] += w * (base[r] + own[r]) / (concentration + sum(x))
    return _shared(parts)


def size_of_others(size):
    """Return P(m others) in the place of a person drawn at random: (m + 1) P(m + 1), shared."""
    return _shared([(m + 1) * p for m, p in enumerate(size[1:])])


def before(shares, possible, value, values):
    """Return the shares of the composition in the group."""
    return _shared(_sums(shares, possible, value, values))


def less(cells, record):
    """Return the oracle's cells for the other records: a released count says s + w of their s."""

    def shifted(likelihood, weight):
        return lambda s: likelihood(s + weight)

    return [
        (covered, weights, shifted(likelihood, weights[record]))
        for covered, weights, likelihood in cells
    ]
