"""How often the best guess from two levels is right, whether or not the target is in the block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bayesrisk._types import FloatArray
from bayesrisk.risk.two_levels import _grid as grid
from bayesrisk.risk.two_levels._arguments import (
    Question,
    check_truth,
    streams,
    without_hierarchy,
)
from bayesrisk.risk.two_levels.averages import HierarchicalRisk, evaluate


def accuracy_of(question: Question, rng: int | np.random.Generator | None) -> HierarchicalRisk:
    """Return how often the best guess is right, weighted by the prior of the target's being there.

    Without the target the group counts one less, unless its total is known: then the other blocks
    hold one more.
    """
    both = _with_and_without_target(question, rng)
    value, error = evaluate(both, decision=True)
    alone = without_hierarchy(both, decision=True)
    p = question.arrays["prior"]
    return HierarchicalRisk(
        quantity="decision accuracy",
        value=_weighted(p, value),
        without_hierarchy=_weighted(p, alone),
        without_release=np.maximum(p, 1.0 - p),
        standard_error=np.hypot(p * error[0], (1.0 - p) * error[1]),
        truncation_bound=grid.TRUNCATION if question.method == "exact" else 0.0,
        status=question.method,
        releases=question.releases,
        settings=question.settings().drop(columns="block_count"),
        provenance=question.provenance,
    )


def _weighted(prior: FloatArray, halves: FloatArray) -> FloatArray:
    return np.asarray(prior * halves[0] + (1.0 - prior) * halves[1])


def _with_and_without_target(question: Question, rng: int | np.random.Generator | None) -> Question:
    """Return the question twice along a new first axis: the target there, and not there."""
    arrays = {name: np.stack([array, array]) for name, array in question.arrays.items()}
    arrays["block_count"][1] -= 1
    if question.model.known_total is None:
        arrays["group_count"][1] -= 1
        without = {name: array[1] for name, array in arrays.items()}
        name = "group_count - 1, which is the truth without the target unless known_total is given,"
        check_truth(question.model, without, name)
    shape = (2, *question.shape)
    draws = None if rng is None else streams(rng, int(np.prod(shape)))
    return replace(question, arrays=arrays, shape=shape, rng=draws)
