"""Evidence and posteriors of the two-level model, from checked settings and arrays.

The adversary uses it and, with the truth known, ``risk.two_levels``.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.validation import FloatArray, IntArray, Number
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import FLAT, REACH, LogTable, log_table
from bayesrisk.distributions.sums import NO_RIPPLE, SMOOTH, sum_ripple
from bayesrisk.exceptions import ArgumentError, IncompatibleConditionalsWarning
from bayesrisk.inference.count.posterior import bayes_rule, first_reached
from bayesrisk.inference.two_levels import _kernels as kernels

T = TypeVar("T", np.float64, np.int64)
CONDITIONALS = ("coherent", "as-published")
#: How a posterior of 1/2 is decided: by a fair coin, or for k + 1 as in (3.5) of Kazan and Reiter.
TIES = ("shared", "as-published")
#: Share of a sum that is left out: two relative tails of exp(-REACH).
TRUNCATION = float(2.0 * np.exp(-REACH))
#: Largest number of group counts that are summed for one release.
MAX_TERMS = 2**24
_MAX_PRECISION = 1e100


@dataclass(frozen=True)
class Settings:
    """Checked settings of the two-level model, which broadcast against the releases.

    ``block`` and ``group`` are precisions 1 / (2 sigma2), 0 where nothing is released.
    """

    block: FloatArray
    group: FloatArray
    n_siblings: IntArray
    prior: FloatArray
    known_count: IntArray
    group_prior: LogTable
    known_total: int | None
    published: bool
    exact_noise: bool

    @property
    def total(self) -> FloatArray:
        """Precision of the siblings' noisy total."""
        return np.asarray(self.block / self.n_siblings)

    def shape(self, *arrays: FloatArray) -> tuple[int, ...]:
        """Return the broadcast shape of the arrays and all settings but the prior."""
        counts = (self.block, self.group, self.n_siblings, self.known_count)
        return np.broadcast_shapes(*(a.shape for a in (*arrays, *counts)))


def level_precision(rho: Number, name: str, sensitivity: FloatArray) -> FloatArray:
    """Return ``rho / sensitivity**2``, or 0 if nothing is released at this level."""
    budget = check.real_array(rho, name, lower=0.0)
    check.broadcast(**{name: budget, "sensitivity": sensitivity})
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        precision = budget / sensitivity**2
    label = f"{name} / sensitivity**2"
    return check.real_array(precision, label, upper=_MAX_PRECISION)


def read_group_prior(law: CountLaw | None, total: int | None, known_count: IntArray) -> LogTable:
    """Return the group's prior as a table; it must allow the known count or total.

    The prior of N does not depend on x, so that N = total has one weight whichever x is true.
    """
    table = FLAT if law is None else log_table(law, "group_prior", negative=True)
    top = int(known_count.max())
    if total is not None:
        if total <= top:
            raise ArgumentError(
                "known_total",
                f"must be above known_count = {top}, so that it holds with and without the target",
                shown=total,
            )
        if table.log_probability(total) == -np.inf:
            first, last = table.allowed[[0, -1]].tolist()
            raise ArgumentError(
                "known_total",
                f"must be possible under group_prior ({first} to {last})",
                shown=total,
            )
        return LogTable(total, np.zeros(1))
    if law is None:
        return FLAT
    last = int(table.allowed[-1])
    if last < top:
        raise ArgumentError(
            "group_prior",
            f"must allow a group count >= known_count = {top}",
            shown=f"at most {last}",
        )
    return table


def warn_if_published(settings: Settings) -> None:
    """Warn, if the published conditionals are used, that they have no joint law."""
    if settings.published:
        warnings.warn(
            "conditionals='as-published' describes no posterior: the two conditionals belong to "
            "no joint law; use it to reproduce printed numbers only",
            IncompatibleConditionalsWarning,
            stacklevel=caller_level(),
        )


def _workspace(settings: Settings, precision: FloatArray, reach: float) -> FloatArray:
    """Return working arrays for the sums over t of one release."""
    size = settings.group_prior.log_pmf.size
    if not size:
        positive = precision[precision > 0.0]
        widest = float(positive.min()) if positive.size else 1.0
        width = 2.0 * np.sqrt(reach / widest) + 8.0
        if not width <= MAX_TERMS:
            raise ArgumentError(
                "rho_group",
                "+ rho_block / n_siblings must be large enough for sums of at most "
                f"{MAX_TERMS} terms with these conditionals and noise",
                shown=f"{widest:g}",
            )
        size = int(width)
    return np.empty((6, size))


def _mechanisms(
    settings: Settings, shape: tuple[int, ...]
) -> Iterator[tuple[slice | IntArray, FloatArray]]:
    """Yield pairs (selected releases, ripple), one for each law of sibling noise."""
    if not settings.exact_noise:
        yield slice(None), NO_RIPPLE
        return
    pairs = (settings.block, settings.n_siblings)
    if all(pair.size == 1 for pair in pairs):
        block, siblings = settings.block.item(), settings.n_siblings.item()
        yield slice(None), sum_ripple(block, siblings)
        return
    columns = np.column_stack([np.broadcast_to(pair, shape).ravel() for pair in pairs])
    distinct, index = np.unique(columns, axis=0, return_inverse=True)
    for i, (rho, m) in enumerate(distinct):
        yield np.flatnonzero(index.ravel() == i), sum_ripple(float(rho), int(m))


