"""Persons and their households as records of one kind: a household and its members.

A household has a *composition*, the number of members of each kind of person. A count of persons is
then a sum over households of the members that the cell counts. A count of households is a sum of
zeros and ones. Tables of both are tables of one histogram, with whole weights. Attributes of a
household that follow from its members, such as its size, are functions of the composition, and not
attributes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.tables._grammar import Table
from bayesrisk.tables.schema import Attribute, Schema
from bayesrisk.tables.workload import Workload

#: The attribute of linked records that says who lives in a household.
MEMBERS = "members"
_MOST = 2**24  # compositions times kinds of persons
_LABELLED = 2**12  # compositions that have labels


@displayed
@dataclass(frozen=True, eq=False)
class HouseholdLink:
    """The kinds of households that persons of one schema can form, and their linked schema.

    Attributes
    ----------
    persons, households : Schema
        Schemas of persons and households, in one geography.
    members : ndarray of int64, shape (compositions, cells of ``persons``)
        Number of members of each kind in a household of each composition. A row of zeros is a
        vacant unit, which tables of households count.
    derived : mapping of str to ndarray of int64, shape (compositions,)
        Codes of the household attributes that follow from the members.
    """

    persons: Schema
    households: Schema
    members: IntArray
    derived: Mapping[str, IntArray]

    def __post_init__(self) -> None:
        geography = check.instance(self.persons, Schema, "persons").geography
        other = check.instance(self.households, Schema, "households")
        if other.geography != geography or other == self.persons:
            raise ArgumentError(f"households must be of another schema, in {geography.name}, too")
        members = check.count_array(self.members, "members", lower=0)
        if members.ndim != 2 or members.shape[1] != self.persons.size or not len(members):
            shape = f"(compositions, {self.persons.size})"
            raise ShapeError("members", f"must be {shape}", shown=members.shape)
        for name, codes in check.mapping(self.derived, "derived").items():
            attribute, label = other.attribute(name), f"derived[{name!r}]"
            array = check.count_array(codes, label, lower=attribute.first, upper=attribute.last)
            if array.shape != members.shape[:1]:
                raise ShapeError(label, f"must be one code for each of {len(members)} households")
        object.__setattr__(self, "members", members)

    @classmethod
    def enumerate(
        cls,
        persons: Schema,
        households: Schema,
        *,
        most: int,
        derived: Mapping[str, Callable[[IntArray], ArrayLike]],
    ) -> Self:
        """Return the link of all households of 1 to ``most`` members.

        Kinds of persons should be few: k kinds give C(most + k, k) - 1 households, and that number
        times k is at most 2**24. ``derived`` has a function for each household attribute that
        follows from the members. It takes ``members`` (compositions, cells of ``persons``) and
        returns the codes.

        Examples
        --------
        >>> persons = Schema("persons", (Attribute("age", 2, labels=("child", "adult")),))
        >>> homes = Schema("homes", (Attribute("rented", 2), Attribute("size", 2, 1)))
        >>> link = HouseholdLink.enumerate(
        ...     persons, homes, most=2, derived={"size": lambda members: members.sum(axis=1)}
        ... )
        >>> link.schema.attribute("members").labels
        ('child', 'adult', 'child + child', 'child + adult', 'adult + adult')
        >>> link.condition({"rented": [1], "size": [2]})
        {'rented': [1], 'members': [2, 3, 4]}
        """
        kinds = check.instance(persons, Schema, "persons").size
        largest = check.integer(most, "most", lower=1, upper=_MOST)
        if (number := comb(largest + min(kinds, _MOST), largest) * kinds) > _MOST:
            raise ArgumentError(f"most must leave at most {_MOST} numbers of members, got {number}")
        rows = [
            np.bincount(np.array(chosen, np.int64), minlength=kinds)
            for size in range(1, largest + 1)
            for chosen in combinations_with_replacement(range(kinds), size)
        ]
        members = np.array(rows, np.int64)
        columns = {name: np.asarray(codes(members), np.int64) for name, codes in derived.items()}
        return cls(persons, households, members, columns)

    @cached_property
    def person_labels(self) -> list[str]:
        """Names of the kinds of persons."""
        codes = self.persons.codes(np.arange(self.persons.size))
        parts = [
            [a.labels[c - a.first] if a.labels else f"{a.name} {c}" for c in codes[a.name].tolist()]
            for a in self.persons.attributes
        ]
        return [" ".join(words) for words in zip(*parts, strict=True)]

    @cached_property
    def schema(self) -> Schema:
        """The schema of linked records: attributes of households, and ``members``."""
        labels: tuple[str, ...] = ()
        if len(self.members) <= _LABELLED:
            kinds = np.array(self.person_labels, dtype=object)
            labels = tuple(" + ".join(np.repeat(kinds, row)) or "nobody" for row in self.members)
        free = tuple(a for a in self.households.attributes if a.name not in self.derived)
        name = f"{self.households.name} of {self.persons.name}"
        members = Attribute(MEMBERS, len(self.members), 0, labels)
        return Schema(name, (*free, members), self.persons.geography)

    def convert(self, workload: Workload) -> Workload:
        """Return tables of persons, or of households, as the same tables of linked records."""
        schema = check.instance(workload, Workload, "workload").schema
        if schema == self.schema:
            return workload
        if schema not in (self.persons, self.households):
            raise ArgumentError("workload", "must be of a schema of the link", got=schema.name)
        tables = {key: self._table(table, schema) for key, table in workload.tables.items()}
        return Workload(self.schema, tables)

    def workload(self, workloads: Mapping[str, Workload]) -> Workload:
        """Return workloads of persons and of households as one: table ``w: t`` is t of w."""
        check.mapping(workloads, "workloads")
        return Workload.join({name: self.convert(part) for name, part in workloads.items()})

    def _table(self, table: Table, schema: Schema) -> Table:
        """Return a table of persons or of households over the linked records."""
        if schema == self.persons:
            # A household counts in a cell with the sum of the weights of its members.
            weights = table.incidence(schema, np.arange(schema.size)).toarray() @ self.members.T
            return Table(table.name, table.cells, {MEMBERS: weights})
        factors = {n: f for n, f in table.factors.items() if n not in self.derived}
        for name in table.factors.keys() & self.derived.keys():
            index = self.derived[name] - self.households.attribute(name).first
            factors[MEMBERS] = factors.get(MEMBERS, 1) * table.factors[name][:, index]
        return Table(table.name, table.cells, factors)

    def condition(self, where: Mapping[str, Iterable[int]]) -> dict[str, list[int]]:
        """Return a condition on households as one on linked records, including ``members``."""
        free: dict[str, list[int]] = {}
        mask = np.ones(len(self.members), np.bool_)
        for name, codes in check.mapping(where, "where").items():
            self.households.attribute(name)
            if name in self.derived:
                mask &= np.isin(self.derived[name], list(codes))
            else:
                free[name] = list(codes)
        return free if mask.all() else {**free, MEMBERS: np.flatnonzero(mask).tolist()}

    def shares(self, persons: ArrayLike, sizes: ArrayLike) -> FloatArray:
        r"""Return the shares of linked records if members of a household are independent.

        The share of a composition m is proportional to
        :math:`P(|m|) \, |m|! \prod_k \theta_k^{m_k} / m_k!`. Here theta are the shares of the kinds
        of ``persons``, and P(1), P(2), ... those of the ``sizes`` of households. Other attributes
        are equally probable.
        """
        number = self.members.sum(axis=1)
        kinds = check.real_array(persons, "persons", lower=0.0)
        size = check.real_array(sizes, "sizes", lower=0.0)
        if (kinds.size, size.size) != (self.persons.size, int(number.max())):
            wanted = f"{self.persons.size} and {int(number.max())}"
            raise ShapeError(f"persons and sizes must have {wanted} entries")
        with np.errstate(divide="ignore", invalid="ignore"):
            log_share = np.where(self.members > 0, self.members * np.log(kinds), 0.0).sum(axis=1)
        ways = gammaln(number + 1.0) - gammaln(self.members + 1.0).sum(axis=1)
        weights = np.tile(
            np.append(0.0, size)[number] * np.exp(ways + log_share), prod(self.schema.shape[:-1])
        )
        if not weights.sum() > 0.0:
            raise ArgumentError("persons and sizes must leave a household possible")
        shares: FloatArray = weights / weights.sum()
        return shares
