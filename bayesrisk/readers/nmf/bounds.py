"""Least and largest counts of the cells of a query, given the constraints of a folder.

A constraint states a total of some cells of the histogram.  Counts are not negative, so a cell is
at most what any total that holds it is at most, in its own unit and in every unit around that;
and it is at least what totals inside it add up to.  Bounds from single constraints: what only
several of them together imply (beyond such sums) is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk._validation import MAX_COUNT, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.readers.geocodes import SPINE_WIDTHS
from bayesrisk.readers.nmf.reader import ENDINGS, SIGNS, Scales, budget_chain, files_of
from bayesrisk.readers.nmf.rows import (
    BATCH_CELLS,
    Rows,
    Universe,
    batches,
    cell_labels,
    check_columns,
)

if TYPE_CHECKING:
    from bayesrisk.readers.nmf.reader import NoisyMeasurements

_MOST = 2**21  # cells of a row where the axes are not known
_NAMES = 2**17  # rows of short columns in memory


class QueryRows(NamedTuple):
    """Rows of one query in some units, the units sorted.

    ``sigma2`` is empty for constraints, ``sign`` is empty for noisy answers.
    """

    name: str
    shape: tuple[int, ...]
    answers: tuple[str, ...]
    geocodes: NDArray[np.str_]
    values: IntArray
    sigma2: NDArray[np.float64]
    sign: str


def _in_range(codes: pa.Array, low: str, high: str) -> pa.Array:
    """Return which geocodes begin with ``low``, ``high`` or what is between them."""
    if not (low and high):
        return pc.is_valid(codes)
    first = pc.greater_equal(pc.utf8_slice_codeunits(codes, 0, len(low)), low)
    return pc.and_(first, pc.less_equal(pc.utf8_slice_codeunits(codes, 0, len(high)), high))


def _pieces(
    nmf: NoisyMeasurements, level: str, kind: str, columns: tuple[str, ...], low: str, high: str
) -> Iterator[tuple[str | None, Rows]]:
    """Yield rows of units in a range, with the state of their folder."""
    axes = tuple(nmf.universe.axes)
    rows = (
        max(1, BATCH_CELLS // (2 * (nmf.universe.size or _MOST))) if "value" in columns else _NAMES
    )
    for file, state in files_of(nmf.folder, level, kind):
        shared = min(len(state or ""), len(low))
        if state is not None and not low[:shared] <= state[:shared] <= high[:shared]:
            continue
        check_columns(file, axes, columns)
        for piece in batches(file, columns, rows, (low, high)):
            codes = piece.column("geocode").cast(pa.string())
            if len(inside := piece.where(_in_range(codes, low, high))):
                yield state, inside


def states_of(nmf: NoisyMeasurements, level: str) -> list[str]:
    """Return the beginnings of geocodes, one for each state in which a level has units.

    Those that no folder of a state holds are looked for in the files; the nation has one, empty.
    """
    if level == "US":
        return [""]
    found: set[str] = set()
    for kind in ENDINGS:
        for file, state in files_of(nmf.folder, level, kind):
            if state is not None:
                found.add(state)
                continue
            width = nmf.widths.get("State", SPINE_WIDTHS["State"])
            for rows in batches(file, ("geocode",), _NAMES):
                codes = rows.column("geocode").cast(pa.string())
                found |= set(pc.unique(pc.utf8_slice_codeunits(codes, 0, width)).to_pylist())
    return sorted(found)


def units_between(
    nmf: NoisyMeasurements,
    level: str,
    low: str = "",
    high: str = "",
    kinds: tuple[str, ...] = ("Constraint", "DPQuery"),
) -> tuple[NDArray[np.str_], bool]:
    """Return the geocodes of the units in a range, sorted, and whether constraints list them.

    Where a level has no constraints, units are those with a noisy answer.
    """
    for kind in kinds:
        found: set[str] = set()
        for state, rows in _pieces(nmf, level, kind, ("geocode",), low, high):
            found |= set(rows.geocodes(level, nmf.widths.get(level), state).tolist())
        if found:
            return np.array(sorted(found), dtype=np.str_), kind == "Constraint"
    return np.empty(0, dtype="U1"), False


def definitions(nmf: NoisyMeasurements, level: str, kind: str) -> dict[str, tuple[str, ...]]:
    """Return the answers on each axis of each query of a level, by name without its ending."""
    axes = tuple(nmf.universe.axes)
    found: dict[str, tuple[str, ...]] = {}
    for file, _ in files_of(nmf.folder, level, kind):
        check_columns(file, axes, ("query_name", *axes))
        for rows in batches(file, ("query_name", *axes), _NAMES):
            columns = [rows.queries(ENDINGS[kind])[0]]
            columns += [rows.column(axis).cast(pa.string()) for axis in axes]
            table = pa.table(columns, ["query_name", *axes])
            for row in table.group_by(["query_name", *axes]).aggregate([]).to_pylist():
                name = row.pop("query_name").removesuffix(ENDINGS[kind])
                answers = tuple(row[axis] for axis in axes)
                if found.setdefault(name, answers) != answers:
                    raise DataError(
                        f"{file}: {name} must ask {', '.join(found[name])} as in its other rows, "
                        f"got {', '.join(answers)}"
                    )
    return dict(sorted(found.items()))


def rows_between(
    nmf: NoisyMeasurements,
    level: str,
    kind: str,
    low: str,
    high: str,
    queries: tuple[str, ...] | None = None,
) -> dict[str, QueryRows]:
    """Return the rows of all queries, or of some, in the units of a range, by query."""
    axes = tuple(nmf.universe.axes)
    extra = "sign" if kind == "Constraint" else "variance"
    columns = ("geocode", "query_name", *axes, "query_shape", "value", extra)
    scales: dict[str, Scales] = {}
    parts: dict[str, list[QueryRows]] = {}
    for state, rows in _pieces(nmf, level, kind, columns, low, high):
        for name, some in rows.by_query(ENDINGS[kind]):
            if queries is not None and name not in queries:
                continue
            codes = some.geocodes(level, nmf.widths.get(level), state)
            shape, answers = some.shape(nmf.universe), some.answers(axes)
            last = parts.setdefault(name, [])
            if last and (shape, answers) != last[-1][1:3]:
                raise some.refuse(
                    0,
                    "query_shape",
                    f"must be {list(last[-1].shape)} as in the query's other rows, "
                    f"got {list(shape)}",
                )
            values, noise, sign = some.values(shape), np.empty(0), ""
            if kind == "Constraint":
                sign = _one_sign(some)
                # A bound below 0 is one on a count that none meets, or every one.
                least = values.min(axis=1)
                some.check("value", least >= 0, "be >= 0 in a constraint", least.tolist())
            else:
                if name not in scales:
                    chain = None if nmf.budget is None else budget_chain(nmf.budget, level, name)
                    scales[name] = Scales(chain)
                noise = some.sigma2(scales[name])
            last.append(QueryRows(name, shape, answers, codes, values, noise, sign))
    return {name: _joined(found, f"{nmf.folder}: {level} {kind}") for name, found in parts.items()}


def _one_sign(rows: Rows) -> str:
    """Return the sign of a constraint's rows, which must be the same in all."""
    signs = rows.text("sign")
    wanted = ", ".join(SIGNS) if signs[0] not in SIGNS else f"{signs[0]!r} as above"
    rows.check("sign", np.isin(signs, SIGNS) & (signs == signs[0]), f"be one of {wanted}", signs)
    return str(signs[0])


