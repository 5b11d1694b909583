"""Draws of several Markov chains: running, seeding, storing and summarising them."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.answers import Estimate
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ConvergenceWarning, ShapeError

#: Most sweeps of a chain, kept or discarded, and most numbers that are kept of all chains.
MAX_SWEEPS = 10**8
MAX_VALUES = 2**28
_MAX_THREADS = 1024
#: Chains start from the releases with so many times their noise.
OVERDISPERSION = 3.0
#: Least ``rho / sensitivity**2`` of a release: noise of weaker ones reaches beyond every count.
LEAST_PRECISION = 1e-30
#: Weights below e**-50 of the peak are never drawn: far below one step of a uniform.
TAIL = 50.0
#: What converged chains have at most, and at least: R-hat, and effective draws of each chain.
_MOST_R_HAT, _LEAST = 1.01, 100.0
# A chain comes back to Python about this often, so that Ctrl-C stops it.
_SECONDS = 0.25

#: Draws or other numbers, shape (chains, draws).
NumberArray = FloatArray | IntArray | BoolArray
#: Goes on for so many sweeps whose states are discarded, then fills ``out``, a row for a sweep.
Step = Callable[[int, IntArray], None]
#: Draws so many values of ``target`` and ``count`` from the prior; none where it is improper.
Prior = Callable[[np.random.Generator, int], dict[str, IntArray]]


@displayed
@dataclass(frozen=True)
class Samples(Tabular):
    """Draws of a posterior by Gibbs sampling, with their settings and seed.

    Read :func:`diagnose` before using them: an average of draws is only as good as the chains'
    convergence.

    ``counts``, shape (chains, draws, variables), exclude the ``warmup`` sweeps at the start of each
    chain. ``target``, shape (chains, draws), is 1 if the target has the characteristics: the
    block's count less ``known_count``. It is None for a tree without a single target. ``labels``
    name the variables: levels from the block upwards, or nodes, as ``dimension`` says.

    ``sampler`` names the conditionals, ``spec`` has the arguments, and ``seed`` the entropy and
    spawn key of the generators' seed. The draws are reproducible with equal ``versions`` of
    bayesrisk and NumPy. ``releases`` name the published noisy counts: of a kept level or node, or
    ``"siblings"``, the total of the other blocks. ``observed`` is what was released, and
    ``constants`` what was known before: numbers, or an entry for each release.
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
    releases: tuple[str, ...] = ()
    observed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    _prior: Prior | None = field(default=None, repr=False)

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
            lines += [f"Not converged: {text}." for text in _doubts("target", self.target)]
        return [*lines, "Read bayesrisk.diagnose(samples) before using them."]

    def of(self, label: str) -> IntArray:
        """Return the draws of one variable, shape (chains, draws)."""
        if not isinstance(label, str) or label not in self.labels:
            names = ", ".join(self.labels[:8]) + (", ..." if len(self.labels) > 8 else "")
            raise ArgumentError("label", f"must be one of {names}", got=label)
        return self.counts[:, :, self.labels.index(label)]

    @property
    def target_probability(self) -> float:
        """Estimated posterior probability that the target has the characteristics."""
        return float(self._target().mean())

    @property
    def target_error(self) -> float:
        """Monte Carlo standard error of ``target_probability``; NaN if the draws are all equal."""
        return float(standard_error(self._target()))

    def estimate(self, confidence: float) -> Estimate:
        """Return the target's probability with its error and a normal interval.

        The interval holds the exact probability with the given ``confidence``, such as 0.95.
        It warns (:class:`~bayesrisk.exceptions.ConvergenceWarning`) if chains have not converged.
        """
        if np.isnan(self.target_error):
            raise ArgumentError(
                f"the draws must differ for an error, got {self._target().size:,} equal ones"
            )
        if doubts := _doubts("target", self._target()):
            text = f"the chains have not converged: {'; '.join(doubts)}"
            warnings.warn(text, ConvergenceWarning, stacklevel=caller_level())
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
                "samples", "must have a single target", shown="those of a tree: use pmf(node)"
            )
        return self.target

    def pmf(self, label: str) -> pd.DataFrame:
        """Return the frequency of each count among the draws, with its Monte Carlo standard error.

        The ``status`` is ``sampled``; ``undecided`` if :func:`diagnose` finds that the chains have
        not converged in this variable; or ``constant`` if all draws are equal.
        """
        draws = self.of(label)
        status = "constant" if np.all(draws == draws.flat[0]) else "sampled"
        if status == "sampled" and _doubts(label, draws):
            status = "undecided"
        values = np.unique(draws)
        hits = [draws == value for value in values]
        return pd.DataFrame(
            {
                "probability": [float(hit.mean()) for hit in hits],
                "error": [standard_error(hit) for hit in hits],
                "status": status,
            },
            index=pd.Index(values, name=label),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each draw."""
        columns: dict[str, Any] = {
            "chain": np.repeat(np.arange(self.chains), self.draws),
            "draw": np.tile(np.arange(self.draws), self.chains),
        }
        if self.target is not None:
            columns["target"] = self.target.ravel()
        flat = self.counts.reshape(-1, len(self.labels))
        columns |= {name: flat[:, i] for i, name in enumerate(self.labels)}
        return pd.DataFrame(columns)


def effective_size(draws: NumberArray) -> float:
    """Return the effective number of draws for a mean; ``draws`` is (chains, draws).

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
    variance = covariance[0] * length / (length - 1.0)
    total = covariance[0] + parts.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (variance - covariance * length / (length - 1.0)) / total
    correlation[0] = 1.0
    pairs = correlation[: length - length % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0.0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else None])
    tau = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / np.log10(chains * length))
    return float(chains * length / tau)


