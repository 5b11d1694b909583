"""Search for the weakest setting of each protection that meets a target risk ratio."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import bdtr, stdtrit

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.experiments.audit.populations import POPULATION, Protection, by_population
from bayesrisk.mechanisms.base import Dial
from bayesrisk.mechanisms.registry import has_budget, mechanism_dial
from bayesrisk.risk.audit import audit_targets, costs
from bayesrisk.risk.audit.measures import BEST_READINGS
from bayesrisk.risk.audit.place_beliefs import UNSTATED
from bayesrisk.risk.audit.reading import READINGS
from bayesrisk.risk.statements.statements import risk_ratio

_RANGE = ".."
_DIGITS = 3  # significant ones of a value that is tried
_MAX_STEPS = 20
_TAIL = 0.025
#: Fresh releases of a chosen setting, the share of them that must keep to the goal, and how many
#: settings are put to that proof, one after the other.
FRESH, PROVED, PROOFS = 20, 0.9, 3


@displayed
@dataclass(frozen=True)
class ProtectionGoal:
    """Upper bound on the information gained from people's own records.

    Attributes
    ----------
    target_ratio : float
        Largest accepted ratio of posterior to ``without``, for the true statement about a target;
        >= 1.
    quantile : float, default 0.99
        Share of the targets who must keep the bound, in (0, 1).
    against : str, optional
        Name of the adversary; by default the worst adversary of every setting.
    steps : int, default 6
        Bisections of the range, after its ends and its middle; in [0, 20].
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
    """A bisection over one parameter of a mechanism, from its strongest to its weakest value."""

    protection: Protection
    dial: Dial
    strongest: float
    weakest: float

    def setting(self, value: float) -> Protection:
        """Return the protection with its parameter set to ``value``."""
        plain: int | str = int(value) if self.dial.whole else _decimal(value)
        one = self.protection
        parameters = dict(one.parameters) | {self.dial.name: plain}
        return Protection(f"{self.stem}{plain}]", one.mechanism, parameters)

    @property
    def stem(self) -> str:
        """Common prefix of the names of all settings, without the range searched."""
        stated = f"{self.dial.name}={self.protection.parameters.get(self.dial.name)}"
        name = self.protection.name.replace(stated, "").replace(":,", ":").replace(",,", ",")
        return f"{name.strip(':, ')} [{self.dial.name}="

    def first(self) -> list[float]:
        """Return the values tried first: both ends, and their middle if there is one."""
        middle = self._middle(self.strongest, self.weakest)
        return [self.strongest, *([] if middle is None else [middle]), self.weakest]

    def following(self, met: Mapping[float, bool]) -> float | None:
        """Return the next value to try, or None when the search is over."""
        enough = self.chosen(met)
        if enough is None or enough == self.weakest:
            return None
        values = self.ordered(met)
        return self._middle(enough, values[values.index(enough) + 1])

    def chosen(self, met: Mapping[float, bool]) -> float | None:
        """Return the weakest value that met the goal together with all stronger ones, or None."""
        enough = list(itertools.takewhile(met.__getitem__, self.ordered(met)))
        return enough[-1] if enough else None

    def ordered(self, values: Iterable[float]) -> list[float]:
        """Return values sorted from the strongest to the weakest."""
        return sorted(values, reverse=self.strongest > self.weakest)

    def _middle(self, one: float, other: float) -> float | None:
        """Return the rounded geometric mean of two values, or None if it equals one of them."""
        mean = math.sqrt(one * other)
        value = float(round(mean)) if self.dial.whole else float(_decimal(mean))
        return value if min(one, other) < value < max(one, other) else None


