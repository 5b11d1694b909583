"""The law of the risk ratio over the releases of two levels: enumerated, not averaged."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._types import FloatArray
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.settings import TwoLevelSettings
from bayesrisk.risk.count.distribution import RiskDistribution, ratio_of
from bayesrisk.risk.count.evidence import EvidenceLaw
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import read_question

_SILENCE = (np.zeros(1), np.ones(1))
# Evidence beyond this is certainty in double precision.
_CERTAIN = 745.0


def distribution_of(
    known: TwoLevelSettings, group_count: ArrayLike | None, block_count: ArrayLike | None
) -> RiskDistribution:
    """Return the law of the ratio given the truth, or over what the adversary believes."""
    if group_count is None:
        if block_count is not None:
            raise ArgumentError("block_count needs a group_count, got none")
        return _over_prior(known)
    question = read_question(known, group_count, block_count, draws=("exact", None, None))
    if question.shape != ():
        raise ShapeError(f"a distribution belongs to one setting, got shape {question.shape}")
    settings, truths, _ = next(question.groups())
    law = _law(settings, [truths[0]], np.ones(1))
    block, group = (int(question.arrays[name]) for name in ("block_count", "group_count"))
    return _result(settings, f"block {block}, group {group}", ((1.0, law),))


def _result(
    settings: model.Settings, given: str, laws: tuple[tuple[float, EvidenceLaw], ...]
) -> RiskDistribution:
    p = settings.prior.item()
    mean = sum(w * law.average(partial(ratio_of, prior=p)) for w, law in laws)
    return RiskDistribution(p, given, mean, grid.TRUNCATION, laws)


def _over_prior(known: TwoLevelSettings) -> RiskDistribution:
    """Return the law over releases as the adversary expects them: P(x) P(N), N >= x."""
    settings = known.checked
    if settings.published:
        raise ArgumentError(
            "group_count must be given with conditionals='as-published', which have no joint law"
        )
    if settings.group_prior.flat:
        raise ArgumentError("group_count must be given, or group_prior: the flat one is improper")
    sizes = {name: array.size for name, array in known.arrays.items()}
    if max(sizes.values()) > 1:
        raise ShapeError(f"a distribution belongs to one setting, got sizes {sizes}")
    p, table = settings.prior.item(), settings.group_prior
    first = table.start - settings.known_count.item()
    mass = np.exp(table.log_pmf)
    laws = []
    for target, share in ((1, p), (0, 1.0 - p)):
        counts = np.flatnonzero((mass > 0.0) & (first + np.arange(mass.size) >= target))
        if counts.size:
            truths = [grid.Truth(target, first + int(i)) for i in counts]
            weight = mass[counts]
            law = _law(settings, truths, weight / weight.sum())
            laws.append((share * float(weight.sum()), law))
    total = sum(weight for weight, _ in laws)
    return _result(settings, "prior", tuple((weight / total, law) for weight, law in laws))


def _law(settings: model.Settings, truths: list[grid.Truth], weights: FloatArray) -> EvidenceLaw:
    """Return the law of the evidence, releases of group and siblings mixed over the truths.

    Given the block's count its own release is independent of the others, and its evidence adds
    to theirs; under the published conditionals nothing adds up, and all releases are listed.
    """
    silent = bool(settings.group == 0.0), bool(settings.block == 0.0)
    around = grid.around(settings, truths)
    grid.check_size(around)
    joint = np.zeros((around.group.size, around.siblings.size))
    for truth, weight in zip(truths, weights.tolist(), strict=True):
        part = around.part(truth, *silent)
        joint[part] += weight * np.outer(around.group_pmf, around.siblings_pmf)
    i, j = np.nonzero(joint)
    n, total, mass = around.group[i].astype(float), around.siblings[j].astype(float), joint[i, j]
    noise, pmf = grid.block_noise(settings)
    d = noise.astype(np.float64) + float(truths[0].target if settings.block else 0)
    if not settings.published:
        others = model.group_evidence(settings, n, total)
        others = np.clip(np.broadcast_to(others, n.shape), -_CERTAIN, _CERTAIN)
        alone = np.broadcast_to(model.block_evidence(settings, d), d.shape)
        return EvidenceLaw((others, mass), (alone, pmf))
    if n.size * d.size > grid.MAX_CELLS:
        raise ArgumentError(
            f"conditionals='as-published' must leave at most {grid.MAX_CELLS} releases to list, "
            f"got {n.size * d.size}"
        )
    posterior = model.target_probability(settings, d, n[:, None], total[:, None])
    p = settings.prior.item()
    with np.errstate(divide="ignore"):
        odds = np.log(posterior) - np.log1p(-posterior) - (np.log(p) - np.log1p(-p))
    values = np.clip(odds, -_CERTAIN, _CERTAIN).ravel()
    return EvidenceLaw((values, np.multiply.outer(mass, pmf).ravel()), _SILENCE)
