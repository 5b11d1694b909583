"""All noisy values of the same count, and their joint evidence."""

import functools
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.census.readers.nmf import reader as nmf_reader
from bayesrisk.census.readers.nmf.rows import cell_labels
from bayesrisk.census.studies.measurement_counts import MeasurementSource
from bayesrisk.exceptions import DataError, quote
from bayesrisk.tables.cells import positions

_CHUNK = 2**13  # units of which all bounds are in memory
_KEPT = 2**12  # pairs of cells that are kept, by pattern
_NO_CELLS = np.empty(0, dtype=np.int64)


def same_count(
    target: IntArray, other: IntArray, live: BoolArray, elsewhere: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return pairs of cells of two queries that count the same people.

    ``target`` and ``other`` have, for every cell of the histogram, the cell of either query, -1 for
    none. ``live`` marks cells that people of the unit can be in. ``elsewhere`` marks those of other
    units' people whom the other query counts too. Cells that nobody can be in are in no pair.
    """
    n, m = int(target.max()) + 1, int(other.max()) + 1
    size = np.bincount(target[live & (target >= 0)], minlength=n)
    counted = np.bincount(other[(live | elsewhere) & (other >= 0)], minlength=m)
    mixed = np.bincount(other[elsewhere & (other >= 0)], minlength=m) > 0
    pairs_live = live & (target >= 0) & (other >= 0)
    first = np.full(n, -1, dtype=np.int64)
    first[target[pairs_live]] = other[pairs_live]
    shared = np.bincount(
        target[pairs_live][first[target[pairs_live]] == other[pairs_live]], minlength=n
    )
    cells = np.flatnonzero((size > 0) & (shared == size))
    partner = first[cells]
    equal = (counted[partner] == size[cells]) & ~mixed[partner]
    return cells[equal], partner[equal]


class CellSurroundings(NamedTuple):
    """A state's sorted units, and who else may be in the places around each.

    If constraints do not list the units, some may be missing, and places give no information. For
    each usable level above, ``places`` are its complete places, sorted. ``keys`` and ``counts``
    give, for ``place * atoms + atom``, the number of units with possible people in the atom.
    """

    units: TextArray
    listed: bool
    keys: dict[str, IntArray]
    counts: dict[str, IntArray]
    places: dict[str, TextArray]


@functools.lru_cache(maxsize=1)
def surroundings(source: MeasurementSource, state: str, combine: bool) -> CellSurroundings:
    """Return a state's units and their surroundings; cached in each process.

    A place counts only where it is complete: each unit that constraints list below it has a unit
    of the level in question.
    """
    units, listed = nmf_reader.units_between(source.nmf, source.level, state, state)
    if listed:
        answered, _ = nmf_reader.units_between(source.nmf, source.level, state, state, ("DPQuery",))
        source.check_listed(source.level, answered, units)
    places: dict[str, TextArray] = {}
    broken: TextArray = np.empty(0, dtype="U1")
    for level in reversed(source.above if combine and listed else ()):
        if level == "US":
            continue
        width = source.width(level)
        mine = np.unique(units.astype(f"U{width}"))
        listed_units, level_listed = nmf_reader.units_between(source.nmf, level, state, state)
        if not level_listed:
            continue
        lost = np.setdiff1d(mine, listed_units)
        if lost.size:
            inside = units[units.astype(f"U{width}") == lost[0]]
            raise DataError(
                f"{source.nmf.folder}: unit {inside[0]} of level {source.level} must lie in a "
                f"{level} that the constraints list, got none {quote(str(lost[0]))}"
            )
        empty = np.setdiff1d(listed_units, mine)
        broken = np.unique(np.concatenate([broken.astype(f"U{width}"), empty]))
        places[level] = np.setdiff1d(listed_units, broken)
    keys: dict[str, IntArray] = {}
    counts: dict[str, IntArray] = {}
    if places and source.target is not None:
        unit, atom = _live_atoms(source, units)
        for level, complete in places.items():
            place = positions(units.astype(f"U{source.width(level)}"), complete)[unit]
            inside = place >= 0
            keys[level], counts[level] = np.unique(
                place[inside] * source.atoms.size + atom[inside], return_counts=True
            )
    return CellSurroundings(units, listed, keys, counts, places)


def _live_atoms(source: MeasurementSource, units: TextArray) -> tuple[IntArray, IntArray]:
    owners, atoms = [], []
    for start in range(0, units.size, _CHUNK):
        chunk = units[start : start + _CHUNK]
        bounds = source.bounds(chunk, source.level, source.atoms.cell_atoms)
        unit, atom = np.nonzero(bounds.live[bounds.pattern])
        owners.append(unit + start)
        atoms.append(atom)
    return np.concatenate(owners), np.concatenate(atoms)


def _siblings(
    source: MeasurementSource, near: CellSurroundings, level: str, codes: TextArray, live: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Return the units in usable places, and the atoms where their siblings may have people."""
    atoms = source.atoms.size
    place = positions(codes.astype(f"U{source.width(level)}"), near.places[level])
    inside = np.flatnonzero(place >= 0)
    places, place_number = np.unique(place[inside], return_inverse=True)
    total = np.zeros((places.size, atoms), dtype=np.int64)
    keys, counts = near.keys[level], near.counts[level]
    for row, number in enumerate(places.tolist()):
        part = slice(*np.searchsorted(keys, [number * atoms, (number + 1) * atoms]))
        total[row, keys[part] - number * atoms] = counts[part]
    return inside, total[place_number.reshape(-1)] > live[inside]


class Evidence:
    """Log-likelihood of one more person against the known count, and the number of values used.

    Both arrays have shape (units, cells).
    """

    def __init__(self, units: int, cells: int, known_count: int) -> None:
        self.log_ratio = np.zeros((units, cells))
        self.values = np.zeros((units, cells), dtype=np.int16)
        self._known_count = known_count

    def add(self, units: IntArray, cells: IntArray, counts: IntArray, sigma2: FloatArray) -> None:
        """Add the evidence (y - k - 1/2) / sigma2 of one noisy value for each unit and cell."""
        index = np.ix_(units, cells)
        self.log_ratio[index] += ((counts - self._known_count) - 0.5) / sigma2[:, None]
        self.values[index] += 1


def combined_evidence(
    source: MeasurementSource,
    near: CellSurroundings,
    units: TextArray,
    bounds: nmf_reader.CellBounds,
    known_count: int,
) -> Evidence:
    """Return the evidence of all queries at all usable levels about some units' cells."""
    out = Evidence(units.size, source.n_cells, known_count)
    live = bounds.live[bounds.pattern]
    target, cell_number = source.known_cells()
    labelled = functools.cache(functools.partial(cell_labels, source.nmf.universe))

    @functools.lru_cache(maxsize=_KEPT)
    def pairs(answers: tuple[str, ...], pattern: bytes) -> tuple[IntArray, ...]:
        labels = labelled(answers)
        if labels is None:
            return _NO_CELLS, _NO_CELLS
        mine, siblings = np.split(np.frombuffer(pattern, dtype=np.bool_), 2)
        return same_count(target, labels, mine[cell_number], siblings[cell_number])

    for level in (*near.places, source.level):
        inside, siblings = np.arange(units.size), np.zeros_like(live)
        if level != source.level:
            inside, siblings = _siblings(source, near, level, units, live)
        if not inside.size:
            continue
        codes = units[inside].astype(f"U{source.width(level)}")
        patterns, group = np.unique(
            np.concatenate([live[inside], siblings], axis=1), axis=0, return_inverse=True
        )
        low, high = str(codes[0]), str(codes[-1])  # sorted as the units are
        for rows in nmf_reader.rows_between(source.nmf, level, "DPQuery", low, high).values():
            row = positions(codes, rows.geocodes)
            for number, pattern in enumerate(patterns):
                mine = np.flatnonzero((group.reshape(-1) == number) & (row >= 0))
                cells, partner = _NO_CELLS, _NO_CELLS
                if mine.size:
                    cells, partner = pairs(rows.answers, pattern.tobytes())
                if cells.size:
                    answered = row[mine]
                    counts = rows.values[np.ix_(answered, partner)]
                    out.add(inside[mine], cells, counts, rows.sigma2[answered])
    return out
