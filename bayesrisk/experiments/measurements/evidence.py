"""All noisy values of the same count: which they are, and what they say together.

Two noisy values are of the same count when the same people can be in both: when the cells that
constraints leave open, of all units, are the same on both sides.  So in a block without group
quarters the count of a race is seen by the query of that race alone as well as by the detailed
one, and the only college of a tract is seen by the tract's answer too.  Nothing is assumed: a
value of which this cannot be proved is not used.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.measurements.source import Source
from bayesrisk.readers.nmf.axes import cell_labels
from bayesrisk.readers.nmf.between import rows_between, units_between
from bayesrisk.readers.nmf.bounds import CellBounds, place_of

_CHUNK = 2**13  # units of which all bounds are in memory
_KEPT = 2**12  # answers of `same_count` that are kept


def same_count(
    target: NDArray[np.int64],
    other: NDArray[np.int64],
    live: NDArray[np.bool_],
    elsewhere: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return cells of a query, and the cells of another one that count the same people.

    Parameters
    ----------
    target, other : ndarray of int64
        For every cell of the histogram, the cell of the query; -1 for none.
    live : ndarray of bool
        Cells of the histogram in which somebody of the unit can be.
    elsewhere : ndarray of bool
        Cells in which somebody of another unit can be whom the other query counts too.

    Returns
    -------
    target_cells, other_cells : ndarray of int64
        Pairs; cells that nobody can be in are in none.
    """
    n, m = int(target.max()) + 1, int(other.max()) + 1
    size = np.bincount(target[live & (target >= 0)], minlength=n)
    counted = np.bincount(other[(live | elsewhere) & (other >= 0)], minlength=m)
    mixed = np.bincount(other[elsewhere & (other >= 0)], minlength=m) > 0
    both = live & (target >= 0) & (other >= 0)
    first = np.full(n, -1, dtype=np.int64)
    first[target[both]] = other[both]
    shared = np.bincount(target[both][first[target[both]] == other[both]], minlength=n)
    cells = np.flatnonzero((size > 0) & (shared == size))
    partner = first[cells]
    same = (counted[partner] == size[cells]) & ~mixed[partner]
    return cells[same], partner[same]


class Around(NamedTuple):
    """The units of a state, and who else can be in the places around each.

    Attributes
    ----------
    units : ndarray of str
        Sorted geocodes.
    listed : bool
        Whether constraints list them; else some may be missing, and places around say nothing.
    keys, counts : dict of str to ndarray of int64
        For each usable level above, ``place * atoms + atom`` with how many of its units can have
        somebody in the atom.
    places : dict of str to ndarray of str
        Places of each usable level, sorted; the incomplete ones are left out.
    """

    units: NDArray[np.str_]
    listed: bool
    keys: dict[str, NDArray[np.int64]]
    counts: dict[str, NDArray[np.int64]]
    places: dict[str, NDArray[np.str_]]


@functools.lru_cache(maxsize=1)
def around(source: Source, state: str, combine: bool) -> Around:
    """Return the units of a state and what is around them; once for each process and state.

    A place counts only where it is complete: each unit that constraints list below it has a unit
    of the level in question.
    """
    units, listed = units_between(source.nmf, source.level, state, state)
    if listed:
        answered, _ = units_between(source.nmf, source.level, state, state, ("DPQuery",))
        if (missing := np.setdiff1d(answered, units)).size:
            raise DataError(
                f"{source.nmf.folder}: {source.level} {missing[0]} has a noisy answer, but the "
                "constraints of its state do not list it: copy the whole Constraint folder, or none"
            )
    levels = [level for level in source.above if level != "US"]
    places: dict[str, NDArray[np.str_]] = {}
    broken: NDArray[np.str_] = np.empty(0, dtype="U1")
    for level in reversed(levels if combine and listed else []):
        width = source.width(level)
        mine = np.unique(units.astype(f"U{width}"))
        found, known = units_between(source.nmf, level, state, state)
        if not known:
            continue
        lost = np.setdiff1d(mine, found)
        if lost.size:
            inside = units[units.astype(f"U{width}") == lost[0]]
            raise DataError(
                f"{source.nmf.folder}: unit {inside[0]} of level {source.level} must lie in a "
                f"{level} that the constraints list, got none {shown(str(lost[0]))}"
            )
        empty = np.setdiff1d(found, mine)
        broken = np.unique(np.concatenate([broken.astype(f"U{width}"), empty]))
        places[level] = np.setdiff1d(found, broken)
    keys: dict[str, NDArray[np.int64]] = {}
    counts: dict[str, NDArray[np.int64]] = {}
    if places and source.target is not None:
        unit, atom = _live(source, units)
        for level, known_places in places.items():
            place = place_of(units.astype(f"U{source.width(level)}"), known_places)[unit]
            inside = place >= 0
            keys[level], counts[level] = np.unique(
                place[inside] * source.atoms.size + atom[inside], return_counts=True
            )
    return Around(units, listed, keys, counts, places)


