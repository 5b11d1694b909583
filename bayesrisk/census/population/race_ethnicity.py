"""Race and ethnicity: the nation's mix, varied by tract and block with sparse Dirichlet laws."""

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.census.population.figures import CHILD, HOLDER, PARTNER, RELATIVE, SPOUSE
from bayesrisk.census.population.spec import PopulationSpec, group_law, several_races


def dirichlet_rows(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw one Dirichlet vector for each row of concentrations.

    If every gamma variate underflows, all weight goes to the most probable entry, which is the
    limit.
    """
    draws = rng.standard_gamma(concentration)
    total = draws.sum(axis=1, keepdims=True)
    limit = np.eye(concentration.shape[1])[concentration.argmax(axis=1)]
    return np.where(total > 0.0, draws / np.where(total > 0.0, total, 1.0), limit)


def block_mixes(
    tracts: IntArray, people: IntArray, spec: PopulationSpec, rng: np.random.Generator
) -> FloatArray:
    """Draw each block's shares of the 14 groups (blocks, 14)."""
    nation = group_law()
    shape = (int(tracts[-1]) + 1, nation.size)
    tract = dirichlet_rows(np.broadcast_to(spec.tract_mixing * nation, shape), rng)
    concentration = spec.block_mixing * np.maximum(people, 1) ** spec.block_mixing_growth
    return dirichlet_rows(concentration[:, None] * tract[tracts], rng)


def pick(laws: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw one category for each entry of ``rows`` from that row's law.

    Laws need not be normalised. A category of probability 0 is never drawn: if adding the row
    number rounds up, the result is cut back to the last possible one.
    """
    cumulative = np.cumsum(laws, axis=1)
    cumulative /= cumulative[:, -1:]
    offset = np.arange(len(laws))[:, None]
    position = np.searchsorted(
        (cumulative + offset).reshape(-1), rows + rng.random(rows.size), "right"
    )
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0.0, axis=1)
    return np.asarray(np.minimum(position - rows * laws.shape[1], last[rows]), dtype=np.int64)


def draw_categories(law: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw a number of categories from one law."""
    return pick(law[None, :], np.zeros(count, dtype=np.int64), rng)


def race_masks(groups: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return race bit mask and Hispanic origin for each person's group."""
    race, hispanic = np.divmod(groups, 2)
    several, law = several_races()
    mask = several[draw_categories(law, groups.size, rng)]
    return np.where(race < 6, 1 << np.minimum(race, 5), mask), hispanic


def race_class(mask: IntArray) -> IntArray:
    """Return 1 to 6 for a single race, and 7 for two or more."""
    alone = (mask & (mask - 1)) == 0
    return np.where(alone, np.log2(np.maximum(mask, 1)).astype(np.int64) + 1, 7)


def member_groups(
    laws: FloatArray,
    blocks: IntArray,
    household: IntArray,
    relationship: IntArray,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Return race bit mask and Hispanic origin of household members, householder first.

    Householders and people who are not relatives are drawn from the block's mix. A spouse, partner
    or relative has the householder's group with the household's homogeneity, else one from the mix.
    A child has the group of the householder, or of spouse or partner, with equal probability. So
    every person's group has the law of the block's mix.
    """
    holder = np.flatnonzero(relationship == HOLDER)[household]
    same_group = rng.random(household.size) < spec.household_homogeneity
    coin = rng.random(household.size) < 0.5
    mate = np.isin(relationship, (SPOUSE, PARTNER))
    source = np.where(same_group & (mate | (relationship == RELATIVE)), holder, -1)
    # a spouse or partner stands right after the householder
    after = np.minimum(holder + 1, household.size - 1)
    parent = np.where(coin & mate[after] & (household[after] == household), after, holder)
    mask, hispanic = race_masks(pick(laws, blocks, rng), rng)
    for copies, origin in ((source >= 0, source), (relationship == CHILD, parent)):
        mask = np.where(copies, mask[origin], mask)
        hispanic = np.where(copies, hispanic[origin], hispanic)
    return mask, hispanic
