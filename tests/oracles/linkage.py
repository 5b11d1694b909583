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
