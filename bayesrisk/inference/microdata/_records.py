"""Which records are there: expected numbers, and the most probable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd

from bayesrisk._types import FloatArray, IntArray, TextArray
from bayesrisk.inference.microdata.classes import Classes
from bayesrisk.inference.microdata.system import MicrodataSystem

_ROOM = 2**25  # numbers that the tallies of all chains may hold


class Ranking(Protocol):
    """The law of every unknown count."""

    @property
    def size(self) -> int:
        """Number of unknowns."""

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""


@dataclass(frozen=True)
class GroupLaws:
    """Laws of the counts of groups whose records are exchangeable.

    Attributes
    ----------
    laws : list of list of ndarray
        For every chain (one if exact) and group, the probability of 0, 1, ... records.
    group : ndarray of int64
        Group of every unknown; -1 where there is nobody.
    mass : ndarray of float
        Share or Dirichlet parameter of every group.
    weight : ndarray of float
        Part of it that every unknown has.
    dirichlet : bool
        Whether these are Dirichlet parameters.
    """

    laws: list[list[FloatArray]]
    group: IntArray
    mass: FloatArray
    weight: FloatArray
    dirichlet: bool

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.group.size

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        found = np.zeros((len(self.laws), unknowns.size))
        order = np.argsort(self.group[unknowns], kind="stable")
        groups, starts = np.unique(self.group[unknowns][order], return_index=True)
        for g, at in zip(groups, np.split(order, starts[1:]), strict=True):
            if g < 0:
                continue
            n = np.arange(k, max(laws[g].size for laws in self.laws))
            weights, back = np.unique(self.weight[unknowns[at]], return_inverse=True)
            tails = self._tails(k, n, weights, float(self.mass[g]))
            for chain, laws in enumerate(self.laws):
                law = laws[g][k:]
                found[chain, at] = (law @ tails[: law.size])[back]
        return found

    def _tails(self, k: int, n: IntArray, weights: FloatArray, mass: float) -> FloatArray:
        """Return P(x >= k | n records of the group) for unknowns of these weights."""
        from scipy.stats import betabinom, binom  # slow to import

        found = np.ones((n.size, weights.size))
        part = np.flatnonzero(weights < 1.0)
        if part.size and n.size:
            w = weights[part]
            if self.dirichlet:
                each = betabinom.pmf(
                    np.arange(k)[:, None, None], n[:, None], mass * w, mass * (1.0 - w)
                )
                below = np.asarray(each).sum(axis=0)
                found[:, part] = np.maximum(0.0, 1.0 - below)
            else:
                found[:, part] = binom.sf(k - 1, n[:, None], w)
        return found


@dataclass
class Tally:
    """How often chains saw k or more records, for every unknown.

    Attributes
    ----------
    chains, size : int
        Number of chains and of unknowns.
    """

    chains: int
    size: int
    _seen: list[list[IntArray]] = field(default_factory=list)
    _draws: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen = [[] for _ in range(self.chains)]
        self._draws = [0] * self.chains
        self._most = max(1, _ROOM // (self.chains * max(self.size, 1)))
        self._total = np.zeros((self.chains, self.size))

    @property
    def mean(self) -> FloatArray:
        """Mean count of every unknown."""
        found: FloatArray = self._total.sum(axis=0) / sum(self._draws)
        return found

    def note(self, chain: int, x: IntArray) -> None:
        """Note a state."""
        self._draws[chain] += 1
        self._total[chain] += x
        seen, at, k = self._seen[chain], np.flatnonzero(x), 0
        values = x[at]
        while at.size and k < self._most:
            if k == len(seen):
                seen.append(np.zeros(self.size, np.int32))
            seen[k][at] += 1
            k += 1
            more = values > k
            at, values = at[more], values[more]

    def at_least(self, k: int, unknowns: IntArray) -> FloatArray:
        """Return P(x >= k) for some unknowns, shape (chains, unknowns)."""
        found = np.zeros((self.chains, unknowns.size))
        for chain, seen in enumerate(self._seen):
            if k <= len(seen):
                found[chain] = seen[k - 1][unknowns] / self._draws[chain]
        return found


def ranked(
    law: Ranking, system: MicrodataSystem, cell_of: IntArray, names: list[str], top: int
) -> pd.DataFrame:
    """Return the most probable records: unknown, number of them, probability and its error."""
    left = np.arange(law.size)
    found: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    best, k = np.zeros(0), 1
    while left.size:
        each = law.at_least(k, left)
        value = each.mean(axis=0)
        error = np.zeros(value.size)
        if len(each) > 1:
            error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        kept = np.flatnonzero(value > 0.0)
        found.append((left[kept], np.full(kept.size, k), value[kept], error[kept]))
        best = np.sort(np.concatenate([best, value[kept]]))[-top:]
        # One more of a kind is never the more probable.
        limit = best[0] if best.size == top else 0.0
        left, k = left[value > limit], k + 1
    unknown, number, value, error = (np.concatenate([part[i] for part in found]) for i in range(4))
    order = np.lexsort((number, unknown, -value))[:top]
    frame = _frame(system, cell_of[unknown[order]])
    frame["known"] = [names[u] for u in unknown[order]]
    return frame.assign(number=number[order], probability=value[order], error=error[order])


def expected_of(system: MicrodataSystem, cell_of: IntArray, mean: FloatArray) -> pd.DataFrame:
    """Return one row for each class that may be there, with the mean of its number."""
    every = np.bincount(cell_of, mean, minlength=system.cells)
    every += system.known.settled.toarray().ravel()
    kept = np.flatnonzero(every > 0.0)
    return _frame(system, kept).assign(expected=every[kept])


def _frame(system: MicrodataSystem, cells: IntArray) -> pd.DataFrame:
    """Return place and codes of classes."""
    of = system.classes
    place, cls = np.divmod(cells, of.size)
    places: TextArray = system.places[place]
    frame = pd.DataFrame({"place": places})
    for name, bins in zip(of.schema.names, np.unravel_index(cls, of.shape), strict=True):
        frame[name] = np.array(_codes(of, name))[bins]
    return frame


def _codes(of: Classes, name: str) -> list[str]:
    """Return the codes of every bin of an attribute."""
    attribute = of.schema.attribute(name)
    told = []
    for b in range(int(of.bins[name].max()) + 1):
        codes = np.flatnonzero(of.bins[name] == b) + attribute.first
        runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        told.append(",".join(str(r[0]) if r.size == 1 else f"{r[0]}-{r[-1]}" for r in runs))
    return told
