"""Microdata: persons, households and blocks of one population, kept together and linked."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.parquet import opened, read_frame, read_table
from bayesrisk._base.disk.text import gather, json_document, named
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, OutputError, quote
from bayesrisk.tables.change import ABSENT, PopulationChange
from bayesrisk.tables.exchange import (
    MADE_UP,
    Partitions,
    is_marked,
    made_up_mark,
    refuse_others,
    write_parquet,
)
from bayesrisk.tables.linked import MEMBERS, HouseholdLink
from bayesrisk.tables.records import SCHEMA_NAME, Records, recoded
from bayesrisk.tables.schema import Schema

#: The list of places of those who publish the places where somebody lives, and say so.
OCCUPIED = "occupied"

_HOUSEHOLD = ("household-dhc", "household-occupancy", "pl94-units")
UNITS = ("persons", "households")
MANIFEST = "_microdata.json"
_PARTS = tuple(f"{name}.parquet" for name in (*UNITS, "blocks"))
_FORMAT = "bayesrisk microdata 1"
_PLACE = b"bayesrisk.geography"
_WHOLE = b"bayesrisk.definition"  # of a schema that is not built in


@displayed
@dataclass(frozen=True, eq=False)
class Microdata:
    """Persons and households of one population, and the positions of its blocks.

    Attributes
    ----------
    persons, households : Records or None
        Records of either unit; if both are given, a column ``household`` (int64) joins them.
    blocks : pandas.DataFrame or None
        The public list of places: a column ``block`` (text), and ``x`` and ``y`` (planar
        coordinates of the centre) or neither. There is one row for each place of the finest level,
        also those without a record.
    made_up : bool
        Whether the people do not exist, as in synthetic populations and the samples. The mark is
        kept in folders, and in tables and releases of these records; reports begin with it.
    """

    persons: Records | None = None
    households: Records | None = None
    blocks: pd.DataFrame | None = None
    made_up: bool = False

    def __post_init__(self) -> None:
        for name, unit in (("persons", self.persons), ("households", self.households)):
            if unit is not None and not isinstance(unit, Records):
                raise ArgumentTypeError(name, "must be Records", shown=type(unit).__name__)
        check.flag(self.made_up, "made_up")
        if self.persons is None and self.households is None:
            raise ArgumentError("persons or households must be given, got neither")
        if self.blocks is not None:
            object.__setattr__(self, "blocks", _checked_blocks(self.blocks, "blocks"))

    def for_schema(self, target: Schema) -> Records:
        """Return the persons or the households that a workload of a schema counts.

        They are recoded if their schema is another one.
        """
        check.instance(target, Schema, "target")
        for records in (self.persons, self.households):
            if records is not None and records.schema == target:
                return records
        unit = "households" if target.name in _HOUSEHOLD else "persons"
        records = getattr(self, unit)
        if records is None:
            raise ArgumentError(unit, f"must be given for schema {target.name!r}", shown="none")
        return recoded(records, target)

    def geoids(self) -> TextArray | None:
        """Return all places of the finest level, sorted; None if blocks are not given."""
        return None if self.blocks is None else np.sort(self.blocks["block"].to_numpy(dtype="U"))

    def with_places(self, places: ArrayLike) -> "Microdata":
        """Return the same records with ``blocks`` from a list of places.

        The list has codes of one level that hold every record, or the names of places. Coordinates
        are kept if all are known. ``"occupied"`` lists the places with a record, which depends on
        where people live.

        Examples
        --------
        >>> import pandas as pd
        >>> unit = pd.DataFrame({"block": ["500010101001000"], "h1": [1]})
        >>> units = as_microdata(Records.from_frame(unit, schema=Schema.named("pl94-units")))
        >>> units.with_places(["500010101001000", "500010101001001"]).geoids().tolist()
        ['500010101001000', '500010101001001']
        """
        codes = lived = self._lived()
        if not (isinstance(places, str) and places == OCCUPIED):
            if not (isinstance(places, str) or hasattr(places, "__array__")):
                places = check.items(places, "places")  # a set, say
            texts = codes = np.unique(check.text_array(places, "places"))
            unit = self.households if self.persons is None else self.persons
            geography = unit.schema.geography  # type: ignore[union-attr]
            if by_name := geography.codes:
                codes = np.unique([by_name.get(name, name) for name in codes.tolist()])
            widths = np.unique(np.strings.str_len(codes)).tolist()
            digits = np.strings.isdigit(codes).all() or widths == [0]
            if len(widths) != 1 or widths[0] not in geography.widths or not digits:
                raise ArgumentError(
                    "places",
                    f"must be codes of one level of {geography.name} "
                    f"({', '.join(map(str, geography.widths))} digits) or {OCCUPIED!r}",
                    shown=quote(texts.tolist()) if widths else "none",
                    advice=f", or names: {quote([*by_name])}" * bool(by_name)
                    or "; a column of places is place=",
                )
            _check_inside(lived, codes)
        frame = pd.DataFrame({"block": codes.tolist()})
        if self.blocks is not None:
            blocks = self.blocks[self.blocks["block"].isin(frame["block"])]
            frame = blocks if len(blocks) == len(frame) else frame
        return replace(self, blocks=frame)

    def check_places(self) -> None:
        """Refuse records outside the list of places, which must be given."""
        codes = self.geoids()
        if codes is None:
            raise ArgumentError("blocks", "must be given", shown="none")
        _check_inside(self._lived(), codes)

    def _lived(self) -> TextArray:
        units = [unit for unit in (self.persons, self.households) if unit is not None]
        return np.unique(np.concatenate([unit.places()[0] for unit in units]))

    def write(self, folder: str | Path, *, replace: bool = True) -> None:
        """Write ``persons.parquet``, ``households.parquet``, ``blocks.parquet``, and a manifest.

        The folder must be new or empty, or have microdata that may be replaced; any other is
        refused. If the writing stops at any moment, it is whole or unchanged.
        """

        def check(target: Path) -> None:
            names = {p.name for p in target.iterdir()} if target.exists() else set()
            refuse_others(target, names - {*_PARTS, MANIFEST}, "microdata")
            if not replace and names & {*_PARTS, MANIFEST}:
                raise OutputError(f"{target}: holds microdata already; nothing was changed")

        with disk.whole_folder(folder, check) as target:
            listed = {}
            for name, table in self._tables().items():
                file = target / f"{name}.parquet"
                listed[file.name] = {"rows": table.num_rows, "sha256": write_parquet(table, file)}
            mark = made_up_mark(self.made_up)
            manifest = disk.sealed({"format": _FORMAT, "files": listed, **mark})
            disk.write_bytes(target / MANIFEST, manifest)

    def _tables(self) -> dict[str, pa.Table]:
        tables = {}
        for name in UNITS:
            records = getattr(self, name)
            if records is not None:
                tables[name] = records.table.replace_schema_metadata(_metadata(records.schema))
        if self.blocks is not None:
            frame = pa.Table.from_pandas(self.blocks, preserve_index=False)
            tables["blocks"] = frame.replace_schema_metadata(None)
        return tables

    @classmethod
    def read(cls, folder: str | Path) -> "Microdata":
        """Return the microdata of a folder that :meth:`write` made; parts by place are joined.

        A folder without ``_microdata.json``, assembled by hand, is read without further checks.
        Otherwise every file must be the one that was written.
        """
        source = check.path(folder, "folder")
        if Partitions.there(source):
            index = Partitions.read(source, "microdata")
            parts = (cls.read(index.checked(code)) for code in index.codes)
            return _joined(gather(parts, _size, str(source)))
        listed = _manifest(source)
        units = {name: _read_unit(source / f"{name}.parquet", listed) for name in UNITS}
        if all(records is None for records in units.values()):
            raise DataError(f"{source}: must hold persons.parquet or households.parquet")
        file = source / "blocks.parquet"
        blocks = _checked_blocks(read_frame(file), str(file)) if _exists(file, listed) else None
        return cls(units["persons"], units["households"], blocks, is_marked(source))


def _size(data: Microdata) -> int:
    units = (data.persons, data.households)
    return sum(int(records.table.nbytes) for records in units if records is not None)


def _joined(parts: list[Microdata]) -> Microdata:
    """Return the microdata of different places as one."""
    units = {}
    for name in UNITS:
        pieces = [records for part in parts if (records := getattr(part, name)) is not None]
        tables = [records.table for records in pieces]
        units[name] = Records(pieces[0].schema, pa.concat_tables(tables)) if pieces else None
    blocks = [part.blocks for part in parts if part.blocks is not None]
    places = pd.concat(blocks, ignore_index=True) if blocks else None
    return Microdata(**units, blocks=places, made_up=any(part.made_up for part in parts))


def as_microdata(data: Records | Microdata) -> Microdata:
    """Return records of persons or of households as microdata; microdata are unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> person = {"block": ["500010101001000"], "sex": [1], "age": [34], "race": [1], "hisp": [0]}
    >>> records = Records.from_frame(pd.DataFrame(person), schema=Schema.named("sf1-person"))
    >>> len(as_microdata(records).persons)
    1
    """
    return read_microdata(data, "data")


def read_microdata(data: object, name: str) -> Microdata:
    """Return an argument as microdata; ``name`` is what messages call it."""
    if isinstance(data, Microdata):
        return data
    if not isinstance(data, Records):
        raise ArgumentTypeError(name, "must be Records or Microdata", shown=type(data).__name__)
    if data.schema.name in _HOUSEHOLD:
        return Microdata(households=data)
    return Microdata(persons=data)


def _check_inside(lived: TextArray, codes: TextArray) -> None:
    """Refuse places with a record that are in none of those listed, all of one width."""
    width = len(str(codes[0])) if len(codes) else 1
    outside = ~np.isin(lived.astype(f"<U{max(width, 1)}"), codes)
    if width and outside.any():
        raise ArgumentError(
            "places",
            "must hold every place with a record",
            shown=f"none for {quote(str(lived[int(outside.argmax())]))}",
        )


def _checked_blocks(value: object, source: str) -> pd.DataFrame:
    blocks = check.frame(value, source)
    named = {"block", "x", "y"} & set(blocks.columns)
    if named not in ({"block"}, {"block", "x", "y"}):
        raise DataError(f"{source}: must be a table with columns block, x, y, or block alone")
    coordinates = [name for name in ("x", "y") if name in named]
    check.refuse_row(blocks["block"].isna(), blocks["block"], source, "block", "be a place")
    frame: pd.DataFrame = blocks.reset_index(drop=True).assign(
        block=blocks["block"].to_numpy(dtype="U")
    )
    codes = frame["block"]
    check.refuse_row(codes.duplicated(), codes, source, "block", "be each place once", " again")
    for name in coordinates:
        try:
            bad = ~np.isfinite(frame[name].to_numpy(dtype=float))
        except (TypeError, ValueError) as error:
            raise DataError(f"{source}: column {name!r}: must be numbers: {error}") from error
        check.refuse_row(bad, frame[name], source, name, "be a finite number")
    return frame


def _manifest(folder: Path) -> dict[str, str] | None:
    """Return the digests of the files of a folder; None for one that was assembled by hand."""
    file = folder / MANIFEST
    if not file.exists():
        return None
    manifest = disk.read_document(file)
    keys = {"format", "files"}
    plain = set(manifest) - {MADE_UP} == keys and manifest.get(MADE_UP, True) is True
    if not plain or manifest["format"] != _FORMAT:
        raise DataError(f"{file}: must have format {_FORMAT!r} and files")
    try:
        listed = {name: str(entry["sha256"]) for name, entry in manifest["files"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: is not the manifest of microdata: {error}") from error
    files = {name for name in _PARTS if (folder / name).exists()}
    if files != set(listed):
        other = sorted(files ^ set(listed))[0]
        raise DataError(f"{folder}: must hold the files of its manifest, differs in {other!r}")
    return listed


def _exists(file: Path, listed: dict[str, str] | None) -> bool:
    """Return whether a file exists; refuse one that the manifest does not list as it is."""
    if not file.exists():
        return False
    if listed is not None:
        disk.check_digest(file, listed[file.name], MANIFEST)
    return True


def _metadata(schema: Schema) -> dict[bytes, str]:
    """Return the names of a schema for a file's metadata, and all of one that is not built in."""
    metadata = {SCHEMA_NAME: schema.name, _PLACE: schema.geography.name}
    try:
        known_schema = schema == Schema.named(schema.name, geography=schema.geography.name)
    except ArgumentError:
        known_schema = False
    return metadata if known_schema else metadata | {_WHOLE: json.dumps(schema.to_dict())}


