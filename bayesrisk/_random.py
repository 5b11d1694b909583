"""Randomness by one keyword: what a seed may be, and the generator that it gives."""

import reprlib
from typing import Any

import numpy as np

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

#: What gives a generator.
Seed = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
_MAX_BITS = 1024


def generator(seed: Any, name: str = "rng", *, optional: bool = False) -> np.random.Generator:
    """Return a NumPy generator from a seed, by a whitelist of types.

    NumPy itself takes nested sequences and other objects, of any size and depth, and some of them
    end the interpreter.

    Parameters
    ----------
    seed : Generator, BitGenerator, SeedSequence or int
        A generator is returned as it is; a whole number must be >= 0 and have at most 1024 bits.
    name : str, default "rng"
        How messages call it.
    optional : bool, default False
        Whether None is allowed: 128 bits of entropy of the operating system.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, (np.random.BitGenerator, np.random.SeedSequence)):
        return np.random.default_rng(seed)
    if seed is None and optional:
        return np.random.default_rng()
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        number = int(seed)
        if number < 0:
            raise ArgumentError(f"{name} must be >= 0 as a seed, got {number}")
        if number.bit_length() > _MAX_BITS:
            raise ArgumentError(
                f"{name} must have at most {_MAX_BITS} bits as a seed, got {number.bit_length()}"
            )
        return np.random.default_rng(number)
    raise ArgumentTypeError(
        f"{name} must be a numpy Generator, BitGenerator, SeedSequence or a whole number >= 0, "
        f"got {reprlib.repr(seed)}"
    )


def named_stream(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers that belong to a name, such as the code of a place.

    ``default_rng(SeedSequence(seed, spawn_key=...))``, the key the bytes of the name: the same
    whatever other names there are.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(name.encode())))
