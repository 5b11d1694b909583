"""Uniques and repeated records by looking at every set of keys of every record."""

from collections import Counter
from itertools import combinations


def minimal_uniques(rows, max_size):
    """Return for each record the sets of columns on which it is unique and on no part of them."""
    width = len(rows[0])
    found = []
    for row in rows:
        own = []
        for size in range(1, max_size + 1):
            for chosen in combinations(range(width), size):
                alike = sum(all(r[i] == row[i] for i in chosen) for r in rows)
                if alike == 1 and not any(set(part) <= set(chosen) for part in own):
                    own.append(chosen)
        found.append(own)
    return found


def repeated(original, protected):
    """Return the measures in per cent from lists of (keys, target)."""
    d, s = (Counter(q for q, _ in rows) for rows in (original, protected))
    dt = Counter(original)

    def percent(flags, of):
        return 100.0 * sum(flags) / len(of)

    def values(q, rows):
        return {t for other, t in rows if other == q}

    return {
        "unique_original": percent([d[q] == 1 for q, _ in original], original),
        "unique_protected": percent([s[q] == 1 for q, _ in protected], protected),
        "unique_original_found": percent([d[q] == 1 and s[q] > 0 for q, _ in original], original),
        "replicated_uniques": percent([d[q] == 1 == s[q] for q, _ in original], original),
        "disclosive_original": percent([dt[q, t] == d[q] for q, t in original], original),
        "found": percent([s[q] > 0 for q, _ in original], original),
        "disclosive_protected": percent(
            [len(values(q, protected)) == 1 for q, _ in original], original
        ),
        "disclosive_correct": percent([values(q, protected) == {t} for q, t in original], original),
        "disclosive_both": percent(
            [values(q, protected) == {t} == values(q, original) for q, t in original], original
        ),
    }
