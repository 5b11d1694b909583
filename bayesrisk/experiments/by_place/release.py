"""Protected tables of microdata by place: a part at a time, as a release by the same places."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Seed
from bayesrisk._files.text import shown
from bayesrisk._random import named_stream
from bayesrisk._show import displayed
from bayesrisk._validation import TextArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentTypeError, BayesRiskError, DataError, PartFileError
from bayesrisk.experiments.by_place.parts import (
    PLACES,
    PlaceFolder,
    PlacePart,
    at_levels,
    check_reach,
    coarse_levels,
    coarse_rows,
    digits,
    forget_index,
    level_of_parts,
    open_index,
    read_place,
    sums_of,
    workload_digest,
)
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import (
    ADVICE,
    Layout,
    RunFolder,
    RunSettings,
    arrow_table,
)
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import check_unlisted
from bayesrisk.population import Nation, PopulationSummary
from bayesrisk.population.summary import population_sums, summary_of_sums
from bayesrisk.release import RELEASE_FILE, MechanismSpec, Release, place_document, release_document
from bayesrisk.tables import Records, Workload, tabulate
from bayesrisk.tables.exchange import ABOVE, PARTITIONS, Partitions, part_name
from bayesrisk.tables.microdata import OCCUPIED

_WHOLE = "release all records in one piece (--whole)"


@dataclass(frozen=True)
class ReleaseConfig(RunSettings):
    """What is protected, and how.

    Attributes
    ----------
    records : str
        Digest of the microdata.
    workload : str
        Digest of the workload.
    mechanism : str
        Spec of the mechanism, as JSON.
    seed : int or None
        Seed of a simulation.
    level : str
        Level of the parts.
    shards : int
        Number of parts.
    places : str or None
        ``"occupied"`` where the places with a record are published.
    version : str
        Version of bayesrisk.
    """

    records: str
    workload: str
    mechanism: str
    seed: Seed | None
    level: str
    shards: Count
    places: Literal["occupied"] | None = None
    version: str = __version__


@displayed
@dataclass(frozen=True)
class ReleaseSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Parts in all, those released by this run, and those found finished.
    complete : bool
        Whether every part is there.
    places : int
        Places of the finest level of a complete run; else 0.
    simulation : bool
        Whether draws could be repeated, as from a seed.
    diagnostics : dict of str to float
        Public facts about a complete run.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    places: int
    simulation: bool
    diagnostics: dict[str, float]


class _ReleaseFolder(PlaceFolder):
    """A release by place; what was read, from which seed, and how far it came stands beside it."""

    def __init__(self, path: str | Path, config: Mapping[str, Any], *kinds: str) -> None:
        layout = Layout("release by place", kinds, listing="run.json", confidential=True)
        super().__init__(path, config, "tables", layout)
        whole = self.path.resolve()
        self.state = whole.parent / f"{whole.name}.confidential"

    def _private(self, file: Path) -> bool:
        return file.is_relative_to(self.state)

    def _compute_again(self, error: BayesRiskError) -> None:
        """Refuse to draw a part of a finished release again: the first draw may be known."""
        if self.config["seed"] is None and Partitions.there(self.path):
            what = str(error).replace(f"; {ADVICE}", "")
            raise PartFileError(
                f"{what}; this release is finished, and to draw a part of it again would be "
                "another release of its records: bring the part back from a copy"
            ) from error
        super()._compute_again(error)


@dataclass(frozen=True)
class ReleaseStudy(Study):
    """A release of microdata by place, for :func:`~bayesrisk.run`: each part by itself.

    A complete run is read by :meth:`Release.read`, as a whole, and by the commands that attack
    tables, place by place.  Each part is a release of its own.  Memory: one part in every worker.

    Parameters
    ----------
    records : path-like
        Microdata by place, as :class:`NationStudy` or :func:`split_by_place` makes it.
    workload : Workload
        Tables to publish.  Those of levels coarser than the parts are sums over the parts.
    mechanism : Mechanism
        The protection.  Its ``acts_within`` must name the level of the parts or a finer one.
    seed : int, optional
        By default fresh entropy of the operating system for each part, kept nowhere.  A seed is for
        simulation, and the release says so.
    places : "occupied", optional
        For microdata without a public list of places (``blocks``): publish those where a record is,
        as :meth:`~bayesrisk.mechanisms.BaseMechanism.release` does.  A list goes to
        :func:`split_by_place`.

    Raises
    ------
    ArgumentError
        When it runs: if the workload has no level inside the parts, or the mechanism needs more
        than a part.
    DataError
        When it runs: if the microdata are damaged, not by place, or lie outside of their part.

    Notes
    -----
    The draws of a part depend on the seed and the name of the part only, so that they are the same
    for any number of workers, and whether or not there are other parts.  They are others than those
    of ``release`` of all records at once; the law of what is drawn is the same, but that swapping
    has its rate in each part.

    Parts hold different records, and what is drawn for one depends on no other.  So the budget of a
    release is that of each of its parts, not their sum: whoever comes, goes or changes is in one
    part, or leaves one for another, and a mechanism whose neighbours change one record is made for
    both.  Which parts there are is public where the places are.

    The folder ``NAME.confidential`` beside the release ``NAME``, which only its owner may read,
    holds what is needed to go on with a run: a digest of the records, and the seed of a simulation.
    It is not for publication; nothing in it is needed to read the release.
    """

    records: str | Path
    workload: Workload
    mechanism: Mechanism
    seed: int | None = None
    places: Literal["occupied"] | None = None

    @functools.cached_property
    def config(self) -> ReleaseConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        check.instance(self.workload, Workload, "workload")
        if not isinstance(self.mechanism, Mechanism):
            raise ArgumentTypeError(f"mechanism must be a Mechanism, got {shown(self.mechanism)}")
        seed = None if self.seed is None else check.integer(self.seed, "seed", lower=0)
        if self.places is not None:
            check.choice(self.places, "places", (OCCUPIED,))
        index = open_index(self.records)
        level = level_of_parts(index, self.workload)
        check_reach(self.mechanism, self.workload, level, whole=_WHOLE)
        parts = (index.folder / part_name(code) for code in index.codes)
        if self.places is None and not all((part / "blocks.parquet").exists() for part in parts):
            check_unlisted(self.mechanism.spec)
        return ReleaseConfig(
            index.digest,
            workload_digest(self.workload),
            json.dumps(self.mechanism.spec.to_dict(), sort_keys=True),
            seed,
            level,
            len(index.codes),
            self.places,
        )

    @property
    def _above(self) -> list[str]:
        """Levels that are coarser than the parts."""
        return coarse_levels(self.workload, self.config.level)

    def open(self, folder: str | Path) -> _ReleaseFolder:
        """Return the folder of the release."""
        return _ReleaseFolder(
            folder, self.plain_config(), *(["above"] if self._above else []), "release"
        )

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the release of a part, and what it adds to the tables of coarser levels."""
        code, data = read_place(self.records, shard, self.config.records)
        seed = self.config.seed
        rng = None if seed is None else named_stream(seed, code)
        said = {} if self.places is None else {"places": self.places}
        made = self.mechanism.release(data, workload=self.workload, rng=rng, **said)
        finest = made.tables.geoids[self.workload.levels[-1]]
        _check_inside(finest, code, self.records)
        coarse = self._above
        tables = at_levels(made.tables, [n for n in self.workload.levels if n not in coarse])
        own = Release(
            made.spec.for_tables(tables.counts),
            tables,
            made.diagnostics,
            simulation=made.simulation,
        )
        about = {
            "spec": json.dumps(made.spec.to_dict(), sort_keys=True),
            "diagnostics": json.dumps(dict(made.diagnostics)),
            "simulation": made.simulation,
        }
        found: dict[str, PlacePart | pa.Table] = {
            "part": PlacePart(code, own, finest, digits(self.workload, self.config.level)),
            "release": arrow_table(pd.DataFrame([about])),
        }
        return found | ({"above": coarse_rows(made.tables, coarse)} if coarse else {})

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index and what is said of the whole; tables of coarser levels are beside."""
        store, codes = cast(_ReleaseFolder, folder), open_index(self.records).codes
        spec, diagnostics, simulation = self._about(store)
        above = None
        if self._above:
            rows = (store.read_part(shard, "above") for shard in range(self.config.shards))
            tables = sums_of(rows, self.workload, self._above, codes)
            above = Release(spec.for_tables(tables.counts), tables, simulation=simulation)
        files = store.index(self.config.level, above)
        names = [*codes, *([ABOVE] if above is not None else [])]
        releases = {n: _files.digest(store.path / part_name(n) / RELEASE_FILE) for n in names}
        document = place_document(
            release_document(spec, diagnostics, simulation=simulation),
            hashlib.sha256(files[PARTITIONS]).hexdigest(),
            releases,
        )
        index = files.pop(PARTITIONS)  # comes last: it says that the rest is there
        return {**files, RELEASE_FILE: document, PARTITIONS: index}

    def _about(self, store: _ReleaseFolder) -> tuple[MechanismSpec, dict[str, float], bool]:
        """Return the spec that all parts have, what is public of all, and if one is simulated."""
        spec: str | None = None
        parts: list[dict[str, float]] = []
        simulation = False
        for shard in range(self.config.shards):
            row = store.read_part(shard, "release").to_pylist()[0]
            spec = row["spec"] if spec is None else spec
            if row["spec"] != spec:
                raise DataError(
                    f"{store.path}: parts must have one spec, got another one in shard {shard}"
                )
            parts.append(json.loads(row["diagnostics"]))
            simulation |= row["simulation"]
        if spec is None:
            raise DataError(f"{self.records}: must have at least one part")
        totals = getattr(self.mechanism, "totals", ())
        found = _diagnostics(parts, totals)
        return MechanismSpec.from_dict(json.loads(spec)), found, simulation

    def summary(self, folder: RunFolder, outcome: Outcome) -> ReleaseSummary:
        """Return what was done."""
        places, diagnostics, simulation = 0, dict[str, float](), self.config.seed is not None
        if outcome.complete:
            places = int(Partitions.read(folder.path, "tables").sizes.sum())
            _, diagnostics, simulation = self._about(cast(_ReleaseFolder, folder))
        return ReleaseSummary(str(folder.path), *outcome, places, simulation, diagnostics)

    def close(self) -> None:
        """Forget the index of the microdata."""
        forget_index()


def _check_inside(places: TextArray, code: str, records: str | Path) -> None:
    """Refuse records of other places: parts with the same people would spend a budget twice."""
    outside = ~np.strings.startswith(places, code)
    if outside.any():
        other = shown(str(places[int(outside.argmax())]))
        raise DataError(f"{records}: part {code} must hold places inside {code}, got {other}")


def _diagnostics(parts: Sequence[Mapping[str, float]], totals: Sequence[str]) -> dict[str, float]:
    """Return what is public about all parts: sums, what is the same in all, or the extremes."""
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if name in totals:
            found[name] = float(sum(values))
        elif min(values) == max(values):
            found[name] = values[0]
        else:
            found |= {f"{name}_lowest": min(values), f"{name}_highest": max(values)}
    return found


# -----------------------------------------------------------------------------
# Tables of microdata by place: a part at a time, as a data set by the same places.


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
class TabulationStudy(Study):
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
        layout = replace(PLACES, kinds=("above",) if self._above else ())
        return PlaceFolder(folder, self.plain_config(), "tables", layout)

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the tables of a part, and what it adds to those of coarser levels."""
        code, data = read_place(self.records, shard, self.config.records)
        made = tabulate(data, self.workload)
        coarse = self._above
        inner = at_levels(made, [level for level in self.workload.levels if level not in coarse])
        width = digits(self.workload, self.config.level)
        part = PlacePart(code, inner, made.geoids[self.workload.levels[-1]], width)
        return {"part": part, **({"above": coarse_rows(made, coarse)} if coarse else {})}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index; the tables of coarser levels are written beside."""
        above = None
        if self._above:
            rows = (folder.read_part(shard, "above") for shard in range(self.config.shards))
            above = sums_of(rows, self.workload, self._above, open_index(self.records).codes)
        return cast(PlaceFolder, folder).index(self.config.level, above)

    def summary(self, folder: RunFolder, outcome: Outcome) -> TabulationSummary:
        """Return what was done."""
        places = 0
        if outcome.complete:
            places = int(Partitions.read(folder.path, "tables").sizes.sum())
        return TabulationSummary(str(folder.path), *outcome, places)

    def close(self) -> None:
        """Forget the index of the microdata."""
        forget_index()


# -----------------------------------------------------------------------------
# A synthetic nation as a study: microdata by county, no county held longer than it is drawn.


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
class NationStudy(Study):
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
        layout = replace(PLACES, kinds=("sums",))
        return PlaceFolder(folder, self.plain_config(), "microdata", layout)

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return a county, and what it adds to the figures of the nation."""
        drawn = self.nation.county(shard, seed=self.config.seed)
        code = self.nation.code(shard)
        part = PlacePart(code, drawn, np.asarray(drawn.geoids()), len(code))
        sums = population_sums(cast(Records, drawn.persons), drawn)
        return {"part": part, "sums": arrow_table(pd.DataFrame([sums]))}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index."""
        return cast(PlaceFolder, folder).index(_LEVEL, None)

    def summary(self, folder: RunFolder, outcome: Outcome) -> NationSummary:
        """Return what was done."""
        found = None
        if outcome.complete:
            counties = range(self.config.shards)
            sums = pa.concat_tables([folder.read_part(shard, "sums") for shard in counties])
            found = summary_of_sums(sums.to_pandas().sum(skipna=False).to_dict())
        return NationSummary(str(folder.path), *outcome, found)
