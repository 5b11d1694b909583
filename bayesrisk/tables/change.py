"""The law of change between two years, and records of both years as records of one schema.

A *trajectory* is a record's values in the first year and in the later one, or its presence in one
of them alone. A population in two years is a list of trajectories. A table of either year counts
trajectories, so two releases t years apart are two releases of one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError, quote
from bayesrisk.tables._grammar import Table
from bayesrisk.tables.schema import Attribute, Schema
from bayesrisk.tables.workload import Workload

#: Name of the attribute that says in which years a record is there, where a schema has no age.
PRESENCE = "presence"
_STATES = ("both", "left", "arrived")
ABSENT = -1
_ROUNDING = 1e-9


@displayed
@dataclass(frozen=True, eq=False)
class PopulationChange:
    r"""A stated law of change between two populations of the same place, some years apart.

    Every record of the first year is also there in the later year with probability
    ``staying * (1 - dying)`` by age. People who stay are older by ``years``. Other attributes keep
    their value or change it, independently. Numbers of new records, arrivals and births, are
    Poisson. By default nothing changes: state your rates, with their source.

    Attributes
    ----------
    schema : Schema
        Schema of the records in either year.
    years : int
        Number of years, >= 0.
    age : str or None
        Attribute that is an age; None if there is none.
    starts : sequence of int, optional
        First age of every group, increasing. By default it is the cuts of the attribute after 0, or
        its codes, which are then ages in single years. Within a group all whole years are equally
        probable: from [s, e), the share of ages u with u + years in another group moves there.
        People in the last group stay in it.
    staying, dying : float or sequence of float
        Probability of still being in the place, if alive, and of having died: one for all, or one
        for each code of the age.
    changes : mapping of str to float or array_like
        For attributes that may change, the probability that another value is recorded, with all
        others equally probable; or a matrix from value to value, whose rows sum to 1.
    arrivals : float or array_like of float
        Expected number of arriving records for every record of the first year. One number stands
        for records like those of the first year; or one is given for each cell of the schema.
    births : float
        Expected number of people born who are there in the later year, for every record of the
        first year. Their ages are uniform below ``years``; otherwise they are like the first year's
        records.

    Examples
    --------
    Two age groups. Ten years later, the people aged 0 to 19 are equally probably in either:

    >>> about = Schema("town", (Attribute("sex", 2), Attribute("old", 2)))
    >>> change = PopulationChange(about, 10, age="old", starts=[0, 20], staying=0.5,
    ...                           changes={"sex": 0.02}, births=0.1)
    >>> change.schema_of_both.attribute("old").labels[:4]
    ('0, then 0', '0, then 1', '1, then 1', '0, then gone')
    >>> counts = change.trajectories([10, 0, 0, 0])  # ten young men
    >>> round(float(counts.sum()), 12)
    11.0
    """

    schema: Schema
    years: int
    age: str | None = None
    starts: Sequence[int] | None = None
    staying: float | Sequence[float] = 1.0
    dying: float | Sequence[float] = 0.0
    changes: Mapping[str, ArrayLike] = field(default_factory=dict)
    arrivals: ArrayLike = 0.0
    births: float = 0.0

    def __post_init__(self) -> None:
        schema = check.instance(self.schema, Schema, "schema")
        years = check.integer(self.years, "years", lower=0, upper=1000)
        if self.age is None:
            if self.starts is not None or self.births:
                raise ArgumentError("age", "must be given with starts and births", shown="None")
            if PRESENCE in schema.names:
                raise ArgumentError("schema", f"must have no attribute {PRESENCE!r}")
        else:
            check.choice(self.age, "age", schema.names)
        values: dict[str, object] = {
            "years": years,
            "starts": None if self.age is None else self._checked_starts(self.age),
            "births": check.scalar(self.births, "births", lower=0.0),
        }
        for name in ("staying", "dying"):
            rates = check.real_array(getattr(self, name), name, lower=0.0, upper=1.0)
            size = 1 if self.age is None else schema.attribute(self.age).size
            if rates.shape not in ((), (size,)):
                raise ShapeError(name, f"must be one number or one for each of {size} ages")
            values[name] = np.broadcast_to(rates, (size,))
        arrivals = check.real_array(self.arrivals, "arrivals", lower=0.0)
        if arrivals.shape not in ((), (schema.size,)):
            raise ShapeError(f"arrivals must be one number or {schema.size}, got {arrivals.shape}")
        values["arrivals"] = arrivals
        values["changes"] = MappingProxyType(
            {n: self._matrix(n, v) for n, v in check.mapping(self.changes, "changes").items()}
        )
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _checked_starts(self, age: str) -> tuple[int, ...]:
        attribute = self.schema.attribute(age)
        codes = range(attribute.first, attribute.last + 1)
        groups = self.starts
        if groups is None:
            if attribute.labels and not attribute.cuts:
                raise ArgumentError(f"starts must be given for the groups of {age!r}, got None")
            groups = [0, *(int(c) for c in attribute.cuts)] if attribute.cuts else list(codes)
        starts = tuple(check.integer(s, "starts", lower=0) for s in check.items(groups, "starts"))
        if len(starts) != attribute.size:
            raise ShapeError("starts", f"must be {attribute.size}, one a group", shown=len(starts))
        if any(a >= b for a, b in pairwise(starts)):
            raise ArgumentError("starts", "must increase", got=list(starts))
        return starts

    def _matrix(self, name: str, rate: ArrayLike) -> FloatArray:
        size = self.schema.attribute(name).size
        if name == self.age:
            raise ArgumentError("changes", "must be of other attributes than the age", got=name)
        rates = check.real_array(rate, f"changes[{name!r}]", lower=0.0, upper=1.0)
        if rates.ndim == 0:
            if size == 1 and rates > 0.0:
                raise ArgumentError(f"changes[{name!r}]", "must be 0 for one value", shown=rates)
            matrix: FloatArray = np.full((size, size), float(rates) / max(size - 1, 1))
            np.fill_diagonal(matrix, 1.0 - float(rates))
            return matrix
        if rates.shape != (size, size):
            raise ShapeError(f"changes[{name!r}]", f"must be ({size}, {size})", shown=rates.shape)
        total = rates.sum(axis=1)
        if np.any(np.abs(total - 1.0) > _ROUNDING):
            raise ArgumentError(f"changes[{name!r}]", "must have rows of sum 1", got=total)
        shares: FloatArray = rates / total[:, None]
        return shares

    # ---- pairs of values, first and later

    @property
    def presence(self) -> str:
        """Name of the attribute that tells in which years a record is there."""
        return PRESENCE if self.age is None else self.age

    @cached_property
    def stay(self) -> FloatArray:
        """Probability of being there in the later year too, by code of the age."""
        return np.asarray(self.staying) * (1.0 - np.asarray(self.dying))

    @cached_property
    def ageing(self) -> FloatArray:
        """Probability of every later group (columns) for the people of a group, (groups, groups).

        It is (1, 1) if a schema has no age.
        """
        if self.starts is None:
            return np.ones((1, 1))
        starts = np.asarray(self.starts)
        matrix = np.eye(starts.size)
        for g, (low, high) in enumerate(pairwise(self.starts)):
            later = np.searchsorted(starts, np.arange(low, high) + self.years, side="right") - 1
            matrix[g] = np.bincount(later, minlength=starts.size) / later.size
        return matrix

    @cached_property
    def newborn(self) -> FloatArray:
        """Share of every age group among people born between the years."""
        if self.starts is None or not self.years:
            return np.zeros(len(self.stay))
        group = np.searchsorted(np.asarray(self.starts), np.arange(self.years), side="right") - 1
        return np.bincount(np.maximum(group, 0), minlength=len(self.starts)) / self.years

    @cached_property
    def pairs(self) -> Mapping[str, IntArray]:
        """For every attribute the pairs (first, later) of codes from 0 that are possible.

        The shape is (pairs, 2). The attribute ``presence`` alone has -1, for the year in which a
        record is not there.
        """
        pairs = {}
        for a in self.schema.attributes:
            if a.name != self.age:  # of one who left or arrived, the same value twice
                other = np.asarray(self.changes.get(a.name, np.eye(a.size))) > 0.0
                pairs[a.name] = np.argwhere(other | np.eye(a.size, dtype=np.bool_))
        arrive = (self.newborn > 0.0) & (self.births > 0.0)
        if np.ndim(self.arrivals) == 0:
            arrive = arrive | (float(np.max(self.arrivals)) > 0.0)
        else:
            shape = self.schema.shape if self.age is not None else (*self.schema.shape, 1)
            axis = shape.index(1, -1) if self.age is None else self.schema.names.index(self.age)
            axes = tuple(i for i in range(len(shape)) if i != axis)
            arrive = arrive | (np.reshape(self.arrivals, shape).sum(axis=axes) > 0.0)
        stayers = np.argwhere((self.ageing > 0.0) & (self.stay > 0.0)[:, None])
        left = np.flatnonzero(self.stay < 1.0)
        new = np.flatnonzero(arrive)
        pairs[self.presence] = np.concatenate(
            [
                stayers,
                np.stack([left, np.full(left.size, ABSENT)], axis=1),
                np.stack([np.full(new.size, ABSENT), new], axis=1),
            ]
        ).astype(np.int64)
        return MappingProxyType(pairs)

    @cached_property
    def schema_of_both(self) -> Schema:
        """Schema of trajectories: every code of an attribute is a pair of values."""
        attributes = []
        for a in self.schema.attributes:
            pairs = self.pairs[a.name]
            fixed = len(pairs) == a.size and bool(np.all(pairs[:, 0] == pairs[:, 1]))
            labels = a.labels or tuple(str(c) for c in range(a.first, a.last + 1))
            attributes.append(
                a if fixed else Attribute(a.name, len(pairs), labels=_pair_labels(pairs, labels))
            )
        if self.age is None:
            states = [_STATES[int(p[1] < 0) + 2 * int(p[0] < 0)] for p in self.pairs[PRESENCE]]
            attributes.append(Attribute(PRESENCE, len(states), labels=tuple(states)))
        name = f"{self.schema.name}, {self.years} years apart"
        return Schema(name, tuple(attributes), self.schema.geography)

    # ---- the law, tables and conditions of trajectories

    def trajectories(self, counts: ArrayLike) -> FloatArray:
        """Return expected numbers of trajectories: people who stay, leave, arrive or are born.

        ``counts``, of shape (cells of the schema,), are the expected numbers of records of the
        first year, >= 0 and not all 0. The result has shape (cells of ``schema_of_both``,).
        """
        first = check.real_array(counts, "counts", lower=0.0)
        if first.shape != (self.schema.size,):
            raise ShapeError("counts", f"must have shape ({self.schema.size},)", shown=first.shape)
        total = float(first.sum())
        if not total > 0.0:
            raise ArgumentError("counts", "must not all be 0")
        shape = (*self.schema.shape, *((1,) if self.age is None else ()))
        arrivals = np.asarray(self.arrivals)
        new = arrivals * first if arrivals.ndim == 0 else arrivals * total
        new = np.reshape(new, shape)
        first = first.reshape(shape)
        if self.births:
            axis = self.schema.names.index(self.presence)
            grown = first.sum(axis=axis, keepdims=True)
            ages = np.reshape(self.newborn, [-1 if i == axis else 1 for i in range(len(shape))])
            new = new + self.births * grown * ages
        names = self.schema_of_both.names
        stayers = [self._both_years(name) for name in names]
        leavers = [self._one_year(name, later=False) for name in names]
        newcomers = [self._one_year(name, later=True) for name in names]
        return (
            self._placed(first, stayers, later=False)
            + self._placed(first, leavers, later=False)
            + self._placed(new, newcomers, later=True)
        ).ravel()

    def _both_years(self, name: str) -> FloatArray:
        """Return P(pair | first value) of a record present in both years."""
        first, later = self.pairs[name].T
        if name == self.presence:
            chance: FloatArray = self.stay[first] * self.ageing[first, later]
            return np.where((first >= 0) & (later >= 0), chance, 0.0)
        size = self.schema.attribute(name).size
        chances = np.asarray(self.changes.get(name, np.eye(size)), np.float64)
        return np.asarray(chances[first, later])

    def _one_year(self, name: str, *, later: bool) -> FloatArray:
        """Return P(pair | value) of one who leaves, or of one who arrives (``later``)."""
        first, second = self.pairs[name].T
        if name != self.presence:
            fixed: FloatArray = np.where(first == second, 1.0, 0.0)
            return fixed
        return (
            np.where(first < 0, 1.0, 0.0)
            if later
            else np.where(second < 0, 1.0 - self.stay[first], 0.0)
        )

    def _placed(self, counts: FloatArray, chances: list[FloatArray], *, later: bool) -> FloatArray:
        """Return the counts of one year, times the chances, at their pairs."""
        names = self.schema_of_both.names
        mean = counts[np.ix_(*(np.maximum(self.pairs[n][:, int(later)], 0) for n in names))]
        for axis, chance in enumerate(chances):
            mean = mean * np.reshape(chance, [-1 if i == axis else 1 for i in range(mean.ndim)])
        return mean

    def table(self, table: Table, *, later: bool) -> Table:
        """Return a table of one of the years as a table that counts trajectories."""
        check.instance(table, Table, "table").check_schema(self.schema)
        factors = {}
        for name in {*table.factors, self.presence}:
            if name in table.factors:
                weights = table.factors[name]
            else:
                weights = np.ones((len(table.cells), len(self.stay)), np.int64)
            absent = np.zeros((len(table.cells), 1), np.int64)
            factors[name] = np.append(weights, absent, axis=1)[:, self.pairs[name][:, int(later)]]
        order = [n for n in self.schema_of_both.names if n in factors]
        return Table(table.name, table.cells, {n: factors[n] for n in order})

    def convert(self, workload: Workload, *, later: bool) -> Workload:
        """Return the tables of one of the years as tables that count trajectories."""
        if check.instance(workload, Workload, "workload").schema != self.schema:
            theirs = quote(workload.schema.name)
            raise ArgumentError("workload", f"must be of schema {self.schema.name!r}", shown=theirs)
        tables = {key: self.table(t, later=later) for key, t in workload.tables.items()}
        return Workload(self.schema_of_both, tables)

    def workload(self, first: Workload, later: Workload) -> Workload:
        """Return the tables of both years, called ``first: NAME`` and ``later: NAME``."""
        years = {"first": first, "later": later}
        return Workload.join({n: self.convert(w, later=n == "later") for n, w in years.items()})

    def condition(
        self,
        first: Mapping[str, Iterable[int]] | None = None,
        later: Mapping[str, Iterable[int]] | None = None,
        *,
        changed: Iterable[str] = (),
        present: str | None = None,
    ) -> dict[str, list[int]]:
        """Return a condition on trajectories, for questions and for knowledge.

        ``first`` and ``later`` are codes that a record may have in either year, which implies
        presence then. Attributes in ``changed`` have another value in the later year. A record is
        ``present`` in ``"both"`` years, or has ``"left"`` or ``"arrived"``.
        """
        masks: dict[str, BoolArray] = {
            n: np.ones(len(self.pairs[n]), np.bool_) for n in self.schema_of_both.names
        }
        presence = self.pairs[self.presence] >= 0
        for side, condition in enumerate((first, later)):
            codes = {} if condition is None else check.mapping(condition, ("first", "later")[side])
            if condition is not None:
                masks[self.presence] &= presence[:, side]
            for name, values in codes.items():
                attribute = self.schema.attribute(name)
                wanted = [
                    check.integer(v, name, lower=attribute.first, upper=attribute.last)
                    for v in check.items(values, name)
                ]
                allowed = np.isin(self.pairs[name][:, side] + attribute.first, wanted)
                masks[name] &= allowed & (self.pairs[name][:, side] >= 0)
        names = check.texts(list(changed), "changed")
        for name in names:
            self.schema.attribute(name)
            masks[name] &= self.pairs[name][:, 0] != self.pairs[name][:, 1]
        if names or present is not None:
            state = check.choice("both" if present is None else present, "present", _STATES)
            if names and state != "both":
                raise ArgumentError("present", "must be 'both' with changed", got=state)
            year = {"both": (True, True), "left": (True, False), "arrived": (False, True)}[state]
            masks[self.presence] &= np.all(presence == year, axis=1)
        first_code = {a.name: a.first for a in self.schema_of_both.attributes}
        return {
            n: (np.flatnonzero(mask) + first_code[n]).tolist()
            for n, mask in masks.items()
            if not mask.all()
        }

    def codes_of_pairs(self, cells: IntArray) -> tuple[dict[str, IntArray], BoolArray]:
        """Return the codes of trajectories with the cells of both years, and which are possible."""
        schema, possible = self.schema_of_both, np.ones(len(cells), np.bool_)
        values = [self.schema.indices(np.maximum(side, 0)) for side in cells.T]
        codes = {}
        for a in schema.attributes:
            pairs = self.pairs[a.name]
            sides = []
            for year, present, other in zip(values, (cells >= 0).T, values[::-1], strict=True):
                value = year.get(a.name, np.zeros(len(cells), np.int64))
                absent = ABSENT if a.name == self.presence else other.get(a.name, value)
                sides.append(np.where(present, value, absent))
            width = int(pairs.max()) + 2
            number = np.full(width * width, ABSENT)
            number[(pairs[:, 0] + 1) * width + pairs[:, 1] + 1] = np.arange(len(pairs))
            inside = np.maximum(*sides) < width - 1
            key = np.where(inside, (sides[0] + 1) * width + sides[1] + 1, 0)
            index = np.where(inside, number[key], ABSENT)
            possible &= index >= 0
            codes[a.name] = np.maximum(index, 0) + a.first
        return codes, possible


def _pair_labels(pairs: IntArray, labels: Sequence[str]) -> tuple[str, ...]:
    texts = []
    for first, later in pairs.tolist():
        if first < 0:
            texts.append(f"not yet, then {labels[later]}")
        else:
            texts.append(f"{labels[first]}, then {'gone' if later < 0 else labels[later]}")
    return tuple(texts)
