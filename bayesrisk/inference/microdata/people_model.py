"""Arrays of the Markov chain over lists of people, built from a system of published counts."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.prior import pieces
from bayesrisk.inference.microdata.system import (
    MAX_SUM,
    MAX_UNKNOWNS,
    Layer,
    MicrodataSystem,
    Stratum,
)
from bayesrisk.release import Likelihood, NoiseSpec

# People of one finest place of whom the same is known beforehand are a *part* of it; without such
# knowledge a place has one part.  Every part has slots, the first of them occupied; each holds the
# class of a person.  A *level* is a layer of rows: row ``base[level, part] + q`` is the q-th
# published cell of the place at that level in which the part lies.  The cells of a level are dealt
# to *tracks* such that a class has at most one cell of each: ``cell[level, class, track]``, with
# the weight ``coef`` there, or -1.  The log likelihood of row r is ``table[spot[r]]``: the spot
# moves with the sum, one entry for one person.

Index = int | np.int64
Rng = np.random.Generator

REDRAW, MOVE, BIRTH, SWAP, EXCHANGE, LEAP = range(6)
KINDS = ("redraw", "move", "birth or death", "swap", "exchange", "leap")


class ModelArrays(NamedTuple):
    """Arrays of a chain over lists of people that stay fixed during a run."""

    base: IntArray  # (levels, parts)
    cell: NDArray[np.int32]  # (levels, classes, tracks)
    coef: NDArray[np.int32]
    table: FloatArray
    part: IntArray  # part of every slot
    first: IntArray  # first slot of every part, and the end
    home: IntArray  # first slot of the place of every part
    last_part: IntArray  # last part of that place
    area: IntArray  # (2, parts): first slot of the next larger area of a part, and the end
    open: BoolArray  # whether the number of people of a part may change
    size_ptr: IntArray  # log P(n) of a part is log_size[size_ptr[part] + n]
    log_size: FloatArray
    law: IntArray  # of every part: which row of the next four
    mass: FloatArray  # (laws, classes): share (of sum 1) or Dirichlet parameter of every class
    alias: IntArray  # Walker's tables of the shares
    keep: FloatArray
    concentration: FloatArray  # sum of the Dirichlet parameters; 0: known shares
    stride: IntArray  # classes are C-ordered bins of attributes
    bins: IntArray
    chance: FloatArray  # cumulative probabilities of the kinds of move
    leap: IntArray  # by how many people a leap changes their number
    leap_chance: FloatArray  # cumulative probabilities of these


class ChainState(NamedTuple):
    """State that a sweep updates in place."""

    occupant: IntArray  # class in every slot
    people: IntArray  # in every part
    x: IntArray  # (parts, classes)
    spot: IntArray  # of every row, in the table
    tally: IntArray  # (kinds, 2): proposed, accepted
    density: FloatArray  # log likelihood, so far
    work: FloatArray  # (classes,)


_SAME = 1e-12  # difference that rounding explains
_ROOM, _MORE = 1.5, 8  # slots for every person that a place is thought to have, and some more
_FAR = 8.0  # or so many standard deviations of what is thought: a normal error has 1e-15 beyond
_CHANCES = (0.25, 0.4, 0.1, 0.2, 0.05, 0.0)  # of the kinds of move
_LEAST_LEAPS, _MOST_LEAPS = 1e-3, 0.1  # chance of a leap, which costs as much as all other moves


@dataclass(frozen=True)
class PeopleModel:
    """A chain's arrays, and what its starting state is made from."""

    arrays: ModelArrays
    strata: tuple[Stratum, ...]  # the parts
    classes: int  # number of classes
    likely: IntArray  # A likely number of people of every part; the number itself where it is known
    # where the log likelihood of every row stands if there is nobody but those whose class is known
    spot: IntArray
    # (runs, 2): first and last number of people of a place, those who are known with them, of the
    # runs of numbers that its law has nothing between
    runs: IntArray

    @property
    def unknown_cell(self) -> IntArray:
        """Position of every count of a state among the system's, ``place * classes + class``."""
        places = np.array([s.place for s in self.strata], np.int64)
        return np.add.outer(places * self.classes, np.arange(self.classes)).ravel()

    def sizes(self, share: float) -> IntArray:
        """Return possible starting numbers of people of every part; share 0 gives the most likely.

        Larger shares, up to 1, give numbers in runs further and further from the likely ones.
        """
        start_sizes = self.likely.copy()
        for part in np.flatnonzero(self.arrays.open):
            stratum, n = self.strata[part], self.likely[part]
            low, high = np.maximum(self.runs.T - stratum.complement, 0)
            near = np.clip(n, low, high)[self.runs[:, 1] >= stratum.complement]
            if not stratum.mass.any():
                start_sizes[part] = 0
            elif near.size:
                order = np.argsort(np.abs(near - n), kind="stable")
                start_sizes[part] = near[order[int(share * near.size)]]
        return start_sizes


