"""The folder of a data set by place while it is made, and once it is whole.

A shard is a part: its folder is written by whoever computes it, and then a small file of what the
index says of it, which stands for the shard.  The index itself is written when all are there.
"""

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike
from scipy import sparse

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parquet import spill, spilled
from bayesrisk._files.text import shown
from bayesrisk._validation import TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, PartFileError
from bayesrisk.experiments.runs.folder import ADVICE, Layout, RunFolder
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.tables import (
    Geography,
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    as_microdata,
)
from bayesrisk.tables.exchange import (
    ABOVE,
    ROWS,
    Partitions,
    index_files,
    index_rows,
    manifest_digest,
    part_name,
    rows_of,
)

# -----------------------------------------------------------------------------
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

    Parameters
    ----------
    records : Records, Microdata or iterable of Records
        Records in any order, or pieces of them, all of one schema.
    folder : path-like
        A new or empty folder; it appears whole or not at all.
    level : str, default "county"
        Level of the parts, coarser than the finest.
    places : array_like of str, optional
        Public list of places of the finest level, for records that have none: then parts and places
        are those of the list, and do not depend on who lives where.

    Raises
    ------
    ArgumentError
        If the level is none of the geography, or the finest; if there are no records; or if
        ``places`` are not of the finest level, are given to microdata that have ``blocks``, or lack
        a place with a record.
    OutputError
        If the folder holds something, or cannot be written.

    Notes
    -----
    Pieces are put down by place as they come, and each place is then written by itself.  Memory:
    one piece, or the records of one place; disk: the records once more while it works.

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
        known: dict[str, Schema] = {}
        found: set[str] = set()
        width = 0
        for unit, schema, table in pieces:
            width = _width(known.setdefault(unit, schema), schema, level)
            place = "block" if unit == _BLOCKS else schema.geography.finest
            found |= _spill(table, place, width, put_down, unit)
        if not found:
            raise ArgumentError("records must be at least one, got none")
        if places is not None:
            geography = next(iter(known.values())).geography
            listed = _listed(places, geography, known)
            parts = _spill(listed, "block", width, put_down, _BLOCKS)
            if found - parts:
                raise ArgumentError(
                    f"places must hold every place with a record, got none in {level} "
                    f"{shown(min(found - parts))}"
                )
            found = parts
        rows = [_write_part(code, put_down, known, made) for code in sorted(found)]
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


def _listed(places: ArrayLike, geography: Geography, known: Mapping[str, Schema]) -> pa.Table:
    """Return a public list of places as a table of blocks."""
    if _BLOCKS in known:
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
    """Put rows down by place, each place in a file that grows; return the places."""
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


# -----------------------------------------------------------------------------
# Microdata by place as studies read them: a part at a time, and the same ones all along.


