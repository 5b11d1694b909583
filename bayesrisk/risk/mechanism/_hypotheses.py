"""What is asked of a mechanism: the data set under each hypothesis, and the cells observed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.risk.mechanism.question import Alternative, MechanismQuestion
from bayesrisk.tables import Microdata, Records, Workload, tabulate
from bayesrisk.tables.microdata import OCCUPIED, read_microdata

#: Level, table, cell, geographic code.
Cell = tuple[str, str, str, str]
Target = int | Mapping[str, Any]

_UNITS = ("persons", "households")
_KEYS = ("household", "households", "person", "persons")


@dataclass(frozen=True)
class Question:
    """One target: hypotheses with the truth first, and what of the release is observed.

    Attributes
    ----------
    datasets : tuple of Microdata
        Population under each hypothesis.
    prior : ndarray, (hypotheses,)
        Belief in each.
    cells : tuple of Cell
        Observed cells.
    counts : ndarray of int64, (hypotheses, cells)
        Their true counts.
    """

    datasets: tuple[Microdata, ...]
    prior: NDArray[np.float64]
    cells: tuple[Cell, ...]
    counts: IntArray


def target_rows(data: Microdata, target: Target) -> dict[str, IntArray]:
    """Return the rows of the target in each unit, by unit."""
    if not isinstance(target, Mapping):
        present = [unit for unit in _UNITS if getattr(data, unit) is not None]
        if len(present) > 1:
            raise ArgumentError(
                "target must say whose: {'persons': row}, {'households': row}, {'person': id} or "
                f"{{'household': id}}, got {shown(target)}"
            )
        target = {present[0]: target}
    if len(target) != 1 or next(iter(target)) not in _KEYS:
        raise ArgumentError(f"target must have one key of {', '.join(_KEYS)}, got {shown(target)}")
    key, value = next(iter(target.items()))
    if key in _UNITS:
        records = _unit(data, key)
        rows = check.count_array(value, f"target[{key!r}]", lower=0, upper=len(records) - 1)
        return {key: np.unique(rows.reshape(-1))}
    identity = check.integer(value, f"target[{key!r}]")
    units = _UNITS if key == "household" else ("persons",)
    found = {}
    for unit in units:
        records = getattr(data, unit)
        if records is not None and key in records.columns:
            ids = records.table.column(key).to_numpy(zero_copy_only=False)
            found[unit] = np.flatnonzero(ids == identity)
    if not any(rows.size for rows in found.values()):
        raise ArgumentError(f"target[{key!r}] must be in the population, got {identity}")
    return {unit: rows for unit, rows in found.items() if rows.size}


def _unit(data: Microdata, unit: str) -> Records:
    records: Records | None = getattr(data, unit)
    if records is None:
        raise ArgumentError(f"population must have {unit}, got none")
    return records


def hypothesis(
    data: Microdata, rows: Mapping[str, IntArray], alternative: Alternative
) -> Microdata:
    """Return the population in which the target is absent (None), or has other values."""
    units: dict[str, Records | None] = {unit: getattr(data, unit) for unit in _UNITS}
    if alternative is None:
        for unit, index in rows.items():
            keep = np.ones(len(_unit(data, unit)), dtype=bool)
            keep[index] = False
            units[unit] = _unit(data, unit).take(keep)
        return Microdata(units["persons"], units["households"], data.blocks)
    if not isinstance(alternative, Mapping) or not alternative:
        raise ArgumentTypeError(
            f"alternatives must be None (absent) or columns with values, got {shown(alternative)}"
        )
    for name, value in alternative.items():
        holders = [unit for unit in rows if name in _unit(data, unit).columns]
        if not holders:
            raise ArgumentError(f"alternatives must name a column of the target, got {shown(name)}")
        for unit in holders:
            records = _unit(Microdata(units["persons"], units["households"]), unit)
            about = records.schema
            labelled = isinstance(value, str) and name in about.names
            code = about.attribute(name).code(value) if labelled else value
            column = records.table.column(name).to_pylist()
            for row in rows[unit].tolist():
                column[row] = code
            units[unit] = records.replace(**{name: column})
    return Microdata(units["persons"], units["households"], data.blocks)


def ask(population: Microdata | Records, target: Target, question: MechanismQuestion) -> Question:
    """Return the question about one target, every part of it checked."""
    check.instance(question, MechanismQuestion, "question")
    workload = question.workload
    data = read_microdata(population, "population")
    rows = target_rows(data, target)
    datasets = (data, *(hypothesis(data, rows, other) for other in question.alternatives))
    part = Workload(workload.schema, {key: workload.tables[key] for key in question.tables()})
    records = [dataset.for_schema(workload.schema) for dataset in datasets]
    places = _places(data, records)
    own = _own_places(records, workload)
    near = _near(question, own, places)
    dense = _tabulated(records, part, near)
    _keep_totals(_cells(dense, part, question.known_totals, near, own[0]))
    found = _cells(dense, part, question.observed, near, own[0])
    if not found:
        raise ArgumentError(
            f"observed must have a cell that a hypothesis changes, got {shown(question.observed)}"
        )
    _public_places(tuple(found), workload, places)
    if data.blocks is None:  # the places of all hypotheses are taken as the public list
        listed = [dataset.with_places(OCCUPIED).geoids() for dataset in datasets]
        known = np.concatenate([codes for codes in listed if codes is not None])
        datasets = tuple(dataset.with_places(known) for dataset in datasets)
    counts = np.array(list(found.values()), dtype=np.int64).T
    return Question(datasets, question.prior_pmf(), tuple(found), counts)


def _keep_totals(totals: Mapping[Cell, list[int]]) -> None:
    """Refuse a hypothesis that is impossible because it changes a total that is known."""
    for (level, table, cell, place), (truth, *others) in totals.items():
        for i, count in enumerate(others):
            if count != truth:
                raise ArgumentError(
                    f"alternatives[{i}] must keep the known total of {table!r}, {cell!r}, at "
                    f"{level} {place}, {truth}, got {count}: let others make it up, such as the "
                    "target's record in another place of the group"
                )


def _near(
    question: MechanismQuestion, own: list[TextArray], places: list[TextArray]
) -> dict[str, TextArray]:
    """Return the places of each level asked about that are the target's, or named."""
    geography = question.workload.schema.geography
    moved, known = np.unique(np.concatenate(own)), np.unique(np.concatenate(places))
    near: dict[str, TextArray] = {}
    for entry in (*question.observed, *question.known_totals):
        level = entry[0]
        found = near.get(level, np.unique(geography.ancestors(moved, level)))
        if len(entry) == 4:
            if entry[3] not in geography.ancestors(known, level):
                name = "observed" if entry in question.observed else "known_totals"
                raise ArgumentError(
                    f"{name} must name places of the population, "
                    f"got {shown(entry[3])} at {shown(level)}"
                )
            found = np.union1d(found, [entry[3]])
        near[level] = found
    return near


