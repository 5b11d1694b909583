"""The adversary's prior and knowledge about a place's records, beyond the release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError, quote
from bayesrisk.tables import PopulationChange, Table
from bayesrisk.tables.cells import CellSpace
from bayesrisk.tables.schema import Schema

_MAX_CELLS = 2**24
_MAX_SIZE = 2**24
_SELDOM = 0.01  # of what is more probable on either side: a chain of small steps goes there rarely


@displayed
@dataclass(frozen=True, eq=False)
class RecordPrior:
    r"""Prior of the counts x of a place's cells, given its number of records.

    Without a concentration, the n records are drawn independently with the shares theta of a
    composition, P(x | n) = n! prod theta_c**x_c / x_c!. With a concentration A, the shares are
    unknown and integrated out: they are Dirichlet with parameters A theta_c. Records of one place
    are then alike. Places are independent.

    Attributes
    ----------
    schema : Schema
        Schema of the records.
    shares : ndarray of float, shape (cells of the schema,), or None
        The composition, with sum 1; None for equal shares.
    concentration : float or None
        Concentration A > 0; None if the shares are known.
    size : ndarray of float, or None
        Probability of n = 0, 1, ... records, if no table gives their number; None gives every
        number the same weight.
    name : str
        Name of the prior in results.
    """

    schema: Schema
    shares: FloatArray | None = None
    concentration: float | None = None
    size: FloatArray | None = None
    name: str = "uniform on data sets"

    def __post_init__(self) -> None:
        check.instance(self.schema, Schema, "schema")
        check.text(self.name, "name")
        if self.shares is not None:
            object.__setattr__(self, "shares", _composition(self.shares, self.schema))
        if self.concentration is not None:
            value = check.scalar(self.concentration, "concentration", lower=0.0, bounds="(]")
            object.__setattr__(self, "concentration", value)
        if self.size is not None:
            size = check.probability_vector(self.size, "size")
            if size.size > _MAX_SIZE:
                raise ArgumentError(f"size must have at most {_MAX_SIZE} entries, got {size.size}")
            object.__setattr__(self, "size", size)

    @classmethod
    def uniform_data_sets(cls, schema: Schema, *, size: ArrayLike | None = None) -> Self:
        """Return the prior under which all lists of n records are equally probable.

        Records are independent, with equal shares; ``size`` is P(n), if known.
        """
        return cls(schema, size=_size(size))

    @classmethod
    def composition(
        cls,
        schema: Schema,
        counts: ArrayLike,
        *,
        concentration: float | None = None,
        more: float = 0.0,
        size: ArrayLike | None = None,
        name: str = "composition",
    ) -> Self:
        """Return a prior whose expected shares are those of a larger place or a public sample.

        Parameters
        ----------
        schema : Schema
            Schema of the records.
        counts : array_like of float, shape (cells of the schema,)
            Counts or shares, >= 0, not all 0.
        concentration : float, optional
            Concentration A > 0, in records. With n records, a share has the variance of n A / (n +
            A) independent ones.
        more : float, default 0
            Number of records added in equal parts to all cells. With 0, a record that the counts do
            not have is impossible.
        size : array_like of float, optional
            Probability of n = 0, 1, ... records.
        name : str, default "composition"
            Name of the prior in results.

        Returns
        -------
        RecordPrior
            Shares proportional to ``counts + more / cells``.
        """
        extra = check.scalar(more, "more", lower=0.0)
        values = check.real_array(counts, "counts", lower=0.0)
        if values.shape != (check.instance(schema, Schema, "schema").size,):
            raise ShapeError(f"counts must have shape ({schema.size},), got {values.shape}")
        total = float(values.sum()) + extra
        if not total > 0.0:
            raise ArgumentError("counts must not all be 0")
        shares = (values + extra / schema.size) / total
        return cls(schema, shares, concentration, _size(size), name)

    @classmethod
    def trajectories(
        cls, change: PopulationChange, counts: ArrayLike, *, concentration: float | None = None
    ) -> Self:
        r"""Return the prior of a place's records in two years under a law of population change.

        Numbers of records of the first year, of arrivals and of births are Poisson. So the number n
        of trajectories is Poisson, and given n they have the composition of the law. For any mean
        of the first year, each of its records stays, leaves and changes as
        :class:`~bayesrisk.tables.PopulationChange` says. Arrivals remain Poisson.

        Parameters
        ----------
        change : PopulationChange
            The law of change.
        counts : array_like of float, shape (cells of its schema,)
            Expected number of records of every cell in the first year, not all 0: the number of
            people of the place times a composition.
        concentration : float, optional
            Concentration A > 0 of the composition of trajectories.
        """
        from scipy.stats import poisson  # slow to import

        expected = check.instance(change, PopulationChange, "change").trajectories(counts)
        mean = float(expected.sum())
        # Numbers that are left out have a probability of at most 1e-15.
        most = int(poisson.isf(1e-15, mean)) + 1
        if most >= _MAX_SIZE:
            raise ArgumentError(f"counts must add up to less than {_MAX_SIZE}, got {mean:.0f}")
        size = poisson.pmf(np.arange(most + 1), mean)
        schema = change.schema_of_both
        prior = cls.composition(schema, expected, size=size / size.sum(), name="law of change")
        return prior if concentration is None else replace(prior, concentration=concentration)

    def log_size(self, n: IntArray) -> FloatArray:
        """Return log P(n) for numbers of records, or 0 if every number has equal weight."""
        if self.size is None:
            return np.zeros(n.shape)
        with np.errstate(divide="ignore"):
            log_pmf = np.log(self.size[np.minimum(n, self.size.size - 1)])
        return np.where(n < self.size.size, log_pmf, -np.inf)

    @property
    def shares_of_cells(self) -> FloatArray:
        """Expected share of the records in each cell."""
        if self.shares is not None:
            return self.shares
        if self.schema.size > _MAX_CELLS:
            raise ArgumentError(
                "schema", f"must have at most {_MAX_CELLS} cells for this", shown=self.schema.size
            )
        return np.full(self.schema.size, 1.0 / self.schema.size)


def fit_concentration(counts: ArrayLike, shares: ArrayLike) -> float:
    r"""Return the concentration that maximises the likelihood of several places' histograms.

    It maximises the sum over places of log Dirichlet-multinomial(x_p | n_p, A theta) over A in
    (1e-3, 1e9). The largest value stands for independent records.

    Parameters
    ----------
    counts : array_like of int, shape (places, cells)
        Public counts of places, such as block groups.
    shares : array_like of float, shape (cells,)
        The composition theta around them, > 0 in every cell with a count.

    Examples
    --------
    >>> counts = [[9, 1], [2, 8], [7, 3], [1, 9]]
    >>> round(fit_concentration(counts, [0.5, 0.5]), 2)
    2.18
    """
    x = check.count_array(counts, "counts", lower=0).astype(np.float64)
    theta = check.real_array(shares, "shares", lower=0.0)
    if x.ndim != 2 or theta.shape != x.shape[1:]:
        raise ShapeError(
            f"counts and shares must be (places, cells) and (cells,), got {x.shape} and "
            f"{theta.shape}"
        )
    if np.any((theta == 0.0) & (x.sum(axis=0) > 0)):
        raise ArgumentError("shares must be > 0 for every cell that is counted")
    positive = theta > 0.0
    x, theta = x[:, positive], theta[positive] / theta.sum()
    n = x.sum(axis=1)

    def loss(log_a: float) -> float:
        a = float(np.exp(log_a))
        rise = gammaln(a * theta + x) - gammaln(a * theta)
        return -float(rise.sum() + np.sum(gammaln(a) - gammaln(a + n)))

    optimum = minimize_scalar(loss, bounds=(np.log(1e-3), np.log(1e9)), method="bounded")
    return float(np.exp(optimum.x))


def pieces(size: FloatArray) -> IntArray:
    """Return the runs (first, last) of numbers that carry most of a distribution's weight.

    Between two runs every number has less than a hundredth of the weight of some number below, and
    of some number above: mostly none at all.
    """
    below = np.maximum.accumulate(size)
    above = np.maximum.accumulate(size[::-1])[::-1]
    inside = (size > 0.0) & (size >= _SELDOM * np.minimum(below, above))
    edges = np.diff(np.concatenate([[0], inside.astype(np.int64), [0]]))
    return np.stack([np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) - 1], axis=1)


def _composition(shares: ArrayLike, schema: Schema) -> FloatArray:
    composition = check.real_array(shares, "shares", lower=0.0, upper=1.0)
    if composition.shape != (schema.size,):
        raise ShapeError(f"shares must have shape ({schema.size},), got {composition.shape}")
    if abs(float(composition.sum()) - 1.0) > 1e-9:
        raise ArgumentError(f"shares must have sum 1, got {quote(float(composition.sum()))}")
    shared: FloatArray = composition / composition.sum()
    shared.setflags(write=False)
    return shared


def _size(size: ArrayLike | None) -> FloatArray | None:
    return None if size is None else check.probability_vector(size, "size")


# Conditions on records, and the classes of cells that fulfil them.


#: Codes of each attribute that a record may have; an attribute that is not named does not matter.
Condition = Mapping[str, Iterable[int]]


def check_codes(condition: Condition, name: str) -> dict[str, tuple[int, ...]]:
    """Return a condition with its names and codes checked."""
    return {
        check.text(a, name): tuple(
            check.integer(v, f"{name}[{a!r}]") for v in check.items(values, name)
        )
        for a, values in check.mapping(condition, name).items()
    }


def class_indicator(condition: Condition, classes: CellSpace) -> IntArray:
    """Return 1 for each class whose records fulfil a condition, and 0 for the others."""
    factors = condition_factors(condition, classes.schema)
    indicator = np.ones(1, np.int64)
    for name in classes.schema.names:
        first = classes.first[name]
        part = factors[name][0][first] if name in factors else np.ones(first.size, np.int64)
        indicator = np.multiply.outer(indicator, part).ravel()
    return indicator


def condition_factors(condition: Condition, schema: Schema) -> dict[str, IntArray]:
    """Return a condition as the factors of a table with one cell."""
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
    """Number of records of a place that the adversary knows to satisfy a condition.

    - ``at least``: the adversary knows ``count`` people of the place who all satisfy ``where``;
      their identity says nothing else. About a person whose attributes are all known, nothing is
      left to learn. The others have the law of the prior *given* these people.
    - ``exactly``: moreover, nobody else of the place satisfies it.

    Use it for a question about one place. A condition may name only some attributes, and classes of
    records are as fine as it needs. In an audit, all attributes of all known people are known, and
    the same tables serve many targets. There the known records are subtracted from the counts
    instead (``MicrodataSystem.without_records``, with a prior of the others). This is quicker, as
    it keeps the classes of the tables, and gives the same law. A condition cannot give the number
    of people of a place; a prior can (``size``).

    Attributes
    ----------
    where : mapping of str to iterable of int
        Codes that a record may have, for some of the attributes.
    count : int, default 1
        Number of records, >= 0.
    relation : {"at least", "exactly"}
        Whether there may be more records.
    place : str, optional
        Code of a finest place; required if there are several.
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
        """Return the people of a file as knowledge, with a count for equal people.

        One row is one person, with a column of whole codes for each known attribute. ``place``
        names the column with the code of the person's finest place. With ``exactly``, the file has
        everybody of these places with the attributes of one of its people.

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
        """Return an exact condition as a table of one cell, or no table for ``at_least``."""
        if self.relation == AT_LEAST:
            return []
        return [Table("known", ("known",), condition_factors(self.where, schema))]

    def __str__(self) -> str:
        kinds = ", ".join(f"{a} {'/'.join(map(str, v))}" for a, v in self.where.items())
        return f"{kinds or 'anybody'} known in {self.place}" if self.place else kinds or "anybody"


@dataclass(frozen=True)
class KnownGroup:
    """Records of one place about which the adversary knows the same."""

    place: int  # position of the finest place
    classes: IntArray  # classes that they may have
    mass: FloatArray  # prior share of each of these
    count: int  # how many they are
    name: str  # how messages and rankings call them


@dataclass(frozen=True)
class Knowledge:
    """The adversary's knowledge of a place's records, class by class."""

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
    """Return the adversary's knowledge of people, as counts by class and groups of classes."""
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
