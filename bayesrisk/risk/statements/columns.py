"""Columns that statements of every attack have, and the check that they hold."""

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError, quote

TEXTS = ("attack", "adversary", "protection", "target", "statement")
REQUIRED = (*TEXTS, "people", "prior", "posterior", "status")
#: All columns, in their order; what the attack adds of its own comes after them.
COLUMNS = (
    *(*TEXTS, "people", "prior", "without", "posterior"),
    *("lower", "upper", "ratio", "correct", "status"),
)
#: What a posterior is: proved, an estimate, not there; of statements about given people also the
#: belief of who takes records at their word, or the prior because nothing was stated; of the law
#: of the records calculated, or sampled by chains, or undecided because they do not agree.
STATUS = (
    *("proved", "estimated", "unverified", "believed", "unstated"),
    *("calculated", "sampled", "undecided"),
)
#: Statements without a posterior.
OPEN = ("unverified", "undecided")
#: Bounds and ratios that were stored in other forms of the same number.
_ROUNDING = 1e-9


def risk_ratio(posterior: FloatArray, prior: FloatArray) -> FloatArray:
    """Return posterior over prior: infinite for a prior of 0, missing for 0 over 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(posterior / prior, np.float64)


def checked(statements: pd.DataFrame) -> pd.DataFrame:
    """Return statements with all columns in their order and types, every value in range."""
    statements = check.frame(statements, "frame of statements", REQUIRED)
    if not statements.columns.is_unique:
        twice = statements.columns[statements.columns.duplicated()][0]
        raise DataError(f"statements: column {quote(twice)}: must be there once")
    frame = statements.reset_index(drop=True)
    columns: dict[str, object] = {name: frame[name].astype("str") for name in TEXTS}
    columns["people"] = _people(frame)
    for name in ("prior", "posterior", "without", "lower", "upper", "ratio"):
        columns[name] = numbers(frame, name)
    prior, posterior = np.asarray(columns["prior"]), np.asarray(columns["posterior"])
    for name in ("lower", "upper"):
        if name not in frame:
            columns[name] = posterior
    if "ratio" not in frame:
        columns["ratio"] = risk_ratio(posterior, prior)
    columns["correct"] = _correct(frame)
    columns["status"] = frame["status"].astype("str")
    whole = pd.DataFrame({name: columns[name] for name in COLUMNS}, index=frame.index)
    _check_ranges(whole)
    return pd.concat([whole, frame.drop(columns=[c for c in COLUMNS if c in frame])], axis=1)


def _check_ranges(frame: pd.DataFrame) -> None:
    _refuse(
        frame, "status", ~frame["status"].isin(STATUS).to_numpy(), f"one of {', '.join(STATUS)}"
    )
    _refuse(frame, "people", frame["people"].to_numpy() < 0, ">= 0")
    decided = ~frame["status"].isin(OPEN).to_numpy()
    everywhere = np.ones(len(frame), np.bool_)
    value = {name: frame[name].to_numpy(np.float64) for name in COLUMNS[6:12]}
    for name, needed in (
        ("prior", everywhere),
        ("without", ~np.isnan(value["without"])),
        ("posterior", decided),
        ("lower", decided),
        ("upper", decided),
    ):
        _refuse(frame, name, needed & ~((value[name] >= 0) & (value[name] <= 1)), "in [0, 1]")
    for name in ("posterior", "ratio"):
        wrong = ~decided & ~np.isnan(value[name])
        _refuse(frame, name, wrong, "missing where the status is unverified or undecided")
    low = decided & (value["lower"] > value["posterior"] + _ROUNDING)
    _refuse(frame, "lower", low, "at most the posterior")
    high = decided & (value["upper"] < value["posterior"] - _ROUNDING)
    _refuse(frame, "upper", high, "at least the posterior")
    # 0/0 is no ratio: what was impossible before and is now.
    nothing = (value["prior"] == 0) & (value["posterior"] == 0)
    _refuse(frame, "ratio", decided & ~nothing & ~(value["ratio"] >= 0), ">= 0")
    expected = risk_ratio(value["posterior"], value["prior"])
    equal = np.isclose(value["ratio"], expected, rtol=_ROUNDING, atol=0.0)
    _refuse(frame, "ratio", decided & ~nothing & ~equal, "the posterior over the prior")


def numbers(frame: pd.DataFrame, name: str, source: str = "statements") -> FloatArray:
    """Return a column of a frame as numbers, missing where there is no such column."""
    if name not in frame:
        return np.full(len(frame), np.nan)
    try:
        return np.asarray(frame[name].to_numpy(np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{source}: column {name!r} must hold numbers: {error}") from error


def _people(frame: pd.DataFrame) -> IntArray:
    values = numbers(frame, "people")
    _refuse(frame, "people", ~((values == np.floor(values)) & (np.abs(values) < 2**53)), "whole")
    return values.astype(np.int64)


def _correct(frame: pd.DataFrame) -> pd.Series:
    if "correct" not in frame:
        return pd.Series(pd.NA, index=frame.index, dtype="boolean")
    try:
        return frame["correct"].astype("boolean")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"statements: column 'correct' must be true, false or missing: {error}"
        ) from error


def _refuse(frame: pd.DataFrame, name: str, bad: BoolArray, rule: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        value = frame[name].iloc[row]
        value = value.item() if isinstance(value, np.generic) else value
        raise DataError(
            f"statements: row {row + 1}, column {name}: must be {rule}, got {quote(value)}"
        )
