"""Specifications of mechanisms: enough for anyone to write the likelihood of a release.

A specification holds the likelihood of every published table, one of five kinds, as data: nobody
has to know a mechanism by name to read what it made.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError

_KEYS = {"mechanism", "parameters", "tables", "others", "places"}
_PLACES = ("public", "occupied")
_LAWS = ("discrete-gaussian", "discrete-laplace")
_ROUNDINGS = ("nearest", "random")
_MAX_BASE = 2**31

#: A table at a level of the geography: ``(level, table)``.
Key = tuple[str, str]


# -----------------------------------------------------------------------------
# Likelihoods of a published count given the true one.


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a published count given the true one; each kind derives from it.

    Attributes
    ----------
    kind : str
        Name of the kind in ``_release.json``.
    exact : bool
        Whether a count that is published is the true one.
    random : bool
        Whether another release of the same records may publish another count.
    """

    kind: ClassVar[str] = ""
    exact: ClassVar[bool] = False

    @property
    def random(self) -> bool:
        """Whether chance has a part in what is published."""
        return not self.exact

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray | None:
        """Return P(released | true count) of one cell, where it has a closed form.

        Parameters
        ----------
        released, true_count : array_like of int
            Released and possible true counts; they broadcast.

        Returns
        -------
        ndarray of float or None
            Probabilities in the broadcast shape; None where there is only simulation.
        """
        _two_counts(released, true_count)
        return None

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return the counts that may be published for true counts between two numbers.

        Parameters
        ----------
        low, high : int
            Smallest and largest true count.
        tail : float
            Probability that may be left out on each side, in (0, 1).

        Returns
        -------
        ndarray of int64
            In increasing order; without a closed form, the true counts themselves.
        """
        return np.arange(low, high + 1, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and its parameters in the types of JSON; exact fractions are strings."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"likelihood": self.kind, **{n: _plain(v, n) for n, v in values.items()}}


@dataclass(frozen=True)
class TrueCounts(Likelihood):
    """Every count is published as it is.

    Examples
    --------
    >>> TrueCounts().probability([3, 4], 4).tolist()
    [0.0, 1.0]
    """

    kind: ClassVar[str] = "true-counts"
    exact: ClassVar[bool] = True

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return 1 where the counts are equal, and 0 elsewhere."""
        out, count = _two_counts(released, true_count)
        return np.asarray(out == count, dtype=np.float64)


@dataclass(frozen=True)
class SuppressedCounts(Likelihood):
    """Some counts are withheld; those that are published are true.

    Which counts are withheld depends on all of them together, so that the likelihood of a single
    cell has no closed form.
    """

    kind: ClassVar[str] = "suppressed"
    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class SimulationOnly(Likelihood):
    """The likelihood is not known in closed form: it is found by running the mechanism."""

    kind: ClassVar[str] = "simulation"


@dataclass(frozen=True)
class NoiseSpec(Likelihood):
    """The law of the independent noise in every cell of a table, exactly.

    Attributes
    ----------
    law : str
        ``discrete-gaussian`` or ``discrete-laplace``.
    scale : Fraction
        ``sigma2`` of :class:`DiscreteGaussian`, or the ``scale`` b of :class:`DiscreteLaplace`;
        > 0.

    Examples
    --------
    >>> NoiseSpec("discrete-gaussian", Fraction(504, 100)).to_law()
    DiscreteGaussian(sigma2=5.04, loc=0)
    """

    kind: ClassVar[str] = "noise"

    law: str
    scale: Fraction

    def __post_init__(self) -> None:
        check.choice(self.law, "law", _LAWS)
        scale = exact_number(self.scale, "scale")
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {shown(self.scale)}")
        object.__setattr__(self, "scale", scale)

    def to_law(self) -> DiscreteGaussian | DiscreteLaplace:
        """Return the law of the noise, around 0, to evaluate and to draw from."""
        kind = DiscreteGaussian if self.law == "discrete-gaussian" else DiscreteLaplace
        return kind(self.scale)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return the probability of the noise between the counts, as accurate as the law's pmf."""
        out, count = _two_counts(released, true_count)
        return np.asarray(self.to_law().pmf(out - count), dtype=np.float64)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return every whole number from the ``tail`` quantile of ``low`` to that of ``high``."""
        law = self.to_law()
        return np.arange(low + int(law.ppf(tail)), high + int(law.isf(tail)) + 1, dtype=np.int64)


@dataclass(frozen=True)
class RoundingSpec(Likelihood):
    """Every count is rounded to a multiple of a base, each by itself.

    Attributes
    ----------
    base : int
        Base, in [1, 2**31].
    method : str
        ``nearest``, halves upwards, or ``random``, so that the mean is the count; see
        :func:`rounding_probability`.

    Examples
    --------
    >>> RoundingSpec(5, "random").probability([0, 5, 10], 6).tolist()
    [0.0, 0.8, 0.2]
    """

    kind: ClassVar[str] = "rounding"

    base: int
    method: str

    def __post_init__(self) -> None:
        base = check.integer(self.base, "base", lower=1, upper=_MAX_BASE)
        object.__setattr__(self, "base", base)
        check.choice(self.method, "method", _ROUNDINGS)

    @property
    def random(self) -> bool:
        """Whether a count may be rounded up or down by chance."""
        return self.method == "random"

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return P(released | true count), as :func:`rounding_probability`, exact to rounding."""
        return rounding_probability(released, true_count, base=self.base, method=self.method)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return all multiples of the base from below ``low`` to above ``high``."""
        base = self.base
        return np.arange(low // base, -(-high // base) + 1, dtype=np.int64) * base


#: Every kind that ``_release.json`` can hold.
KINDS: dict[str, type[Likelihood]] = {
    made.kind: made
    for made in (TrueCounts, NoiseSpec, RoundingSpec, SuppressedCounts, SimulationOnly)
}


def _read_likelihood(document: object, source: str) -> Likelihood:
    """Return the likelihood that :meth:`Likelihood.to_dict` wrote."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {shown(document)}")
    kind = document.get("likelihood")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(
            f"{source}: likelihood must be one of {', '.join(KINDS)}, got {shown(kind)}"
        )
    names = {f.name for f in fields(KINDS[kind])}
    same_keys(document, {"likelihood", *names}, source)
    return KINDS[kind](**{name: document[name] for name in names})


