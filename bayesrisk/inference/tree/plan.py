"""Plan of the sum-product on a tree of counts, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.validation import MAX_COUNT, FloatArray, IntArray
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError, quote
from bayesrisk.inference.tree._kernels import pair_children
from bayesrisk.inference.tree.structure import Tree


@dataclass(frozen=True, eq=False)
class LeafPrior:
    r"""Prior of each leaf's count, given by the ratios of successive probabilities.

    Use one of the constructors :meth:`flat`, :meth:`poisson`, :meth:`negative_binomial` and
    :meth:`hurdle`. Their parameters are scalars, or arrays with one value per leaf in the order of
    ``tree.leaves``. Give any other law as a ``FiniteLaw`` in place of a ``LeafPrior``.

    .. math:: \frac{\pi(1)}{\pi(0)} = e^{\mathtt{log\_jump}}, \qquad
        \frac{\pi(x+1)}{\pi(x)} = q\,\frac{x + r}{x + 1} \quad (x \ge 1)

    It is :math:`\mu / (x + 1)` if r is infinite. Normalisers cancel in a posterior.

    Attributes
    ----------
    name : str
        Name of the constructor.
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
    log_jump: FloatArray
    size: FloatArray
    log_ratio: FloatArray

    def __post_init__(self) -> None:
        check.instance(self.name, str, "name")
        for name in ("log_jump", "size", "log_ratio"):
            values = check.as_array(getattr(self, name), name)
            if values.dtype.kind not in "iuf" or np.isnan(values).any():
                raise ArgumentError(name, "must hold numbers", got=values)
            object.__setattr__(self, name, values.astype(np.float64))

    @classmethod
    def flat(cls) -> "LeafPrior":
        """Return the improper prior that is constant on 0, 1, 2, ..."""
        return cls("flat", np.zeros(()), np.ones(()), np.zeros(()))

    @classmethod
    def poisson(cls, mean: ArrayLike) -> "LeafPrior":
        """Return the Poisson prior with a mean in (0, 2**52]."""
        log_mean = np.log(_positive(mean, "mean"))
        return cls("poisson", log_mean, np.full(log_mean.shape, np.inf), log_mean)

    @classmethod
    def negative_binomial(cls, mean: ArrayLike, *, dispersion: ArrayLike) -> "LeafPrior":
        r"""Return the negative binomial prior with a mean in (0, 2**52].

        The dispersion is :math:`\alpha` in the variance :math:`\mu + \alpha \mu^2`, in [1e-300,
        1e300].
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
        r"""Return the hurdle prior: 0 with probability 1 - w, else a law on 1, 2, ...

        ``probability`` is w, in (0, 1). A ``positive`` count is geometric with a mean >= 1, or
        ``"poisson"``: Poisson with that mean, > 0, without zero.
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

    def log_ratios(self, x: ArrayLike) -> FloatArray:
        """Return log P(x + 1) - log P(x)."""
        count = check.count_array(x, "x", lower=0).astype(float)
        with np.errstate(invalid="ignore"):
            grown = np.where(np.isinf(self.size), 1.0, (count + self.size)) / (count + 1.0)
        return np.asarray(np.where(count == 0.0, self.log_jump, self.log_ratio + np.log(grown)))


def _positive(value: ArrayLike, name: str) -> FloatArray:
    return check.real_array(value, name, lower=0.0, upper=check.MAX_COUNT, bounds="(]")


_SHORT = 2**12  # counts within bounds that are kept as a table; wider bounds only cut windows
_LONGEST_TABLE = 2**22  # the same for a count of which nothing else is known


@dataclass(frozen=True, eq=False)
class Plan:
    """A tree as units (chains of nodes with equal counts) and a binary tree of merges."""

    unit_number: IntArray
    parent: IntArray
    is_leaf: NDArray[np.bool_]
    lam: FloatArray
    y: IntArray
    frac: FloatArray
    left: IntArray
    right: IntArray
    unit: IntArray
    root: IntArray
    law: FloatArray
    bank: FloatArray
    bank_slot: IntArray
    tables: dict[int, LogTable]
    leaf_units: IntArray
    leaf_names: pd.Index
    bounds: IntArray

    def leaf_name(self, unit: int) -> object:
        """Return the name of the leaf in a unit."""
        return self.leaf_names[int(np.flatnonzero(self.leaf_units == unit)[0])]


