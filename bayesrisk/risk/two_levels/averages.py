"""Risk from releases of two levels, before they are drawn: averages over releases, given the truth.

The truth enters here and only here: the block count, k or k + 1, and the group count.  The decision
depends on the block's release through a threshold, which is a function of the other two releases
(n, S).  So a probability of decisions is a sum over (n, S) of tails of the block's noise.  Noise is
cut where each side weighs less than ``exp(-_REACH)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._show import Tabular, displayed
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk._version import __version__
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.kernels import FLAT
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
    """True counts relative to the known count: the target's (0 or 1) and the group's."""

    target: int
    group: int


def _noise_window(precision: float, ripple: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the values of a noise that matter, and their probabilities; one value if silent."""
    if precision == 0.0:
        return np.zeros(1, dtype=np.int64), np.ones(1)
    reach = np.sqrt((_REACH + float(np.ptp(ripple))) / precision) + 1.0
    if not reach < MAX_CELLS:
        raise ArgumentError(
            f"rho_block and rho_group must leave noise of fewer than {MAX_CELLS} values, "
            f"got {reach:g}"
        )
    x = np.arange(-int(reach), int(reach) + 1)
    log_weight = ripple[x % ripple.size] - precision * x.astype(float) ** 2
    weight = np.exp(log_weight - log_weight.max())
    return x, weight / weight.sum()


def _sibling_ripple(settings: model.Settings) -> FloatArray:
    """Return the ripple of the noise that is really added: a sum, whatever the adversary takes."""
    return sum_ripple(settings.block.item(), settings.n_siblings.item(), name="n_siblings")


def siblings_noise(settings: model.Settings) -> tuple[IntArray, FloatArray]:
    """Return the noise of the siblings' total that matters, and its probabilities."""
    return _noise_window(settings.total.item(), _sibling_ripple(settings))


def block_noise(settings: model.Settings) -> tuple[IntArray, FloatArray]:
    """Return the noise of the block's count that matters, and its probabilities."""
    return _noise_window(settings.block.item(), np.zeros(1))


@dataclass(frozen=True)
class Grid:
    """The group's and the siblings' releases, relative to k, around one or several truths."""

    group: IntArray
    siblings: IntArray
    group_noise: IntArray
    group_pmf: FloatArray
    siblings_noise: IntArray
    siblings_pmf: FloatArray

    def part(self, truth: Truth, settings: model.Settings) -> tuple[slice, slice]:
        """Return where the releases around one of the truths are."""
        n = self.group_noise[0] + (0 if settings.group == 0.0 else truth.group)
        s = self.siblings_noise[0] + (0 if settings.block == 0.0 else truth.group - truth.target)
        i, j = int(n - self.group[0]), int(s - self.siblings[0])
        return slice(i, i + self.group_noise.size), slice(j, j + self.siblings_noise.size)


def around(settings: model.Settings, truths: list[Truth]) -> Grid:
    """Return the smallest grid that holds the releases around all the truths."""
    n, n_pmf = _noise_window(settings.group.item(), np.zeros(1))
    s, s_pmf = siblings_noise(settings)
    groups = [0 if settings.group == 0.0 else t.group for t in truths]
    others = [0 if settings.block == 0.0 else t.group - t.target for t in truths]
    return Grid(
        group=np.arange(n[0] + min(groups), n[-1] + max(groups) + 1),
        siblings=np.arange(s[0] + min(others), s[-1] + max(others) + 1),
        group_noise=n,
        group_pmf=n_pmf,
        siblings_noise=s,
        siblings_pmf=s_pmf,
    )


def _grids(settings: model.Settings, truths: list[Truth]) -> Iterator[tuple[Grid, list[int]]]:
    """Yield grids with the truths that they serve: one for all if that is no more work."""
    shared = around(settings, truths)
    alone = shared.group_noise.size * shared.siblings_noise.size
    if shared.group.size * shared.siblings.size <= max(len(truths), 1) * alone:
        check_size(shared)
        yield shared, list(range(len(truths)))
        return
    for i, truth in enumerate(truths):
        grid = around(settings, [truth])
        check_size(grid)
        yield grid, [i]


def check_size(grid: Grid) -> None:
    """Refuse more releases than are enumerated."""
    cells = grid.group.size * grid.siblings.size
    if cells > MAX_CELLS:
        raise ArgumentError(
            f"rho_block, rho_group and n_siblings must leave at most {MAX_CELLS} releases to "
            f"enumerate, got {cells}"
        )


def upper_tail(settings: model.Settings, thresholds: ArrayLike, target: int) -> FloatArray:
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
    settings: model.Settings, thresholds: tuple[ArrayLike, ArrayLike], target: int, ties: str
) -> FloatArray:
    """Return the probability of the decision for k + 1, given the two thresholds of ``model``."""
    above = upper_tail(settings, thresholds[0], target)
    if ties == "as-published":
        return above
    return 0.5 * (above + upper_tail(settings, thresholds[1], target))


