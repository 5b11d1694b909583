"""What an audit's adversaries say with certainty, and how often it is false."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.risk.audit.summary import KEYS, empty_frame, whole_columns
from bayesrisk.risk.intervals import clustered_interval
from bayesrisk.risk.statements.columns import OPEN

_CERTAIN = 1.0 - 1e-12
_TWO = ("posterior", "without")
_COLUMNS = [
    *KEYS, "targets",
    *(
        f"{name}{end}"
        for end in ("", "_without")
        for name in ("certain", "false", "false_share", "false_lower", "false_upper")
    ),
]  # fmt: skip


def audit_certain(statements: pd.DataFrame, *, confidence: float = 0.95) -> pd.DataFrame:
    """Return how many statements are made with certainty, and how many of those are false.

    A statement is certain where its probability is 1, but for 1e-12, and no estimate.  Of true
    counts it is true; of counts that are only taken as true it can be false.

    Parameters
    ----------
    statements : pandas.DataFrame
        Statements of an audit.
    confidence : float, default 0.95
        Of the intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each ``protection, attack, adversary``: ``targets``; ``certain``, how many of them
        something certain is said about after the release, ``false``, how many of these statements
        are not true, their share ``false_share`` (missing where nothing is certain) and its
        interval ``false_lower``, ``false_upper``; and the same ``*_without`` the target's record.

    Raises
    ------
    DataError
        If a column is missing, or holds what is no number.

    Notes
    -----
    Intervals are Clopper and Pearson's, for the effective number of statements, as those of one
    place stand and fall together (Korn and Graubard, Survey Methodology 24, 1998).

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "protection": "swapped", "attack": "claims", "adversary": "linker", "place": ["1", "2"],
    ...     "target": ["7", "8"], "statement": "a", "prior": 0.5, "without": [1.0, 0.5],
    ...     "posterior": 1.0, "without_error": 0.0, "posterior_error": 0.0,
    ...     "correct": [True, False], "status": "believed",
    ... })
    >>> found = audit_certain(rows)
    >>> found[["certain", "false", "certain_without", "false_without"]].values.tolist()
    [[2, 1, 1, 0]]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    texts = (*KEYS, "target", "status", "place")
    numbers = (*_TWO, *(f"{name}_error" for name in _TWO), "correct")
    whole = whole_columns(statements, "statements", texts, numbers)
    frame = whole[~whole["status"].isin(OPEN)]
    lines = []
    for key, rows in frame.groupby(KEYS, sort=False):
        line = dict(zip(KEYS, key, strict=True)) | {"targets": rows["target"].nunique()}
        for name, end in zip(_TWO, ("", "_without"), strict=True):
            some = rows[(rows[name] >= _CERTAIN) & (rows[f"{name}_error"] == 0.0)]
            false = 1.0 - some["correct"].to_numpy(np.float64)
            low, high = clustered_interval(false, some["place"], confidence=level)
            line |= {
                f"certain{end}": len(some),
                f"false{end}": int(false.sum()),
                f"false_share{end}": float(false.mean()) if len(some) else np.nan,
                f"false_lower{end}": low,
                f"false_upper{end}": high,
            }
        lines.append(line)
    return pd.DataFrame(lines) if lines else empty_frame(_COLUMNS)