def units(tree: Tree) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """Return each node's unit, and each unit's parent, precision, and release (whole and rest)."""
    # An only child has its parent's count: links are doubled until each ends at a head of a chain.
    only = np.diff(tree.first_child)[tree.parent] == 1
    only[0] = False
    link = np.where(only, tree.parent, np.arange(tree.n_nodes))
    while not np.array_equal(link, link[link]):
        link = link[link]
    head = np.flatnonzero(~only)
    unit, n = np.searchsorted(head, link), head.size
    above = tree.parent[head]
    parent = np.where(above < 0, -1, unit[above])
    lam: FloatArray = np.minimum(np.bincount(unit, tree.precision, n), 1e280)
    # The most precise release is the reference; the others move it by a weighted mean.
    y = np.zeros(n, dtype=np.int64)
    order = np.argsort(tree.precision, kind="stable")
    y[unit[order]] = tree.noisy[order]
    gap = (tree.noisy - y[unit]) * np.minimum(tree.precision / np.fmax(lam[unit], 1e-320), 1)
    rest = np.bincount(unit, np.where(tree.precision > 0.0, gap, 0.0), n)
    return unit, np.asarray(parent, dtype=np.int64), lam, y, rest.astype(np.float64)


def _product(a: LogTable, b: LogTable) -> LogTable:
    """Return the unnormalised product of two laws of one count."""
    if min(a.stop, b.stop) <= max(a.start, b.start):
        raise ArgumentError(
            "priors on one count must share a possible count, got "
            f"[{a.start}, {a.stop - 1}] and [{b.start}, {b.stop - 1}]"
        )
    return a.times(b)


def _log_law(law: FloatArray, low: int, high: int) -> FloatArray:
    """Return log weights of a law of ``LeafPrior``'s family on ``low``, ..., ``high``."""
    steps = LeafPrior("", *law).log_ratios(np.arange(low, max(high, low + 1)))
    return np.concatenate(([0.0], np.cumsum(steps[: high - low])))


def _use_bounds(
    bounds: IntArray,
    lam: FloatArray,
    leaf: NDArray[np.bool_],
    laws: FloatArray,
    leaf_tables: dict[int, LogTable | None],
    inner: dict[int, LogTable],
) -> None:
    """Write short bounds into the tables; longer ones only cut windows.

    A bound of 0, or an exact total, is a table of one count.  Units share tables.
    """
    log_laws: dict[tuple[float, ...], FloatArray] = {}
    width = bounds[:, 1] - bounds[:, 0]
    bounded = (bounds[:, 0] > 0) | (bounds[:, 1] < MAX_COUNT)
    short = (width < _SHORT) | ((lam == 0.0) & (width < _LONGEST_TABLE))
    for u in np.flatnonzero(bounded).tolist():
        low, high = bounds[u].tolist()
        table = leaf_tables.get(u) if leaf[u] else inner.get(u)
        if table is not None:
            table = _product(table, LogTable(low, np.zeros(min(high, table.stop - 1) - low + 1)))
        elif short[u]:
            law = laws[u] if leaf[u] else np.array([0.0, 1.0, 0.0])
            key = (low, high, *law.tolist())
            if key not in log_laws:
                log_laws[key] = _log_law(law, low, high)
            table = LogTable(low, log_laws[key])
        else:
            continue
        if leaf[u]:
            leaf_tables[u] = table
        else:
            inner[u] = table


def _unit_tables(
    tree: Tree, unit_number: IntArray, laws: FloatArray, tables: Sequence[LogTable | None]
) -> tuple[list[LogTable | None], dict[int, LogTable]]:
    """Return the tables of leaves and of other units, each prior times exact count.

    Nodes with one child share a unit, and its count.
    """
    exact = {
        int(v): LogTable(int(tree.exact[v]), np.zeros(1)) for v in np.flatnonzero(tree.exact >= 0)
    }
    inner: dict[int, LogTable] = {}
    for node, table in [*tree.tables.items(), *exact.items()]:
        unit = int(unit_number[node])
        inner[unit] = _product(inner[unit], table) if unit in inner else table
    leaf_tables = list(tables)
    for i, unit in enumerate(unit_number[tree.leaves].tolist()):
        if unit not in inner:
            continue
        combined = inner.pop(unit)
        leaf_table = leaf_tables[i]
        if leaf_table is not None:
            combined = _product(leaf_table, combined)
        elif combined.start > 1 and np.isneginf(laws[i, 2]):  # a hurdle that allows 0 and 1 alone
            raise ArgumentError("leaf_prior", "must allow the exact count", shown=combined.start)
        else:
            weights = combined.log_pmf + _log_law(laws[i], combined.start, combined.stop - 1)
            combined = LogTable(combined.start, weights)
        leaf_tables[i] = combined
    return leaf_tables, inner


def stored_once(arrays: Sequence[FloatArray]) -> tuple[FloatArray, dict[int, int]]:
    """Return the arrays, each once, in one array, and by the id of each where it begins."""
    place: dict[int, int] = {}
    end = 0
    different = {id(values): values for values in arrays}
    for number, values in different.items():
        place[number] = end
        end += values.size
    return np.concatenate([np.zeros(0), *different.values()]), place


