"""Averages over all releases of two levels, given the truth, and the decisions from them.

The truth is the block count, k or k + 1, and the group count. The decision depends on the block's
release through a threshold, which is a function of the other two releases (n, S). So a probability
of decisions is a sum over (n, S) of tails of the block's noise. Noise is cut where each side weighs
less than ``exp(-_REACH)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.sums import sum_ripple
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.model import Settings
from bayesrisk.inference.two_levels.posterior import TwoLevelSettings
from bayesrisk.risk.count.averages import marginal_ratio

_REACH = 38.0
#: Bound on the probability of the releases left out: three laws, two sides each.
TRUNCATION = float(6.0 * np.exp(-_REACH))
MAX_CELLS = 2**24
_TABLE = 2**20


@dataclass(frozen=True)
class Truth:
    """True counts relative to the known count k: the block's (0 or 1) and the group's."""

    target: int
    group: int


def _noise_window(precision: float, ripple: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the relevant values of a noise and their probabilities; a single 0 if no noise."""
    if precision == 0.0:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    reach = np.sqrt((_REACH + float(np.ptp(ripple))) / precision) + 1.0
    if not reach < MAX_CELLS:
        raise ArgumentError(
            "rho_block",
            f"and rho_group must leave noise of fewer than {MAX_CELLS} values",
            shown=f"{reach:g}",
        )
    x = np.arange(-int(reach), int(reach) + 1)
    log_weight = ripple[x % ripple.size] - precision * x.astype(float) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return x, weight / weight.sum()


def siblings_noise(settings: Settings) -> tuple[IntArray, FloatArray]:
    """Return non-negligible noise values of the siblings' total, and their probabilities.

    The noise is the sum really added, whatever the adversary assumes.
    """
    ripple = sum_ripple(settings.block.item(), settings.n_siblings.item())
    return _noise_window(settings.total.item(), ripple)


def block_noise(settings: Settings) -> tuple[IntArray, FloatArray]:
    """Return non-negligible noise values of the block's count, and their probabilities."""
    return _noise_window(settings.block.item(), np.zeros(1))


@dataclass(frozen=True)
class Grid:
    """Releases of group and siblings, relative to k, around one or more truths."""

    group: IntArray
    siblings: IntArray
    group_noise: IntArray
    group_pmf: FloatArray
    siblings_noise: IntArray
    siblings_pmf: FloatArray

    def part(self, truth: Truth, settings: Settings) -> tuple[slice, slice]:
        """Return the slices of the grid that hold the releases around one truth."""
        n = self.group_noise[0] + (0 if settings.group == 0.0 else truth.group)
        s = self.siblings_noise[0] + (0 if settings.block == 0.0 else truth.group - truth.target)
        i, j = int(n - self.group[0]), int(s - self.siblings[0])
        return slice(i, i + self.group_noise.size), slice(j, j + self.siblings_noise.size)


def grid_around(settings: Settings, truths: list[Truth]) -> Grid:
    """Return the smallest grid that contains the releases around all truths."""
    n, n_pmf = _noise_window(settings.group.item(), np.zeros(1))
    s, s_pmf = siblings_noise(settings)
    groups = [0 if settings.group == 0.0 else t.group for t in truths]
    siblings = [0 if settings.block == 0.0 else t.group - t.target for t in truths]
    near = np.arange(n[0] + min(groups), n[-1] + max(groups) + 1)
    near_siblings = np.arange(s[0] + min(siblings), s[-1] + max(siblings) + 1)
    return Grid(near, near_siblings, n, n_pmf, s, s_pmf)


def _grids(settings: Settings, truths: list[Truth]) -> Iterator[tuple[Grid, list[int]]]:
    """Yield grids with the truths they serve; one grid for all truths if that is no more work."""
    shared = grid_around(settings, truths)
    alone = shared.group_noise.size * shared.siblings_noise.size
    if shared.group.size * shared.siblings.size <= max(len(truths), 1) * alone:
        check_size(shared)
        yield shared, list(range(len(truths)))
        return
    for i, truth in enumerate(truths):
        grid = grid_around(settings, [truth])
        check_size(grid)
        yield grid, [i]


def check_size(grid: Grid) -> None:
    """Raise if there are more releases than can be enumerated."""
    cells = grid.group.size * grid.siblings.size
    if cells > MAX_CELLS:
        raise ArgumentError(
            f"rho_block, rho_group and n_siblings must leave at most {MAX_CELLS} releases to "
            f"enumerate, got {cells}"
        )


