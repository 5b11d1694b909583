"""Data sets by place: reading them a part at a time, and making them part by part.

A shard is a part: its folder is written by whoever computes it, and then a small file of what the
index says of it, which stands for the shard.  The index is written when all parts are there.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from scipy import sparse

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Seed
from bayesrisk._files.text import shown
from bayesrisk._files.writing import spill, spilled
from bayesrisk._random import named_stream
from bayesrisk._show import displayed
from bayesrisk._validation import TextArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskError,
    DataError,
    PartFileError,
)
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import ADVICE, PartFolder, arrow_table
from bayesrisk.experiments.runs.parts import RunConfig, RunSettings
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import check_unlisted
from bayesrisk.population import Nation, PopulationSummary
from bayesrisk.population.summary import population_sums, summary_of_sums
from bayesrisk.release import RELEASE_FILE, MechanismSpec, Release, place_document, release_document
from bayesrisk.tables import (
    Geography,
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    as_microdata,
    tabulate,
)
from bayesrisk.tables.exchange import (
    ABOVE,
    PARTITIONS,
    ROWS,
    Partitions,
    index_files,
    index_rows,
    manifest_digest,
    part_name,
    rows_of,
)
from bayesrisk.tables.microdata import OCCUPIED

# Records in any order into microdata by place, without holding them.

_UNITS = ("persons", "households")
_BLOCKS = "blocks"


def split_by_place(
    records: Records | Microdata | Iterable[Records],
    folder: str | Path,
    *,
    level: str = "county",
    places: ArrayLike | None = None,
) -> None:
    """Write records as microdata by place, each part an ordinary folder of microdata.

    Pieces are put down by place as they come, and each place is then written by itself.  Memory:
    one piece, or the records of one place; disk: the records once more while it works.

    Parameters
    ----------
    records : Records, Microdata or iterable of Records
        Records in any order, or pieces of them, all of one schema.
    folder : path-like
        A new or empty folder; it appears whole or not at all.
    level : str, default "county"
        Level of the parts, coarser than the finest.
    places : array_like of str, optional
        Public list of places of the finest level, for records that have none (``blocks``): then
        parts and places are those of the list, and do not depend on who lives where.

    Raises
    ------
    ArgumentError
        If ``places`` lack a place with a record, or are given to microdata that have ``blocks``.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.population import simulate_population
    >>> people = simulate_population("tract", rng=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     split_by_place(people, folder, level="tract")
    ...     again = Microdata.read(folder)
    >>> again.persons.table == people.persons.table
    True
    """
    pieces = _tables(records)
    with _files.whole_folder(check.path(folder, "folder"), _files.new_folder) as made:
        put_down = made / "_spilled"
        put_down.mkdir()
        schemas: dict[str, Schema] = {}
        codes: set[str] = set()
        width = 0
        for unit, schema, table in pieces:
            width = _width(schemas.setdefault(unit, schema), schema, level)
            place = "block" if unit == _BLOCKS else schema.geography.finest
            codes |= _spill(table, place, width, put_down, unit)
        if not codes:
            raise ArgumentError("records must be at least one, got none")
        if places is not None:
            geography = next(iter(schemas.values())).geography
            parts = _spill(_listed(places, geography, schemas), "block", width, put_down, _BLOCKS)
            if codes - parts:
                raise ArgumentError(
                    f"places must hold every place with a record, got none in {level} "
                    f"{shown(min(codes - parts))}"
                )
            codes = parts
        rows = [_write_part(code, put_down, schemas, made) for code in sorted(codes)]
        shutil.rmtree(put_down)
        for name, data in index_files("microdata", level, rows, None).items():
            _files.write_bytes(made / name, data)


def _tables(
    records: Records | Microdata | Iterable[Records],
) -> Iterator[tuple[str, Schema, pa.Table]]:
    """Yield tables of persons, households and blocks."""
    try:
        pieces = iter([records] if isinstance(records, (Records, Microdata)) else records)
    except TypeError as error:
        raise ArgumentTypeError(f"records must be Records, got {shown(records)}") from error
    for piece in pieces:
        if not isinstance(piece, (Records, Microdata)):
            raise ArgumentTypeError(f"records must be Records, got {type(piece).__name__}")
        data = as_microdata(piece)
        units = {unit: getattr(data, unit) for unit in _UNITS if getattr(data, unit) is not None}
        for unit, part in units.items():
            yield unit, part.schema, part.table
        if data.blocks is not None:
            about = next(iter(units.values())).schema
            yield _BLOCKS, about, pa.Table.from_pandas(data.blocks, preserve_index=False)


def _listed(places: ArrayLike, geography: Geography, schemas: Mapping[str, Schema]) -> pa.Table:
    """Return a public list of places as a table of blocks."""
    if _BLOCKS in schemas:
        raise ArgumentError("places must not be given where microdata have blocks")
    codes = np.unique(check.text_array(places, "places"))
    if not codes.size or (np.strings.str_len(codes) != geography.widths[-1]).any():
        raise ArgumentError(f"places must be codes of {geography.widths[-1]} digits each")
    return pa.table({"block": codes.tolist()})


def _width(known: Schema, schema: Schema, level: str) -> int:
    """Return the digits of the places of the parts."""
    if known != schema:
        raise ArgumentError(f"records must be of one schema, got {known.name} and {schema.name}")
    geography = schema.geography
    if len(geography.levels) == 1:
        raise ArgumentError(
            f"level must be one above the places of the records, but schema {shown(schema.name)} "
            f"has none: its geography has only {geography.finest}, got {shown(level)}"
        )
    check.choice(level, "level", geography.levels[:-1])
    if not geography.width(level):
        raise ArgumentError(
            f"level must have places of its own, got {shown(level)}, which is one place"
        )
    return geography.width(level)


def _spill(table: pa.Table, place: str, width: int, folder: Path, unit: str) -> set[str]:
    """Append rows to a file for each place, and return the places."""
    codes = pc.utf8_slice_codeunits(table.column(place).cast(pa.string()), 0, width)
    coded = pc.dictionary_encode(codes.combine_chunks())
    number = coded.indices.to_numpy()
    order = np.argsort(number, kind="stable")
    table = table.take(pa.array(order)).replace_schema_metadata(None)
    names = coded.dictionary.to_pylist()
    start = 0
    for name, count in zip(names, np.bincount(number, minlength=len(names)), strict=True):
        spill(folder / f"{name}-{unit}", table.slice(start, int(count)))
        start += int(count)
    return set(names)


def _write_part(code: str, put_down: Path, schemas: dict[str, Schema], made: Path) -> pa.Table:
    """Write the microdata of a place, and return its rows of the index."""
    units: dict[str, Records] = {}
    places: list[str] = []
    for unit in _UNITS:
        if unit in schemas:
            schema = schemas[unit]
            rows = spilled(put_down / f"{code}-{unit}")
            if rows is None:
                nobody = {name: pa.array([], pa.int16()) for name in schema.names}
                rows = pa.table({schema.geography.finest: pa.array([], pa.string()), **nobody})
            units[unit] = Records(schema, rows)
            places += units[unit].places()[0].tolist()
    blocks = spilled(put_down / f"{code}-{_BLOCKS}")
    frame = None if blocks is None else blocks.to_pandas()
    folder = made / part_name(code)
    data = Microdata(**units, blocks=frame)
    if frame is not None:
        data = data.with_places(frame["block"])
    data.write(folder)
    finest = np.unique(np.array(places if frame is None else frame["block"], dtype=np.str_))
    return index_rows(code, finest, len(code), manifest_digest(folder, "microdata"))


# Microdata by place as studies read them: a part at a time, and the same ones all along.


def open_index(records: str | Path) -> Partitions:
    """Return the index of microdata by place; the last one is kept.

    Raises
    ------
    DataError
        If it is damaged, or the microdata are not by place.
    """
    source = Path(records)
    if not Partitions.there(source):
        raise DataError(f"{source}: must be microdata by place, which has _partitions.json")
    return _index(str(source))


def forget_index() -> None:
    """Forget what this process keeps of microdata."""
    _index.cache_clear()


def level_of_parts(index: Partitions, workload: Workload) -> str:
    """Return the level of the parts, which a workload must have tables inside of."""
    geography = workload.schema.geography
    level = check.choice(index.level, "level of the parts", geography.levels)
    if geography.rank(workload.levels[-1]) <= geography.rank(level):
        raise ArgumentError(
            f"workload must have tables of a level inside a {level}, which the parts are, "
            f"got {', '.join(workload.levels)}"
        )
    return level


def read_place(records: str | Path, shard: int, digest: str) -> tuple[str, Microdata]:
    """Return code and microdata of a part; refuse others than when the study began."""
    index = open_index(records)
    if index.digest != digest:
        raise DataError(f"{records}: must not change while it is read")
    code = index.codes[shard]
    return code, Microdata.read(index.checked(code))


@functools.lru_cache(maxsize=1)
def _index(folder: str) -> Partitions:
    return Partitions.read(Path(folder), "microdata")


def check_reach(mechanism: Mechanism, workload: Workload, level: str, *, whole: str) -> None:
    """Refuse a mechanism that needs more than the records of a part, or does not say so.

    ``whole`` names what to do instead with all records at once.
    """
    name, geography = mechanism.spec.mechanism, workload.schema.geography
    acts_within = getattr(mechanism, "acts_within", None)
    reach = None if acts_within is None else acts_within(workload)
    if reach is None:
        raise ArgumentError(
            f"mechanism {name!r} does not say within which places it acts (acts_within), so that "
            f"it needs all records at once: {whole}"
        )
    check.choice(reach, f"acts_within of mechanism {name!r}", geography.levels)
    if geography.rank(reach) < geography.rank(level):
        parts = f"have parts by {reach}, " if geography.width(reach) else ""
        raise ArgumentError(
            f"mechanism {name!r} protects each {reach} as a whole, and a part is one {level}: let "
            f"it act within a {level} (levels of tables and budgets, regions of swapping), {parts}"
            f"or {whole}"
        )


# Tables of levels coarser than the parts are sums over the parts.


def coarse_levels(workload: Workload, level: str) -> list[str]:
    """Return the levels of a workload that are coarser than the parts."""
    rank = workload.schema.geography.rank
    return [name for name in workload.levels if rank(name) < rank(level)]


def select_levels(tables: PublishedTables, levels: Sequence[str]) -> PublishedTables:
    """Return the tables of some levels."""
    return select_rows(tables, {level: slice(None) for level in levels})


def select_rows(tables: PublishedTables, rows: Mapping[str, Any]) -> PublishedTables:
    """Return the tables of some levels, of the places at some rows of each."""
    workload = tables.workload.select(levels=list(rows))
    return PublishedTables(
        workload,
        {level: tables.geoids[level][some] for level, some in rows.items()},
        {key: tables.counts[key][rows[key[0]]] for key in workload.tables},
        {k: v[rows[k[0]]] for k, v in tables.suppressed.items() if k in workload.tables},
        {key: law for key, law in tables.laws.items() if key in workload.tables},
    )


def _sum_parts(
    parts: Iterable[pa.Table], workload: Workload, levels: Sequence[str], codes: Sequence[str]
) -> PublishedTables:
    """Return the tables of coarse levels, from the rows that every part adds to them."""
    names = ROWS.names[:-1]
    total = ROWS.empty_table().to_pandas()
    for rows in parts:
        both = pd.concat([total, rows.to_pandas()])
        total = both.groupby(names, sort=False)["count"].sum().reset_index()
    some, geography = workload.select(levels=list(levels)), workload.schema.geography
    places = {n: np.unique(geography.ancestors(np.asarray(codes), n)) for n in levels}
    counts = {}
    for key, table in some.tables.items():
        own = total[(total["level"] == key[0]) & (total["table"] == key[1])]
        row = np.searchsorted(places[key[0]], own["geoid"].to_numpy(dtype=np.str_))
        cell = pd.Index(table.cells).get_indexer(pd.Index(own["cell"]))
        shape = (len(places[key[0]]), len(table.cells))
        values = own["count"].to_numpy(dtype=np.int64)
        counts[key] = sparse.csr_array((values, (row, cell)), shape=shape, dtype=np.int64)
    return PublishedTables(some, places, counts)


class PlacePart(NamedTuple):
    """A part as it is computed: its code, what it holds, and what the index needs to know.

    ``width`` is the number of digits of the places that the index counts in.
    """

    code: str
    content: PublishedTables | Release | Microdata
    finest: TextArray
    width: int


class PlaceFolder(PartFolder):
    """The folder of a run that makes a data set by place; further kinds are files of each part."""

    what: ClassVar[str] = "data set by place"
    #: Readers of Parquet folders pass over names that start with an underscore.
    parts: ClassVar[str] = "_parts"
    settings: ClassVar[str] = "_config.json"
    listing: ClassVar[str] = "_run.json"
    aside: ClassVar[str] = "_failed"

    def __init__(self, path: str | Path, holds: str, *others: str) -> None:
        super().__init__(path)
        self.holds, self.kinds = holds, (*others, "index")

    def write_parts(self, config: RunConfig, shard: int, tables: Mapping[str, Any]) -> None:
        """Write the folder of a part, under ``part`` a :class:`PlacePart`, and its small files."""
        part: PlacePart = tables["part"]
        folder = self.path / part_name(part.code)
        part.content.write(folder, replace=True)
        digest = manifest_digest(folder, self.holds)
        rows = index_rows(part.code, np.sort(part.finest), part.width, digest)
        rows = rows.append_column("content", pa.array([_files.digest_folder(folder)] * len(rows)))
        super().write_parts(config, shard, {**tables, "index": rows})

    def _check_whole(self, shard: int) -> None:
        """Refuse a part whose small files or whose folder are not as they were written."""
        super()._check_whole(shard)
        about = self.read_part(shard, "index").slice(0, 1).to_pylist()[0]
        folder = self.path / part_name(about["part"])
        if _files.digest_folder(folder) != about["content"]:
            raise PartFileError(f"{folder}: is not as it was written; {ADVICE}")

    def index(
        self, config: RunConfig, level: str, above: PublishedTables | Release | None
    ) -> dict[str, bytes]:
        """Return the files of the index; tables of coarser levels are written beside."""
        digest = None
        if above is not None:
            folder = self.path / part_name(ABOVE)
            above.write(folder, replace=True)
            digest = manifest_digest(folder, self.holds)
        rows = (self.read_part(shard, "index") for shard in range(config.shards))
        return index_files(self.holds, level, rows, digest)


# Studies that make a data set by place from microdata by place: tables, and releases of tables.

S = TypeVar("S")


@dataclass(frozen=True)
class _TablesStudy(Study[S]):
    """A study that makes tables of microdata by place; those of coarser levels are sums."""

    records: str | Path
    workload: Workload

    @property
    def config(self) -> TabulationConfig | ReleaseConfig:
        """The checked configuration."""
        raise NotImplementedError

    @property
    def _coarse(self) -> list[str]:
        """Levels that are coarser than the parts."""
        return coarse_levels(self.workload, self.config.level)

    def _source(self) -> tuple[str, str, str, int]:
        """Return digests of microdata and workload, the level of the parts and their number."""
        check.instance(self.workload, Workload, "workload")
        index = open_index(self.records)
        level = level_of_parts(index, self.workload)
        text = json.dumps(self.workload.to_dict(), sort_keys=True)
        return index.digest, hashlib.sha256(text.encode()).hexdigest(), level, len(index.codes)

    def _kinds(self) -> list[str]:
        return ["above"] if self._coarse else []

    def _inner(self, tables: PublishedTables) -> PublishedTables:
        """Return the tables of levels inside the parts."""
        return select_levels(tables, [n for n in self.workload.levels if n not in self._coarse])

    def _part(
        self, code: str, tables: PublishedTables, content: PublishedTables | Release
    ) -> dict[str, PlacePart | pa.Table]:
        """Return a part with its content, and what all its tables add to those of coarse levels."""
        geography, coarse = self.workload.schema.geography, self._coarse
        inner = [level for level in self.workload.levels if level not in coarse]
        # The index counts in places of the level above the finest.
        width = geography.width(inner[-2] if len(inner) > 1 else self.config.level)
        part = PlacePart(code, content, tables.geoids[inner[-1]], width)
        if not coarse:
            return {"part": part}
        keys = [key for key in tables.workload.tables if key[0] in coarse]
        rows = pa.concat_tables([rows_of(tables.content, key) for key in keys])
        return {"part": part, "above": rows}

    def _above(self, folder: PartFolder) -> PublishedTables | None:
        """Return the tables of coarse levels of a run whose parts are all there."""
        if not self._coarse:
            return None
        rows = (folder.read_part(shard, "above") for shard in range(self.config.shards))
        return _sum_parts(rows, self.workload, self._coarse, open_index(self.records).codes)

    def close(self) -> None:
        """Forget the index of the microdata."""
        forget_index()


def _finest_places(folder: PartFolder, outcome: Outcome) -> int:
    """Return the places of the finest level of a complete run; else 0."""
    return int(Partitions.read(folder.path, "tables").sizes.sum()) if outcome.complete else 0


@dataclass(frozen=True)
class TabulationConfig(RunSettings):
    """Digests of microdata and workload, the level of the parts, and their number."""

    records: str
    workload: str
    level: str
    shards: Count
    version: str = __version__


@displayed
@dataclass(frozen=True)
class TabulationSummary:
    """Progress of a tabulation by place.

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
class TabulationStudy(_TablesStudy[TabulationSummary]):
    """Exact tables of microdata by place, for :func:`~bayesrisk.run`: tables by the same places.

    A complete run is read by :meth:`PublishedTables.read`, as a whole, and by the commands that
    attack tables, place by place.  Memory: one part in every worker.  The tables are the
    custodian's: beside exact counts the folder holds a digest of the microdata.  What is to be
    published is made by :class:`ReleaseStudy`.

    Parameters
    ----------
    records : path-like
        Microdata by place, as :class:`NationStudy` or :func:`split_by_place` makes it.
    workload : Workload
        Tables to count, at least one of a level inside the parts.  Tables of levels coarser than
        the parts are sums over them, in a part of their own.
    """

    @functools.cached_property
    def config(self) -> TabulationConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        return TabulationConfig(*self._source())

    def open(self, folder: str | Path) -> PlaceFolder:
        """Return the folder of the tables."""
        return PlaceFolder(folder, "tables", *self._kinds())

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the tables of a part, and what it adds to those of coarser levels."""
        code, data = read_place(self.records, shard, self.config.records)
        tables = tabulate(data, self.workload)
        return self._part(code, tables, self._inner(tables))

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the index; the tables of coarser levels are written beside."""
        return cast(PlaceFolder, folder).index(self.config, self.config.level, self._above(folder))

    def summary(self, folder: PartFolder, outcome: Outcome) -> TabulationSummary:
        """Return progress and the number of places."""
        return TabulationSummary(str(folder.path), *outcome, _finest_places(folder, outcome))


@dataclass(frozen=True)
class ReleaseConfig(RunSettings):
    """Digests of microdata and workload, the mechanism's spec as JSON, seed and parts.

    ``places`` is ``"occupied"`` where the places with a record are published.
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
    """Progress of a release by place, and its public diagnostics.

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
    """A release by place; digest of the records, seed and progress stand beside it."""

    what: ClassVar[str] = "release by place"
    parts: ClassVar[str] = "parts"
    settings: ClassVar[str] = "config.json"
    listing: ClassVar[str] = "run.json"
    aside: ClassVar[str] = "failed"

    def __init__(self, path: str | Path, *kinds: str) -> None:
        super().__init__(path, "tables", *kinds)
        whole = self.path.resolve()
        self.state = whole.parent / f"{whole.name}.confidential"

    def _private(self, file: Path) -> bool:
        return file.is_relative_to(self.state)

    def _compute_again(self, config: RunConfig, error: BayesRiskError) -> None:
        """Refuse to draw a part of a finished release again: the first draw may be known."""
        if cast(ReleaseConfig, config).seed is None and Partitions.there(self.path):
            text = str(error).replace(f"; {ADVICE}", "")
            raise PartFileError(
                f"{text}; this release is finished, and to draw a part of it again would be "
                "another release of its records: bring the part back from a copy"
            ) from error
        super()._compute_again(config, error)


@dataclass(frozen=True)
class ReleaseStudy(_TablesStudy[ReleaseSummary]):
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
        When it runs: if the mechanism needs more than a part.
    DataError
        When it runs: if records lie outside of their part.

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
        records, workload, level, shards = self._source()
        check_reach(
            self.mechanism, self.workload, level, whole="release all records in one piece (--whole)"
        )
        index = open_index(self.records)
        parts = (index.folder / part_name(code) for code in index.codes)
        if self.places is None and not all((part / "blocks.parquet").exists() for part in parts):
            check_unlisted(self.mechanism.spec)
        spec = json.dumps(self.mechanism.spec.to_dict(), sort_keys=True)
        return ReleaseConfig(records, workload, spec, seed, level, shards, self.places)

    def open(self, folder: str | Path) -> _ReleaseFolder:
        """Return the folder of the release."""
        return _ReleaseFolder(folder, *self._kinds(), "release")

    def compute(self, shard: int) -> dict[str, PlacePart | pa.Table]:
        """Return the release of a part, and what it adds to the tables of coarser levels."""
        code, data = read_place(self.records, shard, self.config.records)
        rng = None if self.config.seed is None else named_stream(self.config.seed, code)
        places = {} if self.places is None else {"places": self.places}
        made = self.mechanism.release(data, workload=self.workload, rng=rng, **places)
        finest = made.tables.geoids[self.workload.levels[-1]]
        outside = ~np.strings.startswith(finest, code)
        if outside.any():  # parts with the same people would spend a budget twice
            raise DataError(
                f"{self.records}: part {code} must hold places inside {code}, got "
                f"{shown(str(finest[int(outside.argmax())]))}"
            )
        tables = self._inner(made.tables)
        spec = made.spec.for_tables(tables.counts)
        own = Release(spec, tables, made.diagnostics, simulation=made.simulation)
        about = {
            "spec": json.dumps(made.spec.to_dict(), sort_keys=True),
            "diagnostics": json.dumps(dict(made.diagnostics)),
            "simulation": made.simulation,
        }
        return self._part(code, made.tables, own) | {"release": arrow_table(pd.DataFrame([about]))}

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the index and the description; tables of coarser levels are beside."""
        spec, diagnostics, simulation = self._about(folder)
        tables, above = self._above(folder), None
        if tables is not None:
            above = Release(spec.for_tables(tables.counts), tables, simulation=simulation)
        files = cast(PlaceFolder, folder).index(self.config, self.config.level, above)
        names = [*open_index(self.records).codes, *([ABOVE] if above is not None else [])]
        document = place_document(
            release_document(spec, diagnostics, simulation=simulation),
            hashlib.sha256(files[PARTITIONS]).hexdigest(),
            {n: _files.digest(folder.path / part_name(n) / RELEASE_FILE) for n in names},
        )
        index = files.pop(PARTITIONS)  # comes last: it says that the rest is there
        return {**files, RELEASE_FILE: document, PARTITIONS: index}

    def _about(self, folder: PartFolder) -> tuple[MechanismSpec, dict[str, float], bool]:
        """Return the spec that all parts have, public facts of all, and if one is simulated."""
        rows = [
            folder.read_part(shard, "release").to_pylist()[0] for shard in range(self.config.shards)
        ]
        if not rows:
            raise DataError(f"{self.records}: must have at least one part")
        spec = rows[0]["spec"]
        for shard, row in enumerate(rows):
            if row["spec"] != spec:
                raise DataError(
                    f"{folder.path}: parts must have one spec, got another one in shard {shard}"
                )
        parts = [json.loads(row["diagnostics"]) for row in rows]
        facts = _diagnostics(parts, getattr(self.mechanism, "totals", ()))
        simulation = any(row["simulation"] for row in rows)
        return MechanismSpec.from_dict(json.loads(spec)), facts, simulation

    def summary(self, folder: PartFolder, outcome: Outcome) -> ReleaseSummary:
        """Return progress and public facts."""
        diagnostics, simulation = dict[str, float](), self.config.seed is not None
        if outcome.complete:
            _, diagnostics, simulation = self._about(folder)
        places = _finest_places(folder, outcome)
        return ReleaseSummary(str(folder.path), *outcome, places, simulation, diagnostics)


def _diagnostics(parts: Sequence[Mapping[str, float]], totals: Sequence[str]) -> dict[str, float]:
    """Return public facts about all parts: sums, values that all share, or the extremes."""
    facts: dict[str, float] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if name in totals:
            facts[name] = float(sum(values))
        elif min(values) == max(values):
            facts[name] = values[0]
        else:
            facts |= {f"{name}_lowest": min(values), f"{name}_highest": max(values)}
    return facts


# A synthetic nation as a study: microdata by county, no county held longer than it is drawn.


@dataclass(frozen=True)
class NationConfig(RunSettings):
    """Blocks with those without people, digest of the settings, seed, and number of counties."""

    blocks: Count
    settings: str
    seed: Seed
    shards: Count
    version: str = __version__


@displayed
@dataclass(frozen=True)
class NationSummary:
    """Progress of a synthetic nation, and its people beside the published figures.

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
        return cast(PlaceFolder, folder).index(self.config, "county", None)

    def summary(self, folder: PartFolder, outcome: Outcome) -> NationSummary:
        """Return progress, and the figures of a complete nation."""
        population = None
        if outcome.complete:
            counties = range(self.config.shards)
            sums = pa.concat_tables([folder.read_part(shard, "sums") for shard in counties])
            population = summary_of_sums(sums.to_pandas().sum(skipna=False).to_dict())
        return NationSummary(str(folder.path), *outcome, population)