def suits(system: MicrodataSystem) -> bool:
    """Return whether the chain can be used: all counts are noisy or totals of finest places.

    Then any step is possible. Rounded counts forbid some sums, and steps of one or two people may
    not lead around them. Exactly known sets must not overlap.
    """
    for layer in system.layers:
        if any(law.rule is not None for law in layer.likelihoods) and layer.hidden.any():
            return False
        if layer.exact.any() and layer.geoids.size < len(system.places):
            return False
        for cell, law in enumerate(layer.likelihoods):
            if not isinstance(law, NoiseSpec) and not (law.exact and _counts_all(layer, cell)):
                return False
    return system.strata is not None


def _counts_all(layer: Layer, cell: int) -> bool:
    row = layer.weights[[cell], :]
    return bool(row.nnz == row.shape[1] and np.all(row.data == 1))


def people_model(system: MicrodataSystem) -> PeopleModel:
    """Return the fixed arrays of the chain, with its likely and possible numbers of people."""
    place_strata = system.strata
    if place_strata is None:
        raise ArgumentError("known", "must not overlap for this chain")
    strata = [s for part in place_strata for s in part]
    fixed = np.array([s.count if s.count is not None else -1 for s in strata], np.int64)
    remainder = np.cumsum([len(part) for part in place_strata]) - 1
    known_people = np.array([strata[r].complement for r in remainder], np.int64)
    published = _fixed_sizes(system)
    if np.any((published >= 0) & (published < known_people)):
        raise DataError("release contradicts what is known: more people are known than there are")
    fixed[remainder] = np.where(published >= 0, published - known_people, -1)
    likely = fixed.copy()
    thought, spread = _likely_sizes(system)
    likely[remainder] = np.where(
        published >= 0, published - known_people, np.maximum(thought - known_people, 0)
    )
    capacity = _capacities(system, strata, fixed, likely, spread)
    first = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int64)
    if first[-1] > MAX_SUM:
        raise ArgumentError(f"place must have at most {MAX_SUM} people, got about {first[-1]}")
    if len(strata) * system.classes.size > MAX_UNKNOWNS:
        raise ArgumentError(
            f"known must leave at most {MAX_UNKNOWNS} unknown counts, got "
            f"{system.classes.size} classes of {len(strata)} groups of people"
        )
    place = np.array([s.place for s in strata], np.int64)
    base, cell, coef = _layout(system.layers, system.classes.size)
    people = int(first[-1] + system.knowledge.people.sum())
    spot, table = _tables(system.layers, people)
    law, mass = _laws(strata, fixed, dirichlet=system.prior.concentration is not None)
    keep, alias = zip(*(_alias(m) for m in mass), strict=True)
    size_ptr, log_n = _log_sizes(system, strata, fixed, capacity)
    shape = system.classes.shape
    runs = np.zeros((0, 2), np.int64) if system.prior.size is None else pieces(system.prior.size)
    leap, leaps = _leaps(runs[runs[:, 1] >= known_people.min()])
    chance = np.array(_CHANCES)
    if leap.size and np.any(fixed < 0):
        work = float(leap @ leaps) * system.classes.size
        chance[LEAP] = min(max(1.0 / work, _LEAST_LEAPS), _MOST_LEAPS)
    if np.all(fixed >= 0):
        chance[[MOVE, BIRTH]] = 0.0
    if len(place_strata) == 1:
        chance[MOVE] = 0.0
    if len(strata) == 1:
        chance[SWAP] = 0.0
    model = ModelArrays(
        base=np.ascontiguousarray(base[:, place]),
        cell=cell,
        coef=coef,
        table=table,
        part=np.repeat(np.arange(len(strata)), capacity),
        first=first,
        home=first[remainder - np.array([len(part) - 1 for part in place_strata])][place],
        last_part=remainder[place],
        area=_areas(system, place, first),
        open=fixed < 0,
        size_ptr=size_ptr,
        log_size=log_n,
        law=law,
        mass=mass,
        alias=np.array(alias),
        keep=np.array(keep),
        concentration=mass.sum(axis=1) * (system.prior.concentration is not None),
        stride=np.array([int(np.prod(shape[m + 1 :])) for m in range(len(shape))], np.int64),
        bins=np.array(shape, np.int64),
        chance=np.cumsum(chance / chance.sum()),
        leap=leap,
        leap_chance=np.cumsum(leaps),
    )
    put(model, spot, _settled(system, remainder, len(strata)))
    return PeopleModel(model, tuple(strata), system.classes.size, likely, spot, runs)


