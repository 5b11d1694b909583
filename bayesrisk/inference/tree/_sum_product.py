"""Sum-product on a tree of counts: passage up, passage down.

Messages are tilted (see below), so that they are large where the posterior is, however
much parent and children disagree.  What is cut off a message then weighs about as much in the
posterior, and a bound on it follows from the passage up alone; if the bound is not met, tilts are
improved and windows widened.
"""

from dataclasses import dataclass

import numpy as np

from bayesrisk._validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.tree import _kernels as kernels
from bayesrisk.inference.tree import _messages as messages
from bayesrisk.inference.tree.leaf_prior import Plan

# -----------------------------------------------------------------------------
# Tilts of a tree's messages: where a message has to be large for the posterior.
#
# The evidence of a unit is multiplied by exp((theta - tilt) x), theta the tilt of the release above
# it and tilt that of its own children, and a leaf's message by exp(theta x).  The product over a
# tree stays the same.  The tilts minimise the product of the messages' sums and the factors'
# largest values, which bounds the evidence and is convex.


#: Newton steps at most; a dozen are enough where counts agree, some fifty where they do not.
_MAX_STEPS = 200
#: Largest tilt in nats.  Tilts cancel against the evidence to within their rounding, 2**-52 of
#: them: beyond this the log odds of neighbouring counts would be wrong by more than 1e-6.
MAX_TILT = 2.0**32


def _owners(plan: Plan, released: BoolArray) -> IntArray:
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
    released: BoolArray,
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
    known = kernels.LeafArrays(
        leaves, plan.y, plan.frac, plan.lam, plan.law, plan.bank, plan.bank_of
    )
    releases = kernels.NodeReleases(owner, plan.is_leaf, released, lam, centre, bias)

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


#: Doubles in all messages together; the passage down needs as many again.
MAX_ENTRIES = 2**27
_LONGEST_DIRECT = 2**24  # products; beyond, a transform is faster
_WORST_TRANSFORM = 1e-12  # share of the posterior that rounding of a transform may touch
_IMPROVEMENTS = 3  # of the tilts, before windows are widened
_TENSION = 60.0  # log of an excess for which better tilts are cheaper than wider windows
_NARROWEST = -600.0  # log of the smallest share that is cut: everything stays in double range


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior pmfs of all units, one after the other in ``pmf``.

    ``summary`` holds mean, standard deviation, mode and P(count >= 1) of each.
    """

    low: IntArray
    offset: IntArray
    size: IntArray
    pmf: FloatArray
    summary: FloatArray
    truncation: float
    rounding: float
    peak_bytes: int


def _own_factors(plan: Plan, delta: FloatArray) -> messages.Factors:
    """Return each unit's factor, largest value 1."""
    row = np.full(plan.lam.size, -1, dtype=np.int64)
    spots, parts = [(0, 0, 0)], [np.zeros(0)]
    for u, (low, values) in plan.tables.items():
        # The evidence relative to that of the lowest count, which would drown the differences.
        d = np.arange(values.size, dtype=np.float64)
        gap = float(low - int(plan.y[u])) - plan.frac[u]
        values = values - plan.lam[u] * d * (d + 2.0 * gap) + delta[u] * d
        row[u] = len(spots)
        spots.append((low, sum(p.size for p in parts), values.size))
        parts.append(values - values.max())
    values, rows = np.concatenate(parts), np.array(spots, dtype=np.int64)
    return messages.Factors(plan.lam, plan.y, plan.frac, delta, row, values, rows, plan.bounds)


