"""Gibbs samplers for releases at two or more levels: the exact posteriors' independent check.

The adversary's model is that of Kazan and Reiter, section 3.2: a block inside a group, releases
with noise at both levels, and the noisy total of the other blocks.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._validation import Number
from bayesrisk.distributions import CountLaw
from bayesrisk.inference.sampling import _kernels as kernels
from bayesrisk.inference.sampling._tables import two_level_tables
from bayesrisk.inference.sampling.chains import (
    Samples,
    Step,
    room_for,
    run_chains,
    spawn,
    whole_settings,
)
from bayesrisk.inference.two_levels import model

__all__ = ["sample_hierarchy"]


def sample_hierarchy(
    block: int,
    group: int,
    siblings: int,
    *,
    n_siblings: int,
    rho_block: Number,
    rho_group: Number,
    prior: Number,
    known_count: int = 0,
    group_prior: CountLaw | None = None,
    sensitivity: Number = 1.0,
    conditionals: str = "coherent",
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None = None,
) -> Samples:
    r"""Sample the posterior of a block's and its group's count from releases at both levels.

    .. math::

        x \mid N &\sim \text{Bernoulli on } \{k, k + 1\}, \quad
        \text{odds } \frac{p}{1-p}\, e^{\rho_1 (2(y - k) - 1) + (\rho_1/m)(2(N - S - k) - 1)}\,
        1[N \ge k + 1] \\
        N \mid x &\propto P(N)\, e^{-\tau (N - \mu_x)^2}\, 1[N \ge x], \quad
        \tau = \rho_2 + \frac{\rho_1}{m}, \quad
        \mu_x = \frac{\rho_2 n + (\rho_1 / m)(S + x)}{\tau}

    Parameters
    ----------
    block, group : int
        Released counts y of the block and n of the group; may be negative.
    siblings : int
        Sum S of the released counts of the group's other blocks.
    n_siblings : int
        Number m of other blocks, >= 1.
    rho_block, rho_group : float
        zCDP budgets of each block's and of the group's count, >= 0; 0 means no release.
    prior : float
        Probability p that the target has the characteristics, in (0, 1).
    known_count : int, default 0
        Others in the block known to have them, k.
    group_prior : CountLaw, optional
        Prior of the group's count, with bounded support; None is flat on 0, 1, 2, ...
    sensitivity : float, default 1.0
        L2 sensitivity that the budgets refer to.
    conditionals : {"coherent", "as-published"}, default "coherent"
        ``"as-published"`` drops the indicator from x given N: this replicates printed numbers and
        is the posterior of no model.
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
        Levels ``block`` and ``group``.

    Raises
    ------
    ArgumentError
        If an argument is out of range, the group prior excludes every feasible count, or the
        posterior is improper (no release, flat prior).

    Warns
    -----
    IncompatibleConditionalsWarning
        If ``conditionals="as-published"``.

    Notes
    -----
    Both conditionals are drawn without approximation: x has two values, so N given x is one of
    two tables, inverted. Counts whose weight is below e**-50 of the largest are left out. The
    coherent chain reaches every feasible state in one sweep: from any x, N given x covers
    N >= k + 1, from where both x are possible.  Chains start at x = k and x = k + 1 in turn.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 3.2 and supplement S3.

    Examples
    --------
    >>> samples = sample_hierarchy(2, 1, -1, n_siblings=27, rho_block=0.0992264,
    ...     rho_group=0.2464845, prior=0.5, draws=20_000, warmup=100, chains=4, rng=1)
    >>> abs(samples.target_probability - 0.503288) < 4 * samples.target_error
    True
    """
    y, n, s, m, k = (
        check.integer(value, name)
        for value, name in (
            (block, "block"),
            (group, "group"),
            (siblings, "siblings"),
            (n_siblings, "n_siblings"),
            (known_count, "known_count"),
        )
    )
    spec = {
        "block": y,
        "group": n,
        "siblings": s,
        "n_siblings": m,
        "rho_block": check.scalar(rho_block, "rho_block"),
        "rho_group": check.scalar(rho_group, "rho_group"),
        "prior": check.scalar(prior, "prior"),
        "known_count": k,
        "group_prior": group_prior,
        "sensitivity": check.scalar(sensitivity, "sensitivity"),
        "conditionals": conditionals,
    }
    settings = model.read_settings(
        n_siblings=m,
        rho_block=rho_block,
        rho_group=rho_group,
        prior=prior,
        known_count=k,
        group_prior=group_prior,
        sensitivity=sensitivity,
        conditionals=conditionals,
        sibling_noise="approximate",
    )
    sizes = whole_settings(draws, warmup, chains)
    model.warn_if_published(settings)
    log_odds = special.logit(float(settings.prior)) + float(settings.block) * (2.0 * (y - k) - 1.0)
    base, cdf, guide, has_target, feasible = two_level_tables(
        (n, s, k),
        (float(settings.group), float(settings.total)),
        log_odds,
        settings.group_prior,
        coherent=not settings.published,
    )
    generators, seed = spawn(rng, sizes[2])
    counts = room_for(sizes[0], sizes[2], 2)

    def begin(chain: int) -> Step:
        random = generators[chain]
        state = np.array([feasible[chain % len(feasible)], -1])
        return lambda skip, out: kernels.fill_two_levels(
            random, k, base, cdf, guide, has_target, state, skip, out
        )

    run_chains(begin, counts, sizes[1], threads)
    return Samples(
        counts=counts,
        target=counts[:, :, 0] - k,
        labels=("block", "group"),
        dimension="level",
        sampler=conditionals,
        warmup=sizes[1],
        spec=MappingProxyType(spec),
        seed=seed,
        observed=MappingProxyType({"noisy_count": np.array([y, n]), "noisy_siblings": s}),
        constants=MappingProxyType(
            {
                "precision": np.array([float(settings.block), float(settings.group)]),
                "prior": float(settings.prior),
                "known_count": k,
            }
        ),
    )
