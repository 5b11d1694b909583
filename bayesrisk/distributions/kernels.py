"""Compiled inner loops of the noise laws; they do not check their arguments."""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import elementwise, kernel, lean_kernel, lean_step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions.base import single_law
from bayesrisk.exceptions import ArgumentError

#: exp(-REACH) = 1.6e-18 bounds the relative mass beyond every window.
REACH = 41.0
_SPLIT = 134217729.0  # 2**27 + 1, Veltkamp's constant for halving a double


@lean_step
def _product(a: float, b: float) -> tuple[float, float]:
    """Return a*b and its rounding error, exactly (Dekker)."""
    product = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


@lean_step
def _weight(x: float, sigma2: float) -> float:
    """Return exp(-x**2 / (2 sigma2)), to a few ulp however large the exponent.

    A rounded exponent t would cost a relative error t * 2**-53, which is 8e-14 at the edge of
    the double range; so the exponent is carried in two doubles.
    """
    square, square_error = _product(x, x)
    divisor = 2.0 * sigma2
    if square > 1500.0 * divisor:
        return 0.0
    high = square / divisor
    product, product_error = _product(high, divisor)
    low = (((square - product) - product_error) + square_error) / divisor
    return math.exp(-high) * (1.0 - low)


@elementwise("float64(float64, float64)")
def gaussian_weight(x: float, sigma2: float) -> float:
    """Return exp(-x**2 / (2 sigma2)), to a few ulp however large the exponent."""
    return _weight(x, sigma2)


@elementwise("float64(float64, float64)")
def tail_ratio(first: float, sigma2: float) -> float:
    """Return the sum of w(j) / w(first) over j >= first >= 1, with w(j) = exp(-j**2 / (2 sigma2)).

    Direct summation; the caller uses it where a hundred terms are enough.
    """
    total = 1.0
    n = 1.0
    while True:  # ends: the term is 0 from n = 39 sigma on
        term = math.exp(-n * (2.0 * first + n) / (2.0 * sigma2))
        total += term
        if term < 1e-18 * total:
            return total
        n += 1.0


@elementwise("float64(float64, float64, int64)")
def hockey_stick(epsilon: float, sigma2: float, sensitivity: int) -> float:
    """Return the sum of max(0, w(y) - exp(epsilon) w(y + sensitivity)); w as in ``tail_ratio``.

    Every term kept is positive, so nothing cancels. The sum runs outwards from the first term, with
    compensation, until the rest is below 1e-17 of it. The first term is at -shift / 2 or above and
    the weight is 0 from 55 sigma on, so the loop ends.
    """
    shift = float(sensitivity)
    # One early: the quotient is rounded, and a term that does not count is cut at 0 below.
    y = float(math.floor(epsilon * sigma2 / shift - 0.5 * shift))
    peak = max(y, 0.0)
    # The loss at y is (2 y + D) D / (2 sigma2); its excess over epsilon is taken exactly, because
    # at the first y the two nearly cancel.
    bound, bound_error = _product(2.0 * sigma2, epsilon)
    total = 0.0
    lost = 0.0
    while True:
        weight: float = _weight(y, sigma2)
        excess = (((2.0 * y + shift) * shift - bound) - bound_error) / (2.0 * sigma2)
        term = weight * -math.expm1(-max(excess, 0.0)) - lost
        total, before = total + term, total
        lost = (total - before) - term
        # All the weights beyond y add up to less than w(y) sigma2 / y.
        if y >= peak and (weight == 0.0 or weight * sigma2 <= 1e-17 * total * y):
            return total
        y += 1.0


@lean_kernel
def fill_discrete_gaussian(rng: np.random.Generator, sigma2: FloatArray, out: IntArray) -> None:
    """Fill ``out[i]`` with a draw from N_Z(0, sigma2[min(i, len - 1)]).

    For sigma < 2, inversion runs outwards from zero. Above, it is exact rejection from a rounded
    normal of slightly larger variance. Let y = x + u, |u| <= 1/2, y ~ N(0, s2) and s2 = sigma2 +
    sigma. Then log w(x) - log phi(y) is at most (1/4) / (2 (s2 - sigma2)) for every x and u. About
    1 - 1 / sigma of the proposals are accepted.
    """
    current = -1.0
    centre = ratio = spread = ceiling = half_inverse = half_wide = 0.0
    last = sigma2.size - 1
    for i in range(out.size):
        scale2 = sigma2[min(i, last)]
        if scale2 != current:
            current = scale2
            sigma = math.sqrt(scale2)
            if scale2 < 4.0:
                ratio = math.exp(-0.5 / scale2)
                centre = 0.0
                j = 1.0
                while True:  # 1 / Z, smallest terms last: at most 18 of them
                    term = math.exp(-j * j / (2.0 * scale2))
                    centre += 2.0 * term
                    if term < 1e-18:
                        break
                    j += 1.0
                centre = 1.0 / (1.0 + centre)
            else:
                spread = math.sqrt(scale2 + sigma)
                half_inverse = 0.5 / scale2
                half_wide = 0.5 / (scale2 + sigma)
                ceiling = 0.125 / sigma
        if scale2 < 4.0:
            u = rng.random() - centre
            x = 0
            mass = centre
            step = ratio
            while u >= 0.0 and mass > 0.0:
                x += 1
                mass *= step  # w(x) / w(x - 1) = ratio ** (2 x - 1)
                step *= ratio * ratio
                if u < mass:
                    break
                u -= mass
                if u < mass:
                    x = -x
                    break
                u -= mass
            out[i] = x
        else:
            while True:  # ends with probability 1: each try is taken more often than not
                y = spread * rng.standard_normal()
                whole = np.rint(y)
                excess = whole * whole * half_inverse - y * y * half_wide + ceiling
                u = rng.random()
                # 1 - excess <= exp(-excess) spares the exponential nearly every time.
                if u <= 1.0 - excess or u <= math.exp(-excess):
                    out[i] = np.int64(whole)
                    break


