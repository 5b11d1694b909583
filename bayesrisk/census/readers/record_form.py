"""The common form of person records: block, sex, age, race and Hispanic origin.

Two kinds of file hold it. One is Parquet or CSV with the race as a bit mask. The other is CSV of
the Census Bureau's published reconstruction experiment (``recon_replication``), with a flag for
each race and, for confidential records, a personal identification key. A dialect gives the meaning
of the codes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bayesrisk._base import validation as check
from bayesrisk._base.disk.parquet import CODING
from bayesrisk._base.disk.record_file import RecordFile
from bayesrisk._base.validation import IntArray
from bayesrisk.census.readers import text as forms
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables import Records, Schema
from bayesrisk.tables.records import CHUNK
from bayesrisk.tables.schema import AGE_BIN_STARTS, age_group

# Codings of records of persons: what a file writes for male and female, and for yes and no.
#
# The same numbers mean different things in different files, so that a coding is said, never
# guessed: by whoever reads the file, or by the file itself, where this package wrote it.

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
#: Columns of persons, by whatever name: files that have them all are read as these.
_USUAL = ("block", "sex", "age", "race", "hisp")
#: Other names of the columns of records.
ALIASES = MappingProxyType({"geoid_block": "block", "hispanic": "hisp"})
#: Key of a Parquet file's metadata under which this package says the coding.
METADATA = CODING
Codes = Mapping[int, int] | Mapping[str, int]


class Dialect(NamedTuple):
    """A coding: the ``sf1-person`` code for each value in a file.

    They are codes of sex (0 male, 1 female), of Hispanic origin and of a race's flag (0 no, 1 yes)
    by the value in the file: whole numbers, or words in any case. ``meaning`` describes it in
    words.
    """

    name: str
    meaning: str
    sex: Codes
    hisp: Codes
    flag: Codes

    def codes(self, kind: str) -> Codes:
        """Return the code table for ``sex``, ``hisp``, or a race's flag."""
        return {"sex": self.sex, "hisp": self.hisp}.get(kind, self.flag)

    def decode(self, piece: forms.Piece, column: str, kind: str) -> IntArray:
        """Return a file column decoded to the schema's codes."""
        codes = self.codes(kind)
        rule = f"one of {_listed(codes)} (dialect {self.name!r})"
        if all(isinstance(value, str) for value in codes):
            return _decode_words(piece, column, codes, rule)
        values = np.array(list(codes), dtype=np.int64)
        numbers = piece.whole(column, int(values.min()), int(values.max()), rule=rule)
        meaning = np.full(int(values.max()) + 1, -1, dtype=np.int64)
        meaning[values] = list(codes.values())
        decoded: IntArray = meaning[numbers]
        piece.check(column, decoded >= 0, rule)
        return decoded

    def encode(self, codes: IntArray, kind: str) -> pa.Array:
        """Return the schema's codes encoded in this dialect."""
        values: dict[int, int | str] = {}
        for value, code in self.codes(kind).items():
            values.setdefault(code, value)
        return pa.array([values[0], values[1]]).take(pa.array(codes))


def _listed(codes: Codes) -> str:
    numbers = [value for value in codes if isinstance(value, int)]
    if len(numbers) > 2:
        return f"{min(numbers)} to {max(numbers)}"
    return ", ".join(str(value) for value in codes)


def _decode_words(piece: forms.Piece, column: str, codes: Codes, rule: str) -> IntArray:
    values = piece.table.column(column)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        if len(values):
            raise piece.fail(column, 0, rule)
        return np.zeros(0, dtype=np.int64)
    words = pa.array([str(word).lower() for word in codes], pa.string())
    lower = pc.utf8_lower(values.cast(pa.string()))
    place = pc.fill_null(pc.index_in(lower, words), -1).to_numpy().astype(np.int64)
    piece.check(column, place >= 0, rule)
    decoded: IntArray = np.array(list(codes.values()), dtype=np.int64)[place]
    return decoded