def _leaps(runs: IntArray) -> tuple[IntArray, FloatArray]:
    """Return jumps in the number of people that cross impossible numbers, and their probabilities.

    Probabilities are proportional to 1 / jump; a single run of possible numbers has no jumps.
    """
    if len(runs) < 2:
        return np.zeros(0, np.int64), np.zeros(0)
    inside = np.zeros(int(runs[-1, 1]) + 1)
    for low, high in runs:
        inside[low : high + 1] = 1.0
    square = np.abs(np.fft.rfft(inside, 2 * inside.size)) ** 2
    pairs = np.fft.irfft(square)[: inside.size]  # of possible numbers, by their difference
    pairs[: np.min(runs[1:, 0] - runs[:-1, 1])] = 0.0
    leap = np.flatnonzero(pairs > 0.5)
    return leap, 1.0 / leap / np.sum(1.0 / leap)


def _areas(system: MicrodataSystem, place: IntArray, first: IntArray) -> IntArray:
    """Return the range of slots around every part at the finest level that joins places.

    The level is the same for all: a step and its reverse must be proposed equally often.
    """
    area = np.zeros(place.size, np.int64)
    for layer in system.layers:
        if layer.geoids.size < len(system.places):
            area = layer.belongs[place]
    start, end = np.searchsorted(area, area), np.searchsorted(area, area, side="right")
    return np.array([first[start], first[end]])


def put(model: ModelArrays, spot: IntArray, x: IntArray) -> None:
    """Add the people ``x`` of every part to the rows' positions ``spot``."""
    part, cls = np.nonzero(x)
    for level in range(model.base.shape[0]):
        cell = model.cell[level, cls, :]
        row = model.base[level, part][:, None] + cell
        more = model.coef[level, cls, :] * x[part, cls][:, None]
        np.add.at(spot, row[cell >= 0], more[cell >= 0])


def _settled(system: MicrodataSystem, remainder: IntArray, parts: int) -> IntArray:
    """Return counts of the known people of known class, in the last part of their place."""
    x = np.zeros((parts, system.classes.size), np.int64)
    x[remainder] = system.knowledge.settled.toarray()
    return x


