"""What crosses from the custodian to everybody else: the tables and how they were protected.

A :class:`MechanismSpec` says what was done, apart from the code that does it, completely enough
for anyone to write the likelihood.  A :class:`Release` is a spec with the tables it gave; neither
holds a seed, a record or an unprotected count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.accounting import exact_number
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.distributions.interfaces import NoiseLaw
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.release._folder import RELEASE_FILE, plain, same_keys, write_release
from bayesrisk.tables.published import PublishedTables

__all__ = ["MechanismSpec", "NoiseSpec", "Release", "rounding_probability"]

_FORMAT = 2
_KEYS = {"format", "version", "simulation", "spec", "diagnostics"}
_LAWS = ("discrete-gaussian", "discrete-laplace")
_ROUNDINGS = ("nearest", "random")

#: A table at a level of the geography: ``(level, table)``.
Key = tuple[str, str]


@dataclass(frozen=True)
class NoiseSpec:
    """The law of the noise in every cell of a table, exactly.

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

    law: str
    scale: Fraction

    def __post_init__(self) -> None:
        check.choice(self.law, "law", _LAWS)
        scale = exact_number(self.scale, "scale")
        if scale <= 0:
            raise ArgumentError(f"scale must be > 0, got {shown(self.scale)}")
        object.__setattr__(self, "scale", scale)

    def to_law(self) -> DiscreteGaussian | DiscreteLaplace:
        """Return the law, ready to evaluate and to draw from.

        Returns
        -------
        DiscreteGaussian or DiscreteLaplace
            The law of the noise, around 0.

        Raises
        ------
        ArgumentError
            If the scale is outside the range of the law.
        """
        if self.law == "discrete-gaussian":
            return DiscreteGaussian(self.scale)
        return DiscreteLaplace(self.scale)


