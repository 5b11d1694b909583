"""What may be a seed: a whitelist, since NumPy takes more, and dies of some of it."""

import numpy as np
import pytest

from bayesrisk._base.randomness import generator
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

CYCLIC = []
CYCLIC.append(CYCLIC)
DEEP = 1
for _ in range(50_000):
    DEEP = [DEEP]


def test_every_kind_of_seed_gives_its_generator():
    mine = np.random.default_rng(3)
    assert generator(mine) is mine
    same = [5, np.int64(5), np.uint8(5), np.random.SeedSequence(5), np.random.PCG64(5)]
    assert len({generator(seed).integers(2**62) for seed in same}) == 1
    assert generator(2**1023).random() == np.random.default_rng(2**1023).random()


def test_none_only_where_entropy_is_wanted():
    with pytest.raises(ArgumentTypeError, match="random_state must be a numpy Generator"):
        generator(None, "random_state")
    assert generator(None, optional=True).random() != generator(None, optional=True).random()


@pytest.mark.parametrize(
    "seed",
    [
        *(True, 1.0, "1", [1], np.array(1), CYCLIC, DEEP, np.random.RandomState(1)),
        np.datetime64("NaT", "s"),
    ],
    ids=lambda seed: type(seed).__name__,
)
def test_everything_else_is_refused_by_name(seed):
    with pytest.raises(ArgumentTypeError, match=r"^rng must be a numpy Generator, BitGenerator"):
        generator(seed)


@pytest.mark.parametrize(("seed", "match"), [(-1, ">= 0"), (2**1024, "at most 1024 bits")])
def test_numbers_have_bounds(seed, match):
    with pytest.raises(ArgumentError, match=match):
        generator(seed)