def standard_error(draws: NumberArray) -> float:
    """Return the Monte Carlo standard error of the mean of draws (chains, draws)."""
    return float(draws.std(ddof=1) / np.sqrt(effective_size(draws)))


def whole_settings(draws: object, warmup: object, chains: object) -> tuple[int, int, int]:
    """Return the checked numbers of draws, warm-up sweeps and chains."""
    return (
        check.integer(draws, "draws", lower=1, upper=MAX_SWEEPS),
        check.integer(warmup, "warmup", lower=0, upper=MAX_SWEEPS),
        check.integer(chains, "chains", lower=1, upper=2**16),
    )


def empty_counts(draws: int, chains: int, variables: int) -> IntArray:
    """Return an empty array for the draws; raise above ``MAX_VALUES`` numbers."""
    if chains * draws * variables > MAX_VALUES:
        raise ArgumentError(
            f"draws * chains * variables must be <= {MAX_VALUES} (2 GiB), "
            f"got {draws} * {chains} * {variables}"
        )
    return np.empty((chains, draws, variables), dtype=np.int64)


def spawn(rng: Seed, chains: int) -> tuple[list[np.random.Generator], Mapping[str, Any]]:
    """Return one generator for each chain, and the description of their common seed."""
    source = generator(rng)
    seed: object = source.bit_generator.seed_seq
    origin = {
        "bit_generator": type(source.bit_generator).__name__,
        "entropy": getattr(seed, "entropy", None),
        "spawn_key": tuple(getattr(seed, "spawn_key", ())),
        "first_child": int(getattr(seed, "n_children_spawned", 0)),
    }
    return source.spawn(chains), MappingProxyType(origin)


