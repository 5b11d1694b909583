"""Studies that attack published tables and read nothing else, in shards of places.

They reconstruct the records behind the tables, and find the claims that must be true of them.
"""

from __future__ import annotations

import functools
import io
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bayesrisk import reconstruction
from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_bytes, guarded_table
from bayesrisk._base.disk.parquet import opened, read_batches, read_frame
from bayesrisk._base.display import arrow_table, displayed
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk.constraints.model import Status, equal_rows
from bayesrisk.constraints.solvers import checked_nodes, make_solver
from bayesrisk.exceptions import ArgumentError, DataError, PartFileError
from bayesrisk.experiments.place_bounds import StatedCells
from bayesrisk.experiments.runs.engine import Study, evenly
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.experiments.table_reports import claims_page, reconstruction_page
from bayesrisk.reconstruction.claims.result import one_record
from bayesrisk.reconstruction.claims.verification import ClaimOptions, claim_problem
from bayesrisk.reconstruction.records.bounds import bounds_sentences
from bayesrisk.reconstruction.records.variability import KINDS
from bayesrisk.release import Release
from bayesrisk.release.release import RELEASE_FILE, ReleaseIndex
from bayesrisk.tables import PublishedTables, Schema, Workload
from bayesrisk.tables.cells import table_cells
from bayesrisk.tables.exchange import ABOVE, Partitions
from bayesrisk.tables.likelihoods import Likelihood
from bayesrisk.tables.published import assumed_true, joined, level_and_kind, select_rows

# Tables in parts, of which a worker holds the one it reads; tables held whole are one part.
#
# Blocks are numbered in the order of their codes, over all parts.  A shard is a run of them that
# keeps the places of a unit together; it does not depend on the parts, and so its results do not.


def published(folder: Path) -> PublishedTables:
    """Return the tables in a folder, read through the release description if there is one."""
    if (folder / RELEASE_FILE).exists():
        return Release.read(folder).tables
    return PublishedTables.read(folder)


class TableSource:
    """Tables or a release, in one folder or by place, with one part held at a time."""

    def __init__(self, folder: Path, digest: str) -> None:
        self._folder, self._source_index = folder, _read_index(folder)
        self._part = functools.lru_cache(maxsize=1)(self._read)
        self.starts = functools.cache(self._starts)
        if self._source_index is None:
            tables = self._part(0)
            self._places = tables.geoids[tables.workload.levels[-1]]
            self._sizes = np.ones(len(self._places), dtype=np.int64)
            self._ends = np.array([len(self._places)])
            self.digest = disk.digest_folder(folder)
        else:
            source_index = self._source_index
            index = (
                source_index.partitions if isinstance(source_index, ReleaseIndex) else source_index
            )
            self._places, self._sizes = index.place, index.finest
            self._ends = np.cumsum(index.sizes)
            self._codes, self._coarse, self.digest = index.codes, index.above, source_index.digest
        if self.digest != digest:
            raise DataError(f"{folder}: must not change while it is read")

    def _read(self, number: int) -> PublishedTables:
        if self._source_index is None:
            return published(self._folder)
        code = self._codes[number]
        tables = published(self._source_index.checked(code))
        blocks = tables.geoids[tables.workload.levels[-1]]
        size = np.diff(self._ends, prepend=0)[number]
        if len(blocks) != size or not all(block.startswith(code) for block in blocks):
            raise DataError(
                f"{self._folder}: part {code} must hold the places that the index lists"
            )
        return tables

    @functools.cached_property
    def _above(self) -> PublishedTables | None:
        """Tables of levels coarser than the parts, or None."""
        if self._source_index is None or not self._coarse:
            return None
        return published(self._source_index.checked(ABOVE))

    @functools.cached_property
    def workload(self) -> Workload:
        """Levels and tables of the source, including those coarser than the parts."""
        above, part = self._above, self._part(0)
        return part.workload if above is None else above.workload.union(part.workload)

    @property
    def laws(self) -> dict[tuple[str, str], Likelihood]:
        """Laws of the tables whose published counts may differ from the true ones."""
        return {**({} if self._above is None else self._above.laws), **self._part(0).laws}

    @property
    def blocks(self) -> int:
        """Number of places of the finest level."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def sample(self) -> PublishedTables:
        """Return the tables of the first part, as a sample of all."""
        return self._part(0)

    def _starts(self, unit: str, blocks_per_shard: int) -> IntArray:
        if unit == self.workload.levels[-1]:
            return np.arange(0, self.blocks, blocks_per_shard)
        units = self.workload.schema.geography.ancestors(self._places, unit)
        first = np.unique(units, return_index=True)[1]
        firsts = (np.cumsum(self._sizes) - self._sizes)[first]
        starts: IntArray = firsts[np.diff(firsts // blocks_per_shard, prepend=-1) != 0]
        return starts

    def shard(self, number: int, unit: str, blocks_per_shard: int) -> PublishedTables:
        """Return the tables of a shard's blocks, and of the places around up to level ``unit``."""
        starts = self.starts(unit, blocks_per_shard)
        start = int(starts[number])
        stop = int(starts[number + 1]) if number + 1 < len(starts) else self.blocks
        geography = self.workload.schema.geography
        lowest = geography.rank(unit)
        levels = [level for level in self.workload.levels if geography.rank(level) >= lowest]
        pieces = []
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        for position in range(int(first), int(last) + 1):
            part = self._part(position)
            codes = part.geoids[part.workload.levels[-1]]
            offset = int(self._ends[position]) - len(codes)
            blocks = codes[max(start - offset, 0) : stop - offset]
            pieces.append(_around(part, blocks, levels))
        above = self._above if levels[0] not in pieces[0].workload.levels else None
        if above is not None:
            finest = self.workload.levels[-1]
            blocks = np.concatenate([piece.geoids[finest] for piece in pieces])
            pieces.insert(0, _around(above, blocks, levels))
        return joined(pieces)