def block_thresholds(settings: model.Settings) -> tuple[FloatArray | float, FloatArray | float]:
    """Return the thresholds of the adversary who reads the block alone."""
    p = settings.prior.item()
    logit = float(np.log(p) - np.log1p(-p))
    if settings.block == 0.0:
        return -np.inf if p >= 0.5 else np.inf, -np.inf if p > 0.5 else np.inf
    return model.threshold(logit, settings.block.item())


def decisions(settings: model.Settings, truths: list[Truth], ties: str) -> FloatArray:
    """Return, for each truth, P(correct), P(only with hierarchy), P(only without) as columns."""
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


def marginal_posteriors(settings: model.Settings, truths: list[Truth]) -> FloatArray:
    """Return the posterior of each truth averaged over the releases that it gives."""
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
    settings: model.Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    """Average over the block's release: that of one noisy count, whose prior is what (n, S) say."""
    p, a = settings.prior, settings.block.item()
    evidence = model.group_evidence(settings, n, total)
    with np.errstate(over="ignore", under="ignore"):
        odds = np.exp(np.log(p) - np.log1p(-p) + evidence)
        belief = 1.0 / (1.0 + 1.0 / odds) if target else 1.0 / (1.0 + odds)
    if a == 0.0:
        return np.asarray(belief)
    return np.asarray(np.minimum(marginal_ratio(a, np.maximum(belief, 1e-300)) * belief, 1.0))


def block_marginal(settings: model.Settings, target: int) -> float:
    """Return the average posterior of the truth for the adversary who reads the block alone."""
    p, a = settings.prior.item(), settings.block.item()
    belief = p if target else 1.0 - p
    return belief if a == 0.0 else min(float(marginal_ratio(a, belief)) * belief, 1.0)


def _average_published(
    settings: model.Settings, n: FloatArray, total: FloatArray, target: int
) -> FloatArray:
    noise, pmf = block_noise(settings)
    value = np.zeros(np.broadcast_shapes(n.shape, total.shape))
    for eta, weight in zip(noise.tolist(), pmf.tolist(), strict=True):
        d = np.array(float(eta + target) if settings.block else 0.0)
        posterior = model.target_probability(settings, d, n, total)
        value += weight * (posterior if target else 1.0 - posterior)
    return value


# -----------------------------------------------------------------------------
# Arguments of the averages over two levels, checked; and the answers.


#: Largest group: the releases around it, which noise may lift, still differ exactly in a double.
MAX_GROUP = 2**51


@dataclass(frozen=True)
class Question:
    """Checked arguments of an average: every setting and its truth, in one common shape."""

    arrays: dict[str, Any]
    model: model.Settings
    shape: tuple[int, ...]
    ties: str
    provenance: dict[str, Any]

    def groups(self) -> Iterator[tuple[Settings, list[Truth], IntArray]]:
        """Yield one model, its truths and their positions, for all that differ in truth only."""
        known = self.model
        settings = (known.block, known.group, known.n_siblings, known.prior, known.known_count)
        columns = np.column_stack([np.broadcast_to(v, self.shape).ravel() for v in settings])
        group, block = (self.arrays[name].ravel() for name in ("group_count", "block_count"))
        distinct, index = np.unique(columns, axis=0, return_inverse=True)
        for i, (a, b, m, p, k) in enumerate(distinct):
            members = np.flatnonzero(index.ravel() == i)
            truths = [Truth(int(block[j] - k), int(group[j] - k)) for j in members]
            one = replace(
                known,
                block=np.array(a),
                group=np.array(b),
                prior=np.array(p),
                n_siblings=np.array(int(m)),
                known_count=np.array(int(k)),
            )
            yield one, truths, members

    def settings(self) -> pd.DataFrame:
        """Return the settings of the question, a row each."""
        return pd.DataFrame({name: array.ravel() for name, array in self.arrays.items()})


def read_question(
    known: TwoLevelSettings,
    group_count: ArrayLike,
    block_count: ArrayLike | None = None,
    *,
    ties: str = model.TIES[0],
) -> Question:
    """Return checked arguments; warn of conditionals that describe no posterior."""
    two_levels = known.checked
    model.warn_if_published(two_levels, stacklevel=4)
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
        **{name: known.arrays[name] for name in ("rho_block", "rho_group", "sensitivity")},
        "prior": two_levels.prior,
    }
    shape = check.broadcast(**arrays)
    full = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    check_truth(two_levels, full, "group_count")
    check.choice(ties, "ties", model.TIES)
    return Question(
        arrays=full,
        model=two_levels,
        shape=shape,
        ties=ties,
        provenance={
            "ties": ties,
            "group_prior": known.group_prior,
            "known_total": known.known_total,
            "conditionals": known.conditionals,
            "sibling_noise": known.sibling_noise,
            "version": __version__,
        },
    )