def _read_unit(file: Path, listed: dict[str, str] | None) -> Records | None:
    if not _exists(file, listed):
        return None
    with opened(file) as (_, columns):
        metadata = columns.metadata or {}
    if SCHEMA_NAME not in metadata or _PLACE not in metadata:
        raise DataError(
            f"{file}: must name its schema ({SCHEMA_NAME.decode()}) in the file's metadata"
        )
    try:
        if _WHOLE in metadata:
            target = Schema.from_dict(json_document(metadata[_WHOLE], f"{file}: schema"))
        else:
            with named(str(file)):
                name, place = metadata[SCHEMA_NAME].decode(), metadata[_PLACE].decode()
            target = Schema.named(name, geography=place)
    except ArgumentError as error:
        raise DataError(f"{file}: schema: {error}") from error
    return Records(target, read_table(file), source=str(file))


def link_households(
    persons: Records, households: Records, *, link: HouseholdLink, key: str = "household"
) -> Records:
    """Return a linked record for each household, in the order of the households.

    A household is refused if its members are not in the link, or do not have its derived
    attributes. A person is refused if no household matches, or if it is in another place.

    Parameters
    ----------
    persons, households : Records
        Records of the two schemas of the link.
    link : HouseholdLink
        Which members a household can have.
    key : str, default "household"
        Column of both that names the household; each household stands once.

    Examples
    --------
    A woman lives alone, and a woman with a man:

    >>> from bayesrisk.tables import Attribute
    >>> kinds = Schema("persons", (Attribute("sex", 2),))
    >>> homes = Schema("homes", (Attribute("rented", 2),))
    >>> link = HouseholdLink.enumerate(kinds, homes, most=2, derived={})
    >>> persons = Records.from_frame(
    ...     pd.DataFrame({"household": [1, 2, 2], "sex": [0, 0, 1]}), schema=kinds
    ... )
    >>> households = Records.from_frame(
    ...     pd.DataFrame({"household": [1, 2], "rented": [1, 0]}), schema=homes
    ... )
    >>> linked = link_households(persons, households, link=link)
    >>> link.members[linked.codes("members")].tolist()
    [[1, 0], [1, 1]]
    """
    check.instance(link, HouseholdLink, "link")
    if persons.schema != link.persons or households.schema != link.households:
        raise ArgumentError("persons and households must be of the schemas of the link")
    for unit in (persons, households):
        check.choice(key, "key", unit.columns)
    listed, keys = (unit.table.column(key).to_numpy() for unit in (households, persons))
    names, row = np.unique(listed, return_index=True)
    if names.size < len(households):
        raise DataError(f"households: column {key!r} must name each once")
    home = row[np.minimum(np.searchsorted(names, keys), max(names.size - 1, 0))]
    elsewhere = (keys != listed[home]) | (persons.geoids != households.geoids[home])
    check.refuse_row(elsewhere, keys, "persons", key, "be a household of the place")
    # Members of each kind of every household: the bytes of a row name its composition.
    flat = home * link.persons.size + persons.cells()
    counts = np.bincount(flat, minlength=len(households) * link.persons.size)
    compositions = {composition.tobytes(): i for i, composition in enumerate(link.members)}
    members = counts.reshape(len(households), -1).astype(np.int64)
    code = np.array([compositions.get(one.tobytes(), -1) for one in members], np.int64)
    check.refuse_row(code < 0, listed, "households", key, "be of members that are linked")
    for name, codes in link.derived.items():
        stated = households.codes(name)
        wrong = stated != codes[code]
        check.refuse_row(wrong, stated, "households", name, "follow from the members")
    columns = [name for name in households.columns if name not in link.derived]
    table = households.table.select(columns).append_column(MEMBERS, pa.array(code))
    return Records(link.schema, table, source="linked records")


