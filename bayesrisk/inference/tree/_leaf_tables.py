"""Priors of leaves and groups as the tables that the sum-product reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.log_table import LogTable, log_table
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference.tree._plan import Plan, make_plan
from bayesrisk.inference.tree.leaf_prior import LeafPrior
from bayesrisk.inference.tree.structure import Tree

#: One law for all leaves, or one per leaf.
LeafPriors = LeafPrior | CountLaw | Sequence[CountLaw] | str


def plan_tree(tree: Tree, leaf_prior: LeafPriors, *, targets: bool) -> tuple[Plan, str]:
    """Return the plan of a tree under a prior, and the prior's name.

    With ``targets`` a leaf that has a target is known up to that one person.
    """
    if not isinstance(tree, Tree):
        raise ArgumentTypeError(f"tree must be a Tree, got {shown(tree)}")
    n = tree.leaves.size
    laws = np.tile([0.0, 1.0, 0.0], (n, 1))
    tables: list[LogTable | None] = [None] * n
    if isinstance(leaf_prior, str):
        name = check.choice(leaf_prior, "leaf_prior", ("flat",))
    elif isinstance(leaf_prior, LeafPrior):
        name, laws = leaf_prior.name, _law_columns(leaf_prior, n)
    else:
        name, tables = "finite", _law_tables(leaf_prior, n)
    if targets:
        for i, leaf in enumerate(tree.leaves.tolist()):
            if tree.known_count[leaf] >= 0:
                p = float(tree.prior[leaf])
                tables[i] = LogTable.of_target(int(tree.known_count[leaf]), p)
    return make_plan(tree, laws, tables, {}), name


def _law_columns(prior: LeafPrior, n: int) -> NDArray[np.float64]:
    columns = (prior.log_jump, prior.size, prior.log_ratio)
    shape = np.broadcast_shapes(*(c.shape for c in columns))
    if shape not in ((), (1,), (n,)):
        raise ShapeError(
            f"leaf_prior must have one parameter, or one for each of {n} leaves, got shape {shape}"
        )
    return np.stack([np.broadcast_to(c, (n,)) for c in columns], axis=1)


def _law_tables(laws: Any, n: int) -> list[LogTable | None]:
    """Return the table of every leaf."""
    many = [laws] * n if isinstance(laws, CountLaw) else laws
    if not isinstance(many, Sequence) or not all(isinstance(law, CountLaw) for law in many):
        raise ArgumentTypeError(
            f"leaf_prior must be 'flat', a LeafPrior, a CountLaw or a sequence of CountLaw, "
            f"got {shown(laws)}"
        )
    if len(many) != n:
        raise ShapeError(f"leaf_prior must have one law for each of {n} leaves, got {len(many)}")
    made = {id(law): law for law in many}  # leaves may share a law
    tables = {key: log_table(law, "leaf_prior").trimmed() for key, law in made.items()}
    return [tables[id(law)] for law in many]
