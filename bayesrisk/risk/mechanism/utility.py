"""Utility of a protection: the error of the published tables against the truth."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import generator
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.mechanism._simulation import Drawing
from bayesrisk.risk.mechanism.question import MAX_RELEASES
from bayesrisk.tables import (
    Microdata,
    PublishedTables,
    Records,
    Workload,
    tabulate,
)
from bayesrisk.tables.microdata import read_microdata

if TYPE_CHECKING:
    import pandas as pd

Key = tuple[str, str]
_ALL = ("all", "all")


def release_utility(
    population: Microdata | Records,
    mechanism: Mechanism,
    *,
    workload: Workload,
    draws: int,
    rng: np.random.Generator | int,
    progress: Callable[[int, int], None] | None = None,
) -> "pd.DataFrame":
    r"""Return the error of released tables, by level and table, over releases of one truth.

    .. math:: \mathrm{MAE} = E \frac{1}{C} \sum_c |y_c - x_c|, \qquad
        \mathrm{RMSE} = \sqrt{E \frac{1}{C} \sum_c (y_c - x_c)^2}

    over the C cells of a table at all places of a level, published zeros included.

    Parameters
    ----------
    population : Microdata or Records
        The truth; where it has no ``blocks``, the places of its records are taken as a public
        list.
    mechanism : Mechanism
        What protects it.
    workload : Workload
        Published tables.
    draws : int
        Releases, 2 to 1,000,000.
    rng : Generator or int
        Source of randomness; release i has stream i of one seed taken from it.
    progress : callable, optional
        ``progress(done, draws)`` after each release.

    Returns
    -------
    pandas.DataFrame
        Columns ``level``, ``table``, ``mean_absolute_error``, ``mean_absolute_error_error``,
        ``root_mean_square_error``, ``root_mean_square_error_error``, ``suppressed_share``,
        ``cells``, ``draws``; the last row, ``all``, is over all cells.  Errors of the errors are
        Monte Carlo standard errors.  A suppressed cell counts as a published zero, which is how a
        user who adds up the table reads it; its share is given beside.

    Raises
    ------
    ArgumentError
        If ``draws`` is below 2, or the mechanism releases other places than the truth has.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> from bayesrisk.tables import Records, Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [30, 4],
    ...                        "race": [1, 3], "hisp": [0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> frame = release_utility(
    ...     records, make_mechanism("rounding", base=3, method="nearest"),
    ...     workload=Workload.named("sf1-block").select(tables=["P6"]), draws=2, rng=1,
    ... )
    >>> frame[["table", "mean_absolute_error", "root_mean_square_error"]].round(4)
      table  mean_absolute_error  root_mean_square_error
    0    P6               0.3333                  0.5774
    1   all               0.3333                  0.5774
    """
    return utility_and_spec(
        population, mechanism, workload=workload, draws=draws, rng=rng, progress=progress
    )[0]


def utility_and_spec(
    population: Microdata | Records,
    mechanism: Mechanism,
    *,
    workload: Workload,
    draws: int,
    rng: np.random.Generator | int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple["pd.DataFrame", MechanismSpec]:
    """Return the utility, and the spec of the release, which may say more than the mechanism's."""
    if not isinstance(mechanism, Mechanism):
        raise ArgumentTypeError(f"mechanism must have spec and release(), got {shown(mechanism)}")
    if not isinstance(workload, Workload):
        raise ArgumentTypeError(f"workload must be a Workload, got {shown(workload)}")
    draws = check.integer(draws, "draws", lower=2, upper=MAX_RELEASES)
    check.function(progress, "progress")
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
        for key, found in rows.items():
            found.append(_errors(release.tables, truth, key))
        if progress is not None:
            progress(i + 1, draws)
    return _summary(truth, {key: np.array(found) for key, found in rows.items()}, draws), spec


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


def _summary(
    truth: PublishedTables, sums: dict[Key, NDArray[np.float64]], draws: int
) -> "pd.DataFrame":
    import pandas as pd  # slow to import

    cells = {key: int(np.prod(truth.counts[key].shape)) for key in sums}
    sums[_ALL] = np.sum(list(sums.values()), axis=0)
    cells[_ALL] = sum(cells.values())
    rows = []
    for (level, table), found in sums.items():
        absolute, square, hidden = found.T / cells[level, table]
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
