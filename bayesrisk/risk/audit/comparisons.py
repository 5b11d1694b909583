"""Comparisons of protections: which one reveals less, as far as an audit can decide."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray
from bayesrisk.risk.audit.measures import (
    BEST_READINGS,
    KEYS,
    TEXTS,
    THREE,
    UNEXPLAINED,
    ByPeople,
    Sample,
    believed_targets,
    by_people,
    compared_targets,
    empty_frame,
    satterthwaite,
    share_asked,
    whole_columns,
)
from bayesrisk.risk.audit.place_beliefs import UNSTATED

#: Verdicts on a protection, held against another one; the last three are by construction.
LESS, MORE, UNTOLD = "less", "more", "cannot tell"
NO_MORE, NO_LESS, AS_MUCH = "no more", "no less", "as much"
#: What a verdict says of the other protection.
CONVERSE = {LESS: MORE, MORE: LESS, NO_MORE: NO_LESS, NO_LESS: NO_MORE}
#: Verdicts that tell an order: the first two were measured, the others need no data.
LOWER, HIGHER = (LESS, NO_MORE), (MORE, NO_LESS)
#: Values of which the mean difference is taken: the log score carries the order.
_MEASURED = ("score", "doubled", "proved")
_COMPARED = [
    "adversary", "protection", "against", "attack", "attack_against", "targets", "people",
    "releases", "scope", "factor", "lower", "upper", "p", "verdict", "needed", "needed_people",
    "explained",
    *(f"{name}{end}" for name in _MEASURED[1:] for end in ("", "_lower", "_upper")),
]  # fmt: skip
_HERE, _LIKE = "this population", "populations like it"
_MOST_RELEASES = 10_000  # more are not worth being proposed
_TIE = 1e-12


def compare(
    audit: pd.DataFrame,
    *,
    people: int | None = None,
    constructions: Collection[tuple[str, str]] = (),
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return, for each pair of protections, which reveals less and affects fewer people.

    Parameters
    ----------
    audit : pandas.DataFrame
        Statements of an audit, or its targets (:func:`audit_targets`).
    people : int, optional
        Size of the population from which the targets were drawn; by default the targets are all.
    constructions : collection of (str, str)
        Pairs of protections whose second can be made from the first. Give both orders for two that
        are equal in law.
    confidence : float, default 0.95
        Joint confidence of all verdicts, and of all intervals.

    Returns
    -------
    pandas.DataFrame
        A row for each adversary and pair of protections, in their order. The columns are those of
        ``comparisons.csv`` on the reference page of audits. ``less`` and ``more`` compare
        ``protection`` with ``against``. ``no more``, ``no less`` and ``as much`` follow from a
        construction, whatever was measured.

    Notes
    -----
    Differences are between the same people and between releases of the same number. Settings of one
    mechanism share the random numbers of a release. Protections are ordered by mean log scores; the
    factor is the ratio of remaining answers, ``protection`` over ``against``. With m releases and
    differences :math:`D_r` of means, the variance is :math:`s^2(D) / m`, plus that of drawing
    targets. For numbers of people it is at least that of one release with one person more.
    If neither protection is random, nothing varies in this population, and a difference of any size
    would be certain. Intervals and verdicts are then about populations like it, whose places vary.
    P-values are Student's. Holm's rule limits to one less the confidence the chance of any false
    verdict, and of any false difference in people doubled or proved. Intervals are Bonferroni's.

    ``explained`` is false for an adversary whose model explains a protection's tables for few
    people, or who held the truth impossible. Such an adversary ranks nothing: learning nothing, or
    something false, is then a failure of the model.

    Examples
    --------
    >>> targets = pd.DataFrame({
    ...     "protection": ["none"] * 2 + ["withheld"] * 2, "attack": "likelihood",
    ...     "adversary": "outsider", "release": 0, "randomised": False, "target": ["7", "8"] * 2,
    ...     "place": "1", "status": "calculated", "error": 0.0, "truth_prior": 0.25,
    ...     "truth_without": 0.25, "truth_posterior": [0.75, 1.0, 0.5, 0.75],
    ...     "certain_without": False, "certain_posterior": False, "false": False,
    ... })
    >>> found = compare(targets, constructions=[("none", "withheld")])
    >>> found[["protection", "against", "verdict"]].values.tolist()
    [['withheld', 'none', 'no more']]
    """
    level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    frame = check.frame(audit, "audit")
    targets = frame if "truth_posterior" in frame else believed_targets(frame, "audit")
    flags = ("certain_without", "certain_posterior", "false")
    numbers = ("release", "randomised", "error", *(f"truth_{name}" for name in THREE), *flags)
    frame = whole_columns(targets, "audit", (*KEYS, "place", "target", "status"), numbers)
    share = share_asked(frame, people)
    pairs = set(check.instances(constructions, tuple, "constructions"))
    rows = frame[compared_targets(frame) & frame["attack"].isin(BEST_READINGS).to_numpy()]
    lines = []
    for adversary, part in rows.groupby("adversary", sort=False):
        sides = {str(name): _Side(group) for name, group in part.groupby("protection", sort=False)}
        for against, protection in itertools.combinations(sides, 2):
            line = {"adversary": adversary, "protection": protection, "against": against}
            made_from = (against, protection) in pairs, (protection, against) in pairs
            line["verdict"] = {
                (True, True): AS_MUCH, (True, False): NO_MORE, (False, True): NO_LESS,
            }.get(made_from, "")  # fmt: skip
            lines.append(line | sides[protection].less(sides[against], share))
    return _verdicts(pd.DataFrame(lines), level) if lines else empty_frame(_COMPARED, TEXTS)


