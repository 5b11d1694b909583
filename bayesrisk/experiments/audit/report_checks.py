"""What the report of an audit says of its checks, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from bayesrisk.experiments.audit.report_words import READ, counted

__all__ = ["checks_told"]

_MOST = 6  # lines of one check; the others are in the table
Row = Mapping[Any, Any]


def checks_told(checks: pd.DataFrame) -> dict[str, Any]:
    """Return how many checks are as they should be, and for each kind sentences and lines.

    Parameters
    ----------
    checks : pandas.DataFrame
        As :func:`~bayesrisk.risk.audit_checks` gives them, of one population.
    """
    kinds = {name: rows.to_dict(orient="records") for name, rows in checks.groupby("check")}
    parts = [
        {"name": name, "words": words, "lines": [*lines[:_MOST], *_rest(lines)]}
        for name, (words, lines) in (
            ("Calibration", _calibration(kinds.get("calibration", []))),
            ("Ordering", _ordering(kinds.get("ordering", []))),
            ("Theory", _theory(kinds.get("theory", []))),
            ("Agreement", _agreement(kinds.get("agreement", []))),
        )
    ]
    done = checks[checks["verdict"] != "no bound"]
    failed = int((done["failed"] > 0).sum())
    said = f"all {len(done)} as they should be"
    if failed:
        said = f"{failed} of {len(done)} not as they should be"
    return {"said": said, "parts": parts}


def _rest(lines: list[str]) -> Iterator[str]:
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more in the table"


def _calibration(rows: list[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "Nobody has a posterior, so that there is nothing to hold against the truth.", []
    outside = [row for row in rows if row["failed"]]
    words = (
        "Statements that are given a probability q should be true a share q of the time. "
        f"Of {counted(len(rows), 'curve')} (one for each protection, adversary and way to "
        f"conclude), {len(rows) - len(outside)} lie within the band that has room for chance along "
        "the whole curve; of twenty good ones about one would not. This is sure to hold only for "
        "records that are drawn from what the adversary believed before. These are not, and "
        "neither are attacks made to be calibrated that take reconstructed records or tables at "
        "their word: that some calibration is lost is to be expected, and how much is what counts."
    )
    worst = sorted(rows, key=lambda row: -row["lost"])
    told = sorted(outside, key=lambda row: -row["lost"]) or worst[:1]
    return words, [_curve(row) for row in told]


def _curve(row: Row) -> str:
    more = "more" if row["value"] > 0 else "less"
    where = "outside" if row["failed"] else "within"
    return (
        f"{_who(row)}, {READ[row['attack']]}: {where} the band; probability and truth are "
        f"{100 * row['lost']:.1f} points apart on average ({100 * row['lost_before']:.1f} before "
        f"any release), and {100 * abs(row['value']):.1f} points {more} is promised than is true"
    )


def _ordering(rows: list[Row]) -> tuple[str, list[str]]:
    if not rows:
        return (
            "No protection of this audit can be made from another one (by more noise of the same "
            "kind, or from true counts), so that there is no order to be kept.",
            [],
        )
    wrong = [row for row in rows if row["failed"]]
    found = f"in {len(wrong)} the difference is" if wrong else "in none the difference is"
    words = (
        "What can be made from a release, such as noise from true counts or more noise from less, "
        "says no more than the release: the mean log score of the true statement is no higher. "
        f"Of {counted(len(rows), 'pair')} of protections, about the same people, {found} the "
        "other way by more than chance (intervals are at 95 % for all pairs together)."
    )
    lines = [
        f"{row['adversary'].capitalize()}, {row['protection']} less {row['against']}: "
        f"{_signed(row['value'])} ({_signed(row['lower'])} to {_signed(row['upper'])})"
        for row in wrong or rows
    ]
    return words, lines


def _theory(rows: list[Row]) -> tuple[str, list[str]]:
    if not rows:
        return (
            "Only noise keeps a promise of differential privacy, and no protection of this audit "
            "adds noise alone.",
            [],
        )
    words = (
        "Noise of pure differential privacy (discrete Laplace) bounds how far the odds of every "
        "statement after the release are from those without the person's own record: by a factor "
        "of exp(E), where E is epsilon of one record in exchange for another, for an adversary who "
        "knows everybody else, and of exp(2E) for others. Gaussian noise bounds no single "
        "statement, so that there is nothing to hold it against."
    )
    lines = []
    for row in rows:
        if row["verdict"] == "no bound":
            lines.append(f"{row['protection']}: no bound of this kind")
            continue
        kept = f"{row['failed']} of them beyond it" if row["failed"] else "kept by all"
        lines.append(
            f"{_who(row)}: by a factor of {_factor(row['value'])} at most, where "
            f"{_factor(row['bound'])} is the bound, of {counted(row['compared'], 'statement')}: "
            f"{kept}"
        )
    return words, lines


def _agreement(rows: list[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "No posterior of this audit is 0 or 1 by calculation: nothing is certain.", []
    words = (
        "A posterior that is calculated to be 0 or 1 is a proof: none may be false of the people "
        "themselves, and all must be where the provers say so."
    )
    lines = []
    for against, said in (
        ("truth", "certain statements are not true"),
        ("claims", "posteriors disagree with what <claims> proves or leaves open"),
        ("reconstruction", "posteriors disagree with records that alone fit the tables"),
    ):
        mine = [row for row in rows if row["against"] == against]
        compared, failed = (sum(int(row[n]) for row in mine) for n in ("compared", "failed"))
        if compared:
            lines.append(f"{failed} of {compared:,} {said.replace('<claims>', '“claims”')}")
    if not any(row["against"] == "claims" for row in rows):
        lines.append("with --method posterior,claims they are held against the provers as well")
    return words, lines


def _who(row: Row) -> str:
    return f"{row['protection']}, {row['adversary']}"


def _signed(value: float) -> str:
    return f"{value:+.3f}" if math.isfinite(value) else "no bound"


def _factor(log: float) -> str:
    return f"{math.exp(log):.3g}" if log < 100.0 else f"exp({log:.0f})"
