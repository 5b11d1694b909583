"""Draws of several Markov chains: how they are run, seeded, kept and summarised."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import generator
from bayesrisk._show import displayed, number
from bayesrisk._types import IntArray
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.exceptions import ArgumentError

#: Most sweeps of a chain, kept or discarded, and most numbers that are kept of all chains.
MAX_SWEEPS = 10**8
MAX_VALUES = 2**28
_MAX_THREADS = 1024
#: Chains start from the releases with so many times their noise.
OVERDISPERSION = 3.0
# A chain comes back to Python about this often, so that Ctrl-C stops it.
_SECONDS = 0.25

#: Goes on for so many sweeps whose states are discarded, then fills ``out``, a row for a sweep.
Step = Callable[[int, IntArray], None]


@displayed
@dataclass(frozen=True)
class Samples:
    """Draws of a posterior by Gibbs sampling, with their origin.

    Read :func:`diagnose` before using them: an average of draws is no better than the chains'
    convergence.

    Attributes
    ----------
    counts : ndarray of int64, shape (chains, draws, variables)
        Counts, the warm-up discarded.
    target : ndarray of int64, shape (chains, draws), or None
        Whether the target has the characteristics: the block's count less ``known_count``.
        None for a tree, which has no single target.
    labels : tuple of str
        Name of each variable: of a level from the block upwards, or of a node.
    dimension : str
        ``"level"`` or ``"node"``: what the variables are.
    sampler : str
        Which conditionals were used.
    warmup : int
        Sweeps discarded at the start of each chain.
    spec : mapping
        Arguments of the sampler.
    seed : mapping
        Entropy and spawn key of the generators' seed.
    versions : mapping
        Versions of bayesrisk and NumPy: the draws are the same where both are.
    status : str
        Always ``"sampled"``: subject to Monte Carlo error.
    observed, constants : mapping
        What was released, and what was known without it: numbers, or arrays with one entry for
        each of ``labels``.
    """

    counts: IntArray
    target: IntArray | None
    labels: tuple[str, ...]
    dimension: str
    sampler: str
    warmup: int
    spec: Mapping[str, Any]
    seed: Mapping[str, Any]
    versions: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {"bayesrisk": __version__, "numpy": np.__version__}
        )
    )
    status: str = "sampled"
    observed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def chains(self) -> int:
        """Number of chains."""
        return int(self.counts.shape[0])

    @property
    def draws(self) -> int:
        """Draws kept from each chain."""
        return int(self.counts.shape[1])

    def _answer(self) -> list[str]:
        lines = [
            f"{self.sampler}, {self.chains} chains x {self.draws:,} draws x {len(self.labels):,} "
            f"{self.dimension}s."
        ]
        if self.target is not None:
            lines.append(
                f"Probability of the target {number(self.target_probability)}, Monte Carlo "
                f"standard error {number(self.target_error)}."
            )
        return [*lines, "Read diagnose() before using them."]

    def of(self, label: str) -> IntArray:
        """Return the draws of one variable, shape (chains, draws).

        Parameters
        ----------
        label : str
            One of ``labels``.

        Returns
        -------
        ndarray of int64
            Draws.
        """
        if not isinstance(label, str) or label not in self.labels:
            some = ", ".join(self.labels[:8]) + (", ..." if len(self.labels) > 8 else "")
            raise ArgumentError(f"label must be one of {some}, got {shown(label)}")
        return self.counts[:, :, self.labels.index(label)]

    @property
    def target_probability(self) -> float:
        """Posterior probability that the target has the characteristics, estimated."""
        return float(self._target().mean())

    @property
    def target_error(self) -> float:
        """Monte Carlo standard error of ``target_probability``; NaN if the draws are all equal."""
        return float(standard_error(self._target()))

    def estimate(self, confidence: float) -> Estimate:
        """Return the probability of the target with its error and an interval of the normal law.

        Parameters
        ----------
        confidence : float
            Confidence of the interval, in (0, 1).

        Returns
        -------
        Estimate
            ``target_probability`` with ``target_error``.
        """
        if np.isnan(self.target_error):
            raise ArgumentError(
                f"the draws must differ for an error, got {self._target().size:,} equal ones"
            )
        return Estimate.normal(
            self.target_probability,
            self.target_error,
            confidence=confidence,
            method=self.sampler,
            limits=(0.0, 1.0),
        )

    def _target(self) -> IntArray:
        if self.target is None:
            raise ArgumentError(
                "samples must have a single target, got those of a tree: use pmf(node)"
            )
        return self.target

    def pmf(self, label: str) -> pd.DataFrame:
        """Return how often each count was drawn, with Monte Carlo standard errors.

        Parameters
        ----------
        label : str
            One of ``labels``.

        Returns
        -------
        pandas.DataFrame
            Columns ``probability`` and ``error``, indexed by the count; counts never drawn are
            absent, which says that they are rare and not that they are impossible.
        """
        draws = self.of(label)
        values = np.unique(draws)
        hits = [draws == value for value in values]
        return pd.DataFrame(
            {
                "probability": [float(hit.mean()) for hit in hits],
                "error": [standard_error(hit) for hit in hits],
            },
            index=pd.Index(values, name=label),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each draw.

        Returns
        -------
        pandas.DataFrame
            Columns ``chain``, ``draw``, ``target`` (if there is one) and one for each variable.
        """
        columns: dict[str, Any] = {
            "chain": np.repeat(np.arange(self.chains), self.draws),
            "draw": np.tile(np.arange(self.draws), self.chains),
        }
        if self.target is not None:
            columns["target"] = self.target.ravel()
        flat = self.counts.reshape(-1, len(self.labels))
        columns |= {name: flat[:, i] for i, name in enumerate(self.labels)}
        return pd.DataFrame(columns)