_ZERO_ONE, _WORDS = {0: 0, 1: 1}, {"N": 0, "Y": 1}
_ALL = (
    Dialect("schema", "sex 0 male, 1 female; hisp and races 0 no, 1 yes", *[_ZERO_ONE] * 3),
    Dialect(
        "archive", "sex 1 male, 0 female; hisp and races 0 no, 1 yes", {0: 1, 1: 0},
        _ZERO_ONE, _ZERO_ONE,
    ),
    Dialect(
        "pums", "sex 1 male, 2 female; hisp 1 no, 2 to 24 yes; races 0 no, 1 yes", {1: 0, 2: 1},
        {1: 0} | dict.fromkeys(range(2, 25), 1), _ZERO_ONE,
    ),
    Dialect(
        "labels", "sex male, female; hisp and races N, Y", {"male": 0, "female": 1}, _WORDS, _WORDS
    ),
)  # fmt: skip
#: The codings by name: ours, that of the archive of the published reconstruction experiment, that
#: of public use samples, and words.
DIALECTS = MappingProxyType({dialect.name: dialect for dialect in _ALL})


def named_dialect(name: str | None, file: str, file_dialect: str | None = None) -> Dialect:
    """Return the coding named by the caller or by the file; raise if they differ or both lack."""
    if name is not None:
        check.choice(name, "dialect", tuple(DIALECTS))
        if file_dialect is not None and file_dialect != name:
            raise ArgumentError(
                "dialect", f"must be {file_dialect!r}, which {file} says of itself", got=name
            )
        return DIALECTS[name]
    if file_dialect is None:
        choices = "; ".join(f"{d.name!r}: {d.meaning.split(';')[0]}" for d in _ALL)
        raise ArgumentError(
            "dialect", f"must be said, {file} does not say what its codes mean: {choices}"
        )
    if file_dialect not in DIALECTS:
        raise DataError(f"{file}: must be of a known dialect, says {file_dialect[:50]!r} of itself")
    return DIALECTS[file_dialect]


def said_by_file(file: RecordFile) -> str | None:
    """Return the coding that a Parquet file of this package states, or None."""
    if file.ending != ".parquet":
        return None
    path = file.path
    if path.name == "persons.parquet" and (path.parent / "_microdata.json").exists():
        return "schema"
    stated = file.metadata.get(METADATA)
    return None if stated is None else str(stated.decode("latin-1"))


class PersonCodings:
    """Codings of person files, for commands that read records."""

    def describes(self, file: RecordFile) -> bool:
        """Return whether a file states its coding or has all person columns under some name."""
        return said_by_file(file) is not None or not missing_columns(file.columns, _USUAL)

    def coding(self, file: RecordFile, name: str | None) -> str | None:
        """Return the name of a file's coding, as given by the caller or the file, or None.

        None if neither says it and the columns are those of the schema, which has its own codes.
        """
        stated = said_by_file(file)
        if name is not None or stated is not None:
            coding = named_dialect(name, str(file), stated).name
            return None if name is None and coding == "schema" else coding
        if not set(_USUAL) <= set(file.columns) and not missing_columns(file.columns, _USUAL):
            named_dialect(None, str(file))
        return None

    def pieces(self, file: RecordFile, coding: str) -> Iterator[Records]:
        """Yield the records of a file."""
        return iter_record_form(file.path, dialect=coding, chunk=CHUNK)


def is_person_column(name: str) -> bool:
    """Return whether a name is that of a person column, in any spelling."""
    return _usual(name) in ("block", "sex", "age", "race", *RACES, "hisp", "person")


