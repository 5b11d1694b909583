"""Gibbs sampler for a path of nested groups: block, block group, tract, county, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import FloatArray, IntArray
from bayesrisk._validation import Number
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.log_table import FLAT, LogTable
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference.sampling import _kernels as kernels
from bayesrisk.inference.sampling.chains import (
    OVERDISPERSION,
    Samples,
    Step,
    room_for,
    run_chains,
    spawn,
    whole_settings,
)
from bayesrisk.inference.tree import path as model

_NO_END = 2**61
#: Least ``rho / sensitivity**2`` of a release: noise of weaker ones reaches beyond every count.
_LEAST_PRECISION = 1e-30


@dataclass(frozen=True)
class _State:
    """The free counts of a path, from the block upwards: levels of an only child are merged.

    ``level`` maps each level to its free count; entry 0 of the siblings is unused; ``tables`` are
    log priors with their first counts, of size 0 where flat.
    """

    level: IntArray
    noisy: FloatArray
    weight: FloatArray
    siblings: FloatArray
    sibling_weight: FloatArray
    tables: list[LogTable]


def _state(path: Any, levels: int) -> _State:
    """Return what moves freely: an only child's count is its parent's."""
    level = np.concatenate(([0], np.cumsum(path.n_siblings[: levels - 1] > 0)))
    size = int(level[-1]) + 1
    noisy, weight, siblings, sibling_weight = (np.zeros(size) for _ in range(4))
    tables = [FLAT] * size
    np.add.at(weight, level, path.precision[:levels])
    for i, place in enumerate(level):
        if weight[place] > 0.0:
            noisy[place] += path.precision[i] / weight[place] * path.noisy[i]
        if i and path.n_siblings[i - 1] > 0:
            siblings[place] = path.totals[i - 1]
            sibling_weight[place] = path.total_precision[i - 1]
        prior = path.priors[i - 1] if i else None
        if prior is not None:
            tables[place] = tables[place].times(prior)
    return _State(level, noisy, weight, siblings, sibling_weight, tables)


def _highest(state: _State) -> list[int]:
    """Return the largest feasible count at each free level, from the top down."""
    highest = [_NO_END] * len(state.tables)
    for i in range(len(state.tables) - 1, -1, -1):
        highest[i] = highest[i + 1] if i + 1 < len(highest) else _NO_END
        if not state.tables[i].flat:
            allowed = state.tables[i].allowed
            at = int(np.searchsorted(allowed, highest[i], side="right"))
            highest[i] = int(allowed[at - 1]) if at else -1
    return highest


def _block_log_prior(state: _State, known: int, prior: float, highest: list[int]) -> float:
    """Return the log odds of x = 1 before any release: also what priors make impossible."""
    odds = LogTable.of_target(known, prior).log_pmf
    for x in (0, 1):
        odds[x] += state.tables[0].at(known + x)
        if known + x > highest[0]:
            odds[x] = -np.inf
    if max(odds) == -np.inf:
        raise ArgumentError(f"count_priors must allow counts from known_count = {known} upwards")
    return float(odds[1] - odds[0])


def _first_state(
    state: _State, x: int, known: int, highest: list[int], rng: np.random.Generator
) -> IntArray:
    """Return feasible counts, spread by three times the noise of the releases."""
    weight = state.weight + state.sibling_weight
    spread = np.sqrt(0.5 / np.where(weight > 0.0, weight, 0.5))
    likely = state.noisy + OVERDISPERSION * spread * rng.standard_normal(weight.size)
    count = np.empty(weight.size, dtype=np.int64)
    count[0] = known + x
    for i in range(1, count.size):
        count[i] = min(
            max(int(np.clip(likely[i], -_NO_END, _NO_END)), int(count[i - 1])), highest[i]
        )
        if not state.tables[i].flat:
            allowed = state.tables[i].allowed
            count[i] = allowed[np.searchsorted(allowed, count[i])]
    return count


def sample_path(
    noisy_counts: ArrayLike,
    siblings: ArrayLike,
    *,
    n_siblings: ArrayLike,
    rho: Number,
    prior: float,
    known_count: int = 0,
    sibling_rho: Number | None = None,
    count_priors: Sequence[CountLaw | None] | None = None,
    known_totals: Sequence[int | None] | None = None,
    sensitivity: Number = 1.0,
    levels: Sequence[str] | None = None,
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None = None,
) -> Samples:
    r"""Sample the counts of a path of nested groups from releases at every level.

    The model of :func:`path_posterior`: with :math:`X_0` the block's count and :math:`X_l` that of
    the group at level l,

    .. math::

        P(X \mid y, S) \propto P(X_0) \prod_{l=0}^{L} e^{-\rho_l (y_l - X_l)^2}
        \prod_{l=1}^{L} P(X_l)\, e^{-(r_l / m_l) (S_l - X_l + X_{l-1})^2}\, 1[X_l \ge X_{l-1}]

    Parameters
    ----------
    noisy_counts : array_like of int, shape (levels,)
        Released counts y from the block to the top; ignored where rho is 0.
    siblings : array_like of int, shape (levels - 1,)
        For every level above the block, the total S of the released counts of the group's other
        children.
    n_siblings : array_like of int, shape () or (levels - 1,)
        Number m of those other children; 0 for an only child (S is then ignored).
    rho : array_like, shape () or (levels,)
        zCDP budget of the count at each level: 0 for no release, else at least
        1e-30 * sensitivity**2.
    prior : float
        Probability p that the block's count is ``known_count`` + 1, in (0, 1).
    known_count : int, default 0
        Others in the block known to have the characteristics, k.
    sibling_rho : array_like, shape () or (levels - 1,), optional
        Budget r of each of the other children; by default that of the level below.
    count_priors : sequence of CountLaw or None, length levels - 1, optional
        Prior of the count of each group, with bounded support; None is flat on 0, 1, 2, ...
    known_totals : sequence of int or None, length levels - 1, optional
        Counts of groups that are published without noise, as for :func:`path_posterior`.
    sensitivity : float, default 1.0
        L2 sensitivity that the budgets refer to.
    levels : sequence of str, optional
        Names from the block upwards; ``level_0``, ``level_1``, ... if None.
    draws, warmup, chains : int
        Sweeps kept and discarded in each chain, and number of chains. At most 1e8 sweeps, and
        2**28 numbers kept in all (2 GiB).
    rng : Generator or int
        Source of randomness; each chain gets a child of its own.
    threads : int, optional
        Threads to use; the draws do not depend on it. None: as many as there are processors.

    Returns
    -------
    Samples
        One variable for each level; levels at the top about which nothing was released are left
        out under a flat prior.

    Notes
    -----
    A sweep redraws X_0 given X_1, then each level given its neighbours from a discrete Gaussian
    cut to the counts between theirs, by rejection without approximation; under a prior, from its
    table.  Every feasible state can be reached from every other: raise the levels to the larger of
    the two states from the top down, then lower them from the bottom up.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 3.2, for one level above the block.

    Examples
    --------
    >>> samples = sample_path([2, 1, 4], [-1, 2], n_siblings=[27, 3], rho=[0.1, 0.25, 0.05],
    ...     prior=0.5, draws=100, warmup=10, chains=2, rng=1)
    >>> samples.counts.shape
    (2, 100, 3)
    """
    k = check.integer(known_count, "known_count", lower=0)
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    path = model.read_path(
        noisy_counts, siblings, n_siblings, rho, sibling_rho, count_priors, sensitivity
    ).with_totals(known_totals, k)
    weak = (path.precision > 0.0) & (path.precision < _LEAST_PRECISION)
    if weak.any():
        raise ArgumentError(
            f"rho / sensitivity**2 must be 0 or >= {_LEAST_PRECISION:g}, got "
            f"{check.describe_first(path.precision, weak)}"
        )
    names = _names(levels, path.noisy.size)
    sizes = whole_settings(draws, warmup, chains)
    state = _state(path, path.informed())
    highest = _highest(state)
    log_odds = _block_log_prior(state, k, p, highest)
    possible = [x for x, ruled_out in ((0, np.inf), (1, -np.inf)) if log_odds != ruled_out]
    log_odds += float(state.weight[0] * (2.0 * (state.noisy[0] - k) - 1.0))
    # The block's own table is in the odds.
    tables = [FLAT, *state.tables[1:]]
    given = kernels.PathModel(
        known_count=k,
        log_odds=log_odds,
        noisy=state.noisy,
        precision=state.weight,
        siblings=state.siblings,
        sibling_precision=state.sibling_weight,
        prior_at=np.cumsum([0, *(table.log_pmf.size for table in tables)]),
        prior_start=np.array([table.start for table in tables], dtype=np.int64),
        log_prior=np.concatenate([table.log_pmf for table in tables]),
    )
    generators, seed = spawn(rng, sizes[2])
    counts = room_for(sizes[0], sizes[2], state.noisy.size)

    def begin(chain: int) -> Step:
        random, x = generators[chain], possible[chain % len(possible)]
        count = _first_state(state, x, k, highest, random).copy()
        return lambda skip, out: kernels.fill_path(random, given, count, skip, out)

    run_chains(begin, counts, sizes[1], threads)
    spec = {
        "noisy_counts": path.noisy.tolist(),
        "siblings": path.totals.tolist(),
        "n_siblings": path.n_siblings.tolist(),
        "precision": path.precision.tolist(),
        "sibling_precision": path.total_precision.tolist(),
        "prior": p,
        "known_count": k,
        "count_priors": "flat" if count_priors is None else list(count_priors),
        "known_totals": None if known_totals is None else list(known_totals),
    }
    return Samples(
        counts=counts[:, :, state.level],
        target=counts[:, :, 0] - k,
        labels=names[: state.level.size],
        dimension="level",
        sampler="coherent",
        warmup=sizes[1],
        spec=MappingProxyType(spec),
        seed=seed,
        observed=MappingProxyType({"noisy_count": path.noisy[: state.level.size]}),
        constants=MappingProxyType(
            {"precision": path.precision[: state.level.size], "prior": p, "known_count": k}
        ),
    )


def _names(levels: Sequence[str] | None, size: int) -> tuple[str, ...]:
    if levels is None:
        return tuple(f"level_{i}" for i in range(size))
    names = check.texts(levels, "levels")
    if len(names) != size:
        raise ShapeError(f"levels must name each of the {size} levels, got {shown(names)}")
    if len(set(names)) != size:
        raise ArgumentError(f"levels must be different names, got {shown(names)}")
    return names
