"""Knowledge of an adversary about the records of a place, beyond a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.tables import Table
from bayesrisk.tables.cells import CellSpace
from bayesrisk.tables.schema import Schema

# Conditions on records, and the classes of cells that fulfil them.


#: Codes of each attribute that a record may have; an attribute that is not named does not matter.
Condition = Mapping[str, Iterable[int]]


def check_codes(condition: Condition, name: str) -> dict[str, tuple[int, ...]]:
    """Return the checked codes of a condition."""
    return {
        check.text(a, name): tuple(
            check.integer(v, f"{name}[{a!r}]") for v in check.items(values, name)
        )
        for a, values in check.mapping(condition, name).items()
    }


def class_indicator(condition: Condition, classes: CellSpace) -> IntArray:
    """Return for each class whether its records fulfil a condition that it tells apart."""
    factors = condition_factors(condition, classes.schema)
    indicator = np.ones(1, np.int64)
    for name in classes.schema.names:
        first = classes.first[name]
        part = factors[name][0][first] if name in factors else np.ones(first.size, np.int64)
        indicator = np.multiply.outer(indicator, part).ravel()
    return indicator


def condition_factors(condition: Condition, schema: Schema) -> dict[str, IntArray]:
    """Return a condition as the factors of a table of one cell."""
    factors = {}
    for name, codes in condition.items():
        attribute = schema.attribute(name)
        for code in codes:
            if not attribute.first <= code <= attribute.last:
                raise ArgumentError(
                    f"{name} must be from {attribute.first} to {attribute.last}, got {code}"
                )
        row = np.zeros((1, attribute.size), np.int64)
        row[0, np.array(codes, np.int64) - attribute.first] = 1
        factors[name] = row
    return factors


AT_LEAST, EXACTLY = "at least", "exactly"


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """The adversary knows how many records of a place fulfil a condition.

    - ``at least``: the adversary knows ``count`` people of the place and that each of them fulfils
      ``where``; who they are says nothing else.  Of a person whose attributes are all known,
      nothing is left to find out: the others have the law of the prior *given* these.
    - ``exactly``: and nobody else of the place fulfils it.

    To be used for a question about a place: a condition may be about some attributes only, and
    tables are told apart where it needs that. In an audit all attributes of all known people are
    known, and many targets are asked of the same tables. There the known records are taken off the
    counts instead (``MicrodataSystem.without_records``, with a prior of the others): that is
    quicker, as it keeps the classes of the tables, and gives the same law. Nor can a condition say
    how many people a place has; a prior can (``size``).

    Attributes
    ----------
    where : mapping of str to iterable of int
        Codes that a record may have, for some of the attributes.
    count : int, default 1
        Number of records, >= 0.
    relation : {"at least", "exactly"}
        Whether there may be more.
    place : str, optional
        Code of a finest place; needed where there are several.
    """

    where: Condition
    count: int = 1
    relation: str = AT_LEAST
    place: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", check_codes(self.where, "where"))
        object.__setattr__(self, "count", check.integer(self.count, "count", lower=0))
        check.choice(self.relation, "relation", (AT_LEAST, EXACTLY))
        if self.place is not None:
            check.text(self.place, "place")

    @classmethod
    def from_frame(
        cls, people: pd.DataFrame, *, place: str | None = None, relation: str = AT_LEAST
    ) -> list[Self]:
        """Return the people of a file as knowledge: those who look alike are counted.

        One row is one person, with a column of whole codes for each attribute that is known.
        ``place`` names the column with the code of the person's finest place. ``exactly`` says that
        the file has everybody of these places who looks like one of its people.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"block": ["1", "1", "2"], "sex": [0, 0, 1], "age": [3, 3, 5]})
        >>> for known in KnownRecords.from_frame(people, place="block"):
        ...     print(known.place, known.count, known.where)
        1 2 {'sex': (0,), 'age': (3,)}
        2 1 {'sex': (1,), 'age': (5,)}
        """
        people = check.frame(people, "people")
        columns = [str(c) for c in people.columns]
        if place is not None:
            check.choice(place, "place", tuple(columns))
        names = [c for c in columns if c != place]
        keys = ([place] if place is not None else []) + names
        records = []
        for row, count in (
            people.groupby(keys, sort=True, dropna=False).size().items() if keys else ()
        ):
            values = row if isinstance(row, tuple) else (row,)
            code = None if place is None else str(values[0])
            condition = dict(
                zip(names, ([v] for v in values[len(keys) - len(names) :]), strict=True)
            )
            records.append(cls(condition, int(count), relation, code))
        return records

    def tables(self, schema: Schema) -> list[Table]:
        """Return an exact condition as a table of one cell; no table if it is not exact."""
        if self.relation == AT_LEAST:
            return []
        return [Table("known", ("known",), condition_factors(self.where, schema))]

    def __str__(self) -> str:
        kinds = ", ".join(f"{a} {'/'.join(map(str, v))}" for a, v in self.where.items())
        return f"{kinds or 'anybody'} known in {self.place}" if self.place else kinds or "anybody"


@dataclass(frozen=True)
class KnownGroup:
    """Records of a place of whom the same is known."""

    place: int  # position of the finest place
    classes: IntArray  # classes that they may have
    mass: FloatArray  # prior share of each of these
    count: int  # how many they are
    name: str  # how messages and rankings call them


@dataclass(frozen=True)
class Knowledge:
    """Known records by class."""

    settled: sp.csr_array  # (places, classes): known records whose class is known
    # (places, classes): those of them whose attributes are all known: no target is one of them
    named: sp.csr_array
    groups: tuple[KnownGroup, ...] = ()  # known people of several possible classes
    # classes that have so many records of the place, known people and others
    exact_groups: tuple[KnownGroup, ...] = ()

    @property
    def people(self) -> IntArray:
        """Number of known people of every place."""
        people_count = np.asarray(self.settled.sum(axis=1), np.int64).ravel()
        for group in self.groups:
            people_count[group.place] += group.count
        return people_count


def make_knowledge(
    known_people: Sequence[KnownRecords],
    classes: CellSpace,
    places: Sequence[str],
    prior: RecordPrior,
) -> Knowledge:
    """Return known records by class."""
    shape = (len(places), classes.size)
    if not known_people:
        return _empty_knowledge(*shape)
    entries: dict[bool, list[tuple[int, int, int]]] = {False: [], True: []}
    groups, exact_groups = [], []
    for item in known_people:
        if item.place is None and len(places) > 1:
            raise ArgumentError("known", f"must name a place for {item}", shown="None")
        position = 0 if item.place is None else _position(item.place, places)
        mass = classes.mass(prior.shares, condition_factors(item.where, classes.schema))
        cells = np.flatnonzero(mass > 0.0)
        if item.relation == EXACTLY:
            exact_groups.append(KnownGroup(position, cells, mass[cells], item.count, str(item)))
        elif not item.count:
            continue
        elif not cells.size:
            raise ArgumentError("known", "must be possible under the prior", shown=item)
        elif cells.size == 1:
            whole = len(item.where) == len(classes.schema.names)
            complete = whole and all(len(list(codes)) == 1 for codes in item.where.values())
            entries[complete].append((position, int(cells[0]), item.count))
        elif prior.concentration is not None:
            raise ArgumentError(
                "known must say the whole class of every known person where the prior has a "
                f"concentration, got {item}: {cells.size} classes are possible"
            )
        else:
            groups.append(KnownGroup(position, cells, mass[cells], item.count, str(item)))
    named, remainder = (_count_matrix(entries[full], shape) for full in (True, False))
    return Knowledge(sp.csr_array(named + remainder), named, tuple(groups), tuple(exact_groups))


@lru_cache(maxsize=16)
def _empty_knowledge(places: int, classes: int) -> Knowledge:
    nobody = _count_matrix([], (places, classes))
    return Knowledge(nobody, nobody)


def _position(place: str, places: Iterable[str]) -> int:
    names = [str(p) for p in places]
    check.choice(place, "known place", tuple(names))
    return names.index(place)


def _count_matrix(entries: list[tuple[int, int, int]], shape: tuple[int, int]) -> sp.csr_array:
    indices: Any = np.array(entries, np.int64).reshape(-1, 3).T
    matrix = sp.coo_array((indices[2], (indices[0], indices[1])), shape=shape, dtype=np.int64)
    counted: sp.csr_array = matrix.tocsr()
    return counted
