"""Specifications of mechanisms, from which anyone can write a release's likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.tables.likelihoods import (
    KINDS,
    CellKeySpec,
    Likelihood,
    NoiseSpec,
    RangeSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
    plain,
    read_likelihood,
    same_keys,
)
from bayesrisk.tables.workload import Key

_SPEC_KEYS = {"mechanism", "parameters", "tables", "others", "places"}
_PLACES = ("public", "occupied")


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
        What a published count says about the true one: :class:`TrueCounts`,
        :class:`NoiseSpec`, :class:`RoundingSpec`, :class:`RangeSpec`, :class:`SuppressedCounts`
        or :class:`SimulationOnly`.  The spec of a release names every published table.
    others : Likelihood, default SimulationOnly()
        The same for every table that is not named.
    places : {"public", "occupied"}, optional
        For the spec of a release: where its list of places comes from. It is a public list, or the
        places where someone lives. The latter is a fact about the records, published exactly.

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
                raise ArgumentTypeError("tables", "must name (level, table)", got=key)
            _check_likelihood(entry, f"tables[{key!r}]")
        _check_likelihood(self.others, "others")
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        object.__setattr__(self, "tables", dict(self.tables))

    @property
    def noise(self) -> dict[Key, NoiseSpec]:
        """Noise law of each named table that has independent noise in every cell."""
        return {key: part for key, part in self.tables.items() if isinstance(part, NoiseSpec)}

    @property
    def invariants(self) -> tuple[Key, ...]:
        """Named tables that are published unchanged, with nothing withheld."""
        return tuple(key for key, part in self.tables.items() if isinstance(part, TrueCounts))

    @property
    def true_counts(self) -> bool:
        """Whether every published count of every table is the true one."""
        return self.others.exact and all(part.exact for part in self.tables.values())

    def likelihood(self, level: str, table: str) -> Likelihood:
        """Return the likelihood of a table's published counts, ``others`` if not named."""
        key = check.text(level, "level"), check.text(table, "table")
        return self.tables.get(key, self.others)

    def law(self, level: str, table: str) -> NoiseLaw | None:
        """Return the law of released minus true count in the cells of a table.

        It is None if the noise depends on the count or on other cells, or if there is none.
        """
        likelihood = self.likelihood(level, table)
        return likelihood.to_law() if isinstance(likelihood, NoiseSpec) else None

    def for_tables(self, keys: Iterable[Key]) -> Self:
        """Return the spec with exactly these published tables named."""
        wanted = list(keys)
        if set(wanted) == set(self.tables):
            return self
        return replace(self, tables={key: self.likelihood(*key) for key in wanted})

    def to_dict(self) -> dict[str, Any]:
        """Return the spec in JSON types, as :meth:`from_dict` reads it."""
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
        """Return the spec from what :meth:`to_dict` wrote; errors call it ``source``."""
        check.text(source, "source")
        same_keys(document, _SPEC_KEYS, source)
        try:
            tables: dict[Key, Likelihood] = {}
            for row in document["tables"]:
                part = dict(row)
                key = part.pop("level", None), part.pop("table", None)
                if key in tables:
                    raise DataError(f"{source}.tables: {key!r} is there twice")
                tables[key] = read_likelihood(part, f"{source}.tables")
            default = read_likelihood(document["others"], f"{source}.others")
            mechanism, parameters = document["mechanism"], document["parameters"]
            return cls(mechanism, parameters, tables, default, document["places"])
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{source}: {error}") from error


def _check_likelihood(value: object, name: str) -> None:
    """Raise unless a value is a likelihood that files can hold."""
    if type(value) not in KINDS.values():
        raise ArgumentTypeError(
            name, "must be a likelihood, such as TrueCounts() or a NoiseSpec", got=value
        )


#: Where the list of published places comes from, by the word for it in a spec.
PLACES = {
    "public": "from a public list, the same whoever lives where",
    "occupied": "those with a record, a fact about the records",
    None: "where the list comes from is not said",
}


def law_words(law: Likelihood, withheld: int | None = None) -> str:
    """Return the law of a published count in words; ``withheld`` is the number withheld."""
    if isinstance(law, NoiseSpec):
        scale = "sigma^2" if law.law == "discrete-gaussian" else "scale"
        name = "discrete Gaussian" if scale == "sigma^2" else "discrete Laplace"
        return f"the true count plus {name} noise of {scale} {float(law.scale):.6g} in every cell"
    if isinstance(law, RoundingSpec):
        method = "at random, up or down" if law.method == "random" else "the nearest, halves up"
        return f"the true count rounded to a multiple of {law.base}, {method}"
    if isinstance(law, RangeSpec):
        ends = zip(law.edges, [*law.edges[1:], None], strict=True)
        stated = [f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in ends if b is not None]
        last = f"{law.edges[-1]} and more"
        if law.step is not None:
            last += " as they are" if law.step == 1 else f" in ranges of {law.step}"
        return f"the range of the true count: {', '.join([*stated, last])}"
    if isinstance(law, CellKeySpec):
        low, high = (f(d for row in law.shares for d, _ in row) for f in (min, max))
        return (
            f"the true count changed by {low} to {high}, as a table says for the count and the key "
            "of its records: the same people change alike in every table"
        )
    if isinstance(law, SuppressedCounts):
        low, high = law.withheld
        bounds = f" of {low} to {high}" if law.high is not None else ""
        rule = "by this rule" if bounds else "which ones, depends on the records"
        number = "some" if withheld is None else f"{withheld}"
        return f"true counts, but {number}{bounds} are withheld; {rule}"
    if isinstance(law, SimulationOnly):
        return "a law without closed form, known by running the mechanism"
    return "true counts"
