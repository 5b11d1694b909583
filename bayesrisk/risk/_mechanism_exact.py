"""Average risk where the likelihood of every observed cell is known and cells are independent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesrisk._random import generator
from bayesrisk.release import MechanismSpec

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TAIL = 2.0**-60  # of the noise left out on each side of a cell
_MAX_RELEASES = 2**20  # releases of all cells together that are enumerated
_CHUNK = 2**16


@dataclass(frozen=True)
class Average:
    """Average posterior of the truth and P(correct), each with error and ends of its interval."""

    posterior: float
    posterior_error: float
    posterior_ends: tuple[float, float]
    correct: float
    correct_error: float
    correct_ends: tuple[float, float]
    method: str


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
    noise = spec.law(level, table)
    low, high = int(counts.min()), int(counts.max())
    if noise is not None:
        low, high = low + int(noise.ppf(TAIL)), high + int(noise.isf(TAIL))
    elif spec.mechanism == "rounding":
        base = int(spec.parameters["base"])
        low, high = low - base, high + base
    releases = np.arange(low, high + 1)
    found: Any = spec.count_likelihood(releases, counts[:, None], level=level, table=table)
    return None if found is None else np.asarray(found, dtype=np.float64)


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
        return _settled(float(prior[truth]), _right(prior[:, None], truth).item())
    if np.prod([law.shape[1] for law in laws], dtype=float) <= _MAX_RELEASES:
        return _enumerated(laws, prior, truth)
    return _drawn(laws, prior, truth, draws=draws, rng=rng, confidence=confidence)


def fixed_average(observed: IntArray, prior: FloatArray, truth: int) -> Average:
    """Return the averages of a mechanism that draws nothing, from what each hypothesis shows.

    Parameters
    ----------
    observed : ndarray of int64, (hypotheses, cells)
        Released counts or symbols.
    """
    same = (observed == observed[truth]).all(axis=1)
    joint = np.where(same, prior, 0.0)
    correct = _right(joint[:, None], truth).item()
    return _settled(float(prior[truth] / joint.sum()), correct, method="deterministic")


def _right(joint: FloatArray, truth: int) -> FloatArray:
    """Return the share of decisions for the truth, ties shared among the most probable."""
    best = joint >= joint.max(axis=0) * (1.0 - 1e-12)
    return np.asarray(best[truth] / best.sum(axis=0))


def _settled(
    posterior: float, correct: float, error: float = 0.0, *, method: str = "closed-form"
) -> Average:
    ends = max(0.0, posterior - error), min(1.0, posterior + error)
    right = max(0.0, correct - error), min(1.0, correct + error)
    return Average(posterior, error, ends, correct, error, right, method)


def _enumerated(laws: list[FloatArray], prior: FloatArray, truth: int) -> Average:
    joint = prior[:, None]
    mass = np.ones(1)
    for law in laws:
        joint = (joint[:, :, None] * law[:, None, :]).reshape(len(prior), -1)
        mass = np.multiply.outer(mass, law[truth]).ravel()
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
        min(max(value, float(prior[truth])), 1.0), min(correct, 1.0), missing + rounding
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
    posterior, right = np.empty(draws), np.empty(draws)
    with np.errstate(divide="ignore"):
        logs = [np.log(law) for law in laws]
        log_prior = np.log(prior)
    edges = [np.cumsum(law[truth]) for law in laws]
    for start in range(0, draws, _CHUNK):
        stop = min(start + _CHUNK, draws)
        joint = np.repeat(log_prior[:, None], stop - start, axis=1)
        for log, edge in zip(logs, edges, strict=True):
            u = random.random(stop - start) * edge[-1]
            joint = joint + log[:, np.searchsorted(edge[:-1], u, side="right")]
        joint = np.exp(joint - joint.max(axis=0))
        posterior[start:stop] = joint[truth] / joint.sum(axis=0)
        right[start:stop] = _right(joint, truth)
    quantile = float(special.ndtri(0.5 + 0.5 * confidence))
    error, right_error = (float(x.std(ddof=1) / np.sqrt(draws)) for x in (posterior, right))
    value, correct = float(posterior.mean()), float(right.mean())
    lower, upper = np.clip(
        [value - quantile * error, value + quantile * error], float(prior[truth]), 1.0
    )
    reach = quantile * max(right_error, 1.0 / draws)
    return Average(
        min(max(value, float(prior[truth])), 1.0),
        error,
        (float(lower), float(upper)),
        correct,
        right_error,
        (max(0.0, correct - reach), min(1.0, correct + reach)),
        "closed-form likelihood, sampled releases",
    )
