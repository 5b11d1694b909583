"""One shard of the risk of noisy measurements: the cells of some units, as the files hold them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk.experiments.measurements.config import MeasurementsConfig
from bayesrisk.experiments.measurements.evidence import Evidence, around, combined
from bayesrisk.experiments.measurements.source import Source
from bayesrisk.inference.count.measurement_tables import MeasurementTables
from bayesrisk.inference.count.posterior import bayes_rule
from bayesrisk.readers.nmf.between import rows_between
from bayesrisk.readers.nmf.bounds import CellBounds, place_of

_SEVERAL = "several"  # constraints that settle a cell together


def cells_of(
    source: Source, config: MeasurementsConfig, units: NDArray[np.str_], *, combine: bool
) -> dict[str, pa.Table]:
    """Return the parts of a shard of units."""
    near = around(source, source.state_of(str(units[0])), config.combine)
    width = source.width(source.level)
    low, high = str(units[0])[:width], str(units[-1])[:width]
    found = rows_between(source.nmf, source.level, "DPQuery", low, high, (source.query,))
    own = found.get(source.query)
    row = np.full(units.size, -1) if own is None else place_of(units, own.geocodes)
    absent = int((row < 0).sum()) if near.listed else None
    if not config.combine:  # units without an answer to the query have nothing to be judged by
        units, row = units[row >= 0], row[row >= 0]
    bounds = source.bounds(units, source.level, source.target)
    if combine:
        evidence = combined(source, near, units, bounds, config.known_count)
    else:
        evidence = Evidence.none(units.size, source.n_cells)
        if own is not None and units.size:
            cells = np.arange(source.n_cells)
            at = np.flatnonzero(row >= 0)
            evidence.add(at, cells, own.values[row[at]], own.sigma2[row[at]], config.known_count)
    tables = MeasurementTables(config.prior, config.known_count)
    alone = np.full((2, units.size, source.n_cells), np.nan)
    counts = np.zeros((units.size, source.n_cells), dtype=np.int64)
    measured = np.flatnonzero(row >= 0)
    if own is not None and measured.size:
        counts[measured] = own.values[row[measured]]
        looked_up = tables.look_up(counts[measured], own.sigma2[row[measured]])
        for out, answers in zip(alone, looked_up, strict=True):
            out[measured] = answers.reshape(measured.size, -1)
    joint = _with_constraints(config, bounds, evidence, alone, row >= 0)
    tally = _tally(config, bounds, evidence, alone[1], joint)
    tally |= {"units": measured.size} | ({} if absent is None else {"unmeasured": absent})
    sigma2, values, times = tables.counted()
    return {
        "counted": pa.table({"sigma2": pa.array(sigma2, pa.float64()),
                             "noisy_count": pa.array(values, pa.int64()),
                             "cells": pa.array(times, pa.int64())}),
        "tally": pa.table({"name": pa.array(list(tally), pa.string()),
                           "cells": pa.array(list(tally.values()), pa.int64())}),
        "risk": _table(units, counts, row >= 0, alone, joint, evidence, bounds),
    }  # fmt: skip


def _with_constraints(
    config: MeasurementsConfig,
    bounds: CellBounds,
    evidence: Evidence,
    alone: NDArray[np.float64],
    measured: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return posterior and ratio given all values and the constraints; NaN where k is wrong."""
    p, k = config.prior, config.known_count
    joint = np.empty_like(alone)
    # Where the query's own value is all there is, numbers without constraints hold to the bit.
    # (In a unit that has an answer its own value is always among those of the count.)
    single = (evidence.values == 1) & measured[:, None]
    todo = ~single
    for out, numerator, own in zip(joint, (p, 1.0), alone, strict=True):
        part = np.empty(int(todo.sum()))
        bayes_rule(-evidence.total[todo], p, numerator, part)
        out[todo] = part
        out[single] = own[single]
        full = bounds.upper <= k
        sure = bounds.lower == k + 1
        wrong = bounds.lower > k + 1
        for where, value in ((full, 0.0), (sure, numerator / p), (wrong, np.nan)):
            if where.any():
                out[where[bounds.pattern]] = value
    return joint


def _settled(bounds: CellBounds) -> NDArray[np.bool_]:
    """Return in which cells constraints leave one count."""
    return np.equal(bounds.upper, bounds.lower)


def _tally(
    config: MeasurementsConfig,
    bounds: CellBounds,
    evidence: Evidence,
    ratio: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> dict[str, int]:
    """Return counts of units and cells that add up over shards."""
    times = np.bincount(bounds.pattern, minlength=len(bounds.upper))
    tally: Counter[str] = Counter()
    settled = _settled(bounds)
    for number in np.unique(bounds.kind[settled]).tolist() if settled.any() else []:
        name = bounds.kinds[number] if number >= 0 else _SEVERAL
        tally[f"settled {name}"] += int(times @ (settled & (bounds.kind == number)).sum(axis=1))
    tally["strengthened"] = int((evidence.values > 1).sum())
    tally["contradicted"] = int(np.isnan(joint[1]).sum())
    empty = (bounds.upper == 0)[bounds.pattern]
    for limit in config.exceeds:
        above = ratio > limit  # False where there is no answer
        tally[f"empty {limit!r}"] = int((above & empty).sum())
        tally[f"above {limit!r}"] = int((joint[1] > limit).sum())
    return dict(sorted(tally.items()))


def _table(
    units: NDArray[np.str_],
    counts: NDArray[np.int64],
    measured: NDArray[np.bool_],
    alone: NDArray[np.float64],
    joint: NDArray[np.float64],
    evidence: Evidence,
    bounds: CellBounds,
) -> pa.Table:
    """Return one row for each unit and cell."""
    n, cells = counts.shape
    place = np.repeat(np.arange(n, dtype=np.int32), cells)
    absent = np.repeat(~measured, cells)
    settled = _settled(bounds)[bounds.pattern].reshape(-1)
    used, codes = np.unique(bounds.kind[bounds.pattern].reshape(-1), return_inverse=True)
    names = [bounds.kinds[number] if number >= 0 else _SEVERAL for number in used.tolist()]
    by = pa.array(codes.reshape(-1).astype(np.int32), mask=~settled)
    left = {"posterior": alone[0], "risk_ratio": alone[1]}
    right = {"posterior_with_constraints": joint[0], "risk_ratio_with_constraints": joint[1]}
    wrong = np.isnan(joint[1]).reshape(-1)
    return pa.table(
        {
            "geocode": pa.DictionaryArray.from_arrays(
                pa.array(place), pa.array(units.tolist(), pa.string())
            ),
            "cell": np.tile(np.arange(cells, dtype=np.int32), n),
            "noisy_count": pa.array(counts.reshape(-1), mask=absent),
            **{name: pa.array(x.reshape(-1), mask=absent) for name, x in left.items()},
            **{name: pa.array(x.reshape(-1), mask=wrong) for name, x in right.items()},
            "values": evidence.values.reshape(-1),
            "settled_by": pa.DictionaryArray.from_arrays(by, pa.array(names, pa.string())),
        }
    )
