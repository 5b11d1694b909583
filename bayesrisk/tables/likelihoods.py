"""Likelihoods of a published count given the true one, as data that files can hold.

A likelihood gives the probability of each published number given the true count, if that has a
closed form. It always gives the support, the range of true counts behind a published number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.accounting.budget import exact_number, positive
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote

_LAWS = ("discrete-gaussian", "discrete-laplace")
ROUNDINGS = ("nearest", "random")
_MAX_BASE = 2**31
#: More than any count: the upper end of a support that nothing bounds.
UNBOUNDED = 2**52


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a published count given the true one; base of all kinds.

    ``kind`` is its name in ``_release.json``.
    """

    kind: ClassVar[str] = ""

    @property
    def exact(self) -> bool:
        """Whether published counts are the true ones."""
        return False

    @property
    def random(self) -> bool:
        """Whether another release of the same records may publish another count."""
        return not self.exact

    @property
    def bounded(self) -> bool:
        """Whether every published count bounds the true one from above."""
        return self.exact

    @property
    def limiting(self) -> bool:
        """Whether published counts exclude some true ones for certain."""
        return self.bounded

    @property
    def independent(self) -> bool:
        """Whether the probability of several published counts is the product of the single ones."""
        return True

    @property
    def closed(self) -> bool:
        """Whether all published counts together have a likelihood in closed form."""
        return self.exact or (self.independent and self.probability(0, 0) is not None)

    @property
    def withheld(self) -> tuple[int, int]:
        """Smallest and largest count of a withheld cell; ``UNBOUNDED`` without a limit."""
        return 0, UNBOUNDED

    @property
    def rule(self) -> RangeSpec | None:
        """The law of a withheld cell, published as its smallest count; None if any is possible."""
        low, high = self.withheld
        if (low, high) == (0, UNBOUNDED):
            return None
        edges = (0, low) if low else (0,)
        edges = edges if high == UNBOUNDED else (*edges, high + 1)
        return RangeSpec(edges, edges)

    @property
    def plain(self) -> bool:
        """Whether published counts are true, and a withheld one may be any."""
        return self.exact and self.rule is None

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest true count that may be published as a number.

        Both are exact. ``UNBOUNDED`` means that there is no largest count. A lower end above the
        upper one means that the number is never published.
        """
        out = check.count_array(released, "released")
        if self.exact:
            return np.maximum(out, 0), out
        return np.zeros_like(out), np.full_like(out, UNBOUNDED)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray | None:
        """Return P(released | true count) of one cell; None if there is only simulation.

        The counts are whole numbers that broadcast.
        """
        _two_counts(released, true_count)
        return None

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return, in order, the numbers published for true counts from ``low`` to ``high``.

        ``tail`` in (0, 1) is the probability that may be left out on each side. Without a closed
        form the result is the true counts themselves.
        """
        return np.arange(low, high + 1, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and its parameters in the types of JSON; exact fractions are strings."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        stated = {f.name for f in fields(self) if values[f.name] != f.default}
        return {"likelihood": self.kind, **{n: _plain(values[n], n) for n in values if n in stated}}


@dataclass(frozen=True)
class TrueCounts(Likelihood):
    """Every count is published unchanged.

    Examples
    --------
    >>> TrueCounts().probability([3, 4], 4).tolist()
    [0.0, 1.0]
    """

    kind: ClassVar[str] = "true-counts"
    exact = True

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return 1 where the counts are equal, and 0 elsewhere."""
        out, count = _two_counts(released, true_count)
        return np.asarray(out == count, dtype=np.float64)


@dataclass(frozen=True)
class SuppressedCounts(Likelihood):
    """Some counts are withheld; published counts are true.

    All counts together decide which are withheld. So the likelihood of a single cell has no closed
    form; its support has one.

    Attributes
    ----------
    low : int, default 0
        Smallest count that a withheld cell may have by the rule.
    high : int, optional
        Largest count that a withheld cell may have by the rule; by default unknown.

    Examples
    --------
    >>> SuppressedCounts(low=1, high=2).withheld
    (1, 2)
    """

    kind: ClassVar[str] = "suppressed"
    exact = True

    low: int = 0
    high: int | None = None

    def __post_init__(self) -> None:
        low = check.integer(self.low, "low", lower=0, upper=UNBOUNDED)
        object.__setattr__(self, "low", low)
        if self.high is not None:
            high = check.integer(self.high, "high", lower=low, upper=UNBOUNDED)
            object.__setattr__(self, "high", high)

    @property
    def withheld(self) -> tuple[int, int]:
        """Smallest and largest count that a withheld cell may have by the rule."""
        return self.low, UNBOUNDED if self.high is None else self.high


@dataclass(frozen=True)
class SimulationOnly(Likelihood):
    """The likelihood has no closed form; it is estimated by running the mechanism.

    ``drawn`` says whether published counts are random.
    """

    kind: ClassVar[str] = "simulation"

    drawn: bool = True

    def __post_init__(self) -> None:
        check.flag(self.drawn, "drawn")

    @property
    def random(self) -> bool:
        """Whether published counts are random."""
        return self.drawn


@lru_cache(maxsize=256)
def _noise(law: str, scale: Fraction) -> DiscreteGaussian | DiscreteLaplace:
    return (DiscreteGaussian if law == "discrete-gaussian" else DiscreteLaplace)(scale)


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
    closed = True

    law: str
    scale: Fraction

    def __post_init__(self) -> None:
        check.choice(self.law, "law", _LAWS)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def to_law(self) -> DiscreteGaussian | DiscreteLaplace:
        """Return the law of the noise, around 0, to evaluate and to draw from."""
        return _noise(self.law, self.scale)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return the probability of the difference of the counts, as accurate as the law's pmf."""
        out, count = _two_counts(released, true_count)
        return np.asarray(self.to_law().pmf(out - count), dtype=np.float64)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return every whole number from the ``tail`` quantile of ``low`` to that of ``high``."""
        law = self.to_law()
        return np.arange(low + int(law.ppf(tail)), high + int(law.isf(tail)) + 1, dtype=np.int64)


@dataclass(frozen=True)
class RoundingSpec(Likelihood):
    """Every count is rounded to a multiple of a base, independently of the others.

    Attributes
    ----------
    base : int
        Base, in [1, 2**31].
    method : str
        ``nearest``, with halves upwards, or ``random``. For ``random``, let r be the remainder of a
        count x modulo the base b. The published number is x - r with probability 1 - r / b, else x
        - r + b, so its mean is x.

    Examples
    --------
    >>> RoundingSpec(5, "random").probability([0, 5, 10], 6).tolist()
    [0.0, 0.8, 0.2]
    """

    kind: ClassVar[str] = "rounding"
    bounded = True

    base: int
    method: str

    def __post_init__(self) -> None:
        base = check.integer(self.base, "base", lower=1, upper=_MAX_BASE)
        object.__setattr__(self, "base", base)
        check.choice(self.method, "method", ROUNDINGS)

    @property
    def exact(self) -> bool:
        """Whether the base is 1."""
        return self.base == 1

    @property
    def random(self) -> bool:
        """Whether a count may be rounded up or down by chance."""
        return self.method == "random" and self.base > 1

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest count that may be rounded to a number."""
        out, base = check.count_array(released, "released"), self.base
        # Nearest: y - b/2 <= x < y + b/2; random: y - b < x < y + b; both in whole numbers.
        below, above = (base // 2, (base - 1) // 2) if self.method == "nearest" else (base - 1,) * 2
        wrong = (out % base != 0) | (out < 0)
        return np.where(wrong, 1, np.maximum(out - below, 0)), np.where(wrong, 0, out + above)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return P(released | true count), exact to rounding."""
        out, count = _two_counts(released, true_count)
        base = self.base
        if self.method == "nearest":
            return np.asarray(out == (2 * count + base) // (2 * base) * base, dtype=float)
        # The remainder r of the count goes up with probability r / b.
        below = count // base * base
        share = (count - below) / base
        return np.where(out == below, 1.0 - share, np.where(out == below + base, share, 0.0))

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return all multiples of the base from below ``low`` to above ``high``."""
        base = self.base
        return np.arange(low // base, -(-high // base) + 1, dtype=np.int64) * base


@dataclass(frozen=True)
class RangeSpec(Likelihood):
    """Every count is published as the number of its range.

    Ranges after the last stated one are ``step`` wide, and their numbers grow by ``step``. Without
    a step the last stated range has no upper end.

    Attributes
    ----------
    edges : tuple of int
        Smallest count of every stated range, increasing from 0.
    values : tuple of int
        Published number of every stated range, increasing, each >= 0.
    step : int, optional
        Width of the ranges that follow, >= 1.

    Examples
    --------
    Zero, 1 or 2, and 3 to 5 as ranges, then 6 and more:

    >>> law = RangeSpec((0, 1, 3, 6), (0, 1, 3, 6))
    >>> [end.tolist() for end in law.support([0, 1, 3, 6])]
    [[0, 1, 3, 6], [0, 2, 5, 4503599627370496]]

    Counts of 1 to 10 as one range, all others unchanged:

    >>> RangeSpec((0, 1, 11), (0, 1, 11), 1).publish([0, 1, 7, 11, 12]).tolist()
    [0, 1, 1, 11, 12]
    """

    kind: ClassVar[str] = "ranges"
    random = False
    limiting = True

    edges: tuple[int, ...]
    values: tuple[int, ...]
    step: int | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "values"):
            entries = check.items(getattr(self, name), name)
            numbers = check.count_array(entries, name, lower=0, upper=_MAX_BASE)
            if not numbers.size or np.any(np.diff(numbers) <= 0):
                raise ArgumentError(name, "must be increasing numbers", got=entries)
            object.__setattr__(self, name, tuple(numbers.tolist()))
        if self.edges[0] != 0:
            raise ArgumentError("edges", "must begin with 0", shown=self.edges[0])
        if len(self.values) != len(self.edges):
            raise ArgumentError(
                "values", f"must be as many as edges ({len(self.edges)})", shown=len(self.values)
            )
        if self.step is not None:
            step = check.integer(self.step, "step", lower=1, upper=_MAX_BASE)
            object.__setattr__(self, "step", step)

    @property
    def exact(self) -> bool:
        """Whether every range holds one count, which is published."""
        stated = tuple(range(len(self.edges)))
        return self.step == 1 and self.edges == stated and self.values == stated

    @property
    def bounded(self) -> bool:
        """Whether no range is open above."""
        return self.step is not None

    def publish(self, counts: ArrayLike) -> IntArray:
        """Return the published numbers of true counts >= 0, in their shape."""
        true = check.count_array(counts, "counts", lower=0)
        edges, values = np.array(self.edges), np.array(self.values)
        numbers: IntArray = values[np.searchsorted(edges, true, side="right") - 1]
        if self.step is not None:
            # Range j after the last stated edge e, of number v, is published as v + j step.
            numbers = numbers + np.maximum(true - edges[-1], 0) // self.step * self.step
        return numbers.astype(np.int64)

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest count that is published as a number."""
        out = check.count_array(released, "released")
        edges, values = np.array(self.edges), np.array(self.values)
        index = np.searchsorted(values, out, side="right") - 1
        last, above = values.size - 1, np.append(edges[1:] - 1, UNBOUNDED)
        low, high, valid = edges[index], above[index], values[index] == out
        if self.step is not None:
            beyond = out - values[-1]
            low = np.where(index == last, edges[-1] + beyond, low)
            high = np.where(index == last, low + self.step - 1, high)
            valid |= (index == last) & (beyond % self.step == 0)
        valid &= index >= 0
        return np.where(valid, low, 1), np.where(valid, high, 0)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return 1 where the number is that of the count's range, and 0 elsewhere."""
        out, count = _two_counts(released, true_count)
        low, high = self.support(out)
        return np.asarray((low <= count) & (count <= high), dtype=np.float64)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return the numbers of all ranges between those of ``low`` and ``high``."""
        return np.unique(self.publish(np.arange(max(low, 0), max(high, 0) + 1)))


@dataclass(frozen=True)
class PerturbedCounts(Likelihood):
    """Every count is changed by an unknown number, of which only a bound is known.

    A count x is published as y with ``abs(y - x) <= largest``. The law of the change is unknown, so
    there is no probability.

    Attributes
    ----------
    largest : int
        Largest change, in [1, 2**31].

    Examples
    --------
    >>> [end.tolist() for end in PerturbedCounts(2).support([0, 47])]
    [[0, 45], [2, 49]]
    """

    kind: ClassVar[str] = "perturbed"
    bounded = True

    largest: int

    def __post_init__(self) -> None:
        largest = check.integer(self.largest, "largest", lower=1, upper=_MAX_BASE)
        object.__setattr__(self, "largest", largest)

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest count that may be changed into a number."""
        out = check.count_array(released, "released")
        return np.maximum(out - self.largest, 0), out + self.largest


@dataclass(frozen=True)
class CountLimits(Likelihood):
    """Every published number is the largest possible count; nothing else is known of the true one.

    Examples
    --------
    >>> [end.tolist() for end in CountLimits().support([0, 47])]
    [[0, 0], [0, 47]]
    """

    kind: ClassVar[str] = "limits"
    bounded = True
    random = False

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return 0 and the limit itself."""
        out = check.count_array(released, "released")
        return np.where(out < 0, 1, 0), np.maximum(out, 0)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return 1 up to the limit, and 0 beyond: the limit itself is not drawn."""
        out, count = _two_counts(released, true_count)
        return np.asarray((count >= 0) & (count <= out), dtype=np.float64)


#: Changes of a count, increasing, with the share of the keys that lead to each.
Shares = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class CellKeySpec(Likelihood):
    """Every count changes by a perturbation table, given the count and its cell's key.

    The key of a cell is the sum of the keys of its records, so cells with the same records change
    alike. The law is that of one cell; laws of several cells do not multiply.

    Attributes
    ----------
    ptable : tuple of str
        For each true count 0, 1, 2, ... the changes and their shares of the keys, as one text.
    repeat : int, default 1
        Number of last rows that serve larger counts in turn.

    Examples
    --------
    A count of 1 or more changes by 1, up or down, with a quarter of the keys each:

    >>> law = CellKeySpec(("0: 1", "-1: 1/4, 0: 1/2, 1: 1/4"))
    >>> law.probability([2, 3, 4], 3).tolist()
    [0.25, 0.5, 0.25]
    >>> [end.tolist() for end in law.support([0, 1, 7])]
    [[0, 1, 6], [1, 2, 8]]
    """

    kind: ClassVar[str] = "cell-key"
    bounded = True  # changes are finite

    ptable: tuple[str, ...]
    repeat: int = 1

    def __post_init__(self) -> None:
        entries = check.texts(self.ptable, "ptable")
        rows = [_row_shares(text, count) for count, text in enumerate(entries)]
        if len(rows) < 2 or rows[0] != ((0, Fraction(1)),):
            raise ArgumentError(
                "ptable must leave a count of 0 as it is, which has no keys, and then say what "
                f"happens to a count of 1, got {quote(self.ptable)}"
            )
        repeat = check.integer(self.repeat, "repeat", lower=1, upper=len(rows) - 1)
        texts = tuple(", ".join(f"{change}: {share}" for change, share in row) for row in rows)
        object.__setattr__(self, "ptable", texts)
        object.__setattr__(self, "repeat", repeat)

    @property
    def shares(self) -> tuple[Shares, ...]:
        """For each true count the changes, increasing, with their shares."""
        return tuple(_row_shares(text, count) for count, text in enumerate(self.ptable))

    @property
    def exact(self) -> bool:
        """Whether no count changes."""
        return not self._matrix[0].any()

    @property
    def independent(self) -> bool:
        """False, unless nothing changes: cells with the same records change alike."""
        return self.exact

    def rows(self, counts: ArrayLike) -> IntArray:
        """Return the row of the table that serves each true count >= 0."""
        true = check.count_array(counts, "counts", lower=0)
        # Count c beyond the last row R is served by row R - m + 1 + (c - R - 1) mod m.
        last = len(self.ptable) - 1
        cycle = last - self.repeat + 1 + (true - last - 1) % self.repeat
        return np.where(true <= last, true, cycle)

    def support(self, released: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the smallest and the largest count that some keys change into a number."""
        out, inverse = np.unique(check.count_array(released, "released"), return_inverse=True)
        change, share = self._matrix
        # The true counts x = y - d of all changes d, of which those with a share are possible.
        true = out[:, None] - change
        valid = (true >= 0) & (share[self.rows(np.maximum(true, 0)), np.arange(change.size)] > 0)
        low = np.where(valid, true, UNBOUNDED).min(axis=1)
        high = np.where(valid, true, -1).max(axis=1)
        low, high = np.where(high < 0, 1, low), np.maximum(high, 0)
        shape = np.shape(released)
        return low[inverse].reshape(shape), high[inverse].reshape(shape)

    def probability(self, released: ArrayLike, true_count: ArrayLike) -> FloatArray:
        """Return the share of the keys that change the count of one cell into the number."""
        out, count = _two_counts(released, true_count)
        change, share = self._matrix
        index = np.minimum(np.searchsorted(change, out - count), change.size - 1)
        valid = (change[index] == out - count) & (count >= 0)
        rows = np.broadcast_to(self.rows(np.maximum(count, 0)), valid.shape)
        return np.where(valid, share[rows, index], 0.0)

    def releases(self, low: int, high: int, *, tail: float) -> IntArray:
        """Return the numbers that counts from ``low`` to ``high`` may change into."""
        change, share = self._matrix
        true = np.arange(max(low, 0), max(high, 0) + 1)
        return np.unique((true[:, None] + change)[share[self.rows(true)] > 0])

    @cached_property
    def _matrix(self) -> tuple[IntArray, FloatArray]:
        """All changes, increasing, and the share of each in every row."""
        rows = self.shares
        change = np.unique([d for row in rows for d, _ in row]).astype(np.int64)
        share = np.zeros((len(rows), change.size))
        for count, row in enumerate(rows):
            share[count, np.searchsorted(change, [d for d, _ in row])] = [float(p) for _, p in row]
        return change, share


@lru_cache(maxsize=2**14)  # the tables of a release have the same rows
def _row_shares(text: str, count: int) -> Shares:
    """Return the changes of one true count with their shares, increasing and checked."""
    name = f"ptable[{count}]"
    shares: dict[int, Fraction] = {}
    for part in check.text(text, name).split(","):
        number, _, share = part.partition(":")
        try:
            change = int(number)
        except ValueError as error:
            raise ArgumentError(name, "must be like '-1: 1/2, 1: 1/2'", got=text) from error
        if change in shares:
            raise ArgumentError(name, "must give every change once", got=text)
        shares[change] = exact_number(share.strip(), f"{name}: share of change {change}")
    if min(shares.values()) <= 0 or sum(shares.values()) != 1:
        raise ArgumentError(name, "must have shares > 0 that sum to 1", got=text)
    if min(shares) < -count:
        raise ArgumentError(
            name, f"must not make a count of {count} negative", shown=f"change {min(shares)}"
        )
    return tuple(sorted(shares.items()))


#: Every kind that ``_release.json`` can hold: the classes above.
KINDS: dict[str, type[Likelihood]] = {law.kind: law for law in Likelihood.__subclasses__()}


def read_likelihood(document: object, source: str) -> Likelihood:
    """Return the likelihood that :meth:`Likelihood.to_dict` wrote."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {quote(document)}")
    kind = document.get("likelihood")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(
            f"{source}: likelihood must be one of {', '.join(KINDS)}, got {quote(kind)}"
        )
    defaults = {f.name: f.default for f in fields(KINDS[kind])}
    usual = {name for name, default in defaults.items() if default is not MISSING}
    same_keys(document, {"likelihood", *defaults} - (usual - set(document)), source)
    return KINDS[kind](**{name: document[name] for name in defaults if name in document})


def _two_counts(released: ArrayLike, true_count: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return both as whole numbers that broadcast."""
    out = check.count_array(released, "released")
    count = check.count_array(true_count, "true_count")
    check.broadcast(released=out, true_count=count)
    return out, count


# JSON with exact numbers.


def plain(value: object, name: str) -> object:
    """Return a value in the types of JSON; exact fractions become strings."""
    try:
        return _plain(value, name)
    except RecursionError as error:
        raise ArgumentTypeError(name, "must not be nested so deeply", got=value) from error


def _plain(value: object, name: str) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(name, "must have text as keys", got=key)
        return {key: _plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, float, np.floating)):
        return [_plain(item, f"{name}[{i}]") for i, item in enumerate(check.items(value, name))]
    raise ArgumentTypeError(name, "must be finite and fit in JSON", got=value)


def same_keys(document: object, names: set[str], source: str) -> None:
    """Check that an object has exactly these keys."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {quote(document)}")
    for name in sorted(names - set(document)):
        raise DataError(f"{source}: key {name!r} is missing")
    for name in sorted(set(document) - names):
        raise DataError(f"{source}: key {name!r} is unknown")