def open_index(records: str | Path) -> Partitions:
    """Return the index of microdata by place; that of the last ones is kept.

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
    """Return code and microdata of a part.

    Raises
    ------
    DataError
        If the microdata are damaged, or others than when the study began.
    """
    index = open_index(records)
    if index.digest != digest:
        raise DataError(f"{records}: must not change while it is read")
    code = index.codes[shard]
    return code, Microdata.read(index.checked(code))


def workload_digest(workload: Workload) -> str:
    """Return what tells a workload from others."""
    text = json.dumps(workload.to_dict(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1)
def _index(folder: str) -> Partitions:
    return Partitions.read(Path(folder), "microdata")


# -----------------------------------------------------------------------------
# Whether a mechanism can protect one part after the other.


def check_reach(mechanism: Mechanism, workload: Workload, level: str, *, whole: str) -> None:
    """Refuse a mechanism that needs more than the records of a part.

    Parameters
    ----------
    mechanism : Mechanism
        The protection.
    workload : Workload
        Tables to publish.
    level : str
        Level of the parts.
    whole : str
        What to do instead with all records at once, in words.

    Raises
    ------
    ArgumentError
        If it does, or does not say (``acts_within``).
    """
    name, geography = mechanism.spec.mechanism, workload.schema.geography
    says = getattr(mechanism, "acts_within", None)
    reach = None if says is None else says(workload)
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


# -----------------------------------------------------------------------------
# Tables of levels coarser than the parts: sums of what the parts have, which are added up.


def coarse_levels(workload: Workload, level: str) -> list[str]:
    """Return the levels of a workload that are coarser than the parts."""
    geography = workload.schema.geography
    rank = geography.rank(level)
    return [name for name in workload.levels if geography.rank(name) < rank]


def digits(workload: Workload, level: str) -> int:
    """Return the digits of the places that an index counts in: above the finest level."""
    coarse = coarse_levels(workload, level)
    inner = [name for name in workload.levels if name not in coarse]
    return workload.schema.geography.width(inner[-2] if len(inner) > 1 else level)


def at_levels(tables: PublishedTables, levels: Sequence[str]) -> PublishedTables:
    """Return the tables of some levels."""
    workload = tables.workload.select(levels=list(levels))
    return PublishedTables(
        workload,
        {level: tables.geoids[level] for level in levels},
        {key: tables.counts[key] for key in workload.tables},
        {key: hidden for key, hidden in tables.suppressed.items() if key in workload.tables},
        {key: law for key, law in tables.laws.items() if key in workload.tables},
    )


def coarse_rows(tables: PublishedTables, levels: Sequence[str]) -> pa.Table:
    """Return the rows of the tables of some levels."""
    keys = [key for key in tables.workload.tables if key[0] in levels]
    return pa.concat_tables([ROWS.empty_table(), *(rows_of(tables.content, key) for key in keys)])


def sums_of(
    parts: Iterable[pa.Table], workload: Workload, levels: Sequence[str], codes: Sequence[str]
) -> PublishedTables:
    """Return the tables of some levels from the rows of every part.

    Parameters
    ----------
    parts : iterable of pyarrow.Table
        Those of :func:`coarse_rows`.
    workload : Workload
        Of all tables.
    levels : sequence of str
        Levels that are coarser than the parts.
    codes : sequence of str
        The parts.
    """
    names = ROWS.names[:-1]
    total = ROWS.empty_table().to_pandas()
    for rows in parts:
        both = pd.concat([total, rows.to_pandas()])
        total = both.groupby(names, sort=False)["count"].sum().reset_index()
    some = workload.select(levels=list(levels))
    geography = workload.schema.geography
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


# -----------------------------------------------------------------------------


class PlacePart(NamedTuple):
    """A part as it is computed: its code, what it holds, and what the index needs to know.

    ``width`` is the number of digits of the places that the index counts in.
    """

    code: str
    content: PublishedTables | Release | Microdata
    finest: TextArray
    width: int


#: Readers of Parquet folders pass over names that start with an underscore.
PLACES = Layout(
    "data set by place", (), (), False, "_parts", "_config.json", "_run.json", "_failed"
)


class PlaceFolder(RunFolder):
    """The folder of a run that makes a data set by place; further kinds are files of each part."""

    def __init__(
        self, path: str | Path, config: Mapping[str, Any], holds: str, layout: Layout = PLACES
    ) -> None:
        super().__init__(path, config, replace(layout, kinds=(*layout.kinds, "index")))
        self.holds = holds

    def write_parts(self, shard: int, tables: Mapping[str, Any]) -> None:
        """Write the folder of a part, under ``part`` a :class:`PlacePart`, and its small files."""
        part: PlacePart = tables["part"]
        folder = self.path / part_name(part.code)
        part.content.write(folder, replace=True)
        digest = manifest_digest(folder, self.holds)
        rows = index_rows(part.code, np.sort(part.finest), part.width, digest)
        rows = rows.append_column("content", pa.array([_files.digest_folder(folder)] * len(rows)))
        super().write_parts(shard, {**tables, "index": rows})

    def _check_whole(self, shard: int) -> None:
        """Refuse a part whose small files or whose folder are not as they were written."""
        if not self.has(shard):
            return
        about = self.read_part(shard, "index").slice(0, 1).to_pylist()[0]
        folder = self.path / part_name(about["part"])
        if _files.digest_folder(folder) != about["content"]:
            raise PartFileError(f"{folder}: is not as it was written; {ADVICE}")

    def index(self, level: str, above: PublishedTables | Release | None) -> dict[str, bytes]:
        """Return the files of the index of a run whose parts are all there."""
        digest = None
        if above is not None:
            folder = self.path / part_name(ABOVE)
            above.write(folder, replace=True)
            digest = manifest_digest(folder, self.holds)
        rows = (self.read_part(shard, "index") for shard in range(self.shards))
        return index_files(self.holds, level, rows, digest)