def _around(tables: PublishedTables, blocks: TextArray, levels: list[str]) -> PublishedTables:
    geography = tables.workload.schema.geography
    rows = {}
    for level in (level for level in tables.workload.levels if level in levels):
        places = np.unique(geography.ancestors(blocks, level))
        rows[level] = np.searchsorted(tables.geoids[level], places)
    return select_rows(tables, rows)


def open_tables(source: str | Path, digest: str | None = None) -> TableSource:
    """Return the tables in a folder, cached; raise if their digest differs from ``digest``."""
    folder = check.path(source, "source")
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder of tables")
    if digest is None:
        index = _read_index(folder)
        digest = disk.digest_folder(folder) if index is None else index.digest
    return kept_tables(folder, digest)


kept_tables = functools.lru_cache(maxsize=1)(TableSource)


def _read_index(folder: Path) -> ReleaseIndex | Partitions | None:
    """Return the index of a release or tables by place, or None for a single folder."""
    if ReleaseIndex.exists(folder):
        return ReleaseIndex.read(folder)
    return Partitions.read(folder, "tables") if Partitions.there(folder) else None


# The output folder of a reconstruction: its configuration, its parts, and how they are read.

_BATCH = 2**16  # rows that are read at a time


def _layout(*, variability: bool) -> Layout:
    """Return the layout of a reconstruction's files, in the order of writing."""
    kinds = ("records", "variability", "blocks") if variability else ("records", "blocks")
    return Layout("reconstruction", kinds=kinds, merged=kinds)


@displayed
@dataclass(frozen=True)
class ReconstructionOutput:
    """Results of a finished reconstruction.

    It holds the settings of the run with the digest of its tables, and the reconstructed records.
    It has population, status, deviation and conflict of every block, and bounds of the solution
    variability, if requested.
    """

    config: dict[str, Any]
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


def read_reconstruction(folder: str | Path) -> ReconstructionOutput:
    """Return settings, records, blocks and variability of a finished reconstruction."""
    run = FinishedReconstruction(folder)
    frames = {kind: read_frame(file, fault=PartFileError) for kind, file in run.files.items()}
    return ReconstructionOutput(
        run.config, frames["records"], frames["blocks"], frames.get("variability")
    )


class FinishedReconstruction:
    """Settings (``config``) and result ``files`` by kind of a finished reconstruction."""

    def __init__(self, folder: str | Path) -> None:
        store = RunFolder.existing(folder, _layout(variability=True))
        self.config = dict(store.config)
        kinds = ("records", "blocks", *(["variability"] if self.config.get("variability") else []))
        self.files = {kind: store.result(f"{kind}.parquet") for kind in kinds}

    def columns(self, kind: str) -> list[str]:
        """Return the names of the columns of a file."""
        with opened(self.files[kind], PartFileError) as (_, schema):
            return list(schema.names)

    def rows(self, kind: str, digits: int) -> RowsByPlace:
        """Return the rows of a file by place, where a place is the first ``digits`` digits."""
        return RowsByPlace(self.files[kind], digits)