def _live(source: Source, units: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a unit and an atom in which somebody of it can be."""
    owners, atoms = [], []
    for start in range(0, units.size, _CHUNK):
        some = units[start : start + _CHUNK]
        found = source.bounds(some, source.level, source.atoms.of_cell)
        unit, atom = np.nonzero(found.live[found.pattern])
        owners.append(unit + start)
        atoms.append(atom)
    return np.concatenate(owners), np.concatenate(atoms)


def _elsewhere(
    source: Source, near: Around, level: str, codes: NDArray[np.str_], live: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return which units lie in a usable place, and in which atoms others of it can be."""
    atoms = source.atoms.size
    place = place_of(codes.astype(f"U{source.width(level)}"), near.places[level])
    inside = np.flatnonzero(place >= 0)
    held, back = np.unique(place[inside], return_inverse=True)
    total = np.zeros((held.size, atoms), dtype=np.int64)
    keys, counts = near.keys[level], near.counts[level]
    for row, number in enumerate(held.tolist()):
        part = slice(*np.searchsorted(keys, [number * atoms, (number + 1) * atoms]))
        total[row, keys[part] - number * atoms] = counts[part]
    return inside, total[back.reshape(-1)] > live[inside]


@dataclass(eq=False)
class Evidence:
    """What noisy values of the same count say of each cell.

    Attributes
    ----------
    total : ndarray of float64, shape (units, cells)
        Log of the likelihood of one more against that of the known count.
    values : ndarray of int16, shape (units, cells)
        How many noisy values were added up.
    """

    total: NDArray[np.float64]
    values: NDArray[np.int16]

    @classmethod
    def none(cls, units: int, cells: int) -> Evidence:
        """Return the evidence of no value."""
        return cls(np.zeros((units, cells)), np.zeros((units, cells), dtype=np.int16))

    def add(
        self,
        units: NDArray[np.int64],
        cells: NDArray[np.int64],
        counts: NDArray[np.int64],
        sigma2: NDArray[np.float64],
        known_count: int,
    ) -> None:
        """Add one noisy value for each of some units and cells."""
        at = np.ix_(units, cells)
        self.total[at] += ((counts - known_count) - 0.5) / sigma2[:, None]
        self.values[at] += 1


def combined(
    source: Source,
    near: Around,
    units: NDArray[np.str_],
    bounds: CellBounds,
    known_count: int,
) -> Evidence:
    """Return what all queries of all usable levels say of the cells of some units."""
    out = Evidence.none(units.size, source.n_cells)
    live = bounds.live[bounds.pattern]
    pairs = _Pairs(source)
    for level in (*near.places, source.level):
        inside, others = np.arange(units.size), np.zeros_like(live)
        if level != source.level:
            inside, others = _elsewhere(source, near, level, units, live)
        if not inside.size:
            continue
        codes = units[inside].astype(f"U{source.width(level)}")
        patterns, group = np.unique(
            np.concatenate([live[inside], others], axis=1), axis=0, return_inverse=True
        )
        low, high = str(codes[0]), str(codes[-1])  # sorted as the units are
        for rows in rows_between(source.nmf, level, "DPQuery", low, high).values():
            row = place_of(codes, rows.geocodes)
            for number, pattern in enumerate(patterns):
                mine = np.flatnonzero((group.reshape(-1) == number) & (row >= 0))
                cells, partner = pairs.of(rows.answers, pattern) if mine.size else _NO_PAIRS
                if cells.size:
                    at = row[mine]
                    counts = rows.values[np.ix_(at, partner)]
                    out.add(inside[mine], cells, counts, rows.sigma2[at], known_count)
    return out


_NO_PAIRS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


class _Pairs:
    """Cells of the query asked about with those of others that count the same people."""

    def __init__(self, source: Source) -> None:
        self._universe = source.nmf.universe
        self._target, self._of_cell = source.known_cells()
        self._labels: dict[tuple[str, ...], NDArray[np.int64] | None] = {}
        self._kept: dict[tuple[tuple[str, ...], bytes], Any] = {}

    def of(
        self, answers: tuple[str, ...], pattern: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs, given in which atoms somebody of the unit and of others can be."""
        if answers not in self._labels:
            self._labels[answers] = cell_labels(self._universe, answers)
        labels = self._labels[answers]
        if labels is None:
            return _NO_PAIRS
        key = answers, pattern.tobytes()
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            live, others = np.split(pattern, 2)
            self._kept[key] = same_count(
                self._target, labels, live[self._of_cell], others[self._of_cell]
            )
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = self._kept[key]
        return found