def _own_places(records: list[Records], workload: Workload) -> list[TextArray]:
    """Return, under each hypothesis, the places whose records are not those of the others."""
    found = [_counted(r) for r in records]
    own = []
    for mine in found:
        moved = [key for key in mine if any(mine[key] != other.get(key, 0) for other in found)]
        own.append(np.array(sorted({place for place, _ in moved}), dtype=np.str_))
    if not any(part.size for part in own):
        raise ArgumentError(
            "alternatives must change what the workload counts, but every hypothesis gives the "
            "same records"
        )
    width = workload.schema.geography.widths[-1]
    return [part.astype(f"<U{max(width, 1)}") for part in own]


def _counted(records: Records) -> dict[tuple[str, int], int]:
    """Return how many records there are by place and cell."""
    names, place = records.places()
    pairs, times = np.unique(np.column_stack([place, records.cells()]), axis=0, return_counts=True)
    keys = zip(names[pairs[:, 0]].tolist(), pairs[:, 1].tolist(), strict=True)
    return dict(zip(keys, times.tolist(), strict=True))


def _places(data: Microdata, records: list[Records]) -> list[TextArray]:
    """Return the finest places that a release lists, under each hypothesis."""
    listed = [r.places()[0] for r in records]
    if data.blocks is None:
        return listed
    known = data.blocks["block"].to_numpy(dtype=np.str_)
    return [np.union1d(known, part) for part in listed]


def _public_places(cells: Sequence[Cell], workload: Workload, places: list[TextArray]) -> None:
    """Refuse an observed place that some hypothesis leaves out of the release."""
    for level in {cell[0] for cell in cells}:
        listed = [set(workload.schema.geography.ancestors(p, level).tolist()) for p in places]
        for cell in cells:
            if cell[0] == level and not all(cell[3] in some for some in listed):
                raise ArgumentError(
                    f"observed place {cell[3]!r} has no record under some hypothesis: population "
                    "must list its blocks, so that a place without records is published too"
                )


def _cells(
    dense: Mapping[tuple[str, str], IntArray],
    workload: Workload,
    entries: Sequence[tuple[str, ...]],
    near: Mapping[str, TextArray],
    own: TextArray,
) -> dict[Cell, list[int]]:
    """Return the cells that entries name, with their counts under each hypothesis."""
    found: dict[Cell, list[int]] = {}
    for entry in entries:
        key = entry[0], entry[1]
        names, counts, codes = workload.tables[key].cells, dense[key], near[entry[0]]
        if len(entry) == 2:
            where = np.argwhere((counts != counts[0]).any(axis=0))
        else:
            code = entry[3] if len(entry) == 4 else _own_code(workload, own, entry)
            where = np.array([[int(np.searchsorted(codes, code)), names.index(entry[2])]])
        for row, column in where.tolist():
            found[*key, names[column], str(codes[row])] = counts[:, row, column].tolist()
    return found


def _own_code(workload: Workload, own: TextArray, entry: tuple[str, ...]) -> str:
    codes = np.unique(workload.schema.geography.ancestors(own, entry[0]))
    if codes.size != 1:
        raise ArgumentError(
            f"{entry!r} must name a geoid: the target is in {codes.size} places of that level"
        )
    return str(codes[0])


def _tabulated(
    records: list[Records], workload: Workload, near: Mapping[str, TextArray]
) -> dict[tuple[str, str], IntArray]:
    """Return counts by table, (hypotheses, places near, cells), from the records near alone."""
    geography = workload.schema.geography
    places = np.unique(np.concatenate([r.places()[0] for r in records]))
    inside = np.zeros(places.shape, dtype=bool)
    for level, codes in near.items():
        inside |= np.isin(geography.ancestors(places, level), codes)
    kept = places[inside]
    dense: dict[tuple[str, str], list[IntArray]] = {key: [] for key in workload.tables}
    for part in records:
        taken = part.take(np.isin(part.geoids, kept))
        published = tabulate(taken, workload, geoids=kept)
        for key, found in dense.items():
            codes, known = near[key[0]], published.geoids[key[0]]
            counts = np.zeros((codes.size, len(workload.tables[key].cells)), dtype=np.int64)
            there = np.isin(codes, known)
            rows = np.searchsorted(known, codes[there])
            counts[there] = published.counts[key][rows].toarray()
            found.append(counts)
    return {key: np.stack(found) for key, found in dense.items()}