@displayed
@dataclass(frozen=True)
class MechanismSpec:
    """What a mechanism does, as public as the tables it made.

    Attributes
    ----------
    mechanism : str
        Name in the registry.
    parameters : mapping
        Keyword arguments that build the mechanism again, in the types of JSON; exact fractions
        are strings such as ``"165/4099"``.
    noise : mapping of (level, table) to NoiseSpec
        Law of the noise of each table that has independent noise in every cell.
    invariants : tuple of (level, table)
        Tables that are published as they are.

    Examples
    --------
    >>> spec = MechanismSpec(
    ...     "discrete-gaussian",
    ...     {"sensitivity": "add-remove"},
    ...     {("block", "total"): NoiseSpec("discrete-gaussian", Fraction(5))},
    ... )
    >>> MechanismSpec.from_dict(spec.to_dict()) == spec
    True
    """

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    noise: Mapping[Key, NoiseSpec] = field(default_factory=dict)
    invariants: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        check.text(self.mechanism, "mechanism")
        check.mapping(self.parameters, "parameters")
        noise = {_key(key, "noise"): law for key, law in check.mapping(self.noise, "noise").items()}
        for key, law in noise.items():
            if not isinstance(law, NoiseSpec):
                raise ArgumentTypeError(f"noise[{key!r}] must be a NoiseSpec, got {shown(law)}")
        object.__setattr__(self, "parameters", plain(self.parameters, "parameters"))
        object.__setattr__(self, "noise", noise)
        invariants = tuple(
            _key(key, "invariants") for key in check.items(self.invariants, "invariants")
        )
        object.__setattr__(self, "invariants", invariants)

    def law(self, level: str, table: str) -> NoiseLaw | None:
        """Return the law of the noise in the cells of a table, if it has one.

        Parameters
        ----------
        level : str
            Level of the geography.
        table : str
            Name of the table.

        Returns
        -------
        NoiseLaw or None
            Law of released minus true count; None where the noise is not independent of the
            count or of other cells, or there is none.
        """
        noise = self.noise.get((level, table))
        return None if noise is None else noise.to_law()

    def count_likelihood(
        self, released: ArrayLike, true_count: ArrayLike, *, level: str, table: str
    ) -> Any:
        """Return P(released | true count) of one cell, where it is known in closed form.

        Parameters
        ----------
        released, true_count : array_like of int
            Released and possible true counts; they broadcast.
        level, table : str
            Where the cell is.

        Returns
        -------
        ndarray of float or None
            Probabilities, for independent noise, rounding and the identity; None for every other
            mechanism, whose likelihood must be simulated.
        """
        law = self.noise.get((level, table))
        if self.mechanism == "rounding":
            base, method = self.parameters["base"], self.parameters["method"]
            return rounding_probability(released, true_count, base=base, method=method)
        if law is None and self.mechanism != "identity" and (level, table) not in self.invariants:
            return None
        counts = (
            check.count_array(released, "released"),
            check.count_array(true_count, "true_count"),
        )
        check.broadcast(released=counts[0], true_count=counts[1])
        difference = counts[0] - counts[1]
        return (difference == 0).astype(float) if law is None else law.to_law().pmf(difference)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec in the types of JSON.

        Returns
        -------
        dict
            What :meth:`from_dict` reads.
        """
        noise = [
            {"level": level, "table": table, "law": spec.law, "scale": str(spec.scale)}
            for (level, table), spec in self.noise.items()
        ]
        return {
            "mechanism": self.mechanism,
            "parameters": plain(self.parameters, "parameters"),
            "noise": noise,
            "invariants": [list(key) for key in self.invariants],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, source: str = "spec") -> Self:
        """Return the spec that :meth:`to_dict` wrote.

        Parameters
        ----------
        document : mapping
            As JSON gives it.
        source : str, default "spec"
            How messages call it.

        Returns
        -------
        MechanismSpec
            The spec.

        Raises
        ------
        DataError
            If a key is missing, unknown or of the wrong type.
        """
        check.text(source, "source")
        if not isinstance(document, Mapping):
            raise DataError(f"{source}: document must be an object, got {shown(document)}")
        same_keys(document, {"mechanism", "parameters", "noise", "invariants"}, source)
        try:
            noise = {}
            for row in document["noise"]:
                same_keys(row, {"level", "table", "law", "scale"}, f"{source}.noise")
                key = (row["level"], row["table"])
                if key in noise:
                    raise DataError(f"{source}.noise: {key!r} is there twice")
                noise[key] = NoiseSpec(row["law"], row["scale"])
            invariants = tuple(tuple(key) for key in document["invariants"])
            return cls(document["mechanism"], document["parameters"], noise, invariants)
        except (ArgumentError, TypeError, AttributeError) as error:
            raise DataError(f"{source}: {error}") from error


@displayed
@dataclass(frozen=True)
class Release:
    """Published tables with the spec of what protects them.

    Attributes
    ----------
    spec : MechanismSpec
        What was done.
    tables : PublishedTables
        The counts.
    diagnostics : mapping of str to float
        Public facts about the run, such as the realised swap rate where it is published.
    simulation : bool, default True
        True unless the draws came from fresh entropy of the operating system, which only the
        mechanism can say. Noise from a seed that somebody may guess protects nothing: a release
        that does not say otherwise makes no claim of protection.
    """

    spec: MechanismSpec
    tables: PublishedTables
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    simulation: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.spec, MechanismSpec):
            raise ArgumentTypeError(f"spec must be a MechanismSpec, got {shown(self.spec)}")
        if not isinstance(self.tables, PublishedTables):
            raise ArgumentTypeError(f"tables must be PublishedTables, got {shown(self.tables)}")
        for what, keys in (("noise", self.spec.noise), ("invariants", self.spec.invariants)):
            for key in keys:
                if key not in self.tables.counts:
                    raise ArgumentError(f"spec.{what} names {key!r}, which is not released")
        if not isinstance(self.simulation, bool):
            raise ArgumentTypeError(
                f"simulation must be True or False, got {shown(self.simulation)}"
            )
        values = {
            check.text(name, "diagnostics"): check.scalar(value, f"diagnostics[{name!r}]")
            for name, value in check.mapping(self.diagnostics, "diagnostics").items()
        }
        object.__setattr__(self, "diagnostics", values)

    def write(self, folder: str | Path) -> Path:
        """Write the tables in the exchange form, with ``_release.json`` beside them.

        Parameters
        ----------
        folder : path-like
            New or empty folder; it appears whole or not at all.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        OutputError
            If the folder holds something, or cannot be written.
        """
        document = {
            "format": _FORMAT,
            "version": __version__,
            "simulation": self.simulation,
            "spec": self.spec.to_dict(),
            "diagnostics": dict(self.diagnostics),
        }
        return write_release(check.path(folder, "folder"), self.tables, document)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read a release that :meth:`write` wrote.

        Parameters
        ----------
        folder : path-like
            Folder of the release.

        Returns
        -------
        Release
            Spec, tables and diagnostics.

        Raises
        ------
        DataError
            If a file is missing, truncated or breaks its format.
        """
        file = check.path(folder, "folder") / RELEASE_FILE
        document = _files.read_document(file)
        same_keys(document, _KEYS, str(file))
        if document["format"] != _FORMAT:
            raise DataError(f"{file}: format must be {_FORMAT}, got {shown(document['format'])}")
        spec = MechanismSpec.from_dict(document["spec"], source=f"{file}: spec")
        try:
            tables, found = PublishedTables.read(folder), document["diagnostics"]
            return cls(spec, tables, found, simulation=document["simulation"])
        except (ArgumentError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{file}: {error}") from error


def rounding_probability(
    released: ArrayLike, true_count: ArrayLike, *, base: int, method: str
) -> NDArray[np.float64]:
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

    Raises
    ------
    ArgumentError
        If the base is not positive or the method unknown.
    ShapeError
        If the counts do not broadcast.

    Examples
    --------
    >>> rounding_probability([0, 5, 10], 6, base=5, method="random").tolist()
    [0.0, 0.8, 0.2]
    >>> rounding_probability([0, 5, 10], 6, base=5, method="nearest").tolist()
    [0.0, 1.0, 0.0]
    """
    base = check.integer(base, "base", lower=1)
    check.choice(method, "method", _ROUNDINGS)
    out, count = (
        check.count_array(released, "released"),
        check.count_array(true_count, "true_count"),
    )
    check.broadcast(released=out, true_count=count)
    if method == "nearest":
        return np.asarray(out == (2 * count + base) // (2 * base) * base, dtype=float)
    below = count // base * base
    share = (count - below) / base
    return np.where(out == below, 1.0 - share, np.where(out == below + base, share, 0.0))


def _key(key: Any, name: str) -> Key:
    """Return ``(level, table)``."""
    if not isinstance(key, tuple) or len(key) != 2 or not all(isinstance(k, str) for k in key):
        raise ArgumentTypeError(f"{name} must name (level, table), got {shown(key)}")
    return key
