"""Gains of adversaries from people's own records under a setting, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk.inference.microdata.system import TooLargeError
from bayesrisk.mechanisms.registry import usual_roles
from bayesrisk.mechanisms.rules import UNPUBLISHED, RulesByTable
from bayesrisk.risk.audit import Adversary, AuditQuestion, audit_targets
from bayesrisk.risk.audit.population import AuditedPopulation
from bayesrisk.risk.intervals import number_interval
from bayesrisk.risk.planning.limits import PlanLimits
from bayesrisk.tables import Microdata, Workload

#: People who are asked about where there are more; confidence, and its normal quantile.
MOST, _LEVEL, _Z = 500, 0.95, 1.959963984540054
_DOUBLED = 2.0


class Learned(NamedTuple):
    """Gain of an adversary in points, with half the width of its interval, and people doubled.

    Where some people were asked, ``doubled`` is the largest number that the sample leaves (95 %).
    """

    adversary: str
    gain: float
    reach: float
    doubled: float


def usual_adversaries(workload: Workload) -> tuple[tuple[Adversary, ...], tuple[str, ...]]:
    """Return an outsider and a linker, and what is to be learned, as ``bayesrisk audit`` has it."""
    background, stated = usual_roles(workload.schema)
    people = [Adversary.named("outsider", known=())]
    people += [Adversary.named("linker", known=background)] if background else []
    return tuple(people), tuple(stated)


class Beliefs:
    """The beliefs of adversaries under settings, each asked for once.

    People whose belief was not decided count as if their truth were certain.
    """

    def __init__(
        self, data: Microdata, workload: Workload, adversaries: Sequence[Adversary],
        stated: Sequence[str], *, seed: int,
    ) -> None:  # fmt: skip
        self.workload, self.adversaries = workload, tuple(adversaries)
        self._populations = {
            one.name: AuditedPopulation(
                data, AuditQuestion(workload, tuple(stated), (one,)), seed=seed
            )
            for one in self.adversaries
        }
        self._answers: dict[tuple[str, str], Learned] = {}
        self._order = [one.name for one in self.adversaries]

    def learned(self, rules: Mapping[str, Mapping[str, str]], adversary: str) -> Learned:
        """Return the gain of an adversary under rules by level and table."""
        key = repr(rules), adversary
        if key not in self._answers:
            self._answers[key] = self._measure(rules, adversary)
        return self._answers[key]

    def _measure(self, rules: Mapping[str, Mapping[str, str]], adversary: str) -> Learned:
        if {text for one in rules.values() for text in one.values()} == {UNPUBLISHED}:
            return Learned(adversary, 0.0, 0.0, 0.0)
        population = self._populations[adversary]
        mechanism = RulesByTable(rules=rules)
        number = len(population.records)
        rows = population.targets(None if number <= MOST else MOST)
        release = population.release(mechanism.name, 0, mechanism)
        try:
            frame = population.statements("plan", mechanism.name, 0, mechanism, release, rows)
        except TooLargeError:  # no engine takes such tables: nobody's belief is decided
            return Learned(adversary, 100.0, 0.0, float(number))
        targets = audit_targets(frame)
        after = targets["truth_posterior"].fillna(1.0).to_numpy(float)
        without = targets["truth_without"].fillna(0.0).to_numpy(float)
        gain, share = 100.0 * (after - without), rows.size / number
        spread = float(gain.std(ddof=1)) if gain.size > 1 else 0.0
        reach = _Z * spread * np.sqrt(max(1.0 - share, 0.0) / gain.size)
        if share < 1.0 and spread == 0.0:
            # All who were asked agree: as many others may gain all as the sample can have missed.
            unseen = number_interval((0, 0), rows.size, number, confidence=_LEVEL)[1] / number
            reach = unseen * (100.0 - gain.mean())
        hits = int((after >= _DOUBLED * without).sum())
        doubled = number_interval((hits, hits), rows.size, number, confidence=_LEVEL)[1]
        return Learned(adversary, float(gain.mean()), float(reach), float(doubled))

    def exceeded(self, rules: Mapping[str, Mapping[str, str]], limits: PlanLimits) -> str | None:
        """Return the limit that a setting exceeds, the adversary first who exceeded one last."""
        for name in list(self._order):
            one = self.learned(rules, name)
            broken = {
                "gain": limits.gain is not None and one.gain + one.reach > limits.gain,
                "doubled": limits.doubled is not None and one.doubled > limits.doubled,
            }
            for limit, is_broken in broken.items():
                if is_broken:
                    self._order.insert(0, self._order.pop(self._order.index(name)))
                    return limit
        return None

    def worst(self, rules: Mapping[str, Mapping[str, str]]) -> tuple[Learned, Learned]:
        """Return the gain of who gains most, and that of who doubles most people."""
        every = [self.learned(rules, one.name) for one in self.adversaries]
        return max(every, key=lambda one: one.gain), max(every, key=lambda one: one.doubled)
