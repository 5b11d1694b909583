"""The law of the risk ratio over the releases of two levels: enumerated, not averaged."""

from __future__ import annotations

from functools import partial

import numpy as np

from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.inference.two_levels.posterior import TwoLevelSettings
from bayesrisk.risk.count.distribution import RiskDistribution, evidence_ratio
from bayesrisk.risk.count.evidence import EvidenceLaw
from bayesrisk.risk.two_levels.averages import Question
from bayesrisk.risk.two_levels.releases import (
    MAX_CELLS,
    TRUNCATION,
    Truth,
    block_noise,
    check_size,
    grid_around,
)

_CERTAIN = 745.0  # evidence beyond is certainty in double precision


def _result(
    settings: Settings, truth: str, laws: tuple[tuple[float, EvidenceLaw], ...]
) -> RiskDistribution:
    p = settings.prior.item()
    mean = sum(w * law.average(partial(evidence_ratio, prior=p)) for w, law in laws)
    return RiskDistribution(p, truth, mean, TRUNCATION, laws)


def law_given_truth(question: Question) -> RiskDistribution:
    """Return the law over the releases of one truth."""
    if question.shape != ():
        raise ShapeError(f"a distribution belongs to one setting, got shape {question.shape}")
    settings, truths, _ = next(question.groups())
    law = _law(settings, truths, np.ones(1))
    block, group = (int(question.arrays[name]) for name in ("block_count", "group_count"))
    return _result(settings, f"block {block}, group {group}", ((1.0, law),))


def law_over_prior(raw: TwoLevelSettings) -> RiskDistribution:
    """Return the law over releases as the adversary expects them: P(x) P(N), N >= x."""
    settings = raw.checked
    if settings.published:
        model.warn_if_published(settings, stacklevel=4)
        raise ArgumentError(
            "group_count must be given with conditionals='as-published', which have no joint law"
        )
    if settings.group_prior.flat:
        raise ArgumentError("group_count must be given, or group_prior: the flat one is improper")
    sizes = {name: array.size for name, array in raw.arrays.items()}
    if max(sizes.values()) > 1:
        raise ShapeError(f"a distribution belongs to one setting, got sizes {sizes}")
    p, table = settings.prior.item(), settings.group_prior
    first = table.start - settings.known_count.item()
    mass = np.exp(table.log_pmf)
    laws = []
    for target, share in ((1, p), (0, 1.0 - p)):
        counts = np.flatnonzero((mass > 0.0) & (first + np.arange(mass.size) >= target))
        if counts.size:
            truths = [Truth(target, first + int(i)) for i in counts]
            weight = mass[counts]
            law = _law(settings, truths, weight / weight.sum())
            laws.append((share * float(weight.sum()), law))
    total = sum(weight for weight, _ in laws)
    return _result(settings, "prior", tuple((weight / total, law) for weight, law in laws))


def _law(settings: Settings, truths: list[Truth], weights: FloatArray) -> EvidenceLaw:
    """Return the law of the evidence, releases of group and siblings mixed over the truths.

    Given the block's count its own release is independent of the others, and its evidence adds
    to theirs; under the published conditionals nothing adds up, and all releases are listed.
    """
    around = grid_around(settings, truths)
    check_size(around)
    joint = np.zeros((around.group.size, around.siblings.size))
    for truth, weight in zip(truths, weights.tolist(), strict=True):
        part = around.part(truth, settings)
        joint[part] += weight * np.outer(around.group_pmf, around.siblings_pmf)
    i, j = np.nonzero(joint)
    n, total, mass = around.group[i].astype(float), around.siblings[j].astype(float), joint[i, j]
    noise, pmf = block_noise(settings)
    d = noise.astype(np.float64) + float(truths[0].target if settings.block else 0)
    if not settings.published:
        group_evidence = model.group_evidence(settings, n, total)
        group_evidence = np.clip(np.broadcast_to(group_evidence, n.shape), -_CERTAIN, _CERTAIN)
        alone = np.broadcast_to(model.block_evidence(settings, d), d.shape)
        return EvidenceLaw((group_evidence, mass), (alone, pmf))
    if n.size * d.size > MAX_CELLS:
        raise ArgumentError(
            f"conditionals='as-published' must leave at most {MAX_CELLS} releases to list, "
            f"got {n.size * d.size}"
        )
    posterior = model.target_probability(settings, d, n[:, None], total[:, None])
    p = settings.prior.item()
    with np.errstate(divide="ignore"):
        odds = np.log(posterior) - np.log1p(-posterior) - (np.log(p) - np.log1p(-p))
    values = np.clip(odds, -_CERTAIN, _CERTAIN).ravel()
    return EvidenceLaw((values, np.multiply.outer(mass, pmf).ravel()), (np.zeros(1), np.ones(1)))
