"""What is asked about the records of a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata.system import Classes
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Table

__all__ = ["RecordQuestion"]

#: Codes of each attribute that a record may have; an attribute that is not named does not matter.
Condition = Mapping[str, Iterable[int]]


@dataclass(frozen=True, eq=False)
class RecordQuestion:
    r"""A question about the records of a place: one of three, by what is given.

    - ``among``: is the target, known to be one of the records that fulfil ``among``, one of those
      that fulfil ``where`` too?  With X the number of records that fulfil both, and G that of
      ``among``, the answer is E[X] / E[G]: a place with more of these records is the more probably
      the target's.  Where the release says how large G is, that is E[X / G].
    - ``at_least`` m: are there m or more records that fulfil ``where``?
    - neither: how many are there?  The answer is the expected number.

    Attributes
    ----------
    where : mapping of str to iterable of int
        Codes that a record may have, for some of the attributes.
    among : mapping of str to iterable of int, optional
        What is known of the target, in the same form; an empty mapping where only the place is.
    at_least : int, optional
        Number of records, at least 1.
    place : str, optional
        Code of a finest place; by default all of them together.
    name : str, optional
        How the question is called in results.
    """

    where: Condition
    among: Condition | None = None
    at_least: int | None = None
    place: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("where", "among"):
            given = getattr(self, field)
            if given is not None:
                codes = {
                    check.text(a, field): tuple(
                        check.integer(v, f"{field}[{a!r}]") for v in check.items(values, field)
                    )
                    for a, values in check.mapping(given, field).items()
                }
                object.__setattr__(self, field, codes)
        if self.at_least is not None:
            if self.among is not None:
                raise ArgumentError("at_least must not be given together with among")
            object.__setattr__(self, "at_least", check.integer(self.at_least, "at_least", lower=1))
        if self.place is not None:
            check.text(self.place, "place")
        check.text(self.name, "name") if self.name else None

    def __str__(self) -> str:
        if self.name:
            return self.name
        text = _told(self.where)
        if self.among is not None:
            return f"{text} among {_told(self.among)}"
        return text if self.at_least is None else f"at least {self.at_least}: {text}"

    def tables(self, schema: Schema) -> list[Table]:
        """Return the conditions as tables of one cell, so that classes tell them apart."""
        conditions = [self.where] if self.among is None else [self.where, self.among]
        return [
            Table("condition", ("fulfilled",), _factors(condition, schema))
            for condition in conditions
        ]


def of_classes(condition: Condition, classes: Classes) -> IntArray:
    """Return for each class whether its records fulfil a condition that it tells apart."""
    factors = _factors(condition, classes.schema)
    found = np.ones(1, np.int64)
    for name in classes.schema.names:
        first = np.unique(classes.bins[name], return_index=True)[1]
        part = factors[name][0][first] if name in factors else np.ones(first.size, np.int64)
        found = np.multiply.outer(found, part).ravel()
    return found


def share(weights: IntArray, mass: FloatArray) -> float:
    """Return the prior share of the records that fulfil a condition."""
    return float(weights @ mass / mass.sum())


def _factors(condition: Condition, schema: Schema) -> dict[str, IntArray]:
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


def _told(condition: Condition) -> str:
    return ", ".join(f"{a} {'/'.join(map(str, v))}" for a, v in condition.items()) or "anybody"
