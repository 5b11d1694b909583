"""The tables that a study reads: a folder that is held whole, or one by place, of which parts are.

Blocks are numbered in the order of their codes, over all parts.  A shard is a run of them that
keeps the places of a unit together; it is the same for either form, and so is what it comes to.
"""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bayesrisk import _files
from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.release import RELEASE_FILE, Release, ReleaseIndex
from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.exchange.partitions import ABOVE, Partitions
from bayesrisk.tables.published import joined


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