def make_plan(tree: Tree, laws: FloatArray, tables: Sequence[LogTable | None]) -> Plan:
    """Return the plan of a tree; ``laws`` and ``tables`` go with ``tree.leaves``.

    ``tables[i]`` is the table of the i-th leaf, None where it has a law.
    """
    unit_number, parent, lam, y, frac = units(tree)
    n = lam.size
    count = np.bincount(parent[1:], minlength=n).astype(np.int64)
    first = np.full(n, n, dtype=np.int64)
    np.minimum.at(first, parent[1:], np.arange(1, n))
    n_segments = n + int(np.maximum(count - 2, 0).sum())
    left, right, unit = (np.empty(n_segments, dtype=np.int64) for _ in range(3))
    root = np.empty(n, dtype=np.int64)
    pair_children(first, count, left, right, unit, root)
    law = np.zeros((n, 3))
    law[unit_number[tree.leaves]] = laws
    bank_slot = np.zeros((n, 3), dtype=np.int64)
    leaf_list, inner = _unit_tables(tree, unit_number, laws, tables)
    leaf_tables = dict(zip(unit_number[tree.leaves].tolist(), leaf_list, strict=True))
    bounds = np.stack([np.zeros(n, dtype=np.int64), np.full(n, MAX_COUNT)], axis=1)
    if tree.is_bounded:
        np.maximum.at(bounds[:, 0], unit_number, tree.lower)
        np.minimum.at(bounds[:, 1], unit_number, tree.upper)
        _use_bounds(bounds, lam, count == 0, law, leaf_tables, inner)
    filled = {leaf: table for leaf, table in leaf_tables.items() if table is not None}
    bank, place = stored_once([values for _, values in filled.values()])
    for leaf, (low, values) in filled.items():
        bank_slot[leaf] = place[id(values)], low, values.size
    return Plan(
        unit_number,
        parent,
        count == 0,
        lam,
        y,
        frac,
        left,
        right,
        unit,
        root,
        law,
        bank,
        bank_slot,
        inner,
        unit_number[tree.leaves],
        tree.names[tree.leaves],
        bounds,
    )


# -----------------------------------------------------------------------------
# Priors of leaves and groups as the tables that the sum-product reads.


#: One law for all leaves, or one per leaf.
LeafPriors = LeafPrior | CountLaw | Sequence[CountLaw] | str


def plan_tree(tree: Tree, leaf_prior: LeafPriors, *, targets: bool) -> tuple[Plan, str]:
    """Return the plan of a tree under a prior, and the prior's name.

    With ``targets`` a leaf that has a target is known up to that one person.
    """
    n = check.instance(tree, Tree, "tree").leaves.size
    laws = np.tile([0.0, 1.0, 0.0], (n, 1))
    tables: list[LogTable | None] = [None] * n
    if isinstance(leaf_prior, str):
        name = check.choice(leaf_prior, "leaf_prior", ("flat",))
    elif isinstance(leaf_prior, LeafPrior):
        name, laws = leaf_prior.name, law_columns(leaf_prior, n)
    else:
        name, tables = "finite", _law_tables(leaf_prior, n)
    if targets:
        for i, leaf in enumerate(tree.leaves.tolist()):
            if tree.known_count[leaf] >= 0:
                p = float(tree.prior[leaf])
                tables[i] = LogTable.target_count(int(tree.known_count[leaf]), p)
    return make_plan(tree, laws, tables), name


def law_columns(prior: LeafPrior, n: int) -> FloatArray:
    """Return the prior's parameters for each of n leaves, shape (n, 3)."""
    columns = (prior.log_jump, prior.size, prior.log_ratio)
    shape = np.broadcast_shapes(*(c.shape for c in columns))
    if shape not in ((), (1,), (n,)):
        raise ShapeError(
            f"leaf_prior must have one parameter, or one for each of {n} leaves, got shape {shape}"
        )
    return np.stack([np.broadcast_to(c, (n,)) for c in columns], axis=1)


def _law_tables(laws: object, n: int) -> list[LogTable | None]:
    many = [laws] * n if isinstance(laws, CountLaw) else laws
    if not isinstance(many, Sequence) or not all(isinstance(law, CountLaw) for law in many):
        raise ArgumentTypeError(
            f"leaf_prior must be 'flat', a LeafPrior, a CountLaw or a sequence of CountLaw, "
            f"got {quote(laws)}"
            + "; of a function f write FiniteLaw(0, p) with p of exp(f(0)), exp(f(1)), ... up to "
            "the largest count, divided by their sum" * callable(laws)
        )
    if len(many) != n:
        raise ShapeError("leaf_prior", f"must have one law for each of {n} leaves", shown=len(many))
    distinct = {id(law): law for law in many}  # leaves may share a law
    tables = {key: log_table(law, "leaf_prior").trimmed() for key, law in distinct.items()}
    return [tables[id(law)] for law in many]
