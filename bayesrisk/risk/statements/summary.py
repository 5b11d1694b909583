"""What several attacks say of several protections, on the one scale that statements have."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk.statements.statements import (
    STATEMENT_COLUMNS,
    STATEMENT_STATUS,
    comparable_statements,
)

__all__ = ["statement_summary"]

_SHARES = (0.5, 0.9)


def statement_summary(
    statements: pd.DataFrame | Iterable[pd.DataFrame], *, thresholds: Sequence[float] = (2.0, 10.0)
) -> pd.DataFrame:
    r"""Return what each attack learns from each protection, statements of all attacks together.

    Parameters
    ----------
    statements : pandas.DataFrame or iterable of pandas.DataFrame
        Statements of any attacks, with ``STATEMENT_COLUMNS``.
    thresholds : sequence of float, default (2, 10)
        Ratios of posterior to prior, > 0: shares of statements that reach them are reported.

    Returns
    -------
    pandas.DataFrame
        A row for each ``attack`` and ``protection``, in the order in which they come:

        - ``statements``, ``targets`` (different ones), ``people`` (sum over statements), and how
          many statements are ``proved``, ``estimated``, ``unverified``, ``believed`` and
          ``unstated``;
        - over those with a posterior: mean ``prior`` and ``posterior`` (of proved and estimated
          ones the expected share that is true), with the means of its bounds, ``lower`` and
          ``upper``;
        - ``comparable``: whether all protections of the attack have the same statements about the
          same targets, as :func:`statements_about_people` gives;
        - ``ratio_50`` and ``ratio_90``, quantiles of the ratio (one of the ratios that occur), its
          largest value ``ratio_max``, and ``at_least_T`` for each threshold ``T``: over all
          statements with a posterior where they are comparable, over the proved ones elsewhere.

        Missing where no statement has a posterior, or none is proved.  A prior of 0 makes a ratio
        infinite.

    Raises
    ------
    ArgumentError
        If a threshold is out of range.
    ArgumentTypeError
        If ``statements`` are no frames.
    DataError
        If a column is missing, or a probability, ratio or status is out of range: the row (the
        first is 1) and the column are named.

    Notes
    -----
    Rows of different attacks are about different statements.  Estimated posteriors are rates of
    confirmation, pooled over whatever an attack happens to state under one protection.  Quantiles
    of their ratios would make a protection look worse than none if it hides the people about whom
    little is learned, so that they are not given where the statements differ.

    Examples
    --------
    >>> rows = pd.DataFrame({"attack": "claims", "protection": "identity", "target": ["1", "1"],
    ...     "statement": ["a", "b"], "people": [1, 3], "prior": [0.5, 0.05], "posterior": 1.0,
    ...     "lower": 1.0, "upper": 1.0, "ratio": [2.0, 20.0], "status": "proved"})
    >>> found = statement_summary(rows)
    >>> found[["statements", "people", "posterior", "ratio_50", "at_least_10"]].values.tolist()
    [[2.0, 4.0, 1.0, 2.0, 0.5]]
    """
    marks = [
        check.scalar(value, "thresholds", lower=0.0, bounds="(]")
        for value in check.items(thresholds, "thresholds")
    ]
    if len(set(marks)) < len(marks):
        raise ArgumentError(f"thresholds must differ, got {marks}")
    one = isinstance(statements, pd.DataFrame)
    frames: Sequence[Any] = [statements] if one else check.items(statements, "statements")
    if not frames:
        raise ArgumentError("statements must be at least one frame, got none")
    whole = pd.concat([_checked(frame) for frame in frames], ignore_index=True)
    same = comparable_statements(whole)
    lines = []
    for (attack, protection), rows in whole.groupby(["attack", "protection"], sort=False):
        about = {"attack": attack, "protection": protection}
        lines.append({**about, **_counts(rows), **_measures(rows, marks, same[str(attack)])})
    empty = {**_counts(whole), **_measures(whole, marks, True)}
    columns = None if lines else ["attack", "protection", *empty]
    return pd.DataFrame(lines, columns=columns)


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    check.frame(frame, "statements", STATEMENT_COLUMNS)
    for name in ("people", "prior", "posterior", "lower", "upper", "ratio"):
        try:
            frame[name].to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"statements: column {name!r} must hold numbers: {error}") from error
    unknown = ~frame["status"].isin(STATEMENT_STATUS).to_numpy()
    _refuse(frame, "status", unknown, f"one of {', '.join(STATEMENT_STATUS)}")
    has = (frame["status"] != "unverified").to_numpy()
    for name, needed in (("prior", np.ones(len(frame), np.bool_)), ("posterior", has)):
        values = frame[name].to_numpy(np.float64)
        _refuse(frame, name, needed & ~((values >= 0) & (values <= 1)), "in [0, 1]")
    ratio = frame["ratio"].to_numpy(np.float64)
    # A posterior of 0 over a prior of 0 has no ratio: the statement was and is impossible.
    nothing = (frame["prior"] == 0).to_numpy() & (frame["posterior"] == 0).to_numpy()
    _refuse(frame, "ratio", has & ~nothing & ~(ratio >= 0), ">= 0")
    return frame[list(STATEMENT_COLUMNS)]


def _refuse(frame: pd.DataFrame, name: str, bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"statements: row {row + 1}, column {name}: must be {what}, got "
            f"{frame[name].iloc[row]!r}"
        )


def _counts(rows: pd.DataFrame) -> dict[str, int]:
    found = {
        "statements": len(rows),
        "targets": int(rows["target"].nunique()),
        "people": int(rows["people"].sum()),
    }
    return found | {status: int((rows["status"] == status).sum()) for status in STATEMENT_STATUS}


def _measures(rows: pd.DataFrame, marks: list[float], same: bool) -> dict[str, float | bool]:
    known = rows[rows["status"] != "unverified"]
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
