"""What the report of an audit says of its checks, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from bayesrisk.experiments.audit.report_words import READ, counted

_MOST = 6  # lines of one check; the others are in the table
Row = Mapping[Any, Any]


def checks_told(checks: pd.DataFrame) -> dict[str, Any]:
    """Return a sentence and lines about the checks of each kind.

    Parameters
    ----------
    checks : pandas.DataFrame
        As :func:`~bayesrisk.risk.audit_checks` gives them, of one population.
    """
    kinds = {name: rows.to_dict(orient="records") for name, rows in checks.groupby("check")}
    told: dict[str, Any] = {}
    for name, tell in _TOLD.items():
        words, lines = tell(kinds.get(name, []))
        told[name] = {"words": words, "lines": [*lines[:_MOST], *_rest(lines)]}
    return told


def checks_said(checks: pd.DataFrame) -> str:
    """Return what checks came to, in few words.

    Calibration is apart from the others: some of it is lost in every audit, and by attacks that
    take reconstructed records or tables at their word much.
    """
    done = checks[checks["verdict"] != "no bound"]
    parts = []
    for what, rows in (
        ("calibration curves within their bands", done[done["check"] == "calibration"]),
        ("other checks as they should be", done[done["check"] != "calibration"]),
    ):
        number, kept = len(rows), int((rows["failed"] == 0).sum())
        if number:
            parts.append(f"{'all' if kept == number else f'{kept:,} of'} {number:,} {what}")
    return ", ".join(parts) or "nothing to check"


def _rest(lines: list[str]) -> Iterator[str]:
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more in the table"


def _calibration(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "Nobody has a posterior, so that there is nothing to hold against the truth.", []
    outside = [row for row in rows if row["failed"]]
    words = (
        f"Of {counted(len(rows), 'curve')} (one for each protection, adversary and way to "
        f"conclude), {len(rows) - len(outside)} within their bands."
    )
    worst = [_curve(row) for row in sorted(outside or rows, key=lambda row: -row["lost"])]
    return words, worst if outside else [f"most is lost by {worst[0]}"]


def _curve(row: Row) -> str:
    more = "more" if row["value"] > 0 else "less"
    where = "outside" if row["failed"] else "within"
    return (
        f"{_who(row)}, {READ[row['attack']]}: {where} the band; probability and truth are "
        f"{100 * row['lost']:.1f} points apart on average ({100 * row['lost_before']:.1f} before "
        f"any release), and {100 * abs(row['value']):.1f} points {more} is promised than is true"
    )


def _ordering(rows: Sequence[Row]) -> tuple[str, list[str]]:
    if not rows:
        return "No protection here can be made from another one: there is no order to keep.", []
    wrong = [row for row in rows if row["failed"]]
    words = (
        f"Of {counted(len(rows), 'difference')} between two protections, about the same people, "
        f"{len(wrong) or 'none'} below 0 by more than chance."
    )
    lines = [
        f"{row['protection']} less {row['against']}, {row['adversary']}: "
        f"{_signed(row['value'])} ({_signed(row['lower'])} to {_signed(row['upper'])})"
        for row in wrong or rows
    ]
    return words, lines


def _theory(rows: Sequence[Row]) -> tuple[str, list[str]]:
    bound = [row for row in rows if row["verdict"] != "no bound"]
    if not bound:
        return "No protection here has a bound for single statements.", []
    lines = []
    for row in bound:
        kept = f"{row['failed']} beyond it" if row["failed"] else "kept by all"
        lines.append(
            f"{_who(row)}: at most exp({row['value']:.2f}), where exp({row['bound']:.4g}) is the "
            f"bound: {kept}"
        )
    number = sum(int(row["compared"]) for row in bound)
    beyond = sum(int(row["failed"]) for row in bound)
    return f"Of {counted(number, 'statement')}, {beyond or 'none'} beyond the bound.", lines


def _agreement(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = []
    for against, said in _PROVERS.items():
        mine = [row for row in rows if row["against"] == against]
        compared, failed = (sum(int(row[n]) for row in mine) for n in ("compared", "failed"))
        if compared:
            lines.append(f"{said.format(f'{compared:,}', f'{failed:,}' if failed else 'none')}")
    if not lines:
        return "No posterior here is certain by calculation: there is nothing to compare.", []
    if not any(row["against"] == "claims" for row in rows):
        lines.append(
            "under true counts, --method posterior,claims holds them against the provers as well"
        )
    return "", lines


_PROVERS = {
    "truth": "of {} statements that are certain, {} contradicting what is true of the person",
    "claims": "of {} posteriors, {} contradicting what “claims” proves or leaves open",
    "reconstruction": "of {} posteriors, {} differing from the only records that fit the tables",
}
_TOLD = {
    "calibration": _calibration,
    "ordering": _ordering,
    "theory": _theory,
    "agreement": _agreement,
}


def _who(row: Row) -> str:
    return f"{row['protection']}, {row['adversary']}"


def _signed(value: float) -> str:
    return f"{value:+.3f}" if math.isfinite(value) else "no bound"
