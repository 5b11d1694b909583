"""Compiled arithmetic of messages: convolutions, factors, cuts.  Nothing here checks arguments."""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray


class Factors(NamedTuple):
    """Each unit's own factor exp(-lam (x - y - frac)**2 + delta x), or its table.

    ``row[u]`` is -1, or the row of ``rows`` that says where in ``values`` the logarithms of the
    table are: lowest count, offset, size.
    """

    lam: FloatArray
    y: IntArray
    frac: FloatArray
    delta: FloatArray
    row: IntArray
    values: FloatArray
    rows: IntArray


@kernel
def factor_window(y: int, frac: float, lam: float, delta: float, depth: float) -> Any:
    """Describe a unit's own factor exp(-lam (x - y - frac)**2 + delta x) on x >= 0.

    Returns its largest point x0, the slope of the logarithm there, the window outside which it
    is below exp(-depth) of the largest, and a bound on its sum (largest value 1).
    """
    shift = frac + delta / (2.0 * lam)
    x0: Any = max(y + np.int64(np.rint(min(max(shift, -4.5e15), 4.5e15))), 0)
    slope = 2.0 * lam * ((y - x0) + frac) + delta
    half = 0.5 * slope / lam
    reach = math.sqrt(half * half + depth / lam)
    up = half + reach if half > 0.0 else (depth / lam) / (reach - half)
    down = reach - half if half < 0.0 else (depth / lam) / (reach + half)
    low = max(x0 - np.int64(math.ceil(min(down, 4e15))), 0)
    high = x0 + np.int64(math.ceil(min(up, 4e15)))
    return x0, slope, low, high, 3.0 + math.sqrt(math.pi / lam)


@kernel
def convolve_into(a: Any, b: Any, first: int, out: Any) -> None:
    """Fill ``out[z] = sum a[i] b[first + z - i]``; sums of products that are not negative."""
    if a.size > b.size:
        a, b = b, a
    out[:] = 0.0
    last = first + out.size
    for i in range(a.size):
        weight = a[i]
        if weight > 0.0:
            for j in range(max(0, first - i), min(b.size, last - i)):
                out[i + j - first] += weight * b[j]


@kernel
def correlate_into(u: Any, v: Any, first: int, out: Any) -> None:
    """Fill ``out[x] = sum_y u[y] v[x + y + first]``, v zero outside its window."""
    out[:] = 0.0
    if u.size <= out.size:
        for y in range(u.size):
            shift = y + first
            for x in range(max(0, -shift), min(out.size, v.size - shift)):
                out[x] += u[y] * v[x + shift]
    else:
        for x in range(out.size):
            total = 0.0
            shift = x + first
            for y in range(max(0, -shift), min(u.size, v.size - shift)):
                total += u[y] * v[y + shift]
            out[x] = total


@kernel
def apply_factor(low: int, factor: Any, table: Any, out: Any) -> tuple[float, bool]:
    """Multiply ``out`` by a unit's factor, scale to sum 1; return the log sum, and any underflow.

    ``factor`` is (x0, slope, lam); a ``table`` (lowest count, log values) replaces it.
    """
    peak = -math.inf
    total = 0.0
    if factor[2] == 0.0 and not table[1].size:  # no factor: spare the logarithms
        for i in range(out.size):
            total += out[i]
        if not total > 0.0:
            return peak, False
        for i in range(out.size):
            out[i] /= total
        return math.log(total), False
    for i in range(out.size):
        if out[i] > 0.0:
            if table[1].size:
                at = low + i - table[0]
                gain = table[1][at] if 0 <= at < table[1].size else -math.inf
            else:
                e = float(low + i - factor[0])
                gain = e * (factor[1] - factor[2] * e)
            out[i] = math.log(out[i]) + gain
            peak = max(peak, out[i])
        else:
            out[i] = -math.inf
    if peak == -math.inf:
        return peak, False
    under = False
    for i in range(out.size):
        under |= -math.inf < out[i] - peak < -700.0
        out[i] = math.exp(out[i] - peak)
        total += out[i]
    for i in range(out.size):
        out[i] /= total
    return peak + math.log(total), under


@kernel
def factor_of(u: int, factors: Any) -> Any:
    """Return a unit's factor, its table (empty for none) and a bound on the factor's sum."""
    factor, spread = (0, 0.0, 0.0), math.inf
    low, offset, size = 0, 0, 0
    if u >= 0 and factors.row[u] >= 0:
        row = factors.rows[factors.row[u]]
        low, offset, size = row[0], row[1], row[2]
        spread = np.exp(factors.values[offset : offset + size]).sum()
    elif u >= 0 and factors.lam[u] > 0.0:
        window = factor_window(factors.y[u], factors.frac[u], factors.lam[u], factors.delta[u], 1.0)
        factor, spread = (window[0], window[1], factors.lam[u]), window[4]
    return factor, (low, factors.values[offset : offset + size]), spread


@kernel
def tails(out: Any, eps: float) -> tuple[int, int, float]:
    """Return the range that remains when at most ``eps`` is cut from each end, and what is cut."""
    first, last = 0, out.size
    lower = upper = 0.0
    while first < last - 1 and lower + out[first] <= eps:
        lower += out[first]
        first += 1
    while last - 1 > first and upper + out[last - 1] <= eps:
        upper += out[last - 1]
        last -= 1
    return first, last, lower + upper


@kernel
def lowest(a: Any) -> float:
    """Return the smallest positive entry."""
    low = math.inf
    for value in a:
        if value > 0.0:
            low = min(low, value)
    return low


@kernel
def lost_below(a: Any, b: Any, lost_a: Any, lost_b: Any, spread: float, column: int) -> float:
    """Bound the mass lost below a merge, after its factor.

    What one side lost meets the other side, and passes the factor (largest value 1, sum
    ``spread``) at most as fast as the other side's largest value allows.
    """
    pass_a = min(1.0, b.max() * spread)
    pass_b = min(1.0, a.max() * spread)
    r, q = lost_a[column], lost_b[column]
    bound: float = r * (pass_a + q) + q * pass_b
    return bound
