"""Tabulated laws, and the laws of sums: exact, approximate, and the distance between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntAnswer
from bayesrisk.distributions import kernels
from bayesrisk.distributions.base import CountLaw, single_law
from bayesrisk.distributions.discrete_gaussian import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError

#: Largest table that is made, 128 MiB of doubles.
MAX_TABLE = 2**24


class FiniteLaw(CountLaw):
    """A law on consecutive integers, given by its probabilities.

    Parameters
    ----------
    start : int
        Smallest value.
    probabilities : array_like of float, shape (n,)
        Probability of ``start``, ``start + 1``, ...; non-negative, summing to 1 within
        ``error_bound`` plus rounding.
    error_bound : float, default 0
        Bound on the total-variation distance to the law that this one represents: mass cut off its
        tails, and rounding.

    Examples
    --------
    >>> die = FiniteLaw(1, [1 / 6] * 6)
    >>> float(die.mean()), round(float(die.cdf(2)), 4)
    (3.5, 0.3333)
    """

    def __init__(self, start: int, probabilities: ArrayLike, *, error_bound: float = 0.0) -> None:
        self._start = check.integer(start, "start")
        pmf = check.real_array(probabilities, "probabilities", lower=0.0)
        self.error_bound = check.scalar(error_bound, "error_bound", lower=0.0, upper=1.0)
        if pmf.ndim != 1:
            raise ShapeError("probabilities", "must be one-dimensional", shown=f"shape {pmf.shape}")
        excess = abs(float(pmf.sum()) - 1.0)
        if excess > 2.0 * self.error_bound + pmf.size * 2**-50:
            raise ArgumentError("probabilities", "must sum to 1", shown=f"{pmf.sum()!s}")
        self._pmf: FloatArray = np.array(pmf)
        self._pmf.setflags(write=False)
        # Each tail is summed from its own end, so that both keep their relative precision.
        self._lower = np.concatenate(([0.0], np.cumsum(self._pmf)))
        self._upper = np.concatenate((np.cumsum(self._pmf[::-1])[::-1], [0.0]))

    @classmethod
    def point(cls, value: int) -> FiniteLaw:
        """Return the law of a constant: a count known exactly, such as an invariant."""
        return cls(value, [1.0])

    @property
    def probabilities(self) -> FloatArray:
        """Probabilities of the consecutive integers of the support (read-only)."""
        return self._pmf

    @property
    def start(self) -> int:
        """Smallest value of the support."""
        return self._start

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters: a single law."""
        return ()

    def __repr__(self) -> str:
        size, bound = self._pmf.size, self.error_bound
        return f"FiniteLaw(start={self._start}, size={size}, error_bound={bound:.3g})"

    def pmf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X = x)."""
        d = check.points(x, "x") - self._start
        with np.errstate(invalid="ignore"):
            inside = (d >= 0) & (d < self._pmf.size) & (d == np.rint(d))
        value = self._pmf[np.where(inside, d, 0).astype(np.int64)]
        return np.where(inside, value, np.where(np.isnan(d), np.nan, 0.0))[()]

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X = x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(x))

    def _cumulative(self, x: ArrayLike, table: FloatArray) -> FloatArray:
        d = np.asarray(check.points(x, "x") - self._start, dtype=float)
        index = np.clip(np.nan_to_num(np.floor(d)) + 1.0, 0, self._pmf.size).astype(np.int64)
        return np.where(np.isnan(d), np.nan, table[index])

    def cdf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X <= x)."""
        return check.answer(self._cumulative(x, np.minimum(self._lower, 1.0)))

    def sf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X > x)."""
        return check.answer(self._cumulative(x, np.minimum(self._upper, 1.0)))

    def logcdf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X <= x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.cdf(x))

    def logsf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X > x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.sf(x))

    def support(self) -> tuple[int, int]:
        """Return the smallest and the largest tabulated value."""
        return self._start, self._start + self._pmf.size - 1

    def ppf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X <= x) >= q."""
        q = check.points(q, "q").astype(float)
        top = self._pmf.size - 1
        index = np.minimum(np.searchsorted(self._lower[1:], q, side="left"), top)
        index = np.where(q == 1.0, top, index)  # the tabulated sum may reach 1 before the end
        value = np.where(q == 0.0, self._start - 1, self._start + index)
        return np.where((q >= 0.0) & (q <= 1.0), value, np.nan)[()]

    def isf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X > x) <= q."""
        q = check.points(q, "q").astype(float)
        top = self._pmf.size - 1
        index = top + 1 - np.searchsorted(self._upper[::-1], q, side="right")
        value = np.where(q == 1.0, self._start - 1, self._start + np.clip(index, 0, top))
        return np.where((q >= 0.0) & (q <= 1.0), value, np.nan)[()]

    def mean(self) -> FloatAnswer:
        """Return the expectation."""
        return self._start + float(np.arange(self._pmf.size) @ self._pmf)

    def var(self) -> FloatAnswer:
        """Return the variance."""
        deviation = self._start + np.arange(self._pmf.size) - self.mean()
        return float(deviation**2 @ self._pmf)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntAnswer:
        u = rng.random(shape)
        index = np.searchsorted(self._lower[1:], u * self._lower[-1], side="right")
        return check.whole_answer(self._start + np.minimum(index, self._pmf.size - 1))


# -----------------------------------------------------------------------------
# The law of a sum of discrete Gaussians in log space, exact at any distance.
#
# Let D add up n independent variables with probabilities proportional to exp(-p x**2).  Raising
# each of them by one turns a sum of d into one of d + n, and the sum of squares q into q + 2 d +
# n: hence P(D = d + n) = P(D = d) exp(-p (2 d + n)).  With h = p / n this says that, but for a
# constant,
#
#     log P(D = d) = -h d**2 + g(d mod n),    g of period n.
#
# One discrete Gaussian of n times the scale, which the literature puts in place of the sum, leaves
# out this periodic factor and nothing else.  g is called the *ripple*, and kept with its maximum,
# which is at 0, set to 0.  One variable of precision p and one of p / m, raised by one and by m,
# add up to a sum of the same form with n = m + 1.
#
# Where the rates of the two variables that are added, 1 / (2 sigma2) each, come to no more than
# ``SMOOTH``, the ripple is flat: by Poisson summation its relative height is at most 2 exp(-pi**2
# / SMOOTH) = 1.4e-17.  ``sums.convolve`` stays in closed form by the same rule.
#
# ``sums.convolve`` adds up any laws, as tables of probabilities with a proved bound on the
# total-variation distance, and so ends where a double does.  Evidence far out in the tails needs
# the form here: one period describes the law at every distance, without underflow.  The tests hold
# the two against each other.


#: Where two rates add up to no more than this the ripple of the sum is flat.
SMOOTH = 0.25
#: Most terms of a sum whose ripple is not flat, and most products of a direct convolution.
MAX_TERMS = 10**6
_MAX_PRODUCTS = 2**28  # some seconds
_ONE = np.zeros(1)
#: The ripple of a discrete Gaussian: none.
NO_RIPPLE = np.zeros(1)
NO_RIPPLE.flags.writeable = False


def _add(left: FloatArray, left_n: int, right: FloatArray, right_n: int, p: float) -> FloatArray:
    """Return the ripple of the sum of two sums, which have ``left_n`` and ``right_n`` terms."""
    if left.size == right.size == 1 and p / left_n + p / right_n <= SMOOTH:
        return _ONE
    out = np.empty(left_n + right_n)
    kernels.add_ripples(left, left_n, right, right_n, p, out)
    return out


def pair_ripple(precision: float, terms: int) -> FloatArray:
    """Return the ripple of a variable plus one Gaussian in place of ``terms - 1`` others.

    The second is a discrete Gaussian of ``terms - 1`` times the scale.
    """
    return _add(_ONE, 1, _ONE, terms - 1, precision) if terms > 1 else _ONE


def sum_ripple(precision: float, terms: int) -> FloatArray:
    """Return one period of a sum's ripple, ``terms`` entries, or a single 0 where it is flat.

    Read-only; the precision 1 / (2 sigma2) of every variable is in (0, 1e100].
    """
    if terms == 1 or 2.0 * precision <= SMOOTH:
        return NO_RIPPLE
    instead = 'sibling_noise="approximate" has no such limit'
    if terms > MAX_TERMS + 1:
        raise ArgumentError(
            "n_siblings",
            f"must be <= {MAX_TERMS} for exact sibling noise with a ripple",
            shown=f"a sum of {terms} terms; {instead}",
        )
    # The last and longest of the convolutions.
    products = terms * np.sqrt(kernels.REACH * terms / precision)
    if products > _MAX_PRODUCTS:
        raise ArgumentError(
            "n_siblings",
            f"must be small enough for an exact convolution of {_MAX_PRODUCTS} products",
            shown=f"{products:.3g} products; {instead}",
        )
    return _doubled(precision, terms)


@lru_cache(maxsize=64)
def _doubled(precision: float, terms: int) -> FloatArray:
    """Return the ripple of a sum of ``terms`` variables, by repeated doubling."""
    total, total_n = _ONE, 0
    power, power_n = _ONE, 1
    while True:
        if terms & power_n:
            total = _add(total, total_n, power, power_n, precision) if total_n else power
            total_n += power_n
        if 2 * power_n > terms:
            break
        power = _add(power, power_n, power, power_n, precision)
        power_n *= 2
    total = total.copy()
    total.flags.writeable = False
    return total


_ROUNDING = 2.0**-51  # of a table: half the sum of relative errors of a few ulp each


def as_finite(law: CountLaw, *, tail: float = 1e-30) -> FiniteLaw:
    """Return a law as a table of probabilities, without tails of weight below ``tail``.

    The ``error_bound`` of the table includes the mass cut off, and rounding.

    Parameters
    ----------
    law : CountLaw
        A single law (scalar parameters).
    tail : float, default 1e-30
        Largest mass cut off on each side, in (0, 0.5).

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> as_finite(DiscreteGaussian(1.0), tail=1e-9).support()
    (-6, 6)
    """
    single_law(law)
    check.scalar(tail, "tail", lower=0.0, upper=0.5, bounds="()")
    if isinstance(law, FiniteLaw):
        return law
    first, last = float(law.ppf(tail)), float(law.isf(tail))
    width = last - first + 1.0
    if not width <= MAX_TABLE:
        raise ArgumentError(f"law must need at most {MAX_TABLE} entries in a table, got {width:g}")
    pmf = np.atleast_1d(law.pmf(first + np.arange(width)))
    cut = float(law.cdf(first - 1.0)) + float(law.sf(last))
    return FiniteLaw(int(first), pmf, error_bound=cut + _ROUNDING)


def convolve(*laws: CountLaw, tail: float = 1e-30) -> CountLaw:
    """Return the exact law of a sum of independent variables.

    Two discrete Gaussians whose ``1 / (1 / s1 + 1 / s2)`` is at least 2 stay in closed form. Their
    sum is the discrete Gaussian of scale ``s1 + s2`` within a relative 2 exp(-4 pi**2) = 1.4e-17 at
    every point, tails included (Poisson summation). Other laws are convolved as tables: a
    ``FiniteLaw`` whose ``error_bound`` bounds the total-variation distance to the exact law.

    Parameters
    ----------
    *laws : CountLaw
        At least one single law.
    tail : float, default 1e-30
        Largest mass cut off each side of a law before it is tabulated.

    Notes
    -----
    Tables are convolved directly up to 2**28 products (relative error about 2**-52 times the number
    of laws, also in the tails). Beyond that it is by FFT (absolute error in ``error_bound``).

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> convolve(DiscreteGaussian(10.0), DiscreteGaussian(5.0))
    DiscreteGaussian(sigma2=15.0, loc=0)
    """
    if not laws:
        raise ArgumentError("convolve needs at least one law, got none")
    for law in laws:
        single_law(law)
    tables: list[FiniteLaw] = []
    smooth: DiscreteGaussian | None = None
    gaussians = [law for law in laws if isinstance(law, DiscreteGaussian)]
    for law in sorted(gaussians, key=lambda g: -float(g.sigma2)):
        if smooth is None:
            smooth = law
        elif 0.5 / smooth.sigma2 + 0.5 / law.sigma2 <= SMOOTH:
            smooth = DiscreteGaussian(smooth.sigma2 + law.sigma2, int(smooth.loc) + int(law.loc))
        else:
            tables.append(as_finite(law, tail=tail))
    tables += [as_finite(law, tail=tail) for law in laws if not isinstance(law, DiscreteGaussian)]
    if smooth is not None:
        if not tables:
            return smooth
        tables.append(as_finite(smooth, tail=tail))
    # Smallest first: a repeated law is then squared, not added term by term to a long table.
    while len(tables) > 1:
        tables.sort(key=lambda table: -table.probabilities.size)
        tables.append(_trim(_convolve_tables(tables.pop(), tables.pop()), tail))
    return tables[0]


def transform_convolution(p: FloatArray, q: FloatArray) -> tuple[FloatArray, float]:
    """Return a convolution by FFT, and a bound on the error of each entry."""
    from scipy import signal  # slow to import, seldom needed

    # Rounding of the transforms (Higham 2002, section 24.1), with a factor of two in hand.
    norm = float(np.linalg.norm(p) * np.linalg.norm(q))
    error = 8.0 * 2.0**-53 * float(np.log2(p.size + q.size)) * norm
    return np.maximum(signal.fftconvolve(p, q), 0.0), error


def _convolve_tables(a: FiniteLaw, b: FiniteLaw) -> FiniteLaw:
    p, q = a.probabilities, b.probabilities
    size = p.size + q.size - 1
    if size > MAX_TABLE:
        raise ArgumentError(f"the convolution must have at most {MAX_TABLE} entries, got {size}")
    bound = a.error_bound + b.error_bound
    if p.size * q.size <= _MAX_PRODUCTS:
        pmf = np.convolve(p, q)
        bound += 0.5 * (min(p.size, q.size) + 1) * 2.0**-53  # sums of that many positive products
    else:
        pmf, error = transform_convolution(p, q)
        bound += 0.5 * size * error
    return FiniteLaw(a.start + b.start, pmf, error_bound=min(bound, 1.0))


def _trim(table: FiniteLaw, tail: float) -> FiniteLaw:
    """Return the table without the ends of weight below ``tail``, to keep sums short."""
    pmf = table.probabilities
    first = int(np.searchsorted(np.cumsum(pmf), tail, side="right"))
    last = pmf.size - int(np.searchsorted(np.cumsum(pmf[::-1]), tail, side="right"))
    bound = min(table.error_bound + 2.0 * tail, 1.0)
    return FiniteLaw(table.start + first, pmf[first:last], error_bound=bound)


def total_variation(p: CountLaw, q: CountLaw) -> tuple[float, float]:
    """Return the total-variation distance between two laws, and a bound on its error.

    Parameters
    ----------
    p, q : CountLaw
        Single laws.

    Returns
    -------
    distance : float
        ``0.5 * sum |p - q|``, in [0, 1].
    error : float
        Bound on the error: the mass cut off, the laws' own error bounds, and rounding.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> distance, error = total_variation(DiscreteGaussian(1.0), DiscreteGaussian(1.0, 1))
    >>> round(distance, 6), error < 1e-14
    (0.398942, True)
    """
    single_law(p, "p")
    single_law(q, "q")
    a, b = as_finite(p), as_finite(q)
    low = min(a.start, b.start)
    high = max(a.support()[1], b.support()[1])
    if high - low + 1 > MAX_TABLE:
        raise ArgumentError(
            f"the laws must span at most {MAX_TABLE} values together, got {high - low + 1}"
        )
    x = np.arange(low, high + 1)
    distance = 0.5 * float(np.abs(np.asarray(a.pmf(x)) - np.asarray(b.pmf(x))).sum())
    return min(distance, 1.0), a.error_bound + b.error_bound + x.size * 2.0**-53


@dataclass(frozen=True)
class SumApproximation:
    """The exact sum of discrete Gaussians beside its discrete Gaussian approximation.

    ``total_variation`` is the distance between the two, in [0, 1], and ``error_bound`` bounds its
    error.
    """

    approximate: DiscreteGaussian
    exact: CountLaw
    total_variation: float
    error_bound: float


def sum_approximation(law: DiscreteGaussian, n: int) -> SumApproximation:
    """Return the law of a sum of ``n`` discrete Gaussians and its discrete Gaussian approximation.

    Parameters
    ----------
    law : DiscreteGaussian
        A single law.
    n : int
        Number of independent terms, in [1, 10**6].

    Notes
    -----
    The approximation is that of Kazan and Reiter, supplement S2. It is excellent for sigma2 > 1 and
    poor below 0.3.

    Examples
    --------
    >>> result = sum_approximation(DiscreteGaussian.from_rho(0.0992264), 27)
    >>> result.total_variation < 1e-14
    True
    """
    if not isinstance(law, DiscreteGaussian):
        raise ArgumentTypeError("law", "must be a DiscreteGaussian", got=law)
    single_law(law)
    n = check.integer(n, "n", lower=1, upper=10**6)
    approximate = DiscreteGaussian(n * law.sigma2, n * int(law.loc))
    exact = _power(law, n)
    distance, error = total_variation(approximate, exact)
    return SumApproximation(approximate, exact, distance, error)


def _power(law: CountLaw, n: int) -> CountLaw:
    """Return the law of a sum of n independent copies, by repeated doubling."""
    result: CountLaw | None = None
    while True:
        if n & 1:
            result = law if result is None else convolve(result, law)
        n >>= 1
        if not n:
            return result if result is not None else law
        law = convolve(law, law)
