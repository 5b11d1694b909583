"""What the report of an audit says in words: of every protection, and who is right how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.risk.audit import METHODS

EVERYBODY, UNLIKE = "everybody", "unlike their place"
READ = {
    "likelihood": "weighing all possible records",
    "as-true": "taking the tables as true",
    "swap-aware": "reckoning with how many records changed places",
    "working-error": "reckoning with how large the errors are",
    "reconstruction": "taking reconstructed records at their word",
    "majority": "saying what most people of the place are",
    "claims": "believing only what the tables, taken as true, prove",
}


def answers(summary: pd.DataFrame, size: pd.Series, config: AuditConfig) -> list[dict[str, Any]]:
    """Return for each protection who asks, and a line for each way to conclude, in words."""
    known = {one["name"]: one["known"] for one in config.adversaries}
    found = []
    for protection in size.index.tolist():
        rows = summary[summary["protection"] == protection]
        asked = []
        for name, mine in rows.groupby("adversary", sort=False):
            whole = mine[mine["group"] == EVERYBODY].to_dict(orient="records")
            unlike = mine[mine["group"] == UNLIKE].set_index("attack").to_dict(orient="index")
            before = {f"{row['right_prior']:.1%}" for row in whole}
            once = len(before) == 1
            who = _who(str(name), known[name])
            who += f" ({before.pop()} right before any release)" if once else ""
            told: dict[tuple[str, str], list[str]] = {}
            for row in whole:
                # Two readings of a release that come to the same are one line.
                method = row["attack"] if row["attack"] in METHODS else ""
                text = _right(row, before=not once) + _unlike(unlike.get(row["attack"]))
                told.setdefault((method, text), []).append(READ[row["attack"]])
            lines = [{"how": " or ".join(how), "right": right} for (_, right), how in told.items()]
            asked.append({"who": who, "lines": lines})
        found.append({"name": protection, "error": float(size[protection]), "asked": asked})
    return found


def choice_told(choice: pd.DataFrame, config: AuditConfig) -> dict[str, Any]:
    """Return what was looked for, what was found of each protection, and which costs least."""
    best = choice.loc[choice["cheapest"], "setting"].tolist()
    return {
        "goal": f"for {100.0 * (config.quantile or 0.0):.4g} % of people, the ratio of posterior "
        f"and belief without their own record shall be at most {config.target_ratio}, "
        f"for {config.against or 'the worst of all adversaries'}",
        "best": " and ".join(best),
        "told": choice["answer"].tolist(),
    }


def introduced(adversary: Mapping[str, Any]) -> dict[str, str]:
    """Return who an adversary is, in words."""
    share = float(adversary["neighbours"])
    knows = "what was published and where the person lives"
    if adversary["known"]:
        knows += f", and the person's {listed(adversary['known'])}"
    if share == 1.0:
        knows += ", and the whole records of everybody else in the place"
    elif share:
        knows += f", and the whole records of {share:.0%} of the others in the place"
    return {"name": str(adversary["name"]), "knows": knows}


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _who(name: str, known: Sequence[str]) -> str:
    if name == "knows-all-but-one":
        return "One who knows everybody else's record" + (
            f" and the {listed(known)} of the person" if known else ""
        )
    article = "An" if name[:1].lower() in "aeiou" else "A"
    return f"{article} {name}" + (f" who knows {listed(known)}" if known else "")


def _right(row: Mapping[Any, Any], *, before: bool) -> str:
    """Return how many people are guessed right; how many were before too, where nobody said it."""
    prior = f" ({row['right_prior']:.1%} before any release)" if before else ""
    return (
        f"{row['right_posterior']:.1%} right, {row['right_without']:.1%} without their own "
        f"records{prior}: {_points(row)}"
    )


def _unlike(row: Mapping[Any, Any] | None) -> str:
    if row is None:
        return ""
    return (
        f"; of the {row['targets']} unlike their place {row['right_posterior']:.1%} and "
        f"{row['right_without']:.1%}"
    )


def _points(row: Mapping[Any, Any]) -> str:
    """Return a difference in points and its interval."""
    own, low, high = (100.0 * row[name] for name in ("own", "own_lower", "own_upper"))
    if row["places"] < 2:
        return f"{own:+.1f} points (of one place alone, so without an interval)"
    if own == low == high:
        return f"{own:+.1f} points (the same in every place)"
    return f"{own:+.1f} points ({low:+.1f} to {high:+.1f})"


def counted(number: int, thing: str) -> str:
    """Return "1 thing" or "7 things"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
