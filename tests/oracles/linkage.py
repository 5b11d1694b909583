"""Slow, obvious twins of matching, guessing and re-identification, independent of the package."""

from collections import Counter

import numpy as np
from scipy import stats


def age_bin(age):
    """Bins of Table S3 of Abowd et al. (2023), typed in from the table."""
    if age <= 21:
        return age
    uppers = [24, 29, 34, 39, 44, 49, 54, 59, 61, 64, 66, 69, 74, 79, 84, 110]
    return 22 + next(i for i, upper in enumerate(uppers) if age <= upper)


def match(left, right, key):
    """Algorithm 1 as printed: two loops; records are dictionaries; returns pairs of positions."""
    free = list(range(len(right)))
    pairs = []
    for i, record in enumerate(left):
        for j in free:
            if all(record[name] == right[j][name] for name in key):
                pairs.append((i, j))
                free.remove(j)
                break
    return pairs


def match_passes(left, right, keys):
    """Algorithm 2: pass after pass over what is left; returns the number of pairs of each."""
    counts = []
    rest_left, rest_right = list(left), list(right)
    for key in keys:
        pairs = match(rest_left, rest_right, key)
        counts.append(len(pairs))
        taken_left, taken_right = {i for i, _ in pairs}, {j for _, j in pairs}
        rest_left = [r for i, r in enumerate(rest_left) if i not in taken_left]
        rest_right = [r for j, r in enumerate(rest_right) if j not in taken_right]
    return counts


def mode_or_none(values):
    """The only most frequent value that occurs more than once, or None."""
    ranked = Counter(values).most_common()
    if ranked[0][1] <= 1 or (len(ranked) > 1 and ranked[1][1] == ranked[0][1]):
        return None
    return ranked[0][0]


def modal_cell(records, block):
    """Modal (race, hisp) of a block with its fallbacks."""
    for prefix in (15, 12):
        same = [(r["race"], r["hisp"]) for r in records if r["block"][:prefix] == block[:prefix]]
        found = mode_or_none(same)
        if found is not None:
            return found
    counts = Counter((r["race"], r["hisp"]) for r in records)
    return min(counts, key=lambda cell: (-counts[cell], cell))


def leave_one_out(records, target):
    """(modal, proportional) probability of a right guess of a record's cell by the others."""
    mine = (records[target]["race"], records[target]["hisp"])
    others = [
        (r["race"], r["hisp"])
        for i, r in enumerate(records)
        if i != target and r["block"] == records[target]["block"]
    ]
    if not others:
        return 0.0, 0.0
    counts = Counter(others)
    highest = max(counts.values())
    modes = [cell for cell, n in counts.items() if n == highest]
    return (1 / len(modes) if mine in modes else 0.0), counts[mine] / len(others)


def clustered_interval(hits, trials, level):
    """Interval of a share whose trials depend on each other within blocks, by whole matrices.

    The variance of the share between blocks, made unbiased and given degrees of freedom by traces
    of the covariance of residuals, for trials that are correlated within a block as an analysis of
    variance finds; then Clopper and Pearson with the effective number of trials.
    """
    y, n = np.array(hits, float), np.array(trials, float)
    y, n = y[n > 0], n[n > 0]
    total, blocks = n.sum(), n.size
    p = y.sum() / total
    residual = y - p * n
    effective = total**2 / (n @ n)
    if blocks > 1 and 0 < p < 1 and residual @ residual > 1e-12 * (n @ n):
        shares = y / n
        inside = (n * shares * (1 - shares)).sum() / max(total - blocks, 1)
        between = (n * (shares - p) ** 2).sum() / (blocks - 1)
        typical = (total - (n @ n) / total) / (blocks - 1)
        whole = between + (typical - 1) * inside
        alike = min(max((between - inside) / whole, 0), 1) if whole > 0 else 1.0
        working = np.diag(n * (1 + (n - 1) * alike))
        residuals = np.eye(blocks) - np.outer(n, np.ones(blocks)) / total
        covariance = residuals @ working @ residuals.T
        freedom = max(np.trace(covariance) ** 2 / np.trace(covariance @ covariance), 1.0)
        variance = residual @ residual / total**2 * np.trace(working) / np.trace(covariance)
        tail = (1 + level) / 2
        few = (stats.norm.ppf(tail) / stats.t.ppf(tail, freedom)) ** 2
        effective = min(p * (1 - p) / variance * few, total)
    k, rest = p * effective, (1 - p) * effective
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, k, rest + 1) if k > 0 else 0.0
    high = stats.beta.ppf(1 - tail, k + 1, rest) if rest > 0 else 1.0
    return low, high


def stratified_rate(strata, level):
    """Return rate and interval of ``(blocks, frame sizes)`` of strata, leaving out each block.

    Blocks are triples of hits, trials and people; Cochran's separate ratio estimates with the
    people of the frame, and the jackknife of their sum at the rate found.
    """

    def total(blocks, frame, rate=None):
        people = sum(x for _, _, x in blocks)
        hits, trials = (sum(row[k] for row in blocks) / people * sum(frame) for k in (0, 1))
        return (hits, trials) if rate is None else hits - rate * trials

    sums = [total(blocks, frame) for blocks, frame in strata]
    trials = sum(t for _, t in sums)
    rate = sum(y for y, _ in sums) / trials
    variance = spread = 0.0
    for blocks, frame in strata:
        n = len(blocks)
        if n == len(frame):
            continue
        whole = total(blocks, frame, rate)
        without = [total(blocks[:i] + blocks[i + 1 :], frame, rate) for i in range(n)]
        part = (1 - n / len(frame)) * (n - 1) / n * sum((w - whole) ** 2 for w in without)
        squares = [x**2 for _, _, x in blocks]
        freedom = max(sum(squares) ** 2 / sum(s**2 for s in squares) - 1, 1)
        variance, spread = variance + part / trials**2, spread + (part / trials**2) ** 2 / freedom
    tail = (1 + level) / 2
    few = (stats.norm.ppf(tail) / stats.t.ppf(tail, variance**2 / spread)) ** 2
    seen = sum(row[1] for blocks, _ in strata for row in blocks)
    effective = min(rate * (1 - rate) / variance * few, seen / (1 - seen / trials))
    k, n = rate * effective, effective
    low = stats.beta.ppf(1 - tail, k, n - k + 1)
    return rate, low, stats.beta.ppf(tail, k + 1, n - k)