class _Side:
    """People under one protection, by an adversary's best reading."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.people: ByPeople = by_people(rows)
        self.attack = str(rows["attack"].iloc[0])
        score = self.people.score["posterior"]
        unstated = (rows["status"] == UNSTATED).mean()
        self.explained = bool(unstated <= UNEXPLAINED and np.isfinite(score).all())

    def _values(self, name: str, number: int) -> FloatArray:
        """Return the values of ``number`` releases; those of a fixed release are repeated."""
        people = self.people
        value = people.score["posterior"] if name == "score" else people.affected[name]
        if people.randomised:
            return value[:, :number]
        return np.broadcast_to(value, (len(value), number))

    def less(self, other: _Side, share: float) -> dict[str, Any]:
        """Return differences of means between sides, with variances and degrees of freedom."""
        sides = self.people, other.people
        random = any(one.randomised for one in sides)
        number = min(one.gain.shape[1] for one in sides if one.randomised or not random)
        explained = self.explained and other.explained
        sample = Sample(self.people.places, number, share, random)
        line: dict[str, Any] = {
            "attack": self.attack, "attack_against": other.attack,
            "targets": len(self.people.units), "releases": number,
            "people": round(len(self.people.units) / share),
            "scope": _HERE if random else _LIKE, "explained": explained,
        }  # fmt: skip
        for name in _MEASURED:
            if name == "score" and not explained:
                line |= {"score": np.nan, "score_chance": np.nan, "score_sampling": np.nan,
                         "score_freedom": 1.0}  # fmt: skip
                continue
            value = self._values(name, number) - other._values(name, number)
            parts = sample.variances(value, None)
            if not random:  # chains have errors, and places might be others
                chains = 0.0
                if name == "score":
                    chains = sum(sample.chains(one.error) for one in sides)
                parts = [sample.wide_variance(value), (chains, np.inf)]
            if random and name != "score":  # at least as if one release had one person more
                (_, (chance, freedom)), least = parts, 1.0 / (value.shape[0] * number) ** 2
                parts = [parts[0], (max(chance, least), freedom)]
            (sampling, _), (chance, _) = parts
            line |= {
                name: float(value.mean()), f"{name}_chance": chance, f"{name}_sampling": sampling,
                f"{name}_freedom": satterthwaite(parts),
            }  # fmt: skip
        return line


def _verdicts(frame: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return the rows with intervals, jointly adjusted p-values and verdicts."""
    alpha, open_ = 1.0 - confidence, (frame["verdict"] == "").to_numpy()
    names = [n for n in _MEASURED for _ in range(len(frame))]
    difference, chance, sampling, freedom = (
        np.concatenate([frame[f"{n}{end}"].to_numpy(float) for n in _MEASURED])
        for end in ("", "_chance", "_sampling", "_freedom")
    )
    error = np.sqrt(chance + sampling)
    with np.errstate(divide="ignore", invalid="ignore"):
        varies = (error > _TIE) & np.isfinite(error)
        p = np.where(varies, 2.0 * stdtr(freedom, -np.abs(difference) / error), 1.0)
    # What construction decides is no question to the data, and takes nothing from the others.
    hypotheses = np.concatenate([open_, *[np.ones(len(frame), np.bool_)] * (len(_MEASURED) - 1)])
    size = int(hypotheses.sum())
    # Holm: the k-th smallest of n times n - k + 1, and never less than one before it.
    order = np.flatnonzero(hypotheses)[np.argsort(p[hypotheses], kind="stable")]
    adjusted = np.full(p.size, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * (size - np.arange(size))), 1.0)
    reach = stdtrit(freedom, 1.0 - alpha / (2.0 * size)) * error
    reach = np.where(varies & np.isfinite(reach), reach, np.nan)
    ends = pd.DataFrame(
        {"name": names, "value": difference, "low": difference - reach, "high": difference + reach}
    )
    score = (ends["name"] == "score").to_numpy()
    sure = adjusted[score] <= alpha
    verdict = np.where(sure, np.where(difference[score] < 0.0, LESS, MORE), UNTOLD)
    # exp of the negative difference of log scores is the factor of remaining answers.
    lower, upper = np.exp(-ends["high"][score]), np.exp(-ends["low"][score])
    columns: dict[str, Any] = {
        "factor": np.exp(-difference[score]), "lower": lower.to_numpy(), "upper": upper.to_numpy(),
        "p": adjusted[score], "verdict": np.where(open_, verdict, frame["verdict"]),
    }  # fmt: skip
    untold = open_ & ~sure & frame["explained"].to_numpy(bool)
    releases, people = _needed(frame, alpha / max(size, 1))
    columns["needed"] = np.where(untold, releases, np.nan)
    columns["needed_people"] = np.where(untold, people, np.nan)
    people = frame["people"].to_numpy(float)
    for name in _MEASURED[1:]:
        part = ends[ends["name"] == name]
        columns[name] = people * part["value"].to_numpy()
        columns[f"{name}_lower"] = people * np.maximum(part["low"].to_numpy(), -1.0)
        columns[f"{name}_upper"] = people * np.minimum(part["high"].to_numpy(), 1.0)
    return frame.assign(**columns)[_COMPARED]