def upper_tail(settings: Settings, thresholds: ArrayLike, target: int) -> FloatArray:
    """Return P(d >= threshold), d = target + noise, for whole or infinite thresholds."""
    first = np.clip(np.asarray(thresholds, dtype=float) - target, -(2.0**52), 2.0**52)
    if settings.block == 0.0:
        return np.where(first <= 0.0, 1.0, 0.0)
    law = DiscreteGaussian(0.5 / settings.block.item())
    low, high = float(first.min()), float(first.max())
    if high - low < _TABLE:
        table = np.atleast_1d(law.sf(np.arange(low - 1.0, high)))
        return np.asarray(table[(first - low).astype(np.int64)])
    return np.asarray(law.sf(first - 1.0))


def deciding(
    settings: Settings, thresholds: tuple[ArrayLike, ArrayLike], target: int, ties: str
) -> FloatArray:
    """Return the probability of deciding for k + 1, given two thresholds; ties count half."""
    above = upper_tail(settings, thresholds[0], target)
    if ties == "as-published":
        return above
    return 0.5 * (above + upper_tail(settings, thresholds[1], target))


def block_thresholds(settings: Settings) -> tuple[FloatArray | float, FloatArray | float]:
    """Return the thresholds of an adversary who reads the block alone."""
    p = settings.prior.item()
    logit = float(np.log(p) - np.log1p(-p))
    if settings.block == 0.0:
        return -np.inf if p >= 0.5 else np.inf, -np.inf if p > 0.5 else np.inf
    return model.threshold(logit, settings.block.item())


def decisions(settings: Settings, truths: list[Truth], ties: str) -> FloatArray:
    """Return columns for each truth: P(correct), P(only with hierarchy), P(only without)."""
    out = np.empty((len(truths), 3))
    alone = block_thresholds(settings)
    for grid, members in _grids(settings, truths):
        n, total = grid.group.astype(float)[:, None], grid.siblings.astype(float)[None, :]
        low, high = model.thresholds(settings, n, total)
        for i in members:
            truth = truths[i]
            part = grid.part(truth, settings)
            above = deciding(settings, (low[part], high[part]), truth.target, ties)
            base = float(deciding(settings, alone, truth.target, ties))
            change = above - base if truth.target else base - above
            correct = above if truth.target else 1.0 - above
            values = (correct, np.maximum(change, 0.0), np.maximum(-change, 0.0))
            out[i] = [grid.group_pmf @ value @ grid.siblings_pmf for value in values]
    return out


def marginal_posteriors(settings: Settings, truths: list[Truth]) -> FloatArray:
    """Return each truth's average posterior over the releases around it."""
    out = np.empty(len(truths))
    average = _average_published if settings.published else _average_coherent
    for grid, members in _grids(settings, truths):
        for i in members:
            rows, columns = grid.part(truths[i], settings)
            n = grid.group[rows].astype(float)[:, None]
            total = grid.siblings[columns].astype(float)[None, :]
            value = average(settings, n, total, truths[i].target)
            out[i] = grid.group_pmf @ value @ grid.siblings_pmf
    return out


