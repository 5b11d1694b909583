"""A synthetic nation as a study: microdata by county, no county held longer than it is drawn."""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk._base import validation as check
from bayesrisk._base.display import arrow_table
from bayesrisk._version import __version__
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.population.summary import population_sums, summary_of_sums
from bayesrisk.experiments.by_place import PLACES, PlaceFolder, PlacePart
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import RunFolder
from bayesrisk.tables import Records
from bayesrisk.tables.exchange import made_up_mark


class _NationFolder(PlaceFolder):
    holds: ClassVar[str] = "microdata"


@dataclass(frozen=True)
class NationStudy(Study):
    """A synthetic nation by county, for :func:`~bayesrisk.run`.

    ``nation`` says how many blocks, and how they are drawn.  A complete run is microdata by place,
    which :class:`TabulationStudy` counts part by part and :meth:`Microdata.read` reads as a
    whole.  The summary has ``population``, a
    :class:`~bayesrisk.census.population.summary.PopulationSummary` beside the published figures.
    Memory: one county in every worker.
    """

    nation: Nation
    seed: int

    layout = replace(PLACES, kinds=("sums", "index"))
    _store: ClassVar = _NationFolder

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Blocks with those without people, digest of the settings, seed, number of counties."""
        check.instance(self.nation, Nation, "nation")
        text = json.dumps(asdict(self.nation.spec), sort_keys=True)
        return {
            "blocks": self.nation.blocks,
            "settings": hashlib.sha256(text.encode()).hexdigest(),
            "seed": check.integer(self.seed, "seed", lower=0),
            "shards": self.nation.counties,
            "version": __version__,
            **made_up_mark(True),
        }

    def compute(self, shard: int) -> dict[str, Any]:
        """Return a county, and what it adds to the figures of the nation."""
        county = self.nation.county(shard, seed=self.seed)
        code = self.nation.code(shard)
        part = PlacePart(code, county, np.asarray(county.geoids()), len(code))
        sums = population_sums(cast(Records, county.persons), county)
        return {"part": part, "sums": arrow_table(pd.DataFrame([sums]))}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index."""
        return cast(PlaceFolder, folder).index("county", None)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the figures of a complete nation."""
        if not complete:
            return {"population": None}
        sums = pa.concat_tables([folder.read_part(n, "sums") for n in range(self.shards)])
        return {"population": summary_of_sums(sums.to_pandas().sum(skipna=False).to_dict())}
