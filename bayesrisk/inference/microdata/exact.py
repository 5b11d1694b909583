"""The exact law of the records of a place; which are there, and how many to expect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bayesrisk._validation import FloatArray, IntArray, TextArray
from bayesrisk.exceptions import DataError
from bayesrisk.inference.microdata.boxes import box_laws
from bayesrisk.inference.microdata.contraction import Contraction, NoStateError, sums_of
from bayesrisk.inference.microdata.knowledge import Classes
from bayesrisk.inference.microdata.sides import SideSums, sides_of
from bayesrisk.inference.microdata.system import MicrodataSystem, SmallSystem, log_size
from bayesrisk.release import Likelihood, NoiseSpec

# The exact law of a small system: its rows as sums with a least and a largest value, contracted.
#
# Noise gives a weight to every sum, most of them next to none.  Sums whose log weight lies more
# than tau below the largest of their row are left out.  Their share of the whole is at most
#
#     K exp(-tau) A exp(sum of the largest log weights) / Z,
#
# K being the number of noisy rows, Z the weight of what is kept, and A the weight of all points
# under the prior.  It is computed, and tau raised until it is below 1e-13.


_REACH, _LEFT_OUT = 60.0, 30.0  # tau at first; -log of the share that may be left out
_FIRST_REACH = 20.0  # where a first look is cheap and says how far is far enough
_CONTRADICTION = "release contradicts itself or the prior: no counts agree with all of it"
_CLASSES, _NUMBERS = 2**12, 2**12  # of a place, and values of one of its sums, that are for boxes


@dataclass(frozen=True)
class ExactLaw:
    """Laws of groups, and of functions of them."""

    laws: tuple[FloatArray, ...]  # probability of the counts 0, 1, ... of every group
    functions: tuple[FloatArray, ...]  # probability of the values 0, 1, ... of every function
    pairs: int  # pairs of states that were joined


def weigh(
    system: SmallSystem,
    limit: int,
    functions: Sequence[IntArray] = (),
) -> ExactLaw:
    """Return the exact laws of the groups, and of linear functions of them, as coefficients.

    ``limit`` is the number of pairs of states that may be joined.
    """
    sides = sides_of(system)
    if sides is None:
        return _whole(system, limit, functions)
    try:
        sums = SideSums(system, sides, limit)
        laws, of_functions = sums.laws(), []
        for function in functions:
            if sides.see(function):
                of_functions.append(sums.law_of(function))
            elif (others := sides_of(system, [function])) is not None:
                of_functions.append(SideSums(system, others, limit).law_of(function))
            else:
                of_functions += _whole(system, limit, [function]).functions
    except NoStateError:
        raise DataError(_CONTRADICTION) from None
    return ExactLaw(laws, tuple(of_functions), sums.pairs)


def _whole(system: SmallSystem, limit: int, functions: Sequence[IntArray]) -> ExactLaw:
    """Return the laws by one contraction of each component."""
    n_groups = system.matrix.shape[1]
    blocks: Any = [[None, system.matrix.T], [system.matrix, None]]
    label = connected_components(sp.block_array(blocks), directed=False)[1][:n_groups]
    laws: list[FloatArray] = [np.ones(1)] * n_groups
    of_functions = [np.ones(1) for _ in functions]
    pairs, columns = 0, sp.csc_array(system.matrix)
    for part in np.unique(label):
        members = np.flatnonzero(label == part)
        rows = np.unique(columns[:, members].indices).astype(np.int64)
        found, reach = _contracted(system, rows, members, limit - pairs)
        pairs += found.pairs
        for group, law in zip(members, found.laws(), strict=True):
            laws[group] = law
        for f, function in enumerate(functions):
            own = function[members]
            if not own.any():
                continue
            if np.count_nonzero(own) == 1:  # a group's law, spread out
                law = np.zeros(int(own.max()) * (laws[members[own.argmax()]].size - 1) + 1)
                law[:: int(own.max())] = laws[members[own.argmax()]]
            else:
                sums = sums_of(system, rows, members, reach, own[None])
                kept = Contraction(sums, limit - pairs, [rows.size])
                pairs += kept.pairs
                values, probability = kept.kept()
                law = np.bincount(values[:, 0], probability).astype(np.float64)
            of_functions[f] = np.convolve(of_functions[f], law)
    return ExactLaw(tuple(laws), tuple(of_functions), pairs)


def _contracted(
    system: SmallSystem, rows: IntArray, members: IntArray, limit: int
) -> tuple[Contraction, float]:
    """Return the contraction of a component, and how far below their largest weights are kept."""
    noisy = rows[system.noisy[rows]]
    most = sum(float(system.soft[r].max()) for r in noisy)
    reach, needed = _REACH, math.inf if noisy.size else 0.0
    while True:
        try:
            found = Contraction(sums_of(system, rows, members, reach), limit)
        except NoStateError:
            if all(system.soft[r].min() >= system.soft[r].max() - reach for r in noisy):
                raise DataError(_CONTRADICTION) from None
            reach *= 4.0
            continue
        if noisy.size:
            prior = np.setdiff1d(rows[~system.hard[rows]], noisy)
            every = Contraction(sums_of(system, prior, members, math.inf), limit).log_weight
            needed = math.log(noisy.size) + every + most + _LEFT_OUT - found.log_weight
        if needed <= reach:
            return found, reach
        reach = needed + 1.0


# The exact law of one place without more knowledge, where its sums have few values: on boxes.  What
# depends on the tables or the noise alone is made once.


class PlaceLaw(NamedTuple):
    """Groups of the unknowns of a place, and the mean number of records of each."""

    group: IntArray  # group of every unknown, -1 where there is nobody, and its share of the group
    weight: FloatArray
    mass: FloatArray  # share, or Dirichlet parameter, of every group
    mean: FloatArray


def place_law(system: MicrodataSystem, limit: int) -> PlaceLaw | None:
    """Return the exact law of a place on boxes; None where it has too many values for them.

    ``limit`` is the number of pairs of weights that may be looked at for one law.
    """
    prior, known = system.prior, system.known
    if len(system.places) > 1 or prior.size is None or known.partly or known.exactly:
        return None
    if known.settled.nnz or system.classes.size > _CLASSES or prior.size.size > _NUMBERS:
        return None
    mass = system.classes.mass(prior.shares) * (prior.concentration or 1.0)
    told = [layer.read(0) for layer in system.layers]
    full = np.concatenate(
        [layer.weights.toarray()[t] for layer, (t, _, _) in zip(system.layers, told, strict=True)]
    )
    group, matrix = _merged(full.tobytes(), (mass > 0.0).tobytes())
    total = np.bincount(group[group >= 0], mass[group >= 0], matrix.shape[1]).astype(np.float64)
    weight = np.where(group >= 0, mass / total[group], 0.0)
    cells = [
        (law, int(given), int(layer.off[0, c]))
        for layer, own in zip(system.layers, told, strict=True)
        for c, law, given in zip(*own, strict=True)
    ]
    most = (prior.size.size - 1) * int(full.max(initial=1))
    # Cells of a table have one law, of which the errors are looked up once.
    noises = {id(law): law for law, _, _ in cells if isinstance(law, NoiseSpec)}
    of_number = log_size(np.arange(prior.size.size), prior)
    reach, needed = _FIRST_REACH if noises else _REACH, 0.0
    while True:
        errors = {key: _noise(law, reach) for key, law in noises.items()}
        sums = [_sum_weights(*cell, errors.get(id(cell[0])), most) for cell in cells]
        if not all(own.size for _, own in sums):
            return None  # too many, or none
        low = np.array([*(least for least, _ in sums), 0], np.int64)
        rows = [*(own for _, own in sums), of_number]
        high = low + np.array([own.size - 1 for own in rows], np.int64)
        top = int(
            np.max(np.min(np.where(matrix > 0, high[:, None] // matrix.clip(1), high[-1]), 0))
        )
        priors = _group_priors(total, top, prior.concentration)
        found = box_laws(matrix, low, rows, priors, limit)
        if found is None:
            if reach >= _REACH:
                return None
            reach = _REACH
            continue
        if noises:
            # All points have at most weight 1 under the prior.
            peak = {key: own.max() for key, own in errors.items()}
            peaks = [peak[id(law)] for law, _, _ in cells if id(law) in peak]
            needed = math.log(len(peaks)) + float(sum(peaks)) + _LEFT_OUT - found[0]
        if needed <= reach:
            return PlaceLaw(group, weight, total, found[1] @ np.arange(top + 1))
        reach = 5.0 * math.ceil(needed / 5.0 + 0.2)  # few different ones: noise is weighed once


@lru_cache(maxsize=256)
def _merged(matrix: bytes, alive: bytes) -> tuple[IntArray, IntArray]:
    """Return the group of every class, by its column, and the columns of groups and of all."""
    there = np.frombuffer(alive, np.bool_)
    full = np.frombuffer(matrix, np.int64).reshape(-1, there.size)
    columns, first, inverse = np.unique(
        full[:, there], axis=1, return_index=True, return_inverse=True
    )
    group = np.full(there.size, -1, np.int64)
    group[there] = np.argsort(np.argsort(first))[inverse.ravel()]
    merged = np.vstack([columns[:, np.argsort(first)], np.ones((1, first.size), np.int64)])
    return group, merged


@lru_cache(maxsize=256)
def _noise(law: NoiseSpec, reach: float) -> FloatArray:
    """Return the log weights of errors -h to h, those within ``reach`` of the largest; or none."""
    noise, h = law.to_law(), 1
    while float(noise.logpmf(h)) >= float(noise.logpmf(0)) - reach:
        h *= 2
        if h > _NUMBERS:
            return np.zeros(0)
    weights: FloatArray = np.asarray(noise.logpmf(np.arange(-h, h + 1)), dtype=float)
    near: FloatArray = weights[weights >= weights[h] - reach]
    return near


@lru_cache(maxsize=4096)
def _coarsened(law: Likelihood, given: int, most: int) -> tuple[int, FloatArray]:
    """Return the least count that may be published as another, and the log weights from there on.

    Counts above ``most`` are left out.
    """
    low, high = (int(end) for end in law.support(given))
    counts = np.arange(low, min(high, max(most, low)) + 1)
    if counts.size > _NUMBERS:
        return 0, np.zeros(0)
    with np.errstate(divide="ignore"):
        return low, np.log(np.asarray(law.probability(given, counts), np.float64))


def _sum_weights(
    law: Likelihood, given: int, off: int, errors: FloatArray | None, most: int
) -> tuple[int, FloatArray]:
    """Return the least sum that a published count allows, and the log weights from there on.

    ``off`` of the count are known records; ``most`` is the largest sum of the others; ``errors``
    are those of :func:`_noise`, where there is noise.
    """
    if law.exact:
        return given - off, np.zeros(1)
    if errors is not None:
        weights, least = errors, given - off - errors.size // 2
    else:
        least, weights = _coarsened(law, given, most + off)
        least -= off
    return max(least, 0), weights[max(-least, 0) :]


def _group_priors(mass: FloatArray, top: int, concentration: float | None) -> FloatArray:
    """Return the log weights (groups, top + 1) of 0, 1, ... records of every group."""
    j = np.arange(top)
    step = mass[:, None] + j if concentration is not None else np.tile(mass[:, None], (1, top))
    found = np.zeros((mass.size, top + 1))
    np.cumsum(np.log(step) - np.log1p(j), axis=1, out=found[:, 1:])
    return found


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
    """Laws of the counts of groups whose records are exchangeable."""

    # for every chain (one if exact) and group, the probability of 0, 1, ... records
    laws: list[list[FloatArray]]
    group: IntArray  # group of every unknown; -1 where there is nobody
    mass: FloatArray  # share or Dirichlet parameter of every group
    weight: FloatArray  # part of it that every unknown has
    dirichlet: bool  # whether these are Dirichlet parameters

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
    """Frequencies of k or more records in the draws of chains, for every unknown."""

    chains: int  # number of chains and of unknowns
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

    def add(self, chain: int, counts: IntArray) -> None:
        """Count the records of states of a chain, (states, unknowns)."""
        self._draws[chain] += len(counts)
        self._total[chain] += counts.sum(axis=0)
        seen, at, k = self._seen[chain], np.flatnonzero(counts.any(axis=0)), 0
        values = counts[:, at]
        while at.size and k < self._most:
            if k == len(seen):
                seen.append(np.zeros(self.size, np.int32))
            seen[k][at] += (values > k).sum(axis=0, dtype=np.int32)
            k += 1
            more = (values > k).any(axis=0)
            at, values = at[more], values[:, more]

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


def _codes(classes: Classes, name: str) -> list[str]:
    """Return the codes of every bin of an attribute."""
    attribute = classes.schema.attribute(name)
    told = []
    for b in range(int(classes.bins[name].max()) + 1):
        codes = np.flatnonzero(classes.bins[name] == b) + attribute.first
        runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
        told.append(",".join(str(r[0]) if r.size == 1 else f"{r[0]}-{r[-1]}" for r in runs))
    return told
