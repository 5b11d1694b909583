"""The columns that statements of every attack have, and the check that they hold."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError

TEXTS = ("attack", "adversary", "protection", "target", "statement")
REQUIRED = (*TEXTS, "people", "prior", "posterior", "status")
#: All columns, in their order; what the attack adds of its own comes after them.
COLUMNS = (
    *TEXTS,
    "people",
    "prior",
    "without",
    "posterior",
    "lower",
    "upper",
    "ratio",
    "correct",
    "status",
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


def ratio_of(posterior: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return posterior over prior: infinite for a prior of 0, missing for 0 over 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = posterior / prior
    return found


def checked(statements: pd.DataFrame) -> pd.DataFrame:
    """Return statements with all columns in their order and types, every value in range."""
    check.frame(statements, "frame of statements", REQUIRED)
    if not statements.columns.is_unique:
        twice = statements.columns[statements.columns.duplicated()][0]
        raise DataError(f"statements: column {shown(twice)}: must be there once")
    frame = statements.reset_index(drop=True)
    found: dict[str, object] = {name: frame[name].astype("str") for name in TEXTS}
    found["people"] = _people(frame)
    for name in ("prior", "posterior", "without", "lower", "upper", "ratio"):
        found[name] = _numbers(frame, name)
    prior, posterior = np.asarray(found["prior"]), np.asarray(found["posterior"])
    for name in ("lower", "upper"):
        if name not in frame:
            found[name] = posterior
    if "ratio" not in frame:
        found["ratio"] = ratio_of(posterior, prior)
    found["correct"] = _correct(frame)
    found["status"] = frame["status"].astype("str")
    whole = pd.DataFrame({name: found[name] for name in COLUMNS}, index=frame.index)
    _check_ranges(whole)
    return pd.concat([whole, frame.drop(columns=[c for c in COLUMNS if c in frame])], axis=1)


def _check_ranges(frame: pd.DataFrame) -> None:
    _refuse(
        frame, "status", ~frame["status"].isin(STATUS).to_numpy(), f"one of {', '.join(STATUS)}"
    )
    _refuse(frame, "people", frame["people"].to_numpy() < 0, ">= 0")
    has = ~frame["status"].isin(OPEN).to_numpy()
    everywhere = np.ones(len(frame), np.bool_)
    value = {name: frame[name].to_numpy(np.float64) for name in COLUMNS[6:12]}
    for name, needed in (
        ("prior", everywhere),
        ("without", ~np.isnan(value["without"])),
        ("posterior", has),
        ("lower", has),
        ("upper", has),
    ):
        _refuse(frame, name, needed & ~((value[name] >= 0) & (value[name] <= 1)), "in [0, 1]")
    for name in ("posterior", "ratio"):
        wrong = ~has & ~np.isnan(value[name])
        _refuse(frame, name, wrong, "missing where the status is unverified or undecided")
    low = has & (value["lower"] > value["posterior"] + _ROUNDING)
    _refuse(frame, "lower", low, "at most the posterior")
    high = has & (value["upper"] < value["posterior"] - _ROUNDING)
    _refuse(frame, "upper", high, "at least the posterior")
    # 0/0 is no ratio: what was impossible before and is now.
    nothing = (value["prior"] == 0) & (value["posterior"] == 0)
    _refuse(frame, "ratio", has & ~nothing & ~(value["ratio"] >= 0), ">= 0")
    expected = ratio_of(value["posterior"], value["prior"])
    same = np.isclose(value["ratio"], expected, rtol=_ROUNDING, atol=0.0)
    _refuse(frame, "ratio", has & ~nothing & ~same, "the posterior over the prior")


def _numbers(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    if name not in frame:
        return np.full(len(frame), np.nan)
    try:
        found: NDArray[np.float64] = frame[name].to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"statements: column {name!r} must hold numbers: {error}") from error
    return found


def _people(frame: pd.DataFrame) -> NDArray[np.int64]:
    values = _numbers(frame, "people")
    _refuse(frame, "people", ~((values == np.floor(values)) & (np.abs(values) < 2**53)), "whole")
    return values.astype(np.int64)


def _correct(frame: pd.DataFrame) -> pd.Series:
    """Return whether statements are true, missing where nobody has looked."""
    if "correct" not in frame:
        return pd.Series(pd.NA, index=frame.index, dtype="boolean")
    try:
        return frame["correct"].astype("boolean")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"statements: column 'correct' must be true, false or missing: {error}"
        ) from error


def _refuse(frame: pd.DataFrame, name: str, bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        value = frame[name].iloc[row]
        value = value.item() if isinstance(value, np.generic) else value
        raise DataError(
            f"statements: row {row + 1}, column {name}: must be {what}, got {shown(value)}"
        )
