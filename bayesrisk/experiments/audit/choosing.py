"""Search for the weakest setting of each protection that keeps what is learned below a target."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.audit.populations import (
    POPULATION,
    Protection,
    by_population,
    has_budget,
)
from bayesrisk.mechanisms.base import Dial
from bayesrisk.mechanisms.registry import mechanism_dial
from bayesrisk.risk.audit import audit_quantiles, audit_targets
from bayesrisk.risk.statements.claims import ratio_of

_RANGE = ".."
_DIGITS = 3  # significant ones of a value that is tried
_MAX_STEPS = 20


@displayed
@dataclass(frozen=True)
class ProtectionGoal:
    """Bound on what may be learned from people's own records.

    Attributes
    ----------
    target_ratio : float
        Posterior over without, of the true statement about a target, that shall not be exceeded;
        >= 1.
    quantile : float, default 0.99
        Share of the targets for whom it shall not be exceeded, in (0, 1).
    against : str, optional
        Name of the adversary; by default the worst of all for every setting.
    steps : int, default 6
        Bisections of the range, after its ends and its middle were tried; in [0, 20].
    """

    target_ratio: float
    quantile: float = 0.99
    against: str | None = None
    steps: int = 6

    def __post_init__(self) -> None:
        ratio = check.scalar(self.target_ratio, "target_ratio", lower=1.0)
        object.__setattr__(self, "target_ratio", ratio)
        share = check.scalar(self.quantile, "quantile", lower=0.0, upper=1.0, bounds="()")
        object.__setattr__(self, "quantile", share)
        if self.against is not None:
            check.text(self.against, "against")
        check.integer(self.steps, "steps", lower=0, upper=_MAX_STEPS)


@dataclass(frozen=True)
class Search:
    """A bisection of the dial of a protection, from its strongest to its weakest value."""

    protection: Protection
    dial: Dial
    strongest: float
    weakest: float

    def setting(self, value: float) -> Protection:
        """Return the protection with a value."""
        plain: int | str = int(value) if self.dial.whole else _decimal(value)
        one = self.protection
        parameters = dict(one.parameters) | {self.dial.name: plain}
        return Protection(f"{self.stem}{plain}]", one.mechanism, parameters)

    @property
    def stem(self) -> str:
        """First part of the names of all settings, without the range that is searched."""
        stated = f"{self.dial.name}={self.protection.parameters.get(self.dial.name)}"
        name = self.protection.name.replace(stated, "").replace(":,", ":").replace(",,", ",")
        return f"{name.strip(':, ')} [{self.dial.name}="

    def first(self) -> list[float]:
        """Return the values that are tried first: the ends, and the middle if there is one."""
        middle = self._between(self.strongest, self.weakest)
        return [self.strongest, *([] if middle is None else [middle]), self.weakest]

    def following(self, met: Mapping[float, bool]) -> float | None:
        """Return the value that is tried next, None where nothing is left to try."""
        enough = self.chosen(met)
        if enough is None or enough == self.weakest:
            return None
        values = self.ordered(met)
        return self._between(enough, values[values.index(enough) + 1])

    def chosen(self, met: Mapping[float, bool]) -> float | None:
        """Return the weakest value that is enough, as are all stronger ones that were tried."""
        enough = list(itertools.takewhile(met.__getitem__, self.ordered(met)))
        return enough[-1] if enough else None

    def ordered(self, values: Iterable[float]) -> list[float]:
        """Return values from the strongest to the weakest."""
        return sorted(values, reverse=self.strongest > self.weakest)

    def _between(self, one: float, other: float) -> float | None:
        """Return the geometric mean, rounded; None where that is one of the two."""
        mean = math.sqrt(one * other)
        value = float(round(mean)) if self.dial.whole else float(_decimal(mean))
        return value if min(one, other) < value < max(one, other) else None


def search_of(protection: Protection) -> Search | None:
    """Return the search of a protection, None where its setting is stated or it has no dial."""
    dial = mechanism_dial(protection.mechanism)
    ranges = {k: v for k, v in protection.parameters.items() if is_range(v)}
    for name in ranges:
        if dial is None or name != dial.name:
            declared = "none" if dial is None else repr(dial.name)
            raise ArgumentError(
                f"a range A..B must be of the parameter that {protection.mechanism!r} declares for "
                f"a search, {declared}, got {shown(name)}"
            )
    if dial is None:
        return None
    if ranges:
        low, high = _ends(protection, dial)
        ends = (high, low) if dial.strongest > dial.weakest else (low, high)
        return Search(protection, dial, *ends)
    if dial.name in protection.parameters or has_budget(protection.parameters):
        return None
    return Search(protection, dial, dial.strongest, dial.weakest)


def is_range(value: object) -> bool:
    """Return True for a parameter that is a range A..B."""
    return isinstance(value, str) and _RANGE in value


def _ends(protection: Protection, dial: Dial) -> tuple[float, float]:
    text = protection.parameters[dial.name]
    try:
        low, high = (float(part) for part in text.split(_RANGE))
        good = 0.0 < low < high < math.inf
        good &= not dial.whole or (low.is_integer() and high.is_integer())
    except ValueError:
        good = False
    if not good:
        kind = "whole numbers" if dial.whole else "numbers"
        raise ArgumentError(
            f"{dial.name} of {protection.name!r} must be a range A..B of {kind}, 0 < A < B, "
            f"got {shown(text)}"
        )
    return low, high


def _decimal(value: float) -> str:
    """Return a value of a few digits as plain text, so that it is exact."""
    return np.format_float_positional(float(f"{value:.{_DIGITS}g}"), trim="-")


def worst_quantile(statements: pd.DataFrame, goal: ProtectionGoal) -> dict[str, Any]:
    """Return the quantile of one setting, of the worst adversary and population of the goal."""
    targets = _targets(statements, goal)
    # All adversaries at once, so that what holds for each holds for the worst of them.
    level = 1.0 - 0.05 / targets.groupby(_attackers(targets)).ngroups
    quantiles = by_population(
        targets, lambda rows: audit_quantiles(rows, quantile=goal.quantile, confidence=level)
    )
    worst = quantiles.iloc[int(quantiles["ratio"].fillna(np.inf).argmax())]
    line = {n: worst[n] for n in (*_attackers(quantiles), "targets", "undecided", "ratio")}
    line |= {"lower": quantiles["lower"].max(), "upper": quantiles["upper"].max()}
    # Without any posterior there is no ratio, and the goal is not met.
    return line | {"met": bool(line["ratio"] <= goal.target_ratio)}


def _targets(statements: pd.DataFrame, goal: ProtectionGoal) -> pd.DataFrame:
    """Return the targets of all adversaries that the goal is about."""
    targets = by_population(statements, audit_targets)
    return targets if goal.against is None else targets[targets["adversary"] == goal.against]


def _attackers(frame: pd.DataFrame) -> list[str]:
    """Return the columns that name adversary, reading and population."""
    return [name for name in (POPULATION, "attack", "adversary") if name in frame]


def tried_settings(
    settings: Sequence[tuple[Protection, Search | None, float | None, Protection]],
    statements: pd.DataFrame,
    errors: pd.DataFrame,
    goal: ProtectionGoal,
) -> pd.DataFrame:
    """Return a row for each setting that was tried, with its worst quantile and its cost.

    A setting is a protection, its search, and the value and the protection that were tried.
    """
    lines = []
    by_name = dict(list(statements.groupby("protection", sort=False)))
    of_tables = errors.groupby("protection", sort=False)
    cost, withheld = of_tables["mean_absolute_loss"].mean(), of_tables["withheld"].mean()
    for protection, search, value, setting in settings:
        name = setting.name
        line = {
            "protection": protection.name,
            "parameter": "" if search is None else search.dial.name,
            "value": value,
            "setting": name,
        }
        line |= worst_quantile(by_name[name], goal)
        lines.append(line | {"cost": cost[name], "withheld": withheld[name]})
    return pd.DataFrame(lines)


def chosen_settings(
    searches: Mapping[str, Search | None],
    tried: pd.DataFrame,
    statements: pd.DataFrame,
    goal: ProtectionGoal,
) -> pd.DataFrame:
    """Return a row for each protection: the chosen setting, whether it is enough, and its cost.

    ``searches`` are by the name of a protection, ``tried`` as :func:`tried_settings` gives them,
    ``statements`` those of all settings.
    """
    lines = []
    for name, rows in tried.groupby("protection", sort=False):
        search, chosen, monotone = searches[str(name)], rows.iloc[[0]], True
        if search is not None:
            rows = rows.set_index("value", drop=False).loc[search.ordered(rows["value"])]
            value = search.chosen(dict(zip(rows["value"], rows["met"].map(bool), strict=True)))
            chosen = rows.loc[[search.strongest if value is None else value]]
            monotone = _monotone(rows["setting"].tolist(), statements, goal)
        lines.append(chosen.iloc[0].to_dict() | {"tried": len(rows), "monotone": monotone})
    choice = pd.DataFrame(lines)
    choice["sure"] = choice["upper"] <= goal.target_ratio
    met = choice["met"].to_numpy(np.bool_)
    least = choice.loc[met, "cost"].min() if met.any() else np.nan
    choice["cheapest"] = met & (choice["cost"] == least)
    choice["answer"] = [
        _sentence(row, searches[row["protection"]], goal) for row in choice.to_dict("records")
    ]
    return choice


def _monotone(settings: Sequence[str], statements: pd.DataFrame, goal: ProtectionGoal) -> bool:
    """Test that no stronger setting lets significantly more targets exceed the ratio.

    Places vote: those with more such targets under the stronger setting against those with fewer,
    by a sign test at 5 % for all pairs of settings, adversaries and readings together.
    """
    targets = _targets(statements[statements["protection"].isin(settings)], goal)
    ratio = ratio_of(*(targets[f"truth_{n}"].to_numpy() for n in ("posterior", "without")))
    over = np.where(np.isnan(ratio), np.nan, ratio > goal.target_ratio)
    targets = targets.assign(over=over)
    pairs = list(itertools.combinations(settings, 2))
    groups = list(targets.groupby(_attackers(targets), sort=False))
    for _, rows in groups:
        table = rows.pivot(index=["place", "target"], columns="protection", values="over")
        for stronger, weaker in pairs:  # undecided under one of both: no change, as it is a NaN
            change = (table[stronger] - table[weaker]).groupby("place").sum()
            more, fewer = int((change > 0).sum()), int((change < 0).sum())
            level = 0.05 / (len(pairs) * len(groups))
            # P(Bin(more + fewer, 1/2) >= more), which is 1 where none are more.
            if more and betainc(more, fewer + 1, 0.5) < level:
                return False
    return True


def _sentence(row: Mapping[Any, Any], search: Search | None, goal: ProtectionGoal) -> str:
    """Return the answer about a protection, in words."""
    people = f"{100.0 * goal.quantile:.4g} % of people"
    who = ", ".join(row[name] for name in ("adversary", "attack", POPULATION) if name in row)
    upper = f"{row['upper']:.3g}"
    if np.isinf(row["upper"]) and np.isfinite(row["ratio"]):
        upper = "no bound"
    ratio = f"{row['ratio']:.3g} ({row['lower']:.3g} to {upper}; {who})"
    if search is None:
        done = "meets" if row["met"] else "does not meet"
        text = (
            f"{row['setting']}, as stated, {done} the target: for {people} the ratio is at most "
            f"{ratio}"
        )
    elif row["met"]:
        end = ", the weakest that was to be tried" if row["value"] == search.weakest else ""
        text = f"{row['setting']}{end} meets the target: for {people} the ratio is at most {ratio}"
    else:
        text = (
            f"{row['protection']}: no {search.dial.name} from {_decimal(search.strongest)} to "
            f"{_decimal(search.weakest)} meets the target; at {_decimal(search.strongest)} the "
            f"ratio for {people} is at most {ratio}"
        )
    if row["met"] and not row["sure"]:
        text += "; so few targets do not rule out a larger one"
    if not row["monotone"]:
        text += (
            "; but a stronger setting let more be learned than a weaker one, "
            "so that this search may mislead"
        )
    return text + f"; error of a count {row['cost']:.3g}"
