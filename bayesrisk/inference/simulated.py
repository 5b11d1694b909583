"""Likelihoods estimated by running a mechanism many times under each hypothesis.

The adversary knows the mechanism and everybody but the target, so each hypothesis about the target
is a complete data set. The mechanism's releases of that data set are drawn as often as wanted. The
caller passes the function that draws: this package knows neither records nor mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.randomness import as_finished, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError

# -----------------------------------------------------------------------------
# The draws behind a simulated likelihood: streams, who runs them, checks of what comes back.


#: ``simulate(hypothesis, rng, size)`` returns int64 of shape (size,) or (size, cells).
Simulator = Callable[[int, np.random.Generator, int], ArrayLike]
Progress = Callable[[int, int], None]

MAX_VALUES = 2**27  # int64 numbers kept: 1 GB
_CHUNKS = 64  # pieces of work handed to an executor


def whole(value: ArrayLike, name: str) -> IntArray:
    """Return checked counts or symbols as int64."""
    array = check.as_array(value, name)
    if array.dtype.kind in "iu" and array.size:
        return array.astype(np.int64, copy=False)
    return check.count_array(value, name)


@dataclass(frozen=True)
class Work:
    """Draws releases in one process, for a range of random streams and every hypothesis."""

    simulate: Simulator
    hypotheses: int
    draws: int
    batch: int
    common: bool
    seed: int

    def __call__(self, streams: range) -> tuple[int, IntArray]:
        """Return the first stream's number, and draws (hypotheses, draws, cells)."""
        parts = [self._draw(i) for i in streams]
        _same_cells(parts)
        return streams.start, np.concatenate(parts, axis=1)

    def _draw(self, stream: int) -> IntArray:
        size = min(self.batch, self.draws - stream * self.batch)
        rows = []
        for hypothesis in range(self.hypotheses):
            key = (stream,) if self.common else (stream, hypothesis)
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
            rows.append(_as_draws(self.simulate(hypothesis, rng, size), size))
        _same_cells(rows)
        return np.stack(rows)


def _same_cells(parts: list[IntArray]) -> None:
    """Raise if observations differ in their number of cells."""
    widths = sorted({part.shape[-1] for part in parts})
    if len(widths) > 1:
        raise ShapeError(f"simulate must observe the same cells every time, got {widths} cells")


def _as_draws(value: ArrayLike, size: int) -> IntArray:
    draws = whole(value, "simulate's result")
    if draws.ndim == 1:
        draws = draws[:, None]
    if draws.ndim != 2 or len(draws) != size:
        raise ShapeError(
            "simulate", f"must return shape ({size},) or ({size}, cells)", shown=np.shape(value)
        )
    return draws