def _joined(parts: list[QueryRows], where: str) -> QueryRows:
    """Return the rows of several pieces as one, sorted by unit."""
    signs = {part.sign for part in parts}
    if len(signs) > 1:
        raise DataError(f"{where}: {parts[0].name} must have one sign, got {sorted(signs)}")
    codes = np.concatenate([part.geocodes for part in parts])
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    again = codes[1:] == codes[:-1]
    if again.any():
        code = str(codes[int(again.argmax())])
        raise DataError(f"{where}: {parts[0].name}: unit {code} must occur once, got it again")
    values = np.concatenate([part.values for part in parts])[order]
    noise = np.concatenate([part.sigma2 for part in parts])
    return parts[0]._replace(
        geocodes=codes, values=values, sigma2=noise[order] if noise.size else noise
    )


#: Place of a unit in rows that do not have it.
NO_UNIT = -1


class CellBounds(NamedTuple):
    """The least and the largest count of cells, one row for each distinct set of bounds.

    ``pattern`` is the row of each unit.  ``lower`` and ``upper``, of shape (patterns, cells), are 0
    and 2**52 where nothing is known; ``kind`` is the constraint that gives the upper bound, as a
    place in ``kinds`` (-1 for none), of which those of a unit around it have the level in front.
    ``live``, of shape (patterns, atoms), says whether anybody can be in the cells of an atom.
    """

    pattern: IntArray
    lower: IntArray
    upper: IntArray
    kind: NDArray[np.int16]
    kinds: tuple[str, ...]
    live: NDArray[np.bool_]