def make_search(protection: Protection) -> Search | None:
    """Return the search of a protection, or None if its setting is fixed or has no dial."""
    dial = mechanism_dial(protection.mechanism)
    ranges = {k: v for k, v in protection.parameters.items() if is_range(v)}
    for name in ranges:
        if dial is None or name != dial.name:
            declared = "none" if dial is None else repr(dial.name)
            raise ArgumentError(
                f"a range A..B must be of the parameter that {protection.mechanism!r} declares for "
                f"a search, {declared}, got {quote(name)}"
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
    """Return whether a parameter is a range A..B."""
    return isinstance(value, str) and _RANGE in value


def refuse_ranges(protections: Iterable[Protection]) -> None:
    """Refuse settings that are ranges, where none is searched."""
    for one in protections:
        for name, value in one.parameters.items():
            if is_range(value):
                raise ArgumentError(
                    f"{name} of {one.name!r} must be one value where there is no target ratio, "
                    f"got {quote(value)}"
                )


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
            f"got {quote(text)}"
        )
    return low, high


def _decimal(value: float) -> str:
    """Return a value rounded to a few digits as text, so that it can be repeated exactly."""
    return np.format_float_positional(float(f"{value:.{_DIGITS}g}"), trim="-")


# Whether a setting keeps to a goal: its worst quantile in each of several releases.


def worst_quantiles(statements: pd.DataFrame, goal: ProtectionGoal, share: float) -> pd.DataFrame:
    """Return for each release of a setting the largest risk quantile of all adversaries.

    If a ``share`` of people below 1 was asked about, ``upper`` is an order statistic: the quantile
    of all people exceeds it with a probability of at most 1 in 40. Targets without a posterior
    count as infinite there. So do those whose tables the adversary's best model cannot explain: a
    belief that stays the prior is no protection.
    """
    targets = by_population(statements, audit_targets)
    if goal.against is not None:
        targets = targets[targets["adversary"] == goal.against]
    names = [name for name in (POPULATION, "attack", "adversary") if name in targets]
    best = targets["attack"].isin(BEST_READINGS)
    ignorant = ~best.groupby([targets[n] for n in names if n != "attack"]).transform("any")
    best |= ignorant & targets["attack"].isin(READINGS)
    silent = best & (targets["status"] == UNSTATED)
    targets = targets.assign(truth_posterior=targets["truth_posterior"].mask(silent))
    lines = []
    for key, rows in targets.groupby(["release", *names], sort=False):
        ratio = risk_ratio(*(rows[f"truth_{n}"].to_numpy(float) for n in ("posterior", "without")))
        finite, n = np.sort(ratio[~np.isnan(ratio)]), ratio.size
        whole = np.concatenate([finite, np.full(n - finite.size, np.inf)])
        index = int(np.ceil(goal.quantile * n)) - 1
        if share < 1.0:  # the k-th least of n exceeds the quantile unless Bin(n, q) >= k
            index = int(np.searchsorted(bdtr(np.arange(n + 1), n, goal.quantile), 1.0 - _TAIL))
        value = finite[int(np.ceil(goal.quantile * finite.size)) - 1] if finite.size else np.inf
        place = dict(zip(("release", *names), key, strict=True))
        upper = float(whole[index]) if index < n else np.inf
        line = {
            "targets": n,
            "undecided": n - finite.size,
            "ratio": float(value),
            "upper": upper,
            "randomised": bool(rows["randomised"].iloc[0]),
        }
        lines.append(place | line)
    frame = pd.DataFrame(lines)
    most = frame.groupby("release", sort=False)["upper"].transform("max")
    worst = frame[frame["upper"] == most].drop_duplicates("release")
    return worst.sort_values("release").reset_index(drop=True)


