"""Kernels of the law of a privacy loss: its transform along a line, and sums over its values."""

import math
from typing import NamedTuple

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import FloatArray, IntArray

_ULP = 2.0**-52


class Gaussians(NamedTuple):
    """Noise from discrete Gaussians: sigma2 >= 1, |change|, and how many counts are alike."""

    sigma2: FloatArray
    change: FloatArray
    times: FloatArray


class Lists(NamedTuple):
    """Losses with a list of values: all values and their tilted probabilities, list after list.

    List i has the entries from ``ends[i]`` to ``ends[i + 1]`` and stands for ``times[i]`` counts.
    """

    loss: FloatArray
    mass: FloatArray
    ends: IntArray
    times: FloatArray


@kernel
def transform(
    step: float,
    first: int,
    tilt: float,
    gaussians: Gaussians,
    lists: Lists,
    least: float,
    out: FloatArray,
) -> None:
    """Fill ``out`` with log |f(t)|, arg f(t) and the error of both at t = first step, ....

    f(t) = M(tilt + i t) / M(tilt), with M(s) = E exp(s L) a product over independent counts.  For
    a discrete Gaussian, by Poisson's summation with u = s change,

        M(s) = exp((s + s**2) change**2 / 2 sigma2) theta(u) / theta(0),
        theta(u) = sum over k of exp(-2 pi**2 sigma2 k**2 + 2 pi i k u).

    Within half a period of t, 2 pi sigma2 / change, the terms |k| > 1 are below 2**-56.  Of a node
    with log |f(t)| < ``least`` only a bound of this logarithm is given, and error -1.
    """
    for k in range(out.shape[0]):
        t = step * (first + k)
        size, phase, error, dead = 0.0, 0.0, 0.0, False
        for i in range(gaussians.sigma2.size):
            v, d, n = gaussians.sigma2[i], gaussians.change[i], gaussians.times[i]
            # Into the middle period: whole periods turn the phase alone.
            period = 2.0 * math.pi * v / d
            near = t - period * math.floor(t / period + 0.5)
            size -= n * 0.5 * near * near * d * d / v
            # |theta| is at most 2.01 times its value at t = 0, and further factors at most 1.
            if size + 0.7 * n < least:
                size, dead = size + 0.7 * n, True
                break
            angle = 2.0 * math.pi * ((tilt * d) % 1.0)
            down = math.exp(-2.0 * math.pi * (math.pi * v + near * d))
            up = math.exp(-2.0 * math.pi * (math.pi * v - near * d))
            real = 1.0 + (down + up) * math.cos(angle)
            imaginary = (down - up) * math.sin(angle)
            theta = max(math.sqrt(real * real + imaginary * imaginary), 1e-300)
            zero = 1.0 + 2.0 * math.exp(-2.0 * math.pi**2 * v) * math.cos(angle)
            size += n * (math.log(theta) - math.log(zero))
            # The phase of exp((s**2 d**2 + s d**2) / 2 sigma2), s = tilt + i t, less whole periods.
            rotation = (tilt * near + 0.5 * t) * d * d / v
            phase += n * (rotation + math.atan2(imaginary, real))
            # Rounding: of the terms, of the sums, and of t within its period.
            error += n * (16.0 + 8.0 / theta + 4.0 * abs(rotation) + 4.0 * near * near * d * d / v)
            error += n * 4.0 * t * d * (10.0 / math.sqrt(v) + (1.0 + tilt) * d / v) + abs(phase)
        if not dead:
            for i in range(lists.times.size):
                real, imaginary, spread = 0.0, 0.0, 0.0
                for j in range(lists.ends[i], lists.ends[i + 1]):
                    rotation = t * lists.loss[j]
                    real += lists.mass[j] * math.cos(rotation)
                    imaginary += lists.mass[j] * math.sin(rotation)
                    spread += lists.mass[j] * (8.0 + 2.0 * abs(rotation))
                spread += lists.ends[i + 1] - lists.ends[i]
                modulus, n = math.sqrt(real * real + imaginary * imaginary), lists.times[i]
                if size + n * math.log(min(modulus + spread * _ULP, 1.0)) < least:
                    size, dead = size + n * math.log(min(modulus + spread * _ULP, 1.0)), True
                    break
                size += n * math.log(modulus)
                phase += n * math.atan2(imaginary, real)
                error += n * (8.0 + spread / modulus) + abs(phase)
        out[k, 0] = min(size, 0.0)
        out[k, 1] = phase
        out[k, 2] = -1.0 if dead else error * _ULP


@kernel
def excesses(loss: FloatArray, mass: FloatArray, delta: FloatArray, weight: FloatArray) -> None:
    """Fill ``delta[k]`` with E (1 - exp(loss[k] - L))+ and ``weight[k]`` with its slope there.

    With weight[k] = sum over j >= k of mass[j] exp(loss[k] - loss[j]), from the last value down,

        delta(e) = delta[k] + weight[k] (1 - exp(e - loss[k])),  loss[k - 1] <= e <= loss[k],

    sums of terms that are not negative, added with Kahan's correction.  ``loss`` increases.
    """
    last = loss.size - 1
    anchor = loss[last]
    total, low = mass[last], 0.0  # sum of mass[j] exp(anchor - loss[j]), and what rounding left
    below = 0.0
    delta[last], weight[last] = 0.0, mass[last]
    for k in range(last - 1, -1, -1):
        # delta[k] = delta[k + 1] + weight[k + 1] (1 - exp(loss[k] - loss[k + 1]))
        term = -weight[k + 1] * math.expm1(loss[k] - loss[k + 1]) - below
        delta[k] = delta[k + 1] + term
        below = (delta[k] - delta[k + 1]) - term
        if anchor - loss[k] > 300.0:  # before the exponential overflows
            factor = math.exp(loss[k] - anchor)
            total, low, anchor = total * factor, low * factor, loss[k]
        term = mass[k] * math.exp(anchor - loss[k]) - low
        grown = total + term
        low, total = (grown - total) - term, grown
        weight[k] = total * math.exp(loss[k] - anchor)


@kernel
def merge(loss: FloatArray, mass: FloatArray, width: float) -> int:
    """Merge sorted values within ``width`` of the first of them; return how many are left."""
    count, begin = 0, loss[0]
    for k in range(1, loss.size):
        if loss[k] - begin <= width:
            mass[count] += mass[k]
        else:
            count += 1
            loss[count], mass[count] = loss[k], mass[k]
            begin = loss[k]
    return count + 1
