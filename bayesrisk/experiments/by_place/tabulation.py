"""Tables of microdata by place: a part at a time, as a data set by the same places."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.limits import Count
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.experiments.by_place.above import (
    at_levels,
    coarse_levels,
    coarse_rows,
    digits,
    sums_of,
)
from bayesrisk.experiments.by_place.folder import PlaceFolder, PlacePart
from bayesrisk.experiments.by_place.records import (
    forget_index,
    level_of_parts,
    open_index,
    read_place,
    workload_digest,
)
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.tables import Workload, tabulate
from bayesrisk.tables.exchange.partitions import Partitions


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
    attack tables, place by place.  Memory: one part in every worker.  The tables are the
    custodian's: beside exact counts the folder holds a digest of the microdata.  What is to be
    published is made by :class:`ReleaseStudy`.

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
        index = open_index(self.records)
        level = level_of_parts(index, self.workload)
        digest = workload_digest(self.workload)
        return TabulationConfig(index.digest, digest, level, len(index.codes))

    @property
    def _above(self) -> list[str]:
        """Levels that are coarser than the parts."""
        return coarse_levels(self.workload, self.config.level)

    def open(self, folder: str | Path) -> PlaceFolder:
        """Return the folder of the tables."""
        return PlaceFolder(folder, "tables", *(["above"] if self._above else []))

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the tables of a part, and what it adds to those of coarser levels."""
        code, data = read_place(self.records, shard, self.config.records)
        made = tabulate(data, self.workload)
        coarse = self._above
        inner = at_levels(made, [level for level in self.workload.levels if level not in coarse])
        width = digits(self.workload, self.config.level)
        part = PlacePart(code, inner, made.geoids[self.workload.levels[-1]], width)
        return {"part": part, **({"above": coarse_rows(made, coarse)} if coarse else {})}

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the index; the tables of coarser levels are written beside."""
        above = None
        if self._above:
            rows = (folder.read_part(shard, "above") for shard in range(self.config.shards))
            above = sums_of(rows, self.workload, self._above, open_index(self.records).codes)
        return cast(PlaceFolder, folder).index(self.config, self.config.level, above)

    def summary(self, folder: PartFolder, outcome: Outcome) -> TabulationSummary:
        """Return what was done."""
        places = 0
        if outcome.complete:
            places = int(Partitions.read(folder.path, "tables").sizes.sum())
        return TabulationSummary(str(folder.path), *outcome, places)

    def close(self) -> None:
        """Forget the index of the microdata."""
        forget_index()