def run_chains(
    begin: Callable[[int], Step], counts: IntArray, warmup: int, threads: object
) -> None:
    """Fill ``counts[chain]`` by the step function of ``begin(chain)``, the chains in threads.

    The kernels release the GIL. A chain runs in pieces, between which it can be interrupted. Their
    sizes do not change the draws.
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
    """Run one chain in pieces whose length adapts to its speed, until done or stopped."""
    position, end, size = -warmup, len(out), 1
    while position < end and not stop.is_set():
        last = min(position + size, end)
        began = time.perf_counter()
        step(max(0, min(last, 0) - position), out[max(position, 0) : max(last, 0)])
        spent = max(time.perf_counter() - began, 1e-9)
        size = max(1, min(8 * size, int(size * _SECONDS / spent)))
        position = last


# -----------------------------------------------------------------------------
# Draws handed to ArviZ, and its diagnostics read with a verdict: the only module that imports it.


_TAILS = (0.05, 0.95)
_FEWEST_DRAWS = 4  # split chains need two draws in each half
_SURPRISE = 1e-3  # a chain that never moves is suspect if the others make that so unlikely


def _arviz() -> ModuleType:
    """Return the ArviZ module, imported at first use because that takes seconds."""
    with warnings.catch_warnings():
        # ArviZ 0.22 and 0.23 announce 1.0, once a day.
        warnings.filterwarnings("ignore", message="\\s*ArviZ is undergoing a major refactor")
        import arviz
    return arviz


def _statistic(name: str, draws: NumberArray, **options: object) -> float:
    # Few draws may have no variance within chains: the number is none then, and says so.
    with np.errstate(divide="ignore", invalid="ignore"):
        value = getattr(_arviz(), name)(draws, **options)
    return float(np.asarray(value).reshape(-1)[0])


def _published(samples: Samples) -> tuple[IntArray, FloatArray]:
    """Return predicted noisy counts and log-likelihoods, with releases on the last axis.

    The random numbers belong to the origin of the draws, so results are reproducible.
    """
    count = dict(zip(samples.labels, np.moveaxis(samples.counts, -1, 0), strict=True))
    if samples.dimension == "level":
        count["siblings"] = count["group"] - count["block"]
    true = np.stack([count[name] for name in samples.releases], axis=-1)
    noise = DiscreteGaussian(np.maximum(0.5 / samples.constants["precision"], 1e-100))
    likelihood = np.asarray(noise.logpmf(samples.observed["noisy_count"] - true))
    replicates = np.asarray(
        true + noise.rvs(true.shape, random_state=_stream(samples, 0)), np.int64
    )
    return replicates, likelihood


def _stream(samples: Samples, child: int) -> np.random.Generator:
    """Return a generator for derived random numbers, independent of the chains."""
    key = (*samples.seed["spawn_key"], samples.seed["first_child"], child)
    return np.random.default_rng(
        np.random.SeedSequence(samples.seed["entropy"] or 0, spawn_key=key)
    )


def _groups(samples: Samples) -> dict[str, dict[str, Any]]:
    """Return the groups of ArviZ's container for these draws, variables by name."""
    posterior: dict[str, Any] = {"count": samples.counts}
    if samples.target is not None:
        posterior = {"target": samples.target, **posterior}
    groups = {"posterior": posterior}
    if samples.releases:
        replicates, likelihood = _published(samples)
        groups |= {
            "posterior_predictive": {"noisy_count": replicates},
            "log_likelihood": {"noisy_count": likelihood},
        }
    if samples._prior is not None:
        size = samples.chains * samples.draws
        variables = samples._prior(_stream(samples, 1), size)
        shape = (samples.chains, samples.draws)
        groups["prior"] = {n: v.reshape(shape + v.shape[1:]) for n, v in variables.items()}
    groups |= {"observed_data": dict(samples.observed), "constant_data": dict(samples.constants)}
    return {group: variables for group, variables in groups.items() if variables}


def to_arviz(samples: Samples) -> Any:
    """Return draws as ArviZ's container, for its functions and files.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        The former for ArviZ 0.x, the latter for 1.x. Groups ``posterior`` and ``prior`` (before the
        release, if proper) have ``target`` and ``count``, by level or node. Groups
        ``observed_data``, ``posterior_predictive`` and ``log_likelihood`` have ``noisy_count``, by
        release: each kept published count, and ``siblings``, the total of the other blocks. Group
        ``constant_data`` has ``precision`` (rho over the squared sensitivity), and the target's
        ``prior`` and ``known_count``. Origin, seed and versions are attributes of ``posterior``.
        There is no ``sample_stats``, because a Gibbs sampler accepts every move.

    Examples
    --------
    >>> from bayesrisk import TwoLevels
    >>> question = TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
    >>> samples = question.sample(2, 1, -1, draws=50, warmup=10, chains=2, rng=1)
    >>> to_arviz(samples)["posterior"]["count"].dims
    ('chain', 'draw', 'level')
    >>> to_arviz(samples)["observed_data"]["noisy_count"].to_series().to_dict()
    {'block': 2, 'group': 1, 'siblings': -1}
    """
    draws = check.instance(samples, Samples, "samples")
    arviz = _arviz()
    import xarray

    coords: dict[str, Any] = {
        "chain": np.arange(draws.chains),
        "draw": np.arange(draws.draws),
        draws.dimension: list(draws.labels),
        "release": list(draws.releases),
    }
    sets = {}
    for group, variables in _groups(draws).items():
        outer = ["chain", "draw"] if not group.endswith("_data") else []
        arrays = {}
        for name, value in variables.items():
            inner = [draws.dimension if name == "count" else "release"]
            arrays[name] = ((outer + inner)[: np.ndim(value)], value)
        used = {dim for dims, _ in arrays.values() for dim in dims}
        sets[group] = xarray.Dataset(arrays, {d: v for d, v in coords.items() if d in used})
    sets["posterior"].attrs = {
        "inference_library": "bayesrisk",
        "inference_library_version": draws.versions["bayesrisk"],
        "sampler": draws.sampler,
        "tuning_steps": draws.warmup,
        "spec": json.dumps(dict(draws.spec), default=str),
        "seed": json.dumps(dict(draws.seed), default=str),
    }
    if str(arviz.__version__).startswith("0."):
        return arviz.InferenceData(**sets)
    return xarray.DataTree.from_dict(sets)


