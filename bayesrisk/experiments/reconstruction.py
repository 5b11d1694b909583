"""The reconstruction of a whole area as a study, in shards of places.

Reads published tables and nothing else.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Positive, choice
from bayesrisk._files.parquet import opened, read_batches, read_frame
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError, PartFileError
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, RunSettings, arrow_table
from bayesrisk.reconstruction import (
    Reconstruction,
    make_solver,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.records.reconstruction import checked_nodes
from bayesrisk.reconstruction.registry import Status
from bayesrisk.release import RELEASE_FILE, Release, ReleaseIndex
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.exchange import ABOVE, Partitions
from bayesrisk.tables.published import assumed_true, joined

# -----------------------------------------------------------------------------
# The tables that a study reads: a folder that is held whole, or one by place, of which parts are.
#
# Blocks are numbered in the order of their codes, over all parts.  A shard is a run of them that
# keeps the places of a unit together; it is the same for either form, and so is what it comes to.


def published(folder: Path) -> PublishedTables:
    """Return the tables of a folder, or of a release: then its description must be whole too.

    The digest of the folder, which a run keeps, covers the description as well.
    """
    if (folder / RELEASE_FILE).exists():
        return Release.read(folder).tables
    return PublishedTables.read(folder)


class TableSource:
    """Published tables of which a worker holds what its shard needs.

    Parameters
    ----------
    digest : str
        What tells these tables from others.
    sizes : ndarray of int64
        Blocks in each part.
    part : callable
        Returns the tables of a part by its position; the last one may be kept.
    above : callable
        Returns the tables of levels that are coarser than the parts; None where there are none.
    firsts : callable
        Returns for a level, not the finest, the numbers of the first blocks of its places.
    """

    def __init__(
        self,
        digest: str,
        sizes: IntArray,
        part: Callable[[int], PublishedTables],
        above: Callable[[], PublishedTables | None],
        firsts: Callable[[str], IntArray],
    ) -> None:
        self.digest, self._part, self._above, self._firsts = digest, part, above, firsts
        self._ends = np.cumsum(sizes)
        self._starts: dict[tuple[str, int], IntArray] = {}

    @functools.cached_property
    def workload(self) -> Workload:
        """What is counted."""
        above, part = self._above(), self._part(0)
        return part.workload if above is None else above.workload.union(part.workload)

    @property
    def laws(self) -> dict[tuple[str, str], str]:
        """Laws of tables of a release whose counts need not be true, as its first part has them."""
        above = self._above()
        return {**({} if above is None else above.laws), **self._part(0).laws}

    @property
    def blocks(self) -> int:
        """Number of places of the finest level."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def sample(self) -> PublishedTables:
        """Return the tables of some places, for questions about all of them."""
        return self._part(0)

    def starts(self, unit: str, blocks_per_shard: int) -> IntArray:
        """Return the number of the first block of every shard."""
        key = (unit, blocks_per_shard)
        if key not in self._starts:
            if unit == self.workload.levels[-1]:
                starts = np.arange(0, self.blocks, blocks_per_shard)
            else:
                firsts = self._firsts(unit)
                starts = firsts[np.diff(firsts // blocks_per_shard, prepend=-1) != 0]
            self._starts[key] = starts
        return self._starts[key]

    def shard(self, number: int, unit: str, blocks_per_shard: int) -> PublishedTables:
        """Return the tables of the blocks of a shard, and of the places up to the unit around."""
        starts = self.starts(unit, blocks_per_shard)
        stop = int(starts[number + 1]) if number + 1 < len(starts) else self.blocks
        return self._blocks(int(starts[number]), stop, unit)

    def _blocks(self, start: int, stop: int, unit: str) -> PublishedTables:
        """Return the tables of a run of blocks."""
        geography = self.workload.schema.geography
        lowest = geography.rank(unit)
        levels = [level for level in self.workload.levels if geography.rank(level) >= lowest]
        pieces = []
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right")
        for number in range(int(first), int(last) + 1):
            part = self._part(number)
            offset = int(self._ends[number]) - len(part.geoids[part.workload.levels[-1]])
            pieces.append(_some(part, max(start - offset, 0), stop - offset, levels))
        above = self._above() if levels[0] not in pieces[0].workload.levels else None
        if above is not None:
            finest = self.workload.levels[-1]
            blocks = np.concatenate([piece.geoids[finest] for piece in pieces])
            kept = [level for level in levels if level in above.workload.levels]
            rows = {level: np.unique(geography.ancestors(blocks, level)) for level in kept}
            at = {n: np.searchsorted(above.geoids[n], places) for n, places in rows.items()}
            pieces.insert(0, _rows(above, at))
        return joined(pieces)


def _some(tables: PublishedTables, start: int, stop: int, levels: list[str]) -> PublishedTables:
    """Return the tables of some blocks, and of the places around them at some levels."""
    geography = tables.workload.schema.geography
    blocks = tables.geoids[tables.workload.levels[-1]][start:stop]
    rows = {}
    for level in tables.workload.levels:
        if level in levels:
            places = np.unique(geography.ancestors(blocks, level))
            rows[level] = np.searchsorted(tables.geoids[level], places)
    return _rows(tables, rows)


def _rows(tables: PublishedTables, rows: dict[str, IntArray]) -> PublishedTables:
    """Return the tables of the places at some rows of some levels."""
    workload = tables.workload.select(levels=list(rows))
    return PublishedTables(
        workload,
        {level: tables.geoids[level][at] for level, at in rows.items()},
        {key: tables.counts[key][rows[key[0]]] for key in workload.tables},
        {
            key: hidden[rows[key[0]]]
            for key, hidden in tables.suppressed.items()
            if key in workload.tables
        },
        {key: law for key, law in tables.laws.items() if key in workload.tables},
    )


def open_tables(source: str | Path, digest: str | None = None) -> TableSource:
    """Return the tables of a folder, opened once in a process; refuse what is no folder.

    Parameters
    ----------
    source : path-like
        The folder.
    digest : str, optional
        What the tables must still be.

    Raises
    ------
    DataError
        If they are damaged, or others than before.
    """
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder of tables")
    return _open(str(folder), _digest(folder) if digest is None else digest)


def forget_tables() -> None:
    """Forget what this process keeps of tables."""
    _open.cache_clear()


def _digest(folder: Path) -> str:
    if ReleaseIndex.there(folder):
        return ReleaseIndex.read(folder).digest
    if Partitions.there(folder):
        return Partitions.read(folder, "tables").digest
    return _files.digest_folder(folder)


@functools.lru_cache(maxsize=1)
def _open(source: str, digest: str) -> TableSource:
    """Return the tables of a folder, once for each process; refuse them when they have changed."""
    folder = Path(source)
    by_place = Partitions.there(folder)
    made = _by_place(folder) if by_place else _whole(folder, digest)
    if (made.digest if by_place else _files.digest_folder(folder)) != digest:
        raise DataError(f"{folder}: must not change while it is read")
    return made


def _whole(folder: Path, digest: str) -> TableSource:
    """Return tables that are held whole."""
    tables = published(folder)
    blocks = tables.geoids[tables.workload.levels[-1]]

    def firsts(level: str) -> IntArray:
        places = tables.workload.schema.geography.ancestors(blocks, level)
        return np.asarray(np.unique(places, return_index=True)[1], dtype=np.int64)

    return TableSource(digest, np.array([len(blocks)]), lambda _: tables, lambda: None, firsts)


def _by_place(folder: Path) -> TableSource:
    """Return tables by place, of which the part that was read last is kept."""
    about = ReleaseIndex.read(folder) if ReleaseIndex.there(folder) else None
    index = Partitions.read(folder, "tables") if about is None else about.partitions
    checked = index.checked if about is None else about.checked

    @functools.lru_cache(maxsize=1)
    def part(number: int) -> PublishedTables:
        code = index.codes[number]
        tables = published(checked(code))
        blocks = tables.geoids[tables.workload.levels[-1]]
        if len(blocks) != index.sizes[number] or not all(b.startswith(code) for b in blocks):
            raise DataError(f"{folder}: part {code} must hold the places that the index lists")
        return tables

    @functools.cache
    def above() -> PublishedTables | None:
        return published(checked(ABOVE)) if index.above else None

    def firsts(level: str) -> IntArray:
        geography = part(0).workload.schema.geography
        places = geography.ancestors(index.place, level)
        numbers = np.cumsum(index.finest) - index.finest
        return np.asarray(numbers[np.unique(places, return_index=True)[1]], dtype=np.int64)

    digest = index.digest if about is None else about.digest
    return TableSource(digest, index.sizes, part, above, firsts)


# -----------------------------------------------------------------------------
# The output folder of a reconstruction: its configuration, its parts, and what is made of them.


_BATCH = 2**16  # rows that are read at a time
#: Scopes of the solution variability.
VARIABILITIES = ("block", "tract-bounds", "tract-joint")


@dataclass(frozen=True)
class ReconstructionConfig(RunSettings):
    """What a run does, and to which tables.

    Attributes
    ----------
    tables : str
        Digest of the input folder's files.
    scope : str
        Level whose tables are solved together.
    variability : str or None
        Scope of the solution variability: ``block``, ``tract-bounds``, ``tract-joint``; None for
        none.
    unit : str
        Level of the places that stay together in a shard.
    solver : str
        For what search does not settle.
    time_limit : float or None
        Seconds that the solver may take for a component.
    node_limit : int or None
        Nodes that the solver may look at for the variability of a component.
    nearest : bool
        Whether blocks without a solution get the records of the least deviation.
    blocks_per_shard : int
        Blocks after which a shard ends.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts are taken as true that need not be.
    """

    tables: str
    scope: str
    variability: Annotated[str, choice(VARIABILITIES)] | None
    unit: str
    solver: str
    time_limit: Positive | None
    node_limit: Count | None
    nearest: bool
    blocks_per_shard: Count
    shards: Count
    version: str = __version__
    taken_as_true: bool = False


def _layout(*, variability: bool) -> Layout:
    """Return the files of a reconstruction."""
    kinds = ("records", "variability", "blocks") if variability else ("records", "blocks")
    return Layout("reconstruction", kinds=kinds, merged=kinds)


@displayed
@dataclass(frozen=True)
class ReconstructionOutput:
    """What a finished run wrote.

    Attributes
    ----------
    config : ReconstructionConfig
        What it did.
    records : pandas.DataFrame
        Reconstructed records.
    blocks : pandas.DataFrame
        Population, status, deviation and conflict of every block.
    variability : pandas.DataFrame or None
        Bounds of the solution variability, if it was asked for.
    """

    config: ReconstructionConfig
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


def read_reconstruction(folder: str | Path) -> ReconstructionOutput:
    """Return what a finished reconstruction wrote.

    Parameters
    ----------
    folder : path-like
        Its folder.

    Returns
    -------
    ReconstructionOutput
        Configuration, records, blocks and variability.

    Raises
    ------
    OutputError
        If the folder holds no reconstruction.
    PartFileError
        If the run is not finished, or a file is not the one that the manifest lists.
    """
    found = FinishedReconstruction(folder)
    frames = {kind: read_frame(file, fault=PartFileError) for kind, file in found.files.items()}
    return ReconstructionOutput(
        found.config, frames["records"], frames["blocks"], frames.get("variability")
    )


class FinishedReconstruction:
    """The files of a finished run, each the one that the manifest lists.

    Attributes
    ----------
    config : ReconstructionConfig
        What the run did.
    files : dict of str to Path
        ``records``, ``blocks`` and, if it was asked for, ``variability``.

    Raises
    ------
    OutputError
        If the folder holds no reconstruction.
    PartFileError
        If the run is not finished, or a file is not the one that the manifest lists.
    """

    def __init__(self, folder: str | Path) -> None:
        store = RunFolder.existing(folder, _layout(variability=True))
        self.config = store.settings(ReconstructionConfig)
        kinds = ("records", "blocks", *(("variability",) if self.config.variability else ()))
        self.files = {kind: store.result(f"{kind}.parquet") for kind in kinds}

    def columns(self, kind: str) -> list[str]:
        """Return the names of the columns of a file."""
        with opened(self.files[kind], PartFileError) as (_, schema):
            return list(schema.names)

    def rows(self, kind: str, digits: int) -> RowsByPlace:
        """Return the rows of a file, place after place, a place being so many first digits."""
        return RowsByPlace(self.files[kind], digits)


class RowsByPlace:
    """Rows of a file in the order of the codes in its first column, read as they are asked for."""

    def __init__(self, file: Path, digits: int) -> None:
        self._file, self._digits = file, digits
        self._batches = read_batches(file, _BATCH, fault=PartFileError)
        self._held = next(self._batches)

    def of(self, place: str) -> pd.DataFrame:
        """Return the rows of a place; those of places before it are passed over.

        Raises
        ------
        PartFileError
            If the places are not in order.
        """
        pieces = []
        while True:
            codes = pc.utf8_slice_codeunits(self._held.column(0), 0, self._digits)
            codes = codes.to_numpy(zero_copy_only=False).astype(str)
            if (codes[1:] < codes[:-1]).any():
                raise PartFileError(f"{self._file}: rows must be in the order of the places")
            start, stop = np.searchsorted(codes, place), np.searchsorted(codes, place, "right")
            pieces.append(self._held.slice(start, stop - start))
            if stop < len(codes):
                self._held = self._held.slice(stop)
                break
            following = next(self._batches, None)
            if following is None:
                self._held = self._held.slice(stop)
                break
            self._held = following
        frame: pd.DataFrame = pa.concat_tables(pieces).to_pandas()
        return frame

    def places(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield all places that are left, with their rows."""
        while self._next():
            place = str(self._held.column(0)[0].as_py())[: self._digits]
            yield place, self.of(place)

    def _next(self) -> bool:
        while not len(self._held):
            following = next(self._batches, None)
            if following is None:
                return False
            self._held = following
        return True


# -----------------------------------------------------------------------------
# One shard of a reconstruction: some places of a folder of published tables.


_SHARDS = 64  # of a run that nobody told how many blocks a shard has, at least
_MOST_BLOCKS = 250  # of such a shard


def shard_size(blocks: int) -> int:
    """Return how many blocks a shard has: so many that there are about 64 shards, or more.

    Blocks differ by orders of magnitude in the work that they take, so that few large shards keep
    workers waiting for the last one.  Only the number of blocks counts, never that of workers.
    """
    return min(max(1, blocks // _SHARDS), _MOST_BLOCKS)


def compute_shard(tables: str, config: ReconstructionConfig, shard: int) -> dict[str, pa.Table]:
    """Return records, blocks and variability of the places of a shard."""
    source = open_tables(tables, config.tables)
    return _compute(source.shard(shard, config.unit, config.blocks_per_shard), config)


def _compute(tables: PublishedTables, config: ReconstructionConfig) -> dict[str, pa.Table]:
    """Return records, blocks and variability of some places."""
    found = reconstruct(
        tables,
        scope=config.scope,
        solver=config.solver,
        time_limit=config.time_limit,
        nearest=config.nearest,
        taken_as_true=config.taken_as_true,
    )
    parts = {"records": _records(found), "blocks": arrow_table(found.blocks())}
    if config.variability is not None:
        # Block records need not fit the tract's tables: then a solution that does is looked for.
        same = config.variability == "block" or config.scope != found.problem.level
        same = same and Status.NEAREST not in found.status
        bounds = solution_variability(
            tables,
            scope=config.variability,
            solution=found if same else None,
            solver=config.solver,
            time_limit=config.time_limit,
            node_limit=config.node_limit,
            taken_as_true=config.taken_as_true,
        )
        parts["variability"] = arrow_table(bounds.to_frame())
    return parts


def _records(found: Reconstruction) -> pa.Table:
    frame = record_form(found)
    codes = {name: "int16" for name in frame if name != found.problem.level}
    return arrow_table(frame.astype(codes))


# -----------------------------------------------------------------------------


_TRACT = "tract"
_SHOWN = 5  # conflicts that a summary quotes


@displayed
@dataclass(frozen=True)
class ReconstructionSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    records : int
        Reconstructed records of a complete run; else 0.
    statuses : dict of str to int
        Blocks of each status.
    conflicts : tuple of str
        Of the first blocks without a solution the published cells that contradict.
    taken_as_true : bool
        Whether counts are taken as true that need not be.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    records: int
    statuses: dict[str, int]
    conflicts: tuple[str, ...]
    taken_as_true: bool


@dataclass(frozen=True)
class ReconstructionStudy(Study):
    """Records behind a folder of published tables, for :func:`~bayesrisk.run`.

    A complete run has ``records.parquet``, ``blocks.parquet`` and, if asked for,
    ``variability.parquet``; :func:`read_reconstruction` reads them.  Memory: in every worker the
    tables, or of tables by place one part and the index, and one shard.  With a time limit the
    answers may depend on the speed of the machine; with a limit of nodes they do not.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as :class:`TabulationStudy` does.
    scope : str
        The finest level of the tables, or a larger one whose tables are used too.
    variability : str, optional
        ``block``, ``tract-bounds`` or ``tract-joint``: also bound the solution variability.
    solver : str, default "highs"
        See :func:`~bayesrisk.reconstruction.make_solver`.
    time_limit : float, optional
        Seconds that the solver may take for a component; none by default.
    node_limit : int, optional
        Nodes that the solver may look at for the variability of a component, which must be asked
        for; none by default.
    nearest : bool, default False
        Whether blocks that no records fit get those of the least total deviation.
    blocks_per_shard : int, optional
        Blocks after which a shard ends; places that are solved together stay together.  By
        default enough for about 64 shards, and at most 250.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true are read as if they were.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, there are no tables at a level that is
        needed, or their counts need not be true.
    DataError
        When it runs: if the folder of tables is damaged: file, row and column are named.
    MissingDependencyError
        When it runs: if the solver is not installed.
    """

    tables: str | Path
    _: KW_ONLY
    scope: str
    variability: str | None = None
    solver: str = "highs"
    time_limit: float | None = None
    node_limit: int | None = None
    nearest: bool = False
    blocks_per_shard: int | None = None
    taken_as_true: bool = False

    @functools.cached_property
    def config(self) -> ReconstructionConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.variability is not None:
            check.choice(self.variability, "variability", VARIABILITIES)
        limit, nodes = self.time_limit, checked_nodes(self.node_limit, str(self.solver))
        if limit is not None:
            limit = check.scalar(limit, "time_limit", lower=0.0, bounds="(]")
        if nodes is not None and self.variability is None:
            raise ArgumentError(f"node_limit goes with a variability, got {nodes} without one")
        if self.blocks_per_shard is not None:
            check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        if not isinstance(self.solver, str):
            raise ArgumentError(f"solver must be a name, got {shown(self.solver)}")
        make_solver(self.solver)
        source = open_tables(self.tables)
        levels = source.workload.levels
        check.choice(self.scope, "scope", levels)
        if not source.blocks:
            raise DataError(f"{self.tables}: must have tables of at least one {levels[-1]}")
        unit, size = self._unit(levels), self.blocks_per_shard or shard_size(source.blocks)
        used = levels[levels.index(unit) :]
        keys = [key for key in source.workload.tables if key[0] in used]
        assumed = assumed_true(source.laws, keys, taken_as_true=self.taken_as_true)
        return ReconstructionConfig(
            source.digest,
            self.scope,
            self.variability,
            unit,
            self.solver,
            limit,
            nodes,
            bool(self.nearest),
            size,
            len(source.starts(unit, size)),
            taken_as_true=assumed,
        )

    def _unit(self, levels: tuple[str, ...]) -> str:
        """Return the level whose places stay together in a shard."""
        if self.variability is None or self.variability == "block":
            return self.scope
        if _TRACT not in levels:
            raise ArgumentError(
                f"variability {self.variability!r} needs tables of level {_TRACT!r}, "
                f"got those of {', '.join(levels)}"
            )
        return levels[min(levels.index(self.scope), levels.index(_TRACT))]

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Parts of a shard: records, blocks and, if it was asked for, variability."""
        return _layout(variability=self.variability is not None)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return records, blocks and variability of some places."""
        return compute_shard(str(self.tables), self.config, shard)

    def summary(self, folder: RunFolder, outcome: Outcome) -> ReconstructionSummary:
        """Return what was done."""
        records = 0
        if outcome.complete:
            records = pq.read_metadata(folder.path / "records.parquet").num_rows
        return ReconstructionSummary(
            str(folder.path),
            *outcome,
            records,
            *_outcome(folder, self.config),
            self.config.taken_as_true,
        )

    def close(self) -> None:
        """Forget the tables."""
        forget_tables()


def _outcome(
    store: RunFolder, config: ReconstructionConfig
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return how many blocks have each status, and what the first conflicts are."""
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    for shard in store.finished():
        blocks = store.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("conflict").to_pylist() if text]
        conflicts = conflicts[:_SHOWN]
    return dict(sorted(statuses.items())), tuple(conflicts)
