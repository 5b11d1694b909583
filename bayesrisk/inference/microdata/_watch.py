"""What chains are watched by besides the questions: their log density, and where they stand."""

from __future__ import annotations

import numpy as np

from bayesrisk._types import FloatArray, IntArray

__all__ = ["Watch"]


class Watch:
    """Log density of every state that is kept, and its shadow along random directions.

    A question whose answer never changes says nothing about whether its chains move; these do.

    Parameters
    ----------
    chains, draws, unknowns : int
        Sizes.
    rng : Generator
        For the directions.
    """

    def __init__(self, chains: int, draws: int, unknowns: int, rng: np.random.Generator) -> None:
        self._directions = rng.normal(size=(2, unknowns))
        self._seen = np.zeros((3, chains, draws))
        self._next = [0] * chains

    def note(self, chain: int, x: IntArray, density: float) -> None:
        """Note a state."""
        at = self._next[chain]
        self._seen[0, chain, at] = density
        self._seen[1:, chain, at] = self._directions @ x
        self._next[chain] = at + 1

    @property
    def variables(self) -> list[FloatArray]:
        """What was seen, (chains, draws) each, but for what changed by no more than rounding."""
        spread = np.ptp(self._seen, axis=(1, 2))
        size = np.abs(self._seen).max(axis=(1, 2))
        return [v for v, s, m in zip(self._seen, spread, size, strict=True) if s > 1e-9 * (1 + m)]
