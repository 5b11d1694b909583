"""Codings of records of persons: what a file writes for male and female, and for yes and no.

The same numbers mean different things in different files, so that a coding is said, never guessed:
by whoever reads the file, or by the file itself, where this package wrote it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayesrisk import _validation as check
from bayesrisk._files.delimited import header_fields, open_text
from bayesrisk._files.parquet import CODING, opened
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.text.tables import Piece

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
#: Other names of the columns of records.
ALIASES = MappingProxyType({"geoid_block": "block", "hispanic": "hisp"})
#: Key of a Parquet file's metadata under which this package says the coding.
METADATA = CODING
Codes = Mapping[int, int] | Mapping[str, int]


class Dialect(NamedTuple):
    """A coding: for each value of a file the code of the schema ``sf1-person``.

    Codes of sex (0 male, 1 female), of Hispanic origin and of the flag of a race (0 no, 1 yes) by
    what the file holds: whole numbers, or words in any case; ``meaning`` says so in words.
    """

    name: str
    meaning: str
    sex: Codes
    hisp: Codes
    flag: Codes

    def codes(self, kind: str) -> Codes:
        """Return the codes of ``sex``, of ``hisp``, or of a race's flag."""
        return {"sex": self.sex, "hisp": self.hisp}.get(kind, self.flag)

    def decode(self, piece: Piece, column: str, kind: str) -> IntArray:
        """Return the codes of the schema for a column of a file."""
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
        """Return codes of the schema in this dialect."""
        values: dict[int, int | str] = {}
        for value, code in self.codes(kind).items():
            values.setdefault(code, value)
        return pa.array([values[0], values[1]]).take(pa.array(codes))


def _listed(codes: Codes) -> str:
    numbers = [value for value in codes if isinstance(value, int)]
    if len(numbers) > 2:
        return f"{min(numbers)} to {max(numbers)}"
    return ", ".join(str(value) for value in codes)


def _decode_words(piece: Piece, column: str, codes: Codes, rule: str) -> IntArray:
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


def named_dialect(name: str | None, file: str, said: str | None = None) -> Dialect:
    """Return a coding by its name, or the one that the file says itself."""
    if name is not None:
        check.choice(name, "dialect", tuple(DIALECTS))
        if said is not None and said != name:
            raise ArgumentError(
                f"dialect must be {said!r}, which {file} says of itself, got {shown(name)}"
            )
        return DIALECTS[name]
    if said is None:
        choices = "; ".join(f"{d.name!r}: {d.meaning}" for d in _ALL)
        raise ArgumentError(
            f"dialect must be said, {file} does not say what its codes mean: one of {choices}"
        )
    if said not in DIALECTS:
        raise DataError(f"{file}: must be of a known dialect, says {said[:50]!r} of itself")
    return DIALECTS[said]


def said_by_file(file: Path) -> str | None:
    """Return the coding that a file says of itself: Parquet of this package, and of its folders."""
    if file.suffix.lower() != ".parquet":
        return None
    if file.name == "persons.parquet" and (file.parent / "_microdata.json").exists():
        return "schema"
    with opened(file) as (_, schema):
        said = (schema.metadata or {}).get(METADATA)
    return None if said is None else str(said.decode("latin-1"))


def coding_of_file(file: Path, name: str | None = None) -> str | None:
    """Return the coding of a file of persons, by the caller's name or the file's own.

    None where nobody says it and the columns are those of ``sf1-person``, whose codes are its own.
    """
    said = said_by_file(file)
    if name is not None or said is not None:
        coding = named_dialect(name, str(file), said).name
        return None if name is None and coding == "schema" else coding
    names = columns_of(file)
    own = ("block", "sex", "age", "race", "hisp")
    if not set(own) <= set(names) and not missing_columns(names, own):
        named_dialect(None, str(file))
    return None


def columns_of(file: Path) -> list[str]:
    """Return the names of the columns of a Parquet or CSV file; of others, none."""
    if file.suffix.lower() == ".parquet":
        with opened(file) as (_, schema):
            return list(schema.names)
    if file.suffix.lower() != ".csv":
        return []
    with open_text(file) as lines:
        return header_fields(lines.readline(), str(file))


def is_person_column(name: str) -> bool:
    """Return whether a column is one of records of persons, by whatever name."""
    return _usual(name) in ("block", "sex", "age", "race", *RACES, "hisp", "person")


def missing_columns(names: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return which columns of records of persons are there by no name, nor as flags of races."""
    there = {_usual(name) for name in names}
    if there >= set(RACES):
        there.add("race")
    return [name for name in columns if name not in there]


def _usual(name: str) -> str:
    lower = str(name).lower()
    return {**ALIASES, "pik": "person"}.get(lower, lower)


def decoded_persons(
    frame: pd.DataFrame, dialect: Dialect, *, columns: Sequence[str], source: str
) -> pd.DataFrame:
    """Return persons in the codes of the schema, with the usual names of columns.

    Flags of six races make a column ``race``, and ``pik`` is the ``person``; what is missing is for
    others to say.
    """
    usual = {name: _usual(name) for name in frame.columns}
    taken = [name for name in usual if usual[name] in (*columns, *RACES)]
    again = [name for name in taken if sum(usual[n] == usual[name] for n in taken) > 1]
    if again:
        raise DataError(
            f"{source}: column {again[1]!r}: must be there once, got it beside {shown(again[0])}"
        )
    frame = frame[taken].rename(columns=usual)
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
    piece = Piece(source, 0, table)
    found = {name: dialect.decode(piece, name, name) for name in coded}
    if "race" in columns and flags:
        if "race" in frame or len(flags) < len(RACES):
            raise DataError(f"{source}: must have a column 'race' or the flags of six races")
        found["race"] = race_mask(piece, dialect, {name: name for name in RACES})
    return frame.drop(columns=flags).assign(**found)


def race_mask(piece: Piece, dialect: Dialect, names: Mapping[str, str]) -> IntArray:
    """Return the bit mask of six flags, of which one at least is set."""
    mask = np.zeros(len(piece), dtype=np.int64)
    for place, race in enumerate(RACES):
        mask += dialect.decode(piece, names[race], race) << place
    piece.check(names["white"], mask > 0, "yes where no other race is")
    return mask
