"""A quantile of what is learned from own records, with its interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betainc, stdtrit

from bayesrisk import _validation as check
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.risk.audit.summary import KEYS, whole_columns
from bayesrisk.risk.statements.columns import OPEN, ratio_of


def audit_quantiles(
    targets: pd.DataFrame, *, quantile: float = 0.99, confidence: float = 0.95
) -> pd.DataFrame:
    """Return a quantile of posterior over without, of the true statements about targets.

    The interval goes from the last ratio, the k-th of n, with P(Bin(n, q) < k) <= alpha / 2 to the
    first with P(Bin(n, q) >= k) <= alpha / 2.  Because targets of one place are alike, n of them
    count as fewer, n', and k as k n' / n.  Targets without a posterior are left out of the
    estimate; the lower end takes their ratios as 0, the upper one as infinite.

    Parameters
    ----------
    targets : pandas.DataFrame
        As :func:`audit_targets` gives them.
    quantile : float, default 0.99
        Which, in (0, 1).
    confidence : float, default 0.95
        Of the intervals, in (0, 1).

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary``: ``targets``, ``undecided`` (of them
        without a posterior), ``ratio``, the smallest one that a share ``quantile`` of the decided
        does not exceed, ``lower`` and ``upper``, infinite where so few targets bound nothing.

    Raises
    ------
    DataError
        If a column is missing, or holds what is no number.

    References
    ----------
    The interval is that of Korn and Graubard (1998, Survey Methodology 24, 193-201) for a share,
    inverted as by Woodruff (1952, JASA 47, 635-646).

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": "none", "attack": "likelihood", "adversary": "outsider",
    ...     "place": [str(i) for i in range(40)], "status": "calculated",
    ...     "truth_without": 0.125, "truth_posterior": [(4 + i) / 32 for i in range(40)],
    ... })
    >>> found = audit_quantiles(targets, quantile=0.5)
    >>> found[["targets", "undecided", "ratio", "lower", "upper"]].values.tolist()
    [[40.0, 0.0, 5.75, 4.25, 7.5]]
    """
    share = check.scalar(quantile, "quantile", lower=0.0, upper=1.0, bounds="()")
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    numbers = ("truth_without", "truth_posterior")
    found = whole_columns(targets, "targets", (*KEYS, "place", "status"), numbers)
    lines = []
    for key, rows in found.groupby(KEYS, sort=False):
        ratio = ratio_of(*(rows[name].to_numpy(np.float64) for name in reversed(numbers)))
        open_ = rows["status"].isin(OPEN).to_numpy(np.bool_) | np.isnan(ratio)
        places = np.unique(rows["place"].to_numpy(), return_inverse=True)[1].astype(np.int64)
        about = {"targets": len(rows), "undecided": int(open_.sum())}
        value, low, high = _quantile(ratio, open_, places, share, 1.0 - level)
        lines.append(
            dict(zip(KEYS, key, strict=True))
            | about
            | {"ratio": value, "lower": low, "upper": high}
        )
    return pd.DataFrame(lines)


def _quantile(
    ratio: FloatArray, open_: NDArray[np.bool_], places: IntArray, share: float, alpha: float
) -> tuple[float, float, float]:
    """Return the quantile of decided ratios, and an interval for that of all."""
    known = np.sort(ratio[~open_])
    if not known.size:
        return np.nan, 0.0, np.inf
    value = float(known[int(np.ceil(share * known.size)) - 1])
    n = ratio.size
    worth = _worth(ratio[~open_], places[~open_], value, alpha) * n / known.size
    if worth == 0.0:
        return value, 0.0, np.inf
    k = np.arange(1, n + 1) * worth / n
    fewer = k - worth / n
    ends = np.zeros(int(open_.sum()))
    lowest, highest = np.r_[ends, known], np.r_[known, ends + np.inf]
    below = np.flatnonzero(1.0 - betainc(fewer + 1.0, worth - fewer, share) <= alpha / 2.0)
    above = np.flatnonzero(betainc(k, worth - k + 1.0, share) <= alpha / 2.0)
    low = float(lowest[below[-1]]) if below.size else 0.0
    high = float(highest[above[0]]) if above.size else np.inf
    return value, low, high


def _worth(ratio: FloatArray, places: IntArray, value: float, alpha: float) -> float:
    """Return how many independent targets these are worth for the share below a value."""
    number = np.unique(places).size
    if number < 2:
        return 0.0
    below = ratio <= value if (ratio > value).any() else ratio < value
    n, mean = below.size, float(below.mean())
    if mean in (0.0, 1.0):
        design = 1.0
    else:
        off = np.bincount(places, below - mean)
        variance = float((off**2).sum()) * number / (number - 1) / n**2
        design = max(variance / (mean * (1.0 - mean) / n), 1.0)
    people, units = (float(stdtrit(k - 1, 1.0 - alpha / 2.0)) for k in (n, number))
    return n / design * (people / units) ** 2
