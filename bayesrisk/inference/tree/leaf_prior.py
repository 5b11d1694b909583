"""Priors of the counts of a tree's leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import LogTable, log_table
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference.tree._messages import Plan, make_plan
from bayesrisk.inference.tree.structure import Tree


@dataclass(frozen=True, eq=False)
class LeafPrior:
    r"""A prior on the count of each leaf of a tree, as the ratios of successive probabilities.

    Use one of the constructors :meth:`flat`, :meth:`poisson`, :meth:`negative_binomial` and
    :meth:`hurdle`; their parameters are scalars, or arrays with one value per leaf in the order
    of ``tree.leaves``.  Any other law is given as a ``FiniteLaw`` in place of a ``LeafPrior``.

    .. math:: \frac{\pi(1)}{\pi(0)} = e^{\mathtt{log\_jump}}, \qquad
        \frac{\pi(x+1)}{\pi(x)} = q\,\frac{x + r}{x + 1} \quad (x \ge 1)

    and :math:`\mu / (x + 1)` when r is infinite.  Normalisers cancel in a posterior.

    Attributes
    ----------
    name : str
        Which constructor made it.
    log_jump : ndarray
        Log of the ratio of the probabilities of 1 and 0.
    size : ndarray
        r; infinite for the Poisson law.
    log_ratio : ndarray
        log q, or log of the Poisson mean.

    Examples
    --------
    >>> LeafPrior.flat().log_ratios([0, 1, 5]).tolist()
    [0.0, 0.0, 0.0]
    >>> LeafPrior.poisson(2.0).log_ratios([0, 1]).round(4).tolist()
    [0.6931, 0.0]
    """

    name: str
    log_jump: NDArray[np.float64]
    size: NDArray[np.float64]
    log_ratio: NDArray[np.float64]

    @classmethod
    def flat(cls) -> "LeafPrior":
        """Return the improper prior that is constant on 0, 1, 2, ..."""
        return cls("flat", np.zeros(()), np.ones(()), np.zeros(()))

    @classmethod
    def poisson(cls, mean: ArrayLike) -> "LeafPrior":
        """Return the Poisson prior.

        Parameters
        ----------
        mean : array_like
            Mean, in (0, 2**52]; one or one per leaf.
        """
        log_mean = np.log(_positive(mean, "mean"))
        return cls("poisson", log_mean, np.full(log_mean.shape, np.inf), log_mean)

    @classmethod
    def negative_binomial(cls, mean: ArrayLike, *, dispersion: ArrayLike) -> "LeafPrior":
        r"""Return the negative binomial prior.

        Parameters
        ----------
        mean : array_like
            Mean, in (0, 2**52]; one or one per leaf.
        dispersion : array_like
            :math:`\alpha` of the variance :math:`\mu + \alpha \mu^2`, in
            [1e-300, 1e300]; one or one per leaf.
        """
        mu = _positive(mean, "mean")
        alpha = check.real_array(dispersion, "dispersion", lower=1e-300, upper=1e300)
        check.broadcast(mean=mu, dispersion=alpha)
        # q = alpha mu / (1 + alpha mu), and q r = mu / (1 + alpha mu)
        log_jump = np.log(mu) - np.log1p(alpha * mu)
        log_q = np.log(alpha) + log_jump
        return cls("negative_binomial", log_jump, np.broadcast_to(1.0 / alpha, log_q.shape), log_q)

    @classmethod
    def hurdle(
        cls, probability: ArrayLike, *, mean: ArrayLike, positive: str = "geometric"
    ) -> "LeafPrior":
        r"""Return the sparse prior: zero with probability 1 - w, else a law on 1, 2, ...

        Parameters
        ----------
        probability : array_like
            w, the probability that anyone is counted, in (0, 1); one or one per leaf.
        mean : array_like
            For the geometric law its mean, >= 1; for the Poisson law the mean of the Poisson
            law from which zero is removed, > 0.  One or one per leaf.
        positive : {"geometric", "poisson"}
            Law of a positive count: geometric, or Poisson without zero.
        """
        check.choice(positive, "positive", ("geometric", "poisson"))
        w = check.probability(probability, "probability")
        odds = np.log(w) - np.log1p(-w)
        if positive == "geometric":
            mu = check.real_array(mean, "mean", lower=1.0, upper=check.MAX_COUNT)
            check.broadcast(probability=w, mean=mu)
            with np.errstate(divide="ignore"):
                log_q = np.broadcast_to(np.log1p(-1.0 / mu), np.broadcast(w, mu).shape)
            return cls("hurdle", odds - np.log(mu), np.ones(log_q.shape), np.array(log_q))
        mu = _positive(mean, "mean")
        check.broadcast(probability=w, mean=mu)
        first = np.log(mu) - mu - np.log(-np.expm1(-mu))  # log P(1 | positive)
        log_mean = np.broadcast_to(np.log(mu), np.broadcast(w, mu).shape)
        return cls("hurdle", odds + first, np.full(log_mean.shape, np.inf), np.array(log_mean))

    def log_ratios(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return log P(x + 1) - log P(x)."""
        count = check.count_array(x, "x", lower=0).astype(float)
        with np.errstate(invalid="ignore"):
            grown = np.where(np.isinf(self.size), 1.0, (count + self.size)) / (count + 1.0)
        return np.asarray(np.where(count == 0.0, self.log_jump, self.log_ratio + np.log(grown)))


def _positive(value: ArrayLike, name: str) -> NDArray[np.float64]:
    return check.real_array(value, name, lower=0.0, upper=check.MAX_COUNT, bounds="(]")


# -----------------------------------------------------------------------------
# Priors of leaves and groups as the tables that the sum-product reads.


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
    return make_plan(tree, laws, tables), name


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
