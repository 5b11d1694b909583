"""Tables of microdata by place: a part at a time, as a data set by the same places."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.limits import Count
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.by_place.folder import PlaceFolder, PlacePart
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.tables import Microdata, PublishedTables, Workload, tabulate
from bayesrisk.tables.exchange.layout import ROWS
from bayesrisk.tables.exchange.partitions import Partitions
from bayesrisk.tables.exchange.writing import rows_of

__all__ = ["TabulationConfig", "TabulationStudy", "TabulationSummary"]


@dataclass(frozen=True)
class TabulationConfig(RunSettings):
    """What is counted, and of which records.

    Attributes
    ----------
    records : str
        Digest of the microdata.
    workload : str
        Digest of the workload.
    level : str
        Level of the parts.
    shards : int
        Number of parts.
    version : str
        Version of bayesrisk.
    """

    records: str
    workload: str
    level: str
    shards: Count
    version: str = __version__


@displayed
@dataclass(frozen=True)
class TabulationSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Parts in all, those computed by this run, and those found finished.
    complete : bool
        Whether every part is there.
    places : int
        Places of the finest level of a complete run; else 0.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    places: int


@dataclass(frozen=True)
class TabulationStudy(Study[TabulationSummary]):
    """Exact tables of microdata by place, for :func:`~bayesrisk.run`: tables by the same places.

    A complete run is read by :meth:`PublishedTables.read`, as a whole, and by the commands that
    attack tables, place by place.  Memory: one part in every worker.

    Parameters
    ----------
    records : path-like
        Microdata by place, as :class:`NationStudy` makes it.
    workload : Workload
        What to count.  Tables of levels coarser than the parts are sums over them, in a part of
        their own.

    Raises
    ------
    ArgumentError
        When it runs: if the workload has no level inside the parts.
    DataError
        When it runs: if the microdata are damaged, or not by place.
    """

    records: str | Path
    workload: Workload

    @functools.cached_property
    def config(self) -> TabulationConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        check.instance(self.workload, Workload, "workload")
        source = Path(self.records)
        if not Partitions.there(source):
            raise DataError(f"{source}: must be microdata by place, which has _partitions.json")
        index = _index(str(source))
        geography = self.workload.schema.geography
        level = check.choice(index.level, "level of the parts", geography.levels)
        if geography.rank(self.workload.levels[-1]) <= geography.rank(level):
            raise ArgumentError(
                f"workload must have tables of a level inside a {level}, which the parts are, "
                f"got {', '.join(self.workload.levels)}"
            )
        text = json.dumps(self.workload.to_dict(), sort_keys=True)
        workload = hashlib.sha256(text.encode()).hexdigest()
        return TabulationConfig(index.digest, workload, level, len(index.codes))

    @property
    def _above(self) -> list[str]:
        """Levels that are coarser than the parts."""
        geography = self.workload.schema.geography
        rank = geography.rank(self.config.level)
        return [level for level in self.workload.levels if geography.rank(level) < rank]

    def open(self, folder: str | Path) -> PlaceFolder:
        """Return the folder of the tables."""
        return PlaceFolder(folder, "tables", *(["above"] if self._above else []))

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the tables of a part, and what it adds to those of coarser levels."""
        index = _index(str(self.records))
        if index.digest != self.config.records:
            raise DataError(f"{self.records}: must not change while it is read")
        code = index.codes[shard]
        made = tabulate(Microdata.read(index.checked(code)), self.workload)
        coarse = self._above
        inner = [level for level in self.workload.levels if level not in coarse]
        part = PlacePart(code, _levels(made, inner), made.geoids[inner[-1]], self._width(inner))
        if not coarse:
            return {"part": part}
        keys = [key for key in self.workload.tables if key[0] in coarse]
        rows = [rows_of(made.content, key) for key in keys]
        return {"part": part, "above": pa.concat_tables([ROWS.empty_table(), *rows])}

    def _width(self, inner: list[str]) -> int:
        """Return the digits of the places that the index counts in: above the finest level."""
        geography = self.workload.schema.geography
        return geography.width(inner[-2] if len(inner) > 1 else self.config.level)

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the index; the tables of coarser levels are written beside."""
        above = self._sums(folder) if self._above else None
        return cast(PlaceFolder, folder).index(self.config, self.config.level, above)

    def _sums(self, folder: PartFolder) -> PublishedTables:
        """Return the tables of levels coarser than the parts."""
        names = ROWS.names[:-1]
        total = ROWS.empty_table().to_pandas()
        for shard in range(self.config.shards):
            part = folder.read_part(shard, "above").to_pandas()
            total = pd.concat([total, part]).groupby(names, sort=False)["count"].sum().reset_index()
        codes = np.asarray(_index(str(self.records)).codes)
        workload = self.workload.select(levels=self._above)
        places = {n: np.unique(workload.schema.geography.ancestors(codes, n)) for n in self._above}
        counts = {}
        for key, table in workload.tables.items():
            some = total[(total["level"] == key[0]) & (total["table"] == key[1])]
            row = np.searchsorted(places[key[0]], some["geoid"].to_numpy(dtype=np.str_))
            cell = pd.Index(table.cells).get_indexer(pd.Index(some["cell"]))
            shape = (len(places[key[0]]), len(table.cells))
            values = some["count"].to_numpy(dtype=np.int64)
            counts[key] = sparse.csr_array((values, (row, cell)), shape=shape, dtype=np.int64)
        return PublishedTables(workload, places, counts)

    def summary(self, folder: PartFolder, outcome: Outcome) -> TabulationSummary:
        """Return what was done."""
        places = 0
        if outcome.complete:
            places = int(Partitions.read(folder.path, "tables").sizes.sum())
        return TabulationSummary(str(folder.path), *outcome, places)

    def close(self) -> None:
        """Forget the index of the microdata."""
        _index.cache_clear()


@functools.lru_cache(maxsize=1)
def _index(folder: str) -> Partitions:
    return Partitions.read(Path(folder), "microdata")


def _levels(tables: PublishedTables, levels: list[str]) -> PublishedTables:
    """Return the tables of some levels."""
    workload = tables.workload.select(levels=levels)
    return PublishedTables(
        workload,
        {level: tables.geoids[level] for level in levels},
        {key: tables.counts[key] for key in workload.tables},
    )
