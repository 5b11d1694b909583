"""Records in any order into microdata by place, without holding them."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._files.spill import spill, spilled
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.tables import Geography, Microdata, Records, Schema, as_microdata
from bayesrisk.tables.exchange.partitions import (
    index_files,
    index_rows,
    manifest_digest,
    part_name,
)

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