def _run_kernel(
    kernel: Callable[..., None],
    settings: Settings,
    shape: tuple[int, ...],
    leading: tuple[FloatArray | float, ...],
    n: FloatArray,
    total: FloatArray,
) -> FloatArray:
    """Return a kernel's results for all releases, one law of sibling noise at a time.

    ``leading`` are scalars, passed unchanged, or arrays of releases.
    """

    def flat(value: NDArray[T]) -> NDArray[T]:
        # A copy: what may not be written would be compiled apart.
        return np.array(np.broadcast_to(value, shape), order="C").reshape(-1)

    b, c = flat(settings.group), flat(settings.total)
    start = flat(settings.group_prior.start - settings.known_count)
    first = [flat(value) if isinstance(value, np.ndarray) else value for value in leading]
    counts, every = flat(n), flat(total)
    out = np.empty(b.size)
    for part, ripple in _mechanisms(settings, shape):
        # The ripple may lift a distant term by its range at most.
        reach = REACH + float(np.ptp(ripple))
        work = _workspace(settings, (b + c)[part], reach)
        values = np.empty(out[part].size)
        head = [value[part] if isinstance(value, np.ndarray) else value for value in first]
        releases = kernels.Releases(counts[part], every[part], b[part], c[part], start[part])
        laws = kernels.Laws(np.array(ripple), np.array(settings.group_prior.log_pmf), reach)
        kernel(*head, releases, laws, work, values)
        out[part] = values
    return out.reshape(shape)


def group_evidence(settings: Settings, n: FloatArray, total: FloatArray) -> FloatArray:
    """Return the log-likelihood ratio of X = k + 1 to X = k, from group and siblings.

    ``n`` is the noisy group count minus k, ``total`` the siblings' noisy total.
    """
    rippled = (2.0 * settings.block > SMOOTH) & (settings.n_siblings > 1)
    if settings.group_prior is FLAT and not (settings.exact_noise and rippled.any()):
        return np.asarray(kernels.group_evidence(n, total, settings.group, settings.total))
    return _run_kernel(kernels.table_evidence, settings, settings.shape(n, total), (), n, total)


def block_evidence(settings: Settings, d: FloatArray) -> FloatArray:
    """Return the log-likelihood ratio of X = k + 1 to X = k, from the noisy block count k + d."""
    return np.asarray((2.0 * settings.block) * (d - 0.5))


def relative_releases(
    settings: Settings, block: IntArray, group: IntArray, siblings: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the releases relative to k, with 0 where nothing is released."""
    k = settings.known_count
    silent_block, silent_group = settings.block == 0.0, settings.group == 0.0
    d, n, total = block - k, group - k, siblings
    if silent_block.any():
        d, total = np.where(silent_block, 0, d), np.where(silent_block, 0, total)
    if silent_group.any():
        n = np.where(silent_group, 0, n)
    return d.astype(float), n.astype(float), total.astype(float)


def block_probability(settings: Settings, d: FloatArray) -> FloatArray:
    """Return the posterior probability of X = k + 1 given the block's noisy count alone."""
    evidence = block_evidence(settings, d)
    out: FloatArray = np.empty(np.broadcast_shapes(evidence.shape, settings.prior.shape))
    bayes_rule(-np.broadcast_to(evidence, out.shape), settings.prior, settings.prior, out)
    return out


def target_probability(
    settings: Settings, d: FloatArray, n: FloatArray, total: FloatArray
) -> FloatArray:
    """Return the posterior probability of X = k + 1 given releases relative to k."""
    shape = settings.shape(d, n, total, settings.prior)
    out: FloatArray = np.empty(shape)
    if settings.published:
        p = settings.prior
        odds = np.asarray(np.log(p) - np.log1p(-p) + block_evidence(settings, d))
        log_odds = _run_kernel(kernels.published_log_odds, settings, shape, (odds,), n, total)
        bayes_rule(-log_odds, 0.5, 0.5, out)
        return out
    evidence = block_evidence(settings, d) + group_evidence(settings, n, total)
    bayes_rule(-np.broadcast_to(evidence, shape), settings.prior, settings.prior, out)
    return out


def thresholds(
    settings: Settings, n: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest whole d with posterior >= 1/2, and the smallest with > 1/2.

    For one setting.  Minus or plus infinity where the block count is not released and cannot
    decide.
    """
    shape = np.broadcast_shapes(n.shape, total.shape)
    p, a = settings.prior.item(), settings.block.item()
    logit = float(np.log(p) - np.log1p(-p))
    if a == 0.0:
        silent = target_probability(settings, np.zeros(()), n, total)
        reached, above = silent >= 0.5 - 0.25 * kernels.TIE, silent > 0.5 + 0.25 * kernels.TIE
        return np.where(reached, -np.inf, np.inf), np.where(above, -np.inf, np.inf)
    if settings.published:
        crossings = _run_kernel(kernels.published_thresholds, settings, shape, (logit, a), n, total)
        low = np.ceil(crossings)
        return low, low + (crossings < low)
    return threshold(logit + group_evidence(settings, n, total), a)


def threshold(log_odds: FloatArray | float, a: float) -> tuple[FloatArray, FloatArray]:
    """Return the smallest whole d with ``log_odds + a (2 d - 1)`` >= 0, and with > 0.

    Under a point prior and p = 1/2 the log odds are multiples of one number and ties are common;
    values within rounding of 0 count as ties.
    """
    return first_reached(log_odds + kernels.TIE, a), first_reached(log_odds - kernels.TIE, a)