def without_member(records: Records, row: int, person: int, *, link: HouseholdLink) -> Records:
    """Return linked records without a person of a kind who lives in the household of a row.

    A household without remaining members is removed.
    """
    code = records.codes(MEMBERS).copy()
    rest = link.members[code[row]] - (np.arange(link.persons.size) == person)
    if not rest.any():
        return records.take(np.arange(len(records)) != row)
    code[row] = int((link.members == rest).all(axis=1).argmax())
    if (link.members[code[row]] != rest).any():
        raise DataError(f"link must have the household of row {row + 1} without a member, too")
    return records.replace(**{MEMBERS: code})


def link_years(
    first: Records, later: Records, *, change: PopulationChange, person: str = "person"
) -> Records:
    """Return the trajectories of the records of two years, linked by a column of both.

    A person in another place in the later year, or with values that the law excludes, counts as
    one who left and one who arrived. If the law excludes that too, the records are refused.
    The trajectories keep the column: one record for each person of a place.

    Parameters
    ----------
    first, later : Records
        Records of the two years, of the schema of the law.
    change : PopulationChange
        Law of change between the years.
    person : str, default "person"
        Column of both with unique whole numbers.

    Examples
    --------
    One person stays and moves to the next age group, one leaves, and one arrives:

    >>> from bayesrisk.tables import Attribute
    >>> about = Schema("town", (Attribute("old", 2),))
    >>> law = PopulationChange(about, 10, age="old", starts=[0, 20], staying=0.5, arrivals=0.1)
    >>> first, later = (Records.from_frame(pd.DataFrame(rows), schema=about) for rows in (
    ...     {"old": [0, 1], "person": [1, 2]}, {"old": [1, 1], "person": [1, 3]}))
    >>> linked = link_years(first, later, change=law)
    >>> [law.schema_of_both.attribute("old").labels[code] for code in linked.codes("old")]
    ['0, then 1', '1, then gone', 'not yet, then 1']
    """
    place = check.instance(change, PopulationChange, "change").schema.geography.finest
    frames = []
    for name, records in (("first", first), ("later", later)):
        if check.instance(records, Records, name).schema != change.schema:
            raise ArgumentError(name, f"must be of schema {change.schema.name!r}")
        if person not in records.columns:
            raise ArgumentError(name, f"must have a column {person!r} that links the years")
        ids = pd.Series(records.table.column(person).to_numpy())
        if ids.duplicated().any():
            raise DataError(
                f"{name}: column {person!r} has {ids[ids.duplicated()].iloc[0]} more than once"
            )
        columns = {person: ids, place: records.geoids, "cell": records.cells()}
        frames.append(pd.DataFrame(columns))
    pairs = frames[0].merge(frames[1], on=[person, place], how="outer", suffixes=(" 1", " 2"))
    cells = pairs[["cell 1", "cell 2"]].fillna(ABSENT).to_numpy(np.int64)
    codes, possible = change.codes_of_pairs(cells)
    # Who is there in both years as the law excludes it is counted as two.
    excluded = np.flatnonzero(~possible & (cells >= 0).all(axis=1))
    if excluded.size:
        rows = np.concatenate([np.delete(np.arange(len(cells)), excluded), excluded, excluded])
        cells, pairs = cells[rows].copy(), pairs.iloc[rows]
        cells[len(cells) - 2 * excluded.size : len(cells) - excluded.size, 1] = ABSENT
        cells[len(cells) - excluded.size :, 0] = ABSENT
        codes, possible = change.codes_of_pairs(cells)
    if not possible.all():
        row = int(np.flatnonzero(~possible)[0])
        state, key = "leaves" if cells[row, 1] < 0 else "arrives", pairs[person].iloc[row]
        raise DataError(f"change excludes that somebody {state} as {person} {key} does")
    columns = {place: pairs[place].to_numpy(), **codes, person: pairs[person].to_numpy()}
    schema = change.schema_of_both
    return Records.from_frame(pd.DataFrame(columns), schema=schema, source="trajectories")