def setting_bound(worst: pd.DataFrame, goal: ProtectionGoal, *, tries: int) -> dict[str, Any]:
    r"""Return the bound on the risk of one more release, and whether it meets the goal.

    With the logarithms :math:`w_r` of the worst quantiles of m releases, it is
    :math:`\bar w + t_{m - 1} s \sqrt{1 + 1 / m}`, at 5 % for all ``tries`` of a search together.
    For a setting without other releases it is the quantile itself. It is infinite if m is 1.
    """
    value = np.log(worst["upper"].to_numpy())
    row = worst.iloc[int(worst["upper"].argmax())]
    m, bound = value.size, float(value.max())
    if np.isfinite(value).all() and worst["randomised"].any():
        spread = float(value.std(ddof=1)) if m > 1 else np.inf
        reach = float(stdtrit(max(m - 1, 1), 1.0 - 2.0 * _TAIL / tries))
        bound = float(value.mean()) + reach * spread * math.sqrt(1.0 + 1.0 / m)
    line = {
        n: row[n] for n in (POPULATION, "attack", "adversary", "targets", "undecided") if n in row
    }
    line |= {"releases": m, "ratio": float(np.exp(value.mean())), "upper": float(np.exp(bound))}
    return line | {"met": bool(line["upper"] <= goal.target_ratio)}


def chosen_settings(
    searches: Mapping[str, Search | None],
    tried: pd.DataFrame,
    proofs: Mapping[str, tuple[int, int]],
    goal: ProtectionGoal,
    *,
    follows: Callable[[str, str], bool] = lambda clear, faint: False,
) -> pd.DataFrame:
    """Return for each protection the chosen setting, with its confirmation and cost.

    It is the weakest setting that meets the goal, as all stronger tried settings do, also in fresh
    releases. ``searches`` are by the name of a protection. ``tried`` has a row for each setting,
    with its bound and cost. ``proofs`` are by the name of a setting: the numbers of fresh releases,
    and of those that met the goal. ``follows`` says whether the second of two settings can be made
    from the first. Such a setting is not said to tell more than the first, even if it misses a goal
    that the first meets.
    """
    lines = []
    for name, rows in tried.groupby("protection", sort=False):
        search = searches[str(name)]
        if search is not None:
            rows = rows.set_index("value", drop=False).loc[search.ordered(rows["value"])]
        records = rows.to_dict("records")
        met = list(itertools.takewhile(lambda row: bool(row["met"]), records))
        proved = [row for row in met if is_proved(proofs.get(row["setting"]))]
        chosen = proved[-1] if proved else (met or records)[0] | {"met": False}
        successes, trials = proofs.get(chosen["setting"], (0, 0))
        lines.append(chosen | {"tried": len(rows), "fresh_met": successes, "fresh": trials})
    choice = pd.DataFrame(lines)
    enough = choice["met"].to_numpy(np.bool_)
    least = choice.loc[enough, "cost"].min() if enough.any() else np.nan
    choice["cheapest"] = enough & (choice["cost"] == least).to_numpy(np.bool_)
    safe, answers = choice.loc[enough, "setting"].tolist(), []
    for row in choice.to_dict("records"):
        clear = [] if row["met"] else [name for name in safe if follows(name, row["setting"])]
        text = _sentence(row, searches[row["protection"]], goal)
        text += f"; by construction it can tell no more than {clear[0]}" if clear else ""
        answers.append(text)
    choice["answer"] = answers
    return choice


def is_proved(proof: tuple[int, int] | None) -> bool:
    """Return whether the goal was met in nine of ten fresh releases, or needs none."""
    return proof is not None and proof[0] >= PROVED * proof[1]


