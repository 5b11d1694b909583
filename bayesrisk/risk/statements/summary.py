"""What several attacks say of several protections, on the one scale that statements have."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.statements.columns import OPEN, STATUS

GROUP = ["attack", "adversary", "protection"]
_SHARES = (0.5, 0.9)


def comparable_statements(statements: pd.DataFrame) -> dict[str, bool]:
    """Return for each attack whether all of its protections have the same statements.

    The same ones are about the same targets, for every adversary; an attack with a single
    protection and adversary has them.
    """
    found = {}
    for attack, rows in statements.groupby("attack", sort=False):
        asked = rows.groupby(["target", "statement"], sort=False).ngroup().to_numpy()
        sets = [
            np.sort(asked[at]) for at in rows.groupby(["adversary", "protection"]).indices.values()
        ]
        found[str(attack)] = all(np.array_equal(sets[0], other) for other in sets[1:])
    return found


def summarised(whole: pd.DataFrame, thresholds: Sequence[float]) -> pd.DataFrame:
    """Return the summary of checked statements; see :meth:`Statements.summary`."""
    marks = [
        check.scalar(value, "thresholds", lower=0.0, bounds="(]")
        for value in check.items(thresholds, "thresholds")
    ]
    if len(set(marks)) < len(marks):
        raise ArgumentError(f"thresholds must differ, got {marks}")
    same = comparable_statements(whole)
    lines = []
    for (attack, adversary, protection), rows in whole.groupby(GROUP, sort=False):
        about = {"attack": attack, "adversary": adversary, "protection": protection}
        lines.append({**about, **_counts(rows), **_measures(rows, marks, same[str(attack)])})
    empty = {**_counts(whole), **_measures(whole, marks, True)}
    columns = None if lines else [*GROUP, *empty]
    return pd.DataFrame(lines, columns=columns)


def _counts(rows: pd.DataFrame) -> dict[str, int]:
    found = {
        "statements": len(rows),
        "targets": int(rows["target"].nunique()),
        "people": int(rows["people"].sum()),
    }
    return found | {status: int((rows["status"] == status).sum()) for status in STATUS}


def _measures(rows: pd.DataFrame, marks: list[float], same: bool) -> dict[str, float | bool]:
    known = rows[~rows["status"].isin(OPEN)]
    judged = known if same else known[known["status"] == "proved"]
    ratio = np.sort(judged["ratio"].dropna().to_numpy(np.float64))
    found: dict[str, float | bool] = {
        name: float(known[name].mean()) if len(known) else np.nan
        for name in ("prior", "posterior", "lower", "upper")
    }
    found["comparable"] = same
    for share in _SHARES:  # of infinite ratios there is no average: take one that occurs
        at = int(np.ceil(share * ratio.size)) - 1
        found[f"ratio_{round(100 * share)}"] = float(ratio[at]) if ratio.size else np.nan
    found["ratio_max"] = float(ratio[-1]) if ratio.size else np.nan
    for mark in marks:
        found[f"at_least_{mark:g}"] = float((ratio >= mark).mean()) if ratio.size else np.nan
    return found