def effective_size(draws: NDArray[Any]) -> float:
    """Return the effective number of draws for a mean, from split chains (chains, draws).

    Geyer's initial monotone sequence on the autocorrelations pooled over chains, as in Vehtari et
    al. (2021), without rank normalisation; NaN where the draws are all equal.
    """
    half = draws.shape[1] // 2
    if half < 2 or np.all(draws == draws.flat[0]):
        return float("nan")
    parts = np.concatenate((draws[:, :half], draws[:, -half:])).astype(float)
    chains, length = parts.shape
    centred = parts - parts.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * length, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1.0)
    total = covariance[0] + parts.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (within - covariance * length / (length - 1.0)) / total
    correlation[0] = 1.0
    pairs = correlation[: length - length % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0.0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else None])
    tau = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / np.log10(chains * length))
    return float(chains * length / tau)


def standard_error(draws: NDArray[Any]) -> float:
    """Return the Monte Carlo standard error of the mean of draws (chains, draws)."""
    return float(draws.std(ddof=1) / np.sqrt(effective_size(draws)))


def whole_settings(draws: Any, warmup: Any, chains: Any) -> tuple[int, int, int]:
    """Return the checked numbers of draws, warm-up sweeps and chains."""
    return (
        check.integer(draws, "draws", lower=1, upper=MAX_SWEEPS),
        check.integer(warmup, "warmup", lower=0, upper=MAX_SWEEPS),
        check.integer(chains, "chains", lower=1, upper=2**16),
    )


def room_for(draws: int, chains: int, variables: int) -> IntArray:
    """Return the array that the draws go to, at most ``MAX_VALUES`` numbers."""
    if chains * draws * variables > MAX_VALUES:
        raise ArgumentError(
            f"draws * chains * variables must be <= {MAX_VALUES} (2 GiB), "
            f"got {draws} * {chains} * {variables}"
        )
    return np.empty((chains, draws, variables), dtype=np.int64)


def spawn(rng: Any, chains: int) -> tuple[list[np.random.Generator], Mapping[str, Any]]:
    """Return one generator for each chain, and the seed that they come from."""
    rng = generator(rng)
    seed: Any = rng.bit_generator.seed_seq
    origin = {
        "bit_generator": type(rng.bit_generator).__name__,
        "entropy": getattr(seed, "entropy", None),
        "spawn_key": tuple(getattr(seed, "spawn_key", ())),
        "first_child": int(getattr(seed, "n_children_spawned", 0)),
    }
    return rng.spawn(chains), MappingProxyType(origin)


def run_chains(begin: Callable[[int], Step], counts: IntArray, warmup: int, threads: Any) -> None:
    """Fill ``counts[chain]`` by the steps that ``begin(chain)`` returns, chains in threads.

    The kernels release the GIL.  A chain runs in pieces, whose sizes change nothing in what is
    drawn: between two of them it can be interrupted.
    """
    chains = len(counts)
    workers = min(chains, os.cpu_count() or 1)
    if threads is not None:
        workers = min(chains, check.integer(threads, "threads", lower=1, upper=_MAX_THREADS))
    stop = threading.Event()

    def run(chain: int) -> None:
        _run_chain(begin(chain), counts[chain], warmup, stop)

    if workers == 1:
        for chain in range(chains):
            run(chain)
        return
    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(run, range(chains)))
        except BaseException:  # threads know nothing of Ctrl-C
            stop.set()
            raise


def _run_chain(step: Step, out: IntArray, warmup: int, stop: threading.Event) -> None:
    """Run one chain piece by piece, each as long as the last one's speed suggests."""
    done, end, size = -warmup, len(out), 16
    while done < end and not stop.is_set():
        last = min(done + size, end)
        began = time.perf_counter()
        step(max(0, min(last, 0) - done), out[max(done, 0) : max(last, 0)])
        spent = max(time.perf_counter() - began, 1e-9)
        size = max(1, min(8 * size, int(size * _SECONDS / spent)))
        done = last
