"""Likelihoods of a published count given the true one: five kinds, as data.

A specification holds one of them for every published table, so that nobody has to know a mechanism
by name to read what it made.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.tables import exchange
from bayesrisk.tables.exchange import MANIFEST
from bayesrisk.tables.published import PublishedTables

# -----------------------------------------------------------------------------
# A release as files: JSON with exact numbers, and a folder that appears whole or not at all.


#: Readers of Parquet folders pass over names that start with an underscore.
RELEASE_FILE = "_release.json"


def write_release(
    folder: Path, tables: PublishedTables, document: Mapping[str, Any], *, replace: bool
) -> Path:
    """Write tables and document as one folder, whole or as before; each names the other."""

    def check_folder(target: Path) -> None:
        if replace:
            exchange.check_folder(target, replace=True, also=RELEASE_FILE)
        else:
            _files.new_folder(target)

    with _files.whole_folder(folder, check_folder) as made:
        exchange.fill(tables.content, made, release=_files.document_digest(document))
        bound = {**document, "tables": _files.digest(made / MANIFEST)}
        _files.write_bytes(made / RELEASE_FILE, _files.sealed(bound))
    return folder


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


# -----------------------------------------------------------------------------


_LAWS = ("discrete-gaussian", "discrete-laplace")
_ROUNDINGS = ("nearest", "random")
_MAX_BASE = 2**31


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a published count given the true one; each kind derives from it.

    Attributes
    ----------
    kind : str
        Name of the kind in ``_release.json``.
    exact : bool
        Whether a count that is published is the true one.
    """

    kind: ClassVar[str] = ""
    exact: ClassVar[bool] = False

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
        """Return the kind and its parameters in the types of JSON.

        Returns
        -------
        dict
            What ``read_likelihood`` reads; exact fractions are strings.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {n: str(v) if isinstance(v, Fraction) else v for n, v in values.items()}
        return {"likelihood": self.kind, **plain}


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
        """Return 1 where the counts are equal, and 0 elsewhere.

        Parameters
        ----------
        released, true_count : array_like of int
            Released and possible true counts; they broadcast.

        Returns
        -------
        ndarray of float
            Zeros and ones in the broadcast shape.
        """
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

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return the probability of the noise that lies between the two counts.

        Parameters
        ----------
        released, true_count : array_like of int
            Released and possible true counts; they broadcast.

        Returns
        -------
        ndarray of float
            Probabilities in the broadcast shape, as accurate as ``pmf`` of the law.
        """
        out, count = _two_counts(released, true_count)
        return np.asarray(self.to_law().pmf(out - count), dtype=np.float64)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return the counts that may be published for true counts between two numbers.

        Parameters
        ----------
        low, high : int
            Smallest and largest true count.
        tail : float
            Probability that is left out on each side, at most; in (0, 1).

        Returns
        -------
        ndarray of int64
            Every whole number from the quantile of ``low`` to that of ``high``.
        """
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

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return P(released | true count), as :func:`rounding_probability`.

        Parameters
        ----------
        released, true_count : array_like of int
            Released and possible true counts; they broadcast.

        Returns
        -------
        ndarray of float
            Probabilities in the broadcast shape, exact to rounding.
        """
        return rounding_probability(released, true_count, base=self.base, method=self.method)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return the counts that may be published for true counts between two numbers.

        Parameters
        ----------
        low, high : int
            Smallest and largest true count.
        tail : float
            Nothing is left out here, whatever it is.

        Returns
        -------
        ndarray of int64
            Multiples of the base, from the one below ``low`` to the one above ``high``.
        """
        base = self.base
        return np.arange(low // base, -(-high // base) + 1, dtype=np.int64) * base


#: Every kind that ``_release.json`` can hold.
KINDS: dict[str, type[Likelihood]] = {
    made.kind: made
    for made in (TrueCounts, NoiseSpec, RoundingSpec, SuppressedCounts, SimulationOnly)
}


def read_likelihood(document: Mapping[str, Any], *, source: str) -> Likelihood:
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
    out, count = (
        check.count_array(released, "released"),
        check.count_array(true_count, "true_count"),
    )
    check.broadcast(released=out, true_count=count)
    return out, count
