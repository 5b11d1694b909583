"""Simulation of a mechanism under each hypothesis, and the errors of released tables."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.randomness import generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference.simulated import SUPPRESSED
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.risk.mechanism.hypotheses import Cell
from bayesrisk.tables import Microdata, PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.microdata import OCCUPIED, read_microdata
from bayesrisk.tables.published import select_rows
from bayesrisk.tables.workload import Key


class Drawing:
    """A mechanism prepared for one truth, ready to be drawn many times.

    A mechanism that draws nothing from its generator gives the same release for every seed, so it
    is released once.
    """

    def __init__(self, mechanism: Mechanism, microdata: Microdata, workload: Workload) -> None:
        if microdata.blocks is None:  # the places of the records are taken as a public list
            microdata = microdata.with_places(OCCUPIED)
        complete = getattr(mechanism, "completed", None)
        mechanism = complete(microdata, workload) if callable(complete) else mechanism
        self._mechanism, self._microdata, self._workload = mechanism, microdata, workload
        prepare = getattr(mechanism, "prepare", None)
        self._prepared = prepare(microdata, workload=workload) if callable(prepare) else None
        self.fixed: Release | None = None

    def observe(self, rng: np.random.Generator, cells: Sequence[Cell]) -> IntArray:
        """Return the counts of cells in one release, without building whole tables if possible."""
        watch = getattr(self._prepared, "observed", None)
        if self.fixed is None and callable(watch):
            before = _position(rng)
            counts: IntArray | None = watch(rng, cells)
            if counts is not None and _position(rng) != before:
                return counts
        return released_counts(self.draw(rng).tables, cells)

    def draw(self, rng: np.random.Generator) -> Release:
        """Return one release."""
        if self.fixed is not None:
            return self.fixed
        before = _position(rng)
        if self._prepared is not None:
            release: Release = self._prepared.draw(rng)
        else:
            release = self._mechanism.release(self._microdata, workload=self._workload, rng=rng)
        if _position(rng) == before:
            self.fixed = release
        return release


def _position(rng: np.random.Generator) -> str:
    """Return a generator's state as a text, with the number of its children."""
    children = getattr(rng.bit_generator.seed_seq, "n_children_spawned", None)
    return f"{rng.bit_generator.state} {children}"


class TruthDraws:
    """Releases of the truth, cached by random stream, for many targets.

    Only the observed tables are kept.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        microdata: Microdata,
        workload: Workload,
        tables: Sequence[tuple[str, str]],
    ) -> None:
        self.drawing = Drawing(mechanism, microdata, workload)
        self._keys = tuple(tables)
        self._releases: dict[str, PublishedTables] = {}

    def observe(self, rng: np.random.Generator, cells: Sequence[Cell]) -> IntArray:
        """Return the counts of cells in a stream's release, which is drawn at first use."""
        if self.drawing.fixed is not None:
            return released_counts(self.drawing.fixed.tables, cells)
        key = _position(rng)
        if key not in self._releases:
            tables = self.drawing.draw(rng).tables
            workload = tables.workload
            part = Workload(workload.schema, {k: workload.tables[k] for k in self._keys})
            whole = dict.fromkeys(part.levels, slice(None))
            self._releases[key] = select_rows(tables, whole, part)
        return released_counts(self._releases[key], cells)


class ReleaseSimulation:
    """Simulator of observed cells, with one data set for each hypothesis."""

    def __init__(
        self,
        mechanism: Mechanism,
        datasets: Sequence[Microdata],
        workload: Workload,
        cells: Sequence[Cell],
        truth: TruthDraws | None = None,
    ) -> None:
        self._truth = truth
        self._mechanism, self._datasets, self._workload = mechanism, tuple(datasets), workload
        self._cells = tuple(cells)
        self._drawings: dict[int, Drawing] = {}

    def __getstate__(self) -> dict[str, object]:
        """Return the state without prepared mechanisms."""
        return {**self.__dict__, "_drawings": {}}

    def fixed(self) -> IntArray | None:
        """Return the cells (hypotheses, cells) if releases never vary, else None."""
        rows = []
        for hypothesis in range(len(self._datasets)):
            rows.append(self(hypothesis, np.random.default_rng(0), 1)[0])
            if self._drawings[hypothesis].fixed is None:
                return None
        return np.stack(rows)

    def __call__(self, hypothesis: int, rng: np.random.Generator, size: int) -> IntArray:
        """Return the observed cells of ``size`` releases."""
        if hypothesis == 0 and self._truth is not None and size == 1:
            self._drawings[0] = self._truth.drawing
            return self._truth.observe(rng, self._cells)[None]
        if hypothesis not in self._drawings:
            self._drawings[hypothesis] = Drawing(
                self._mechanism, self._datasets[hypothesis], self._workload
            )
        drawing = self._drawings[hypothesis]
        return np.stack([drawing.observe(rng, self._cells) for _ in range(size)])


def released_counts(tables: PublishedTables, cells: Sequence[Cell]) -> IntArray:
    """Return the released counts of cells; suppressed ones have a special value."""
    counts = np.empty(len(cells), dtype=np.int64)
    for key in dict.fromkeys(cell[:2] for cell in cells):
        level, table = key
        names = tables.workload.tables[level, table].cells
        index = [i for i, cell in enumerate(cells) if cell[:2] == key]
        rows = [tables.row(level, cells[i][3]) for i in index]
        columns = [names.index(cells[i][2]) for i in index]
        counts[index] = tables.counts[level, table][rows, columns]
        if (level, table) in tables.suppressed:
            hidden = np.asarray(tables.suppressed[level, table][rows, columns], dtype=bool)
            counts[np.array(index)[hidden]] = SUPPRESSED
    return counts


_ALL = ("all", "all")


def utility_and_spec(
    population: Microdata | Records,
    mechanism: Mechanism,
    *,
    workload: Workload,
    draws: int,
    rng: np.random.Generator | int,
) -> tuple["pd.DataFrame", MechanismSpec]:
    r"""Return the mean errors of released tables by level and table, and the release's spec.

    .. math:: \mathrm{MAE} = E \frac{1}{C} \sum_c |y_c - x_c|, \qquad
        \mathrm{RMSE} = \sqrt{E \frac{1}{C} \sum_c (y_c - x_c)^2}

    They are over the C cells of a table at all places of a level, published zeros included. They
    are also over ``draws`` releases of one truth, each with its own random stream. Columns are
    ``level``, ``table``, ``mean_absolute_error`` and ``root_mean_square_error``, both with
    ``_error`` (a Monte Carlo standard error), ``suppressed_share``, ``cells`` and ``draws``. The
    last row, ``all``, is over all cells. A suppressed cell counts as a published zero. The spec may
    say more than the mechanism's.
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
    """Return the sums of absolute and squared errors, and the number of suppressed cells."""
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
