"""Files of persons a county at a time: of a data set by place from its parts, or of one file."""

import functools
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parquet import opened, read_frame
from bayesrisk._files.parse import all_of, named
from bayesrisk._files.text import header_fields, open_text, text_tables
from bayesrisk.exceptions import DataError
from bayesrisk.readers.dialects import (
    decoded_persons,
    is_person_column,
    missing_columns,
    named_dialect,
    said_by_file,
)
from bayesrisk.reconstruction.linkage.persons import Persons, person_frame
from bayesrisk.tables.exchange.partitions import Partitions

#: Digits of a county.
COUNTY = 5
_TEXTS = ("block", "geoid_block", "person", "pik")  # whatever they look like


class PersonFile(ABC):
    """Persons of whom a county is asked for at a time, in the order of the codes.

    Attributes
    ----------
    counties : tuple of str
        Counties with anybody in them, sorted.
    digest : str
        What tells the persons from others.
    name : str
        How messages call them.
    """

    counties: tuple[str, ...]
    digest: str
    name: str

    @abstractmethod
    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county, rows numbered from 0."""


class _Whole(PersonFile):
    """Persons of one file, which is held."""

    def __init__(
        self, file: Path, columns: tuple[str, ...], dialect: str | None, once: bool
    ) -> None:
        persons = _read(file, columns, dialect)
        if once:
            _check_once(persons)
        frame = persons.frame
        self.name, self.digest = str(file), _files.digest(file)
        number, counties = pd.factorize(frame["block"].str[:COUNTY], sort=True)
        order = np.argsort(number, kind="stable")
        self._frame, self.counties = frame.iloc[order], tuple(counties)
        self._ends = np.cumsum(np.bincount(number, minlength=len(counties)))

    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county."""
        if county not in self.counties:
            return self._frame[:0].reset_index(drop=True)
        place = self.counties.index(county)
        start = self._ends[place - 1] if place else 0
        return self._frame[start : self._ends[place]].reset_index(drop=True)


class _ByPlace(PersonFile):
    """Persons of microdata by place, of which the part that was read last is held."""

    def __init__(
        self, folder: Path, columns: tuple[str, ...], dialect: str | None, once: bool
    ) -> None:
        self._index = Partitions.read(folder, "microdata")
        self._columns, self._dialect, self._once = columns, dialect, once
        self.name, self.digest = str(folder), self._index.digest
        self._part = functools.lru_cache(maxsize=1)(self._read_part)
        self._parts: dict[str, list[str]] = {}
        for code in self._index.codes:
            # Of parts that are larger than counties only their persons say which there are.
            inside = {code[:COUNTY]} if len(code) >= COUNTY else self._found(code)
            for county in inside:
                self._parts.setdefault(county, []).append(code)
        self.counties = tuple(sorted(self._parts))

    def _found(self, code: str) -> set[str]:
        return set(self._part(code)["block"].str[:COUNTY].unique())

    def _read_part(self, code: str) -> pd.DataFrame:
        folder = self._index.checked(code)
        file = folder / "persons.parquet"
        with named(str(folder), also=(KeyError, TypeError)):
            listed = _files.read_document(folder / "_microdata.json")["files"][file.name]["sha256"]
        _files.check_digest(file, listed, "_microdata.json")
        persons = _read(file, self._columns, self._dialect)
        outside = ~persons.frame["block"].str.startswith(code).to_numpy(bool)
        if outside.any():
            row = int(np.argmax(outside))
            raise DataError(
                f"{file}: row {row + 1}, column 'block': must be in {code}, "
                f"got {persons.frame['block'].iloc[row]}"
            )
        if self._once:
            _check_once(persons)
        return persons.frame

    def of(self, county: str) -> pd.DataFrame:
        """Return the checked persons of a county."""
        codes = self._parts.get(county)
        if codes is None:
            return self._part(self._index.codes[0])[:0]
        if len(codes[0]) < COUNTY:
            frame = self._part(codes[0])
            return frame[frame["block"].str.startswith(county)].reset_index(drop=True)
        return pd.concat([self._part(code) for code in codes], ignore_index=True)


def open_persons(
    path: Path, columns: tuple[str, ...], dialect: str | None, *, once: bool = False
) -> PersonFile:
    """Return the persons of a file, or of microdata by place.

    ``once`` is whether a person may be in a file, or in a part, only once.

    Raises
    ------
    DataError
        If there is no such file, or it lacks a column or has a value out of range: file, row and
        column are named.
    """
    kind = _ByPlace if Partitions.there(path) else _Whole
    return kind(path, columns, dialect, once)


def _check_once(persons: Persons) -> None:
    again = persons.frame["person"].duplicated()
    if again.any():
        row = int(np.argmax(again.to_numpy()))
        raise DataError(
            f"{persons.source}: row {row + 1}, column 'person': must be different for each "
            f"record, got {persons.frame['person'].iloc[row]} again"
        )


def _read(file: Path, columns: tuple[str, ...], dialect: str | None) -> Persons:
    """Return the persons of a file, checked once; a fault is named with the file."""
    with named(str(file)):
        if not file.is_file():
            raise DataError(f"{file}: is not a file")
    coding = named_dialect(dialect, str(file), said_by_file(file))
    if file.suffix.lower() == ".csv":
        frame = _from_csv(file)
    else:
        with opened(file) as (_, schema):
            names = schema.names
        lacking = missing_columns(names, columns)  # nothing need be read to say so
        check.frame(pd.DataFrame(columns=list({*columns} - {*lacking})), str(file), columns)
        kinds = dict.fromkeys((n for n in names if is_person_column(n)), ("number", "text"))
        frame = read_frame(file, kinds)
    frame = decoded_persons(frame, coding, columns=columns, source=str(file))
    checked = person_frame(frame, columns=columns, source=str(file))
    # Identifiers are names, whether a file stores them as numbers or as text.
    return Persons(checked.assign(person=checked["person"].astype("str")), str(file))


def _from_csv(file: Path) -> pd.DataFrame:
    """Return the columns of a text file: blocks and identifiers as text, all others as numbers."""
    with open_text(file) as lines, named(str(file), also=(pa.ArrowException,)):
        names = header_fields(lines.readline(), str(file))
        wanted = [name for name in names if is_person_column(name)]
        pieces = (table.select(wanted) for table in text_tables(lines, names))
        held = all_of(pieces, lambda piece: int(piece.nbytes), str(file))
    schema = pa.schema([(name, pa.string()) for name in wanted])
    frame: pd.DataFrame = pa.concat_tables([schema.empty_table(), *held]).to_pandas()
    for name in wanted:
        nothing = frame[name].str.strip() == ""
        frame[name] = frame[name].mask(nothing)
        if name not in _TEXTS:
            numbers = pd.to_numeric(frame[name], errors="coerce")
            # What is no number stays a text: the message about it says so.
            frame[name] = numbers if (numbers.notna() | nothing).all() else frame[name]
    return frame
