"""Certificates of safety from published tables alone: data sets that fit and differ.

Nothing here reads records. One fitting data set is searched for from scratch, and others from it,
until they differ in all that must stay unknown. ``check_safety.py`` accepts or refuses the file.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import disk
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import check_proof, check_safety
from bayesrisk.reconstruction.prover import count_entry, label_sets
from bayesrisk.risk.planning.fits import LeakQuestion, PlaceFits, Variant, first_records
from bayesrisk.risk.planning.ladders import PROVEN, PlanLimits
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.cells import coarsest_cells
from bayesrisk.tables.likelihoods import UNBOUNDED

#: Counts that must not be known.
_SMALL = 2


def safety_certificates(
    tables: PublishedTables, workload: Workload, limits: PlanLimits, places: ArrayLike | None = None
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each coarsest place's certificate, or None if none was found.

    Parameters
    ----------
    tables : PublishedTables
        The published tables, with their laws.
    workload : Workload
        The tables whose counts of 1 and 2 must stay unknown, published or not.
    limits : PlanLimits
        Limits that each place must keep: as many as the whole file allows.
    places : array_like of str, optional
        All places of the finest level; by default the published ones.

    Notes
    -----
    A limit is left out of a place's certificate if its data sets do not show it, for example
    because a published count may be 1 or 2.
    """
    schema, geography = workload.schema, workload.schema.geography
    if places is not None:
        finest = np.unique(geography.ancestors(np.asarray(places, np.str_), workload.levels[-1]))
    elif workload.levels[-1] in tables.geoids:
        finest = tables.geoids[workload.levels[-1]]
    else:
        raise ArgumentError(
            "places", "must be given where no table of theirs is published", shown="none"
        )
    space = coarsest_cells(schema, workload.tables.values())
    kinds = space.representatives()
    keyed = [*workload.tables.items(), *tables.workload.tables.items()]
    variants = [Variant.make(level, table, schema, kinds) for (level, _), table in keyed]
    top = geography.ancestors(finest, workload.levels[0])
    for code in np.unique(top).tolist():
        blocks = finest[top == code]
        parents, around = {}, {}
        for level in dict.fromkeys(level for (level, _), _ in keyed):
            ancestors = geography.ancestors(blocks, level)
            around[level], inverse = np.unique(ancestors, return_inverse=True)
            parents[level] = inverse.astype(np.int64)
        shape = blocks.size, kinds.size
        empty = PlaceFits(variants, parents, np.zeros(shape, np.int64))
        low = np.zeros(int(empty.start[-1]), np.int64)
        high = np.full_like(low, UNBOUNDED)
        for number, ((level, name), _) in enumerate(keyed):
            if number >= len(workload.tables):
                rows = np.searchsorted(tables.geoids[level], around[level])
                part = slice(*empty.start[number : number + 2])
                ends = tables.support(level, name, rows)
                low[part], high[part] = (end.ravel() for end in ends)
        base = first_records(empty, low, high)
        if base is None:
            yield code, None
            continue
        sets = PlaceFits(variants, parents, base)
        counts = sets.base_counts[: sets.start[len(workload.tables)]]
        # Only counts that may be 1 or 2 if they are known within so many.
        wanted = np.flatnonzero((counts > 0) & (counts <= _SMALL + limits.within))
        if limits.sentences is not None:
            wanted = np.flatnonzero(counts > 0)
        question = LeakQuestion(
            wanted, limits.within, limits.recovered, limits.sentences, limits.proved, in_full=True
        )
        sets.leaks(low, high, question)
        yield code, _document(tables, workload, limits, sets, blocks, kinds, around)


def _document(
    tables: PublishedTables, workload: Workload, limits: PlanLimits, sets: PlaceFits,
    blocks: IntArray, kinds: IntArray, places: Mapping[str, Any],
) -> dict[str, Any] | None:  # fmt: skip
    """Return a place's certificate with the limits that it shows, or None if there are none."""
    schema, geography = workload.schema, workload.schema.geography
    start = [[int(b), int(k), int(sets.base[b, k])] for b, k in np.argwhere(sets.base).tolist()]
    changes = [_summed(rows) for rows in sets.changes]
    used = sorted({entry[1] for change in [start, *changes] for entry in change}) or [0]
    number = {kind: i for i, kind in enumerate(used)}
    codes = schema.indices(kinds[used])
    labels = {
        a.name: [a.labels[c] if a.labels else int(c) + a.first for c in codes[a.name].tolist()]
        for a in schema.attributes
    }
    published = tables.workload.tables
    document: dict[str, Any] = {
        "format": check_safety.FORMAT,
        "levels": dict(zip(geography.levels, geography.widths, strict=True)),
        "places": blocks.tolist(),
        "names": {},
        "attributes": {a.name: list(a.labels) or [a.first, a.last] for a in schema.attributes},
        "counts": [
            count_entry(tables, key, cell, str(place))
            for key, table in published.items()
            for place in places[key[0]].tolist()
            for cell in range(len(table.cells))
        ],
        "asked": [
            {"level": level, "sets": label_sets(schema, {n: w[i] for n, w in factors.items()})}
            for (level, _), table in workload.tables.items()
            for factors in [table.factors]
            for i in range(len(table.cells))
        ],
        "limits": {},
        "within": limits.within,
        "kinds": [{n: column[i] for n, column in labels.items()} for i in range(len(used))],
        "start": [[b, number[k], n] for b, k, n in start],
        "changes": [[[b, number[k], n] for b, k, n in one] for one in changes],
    }  # fmt: skip
    width = len(document["places"][0])
    document["levels"] = {n: w for n, w in document["levels"].items() if w <= width}
    try:
        numbers, _, _ = check_safety.limits_kept(document)
    except check_proof.RefusedError:  # a law that the checker does not know
        return None
    for name in PROVEN:
        most = getattr(limits, name)
        if most is not None and numbers[name] <= most:
            document["limits"][name] = most
    return document if document["limits"] else None


def _summed(rows: IntArray) -> list[list[int]]:
    """Return changes of records, summed by place and kind."""
    keys, inverse = np.unique(rows[:, :2], axis=0, return_inverse=True)
    numbers = np.bincount(inverse.ravel(), rows[:, 2], len(keys)).astype(np.int64)
    return [[*key, n] for key, n in zip(keys.tolist(), numbers.tolist(), strict=True) if n]


def write_certificates(
    folder: Path,
    tables: PublishedTables,
    workload: Workload,
    limits: PlanLimits,
    places: ArrayLike | None = None,
) -> tuple[int, int, dict[str, int]]:
    """Write each place's certificate and a checker; return the numbers of certificates and places.

    The last result is the number of places at which each limit was not shown.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [n for n in PROVEN if getattr(limits, n) is not None]
    number, total, missing = 0, 0, dict.fromkeys(names, 0)
    for code, document in safety_certificates(tables, workload, limits, places):
        total += 1
        for name in names:
            missing[name] += document is None or name not in document["limits"]
        if document is not None:
            number += 1
            data = json.dumps(document, separators=(",", ":")).encode()
            disk.write_bytes(folder / f"safety-{code or 'all'}.json", data)
    for name in ("check_proof.py", "check_safety.py"):
        data = resources.files("bayesrisk.reconstruction").joinpath(name).read_bytes()
        disk.write_bytes(folder / name, data)
    return number, total, missing
