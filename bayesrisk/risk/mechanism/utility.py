"""Utility of a protection: the error of the published tables against the truth."""

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.randomness import generator
from bayesrisk._base.validation import FloatArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism.simulation import Drawing
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.microdata import read_microdata

Key = tuple[str, str]
_ALL = ("all", "all")


def utility_and_spec(
    population: Microdata | Records,
    mechanism: Mechanism,
    *,
    workload: Workload,
    draws: int,
    rng: np.random.Generator | int,
) -> tuple["pd.DataFrame", MechanismSpec]:
    r"""Return the error of released tables, by level and table, and the spec of the release.

    .. math:: \mathrm{MAE} = E \frac{1}{C} \sum_c |y_c - x_c|, \qquad
        \mathrm{RMSE} = \sqrt{E \frac{1}{C} \sum_c (y_c - x_c)^2}

    over the C cells of a table at all places of a level, published zeros included, and over
    ``draws`` releases of one truth, each with a stream of its own.  Columns ``level``, ``table``,
    ``mean_absolute_error``, ``root_mean_square_error``, both with ``_error`` (a Monte Carlo
    standard error), ``suppressed_share``, ``cells``, ``draws``; the last row, ``all``, is over all
    cells.  A suppressed cell counts as a published zero.  The spec may say more than the
    mechanism's.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentTypeError("mechanism", "must have spec and release()", got=mechanism)
    check.instance(workload, Workload, "workload")
    seed = int(generator(rng).integers(2**63))
    data = read_microdata(population, "population")
    truth = tabulate(data, workload)
    drawing = Drawing(mechanism, data, workload)
    rows: dict[Key, list[tuple[float, float, float]]] = {key: [] for key in truth.counts}
    spec = mechanism.spec
    for i in range(draws):
        stream = np.random.SeedSequence(seed, spawn_key=(i,))
        release = drawing.draw(np.random.default_rng(stream))
        spec = release.spec
        for key, errors in rows.items():
            errors.append(_errors(release.tables, truth, key))
    return _summary(truth, {key: np.array(errors) for key, errors in rows.items()}, draws), spec


def _errors(
    published: PublishedTables, truth: PublishedTables, key: Key
) -> tuple[float, float, float]:
    """Return the sums of absolute and of squared errors, and how many cells are suppressed."""
    level = key[0]
    if not np.array_equal(published.geoids[level], truth.geoids[level]):
        raise ArgumentError(
            f"mechanism must release the places of the population at level {level!r}: "
            "population must list its blocks"
        )
    difference = sparse.csr_array(published.counts[key] - truth.counts[key])
    error = difference.data.astype(np.float64)
    hidden = published.suppressed[key].nnz if key in published.suppressed else 0
    return float(np.abs(error).sum()), float((error**2).sum()), float(hidden)


def _summary(truth: PublishedTables, sums: dict[Key, FloatArray], draws: int) -> "pd.DataFrame":
    cells = {key: int(np.prod(truth.counts[key].shape)) for key in sums}
    sums[_ALL] = np.sum(list(sums.values()), axis=0)
    cells[_ALL] = sum(cells.values())
    rows = []
    for (level, table), errors in sums.items():
        absolute, square, hidden = errors.T / cells[level, table]
        root = float(np.sqrt(square.mean()))
        slope = 0.5 / root if root > 0.0 else 0.0
        rows.append(
            {
                "level": level,
                "table": table,
                "mean_absolute_error": float(absolute.mean()),
                "mean_absolute_error_error": float(absolute.std(ddof=1) / np.sqrt(draws)),
                "root_mean_square_error": root,
                "root_mean_square_error_error": float(slope * square.std(ddof=1) / np.sqrt(draws)),
                "suppressed_share": float(hidden.mean()),
                "cells": cells[level, table],
                "draws": draws,
            }
        )
    return pd.DataFrame(rows)