def missing_columns(names: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return the person columns that are absent under any name, race flags considered."""
    present = {_usual(name) for name in names}
    if present >= set(RACES):
        present.add("race")
    return [name for name in columns if name not in present]


def _usual(name: str) -> str:
    lower = str(name).lower()
    return {**ALIASES, "pik": "person"}.get(lower, lower)


def decoded_persons(
    frame: pd.DataFrame, dialect: Dialect, *, columns: Sequence[str], source: str
) -> pd.DataFrame:
    """Return persons in the codes of the schema, with the usual names of columns.

    Flags of six races become a column ``race``, and ``pik`` becomes ``person``. Missing columns are
    reported elsewhere.
    """
    usual = {name: _usual(name) for name in frame.columns}
    selected = [name for name in usual if usual[name] in (*columns, *RACES)]
    double = [name for name in selected if sum(usual[n] == usual[name] for n in selected) > 1]
    if double:
        raise DataError(
            f"{source}: column {double[1]!r}: must be there once, got it beside {quote(double[0])}"
        )
    frame = frame[selected].rename(columns=usual)
    flags = [race for race in RACES if race in frame]
    coded = [name for name in ("sex", "hisp") if name in frame and name in columns]
    wanted = coded + (flags if "race" in columns else [])
    for name in wanted:
        if frame[name].isna().any():
            row = int(np.argmax(frame[name].isna().to_numpy())) + 1
            raise DataError(f"{source}: row {row}, column {name!r}: is missing")
    try:
        table = pa.table({name: pa.array(frame[name]) for name in wanted})
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{source}: cannot be read: {error}") from error
    piece = forms.Piece(source, 0, table)
    decoded = {name: dialect.decode(piece, name, name) for name in coded}
    if "race" in columns and flags:
        if "race" in frame or len(flags) < len(RACES):
            raise DataError(f"{source}: must have a column 'race' or the flags of six races")
        decoded["race"] = race_mask(piece, dialect, {name: name for name in RACES})
    return frame.drop(columns=flags).assign(**decoded)


def race_mask(piece: forms.Piece, dialect: Dialect, names: Mapping[str, str]) -> IntArray:
    """Return the race bit mask from six flags, at least one of which must be set."""
    mask = np.zeros(len(piece), dtype=np.int64)
    for place, race in enumerate(RACES):
        mask += dialect.decode(piece, names[race], race) << place
    piece.check(names["white"], mask > 0, "yes where no other race is")
    return mask


_ORDER = ("block", "geoid_tract", "sex", "age", "agebin", "race", *RACES, "hisp", "pik")
_MOST_AGE = 110


def iter_record_form(
    path: str | Path,
    *,
    dialect: str | None = None,
    state: str | None = None,
    chunk: int = forms.CHUNK,
) -> Iterator[Records]:
    """Yield person records in the common form, a piece at a time.

    The schema is ``sf1-person``; ``agebin`` and ``pik`` are kept.

    Parameters
    ----------
    path : path-like
        A Parquet file, or a CSV file (also gzip or ZIP), with columns in any order. ``block`` (or
        ``geoid_block``) has 15 digits, or is a whole number without its leading zero. The others
        are ``sex``, ``age`` (0 to 110), ``hisp`` (or ``hispanic``), and ``race`` (bit mask 1 to 63)
        or the six flags ``white``, ``black``, ``aian``, ``asian``, ``nhopi``, ``sor``. Optional
        columns are ``geoid_tract``, that of the block, ``agebin`` (0 to 37, the age groups of the
        block tables) and ``pik``.
    dialect : str
        Meaning of the codes of sex, of Hispanic origin and of the flags. In ``schema`` sex is 0
        male, 1 female, the others 0 no, 1 yes. ``archive`` (files of the published reconstruction
        experiment) has 1 male, 0 female, the others as before. ``pums`` has sex 1 male, 2 female,
        hisp 1 no, 2 to 24 yes, races 0 no, 1 yes. ``labels`` has ``male`` and ``female``, ``N`` and
        ``Y``, in any case. It is never guessed; only a Parquet file of this package states it.
    state : str, optional
        FIPS code or postal abbreviation of the state of every block.
    chunk : int, optional
        Rows in memory at a time.
    """
    source = forms.one_source(path, ".csv", ".parquet")
    rows = check.integer(chunk, "chunk", lower=1)
    place = forms.state_code(state)
    parquet = source.base.endswith(".parquet")
    if parquet and source.member is not None:
        raise DataError(f"{source.name}: must not be in an archive")
    file = RecordFile(source.path)
    coding = named_dialect(dialect, source.name, said_by_file(file))
    pieces = _parquet_pieces(source, file, rows) if parquet else _text_pieces(source, rows)
    for piece, names in pieces:
        yield _records(piece, names, coding, place)


def read_record_form(
    path: str | Path, *, dialect: str | None = None, state: str | None = None
) -> Records:
    r"""Return all person records of a file in the common form, of schema ``sf1-person``.

    Parameters
    ----------
    path, dialect, state
        As for :func:`iter_record_form`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from bayesrisk.census import read_record_form
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "records.csv")
    ...     _ = file.write_text("block,sex,age,race,hisp\n10730051031000,1,30,3,0\n")
    ...     print(read_record_form(file, dialect="schema").table.to_pylist())
    [{'block': '010730051031000', 'sex': 1, 'age': 30, 'race': 3, 'hisp': 0}]
    """
    return forms.joined(iter_record_form(path, dialect=dialect, state=state), path)


def _names(header: Iterable[str], source: forms.Source) -> dict[str, str]:
    """Return the file's name for each standard column; raise for unknown or missing columns."""
    names: dict[str, str] = {}
    for name in header:
        usual = ALIASES.get(name.lower(), name.lower())
        if usual not in _ORDER or usual in names:
            raise DataError(
                f"{source.name}: column {quote(name)}: must be one of {', '.join(_ORDER)}, "
                "each once"
            )
        names[usual] = name
    flags = [race for race in RACES if race in names]
    if ("race" in names) == bool(flags):
        raise DataError(f"{source.name}: must have a column 'race' or the flags of six races")
    needed = ("block", "sex", "age", "hisp", *(RACES if flags else ("race",)))
    for name in needed:
        if name not in names:
            raise DataError(f"{source.name}: must have a column {name!r}; has {', '.join(header)}")
    return names