def run(work: Work, executor: Executor | None, progress: Progress | None) -> IntArray:
    """Return all draws (hypotheses, draws, cells); their order does not depend on ``executor``."""
    check.function(progress, "progress")
    if executor is not None and not isinstance(executor, Executor):
        raise ArgumentTypeError("executor", "must be a concurrent.futures.Executor", got=executor)
    n_streams = -(-work.draws // work.batch)
    step = max(1, -(-n_streams // _CHUNKS))
    pieces = [range(i, min(i + step, n_streams)) for i in range(0, n_streams, step)]
    results: Any = map(work, pieces) if executor is None else as_finished(executor, work, pieces)
    parts: dict[int, IntArray] = {}
    number = stored = 0
    for start, part in results:
        parts[start] = part
        number += part.shape[1]
        stored += part.size
        if stored > MAX_VALUES:
            raise ArgumentError(
                f"hypotheses * draws * cells must be at most {MAX_VALUES}, got more than {stored}"
            )
        if progress is not None:
            progress(number, work.draws)
    ordered = [parts[piece.start] for piece in pieces]
    _same_cells(ordered)
    return np.concatenate(ordered, axis=1)


#: What stands in an observation for a cell that is not published: a symbol, not a count.
SUPPRESSED = -(2**63)


@displayed
@dataclass(frozen=True)
class SimulatedPosterior:
    """Posterior of the hypotheses after one release, with Monte Carlo errors.

    All arrays have shape (hypotheses,): the ``prior``, the ``posterior`` with its standard
    ``error``, and ``risk_ratio = posterior / prior`` with its standard error. The last two are NaN
    if the prior is 0. ``seen`` is the number of draws that gave this release.
    """

    prior: FloatArray
    posterior: FloatArray
    error: FloatArray
    risk_ratio: FloatArray
    risk_ratio_error: FloatArray
    seen: IntArray


@displayed
@dataclass(frozen=True)
class SimulatedLikelihood:
    r"""Estimated probability of every observed release under every hypothesis.

    .. math:: \hat P_h(y) = \frac{c_h(y) + \alpha}{n + \alpha (V + 1)}

    Here c counts draws, V is the number of distinct values drawn under any hypothesis, and one
    further class stands for all values never drawn. The same pseudo-count :math:`\alpha` under
    every hypothesis pulls each likelihood ratio towards 1, so each posterior towards its prior. An
    unseen value is no evidence, and n draws never give a ratio above :math:`(n + \alpha)/\alpha`.

    ``values``, shape (V, cells), are the distinct releases, sorted; ``SUPPRESSED`` marks an
    unpublished cell. ``counts``, shape (hypotheses, V), is the number of draws of each. ``codes``,
    shape (hypotheses, draws), is the value of each draw. Draws in one column share their random
    stream. ``draws`` is n, and ``smoothing`` is alpha. ``streams`` are ``"common"`` or
    ``"independent"``; the same root ``seed`` gives the same draws.
    """

    values: IntArray
    counts: IntArray
    codes: IntArray
    draws: int
    smoothing: float
    streams: str
    seed: int

    def probability(self, observation: ArrayLike) -> FloatArray:
        """Return the smoothed probability of one release under each hypothesis."""
        total = self.draws + self.smoothing * (len(self.values) + 1)
        return np.asarray((self._hits(observation) + self.smoothing) / total, dtype=np.float64)

    def posterior(self, observation: ArrayLike, *, prior_pmf: ArrayLike) -> SimulatedPosterior:
        """Return the posterior of every hypothesis given one release.

        Standard errors are by the delta method and include covariances of common streams.

        Examples
        --------
        >>> likelihood = simulated_likelihood(
        ...     lambda h, rng, size: h + rng.integers(-1, 2, size), hypotheses=2, draws=900, rng=1
        ... )
        >>> likelihood.posterior(1, prior_pmf=[0.5, 0.5]).posterior.round(2).tolist()
        [0.49, 0.51]
        """
        prior = prior_vector(prior_pmf, len(self.counts))
        hits = self._hits(observation)
        weight = hits + self.smoothing
        joint = prior * weight
        posterior = joint / joint.sum()
        covariance = self._log_covariance(observation, hits)
        # d posterior_j / d log P_h = posterior_j (1[j = h] - posterior_h)
        slope = np.diag(posterior) - np.outer(posterior, posterior)
        variance = np.einsum("jh,hk,jk->j", slope, covariance, slope)
        error = np.sqrt(np.maximum(variance, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio, ratio_error = posterior / prior, error / prior
        return SimulatedPosterior(
            prior=prior,
            posterior=posterior,
            error=error,
            risk_ratio=ratio,
            risk_ratio_error=ratio_error,
            seen=hits,
        )

    def select(self, *, hypotheses: Sequence[int], cells: Sequence[int]) -> SimulatedLikelihood:
        """Return the likelihood restricted to some cells and hypotheses."""
        last = {"hypotheses": len(self.counts) - 1, "cells": self.values.shape[1] - 1}
        rows, columns = (
            check.count_array(value, name, lower=0, upper=last[name]).reshape(-1)
            for name, value in (("hypotheses", hypotheses), ("cells", cells))
        )
        draws = self.values[self.codes[rows]][:, :, columns]
        return _counted(draws, smoothing=self.smoothing, streams=self.streams, seed=self.seed)

    def _index(self, observation: ArrayLike) -> int:
        """Return the row of an observation among the values drawn, or V if never drawn."""
        wanted = whole(observation, "observation")
        cells = self.values.shape[1]
        if wanted.shape not in {(cells,), ()} or (wanted.shape == () and cells != 1):
            raise ShapeError(f"observation must have {cells} cells, got shape {wanted.shape}")
        rows = np.flatnonzero((self.values == wanted).all(axis=1))
        return int(rows[0]) if rows.size else len(self.values)

    def _hits(self, observation: ArrayLike) -> IntArray:
        index = self._index(observation)
        if index == len(self.values):
            return np.zeros(len(self.counts), dtype=np.int64)
        return self.counts[:, index]

    def _log_covariance(self, observation: ArrayLike, hits: IntArray) -> FloatArray:
        """Return the covariance matrix of the log estimated probabilities.

        Variances hold the pseudo-count, so that a value never seen has an error too.
        """
        weight = hits + self.smoothing
        covariance = np.zeros((len(hits), len(hits)))
        if self.streams == "common":
            hit = (self.codes == self._index(observation)).astype(np.float64)
            chance = np.outer(hits > 0, hits > 0) / self.draws
            covariance = hit @ hit.T / np.outer(weight, weight) - chance
        np.fill_diagonal(covariance, np.maximum(1.0 / weight - 1.0 / self.draws, 0.0))
        return covariance


def prior_vector(prior_pmf: ArrayLike, hypotheses: int) -> FloatArray:
    """Return a checked prior over the hypotheses."""
    prior = check.probability_vector(prior_pmf, "prior_pmf")
    if prior.shape != (hypotheses,):
        raise ShapeError("prior_pmf", f"must have shape ({hypotheses},)", shown=prior.shape)
    return prior


def simulated_likelihood(
    simulate: Simulator,
    *,
    hypotheses: int,
    draws: int,
    rng: np.random.Generator | int,
    smoothing: float = 0.5,
    batch: int = 1,
    streams: str = "common",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> SimulatedLikelihood:
    r"""Return the likelihood estimated by running a mechanism under each hypothesis.

    Parameters
    ----------
    simulate : callable
        ``simulate(hypothesis, rng, size)`` returns ``size`` independent releases under hypothesis
        0, 1, ...: int64 of shape (size,) or (size, cells).
    hypotheses : int
        Number of hypotheses, in [2, 1024].
    draws : int
        Draws under each hypothesis, at least 2.
    rng : Generator or int
        Source of randomness; it gives one root seed, from which every stream is spawned.
    smoothing : float, default 1/2
        Pseudo-count of every value under every hypothesis, > 0; 1/2 is the convention of Jeffreys.
    batch : int, default 1
        Draws from one stream. More is faster. Less keeps streams common to all hypotheses if a
        mechanism uses more random numbers under one than under another.
    streams : {"common", "independent"}, default "common"
        Whether all hypotheses share the same streams.
    executor : concurrent.futures.Executor, optional
        Runs the streams; the result does not depend on it. ``simulate`` must be importable by its
        workers.
    progress : callable, optional
        ``progress(done, draws)`` is called after each piece of work; an exception in it ends the
        run.

    Returns
    -------
    SimulatedLikelihood
        Counts, and the draws they come from: at most 2**27 numbers. Posteriors given one value are
        pulled towards the prior, by about ``smoothing / count`` in the logarithm of a likelihood.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> law = DiscreteGaussian(1.0)
    >>> likelihood = simulated_likelihood(
    ...     lambda h, rng, size: h + law.rvs(size, random_state=rng),
    ...     hypotheses=2, draws=20_000, batch=20_000, rng=7,
    ... )
    >>> result = likelihood.posterior(2, prior_pmf=[0.5, 0.5])
    >>> bool(abs(result.posterior[1] - 0.8176) < 3 * result.error[1])  # 1 / (1 + exp(-1.5))
    True
    """
    if not callable(simulate):
        raise ArgumentTypeError("simulate", "must be callable", got=simulate)
    check.choice(streams, "streams", ("common", "independent"))
    work = Work(
        simulate=simulate,
        hypotheses=check.integer(hypotheses, "hypotheses", lower=2, upper=1024),
        draws=check.integer(draws, "draws", lower=2),
        batch=check.integer(batch, "batch", lower=1),
        common=streams == "common",
        seed=int(generator(rng).integers(2**63)),
    )
    alpha = check.scalar(smoothing, "smoothing", lower=0.0, bounds="()")
    if work.hypotheses * work.draws > MAX_VALUES:
        raise ArgumentError(
            f"hypotheses * draws must be at most {MAX_VALUES}, got {work.hypotheses * work.draws}"
        )
    values = run(work, executor, progress)
    return _counted(values, smoothing=alpha, streams=streams, seed=work.seed)


def _counted(draws: IntArray, *, smoothing: float, streams: str, seed: int) -> SimulatedLikelihood:
    cells = draws.shape[2]
    rows = draws.ravel() if cells == 1 else draws.reshape(-1, cells)
    values, codes = np.unique(rows, axis=0, return_inverse=True)
    codes = codes.reshape(draws.shape[:2]).astype(np.int64, copy=False)
    counts = np.stack([np.bincount(row, minlength=len(values)) for row in codes])
    return SimulatedLikelihood(
        values=values.reshape(-1, cells),
        counts=counts,
        codes=codes,
        draws=draws.shape[1],
        smoothing=smoothing,
        streams=streams,
        seed=seed,
    )