class Atoms:
    """The cells of the histogram that no constraint tells apart, and how constraints see them.

    ``asked`` says of each constraint what it asks of the axes (levels share names and meanings);
    ``ignored`` are constraints with a recode that is not known, which are not used; ``of_cell`` is
    the atom of each cell of the histogram, None where the axes are not known.
    """

    def __init__(self, universe: Universe, asked: Mapping[str, tuple[str, ...]]) -> None:
        self._universe = universe
        found = {name: cell_labels(universe, answers) for name, answers in asked.items()}
        self._labels = {name: labels for name, labels in found.items() if labels is not None}
        self.ignored = tuple(sorted(set(asked) - set(self._labels)))
        self.of_cell: IntArray | None = None
        if universe.size:
            codes = np.zeros(universe.size, dtype=np.int64)
            for labels in self._labels.values():
                codes = codes * (int(labels.max()) + 2) + labels + 1
                codes = np.unique(codes, return_inverse=True)[1]
            self.of_cell = codes.astype(np.int64)

    @property
    def size(self) -> int:
        """Number of atoms."""
        return 0 if self.of_cell is None else int(self.of_cell.max()) + 1

    def knows(self, name: str) -> bool:
        """Return whether a constraint is understood."""
        return name in self._labels

    def labels(self, name: str) -> IntArray:
        """Return the total of a constraint that counts each cell, -1 for none."""
        return self._labels[name]

    def of_atoms(self, name: str) -> IntArray:
        """Return the total of a constraint that counts each atom, -1 for none."""
        out = np.empty(self.size, dtype=np.int64)
        out[self.of_cell] = self._labels[name]
        return out


def _around(labels: IntArray, target: IntArray, n: int) -> IntArray:
    """Return for each target cell the total that holds all of it; -1 for none."""
    cells = target >= 0
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -2)
    np.minimum.at(least, target[cells], labels[cells])
    np.maximum.at(most, target[cells], labels[cells])
    return np.where(least == most, most, -1)


def cell_bounds(
    atoms: Atoms,
    target: IntArray,
    units: NDArray[np.str_],
    rows: Sequence[tuple[str, int, Mapping[str, QueryRows]]],
    where: str,
) -> CellBounds:
    """Return the least and largest counts that constraints leave of a query's cells in some units.

    ``target`` is the cell of the query of every cell of the histogram, -1 for none; ``units`` are
    sorted.  ``rows`` has, for the units' own level and those around it, what to put before the
    names of constraints (nothing for their own), the width of geocodes, and the rows of the
    constraints; of two that say the same the first is named.
    """
    table, columns = _stacked(atoms, units, rows)
    distinct, pattern = np.unique(table, axis=0, return_inverse=True)
    pattern = pattern.reshape(-1)
    n_cells, n = int(target.max()) + 1, len(distinct)
    upper = np.full((n, n_cells), MAX_COUNT)
    lower = np.zeros((n, n_cells), dtype=np.int64)
    most = np.full((n, atoms.size), MAX_COUNT)
    kind = np.full((n, n_cells), -1, dtype=np.int16)
    for number, (_, name, sign, start, size, own) in enumerate(columns):
        totals = distinct[:, start : start + size]
        labels = atoms.labels(name)
        if sign in ("=", "<="):
            around = _around(labels, target, n_cells)
            held = np.flatnonzero(around >= 0)
            stated = totals[:, around[held]]
            stated = np.where(stated < 0, MAX_COUNT, stated)
            tighter = stated < upper[:, held]
            upper[:, held] = np.minimum(upper[:, held], stated)
            kind[:, held] = np.where(tighter, number, kind[:, held])
            of_atoms = atoms.of_atoms(name)
            inside = np.flatnonzero(of_atoms >= 0)
            stated = totals[:, of_atoms[inside]]
            most[:, inside] = np.minimum(most[:, inside], np.where(stated < 0, MAX_COUNT, stated))
        if sign in ("=", ">=") and own:
            held_by = _around(target, labels, size)
            sums = np.zeros_like(lower)
            for total in np.flatnonzero(held_by >= 0).tolist():
                sums[:, held_by[total]] += np.maximum(totals[:, total], 0)
            lower = np.maximum(lower, sums)
    kind = _sum_of_atoms(atoms, target, most, upper, kind)
    _refuse_contradictions(atoms, units, pattern, distinct, columns, most, where)
    bad = lower > upper
    if bad.any():
        row, cell = (int(i) for i in np.argwhere(bad)[0])
        unit, by = str(units[int(np.argmax(pattern == row))]), int(kind[row, cell])
        raise DataError(
            f"{where}: unit {unit}: constraints contradict each other: cell {cell} is at least "
            f"{lower[row, cell]}, and at most {upper[row, cell]} by "
            f"{columns[by][0] if by >= 0 else 'several'}"
        )
    kinds = tuple(column[0] for column in columns)
    return CellBounds(pattern, lower, upper, kind, kinds, most > 0)