def check_truth(known: model.Settings, arrays: dict[str, Any], name: str) -> None:
    """Refuse counts that the adversary holds impossible, ``name`` being that of the group's.

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
    if known.group_prior.flat or known.published:
        return
    possible = known.group_prior.allowed
    bad = ~np.isin(group, possible)
    if bad.any():
        rule = f"possible under group_prior ({possible[0]} to {possible[-1]})"
        if known.known_total is not None:
            rule = f"known_total = {known.known_total}"
        raise ArgumentError(f"{name} must be {rule}, got {check.describe_first(group, bad)}")


def without_hierarchy(question: Question, *, decision: bool) -> FloatArray:
    """Return the answers of the adversary who reads the block alone."""
    out = np.empty(int(np.prod(question.shape)))
    for one, truths, members in question.groups():
        silent = replace(one, group=np.zeros(()), group_prior=FLAT, published=False)
        for truth, j in zip(truths, members, strict=True):
            if decision:
                alone = block_thresholds(silent)
                above = float(deciding(silent, alone, truth.target, question.ties))
                out[j] = above if truth.target else 1.0 - above
            else:
                out[j] = block_marginal(silent, truth.target)
    return out.reshape(question.shape)


@dataclass(frozen=True)
class AverageAnswer:
    """An answer to a question about releases that are enumerated."""

    question: Question

    @property
    def truncation_bound(self) -> float:
        """Bound on the error by releases left out of the enumeration."""
        return TRUNCATION

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value."""
        return self.question.settings()

    @property
    def provenance(self) -> dict[str, Any]:
        """Group prior, conditionals, noise of the siblings and version."""
        return self.question.provenance


@displayed
@dataclass(frozen=True)
class HierarchicalRisk(AverageAnswer, Tabular):
    """An average over the releases of two levels, given the truth.

    Attributes
    ----------
    question : Question
        Truth and settings, checked.
    quantity : str
        What is averaged: ``"correct decision"``, ``"posterior of the truth"`` or
        ``"decision accuracy"``.
    value : ndarray
        The average, in [0, 1].
    without_hierarchy, without_release : ndarray
        The same for the adversary who reads the block alone, and for the one who reads nothing and
        goes by the prior: the baseline.
    """

    quantity: str
    value: FloatArray
    without_hierarchy: FloatArray
    without_release: FloatArray

    @property
    def settings(self) -> pd.DataFrame:
        """Truth and settings, one row for each value; accuracy has no one block count."""
        both = self.quantity == "decision accuracy"
        return self.question.settings().drop(columns=["block_count"] if both else [])

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each value, with truth and settings."""
        names = ("value", "without_hierarchy", "without_release")
        return self.settings.assign(**{name: np.ravel(getattr(self, name)) for name in names})


def evaluate(question: Question, *, decision: bool) -> FloatArray:
    """Return correct, gained and lost along a last axis, or the posterior of the truth."""
    value = np.empty((int(np.prod(question.shape)), 3 if decision else 1))
    for one, truths, members in question.groups():
        if decision:
            value[members] = decisions(one, truths, question.ties)
        else:
            value[members] = marginal_posteriors(one, truths)[:, None]
    return np.minimum(value, 1.0).reshape((*question.shape, value.shape[1]))


def average_of(question: Question, *, decision: bool) -> HierarchicalRisk:
    """Return the probability of a correct decision, or the posterior of the truth, averaged."""
    there = question.arrays["block_count"] > question.arrays["known_count"]
    baseline = np.where(there, question.arrays["prior"], 1.0 - question.arrays["prior"])
    if decision:  # whether a guess by the prior alone is right
        coin = there if question.ties == "as-published" else 0.5
        baseline = np.where(baseline == 0.5, coin, baseline > 0.5)
    return HierarchicalRisk(
        question=question,
        quantity="correct decision" if decision else "posterior of the truth",
        value=evaluate(question, decision=decision)[..., 0],
        without_hierarchy=without_hierarchy(question, decision=decision),
        without_release=np.asarray(baseline, dtype=np.float64),
    )


def accuracy_of(question: Question) -> HierarchicalRisk:
    """Return the rate of right best guesses, weighted by the prior of the target's being there.

    Without the target the group counts one less, unless its total is known: then the other blocks
    hold one more.
    """
    # The question twice along a new first axis: the target there, and not there.
    arrays = {name: np.stack([array, array]) for name, array in question.arrays.items()}
    arrays["block_count"][1] -= 1
    if question.model.known_total is None:
        arrays["group_count"][1] -= 1
        without = {name: array[1] for name, array in arrays.items()}
        name = "group_count - 1, which is the truth without the target unless known_total is given,"
        check_truth(question.model, without, name)
    both = replace(question, arrays=arrays, shape=(2, *question.shape))
    value = evaluate(both, decision=True)[..., 0]
    alone = without_hierarchy(both, decision=True)
    p = question.arrays["prior"]
    return HierarchicalRisk(
        question=question,
        quantity="decision accuracy",
        value=p * value[0] + (1.0 - p) * value[1],
        without_hierarchy=p * alone[0] + (1.0 - p) * alone[1],
        without_release=np.maximum(p, 1.0 - p),
    )
