"""The law of a privacy loss by enumeration with mpmath, from the definitions of the two laws."""

import mpmath as mp


def gaussian(sigma2, change, digits=60):
    """Losses and probabilities of a discrete Gaussian count that a record moves by ``change``."""
    v = mp.mpf(sigma2)
    reach = int(mp.sqrt(2 * v * digits * mp.log(10))) + 2
    weight = {x: mp.e ** (-mp.mpf(x * x) / (2 * v)) for x in range(-reach, reach + 1)}
    total = mp.fsum(weight.values())
    return [((2 * change * x + change**2) / (2 * v), w / total) for x, w in weight.items()]


def laplace(scale, change):
    """The same of a discrete Laplace count: tails add up to one value each."""
    b, d = mp.mpf(scale), abs(change)
    q = mp.e ** (-1 / b)
    peak = (1 - q) / (1 + q)
    tails = {0: peak * q**d / (1 - q), d: peak / (1 - q)}
    return [((2 * mp.mpf(y) - d) / b, tails.get(y, peak * q ** (d - y))) for y in range(d + 1)]


def finite(probabilities, change):
    """The same of noise with a list of probabilities; a loss may be infinite."""
    p = {x: mp.mpf(w) for x, w in enumerate(probabilities) if w}
    pairs = [(w, p.get(x + change, mp.mpf(0))) for x, w in p.items()]
    return [(mp.log(w) - mp.log(q) if q else mp.inf, w) for w, q in pairs]


def together(laws):
    """The loss of independent counts."""
    found = {mp.mpf(0): mp.mpf(1)}
    for law in laws:
        added = {}
        for loss, mass in found.items():
            for own, chance in law:
                added[loss + own] = added.get(loss + own, mp.mpf(0)) + mass * chance
        found = added
    return found


def delta(law, epsilon):
    """E (1 - exp(epsilon - L))+."""
    e = mp.mpf(epsilon)
    return mp.fsum(m * (1 - mp.e ** (e - loss)) for loss, m in law.items() if loss > e)


def tail(law, loss):
    return mp.fsum(m for x, m in law.items() if x > loss)


def mean_posterior(law, prior):
    odds = mp.mpf(prior) / (1 - mp.mpf(prior))
    return mp.fsum(m / (1 + mp.e ** (-x) / odds) for x, m in law.items())
