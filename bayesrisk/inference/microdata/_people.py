"""The chain over lists of people, for systems whose published counts are noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata import _people_kernels as kernels
from bayesrisk.inference.microdata.system import MAX_SUM, Layer, MicrodataSystem
from bayesrisk.release import Likelihood, NoiseSpec

__all__ = ["PeopleModel", "first_state", "people_model", "suits"]

_ROOM, _MORE = 1.5, 8  # slots for every person that a place is thought to have, and some more
_CHANCES = (0.5, 0.1, 0.1, 0.15, 0.15)  # of the kinds of move


@dataclass(frozen=True)
class PeopleModel:
    """Arrays of the kernels, and what the first state needs.

    Attributes
    ----------
    model : Model
        What does not change.
    shape : tuple of int
        Places and classes.
    likely : ndarray of int64
        A likely number of people of every place; the number itself where it is published.
    capacity : ndarray of int64
        The largest number that a chain can give to every place.
    rows : int
        Number of rows.
    """

    model: kernels.Model
    shape: tuple[int, int]
    likely: IntArray
    capacity: IntArray
    rows: int


def suits(system: MicrodataSystem) -> bool:
    """Return whether the chain can run: counts are noisy, or are numbers of people of places.

    Any step then has a chance.  Rounded counts forbid some sums, and steps of one or two people
    may not lead around them.
    """
    for layer in system.layers:
        if layer.exact.any() and layer.geoids.size < len(system.places):
            return False
        for cell, law in enumerate(layer.likelihoods):
            if not isinstance(law, NoiseSpec) and not (law.exact and _counts_all(layer, cell)):
                return False
    return True


def _counts_all(layer: Layer, cell: int) -> bool:
    row = layer.weights[[cell], :]
    return bool(row.nnz == row.shape[1] and np.all(row.data == 1))


def people_model(system: MicrodataSystem) -> PeopleModel:
    """Return the arrays of the chain.

    Raises
    ------
    ArgumentError
        If the place has too many people for it.
    DataError
        If exact numbers of people contradict each other or the prior.
    """
    prior, n_places = system.prior, len(system.places)
    shares = system.classes.mass(prior.shares)
    fixed = _fixed_sizes(system)
    likely = np.where(fixed >= 0, fixed, _likely_sizes(system))
    if prior.size is None:
        capacity = np.where(fixed >= 0, fixed, (likely * _ROOM).astype(np.int64) + _MORE)
        log_n = np.zeros(int(capacity.max()) + 2)
    else:
        most = int(np.flatnonzero(prior.size)[-1])
        if np.any(fixed > most):
            raise DataError(
                f"release contradicts the prior: a place has {fixed.max()} records, and size "
                f"allows at most {most}"
            )
        capacity = np.where(fixed >= 0, fixed, most)
        likely = np.minimum(likely, capacity)
        with np.errstate(divide="ignore"):
            log_n = np.log(np.append(prior.size[: most + 1], [0.0, 0.0]))
    first = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)
    if first[-1] > MAX_SUM:
        raise ArgumentError(f"place must have at most {MAX_SUM} people, got about {first[-1]}")
    base, ptr, q, coef, rows = _layout(system.layers, system.classes.size)
    off, table = _tables(system.layers, int(first[-1]))
    keep, alias = _alias(shares)
    shape = system.classes.shape
    chance = np.array(_CHANCES)
    if np.all(fixed >= 0):
        chance[[kernels.MOVE, kernels.BIRTH]] = 0.0
    if n_places == 1:
        chance[[kernels.MOVE, kernels.SWAP]] = 0.0
    model = kernels.Model(
        base=base,
        ptr=ptr,
        q=q,
        coef=coef,
        off=off,
        table=table,
        slot_place=np.repeat(np.arange(n_places), capacity),
        first=first,
        log_size=log_n,
        mass=shares * (prior.concentration or 1.0),
        alias=alias,
        keep=keep,
        concentration=float(prior.concentration or 0.0),
        stride=np.array([int(np.prod(shape[m + 1 :])) for m in range(len(shape))], np.int64),
        bins=np.array(shape, np.int64),
        chance=np.cumsum(chance / chance.sum()),
    )
    return PeopleModel(model, (n_places, shares.size), likely, capacity, rows)


def first_state(of: PeopleModel, rng: np.random.Generator) -> kernels.State:
    """Return a state drawn from the prior, with about the published numbers of people."""
    model, (n_places, n_classes) = of.model, of.shape
    who = np.zeros(int(model.first[-1]), np.int64)
    count = of.likely.copy()
    x = np.zeros((n_places, n_classes), np.int64)
    sums = np.zeros(of.rows, np.int64)
    shares = model.mass / model.mass.sum()
    for place in range(n_places):
        drawn = rng.choice(n_classes, size=int(count[place]), p=shares)
        who[model.first[place] : model.first[place] + count[place]] = drawn
        x[place] = np.bincount(drawn, minlength=n_classes)
    for level in range(model.base.shape[0]):
        part = slice(model.ptr[level, 0], model.ptr[level, -1])
        weights = sp.csc_array(
            (model.coef[part], model.q[part], model.ptr[level] - model.ptr[level, 0]),
            shape=(int(model.q[part].max(initial=-1)) + 1, n_classes),
        )
        for place in range(n_places):
            base = model.base[level, place]
            found = weights @ x[place]
            sums[base : base + found.size] += found
    density = np.array([float(model.table[model.off + sums].sum())])
    return kernels.State(who, count, x, sums, np.zeros((len(kernels.KINDS), 2), np.int64), density)


def _fixed_sizes(system: MicrodataSystem) -> IntArray:
    """Return the number of people of every finest place where it is published, else -1."""
    fixed = np.full(len(system.places), -1, np.int64)
    for layer in system.layers:
        if layer.geoids.size == len(system.places):
            for cell in np.flatnonzero(layer.exact):
                told = ~layer.hidden[:, cell]
                if np.any(told & (fixed >= 0) & (fixed != layer.given[:, cell])):
                    raise DataError("release contradicts itself: two numbers of records differ")
                fixed[told] = layer.given[told, cell]
    return fixed


def _likely_sizes(system: MicrodataSystem) -> IntArray:
    """Return the number of people that the noisy tables of the finest level make likely.

    Every table whose cells hold each class once is a measurement of the total; they are weighed
    by the inverse of their variance.
    """
    total, weight = np.zeros(len(system.places)), 0.0
    layer = system.layers[-1]
    names = np.array([name for name, _ in layer.names])
    for name in dict.fromkeys(names.tolist()):
        cells = np.flatnonzero(names == name)
        covers = np.asarray(layer.weights[cells, :].sum(axis=0)).ravel()
        if np.all(covers == 1) and not layer.hidden[:, cells].any():
            variance = sum(_variance(layer.likelihoods[c]) for c in cells)
            total += layer.given[:, cells].sum(axis=1) / variance
            weight += 1.0 / variance
    if not weight:
        size = system.prior.size
        mean = 1.0 if size is None else float(np.arange(size.size) @ size)
        return np.full(len(system.places), max(1, round(mean)), np.int64)
    return np.maximum(np.rint(total / weight), 0).astype(np.int64)


def _variance(law: Likelihood) -> float:
    return float(law.to_law().var()) if isinstance(law, NoiseSpec) else 1e-6


def _layout(layers: tuple[Layer, ...], n_classes: int) -> tuple[Any, ...]:
    """Return the rows of every class at every level, and where the rows of places begin."""
    base, ptr, q, coef = [], [], [], []
    start = entry = 0
    for layer in layers:
        columns = sp.csc_array(layer.weights)
        columns.sort_indices()
        base.append(start + layer.belongs * columns.shape[0])
        ptr.append(entry + columns.indptr.astype(np.int64))
        q.append(columns.indices.astype(np.int64))
        coef.append(columns.data.astype(np.int64))
        start += layer.given.size
        entry += columns.nnz
    return (
        np.array(base, np.int64),
        np.array(ptr, np.int64).reshape(len(layers), n_classes + 1),
        np.concatenate(q),
        np.concatenate(coef),
        start,
    )


def _tables(layers: tuple[Layer, ...], people: int) -> tuple[IntArray, FloatArray]:
    """Return, for every row, where the log likelihood of the sum 0 stands in one long table.

    A likelihood depends on the difference of the published count and the sum alone, so one table
    serves all rows of a law.
    """
    heaviest = max((int(layer.weights.data.max(initial=1)) for layer in layers), default=1)
    most = (people + 2) * heaviest
    low = max(0, *(int(layer.given.max(initial=0)) for layer in layers))
    high = most - min(0, *(int(layer.given.min(initial=0)) for layer in layers))
    if low + high + 1 > MAX_SUM:
        raise ArgumentError(f"release must have counts of at most {MAX_SUM}, got {low}")
    differences = np.arange(-low, high + 1)  # sum less published count
    places: dict[Likelihood | None, int] = {}
    tables: list[FloatArray] = []
    offsets: list[IntArray] = []
    for layer in layers:
        for law in layer.likelihoods:
            for hidden in (False, True):
                key = None if hidden else law
                if key not in places:
                    places[key] = len(tables) * differences.size + low
                    tables.append(_log_weights(key, differences))
        at = np.array([places[law] for law in layer.likelihoods], np.int64)
        row = np.where(layer.hidden, places[None], at[None, :] - layer.given)
        offsets.append(row.ravel())
    return np.concatenate(offsets), np.concatenate(tables)


def _log_weights(law: Likelihood | None, differences: IntArray) -> FloatArray:
    """Return the log likelihood of sums less the published count."""
    if law is None:
        return np.zeros(differences.size)
    if isinstance(law, NoiseSpec):
        return np.asarray(law.to_law().logpmf(-differences), dtype=float)
    if law.exact:  # the number of people of a place, which no step changes
        return np.where(differences == 0, 0.0, -np.inf)
    raise ArgumentError(f"release must have noisy counts for this chain, got {law.kind}")


def _alias(shares: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return Walker's tables: a class is kept with probability ``keep``, or replaced."""
    n = shares.size
    keep = shares / shares.sum() * n
    alias = np.arange(n)
    small, large = list(np.flatnonzero(keep < 1.0)), list(np.flatnonzero(keep >= 1.0))
    while small and large:
        less, more = small.pop(), large[-1]
        alias[less] = more
        keep[more] -= 1.0 - keep[less]
        if keep[more] < 1.0:
            small.append(large.pop())
    keep[small + large] = 1.0
    return keep, alias.astype(np.int64)