@displayed
@dataclass(frozen=True)
class Diagnosis(Tabular):
    """Convergence diagnostics of each variable, and a verdict.

    The ``variables`` are the ``target``, if there is one, and the levels or nodes. Each has the
    mean of the draws with its Monte Carlo standard error (``mcse``), and the rank-normalised split
    R-hat, NaN if undefined. ``ess_bulk`` and ``ess_tail`` are the effective numbers of draws for
    the centre and for the 5 % and 95 % quantiles (NaN for a constant). A variable is ``constant``
    if all draws of all chains are equal; then nothing can be said about its convergence.

    The ``verdict`` is ``"converged"`` or ``"not converged"``, with ``reasons``. ``notes`` say what
    it does not cover, such as constant variables.
    """

    variables: tuple[str, ...]
    mean: FloatArray
    mcse: FloatArray
    r_hat: FloatArray
    ess_bulk: FloatArray
    ess_tail: FloatArray
    constant: BoolArray
    verdict: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    chains: int
    draws: int

    def _answer(self) -> list[str]:
        """Return the verdict and the variables' diagnostics, lowest effective size first."""
        lines = [
            f"{self.verdict.capitalize()}: {self.chains} chains x {self.draws:,} draws of "
            f"{len(self.variables):,} variables; those worth the fewest draws first.",
            *self.reasons[:3],
        ]
        for i in np.argsort(np.fmin(self.ess_bulk, self.ess_tail), kind="stable")[:5].tolist():
            lines.append(
                f"{self.variables[i]}: mean {number(self.mean[i])} (error {number(self.mcse[i])}), "
                f"R-hat {self.r_hat[i]:.3f}, ESS {self.ess_bulk[i]:,.0f} bulk and "
                f"{self.ess_tail[i]:,.0f} tail"
            )
        return lines

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each variable."""
        columns = ("mean", "mcse", "r_hat", "ess_bulk", "ess_tail", "constant")
        return pd.DataFrame(
            {name: getattr(self, name) for name in columns},
            index=pd.Index(self.variables, name="variable"),
        )


class ChainNumbers(NamedTuple):
    """Diagnostics of one variable: mean, MCSE, R-hat, bulk and tail ESS."""

    mean: float
    mcse: float
    r_hat: float
    bulk: float
    tail: float


def chain_numbers(draws: NumberArray) -> ChainNumbers:
    """Return mean, MCSE, R-hat, bulk and tail ESS of one variable's draws (chains, draws)."""
    nan, mean = float("nan"), float(draws.mean())
    if draws.shape[1] < _FEWEST_DRAWS or np.all(draws == draws.flat[0]):
        return ChainNumbers(mean, nan, nan, nan, nan)
    moving = bool(np.any(draws != draws[:, :1]))
    r_hat = nan if draws.shape[0] < 2 else np.inf
    if not moving:  # every chain sits at a place of its own
        return ChainNumbers(mean, nan, r_hat, float(draws.shape[0]), float(draws.shape[0]))
    return ChainNumbers(
        mean=mean,
        mcse=_statistic("mcse", draws),
        r_hat=_statistic("rhat", draws) if draws.shape[0] > 1 else r_hat,
        bulk=_statistic("ess", draws, method="bulk"),
        tail=_statistic("ess", draws, method="tail", prob=_TAILS),
    )


def mean_r_hat(draws: NumberArray) -> float:
    """Return split R-hat of the mean of draws (chains, draws), for at least two chains.

    No ranks are used: the question is whether chains agree in the mean of their draws, despite
    differences too small to matter for it.
    """
    if np.all(draws == draws[:, :1]):
        return float("nan") if np.all(draws == draws.flat[0]) else float("inf")
    return _statistic("rhat", draws, method="split")


def _stuck_chains(draws: NumberArray) -> list[int]:
    """Return chains that never moved although the others' draws make that very unlikely."""
    constant = np.all(draws == draws[:, :1], axis=1)
    if constant.all() or not constant.any():
        return list(range(len(draws))) if constant.all() else []
    moving = draws[~constant]
    per_chain = _statistic("ess", moving, method="bulk") / len(moving)
    suspects = []
    for chain in np.flatnonzero(constant):
        share = float((moving == draws[chain, 0]).mean())
        if share ** max(per_chain, 1.0) < _SURPRISE:
            suspects.append(int(chain))
    return suspects


