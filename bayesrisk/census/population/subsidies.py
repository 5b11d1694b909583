"""Subsidised households and their bedrooms (Appendix B of the occupancy study)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.census.population.figures import BEDROOMS, SMALLEST_PROPERTY, SUBSIDISED_PROFILE
from bayesrisk.census.population.race_ethnicity import dirichlet_rows, pick
from bayesrisk.census.population.spec import PopulationSpec
from bayesrisk.exceptions import ShapeError
from bayesrisk.tables.cells import class_sizes

_LIMIT = np.array([0, 2, 4, 2**62])  # people that 0-1, 2, 3 or more bedrooms hold


def occupancy_violation(size: ArrayLike, bedrooms: ArrayLike) -> NDArray[np.bool_]:
    """Return whether more than two people must share a bedroom.

    A violation is a household of more than 2 people in at most 1 bedroom, or of more than 4 in 2
    bedrooms. There is none with 3 bedrooms or more, or an unknown number.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), section 2 and appendix E.

    Parameters
    ----------
    size : array_like of int
        People in the household, at least 1.
    bedrooms : array_like of int
        0 unknown, 1 at most one, 2 two, 3 three or more.

    Examples
    --------
    >>> occupancy_violation([2, 3, 4, 5, 9], [1, 1, 2, 2, 3])
    array([False,  True, False,  True, False])
    """
    people = check.count_array(size, "size", lower=1)
    rooms = check.count_array(bedrooms, "bedrooms", lower=0, upper=3)
    check.broadcast(size=people, bedrooms=rooms)
    return np.asarray((rooms > 0) & (people > np.where(rooms == 0, 2**62, _LIMIT[rooms])))


def draw_bedrooms(
    size: ArrayLike, shares: ArrayLike, *, alpha: float, rng: Seed
) -> NDArray[np.int64]:
    r"""Return random bedrooms for subsidised households, with violations made rare.

    A household of ``size`` people gets ``b`` bedrooms with probability proportional to
    :math:`p_b \alpha^{v(b)}`, where :math:`v(b)` is 1 if that violates the limit, else 0. If all
    shares of the property violate it, so does the household, for any ``alpha``.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), appendix B; the paper's ``alpha`` is 1e-4.

    There are n households, of at least 1 person. ``shares``, shape (3,) or (n, 3), are those of
    units with at most 1, with 2, and with 3 bedrooms or more. Each row has sum 1. ``alpha`` is in
    (0, 1]; 1 ignores the limit.

    Examples
    --------
    >>> draw_bedrooms([1, 3, 4], [0.5, 0.5, 0.0], alpha=1e-12, rng=1)[1:]
    array([2, 2])
    """
    people = check.count_array(size, "size", lower=1)
    law = check.probability_vector(shares, "shares")
    weight = check.scalar(alpha, "alpha", lower=0.0, upper=1.0, bounds="(]")
    if people.ndim != 1 or law.shape not in ((3,), (people.size, 3)):
        raise ShapeError(
            f"shares must have shape (3,) or (n, 3), got {law.shape} for n = size of {people.shape}"
        )
    breach = occupancy_violation(people[:, None], np.array([1, 2, 3]))
    return pick(law * np.where(breach, weight, 1.0), np.arange(people.size), generator(rng)) + 1


def selection_weight(block: IntArray, flags: NDArray[np.bool_]) -> FloatArray:
    """Return the log selection weight: profile likelihood over frequency in the block."""
    profile = np.array(SUBSIDISED_PROFILE)
    likelihood = np.where(flags, np.log(profile), np.log1p(-profile)).sum(axis=1)
    return np.asarray(likelihood - np.log(class_sizes(block, *flags.T) / class_sizes(block)))


def largest_in_block(block: IntArray, score: FloatArray, wanted: IntArray) -> NDArray[np.bool_]:
    """Return a mask of the ``wanted[block]`` entries with the largest score in each block."""
    order = np.lexsort((-score, block))
    sorted_blocks = block[order]
    rank = np.arange(block.size) - np.searchsorted(sorted_blocks, sorted_blocks)
    chosen = np.zeros(block.size, dtype=bool)
    chosen[order] = rank < wanted[sorted_blocks]
    return chosen


def property_sizes(
    homes: IntArray, has_quarters: NDArray[np.bool_], spec: PopulationSpec, rng: np.random.Generator
) -> IntArray:
    """Return the number of subsidised households of each block."""
    eligible = (homes >= SMALLEST_PROPERTY) & ~has_quarters
    selected = rng.random(homes.size) < spec.subsidised_blocks
    size = rng.binomial(homes, spec.subsidised_share)
    return np.where(eligible & selected, np.maximum(size, SMALLEST_PROPERTY), 0)


def subsidise(
    block: IntArray,
    columns: dict[str, IntArray],
    wanted: IntArray,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], IntArray]:
    """Return a mask of subsidised households, and their bedrooms (0 for the others).

    Drawn without replacement with the weights of :func:`selection_weight` (the largest of log
    weight plus Gumbel noise); bedrooms from a mix of the property's own.
    """
    inside = np.flatnonzero(wanted[block] > 0)
    race, hispanic, children = (columns[n][inside] for n in ("race", "hispanic", "children"))
    # What the figures of properties count: groups of householders, and children.
    alone = [(hispanic == 1) & np.isin(race, codes) for codes in (1, 2, 3, (4, 5))]
    flags = np.column_stack([*alone, hispanic == 2, children > 0])
    score = selection_weight(block[inside], flags) + rng.gumbel(size=inside.size)
    chosen = np.zeros(block.size, dtype=bool)
    chosen[inside] = largest_in_block(block[inside], score, wanted)
    places = np.flatnonzero(wanted)
    mix = np.zeros((wanted.size, 3))
    concentration = np.broadcast_to(spec.bedroom_mixing * np.array(BEDROOMS), (places.size, 3))
    units = rng.multinomial(wanted[places], dirichlet_rows(concentration, rng))
    mix[places] = units / wanted[places][:, None]
    bedrooms = np.zeros(block.size, dtype=np.int64)
    if chosen.any():
        bedrooms[chosen] = draw_bedrooms(
            columns["people"][chosen], mix[block[chosen]], alpha=spec.alpha, rng=rng
        )
    return chosen, bedrooms