def _average_coherent(
    settings: Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    """Return the posterior averaged over the block's release, for each pair (n, S)."""
    p, a = settings.prior, settings.block.item()
    evidence = model.group_evidence(settings, n, total)
    with np.errstate(over="ignore", under="ignore"):
        odds = np.exp(np.log(p) - np.log1p(-p) + evidence)
        belief = 1.0 / (1.0 + 1.0 / odds) if target else 1.0 / (1.0 + odds)
    if a == 0.0:
        return np.asarray(belief)
    return np.asarray(np.minimum(marginal_ratio(a, np.maximum(belief, 1e-300)) * belief, 1.0))


def _average_published(
    settings: Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    noise, pmf = block_noise(settings)
    value = np.zeros(np.broadcast_shapes(n.shape, total.shape))
    for eta, weight in zip(noise.tolist(), pmf.tolist(), strict=True):
        d = np.array(float(eta + target) if settings.block else 0.0)
        posterior = model.target_probability(settings, d, n, total)
        value += weight * (posterior if target else 1.0 - posterior)
    return value


#: Largest group: the releases around it, which noise may lift, still differ exactly in a double.
MAX_GROUP = 2**51


@dataclass(frozen=True)
class Question:
    """Checked arguments of an average: settings and truths, in one broadcast shape."""

    arrays: dict[str, Any]
    model: Settings
    shape: tuple[int, ...]
    ties: str

    def groups(self) -> Iterator[tuple[Settings, list[Truth], IntArray]]:
        """Yield one model, its truths and their positions, for each distinct setting."""
        shared = self.model
        settings = (shared.block, shared.group, shared.n_siblings, shared.prior, shared.known_count)
        columns = np.column_stack([np.broadcast_to(v, self.shape).ravel() for v in settings])
        group, block = (self.arrays[name].ravel() for name in ("group_count", "block_count"))
        distinct, index = np.unique(columns, axis=0, return_inverse=True)
        for i, (a, b, m, p, k) in enumerate(distinct):
            members = np.flatnonzero(index.ravel() == i)
            truths = [Truth(int(block[j] - k), int(group[j] - k)) for j in members]
            one = replace(
                shared,
                block=np.array(a),
                group=np.array(b),
                prior=np.array(p),
                n_siblings=np.array(int(m)),
                known_count=np.array(int(k)),
            )
            yield one, truths, members


def read_question(
    raw: TwoLevelSettings,
    group_count: ArrayLike,
    block_count: ArrayLike | None = None,
    *,
    ties: str = model.TIES[0],
) -> Question:
    """Return checked arguments; warn if the conditionals have no joint law."""
    two_levels = raw.checked
    model.warn_if_published(two_levels)
    k = two_levels.known_count
    block = k + 1 if block_count is None else check.count_array(block_count, "block_count")
    group = check.count_array(group_count, "group_count", lower=0, upper=MAX_GROUP)
    for name, precision in (("rho_block", two_levels.block), ("rho_group", two_levels.group)):
        bad = (precision > 0.0) & ((precision < 1e-30) | (precision > 1e99))
        if bad.any():
            raise ArgumentError(
                f"{name} / sensitivity**2 must be 0 or in [1e-30, 1e99], "
                f"got {check.describe_first(precision, bad)}"
            )
    arrays = {
        "group_count": group,
        "block_count": block,
        "known_count": k,
        "n_siblings": two_levels.n_siblings,
        **{name: raw.arrays[name] for name in ("rho_block", "rho_group", "sensitivity")},
        "prior": two_levels.prior,
    }
    shape = check.broadcast(**arrays)
    full = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    check_truth(two_levels, full, "group_count")
    check.choice(ties, "ties", model.TIES)
    return Question(full, two_levels, shape, ties)


def check_truth(settings: Settings, arrays: dict[str, Any], name: str) -> None:
    """Raise if the adversary holds a true count impossible; ``name`` names the group's.

    Nothing is impossible under the published conditionals, which are no posterior.
    """
    block, group, k = (arrays[key] for key in ("block_count", "group_count", "known_count"))
    bad = (block != k) & (block != k + 1)
    if bad.any():
        raise ArgumentError(
            f"block_count must be known_count or one more, got {check.describe_first(block, bad)}"
        )
    bad = group < block
    if bad.any():
        raise ArgumentError(
            f"{name} must be >= block_count, got {check.describe_first(group, bad)}"
        )
    if settings.group_prior.flat or settings.published:
        return
    possible = settings.group_prior.allowed
    bad = ~np.isin(group, possible)
    if bad.any():
        rule = f"possible under group_prior ({possible[0]} to {possible[-1]})"
        if settings.known_total is not None:
            rule = f"known_total = {settings.known_total}"
        raise ArgumentError(f"{name} must be {rule}, got {check.describe_first(group, bad)}")


def without_hierarchy(question: Question, *, decision: bool) -> FloatArray:
    """Return the answers for an adversary who reads the block alone."""
    out = np.empty(int(np.prod(question.shape)))
    for one, truths, members in question.groups():
        alone = block_thresholds(one)
        for truth, j in zip(truths, members, strict=True):
            if decision:
                above = float(deciding(one, alone, truth.target, question.ties))
                out[j] = above if truth.target else 1.0 - above
                continue
            p, a = one.prior.item(), one.block.item()
            belief = p if truth.target else 1.0 - p
            out[j] = belief if a == 0.0 else min(float(marginal_ratio(a, belief)) * belief, 1.0)
    return out.reshape(question.shape)


@dataclass(frozen=True)
class AverageAnswer(Tabular):
    """Base of answers found by enumerating releases."""

    question: Question
    _columns: ClassVar[tuple[str, ...]]

    @property
    def truncation_bound(self) -> float:
        """Bound on the error from releases left out."""
        return TRUNCATION

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value."""
        return pd.DataFrame({name: array.ravel() for name, array in self.question.arrays.items()})

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each value, with truth and settings."""
        return self.settings.assign(**{n: np.ravel(getattr(self, n)) for n in self._columns})


@displayed
@dataclass(frozen=True)
class HierarchicalRisk(AverageAnswer):
    """An average over the releases of two levels, given the truth.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    quantity : str
        The averaged quantity: ``"correct decision"``, ``"posterior of the truth"`` or
        ``"decision accuracy"``.
    value : ndarray
        The average, in [0, 1].
    without_hierarchy, without_release : ndarray
        The same averages for an adversary who reads the block alone, and for one who uses the prior
        only: the baseline.
    """

    _columns = ("value", "without_hierarchy", "without_release")
    quantity: str
    value: FloatArray
    without_hierarchy: FloatArray
    without_release: FloatArray

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value; accuracy has no single block count."""
        accuracy = self.quantity == "decision accuracy"
        return super().settings.drop(columns=["block_count"] if accuracy else [])


def evaluate(question: Question, *, decision: bool) -> FloatArray:
    """Return P(correct), gain and loss on a last axis, or the average posterior of the truth."""
    value = np.empty((int(np.prod(question.shape)), 3 if decision else 1))
    for one, truths, members in question.groups():
        if decision:
            value[members] = decisions(one, truths, question.ties)
        else:
            value[members] = marginal_posteriors(one, truths)[:, None]
    return np.minimum(value, 1.0).reshape((*question.shape, value.shape[1]))


def average_risk(question: Question, *, decision: bool) -> HierarchicalRisk:
    """Return the average of correct decisions, or of the posterior of the truth."""
    present = question.arrays["block_count"] > question.arrays["known_count"]
    baseline = np.where(present, question.arrays["prior"], 1.0 - question.arrays["prior"])
    if decision:  # whether a guess by the prior alone is right
        coin = present if question.ties == "as-published" else 0.5
        baseline = np.where(baseline == 0.5, coin, baseline > 0.5)
    quantity = "correct decision" if decision else "posterior of the truth"
    value = evaluate(question, decision=decision)[..., 0]
    alone = without_hierarchy(question, decision=decision)
    return HierarchicalRisk(question, quantity, value, alone, np.asarray(baseline, np.float64))


@displayed
@dataclass(frozen=True)
class HierarchicalGain(AverageAnswer):
    """Rates of decisions that the group's and siblings' counts correct, and that they spoil.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    gain, loss : ndarray
        Probability of the releases that are read correctly with the hierarchy and wrongly without
        it, and the reverse.
    with_hierarchy, without_hierarchy : ndarray
        Probability of a correct decision; the difference is ``net``.
    """

    _columns = ("gain", "loss", "net", "with_hierarchy", "without_hierarchy")
    gain: FloatArray
    loss: FloatArray
    with_hierarchy: FloatArray
    without_hierarchy: FloatArray

    @property
    def net(self) -> FloatArray:
        """Gain minus loss."""
        return self.gain - self.loss

    def decision_map(self, block: ArrayLike, group: ArrayLike, siblings: ArrayLike) -> pd.DataFrame:
        """Return the decision for every combination of releases (Figure 4 of Kazan and Reiter).

        One row for each (y, n, S). ``decision`` and ``decision_without`` are the guessed block
        counts (k + 1 at a tie). ``change`` is "none", "gain", "loss", or "tie" if a coin decides
        for one of the two adversaries. ``probability`` is that of the release given the truth.
        """
        if self.gain.size != 1:
            raise ArgumentError(
                f"decision_map needs a result for one setting, got {self.gain.size}"
            )
        settings, truths, _ = next(self.question.groups())
        axes = [
            np.unique(check.count_array(values, name).ravel())
            for values, name in ((block, "block"), (group, "group"), (siblings, "siblings"))
        ]
        mesh = np.meshgrid(*axes, indexing="ij")
        d, n, total = model.relative_releases(settings, *mesh)
        low, high = model.thresholds(settings, n[:1], total[:1])
        alone = block_thresholds(settings)
        nested, without = d >= low, d >= alone[0]
        tied = (nested & (d < high)) | (without & (d < alone[1]))
        if self.question.ties == "as-published":
            tied = np.zeros_like(tied)
        right = bool(truths[0].target)
        change = np.select(
            [tied, (nested == right) & (without != right), (nested != right) & (without == right)],
            ["tie", "gain", "loss"],
            "none",
        )
        k = settings.known_count.item()
        columns = {
            "block": mesh[0],
            "group": mesh[1],
            "siblings": mesh[2],
            "decision": k + nested.astype(int),
            "decision_without": k + without.astype(int),
            "change": change,
            "probability": _release_probability(settings, truths[0], axes),
        }
        return pd.DataFrame({name: array.ravel() for name, array in columns.items()})


def _release_probability(settings: Settings, truth: Truth, axes: list[IntArray]) -> FloatArray:
    """Return the probability of each (y, n, S) given the truth; silent levels have factor 1."""
    k = settings.known_count.item()
    laws = ((settings.block, k + truth.target), (settings.group, k + truth.group))
    factors = [
        np.asarray(DiscreteGaussian(0.5 / precision, int(centre)).pmf(axis))
        if precision > 0.0
        else np.ones(axis.size)
        for (precision, centre), axis in zip(laws, axes[:2], strict=True)
    ]
    noise, pmf = siblings_noise(settings)
    distance = axes[2] - (truth.group - truth.target)
    inside = (distance >= noise[0]) & (distance <= noise[-1])
    position = np.where(inside, distance - noise[0], 0)
    silent = bool(settings.block == 0.0)
    factors.append(np.ones(axes[2].size) if silent else np.where(inside, pmf[position], 0.0))
    return np.asarray(factors[0][:, None, None] * factors[1][:, None] * factors[2])