#: Shown name, name, sign, first column, columns, and whether it is of the unit itself.
_Column = tuple[str, str, str, int, int, bool]


def _stacked(
    atoms: Atoms,
    units: NDArray[np.str_],
    rows: Sequence[tuple[str, int, Mapping[str, QueryRows]]],
) -> tuple[IntArray, list[_Column]]:
    """Return all totals about each unit side by side; -1 where there is no row."""
    parts: list[IntArray] = [np.zeros((units.size, 0), dtype=np.int64)]
    columns: list[_Column] = []
    start = 0
    for before, width, found in rows:
        codes = units.astype(f"U{width}") if width else np.full(units.size, "")
        for name, stated in sorted(found.items()):
            if not atoms.knows(name):
                continue
            place = place_of(codes, stated.geocodes) if width else np.zeros(units.size, np.int64)
            size = stated.values.shape[1]
            parts.append(np.where(place[:, None] >= 0, stated.values[place], NO_UNIT))
            columns.append((f"{before}{name}", name, stated.sign, start, size, not before))
            start += size
    return np.concatenate(parts, axis=1), columns


def place_of(codes: NDArray[np.str_], known: NDArray[np.str_]) -> IntArray:
    """Return the place of each code among sorted ones, -1 where it is not there."""
    if not known.size:
        return np.full(codes.size, NO_UNIT)
    place = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return np.where(known[place] == codes, place, NO_UNIT)


def _sum_of_atoms(
    atoms: Atoms,
    target: IntArray,
    most: IntArray,
    upper: IntArray,
    kind: NDArray[np.int16],
) -> NDArray[np.int16]:
    """Tighten the bounds of cells to the sums of those of their atoms; where that is 0, say why.

    A cell made of several atoms may be empty because each of them is, by several constraints:
    the kind is then that of a constraint which settles a part of it, or -2.
    """
    if not atoms.size:
        return kind
    cells = target >= 0
    pairs = np.unique(target[cells] * atoms.size + atoms.of_cell[cells])  # type: ignore[index]
    cell, atom = pairs // atoms.size, pairs % atoms.size
    starts = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    sums = np.minimum(np.add.reduceat(most[:, atom].astype(float), starts, axis=1), MAX_COUNT)
    held = cell[starts]
    tighter = sums < upper[:, held]
    upper[:, held] = np.minimum(upper[:, held], sums.astype(np.int64))
    kind[:, held] = np.where(tighter, -2, kind[:, held])
    return kind


def _refuse_contradictions(
    atoms: Atoms,
    units: NDArray[np.str_],
    pattern: IntArray,
    distinct: IntArray,
    columns: list[_Column],
    most: IntArray,
    where: str,
) -> None:
    """Refuse a total that is at least more than what others leave of its cells."""
    for label, name, sign, start, size, own in columns:
        if sign not in ("=", ">=") or not own:
            continue
        of_atoms = atoms.of_atoms(name)
        for total in range(size):
            room = np.minimum(most[:, of_atoms == total].astype(float).sum(axis=1), MAX_COUNT)
            bad = distinct[:, start + total] > room
            if bad.any():
                row = int(bad.argmax())
                others = sorted(c[0] for c in columns if c[2] != ">=" and c[0] != label)
                unit = str(units[int(np.argmax(pattern == row))])
                raise DataError(
                    f"{where}: unit {unit}: constraints contradict each other: {label} says "
                    f"{sign} {distinct[row, start + total]} of total {total}, of which "
                    f"{', '.join(others) or 'others'} leave at most {int(room[row])}"
                )
