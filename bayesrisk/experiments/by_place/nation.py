"""A synthetic nation as a study: microdata by county, no county held longer than it is drawn."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Seed
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.experiments.by_place.folder import PlaceFolder, PlacePart
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.folder import PartFolder, arrow_table
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.population import Nation, PopulationSummary
from bayesrisk.population.summary import population_sums, summary_of_sums
from bayesrisk.tables import Records

_LEVEL = "county"


@dataclass(frozen=True)
class NationConfig(RunSettings):
    """Which nation is drawn.

    Attributes
    ----------
    blocks : int
        Blocks, those without people included.
    settings : str
        Digest of the settings of the population.
    seed : int
        Its seed.
    shards : int
        Number of counties.
    version : str
        Version of bayesrisk.
    """

    blocks: Count
    settings: str
    seed: Seed
    shards: Count
    version: str = __version__


@displayed
@dataclass(frozen=True)
class NationSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Counties in all, those drawn by this run, and those found finished.
    complete : bool
        Whether every county is there.
    population : PopulationSummary or None
        The people of a complete run beside the published figures.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    population: PopulationSummary | None


@dataclass(frozen=True)
class NationStudy(Study[NationSummary]):
    """A synthetic nation by county, for :func:`~bayesrisk.run`.

    A complete run is microdata by place, which :class:`TabulationStudy` counts part by part and
    :meth:`Microdata.read` reads as a whole.  Memory: one county in every worker.

    Parameters
    ----------
    nation : Nation
        How many blocks, and how they are drawn.
    seed : int
        The same seed gives the same bytes, however the run is done.
    """

    nation: Nation
    seed: int

    @functools.cached_property
    def config(self) -> NationConfig:
        """The configuration."""
        check.instance(self.nation, Nation, "nation")
        seed = check.integer(self.seed, "seed", lower=0)
        text = json.dumps(asdict(self.nation.spec), sort_keys=True)
        settings = hashlib.sha256(text.encode()).hexdigest()
        return NationConfig(self.nation.blocks, settings, seed, self.nation.counties)

    def open(self, folder: str | Path) -> PlaceFolder:
        """Return the folder of the microdata."""
        return PlaceFolder(folder, "microdata", "sums")

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return a county, and what it adds to the figures of the nation."""
        drawn = self.nation.county(shard, seed=self.config.seed)
        code = self.nation.code(shard)
        part = PlacePart(code, drawn, np.asarray(drawn.geoids()), len(code))
        sums = population_sums(cast(Records, drawn.persons), drawn)
        return {"part": part, "sums": arrow_table(pd.DataFrame([sums]))}

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the index."""
        return cast(PlaceFolder, folder).index(self.config, _LEVEL, None)

    def summary(self, folder: PartFolder, outcome: Outcome) -> NationSummary:
        """Return what was done."""
        found = None
        if outcome.complete:
            counties = range(self.config.shards)
            sums = pa.concat_tables([folder.read_part(shard, "sums") for shard in counties])
            found = summary_of_sums(sums.to_pandas().sum(skipna=False).to_dict())
        return NationSummary(str(folder.path), *outcome, found)