def _reasons(
    name: str, numbers: ChainNumbers, stuck: list[int], chains: int, max_rhat: float, min_ess: float
) -> list[str]:
    """Return reasons to doubt that one variable has converged."""
    _, _, r_hat, bulk, tail = numbers
    reasons = []
    if len(stuck) == chains:
        reasons.append(f"{name}: no chain ever moved, and they stand at different counts")
    elif stuck:
        stuck_numbers = ", ".join(map(str, stuck))
        reasons.append(f"{name}: chain {stuck_numbers} never moved, and the others did")
    if r_hat > max_rhat:
        reasons.append(f"{name}: R-hat {r_hat:.3g} > {max_rhat:g}, the chains disagree")
    for kind, size in (("bulk", bulk), ("tail", tail)):
        if not size >= min_ess:
            reasons.append(f"{name}: {kind} ESS {size:.0f} < {min_ess:.0f}")
    return reasons


def _doubts(name: str, draws: NumberArray) -> list[str]:
    """Return reasons, by :func:`diagnose`'s default limits, to doubt a variable's convergence."""
    if draws.shape[1] < _FEWEST_DRAWS:
        return [f"{name}: {draws.shape[1]} draws are fewer than {_FEWEST_DRAWS}"]
    if np.all(draws == draws.flat[0]):
        return []
    numbers, chains = chain_numbers(draws), len(draws)
    reasons = _reasons(name, numbers, _stuck_chains(draws), chains, _MOST_R_HAT, _LEAST * chains)
    return reasons if chains > 1 else [*reasons, f"{name}: one chain alone cannot be compared"]


def diagnose(
    samples: Samples, *, max_rhat: float = _MOST_R_HAT, min_ess_per_chain: float = _LEAST
) -> Diagnosis:
    r"""Return the diagnostics of draws, and a verdict with its reasons.

    As far as draws can tell, the chains have converged if three conditions hold for each variable.
    The rank-normalised split :math:`\hat R` is at most 1.01. Bulk and tail ESS are at least 100 for
    each chain. No chain stands still while others move.

    Source: Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16(2),
    667-718.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    max_rhat : float, default 1.01
        Largest accepted R-hat, > 1. The default is that of the reference.
    min_ess_per_chain : float, default 100.0
        Smallest accepted bulk and tail ESS per chain, > 0; the default is that of the reference.

    Notes
    -----
    A variable whose draws are all equal has no R-hat: its law may be a point, or the chains never
    moved. It is noted and left out of the verdict, unless all variables are so. A single chain is
    never called converged.

    Examples
    --------
    >>> from bayesrisk import TwoLevels
    >>> question = TwoLevels(n_siblings=27, rho_block=0.1, rho_group=0.25, prior=0.5)
    >>> samples = question.sample(2, 1, -1, draws=1000, warmup=100, chains=4, rng=1)
    >>> diagnose(samples).verdict
    'converged'
    """
    check.instance(samples, Samples, "samples")
    largest = check.scalar(max_rhat, "max_rhat", lower=1.0, bounds="()")
    smallest = check.scalar(min_ess_per_chain, "min_ess_per_chain", lower=0.0, bounds="()")
    if samples.draws < _FEWEST_DRAWS:
        raise ShapeError(f"samples must have at least {_FEWEST_DRAWS} draws, got {samples.draws}")
    variables = {} if samples.target is None else {"target": samples.target}
    variables |= {label: samples.counts[:, :, i] for i, label in enumerate(samples.labels)}
    rows, reasons, notes, constant = [], [], [], []
    for name, draws in variables.items():
        numbers = chain_numbers(draws)
        rows.append(numbers)
        constant.append(bool(np.all(draws == draws.flat[0])))
        if constant[-1]:
            notes.append(f"{name}: every draw is {draws.flat[0]}; R-hat has no meaning")
            continue
        stuck = _stuck_chains(draws)
        reasons += _reasons(
            name, numbers, stuck, samples.chains, largest, smallest * samples.chains
        )
    if all(constant):
        reasons.append("every variable is constant: nothing ever moved")
    if samples.chains == 1:
        reasons.append("one chain cannot be compared with another: run at least two")
    mean, mcse, r_hat, bulk, tail = np.array(rows, dtype=float).T
    return Diagnosis(
        variables=tuple(variables),
        mean=mean,
        mcse=mcse,
        r_hat=r_hat,
        ess_bulk=bulk,
        ess_tail=tail,
        constant=np.array(constant),
        verdict="not converged" if reasons else "converged",
        reasons=tuple(reasons),
        notes=tuple(notes),
        chains=samples.chains,
        draws=samples.draws,
    )