def _text_pieces(source: forms.Source, chunk: int) -> Iterator[tuple[forms.Piece, dict[str, str]]]:
    header = forms.header_names(source)
    names = _names(header, source)
    for piece in forms.csv_pieces(source, header, wanted=header, chunk=chunk):
        yield piece, names


def _parquet_pieces(
    source: forms.Source, file: RecordFile, chunk: int
) -> Iterator[tuple[forms.Piece, dict[str, str]]]:
    names = _names(file.columns, source)
    kinds = dict.fromkeys(names.values(), ("number", "text"))
    start = 0
    for table in file.tables(chunk, kinds):
        yield forms.Piece(source.name, start, table), names
        start += table.num_rows


def _blocks(piece: forms.Piece, column: str, state: str | None) -> pa.Array:
    values = piece.table.column(column)
    if pa.types.is_integer(values.type):
        piece.whole(column, 10**12, 10**15 - 1)
    elif not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise DataError(f"{piece.name}: column {column!r}: must be digits, got type {values.type}")
    values = values.cast(pa.string())
    # Fourteen digits are a number that lost its leading zero; nothing else is filled up.
    lost = pc.equal(pc.binary_length(values), 14)
    text = pc.if_else(lost, pc.utf8_lpad(values, 15, "0"), values)
    blocks = piece.replace(column, text).matrix(column, 15)
    forms.check_state(piece, column, blocks, state)
    return forms.texts(blocks)


def _check_tract(piece: forms.Piece, column: str, blocks: pa.Array) -> None:
    values = piece.table.column(column).cast(pa.string())
    lost = pc.equal(pc.binary_length(values), 10)
    tracts = pc.if_else(lost, pc.utf8_lpad(values, 11, "0"), values)
    equal = pc.fill_null(pc.equal(tracts, pc.utf8_slice_codeunits(blocks, 0, 11)), False)
    piece.check(column, equal.to_numpy(), "the first 11 digits of the block")


def _records(
    piece: forms.Piece, names: Mapping[str, str], dialect: Dialect, state: str | None
) -> Records:
    flags = "race" not in names
    columns = {
        "block": _blocks(piece, names["block"], state),
        "sex": dialect.decode(piece, names["sex"], "sex"),
        "age": piece.whole(names["age"], 0, _MOST_AGE),
        "race": race_mask(piece, dialect, names) if flags else piece.whole(names["race"], 1, 63),
        "hisp": dialect.decode(piece, names["hisp"], "hisp"),
    }
    if "geoid_tract" in names:
        _check_tract(piece, names["geoid_tract"], columns["block"])
    if "agebin" in names:
        group = piece.whole(names["agebin"], 0, len(AGE_BIN_STARTS) - 1)
        piece.check(names["agebin"], group == age_group(columns["age"]), "the group of the age")
        columns["agebin"] = group
    arrays = {k: v if k == "block" else pa.array(v.astype(np.int16)) for k, v in columns.items()}
    if "pik" in names:
        arrays["pik"] = piece.table.column(names["pik"]).cast(pa.string())
    return Records(Schema.named("sf1-person"), pa.table(arrays))


