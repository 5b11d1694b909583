"""Gibbs samplers for releases at two or more levels: the exact posteriors' independent check.

The adversary's model is that of Kazan and Reiter, section 3.2: a block inside a group, releases
with noise at both levels, and the noisy total of the other blocks.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from scipy import special

from bayesrisk import _validation as check
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
from bayesrisk.inference.two_levels.settings import TwoLevelSettings


def sample_two_levels(
    known: TwoLevelSettings,
    release: tuple[int, int, int],
    *,
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None,
) -> Samples:
    """Sample the block's and the group's count given block, group and siblings; see `TwoLevels`.

    Both conditionals are drawn without approximation: x has two values, so N given x is one of
    two tables, inverted.
    """
    y, n, s = (
        check.integer(value, name)
        for value, name in zip(release, ("block", "group", "siblings"), strict=True)
    )
    m, k = (check.integer(getattr(known, name), name) for name in ("n_siblings", "known_count"))
    spec = {
        "block": y,
        "group": n,
        "siblings": s,
        "n_siblings": m,
        "rho_block": check.scalar(known.rho_block, "rho_block"),
        "rho_group": check.scalar(known.rho_group, "rho_group"),
        "prior": check.scalar(known.prior, "prior"),
        "known_count": k,
        "group_prior": known.group_prior,
        "known_total": known.known_total,
        "sensitivity": check.scalar(known.sensitivity, "sensitivity"),
        "conditionals": known.conditionals,
    }
    settings = known.checked
    sizes = whole_settings(draws, warmup, chains)
    log_odds = special.logit(float(settings.prior)) + float(settings.block) * (2.0 * (y - k) - 1.0)
    tables, feasible = two_level_tables(
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
        return lambda skip, out: kernels.fill_two_levels(random, tables, state, skip, out)

    run_chains(begin, counts, sizes[1], threads)
    return Samples(
        counts=counts,
        target=counts[:, :, 0] - k,
        labels=("block", "group"),
        dimension="level",
        sampler=known.conditionals,
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