def _sentence(row: Mapping[Any, Any], search: Search | None, goal: ProtectionGoal) -> str:
    """Return the result for one protection as a sentence."""
    people = f"{100.0 * goal.quantile:.4g} % of people"
    question = ", ".join(row[name] for name in ("adversary", "attack", POPULATION) if name in row)
    upper = f"{row['upper']:.3g}" if np.isfinite(row["upper"]) else "no bound"
    ratio = f"{row['ratio']:.3g} (in one more release at most {upper}; {question})"
    check = f"{row['fresh_met']} of {row['fresh']} fresh releases met it"
    if row["met"]:
        weakest = search is not None and row["value"] == search.weakest
        end = ", the weakest that was to be tried," if weakest else ""
        text = f"{row['setting']}{end} meets the target: for {people} the ratio is {ratio}"
        text += f"; {check}" if row["fresh"] else ""
    elif search is None:
        text = f"{row['setting']}, as stated, does not meet the target: for {people} the ratio is "
        text += ratio + (f"; {check}" if row["fresh"] else "")
    else:
        text = (
            f"{row['protection']}: no setting that was tried, with {search.dial.name} from "
            f"{_decimal(search.strongest)} to {_decimal(search.weakest)}, meets the target; under "
            f"{row['setting']} the ratio for {people} is {ratio}"
        )
        text += f", and {check}" if row["fresh"] else ""
    return text + f"; error of a count {row['cost']:.3g}"


# The settings that are tried for a goal, one step after the other.

PROOF = 1000  # the first step that is a proof
Reader = Callable[[int, int], pd.DataFrame]


class Trial(NamedTuple):
    """A setting of a protection and its releases; ``value`` is that of a search, or None."""

    protection: Protection
    value: float | None
    releases: range