def write_record_form(
    records: Records | Iterable[Records], path: str | Path, *, dialect: str
) -> None:
    """Write person records in the common form.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``sf1-person``; a column ``pik`` is kept, others are left out.
    path : path-like
        File to create; it must not exist. ``.parquet`` gets the race as a bit mask, the block as a
        whole number and ``agebin``, and states its dialect. ``.csv`` gets the form of the published
        reconstruction experiment, with ``geoid_block`` of 15 digits and a flag for each race.
    dialect : str
        Codes of sex, Hispanic origin and flags, as for :func:`iter_record_form`.

    Examples
    --------
    >>> write_record_form([], "records.txt", dialect="schema")
    Traceback (most recent call last):
    bayesrisk.exceptions.ArgumentError: path must end in .csv or .parquet, got 'records.txt'
    """
    target = check.path(path, "path")
    coding = named_dialect(dialect, "the file to be made")
    pieces = forms.schema_pieces(records, "sf1-person")
    if target.suffix.lower() == ".csv":
        _write_text(pieces, target, coding)
    elif target.suffix.lower() == ".parquet":
        _write_parquet(pieces, target, coding)
    else:
        raise ArgumentError(f"path must end in .csv or .parquet, got {quote(str(path))}")


def _first(pieces: Iterator[Records]) -> tuple[Iterator[Records], list[str]]:
    """Return all pieces, and the name of the key column if the first piece has one."""
    first = next(pieces, None)
    if first is None:
        raise ArgumentError("records must have at least one piece, got none")
    return chain([first], pieces), ["pik"] if "pik" in first.table.column_names else []


def _coded(piece: Records, dialect: Dialect, extra: list[str]) -> dict[str, pa.Array]:
    """Return sex, Hispanic origin and the key, encoded for writing."""
    coded = {name: dialect.encode(piece.codes(name), name) for name in ("sex", "hisp")}
    return coded | {name: piece.table.column(name) for name in extra}


def _write_text(records: Iterator[Records], target: Path, dialect: Dialect) -> None:
    pieces, extra = _first(records)

    def rows(piece: Records) -> pa.Table:
        race = piece.codes("race")
        flags = {n: dialect.encode(race >> place & 1, n) for place, n in enumerate(RACES)}
        block, age = piece.table.column("block"), piece.codes("age")
        coded = _coded(piece, dialect, extra)
        return pa.table({"geoid_block": block, "age": age, **flags, **coded})

    names = ["geoid_block", "sex", "age", *RACES, "hisp", *extra]
    forms.write_table(target, names, map(rows, pieces))


def _write_parquet(records: Iterator[Records], target: Path, dialect: Dialect) -> None:
    pieces, extra = _first(records)
    names = ["block", "sex", "age", "agebin", "race", "hisp", *extra]
    metadata = {METADATA: dialect.name.encode()}
    writer: pq.ParquetWriter | None = None
    with forms.new_file(target) as stream:
        for piece in pieces:
            age = piece.codes("age")
            columns = {
                "block": pc.cast(piece.table.column("block"), pa.int64()),
                "age": pa.array(age.astype(np.int16)),
                "agebin": pa.array(age_group(age).astype(np.int8)),
                "race": pa.array(piece.codes("race").astype(np.int8)),
                **{name: _small(v) for name, v in _coded(piece, dialect, extra).items()},
            }
            table = pa.table(columns).select(names).replace_schema_metadata(metadata)
            writer = writer or pq.ParquetWriter(stream, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _small(values: pa.Array) -> pa.Array:
    """Return integers as one byte each, and texts unchanged."""
    return values.cast(pa.int8()) if pa.types.is_integer(values.type) else values
