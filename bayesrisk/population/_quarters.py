"""People who live in group quarters."""

from dataclasses import dataclass

import numpy as np

from bayesrisk._types import IntArray
from bayesrisk.population import _national as national
from bayesrisk.population._groups import pick
from bayesrisk.population.spec import PopulationSpec


@dataclass(frozen=True)
class Residents:
    """One entry for each person in group quarters: block, type 1..7, sex and age."""

    block: IntArray
    kind: IntArray
    sex: IntArray
    age: IntArray


def quarters_people(target: IntArray, spec: PopulationSpec, rng: np.random.Generator) -> IntArray:
    """Return how many of each block's people live in group quarters.

    A block has them with probability ``quarters_blocks``; then any number from 0 to all of its
    people is equally likely, so that half of them do on average, whatever the block's size.
    """
    has = rng.random(target.size) < spec.quarters_blocks
    return np.where(has, rng.integers(0, target + 1), 0)


def make_residents(count: IntArray, rng: np.random.Generator) -> Residents:
    """Draw the people: one type of group quarters for each block."""
    law = np.array(national.GROUP_QUARTERS, dtype=float)[None, :]
    kind_of_block = pick(law, np.zeros(count.size, dtype=np.int64), rng)
    block = np.repeat(np.arange(count.size), count)
    kind = kind_of_block[block]
    low, high = np.array(national.QUARTERS_AGES).T
    age = rng.integers(low[kind], high[kind] + 1)
    sex = rng.random(block.size) >= np.array(national.QUARTERS_MEN)[kind]
    return Residents(block, kind + 1, sex.astype(np.int64), age)