def _transform(a: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
    """Return a convolution by FFT, and a bound on the error of each entry."""
    from scipy import signal  # slow to import, seldom needed

    # Rounding of the transforms (Higham 2002, section 24.1), with a factor of two in hand.
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    error = 8.0 * 2.0**-53 * np.log2(a.size + b.size) * norm
    return np.maximum(signal.fftconvolve(a, b), 0.0), error


class Passage:
    """One run up and down a plan with windows of one width."""

    def __init__(self, plan: Plan, tilts: Tilts, needed: IntArray) -> None:
        self.plan, self.needed = plan, needed
        self.tilt_by(tilts)
        n = plan.unit.size
        self.merges = messages.Merges(plan.left, plan.right, plan.unit)
        self.spot = np.zeros((n, 3), dtype=np.int64)
        self.lost = np.zeros((n, 2))
        self.store = np.empty(max(64 * n, 1024))
        self.above = np.empty(0)
        self.rounded = 0.0
        self.empty = False

    @property
    def state(self) -> messages.Messages:
        """The messages as the kernels take them; the store may have grown."""
        return messages.Messages(self.spot, self.lost, self.store)

    def tilt_by(self, tilts: Tilts) -> None:
        """Use these tilts from now on."""
        self.tilts, self.theta = tilts, tilts.theta
        self.factors = _own_factors(self.plan, tilts.delta)

    def improve(self) -> None:
        """Tilt so that the messages of the last passage up would have met where they should."""
        windows = self.spot[self.plan.root].tolist()
        means = [low + np.arange(n) @ self.store[start : start + n] for low, start, n in windows]
        self.tilt_by(find_tilts(self.plan, self.tilts, np.array(means)))

    def up(self, log_eps: float) -> float:
        """Fill the messages; return the bound on the posterior mass that is cut off."""
        plan, s, offset = self.plan, 0, 0
        leaves = messages.Leaves(plan.law, plan.bank, plan.bank_of, self.theta, self.needed)
        self.empty = False
        while True:  # ends: each round makes room, up to ``most``, or passes a segment
            s, offset, code = messages.upward(
                s,
                offset,
                self.merges,
                leaves,
                self.factors,
                self.state,
                log_eps,
                _LONGEST_DIRECT,
            )
            if code == messages.DONE:
                self.used = offset
                return float(self.lost[-1, 0])
            if code == messages.LONG:
                code = self._long_merge(s, offset, log_eps)
            if code == messages.ROOM:
                self._grow(offset + int(self.spot[s, 2]))
            elif code == messages.IMPROPER:
                raise ArgumentError(self._about(s) + "its count is bounded too loosely")
            elif code == messages.EMPTY:
                self.empty = True
                return np.inf
            else:
                offset += int(self.spot[s, 2])
                s += 1

    def _about(self, s: int) -> str:
        name = self.plan.leaf_name(int(self.plan.unit[s]))
        return f"leaf {name!r} needs a release or a proper leaf_prior: "

    def _grow(self, needed: int) -> None:
        if needed > MAX_ENTRIES:
            raise ArgumentError(
                f"the tree must need at most {MAX_ENTRIES} probabilities, got more: give leaves "
                f"without a release a narrower leaf_prior"
            )
        larger = np.empty(min(max(2 * self.store.size, needed), MAX_ENTRIES))
        larger[: self.store.size] = self.store
        self.store = larger

    def _message(self, s: int) -> FloatArray:
        _, offset, size = self.spot[s]
        return self.store[offset : offset + size]

    def _long_merge(self, s: int, offset: int, log_eps: float) -> int:
        """Merge two long messages by transform, or directly where that would not be accurate."""
        plan = self.plan
        left, right = int(plan.left[s]), int(plan.right[s])
        low, size, outside = messages.product_window(
            s, self.merges, self.factors, self.spot, log_eps
        )
        if size <= 0:
            return int(messages.EMPTY)
        if offset + size > self.store.size:
            self.spot[s, 2] = size
            return int(messages.ROOM)
        first = low - int(self.spot[left, 0] + self.spot[right, 0])
        a, b = self._message(left), self._message(right)
        full, error = _transform(a, b)
        for exact in (False, True):
            conv, rounded = full[first : first + size].copy(), size * error
            if exact:
                rounded = 0.0
                messages.convolve_into(a, b, first, conv)
            missing = (outside, float(rounded))
            code = messages.close_merge(
                s, low, conv, missing, self.merges, self.factors, self.state, log_eps
            )
            if code == messages.DONE and self.lost[s, 1] <= _WORST_TRANSFORM:
                break
        return int(code)

    def down(self) -> None:
        """Fill the outside messages, so that message times outside message is the posterior."""
        s = self.plan.unit.size - 1
        self.above = np.zeros(self.used)
        _, offset, size = self.spot[s]
        self.above[offset : offset + size] = 1.0
        messages.scale_above(s, self.spot, self.store, self.above)
        while s >= 0:
            s, code = messages.downward(
                s, self.merges, self.factors, self.state, self.above, _LONGEST_DIRECT
            )
            if code == messages.LONG:
                self._long_split(s)
                s -= 1

    def _long_split(self, s: int) -> None:
        plan = self.plan
        out = messages.outside_message(s, self.merges, self.factors, self.state, self.above)
        left, right = int(plan.left[s]), int(plan.right[s])
        first = int(self.spot[left, 0] + self.spot[right, 0] - self.spot[s, 0])
        for child, other in ((left, right), (right, left)):
            _, offset, size = self.spot[child]
            u, d = self._message(other), self.above[offset : offset + size]
            full, error = _transform(u[::-1], out)
            at = np.arange(size) + first + u.size - 1
            inside = (at >= 0) & (at < full.size)
            d[:] = np.where(inside, full[np.clip(at, 0, full.size - 1)], 0.0)
            share = error / max(float(self._message(child) @ d), 1e-300)
            if share > _WORST_TRANSFORM:
                messages.correlate_into(u, out, first, d)
            else:
                self.rounded += share
            messages.scale_above(child, self.spot, self.store, self.above)

    def marginals(self, truncation: float) -> Marginals:
        """Return the posterior of every unit."""
        low, start, size = self.spot[self.plan.root].T.copy()
        offset = np.concatenate(([0], np.cumsum(size)[:-1]))
        pmf = np.empty(int(size.sum()))
        summary = np.empty((size.size, 4))
        kernels.gather_marginals(low, (start, size), self.store, self.above, pmf, summary)
        peak = self.store.nbytes + self.above.nbytes + pmf.nbytes
        rounding = self.rounded + float(self.lost[-1, 1])
        return Marginals(low, offset, size, pmf, summary, min(truncation, 1.0), rounding, peak)


def run(plan: Plan, *, tail: float, needed: IntArray | None = None) -> Marginals:
    """Return the posterior of every unit, with at most ``tail`` cut off if possible."""
    wanted = np.full(plan.lam.size, -1, dtype=np.int64) if needed is None else needed
    passage = Passage(plan, find_tilts(plan), wanted)
    # In hand for evidence in tension, which at the top of a tree grows with its size.
    margin = 7.0 + min(2e-4 * plan.unit.size, 50.0)
    log_eps = np.log(tail) - np.log(plan.unit.size) - margin
    improved = narrowed = 0
    while True:  # ends: at most _IMPROVEMENTS, one narrowing, and doublings up to _NARROWEST
        log_eps = max(log_eps, _NARROWEST)
        bound = passage.up(log_eps)
        if bound <= tail or log_eps == _NARROWEST:
            break
        excess = np.log(bound / tail) if np.isfinite(bound) else np.inf
        if excess > _TENSION and improved < _IMPROVEMENTS and not passage.empty:
            passage.improve()
            improved += 1
        elif narrowed or np.isinf(excess):
            log_eps *= 2.0
        else:  # as a rule, what is cut off shrinks with the share that may be
            log_eps -= excess + 2.0
            narrowed = 1
    if passage.empty:
        raise ArgumentError(
            "leaf_prior, other priors and bounds must allow some set of counts that adds up, got "
            "none whose evidence is within exp(-600) of the best for each count alone"
        )
    passage.down()
    return passage.marginals(bound)
