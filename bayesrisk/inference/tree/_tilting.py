"""Tilts of a tree's messages: where a message has to be large for the posterior.

The evidence of a unit is multiplied by exp((theta - tilt) x), theta the tilt of the release above
it and tilt that of its own children, and a leaf's message by exp(theta x).  The product over a
tree stays the same.  The tilts minimise the product of the messages' sums and the factors'
largest values, which bounds the evidence and is convex.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.tree import _kernels as kernels
from bayesrisk.inference.tree._plan import Plan

#: Newton steps at most; a dozen are enough where counts agree, some fifty where they do not.
_MAX_STEPS = 200
#: Largest tilt in nats.  Tilts cancel against the evidence to within their rounding, 2**-52 of
#: them: beyond this the log odds of neighbouring counts would be wrong by more than 1e-6.
MAX_TILT = 2.0**32


def _owners(plan: Plan, released: NDArray[np.bool_]) -> IntArray:
    """Return the nearest unit above each with something that bounds its count; -1 for none."""
    owner = np.full(plan.lam.size, -1, dtype=np.int64)
    for u, above in enumerate(plan.parent.tolist()[1:], start=1):
        owner[u] = above if released[above] else owner[above]
    return owner


@dataclass(frozen=True, eq=False)
class Tilts:
    """The tilt of every unit's children, of the unit itself (theta), and theta less the first."""

    tilt: FloatArray
    theta: FloatArray
    delta: FloatArray
    expected: FloatArray


def find_tilts(
    plan: Plan, last: Tilts | None = None, message_mean: FloatArray | None = None
) -> Tilts:
    """Return tilts, improved by the means of the messages that the last ones gave."""
    lam, centre = plan.lam.copy(), plan.y + plan.frac
    for u, (low, values) in plan.tables.items():
        weight = np.exp(values - values.max())
        weight /= weight.sum()
        x = low + np.arange(values.size)
        mean = float(weight @ x)
        precision = 0.5 / max(float(weight @ (x - mean) ** 2), 1e-6)
        centre[u] = (lam[u] * centre[u] + precision * mean) / (lam[u] + precision)
        lam[u] += precision
    released = (lam > 0.0) & ~plan.is_leaf
    owner = _owners(plan, released)
    free = plan.is_leaf & (plan.lam == 0.0) & (plan.bank_of[:, 2] == 0)
    free &= np.isfinite(plan.law[:, 1]) & (plan.law[:, 2] >= 0.0)
    if np.any(free & (owner < 0)):
        leaf = int(np.argmax(free & (owner < 0)))
        raise ArgumentError(
            f"leaf_prior must be proper for leaf {plan.leaf_name(leaf)!r}: nothing is released "
            f"there or above it, and its posterior is improper"
        )
    tilt, bias = np.zeros(lam.size), np.zeros(lam.size)
    if last is not None and message_mean is not None:
        bias = np.where(released, message_mean - last.expected, 0.0)
        return _minimise(plan, lam, centre, owner, released, bias, last.tilt)
    n_free = np.bincount(owner[free], minlength=lam.size)
    has_free = n_free > 0
    tilt[has_free] = -np.log1p(n_free[has_free] / (np.maximum(centre[has_free], 0.0) + 1.0))
    return _minimise(plan, lam, centre, owner, released, bias, tilt)


def _minimise(
    plan: Plan,
    lam: FloatArray,
    centre: FloatArray,
    owner: IntArray,
    released: NDArray[np.bool_],
    bias: FloatArray,
    tilt: FloatArray,
) -> Tilts:
    """Return tilts after damped Newton steps; any tilts that can be summed are valid.

    So the number of steps is bounded, and where they run out the last tilts are taken: the passage
    that uses them bounds what it cuts off whatever they are.
    """
    step = np.zeros(lam.size)
    inner = np.flatnonzero(released)
    leaves = np.flatnonzero(plan.is_leaf)
    loose = 0.5 / lam[inner]
    known = kernels.Leaves(leaves, plan.y, plan.frac, plan.lam, plan.law, plan.bank, plan.bank_of)
    releases = kernels.Releases(owner, plan.is_leaf, released, lam, centre, bias)

    def above(values: FloatArray) -> FloatArray:
        return np.where(owner >= 0, values[owner], 0.0)

    def moments(point: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
        mean, var = np.zeros(lam.size), np.zeros(lam.size)
        ok = kernels.leaf_moments(known, above(point), mean, var)
        return bool(ok), mean, var

    ok, mean, var = moments(tilt)
    for _ in range(_MAX_STEPS if ok and inner.size else 0):
        slope = kernels.newton_direction(releases, tilt, mean, var, step)
        if not slope < -0.5:  # half of it is what the bound could still gain, in nats
            break
        size, reached = 1.0, np.inf
        while size > 1e-9:  # at most thirty halvings
            trial = tilt + size * step
            inside, mean, var = moments(trial)
            if inside:  # the slope along the step says whether it went too far
                with np.errstate(over="ignore", invalid="ignore"):  # beyond doubles is too far
                    count = centre[inner] + (above(trial) - trial)[inner] * loose
                    reached = float(mean[leaves] @ above(step)[leaves])
                    reached += float(count @ (above(step) - step)[inner] + bias @ above(step))
                if reached <= 0.5 * abs(slope):
                    break
            size *= 0.5
        else:
            break
        tilt = trial
    theta = above(tilt)
    largest = float(np.max(np.abs(tilt), initial=0.0))
    if not largest <= MAX_TILT:
        raise ArgumentError(
            f"releases must agree to within a tilt of {MAX_TILT:.3g} nats (about 2 rho times the "
            f"gap between a count and what the others say of it), got {largest:.3g}: their noise "
            "could not have made them, or rho is too large"
        )
    delta = np.where(released, theta - tilt, 0.0)
    expected = centre.astype(np.float64)
    expected[inner] += delta[inner] * loose
    return Tilts(tilt, theta, delta, expected)
