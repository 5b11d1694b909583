"""Synthetic populations: linear in blocks, and against drawing one household after the other."""

import numpy as np
import pytest
from targets import as_long, faster

from bayesrisk import simulate_population
from bayesrisk.census import population_spec
from bayesrisk.census.population import figures
from bayesrisk.census.population.spec import group_law, household_law, tenure_law

TWIN = 300  # blocks


def one_by_one(blocks, seed):
    """Draw households one after the other, and in each person after person; return the roles.

    The plain way with the same laws: composition, tenure, role, sex, age, race and ethnicity.
    """
    rng = np.random.default_rng(seed)
    law, tenure, groups = household_law(), tenure_law(), group_law()
    flat = law.ravel()
    roles = []
    for _ in range(blocks):
        target = rng.choice([4, 25, 70])
        mix = rng.dirichlet(groups + 1e-3)
        while target > 0:
            size, kind, age = np.unravel_index(rng.choice(flat.size, p=flat), law.shape)
            rng.choice(4, p=tenure[age])
            members = [figures.HOLDER, *([figures.SPOUSE + kind // 2] if kind < 4 else [])]
            while len(members) < size + 1:
                first = len(members) == 1 + (kind < 4)
                table = figures.FIRST_ROLES if first else figures.FURTHER_ROLES
                members.append(figures.ROLES[rng.choice(6, p=table[kind])][0])
            for _ in members:
                rng.integers(2), rng.integers(111), rng.choice(14, p=mix)
            roles += members
            target -= size + 1
    return np.bincount(roles, minlength=6)


def people(blocks):
    return len(simulate_population(population_spec("state", n_blocks=blocks), rng=1).persons)


def test_against_one_household_after_the_other(compare):
    blocks = 20_000
    persons = simulate_population(population_spec("state", n_blocks=blocks), rng=1).persons
    role = persons.table.column("relationship").to_numpy()
    ours = np.bincount(role[role < 6], minlength=6)
    twin = one_by_one(TWIN, 1)
    # households of a few people: shares of people vary as those of a third as many; and the
    # twin ends households at 7 and does not turn young parents' grown children into siblings
    error = 5 * np.sqrt(3 * 0.25 / twin.sum()) + 0.005
    assert np.abs(ours / ours.sum() - twin / twin.sum()).max() < error
    compare(
        lambda: people(blocks),
        lambda: one_by_one(TWIN, 1),
        aims={"simulated people, beside one household after the other": faster(10)},
        ours_units=int(role.size),
        twin_units=int(twin.sum()),
        rounds=3,
    )


@pytest.mark.parametrize("blocks", [40_000, 80_000])
def test_time_is_linear_in_blocks(compare, blocks):
    """Time for each person against a population of a fifth of the blocks."""
    large, small = people(blocks), people(blocks // 5)
    assert 4.5 < large / small < 5.5  # blocks are of one law
    compare(
        lambda: people(blocks),
        lambda: people(blocks // 5),
        aims={f"a simulated person of {blocks:,} blocks, beside a fifth of them": as_long(1.6)},
        ours_units=large,
        twin_units=small,
        rounds=3,
    )