def _needed(frame: pd.DataFrame, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of releases and of targets that would decide each pair."""
    quantile = float(stdtrit(np.inf, 1.0 - alpha / 2.0))
    releases, targets = (frame[name].to_numpy(np.float64) for name in ("releases", "targets"))
    people, random = frame["people"].to_numpy(np.float64), (frame["scope"] == _HERE).to_numpy()
    chance, sampling = (frame[f"score_{n}"].to_numpy() for n in ("chance", "sampling"))
    # The difference in its standard errors is the quantile where d^2 = q^2 (v / m + a / n).
    wanted = (frame["score"].to_numpy() / quantile) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.maximum(np.ceil(chance * releases / (wanted - sampling)), releases + 1.0)
        # Of n of N people the variance is (1 - n / N) a / n: it ends where everybody is asked.
        unit = sampling / (1.0 / targets - 1.0 / people)
        sample = 1.0 / ((wanted - chance) / unit + 1.0 / people)
        most = np.where(random, sample, targets * sampling / (wanted - chance))
        wider = np.maximum(np.ceil(most), targets + 1.0)
    reachable = (wanted > sampling) & (more <= _MOST_RELEASES) & random
    possible = (wanted > chance) & (wider <= people) & (targets < people)
    return np.where(reachable, more, np.nan), np.where(possible, wider, np.nan)
