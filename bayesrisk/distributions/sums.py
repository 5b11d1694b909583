"""Laws of sums: the exact convolution, the approximation of the literature, and its cost.

Sums of discrete Gaussians alone, far out in their tails: ``gaussian_sums``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.distributions._base import CountLaw, single_law
from bayesrisk.distributions.discrete_gaussian import DiscreteGaussian
from bayesrisk.distributions.finite import FiniteLaw
from bayesrisk.distributions.gaussian_sums import SMOOTH
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

#: Largest table that is made, 128 MiB of doubles.
MAX_TABLE = 2**24
_DIRECT_PRODUCTS = 2**28
_ROUNDING = 2.0**-51  # of a table: half the sum of relative errors of a few ulp each


def as_finite(law: CountLaw, *, tail: float = 1e-30) -> FiniteLaw:
    """Return a law as a table of probabilities, cut where each tail weighs less than ``tail``.

    Parameters
    ----------
    law : CountLaw
        A single law (scalar parameters).
    tail : float, default 1e-30
        Mass that may be cut on each side, in (0, 0.5).

    Returns
    -------
    FiniteLaw
        Its ``error_bound`` holds the mass cut off, and rounding.

    Raises
    ------
    ArgumentError
        If the table would have more than 2**24 entries.

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

    Two discrete Gaussians whose ``1 / (1 / s1 + 1 / s2)`` is at least 2 add up to the discrete
    Gaussian of scale ``s1 + s2`` within a relative 2 exp(-4 pi**2) = 1.4e-17 at every point,
    tails included (Poisson summation), so these stay in closed form.  Everything else is
    convolved as a table.

    Parameters
    ----------
    *laws : CountLaw
        At least one single law.
    tail : float, default 1e-30
        Mass that may be cut off each side of a law before it is tabulated.

    Returns
    -------
    CountLaw
        A ``DiscreteGaussian`` where the closed form holds, else a ``FiniteLaw`` whose
        ``error_bound`` bounds the total-variation distance to the exact law.

    Raises
    ------
    ArgumentError
        If no law is given, a law has array parameters, or a table would exceed 2**24 entries.

    Notes
    -----
    Tables are convolved directly (relative error about 2**-52 times the number of laws, also in
    the tails) up to 2**28 products, and by FFT beyond (absolute error in ``error_bound``).

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


def _convolve_tables(a: FiniteLaw, b: FiniteLaw) -> FiniteLaw:
    p, q = a.probabilities, b.probabilities
    size = p.size + q.size - 1
    if size > MAX_TABLE:
        raise ArgumentError(f"the convolution must have at most {MAX_TABLE} entries, got {size}")
    bound = a.error_bound + b.error_bound
    pmf: NDArray[np.float64]
    if p.size * q.size <= _DIRECT_PRODUCTS:
        pmf = np.convolve(p, q)
        bound += 0.5 * (min(p.size, q.size) + 1) * 2.0**-53  # sums of that many positive products
    else:
        from scipy import signal  # slow to import, seldom needed

        pmf = np.maximum(signal.fftconvolve(p, q), 0.0)
        # Rounding of the transforms, per entry, times the entries (Higham 2002, section 24.1).
        per_entry = 8.0 * 2**-53 * np.log2(size) * np.linalg.norm(p) * np.linalg.norm(q)
        bound += 0.5 * size * float(per_entry)
    return FiniteLaw(a.start + b.start, pmf, error_bound=min(bound, 1.0))


def _trim(table: FiniteLaw, tail: float) -> FiniteLaw:
    """Cut what weighs less than ``tail`` on each side, so that sums stay as wide as they must."""
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

    Raises
    ------
    ArgumentError
        If a law has array parameters, or a table would exceed 2**24 entries.

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
    """A sum of discrete Gaussians, approximated and exact, and what separates the two.

    Attributes
    ----------
    approximate : DiscreteGaussian
        The discrete Gaussian whose scale is the sum of the scales.
    exact : CountLaw
        The convolution.
    total_variation : float
        Distance between the two, in [0, 1].
    error_bound : float
        Bound on the error of that distance.
    """

    approximate: DiscreteGaussian
    exact: CountLaw
    total_variation: float
    error_bound: float


def sum_approximation(law: DiscreteGaussian, n: int) -> SumApproximation:
    """Compare the sum of ``n`` discrete Gaussians with the discrete Gaussian of n times the scale.

    Parameters
    ----------
    law : DiscreteGaussian
        A single law.
    n : int
        Number of independent terms, in [1, 10**6].

    Returns
    -------
    SumApproximation
        Both laws and their total-variation distance with its error bound.

    Raises
    ------
    ArgumentError
        If ``n`` is out of range, or the exact law needs more than 2**24 entries.

    Notes
    -----
    The approximation of Kazan and Reiter, supplement S2: excellent for sigma2 > 1, poor below
    0.3.

    Examples
    --------
    >>> result = sum_approximation(DiscreteGaussian.from_rho(0.0992264), 27)
    >>> result.total_variation < 1e-14
    True
    """
    if not isinstance(law, DiscreteGaussian):
        raise ArgumentTypeError(f"law must be a DiscreteGaussian, got {shown(law)}")
    single_law(law)
    n = check.integer(n, "n", lower=1, upper=10**6)
    approximate = DiscreteGaussian(n * law.sigma2, n * int(law.loc))
    exact = _power(law, n)
    distance, error = total_variation(approximate, exact)
    return SumApproximation(approximate, exact, distance, error)


def _power(law: CountLaw, n: int) -> CountLaw:
    """Return the law of a sum of n copies, by repeated doubling."""
    result: CountLaw | None = None
    while True:
        if n & 1:
            result = law if result is None else convolve(result, law)
        n >>= 1
        if not n:
            return result if result is not None else law
        law = convolve(law, law)
