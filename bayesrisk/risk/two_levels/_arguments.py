"""Arguments of the averages over two levels, checked; and the answers that are drawn."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import generator
from bayesrisk._types import FloatArray
from bayesrisk._version import __version__
from bayesrisk.distributions.log_table import FLAT
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.two_levels import model
from bayesrisk.inference.two_levels.settings import TwoLevelSettings
from bayesrisk.risk.two_levels import _grid as grid

#: Largest group: the releases around it, which noise may lift, still differ exactly in a double.
MAX_GROUP = 2**51
_METHODS = ("exact", "monte-carlo")
#: How the releases are averaged over: the method, how many are drawn, and from which generator.
Draws = tuple[str, int | None, int | np.random.Generator | None]


@dataclass(frozen=True)
class Question:
    """Checked arguments of an average: every setting and its truth, in one common shape."""

    arrays: dict[str, Any]
    model: model.Settings
    shape: tuple[int, ...]
    method: str
    releases: int
    rng: Any
    ties: str
    provenance: dict[str, Any]

    def groups(self) -> Any:
        """Yield one model, its truths and their positions, for all that differ in truth only."""
        columns = np.column_stack(
            [
                np.broadcast_to(array, self.shape).ravel()
                for array in (
                    self.model.block,
                    self.model.group,
                    self.model.n_siblings,
                    self.model.prior,
                    self.model.known_count,
                )
            ]
        )
        group, block = (self.arrays[name].ravel() for name in ("group_count", "block_count"))
        distinct, index = np.unique(columns, axis=0, return_inverse=True)
        for i, (a, b, m, p, k) in enumerate(distinct):
            members = np.flatnonzero(index.ravel() == i)
            truths = [grid.Truth(int(block[j] - k), int(group[j] - k)) for j in members]
            one = replace(
                self.model,
                block=np.array(a),
                group=np.array(b),
                prior=np.array(p),
                n_siblings=np.array(int(m)),
                known_count=np.array(int(k)),
            )
            yield one, truths, members

    def settings(self) -> pd.DataFrame:
        return pd.DataFrame({name: array.ravel() for name, array in self.arrays.items()})


def read_question(
    known: TwoLevelSettings,
    group_count: ArrayLike,
    block_count: ArrayLike | None = None,
    *,
    draws: Draws,
    ties: str = model.TIES[0],
) -> Question:
    """Return checked arguments."""
    method, releases, rng = draws
    two_levels = known.checked
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
    check.choice(method, "method", _METHODS)
    check.choice(ties, "ties", model.TIES)
    drawn = method == "monte-carlo"
    if drawn and (releases is None or rng is None):
        raise ArgumentError(
            f"method='monte-carlo' needs releases and rng, "
            f"got releases={shown(releases)}, rng={shown(rng)}"
        )
    if not drawn and (releases is not None or rng is not None):
        raise ArgumentError("releases and rng belong with method='monte-carlo'")
    return Question(
        arrays=full,
        model=two_levels,
        shape=shape,
        method=method,
        releases=check.integer(releases, "releases", lower=2, upper=2**40) if drawn else 0,
        rng=streams(rng, int(np.prod(shape))) if drawn else None,
        ties=ties,
        provenance={
            "ties": ties,
            "group_prior": known.group_prior,
            "known_total": known.known_total,
            "conditionals": known.conditionals,
            "sibling_noise": known.sibling_noise,
            "rng": repr(rng),
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


def streams(rng: Any, size: int) -> list[np.random.Generator]:
    """Return one generator for each value, so that no value depends on the others."""
    return list(generator(rng).spawn(size))


def drawn_answers(question: Question) -> tuple[FloatArray, FloatArray]:
    """Return correct, gained, lost and marginal posterior as columns, and standard errors."""
    size = int(np.prod(question.shape))
    mean, error = np.empty((size, 4)), np.zeros((size, 4))
    for one, truths, members in question.groups():
        for truth, j in zip(truths, members, strict=True):
            mean[j], error[j] = grid.simulate(
                one, truth, question.releases, question.rng[j], question.ties
            )
    return mean, error


def without_hierarchy(question: Question, *, decision: bool) -> FloatArray:
    """Return the answers of the adversary who reads the block alone."""
    out = np.empty(int(np.prod(question.shape)))
    for one, truths, members in question.groups():
        silent = replace(one, group=np.zeros(()), group_prior=FLAT, published=False)
        for truth, j in zip(truths, members, strict=True):
            if decision:
                alone = grid.block_thresholds(silent)
                above = float(grid.deciding(silent, alone, truth.target, question.ties))
                out[j] = above if truth.target else 1.0 - above
            else:
                out[j] = grid.block_marginal(silent, truth.target)
    return out.reshape(question.shape)
