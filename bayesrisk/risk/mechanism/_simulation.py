"""Run a mechanism under each hypothesis and look at the observed cells."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk.inference.simulated.likelihood import SUPPRESSED
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.risk.mechanism._hypotheses import Cell
from bayesrisk.tables import Microdata, PublishedTables, Workload
from bayesrisk.tables.microdata import OCCUPIED


class Drawing:
    """One truth and one mechanism: what does not depend on the noise is made once.

    A mechanism that draws nothing from its generator gives the same release for every seed, so it
    is released once.
    """

    def __init__(self, mechanism: Mechanism, microdata: Microdata, workload: Workload) -> None:
        if microdata.blocks is None:  # the places of the records are taken as a public list
            microdata = microdata.with_places(OCCUPIED)
        self._mechanism, self._microdata, self._workload = mechanism, microdata, workload
        prepare = getattr(mechanism, "prepare", None)
        self._prepared: Any = None
        if callable(prepare):
            self._prepared = prepare(microdata, workload=workload)
        self.fixed: Release | None = None

    def observe(self, rng: np.random.Generator, cells: Sequence[Cell]) -> NDArray[np.int64]:
        """Return the counts of cells in one release, whole tables unmade where that can be."""
        watch = getattr(self._prepared, "observed", None)
        if self.fixed is None and callable(watch):
            before = _position(rng)
            counts: NDArray[np.int64] | None = watch(rng, cells)
            if counts is not None and _position(rng) != before:
                return counts
        return counts_of(self.draw(rng).tables, cells)

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
    """Return where a generator stands, and how many others came from it."""
    seeds: Any = rng.bit_generator.seed_seq
    return f"{rng.bit_generator.state} {getattr(seeds, 'n_children_spawned', None)}"


class TruthDraws:
    """Releases of one truth, kept by the stream they come from: many targets share them.

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
        self._kept: dict[str, PublishedTables] = {}

    def observe(self, rng: np.random.Generator, cells: Sequence[Cell]) -> NDArray[np.int64]:
        """Return the counts of cells in the release of a stream, drawn when first asked for."""
        if self.drawing.fixed is not None:
            return counts_of(self.drawing.fixed.tables, cells)
        key = _position(rng)
        if key not in self._kept:
            self._kept[key] = self._part(self.drawing.draw(rng).tables)
        return counts_of(self._kept[key], cells)

    def _part(self, tables: PublishedTables) -> PublishedTables:
        workload = tables.workload
        part = Workload(workload.schema, {key: workload.tables[key] for key in self._keys})
        return PublishedTables(
            part,
            {level: tables.geoids[level] for level in part.levels},
            {key: tables.counts[key] for key in self._keys},
            {key: tables.suppressed[key] for key in self._keys if key in tables.suppressed},
        )


class Simulation:
    """The simulator that the likelihood asks for, over data sets one for each hypothesis."""

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

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was prepared behind."""
        return {**self.__dict__, "_drawings": {}}

    def fixed(self) -> NDArray[np.int64] | None:
        """Return what each data set's releases show, if they never vary; (hypotheses, cells)."""
        rows = []
        for hypothesis in range(len(self._datasets)):
            rows.append(self(hypothesis, np.random.default_rng(0), 1)[0])
            if self._drawings[hypothesis].fixed is None:
                return None
        return np.stack(rows)

    def __call__(self, hypothesis: int, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
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


def counts_of(tables: PublishedTables, cells: Sequence[Cell]) -> NDArray[np.int64]:
    """Return the released counts of cells; a suppressed one is its own symbol."""
    found = np.empty(len(cells), dtype=np.int64)
    for key in dict.fromkeys(cell[:2] for cell in cells):
        level, table = key
        names = tables.workload.tables[level, table].cells
        index = [i for i, cell in enumerate(cells) if cell[:2] == key]
        rows = [tables.row(level, cells[i][3]) for i in index]
        columns = [names.index(cells[i][2]) for i in index]
        found[index] = tables.counts[level, table][rows, columns]
        if (level, table) in tables.suppressed:
            hidden = np.asarray(tables.suppressed[level, table][rows, columns], dtype=bool)
            found[np.array(index)[hidden]] = SUPPRESSED
    return found
