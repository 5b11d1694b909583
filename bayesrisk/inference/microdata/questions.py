"""What is asked about the records of a place."""

from __future__ import annotations

from dataclasses import dataclass

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.microdata.classes import Condition, codes_of, condition_factors
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Table


@dataclass(frozen=True, eq=False)
class RecordQuestion:
    r"""A question about the records of a place: one of three, by what is given.

    - ``among``: is the target, known to be one of the records that fulfil ``among``, one of those
      that fulfil ``where`` too?  With X the number of records that fulfil both, and G that of
      ``among``, the answer is E[X] / E[G]: a place with more of these records is the more probably
      the target's.  Where the release says how large G is, that is E[X / G].  Records that are
      known in full (:class:`KnownRecords`) are somebody else's, and not counted.
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
                object.__setattr__(self, field, codes_of(given, field))
        if self.at_least is not None:
            if self.among is not None:
                raise ArgumentError("at_least must not be given together with among")
            object.__setattr__(self, "at_least", check.integer(self.at_least, "at_least", lower=1))
        if self.place is not None:
            check.text(self.place, "place")
        if not isinstance(self.name, str) or self.name:
            check.text(self.name, "name")

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
            Table("condition", ("fulfilled",), condition_factors(condition, schema))
            for condition in conditions
        ]


def _told(condition: Condition) -> str:
    return ", ".join(f"{a} {'/'.join(map(str, v))}" for a, v in condition.items()) or "anybody"
