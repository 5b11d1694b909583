"""Average risk where the likelihood of every observed cell is known and cells are independent."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from bayesrisk._random import generator
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.answers import Estimate
from bayesrisk.release import MechanismSpec

TAIL = 2.0**-60  # of the noise left out on each side of a cell
_MAX_RELEASES = 2**20  # releases of all cells together that are enumerated
_CHUNK = 2**16


class Average(NamedTuple):
    """Average posterior of the truth, probability that it is found, and share of right guesses."""

    posterior: Estimate
    correct: Estimate
    accuracy: Estimate
    bias_bound: float = 0.0
    draws: int = 0


def cell_laws(
    spec: MechanismSpec, counts: IntArray, tables: Sequence[tuple[str, str]]
) -> list[FloatArray] | None:
    """Return for each cell P(release | hypothesis), (hypotheses, releases), or None.

    None where some cell has no likelihood in closed form.  Cells with the same count under every
    hypothesis tell nothing and are left out.

    Parameters
    ----------
    counts : ndarray of int64, (hypotheses, cells)
        True counts.
    tables : sequence of (level, table)
        Of each cell.
    """
    laws = []
    for column, (level, table) in zip(counts.T, tables, strict=True):
        found = _cell_law(spec, column, level, table)
        if found is None:
            return None
        if np.ptp(column) > 0:
            laws.append(found)
    return laws


def _cell_law(spec: MechanismSpec, counts: IntArray, level: str, table: str) -> FloatArray | None:
    likelihood = spec.likelihood(level, table)
    releases = likelihood.releases(int(counts.min()), int(counts.max()), tail=TAIL)
    return likelihood.probability(releases, counts[:, None])


def exact_average(
    laws: list[FloatArray],
    prior: FloatArray,
    truth: int,
    *,
    draws: int,
    rng: np.random.Generator | int,
    confidence: float,
) -> Average:
    """Return the averages: summed over all releases where these are few, else over drawn ones.

    The posterior is exact either way, so drawn releases give an unbiased average.
    """
    if not laws:
        found = _right(prior[:, None], truth).item()
        return _settled(float(prior[truth]), found, float(prior.max()), confidence)
    if np.prod([law.shape[1] for law in laws], dtype=float) <= _MAX_RELEASES:
        return _enumerated(laws, prior, truth, confidence)
    return _drawn(laws, prior, truth, draws=draws, rng=rng, confidence=confidence)


def fixed_average(
    observed: IntArray, prior: FloatArray, truth: int, *, confidence: float
) -> Average:
    """Return the averages of a mechanism that draws nothing, from what each hypothesis shows.

    Parameters
    ----------
    observed : ndarray of int64, (hypotheses, cells)
        Released counts or symbols.
    """
    same = (observed == observed[truth]).all(axis=1)
    joint = np.where(same, prior, 0.0)
    correct = _right(joint[:, None], truth).item()
    _, shown = np.unique(observed, axis=0, return_inverse=True)
    best = np.zeros(len(prior))  # the most probable hypothesis behind each thing shown
    np.maximum.at(best, shown.ravel(), prior)
    posterior = float(prior[truth] / joint.sum())
    accuracy = float(best.sum())
    return _settled(posterior, correct, accuracy, confidence, method="deterministic")


def _right(joint: FloatArray, truth: int) -> FloatArray:
    """Return the share of decisions for the truth, ties shared among the most probable."""
    best = joint >= joint.max(axis=0) * (1.0 - 1e-12)
    return np.asarray(best[truth] / best.sum(axis=0))


def _settled(
    posterior: float,
    correct: float,
    accuracy: float,
    confidence: float,
    error: float = 0.0,
    *,
    method: str = "closed-form",
) -> Average:
    """Return averages that nothing was drawn for, all within one numerical error."""

    def known(value: float) -> Estimate:
        lower, upper = max(0.0, value - error), min(1.0, value + error)
        return Estimate(value, error, lower, upper, confidence, method)

    return Average(known(posterior), known(correct), known(accuracy))


def _enumerated(
    laws: list[FloatArray], prior: FloatArray, truth: int, confidence: float
) -> Average:
    joint = prior[:, None]
    mass = np.ones(1)
    for law in laws:
        joint = (joint[:, :, None] * law[:, None, :]).reshape(len(prior), -1)
        mass = np.multiply.outer(mass, law[truth]).ravel()
    accuracy = float(joint.max(axis=0).sum())
    unseen = max(0.0, 1.0 - float(joint.sum()))
    possible = mass > 0.0
    joint, mass = joint[:, possible], mass[possible]
    with np.errstate(under="ignore", invalid="ignore"):
        posterior = joint[truth] / joint.sum(axis=0)
    # Underflow of everything: releases of no weight.
    posterior = np.where(np.isnan(posterior), 1.0, posterior)
    value, correct = float(mass @ posterior), float(mass @ _right(joint, truth))
    missing = max(0.0, 1.0 - float(mass.sum()))
    rounding = mass.size * 2.0**-52
    return _settled(
        min(max(value, float(prior[truth])), 1.0),
        min(correct, 1.0),
        min(max(accuracy, float(prior.max())), 1.0),
        confidence,
        max(missing, unseen) + rounding,
    )


def _drawn(
    laws: list[FloatArray],
    prior: FloatArray,
    truth: int,
    *,
    draws: int,
    rng: np.random.Generator | int,
    confidence: float,
) -> Average:
    random = generator(rng)
    posterior, right, best = np.empty(draws), np.empty(draws), np.empty(draws)
    for chosen, joint in _joints(laws, prior, np.full(draws, truth), random):
        posterior[chosen] = joint[truth] / joint.sum(axis=0)
        right[chosen] = _right(joint, truth)
    # The best guess is right with the probability of the most probable, over all hypotheses.
    for chosen, joint in _joints(laws, prior, _hypotheses(prior, draws, random), random):
        best[chosen] = joint.max(axis=0) / joint.sum(axis=0)
    method = "closed-form likelihood, sampled releases"
    quantile = float(special.ndtri(0.5 + 0.5 * confidence))

    def average(drawn: FloatArray, least: float) -> Estimate:
        value, error = float(drawn.mean()), float(drawn.std(ddof=1) / np.sqrt(draws))
        ends = np.array([value, value - quantile * error, value + quantile * error])
        value, lower, upper = np.clip(ends, least, 1.0).tolist()
        return Estimate(value, error, lower, upper, confidence, method)

    found, error = float(right.mean()), float(right.std(ddof=1) / np.sqrt(draws))
    # Draws that are all right, or all wrong, leave one in ``draws`` open.
    reach = quantile * max(error, 1.0 / draws)
    correct = Estimate(
        found, error, max(0.0, found - reach), min(1.0, found + reach), confidence, method
    )
    return Average(
        average(posterior, float(prior[truth])),
        correct,
        average(best, float(prior.max())),
        draws=draws,
    )


def _hypotheses(prior: FloatArray, draws: int, random: np.random.Generator) -> IntArray:
    """Return hypotheses drawn as the adversary believes in them."""
    edges = np.cumsum(prior)
    u = random.random(draws) * edges[-1]
    return np.asarray(np.searchsorted(edges[:-1], u, side="right"), dtype=np.int64)


def _joints(
    laws: list[FloatArray], prior: FloatArray, drawn: IntArray, random: np.random.Generator
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield positions of ``drawn`` and, for a release drawn under each, the joint weights."""
    with np.errstate(divide="ignore"):
        logs = [np.log(law) for law in laws]
        log_prior = np.log(prior)
    for h in np.unique(drawn):
        edges = [np.cumsum(law[h]) for law in laws]
        members = np.flatnonzero(drawn == h)
        for start in range(0, members.size, _CHUNK):
            chosen = members[start : start + _CHUNK]
            joint = np.repeat(log_prior[:, None], chosen.size, axis=1)
            for log, edge in zip(logs, edges, strict=True):
                u = random.random(chosen.size) * edge[-1]
                joint = joint + log[:, np.searchsorted(edge[:-1], u, side="right")]
            yield chosen, np.exp(joint - joint.max(axis=0))
