"""A plan in words, and its rules as a recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pandas as pd

from bayesrisk.mechanisms.rules import UNPUBLISHED, Rule, RulesByTable
from bayesrisk.risk.planning.limits import PROVEN, PlanLimits

_WHAT = {
    "recovered": ("count of 1 or 2 would be recovered", "counts of 1 or 2 would be recovered"),
    "sentences": ("count of 1 or 2 would be proved to be at least 1",
                  "counts of 1 or 2 would be proved to be at least 1"),
    "proved": ("person would be proved", "people would be proved"),
}  # fmt: skip


def recipe(rules: Mapping[str, Mapping[str, str]]) -> str:
    """Return rules as TOML, in the keys of a file of a release."""
    lines = [f"protection = {json.dumps(RulesByTable.name)}"]
    for level, tables in rules.items():
        lines += ["", f"[parameters.rules.{json.dumps(level)}]"]
        lines += [f"{json.dumps(name)} = {json.dumps(text)}" for name, text in tables.items()]
    return "\n".join(lines) + "\n"


def published_words(rules: Mapping[str, Mapping[str, str]]) -> str:
    """Return the rules of tables in words, tables with one rule together."""
    by_rule: dict[str, list[str]] = {}
    several = len(rules) > 1
    for level, tables in rules.items():
        for name, text in tables.items():
            by_rule.setdefault(text, []).append(f"{name} of {level}s" if several else name)
    texts = [t for t in by_rule if t != UNPUBLISHED] + [t for t in by_rule if t == UNPUBLISHED]
    return "; ".join(f"{', '.join(by_rule[text])} {Rule(text).words}" for text in texts)


def answer(
    rules: Mapping[str, Mapping[str, str]], frontier: pd.DataFrame, limits: PlanLimits
) -> str:
    """Return the first sentence of a plan with rules."""
    text = f"Publishing {published_words(rules)} keeps all limits"
    if {one for tables in rules.values() for one in tables.values()} == {UNPUBLISHED}:
        text = "Of all settings only publishing nothing keeps all limits"
    finer = frontier[(frontier["role"] == "finer") & (frontier["verdict"] != "safe")]
    if not finer.empty:
        text += f"; one step finer, {leak_words(finer.iloc[-1], limits)}"
    (error,) = frontier.loc[frontier["role"] == "chosen", "error"]
    return f"{text}. The mean error of a count is {error:.2g}."


def blocked(settings: int, blocking: Mapping[str, float]) -> str:
    """Return the first sentence of a plan without rules."""
    parts = [f"{name} would have to be {most:.4g}" for name, most in blocking.items()]
    reason = f": under the coarsest rules {'; '.join(parts)}" if parts else ""
    return f"None of the {settings:,} settings keeps all limits{reason}."


def leak_words(row: pd.Series, limits: PlanLimits) -> str:
    """Return the limit that a setting exceeds, in words."""
    for name in PROVEN[::-1]:
        most = getattr(limits, name)
        if most is not None and row[name] > most:
            number = int(row[name])
            return f"{number:,} {_WHAT[name][number > 1]}"
    if row["verdict"] == "gain":
        return f"the {row['decided_by']} would gain {row['gain']:.2g} points"
    if row["verdict"] == "doubled":
        return f"the truth about {row['doubled']:.0f} people would become twice as probable"
    return "it is not decided whether a limit is exceeded"
