"""Data sets partitioned by place: reading one part at a time, and making them part by part.

A shard is a part. Its worker writes the part's folder, and then a small file with its index rows,
which marks the shard as finished. The index is written when all parts are finished.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from scipy import sparse

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.parquet import spill, spilled
from bayesrisk._base.display import arrow_table
from bayesrisk._base.old_names import moved
from bayesrisk._base.randomness import named_stream
from bayesrisk._base.validation import TextArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    BayesRiskError,
    DataError,
    PartFileError,
    quote,
)
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import ADVICE, Layout, RunFolder
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.base import check_unlisted
from bayesrisk.release import MechanismSpec, Release
from bayesrisk.release.release import RELEASE_FILE, release_document
from bayesrisk.tables import (
    Geography,
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    exchange,
    tabulate,
)
from bayesrisk.tables.microdata import OCCUPIED, UNITS, as_microdata
from bayesrisk.tables.published import select_rows

# Records in any order into microdata by place, without holding them.

_BLOCKS = "blocks"


def split_by_place(
    records: Records | Microdata | Iterable[Records],
    folder: str | Path,
    *,
    level: str = "county",
    places: ArrayLike | None = None,
    made_up: bool = False,
) -> None:
    """Write records as microdata partitioned by place, one folder of microdata per part.

    Pieces are stored by place as they come; then each place is written. Memory holds one piece, or
    the records of one place. The disk holds the records twice during the work.

    Parameters
    ----------
    records : Records, Microdata or iterable of Records
        Records in any order, or pieces of them, all of one schema.
    folder : path-like
        A new or empty folder; it appears whole or not at all.
    level : str, default "county"
        Level of the parts, coarser than the finest.
    places : array_like of str, optional
        Public list of places of the finest level, for records without ``blocks``. Parts and places
        then do not depend on where people live.
    made_up : bool, default False
        Whether the people do not exist; microdata already say so.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk import datasets
    >>> people = datasets.load_microdata("synthetic-county")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     split_by_place(people, folder, level="tract")
    ...     again = Microdata.read(folder)
    >>> again.persons.table == people.persons.table
    True
    """
    made_up = made_up or getattr(records, "made_up", False)
    pieces = _tables(records)
    with disk.whole_folder(check.path(folder, "folder"), disk.new_folder) as target:
        put_down = target / "_spilled"
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
                    "places",
                    "must hold every place with a record",
                    shown=f"none in {level} {quote(min(codes - parts))}",
                )
            codes = parts
        rows = [_write_part(code, put_down, schemas, target, made_up) for code in sorted(codes)]
        shutil.rmtree(put_down)
        for name, data in exchange.index_files("microdata", level, rows, None).items():
            disk.write_bytes(target / name, data)


def _tables(
    records: Records | Microdata | Iterable[Records],
) -> Iterator[tuple[str, Schema, pa.Table]]:
    try:
        pieces = iter([records] if isinstance(records, (Records, Microdata)) else records)
    except TypeError as error:
        raise ArgumentTypeError(f"records must be Records, got {quote(records)}") from error
    for piece in pieces:
        if not isinstance(piece, (Records, Microdata)):
            raise ArgumentTypeError(f"records must be Records, got {type(piece).__name__}")
        data = as_microdata(piece)
        for unit in UNITS:
            if (part := getattr(data, unit)) is not None:
                schema = part.schema
                yield unit, schema, part.table
        if data.blocks is not None:
            yield _BLOCKS, schema, pa.Table.from_pandas(data.blocks, preserve_index=False)


def _listed(places: ArrayLike, geography: Geography, schemas: Mapping[str, Schema]) -> pa.Table:
    """Return a public list of block codes as a table; raise if microdata list blocks."""
    if _BLOCKS in schemas:
        raise ArgumentError("places", "must not be given where microdata have blocks")
    codes = np.unique(check.text_array(places, "places"))
    if not codes.size or (np.strings.str_len(codes) != geography.widths[-1]).any():
        raise ArgumentError("places", f"must be codes of {geography.widths[-1]} digits each")
    return pa.table({"block": codes.tolist()})


def _width(first: Schema, schema: Schema, level: str) -> int:
    if first != schema:
        raise ArgumentError(f"records must be of one schema, got {first.name} and {schema.name}")
    geography = schema.geography
    if len(geography.levels) == 1:
        raise ArgumentError(
            "level",
            f"must be one above the places of the records, but schema {quote(schema.name)} "
            f"has none: its geography has only {geography.finest}",
            got=level,
        )
    check.choice(level, "level", geography.levels[:-1])
    if not geography.width(level):
        raise ArgumentError(
            "level", "must have places of its own", got=level, advice=", which is one place"
        )
    return geography.width(level)


def _spill(table: pa.Table, place: str, width: int, folder: Path, unit: str) -> set[str]:
    """Append rows to one temporary file per place, and return the places."""
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


def _write_part(
    code: str, put_down: Path, schemas: dict[str, Schema], target: Path, made_up: bool
) -> pa.Table:
    """Write the microdata of one place, and return its rows of the index."""
    units: dict[str, Records] = {}
    places: list[str] = []
    for unit in UNITS:
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
    folder = target / exchange.part_name(code)
    data = Microdata(**units, blocks=frame, made_up=made_up)
    if frame is not None:
        data = data.with_places(frame["block"])
    data.write(folder)
    finest = np.unique(np.array(places if frame is None else frame["block"], dtype=np.str_))
    return exchange.index_rows(
        code, finest, len(code), exchange.manifest_digest(folder, "microdata")
    )


# Microdata by place as studies read them: a part at a time, and the same ones all along.


@functools.lru_cache(maxsize=1)
def open_index(records: str | Path) -> exchange.Partitions:
    """Return the index of microdata by place, cached for the last folder."""
    source = check.path(records, "records")
    if not exchange.Partitions.there(source):
        raise DataError(f"{source}: must be microdata by place, which has _partitions.json")
    return exchange.Partitions.read(source, "microdata")


def level_of_parts(index: exchange.Partitions, workload: Workload) -> str:
    """Return the level of the parts; raise if the workload has no finer level."""
    geography = workload.schema.geography
    level = check.choice(index.level, "level of the parts", geography.levels)
    if geography.rank(workload.levels[-1]) <= geography.rank(level):
        raise ArgumentError(
            "workload",
            f"must have tables of a level inside a {level}, which the parts are",
            shown=", ".join(workload.levels),
        )
    return level


def read_place(records: str | Path, shard: int, digest: str) -> tuple[str, Microdata]:
    """Return code and microdata of a part; raise if the index has changed since the start."""
    index = open_index(records)
    if index.digest != digest:
        raise DataError(f"{records}: must not change while it is read")
    code = index.codes[shard]
    return code, Microdata.read(index.checked(code))


def check_reach(mechanism: Mechanism, workload: Workload, level: str, *, whole: str) -> None:
    """Raise if a mechanism needs records of several parts; ``whole`` is advice for the error."""
    name, geography = mechanism.spec.mechanism, workload.schema.geography
    acts_within = getattr(mechanism, "acts_within", None)
    reach = None if acts_within is None else acts_within(workload)
    if reach is None:
        raise ArgumentError(
            "mechanism",
            f"{name!r} does not say within which places it acts (acts_within), so that it "
            f"needs all records at once: {whole}",
        )
    check.choice(reach, f"acts_within of mechanism {name!r}", geography.levels)
    if geography.rank(reach) < geography.rank(level):
        parts = f"have parts by {reach}, " if geography.width(reach) else ""
        raise ArgumentError(
            "mechanism",
            f"{name!r} protects each {reach} as a whole, and a part is one {level}: let it "
            f"act within a {level} (levels of tables and budgets, regions of swapping), "
            f"{parts}or {whole}",
        )


# Tables of levels coarser than the parts are sums over the parts.


def coarse_levels(workload: Workload, level: str) -> list[str]:
    """Return the levels of a workload that are coarser than the parts."""
    rank = workload.schema.geography.rank
    return [name for name in workload.levels if rank(name) < rank(level)]


def select_levels(tables: PublishedTables, levels: Sequence[str]) -> PublishedTables:
    """Return the tables of some levels."""
    return select_rows(tables, {level: slice(None) for level in levels})


def _sum_parts(
    parts: Iterable[pa.Table], workload: Workload, levels: Sequence[str], codes: Sequence[str]
) -> PublishedTables:
    """Return the tables of coarse levels as sums of the rows that the parts contribute."""
    names = exchange.ROWS.names[:-1]
    total = exchange.ROWS.empty_table().to_pandas()
    for rows in parts:
        joined = pd.concat([total, rows.to_pandas()])
        total = joined.groupby(names, sort=False)["count"].sum().reset_index()
    selection, geography = workload.select(levels=list(levels)), workload.schema.geography
    places = {n: np.unique(geography.ancestors(np.asarray(codes), n)) for n in levels}
    counts = {}
    for key, table in selection.tables.items():
        table_rows = total[(total["level"] == key[0]) & (total["table"] == key[1])]
        row = np.searchsorted(places[key[0]], table_rows["geoid"].to_numpy(dtype=np.str_))
        cell = pd.Index(table.cells).get_indexer(pd.Index(table_rows["cell"]))
        shape = (len(places[key[0]]), len(table.cells))
        values = table_rows["count"].to_numpy(dtype=np.int64)
        counts[key] = sparse.csr_array((values, (row, cell)), shape=shape, dtype=np.int64)
    return PublishedTables(selection, places, counts)


# Studies that make a data set by place from microdata by place: tables, and releases of tables.

#: Readers of Parquet folders pass over names that start with an underscore.
PLACES = Layout(
    "data set by place",
    parts="_parts",
    settings="_config.json",
    listing="_run.json",
    failures="_failed",
)


class PlacePart(NamedTuple):
    """A computed part: its code and content, with finest places for the index.

    ``width`` is the number of digits of the places that the index counts in.
    """

    code: str
    content: PublishedTables | Release | Microdata
    finest: TextArray
    width: int


class PlaceFolder(RunFolder):
    """The folder of a run that makes a data set by place, with small files for each part."""

    #: Kind of the data set: tables or microdata.
    holds: ClassVar[str] = "tables"

    def write_parts(self, shard: int, tables: Mapping[str, Any]) -> None:
        """Write the folder of a part, from the :class:`PlacePart` in ``part``, and small files."""
        part: PlacePart = tables["part"]
        folder, digest = self._write(part.code, part.content)
        rows = exchange.index_rows(part.code, np.sort(part.finest), part.width, digest)
        rows = rows.append_column("content", pa.array([disk.digest_folder(folder)] * len(rows)))
        super().write_parts(shard, {**tables, "index": rows})

    def _write(self, code: str, content: PublishedTables | Release | Microdata) -> tuple[Path, str]:
        """Write the folder of a part; return it, and the digest of its manifest."""
        folder = self.path / exchange.part_name(code)
        more = {"readable": False} if isinstance(content, Release) else {}
        content.write(folder, replace=True, **more)
        return folder, exchange.manifest_digest(folder, self.holds)

    def _check_whole(self, shard: int, states: Mapping[str, Any]) -> None:
        """Raise if the small files or the folder of a part have changed since they were written."""
        if self.has(shard, states):
            row = self.read_part(shard, "index").slice(0, 1).to_pylist()[0]
            folder = self.path / exchange.part_name(row["part"])
            if disk.digest_folder(folder) != row["content"]:
                raise PartFileError(f"{folder}: is not as it was written; {ADVICE}")

    def index(self, level: str, above: PublishedTables | Release | None) -> dict[str, bytes]:
        """Return the files of the index, after writing the tables of coarser levels."""
        digest = None
        if above is not None:
            digest = self._write(exchange.ABOVE, above)[1]
        rows = (self.read_part(shard, "index") for shard in range(self.shards))
        return exchange.index_files(self.holds, level, rows, digest)


@dataclass(frozen=True)
class TabulationStudy(Study):
    """Exact tables of microdata by place, for :func:`~bayesrisk.run`: tables by the same places.

    :meth:`PublishedTables.read` reads a complete run as a whole; commands that attack tables read
    it place by place. Its summary names the ``places`` of the finest level. Each worker holds one
    part in memory. The tables are for the custodian only: beside exact counts the folder holds a
    digest of the microdata. :class:`ReleaseStudy` makes tables for publication.

    Parameters
    ----------
    records : path-like
        Microdata by place, as :func:`split_by_place` makes it.
    workload : Workload
        Tables to count, at least one of a level inside the parts. Tables of coarser levels are sums
        over the parts, in a part of their own.
    """

    records: str | Path
    workload: Workload

    caches: ClassVar = (open_index,)
    _store: ClassVar[type[RunFolder]] = PlaceFolder

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Digests of microdata and workload, the level of the parts, and their number."""
        return self._record_parts()

    def _record_parts(self) -> dict[str, Any]:
        check.instance(self.workload, Workload, "workload")
        index = open_index(self.records)
        text = json.dumps(self.workload.to_dict(), sort_keys=True)
        return {
            "records": index.digest,
            "workload": hashlib.sha256(text.encode()).hexdigest(),
            "level": level_of_parts(index, self.published),
            "shards": len(index.codes),
            "version": __version__,
            **exchange.made_up_mark(exchange.is_marked(check.path(self.records, "records"))),
        }

    @functools.cached_property
    def published(self) -> Workload:
        """The tables of the folder."""
        return self.workload

    @functools.cached_property
    def _coarse(self) -> list[str]:
        """Published levels that are coarser than the parts."""
        return coarse_levels(self.published, self.config["level"])

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Small files of a part: its contribution to coarser tables, if any, and its index rows."""
        return replace(PLACES, kinds=(*(["above"] if self._coarse else []), "index"))

    def compute(self, shard: int) -> dict[str, Any]:
        """Return the tables of a part, and its contribution to those of coarser levels."""
        code, data = read_place(self.records, shard, self.config["records"])
        tables = tabulate(data, self.workload)
        return self._part(code, tables, self._inner(tables))

    def work(self, shard: int) -> float:
        """Return the number of places in a part, relative to the smallest part."""
        sizes = np.maximum(open_index(self.records).sizes, 1)
        return float(sizes[shard] / sizes.min())

    def pilot(self, shard: int, amount: float) -> float:
        """Compute the smallest part, and return 1 as the amount of work done."""
        self.compute(int(open_index(self.records).sizes.argmin()))
        return 1.0

    def _inner(self, tables: PublishedTables) -> PublishedTables:
        return select_levels(tables, [n for n in self.published.levels if n not in self._coarse])

    def _part(
        self, code: str, tables: PublishedTables, content: PublishedTables | Release
    ) -> dict[str, Any]:
        """Return a part with its content, and its contribution to tables of coarse levels."""
        inner = [level for level in self.published.levels if level not in self._coarse]
        # The index counts in places of the level above the finest.
        above = inner[-2] if len(inner) > 1 else self.config["level"]
        width = self.workload.schema.geography.width(above)
        part = {"part": PlacePart(code, content, tables.geoids[inner[-1]], width)}
        if not self._coarse:
            return part
        keys = [key for key in tables.workload.tables if key[0] in self._coarse]
        return part | {
            "above": pa.concat_tables([exchange.table_rows(tables.content, key) for key in keys])
        }

    def _above(self, folder: RunFolder) -> PublishedTables | None:
        """Return the tables of coarse levels from all parts, or None without such levels."""
        if not self._coarse:
            return None
        rows = (folder.read_part(shard, "above") for shard in range(self.shards))
        return _sum_parts(rows, self.published, self._coarse, open_index(self.records).codes)

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the index of a complete run, after writing tables of coarser levels."""
        return cast(PlaceFolder, folder).index(self.config["level"], self._above(folder))

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the number of places of a complete run, or 0 before."""
        places = exchange.Partitions.read(folder.path, "tables").sizes.sum() if complete else 0
        return {"places": int(places)}


class _ReleaseFolder(PlaceFolder):
    """The folder of a release by place; seed and progress are in a confidential one beside it."""

    def __init__(self, path: str | Path, config: Mapping[str, Any], layout: Layout) -> None:
        super().__init__(path, config, layout)
        release = self.path.resolve()
        self.state = release.parent / f"{release.name}.confidential"

    def _private(self, file: Path) -> bool:
        return file.is_relative_to(self.state)

    def _compute_again(self, error: BayesRiskError) -> None:
        """Raise if a part of a finished release would be drawn again, as a second release."""
        if self.config["seed"] is None and exchange.Partitions.there(self.path):
            text = str(error).replace(f"; {ADVICE}", "")
            raise PartFileError(
                f"{text}; this release is finished, and to draw a part of it again would be "
                "another release of its records: bring the part back from a copy"
            ) from error
        super()._compute_again(error)


@dataclass(frozen=True)
class ReleaseStudy(TabulationStudy):
    """A release of microdata by place, each part protected by itself.

    :meth:`Release.read` reads a complete run as a whole; commands that attack tables read it place
    by place. Each part is a release of its own. The summary names ``places``, ``simulation``
    (whether draws could be repeated, as from a seed) and ``diagnostics`` (public facts about all
    parts). Each worker holds one part in memory.

    Parameters
    ----------
    records, workload
        As for :class:`TabulationStudy`.
    mechanism : Mechanism
        The protection.  Its ``acts_within`` must name the level of the parts or a finer one.
    seed : int, optional
        By default each part takes fresh entropy of the operating system that is kept nowhere. A
        seed is for simulation, and the release says so.
    places : "occupied", optional
        For microdata without a public list of places (``blocks``): publish the places with a
        record, as :meth:`~bayesrisk.mechanisms.BaseMechanism.release` does. Give a list to
        :func:`split_by_place`.

    Notes
    -----
    The draws of a part depend only on the seed and the name of the part. They differ from those of
    one ``release`` of all records; their law is the same, except that swapping has its rate in each
    part.

    Parts hold different records, so the budget of a release is that of each part, not their sum. A
    person who is added, removed or changed is in one part, or moves from one part to another. A
    mechanism whose neighbours change one record covers both. The list of parts is public if the
    places are.

    The folder ``NAME.confidential`` beside the release ``NAME`` is for its owner only. It holds a
    digest of the records and the seed of a simulation, to resume a run. It is not for publication,
    and not needed to read the release.
    """

    mechanism: Mechanism
    seed: int | None = None
    places: Literal["occupied"] | None = None

    _store: ClassVar = _ReleaseFolder

    @functools.cached_property
    def published(self) -> Workload:
        """The tables that the mechanism publishes."""
        published = getattr(self.mechanism, "published", None)
        return self.workload if published is None else cast(Workload, published(self.workload))

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Settings of the run: those of tables, and the mechanism's spec, seed and places."""
        if not isinstance(self.mechanism, Mechanism):
            raise ArgumentTypeError("mechanism", "must be a Mechanism", got=self.mechanism)
        if self.seed is not None:
            check.integer(self.seed, "seed", lower=0)
        if self.places is not None:
            check.choice(self.places, "places", (OCCUPIED,))
        config = self._record_parts()
        instead = "release all records in one piece (--whole)"
        check_reach(self.mechanism, self.workload, config["level"], whole=instead)
        index = open_index(self.records)
        parts = (index.folder / exchange.part_name(code) for code in index.codes)
        if self.places is None and not all((part / "blocks.parquet").exists() for part in parts):
            check_unlisted(self.mechanism.spec)
        spec = json.dumps(self.mechanism.spec.to_dict(), sort_keys=True)
        return config | {"mechanism": spec, "seed": self.seed, "places": self.places}

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Small files of a part: those of tables, and the description of its release."""
        kinds = (*(["above"] if self._coarse else []), "release", "index")
        return Layout("release by place", kinds=kinds, listing="run.json")

    def compute(self, shard: int) -> dict[str, Any]:
        """Return the release of a part, and its contribution to tables of coarser levels."""
        code, data = read_place(self.records, shard, self.config["records"])
        rng = None if self.seed is None else named_stream(self.seed, code)
        places = {} if self.places is None else {"places": self.places}
        release = self.mechanism.release(data, workload=self.workload, rng=rng, **places)
        finest = release.tables.geoids[self.published.levels[-1]]
        outside = ~np.strings.startswith(finest, code)
        if outside.any():  # parts with the same people would spend a budget twice
            raise DataError(
                f"{self.records}: part {code} must hold places inside {code}, got "
                f"{quote(str(finest[int(outside.argmax())]))}"
            )
        tables = self._inner(release.tables)
        spec = release.spec.for_tables(tables.counts)
        finest_release = Release(spec, tables, release.diagnostics, simulation=release.simulation)
        row = {
            "spec": json.dumps(release.spec.to_dict(), sort_keys=True),
            "diagnostics": json.dumps(dict(release.diagnostics)),
            "simulation": release.simulation,
        }
        return self._part(code, release.tables, finest_release) | {
            "release": arrow_table(pd.DataFrame([row]))
        }

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return index and description of a complete run, after writing coarser tables."""
        spec, diagnostics, simulation = self._description(folder)
        tables, above = self._above(folder), None
        if tables is not None:
            above = Release(spec.for_tables(tables.counts), tables, simulation=simulation)
        files = cast(PlaceFolder, folder).index(self.config["level"], above)
        names = [*open_index(self.records).codes, *([exchange.ABOVE] if above is not None else [])]
        parts = {n: folder.path / exchange.part_name(n) / RELEASE_FILE for n in names}
        document = {
            **release_document(spec, diagnostics, simulation=simulation),
            "partitions": hashlib.sha256(files[exchange.PARTITIONS]).hexdigest(),
            "releases": {name: disk.digest(file) for name, file in parts.items()},
        }
        index = files.pop(exchange.PARTITIONS)  # comes last: it says that the rest is there
        return {**files, RELEASE_FILE: disk.sealed(document), exchange.PARTITIONS: index}

    def _description(self, folder: RunFolder) -> tuple[MechanismSpec, dict[str, float], bool]:
        """Return the common spec and facts of all parts, and whether one is simulated."""
        rows = folder.frame("release") if self.shards else pd.DataFrame()
        if rows.empty:
            raise DataError(f"{self.records}: must have at least one part")
        spec = rows["spec"][0]
        different = np.flatnonzero(rows["spec"] != spec)
        if different.size:
            raise DataError(
                f"{folder.path}: parts must have one spec, got another one in shard {different[0]}"
            )
        facts = _diagnostics(
            rows["diagnostics"].map(json.loads).tolist(), getattr(self.mechanism, "totals", ())
        )
        return MechanismSpec.from_dict(json.loads(spec)), facts, bool(rows["simulation"].any())

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the number of places, whether the release is simulated, and public facts."""
        diagnostics, simulation = dict[str, float](), self.seed is not None
        if complete:
            _, diagnostics, simulation = self._description(folder)
        places = super().facts(folder, complete=complete)
        return places | {"simulation": simulation, "diagnostics": diagnostics}


def _diagnostics(parts: Sequence[Mapping[str, float]], totals: Sequence[str]) -> dict[str, float]:
    """Return facts over all parts: totals, common values, or lowest and highest."""
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


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved(__name__, name)