class RowsByPlace:
    """Rows of a file that is sorted by place code, read when needed."""

    def __init__(self, file: Path, digits: int) -> None:
        self._file, self._digits = file, digits
        self._batches = read_batches(file, _BATCH, fault=PartFileError)
        self._batch = next(self._batches)

    def rows(self, place: str) -> pd.DataFrame:
        """Return the rows of a place, skipping those of places before it."""
        pieces = []
        while True:
            codes = pc.utf8_slice_codeunits(self._batch.column(0), 0, self._digits)
            codes = codes.to_numpy(zero_copy_only=False).astype(str)
            if (codes[1:] < codes[:-1]).any():
                raise PartFileError(f"{self._file}: rows must be in the order of the places")
            start, stop = np.searchsorted(codes, place), np.searchsorted(codes, place, "right")
            pieces.append(self._batch.slice(start, stop - start))
            following = None if stop < len(codes) else next(self._batches, None)
            self._batch = self._batch.slice(stop) if following is None else following
            if following is None:
                frame: pd.DataFrame = pa.concat_tables(pieces).to_pandas()
                return frame

    def places(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield each remaining place with its rows."""
        while True:
            while not len(self._batch):
                following = next(self._batches, None)
                if following is None:
                    return
                self._batch = following
            place = str(self._batch.column(0)[0].as_py())[: self._digits]
            yield place, self.rows(place)


#: Options that a reconstruction and its variability share.
_SHARED = ("solver", "time_limit", "taken_as_true", "known_rule")

# The study, and one shard of it: some places of a folder of published tables.

_SHARDS = 64  # least number of shards by default
_MOST_BLOCKS = 250  # of such a shard
_SHOWN = 5  # conflicts, and sentences, that a summary quotes


def shard_size(blocks: int) -> int:
    """Return the number of blocks per shard that makes about 64 shards, or more.

    Blocks differ by orders of magnitude in the work that they take, so that few large shards keep
    workers waiting for the last one.  Only the number of blocks counts, never that of workers.
    """
    return min(max(1, blocks // _SHARDS), _MOST_BLOCKS)


@dataclass(frozen=True)
class TableStudy(Study):
    """A study of published tables, in shards of whole places."""

    tables: str | Path
    _: KW_ONLY
    solver: str = "highs"
    time_limit: float | None = None
    blocks_per_shard: int | None = None
    known_rule: bool = True

    caches: ClassVar = (kept_tables,)
    inputs: ClassVar = ("tables",)
    _labelled: ClassVar[str] = ""  # of whose rows there is a CSV with labels, too

    @property
    def _schema(self) -> Schema:
        return open_tables(self.tables).workload.schema

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return a CSV file of the rows with labels, if places have names."""
        if not self._labelled or not self._schema.geography.names:
            return {}
        rows = self._schema.labelled(folder.frame(self._labelled, range(self.shards)))
        return {f"{self._labelled}.csv": csv_bytes(rows)}

    def _checked(self) -> tuple[TableSource, dict[str, Any]]:
        """Return the tables, and the checked settings common to all studies of tables."""
        if self.blocks_per_shard is not None:
            check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        make_solver(check.text(self.solver, "solver"))
        source = open_tables(self.tables)
        if not source.blocks:
            finest = source.workload.levels[-1]
            raise DataError(f"{self.tables}: must have tables of at least one {finest}")
        return source, {
            "tables": source.digest,
            "time_limit": check.time_limit(self.time_limit),
            "known_rule": check.flag(self.known_rule, "known_rule"),
            "blocks_per_shard": self.blocks_per_shard or shard_size(source.blocks),
        }

    @property
    def _unit(self) -> str:
        """Level whose places are kept together in a shard."""
        return str(self.config["scope"])

    def _shard(self, shard: int) -> PublishedTables:
        """Return the tables of a shard."""
        source = open_tables(self.tables, self.config["tables"])
        return source.shard(shard, self._unit, self.config["blocks_per_shard"])

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the parts of a shard, computed from the tables of its places."""
        return self._parts(self._shard(shard))

    @abstractmethod
    def _parts(self, tables: PublishedTables) -> dict[str, pa.Table]: ...

    def work(self, shard: int) -> float:
        """Return the number of blocks in a shard."""
        source = open_tables(self.tables, self.config["tables"])
        starts = source.starts(self._unit, self.config["blocks_per_shard"])
        return float(np.diff(starts, append=source.blocks)[shard])

    def pilot(self, shard: int, amount: float) -> float:
        """Compute about ``amount`` blocks in whole places of a shard; return their number."""
        tables = self._shard(shard)
        levels = tables.workload.levels
        blocks = tables.geoids[levels[-1]]
        units = tables.workload.schema.geography.ancestors(blocks, self._unit)
        names = np.unique(units)
        chosen = names[evenly(names.size, amount * names.size / blocks.size)]
        blocks = blocks[np.isin(units, chosen)]
        self._parts(_around(tables, blocks, list(levels)))
        return float(blocks.size)


def _block_facts(folder: RunFolder, tables: str | Path, *, taken_as_true: bool) -> dict[str, Any]:
    """Return the number of blocks by status, and the first conflicts."""
    laws = open_tables(tables).laws.values()
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    for shard in folder.finished():
        blocks = folder.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("conflict").to_pylist() if text]
        conflicts = conflicts[:_SHOWN]
    return {
        "statuses": dict(sorted(statuses.items())),
        "conflicts": conflicts,
        "taken_as_true": taken_as_true,
        "coarsened": not (taken_as_true or all(law.exact for law in laws)),
    }


@dataclass(frozen=True)
class ReconstructionStudy(TableStudy):
    """Reconstruction of the records behind published tables, for :func:`~bayesrisk.run`.

    A complete run has ``records.parquet``, ``blocks.parquet`` and, on request,
    ``variability.parquet``; :func:`read_reconstruction` reads them. The summary has ``records``
    (their number after a complete run, else 0), ``statuses`` (blocks of each), and ``conflicts``
    (contradicting cells of the first blocks without a solution). It also has ``taken_as_true`` and
    ``coarsened`` (whether counts are read as ranges). Each worker holds the tables, or one part and
    the index of tables by place, and one shard. With a time limit, results may depend on the speed
    of the machine; with a limit of nodes they do not.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as from :class:`TabulationStudy`.
    variability : str, optional
        ``block``, ``tract-bounds`` or ``tract-joint``: also bound the solution variability, with
        this ``scope`` of :func:`solution_variability`.
    node_limit : int, optional
        Largest number of solver nodes for the variability of a component, which must be requested;
        by default no limit.
    scope, solver, time_limit, nearest, taken_as_true, known_rule : object
        As for :func:`~bayesrisk.reconstruct`.
    blocks_per_shard : int, optional
        Blocks after which a shard ends; places that are solved together stay together. By default
        about 64 shards of at most 250 blocks.
    """

    _: KW_ONLY
    scope: str
    variability: str | None = None
    node_limit: int | None = None
    nearest: bool = False
    taken_as_true: bool = False

    _labelled: ClassVar[str] = "records"

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Checked settings, the digest of the tables, and the level kept together."""
        source, fields = self._checked()
        nodes = checked_nodes(self.node_limit, self.solver)
        if nodes is not None and self.variability is None:
            raise ArgumentError(
                "node_limit", "goes with a variability", shown=f"{nodes} without one"
            )
        levels = source.workload.levels
        check.choice(self.scope, "scope", levels)
        unit = self.scope  # the level whose places stay together in a shard
        if self.variability is not None:
            level, _ = level_and_kind(self.variability, levels, KINDS, "variability")
            unit = levels[min(levels.index(unit), levels.index(level))]
        used = levels[levels.index(unit) :]
        keys = [key for key in source.workload.tables if key[0] in used]
        return self.configuration(
            **fields,
            unit=unit,
            node_limit=nodes,
            nearest=bool(self.nearest),
            shards=len(source.starts(unit, fields["blocks_per_shard"])),
            taken_as_true=assumed_true(source.laws, keys, taken_as_true=self.taken_as_true),
        )

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Parts of a shard: records, blocks and, on request, variability."""
        return _layout(variability=self.variability is not None)

    @property
    def _unit(self) -> str:
        return str(self.config["unit"])

    def work(self, shard: int) -> float:
        """Return the number of blocks, or 0 (unknown) for joint variability."""
        return 0.0 if (self.variability or "").endswith("-joint") else super().work(shard)

    def _parts(self, tables: PublishedTables) -> dict[str, pa.Table]:
        """Return records, blocks and variability of the places of some tables."""
        config = self.config
        options = {name: config[name] for name in _SHARED}
        solution = reconstruction.reconstruct(
            tables, scope=self.scope, nearest=config["nearest"], **options
        )
        parts = {"records": _records(solution), "blocks": arrow_table(solution.blocks())}
        if self.variability is not None:
            # Block records need not fit the tract's tables: then a solution that does is looked
            # for, as where the records are only the nearest.
            finest = solution.problem.level
            reusable = self.variability == finest or self.scope != finest
            reusable = reusable and Status.NEAREST not in solution.status
            bounds = reconstruction.solution_variability(
                tables,
                scope=self.variability,
                solution=solution if reusable else None,
                node_limit=config["node_limit"],
                **options,
            )
            parts["variability"] = arrow_table(bounds.to_frame())
        return parts

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes:
        """Return the report."""
        return reconstruction_page(self.config, folder, facts, self.variability)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return the number of records, statuses and the first conflicts."""
        records = folder.path / "records.parquet"
        return {
            "records": pq.read_metadata(records).num_rows if complete else 0,
            **_block_facts(folder, self.tables, taken_as_true=self.config["taken_as_true"]),
        }


def _records(solution: reconstruction.Reconstruction) -> pa.Table:
    """Return reconstructed records as a table with 16-bit codes."""
    frame = reconstruction.record_form(solution)
    return arrow_table(frame.astype({n: "int16" for n in frame if n != solution.problem.level}))


# The study of bounds.


@dataclass(frozen=True)
class BoundsStudy(TableStudy):
    """Smallest and largest counts consistent with published tables, for :func:`~bayesrisk.run`.

    A complete run has ``bounds.csv``, with the columns of :func:`count_bounds`. For an attack on
    tables in files, it has the counts that these state. The summary has numbers of counts by result
    (``counts``, ``coarsened``, ``recovered``, ``empty``, ``at_least_one``, ``decided``), the same
    in ``sentences``, and ``conflicts``.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as for :class:`ReconstructionStudy`.
    scope, known_rule, solver, time_limit, node_limit : object
        As for :func:`count_bounds`.
    blocks_per_shard : int, optional
        Blocks after which a shard ends; by default about 64 shards of at most 250 blocks.
    """

    _: KW_ONLY
    scope: str | None = None
    node_limit: int | None = None

    layout = Layout("run of bounds", kinds=("facts", "conflicts", "bounds"))

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Checked settings and the digest of the tables."""
        source, fields = self._checked()
        levels = source.workload.levels
        scope = levels[-1] if self.scope is None else check.choice(self.scope, "scope", levels)
        used = levels[levels.index(scope) :]
        keys = [key for key in source.workload.tables if key[0] in used]
        assumed_true(source.laws, keys, taken_as_true=None)
        return self.configuration(
            **fields,
            scope=scope,
            node_limit=checked_nodes(self.node_limit, self.solver),
            shards=len(source.starts(scope, fields["blocks_per_shard"])),
        )

    def _parts(self, tables: PublishedTables) -> dict[str, pa.Table]:
        """Return bounds, facts and conflicts of the places of some tables."""
        config = self.config
        names = ("scope", "known_rule", "solver", "time_limit", "node_limit")
        settings = {name: config[name] for name in names}
        stated = self._stated
        places = np.concatenate([*tables.geoids.values()])
        cells = None if stated is None else stated.part(places)
        bounds = reconstruction.count_bounds(tables, cells=cells, **settings)
        counts = bounds.counts
        if stated is None:
            counts = _stated_once(counts, tables.workload)
        else:
            counts["published"] = counts["published"].where(stated.are_numbers(counts))
        conflicts = {"place": list(bounds.conflict), "conflict": list(bounds.conflict.values())}
        return {
            "bounds": arrow_table(counts),
            "facts": pa.table({name: [number] for name, number in bounds.facts.items()}),
            "conflicts": arrow_table(pd.DataFrame(conflicts, dtype=object)),
        }

    @functools.cached_property
    def _stated(self) -> StatedCells | None:
        """The cells that files state, where the tables are of files; else all cells are meant."""
        return StatedCells.read(Path(self.tables))

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return a CSV file of all bounds, with the names of places if there are any."""
        text, geography = io.BytesIO(), self._schema.geography
        for shard in range(self.shards):
            options = pa_csv.WriteOptions(include_header=shard == 0, quoting_style="needed")
            rows = folder.read_part(shard, "bounds")
            if geography.names:
                names = geography.named(rows.column("geoid").to_pylist())
                rows = rows.add_column(2, "name", pa.array(names, pa.string()))
            pa_csv.write_csv(guarded_table(rows), text, options)
        return {"bounds.csv": text.getvalue()}

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return numbers of counts by result, sentences on them, and the first conflicts."""
        shards = folder.finished()
        if not shards:
            return {"counts": 0, "sentences": [], "conflicts": {}}
        totals = {str(name): int(n) for name, n in folder.frame("facts", shards).sum().items()}
        conflicts = folder.frame("conflicts", shards)
        places = self._schema.geography.named(conflicts["place"])
        conflict_texts = dict(zip(places, conflicts["conflict"], strict=True))
        return {
            **totals,
            "sentences": bounds_sentences(totals, conflict_texts),
            "conflicts": dict(list(conflict_texts.items())[:_SHOWN]),
        }


_LAW = r" \((?!\d+\))[^()]*\)$"  # at the end of a table's name, and no number of a second file


def _stated_once(counts: pd.DataFrame, workload: Workload) -> pd.DataFrame:
    """Return counts without empty cells whose records the same table counts under another law.

    A published file becomes a table for each law, such as *sex* and *sex (1-4)*. At each place, one
    of these has a given cell, and the others hide nothing in it.
    """
    whole = counts["table"].str.replace(_LAW, "", regex=True)
    if whole.nunique() == counts["table"].nunique():
        return counts
    records = dict[tuple[str, str, str], int]()
    for level in workload.levels:
        tables = [*workload.at(level).values()]
        queries = table_cells(workload.schema, tables).queries(tables)
        label, _ = equal_rows(queries.matrix)
        records |= {
            (level, *name): number for name, number in zip(queries.names, label, strict=True)
        }
    keys = [counts[name] for name in ("level", "table", "cell")]
    cell_records = [records[key] for key in zip(*keys, strict=True)]
    empty = counts["published"].isna() & (counts["low_stated"] == 0) & counts["high_stated"].isna()
    groups = empty.groupby([counts["level"], counts["geoid"], whole, cell_records], sort=False)
    first = groups.cumcount() == 0  # of cells that are empty in all of these tables, one stays
    return counts[~empty | (groups.transform("all") & first)]


# The claims study.

#: Names of statuses in files, where they are other words.
_STORED = {Status.INFEASIBLE: "contradictory"}
#: Options of :func:`find_claims`.
_OPTIONS = (
    "columns",
    "max_columns",
    "structural_rules",
    "tenure",
    "solver",
    "time_limit",
    "taken_as_true",
    "known_rule",
)


@dataclass(frozen=True)
class ClaimsStudy(TableStudy):
    """Statements that must be true of every block of published tables, for :func:`~bayesrisk.run`.

    A complete run has ``claims.parquet`` (verified and undecided claims), ``blocks.parquet`` and
    ``summary.json``. Its facts are ``people`` (records; of one fitting list if counts are
    ``coarsened``), ``claims`` (verified ones that no table states), and ``singletons`` (those about
    one record). Further facts are ``statuses`` (blocks of each), ``coverage`` (records that such
    claims describe, by number of columns), and ``examples`` (claims about one record with most
    columns, in words). The last are ``conflicts`` (published cells that contradict each other) and
    ``taken_as_true``. Each worker holds the tables, or one part and the index of tables by place,
    and the claims of one shard.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as from :class:`TabulationStudy`.
    columns, max_columns, structural_rules, tenure, solver, time_limit, taken_as_true, known_rule
        As for :func:`find_claims`; the time limit is for each block.
    blocks_per_shard : int, optional
        Blocks of a shard; by default about 64 shards of at most 250 blocks.
    """

    _: KW_ONLY
    columns: Sequence[str] | None = None
    max_columns: int | None = None
    structural_rules: bool = True
    tenure: str = "merged"
    taken_as_true: bool = False

    summary: ClassVar = True
    uneven: ClassVar = ("places slower than those that were tried",)
    layout = Layout(
        "run of claims",
        kinds=("claims", "coverage", "examples", "blocks"),
        merged=("claims", "blocks"),
    )
    _labelled: ClassVar[str] = "claims"

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Checked settings and the digest of the tables."""
        source, fields = self._checked()
        options: dict[str, Any] = {name: getattr(self, name) for name in _OPTIONS}
        options["columns"] = None if self.columns is None else tuple(self.columns)
        problem = claim_problem(source.sample(), ClaimOptions(**options))
        options["taken_as_true"] = problem.taken_as_true
        shards = -(-source.blocks // fields["blocks_per_shard"])
        return self.configuration(**options | fields, shards=shards)

    @property
    def _unit(self) -> str:
        source = open_tables(self.tables, self.config["tables"])
        return source.workload.levels[-1]

    def _parts(self, tables: PublishedTables) -> dict[str, pa.Table]:
        """Return claims, coverage, examples and blocks of the places of some tables."""
        config = self.config
        claims = reconstruction.find_claims(tables, **{name: config[name] for name in _OPTIONS})
        kinds = []
        for kind, singletons in (("singleton", True), ("any", False)):
            covered = claims.covered(singletons=singletons)
            totals = covered.groupby("columns")[["covered", "claims", "records"]].sum()
            totals = totals.reset_index()
            kinds.append(totals.assign(kind=kind))
        return {
            "claims": arrow_table(claims.claims),
            "coverage": arrow_table(pd.concat(kinds, ignore_index=True)),
            "examples": arrow_table(_examples(claims)),
            "blocks": arrow_table(claims.blocks.replace({"status": _STORED})),
        }

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes:
        """Return the report."""
        return claims_page(self.config, facts)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return numbers of claims and of blocks by status, and coverage."""
        shards = folder.finished()
        parts = folder.frame("coverage", shards) if shards else pd.DataFrame()
        coverage = _coverage(parts, self.config["max_columns"]) if shards else []
        people = parts.groupby(["kind", "columns"])["records"].sum().max() if shards else 0
        assumed = self.config["taken_as_true"]
        totals = _block_facts(folder, self.tables, taken_as_true=assumed)
        return {
            "claims": sum(line["claims"] for line in coverage),
            "singletons": sum(line["singleton_claims"] for line in coverage),
            "people": int(people),
            "statuses": totals.pop("statuses"),
            "coverage": coverage,
            "examples": _best(folder.frame("examples", shards), self._schema) if shards else [],
            **totals,
        }


def _examples(claims: reconstruction.Claims) -> pd.DataFrame:
    """Return claims about one record with the most columns, as sentences."""
    frame = claims.to_frame(readable="here")
    single = frame[one_record(frame)].nlargest(_SHOWN, "n_columns")
    return pd.DataFrame(
        {
            "place": single[claims.level].to_numpy(dtype=object),
            "columns": single["n_columns"].to_numpy(),
            "sentence": np.array(reconstruction.claim_sentences(claims, single), dtype=object),
        }
    )


def _best(examples: pd.DataFrame, schema: Schema) -> list[str]:
    """Return, for a few places, the sentence that uses most columns."""
    best = examples.sort_values("columns", ascending=False, kind="stable")
    best = best.drop_duplicates("place").head(_SHOWN)
    pairs = zip(schema.geography.named(best["place"]), best["sentence"], strict=True)
    return [f"{place}: {sentence}" if place else sentence for place, sentence in pairs]


def _coverage(parts: pd.DataFrame, most: int | None) -> list[dict[str, int]]:
    """Return numbers of records covered and of claims, by number of columns that was searched."""
    names = {
        "singleton_records": ("covered", "singleton"),
        "singleton_claims": ("claims", "singleton"),
        "records": ("covered", "any"),
        "claims": ("claims", "any"),
    }
    parts = parts if most is None else parts[parts["columns"] <= most]
    frame = parts.groupby(["kind", "columns"]).sum().unstack("kind")
    return [
        {"columns": int(str(columns)), **{name: int(line[key]) for name, key in names.items()}}
        for columns, line in frame.iterrows()
    ]