@kernel
def add_ripples(
    left: FloatArray,
    left_n: int,
    right: FloatArray,
    right_n: int,
    precision: float,
    out: FloatArray,
) -> None:
    """Fill ``out`` with the ripple (see ``sums``) of two added sums of discrete Gaussians.

    Their rates are precision / left_n and precision / right_n; ``out`` has one entry for each
    residue modulo n = left_n + right_n. With i the right variable's value and H the sum of the two
    rates, the exponent is -h d**2 - H (i - d right_n / n)**2. The fraction is taken in whole
    numbers: no digit is lost.
    """
    n = left_n + right_n
    rate = precision / left_n + precision / right_n
    reach = math.sqrt((REACH - left.min() - right.min()) / rate + 0.25)
    for d in range(n):
        whole = (d * right_n) // n
        part = float((d * right_n) % n) / n
        first = math.floor(part - reach)
        last = math.ceil(part + reach)
        peak = -math.inf
        total = 0.0
        for i in range(first, last + 1):
            value = i + whole
            term = -rate * (i - part) ** 2 + left[(d - value) % left.size]
            term += right[value % right.size]
            if term > peak:
                total = total * math.exp(peak - term) + 1.0
                peak = term
            else:
                total += math.exp(term - peak)
        out[d] = peak + math.log(total)
    top = out[0]
    for d in range(n):
        out[d] -= top


# -----------------------------------------------------------------------------
# The law of a count as a table of logarithms: what every sum over counts and every sampler reads.
#
# Only ratios matter in a posterior, so tables need not be normalised.


#: Most entries of a table.
MAX_ENTRIES = 2**24


class LogTable(NamedTuple):
    """Log-probabilities of a count: ``log_pmf[i]`` at the count ``start + i``.

    Minus infinity beyond; a table without entries is flat on all counts.
    """

    start: int
    log_pmf: FloatArray

    @classmethod
    def target_count(cls, count: int, prior: float) -> "LogTable":
        """Return a count's law: ``count + 1`` with probability ``prior``, else ``count``."""
        return cls(count, np.array([np.log1p(-prior), np.log(prior)]))

    @property
    def flat(self) -> bool:
        """Whether the table is empty: all counts are equally likely."""
        return not self.log_pmf.size

    @property
    def stop(self) -> int:
        """One more than the largest tabulated count."""
        return self.start + self.log_pmf.size

    @property
    def allowed(self) -> IntArray:
        """Counts of positive probability, increasing."""
        return np.asarray(self.start + np.flatnonzero(np.isfinite(self.log_pmf)), dtype=np.int64)

    def log_probability(self, count: int) -> float:
        """Return the log-probability of one count, or 0 where the table is flat."""
        if self.flat:
            return 0.0
        inside = self.start <= count < self.stop
        return float(self.log_pmf[count - self.start]) if inside else -np.inf

    def trimmed(self) -> "LogTable":
        """Return the table without impossible counts at its ends."""
        first, last = self.allowed[[0, -1]].tolist()
        return LogTable(first, self.log_pmf[first - self.start : last - self.start + 1])

    def times(self, other: "LogTable") -> "LogTable":
        """Return the product of two laws of one count, on the counts that both tabulate.

        The product has one impossible entry if there is no such count.
        """
        if self.flat or other.flat:
            return other if self.flat else self
        start = max(self.start, other.start)
        size = min(self.stop, other.stop) - start
        if size < 1:
            return LogTable(start, np.array([-np.inf]))
        parts = [t.log_pmf[start - t.start : start - t.start + size] for t in (self, other)]
        return LogTable(start, parts[0] + parts[1])


#: Nothing is known of a count.
FLAT = LogTable(0, np.empty(0))


def log_table(
    law: object, name: str, *, negative: bool = False, largest: int | None = None
) -> LogTable:
    """Return a law's table from its first count >= 0 to its last, or to ``largest``.

    With ``negative`` mass on negative counts is left out; else it is refused.
    """
    single = single_law(law, name)
    low, high = (float(end) for end in single.support())
    if low < 0.0 and not negative and float(single.cdf(-1)) > 0.0:
        raise ArgumentError(name, "must give no mass to negative counts", got=law)
    first, last = max(low, 0.0), high if largest is None else min(high, float(largest))
    if not last - first < MAX_ENTRIES:
        raise ArgumentError(
            name,
            f"must have at most {MAX_ENTRIES} values >= 0 (tabulate or truncate it)",
            shown=f"the support {low:g} to {high:g}",
        )
    if last >= first:
        values = np.arange(int(first), int(last) + 1)
        log_pmf = np.atleast_1d(np.asarray(single.logpmf(values), dtype=np.float64))
        if np.isfinite(log_pmf).any():
            return LogTable(int(first), log_pmf)
    most = "" if largest is None else f" and <= {largest}"
    raise ArgumentError(name, f"must allow a count >= 0{most}", got=law)