def rounding_probability(
    released: ArrayLike, true_count: ArrayLike, *, base: int, method: str
) -> FloatArray:
    r"""Return P(released | true count) of a count that was rounded to a multiple of ``base``.

    With r the remainder of the true count x modulo the base b, random rounding gives x - r with
    probability 1 - r / b and x - r + b with probability r / b, so that its mean is x.  Rounding
    to the nearest multiple is certain; halves go up.

    Parameters
    ----------
    released, true_count : array_like of int
        Released and possible true counts; they broadcast.
    base : int
        Base b, >= 1.
    method : {"nearest", "random"}
        How counts are rounded.

    Returns
    -------
    ndarray of float
        Probabilities, exact to rounding, in the broadcast shape.

    Examples
    --------
    >>> rounding_probability([0, 5, 10], 6, base=5, method="random").tolist()
    [0.0, 0.8, 0.2]
    >>> rounding_probability([0, 5, 10], 6, base=5, method="nearest").tolist()
    [0.0, 1.0, 0.0]
    """
    base = check.integer(base, "base", lower=1)
    check.choice(method, "method", _ROUNDINGS)
    out, count = _two_counts(released, true_count)
    if method == "nearest":
        return np.asarray(out == (2 * count + base) // (2 * base) * base, dtype=float)
    below = count // base * base
    share = (count - below) / base
    return np.where(out == below, 1.0 - share, np.where(out == below + base, share, 0.0))


def _two_counts(released: ArrayLike, true_count: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return both as whole numbers that broadcast."""
    out = check.count_array(released, "released")
    count = check.count_array(true_count, "true_count")
    check.broadcast(released=out, true_count=count)
    return out, count


# -----------------------------------------------------------------------------
# A specification, and JSON with exact numbers.


@displayed
@dataclass(frozen=True)
class MechanismSpec:
    """The specification of a mechanism, as public as the tables it made.

    Attributes
    ----------
    mechanism : str
        Name in the registry.
    parameters : mapping
        Keyword arguments that build the mechanism again, in the types of JSON; exact fractions
        are strings such as ``"165/4099"``.
    tables : mapping of (level, table) to Likelihood
        What a count of the table says about the true one: :class:`TrueCounts`,
        :class:`NoiseSpec`, :class:`RoundingSpec`, :class:`SuppressedCounts` or
        :class:`SimulationOnly`.  The spec of a release names every published table.
    others : Likelihood, default SimulationOnly()
        The same, for every table that is not named.
    places : {"public", "occupied"}, optional
        Where the list of the published places comes from, of the spec of a release: a public list,
        or who lives where.  The second is a fact about the records that is published exactly.

    Examples
    --------
    >>> from bayesrisk.release import NoiseSpec, RoundingSpec
    >>> spec = MechanismSpec(
    ...     "mine", {"base": 5}, {("block", "total"): NoiseSpec("discrete-gaussian", 5)},
    ...     others=RoundingSpec(5, "nearest"),
    ... )
    >>> spec.likelihood("block", "total")
    NoiseSpec(law='discrete-gaussian', scale=Fraction(5, 1))
    >>> spec.likelihood("block", "sex")
    RoundingSpec(base=5, method='nearest')
    >>> MechanismSpec.from_dict(spec.to_dict()) == spec
    True
    """

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[Key, Likelihood] = field(default_factory=dict)
    others: Likelihood = field(default_factory=SimulationOnly)
    places: str | None = None

    def __post_init__(self) -> None:
        check.text(self.mechanism, "mechanism")
        if self.places is not None:
            check.choice(self.places, "places", _PLACES)
        check.mapping(self.parameters, "parameters")
        for key, entry in check.mapping(self.tables, "tables").items():
            texts = isinstance(key, tuple) and all(isinstance(part, str) for part in key)
            if not texts or len(key) != 2:
                raise ArgumentTypeError(f"tables must name (level, table), got {shown(key)}")
            _check_likelihood(entry, f"tables[{key!r}]")
        _check_likelihood(self.others, "others")
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        object.__setattr__(self, "tables", dict(self.tables))

    @property
    def noise(self) -> dict[Key, NoiseSpec]:
        """Law of the noise of each named table that has independent noise in every cell."""
        return {key: part for key, part in self.tables.items() if isinstance(part, NoiseSpec)}

    @property
    def invariants(self) -> tuple[Key, ...]:
        """Named tables that are published as they are, with nothing withheld."""
        return tuple(key for key, part in self.tables.items() if isinstance(part, TrueCounts))

    @property
    def true_counts(self) -> bool:
        """Whether every count that is published, of whatever table, is the true one."""
        return self.others.exact and all(part.exact for part in self.tables.values())

    def likelihood(self, level: str, table: str) -> Likelihood:
        """Return the likelihood of a published count of a table: its own, or ``others``."""
        key = check.text(level, "level"), check.text(table, "table")
        return self.tables.get(key, self.others)

    def law(self, level: str, table: str) -> NoiseLaw | None:
        """Return the law of released minus true count in the cells of a table.

        None where the noise is not independent of the count or of other cells, or there is none.
        """
        found = self.likelihood(level, table)
        return found.to_law() if isinstance(found, NoiseSpec) else None

    def count_likelihood(
        self, released: ArrayLike, true_count: ArrayLike, *, level: str, table: str
    ) -> FloatArray | None:
        """Return P(released | true count) of one cell of a table, where it has a closed form.

        The counts broadcast; see :meth:`Likelihood.probability`.
        """
        return self.likelihood(level, table).probability(released, true_count)

    def for_tables(self, keys: Iterable[Key]) -> Self:
        """Return the spec with the likelihood of these published tables, every one named."""
        wanted = list(keys)
        if set(wanted) == set(self.tables):
            return self
        return replace(self, tables={key: self.likelihood(*key) for key in wanted})

    def to_dict(self) -> dict[str, Any]:
        """Return the spec in the types of JSON, as :meth:`from_dict` reads it."""
        return {
            "mechanism": self.mechanism,
            "parameters": plain(self.parameters, "parameters"),
            "tables": [
                {"level": level, "table": table, **part.to_dict()}
                for (level, table), part in self.tables.items()
            ],
            "others": self.others.to_dict(),
            "places": self.places,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, source: str = "spec document") -> Self:
        """Return the spec that :meth:`to_dict` wrote; messages call it ``source``.

        Raises
        ------
        DataError
            If a key is missing, unknown or of the wrong type.
        """
        check.text(source, "source")
        same_keys(document, _KEYS, source)
        try:
            tables: dict[Key, Likelihood] = {}
            for row in document["tables"]:
                part = dict(row)
                key = part.pop("level", None), part.pop("table", None)
                if key in tables:
                    raise DataError(f"{source}.tables: {key!r} is there twice")
                tables[key] = _read_likelihood(part, f"{source}.tables")
            others = _read_likelihood(document["others"], f"{source}.others")
            about = document["mechanism"], document["parameters"]
            return cls(*about, tables, others, document["places"])
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{source}: {error}") from error


def _check_likelihood(value: object, name: str) -> None:
    """Refuse what files cannot hold: what is written must be readable by anybody."""
    if type(value) not in KINDS.values():
        raise ArgumentTypeError(
            f"{name} must be a likelihood, such as TrueCounts() or a NoiseSpec, got {shown(value)}"
        )


def plain(value: object, name: str) -> object:
    """Return a value in the types of JSON; exact fractions become strings."""
    try:
        return _plain(value, name)
    except RecursionError as error:
        raise ArgumentTypeError(
            f"{name} must not be nested so deeply, got {shown(value)}"
        ) from error


def _plain(value: object, name: str) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(f"{name} must have text as keys, got {shown(key)}")
        return {key: _plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, float, np.floating)):
        return [_plain(item, f"{name}[{i}]") for i, item in enumerate(check.items(value, name))]
    raise ArgumentTypeError(f"{name} must be finite and fit in JSON, got {shown(value)}")


def same_keys(document: object, names: set[str], source: str) -> None:
    """Check that an object has exactly these keys."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {shown(document)}")
    for name in sorted(names - set(document)):
        raise DataError(f"{source}: key {name!r} is missing")
    for name in sorted(set(document) - names):
        raise DataError(f"{source}: key {name!r} is unknown")
