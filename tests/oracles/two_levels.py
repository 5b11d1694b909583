"""Slow, obvious twins of the two-level model: enumeration in plain Python, nothing shared."""

import itertools
import math

import numpy as np


def sum_pmf(rho, m, reach):
    """Return {d: probability} of a sum of m discrete Gaussians, by adding them one at a time."""
    weights = {x: math.exp(-rho * x * x) for x in range(-reach, reach + 1)}
    z = sum(weights.values())
    one = {x: w / z for x, w in weights.items()}
    law = {0: 1.0}
    for _ in range(m):
        total = {}
        for (d, p), (x, q) in itertools.product(law.items(), one.items()):
            total[d + x] = total.get(d + x, 0.0) + p * q
        law = total
    return law


def drawn(N_true, x_true, *, m, a, b, releases, seed):
    """Return releases (y, n, S) given the truth, the siblings' noise a sum of m draws."""
    rng = np.random.default_rng(seed)

    def noise(rho, shape):
        x = np.arange(-40, 41)
        weight = np.exp(-rho * x.astype(float) ** 2)
        return rng.choice(x, shape, p=weight / weight.sum())

    siblings = noise(a, (releases, m)).sum(axis=1)
    y, n = x_true + noise(a, releases), N_true + noise(b, releases)
    return y, n, N_true - x_true + siblings


def log_joint(y, n, S, *, m, a, b, p, k, group_log_prior, noise=None):
    """Return {(x, N): log weight}; ``group_log_prior`` maps the group counts tried."""
    out = {}
    for N, w in group_log_prior.items():
        for x in (k, k + 1):
            if x > N or w == -math.inf:
                continue
            prior = p if x == k + 1 else 1.0 - p
            d = S - N + x
            siblings = -(a / m) * d * d if noise is None else math.log(noise.get(d) or 5e-324)
            out[x, N] = math.log(prior) + w - a * (y - x) ** 2 - b * (n - N) ** 2 + siblings
    return out


def normalised(log_weights):
    peak = max(log_weights.values())
    weights = {key: math.exp(value - peak) for key, value in log_weights.items()}
    z = math.fsum(weights.values())
    return {key: w / z for key, w in weights.items()}


def coherent(y, n, S, **model):
    """Return P(X = k + 1) and {N: probability}."""
    k = model["k"]
    joint = normalised(log_joint(y, n, S, **model))
    target = math.fsum(w for (x, _), w in joint.items() if x == k + 1)
    group = {}
    for (_, N), w in joint.items():
        group[N] = group.get(N, 0.0) + w
    return target, group


def published(y, n, S, **model):
    """Return the same under the stationary law of the two published conditionals.

    The left eigenvector of the transition matrix of x -> N -> x'.
    """
    k, p, a, m = model["k"], model["p"], model["a"], model["m"]
    noise = model.get("noise")
    joint = log_joint(y, n, S, **model)
    given = {
        x: normalised({N: w for (other, N), w in joint.items() if other == x}) for x in (k, k + 1)
    }

    def share(N):  # P(x = k + 1 | N), the indicator N >= x dropped
        weights = {}
        for x, q in ((k, 1.0 - p), (k + 1, p)):
            d = S - N + x
            log_noise = -(a / m) * d * d if noise is None else math.log(noise.get(d) or 5e-324)
            weights[x] = math.log(q) - a * (y - x) ** 2 + log_noise
        return normalised(weights)[k + 1]

    stay = {x: math.fsum(w * share(N) for N, w in given[x].items()) for x in (k, k + 1)}
    matrix = np.array([[1.0 - stay[k], stay[k]], [1.0 - stay[k + 1], stay[k + 1]]])
    values, vectors = np.linalg.eig(matrix.T)
    law = np.real(vectors[:, np.argmax(np.real(values))])  # complex from NumPy 2.5 on
    law = law / law.sum()
    group = {}
    for x, weight in zip((k, k + 1), law, strict=True):
        for N, w in given[x].items():
            group[N] = group.get(N, 0.0) + weight * w
    return float(law[1]), group


def correct_decision(N_true, x_true, *, m, a, b, p, k, solve, reach):
    """Return P(correct) by a triple sum over releases, ``solve`` giving P(X = k + 1).

    The siblings' noise is the sum of m draws, convolved term by term.
    """
    ry, rn, rs = reach
    fy = {e: math.exp(-a * e * e) for e in range(-ry, ry + 1)}
    fn = {e: math.exp(-b * e * e) for e in range(-rn, rn + 1)}
    fs = {0: 1.0}
    for _ in range(m):
        longer = dict.fromkeys(range(min(fs) - rs, max(fs) + rs + 1), 0.0)
        for total, weight in fs.items():
            for e in range(-rs, rs + 1):
                longer[total + e] += weight * math.exp(-a * e * e)
        fs = longer
    z = sum(fy.values()) * sum(fn.values()) * sum(fs.values())
    correct = mean = 0.0
    for ey, en, es in itertools.product(fy, fn, fs):
        w = fy[ey] * fn[en] * fs[es] / z
        if w < 1e-15:
            continue
        target = solve(x_true + ey, N_true + en, N_true - x_true + es)
        decision = k + 1 if target >= 0.5 - 1e-12 else k
        correct += w * (decision == x_true)
        mean += w * (target if x_true == k + 1 else 1.0 - target)
    return correct, mean


def known_total(N, *, m, a, k):
    """Return {(y, S): [P given k, P given k + 1]}, the group counting N under both.

    The other m blocks make up what the target leaves: N - k without it, N - k - 1 with it.
    """
    reach = math.ceil(math.sqrt(40.0 / a))
    block, others = sum_pmf(a, 1, reach), sum_pmf(a, m, reach)
    law = {}
    for i, x in enumerate((k, k + 1)):
        for (e, w), (d, v) in itertools.product(block.items(), others.items()):
            law.setdefault((x + e, N - x + d), [0.0, 0.0])[i] += w * v
    return law


def ratio_law(N_true, x_true, *, m, a, b, p, k, solve, reach):
    """Return [(risk ratio, probability)] over all releases, ``solve`` giving P(X = k + 1)."""
    ry, rn, rs = reach
    fy = {e: math.exp(-a * e * e) for e in range(-ry, ry + 1)}
    fn = {e: math.exp(-b * e * e) for e in range(-rn, rn + 1)}
    fs = sum_pmf(a, m, rs)
    z = sum(fy.values()) * sum(fn.values())
    law = []
    for ey, en, es in itertools.product(fy, fn, fs):
        w = fy[ey] * fn[en] * fs[es] / z
        if w > 1e-16:
            law.append((solve(x_true + ey, N_true + en, N_true - x_true + es) / p, w))
    return sorted(law)