class Trials:
    """The settings tried to meet a goal, and the fresh releases that confirm them.

    Parameters
    ----------
    goal : ProtectionGoal
        Bound that the protections must keep.
    protections : sequence of Protection
        Protections as stated: with a range, or without a value for the dial.
    releases : int
        Releases of each setting of a randomised protection.
    randomised : callable
        Whether another release of a protection may differ.
    share : float
        Share of the people who are targets.

    Notes
    -----
    A step of a protection is a setting to try; the last ones confirm the setting that seems
    sufficient. The next setting depends on the statements of earlier steps, which ``read`` gives
    for the number of a protection and a step.
    """

    def __init__(
        self,
        goal: ProtectionGoal,
        protections: Sequence[Protection],
        *,
        releases: int,
        randomised: Callable[[Protection], bool],
        share: float,
    ) -> None:
        self._goal, self._protections, self._share = goal, protections, share
        self._releases, self._randomised = releases, randomised
        self._searches = [make_search(one) for one in protections]
        self._first = [[] if one is None else one.first() for one in self._searches]
        self._trials: dict[tuple[int, int], Trial | None] = {}
        self._bounds: dict[tuple[int, int], dict[str, Any]] = {}

    @property
    def stages(self) -> list[list[tuple[int, int]]]:
        """(Protection number, step) pairs of each stage."""
        numbers = range(len(self._protections))
        stages = [[(n, step) for n in numbers for step in range(max(len(self._first[n]), 1))]]
        searched = [n for n, search in enumerate(self._searches) if search is not None]
        for step in range(self._goal.steps if searched else 0):
            stages.append([(n, len(self._first[n]) + step) for n in searched])
        return [*stages, *([(n, PROOF + step) for n in numbers] for step in range(PROOFS))]

    def trial(self, number: int, step: int, read: Reader) -> Trial | None:
        """Return setting and releases of a step, or None if nothing is left to do."""
        key = number, step
        if key not in self._trials:
            self._trials[key] = self._proof(*key, read) if step >= PROOF else self._try(*key, read)
        return self._trials[key]

    def _try(self, number: int, step: int, read: Reader) -> Trial | None:
        """Return the setting to try in a step of the search, or None if it is over."""
        search, first = self._searches[number], self._first[number]
        if search is None:
            one = self._protections[number]
            return Trial(one, None, self._numbers(one))
        value: float | None = first[step] if step < len(first) else None
        if step >= len(first):
            value = search.following(self._met(number, range(step), read))
        if value is None:
            return None
        setting = search.setting(value)
        return Trial(setting, value, self._numbers(setting))

    def _numbers(self, setting: Protection) -> range:
        return range(self._releases if self._randomised(setting) else 1)

    def _met(self, number: int, steps: Iterable[int], read: Reader) -> dict[float, bool]:
        """Return for each value tried whether it met the goal; a fixed setting has key 0."""
        met = {}
        for step in steps:
            if (trial := self.trial(number, step, read)) is not None:
                met[trial.value or 0.0] = bool(self._bound(number, step, read)["met"])
        return met

    def _tries(self, number: int) -> range:
        """Return the steps in which settings of a protection are tried."""
        more = 0 if self._searches[number] is None else self._goal.steps
        return range(max(len(self._first[number]), 1) + more)

    def _bound(self, number: int, step: int, read: Reader) -> dict[str, Any]:
        key = number, step
        if key not in self._bounds:
            worst = worst_quantiles(read(*key), self._goal, self._share)
            tries = len(self._tries(number))
            self._bounds[key] = setting_bound(worst, self._goal, tries=tries)
        return self._bounds[key]

    def _proof(self, number: int, step: int, read: Reader) -> Trial | None:
        """Return fresh releases of the weakest setting that met the goal and is not refuted."""
        refuted = set()
        for earlier in range(PROOF, step):
            trial = self.trial(number, earlier, read)
            if trial is None or is_proved(self._fresh_met(number, earlier, read)):
                return None
            refuted.add(trial.value or 0.0)
        met = self._met(number, self._tries(number), read)
        search = self._searches[number]
        order = list(met) if search is None else search.ordered(met)
        left = [v for v in itertools.takewhile(met.__getitem__, order) if v not in refuted]
        trials = (self.trial(number, k, read) for k in self._tries(number))
        for one in trials:
            if one is not None and left and (one.value or 0.0) == left[-1]:
                first = one.releases.stop
                more = FRESH if self._randomised(one.protection) else 0
                return one._replace(releases=range(first, first + more))
        return None

    def _fresh_met(self, number: int, step: int, read: Reader) -> tuple[int, int]:
        """Return the numbers of fresh releases that met the goal, and of all fresh releases."""
        trial = self.trial(number, step, read)
        if trial is None or not len(trial.releases):
            return 0, 0
        worst = worst_quantiles(read(number, step), self._goal, self._share)["upper"]
        return int((worst <= self._goal.target_ratio).sum()), len(worst)

    def results(
        self,
        read: Reader,
        errors: pd.DataFrame,
        follows: Callable[[Protection, Protection], bool],
    ) -> tuple[pd.DataFrame, pd.DataFrame, list[Trial]]:
        """Return chosen settings, all settings tried, and the trials that results describe.

        These trials are the fresh releases that confirm a chosen setting, where there are any.
        ``follows`` says whether the second of two settings can be made from the first.
        """
        lines, proofs = [], {}
        cost = costs(errors).set_index("protection")[["error", "withheld"]]
        trials: dict[str, Trial] = {}
        for number, step in sorted(itertools.chain(*self.stages)):
            if (trial := self.trial(number, step, read)) is None:
                continue
            setting, search = trial.protection.name, self._searches[number]
            if step >= PROOF:
                proofs[setting] = self._fresh_met(number, step, read)
                trials[setting] = trial if len(trial.releases) else trials[setting]
                continue
            trials[setting] = trial
            names = {
                "protection": self._protections[number].name,
                "parameter": "" if search is None else search.dial.name,
                "value": trial.value,
                "setting": setting,
            }
            spent = dict(zip(("cost", "withheld"), cost.loc[setting], strict=True))
            lines.append(names | self._bound(number, step, read) | spent)
        settings = pd.DataFrame(lines)
        searches = {p.name: s for p, s in zip(self._protections, self._searches, strict=True)}

        def setting_follows(clear: str, faint: str) -> bool:
            return follows(trials[clear].protection, trials[faint].protection)

        choice = chosen_settings(searches, settings, proofs, self._goal, follows=setting_follows)
        return choice, settings, [trials[name] for name in choice["setting"]]
