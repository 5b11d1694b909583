"""Constructions: whether a release can be computed from another one and fresh randomness.

A release made from another one tells nobody more, whatever an average over people says. The
specifications of two protections and their published tables decide this before there are any data.
Four steps lead from one published table to another:

- from true counts to anything that a mechanism makes of these counts alone: sums of cells or
  places, ranges, rounding, noise;
- from ranges to ranges whose edges are all among the first ones (rounding to the nearest,
  thresholds and true counts are ranges, too);
- from noise to more noise of the same law, and from a random multiple of b to one of k b;
- from any table to itself.

A random count may serve for one other count only: two counts made from it would share its noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from bayesrisk.exceptions import BayesRiskError
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms.composition import ReleaseComposition
from bayesrisk.mechanisms.recode import Recode
from bayesrisk.mechanisms.registry import make_mechanism
from bayesrisk.mechanisms.rules import RuledTable, RulesByTable
from bayesrisk.mechanisms.suppression.groups import table_cliques
from bayesrisk.release import (
    MechanismSpec,
    NoiseSpec,
    RangeSpec,
    RoundingSpec,
    SuppressedCounts,
    TrueCounts,
)
from bayesrisk.tables import Table, Workload
from bayesrisk.tables.cells import code_kinds, crossed_weights
from bayesrisk.tables.likelihoods import Likelihood

_MOST_KINDS = 2**11  # kinds of records that tables tell apart: beyond, sums are not looked for
_ROUNDING = 1e-9
#: Scales s, t of discrete Gaussians of which one is the other and more: s (t - s) / t at least.
_SMOOTH = math.log(2.0 / 1e-6) / (2.0 * math.pi**2)


class _Published(NamedTuple):
    """A table at a level (larger rank: finer), with the law of its cells."""

    rank: int
    table: Table
    law: Likelihood

    @property
    def random(self) -> bool:
        return self.law.random


class _Whole(NamedTuple):
    """Tables that a mechanism protects jointly, so that no cell has a law of its own."""

    spec: MechanismSpec
    workload: Workload
    random: bool


def constructions(specs: Mapping[str, MechanismSpec], workload: Workload) -> list[tuple[str, str]]:
    """Return the pairs of protections whose second can be made from the first.

    Two protections that can be made from each other are equal in law; both pairs are returned.

    Examples
    --------
    >>> from bayesrisk.mechanisms import make_mechanism
    >>> specs = {f"nearest {b}": make_mechanism("rounding", base=b, method="nearest").spec
    ...          for b in (2, 3, 9)}
    >>> constructions(specs, Workload.named("sf1-block").select(tables=["P1"]))
    [('nearest 3', 'nearest 9')]
    """
    pairs = itertools.permutations(specs, 2)
    return [(a, b) for a, b in pairs if can_be_made(specs[a], specs[b], workload)]


def can_be_made(clear: MechanismSpec, faint: MechanismSpec, workload: Workload) -> bool:
    """Return True if a release by the second mechanism can be made from one by the first.

    False means that no construction is known, not that none exists.
    """
    if clear == faint:
        return True
    sources, wanted = _parts(clear, workload), _parts(faint, workload)
    exact = [one for one in sources if isinstance(one, _Published) and one.law.exact]
    random_parts = []  # for each part with chance in it, which sources serve
    for part in wanted:
        if _from_counts(part, exact):
            continue
        serves = [_serves(source, part) for source in sources]
        if part.random:
            random_parts.append(serves)
        elif not any(serves):
            return False
    if not random_parts:
        return True
    matched = maximum_bipartite_matching(
        csr_array(np.array(random_parts, np.int8)), perm_type="column"
    )
    return bool((matched >= 0).all())


def table_can_be_made(clear: RuledTable, faint: RuledTable) -> bool:
    """Return True if one published table can be made from another of the same places."""
    one, other = _Published(0, *clear), _Published(0, *faint)
    return _serves(one, other) or (clear.law.exact and _sums(other.table, 0, [one]))


def equal_in_law(one: MechanismSpec, other: MechanismSpec, workload: Workload) -> bool:
    """Return True if releases by two mechanisms can be made from each other."""
    return can_be_made(one, other, workload) and can_be_made(other, one, workload)


def _parts(spec: MechanismSpec, workload: Workload) -> list[_Published | _Whole]:
    """Return the independent parts of what a mechanism publishes from a workload."""
    parts: list[_Published | _Whole] = []
    rank, mechanism = workload.schema.geography.rank, _rebuilt(spec)
    if isinstance(mechanism, ReleaseComposition):
        for entry in spec.parameters["releases"].values():
            names = entry.get("tables")
            tables = workload if names is None else workload.select(tables=list(names))
            one = make_mechanism(entry["mechanism"], **entry["parameters"]).spec
            parts += _parts(one, tables)
        return parts
    if isinstance(mechanism, Recode):
        published = mechanism.published(workload).tables
        return [_Published(rank(key[0]), table, TrueCounts()) for key, table in published.items()]
    if isinstance(mechanism, RulesByTable):
        ruled = mechanism.tables(workload)
        if any(isinstance(one.law, SuppressedCounts) for one in ruled.values()):
            return [_Whole(spec, workload, random=False)]
        return [_Published(rank(key[0]), *one) for key, one in ruled.items()]
    laws = {key: spec.likelihood(*key) for key in workload.tables}
    if spec.parameters.get("complementary") is False:  # the rule alone withholds a range
        laws = {key: _without_others(law) for key, law in laws.items()}
    joint = {}
    for key, table in workload.tables.items():
        law = laws[key]
        if isinstance(law, NoiseSpec | RoundingSpec) or _edges(law):
            parts.append(_Published(rank(key[0]), table, law))
        else:
            joint[key] = table
    if joint:
        random = any(laws[key].random for key in joint)
        parts.append(_Whole(spec, Workload(workload.schema, joint), random))
    return parts


def _without_others(law: Likelihood) -> Likelihood:
    """Return the law of counts withheld by a rule alone, as a law of ranges."""
    low, high = law.withheld
    if not isinstance(law, SuppressedCounts) or law.high is None:
        return law
    edges = (*range(low), low, high + 1)
    return RangeSpec(edges, edges, 1)


def _rebuilt(spec: MechanismSpec) -> Mechanism | None:
    """Return the mechanism that a specification describes, or None if it cannot be made."""
    try:
        return make_mechanism(spec.mechanism, **spec.parameters)
    except BayesRiskError:
        return None


def _from_counts(part: _Published | _Whole, exact: Sequence[_Published]) -> bool:
    """Return True if a part can be made from published true counts.

    The choice of cells to withhold depends on records, unless the tables themselves separate
    everything that the choice uses.
    """
    if not exact:
        return False
    if isinstance(part, _Published):
        return _sums(part.table, part.rank, exact)
    tables, rank = part.workload.tables, part.workload.schema.geography.rank
    if any(not isinstance(part.spec.likelihood(*key), SuppressedCounts) for key in tables):
        return False
    cliques = table_cliques(part.workload)
    if cliques.size > _MOST_KINDS:
        return False
    rows = np.vstack(
        [cliques.incidence[part.workload.levels[-1]].toarray(), cliques.ties.toarray()]
    )
    decided = np.linalg.matrix_rank(rows) == cliques.size
    return bool(decided) and all(_sums(t, rank(key[0]), exact) for key, t in tables.items())


def _serves(source: _Published | _Whole, wanted: _Published | _Whole) -> bool:
    """Return True if a part can be made, cell by cell, from the same part protected less."""
    if isinstance(source, _Whole) or isinstance(wanted, _Whole):
        return source == wanted
    if source[:2] != wanted[:2]:
        return False
    one, other = source.law, wanted.law
    if isinstance(one, NoiseSpec) and isinstance(other, NoiseSpec):
        return _adds_noise(one, other)
    if isinstance(one, RoundingSpec) and isinstance(other, RoundingSpec) and one.random:
        # E[multiple of b] is the count, so that its own random multiple has the same chances.
        return other.random and other.base % one.base == 0
    fine, coarse = _edges(one), _edges(other)
    return fine is not None and coarse is not None and _nested(fine, coarse)


def _adds_noise(clear: NoiseSpec, faint: NoiseSpec) -> bool:
    """Return True if one noise is distributed as the other plus independent noise.

    Discrete Laplace noise of a larger scale is a mixture of such noise and zero. The sum of
    discrete Gaussians of scales s and t is not discrete Gaussian. By Poisson summation its
    probabilities differ by a factor within 2 exp(-2 pi^2 s t / (s + t)) of 1.
    """
    if clear.law != faint.law or clear.scale > faint.scale:
        return False
    if clear.law != "discrete-gaussian" or clear.scale == faint.scale:
        return True
    return clear.scale * (faint.scale - clear.scale) / faint.scale >= _SMOOTH


# Ranges: the smallest count of each, and how wide those are that follow the last one.

_Edges = tuple[tuple[int, ...], int | None]


def _edges(law: Likelihood) -> _Edges | None:
    """Return the ranges of counts with one published value, or None for random laws."""
    if isinstance(law, TrueCounts):
        return (0,), 1
    if isinstance(law, RangeSpec):
        return law.edges, law.step
    if isinstance(law, RoundingSpec) and not law.random:
        up = -(-law.base // 2)  # halves go upwards: the smallest count that is rounded to the base
        return ((0,), 1) if law.base == 1 else ((0, up), law.base)
    return None


def _nested(fine: _Edges, coarse: _Edges) -> bool:
    """Return True if each range of the second is a union of ranges of the first."""
    (edges, step), (last, width) = coarse, (fine[0][-1], fine[1])

    def begins(count: int) -> bool:
        beyond = width is not None and count > last and (count - last) % width == 0
        return count in fine[0] or beyond

    if not all(map(begins, edges)) or step is None:
        return all(map(begins, edges))
    if width is None or step % width:
        return False
    # Up to the first edge behind all stated ones of the first, after which both are periodic.
    number = max((last - edges[-1]) // step, 0) + 1
    return number <= len(fine[0]) + 1 and all(
        begins(edges[-1] + step * k) for k in range(1, number + 1)
    )


# Sums: cells of a table that true counts of other tables add up to.


def _sums(wanted: Table, rank: int, exact: Sequence[_Published]) -> bool:
    """Return True if each count of a table is a combination of true counts in its place."""
    tables = [one.table for one in exact if one.rank >= rank]
    if wanted in tables or not tables:
        return wanted in tables
    every = (wanted, *tables)
    sizes = {name: factor.shape[1] for t in every for name, factor in t.factors.items()}
    # Of each attribute a code of each kind: those of one kind all tables weigh alike.
    kinds = {n: np.unique(code_kinds(every, n, sizes[n]), return_index=True)[1] for n in sizes}
    if math.prod(map(len, kinds.values())) > _MOST_KINDS:
        return False
    rows = np.vstack([crossed_weights(table, kinds) for table in tables]).T
    target = crossed_weights(wanted, kinds).T
    sums = np.linalg.lstsq(rows.astype(float), target.astype(float), rcond=None)[0]
    return bool(np.abs(rows @ sums - target).max() < _ROUNDING * max(1.0, float(target.max())))