def _capacities(
    system: MicrodataSystem, strata: list[Stratum], fixed: IntArray, likely: IntArray, spread: float
) -> IntArray:
    """Return the largest number of people that the chain allows in every part.

    ``spread`` is the standard deviation of the likely numbers.
    """
    if system.prior.size is None:
        most = (likely * _ROOM).astype(np.int64) + _MORE
        most = np.maximum(most, likely + math.ceil(_FAR * spread))
    else:
        last = int(np.flatnonzero(system.prior.size)[-1])
        most = np.array(
            [last - s.complement if s.count is None else s.count for s in strata], np.int64
        )
        bad = np.flatnonzero((fixed > most) | (most < 0))
        if bad.size:
            n = strata[bad[0]].complement + max(int(fixed[bad[0]]), 0)
            raise DataError(
                f"release contradicts the prior: a place has {n} records, and size allows at "
                f"most {last}"
            )
        likely[:] = np.minimum(likely, most)
    return np.where(fixed >= 0, fixed, most)


def _laws(
    strata: list[Stratum], fixed: IntArray, *, dirichlet: bool
) -> tuple[IntArray, FloatArray]:
    """Return the number of every part's law, and the class masses of each distinct law.

    Shares have sum 1 in every part: the log prior of the number of its people has the rest.
    """
    numbers: dict[bytes, int] = {}
    law: list[int] = []
    mass: list[FloatArray] = []
    for stratum, n in zip(strata, fixed, strict=True):
        part_mass = stratum.mass
        if not part_mass.any():
            if n > 0:
                raise DataError(
                    f"known contradicts the release: {n} people of a place are like nobody there"
                )
            part_mass = np.full(part_mass.size, 1.0 / part_mass.size)  # of nobody
        total = float(part_mass.sum())
        if not dirichlet and abs(total - 1.0) > _SAME:
            part_mass = part_mass / total
        key = part_mass.tobytes()
        if key not in numbers:
            numbers[key] = len(mass)
            mass.append(part_mass)
        law.append(numbers[key])
    return np.array(law, np.int64), np.array(mass)


def _log_sizes(
    system: MicrodataSystem, strata: list[Stratum], fixed: IntArray, capacity: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the log prior of every part's number of people, concatenated, with starts."""
    shares = system.mass
    settled = np.asarray(system.knowledge.settled.sum(axis=1)).ravel()
    if system.prior.concentration is None:
        settled = np.zeros_like(settled)
    ptr, tables, end = [], [], 0
    for s, n, most in zip(strata, fixed, capacity, strict=True):
        ptr.append(0 if n >= 0 else end)
        if n < 0:
            value = s.log_size(int(most), system.prior, float(shares.sum() + settled[s.place]))
            if not s.mass.any():
                value[1:] = -np.inf
            tables.append(np.append(value, [-np.inf]))
            end += value.size + 1
    return np.array(ptr, np.int64), np.concatenate([*tables, np.zeros(1)])


def _fixed_sizes(system: MicrodataSystem) -> IntArray:
    """Return the published number of people of every finest place, or -1 if unpublished."""
    fixed = np.full(len(system.places), -1, np.int64)
    for layer in system.layers:
        if layer.geoids.size == len(system.places):
            for cell in np.flatnonzero(layer.exact):
                published = ~layer.hidden[:, cell]
                if np.any(published & (fixed >= 0) & (fixed != layer.counts[:, cell])):
                    raise DataError("release contradicts itself: two numbers of records differ")
                fixed[published] = layer.counts[published, cell]
    return fixed


def _likely_sizes(system: MicrodataSystem) -> tuple[IntArray, float]:
    """Return estimates of the finest places' numbers of people from noisy tables.

    The second result is their standard deviation, or 0 if no table determines them.

    Every table whose cells hold each class once measures the total, weighted by 1 / variance.
    """
    total, weight = np.zeros(len(system.places)), 0.0
    layer = system.layers[-1]
    names = np.array([name for name, _ in layer.names])
    for name in dict.fromkeys(names.tolist()):
        cells = np.flatnonzero(names == name)
        covers = np.asarray(layer.weights[cells, :].sum(axis=0)).ravel()
        if np.all(covers == 1) and not layer.hidden[:, cells].any():
            variance = sum(_variance(layer.likelihoods[c]) for c in cells)
            total += layer.counts[:, cells].sum(axis=1) / variance
            weight += 1.0 / variance
    if not weight:
        size = system.prior.size
        mean = 1.0 if size is None else float(np.arange(size.size) @ size)
        return np.full(len(system.places), max(1, round(mean)), np.int64), 0.0
    sizes = np.maximum(np.rint(total / weight), 0).astype(np.int64)
    return sizes, float(weight) ** -0.5


def _variance(law: Likelihood) -> float:
    return float(law.to_law().var()) if isinstance(law, NoiseSpec) else 1e-6


def _layout(layers: tuple[Layer, ...], n_classes: int) -> tuple[Any, ...]:
    """Return each level's first row of every place, and each class's cell and weight by track."""
    base, tracks, start = [], [], 0
    for layer in layers:
        base.append(start + layer.belongs * layer.weights.shape[0])
        start += layer.counts.size
        tracks.append(_tracks(layer))
    cell = np.full((len(layers), n_classes, max(map(len, tracks), default=0)), -1, np.int32)
    coef = np.zeros(cell.shape, np.int32)
    for level, (layer, layer_tracks) in enumerate(zip(layers, tracks, strict=True)):
        for k, rows in enumerate(layer_tracks):
            for q in rows:
                part = slice(layer.weights.indptr[q], layer.weights.indptr[q + 1])
                cell[level, layer.weights.indices[part], k] = q
                coef[level, layer.weights.indices[part], k] = layer.weights.data[part]
    return np.array(base, np.int64), cell, coef


def _tracks(layer: Layer) -> list[list[int]]:
    """Return the cells in tracks, so that no class has two cells of a table in one track."""
    rows: list[list[int]] = []
    used: list[tuple[str, IntArray]] = []
    for q, (name, _) in enumerate(layer.names):
        part = slice(layer.weights.indptr[q], layer.weights.indptr[q + 1])
        classes = layer.weights.indices[part]
        free = (k for k, (table, _) in enumerate(used) if table == name)
        track = next((k for k in free if not used[k][1][classes].any()), len(rows))
        if track == len(rows):
            rows.append([])
            used.append((name, np.zeros(layer.weights.shape[1], np.bool_)))
        rows[track].append(q)
        used[track][1][classes] = True
    return rows


def _tables(layers: tuple[Layer, ...], people: int) -> tuple[IntArray, FloatArray]:
    """Return the concatenated log-likelihood tables, and where each row's sum 0 stands in them.

    A likelihood depends only on the difference of the published count and the sum, so one table
    serves all rows of a law.
    """
    heaviest = max((int(layer.weights.data.max(initial=1)) for layer in layers), default=1)
    most = (people + 2) * heaviest
    low = max(0, *(int(layer.counts.max(initial=0)) for layer in layers))
    high = most - min(0, *(int(layer.counts.min(initial=0)) for layer in layers))
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
        position = np.array([places[law] for law in layer.likelihoods], np.int64)
        row = np.where(layer.hidden, places[None], position[None, :] - layer.counts)
        offsets.append(row.ravel())
    return np.concatenate(offsets), np.concatenate(tables)


def _log_weights(law: Likelihood | None, differences: IntArray) -> FloatArray:
    """Return the log-likelihood of each difference between a sum and its published count."""
    if law is None:
        return np.zeros(differences.size)
    if isinstance(law, NoiseSpec):
        return np.asarray(law.to_law().logpmf(-differences), dtype=float)
    if law.exact:  # the number of people of a place, which no step changes
        return np.where(differences == 0, 0.0, -np.inf)
    raise ArgumentError(f"release must have noisy counts for this chain, got {law.kind}")


def _alias(shares: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return Walker's alias tables: class i is kept with probability ``keep[i]``, else replaced."""
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
    left = np.array(small + large, np.int64)
    keep[left] = np.where(shares[left] > 0.0, 1.0, 0.0)  # rounding gives nothing to the impossible
    alias[left[shares[left] == 0.0]] = np.argmax(shares)
    return keep, alias.astype(np.int64)
